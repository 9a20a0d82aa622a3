//! Owned JSON for new lines: the counterparts of [`Raw`] and [`Object`].
//!
//! The text of these values can be written into a line as it is. It contains neither the line ends
//! of JSON nor those at which some readers split lines (U+0085, U+2028, U+2029), and no surrogate
//! escape without its partner, which strict parsers reject.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;

use crate::ids::Uuid;
use crate::object::{Object, Raw, unit_at};

/// One JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Json(
    // Invariant: one JSON value as described for the module, no white space around it.
    String,
);

impl Json {
    /// `null`
    pub fn null() -> Self {
        Self("null".to_owned())
    }

    /// Returns `value` as a string; for ids, which may be of several types.
    pub fn id(value: impl fmt::Display) -> Self {
        value.to_string().as_str().into()
    }

    /// Returns the values as an array.
    pub fn array(values: impl IntoIterator<Item = Self>) -> Self {
        let mut text = "[".to_owned();
        for value in values {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&value.0);
        }
        text.push(']');
        Self(text)
    }

    /// Returns the text of the value.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.0 == "null"
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        // Serializing a string never fails: it has no keys to reject and no values out of range.
        let quoted = serde_json::to_string(text).unwrap_or_default();
        Self(match without_line_ends(&quoted) {
            Cow::Borrowed(_) => quoted,
            Cow::Owned(text) => text,
        })
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self(value.to_string())
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self(value.to_string())
    }
}

/// NaN and infinite numbers become `null`, as in JavaScript.
impl From<f64> for Json {
    fn from(value: f64) -> Self {
        Self(serde_json::to_string(&value).unwrap_or_else(|_| "null".to_owned()))
    }
}

impl From<Uuid> for Json {
    fn from(uuid: Uuid) -> Self {
        Self::id(uuid)
    }
}

impl From<Raw<'_>> for Json {
    fn from(raw: Raw<'_>) -> Self {
        let whole = with_whole_surrogates(raw.text());
        Self(without_line_ends(&whole).into_owned())
    }
}

impl From<ObjectBuf> for Json {
    fn from(object: ObjectBuf) -> Self {
        Self(object.text())
    }
}

/// `None` becomes `null`.
impl<T: Into<Self>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(Self::null, Into::into)
    }
}

/// One JSON object: members in order, each key once.
///
/// ```
/// use transcript_format::json::ObjectBuf;
///
/// let mut object = ObjectBuf::new().with("b", "two\n").with("a", 1u64);
/// object.set("b", true);
/// assert_eq!(object.text(), r#"{"b":true,"a":1}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ObjectBuf(Vec<(Cow<'static, str>, Json)>);

impl ObjectBuf {
    /// Returns the empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key`; a new key is appended. Takes time linear in the number of members.
    pub fn set(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Json>) {
        let (key, value) = (key.into(), value.into());
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// Like [`Self::set`].
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Json>) -> Self {
        self.set(key, value);
        self
    }

    /// Like [`Self::with`] if there is a value; otherwise returns the object unchanged.
    pub fn with_some(
        self,
        key: impl Into<Cow<'static, str>>,
        value: Option<impl Into<Json>>,
    ) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Returns the value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Returns the members in order.
    pub fn members(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// Returns the text of the object.
    #[must_use]
    pub fn text(&self) -> String {
        object_text(self.members())
    }
}

/// Collects members whose keys are all different, in linear time.
impl FromIterator<(String, Json)> for ObjectBuf {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Self {
        let members = members.into_iter();
        Self(members.map(|(key, value)| (key.into(), value)).collect())
    }
}

/// Of a repeated key, keeps the last value at the position of the first.
impl From<&Object<'_>> for ObjectBuf {
    fn from(object: &Object<'_>) -> Self {
        let mut new = Self::new();
        for (key, value) in object.members() {
            new.set(key.clone().into_owned(), *value);
        }
        new
    }
}

/// Returns the text of an object with these members.
pub(crate) fn object_text<'a>(members: impl IntoIterator<Item = (&'a str, &'a Json)>) -> String {
    let mut text = "{".to_owned();
    for (key, value) in members {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&Json::from(key).0);
        text.push(':');
        text.push_str(&value.0);
    }
    text.push('}');
    text
}

/// Replaces the line ends in JSON: those between tokens by spaces, those in strings by escapes. Works on parts of a text, too.
#[must_use]
pub fn without_line_ends(json: &str) -> Cow<'_, str> {
    const ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
    if !json.contains(ENDS) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    let mut rest = json;
    while let Some(at) = rest.find(ENDS) {
        let (before, after) = rest.split_at(at);
        let mut after = after.chars();
        text.push_str(before);
        text.push_str(match after.next() {
            Some('\u{85}') => "\\u0085",
            Some('\u{2028}') => "\\u2028",
            Some('\u{2029}') => "\\u2029",
            // Valid JSON strings contain no other line ends.
            _ => " ",
        });
        rest = after.as_str();
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Replaces surrogate escapes without their partner in JSON by the escape of U+FFFD, which is as long. Works on parts of a text
/// that do not end within an escape or between two partners, too.
#[must_use]
pub fn with_whole_surrogates(json: &str) -> Cow<'_, str> {
    let mut text = String::new();
    // `taken`: JSON up to here is in `text`. `seen`: JSON up to here has been examined.
    let (mut taken, mut seen) = (0, 0);
    while let Some(at) = memchr(b'\\', &json.as_bytes()[seen..]) {
        let at = seen + at;
        seen = match unit_at(json, at) {
            None => at + 2,
            Some(0xD800..=0xDBFF) if matches!(unit_at(json, at + 6), Some(0xDC00..=0xDFFF)) => {
                at + 12
            }
            Some(0xD800..=0xDFFF) => {
                text.push_str(&json[taken..at]);
                text.push_str("\\ufffd");
                taken = at + 6;
                taken
            }
            Some(_) => at + 6,
        };
    }
    if taken == 0 {
        return Cow::Borrowed(json);
    }
    text.push_str(&json[taken..]);
    Cow::Owned(text)
}
