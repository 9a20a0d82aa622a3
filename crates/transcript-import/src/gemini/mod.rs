//! Gemini CLI: a log of messages and of changes to the list of messages. What is live is what the changes leave.
//!
//! A session is one or more files with its id, because a load in another minute begins a new file. The newest with a prompt or
//! an answer is live. Loading a session in the minute in which it began empties the list; to recover, the list before it is live.

mod log;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use transcript_format::object::Object;

use crate::conversation::{BranchKind, Conversation, NodeId};
use crate::dialect::{Dialect, Policy, Session};
use crate::node::Usage;
use crate::source::{Store, is_file_name, name_of};
use crate::strings::string;
use crate::{Agent, Error, document, lines};

use log::Log;

/// The folder of projects in the home folder.
const FOLDER: &str = "tmp";

/// The ending of the files of older versions.
const DOCUMENT_ENDING: &str = ".json";

/// The dialect of Gemini CLI.
#[derive(Clone, Copy, Debug)]
pub struct Gemini;

impl Dialect for Gemini {
    fn agent(&self) -> Agent {
        Agent::Gemini
    }

    fn has_store(&self, store: Store<'_>) -> bool {
        store.disk.is_folder(&store.path.join(FOLDER))
    }

    fn begins_file(&self, first: &Object<'_>) -> bool {
        first.str("sessionId").is_some() && first.str("projectHash").is_some()
    }

    fn sessions(&self, store: Store<'_>) -> Result<Vec<Session>, Error> {
        let mut sessions: Vec<Session> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for path in store.files(&[FOLDER], &[".jsonl", DOCUMENT_ENDING])? {
            let name = name_of(&path);
            if is_document(&path) && !name.starts_with("session-") {
                continue;
            }
            let id = if is_document(&path) {
                document::header(store, &path, |document| string(document, "sessionId"))
            } else {
                lines::header(store, &path, |line| string(line, "sessionId"))
            };
            let stem = name.rsplit_once('.').map_or(&*name, |(stem, _)| stem);
            let id = id.unwrap_or_else(|| stem.to_owned());
            let place = *places.entry(id).or_insert_with_key(|id| {
                sessions.push(Session {
                    id: id.clone(),
                    files: Vec::new(),
                });
                sessions.len() - 1
            });
            sessions[place].files.push(path);
        }
        Ok(sessions)
    }

    fn read(&self, store: Store<'_>, id: &str, policy: Policy) -> Result<Conversation, Error> {
        let session = self.session(store, id)?;
        Self::read_of(store, &session, policy)
    }
}

impl Gemini {
    /// Reads a session whose files are known.
    pub(crate) fn read_of(
        store: Store<'_>,
        session: &Session,
        policy: Policy,
    ) -> Result<Conversation, Error> {
        let id = &session.id;
        let mut to = Conversation::new(Agent::Gemini, id);
        let mut logs = Vec::new();
        for path in &session.files {
            let mut log = Log::after(logs.last_mut(), policy);
            if is_document(path) {
                document::read(store, path, &mut to, &mut log)?;
            } else {
                lines::read(store, path, &mut to, &mut log)?;
            }
            logs.push(log);
        }
        for path in subagents(store, session)? {
            let mut log = Log::after(None, policy);
            lines::read(store, &path, &mut to, &mut log)?;
            to.branch(BranchKind::Subagent, log.nodes().collect());
        }
        to.metadata.cwd = cwd(store, session);
        to.metadata.subagent_of = parent(session);
        choose(&mut to, logs, policy);
        Ok(to.finish())
    }
}

/// Returns whether a file is one JSON document, as older versions write it.
fn is_document(path: &Path) -> bool {
    name_of(path).ends_with(DOCUMENT_ENDING)
}

/// Returns the files of the subagents of a session: they lie in a folder that has its id.
fn subagents(store: Store<'_>, session: &Session) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for folder in session.files.iter().filter_map(|path| path.parent()) {
        // An id is what a file says: one with a separator would lead to other folders.
        if !is_file_name(&session.id) {
            continue;
        }
        let folder = folder.join(&session.id);
        if !store.disk.is_folder(&folder) {
            continue;
        }
        let of_session = Store {
            path: &folder,
            ..store
        };
        for path in of_session.files(&[""], &[".jsonl"])? {
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Returns the session whose subagent this one is: its folder has that id. Sessions lie in the folder `chats`.
fn parent(session: &Session) -> Option<String> {
    let folder = name_of(session.files.first()?.parent()?);
    let above = session.files.first()?.parent()?.parent()?;
    (name_of(above) == "chats").then(|| folder.into_owned())
}

/// Returns the working folder, which a file beside the folder of chats names.
fn cwd(store: Store<'_>, session: &Session) -> Option<String> {
    // The files of subagents lie one folder deeper.
    let mut folders = session.files.first()?.ancestors().skip(2).take(2);
    let root = folders.find_map(|folder| store.text(&folder.join(".project_root")))?;
    Some(root.trim_end().to_owned())
}

/// Chooses which file is live.
fn choose(to: &mut Conversation, mut logs: Vec<Log>, policy: Policy) {
    if policy == Policy::Recover {
        logs.iter_mut().for_each(Log::undo_wipe);
    }
    let newest = logs.iter().rposition(Log::is_resumable);
    if newest.is_none() && policy == Policy::Vendor {
        to.refusal = Some("it has no prompt and no answer");
    }
    let live = newest.or_else(|| {
        logs.len()
            .checked_sub(1)
            .filter(|_| policy == Policy::Recover)
    });
    for (number, log) in logs.into_iter().enumerate() {
        for (kind, nodes) in log.gone {
            to.branch(kind, nodes);
        }
        for message in log.list {
            if !message.is_sent {
                to.branch(BranchKind::Unsent, message.nodes.into());
            } else if Some(number) == live {
                to.live.extend(message.nodes);
            } else {
                to.branch(BranchKind::Superseded, message.nodes.into());
            }
        }
    }
    to.metadata.usage = Some(usage(to));
}

/// Returns the tokens of the live responses.
fn usage(to: &Conversation) -> Usage {
    let mut sum = Usage::default();
    let usages = to.live.iter().filter_map(|id: &NodeId| to.node(*id).usage);
    usages.for_each(|usage| sum += *usage);
    sum
}
