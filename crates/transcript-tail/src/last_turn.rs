//! Whether the last entries of a file change the conversation as if nothing were above their turn.

use std::path::Path;

use transcript_format::scan::Scanner;
use transcript_reader::tail_first::is_turn_closed;
use transcript_reader::{Error, Source};

use crate::change::ChangeKind;
use crate::event::EventKind;
use crate::file_cursor::FileCursor;
use crate::live::{FollowedConversation, is_prompt};
use crate::options::FollowOptions;
use crate::start::{StartAt, Trailing, offset_of_last};

/// Smaller files are read from their start: that is as fast, and counts the lines.
const MIN_FILE_LEN: u64 = 4 << 20;
/// The maximum distance of the start of a turn from the first emitted entry, in bytes.
const MAX_LOOKBACK: u64 = 8 << 20;
/// The maximum number of entries. Their first parent is missing, so each line takes the time of
/// linking them all.
const MAX_ENTRIES: usize = 512;

/// The lines from a prompt to the end of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastTurn {
    /// The offset of the prompt.
    pub(crate) start: u64,
    /// The offset after the last entry that was checked.
    pub(crate) end: u64,
}

impl LastTurn {
    /// Returns the lines from the last prompt before `offset` on, if the changes of those after it
    /// depend on nothing further up: a prompt begins the turn, and each entry after it follows
    /// another one and moves the conversation nowhere.
    ///
    /// As `resume` does, this assumes of the lines that are not read: they have no uuid,
    /// message or call in common with these (`docs/tail-first.md`).
    pub(crate) fn find(
        path: &Path,
        options: &FollowOptions,
        offset: u64,
    ) -> Result<Option<Self>, Error> {
        if offset < MIN_FILE_LEN {
            return Ok(None);
        }
        // A file that is gone is reported by the next poll.
        let Ok(source) = Source::open_on(&options.disk, path) else {
            return Ok(None);
        };
        let (mut scanner, mut start) = (Scanner::new(), None);
        offset_of_last(&source, 1, Trailing::Pending, |entry| {
            let is_found = entry.offset < offset && is_prompt(&mut scanner, &entry.text);
            start = is_found.then_some(entry.offset);
            is_found || entry.offset + MAX_LOOKBACK < offset
        })?;
        let Some(start) = start else {
            return Ok(None);
        };
        let mut options = options.clone().start(StartAt::Offset(start));
        if !options.is_once {
            options.trailing = Trailing::Pending;
        }
        let mut cursor = FileCursor::new(path, &options);
        let mut live = FollowedConversation::new(path, options.line_cap);
        let (mut end, mut count) = (start, 0);
        while let Some(event) = cursor.next(Some(&mut live))? {
            let entry = match event {
                EventKind::Open { .. } => continue,
                EventKind::Entry(entry) if !entry.is_salvaged => entry,
                _ => return Ok(None),
            };
            count += 1;
            let mut changes = entry.changes.iter().map(|change| &change.kind);
            let is_moved = changes.any(|change| matches!(change, ChangeKind::Moved { .. }));
            if is_moved || count > MAX_ENTRIES {
                return Ok(None);
            }
            end = if options.is_once {
                u64::MAX
            } else {
                cursor.position().offset()
            };
        }
        let session = path.file_stem().and_then(|stem| stem.to_str());
        let turn = session.filter(|session| is_turn_closed(live.index(), session));
        Ok(turn.map(|_| Self { start, end }))
    }
}
