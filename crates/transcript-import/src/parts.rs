//! Contents made of parts, as the Gemini API has them: Gemini CLI and Qwen Code store them.

use transcript_format::json::Json;
use transcript_format::object::{Object, Raw};

use crate::conversation::{Content, NodeKind};
use crate::value::{objects, string};

/// A node that parts make, and where it lies.
pub(crate) struct Made<'a> {
    pub(crate) kind: NodeKind,
    pub(crate) content: Content,
    pub(crate) place: Raw<'a>,
}

/// Returns the nodes of a content: a string, a part, or a list of parts.
pub(crate) fn nodes_of(content: Raw<'_>, is_of_model: bool) -> Vec<Made<'_>> {
    let text_kind = if is_of_model {
        NodeKind::Assistant
    } else {
        NodeKind::User
    };
    if let Some(text) = content.str() {
        return vec![Made {
            kind: text_kind,
            content: Content::text(text),
            place: content,
        }];
    }
    if let Some(part) = content.object() {
        return vec![node_of(&part, text_kind)];
    }
    let parts = objects(Some(content));
    parts.map(|part| node_of(&part, text_kind)).collect()
}

fn node_of<'a>(part: &Object<'a>, text_kind: NodeKind) -> Made<'a> {
    let made = |kind, content| Made {
        kind,
        content,
        place: part.raw(),
    };
    if let Some(call) = part.object("functionCall") {
        return made(NodeKind::ToolCall, call_of(&call, "args"));
    }
    if let Some(response) = part.object("functionResponse") {
        return made(NodeKind::ToolResult, result_of(&response));
    }
    let is_image = part.get("inlineData").is_some() || part.get("fileData").is_some();
    let content = Content {
        text: Some(string(part, "text").unwrap_or_default()),
        images: usize::from(is_image),
        ..Content::default()
    };
    if part.bool("thought") == Some(true) {
        return made(NodeKind::Reasoning, content);
    }
    made(text_kind, content)
}

/// Returns a call: its id, its name, and its input in the field `input`.
pub(crate) fn call_of(call: &Object<'_>, input: &str) -> Content {
    Content {
        name: string(call, "name"),
        call_id: string(call, "id"),
        input: Some(Json::from(call.get(input))),
        ..Content::default()
    }
}

/// Returns a result: text under `output` or `error`, or whatever the tool returned.
fn result_of(response: &Object<'_>) -> Content {
    let result = response.object("response");
    let field = |key| result.as_ref().and_then(|result| result.get(key));
    let error = field("error");
    let value = field("output")
        .or(error)
        .or_else(|| response.get("response"));
    let output = value.map(|value| match value.str() {
        Some(text) => text.into_owned(),
        None => value.text().to_owned(),
    });
    Content {
        name: string(response, "name"),
        call_id: string(response, "id"),
        output: Some(output.unwrap_or_default()),
        is_error: error.is_some() && field("output").is_none(),
        ..Content::default()
    }
}
