//! The traits of open files, and the properties of files.

use std::fmt::Debug;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that is open for reading. It may be used from several threads.
pub trait ReadFile: Debug + Send + Sync {
    /// Reads at `offset`; returns 0 at the end. At most one system call, which is not repeated.
    ///
    /// # Errors
    /// When the system fails to read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Fills `buffer` from `offset` on. Returns the number of bytes read, which is smaller than the
    /// buffer only at the end of the file.
    ///
    /// # Errors
    /// When the system fails to read.
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_at(offset + done as u64, &mut buffer[done..]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Returns the properties of the file as they are now.
    ///
    /// # Errors
    /// When the system fails.
    fn metadata(&self) -> io::Result<Metadata>;
}

/// Reads an open file from its start on, as the standard library reads.
#[derive(Debug)]
pub struct Reader {
    file: Arc<dyn ReadFile>,
    at: u64,
}

impl Reader {
    /// Reads `file`.
    #[must_use]
    pub fn new(file: Arc<dyn ReadFile>) -> Self {
        Self { file, at: 0 }
    }

    /// Returns the properties of the file as they are now.
    ///
    /// # Errors
    /// When the system fails.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Reader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket, a device, or something that the system does not name.
    Other,
}

/// The properties of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The kind of the file.
    pub kind: FileKind,
    /// The length in bytes.
    pub len: u64,
    /// The time of the last change of the content, where the system reports it.
    pub modified: Option<SystemTime>,
    /// The time of the last change of the content or of a property, where the system reports it (Unix).
    /// Other than `modified` it cannot be set.
    pub changed: Option<SystemTime>,
    /// The permissions: the lower 12 bits of the mode (Unix).
    pub mode: Option<u32>,
    /// The identity of the file.
    pub identity: Identity,
}

impl Metadata {
    /// Returns the properties of a folder on a disk that keeps only files. It has no identity.
    #[must_use]
    pub fn of_folder_in_memory() -> Self {
        Self {
            kind: FileKind::Folder,
            len: 0,
            modified: None,
            changed: None,
            mode: None,
            identity: Identity::UNKNOWN,
        }
    }

    /// Returns whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == FileKind::File
    }

    /// Returns whether it is a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.kind == FileKind::Folder
    }
}

/// Identifies a file independent of its name: no two files have the same identity at the same time.
///
/// Each disk has its own identities. On a file system the identity is that of [the file](Self::of_file), and stays the same when
/// the file changes. A store that replaces whole objects has the [version](Self::of_version) of an object, which is another one
/// after each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity(IdentityKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum IdentityKind {
    Unknown,
    File {
        /// The device, and the number of the file on it.
        number: Option<(u64, u64)>,
        /// A new file may get the number of a deleted one; the time distinguishes them.
        created: Option<SystemTime>,
    },
    Version([u8; 32]),
}

impl Identity {
    /// The identity of something that the disk does not identify, such as a folder on a disk that keeps only files.
    pub const UNKNOWN: Self = Self(IdentityKind::Unknown);

    /// Returns the identity of a file of a file system: the device and the number of the file on it (Unix: the inode), and the
    /// time of its creation, where the system reports these.
    #[must_use]
    pub fn of_file(number: Option<(u64, u64)>, created: Option<SystemTime>) -> Self {
        match (number, created) {
            (None, None) => Self::UNKNOWN,
            _ => Self(IdentityKind::File { number, created }),
        }
    }

    /// Returns the identity of a version of an object: a hash of its name and of the version in the words of the store, such as an
    /// entity tag.
    #[must_use]
    pub fn of_version(hash: [u8; 32]) -> Self {
        Self(IdentityKind::Version(hash))
    }

    /// Returns whether the disk says which file it is.
    #[must_use]
    pub fn is_known(&self) -> bool {
        *self != Self::UNKNOWN
    }

    /// Returns the device and the number of a [file](Self::of_file), for what keeps them.
    #[must_use]
    pub fn number(&self) -> Option<(u64, u64)> {
        match self.0 {
            IdentityKind::File { number, .. } => number,
            IdentityKind::Unknown | IdentityKind::Version(_) => None,
        }
    }

    /// Returns the identity as bytes, which are equal if the identities are, also in another process. For hashes: a time
    /// of creation outside of the years 1970 to 2554 is as if there were none.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 33] {
        let mut bytes = [0; 33];
        match self.0 {
            IdentityKind::Unknown => {}
            IdentityKind::File { number, created } => {
                let (device, number) = number.unwrap_or_default();
                let created = created.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let created = created.and_then(|since| u64::try_from(since.as_nanos()).ok());
                bytes[0] = 1;
                bytes[1..9].copy_from_slice(&device.to_le_bytes());
                bytes[9..17].copy_from_slice(&number.to_le_bytes());
                bytes[17..25].copy_from_slice(&created.unwrap_or_default().to_le_bytes());
            }
            IdentityKind::Version(hash) => {
                bytes[0] = 2;
                bytes[1..].copy_from_slice(&hash);
            }
        }
        bytes
    }
}

/// A file that is open for appending.
///
/// Every call is at most one system call that can fail, and none retries, because the caller decides
/// how to handle a failure. All of them may be called from several threads.
pub trait File: ReadFile {
    /// Writes at the end of the file, in one write; returns how many bytes were written, which may
    /// be fewer.
    ///
    /// # Errors
    /// When nothing was written, as far as the system reports.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns the offset after the bytes that the last [`append`](Self::append) wrote.
    ///
    /// The default implementation returns the length of the file, which is correct only while no
    /// other process writes.
    ///
    /// # Errors
    /// When the system fails.
    fn position(&self) -> io::Result<u64> {
        self.status().map(|status| status.len)
    }

    /// Truncates the file to `len` bytes.
    ///
    /// # Errors
    /// When the system refuses; the file is unchanged.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes the bytes and the length of the file survive a power cut.
    ///
    /// # Errors
    /// When they may not survive. A later success does not cover the bytes of a failed call: the
    /// system may have dropped them.
    fn sync(&self) -> io::Result<()>;

    /// Returns the length of the file, and whether it still has a name.
    ///
    /// # Errors
    /// When the system fails.
    fn status(&self) -> io::Result<Status>;

    /// Returns the identity of the file.
    ///
    /// # Errors
    /// When the system fails.
    fn identity(&self) -> io::Result<Identity> {
        Ok(self.metadata()?.identity)
    }

    /// Takes the lock on the file if it is free; returns false otherwise. The lock is advisory and
    /// released when the process ends.
    ///
    /// # Errors
    /// When the system fails.
    fn try_lock(&self) -> io::Result<bool>;

    /// Releases the lock.
    ///
    /// # Errors
    /// When the system fails.
    fn unlock(&self) -> io::Result<()>;
}

/// The properties of an open file that are cheap to query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The length in bytes.
    pub len: u64,
    /// Whether the file still has a name; false after it was deleted or replaced.
    pub is_linked: bool,
}

/// Returns whether an error says that nothing has the name. Every other one leaves open whether a file is there.
#[must_use]
pub fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Returns the folder of a path: `.` for a name alone.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn identities_of_different_files_and_versions_differ_also_as_bytes() {
        let time = |nanos| Some(UNIX_EPOCH + Duration::from_nanos(nanos));
        let all = [
            Identity::UNKNOWN,
            Identity::of_file(Some((0, 1)), None),
            Identity::of_file(Some((1, 0)), None),
            Identity::of_file(Some((1, 0)), time(1)),
            Identity::of_file(None, time(2)),
            Identity::of_version([0; 32]),
            Identity::of_version([1; 32]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(one.is_known(), at > 0);
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(one == other, at == other_at);
                assert_eq!(one.to_bytes() == other.to_bytes(), at == other_at);
            }
        }
        assert_eq!(Identity::of_file(None, None), Identity::UNKNOWN);
        assert_eq!(all[3].number(), Some((1, 0)));
        assert_eq!(all[5].number(), None);
    }
}
