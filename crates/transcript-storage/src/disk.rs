//! Everything that is needed of a file system.
//!
//! The real one is in `sys`; tests replace it by fakes and fault injectors and run the same code.

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// An open session file.
///
/// Every call is at most one system call that can fail, and none retries, because the log decides
/// how to handle a failure. All of them may be called from several threads.
pub trait File: Debug + Send + Sync {
    /// Writes at the end of the file, in one write; returns how many bytes were written, which may
    /// be fewer.
    ///
    /// # Errors
    /// When nothing was written, as far as the system reports.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns the offset after the bytes that the last [`append`](Self::append) wrote.
    ///
    /// # Errors
    /// When the system fails. By default this is the length of the file, which is the same as long
    /// as no other process writes.
    fn position(&self) -> io::Result<u64> {
        self.status().map(|status| status.len)
    }

    /// Reads at `offset`; returns 0 at the end.
    ///
    /// # Errors
    /// When the system fails to read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

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
    fn identity(&self) -> io::Result<Identity>;

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

/// Identifies a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The number of the file on the device.
    pub file: u64,
}

/// A file system.
pub trait Disk: Debug + Send + Sync {
    /// Opens the file at `path` for appending.
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

    /// Returns the identity of the file at `path`; `None` when there is none.
    ///
    /// # Errors
    /// When the system fails.
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>>;

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
}

/// An opened file.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: std::sync::Arc<dyn File>,
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
