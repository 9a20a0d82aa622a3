//! The output of `resume --to --json` and `convert --json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Name;

/// A session that is handed over to another agent, or converted to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HandOverRecord {
    /// The version of the shape: [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Always `handOver`.
    pub kind: Name,
    /// Whether it is written; else this is what would be.
    pub written: bool,
    /// The agent that gets the session, or the format of the file.
    pub target: Name,
    /// The id of the new session. It depends on the time: a session that is handed over again gets another one.
    pub session_id: String,
    /// The title of the new session.
    pub title: Option<String>,
    /// The working folder of the new session, in which its agent must be started.
    pub cwd: String,
    /// The home folder of the agent that gets the session; `None` for a file.
    pub home: Option<PathBuf>,
    /// The files that are new or longer, that with the conversation first; none for standard output.
    pub files: Vec<WrittenFileRecord>,
    /// The words of the command that continues the session; none if no command does.
    pub command: Vec<String>,
    /// The variables that the command needs.
    pub environment: BTreeMap<String, String>,
    /// The path of the session that is handed over.
    pub source: PathBuf,
    /// The agent that had the session, or the format of its file.
    pub source_agent: Name,
    /// The id of the session that is handed over.
    pub source_session_id: Option<String>,
    /// The number of secrets that were replaced; `None` if none were looked for.
    pub redactions: Option<u64>,
    /// What is omitted, changed and added.
    pub report: HandOverReport,
}

/// A file of a session that is handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WrittenFileRecord {
    /// Its path.
    pub path: PathBuf,
    /// The number of bytes that are written, or by which it gets longer.
    pub bytes: u64,
    /// Whether there was no such file.
    pub is_new: bool,
}

impl WrittenFileRecord {
    /// Describes a file that was written as a whole.
    #[must_use]
    pub fn new(path: PathBuf, bytes: u64) -> Self {
        Self {
            path,
            bytes,
            is_new: true,
        }
    }
}

/// What a hand-over omits, changes and adds. What it does not list arrives as it was. Items are named by their numbers, from 0, as in the list `live` of
/// `replay --format items`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HandOverReport {
    /// The number of items of the conversation.
    pub items: u64,
    /// The number of those that are written, whole or in part.
    pub carried: u64,
    /// How often each thing of the lists below happens, by its name.
    pub counts: BTreeMap<String, u64>,
    /// The items that are not written, in their order.
    pub omitted: Vec<OmittedItemRecord>,
    /// The items that are written with a change, in their order; several changes of one item are several entries.
    pub changed: Vec<ChangedItemRecord>,
    /// What is added, by the hand-over or by the agent when it continues the session.
    pub added: Vec<AddedItemRecord>,
    /// The models that wrote parts of it. No agent receives them: each continues with its own.
    pub models: BTreeSet<String>,
    /// The number of items whose tokens are known. They are not written: the agent would add them to its own.
    pub usage: u64,
    /// The number of thoughts that their maker signed or encrypted. Other makers refuse them.
    pub signatures: u64,
}

/// An item that is not written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OmittedItemRecord {
    /// Its number.
    pub item: u64,
    /// Its kind, as in items, such as `reasoning`.
    pub kind: Name,
    /// Why it is not written: `reasoning`, `context`, `resultWithoutCall`, `repeatedResult` or `empty`.
    pub reason: Name,
}

/// An item that is written with a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChangedItemRecord {
    /// Its number.
    pub item: u64,
    /// What changes, such as `callId`, `toolName`, `inputWrapped` or `resultMoved`.
    pub change: Name,
    /// What it was; only for ids and names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What it is now; only for ids and names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The number of images; only for images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<u64>,
}

/// What is added to a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AddedItemRecord {
    /// The number of the item beside which it stands.
    pub item: u64,
    /// What it is: `prompt`, `result` or `answer`.
    pub what: Name,
}
