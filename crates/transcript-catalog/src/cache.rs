//! Rules out parts of files without reading them, and makes filters of what is read.

use std::collections::{HashMap, HashSet};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use memchr::{memchr, memrchr};
use transcript_format::scan::{Envelope, Scanner, utf8};
use transcript_reader::{Error, Source};
use transcript_storage::Fingerprint;

use crate::files::{Catalog, FileRole};
use crate::fuse::{Builder, Filter};
use crate::grams::{Grams, Need};
use crate::query::{Condition, Query};
use crate::scan::{folded, millis_of};
use crate::sidecar::{Facts, Piece, Record, Records, Sidecar, State, hash};
use crate::texts::{ToolPart, Unit};

/// The size of the part of a file that has a filter of its own, in bytes.
const PIECE: u64 = 1 << 20;
/// A file that changed within this time may change again without getting another time.
const SETTLED: Duration = Duration::from_secs(2);
/// Less than this at the end of a file that is being written is read each time, in bytes.
const LITTLE: u64 = 64 << 10;
/// A file that did not change for this time is not being written.
const QUIET: Duration = Duration::from_secs(60);
/// The most pieces of a record.
const MAX_PIECES: usize = 64;
/// So many bytes of records are written at a time.
const BATCH: usize = 1 << 20;
/// A piece has a filter if it has at most one gram for so many bytes.
const MOST: usize = 24;
/// The grams that a short piece may have.
const MIN_GRAMS: usize = 8192;

/// The filters of one search.
#[derive(Debug)]
pub(crate) struct Cache<'c> {
    catalog: &'c Catalog,
    folders: Vec<Folder>,
    /// The folder of each session.
    folder_of: Vec<usize>,
    needs: Needs,
    now: SystemTime,
    /// Whether the cache folder cannot be written.
    is_off: AtomicBool,
}

/// A project folder.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    sidecar: Sidecar,
    records: OnceLock<Records<Known>>,
    new: Mutex<New>,
}

/// Records that are not written yet.
#[derive(Debug, Default)]
struct New {
    bytes: Vec<u8>,
    /// Where the file ends as far as is known.
    end: Option<u64>,
    has_written: bool,
}

/// What a search keeps of a piece.
#[derive(Clone, Copy, Debug)]
struct Known {
    start: u64,
    end: u64,
    marks: u64,
    tools: u64,
    /// Whether a unit in it may match, as far as the piece alone can say.
    may_match: bool,
    /// For each `path:` filter as a bit, whether a path in the piece may have it.
    paths: u32,
}

/// What to do with a file.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The parts to scan, in order.
    pub(crate) parts: Vec<(u64, u64)>,
    /// If filters are to be made: of the last part.
    pub(crate) build: Option<Build>,
}

/// Filters of a file that are being made.
#[derive(Debug)]
pub(crate) struct Build {
    state: State,
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

impl<'c> Cache<'c> {
    pub(crate) fn new(folder: &Path, catalog: &'c Catalog, query: &Query) -> Self {
        let mut folders: Vec<Folder> = Vec::new();
        let mut numbers = HashMap::new();
        let folder_of = catalog.sessions.iter().map(|session| {
            let path = session.path.parent().unwrap_or(Path::new(""));
            *numbers.entry(path).or_insert_with(|| {
                folders.push(Folder {
                    path: path.to_owned(),
                    sidecar: Sidecar::of(
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
            needs: Needs::of(query),
            now: SystemTime::now(),
            is_off: AtomicBool::new(false),
        }
    }

    fn folder(&self, file: usize) -> &Folder {
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

    /// Reads the filters of a folder.
    pub(crate) fn read_folder(&self, folder: usize) {
        let folder = &self.folders[folder];
        self.records(folder);
        // Filters that cannot be kept are not made.
        self.note(&folder.sidecar.check_writable());
    }

    fn records<'f>(&self, folder: &'f Folder) -> &'f Records<Known> {
        folder.records.get_or_init(|| {
            folder
                .sidecar
                .read(|piece, filter| self.needs.see(&piece, filter))
        })
    }

    /// Decides which parts of a file have to be read.
    pub(crate) fn plan(&self, file: usize) -> Plan {
        let (Some(path), Ok(metadata)) = (
            self.path_in(file),
            self.catalog.disk.metadata(&self.catalog.files[file].path),
        ) else {
            return Plan::whole();
        };
        let state = State::of(&metadata);
        let chain = self.records(self.folder(file)).chain(path.as_bytes());
        let build = |base, keep| {
            (!self.is_off.load(Ordering::Relaxed)).then(|| Build {
                state,
                base,
                keep,
                tasks: AtomicUsize::new(0),
                is_damaged: AtomicBool::new(false),
                has_failed: AtomicBool::new(false),
                pieces: Mutex::default(),
            })
        };
        let again = || Plan {
            build: build(0, 0),
            ..Plan::whole()
        };
        let Some(newest) = chain.first() else {
            return again();
        };
        let record = &newest.record;
        let is_same = record.state == state && record.is_settled;
        if record.is_damaged && is_same {
            return Plan::whole();
        }
        let mut pieces: Vec<Known> = Vec::new();
        for found in chain.iter().rev() {
            pieces.retain(|piece| piece.start < found.record.keep);
            pieces.extend(&found.record.pieces);
        }
        let ends = pieces.iter().map(|piece| piece.end);
        let starts = pieces.iter().map(|piece| piece.start);
        let is_whole = starts.eq([0].into_iter().chain(ends).take(pieces.len()));
        // A file that grew was appended to if the bytes are the same where they are looked at.
        let has_grown = || record.state.is_of(&state) && record.state.len < state.len;
        let is_marked = || !pieces.is_empty() && self.has_marks(file, &pieces).unwrap_or(false);
        let is_valid = is_whole && (is_same || has_grown() && is_marked());
        if !is_valid {
            return again();
        }
        let end = pieces.last().map_or(0, |piece| piece.end);
        let rest = state.len.saturating_sub(end);
        let is_result = matches!(self.catalog.files[file].kind, FileRole::Result(_));
        if is_result && rest > 0 {
            return again();
        }
        // The call of a stored result is in another file.
        let may_match = rest > 0 || is_result || self.needs.may_match_file(&pieces);
        let mut plan = Plan::default();
        for piece in pieces.iter().filter(|piece| may_match && piece.may_match) {
            match plan.parts.last_mut() {
                Some((_, end)) if *end == piece.start => *end = piece.end,
                _ => plan.parts.push((piece.start, piece.end)),
            }
        }
        if is_result {
            // They are read as a whole.
            plan.parts = plan
                .parts
                .first()
                .map(|_| (0, u64::MAX))
                .into_iter()
                .collect();
            return plan;
        }
        // What follows is always read, even if there is nothing yet.
        if rest > 0 {
            let is_quiet = is_older(metadata.modified, self.now, QUIET);
            let mut start = end;
            // In the same state it is a line without an end.
            if !is_same && (rest >= LITTLE || is_quiet) {
                // A short piece is made again together with what follows.
                let last = pieces
                    .last()
                    .filter(|last| last.end - last.start + rest <= PIECE);
                start = last.map_or(end, |last| last.start);
                plan.parts.retain(|part| part.0 < start);
                if let Some(part) = plan.parts.last_mut() {
                    part.1 = part.1.min(start);
                }
                plan.build = if start == 0 {
                    build(0, 0)
                } else {
                    build(newest.checksum, start)
                };
            }
            plan.parts.push((start, u64::MAX));
        }
        plan
    }

    fn has_marks(&self, file: usize, pieces: &[Known]) -> Result<bool, Error> {
        let source = Source::open_on(&self.catalog.disk, &self.catalog.files[file].path)?;
        for piece in pieces {
            let read =
                |offset: u64, buffer: &mut [u8]| source.read_at(piece.start + offset, buffer);
            if marks(&Fingerprint::read(piece.end - piece.start, read)?) != piece.marks {
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
        build: &Build,
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

    fn keep(&self, file: usize, build: &Build) {
        let is_damaged = build.is_damaged.load(Ordering::Relaxed);
        let has_failed = build.has_failed.load(Ordering::Relaxed);
        let found = self.catalog.disk.metadata(&self.catalog.files[file].path);
        let (Some(path), Ok(found)) = (self.path_in(file), found) else {
            return;
        };
        let after = State::of(&found);
        let state = build.state;
        if has_failed && !is_damaged || !after.is_of(&state) || after.len < state.len {
            return;
        }
        let mut pieces = mem::take(&mut *lock(&build.pieces));
        pieces.sort_unstable_by_key(|piece| piece.start);
        let is_settled = after == state && is_older(found.modified, self.now, SETTLED);
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
            // It is read as a whole as long as it is what it is now.
            (record.base, record.keep) = (0, 0);
            record.write(&mut bytes);
            return self.add(self.folder(file), &bytes);
        }
        let ends = pieces.iter().map(|piece| piece.end);
        let starts = pieces.iter().map(|piece| piece.start);
        if !starts.eq([build.keep].into_iter().chain(ends).take(pieces.len())) {
            return;
        }
        let mut pieces = pieces.into_iter().peekable();
        loop {
            record.pieces = pieces.by_ref().take(MAX_PIECES).collect();
            record.base = record.write(&mut bytes);
            let Some(next) = pieces.peek() else { break };
            record.keep = next.start;
        }
        self.add(self.folder(file), &bytes);
    }

    fn add(&self, folder: &Folder, bytes: &[u8]) {
        let mut new = lock(&folder.new);
        new.bytes.extend_from_slice(bytes);
        if new.bytes.len() >= BATCH {
            self.write(folder, &mut new);
        }
    }

    /// Writes what is not written yet.
    pub(crate) fn finish(&self) {
        let mut has_new = None;
        for folder in &self.folders {
            let mut new = lock(&folder.new);
            self.write(folder, &mut new);
            if mem::take(&mut new.has_written) && !self.is_off.load(Ordering::Relaxed) {
                let records = self.records(folder);
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

    fn write(&self, folder: &Folder, new: &mut New) {
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

    /// Drops what is no longer valid if it is the larger part.
    fn shrink(&self, folder: &Folder, end: u64) {
        let files =
            (0..self.catalog.files.len()).filter(|file| self.folder(*file).path == folder.path);
        let known: HashSet<&[u8]> = files
            .filter_map(|file| Some(self.path_in(file)?.as_bytes()))
            .collect();
        let records = self.records(folder);
        let valid = known.iter().flat_map(|path| records.chain(path));
        let valid: u64 = valid.map(|found| found.len).sum();
        let new = end.saturating_sub(records.end);
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

fn is_older(modified: Option<SystemTime>, now: SystemTime, than: Duration) -> bool {
    let age = modified.and_then(|modified| now.duration_since(modified).ok());
    age.is_some_and(|age| age > than)
}

/// Returns a hash of the first and last bytes of a piece.
fn marks(piece: &Fingerprint) -> u64 {
    hash(&[piece.head(), piece.tail()].concat())
}

/// What a piece must have so that a unit in it may match.
#[derive(Debug)]
struct Needs {
    terms: Vec<Need>,
    /// The positive filters: one of each key must hold.
    filters: Query,
    /// The folded values of `path:`.
    paths: Vec<Need>,
}

impl Needs {
    fn of(query: &Query) -> Self {
        let mut filters = query.filters.clone();
        filters.retain(|filter| !filter.is_negative);
        let path = |condition: &Condition| match condition {
            Condition::Path(path) => Some(Need::of_bytes(path.as_bytes())),
            _ => None,
        };
        let paths = filters.iter().filter_map(|filter| path(&filter.condition));
        let terms = query.positive().map(|term| Need::of(&term.matcher));
        Self {
            terms: terms.collect(),
            paths: paths.take(u32::BITS as usize).collect(),
            filters: Query {
                terms: Vec::new(),
                filters,
            },
        }
    }

    fn see(&self, piece: &Piece, filter: &[u8]) -> Known {
        let filter = Filter::of(filter);
        let may_be = |need: &Need| filter.as_ref().is_none_or(|filter| need.may_be_in(filter));
        let facts = &piece.facts;
        let holds = self.filters.holds(|condition| {
            Some(match condition {
                Condition::In(field) => facts.fields >> *field as u16 & 1 == 1,
                Condition::Role(role) => facts.roles >> *role as u8 & 1 == 1,
                // Both may be asked for: one of a key must hold.
                Condition::Error(wanted) => !wanted || facts.has_error,
                Condition::Since(time) => facts.times.1 >= *time,
                Condition::Until(time) => facts.times.0 <= *time,
                _ => return None,
            })
        });
        let mut paths = 0;
        for (bit, need) in self.paths.iter().enumerate() {
            paths |= u32::from(may_be(need)) << bit;
        }
        Known {
            start: piece.start,
            end: piece.end,
            marks: piece.marks,
            tools: facts.tools,
            may_match: holds && self.terms.iter().all(may_be),
            paths,
        }
    }

    /// Returns whether a unit of a file may match that has these pieces and nothing else. A result and
    /// its call can be in different pieces.
    fn may_match_file(&self, pieces: &[Known]) -> bool {
        let tools = pieces.iter().fold(0, |tools, piece| tools | piece.tools);
        let paths = pieces.iter().fold(0, |paths, piece| paths | piece.paths);
        self.filters.holds(|condition| {
            Some(match condition {
                Condition::Tool(name) => tools & tool_bit(name) != 0,
                Condition::Path(_) => self.paths.len() == u32::BITS as usize || paths != 0,
                _ => return None,
            })
        })
    }
}

/// Returns the bit of the folded name of a tool.
fn tool_bit(name: &str) -> u64 {
    1 << (hash(name.as_bytes()) % 64)
}

/// Makes the pieces of a part of a file.
#[derive(Debug, Default)]
pub(crate) struct Maker {
    grams: Grams,
    filters: Builder,
    scanner: Scanner,
    facts: Facts,
    fingerprint: Fingerprint,
    start: u64,
    pub(crate) pieces: Vec<Piece>,
}

impl Maker {
    /// Forgets what was not finished.
    pub(crate) fn start(&mut self) {
        self.grams.clear();
        self.facts = Facts::default();
        self.fingerprint = Fingerprint::start();
        self.pieces.clear();
    }

    /// Adds lines. Those from `end` on are of another part. Returns false if one is damaged.
    pub(crate) fn add_lines(&mut self, offset: u64, bytes: &[u8], end: u64) -> bool {
        // What is not ended may be continued.
        let len = memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let bytes = &bytes[..len];
        let mut scanner = mem::take(&mut self.scanner);
        let mut at = 0;
        let mut is_whole = true;
        while at < len && is_whole {
            let line_end = memchr(b'\n', &bytes[at..]).map_or(len, |feed| at + feed);
            let line = &bytes[at..line_end];
            match scanner.scan(line) {
                Ok(envelope) => self.add_line(line, &envelope),
                Err(_) => is_whole = line.trim_ascii().is_empty(),
            }
            at = line_end + 1;
        }
        self.scanner = scanner;
        self.add_bytes(offset, bytes);
        let here = offset + len as u64;
        if self.fingerprint.offset() >= PIECE && end.saturating_sub(here) >= PIECE / 2 {
            self.finish();
        }
        is_whole
    }

    fn add_line(&mut self, line: &[u8], envelope: &Envelope<'_>) {
        for tool in envelope.tools() {
            if let Some(name) = tool.name {
                self.facts.tools |= tool_bit(&folded(&name.decode()));
            }
        }
        let Some(unit) = utf8(line).and_then(|text| Unit::read(text, envelope)) else {
            return;
        };
        let facts = &mut self.facts;
        if let Some(role) = unit.role {
            facts.roles |= 1 << role as u8;
        }
        if let Some(millis) = millis_of(envelope) {
            facts.times = (facts.times.0.min(millis), facts.times.1.max(millis));
        }
        facts.has_error |= unit.is_api_error;
        for text in &unit.texts {
            facts.fields |= 1 << text.field as u16;
            match &text.tool {
                ToolPart::Call {
                    name: Some(name), ..
                } => facts.tools |= tool_bit(&folded(name)),
                ToolPart::Result { is_error: true, .. } => facts.has_error = true,
                _ => {}
            }
            self.grams.add(&text.text);
        }
    }

    /// Adds a stored result, which is a piece of its own. Filters of entries do not rule it out.
    pub(crate) fn add_result(&mut self, bytes: &[u8], text: &str) {
        self.start();
        self.facts = Facts {
            fields: u16::MAX,
            roles: u8::MAX,
            has_error: true,
            tools: u64::MAX,
            times: (i64::MIN, i64::MAX),
        };
        self.grams.add(text);
        self.add_bytes(0, bytes);
        self.finish();
    }

    fn add_bytes(&mut self, offset: u64, bytes: &[u8]) {
        if self.fingerprint.offset() == 0 {
            self.start = offset;
        }
        self.fingerprint.push(bytes);
    }

    /// Ends a piece.
    pub(crate) fn finish(&mut self) {
        let fingerprint = mem::replace(&mut self.fingerprint, Fingerprint::start());
        let len = fingerprint.offset();
        if len == 0 {
            return;
        }
        let numbers = self.grams.numbers();
        let mut filter = Vec::new();
        // Random texts have so many grams that all texts may be in them.
        if numbers.len() <= MIN_GRAMS.max(len as usize / MOST) {
            self.filters.build(numbers, &mut filter);
        }
        self.grams.clear();
        self.pieces.push(Piece {
            start: self.start,
            end: self.start + len,
            marks: marks(&fingerprint),
            facts: mem::take(&mut self.facts),
            filter,
        });
    }
}

impl Plan {
    /// Scans all of a file.
    pub(crate) fn whole() -> Self {
        Self {
            parts: vec![(0, u64::MAX)],
            build: None,
        }
    }
}

impl Build {
    /// Sets the number of tasks.
    pub(crate) fn start(&self, tasks: usize) {
        self.tasks.store(tasks, Ordering::Relaxed);
    }
}
