//! Messages: what a person, a tool, a model or the client says.

use std::fmt;

use super::NewEntry;
use crate::json::{Json, ObjectBuf};
use crate::kind::EntryKind;
use crate::object::{JsonKind, Object, Raw};

/// What stands where there is nothing to say.
pub const NO_CONTENT: &str = "(no content)";

/// The model of messages that the client wrote in place of a model.
pub const SYNTHETIC_MODEL: &str = "<synthetic>";

/// What a person wrote.
#[must_use]
pub fn user(text: &str) -> NewEntry {
    user_message(text_or_placeholder(text))
}

/// What a person wrote, as blocks of the Messages API: texts, images, documents.
#[must_use]
pub fn user_blocks(blocks: &[Raw<'_>]) -> NewEntry {
    user_message(Json::array(speaking_blocks(blocks.iter().copied())))
}

/// What the client wrote in the name of the person: `isMeta`. The model sees it, the person does
/// not.
#[must_use]
pub fn meta(text: &str) -> NewEntry {
    user(text).with("isMeta", true)
}

/// The summary behind a boundary. It is sent to the model, and hidden from the person.
#[must_use]
pub fn compact_summary(text: &str) -> NewEntry {
    user(text)
        .with("isVisibleInTranscriptOnly", true)
        .with("isCompactSummary", true)
}

/// What a tool returned.
///
/// ```
/// use transcript_format::make::{self, ToolResult};
/// use transcript_format::object::Raw;
///
/// let output = Raw::parse(r#"{"stdout":"29.53","stderr":"","interrupted":false}"#)?;
/// let result = ToolResult::text("toolu_01", "29.53").output(output);
/// let entry = make::tool_result(result).with("sourceToolAssistantUUID", "a1");
/// # assert!(entry.text().contains(r#""toolUseResult":{"stdout":"29.53""#));
/// # Ok::<(), transcript_format::object::ParseObjectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ToolResult {
    tool_use_id: Json,
    content: Json,
    is_error: bool,
    output: Option<Json>,
}

impl ToolResult {
    /// The model is told `text` about the call.
    #[must_use]
    pub fn text(tool_use_id: &str, text: &str) -> Self {
        Self::new(tool_use_id, text_or_placeholder(text))
    }

    /// The model is shown blocks of the Messages API: texts, images, documents, references.
    #[must_use]
    pub fn blocks(tool_use_id: &str, blocks: &[Raw<'_>]) -> Self {
        let blocks = speaking_blocks(blocks.iter().copied());
        Self::new(tool_use_id, Json::array(blocks))
    }

    fn new(tool_use_id: &str, content: Json) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content,
            is_error: false,
            output: None,
        }
    }

    /// The call failed: `is_error`.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// What the tool returned in its own form, for programs and not for the model:
    /// `toolUseResult`.
    #[must_use]
    pub fn output(mut self, output: Raw<'_>) -> Self {
        self.output = Some(output.into());
        self
    }
}

/// The entry of one result; clients write one for each. They name the entry of the call in
/// `sourceToolAssistantUUID` and as the parent; the writer does so by itself for calls it knows.
#[must_use]
pub fn tool_result(result: ToolResult) -> NewEntry {
    let block = ObjectBuf::new()
        .with("tool_use_id", result.tool_use_id)
        .with("type", "tool_result")
        .with("content", result.content)
        .with_some("is_error", result.is_error.then_some(true));
    user_message(Json::array([block.into()])).with_some("toolUseResult", result.output)
}

/// What a model answered: one entry for each block of the message, all with its id and usage, as
/// clients write them (sdk.md 2). [`Uuid::child`](crate::ids::Uuid::child) makes ids for them.
///
/// # Errors
/// [`InvalidMessage`] when `message` has neither a list nor a string as `content`.
pub fn assistant(message: &Object<'_>) -> Result<Vec<NewEntry>, InvalidMessage> {
    let content = message.get("content").ok_or(InvalidMessage)?;
    let blocks = match content.kind() {
        JsonKind::String if content.text() == "\"\"" => vec![text_block(NO_CONTENT)],
        JsonKind::String => vec![text_block(Json::from(content))],
        _ => speaking_blocks(content.array().ok_or(InvalidMessage)?),
    };
    let mut message = ObjectBuf::from(message);
    let entries = blocks.into_iter().map(|block| {
        message.set("content", Json::array([block]));
        assistant_message(message.clone())
    });
    Ok(entries.collect())
}

/// A text in the name of a model, for clients that have no more than that. Its token counts are
/// zero: there are readers that expect some.
#[must_use]
pub fn assistant_text(text: &str, message_id: &str, model: &str) -> NewEntry {
    let usage = ObjectBuf::new()
        .with("input_tokens", 0u64)
        .with("cache_creation_input_tokens", 0u64)
        .with("cache_read_input_tokens", 0u64)
        .with("output_tokens", 0u64);
    let message = ObjectBuf::new()
        .with("model", model)
        .with("id", message_id)
        .with("type", "message")
        .with("role", "assistant")
        .with("content", said(text))
        .with("stop_reason", "end_turn")
        .with("stop_sequence", Json::null())
        .with("usage", usage);
    assistant_message(message)
}

/// An answer that the client wrote itself, such as the one that ends an interrupted turn (rig.md 7).
#[must_use]
pub fn synthetic(text: &str, message_id: &str) -> NewEntry {
    let server_tools = ObjectBuf::new()
        .with("web_search_requests", 0u64)
        .with("web_fetch_requests", 0u64);
    let cache_creation = ObjectBuf::new()
        .with("ephemeral_1h_input_tokens", 0u64)
        .with("ephemeral_5m_input_tokens", 0u64);
    let usage = ObjectBuf::new()
        .with("output_tokens_details", Json::null())
        .with("input_tokens", 0u64)
        .with("output_tokens", 0u64)
        .with("cache_creation_input_tokens", 0u64)
        .with("cache_read_input_tokens", 0u64)
        .with("server_tool_use", server_tools)
        .with("service_tier", Json::null())
        .with("cache_creation", cache_creation)
        .with("inference_geo", Json::null())
        .with("iterations", Json::null())
        .with("speed", Json::null())
        .with("fallback_credit", Json::null());
    let message = ObjectBuf::new()
        .with("diagnostics", Json::null())
        .with("id", message_id)
        .with("container", Json::null())
        .with("model", SYNTHETIC_MODEL)
        .with("role", "assistant")
        .with("stop_details", Json::null())
        .with("stop_reason", "stop_sequence")
        .with("stop_sequence", "")
        .with("type", "message")
        .with("usage", usage)
        .with("content", said(text))
        .with("context_management", Json::null());
    assistant_message(message).with("isApiErrorMessage", false)
}

/// An API error that the client tells the person as an answer; later requests leave it out
/// (rig.md 8). `error` is its kind, such as `server_error`; what the API said about it goes under
/// `errorDetails`, the kind of older clients under `apiError`: see [`NewEntry::with`].
#[must_use]
pub fn api_error_message(text: &str, message_id: &str, error: &str) -> NewEntry {
    synthetic(text, message_id)
        .with("isApiErrorMessage", true)
        .with("error", error)
}

/// Why an object is no message of the API: its content is neither a list nor a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidMessage;

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the content of the message is no list and no string")
    }
}

impl std::error::Error for InvalidMessage {}

fn user_message(content: Json) -> NewEntry {
    let message = ObjectBuf::new()
        .with("role", "user")
        .with("content", content);
    NewEntry::new(EntryKind::User).with("message", message)
}

fn assistant_message(message: ObjectBuf) -> NewEntry {
    NewEntry::new(EntryKind::Assistant).with("message", message)
}

fn text_or_placeholder(text: &str) -> Json {
    if text.is_empty() { NO_CONTENT } else { text }.into()
}

/// The content of a message with one text.
fn said(text: &str) -> Json {
    Json::array([text_block(text_or_placeholder(text))])
}

pub(crate) fn text_block(text: impl Into<Json>) -> Json {
    ObjectBuf::new()
        .with("type", "text")
        .with("text", text)
        .into()
}

/// Returns the blocks that are no empty texts, or the placeholder.
fn speaking_blocks<'a>(blocks: impl IntoIterator<Item = Raw<'a>>) -> Vec<Json> {
    let speaking = blocks.into_iter().filter(|block| !is_empty_text(*block));
    let mut blocks: Vec<Json> = speaking.map(Json::from).collect();
    if blocks.is_empty() {
        blocks.push(text_block(NO_CONTENT));
    }
    blocks
}

fn is_empty_text(block: Raw<'_>) -> bool {
    block.object().is_some_and(|object| {
        object.str("type").as_deref() == Some("text")
            && object.str("text").is_none_or(|text| text.is_empty())
    })
}
