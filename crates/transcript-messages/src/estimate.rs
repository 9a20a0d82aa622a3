//! Estimates the tokens of a block by rules of thumb; the API may count differently.

use std::iter::Sum;
use std::ops::Add;

use transcript_format::object::{Object, Raw, unescape};
use transcript_format::scan::count_escapes;

use super::block_kind::BlockKind;
use super::image;

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
/// A block that cannot be estimated from its bytes is counted in [`Self::unknown`] instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenEstimate {
    /// The estimated tokens of all blocks that can be estimated.
    pub tokens: u64,
    /// The number of blocks that are not in [`Self::tokens`]: PDFs, media by address or file, images whose
    /// header does not contain their size, redacted thinking.
    pub unknown: usize,
}

const CALL_TOKENS: u64 = 20;
const RESULT_TOKENS: u64 = 10;
const PIXELS_PER_TOKEN: u64 = 750;
/// The maximum number of tokens of an image: the API makes larger images smaller first.
const MAX_IMAGE_TOKENS: u64 = 4_784;

impl TokenEstimate {
    const UNKNOWN: Self = Self {
        tokens: 0,
        unknown: 1,
    };

    /// Estimates a block of this kind.
    pub(super) fn of_object(kind: BlockKind, block: &Object<'_>) -> Self {
        match kind {
            BlockKind::ToolUse | BlockKind::ServerToolUse => {
                let input = block.get("input").map_or("", Raw::text);
                Self::known(CALL_TOKENS) + Self::of_string(block.get("name")) + Self::of_text(input)
            }
            BlockKind::ToolResult => {
                Self::known(RESULT_TOKENS) + Self::content(block.get("content"), Self::of_part)
            }
            BlockKind::Thinking | BlockKind::SealedThinking => match block.get("thinking") {
                None => Self::UNKNOWN,
                text => Self::of_string(text),
            },
            _ => Self::of_part(block),
        }
    }

    /// Estimates a block that may be in a result.
    pub(super) fn part(raw: Raw<'_>) -> Self {
        Self::of_raw(raw, Self::of_part)
    }

    fn of_part(block: &Object<'_>) -> Self {
        match (BlockKind::of(block), block.object("source")) {
            (BlockKind::Document, Some(source)) => Self::document(&source),
            _ => Self::of_leaf(block),
        }
    }

    fn document(source: &Object<'_>) -> Self {
        match source.str("type").as_deref() {
            Some("text") => Self::of_string(source.get("data")),
            Some("content") => Self::content(source.get("content"), Self::of_leaf),
            _ => Self::UNKNOWN,
        }
    }

    /// Estimates a block that may be in a document.
    fn of_leaf(block: &Object<'_>) -> Self {
        match BlockKind::of(block) {
            BlockKind::Text => Self::of_string(block.get("text")),
            BlockKind::Image => pixels(block).map_or(Self::UNKNOWN, |pixels| {
                Self::known(pixels.div_ceil(PIXELS_PER_TOKEN).min(MAX_IMAGE_TOKENS))
            }),
            _ => Self::of_text(block.text()),
        }
    }

    /// Estimates content: a string, or a list of blocks.
    fn content(content: Option<Raw<'_>>, of_block: fn(&Object<'_>) -> Self) -> Self {
        match content.and_then(Raw::array) {
            Some(blocks) => {
                let blocks = blocks.into_iter();
                blocks.map(|block| Self::of_raw(block, of_block)).sum()
            }
            None => Self::of_string(content),
        }
    }

    fn of_raw(raw: Raw<'_>, of_block: fn(&Object<'_>) -> Self) -> Self {
        match raw.object() {
            Some(block) => of_block(&block),
            None => Self::of_text(raw.text()),
        }
    }

    /// Estimates the text that a JSON string stands for, without decoding it; nothing for another value.
    fn of_string(value: Option<Raw<'_>>) -> Self {
        let body = value.and_then(|value| value.text().strip_prefix('"')?.strip_suffix('"'));
        let body = body.unwrap_or_default();
        match count_escapes(body) {
            Some(escapes) => Self::of_chars(body, escapes),
            None => Self::of_text(&unescape(body)),
        }
    }

    /// Estimates a text, such as a part of a system prompt.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self::of_chars(text, 0)
    }

    /// Estimates a text with a number of two-byte escapes, each of which stands for one ASCII character.
    fn of_chars(text: &str, escapes: usize) -> Self {
        let (ascii, other) = count_chars(text);
        Self::known(((ascii - escapes).div_ceil(4) + other) as u64)
    }

    const fn known(tokens: u64) -> Self {
        Self { tokens, unknown: 0 }
    }
}

/// Returns the pixels of an image that is in the block itself.
fn pixels(image: &Object<'_>) -> Option<u64> {
    let data = image.object("source")?.str("data")?;
    let (width, height) = image::size_of(&data)?;
    Some(u64::from(width) * u64::from(height))
}

/// Counts the ASCII characters of a text, and the others.
fn count_chars(text: &str) -> (usize, usize) {
    // The count of a part fits in a byte, so that many bytes are added at once.
    const PART: usize = 128;
    let of_part = |part: &[u8]| {
        let ascii: u8 = part.iter().map(|byte| u8::from(byte.is_ascii())).sum();
        // Each other character has one byte like this.
        let first: u8 = part.iter().map(|byte| u8::from(*byte >= 0xC0)).sum();
        (usize::from(ascii), usize::from(first))
    };
    let (parts, rest) = text.as_bytes().as_chunks::<PART>();
    let parts = parts.iter().map(|part| of_part(part));
    parts.fold(of_part(rest), |sum, part| (sum.0 + part.0, sum.1 + part.1))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;

    #[test]
    fn json_string_is_estimated_as_its_decoded_text() {
        let bodies = [
            "",
            "1234",
            r"12345\n\t\\8",
            r#"\"\"\/\\\""#,
            r"\b\b\b\b",
            r"\u0031\u0032345",
            r"\ud83d\ude42 \ud83d",
            r"\\u0031",
            "日本\\n日本",
        ];
        for body in bodies {
            for body in [body.to_owned(), body.repeat(70)] {
                let json = format!(r#"{{"type":"text","text":"{body}"}}"#);
                let block = Block::verbatim(Raw::parse(&json).expect("test blocks are JSON"));
                let text = unescape(&body);
                let ascii = text.chars().filter(char::is_ascii).count();
                let expected = ascii.div_ceil(4) + text.chars().count() - ascii;
                let found = TokenEstimate::of(&block);
                assert_eq!(found, TokenEstimate::known(expected as u64), "{body}");
                assert_eq!(found, TokenEstimate::of_text(&text), "{body}");
            }
        }
    }
}
