//! The events of a followed file.

use std::path::Path;
use std::sync::Arc;

use transcript_format::finding::Finding;
use transcript_format::scan::{Envelope, EnvelopeFields};

use crate::change::ConversationChange;
use crate::file_position::{Checkpoint, FilePosition};

/// An event, its file, and the position after it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowEvent {
    /// The file.
    pub path: Arc<Path>,
    /// The kind of the event.
    pub kind: EventKind,
    pub(crate) position: FilePosition,
}

impl FollowEvent {
    /// Returns the position after this event. A follower that starts there does not emit this event
    /// or earlier ones again.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.position.checkpoint()
    }
}

/// An event of a transcript, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The file was opened, and is read from `offset` on.
    Open {
        /// The first byte that is read, which starts a line.
        offset: u64,
    },
    /// A complete line that is one entry, or an entry that was salvaged from a damaged line.
    Entry(FollowedEntry),
    /// A line is damaged. Entries that could be salvaged from it follow.
    Damaged(Finding),
    /// The file was replaced or truncated, and is read from its start. Earlier events of it are
    /// obsolete.
    Reset {
        /// The cause.
        reason: Reset,
        /// The position in the old file up to which events were emitted.
        offset: u64,
    },
    /// The file does not have its name any more. What is still written to it is emitted until
    /// another file takes the name.
    Gone {
        /// The position up to which events were emitted.
        offset: u64,
        /// The number of bytes after that without a newline: a torn line.
        torn: u64,
    },
}

impl EventKind {
    /// Returns the offset in the file that the event is about, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match self {
            Self::Open { offset } | Self::Reset { offset, .. } | Self::Gone { offset, .. } => {
                *offset
            }
            Self::Entry(entry) => entry.offset,
            Self::Damaged(finding) => finding.offset,
        }
    }
}

/// An entry: one JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowedEntry {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// The number of bytes that it takes in the file, without the newline.
    pub len: u64,
    /// The line number, from 1. `None` when the lines before were not read.
    pub line: Option<u64>,
    /// The text; of an undamaged line, exactly its bytes.
    pub text: String,
    /// Whether it was salvaged from a line that contains more or less than one object.
    pub is_salvaged: bool,
    /// The changes of the conversation by this entry. Empty without
    /// [`FollowOptions::changes`](crate::FollowOptions::changes).
    pub changes: Vec<ConversationChange>,
    /// The fields that the scan found in the text.
    pub(crate) fields: Option<Box<EnvelopeFields>>,
}

impl FollowedEntry {
    /// Returns the envelope of an undamaged line, without its tools; `None` for a salvaged entry.
    #[must_use]
    pub fn envelope(&self) -> Option<Envelope<'_>> {
        self.fields.as_ref()?.of(self.text.as_bytes())
    }
}

/// The reason why a file is read from its start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reset {
    /// The file became shorter than the part that was emitted. Not reported when only a line that
    /// was not emitted is removed, as a writer does after a failed write.
    Truncated,
    /// Another file took its name, or bytes that were emitted have changed.
    Replaced,
}

impl Reset {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Replaced => "replaced",
        }
    }
}
