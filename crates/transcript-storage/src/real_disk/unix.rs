//! Writing on Unix.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::{RealDisk, RealFile};
use crate::clients::Client;
#[cfg(target_os = "linux")]
use crate::disk::Space;
use crate::disk::{Disk, Opened};
use crate::exchange::{Replacement, finish_exchange, undo};
use crate::exchange_error::{ExchangeError, Replace};
use crate::fault;
use crate::file::File;
use crate::new_file::NewFile;
use crate::sys::{
    Access, create_at, has_writer, is_remote, make_folders, open_at, rename_without_replacing,
    set_modified, sync_folder,
};

impl Disk for RealDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened> {
        // Checked before we open the file for writing ourselves, because our own handle would count
        // too.
        let (is_new, has_other_writer) = match open_at(path, Access::Read) {
            Ok((file, _)) => (false, has_writer(&file)),
            Err(error) if create && error.kind() == io::ErrorKind::NotFound => (true, Some(true)),
            Err(error) => return Err(error),
        };
        let made = if is_new { create_at(path)? } else { None };
        let is_new = made.is_some();
        let (file, others_may_write) = match made {
            Some(file) => (file, false),
            None => open_at(path, Access::Append)?,
        };
        // The process that created the file in between has it open.
        let has_other_writer = if is_new {
            Some(false)
        } else {
            has_other_writer
        };
        let is_remote = is_remote(&file);
        Ok(Opened {
            file: Arc::new(RealFile(file)),
            is_new,
            has_other_writer,
            is_remote,
            others_may_write,
        })
    }

    fn open_cache(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(RealFile::cache(path)?))
    }

    fn running_client(&self, path: &Path) -> Option<u32> {
        Client::of_session(self, path).running
    }

    fn sync_name(&self, path: &Path) -> io::Result<()> {
        sync_folder(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        sync_folder(to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        make_folders(to)?;
        rename_without_replacing(from, to)?;
        sync_folder(to)
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

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        fault::call(|| fs::File::open(folder)?.sync_all())
    }

    fn set_properties(
        &self,
        path: &Path,
        modified: Option<SystemTime>,
        mode: Option<u32>,
    ) -> io::Result<()> {
        // The time first: a file without the permission to read cannot be opened for that.
        if let Some(modified) = modified {
            set_modified(path, modified)?;
        }
        if let Some(mode) = mode {
            fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o7777))?;
        }
        Ok(())
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        make_folders(&path.join("file"))
    }

    fn create_new_folder(&self, path: &Path, mode: Option<u32>) -> io::Result<()> {
        fs::create_dir(path)?;
        self.set_properties(path, None, mode)
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
        make_folders(path)?;
        let mut file = NewFile::beside(path)?;
        file.write_sparse(bytes)?;
        file.keep(path)
    }

    #[cfg(target_os = "linux")]
    fn space(&self, folder: &Path) -> io::Result<Option<Space>> {
        let found = rustix::fs::statvfs(folder)?;
        Ok(Some(Space {
            free: found.f_bavail.saturating_mul(found.f_frsize),
            total: found.f_blocks.saturating_mul(found.f_frsize),
        }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}
