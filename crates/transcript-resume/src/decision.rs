//! What was chosen on the way to a path, and why.

/// One choice. Entries are named by the number of their candidate in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The path ends here.
    Leaf {
        /// The leaf.
        entry: u32,
        /// Why this one.
        reason: LeafReason,
    },
    /// A `last-prompt` line pins the leaf, and newer entries stand in the file that the path does
    /// not show.
    PinHidesNewer {
        /// The pinned leaf.
        entry: u32,
        /// The last tip of the file.
        newer: u32,
    },
    /// A uuid stands in the file more than once: the last content counts, at the first place.
    Repeated {
        /// The line that counts.
        entry: u32,
        /// The line that it replaces.
        replaced: u32,
    },
    /// Progress lines between an entry and its parent were passed over.
    Progress {
        /// The entry.
        entry: u32,
        /// The parent that was found behind them.
        parent: u32,
    },
    /// The parent is lost; the entry before it in time takes its place.
    Relink {
        /// The entry whose parent is lost.
        entry: u32,
        /// The entry that was taken.
        parent: u32,
        /// How much older that one is, in milliseconds.
        gap_millis: u64,
    },
    /// The parent is lost and no entry stands close enough in time: the history ends here.
    Truncated {
        /// The entry whose parent is lost.
        entry: u32,
    },
    /// The parent already stands on the path: the link is a cycle and taken as lost.
    Cycle {
        /// The entry whose link closes the cycle.
        entry: u32,
    },
    /// The conversation starts at this boundary; what stands before it was compacted away.
    Cut {
        /// The compact boundary.
        boundary: u32,
        /// How many messages of the conversation before it are not kept.
        hidden: u32,
    },
    /// Entries from before a boundary were put behind its anchor.
    Splice {
        /// The compact boundary.
        boundary: u32,
        /// Which form named them.
        form: SpliceForm,
        /// How many entries were kept.
        kept: u32,
        /// How many other entries from before the boundary are gone with that.
        removed: u32,
    },
    /// A boundary names entries to keep, but one of them is not in the file: nothing is kept.
    SpliceIgnored {
        /// The compact boundary.
        boundary: u32,
        /// Which form named them.
        form: SpliceForm,
    },
    /// The parent is lost; what is known about it leads to this entry.
    Bridge {
        /// The entry whose parent is lost.
        entry: u32,
        /// The entry that is above it now.
        parent: u32,
        /// What speaks for that.
        evidence: Evidence,
    },
    /// The parent is lost and nothing proves what stood there: the history ends here.
    Gap {
        /// The entry whose parent is lost.
        entry: u32,
        /// Why there is no bridge.
        reason: GapReason,
        /// How many messages of the main conversation stand before it in the file. They are not
        /// shown.
        hidden: u32,
    },
    /// The entry was brought back from a damaged line.
    Salvage {
        /// The entry.
        entry: u32,
    },
    /// Entries of another session stand in the file; they are no part of the conversation.
    Foreign {
        /// The first of them.
        entry: u32,
        /// How many there are.
        count: u32,
    },
    /// An entry that no longer counts, as a line of this engine says, or one that goes with it. The
    /// path leaves it out: it stood between two of its entries, or beside or behind one.
    Tombstoned {
        /// The entry that is left out.
        entry: u32,
    },
    /// The client's path shows more of the conversation than what the evidence led to, and was taken.
    Client {
        /// The leaf.
        entry: u32,
        /// How many messages more.
        more: u32,
    },
    /// Lines of one API message, or results of its calls, that hang outside the chain.
    Siblings {
        /// The first line of the message on the path.
        entry: u32,
        /// How many lines were brought back.
        recovered: u32,
    },
}

/// What speaks for a bridge over a lost parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// The line of the parent is there and names its own parent, but it is no entry: its body cannot
    /// be used, or its type is not known.
    Unusable,
    /// Another file of the session holds the parent, and names what is above it.
    OtherFile,
    /// The parent's uuid stands on several lines, and the one before the entry stands further down
    /// the conversation.
    LaterCopy,
    /// A boundary before the entry says that it keeps the parent: what it keeps follows its anchor,
    /// and the entry follows that.
    Kept,
    /// Two entries name each other's parents: exchanged back, both follow the line before them.
    Exchanged,
    /// The result answers a call of this entry.
    Call,
    /// Both are lines of one answer.
    Message,
    /// The entry before it in the file, in the same session and chain, has no other child, and the
    /// times agree.
    FileOrder,
    /// This entry was written up to five seconds before, as the client joins them: of several ends
    /// that a rewind left, or where nothing else is known.
    Time,
}

impl Evidence {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unusable => "unusable",
            Self::OtherFile => "other-file",
            Self::LaterCopy => "later-copy",
            Self::Kept => "kept",
            Self::Exchanged => "exchanged",
            Self::Call => "call",
            Self::Message => "message",
            Self::FileOrder => "file-order",
            Self::Time => "time",
        }
    }

    /// Returns what it says, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unusable => "the line of the parent is there, but it cannot be used as an entry",
            Self::OtherFile => "another file of the session holds the parent",
            Self::LaterCopy => "the parent stands in the file again, further down",
            Self::Kept => "the boundary before it says that it keeps the parent",
            Self::Exchanged => "two entries name each other's parents",
            Self::Call => "the result answers one of its calls",
            Self::Message => "both are lines of one answer",
            Self::FileOrder => "it stands before it in the file and has no other child",
            Self::Time => "it was written right before, and the client joins them, too",
        }
    }

    /// Returns how sure the bridge is.
    #[must_use]
    pub const fn confidence(self) -> Confidence {
        match self {
            Self::Unusable | Self::OtherFile | Self::Kept | Self::Call | Self::Message => {
                Confidence::Proved
            }
            Self::LaterCopy | Self::Exchanged | Self::FileOrder | Self::Time => Confidence::Likely,
        }
    }
}

/// How sure a bridge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Confidence {
    /// The link stands in a file.
    Proved,
    /// All that is there speaks for it, but the link itself is lost.
    Likely,
}

impl Confidence {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Likely => "likely",
        }
    }
}

/// Why a lost parent was not bridged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// No entry of the same session and chain stands before it.
    NothingBefore,
    /// The entry before it opens a branch that a rewind made, or the conversation went on under it
    /// elsewhere.
    Rewind,
    /// The entry before it is newer.
    Time,
    /// It is the summary of a compaction whose boundary is lost.
    Boundary,
    /// The entry before it belongs to another session.
    OtherSession,
    /// The parent stands in another file, which leads to no entry of this one: a subagent that
    /// started from its parent's conversation.
    OtherFile,
}

impl GapReason {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NothingBefore => "nothing-before",
            Self::Rewind => "rewind",
            Self::Time => "time",
            Self::Boundary => "boundary",
            Self::OtherSession => "other-session",
            Self::OtherFile => "other-file",
        }
    }

    /// Returns the reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NothingBefore => "no entry of the same conversation stands before it",
            Self::Rewind => "a rewind stands before it",
            Self::Time => "the entry before it is newer",
            Self::Boundary => "it follows a compaction whose boundary is lost",
            Self::OtherSession => "the entry before it belongs to another session",
            Self::OtherFile => "its parent stands in another file",
        }
    }
}

/// Why an entry is the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeafReason {
    /// The last tip of the file.
    LastTip,
    /// There is no tip, as the entries form a cycle: the last entry of the file.
    LastEntry,
    /// The message with the newest timestamp, as the last tip is a boundary that nothing follows.
    Newest,
    /// A `last-prompt` line names it.
    Pinned,
    /// The last line behind a `last-prompt` line, which is a child of the entry named there.
    AfterPin,
    /// The caller asked for it.
    Asked,
}

impl LeafReason {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LastTip => "last-tip",
            Self::LastEntry => "last-entry",
            Self::Newest => "newest",
            Self::Pinned => "pinned",
            Self::AfterPin => "after-pin",
            Self::Asked => "asked",
        }
    }
}

/// How a boundary names the entries that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpliceForm {
    /// `preservedMessages`.
    List,
    /// `preservedSegment`.
    Segment,
}

impl Decision {
    /// Returns the stable name of the kind of decision.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Leaf { .. } => "leaf",
            Self::PinHidesNewer { .. } => "pin-hides-newer",
            Self::Repeated { .. } => "repeated",
            Self::Progress { .. } => "progress",
            Self::Relink { .. } => "relink",
            Self::Truncated { .. } => "truncated",
            Self::Cycle { .. } => "cycle",
            Self::Cut { .. } => "cut",
            Self::Splice { .. } => "splice",
            Self::SpliceIgnored { .. } => "splice-ignored",
            Self::Bridge { .. } => "bridge",
            Self::Gap { .. } => "gap",
            Self::Salvage { .. } => "salvage",
            Self::Foreign { .. } => "foreign",
            Self::Tombstoned { .. } => "tombstoned",
            Self::Client { .. } => "client",
            Self::Siblings { .. } => "siblings",
        }
    }

    /// Returns the candidate that the decision is about.
    #[must_use]
    pub const fn entry(&self) -> u32 {
        match *self {
            Self::Leaf { entry, .. }
            | Self::PinHidesNewer { entry, .. }
            | Self::Repeated { entry, .. }
            | Self::Progress { entry, .. }
            | Self::Relink { entry, .. }
            | Self::Truncated { entry }
            | Self::Cycle { entry }
            | Self::Bridge { entry, .. }
            | Self::Gap { entry, .. }
            | Self::Salvage { entry }
            | Self::Foreign { entry, .. }
            | Self::Tombstoned { entry }
            | Self::Client { entry, .. }
            | Self::Siblings { entry, .. } => entry,
            Self::Cut { boundary, .. }
            | Self::Splice { boundary, .. }
            | Self::SpliceIgnored { boundary, .. } => boundary,
        }
    }
}
