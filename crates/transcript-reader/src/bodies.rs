//! Loads the JSON of single entries.

use std::borrow::Cow;

use transcript_format::salvage::repaired_text;
use transcript_format::scan::{Scanner, utf8};

use crate::error::Error;
use crate::index::{EntryMarks, EntryRef};
use crate::source::Source;

/// The number of bytes read ahead when bodies are loaded in file order.
const READ_AHEAD: usize = 256 << 10;

/// Loads bodies by offset, with one read-ahead buffer.
#[derive(Debug)]
pub struct Bodies<'s> {
    source: &'s Source,
    buffer: Vec<u8>,
    /// The offset of `buffer` in the file.
    start: u64,
    lossy: String,
}

/// The JSON of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyText<'b> {
    /// One JSON object as in the file, except that bytes that are not UTF-8 become U+FFFD. For a
    /// salvaged entry the [`repaired_text`] of its bytes. Empty if the file no longer contains the
    /// entry.
    pub text: &'b str,
}

impl<'s> Bodies<'s> {
    /// Returns a loader for `source`.
    #[must_use]
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            lossy: String::new(),
        }
    }

    /// Returns the source that the bodies are read from.
    #[must_use]
    pub fn source(&self) -> &'s Source {
        self.source
    }

    /// Returns the JSON of `entry_ref`, which must come from an index of the same source.
    ///
    /// # Errors
    ///
    /// For I/O errors.
    pub fn get(&mut self, entry_ref: &EntryRef<'_>) -> Result<BodyText<'_>, Error> {
        let len = entry_ref.byte_len() as usize;
        self.fill(entry_ref.offset(), len)?;
        let from = (entry_ref.offset() - self.start) as usize;
        let bytes = self.buffer.get(from..from + len).unwrap_or_default();
        Ok(BodyText {
            text: match text_of(bytes, entry_ref.marks()) {
                Cow::Borrowed(text) => text,
                Cow::Owned(text) => {
                    self.lossy = text;
                    self.lossy.trim_ascii()
                }
            },
        })
    }

    /// Makes the buffer contain `len` bytes from `offset` on.
    fn fill(&mut self, offset: u64, len: usize) -> Result<(), Error> {
        let end = self.start + self.buffer.len() as u64;
        if offset >= self.start && offset + len as u64 <= end {
            return Ok(());
        }
        // Near the end of the buffer: read ahead, because sequential reads are likely. Otherwise
        // read only what is needed.
        let follows = end > 0 && offset >= self.start && offset <= end + READ_AHEAD as u64;
        let wanted = if follows { len.max(READ_AHEAD) } else { len };
        self.buffer.resize(wanted, 0);
        self.start = offset;
        let read = self.source.read_at(offset, &mut self.buffer)?;
        self.buffer.truncate(read);
        Ok(())
    }
}

/// Returns the JSON of an entry with these marks, whose bytes in the file are `bytes`.
pub(crate) fn text_of(bytes: &[u8], marks: EntryMarks) -> Cow<'_, str> {
    if marks.contains(EntryMarks::SALVAGED) {
        return Cow::Owned(repaired_text(bytes));
    }
    if !marks.contains(EntryMarks::LOSSY)
        && let Some(text) = utf8(bytes)
    {
        return Cow::Borrowed(text.trim_ascii());
    }
    let mut lossy = String::from_utf8_lossy(bytes).into_owned();
    if marks.contains(EntryMarks::GLUED)
        && let Ok(envelope) = Scanner::new().scan_first(lossy.as_bytes())
    {
        let end = envelope.end();
        lossy.truncate(end);
    }
    Cow::Owned(lossy)
}
