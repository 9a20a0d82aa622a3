//! Errors of the writer.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::named;

/// The reason why an entry was not acknowledged. Nothing of it is in the file, with two exceptions: the error
/// [reports a part](Self::left_a_part), or a sync failed, after which the entry is in the file and
/// in a [rescue file](crate::Writer::rescue).
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    path: PathBuf,
    offset: Option<u64>,
    source: Option<Arc<io::Error>>,
    is_final: bool,
    left_a_part: bool,
}

named! {
    /// The kind of a failure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ErrorKind {
        /// The file does not exist, and the caller did not ask to create it.
        NotFound = "not-found": "no such file",
        /// Opening or writing the file is not permitted.
        NotAllowed = "not-allowed": "writing is not allowed; check the permissions of the file and its folder",
        /// The path is not a regular file, or the file has several names or belongs to another user;
        /// the source of the error is the reason.
        NotAFile = "not-a-file": "not a file that can be appended to",
        /// Another process writes to the session, or holds its lock for too long.
        Busy = "busy": "it is open for writing elsewhere, in this or another process; try again when it is closed",
        /// Another process writes to the session, and the caller asked for a fork in that case.
        Fork = "fork": "another process writes to it; continue in a fork",
        /// The file is not the one that was read: it is shorter, or has other bytes.
        Changed = "changed": "not the file that was read; read it again",
        /// The file was deleted, moved or replaced, so new bytes would not be found under its name. The
        /// writer accepts no more entries.
        Replaced = "replaced": "deleted, moved or replaced while it was open; reopen the file",
        /// The file became shorter than the bytes written to it. The writer accepts no more entries.
        Shrunk = "shrunk": "became shorter while it was open; reopen the file",
        /// No space, no quota, or a limit on the size of files.
        Full = "full": "no space left for the entry",
        /// The system failed to write.
        Io = "io": "cannot be written",
        /// The bytes from the offset of the error on were written but may not survive a power cut. The
        /// writer accepts no more entries; [`Writer::rescue`](crate::Writer::rescue) returns the
        /// saved entries.
        SyncFailed = "sync-failed": "sync failed, written bytes may be lost in a power cut; reopen the file",
        /// The entry is not valid: not a JSON object, without a type, or readers would treat it as
        /// damage or display it differently; see [`Draft::entry`](crate::Draft::entry). The length
        /// limit is checked when the line is written, with the fields that are filled in.
        InvalidEntry = "invalid-entry": "not an entry that readers accept: a JSON object with a type, on a line of 64 MiB at \
                 most, without NUL characters or unpaired surrogates",
        /// The entry names a parent that is not in the file.
        UnknownParent = "unknown-parent": "the entry names a parent that is not in the file; append the parent first",
        /// The entry has a result for a call that the conversation does not have: its id is that of
        /// no call, or the conversation left the call by a rewind or a compaction.
        UnknownCall = "unknown-call": "the entry has a result for a call that is not in the conversation; give the `id` of \
                 the call as `tool_use_id`",
        /// The entry has a result for a call that has one.
        AnsweredCall = "answered-call": "the entry has a result for a call that has a result already; write what \
                 happened later as a message",
        /// The file holds an entry with the same uuid.
        RepeatedUuid = "repeated-uuid": "the file already has an entry with this uuid",
        /// The file has no such entry to preserve or to go back to.
        UnknownEntry = "unknown-entry": "the file has no such entry",
        /// The entry is not the last one of the conversation.
        NotTheLeaf = "not-the-leaf": "the entry is not the last one of the conversation; rewind to it first",
        /// The writer was closed.
        Closed = "closed": "the writer was closed; open the file again",
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

    pub(crate) fn with_partial_write(mut self) -> Self {
        self.left_a_part = true;
        self
    }

    /// Marks the error as permanent: the same call would fail again.
    pub(crate) fn permanent(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// Returns the kind of error.
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

    /// Returns whether a part of the entry is in the file: the system did not write all of it and
    /// did not allow truncating the part. The part is truncated before the next write, or stays as
    /// a damaged line.
    #[must_use]
    pub fn left_a_part(&self) -> bool {
        self.left_a_part
    }

    /// Returns whether the same call on the same writer may succeed later.
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
            f.write_str("; a part of it is in the file and could not be truncated")?;
        } else if matches!(self.kind, ErrorKind::Full) {
            f.write_str("; the file is unchanged")?;
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
