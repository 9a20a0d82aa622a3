//! Entries before they are written: their contents, and the fields that are still to be filled in.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use memchr::memchr;
use serde_json::{Map, Value};
use transcript_format::ids::Uuid;
use transcript_format::json::Json;
use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::lines::DEFAULT_LINE_CAP;
use transcript_format::make::{self, NewEntry};
use transcript_format::object::{JsonKind, Object, Raw};
use transcript_format::scan::{Flags, Scanner, ToolRole};

use crate::error::ErrorKind;

/// The id of an entry.
///
/// `EntryId::from` accepts any string, because files contain any. [`parse`](str::parse) is for an id
/// that a person typed or a program passed: it rejects an empty string, white space and control
/// characters.
///
/// ```
/// use transcript_writer::EntryId;
///
/// let id: EntryId = "0b932c9f-9928-4cec-9e82-22c1703d5f54".parse()?;
/// assert_eq!(id.to_string(), "0b932c9f-9928-4cec-9e82-22c1703d5f54");
/// let error = "0b932c9f\n".parse::<EntryId>().unwrap_err();
/// assert_eq!(error.to_string(), "not the id of an entry: white space or a control character (byte 8)");
/// # Ok::<(), transcript_writer::InvalidEntryId>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntryId {
    /// A uuid in its canonical form.
    Uuid(Uuid),
    /// Any other string, as written by older tools.
    Odd(Box<str>),
}

impl From<&str> for EntryId {
    fn from(text: &str) -> Self {
        Uuid::parse(text.as_bytes()).map_or_else(|| Self::Odd(text.into()), Self::Uuid)
    }
}

impl From<Uuid> for EntryId {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid)
    }
}

impl FromStr for EntryId {
    type Err = InvalidEntryId;

    /// Parses an id that somebody gave. A uuid in its canonical form, lower case, is
    /// [`Uuid`](Self::Uuid); everything else is [`Odd`](Self::Odd), because ids are compared as
    /// they are written.
    ///
    /// # Errors
    /// When the text is empty, or contains white space or a control character: then more than an id
    /// was copied.
    fn from_str(text: &str) -> Result<Self, InvalidEntryId> {
        if text.is_empty() {
            return Err(InvalidEntryId { at: None });
        }
        let is_foreign = |c: char| c.is_whitespace() || c.is_control();
        match text.find(is_foreign) {
            Some(at) => Err(InvalidEntryId { at: Some(at) }),
            None => Ok(Self::from(text)),
        }
    }
}

/// The reason why a text is not the id of an entry. Names a byte of the text and never quotes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidEntryId {
    /// The first byte that no id has; `None` when the text is empty.
    at: Option<usize>,
}

impl fmt::Display for InvalidEntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the id of an entry: ")?;
        match self.at {
            Some(at) => write!(f, "white space or a control character (byte {at})"),
            None => f.write_str("the text is empty; give the `uuid` of an entry"),
        }
    }
}

impl std::error::Error for InvalidEntryId {}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => uuid.fmt(f),
            Self::Odd(text) => f.pad(text),
        }
    }
}

/// An entry to be written: one JSON object.
///
/// Its bytes stay as they are. Fields that an entry of its kind needs and that are missing are
/// added when it is written: `uuid`, `parentUuid`, `timestamp`, `sessionId`, `cwd`, `version`,
/// `isSidechain`, `userType`, `gitBranch` and `entrypoint` if the writer knows them, and
/// `sourceToolAssistantUUID` for tool results.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Draft {
    /// The members of the object, without its braces and without newlines.
    inside: String,
    pub(crate) kind: EntryKind,
    pub(crate) uuid: Option<EntryId>,
    pub(crate) parent: Parent,
    /// The chain that it belongs to: the id of an agent; `None` for the main chain.
    pub(crate) chain: Option<Box<str>>,
    /// The ids of the calls that it makes, and of those that it answers.
    pub(crate) calls: Vec<Box<str>>,
    pub(crate) results: Vec<Box<str>>,
    /// The entries that a compaction boundary preserves; `None` for other entries.
    pub(crate) keeps: Option<Vec<EntryId>>,
    /// The pin that a `last-prompt` line sets or clears.
    pub(crate) pin: Option<Pin>,
    /// The entry that a tombstone of the stream protocol withdraws.
    withdrawn: Option<EntryId>,
    has: PresentMembers,
    /// Why readers would not find it in the conversation, although it looks like a part of it.
    fault: Option<&'static str>,
    /// A call that it answers must be open when it is written.
    pub(crate) needs_open_calls: bool,
    /// It is a copy of a line of a file, so its escapes are not checked.
    is_copy: bool,
}

/// The effect of a `last-prompt` line with a leaf (LEAF-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// Names the uuid of zeros, and so clears the previous pin.
    Cleared,
    /// Names the end of the conversation.
    Set,
}

impl Pin {
    pub(crate) fn of(leaf: &EntryId) -> Self {
        if *leaf == EntryId::Uuid(Uuid::ZERO) {
            Self::Cleared
        } else {
            Self::Set
        }
    }
}

/// The entry that a draft is to be a child of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// For a tool result, the entry of its call; otherwise the last entry of its chain.
    Chain,
    /// No entry: the draft starts a conversation.
    Root,
    /// The entry with this id.
    Entry(EntryId),
}

/// The members that the text of a draft already has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PresentMembers {
    uuid: bool,
    parent: bool,
    timestamp: bool,
    session: bool,
    cwd: bool,
    version: bool,
    git_branch: bool,
    entrypoint: bool,
    sidechain: bool,
    user_type: bool,
    source: bool,
    agent: bool,
}

/// The reason why a text is not an entry. Names a byte of the text and never quotes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an entry: {reason} (byte {at})")]
pub struct InvalidEntry {
    reason: &'static str,
    at: usize,
}

impl InvalidEntry {
    /// Returns a short description.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// Returns the offset of the first byte that is not valid.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }
}

impl From<Infallible> for InvalidEntry {
    /// A [`Draft`] converts into itself without an error.
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

const fn invalid(reason: &'static str, at: usize) -> InvalidEntry {
    InvalidEntry { reason, at }
}

impl Draft {
    /// Parses a JSON object with a `type` as an entry.
    ///
    /// # Errors
    /// When readers would treat the line as damage: it is not an object, is not UTF-8, has control
    /// bytes in strings, is nested too deeply or too long, repeats a key that links entries, or has
    /// a `uuid` that is not a string. Also when a string contains a character that some readers
    /// cannot represent: NUL (`\u0000`), or half of a surrogate pair (`\ud83d` alone).
    pub fn entry(json: &str) -> Result<Self, InvalidEntry> {
        // JSON allows these escapes, and our readers take them: other readers lose the line, or end the text there.
        match unwanted_escape(json.trim_ascii()) {
            Some((reason, at)) => Err(invalid(reason, at)),
            None => Self::read(json),
        }
    }

    /// Parses an entry of a file, to be written again word for word: as [`entry`](Self::entry), but
    /// its strings may contain anything that another tool wrote.
    ///
    /// # Errors
    /// When readers would treat the line as damage.
    pub fn copy(json: &str) -> Result<Self, InvalidEntry> {
        Ok(Self {
            is_copy: true,
            // A fork copies every line that readers accept, also those that another tool wrote in an odd form.
            fault: None,
            withdrawn: None,
            ..Self::read(json)?
        })
    }

    fn read(json: &str) -> Result<Self, InvalidEntry> {
        let text = json.trim_ascii();
        // Written, such a line would be damage: readers skip it, and the links of its children lead nowhere.
        if text.len() > DEFAULT_LINE_CAP {
            return Err(invalid("longer than readers accept", DEFAULT_LINE_CAP));
        }
        let mut scanner = Scanner::new();
        let envelope = scanner
            .scan(text.as_bytes())
            .map_err(|error| invalid(error.kind.reason(), error.at))?;
        let flags = envelope.flags();
        // Readers differ in which of two equal keys counts, so links would depend on the reader.
        if flags.contains(Flags::DUPLICATE_NAME) {
            return Err(invalid("duplicate key", 0));
        }
        if flags.contains(Flags::TOO_MANY) {
            return Err(invalid("more members or blocks than readers accept", 0));
        }
        if flags.intersects(Flags::UUID_ODD | Flags::UUID_EMPTY | Flags::UUID_NULL) {
            return Err(invalid("uuid is not a string", 0));
        }
        let object = Object::parse(text).map_err(|_| invalid("not a JSON object", 0))?;
        let kind_name = object.get("type").and_then(Raw::str);
        if kind_name.is_none_or(|name| name.is_empty()) {
            return Err(invalid("missing type", 0));
        }
        let has = |key: &str| object.get(key).is_some();
        let parent = match object.get("parentUuid") {
            None => Parent::Chain,
            Some(raw) if raw.is_null() => Parent::Root,
            Some(raw) => match raw.str() {
                Some(id) => Parent::Entry(EntryId::from(&*id)),
                None => return Err(invalid("parentUuid is not a string", 0)),
            },
        };
        let agent = envelope.agent_id().map(|id| id.decode().into());
        let ids = |role: ToolRole| {
            let tools = envelope.tools().filter(move |tool| tool.role == role);
            tools.map(|tool| tool.id.decode().into()).collect()
        };
        // The braces are added again when the line is written, with the missing members before and after these.
        let inside = inside(text);
        Ok(Self {
            kind: envelope.kind(),
            uuid: envelope.uuid().map(|id| EntryId::from(&*id.decode())),
            parent,
            // Clients of 1.0.x write no agent id: their sidechains count as one chain.
            chain: flags
                .contains(Flags::SIDECHAIN)
                .then(|| agent.unwrap_or_default()),
            calls: ids(ToolRole::Use),
            results: ids(ToolRole::Result),
            keeps: keeps(&object, envelope.kind()),
            pin: pin(&object, envelope.kind()),
            withdrawn: withdrawn(&object, envelope.kind()),
            fault: fault(&object, envelope.kind()),
            needs_open_calls: false,
            has: PresentMembers {
                uuid: has("uuid"),
                parent: has("parentUuid"),
                timestamp: has("timestamp"),
                session: has("sessionId"),
                cwd: has("cwd"),
                version: has("version"),
                git_branch: has("gitBranch"),
                entrypoint: has("entrypoint"),
                sidechain: has("isSidechain"),
                user_type: has("userType"),
                source: has("sourceToolAssistantUUID"),
                agent: has("agentId"),
            },
            is_copy: false,
            // Line breaks can only be white space between the parts of the object.
            inside: if has_line_break(inside) {
                inside.replace(['\n', '\r'], " ")
            } else {
                inside.to_owned()
            },
        })
    }

    /// Creates a prompt.
    ///
    /// ```
    /// use transcript_writer::Draft;
    ///
    /// let prompt = Draft::user("Which years have a leap day?");
    /// # assert_ne!(prompt, Draft::user("Which years have none?"));
    /// ```
    pub fn user(text: &str) -> Self {
        Self::made(&make::user(text))
    }

    /// Returns the result of the call with this id, as text. Convert a [`make::tool_result`] with
    /// `try_from` for images, errors and structured output.
    ///
    /// ```
    /// use transcript_format::make;
    /// use transcript_writer::Draft;
    ///
    /// let result = Draft::tool_result("toolu_01", "366 days");
    /// let same = make::tool_result(make::ToolResult::text("toolu_01", "366 days"));
    /// assert_eq!(result, Draft::try_from(same)?);
    /// # Ok::<(), transcript_writer::InvalidEntry>(())
    /// ```
    pub fn tool_result(call: &str, text: &str) -> Self {
        let entry = make::tool_result(make::ToolResult::text(call, text));
        Self {
            results: vec![call.into()],
            ..Self::made(&entry)
        }
    }

    /// Returns the line that sets the title of the session.
    pub fn custom_title(title: &str) -> Self {
        Self::made(&make::custom_title(title))
    }

    /// Returns the line that sets the tag of the session.
    pub fn tag(tag: &str) -> Self {
        Self::made(&make::tag(tag))
    }

    /// Wraps an entry that has no ids, as its text has just been made.
    fn made(entry: &NewEntry) -> Self {
        Self {
            inside: inside(&entry.text()).to_owned(),
            kind: entry.kind(),
            uuid: None,
            parent: Parent::Chain,
            chain: None,
            calls: Vec::new(),
            results: Vec::new(),
            keeps: None,
            pin: None,
            withdrawn: None,
            has: PresentMembers::default(),
            fault: None,
            needs_open_calls: false,
            is_copy: false,
        }
    }

    /// Checks that an entry that looks like a part of the conversation is one: readers show nothing
    /// of a `user` or `assistant` entry without a message, and of a message in an entry of another
    /// type.
    ///
    /// # Errors
    /// When they would not. A [copy](Self::copy) is never refused.
    pub fn check_conversation(&self) -> Result<(), InvalidEntry> {
        match self.fault {
            Some(reason) => Err(invalid(reason, 0)),
            None => Ok(()),
        }
    }

    /// Returns the kind of the entry.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Returns the ids of the calls that it makes.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|id| &**id)
    }

    /// Returns the ids of the calls that it has results for.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.results.iter().map(|id| &**id)
    }

    /// Returns the entry that it withdraws, if it is a tombstone of the stream protocol:
    /// `{"type":"tombstone","message":{"uuid":"…",…}}`. It is never written as it is, as no reader
    /// honours it: see [`Writer::record`](crate::Writer::record).
    #[must_use]
    pub fn withdrawn(&self) -> Option<&EntryId> {
        self.withdrawn.as_ref()
    }

    /// Returns whether it is in the chain of a subagent, in the file of its caller.
    #[must_use]
    pub fn is_sidechain(&self) -> bool {
        self.chain.is_some()
    }

    /// Writes it only if the calls that it has results for have none yet.
    pub fn needing_open_calls(mut self) -> Self {
        self.needs_open_calls = true;
        self
    }

    /// Returns whether readers accept the line that was made of the entry.
    pub(crate) fn is_readable(&self, line: &str) -> bool {
        // The line is longer than the draft: the cap has to be checked again with all members.
        line.len() <= DEFAULT_LINE_CAP && (self.is_copy || unwanted_escape(line).is_none())
    }

    /// Creates a line that states where the conversation ends.
    pub(crate) fn pin(leaf: EntryId) -> Self {
        Self {
            pin: Some(Pin::of(&leaf)),
            ..Self::made(&make::last_prompt(None, Some(leaf), true))
        }
    }

    /// Creates the line that a client writes in the course of a conversation: its leaf, and the last
    /// prompt of the person. It gives way to the entries below.
    pub(crate) fn leaf(prompt: Option<&str>, leaf: EntryId) -> Self {
        Self {
            pin: Some(Pin::of(&leaf)),
            ..Self::made(&make::last_prompt(prompt, Some(leaf), false))
        }
    }

    /// Creates a line that ends the conversation at `leaf`; before the first entry without one.
    pub(crate) fn ending_at(leaf: Option<EntryId>) -> Self {
        leaf.map_or_else(Self::unpin, Self::pin)
    }

    /// Creates the engine line that removes these entries from the conversation.
    pub(crate) fn tombstones(entries: &[EntryId]) -> Result<Self, ErrorKind> {
        // One line for all of them: a crash leaves all removed, or none (docs/format.md).
        Self::try_from(&make::tombstones(entries)).map_err(|_| ErrorKind::InvalidEntry)
    }

    /// Returns the entry that this line pins.
    pub(crate) fn pinned(&self) -> Option<EntryId> {
        self.pin?;
        Some(EntryId::from(self.text_of("leafUuid")?.as_str()))
    }

    /// Creates a line that clears a pin.
    pub(crate) fn unpin() -> Self {
        Self::pin(EntryId::Uuid(Uuid::ZERO))
    }

    /// Creates the entries of an answer of a model: one for each block of the message, each with
    /// its id and usage, as clients write them (see `docs/format.md`, "Parallel tools").
    ///
    /// ```
    /// use transcript_writer::Draft;
    ///
    /// let message = r#"{"id": "msg_01", "type": "message", "role": "assistant", "model": "m",
    ///     "content": [{"type": "text", "text": "Let me see."},
    ///         {"type": "tool_use", "id": "toolu_01", "name": "Calendar", "input": {"year": 2000}}]}"#;
    /// assert_eq!(Draft::assistant(message)?.len(), 2);
    /// # Ok::<(), transcript_writer::InvalidEntry>(())
    /// ```
    ///
    /// # Errors
    /// When `message` is not a message of the assistant: an object with a list or a string as `content`, and no other role.
    pub fn assistant(message: &str) -> Result<Vec<Self>, InvalidEntry> {
        Self::assistant_with(message, |entry| entry)
    }

    /// As [`assistant`](Self::assistant), with what `complete` makes of each entry.
    ///
    /// # Errors
    /// The same.
    pub fn assistant_with(
        message: &str,
        complete: impl Fn(NewEntry) -> NewEntry,
    ) -> Result<Vec<Self>, InvalidEntry> {
        let message =
            Object::parse(message).map_err(|_| invalid("the message is not an object", 0))?;
        // A prompt passed by mistake would be shown as words of the model.
        if message.str("role").is_some_and(|role| role != "assistant") {
            return Err(invalid("the role of the message is not `assistant`", 0));
        }
        let entries = make::assistant(&message)
            .map_err(|_| invalid("the content of the message is not a list", 0))?;
        let entries = entries.into_iter().map(complete);
        entries.map(Self::try_from).collect()
    }

    /// Sets the parent, and ignores one in the text.
    pub fn parent(mut self, parent: EntryId) -> Self {
        self.set_parent(Parent::Entry(parent));
        self
    }

    /// As [`Self::parent`], for any kind of parent.
    pub(crate) fn set_parent(&mut self, parent: Parent) {
        if self.has.parent {
            self.drop_member("parentUuid");
            self.has.parent = false;
        }
        self.parent = parent;
    }

    /// Adds a member, or replaces the one with that name.
    pub(crate) fn set(&mut self, key: &str, text: &str) {
        self.drop_member(key);
        self.inside.push(',');
        self.inside.push_str(&quoted(key));
        self.inside.push(':');
        self.inside.push_str(&quoted(text));
    }

    /// Returns whether both have the same fields, regardless of `sessionId`, the order of the
    /// members, and escapes.
    pub(crate) fn has_same_fields(&self, other: &Self) -> bool {
        let members = |draft: &Self| {
            let text = format!("{{{}}}", draft.inside);
            let mut members: Map<String, Value> = serde_json::from_str(&text).ok()?;
            members.remove("sessionId");
            Some(members)
        };
        // Equal bytes are the usual case, as clients repeat their lines (META-1), and need no parse.
        self.inside == other.inside
            || self.kind == other.kind
                && members(self).is_some_and(|own| Some(own) == members(other))
    }

    /// Returns what `read` finds in the members.
    fn find<T>(&self, read: impl FnOnce(&Object<'_>) -> Option<T>) -> Option<T> {
        let text = format!("{{{}}}", self.inside);
        read(&Object::parse(&text).ok()?)
    }

    /// Returns the value of a member that is a string.
    pub(crate) fn text_of(&self, key: &str) -> Option<String> {
        self.find(|object| Some(object.str(key)?.into_owned()))
    }

    pub(crate) fn has_member(&self, key: &str) -> bool {
        self.find(|object| object.get(key).map(drop)).is_some()
    }

    /// Sets the id of the entry if its kind has one and it is missing.
    pub(crate) fn identify(&mut self, id: impl FnOnce() -> Uuid) {
        if self.kind.is_chain() && self.uuid.is_none() {
            self.uuid = Some(EntryId::Uuid(id()));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.inside.len()
    }

    /// Sets `usage` and `stop_reason` of the message; both are JSON.
    pub(crate) fn amend(&mut self, usage: Option<&str>, stop_reason: Option<&str>) -> bool {
        let amended = self.find(|entry| {
            let mut message = entry.get("message")?.object()?.text().to_owned();
            for (key, value) in [("usage", usage), ("stop_reason", stop_reason)] {
                let Some(value) = value else { continue };
                Raw::parse(value).ok()?;
                message = Object::parse(&message).ok()?.with(key, value);
            }
            Some(entry.with("message", &message))
        });
        // The values of the caller are JSON, but may have line feeds between them, which would tear the line.
        let is_fine = |text: &String| {
            !has_line_break(text)
                && unwanted_escape(text).is_none()
                && Scanner::new().scan(text.as_bytes()).is_ok()
        };
        let Some(amended) = amended.filter(is_fine) else {
            return false;
        };
        self.inside = inside(&amended).to_owned();
        true
    }

    fn drop_member(&mut self, key: &str) {
        let rest = self.find(|object| {
            object.get(key)?;
            let members = object.members().iter().filter(|(name, _)| name != key);
            let members = members.map(|(name, value)| format!("{}:{}", quoted(name), value.text()));
            Some(members.collect::<Vec<_>>().join(","))
        });
        if let Some(rest) = rest {
            self.inside = rest;
        }
    }

    /// Writes the line, including the newline.
    pub(crate) fn write(&self, line: &mut String, fill: &FieldValues<'_>) {
        // A message of the stream protocol names its subagent by the call that started it.
        let agent = match &self.chain {
            Some(agent) if fill.agent.is_empty() && !agent.is_empty() => Json::id(agent),
            _ => Json::null(),
        };
        let agent = if agent.is_null() {
            fill.agent
        } else {
            agent.text()
        };
        line.push('{');
        // Links come first, as clients write them: lists recognize an entry by the start of its line.
        if self.kind.is_chain() {
            if !self.has.parent {
                line.push_str("\"parentUuid\":");
                match fill.parent {
                    Some(parent) => push_id(line, parent),
                    None => line.push_str("null"),
                }
                line.push(',');
            }
            if !self.has.sidechain {
                let is_sidechain = !agent.is_empty();
                line.push_str("\"isSidechain\":");
                line.push_str(if is_sidechain { "true," } else { "false," });
            }
        }
        line.push_str(&self.inside);
        if self.kind.is_chain() {
            if let (false, Some(uuid)) = (self.has.uuid, &self.uuid) {
                line.push_str(",\"uuid\":");
                push_id(line, uuid);
            }
            if let (false, Some(source)) = (self.has.source, fill.source) {
                line.push_str(",\"sourceToolAssistantUUID\":");
                push_id(line, source);
            }
        }
        let mut add = |is_there: bool, key: &str, value: &str| {
            if !is_there && !value.is_empty() {
                line.push_str(",\"");
                line.push_str(key);
                line.push_str("\":");
                line.push_str(value);
            }
        };
        if self.kind.is_chain() {
            add(self.has.agent, "agentId", agent);
            add(self.has.timestamp, "timestamp", fill.timestamp);
            add(self.has.user_type, "userType", "\"external\"");
            add(self.has.entrypoint, "entrypoint", fill.entrypoint);
            add(self.has.cwd, "cwd", fill.cwd);
        }
        add(self.has.session, "sessionId", fill.session);
        if self.kind.is_chain() {
            add(self.has.version, "version", fill.version);
            add(self.has.git_branch, "gitBranch", fill.git_branch);
        }
        line.push_str("}\n");
    }
}

impl TryFrom<&NewEntry> for Draft {
    type Error = InvalidEntry;

    /// Converts a new entry; see [`Self::entry`] for the errors.
    fn try_from(entry: &NewEntry) -> Result<Self, InvalidEntry> {
        Self::entry(&entry.text())
    }
}

impl TryFrom<NewEntry> for Draft {
    type Error = InvalidEntry;

    /// Converts a new entry; see [`Self::entry`] for the errors.
    fn try_from(entry: NewEntry) -> Result<Self, InvalidEntry> {
        Self::try_from(&entry)
    }
}

/// Returns the entries that a compaction boundary preserves.
fn keeps(object: &Object<'_>, kind: EntryKind) -> Option<Vec<EntryId>> {
    let subtype = object.str("subtype")?;
    if kind != EntryKind::System || subtype != SystemKind::CompactBoundary.name() {
        return None;
    }
    // `Some` also without a list: any boundary clears a pin and ends the calls before it.
    let list = || {
        let metadata = object.get("compactMetadata")?.object()?;
        let messages = metadata.get("preservedMessages")?.object()?;
        let ids = messages.get("uuids")?.array()?;
        let ids = ids.into_iter().filter_map(Raw::str);
        Some(ids.map(|id| EntryId::from(&*id)).collect())
    };
    Some(list().unwrap_or_default())
}

fn pin(object: &Object<'_>, kind: EntryKind) -> Option<Pin> {
    if kind != EntryKind::LastPrompt {
        return None;
    }
    Some(Pin::of(&EntryId::from(&*object.str("leafUuid")?)))
}

/// Returns the entry that a tombstone of the stream protocol withdraws.
fn withdrawn(object: &Object<'_>, kind: EntryKind) -> Option<EntryId> {
    let message = (kind == EntryKind::Tombstone).then(|| object.object("message"));
    let uuid = message.flatten()?.str("uuid")?;
    (!uuid.is_empty()).then(|| EntryId::from(&*uuid))
}

/// Returns why an entry that looks like a part of the conversation is none.
fn fault(object: &Object<'_>, kind: EntryKind) -> Option<&'static str> {
    if kind == EntryKind::Tombstone {
        let names_one = withdrawn(object, kind).is_some();
        return (!names_one).then_some("a tombstone whose `message` has no `uuid`");
    }
    let is_answer = kind == EntryKind::Assistant;
    if !is_answer && kind != EntryKind::User {
        let is_unknown = kind == EntryKind::Other;
        let is_placed = |key: &&str| object.get(key).is_some();
        // Unknown metadata lines are allowed: newer clients write some. With these members it is a misspelled message.
        let looks_like_one = ["message", "content", "parentUuid"].iter().any(is_placed);
        return (is_unknown && looks_like_one)
            .then_some("its `type` is unknown; a message is `user` or `assistant`");
    }
    let Some(message) = object.get("message") else {
        return Some("its `message` is missing");
    };
    let Some(message) = message.object() else {
        return Some("its `message` is not an object");
    };
    // Readers take the role from the type: a message of the other role would change sides.
    match message.get("role").map(|role| role.str()) {
        Some(Some(role)) if (role == "assistant") == is_answer => {}
        None => {}
        Some(_) => return Some("the role of its message is not its `type`"),
    }
    let content = message.get("content");
    let is_block = |block: Raw<'_>| {
        let kind = block.object().and_then(|block| block.str("type").map(drop));
        kind.is_some()
    };
    match content.map(Raw::kind) {
        Some(JsonKind::String) => None,
        Some(JsonKind::Array) => {
            let blocks = content.and_then(Raw::array).unwrap_or_default();
            let are_blocks = blocks.into_iter().all(is_block);
            (!are_blocks).then_some("its content has a block that is not an object with a `type`")
        }
        Some(_) => Some("its content is neither a text nor a list of blocks"),
        None => Some("its message has no `content`"),
    }
}

/// Finds an escape that is valid JSON but that some readers cannot represent: NUL, which ends
/// strings in some languages and which databases refuse, and half of a surrogate pair, which is not
/// a character. Returns a description and the offset.
fn unwanted_escape(json: &str) -> Option<(&'static str, usize)> {
    let bytes = json.as_bytes();
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut next = 0;
    while let Some(found) = bytes.get(next..).and_then(|rest| memchr(b'\\', rest)) {
        let at = next + found;
        // Past the escaped character: `\\u0000` is a backslash and five characters, not a NUL.
        next = at + 2;
        match unit(at) {
            Some(0) => return Some(("a NUL character in a string", at)),
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => {
                next = at + 12;
            }
            Some(0xD800..=0xDFFF) => return Some(("half of a surrogate pair in a string", at)),
            _ => {}
        }
    }
    None
}

/// Returns the text between the braces of an object.
fn inside(object: &str) -> &str {
    let text = object.strip_prefix('{');
    let text = text.and_then(|text| text.strip_suffix('}'));
    text.unwrap_or(object)
}

fn has_line_break(text: &str) -> bool {
    memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some()
}

/// The values for the missing fields of a draft, as JSON except for ids; empty for none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldValues<'a> {
    pub(crate) parent: Option<&'a EntryId>,
    /// The entry with the call that a result answers.
    pub(crate) source: Option<&'a EntryId>,
    pub(crate) timestamp: &'a str,
    pub(crate) session: &'a str,
    /// The agent, if the file is that of an agent.
    pub(crate) agent: &'a str,
    pub(crate) cwd: &'a str,
    pub(crate) version: &'a str,
    pub(crate) git_branch: &'a str,
    pub(crate) entrypoint: &'a str,
}

/// Returns `text` as JSON.
pub(crate) fn quoted(text: &str) -> String {
    // Serializing a string cannot fail: it has no keys or numbers that could be invalid.
    serde_json::to_string(text).unwrap_or_default()
}

fn push_id(json: &mut String, id: &EntryId) {
    match id {
        EntryId::Uuid(uuid) => {
            json.push('"');
            json.push_str(std::str::from_utf8(&uuid.text()).unwrap_or_default());
            json.push('"');
        }
        EntryId::Odd(text) => json.push_str(&quoted(text)),
    }
}
