//! The texts under which an attachment was sent the first time (NOTE-1).

use transcript_format::object::{JsonKind, Object, Raw};
use transcript_messages::block::{kind_of, text_of};
use transcript_messages::{Block, BlockKind};

/// Returns the content of each stored message; `None` when there is none, or one is an empty text or
/// contains another block than text: then the attachment is rendered from its fields.
pub(super) fn contents<'o>(object: &Object<'o>) -> Option<Vec<Raw<'o>>> {
    let rendered = object.get("rendered")?.array()?;
    if rendered.is_empty() {
        return None;
    }
    let content = |part: Raw<'o>| {
        part.object()?
            .get("content")
            .filter(|content| is_text(*content))
    };
    rendered.into_iter().map(content).collect()
}

fn is_text(content: Raw<'_>) -> bool {
    const EMPTY_STRING: &str = r#""""#;
    let is_text = |block: &Raw<'_>| {
        kind_of(*block) == BlockKind::Text && text_of(*block).is_none_or(|text| !text.is_empty())
    };
    match content.kind() {
        JsonKind::String => content.text() != EMPTY_STRING,
        _ => content
            .array()
            .is_some_and(|blocks| blocks.iter().all(is_text)),
    }
}

/// Returns the blocks of stored messages.
pub(super) fn parts(contents: &[Raw<'_>], origin: Option<usize>) -> Vec<Vec<Block>> {
    let blocks = |content: Raw<'_>| match content.array() {
        Some(blocks) => blocks.into_iter().map(Block::read).collect(),
        None => vec![Block::plain(content)],
    };
    let parts = contents.iter().map(|content| {
        let blocks: Vec<Block> = blocks(*content);
        let blocks = blocks.into_iter();
        blocks.map(|block| block.with_origin(origin)).collect()
    });
    parts.collect()
}
