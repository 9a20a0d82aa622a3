//! Puts back what hangs beside the chain: the lines of an API message that the chain does not run
//! through, the results of its calls, and the attachments under either.
//!
//! A message with parallel calls is written as several lines; each result hangs under its own call
//! and the conversation goes on under the result that was written last.

use std::collections::{HashMap, HashSet};

use transcript_format::kind::EntryKind;
use transcript_format::scan::ToolRole;
use transcript_reader::{MessageKey, ToolKey};

use crate::chain::{Via, Walk};
use crate::decision::Decision;
use crate::links::{NodeId, Policy, Tree};

impl Walk<'_, '_> {
    /// Puts back what belongs to the messages of the chain and hangs beside it.
    pub(crate) fn add_siblings(&mut self) {
        let mut siblings = match self.siblings.take() {
            Some(siblings) => siblings,
            None => Siblings::collect(self),
        };
        if !siblings.is_empty {
            self.add_from(&mut siblings);
        }
        self.siblings = Some(siblings);
    }

    fn add_from(&mut self, siblings: &mut Siblings) {
        let mut groups = Groups::of(self, siblings);
        groups.add_missing(self, siblings);
        let order = &mut siblings.order;
        order.restart(&self.chain);
        for group in groups.list {
            let missing = group.missing_lines.iter().chain(&group.missing_followers);
            let missing: Vec<NodeId> = missing.copied().collect();
            let Some(first) = group.lines.first().filter(|_| !missing.is_empty()) else {
                continue;
            };
            let entry = self.tree.candidate_of(*first);
            group.put_back(order);
            self.decisions.push(Decision::Siblings {
                entry,
                recovered: missing.len() as u32,
            });
            for node in missing {
                self.via[node.at()] |= Via::SIBLING;
            }
        }
        self.chain = order.nodes().collect();
    }

    fn may_be_put_back(&self, node: NodeId) -> bool {
        let is_of_message = || {
            self.tree.entry(node).kind() == EntryKind::Attachment
                || self.tree.message(node).is_some()
                || self.tree.tool_keys(node, ToolRole::Result).next().is_some()
        };
        !self.is_on_chain(node) && self.tree.is_shown(node) && is_of_message()
    }
}

impl Tree<'_> {
    /// The API message that an assistant entry is a line of.
    pub(crate) fn message(&self, node: NodeId) -> Option<MessageKey> {
        let entry = self.entry(node);
        (entry.kind() == EntryKind::Assistant).then(|| entry.message())?
    }

    /// The calls that an assistant entry makes, or the ones that a user entry answers.
    pub(crate) fn tool_keys(
        &self,
        node: NodeId,
        role: ToolRole,
    ) -> impl Iterator<Item = ToolKey> + '_ {
        let entry = self.entry(node);
        let wanted = if role == ToolRole::Use {
            EntryKind::Assistant
        } else {
            EntryKind::User
        };
        let tools = if entry.kind() == wanted {
            entry.tools()
        } else {
            &[]
        };
        tools
            .iter()
            .filter(move |tool| tool.role() == role)
            .map(|tool| tool.key())
    }

    /// The line that took the place of the lost call of a result.
    fn line_of_orphan(&self, result: NodeId) -> Option<NodeId> {
        let is_orphan = self.recovery.bridge(result).is_some() && self.answers(result);
        is_orphan.then(|| self.parent_node(result))?
    }

    fn is_shown(&self, node: NodeId) -> bool {
        !self.is_gone(node) && !self.is_foreign(node)
    }
}

/// What is beside the chain, by what would put it back, and the order in which it comes to the
/// chain. It is collected once, also where several paths are walked one after the other: what is put
/// back on one of them is taken out.
pub(crate) struct Siblings {
    is_empty: bool,
    /// Lines of messages.
    lines: HashMap<MessageKey, Vec<NodeId>>,
    /// Results of calls.
    results: HashMap<ToolKey, Vec<NodeId>>,
    /// Results whose call is lost, by the line that took the place of the call.
    orphans: HashMap<NodeId, Vec<NodeId>>,
    order: Order,
}

impl Siblings {
    fn collect(walk: &Walk<'_, '_>) -> Self {
        let tree = walk.tree;
        let is_empty = !tree.nodes().any(|node| walk.may_be_put_back(node));
        let mut siblings = Self {
            is_empty,
            lines: HashMap::new(),
            results: HashMap::new(),
            orphans: HashMap::new(),
            order: Order::new(if is_empty { 0 } else { walk.via.len() }),
        };
        if is_empty {
            return siblings;
        }
        for node in tree.nodes().filter(|node| walk.may_be_put_back(*node)) {
            if let Some(message) = tree.message(node) {
                siblings.lines.entry(message).or_default().push(node);
            }
            for call in tree.tool_keys(node, ToolRole::Result) {
                siblings.results.entry(call).or_default().push(node);
            }
            if let Some(line) = tree.line_of_orphan(node) {
                siblings.orphans.entry(line).or_default().push(node);
            }
        }
        siblings
    }
}

/// What belongs to one API message that the chain runs through.
#[derive(Default)]
struct Group {
    /// Its lines on the chain, in the order of the chain.
    lines: Vec<NodeId>,
    /// The same, and the results of its calls and the attachments right behind any of these.
    items: Vec<NodeId>,
    /// Its other lines, in file order.
    missing_lines: Vec<NodeId>,
    /// The results of its calls and the attachments that are not on the chain.
    missing_followers: Vec<NodeId>,
}

impl Group {
    /// Puts a missing line behind the last line of the chain that stands before it in the file, and
    /// what else is missing behind the last such item; nothing before the first line.
    fn put_back(mut self, order: &mut Order) {
        let anchors = Anchors::new(&self.lines);
        let mut lines_behind: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for line in self.missing_lines {
            let anchor = anchors.before(line);
            lines_behind.entry(anchor).or_default().push(line);
        }
        let mut items = Vec::with_capacity(self.items.len());
        for item in self.items {
            let behind = lines_behind.remove(&item).unwrap_or_default();
            order.put_behind(item, &behind);
            items.push(item);
            items.extend(behind);
        }
        // What stands before the first line is as good as part of it.
        if let Some(first) = items.iter().position(|item| *item == self.lines[0]) {
            items.drain(..first);
        }
        let anchors = Anchors::new(&items);
        self.missing_followers.sort_unstable();
        let mut followers_behind: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for follower in self.missing_followers {
            let anchor = anchors.before(follower);
            followers_behind.entry(anchor).or_default().push(follower);
        }
        for (anchor, followers) in followers_behind {
            order.put_behind(anchor, &followers);
        }
    }
}

/// Finds the last of some nodes, in their own order, that stands before another in the file.
struct Anchors {
    first: NodeId,
    /// In file order: a node, and the last of it and those before it by their own order.
    last_until: Vec<(NodeId, usize, NodeId)>,
}

impl Anchors {
    /// `nodes` is not empty.
    fn new(nodes: &[NodeId]) -> Self {
        let mut last_until: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(place, node)| (*node, place, *node))
            .collect();
        last_until.sort_unstable_by_key(|(node, _, _)| *node);
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
        self.last_until[..until]
            .last()
            .map_or(self.first, |(.., last)| *last)
    }
}

/// The messages of the chain.
struct Groups {
    /// In the order of their first line on the chain.
    list: Vec<Group>,
    of_message: HashMap<MessageKey, usize>,
    of_call: HashMap<ToolKey, usize>,
    /// The lines of messages and the results of their calls.
    of_node: HashMap<NodeId, usize>,
}

impl Groups {
    fn of(walk: &Walk<'_, '_>, siblings: &mut Siblings) -> Self {
        let tree = walk.tree;
        let mut groups = Self {
            list: Vec::new(),
            of_message: HashMap::new(),
            of_call: HashMap::new(),
            of_node: HashMap::new(),
        };
        for node in &walk.chain {
            groups.add_line(tree, *node);
        }
        // A call beside the chain has its result on it when the conversation went on there.
        let lines = groups.of_message.iter().filter_map(|(message, group)| {
            let lines = siblings.lines.remove(message)?;
            Some(lines.into_iter().map(|line| (line, *group)))
        });
        let mut lines: Vec<(NodeId, usize)> = lines.flatten().collect();
        lines.retain(|(line, _)| walk.may_be_put_back(*line));
        lines.sort_unstable();
        for (line, group) in lines {
            groups.list[group].missing_lines.push(line);
            groups.add_calls(tree, line, group);
        }
        let mut before = None;
        for node in &walk.chain {
            let group = groups.of_node.get(node).copied();
            let group = group
                .or_else(|| groups.of_result(tree, *node))
                .or_else(|| before.filter(|_| tree.entry(*node).kind() == EntryKind::Attachment));
            if let Some(group) = group {
                groups.list[group].items.push(*node);
                if tree.entry(*node).kind().is_message() {
                    groups.of_node.insert(*node, group);
                }
            }
            before = group;
        }
        groups
    }

    /// Adds a line on the chain.
    fn add_line(&mut self, tree: &Tree<'_>, node: NodeId) {
        let group = match tree.message(node) {
            Some(message) => *self.of_message.entry(message).or_insert(self.list.len()),
            // The client finds results by the id of the message; a line without one can still say
            // what it calls.
            None if tree.policy() == Policy::Recover
                && tree.tool_keys(node, ToolRole::Use).next().is_some() =>
            {
                self.list.len()
            }
            None => return,
        };
        if group == self.list.len() {
            self.list.push(Group::default());
        }
        self.list[group].lines.push(node);
        self.add_calls(tree, node, group);
    }

    fn add_calls(&mut self, tree: &Tree<'_>, line: NodeId, group: usize) {
        self.of_node.insert(line, group);
        for call in tree.tool_keys(line, ToolRole::Use) {
            self.of_call.entry(call).or_insert(group);
        }
    }

    /// The message that a result answers.
    fn of_result(&self, tree: &Tree<'_>, node: NodeId) -> Option<usize> {
        let mut calls = tree.tool_keys(node, ToolRole::Result);
        let group = calls.find_map(|call| self.of_call.get(&call).copied());
        // A result whose call is lost stands by the line that took the place of the call.
        group.or_else(|| self.of_node.get(&tree.line_of_orphan(node)?).copied())
    }

    /// Finds the results and attachments beside the chain.
    fn add_missing(&mut self, walk: &Walk<'_, '_>, siblings: &mut Siblings) {
        let tree = walk.tree;
        let calls = self.of_call.keys();
        let results = calls.filter_map(|call| siblings.results.remove(call));
        let mut missing: Vec<NodeId> = results.flatten().collect();
        let lines = self.of_node.keys();
        let orphans = lines.filter_map(|line| siblings.orphans.remove(line));
        missing.extend(orphans.flatten());
        missing.sort_unstable();
        while !missing.is_empty() {
            let mut under = Vec::new();
            for node in missing {
                if self.of_node.contains_key(&node) || !walk.may_be_put_back(node) {
                    continue;
                }
                if let Some(group) = self.of_result(tree, node) {
                    self.list[group].missing_followers.push(node);
                    self.of_node.insert(node, group);
                    under.extend(siblings.orphans.remove(&node).into_iter().flatten());
                }
            }
            missing = under;
        }
        let with_calls: HashSet<usize> = self.of_call.values().copied().collect();
        let mut members: Vec<(NodeId, usize)> = self
            .of_node
            .iter()
            .map(|(node, group)| (*node, *group))
            .filter(|(_, group)| with_calls.contains(group))
            .collect();
        members.sort_unstable();
        for (member, group) in members {
            let attachments = self.attachments_under(tree, member, group);
            let attachments = attachments.into_iter().filter(|attachment| {
                walk.may_be_put_back(*attachment) && !tree.is_sidechain(*attachment)
            });
            self.list[group].missing_followers.extend(attachments);
        }
    }

    /// The attachments under a line or result of the message `group` that lead on to no line of
    /// another message: those belong to another branch.
    fn attachments_under(&self, tree: &Tree<'_>, member: NodeId, group: usize) -> Vec<NodeId> {
        let mut under = tree.attachments_under(member);
        let mut leads_on: HashSet<NodeId> = HashSet::new();
        for attachment in &under {
            let mut children = tree.children(*attachment);
            let is_other = |child: NodeId| {
                tree.entry(child).kind() != EntryKind::Attachment
                    && self.of_node.get(&child) != Some(&group)
            };
            if children.any(is_other) {
                let above = std::iter::successors(Some(*attachment), |at| tree.parent_node(*at));
                let mut above = above.take_while(|at| *at != member);
                while above
                    .next()
                    .is_some_and(|attachment| leads_on.insert(attachment))
                {}
            }
        }
        under.retain(|attachment| !leads_on.contains(attachment));
        under
    }
}

/// The order of the chain as a linked list, so that an insertion costs its own length.
struct Order {
    /// For each node the next one; the last place stands before the first node.
    next: Vec<u32>,
}

impl Order {
    fn new(nodes: usize) -> Self {
        Self {
            next: vec![nodes as u32; nodes + 1],
        }
    }

    /// Starts with the nodes of a chain, whatever was in the order before.
    fn restart(&mut self, chain: &[NodeId]) {
        let head = NodeId(self.next.len() as u32 - 1);
        self.next[head.at()] = head.0;
        self.put_behind(head, chain);
    }

    /// Puts nodes behind one that is in the order.
    fn put_behind(&mut self, node: NodeId, nodes: &[NodeId]) {
        let mut before = node;
        for node in nodes {
            self.next[node.at()] = std::mem::replace(&mut self.next[before.at()], node.0);
            before = *node;
        }
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let head = self.next.len() - 1;
        let node_behind = move |at: usize| {
            let next = self.next[at];
            (next as usize != head).then_some(NodeId(next))
        };
        std::iter::successors(node_behind(head), move |node| node_behind(node.at()))
    }
}
