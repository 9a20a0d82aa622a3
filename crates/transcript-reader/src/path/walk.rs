//! Walks from a leaf to the start of the conversation.

use std::collections::HashMap;

use super::{ConversationPath, PathEntry, Via};
use crate::tree::decision::{Decision, Evidence};
use crate::tree::{NodeId, Parent, Policy, Tree};

/// A path under construction: nodes in order, and which of them are on it. Several paths can be
/// walked one after the other; each ends where it meets an earlier one.
pub(super) struct Walk<'t, 'i> {
    pub(super) tree: &'t Tree<'i>,
    pub(super) chain: Vec<NodeId>,
    /// For each node, the reasons why it is on this chain or an earlier one; empty for nodes on none.
    pub(super) via: Vec<Via>,
    pub(super) decisions: Vec<Decision>,
    by_time: Option<ByTime>,
    /// With several paths: the number of the path that each node is on.
    path_of: Vec<u32>,
    /// The number of the path under construction, from 1 on; 0 while there is only one.
    path: u32,
    /// The node of an earlier path where this one leaves it.
    pub(super) from: Option<NodeId>,
    /// The number of entries from the root to a node, inclusive.
    depths: HashMap<NodeId, u32>,
}

impl<'t, 'i> Walk<'t, 'i> {
    pub(super) fn new(tree: &'t Tree<'i>) -> Self {
        let via = vec![Via::empty(); tree.nodes().count()];
        Self {
            tree,
            chain: Vec::new(),
            via,
            decisions: Vec::new(),
            by_time: None,
            path_of: Vec::new(),
            path: 0,
            from: None,
            depths: HashMap::new(),
        }
    }

    /// Marks the entries of `path` as on an earlier path, so that no branch shows them again.
    pub(super) fn skip(&mut self, path: &ConversationPath) {
        self.path_of = vec![0; self.via.len()];
        for entry in &path.entries {
            if let Some(node) = self.tree.node(entry.entry_no()) {
                self.via[node.at()] = entry.via | Via::PARENT;
            }
        }
    }

    /// Starts the next of several paths.
    pub(super) fn start_next(&mut self) {
        self.path += 1;
        self.from = None;
        self.chain.clear();
        if let Some(by_time) = &mut self.by_time {
            by_time.reset();
        }
    }

    /// Returns whether the node is on an earlier path.
    pub(super) fn is_on_other(&self, node: NodeId) -> bool {
        self.path > 0 && self.is_on_chain(node) && self.path_of[node.at()] != self.path
    }

    pub(super) fn push_node(&mut self, node: NodeId, via: Via) {
        transcript_format::work::add(1);
        self.chain.push(node);
        self.via[node.at()] = via;
        self.mark(node);
    }

    /// Records that the node is on the path under construction.
    pub(super) fn mark(&mut self, node: NodeId) {
        if let Some(path) = self.path_of.get_mut(node.at()) {
            *path = self.path;
        }
    }

    /// Returns whether the branch under construction starts at `node`, its last boundary
    /// (COMPACT-2).
    fn starts_at(&mut self, node: NodeId, has_message: bool) -> bool {
        let is_start = self.path > 0
            && (has_message || self.tree.policy() == Policy::Vendor)
            && self.tree.entry(node).is_boundary();
        if is_start {
            let hidden = self.depth(node).saturating_sub(1);
            let boundary = self.tree.entry_no_of(node);
            let hidden = Some(hidden);
            self.decisions.push(Decision::Cut { boundary, hidden });
        }
        is_start
    }

    /// Returns the number of entries from the root to `node`, inclusive.
    fn depth(&mut self, node: NodeId) -> u32 {
        let mut above = Vec::new();
        let mut at = Some(node);
        let mut depth = loop {
            let Some(node) = at else { break 0 };
            if let Some(depth) = self.depths.get(&node) {
                break *depth;
            }
            // Reaching it again is a cycle.
            self.depths.insert(node, 0);
            above.push(node);
            at = self.tree.parent_node(node);
        };
        for node in above.into_iter().rev() {
            depth += 1;
            self.depths.insert(node, depth);
        }
        depth
    }

    pub(super) fn is_on_chain(&self, node: NodeId) -> bool {
        !self.via[node.at()].is_empty()
    }

    /// Follows parents from `leaf` on (CHAIN-1). An entry of a sidechain that is named as a parent
    /// is part of the path as any other (CHAIN-5). Under `vendor` a missing parent, and one that
    /// closes a cycle, is replaced by the previous entry in time (CHAIN-3); `recover` has already
    /// found replacements.
    pub(super) fn up_from(&mut self, leaf: NodeId) {
        let (mut node, mut via) = (leaf, Via::PARENT);
        let mut has_message = false;
        loop {
            if self.is_on_other(node) {
                self.from = Some(node);
                break;
            }
            self.push_node(node, via);
            if self.starts_at(node, has_message) {
                break;
            }
            let entry = self.tree.entry_no_of(node);
            has_message |= self.tree.entry(node).kind().is_message();
            let parent = match self.tree.parent(node) {
                Parent::Root => break,
                Parent::Node(parent) if !self.is_on_chain(parent) || self.is_on_other(parent) => {
                    Some(parent)
                }
                Parent::Node(_) => {
                    self.decisions.push(Decision::Cycle { entry });
                    None
                }
                Parent::Lost => None,
            };
            if let Some(parent) = parent {
                via = self.note_link(node, parent);
                node = parent;
                continue;
            }
            if self.tree.policy() == Policy::Recover {
                self.decisions.extend(self.tree.link_decision(node));
                break;
            }
            let Some((parent, gap_millis)) = self.relink(node) else {
                self.decisions.push(Decision::Truncated { entry });
                break;
            };
            let parent_entry = self.tree.entry_no_of(parent);
            self.decisions.push(Decision::Relink {
                entry,
                parent: parent_entry,
                gap_millis,
            });
            (node, via) = (parent, Via::BRIDGE);
        }
        self.chain.reverse();
    }

    /// Returns how `parent` came onto the chain as the parent of `child`. A link that differs from
    /// the one in the file bridges a gap, passes over progress entries or comes from a splice.
    pub(super) fn note_link(&mut self, child: NodeId, parent: NodeId) -> Via {
        let above = self.tree.entry(parent);
        let (entry, parent) = (self.tree.entry_no_of(child), above.number());
        if self.tree.is_spliced(child) {
            if self.tree.recovery.bridge(child) == Some(Evidence::Kept) {
                self.decisions.extend(self.tree.link_decision(child));
            }
            if self.tree.lineage(child).parent() != above.uuid() {
                self.via[child.at()] |= Via::SPLICE;
            }
        } else if let Some(bridge) = self.tree.link_decision(child) {
            self.decisions.push(bridge);
            return Via::BRIDGE;
        } else if self.tree.lineage(child).parent() != above.uuid()
            && !self.tree.is_stream_form()
            && !self.tree.recovery.tombstones.was_below_tombstone(child)
        {
            self.decisions.push(Decision::Progress { entry, parent });
        }
        Via::PARENT
    }

    /// Returns the newest entry that is not newer than `node` and at most 5 s older; of equal ones
    /// the first in the file. Its place in the file does not matter (CHAIN-3).
    pub(super) fn relink(&mut self, node: NodeId) -> Option<(NodeId, u64)> {
        const WINDOW_MILLIS: i64 = 5_000;
        let own = self.tree.entry(node).millis()?;
        let by_time = self.by_time.get_or_insert_with(|| ByTime::new(self.tree));
        let (via, path_of, path) = (&self.via, &self.path_of, self.path);
        let is_used = |node: NodeId| {
            !via[node.at()].is_empty() && path_of.get(node.at()).is_none_or(|other| *other == path)
        };
        let (found, millis) = by_time.newest_until(own, is_used)?;
        let gap = own
            .checked_sub(millis)
            .filter(|gap| *gap <= WINDOW_MILLIS)?;
        Some((found, gap.unsigned_abs()))
    }

    /// Adds the attachments below the leaf, which are part of the conversation (CHAIN-10).
    pub(super) fn add_attachments_below(&mut self, leaf: NodeId) {
        for attachment in self.tree.attachments_below(leaf) {
            if !self.is_on_chain(attachment) {
                self.push_node(attachment, Via::PARENT);
            }
        }
    }

    /// Cuts the path at the last boundary of the chain (COMPACT-2). Attachments between boundary
    /// and summary remain on it (COMPACT-11). `recover` cuts only when a message follows: a
    /// compaction that was interrupted has summarized nothing.
    pub(super) fn cut_at_boundary(&mut self) {
        let mut end = self.chain.len();
        if self.tree.policy() == Policy::Recover {
            let is_message = |node: &NodeId| self.tree.entry(*node).kind().is_message();
            end = self.chain.iter().rposition(is_message).unwrap_or(0);
        }
        let Some(at) = self.chain[..end]
            .iter()
            .rposition(|node| self.tree.entry(*node).is_boundary())
        else {
            return;
        };
        let boundary = self.tree.entry_no_of(self.chain[at]);
        let is_whole = self.tree.index.starts_at() == 0;
        self.decisions.push(Decision::Cut {
            boundary,
            hidden: is_whole.then(|| self.compacted_away(self.chain[at])),
        });
        for hidden in self.chain.drain(..at) {
            self.via[hidden.at()] = Via::empty();
        }
    }

    /// Counts the messages of the conversation before `boundary`, and before those that it follows,
    /// that are not on the chain: those that compactions have summarized.
    fn compacted_away(&self, boundary: NodeId) -> u32 {
        let tree = self.tree;
        let mut seen = vec![false; self.via.len()];
        let mut hidden = 0;
        let mut at = Some(boundary);
        while let Some(node) = at.filter(|node| !std::mem::replace(&mut seen[node.at()], true)) {
            let is_message = tree.entry(node).kind().is_message();
            let is_kept = tree.is_spliced(node) && self.is_on_chain(node);
            hidden += u32::from(is_message && !is_kept && !tree.is_tombstoned(node));
            at = match tree.parent_before_splice(node) {
                Parent::Node(parent) => Some(parent),
                Parent::Root | Parent::Lost => tree.end_before(node).map(|(end, _)| end),
            };
        }
        hidden
    }

    pub(super) fn finish(mut self) -> ConversationPath {
        let mut decisions = std::mem::take(&mut self.decisions);
        for node in &self.chain {
            if self.tree.entry(*node).is_salvaged() {
                self.via[node.at()] |= Via::SALVAGE;
                let entry = self.tree.entry_no_of(*node);
                decisions.push(Decision::Salvage { entry });
            }
        }
        if let foreign @ [first, ..] = self.tree.recovery.foreign() {
            decisions.push(Decision::Foreign {
                entry: self.tree.entry_no_of(*first),
                count: foreign.len() as u32,
            });
        }
        let is_on_path = |node: NodeId| !self.via[node.at()].is_empty();
        let out = self.tree.tombstoned_near(is_on_path).into_iter();
        decisions.extend(out.map(|node| Decision::Tombstoned {
            entry: self.tree.entry_no_of(node),
        }));
        let is_shown = |decision: &Decision| {
            let node = self.tree.node(decision.entry());
            matches!(decision, Decision::StreamForm { .. }) || node.is_some_and(is_on_path)
        };
        let of_tree = self.tree.decisions.iter().copied();
        decisions.extend(of_tree.filter(is_shown));
        let entries = &self.chain;
        let entries = entries
            .iter()
            .map(|node| self.path_entry(*node, entries[0]));
        ConversationPath {
            entries: entries.collect(),
            decisions,
            ..ConversationPath::default()
        }
    }

    /// Returns an entry of a path that starts with `first`.
    pub(super) fn path_entry(&self, node: NodeId, first: NodeId) -> PathEntry {
        let number = self.tree.entry_no_of(node);
        let keeper = self.tree.kept_entries().map(|kept| kept.boundary);
        let is_older = number < self.tree.entry_no_of(first);
        PathEntry {
            kept: is_older && keeper == Some(first),
            ..PathEntry::new(number, self.via[node.at()])
        }
    }
}

/// The entries that may replace a missing parent, by time (CHAIN-3).
struct ByTime {
    /// Oldest first; of equal times the last in the file first.
    nodes: Vec<(i64, NodeId)>,
    /// For each place: the nearest unused one at or below it, found by path halving.
    below: Vec<u32>,
    /// The places that were changed for this path.
    changed: Vec<u32>,
}

impl ByTime {
    fn new(tree: &Tree<'_>) -> Self {
        let entry_refs = tree
            .nodes()
            .filter(|node| !tree.is_removed(*node) && !tree.is_sidechain(*node));
        let mut nodes: Vec<_> = entry_refs
            .filter_map(|node| Some((tree.entry(node).millis()?, node)))
            .collect();
        nodes.sort_unstable_by_key(|(millis, node)| (*millis, std::cmp::Reverse(*node)));
        let below = (0..=nodes.len() as u32).collect();
        Self {
            nodes,
            below,
            changed: Vec::new(),
        }
    }

    /// Starts another path: no entry is used.
    fn reset(&mut self) {
        for place in self.changed.drain(..) {
            self.below[place as usize] = place;
        }
    }

    fn skip_to(&mut self, place: usize, below: u32) {
        if self.below[place] as usize == place {
            self.changed.push(place as u32);
        }
        self.below[place] = below;
    }

    /// Returns the newest entry up to `millis` that is not `used`. A used entry remains so for this
    /// path, which lets its place be skipped for good.
    fn newest_until(
        &mut self,
        millis: i64,
        used: impl Fn(NodeId) -> bool,
    ) -> Option<(NodeId, i64)> {
        // Places are counted from 1; place 0 is below all.
        let mut place = self.nodes.partition_point(|(other, _)| *other <= millis);
        loop {
            place = self.free(place);
            let (millis, node) = *self.nodes.get(place.checked_sub(1)?)?;
            if !used(node) {
                return Some((node, millis));
            }
            self.skip_to(place, place as u32 - 1);
        }
    }

    fn free(&mut self, mut place: usize) -> usize {
        while self.below[place] as usize != place {
            self.below[place] = self.below[self.below[place] as usize];
            place = self.below[place] as usize;
        }
        place
    }
}
