//! Objects that are written.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use object_store::PutMode;
use transcript_storage::{ReadFile, TemporaryFile, UnnamedFile};

use crate::store::Store;

/// An object that is being written: a file without a name on this machine until it is complete.
pub(crate) struct NewObject {
    store: Arc<Store>,
    file: TemporaryFile,
}

impl fmt::Debug for NewObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewObject")
    }
}

impl NewObject {
    pub(crate) fn new(store: Arc<Store>) -> io::Result<Self> {
        let file = TemporaryFile::new()?;
        Ok(Self { store, file })
    }

    fn put(self, path: &Path, mode: PutMode) -> io::Result<()> {
        let location = self.store.location(path)?;
        self.store
            .put_file(&location, &*self.file.into_reader(), mode)
    }
}

impl UnnamedFile for NewObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn set_properties(&self, _: Option<SystemTime>, _: Option<u32>) -> io::Result<()> {
        // The store gives the time, and objects have no mode.
        Err(io::ErrorKind::Unsupported.into())
    }

    fn reader(&self) -> io::Result<Arc<dyn ReadFile>> {
        self.file.reader()
    }

    fn keep(self: Box<Self>, path: &Path) -> io::Result<()> {
        self.put(path, PutMode::Create)
    }

    fn replace(self: Box<Self>, path: &Path) -> io::Result<()> {
        self.put(path, PutMode::Overwrite)
    }
}
