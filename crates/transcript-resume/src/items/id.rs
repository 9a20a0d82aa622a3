//! The ids of items.

use std::fmt;

use transcript_format::ids::Uuid;
use transcript_reader::{EntryRef, Id, Index};

/// The id of an item, as the client derives it.
///
/// Until the path contains a message with more than one block, every item has the uuid of its
/// entry. Once a message is split into several items, all later ids of messages are derived: those
/// of its own blocks, including the first, and those of all later messages, including those with
/// one block. A derived id is [`Uuid::child`] of the uuid of the entry and the number of the block.
/// Entries that are not messages keep theirs.
///
/// An item without a canonical uuid to derive from, or whose id another item of the path already
/// has (rare: made by hand, with uuids that differ only in the last digits), gets `UUID:BLOCK`; an
/// entry without any id gets `@OFFSET` or `@OFFSET:BLOCK`, with the offset of its line in the file.
///
/// All of these depend only on earlier entries: an id stays the same when the conversation
/// continues. After a compaction the path starts again, and so does the rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ItemId {
    /// A uuid, of the entry or derived.
    Uuid(Uuid),
    /// Any other text.
    Text(Box<str>),
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(uuid) => uuid.fmt(f),
            Self::Text(text) => f.pad(text),
        }
    }
}

impl ItemId {
    /// The id of the entry itself.
    pub(super) fn of_entry(index: &Index, entry: &EntryRef<'_>) -> Self {
        match entry.uuid() {
            Some(Id::Uuid(uuid)) => Self::Uuid(uuid),
            Some(odd) => Self::Text(index.id_text(odd).into()),
            None => Self::Text(format!("@{}", entry.offset()).into()),
        }
    }

    /// Returns the id derived for block `block` of the entry with this id.
    pub(super) fn child(&self, block: u32) -> Self {
        match self {
            Self::Uuid(uuid) => Self::Uuid(uuid.child(u64::from(block))),
            Self::Text(_) => self.spelled_out(block),
        }
    }

    /// Returns the id of block `block` in a form that no uuid has.
    pub(super) fn spelled_out(&self, block: u32) -> Self {
        Self::Text(format!("{self}:{block}").into())
    }
}
