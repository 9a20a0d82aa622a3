//! Errors of reading or writing an archive.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use transcript_storage::outside_names::NameRefusal;

/// An error of an archive.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: PathBuf,
    source: Option<io::Error>,
    /// The error of removing an incomplete file, which is left behind.
    left: Option<Box<Self>>,
}

/// The kind of an [`Error`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no archive in the folder.
    NoArchive,
    /// The folder has files, and no archive.
    OtherFolder,
    /// The archive was made by a newer version of this program, in this version of the format.
    Newer(u32),
    /// Another process captures or prunes right now.
    Busy,
    /// A file exists where one would be restored: it is the same, longer, or another one.
    Exists(Existing),
    /// The id of the session is already in use, in this file.
    IdInUse(PathBuf),
    /// A part of the archive is damaged or missing, in this way.
    Damaged(String),
    /// The archive is encrypted, and no key was given.
    Encrypted,
    /// No key that was given is one of those that can read the archive.
    WrongKey,
    /// The archive exists, and is encrypted to other keys or to none.
    OtherRecipients,
    /// The archive is encrypted, and there is no folder for what captures must know
    /// ([`ArchiveOptions::local_folder`](crate::ArchiveOptions::local_folder)).
    NoLocalFolder,
    /// The file has no key, or something else.
    NotAKey,
    /// The archive or the key needs the feature `encryption`, without which this was built.
    NoEncryption,
    /// A name in the archive that is not written: captures never make such a one, or its way leads through a link.
    RefusedName(NameRefusal),
    /// No agent has the name, or its sessions are not captured.
    UnknownAgent,
    /// The disk would be left with less than the reserve: the number of free bytes, and the number left to others.
    LowSpace {
        /// The free space, in bytes.
        free: u64,
        /// The space that is left to others, in bytes.
        reserve: u64,
    },
    /// The system failed.
    Io,
}

/// The result of a comparison of an existing file with the file that would be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// It has the archived bytes and more.
    Longer,
    /// It has other bytes.
    Other,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, path: &Path) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            source: None,
            left: None,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self {
            kind: ErrorKind::Io,
            path: path.to_owned(),
            source: Some(source),
            left: None,
        }
    }

    /// Adds that a file of an attempt that failed cannot be removed.
    pub(crate) fn with_left(mut self, left: Self) -> Self {
        self.left = Some(Box::new(left));
        self
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns the file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the same call may succeed later without any change by the caller.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        let of_system = self.source.as_ref().is_some_and(|source| {
            matches!(
                source.kind(),
                io::ErrorKind::Interrupted | io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
            )
        });
        of_system || self.kind == ErrorKind::Busy
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        self.write_kind(f)?;
        match &self.left {
            Some(left) => write!(
                f,
                "; a file is left over, which the next capture removes: {left}"
            ),
            None => Ok(()),
        }
    }
}

impl Error {
    fn write_kind(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::NoArchive => f.write_str(
                "there is no archive; `transcript keep` makes one, `--archive DIR` names another",
            ),
            ErrorKind::OtherFolder => f.write_str(
                "the folder is not empty and has no archive; name an empty folder or a new one",
            ),
            ErrorKind::Newer(version) => write!(
                f,
                "the archive has version {version} of the format, which is newer than this program; update it"
            ),
            ErrorKind::Busy => {
                f.write_str("another process is writing to the archive; try again later")
            }
            ErrorKind::Exists(Existing::Longer) => {
                f.write_str("a longer version of the file exists; nothing was changed")
            }
            ErrorKind::Exists(Existing::Other) => f.write_str(
                "a different file exists; nothing was changed; restore to another folder with --to",
            ),
            ErrorKind::IdInUse(path) => write!(
                f,
                "the session is already at {}; two files with one id cannot be resumed",
                path.display()
            ),
            ErrorKind::Damaged(what) => f.write_str(what),
            ErrorKind::Encrypted => f.write_str(
                "the archive is encrypted; name the file with your key: --identity FILE, or $TRANSCRIPT_IDENTITY",
            ),
            ErrorKind::WrongKey => {
                f.write_str("the archive is encrypted to other keys; name the file with the right one")
            }
            ErrorKind::OtherRecipients => f.write_str(
                "the archive exists, and is encrypted to other keys or not at all; use a new folder",
            ),
            ErrorKind::NoLocalFolder => f.write_str(
                "the archive is encrypted, and there is no folder on this machine for what captures must know",
            ),
            ErrorKind::NotAKey => f.write_str(
                "the file is not one with keys of age; `age-keygen -o FILE` writes one",
            ),
            ErrorKind::NoEncryption => {
                f.write_str("this build has no encryption; the full build of transcript has it")
            }
            ErrorKind::UnknownAgent => {
                f.write_str("the sessions of this agent are not captured")
            }
            ErrorKind::RefusedName(refusal) => write!(f, "{refusal}; it is not restored"),
            ErrorKind::LowSpace { free, reserve } => write!(
                f,
                "the disk has {free} bytes free, and a capture leaves {reserve} to the clients that write sessions; \
                 make room, or move the archive to another disk"
            ),
            ErrorKind::Io => match &self.source {
                Some(source) => write!(f, "{source}"),
                None => f.write_str("the system failed"),
            },
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

/// Names the file in an error of the system.
pub(crate) trait AtPath<T> {
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T> AtPath<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|error| Error::io(path, error))
    }
}
