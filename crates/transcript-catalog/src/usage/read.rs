//! Reads what files say about usage, several files at a time.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use aho_corasick::packed::Searcher;
use aho_corasick::{AhoCorasick, Input, Span};
use memchr::{memchr, memrchr};
use transcript_format::lines::DEFAULT_LINE_CAP;
use transcript_format::scan::utf8;
use transcript_reader::{Error, Source};

use super::UsageOptions;
use super::part::{Part, Reader};
use crate::files::Catalog;
use crate::reading::{for_each_block, for_each_in_index, parallel};

/// The size of the part of a file that a thread reads at a time, in bytes.
const PART: u64 = 4 << 20;

/// What a line has that says something about usage: its type, or a name in it. The escapes are those
/// with which such a text could be written as well.
const WANTED: [&str; 10] = [
    "\"assistant\"",
    "\"searchCount\"",
    "\"cost-state\"",
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
enum Finder {
    Packed(Searcher),
    Automaton(AhoCorasick),
}

impl Finder {
    /// `None` if no finder can be made, which does not happen.
    fn new() -> Option<Self> {
        match Searcher::new(WANTED) {
            Some(packed) => Some(Self::Packed(packed)),
            // The processor lacks the instructions.
            None => AhoCorasick::new(WANTED).ok().map(Self::Automaton),
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

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// By file and offset, in order.
    pub(super) parts: Vec<(usize, u64, Part)>,
    pub(super) problems: Vec<Error>,
    pub(super) bytes: u64,
    /// The number of entries that could not be read.
    pub(super) unread: u64,
}

/// What a task found.
enum Found {
    Part(usize, u64, Part),
    Damaged(usize),
    Problem(usize, Error),
    Bytes(u64),
    Unread(u64),
}

/// The buffers of a thread.
#[derive(Default)]
struct Worker {
    buffer: Vec<u8>,
    reader: Reader,
}

/// Reads these files of a catalog as a whole.
pub(super) fn read_files(catalog: &Catalog, files: &[usize], options: &UsageOptions) -> Read {
    let mut tasks: Vec<(usize, u64, u64)> = Vec::new();
    for file in files {
        let len = catalog.files[*file].len;
        let mut start = 0;
        while len - start > PART {
            tasks.push((*file, start, start + PART));
            start += PART;
        }
        // The last part ends where the file ends by then.
        tasks.push((*file, start, u64::MAX));
    }
    tasks.sort_by_key(|(file, start, end)| {
        let end = catalog.files[*file].len.min(*end);
        std::cmp::Reverse(end - start)
    });
    let finder = Finder::new();
    let found = parallel(
        &tasks,
        options.threads,
        Worker::default,
        |worker: &mut Worker, task| {
            let (file, start, end) = *task;
            match read_part(catalog, finder.as_ref(), worker, file, start, end) {
                Ok(Some((part, bytes))) => {
                    if let Some(done) = &options.done {
                        done.fetch_add(bytes, Ordering::Relaxed);
                    }
                    vec![Found::Part(file, start, part), Found::Bytes(bytes)]
                }
                Ok(None) => vec![Found::Damaged(file)],
                Err(error) => vec![Found::Problem(file, error)],
            }
        },
    );
    let mut read = Read::default();
    let (mut damaged, mut failed) = (HashSet::new(), HashSet::new());
    let mut sort = |found: Found, read: &mut Read| match found {
        Found::Part(file, start, part) => read.parts.push((file, start, part)),
        Found::Damaged(file) => drop(damaged.insert(file)),
        Found::Problem(file, error) => {
            // Of the parts of a file, one complains.
            if failed.insert(file) {
                read.problems.push(error);
            }
        }
        Found::Bytes(bytes) => read.bytes += bytes,
        Found::Unread(unread) => read.unread += unread,
    };
    for found in found {
        sort(found, &mut read);
    }
    let again: Vec<usize> = damaged.iter().copied().collect();
    read.parts.retain(|(file, _, _)| !damaged.contains(file));
    let found = parallel(
        &again,
        options.threads,
        Worker::default,
        |worker: &mut Worker, file| match read_with_index(catalog, worker, *file) {
            Ok((part, unread, bytes)) => {
                vec![
                    Found::Part(*file, 0, part),
                    Found::Unread(unread),
                    Found::Bytes(bytes),
                ]
            }
            Err(error) => vec![Found::Problem(*file, error)],
        },
    );
    for found in found {
        match found {
            Found::Part(file, start, part) => read.parts.push((file, start, part)),
            Found::Bytes(bytes) => read.bytes += bytes,
            Found::Unread(unread) => read.unread += unread,
            Found::Problem(_, error) => read.problems.push(error),
            Found::Damaged(_) => {}
        }
    }
    read.parts
        .sort_unstable_by_key(|(file, start, _)| (*file, *start));
    read
}

/// Reads the lines that start in a part of a file; `None` if one is damaged.
fn read_part(
    catalog: &Catalog,
    finder: Option<&Finder>,
    worker: &mut Worker,
    file: usize,
    start: u64,
    end: u64,
) -> Result<Option<(Part, u64)>, Error> {
    let source = Source::open_on(&catalog.disk, &catalog.files[file].path)?;
    let session = session_of(catalog, file);
    let end = end.min(source.len());
    let reader = &mut worker.reader;
    let is_whole = for_each_block(&source, start, end, &mut worker.buffer, |offset, bytes| {
        read_lines(finder, reader, offset, bytes, session).is_some()
    });
    let part = reader.take();
    Ok(is_whole?.then_some((part, end.saturating_sub(start))))
}

/// Reads whole lines; `None` if one is damaged.
fn read_lines(
    finder: Option<&Finder>,
    reader: &mut Reader,
    offset: u64,
    bytes: &[u8],
    session: &str,
) -> Option<()> {
    // The lines up to here are done.
    let mut done = 0;
    while done < bytes.len() {
        let place = match finder {
            Some(finder) => match finder.find(bytes, done) {
                Some(place) => place,
                None => break,
            },
            None => done,
        };
        let start = memrchr(b'\n', &bytes[done..place]).map_or(done, |at| done + at + 1);
        let end = memchr(b'\n', &bytes[place..]).map_or(bytes.len(), |len| place + len);
        let line = &bytes[start..end];
        done = end + 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        if line.len() > DEFAULT_LINE_CAP {
            return None;
        }
        let text = utf8(line)?;
        reader.read(text, offset + start as u64, session).ok()?;
    }
    Some(())
}

/// Reads a damaged file as the index has it. Returns how many entries could not be read, and the size.
fn read_with_index(
    catalog: &Catalog,
    worker: &mut Worker,
    file: usize,
) -> Result<(Part, u64, u64), Error> {
    let source = Source::open_on(&catalog.disk, &catalog.files[file].path)?;
    let session = session_of(catalog, file);
    let reader = &mut worker.reader;
    let mut unread = 0;
    let read = for_each_in_index(&source, |place, text, _| {
        unread += u64::from(reader.read(text, place.offset, session).is_err());
    });
    let part = reader.take();
    read?;
    Ok((part, unread, source.len()))
}

fn session_of(catalog: &Catalog, file: usize) -> &str {
    &catalog.sessions[catalog.files[file].session].id
}
