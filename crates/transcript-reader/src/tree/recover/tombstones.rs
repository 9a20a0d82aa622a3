//! Entries that engine lines removed (`docs/format.md`, "What we write").
//!
//! They are linked like all others, as their links show where the conversation was when later
//! entries were written. They are removed only after all links are repaired and spliced; what other
//! tools wrote below them becomes a child of the nearest remaining ancestor, as with progress
//! entries.

use hashbrown::{HashMap, HashSet};
use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};

use crate::index::{EntryNo, EntryRef, Id, ToolKey};
use crate::tree::{NodeId, ParentSlot, Tree};

/// The link above a tombstoned entry.
#[derive(Clone, Copy)]
struct LinkAbove {
    parent: ParentSlot,
    /// The entry on the way there whose link was repaired or is a gap.
    repaired: Option<NodeId>,
}

impl Tree<'_> {
    /// Returns the entry with this uuid; if that is tombstoned, its nearest remaining ancestor.
    pub(crate) fn find_live(&self, id: Id) -> Option<NodeId> {
        let is_there = |above: &NodeId| !self.is_removed(*above);
        self.node_with_uuid(id)
            .or_else(|| self.above_tombstone(id).filter(is_there))
    }

    /// Returns the nearest remaining ancestor of the tombstoned entry with this uuid.
    pub(crate) fn above_tombstone(&self, id: Id) -> Option<NodeId> {
        let is_entry = |line: &EntryNo| self.index.entry(*line).kind() != EntryKind::Progress;
        let mut lines = self.index.with_uuid(id).filter(is_entry);
        let node = lines.find_map(|line| self.entry_node(line))?;
        let above = self.recovery.tombstones.above.get(&node)?;
        above.parent_of().node()
    }

    /// Reads which uuids are tombstoned. One that a later entry has counts again, as somebody wrote
    /// it again.
    pub(crate) fn find_tombstones(
        &mut self,
        counts: impl Fn(&EntryRef<'_>) -> bool,
        is_there: impl Fn(&EntryRef<'_>) -> bool,
    ) {
        let index = self.index;
        let mut lines: HashMap<Id, Vec<EntryNo>> = HashMap::new();
        for (line, id) in index.tombstones() {
            if is_there(&index.entry(line)) {
                lines.entry(id).or_default().push(line);
            }
        }
        for (id, lines) in lines {
            let copies = index.with_uuid(id);
            let Some(last) = copies.filter(|copy| counts(&index.entry(*copy))).last() else {
                continue;
            };
            let (before, after) = lines.split_at(lines.partition_point(|line| *line < last));
            if let Some(before) = before.last() {
                self.recovery.tombstones.superseded.insert(id, *before);
            }
            if !after.is_empty() {
                self.recovery.tombstones.tombstoned.push(id);
            }
        }
    }

    /// Finds the tombstoned entries and those that are removed with them: the results of their
    /// calls, and attachments without other descendants. A result without its call would be
    /// refused.
    pub(crate) fn find_tombstoned(&mut self) {
        let tombstoned = self.recovery.tombstones.tombstoned.iter();
        let mut found: HashSet<NodeId> = tombstoned
            .filter_map(|id| self.node_with_uuid(*id))
            .collect();
        if found.is_empty() {
            return;
        }
        self.add_results(&mut found);
        self.build_children();
        let leaves = |node: &NodeId| self.leaf_attachments(*node, &found);
        let ends: Vec<NodeId> = found.iter().flat_map(leaves).collect();
        found.extend(ends);
        self.recovery.tombstones.nodes = found;
    }

    fn add_results(&self, found: &mut HashSet<NodeId>) {
        let calls_of = |node: &NodeId| {
            let tools = self.entry(*node).tools().iter();
            let calls = tools.filter(|end| is_call(end.role()));
            calls.map(|end| end.key()).collect::<Vec<_>>()
        };
        let mut calls: HashSet<ToolKey> = found.iter().flat_map(calls_of).collect();
        if calls.is_empty() {
            return;
        }
        for other in self.nodes().filter(|node| !found.contains(node)) {
            for call in calls_of(&other) {
                calls.remove(&call);
            }
        }
        let results = self.nodes().filter(|node| {
            let entry = self.entry(*node);
            let mut ends = entry.tools().iter();
            has_results_only(&entry)
                && ends.all(|end| !is_call(end.role()) && calls.contains(&end.key()))
        });
        found.extend(results.collect::<Vec<_>>());
    }

    /// Returns the attachments below `node` that have no other entries below them.
    fn leaf_attachments(&self, node: NodeId, found: &HashSet<NodeId>) -> Vec<NodeId> {
        let mut attachments = Vec::new();
        let mut at = node;
        let mut looked_at = 0;
        loop {
            let children = self.children(at).filter(|child| !found.contains(child));
            let is_attachment = |child: &NodeId| self.entry(*child).kind() == EntryKind::Attachment;
            attachments.extend(children.filter(is_attachment));
            let Some(next) = attachments.get(looked_at) else {
                break;
            };
            at = *next;
            looked_at += 1;
        }
        let mut loose = HashSet::new();
        // Descendants come later in the list, so reverse order visits them first.
        for attachment in attachments.into_iter().rev() {
            let is_out = |child: NodeId| loose.contains(&child) || found.contains(&child);
            if self.children(attachment).all(is_out) {
                loose.insert(attachment);
            }
        }
        loose.into_iter().collect()
    }

    /// Removes the tombstoned entries and makes their remaining children follow their nearest
    /// remaining ancestor.
    pub(crate) fn remove_tombstoned(&mut self) {
        if self.recovery.tombstones.nodes.is_empty() {
            return;
        }
        let mut tombstones = std::mem::take(&mut self.recovery.tombstones);
        let is_out = |node: NodeId| tombstones.nodes.contains(&node);
        let under = |parent: ParentSlot| parent.parent_of().node().filter(|node| is_out(*node));
        let mut known = HashMap::new();
        let mut passed = HashMap::new();
        for child in self.nodes().filter(|node| !is_out(*node)) {
            let Some(first) = under(self.parents[child.at()]) else {
                continue;
            };
            let link = |node: NodeId| self.parents[node.at()];
            let above = self.above(first, &mut known, is_out, link);
            self.parents[child.at()] = above.parent;
            if let Some(repaired) = above.repaired {
                self.inherit(child, repaired);
            }
            passed.insert(child, first);
        }
        for node in &tombstones.nodes {
            self.above(*node, &mut known, is_out, |node| self.parents[node.at()]);
            self.removed[node.at()] = true;
        }
        // The same for the links from before a compaction.
        let link = |node: NodeId| {
            let parent = self.slot_before_splice(node);
            parent.unwrap_or(self.parents[node.at()])
        };
        let mut before = HashMap::new();
        let children = self.nodes().filter(|child| !is_out(*child));
        let under_one =
            children.filter_map(|child| Some((child, under(self.slot_before_splice(child)?)?)));
        let moved: Vec<_> = under_one
            .map(|(child, first)| (child, self.above(first, &mut before, is_out, link).parent))
            .collect();
        for (child, parent) in moved {
            self.spliced[child.at()] = parent;
        }
        let above = known.into_iter().map(|(node, above)| (node, above.parent));
        tombstones.above = above.collect();
        tombstones.passed = passed;
        self.recovery.tombstones = tombstones;
    }

    /// Returns the link above `first` and all other removed entries on the way up.
    fn above(
        &self,
        first: NodeId,
        known: &mut HashMap<NodeId, LinkAbove>,
        is_out: impl Fn(NodeId) -> bool,
        link: impl Fn(NodeId) -> ParentSlot,
    ) -> LinkAbove {
        let mut walked = Vec::new();
        let mut at = ParentSlot(first.0);
        let mut above = loop {
            let Some(node) = at.parent_of().node().filter(|node| is_out(*node)) else {
                break LinkAbove {
                    parent: at,
                    repaired: None,
                };
            };
            // Reaching an entry again means a cycle, which has nothing above it.
            let lost = LinkAbove {
                parent: ParentSlot::LOST,
                repaired: None,
            };
            match known.insert(node, lost) {
                Some(above) => {
                    known.insert(node, above);
                    break above;
                }
                None => walked.push(node),
            }
            at = link(node);
        };
        for node in walked.into_iter().rev() {
            let is_repaired = !self.is_spliced(node)
                && (self.recovery.bridge(node).is_some() || self.recovery.gap(node).is_some());
            above.repaired = above.repaired.or(is_repaired.then_some(node));
            known.insert(node, above);
        }
        above
    }

    /// Makes the bridge or gap above `repaired` that of `child`, which was a child of it.
    fn inherit(&mut self, child: NodeId, repaired: NodeId) {
        if let Some(reason) = self.recovery.gap(repaired) {
            self.recovery.bridges.remove(&child);
            self.recovery.gaps.insert(child, reason);
        } else if let Some(evidence) = self.recovery.bridge(repaired) {
            self.recovery.bridges.entry(child).or_insert(evidence);
        }
    }

    /// Returns the tombstoned entries that would be on a path or directly next to it, in file
    /// order.
    pub(crate) fn tombstoned_near(&self, is_shown: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let tombstones = &self.recovery.tombstones;
        let mut off_chain = HashSet::new();
        for (child, first) in &tombstones.passed {
            let mut at = is_shown(*child).then_some(*first);
            while let Some(node) = at.filter(|node| self.is_tombstoned(*node)) {
                at = off_chain
                    .insert(node)
                    .then(|| self.parent_node(node))
                    .flatten();
            }
        }
        let is_adjacent = |above: &ParentSlot| above.parent_of().node().is_some_and(&is_shown);
        let others = tombstones.above.iter();
        let adjacent = others.filter(|(_, above)| is_adjacent(above));
        off_chain.extend(adjacent.map(|(node, _)| *node));
        let mut off_chain: Vec<NodeId> = off_chain.into_iter().collect();
        off_chain.sort_unstable();
        off_chain
    }
}

fn is_call(role: ToolRole) -> bool {
    matches!(role, ToolRole::Use | ToolRole::ServerUse)
}

/// Returns whether the entry holds only results: one that also holds text by a person or a model
/// stays.
fn has_results_only(entry: &EntryRef<'_>) -> bool {
    let flags = entry.flags();
    let says_more = match entry.kind() {
        EntryKind::User => Flags::HAS_TEXT | Flags::HAS_OTHER_BLOCK,
        // Results of the API's own tools are blocks of other types.
        EntryKind::Assistant => Flags::HAS_TEXT | Flags::HAS_THINKING,
        _ => return false,
    };
    !entry.tools().is_empty() && !flags.intersects(says_more)
}
