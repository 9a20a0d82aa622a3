//! Finds replacements for missing parents.
//!
//! A missing parent is bridged only where the evidence points to exactly one entry. A wrong bridge
//! would show messages that a person discarded with a rewind, which is worse than a reported gap.
//! The first rule that applies counts:
//!
//! 1. the line of the parent exists but is not usable as an entry: its own parent;
//! 2. another file of the session contains the parent and leads back to an entry of this one;
//! 3. two entries name each other's parents: the two are exchanged;
//! 4. the entry is a result: the entry with its call;
//! 5. the entry is a line of the same answer as the one before it in the file;
//! 6. the entry before it in the file, of the same session and chain. Not when the conversation
//!    continues from that one elsewhere, when it opens a branch that a rewind made, when it is
//!    clearly newer, or when a compaction is between them. Where a rewind left several tips and the
//!    timestamps point to another one, that one is taken, as the client does (CHAIN-3).
//!
//! All entries that miss the same parent form a group and get the same replacement, as they were
//! siblings. What no rule explains is joined by time, as the client does it, so that `recover`
//! never shows less than the client.

use hashbrown::HashMap;
use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};

use crate::index::{EntryRef, Id, ToolKey};
use crate::other_files::OtherFiles;
use crate::tree::components::Components;
use crate::tree::decision::{Evidence, GapReason};
use crate::tree::timeline::MAX_STEPS;
use crate::tree::{NodeId, Parent, ParentSlot, Tree};

/// The maximum time by which the entry before may be newer: an entry gets its timestamp before it
/// is written, so lines of parallel tools can be slightly out of order.
const CLOCK_TOLERANCE_MILLIS: i64 = 60_000;
/// The time within which the client looks for the previous entry (CHAIN-3).
const CLIENT_WINDOW_MILLIS: i64 = 5_000;

/// Finds replacements for missing parents.
pub(crate) struct LostParents<'t, 'i> {
    tree: &'t mut Tree<'i>,
    others: Option<&'t OtherFiles>,
    components: Components,
    /// The links that were cut because they closed a cycle, from child to parent.
    cut: HashMap<NodeId, NodeId>,
    /// For each entry the one before it in the file that is of the same chain.
    before: Vec<Option<NodeId>>,
    /// As `before`, restricted to messages and boundaries.
    message_before: Vec<Option<NodeId>>,
    boundaries: Vec<NodeId>,
    /// For each component, by its topmost entry: the last entry in the file.
    last_of: Vec<NodeId>,
    /// The entries, ordered by timestamp.
    by_time: Vec<(i64, NodeId)>,
    /// The entries that make each call; built when it is first needed.
    calls: Option<HashMap<ToolKey, Vec<NodeId>>>,
}

/// Identifies a missing parent. Entries that miss the same one form a group, and its first entry
/// represents all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Missing<'i> {
    /// A uuid that no entry has, and the chain that refers to it.
    Id(Id, Chain<'i>),
    /// A link of its own: one that was cut, or that is not a valid id.
    Link(NodeId),
}

/// Distinguishes conversations that are written to one file: the main one and each subagent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Chain<'i> {
    is_sidechain: bool,
    agent: Option<&'i str>,
}

impl<'i> Chain<'i> {
    fn of(entry: &EntryRef<'i>) -> Self {
        Self {
            is_sidechain: entry.flags().contains(Flags::SIDECHAIN),
            agent: entry.agent(),
        }
    }
}

impl<'t, 'i> LostParents<'t, 'i> {
    pub(crate) fn new(
        tree: &'t mut Tree<'i>,
        others: Option<&'t OtherFiles>,
        cut: HashMap<NodeId, NodeId>,
    ) -> Self {
        let mut last: HashMap<Chain<'i>, [Option<NodeId>; 2]> = HashMap::new();
        let (mut before, mut message_before) = (Vec::new(), Vec::new());
        for node in tree.nodes() {
            let entry = tree.entry(node);
            let [any, message] = last.entry(Chain::of(&entry)).or_default();
            before.push(*any);
            message_before.push(*message);
            if !tree.is_foreign(node) {
                *any = Some(node);
                if entry.kind().is_message() || entry.is_boundary() {
                    *message = Some(node);
                }
            }
        }
        let is_boundary = |node: &NodeId| tree.entry(*node).is_boundary();
        let timed = tree.nodes().filter(|node| !tree.is_foreign(*node));
        let timed = timed.filter_map(|node| Some((tree.entry(node).millis()?, node)));
        let mut by_time: Vec<_> = timed.collect();
        by_time.sort_unstable();
        let mut components = Components::of(tree);
        let mut last_of: Vec<NodeId> = tree.nodes().collect();
        for node in tree.nodes() {
            last_of[components.root(node).at()] = node;
        }
        Self {
            last_of,
            by_time,
            boundaries: tree.nodes().filter(is_boundary).collect(),
            components,
            tree,
            others,
            cut,
            before,
            message_before,
            calls: None,
        }
    }

    /// Bridges the missing parents of the entries `lost`, or records why it cannot.
    pub(crate) fn run(mut self, lost: &[NodeId]) {
        let mut groups: Vec<Vec<NodeId>> = Vec::new();
        let mut group_of: HashMap<Missing<'i>, usize> = HashMap::new();
        for node in lost {
            let group = *group_of.entry(self.missing(*node)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(*node);
        }
        let mut gaps = Vec::new();
        for group in groups {
            if self.tree.parent(group[0]) != Parent::Lost {
                // Already exchanged with an earlier entry.
                continue;
            }
            match self.find(&group) {
                Ok(FoundParent::Root) => {
                    for node in &group {
                        self.tree.parents[node.at()] = ParentSlot::ROOT;
                    }
                }
                Ok(FoundParent::Parent(parent, evidence)) => {
                    for node in &group {
                        match self.end_of_its_answer(*node, &group) {
                            Some(line) => self.link(*node, line, Evidence::Message),
                            None => self.link(*node, parent, evidence),
                        }
                    }
                }
                Err(GapReason::NothingBefore) if self.names_empty_parent(group[0]) => {
                    self.tree.parents[group[0].at()] = ParentSlot::ROOT;
                }
                Err(reason) => {
                    for node in &group {
                        self.tree.recovery.gaps.insert(*node, reason);
                    }
                    gaps.extend(group);
                }
            }
        }
        // From the end of the file backwards, as the client walks up from the leaf.
        gaps.sort_unstable();
        for node in gaps.into_iter().rev() {
            if let Some(parent) = self.as_the_client_joins(node) {
                self.tree.recovery.gaps.remove(&node);
                self.link(node, parent, Evidence::Time);
            }
        }
    }

    /// Returns whether a line has an empty id as its parent: with nothing before it, the conversation
    /// starts there.
    fn names_empty_parent(&self, node: NodeId) -> bool {
        let line = self.tree.lineage(node);
        line.flags().contains(Flags::PARENT_EMPTY) && !self.cut.contains_key(&node)
    }

    /// Returns what `node` misses. A cut link names an existing entry, so that its uuid must not
    /// group it with others.
    fn missing(&self, node: NodeId) -> Missing<'i> {
        let entry = self.tree.lineage(node);
        match entry.parent() {
            Some(id) if !self.cut.contains_key(&node) => Missing::Id(id, Chain::of(&entry)),
            _ => Missing::Link(node),
        }
    }

    /// Makes `parent` the parent of `node`, unless that would close a cycle.
    fn link(&mut self, node: NodeId, parent: NodeId, evidence: Evidence) {
        if self.components.root(parent) == self.components.root(node) {
            // The others of its group were linked below this entry; linking it as well would close
            // a cycle.
            let gaps = &mut self.tree.recovery.gaps;
            gaps.insert(node, GapReason::NothingBefore);
            return;
        }
        self.tree.parents[node.at()] = ParentSlot(parent.0);
        self.tree.recovery.bridges.insert(node, evidence);
        self.components.join(node, parent);
    }

    /// Finds the parent for the entries of `group`, which miss the same one, by the first rule that
    /// applies. The strongest evidence comes first: names in files, then calls and message ids,
    /// then file order and time.
    fn find(&mut self, group: &[NodeId]) -> Result<FoundParent, GapReason> {
        let node = group[0];
        if let Some(parent) = self.anchor_above(node) {
            return Ok(FoundParent::Parent(parent, Evidence::Kept));
        }
        if let Some(found) = self.parent_of_unusable(node) {
            return Ok(found);
        }
        let elsewhere = self.in_other_file(node);
        if let Some(Some(parent)) = elsewhere {
            return Ok(FoundParent::Parent(parent, Evidence::OtherFile));
        }
        if let Some(found) = self.exchanged(node) {
            return Ok(found);
        }
        if let Some(call) = self.call_of(node) {
            return Ok(FoundParent::Parent(call, Evidence::Call));
        }
        if let Some(line) = self.same_answer(node) {
            return Ok(FoundParent::Parent(line, Evidence::Message));
        }
        let before = match self.before_in_file(group) {
            Err(GapReason::NothingBefore) if elsewhere.is_some() => Err(GapReason::OtherFile),
            before => before,
        };
        let before = before?;
        match self.before_in_time(group, before) {
            Some(parent) => Ok(FoundParent::Parent(parent, Evidence::Time)),
            None => Ok(FoundParent::Parent(before, Evidence::FileOrder)),
        }
    }

    /// Returns the tip of another branch when it was written shortly before the group, and `before`
    /// was not. After a rewind, file order alone points to the wrong branch.
    fn before_in_time(&mut self, group: &[NodeId], before: NodeId) -> Option<NodeId> {
        // Both walks below are made for each gap: in a file of many gaps they would take quadratic time without a limit.
        const MAX_STEPS: usize = 64;
        let node = group[0];
        let entry = self.tree.entry(node);
        let own = entry.millis()?;
        let until = self.by_time.partition_point(|(millis, _)| *millis <= own);
        let component = self.components.root(node);
        let newest = (0..until).rev().take(MAX_STEPS).map(|at| self.by_time[at]);
        let (millis, newest) = newest
            .filter(|(millis, _)| own - millis <= CLIENT_WINDOW_MILLIS)
            .find(|(_, other)| {
                *other < node
                    && self.components.peek(*other) != component
                    && Chain::of(&self.tree.entry(*other)) == Chain::of(&entry)
            })?;
        let written = self.tree.entry(before).millis();
        let is_newer = written.is_some_and(|time| time < millis);
        let mut above = self.tree.ancestors(before).take(MAX_STEPS);
        let is_message = self.tree.entry(newest).kind().is_message();
        let is_other_end = is_newer
            && is_message
            && !above.any(|above| above == newest)
            && !self.boundary_between(newest, node)
            && !self.continues_elsewhere(newest, group, self.tree.asks(node));
        is_other_end.then_some(newest)
    }

    /// Returns the entry that the client joins a dangling link to: the newest one that is at most
    /// five seconds older (CHAIN-3). Where there is no other evidence `recover` does the same, so
    /// that it never shows less.
    fn as_the_client_joins(&mut self, node: NodeId) -> Option<NodeId> {
        let own = self.tree.entry(node).millis()?;
        let is_sidechain = self.tree.is_sidechain(node);
        let component = self.components.root(node);
        let until = self.by_time.partition_point(|(millis, _)| *millis <= own);
        let newest = (0..until).rev().map(|at| self.by_time[at]);
        newest
            .take_while(|(millis, _)| own - millis <= CLIENT_WINDOW_MILLIS)
            .map(|(_, other)| other)
            .find(|other| {
                self.components.peek(*other) != component
                    && self.tree.is_sidechain(*other) == is_sidechain
            })
    }

    /// Returns the parent of `node` when its missing parent is a preserved entry of the boundary
    /// before it: the anchor of that boundary, which the preserved entries follow as well
    /// (COMPACT-4).
    fn anchor_above(&self, node: NodeId) -> Option<NodeId> {
        if self.cut.contains_key(&node) {
            return None;
        }
        let lost = self.tree.lineage(node).parent()?;
        let until = self.boundaries.partition_point(|other| *other < node);
        let boundary = *self.boundaries[..until].last()?;
        let entry_ref = self.tree.entry_no_of(boundary);
        let kept = self.tree.index.boundary(entry_ref)?;
        let is_kept = kept.names(lost) && !self.tree.is_sidechain(node);
        let anchor = || {
            let anchor = kept.anchor().and_then(|id| self.tree.node_with_uuid(id));
            anchor.or_else(|| self.tree.summary_of(boundary))
        };
        let above = is_kept.then(|| anchor().unwrap_or(boundary))?;
        (above < node && self.components.peek(above) != self.components.peek(node)).then_some(above)
    }

    /// Returns the end of the answer when `node` is a result of a call whose line is missing and
    /// other lines of the answer miss the same parent. An answer comes before its results, so the
    /// result follows the last of those lines.
    fn end_of_its_answer(&mut self, node: NodeId, group: &[NodeId]) -> Option<NodeId> {
        let is_line = |other: &NodeId| {
            let other = self.tree.entry(*other);
            other.kind() == EntryKind::Assistant && other.message().is_some()
        };
        let line = *group.iter().find(|other| is_line(other))?;
        let lost_its_call = self.tree.answers(node) && self.call_of(node).is_none();
        lost_its_call.then(|| self.end_of_answer(line))
    }

    /// Returns the parent of the missing parent when the line of that exists after all but is not
    /// usable.
    fn parent_of_unusable(&self, node: NodeId) -> Option<FoundParent> {
        let index = self.tree.index;
        if self.cut.contains_key(&node) || self.tree.recovery.false_roots.contains(&node) {
            return None;
        }
        let mut id = self.tree.lineage(node).parent()?;
        for _ in 0..MAX_STEPS {
            if let Some(parent) = self.tree.node_with_uuid(id) {
                let joins = self.components.peek(parent) != self.components.peek(node);
                return joins.then_some(FoundParent::Parent(parent, Evidence::Unusable));
            }
            let line = index.with_uuid(id).next()?;
            let line = index.entry(line);
            match line.parent() {
                Some(parent) => id = parent,
                None => return self.tree.is_root(&line).then_some(FoundParent::Root),
            }
        }
        None
    }

    /// Returns what another file contains about the missing parent: `Some(Some(entry))` when it
    /// leads back to an entry of this file.
    fn in_other_file(&self, node: NodeId) -> Option<Option<NodeId>> {
        let missing = self.tree.lineage(node).parent()?;
        let parent = self.others?.parent_of(missing)?;
        let parent = parent.and_then(|id| self.tree.node_with_uuid(id));
        Some(parent.filter(|parent| self.components.peek(*parent) != self.components.peek(node)))
    }

    /// Returns the entry with the call that the result `node` answers.
    fn call_of(&mut self, node: NodeId) -> Option<NodeId> {
        let entry = self.tree.entry(node);
        let result = entry.tool_keys(ToolRole::Result).next()?;
        let tree = &*self.tree;
        let calls = self.calls.get_or_insert_with(|| {
            let mut calls: HashMap<_, Vec<NodeId>> = HashMap::new();
            for node in tree.nodes().filter(|node| !tree.is_foreign(*node)) {
                let tools = tree.entry(node).tools().iter();
                for call in tools.filter(|end| end.role() == ToolRole::Use) {
                    calls.entry(call.key()).or_default().push(node);
                }
            }
            calls
        });
        // Of several calls with one id, the last one before the result.
        let calls = calls.get(&result)?;
        let before = calls.partition_point(|call| *call < node);
        let call = calls[before.saturating_sub(1)];
        let is_near = Chain::of(&tree.entry(call)) == Chain::of(&entry)
            && tree.entry(call).session() == entry.session()
            && self.components.root(call) != self.components.root(node)
            && !self.boundary_between(call, node);
        is_near.then_some(call)
    }

    /// Returns the entry before `node` in the file when it is a line of the same answer, or a
    /// result of a call of such a line.
    fn same_answer(&mut self, node: NodeId) -> Option<NodeId> {
        let key = self.tree.message(node)?;
        let before = self.message_before[node.at()]?;
        let line = if self.tree.answers(before) {
            self.tree.message_above(before)?
        } else {
            before
        };
        let is_line = self.tree.message(line) == Some(key)
            && (line == before || self.tree.is_answer_to(before, line));
        let joins = self.components.root(before) != self.components.root(node);
        (is_line && joins).then_some(before)
    }

    /// Returns whether a boundary is between two entries in the file: a bridge must not undo a
    /// compaction.
    fn boundary_between(&self, one: NodeId, other: NodeId) -> bool {
        let before = |node: NodeId| self.boundaries.partition_point(|boundary| *boundary < node);
        before(one) != before(other)
    }

    /// `node` was cut from a parent further down the file. When the entry after that parent has its
    /// own parent right before `node`, two lines had their parents swapped: each gets the other's.
    fn exchanged(&mut self, node: NodeId) -> Option<FoundParent> {
        const MAX_DISTANCE: usize = 8;
        let named = *self.cut.get(&node)?;
        let after = (named.0 + 1..self.tree.parents.len() as u32).map(NodeId);
        for other in after.take(MAX_DISTANCE) {
            let Some(parent) = self.tree.parent_node(other) else {
                continue;
            };
            let is_near = self.is_right_before(parent, node);
            // That branch must not already be below `node`, as this would close a cycle.
            if is_near && self.components.root(parent) != self.components.root(node) {
                self.tree.parents[other.at()] = ParentSlot(named.0);
                let bridges = &mut self.tree.recovery.bridges;
                bridges.insert(other, Evidence::Exchanged);
                return Some(FoundParent::Parent(parent, Evidence::Exchanged));
            }
        }
        None
    }

    /// Returns whether `parent` is the message before `node` in the file, ignoring results and
    /// lines of the same answer.
    fn is_right_before(&self, parent: NodeId, node: NodeId) -> bool {
        let key = self.tree.message(parent);
        let first = self.message_before[node.at()];
        let before = std::iter::successors(first, |at| self.message_before[at.at()]);
        for at in before.take(MAX_STEPS) {
            if at == parent {
                return true;
            }
            let is_line = key.is_some() && self.tree.message(at) == key;
            if !is_line && !self.tree.answers(at) {
                break;
            }
        }
        // Or an attachment or system entry after that message.
        parent < node && Some(parent) > first
    }

    /// Returns the entry before the group in the file, of the same session and chain, or why it
    /// cannot be the parent.
    fn before_in_file(&mut self, group: &[NodeId]) -> Result<NodeId, GapReason> {
        let node = group[0];
        let entry = self.tree.entry(node);
        let component = self.components.root(node);
        let nearest = self.before[node.at()];
        let mut message = self.message_before[node.at()];
        for _ in 0..MAX_STEPS {
            // Entries of the same component were written before their own ancestor: skip them.
            match message {
                Some(at) if self.components.root(at) == component => {
                    message = self.message_before[at.at()];
                }
                _ => break,
            }
        }
        let mut message = message
            .filter(|at| self.components.root(*at) != component)
            .ok_or(GapReason::NothingBefore)?;
        let is_prompt = self.tree.asks(node);
        if entry.kind() == EntryKind::User && !is_prompt {
            message = self.end_of_answer(message);
        }
        for _ in 0..MAX_STEPS {
            // A child that was also written before the group is where the conversation continued.
            let below = self.tree.next_messages(message).into_iter();
            let written = below.filter(|child| *child < node && !group.contains(child));
            match written.max() {
                Some(child) if self.components.root(child) != component => message = child,
                _ => break,
            }
        }
        if let (Some(session), Some(own)) = (self.tree.entry(message).session(), entry.session())
            && session != own
        {
            return Err(GapReason::OtherSession);
        }
        let is_summary = |node: NodeId| {
            let flags = self.tree.entry(node).flags();
            flags.contains(Flags::COMPACT_SUMMARY)
        };
        let is_boundary = self.tree.entry(message).is_boundary();
        if is_summary(node) && !is_boundary {
            return Err(GapReason::Boundary);
        }
        if let (Some(own), Some(other)) = (entry.millis(), self.tree.entry(message).millis())
            && other.saturating_sub(own) > CLOCK_TOLERANCE_MILLIS
        {
            return Err(GapReason::Time);
        }
        if !is_boundary
            && (self.continues_elsewhere(message, group, is_prompt)
                || (is_prompt && self.starts_branch(message)))
        {
            return Err(GapReason::Rewind);
        }
        // An attachment or system entry below that message, with nothing below it, belongs between
        // the two.
        let is_child_there = |near: &NodeId| {
            *near > message
                && self.tree.message_above(*near) == Some(message)
                && self.tree.children(*near).next().is_none()
        };
        Ok(nearest.filter(is_child_there).unwrap_or(message))
    }

    /// Returns the last line of the answer that `message` belongs to: a result may be written
    /// before the later lines of its answer.
    fn end_of_answer(&self, message: NodeId) -> NodeId {
        let key = self.tree.message(message);
        let mut end = message;
        for _ in 0..MAX_STEPS {
            let mut below = self.tree.next_messages(end).into_iter();
            let next = below.find(|line| key.is_some() && self.tree.message(*line) == key);
            match next {
                Some(next) => end = next,
                None => break,
            }
        }
        end
    }

    /// Returns whether the conversation continues from `message` with an entry outside the group;
    /// the group is then an abandoned branch, or that entry is. Two cases do not count: results of
    /// its own calls, which come next to an answer that continues; and a branch that started after
    /// the last entry of the group, which is a later rewind (CHAIN-11).
    fn continues_elsewhere(&self, message: NodeId, group: &[NodeId], is_prompt: bool) -> bool {
        let follows = self.tree.next_messages(message);
        let last = group.iter().map(|node| self.last_of[node.at()]).max();
        follows.into_iter().any(|other| {
            let is_rewind = last.is_some_and(|last| other > last);
            let is_result = !is_prompt
                && !self.tree.asks(other)
                && self.tree.entry(other).kind() == EntryKind::User;
            !group.contains(&other)
                && !is_rewind
                && !is_result
                && !self.tree.is_foreign(other)
                && Chain::of(&self.tree.entry(other)) == Chain::of(&self.tree.entry(message))
        })
    }

    /// Returns whether `message` is the prompt of a rewind: its parent already had another child
    /// before it in the file (CHAIN-11).
    fn starts_branch(&self, message: NodeId) -> bool {
        if !self.tree.asks(message) {
            return false;
        }
        match self.tree.message_above(message) {
            Some(above) => {
                let follows = self.tree.next_messages(above);
                follows.into_iter().any(|other| other < message)
            }
            // A prompt without a parent is a new start when a message of this conversation precedes
            // it.
            None => {
                let found = self.message_before[message.at()];
                found.is_some_and(|found| self.tree.entry(found).kind().is_message())
            }
        }
    }
}

/// The replacement for a missing parent.
enum FoundParent {
    /// The missing parent was a root.
    Root,
    Parent(NodeId, Evidence),
}
