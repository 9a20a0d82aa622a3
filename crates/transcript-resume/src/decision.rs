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
        /// How many entries of the chain stand before it.
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
        gone: u32,
    },
    /// A boundary names entries to keep, but one of them is not in the file: nothing is kept.
    SpliceIgnored {
        /// The compact boundary.
        boundary: u32,
        /// Which form named them.
        form: SpliceForm,
    },
    /// Lines of one API message, or results of its calls, that hang beside the chain.
    Siblings {
        /// The first line of the message on the path.
        entry: u32,
        /// How many lines were brought back.
        recovered: u32,
    },
}

/// Why an entry is the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeafReason {
    /// The last tip of the file.
    LastTip,
    /// There is no tip, as the entries form a cycle: the last entry of the file.
    LastEntry,
    /// A `last-prompt` line names it.
    Pinned,
    /// The last line behind a `last-prompt` line, which hangs under the entry named there.
    AfterPin,
    /// The caller asked for it.
    Asked,
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
            | Self::Siblings { entry, .. } => entry,
            Self::Cut { boundary, .. }
            | Self::Splice { boundary, .. }
            | Self::SpliceIgnored { boundary, .. } => boundary,
        }
    }
}
