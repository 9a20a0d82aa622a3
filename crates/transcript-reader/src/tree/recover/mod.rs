//! Repairs of policy `recover` to the links: repeated uuids, cycles, entries of other sessions,
//! missing parents. Each change names its evidence.
//!
//! The order matters. Repeated uuids and cycles come first, as the other steps walk the links;
//! foreign entries are found before missing parents, so that no bridge leads to them; tombstones
//! come last, as an entry that is removed may be the evidence for a bridge.
//!
//! [`lost_parents`] replaces missing parents, [`stranded`] joins branches that no person started,
//! [`preserved_segment`] completes the entries that a boundary preserves, [`tombstones`] removes entries.

pub(super) mod changes;
mod lost_parents;
mod preserved_segment;
mod stranded;
mod tombstones;

use hashbrown::{HashMap, HashSet};
use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};

use super::components::{Components, Descendants};
use super::decision::{Decision, Evidence};
use super::timeline::MAX_STEPS;
use super::{NodeId, Parent, ParentSlot, Tree};
use crate::index::{EntryNo, Id};
use crate::other_files::OtherFiles;
use lost_parents::LostParents;

impl Tree<'_> {
    /// Repairs the links, which so far are those in the file.
    pub(crate) fn recover(&mut self, others: Option<&OtherFiles>) {
        self.choose_lineages();
        let mut cut = self.cut_cycles();
        if self.follow_later_copies() {
            cut.extend(self.cut_cycles());
        }
        self.lead_segments_to_their_heads();
        self.find_foreign();
        self.find_false_roots();
        let is_lost = |node: &NodeId| self.parent(*node) == Parent::Lost && !self.is_foreign(*node);
        let lost: Vec<NodeId> = self.nodes().filter(is_lost).collect();
        self.recovery.had_lost_parents = !lost.is_empty();
        if !lost.is_empty() {
            self.build_children();
            LostParents::new(self, others, cut).run(&lost);
        }
        self.join_stranded_branches();
        self.find_tombstoned();
    }

    /// Finds entries without a parent that cannot start a conversation, as others come before them:
    /// `null` then stands for a parent that is missing. An answer and a result follow a prompt, a
    /// summary its boundary, and entries that the client writes by itself follow the conversation. The prompt
    /// of a person may start again from the beginning, but not right after an answer that has no
    /// parent either: such a file has no links.
    fn find_false_roots(&mut self) {
        // For the conversation, and for each subagent that has an id: the message or boundary
        // before, and whether it has a parent.
        let mut before: HashMap<Option<&str>, (NodeId, bool)> = HashMap::new();
        let removed: HashSet<Id> = self.index.tombstones().map(|(_, id)| id).collect();
        for node in self.nodes() {
            let entry = self.entry(node);
            if entry.uuid().is_some_and(|id| removed.contains(&id)) {
                continue;
            }
            let is_boundary = entry.is_boundary();
            let is_unattributed = self.is_sidechain(node) && entry.agent().is_none();
            if is_unattributed || self.is_foreign(node) {
                continue;
            }
            let is_root = self.parent(node) == Parent::Root;
            let agent = entry.agent().filter(|_| self.is_sidechain(node));
            let last = if entry.kind().is_message() || is_boundary {
                before.insert(agent, (node, !is_root))
            } else {
                before.get(&agent).copied()
            };
            let Some((last, is_linked)) = last.filter(|_| is_root && !is_boundary) else {
                continue;
            };
            let is_answer = |node: NodeId| self.entry(node).kind() == EntryKind::Assistant;
            let is_below_progress = self.lineage(node).parent().is_some();
            let is_summary = entry.flags().contains(Flags::COMPACT_SUMMARY);
            let is_false = if is_summary {
                self.entry(last).is_boundary()
            } else {
                !self.asks(node)
                    || entry.flags().contains(Flags::AUTOMATIC)
                    || is_below_progress
                    || is_answer(last) && !is_linked
            };
            if is_false {
                self.parents[node.at()] = ParentSlot::LOST;
                self.recovery.false_roots.insert(node);
            }
        }
    }

    /// Returns the ids of missing parents for which this file has no evidence, or only file order
    /// or time. Another file may contain more.
    #[must_use]
    pub fn missing_parents(&self) -> Vec<Id> {
        let is_open = |node: &NodeId| {
            let evidence = self.recovery.bridge(*node);
            self.recovery.gap(*node).is_some()
                || matches!(evidence, Some(Evidence::FileOrder | Evidence::Time))
        };
        let open = self.nodes().filter(is_open);
        let mut missing: Vec<Id> = open
            .filter_map(|node| self.lineage(node).parent())
            .collect();
        let mut seen = HashSet::new();
        missing.retain(|id| self.index.with_uuid(*id).next().is_none() && seen.insert(*id));
        missing
    }

    /// Returns the decision of policy `recover` about the link above `node`: a bridge or a gap;
    /// `None` when the link is unchanged.
    #[must_use]
    pub fn link_decision(&self, node: NodeId) -> Option<Decision> {
        let entry = self.entry_no_of(node);
        if let (Some(evidence), Parent::Node(parent)) =
            (self.recovery.bridge(node), self.parent_before_splice(node))
        {
            let parent = self.entry_no_of(parent);
            return Some(Decision::Bridge {
                entry,
                parent,
                evidence,
            });
        }
        let reason = self.recovery.gap(node)?;
        let is_hidden = |before: &NodeId| {
            self.entry(*before).kind().is_message()
                && !self.is_sidechain(*before)
                && !self.is_foreign(*before)
                && !self.is_tombstoned(*before)
        };
        let hidden = self.nodes().take(node.at()).filter(is_hidden).count() as u32;
        Some(Decision::Gap {
            entry,
            reason,
            hidden,
        })
    }

    /// Chooses the parent of each uuid that is in the file more than once. The first line's parent
    /// counts, as some clients write old messages again with a wrong parent. A later line's counts
    /// when the first one's is missing, or when the entry was written again after a compaction and
    /// its new parent is there too.
    fn choose_lineages(&mut self) {
        if self.recovery.copies.is_empty() {
            return;
        }
        let is_boundary = |node: &NodeId| self.entry(*node).is_boundary();
        let boundaries: Vec<NodeId> = self.nodes().filter(is_boundary).collect();
        let mut walk = Vec::new();
        for (node, copies) in std::mem::take(&mut self.recovery.copies) {
            let first = self.index.entry(copies[0]);
            for copy in &copies[1..] {
                let copy = self.index.entry(*copy);
                let Parent::Node(parent) = self.resolve(&copy, &mut walk).parent_of() else {
                    continue;
                };
                let is_lost = self.parent(node) == Parent::Lost && parent != node;
                let line = |boundary: &NodeId| self.entry(*boundary).number();
                let until = boundaries.partition_point(|other| line(other) < copy.number());
                let is_after = boundaries[..until]
                    .last()
                    .is_some_and(|boundary| first.number() < line(boundary) && parent >= *boundary);
                if is_lost || is_after {
                    self.parents[node.at()] = ParentSlot(parent.0);
                }
            }
            self.recovery.copies.insert(node, copies);
        }
    }

    /// Leads what a compaction kept to its first entry, and what stands between its last entry and the
    /// boundary to that one. A client that compacts a second time first writes old entries again, and
    /// its next line names the last of these as its parent, although it follows the entries that are
    /// kept.
    fn lead_segments_to_their_heads(&mut self) {
        if self.recovery.copies.is_empty() {
            return;
        }
        let is_boundary = |node: &NodeId| self.entry(*node).is_boundary();
        for boundary in self.nodes().filter(is_boundary).collect::<Vec<_>>() {
            let Some(names) = self.index.boundary(self.entry_no_of(boundary)) else {
                continue;
            };
            let node = |id: Id| {
                let mut lines = self.index.with_uuid(id);
                lines.find_map(|line| self.entry_node(line))
            };
            let [head, tail] = names.ends.map(|end| end.and_then(node));
            let last = names.logical_parent.and_then(node);
            for (above, below) in [(head, tail), (tail, last)] {
                if let (Some(above), Some(below)) = (above, below)
                    && let Some(first) = self.first_beside(above, below)
                    && !self.ancestors(above).any(|above| above == first)
                {
                    self.parents[first.at()] = ParentSlot(above.0);
                    self.recovery.bridges.insert(first, Evidence::Kept);
                }
            }
        }
    }

    /// Returns whether `node`, an entry before `other`, was written again after it.
    pub(crate) fn was_repeated_after(&self, node: NodeId, other: NodeId) -> bool {
        let line = self.entry(other).number();
        let copies = self.recovery.copies(node);
        node < other && copies.iter().any(|copy| *copy > line)
    }

    /// Returns the entry above or at `tail` whose parent is an older entry that was written again after
    /// `head`.
    fn first_beside(&self, head: NodeId, tail: NodeId) -> Option<NodeId> {
        let mut at = tail;
        for _ in 0..MAX_STEPS {
            let parent = self.parent_node(at).filter(|_| at > head)?;
            if parent < head {
                return self.was_repeated_after(parent, head).then_some(at);
            }
            at = parent;
        }
        None
    }

    /// Handles a uuid that was written again further down the conversation: children written after
    /// that place follow that place. Hooks that write every context with one uuid do so, and so
    /// does a prompt that is written again after a lost connection. Returns whether a parent was
    /// changed.
    fn follow_later_copies(&mut self) -> bool {
        let mut places: HashMap<NodeId, Vec<(EntryNo, NodeId)>> = HashMap::new();
        let mut walk = Vec::new();
        for (node, copies) in std::mem::take(&mut self.recovery.copies) {
            for copy in &copies[1..] {
                let line = self.index.entry(*copy);
                if let Parent::Node(parent) = self.resolve(&line, &mut walk).parent_of()
                    && self.parent(node) != Parent::Node(parent)
                {
                    places.entry(node).or_default().push((*copy, parent));
                }
            }
            self.recovery.copies.insert(node, copies);
        }
        if places.is_empty() {
            return false;
        }
        self.build_children();
        let descent = Descendants::of(self);
        let mut changed = false;
        for (node, places) in places {
            for child in self.children(node).collect::<Vec<_>>() {
                let line = self.lineage(child).number();
                let until = places.partition_point(|(copy, _)| *copy < line);
                if let Some((_, parent)) = places[..until].last()
                    && descent.is_descendant(*parent, node)
                    && !descent.is_descendant(*parent, child)
                {
                    self.parents[child.at()] = ParentSlot(parent.0);
                    self.recovery.bridges.insert(child, Evidence::LaterCopy);
                    changed = true;
                }
            }
        }
        changed
    }

    /// Cuts one link of each cycle: the one that leads furthest down the file, as a parent is
    /// usually written before its child. Returns the links that were cut.
    fn cut_cycles(&mut self) -> HashMap<NodeId, NodeId> {
        let mut cut = HashMap::new();
        let goes_down = |node: NodeId| self.parent_node(node).is_some_and(|above| above >= node);
        if !self.nodes().any(goes_down) {
            return cut;
        }
        const UNKNOWN: u32 = u32::MAX;
        // The start of the walk that reached each entry first.
        let mut walk_of = vec![UNKNOWN; self.parents.len()];
        for start in self.nodes() {
            let mut at = start;
            let end = loop {
                if walk_of[at.at()] != UNKNOWN {
                    break (walk_of[at.at()] == start.0).then_some(at);
                }
                walk_of[at.at()] = start.0;
                match self.parent_node(at) {
                    Some(parent) => at = parent,
                    None => break None,
                }
            };
            let Some(member) = end else { continue };
            let above = |node: &NodeId| self.parent_node(*node).filter(|above| *above != member);
            let members = std::iter::successors(Some(member), above);
            let goes_down = |node: &NodeId| {
                let parent = self
                    .parent_node(*node)
                    .map_or(0, |parent| i64::from(parent.0));
                parent - i64::from(node.0)
            };
            if let Some(child) = members.max_by_key(goes_down)
                && let Some(parent) = self.parent_node(child)
            {
                self.cut(child, parent, &mut cut);
            }
        }
        self.cut_links_down(&mut cut);
        cut
    }

    fn cut(&mut self, child: NodeId, parent: NodeId, cut: &mut HashMap<NodeId, NodeId>) {
        self.parents[child.at()] = ParentSlot::LOST;
        let entry = self.entry_no_of(child);
        self.decisions.push(Decision::Cycle { entry });
        cut.insert(child, parent);
    }

    /// Where a cycle was cut, other links that lead down the file are as wrong as that one: all
    /// were written by the same fault. Correct links down the file exist only from a result or an
    /// attachment to a parent a few lines below.
    fn cut_links_down(&mut self, cut: &mut HashMap<NodeId, NodeId>) {
        const MAX_DISTANCE: u32 = 9;
        if cut.is_empty() {
            return;
        }
        let mut components = Components::of(self);
        for node in self.nodes() {
            let Some(parent) = self.parent_node(node).filter(|parent| *parent > node) else {
                continue;
            };
            let is_message = self.entry(node).kind().is_message();
            let is_result = is_message && self.is_answer_to(node, parent);
            let is_usual = parent.0 - node.0 <= MAX_DISTANCE && (is_result || !is_message);
            if !is_usual && cut.contains_key(&components.root(node)) {
                self.cut(node, parent, cut);
            }
        }
    }

    /// Finds the entries of other sessions: those that no link connects with an entry of this one.
    /// Copies that a fork or an old client left with another session's id are linked, so they
    /// count; where a link among them is missing, they precede everything that this session wrote
    /// itself. A line of one of our messages and the result of one of our calls are ours, even if
    /// damage changed their session id.
    ///
    /// The client does not look at session ids at all (FILE-10).
    fn find_foreign(&mut self) {
        if self.index.sessions().nth(1).is_none() {
            return;
        }
        let own = self.index.own_session();
        let mut components = Components::of(self);
        let mut is_own = vec![false; self.parents.len()];
        let mut first = None;
        for node in self.nodes() {
            let sessions = [self.entry(node).session(), self.lineage(node).session()];
            let is_named = sessions.contains(&own);
            if is_named || sessions[0].is_none() {
                is_own[components.root(node).at()] = true;
                first = first.or(is_named.then_some(node));
            }
        }
        // The same entry may be in the file once more, with the name of another session.
        let is_own_line = |node: &NodeId| {
            self.entry(*node).session() == own || self.lineage(*node).session() == own
        };
        let own_lines = || self.nodes().filter(is_own_line);
        let messages: HashSet<_> = own_lines().filter_map(|node| self.message(node)).collect();
        let calls = own_lines().flat_map(|node| self.tool_keys(node, ToolRole::Use));
        let calls: HashSet<_> = calls.collect();
        for node in self.nodes() {
            let message = self.message(node);
            let mut results = self.tool_keys(node, ToolRole::Result);
            if message.is_some_and(|message| messages.contains(&message))
                || results.any(|result| calls.contains(&result))
            {
                is_own[components.root(node).at()] = true;
            }
        }
        let before = || self.nodes().take_while(|node| Some(*node) != first);
        let own = before().filter(|node| is_own[components.root(*node).at()]);
        let copied_from: HashSet<_> = own.map(|node| self.entry(node).session()).collect();
        for node in before() {
            if copied_from.contains(&self.entry(node).session()) {
                is_own[components.root(node).at()] = true;
            }
        }
        // The lines that name the session may all be outside of the tree: then no component counts as its own.
        if !is_own.contains(&true) {
            return;
        }
        let foreign = self
            .nodes()
            .filter(|node| !is_own[components.root(*node).at()]);
        self.recovery.foreign = foreign.collect();
        self.find_sidechains();
    }
}
