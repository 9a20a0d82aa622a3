//! The output of `replay --json`.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use transcript_format::object::Str;
use transcript_reader::EntryNo;
use transcript_resume::{ConversationPath, Tree};

use super::location::uuid;
use super::records::records;
use super::text::{Json, around_value, text};
use super::{EntryRecord, Name, SCHEMA};
use transcript_session::History;

records! {
    /// A line of `replay --json`, in this order: `Session`, the entries, each branch or
    /// subagent followed by its entries, `End`.
    pub enum ReplayRecord {
        /// The session.
        Session(ReplayHead) = "session",
        /// An entry, oldest first.
        Entry(EntryRecord<'a>) = "entry",
        /// A branch follows (`--all-branches`).
        Branch(ReplayBranch) = "branch",
        /// The entries of a subagent follow (`--sidechains`).
        Sidechain(ReplaySidechain<'a>) = "sidechain",
        /// The end of the output.
        End(ReplayEnd) = "end",
    }
}

/// The session of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReplayHead {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// The id of the session; `None` if no entry names one.
    pub session_id: Option<String>,
    /// The path of the file; `-` for standard input.
    pub path: String,
    /// The policy that chose the path: `recover` or `vendor`.
    pub policy: Name,
    /// The uuid of the last entry of the path; `None` if there is no conversation.
    pub leaf: Option<String>,
    /// The number of physical lines of the whole file.
    pub lines: u64,
    /// The number of objects on them that may count as entries.
    pub entries: u64,
    /// The number of chapters: the parts of the conversation that compactions ended, and the one
    /// since the last compaction. Absent with `--in-context`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chapters: Option<u64>,
}

impl ReplayHead {
    /// Describes `history` and a path of it.
    #[must_use]
    pub fn new(history: &History, tree: &Tree<'_>, path: &ConversationPath) -> Self {
        let index = history.index();
        Self {
            schema: SCHEMA,
            session_id: history.session_id(),
            path: history.source().path().to_string_lossy().into_owned(),
            policy: tree.policy().name().into(),
            leaf: path.leaf.and_then(|leaf| uuid(index, leaf)),
            lines: index.line_count(),
            entries: index.len() as u64,
            chapters: None,
        }
    }
}

/// A branch that leaves the path. The entries that follow are those that were not printed before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReplayBranch {
    /// Its parent among the entries printed before; `None` if it has its own root.
    pub from: Option<String>,
    /// The uuid of its last entry.
    pub leaf: Option<String>,
}

impl ReplayBranch {
    /// Describes the branch `path`, which leaves the printed entries at the entry `from`.
    #[must_use]
    pub fn new(history: &History, from: Option<EntryNo>, path: &ConversationPath) -> Self {
        let uuid = |entry| uuid(history.index(), entry);
        Self {
            from: from.and_then(uuid),
            leaf: path.leaf.and_then(uuid),
        }
    }
}

/// A subagent in the file of another conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReplaySidechain<'a> {
    /// Its id; `None` in files of old clients.
    pub agent: Option<Str<'a>>,
}

impl<'a> ReplaySidechain<'a> {
    /// Names the subagent.
    #[must_use]
    pub fn new(agent: Option<&'a str>) -> Self {
        Self {
            agent: agent.map(Str::Borrowed),
        }
    }
}

/// The end of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReplayEnd {
    /// The number of findings about the file and the path.
    pub findings: u64,
    /// The number of decisions that led to the path.
    pub decisions: u64,
}

impl ReplayEnd {
    /// Counts the decisions of `path`.
    #[must_use]
    pub fn new(findings: usize, path: &ConversationPath) -> Self {
        Self {
            findings: findings as u64,
            decisions: path.decisions.len() as u64,
        }
    }
}

impl EntryRecord<'_> {
    /// Writes the record as one line: like [`text`], but verbatim values pass through `verbatim` and
    /// are copied; serializing would parse every byte again.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        mut self,
        out: &mut dyn Write,
        verbatim: impl Fn(&str) -> Cow<'_, str>,
    ) -> io::Result<()> {
        let (message, entry) = (self.message.take(), self.entry.take());
        let line = text(&ReplayRecord::Entry(self))?;
        let (head, tail) = around_value(&line, "\"message\":", "null");
        out.write_all(head.as_bytes())?;
        let message = message.as_ref().map_or("null", Json::text);
        out.write_all(verbatim(message).as_bytes())?;
        match entry {
            Some(entry) => {
                out.write_all(tail.strip_suffix('}').unwrap_or(tail).as_bytes())?;
                out.write_all(b",\"entry\":")?;
                out.write_all(verbatim(entry.text()).as_bytes())?;
                out.write_all(b"}")?;
            }
            None => out.write_all(tail.as_bytes())?,
        }
        out.write_all(b"\n")
    }
}
