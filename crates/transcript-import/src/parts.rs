//! Contents made of parts, as the Gemini API has them: Gemini CLI and Qwen Code store them.

use std::borrow::Cow;

use transcript_format::object::{Object, Raw};

use crate::content::{Body, Image, ImageData, NewContent};
use crate::escapes::decoded_start;
use crate::lines::Record;
use crate::node::NodeKind;
use crate::strings::{body_of, objects, small};
use crate::text::Text;
use crate::value::image_in;

/// A node that parts make, and where it lies.
pub(crate) struct Made<'a> {
    pub(crate) kind: NodeKind,
    pub(crate) content: NewContent,
    pub(crate) place: Raw<'a>,
    /// The body of the string that is its text, if it is one.
    pub(crate) body: Option<&'a str>,
}

impl Made<'_> {
    /// Returns the beginning of its text.
    pub(crate) fn start(&self) -> Cow<'_, str> {
        self.body.map(decoded_start).unwrap_or_default()
    }
}

/// Returns the nodes of a content of a record: a string, a part, or a list of parts.
pub(crate) fn nodes_of<'a>(
    record: &Record<'_>,
    content: Raw<'a>,
    is_of_model: bool,
) -> Vec<Made<'a>> {
    let text_kind = if is_of_model {
        NodeKind::Assistant
    } else {
        NodeKind::User
    };
    if let Some(body) = body_of(content) {
        return vec![Made {
            kind: text_kind,
            content: NewContent::text(record.text_of_body(body)),
            place: content,
            body: Some(body),
        }];
    }
    if let Some(part) = content.object() {
        return vec![node_of(record, &part, text_kind)];
    }
    let parts = objects(Some(content));
    parts
        .map(|part| node_of(record, &part, text_kind))
        .collect()
}

fn node_of<'a>(record: &Record<'_>, part: &Object<'a>, text_kind: NodeKind) -> Made<'a> {
    let made = |kind, content| Made {
        kind,
        content,
        place: part.raw(),
        body: None,
    };
    if let Some(call) = part.object("functionCall") {
        return made(NodeKind::ToolCall, call_of(record, &call, "args"));
    }
    if let Some(response) = part.object("functionResponse") {
        return made(NodeKind::ToolResult, result_of(record, &response));
    }
    let body = part.get("text").and_then(body_of);
    let text = body.map(|body| record.text_of_body(body));
    let content = NewContent {
        body: Body::Text(text.unwrap_or_else(|| Text::held(""))),
        images: image_of(record, part).into_iter().collect(),
        ..NewContent::default()
    };
    let kind = match part.bool("thought") {
        Some(true) => NodeKind::Reasoning,
        _ => text_kind,
    };
    Made {
        body,
        ..made(kind, content)
    }
}

fn image_of(record: &Record<'_>, part: &Object<'_>) -> Option<Image> {
    if let Some(data) = part.get("inlineData") {
        return Some(match data.object() {
            Some(data) => image_in(record, &data),
            None => Image {
                media_type: None,
                data: ImageData::Unknown,
            },
        });
    }
    let file = part.get("fileData")?.object();
    let uri = file.as_ref().and_then(|file| record.text(file, "fileUri"));
    Some(Image {
        media_type: file.and_then(|file| small(&file, "mimeType")),
        data: uri.map_or(ImageData::Unknown, ImageData::Url),
    })
}

/// Returns a call: its id, its name, and its input in the field `input`.
pub(crate) fn call_of(record: &Record<'_>, call: &Object<'_>, input: &str) -> NewContent {
    NewContent {
        name: small(call, "name"),
        call_id: small(call, "id"),
        body: Body::Input(record.input_of(call.get(input))),
        ..NewContent::default()
    }
}

/// Returns a result: text under `output` or `error`, or whatever the tool returned.
fn result_of(record: &Record<'_>, response: &Object<'_>) -> NewContent {
    let result = response.object("response");
    let field = |key| result.as_ref().and_then(|result| result.get(key));
    let error = field("error");
    let value = field("output")
        .or(error)
        .or_else(|| response.get("response"));
    let output = value.map(|value| record.text_or_json_of(value));
    NewContent {
        name: small(response, "name"),
        call_id: small(response, "id"),
        body: Body::Output(output.unwrap_or_else(|| Text::held(""))),
        is_error: error.is_some() && field("output").is_none(),
        ..NewContent::default()
    }
}
