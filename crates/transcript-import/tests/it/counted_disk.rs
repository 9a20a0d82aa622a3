//! A disk that counts what is read from it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use transcript_storage::{Entries, LocalDisk, Metadata, ReadDisk, ReadFile, RealDisk};

/// The number of bytes that were read of each file of this machine.
pub(crate) type Counts = Arc<Mutex<HashMap<PathBuf, u64>>>;

/// A file that cannot be read.
pub(crate) type Broken = Arc<Mutex<Option<PathBuf>>>;

/// The disk of this machine.
#[derive(Debug, Default)]
pub(crate) struct CountedDisk(pub(crate) Counts, pub(crate) Broken);

#[derive(Debug)]
struct CountedFile {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
    counts: Counts,
}

impl ReadDisk for CountedDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let broken = self.1.lock().expect("no other thread panicked");
        if broken.as_deref() == Some(path) {
            return Err(io::Error::other("a bad sector"));
        }
        Ok(Arc::new(CountedFile {
            file: RealDisk.open_to_read(path)?,
            path: path.to_owned(),
            counts: Arc::clone(&self.0),
        }))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        RealDisk.list(folder)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        RealDisk.metadata(path)
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        RealDisk.local()
    }
}

impl ReadFile for CountedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(offset, buffer)?;
        let mut counts = self.counts.lock().expect("no other thread panicked");
        *counts.entry(self.path.clone()).or_default() += read as u64;
        Ok(read)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}
