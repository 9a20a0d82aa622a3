//! Errors of all functions as one record.

use std::borrow::Cow;
use std::path::Path;

use crate::wire::CommandError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The error of a function. Names the file and never quotes the content of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// The stable name of what went wrong, such as `not-found` or `busy`.
    pub kind: Cow<'static, str>,
    /// The message, for people.
    pub message: String,
    /// The file, or the folder that was searched.
    pub path: Option<Box<str>>,
    /// The number of the line, from 1.
    pub line: Option<u64>,
    /// The offset in the file, in bytes.
    pub offset: Option<u64>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The next step of a person at the command line, in its words; other front ends have none.
    #[serde(skip)]
    pub next: Option<Box<str>>,
    /// Whether an option cannot be used; the message starts with its name.
    #[serde(skip)]
    names_option: bool,
}

/// The class of a failure, by the reaction of a caller. Python and Node have an exception for each, of the same name with `Error` after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum FailureClass {
    /// There is no such session, file or archive.
    NotFound,
    /// The file to write exists.
    Exists,
    /// An argument, an entry or a query cannot be used.
    Invalid,
    /// Another process writes to the session.
    Busy,
    /// A client would not continue the session.
    NotResumable,
    /// The session was closed before.
    Closed,
    /// The object belongs to the parent of this process; only in Python.
    Forked,
    /// A defect of this program.
    Internal,
    /// Anything else, such as a failure of the system.
    Transcript,
}

impl FailureClass {
    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::Exists => "Exists",
            Self::Invalid => "Invalid",
            Self::Busy => "Busy",
            Self::NotResumable => "NotResumable",
            Self::Closed => "Closed",
            Self::Forked => "Forked",
            Self::Internal => "Internal",
            Self::Transcript => "Transcript",
        }
    }
}

/// The kinds of failures by their classes; those that are not listed are [`FailureClass::Transcript`].
pub const CLASSES: [(FailureClass, &[&str]); 8] = [
    (FailureClass::NotFound, &["not-found"]),
    (FailureClass::Exists, &["exists"]),
    (
        FailureClass::Invalid,
        &[
            "bad-options",
            "bad-query",
            "bad-prices",
            "bad-identity",
            "bad-command",
            "invalid-entry",
            "unknown-entry",
            "unknown-parent",
            "unknown-call",
            "answered-call",
            "ambiguous",
            "not-an-id",
            "blank",
            "split-pair",
            "repeated-uuid",
            "not-the-leaf",
            "behind-compaction",
            "not-own",
        ],
    ),
    (FailureClass::Busy, &["busy", "fork"]),
    (FailureClass::NotResumable, &["not-resumable"]),
    (FailureClass::Closed, &["closed"]),
    (FailureClass::Forked, &["forked"]),
    (FailureClass::Internal, &["panic"]),
];

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// A failure without a file.
    #[must_use]
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            path: None,
            line: None,
            offset: None,
            retryable: false,
            next: None,
            names_option: false,
        }
    }

    /// The failure of a call, one of whose options cannot be used.
    #[must_use]
    pub fn option(option: &'static str, message: impl std::fmt::Display) -> Self {
        Self {
            names_option: true,
            ..Self::options(format!("{option}: {message}"))
        }
    }

    /// Returns the name of the option that cannot be used, with which the message starts; `None` for any other failure.
    #[must_use]
    pub fn named_option(&self) -> Option<&str> {
        let (option, _) = self.message.split_once(':')?;
        self.names_option.then_some(option)
    }

    /// Returns the failure with another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: &'static str) -> Self {
        self.kind = kind.into();
        self
    }

    /// Returns the failure with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Says what a person can do next.
    #[must_use]
    pub fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into().into());
        self
    }

    /// The failure of a call whose options cannot be used.
    #[must_use]
    pub fn options(message: impl Into<String>) -> Self {
        Self::new("bad-options", message)
    }

    /// The failure of a call whose answer the language of the caller cannot have.
    #[must_use]
    pub fn too_large(message: &str) -> Self {
        Self::new("too-large", message)
    }

    /// Names the file also in the message.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        self.message = format!("{}: {}", path.display(), self.message);
        self.at(path)
    }

    /// Names the file.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_string_lossy().into());
        self
    }

    /// The failure of a call that panicked: a defect of this program.
    #[must_use]
    pub fn panic(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_default();
        Self::new("panic", format!("a defect of transcript: {text}"))
    }

    /// Returns the class of the failure.
    #[must_use]
    pub fn class(&self) -> FailureClass {
        let mut classes = CLASSES.iter();
        let class = classes.find(|(_, kinds)| kinds.contains(&&*self.kind));
        class.map_or(FailureClass::Transcript, |(class, _)| *class)
    }

    /// Returns the failure as JSON, with its class.
    #[must_use]
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Classified<'f> {
            class: FailureClass,
            #[serde(flatten)]
            failure: &'f Failure,
        }
        // Texts and numbers can always be written.
        serde_json::to_string(&Classified {
            class: self.class(),
            failure: self,
        })
        .unwrap_or_default()
    }
}

/// Reads options, which a binding wrote as JSON.
///
/// # Errors
/// When an option cannot be used: names it, in words that suit every language.
pub fn read_options<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let error = match serde_json::from_str(text) {
        Ok(options) => return Ok(options),
        Err(error) => error,
    };
    // A binding writes no other JSON that cannot be read.
    let Ok(options) = serde_json::from_str::<Map<String, Value>>(text) else {
        let message = "an option is not Unicode: it has half of a surrogate pair";
        return Err(Failure::options(message));
    };
    let what = |error: &serde_json::Error| {
        let text = error.to_string();
        let text = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(text, _)| text);
        let mut text = text.to_owned();
        let words = [
            ("expected usize", "expected a whole number"),
            ("expected u32", "expected a whole number"),
            ("expected i64", "expected a whole number"),
            ("invalid type: map", "invalid type: object"),
            ("invalid type: sequence", "invalid type: list"),
            ("a sequence", "a list"),
            ("path string", "path"),
            ("unknown variant", "unknown value"),
            ("unknown field", "there is no option"),
        ];
        for (theirs, ours) in words {
            text = text.replace(theirs, ours);
        }
        // Which options there are is in the documentation of the language of the caller.
        if text.starts_with("there is no option")
            && let Some((unknown, _)) = text.split_once(", expected")
        {
            text.truncate(unknown.len());
        }
        text
    };
    let message = what(&error);
    // The option without which the complaint is another one.
    let guilty = options.keys().find(|name| {
        let mut others = options.clone();
        others.remove(*name);
        let read = serde_json::from_value::<T>(Value::Object(others));
        *name != "function" && read.err().is_none_or(|error| what(&error) != message)
    });
    Err(Failure::options(match guilty {
        Some(name) if !message.contains(&format!("`{name}`")) => format!("{name}: {message}"),
        _ => message,
    }))
}

/// Returns the message of an error with its causes: each once, and without the numbers that the system gives them.
#[must_use]
pub fn message_of(error: &dyn std::error::Error) -> String {
    let mut text = without_number(&error.to_string());
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    for cause in causes.map(|cause| without_number(&cause.to_string())) {
        if !says(&text, &cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Returns whether a message already has the text of its cause, or the start of it: `no such file` says
/// `No such file or directory`.
fn says(message: &str, cause: &str) -> bool {
    let (message, cause) = (message.to_lowercase(), cause.to_lowercase());
    let last = message.rsplit(": ").next().unwrap_or_default();
    // Where it failed is said after it.
    let last = last.split(" at byte ").next().unwrap_or_default();
    message.contains(&cause) || (!last.is_empty() && cause.starts_with(last))
}

/// Returns a text without the numbers of errors of the system: `Permission denied (os error 13)`.
fn without_number(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                kept.push_str(rest);
            }
            _ => {
                kept.push_str(" (os error ");
                kept.push_str(part);
            }
        }
    }
    kept
}

impl From<&transcript_session::Error> for Failure {
    fn from(error: &transcript_session::Error) -> Self {
        Self {
            offset: error.offset(),
            retryable: error.is_retryable(),
            ..Self::new(error.kind().name(), message_of(error))
        }
        .at(error.path())
    }
}

impl From<transcript_session::Error> for Failure {
    fn from(error: transcript_session::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&transcript_reader::Error> for Failure {
    fn from(error: &transcript_reader::Error) -> Self {
        Self {
            offset: error.offset(),
            retryable: error.is_retryable(),
            ..Self::new("unreadable", message_of(error))
        }
        .at(error.path())
    }
}

impl From<transcript_reader::Error> for Failure {
    fn from(error: transcript_reader::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&transcript_archive::Error> for Failure {
    fn from(error: &transcript_archive::Error) -> Self {
        use transcript_archive::ErrorKind;
        let kind = match error.kind() {
            ErrorKind::NoArchive => "not-found",
            ErrorKind::Exists(_) | ErrorKind::IdInUse(_) => "exists",
            ErrorKind::Busy => "busy",
            ErrorKind::Encrypted
            | ErrorKind::WrongKey
            | ErrorKind::OtherRecipients
            | ErrorKind::NoLocalFolder
            | ErrorKind::NotAKey
            | ErrorKind::NoEncryption => "bad-identity",
            ErrorKind::LowSpace { .. } => "full",
            ErrorKind::Io => "io",
            _ => "unreadable",
        };
        Self {
            retryable: error.is_retryable(),
            ..Self::new(kind, message_of(error))
        }
        .at(error.path())
    }
}

impl From<transcript_render::Error> for Failure {
    fn from(error: transcript_render::Error) -> Self {
        match error {
            transcript_render::Error::Session(error) => error.into(),
            error => Self::new("io", message_of(&error)),
        }
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
            next: None,
            names_option: false,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new("io", message_of(&error))
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new("bad-record", error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::*;

    #[test]
    fn a_cause_is_said_once_and_without_the_number_of_the_system() {
        let path = Path::new("/w/s.jsonl");
        // ENOENT and EACCES, as the system numbers them.
        for (number, kind) in [(2, "no such file"), (13, "permission denied")] {
            let cause = io::Error::from_raw_os_error(number);
            let error = transcript_reader::Error::io(path, Some(7), cause);
            let failure = Failure::from(error);
            assert_eq!(failure.message, format!("/w/s.jsonl: {kind} at byte 7"));
            assert_eq!(failure.offset, Some(7));
            assert_eq!(failure.path.as_deref(), Some("/w/s.jsonl"));
        }
        let cause = io::Error::from_raw_os_error(5);
        let failure = Failure::from(transcript_reader::Error::io(path, None, cause));
        let (start, cause) = failure
            .message
            .split_at("/w/s.jsonl: cannot be read: ".len());
        assert_eq!(start, "/w/s.jsonl: cannot be read: ");
        assert!(!cause.is_empty() && !cause.contains("os error"), "{cause}");
        assert_eq!(
            without_number("a (os error 13): b (os error x)"),
            "a: b (os error x)"
        );
    }
}
