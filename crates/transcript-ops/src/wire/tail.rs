//! The output of `tail --json`.

use std::path::Path;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use transcript_format::object::Str;
use transcript_tail::{ChangeKind, ConversationChange, EventKind};

use super::records::records;
use super::text::Json;
use super::{EntryRecord, Name};

records! {
    /// A line of `tail --json`, in the order of the events. Records of changes (`--changes`, from
    /// `Moved` on) follow the entry that made them.
    pub enum TailRecord {
        /// An entry was written.
        Entry(EntryRecord<'a>) = "entry",
        /// A file was opened; only if a folder is followed.
        Open(OpenRecord<'a>) = "open",
        /// A line is damaged. Entries that were salvaged from it follow.
        Bad(BadRecord<'a>) = "bad",
        /// A file was truncated or replaced, and is printed again from its start.
        Reset(ResetRecord<'a>) = "reset",
        /// A file was deleted or renamed.
        Gone(GoneRecord<'a>) = "gone",
        /// The conversation continues on another branch.
        Moved(MovedRecord<'a>) = "moved",
        /// The entries before this one were compacted.
        Boundary(ChangeRecord<'a>) = "boundary",
        /// A tool was called.
        CallOpened(CallRecord<'a>) = "call-opened",
        /// The result of a call was written.
        CallClosed(CallRecord<'a>) = "call-closed",
        /// An entry was tombstoned.
        Tombstoned(ChangeRecord<'a>) = "tombstoned",
        /// The answer to the last prompt is complete; its last entry.
        TurnEnd(ChangeRecord<'a>) = "turn-end",
    }
}

/// A file that was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OpenRecord<'a> {
    /// The absolute path of the file.
    pub path: Str<'a>,
    /// The first byte that is read.
    pub offset: u64,
}

/// A damaged line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct BadRecord<'a> {
    /// Its number, from 1; `None` if the lines before were not read.
    pub line: Option<u64>,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its length in bytes, without the newline.
    pub len: u64,
    /// The code of the finding (`docs/format.md`).
    pub code: Name,
    /// The defect, for people; never quotes the line.
    pub detail: Name,
    /// The absolute path of the file.
    pub path: Str<'a>,
}

/// A file that is printed again from its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ResetRecord<'a> {
    /// The cause: `truncated` or `replaced`.
    pub reason: Name,
    /// The absolute path of the file.
    pub path: Str<'a>,
    /// The position in the old file up to which it had been read, in bytes.
    pub offset: u64,
}

/// A file that does not have its name any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct GoneRecord<'a> {
    /// The absolute path that the file had.
    pub path: Str<'a>,
    /// The position up to which it was read, in bytes.
    pub offset: u64,
    /// The number of bytes after its last newline.
    pub torn: u64,
}

/// The conversation continues on another branch. Without a uuid, an entry is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct MovedRecord<'a> {
    /// The previous leaf.
    pub from: Option<Str<'a>>,
    /// The last entry that both branches have; `None` if the conversation starts a new root.
    pub fork: Option<Str<'a>>,
    /// The new leaf.
    pub to: Option<Str<'a>>,
    /// The absolute path of the file.
    pub path: Str<'a>,
    /// The offset of the entry that made the change.
    pub offset: u64,
}

/// A change that concerns one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ChangeRecord<'a> {
    /// The uuid of the entry; `None` if it has none.
    pub uuid: Option<Str<'a>>,
    /// The absolute path of the file.
    pub path: Str<'a>,
    /// The offset of the entry that made the change.
    pub offset: u64,
}

/// A change that concerns one tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CallRecord<'a> {
    /// The id of the call.
    pub id: Str<'a>,
    /// The name of the tool; only of `call-opened`, and absent if the call has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str<'a>>,
    /// The absolute path of the file.
    pub path: Str<'a>,
    /// The offset of the entry that made the change.
    pub offset: u64,
}

impl<'a> TailRecord<'a> {
    /// Returns the record of an event of the file at `path`; `None` for entries, whose record needs
    /// more than the event ([`EntryRecord::from_body`]).
    #[must_use]
    pub fn from_event(path: &'a Path, event: &EventKind) -> Option<Self> {
        let path = path.to_string_lossy();
        Some(match event {
            EventKind::Open { offset } => Self::Open(OpenRecord {
                path,
                offset: *offset,
            }),
            EventKind::Damaged(finding) => Self::Bad(BadRecord {
                line: finding.line,
                offset: finding.offset,
                len: finding.len,
                code: finding.code.as_str().into(),
                detail: finding.detail.into(),
                path,
            }),
            EventKind::Reset { reason, offset } => Self::Reset(ResetRecord {
                reason: reason.name().into(),
                path,
                offset: *offset,
            }),
            EventKind::Gone { offset, torn } => Self::Gone(GoneRecord {
                path,
                offset: *offset,
                torn: *torn,
            }),
            _ => return None,
        })
    }

    /// Returns the record of a change of the conversation in the file at `path`; `None` for changes
    /// that are not printed.
    #[must_use]
    pub fn from_change(path: &'a Path, change: &'a ConversationChange) -> Option<Self> {
        let path = path.to_string_lossy();
        let offset = change.offset;
        Some(match &change.kind {
            ChangeKind::Moved { from, fork, to } => Self::Moved(MovedRecord {
                from: text(from),
                fork: text(fork),
                to: text(to),
                path,
                offset,
            }),
            ChangeKind::Boundary { uuid } => {
                Self::Boundary(ChangeRecord::new(text(uuid), path, offset))
            }
            ChangeKind::CallOpened { id, name } => Self::CallOpened(CallRecord {
                id: Str::Borrowed(id),
                name: text(name),
                path,
                offset,
            }),
            ChangeKind::CallClosed { id } => Self::CallClosed(CallRecord {
                id: Str::Borrowed(id),
                name: None,
                path,
                offset,
            }),
            ChangeKind::Tombstoned { uuid } => {
                Self::Tombstoned(ChangeRecord::new(Some(Str::Borrowed(uuid)), path, offset))
            }
            ChangeKind::TurnEnded { uuid } => {
                Self::TurnEnd(ChangeRecord::new(text(uuid), path, offset))
            }
            _ => return None,
        })
    }
}

fn text(text: &Option<Box<str>>) -> Option<Str<'_>> {
    text.as_deref().map(Str::Borrowed)
}

impl<'a> ChangeRecord<'a> {
    fn new(uuid: Option<Str<'a>>, path: Str<'a>, offset: u64) -> Self {
        Self { uuid, path, offset }
    }
}
