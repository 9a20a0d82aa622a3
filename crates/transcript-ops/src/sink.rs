//! The receiver of the records of an operation.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

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
        self.json(wire::text(&MessageRecord::new(message))?.as_bytes())
    }

    /// Returns whether records are shown on a terminal, so that what they quote of a file must not control it.
    fn is_terminal(&self) -> bool {
        false
    }
}

/// A message of a session, as the SDKs return it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageRecord<'a> {
    /// `user`, `assistant` or `system`.
    role: &'a str,
    /// The uuid of its entry.
    uuid: &'a str,
    /// The uuid of the entry that comes before it in the conversation; `None` for the first.
    parent_uuid: Option<&'a str>,
    /// The id of the session that the entry names; empty if it names none.
    session_id: &'a str,
    /// The time of the entry, as in the file.
    timestamp: Option<&'a str>,
    /// The call of the tool that started the subagent.
    parent_tool_use_id: Option<&'a str>,
    /// The subagent that started the subagent.
    parent_agent_id: Option<&'a str>,
    /// Whether it is the summary that a compaction left.
    is_compact_summary: bool,
    /// Whether clients mark it as not meant for people.
    is_meta: bool,
    /// Whether it is a prompt that was queued while the model was working, which then got it within that turn.
    is_queued_command: bool,
    /// Its author, such as `{"kind":"human"}`.
    origin: Option<Json<'a>>,
    /// The message of the API; `None` if the entry has none.
    message: Json<'a>,
}

impl<'a> MessageRecord<'a> {
    fn new(message: &SdkMessage<'a>) -> Self {
        Self {
            role: message.role,
            uuid: message.uuid,
            parent_uuid: message.parent_uuid,
            session_id: message.session_id,
            timestamp: message.timestamp,
            parent_tool_use_id: message.parent_tool_use_id,
            parent_agent_id: message.parent_agent_id,
            is_compact_summary: message.is_compact_summary,
            is_meta: message.is_transcript_only,
            is_queued_command: message.is_queued,
            origin: message.origin.map(Json::new),
            message: Json::new(message.message),
        }
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

/// The reason why an operation ended early.
#[derive(Debug)]
pub enum Stop {
    /// Nothing reads the records any more.
    Closed,
    /// The operation failed.
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Stop>;
