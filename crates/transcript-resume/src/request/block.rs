//! Blocks of content as the JSON text they were, and the few edits that a request needs.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use transcript_format::object::{JsonKind, Object, Raw, Str};

/// One block of a message: JSON text that is only moved, unless a rule of the client changes it.
///
/// Numbers, key order, escapes and unknown fields are those of the transcript. `cache_control` is
/// gone, and lone surrogates and NULs are U+FFFD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    json: Box<str>,
    /// The id of a call, or of the call that a result belongs to.
    id: Option<Box<str>>,
    entry: Option<u32>,
    kind: BlockKind,
    /// The content of the message was a string, not a list with this block.
    is_plain: bool,
}

/// What the rules tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockKind {
    /// `text`
    Text,
    /// `image`
    Image,
    /// `document`
    Document,
    /// `tool_use`
    ToolUse,
    /// `tool_result`
    ToolResult,
    /// `server_tool_use` or `mcp_tool_use`
    ServerToolUse,
    /// `thinking` without a signature.
    Thinking,
    /// `thinking` with a signature, or `redacted_thinking`: only its own model takes it back.
    SealedThinking,
    /// Any other block.
    Other,
}

const PLAIN_START: &str = r#"{"type":"text","text":"#;

impl Block {
    /// Reads one block of the content of candidate `entry`.
    pub(super) fn read(raw: Raw<'_>, entry: u32) -> Self {
        let Some(object) = raw.object() else {
            return Self::new(safe(raw.text()).into(), BlockKind::Other, entry);
        };
        let kind = BlockKind::of(&object);
        let id_key = match kind {
            BlockKind::ToolUse | BlockKind::ServerToolUse => "id",
            _ => "tool_use_id",
        };
        let json = if raw.text().contains("\"cache_control\"") {
            safe(&without_cache_control(&object)).into_owned()
        } else {
            safe(raw.text()).into_owned()
        };
        let id = object.get(id_key).and_then(Raw::str);
        Self {
            id: id.map(|id| id.into()),
            ..Self::new(json.into(), kind, entry)
        }
    }

    /// Reads content that is one string, given as the JSON text of it.
    pub(super) fn plain(string: Raw<'_>, entry: u32) -> Self {
        let json = format!("{PLAIN_START}{}}}", safe(string.text()));
        Self {
            is_plain: true,
            ..Self::new(json.into(), BlockKind::Text, entry)
        }
    }

    /// A text of our own.
    pub(super) fn text(text: &str) -> Self {
        Self::made_up(
            format!("{PLAIN_START}{}}}", quoted(text)),
            BlockKind::Text,
            None,
        )
    }

    /// A text of our own that is the whole content of a message.
    pub(super) fn plain_text(text: &str) -> Self {
        Self {
            is_plain: true,
            ..Self::text(text)
        }
    }

    /// The block as one of candidate `entry`.
    pub(super) fn of_entry(mut self, entry: u32) -> Self {
        self.set_entry(Some(entry));
        self
    }

    pub(super) fn set_entry(&mut self, entry: Option<u32>) {
        self.entry = entry;
    }

    /// A text that the client puts into an assistant message (cases 43-10, 42-12).
    pub(super) fn assistant_placeholder(text: &str) -> Self {
        let json = format!("{PLAIN_START}{},\"citations\":[]}}", quoted(text));
        Self::made_up(json, BlockKind::Text, None)
    }

    /// A result for the call `id`.
    pub(super) fn failed_result(id: &str, text: &str) -> Self {
        let json = format!(
            r#"{{"type":"tool_result","tool_use_id":{},"content":{},"is_error":true}}"#,
            quoted(id),
            quoted(text)
        );
        Self::made_up(json, BlockKind::ToolResult, Some(id.into()))
    }

    pub(super) fn made_up(json: String, kind: BlockKind, id: Option<Box<str>>) -> Self {
        Self {
            json: json.into(),
            id,
            entry: None,
            kind,
            is_plain: false,
        }
    }

    fn new(json: Box<str>, kind: BlockKind, entry: u32) -> Self {
        Self {
            json,
            id: None,
            entry: Some(entry),
            kind,
            is_plain: false,
        }
    }

    /// Returns the block as JSON.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns what the rules take the block for.
    #[must_use]
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// Returns the candidate that the block comes from; `None` when it was made up.
    #[must_use]
    pub fn entry(&self) -> Option<usize> {
        self.entry.map(|entry| entry as usize)
    }

    /// Returns the id of the call, or of the call that the result belongs to.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The message got more than its string, so its content is a list.
    pub(super) fn unlink_from_string(&mut self) {
        self.is_plain = false;
    }

    /// Returns the string that is the content when the block is the only one of its message, as
    /// JSON.
    pub(super) fn as_plain(&self) -> Option<&str> {
        let string = self.json.strip_prefix(PLAIN_START)?.strip_suffix('}')?;
        self.is_plain.then_some(string)
    }

    pub(super) fn object(&self) -> Option<Object<'_>> {
        Object::parse(&self.json).ok()
    }

    /// Returns the field `text`, whatever the type of the block.
    #[must_use]
    pub fn text_field(&self) -> Option<Str<'_>> {
        Raw::parse(&self.json).ok().and_then(text_of)
    }

    /// Whether a text block says nothing: it has no text, or one of white space.
    pub(super) fn is_blank(&self) -> bool {
        let is_plain = |text: &str| text.strip_prefix('"').is_some_and(starts_plainly);
        !self.json.strip_prefix(PLAIN_START).is_some_and(is_plain)
            && Raw::parse(&self.json).ok().is_none_or(is_blank)
    }

    /// Whether the call or result belongs to a tool that the API runs itself, and its id.
    pub(super) fn api_tool(&self) -> Option<(ApiTool, Box<str>)> {
        if !matches!(self.kind, BlockKind::ServerToolUse | BlockKind::Other) {
            return None;
        }
        let object = self.object()?;
        let (tool, key) = match &*object.get("type")?.str()? {
            "server_tool_use" | "mcp_tool_use" => (ApiTool::Call, "id"),
            name if is_api_result(name) => (ApiTool::Result, "tool_use_id"),
            _ => return None,
        };
        let id = object.get(key).and_then(Raw::str).unwrap_or_default();
        Some((tool, id.into()))
    }

    /// Renames the call, or the call that the result belongs to.
    pub(super) fn rename(&mut self, id: &str) {
        let is_call = self.kind == BlockKind::ToolUse;
        self.set(if is_call { "id" } else { "tool_use_id" }, &quoted(id));
        self.id = Some(id.into());
    }

    /// Puts a line end behind the text of a text block.
    pub(super) fn end_with_newline(&mut self) {
        if self.kind == BlockKind::Text
            && let Some(json) = Raw::parse(&self.json).ok().and_then(with_newline)
        {
            self.json = json.into();
        }
    }

    /// Sets a field; its value is JSON.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        if let Some(object) = self.object() {
            self.json = object.with(key, value).into();
        }
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.kind, BlockKind::Thinking | BlockKind::SealedThinking)
    }
}

/// What of a tool that the API runs itself: such a pair stands in one message of the assistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApiTool {
    Call,
    Result,
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Raw::parse(&self.json)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl BlockKind {
    pub(super) fn of(object: &Object<'_>) -> Self {
        match object.get("type").and_then(Raw::str).as_deref() {
            Some("text") => Self::Text,
            Some("image") => Self::Image,
            Some("document") => Self::Document,
            Some("tool_use") => Self::ToolUse,
            Some("tool_result") => Self::ToolResult,
            Some("server_tool_use" | "mcp_tool_use") => Self::ServerToolUse,
            Some("redacted_thinking") => Self::SealedThinking,
            Some("thinking") => match object.get("signature").and_then(Raw::str) {
                Some(signature) if !signature.is_empty() => Self::SealedThinking,
                _ => Self::Thinking,
            },
            _ => Self::Other,
        }
    }
}

/// What kind of block a value is, [`BlockKind::Other`] when it is none.
pub(super) fn kind_of(raw: Raw<'_>) -> BlockKind {
    raw.object()
        .map_or(BlockKind::Other, |object| BlockKind::of(&object))
}

/// The field `text` of a block.
pub(super) fn text_of(raw: Raw<'_>) -> Option<Str<'_>> {
    raw.object()?.get("text")?.str()
}

/// Whether this is the type of what a tool gave that the API runs itself.
pub(super) fn is_api_result(type_name: &str) -> bool {
    type_name.ends_with("_tool_result")
}

/// Whether a text block says nothing: it has no text, or one of white space.
pub(super) fn is_blank(raw: Raw<'_>) -> bool {
    let Some(text) = raw.object().and_then(|block| block.get("text")) else {
        return true;
    };
    let is_plain = text.text().strip_prefix('"').is_some_and(starts_plainly);
    !is_plain && text.str().is_none_or(|text| text.chars().all(is_space))
}

/// Whether a JSON string starts with a character that stands for itself and is not blank: that
/// tells, without a look at the rest.
fn starts_plainly(string: &str) -> bool {
    string.starts_with(|c: char| c.is_ascii_graphic() && !"\\\"".contains(c))
}

/// What some provider or other takes for white space.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}' | '\u{feff}')
}

/// A block with a line end behind its text; `None` when it has no text.
pub(super) fn with_newline(raw: Raw<'_>) -> Option<String> {
    let object = raw.object()?;
    let text = object
        .get("text")
        .filter(|text| text.kind() == JsonKind::String)?;
    let open = text.text().strip_suffix('"')?;
    Some(object.with("text", &format!("{open}\\n\"")))
}

/// `text` as a JSON string, NULs as U+FFFD.
pub(super) fn quoted(text: &str) -> String {
    // A string always serialises: there is no key to be refused and no value out of range.
    serde_json::to_string(&text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// The block without cache breakpoints: its own, and those of the blocks of a result.
fn without_cache_control(object: &Object<'_>) -> String {
    let members = object
        .members()
        .iter()
        .filter(|(key, _)| key != "cache_control");
    let members: Vec<String> = members
        .map(|(key, value)| {
            let value = match value.array() {
                Some(blocks) if key == "content" => {
                    let blocks: Vec<Cow<'_, str>> = blocks
                        .into_iter()
                        .map(|block| {
                            block.object().map_or(block.text().into(), |block| {
                                without_cache_control(&block).into()
                            })
                        })
                        .collect();
                    format!("[{}]", blocks.join(","))
                }
                _ => value.text().to_owned(),
            };
            format!("{}:{value}", quoted(key))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

/// The JSON text with the escapes of lone surrogates and NULs replaced by that of U+FFFD: an API
/// that reads strict JSON refuses the one, and stores behind it the other.
pub(super) fn safe(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = match unit(rest) {
            Some(0xD800..=0xDBFF)
                if matches!(rest.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) =>
            {
                12
            }
            Some(0xD800..=0xDFFF | 0) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            Some(_) => 6,
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The UTF-16 unit of a `\uXXXX` escape at the start of `text`.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}
