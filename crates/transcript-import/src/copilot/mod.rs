//! Copilot CLI: a log of events. A compaction puts one message in the place of all before it: the prompts so far and a summary.
//!
//! A rewind in the terminal cuts events out of the log. Their texts are left only in the database `session-store.db`, which the
//! feature `sqlite` reads.

mod events;
mod send;
#[cfg(feature = "sqlite")]
mod turns;

use transcript_format::object::Object;

use crate::conversation::{Conversation, DamageKind, Part};
use crate::dialect::{Dialect, Policy, Session};
use crate::place::Place;
use crate::shared::Shared;
use crate::source::{Store, name_of};
use crate::strings::string;
use crate::{Agent, Error, lines};

use events::{Events, FOLDER};

#[cfg(feature = "sqlite")]
pub(crate) use events::DATABASE;
#[cfg(feature = "sqlite")]
pub(crate) use turns::versions;

/// The dialect of Copilot CLI.
#[derive(Clone, Copy, Debug)]
pub struct Copilot;

impl Dialect for Copilot {
    fn agent(&self) -> Agent {
        Agent::Copilot
    }

    fn has_store(&self, store: Store<'_>) -> bool {
        store.disk.is_folder(&store.path.join(FOLDER))
    }

    fn begins_file(&self, first: &Object<'_>) -> bool {
        let is_start = first
            .str("type")
            .is_some_and(|kind| kind == "session.start");
        is_start && first.object("data").is_some()
    }

    fn sessions(&self, store: Store<'_>) -> Result<Vec<Session>, Error> {
        let files = store.files(&[FOLDER], &["events.jsonl"])?;
        let sessions = files.into_iter().map(|path| {
            let id = lines::header(store, &path, |line| {
                line.object("data")
                    .and_then(|data| string(&data, "sessionId"))
            });
            let folder = path.parent().map(name_of).unwrap_or_default().into_owned();
            Session {
                id: id.unwrap_or(folder),
                files: vec![path],
            }
        });
        Ok(sessions.collect())
    }

    fn read(&self, store: Store<'_>, id: &str, policy: Policy) -> Result<Conversation, Error> {
        let session = self.session(store, id)?;
        Self::read_of(&Shared::default(), store, &session, policy)
    }
}

impl Copilot {
    /// Reads a session whose files are known.
    pub(crate) fn read_of(
        shared: &Shared,
        store: Store<'_>,
        session: &Session,
        policy: Policy,
    ) -> Result<Conversation, Error> {
        let id = &session.id;
        let mut to = Conversation::new(Agent::Copilot, id);
        let mut events = Events::new(policy);
        for path in &session.files {
            let source = lines::read(store, path, &mut to, &mut events)?;
            if !events.has_header {
                let start = Place {
                    source,
                    offset: 0,
                    len: 0,
                };
                to.report(start, DamageKind::MissingHeader);
            }
        }
        to.metadata.title = title(store, session);
        to.metadata.usage = Some(events.usage());
        let has_header = events.has_header;
        #[cfg(feature = "sqlite")]
        turns::read(&shared.copies, store, session, &mut to, &events.steps)?;
        #[cfg(not(feature = "sqlite"))]
        let _ = shared;
        send::choose(&mut to, events);
        if policy == Policy::Vendor {
            refuse(&mut to, has_header);
        }
        Ok(to.finish())
    }
}

/// Returns the title, which a file beside the log holds.
fn title(store: Store<'_>, session: &Session) -> Option<String> {
    let folder = session.files.first()?.parent()?;
    let workspace = store.text(&folder.join("workspace.yaml"))?;
    let name = workspace
        .split('\n')
        .find_map(|line| line.strip_prefix("name: "));
    name.map(|name| name.trim_matches(['"', '\'', ' ', '\r']).to_owned())
}

/// Copilot CLI refuses a log with a damaged line, except when it is the last one.
fn refuse(to: &mut Conversation, has_header: bool) {
    let is_of_log = |part: &&Part| to.source(part.place.source).table.is_none();
    let last = to.parts.iter().rfind(is_of_log).map(|part| part.place);
    let is_in_the_way = |kind| {
        use DamageKind::{NoRecord, SharedLine, TornRecord};
        matches!(kind, NoRecord | SharedLine | TornRecord)
    };
    let mut damage = to.damage.iter();
    if damage.any(|damage| is_in_the_way(damage.kind) && Some(damage.place) != last) {
        to.refuse("a line is damaged");
    } else if !has_header {
        to.refuse("its first event is missing");
    }
}
