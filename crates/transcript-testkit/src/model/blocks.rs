//! Blocks of messages.

use serde_json::{Value, json};
use transcript_format::texts::NO_CONTENT;

use super::js;

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn is_thinking(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

/// Returns whether the text is blank, or the placeholder of the client for an empty message.
pub(super) fn is_blank(block: &Value) -> bool {
    let text = block["text"].as_str().unwrap_or("not a text");
    block["type"] == "text" && (js::trim(text).is_empty() || text == NO_CONTENT)
}
