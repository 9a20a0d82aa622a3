//! The files of an archive.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use transcript_storage::{FileKind, ReadDisk};

use crate::error::{AtPath, Error};
use crate::record::{DictionaryId, PackId};

const PACKS: &str = "packs";
const PACK: &str = ".jsonl.zst";
const DICTIONARIES: &str = "dictionaries";
const DICTIONARY: &str = ".dict";
/// What the names of files start with that are not complete.
const TEMPORARY: &str = ".new-";
/// The folders in which the files of sessions appear: no real folders, see [`ArchiveDisk`](crate::ArchiveDisk).
pub(crate) const AREAS: [&str; 4] = ["projects", "tasks", "file-history", "todos"];

/// Where the files of an archive are.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) folder: PathBuf,
}

impl Layout {
    /// The file that makes the folder an archive.
    pub(crate) fn marker(&self) -> PathBuf {
        self.folder.join("archive.json")
    }

    pub(crate) fn catalogue(&self) -> PathBuf {
        self.folder.join("catalogue")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    pub(crate) fn pack(&self, id: PackId) -> PathBuf {
        let name = format!("{}{PACK}", id.to_hex());
        self.folder.join(PACKS).join(name)
    }

    pub(crate) fn dictionary(&self, id: DictionaryId) -> PathBuf {
        let name = format!("{}{DICTIONARY}", id.to_hex());
        self.folder.join(DICTIONARIES).join(name)
    }

    /// A file that gets its name when it is complete.
    pub(crate) fn temporary(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{TEMPORARY}{name}"))
    }

    /// A pack that gets its name when it is complete.
    pub(crate) fn new_pack(&self) -> PathBuf {
        self.folder.join(PACKS).join(format!("{TEMPORARY}pack"))
    }

    /// Returns the packs in the folder, sorted by name. Files with other names are ignored, as a program that
    /// syncs the folder may keep its own there.
    pub(crate) fn packs_on(&self, disk: &dyn ReadDisk) -> Result<Vec<PackId>, Error> {
        let id = |name: &OsStr| PackId::from_hex(name.to_str()?.strip_suffix(PACK)?);
        self.list(disk, PACKS, id)
    }

    /// Returns the dictionaries in the folder.
    pub(crate) fn dictionaries_on(&self, disk: &dyn ReadDisk) -> Result<Vec<DictionaryId>, Error> {
        let id = |name: &OsStr| DictionaryId::from_hex(name.to_str()?.strip_suffix(DICTIONARY)?);
        self.list(disk, DICTIONARIES, id)
    }

    fn list<T: Ord>(
        &self,
        disk: &dyn ReadDisk,
        folder: &str,
        id: impl Fn(&OsStr) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let folder = self.folder.join(folder);
        let entries = match disk.list(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.at(&folder)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.at(&folder)?;
            if entry.kind == FileKind::File || entry.kind == FileKind::Other {
                found.extend(id(&entry.name));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the path of a file of a session as it appears in the archive.
    pub(crate) fn virtual_path(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Returns the path in the archive, with `/`, if `path` is in one of the folders that appear in it.
    pub(crate) fn path_in_archive(&self, path: &Path) -> Option<String> {
        // Every path is below an empty one.
        let is_named = !self.folder.as_os_str().is_empty();
        let rest = is_named.then(|| path.strip_prefix(&self.folder).ok())??;
        let parts: Option<Vec<&str>> = rest
            .components()
            .map(|part| part.as_os_str().to_str())
            .collect();
        let parts = parts?;
        AREAS.contains(parts.first()?).then(|| parts.join("/"))
    }
}
