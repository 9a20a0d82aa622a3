//! Indexes the end of a file from shortly before its last compaction on.
//!
//! The entries before the last compaction are not read: a session is opened in the time of its tail. Whether the
//! conversation depends on nothing before is for the rules of a policy to say.

use std::collections::HashSet;

use memchr::{memmem, memrchr};
use transcript_format::finding::Code;
use transcript_format::scan::Flags;

use crate::build::{Joined, LoadOptions, PieceReader};
use crate::damaged_lines;
use crate::error::Error;
use crate::index::{EntryMarks, EntryNo, Id, Index, Preserved};
use crate::partial_index::PartialIndex;
use crate::source::Source;

/// The subtype of a compact boundary as a string of its own: within a text its quotes are escaped.
const BOUNDARY: &[u8] = b"\"compact_boundary\"";
/// The number of bytes that are searched for it at once.
const SEARCH_LEN: u64 = 1 << 20;

/// The maximum part of a file that is read to find its last compaction and the entries that it preserves.
#[derive(Clone, Debug)]
#[must_use]
pub struct EndOptions {
    /// Files with fewer bytes are not tried.
    min_bytes: u64,
    /// The part of the file that may be read, as its denominator.
    share: u64,
    /// The number of bytes that may be read.
    max_bytes: u64,
    /// The number of bytes before the boundary that are read at first.
    step: u64,
    /// The number of lines before the boundary that are read at least.
    margin: u64,
}

impl Default for EndOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl EndOptions {
    /// Returns the defaults: files from 4 MiB on, of which at most the last eighth and the last 16 MiB
    /// are read. A file without a compaction there is searched in vain, and what follows a
    /// compaction has to fit into the context of a model.
    pub fn new() -> Self {
        Self {
            min_bytes: 4 << 20,
            share: 8,
            max_bytes: 16 << 20,
            step: 256 << 10,
            margin: 64,
        }
    }

    /// Returns options that read `margin` lines before what the last boundary needs, of a file of
    /// any size.
    pub fn any_file(margin: u64) -> Self {
        Self {
            min_bytes: 0,
            share: 1,
            max_bytes: u64::MAX,
            step: 1,
            margin,
        }
    }
}

/// The last lines of a file: from some lines before its last compact boundary and before all that
/// this preserves. Offsets are those in the file; the numbers of the lines are not known.
#[derive(Debug)]
pub struct FileEnd {
    index: Index,
    boundary: EntryNo,
}

impl FileEnd {
    /// Reads the end of `source`. Returns `None` when there is no compaction in the part that
    /// `options` allow, when what it preserves begins before that part, or when the file shrank.
    ///
    /// # Errors
    ///
    /// Only for I/O errors.
    pub fn load(source: &Source, options: &EndOptions) -> Result<Option<Self>, Error> {
        let len = source.len();
        if len < options.min_bytes {
            return Ok(None);
        }
        let earliest = len - (len / options.share).min(options.max_bytes);
        let Some(start) = last_boundary(source, earliest)? else {
            return Ok(None);
        };
        let load = LoadOptions::new();
        // A reader starts after the first line feed, here that before a line.
        let mut reader = PieceReader::new(source, &load);
        let tail = reader.read(start - 1, len)?;
        let mut before = start;
        let mut step = options.step;
        let head = loop {
            // A file that is read from its start is no longer its end.
            before = before.saturating_sub(step).max(earliest);
            if before == 0 {
                return Ok(None);
            }
            let head = reader.read(before - 1, start - 1)?;
            if head.lines >= options.margin && holds_preserved(&head, &tail) {
                break head;
            }
            if before == earliest {
                return Ok(None);
            }
            step *= 2;
        };
        let mut joined = Joined::default();
        joined.add(head);
        joined.add(tail);
        let mut index = joined.finish(len);
        damaged_lines::salvage(
            &mut index,
            |offset, bytes| source.read_at(offset, bytes),
            load.line_cap,
        )?;
        let mut index = index.finish();
        index.starts_at = before;
        index.name_session(source);
        for record in &mut index.records {
            record.line = 0;
        }
        for finding in &mut index.findings {
            finding.line = None;
        }
        let is_shrunk = index.findings.iter().any(|one| one.code == Code::Shrunk);
        let boundary = index.boundaries.last().map(|boundary| boundary.entry_no);
        let boundary = boundary.filter(|_| !is_shrunk);
        Ok(boundary.map(|boundary| Self { index, boundary }))
    }

    /// Returns the index of these lines.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the number of the last compact boundary.
    #[must_use]
    pub fn boundary(&self) -> EntryNo {
        self.boundary
    }

    /// Returns the session in the file name, if one of the lines names it.
    #[must_use]
    pub fn named_session(&self) -> Option<&str> {
        let number = self.index.named_session?;
        Some(self.index.side.sessions.get(u32::from(number) - 1))
    }

    /// Returns the index of the lines from the boundary on, and of the entries `kept` before it. A
    /// kept entry whose parent is not in that index has none there.
    #[must_use]
    pub fn into_index(self, kept: &HashSet<EntryNo>) -> Index {
        let Self {
            mut index,
            boundary,
        } = self;
        let stays = |number: EntryNo| number >= boundary || kept.contains(&number);
        let numbers = (0..index.len()).map(EntryNo::new);
        let numbers: Vec<EntryNo> = numbers.filter(|number| stays(*number)).collect();
        let (mut records, mut tools) = (Vec::with_capacity(numbers.len()), Vec::new());
        for number in numbers {
            let mut record = index.records[number.get()];
            let parent = index.entry(number).parent();
            let leads_out = parent.is_none_or(|id| !index.with_uuid(id).any(stays));
            if number < boundary && leads_out {
                record.marks -= EntryMarks::LINK | EntryMarks::ODD_LINK;
                record.flags -= Flags::PARENT_ABSENT | Flags::PARENT_EMPTY | Flags::PARENT_ODD;
            }
            record.tools = tools.len() as u32;
            tools.extend_from_slice(index.entry(number).tools());
            records.push(record);
        }
        let before = records.len() - (index.len() - boundary.get());
        let from = index.entry(boundary).offset();
        index.boundaries.retain_mut(|other| {
            let place = other.entry_no.get().wrapping_sub(boundary.get());
            let stays = other.entry_no >= boundary;
            if stays {
                other.entry_no = EntryNo::new(before + place);
            }
            stays
        });
        index.findings.retain(|finding| finding.offset >= from);
        (index.records, index.tools) = (records, tools);
        index.finish()
    }
}

/// Returns the offset of the last line from `earliest` on that seems to be a compact boundary.
fn last_boundary(source: &Source, earliest: u64) -> Result<Option<u64>, Error> {
    // Only forward searches are vectorized.
    let boundary = memmem::Finder::new(BOUNDARY);
    let mut buffer = vec![0; (source.len() - earliest).min(SEARCH_LEN) as usize];
    let mut end = source.len();
    loop {
        let from = end.saturating_sub(buffer.len() as u64).max(earliest);
        let wanted = (end - from) as usize;
        let read = source.read_at(from, &mut buffer[..wanted])?;
        if read < wanted {
            return Ok(None);
        }
        if let Some(at) = boundary.find_iter(&buffer[..read]).last() {
            return line_start(source, from + at as u64, earliest, &mut buffer);
        }
        if from == earliest {
            return Ok(None);
        }
        // It may span two pieces.
        end = from + BOUNDARY.len() as u64 - 1;
    }
}

/// Returns the start of the line that contains the byte at `offset`; `None` when that is before
/// `earliest` or at the start of the file.
fn line_start(
    source: &Source,
    offset: u64,
    earliest: u64,
    buffer: &mut [u8],
) -> Result<Option<u64>, Error> {
    let mut end = offset;
    while end > earliest {
        let from = end.saturating_sub(buffer.len() as u64).max(earliest);
        let wanted = (end - from) as usize;
        let read = source.read_at(from, &mut buffer[..wanted])?;
        if let Some(newline) = memrchr(b'\n', &buffer[..read]) {
            return Ok(Some(from + newline as u64 + 1));
        }
        end = from;
    }
    Ok(None)
}

/// Returns whether all that the last boundary of `tail` preserves is in
/// one of the two parts.
fn holds_preserved(head: &PartialIndex, tail: &PartialIndex) -> bool {
    let Some(boundary) = tail.boundaries.last() else {
        return true;
    };
    let holds = |part: &PartialIndex, id: Id| {
        let id = match id {
            Id::Uuid(_) => Some(id),
            Id::Odd(number) => {
                let text = tail.side.odd_ids.get(number);
                part.side.odd_ids.find(text).map(Id::Odd)
            }
        };
        id.is_some_and(|id| part.records.iter().any(|record| record.id() == Some(id)))
    };
    let (anchor, named) = match &boundary.preserved {
        Preserved::Nothing => return true,
        Preserved::List { anchor, uuids } => (anchor, uuids.as_slice()),
        Preserved::Segment { anchor } => (anchor, boundary.ends.as_slice()),
    };
    let mut ids = named.iter().chain([anchor]).flatten();
    ids.all(|id| holds(head, *id) || holds(tail, *id))
}
