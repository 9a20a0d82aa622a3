//! Parts of attachments.

use serde_json::Value;
use transcript_format::attachment_texts::{REMINDER_END, REMINDER_START};

use crate::model::blocks::text_block;
use crate::model::js;

/// A message that is sent for an attachment.
pub(in crate::model) type Part = Vec<Value>;

pub(super) fn field(object: &Value, name: &str) -> String {
    js::text(object.get(name))
}

/// Returns a field that counts as true.
pub(super) fn given<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| js::is_truthy(value))
}

pub(super) fn strings(list: &Value) -> Vec<&str> {
    list.as_array().map_or_else(Vec::new, |list| {
        list.iter().filter_map(Value::as_str).collect()
    })
}

pub(in crate::model) fn wrap(text: &str) -> String {
    format!("{}{text}{}", REMINDER_START, REMINDER_END)
}

/// Returns a message with one text.
pub(super) fn part(text: &str) -> Part {
    vec![text_block(&wrap(text))]
}

/// Returns a message with blocks, each text of which becomes a reminder.
pub(super) fn wrapped(mut blocks: Vec<Value>) -> Part {
    for block in &mut blocks {
        if let Some(text) = block["text"].as_str() {
            *block = text_block(&wrap(text));
        }
    }
    blocks
}
