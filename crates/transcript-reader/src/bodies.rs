//! Fetches the text of single candidates.

use transcript_format::salvage::repaired_text;
use transcript_format::scan::Scanner;

use crate::error::Error;
use crate::index::{EntryMarks, EntryRef};
use crate::source::Source;

/// How much is read ahead when bodies are fetched in the order of the file.
const READ_AHEAD: usize = 256 << 10;

/// Fetches bodies by offset, with one buffer that is read ahead.
#[derive(Debug)]
pub struct Bodies<'s> {
    source: &'s Source,
    buffer: Vec<u8>,
    /// Where `buffer` starts in the file.
    start: u64,
    lossy: String,
}

/// The text of one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyText<'b> {
    /// One JSON object as it stands in the file, but for bytes that are not UTF-8, which read as
    /// U+FFFD; of a salvaged candidate what [`repaired_text`] makes of its bytes. Empty when the file no
    /// longer holds the candidate.
    pub text: &'b str,
}

impl<'s> Bodies<'s> {
    /// Fetches from `source`.
    #[must_use]
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            start: 0,
            lossy: String::new(),
        }
    }

    /// Returns the text of `entry_ref`, which must come from an index of the same source.
    ///
    /// # Errors
    ///
    /// When the system fails to read.
    pub fn get(&mut self, entry_ref: &EntryRef<'_>) -> Result<BodyText<'_>, Error> {
        let len = entry_ref.byte_len() as usize;
        self.fill(entry_ref.offset(), len)?;
        let from = (entry_ref.offset() - self.start) as usize;
        let bytes = self.buffer.get(from..from + len).unwrap_or_default();
        if entry_ref.is_salvaged() {
            self.lossy = repaired_text(bytes);
            return Ok(BodyText { text: &self.lossy });
        }
        if !entry_ref.marks().contains(EntryMarks::LOSSY)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return Ok(BodyText {
                text: text.trim_ascii(),
            });
        }
        self.lossy = String::from_utf8_lossy(bytes).into_owned();
        if entry_ref.marks().contains(EntryMarks::GLUED)
            && let Ok(envelope) = Scanner::new().scan_first(self.lossy.as_bytes())
        {
            let end = envelope.end();
            self.lossy.truncate(end);
        }
        Ok(BodyText {
            text: self.lossy.trim_ascii(),
        })
    }

    /// Makes the buffer hold `len` bytes from `offset` on.
    fn fill(&mut self, offset: u64, len: usize) -> Result<(), Error> {
        let end = self.start + self.buffer.len() as u64;
        if offset >= self.start && offset + len as u64 <= end {
            return Ok(());
        }
        // Bodies that are near come next: read on from there. A jump reads what it needs.
        let follows = end > 0 && offset >= self.start && offset <= end + READ_AHEAD as u64;
        let wanted = if follows { len.max(READ_AHEAD) } else { len };
        self.buffer.resize(wanted, 0);
        self.start = offset;
        let read = self.source.read_at(offset, &mut self.buffer)?;
        self.buffer.truncate(read);
        Ok(())
    }
}
