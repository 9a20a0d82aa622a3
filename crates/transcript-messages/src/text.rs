//! Texts as messages carry them, and as JSON strings.

use std::borrow::Cow;

use transcript_format::attachment_texts::{REMINDER_END, REMINDER_START};
use transcript_format::object::unit_at;

/// Trims white space as JavaScript defines it: U+FEFF is, U+0085 is not (NOTE-3).
#[must_use]
pub fn js_trim(text: &str) -> &str {
    text.trim_matches(is_js_space)
}

/// Returns whether the character is white space in JavaScript.
#[must_use]
pub fn is_js_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// Wraps the text of a reminder.
#[must_use]
pub fn wrapped(text: &str) -> String {
    format!("{REMINDER_START}{text}{REMINDER_END}")
}

/// Returns `text` as a JSON string, with NULs as U+FFFD.
#[must_use]
pub fn quoted(text: &str) -> String {
    // A string always serialises: there are no keys that could be refused and no numbers out of
    // range.
    serde_json::to_string(&text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Returns whether any provider treats the character as white space.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}' | '\u{feff}')
}

/// Returns the JSON text with escapes of lone surrogates (FILE-3) and NULs replaced by U+FFFD: an
/// API with a strict JSON parser refuses the former, and the database of another the latter.
pub(super) fn safe(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = match unit_at(rest, 0) {
            Some(0xD800..=0xDBFF) if matches!(unit_at(rest, 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF | 0) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            Some(_) => 6,
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}
