//! Windows: append access and a lock on the whole file. Never run yet (see `docs/durability.md`).

use std::fs;
use std::io::{self, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use super::RealDisk;
use crate::disk::{Disk, File, Metadata, Opened, ReadFile, Status};
use crate::new_file::NewFile;

/// Other processes may read, write and delete the file while we have it open.
const SHARE_ALL: u32 = 1 | 2 | 4;

impl Disk for RealDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened> {
        if create && let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let is_new = !path.exists();
        let file = fs::OpenOptions::new()
            .read(true)
            .append(true)
            .create(create)
            .share_mode(SHARE_ALL)
            .open(path)?;
        if !file.metadata()?.is_file() || fs::symlink_metadata(path)?.is_symlink() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Opened {
            file: Arc::new(RealFile(file)),
            is_new,
            has_other_writer: None,
            is_remote: false,
            others_may_write: false,
        })
    }

    fn sync_name(&self, _path: &Path) -> io::Result<()> {
        // Folders cannot be synced here; the file system makes names durable itself.
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = NewFile::beside(path)?;
        file.write_sparse(bytes)?;
        file.keep(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

/// Does nothing, because Windows does not have this signal.
pub fn ignore_file_size_signal() {}

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

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn status(&self) -> io::Result<Status> {
        Ok(Status {
            len: self.0.metadata()?.len(),
            is_linked: true,
        })
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
