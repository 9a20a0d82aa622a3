//! JSON that does nothing to the terminal that shows it.
//!
//! JSON escapes C0 and leaves DEL, C1 and marks of direction as they are, and a terminal acts on them.
//! Such characters stand within strings alone, where `\u009b` means the same to whoever reads JSON.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use serde::Serialize;

use crate::escape;

/// Serializes a record that we make, on one line without a newline.
pub(crate) fn text(record: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(record)?;
    Ok(match escaped(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    })
}

/// JSON of a transcript: verbatim where a program reads it, escaped on a terminal.
pub(crate) fn verbatim(json: &str) -> Cow<'_, str> {
    static IS_SHOWN: OnceLock<bool> = OnceLock::new();
    match *IS_SHOWN.get_or_init(|| io::stdout().is_terminal()) && !escape::is_off() {
        true => escaped(json),
        false => Cow::Borrowed(json),
    }
}

fn escaped(json: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() && c != '\n' || escape::is_bidi(c);
    // Most JSON holds nothing but ASCII, which is fast to see.
    let is_harmless = json.is_ascii() && !json.contains('\u{7f}');
    if is_harmless || !json.contains(acts) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if acts(c) {
            // All of them are of the first plane. Writing to a string does not fail.
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
