//! Errors of all functions as one record.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;
use transcript::wire::CommandError;

/// Why a function failed. Names the file and never quotes the content of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The stable name of what went wrong, such as `not-found` or `busy`.
    pub kind: Cow<'static, str>,
    /// What happened, in words.
    pub message: String,
    /// The file, or the folder that was searched.
    pub path: Option<String>,
    /// The number of the line, from 1.
    pub line: Option<u64>,
    /// The offset in the file, in bytes.
    pub offset: Option<u64>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

impl Failure {
    /// A failure without a file.
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            path: None,
            line: None,
            offset: None,
            retryable: false,
        }
    }

    /// The failure of a call whose options cannot be used.
    pub(crate) fn options(message: impl Into<String>) -> Self {
        Self::new("bad-options", message)
    }

    /// Names the file also in the message.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.message = format!("{}: {}", path.display(), self.message);
        self.at(path)
    }

    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_string_lossy().into_owned());
        self
    }

    /// The failure of a call that panicked: a defect of this program.
    pub(crate) fn panic(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_default();
        Self::new("panic", format!("a defect of transcript: {text}"))
    }

    /// Returns the failure as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // Texts and numbers can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<transcript::Error> for Failure {
    fn from(error: transcript::Error) -> Self {
        let message = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Self {
            retryable: error.is_retryable(),
            ..Self::new(error.kind().name(), message)
        }
        .at(error.path())
    }
}

impl From<transcript_reader::Error> for Failure {
    fn from(error: transcript_reader::Error) -> Self {
        transcript::Error::from(error).into()
    }
}

impl From<transcript_writer::InvalidEntry> for Failure {
    fn from(error: transcript_writer::InvalidEntry) -> Self {
        CommandError::from(error).into()
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Self {
            kind: error.kind,
            message: error.message,
            path: None,
            line: None,
            offset: None,
            retryable: error.retry,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new("io", error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new("bad-record", error.to_string())
    }
}
