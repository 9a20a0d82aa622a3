//! Several archives on one disk.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_storage::{Entries, LocalDisk, Metadata, ReadDisk, ReadFile, RealDisk};

use crate::read_disk::ArchiveDisk;

/// The disk of this machine, on which the folder of each of some archives has archived sessions as files.
#[derive(Clone, Debug, Default)]
pub struct ArchiveDisks {
    archives: Vec<Arc<ArchiveDisk>>,
    real: RealDisk,
}

impl ArchiveDisks {
    /// Shows these archives.
    #[must_use]
    pub fn new(archives: Vec<Arc<ArchiveDisk>>) -> Self {
        Self {
            archives,
            real: RealDisk,
        }
    }

    /// Returns the archive to which a path leads.
    fn archive_at(&self, path: &Path) -> Option<&ArchiveDisk> {
        let mut archives = self.archives.iter();
        let archive = archives.find(|archive| archive.inside(path).is_some())?;
        Some(archive)
    }

    fn disk_at(&self, path: &Path) -> &dyn ReadDisk {
        match self.archive_at(path) {
            Some(archive) => archive,
            None => &self.real,
        }
    }

    fn local_at(&self, path: &Path) -> &dyn LocalDisk {
        match self.archive_at(path) {
            Some(archive) => archive,
            None => &self.real,
        }
    }
}

impl ReadDisk for ArchiveDisks {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk_at(path).open_to_read(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        self.disk_at(folder).list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.disk_at(path).metadata(path)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        Some(self)
    }
}

impl LocalDisk for ArchiveDisks {
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.local_at(path).link_metadata(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.local_at(path).real_path(path)
    }
}
