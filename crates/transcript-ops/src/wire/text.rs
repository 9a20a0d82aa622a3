//! JSON text: parts that are copied, and text that cannot control the terminal that shows it.
//!
//! JSON escapes C0, but not DEL, C1 and bidirectional marks, which a terminal interprets. Such
//! characters only occur in strings, where the escape `\u009b` has the same meaning.

use std::borrow::Cow;
use std::fmt::Write;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use transcript_format::object::Raw;
use transcript_format::unicode::is_bidi;

/// A value that is copied as it is, down to key order, escapes and the digits of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json<'a>(Cow<'a, str>);

impl<'a> Json<'a> {
    /// Wraps the text of one JSON value. Serializing fails if it is something else.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// Copies the text, so that the value outlives the file it is from.
    #[must_use]
    pub fn into_owned(self) -> Json<'static> {
        Json(Cow::Owned(self.0.into_owned()))
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl<'a> From<Raw<'a>> for Json<'a> {
    fn from(raw: Raw<'a>) -> Self {
        Self::new(raw.text())
    }
}

impl Serialize for Json<'_> {
    /// Parses the text. [`EntryRecord::write`](super::EntryRecord::write) and
    /// [`ResumeReport::write`](super::ResumeReport::write) copy it instead.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self::new(String::from(Box::<str>::from(raw))))
    }
}

/// Any value. A type that knows more about it says so where it is used.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Json<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}

/// Serializes a record as one line without a newline, [escaped] for terminals.
///
/// # Errors
/// When the record contains a [`Json`] that is not JSON, or a path that is not UTF-8.
pub fn text(record: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(record)?;
    Ok(match escaped(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    })
}

/// Escapes what terminals interpret in JSON: DEL, C1 and bidirectional marks. The value stays the
/// same.
#[must_use]
pub fn escaped(json: &str) -> Cow<'_, str> {
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

/// Splits the text of a record before and after the value of a field, which must be `value`. `name`
/// is the field as JSON with its colon.
///
/// The first match is the field: within a string the quotes would be escaped.
pub(super) fn around_value<'t>(text: &'t str, name: &str, value: &str) -> (&'t str, &'t str) {
    let start = memchr::memmem::find(text.as_bytes(), name.as_bytes());
    let start = start.map_or(text.len(), |at| at + name.len());
    let (head, tail) = text.split_at(start);
    (head, tail.strip_prefix(value).unwrap_or(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_value_stays_the_same() {
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

    #[test]
    fn the_value_of_a_field_is_found_behind_a_text_with_its_name() {
        let text = text(&("\"message\":null", 1)).unwrap();
        let record = format!(r#"{{"uuid":{text},"message":null,"via":[]}}"#);
        let (head, tail) = around_value(&record, "\"message\":", "null");
        assert_eq!(head, format!(r#"{{"uuid":{text},"message":"#));
        assert_eq!(tail, r#","via":[]}"#);
    }

    #[test]
    fn a_copied_value_keeps_order_digits_and_escapes() {
        let value = r#"{"b":1.0e400,"a":"\u0041","b":[]}"#;
        let json: Json<'_> = serde_json::from_str(value).unwrap();
        assert_eq!(json.text(), value);
        assert_eq!(text(&json).unwrap(), value);
        assert!(text(&Json::new("1,2")).is_err());
    }
}
