//! The newest versions of files, as a disk to read from.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use transcript_storage::outside_names::PROJECTS;
use transcript_storage::{
    DirEntry, Entries, FileKind, Identity, LocalDisk, Metadata, ReadDisk, ReadFile, RealDisk,
};

use crate::agent_files::AGENTS;
use crate::archive::{Archive, ArchiveOptions};
use crate::catalogue::{Piece, VersionId};
use crate::files::lock;
use crate::layout::{ArchivePath, Layout};
use crate::machines::{MACHINES, on_machine};
use crate::record::{FileState, Version};

/// A disk on which the folder of an archive has the folders `projects`, `tasks`, `file-history` and `todos`, with the
/// newest versions of all archived files, and `agents/NAME`, with those of the home folder of another agent. Everywhere else it
/// is the disk of this machine.
///
/// The same folders are in [`as-of/TIME`](Self::as_of), with the files as they were captured last until then. That folder
/// is not in any list.
///
/// A session that was moved from one project to another is only listed in the one that has all of it.
///
/// Lost bytes of a file read as NULs, so that the rest can be read; [`Archive::check`] names them.
///
/// The archive is opened when it is first asked for something in these folders.
#[derive(Debug)]
pub struct ArchiveDisk {
    layout: Layout,
    options: ArchiveOptions,
    archive: OnceLock<Result<Arc<Archive>, String>>,
    /// The files of sessions that were moved to another folder, which has them as well, by the time of the last capture that
    /// counts.
    moved: Mutex<HashMap<Option<i64>, Arc<HashSet<String>>>>,
    /// Whether the folder is in a bucket, which has nothing else in it.
    in_bucket: bool,
    real: RealDisk,
}

impl ArchiveDisk {
    /// Shows the archive in a folder, which need not exist.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self::with(folder, ArchiveOptions::new())
    }

    /// Shows the archive in a folder, which need not exist, as [`new`](Self::new) does. It is opened with these options.
    #[must_use]
    pub fn with(folder: &Path, options: ArchiveOptions) -> Self {
        Self {
            layout: Layout::new(folder),
            in_bucket: options.is_in_bucket(folder),
            options,
            archive: OnceLock::new(),
            moved: Mutex::default(),
            real: RealDisk,
        }
    }

    /// Shows an archive that is open.
    #[must_use]
    pub fn of(archive: Arc<Archive>) -> Self {
        Self {
            layout: archive.layout.clone(),
            in_bucket: archive.layout.in_bucket,
            options: ArchiveOptions::new(),
            archive: OnceLock::from(Ok(archive)),
            moved: Mutex::default(),
            real: RealDisk,
        }
    }

    /// Returns the folder of the archive.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.layout.folder
    }

    /// Returns whether the archive is in a bucket, so that anything that is asked for may take requests.
    #[must_use]
    pub fn is_in_bucket(&self) -> bool {
        self.in_bucket
    }

    /// Returns the folder in which the projects appear, in an archive that is not in a bucket.
    #[must_use]
    pub fn projects(&self) -> PathBuf {
        self.layout.virtual_path(PROJECTS)
    }

    /// Returns the folders in which the projects appear: of an archive in a bucket, one for each machine.
    ///
    /// # Errors
    /// When the archive is in a bucket and cannot be opened.
    pub fn all_projects(&self) -> io::Result<Vec<PathBuf>> {
        let tops = self.tops()?.into_iter();
        Ok(tops.map(|top| top.join(PROJECTS)).collect())
    }

    /// Returns the folders in which the files of an agent appear, as they lie in its home folder: of an archive in a bucket, one for
    /// each machine.
    ///
    /// # Errors
    /// When the archive is in a bucket and cannot be opened.
    pub fn homes(&self, agent: &str) -> io::Result<Vec<PathBuf>> {
        let tops = self.tops()?.into_iter();
        Ok(tops.map(|top| top.join(AGENTS).join(agent)).collect())
    }

    /// Returns the names of the machines that captured in the archive, sorted; none in one that is not in a bucket.
    ///
    /// # Errors
    /// When the archive cannot be opened.
    pub fn machines(&self) -> io::Result<Vec<String>> {
        let names = self.archive()?.catalogue.files.keys();
        let machines = names.filter_map(|name| Some(on_machine(name).0?.to_owned()));
        let machines: BTreeSet<String> = machines.collect();
        Ok(machines.into_iter().collect())
    }

    /// Returns the folders in which `projects`, `tasks`, `agents` and the others appear.
    fn tops(&self) -> io::Result<Vec<PathBuf>> {
        if !self.in_bucket {
            return Ok(vec![self.layout.folder.clone()]);
        }
        let folder = self.layout.virtual_path(MACHINES);
        let machines = self.machines()?.into_iter();
        Ok(machines.map(|name| folder.join(name)).collect())
    }

    /// Returns the name of the machine that captured what appears at a path, if the archive is in a bucket, and the path below the folder
    /// of that machine; `None` for a path outside of the archive.
    #[must_use]
    pub fn place_of(&self, path: &Path) -> Option<(Option<String>, PathBuf)> {
        let name = self.layout.path_in_archive(path)?.name;
        let (machine, below) = on_machine(&name);
        Some((machine.map(str::to_owned), below.into()))
    }

    /// Returns whether another machine captured what appears at a path, so that what it says of folders is about those of that machine.
    #[must_use]
    pub fn is_of_other_machine(&self, path: &Path) -> bool {
        let place = self.place_of(path);
        let machine = place.and_then(|(machine, _)| machine);
        machine.is_some() && machine.as_deref() != self.options.machine_name()
    }

    /// Returns the path below the folder of projects of what appears at a path; `None` for a path elsewhere.
    #[must_use]
    pub fn below_projects(&self, path: &Path) -> Option<PathBuf> {
        let (_, place) = self.place_of(path)?;
        Some(place.strip_prefix(PROJECTS).ok()?.to_owned())
    }

    /// Returns the path below the home folder of an agent of what appears at a path; `None` for a path elsewhere.
    #[must_use]
    pub fn below_home(&self, agent: &str, path: &Path) -> Option<PathBuf> {
        let (_, place) = self.place_of(path)?;
        let home = Path::new(AGENTS).join(agent);
        Some(place.strip_prefix(home).ok()?.to_owned())
    }

    /// Returns the folder in which everything appears as it was at a time; `path` is one that appears in the archive.
    #[must_use]
    pub fn as_of(&self, path: &Path, time: SystemTime) -> Option<PathBuf> {
        let name = self.layout.path_in_archive(path)?.name;
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since.as_millis()).ok()?;
        Some(self.layout.as_of(millis).join(name))
    }

    /// Returns the time of a path that is one of [`as_of`](Self::as_of).
    #[must_use]
    pub fn time_of(&self, path: &Path) -> Option<SystemTime> {
        let millis = self.layout.path_in_archive(path)?.until?;
        UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(millis).ok()?))
    }

    /// Returns the versions of a file, the oldest first; none if it is not archived.
    ///
    /// # Errors
    /// When the archive cannot be opened.
    pub fn versions(&self, path: &Path) -> io::Result<Vec<FileVersion>> {
        let Some(inside) = self.inside(path) else {
            return Ok(Vec::new());
        };
        let archive = self.archive()?;
        let ids = archive.catalogue.files.get(&inside.name);
        let ids = ids.into_iter().flatten();
        let versions = ids.filter_map(|id| {
            let version = archive.version(*id)?;
            Some(FileVersion {
                captured: archive.captured(*id),
                modified: modified(&version.state),
                len: version.len,
                whole: version.len - version.partial.min(version.len),
                kept: version.before.map_or(0, |before| before.keep),
                summary: archive.summary(*id).unwrap_or_default(),
            })
        });
        Ok(versions.collect())
    }

    /// Returns the archive.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn archive(&self) -> io::Result<&Arc<Archive>> {
        let open = || {
            let archive = Archive::open_with(&self.layout.folder, &self.options);
            let archive = archive.and_then(|archive| {
                // Without a key nothing can be read. Said once here, and not by each file.
                archive.check_readable()?;
                Ok(archive)
            });
            // As text, because each call returns the error again.
            archive.map(Arc::new).map_err(|error| error.to_string())
        };
        let archive = self.archive.get_or_init(open).as_ref();
        archive.map_err(|error| io::Error::other(error.clone()))
    }

    /// Returns the summary of the newest version of a file
    /// ([`CaptureOptions::summarize`](crate::CaptureOptions::summarize)).
    #[must_use]
    pub fn summary(&self, path: &Path) -> Option<Vec<u8>> {
        let inside = self.inside(path)?;
        let archive = self.archive().ok()?;
        let id = archive.catalogue.newest_until(&inside.name, inside.until)?;
        archive.summary(id)
    }

    /// Returns the path in the archive, if it is there that `path` leads.
    pub(crate) fn inside(&self, path: &Path) -> Option<ArchivePath> {
        let inside = self.layout.path_in_archive(path)?;
        // Without an archive the folder is an ordinary one.
        let is_open = self.in_bucket || self.archive.get().is_some();
        let is_archive = is_open || self.real.exists(&self.layout.marker());
        is_archive.then_some(inside)
    }

    fn found(&self, inside: &ArchivePath) -> io::Result<ArchivedPath> {
        let ArchivePath { name, until } = inside;
        let archive = self.archive()?;
        if let Some(id) = archive.catalogue.newest_until(name, *until) {
            return Ok(ArchivedPath::File(id));
        }
        let below = format!("{name}/");
        // The archive has files only. A folder exists if a file is below it.
        let files = archive.catalogue.files.range(below.clone()..);
        let files = files.take_while(|(name, _)| name.starts_with(&below));
        let is_there = |name: &String| archive.catalogue.newest_until(name, *until).is_some();
        if files.map(|(name, _)| name).any(is_there) {
            Ok(ArchivedPath::Folder(below))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    /// Returns the files that were left behind by a move, as of a time.
    fn moved(&self, archive: &Archive, until: Option<i64>) -> Arc<HashSet<String>> {
        let mut known = lock(&self.moved);
        let moved = known.entry(until).or_insert_with(|| {
            let moved = archive.left_behind_until(until).into_iter();
            Arc::new(moved.map(str::to_owned).collect())
        });
        Arc::clone(moved)
    }

    fn metadata_of(&self, inside: &ArchivePath) -> io::Result<Metadata> {
        match self.found(inside)? {
            ArchivedPath::Folder(_) => Ok(Metadata::of_folder_in_memory()),
            ArchivedPath::File(id) => {
                let archive = self.archive()?;
                let version = archive.version(id).ok_or(io::ErrorKind::NotFound)?;
                Ok(metadata(id, version))
            }
        }
    }
}

/// A version of an archived file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileVersion {
    /// When it was captured.
    pub captured: SystemTime,
    /// When the file was last changed before, where the system said so. `None` for a file that was gone by then.
    pub modified: Option<SystemTime>,
    /// Its length in bytes.
    pub len: u64,
    /// The number of bytes in whole lines, from its start on.
    pub whole: u64,
    /// The number of bytes at its start that the version before it has as well.
    pub kept: u64,
    /// What the caller said about it ([`CaptureOptions::summarize`](crate::CaptureOptions::summarize)).
    pub summary: Vec<u8>,
}

/// A path in the archive that exists.
enum ArchivedPath {
    File(VersionId),
    /// With a slash at its end.
    Folder(String),
}

impl ReadDisk for ArchiveDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let Some(inside) = self.inside(path) else {
            return self.real.open_to_read(path);
        };
        let ArchivedPath::File(id) = self.found(&inside)? else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let archive = self.archive()?;
        let version = archive.version(id).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(ArchivedFile {
            metadata: metadata(id, version),
            // Fixed when it is opened: a capture that adds a version does not change an open file.
            pieces: archive.pieces(id)?,
            archive: Arc::clone(archive),
        }))
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let Some(inside) = self.inside(folder) else {
            return self.real.list(folder);
        };
        let ArchivedPath::Folder(below) = self.found(&inside)? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let archive = self.archive()?;
        let files = archive.catalogue.files.range(below.clone()..);
        let moved = self.moved(archive, inside.until);
        let files = files.take_while(|(name, _)| name.starts_with(&below));
        let files = files.filter(|(name, _)| !moved.contains(*name));
        let entries = files.filter_map(|(name, _)| {
            let version = archive.catalogue.newest_until(name, inside.until)?;
            let name = &name[below.len()..];
            Some(match name.split_once('/') {
                Some((folder, _)) => (folder, None),
                None => (name, Some(version)),
            })
        });
        let entries: BTreeMap<&str, Option<VersionId>> = entries.collect();
        let entries = entries.into_iter().map(|(name, file)| {
            let version = file.and_then(|id| Some(metadata(id, archive.version(id)?)));
            Ok(DirEntry {
                name: OsString::from(name),
                kind: match file {
                    Some(_) => FileKind::File,
                    None => FileKind::Folder,
                },
                metadata: match file {
                    Some(_) => version,
                    None => Some(Metadata::of_folder_in_memory()),
                },
            })
        });
        let entries: Vec<_> = entries.collect();
        Ok(Box::new(entries.into_iter()))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.inside(path) {
            Some(inside) => self.metadata_of(&inside),
            None => self.real.metadata(path),
        }
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        Some(self)
    }
}

impl LocalDisk for ArchiveDisk {
    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.inside(path) {
            Some(inside) => self.metadata_of(&inside),
            None => LocalDisk::link_metadata(&self.real, path),
        }
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        match self.inside(path) {
            Some(inside) => self.metadata_of(&inside).map(|_| path.to_owned()),
            None => LocalDisk::real_path(&self.real, path),
        }
    }
}

/// Returns the identity of a version, which no file outside has.
fn identity(id: VersionId) -> Identity {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&id.pack.to_le_bytes());
    bytes[4..8].copy_from_slice(&id.version.to_le_bytes());
    Identity::of_version(bytes)
}

fn metadata(id: VersionId, version: &Version) -> Metadata {
    Metadata {
        kind: FileKind::File,
        len: version.len,
        modified: modified(&version.state),
        changed: None,
        mode: version.state.mode,
        identity: identity(id),
    }
}

/// Returns the time of the last change of the content.
pub(crate) fn modified(state: &FileState) -> Option<SystemTime> {
    let (seconds, nanos) = state.modified?;
    let nanos = Duration::from_nanos(nanos.into());
    let time = match u64::try_from(seconds) {
        Ok(seconds) => UNIX_EPOCH.checked_add(Duration::from_secs(seconds)),
        Err(_) => UNIX_EPOCH.checked_sub(Duration::from_secs(seconds.unsigned_abs())),
    };
    time?.checked_add(nanos)
}

/// Returns whether an error means that a part of the archive is damaged or missing.
fn is_lost(error: &io::Error) -> bool {
    let kinds = [
        io::ErrorKind::InvalidData,
        io::ErrorKind::NotFound,
        io::ErrorKind::UnexpectedEof,
    ];
    kinds.contains(&error.kind())
}

/// Fills a buffer in place of a lost part: NULs, as after a power cut, and at its end as many line feeds as it had. So
/// readers see one damaged line, and everything else where it was.
fn fill_lost(pieces: &[Piece], offset: u64, buffer: &mut [u8]) -> usize {
    let at = pieces.partition_point(|piece| piece.end() <= offset);
    let Some(piece) = pieces.get(at) else {
        return 0;
    };
    let end = piece.end();
    let len = usize::try_from(end - offset).map_or(buffer.len(), |left| left.min(buffer.len()));
    let feeds = end - piece.lines.min(piece.len);
    for (at, byte) in (offset..end).zip(&mut buffer[..len]) {
        *byte = if at < feeds { 0 } else { b'\n' };
    }
    len
}

/// A version of a file, open for reading. What is lost of it reads as NULs.
#[derive(Debug)]
struct ArchivedFile {
    archive: Arc<Archive>,
    metadata: Metadata,
    pieces: Vec<Piece>,
}

impl ReadFile for ArchivedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self.archive.read_pieces(&self.pieces, offset, buffer) {
            Err(error) if is_lost(&error) => Ok(fill_lost(&self.pieces, offset, buffer)),
            read => read,
        }
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(self.metadata)
    }
}
