//! The files of a store: which there are, and the bytes of one.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use transcript_storage::{FileKind, ReadDisk, ReadFile, Reader};

use crate::Error;

/// Where the sessions of an agent lie: its home folder, or one file of it.
#[derive(Clone, Copy, Debug)]
pub struct Store<'a> {
    /// The disk.
    pub disk: &'a dyn ReadDisk,
    /// The home folder of the agent, such as `~/.codex`, or one file.
    pub path: &'a Path,
}

/// An open file of a store.
pub(crate) struct Opened {
    /// Its bytes, from the start on.
    pub(crate) bytes: Box<dyn Read>,
    /// The file, if these bytes can be read at an offset of it.
    pub(crate) file: Option<Arc<dyn ReadFile>>,
}

/// How deep folders of sessions are looked through. The deepest layout, that of Codex, has a folder for each day.
const MAX_DEPTH: usize = 6;

impl Store<'_> {
    /// Returns the files whose names have one of the endings, in the order of their paths: the store itself if it is one file,
    /// otherwise those below `folders`. Folders that do not exist are skipped, links are not followed.
    pub(crate) fn files(&self, folders: &[&str], endings: &[&str]) -> Result<Vec<PathBuf>, Error> {
        if self.disk.is_file(self.path) {
            return Ok(vec![self.path.to_owned()]);
        }
        let mut found = Vec::new();
        for folder in folders {
            let folder = self.path.join(folder);
            if self.disk.has_folder(&folder).map_err(Error::at(&folder))? {
                self.walk(&folder, endings, MAX_DEPTH, &mut found)?;
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn walk(
        &self,
        folder: &Path,
        endings: &[&str],
        depth: usize,
        found: &mut Vec<PathBuf>,
    ) -> Result<(), Error> {
        for entry in self.disk.list(folder).map_err(Error::at(folder))? {
            let entry = entry.map_err(Error::at(folder))?;
            let path = folder.join(&entry.name);
            let is_wanted = || {
                endings
                    .iter()
                    .any(|ending| name_of(&path).ends_with(ending))
            };
            match entry.kind {
                FileKind::Folder if depth > 0 => self.walk(&path, endings, depth - 1, found)?,
                // What is not a file either, such as a pipe, is found all the same: the reading of it says why it fails.
                FileKind::File | FileKind::Other if is_wanted() => found.push(path),
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens a file to read it from its start on, decompressed if its name says so.
    pub(crate) fn open(&self, path: &Path) -> Result<Opened, Error> {
        let file = self.disk.open_to_read(path).map_err(Error::at(path))?;
        let metadata = file.metadata().map_err(Error::at(path))?;
        if !metadata.is_file() {
            let reason = "not a regular file";
            return Err(Error::at(path)(io::Error::new(
                io::ErrorKind::InvalidInput,
                reason,
            )));
        }
        if name_of(path).ends_with(".zst") {
            let bytes = decompressed(Reader::new(file), metadata.len).map_err(Error::at(path))?;
            return Ok(Opened { bytes, file: None });
        }
        Ok(Opened {
            bytes: Box::new(Reader::new(file.clone())),
            file: Some(file),
        })
    }

    /// Reads a small file as text; `None` when it is not there.
    pub(crate) fn text(&self, path: &Path) -> Option<String> {
        const MAX_LEN: usize = 64 << 20;
        let bytes = self.disk.read(path, MAX_LEN).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// What a compressed file decompresses to, as far as its length is credible: some bytes can stand for any number of zeros.
#[cfg(feature = "zstd")]
struct Decompressed<R> {
    bytes: R,
    /// The number of bytes that may follow.
    left: u64,
}

#[cfg(feature = "zstd")]
impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        let reason = "it decompresses to more than a file of its length can hold";
        self.left = left.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, reason))?;
        Ok(read)
    }
}

/// Decompresses a file of a length.
#[cfg(feature = "zstd")]
fn decompressed(bytes: Reader, len: u64) -> io::Result<Box<dyn Read>> {
    /// What any file may decompress to, and how many times its length a long one: text shrinks to a twentieth.
    const MIN_LIMIT: u64 = 1 << 30;
    const MAX_RATIO: u64 = 256;
    Ok(Box::new(Decompressed {
        bytes: zstd::stream::read::Decoder::new(bytes)?,
        left: len.saturating_mul(MAX_RATIO).max(MIN_LIMIT),
    }))
}

#[cfg(not(feature = "zstd"))]
fn decompressed(_: Reader, _: u64) -> io::Result<Box<dyn Read>> {
    let reason = "the feature `zstd` of transcript-import reads compressed files";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Returns whether a text is the name of one file or folder, and not a path that leads elsewhere.
pub(crate) fn is_file_name(text: &str) -> bool {
    let mut components = Path::new(text).components();
    let first = components.next();
    matches!(first, Some(Component::Normal(name)) if name == text) && components.next().is_none()
}

/// Returns the name of a file as text.
pub(crate) fn name_of(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}
