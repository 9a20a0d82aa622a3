//! The files of a new session.

use std::path::{Path, PathBuf};

/// The files of a new session, by their paths in the home folder of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The file with the conversation.
    pub main: PathBuf,
    /// What must be there before it, so that the client finds it.
    pub before: Vec<Extra>,
    /// What is added when it is there.
    pub after: Vec<Extra>,
}

/// What a client keeps of a session outside of the file with the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extra {
    /// A small file. If it exists, it stays as it is.
    File {
        /// Its path.
        path: PathBuf,
        /// Its content.
        text: String,
    },
    /// A line at the end of a file, which may exist.
    Line {
        /// The path of the file.
        path: PathBuf,
        /// The line, without its end.
        line: String,
    },
    /// A string in an object that is a member of the object in a file. If it is there, it stays as it is.
    Member {
        /// The path of the file.
        path: PathBuf,
        /// The key of the inner object.
        object: &'static str,
        /// The key of the string.
        key: String,
        /// The string.
        value: String,
    },
}

impl Extra {
    /// Returns the path of the file, in the home folder of the client.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::File { path, .. } | Self::Line { path, .. } | Self::Member { path, .. } => path,
        }
    }
}

/// A file that a hand-over writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path on the disk.
    pub path: PathBuf,
    /// The number of bytes that are written, or by which it gets longer.
    pub bytes: u64,
    /// Whether there was no such file.
    pub is_new: bool,
}
