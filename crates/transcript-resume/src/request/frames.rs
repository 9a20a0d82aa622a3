//! The frames that the client puts around the text of a user entry that the user did not write: its
//! own notes (MSG-20), the output of hooks (MSG-23), and news of background tasks (NOTE-10).

use transcript_format::attachment_texts::{self as texts, filled};
use transcript_format::client_version::ClientVersion;
use transcript_format::object::{Object, Raw};
use transcript_messages::text::wrapped;
use transcript_messages::{Block, BlockKind};

use super::reminders::{brackets, notification};

/// The first client that frames its own notes and the output of hooks (MSG-20, MSG-23).
pub(super) const FRAMES_NOTES: ClientVersion = ClientVersion::new(2, 1, 330);

/// Returns the blocks of a user entry in the frames that its fields ask for.
pub(super) fn framed(blocks: Vec<Block>, entry: &Object<'_>, frames_notes: bool) -> Vec<Block> {
    let flag = |name: &str| entry.get(name).and_then(Raw::bool) == Some(true);
    let mut blocks = blocks;
    if frames_notes
        && flag("isMeta")
        && let [block] = &blocks[..]
        && block.kind() == BlockKind::Text
        && let Some(text) = block.text_field()
    {
        let mut framed = None;
        if flag("hookText") {
            framed = Some(wrapped(&filled(
                texts::HOOK_TEXT,
                &[("text", &brackets(&text))],
            )));
        }
        if flag("ownNote") {
            framed = Some(wrapped(framed.as_deref().unwrap_or(&text)));
        }
        if let Some(framed) = framed {
            blocks = vec![in_place_of(block, &framed)];
        }
    }
    let origin = entry.get("origin").and_then(Raw::object);
    let sender = origin.as_ref().and_then(|origin| origin.get("kind")?.str());
    if sender.as_deref() == Some("task-notification") {
        blocks = notification_of(blocks);
    }
    blocks
}

/// Returns the texts as one notification, and the other blocks after it.
fn notification_of(blocks: Vec<Block>) -> Vec<Block> {
    let (texts, others): (Vec<Block>, Vec<Block>) = blocks
        .into_iter()
        .partition(|block| block.kind() == BlockKind::Text);
    let text: Vec<_> = texts.iter().filter_map(Block::text_field).collect();
    let text = wrapped(&notification(&text.join("\n")));
    let first = match texts.first() {
        Some(first) => in_place_of(first, &text),
        None => Block::text(&text).with_origin(others.first().and_then(Block::origin)),
    };
    std::iter::once(first).chain(others).collect()
}

/// Returns a text block of the form of `block`: a string, or a block in a list.
fn in_place_of(block: &Block, text: &str) -> Block {
    let new = if block.is_plain_string() {
        Block::plain_text(text)
    } else {
        Block::text(text)
    };
    new.with_origin(block.origin())
}
