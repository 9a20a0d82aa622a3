//! Writing on Windows: append access and a lock on the whole file. Never run yet (see
//! `docs/durability.md`).

use std::fs;
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::{RealDisk, RealFile};
use crate::clients::Client;
use crate::disk::{Disk, Opened};
use crate::exchange::{Replacement, finish_exchange, undo};
use crate::exchange_error::{ExchangeError, Replace};
use crate::file::File;
use crate::new_file::NewFile;
use crate::sys::set_modified;

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

    fn open_cache(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile::cache(path)?))
    }

    fn running_client(&self, path: &Path) -> Option<u32> {
        Client::of_session(self, path).running
    }

    fn sync_name(&self, _path: &Path) -> io::Result<()> {
        // Folders cannot be synced here; the file system makes names durable itself.
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::hard_link(from, to)?;
        fs::remove_file(from)
    }

    fn new_file(&self, path: &Path) -> io::Result<NewFile> {
        NewFile::beside(path)
    }

    fn remove_stale(&self, folder: &Path) {
        NewFile::remove_stale(folder);
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        // Folders cannot be synced here; the file system makes names durable itself.
        Ok(())
    }

    fn set_properties(
        &self,
        path: &Path,
        modified: Option<SystemTime>,
        _mode: Option<u32>,
    ) -> io::Result<()> {
        modified.map_or(Ok(()), |modified| set_modified(path, modified))
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create_new_folder(&self, path: &Path, _mode: Option<u32>) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        crate::folders::remove_folder(path)
    }

    fn remove_folder_with_content(&self, path: &Path) -> io::Result<()> {
        crate::folders::remove_folder_with_content(path)
    }

    fn begin_replacement(&self, path: &Path) -> Result<Box<dyn Replace>, ExchangeError> {
        Ok(Box::new(Replacement::begin(path)?))
    }

    fn finish_replacement(&self, path: &Path) -> Result<(), ExchangeError> {
        finish_exchange(path)
    }

    fn undo_replacement(&self, path: &Path) -> Result<PathBuf, ExchangeError> {
        undo(path)
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
