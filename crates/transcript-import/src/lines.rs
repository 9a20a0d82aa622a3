//! Reads the records of a JSON Lines file, also from damaged lines, and maps each byte of it.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

use transcript_format::lines::{Framed, Framer, Line};
use transcript_format::object::{Object, Raw};
use transcript_format::salvage;

use crate::Error;
use crate::content::Input;
use crate::conversation::{Conversation, DamageKind, Holds, Part};
use crate::place::{Place, SourceId};
use crate::record_id::RecordId;
use crate::source::{Opened, Store, name_of};
use crate::strings::body_of;
use crate::text::{Stored, StoredForm, Text, held_body};
use crate::time::Time;

/// The maximum length of a line: 256 MiB. Longer ones are kept raw.
pub const LINE_CAP: usize = 256 << 20;

/// The number of bytes that are read at once.
const CHUNK_LEN: usize = 512 << 10;

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One record of a file.
pub(crate) struct Record<'a> {
    pub(crate) object: Object<'a>,
    /// All of its bytes, with the newline.
    pub(crate) place: Place,
    pub(crate) form: Form,
    /// The offset of the text of the object; `None` when the text was repaired.
    text_offset: Option<u64>,
    /// Whether its source can be read at an offset.
    is_readable: bool,
}

/// The maximum length of a text in bytes that is held though its source can be read again: a piece of which only the place is
/// known takes half as much.
pub(crate) const MAX_HELD_LEN: usize = 64;

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
        match self.offset_of(value.text()) {
            Some(offset) => Place {
                offset,
                len: value.text().len() as u64,
                ..self.place
            },
            None => self.place,
        }
    }

    /// Returns the offset of a part of the text of this record; `None` when the text was repaired.
    fn offset_of(&self, part: &str) -> Option<u64> {
        let text = self.object.text();
        let at = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let is_within = at + part.len() <= text.len();
        self.text_offset
            .filter(|_| is_within)
            .map(|offset| offset + at as u64)
    }

    /// Returns the text of a string; `None` for another value.
    pub(crate) fn text_of(&self, value: Raw<'_>) -> Option<Text> {
        body_of(value).map(|body| self.text_of_body(body))
    }

    /// Returns the text of the body of a string, or of a part of it that does not end within an escape.
    pub(crate) fn text_of_body(&self, body: &str) -> Text {
        let stored = self.stored(body, StoredForm::StringBody);
        stored.unwrap_or_else(|| held_body(body))
    }

    /// Returns the JSON of a value as a text.
    pub(crate) fn json_of(&self, value: Raw<'_>) -> Text {
        let stored = self.stored(value.text(), StoredForm::Json);
        stored.unwrap_or_else(|| Text::held(value.text()))
    }

    /// Returns the text of a string, or the JSON of another value.
    pub(crate) fn text_or_json_of(&self, value: Raw<'_>) -> Text {
        self.text_of(value).unwrap_or_else(|| self.json_of(value))
    }

    /// Returns the text of the field `key` of an object of this record.
    pub(crate) fn text(&self, object: &Object<'_>, key: &str) -> Option<Text> {
        object.field(key).and_then(|value| self.text_of(value))
    }

    /// Returns the input of a call: a value, or `null` if there is none.
    pub(crate) fn input_of(&self, value: Option<Raw<'_>>) -> Input {
        match value {
            None => Input::Json(Text::held("null")),
            Some(value) => match self.text_of(value) {
                Some(text) => Input::Text(text),
                None => Input::Json(self.json_of(value)),
            },
        }
    }

    fn stored(&self, part: &str, form: StoredForm) -> Option<Text> {
        if part.len() <= MAX_HELD_LEN || !self.is_readable {
            return None;
        }
        let offset = self.offset_of(part)?;
        Stored::new(self.place.source, offset, part, form).map(Text::stored)
    }

    /// Returns whether its text is in the file as it was read.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.text_offset.is_some()
    }

    /// Returns the field `key` as the time of the record.
    pub(crate) fn time(&self, key: &str) -> Option<Time> {
        self.object.str(key).map(|time| Time::from(&*time))
    }

    /// Returns the field `key` as the id of the record.
    pub(crate) fn id(&self, key: &str) -> Option<RecordId> {
        self.object.str(key).map(|id| RecordId::from(&*id))
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
    let (mut input, mut file) = File::open(store, path, to, reading)?;
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
    Ok(file.finish(framer.offset()))
}

/// Returns what `read` takes from the first record of a file that it accepts. `None` of a file that cannot be read, too: the other
/// sessions are listed all the same, and the reading of this one says why it fails.
pub(crate) fn header<T>(
    store: Store<'_>,
    path: &Path,
    read: impl FnMut(&Object<'_>) -> Option<T>,
) -> Option<T> {
    first(store, path, read).ok().flatten()
}

/// Returns what `read` takes from the first record of a file that it accepts.
pub(crate) fn first<T>(
    store: Store<'_>,
    path: &Path,
    mut read: impl FnMut(&Object<'_>) -> Option<T>,
) -> Result<Option<T>, Error> {
    let mut input = store.open(path)?.bytes;
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
pub(crate) struct File<'c, R> {
    source: SourceId,
    /// Whether the source can be read at an offset.
    is_readable: bool,
    to: &'c mut Conversation,
    reading: &'c mut R,
}

impl<'c, R: Reading> File<'c, R> {
    /// Opens a file as a source of a conversation, and returns its bytes.
    pub(crate) fn open(
        store: Store<'_>,
        path: &Path,
        to: &'c mut Conversation,
        reading: &'c mut R,
    ) -> Result<(Box<dyn Read>, Self), Error> {
        let Opened { bytes, file } = store.open(path)?;
        let source = to.add_source(path.to_owned(), file);
        let file = Self {
            source,
            is_readable: to.source(source).file.is_some(),
            to,
            reading,
        };
        Ok((bytes, file))
    }

    /// Says how many bytes the file has, and returns its source.
    pub(crate) fn finish(self, len: u64) -> SourceId {
        self.to.sources[self.source.index()].len = len;
        self.source
    }

    pub(crate) fn place(&self, offset: u64, len: u64) -> Place {
        Place {
            source: self.source,
            offset,
            len,
        }
    }

    pub(crate) fn part(&mut self, place: Place, holds: Holds) {
        self.to.parts.push(Part { place, holds });
    }

    pub(crate) fn damaged(&mut self, place: Place, kind: DamageKind) {
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

    pub(crate) fn line(&mut self, mut line: Line<'_>) {
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
        match simdutf8::basic::from_utf8(line.bytes).map(Object::parse) {
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
    pub(crate) fn rest(&mut self, line: Line<'_>, range: Range<usize>, newline: u64) {
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

    pub(crate) fn record(
        &mut self,
        object: Object<'_>,
        place: Place,
        form: Form,
        text_offset: Option<u64>,
    ) {
        let record = Record {
            object,
            place,
            form,
            text_offset,
            is_readable: self.is_readable,
        };
        let holds = self.reading.record(self.to, &record);
        self.part(place, holds);
    }
}
