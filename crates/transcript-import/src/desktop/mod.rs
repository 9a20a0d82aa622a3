//! The sessions of the desktop program of Claude that run on this machine: a log of the messages of the SDK, with a file of
//! metadata beside its folder.
//!
//! Limitation: the program continues a session with the transcript of its client, which lies in a folder beside the log. What is
//! live here is what the log says.

mod audit;

use transcript_format::object::Object;

use crate::conversation::Conversation;
use crate::dialect::{Dialect, Policy, Session};
use crate::source::{Store, name_of};
use crate::strings::string;
use crate::{Agent, Error, lines};

use audit::Audit;

/// The folder of sessions in the home folder.
const FOLDER: &str = "local-agent-mode-sessions";

/// The name of the log in the folder of a session.
const LOG: &str = "audit.jsonl";

/// The dialect of the desktop program of Claude.
#[derive(Clone, Copy, Debug)]
pub struct ClaudeDesktop;

impl Dialect for ClaudeDesktop {
    fn agent(&self) -> Agent {
        Agent::ClaudeDesktop
    }

    fn has_store(&self, store: Store<'_>) -> bool {
        store.disk.is_folder(&store.path.join(FOLDER))
    }

    fn begins_file(&self, first: &Object<'_>) -> bool {
        first.get("_audit_timestamp").is_some()
    }

    fn sessions(&self, store: Store<'_>) -> Result<Vec<Session>, Error> {
        let files = store.files(&[FOLDER], &[LOG])?;
        let sessions = files.into_iter().map(|path| Session {
            id: path.parent().map(name_of).unwrap_or_default().into_owned(),
            files: vec![path],
        });
        Ok(sessions.collect())
    }

    fn read(&self, store: Store<'_>, id: &str, policy: Policy) -> Result<Conversation, Error> {
        let session = self.session(store, id)?;
        let mut to = Conversation::new(Agent::ClaudeDesktop, id);
        let mut audit = Audit::new(policy);
        for path in &session.files {
            lines::read(store, path, &mut to, &mut audit)?;
        }
        audit.choose(&mut to);
        describe(store, &session, &mut to);
        Ok(to.finish())
    }
}

/// Takes over the metadata of a session, which a file beside its folder has.
fn describe(store: Store<'_>, session: &Session, to: &mut Conversation) {
    let folder = session.files.first().and_then(|path| path.parent());
    let file = folder.map(|folder| folder.with_file_name(format!("{}.json", name_of(folder))));
    let text = file.and_then(|file| store.text(&file)).unwrap_or_default();
    let Ok(found) = Object::parse(&text) else {
        return;
    };
    let time = |key| found.i64(key).map(|time| time.to_string());
    let metadata = &mut to.metadata;
    metadata.title = string(&found, "title");
    metadata.cwd = string(&found, "cwd").or(metadata.cwd.take());
    metadata.model = string(&found, "model").or(metadata.model.take());
    metadata.started = time("createdAt").or(metadata.started.take());
    metadata.updated = time("lastActivityAt").or(metadata.updated.take());
}
