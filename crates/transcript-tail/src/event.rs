//! What is told of a file.

use std::path::Path;
use std::sync::Arc;

use transcript_format::finding::Finding;

use crate::file_position::{Checkpoint, FilePosition};
use crate::live::ConversationChange;

/// An event, the file that it is about, and where following stood then.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FollowEvent {
    /// The file.
    pub path: Arc<Path>,
    /// What happened.
    pub kind: EventKind,
    pub(crate) position: FilePosition,
}

impl FollowEvent {
    /// Returns the place to go on from so that this event and those before it are not told again.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.position.checkpoint()
    }
}

/// Something that happened to a transcript, in the order of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The file is there, and is read from `offset` on.
    Open {
        /// The first byte that is read, which starts a line.
        offset: u64,
    },
    /// A whole line that is one entry, or an entry that was brought back from a damaged line.
    Entry(FollowedEntry),
    /// Something is wrong with a line. What could be brought back from it follows.
    Damaged(Finding),
    /// The file is not the one that it was, and is read from its start. What was told of it no
    /// longer stands there.
    Reset {
        /// What happened to it.
        reason: Reset,
        /// Up to where the file that it was had been told.
        offset: u64,
    },
    /// No file has the name any more. What is still written to the one that had it is told, until
    /// another one takes the name.
    Gone {
        /// Up to where the file was told.
        offset: u64,
        /// How many bytes come after that without a newline: a torn line.
        torn: u64,
    },
}

impl EventKind {
    /// Returns the place in the file that it is about, in bytes.
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
    /// How many bytes of the file it takes, without a newline.
    pub len: u64,
    /// The number of its line, from 1 on. `None` when what comes before was not read.
    pub line: Option<u64>,
    /// Its text: of a healthy line exactly what stands there.
    pub text: String,
    /// It was brought back from a line that holds more or less than one object.
    pub is_salvaged: bool,
    /// What it changed in the conversation. Empty without [`FollowOptions::changes`](crate::FollowOptions::changes).
    pub changes: Vec<ConversationChange>,
}

/// Why a file is read from its start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reset {
    /// It became shorter than what was told of it. A file that loses a line which nobody was told of,
    /// as a writer takes it back after an error, is not meant: that goes unseen.
    Truncated,
    /// Another file took its name, or its bytes are others than those that were told.
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
