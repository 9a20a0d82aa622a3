//! Adds the entries outside the chain that belong to its messages: the lines of an API message that
//! the chain does not pass through, the results of its calls, and the attachments below either
//! (CHAIN-6, CHAIN-9).
//!
//! A message with parallel calls is written as several lines, one for each call; each result is a
//! child of its own call, and the conversation continues from the result that was written last. The
//! parents of the leaf therefore lead through only one of the calls. The API refuses a call without
//! its result, and a model that does not see its own calls repeats them, so the others have to be
//! added.
//!
//! The messages of the chain are collected as [`AnswerGroup`]s. A group is one or more *stretches* of the
//! chain, and each stretch is rebuilt: the lines first, then results and attachments in file order.

use std::hash::Hash;
use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use transcript_format::kind::EntryKind;
use transcript_format::scan::ToolRole;

use super::Via;
use super::walk::Walk;
use crate::index::{MessageKey, ToolKey};
use crate::tree::decision::Decision;
use crate::tree::{NodeId, Policy, Tree};

impl Walk<'_, '_> {
    /// Adds the entries outside the chain that belong to its messages. They are collected here unless
    /// they were for an earlier path.
    pub(super) fn add_siblings(&mut self, siblings: &mut Option<Siblings>) {
        if self.tree.index.is_imported() {
            // Each line is on one chain, and branches repeat the ids of calls.
            return;
        }
        let siblings = siblings.get_or_insert_with(|| Siblings::collect(self));
        if !siblings.is_empty {
            self.add_from(siblings);
        }
    }

    fn add_from(&mut self, siblings: &mut Siblings) {
        let groups = AnswerGroups::of(self, siblings);
        let mut stretches: Vec<(Range<usize>, Vec<NodeId>)> = Vec::new();
        for group in groups.list.iter().filter(|group| group.is_incomplete()) {
            let mut recovered = 0;
            let followers = group.lost_followers.iter().map(|(node, _)| node);
            for node in group.lost_lines.iter().chain(followers) {
                self.via[node.at()] |= Via::SIBLING;
                recovered += 1;
            }
            let entry = self.tree.entry_no_of(self.chain[group.stretches[0].start]);
            self.decisions.push(Decision::Siblings { entry, recovered });
            stretches.extend(groups.rebuild(group, self));
        }
        // Stretches of different messages alternate on the chain, which is written once from start to end.
        stretches.sort_unstable_by_key(|(places, _)| places.start);
        let (mut chain, mut done) = (Vec::with_capacity(self.chain.len()), 0);
        for (places, entries) in stretches {
            chain.extend_from_slice(&self.chain[done..places.start]);
            chain.extend(entries);
            done = places.end;
        }
        chain.extend_from_slice(&self.chain[done..]);
        self.chain = chain;
    }

    /// Returns whether the entry is outside the chain and of a kind that can belong to a message.
    /// Removed entries stay out of reach, also those that a preserved list removed (COMPACT-7).
    fn may_be_added(&self, node: NodeId) -> bool {
        let is_of_message = || {
            self.tree.is_loose(node)
                || self.tree.message(node).is_some()
                || self.tree.tool_keys(node, ToolRole::Result).next().is_some()
        };
        !self.is_on_chain(node)
            && !self.tree.is_removed(node)
            && !self.tree.is_foreign(node)
            && is_of_message()
    }
}

impl Tree<'_> {
    /// Returns the first entry at or above `node` that is not loose.
    fn owner_of_loose(&self, node: NodeId) -> Option<NodeId> {
        self.ancestors(node).find(|above| !self.is_loose(*above))
    }

    /// Returns the line or result that a loose entry goes with, and any other entry itself; `None`
    /// for a loose entry that goes with no message.
    pub(crate) fn member_of_loose(&self, entry: NodeId) -> Option<NodeId> {
        if !self.is_loose(entry) {
            return Some(entry);
        }
        let owner = self.owner_of_loose(entry)?;
        let answers: HashSet<ToolKey> = self.tool_keys(owner, ToolRole::Result).collect();
        let makes_one = |line: &NodeId| {
            let mut calls = self.tool_keys(*line, ToolRole::Use);
            calls.any(|call| answers.contains(&call))
        };
        let line = match self.message(owner) {
            Some(_) => Some(owner),
            None => self
                .line_of_call(owner)
                .or_else(|| self.nodes().find(makes_one)),
        };
        let message = self.message(line?)?;
        let lines = self
            .nodes()
            .filter(|line| self.message(*line) == Some(message));
        let calls: HashSet<ToolKey> = lines
            .flat_map(|line| self.tool_keys(line, ToolRole::Use))
            .collect();
        let is_part = |node: NodeId| {
            let mut results = self.tool_keys(node, ToolRole::Result);
            self.message(node) == Some(message) || results.any(|call| calls.contains(&call))
        };
        let mut reached = self.entries_below(entry, |child| self.is_loose(child));
        reached.push(entry);
        let leads_on = reached.into_iter().any(|node| {
            let mut children = self.children(node);
            children.any(|child| !self.is_loose(child) && !is_part(child))
        });
        (!calls.is_empty() && !leads_on).then_some(owner)
    }

    /// Returns the line that replaced the missing call of a result.
    fn line_of_orphan(&self, result: NodeId) -> Option<NodeId> {
        let is_orphan = self.recovery.bridge(result).is_some() && self.answers(result);
        is_orphan.then(|| self.parent_node(result))?
    }
}

/// Entries outside the chain, by the key that would add them. Collected once, also when several
/// paths are walked one after the other: an entry that is added to one of them is removed here.
pub(crate) struct Siblings {
    is_empty: bool,
    /// Lines of messages.
    lines: NodeLists<MessageKey>,
    /// Results of calls, by the line of the call if its id is not unique, else by the id.
    results: NodeLists<CallReference>,
    /// Results whose call is missing, by the line that replaced the call.
    orphans: NodeLists<NodeId>,
}

impl Siblings {
    fn collect(walk: &Walk<'_, '_>) -> Self {
        let tree = walk.tree;
        let mut siblings = Self {
            is_empty: true,
            lines: NodeLists::default(),
            results: NodeLists::default(),
            orphans: NodeLists::default(),
        };
        for node in tree.nodes().filter(|node| walk.may_be_added(*node)) {
            // The usual session has none, and its chain is left as it is.
            siblings.is_empty = false;
            if let Some(message) = tree.message(node) {
                siblings.lines.push(message, node);
            }
            match tree.line_of_call(node) {
                Some(line) => siblings.results.push(CallReference::Of(line), node),
                None => {
                    for call in tree.tool_keys(node, ToolRole::Result) {
                        siblings.results.push(CallReference::Id(call), node);
                    }
                }
            }
            if let Some(line) = tree.line_of_orphan(node) {
                siblings.orphans.push(line, node);
            }
        }
        siblings
    }
}

/// A reference to the call that a result answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CallReference {
    /// The id of the call.
    Id(ToolKey),
    /// The line that makes it.
    Of(NodeId),
}

/// Lists of entries by a key, all in one array: a list for each key would be an allocation for
/// each call of a session.
struct NodeLists<K> {
    /// The place in `nodes` of the last entry of each list.
    last: HashMap<K, u32>,
    /// In file order: each entry, and the place of the one before it in the same list.
    nodes: Vec<(NodeId, Option<u32>)>,
}

impl<K> Default for NodeLists<K> {
    fn default() -> Self {
        Self {
            last: HashMap::new(),
            nodes: Vec::new(),
        }
    }
}

impl<K: Eq + Hash> NodeLists<K> {
    fn push(&mut self, key: K, node: NodeId) {
        let place = self.nodes.len() as u32;
        let before = self.last.insert(key, place);
        self.nodes.push((node, before));
    }

    fn contains(&self, key: &K) -> bool {
        self.last.contains_key(key)
    }

    /// Removes the lists of `keys`, and returns those of their entries that are still outside the
    /// chain, in file order.
    fn take_lists(&mut self, keys: impl Iterator<Item = K>, walk: &Walk<'_, '_>) -> Vec<NodeId> {
        let mut taken = Vec::new();
        for key in keys {
            let mut next = self.last.remove(&key);
            while let Some(place) = next {
                let (node, before) = self.nodes[place as usize];
                // Another message of this path, or an earlier path, may have taken it meanwhile.
                if walk.may_be_added(node) {
                    taken.push(node);
                }
                next = before;
            }
        }
        // A result of two calls is in the lists of both.
        taken.sort_unstable();
        taken.dedup();
        taken
    }
}

/// The entries of one API message that the chain passes through. A line without a message id is a
/// message of its own.
#[derive(Default)]
struct AnswerGroup {
    /// The places of its entries on the chain: runs of lines, results of its calls and attachments,
    /// each of which starts with a line. There are several when another message comes between
    /// (MSG-1).
    stretches: Vec<Range<usize>>,
    /// Lines outside the chain, in file order.
    lost_lines: Vec<NodeId>,
    /// Results of its calls, and attachments, outside the chain, each with the line or result that
    /// it belongs to; a result belongs to itself.
    lost_followers: Vec<(NodeId, NodeId)>,
}

impl AnswerGroup {
    fn is_incomplete(&self) -> bool {
        !self.lost_lines.is_empty() || !self.lost_followers.is_empty()
    }
}

/// The messages of the chain, numbered in the order of their first line there.
#[derive(Default)]
struct AnswerGroups {
    list: Vec<AnswerGroup>,
    of_line: HashMap<NodeId, usize>,
    /// The first message that makes a call: for the client an id that is used twice belongs to that one
    /// (TURN-4).
    of_call: HashMap<ToolKey, usize>,
    calls: HashSet<(usize, ToolKey)>,
}

impl AnswerGroups {
    fn of(walk: &Walk<'_, '_>, siblings: &mut Siblings) -> Self {
        let tree = walk.tree;
        let mut groups = Self::default();
        let mut of_message: HashMap<MessageKey, usize> = HashMap::new();
        for node in &walk.chain {
            if tree.entry(*node).kind() != EntryKind::Assistant {
                continue;
            }
            let next = groups.list.len();
            let group = tree
                .message(*node)
                .map_or(next, |message| *of_message.entry(message).or_insert(next));
            if group == next {
                groups.list.push(AnswerGroup::default());
            }
            groups.of_line.insert(*node, group);
        }
        let messages = of_message.keys().copied();
        for line in siblings.lines.take_lists(messages, walk) {
            let message = tree.message(line);
            if let Some(group) = message.and_then(|message| of_message.get(&message)) {
                groups.list[*group].lost_lines.push(line);
                groups.of_line.insert(line, *group);
            }
        }
        // In file order: in that of the map, each step would be a cache miss in a large session.
        let mut lines: Vec<NodeId> = groups.of_line.keys().copied().collect();
        lines.sort_unstable();
        let calls = groups.find_calls(tree, &lines);
        // Before the stretches, which start at the lines of all groups.
        groups.find_orphans(walk, siblings);
        groups.find_stretches(walk);
        groups.find_followers(walk, siblings, lines, calls);
        groups
    }

    /// Records which message makes each call, to find the messages of results. Returns the calls.
    fn find_calls(&mut self, tree: &Tree<'_>, lines: &[NodeId]) -> Vec<ToolKey> {
        let mut calls = Vec::new();
        for line in lines {
            let group = self.of_line[line];
            for call in tree.tool_keys(*line, ToolRole::Use) {
                calls.push(call);
                self.calls.insert((group, call));
                // Lines come in file order, groups are numbered in the order of the chain: the lowest number is the first.
                let first = self.of_call.entry(call).or_insert(group);
                *first = (*first).min(group);
            }
        }
        calls
    }

    /// Makes groups of those entries of the chain that replaced the missing call of a result and
    /// belong to no message.
    fn find_orphans(&mut self, walk: &Walk<'_, '_>, siblings: &Siblings) {
        let is_replacement = |node: &&NodeId| siblings.orphans.contains(node);
        for node in walk.chain.iter().filter(is_replacement) {
            if self.of_member(walk.tree, *node).is_none() {
                self.of_line.insert(*node, self.list.len());
                self.list.push(AnswerGroup::default());
            }
        }
    }

    /// Finds the runs of chain entries that belong to each message. A loose entry continues a run, as
    /// the client sorts it with the results (CHAIN-8); anything else ends it.
    fn find_stretches(&mut self, walk: &Walk<'_, '_>) {
        let mut open: Option<usize> = None;
        for (place, node) in walk.chain.iter().enumerate() {
            let continues = open.is_some_and(|group| match self.of_line.get(node) {
                Some(own) => *own == group,
                None => walk.tree.is_loose(*node) || self.is_part(walk.tree, *node, group),
            });
            if !continues {
                open = self.of_line.get(node).copied();
            }
            let Some(group) = open else { continue };
            let stretches = &mut self.list[group].stretches;
            match stretches.last_mut() {
                Some(last) if continues => last.end = place + 1,
                _ => stretches.push(place..place + 1),
            }
        }
    }

    /// Returns whether the entry is a line of the message, or answers one of its calls.
    fn is_part(&self, tree: &Tree<'_>, node: NodeId, group: usize) -> bool {
        let answers = || match tree.line_of_call(node) {
            Some(line) => self.of_line.get(&line) == Some(&group),
            None => {
                let mut results = tree.tool_keys(node, ToolRole::Result);
                results.any(|call| self.calls.contains(&(group, call)))
            }
        };
        self.of_line.get(&node) == Some(&group)
            || answers()
            || self.of_orphan(tree, node) == Some(group)
    }

    /// Returns the message that the entry is a line of, or that it answers.
    fn of_member(&self, tree: &Tree<'_>, node: NodeId) -> Option<usize> {
        if let Some(line) = tree.line_of_call(node) {
            return self.of_line.get(&line).copied();
        }
        let line = self.of_line.get(&node).copied();
        line.or_else(|| {
            let calls = tree.tool_keys(node, ToolRole::Result);
            let groups = calls.filter_map(|call| self.of_call.get(&call).copied());
            groups.min()
        })
    }

    /// Returns the message that a result belongs to; one whose call is missing belongs to the
    /// replacement of the call.
    fn of_result(&self, tree: &Tree<'_>, node: NodeId) -> Option<usize> {
        self.of_member(tree, node)
            .or_else(|| self.of_orphan(tree, node))
    }

    fn of_orphan(&self, tree: &Tree<'_>, node: NodeId) -> Option<usize> {
        self.of_member(tree, tree.line_of_orphan(node)?)
    }

    /// Finds the results and attachments outside the chain: results by the id of their call,
    /// wherever they are in the tree (CHAIN-6), and attachments below any line or result of a
    /// message with calls (CHAIN-9).
    fn find_followers(
        &mut self,
        walk: &Walk<'_, '_>,
        siblings: &mut Siblings,
        lines: Vec<NodeId>,
        calls: Vec<ToolKey>,
    ) {
        let tree = walk.tree;
        let calls = calls.into_iter().map(CallReference::Id);
        let calls = calls.chain(lines.iter().copied().map(CallReference::Of));
        let mut results = siblings.results.take_lists(calls, walk);
        let mut members = lines;
        members.extend(walk.chain.iter().chain(&results));
        let orphans = siblings.orphans.take_lists(members.iter().copied(), walk);
        members.extend(&orphans);
        results.extend(orphans);
        results.sort_unstable();
        results.dedup();
        if tree.policy() == Policy::Vendor {
            self.forget_later_results(tree, &mut results);
        }
        for node in &results {
            if let Some(group) = self.of_result(tree, *node) {
                self.list[group].lost_followers.push((*node, *node));
            }
        }
        let mut makes_calls: HashSet<usize> = self.calls.iter().map(|(group, _)| *group).collect();
        if tree.policy() == Policy::Vendor {
            // Nothing goes with a line that has no message id.
            let unnamed = self
                .of_line
                .iter()
                .filter(|(line, _)| tree.message(**line).is_none());
            unnamed.for_each(|(_, group)| {
                makes_calls.remove(group);
            });
        }
        members.sort_unstable();
        members.dedup();
        for node in members {
            let group = self.of_line.get(&node).copied();
            let group = group.or_else(|| self.of_result(tree, node));
            if let Some(group) = group.filter(|group| makes_calls.contains(group)) {
                let loose = self.loose_below(tree, node, group).into_iter();
                // Entries of a subagent belong to its own lines; the client does not add them
                // (CHAIN-9).
                let is_of_chain =
                    |loose: NodeId| !tree.is_sidechain(loose) || tree.is_sidechain(node);
                let loose = loose.filter(|loose| walk.may_be_added(*loose) && is_of_chain(*loose));
                let loose = loose.map(|loose| (loose, node));
                self.list[group].lost_followers.extend(loose);
            }
        }
    }

    /// Removes the further results of a call that are not below a line of a message (CHAIN-6).
    fn forget_later_results(&self, tree: &Tree<'_>, results: &mut Vec<NodeId>) {
        let is_below_line = |result: &NodeId| {
            let parent = tree.parent_node(*result);
            parent.is_some_and(|parent| self.of_line.contains_key(&parent))
        };
        // The usual case; what follows walks the whole tree.
        if results.iter().all(is_below_line) {
            return;
        }
        let mut first: HashMap<ToolKey, NodeId> = HashMap::new();
        for node in tree.nodes().filter(|node| !tree.is_removed(*node)) {
            for call in tree.tool_keys(node, ToolRole::Result) {
                first.entry(call).or_insert(node);
            }
        }
        results.retain(|result| {
            let mut calls = tree.tool_keys(*result, ToolRole::Result);
            is_below_line(result) || calls.any(|call| first.get(&call) == Some(result))
        });
    }

    /// Returns the loose entries below a line or result of a message, except those that lead to an
    /// entry outside the message: these are part of another branch (CHAIN-9).
    fn loose_below(&self, tree: &Tree<'_>, node: NodeId, group: usize) -> Vec<NodeId> {
        let mut under = tree.entries_below(node, |child| {
            tree.is_loose(child) && !self.of_line.contains_key(&child)
        });
        let mut leads_on: HashSet<NodeId> = HashSet::new();
        for loose in &under {
            let is_other =
                |child: NodeId| !tree.is_loose(child) && !self.is_part(tree, child, group);
            if tree.children(*loose).any(is_other) {
                let above = std::iter::successors(Some(*loose), |at| tree.parent_node(*at));
                let mut above = above.take_while(|at| *at != node);
                // Up to an entry that is known to lead on: each step is taken once, however many entries are below.
                while above.next().is_some_and(|loose| leads_on.insert(loose)) {}
            }
        }
        under.retain(|loose| !leads_on.contains(loose));
        under
    }

    /// Rebuilds the stretches of a message. A line from outside the chain is inserted after the
    /// last chain line that precedes it in the file, at the earliest after the first (CHAIN-7). The
    /// lines come before results and loose entries, and these are in file order (CHAIN-8): results in
    /// the stretch of their call, loose entries where the file has them.
    fn rebuild(
        &self,
        group: &AnswerGroup,
        walk: &Walk<'_, '_>,
    ) -> Vec<(Range<usize>, Vec<NodeId>)> {
        let is_line = |node: &&NodeId| self.of_line.contains_key(*node);
        let mut stretches: Vec<(Vec<NodeId>, Vec<NodeId>)> = group
            .stretches
            .iter()
            .map(|places| walk.chain[places.clone()].iter().partition(is_line))
            .collect();
        let on_chain = stretches.iter().flat_map(|(lines, _)| lines).copied();
        // A search for each lost line: a message of thousands of parallel calls would take quadratic time by a walk.
        let anchors = Anchors::new(&on_chain.collect::<Vec<_>>());
        let mut lost_after: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for line in &group.lost_lines {
            let lost = lost_after.entry(anchors.before(*line)).or_default();
            lost.push(*line);
        }
        let mut stretch_of_line: HashMap<NodeId, usize> = HashMap::new();
        let mut stretch_of_call: HashMap<ToolKey, usize> = HashMap::new();
        for (at, (lines, _)) in stretches.iter_mut().enumerate() {
            let with_lost = std::mem::take(lines).into_iter().flat_map(|line| {
                let lost = lost_after.remove(&line).unwrap_or_default();
                std::iter::once(line).chain(lost)
            });
            *lines = with_lost.collect();
            for line in lines {
                stretch_of_line.insert(*line, at);
                for call in walk.tree.tool_keys(*line, ToolRole::Use) {
                    stretch_of_call.entry(call).or_insert(at);
                }
            }
        }
        let last = stretches.len() - 1;
        let stretch_of = |node: NodeId| {
            let calls = walk.tree.tool_keys(node, ToolRole::Result);
            let of_call = calls.filter_map(|call| stretch_of_call.get(&call)).min();
            stretch_of_line.get(&node).or(of_call).copied()
        };
        let starts: Vec<Option<NodeId>> = stretches
            .iter()
            .map(|(lines, _)| lines.first().copied())
            .collect();
        for (follower, of) in &group.lost_followers {
            let at = if walk.tree.is_loose(*follower) {
                let is_after =
                    |start: &Option<NodeId>| start.is_some_and(|start| start > *follower);
                starts[1..].iter().position(is_after).unwrap_or(last)
            } else {
                let above = || walk.tree.parent_node(*of).and_then(stretch_of);
                stretch_of(*of).or_else(above).unwrap_or(last)
            };
            stretches[at].1.push(*follower);
        }
        let stretches = stretches.into_iter().map(|(lines, mut followers)| {
            followers.sort_unstable();
            self.laid_out(walk.tree, lines, followers)
        });
        group.stretches.iter().cloned().zip(stretches).collect()
    }
}

impl AnswerGroups {
    /// Returns the lines of a stretch and what follows them. A loose entry below a line that is sent
    /// as text comes before the lines that the file has after it (CHAIN-8).
    fn laid_out(&self, tree: &Tree<'_>, lines: Vec<NodeId>, followers: Vec<NodeId>) -> Vec<NodeId> {
        // With one line there is no line that a text could come before.
        if lines.len() < 2 {
            return lines.into_iter().chain(followers).collect();
        }
        // In file order a parent comes first, so that each step upwards is taken once.
        let mut owners: HashMap<NodeId, Option<NodeId>> = HashMap::new();
        let mut is_text = |node: &NodeId| {
            if !tree.is_loose(*node) {
                return false;
            }
            let known = tree
                .parent_node(*node)
                .and_then(|parent| owners.get(&parent));
            let owner = known.copied().unwrap_or_else(|| tree.owner_of_loose(*node));
            owners.insert(*node, owner);
            tree.entry(*node).kind() != EntryKind::Attachment
                && owner.is_some_and(|owner| self.of_line.contains_key(&owner))
        };
        let (texts, others): (Vec<NodeId>, Vec<NodeId>) =
            followers.into_iter().partition(&mut is_text);
        let mut laid_out = Vec::with_capacity(lines.len() + texts.len() + others.len());
        let mut rest = texts.into_iter().peekable();
        for (at, line) in lines.iter().enumerate() {
            while at > 0
                && let Some(text) = rest.next_if(|text| text < line)
            {
                laid_out.push(text);
            }
            laid_out.push(*line);
        }
        let mut after: Vec<NodeId> = rest.chain(others).collect();
        after.sort_unstable();
        laid_out.extend(after);
        laid_out
    }
}

/// Finds the last of some nodes, in chain order, that precedes another node in the file.
struct Anchors {
    first: NodeId,
    /// In file order: a node, and the last in chain order of it and the nodes before it.
    last_until: Vec<(NodeId, usize, NodeId)>,
}

impl Anchors {
    /// `nodes` must not be empty.
    fn new(nodes: &[NodeId]) -> Self {
        let places = nodes.iter().enumerate();
        let mut last_until: Vec<_> = places.map(|(place, node)| (*node, place, *node)).collect();
        last_until.sort_unstable_by_key(|(node, ..)| *node);
        for at in 1..last_until.len() {
            let (_, place, last) = last_until[at - 1];
            if place > last_until[at].1 {
                (last_until[at].1, last_until[at].2) = (place, last);
            }
        }
        Self {
            first: nodes[0],
            last_until,
        }
    }

    fn before(&self, node: NodeId) -> NodeId {
        let until = self.last_until.partition_point(|(other, ..)| *other < node);
        let last = self.last_until[..until].last();
        last.map_or(self.first, |(.., last)| *last)
    }
}
