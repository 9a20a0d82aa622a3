//! The file system of this machine.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::changes::Reporter;
use crate::disk::{DirEntry, Entries, LocalDisk, ReadDisk};
use crate::file::{File, FileKind, Metadata, ReadFile, Status};
use crate::sys;

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
                kind: entry.file_type().map_or(FileKind::Other, sys::kind),
                // One more system call for each name.
                metadata: None,
            })
        })))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(sys::metadata(&fs::metadata(path)?))
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        Some(self)
    }

    fn reporter(&self) -> Reporter {
        Reporter::System
    }
}

impl LocalDisk for RealDisk {
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(sys::metadata(&fs::symlink_metadata(path)?))
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }
}

/// A file that is open for appending.
#[derive(Debug)]
struct RealFile(fs::File);

impl RealFile {
    /// Opens a file of a cache.
    fn cache(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut options = fs::OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path).map(Self)
    }
}

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
        sys::status(&self.0)
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
