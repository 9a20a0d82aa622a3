//! Messages that arrived while the model worked, and notifications of background tasks.

use serde_json::Value;
use transcript_format::attachment_texts::{self as texts, filled};

use super::escape;
use super::parts::{Part, wrap};
use crate::model::blocks::text_block;
use crate::model::js;

/// Returns the text of a notification that a background task ended (NOTE-10).
pub(in crate::model) fn notification(text: &str) -> String {
    filled(
        texts::NOTIFICATION,
        &[("text", &escape::closing_tags(text))],
    )
}

/// A queued message: its text, then its images. Documents are omitted.
pub(super) fn queued_command(attachment: &Value) -> Part {
    let prompt = &attachment["prompt"];
    let blocks = prompt.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = if prompt.is_array() {
        let texts = blocks.iter().filter(|block| block["type"] == "text");
        let texts: Vec<String> = texts.map(|block| js::text(block.get("text"))).collect();
        texts.join("\n")
    } else {
        js::text(attachment.get("prompt"))
    };
    let images = blocks.iter().filter(|block| block["type"] == "image");
    let text = text_block(&wrap(&framed(attachment, &text)));
    std::iter::once(text).chain(images.cloned()).collect()
}

/// Returns the text with what the model is told about the sender.
fn framed(attachment: &Value, text: &str) -> String {
    let origin = attachment.get("origin").filter(|origin| origin.is_object());
    let kind = origin.map(|origin| origin["kind"].as_str().unwrap_or_default());
    let is_notification = attachment["commandMode"] == "task-notification";
    if kind == Some("task-notification") || (kind.is_none() && is_notification) {
        return notification(text);
    }
    let escaped = escape::closing_tags(text);
    match kind {
        Some("channel") => {
            let server = js::text(origin.and_then(|origin| origin.get("server")));
            filled(
                texts::MESSAGE_OF_CHANNEL,
                &[("server", &server), ("text", &escaped)],
            )
        }
        Some("peer") => filled(texts::MESSAGE_OF_PEER, &[("text", &escaped)]),
        Some("coordinator") => filled(texts::MESSAGE_OF_COORDINATOR, &[("text", &escaped)]),
        Some("human") => of_the_user(text),
        None if attachment["isMeta"] != true => of_the_user(text),
        _ => filled(texts::MESSAGE_OF_OTHERS, &[("text", &escaped)]),
    }
}

fn of_the_user(text: &str) -> String {
    filled(texts::MESSAGE_OF_USER, &[("text", text)])
}
