//! Captures a database and the files beside it as they are at one moment.
//!
//! A database without its log of changes is an older one, and with the log of another moment it is damaged. So all of them are
//! captured together, in one pack, and a file that is gone by then is captured as an empty one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use transcript_storage::{Metadata, ReadDisk, ReadFile, is_absent};

use crate::agent_files::DATABASE_ENDINGS;
use crate::archive::Archive;
use crate::catalogue::VersionId;
use crate::error::{AtPath, Error};
use crate::file_content::{Problem, base_version, fingerprint, read_file, state_of};
use crate::files::{Summarize, lock};
use crate::live_files::{LiveDatabase, LiveFile};
use crate::packer::Packer;
use crate::record::{FileState, Hash, Hasher, Version};

/// The maximum number of attempts to read a database that changes while it is read.
const MAX_ATTEMPTS: usize = 5;
/// The length of the start of a log that is another one after the log moved into its database, in bytes.
const LOG_HEAD_LEN: usize = 32;

/// The files and bytes of a database that were added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddedDatabase {
    pub(crate) files: u64,
    /// The bytes that were not archived before.
    pub(crate) bytes: u64,
}

/// A database, or a file beside it.
struct DatabasePart {
    path: PathBuf,
    /// The path in the archive.
    name: String,
    /// Whether it only grows until it begins again.
    is_log: bool,
}

/// Returns the database and the files that may lie beside it.
fn parts_of(database: &LiveDatabase) -> Vec<DatabasePart> {
    let part = |ending: &str| {
        let mut path = database.path.as_os_str().to_owned();
        path.push(ending);
        DatabasePart {
            path: path.into(),
            name: format!("{}{ending}", database.name),
            is_log: !ending.is_empty(),
        }
    };
    let beside = DATABASE_ENDINGS.into_iter().map(part);
    std::iter::once(part("")).chain(beside).collect()
}

impl DatabasePart {
    /// Returns the properties of the file, if it is there and no link.
    fn metadata(&self, disk: &dyn ReadDisk) -> io::Result<Option<Metadata>> {
        match disk.link_metadata(&self.path) {
            Err(error) if is_absent(&error) => Ok(None),
            found => Ok(Some(found?).filter(Metadata::is_file)),
        }
    }
}

/// What is another one after anything but the end of the log changed.
#[derive(PartialEq)]
struct Moment {
    database: Option<Metadata>,
    log: Option<Vec<u8>>,
    journal: Option<Metadata>,
}

impl Moment {
    fn read(disk: &dyn ReadDisk, parts: &[DatabasePart]) -> Result<Self, Error> {
        let metadata = |part: Option<&DatabasePart>| match part {
            Some(part) => part.metadata(disk).at(&part.path),
            None => Ok(None),
        };
        let log = parts
            .get(1)
            .map(|log| match disk.read(&log.path, LOG_HEAD_LEN) {
                Err(error) if is_absent(&error) => Ok(None),
                head => head.at(&log.path).map(Some),
            });
        Ok(Self {
            database: metadata(parts.first())?,
            log: log.transpose()?.flatten(),
            journal: metadata(parts.get(2))?,
        })
    }
}

impl Archive {
    /// Returns whether a capture has a database as it is now. It need not be the last one: the archive may be that of several
    /// machines.
    pub(crate) fn has_database(
        &self,
        database: &LiveDatabase,
        now: SystemTime,
        compares_all: bool,
    ) -> bool {
        let parts = parts_of(database).into_iter().map(|part| {
            let found = part.metadata(&*self.disk)?;
            Ok((part, found))
        });
        let Ok(parts) = parts.collect::<io::Result<Vec<_>>>() else {
            return false;
        };
        let has = |part: &DatabasePart, found: Option<&Metadata>, captured| {
            let version = self.version_at(&part.name, captured);
            match (found, version) {
                (None, None) => true,
                (None, Some((_, version))) => version.len == 0,
                (Some(_), None) => false,
                (Some(found), Some((id, version))) => {
                    is_unchanged(version, found, now)
                        && (!compares_all || self.has_bytes(&part.path, id, version))
                }
            }
        };
        let versions = self.catalogue.files.get(&database.name);
        let mut versions = versions.into_iter().flatten().rev();
        versions.any(|id| {
            let captured = self.version(*id).map(|version| version.captured);
            captured.is_some_and(|captured| {
                let mut parts = parts.iter();
                parts.all(|(part, found)| has(part, found.as_ref(), captured))
            })
        })
    }

    /// Returns the version of a file that a capture made.
    fn version_at(&self, name: &str, captured: i64) -> Option<(VersionId, &Version)> {
        let ids = self.catalogue.files.get(name)?.iter().rev();
        let mut versions = ids.filter_map(|id| Some((*id, self.version(*id)?)));
        versions.find(|(_, version)| version.captured == captured)
    }

    /// Returns whether a file has the bytes of a version of the same length.
    fn has_bytes(&self, path: &Path, id: VersionId, version: &Version) -> bool {
        let same = self.disk.open_to_read(path);
        let same = same.and_then(|live| self.common_start(&*live, id, version, version.len));
        same.is_ok_and(|same| same == version.len)
    }

    /// Returns the version that a file continues, and how many bytes of it.
    fn continued(
        &self,
        part: &DatabasePart,
        live: &dyn ReadFile,
        metadata: &Metadata,
        now: SystemTime,
    ) -> Option<(VersionId, u64)> {
        let ids = self.catalogue.files.get(&part.name)?.iter().rev();
        let mut versions = ids.filter_map(|id| Some((*id, self.version(*id)?)));
        let unchanged = versions.find(|(_, version)| is_unchanged(version, metadata, now));
        let found = match unchanged {
            Some((id, version)) => (id, version.len),
            // What is written in place is read at one moment, as a whole.
            None if !part.is_log => return None,
            None => {
                let id = self.catalogue.newest(&part.name)?;
                let known = self.version(id)?;
                let same = self.common_start(live, id, known, metadata.len);
                (id, same.ok()?)
            }
        };
        let is_continued = found.1 > 0 && self.catalogue.may_be_continued(found.0);
        is_continued.then_some(found)
    }
}

/// Returns whether a file is as it was when a version was captured, by its properties.
fn is_unchanged(version: &Version, metadata: &Metadata, now: SystemTime) -> bool {
    let state = state_of(metadata, now);
    version.len == metadata.len && version.state == state && state.is_settled
}

/// Adds a database and the files beside it to the archive, or nothing of them.
pub(crate) fn add_database(
    packer: &mut Packer<'_>,
    database: &LiveDatabase,
    now: SystemTime,
    summarize: Option<&Summarize>,
    done: Option<&AtomicU64>,
) -> Result<AddedDatabase, Problem> {
    let added = try_add_database(packer, database, now, summarize, done);
    if let Err(Problem::OfFile(_)) = added {
        packer.drop_file();
    }
    added
}

fn try_add_database(
    packer: &mut Packer<'_>,
    database: &LiveDatabase,
    now: SystemTime,
    summarize: Option<&Summarize>,
    done: Option<&AtomicU64>,
) -> Result<AddedDatabase, Problem> {
    let parts = parts_of(database);
    for _ in 0..MAX_ATTEMPTS {
        let disk = Arc::clone(&packer.archive().disk);
        let moment = Moment::read(&*disk, &parts).map_err(Problem::OfFile)?;
        let summary = summarize.map_or_else(Vec::new, |summarize| summarize(&database.path));
        let added = add_parts(packer, &parts, now, done)?;
        let after = Moment::read(&*disk, &parts).map_err(Problem::OfFile)?;
        let (Some((versions, bytes)), true) = (added, moment == after) else {
            packer.drop_file();
            continue;
        };
        let files = versions.len() as u64;
        let described = |version: Version| {
            let is_database = version.path == database.name;
            let summary: &[u8] = if is_database { &summary } else { &[] };
            (version, summary)
        };
        let versions = versions.into_iter().map(described).collect();
        packer.end_files(versions).map_err(Problem::OfArchive)?;
        return Ok(AddedDatabase { files, bytes });
    }
    let what = "it keeps changing; the next run captures it";
    let error = io::Error::new(io::ErrorKind::ResourceBusy, what);
    Err(Problem::OfFile(Error::io(&database.path, error)))
}

/// Adds the content of all parts, and returns their versions and the number of bytes that are new; `None` if one of them
/// changed meanwhile.
fn add_parts(
    packer: &mut Packer<'_>,
    parts: &[DatabasePart],
    now: SystemTime,
    done: Option<&AtomicU64>,
) -> Result<Option<(Vec<Version>, u64)>, Problem> {
    let (mut versions, mut bytes) = (Vec::new(), 0);
    for part in parts {
        let archive = packer.archive();
        let of_file = |error| Problem::OfFile(Error::io(&part.path, error));
        let Some(metadata) = part.metadata(&*archive.disk).map_err(of_file)? else {
            let known = archive.catalogue.newest(&part.name);
            versions.extend(known.map(|_| gone(part, packer.captured())));
            continue;
        };
        let Some((version, new)) = add_part(packer, part, &metadata, now, done)? else {
            return Ok(None);
        };
        versions.push(version);
        bytes += new;
    }
    Ok(Some((versions, bytes)))
}

/// Returns the version of a file that was there once and is not any more.
fn gone(part: &DatabasePart, captured: i64) -> Version {
    Version {
        path: part.name.clone(),
        captured,
        len: 0,
        state: FileState::default(),
        before: None,
        extents: Vec::new(),
        partial: 0,
        fingerprint: Some(Hasher::default().finish()),
        summary: (0, 0),
    }
}

fn add_part(
    packer: &mut Packer<'_>,
    part: &DatabasePart,
    metadata: &Metadata,
    now: SystemTime,
    done: Option<&AtomicU64>,
) -> Result<Option<(Version, u64)>, Problem> {
    let of_file = |error| Problem::OfFile(Error::io(&part.path, error));
    let archive = packer.archive();
    let live = archive.disk.open_to_read(&part.path).map_err(of_file)?;
    let live = HashedFile::new(live);
    let from = archive.continued(part, &*live.file, metadata, now);
    let is_encrypted = archive.layout.encryption.is_on();
    let file = LiveFile {
        path: part.path.clone(),
        name: part.name.clone(),
        metadata: *metadata,
    };
    let start = from.map_or(0, |(_, keep)| keep);
    let read = read_file(
        packer,
        &live,
        &file,
        start,
        metadata.len,
        done,
        &mut Vec::new(),
    )?;
    let Some(partial) = read else {
        return Ok(None);
    };
    let extents = packer.take_extents();
    let state = state_of(metadata, now);
    // Times of files are coarse: two changes may have the same one. Bytes that are the same twice were there at one moment.
    let is_certain = state.is_settled || part.is_log;
    let hash = if is_encrypted || !is_certain {
        Some(fingerprint(&*live.file, metadata.len).map_err(of_file)?)
    } else {
        None
    };
    if !is_certain && hash != Some(live.hash()) {
        return Ok(None);
    }
    let before = base_version(packer, from).map_err(of_file)?;
    let version = Version {
        path: part.name.clone(),
        captured: packer.captured(),
        len: metadata.len,
        state,
        before,
        extents,
        partial,
        fingerprint: hash.filter(|_| is_encrypted),
        summary: (0, 0),
    };
    Ok(Some((version, metadata.len - start)))
}

/// A file whose bytes are hashed as they are read, from its start on and in order.
#[derive(Debug)]
struct HashedFile {
    file: Arc<dyn ReadFile>,
    hasher: Mutex<Hasher>,
}

impl HashedFile {
    fn new(file: Arc<dyn ReadFile>) -> Self {
        Self {
            file,
            hasher: Mutex::default(),
        }
    }

    fn hash(&self) -> Hash {
        lock(&self.hasher).finish()
    }
}

impl ReadFile for HashedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(offset, buffer)?;
        lock(&self.hasher).update(&buffer[..read]);
        Ok(read)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}
