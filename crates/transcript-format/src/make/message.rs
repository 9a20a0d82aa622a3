//! Constructors of messages: of a person, a tool, a model or the client.

use super::{NO_CONTENT, NewEntry};
use crate::json::{Json, ObjectBuf};
use crate::kind::EntryKind;
use crate::object::{JsonKind, Object, Raw};

/// The model of answers that the client wrote in place of a model.
pub const SYNTHETIC_MODEL: &str = "<synthetic>";

/// Creates a prompt of a person.
pub fn user(text: &str) -> NewEntry {
    user_message(text_or_placeholder(text))
}

/// Creates a prompt of blocks of the Messages API: texts, images, documents.
pub fn user_blocks(blocks: &[Raw<'_>]) -> NewEntry {
    user_message(Json::array(non_empty_blocks(blocks.iter().copied())))
}

/// Creates a message that the client writes on behalf of the person (`isMeta`): the model sees it,
/// the person does not.
pub fn meta(text: &str) -> NewEntry {
    user(text).with("isMeta", true)
}

/// Creates the summary after a boundary. It is sent to the model and hidden from the person.
pub fn compact_summary(text: &str) -> NewEntry {
    user(text)
        .with("isVisibleInTranscriptOnly", true)
        .with("isCompactSummary", true)
}

/// The result of a tool call.
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
#[must_use]
pub struct ToolResult {
    tool_use_id: Json,
    content: Json,
    is_error: bool,
    output: Option<Json>,
}

impl ToolResult {
    /// Creates a result whose content, as the model sees it, is `text`.
    pub fn text(tool_use_id: &str, text: &str) -> Self {
        Self::new(tool_use_id, text_or_placeholder(text))
    }

    /// Creates a result whose content is blocks of the Messages API: texts, images, documents,
    /// references.
    pub fn blocks(tool_use_id: &str, blocks: &[Raw<'_>]) -> Self {
        let blocks = non_empty_blocks(blocks.iter().copied());
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

    /// Marks the call as failed (`is_error`).
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Sets the data that the tool returned in its own form, for programs and not for the model
    /// (`toolUseResult`).
    pub fn output(mut self, output: Raw<'_>) -> Self {
        self.output = Some(output.into());
        self
    }
}

/// Creates the entry of one tool result; clients write one entry for each result.
///
/// Its `sourceToolAssistantUUID` and its parent name the entry of the call. This function sets
/// neither; the writer sets both when it knows the call.
pub fn tool_result(result: ToolResult) -> NewEntry {
    let block = ObjectBuf::new()
        .with("tool_use_id", result.tool_use_id)
        .with("type", "tool_result")
        .with("content", result.content)
        .with_some("is_error", result.is_error.then_some(true));
    user_message(Json::array([block.into()])).with_some("toolUseResult", result.output)
}

/// Creates the entries of an answer: one for each block of the message, all with its id and usage,
/// as clients write them. [`Uuid::child`](crate::ids::Uuid::child) derives ids for them.
///
/// # Errors
/// [`InvalidMessage`] when the `content` of `message` is neither a list nor a string.
pub fn assistant(message: &Object<'_>) -> Result<Vec<NewEntry>, InvalidMessage> {
    let content = message.get("content").ok_or(InvalidMessage)?;
    let blocks = match content.kind() {
        JsonKind::String if content.text() == "\"\"" => vec![text_block(NO_CONTENT)],
        JsonKind::String => vec![text_block(Json::from(content))],
        _ => non_empty_blocks(content.array().ok_or(InvalidMessage)?),
    };
    let mut message = ObjectBuf::from(message);
    let entries = blocks.into_iter().map(|block| {
        message.set("content", Json::array([block]));
        assistant_message(message.clone())
    });
    Ok(entries.collect())
}

/// Creates an answer from a text only, for callers that have no message of the API. It has token
/// counts of zero, because some readers require counts.
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
        .with("content", text_content(text))
        .with("stop_reason", "end_turn")
        .with("stop_sequence", Json::null())
        .with("usage", usage);
    assistant_message(message)
}

/// Creates an answer written by the client, such as the one that ends an interrupted turn (TURN-5).
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
        .with("content", text_content(text))
        .with("context_management", Json::null());
    assistant_message(message).with("isApiErrorMessage", false)
}

/// Creates an API error, which the client shows to the person as an answer and does not send in
/// later requests (ERR-1). `error` is its kind, such as `server_error`. [`NewEntry::with`] adds the
/// API's description as `errorDetails`, and the kind for older clients as `apiError`.
pub fn api_error_message(text: &str, message_id: &str, error: &str) -> NewEntry {
    synthetic(text, message_id)
        .with("isApiErrorMessage", true)
        .with("error", error)
}

/// The reason why an object is not a message of the API: its content is neither a list nor a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content of the message is neither a list nor a string")]
pub struct InvalidMessage;

pub(super) fn user_message(content: Json) -> NewEntry {
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

/// Returns the content of a message with one text.
pub(super) fn text_content(text: &str) -> Json {
    Json::array([text_block(text_or_placeholder(text))])
}

fn text_block(text: impl Into<Json>) -> Json {
    ObjectBuf::new()
        .with("type", "text")
        .with("text", text)
        .into()
}

/// Returns the blocks except empty texts, or the placeholder if none is left.
fn non_empty_blocks<'a>(blocks: impl IntoIterator<Item = Raw<'a>>) -> Vec<Json> {
    let non_empty = blocks.into_iter().filter(|block| !is_empty_text(*block));
    let mut blocks: Vec<Json> = non_empty.map(Json::from).collect();
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
