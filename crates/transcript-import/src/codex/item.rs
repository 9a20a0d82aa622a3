//! The items of a rollout.

use std::io::BufReader;

use serde::de::IgnoredAny;
use transcript_format::object::{Object, Raw, Str, unescape};

use crate::content::{Body, Image, ImageData, Input, NewContent};
use crate::escapes::{CHUNK_LEN, DecodedReader, Fingerprint, decoded, decoded_start};
use crate::lines::Record;
use crate::node::NodeKind;
use crate::strings::{body_of, objects, small};
use crate::text::Text;
use crate::value::text_of;
use compact_str::CompactString;

/// An item as a node.
pub(super) struct Item {
    pub(super) kind: NodeKind,
    pub(super) content: NewContent,
    /// Identifies the text, without the tags around images: an event that shows the item has the same.
    pub(super) fingerprint: u64,
}

/// Beginnings of texts that Codex puts into user messages by itself. Newer versions say so in the item.
const CONTEXT_BEGINNINGS: [&str; 6] = [
    "<environment_context>",
    "<turn_aborted>",
    "<subagent_notification>",
    "# AGENTS.md",
    "<skill",
    "<user_instructions>",
];

impl Item {
    /// Reads an item; `None` when it is of an unknown type.
    pub(super) fn of(record: &Record<'_>, item: &Object<'_>) -> Option<Self> {
        Some(match &*item.str("type")? {
            "message" => message(record, item, item.get("content")?),
            "reasoning" => reasoning(record, item),
            "function_call" => call(item, function_name(item), arguments(record, item)),
            "custom_tool_call" => {
                let input = Input::Text(record.text(item, "input")?);
                call(item, small(item, "name"), input)
            }
            "local_shell_call" => {
                let input = record.input_of(item.get("action"));
                call(item, Some("local_shell".into()), input)
            }
            "function_call_output" | "custom_tool_call_output" => {
                output(record, item, item.get("output")?)
            }
            "tool_search_call" => {
                let input = record.input_of(item.get("arguments"));
                call(item, Some("tool_search".into()), input)
            }
            "tool_search_output" => output_of_search(record, item),
            // The provider runs these tools, so they have no result of their own, and the request gets none.
            "web_search_call" => {
                let input = record.input_of(item.get("action"));
                hosted(item, "web_search", input)
            }
            "image_generation_call" => image_generation(record, item),
            _ => return None,
        })
    }

    fn without_text(kind: NodeKind, content: NewContent) -> Self {
        Self {
            kind,
            content,
            fingerprint: 0,
        }
    }
}

fn message(record: &Record<'_>, item: &Object<'_>, content: Raw<'_>) -> Item {
    let bodies = bodies_of(content);
    let content = text_of(record, content, image_of);
    let kind = match item.str("role").as_deref() {
        Some("assistant") => NodeKind::Assistant,
        Some("user") if is_of_person(item, &bodies) => NodeKind::User,
        _ => NodeKind::Context,
    };
    let fingerprint = fingerprint_of(&bodies, !content.images.is_empty());
    Item {
        kind,
        content,
        fingerprint,
    }
}

/// Returns the bodies of the texts of a content, each of which is a line of its text.
fn bodies_of(content: Raw<'_>) -> Vec<&str> {
    if let Some(body) = body_of(content) {
        return vec![body];
    }
    let parts = objects(Some(content)).filter(|part| !is_image(part));
    let texts = parts.filter_map(|part| part.get("text").and_then(body_of));
    texts.collect()
}

/// Identifies the text of bodies. Codex puts tags around images, which the events do not have.
pub(super) fn fingerprint_of(bodies: &[&str], has_images: bool) -> u64 {
    let mut fingerprint = Fingerprint::default();
    if has_images {
        let text: Vec<Str<'_>> = bodies.iter().map(|body| unescape(body)).collect();
        let text = text.join("\n");
        let lines = text.split('\n');
        let lines = lines.filter(|line| !line.starts_with("<image ") && *line != "</image>");
        fingerprint.add(&lines.collect::<Vec<_>>().join("\n"));
        return fingerprint.finish();
    }
    for (number, body) in bodies.iter().enumerate() {
        if number > 0 {
            fingerprint.add("\n");
        }
        decoded(body).for_each(|chunk| fingerprint.add(&chunk));
    }
    fingerprint.finish()
}

/// Returns whether a person wrote a user message. Newer versions say of what kind its parts are.
fn is_of_person(message: &Object<'_>, bodies: &[&str]) -> bool {
    let details = message.object("internal_chat_message_metadata_passthrough");
    let kinds = details.and_then(|details| details.read::<Vec<Str<'_>>>("content_item_kinds"));
    let mut kinds = kinds.unwrap_or_default();
    kinds.retain(|kind| kind != "unknown");
    if kinds.is_empty() {
        let start = decoded_start(bodies.first().copied().unwrap_or_default());
        return !CONTEXT_BEGINNINGS
            .iter()
            .any(|beginning| start.starts_with(beginning));
    }
    let mut kinds = kinds.iter();
    kinds.any(|kind| kind.starts_with("user.") || kind == "shell.user_command")
}

fn reasoning(record: &Record<'_>, item: &Object<'_>) -> Item {
    let of = |key| {
        let content = item.get(key)?;
        let text = text_of(record, content, image_of).into_said()?;
        Some((text, bodies_of(content)))
    };
    let summary = of("summary").filter(|(text, _)| !text.is_empty());
    let (text, bodies) = summary
        .or_else(|| of("content"))
        .unwrap_or_else(|| (Text::held(""), Vec::new()));
    Item {
        kind: NodeKind::Reasoning,
        content: NewContent::text(text),
        fingerprint: fingerprint_of(&bodies, false),
    }
}

fn call(item: &Object<'_>, name: Option<CompactString>, input: Input) -> Item {
    let content = NewContent {
        name,
        call_id: small(item, "call_id").or_else(|| small(item, "id")),
        body: Body::Input(input),
        ..NewContent::default()
    };
    Item::without_text(NodeKind::ToolCall, content)
}

/// Returns the call of a tool that the provider runs. It has no id by which a result would answer it.
fn hosted(item: &Object<'_>, name: &str, input: Input) -> Item {
    let mut call = call(item, Some(name.into()), input);
    call.content.call_id = None;
    call
}

/// Returns the generation of an image, with the image.
fn image_generation(record: &Record<'_>, item: &Object<'_>) -> Item {
    let prompt = item.get("revised_prompt").and_then(body_of);
    let prompt = prompt.map_or_else(|| Text::held(""), |body| record.text_of_body(body));
    let mut call = hosted(item, "image_generation", Input::Text(prompt));
    if let Some(data) = item
        .get("result")
        .and_then(body_of)
        .filter(|data| !data.is_empty())
    {
        call.content.images = [Image {
            media_type: Some("image/png".into()),
            data: ImageData::Base64(record.text_of_body(data)),
        }]
        .into();
    }
    call
}

/// Returns the result of a search for tools: the descriptions of those that were found.
fn output_of_search(record: &Record<'_>, item: &Object<'_>) -> Item {
    let tools = item.get("tools").map(|tools| record.json_of(tools));
    let content = NewContent {
        body: Body::Output(tools.unwrap_or_else(|| Text::held("[]"))),
        name: Some("tool_search".into()),
        call_id: small(item, "call_id"),
        ..NewContent::default()
    };
    Item::without_text(NodeKind::ToolResult, content)
}

fn function_name(item: &Object<'_>) -> Option<CompactString> {
    let name = small(item, "name")?;
    Some(match item.str("namespace") {
        Some(namespace) => format!("{namespace}.{name}").into(),
        None => name,
    })
}

/// Returns the arguments of a function: the JSON that a string holds, or that string.
fn arguments(record: &Record<'_>, item: &Object<'_>) -> Input {
    let arguments = item.get("arguments");
    match arguments.and_then(body_of) {
        Some(body) if is_json(body) => Input::Json(record.text_of_body(body)),
        _ => record.input_of(arguments),
    }
}

/// Returns whether the text of the body of a string is a JSON value.
fn is_json(body: &str) -> bool {
    if body.len() <= CHUNK_LEN {
        return Raw::parse(&unescape(body)).is_ok();
    }
    let text = BufReader::new(DecodedReader::of(body));
    serde_json::from_reader::<_, IgnoredAny>(text).is_ok()
}

fn output(record: &Record<'_>, item: &Object<'_>, output: Raw<'_>) -> Item {
    let content = NewContent {
        name: small(item, "name"),
        call_id: small(item, "call_id"),
        ..text_of(record, output, image_of).into_output()
    };
    Item::without_text(NodeKind::ToolResult, content)
}

fn is_image(part: &Object<'_>) -> bool {
    part.str("type").is_some_and(|kind| kind == "input_image")
}

/// Returns the image that a part is: a URL, which may hold the bytes.
fn image_of(record: &Record<'_>, part: &Object<'_>) -> Option<Image> {
    if !is_image(part) {
        return None;
    }
    let url = part.get("image_url").and_then(body_of);
    let inline = url.and_then(|url| url.strip_prefix("data:")?.split_once(";base64,"));
    Some(match (inline, url) {
        (Some((media_type, data)), _) => Image {
            media_type: Some(unescape(media_type).into()),
            data: ImageData::Base64(record.text_of_body(data)),
        },
        (None, url) => Image {
            media_type: None,
            data: url.map_or(ImageData::Unknown, |url| {
                ImageData::Url(record.text_of_body(url))
            }),
        },
    })
}
