//! A cache of values about files in the cache folder, and the rules by which its records are still valid.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use transcript_reader::{Error, Source};

use crate::content::Content;
use crate::files::Catalog;
use crate::sidecar::{
    FileVersion, FoundRecord, Piece, Record, Records, Sidecar, SidecarKind, StoredPiece,
};

/// The length at which a piece ends, in bytes. A piece is the part of a file with a cache entry of its own.
const PIECE_LEN: u64 = 1 << 20;
/// The minimum age of the last change of a file. A younger file may change again without a new modification time.
pub(crate) const SETTLED_AGE: Duration = Duration::from_secs(2);
/// The minimum length of the rest of a file that is being written, in bytes. A shorter one is read each time.
const MIN_KEPT_REST: u64 = 64 << 10;
/// The age of the last change from which a file counts as not being written.
const QUIET_AGE: Duration = Duration::from_secs(60);
/// The maximum number of pieces of a record.
const MAX_PIECES: usize = 64;
/// The size of reads for comparisons, in bytes.
const READ_SIZE: usize = 256 << 10;
/// The length at which a batch of records is written, in bytes.
const READ_BATCH_LEN: usize = 1 << 20;

/// A cache of values about the files of a catalog, one cache file for each project folder.
pub(crate) struct Cache<'c, K> {
    pub(crate) catalog: &'c Catalog,
    folders: Vec<CacheFolder<K>>,
    /// The folder of each session.
    folder_of: Vec<usize>,
    /// Converts a payload to the value that is kept in memory.
    see: LoadPayload<'c, K>,
    /// Whether records of deleted files are kept.
    keeps_gone: bool,
    now: SystemTime,
    /// Whether the cache folder cannot be written.
    is_off: AtomicBool,
}

type LoadPayload<'c, K> = Box<dyn Fn(&[u8]) -> K + Send + Sync + 'c>;

impl<K: fmt::Debug> fmt::Debug for Cache<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("folders", &self.folders)
            .finish_non_exhaustive()
    }
}

/// A project folder.
#[derive(Debug)]
struct CacheFolder<K> {
    path: PathBuf,
    sidecar: Sidecar,
    records: OnceLock<Records<StoredPiece<K>>>,
    new: Mutex<UnwrittenRecords>,
}

/// Records that are not written yet.
#[derive(Debug, Default)]
struct UnwrittenRecords {
    bytes: Vec<u8>,
    /// The known length of the file.
    end: Option<u64>,
    has_written: bool,
}

/// The cached knowledge about a file.
#[derive(Debug)]
pub(crate) enum Lookup<K> {
    /// Nothing can be kept.
    Unknown,
    /// Nothing that is still true.
    New(FileVersion),
    /// A line of it is damaged, and it has not changed.
    Damaged(Vec<StoredPiece<K>>),
    Known(KnownFile<K>),
}

/// The cached knowledge about the start of a file.
#[derive(Debug)]
pub(crate) struct KnownFile<K> {
    pub(crate) state: FileVersion,
    /// From the start of the file on, without gaps.
    pub(crate) pieces: Vec<StoredPiece<K>>,
    /// The number of bytes after them.
    pub(crate) rest: u64,
    /// Whether the file has not changed.
    is_same: bool,
    is_quiet: bool,
    /// The checksum of the newest record.
    newest: u64,
}

/// The parts of a file that a scan must read, and the cache update that it makes.
#[derive(Debug, Default)]
pub(crate) struct ScanPlan {
    /// The parts to scan, in order.
    pub(crate) parts: Vec<(u64, u64)>,
    /// If filters are to be made: of the last part.
    pub(crate) build: Option<CacheUpdate>,
}

/// Filters of a file that are being made.
#[derive(Debug)]
pub(crate) struct CacheUpdate {
    state: FileVersion,
    base: u64,
    keep: u64,
    /// The tasks that are not done.
    tasks: AtomicUsize,
    is_damaged: AtomicBool,
    has_failed: AtomicBool,
    pieces: Mutex<Vec<Piece>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of another thread leaves no inconsistent value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'c, K: Clone + Send + Sync> Cache<'c, K> {
    pub(crate) fn new(
        kind: SidecarKind,
        folder: &Path,
        catalog: &'c Catalog,
        see: impl Fn(&[u8]) -> K + Send + Sync + 'c,
    ) -> Self {
        let mut folders: Vec<CacheFolder<K>> = Vec::new();
        let mut numbers = HashMap::new();
        let folder_of = catalog.sessions.iter().map(|session| {
            let path = session.path.parent().unwrap_or(Path::new(""));
            *numbers.entry(path).or_insert_with(|| {
                folders.push(CacheFolder {
                    path: path.to_owned(),
                    sidecar: Sidecar::of(
                        kind,
                        folder,
                        &catalog
                            .disk
                            .real_path(path)
                            .unwrap_or_else(|_| path.to_owned()),
                    ),
                    records: OnceLock::new(),
                    new: Mutex::default(),
                });
                folders.len() - 1
            })
        });
        let folder_of = folder_of.collect();
        Self {
            catalog,
            folders,
            folder_of,
            see: Box::new(see),
            keeps_gone: false,
            now: SystemTime::now(),
            is_off: AtomicBool::new(false),
        }
    }

    fn folder(&self, file: usize) -> &CacheFolder<K> {
        &self.folders[self.folder_of[self.catalog.files[file].session]]
    }

    /// Returns the path of a file in its folder; `None` for paths that are not recorded.
    fn path_in(&self, file: usize) -> Option<&str> {
        let path = &self.catalog.files[file].path;
        path.strip_prefix(&self.folder(file).path).ok()?.to_str()
    }

    /// Returns the folders of these files.
    pub(crate) fn folders_of(&self, files: &[usize]) -> Vec<usize> {
        let mut folders: Vec<usize> = files
            .iter()
            .map(|file| self.folder_of[self.catalog.files[*file].session])
            .collect();
        folders.sort_unstable();
        folders.dedup();
        folders
    }

    /// Reads the records of the files of a folder.
    pub(crate) fn read_folder(&self, folder: usize) {
        let folder = &self.folders[folder];
        self.records(folder);
        // Without a writable cache folder the scan makes nothing for the cache, because it could not keep it.
        self.note(&folder.sidecar.check_writable());
    }

    fn records<'f>(&self, folder: &'f CacheFolder<K>) -> &'f Records<StoredPiece<K>> {
        let read = || folder.sidecar.read(|payload| (self.see)(payload));
        folder.records.get_or_init(read)
    }

    /// Starts a cache update of a file from the offset `keep` on. `base` is the checksum
    /// of the record of the part before it.
    pub(crate) fn build(&self, state: FileVersion, base: u64, keep: u64) -> Option<CacheUpdate> {
        (!self.is_off.load(Ordering::Relaxed)).then(|| CacheUpdate {
            state,
            base,
            keep,
            tasks: AtomicUsize::new(0),
            is_damaged: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            pieces: Mutex::default(),
        })
    }

    /// From now on keeps the records of deleted files.
    pub(crate) fn keep_gone(&mut self) {
        self.keeps_gone = true;
    }

    /// Adds the folders in `root` that are gone.
    pub(crate) fn add_gone_folders(&mut self, kind: SidecarKind, cache: &Path, root: &Path) {
        let root = self.catalog.disk.real_path(root);
        let mut known: HashSet<PathBuf> = self
            .folders
            .iter()
            .map(|folder| folder.sidecar.folder().to_owned())
            .collect();
        let kinds = kind.older.iter().map(|older| older.kind);
        let all = [kind].into_iter().chain(kinds);
        let all = all.flat_map(|kind| Sidecar::all(kind, cache));
        for (_, sidecar) in all {
            let Some(sidecar) = sidecar else { continue };
            let folder = sidecar.folder();
            let is_in_root = root
                .as_ref()
                .is_ok_and(|root| folder.parent() == Some(root));
            if is_in_root && known.insert(folder.to_owned()) {
                self.folders.push(CacheFolder {
                    path: folder.to_owned(),
                    sidecar: Sidecar::of(kind, cache, folder),
                    records: OnceLock::new(),
                    new: Mutex::default(),
                });
            }
        }
    }

    /// Returns the cached knowledge about a file.
    pub(crate) fn look_up(&self, file: usize) -> Lookup<K> {
        let (Some(path), Ok(metadata)) = (
            self.path_in(file),
            self.catalog.disk.metadata(&self.catalog.files[file].path),
        ) else {
            return Lookup::Unknown;
        };
        let state = FileVersion::of(&metadata);
        let chain = self.records(self.folder(file)).chain(path.as_bytes());
        let Some(newest) = chain.first() else {
            return Lookup::New(state);
        };
        let record = &newest.record;
        // A file that was changed again within the resolution of its clock has the same state and other content.
        let is_same = record.state == state && record.is_settled;
        if record.is_damaged {
            return if is_same {
                Lookup::Damaged(record.pieces.clone())
            } else {
                Lookup::New(state)
            };
        }
        let pieces = pieces(&chain);
        let ends = pieces.iter().map(|piece| piece.end);
        let starts = pieces.iter().map(|piece| piece.start);
        // A gap would make a search skip lines.
        let is_whole = starts.eq([0].into_iter().chain(ends).take(pieces.len()));
        // A file that grew was appended to if its cached part has the same bytes.
        let has_grown = || record.state.is_of(&state) && record.state.len < state.len;
        let has_all = || !pieces.is_empty() && self.has_all(file, &pieces).unwrap_or(false);
        if !is_whole || !(is_same || has_grown() && has_all()) {
            return Lookup::New(state);
        }
        let end = pieces.last().map_or(0, |piece| piece.end);
        Lookup::Known(KnownFile {
            rest: state.len.saturating_sub(end),
            state,
            pieces,
            is_same,
            is_quiet: is_older(metadata.modified, self.now, QUIET_AGE),
            newest: newest.checksum,
        })
    }

    /// Returns the offset from which a file with a rest has to be read, and the cache update for it.
    pub(crate) fn rest(&self, known: &KnownFile<K>) -> (u64, Option<CacheUpdate>) {
        let end = known.pieces.last().map_or(0, |piece| piece.end);
        // In the same state it is a line without an end.
        if known.is_same || known.rest < MIN_KEPT_REST && !known.is_quiet {
            return (end, None);
        }
        // A short piece is made again together with what follows.
        let last = known.pieces.last();
        let last = last.filter(|last| last.end - last.start + known.rest <= PIECE_LEN);
        let start = last.map_or(end, |last| last.start);
        let base = if start == 0 { 0 } else { known.newest };
        (start, self.build(known.state, base, start))
    }

    /// Returns whether a file has the bytes of these pieces. All are read: a file that grew can have been
    /// changed in its middle as well, and then nothing but its content shows it.
    fn has_all(&self, file: usize, pieces: &[StoredPiece<K>]) -> Result<bool, Error> {
        let source = Source::open_on(&self.catalog.disk, &self.catalog.files[file].path)?;
        let mut buffer = vec![0; READ_SIZE];
        for piece in pieces {
            let mut content = Content::default();
            while piece.start + content.len() < piece.end {
                let left = piece.end - piece.start - content.len();
                let most = usize::try_from(left).unwrap_or(READ_SIZE).min(READ_SIZE);
                let read = source.read_at(piece.start + content.len(), &mut buffer[..most])?;
                // It became shorter since its metadata was read.
                if read == 0 {
                    return Ok(false);
                }
                content.push(&buffer[..read]);
            }
            if content.finish() != piece.content {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records that a task is done, and the pieces that it made. After the last one the filters of the
    /// file are kept.
    pub(crate) fn done(
        &self,
        file: usize,
        build: &CacheUpdate,
        pieces: Option<Vec<Piece>>,
        is_damaged: bool,
    ) {
        if is_damaged {
            build.is_damaged.store(true, Ordering::Relaxed);
        }
        match pieces {
            Some(mut pieces) => lock(&build.pieces).append(&mut pieces),
            None => build.has_failed.store(true, Ordering::Relaxed),
        }
        // The pieces of the other threads are seen by the last one.
        if build.tasks.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.keep(file, build);
        }
    }

    fn keep(&self, file: usize, build: &CacheUpdate) {
        let is_damaged = build.is_damaged.load(Ordering::Relaxed);
        let has_failed = build.has_failed.load(Ordering::Relaxed);
        let found = self.catalog.disk.metadata(&self.catalog.files[file].path);
        let (Some(path), Ok(found)) = (self.path_in(file), found) else {
            return;
        };
        let after = FileVersion::of(&found);
        let state = build.state;
        // Replaced or cut while it was read: the pieces are of a file that is gone.
        if has_failed && !is_damaged || !after.is_of(&state) || after.len < state.len {
            return;
        }
        let mut pieces = mem::take(&mut *lock(&build.pieces));
        pieces.sort_unstable_by_key(|piece| piece.start);
        let is_settled = after == state && is_older(found.modified, self.now, SETTLED_AGE);
        let mut record = Record {
            path: path.as_bytes().to_vec(),
            state,
            is_settled,
            is_damaged,
            base: build.base,
            keep: build.keep,
            pieces: Vec::new(),
        };
        let mut bytes = Vec::new();
        if is_damaged {
            // Until it changes, it is read as a whole.
            (record.base, record.keep) = (0, 0);
            record.write(&mut bytes);
            return self.add(self.folder(file), &bytes);
        }
        let ends = pieces.iter().map(|piece| piece.end);
        let starts = pieces.iter().map(|piece| piece.start);
        // A task of the file failed without being noticed, or the file changed between two of them.
        if !starts.eq([build.keep].into_iter().chain(ends).take(pieces.len())) {
            return;
        }
        let mut pieces = pieces.into_iter().peekable();
        loop {
            // Several records for a long file: one of gigabytes would exceed the maximum length of a record.
            record.pieces = pieces.by_ref().take(MAX_PIECES).collect();
            record.base = record.write(&mut bytes);
            let Some(next) = pieces.peek() else { break };
            record.keep = next.start;
        }
        self.add(self.folder(file), &bytes);
    }

    /// Caches the payload of a damaged file as a whole. It is valid as long as the file does not change.
    pub(crate) fn keep_damaged(&self, file: usize, build: &CacheUpdate, payload: Vec<u8>) {
        let found = self.catalog.disk.metadata(&self.catalog.files[file].path);
        let (Some(path), Ok(found)) = (self.path_in(file), found) else {
            return;
        };
        if FileVersion::of(&found) != build.state || build.state.len == 0 {
            return;
        }
        let record = Record {
            path: path.as_bytes().to_vec(),
            state: build.state,
            is_settled: is_older(found.modified, self.now, SETTLED_AGE),
            is_damaged: true,
            base: 0,
            keep: 0,
            pieces: vec![Piece {
                start: 0,
                end: build.state.len,
                content: 0,
                payload,
            }],
        };
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        self.add(self.folder(file), &bytes);
    }

    /// Passes the records of deleted files to `see`: the project folder, the path in it, and the payloads. A record in
    /// a file of an older kind counts only if no newer one exists.
    pub(crate) fn for_each_gone(&self, mut see: impl FnMut(&Path, &str, Vec<K>)) {
        let known: HashSet<(usize, &str)> = (0..self.catalog.files.len())
            .filter_map(|file| {
                let session = self.catalog.files[file].session;
                Some((self.folder_of[session], self.path_in(file)?))
            })
            .collect();
        for (number, folder) in self.folders.iter().enumerate() {
            let mut seen: HashSet<Vec<u8>> = HashSet::new();
            let mut see_all = |records: &Records<StoredPiece<K>>| {
                for path in records.paths() {
                    let Ok(name) = std::str::from_utf8(path) else {
                        continue;
                    };
                    let is_there = || self.catalog.disk.metadata(&folder.path.join(name)).is_ok();
                    // A file that exists is read itself; counting its record as well would count its requests twice.
                    if seen.contains(path) || known.contains(&(number, name)) || is_there() {
                        continue;
                    }
                    let pieces = pieces(&records.chain(path));
                    if pieces.is_empty() {
                        continue;
                    }
                    let kept = pieces.into_iter().map(|piece| piece.kept);
                    see(&folder.path, name, kept.collect());
                    seen.insert(path.to_vec());
                }
            };
            see_all(self.records(folder));
            for (sidecar, older) in folder.sidecar.older() {
                let read = |payload: &[u8]| {
                    let converted = (older.convert)(payload);
                    (self.see)(&converted.unwrap_or_default())
                };
                see_all(&sidecar.read(read));
            }
        }
    }

    fn add(&self, folder: &CacheFolder<K>, bytes: &[u8]) {
        let mut new = lock(&folder.new);
        new.bytes.extend_from_slice(bytes);
        if new.bytes.len() >= READ_BATCH_LEN {
            self.write(folder, &mut new);
        }
    }

    /// Writes the records that are not written yet.
    pub(crate) fn finish(&self) {
        let mut has_new = None;
        for folder in &self.folders {
            let mut new = lock(&folder.new);
            self.write(folder, &mut new);
            let is_on = !self.is_off.load(Ordering::Relaxed) && !self.keeps_gone;
            if mem::take(&mut new.has_written) && is_on {
                let records = self.records(folder);
                // Only if a cache file is new: its project folder was then probably renamed, and left the cache file of
                // its old name.
                if records.end == 0 {
                    has_new = Some(&folder.sidecar);
                }
                self.shrink(folder, new.end.unwrap_or_default());
            }
        }
        if let Some(sidecar) = has_new {
            sidecar.remove_gone(&*self.catalog.disk);
        }
    }

    fn write(&self, folder: &CacheFolder<K>, new: &mut UnwrittenRecords) {
        let bytes = mem::take(&mut new.bytes);
        if bytes.is_empty() || self.is_off.load(Ordering::Relaxed) {
            return;
        }
        let mut end = new.end.unwrap_or_else(|| self.records(folder).end);
        let written = folder.sidecar.append(&mut end, &bytes);
        new.end = Some(end);
        new.has_written = true;
        self.note(&written);
    }

    /// Drops the invalid records if they are the larger part.
    fn shrink(&self, folder: &CacheFolder<K>, end: u64) {
        let files =
            (0..self.catalog.files.len()).filter(|file| self.folder(*file).path == folder.path);
        let known: HashSet<&[u8]> = files
            .filter_map(|file| Some(self.path_in(file)?.as_bytes()))
            .collect();
        let records = self.records(folder);
        let valid = known.iter().flat_map(|path| records.chain(path));
        let valid: u64 = valid.map(|found| found.len).sum();
        let new = end.saturating_sub(records.end);
        // A rewrite only when it halves the file, so that each byte is rewritten a few times at most.
        if valid + new <= end / 2 {
            let is_known = |path: &[u8]| known.contains(path);
            self.note(&folder.sidecar.shrink(&*self.catalog.disk, is_known));
        }
    }

    /// After an error nothing more is written: a search does not fail because of it.
    fn note(&self, result: &io::Result<()>) {
        if result.is_err() {
            self.is_off.store(true, Ordering::Relaxed);
        }
    }
}

/// Returns the pieces that the records of a chain name, in order.
fn pieces<K: Clone>(chain: &[&FoundRecord<StoredPiece<K>>]) -> Vec<StoredPiece<K>> {
    let mut pieces: Vec<StoredPiece<K>> = Vec::new();
    for found in chain.iter().rev() {
        pieces.retain(|piece| piece.start < found.record.keep);
        pieces.extend(found.record.pieces.iter().cloned());
    }
    pieces
}

pub(crate) fn is_older(modified: Option<SystemTime>, now: SystemTime, than: Duration) -> bool {
    let age = modified.and_then(|modified| now.duration_since(modified).ok());
    age.is_some_and(|age| age > than)
}

impl ScanPlan {
    /// Scans all of a file.
    pub(crate) fn whole() -> Self {
        Self {
            parts: vec![(0, u64::MAX)],
            build: None,
        }
    }
}

/// Makes the pieces of a part of a file, of whole lines.
#[derive(Debug, Default)]
pub(crate) struct PieceMaker {
    content: Content,
    start: u64,
}

impl PieceMaker {
    /// Adds the next bytes, which are at this offset.
    pub(crate) fn push(&mut self, offset: u64, bytes: &[u8]) {
        if self.content.len() == 0 {
            self.start = offset;
        }
        self.content.push(bytes);
    }

    /// Returns whether the piece is large enough. What is left until `end` is not to be a small one.
    pub(crate) fn is_full(&self, end: u64) -> bool {
        let len = self.content.len();
        len >= PIECE_LEN && end.saturating_sub(self.start + len) >= PIECE_LEN / 2
    }

    /// Ends the piece, and starts the next one; `None` if it is empty. It has no payload yet.
    pub(crate) fn finish(&mut self) -> Option<Piece> {
        let len = self.content.len();
        let content = self.content.finish();
        (len > 0).then(|| Piece {
            start: self.start,
            end: self.start + len,
            content,
            payload: Vec::new(),
        })
    }
}

impl CacheUpdate {
    /// Sets the number of tasks.
    pub(crate) fn start(&self, tasks: usize) {
        self.tasks.store(tasks, Ordering::Relaxed);
    }
}
