//! Estimates the tokens of a block by rules of thumb; the API may count differently.

use std::io;
use std::iter::Sum;
use std::ops::Add;

use transcript_format::object::{Object, Raw};

use super::block::{Block, BlockKind, kind_of, text_of};
use super::image;
use super::stored::StoredReader;

/// An estimate of tokens, for deciding what to send. Only the API knows the exact number.
///
/// | block | estimate |
/// | --- | --- |
/// | text, thought | a token for each four ASCII characters, rounded up, and one for each other character |
/// | tool call | 20, and its name and its input (as JSON) as text |
/// | tool result | 10, and its content |
/// | image | width times height in pixels by 750, rounded up, as its header says them; 4784 at most, as the API makes larger images smaller first |
/// | document of text or blocks | its content |
/// | any other | its JSON as text |
///
/// What cannot be estimated from its bytes is counted in [`Self::unknown`] instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenEstimate {
    /// The estimated tokens of all blocks that can be estimated.
    pub tokens: u64,
    /// How many blocks are not in [`Self::tokens`]: PDFs, media by address or file, images whose
    /// header does not contain their size, redacted thinking.
    pub unknown: usize,
}

const CALL: u64 = 20;
const RESULT: u64 = 10;
const PIXELS_PER_TOKEN: u64 = 750;
/// What the largest image costs that the API does not make smaller.
const MAX_IMAGE: u64 = 4_784;

impl TokenEstimate {
    const UNKNOWN: Self = Self {
        tokens: 0,
        unknown: 1,
    };

    /// Estimates one block, with what is in it.
    #[must_use]
    pub fn of(block: &Block) -> Self {
        Self::of_json(block.kind(), block.json())
    }

    /// Estimates one block like [`Self::of`]. One that stayed in its file is read with `reader`, and not kept.
    ///
    /// # Errors
    /// Those of [`StoredReader::json`].
    pub fn read(block: &Block, reader: &mut StoredReader) -> io::Result<Self> {
        Ok(Self::of_json(block.kind(), reader.json(block)?))
    }

    fn of_json(kind: BlockKind, json: &str) -> Self {
        let Ok(object) = Object::parse(json) else {
            return Self::of_text(json);
        };
        let text = |key: &str| {
            object
                .str(key)
                .map_or(Self::default(), |text| Self::of_text(&text))
        };
        match kind {
            BlockKind::ToolUse | BlockKind::ServerToolUse => {
                let input = object.get("input").map_or("", Raw::text);
                Self::known(CALL) + text("name") + Self::of_text(input)
            }
            BlockKind::ToolResult => {
                Self::known(RESULT) + Self::content(object.get("content"), Self::part)
            }
            BlockKind::Thinking | BlockKind::SealedThinking => match object.get("thinking") {
                Some(_) => text("thinking"),
                None => Self::UNKNOWN,
            },
            _ => Self::part(object.raw()),
        }
    }

    /// Estimates a block that may be in a result.
    pub(super) fn part(raw: Raw<'_>) -> Self {
        let source = raw.object().and_then(|block| block.object("source"));
        match (kind_of(raw), source) {
            (BlockKind::Document, Some(source)) => Self::document(&source),
            _ => Self::leaf(raw),
        }
    }

    fn document(source: &Object<'_>) -> Self {
        match source.str("type").as_deref() {
            Some("text") => Self::of_text(&source.str("data").unwrap_or_default()),
            Some("content") => Self::content(source.get("content"), Self::leaf),
            _ => Self::UNKNOWN,
        }
    }

    /// Estimates a block that may be in a document.
    fn leaf(raw: Raw<'_>) -> Self {
        match kind_of(raw) {
            BlockKind::Text => Self::of_text(&text_of(raw).unwrap_or_default()),
            BlockKind::Image => pixels(raw).map_or(Self::UNKNOWN, |pixels| {
                Self::known(pixels.div_ceil(PIXELS_PER_TOKEN).min(MAX_IMAGE))
            }),
            _ => Self::of_text(raw.text()),
        }
    }

    /// Estimates content: a string, or a list of blocks.
    fn content(content: Option<Raw<'_>>, of_block: fn(Raw<'_>) -> Self) -> Self {
        let Some(content) = content else {
            return Self::default();
        };
        match content.array() {
            Some(blocks) => blocks.into_iter().map(of_block).sum(),
            None => Self::of_text(&content.str().unwrap_or_default()),
        }
    }

    /// Estimates a text, such as a part of a system prompt.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let other = text.chars().count() - ascii;
        Self::known((ascii.div_ceil(4) + other) as u64)
    }

    const fn known(tokens: u64) -> Self {
        Self { tokens, unknown: 0 }
    }
}

/// Returns the pixels of an image that is in the block itself.
fn pixels(image: Raw<'_>) -> Option<u64> {
    let data = image.object()?.object("source")?.str("data")?;
    let (width, height) = image::size_of(&data)?;
    Some(u64::from(width) * u64::from(height))
}

impl Add for TokenEstimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            // The header of an image may contain any value.
            tokens: self.tokens.saturating_add(other.tokens),
            unknown: self.unknown + other.unknown,
        }
    }
}

impl Sum for TokenEstimate {
    fn sum<I: Iterator<Item = Self>>(estimates: I) -> Self {
        estimates.fold(Self::default(), Self::add)
    }
}
