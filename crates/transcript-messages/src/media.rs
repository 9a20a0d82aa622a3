//! Images and documents that the API would refuse.

use transcript_format::object::Raw;
use transcript_format::texts;

use super::block::{Block, BlockKind};
use super::log::{Log, OmissionReason, SyntheticKind};
use super::message::Role;

/// The most that the API accepts, in bytes of the file itself.
pub(super) const MAX_IMAGE: usize = 5 << 20;
pub(super) const MAX_PDF: usize = 32 << 20;
pub(super) const MAX_TEXT_DOCUMENT: usize = 5 << 20;

/// The image types that the API accepts.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Replaces every image and document of a block that is too large by a note: one of them makes the
/// API refuse this request and every one after it.
pub fn within_limits(mut block: Block, log: &mut Log) -> Block {
    if !may_be_too_large(&block) {
        return block;
    }
    let origin = block.origin();
    let mut note = |note: Option<String>| {
        let note = Block::text(&note?);
        log.omit(origin, OmissionReason::OversizedMedia);
        log.add_synthetic(SyntheticKind::MediaNote, Role::User, &note, origin);
        Some(note)
    };
    if block.kind() == BlockKind::ToolResult {
        let content = block.object().and_then(|result| {
            let blocks = result.get("content")?.array()?;
            let notes: Vec<Option<Block>> = blocks.iter().map(|raw| note(refusal(*raw))).collect();
            let texts = blocks.iter().zip(&notes);
            let texts: Vec<&str> = texts
                .map(|(raw, note)| note.as_ref().map_or(raw.text(), Block::json))
                .collect();
            let is_changed = notes.iter().any(Option::is_some);
            is_changed.then(|| format!("[{}]", texts.join(",")))
        });
        if let Some(content) = content {
            block.set("content", &content);
        }
        return block;
    }
    let note = Raw::parse(block.json())
        .ok()
        .and_then(|raw| note(refusal(raw)));
    note.map_or(block, |note| note.with_origin(origin))
}

/// Returns whether a block is an image or a document larger than the API accepts, or a result that
/// holds one.
pub(super) fn is_too_large(block: &Block) -> bool {
    if !may_be_too_large(block) {
        return false;
    }
    let Some(object) = block.object() else {
        return false;
    };
    let content = object.get("content").and_then(Raw::array);
    let blocks = content.into_iter().flatten();
    blocks
        .chain([object.raw()])
        .any(|raw| refusal(raw).is_some())
}

/// Returns whether an image or a document contains nothing that the API could accept.
pub(super) fn is_unusable(media: Raw<'_>) -> bool {
    let Some(media) = media.object() else {
        return true;
    };
    let Some(source) = media.get("source").and_then(Raw::object) else {
        return true;
    };
    let text = |key: &str| source.get(key).and_then(Raw::str).unwrap_or_default();
    let is_inline = matches!(&*text("type"), "base64" | "text");
    let is_known =
        BlockKind::of(&media) != BlockKind::Image || IMAGE_TYPES.contains(&&*text("media_type"));
    is_inline && (text("data").is_empty() || !is_known)
}

/// Returns the replacement for media that [`is_unusable`] reports.
pub(super) fn unusable_note() -> Block {
    Block::text(&format!("{}no usable data]", texts::MEDIA_TOO_LARGE))
}

/// Base64 is longer than the data it encodes, so a short block cannot hold a large file. A sound one
/// holds none.
fn may_be_too_large(block: &Block) -> bool {
    !block.is_sound() && block.json_len() > MAX_IMAGE.min(MAX_TEXT_DOCUMENT)
}

/// Returns the replacement for media that are too large; `None` for all others.
fn refusal(media: Raw<'_>) -> Option<String> {
    let media = media.object()?;
    let kind = BlockKind::of(&media);
    if !matches!(kind, BlockKind::Image | BlockKind::Document) {
        return None;
    }
    let source = media.get("source")?.object()?;
    let data = source.get("data")?.str()?;
    let media_type = source
        .get("media_type")
        .and_then(Raw::str)
        .unwrap_or_default();
    let is_base64 = source.get("type").and_then(Raw::str).as_deref() == Some("base64");
    let len = if is_base64 {
        base64_len(&data)
    } else {
        data.len()
    };
    let limit = match kind {
        BlockKind::Image => MAX_IMAGE,
        _ if is_base64 => MAX_PDF,
        _ => MAX_TEXT_DOCUMENT,
    };
    (len > limit).then(|| {
        let megabytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        format!(
            "{}{media_type}, {:.1} MB, more than the {:.0} MB that the API takes]",
            texts::MEDIA_TOO_LARGE,
            megabytes(len),
            megabytes(limit)
        )
    })
}

/// Returns the number of bytes that a base64 text encodes.
fn base64_len(text: &str) -> usize {
    let digits = text.trim_end_matches('=').len();
    digits / 4 * 3 + digits % 4 * 3 / 4
}
