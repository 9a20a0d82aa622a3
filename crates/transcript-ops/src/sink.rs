//! Where the records of an operation go.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use crate::failure::Failure;
use crate::sdk::SdkMessage;
use crate::wire::{self, Json};

/// Takes the records of an operation.
pub trait Sink {
    /// Takes a record: one JSON object, which may end with a newline.
    ///
    /// # Errors
    /// [`Stop`] when nothing reads the records any more, or they cannot be written.
    fn json(&mut self, record: &[u8]) -> Result<()>;

    /// Takes a record that may be long: `write` writes the JSON of one object.
    ///
    /// # Errors
    /// As [`Self::json`], and those of `write`.
    fn long_json(&mut self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let mut record = Vec::new();
        write(&mut record)?;
        self.json(&record)
    }

    /// Takes a message of a conversation.
    ///
    /// # Errors
    /// As [`Self::json`].
    fn message(&mut self, message: &SdkMessage<'_>) -> Result<()> {
        let record = json!({
            "role": message.role,
            "uuid": message.uuid,
            "parentUuid": message.parent_uuid,
            "sessionId": message.session_id,
            "timestamp": message.timestamp,
            "parentToolUseId": message.parent_tool_use_id,
            "parentAgentId": message.parent_agent_id,
            "isCompactSummary": message.is_compact_summary,
            "isMeta": message.is_transcript_only,
            "isQueuedCommand": message.is_queued,
            "origin": message.origin.map(Json::new),
            "message": Json::new(message.message),
        });
        self.json(wire::text(&record)?.as_bytes())
    }

    /// Returns whether records are shown on a terminal, so that what they quote of a file must not control it.
    fn is_terminal(&self) -> bool {
        false
    }
}

impl dyn Sink + '_ {
    /// Takes a record.
    ///
    /// # Errors
    /// As [`Sink::json`].
    pub fn record(&mut self, record: &impl Serialize) -> Result<()> {
        let text = wire::text(record)?;
        self.json(text.as_bytes())
    }
}

/// Returns JSON of a file as it is to be shown: verbatim for programs, escaped on a terminal.
pub(crate) fn shown(is_terminal: bool, json: &str) -> Cow<'_, str> {
    if is_terminal {
        wire::escaped(json)
    } else {
        Cow::Borrowed(json)
    }
}

/// Why an operation ended early.
#[derive(Debug)]
pub enum Stop {
    /// Nothing reads the records any more.
    Closed,
    /// It failed.
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Stop>;
