//! Builds the index, by several threads if the file is large.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use transcript_format::finding::{Code, Finding};
use transcript_format::lines::{DEFAULT_LINE_CAP, Framer};
use transcript_format::scan::Scanner;
use transcript_storage::parallel::{self, Limits};

use crate::damaged_lines;
use crate::error::Error;
use crate::fork_names;
use crate::index::Index;
use crate::partial_index::{PartialIndex, append};
use crate::source::Source;

/// The size of the pieces of a file that is read by several threads: small enough that a piece is
/// still in the cache when it is scanned.
const PIECE_LEN: u64 = 512 << 10;
/// The number of bytes read with a piece to complete its last line.
const BEYOND_LEN: usize = 8 << 10;
/// The number of bytes read at once.
const BUFFER_LEN: usize = PIECE_LEN as usize + BEYOND_LEN;
/// The minimum size of such a file.
const MIN_LEN: u64 = 4 << 20;

/// The options of building an [`Index`]. Only the line cap, and the search for unknown keys, affect the result.
#[derive(Clone, Debug)]
#[must_use]
pub struct LoadOptions {
    /// As for [`parallel::threads`].
    threads: Option<NonZeroUsize>,
    pub(crate) line_cap: usize,
    /// The size of the pieces, if not chosen by the size of the file.
    piece: Option<u64>,
    read: Option<Arc<AtomicU64>>,
    finds_unknown_keys: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// Reads all of `source`, with several threads if it is large.
    ///
    /// # Errors
    ///
    /// Only for I/O errors; damage is reported in [`Self::findings`].
    pub fn load(source: &Source) -> Result<Self, Error> {
        LoadOptions::new().load(source)
    }
}

impl LoadOptions {
    /// Returns the defaults: a thread for each processor, at most 16, and lines up to 64 MiB.
    pub fn new() -> Self {
        Self {
            threads: None,
            line_cap: DEFAULT_LINE_CAP,
            piece: None,
            read: None,
            finds_unknown_keys: false,
        }
    }

    /// Sets the number of threads; small files use one.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = NonZeroUsize::new(threads.max(1));
        self
    }

    /// Sets the maximum length of a line, in bytes. Longer lines are not read; each is a finding.
    pub fn line_cap(mut self, bytes: usize) -> Self {
        self.line_cap = bytes;
        self
    }

    /// Sets the size of the pieces that threads read. For tests: small pieces have many borders.
    #[doc(hidden)]
    pub fn piece(mut self, bytes: u64) -> Self {
        self.piece = Some(bytes.max(1));
        self
    }

    /// Adds the number of bytes read to `counter`, several times per megabyte, so that another
    /// thread can show progress. Bytes that are read a second time do not count.
    pub fn count_bytes(mut self, counter: Arc<AtomicU64>) -> Self {
        self.read = Some(counter);
        self
    }

    /// Finds the keys that the format does not know, for [`Index::unknown_keys`]. Every line is read
    /// once all the same.
    pub fn find_unknown_keys(mut self) -> Self {
        self.finds_unknown_keys = true;
        self
    }

    /// Returns a scanner for the lines.
    fn scanner(&self) -> Scanner {
        if self.finds_unknown_keys {
            Scanner::with_unknown_keys()
        } else {
            Scanner::new()
        }
    }

    /// Adds to the progress counter.
    fn count(&self, bytes: usize) {
        if let Some(counter) = &self.read {
            counter.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Reads all of `source`.
    ///
    /// # Errors
    ///
    /// Only for I/O errors.
    pub fn load(&self, source: &Source) -> Result<Index, Error> {
        let span = tracing::debug_span!(
            "load_index",
            path = %source.path().display(),
            bytes = source.len(),
            lines = tracing::field::Empty,
        );
        let _entered = span.enter();
        let mut index = self.load_lines(source)?;
        let read_at = |offset, bytes: &mut [u8]| source.read_at(offset, bytes);
        damaged_lines::salvage(&mut index, read_at, self.line_cap)?;
        let mut index = index.finish();
        index.name_session(source);
        index.new_names = fork_names::new_names(source, &index)?;
        span.record("lines", index.line_count());
        Ok(index)
    }

    /// Indexes the lines, without salvaging anything.
    fn load_lines(&self, source: &Source) -> Result<Index, Error> {
        let len = source.len();
        let pieces_of = |piece: u64| {
            let pieces = len.div_ceil(piece.max(1)).max(1);
            usize::try_from(pieces).unwrap_or(usize::MAX)
        };
        let mut piece = match self.piece {
            Some(piece) => piece,
            None if len < MIN_LEN => len,
            None => PIECE_LEN,
        };
        // One thread has no use for pieces, whose ends are read twice.
        if parallel::threads(self.threads, pieces_of(piece)) == 1 {
            piece = len;
        }
        let limits = Limits {
            threads: self.threads,
            ..Limits::default()
        };
        let mut joined = Joined::default();
        let maker = || {
            let mut reader = PieceReader::new(source, self);
            move |number| {
                let start = number as u64 * piece;
                reader.read(start, start.saturating_add(piece).min(len))
            }
        };
        parallel::in_order_within(limits, 0..pieces_of(piece), maker, |_, part| {
            joined.add(part?);
            Ok(())
        })?;
        Ok(joined.finish(len))
    }
}

/// The index of the pieces so far.
///
/// A piece is copied right after it was read, and its memory is used again: the records of a large
/// file are never in memory twice.
#[derive(Default)]
pub(crate) struct Joined {
    index: Index,
    /// The finding about a file that became shorter.
    shrunk: Option<Finding>,
}

impl Joined {
    /// Appends the next piece.
    pub(crate) fn add(&mut self, mut part: PartialIndex) {
        // A piece after the new end cannot know where the file ends; an earlier one does.
        let is_shrunk = |finding: &mut Finding| finding.code == Code::Shrunk;
        let shrunk = part.findings.extract_if(.., is_shrunk);
        let shrunk = shrunk.chain(self.shrunk.take());
        self.shrunk = shrunk.min_by_key(|finding| finding.offset);
        append(&mut self.index, part);
    }

    /// Returns the index of a file of `len` bytes. [`Index::finish`] completes it.
    pub(crate) fn finish(mut self, len: u64) -> Index {
        self.index.len = len;
        if let Some(mut shrunk) = self.shrunk {
            self.index.len = shrunk.offset;
            shrunk.len = len - shrunk.offset;
            self.index.findings.push(shrunk);
        }
        self.index
    }
}

/// Reads pieces of a file; reuses its buffers.
pub(crate) struct PieceReader<'s> {
    source: &'s Source,
    options: &'s LoadOptions,
    scanner: Scanner,
    buffer: Vec<u8>,
}

impl<'s> PieceReader<'s> {
    pub(crate) fn new(source: &'s Source, options: &'s LoadOptions) -> Self {
        Self {
            source,
            options,
            scanner: options.scanner(),
            buffer: vec![0; BUFFER_LEN.min(source.len() as usize + 1)],
        }
    }

    /// Indexes the lines that start in `start..end` or, if they follow a line feed, at `end`; but
    /// not the line at `start`, unless that is the start of the file.
    pub(crate) fn read(&mut self, start: u64, end: u64) -> Result<PartialIndex, Error> {
        let cap = self.options.line_cap;
        let mut part = PartialIndex::default();
        // The line before the first line feed belongs to the previous piece.
        let mut framer = (start == 0).then(|| Framer::starting_at(0, cap));
        let mut position = start;
        let mut beyond = BEYOND_LEN;
        loop {
            let most = match end.saturating_sub(position) {
                0 => {
                    beyond = (2 * beyond).min(BUFFER_LEN);
                    beyond
                }
                left => {
                    usize::try_from(left).map_or(BUFFER_LEN, |left| left.saturating_add(BEYOND_LEN))
                }
            };
            let most = most.min(self.buffer.len());
            let read = self.source.read_at(position, &mut self.buffer[..most])?;
            if read == 0 {
                break;
            }
            let mut rest = &self.buffer[..read];
            let before = position;
            position += read as u64;
            self.options
                .count(read.min(end.saturating_sub(before) as usize));
            let framer = match &mut framer {
                Some(framer) => framer,
                none => {
                    let Some(newline) = memchr::memchr(b'\n', rest) else {
                        if position >= end {
                            // That line extends past this piece.
                            return Ok(part);
                        }
                        continue;
                    };
                    rest = &rest[newline + 1..];
                    none.insert(Framer::starting_at(before + newline as u64 + 1, cap))
                }
            };
            loop {
                if framer.offset() > end {
                    return Ok(part);
                }
                let Some(framed) = framer.next(&mut rest) else {
                    break;
                };
                part.add(framed, &mut self.scanner);
            }
        }
        if let Some(framer) = &mut framer
            && framer.offset() <= end
            && let Some(framed) = framer.finish()
        {
            part.add(framed, &mut self.scanner);
        }
        let len = self.source.len();
        if position < len {
            let detail = "the file became shorter while it was read";
            part.find(Code::Shrunk, None, position, len - position, detail);
        }
        Ok(part)
    }
}
