//! A hit of a search.

use std::path::PathBuf;
use std::sync::Arc;

use transcript_reader::{Error, SessionRow};

use crate::files::CatalogSession;
use crate::matches::Match;
use crate::query::{Field, Role};

/// An error of a search, or of reading one hit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// The file was changed since it was scanned: what matched is no longer at its place.
    #[error("the file {0} changed during the search")]
    Changed(PathBuf),
    /// The search was [cancelled](crate::SearchOptions::cancel).
    #[error("the search was cancelled")]
    Cancelled,
}

/// One unit that matches: an entry, or a stored result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hit {
    /// The session.
    pub session: Arc<CatalogSession>,
    /// The row of the session in a list: title, working folder, times.
    pub row: Option<Arc<SessionRow>>,
    /// The file of the entry: that of the session, or of a subagent. For a stored result that belongs
    /// to no entry, the stored file.
    pub path: PathBuf,
    /// The line of the entry, from 1; `None` for a stored result that belongs to no entry.
    pub line: Option<u64>,
    /// The place of the entry in its file, in bytes.
    pub offset: u64,
    /// The length of the entry, in bytes.
    pub len: u64,
    /// The uuid of the entry.
    pub uuid: Option<String>,
    /// The time of the entry as it is in the file.
    pub timestamp: Option<String>,
    /// The role of its author; `None` for titles and other metadata.
    pub role: Option<Role>,
    /// The part of the entry that the snippet is from.
    pub field: Field,
    /// The number of the block that the snippet is from, from 0; `None` outside of messages.
    pub block: Option<u32>,
    /// The tool of a call or a result.
    pub tool: Option<String>,
    /// The subagent.
    pub agent_id: Option<String>,
    /// Whether the entry is part of the conversation, including what compactions removed; `false` if the
    /// conversation was rewound to before it.
    pub is_live: bool,
    /// Whether the model sees the entry when the conversation continues.
    pub is_in_context: bool,
    /// The stored result that the text is from.
    pub stored_result: Option<PathBuf>,
    /// The text around the match, unchanged: it may contain control characters.
    pub snippet: String,
    /// Whether the text has more before the snippet, and after it.
    pub is_cut: (bool, bool),
    /// The places of the terms in the snippet, in characters, in order and not overlapping. Empty if
    /// the query has no positive term.
    pub matches: Vec<std::ops::Range<usize>>,
    /// The score, which is only comparable within one search.
    pub score: f32,
    /// The copies of the entry that match as well.
    pub also: Vec<Copy>,
}

impl Hit {
    /// Returns the title of the session, else its first prompt.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        let row = self.row.as_ref()?;
        row.title.as_deref().or(row.first_prompt.as_deref())
    }

    /// Returns the kind of the text for people: `Bash result`, `assistant`.
    #[must_use]
    pub fn what(&self) -> String {
        let tool = self.tool.as_deref().unwrap_or("tool");
        match self.field {
            Field::ToolInput => format!("{tool} call"),
            Field::ToolResult => format!("{tool} result"),
            Field::Text => "assistant".to_owned(),
            field => field.name().to_owned(),
        }
    }

    /// Returns in words why the model does not see the entry; `None` if it does, and for what no model sees.
    #[must_use]
    pub fn why_unseen(&self) -> Option<&'static str> {
        let is_of_conversation = self.uuid.is_some() && self.role.is_some();
        match (self.is_live, self.is_in_context) {
            (false, _) => Some("rewound"),
            (true, false) if is_of_conversation => Some("compacted away"),
            _ => None,
        }
    }
}

/// A copy of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copy {
    /// The session that it is in.
    pub session_id: String,
    /// Its file.
    pub path: PathBuf,
    /// Its line, from 1.
    pub line: Option<u64>,
    /// Its uuid.
    pub uuid: Option<String>,
}

/// A hit and its copies: their places among the matches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) first: u32,
    pub(crate) len: u32,
    pub(crate) score: f32,
}

impl Group {
    /// Returns the one that is shown, and the others.
    pub(crate) fn of(self, found: &[Match]) -> (&Match, &[Match]) {
        let first = self.first as usize;
        let copies = first + 1..first + self.len as usize;
        (&found[first], &found[copies])
    }
}
