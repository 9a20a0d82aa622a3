//! The traits of disks.
//!
//! The real one is `RealDisk`; tests replace it by fakes and fault injectors and run the same
//! code.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::changes::Reporter;
use crate::exchange_error::{ExchangeError, Replace};
use crate::file::{File, FileKind, Identity, Metadata, ReadFile, is_absent};
use crate::new_file::NewFile;
use crate::session_layout::SessionLayout;

/// A disk that can be read: files by their paths, and lists of them. Nothing is locked and nothing is written.
///
/// A remote store, an archive or a disk in memory has these operations and no more. Links, and the real paths that they lead
/// to, exist only on a file system and are in [`LocalDisk`]; on other disks each name leads to itself.
pub trait ReadDisk: Debug + Send + Sync {
    /// Opens `path` for reading. Links are followed. Opening a pipe does not wait for a writer: the
    /// caller looks at the [kind](Metadata::kind) of the opened file.
    ///
    /// # Errors
    /// When the system fails.
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// Opens a file for reading, as [`open_to_read`](Self::open_to_read) does, whose properties a [list](Self::list) of this disk had. A
    /// disk over a network uses them in place of a request, so there a missing file may be found only when it is read.
    ///
    /// # Errors
    /// When the system fails.
    fn open_listed(&self, path: &Path, listed: &Metadata) -> io::Result<Arc<dyn ReadFile>> {
        let _ = listed;
        self.open_to_read(path)
    }

    /// Returns the entries of a folder, in no order.
    ///
    /// # Errors
    /// When there is no such folder, or the system fails; each entry may fail, too.
    fn list(&self, folder: &Path) -> io::Result<Entries>;

    /// Returns the properties of the file or folder at `path`. Links are followed.
    ///
    /// # Errors
    /// When nothing is there, or the system fails.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Returns the properties of the file or folder that an entry of a list at `path` leads to. Links are followed. Asks the disk only for what
    /// is not in the entry.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    fn metadata_of(&self, path: &Path, entry: &DirEntry) -> io::Result<Metadata> {
        match entry.metadata {
            Some(found) if entry.kind != FileKind::Link => Ok(found),
            _ => self.metadata(path),
        }
    }

    /// Returns the links of this disk; `None` on one that has none. A disk that shows another one must have those of the other.
    fn local(&self) -> Option<&dyn LocalDisk>;

    /// Returns where the files of the sessions on this disk are; as the client has them by default. A disk that shows another one
    /// has that of the other, unless it changes it.
    fn layout(&self) -> SessionLayout {
        SessionLayout::CLIENT
    }

    /// Returns the reporter of changes on this disk; [`Reporter::Unavailable`] by default, so that callers poll.
    fn reporter(&self) -> Reporter {
        Reporter::Unavailable
    }

    /// Returns the properties of the file, folder or link at `path`.
    ///
    /// # Errors
    /// As [`metadata`](Self::metadata).
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.local() {
            Some(local) => local.link_metadata(path),
            None => self.metadata(path),
        }
    }

    /// Returns the absolute path, with all symbolic links resolved.
    ///
    /// # Errors
    /// When nothing is at `path`, or the system fails.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        match self.local() {
            Some(local) => local.real_path(path),
            None => self.metadata(path).map(|_| path.to_owned()),
        }
    }

    /// Returns whether a folder is at `path`. Links are followed. For copies and moves of its content: a folder that cannot be
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

    /// Returns whether something is at `path`, as far as that can be seen. Links are followed.
    fn exists(&self, path: &Path) -> bool {
        self.metadata(path).is_ok()
    }

    /// Returns whether something has the name `path`, as far as that can be seen: also a link that leads nowhere.
    fn has_name(&self, path: &Path) -> bool {
        self.link_metadata(path).is_ok()
    }

    /// Returns whether `path` is a regular file, as far as that can be seen. Links are followed.
    fn is_file(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|found| found.is_file())
    }

    /// Returns whether `path` is a folder, as far as that can be seen. Links are followed.
    fn is_folder(&self, path: &Path) -> bool {
        self.metadata(path).is_ok_and(|found| found.is_folder())
    }

    /// Reads a small file, at most its first `max_len` bytes.
    ///
    /// # Errors
    /// When the system fails.
    fn read(&self, path: &Path, max_len: usize) -> io::Result<Vec<u8>> {
        let file = self.open_to_read(path)?;
        let len = usize::try_from(file.metadata()?.len).map_or(max_len, |len| len.min(max_len));
        let mut bytes = vec![0; len];
        let read = file.fill(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Reads a small file, as [`read`](Self::read) does, and the identity of the bytes, for
    /// [`replace_version`](Disk::replace_version).
    ///
    /// # Errors
    /// When the system fails.
    fn read_version(&self, path: &Path, max_len: usize) -> io::Result<(Vec<u8>, Identity)> {
        let identity = self.metadata(path)?.identity;
        Ok((self.read(path, max_len)?, identity))
    }
}

/// The operations of a file system beyond [`ReadDisk`]: symbolic links and real paths.
pub trait LocalDisk {
    /// Returns the properties of the file, folder or link at `path`.
    ///
    /// # Errors
    /// When nothing is there, or the system fails.
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata>;

    /// Returns the absolute path, with all symbolic links resolved.
    ///
    /// # Errors
    /// When nothing is at `path`, or the system fails.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf>;
}

/// The entries of a folder, in no order.
pub type Entries = Box<dyn Iterator<Item = io::Result<DirEntry>>>;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name in the folder.
    pub name: OsString,
    /// Its kind. Links are not followed.
    pub kind: FileKind,
    /// Its properties, where the disk has them at hand: a store to which every question takes a round trip returns them
    /// with the list. [`ReadDisk::metadata_of`] asks for them where it has not.
    pub metadata: Option<Metadata>,
}

/// A file system to read from and to write to.
///
/// The writer of a session needs those methods that have no default. Most defaults refuse, as
/// [`Unsupported`](io::ErrorKind::Unsupported): an archive, and what moves, copies, merges and repairs sessions, needs them.
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

    /// Opens a file of a cache for reading and appending, and creates it if it is missing, accessible to its owner only. It is
    /// looked at less closely than by [`open`](Self::open): whether others write to it is up to its lock, and a crash may lose
    /// it.
    ///
    /// # Errors
    /// As [`InvalidInput`](io::ErrorKind::InvalidInput) when something else than a file has the name, such as a link; when the
    /// folder does not exist, or the system fails.
    fn open_cache(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

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

    /// Starts a new file that gets the name `path`, or another one in the same folder, when it is complete
    /// ([`NewFile::keep`]). Until then nothing has the name, and nothing is left of it after a crash but what
    /// [`remove_stale`](Self::remove_stale) removes.
    ///
    /// # Errors
    /// When the folder does not exist, or everybody may write to it and it is not the caller's; when the system fails.
    fn new_file(&self, path: &Path) -> io::Result<NewFile> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes what killed processes left of [new files](Self::new_file) in a folder. Those of running processes stay.
    fn remove_stale(&self, folder: &Path) {
        let _ = folder;
    }

    /// Gives the file at `from` the name `to` as well, which no file has; its folder exists. A link is not followed. A crash may
    /// lose the new name until [`sync_folder`](Self::sync_folder).
    ///
    /// # Errors
    /// As [`AlreadyExists`](io::ErrorKind::AlreadyExists) when something has the name, as
    /// [`CrossesDevices`](io::ErrorKind::CrossesDevices) when the two are on different file systems; when the system fails.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes the names in a folder survive a power cut, where folders can be synced.
    ///
    /// # Errors
    /// When they may not.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let _ = folder;
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

    /// Creates a folder in one that exists, with `mode`, or that which the system gives. A crash may lose it until
    /// [`sync_folder`](Self::sync_folder) of the one above it.
    ///
    /// # Errors
    /// As [`AlreadyExists`](io::ErrorKind::AlreadyExists) when something has the name; when the system fails, and then the
    /// folder may be there with another mode.
    fn create_new_folder(&self, path: &Path, mode: Option<u32>) -> io::Result<()> {
        let _ = (path, mode);
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

    /// Removes a folder and everything in it. Links in it are removed, and not their targets.
    ///
    /// # Errors
    /// When the system fails; a part may be removed then.
    fn remove_folder_with_content(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes the lock of the file at `path`, so that it can be replaced by one that was made from it, and finishes what a
    /// killed process began.
    ///
    /// # Errors
    /// [`ExchangeError`]; the file is unchanged. [`ExchangeError::Unsupported`] on disks that do not say whether a process
    /// writes to a file.
    fn begin_replacement(&self, path: &Path) -> Result<Box<dyn Replace>, ExchangeError> {
        let _ = path;
        Err(ExchangeError::Unsupported)
    }

    /// Finishes what a killed process began, as [`begin_replacement`](Self::begin_replacement) and
    /// [`undo_replacement`](Self::undo_replacement) do first.
    ///
    /// # Errors
    /// [`ExchangeError::Replacing`] while another process is at it; when the system fails. Then each file is under the name
    /// that it had, or under its final one, and the next call continues.
    fn finish_replacement(&self, path: &Path) -> Result<(), ExchangeError> {
        let _ = path;
        Ok(())
    }

    /// Brings back the file that was replaced last. The one that has the name now gets `.repaired` appended to it, and a
    /// number if that name is taken. Returns its path.
    ///
    /// # Errors
    /// As [`Replace::put`]; [`ExchangeError::NothingToUndo`].
    fn undo_replacement(&self, path: &Path) -> Result<PathBuf, ExchangeError> {
        let _ = path;
        Err(ExchangeError::Unsupported)
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

    /// Writes a small file in place of the one with the identity `known`, or of none, if nothing else has the name. Returns the new
    /// identity; `None` if another program was faster, and then nothing is written. Only where files are objects, whose
    /// [identity](Identity::of_version) is that of their content.
    ///
    /// # Errors
    /// When the system fails; the file may be replaced all the same.
    fn replace_version(
        &self,
        path: &Path,
        known: Option<Identity>,
        bytes: &[u8],
    ) -> io::Result<Option<Identity>> {
        let _ = (path, known, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The free and the total space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// The free space that this process may use, in bytes.
    pub free: u64,
    /// The size of the file system, in bytes.
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
