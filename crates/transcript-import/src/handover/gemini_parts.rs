//! Parts of messages in the form of the Gemini API: Gemini CLI and Qwen Code store them.

use transcript_format::json::{Json, ObjectBuf};

use super::head::Head;
use super::output::input_object;
use super::source_item::{Image, SourceItem};

pub(super) fn text_part(text: &str) -> Json {
    ObjectBuf::new().with("text", text).into()
}

pub(super) fn image_part(image: &Image) -> Json {
    let data = ObjectBuf::new()
        .with("mimeType", &*image.media_type)
        .with("data", &*image.data);
    ObjectBuf::new().with("inlineData", data).into()
}

pub(super) fn call_part(head: &Head, item: &SourceItem) -> Json {
    let call = ObjectBuf::new()
        .with("id", &*head.call_id)
        .with("name", &*head.name)
        .with("args", input_object(item));
    ObjectBuf::new().with("functionCall", call).into()
}

/// Returns a result: its text stands under a key that says whether it reports a failure.
pub(super) fn response_part(head: &Head, item: &SourceItem) -> Json {
    let key = if item.is_error { "error" } else { "output" };
    let response = ObjectBuf::new()
        .with("id", &*head.call_id)
        .with("name", &*head.name)
        .with("response", ObjectBuf::new().with(key, &*item.output));
    ObjectBuf::new().with("functionResponse", response).into()
}
