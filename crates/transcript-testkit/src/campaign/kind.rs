//! The kinds of damage.

/// One kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The end of a line is missing, in half of the cases with its newline.
    Cut,
    /// A newline between two lines is missing, or a torn prefix precedes a whole line.
    Glue,
    /// NULs before, after, between or within lines, or in place of one.
    Nul,
    /// A line is missing.
    Drop,
    /// A line is in the file twice; the second is a copy, or has one newer field.
    Duplicate,
    /// A block of lines is in the file twice, the second time under a root of its own.
    Replay,
    /// Lines are up to ten places away from where they belong.
    Reorder,
    /// Two entries of the chain have each other's parents.
    SwappedParent,
    /// The parent of an entry is the entry itself or one of its descendants.
    Cycle,
    /// Bytes within a string that are not UTF-8.
    BadUtf8,
    /// Half of a surrogate pair, as an escape within a string.
    Surrogate,
    /// The line of a tool result is missing.
    RemovedResult,
    /// A pointer of a compact boundary names an entry that does not exist.
    DanglingPointer,
    /// Lines of another session.
    Foreign,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::Cut,
        Self::Glue,
        Self::Nul,
        Self::Drop,
        Self::Duplicate,
        Self::Replay,
        Self::Reorder,
        Self::SwappedParent,
        Self::Cycle,
        Self::BadUtf8,
        Self::Surrogate,
        Self::RemovedResult,
        Self::DanglingPointer,
        Self::Foreign,
    ];

    /// Returns the name that reports use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Glue => "glue",
            Self::Nul => "nul",
            Self::Drop => "drop",
            Self::Duplicate => "duplicate",
            Self::Replay => "replay",
            Self::Reorder => "reorder",
            Self::SwappedParent => "swapped-parent",
            Self::Cycle => "cycle",
            Self::BadUtf8 => "bad-utf8",
            Self::Surrogate => "surrogate",
            Self::RemovedResult => "removed-result",
            Self::DanglingPointer => "dangling-pointer",
            Self::Foreign => "foreign",
        }
    }

    /// Returns the share of the truth that policy `recover` must show, in percent.
    #[must_use]
    pub const fn bar_percent(self) -> usize {
        match self {
            Self::Cut | Self::Glue | Self::Nul | Self::Drop | Self::Cycle | Self::RemovedResult => {
                99
            }
            _ => 95,
        }
    }
}
