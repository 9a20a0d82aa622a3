//! What policy `recover` brings back in the tree: lost parents, repeated uuids, cycles, entries of
//! other sessions, broken compactions.
//!
//! Each change names its evidence. A lost parent is bridged only where something speaks for one
//! entry and nothing for another: a wrong bridge resurrects what a person discarded, which is worse
//! than a gap that says so (`facts/pains.md` 3). The first rule that applies counts:
//!
//! 1. the line of the parent is there, but is no entry: what it names as its own parent;
//! 2. another file of the session holds the parent and leads back to an entry of this one;
//! 3. two entries name each other's parents: exchanged back;
//! 4. the entry is a result: the line with its call;
//! 5. the entry is a line of the same answer as the one before it in the file;
//! 6. the entry before it in the file, of the same session and chain. Not when the conversation goes
//!    on under that one elsewhere, when it opens a branch that a rewind made, when it is clearly
//!    newer, or when a compaction stands between. Where a rewind left several ends and the time
//!    speaks for another one, that is taken, as the client does.

use std::collections::{HashMap, HashSet};

use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{Boundary, Candidate, Id, OtherFiles, Preserved, ToolKey};

use crate::decision::{Decision, Evidence, GapReason};
use crate::links::{NodeId, Packed, Parent, Tree};

/// How much newer the entry before may be: lines are stamped before they are written.
const CLOCK_TOLERANCE_MILLIS: i64 = 60_000;
/// How far back the client looks for the entry before in time (`facts/rig.md` 5).
const CLIENT_WINDOW_MILLIS: i64 = 5_000;
/// How far a walk over neighbours goes before it gives up: real ones take a few steps.
const MAX_STEPS: usize = 1_000;

/// What was changed to bring entries back.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// The lines of each uuid that stands in the file more than once, in file order.
    copies: HashMap<NodeId, Vec<u32>>,
    /// Entries whose parent is not the one that their line names, and what speaks for it.
    bridges: HashMap<NodeId, Evidence>,
    /// Entries whose parent stays lost, and why.
    gaps: HashMap<NodeId, GapReason>,
    /// Entries of other sessions, in file order; empty when there are none.
    foreign: Vec<NodeId>,
}

impl Recovery {
    /// Notes that `copy` has the uuid of `node`, which `known` was the last line of so far.
    pub(crate) fn add_copy(&mut self, node: NodeId, known: u32, copy: u32) {
        let copies = self.copies.entry(node).or_insert_with(|| vec![known]);
        copies.push(copy);
    }

    /// The lines of `node`, in file order; empty when there is only one.
    pub(crate) fn copies(&self, node: NodeId) -> &[u32] {
        self.copies.get(&node).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn bridge(&self, node: NodeId) -> Option<Evidence> {
        self.bridges.get(&node).copied()
    }

    pub(crate) fn gap(&self, node: NodeId) -> Option<GapReason> {
        self.gaps.get(&node).copied()
    }

    pub(crate) fn foreign(&self) -> &[NodeId] {
        &self.foreign
    }
}

impl Tree<'_> {
    /// Mends the links, which stand as they are written.
    pub(crate) fn recover(&mut self, others: Option<&OtherFiles>) {
        self.choose_lineages();
        let mut cut = self.cut_cycles();
        if self.follow_later_copies() {
            cut.extend(self.cut_cycles());
        }
        self.find_foreign();
        let is_lost = |node: &NodeId| self.parent(*node) == Parent::Lost && !self.is_foreign(*node);
        let lost: Vec<NodeId> = self.nodes().filter(is_lost).collect();
        if !lost.is_empty() {
            self.hang_children();
            Bridging::new(self, others, cut).run(&lost);
        }
    }

    /// Returns the ids of lost parents that nothing in the file itself leads back from, or only its
    /// order: another file may know more.
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

    /// Whether the entry belongs to another session and is not linked to this one.
    #[must_use]
    pub fn is_foreign(&self, node: NodeId) -> bool {
        self.recovery.foreign.binary_search(&node).is_ok()
    }

    /// Returns what policy `recover` decided about the link above `node`: a bridge or a gap; `None`
    /// when the link stands as it is written.
    #[must_use]
    pub fn mend(&self, node: NodeId) -> Option<Decision> {
        let entry = self.candidate_of(node);
        if let (Some(evidence), Parent::Node(parent)) =
            (self.recovery.bridge(node), self.parent_before_splice(node))
        {
            let parent = self.candidate_of(parent);
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
        };
        let hidden = self.nodes().take(node.at()).filter(is_hidden).count() as u32;
        Some(Decision::Gap {
            entry,
            reason,
            hidden,
        })
    }

    /// Chooses the parent of each uuid that stands in the file more than once: that of the first
    /// line, unless that is lost, or a later line was written again behind a compaction and hangs
    /// there (`facts/pains.md` 4 and 16).
    fn choose_lineages(&mut self) {
        if self.recovery.copies.is_empty() {
            return;
        }
        let is_boundary = |node: &NodeId| self.entry(*node).is_boundary();
        let boundaries: Vec<NodeId> = self.nodes().filter(is_boundary).collect();
        let mut walk = Vec::new();
        for (node, copies) in std::mem::take(&mut self.recovery.copies) {
            let first = self.index.candidate(copies[0] as usize);
            for copy in &copies[1..] {
                let copy = self.index.candidate(*copy as usize);
                let Parent::Node(parent) = self.resolve(&copy, &mut walk).unpack() else {
                    continue;
                };
                let is_lost = self.parent(node) == Parent::Lost && parent != node;
                let line = |boundary: &NodeId| self.entry(*boundary).number();
                let until = boundaries.partition_point(|other| line(other) < copy.number());
                let is_behind = boundaries[..until]
                    .last()
                    .is_some_and(|boundary| first.number() < line(boundary) && parent >= *boundary);
                if is_lost || is_behind {
                    self.parents[node.at()] = Packed(parent.0);
                }
            }
            self.recovery.copies.insert(node, copies);
        }
    }

    /// A uuid that was written again further down the conversation: what names it behind that
    /// place follows that place. So do hooks that write every context with one uuid, and a prompt
    /// that is written again after a lost connection (`facts/pains.md` 16). Returns whether a
    /// parent was changed.
    fn follow_later_copies(&mut self) -> bool {
        let mut places: HashMap<NodeId, Vec<(u32, NodeId)>> = HashMap::new();
        let mut walk = Vec::new();
        for (node, copies) in std::mem::take(&mut self.recovery.copies) {
            for copy in &copies[1..] {
                let line = self.index.candidate(*copy as usize);
                if let Parent::Node(parent) = self.resolve(&line, &mut walk).unpack()
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
        self.hang_children();
        let descent = Descent::of(self);
        let mut changed = false;
        for (node, places) in places {
            for child in self.children(node).collect::<Vec<_>>() {
                let line = self.lineage(child).number() as u32;
                let until = places.partition_point(|(copy, _)| *copy < line);
                if let Some((_, parent)) = places[..until].last()
                    && descent.is_under(*parent, node)
                    && !descent.is_under(*parent, child)
                {
                    self.parents[child.at()] = Packed(parent.0);
                    self.recovery.bridges.insert(child, Evidence::LaterCopy);
                    changed = true;
                }
            }
        }
        changed
    }

    /// Cuts one link of each cycle: the one that goes furthest down the file, as a parent is
    /// written before its child but for a few lines. Returns the links that were cut.
    fn cut_cycles(&mut self) -> HashMap<NodeId, NodeId> {
        let mut cut = HashMap::new();
        let goes_down = |node: NodeId| self.parent_node(node).is_some_and(|above| above >= node);
        if !self.nodes().any(goes_down) {
            return cut;
        }
        const UNKNOWN: u32 = u32::MAX;
        // Which walk came by first.
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
        self.parents[child.at()] = Packed::LOST;
        let entry = self.candidate_of(child);
        self.decisions.push(Decision::Cycle { entry });
        cut.insert(child, parent);
    }

    /// Where a cycle was cut, other links that lead down the file are as wrong as the one that was
    /// cut. Real ones are those of a result or an attachment, a few lines down
    /// (`facts/corpus.md` 3.3).
    fn cut_links_down(&mut self, cut: &mut HashMap<NodeId, NodeId>) {
        const NEAR: u32 = 9;
        if cut.is_empty() {
            return;
        }
        let mut islands = Islands::of(self);
        for node in self.nodes() {
            let Some(parent) = self.parent_node(node).filter(|parent| *parent > node) else {
                continue;
            };
            let is_message = self.entry(node).kind().is_message();
            let is_result = is_message && self.is_answer_to(node, parent);
            let is_usual = parent.0 - node.0 <= NEAR && (is_result || !is_message);
            if !is_usual && cut.contains_key(&islands.root(node)) {
                self.cut(node, parent, cut);
            }
        }
    }

    /// Finds the entries of other sessions: those that no link connects with an entry of this one.
    /// Copies that a fork or an old client left with another session's id are linked.
    fn find_foreign(&mut self) {
        if self.index.sessions().nth(1).is_none() {
            return;
        }
        let own = self.index.own_session();
        let mut islands = Islands::of(self);
        let mut is_own = vec![false; self.parents.len()];
        for node in self.nodes() {
            let session = self.entry(node).session();
            if session.is_none() || session == own {
                is_own[islands.root(node).at()] = true;
            }
        }
        let foreign = self
            .nodes()
            .filter(|node| !is_own[islands.root(*node).at()]);
        self.recovery.foreign = foreign.collect();
        self.find_sidechains();
    }

    /// Whether `node` is the result of a call of `parent`.
    fn is_answer_to(&self, node: NodeId, parent: NodeId) -> bool {
        let calls = self.entry(parent).tools();
        let results = self.entry(node).tools().iter();
        let mut results = results.filter(|end| end.role() == ToolRole::Result);
        results.any(|result| {
            let mut calls = calls.iter().filter(|end| end.role() == ToolRole::Use);
            calls.any(|call| call.key() == result.key())
        })
    }

    /// Whether the entry is of the user and answers a call.
    pub(crate) fn answers(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        entry.kind() == EntryKind::User && entry.flags().contains(Flags::HAS_TOOL_RESULT)
    }

    /// Whether the entry is of the user and answers no call.
    pub(crate) fn is_prompt(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        entry.kind() == EntryKind::User && !entry.flags().contains(Flags::HAS_TOOL_RESULT)
    }

    /// The nearest message above `node`, past attachments and system lines.
    fn message_above(&self, node: NodeId) -> Option<NodeId> {
        let mut above = self.ancestors(node).skip(1).take(MAX_STEPS);
        above.find(|above| self.entry(*above).kind().is_message())
    }

    /// The messages that follow `node`, past attachments and system lines.
    pub(crate) fn messages_below(&self, node: NodeId) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut open = vec![node];
        let mut steps = 0;
        while let Some(at) = open.pop() {
            for child in self.children(at) {
                steps += 1;
                let entry = self.entry(child);
                if entry.kind().is_message() {
                    found.push(child);
                } else if !entry.is_boundary() {
                    open.push(child);
                }
                // The links may form a cycle under `vendor`.
                if steps == MAX_STEPS {
                    return found;
                }
            }
        }
        found
    }

    /// The anchor and the entries that the boundary `node` keeps, when some of them cannot be found
    /// by its words (`facts/pains.md` 4). Names that lead nowhere are replaced by what the boundary says in
    /// another place: the ends of the segment, the leaf of the conversation before, the links
    /// between the entries that are there.
    pub(crate) fn preserved_in_part(
        &self,
        node: NodeId,
        boundary: &Boundary,
    ) -> Option<(NodeId, Vec<NodeId>)> {
        let there = |id: Id| {
            let renamed = || self.node_with_uuid(self.index.new_name(id)?);
            self.node_with_uuid(id).or_else(renamed)
        };
        let find = |id: Option<Id>| there(id?).filter(|found| *found < node);
        let (anchor, mut kept) = match &boundary.preserved {
            Preserved::Nothing => return None,
            Preserved::List { anchor, uuids } => {
                let listed: Vec<_> = uuids.iter().map(|id| find(*id)).collect();
                (*anchor, self.fill(&listed, boundary.ends.map(find)))
            }
            Preserved::Segment { anchor } => {
                let [head, tail] = boundary.ends.map(find);
                let tail = tail.or_else(|| find(boundary.logical_parent));
                (*anchor, self.between(head?, tail?)?)
            }
        };
        let mut seen = HashSet::new();
        kept.retain(|entry| seen.insert(*entry));
        // Without the anchor: behind the summary, else the boundary itself. Where nothing follows
        // that, the compaction was never finished and keeps nothing.
        let is_summary = |child: &NodeId| {
            let flags = self.entry(*child).flags();
            flags.contains(Flags::COMPACT_SUMMARY) && self.parent_node(*child) == Some(node)
        };
        let summary = || self.nodes().skip(node.at()).find(is_summary);
        let itself = || {
            let mut behind = self.nodes().skip(node.at());
            behind
                .any(|child| self.parent_node(child) == Some(node))
                .then_some(node)
        };
        let anchor = anchor.and_then(there).or_else(summary).or_else(itself)?;
        (!kept.is_empty()).then_some((anchor, kept))
    }

    /// The listed entries that are there, and in the place of each lost one the message that the
    /// links of its neighbours lead through.
    fn fill(&self, listed: &[Option<NodeId>], [head, tail]: [Option<NodeId>; 2]) -> Vec<NodeId> {
        let mut kept: Vec<NodeId> = Vec::new();
        let mut lost = 0;
        for entry in listed {
            let Some(entry) = entry else {
                lost += 1;
                continue;
            };
            if lost > 0 {
                // As many messages as names were lost, nearest first, but not beyond the entry
                // that is known to stand before them.
                let before = kept.last().copied();
                let is_message = |node: &NodeId| self.entry(*node).kind().is_message();
                let above = self.ancestors(*entry).skip(1).take(MAX_STEPS);
                let above = above.take_while(|node| Some(*node) != before);
                let mut found: Vec<_> = above.filter(is_message).take(lost).collect();
                let first = found.last().copied();
                let is_proved = match before {
                    Some(_) => first.is_some_and(|first| self.message_above(first) == before),
                    None => head.is_none() || first == head,
                };
                if is_proved {
                    found.reverse();
                    kept.extend(found);
                }
                lost = 0;
            }
            kept.push(*entry);
        }
        // Names that were lost at the end: the other form says where that is.
        if lost > 0
            && let Some(tail) = tail
            && let Some(rest) = kept.last().and_then(|last| self.between(*last, tail))
        {
            kept.extend(rest.into_iter().skip(1));
        }
        kept
    }

    /// The entries from `head` down to `tail`; `None` when the links do not lead there.
    fn between(&self, head: NodeId, tail: NodeId) -> Option<Vec<NodeId>> {
        let mut kept: Vec<_> = self.ancestors(tail).collect();
        kept.truncate(kept.iter().position(|node| *node == head)? + 1);
        kept.reverse();
        Some(kept)
    }
}

/// Finds what stands in the place of lost parents.
struct Bridging<'t, 'i> {
    tree: &'t mut Tree<'i>,
    others: Option<&'t OtherFiles>,
    islands: Islands,
    /// The links that were cut because they closed a cycle: child and parent.
    cut: HashMap<NodeId, NodeId>,
    /// For each entry the one before it in the file that is of the same chain.
    before: Vec<Option<NodeId>>,
    /// As `before`, for messages and boundaries alone.
    message_before: Vec<Option<NodeId>>,
    boundaries: Vec<NodeId>,
    /// Of each island, by its topmost entry: what stands last in the file.
    last_of: Vec<NodeId>,
    /// The entries by their times.
    by_time: Vec<(i64, NodeId)>,
    /// The entry with each call.
    calls: Option<HashMap<ToolKey, NodeId>>,
}

/// Entries that miss the same parent; the first of them stands for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Missing<'i> {
    /// An id that no entry has, and the chain that misses it.
    Id(Id, Chain<'i>),
    /// A link of its own: cut, or of an odd kind.
    Link(NodeId),
}

/// What tells conversations apart that are written to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Chain<'i> {
    is_sidechain: bool,
    agent: Option<&'i str>,
}

impl<'i> Chain<'i> {
    fn of(entry: &Candidate<'i>) -> Self {
        Self {
            is_sidechain: entry.flags().contains(Flags::SIDECHAIN),
            agent: entry.agent(),
        }
    }
}

impl<'t, 'i> Bridging<'t, 'i> {
    fn new(
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
        let mut islands = Islands::of(tree);
        let mut last_of: Vec<NodeId> = tree.nodes().collect();
        for node in tree.nodes() {
            last_of[islands.root(node).at()] = node;
        }
        Self {
            last_of,
            by_time,
            boundaries: tree.nodes().filter(is_boundary).collect(),
            islands,
            tree,
            others,
            cut,
            before,
            message_before,
            calls: None,
        }
    }

    fn run(mut self, lost: &[NodeId]) {
        let mut groups: Vec<Vec<NodeId>> = Vec::new();
        let mut group_of: HashMap<Missing<'i>, usize> = HashMap::new();
        for node in lost {
            let group = *group_of.entry(self.missing(*node)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push(*node);
        }
        for group in groups {
            if self.tree.parent(group[0]) != Parent::Lost {
                // Exchanged with an entry before it.
                continue;
            }
            match self.find(&group) {
                Ok(Found::Root) => {
                    for node in &group {
                        self.tree.parents[node.at()] = Packed::ROOT;
                    }
                }
                Ok(Found::Parent(parent, evidence)) => {
                    for node in &group {
                        self.link(*node, parent, evidence);
                    }
                }
                Err(reason) => {
                    for node in &group {
                        self.tree.recovery.gaps.insert(*node, reason);
                    }
                }
            }
        }
    }

    fn missing(&self, node: NodeId) -> Missing<'i> {
        let entry = self.tree.lineage(node);
        match entry.parent() {
            Some(id) if !self.cut.contains_key(&node) => Missing::Id(id, Chain::of(&entry)),
            _ => Missing::Link(node),
        }
    }

    fn link(&mut self, node: NodeId, parent: NodeId, evidence: Evidence) {
        if self.islands.root(parent) == self.islands.root(node) {
            // A member of a group that the others already hang under.
            let reason = GapReason::NothingBefore;
            self.tree.recovery.gaps.insert(node, reason);
            return;
        }
        self.tree.parents[node.at()] = Packed(parent.0);
        self.tree.recovery.bridges.insert(node, evidence);
        self.islands.join(node, parent);
    }

    /// What stands above the entries of `group`, which miss one parent.
    fn find(&mut self, group: &[NodeId]) -> Result<Found, GapReason> {
        let node = group[0];
        if let Some(found) = self.behind_unusable(node) {
            return Ok(found);
        }
        let elsewhere = self.in_other_file(node);
        if let Some(Some(parent)) = elsewhere {
            return Ok(Found::Parent(parent, Evidence::OtherFile));
        }
        if let Some(found) = self.exchanged(node) {
            return Ok(found);
        }
        if let Some(call) = self.call_of(node) {
            return Ok(Found::Parent(call, Evidence::Call));
        }
        if let Some(line) = self.same_answer(node) {
            return Ok(Found::Parent(line, Evidence::Message));
        }
        let before = match self.before_in_file(group) {
            Err(GapReason::NothingBefore) if elsewhere.is_some() => Err(GapReason::OtherFile),
            before => before,
        }?;
        match self.before_in_time(group, before) {
            Some(parent) => Ok(Found::Parent(parent, Evidence::Time)),
            None => Ok(Found::Parent(before, Evidence::FileOrder)),
        }
    }

    /// The end of another branch, where that was written shortly before the group and `before` was
    /// not.
    fn before_in_time(&mut self, group: &[NodeId], before: NodeId) -> Option<NodeId> {
        const NEAR: usize = 64;
        let node = group[0];
        let entry = self.tree.entry(node);
        let own = entry.millis()?;
        let until = self.by_time.partition_point(|(millis, _)| *millis <= own);
        let island = self.islands.root(node);
        let newest = (0..until).rev().take(NEAR).map(|at| self.by_time[at]);
        let (millis, newest) = newest
            .filter(|(millis, _)| own - millis <= CLIENT_WINDOW_MILLIS)
            .find(|(_, other)| {
                *other < node
                    && self.islands.peek(*other) != island
                    && Chain::of(&self.tree.entry(*other)) == Chain::of(&entry)
            })?;
        let is_newer = self
            .tree
            .entry(before)
            .millis()
            .is_some_and(|time| time < millis);
        let mut above = self.tree.ancestors(before).take(NEAR);
        let is_message = self.tree.entry(newest).kind().is_message();
        let is_other_end = is_newer
            && is_message
            && !above.any(|above| above == newest)
            && !self.boundary_between(newest, node)
            && !self.goes_on_elsewhere(newest, group, self.tree.is_prompt(node));
        is_other_end.then_some(newest)
    }

    /// The parent of the lost parent, when its line is there after all.
    fn behind_unusable(&self, node: NodeId) -> Option<Found> {
        let index = self.tree.index;
        if self.cut.contains_key(&node) {
            return None;
        }
        let mut id = self.tree.lineage(node).parent()?;
        for _ in 0..MAX_STEPS {
            if let Some(parent) = self.tree.node_with_uuid(id) {
                let joins = self.islands.peek(parent) != self.islands.peek(node);
                return joins.then_some(Found::Parent(parent, Evidence::Unusable));
            }
            let line = index.with_uuid(id).next()?;
            let line = index.candidate(line);
            match line.parent() {
                Some(parent) => id = parent,
                None if line.flags().contains(Flags::PARENT_ODD) => return None,
                None => return Some(Found::Root),
            }
        }
        None
    }

    /// What another file says about the lost parent: where that leads back to, if it does.
    fn in_other_file(&self, node: NodeId) -> Option<Option<NodeId>> {
        let missing = self.tree.lineage(node).parent()?;
        let parent = self.others?.parent_of(missing)?;
        let parent = parent.and_then(|id| self.tree.node_with_uuid(id));
        Some(parent.filter(|parent| self.islands.peek(*parent) != self.islands.peek(node)))
    }

    /// The entry with the call that the result `node` answers.
    fn call_of(&mut self, node: NodeId) -> Option<NodeId> {
        let entry = self.tree.entry(node);
        if entry.kind() != EntryKind::User {
            return None;
        }
        let mut results = entry.tools().iter();
        let result = results.find(|end| end.role() == ToolRole::Result)?;
        let tree = &*self.tree;
        let calls = self.calls.get_or_insert_with(|| {
            let mut calls = HashMap::new();
            for node in tree.nodes().filter(|node| !tree.is_foreign(*node)) {
                let tools = tree.entry(node).tools().iter();
                for call in tools.filter(|end| end.role() == ToolRole::Use) {
                    calls.entry(call.key()).or_insert(node);
                }
            }
            calls
        });
        let call = *calls.get(&result.key())?;
        let is_near = Chain::of(&tree.entry(call)) == Chain::of(&entry)
            && tree.entry(call).session() == entry.session()
            && self.islands.root(call) != self.islands.root(node)
            && !self.boundary_between(call, node);
        is_near.then_some(call)
    }

    /// The line before `node` of the answer that it is a line of, or the result of a call that such
    /// a line makes.
    fn same_answer(&mut self, node: NodeId) -> Option<NodeId> {
        let key = self.tree.entry(node).message()?;
        let before = self.message_before[node.at()]?;
        let line = match self.tree.answers(before) {
            true => self.tree.message_above(before)?,
            false => before,
        };
        let is_line = self.tree.entry(line).message() == Some(key)
            && self.tree.entry(line).kind() == EntryKind::Assistant
            && (line == before || self.tree.is_answer_to(before, line));
        let joins = self.islands.root(before) != self.islands.root(node);
        (is_line && joins).then_some(before)
    }

    fn boundary_between(&self, one: NodeId, other: NodeId) -> bool {
        let before = |node: NodeId| self.boundaries.partition_point(|boundary| *boundary < node);
        before(one) != before(other)
    }

    /// `node` was cut from a parent further down. Where the entry behind that parent hangs near the
    /// place before `node`, the two names were exchanged.
    fn exchanged(&mut self, node: NodeId) -> Option<Found> {
        const NEAR: usize = 8;
        let named = *self.cut.get(&node)?;
        let behind = (named.0 + 1..self.tree.parents.len() as u32).map(NodeId);
        for other in behind.take(NEAR) {
            let Some(parent) = self.tree.parent_node(other) else {
                continue;
            };
            let is_near = self.stands_before(parent, node);
            // The branch of the other entry must not be what `node` stands above already.
            if is_near && self.islands.root(parent) != self.islands.root(node) {
                self.tree.parents[other.at()] = Packed(named.0);
                self.tree
                    .recovery
                    .bridges
                    .insert(other, Evidence::Exchanged);
                return Some(Found::Parent(parent, Evidence::Exchanged));
            }
        }
        None
    }

    /// Whether `parent` is the message before `node` in the file, but for results, and lines of the
    /// same answer.
    fn stands_before(&self, parent: NodeId, node: NodeId) -> bool {
        let key = self.tree.entry(parent).message();
        let first = self.message_before[node.at()];
        let before = std::iter::successors(first, |at| self.message_before[at.at()]);
        for at in before.take(MAX_STEPS) {
            if at == parent {
                return true;
            }
            let is_line = key.is_some() && self.tree.entry(at).message() == key;
            if !is_line && !self.tree.answers(at) {
                break;
            }
        }
        // Or an attachment or a system line behind that message.
        parent < node && Some(parent) > first
    }

    /// The entry before the group in the file, of the same session and chain.
    fn before_in_file(&mut self, group: &[NodeId]) -> Result<NodeId, GapReason> {
        let node = group[0];
        let entry = self.tree.entry(node);
        let island = self.islands.root(node);
        let nearest = self.before[node.at()];
        let mut message = self.message_before[node.at()];
        for _ in 0..MAX_STEPS {
            // What was written before its own parent is passed over.
            match message {
                Some(at) if self.islands.root(at) == island => {
                    message = self.message_before[at.at()];
                }
                _ => break,
            }
        }
        let mut message = message
            .filter(|at| self.islands.root(*at) != island)
            .ok_or(GapReason::NothingBefore)?;
        let is_prompt = self.tree.is_prompt(node);
        if entry.kind() == EntryKind::User && !is_prompt {
            message = self.end_of_answer(message);
        }
        for _ in 0..MAX_STEPS {
            // A child that was written before it is what the conversation went on with.
            let below = self.tree.messages_below(message).into_iter();
            let written = below.filter(|child| *child < node && !group.contains(child));
            match written.max() {
                Some(child) if self.islands.root(child) != island => message = child,
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
            && (self.goes_on_elsewhere(message, group, is_prompt)
                || (is_prompt && self.opens_a_branch(message)))
        {
            return Err(GapReason::Rewind);
        }
        // What hangs under that message without a message between belongs there, too.
        let hangs_there = |near: &NodeId| {
            *near > message
                && self.tree.message_above(*near) == Some(message)
                && self.tree.children(*near).next().is_none()
        };
        Ok(nearest.filter(hangs_there).unwrap_or(message))
    }

    /// The last line of the answer that `message` is a line of: a result may be written before the
    /// lines of its call.
    fn end_of_answer(&self, message: NodeId) -> NodeId {
        let key = self.tree.entry(message).message();
        let mut end = message;
        for _ in 0..MAX_STEPS {
            let mut below = self.tree.messages_below(end).into_iter();
            let next = below.find(|line| {
                let line = self.tree.entry(*line);
                line.kind() == EntryKind::Assistant && line.message() == key && key.is_some()
            });
            match next {
                Some(next) => end = next,
                None => break,
            }
        }
        end
    }

    /// Whether the conversation goes on from `message` with another entry than those of the group.
    /// The results of its own calls do so beside an answer that goes on; and a branch that was
    /// started when nothing more was written under the group is a later rewind.
    fn goes_on_elsewhere(&self, message: NodeId, group: &[NodeId], is_prompt: bool) -> bool {
        let follows = self.tree.messages_below(message);
        let last = group.iter().map(|node| self.last_of[node.at()]).max();
        follows.into_iter().any(|other| {
            let is_rewind = last.is_some_and(|last| other > last);
            let is_result = !is_prompt
                && !self.tree.is_prompt(other)
                && self.tree.entry(other).kind() == EntryKind::User;
            !group.contains(&other)
                && !is_rewind
                && !is_result
                && !self.tree.is_foreign(other)
                && Chain::of(&self.tree.entry(other)) == Chain::of(&self.tree.entry(message))
        })
    }

    /// Whether `message` is the prompt that a rewind was made for: the conversation went on before
    /// it where it hangs.
    fn opens_a_branch(&self, message: NodeId) -> bool {
        if !self.tree.is_prompt(message) {
            return false;
        }
        match self.tree.message_above(message) {
            Some(above) => {
                let follows = self.tree.messages_below(above);
                follows.into_iter().any(|other| other < message)
            }
            // A new start, when something of this conversation stands before it.
            None => {
                let found = self.message_before[message.at()];
                found.is_some_and(|found| self.tree.entry(found).kind().is_message())
            }
        }
    }
}

/// What stands in the place of a lost parent.
enum Found {
    /// Nothing: the lost parent had none either.
    Root,
    Parent(NodeId, Evidence),
}

/// Which entries are linked with each other, whatever the direction; joined as links are added.
struct Islands {
    up: Vec<u32>,
}

impl Islands {
    fn of(tree: &Tree<'_>) -> Self {
        let up = tree.nodes().map(|node| {
            let parent = tree.parent_node(node);
            parent.unwrap_or(node).0
        });
        Self { up: up.collect() }
    }

    /// The entry at the top of the island, halving the way to it.
    fn root(&mut self, node: NodeId) -> NodeId {
        let mut at = node.0;
        while self.up[at as usize] != at {
            let above = self.up[at as usize];
            self.up[at as usize] = self.up[above as usize];
            at = self.up[at as usize];
        }
        NodeId(at)
    }

    /// As [`Self::root`], without making the next look-up quicker.
    fn peek(&self, node: NodeId) -> NodeId {
        let mut at = node.0;
        while self.up[at as usize] != at {
            at = self.up[at as usize];
        }
        NodeId(at)
    }

    fn join(&mut self, root: NodeId, parent: NodeId) {
        let root = self.root(root);
        self.up[root.at()] = parent.0;
    }
}

/// Tells at once whether an entry stands under another one.
pub(crate) struct Descent {
    /// When a walk through the tree enters an entry and when it leaves it.
    times: Vec<(u32, u32)>,
    /// Of each entry and what stands under it: what stands last in the file.
    last: Vec<NodeId>,
}

impl Descent {
    pub(crate) fn of(tree: &Tree<'_>) -> Self {
        let mut last: Vec<NodeId> = tree.nodes().collect();
        let mut times = vec![(0, 0); tree.parents.len()];
        let mut clock = 0;
        for root in tree
            .nodes()
            .filter(|node| tree.parent_node(*node).is_none())
        {
            let mut open = vec![(root, tree.children(root))];
            clock += 1;
            times[root.at()].0 = clock;
            while let Some((node, children)) = open.last_mut() {
                clock += 1;
                if let Some(child) = children.next() {
                    times[child.at()].0 = clock;
                    open.push((child, tree.children(child)));
                } else {
                    times[node.at()].1 = clock;
                    let lowest = last[node.at()];
                    open.pop();
                    if let Some((above, _)) = open.last() {
                        last[above.at()] = last[above.at()].max(lowest);
                    }
                }
            }
        }
        Self { times, last }
    }

    /// Whether `node` is `above` or stands under it.
    pub(crate) fn is_under(&self, node: NodeId, above: NodeId) -> bool {
        let ((enter, leave), (from, to)) = (self.times[node.at()], self.times[above.at()]);
        from <= enter && leave <= to
    }

    /// What stands last in the file of `node` and all under it.
    pub(crate) fn last_under(&self, node: NodeId) -> NodeId {
        self.last[node.at()]
    }
}
