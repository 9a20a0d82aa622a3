//! Changes of the conversation of a followed file.

/// A change of the conversation by an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationChange {
    /// The offset in the file of the entry that made the change. That is an earlier entry than the
    /// one that the change is reported with if finding out took reading further.
    pub offset: u64,
    /// The kind of the change.
    pub kind: ChangeKind,
}

/// The kind of a change. Uuids are those of entries; `None` for an entry that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The conversation continues at another place: after a rewind, the return from one, or a pin.
    /// Calls on the abandoned branch are no longer open.
    Moved {
        /// The previous leaf.
        from: Option<Box<str>>,
        /// The last entry of the new path that the previous one has, too; `None` when the
        /// conversation starts over.
        fork: Option<Box<str>>,
        /// The new leaf.
        to: Option<Box<str>>,
    },
    /// The conversation before this entry was compacted.
    Boundary {
        /// The uuid of the boundary.
        uuid: Option<Box<str>>,
    },
    /// A tool was called, by the client or by the provider.
    CallOpened {
        /// The id of the call.
        id: Box<str>,
        /// The name of the tool.
        name: Option<Box<str>>,
    },
    /// An open call got its result.
    CallClosed {
        /// The id of the call.
        id: Box<str>,
    },
    /// An entry was tombstoned, together with the results of its calls, which are no longer open.
    Tombstoned {
        /// Its uuid.
        uuid: Box<str>,
    },
    /// The turn is over: the answer to the last prompt is complete, or was interrupted by the
    /// person or by an API error. Calls that have no result by then will get none.
    TurnEnded {
        /// The uuid of the last line of the answer; after an interruption, that of the interrupt or
        /// the error.
        uuid: Option<Box<str>>,
    },
}
