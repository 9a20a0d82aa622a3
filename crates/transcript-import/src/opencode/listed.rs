//! The list of the sessions of a database.

use serde::{Deserialize, Serialize};

use crate::state::FileState;
use crate::version::Version;

/// The sessions of a database.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct List {
    /// The files of the database, as they were before it was read.
    pub(crate) files: Vec<FileState>,
    pub(crate) sessions: Vec<Listed>,
}

/// A session, and where it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) id: String,
    /// Its working folder.
    pub(crate) directory: Option<String>,
    /// The session that started it.
    pub(crate) parent: Option<String>,
    /// Changes with its rows; `None` when the database is damaged.
    pub(crate) version: Option<Version>,
}

#[cfg(feature = "sqlite")]
impl Listed {
    /// Returns a session of which a database says only when it changed.
    pub(crate) fn of_version((id, version): (String, Version)) -> Self {
        Self {
            version: Some(version),
            ..Self::of_damaged(id)
        }
    }

    /// Returns a session of a damaged database, of which only the id is known.
    pub(super) fn of_damaged(id: String) -> Self {
        Self {
            id,
            directory: None,
            parent: None,
            version: None,
        }
    }
}
