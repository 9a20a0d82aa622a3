//! One part of a message: what it says, and whether it goes to the model.

use std::borrow::Cow;

use transcript_format::object::{Object, Raw};

use super::texts::RowTexts;
use crate::content::{Body, Image, ImageData, Input, NewContent};
use crate::node::NodeKind;
use crate::strings::{body_of, objects, small, string};

/// A part of a message, as it is stored.
pub(super) struct Read {
    pub(super) kind: PartKind,
    pub(super) contents: Vec<(NodeKind, NewContent)>,
}

/// What a part of a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartKind {
    /// A text, a thought or an image.
    Said,
    /// A call of a tool, and its result if there is one.
    Tool {
        /// The result was cleared to make room.
        is_cleared: bool,
    },
    /// A response of the model begins.
    StepStart,
    /// A summary takes the place of what comes before it. The messages from `kept_from` on are kept.
    Compaction { kept_from: Option<Box<str>> },
    /// A task for a subagent, which the person gave.
    Subtask,
    /// A text that is shown and not sent.
    Ignored,
    /// Nothing of the conversation.
    Other,
    /// A type that is not known.
    Unknown,
}

/// Types of parts without a text of the conversation.
const OTHER_KINDS: [&str; 5] = ["agent", "patch", "retry", "snapshot", "step-finish"];

/// Returns the body of the text or of the result that a part shows, if it has one that is a string.
pub(super) fn shown_body<'a>(part: &Object<'a>) -> Option<&'a str> {
    match &*kind_of(part) {
        "text" | "reasoning" => part.get("text").and_then(body_of),
        "tool" => {
            let state = part.object("state")?;
            let status = state.str("status")?;
            let output = state.get("output").filter(|_| status == "completed");
            output.and_then(body_of)
        }
        _ => None,
    }
}

/// Returns the type of a part, as the name of what its row holds.
pub(super) fn known_name(kind: &str) -> Cow<'static, str> {
    let known = OTHER_KINDS.iter().chain(&["step-start"]);
    let known = known.copied().find(|known| *known == kind);
    known.map_or_else(|| Cow::Owned(kind.to_owned()), Cow::Borrowed)
}

/// Reads a part of a message of the model or of the person.
pub(super) fn read(part: &Object<'_>, is_of_model: bool, texts: &mut RowTexts) -> Read {
    let said = |kind, contents| Read { kind, contents };
    let mut content = |by, key| {
        let text = part.get(key).and_then(|value| texts.text(value));
        let text = text.filter(|text| !text.is_empty());
        text.map(|text| (by, NewContent::text(text)))
            .into_iter()
            .collect()
    };
    let by = if is_of_model {
        NodeKind::Assistant
    } else {
        NodeKind::User
    };
    match &*kind_of(part) {
        "text" => {
            let is_ignored = part.bool("ignored") == Some(true) && !is_of_model;
            let kind = if is_ignored {
                PartKind::Ignored
            } else {
                PartKind::Said
            };
            said(kind, content(by, "text"))
        }
        "reasoning" => said(PartKind::Said, content(NodeKind::Reasoning, "text")),
        "file" if is_media(part) => {
            let content = NewContent {
                images: [image_of(part, texts)].into(),
                ..NewContent::default()
            };
            said(PartKind::Said, vec![(by, content)])
        }
        // The texts of other files are parts of their own.
        "file" => said(PartKind::Other, Vec::new()),
        "tool" => tool(part, texts),
        "step-start" => said(PartKind::StepStart, Vec::new()),
        "compaction" => {
            let kept_from = string(part, "tail_start_id").map(Into::into);
            said(PartKind::Compaction { kept_from }, Vec::new())
        }
        "subtask" => said(PartKind::Subtask, content(NodeKind::User, "prompt")),
        kind if OTHER_KINDS.contains(&kind) => said(PartKind::Other, Vec::new()),
        _ => said(PartKind::Unknown, Vec::new()),
    }
}

/// Returns the type of a part. One that was torn off shows in the fields before it.
fn kind_of<'a>(part: &Object<'a>) -> Cow<'a, str> {
    let guessed = || match (part.get("state"), part.get("text")) {
        (Some(_), _) => "tool",
        (None, Some(_)) => "text",
        (None, None) => "",
    };
    part.str("type").unwrap_or_else(|| Cow::Borrowed(guessed()))
}

fn is_media(file: &Object<'_>) -> bool {
    let mime = file.str("mime").unwrap_or_default();
    mime.starts_with("image/") || mime == "application/pdf"
}

/// Returns an image or another file that is sent as it is. Its URL contains its bytes, or leads to them.
fn image_of(file: &Object<'_>, texts: &mut RowTexts) -> Image {
    let url = file.get("url").and_then(body_of).unwrap_or_default();
    let body = url
        .strip_prefix("data:")
        .and_then(|data| data.split_once(";base64,"));
    let data = match body {
        Some((_, bytes)) => ImageData::Base64(texts.body(bytes)),
        None if url.is_empty() => ImageData::Unknown,
        None => ImageData::Url(texts.body(url)),
    };
    Image {
        media_type: small(file, "mime"),
        data,
    }
}

/// Returns a call and its result.
fn tool(part: &Object<'_>, texts: &mut RowTexts) -> Read {
    let state = part.object("state");
    let field = |key| state.as_ref().and_then(|state| state.get(key));
    let name = small(part, "tool");
    let call_id = small(part, "callID");
    let input = field("input").map_or("null", Raw::text);
    let call = NewContent {
        name: name.clone(),
        call_id: call_id.clone(),
        body: Body::Input(Input::Json(texts.json(input))),
        ..NewContent::default()
    };
    let mut contents = vec![(NodeKind::ToolCall, call)];
    let status = field("status").and_then(|status| status.str());
    let output = match status.as_deref() {
        // A state that was torn may have lost its status.
        Some("completed") | None => field("output"),
        Some("error") => partial_output(state.as_ref()).or_else(|| field("error")),
        _ => None,
    };
    let time = field("time").and_then(|time| time.object());
    let cleared = time.and_then(|time| time.get("compacted"));
    if let Some(output) = output.and_then(|output| texts.text(output)) {
        let attachments = objects(field("attachments"));
        let result = NewContent {
            name,
            call_id,
            body: Body::Output(output),
            is_error: status.as_deref() == Some("error"),
            images: attachments
                .filter(is_media)
                .map(|file| image_of(&file, texts))
                .collect(),
        };
        contents.push((NodeKind::ToolResult, result));
    }
    Read {
        kind: PartKind::Tool {
            is_cleared: cleared.is_some_and(|time| !time.is_null()),
        },
        contents,
    }
}

/// Returns what an interrupted tool had printed: it is sent in place of the error.
fn partial_output<'a>(state: Option<&Object<'a>>) -> Option<Raw<'a>> {
    let metadata = state?.object("metadata")?;
    let is_interrupted = metadata.bool("interrupted") == Some(true);
    let output = metadata
        .get("output")
        .filter(|output| output.str().is_some());
    output.filter(|_| is_interrupted)
}
