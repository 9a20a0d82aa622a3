//! The changes of lines, and the bytes of the new file.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;

use transcript_format::finding::{Code, Finding};
use transcript_format::json::{Json, ObjectBuf};
use transcript_format::make::ENGINE_VERSION;
use transcript_format::object::Object;
use transcript_reader::{Bodies, EntryMarks, EntryNo, EntryRef, Error, Index, Source};

use super::clean_text::clean_text;
use super::reading::{Defects, Reading};

/// The key of our own fields in an entry, and the one there with the old values of its members.
const ENGINE_KEY: &str = "transcriptEngine";
const OLD_VALUES_KEY: &str = "was";

const BLOCK_SIZE: usize = 256 << 10;

/// The changes to the lines of a file. Everything else is copied byte for byte.
#[derive(Debug, Default)]
pub(super) struct Changes {
    by_entry: HashMap<EntryNo, LineChange>,
    /// Lines after the last one.
    pub(super) end: Vec<String>,
}

#[derive(Debug, Default)]
struct LineChange {
    is_omitted: bool,
    /// The entry whose body is written instead of its own.
    body: Option<EntryNo>,
    set: Vec<(&'static str, Json)>,
    /// Lines after it.
    after: Vec<String>,
}

impl Changes {
    fn at(&mut self, entry: EntryNo) -> &mut LineChange {
        self.by_entry.entry(entry).or_default()
    }

    /// Sets a member. The entry keeps the old value under our own key.
    pub(super) fn set(&mut self, entry: EntryNo, key: &'static str, value: impl Into<Json>) {
        self.at(entry).set.push((key, value.into()));
    }

    pub(super) fn omit(&mut self, entry: EntryNo) {
        self.at(entry).is_omitted = true;
    }

    /// Writes the body of `other` in the place of `entry`.
    pub(super) fn replace(&mut self, entry: EntryNo, other: EntryNo) {
        self.at(entry).body = Some(other);
    }

    pub(super) fn insert_after(&mut self, entry: EntryNo, line: String) {
        self.at(entry).after.push(line);
    }

    /// Writes the new file.
    pub(super) fn write(&self, reading: &Reading, out: &mut dyn Write) -> Result<(), Error> {
        let mut writer = RepairWriter {
            source: &reading.source,
            out,
            copied: 0..0,
            is_line_open: false,
        };
        let mut bodies = Bodies::new(&reading.source);
        let mut gaps = Gaps::new(&reading.index);
        // The number of the line that was copied last, if its line end may be copied with it.
        let mut line = Some(0);
        let mut end = 0;
        for entry in reading.index.entries() {
            let gap = gaps.until(entry.offset());
            if gap.is_blank() && line.is_some_and(|line| line < entry.line()) {
                writer.copy(end..entry.offset())?;
                writer.is_line_open = false;
            } else {
                writer.end_line()?;
                writer.copy_lines(gap.unread)?;
            }
            end = entry.offset() + entry.byte_len();
            line = None;
            let change = self.by_entry.get(&entry.number());
            if change.is_none_or(LineChange::leaves_it) && is_whole(reading, &entry) {
                writer.copy(entry.offset()..end)?;
                writer.is_line_open = true;
                let is_ended = !entry.marks().contains(EntryMarks::UNTERMINATED);
                line = is_ended.then_some(entry.line());
            } else if change.is_none_or(|change| !change.is_omitted) {
                writer.line(&self.text(reading, &mut bodies, &entry)?)?;
            }
            for text in change.map_or(&[][..], |change| &change.after) {
                writer.line(text)?;
                line = None;
            }
        }
        let gap = gaps.until(reading.index.byte_count());
        if gap.is_blank() && line.is_some() {
            writer.copy(end..reading.index.byte_count())?;
            writer.is_line_open = false;
        } else {
            writer.end_line()?;
            writer.copy_lines(gap.unread)?;
        }
        for text in &self.end {
            writer.line(text)?;
        }
        writer.flush()
    }

    /// Returns the new text of an entry.
    fn text(
        &self,
        reading: &Reading,
        bodies: &mut Bodies<'_>,
        place: &EntryRef<'_>,
    ) -> Result<String, Error> {
        let change = self.by_entry.get(&place.number());
        let body = change.and_then(|change| change.body);
        let entry = body.map_or(*place, |body| reading.index.entry(body));
        let text = bodies.get(&entry)?.text;
        let mut text = clean_text(text).map_or_else(|| text.to_owned(), |clean| clean.text);
        if text.contains(['\n', '\r']) {
            // A salvaged entry can span several lines. Their line feeds are between its tokens, as
            // strings contain only escaped ones.
            text = text.replace(['\n', '\r'], " ");
        }
        let mut was = ObjectBuf::new();
        for (key, value) in change.map_or(&[][..], |change| &change.set) {
            let Ok(object) = Object::parse(&text) else {
                break;
            };
            if let Some(old) = object.get(key).filter(|_| was.get(key).is_none()) {
                was.set(*key, old);
            }
            text = object.with(key, value.text());
        }
        if was.members().len() > 0
            && let Ok(object) = Object::parse(&text)
        {
            text = object.with(ENGINE_KEY, &with_old_values(&object, &was).text());
        }
        Ok(text)
    }
}

impl LineChange {
    fn leaves_it(&self) -> bool {
        !self.is_omitted && self.body.is_none() && self.set.is_empty()
    }
}

/// Returns whether the entry is all of its line, and nothing in it has to be replaced.
fn is_whole(reading: &Reading, entry: &EntryRef<'_>) -> bool {
    let other = EntryMarks::SALVAGED | EntryMarks::LOSSY;
    let is_usable = |defects: &Defects| *defects == Defects::default();
    !entry.marks().intersects(other) && reading.defects.get(&entry.number()).is_none_or(is_usable)
}

/// Returns our own fields of an entry with the old values of members. Those of an earlier repair
/// stay: they are what the client wrote.
fn with_old_values(entry: &Object<'_>, was: &ObjectBuf) -> ObjectBuf {
    let own = entry.object(ENGINE_KEY);
    let mut all = own
        .as_ref()
        .and_then(|own| own.object(OLD_VALUES_KEY))
        .map_or_else(ObjectBuf::new, |was| (&was).into());
    for (key, value) in was.members() {
        if all.get(key).is_none() {
            all.set(key.to_owned(), value.clone());
        }
    }
    let own = own.map_or_else(
        || ObjectBuf::new().with("v", ENGINE_VERSION),
        |own| (&own).into(),
    );
    own.with(OLD_VALUES_KEY, all)
}

/// The bytes of a file that belong to no entry, by offset.
pub(super) struct Gaps<'i> {
    /// Lines that are not read, but are not damaged either: too long, or nested too deeply.
    unread: Vec<Range<u64>>,
    lost: Vec<&'i Finding>,
    next_unread: usize,
    next_lost: usize,
}

impl<'i> Gaps<'i> {
    pub(super) fn new(index: &'i Index) -> Self {
        let (mut unread, mut lost) = (Vec::new(), Vec::new());
        for finding in index.findings() {
            match finding.code {
                Code::TooLong | Code::Depth => {
                    unread.push(finding.offset..finding.offset + finding.len);
                }
                Code::TornTail
                | Code::TornMid
                | Code::Glued
                | Code::Nul
                | Code::NotObject
                | Code::Bom
                | Code::Control => lost.push(finding),
                _ => {}
            }
        }
        // A finding about a salvaged entry describes the entry.
        let mut entries = index.entries().peekable();
        lost.retain(|finding| {
            let ends_before =
                |entry: &EntryRef<'_>| entry.offset() + entry.byte_len() <= finding.offset;
            while entries.next_if(ends_before).is_some() {}
            entries
                .peek()
                .is_none_or(|entry| entry.offset() > finding.offset)
        });
        Self {
            unread,
            lost,
            next_unread: 0,
            next_lost: 0,
        }
    }

    /// Returns the findings about bytes that are part of no entry.
    pub(super) fn lost(&self) -> &[&'i Finding] {
        &self.lost
    }

    /// Returns the bytes between the last offset and this one.
    fn until(&mut self, to: u64) -> ByteGap<'_> {
        let first = self.next_unread;
        let is_before = |range: &&Range<u64>| range.start < to;
        self.next_unread += self.unread[first..].iter().take_while(is_before).count();
        let is_before = |finding: &&&Finding| finding.offset < to;
        let lost = self.lost[self.next_lost..]
            .iter()
            .take_while(is_before)
            .count();
        self.next_lost += lost;
        ByteGap {
            unread: &self.unread[first..self.next_unread],
            has_lost: lost > 0,
        }
    }
}

/// The bytes between two entries.
struct ByteGap<'g> {
    unread: &'g [Range<u64>],
    has_lost: bool,
}

impl ByteGap<'_> {
    fn is_blank(&self) -> bool {
        self.unread.is_empty() && !self.has_lost
    }
}

/// Writes lines, and copies bytes of the file in as few pieces as possible.
struct RepairWriter<'w> {
    source: &'w Source,
    out: &'w mut dyn Write,
    /// Bytes of the file that are still to be copied.
    copied: Range<u64>,
    is_line_open: bool,
}

impl RepairWriter<'_> {
    fn copy(&mut self, range: Range<u64>) -> Result<(), Error> {
        if range.start != self.copied.end {
            self.flush()?;
            self.copied = range;
        } else {
            self.copied.end = range.end;
        }
        Ok(())
    }

    /// Copies whole lines, each with a line end.
    fn copy_lines(&mut self, lines: &[Range<u64>]) -> Result<(), Error> {
        for line in lines {
            self.copy(line.clone())?;
            self.is_line_open = true;
            self.end_line()?;
        }
        Ok(())
    }

    fn line(&mut self, text: &str) -> Result<(), Error> {
        self.end_line()?;
        self.flush()?;
        self.write(text.as_bytes())?;
        self.write(b"\n")
    }

    fn end_line(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.is_line_open) {
            self.flush()?;
            self.write(b"\n")?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let range = std::mem::replace(&mut self.copied, 0..0);
        copy(self.source, range, self.out)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.out.write_all(bytes);
        written.map_err(|error| Error::io(self.source.path(), None, error))
    }
}

/// Copies bytes of `source`.
pub(super) fn copy(source: &Source, range: Range<u64>, out: &mut dyn Write) -> Result<(), Error> {
    let failed = |at, error| Error::io(source.path(), at, error);
    let mut block = vec![0; BLOCK_SIZE.min((range.end - range.start) as usize)];
    let mut at = range.start;
    while at < range.end {
        let wanted = block.len().min((range.end - at) as usize);
        if source.read_at(at, &mut block[..wanted])? < wanted {
            return Err(failed(Some(at), io::ErrorKind::UnexpectedEof.into()));
        }
        let written = out.write_all(&block[..wanted]);
        written.map_err(|error| failed(None, error))?;
        at += wanted as u64;
    }
    Ok(())
}
