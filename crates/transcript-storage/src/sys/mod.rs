//! The file system of this machine.
//!
//! The only module of the crate with `unsafe`: system calls that the standard library does not
//! have.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
#[cfg(unix)]
use std::time::{Duration, UNIX_EPOCH};

use crate::disk::{
    DirEntry, Entries, File, FileKind, Identity, Metadata, ReadDisk, ReadFile, Status,
};

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub use platform::{ignore_file_size_signal, reports_changes};
#[cfg(target_os = "linux")]
pub(crate) use unix::{Access, Lease, is_unknown_flag, open_at};
#[cfg(unix)]
pub(crate) use unix::{refuse_public_folder, rename_without_replacing, set_mode, sync_folder};

/// The file system of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl ReadDisk for RealDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // Opening a pipe for reading would wait for a writer.
            options.custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        }
        Ok(Arc::new(options.open(path)?))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let entries = fs::read_dir(folder)?;
        Ok(Box::new(entries.map(|entry| {
            let entry = entry?;
            Ok(DirEntry {
                name: entry.file_name(),
                kind: entry.file_type().map_or(FileKind::Other, kind),
            })
        })))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(metadata(&fs::metadata(path)?))
    }

    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(metadata(&fs::symlink_metadata(path)?))
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }
}

impl ReadFile for fs::File {
    #[cfg(unix)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(metadata(&Self::metadata(self)?))
    }
}

/// A file that is open for appending.
#[derive(Debug)]
struct RealFile(fs::File);

impl ReadFile for RealFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        ReadFile::metadata(&self.0)
    }
}

impl File for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    #[cfg(unix)]
    fn position(&self) -> io::Result<u64> {
        // With O_APPEND each write moves the position of the handle to the end of that write.
        io::Seek::stream_position(&mut &self.0)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn status(&self) -> io::Result<Status> {
        platform::status(&self.0)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

/// Sets the time of the last change of a file or folder, which need not be writable.
fn set_modified(path: &Path, modified: SystemTime) -> io::Result<()> {
    set_modified_of(&fs::File::open(path)?, modified)
}

/// Sets the time of the last change. That of the last access is set, too, to what it is: many file systems in user space
/// report success for a change of one of them alone, and do nothing.
pub(crate) fn set_modified_of(file: &fs::File, modified: SystemTime) -> io::Result<()> {
    let accessed = file.metadata()?.accessed().unwrap_or(modified);
    let times = fs::FileTimes::new().set_accessed(accessed);
    file.set_times(times.set_modified(modified))
}

fn metadata(found: &fs::Metadata) -> Metadata {
    #[cfg(unix)]
    let (number, changed, mode) = {
        use std::os::unix::fs::MetadataExt;
        let seconds = u64::try_from(found.ctime()).ok().map(Duration::from_secs);
        let nanos = u64::try_from(found.ctime_nsec())
            .ok()
            .map(Duration::from_nanos);
        let since = seconds.zip(nanos).map(|(seconds, nanos)| seconds + nanos);
        let changed = since.and_then(|since| UNIX_EPOCH.checked_add(since));
        (
            Some((found.dev(), found.ino())),
            changed,
            Some(found.mode() & 0o7777),
        )
    };
    // The standard library has no stable file id for Windows; the creation time replaces it.
    #[cfg(not(unix))]
    let (number, changed, mode) = (None, None, None);
    Metadata {
        kind: kind(found.file_type()),
        len: found.len(),
        modified: found.modified().ok(),
        changed,
        mode,
        identity: Identity {
            number,
            created: found.created().ok(),
        },
    }
}

fn kind(of: fs::FileType) -> FileKind {
    if of.is_file() {
        FileKind::File
    } else if of.is_dir() {
        FileKind::Folder
    } else if of.is_symlink() {
        FileKind::Link
    } else {
        FileKind::Other
    }
}
