//! Strings of a line, without decoding.

use std::borrow::Cow;

/// The content of a JSON string: checked, not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a [u8],
}

impl<'a> Text<'a> {
    /// Wraps `raw`, which must be the bytes between the quotes of a string that the scan accepted.
    pub(super) fn new(raw: &'a [u8]) -> Self {
        Self { raw }
    }

    /// Returns the bytes between the quotes, with their escapes.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Returns whether the string is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Returns the text. A lone surrogate escape becomes U+FFFD.
    #[must_use]
    pub fn decode(&self) -> Cow<'a, str> {
        // The scan rejected invalid UTF-8, so this never replaces anything; `lossy` avoids a panic.
        let text = std::str::from_utf8(self.raw)
            .map_or_else(|_| String::from_utf8_lossy(self.raw), Cow::Borrowed);
        if memchr::memchr(b'\\', self.raw).is_none() {
            return text;
        }
        Cow::Owned(unescape(&text))
    }

    /// Returns the bytes of [`Self::decode`], without checking again that they are UTF-8.
    #[must_use]
    pub fn bytes(&self) -> Cow<'a, [u8]> {
        if memchr::memchr(b'\\', self.raw).is_none() {
            return Cow::Borrowed(self.raw);
        }
        Cow::Owned(self.decode().into_owned().into_bytes())
    }
}

/// Resolves the escapes in the content of a valid JSON string; lone surrogates become U+FFFD.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut high: Option<u32> = None;
    while let Some(c) = chars.next() {
        let unit = match c {
            '\\' => match chars.next() {
                Some('u') => chars
                    .by_ref()
                    .take(4)
                    .fold(0, |unit, digit| unit * 16 + digit.to_digit(16).unwrap_or(0)),
                Some('b') => 0x08,
                Some('f') => 0x0C,
                Some('n') => 0x0A,
                Some('r') => 0x0D,
                Some('t') => 0x09,
                Some(other) => other as u32,
                None => break,
            },
            plain => plain as u32,
        };
        match (high.take(), unit) {
            (Some(first), 0xDC00..=0xDFFF) => {
                let scalar = 0x1_0000 + ((first - 0xD800) << 10) + (unit - 0xDC00);
                out.push(char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER));
                continue;
            }
            (Some(_), _) => out.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {}
        }
        match unit {
            0xD800..=0xDBFF => high = Some(unit),
            _ => out.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
    if high.is_some() {
        out.push(char::REPLACEMENT_CHARACTER);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_resolve_and_lone_surrogates_are_replaced() {
        let cases: [(&str, &str); 9] = [
            ("plain ✓", "plain ✓"),
            (r#"a\"b\\c\/d"#, "a\"b\\c/d"),
            (r"\b\f\n\r\t\u0041", "\u{8}\u{c}\n\r\tA"),
            (r"\ud83d\ude80", "🚀"),
            (r"\ud83d", "\u{FFFD}"),
            (r"\ude80x", "\u{FFFD}x"),
            (r"\ud83d\u0041", "\u{FFFD}A"),
            (r"\ud83d\ud83d\ude80", "\u{FFFD}🚀"),
            (r"\ud83dx", "\u{FFFD}x"),
        ];
        for (raw, expected) in cases {
            assert_eq!(Text::new(raw.as_bytes()).decode(), expected, "{raw}");
        }
    }
}
