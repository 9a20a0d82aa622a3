//! Finds lines that are similar without knowing what a line means.
//!
//! A fork copies lines and changes ids in them. What it does not change is the longest text of a line: two
//! lines with the same longest text are likely copies of each other.

use std::collections::HashMap;
use std::sync::Arc;

use memchr::{memchr, memchr_iter};

/// A hash of the longest text of a line.
pub(crate) type Feature = u64;

/// Shorter texts identify no line, in bytes.
const MIN_TEXT: usize = 64;
/// So many bytes of the start of a text count, and of its end.
const HEAD: usize = 192;
const TAIL: usize = 64;
/// The number of places at which two lines are compared.
const PLACES: usize = 32;
/// The number of bytes that are compared at each.
const WIDTH: usize = 8;

/// Returns the feature of a line, if it has a text that is long enough.
pub(crate) fn feature(line: &[u8]) -> Option<Feature> {
    let (mut longest, mut start) = (&line[..0], 0);
    for end in memchr_iter(b'"', line) {
        if end - start > longest.len() {
            longest = &line[start..end];
        }
        start = end + 1;
    }
    if line.len() - start > longest.len() {
        longest = &line[start..];
    }
    if longest.len() < MIN_TEXT {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&longest[..longest.len().min(HEAD)]);
    hasher.update(&longest[longest.len() - TAIL..]);
    hasher.update(&(longest.len() as u64).to_le_bytes());
    let mut feature = [0; 8];
    feature.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    Some(Feature::from_le_bytes(feature))
}

/// Returns whether most of a line is in the other one at the same distance from its start or its end.
pub(crate) fn is_similar(line: &[u8], other: &[u8]) -> bool {
    if line == other {
        return true;
    }
    if line.len() < WIDTH * 2 || line.len().abs_diff(other.len()) > 512 + line.len() / 4 {
        return false;
    }
    let last = line.len() - WIDTH;
    let places = (line.len() / WIDTH).min(PLACES);
    let same = (0..places).filter(|place| {
        let at = last * place / (places - 1).max(1);
        let bytes = &line[at..at + WIDTH];
        let from_end = (other.len() + at).checked_sub(line.len());
        other.get(at..at + WIDTH) == Some(bytes)
            || from_end.is_some_and(|at| other.get(at..at + WIDTH) == Some(bytes))
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

    #[test]
    fn other_lines_are_not_similar() {
        let one = line("11111111", "aaaaaaaa", "");
        let other: Vec<u8> = one.iter().map(|byte| byte ^ 1).collect();
        assert_ne!(feature(&one), feature(&other));
        assert!(!is_similar(&one, &other));
        assert!(!is_similar(&one, b"{}\n") && !is_similar(b"{}\n", &one));
    }
}
