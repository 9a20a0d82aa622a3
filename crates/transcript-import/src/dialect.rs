//! What each agent's format answers.

use std::path::PathBuf;

use transcript_format::object::Object;

use crate::conversation::Conversation;
use crate::source::Store;
use crate::{Agent, Error};

/// The format of one agent.
pub trait Dialect: Sync {
    /// Returns the agent.
    fn agent(&self) -> Agent;

    /// Returns whether a folder looks like the home folder of the agent.
    fn has_store(&self, store: Store<'_>) -> bool;

    /// Returns whether a file that begins with this record is one of the agent's sessions.
    fn begins_file(&self, first: &Object<'_>) -> bool;

    /// Returns the sessions of a store, in the order of their files.
    ///
    /// # Errors
    /// [`Error::Io`] when the system fails.
    fn sessions(&self, store: Store<'_>) -> Result<Vec<Session>, Error>;

    /// Returns the session with an id.
    ///
    /// # Errors
    /// [`Error::NoSession`] when there is none, [`Error::Io`] when the system fails.
    fn session(&self, store: Store<'_>, id: &str) -> Result<Session, Error> {
        let sessions = self.sessions(store)?;
        let found = sessions.into_iter().find(|session| session.id == id);
        found.ok_or_else(|| Error::no_session(self.agent(), store.path, id))
    }

    /// Reads one session.
    ///
    /// # Errors
    /// [`Error::NoSession`] when the store has no session of this id, [`Error::Io`] when the system fails.
    fn read(&self, store: Store<'_>, id: &str, policy: Policy) -> Result<Conversation, Error>;
}

/// A session of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The files with records of its own; inherited ones may lie in others.
    pub files: Vec<PathBuf>,
}

/// How to read a damaged session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Brings back what lies in the files.
    #[default]
    Recover,
    /// Shows what the agent shows.
    Vendor,
}
