//! The texts of one entry that are searched, and the fields that filters compare (docs/search.md).

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use transcript_format::author::Author;
use transcript_format::block_text::block_text;
use transcript_format::kind::{AttachmentKind, EntryKind, SearchedContent, SystemKind};
use transcript_format::object::{Object, Raw, Str, unescape};
use transcript_format::scan::{Body, Envelope, Flags};
use transcript_reader::MessageText;

use crate::query::{Field, Role};

/// One decoded text.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) field: Field,
    /// The number of its block.
    pub(crate) block: Option<u32>,
    pub(crate) text: Str<'a>,
    pub(crate) tool: ToolPart<'a>,
}

/// The relation of a text to a call.
#[derive(Debug)]
pub(crate) enum ToolPart<'a> {
    None,
    Call {
        id: Option<Str<'a>>,
        name: Option<Str<'a>>,
        path: Option<Str<'a>>,
    },
    Result {
        call: Option<Str<'a>>,
        is_error: bool,
    },
}

/// An entry with its texts.
#[derive(Debug)]
pub(crate) struct Unit<'a> {
    pub(crate) texts: Vec<Text<'a>>,
    pub(crate) role: Option<Role>,
    pub(crate) is_api_error: bool,
    pub(crate) model: Option<Str<'a>>,
    pub(crate) branch: Option<Str<'a>>,
    /// The uuid of the entry that this one is a copy of, in a fork with uuids of its own.
    pub(crate) origin: Option<Str<'a>>,
}

/// Returns whether entries of this kind can have texts: a cheap test before a costly one.
pub(crate) fn may_have_texts(envelope: &Envelope<'_>) -> bool {
    match envelope.kind().row().search {
        SearchedContent::Content => {
            let code = envelope.sub_code();
            code == SystemKind::AwaySummary as u8 || code == SystemKind::LocalCommand as u8
        }
        search => search != SearchedContent::Nothing,
    }
}

impl<'a> Unit<'a> {
    /// Reads the entry with this envelope; `None` if it has no texts, or cannot be read.
    pub(crate) fn read(text: &'a str, envelope: &Envelope<'_>) -> Option<Self> {
        // From the envelope alone, so that most entries are not parsed.
        if !may_have_texts(envelope) {
            return None;
        }
        let body = Body::parse(text).ok()?;
        let object = &body.object;
        let mut unit = Self {
            texts: Vec::new(),
            role: None,
            is_api_error: envelope.flags().contains(Flags::API_ERROR),
            model: None,
            branch: string(object, "gitBranch"),
            origin: None,
        };
        if let Some(from) = object.get("forkedFrom").and_then(Raw::object) {
            unit.origin = string(&from, "messageUuid").filter(|origin| !origin.is_empty());
        }
        let kind = envelope.kind();
        match kind.row().search {
            SearchedContent::Blocks => unit.add_message(&body, envelope),
            SearchedContent::Title => unit.add(Field::Title, kind.text_of(object)),
            SearchedContent::Summary => unit.add(Field::Summary, kind.text_of(object)),
            SearchedContent::Queued => {
                unit.role = Some(Role::User);
                unit.add(Field::Queued, kind.text_of(object));
            }
            SearchedContent::Attachment => unit.add_attachment(object, envelope),
            _ => {
                unit.role = Some(Role::System);
                let text = string(object, "content");
                let field = match &text {
                    _ if envelope.sub_code() == SystemKind::AwaySummary as u8 => Field::Summary,
                    Some(text) => field_of_user(text, envelope.flags(), Author::Unknown),
                    None => Field::Prompt,
                };
                unit.add(field, text);
            }
        }
        (!unit.texts.is_empty()).then_some(unit)
    }

    fn add(&mut self, field: Field, text: Option<Str<'a>>) {
        self.add_block(field, None, text, ToolPart::None);
    }

    fn add_block(
        &mut self,
        field: Field,
        block: Option<u32>,
        text: Option<Str<'a>>,
        tool: ToolPart<'a>,
    ) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.texts.push(Text {
                field,
                block,
                text,
                tool,
            });
        }
    }

    fn add_message(&mut self, body: &Body<'a>, envelope: &Envelope<'_>) {
        let is_user = envelope.kind() == EntryKind::User;
        self.role = Some(if is_user { Role::User } else { Role::Assistant });
        let Some(message) = &body.message else {
            return;
        };
        self.model = string(message, "model");
        let author = if is_user {
            Author::of(&body.object)
        } else {
            Author::Unknown
        };
        let field = |text: &Option<Str<'a>>| match text {
            // The client writes notes of its own as user lines; they must not be found as prompts.
            Some(text) if is_user => field_of_user(text, envelope.flags(), author),
            _ => Field::Text,
        };
        let Some(blocks) = &body.blocks else {
            let text = message.get("content").and_then(Raw::str);
            return self.add_block(field(&text), Some(0), text, ToolPart::None);
        };
        for (number, (raw, block)) in (0..).zip(blocks) {
            let Some(block) = block else { continue };
            let Some(kind) = string(block, "type") else {
                continue;
            };
            let mut add = |field, text, tool| self.add_block(field, Some(number), text, tool);
            match &*kind {
                "text" => {
                    let text = string(block, "text");
                    add(field(&text), text, ToolPart::None);
                }
                "thinking" => add(Field::Thinking, string(block, "thinking"), ToolPart::None),
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    let input = block.get("input");
                    let tool = ToolPart::Call {
                        id: string(block, "id"),
                        name: string(block, "name"),
                        path: input.and_then(path),
                    };
                    // A server names its tools as it likes: the name describes the action.
                    let is_of_server = &*kind == "mcp_tool_use";
                    let names = ["name", "server_name"].into_iter();
                    let names = names.filter_map(|key| string(block, key));
                    let names = names.filter(|_| is_of_server);
                    let has_text = input.is_some() || is_of_server;
                    let texts = names.chain(input.map(strings));
                    let texts = texts.filter(|text| !text.is_empty());
                    let text = has_text.then(|| joined(texts));
                    add(Field::ToolInput, text, tool);
                }
                kind if kind.ends_with("tool_result") => {
                    // The line of a result is a user line, but no person wrote it.
                    self.role = Some(Role::Tool);
                    let tool = ToolPart::Result {
                        call: string(block, "tool_use_id"),
                        is_error: block.get("is_error").and_then(Raw::bool) == Some(true),
                    };
                    let text = block.get("content").map(block_text);
                    self.add_block(Field::ToolResult, Some(number), text, tool);
                }
                // Blocks of unknown kinds are searched as text, so that new ones are found without a new build.
                _ => add(Field::Text, Some(block_text(*raw)), ToolPart::None),
            }
        }
    }

    fn add_attachment(&mut self, object: &Object<'a>, envelope: &Envelope<'_>) {
        let kind = AttachmentKind::from_code(envelope.sub_code());
        let is_queued = kind == AttachmentKind::QueuedCommand;
        self.role = Some(if is_queued { Role::User } else { Role::System });
        let attachment = object.get("attachment").and_then(Raw::object);
        let member = |key: &str| attachment.as_ref()?.get(key);
        if is_queued {
            self.add(Field::Queued, member("prompt").map(block_text));
        }
        for rendered in object
            .get("rendered")
            .and_then(Raw::array)
            .unwrap_or_default()
        {
            let rendered = rendered.object();
            let text = rendered.and_then(|rendered| rendered.get("content").map(block_text));
            self.add(Field::Attachment, text);
        }
        match kind {
            AttachmentKind::PlanFileReference => {
                self.add(Field::Attachment, member("planContent").and_then(Raw::str));
            }
            AttachmentKind::TodoReminder | AttachmentKind::TaskReminder => {
                let items = member("content").and_then(Raw::array).unwrap_or_default();
                let items: Vec<_> = items.into_iter().filter_map(Raw::object).collect();
                let keys = ["content", "subject", "description"];
                let parts = items
                    .iter()
                    .flat_map(|item| keys.map(|key| string(item, key)));
                self.add(Field::Attachment, Some(joined(parts.flatten())));
            }
            _ => {}
        }
    }
}

/// Returns the field of a text of a user line.
fn field_of_user(text: &str, flags: Flags, author: Author) -> Field {
    if flags.contains(Flags::COMPACT_SUMMARY) {
        Field::Summary
    } else if flags.contains(Flags::META)
        || matches!(MessageText::by(author, text), MessageText::Client(_))
    {
        Field::Attachment
    } else {
        Field::Prompt
    }
}

fn string<'a>(object: &Object<'a>, key: &str) -> Option<Str<'a>> {
    object.get(key)?.str()
}

/// Joins texts by line feeds.
fn joined<'a>(texts: impl Iterator<Item = Str<'a>>) -> Str<'a> {
    let mut joined: Option<Str<'a>> = None;
    for text in texts {
        match &mut joined {
            None => joined = Some(text),
            Some(joined) => {
                let joined = joined.to_mut();
                joined.push('\n');
                joined.push_str(&text);
            }
        }
    }
    joined.unwrap_or(Cow::Borrowed(""))
}

/// Returns the path that the input of a call names.
fn path(input: Raw<'_>) -> Option<Str<'_>> {
    let input = input.object()?;
    let keys = [
        "file_path",
        "path",
        "notebook_path",
        "filePath",
        "absolute_path",
    ];
    keys.iter().find_map(|key| string(&input, key))
}

/// Returns all strings in a value that are not keys, joined by line feeds. The JSON is known to be
/// valid, so it is enough to find the strings; a key is a string that a colon follows.
fn strings(raw: Raw<'_>) -> Str<'_> {
    let text = raw.text();
    let bytes = text.as_bytes();
    let mut at = 0;
    joined(std::iter::from_fn(move || {
        loop {
            let start = at + memchr(b'"', bytes.get(at..)?)? + 1;
            let mut end = start;
            loop {
                end += memchr2(b'"', b'\\', bytes.get(end..)?)?;
                if bytes[end] == b'"' {
                    break;
                }
                end += 2;
            }
            at = end + 1;
            let next = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
            if next != Some(&b':') {
                return Some(unescape(&text[start..end]));
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use transcript_format::scan::Scanner;

    use super::*;

    fn texts(line: &str) -> Vec<String> {
        let mut scanner = Scanner::new();
        let envelope = scanner.scan(line.as_bytes()).unwrap();
        let unit = Unit::read(line, &envelope);
        let texts = unit.into_iter().flat_map(|unit| unit.texts);
        let text = |text: Text<'_>| {
            let block = text.block.map_or("-".to_owned(), |block| block.to_string());
            format!("{} {block} {}", text.field.name(), text.text)
        };
        texts.map(text).collect()
    }

    #[test]
    fn blocks_are_texts_and_the_second_copy_of_a_result_is_not() {
        let line = r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"t\u0068","signature":"sig"},
            {"type":"text","text":"x"},{"type":"tool_use","id":"i","name":"n","input":{"key":"a\"b","n":1,"deep":[{"k":["c",""]}]}}]}}"#;
        assert_eq!(
            texts(line),
            ["thinking 0 th", "text 1 x", "tool_input 2 a\"b\nc\n"]
        );
        let line = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"one"},
            {"type":"image","source":{"data":"QUJD"}},{"type":"text","text":"two"}]},{"type":"text","text":"<system-reminder>r</system-reminder>"},
            {"type":"text","text":"typed"}]},"toolUseResult":"one"}"#;
        assert_eq!(
            texts(line),
            [
                "tool_result 0 one\ntwo",
                "attachment 1 <system-reminder>r</system-reminder>",
                "prompt 2 typed",
            ]
        );
    }

    #[test]
    fn a_call_of_a_tool_of_a_server_is_found_by_the_names_of_both() {
        let line = r#"{"type":"assistant","message":{"content":[
            {"type":"mcp_tool_use","id":"i","name":"list_tides","server_name":"harbour","input":{"port":"Brest"}},
            {"type":"mcp_tool_use","id":"j","name":"list_tides","server_name":"harbour","input":{}}]}}"#;
        assert_eq!(
            texts(line),
            [
                "tool_input 0 list_tides\nharbour\nBrest",
                "tool_input 1 list_tides\nharbour"
            ]
        );
    }

    #[test]
    fn each_kind_has_the_texts_that_its_row_says() {
        let known = EntryKind::ALL.iter().map(|kind| (*kind, kind.name()));
        for (kind, name) in known.chain([(EntryKind::Other, "of-tomorrow")]) {
            let own = kind.row().text.unwrap_or("text");
            let subtype = SystemKind::AwaySummary.name();
            let line = format!(
                r#"{{"type":"{name}","{own}":"w","subtype":"{subtype}","message":{{"content":"w"}},
                "attachment":{{"type":"file"}},"rendered":[{{"content":"w"}}],"content":"w"}}"#
            );
            let expected = match kind.row().search {
                SearchedContent::Nothing => None,
                SearchedContent::Blocks if kind == EntryKind::User => Some("prompt 0 w"),
                SearchedContent::Blocks => Some("text 0 w"),
                SearchedContent::Attachment => Some("attachment - w"),
                SearchedContent::Title => Some("title - w"),
                SearchedContent::Content | SearchedContent::Summary => Some("summary - w"),
                SearchedContent::Queued => Some("queued - w"),
                other => panic!("{other:?} is not tested"),
            };
            assert_eq!(texts(&line), Vec::from_iter(expected), "{name}");
        }
    }

    #[test]
    fn metadata_lines_have_texts() {
        for (line, text) in [
            (r#"{"type":"custom-title","customTitle":"T"}"#, "title - T"),
            (r#"{"type":"ai-title","aiTitle":"T"}"#, "title - T"),
            (
                r#"{"type":"summary","summary":"S","leafUuid":"l"}"#,
                "summary - S",
            ),
            (r#"{"type":"queue-operation","content":"q"}"#, "queued - q"),
            (
                r#"{"type":"system","subtype":"away_summary","content":"s"}"#,
                "summary - s",
            ),
            (
                r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":[{"type":"text","text":"p"}]}}"#,
                "queued - p",
            ),
            (
                r#"{"type":"attachment","attachment":{"type":"file"},"rendered":[{"content":"r"}]}"#,
                "attachment - r",
            ),
            (
                r#"{"type":"attachment","attachment":{"type":"todo_reminder","content":[{"content":"a"},{"content":"b"}]}}"#,
                "attachment - a\nb",
            ),
            (
                r#"{"type":"user","isCompactSummary":true,"message":{"content":"so far"}}"#,
                "summary 0 so far",
            ),
            (
                r#"{"type":"user","isMeta":true,"message":{"content":"m"}}"#,
                "attachment 0 m",
            ),
        ] {
            assert_eq!(texts(line), [text], "{line}");
        }
        for line in [
            r#"{"type":"last-prompt","lastPrompt":"p"}"#,
            r#"{"type":"progress","data":{"output":"o"}}"#,
            r#"{"type":"user","message":{"content":7}}"#,
            r#"{"type":"user","message":{"content":""}}"#,
        ] {
            assert_eq!(texts(line), [""; 0], "{line}");
        }
    }
}
