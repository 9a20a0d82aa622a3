//! Contents that several dialects have: texts in parts, numbers of tokens.

use std::borrow::Cow;

use transcript_format::object::{Object, Raw};

use crate::conversation::Content;

/// Returns the field `key` as an owned string.
pub(crate) fn string(object: &Object<'_>, key: &str) -> Option<String> {
    object.str(key).map(Cow::into_owned)
}

/// Returns the objects of a list.
pub(crate) fn objects<'a>(list: Option<Raw<'a>>) -> impl Iterator<Item = Object<'a>> + use<'a> {
    let elements = list.and_then(Raw::array).unwrap_or_default();
    elements.into_iter().filter_map(Raw::object)
}

/// Returns the text of a content, which is a string or a list of parts, and the number of its images. `is_image` knows the
/// parts that are images.
pub(crate) fn text_of(content: Raw<'_>, is_image: impl Fn(&Object<'_>) -> bool) -> Content {
    if let Some(text) = content.str() {
        return Content::text(text);
    }
    let mut found = Content::default();
    let mut texts = Vec::new();
    for part in objects(Some(content)) {
        if is_image(&part) {
            found.images += 1;
        } else {
            texts.extend(string(&part, "text"));
        }
    }
    found.text = Some(texts.join("\n"));
    found
}
