//! Files that a person names, for input and output: they may be pipes and devices, which no disk has.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// A file that a person named for input, such as a list of prices or a key: also a pipe.
#[derive(Debug)]
pub struct NamedInput(fs::File);

impl NamedInput {
    /// Opens the file. Opening a pipe waits for a writer.
    ///
    /// # Errors
    /// When the system fails.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::File::open(path)?))
    }

    /// Reads the whole file.
    ///
    /// # Errors
    /// When the system fails.
    pub fn read_all(path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }
}

impl Read for NamedInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// Opens a pipe or a device that a person named for output. A file is not cut.
///
/// # Errors
/// When nothing is at `path`, or the system fails.
pub fn open_stream(path: &Path) -> io::Result<impl io::Write + 'static> {
    fs::OpenOptions::new().write(true).open(path)
}
