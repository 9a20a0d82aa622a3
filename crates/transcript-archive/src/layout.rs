//! The files of an archive.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_storage::{FileKind, ReadDisk, ReadFile};

use crate::agent_files::AGENTS;
use crate::encryption::Encryption;
use crate::error::{AtPath, Error};
use crate::record::{DictionaryId, PackId};

const PACKS_FOLDER: &str = "packs";
const PACK_SUFFIX: &str = ".jsonl.zst";
const DICTIONARIES_FOLDER: &str = "dictionaries";
const DICTIONARY_SUFFIX: &str = ".dict";
/// The suffix of the names of encrypted files.
const ENCRYPTED_SUFFIX: &str = ".age";
/// The prefix of the names of incomplete files.
const TEMPORARY_PREFIX: &str = ".new-";
/// The folders in which the files of sessions appear: no real folders, see [`ArchiveDisk`](crate::ArchiveDisk).
pub(crate) const AREAS: [&str; 5] = ["projects", "tasks", "file-history", "todos", AGENTS];
/// The folder in which the areas appear as they were at a time, each in a folder named after it: milliseconds since 1970.
const AS_OF: &str = "as-of";

/// A path that appears in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchivePath {
    /// The path in the archive, with `/`.
    pub(crate) name: String,
    /// The time of the last capture that counts, in milliseconds since 1970; `None` for the newest versions.
    pub(crate) until: Option<i64>,
}

/// The paths of the files of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) folder: PathBuf,
    /// The folder of the files that are never encrypted: of an archive that is not encrypted, its own.
    local: PathBuf,
    pub(crate) encryption: Encryption,
}

impl Layout {
    /// An archive that is not encrypted.
    pub(crate) fn new(folder: &Path) -> Self {
        Self::encrypted(folder, folder, Encryption::default())
    }

    /// An encrypted archive, and a folder for its unencrypted files.
    pub(crate) fn encrypted(folder: &Path, local: &Path, encryption: Encryption) -> Self {
        Self {
            folder: folder.to_owned(),
            local: local.to_owned(),
            encryption,
        }
    }

    /// Opens a pack.
    pub(crate) fn open_pack(
        &self,
        disk: &dyn ReadDisk,
        id: PackId,
    ) -> io::Result<Arc<dyn ReadFile>> {
        self.encryption.open(disk.open_to_read(&self.pack(id))?)
    }

    /// The suffix of names of files; empty in an archive without encryption.
    fn end(&self) -> &'static str {
        if self.encryption.is_on() {
            ENCRYPTED_SUFFIX
        } else {
            ""
        }
    }

    /// The file that makes the folder an archive.
    pub(crate) fn marker(&self) -> PathBuf {
        self.folder.join("archive.json")
    }

    pub(crate) fn catalogue(&self) -> PathBuf {
        self.local.join("catalogue")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join("lock")
    }

    pub(crate) fn pack(&self, id: PackId) -> PathBuf {
        let name = format!("{}{PACK_SUFFIX}{}", id.to_hex(), self.end());
        self.folder.join(PACKS_FOLDER).join(name)
    }

    /// A dictionary as it is used, and as it is in the archive.
    pub(crate) fn dictionary(&self, id: DictionaryId) -> [PathBuf; 2] {
        let name = format!("{}{DICTIONARY_SUFFIX}", id.to_hex());
        let used = self.local.join(DICTIONARIES_FOLDER).join(&name);
        [
            used,
            self.folder
                .join(DICTIONARIES_FOLDER)
                .join(name + self.end()),
        ]
    }

    /// The catalogue before it gets its name.
    pub(crate) fn new_catalogue(&self) -> PathBuf {
        self.local.join(format!("{TEMPORARY_PREFIX}catalogue"))
    }

    /// A pack as it is written, and as it is in the archive before it gets its name.
    pub(crate) fn new_pack(&self) -> [PathBuf; 2] {
        let name = format!("{TEMPORARY_PREFIX}pack");
        let written = self.local.join(PACKS_FOLDER).join(&name);
        [written, self.folder.join(PACKS_FOLDER).join(name)]
    }

    /// Returns the packs in the folder, sorted by name. Files with other names are ignored, as a program that
    /// syncs the folder may keep its own there.
    pub(crate) fn packs_on(&self, disk: &dyn ReadDisk) -> Result<Vec<PackId>, Error> {
        let id = |name: &OsStr| {
            let name = name.to_str()?.strip_suffix(self.end())?;
            PackId::from_hex(name.strip_suffix(PACK_SUFFIX)?)
        };
        self.list(disk, PACKS_FOLDER, id)
    }

    /// Returns the dictionaries in the folder.
    pub(crate) fn dictionaries_on(&self, disk: &dyn ReadDisk) -> Result<Vec<DictionaryId>, Error> {
        let id = |name: &OsStr| {
            let name = name.to_str()?.strip_suffix(self.end())?;
            DictionaryId::from_hex(name.strip_suffix(DICTIONARY_SUFFIX)?)
        };
        self.list(disk, DICTIONARIES_FOLDER, id)
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
    pub(crate) fn path_in_archive(&self, path: &Path) -> Option<ArchivePath> {
        // Every path is below an empty one.
        let is_named = !self.folder.as_os_str().is_empty();
        let rest = is_named.then(|| path.strip_prefix(&self.folder).ok())??;
        let parts: Option<Vec<&str>> = rest
            .components()
            .map(|part| part.as_os_str().to_str())
            .collect();
        let parts = parts?;
        let (until, parts) = match &parts[..] {
            [AS_OF, time, parts @ ..] => (Some(time.parse().ok()?), parts),
            parts => (None, parts),
        };
        let name = AREAS.contains(parts.first()?).then(|| parts.join("/"))?;
        Some(ArchivePath { name, until })
    }

    /// Returns the folder in which the areas appear as they were at a time, in milliseconds since 1970.
    pub(crate) fn as_of(&self, time: i64) -> PathBuf {
        self.folder.join(AS_OF).join(time.to_string())
    }
}
