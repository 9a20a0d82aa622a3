//! The conversation of a tree: its entries from the start to the leaf.

mod branches_off;
mod client;
mod find;
mod findings;
mod interrupted;
pub(crate) mod leaf;
mod siblings;
mod story;
mod walk;

use std::collections::HashMap;
use std::sync::Arc;

use bitflags::bitflags;
use transcript_format::scan::ToolRole;

use crate::index::{EntryNo, Index, ToolKey};
use crate::tree::decision::Decision;
pub use branches_off::BranchOff;
pub use story::{Chapter, Story};

/// The entries of a conversation, oldest first, and the decisions that led to them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConversationPath {
    /// The entries: messages, attachments and system entries, before any are omitted for a request
    /// or a display.
    pub entries: Vec<PathEntry>,
    /// The calls and results in the entries that a selection of what is shown removed from `entries`.
    pub omitted: OmittedCalls,
    /// The entry that ends the conversation.
    pub leaf: Option<EntryNo>,
    /// Every decision, in the order in which it was made.
    pub decisions: Vec<Decision>,
    /// The reason why the client of the policy would not resume this path. The entries are present all the
    /// same.
    pub refusal: Option<Refusal>,
}

impl ConversationPath {
    /// Ends the path after this entry. Returns false, and changes nothing, when
    /// that is not on the path.
    pub fn cut_after(&mut self, entry_no: EntryNo) -> bool {
        let Some(at) = self
            .entries
            .iter()
            .position(|entry| entry.entry_no() == entry_no)
        else {
            return false;
        };
        self.entries.truncate(at + 1);
        self.leaf = Some(entry_no);
        true
    }
}

/// Calls and results in entries that are not shown, although the conversation has them. A call whose
/// result is among them is not one without a result.
#[derive(Clone, Debug, Default)]
pub struct OmittedCalls(Arc<HashMap<ToolKey, Vec<ToolRole>>>);

impl OmittedCalls {
    /// Finds those of these entries.
    #[must_use]
    pub fn of(index: &Index, entries: &[EntryNo]) -> Self {
        let mut ends: HashMap<ToolKey, Vec<ToolRole>> = HashMap::new();
        for end in entries.iter().flat_map(|entry| index.entry(*entry).tools()) {
            ends.entry(end.key()).or_default().push(end.role());
        }
        Self(Arc::new(ends))
    }

    /// Returns whether the call with this id is among them.
    #[must_use]
    pub fn has_call(&self, id: &str) -> bool {
        self.has(id, [ToolRole::Use, ToolRole::ServerUse])
    }

    /// Returns whether a result of the call with this id is among them.
    #[must_use]
    pub fn has_result(&self, id: &str) -> bool {
        self.has(id, [ToolRole::Result, ToolRole::ServerResult])
    }

    fn has(&self, id: &str, roles: [ToolRole; 2]) -> bool {
        let ends = self.0.get(&ToolKey::of(id));
        ends.is_some_and(|ends| ends.iter().any(|role| roles.contains(role)))
    }
}

/// One entry of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathEntry {
    entry_no: EntryNo,
    /// The reasons why it is on the path.
    pub via: Via,
    /// Whether the model sees it when the conversation continues: false for entries that were
    /// compacted away and for other branches.
    pub in_context: bool,
    /// Whether it is from before the compaction that the context starts with, which preserved it
    /// word for word.
    pub kept: bool,
    /// Whether a turn starts with it because a selection of what is shown omitted entries before
    /// it: a prompt, or what a turn said before this prompt.
    pub after_hidden: bool,
}

impl PathEntry {
    /// Returns an entry that the model sees.
    #[must_use]
    pub fn new(entry_no: EntryNo, via: Via) -> Self {
        Self {
            entry_no,
            via,
            in_context: true,
            kept: false,
            after_hidden: false,
        }
    }

    /// Returns it with another number.
    pub(crate) fn renumbered(self, entry_no: EntryNo) -> Self {
        Self { entry_no, ..self }
    }

    /// Returns its number in the index.
    #[must_use]
    pub fn entry_no(&self) -> EntryNo {
        self.entry_no
    }
}

bitflags! {
    /// The reasons why an entry is on a path.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Via: u8 {
        /// By a link in the file, or as the leaf.
        const PARENT = 1;
        /// As a line of an API message on the path, the result of one of its calls, or an entry below the
        /// boundary of a compaction that was interrupted.
        const SIBLING = 1 << 1;
        /// As a preserved entry.
        const SPLICE = 1 << 2;
        /// In place of a missing parent.
        const BRIDGE = 1 << 3;
        /// From a damaged line.
        const SALVAGE = 1 << 4;
    }
}

impl Via {
    /// Returns the names, as `docs/cli.md` lists them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let names = [
            (Self::PARENT, "parent"),
            (Self::SIBLING, "sibling"),
            (Self::SPLICE, "splice"),
            (Self::BRIDGE, "bridge"),
            (Self::SALVAGE, "salvage"),
        ];
        names
            .into_iter()
            .filter(move |(via, _)| self.contains(*via))
            .map(|(_, name)| name)
    }
}

/// The reason why a client refuses to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The file holds no message of a main conversation.
    NoConversation,
    /// The leaf has no valid timestamp (LEAF-17).
    LeafWithoutTime,
    /// Each entry belongs to a subagent (LEAF-19).
    OnlySidechains,
    /// After a compaction that keeps entries, no message ends a conversation (LEAF-18).
    NoEnd,
    /// The client cannot render an attachment (NOTE-9).
    UnusableAttachment,
}

impl Refusal {
    /// Returns a short description of the reason.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoConversation => "the file holds no conversation",
            Self::LeafWithoutTime => "the leaf has no valid timestamp",
            Self::OnlySidechains => "the file holds only the conversation of a subagent",
            Self::UnusableAttachment => "Claude Code fails on an attachment that lacks its content",
            Self::NoEnd => "no message is the end of a conversation",
        }
    }
}
