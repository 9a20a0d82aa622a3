//! Makes text from a transcript safe to show on a terminal.
//!
//! Every print path for people goes through [`escape`]: control characters could move the cursor,
//! set the clipboard or forge a link, and bidirectional marks reorder what is read.

use std::borrow::Cow;

/// Returns `text` with every character in a visible form that a terminal or a reader could be
/// fooled by. Newlines and tabs stay.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\u{1b}' => out.push_str("<ESC>"),
            c if is_unsafe(c) => out.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// [`escape`] for text that must stay on one line: newlines and tabs become spaces.
pub(crate) fn one_line(text: &str) -> String {
    escape(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn is_unsafe(c: char) -> bool {
    let is_control = c.is_control() && c != '\n' && c != '\t';
    is_control || is_bidi(c) || is_invisible(c)
}

/// Characters that change the direction of text (CVE-2021-42574).
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Characters without width that can hide text. The joiner U+200D stays: emoji are made with it.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{200B}' | '\u{200C}' | '\u{2060}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_through() {
        let hostile: String = ('\0'..='\u{2100}')
            .chain('\u{E0000}'..='\u{E0080}')
            .collect();
        let shown = escape(&hostile);
        let bad = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_bidi(c);
        assert!(!shown.chars().any(bad));
        assert!(
            !shown
                .bytes()
                .any(|byte| byte < 0x20 && byte != b'\n' && byte != b'\t')
        );
    }

    #[test]
    fn control_and_direction_marks_are_shown() {
        assert_eq!(
            escape("\u{1b}[31mred\r\u{9b}\u{202e}x\n\t✓"),
            "<ESC>[31mred<U+000D><U+009B><U+202E>x\n\t✓"
        );
        assert_eq!(escape("plain"), "plain");
        assert_eq!(one_line(" a\n\tb\u{7}"), "a b<U+0007>");
    }
}
