//! A followed file, by its name, and the position up to which its events were emitted. Nothing here
//! waits.
//!
//! Every poll asks the file system again: which file has the name, how long the open file is, and
//! whether the emitted bytes are unchanged. The hint that caused the poll decides nothing.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memrchr;
use transcript_format::finding::{Code, Finding};
use transcript_format::lines::{Framed, Framer, Line};
use transcript_format::scan::Envelope;
use transcript_reader::{Error, ErrorKind, Source};
use transcript_storage::{Identity, LastBytes, ReadDisk, is_absent};

use crate::event::{EventKind, FollowedEntry, Reset};
use crate::file_position::{Checkpoint, FilePosition, has, has_newline};
use crate::line_classifier::LineClassifier;
use crate::live::FollowedConversation;
use crate::options::FollowOptions;
use crate::start::{StartAt, Trailing};

/// The size of reads, in bytes.
const CHUNK_SIZE: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct FileCursor {
    disk: Arc<dyn ReadDisk>,
    path: PathBuf,
    /// The start position in the first file that is found.
    start: Option<StartAt>,
    /// The length of the file when following began, if the start depends on that.
    existing: Option<u64>,
    cap: usize,
    trailing: Trailing,
    /// Whether the file is read once only; then up to this offset, which is known once the file is
    /// open.
    is_once: bool,
    limit: Option<u64>,
    /// A file that is read once has been read to its end.
    is_done: bool,
    file: Option<OpenFile>,
    /// The identity of the file of the position; kept when the file is closed.
    identity: Option<Identity>,
    /// The position after the last line of which all events were emitted.
    position: FilePosition,
    /// Splits the bytes after the position into lines, and holds the bytes after the last newline.
    framer: Framer,
    /// The last bytes of an unfinished line that the framer has taken.
    taken: LastBytes,
    early: EarlyLine,
    buffer: Vec<u8>,
    /// The part of the buffer that is not framed yet.
    unread: Range<usize>,
    /// The offset after the last newline of the file, if that is in the buffer.
    last_newline: Option<u64>,
    classifier: LineClassifier,
    /// Events of the last line that are not emitted yet.
    events: VecDeque<EventKind>,
    /// The position to move to when all of them are emitted.
    next: Option<FilePosition>,
    open_reported: bool,
    is_gone: bool,
    is_absent: bool,
    /// A file that is read once was reset and is read a second time.
    is_reset: bool,
}

/// A line that was parsed before its newline arrived.
#[derive(Debug, Default)]
struct EarlyLine {
    /// Its length at that time.
    pending: u64,
    /// The entry that was emitted for it.
    emitted: Option<FollowedEntry>,
}

impl EarlyLine {
    /// Returns whether this entry was emitted. A CR that arrives later does not matter.
    fn is(&self, offset: u64, text: &str) -> bool {
        self.emitted.as_ref().is_some_and(|emitted| {
            emitted.offset == offset && emitted.text.trim_end() == text.trim_end()
        })
    }
}

#[derive(Debug)]
struct OpenFile {
    source: Source,
    identity: Identity,
}

impl FileCursor {
    pub(crate) fn new(path: &Path, options: &FollowOptions) -> Self {
        let cap = options.line_cap;
        let (mut start, mut existing) = (options.start, None);
        // Lines that are written before the file is opened are new.
        if start.is_at_end() {
            match options.disk.metadata(path) {
                Ok(found) => existing = Some(found.len),
                Err(error) if is_absent(&error) => start.start_from_beginning(),
                // Opening it fails in the same way.
                Err(_) => {}
            }
        }
        Self {
            disk: Arc::clone(&options.disk),
            path: path.to_owned(),
            start: Some(start),
            existing,
            cap,
            trailing: options.trailing,
            is_once: options.is_once,
            limit: None,
            is_done: false,
            file: None,
            identity: None,
            position: FilePosition::start(),
            framer: Framer::starting_at(0, cap),
            taken: LastBytes::default(),
            early: EarlyLine::default(),
            buffer: Vec::new(),
            unread: 0..0,
            last_newline: None,
            classifier: LineClassifier::default(),
            events: VecDeque::new(),
            next: None,
            open_reported: false,
            is_gone: false,
            is_absent: false,
            is_reset: false,
        }
    }

    /// Returns the position after the last line of which all events were emitted.
    pub(crate) fn position(&self) -> &FilePosition {
        &self.position
    }

    /// Returns the checkpoint after the emitted events. Before the file is opened, that is where
    /// reading is to start.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        match self.start {
            Some(StartAt::Checkpoint(checkpoint)) => checkpoint,
            _ => self.position.checkpoint(),
        }
    }

    /// Returns the number of bytes after the last newline, as of the last poll.
    pub(crate) fn pending(&self) -> u64 {
        self.framer.pending()
    }

    /// Returns whether no file had the name at the last poll.
    pub(crate) fn is_absent(&self) -> bool {
        self.is_absent
    }

    pub(crate) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Sets the number of lines before the position, counted elsewhere.
    pub(crate) fn set_lines(&mut self, lines: Option<u64>) {
        self.position.set_lines(lines);
    }

    /// Closes the file until the next poll. If the file loses its name before that, the rest of it
    /// is not read.
    pub(crate) fn close(&mut self) {
        self.file = None;
        self.restart_line();
    }

    /// Returns the next event, if there is one now. Lines are added to `live` as they are read, and
    /// their changes to their entries.
    pub(crate) fn next(
        &mut self,
        mut live: Option<&mut FollowedConversation>,
    ) -> Result<Option<EventKind>, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                match self.next.take() {
                    Some(position) if self.events.is_empty() => self.position = position,
                    Some(position) => {
                        self.position.count_emitted();
                        self.next = Some(position);
                    }
                    None => {}
                }
                return Ok(Some(event));
            }
            if let Some(position) = self.next.take() {
                // A blank line has no events.
                self.position = position;
            }
            if !self.unread.is_empty() {
                self.frame(live.as_deref_mut())?;
            } else if !self.poll(live.as_deref_mut())? {
                // Thousands of followed files are idle most of the time, and must not keep a buffer each.
                self.buffer = Vec::new();
                return Ok(None);
            }
        }
    }

    /// Takes the next line out of the buffer.
    fn frame(&mut self, mut live: Option<&mut FollowedConversation>) -> Result<(), Error> {
        let all = &self.buffer[self.unread.clone()];
        let mut rest = all;
        let framed = self.framer.next(&mut rest);
        let used = &all[..all.len() - rest.len()];
        self.unread.start += used.len();
        let Some(framed) = framed else {
            self.taken.push(used);
            return Ok(());
        };
        let mut position = self.position.clone();
        let line = position.line();
        match framed {
            Framed::Line(line) => position.advance(line.bytes),
            Framed::TooLong { len, .. } => {
                self.taken.push(used);
                position.advance_unread(len, &self.taken);
            }
        }
        if !self.taken.bytes().is_empty() {
            self.taken = LastBytes::default();
        }
        let is_last = self.last_newline == Some(position.offset());
        self.next = Some(position);
        let events = &mut self.events;
        self.classifier
            .classify(framed, line, &self.path, events, live.as_deref_mut())?;
        // The entry was emitted before its newline arrived. It is not emitted again, unless the line is another one now.
        let early = std::mem::take(&mut self.early);
        if let Some(emitted) = &early.emitted {
            let is_emitted = |event: &EventKind| matches!(event, EventKind::Entry(entry) if early.is(entry.offset, &entry.text));
            let before = events.len();
            events.retain(|event| !is_emitted(event));
            if let Some(live) = live.as_deref_mut().filter(|_| events.len() < before) {
                live.forget(emitted.offset);
            }
        }
        if let Some(live) = live {
            live.report(is_last, events);
        }
        // Some of its events were emitted before a restart.
        let emitted = self.events.len().min(self.position.emitted() as usize);
        self.events.drain(..emitted);
        Ok(())
    }

    /// Checks for new bytes; returns whether there is anything new.
    fn poll(&mut self, live: Option<&mut FollowedConversation>) -> Result<bool, Error> {
        if self.is_done {
            return Ok(false);
        }
        let span = tracing::trace_span!(
            "poll",
            path = %self.path.display(),
            offset = self.position.offset(),
        );
        let _entered = span.enter();
        // Before the file is read: a name that is gone or moved by now leaves the last bytes readable in the open file.
        let named = self.named()?;
        self.is_absent = named.is_none();
        let Some(file) = &mut self.file else {
            return match named {
                Some(_) => self.open(),
                None => Ok(self.report_gone()),
            };
        };
        file.source.refresh()?;
        let emitted = self.position.offset();
        let len = file.source.len().min(self.limit.unwrap_or(u64::MAX));
        if len < emitted {
            self.reset(Reset::Truncated);
            return Ok(true);
        }
        if len < emitted + self.framer.pending() {
            // A writer truncated a line that it could not finish.
            self.restart_line();
        }
        let Some(file) = &self.file else {
            return Ok(true);
        };
        let read_from = emitted + self.framer.pending();
        let wanted = (len - read_from).min(CHUNK_SIZE) as usize;
        self.buffer.resize(wanted, 0);
        let read = file.source.read_at(read_from, &mut self.buffer)?;
        // The bytes belong to the file that was followed if the emitted bytes before them are still
        // unchanged after the read.
        if !self.position.matches(&file.source)? {
            let reason = self.mismatch_reason()?;
            self.reset(reason);
            return Ok(true);
        }
        // Nothing comes after the line that is read: it ends without a newline, or never.
        let is_last = read == 0
            && match named {
                _ if self.is_once => true,
                None => !self.is_gone,
                Some(named) => named != file.identity,
            };
        if !self.line_is_unchanged(&file.source, read, is_last)? {
            // The start of the line was truncated, and another line was written in its place.
            self.restart_line();
            return Ok(true);
        }
        if read > 0 {
            self.unread = 0..read;
            let newline = memrchr(b'\n', &self.buffer[..read]);
            // Only at the end of the file: a newline in the middle of a chunk is not the last line that is available.
            let newline = newline.filter(|_| read_from + read as u64 == len);
            self.last_newline = newline.map(|newline| read_from + newline as u64 + 1);
            return Ok(true);
        }
        if self.is_once {
            return self.finish(live);
        }
        let identity = file.identity;
        if self.trailing == Trailing::Whole && self.emit_early(live) {
            return Ok(true);
        }
        match named {
            None => Ok(self.report_gone()),
            Some(named) if named != identity => {
                // The old file was read to its end.
                self.report_torn();
                self.file = None;
                self.open()
            }
            Some(_) => {
                let is_back = std::mem::take(&mut self.is_gone);
                if is_back {
                    self.events.push_back(EventKind::Open { offset: emitted });
                }
                Ok(is_back)
            }
        }
    }

    /// Returns whether the file still contains the bytes that were read after the position. While
    /// we read, a writer may truncate a line and write another one, and a mix of the two was never
    /// written by anyone.
    ///
    /// Of a line that waits for its newline, which may be long, only the start and the end are
    /// compared; before it is emitted, or is known to be the last line, all of it is.
    fn line_is_unchanged(
        &self,
        source: &Source,
        read: usize,
        is_last: bool,
    ) -> Result<bool, Error> {
        let end = memrchr(b'\n', &self.buffer[..read]).map_or(0, |end| end + 1);
        let is_all = is_last || end > 0;
        let (emitted, pending) = (self.position.offset(), self.framer.pending());
        let read_from = emitted + pending;
        let (taken, partial) = (self.taken.bytes(), self.framer.partial());
        let is_kept = pending == partial.len() as u64;
        let most = if is_all {
            partial.len()
        } else {
            CHUNK_SIZE as usize
        };
        Ok(has(source, emitted, &partial[..partial.len().min(most)])?
            && has(source, read_from - taken.len() as u64, taken)?
            && (is_kept || !is_all || !has_newline(source, emitted..read_from)?)
            && has(source, read_from, &self.buffer[..end])?)
    }

    /// Returns the identity of the file that has the name now.
    fn named(&self) -> Result<Option<Identity>, Error> {
        match self.disk.metadata(&self.path) {
            Ok(metadata) => Ok(Some(metadata.identity)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(Error::io(&self.path, None, error)),
        }
    }

    fn mismatch_reason(&mut self) -> Result<Reset, Error> {
        let Some(file) = &mut self.file else {
            return Ok(Reset::Replaced);
        };
        file.source.refresh()?;
        let is_shorter = file.source.len() < self.position.offset();
        Ok(if is_shorter {
            Reset::Truncated
        } else {
            Reset::Replaced
        })
    }

    /// Opens the file that has the name now; returns whether that causes an event.
    fn open(&mut self) -> Result<bool, Error> {
        let mut source = match Source::open_on(&self.disk, &self.path) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(self.report_gone()),
            Err(error) => return Err(error),
        };
        let Some(metadata) = source.refresh()? else {
            return Ok(false);
        };
        let identity = metadata.identity;
        let known = self.identity.replace(identity);
        let reset = if let Some(start) = self.start.take() {
            match start.position(&source, self.existing, self.trailing) {
                Ok(Ok(position)) => {
                    self.position = position;
                    None
                }
                Ok(Err((reason, offset))) => Some((reason, offset)),
                Err(error) => {
                    // The next attempt starts at the same place, and not at the beginning.
                    self.start = Some(start);
                    return Err(error);
                }
            }
        } else if known.is_some_and(|known| known != identity) && self.position.offset() > 0 {
            Some((Reset::Replaced, self.position.offset()))
        } else {
            // The next poll finds out whether the same file still contains the emitted bytes.
            None
        };
        self.limit = self.is_once.then_some(source.len());
        self.file = Some(OpenFile { source, identity });
        let is_back = std::mem::take(&mut self.is_gone) || !self.open_reported;
        self.open_reported = true;
        match reset {
            Some((reason, offset)) => self.reset_from(reason, offset),
            None => {
                self.restart_line();
                if is_back {
                    let offset = self.position.offset();
                    self.events.push_back(EventKind::Open { offset });
                }
            }
        }
        Ok(true)
    }

    fn reset(&mut self, reason: Reset) {
        self.reset_from(reason, self.position.offset());
    }

    fn reset_from(&mut self, reason: Reset, offset: u64) {
        tracing::debug!(
            path = %self.path.display(),
            offset,
            reason = reason.name(),
            "following from the start again",
        );
        self.position = FilePosition::start();
        self.early = EarlyLine::default();
        self.restart_line();
        self.events.push_back(EventKind::Reset { reason, offset });
        if self.is_once {
            self.is_done = std::mem::replace(&mut self.is_reset, true);
            self.limit = self.file.as_ref().map(|file| file.source.len());
        }
    }

    /// Emits the part after the last newline of a file that is read once, because no newline will
    /// be waited for.
    fn finish(&mut self, mut live: Option<&mut FollowedConversation>) -> Result<bool, Error> {
        self.is_done = true;
        let line = self.position.line();
        match self.framer.finish() {
            Some(framed) => {
                let events = &mut self.events;
                self.classifier
                    .classify(framed, line, &self.path, events, live.as_deref_mut())?;
                if let Some(live) = live {
                    live.report(true, events);
                }
                let emitted = self.events.len().min(self.position.emitted() as usize);
                self.events.drain(..emitted);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Emits the unfinished line if it is a complete entry; returns whether it was.
    fn emit_early(&mut self, mut live: Option<&mut FollowedConversation>) -> bool {
        let (pending, bytes) = (self.framer.pending(), self.framer.partial());
        let may_be_whole = bytes.trim_ascii_end().ends_with(b"}");
        if !may_be_whole || self.early.pending == pending {
            return false;
        }
        self.early.pending = pending;
        let line = Line {
            offset: self.framer.offset(),
            bytes,
            terminated: false,
        };
        let number = self.position.line();
        let add = |envelope: &Envelope<'_>, text: &str| {
            if let Some(live) = &mut live {
                live.add(line.offset, envelope, text);
            }
        };
        let entry = self.classifier.entry(&line, number, add);
        let Some(entry) = entry else {
            return false;
        };
        if self.early.is(entry.offset, &entry.text) {
            if let Some(live) = live {
                live.forget(entry.offset);
            }
            return false;
        }
        self.events.push_back(EventKind::Entry(entry.clone()));
        self.early.emitted = Some(entry);
        if let Some(live) = live {
            live.push(Framed::Line(line), None);
            live.report(true, &mut self.events);
        }
        true
    }

    /// Discards the bytes that were read after the position, so that they are read again.
    fn restart_line(&mut self) {
        self.early.pending = 0;
        self.framer = Framer::starting_at(self.position.offset(), self.cap);
        self.taken = LastBytes::default();
        self.unread = 0..0;
    }

    /// Emits, once, that the name is gone. A file that never existed cannot be gone.
    fn report_gone(&mut self) -> bool {
        if let Some(start) = &mut self.start {
            start.start_from_beginning();
        }
        if self.is_gone || !self.open_reported {
            return false;
        }
        self.is_gone = true;
        let torn = if self.is_emitted_early() {
            0
        } else {
            self.framer.pending()
        };
        self.events.push_back(EventKind::Gone {
            offset: self.position.offset(),
            torn,
        });
        true
    }

    /// Returns whether everything after the last newline was emitted.
    fn is_emitted_early(&self) -> bool {
        let emitted = self.early.emitted.as_ref();
        emitted.is_some_and(|emitted| emitted.len == self.framer.pending())
    }

    /// Reports an unfinished line that can never get its newline.
    fn report_torn(&mut self) {
        let len = self.framer.pending();
        if len > 0 && !self.is_emitted_early() {
            self.events.push_back(EventKind::Damaged(Finding {
                code: Code::TornTail,
                line: self.position.line(),
                offset: self.position.offset(),
                len,
                detail: "the file was removed before a newline ended the line",
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Such a mix can be read when a writer truncates a line and writes another one while the read
    /// proceeds from page to page; that is too rare to wait for in a test.
    #[test]
    fn a_read_that_mixes_two_lines_is_rejected() {
        let path = Path::new("a.jsonl");
        let mut cursor = FileCursor::new(path, &FollowOptions::new().line_cap(usize::MAX));
        let source = Source::from_bytes(&b"{\"new\":222}\n{\"a"[..], path);
        let mut is_unchanged = |bytes: &[u8]| {
            cursor.buffer = bytes.to_vec();
            cursor
                .line_is_unchanged(&source, bytes.len(), false)
                .unwrap()
        };
        assert!(is_unchanged(b"{\"new\":222}\n{\"a"));
        assert!(!is_unchanged(b"{\"old\":222}\n{\"a"));
        // An unfinished line is compared when it has its newline.
        assert!(is_unchanged(b"{\"new\":222}\n{\"b"));
    }
}
