//! Brings back what hangs beside the chain: the lines of an API message that the chain does not
//! run through, and the results of its calls.
//!
//! A message with parallel calls is written as several lines; each result hangs under its own call
//! and the conversation goes on under the result that was written last (`facts/rig.md` 5).

use std::collections::{HashMap, HashSet};

use transcript_format::kind::EntryKind;
use transcript_format::scan::ToolRole;
use transcript_reader::{MessageKey, ToolKey};

use crate::chain::{Via, Walk};
use crate::decision::Decision;
use crate::links::{NodeId, Policy, Tree};

impl Walk<'_, '_> {
    /// Rebuilds each message of the chain of which something hangs beside it.
    pub(crate) fn add_siblings(&mut self) {
        let mut siblings = match self.siblings.take() {
            Some(siblings) => siblings,
            None => Siblings::collect(self),
        };
        if let Some(beside) = &mut siblings.beside {
            self.add_from(beside, &mut siblings.order);
        }
        self.siblings = Some(siblings);
    }

    fn add_from(&mut self, beside: &mut Beside, order: &mut Order) {
        order.restart(&self.chain);
        let mut done = HashSet::new();
        for node in std::mem::take(&mut self.chain) {
            match self.tree.message(node) {
                Some(message) => {
                    if done.insert(message)
                        && let Some(members) = beside.members.get(&message)
                    {
                        let is_other = |member: &&NodeId| self.is_on_other(**member);
                        let own = members.iter().filter(|member| !is_other(member));
                        let own: Vec<NodeId> = own.copied().collect();
                        self.rebuild(node, &own, beside, order);
                    }
                }
                // The client finds results by the id of the message; a line without one can still
                // say what it calls.
                None if self.tree.policy() == Policy::Recover => {
                    self.rebuild(node, &[node], beside, order);
                }
                None => {}
            }
        }
        self.chain = order.nodes().collect();
    }

    /// `first` is the first line on the chain of a message with the lines `members`.
    fn rebuild(
        &mut self,
        first: NodeId,
        members: &[NodeId],
        beside: &mut Beside,
        order: &mut Order,
    ) {
        let calls: HashSet<ToolKey> = members
            .iter()
            .flat_map(|member| self.tree.tool_keys(*member, ToolRole::Use))
            .collect();
        let missing_lines = members.iter().filter(|member| !self.is_on_chain(**member));
        // They come to the chain here: no other call with this id looks at them again.
        let results: Vec<_> = calls
            .iter()
            .filter_map(|call| beside.results.remove(call))
            .collect();
        let results = results.iter().flatten();
        let orphans = members.iter().filter_map(|line| beside.orphans.get(line));
        let results = results.chain(orphans.flatten());
        let missing_results = results.filter(|result| !self.is_on_chain(**result));
        let mut recovered: Vec<NodeId> = missing_lines.chain(missing_results).copied().collect();
        recovered.sort_unstable();
        recovered.dedup();
        if recovered.is_empty() {
            return;
        }
        for line in recovered.clone() {
            let attachments = self.tree.attachments_ending_under(line).into_iter();
            recovered.extend(attachments.filter(|node| !self.is_on_chain(*node)));
        }
        recovered.sort_unstable();
        recovered.dedup();

        let run = self.take_run(first, members, &calls, order);
        let is_member = |node: &NodeId| members.binary_search(node).is_ok();
        let (mut followers, others): (Vec<_>, Vec<_>) = run
            .into_iter()
            .filter(|node| !is_member(node))
            .partition(|node| self.follows(*node, &calls));
        followers.extend(recovered.iter().filter(|node| !is_member(node)));
        followers.sort_unstable();
        // The lines of the message in file order, then results and attachments in file order
        // (case 91-91), then what else stood between them.
        order.put(members.iter().chain(&followers).chain(&others).copied());
        let count = recovered.len() as u32;
        for node in recovered {
            self.via[node.at()] |= Via::SIBLING;
        }
        let entry = self.tree.candidate_of(first);
        self.decisions.push(Decision::Siblings {
            entry,
            recovered: count,
        });
    }

    /// Takes out of the order what belongs to the message: from its first line to its last one,
    /// and the results and attachments right behind that.
    fn take_run(
        &self,
        first: NodeId,
        members: &[NodeId],
        calls: &HashSet<ToolKey>,
        order: &mut Order,
    ) -> Vec<NodeId> {
        let mut lines = members
            .iter()
            .filter(|member| self.is_on_chain(**member))
            .count();
        order.take_from(first, |node| {
            if members.binary_search(&node).is_ok() {
                lines -= 1;
                return true;
            }
            lines > 0 || self.follows(node, calls)
        })
    }

    fn follows(&self, node: NodeId, calls: &HashSet<ToolKey>) -> bool {
        self.tree.entry(node).kind() == EntryKind::Attachment
            || self
                .tree
                .tool_keys(node, ToolRole::Result)
                .any(|call| calls.contains(&call))
    }
}

impl Tree<'_> {
    /// The API message that an assistant entry is a line of.
    fn message(&self, node: NodeId) -> Option<MessageKey> {
        let entry = self.entry(node);
        (entry.kind() == EntryKind::Assistant).then(|| entry.message())?
    }

    /// The calls that an assistant entry makes, or the ones that a user entry answers.
    fn tool_keys(&self, node: NodeId, role: ToolRole) -> impl Iterator<Item = ToolKey> + '_ {
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
}

/// What hangs beside the chain, and the order in which it comes to it.
pub(crate) struct Siblings {
    /// `None` when nothing hangs there, as in a session without parallel calls.
    beside: Option<Beside>,
    order: Order,
}

impl Siblings {
    fn collect(walk: &Walk<'_, '_>) -> Self {
        let beside = Beside::collect(walk);
        let nodes = if beside.is_some() { walk.via.len() } else { 0 };
        Self {
            beside,
            order: Order::new(nodes),
        }
    }
}

/// The lines of messages, and the results that hang beside the chain.
struct Beside {
    /// All lines of each message, in file order.
    members: HashMap<MessageKey, Vec<NodeId>>,
    results: HashMap<ToolKey, Vec<NodeId>>,
    /// Results whose call is lost, by the line that stands in its place.
    orphans: HashMap<NodeId, Vec<NodeId>>,
}

impl Beside {
    /// `None` when nothing hangs beside the chain, as in a session without parallel calls.
    fn collect(walk: &Walk<'_, '_>) -> Option<Self> {
        let tree = walk.tree;
        let is_there = |node: &NodeId| !tree.is_gone(*node) && !tree.is_foreign(*node);
        let there = || tree.nodes().filter(is_there);
        let mut beside = Self {
            members: HashMap::new(),
            results: HashMap::new(),
            orphans: HashMap::new(),
        };
        let mut found = false;
        for node in there().filter(|node| !walk.is_on_chain(*node)) {
            found |= tree.message(node).is_some();
            for call in tree.tool_keys(node, ToolRole::Result) {
                beside.results.entry(call).or_default().push(node);
                found = true;
            }
            if tree.recovery.bridge(node).is_some()
                && let Some(line) = tree.parent_node(node)
                && tree.answers(node)
            {
                beside.orphans.entry(line).or_default().push(node);
            }
        }
        if !found {
            return None;
        }
        for node in there() {
            if let Some(message) = tree.message(node) {
                beside.members.entry(message).or_default().push(node);
            }
        }
        Some(beside)
    }
}

/// The order of the chain as a linked list, so that rebuilding a message costs its own length.
struct Order {
    /// For each node the next one; the last place stands before the first node.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// Where `take_from` took nodes out and `put` puts them.
    gap: u32,
}

impl Order {
    fn new(nodes: usize) -> Self {
        let head = nodes as u32;
        Self {
            next: vec![head; nodes + 1],
            previous: vec![head; nodes + 1],
            gap: head,
        }
    }

    /// Makes it the order of `chain`.
    fn restart(&mut self, chain: &[NodeId]) {
        let head = self.head();
        self.join(head, head);
        self.gap = head;
        self.put(chain.iter().copied());
    }

    fn head(&self) -> u32 {
        self.next.len() as u32 - 1
    }

    /// Takes out `first` and what follows as long as `wanted` says so.
    fn take_from(&mut self, first: NodeId, mut wanted: impl FnMut(NodeId) -> bool) -> Vec<NodeId> {
        let mut taken = Vec::new();
        let mut at = first.0;
        while at != self.head() && wanted(NodeId(at)) {
            taken.push(NodeId(at));
            at = self.next[at as usize];
        }
        self.gap = self.previous[first.at()];
        self.join(self.gap, at);
        taken
    }

    /// Puts nodes where some were taken out.
    fn put(&mut self, nodes: impl Iterator<Item = NodeId>) {
        let end = self.next[self.gap as usize];
        let mut at = self.gap;
        for node in nodes {
            self.join(at, node.0);
            at = node.0;
        }
        self.join(at, end);
    }

    fn join(&mut self, before: u32, after: u32) {
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let step = |at: u32| (at != self.head()).then_some(NodeId(at));
        let first = step(self.next[self.head() as usize]);
        let nodes = std::iter::successors(first, move |node| step(self.next[node.at()]));
        nodes.take(self.next.len())
    }
}
