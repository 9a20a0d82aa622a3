//! Images and documents that the API refused, or would refuse.

use transcript_format::object::Raw;

use super::block::{Block, BlockKind, kind_of};
use super::step::{Step, StepKind};
use super::{Log, OmissionReason, Role, SyntheticKind};
use crate::texts;

/// The most that the API accepts, in bytes of the file itself.
pub(super) const MAX_IMAGE: usize = 5 << 20;
pub(super) const MAX_PDF: usize = 32 << 20;
pub(super) const MAX_TEXT_DOCUMENT: usize = 5 << 20;

/// The image types that the API accepts.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Replaces every image and document that is too large by a note: one of them makes the API refuse
/// this request and every one after it.
pub(super) fn within_limits(mut block: Block, log: &mut Log) -> Block {
    if !may_be_too_large(&block) {
        return block;
    }
    let entry = block.entry();
    let mut note = |note: Option<String>| {
        let note = Block::text(&note?);
        let entry = entry.map(|entry| entry as u32);
        log.omit(entry, OmissionReason::OversizedMedia);
        log.add_synthetic(SyntheticKind::MediaNote, Role::User, &note, entry);
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
    match (note, entry) {
        (Some(note), Some(entry)) => note.of_entry(entry as u32),
        _ => block,
    }
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

/// Base64 is longer than the data it encodes, so a short block cannot hold a large file.
fn may_be_too_large(block: &Block) -> bool {
    block.json().len() > MAX_IMAGE.min(MAX_TEXT_DOCUMENT)
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

/// Removes the images or documents that the API refused from the entry that contained them, as the
/// API would refuse every later request too (ERR-2, ERR-3).
pub(super) fn remove_rejected(steps: &mut Vec<Step>, log: &mut Log) {
    let is_any_distinct = steps.iter().any(|step| step.heals_distinct_carrier);
    let mut carriers = Carriers::default();
    for at in 0..steps.len() {
        let (before, rest) = steps.split_at_mut(at);
        match rest[0].kind {
            StepKind::User if is_any_distinct => carriers.note(at, &rest[0]),
            StepKind::ApiError => {
                let Some(media) = rejected(&rest[0]) else {
                    continue;
                };
                let lines = if rest[0].heals_distinct_carrier {
                    carriers.nearest(before, media).into_iter().collect()
                } else {
                    lines_before(before)
                };
                for line in lines {
                    if strip(&mut before[line].blocks, media) {
                        log.omit(before[line].entry, OmissionReason::RejectedMedia);
                    }
                }
            }
            _ => {}
        }
    }
    // A prompt with nothing left is not sent (ERR-4).
    steps.retain(|step| step.kind != StepKind::User || !step.blocks.is_empty());
}

/// Returns what the API refused, by the text of the error (ERR-2).
fn rejected(error: &Step) -> Option<BlockKind> {
    let text = error.blocks.first()?.text_field()?;
    if text.starts_with("Image was too large. Try resizing") {
        Some(BlockKind::Image)
    } else if text.starts_with("PDF is password protected")
        || text.starts_with("The PDF file was not valid")
    {
        Some(BlockKind::Document)
    } else {
        None
    }
}

/// Returns the entries that may contain it: the user entry right before the error, and while that
/// is `isMeta` the one before it (ERR-2).
fn lines_before(steps: &[Step]) -> Vec<usize> {
    let mut lines = Vec::new();
    for (at, step) in steps.iter().enumerate().rev() {
        let is_user = step.kind == StepKind::User;
        if is_user {
            lines.push(at);
        }
        if !is_user || !step.is_meta {
            break;
        }
    }
    lines
}

/// The user entries so far that contain an image, and those that contain a document. With
/// `healsDistinctCarrier` the nearest one is cleaned (ERR-3).
#[derive(Default)]
struct Carriers {
    images: Vec<usize>,
    documents: Vec<usize>,
}

impl Carriers {
    fn note(&mut self, at: usize, line: &Step) {
        for media in [BlockKind::Image, BlockKind::Document] {
            if line.blocks.iter().any(|block| carries(block, media)) {
                self.lines(media).push(at);
            }
        }
    }

    /// Returns the last entry that still has some, which is about to lose them.
    fn nearest(&mut self, steps: &[Step], media: BlockKind) -> Option<usize> {
        let lines = self.lines(media);
        while let Some(at) = lines.pop() {
            if steps[at].blocks.iter().any(|block| carries(block, media)) {
                return Some(at);
            }
        }
        None
    }

    fn lines(&mut self, media: BlockKind) -> &mut Vec<usize> {
        if media == BlockKind::Image {
            &mut self.images
        } else {
            &mut self.documents
        }
    }
}

fn carries(block: &Block, media: BlockKind) -> bool {
    block.kind() == media
        || (block.kind() == BlockKind::ToolResult && without_media(block, media).is_some())
}

/// Removes `media` from `blocks`. Returns whether there were any.
fn strip(blocks: &mut Vec<Block>, media: BlockKind) -> bool {
    let mut is_changed = false;
    blocks.retain(|block| {
        is_changed |= block.kind() == media;
        block.kind() != media
    });
    for block in blocks {
        if block.kind() == BlockKind::ToolResult
            && let Some(content) = without_media(block, media)
        {
            block.set("content", &content);
            is_changed = true;
        }
    }
    is_changed
}

/// Returns the content of a result without `media`, with a text if nothing else is left (ERR-4);
/// `None` when it contains none.
fn without_media(result: &Block, media: BlockKind) -> Option<String> {
    let blocks = result.object()?.get("content")?.array()?;
    let rest: Vec<&str> = blocks
        .iter()
        .filter(|raw| kind_of(**raw) != media)
        .map(|raw| raw.text())
        .collect();
    if rest.len() == blocks.len() {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("[{}]", Block::text(texts::MEDIA_REJECTED).json()));
    }
    Some(format!("[{}]", rest.join(",")))
}
