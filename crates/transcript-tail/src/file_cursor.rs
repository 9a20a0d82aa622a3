//! One file by its name, and how far it was told. Nothing here waits.
//!
//! Every look asks the file system again: what the name leads to, how long the open file is, whether
//! the bytes that were told still stand there. What woke us decides nothing.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memchr::memrchr;
use transcript_format::finding::{Code, Finding};
use transcript_format::fingerprint::LastBytes;
use transcript_format::lines::{Framed, Framer, Line};
use transcript_reader::{Error, ErrorKind, Identity, Source};

use crate::event::{EventKind, FollowedEntry, Reset};
use crate::file_position::{Checkpoint, FilePosition, has, has_newline};
use crate::line_classifier::LineClassifier;
use crate::options::FollowOptions;
use crate::start::{StartAt, Trailing};

/// How much is read at once.
const CHUNK: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct FileCursor {
    path: PathBuf,
    /// Where to start in the file that is there first.
    start: Option<StartAt>,
    cap: usize,
    trailing: Trailing,
    /// Whether the file is read once; then up to this offset, as soon as it is open.
    is_once: bool,
    limit: Option<u64>,
    /// A file that is read once was read to its end.
    is_done: bool,
    file: Option<OpenFile>,
    /// Which file the place is in; kept when the file is closed.
    identity: Option<Identity>,
    /// Behind the last line of which all was told.
    position: FilePosition,
    /// Stands where the place is, and holds what follows it without a newline.
    framer: Framer,
    /// The last bytes that the framer took of a line without a newline.
    taken: LastBytes,
    early: Early,
    buffer: Vec<u8>,
    /// What of the buffer was not framed yet.
    unread: Range<usize>,
    classifier: LineClassifier,
    /// What the last line said and was not told yet.
    events: VecDeque<EventKind>,
    /// Where the place moves when all of them were told.
    next: Option<FilePosition>,
    open_reported: bool,
    is_gone: bool,
    is_absent: bool,
    /// A file that is read once was read a second time.
    is_reset: bool,
}

/// A line that was looked at before its newline came.
#[derive(Debug, Default)]
struct Early {
    /// How long it was.
    pending: u64,
    /// What was told of it.
    emitted: Option<FollowedEntry>,
}

impl Early {
    /// Whether this is what was told. A CR that came later changes nothing.
    fn is(&self, entry: &FollowedEntry) -> bool {
        self.emitted.as_ref().is_some_and(|emitted| {
            emitted.offset == entry.offset && emitted.text.trim_end() == entry.text.trim_end()
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
        Self {
            path: path.to_owned(),
            start: Some(options.start),
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
            early: Early::default(),
            buffer: Vec::new(),
            unread: 0..0,
            classifier: LineClassifier::default(),
            events: VecDeque::new(),
            next: None,
            open_reported: false,
            is_gone: false,
            is_absent: false,
            is_reset: false,
        }
    }

    /// Behind the last line of which all was told.
    pub(crate) fn position(&self) -> &FilePosition {
        &self.position
    }

    /// Where to go on from after what was told. Before the file was opened that is where it was to
    /// start.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        match self.start {
            Some(StartAt::Checkpoint(checkpoint)) => checkpoint,
            _ => self.position.checkpoint(),
        }
    }

    /// How many bytes come after the last newline, as of the last look.
    pub(crate) fn pending(&self) -> u64 {
        self.framer.pending()
    }

    /// Whether the name leads to no file, as of the last look.
    pub(crate) fn is_absent(&self) -> bool {
        self.is_absent
    }

    pub(crate) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Says how many lines stand before the place, which was found out elsewhere.
    pub(crate) fn set_lines(&mut self, lines: Option<u64>) {
        self.position.set_lines(lines);
    }

    /// Closes the file until the next look. A file that loses its name in between is not read to its
    /// end.
    pub(crate) fn close(&mut self) {
        self.file = None;
        self.restart_line();
    }

    /// Returns what comes next, if there is anything by now.
    pub(crate) fn next(&mut self) -> Result<Option<EventKind>, Error> {
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
                // A blank line says nothing.
                self.position = position;
            }
            if !self.unread.is_empty() {
                self.frame()?;
            } else if !self.poll()? {
                self.buffer = Vec::new();
                return Ok(None);
            }
        }
    }

    /// Takes the next line out of the buffer.
    fn frame(&mut self) -> Result<(), Error> {
        let all = &self.buffer[self.unread.clone()];
        let mut rest = all;
        let framed = self.framer.next(&mut rest);
        let used = &all[..all.len() - rest.len()];
        self.unread.start += used.len();
        let Some(framed) = framed else {
            self.taken.push(used);
            return Ok(());
        };
        let mut taken = std::mem::take(&mut self.taken);
        let mut position = self.position.clone();
        let line = position.line();
        match framed {
            Framed::Line(line) => position.advance(line.bytes),
            Framed::TooLong { len, .. } => {
                taken.push(used);
                position.advance_unread(len, &taken);
            }
        }
        self.next = Some(position);
        self.classifier
            .classify(framed, line, &self.path, &mut self.events)?;
        let early = std::mem::take(&mut self.early);
        let is_emitted =
            |event: &EventKind| matches!(event, EventKind::Entry(entry) if early.is(entry));
        self.events.retain(|event| !is_emitted(event));
        // Before a restart some of it was told.
        let emitted = self.events.len().min(self.position.emitted() as usize);
        self.events.drain(..emitted);
        Ok(())
    }

    /// Looks what there is now; returns whether anything is new.
    fn poll(&mut self) -> Result<bool, Error> {
        if self.is_done {
            return Ok(false);
        }
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
            // A writer took back what it could not finish.
            self.restart_line();
        }
        let Some(file) = &self.file else {
            return Ok(true);
        };
        let read_from = emitted + self.framer.pending();
        let wanted = (len - read_from).min(CHUNK) as usize;
        self.buffer.resize(wanted, 0);
        let read = file.source.read_at(read_from, &mut self.buffer)?;
        // What was read is of the file that was told, if the bytes before it are still the same now.
        if !self.position.matches(&file.source)? {
            let reason = self.mismatch_reason()?;
            self.reset(reason);
            return Ok(true);
        }
        let is_last = match named {
            _ if self.is_once => true,
            None => !self.is_gone,
            Some(named) => named != file.identity,
        };
        if !self.line_is_unchanged(&file.source, read, is_last)? {
            // The start of the line was taken back, and another line stands in its place.
            self.restart_line();
            return Ok(true);
        }
        if read > 0 {
            self.unread = 0..read;
            return Ok(true);
        }
        if self.is_once {
            return self.finish();
        }
        let identity = file.identity;
        if self.trailing == Trailing::Whole && self.tell_early() {
            return Ok(true);
        }
        match named {
            None => Ok(self.report_gone()),
            Some(named) if named != identity => {
                // The old file was told up to its end.
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

    /// Whether the file still holds what was read behind the place. A writer may take a line back and
    /// write another one while we read, and nobody ever wrote what stands half in the one and half in
    /// the other.
    ///
    /// Of a line that waits for its newline, which may be long, the start and the end must do; before
    /// it is told, or is known to be the last one, all of it is compared.
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
            CHUNK as usize
        };
        Ok(has(source, emitted, &partial[..partial.len().min(most)])?
            && has(source, read_from - taken.len() as u64, taken)?
            && (is_kept || !is_all || !has_newline(source, emitted..read_from)?)
            && has(source, read_from, &self.buffer[..end])?)
    }

    /// The file that the name leads to.
    fn named(&self) -> Result<Option<Identity>, Error> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(Some(Identity::of(&metadata))),
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

    /// Opens the file that has the name now; returns whether that is news.
    fn open(&mut self) -> Result<bool, Error> {
        let mut source = match Source::open(&self.path) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(self.report_gone()),
            Err(error) => return Err(error),
        };
        let Some(metadata) = source.refresh()? else {
            return Ok(false);
        };
        let identity = Identity::of(&metadata);
        let known = self.identity.replace(identity);
        let reset = if let Some(start) = self.start.take() {
            match start.position(&source, self.trailing) {
                Ok(Ok(position)) => {
                    self.position = position;
                    None
                }
                Ok(Err((reason, offset))) => Some((reason, offset)),
                Err(error) => {
                    self.start = Some(start);
                    return Err(error);
                }
            }
        } else if known.is_some_and(|known| known != identity) && self.position.offset() > 0 {
            Some((Reset::Replaced, self.position.offset()))
        } else {
            // Whether the same file still holds what was told, the next look finds out.
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
        self.position = FilePosition::start();
        self.early = Early::default();
        self.restart_line();
        self.events.push_back(EventKind::Reset { reason, offset });
        if self.is_once {
            self.is_done = std::mem::replace(&mut self.is_reset, true);
            self.limit = self.file.as_ref().map(|file| file.source.len());
        }
    }

    /// Tells what comes after the last newline of a file that is read once; nothing comes then.
    fn finish(&mut self) -> Result<bool, Error> {
        self.is_done = true;
        let line = self.position.line();
        match self.framer.finish() {
            Some(framed) => {
                self.classifier
                    .classify(framed, line, &self.path, &mut self.events)?;
                let emitted = self.events.len().min(self.position.emitted() as usize);
                self.events.drain(..emitted);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Tells the line that has no newline yet, if it is whole; returns whether it was.
    fn tell_early(&mut self) -> bool {
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
        let entry = self.classifier.entry(&line, self.position.line());
        let Some(entry) = entry.filter(|entry| !self.early.is(entry)) else {
            return false;
        };
        self.events.push_back(EventKind::Entry(entry.clone()));
        self.early.emitted = Some(entry);
        true
    }

    /// Forgets what was read behind the place: it is read again.
    fn restart_line(&mut self) {
        self.early.pending = 0;
        self.framer = Framer::starting_at(self.position.offset(), self.cap);
        self.taken = LastBytes::default();
        self.unread = 0..0;
    }

    /// Says, once, that the name is gone. What never was there cannot go.
    fn report_gone(&mut self) -> bool {
        if let Some(start) = &mut self.start {
            start.start_from_beginning();
        }
        if self.is_gone || !self.open_reported {
            return false;
        }
        self.is_gone = true;
        let torn = match self.is_told_early() {
            true => 0,
            false => self.framer.pending(),
        };
        self.events.push_back(EventKind::Gone {
            offset: self.position.offset(),
            torn,
        });
        true
    }

    /// Whether all that comes after the last newline was told.
    fn is_told_early(&self) -> bool {
        let emitted = self.early.emitted.as_ref();
        emitted.is_some_and(|emitted| emitted.len == self.framer.pending())
    }

    /// A line that no newline will end any more.
    fn report_torn(&mut self) {
        let len = self.framer.pending();
        if len > 0 && !self.is_told_early() {
            self.events.push_back(EventKind::Damaged(Finding {
                code: Code::TornTail,
                line: self.position.line(),
                offset: self.position.offset(),
                len,
                detail: "no newline ended it before its file went",
            }));
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read meets such bytes when a writer takes a line back and writes another one while it goes
    /// from page to page; that is too rare to wait for.
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
        // What has no newline yet is compared when it has.
        assert!(is_unchanged(b"{\"new\":222}\n{\"b"));
    }
}
