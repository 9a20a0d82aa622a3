//! Groups the entries of a file into branches, for drawing or listing them.
//!
//! The links are those of the tree before a compaction is spliced, so the entries that it
//! summarized are included. A branch is a run of entries without a fork. Only an entry where the
//! conversation continues in two ways is a fork: the lines of one API message, the results of its
//! calls, attachments, and system entries without a message below them belong to the message above
//! them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use transcript_format::kind::EntryKind;
use transcript_format::named;
use transcript_format::scan::{Flags, ToolRole};

use super::{NodeId, Parent, Tree};
use crate::index::{EntryNo, EntryRef, Id, Index, Preserved};

/// The branches of a file.
///
/// Takes 8 bytes for each entry, and about 100 for each branch.
#[derive(Debug)]
pub struct Branches {
    branches: Vec<Branch>,
    /// The entries of all branches, one branch after the other.
    entries: Vec<EntryNo>,
    /// For each entry: the branch that it is in, [`NONE`] for none.
    branch_of: Vec<u32>,
    children: Vec<Vec<u32>>,
    sidechains: Vec<Sidechain>,
}

/// A run of entries without a fork.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Branch {
    /// The branch that it leaves.
    pub parent: Option<usize>,
    /// The entry of that branch that is its parent.
    pub from: Option<EntryNo>,
    /// The start of the branch.
    pub start: BranchStart,
    /// The first entry of the branch: the ancestor of all others.
    pub first: EntryNo,
    /// The leaf of a conversation that ends with this branch: the entry from which other branches
    /// continue; if there are none, the last entry in the file without children, not counting
    /// attachments.
    pub last: EntryNo,
    /// Whether no other branch continues from it.
    pub is_tip: bool,
    /// The number of its user and assistant entries.
    pub messages: usize,
    /// The number of them that [look like a prompt](is_prompt).
    pub prompts: usize,
    entries: Range<usize>,
}

named! {
    /// The start of a branch.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum BranchStart {
        /// Its first entry names no parent.
        Root = "root",
        /// Its first entry names an entry of the parent branch.
        Child = "child",
        /// With a compact boundary. The parent branch is the one that the boundary names, as its parent
        /// or as its logical parent (COMPACT-1).
        Boundary = "boundary",
        /// The parent of its first entry is missing; the policy of the tree has a replacement.
        Bridge = "bridge",
        /// The parent of its first entry is missing: the branch starts a component of its own.
        Lost = "lost",
        /// Its first entry names an entry of a sidechain.
        Sidechain = "sidechain",
        /// The ancestors of its first entry lead back to it; the link counts as missing.
        Cycle = "cycle",
    }
}

/// The entries of one subagent in the file of a main conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sidechain {
    /// The subagent; old clients write no id.
    pub agent: Option<String>,
    /// The number of its entries.
    pub entries: usize,
    /// The first of them.
    pub first: EntryNo,
}

impl Branches {
    /// Groups the entries of `tree`. A branch also ends at each of `breaks`, entries such as the
    /// leaves that policies choose, whatever is below them.
    #[must_use]
    pub fn new(tree: &Tree<'_>, breaks: &[EntryNo]) -> Self {
        let mut links = BranchLinks {
            tree,
            index: tree.index(),
            parents: Vec::new(),
            starts: HashMap::new(),
        };
        links.link();
        let order = links.order();
        let groups = links.groups(&order);
        links.branches(order, groups, breaks)
    }

    /// Returns how many branches there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.branches.len()
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    /// Returns the branches in the order in which they start in the file; their index is their
    /// number.
    #[must_use]
    pub fn all(&self) -> &[Branch] {
        &self.branches
    }

    /// Returns the entries of a branch in file order.
    pub fn entries(
        &self,
        branch: usize,
    ) -> impl ExactSizeIterator<Item = EntryNo> + DoubleEndedIterator + '_ {
        let entries = &self.entries[self.branches[branch].entries.clone()];
        entries.iter().copied()
    }

    /// Returns the branches that continue from `branch`, in the order in which they start in the
    /// file.
    pub fn children(&self, branch: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.children[branch].iter().map(|child| *child as usize)
    }

    /// Returns the branch that contains an entry, or the line that counts instead of it; `None` for
    /// sidechains and for lines that are not part of the chain.
    #[must_use]
    pub fn branch_of(&self, entry: EntryNo) -> Option<usize> {
        let branch = *self.branch_of.get(entry.get())?;
        (branch != NONE).then_some(branch as usize)
    }

    /// Returns the branches from a root to `branch`, the root first.
    #[must_use]
    pub fn line_to(&self, branch: usize) -> Vec<usize> {
        let parents = |branch: &usize| self.branches[*branch].parent;
        let mut line: Vec<usize> = std::iter::successors(Some(branch), parents).collect();
        line.reverse();
        line
    }

    /// Returns the subagents of the file, in the order of their first entry.
    #[must_use]
    pub fn sidechains(&self) -> &[Sidechain] {
        &self.sidechains
    }
}

const NONE: u32 = u32::MAX;

/// The links in the file, repaired but not spliced. Nodes are numbered as in the tree.
struct BranchLinks<'t, 'i> {
    tree: &'t Tree<'i>,
    index: &'i Index,
    parents: Vec<u32>,
    /// The starts of branches, by node; nodes outside of all branches are not included.
    starts: HashMap<u32, BranchStart>,
}

impl<'t, 'i> BranchLinks<'t, 'i> {
    /// Returns the node of the line that counts, also when a splice removed it from the tree.
    fn node(&self, entry_no: EntryNo) -> Option<u32> {
        let node = self.node_of_line(&self.index.entry(entry_no))?;
        // Of lines with one uuid only one is shown, though each of them leads to the node.
        let counts = self.tree.entry_no_of(NodeId(node)) == entry_no;
        counts.then_some(node)
    }

    /// Returns the node of a line, also when another line with the same uuid counts; `None` when it
    /// is tombstoned.
    fn node_of_line(&self, line: &EntryRef<'_>) -> Option<u32> {
        let is_entry = line.kind().is_in_tree();
        let node = is_entry.then(|| self.tree.entry_node(line.number()));
        let is_there = |node: &NodeId| !self.tree.is_tombstoned(*node);
        node.flatten().filter(is_there).map(|node| node.0)
    }

    fn node_with_uuid(&self, id: Id) -> Option<u32> {
        let mut lines = self.index.with_uuid(id);
        let node = lines.find_map(|line| self.node_of_line(&self.index.entry(line)));
        node.or_else(|| Some(self.tree.above_tombstone(id)?.0))
    }

    fn link(&mut self) {
        let segment_ends = self.segment_ends();
        self.parents = vec![NONE; self.tree.nodes().count()];
        for node in self.tree.nodes() {
            if self.tree.is_sidechain(node) {
                continue;
            }
            let entry = self.tree.entry(node);
            let (parent, start) = self.parent(node, &entry);
            // After a compaction the conversation continues from the summary or from the last
            // preserved entry (COMPACT-4). Show both below the summary, in reading order.
            let segment_end = parent.and_then(|parent| segment_ends.get(&parent));
            let parent = match segment_end {
                Some((boundary, anchor)) if entry.number() > *boundary && *anchor != node.0 => {
                    Some(*anchor)
                }
                _ => parent,
            };
            self.parents[node.at()] = parent.unwrap_or(NONE);
            if start != BranchStart::Child {
                self.starts.insert(node.0, start);
            }
        }
    }

    /// The last entry that each boundary preserves, with the boundary and the entry that the
    /// preserved ones follow.
    fn segment_ends(&self) -> HashMap<u32, (EntryNo, u32)> {
        let boundaries = self.index.entries().filter(EntryRef::is_boundary);
        let segment_ends = boundaries.filter_map(|entry_ref| {
            let boundary = self.index.boundary(entry_ref.number())?;
            let (anchor, tail) = match &boundary.preserved {
                Preserved::Nothing => return None,
                Preserved::List { anchor, uuids } => (*anchor, *uuids.last()?),
                Preserved::Segment { anchor } => (*anchor, boundary.ends[1]),
            };
            let (anchor, tail) = (self.node_with_uuid(anchor?)?, self.node_with_uuid(tail?)?);
            (anchor != tail).then_some((tail, (entry_ref.number(), anchor)))
        });
        segment_ends.collect()
    }

    fn parent(&self, node: NodeId, entry: &EntryRef<'i>) -> (Option<u32>, BranchStart) {
        let parent = self.tree.parent_before_splice(node);
        if entry.is_boundary() {
            let logical = || self.index.boundary(entry.number())?.logical_parent;
            let parent = match parent {
                Parent::Node(parent) => Some(parent.0),
                _ => logical().and_then(|id| self.node_with_uuid(id)),
            };
            let is_main =
                |parent: &u32| *parent != node.0 && !self.tree.is_sidechain(NodeId(*parent));
            return (parent.filter(is_main), BranchStart::Boundary);
        }
        match parent {
            Parent::Root => (None, BranchStart::Root),
            Parent::Lost => (None, BranchStart::Lost),
            Parent::Node(parent) if self.tree.is_sidechain(parent) => {
                (None, BranchStart::Sidechain)
            }
            Parent::Node(parent) if self.tree.recovery.bridge(node).is_some() => {
                (Some(parent.0), BranchStart::Bridge)
            }
            Parent::Node(parent) => (Some(parent.0), BranchStart::Child),
        }
    }

    /// Returns the nodes of the main conversation, parents first. Where links form a cycle, one of
    /// them is cut.
    fn order(&mut self) -> Vec<u32> {
        let is_drawn =
            |node: &NodeId| !self.tree.is_sidechain(*node) && !self.tree.is_tombstoned(*node);
        let main = self.tree.nodes().filter(is_drawn);
        let main: Vec<u32> = main.map(|node| node.0).collect();
        let mut order = Order::new(&main, &self.parents);
        for node in &main {
            if self.parents[*node as usize] == NONE {
                order.visit(*node);
            }
        }
        // Nodes that no root leads to: each of them is on a cycle or below one.
        for node in &main {
            if !order.seen[*node as usize] {
                let first = self.cut_cycle_above(*node);
                order.visit(first);
            }
        }
        order.nodes
    }

    /// Cuts a link of the cycle that `node` leads to, and returns the node below the cut: a
    /// boundary, as its logical parent is not a link of the chain, else the first in the file.
    fn cut_cycle_above(&mut self, node: u32) -> u32 {
        let mut walked = HashSet::new();
        let mut at = node;
        while walked.insert(at) {
            at = self.parents[at as usize];
        }
        let is_boundary = |node: u32| self.tree.entry(NodeId(node)).is_boundary();
        let mut cut = at;
        let mut member = self.parents[at as usize];
        while member != at {
            if (!is_boundary(member), member) < (!is_boundary(cut), cut) {
                cut = member;
            }
            member = self.parents[member as usize];
        }
        self.parents[cut as usize] = NONE;
        if !is_boundary(cut) {
            self.starts.insert(cut, BranchStart::Cycle);
        }
        cut
    }

    /// Returns for each node the head of its group: the entries of one message and those that
    /// belong to it.
    fn groups(&self, order: &[u32]) -> Vec<u32> {
        let mut head = vec![NONE; self.parents.len()];
        for node in order {
            let parents = self.above_in_branch(*node);
            let joined = parents.filter(|parents| self.belongs_to(*node, head[*parents as usize]));
            head[*node as usize] = joined.map_or(*node, |parents| head[parents as usize]);
        }
        let mut has_message = vec![false; self.parents.len()];
        // Children first, so that a message below is known when its parent is reached.
        for node in order.iter().rev() {
            let own = head[*node as usize];
            has_message[own as usize] |= self.entry(*node).kind().is_message();
            if own == *node
                && has_message[own as usize]
                && let Some(parents) = self.above_in_branch(*node)
            {
                has_message[head[parents as usize] as usize] = true;
            }
        }
        // System entries without a message below them belong to the message above them.
        for node in order {
            let own = head[*node as usize];
            let parents = self.above_in_branch(*node);
            head[*node as usize] = match parents {
                Some(parents) if own != *node || !has_message[own as usize] => {
                    head[parents as usize]
                }
                _ => own,
            };
        }
        head
    }

    /// Returns the parent, unless a branch starts between the two in any case.
    fn above_in_branch(&self, node: u32) -> Option<u32> {
        let parents = self.parents[node as usize];
        (parents != NONE && !self.starts.contains_key(&node)).then_some(parents)
    }

    fn entry(&self, node: u32) -> EntryRef<'i> {
        self.tree.entry(NodeId(node))
    }

    /// Returns whether `node` is a part of the message that `first` starts.
    fn belongs_to(&self, node: u32, first: u32) -> bool {
        let (entry, head) = (self.entry(node), self.entry(first));
        let is_answer = head.kind() == EntryKind::Assistant;
        match entry.kind() {
            EntryKind::Attachment => true,
            EntryKind::Assistant => {
                let message = self.tree.message(NodeId(node));
                is_answer && message.is_some() && message == self.tree.message(NodeId(first))
            }
            EntryKind::User => is_answer && entry.tool_keys(ToolRole::Result).next().is_some(),
            _ => false,
        }
    }

    fn branches(self, order: Vec<u32>, head: Vec<u32>, breaks: &[EntryNo]) -> Branches {
        let breaks: HashSet<u32> = breaks
            .iter()
            .filter_map(|entry| self.node_of_line(&self.index.entry(*entry)))
            .map(|node| head[node as usize])
            .collect();
        let mut forks = vec![0_u32; head.len()];
        for node in &order {
            let parents = self.parents[*node as usize];
            // Only heads: parallel calls and their results are one message, and not branches of it.
            if parents != NONE && head[*node as usize] == *node {
                forks[head[parents as usize] as usize] += 1;
            }
        }
        // The first node of the branch of each node.
        let mut top = vec![NONE; head.len()];
        for node in &order {
            let own = head[*node as usize];
            top[*node as usize] = match self.above_in_branch(*node) {
                Some(parents) if own != *node => top[parents as usize],
                Some(parents) => {
                    let parents = head[parents as usize];
                    // The only child continues the branch; callers break it where a policy ends the conversation.
                    if forks[parents as usize] == 1 && !breaks.contains(&parents) {
                        top[parents as usize]
                    } else {
                        *node
                    }
                }
                None => *node,
            };
        }
        // Each has four bytes for every entry, and `collect` needs as much.
        drop((order, head, forks));
        self.collect(top)
    }

    /// Numbers the branches in file order and fills them.
    fn collect(&self, top: Vec<u32>) -> Branches {
        let mut number_of = HashMap::new();
        let (mut tops, mut counts) = (Vec::new(), Vec::new());
        let mut branch_of = vec![NONE; self.index.len()];
        let mut has_children = vec![false; top.len()];
        let mut sidechains = Sidechains::default();
        for entry in self.index.entries() {
            let Some(node) = self.node(entry.number()) else {
                continue;
            };
            if top[node as usize] == NONE {
                sidechains.add(&entry);
                continue;
            }
            let number = *number_of.entry(top[node as usize]).or_insert_with(|| {
                tops.push(top[node as usize]);
                counts.push(0);
                counts.len() - 1
            });
            counts[number] += 1;
            branch_of[entry.number().get()] = number as u32;
            // An attachment does not count as a child, as for tips (LEAF-2).
            if entry.kind() != EntryKind::Attachment && self.parents[node as usize] != NONE {
                has_children[self.parents[node as usize] as usize] = true;
            }
        }
        drop(top);
        // The places of the branches, one after the other, and of the next entry of each.
        let (mut places, mut next, mut end) = (Vec::new(), Vec::new(), 0);
        for count in counts {
            places.push(end..end + count);
            next.push(end);
            end += count;
        }
        let mut entries = vec![EntryNo::new(0); end];
        for (line, number) in branch_of.iter().enumerate() {
            if *number != NONE {
                let next = &mut next[*number as usize];
                entries[*next] = EntryNo::new(line);
                *next += 1;
            }
        }
        // Further lines with a uuid are found under the branch of the line that counts.
        for line in self.index.entries() {
            if branch_of[line.number().get()] == NONE
                && let Some(node) = self.node_of_line(&line)
            {
                branch_of[line.number().get()] = branch_of[self.entry(node).number().get()];
            }
        }
        let mut branches = Branches {
            branches: Vec::with_capacity(places.len()),
            entries,
            branch_of,
            children: vec![Vec::new(); places.len()],
            sidechains: sidechains.list,
        };
        for (place, top) in places.into_iter().zip(tops) {
            let list = &branches.entries[place.clone()];
            let parents = Some(self.parents[top as usize]).filter(|parents| *parents != NONE);
            let from = parents.map(|parents| self.entry(parents).number());
            let parent = from.and_then(|from| branches.branch_of(from));
            if let Some(parent) = parent {
                branches.children[parent].push(branches.branches.len() as u32);
            }
            let is_end = |entry: &&EntryNo| {
                let node = self.node(**entry);
                node.is_some_and(|node| !has_children[node as usize])
            };
            let first = self.entry(top).number();
            let last = list.iter().rev().find(is_end).or(list.last());
            let lines = || list.iter().map(|entry| self.index.entry(*entry));
            branches.branches.push(Branch {
                parent,
                from,
                start: self.starts.get(&top).copied().unwrap_or(BranchStart::Child),
                first,
                last: last.copied().unwrap_or(first),
                is_tip: true,
                messages: lines().filter(|line| line.kind().is_message()).count(),
                prompts: lines().filter(is_prompt).count(),
                entries: place,
            });
        }
        for (number, children) in branches.children.iter().enumerate() {
            let from = |child: &u32| branches.branches[*child as usize].from;
            if let Some(last) = children.iter().filter_map(from).max() {
                branches.branches[number].last = last;
                branches.branches[number].is_tip = false;
            }
        }
        branches
    }
}

/// Returns whether an entry looks like a prompt: a user entry that a person may have written. Its
/// text can still be one that a client wrote ([`texts::is_synthetic`](transcript_format::texts::is_synthetic)).
#[must_use]
pub fn is_prompt(entry: &EntryRef<'_>) -> bool {
    let mut ends = entry.tools().iter();
    let is_of_client = Flags::META | Flags::COMPACT_SUMMARY;
    entry.kind() == EntryKind::User
        && !entry.flags().intersects(is_of_client)
        && !ends.any(|end| end.role() == ToolRole::Result)
}

/// Nodes, parents first.
struct Order {
    nodes: Vec<u32>,
    seen: Vec<bool>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
}

impl Order {
    fn new(nodes: &[u32], parents: &[u32]) -> Self {
        let mut first_child = vec![NONE; parents.len()];
        let mut next_sibling = vec![NONE; parents.len()];
        // Lists by two arrays and without recursion: a chain of millions of entries must not end the stack.
        for node in nodes.iter().rev() {
            let parents = parents[*node as usize];
            if parents != NONE {
                let first = std::mem::replace(&mut first_child[parents as usize], *node);
                next_sibling[*node as usize] = first;
            }
        }
        Self {
            nodes: Vec::with_capacity(nodes.len()),
            seen: vec![false; parents.len()],
            first_child,
            next_sibling,
        }
    }

    /// Adds `root` and all its descendants.
    fn visit(&mut self, root: u32) {
        let mut at = self.nodes.len();
        self.seen[root as usize] = true;
        self.nodes.push(root);
        while let Some(node) = self.nodes.get(at) {
            let mut child = self.first_child[*node as usize];
            while child != NONE {
                if !std::mem::replace(&mut self.seen[child as usize], true) {
                    self.nodes.push(child);
                }
                child = self.next_sibling[child as usize];
            }
            at += 1;
        }
    }
}

#[derive(Default)]
struct Sidechains<'i> {
    list: Vec<Sidechain>,
    by_agent: HashMap<Option<&'i str>, usize>,
}

impl<'i> Sidechains<'i> {
    fn add(&mut self, entry: &EntryRef<'i>) {
        let agent = entry.agent();
        let place = *self.by_agent.entry(agent).or_insert_with(|| {
            self.list.push(Sidechain {
                agent: agent.map(str::to_owned),
                entries: 0,
                first: entry.number(),
            });
            self.list.len() - 1
        });
        self.list[place].entries += 1;
    }
}
