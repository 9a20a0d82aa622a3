//! An index that grows with its file, line by line.
//!
//! Undamaged lines are appended at once. What can be salvaged from a damaged line depends on the
//! damaged lines around it, so the last run of damaged lines stays open: its bytes are kept, and it
//! is salvaged when the index is asked for, and again when the run has grown since.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use transcript_format::client_version::ClientVersion;
use transcript_format::lines::{DEFAULT_LINE_CAP, Framed, Line};
use transcript_format::scan::{Envelope, Scanner};

use crate::bodies::text_of;
use crate::damaged_lines;
use crate::fork_names::{may_have_old_id, old_id};
use crate::index::{Boundary, EntryMarks, Id, Index};
use crate::interner;
use crate::partial_index::{self, PartialIndex};

/// An [`Index`] that grows line by line, and at each moment equals the one that a load of the lines
/// so far would give.
///
/// Takes the memory of an index; in addition at most two times the line limit for the bytes of
/// damaged lines at the end of the file, and 24 bytes for each entry that a fork copied.
///
/// ```
/// use std::path::Path;
/// use transcript_format::lines::Framer;
/// use transcript_reader::GrowingIndex;
///
/// let mut index = GrowingIndex::new(Path::new("session.jsonl"));
/// let mut framer = Framer::new();
/// let mut rest = &b"{\"type\":\"user\",\"uuid\":\"u1\"}\n{\"type\":\"us"[..];
/// while let Some(line) = framer.next(&mut rest) {
///     index.push(line);
/// }
/// assert_eq!(index.index().len(), 1);
/// ```
#[derive(Debug)]
pub struct GrowingIndex {
    index: Index,
    scanner: Scanner,
    line_cap: usize,
    /// The session in the file name.
    stem: Option<Box<str>>,
    open: OpenLines,
    /// The lengths of the index without the entries of the open lines; `None` while it contains
    /// none of them.
    closed: Option<Lengths>,
    forks: Forks,
}

/// Lines at the end of the file whose entries can still change: damaged lines and blank lines
/// between them, and a line without a newline.
#[derive(Debug, Default)]
struct OpenLines {
    lines: Vec<OpenLine>,
    bytes: Vec<u8>,
    /// The offset of the last run of damaged lines among them; `None` if an entry follows it.
    run_start: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct OpenLine {
    offset: u64,
    len: u64,
    terminated: bool,
    /// The start of its bytes in [`OpenLines::bytes`]; `None` for a line that is too long.
    at: Option<usize>,
}

impl OpenLines {
    fn push(&mut self, framed: Framed<'_>) {
        let line = match framed {
            Framed::Line(line) => OpenLine {
                offset: line.offset,
                len: line.bytes.len() as u64,
                terminated: line.terminated,
                at: Some(self.bytes.len()),
            },
            Framed::TooLong {
                offset,
                len,
                terminated,
            } => OpenLine {
                offset,
                len,
                terminated,
                at: None,
            },
        };
        self.lines.push(line);
        if let Framed::Line(line) = framed {
            self.bytes.extend_from_slice(line.bytes);
            // The salvage reads a run as it is in the file: an entry may be spread over its lines.
            if line.terminated {
                self.bytes.push(b'\n');
            }
        }
    }

    fn framed(&self, line: &OpenLine) -> Framed<'_> {
        let OpenLine {
            offset,
            len,
            terminated,
            at,
        } = *line;
        match at {
            Some(at) => Framed::Line(Line {
                offset,
                bytes: &self.bytes[at..at + len as usize],
                terminated,
            }),
            None => Framed::TooLong {
                offset,
                len,
                terminated,
            },
        }
    }

    /// Removes the last line if no newline ends it.
    fn drop_unterminated(&mut self) {
        if let Some(line) = self.lines.pop_if(|line| !line.terminated)
            && let Some(at) = line.at
        {
            self.bytes.truncate(at);
        }
    }

    /// Returns the bytes of the run of damaged lines from `offset` on. Lines that are too long are
    /// never part of a run.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> usize {
        let next = self.lines.partition_point(|line| line.offset <= offset);
        let line = next.checked_sub(1).map(|at| self.lines[at]);
        let Some((line, at)) = line.and_then(|line| Some((line, line.at?))) else {
            return 0;
        };
        let from = at + (offset - line.offset) as usize;
        let found = self.bytes.get(from..from + bytes.len());
        found.map_or(0, |found| {
            bytes.copy_from_slice(found);
            found.len()
        })
    }

    /// Indexes the lines, and salvages entries from them.
    fn index(&self, scanner: &mut Scanner, line_cap: usize) -> Index {
        let mut part = PartialIndex::default();
        for line in &self.lines {
            part.add(self.framed(line), scanner);
        }
        let end = self.lines.last().map_or(0, OpenLine::end);
        let mut index = Index::empty(end);
        partial_index::put(&mut index, part);
        let read_at = |offset, bytes: &mut [u8]| Ok(self.read_at(offset, bytes));
        // Memory can be read.
        _ = damaged_lines::salvage(&mut index, read_at, line_cap);
        // In the order of a load, to which the index must be equal at each moment.
        index
            .findings
            .sort_by_key(|finding| (finding.offset, finding.code));
        index
    }
}

impl OpenLine {
    fn end(&self) -> u64 {
        self.offset + self.len + u64::from(self.terminated)
    }
}

/// The lengths of the parts of an index.
#[derive(Debug)]
struct Lengths {
    records: usize,
    tools: usize,
    boundaries: usize,
    findings: usize,
    lines: u64,
    blank_lines: u64,
    len: u64,
    odd_ids: usize,
    sessions: usize,
    agents: usize,
    has_tombstones: bool,
    more_tombstones: usize,
    client_version: Option<ClientVersion>,
}

impl Lengths {
    fn of(index: &Index) -> Self {
        Self {
            records: index.records.len(),
            tools: index.tools.len(),
            boundaries: index.boundaries.len(),
            findings: index.findings.len(),
            lines: index.lines,
            blank_lines: index.blank_lines,
            len: index.len,
            odd_ids: index.side.odd_ids.len(),
            sessions: index.side.sessions.len(),
            agents: index.side.agents.len(),
            has_tombstones: index.side.has_tombstones,
            more_tombstones: index.side.more_tombstones.len(),
            client_version: index.side.client_version,
        }
    }

    /// Removes the items that were appended since, except for the uuids.
    fn restore(&self, index: &mut Index) {
        index.records.truncate(self.records);
        index.tools.truncate(self.tools);
        index.boundaries.truncate(self.boundaries);
        index.findings.truncate(self.findings);
        index.lines = self.lines;
        index.blank_lines = self.blank_lines;
        index.len = self.len;
        index.side.odd_ids.truncate(self.odd_ids);
        index.side.sessions.truncate(self.sessions);
        index.side.agents.truncate(self.agents);
        index.side.has_tombstones = self.has_tombstones;
        index.side.more_tombstones.truncate(self.more_tombstones);
        index.side.client_version = self.client_version;
    }
}

/// The ids that entries had before a fork copied them.
#[derive(Debug, Default)]
struct Forks {
    /// By the hash of an old id: the last entry that had it.
    copies: HashMap<u64, u32>,
    /// The values of `copies` that the open lines replaced, to restore them when these lines change.
    replaced: Vec<(u64, Option<u32>)>,
    /// The ids that boundaries name and no line has.
    missing: HashSet<Id>,
    /// The number of changes to [`Index::new_names`](Index).
    renames: u64,
}

impl GrowingIndex {
    /// Returns the index of an empty file with this name, for lines of up to 64 MiB.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        Self {
            index: Index::empty(0),
            scanner: Scanner::new(),
            line_cap: DEFAULT_LINE_CAP,
            stem: stem.map(Into::into),
            open: OpenLines::default(),
            closed: None,
            forks: Forks::default(),
        }
    }

    /// Sets the limit of the [`Framer`](transcript_format::lines::Framer) that the lines come from.
    #[must_use]
    pub fn line_cap(mut self, bytes: usize) -> Self {
        self.line_cap = bytes;
        self
    }

    /// Appends the next line of the file. A line without a newline is replaced by the next one,
    /// which must start at the same offset.
    pub fn push(&mut self, framed: Framed<'_>) {
        self.push_scanned(framed, None);
    }

    /// Appends the next line of the file as [`Self::push`] does. `envelope` is the scan of the whole
    /// line, unless it cannot be scanned.
    pub fn push_scanned(&mut self, framed: Framed<'_>, envelope: Option<&Envelope<'_>>) {
        // The entries of the open lines are provisional: with this line they may become others, or one.
        self.reopen();
        // The line has grown and comes again from its start.
        self.open.drop_unterminated();
        let (offset, terminated) = match framed {
            Framed::Line(line) => (line.offset, line.terminated),
            Framed::TooLong {
                offset, terminated, ..
            } => (offset, terminated),
        };
        if !terminated {
            return self.open.push(framed);
        }
        // The line is added to see whether it is damaged; if it joins the open lines, it is removed again.
        let before = Lengths::of(&self.index);
        self.add(framed, envelope);
        let Some(run_start) = self.damage(&before) else {
            if before.records == self.index.records.len()
                && before.findings == self.index.findings.len()
                && !self.open.lines.is_empty()
            {
                // A blank line does not end a run.
                before.restore(&mut self.index);
                return self.open.push(framed);
            }
            // An undamaged line ends the run. The entries of the run are before it in the file, and so in the index.
            if !self.open.lines.is_empty() {
                before.restore(&mut self.index);
                self.close();
                let before = Lengths::of(&self.index);
                self.add(framed, envelope);
                return self.complete(&before, |_| framed_bytes(framed, offset));
            }
            return self.complete(&before, |_| framed_bytes(framed, offset));
        };
        let has_entry = before.records < self.index.records.len();
        let end = self.index.len;
        before.restore(&mut self.index);
        // A load salvages runs of this length only: a longer one is divided, and what follows is a run of its own.
        let is_short = |start: u64| end - 1 - start <= self.line_cap as u64;
        let continues = !has_entry && self.open.run_start.is_some_and(is_short);
        if !continues || self.open.lines.is_empty() {
            self.close();
            self.open.run_start = run_start;
        }
        self.open.push(framed);
    }

    /// Returns the index of the lines so far.
    pub fn index(&mut self) -> &Index {
        if !self.open.lines.is_empty() && self.closed.is_none() {
            self.closed = Some(Lengths::of(&self.index));
            self.append_open();
        }
        &self.index
    }

    /// Returns the number of entries that later lines cannot change. Those after them come from
    /// damaged lines at the end of the file, or from a line without a newline.
    #[must_use]
    pub fn closed_len(&self) -> usize {
        let closed = self.closed.as_ref();
        closed.map_or(self.index.records.len(), |closed| closed.records)
    }

    /// Returns whether there are lines whose entries later lines can change: until then
    /// [`Self::index`] takes the time of reading them again.
    #[must_use]
    pub fn has_open(&self) -> bool {
        !self.open.lines.is_empty()
    }

    /// Returns a number that changes whenever [`Index::new_name`] does.
    #[must_use]
    pub fn renames(&self) -> u64 {
        self.forks.renames
    }

    /// Returns the approximate memory use, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.index.memory()
            + self.open.bytes.capacity()
            + self.open.lines.capacity() * size_of::<OpenLine>()
            + self.forks.copies.capacity() * (size_of::<(u64, u32)>() + 1)
    }

    /// Appends a line as it is, without its uuid.
    fn add(&mut self, framed: Framed<'_>, envelope: Option<&Envelope<'_>>) {
        make_room(&mut self.index.records);
        make_room(&mut self.index.tools);
        let mut part = partial_index::take(&mut self.index);
        match (framed, envelope) {
            (Framed::Line(line), Some(envelope)) => part.add_entry(line, envelope),
            _ => part.add(framed, &mut self.scanner),
        }
        partial_index::put(&mut self.index, part);
        let (offset, len) = match framed {
            Framed::Line(line) => (line.offset, line.bytes.len() as u64),
            Framed::TooLong { offset, len, .. } => (offset, len),
        };
        self.index.len = offset + len + 1;
    }

    /// Returns where the last run of damage in the line after `before` starts, `Some(None)` if an
    /// entry follows it; `None` when the line is not damaged.
    fn damage(&mut self, before: &Lengths) -> Option<Option<u64>> {
        let found = &mut self.index.findings[before.findings..];
        found.sort_by_key(|finding| (finding.offset, finding.code));
        let last = found
            .iter()
            .rposition(|finding| damaged_lines::is_damaged_line(finding.code))?;
        let mut start = last;
        let records = &self.index.records[before.records..];
        if records
            .iter()
            .any(|record| record.offset > found[last].offset)
        {
            return Some(None);
        }
        while let Some(above) = start.checked_sub(1)
            && damaged_lines::is_damaged_line(found[above].code)
        {
            let between = found[above].offset..found[start].offset;
            if records
                .iter()
                .any(|record| between.contains(&record.offset))
            {
                break;
            }
            start = above;
        }
        Some(Some(found[start].offset))
    }

    /// Appends the open lines for good.
    fn close(&mut self) {
        if self.open.lines.is_empty() {
            return;
        }
        self.append_open();
        self.forks.replaced.clear();
        self.open = OpenLines::default();
    }

    fn append_open(&mut self) {
        let before = Lengths::of(&self.index);
        let open = std::mem::take(&mut self.open);
        let mut found = open.index(&mut self.scanner, self.line_cap);
        partial_index::append(&mut self.index, partial_index::take(&mut found));
        self.index.len = found.len;
        let bytes = |place: Range<u64>| {
            let mut bytes = vec![0; (place.end - place.start) as usize];
            let read = open.read_at(place.start, &mut bytes);
            bytes.truncate(read);
            (bytes, place.start)
        };
        self.complete(&before, bytes);
        self.open = open;
    }

    /// Removes the entries of the open lines, because these lines are about to change.
    fn reopen(&mut self) {
        let Some(closed) = self.closed.take() else {
            return;
        };
        // From the end: the table can remove only the last of the lines with one uuid.
        for number in (closed.records..self.index.records.len()).rev() {
            self.index
                .uuids
                .remove_last(&self.index.records, number as u32);
        }
        closed.restore(&mut self.index);
        // In reverse, as several of these lines may have replaced the same value: the first is the one to restore.
        for (hash, copy) in self.forks.replaced.drain(..).rev() {
            match copy {
                Some(copy) => self.forks.copies.insert(hash, copy),
                None => self.forks.copies.remove(&hash),
            };
        }
        // One of these lines may have had an id that a boundary names: it is missing again.
        self.forks.missing.clear();
        self.index.new_names.clear();
        self.forks.renames += 1;
        self.find_missing(0);
        self.find_session();
    }

    /// Completes the index after entries were appended to those of `before`. `bytes` returns the
    /// bytes at a place of the file, or more, and the offset of the first of them.
    fn complete<B: AsRef<[u8]>>(
        &mut self,
        before: &Lengths,
        bytes: impl Fn(Range<u64>) -> (B, u64),
    ) {
        for number in before.records..self.index.records.len() {
            self.index.uuids.insert(&self.index.records, number as u32);
            let record = self.index.records[number];
            if !self.forks.missing.is_empty()
                && let Some(id) = record.id()
                && self.forks.missing.remove(&id)
            {
                self.index.new_names.remove(&id);
                self.forks.renames += 1;
            }
            if record.id().is_none() {
                continue;
            }
            let place = record.offset..record.offset + u64::from(record.len);
            let (bytes, start) = bytes(place.clone());
            let bytes = bytes.as_ref();
            let from = (place.start - start) as usize;
            let bytes = bytes.get(from..from + record.len as usize);
            let bytes = bytes.unwrap_or_default();
            // Only a copy names an old id. The bytes of a salvaged entry are not its text, so they prove nothing.
            let is_repaired = record.marks.contains(EntryMarks::SALVAGED);
            if !is_repaired && !may_have_old_id(bytes) {
                continue;
            }
            let text = text_of(bytes, record.marks);
            if let Some(old) = old_id(&text) {
                let hash = interner::hash(old.as_bytes());
                let replaced = self.forks.copies.insert(hash, number as u32);
                if self.closed.is_some() {
                    self.forks.replaced.push((hash, replaced));
                }
                if let Some(old) = self.index.id(&old)
                    && self.forks.missing.contains(&old)
                {
                    self.name(old, number as u32);
                }
            }
        }
        self.find_missing(before.boundaries);
        if before.sessions != self.index.side.sessions.len() {
            self.find_session();
        }
    }

    /// Finds the ids that no line has and that boundaries from number `first` on name.
    fn find_missing(&mut self, first: usize) {
        let Some(boundaries) = self.index.boundaries.get(first..) else {
            return;
        };
        let is_missing = |id: &Id| self.index.with_uuid(*id).next().is_none();
        let missing = boundaries.iter().flat_map(Boundary::ids).filter(is_missing);
        let missing: Vec<Id> = missing.collect();
        for id in missing {
            let hash = interner::hash(self.index.id_text(id).as_bytes());
            if let Some(copy) = self.forks.copies.get(&hash) {
                self.name(id, *copy);
            }
            self.forks.missing.insert(id);
        }
    }

    fn name(&mut self, old: Id, copy: u32) {
        if let Some(new) = self.index.records[copy as usize].id() {
            self.index.new_names.insert(old, new);
            self.forks.renames += 1;
        }
    }

    fn find_session(&mut self) {
        let named = self.stem.as_deref();
        let named = named.and_then(|stem| self.index.side.sessions.find(stem));
        self.index.named_session = named.and_then(|number| u16::try_from(number + 1).ok());
    }
}

/// Returns the bytes of a line.
fn framed_bytes(framed: Framed<'_>, offset: u64) -> (&[u8], u64) {
    match framed {
        Framed::Line(line) => (line.bytes, offset),
        Framed::TooLong { .. } => (&[], offset),
    }
}

/// Makes room for more, so that the spare capacity is a small part of the whole. Large blocks of
/// memory grow in place, or are moved without copying.
fn make_room<T>(items: &mut Vec<T>) {
    const MIN_ROOM: usize = 64;
    const PART: usize = 32;
    // A vector that doubles would leave up to half of the memory of a large index unused.
    if items.len() == items.capacity() {
        items.reserve_exact(items.len() / PART + MIN_ROOM);
    }
}
