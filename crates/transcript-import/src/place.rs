//! Where something lies: a range of bytes of a file.

use std::num::NonZeroU32;
use std::ops::Range;

/// The number of a file of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(
    /// One more than its place, so that an optional id takes no more space.
    NonZeroU32,
);

/// A range of bytes of a source. Offsets in a compressed file are those of what it decompresses to. In a table, the offset is the
/// number of a row (its `rowid`), and the length a number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub source: SourceId,
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
}

impl SourceId {
    /// Returns the id of the source at a place in the list.
    pub(crate) fn at(index: usize) -> Self {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        Self(NonZeroU32::MIN.saturating_add(number))
    }

    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl Place {
    /// Returns the offsets.
    #[must_use]
    pub fn range(self) -> Range<u64> {
        self.offset..self.offset + self.len
    }
}
