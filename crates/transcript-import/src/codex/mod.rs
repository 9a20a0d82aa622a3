//! Codex: rollouts of JSON Lines, chained over files.
//!
//! A thread is one or more files. A fork and a revert copy nothing: they begin a new file whose `history_base` says which part of
//! another file comes before it. So a record is reverted only when the chain of no thread holds it.

mod chain;
mod echo;
mod files;
mod item;
mod recover;
mod rollout;
mod titles;
mod tokens;

use transcript_format::object::Object;

use crate::conversation::Conversation;
use crate::dialect::{Dialect, Policy, Session};
use crate::source::Store;
use crate::{Agent, Error};

pub(crate) use files::Files;
pub(crate) use titles::{INDEX, Titles};

/// The dialect of Codex.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

impl Dialect for Codex {
    fn agent(&self) -> Agent {
        Agent::Codex
    }

    fn has_store(&self, store: Store<'_>) -> bool {
        files::FOLDERS
            .iter()
            .any(|folder| store.disk.is_folder(&store.path.join(folder)))
    }

    fn begins_file(&self, first: &Object<'_>) -> bool {
        let is_meta = first.str("type").is_some_and(|kind| kind == "session_meta");
        is_meta && first.object("payload").is_some()
    }

    fn sessions(&self, store: Store<'_>) -> Result<Vec<Session>, Error> {
        Ok(Self::sessions_of(&Files::of(store)?))
    }

    fn read(&self, store: Store<'_>, id: &str, policy: Policy) -> Result<Conversation, Error> {
        // A thread is read without its title, too.
        let titles = Titles::read(store).unwrap_or_default();
        Self::read_of(&Files::of(store)?, &titles, store, id, policy)
    }
}

impl Codex {
    /// Returns the sessions of rollouts, in the order of their files.
    pub(crate) fn sessions_of(files: &Files) -> Vec<Session> {
        files.sessions()
    }

    /// Reads one session of a store whose rollouts are known.
    pub(crate) fn read_of(
        files: &Files,
        titles: &Titles,
        store: Store<'_>,
        id: &str,
        policy: Policy,
    ) -> Result<Conversation, Error> {
        let head = files.head(id);
        let head = head.ok_or_else(|| Error::no_session(Agent::Codex, store.path, id))?;
        let mut conversation = chain::read(store, files, head, policy)?;
        conversation.metadata.title = titles.of(id).map(str::to_owned);
        Ok(conversation.finish())
    }
}
