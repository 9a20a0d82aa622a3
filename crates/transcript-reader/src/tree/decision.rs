//! The decisions that led to a path, with their reasons.

use crate::index::EntryNo;
use transcript_format::named;

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The path ends here.
    Leaf {
        /// The leaf.
        entry: EntryNo,
        /// The reason for this entry.
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
        /// The time by which the replacement is older, in milliseconds.
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
        /// The number of messages of the conversation before it that are not preserved; `None` when only the
        /// end of the file was read.
        hidden: Option<u32>,
    },
    /// An earlier compaction, which ended a chapter of a [`Story`](crate::Story).
    Chapter {
        /// The compact boundary.
        boundary: EntryNo,
        /// The number of messages of the chapter.
        messages: u32,
        /// The number of entries that were preserved then; `None` if the boundary does not show it.
        kept: Option<u32>,
    },
    /// Entries from before a boundary were moved after its anchor.
    Splice {
        /// The compact boundary.
        boundary: EntryNo,
        /// The field that named them.
        form: SpliceForm,
        /// The number of entries that were preserved.
        kept: u32,
        /// The number of other entries from before the boundary that were removed; `None` when only the end of
        /// the file was read.
        removed: Option<u32>,
    },
    /// A boundary names preserved entries, but one of them is not in the file: none is preserved.
    SpliceIgnored {
        /// The compact boundary.
        boundary: EntryNo,
        /// The field that named them.
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
        /// The reason why there is no bridge.
        reason: GapReason,
        /// The number of messages of the main conversation that precede it in the file. They are not shown.
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
        /// Their number.
        count: u32,
    },
    /// An entry that an engine line removed, or one that is removed with it. It would be between
    /// two entries of the path, or directly next to or after one.
    Tombstoned {
        /// The removed entry.
        entry: EntryNo,
    },
    /// The lines of the file name no parents: it is the output of the SDK (`stream-json`), or messages
    /// without ids. Each entry follows the one before it in the file.
    StreamForm {
        /// The first entry.
        entry: EntryNo,
        /// The number of entries.
        entries: u32,
    },
    /// The client's path shows more of the conversation than the path that the evidence led to, and
    /// was used instead.
    Client {
        /// The leaf.
        entry: EntryNo,
        /// The number of messages that only it shows.
        more: u32,
    },
    /// Lines of one API message outside the chain, or results of its calls, were added.
    Siblings {
        /// The first line of the message on the path.
        entry: EntryNo,
        /// The number of lines that were added.
        recovered: u32,
    },
}

named! {
    /// The evidence for a bridge over a missing parent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Evidence {
        /// The line of the parent exists and names its own parent, but is not usable as an entry: its
        /// body is broken, or its type is unknown.
        Unusable = "unusable": "the line of the parent exists but is not usable as an entry",
        /// Another file of the session contains the parent, and names its ancestors.
        OtherFile = "other-file": "another file of the session contains the parent",
        /// The uuid of the parent is on several lines, and the one before the entry is further down the
        /// conversation.
        LaterCopy = "later-copy": "the parent is repeated further down the file",
        /// A boundary before the entry names the parent as preserved: preserved entries follow the
        /// anchor of the boundary, and the entry follows them.
        Kept = "kept": "the boundary before it preserves the parent",
        /// A client started a branch by itself, with a notification, a queued prompt or a request to
        /// continue, at an entry that the conversation had left behind: it follows what came before
        /// it in the file.
        NoRewind = "no-rewind": "no person went back to an earlier entry",
        /// Two entries name each other's parents: after the exchange both follow the line before them.
        Exchanged = "exchanged": "two entries name each other's parents",
        /// The result answers a call of this entry.
        Call = "call": "the result answers one of its calls",
        /// Both are lines of one answer.
        Message = "message": "both are lines of one answer",
        /// The entry before it in the file, in the same session and chain, has no other child, and the
        /// times agree.
        FileOrder = "file-order": "it precedes the entry in the file and has no other child",
        /// This entry was written up to five seconds before, and the client joins the two as well: used
        /// for several tips that a rewind left, or where there is no other evidence.
        Time = "time": "it was written just before, and Claude Code joins the two as well",
    }
}

impl Evidence {
    /// Returns how certain the bridge is.
    #[must_use]
    pub const fn confidence(self) -> Confidence {
        match self {
            Self::Unusable | Self::OtherFile | Self::Kept | Self::Call | Self::Message => {
                Confidence::Proved
            }
            Self::LaterCopy | Self::NoRewind | Self::Exchanged | Self::FileOrder | Self::Time => {
                Confidence::Likely
            }
        }
    }
}

named! {
    /// The certainty of a bridge.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Confidence {
        /// The link is in a file.
        Proved = "proved",
        /// All evidence supports it, but the link itself is lost.
        Likely = "likely",
    }
}

named! {
    /// The reason why a missing parent was not bridged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum GapReason {
        /// No entry of the same session and chain precedes it.
        NothingBefore = "nothing-before": "no entry of the same conversation precedes it",
        /// The entry before it opens a branch that a rewind made, or the conversation continued from
        /// that entry elsewhere.
        Rewind = "rewind": "the preceding entry starts a rewind",
        /// The entry before it is newer.
        Time = "time": "the entry before it is newer",
        /// It is the summary of a compaction whose boundary is missing.
        Boundary = "boundary": "it follows a compaction whose boundary is lost",
        /// The entry before it belongs to another session.
        OtherSession = "other-session": "the entry before it belongs to another session",
        /// The parent is in another file, which leads to no entry of this one: a subagent that started
        /// from its parent's conversation.
        OtherFile = "other-file": "its parent is in another file",
    }
}

named! {
    /// The reason why an entry is the leaf.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum LeafReason {
        /// The last tip of the file.
        LastTip = "last-tip": "the last tip of the file",
        /// There is no tip, as the entries form a cycle; it is the last entry of the file.
        LastEntry = "last-entry": "the last entry, as the entries form a cycle",
        /// The message with the newest timestamp, as the last tip is a boundary that nothing follows.
        Newest = "newest": "the newest message, as nothing follows the last compaction",
        /// A `last-prompt` line names it.
        Pinned = "pinned": "a last-prompt line names it",
        /// The last entry after a `last-prompt` line, a descendant of the entry named there.
        AfterPin = "after-pin": "the last line after a last-prompt line, below its leaf",
        /// The caller asked for it.
        Asked = "asked": "asked for",
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
            Self::Chapter { .. } => "chapter",
            Self::Splice { .. } => "splice",
            Self::SpliceIgnored { .. } => "splice-ignored",
            Self::Bridge { .. } => "bridge",
            Self::Gap { .. } => "gap",
            Self::Salvage { .. } => "salvage",
            Self::Foreign { .. } => "foreign",
            Self::Tombstoned { .. } => "tombstoned",
            Self::StreamForm { .. } => "stream-form",
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
            | Self::StreamForm { entry, .. }
            | Self::Client { entry, .. }
            | Self::Siblings { entry, .. } => entry,
            Self::Cut { boundary, .. }
            | Self::Chapter { boundary, .. }
            | Self::Splice { boundary, .. }
            | Self::SpliceIgnored { boundary, .. } => boundary,
        }
    }
}
