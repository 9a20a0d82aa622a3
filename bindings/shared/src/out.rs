//! Collects records into batches.

use serde::Serialize;
use transcript_ops::Failure;
use transcript_ops::sdk::SdkMessage;
use transcript_ops::sink::{Result, Sink, Stop};
use transcript_ops::wire::Json;

use crate::records::{Closed, Sender};

/// The first batch has one record, so that it arrives early; each later one is twice as large as the one
/// before, up to this many bytes.
const MAX_BATCH_LEN: usize = 512 << 10;
const SECOND_BATCH_LEN: usize = 4 << 10;

/// The receiver of the records of a function.
pub(crate) struct Out {
    sender: Sender,
    /// The JSON array of records, without its last bracket.
    head: Vec<u8>,
    /// The texts that records name by their places.
    texts: Vec<u8>,
    full: usize,
    is_held: bool,
}

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

    /// Adds a record and a text; the record names the place of the text in the batch.
    fn with_text<R: Serialize>(
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
        self.full = (self.full * 2).clamp(SECOND_BATCH_LEN, MAX_BATCH_LEN);
        self.flush()
    }

    /// Collects records without sending them, or sends the collected ones.
    pub(crate) fn hold(&mut self, is_held: bool) -> Result<()> {
        self.is_held = is_held;
        if is_held { Ok(()) } else { self.flush() }
    }

    /// Hands on the collected records.
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
        self.sender.send(batch).map_err(|Closed| Stop::Closed)?;
        Ok(())
    }

    /// Ends the function with what is left.
    pub(crate) fn finish(mut self, result: Result<()>) -> std::result::Result<(), Failure> {
        match result.and_then(|()| self.flush()) {
            Ok(()) | Err(Stop::Closed) => Ok(()),
            Err(Stop::Failed(failure)) => {
                // The records before the failure are sent first. Without a reader the flush fails; the
                // failure is returned all the same.
                let _ = self.flush();
                Err(failure)
            }
        }
    }
}

impl Sink for Out {
    fn json(&mut self, record: &[u8]) -> Result<()> {
        self.head
            .push(if self.head.is_empty() { b'[' } else { b',' });
        self.head.extend_from_slice(record.trim_ascii_end());
        self.flush_full()
    }

    /// A binding parses the text of a message only if it is asked for it.
    fn message(&mut self, message: &SdkMessage<'_>) -> Result<()> {
        self.with_text(message.message, |start, end| {
            (
                message.role,
                message.uuid,
                message.parent_uuid,
                message.session_id,
                message.timestamp,
                message.parent_tool_use_id,
                message.parent_agent_id,
                MessageMarks::of(message),
                (start, end),
            )
        })
    }
}

/// The rare fields of a message.
#[derive(Serialize)]
struct MessageMarks<'a> {
    #[serde(rename = "isCompactSummary", skip_serializing_if = "is_false")]
    is_compact_summary: bool,
    #[serde(skip_serializing_if = "is_false")]
    is_meta: bool,
    #[serde(rename = "isQueuedCommand", skip_serializing_if = "is_false")]
    is_queued_command: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<Json<'a>>,
}

impl<'a> MessageMarks<'a> {
    fn of(message: &SdkMessage<'a>) -> Option<Self> {
        let marks = Self {
            is_compact_summary: message.is_compact_summary,
            is_meta: message.is_transcript_only,
            is_queued_command: message.is_queued,
            origin: message.origin.map(Json::new),
        };
        let is_marked = marks.is_compact_summary || marks.is_meta || marks.is_queued_command;
        (is_marked || marks.origin.is_some()).then_some(marks)
    }
}

fn is_false(mark: &bool) -> bool {
    !mark
}
