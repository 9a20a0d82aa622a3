//! Lines as tools print them: with numbers, marks of a diff, quotes, and cut where a window ends.

use std::ops::Range;

use crate::class::{ALNUM, Class};
use crate::view::View;

/// No terminal and no mail is narrower, in characters.
const MIN_WRAP_WIDTH: usize = 38;
/// The maximum length of a prefix of a line, such as its number.
const MAX_PREFIX_LEN: usize = 64;

/// Returns where a token continues whose first `piece` ends with its line; `None` if it ends there, too.
///
/// A token `is_short` if it would be none without the next line.
pub(crate) fn next_line(view: &View, piece: &Range<usize>, is_short: bool) -> Option<usize> {
    const MIN_PIECE_LEN: usize = 6;
    let text = view.text();
    let next = line_end(view, piece.end)?;
    if piece.len() < MIN_PIECE_LEN {
        return None;
    }
    let start = line_start(view, piece.start);
    let is_full = piece.end - start >= MIN_WRAP_WIDTH;
    if !is_full && !is_short {
        return None;
    }
    let next = after_prefix(text, next);
    let is_rest = is_random(&text[piece.clone()]) && (is_short || continues(text, next));
    is_rest.then_some(next)
}

/// Returns whether a line that starts at `at` can be the rest of a token, and nothing else.
pub(crate) fn continues(text: &[u8], at: usize) -> bool {
    const TOKEN_CHARS: Class = ALNUM.or(Class::of("+/-_.~%"));
    const MIN_WITHOUT_DIGITS: usize = 20;
    let rest = &text[at..];
    let len = rest
        .iter()
        .take_while(|byte| TOKEN_CHARS.has(**byte))
        .count();
    let padding = rest[len..].iter().take_while(|byte| **byte == b'=').count();
    let is_all = match rest.get(len + padding) {
        // A short word is the first one of a sentence.
        Some(b' ' | b'\t') => len >= 8,
        next => next.is_none_or(|byte| b"\n\r\"'`<)\\".contains(byte)),
    };
    let has_digit = rest[..len].iter().any(u8::is_ascii_digit);
    len > 0 && is_all && is_random(&rest[..len]) && (has_digit || len >= MIN_WITHOUT_DIGITS)
}

/// Returns whether a text has digits, or letters of both cases.
fn is_random(text: &[u8]) -> bool {
    let has = |of: fn(&u8) -> bool| text.iter().any(of);
    has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

/// Returns where the text of the next line starts, if the line that ends at `at` is as long as a terminal is wide.
pub(crate) fn full_line_end(view: &View, at: usize) -> Option<usize> {
    let text = view.text();
    const MIN_TERMINAL_WIDTH: usize = 60;
    let next = line_end(view, at)?;
    (at - line_start(view, at) >= MIN_TERMINAL_WIDTH).then(|| after_prefix(text, next))
}

/// Returns where the line that contains `at` starts, or a place in it if it is long.
///
/// The first line of a string starts behind its quote.
pub(crate) fn line_start(view: &View, at: usize) -> usize {
    const MAX_LINE_LEN: usize = 1 << 10;
    let text = view.text();
    let from = at.saturating_sub(MAX_LINE_LEN);
    let start = memchr::memrchr(b'\n', &text[from..at]).map_or(from, |feed| from + feed + 1);
    view.last_outer_quote(start..at)
        .map_or(start, |quote| quote + 1)
}

/// Returns where the next line starts, if at most the end of a quoted part stands between `at` and it.
fn line_end(view: &View, at: usize) -> Option<usize> {
    let text = view.text();
    const MAX_END_LEN: usize = 12;
    let rest = &text[at..text.len().min(at + MAX_END_LEN)];
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let is_end = |byte: &u8| b" \t\r\"'`\\+,;|".contains(byte);
    // A line ends within its string.
    let is_inside = (at..at + end).all(|at| !view.is_outer_quote(at));
    (is_inside && rest[..end].iter().all(is_end)).then_some(at + end + 1)
}

/// Returns where the line behind the one that ends at `at` starts: behind a line feed, or in the next string of a list of
/// lines.
pub(crate) fn line_behind(view: &View, at: usize) -> Option<usize> {
    const LIST_SEPARATOR: &[u8] = b", ";
    let text = view.text();
    let at = at + usize::from(text.get(at) == Some(&b'\r'));
    if text.get(at) == Some(&b'\n') {
        return Some(at + 1);
    }
    if !view.is_outer_quote(at) {
        return None;
    }
    let between = text[at + 1..].iter().take(LIST_SEPARATOR.len());
    let open = at
        + 1
        + between
            .take_while(|byte| LIST_SEPARATOR.contains(byte))
            .count();
    (open > at + 1 && view.is_outer_quote(open)).then_some(open + 1)
}

/// Returns where the line that contains `at` ends: at a line feed, at the end of its string, or `max` bytes behind `at`.
pub(crate) fn line_end_at(view: &View, at: usize, max: usize) -> usize {
    let text = view.text();
    let at = at.min(text.len());
    let rest = &text[at..text.len().min(at + max)];
    let end = at + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    view.first_outer_quote(at..end).unwrap_or(end)
}

/// Returns where the text of a line starts whose first byte is at `at`: behind indentation, the name of a file, the
/// number of the line, the mark of a diff or of a quotation.
pub(crate) fn after_prefix(text: &[u8], at: usize) -> usize {
    prefix_end(text, at, b" \t\r\"'`>|+*#,", true)
}

/// Returns the same, but its indentation, its quotes and the mark of an element of a list belong to the text.
pub(crate) fn after_marks(text: &[u8], at: usize) -> usize {
    prefix_end(text, at, b" \t\r+>|", false)
}

fn prefix_end(text: &[u8], at: usize, blanks: &[u8], has_dash: bool) -> usize {
    let line = &text[at..text.len().min(at + MAX_PREFIX_LEN)];
    let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
    let mut len = 0;
    loop {
        let rest = &line[len..];
        let blank = rest.iter().take_while(|byte| blanks.contains(byte)).count();
        // A mark of a diff, or of a comment, not the first character of base64 with a hyphen.
        let dash = usize::from(
            has_dash
                && rest[blank..].first() == Some(&b'-')
                && rest.get(blank + 1) != Some(&b'-')
                && len == 0,
        );
        let number = &rest[blank..];
        let digits = number
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let arrow = "\u{2192}".as_bytes();
        let bar = "\u{2502}".as_bytes();
        let step = match &number[digits..] {
            after if digits > 0 && after.starts_with(arrow) => blank + digits + arrow.len(),
            [b'\t' | b':' | b'|' | b'-', ..] if digits > 0 => blank + digits + 1,
            [b' ', b' ' | b'|', ..] if digits > 0 => blank + digits + 1,
            after if digits == 0 && after.starts_with(bar) => blank + bar.len(),
            _ if digits == 0 && blank + dash > 0 => blank + dash,
            _ => file_name(number).map_or(0, |len| blank + len).max(blank),
        };
        if step == 0 {
            return at + len;
        }
        len += step;
    }
}

/// Returns the length of the name of a file and a number at the start of a line, as `grep -n` prints them.
fn file_name(line: &[u8]) -> Option<usize> {
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._-/~@".contains(byte);
    let name = line.iter().take_while(is_name).count();
    let rest = line.get(name..)?;
    let (mark, digits) = rest.split_first()?;
    if *mark != b':' || name == 0 {
        return None;
    }
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    matches!(digits.get(count), Some(b':') if count > 0).then_some(name + 1 + count + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_that_a_tool_prints_is_not_part_of_the_line() {
        for (line, text) in [
            ("    12\u{2192}abc", "abc"),
            ("     3\tabc", "abc"),
            ("12:abc", "abc"),
            ("src/a.rs:12:abc", "abc"),
            ("12-abc", "abc"),
            ("+abc", "abc"),
            ("-  abc", "abc"),
            ("> > abc", "abc"),
            ("\u{2502} abc", "abc"),
            ("  \"abc", "abc"),
            ("12abc", "12abc"),
            ("abc", "abc"),
            ("", ""),
        ] {
            let at = after_prefix(line.as_bytes(), 0);
            assert_eq!(&line[at..], text, "{line:?}");
        }
    }
}
