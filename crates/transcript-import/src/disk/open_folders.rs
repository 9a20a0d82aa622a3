//! A disk on which folders that cannot be read are empty: one of them must not hide the sessions in the others.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use transcript_storage::{
    DirEntry, Entries, LocalDisk, Metadata, ReadDisk, ReadFile, Reporter, SessionLayout, is_absent,
};

use super::conversions::io_error;
use super::lock::lock;
use crate::Error;

/// Another disk, without its unreadable folders. It remembers them.
#[derive(Debug)]
pub(super) struct OpenFolders {
    disk: Arc<dyn ReadDisk>,
    unreadable: Mutex<BTreeMap<PathBuf, Unreadable>>,
}

/// Why a folder or a file cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Unreadable {
    kind: io::ErrorKind,
    message: String,
}

impl Unreadable {
    /// Returns it as an error.
    pub(super) fn error(&self) -> io::Error {
        io::Error::new(self.kind, self.message.clone())
    }
}

/// From an error that names the file or folder.
impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        let error = io_error(error);
        Self {
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

impl OpenFolders {
    pub(super) fn new(disk: Arc<dyn ReadDisk>) -> Self {
        Self {
            disk,
            unreadable: Mutex::default(),
        }
    }

    /// Returns the other disk.
    pub(super) fn whole(&self) -> &Arc<dyn ReadDisk> {
        &self.disk
    }

    /// Returns the folders that could not be read when they were last listed, as far as they are still there.
    pub(super) fn unreadable(&self) -> BTreeMap<PathBuf, Unreadable> {
        let mut found = lock(&self.unreadable);
        let is_gone = |folder: &Path| {
            let metadata = self.disk.metadata(folder);
            metadata.is_err_and(|error| is_absent(&error))
        };
        found.retain(|folder, _| !is_gone(folder));
        found.clone()
    }

    /// Lists a folder as far as it can be read.
    fn readable(&self, folder: &Path) -> io::Result<(Vec<DirEntry>, Option<Unreadable>)> {
        let mut problem = None;
        let entries = match self.disk.list(folder) {
            Err(error) if is_absent(&error) => return Err(error),
            Err(error) => return Ok((Vec::new(), Some(Error::at(folder)(error).into()))),
            Ok(entries) => entries,
        };
        let entries = entries.filter_map(|entry| match entry {
            Ok(entry) => Some(entry),
            Err(error) => {
                problem = Some(Error::at(folder)(error).into());
                None
            }
        });
        let entries = entries.collect();
        Ok((entries, problem))
    }
}

impl ReadDisk for OpenFolders {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk.open_to_read(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        lock(&self.unreadable).remove(folder);
        let (entries, problem) = self.readable(folder)?;
        if let Some(problem) = problem {
            lock(&self.unreadable).insert(folder.to_owned(), problem);
        }
        Ok(Box::new(entries.into_iter().map(Ok)))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.disk.metadata(path)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        self.disk.local()
    }

    fn layout(&self) -> SessionLayout {
        self.disk.layout()
    }

    fn reporter(&self) -> Reporter {
        self.disk.reporter()
    }
}
