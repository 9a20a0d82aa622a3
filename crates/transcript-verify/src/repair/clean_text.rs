//! Texts that make every request fail.

use memchr::memmem;
use transcript_format::object::unit_at;

/// JSON text without escapes that a provider refuses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CleanText {
    pub(super) text: String,
    /// Whether half of a surrogate pair was replaced.
    pub(super) had_surrogate: bool,
    /// Whether a NUL was replaced.
    pub(super) had_nul: bool,
}

/// Replaces `\u0000` and escaped surrogates without their partner by `\ufffd`, as the client reads
/// the latter (FILE-3). Returns `None` when the JSON `text` has none.
pub(super) fn clean_text(text: &str) -> Option<CleanText> {
    let mut clean = CleanText {
        text: String::new(),
        had_surrogate: false,
        had_nul: false,
    };
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memmem::find(&text.as_bytes()[at..], b"\\") {
        at += found;
        let Some(unit) = unit_at(text, at) else {
            // Another escape: what follows the backslash does not start one.
            at += 2;
            if !text.is_char_boundary(at) {
                break;
            }
            continue;
        };
        let is_pair = (0xD800..0xDC00).contains(&unit)
            && unit_at(text, at + 6).is_some_and(|low| (0xDC00..0xE000).contains(&low));
        if is_pair {
            at += 12;
            continue;
        }
        let is_surrogate = (0xD800..0xE000).contains(&unit);
        if is_surrogate || unit == 0 {
            clean.had_surrogate |= is_surrogate;
            clean.had_nul |= unit == 0;
            clean.text.push_str(&text[copied..at]);
            clean.text.push_str("\\ufffd");
            copied = at + 6;
        }
        at += 6;
    }
    if copied == 0 {
        return None;
    }
    clean.text.push_str(&text[copied..]);
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escapes_that_are_refused_are_replaced() {
        for same in [
            r#"{"a":"plain"}"#,
            r#"{"a":"\ud83d\ude00 é \n"}"#,
            r#"{"a":"a path: \\u0000 and \\ud800"}"#,
            r#"{"a":"\\"}"#,
            "{\"a\":\"\\é\"}",
            "\\",
        ] {
            assert_eq!(clean_text(same), None, "{same}");
        }
        let cleaned = |text| {
            let clean = clean_text(text).unwrap();
            (clean.text, clean.had_surrogate, clean.had_nul)
        };
        assert_eq!(
            cleaned(r#"{"a":"\ud83d\u2026\\\u0000"}"#),
            (r#"{"a":"\ufffd\u2026\\\ufffd"}"#.to_owned(), true, true)
        );
        assert_eq!(cleaned(r#""\uDE00\uD83D""#).0, r#""\ufffd\ufffd""#);
        assert_eq!(
            cleaned(r#""\uD83D\uD83D\uDE00""#).0,
            r#""\ufffd\uD83D\uDE00""#
        );
    }
}
