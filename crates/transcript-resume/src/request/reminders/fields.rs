//! The fields of an attachment, as the client puts them into a text.

use transcript_format::kind::AttachmentKind;
use transcript_format::object::{JsonKind, Object, Raw, Str};

use super::escape;

/// An object; without any fields when there is none.
pub(super) struct Fields<'a>(Option<Object<'a>>);

impl<'a> Fields<'a> {
    pub(super) fn of(value: Option<Raw<'a>>) -> Self {
        Self(value.and_then(Raw::object))
    }

    pub(super) fn kind(&self) -> AttachmentKind {
        AttachmentKind::from_name(&self.str("type"))
    }

    /// Returns whether there is an object.
    pub(super) fn exist(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn raw(&self) -> Option<Raw<'a>> {
        self.0.as_ref().map(Object::raw)
    }

    pub(super) fn get(&self, key: &str) -> Option<Raw<'a>> {
        self.0.as_ref()?.get(key)
    }

    /// Returns a value other than `null`.
    pub(super) fn present(&self, key: &str) -> Option<Raw<'a>> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// Returns a field as text.
    pub(super) fn text(&self, key: &str) -> String {
        text(self.get(key))
    }

    /// Returns a field with a name or a path as text; a missing one is empty.
    pub(super) fn name(&self, key: &str) -> String {
        let value = self.present(key);
        value.map_or_else(String::new, |value| {
            escape::closing_tags(&text(Some(value)))
        })
    }

    /// Returns a string; empty when the field has none.
    pub(super) fn str(&self, key: &str) -> Str<'a> {
        self.get(key).and_then(Raw::str).unwrap_or_default()
    }

    /// Returns a string that is not empty.
    pub(super) fn filled(&self, key: &str) -> Option<Str<'a>> {
        Some(self.str(key)).filter(|text| !text.is_empty())
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.get(key).and_then(number)
    }

    /// Returns whether a field counts as true.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| match value.kind() {
            JsonKind::Null => false,
            JsonKind::Bool => value.bool() == Some(true),
            JsonKind::Number => number(value) != Some(0.0),
            JsonKind::String => value.text() != r#""""#,
            JsonKind::Array | JsonKind::Object => true,
        })
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.get(key).and_then(Raw::bool) == Some(true)
    }

    pub(super) fn list(&self, key: &str) -> Vec<Raw<'a>> {
        self.get(key).and_then(Raw::array).unwrap_or_default()
    }

    /// Returns the elements of a list, each with its fields.
    pub(super) fn objects(&self, key: &str) -> impl Iterator<Item = Self> {
        let list = self.list(key).into_iter();
        list.map(|value| Self::of(Some(value)))
    }

    /// Returns the strings of a list.
    pub(super) fn strings(&self, key: &str) -> Vec<Str<'a>> {
        self.list(key).into_iter().filter_map(Raw::str).collect()
    }

    pub(super) fn within(&self, key: &str) -> Self {
        Self::of(self.get(key))
    }
}

/// Returns a value as a template of JavaScript prints it.
pub(super) fn text(value: Option<Raw<'_>>) -> String {
    let Some(value) = value else {
        return "undefined".to_owned();
    };
    match value.kind() {
        JsonKind::Null | JsonKind::Bool => value.text().to_owned(),
        JsonKind::String => value.str().unwrap_or_default().into_owned(),
        JsonKind::Number => number(value).map_or_else(String::new, number_text),
        JsonKind::Object => "[object Object]".to_owned(),
        JsonKind::Array => {
            let elements = value.array().unwrap_or_default().into_iter();
            let texts = elements.map(|element| match element.kind() {
                JsonKind::Null => String::new(),
                _ => text(Some(element)),
            });
            texts.collect::<Vec<_>>().join(",")
        }
    }
}

/// Returns a number as a double, which is infinite when it is out of range.
pub(super) fn number(value: Raw<'_>) -> Option<f64> {
    let is_number = value.kind() == JsonKind::Number;
    is_number.then(|| value.text().parse().ok()).flatten()
}

/// Returns a double as JavaScript prints it: with up to 21 digits before the point, otherwise with an
/// exponent.
pub(super) fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if number < 0.0 { "-" } else { "" };
    if number.is_infinite() {
        return format!("{sign}Infinity");
    }
    let size = number.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return format!("{sign}{size}");
    }
    let shortest = format!("{sign}{size:e}");
    match shortest.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => shortest,
    }
}

/// Returns the length of a text in UTF-16 units.
pub(super) fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Returns the first `units` UTF-16 units of a text.
pub(super) fn first_units(text: &str, units: usize) -> String {
    let units: Vec<u16> = text.encode_utf16().take(units).collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_javascript_does() {
        for (number, expect) in [
            (0.0, "0"),
            (-0.0, "0"),
            (5.0, "5"),
            (-1.5, "-1.5"),
            (1e6, "1000000"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e21, "1e+21"),
            (1.25e300, "1.25e+300"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (-1.5e-9, "-1.5e-9"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(number_text(number), expect);
        }
    }

    #[test]
    fn values_are_printed_as_a_template_does() {
        for (json, expect) in [
            ("null", "null"),
            ("true", "true"),
            (r#""a\nb""#, "a\nb"),
            (r#"["a",null,1.0]"#, "a,,1"),
            ("{}", "[object Object]"),
        ] {
            assert_eq!(text(Raw::parse(json).ok()), expect);
        }
        assert_eq!(text(None), "undefined");
    }
}
