//! The reason why one file was not put in the place of another one.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::file::Metadata;
use crate::new_file::NewFile;

/// A replacement that this process may make: it has the lock of the file, so that no other process replaces it, or appends
/// to it through this crate.
pub trait Replace: fmt::Debug {
    /// Gives `new` the name. The old file, which must still be as `read` says, gets `.before-repair` appended to its name,
    /// and a number if that name is taken. Returns its path.
    ///
    /// # Errors
    /// [`ExchangeError`]. With [`Stopped`](ExchangeError::Stopped) both files are there, and it says where. With any
    /// other the old file has its name, and the new one is gone; with [`LeftOver`](ExchangeError::LeftOver) the new one
    /// is under a temporary name, which the next call removes.
    fn put(self: Box<Self>, new: NewFile, read: &Metadata) -> Result<PathBuf, ExchangeError>;
}

/// The reason why a file was not replaced; it is unchanged then, except as [`Stopped`](Self::Stopped) says.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExchangeError {
    /// A process has the file open for writing, or holds its lock.
    Busy,
    /// Another process replaces the file now.
    Replacing,
    /// This process, a client, has registered the session of the file and runs.
    Running(u32),
    /// The file is not the one that was read, or it has changed since.
    Changed,
    /// There is no earlier file to restore.
    NothingToUndo,
    /// The system cannot exchange two files, or does not say whether a process writes.
    Unsupported,
    /// Something failed after the names were exchanged. Nothing was removed.
    Stopped {
        /// The file that has the name now.
        state: ExchangeState,
        /// The path of the other one.
        other: PathBuf,
        /// The first error.
        error: Box<ExchangeError>,
    },
    /// The file is unchanged, but its copy cannot be removed; the next call removes it.
    LeftOver {
        /// The path of the copy.
        left: PathBuf,
        /// The first error.
        error: Box<ExchangeError>,
    },
    /// The system failed.
    Io(io::Error),
}

/// The file that has the name after an exchange was not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeState {
    /// The new file; the old one is whole under the other name.
    Exchanged,
    /// The old file, again. The new one is under the other name, and a process may have appended to it.
    RolledBack,
    /// It cannot be seen: the files are under the name and under the other one.
    Unknown,
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => write!(f, "a process has the file open for writing"),
            Self::Replacing => write!(
                f,
                "another process repairs it, or undoes a repair; try again when it is done"
            ),
            Self::Running(process) => write!(f, "process {process} runs it; end it first"),
            Self::Changed => write!(f, "the file has changed since it was read"),
            Self::NothingToUndo => write!(f, "there is no earlier file to restore"),
            Self::Unsupported => write!(
                f,
                "this system cannot exchange two files, or does not say whether a process writes to one"
            ),
            Self::Stopped {
                state,
                other,
                error,
            } => {
                let other = other.display();
                match state {
                    ExchangeState::Exchanged => write!(
                        f,
                        "it was replaced, and then something failed ({error}); the file that had the name before is \
                         whole: {other}"
                    ),
                    ExchangeState::RolledBack => write!(
                        f,
                        "it was replaced for a moment and is the old file again ({error}); what a process appended \
                         meanwhile may be only in {other}"
                    ),
                    ExchangeState::Unknown => write!(
                        f,
                        "something failed while it was replaced ({error}); nothing was removed, and one of the two files \
                         is {other}"
                    ),
                }
            }
            Self::LeftOver { left, error } => write!(
                f,
                "{error}; {} cannot be removed, and the next repair does that",
                left.display()
            ),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExchangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Stopped { error, .. } | Self::LeftOver { error, .. } => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl ExchangeError {
    /// Returns whether the file has the name that it had: nothing but the error is to be reported.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        !matches!(self, Self::Stopped { .. })
    }
}
