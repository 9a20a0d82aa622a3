//! Errors of opening and using a session.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use transcript_resume::Refusal;
use transcript_storage::ExchangeError;

use crate::entry_match::EntryMatch;

/// The error of an operation. Names the file and never quotes the content of an entry.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: PathBuf,
    source: Option<Source>,
}

#[derive(Debug)]
enum Source {
    Reader(transcript_reader::Error),
    Writer(transcript_writer::Error),
    Io(io::Error),
    Entry(transcript_writer::InvalidEntry),
    Candidates(Vec<PathBuf>),
    Matches(Vec<EntryMatch>),
    Exchange(ExchangeError),
    Refusal(&'static str),
    LeftOver(Box<LeftOver>),
}

/// An error, and the paths that were created before it and cannot be removed.
#[derive(Debug)]
struct LeftOver {
    error: Error,
    paths: Vec<PathBuf>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The session cannot be read.
    Read(transcript_reader::ErrorKind),
    /// Writing failed. Nothing was written, except after a failed sync: see
    /// [`transcript_writer::Error`].
    Write(transcript_writer::ErrorKind),
    /// A client would not continue the session.
    NotResumable(Refusal),
    /// The store has no session with that id, or only empty files.
    NoSuchSession,
    /// Several sessions have an id with that prefix: see [`Error::candidates`].
    Ambiguous,
    /// The text cannot be a session id, or is shorter than 4 characters.
    NotAnId,
    /// The session has no entry with that uuid or prefix, and none in that line.
    NoSuchEntry,
    /// Several entries have a uuid with that prefix, or are in that line: see [`Error::entries`].
    AmbiguousEntry,
    /// The entries that a compaction is to preserve contain a call without its result, or a result
    /// without its call.
    SplitPair,
    /// The entry is before a compaction that preserved entries: a child of it would appear after
    /// the preserved entries (COMPACT-7). To go back to it, fork the session at the entry.
    BeforeCompaction,
    /// A session already exists at that path.
    Exists,
    /// A copy of the session cannot be written.
    Fork,
    /// The new folder is the old one, or is below it.
    BelowItself,
    /// The two files are not of one session: neither their ids nor any entry are the same.
    OtherSession,
    /// Side files of the two sessions differ: see [`Error::candidates`].
    SideFiles,
    /// A repair was refused: it could not be proved, or the file must not be replaced now. Nothing
    /// was changed.
    RepairRefused,
    /// A repaired session cannot be written.
    Repair,
    /// A repair, or its undo, failed after the names were exchanged. Nothing was removed; the message says where both
    /// files are.
    RepairStopped,
    /// This system, or this file system, cannot replace a file safely; a copy can be written.
    /// Nothing was changed.
    CannotReplace,
    /// The file is on another disk, such as an archive, where nothing is replaced.
    NotHere,
    /// The title or the tag has no visible character.
    Blank,
    /// A file of a session cannot be deleted.
    Delete,
    /// A side file of a session cannot be written.
    SideFile,
    /// The session is as new as its other files, or these have nothing that it does not have.
    NothingToSalvage,
}

impl ErrorKind {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read(_) => "unreadable",
            Self::Write(kind) => kind.name(),
            Self::NotResumable(_) => "not-resumable",
            Self::NoSuchSession => "not-found",
            Self::Ambiguous => "ambiguous",
            Self::NotAnId => "not-an-id",
            Self::NoSuchEntry => "unknown-entry",
            Self::AmbiguousEntry => "ambiguous",
            Self::SplitPair => "split-pair",
            Self::BeforeCompaction => "behind-compaction",
            Self::Exists => "exists",
            Self::Fork => "fork-failed",
            Self::BelowItself => "below-itself",
            Self::OtherSession => "other-session",
            Self::SideFiles => "side-files",
            Self::RepairRefused => "repair-refused",
            Self::Repair => "repair-failed",
            Self::RepairStopped => "repair-stopped",
            Self::CannotReplace => "cannot-replace",
            Self::NotHere => "not-here",
            Self::Blank => "blank",
            Self::Delete => "delete-failed",
            Self::SideFile => "side-file-failed",
            Self::NothingToSalvage => "nothing-to-salvage",
        }
    }
}

impl Error {
    /// Makes an error of a file, or of the folder that was searched.
    #[must_use]
    pub fn new(kind: ErrorKind, path: &Path) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            source: None,
        }
    }

    /// Names the files that match.
    #[must_use]
    pub fn ambiguous(root: &Path, candidates: Vec<PathBuf>) -> Self {
        Self {
            source: Some(Source::Candidates(candidates)),
            ..Self::new(ErrorKind::Ambiguous, root)
        }
    }

    pub(crate) fn ambiguous_entry(path: &Path, matches: Vec<EntryMatch>) -> Self {
        Self {
            source: Some(Source::Matches(matches)),
            ..Self::new(ErrorKind::AmbiguousEntry, path)
        }
    }

    /// Names the side files of two sessions that differ.
    #[must_use]
    pub fn side_files(out: &Path, files: Vec<PathBuf>) -> Self {
        Self {
            source: Some(Source::Candidates(files)),
            ..Self::new(ErrorKind::SideFiles, out)
        }
    }

    #[cfg(feature = "async")]
    pub(crate) fn closed(path: &Path) -> Self {
        Self::new(ErrorKind::Write(transcript_writer::ErrorKind::Closed), path)
    }

    pub(crate) fn entry(path: &Path, source: transcript_writer::InvalidEntry) -> Self {
        let kind = ErrorKind::Write(transcript_writer::ErrorKind::InvalidEntry);
        Self {
            source: Some(Source::Entry(source)),
            ..Self::new(kind, path)
        }
    }

    /// Says that the system failed while something was done to the file at `path`.
    #[must_use]
    pub fn io(kind: ErrorKind, path: &Path, mut source: io::Error) -> Self {
        // A new file that is not found has no folder: `No such file` would seem to be about the file.
        let is_new = matches!(kind, ErrorKind::Fork | ErrorKind::Repair);
        if is_new && source.kind() == io::ErrorKind::NotFound {
            let folder = path.parent().unwrap_or(path).display();
            let text = format!("the folder {folder} does not exist");
            source = io::Error::new(io::ErrorKind::NotFound, text);
        }
        Self {
            source: Some(Source::Io(source)),
            ..Self::new(kind, path)
        }
    }

    /// As [`io`](Self::io) for what gives a new file its name: the name may be taken.
    #[must_use]
    pub fn placing(kind: ErrorKind, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AlreadyExists => Self::new(ErrorKind::Exists, path),
            _ => Self::io(kind, path, source),
        }
    }

    /// Says that a repaired session cannot be written.
    #[must_use]
    pub fn repair(path: &Path, source: io::Error) -> Self {
        Self::io(ErrorKind::Repair, path, source)
    }

    /// The error of a refused repair.
    #[must_use]
    pub fn repair_refused(path: &Path, reason: &'static str) -> Self {
        Self {
            source: Some(Source::Refusal(reason)),
            ..Self::new(ErrorKind::RepairRefused, path)
        }
    }

    /// The error of a file that was not replaced.
    #[must_use]
    pub fn exchange(path: &Path, source: ExchangeError) -> Self {
        match source {
            ExchangeError::Io(source) => Self::repair(path, source),
            source => {
                let kind = match source {
                    ExchangeError::Unsupported => ErrorKind::CannotReplace,
                    ExchangeError::Stopped { .. } => ErrorKind::RepairStopped,
                    ExchangeError::LeftOver { .. } => ErrorKind::Repair,
                    _ => ErrorKind::RepairRefused,
                };
                Self {
                    source: Some(Source::Exchange(source)),
                    ..Self::new(kind, path)
                }
            }
        }
    }

    /// Names the files that were created and cannot be removed.
    #[must_use]
    pub fn with_left_over(self, paths: Vec<PathBuf>) -> Self {
        if paths.is_empty() {
            return self;
        }
        Self {
            kind: self.kind,
            path: self.path.clone(),
            source: Some(Source::LeftOver(Box::new(LeftOver { error: self, paths }))),
        }
    }

    /// Returns the kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the file, or the folder that was searched.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the byte offset of the read that failed.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match &self.source {
            Some(Source::Reader(error)) => error.offset(),
            Some(Source::LeftOver(left)) => left.error.offset(),
            _ => None,
        }
    }

    /// Returns whether the same call may succeed later without a change by the caller.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match &self.source {
            Some(Source::LeftOver(left)) => left.error.is_retryable(),
            Some(Source::Reader(error)) => error.is_retryable(),
            Some(Source::Writer(error)) => error.is_retryable(),
            Some(Source::Io(error)) => {
                matches!(
                    error.kind(),
                    io::ErrorKind::StorageFull | io::ErrorKind::Interrupted
                )
            }
            Some(Source::Exchange(error)) => {
                matches!(
                    error,
                    ExchangeError::Busy | ExchangeError::Replacing | ExchangeError::Changed
                )
            }
            Some(
                Source::Entry(_) | Source::Candidates(_) | Source::Matches(_) | Source::Refusal(_),
            )
            | None => false,
        }
    }

    /// Returns the matching files of an [ambiguous](ErrorKind::Ambiguous) look-up, or the
    /// [side files](ErrorKind::SideFiles) that differ, sorted; empty for any other error.
    #[must_use]
    pub fn candidates(&self) -> &[PathBuf] {
        match &self.source {
            Some(Source::Candidates(candidates)) => candidates,
            Some(Source::LeftOver(left)) => left.error.candidates(),
            _ => &[],
        }
    }

    /// Returns the file that lost its name to a repair that [stopped](ErrorKind::RepairStopped) after it; `None` for any
    /// other error.
    #[must_use]
    pub fn other_file(&self) -> Option<&Path> {
        match &self.source {
            Some(Source::Exchange(ExchangeError::Stopped { other, .. })) => Some(other),
            _ => None,
        }
    }

    /// Returns the entries that an [ambiguous](ErrorKind::AmbiguousEntry) name matches, in file order;
    /// empty for any other error.
    #[must_use]
    pub fn entries(&self) -> &[EntryMatch] {
        match &self.source {
            Some(Source::Matches(matches)) => matches,
            _ => &[],
        }
    }

    /// Returns the writer's own error, if it is one.
    #[must_use]
    pub fn as_writer(&self) -> Option<&transcript_writer::Error> {
        match &self.source {
            Some(Source::Writer(error)) => Some(error),
            _ => None,
        }
    }
}

impl From<transcript_reader::Error> for Error {
    fn from(error: transcript_reader::Error) -> Self {
        Self {
            kind: ErrorKind::Read(error.kind()),
            path: error.path().to_owned(),
            source: Some(Source::Reader(error)),
        }
    }
}

impl From<transcript_writer::Error> for Error {
    fn from(error: transcript_writer::Error) -> Self {
        Self {
            kind: ErrorKind::Write(error.kind()),
            path: error.path().to_owned(),
            source: Some(Source::Writer(error)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (&self.source, self.kind) {
            // These errors already name the file.
            (Some(Source::Reader(error)), _) => return error.fmt(f),
            (Some(Source::Writer(error)), _) => return error.fmt(f),
            (Some(Source::LeftOver(left)), _) => {
                left.error.fmt(f)?;
                let mut paths = left.paths.iter();
                return paths.try_for_each(|path| {
                    write!(f, "; {} is left over and cannot be removed", path.display())
                });
            }
            (Some(Source::Entry(error)), _) => {
                return write!(f, "{}: {error}", self.path.display());
            }
            (Some(Source::Exchange(error)), _) => {
                return write!(f, "{}: {error}", self.path.display());
            }
            (Some(Source::Refusal(reason)), _) => reason,
            (_, ErrorKind::NotResumable(refusal)) => refusal.reason(),
            (_, ErrorKind::NoSuchSession) => "no project has this session",
            (_, ErrorKind::Ambiguous) => "several sessions match this id",
            (_, ErrorKind::NotAnId) => {
                "not a session id: give at least its first 4 characters; only letters, digits, `-` and `_`"
            }
            (_, ErrorKind::NoSuchEntry) => {
                "no such entry: give the number of its line, or at least the first 4 characters of its uuid"
            }
            (_, ErrorKind::AmbiguousEntry) => "several entries match",
            (_, ErrorKind::SplitPair) => {
                "the preserved entries contain only one of a tool call and its result; preserve both or neither"
            }
            (_, ErrorKind::BeforeCompaction) => {
                "the entry is before a compaction with preserved entries; fork the session there"
            }
            (_, ErrorKind::Exists) => "the session already exists; open or resume it",
            (_, ErrorKind::Fork) => "the copy of the session cannot be written",
            (_, ErrorKind::BelowItself) => "the new folder is the old one or below it",
            (_, ErrorKind::OtherSession) => "not a copy of the same session",
            (_, ErrorKind::SideFiles) => "side files of the two sessions differ",
            (_, ErrorKind::NotHere) => {
                "it is not on the disk of this machine, where it could be replaced"
            }
            (_, ErrorKind::CannotReplace) => "this system cannot replace a file safely",
            (_, ErrorKind::RepairRefused) => "the session must not be replaced now",
            (_, ErrorKind::Repair) => "the repaired session cannot be written",
            (_, ErrorKind::RepairStopped) => "the names were exchanged, and then something failed",
            (_, ErrorKind::Blank) => "the title or the tag has no visible character",
            (_, ErrorKind::Delete) => "cannot be deleted",
            (_, ErrorKind::SideFile) => "cannot be written",
            (_, ErrorKind::NothingToSalvage) => {
                "nothing to salvage: no other file of the session has more than it"
            }
            (_, ErrorKind::Read(_)) => "cannot be read",
            (_, ErrorKind::Write(kind)) => kind.words(),
        };
        write!(f, "{}: {text}", self.path.display())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.source.as_ref()? {
            // The message of these errors is part of ours, so the source is their own source.
            Source::Reader(error) => std::error::Error::source(error),
            Source::Writer(error) => std::error::Error::source(error),
            Source::Io(error) => Some(error),
            Source::LeftOver(left) => left.error.source(),
            Source::Entry(_)
            | Source::Candidates(_)
            | Source::Matches(_)
            | Source::Exchange(_)
            | Source::Refusal(_) => None,
        }
    }
}
