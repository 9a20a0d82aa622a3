//! The newest versions of files, as a disk to read from.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use transcript_storage::{
    DirEntry, Entries, FileKind, Identity, LocalDisk, Metadata, ReadDisk, ReadFile, RealDisk,
};

use crate::archive::{Archive, ArchiveOptions};
use crate::catalogue::{Piece, VersionId};
use crate::layout::Layout;
use crate::record::{FileState, Version};

/// A disk on which the folder of an archive has the folders `projects`, `tasks`, `file-history` and `todos`, with the
/// newest versions of all archived files. Everywhere else it is the disk of this machine.
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
    /// The files of sessions that were moved to another project, which has them as well.
    moved: OnceLock<HashSet<String>>,
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
            options,
            archive: OnceLock::new(),
            moved: OnceLock::new(),
            real: RealDisk,
        }
    }

    /// Shows an archive that is open.
    #[must_use]
    pub fn of(archive: Arc<Archive>) -> Self {
        Self {
            layout: archive.layout.clone(),
            options: ArchiveOptions::new(),
            archive: OnceLock::from(Ok(archive)),
            moved: OnceLock::new(),
            real: RealDisk,
        }
    }

    /// Returns the folder of the archive.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.layout.folder
    }

    /// Returns the folder in which the projects appear.
    #[must_use]
    pub fn projects(&self) -> PathBuf {
        self.layout.virtual_path("projects")
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
        let name = self.inside(path)?;
        let archive = self.archive().ok()?;
        archive.summary(archive.catalogue.newest(&name)?)
    }

    /// Returns the path in the archive, if it is there that `path` leads.
    pub(crate) fn inside(&self, path: &Path) -> Option<String> {
        let name = self.layout.path_in_archive(path)?;
        // Without an archive the folder is an ordinary one.
        let is_archive = self.archive.get().is_some() || self.real.exists(&self.layout.marker());
        is_archive.then_some(name)
    }

    fn found(&self, name: &str) -> io::Result<ArchivedPath> {
        let archive = self.archive()?;
        if let Some(id) = archive.catalogue.newest(name) {
            return Ok(ArchivedPath::File(id));
        }
        let below = format!("{name}/");
        // The archive has files only. A folder exists if a file is below it.
        let mut files = archive.catalogue.files.range(below.clone()..);
        match files.next() {
            Some((first, _)) if first.starts_with(&below) => Ok(ArchivedPath::Folder(below)),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn metadata_of(&self, name: &str) -> io::Result<Metadata> {
        match self.found(name)? {
            ArchivedPath::Folder(_) => Ok(Metadata::of_folder_in_memory()),
            ArchivedPath::File(id) => {
                let archive = self.archive()?;
                let version = archive.version(id).ok_or(io::ErrorKind::NotFound)?;
                Ok(metadata(id, version))
            }
        }
    }
}

/// A path in the archive that exists.
enum ArchivedPath {
    File(VersionId),
    /// With a slash at its end.
    Folder(String),
}

impl ReadDisk for ArchiveDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let Some(name) = self.inside(path) else {
            return self.real.open_to_read(path);
        };
        let ArchivedPath::File(id) = self.found(&name)? else {
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
        let Some(name) = self.inside(folder) else {
            return self.real.list(folder);
        };
        let ArchivedPath::Folder(below) = self.found(&name)? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let archive = self.archive()?;
        let files = archive.catalogue.files.range(below.clone()..);
        let moved = self.moved.get_or_init(|| {
            let moved = archive.newest_left_behind().into_iter();
            moved.map(str::to_owned).collect()
        });
        let files = files.take_while(|(name, _)| name.starts_with(&below));
        let files = files.filter(|(name, _)| !moved.contains(*name));
        let entries = files.map(|(name, _)| match name[below.len()..].split_once('/') {
            Some((folder, _)) => (folder, None),
            None => (&name[below.len()..], archive.catalogue.newest(name)),
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
            Some(name) => self.metadata_of(&name),
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
            Some(name) => self.metadata_of(&name),
            None => LocalDisk::link_metadata(&self.real, path),
        }
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        match self.inside(path) {
            Some(name) => self.metadata_of(&name).map(|_| path.to_owned()),
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
