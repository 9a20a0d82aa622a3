//! A disk in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::disk::{
    DirEntry, Disk, Entries, File, FileKind, Identity, Metadata, Opened, ReadDisk, ReadFile, Status,
};

/// A disk in memory. Clones are the same disk.
///
/// A folder exists as long as it has a file; there are no links. Names are compared as they are
/// given, so paths should be absolute. Nothing fails but what cannot be done, and equal calls give
/// equal results: the times of files count the changes of the disk in seconds.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<Shared>);

#[derive(Default)]
struct Shared {
    names: RwLock<BTreeMap<PathBuf, Arc<MemoryFile>>>,
    clock: Clock,
}

/// Counts the changes of a disk, and the files and handles on it.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.tick())
    }
}

/// A file, whatever its names.
struct MemoryFile {
    identity: Identity,
    content: RwLock<Content>,
}

struct Content {
    bytes: Vec<u8>,
    modified: SystemTime,
    mode: u32,
    is_linked: bool,
    /// The handle that holds the lock.
    lock: Option<u64>,
    /// The number of handles that may write.
    handles: usize,
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryDisk")
    }
}

// Omits the bytes, because they are part of a conversation.
impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryFile").field(&self.identity).finish()
    }
}

impl MemoryFile {
    fn content(&self) -> RwLockReadGuard<'_, Content> {
        // A panic of another thread leaves no inconsistent content.
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn content_mut(&self) -> RwLockWriteGuard<'_, Content> {
        self.content.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryDisk {
    /// Creates an empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a file. A file that had the name before loses it.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        self.link(path.as_ref(), self.create(bytes.into()));
    }

    /// Returns the bytes of a file; `None` when it does not exist.
    #[must_use]
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let file = self.file(path.as_ref()).ok()?;
        let content = file.content();
        Some(content.bytes.clone())
    }

    fn names(&self) -> RwLockReadGuard<'_, BTreeMap<PathBuf, Arc<MemoryFile>>> {
        self.0.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn names_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<PathBuf, Arc<MemoryFile>>> {
        self.0.names.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, path: &Path) -> io::Result<Arc<MemoryFile>> {
        let file = self.names().get(path).cloned();
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, bytes: Vec<u8>) -> Arc<MemoryFile> {
        let now = self.0.clock.now();
        let identity = Identity {
            number: Some((0, self.0.clock.tick())),
            created: Some(now),
        };
        let content = Content {
            bytes,
            modified: now,
            mode: 0o600,
            is_linked: true,
            lock: None,
            handles: 0,
        };
        Arc::new(MemoryFile {
            identity,
            content: RwLock::new(content),
        })
    }

    fn link(&self, path: &Path, file: Arc<MemoryFile>) {
        if let Some(old) = self.names_mut().insert(path.to_owned(), file) {
            old.content_mut().is_linked = false;
        }
    }

    /// Removes a name; returns the file, which other names or handles may keep.
    fn unlink(&self, path: &Path) -> io::Result<Arc<MemoryFile>> {
        let file = self.names_mut().remove(path);
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        file.content_mut().is_linked = false;
        Ok(file)
    }

    /// Refuses to create `path` where a file is in place of its folder.
    fn check_folder(&self, path: &Path) -> io::Result<()> {
        let names = self.names();
        let mut above = path.ancestors().skip(1);
        if above.any(|above| names.contains_key(above)) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(())
    }
}

/// Returns the entries of a folder on a disk that has these files, sorted by name.
///
/// # Errors
/// When no file is below the folder.
pub fn entries_below<'a>(
    folder: &Path,
    files: impl Iterator<Item = &'a PathBuf>,
) -> io::Result<Vec<DirEntry>> {
    let below = files.filter_map(|file| file.strip_prefix(folder).ok());
    let mut entries: Vec<DirEntry> = below
        .filter_map(|below| {
            let mut parts = below.iter();
            let name = parts.next()?.to_owned();
            let kind = match parts.next() {
                Some(_) => FileKind::Folder,
                None => FileKind::File,
            };
            Some(DirEntry { name, kind })
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries.dedup_by(|a, b| a.name == b.name);
    if entries.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(entries)
}

impl ReadDisk for MemoryDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        Ok(self.file(path)?)
    }

    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let names = self.names();
        if names.contains_key(folder) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let below = names.range(folder.to_owned()..).map(|(path, _)| path);
        let below = below.take_while(|path| path.starts_with(folder));
        Ok(Box::new(entries_below(folder, below)?.into_iter().map(Ok)))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        if let Ok(file) = self.file(path) {
            return file.metadata();
        }
        let _entries = self.list(path)?;
        Ok(Metadata::of_folder_in_memory())
    }

    fn link_metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.metadata(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.metadata(path)?;
        Ok(path.to_owned())
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, create: bool) -> io::Result<Opened> {
        if self.is_folder(path) {
            let reason = "it is a folder";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let (file, is_new) = match self.file(path) {
            Ok(file) => (file, false),
            Err(error) if !create => return Err(error),
            Err(_) => {
                self.check_folder(path)?;
                let file = self.create(Vec::new());
                self.link(path, Arc::clone(&file));
                (file, true)
            }
        };
        let has_other_writer = {
            let mut content = file.content_mut();
            content.handles += 1;
            content.handles > 1
        };
        let handle = Handle {
            file,
            number: self.0.clock.tick(),
            position: AtomicU64::new(0),
            clock: self.0.clock.clone(),
        };
        Ok(Opened {
            file: Arc::new(handle),
            is_new,
            has_other_writer: Some(has_other_writer),
            is_remote: false,
            others_may_write: false,
        })
    }

    fn sync_name(&self, path: &Path) -> io::Result<()> {
        self.metadata(path).map(|_| ())
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if self.metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_folder(path)?;
        self.put(path, bytes);
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.metadata(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_folder(to)?;
        self.rename(from, to)
    }

    fn set_properties(
        &self,
        path: &Path,
        modified: Option<SystemTime>,
        mode: Option<u32>,
    ) -> io::Result<()> {
        let Ok(file) = self.file(path) else {
            // A folder is nothing of its own here.
            return self.metadata(path).map(|_| ());
        };
        let mut content = file.content_mut();
        content.modified = modified.unwrap_or(content.modified);
        content.mode = mode.unwrap_or(content.mode);
        Ok(())
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.check_folder(&path.join("file"))
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        match self.list(path) {
            Ok(_) => Err(io::ErrorKind::DirectoryNotEmpty.into()),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.unlink(path).map(|_| ())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.is_folder(to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if from != to {
            let file = self.unlink(from)?;
            file.content_mut().is_linked = true;
            self.link(to, file);
        }
        Ok(())
    }
}

impl ReadFile for MemoryFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let content = self.content();
        let bytes = &content.bytes;
        let start = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
        let len = buffer.len().min(bytes.len() - start);
        buffer[..len].copy_from_slice(&bytes[start..start + len]);
        Ok(len)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let content = self.content();
        Ok(Metadata {
            kind: FileKind::File,
            len: content.bytes.len() as u64,
            modified: Some(content.modified),
            changed: Some(content.modified),
            mode: Some(content.mode),
            identity: self.identity,
        })
    }
}

/// A file that is open for appending.
#[derive(Debug)]
struct Handle {
    file: Arc<MemoryFile>,
    number: u64,
    /// The offset after the last append.
    position: AtomicU64,
    clock: Clock,
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut content = self.file.content_mut();
        content.handles -= 1;
        content.lock = content.lock.filter(|owner| *owner != self.number);
    }
}

impl ReadFile for Handle {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
}

impl File for Handle {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut content = self.file.content_mut();
        content.bytes.extend_from_slice(bytes);
        content.modified = self.clock.now();
        let end = content.bytes.len() as u64;
        self.position.store(end, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn position(&self) -> io::Result<u64> {
        Ok(self.position.load(Ordering::Relaxed))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut content = self.file.content_mut();
        content.bytes.resize(len, 0);
        content.modified = self.clock.now();
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn status(&self) -> io::Result<Status> {
        let content = self.file.content();
        Ok(Status {
            len: content.bytes.len() as u64,
            is_linked: content.is_linked,
        })
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut content = self.file.content_mut();
        Ok(*content.lock.get_or_insert(self.number) == self.number)
    }

    fn unlock(&self) -> io::Result<()> {
        let mut content = self.file.content_mut();
        content.lock = content.lock.filter(|owner| *owner != self.number);
        Ok(())
    }
}
