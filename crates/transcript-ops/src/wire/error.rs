//! The errors that are written to standard error with `--json`.

use serde::{Deserialize, Serialize};

use super::{Name, SCHEMA};
use crate::failure::Failure;

/// An error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ErrorRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `error`.
    pub kind: Name,
    /// The error.
    pub error: ErrorDetails,
}

/// The cause of an error, its place, and the next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ErrorDetails {
    /// The stable name of what went wrong, such as `not-found`.
    pub kind: Name,
    /// The class of that name, by the reaction of a caller: the exceptions of Python and Node have these names.
    pub class: Name,
    /// The error in words; never quotes an entry.
    pub message: String,
    /// The file, or the folder that was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The number of the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The offset in the file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What a person can do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether the same command may succeed later.
    pub retry: bool,
}

impl ErrorRecord {
    /// Describes a failure.
    #[must_use]
    pub fn new(failure: &Failure) -> Self {
        Self {
            schema: SCHEMA,
            kind: "error".into(),
            error: ErrorDetails {
                kind: failure.kind.clone(),
                class: failure.class().name().into(),
                message: failure.message.clone(),
                path: failure.path.as_deref().map(str::to_owned),
                line: failure.line,
                offset: failure.offset,
                next: failure.next.as_deref().map(str::to_owned),
                retry: failure.retryable,
            },
        }
    }
}
