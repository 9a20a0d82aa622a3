//! One JSON object, borrowed from a line: its members in order, every value kept as its text.
//!
//! Values are parsed on demand and never written back, so unknown fields, key order, numbers of any
//! size and escapes survive. A getter returns `None` when the field is absent, `null` or of another
//! type; it never fails.

mod read;

use std::borrow::Cow;
use std::fmt;

use memchr::memchr;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

/// The maximum number of elements of an array, or members of an object, that are read: 524,288.
///
/// A parsed list takes up to 16 times the space of its text, so without a limit one line could
/// exhaust the memory. Lists in a tool's input or result are not affected unless they are read:
/// they are kept as text.
pub const MAX_PARTS: usize = 1 << 19;

/// A decoded string: borrowed from the line unless it contains escapes.
pub type Str<'a> = Cow<'a, str>;

/// The six kinds of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number of any size.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// One JSON value, kept as its text in the line.
///
/// Serialises as exactly that text.
#[derive(Clone, Copy)]
pub struct Raw<'a>(
    // Invariant: exactly one JSON value, no white space around it.
    &'a str,
);

impl<'a> Raw<'a> {
    /// Wraps the text of one value, without white space around it.
    pub(crate) fn checked(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the text of the value, byte for byte.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.0
    }

    /// Returns the kind of the value.
    #[must_use]
    pub fn kind(self) -> JsonKind {
        match self.text().as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') => JsonKind::Null,
            _ => JsonKind::Number,
        }
    }

    /// Returns whether the value is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns the string; a lone surrogate in it reads as U+FFFD (see [`unescape`]).
    #[must_use]
    pub fn str(self) -> Option<Str<'a>> {
        self.text()
            .strip_prefix('"')?
            .strip_suffix('"')
            .map(unescape)
    }

    /// Returns the boolean.
    #[must_use]
    pub fn bool(self) -> Option<bool> {
        match self.text() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Returns the number if it is an integer in range; `1.0` and `1e3` do not count as integers.
    #[must_use]
    pub fn u64(self) -> Option<u64> {
        self.text().parse().ok()
    }

    /// Returns the number if it is an integer in range; `1.0` and `1e3` do not count as integers.
    #[must_use]
    pub fn i64(self) -> Option<i64> {
        self.text().parse().ok()
    }

    /// Returns the nearest `f64`; `None` when the number is out of range, as `1e999` is.
    #[must_use]
    pub fn f64(self) -> Option<f64> {
        self.text()
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
    }
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|value| Self(value.get()))
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(self.0).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

/// One JSON object: its members in the order of the text, duplicates included.
///
/// ```
/// use transcript_format::object::Object;
///
/// let object = Object::parse(r#"{"pre_tokens": 7, "big": 1e999, "a": 1, "a": 2}"#)?;
/// assert_eq!(object.u64("preTokens"), Some(7));
/// assert_eq!(object.u64("a"), Some(2));
/// assert_eq!(object.f64("big"), None);
/// assert_eq!(object.get("big").map(|raw| raw.text()), Some("1e999"));
/// # Ok::<(), transcript_format::object::ParseObjectError>(())
/// ```
#[derive(Clone)]
pub struct Object<'a> {
    raw: Raw<'a>,
    members: Vec<(Str<'a>, Raw<'a>)>,
}

impl<'a> Object<'a> {
    /// Wraps the members of an object.
    pub(crate) fn checked(raw: Raw<'a>, members: Vec<(Str<'a>, Raw<'a>)>) -> Self {
        Self { raw, members }
    }

    /// Returns the object as a raw value.
    #[must_use]
    pub fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// Returns the text of the object, byte for byte.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.raw.text()
    }

    /// Returns the text of the object with `key` set to `value`, which is JSON. The other bytes are
    /// unchanged; a new key is appended.
    #[must_use]
    pub fn with(&self, key: &str, value: &str) -> String {
        let text = self.text();
        let Some(old) = self.get(key) else {
            let open = text.strip_suffix('}').unwrap_or(text).trim_ascii_end();
            let comma = if self.members().is_empty() { "" } else { "," };
            // Serializing a string never fails.
            let key = serde_json::to_string(key).unwrap_or_default();
            return format!("{open}{comma}{key}:{value}}}");
        };
        // The value is a slice of the text, so the distance of the pointers is its offset.
        let start = old.text().as_ptr() as usize - text.as_ptr() as usize;
        let end = start + old.text().len();
        [&text[..start], value, &text[end..]].concat()
    }

    /// Returns the members in the order of the text; duplicate keys are listed each time.
    #[must_use]
    pub fn members(&self) -> &[(Str<'a>, Raw<'a>)] {
        &self.members
    }

    /// Returns the value of exactly this key; the last one if the key is repeated.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Raw<'a>> {
        self.find(|name| name == key)
    }

    /// Like [`Self::get`], but falls back to the snake_case form of the key.
    ///
    /// Lines on disk have `compactMetadata`, wire messages have `compact_metadata`.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<Raw<'a>> {
        let snake = || self.find(|name| is_snake_case_of(key, name));
        let is_camel = || key.bytes().any(|byte| byte.is_ascii_uppercase());
        self.get(key).or_else(|| is_camel().then(snake).flatten())
    }

    /// Returns the field `key` (see [`Self::field`]) as a `T`; `None` when it has another type.
    #[must_use]
    pub fn read<T: FromRaw<'a>>(&self, key: &str) -> Option<T> {
        self.field(key).and_then(T::from_raw)
    }

    /// Returns the field `key` as a string.
    #[must_use]
    pub fn str(&self, key: &str) -> Option<Str<'a>> {
        self.read(key)
    }

    /// Returns the field `key` as a boolean.
    #[must_use]
    pub fn bool(&self, key: &str) -> Option<bool> {
        self.read(key)
    }

    /// Returns the field `key` as a whole number.
    #[must_use]
    pub fn u64(&self, key: &str) -> Option<u64> {
        self.read(key)
    }

    /// Returns the field `key` as a whole number with sign.
    #[must_use]
    pub fn i64(&self, key: &str) -> Option<i64> {
        self.read(key)
    }

    /// Returns the field `key` as a number.
    #[must_use]
    pub fn f64(&self, key: &str) -> Option<f64> {
        self.read(key)
    }

    /// Returns the field `key` as an object.
    #[must_use]
    pub fn object(&self, key: &str) -> Option<Object<'a>> {
        self.read(key)
    }

    /// Returns the field `key` as the elements of an array.
    #[must_use]
    pub fn array(&self, key: &str) -> Option<Vec<Raw<'a>>> {
        self.read(key)
    }

    /// Returns `key` when its field is present, not `null`, and not a `T`.
    pub(crate) fn misfit<T: FromRaw<'a>>(&self, key: &'static str) -> Option<&'static str> {
        let raw = self.field(key).filter(|raw| !raw.is_null())?;
        T::from_raw(raw).is_none().then_some(key)
    }

    fn find(&self, is_key: impl Fn(&str) -> bool) -> Option<Raw<'a>> {
        self.members
            .iter()
            .rev()
            .find(|(name, _)| is_key(name))
            .map(|&(_, raw)| raw)
    }
}

impl fmt::Debug for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

/// A type that a raw value can be read as.
pub trait FromRaw<'a>: Sized {
    /// Returns `raw` as this type; `None` when it has another type.
    fn from_raw(raw: Raw<'a>) -> Option<Self>;
}

impl<'a> FromRaw<'a> for Raw<'a> {
    fn from_raw(raw: Raw<'a>) -> Option<Self> {
        Some(raw)
    }
}

impl<'a> FromRaw<'a> for Object<'a> {
    fn from_raw(raw: Raw<'a>) -> Option<Self> {
        raw.object()
    }
}

impl<'a> FromRaw<'a> for Str<'a> {
    fn from_raw(raw: Raw<'a>) -> Option<Self> {
        raw.str()
    }
}

impl FromRaw<'_> for bool {
    fn from_raw(raw: Raw<'_>) -> Option<Self> {
        raw.bool()
    }
}

impl FromRaw<'_> for u64 {
    fn from_raw(raw: Raw<'_>) -> Option<Self> {
        raw.u64()
    }
}

impl FromRaw<'_> for i64 {
    fn from_raw(raw: Raw<'_>) -> Option<Self> {
        raw.i64()
    }
}

impl FromRaw<'_> for f64 {
    fn from_raw(raw: Raw<'_>) -> Option<Self> {
        raw.f64()
    }
}

/// A list is all or nothing: one element of another type makes the whole field `None`.
impl<'a, T: FromRaw<'a>> FromRaw<'a> for Vec<T> {
    fn from_raw(raw: Raw<'a>) -> Option<Self> {
        raw.array()?.into_iter().map(T::from_raw).collect()
    }
}

/// The reason why a text is not a JSON object. Reports the position, never the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseObjectError {
    /// The text is not exactly one JSON value.
    #[error("not one JSON object (column {column})")]
    Syntax {
        /// The 1-based line of the text, 1 unless the text holds line feeds.
        line: usize,
        /// The 1-based byte of that line.
        column: usize,
    },
    /// The text is a JSON value of another kind.
    #[error("a JSON {0:?} where an object is expected")]
    Kind(JsonKind),
    /// The object has more than [`MAX_PARTS`] members.
    #[error("an object of more than {MAX_PARTS} members")]
    TooMany,
}

impl ParseObjectError {
    fn syntax(error: &serde_json::Error) -> Self {
        Self::Syntax {
            line: error.line(),
            column: error.column(),
        }
    }
}

/// Resolves the escapes of `body`, the text between the quotes of a JSON string.
///
/// A surrogate escape without its partner does not encode a character: JavaScript tools write such
/// strings, JSON libraries reject them. It is read as U+FFFD; the line itself is not changed.
///
/// ```
/// # use transcript_format::object::unescape;
/// assert_eq!(unescape(r"\ud83d\ude42 \ud83d!"), "\u{1f642} \u{fffd}!");
/// ```
#[must_use]
#[inline]
pub fn unescape(body: &str) -> Str<'_> {
    // Most are names of members, which are too short for a search to be worth its start.
    if body.len() <= MAX_SHORT && !has_backslash(body.as_bytes()) {
        return Cow::Borrowed(body);
    }
    resolve_escapes(body)
}

fn resolve_escapes(body: &str) -> Str<'_> {
    let Some(mut at) = memchr(b'\\', body.as_bytes()) else {
        return Cow::Borrowed(body);
    };
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    loop {
        out.push_str(&rest[..at]);
        let (character, len) = read_escape(&rest[at..]);
        out.push(character);
        rest = &rest[at + len..];
        match memchr(b'\\', rest.as_bytes()) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The maximum length in bytes of a text that [`has_backslash`] looks through faster than `memchr`.
const MAX_SHORT: usize = 32;

/// Returns whether `bytes` holds a backslash, eight bytes at a time.
#[inline]
fn has_backslash(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let in_word = |word: u64| {
        // A byte that is a backslash is zero after this; the rest finds a zero byte.
        let word = word ^ (ONES * u64::from(b'\\'));
        word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
    };
    let (words, rest) = bytes.as_chunks();
    if words.iter().any(|word| in_word(u64::from_le_bytes(*word))) {
        return true;
    }
    match (rest.first_chunk(), rest.last_chunk()) {
        // Halves of a word, which may overlap.
        (Some(first), Some(last)) => {
            let high = u64::from(u32::from_le_bytes(*first)) << 32;
            in_word(high | u64::from(u32::from_le_bytes(*last)))
        }
        _ => rest.contains(&b'\\'),
    }
}

/// Returns the character of the escape at the start of `text`, and its length in bytes.
fn read_escape(text: &str) -> (char, usize) {
    let simple = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(&byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
        _ => return read_unicode_escape(text),
    };
    (simple, 2)
}

fn read_unicode_escape(text: &str) -> (char, usize) {
    // Valid JSON has four hexadecimal digits here; otherwise only the backslash is replaced.
    let Some(unit) = read_unit(text) else {
        return (char::REPLACEMENT_CHARACTER, 1);
    };
    if let Some(low) = unit_at(text, 6)
        && let Some(Ok(character)) = char::decode_utf16([unit, low]).next()
        && character.len_utf16() == 2
    {
        return (character, 12);
    }
    (
        char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
        6,
    )
}

/// Returns the UTF-16 code unit of the `\uXXXX` at `at` in `text`.
#[must_use]
pub fn unit_at(text: &str, at: usize) -> Option<u16> {
    text.get(at..).and_then(read_unit)
}

/// Returns the UTF-16 code unit of the `\uXXXX` at the start of `text`.
fn read_unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// Returns whether `name` is the snake_case form of `camel`, as `tool_use_id` is of `toolUseID`.
pub(crate) fn is_snake_case_of(camel: &str, name: &str) -> bool {
    let mut name = name.bytes();
    let mut after_upper = true;
    camel.bytes().all(|byte| {
        let starts_word = byte.is_ascii_uppercase() && !after_upper;
        after_upper = byte.is_ascii_uppercase();
        (!starts_word || name.next() == Some(b'_'))
            && name.next() == Some(byte.to_ascii_lowercase())
    }) && name.next().is_none()
}
