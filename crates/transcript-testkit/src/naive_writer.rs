//! A writer like that of common tools, which proves that the tests detect its defects.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use transcript_storage::{Disk, File};

/// The number of attempts of an append.
const MAX_ATTEMPTS: usize = 2;

/// Appends a line and then its newline. It takes no lock, checks nothing before it writes, and
/// repeats the whole line after an error without truncating the part that was written.
#[derive(Debug)]
pub struct NaiveWriter(Target);

#[derive(Debug)]
enum Target {
    Disk(Arc<dyn File>),
    Plain(fs::File),
}

impl NaiveWriter {
    /// Opens a file on `disk`, and creates it if it does not exist.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        Ok(Self(Target::Disk(disk.open(path, true)?.file)))
    }

    /// Opens a file of this machine with the standard library alone, and creates it if it does not
    /// exist.
    ///
    /// # Errors
    /// When the system fails.
    pub fn open_plain(path: &Path) -> io::Result<Self> {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        Ok(Self(Target::Plain(file?)))
    }

    /// Appends a line, which must not contain a newline.
    ///
    /// # Errors
    /// When both attempts fail. The file may then contain one or two parts of the line.
    pub fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut result = Ok(());
        for _ in 0..MAX_ATTEMPTS {
            result = self.write_all(line).and_then(|()| self.write_all(b"\n"));
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Syncs the file, and trusts the result.
    ///
    /// # Errors
    /// When the system fails.
    pub fn sync(&self) -> io::Result<()> {
        match &self.0 {
            Target::Disk(file) => file.sync(),
            Target::Plain(file) => file.sync_data(),
        }
    }

    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = match &self.0 {
                Target::Disk(file) => file.append(bytes),
                Target::Plain(file) => (&mut &*file).write(bytes),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => bytes = &bytes[taken..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
