//! The expected result of a scan, computed with `serde_json`. Also used by the fuzz target.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use transcript_format::kind::{AttachmentKind, EntryKind, ProgressKind, SystemKind};
use transcript_format::scan::{
    ContentKind, Envelope, Flags, ScanError, ScanErrorKind, Scanner, Text, ToolRole,
};

type Tool = (ToolRole, String, Option<String>);

/// An envelope, owned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fields {
    pub(crate) kind: EntryKind,
    pub(crate) sub_code: u8,
    /// `type`, the second name, and the ids, in the order of [`Fields::of`].
    pub(crate) texts: [Option<String>; 14],
    pub(crate) message: Option<Value>,
    pub(crate) content: ContentKind,
    pub(crate) flags: Flags,
    /// Role, id and name.
    pub(crate) tools: Vec<Tool>,
}

impl Fields {
    fn of(line: &[u8], envelope: &Envelope<'_>) -> Self {
        let fields = envelope.fields();
        let kept = fields.of(line).expect("the same line");
        assert_eq!(
            (kept.uuid(), kept.message()),
            (envelope.uuid(), envelope.message())
        );
        assert!(fields.of(&line[..envelope.end() - 1]).is_none());
        let message = envelope.message().map(|place| repaired(&line[place]));
        let text = |text: Option<Text<'_>>| text.map(|text| text.decode().into_owned());
        Self {
            kind: envelope.kind(),
            sub_code: envelope.sub_code(),
            texts: [
                text(envelope.kind_name()),
                text(envelope.sub_name()),
                text(envelope.uuid()),
                text(envelope.parent_uuid()),
                text(envelope.logical_parent_uuid()),
                text(envelope.leaf_uuid()),
                text(envelope.source_tool_assistant_uuid()),
                text(envelope.session_id()),
                text(envelope.agent_id()),
                text(envelope.timestamp()),
                text(envelope.message_id()),
                text(envelope.request_id()),
                text(envelope.stop_reason()),
                text(envelope.last_text()),
            ],
            message: message.map(|message| serde_json::from_slice(&message).expect("valid JSON")),
            content: envelope.content(),
            flags: envelope.flags(),
            tools: envelope
                .tools()
                .map(|tool| (tool.role, tool.id.decode().into_owned(), text(tool.name)))
                .collect(),
        }
    }
}

/// The members of an object in order, including repeated names.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

const IDS: [&str; 9] = [
    "uuid",
    "parentUuid",
    "type",
    "timestamp",
    "sessionId",
    "subtype",
    "agentId",
    "logicalParentUuid",
    "sourceToolAssistantUUID",
];

const FLAGS: [(&str, Flags); 6] = [
    ("isSidechain", Flags::SIDECHAIN),
    ("isMeta", Flags::META),
    ("isCompactSummary", Flags::COMPACT_SUMMARY),
    ("isVisibleInTranscriptOnly", Flags::TRANSCRIPT_ONLY),
    ("isVirtual", Flags::VIRTUAL),
    ("isApiErrorMessage", Flags::API_ERROR),
];

impl Members {
    /// Returns the value that counts: the last one.
    fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .rev()
            .find(|member| member.0 == name)
            .map(|member| &member.1)
    }

    fn id(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// Returns the `type` of the object at `name`.
    fn inner_type(&self, name: &str) -> Option<&str> {
        self.get(name)?.get("type")?.as_str()
    }

    /// Returns the session of a line in the stream form; `None` for every other line.
    fn stream_session(&self) -> Option<&str> {
        let is_of_client = self.get("parentUuid").is_some() || self.id("sessionId").is_some();
        self.id("session_id").filter(|_| !is_of_client)
    }

    /// Returns the call that started the subagent of a line in the stream form.
    fn stream_call(&self) -> Option<&str> {
        self.stream_session()?;
        self.id("parent_tool_use_id")
    }

    fn fields(&self) -> Fields {
        let kind = EntryKind::from_name(self.id("type").unwrap_or_default());
        let sub_name = match kind {
            EntryKind::Attachment => self.inner_type("attachment"),
            EntryKind::Progress => self.inner_type("data"),
            _ => self.id("subtype"),
        };
        let name = sub_name.unwrap_or_default();
        let sub_code = match kind {
            EntryKind::System => SystemKind::from_name(name) as u8,
            EntryKind::Attachment => AttachmentKind::from_name(name) as u8,
            EntryKind::Progress => ProgressKind::from_name(name) as u8,
            _ => 0,
        };
        let message = self.get("message").filter(|message| message.is_object());
        let texts = [
            self.id("type"),
            sub_name,
            self.id("uuid"),
            self.id("parentUuid"),
            self.id("logicalParentUuid"),
            self.get("leafUuid").and_then(Value::as_str),
            self.id("sourceToolAssistantUUID"),
            self.id("sessionId").or(self.stream_session()),
            self.id("agentId").or(self.stream_call()),
            self.id("timestamp"),
            message.and_then(|message| message.get("id")?.as_str()),
            self.get("requestId").and_then(Value::as_str),
            message.and_then(|message| message.get("stop_reason")?.as_str()),
            message.and_then(|message| last_text(message.get("content")?)),
        ];
        let mut flags = self.flags();
        let mut tools = Vec::new();
        let content = match message.map(|message| message.get("content")) {
            None => ContentKind::NoMessage,
            Some(None | Some(Value::Null)) => ContentKind::Null,
            Some(Some(Value::String(_))) => {
                flags |= Flags::HAS_TEXT;
                ContentKind::Text
            }
            Some(Some(Value::Array(blocks))) => {
                for block in blocks {
                    let (flag, tool) = of_block(block);
                    flags |= flag;
                    tools.extend(tool);
                }
                ContentKind::Blocks
            }
            Some(Some(_)) => ContentKind::Odd,
        };
        Fields {
            kind,
            sub_code,
            texts: texts.map(|text| text.map(str::to_owned)),
            message: self.get("message").cloned(),
            content,
            flags,
            tools,
        }
    }

    /// Returns all flags except those of the message.
    fn flags(&self) -> Flags {
        let mut flags = Flags::empty();
        let explicit = ("explicit", Flags::EXPLICIT);
        for (name, flag) in FLAGS.into_iter().chain([explicit]) {
            flags.set(flag, self.get(name) == Some(&Value::Bool(true)));
            let is_odd = |value: &Value| !value.is_boolean() && !value.is_null();
            flags |= self.odd(name, is_odd);
        }
        for name in IDS.into_iter().chain(["teamName"]) {
            flags |= self.odd(name, |value| !value.is_string() && !value.is_null());
        }
        flags.set(Flags::TEAM, self.id("teamName").is_some());
        match self.get("uuid") {
            None => {}
            Some(Value::Null) => flags |= Flags::UUID_NULL,
            Some(Value::String(uuid)) => flags.set(Flags::UUID_EMPTY, uuid.is_empty()),
            Some(_) => flags |= Flags::UUID_ODD,
        }
        let parent = self.get("parentUuid");
        let is_plain =
            |parent: &Value| matches!(parent, Value::String(_) | Value::Null | Value::Bool(false));
        let is_empty = parent.is_some_and(|parent| parent == "");
        flags.set(Flags::PARENT_EMPTY, is_empty);
        flags.set(Flags::PARENT_ABSENT, parent.is_none() || is_empty);
        flags.set(
            Flags::PARENT_ODD,
            parent.is_some_and(|parent| !is_plain(parent)),
        );
        flags.set(Flags::STREAM_FORM, self.stream_session().is_some());
        if self.stream_call().is_some() && !flags.contains(Flags::SIDECHAIN) {
            flags |= Flags::SIDECHAIN | Flags::SIDECHAIN_OF_STREAM;
        }
        let others = [
            "message",
            "teamName",
            "explicit",
            "requestId",
            "leafUuid",
            "attachment",
            "data",
        ];
        let read = IDS
            .into_iter()
            .chain(others)
            .chain(FLAGS.map(|(name, _)| name));
        for name in read {
            let count = self.0.iter().filter(|member| member.0 == name).count();
            if count > 1 {
                flags |= Flags::DUPLICATE_NAME;
            }
        }
        flags
    }

    /// A name is odd if any of its values is, not only the last one.
    fn odd(&self, name: &str, is_odd: impl Fn(&Value) -> bool) -> Flags {
        let mut values = self.0.iter().filter(|member| member.0 == name);
        if values.any(|member| is_odd(&member.1)) {
            Flags::ODD_VALUE
        } else {
            Flags::empty()
        }
    }
}

fn last_text(content: &Value) -> Option<&str> {
    let texts = content.as_array().into_iter().flatten();
    let mut texts = texts.filter(|block| block.get("type") == Some(&"text".into()));
    content
        .as_str()
        .or_else(|| texts.next_back()?.get("text")?.as_str())
}

fn of_block(block: &Value) -> (Flags, Option<Tool>) {
    let text = |name: &str| block.get(name).and_then(Value::as_str).map(str::to_owned);
    let tool = |role, id: &str| text(id).map(|id| (role, id, text("name")));
    match block.get("type").and_then(Value::as_str) {
        Some("text") => (Flags::HAS_TEXT, None),
        Some("thinking" | "redacted_thinking") => (Flags::HAS_THINKING, None),
        Some("tool_use") => (Flags::HAS_TOOL_USE, tool(ToolRole::Use, "id")),
        Some("tool_result") => (
            Flags::HAS_TOOL_RESULT,
            tool(ToolRole::Result, "tool_use_id"),
        ),
        Some("server_tool_use" | "mcp_tool_use") => {
            (Flags::HAS_OTHER_BLOCK, tool(ToolRole::ServerUse, "id"))
        }
        Some(other) if other.ends_with("_tool_result") => (
            Flags::HAS_OTHER_BLOCK,
            tool(ToolRole::ServerResult, "tool_use_id"),
        ),
        _ => (Flags::HAS_OTHER_BLOCK, None),
    }
}

/// Removes the two differences between a scan and `serde_json::Value`: lone surrogate escapes
/// become `\ufffd`, numbers out of range become `1`. Other errors remain errors.
fn repaired(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    let mut in_string = false;
    while let Some(&first) = rest.first() {
        let len = match first {
            b'"' => {
                in_string = !in_string;
                1
            }
            b'\\' if in_string => match (unit(rest), rest.get(6..).and_then(unit)) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
                (Some(0xD800..=0xDFFF), _) => {
                    out.extend_from_slice(b"\\ufffd");
                    rest = &rest[6..];
                    continue;
                }
                _ => rest.len().min(2),
            },
            b'-' | b'0'..=b'9' if !in_string => {
                let in_number = |byte: &u8| {
                    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
                };
                let len = rest
                    .iter()
                    .position(|byte| !in_number(byte))
                    .unwrap_or(rest.len());
                if is_out_of_range(&rest[..len]) {
                    out.push(b'1');
                    rest = &rest[len..];
                    continue;
                }
                len
            }
            _ => 1,
        };
        out.extend_from_slice(&rest[..len]);
        rest = &rest[len..];
    }
    out
}

/// Returns the unusual escapes of a valid line, in which only strings contain backslashes.
fn odd_escapes(line: &[u8]) -> Flags {
    let mut flags = Flags::empty();
    let mut rest = line;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        rest = &rest[at..];
        let len = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                flags |= Flags::LONE_SURROGATE;
                6
            }
            (Some(0), _) => {
                flags |= Flags::NUL_ESCAPE;
                6
            }
            _ => 2,
        };
        rest = &rest[len..];
    }
    flags
}

/// Returns the UTF-16 unit of a `\uXXXX` escape at the start of `text`.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn is_out_of_range(number: &[u8]) -> bool {
    let is_json = serde_json::from_slice::<IgnoredAny>(number).is_ok();
    is_json && serde_json::from_slice::<Value>(number).is_err()
}

/// Scans `line` with and without SIMD; both results must be equal.
pub(crate) fn scan(line: &[u8]) -> Result<(Fields, usize), ScanError> {
    let with = |mut scanner: Scanner| {
        scanner
            .scan(line)
            .map(|envelope| (Fields::of(line, &envelope), envelope.end()))
    };
    let found = with(Scanner::new());
    if let Ok(text) = std::str::from_utf8(line) {
        let mut scanner = Scanner::new();
        let as_text = scanner.scan_text(text);
        let as_text = as_text.map(|envelope| (Fields::of(line, &envelope), envelope.end()));
        assert_eq!(as_text, found, "{}", show(line));
    }
    assert_eq!(
        with(Scanner::without_simd()),
        found,
        "SIMD makes a difference in {}",
        show(line)
    );
    found
}

/// Compares the scan of `line` with the result of `serde_json`; panics where they differ.
///
/// A line scans exactly when `serde_json::Value` reads its normalized form as an object. Returns
/// whether it did.
pub(crate) fn check(line: &[u8]) -> bool {
    let found = scan(line);
    let repaired = repaired(line);
    let value = serde_json::from_slice::<Value>(&repaired);
    if repaired != line {
        let plain = serde_json::from_slice::<Value>(line);
        assert!(
            plain.is_err(),
            "the repair changed a whole line: {}",
            show(line)
        );
    }
    match &found {
        Ok((fields, end)) => {
            assert!(
                std::str::from_utf8(line).is_ok()
                    && serde_json::from_slice::<IgnoredAny>(line).is_ok(),
                "the scan took what is not JSON: {}",
                show(line)
            );
            let Ok(members) = serde_json::from_slice::<Members>(&repaired) else {
                panic!(
                    "the scan took what serde_json refuses ({value:?}): {}",
                    show(line)
                );
            };
            let mut expected = members.fields();
            expected.flags |= odd_escapes(line);
            assert_eq!(*fields, expected, "other fields in {}", show(line));
            assert!(line[*end..].trim_ascii().is_empty() && line[*end - 1] == b'}');
        }
        Err(error) => {
            let is_object = value.as_ref().is_ok_and(Value::is_object);
            assert!(
                !is_object,
                "the scan refused ({error}) what serde_json takes: {}",
                show(line)
            );
            check_error(line, *error, &value);
        }
    }
    check_first(line, &found);
    found.is_ok()
}

/// The kind of an error must match the one of `serde_json`.
fn check_error(line: &[u8], error: ScanError, value: &serde_json::Result<Value>) {
    use ScanErrorKind as Kind;
    // JSON's white space; `trim_ascii` would also remove form feeds.
    let is_blank = line
        .iter()
        .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    let bad_utf8 = std::str::from_utf8(line).err().map(|bad| bad.valid_up_to());
    let ends_too_early = value.as_ref().is_err_and(serde_json::Error::is_eof) && !is_blank;
    let fits = match error.kind {
        Kind::Blank => is_blank,
        Kind::Incomplete => error.at == line.len() && (ends_too_early || bad_utf8.is_some()),
        _ if error.at >= line.len() => false,
        Kind::NotObject => !value.as_ref().is_ok_and(Value::is_object),
        Kind::Utf8 => bad_utf8 == Some(error.at),
        Kind::Depth => matches!(line[error.at], b'{' | b'['),
        Kind::Control => line[error.at] < 0x20,
        // For `\\u0g` at the end, serde_json reports an end of input, the scan a syntax error.
        _ => !ends_too_early || error.at + 5 > line.len(),
    };
    assert!(fits, "{error} does not fit {}, {value:?}", show(line));
}

/// `scan_first` must return exactly the object that `serde_json` finds at the start of the line.
fn check_first(line: &[u8], whole: &Result<(Fields, usize), ScanError>) {
    let mut scanner = Scanner::new();
    let first = scanner
        .scan_first(line)
        .map(|envelope| (Fields::of(line, &envelope), envelope.end()));
    let is_trailing = |error: &ScanError| error.kind == ScanErrorKind::Trailing;
    match whole {
        Err(error) if is_trailing(error) => {
            let (fields, end) = first.unwrap_or_else(|other| panic!("{other}: {}", show(line)));
            let alone = scan(&line[..end]).map(|(fields, _)| fields);
            assert_eq!(alone, Ok(fields), "the first object of {}", show(line));
            assert!(error.at >= end);
            assert_eq!(
                serde_json_end(line).unwrap_or(end),
                end,
                "the end in {}",
                show(line)
            );
        }
        whole => assert_eq!(first, *whole, "scan_first of {}", show(line)),
    }
}

/// Returns the end of the first value according to `serde_json`, if it is valid.
fn serde_json_end(line: &[u8]) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_slice(line).into_iter::<Value>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

fn show(line: &[u8]) -> String {
    let mut text = line.escape_ascii().to_string();
    if text.len() > 4_000 {
        text.truncate(4_000);
        text.push('…');
    }
    format!("{} bytes: {text}", line.len())
}
