//! Characters with an effect on the text around them.

/// Returns whether the character changes the direction of text (CVE-2021-42574).
#[must_use]
pub fn is_bidi(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
