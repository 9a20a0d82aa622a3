//! The error of a command.

use serde::{Deserialize, Serialize};
use transcript_writer::{ErrorKind, InvalidEntry};

use super::Name;
use transcript_session::Error;

/// The error of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CommandError {
    /// The kind, such as `bad-command`; `docs/cli.md` has the list.
    pub kind: Name,
    /// The error in words; never quotes an entry.
    pub message: String,
    /// Whether the same command may succeed later.
    pub retry: bool,
}

impl CommandError {
    /// The error of a line that is not a command.
    #[must_use]
    pub fn bad_command(message: impl Into<String>) -> Self {
        Self {
            kind: "bad-command".into(),
            message: message.into(),
            retry: false,
        }
    }
}

impl CommandError {
    /// The error of an answer that cannot be written as JSON, which no entry that was read causes.
    pub(crate) fn bad_record(message: impl Into<String>) -> Self {
        Self {
            kind: "bad-record".into(),
            ..Self::bad_command(message)
        }
    }
}

impl From<InvalidEntry> for CommandError {
    fn from(invalid: InvalidEntry) -> Self {
        Self {
            kind: ErrorKind::InvalidEntry.name().into(),
            message: invalid.to_string(),
            retry: false,
        }
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        Self {
            retry: error.is_retryable(),
            kind: error.kind().name().into(),
            message: match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            },
        }
    }
}
