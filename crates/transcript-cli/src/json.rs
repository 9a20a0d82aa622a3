//! JSON that cannot control the terminal that shows it.
//!
//! JSON escapes C0, but not DEL, C1 and bidirectional marks, which a terminal interprets. Such
//! characters only occur in strings, where the escape `\u009b` has the same meaning.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Serialize;
use transcript_render::is_bidi;

/// Serializes one of our records as one line without a newline.
pub(crate) fn text(record: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(record)?;
    Ok(match escaped(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    })
}

/// Escapes what a terminal would act on.
pub(crate) fn escaped(json: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() && c != '\n' || is_bidi(c);
    // Fast path: most JSON is plain ASCII.
    let is_harmless = json.is_ascii() && !json.contains('\u{7f}');
    if is_harmless || !json.contains(acts) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if acts(c) {
            // All of them are in the Basic Multilingual Plane. Writing to a string cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_escaped_and_means_the_same() {
        let hostile: String = ('\0'..='\u{3000}').collect();
        let json = text(&hostile).unwrap();
        let bad = |c: char| {
            c.is_control()
                || matches!(c, '\u{200e}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert_eq!(json.find(bad), None);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
        assert_eq!(text(&"\u{9b}2J").unwrap(), r#""\u009b2J""#);
        assert_eq!(text(&"年").unwrap(), "\"年\"");
    }
}
