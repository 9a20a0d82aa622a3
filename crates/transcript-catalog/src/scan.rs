//! Scans the files of a catalog for units that match a query, several files at a time.

use std::mem;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use memchr::{memchr, memrchr};
use transcript_format::kind::EntryKind;
use transcript_format::lines::{AGENT_META_CAP, DEFAULT_LINE_CAP};
use transcript_format::metadata::AgentMetadata;
use transcript_format::object::Object;
use transcript_format::scan::{Envelope, Flags, Scanner, utf8};
use transcript_reader::Error;
use transcript_storage::parallel;

use crate::cache::{CacheUpdate, ScanPlan};
use crate::calls::{Calls, Owner, Owners};
use crate::files::{Catalog, FileRole};
use crate::filters::{Filters, Maker};
use crate::fold::{Fold, folded};
use crate::matches::{CopyKey, Hashes, Match, millis_of};
use crate::prefilter::Prefilter;
use crate::query::{Condition, Field, Query, Role};
use crate::rank::{BestText, Folded};
use crate::reading::{for_each_block, for_each_in_index};
use crate::texts::{Text, ToolPart, Unit, may_have_texts};

/// The size of the part of a file that a thread scans at a time, in bytes.
const SCAN_PIECE_LEN: u64 = 4 << 20;
/// The maximum length of a stored result that is read, in bytes.
pub(crate) const MAX_STORED_RESULT_LEN: u64 = 64 << 20;

/// One search over the files of a catalog.
#[derive(Debug)]
pub(crate) struct Scan<'s> {
    pub(crate) catalog: &'s Catalog,
    pub(crate) query: Query,
    filters: Option<Filters<'s>>,
    /// Those of positive terms; the most selective one first.
    prefilters: Vec<Prefilter>,
    uses_prefilters: bool,
    states: Vec<FileState>,
    owners: Vec<OnceLock<Owners>>,
    cancel: Arc<AtomicBool>,
    hashes: Hashes,
    pub(crate) bytes: AtomicU64,
    /// The bytes that were searched or ruled out, for the caller.
    done: Arc<AtomicU64>,
    pub(crate) unread: AtomicU64,
    pub(crate) problems: Mutex<Vec<Error>>,
}

/// Values of a file that are computed when they are needed.
#[derive(Debug, Default)]
struct FileState {
    /// Whether a line does not scan, so that the file must be read with an index.
    is_damaged: AtomicBool,
    calls: OnceLock<Calls>,
    agent_type: OnceLock<Option<String>>,
}

/// A part of a file.
struct FileRange<'p> {
    file: usize,
    start: u64,
    end: u64,
    /// If filters of it are made.
    build: Option<&'p CacheUpdate>,
}

/// The buffers of a thread, and its matches.
#[derive(Default)]
struct Worker {
    buffer: Vec<u8>,
    scanner: Scanner,
    folded: Folded,
    found: Vec<Match>,
    maker: Option<Box<Maker>>,
}

/// A line does not scan.
struct DamagedLine;

impl<'s> Scan<'s> {
    pub(crate) fn new(
        catalog: &'s Catalog,
        query: Query,
        cancel: Arc<AtomicBool>,
        uses_prefilters: bool,
        cache: Option<&Path>,
        done: Arc<AtomicU64>,
    ) -> Self {
        let prefilters = query
            .positive()
            .filter_map(|term| Prefilter::of(&term.matcher));
        let mut prefilters: Vec<_> = prefilters.collect();
        // The longest term is in the fewest lines. The first one searches blocks, all others only lines that it found.
        prefilters.sort_by_key(|prefilter| std::cmp::Reverse(prefilter.len()));
        Self {
            catalog,
            filters: cache.map(|folder| Filters::new(folder, catalog, &query)),
            query,
            prefilters,
            uses_prefilters,
            states: catalog.files.iter().map(|_| FileState::default()).collect(),
            owners: catalog.sessions.iter().map(|_| OnceLock::new()).collect(),
            cancel,
            hashes: Hashes::default(),
            bytes: AtomicU64::new(0),
            done,
            unread: AtomicU64::new(0),
            problems: Mutex::default(),
        }
    }

    /// Returns whether all positive terms may be in these bytes.
    fn may_match(&self, bytes: &[u8]) -> bool {
        let mut prefilters = self.used_prefilters().iter();
        prefilters.all(|prefilter| prefilter.may_be_in(bytes))
    }

    fn used_prefilters(&self) -> &[Prefilter] {
        if self.uses_prefilters {
            &self.prefilters
        } else {
            &[]
        }
    }

    /// Scans the files of these sessions, the largest first. Returns the matches in no order.
    pub(crate) fn run(&self, sessions: &[usize], threads: Option<NonZeroUsize>) -> Vec<Match> {
        let mut wanted = vec![false; self.catalog.sessions.len()];
        for session in sessions {
            wanted[*session] = self.wants_session(*session);
        }
        let files = (0..self.catalog.files.len()).filter(|file| {
            let file = &self.catalog.files[*file];
            wanted[file.session] && self.wants_file(&file.kind)
        });
        let files: Vec<usize> = files.collect();
        let plans = self.plans(&files, threads);
        let mut tasks = Vec::new();
        for (file, plan) in &plans {
            let (file, first) = (*file, tasks.len());
            let found = &self.catalog.files[file];
            let is_whole = matches!(found.kind, FileRole::Result(_));
            let parts = plan.parts.iter();
            let wanted = parts.map(|(start, end)| found.len.min(*end).saturating_sub(*start));
            let ruled_out = found.len.saturating_sub(wanted.sum());
            // Bytes that a filter rules out count for the progress, which would otherwise never reach the total.
            self.done.fetch_add(ruled_out, Ordering::Relaxed);
            for (number, (start, end)) in (1..).zip(&plan.parts) {
                let build = plan.build.as_ref().filter(|_| number == plan.parts.len());
                let mut start = *start;
                loop {
                    // The last piece of a file ends where the file ends by then.
                    let left = found.len.min(*end).saturating_sub(start);
                    let is_last = is_whole || left <= SCAN_PIECE_LEN;
                    let end = if is_last {
                        *end
                    } else {
                        start + SCAN_PIECE_LEN
                    };
                    tasks.push(FileRange {
                        file,
                        start,
                        end,
                        build,
                    });
                    if is_last {
                        break;
                    }
                    start = end;
                }
            }
            if let Some(build) = &plan.build {
                let tasks = tasks[first..].iter().filter(|task| task.build.is_some());
                build.start(tasks.count());
            }
        }
        let size = |task: &FileRange<'_>| {
            let end = task.end.min(self.catalog.files[task.file].len);
            std::cmp::Reverse(end.saturating_sub(task.start))
        };
        // The largest first, so that no thread starts with a long piece when all others are done.
        tasks.sort_by_key(size);
        let found = parallel::map(&tasks, threads, || {
            let mut worker = Worker::default();
            move |task| {
                self.scan_task(&mut worker, task);
                mem::take(&mut worker.found)
            }
        });
        let mut found: Vec<Match> = found.into_iter().flatten().collect();
        if let Some(filters) = &self.filters {
            // Before damaged files are read again: their second scan makes no filters.
            filters.cache.finish();
        }
        let is_damaged = |file: &usize| self.states[*file].is_damaged.load(Ordering::Relaxed);
        let damaged: Vec<usize> = files.into_iter().filter(is_damaged).collect();
        if !damaged.is_empty() {
            // Matches of a damaged file come from the index alone, or entries on whole lines would be found twice.
            found.retain(|found| !is_damaged(&(found.file as usize)));
            let again = parallel::map(&damaged, threads, || {
                let mut worker = Worker::default();
                move |file| {
                    let result = self.scan_with_index(&mut worker, *file);
                    self.note(result);
                    mem::take(&mut worker.found)
                }
            });
            found.extend(again.into_iter().flatten());
        }
        found
    }

    /// Decides which parts of the files are scanned.
    fn plans(&self, files: &[usize], threads: Option<NonZeroUsize>) -> Vec<(usize, ScanPlan)> {
        let Some(filters) = &self.filters else {
            return files
                .iter()
                .map(|file| (*file, ScanPlan::whole()))
                .collect();
        };
        // All cache files first, by several threads. Otherwise the first file of each folder waits for its cache.
        let read_folder = |folder: &usize| filters.cache.read_folder(*folder);
        parallel::map(&filters.cache.folders_of(files), threads, || read_folder);
        parallel::map(files, threads, || |file| (*file, filters.plan(*file)))
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn note(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
            problems.push(error);
        }
    }

    pub(crate) fn is_result(&self, file: usize) -> bool {
        matches!(self.catalog.files[file].kind, FileRole::Result(_))
    }

    /// Returns the file of the entry that matches, or to which the stored result belongs.
    pub(crate) fn entry_file(&self, found: &Match) -> Option<usize> {
        let file = found.file as usize;
        match &self.catalog.files[file].kind {
            FileRole::Result(name) => {
                let owners = self.owners(self.catalog.files[file].session);
                owners.get(name).map(|owner| owner.file)
            }
            _ => Some(file),
        }
    }

    fn wants_session(&self, session: usize) -> bool {
        let session = &self.catalog.sessions[session];
        let (mut project, mut id) = (String::new(), String::new());
        Fold::CASE.text(&session.project, &mut project);
        Fold::CASE.text(&session.id, &mut id);
        self.query.holds(|condition| match condition {
            Condition::Project { name, keys } => {
                let has_key = keys.iter().any(|key| project.contains(key));
                Some(project.contains(name) || has_key)
            }
            Condition::Session(start) => Some(id.starts_with(start)),
            _ => None,
        })
    }

    /// Returns whether a file may have texts that are wanted.
    fn wants_file(&self, kind: &FileRole) -> bool {
        let is_result = matches!(kind, FileRole::Result(_));
        self.query.holds(|condition| match condition {
            Condition::In(field) if is_result => Some(*field == Field::ToolResult),
            _ => None,
        })
    }

    fn scan_task(&self, worker: &mut Worker, task: &FileRange<'_>) {
        // Once a piece of a file is damaged, its other pieces are not worth a scan: all of it is read again.
        let is_damaged = &self.states[task.file].is_damaged;
        let mut is_done = false;
        if !self.is_cancelled() && !is_damaged.load(Ordering::Relaxed) {
            let result = match &self.catalog.files[task.file].kind {
                FileRole::Result(name) => self.scan_result(worker, task, name),
                _ => self.scan_lines(worker, task),
            };
            is_done = result.is_ok() && !self.is_cancelled();
            self.note(result);
        }
        if let (Some(filters), Some(build)) = (&self.filters, task.build) {
            let is_damaged = is_damaged.load(Ordering::Relaxed);
            // The pieces of an incomplete scan would rule out lines that were not read.
            let maker = worker.maker.as_mut().filter(|_| is_done && !is_damaged);
            let pieces = maker.map(|maker| mem::take(&mut maker.pieces));
            filters.cache.done(task.file, build, pieces, is_damaged);
        }
    }

    /// Scans the lines that start in a part of a file.
    fn scan_lines(&self, worker: &mut Worker, task: &FileRange<'_>) -> Result<(), Error> {
        let source = self.catalog.open_file(task.file)?;
        let end = task.end.min(source.len());
        let mut buffer = mem::take(&mut worker.buffer);
        let mut maker = task.build.map(|_| worker.maker.take().unwrap_or_default());
        if let Some(maker) = &mut maker {
            maker.start();
        }
        let result = for_each_block(&source, task.start, end, &mut buffer, |offset, bytes| {
            let scanned = self.scan_block(worker, task.file, offset, bytes);
            let maker = maker.as_mut();
            let is_whole =
                scanned.is_ok() && maker.is_none_or(|maker| maker.add_lines(offset, bytes, end));
            if !is_whole {
                self.states[task.file]
                    .is_damaged
                    .store(true, Ordering::Relaxed);
            }
            is_whole && !self.is_cancelled()
        });
        worker.buffer = buffer;
        if let Some(mut maker) = maker {
            maker.finish();
            worker.maker = Some(maker);
        }
        // Also after an error, so that the progress reaches the total.
        self.count(end.saturating_sub(task.start));
        // A task that ends early because the search was cancelled is marked, too, which is harmless: it has no answer.
        if !result? {
            self.states[task.file]
                .is_damaged
                .store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Scans whole lines.
    fn scan_block(
        &self,
        worker: &mut Worker,
        file: usize,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), DamagedLine> {
        let Some(first) = self.used_prefilters().first() else {
            let mut at = 0;
            while at < bytes.len() {
                let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |len| at + len);
                self.scan_line(worker, file, offset + at as u64, &bytes[at..end])?;
                at = end + 1;
            }
            return Ok(());
        };
        let mut odd = first.odd_places(bytes);
        odd.sort_unstable();
        let mut odd = odd.into_iter().peekable();
        let mut plain = first.find(bytes, 0);
        // The lines up to here are done.
        let mut done = 0;
        loop {
            // A line with several candidates is scanned once.
            while odd.next_if(|place| *place < done).is_some() {}
            if plain.is_some_and(|place| place < done) {
                plain = first.find(bytes, done);
            }
            let next = plain.into_iter().chain(odd.peek().copied()).min();
            let Some(place) = next else {
                return Ok(());
            };
            let start = memrchr(b'\n', &bytes[done..place]).map_or(done, |at| done + at + 1);
            let end = memchr(b'\n', &bytes[place..]).map_or(bytes.len(), |len| place + len);
            self.scan_line(worker, file, offset + start as u64, &bytes[start..end])?;
            done = end + 1;
        }
    }

    fn scan_line(
        &self,
        worker: &mut Worker,
        file: usize,
        offset: u64,
        line: &[u8],
    ) -> Result<(), DamagedLine> {
        // The index does not read longer lines either, and reports them as findings.
        if line.len() > DEFAULT_LINE_CAP {
            return Err(DamagedLine);
        }
        let mut scanner = mem::take(&mut worker.scanner);
        let result = match scanner.scan(line) {
            // Counted by the scan with the index.
            Ok(envelope) if envelope.flags().contains(Flags::TOO_MANY) => Err(DamagedLine),
            Ok(envelope) => {
                self.scan_entry(worker, file, offset, line, &envelope, false);
                Ok(())
            }
            Err(_) if line.trim_ascii().is_empty() => Ok(()),
            Err(_) => Err(DamagedLine),
        };
        worker.scanner = scanner;
        result
    }

    fn scan_entry(
        &self,
        worker: &mut Worker,
        file: usize,
        offset: u64,
        line: &[u8],
        envelope: &Envelope<'_>,
        is_salvaged: bool,
    ) {
        if !may_have_texts(envelope) {
            return;
        }
        // Of a message only its content is searched; most of the rest repeats it.
        let searched = match (envelope.kind(), envelope.message()) {
            (EntryKind::User | EntryKind::Assistant, Some(message)) => &line[message],
            _ => line,
        };
        if !self.may_match(searched) {
            return;
        }
        if envelope.flags().contains(Flags::TOO_MANY) {
            self.unread.fetch_add(1, Ordering::Relaxed);
        }
        let Some(unit) = utf8(line).and_then(|text| Unit::read(text, envelope)) else {
            return;
        };
        let millis = millis_of(envelope);
        // Before the texts are folded and searched, which costs most.
        if !self.wants_entry(file, envelope, &unit, millis) {
            return;
        }
        if let Some(best) = self.best(file, &unit, &mut worker.folded) {
            worker.found.push(Match {
                offset,
                len: u32::try_from(line.len()).unwrap_or(u32::MAX),
                file: file as u32,
                key: self.hashes.key(file, envelope, &unit),
                millis: millis.unwrap_or(i64::MIN),
                score: best.score,
                is_own: self.catalog.is_own(file, envelope),
                is_salvaged,
            });
        }
    }

    /// Returns whether the filters of units hold that are known from the entry.
    fn wants_entry(
        &self,
        file: usize,
        envelope: &Envelope<'_>,
        unit: &Unit<'_>,
        millis: Option<i64>,
    ) -> bool {
        let agent = || envelope.agent_id().map(|id| id.decode().into_owned());
        self.wants_unit(&UnitFields {
            role: unit.role,
            millis,
            model: unit.model.as_deref(),
            branch: unit.branch.as_deref(),
            agent: &|| {
                self.catalog
                    .agent_of(file)
                    .map(str::to_owned)
                    .or_else(agent)
            },
            agent_type: &|| self.agent_type(file),
        })
    }

    fn wants_unit(&self, facts: &UnitFields<'_>) -> bool {
        self.query.holds(|condition| {
            Some(match condition {
                Condition::Role(role) => facts.role == Some(*role),
                Condition::Since(time) => facts.millis.is_some_and(|millis| millis >= *time),
                Condition::Until(time) => facts.millis.is_some_and(|millis| millis <= *time),
                Condition::Model(part) => facts.model.is_some_and(|model| has(model, part)),
                Condition::Branch(part) => facts.branch.is_some_and(|branch| has(branch, part)),
                Condition::IsBranch(name) => facts.branch == Some(&**name),
                Condition::Agent(wanted) => match (facts.agent)() {
                    None => wanted == "none",
                    Some(id) => {
                        let is_type = || (facts.agent_type)().is_some_and(|kind| is(kind, wanted));
                        folded(&id).starts_with(wanted) || is_type()
                    }
                },
                _ => return None,
            })
        })
    }

    /// Returns the best text of a unit if it matches.
    pub(crate) fn best(
        &self,
        file: usize,
        unit: &Unit<'_>,
        buffers: &mut Folded,
    ) -> Option<BestText> {
        let texts = unit.texts.iter().enumerate();
        let wanted = texts.filter(|(_, text)| self.wants_text(file, text, unit.is_api_error));
        self.query.best(wanted, buffers)
    }

    fn wants_text(&self, file: usize, text: &Text<'_>, is_api_error: bool) -> bool {
        self.query.holds(|condition| {
            Some(match condition {
                Condition::In(field) => text.field == *field,
                Condition::Error(wanted) => {
                    let is_error = matches!(text.tool, ToolPart::Result { is_error: true, .. });
                    (is_error || is_api_error) == *wanted
                }
                Condition::Tool(name) => match &text.tool {
                    ToolPart::None => false,
                    ToolPart::Call { name: called, .. } => {
                        called.as_deref().is_some_and(|called| is(called, name))
                    }
                    ToolPart::Result { call, .. } => {
                        let call = call.as_deref().and_then(|id| self.calls(file).get(id));
                        call.is_some_and(|call| is(&call.name, name))
                    }
                },
                Condition::Path(part) => match &text.tool {
                    ToolPart::None => false,
                    ToolPart::Call { path, .. } => {
                        path.as_deref().is_some_and(|path| has(path, part))
                    }
                    ToolPart::Result { call, .. } => {
                        let call = call.as_deref().and_then(|id| self.calls(file).get(id));
                        call.is_some_and(|call| has(&call.path, part))
                    }
                },
                _ => return None,
            })
        })
    }

    /// Returns the calls of a file, which are read when a result is first asked for its call.
    pub(crate) fn calls(&self, file: usize) -> &Calls {
        self.states[file].calls.get_or_init(|| {
            let mut filters = self.query.filters.iter();
            // Paths of calls take memory, and only `path:` compares them.
            let needs_paths = filters.any(|filter| matches!(filter.condition, Condition::Path(_)));
            let source = self.catalog.open_file(file);
            let calls = source.and_then(|source| Calls::read(&source, needs_paths));
            calls.unwrap_or_else(|error| {
                self.note(Err(error));
                Calls::default()
            })
        })
    }

    fn agent_type(&self, file: usize) -> Option<&str> {
        let read = || {
            // The type of a subagent is in its metadata only.
            let path = self.catalog.files[file].path.with_extension("meta.json");
            let bytes = self.catalog.disk.read(&path, AGENT_META_CAP).ok()?;
            let object = Object::parse(utf8(&bytes)?).ok()?;
            let kind = AgentMetadata::from(object).agent_type()?.into_owned();
            Some(kind)
        };
        self.states[file].agent_type.get_or_init(read).as_deref()
    }

    /// Scans a damaged file as the index reads it.
    fn scan_with_index(&self, worker: &mut Worker, file: usize) -> Result<(), Error> {
        let source = self.catalog.open_file(file)?;
        let index = for_each_in_index(&source, |place, text, envelope| {
            let first = worker.found.len();
            let line = text.as_bytes();
            self.scan_entry(worker, file, place.offset, line, envelope, true);
            if let Some(found) = worker.found.get_mut(first) {
                found.len = place.len;
            }
        })?;
        let mut bytes = Vec::new();
        for finding in index.findings() {
            let before = index
                .entries()
                .rev()
                .find(|entry| entry.offset() <= finding.offset);
            let is_read =
                before.is_some_and(|entry| entry.offset() + entry.byte_len() > finding.offset);
            if is_read || finding.len == 0 {
                continue;
            }
            // Lines that are too long are not read again.
            let len = usize::try_from(finding.len).unwrap_or(usize::MAX);
            let may_match = len > DEFAULT_LINE_CAP || {
                bytes.resize(len, 0);
                let read = source.read_at(finding.offset, &mut bytes)?;
                // As in the search for lines, so that the number does not depend on the way.
                let first = self.prefilters.first();
                first.is_none_or(|first| first.may_be_in(&bytes[..read]))
            };
            self.unread
                .fetch_add(u64::from(may_match), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Scans a stored result.
    fn scan_result(
        &self,
        worker: &mut Worker,
        task: &FileRange<'_>,
        name: &str,
    ) -> Result<(), Error> {
        let file = task.file;
        let found = &self.catalog.files[file];
        if found.len > MAX_STORED_RESULT_LEN {
            self.unread.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let read = self
            .catalog
            .disk
            .read(&found.path, MAX_STORED_RESULT_LEN as usize);
        let bytes = read.map_err(|error| Error::io(&found.path, None, error))?;
        self.count(bytes.len() as u64);
        if task.build.is_some() {
            let text = String::from_utf8_lossy(&bytes);
            worker
                .maker
                .get_or_insert_default()
                .add_result(&bytes, &text);
        }
        if bytes.is_empty() || !self.may_match(&bytes) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&bytes);
        let owner = self.owners(found.session).get(name);
        let unit = Owner::unit(owner, text);
        let owner_file = owner.map_or(file, |owner| owner.file);
        let is_wanted = self.wants_unit(&UnitFields {
            role: unit.role,
            millis: owner.and_then(|owner| owner.millis),
            model: None,
            branch: unit.branch.as_deref(),
            agent: &|| owner?.agent.clone(),
            agent_type: &|| owner.and_then(|owner| self.agent_type(owner.file)),
        });
        if is_wanted && let Some(best) = self.best(owner_file, &unit, &mut worker.folded) {
            worker.found.push(Match {
                offset: owner.map_or(0, |owner| owner.offset),
                len: owner.map_or(0, |owner| owner.len),
                file: file as u32,
                key: owner.map_or_else(
                    || CopyKey {
                        ids: [self.hashes.of((file, name)); 2],
                        content: 0,
                    },
                    |owner| owner.key,
                ),
                millis: owner.and_then(|owner| owner.millis).unwrap_or(i64::MIN),
                score: best.score,
                is_own: owner.is_some_and(|owner| owner.is_own),
                // The text of a whole entry is the same, repaired or not.
                is_salvaged: true,
            });
        }
        Ok(())
    }

    /// Returns the entries to which the stored results of a session belong.
    pub(crate) fn owners(&self, session: usize) -> &Owners {
        self.owners[session].get_or_init(|| {
            let owners = Owners::read(self.catalog, &self.hashes, session);
            owners.unwrap_or_else(|error| {
                self.note(Err(error));
                Owners::default()
            })
        })
    }
}

/// The fields of a unit that filters compare.
struct UnitFields<'f> {
    role: Option<Role>,
    millis: Option<i64>,
    model: Option<&'f str>,
    branch: Option<&'f str>,
    agent: &'f dyn Fn() -> Option<String>,
    agent_type: &'f dyn Fn() -> Option<&'f str>,
}

impl Query {
    /// Returns whether all filters hold of those for which `holds` returns a value.
    pub(crate) fn holds(&self, mut holds: impl FnMut(&Condition) -> Option<bool>) -> bool {
        let mut open = Vec::new();
        let mut closed = Vec::new();
        for filter in &self.filters {
            let Some(is_so) = holds(&filter.condition) else {
                continue;
            };
            let key = (mem::discriminant(&filter.condition), filter.is_added);
            match (filter.is_negative, is_so) {
                (true, true) => return false,
                (true, false) => {}
                (false, true) => closed.push(key),
                (false, false) => open.push(key),
            }
        }
        open.iter().all(|key| closed.contains(key))
    }
}

/// Returns whether a text contains a part, which is folded.
fn has(text: &str, part: &str) -> bool {
    folded(text).contains(part)
}

fn is(text: &str, wanted: &str) -> bool {
    folded(text) == wanted
}
