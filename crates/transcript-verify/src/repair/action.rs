//! The actions of a repair, for people and for JSON.

use transcript_format::finding::{Code, Finding};
use transcript_format::named;

named! {
    /// The kind of a change of one line, or of bytes between lines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum ActionKind {
        /// An entry of a damaged line gets a line of its own.
        Salvage = "salvage",
        /// Bytes that no reader uses are moved to the file of lost bytes.
        Move = "move",
        /// A line that is in the file twice is omitted once.
        Drop = "drop",
        /// An entry of another session is moved to a file of its own.
        SplitOut = "split-out",
        /// Text that a provider refuses is replaced.
        Text = "text",
        /// An image or document that the API refuses becomes a note, or gets its right form.
        Media = "media",
        /// The last line gets a newline.
        EndLine = "end-line",
        /// An entry gets an id.
        Uuid = "uuid",
        /// An entry gets another parent.
        Parent = "parent",
        /// Calls get a result.
        Answer = "answer",
        /// A boundary names the entries that it preserves.
        Splice = "splice",
        /// A line names the end of the conversation.
        Pin = "pin",
    }
}

/// One change, for people and for JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Action {
    /// The defect that it repairs.
    pub code: Code,
    /// The 1-based number of the line in the file that is repaired; `None` for one that was made.
    pub line: Option<u64>,
    /// The id of the entry, if it has one.
    pub uuid: Option<String>,
    /// The kind of the change.
    pub action: ActionKind,
    /// A short description that never quotes the line.
    pub detail: String,
}

impl Action {
    pub(super) fn of_bytes(finding: &Finding) -> Self {
        Self {
            code: finding.code,
            line: finding.line,
            uuid: None,
            action: ActionKind::Move,
            detail: format!("{} bytes at offset {}", finding.len, finding.offset),
        }
    }
}
