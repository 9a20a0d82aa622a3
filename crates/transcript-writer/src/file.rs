//! Everything that the writer asks of a file system.
//!
//! The real one is in `sys`; tests put fakes and fault injectors in its place, and drive the same
//! code.

use std::fmt::Debug;
use std::io;
use std::path::Path;

pub use crate::new_file::NewFile;

/// An open session file.
///
/// Every call is at most one system call that can fail, and none retries: what to do about a
/// failure is for the log to decide. All of them may be called from several threads.
pub trait File: Debug + Send + Sync {
    /// Writes at the end of the file, in one write; returns how many bytes were taken, which may be
    /// fewer.
    ///
    /// # Errors
    /// When nothing of it was written, as far as the system says.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns the offset behind the bytes that the last [`append`](Self::append) took.
    ///
    /// # Errors
    /// When the system fails. By default this is the length of the file, which is the same while
    /// nobody else writes.
    fn position(&self) -> io::Result<u64> {
        self.status().map(|status| status.len)
    }

    /// Reads from `offset` on; 0 at the end.
    ///
    /// # Errors
    /// When the system fails to read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// When the system refuses; the file is as it was.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes the bytes and the length of the file survive a power cut.
    ///
    /// # Errors
    /// When they may not. A later success says nothing about the bytes of a failed call: the system
    /// may have dropped them.
    fn sync(&self) -> io::Result<()>;

    /// Returns the length, and whether a name still leads to the file.
    ///
    /// # Errors
    /// When the system fails.
    fn status(&self) -> io::Result<Status>;

    /// Returns which file it is.
    ///
    /// # Errors
    /// When the system fails.
    fn identity(&self) -> io::Result<Identity>;

    /// Takes the lock on the file if nobody else has it. It is advisory and released when the
    /// process dies.
    ///
    /// # Errors
    /// When the system fails; `Ok(false)` when another has it.
    fn try_lock(&self) -> io::Result<bool>;

    /// Gives the lock back.
    ///
    /// # Errors
    /// When the system fails.
    fn unlock(&self) -> io::Result<()>;
}

/// What is cheap to ask of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its length in bytes.
    pub len: u64,
    /// Whether a name still leads to it; false after it was deleted or replaced.
    pub is_linked: bool,
}

/// Which file a name or a handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device.
    pub device: u64,
    /// The file on it.
    pub file: u64,
}

/// A place with files.
pub trait Disk: Debug + Send + Sync {
    /// Opens the file at `path` for appending.
    ///
    /// Refuses what is not a regular file of the caller with one name, and symbolic links. With
    /// `create` a missing file is made, readable by its owner alone, and its name made to survive a
    /// power cut, as are folders that had to be made for it.
    ///
    /// # Errors
    /// When the system fails, or the file is not one to append to; as
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) while another process asks who writes to the file,
    /// which takes it microseconds.
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened>;

    /// Returns which file stands at `path`; `None` when there is none.
    ///
    /// # Errors
    /// When the system fails.
    fn identity(&self, path: &Path) -> io::Result<Option<Identity>>;

    /// Makes the name `path` survive a power cut.
    ///
    /// # Errors
    /// When it may not.
    fn sync_name(&self, path: &Path) -> io::Result<()>;

    /// Writes a new file that only its owner can read, and makes it survive a power cut, as folders
    /// that had to be made for it. At every moment the name leads to all of it or to nothing.
    ///
    /// # Errors
    /// When there is such a file, or the system fails; then nothing is left of it.
    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Takes the name away from a file.
    ///
    /// # Errors
    /// When the system fails.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Gives the file at `from` the name `to`, in place of what is there, and makes that survive a
    /// power cut. At every moment `to` is the one or the other.
    ///
    /// # Errors
    /// When the system fails; the name may be the new one already.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
}

/// An opened file.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: std::sync::Arc<dyn File>,
    /// Whether it was made just now.
    pub is_new: bool,
    /// Whether another process had it open for writing right before; `None` when the system cannot
    /// tell.
    pub has_other_writer: Option<bool>,
    /// Whether it is on a network or in user space, where locks and appends may not hold.
    pub is_remote: bool,
    /// Whether its mode lets other users write to it.
    pub others_may_write: bool,
}
