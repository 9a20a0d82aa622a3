//! Images and documents that the API refused.

use transcript_format::texts;
use transcript_messages::block::kind_of;
use transcript_messages::{Block, BlockKind, Log, OmissionReason};

use super::step::{Step, StepKind};
use crate::tree::Policy;

/// Removes the images or documents that the API refused from the entry that contained them, as the
/// API would refuse every later request too (ERR-2, ERR-3).
///
/// The client knows the errors by their whole text; `recover` by the start, as the text differs from
/// version to version.
pub(super) fn remove_rejected(steps: &mut Vec<Step>, policy: Policy, log: &mut Log) {
    let is_any_distinct = steps.iter().any(|step| step.heals_distinct_carrier);
    let mut carriers = Carriers::default();
    for at in 0..steps.len() {
        let (before, rest) = steps.split_at_mut(at);
        match rest[0].kind {
            StepKind::User if is_any_distinct => carriers.note(at, &rest[0]),
            StepKind::ApiError => {
                let Some(media) = rejected(&rest[0], policy) else {
                    continue;
                };
                let lines = if rest[0].heals_distinct_carrier {
                    carriers.nearest(before, media).into_iter().collect()
                } else {
                    lines_before(before)
                };
                for line in lines {
                    if strip(&mut before[line].blocks, media) {
                        log.omit(before[line].origin(), OmissionReason::RejectedMedia);
                    }
                }
            }
            _ => {}
        }
    }
    // A prompt with nothing left is not sent (ERR-4).
    steps.retain(|step| step.kind != StepKind::User || !step.blocks.is_empty());
}

/// The starts of the texts of errors about media, the rest of the texts, and the media (ERR-2).
const REJECTIONS: [(&str, &str, BlockKind); 3] = [
    (
        "Image was too large. Try resizing",
        " the image or using a different approach.",
        BlockKind::Image,
    ),
    (
        "PDF is password protected",
        ". Try using a CLI tool to extract or convert the PDF.",
        BlockKind::Document,
    ),
    (
        "The PDF file was not valid",
        ". Try converting it to text first (e.g., pdftotext).",
        BlockKind::Document,
    ),
];

/// Returns what the API refused, by the text of the error (ERR-2).
fn rejected(error: &Step, policy: Policy) -> Option<BlockKind> {
    let text = error.blocks.first()?.text_field()?;
    let is_meant = |start: &str, rest: &str| {
        let after = text.strip_prefix(start);
        after.is_some_and(|after| policy == Policy::Recover || after == rest)
    };
    let mut rejections = REJECTIONS.into_iter();
    rejections.find_map(|(start, rest, media)| is_meant(start, rest).then_some(media))
}

/// Returns the entries that may contain it: the user entry right before the error, and while that
/// is `isMeta` the one before it (ERR-2).
fn lines_before(steps: &[Step]) -> Vec<usize> {
    let mut lines = Vec::new();
    for (at, step) in steps.iter().enumerate().rev() {
        // A system entry between them protects the media; an entry that is not sent does not.
        if step.kind == StepKind::Silent && !step.is_system() {
            continue;
        }
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
