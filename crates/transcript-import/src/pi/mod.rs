//! Pi: a tree in one file. The last record is the leaf, and the path to it is the conversation.

mod context;
mod file;

use transcript_format::object::Object;

use crate::conversation::{Conversation, DamageKind};
use crate::dialect::{Dialect, Policy, Session};
use crate::place::Place;
use crate::source::{Store, name_of};
use crate::{Agent, Error, lines};

use file::{File, id_in_name};

/// The folder of sessions in the home folder.
const FOLDER: &str = "sessions";

/// The dialect of Pi.
#[derive(Clone, Copy, Debug)]
pub struct Pi;

impl Dialect for Pi {
    fn agent(&self) -> Agent {
        Agent::Pi
    }

    fn has_store(&self, store: Store<'_>) -> bool {
        store.disk.is_folder(&store.path.join(FOLDER))
    }

    fn begins_file(&self, first: &Object<'_>) -> bool {
        id_of(first).is_some()
    }

    fn sessions(&self, store: Store<'_>) -> Result<Vec<Session>, Error> {
        let files = store.files(&[FOLDER], &[".jsonl"])?;
        let sessions = files.into_iter().map(|path| {
            let header = lines::header(store, &path, |line| Some(id_of(line))).flatten();
            let id = header.unwrap_or_else(|| id_in_name(&name_of(&path)).to_owned());
            Session {
                id,
                files: vec![path],
            }
        });
        Ok(sessions.collect())
    }

    fn read(&self, store: Store<'_>, id: &str, policy: Policy) -> Result<Conversation, Error> {
        let session = self.session(store, id)?;
        let mut to = Conversation::new(Agent::Pi, id);
        let mut file = File::new(policy);
        for path in &session.files {
            let source = lines::read(store, path, &mut to, &mut file)?;
            if !file.has_header {
                let start = Place {
                    source,
                    offset: 0,
                    len: 0,
                };
                to.report(start, DamageKind::MissingHeader);
            }
        }
        context::choose(&mut to, file, policy);
        Ok(to.finish())
    }
}

fn id_of(line: &Object<'_>) -> Option<String> {
    let is_header = line.str("type")? == "session";
    is_header.then(|| line.str("id").map(String::from))?
}
