//! Reads the records of a JSON Lines file, also from damaged lines, and maps each byte of it.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

use transcript_format::lines::{Framed, Framer, Line};
use transcript_format::object::{Object, Raw};
use transcript_format::salvage;

use crate::Error;
use crate::conversation::{Conversation, DamageKind, Holds, Part, Place, SourceId};
use crate::source::{Store, name_of};

/// The maximum length of a line: 256 MiB. Longer ones are kept raw.
pub const LINE_CAP: usize = 256 << 20;

/// The number of bytes that are read at once.
const CHUNK_LEN: usize = 512 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One record of a file.
pub(crate) struct Record<'a> {
    pub(crate) object: Object<'a>,
    /// All of its bytes, with the newline.
    pub(crate) place: Place,
    pub(crate) form: Form,
    /// The offset of the text of the object; `None` when the text was repaired.
    text_offset: Option<u64>,
}

/// How a record lies in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The line is the record.
    Whole,
    /// The line is the record, and not all of it is UTF-8.
    InvalidUtf8,
    /// The line holds something else as well, or the text had to be repaired.
    Piece,
    /// The end of the record is missing.
    Torn,
}

impl Form {
    /// Returns whether the line is not the record.
    pub(crate) fn is_part(self) -> bool {
        matches!(self, Self::Piece | Self::Torn)
    }
}

impl<'a> Record<'a> {
    /// Returns where a value of this record lies; all of the record when its text was repaired.
    pub(crate) fn place_of(&self, value: Raw<'_>) -> Place {
        let start = self.object.text().as_ptr() as usize;
        let at = (value.text().as_ptr() as usize).checked_sub(start);
        let within = at.filter(|at| at + value.text().len() <= self.object.text().len());
        match (self.text_offset, within) {
            (Some(offset), Some(at)) => Place {
                offset: offset + at as u64,
                len: value.text().len() as u64,
                ..self.place
            },
            _ => self.place,
        }
    }

    /// Returns whether its text is in the file as it was read.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.text_offset.is_some()
    }

    /// Returns the field `key` as an owned string.
    pub(crate) fn string(&self, key: &str) -> Option<String> {
        self.object.str(key).map(Cow::into_owned)
    }
}

/// A dialect of JSON Lines, while one file of it is read.
pub(crate) trait Reading {
    /// Returns whether an object has the form of a record, so that it is not mistaken for a part of one.
    fn is_record(object: &Object<'_>) -> bool;

    /// Returns whether an object whose end is missing is a record that can be used up to there: one that adds text to the
    /// conversation and changes nothing else.
    fn is_torn_record(object: &Object<'_>) -> bool;

    /// Takes the next record and returns what it holds.
    fn record(&mut self, to: &mut Conversation, record: &Record<'_>) -> Holds;
}

/// Reads all records of a file.
pub(crate) fn read<R: Reading>(
    store: Store<'_>,
    path: &Path,
    to: &mut Conversation,
    reading: &mut R,
) -> Result<SourceId, Error> {
    let mut input = store.open(path)?;
    let source = to.add_source(path.to_owned());
    let mut file = File {
        source,
        to,
        reading,
    };
    let mut framer = Framer::starting_at(0, LINE_CAP);
    let mut buffer = vec![0; CHUNK_LEN];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) if name_of(path).ends_with(".zst") => {
                let end = framer.offset() + framer.pending();
                file.to
                    .report(file.place(end, 0), DamageKind::TornCompression);
                0
            }
            Err(error) => return Err(Error::at(path)(error)),
        };
        let mut rest = &buffer[..read];
        while let Some(framed) = framer.next(&mut rest) {
            file.framed(framed);
        }
        if read == 0 {
            break;
        }
    }
    if let Some(framed) = framer.finish() {
        file.framed(framed);
    }
    to.sources[source.0 as usize].len = framer.offset();
    Ok(source)
}

/// Returns what `read` takes from the first record of a file that it accepts.
pub(crate) fn first<T>(
    store: Store<'_>,
    path: &Path,
    mut read: impl FnMut(&Object<'_>) -> Option<T>,
) -> Result<Option<T>, Error> {
    let mut input = store.open(path)?;
    let mut framer = Framer::starting_at(0, LINE_CAP);
    let mut buffer = vec![0; CHUNK_LEN / 8];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) if name_of(path).ends_with(".zst") => 0,
            Err(error) => return Err(Error::at(path)(error)),
        };
        let mut rest = &buffer[..count];
        let mut parse = |framed: Framed<'_>| {
            let Framed::Line(line) = framed else {
                return None;
            };
            let bytes = line.bytes.strip_prefix(BYTE_ORDER_MARK);
            let text = String::from_utf8_lossy(bytes.unwrap_or(line.bytes));
            Object::parse(&text).ok().and_then(|object| read(&object))
        };
        while let Some(framed) = framer.next(&mut rest) {
            if let Some(found) = parse(framed) {
                return Ok(Some(found));
            }
        }
        if count == 0 {
            return Ok(framer.finish().and_then(parse));
        }
    }
}

/// A file while it is read.
struct File<'c, R> {
    source: SourceId,
    to: &'c mut Conversation,
    reading: &'c mut R,
}

impl<R: Reading> File<'_, R> {
    fn place(&self, offset: u64, len: u64) -> Place {
        Place {
            source: self.source,
            offset,
            len,
        }
    }

    fn part(&mut self, place: Place, holds: Holds) {
        self.to.parts.push(Part { place, holds });
    }

    fn damaged(&mut self, place: Place, kind: DamageKind) {
        self.to.report(place, kind);
        self.part(place, Holds::Damaged);
    }

    fn framed(&mut self, framed: Framed<'_>) {
        match framed {
            Framed::Line(line) => self.line(line),
            Framed::TooLong {
                offset,
                len,
                terminated,
            } => {
                let place = self.place(offset, len + u64::from(terminated));
                self.damaged(place, DamageKind::TooLong);
            }
        }
    }

    fn line(&mut self, mut line: Line<'_>) {
        if line.offset == 0
            && let Some(rest) = line.bytes.strip_prefix(BYTE_ORDER_MARK)
        {
            let len = BYTE_ORDER_MARK.len() as u64;
            self.damaged(self.place(0, len), DamageKind::ByteOrderMark);
            line = Line {
                offset: len,
                bytes: rest,
                ..line
            };
        }
        let len = line.bytes.len() as u64 + u64::from(line.terminated);
        let place = self.place(line.offset, len);
        if line.bytes.trim_ascii().is_empty() {
            if len > 0 {
                self.part(place, Holds::Raw(Cow::Borrowed("blank line")));
            }
            return;
        }
        match std::str::from_utf8(line.bytes).map(Object::parse) {
            Ok(Ok(object)) => {
                // White space may come before the object.
                let before = line.bytes.len() - line.bytes.trim_ascii_start().len();
                let text_offset = line.offset + before as u64;
                self.record(object, place, Form::Whole, Some(text_offset));
            }
            Ok(Err(_)) => self.damaged_line(line, place),
            Err(_) => {
                let text = String::from_utf8_lossy(line.bytes);
                match Object::parse(&text) {
                    Ok(object) => {
                        self.to.report(place, DamageKind::InvalidUtf8);
                        self.record(object, place, Form::InvalidUtf8, None);
                    }
                    Err(_) => self.damaged_line(line, place),
                }
            }
        }
    }

    /// Reads the records that lie complete in a damaged line.
    fn damaged_line(&mut self, line: Line<'_>, place: Place) {
        let mut done = 0;
        for found in salvage::records(line.bytes, R::is_record) {
            self.rest(line, done..found.start, 0);
            let bytes = &line.bytes[found.clone()];
            let text = salvage::repaired_text(bytes);
            let len = found.len() as u64;
            let offset = line.offset + found.start as u64;
            let is_unchanged = text.as_bytes() == bytes;
            done = found.end;
            let mut place = self.place(offset, len);
            if done == line.bytes.len() {
                place.len += u64::from(line.terminated);
            }
            if let Ok(object) = Object::parse(&text) {
                self.to.report(place, DamageKind::SharedLine);
                self.record(object, place, Form::Piece, is_unchanged.then_some(offset));
            } else {
                self.damaged(place, DamageKind::NoRecord);
            }
        }
        let newline = place.len - line.bytes.len() as u64;
        self.rest(line, done..line.bytes.len(), newline);
    }

    /// Reads bytes of a damaged line without a complete record, with `newline` bytes after them.
    fn rest(&mut self, line: Line<'_>, range: Range<usize>, newline: u64) {
        if range.is_empty() {
            return;
        }
        let bytes = &line.bytes[range.clone()];
        let place = self.place(
            line.offset + range.start as u64,
            range.len() as u64 + newline,
        );
        let closed = salvage::closed_text(bytes.trim_ascii_start());
        let torn = closed.as_deref().and_then(|text| Object::parse(text).ok());
        match torn.filter(R::is_torn_record) {
            Some(object) => {
                self.to.report(place, DamageKind::TornRecord);
                self.record(object, place, Form::Torn, None);
            }
            None => self.damaged(place, DamageKind::NoRecord),
        }
    }

    fn record(&mut self, object: Object<'_>, place: Place, form: Form, text_offset: Option<u64>) {
        let record = Record {
            object,
            place,
            form,
            text_offset,
        };
        let holds = self.reading.record(self.to, &record);
        self.part(place, holds);
    }
}
