//! The texts of attachments, by which the client informs the model about its environment.

use serde_json::{Map, Value};
use transcript_format::attachment_texts::{ATTRIBUTION, REMINDER_END, REMINDER_START};

use super::blocks::text_block;
use super::{rendered, time};

/// Returns the messages that are sent for an attachment, each a list of blocks. Empty when nothing
/// is sent. `now` is the time of the request in milliseconds; by default that at which the attachment was
/// written.
pub(super) fn parts(entry: &Map<String, Value>, now: Option<i64>) -> Vec<Vec<Value>> {
    // The text that was sent the first time counts, whatever the other fields contain (NOTE-1).
    stored_parts(entry).unwrap_or_else(|| {
        let attachment = entry.get("attachment");
        let written = entry.get("timestamp").and_then(Value::as_str);
        let now = now.or_else(|| written.and_then(time::parse));
        attachment.map_or_else(Vec::new, |attachment| rendered::parts(attachment, now))
    })
}

/// Returns why the client fails on an attachment, which ends the resume.
pub(super) fn failure(entry: &Map<String, Value>) -> Option<&'static str> {
    let is_stored = stored_parts(entry).is_some();
    let attachment = entry.get("attachment").filter(|_| !is_stored);
    attachment.and_then(rendered::failure)
}

/// Returns the parts under `rendered`; `None` when there are none, or one is empty or contains another
/// block than text (NOTE-1).
pub(super) fn stored_parts(entry: &Map<String, Value>) -> Option<Vec<Vec<Value>>> {
    let rendered = entry
        .get("rendered")?
        .as_array()
        .filter(|parts| !parts.is_empty())?;
    let is_text = |block: &Value| block["type"] == "text" && block["text"] != "";
    rendered
        .iter()
        .map(|part| match &part["content"] {
            Value::String(text) if !text.is_empty() => Some(vec![text_block(text)]),
            Value::Array(blocks) => blocks.iter().all(is_text).then(|| blocks.clone()),
            _ => None,
        })
        .collect()
}

/// Returns whether the user chose the content of an attachment with stored texts: a file, a folder, or
/// a memory file that came with one.
pub(super) fn is_file(entry: &Map<String, Value>) -> bool {
    let kind = kind(entry);
    matches!(kind, Some("file" | "directory" | "nested_memory")) && stored_parts(entry).is_some()
}

/// Returns whether a reminder goes into a `role: system` message in the role form. Without a stored role
/// all do, except stored files that the user mentioned, and reminders with other blocks than text.
pub(super) fn is_for_system_role(entry: &Map<String, Value>, parts: &[Vec<Value>]) -> bool {
    if stored_parts(entry).is_none() {
        return parts.iter().flatten().all(|block| block["type"] == "text");
    }
    match entry.get("renderedRole").and_then(Value::as_str) {
        Some(role) => role != "user",
        None => !matches!(kind(entry), Some("file" | "directory")),
    }
}

fn kind(entry: &Map<String, Value>) -> Option<&str> {
    entry.get("attachment")?["type"].as_str()
}

/// Returns the text of one reminder for a `role: system` message.
pub(super) fn system_text(blocks: &[Value]) -> String {
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let texts: Vec<&str> = texts.map(without_wrapper).collect();
    texts.join("\n")
}

/// Returns whether a block is the one reminder that is never folded into a tool result. The client
/// recognizes it by its text; it does not read the flag `renderedBesideToolResult` (NOTE-5).
pub(super) fn is_attribution(block: &Value) -> bool {
    block["text"]
        .as_str()
        .is_some_and(|text| text.starts_with(ATTRIBUTION))
}

/// Returns the text of a reminder without the tags around it, which are on lines of their own. Any
/// other text is returned unchanged.
pub(super) fn without_wrapper(text: &str) -> &str {
    let (open, close) = (REMINDER_START, REMINDER_END);
    let body = text.trim_end_matches('\n');
    if body.len() >= open.len() + close.len() && body.starts_with(open) && body.ends_with(close) {
        &body[open.len()..body.len() - close.len()]
    } else {
        text
    }
}
