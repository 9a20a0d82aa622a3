//! Files without a name, and folders for files that a library opens by their names.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use crate::file::ReadFile;

/// A file of this machine that only its owner can read. Nothing is left of one without a name when it is closed, or the process is
/// killed; one in a [`TemporaryFolder`] goes with the folder.
#[derive(Debug)]
pub struct TemporaryFile(File);

impl TemporaryFile {
    /// Creates one in the folder of the system for temporary files.
    ///
    /// # Errors
    /// When the system fails.
    pub fn new() -> io::Result<Self> {
        tempfile::tempfile().map(Self)
    }

    /// Creates one in the folder of `path`, which has the room for another file like the one there; without such a folder, in
    /// that of the system.
    ///
    /// # Errors
    /// When the system fails.
    pub fn beside(path: &Path) -> io::Result<Self> {
        match path.parent().filter(|folder| folder.is_dir()) {
            Some(folder) => tempfile::tempfile_in(folder).map(Self),
            None => Self::new(),
        }
    }

    /// Returns another handle of the file, to read the written bytes.
    ///
    /// # Errors
    /// When the system fails.
    pub fn reader(&self) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(self.0.try_clone()?))
    }

    /// Cuts the file, or adds zeros at its end.
    ///
    /// # Errors
    /// When the system fails.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    /// Ends writing, and returns the file for reading.
    #[must_use]
    pub fn into_reader(self) -> Arc<dyn ReadFile> {
        Arc::new(self.0)
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TemporaryFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Seek for TemporaryFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// A folder of this machine that only its owner can read, for files that a library opens by their names. It is removed with its
/// files when it is dropped; a process that is killed leaves it.
#[derive(Debug)]
pub struct TemporaryFolder(tempfile::TempDir);

impl TemporaryFolder {
    /// Creates one in the folder of the system for temporary files.
    ///
    /// # Errors
    /// When the system fails.
    pub fn new() -> io::Result<Self> {
        #[cfg(unix)]
        let folder = {
            use std::os::unix::fs::PermissionsExt;
            let for_owner = std::fs::Permissions::from_mode(0o700);
            tempfile::Builder::new().permissions(for_owner).tempdir()
        };
        #[cfg(not(unix))]
        let folder = tempfile::tempdir();
        folder.map(Self)
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Creates a file in it, empty.
    ///
    /// # Errors
    /// When the system fails.
    pub fn create(&self, name: &str) -> io::Result<TemporaryFile> {
        let path = self.0.path().join(name);
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        options.open(path).map(TemporaryFile)
    }
}
