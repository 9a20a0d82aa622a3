//! Makes the entries that the last compaction preserved part of the conversation after it.

use super::decision::{Decision, SpliceForm};
use super::{KeptEntries, NodeId, ParentSlot, Policy, Tree};
use crate::index::{Boundary, Preserved};

impl Tree<'_> {
    /// Moves the preserved entries of the last boundary (COMPACT-8) after its anchor, and the other
    /// children of the anchor after the last preserved entry (COMPACT-4). Every other entry before
    /// the boundary is removed, and its children follow the last preserved entry as well
    /// (COMPACT-7).
    ///
    /// The client does not copy preserved entries: they stay where they were written, with their
    /// old parents, so that this step alone makes them part of the conversation after the
    /// compaction.
    pub(super) fn splice(&mut self) {
        let Some(last) = self.boundaries_backwards().next() else {
            return;
        };
        let of_last = self.index.boundary(self.entry_no_of(last));
        if of_last.is_some_and(|boundary| self.clears_history(last, boundary)) {
            self.cleared_by = Some(last);
        }
        if self.policy == Policy::Vendor && self.cleared_by.is_some() {
            self.removed[..last.at()].fill(true);
            for child in self.nodes().skip(last.at()) {
                let parent = self.parent_node(child);
                if parent.is_some_and(|parent| self.removed[parent.at()]) {
                    self.parents[child.at()] = ParentSlot::LOST;
                }
            }
            return;
        }
        let mut has_child = None;
        let Some(node) = self
            .completed_boundaries()
            .find(|node| self.names_preserved(*node, &mut has_child))
        else {
            return;
        };
        let entry_ref = self.entry_no_of(node);
        let Some(boundary) = self.index.boundary(entry_ref) else {
            return;
        };
        let form = match boundary.preserved {
            Preserved::Nothing => return,
            Preserved::List { .. } => SpliceForm::List,
            Preserved::Segment { .. } => SpliceForm::Segment,
        };
        let mut preserved = self.preserved(boundary);
        let mut is_whole = preserved.is_some();
        let is_anchored = |preserved: &(Option<NodeId>, _)| preserved.0.is_some();
        if self.policy == Policy::Recover && !preserved.as_ref().is_some_and(is_anchored) {
            preserved = self
                .preserved_in_part(node, boundary)
                .map(|(anchor, kept)| (Some(anchor), kept));
            // While some preserved entries are missing, nothing proves that the rest may be
            // removed.
            let named = match &boundary.preserved {
                Preserved::List { uuids, .. } => uuids.len(),
                _ => 0,
            };
            is_whole = preserved
                .as_ref()
                .is_some_and(|(_, kept)| kept.len() >= named);
        }
        let Some((anchor, kept)) = preserved.filter(|(_, kept)| !kept.is_empty()) else {
            self.decisions.push(Decision::SpliceIgnored {
                boundary: entry_ref,
                form,
            });
            return;
        };
        let tail = kept[kept.len() - 1];
        if is_whole {
            self.removed[..node.at()].fill(true);
            for stays in kept.iter().copied().chain(anchor) {
                self.removed[stays.at()] = false;
            }
        }
        let removed = self
            .removed
            .iter()
            .filter(|is_removed| **is_removed)
            .count();
        self.spliced = vec![ParentSlot::NOT_SPLICED; self.parents.len()];
        for child in self.nodes() {
            if let Some(parent) = self.parent_node(child)
                && (Some(parent) == anchor || self.removed[parent.at()])
            {
                let before = std::mem::replace(&mut self.parents[child.at()], ParentSlot(tail.0));
                self.spliced[child.at()] = before;
            }
        }
        // Without an anchor the preserved entries begin the history (COMPACT-9).
        let mut parent = anchor.map_or(ParentSlot::ROOT, |anchor| ParentSlot(anchor.0));
        for entry in &kept {
            let before = std::mem::replace(&mut self.parents[entry.at()], parent);
            if !self.is_spliced(*entry) {
                self.spliced[entry.at()] = before;
            }
            parent = ParentSlot(entry.0);
        }
        let is_shown = |node: &&NodeId| !self.is_tombstoned(**node);
        self.decisions.push(Decision::Splice {
            boundary: entry_ref,
            form,
            kept: kept.iter().filter(is_shown).count() as u32,
            removed: (self.index.starts_at() == 0).then_some(removed as u32),
        });
        self.kept = Some(KeptEntries {
            boundary: node,
            anchor,
            entries: kept,
        });
    }

    /// Returns whether the last boundary, which preserves nothing, removes everything before it: with
    /// an empty list, or without a list and a segment when an earlier boundary has one, even an
    /// invalid one (COMPACT-12).
    fn clears_history(&self, last: NodeId, boundary: &Boundary) -> bool {
        match &boundary.preserved {
            Preserved::List { uuids, .. } => uuids.is_empty(),
            Preserved::Segment { .. } => false,
            Preserved::Nothing => (0..last.0).map(NodeId).any(|node| {
                let entry = self.entry(node);
                let boundary = entry
                    .is_boundary()
                    .then(|| self.index.boundary(entry.number()));
                let earlier = boundary.flatten();
                earlier.is_some_and(|earlier| !matches!(earlier.preserved, Preserved::Nothing))
            }),
        }
    }

    /// Returns whether the preserved entries of this boundary are looked for. For `vendor` that is
    /// every boundary; `recover` passes over an unfinished one and uses the one before, whose
    /// compaction was completed.
    fn names_preserved(&self, boundary: NodeId, has_child: &mut Option<Vec<bool>>) -> bool {
        if self.policy == Policy::Vendor || !self.is_unfinished(boundary) {
            return true;
        }
        // Found once: there may be many unfinished boundaries.
        let has_child = has_child.get_or_insert_with(|| {
            let mut has_child = vec![false; self.parents.len()];
            for child in self.nodes() {
                transcript_format::work::add(1);
                if let Some(parent) = self.parent_node(child).filter(|parent| *parent <= child) {
                    has_child[parent.at()] = true;
                }
            }
            has_child
        });
        has_child[boundary.at()]
    }

    fn boundaries_backwards(&self) -> impl Iterator<Item = NodeId> + '_ {
        let is_boundary =
            |node: &NodeId| self.entry(*node).is_boundary() && !self.is_tombstoned(*node);
        self.nodes().rev().filter(is_boundary)
    }

    /// Returns the boundaries that count, the last one first. For `recover` one that preserves nothing
    /// and has no message below it does not, as not even its summary was written.
    fn completed_boundaries(&self) -> impl Iterator<Item = NodeId> + '_ {
        // Found once, and only when it is not seen right away: there may be many such boundaries.
        let mut has_message_below: Option<Vec<bool>> = None;
        let is_completed = move |node: &NodeId| {
            let names = self.index.boundary(self.entry_no_of(*node));
            let preserves = |names: &Boundary| !matches!(names.preserved, Preserved::Nothing);
            if self.policy == Policy::Vendor
                || names.is_some_and(preserves)
                || has_message_below.is_none() && self.is_followed_by_summary(*node)
            {
                return true;
            }
            has_message_below.get_or_insert_with(|| self.with_message_below())[node.at()]
        };
        self.boundaries_backwards().filter(is_completed)
    }

    /// Returns whether the next message of the file is below the boundary, as a summary is.
    fn is_followed_by_summary(&self, boundary: NodeId) -> bool {
        let is_message = |node: &NodeId| self.entry(*node).kind().is_message();
        let after = self.nodes().skip(boundary.at() + 1);
        let mut messages = after.filter(|node| is_message(node) && self.is_of_main(*node));
        let Some(message) = messages.next() else {
            return false;
        };
        let above = self.ancestors(message).skip(1);
        let mut above = above.take_while(|node| *node >= boundary && !is_message(node));
        above.any(|node| node == boundary)
    }

    /// Returns for each entry whether a message of the main conversation is below it.
    fn with_message_below(&self) -> Vec<bool> {
        let mut found = vec![false; self.parents.len()];
        let is_message =
            |node: &NodeId| self.entry(*node).kind().is_message() && self.is_of_main(*node);
        for message in self.nodes().filter(is_message) {
            for above in self.ancestors(message).skip(1) {
                if std::mem::replace(&mut found[above.at()], true) {
                    break;
                }
            }
        }
        found
    }

    /// Returns whether an entry belongs to the conversation of the file, on whatever branch.
    fn is_of_main(&self, node: NodeId) -> bool {
        !self.is_removed(node) && !self.is_sidechain(node) && !self.is_foreign(node)
    }

    /// Returns the tree as if no compaction had preserved anything: all entries are linked as they
    /// were when they were written. A [`Story`](crate::Story) is found in such a tree, while the
    /// [path](Self::path) of a conversation is found in the tree that a compaction changed.
    #[must_use]
    pub fn unspliced(mut self) -> Self {
        if self.spliced.is_empty() && !self.removed.contains(&true) {
            return self;
        }
        for node in self.nodes() {
            if let Some(parent) = self.slot_before_splice(node) {
                self.parents[node.at()] = parent;
            }
            self.removed[node.at()] = self.is_tombstoned(node);
        }
        self.spliced = Vec::new();
        self.build_children();
        self
    }
}
