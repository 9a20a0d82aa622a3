//! A disk in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::changes::{Change, Reporter, Subscribers};
use crate::disk::{DirEntry, Disk, Entries, LocalDisk, Opened, ReadDisk};
use crate::file::{File, FileKind, Identity, Metadata, ReadFile, Status, folder_of};
use crate::new_file::{NewFile, UnnamedFile};

/// A disk in memory. Clones are the same disk.
///
/// A file may have several names, and there are no symbolic links. Folders have no times and no modes. Names are compared as
/// they are given, so paths should be absolute. It reports all changes of files and their names. Nothing fails but what cannot be done, and equal calls give
/// equal results: the times of files count the changes of the disk in seconds.
#[derive(Clone, Default)]
pub struct MemoryDisk(Arc<DiskState>);

#[derive(Default)]
struct DiskState {
    names: RwLock<FilesByPath>,
    clock: Clock,
    subscribers: Subscribers,
}

/// The files by their names; `None` is a folder. Each path above a name is a folder.
type FilesByPath = BTreeMap<PathBuf, Option<Arc<MemoryFile>>>;

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
    /// The number of its names.
    names: usize,
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

    fn set_properties(&self, modified: Option<SystemTime>, mode: Option<u32>) {
        let mut content = self.content_mut();
        content.modified = modified.unwrap_or(content.modified);
        content.mode = mode.unwrap_or(content.mode);
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
        self.name(path.as_ref(), self.create(bytes.into()));
    }

    /// Returns the bytes of a file; `None` when it does not exist.
    #[must_use]
    pub fn bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let file = self.file(path.as_ref()).ok()?;
        let content = file.content();
        Some(content.bytes.clone())
    }

    fn names(&self) -> RwLockReadGuard<'_, FilesByPath> {
        self.0.names.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn names_mut(&self) -> RwLockWriteGuard<'_, FilesByPath> {
        self.0.names.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, path: &Path) -> io::Result<Arc<MemoryFile>> {
        let file = self.names().get(path).cloned().flatten();
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, bytes: Vec<u8>) -> Arc<MemoryFile> {
        let now = self.0.clock.now();
        let identity = Identity::of_file(Some((0, self.0.clock.tick())), Some(now));
        let content = Content {
            bytes,
            modified: now,
            // As the client creates its files (FILE-14).
            mode: 0o600,
            names: 0,
            lock: None,
            handles: 0,
        };
        Arc::new(MemoryFile {
            identity,
            content: RwLock::new(content),
        })
    }

    /// Gives a file a name. A file that had it before loses it.
    fn name(&self, path: &Path, file: Arc<MemoryFile>) {
        self.add_folders(path);
        file.content_mut().names += 1;
        let old = self.names_mut().insert(path.to_owned(), Some(file));
        // The file itself stays while a handle or another name keeps it.
        if let Some(Some(old)) = old {
            old.content_mut().names -= 1;
        }
        self.report_name(path);
    }

    fn report_name(&self, path: &Path) {
        self.0.subscribers.report(Change::Name(path.to_owned()));
    }

    /// Reports that a file changed, under each of its names.
    fn report_content(&self, file: &Arc<MemoryFile>) {
        // The names are found by a walk over all files, which only a subscriber needs.
        if self.0.subscribers.is_empty() {
            return;
        }
        let is_of = |named: &Option<Arc<MemoryFile>>| {
            named.as_ref().is_some_and(|named| Arc::ptr_eq(named, file))
        };
        // The lock is released before the reports: a subscriber may look at the disk at once.
        let names: Vec<PathBuf> = {
            let names = self.names();
            let named = names.iter().filter(|(_, named)| is_of(named));
            named.map(|(path, _)| path.clone()).collect()
        };
        for path in names {
            self.0.subscribers.report(Change::Content(path));
        }
    }

    /// Gives a file a name that nothing has.
    fn name_new(&self, path: &Path, file: Arc<MemoryFile>) -> io::Result<()> {
        if self.metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_folder(path)?;
        self.name(path, file);
        Ok(())
    }

    /// Creates the folders above a name.
    fn add_folders(&self, path: &Path) {
        let mut names = self.names_mut();
        // Folders exist by themselves, so that an empty one can be created, listed and removed.
        for folder in path.ancestors().skip(1) {
            names.entry(folder.to_owned()).or_default();
        }
    }

    /// Opens a file for appending.
    fn handle(&self, file: Arc<MemoryFile>) -> Handle {
        file.content_mut().handles += 1;
        Handle {
            file,
            number: self.0.clock.tick(),
            position: AtomicU64::new(0),
            disk: self.clone(),
        }
    }

    /// Removes a name; returns the file, which other names or handles may keep.
    fn unlink(&self, path: &Path) -> io::Result<Arc<MemoryFile>> {
        let file = self.file(path)?;
        self.names_mut().remove(path);
        file.content_mut().names -= 1;
        self.report_name(path);
        Ok(file)
    }

    /// Refuses to create `path` where a file is in place of its folder.
    fn check_folder(&self, path: &Path) -> io::Result<()> {
        let names = self.names();
        let mut above = path.ancestors().skip(1);
        if above.any(|above| names.get(above).is_some_and(Option::is_some)) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(())
    }

    /// Refuses to replace a folder by a file.
    fn check_replaced(&self, path: &Path) -> io::Result<()> {
        if self.is_folder(path) {
            Err(io::ErrorKind::IsADirectory.into())
        } else {
            Ok(())
        }
    }

    /// Refuses to create a name in a folder that does not exist.
    fn check_has_folder(&self, path: &Path) -> io::Result<()> {
        self.check_folder(path)?;
        if self.is_folder(folder_of(path)) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
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
            Some(DirEntry {
                name,
                kind,
                metadata: None,
            })
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
        if names.get(folder).ok_or(io::ErrorKind::NotFound)?.is_some() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        // Paths are in the order of their parts, so all that is below the folder follows it.
        let below = names.range(folder.to_owned()..);
        let below = below.take_while(|(path, _)| path.starts_with(folder));
        let of_folder = below.filter(|(path, _)| path.parent() == Some(folder));
        let entries = of_folder.filter_map(|(path, file)| {
            let name = path.file_name()?.to_owned();
            let metadata = match file {
                Some(file) => file.metadata(),
                None => Ok(Metadata::of_folder_in_memory()),
            };
            Some(metadata.map(|metadata| DirEntry {
                name,
                kind: metadata.kind,
                metadata: Some(metadata),
            }))
        });
        Ok(Box::new(entries.collect::<Vec<_>>().into_iter()))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let found = self.names().get(path).cloned();
        match found.ok_or(io::ErrorKind::NotFound)? {
            Some(file) => file.metadata(),
            None => Ok(Metadata::of_folder_in_memory()),
        }
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        None
    }

    fn reporter(&self) -> Reporter {
        Reporter::Disk(Arc::new(self.0.subscribers.clone()))
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
                self.name(path, Arc::clone(&file));
                (file, true)
            }
        };
        // As on a real disk: an entry of one session would be shown in the other as well.
        if file.content().names > 1 {
            let reason = "it has several names";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        // Before the handle of this call counts.
        let has_other_writer = file.content().handles > 0;
        Ok(Opened {
            file: Arc::new(self.handle(file)),
            is_new,
            has_other_writer: Some(has_other_writer),
            is_remote: false,
            others_may_write: false,
        })
    }

    fn open_cache(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.check_has_folder(path)?;
        if self.is_folder(path) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = self.file(path).or_else(|_| {
            let file = self.create(Vec::new());
            self.name_new(path, Arc::clone(&file)).map(|()| file)
        })?;
        Ok(Arc::new(self.handle(file)))
    }

    // Nothing survives the process, so nothing is synced; but the name must exist as on other disks.
    fn sync_name(&self, path: &Path) -> io::Result<()> {
        self.metadata(path).map(|_| ())
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.name_new(path, self.create(bytes.to_owned()))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.metadata(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_folder(to)?;
        self.rename(from, to)
    }

    fn new_file(&self, path: &Path) -> io::Result<NewFile> {
        self.check_has_folder(path)?;
        Ok(NewFile::of_disk(Box::new(Unnamed {
            disk: self.clone(),
            file: self.create(Vec::new()),
        })))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_has_folder(to)?;
        self.name_new(to, self.file(from)?)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.list(folder).map(|_| ())
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
        file.set_properties(modified, mode);
        self.report_content(&file);
        Ok(())
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let below = path.join("file");
        self.check_folder(&below)?;
        self.add_folders(&below);
        self.report_name(path);
        Ok(())
    }

    fn create_new_folder(&self, path: &Path, _mode: Option<u32>) -> io::Result<()> {
        if self.metadata(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_has_folder(path)?;
        self.names_mut().insert(path.to_owned(), None);
        self.report_name(path);
        Ok(())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        if self.list(path)?.next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.names_mut().remove(path);
        self.report_name(path);
        Ok(())
    }

    fn remove_folder_with_content(&self, path: &Path) -> io::Result<()> {
        drop(self.list(path)?);
        let mut names = self.names_mut();
        let below = names.range(path.to_owned()..);
        let below = below.take_while(|(name, _)| name.starts_with(path));
        let below: Vec<PathBuf> = below.map(|(name, _)| name.clone()).collect();
        let removed = below.iter().filter_map(|name| names.remove(name));
        for file in removed.flatten() {
            file.content_mut().names -= 1;
        }
        // A subscriber may look at the disk at once.
        drop(names);
        for name in &below {
            self.report_name(name);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.unlink(path).map(|_| ())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_replaced(to)?;
        // To rename a file to its own name does nothing; here it would lose that name first.
        if from != to {
            let file = self.unlink(from)?;
            self.name(to, file);
        }
        Ok(())
    }
}

impl ReadFile for MemoryFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let content = self.content();
        let bytes = &content.bytes;
        // Beyond the end nothing is read, as on a file system: the file may have become shorter.
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

/// A file before it has a name.
#[derive(Debug)]
struct Unnamed {
    disk: MemoryDisk,
    file: Arc<MemoryFile>,
}

impl UnnamedFile for Unnamed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.content_mut().bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn set_properties(&self, modified: Option<SystemTime>, mode: Option<u32>) -> io::Result<()> {
        self.file.set_properties(modified, mode);
        Ok(())
    }

    fn reader(&self) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::clone(&self.file) as _)
    }

    fn keep(self: Box<Self>, path: &Path) -> io::Result<()> {
        self.disk.name_new(path, self.file)
    }

    fn replace(self: Box<Self>, path: &Path) -> io::Result<()> {
        self.disk.check_replaced(path)?;
        self.disk.name(path, self.file);
        Ok(())
    }
}

/// A file that is open for appending.
#[derive(Debug)]
struct Handle {
    file: Arc<MemoryFile>,
    number: u64,
    /// The offset after the last append.
    position: AtomicU64,
    disk: MemoryDisk,
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
        content.modified = self.disk.0.clock.now();
        let end = content.bytes.len() as u64;
        self.position.store(end, Ordering::Relaxed);
        drop(content);
        self.disk.report_content(&self.file);
        Ok(bytes.len())
    }

    fn position(&self) -> io::Result<u64> {
        Ok(self.position.load(Ordering::Relaxed))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut content = self.file.content_mut();
        content.bytes.resize(len, 0);
        content.modified = self.disk.0.clock.now();
        drop(content);
        self.disk.report_content(&self.file);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn status(&self) -> io::Result<Status> {
        let content = self.file.content();
        Ok(Status {
            len: content.bytes.len() as u64,
            is_linked: content.names > 0,
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
