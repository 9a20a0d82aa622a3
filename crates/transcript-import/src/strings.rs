//! Strings and lists of an object.

use std::borrow::Cow;

use compact_str::CompactString;
use transcript_format::object::{Object, Raw};

/// Returns the field `key` as an owned string.
pub(crate) fn string(object: &Object<'_>, key: &str) -> Option<String> {
    object.str(key).map(Cow::into_owned)
}

/// Returns the field `key` as a string that takes little memory.
pub(crate) fn small(object: &Object<'_>, key: &str) -> Option<CompactString> {
    object.str(key).map(CompactString::from)
}

/// Returns the body of a string, with its escapes; `None` for another value.
pub(crate) fn body_of(value: Raw<'_>) -> Option<&str> {
    value.text().strip_prefix('"')?.strip_suffix('"')
}

/// Returns the objects of a list.
pub(crate) fn objects<'a>(list: Option<Raw<'a>>) -> impl Iterator<Item = Object<'a>> + use<'a> {
    let elements = list.and_then(Raw::array).unwrap_or_default();
    elements.into_iter().filter_map(Raw::object)
}
