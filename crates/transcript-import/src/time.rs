//! Times of records, as they are written, in little memory.

use compact_str::CompactString;

/// The time of a record. Most agents write one of two forms, whose digits take a third of the memory of their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// The digits of a time in the form of [`PATTERN`], one after the other.
    Written(u64),
    /// A whole number in its shortest form.
    Number(i64),
    Other(Box<CompactString>),
}

/// The form of a time, with a 0 for each digit.
const PATTERN: &[u8; 24] = b"0000-00-00T00:00:00.000Z";

impl From<&str> for Time {
    fn from(text: &str) -> Self {
        let number = || {
            text.parse()
                .ok()
                .filter(|number: &i64| number.to_string() == text)
        };
        let written = digits_of(text.as_bytes()).map(Form::Written);
        let short = written.or_else(|| number().map(Form::Number));
        Self(short.unwrap_or_else(|| Form::Other(Box::new(text.into()))))
    }
}

impl Time {
    /// Returns it as it is written.
    #[must_use]
    pub fn text(&self) -> CompactString {
        match &self.0 {
            Form::Written(digits) => written(*digits),
            Form::Number(number) => CompactString::from(number.to_string()),
            Form::Other(text) => CompactString::clone(text),
        }
    }
}

/// Returns the digits of a time in the form of [`PATTERN`] as a number.
fn digits_of(text: &[u8]) -> Option<u64> {
    if text.len() != PATTERN.len() {
        return None;
    }
    text.iter()
        .zip(PATTERN)
        .try_fold(0, |number, (byte, form)| match form {
            b'0' if byte.is_ascii_digit() => Some(number * 10 + u64::from(byte - b'0')),
            _ => (byte == form).then_some(number),
        })
}

fn written(digits: u64) -> CompactString {
    let mut text = *PATTERN;
    let mut rest = digits;
    for byte in text.iter_mut().rev().filter(|byte| **byte == b'0') {
        *byte += (rest % 10) as u8;
        rest /= 10;
    }
    CompactString::from_utf8_lossy(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_as_it_was_written() {
        for text in [
            "2026-11-25T02:39:54.014Z",
            "9999-99-99T99:99:99.999Z",
            "0000-00-00T00:00:00.000Z",
            "2026-11-25T02:39:54.014z",
            "2026-11-25 02:39:54.014Z",
            "2026-11-25T02:39:54.01Z",
            "202a-11-25T02:39:54.014Z",
            "1795573283392",
            "-5",
            "+5",
            "05",
            "1.5",
            "",
            "t",
        ] {
            assert_eq!(Time::from(text).text(), text);
        }
        let is_short = |text| !matches!(Time::from(text).0, Form::Other(_));
        assert!(is_short("2026-11-25T02:39:54.014Z") && is_short("1795573283392"));
    }

    /// Memory grows with the number of records, so its size counts.
    #[test]
    fn a_time_is_small() {
        assert_eq!(size_of::<Option<Time>>(), 16);
    }
}
