//! Finds lines that are similar without knowing what a line means.
//!
//! A fork copies lines and changes ids in them. What it does not change is the longest text of a line: two
//! lines with the same longest text are likely copies of each other.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::{memchr, memrchr};

/// A hash of the longest text of a line.
pub(crate) type Feature = u64;

/// Shorter texts identify no line, in bytes.
const MIN_TEXT_LEN: usize = 64;
/// The length of the start and of the end of a text that count, in bytes.
const HEAD_LEN: usize = 192;
const TAIL_LEN: usize = 64;
/// The maximum number of positions at which two lines are compared.
const MAX_SAMPLES: usize = 32;
/// The number of bytes that are compared at each position.
const SAMPLE_LEN: usize = 8;

/// Returns the feature of a line, if it has a text that is long enough.
pub(crate) fn feature(line: &[u8]) -> Option<Feature> {
    let longest = longest_text(line);
    if longest.len() < MIN_TEXT_LEN {
        return None;
    }
    let head = &longest[..longest.len().min(HEAD_LEN)];
    let tail = &longest[longest.len() - TAIL_LEN..];
    Some(mix(mix(longest.len() as u64, head), tail))
}

/// Returns the first of the longest texts between quotation marks, the start and the end.
fn longest_text(line: &[u8]) -> &[u8] {
    let (mut longest, mut start) = (&line[..0], 0);
    // A longer text that starts here has no quotation mark up to there.
    while let Some(part) = line.get(start..=start + longest.len()) {
        if let Some(at) = memrchr(b'"', part) {
            start += at + 1;
            continue;
        }
        let rest = &line[start..];
        let end = memchr(b'"', &rest[part.len()..]);
        longest = end.map_or(rest, |end| &rest[..part.len() + end]);
        start += longest.len() + 1;
    }
    longest
}

/// Adds bytes to a hash. Texts with the same hash cost time or space, nothing else.
fn mix(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    words.fold(hash, |hash, word| {
        let product = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product ^ (product >> 32)
    })
}

/// Returns whether most of a line is in the other one at the same distance from its start or its end.
pub(crate) fn is_similar(line: &[u8], other: &[u8]) -> bool {
    if line == other {
        return true;
    }
    if line.len() < SAMPLE_LEN * 2 || line.len().abs_diff(other.len()) > 512 + line.len() / 4 {
        return false;
    }
    let last = line.len() - SAMPLE_LEN;
    let places = (line.len() / SAMPLE_LEN).min(MAX_SAMPLES);
    let same = (0..places).filter(|place| {
        let at = last * place / (places - 1).max(1);
        let bytes = &line[at..at + SAMPLE_LEN];
        let from_end = (other.len() + at).checked_sub(line.len());
        other.get(at..at + SAMPLE_LEN) == Some(bytes)
            || from_end.is_some_and(|at| other.get(at..at + SAMPLE_LEN) == Some(bytes))
    });
    same.count() * 2 > places
}

/// Returns the first line of some bytes, with its line feed.
pub(crate) fn first_line(bytes: &[u8]) -> &[u8] {
    match memchr(b'\n', bytes) {
        Some(end) => &bytes[..=end],
        None => bytes,
    }
}

/// The lines of a frame, by their features.
#[derive(Debug)]
pub(crate) struct FrameLines {
    pub(crate) content: Arc<[u8]>,
    by_feature: HashMap<Feature, u32>,
}

impl FrameLines {
    pub(crate) fn new(content: Arc<[u8]>) -> Self {
        let mut by_feature = HashMap::new();
        let mut start = 0;
        while start < content.len() {
            let line = first_line(&content[start..]);
            if let Some(feature) = feature(line) {
                by_feature.entry(feature).or_insert(start as u32);
            }
            start += line.len();
        }
        Self {
            content,
            by_feature,
        }
    }

    /// Returns the line at an offset.
    pub(crate) fn line_at(&self, start: u32) -> Option<&[u8]> {
        let rest = self.content.get(start as usize..)?;
        (!rest.is_empty()).then(|| first_line(rest))
    }

    /// Returns the offset of the line with a feature.
    pub(crate) fn find(&self, feature: Feature) -> Option<u32> {
        self.by_feature.get(&feature).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(uuid: &str, session: &str, more: &str) -> Vec<u8> {
        let text = "the text of an answer, which no fork changes ".repeat(20);
        format!(
            "{{\"uuid\":\"{uuid}\",\"sessionId\":\"{session}\",\"message\":{{\"content\":\"{text}\"}}{more}}}\n"
        )
        .into_bytes()
    }

    #[test]
    fn copies_with_other_ids_have_the_same_feature_and_are_similar() {
        let one = line("11111111", "aaaaaaaa", "");
        let other = line(
            "22222222",
            "bbbbbbbb",
            ",\"forkedFrom\":{\"messageUuid\":\"11111111\"}",
        );
        assert!(feature(&one).is_some());
        assert_eq!(feature(&one), feature(&other));
        assert!(is_similar(&one, &other) && is_similar(&other, &one));
    }

    proptest::proptest! {
        #[test]
        fn the_longest_text_is_the_first_of_the_longest(line in "[ab\"]{0,60}") {
            let texts = line.split('"');
            let longest = texts.rev().max_by_key(|text| text.len()).unwrap_or_default();
            let found = longest_text(line.as_bytes());
            proptest::prop_assert_eq!(found, longest.as_bytes());
            if !longest.is_empty() {
                let at = longest.as_ptr() as usize - line.as_ptr() as usize;
                let found_at = found.as_ptr() as usize - line.as_ptr() as usize;
                proptest::prop_assert_eq!(found_at, at);
            }
        }
    }

    #[test]
    fn other_lines_are_not_similar() {
        let one = line("11111111", "aaaaaaaa", "");
        let other: Vec<u8> = one.iter().map(|byte| byte ^ 1).collect();
        assert_ne!(feature(&one), feature(&other));
        assert!(!is_similar(&one, &other));
        assert!(!is_similar(&one, b"{}\n") && !is_similar(b"{}\n", &one));
    }
}
