//! The reason why a file cannot be read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An I/O failure, or a file that is not a transcript. Damage inside of a file is not an error.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: PathBuf,
    offset: Option<u64>,
    source: Option<io::Error>,
}

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file does not exist.
    NotFound,
    /// Permission to open or read the file is denied.
    NotAllowed,
    /// The path is a directory, a pipe, a device or a socket.
    NotAFile,
    /// The file is in another format, with the name of that format.
    OtherFormat(&'static str),
    /// Any other I/O error.
    Io,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, path: &Path) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            offset: None,
            source: None,
        }
    }

    /// Creates an error from an I/O error on `path`, with the byte offset if it is known.
    #[must_use]
    pub fn io(path: &Path, offset: Option<u64>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => ErrorKind::NotAllowed,
            _ => ErrorKind::Io,
        };
        Self {
            kind,
            path: path.to_owned(),
            offset,
            source: Some(source),
        }
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the byte offset of the read that failed.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Returns whether the same call may succeed later without any change by the caller.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.source.as_ref().is_some_and(|source| {
            matches!(
                source.kind(),
                // `WouldBlock`: another process holds a lease on the file and is asked to drop it.
                io::ErrorKind::Interrupted | io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
            )
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match self.kind {
            ErrorKind::NotFound => write!(f, "no such file")?,
            ErrorKind::NotAllowed => write!(f, "permission denied")?,
            ErrorKind::NotAFile => write!(f, "not a regular file")?,
            ErrorKind::OtherFormat(name) => write!(f, "not a transcript but {name}")?,
            ErrorKind::Io => write!(f, "cannot be read")?,
        }
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_blocked_by_a_lease_is_retryable_and_a_missing_file_is_not() {
        let error = |kind| Error::io(Path::new("a.jsonl"), None, io::Error::from(kind));
        let leased = error(io::ErrorKind::WouldBlock);
        assert!(leased.is_retryable());
        assert_eq!(leased.kind(), ErrorKind::Io);
        assert!(!error(io::ErrorKind::NotFound).is_retryable());
        assert!(!error(io::ErrorKind::PermissionDenied).is_retryable());
    }
}
