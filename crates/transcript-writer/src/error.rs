//! Why an entry was not written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why an entry was not acknowledged. Nothing of it is in the file, unless the error
/// [says so](Self::left_a_part), and but for a failed sync, after which it is there and in a
/// [rescue file](crate::Writer::rescue).
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    path: PathBuf,
    offset: Option<u64>,
    source: Option<Arc<io::Error>>,
    is_final: bool,
    left_a_part: bool,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such file, and it was not to be made.
    NotFound,
    /// Opening or writing it is not allowed.
    NotAllowed,
    /// The path is no regular file with one name, or not the caller's: the source of the error says
    /// which.
    NotAFile,
    /// Another process writes to the session, or holds its lock for too long.
    Busy,
    /// Another process writes to the session, and the caller wanted to go on in a fork then.
    Fork,
    /// The file is not the one that was read before: shorter, or with other bytes.
    Changed,
    /// The file was deleted, moved or replaced. Bytes would go where nobody looks; the writer takes
    /// no more.
    Replaced,
    /// The file became shorter than what was written to it. The writer takes no more.
    Shrunk,
    /// No space, no quota, or a limit on the size of files.
    Full,
    /// The system failed to write.
    Io,
    /// Bytes may not survive a power cut, though they were written: those from the offset of the error
    /// on. The writer takes no more; [`Writer::rescue`](crate::Writer::rescue) says what was saved.
    SyncFailed,
    /// The entry is not one: no JSON object, no type, or what readers would take for damage or show
    /// otherwise; see [`Draft::entry`](crate::Draft::entry). A line that is longer than readers take
    /// when it is filled in is refused when it is written.
    InvalidEntry,
    /// The entry names a parent that is not in the file.
    UnknownParent,
    /// The file holds an entry with the same uuid.
    RepeatedUuid,
    /// The file holds no such entry to keep or to go back to.
    UnknownEntry,
    /// The entry is not the last one of the conversation.
    NotTheLeaf,
    /// The writer was closed.
    Closed,
}

impl ErrorKind {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not-found",
            Self::NotAllowed => "not-allowed",
            Self::NotAFile => "not-a-file",
            Self::Busy => "busy",
            Self::Fork => "fork",
            Self::Changed => "changed",
            Self::Replaced => "replaced",
            Self::Shrunk => "shrunk",
            Self::Full => "full",
            Self::Io => "io",
            Self::SyncFailed => "sync-failed",
            Self::InvalidEntry => "invalid-entry",
            Self::UnknownParent => "unknown-parent",
            Self::RepeatedUuid => "repeated-uuid",
            Self::UnknownEntry => "unknown-entry",
            Self::NotTheLeaf => "not-the-leaf",
            Self::Closed => "closed",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::NotFound => "no such file",
            Self::NotAllowed => "writing is not allowed",
            Self::NotAFile => "not a file to append to",
            Self::Busy => "another process writes to it",
            Self::Fork => "another process writes to it; go on in a fork",
            Self::Changed => "not the file that was read; read it again",
            Self::Replaced => "deleted, moved or replaced while it was open; open it again",
            Self::Shrunk => "became shorter while it was open; open it again",
            Self::Full => "no space for the entry",
            Self::Io => "cannot be written",
            Self::SyncFailed => "written bytes may not survive a power cut; open it again",
            Self::InvalidEntry => {
                "not an entry that readers take: a JSON object with a type, on a line of 64 MiB at \
                 most, without NUL characters and halves of surrogate pairs"
            }
            Self::UnknownParent => "the entry names a parent that is not in the file",
            Self::RepeatedUuid => "the file holds an entry with the same uuid",
            Self::UnknownEntry => "the file holds no such entry",
            Self::NotTheLeaf => {
                "the entry is not the last one of the conversation; rewind to it first"
            }
            Self::Closed => "the writer was closed",
        }
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, path: &Path) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            offset: None,
            source: None,
            is_final: false,
            left_a_part: false,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ErrorKind::NotAllowed
            }
            io::ErrorKind::InvalidInput => ErrorKind::NotAFile,
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => ErrorKind::Full,
            _ => ErrorKind::Io,
        };
        Self {
            source: Some(Arc::new(source)),
            ..Self::new(kind, path)
        }
    }

    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    pub(crate) fn because(mut self, source: io::Error) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    pub(crate) fn with_a_part(mut self) -> Self {
        self.left_a_part = true;
        self
    }

    /// It will be the same next time.
    pub(crate) fn for_good(mut self) -> Self {
        self.is_final = true;
        self
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

    /// Returns the byte offset in the file, or in an entry that is not valid.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// Returns whether a part of the entry is in the file: the system neither took all of it nor let the
    /// part be cut off again. It is cut off before the next write, or stays as a damaged line.
    #[must_use]
    pub fn left_a_part(&self) -> bool {
        self.left_a_part
    }

    /// Returns whether the same call on the same writer may work later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let may_pass = matches!(self.kind, ErrorKind::Busy | ErrorKind::Full | ErrorKind::Io);
        may_pass && !self.is_final
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.kind.words())?;
        if self.left_a_part {
            f.write_str("; a part of it is left in the file, and could not be cut off")?;
        } else if matches!(self.kind, ErrorKind::Full) {
            f.write_str("; nothing of it was kept")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " (byte {offset})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
