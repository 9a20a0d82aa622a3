//! Reads a file that is one JSON document with a list of messages, also a damaged one, and maps each byte of it.

use std::io::Read;
use std::path::Path;

use transcript_format::lines::Line;
use transcript_format::object::Object;
use transcript_format::salvage;

use crate::Error;
use crate::conversation::{Conversation, DamageKind, Holds};
use crate::lines::{BYTE_ORDER_MARK, File, Form, LINE_CAP, Reading};
use crate::place::SourceId;
use crate::source::Store;

/// The number of bytes at the beginning of a file in which its first fields are looked for.
const BEGIN_LEN: usize = 64 << 10;

/// The field with the list of messages.
const LIST: &[u8] = b"\"messages\"";

/// Reads a document: it is one record if it is whole. Of a damaged one, each whole message of its list is a record.
pub(crate) fn read<R: Reading>(
    store: Store<'_>,
    path: &Path,
    to: &mut Conversation,
    reading: &mut R,
) -> Result<SourceId, Error> {
    let (bytes, mut file) = File::open(store, path, to, reading)?;
    let mut document = Vec::new();
    let mut limited = bytes.take(LINE_CAP as u64 + 1);
    limited
        .read_to_end(&mut document)
        .map_err(Error::at(path))?;
    let mut len = document.len() as u64;
    if document.len() > LINE_CAP {
        let found = store.disk.metadata(path).map_err(Error::at(path))?;
        len = found.len.max(len);
        file.damaged(file.place(0, len), DamageKind::TooLong);
    } else {
        file.document(&document);
    }
    Ok(file.finish(len))
}

/// Returns what `read` takes from the first fields of a document; `None` of a file that cannot be read, too, as
/// [`lines::header`](crate::lines::header).
pub(crate) fn header<T>(
    store: Store<'_>,
    path: &Path,
    read: impl Fn(&Object<'_>) -> Option<T>,
) -> Option<T> {
    begin(store, path, read).ok().flatten()
}

/// Returns what `read` takes from the first fields of a document.
pub(crate) fn begin<T>(
    store: Store<'_>,
    path: &Path,
    read: impl Fn(&Object<'_>) -> Option<T>,
) -> Result<Option<T>, Error> {
    let begin = store.disk.read(path, BEGIN_LEN).map_err(Error::at(path))?;
    let mut bytes = begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&begin);
    // What lies before a damaged place is enough.
    while !bytes.is_empty() {
        let text = salvage::closed_text(bytes.trim_ascii_start());
        let object = text.as_deref().and_then(|text| Object::parse(text).ok());
        if let Some(found) = object.and_then(|object| read(&object)) {
            return Ok(Some(found));
        }
        bytes = &bytes[..bytes.len() / 2];
    }
    Ok(None)
}

impl<R: Reading> File<'_, R> {
    fn document(&mut self, bytes: &[u8]) {
        let line = Line {
            offset: 0,
            bytes,
            terminated: false,
        };
        let text = String::from_utf8_lossy(bytes);
        let is_whole = Object::parse(text.trim_start_matches('\u{feff}')).is_ok();
        match list_start(bytes).filter(|_| !is_whole) {
            None => self.line(line),
            Some(start) => {
                self.rest(line, 0..start, 0);
                self.list(line, start);
            }
        }
    }

    /// Reads the messages of a damaged document from the start of its list on.
    fn list(&mut self, line: Line<'_>, start: usize) {
        let mut done = start;
        // Where whole messages begin, as far as they are found by a search; it is needed only when something else lies there.
        let mut found: Option<Vec<usize>> = None;
        loop {
            let rest = &line.bytes[done..];
            let separator = rest.iter().take_while(|byte| is_separator(**byte)).count();
            let whole = &rest[separator..];
            let len = salvage::end_of_object(whole);
            let text = len.and_then(|len| std::str::from_utf8(&whole[..len]).ok());
            let object = text.and_then(|text| Object::parse(text).ok());
            if let Some(object) = object {
                let len = separator + object.text().len();
                let place = self.place(done as u64, len as u64);
                let offset = (done + separator) as u64;
                self.record(object, place, Form::Piece, Some(offset));
                done += len;
                continue;
            }
            if separator == rest.len() {
                if separator > 0 {
                    let place = self.place(done as u64, separator as u64);
                    self.part(place, Holds::Raw("end of list".into()));
                }
                return;
            }
            let damaged = done + separator;
            let starts = found.get_or_insert_with(|| {
                let found = salvage::records(&line.bytes[damaged..], R::is_record);
                found
                    .into_iter()
                    .map(|range| damaged + range.start)
                    .collect()
            });
            let later = starts.partition_point(|start| *start <= damaged);
            let next = starts.get(later).copied().unwrap_or(line.bytes.len());
            if separator > 0 {
                let place = self.place(done as u64, separator as u64);
                self.part(place, Holds::Raw("separator".into()));
            }
            self.rest(line, damaged..next, 0);
            done = next;
        }
    }
}

/// Returns whether a byte stands between messages, or ends a document.
fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}')
}

/// Returns where the list of messages begins, behind its bracket.
fn list_start(bytes: &[u8]) -> Option<usize> {
    let name = bytes
        .windows(LIST.len())
        .position(|window| window == LIST)?;
    let mut at = name + LIST.len();
    for expected in [b':', b'['] {
        at += bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        if bytes.get(at) != Some(&expected) {
            return None;
        }
        at += 1;
    }
    Some(at)
}
