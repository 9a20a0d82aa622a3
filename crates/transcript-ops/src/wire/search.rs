//! The output of `search --json`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use transcript_catalog::{CatalogSession, Copy, Hit, SearchTotals};
use transcript_reader::SessionRow;

use super::records::records;
use super::text::Json;
use super::{Name, SCHEMA};

records! {
    /// A line of `search --json`: hits, or with `--files` sessions, the best first; then `End`.
    pub enum SearchRecord {
        /// An entry.
        Hit(Box<HitRecord>) = "hit",
        /// A session with hits (`--files`).
        Session(FoundSession) = "session",
        /// The end of the output.
        End(SearchEnd) = "end",
    }
}

/// An entry that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HitRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The name of the file of the session without `.jsonl`.
    pub session_id: String,
    /// The path of the file of the entry: that of the session or of a subagent.
    pub path: String,
    /// The name of the project folder.
    pub project: String,
    /// The name of the root of the session, if several roots are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The title of the session, else its first prompt.
    pub title: Option<String>,
    /// The time of the entry.
    pub timestamp: Option<String>,
    /// The line of the entry, from 1; `None` for a stored result that belongs to no entry.
    pub line: Option<u64>,
    /// The place of the entry in its file, in bytes.
    pub offset: u64,
    /// The uuid of the entry.
    pub uuid: Option<String>,
    /// The author of the entry: `user`, `assistant`, `tool` or `system`; `None` for metadata.
    pub role: Option<Name>,
    /// The part of the entry that the snippet is from: `prompt`, `text`, `thinking`, `tool_input`,
    /// `tool_result`, `title`, `summary`, `attachment` or `queued`.
    pub field: Name,
    /// The number of its block, from 0; `None` outside of messages.
    pub block: Option<u32>,
    /// The tool of a call or of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether the entry is part of the conversation; `false` if it was rewound to before it.
    pub live: bool,
    /// Whether the model sees the entry when the conversation continues.
    pub in_context: bool,
    /// The subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_id: Option<String>,
    /// The same, under its former name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The file of the result that the snippet is from, if it is not in the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_result: Option<String>,
    /// The text around the match.
    pub snippet: String,
    /// The first match: where it starts and ends in the snippet, in characters. `None` without words.
    #[serde(rename = "match")]
    pub found: Option<(u64, u64)>,
    /// The copies of the entry, in other sessions or in the same one.
    pub also: Vec<CopyRecord>,
}

/// A copy of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CopyRecord {
    /// The session that it is in.
    pub session_id: String,
    /// Its line, from 1.
    pub line: Option<u64>,
    /// Its uuid.
    pub uuid: Option<String>,
}

/// A session with hits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FoundSession {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The name of its file without `.jsonl`.
    pub session_id: String,
    /// The path of its file; without a file, the path where it would be.
    pub path: String,
    /// The name of its project folder.
    pub project: String,
    /// The name of the root of the session, if several roots are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Its title, else its first prompt.
    pub title: Option<String>,
    /// The time of its last message, as `list --json` has it.
    pub modified: Option<String>,
    /// The number of hits, without copies.
    pub hits: u64,
}

/// The end of a search. The numbers do not depend on `--limit`; but in the order of time, sessions after
/// the last needed one are not searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SearchEnd {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The number of hits, without copies.
    pub hits: u64,
    /// The number of sessions with hits.
    pub sessions: u64,
    /// The number of bytes that were searched.
    pub bytes: u64,
    /// The number of sessions that were searched.
    pub scanned: u64,
    /// The number of damaged lines and of files that could not be searched.
    pub unread: u64,
}

impl HitRecord {
    /// Describes a hit.
    #[must_use]
    pub fn new(hit: &Hit) -> Self {
        Self {
            schema: SCHEMA,
            session_id: hit.session.id.clone(),
            path: hit.path.display().to_string(),
            project: hit.session.project.clone(),
            root: None,
            title: hit.title().map(str::to_owned),
            timestamp: hit.timestamp.clone(),
            line: hit.line,
            offset: hit.offset,
            uuid: hit.uuid.clone(),
            role: hit.role.map(|role| role.name().into()),
            field: hit.field.name().into(),
            block: hit.block,
            tool: hit.tool.clone(),
            live: hit.is_live,
            in_context: hit.is_in_context,
            subagent_id: hit.agent_id.clone(),
            agent_id: hit.agent_id.clone(),
            stored_result: (hit.stored_result.as_ref()).map(|path| path.display().to_string()),
            snippet: hit.snippet.clone(),
            found: (hit.matches.first()).map(|found| (found.start as u64, found.end as u64)),
            also: hit.also.iter().map(CopyRecord::new).collect(),
        }
    }
}

impl CopyRecord {
    fn new(copy: &Copy) -> Self {
        Self {
            session_id: copy.session_id.clone(),
            line: copy.line,
            uuid: copy.uuid.clone(),
        }
    }
}

impl FoundSession {
    /// Describes a session.
    #[must_use]
    pub fn new(session: &CatalogSession, row: Option<&SessionRow>, hits: u64) -> Self {
        let title = row.and_then(|row| row.title.clone().or_else(|| row.first_prompt.clone()));
        Self {
            schema: SCHEMA,
            session_id: session.id.clone(),
            path: session.path.display().to_string(),
            project: session.project.clone(),
            root: None,
            title,
            modified: row.and_then(|row| row.modified.clone()),
            hits,
        }
    }
}

impl SearchEnd {
    /// Describes what a search did.
    #[must_use]
    pub fn new(end: &SearchTotals) -> Self {
        Self {
            schema: SCHEMA,
            hits: end.hits,
            sessions: end.sessions,
            bytes: end.bytes,
            scanned: end.scanned,
            unread: end.unread,
        }
    }
}
