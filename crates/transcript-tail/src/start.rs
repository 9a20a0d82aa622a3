//! The position at which following starts in a file.

use std::collections::VecDeque;

use transcript_format::lines::{BackwardFramer, DEFAULT_LINE_CAP, Framed};
use transcript_reader::{Error, Source};

use crate::event::{EventKind, FollowedEntry, Reset};
use crate::file_position::{Checkpoint, FilePosition};
use crate::line_classifier::LineClassifier;

/// The size of reads, in bytes.
const CHUNK_SIZE: u64 = 64 << 10;

/// The start position in a file that exists when the follower is made, or is found by the watcher. A file that is created
/// later is read from its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartAt {
    /// At the first byte.
    #[default]
    Beginning,
    /// After the last newline: only new lines are emitted.
    End,
    /// At the first line that starts at or after this byte. A shorter file counts as
    /// [truncated](Reset::Truncated).
    Offset(u64),
    /// At the last lines that are entries, with their number.
    Last(usize),
    /// At the position of an earlier follower. If the file is another one, it is [reset](Reset).
    Checkpoint(Checkpoint),
}

/// The treatment of a last line without a newline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trailing {
    /// It is still being written, and is held back until its newline arrives.
    #[default]
    Pending,
    /// It is emitted once it is a complete object, because only a newline can follow that.
    Whole,
}

impl StartAt {
    /// Starts at the first byte of a file that does not exist yet. The position of an earlier
    /// follower belongs to another file.
    pub(crate) fn start_from_beginning(&mut self) {
        if !matches!(self, Self::Checkpoint(_)) {
            *self = Self::Beginning;
        }
    }

    /// Returns whether it depends on how long the file is when following begins.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self, Self::End | Self::Last(_))
    }

    /// Returns the start position in a file, of which the first `existing` bytes were there when following began; or what happened to the file since the checkpoint, and
    /// the offset of the checkpoint.
    pub(crate) fn position(
        &self,
        source: &Source,
        existing: Option<u64>,
        trailing: Trailing,
    ) -> Result<Result<FilePosition, (Reset, u64)>, Error> {
        let existing = existing.unwrap_or(u64::MAX);
        let offset = match self {
            Self::Beginning => 0,
            Self::End => last_before(source, existing, 0, Trailing::Pending, |_| true)?,
            Self::Last(count) => last_before(source, existing, *count, trailing, |_| true)?,
            Self::Offset(offset) => match first_line_from(source, *offset)? {
                Some(offset) => offset,
                None => return Ok(Err((Reset::Truncated, *offset))),
            },
            Self::Checkpoint(checkpoint) => {
                let (len, offset) = (source.len(), checkpoint.offset());
                return Ok(match checkpoint.position(source)? {
                    _ if len < offset => Err((Reset::Truncated, offset)),
                    None => Err((Reset::Replaced, offset)),
                    Some(position) => Ok(position),
                });
            }
        };
        if offset == 0 {
            return Ok(Ok(FilePosition::start()));
        }
        FilePosition::at(source, offset).map(Ok)
    }
}

/// Returns the offset of the first line that starts at or after `offset`; `None` when the file is
/// shorter. An unfinished line is not skipped.
fn first_line_from(source: &Source, offset: u64) -> Result<Option<u64>, Error> {
    if offset == 0 || source.len() < offset {
        return Ok((offset == 0).then_some(0));
    }
    let mut at = offset - 1;
    let mut buffer = vec![0; CHUNK_SIZE as usize];
    loop {
        let read = source.read_at(at, &mut buffer)?;
        if read == 0 {
            // The offset is in the middle of the last line, which is emitted when it is finished.
            return end_of_lines(source).map(Some);
        }
        if let Some(end) = memchr::memchr(b'\n', &buffer[..read]) {
            return Ok(Some(at + end as u64 + 1));
        }
        at += read as u64;
    }
}

/// Returns the offset after the last newline.
fn end_of_lines(source: &Source) -> Result<u64, Error> {
    offset_of_last(source, 0, Trailing::Pending, |_| true)
}

/// Returns the offset of the line where the last `count` entries of a file start that `counts`
/// accepts. With 0 it is the offset after the last newline. The file is read from its end, no
/// further than needed.
///
/// # Errors
/// When the system fails to read.
pub fn offset_of_last(
    source: &Source,
    count: usize,
    trailing: Trailing,
    counts: impl FnMut(&FollowedEntry) -> bool,
) -> Result<u64, Error> {
    last_before(source, u64::MAX, count, trailing, counts)
}

/// Returns what [`offset_of_last`] does for the first `existing` bytes of a file.
fn last_before(
    source: &Source,
    existing: u64,
    count: usize,
    trailing: Trailing,
    mut counts: impl FnMut(&FollowedEntry) -> bool,
) -> Result<u64, Error> {
    let mut end = source.len().min(existing);
    let mut framer = BackwardFramer::new(end, DEFAULT_LINE_CAP);
    let mut search = BackwardSearch {
        left: count,
        trailing,
        classifier: LineClassifier::default(),
        events: VecDeque::new(),
    };
    let mut buffer = vec![0; CHUNK_SIZE.min(end) as usize];
    while end > 0 {
        let start = end.saturating_sub(CHUNK_SIZE);
        let wanted = (end - start) as usize;
        if source.read_at(start, &mut buffer[..wanted])? < wanted {
            // The file became shorter; the next poll reports that.
            return Ok(0);
        }
        let mut rest = &buffer[..wanted];
        while let Some(framed) = framer.next(&mut rest) {
            if let Some(offset) = search.visit(framed, source, &mut counts)? {
                return Ok(offset);
            }
        }
        end = start;
    }
    match framer.finish() {
        Some(framed) => Ok(search.visit(framed, source, &mut counts)?.unwrap_or(0)),
        None => Ok(0),
    }
}

/// A search from the end of a file.
struct BackwardSearch {
    left: usize,
    trailing: Trailing,
    classifier: LineClassifier,
    events: VecDeque<EventKind>,
}

impl BackwardSearch {
    /// Handles the line before the one that was handled last; returns the result once it is known.
    fn visit(
        &mut self,
        framed: Framed<'_>,
        source: &Source,
        counts: &mut impl FnMut(&FollowedEntry) -> bool,
    ) -> Result<Option<u64>, Error> {
        let (offset, len, is_whole) = match framed {
            Framed::Line(line) => (line.offset, line.bytes.len() as u64, line.terminated),
            Framed::TooLong {
                offset,
                len,
                terminated,
            } => (offset, len, terminated),
        };
        if self.left == 0 {
            let newline = u64::from(is_whole);
            return Ok(Some(offset + newline * (len + newline)));
        }
        if is_whole || self.trailing == Trailing::Whole {
            self.classifier
                .classify(framed, None, source.path(), &mut self.events, None)?;
        }
        for event in self.events.drain(..) {
            if let EventKind::Entry(entry) = event
                && counts(&entry)
            {
                self.left = self.left.saturating_sub(1);
            }
        }
        Ok((self.left == 0).then_some(offset))
    }
}
