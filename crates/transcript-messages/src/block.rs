//! Blocks of content as the JSON text they had, and the few edits that a request needs.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use transcript_format::object::{JsonKind, Object, Raw, Str};

pub use super::block_kind::{BlockKind, kind_of};
use super::estimate::TokenEstimate;
use super::numbers::as_doubles;
use super::provider::Provider;
use super::stored::{BlockLocation, MIN_STORED_LEN, READ_AHEAD, Stored, StoredReader};
use super::text::{is_space, quoted, safe};

/// One block of a message: JSON text that is only moved, unless a rule of the client changes it.
/// Unknown blocks are sent as they are (MSG-16).
///
/// Numbers, key order, escapes and unknown fields are those of the JSON that was read. A block that
/// is deserialized keeps its JSON byte for byte; [`Block::read`] makes it fit to be sent.
#[derive(Clone, Debug)]
#[must_use]
pub struct Block {
    json: Json,
    /// The id of a call, or of the call that a result belongs to.
    id: CallId,
    origin: Option<usize>,
    kind: BlockKind,
    /// The content of the message was a string, not a list with this block.
    is_plain: bool,
    /// No pass changes or objects to the block itself, and passes need not parse it again: see
    /// [`is_sound`]. False if that is not known.
    is_sound: bool,
    /// Of a call: every provider accepts its id and its name. False if that is not known.
    is_call_for_all: bool,
    /// Of a call: its input is a part of what the model wrote.
    has_cut_input: bool,
    /// Each number is as the client prints it (MSG-22). False if that is not known.
    has_printed_numbers: bool,
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        // Not `is_sound` and its like: they depend on how the block was read, and say nothing that the JSON does not.
        let parts = |block: &Self| (block.origin, block.kind, block.is_plain);
        parts(self) == parts(other)
            && self.json() == other.json()
            && self.call_id() == other.call_id()
    }
}

impl Eq for Block {}

/// The JSON of a block.
#[derive(Clone, Debug)]
enum Json {
    Own(Box<str>),
    /// Boxed, as the JSON of short blocks is not stored.
    Stored(Box<Stored>),
}

/// The id of a call: mostly a part of the JSON of its block.
#[derive(Clone, Debug)]
enum CallId {
    /// From one offset to another; none if they are 0.
    In(u32, u32),
    Own(Box<str>),
}

impl CallId {
    const NONE: Self = Self::In(0, 0);
}

/// The tool that has another name now (MSG-15).
pub(super) const RENAMED_TOOL: &str = "Task";

/// The tool whose calls the client writes with fields that it does not send (MSG-21).
pub(super) const MESSAGE_TOOL: &str = "SendMessage";

const PLAIN_START: &str = r#"{"type":"text","text":"#;

impl Block {
    /// Reads one block of content. `cache_control` is removed, and lone surrogates and NULs become
    /// U+FFFD.
    pub fn read(raw: Raw<'_>) -> Self {
        Self::of_body(raw, raw.object().as_ref(), true, None)
    }

    /// Like [`Self::read`] for a block of a [`Body`](transcript_format::scan::Body), which was
    /// parsed with it: `object` has the members of `raw`. `may_be_odd` is whether its strings may
    /// hold lone surrogates or NULs. With a `place`, where `raw` can be read again, a long block that
    /// is [sound](Self::is_sound) stays there.
    pub fn of_body(
        raw: Raw<'_>,
        object: Option<&Object<'_>>,
        may_be_odd: bool,
        place: Option<BlockLocation<'_>>,
    ) -> Self {
        // Borrowed unless something must change: most blocks are sent as they are, and `is_verbatim` depends on it.
        let clean = object.filter(|object| holds_cache_control(object));
        let clean = clean.map_or(Cow::Borrowed(raw.text()), |object| {
            without_cache_control(object).into()
        });
        let json = if may_be_odd {
            safe(&clean)
        } else {
            Cow::Borrowed(&*clean)
        };
        let kind = object.map_or(BlockKind::Other, BlockKind::of);
        let id = object.and_then(|object| id_of(kind, object));
        let is_sound = object.is_some_and(|object| is_sound(kind, id.as_deref(), object));
        let has_printed_numbers = object.is_some_and(has_printed_numbers);
        // Only the bytes that are sent can be read from the file again (decision 0023). A sound block needs no pass to load
        // it, and numbers would have to be printed in another way.
        let is_verbatim = std::ptr::eq(json.as_ptr(), raw.text().as_ptr());
        let may_stay = is_sound && has_printed_numbers && is_verbatim;
        let place = place.filter(|_| may_stay && json.len() >= MIN_STORED_LEN);
        let mut block = match (place, object) {
            (Some(place), Some(object)) => {
                // Now, as the parsed block is here: later the file would have to be read for it.
                let estimate = TokenEstimate::of_object(kind, object);
                Self {
                    json: Json::Stored(Box::new(Stored::new(&json, estimate, place))),
                    ..Self::new("", kind, id.map(Box::from))
                }
            }
            _ => Self::with_json(json, kind, id, object),
        };
        block.is_sound = is_sound;
        block.is_call_for_all =
            is_sound && kind == BlockKind::ToolUse && object.is_some_and(is_call_for_all);
        block.has_printed_numbers = has_printed_numbers;
        block
    }

    /// Keeps one block of content as it is.
    pub(super) fn verbatim(raw: Raw<'_>) -> Self {
        let object = raw.object();
        let kind = object.as_ref().map_or(BlockKind::Other, BlockKind::of);
        let id = object.as_ref().and_then(|object| id_of(kind, object));
        Self::with_json(raw.text(), kind, id, object.as_ref())
    }

    /// Reads content that is one string, given as its JSON text. Lone surrogates and NULs become
    /// U+FFFD.
    pub fn plain(string: Raw<'_>) -> Self {
        Self::of_string(&safe(string.text()))
    }

    /// Makes a block of content that is one string, given as its JSON text.
    pub(super) fn of_string(string: &str) -> Self {
        Self {
            is_plain: true,
            ..Self::new(format!("{PLAIN_START}{string}}}"), BlockKind::Text, None)
        }
    }

    /// Makes a text.
    pub fn text(text: &str) -> Self {
        let json = format!("{PLAIN_START}{}}}", quoted(text));
        Self::new(json, BlockKind::Text, None)
    }

    /// Makes a text that is the whole content of a message.
    pub fn plain_text(text: &str) -> Self {
        Self::of_string(&quoted(text))
    }

    /// Makes a text that the client puts into an assistant message (MSG-8).
    pub(super) fn assistant_placeholder(text: &str) -> Self {
        let json = format!("{PLAIN_START}{},\"citations\":[]}}", quoted(text));
        Self::new(json, BlockKind::Text, None)
    }

    /// Makes a failed result for the call `id`.
    pub fn failed_result(id: &str, text: &str) -> Self {
        let json = format!(
            r#"{{"type":"tool_result","tool_use_id":{},"content":{},"is_error":true}}"#,
            quoted(id),
            quoted(text)
        );
        Self::new(json, BlockKind::ToolResult, Some(id.into()))
    }

    /// Makes a block of JSON of this kind and id, as `object` had them.
    fn with_json<'o>(
        json: impl Into<Box<str>>,
        kind: BlockKind,
        id: Option<Str<'o>>,
        object: Option<&Object<'o>>,
    ) -> Self {
        let json = json.into();
        let id = id.zip(object);
        let id = id.map_or(CallId::NONE, |(id, object)| {
            let start = (id.as_ptr() as usize).wrapping_sub(object.text().as_ptr() as usize);
            let end = start.saturating_add(id.len());
            // An id with escapes, or in changed JSON, is not a part of the text at these offsets.
            match (u32::try_from(start), u32::try_from(end)) {
                (Ok(from), Ok(to)) if json.get(start..end) == Some(&*id) => CallId::In(from, to),
                _ => CallId::Own(id.into()),
            }
        });
        Self {
            id,
            ..Self::new(json, kind, None)
        }
    }

    pub(super) fn new(json: impl Into<Box<str>>, kind: BlockKind, id: Option<Box<str>>) -> Self {
        Self {
            json: Json::Own(json.into()),
            id: id.map_or(CallId::NONE, CallId::Own),
            origin: None,
            kind,
            is_plain: false,
            is_sound: false,
            is_call_for_all: false,
            has_cut_input: false,
            has_printed_numbers: false,
        }
    }

    /// Returns the block with this origin: any number by which the caller recognizes it, such as
    /// that of an entry. What the passes make of the block keeps it, and [`Log`](super::Log) and
    /// [`lint`](super::lint()) name it.
    pub fn with_origin(mut self, origin: Option<usize>) -> Self {
        self.set_origin(origin);
        self
    }

    /// Notes that the input of a call is a part of what the model wrote, as its stream ended early.
    /// The result that a pass makes for such a call says so.
    pub fn mark_cut_input(&mut self) {
        self.has_cut_input = self.kind == BlockKind::ToolUse;
    }

    /// Returns whether it is a call with a [part of its input](Self::mark_cut_input).
    #[must_use]
    pub fn has_cut_input(&self) -> bool {
        self.has_cut_input
    }

    pub(super) fn set_origin(&mut self, origin: Option<usize>) {
        self.origin = origin;
    }

    /// Returns the block as JSON. One that stayed in its file is kept from then on: to write many of
    /// them, use a [`StoredReader`].
    #[must_use]
    pub fn json(&self) -> &str {
        match &self.json {
            Json::Own(json) => json,
            Json::Stored(stored) => stored.text(),
        }
    }

    /// Returns the length of the JSON, in bytes.
    #[must_use]
    pub fn json_len(&self) -> usize {
        self.stored().map_or_else(|| self.json().len(), Stored::len)
    }

    /// Returns the place of JSON that stayed in its file.
    pub(super) fn stored(&self) -> Option<&Stored> {
        match &self.json {
            Json::Own(_) => None,
            Json::Stored(stored) => Some(stored),
        }
    }

    /// Returns the kind of the block.
    #[must_use]
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// Returns the number that the caller gave the block; `None` for a synthetic one.
    #[must_use]
    pub fn origin(&self) -> Option<usize> {
        self.origin
    }

    /// Returns the id of the call, or of the call that the result belongs to.
    #[must_use]
    pub fn call_id(&self) -> Option<&str> {
        match &self.id {
            // The JSON starts with a brace, so 0 is the offset of no id.
            CallId::In(0, _) => None,
            CallId::In(start, end) => self.json().get(*start as usize..*end as usize),
            CallId::Own(id) => Some(id),
        }
    }

    /// Marks the block as one of a list: its message got more than its string (MSG-18).
    pub fn unlink_from_string(&mut self) {
        self.is_plain = false;
    }

    /// Prints each number as the double that the client reads (MSG-22).
    pub(super) fn print_numbers(&mut self) {
        if let (Json::Own(json), false) = (&self.json, self.has_printed_numbers)
            && let Some(printed) = as_doubles(json)
        {
            self.replace(printed);
        }
    }

    /// Returns whether the content was a string, not a list with this block.
    #[must_use]
    pub fn is_plain_string(&self) -> bool {
        self.is_plain
    }

    /// Returns the string that is the content when the block is the only one of its message, as
    /// JSON.
    pub(super) fn as_plain(&self) -> Option<&str> {
        if !self.is_plain {
            return None;
        }
        let string = self.json().strip_prefix(PLAIN_START)?.strip_suffix('}')?;
        Some(string)
    }

    /// Returns the block as an object; `None` when it is none.
    #[must_use]
    pub fn object(&self) -> Option<Object<'_>> {
        Object::parse(self.json()).ok()
    }

    /// Returns the field `text`, whatever the type of the block.
    #[must_use]
    pub fn text_field(&self) -> Option<Str<'_>> {
        Raw::parse(self.json()).ok().and_then(text_of)
    }

    /// Returns whether a text block is blank: it has no text, or only white space.
    pub(super) fn is_blank(&self) -> bool {
        // Most texts start with a letter, and long ones take time to parse.
        let is_plain = |text: &str| text.strip_prefix('"').is_some_and(starts_plainly);
        !self.json().strip_prefix(PLAIN_START).is_some_and(is_plain)
            && Raw::parse(self.json()).ok().is_none_or(is_blank)
    }

    /// Returns the side and the id of a call or result of a tool that the API runs itself.
    #[must_use]
    pub fn api_tool(&self) -> Option<(ApiTool, Box<str>)> {
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
        self.id = CallId::Own(id.into());
    }

    /// Appends a line feed to the text of a text block.
    pub fn end_with_newline(&mut self) {
        if self.kind == BlockKind::Text
            && let Some(json) = Raw::parse(self.json()).ok().and_then(with_newline)
        {
            self.replace(json);
        }
    }

    /// Replaces the JSON; the block keeps its id.
    fn replace(&mut self, json: String) {
        // Before the JSON changes, as the offsets of the id are those in the old text.
        if let Some(id) = self.call_id() {
            self.id = CallId::Own(id.into());
        }
        self.json = Json::Own(json.into());
    }

    /// Sets a field to `value`, which is JSON. Does nothing if the block is not an object.
    pub fn set(&mut self, key: &str, value: &str) {
        if let Some(object) = self.object() {
            self.replace(object.with(key, value));
            self.is_sound = false;
        }
    }

    /// Returns whether it is known that no pass changes the block itself and no provider objects to
    /// it in a message of the right role: it is a text that is not blank, signed thinking with its
    /// text, a call with a valid id, a name and an input, or the result of a call that did not fail
    /// and contains only texts. False does not mean the opposite.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Like [`Self::is_sound`] for the rules of a provider: those of some are narrower for the ids and names of calls.
    pub(super) fn is_sound_for(&self, provider: Provider) -> bool {
        let is_call = self.kind == BlockKind::ToolUse;
        self.is_sound && (!is_call || self.is_call_for_all || provider == Provider::Messages)
    }

    /// Returns whether it is thinking of any kind.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        matches!(self.kind, BlockKind::Thinking | BlockKind::SealedThinking)
    }
}

/// The two sides of a tool that the API runs itself: both are in one assistant message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiTool {
    /// The call.
    Call,
    /// Its result.
    Result,
}

impl TokenEstimate {
    /// Estimates one block, with what is in it. One that stayed in its file is not read for it.
    #[must_use]
    pub fn of(block: &Block) -> Self {
        if let Some(stored) = block.stored() {
            return stored.estimate();
        }
        match Object::parse(block.json()) {
            Ok(object) => Self::of_object(block.kind(), &object),
            Err(_) => Self::of_text(block.json()),
        }
    }
}

impl StoredReader {
    /// Returns the JSON of a block. [`Block::json`] would keep it in memory.
    ///
    /// # Errors
    /// When the file cannot be read, or was changed there.
    pub fn json<'r>(&'r mut self, block: &'r Block) -> std::io::Result<&'r str> {
        match block.stored() {
            Some(stored) if !stored.is_in_memory() => self.read(stored, READ_AHEAD),
            _ => Ok(block.json()),
        }
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Raw::parse(self.json())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

/// Keeps the JSON byte for byte. The block has no origin.
impl<'de> Deserialize<'de> for Block {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Raw::parse(json.get())
            .map(Self::verbatim)
            .map_err(D::Error::custom)
    }
}

/// Returns the id of a call, or of the call that a result belongs to.
fn id_of<'o>(kind: BlockKind, object: &Object<'o>) -> Option<Str<'o>> {
    let key = match kind {
        BlockKind::ToolUse | BlockKind::ServerToolUse => "id",
        _ => "tool_use_id",
    };
    object.get(key)?.str()
}

/// Returns whether a block needs no repair, as far as that shows without reading long strings.
/// `object` has its members as they were before [`Block::read`] changed them.
fn is_sound(kind: BlockKind, id: Option<&str>, object: &Object<'_>) -> bool {
    let get = |key: &str| object.get(key);
    let limits = Provider::Messages.limits();
    let starts_plainly = |text: Raw<'_>| {
        let string = text.text().strip_prefix('"');
        string.is_some_and(starts_plainly)
    };
    match kind {
        // One that starts like the placeholder for an empty message may be that.
        BlockKind::Text => {
            get("text").is_some_and(|text| starts_plainly(text) && !text.text().starts_with("\"("))
        }
        BlockKind::SealedThinking => {
            let signature = get("signature").map(Raw::text).unwrap_or_default();
            get("thinking").is_some_and(starts_plainly) && is_signature(signature.trim_matches('"'))
        }
        BlockKind::ToolUse => {
            id.is_some_and(|id| limits.is_call_id(id))
                && get("input").map(Raw::kind) == Some(JsonKind::Object)
                && get("name").is_some_and(|name| {
                    starts_plainly(name)
                        // Calls of these two tools are changed by a pass (MSG-15, MSG-21).
                        && name.str().is_some_and(|name| {
                            name != RENAMED_TOOL
                                && name != MESSAGE_TOOL
                                && limits.is_tool_name(&name)
                        })
                })
        }
        BlockKind::ToolResult => {
            let is_text = |block: &Raw<'_>| {
                let block = block.object();
                block.is_some_and(|block| {
                    BlockKind::of(&block) == BlockKind::Text && has_words(&block)
                })
            };
            let is_sound = |content: Raw<'_>| match content.kind() {
                JsonKind::String => true,
                _ => content
                    .array()
                    .is_some_and(|blocks| blocks.iter().all(is_text)),
            };
            // A failed result loses its images (MSG-13), so a pass has to see it.
            get("is_error").and_then(Raw::bool) != Some(true)
                && get("content").is_some_and(is_sound)
        }
        _ => false,
    }
}

/// Returns whether every provider accepts the id and the name of a call.
fn is_call_for_all(call: &Object<'_>) -> bool {
    let text = |key: &str| call.get(key).and_then(Raw::str);
    let (Some(id), Some(name)) = (text("id"), text("name")) else {
        return false;
    };
    let mut limits = Provider::ALL.iter().map(|provider| provider.limits());
    limits.all(|limits| limits.is_call_id(&id) && limits.is_tool_name(&name))
}

/// Returns whether a text may be the signature of thinking of Claude, which is Base64.
#[must_use]
pub fn is_signature(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    !text.is_empty() && text.bytes().all(is_digit)
}

/// Returns the field `text` of a block.
#[must_use]
pub fn text_of(raw: Raw<'_>) -> Option<Str<'_>> {
    raw.object()?.get("text")?.str()
}

/// Returns whether this is the type of a result of a tool that the API runs itself.
pub(super) fn is_api_result(type_name: &str) -> bool {
    type_name.ends_with("_tool_result")
}

/// Returns whether a text block is blank: it has no text, or only white space.
pub(super) fn is_blank(raw: Raw<'_>) -> bool {
    !raw.object().is_some_and(|block| has_words(&block))
}

/// Returns whether a block has a text with other characters than white space.
fn has_words(block: &Object<'_>) -> bool {
    let has_words = |text: Raw<'_>| {
        let is_plain = text.text().strip_prefix('"').is_some_and(starts_plainly);
        is_plain || text.str().is_some_and(|text| !text.chars().all(is_space))
    };
    block.get("text").is_some_and(has_words)
}

/// Returns whether the first visible character of a JSON string, given without its opening quote, is
/// ASCII. Then it is not blank, and the rest need not be read.
fn starts_plainly(string: &str) -> bool {
    let mut bytes = string.bytes();
    loop {
        match bytes.next() {
            Some(b' ') => {}
            Some(b'\\') => match bytes.next() {
                Some(b'n' | b't' | b'r') => {}
                escaped => return matches!(escaped, Some(b'"' | b'\\' | b'/')),
            },
            // Beyond ASCII there is more white space, and providers differ in it: the slow check decides.
            Some(byte) => return byte.is_ascii_graphic() && byte != b'"',
            None => return false,
        }
    }
}

/// Returns a block with a line feed appended to its text; `None` when it has no text.
#[must_use]
pub fn with_newline(raw: Raw<'_>) -> Option<String> {
    let object = raw.object()?;
    let text = object
        .get("text")
        .filter(|text| text.kind() == JsonKind::String)?;
    let open = text.text().strip_suffix('"')?;
    Some(object.with("text", &format!("{open}\\n\"")))
}

/// Returns whether each number of a block is as the client prints it. Strings, the longest parts of
/// blocks, are not looked at.
fn has_printed_numbers(object: &Object<'_>) -> bool {
    object
        .members()
        .iter()
        .all(|(_, value)| match value.kind() {
            JsonKind::Number | JsonKind::Array | JsonKind::Object => {
                as_doubles(value.text()).is_none()
            }
            JsonKind::String | JsonKind::Bool | JsonKind::Null => true,
        })
}

/// Returns whether the name of a cache breakpoint is anywhere in a block.
fn holds_cache_control(object: &Object<'_>) -> bool {
    const NAME: &str = "cache_control";
    static QUOTED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"cache_control\""));
    // Quotes inside of a string are escaped, so that only the whole string can be the name.
    object.members().iter().any(|(key, value)| {
        matches!(key, Cow::Borrowed(NAME))
            || match value.kind() {
                JsonKind::Object | JsonKind::Array | JsonKind::String => {
                    (value.kind() != JsonKind::String || value.text().len() == NAME.len() + 2)
                        && QUOTED.find(value.text().as_bytes()).is_some()
                }
                _ => false,
            }
    })
}

/// Returns the block without cache breakpoints: its own, and those of the blocks of a result.
fn without_cache_control(object: &Object<'_>) -> String {
    let members = object
        .members()
        .iter()
        .filter(|(key, _)| key != "cache_control");
    let members: Vec<String> = members
        .map(|(key, value)| {
            // Only blocks have breakpoints: a field of that name in the input of a call is content.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_keeps_its_id_when_its_json_changes() {
        let calls = [
            (r#"{"type":"tool_use","id":"t1"}"#, "t1"),
            (r#"{"type":"tool_use","id":"t\u0031"}"#, "t1"),
            (r#"{"type":"tool_use","id":"","cache_control":{}}"#, ""),
            (r#"{"cache_control":1,"type":"tool_use","id":"t1"}"#, "t1"),
            (r#"{"a":"\ud800","type":"tool_use","id":"t1"}"#, "t1"),
        ];
        for (json, id) in calls {
            let mut call = Block::read(Raw::parse(json).expect("test blocks are JSON"));
            assert_eq!(call.call_id(), Some(id), "{json}");
            call.set("type", r#""a_longer_type""#);
            assert_eq!(call.call_id(), Some(id), "{json}");
            call.rename("t2");
            assert_eq!(call.call_id(), Some("t2"), "{json}");
        }
        let text = Raw::parse(r#"{"type":"text","text":"t"}"#).expect("test blocks are JSON");
        assert_eq!(Block::read(text).call_id(), None);
    }
}
