//! The error of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a session of another agent cannot be read. Damage in a file is not an error: see [`Damage`](crate::Damage).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file has other bytes than when the conversation was read from it.
    #[error("{}: the file changed after it was read", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The receiver of what is written failed.
    #[error("writing failed: {error}")]
    Write {
        /// What the receiver says.
        error: io::Error,
    },
    /// No session has this id.
    #[error("no session {id:?} of {agent} in {}", path.display())]
    NoSession {
        /// The agent.
        agent: crate::Agent,
        /// The id that was asked for.
        id: String,
        /// The folder or file that was searched.
        path: PathBuf,
    },
}

impl Error {
    /// Returns a function that adds `path` to what the system says.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |error| Self::Io {
            path: path.to_owned(),
            error,
        }
    }

    /// Returns that a file has other bytes than before.
    pub(crate) fn changed(path: &Path) -> Self {
        Self::Changed {
            path: path.to_owned(),
        }
    }

    /// Returns that a store has no session of this id.
    pub(crate) fn no_session(agent: crate::Agent, path: &Path, id: &str) -> Self {
        Self::NoSession {
            agent,
            id: id.to_owned(),
            path: path.to_owned(),
        }
    }
}
