//! Reads the usage in files, several files at a time.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use aho_corasick::packed::Searcher;
use aho_corasick::{AhoCorasick, Input, Span};
use memchr::{memchr, memrchr};
use transcript_format::lines::DEFAULT_LINE_CAP;
use transcript_format::scan::utf8;
use transcript_reader::{Error, Source};
use transcript_storage::parallel;

use super::formats::SIDECAR_KIND;
use super::options::UsageOptions;
use super::part::{DamagedLine, Part, Reader};
use crate::cache::{Cache, CacheUpdate, Lookup, PieceMaker};
use crate::files::Catalog;
use crate::reading::{for_each_block, for_each_in_index};
use crate::sidecar::{Piece, StoredPiece};

/// The cache of the usage of the files of a catalog.
pub(super) type UsageCache<'c> = Cache<'c, Arc<[u8]>>;

pub(super) fn open_cache<'c>(folder: &Path, catalog: &'c Catalog) -> UsageCache<'c> {
    Cache::new(SIDECAR_KIND, folder, catalog, |payload: &[u8]| {
        payload.into()
    })
}

/// The maximum number of bytes after the cached part of a file that are read even if only the cache may be used.
const MAX_UNCACHED_REST: u64 = 1 << 20;

/// The length of the part of a file that a thread reads at a time, in bytes.
const PART_LEN: u64 = 4 << 20;

/// Texts of which each line about usage has one: its type, or a name in it. The escapes are those
/// with which such a text could be written as well.
const USAGE_MARKS: [&str; 11] = [
    "\"assistant\"",
    "\"searchCount\"",
    "\"cost-state\"",
    "\"total_cost_usd\"",
    "\"compact_boundary\"",
    "\\u002",
    "\\u003",
    "\\u004",
    "\\u005",
    "\\u006",
    "\\u007",
];

/// Finds lines that may say something about usage.
#[derive(Debug)]
enum LineFinder {
    Packed(Searcher),
    Automaton(AhoCorasick),
}

impl LineFinder {
    /// `None` if no finder can be made, which does not happen.
    fn new() -> Option<Self> {
        match Searcher::new(USAGE_MARKS) {
            Some(packed) => Some(Self::Packed(packed)),
            // The processor lacks the instructions.
            None => AhoCorasick::new(USAGE_MARKS).ok().map(Self::Automaton),
        }
    }

    fn find(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let span = Span {
            start: at,
            end: bytes.len(),
        };
        let found = match self {
            Self::Packed(packed) => packed.find_in(bytes, span),
            Self::Automaton(automaton) => automaton.find(Input::new(bytes).span(span)),
        };
        found.map(|found| found.start())
    }
}

/// The usage of all files, and the problems of reading them.
#[derive(Debug, Default)]
pub(super) struct UsageLines {
    /// By file and offset, in order.
    pub(super) parts: Vec<(usize, u64, Part)>,
    pub(super) problems: Vec<Error>,
    pub(super) bytes: u64,
    /// The number of entries that could not be read.
    pub(super) unread: u64,
    /// The files that were skipped, because too much of them is not in the cache.
    pub(super) skipped: Vec<usize>,
}

/// The cached part of a file, and the part that must be read.
#[derive(Debug, Default)]
struct FilePlan {
    file: usize,
    /// The cached parts at its start.
    kept: Vec<(u64, Part)>,
    /// The offset from which it is read; `None` if all of it is cached.
    start: Option<u64>,
    /// The cache update, if the parts that are read are cached.
    build: Option<CacheUpdate>,
    is_skipped: bool,
    /// Whether the cached part has an answer whose id other answers may have, too.
    needs_all: bool,
}

/// A part of a file.
struct FileRange<'p> {
    plan: &'p FilePlan,
    start: u64,
    end: u64,
    /// Whether no other task is about the file.
    is_only_part: bool,
}

/// The result of reading a range of a file.
#[derive(Default)]
struct ReadTask {
    file: usize,
    start: u64,
    parts: Vec<(u64, Part)>,
    /// The pieces for the cache.
    pieces: Vec<Piece>,
    /// Whether an answer has an id that may be that of others, here or before.
    needs_all: bool,
    is_damaged: bool,
    problem: Option<Error>,
    bytes: u64,
    unread: u64,
}

/// The buffers of a thread.
#[derive(Default)]
struct Worker {
    buffer: Vec<u8>,
    reader: Reader,
}

/// Reads the usage of these files of a catalog, from `cache` as far as it has them.
pub(super) fn read_files(
    catalog: &Catalog,
    files: &[usize],
    options: &UsageOptions,
    cache: Option<&UsageCache<'_>>,
) -> UsageLines {
    let threads = options.threads;
    if let Some(cache) = cache {
        let read_folder = |folder: &usize| cache.read_folder(*folder);
        parallel::map(&cache.folders_of(files), threads, || read_folder);
    }
    let only_kept = options.only_kept;
    let plan = |file: &usize| plan(catalog, cache, *file, only_kept);
    let mut plans = parallel::map(files, threads, || plan);
    let mut read = UsageLines::default();
    for plan in &mut plans {
        if plan.is_skipped {
            read.skipped.push(plan.file);
        }
        // Lanes are kept only where an answer has an id that others may have. The lines that follow then need their
        // links.
        plan.needs_all = plan.kept.iter().any(|(_, part)| !part.lanes.is_empty());
        let kept = std::mem::take(&mut plan.kept).into_iter();
        let kept = kept.map(|(start, part)| (plan.file, start, part));
        read.parts.extend(kept);
    }
    let mut tasks: Vec<FileRange<'_>> = Vec::new();
    for plan in &plans {
        let len = catalog.files[plan.file].len;
        let Some(mut start) = plan.start else {
            options.count(len);
            continue;
        };
        // The cached part counts for the progress, which would otherwise never reach the total.
        options.count(start.min(len));
        let first = tasks.len();
        let is_only_part = len.saturating_sub(start) <= PART_LEN;
        let task = |start, end| FileRange {
            plan,
            start,
            end,
            is_only_part,
        };
        while len.saturating_sub(start) > PART_LEN {
            tasks.push(task(start, start + PART_LEN));
            start += PART_LEN;
        }
        // The last part ends where the file ends by then.
        tasks.push(task(start, u64::MAX));
        if let Some(build) = &plan.build {
            build.start(tasks.len() - first);
        }
    }
    // The largest first, so that no thread starts with a long range when all others are done.
    tasks.sort_by_key(|task| {
        let end = catalog.files[task.plan.file].len.min(task.end);
        Reverse(end.saturating_sub(task.start))
    });
    let finder = LineFinder::new();
    let read_task = |worker: &mut Worker, task: &FileRange<'_>, needs_all| {
        let mut found = read_task(catalog, finder.as_ref(), worker, task, needs_all);
        // No other range of the file can change the result, so its memory is free at once.
        if task.is_only_part {
            keep(cache, task.plan, &mut found);
        }
        found
    };
    let mut found = parallel::map(&tasks, threads, || {
        let mut worker = Worker::default();
        move |task| {
            let found = read_task(&mut worker, task, task.plan.needs_all);
            options.count(found.bytes);
            found
        }
    });
    let again = tasks_with_more(&tasks, &found);
    if !again.is_empty() {
        let of_again = again.iter().map(|task| (task.plan.file, task.start));
        let of_again: HashSet<(usize, u64)> = of_again.collect();
        // An earlier range of the file found such an id. The ranges after it are read again, with all of their links.
        found.retain(|found| !of_again.contains(&(found.file, found.start)));
        let again = parallel::map(&again, threads, || {
            let mut worker = Worker::default();
            move |task| read_task(&mut worker, task, true)
        });
        found.extend(again);
    }
    let several = tasks.iter().filter(|task| !task.is_only_part);
    let several: HashMap<usize, &FilePlan> =
        several.map(|task| (task.plan.file, task.plan)).collect();
    for found in &mut found {
        if let Some(plan) = several.get(&found.file) {
            keep(cache, plan, found);
        }
    }
    let (mut damaged, mut failed) = (HashSet::new(), HashSet::new());
    for found in found {
        read.bytes += found.bytes;
        if found.is_damaged {
            damaged.insert(found.file);
        }
        // Several ranges of a file may fail for the same reason, which is reported once.
        if let Some(error) = found.problem
            && failed.insert(found.file)
        {
            read.problems.push(error);
        }
        let parts = found.parts.into_iter();
        let parts = parts.map(|(start, part)| (found.file, start, part));
        read.parts.extend(parts);
    }
    // A damaged file is read by the index alone, or entries on its whole lines would count twice.
    read.parts.retain(|(file, _, _)| !damaged.contains(file));
    let damaged: Vec<&FilePlan> = plans
        .iter()
        .filter(|plan| damaged.contains(&plan.file))
        .collect();
    let again = parallel::map(&damaged, threads, || {
        let mut worker = Worker::default();
        move |plan| read_with_index(catalog, &mut worker, plan, cache)
    });
    for found in again {
        read.bytes += found.bytes;
        read.unread += found.unread;
        read.problems.extend(found.problem);
        let parts = found.parts.into_iter();
        read.parts
            .extend(parts.map(|(start, part)| (found.file, start, part)));
    }
    if let Some(cache) = cache {
        cache.finish();
    }
    read.parts
        // Threads finish in any order. Owners, lanes and running totals depend on the order of the files.
        .sort_unstable_by_key(|(file, start, _)| (*file, *start));
    read
}

/// Decides which part of a file has to be read.
fn plan(
    catalog: &Catalog,
    cache: Option<&UsageCache<'_>>,
    file: usize,
    only_kept: bool,
) -> FilePlan {
    let whole = FilePlan {
        file,
        start: Some(0),
        ..FilePlan::default()
    };
    let skipped = FilePlan {
        file,
        is_skipped: true,
        ..FilePlan::default()
    };
    let Some(cache) = cache else {
        return whole;
    };
    let read = |pieces: &[StoredPiece<Arc<[u8]>>]| -> Option<Vec<(u64, Part)>> {
        let read = |piece: &StoredPiece<Arc<[u8]>>| Some((piece.start, Part::read(&piece.kept)?));
        pieces.iter().map(read).collect()
    };
    match cache.look_up(file) {
        Lookup::New(_) | Lookup::Unknown if only_kept => skipped,
        Lookup::Unknown => whole,
        Lookup::New(state) => FilePlan {
            build: cache.build(state, 0, 0),
            ..whole
        },
        Lookup::Damaged(pieces) => match read(&pieces).filter(|pieces| !pieces.is_empty()) {
            Some(kept) => FilePlan {
                file,
                kept,
                ..FilePlan::default()
            },
            None if only_kept => skipped,
            None => whole,
        },
        Lookup::Known(known) if only_kept && known.rest > MAX_UNCACHED_REST => skipped,
        Lookup::Known(known) => {
            let Some(mut kept) = read(&known.pieces) else {
                // A payload that this build cannot read, in spite of the version in its header.
                return if only_kept { skipped } else { whole };
            };
            if known.rest == 0 {
                return FilePlan {
                    file,
                    kept,
                    ..FilePlan::default()
                };
            }
            let (start, build) = cache.rest(&known);
            kept.retain(|(of, _)| *of < start);
            let len = catalog.files[file].len;
            debug_assert!(start <= known.state.len && len > 0);
            FilePlan {
                file,
                kept,
                start: Some(start),
                build,
                ..FilePlan::default()
            }
        }
    }
}

/// Returns the tasks before which another one of the same file found an answer whose id may be that of others, so that
/// lines matter that they omitted.
fn tasks_with_more<'t>(tasks: &'t [FileRange<'t>], found: &[ReadTask]) -> Vec<&'t FileRange<'t>> {
    let mut first: HashMap<usize, u64> = HashMap::new();
    for found in found.iter().filter(|found| found.needs_all) {
        let first = first.entry(found.file).or_insert(found.start);
        *first = found.start.min(*first);
    }
    let has_more = |task: &&FileRange<'_>| {
        let first = first.get(&task.plan.file);
        !task.plan.needs_all && first.is_some_and(|first| *first < task.start)
    };
    tasks.iter().filter(has_more).collect()
}

/// Reads the lines that start in a part of a file.
fn read_task(
    catalog: &Catalog,
    finder: Option<&LineFinder>,
    worker: &mut Worker,
    task: &FileRange<'_>,
    needs_all: bool,
) -> ReadTask {
    let mut found = ReadTask {
        file: task.plan.file,
        start: task.start,
        ..ReadTask::default()
    };
    worker.reader.start(needs_all);
    let (parts, pieces) = (&mut found.parts, &mut found.pieces);
    match read_part(catalog, finder, worker, task, parts, pieces) {
        Ok(Some(bytes)) => found.bytes = bytes,
        Ok(None) => found.is_damaged = true,
        Err(error) => found.problem = Some(error),
    }
    found.needs_all = worker.reader.needs_all();
    found
}

/// Caches the result of a task.
fn keep(cache: Option<&UsageCache<'_>>, plan: &FilePlan, found: &mut ReadTask) {
    if let Some((cache, build)) = cache.zip(plan.build.as_ref()) {
        let pieces = std::mem::take(&mut found.pieces);
        // An incomplete range would be a gap in the cache.
        let pieces = (!found.is_damaged && found.problem.is_none()).then_some(pieces);
        cache.done(plan.file, build, pieces, found.is_damaged);
    }
}

/// Adds the usage of the lines that start in a part of a file, and the pieces for the cache; `None` if one is damaged.
fn read_part(
    catalog: &Catalog,
    finder: Option<&LineFinder>,
    worker: &mut Worker,
    task: &FileRange<'_>,
    parts: &mut Vec<(u64, Part)>,
    pieces: &mut Vec<Piece>,
) -> Result<Option<u64>, Error> {
    let (file, builds) = (task.plan.file, task.plan.build.is_some());
    let source = Source::open_on(&catalog.disk, &catalog.files[file].path)?;
    let session = session_of(catalog, file);
    let (start, end) = (task.start, task.end.min(source.len()));
    let reader = &mut worker.reader;
    let mut maker = PieceMaker::default();
    let mut finish = |reader: &mut Reader, maker: &mut PieceMaker| {
        if let Some(mut piece) = maker.finish() {
            let part = reader.take();
            piece.payload = part.write();
            parts.push((piece.start, part));
            pieces.push(piece);
        }
    };
    let is_whole = for_each_block(&source, start, end, &mut worker.buffer, |offset, bytes| {
        if !builds {
            return read_lines(finder, reader, offset, bytes, session).is_some();
        }
        // A line without a line feed may still grow, so it is not cached.
        let ended = memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        if read_lines(finder, reader, offset, &bytes[..ended], session).is_none() {
            return false;
        }
        maker.push(offset, &bytes[..ended]);
        if maker.is_full(end) {
            finish(reader, &mut maker);
        }
        if ended < bytes.len() {
            finish(reader, &mut maker);
            let rest = &bytes[ended..];
            return read_lines(finder, reader, offset + ended as u64, rest, session).is_some();
        }
        true
    })?;
    finish(reader, &mut maker);
    // Without pieces all of it, else the line without an end.
    let last = parts.last().map_or(start, |(start, _)| start + 1);
    parts.push((last, reader.take()));
    Ok(is_whole.then_some(end.saturating_sub(start)))
}

/// Reads whole lines; `None` if one is damaged.
fn read_lines(
    finder: Option<&LineFinder>,
    reader: &mut Reader,
    offset: u64,
    bytes: &[u8],
    session: &str,
) -> Option<()> {
    // The lines up to here are done.
    let mut done = 0;
    // The next place that says something about usage.
    let mut place = 0;
    while done < bytes.len() {
        if place < done || done == 0 {
            let found = match finder {
                Some(finder) => finder.find(bytes, done),
                None => Some(done),
            };
            place = found.unwrap_or(bytes.len());
        }
        let (start, inside) = match reader.needs_all() {
            true => (done, done),
            false if place == bytes.len() => break,
            false => {
                let before = memrchr(b'\n', &bytes[done..place]);
                (before.map_or(done, |at| done + at + 1), place)
            }
        };
        let end = memchr(b'\n', &bytes[inside..]).map_or(bytes.len(), |len| inside + len);
        let line = &bytes[start..end];
        done = end + 1;
        let is_wanted = place < end;
        if line.trim_ascii().is_empty() || !is_wanted && line.len() > DEFAULT_LINE_CAP {
            continue;
        }
        if line.len() > DEFAULT_LINE_CAP {
            return None;
        }
        let read = utf8(line).ok_or(DamagedLine);
        let read = read.and_then(|text| reader.read(text, offset + start as u64, session));
        if is_wanted && read.is_err() {
            return None;
        }
    }
    Some(())
}

/// Reads a damaged file as the index has it.
fn read_with_index(
    catalog: &Catalog,
    worker: &mut Worker,
    plan: &FilePlan,
    cache: Option<&UsageCache<'_>>,
) -> ReadTask {
    let file = plan.file;
    let mut found = ReadTask {
        file,
        ..ReadTask::default()
    };
    let session = session_of(catalog, file);
    let reader = &mut worker.reader;
    reader.start(false);
    let read = Source::open_on(&catalog.disk, &catalog.files[file].path).and_then(|source| {
        for_each_in_index(&source, |place, text, _| {
            found.unread += u64::from(reader.read(text, place.offset, session).is_err());
        })?;
        Ok(source.len())
    });
    match read {
        Ok(bytes) => {
            found.bytes = bytes;
            let part = reader.take();
            let is_kept = plan.start == Some(0) && found.unread == 0;
            if let Some((cache, build)) = cache.zip(plan.build.as_ref())
                && is_kept
            {
                cache.keep_damaged(file, build, part.write());
            }
            found.parts.push((0, part));
        }
        Err(error) => found.problem = Some(error),
    }
    found
}

fn session_of(catalog: &Catalog, file: usize) -> &str {
    &catalog.sessions[catalog.files[file].session].id
}
