//! Messages that arrived while the model worked, and notifications of background tasks.

use transcript_format::attachment_texts::{self as texts, filled};
use transcript_format::object::{JsonKind, Raw};
use transcript_messages::BlockKind;
use transcript_messages::block::kind_of;

use super::escape;
use super::fields::{Fields, text};
use super::piece::Piece;

/// A queued message: its text, then its images, and its documents if `sends_documents`: the client omits them (NOTE-11).
pub(super) fn queued_command(attachment: &Fields<'_>, sends_documents: bool) -> Vec<Piece> {
    let is_list = attachment.get("prompt").map(Raw::kind) == Some(JsonKind::Array);
    let prompt = if is_list {
        let blocks = attachment.list("prompt").into_iter();
        let blocks = blocks.filter(|block| kind_of(*block) == BlockKind::Text);
        let texts = blocks.map(|block| Fields::of(Some(block)).text("text"));
        texts.collect::<Vec<_>>().join("\n")
    } else {
        text(attachment.get("prompt"))
    };
    let media = media(attachment, sends_documents);
    let mut pieces = vec![Piece::Text(framed(attachment, &prompt))];
    pieces.extend(media.map(|medium| Piece::Media(medium.text().to_owned())));
    pieces
}

/// Returns the images of a queued message, and its documents if they are sent.
pub(super) fn media<'a>(
    attachment: &Fields<'a>,
    sends_documents: bool,
) -> impl Iterator<Item = Raw<'a>> {
    let blocks = attachment.list("prompt").into_iter();
    blocks.filter(move |block| match kind_of(*block) {
        BlockKind::Document => sends_documents,
        kind => is_medium(kind),
    })
}

/// Returns whether blocks of a kind are sent beside the text of a queued message, if documents are.
pub(in crate::request) fn is_medium(kind: BlockKind) -> bool {
    matches!(kind, BlockKind::Image | BlockKind::Document)
}

/// Returns the text with a note for the model about the sender.
fn framed(attachment: &Fields<'_>, text: &str) -> String {
    let origin = attachment.within("origin");
    let origin = Some(origin).filter(Fields::exist);
    let kind = origin.as_ref().map(|origin| origin.str("kind"));
    let is_notification = attachment.str("commandMode") == "task-notification";
    let escaped = escape::closing_tags(text);
    match kind.as_deref() {
        Some("task-notification") => notification(text),
        None if is_notification => notification(text),
        Some("channel") => {
            let server = origin.map_or_else(String::new, |origin| origin.text("server"));
            filled(
                texts::MESSAGE_OF_CHANNEL,
                &[("server", &server), ("text", &escaped)],
            )
        }
        Some("peer") => filled(texts::MESSAGE_OF_PEER, &[("text", &escaped)]),
        Some("coordinator") => filled(texts::MESSAGE_OF_COORDINATOR, &[("text", &escaped)]),
        Some("human") => user_message(text),
        None if !attachment.is_true("isMeta") => user_message(text),
        _ => filled(texts::MESSAGE_OF_OTHERS, &[("text", &escaped)]),
    }
}

/// Returns the text of a notification that a background task ended (NOTE-10).
pub(in crate::request) fn notification(text: &str) -> String {
    filled(
        texts::NOTIFICATION,
        &[("text", &escape::closing_tags(text))],
    )
}

fn user_message(text: &str) -> String {
    filled(texts::MESSAGE_OF_USER, &[("text", text)])
}
