//! The path of a conversation, kept up to date entry by entry.

/// Something that an entry changed in the conversation that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The offset of the entry in the file.
    pub offset: u64,
    /// What changed.
    pub kind: ChangeKind,
}

/// What an entry changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The conversation goes on at another place than where it stood: a rewind, or back from one.
    Moved {
        /// The leaf before.
        from: Option<Box<str>>,
        /// The last entry that both have; `None` when it starts anew.
        fork: Option<Box<str>>,
        /// The leaf now.
        to: Option<Box<str>>,
    },
    /// What came before was compacted.
    Boundary {
        /// The uuid of the boundary.
        uuid: Option<Box<str>>,
    },
    /// A tool was called.
    CallOpened {
        /// The id of the call.
        id: Box<str>,
    },
    /// A call that was open has its result.
    CallClosed {
        /// The id of the call.
        id: Box<str>,
    },
    /// An entry was taken back.
    Tombstoned {
        /// Its uuid.
        uuid: Box<str>,
    },
    /// The turn is over: the answer to the last prompt is whole.
    TurnEnded {
        /// The uuid of the answer.
        uuid: Option<Box<str>>,
    },
}

/// The path of the conversation in a file that grows.
#[derive(Debug, Default)]
pub struct LivePath {}

impl LivePath {
    /// Starts with no entry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether no entry was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        true
    }

    /// Returns whether the turn is over.
    #[must_use]
    pub fn is_turn_over(&self) -> bool {
        false
    }

    /// Takes the next entry of the file, and adds to `changes` what it changed.
    pub fn add(&mut self, _offset: u64, _text: &str, _changes: &mut Vec<Change>) {}
}
