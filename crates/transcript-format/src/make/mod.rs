//! Constructors of entries: a function for each kind that programs with an agent write, and [`system`](system())
//! and [`metadata`](metadata()) for all others.
//!
//! A [`NewEntry`] is a plain value. Ids and times are passed in; the fields that a writer fills in
//! (`uuid`, `parentUuid`, `timestamp`, `sessionId`, `cwd`, `version`, …) may be omitted. Other
//! fields are added with [`NewEntry::with`].
//!
//! Content is never empty: an empty text, or a list without a block that is not empty, becomes
//! [`NO_CONTENT`]. The API would reject every later request that contains an empty block.
//!
//! ```
//! use transcript_format::{entry::Entry, make};
//!
//! let line = make::user("How long is a lunar month?")
//!     .uuid("7d253622-9c8e-4ea9-8922-de4809817dcb")
//!     .parent(None::<&str>)
//!     .with("sessionId", "95a1aa84-538a-430f-b8e1-2701ee64f263")
//!     .text();
//! assert!(line.starts_with(r#"{"parentUuid":null,"type":"user","message":{"role":"user","#));
//! assert_eq!(Entry::parse(&line)?.parent_uuid(), None);
//! # Ok::<(), transcript_format::object::ParseObjectError>(())
//! ```

mod client;
mod message;
mod metadata;
mod system;

use std::borrow::Cow;
use std::fmt;

use crate::json::{Json, ObjectBuf, object_text};
use crate::kind::EntryKind;

pub use crate::context_refs::InvalidRegion;
pub use crate::texts::NO_CONTENT;
pub use client::{
    cancelled, command, command_caveat, command_output, interrupt, memory_note, rejection, shell,
    shell_output, user_with_references,
};
pub use message::{
    InvalidMessage, SYNTHETIC_MODEL, ToolResult, api_error_message, assistant, assistant_text,
    compact_summary, meta, synthetic, tool_result, user, user_blocks,
};
pub use metadata::{
    InvalidProgress, agent_name, ai_title, attachment, custom_title, engine_line, last_prompt,
    metadata, mode, permission_mode, progress, tag, tombstone, tombstones,
};
pub use system::{
    Compaction, Level, Trigger, compact_boundary, informational, local_command, system,
    turn_duration,
};

/// The version of engine fields and engine lines.
pub const ENGINE_VERSION: u64 = 1;

/// A new entry: a JSON object with a known type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct NewEntry {
    kind: EntryKind,
    object: ObjectBuf,
}

impl NewEntry {
    fn new(kind: EntryKind) -> Self {
        let object = ObjectBuf::new().with("type", kind.name());
        Self { kind, object }
    }

    /// Returns the type of the entry.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Sets the field `key`.
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<Json>) -> Self {
        self.object.set(key, value);
        self
    }

    fn with_some(self, key: &'static str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Sets the id.
    pub fn uuid(self, uuid: impl fmt::Display) -> Self {
        self.with("uuid", Json::id(uuid))
    }

    /// Sets the parent; `None` makes the entry a root of the chain.
    pub fn parent(self, uuid: Option<impl fmt::Display>) -> Self {
        self.with("parentUuid", uuid.map(Json::id))
    }

    /// Sets the time, RFC 3339 in UTC with milliseconds as clients write it.
    pub fn timestamp(self, time: &str) -> Self {
        self.with("timestamp", time)
    }

    /// Sets the session.
    pub fn session_id(self, id: impl fmt::Display) -> Self {
        self.with("sessionId", Json::id(id))
    }

    /// Marks the entry as one of a subagent's sidechain.
    pub fn sidechain(self, agent_id: &str) -> Self {
        self.with("isSidechain", true).with("agentId", agent_id)
    }

    /// Sets the fields of this project, which other readers ignore: `{"v":1, …}` under the key
    /// `transcriptEngine`.
    pub fn engine(self, fields: &ObjectBuf) -> Self {
        let mut versioned = ObjectBuf::new().with("v", ENGINE_VERSION);
        for (key, value) in fields.members() {
            versioned.set(key.to_owned(), value.clone());
        }
        self.with("transcriptEngine", versioned)
    }

    /// Returns the value of the field `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.object.get(key)
    }

    /// Returns the entry as JSON, without a line end. Its members are in the order that clients
    /// write (see `docs/format.md`).
    #[must_use]
    pub fn text(&self) -> String {
        let mut members: Vec<_> = self.object.members().collect();
        if self.kind.is_chain() {
            members.sort_by_key(|(key, _)| self.place(key));
        }
        object_text(members)
    }

    /// Returns the sort position of `key` in a chain entry. Keys at one position keep their order.
    fn place(&self, key: &str) -> usize {
        const BODY_POSITION: usize = LEADING_KEYS.len();
        let place = |keys: &[&str]| keys.iter().position(|name| *name == key);
        if key == "type" && matches!(self.kind, EntryKind::Assistant | EntryKind::Attachment) {
            return BODY_POSITION + 1;
        }
        match (place(LEADING_KEYS), place(TRAILING_KEYS)) {
            (Some(place), _) => place,
            (None, Some(place)) => BODY_POSITION + 2 + place,
            (None, None) => BODY_POSITION,
        }
    }
}

impl fmt::Display for NewEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The keys before the body of a chain entry.
const LEADING_KEYS: &[&str] = &[
    "parentUuid",
    "logicalParentUuid",
    "isSidechain",
    "promptId",
    "agentId",
];

/// The keys after the body of a chain entry.
const TRAILING_KEYS: &[&str] = &[
    "uuid",
    "timestamp",
    "toolUseResult",
    "sourceToolAssistantUUID",
    "sourceToolUseID",
    "permissionMode",
    "origin",
    "promptSource",
    "userType",
    "entrypoint",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "slug",
    "transcriptEngine",
    "imported",
];
