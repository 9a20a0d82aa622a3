//! The sessions of other agents: their home folders, as roots.
//!
//! On [`SessionsDisk`] each session in a home folder is a file of our own format. Without the feature `import` there are no
//! home folders, and every disk is as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use transcript_storage::{
    Disk, Entries, ExchangeError, File, Identity, LocalDisk, Metadata, NewFile, Opened, ReadDisk,
    ReadFile, Replace, Reporter, SessionLayout, Space,
};

use crate::failure::Failure;

#[cfg(feature = "import")]
mod imported;
#[cfg(not(feature = "import"))]
mod none;

#[cfg(feature = "import")]
pub use imported::Homes;
#[cfg(feature = "import")]
pub(crate) use imported::{check_name, is_home, sessions_in_database};
#[cfg(not(feature = "import"))]
pub use none::Homes;
#[cfg(not(feature = "import"))]
pub(crate) use none::{check_name, is_home, sessions_in_database};

/// The name of Claude Code among the agents.
pub const CLAUDE_CODE: &str = "claude-code";

/// A disk on which the sessions of other agents are files as well. It changes none of them.
#[derive(Clone, Debug)]
pub struct SessionsDisk<D: ?Sized> {
    disk: Arc<D>,
    homes: Arc<Homes>,
}

impl<D: ?Sized> SessionsDisk<D> {
    /// Shows the sessions in these home folders, and everything else as it is on `disk`.
    #[must_use]
    pub fn new(disk: Arc<D>, homes: Arc<Homes>) -> Self {
        Self { disk, homes }
    }
}

impl<D: ReadDisk + ?Sized> SessionsDisk<D> {
    /// Returns the disk that has a path: that of an agent if one of its sessions is there.
    fn on<T>(
        &self,
        path: &Path,
        of_agent: impl FnOnce(&dyn ReadDisk) -> io::Result<T>,
        other: impl FnOnce(&D) -> io::Result<T>,
    ) -> io::Result<T> {
        match self.homes.disk_at(path) {
            Some(disk) => of_agent(&*disk),
            None => other(&self.disk),
        }
    }
}

impl<D: ReadDisk + ?Sized> ReadDisk for SessionsDisk<D> {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.on(
            path,
            |agent| agent.open_to_read(path),
            |disk| disk.open_to_read(path),
        )
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        self.on(folder, |agent| agent.list(folder), |disk| disk.list(folder))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.on(
            path,
            |agent| agent.metadata(path),
            |disk| disk.metadata(path),
        )
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        Some(self)
    }

    fn layout(&self) -> SessionLayout {
        self.disk.layout()
    }

    fn reporter(&self) -> Reporter {
        // Changes of sessions of other agents are not reported: all files are polled.
        if self.homes.is_empty() {
            return self.disk.reporter();
        }
        Reporter::Unavailable
    }
}

impl<D: ReadDisk + ?Sized> LocalDisk for SessionsDisk<D> {
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.on(
            path,
            |agent| agent.metadata(path),
            |disk| disk.link_metadata(path),
        )
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.on(
            path,
            |agent| agent.real_path(path),
            |disk| disk.real_path(path),
        )
    }
}

impl<D: Disk + ?Sized> SessionsDisk<D> {
    /// Returns the disk to change a file on, unless it is a session of another agent. Folders of the agent itself are folders as any other.
    fn to_change(&self, path: &Path) -> io::Result<&D> {
        match self.homes.maker_at(path) {
            Some(maker) if !self.disk.is_folder(path) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, why_not(maker)))
            }
            _ => Ok(&self.disk),
        }
    }
}

impl<D: Disk + ?Sized> Disk for SessionsDisk<D> {
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened> {
        self.to_change(path)?.open(path, create)
    }

    fn open_cache(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.disk.open_cache(path)
    }

    fn running_client(&self, path: &Path) -> Option<u32> {
        self.disk.running_client(path)
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        match self.homes.disk_at(path) {
            Some(disk) => disk.metadata(path).map(|found| Some(found.identity)),
            None => self.disk.identity(path),
        }
    }

    fn sync_name(&self, path: &Path) -> io::Result<()> {
        self.to_change(path)?.sync_name(path)
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.to_change(path)?.write_new(path, bytes)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.to_change(from)?;
        self.to_change(to)?.rename_new(from, to)
    }

    fn new_file(&self, path: &Path) -> io::Result<NewFile> {
        self.to_change(path)?.new_file(path)
    }

    fn remove_stale(&self, folder: &Path) {
        self.disk.remove_stale(folder);
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.to_change(from)?;
        self.to_change(to)?.link(from, to)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.to_change(folder)?.sync_folder(folder)
    }

    fn set_properties(
        &self,
        path: &Path,
        modified: Option<SystemTime>,
        mode: Option<u32>,
    ) -> io::Result<()> {
        self.to_change(path)?.set_properties(path, modified, mode)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.to_change(path)?.create_folder(path)
    }

    fn create_new_folder(&self, path: &Path, mode: Option<u32>) -> io::Result<()> {
        self.to_change(path)?.create_new_folder(path, mode)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.to_change(path)?.remove_folder(path)
    }

    fn remove_folder_with_content(&self, path: &Path) -> io::Result<()> {
        self.to_change(path)?.remove_folder_with_content(path)
    }

    fn begin_replacement(&self, path: &Path) -> Result<Box<dyn Replace>, ExchangeError> {
        match self.to_change(path) {
            Ok(disk) => disk.begin_replacement(path),
            Err(_) => Err(ExchangeError::Unsupported),
        }
    }

    fn finish_replacement(&self, path: &Path) -> Result<(), ExchangeError> {
        match self.to_change(path) {
            Ok(disk) => disk.finish_replacement(path),
            Err(_) => Ok(()),
        }
    }

    fn undo_replacement(&self, path: &Path) -> Result<PathBuf, ExchangeError> {
        match self.to_change(path) {
            Ok(disk) => disk.undo_replacement(path),
            Err(_) => Err(ExchangeError::Unsupported),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.to_change(path)?.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.to_change(from)?;
        self.to_change(to)?.rename(from, to)
    }

    fn space(&self, folder: &Path) -> io::Result<Option<Space>> {
        self.to_change(folder)?.space(folder)
    }
}

fn why_not(maker: &str) -> String {
    format!("it is a session of {maker}, whose files only {maker} changes")
}

/// Returns the failure of a command that would change a session of another agent.
#[must_use]
pub fn not_changed(maker: &str, path: &Path) -> Failure {
    Failure::new("not-own", why_not(maker)).at(path).with_next(
        "`transcript resume --request` and `transcript export` read it without changing it",
    )
}
