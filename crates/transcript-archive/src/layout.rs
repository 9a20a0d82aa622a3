//! The files of an archive.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_storage::{FileKind, Metadata, ReadDisk, ReadFile};

use crate::agent_files::AGENTS;
use crate::encryption::Encryption;
use crate::error::{AtPath, Error};
use crate::machines::{self, MACHINES};
use crate::record::{DictionaryId, PackId};

const PACKS_FOLDER: &str = "packs";
const PACK_SUFFIX: &str = ".jsonl.zst";
const SUMMARIES_FOLDER: &str = "summaries";
const DICTIONARIES_FOLDER: &str = "dictionaries";
const DICTIONARY_SUFFIX: &str = ".dict";
/// The suffix of the names of encrypted files.
const ENCRYPTED_SUFFIX: &str = ".age";
/// The prefix of the names of incomplete files.
const TEMPORARY_PREFIX: &str = ".new-";
/// The folders in which the files of sessions appear: no real folders, see [`ArchiveDisk`](crate::ArchiveDisk).
pub(crate) const AREAS: [&str; 6] = [
    "projects",
    "tasks",
    "file-history",
    "todos",
    AGENTS,
    MACHINES,
];
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
    /// The folder of the catalogue, of what is being written, and of files that are never encrypted: of an archive on this machine that is
    /// not encrypted, its own.
    local: PathBuf,
    pub(crate) encryption: Encryption,
    /// Whether the folder is in a bucket, whose files cannot be renamed or locked.
    pub(crate) in_bucket: bool,
    /// What the paths of the files of this machine start with in the archive: `machines/NAME/` in a bucket, else nothing.
    pub(crate) machine: String,
}

impl Layout {
    /// An archive that is not encrypted.
    pub(crate) fn new(folder: &Path) -> Self {
        Self::apart(folder, folder, Encryption::default())
    }

    /// An archive with files in another folder, too.
    pub(crate) fn apart(folder: &Path, local: &Path, encryption: Encryption) -> Self {
        Self {
            folder: folder.to_owned(),
            local: local.to_owned(),
            encryption,
            in_bucket: false,
            machine: String::new(),
        }
    }

    /// Says whether the folder is in a bucket, and names the machine that captures.
    pub(crate) fn in_bucket(self, in_bucket: bool, machine: Option<&str>) -> Self {
        Self {
            in_bucket,
            machine: machine.map(machines::prefix).unwrap_or_default(),
            ..self
        }
    }

    /// Opens a pack, whose properties may be known from a list.
    pub(crate) fn open_pack(
        &self,
        disk: &dyn ReadDisk,
        id: PackId,
        listed: Option<&Metadata>,
    ) -> io::Result<Arc<dyn ReadFile>> {
        let path = self.pack(id);
        let file = match listed {
            Some(listed) => disk.open_listed(&path, listed),
            None => disk.open_to_read(&path),
        };
        self.encryption.open(file?)
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

    /// The summaries of a pack in a bucket, on this machine.
    pub(crate) fn summaries(&self, id: PackId) -> PathBuf {
        self.local.join(SUMMARIES_FOLDER).join(id.to_hex())
    }

    pub(crate) fn lock(&self) -> PathBuf {
        // Machines do not wait for each other: a bucket has no locks, and packs have other names.
        let folder = if self.in_bucket {
            &self.local
        } else {
            &self.folder
        };
        folder.join("lock")
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
        // A bucket has no files that are incomplete.
        let folder = if self.in_bucket {
            &self.local
        } else {
            &self.folder
        };
        [written, folder.join(PACKS_FOLDER).join(name + self.end())]
    }

    /// Returns the packs in the folder, sorted by name, with their properties where the list has them. Files with other names are ignored,
    /// as a program that syncs the folder may keep its own there.
    pub(crate) fn packs_on(
        &self,
        disk: &dyn ReadDisk,
    ) -> Result<Vec<(PackId, Option<Metadata>)>, Error> {
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
        let found = self.list(disk, DICTIONARIES_FOLDER, id)?;
        Ok(found.into_iter().map(|(id, _)| id).collect())
    }

    fn list<T: Ord>(
        &self,
        disk: &dyn ReadDisk,
        folder: &str,
        id: impl Fn(&OsStr) -> Option<T>,
    ) -> Result<Vec<(T, Option<Metadata>)>, Error> {
        let folder = self.folder.join(folder);
        let entries = match disk.list(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.at(&folder)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.at(&folder)?;
            if entry.kind == FileKind::File || entry.kind == FileKind::Other {
                found.extend(id(&entry.name).map(|id| (id, entry.metadata)));
            }
        }
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
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
