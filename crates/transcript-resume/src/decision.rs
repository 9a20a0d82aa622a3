//! The decisions that led to a path, with their reasons.

use transcript_reader::EntryNo;

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The path ends here.
    Leaf {
        /// The leaf.
        entry: EntryNo,
        /// Why this entry.
        reason: LeafReason,
    },
    /// A `last-prompt` line pins the leaf, and the file contains newer entries that the path does
    /// not show.
    PinHidesNewer {
        /// The pinned leaf.
        entry: EntryNo,
        /// The last tip of the file.
        newer: EntryNo,
    },
    /// A uuid is in the file more than once: the last body counts, at the first place.
    Repeated {
        /// The line that counts.
        entry: EntryNo,
        /// The line that it replaces.
        replaced: EntryNo,
    },
    /// Progress lines between an entry and its parent were passed over.
    Progress {
        /// The entry.
        entry: EntryNo,
        /// The parent above them.
        parent: EntryNo,
    },
    /// The parent is missing and is replaced by the previous entry in time.
    Relink {
        /// The entry whose parent is missing.
        entry: EntryNo,
        /// The replacement.
        parent: EntryNo,
        /// How much older the replacement is, in milliseconds.
        gap_millis: u64,
    },
    /// The parent is missing and no entry is close enough in time: the history ends here.
    Truncated {
        /// The entry whose parent is missing.
        entry: EntryNo,
    },
    /// The parent is already on the path: the link is a cycle and counts as missing.
    Cycle {
        /// The entry whose link closes the cycle.
        entry: EntryNo,
    },
    /// The conversation starts at this boundary; everything before it was compacted.
    Cut {
        /// The compact boundary.
        boundary: EntryNo,
        /// How many messages of the conversation before it are not preserved.
        hidden: u32,
    },
    /// Entries from before a boundary were moved after its anchor.
    Splice {
        /// The compact boundary.
        boundary: EntryNo,
        /// Which field named them.
        form: SpliceForm,
        /// How many entries were preserved.
        kept: u32,
        /// How many other entries from before the boundary were removed.
        removed: u32,
    },
    /// A boundary names preserved entries, but one of them is not in the file: none is preserved.
    SpliceIgnored {
        /// The compact boundary.
        boundary: EntryNo,
        /// Which field named them.
        form: SpliceForm,
    },
    /// The parent is missing and there is evidence for a replacement.
    Bridge {
        /// The entry whose parent is missing.
        entry: EntryNo,
        /// The replacement.
        parent: EntryNo,
        /// The evidence for it.
        evidence: Evidence,
    },
    /// The parent is missing and there is no evidence for a replacement: the history ends here.
    Gap {
        /// The entry whose parent is missing.
        entry: EntryNo,
        /// Why there is no bridge.
        reason: GapReason,
        /// How many messages of the main conversation precede it in the file. They are not shown.
        hidden: u32,
    },
    /// The entry was salvaged from a damaged line.
    Salvage {
        /// The entry.
        entry: EntryNo,
    },
    /// The file contains entries of another session; they are not part of the conversation.
    Foreign {
        /// The first of them.
        entry: EntryNo,
        /// How many there are.
        count: u32,
    },
    /// An entry that an engine line removed, or one that is removed with it. It would be between
    /// two entries of the path, or directly next to or after one.
    Tombstoned {
        /// The removed entry.
        entry: EntryNo,
    },
    /// The client's path shows more of the conversation than the path that the evidence led to, and
    /// was used instead.
    Client {
        /// The leaf.
        entry: EntryNo,
        /// How many more messages it shows.
        more: u32,
    },
    /// Lines of one API message outside the chain, or results of its calls, were added.
    Siblings {
        /// The first line of the message on the path.
        entry: EntryNo,
        /// How many lines were added.
        recovered: u32,
    },
}

/// The evidence for a bridge over a missing parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// The line of the parent exists and names its own parent, but is not usable as an entry: its
    /// body is broken, or its type is unknown.
    Unusable,
    /// Another file of the session contains the parent, and names its ancestors.
    OtherFile,
    /// The uuid of the parent is on several lines, and the one before the entry is further down the
    /// conversation.
    LaterCopy,
    /// A boundary before the entry names the parent as preserved: preserved entries follow the
    /// anchor of the boundary, and the entry follows them.
    Kept,
    /// Two entries name each other's parents: after the exchange both follow the line before them.
    Exchanged,
    /// The result answers a call of this entry.
    Call,
    /// Both are lines of one answer.
    Message,
    /// The entry before it in the file, in the same session and chain, has no other child, and the
    /// times agree.
    FileOrder,
    /// This entry was written up to five seconds before, and the client joins the two as well: used
    /// for several tips that a rewind left, or where there is no other evidence.
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

    /// Returns a description.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unusable => "the line of the parent exists but is not usable as an entry",
            Self::OtherFile => "another file of the session contains the parent",
            Self::LaterCopy => "the parent is repeated further down the file",
            Self::Kept => "the boundary before it preserves the parent",
            Self::Exchanged => "two entries name each other's parents",
            Self::Call => "the result answers one of its calls",
            Self::Message => "both are lines of one answer",
            Self::FileOrder => "it precedes the entry in the file and has no other child",
            Self::Time => "it was written just before, and the client joins the two as well",
        }
    }

    /// Returns how certain the bridge is.
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

/// How certain a bridge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Confidence {
    /// The link is in a file.
    Proved,
    /// All evidence supports it, but the link itself is lost.
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

/// Why a missing parent was not bridged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// No entry of the same session and chain precedes it.
    NothingBefore,
    /// The entry before it opens a branch that a rewind made, or the conversation continued from
    /// that entry elsewhere.
    Rewind,
    /// The entry before it is newer.
    Time,
    /// It is the summary of a compaction whose boundary is missing.
    Boundary,
    /// The entry before it belongs to another session.
    OtherSession,
    /// The parent is in another file, which leads to no entry of this one: a subagent that started
    /// from its parent's conversation.
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

    /// Returns a description.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NothingBefore => "no entry of the same conversation precedes it",
            Self::Rewind => "the preceding entry starts a rewind",
            Self::Time => "the entry before it is newer",
            Self::Boundary => "it follows a compaction whose boundary is lost",
            Self::OtherSession => "the entry before it belongs to another session",
            Self::OtherFile => "its parent is in another file",
        }
    }
}

/// Why an entry is the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeafReason {
    /// The last tip of the file.
    LastTip,
    /// There is no tip, as the entries form a cycle; it is the last entry of the file.
    LastEntry,
    /// The message with the newest timestamp, as the last tip is a boundary that nothing follows.
    Newest,
    /// A `last-prompt` line names it.
    Pinned,
    /// The last entry after a `last-prompt` line, a descendant of the entry named there.
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

/// The field in which a boundary names its preserved entries.
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

    /// Returns the number of the entry that the decision is about.
    #[must_use]
    pub const fn entry(&self) -> EntryNo {
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
