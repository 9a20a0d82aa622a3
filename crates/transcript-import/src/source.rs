//! The files of a store: which there are, and the bytes of one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
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
            if self.disk.is_folder(&folder) {
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
                FileKind::File if is_wanted() => found.push(path),
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens a file to read it from its start on, decompressed if its name says so.
    pub(crate) fn open(&self, path: &Path) -> Result<Opened, Error> {
        let file = self.disk.open_to_read(path).map_err(Error::at(path))?;
        if name_of(path).ends_with(".zst") {
            let bytes = decompressed(Reader::new(file)).map_err(Error::at(path))?;
            return Ok(Opened { bytes, file: None });
        }
        let metadata = file.metadata().map_err(Error::at(path))?;
        Ok(Opened {
            bytes: Box::new(Reader::new(file.clone())),
            file: metadata.is_file().then_some(file),
        })
    }

    /// Reads a small file as text; `None` when it is not there.
    pub(crate) fn text(&self, path: &Path) -> Option<String> {
        const MAX_LEN: usize = 64 << 20;
        let bytes = self.disk.read(path, MAX_LEN).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(feature = "zstd")]
fn decompressed(bytes: Reader) -> io::Result<Box<dyn Read>> {
    Ok(Box::new(zstd::stream::read::Decoder::new(bytes)?))
}

#[cfg(not(feature = "zstd"))]
fn decompressed(_: Reader) -> io::Result<Box<dyn Read>> {
    let reason = "the feature `zstd` of transcript-import reads compressed files";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Returns the name of a file as text.
pub(crate) fn name_of(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}
