//! Contents that several dialects have: texts in parts, images.

use transcript_format::object::{Object, Raw};

use crate::content::{Body, Image, ImageData, NewContent};
use crate::lines::Record;
use crate::strings::{objects, small};
use crate::text::{Text, joined};

/// Returns the text and the images of a content of a record: a string, or a list of parts. `image_of` returns the image that a
/// part is.
pub(crate) fn text_of(
    record: &Record<'_>,
    content: Raw<'_>,
    image_of: impl Fn(&Record<'_>, &Object<'_>) -> Option<Image>,
) -> NewContent {
    if let Some(text) = record.text_of(content) {
        return NewContent::text(text);
    }
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in objects(Some(content)) {
        match image_of(record, &part) {
            Some(image) => images.push(image),
            None => texts.extend(record.text(&part, "text")),
        }
    }
    NewContent {
        body: Body::Text(one_or_joined(texts)),
        images,
        ..NewContent::default()
    }
}

/// Returns texts as one, a line each.
pub(crate) fn one_or_joined(mut texts: Vec<Text>) -> Text {
    match (texts.len(), texts.pop()) {
        (1, Some(text)) => text,
        (_, last) => {
            texts.extend(last);
            joined(&texts, "\n")
        }
    }
}

/// Returns an image of which a record has the bytes in Base64 in the field `data`.
pub(crate) fn image_in(record: &Record<'_>, part: &Object<'_>) -> Image {
    let data = record.text(part, "data").map(ImageData::Base64);
    Image {
        media_type: small(part, "mimeType"),
        data: data.unwrap_or(ImageData::Unknown),
    }
}
