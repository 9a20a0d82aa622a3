//! The changes that policy `recover` made to the tree.

use hashbrown::{HashMap, HashSet};

use crate::index::{EntryNo, EntryRef, Id};
use crate::tree::decision::{Evidence, GapReason};
use crate::tree::node::{NodeId, ParentSlot};

/// The changes that were made to the links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    /// The lines of each uuid that is in the file more than once, in file order.
    pub(super) copies: HashMap<NodeId, Vec<EntryNo>>,
    /// Entries whose parent is not the one that their line names, and the evidence for it.
    pub(crate) bridges: HashMap<NodeId, Evidence>,
    /// Entries whose parent remains missing, and why.
    pub(crate) gaps: HashMap<NodeId, GapReason>,
    /// Entries with a parent of `null` that cannot be without one.
    pub(crate) false_roots: HashSet<NodeId>,
    /// Entries that were written to a branch after a person had left it by a rewind: it is not
    /// continued there.
    pub(crate) late: HashSet<NodeId>,
    /// Whether any entry named a parent that is not an entry of this file.
    pub(super) had_lost_parents: bool,
    /// Entries of other sessions, in file order; empty when there are none.
    pub(super) foreign: Vec<NodeId>,
    /// The entries that engine lines removed.
    pub(crate) tombstones: Tombstones,
}

impl Recovery {
    /// Records that line `copy` has the uuid of `node`, whose last line so far was `known`.
    pub(crate) fn add_copy(&mut self, node: NodeId, known: EntryNo, copy: EntryNo) {
        let copies = self.copies.entry(node).or_insert_with(|| vec![known]);
        copies.push(copy);
    }

    /// Returns the lines of `node`, in file order; empty when there is only one.
    pub(crate) fn copies(&self, node: NodeId) -> &[EntryNo] {
        self.copies.get(&node).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn bridge(&self, node: NodeId) -> Option<Evidence> {
        self.bridges.get(&node).copied()
    }

    pub(crate) fn gap(&self, node: NodeId) -> Option<GapReason> {
        self.gaps.get(&node).copied()
    }

    /// Returns whether any link differs from the one in the file.
    pub(crate) fn has_changed_links(&self) -> bool {
        self.had_lost_parents || !self.bridges.is_empty() || !self.foreign.is_empty()
    }

    /// Returns whether an entry named a parent that is not an entry of the file.
    pub(crate) fn has_lost_parents(&self) -> bool {
        self.had_lost_parents
    }

    pub(crate) fn foreign(&self) -> &[NodeId] {
        &self.foreign
    }
}

/// The removed entries; empty for nearly all files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tombstones {
    /// The uuids without an entry after their last tombstone.
    pub(super) tombstoned: Vec<Id>,
    /// For each uuid that was written again after a tombstone: the last tombstone before the last
    /// entry with that uuid.
    pub(super) superseded: HashMap<Id, EntryNo>,
    /// The tombstoned entries, and those that are removed with them.
    pub(super) nodes: HashSet<NodeId>,
    /// The remaining link above each of them.
    pub(super) above: HashMap<NodeId, ParentSlot>,
    /// Entries that were children of a tombstoned entry, with that entry.
    pub(super) passed: HashMap<NodeId, NodeId>,
}

impl Tombstones {
    /// Returns whether the line is older than the tombstone of its uuid, and a later line counts.
    pub(crate) fn is_superseded(&self, line: &EntryRef<'_>) -> bool {
        let is_before = |id: Id| Some(line.number() < *self.superseded.get(&id)?);
        line.uuid().and_then(is_before).unwrap_or_default()
    }

    /// Returns whether the entry is removed.
    pub(crate) fn contains(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Returns whether the entry was a child of a tombstoned one.
    pub(crate) fn was_below_tombstone(&self, child: NodeId) -> bool {
        self.passed.contains_key(&child)
    }
}
