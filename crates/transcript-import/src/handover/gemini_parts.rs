//! Parts of messages in the form of the Gemini API: Gemini CLI and Qwen Code store them.

use transcript_format::json::{Json, ObjectBuf};

use super::head::Head;
use super::output::{Output, input_object};
use super::rules::prompt_text;
use super::source_item::{Image, SourceItem};

/// Returns the parts of a prompt: its text, if it has one, and its images.
pub(super) fn prompt_parts(out: &Output<'_>, item: SourceItem) -> Vec<Json> {
    let images: Vec<Json> = out.images(&item).map(image_part).collect();
    let text = prompt_text(item, out.rules);
    let text = (!text.is_empty()).then(|| text_part(&text));
    text.into_iter().chain(images).collect()
}

/// Returns the parts of a result: its text, and its images beside it.
pub(super) fn result_parts(out: &Output<'_>, head: &Head, item: &SourceItem) -> Vec<Json> {
    let images = out.images(item).map(image_part);
    [response_part(head, item)]
        .into_iter()
        .chain(images)
        .collect()
}

pub(super) fn text_part(text: &str) -> Json {
    ObjectBuf::new().with("text", text).into()
}

fn image_part(image: &Image) -> Json {
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
fn response_part(head: &Head, item: &SourceItem) -> Json {
    let key = if item.is_error { "error" } else { "output" };
    let response = ObjectBuf::new()
        .with("id", &*head.call_id)
        .with("name", &*head.name)
        .with("response", ObjectBuf::new().with(key, &*item.output));
    ObjectBuf::new().with("functionResponse", response).into()
}
