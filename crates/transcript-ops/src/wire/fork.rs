//! The output of `fork --json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Name, SCHEMA};

/// A copy of a conversation: the only object of `fork --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ForkRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `fork`.
    pub kind: Name,
    /// The id of the new session.
    pub session_id: String,
    /// The path of its file.
    pub path: PathBuf,
    /// The path of the file that was copied; `-` for standard input.
    pub source: PathBuf,
}

impl ForkRecord {
    /// Describes a new session and its source.
    #[must_use]
    pub fn new(session_id: String, path: PathBuf, source: PathBuf) -> Self {
        Self {
            schema: SCHEMA,
            kind: "fork".into(),
            session_id,
            path,
            source,
        }
    }
}
