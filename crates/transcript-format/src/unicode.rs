//! Characters with an effect on the text around them, and the form in which texts are compared.

use unicode_normalization::UnicodeNormalization;

/// Returns whether the character changes the direction of text (CVE-2021-42574).
#[must_use]
pub fn is_bidi(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Returns a text in the form in which a person who looks for it means it: in lower case, and with composed characters. macOS
/// decomposes names of files.
///
/// ```
/// use transcript_format::unicode::comparable;
///
/// assert!(comparable("cafe\u{301} CRÈME").contains(&comparable("Café")));
/// ```
#[must_use]
pub fn comparable(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.to_lowercase().nfc().collect()
    }
}
