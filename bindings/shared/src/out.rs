//! Collects records into batches.

use serde::Serialize;
use transcript_engine::wire;

use crate::failure::Failure;
use crate::records::{Closed, Sender};

/// The first batch has one record, so that it arrives early; each later one is twice as large as the one
/// before, up to this many bytes.
const LARGEST: usize = 512 << 10;
const SECOND: usize = 4 << 10;

/// Where the records of a function go.
pub(crate) struct Out {
    sender: Sender,
    /// The JSON array of records, without its last bracket.
    head: Vec<u8>,
    /// The texts that records name by their places.
    texts: Vec<u8>,
    full: usize,
    is_held: bool,
}

/// Ends a function early: nobody reads what it finds.
pub(crate) enum Stop {
    Closed,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Closed> for Stop {
    fn from(Closed: Closed) -> Self {
        Self::Closed
    }
}

pub(crate) type Result<T> = std::result::Result<T, Stop>;

impl Out {
    pub(crate) fn new(sender: Sender) -> Self {
        Self {
            sender,
            head: Vec::new(),
            texts: Vec::new(),
            full: 0,
            is_held: false,
        }
    }

    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Adds a record.
    pub(crate) fn record(&mut self, record: &impl Serialize) -> Result<()> {
        let text = wire::text(record)?;
        self.json(text.as_bytes())
    }

    /// Adds a record that is JSON already.
    pub(crate) fn json(&mut self, record: &[u8]) -> Result<()> {
        self.head
            .push(if self.head.is_empty() { b'[' } else { b',' });
        self.head.extend_from_slice(record.trim_ascii_end());
        self.flush_full()
    }

    /// Adds a record and a text; the record names the place of the text in the batch.
    pub(crate) fn with_text<R: Serialize>(
        &mut self,
        text: &str,
        record: impl FnOnce(usize, usize) -> R,
    ) -> Result<()> {
        let start = self.texts.len();
        self.texts.extend_from_slice(text.as_bytes());
        self.head
            .push(if self.head.is_empty() { b'[' } else { b',' });
        let record = serde_json::to_string(&record(start, self.texts.len()))?;
        self.head.extend_from_slice(record.as_bytes());
        self.flush_full()
    }

    fn flush_full(&mut self) -> Result<()> {
        if self.is_held || self.head.len() + self.texts.len() < self.full {
            return Ok(());
        }
        self.full = (self.full * 2).clamp(SECOND, LARGEST);
        self.flush()
    }

    /// Collects records without sending them, or sends what was collected.
    pub(crate) fn hold(&mut self, is_held: bool) -> Result<()> {
        self.is_held = is_held;
        match is_held {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Hands on what was collected.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.head.is_empty() {
            return Ok(());
        }
        self.head.push(b']');
        let length = u32::try_from(self.head.len());
        let length =
            length.map_err(|_| Failure::new("too-large", "a record has more than 4 GiB"))?;
        let mut batch = Vec::with_capacity(4 + self.head.len() + self.texts.len());
        batch.extend_from_slice(&length.to_le_bytes());
        batch.append(&mut self.head);
        batch.append(&mut self.texts);
        self.sender.send(batch)?;
        Ok(())
    }

    /// Ends the function with what is left.
    pub(crate) fn finish(mut self, result: Result<()>) -> std::result::Result<(), Failure> {
        match result.and_then(|()| self.flush()) {
            Ok(()) | Err(Stop::Closed) => Ok(()),
            Err(Stop::Failed(failure)) => {
                // What was found before the failure is not lost; if nobody reads it, neither is the failure.
                let _ = self.flush();
                Err(failure)
            }
        }
    }
}
