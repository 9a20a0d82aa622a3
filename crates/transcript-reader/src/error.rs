//! Why a file cannot be read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An I/O failure or a file that cannot be a transcript. Damage inside of a file is no error.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: PathBuf,
    offset: Option<u64>,
    source: Option<io::Error>,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such file.
    NotFound,
    /// Opening or reading it is not allowed.
    NotAllowed,
    /// The path is a directory, a pipe, a device or a socket.
    NotAFile,
    /// The file starts like another format; the name of it.
    OtherFormat(&'static str),
    /// The system failed to read.
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

    /// Says what the system said of `path`, at a byte offset where it is known.
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

    /// Returns what went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the byte offset of the read that failed.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Returns whether the same call may work later without any change by the caller.
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
            ErrorKind::NotAllowed => write!(f, "reading is not allowed")?,
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
    fn an_open_that_a_lease_holds_up_may_be_tried_again_and_a_missing_file_not() {
        let error = |kind| Error::io(Path::new("a.jsonl"), None, io::Error::from(kind));
        let leased = error(io::ErrorKind::WouldBlock);
        assert!(leased.is_retryable());
        assert_eq!(leased.kind(), ErrorKind::Io);
        assert!(!error(io::ErrorKind::NotFound).is_retryable());
        assert!(!error(io::ErrorKind::PermissionDenied).is_retryable());
    }
}
