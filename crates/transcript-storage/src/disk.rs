//! The traits of disks and files.
//!
//! The real ones are in `sys`; tests replace them by fakes and fault injectors and run the same
//! code.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

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

/// A file system to read from. Nothing is locked and nothing is written.
pub trait ReadDisk: Debug + Send + Sync {
    /// Opens `path` for reading. Links are followed. Opening a pipe does not wait for a writer: the
    /// caller looks at the [kind](Metadata::kind) of what was opened.
    ///
    /// # Errors
    /// When the system fails.
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// Returns the entries of a folder, in no order.
    ///
    /// # Errors
    /// When there is no such folder, or the system fails; each entry may fail, too.
    fn list(&self, folder: &Path) -> io::Result<Entries>;

    /// Returns the properties of what is at `path`. Links are followed.
    ///
    /// # Errors
    /// When nothing is there, or the system fails.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Returns the properties of what is at `path`, which may be those of a link.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Returns the absolute path, with all symbolic links resolved.
    ///
    /// # Errors
    /// When nothing is at `path`, or the system fails.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf>;

    /// Returns whether a folder is at `path`. Links are followed. For who copies or moves what is in it: a folder that cannot be
    /// looked at is an error and not a missing one.
    ///
    /// # Errors
    /// When the system fails.
    fn has_folder(&self, path: &Path) -> io::Result<bool> {
        match self.metadata(path) {
            Err(error) if is_absent(&error) => Ok(false),
            found => Ok(found?.is_folder()),
        }
    }

    /// Returns whether `path` is a folder, as far as that can be seen. Links are followed.
    fn is_folder(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|found| found.is_folder())
    }

    /// Reads a small file, at most its first `most` bytes.
    ///
    /// # Errors
    /// When the system fails.
    fn read(&self, path: &Path, most: usize) -> io::Result<Vec<u8>> {
        let file = self.open_to_read(path)?;
        let len = usize::try_from(file.metadata()?.len).map_or(most, |len| len.min(most));
        let mut bytes = vec![0; len];
        let read = file.fill(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// Returns whether an error says that nothing has the name. Every other one says nothing about what is there.
#[must_use]
pub fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// The entries of a folder, in no order.
pub type Entries = Box<dyn Iterator<Item = io::Result<DirEntry>>>;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name in the folder.
    pub name: OsString,
    /// What it is. Links are not followed.
    pub kind: FileKind,
}

/// What a path leads to.
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
    /// What it is.
    pub kind: FileKind,
    /// The length in bytes.
    pub len: u64,
    /// The time of the last change of the content, where the system reports it.
    pub modified: Option<SystemTime>,
    /// The time of the last change of the content or of a property, where the system reports it (Unix).
    /// Other than `modified` it cannot be set.
    pub changed: Option<SystemTime>,
    /// Who may read, write and execute it: the lower 12 bits of the mode (Unix).
    pub mode: Option<u32>,
    /// Which file it is.
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
            identity: Identity {
                number: None,
                created: None,
            },
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
/// A new file may get the number of a deleted one; where the system reports the creation time, it
/// distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device and the number of the file on it (Unix: the inode), on systems that have them.
    pub number: Option<(u64, u64)>,
    /// The time of creation, where the system reports it.
    pub created: Option<SystemTime>,
}

impl Identity {
    /// Returns whether the disk says which file it is. The folders of a disk that keeps only files, such as an archive,
    /// have no identity.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.number.is_some() || self.created.is_some()
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

/// A file system to read from and to write to.
///
/// Only an archive needs the methods with a default, which refuses.
pub trait Disk: ReadDisk {
    /// Opens the file at `path` for reading and appending.
    ///
    /// Refuses symbolic links, and anything but a regular file that has one name and belongs to the
    /// caller. With `create`, creates a missing file, accessible to its owner only; its name, and
    /// any folders created for it, survive a power cut.
    ///
    /// # Errors
    /// When the system fails, or the file cannot be appended to; as
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) while another process checks for writers of the
    /// file, which takes microseconds.
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened>;

    /// Returns the number of a process that runs the session at `path` and opens the file only for each
    /// write ([`Client::running`](crate::Client::running)).
    fn running_client(&self, path: &Path) -> Option<u32> {
        let _ = path;
        None
    }

    /// Returns the identity of the file or symbolic link at `path`, without following the link;
    /// `None` when nothing has that name.
    ///
    /// # Errors
    /// When the system fails.
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        match self.link_metadata(path) {
            Ok(found) => Ok(Some(found.identity)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the name `path` survive a power cut.
    ///
    /// # Errors
    /// When it may not.
    fn sync_name(&self, path: &Path) -> io::Result<()>;

    /// Writes a new file that only its owner can access, and makes it and any folders created for
    /// it survive a power cut. At every moment the name refers to the complete file or does not
    /// exist.
    ///
    /// # Errors
    /// When the file exists, or the system fails; nothing of the new file is left then.
    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Renames the file at `from` to `to`, a name that no file has, and makes the change survive a power
    /// cut. Folders that `to` needs are created, and accessible to their owner only.
    ///
    /// # Errors
    /// As [`AlreadyExists`](io::ErrorKind::AlreadyExists) when something has the name; when the system
    /// fails, and then the file may have the new name all the same.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sets the time of the last change of the content and, on systems that have one, the mode of a file
    /// or folder.
    ///
    /// # Errors
    /// When the system refuses.
    fn set_properties(
        &self,
        path: &Path,
        modified: Option<SystemTime>,
        mode: Option<u32>,
    ) -> io::Result<()> {
        let _ = (path, modified, mode);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Creates a folder that only its owner can access, and those above it. It may exist.
    ///
    /// # Errors
    /// When the system fails.
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// When it is not empty, or the system fails.
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes the name of a file.
    ///
    /// # Errors
    /// When the system fails.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Renames the file at `from` to `to`, replaces a file that has that name, and makes the change
    /// survive a power cut. At every moment `to` is the old or the new file.
    ///
    /// # Errors
    /// When the system fails; the rename may have happened all the same.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns how much room the file system of a folder has; `None` when the system does not say.
    ///
    /// # Errors
    /// When the system fails.
    fn space(&self, folder: &Path) -> io::Result<Option<Space>> {
        let _ = folder;
        Ok(None)
    }

    /// Writes a small file that only its owner can access, in place of the one at `path`, by way of `new` next to it, a name
    /// that no file has. A crash leaves one or the other, complete. On return it survives a power cut.
    ///
    /// # Errors
    /// When the system fails; the file may be replaced all the same.
    fn replace(&self, path: &Path, new: &Path, bytes: &[u8]) -> io::Result<()> {
        self.write_new(new, bytes)?;
        self.rename(new, path).inspect_err(|_| {
            // If the rename did happen, there is nothing to remove.
            let _ = self.remove(new);
        })
    }
}

/// The room of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What this process may still write, in bytes.
    pub free: u64,
    /// All of it, in bytes.
    pub total: u64,
}

/// An opened file.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: Arc<dyn File>,
    /// Whether the file was created by this call.
    pub is_new: bool,
    /// Whether another process had it open for writing right before; `None` when the system cannot
    /// report that.
    pub has_other_writer: Option<bool>,
    /// Whether it is on a network or user-space file system, where locks and appends may not work.
    pub is_remote: bool,
    /// Whether its mode allows other users to write to it.
    pub others_may_write: bool,
}

/// Returns the folder of a path: `.` for a name alone.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}
