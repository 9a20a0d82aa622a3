//! Tells branches that a client started by itself from those that a person started with a rewind.
//!
//! A person who goes back to an earlier entry types a prompt there. A notification, a queued prompt,
//! a request to continue, or a line of the client with an answer below it, whose parent is an old
//! entry is a fault of the client, which did not know that the conversation had gone on: no person
//! left the entries after it, so the branch follows them. The old entry may be from before a
//! compaction. What is written to a branch that a person has left, such as the late result of a call,
//! stays there and does not become the end of the conversation.

use std::collections::{HashMap, HashSet};

use transcript_format::kind::EntryKind;
use transcript_format::scan::Flags;

use crate::index::Preserved;
use crate::tree::decision::Evidence;
use crate::tree::timeline::{MAX_STEPS, is_queued};
use crate::tree::{NodeId, Parent, ParentSlot, Tree};

/// The number of steps upwards for each entry of the file, on average, after which the search ends:
/// only crafted files need more.
const MAX_STEPS_PER_ENTRY: usize = 32;

/// The place of a new message or queued prompt relative to the conversation so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BranchPosition {
    /// In its last turn.
    LastTurn,
    /// In an earlier turn.
    EarlierTurn,
    /// On a branch that the conversation has left, or on none.
    Elsewhere,
}

/// The conversation so far.
struct SoFar {
    end: NodeId,
    last_boundary: Option<NodeId>,
    /// The entries that a boundary preserves, once they were needed.
    kept: Option<(NodeId, HashSet<NodeId>)>,
    /// For each boundary, the entry that it names as the end of the conversation before it.
    ended: HashMap<NodeId, NodeId>,
    /// Results of calls in earlier turns.
    late_results: HashSet<NodeId>,
    /// The number of steps upwards that may still be taken.
    steps: usize,
}

impl Tree<'_> {
    /// Joins the branches that no person started, and finds the entries that came too late for a
    /// branch.
    pub(crate) fn join_stranded_branches(&mut self) {
        let mut so_far: Option<SoFar> = None;
        for node in self.nodes() {
            if self.is_sidechain(node) || self.is_foreign(node) || !self.is_step(node) {
                continue;
            }
            let Some(so_far) = &mut so_far else {
                so_far = Some(SoFar {
                    end: node,
                    last_boundary: None,
                    kept: None,
                    ended: HashMap::new(),
                    late_results: HashSet::new(),
                    steps: self.parents.len().saturating_mul(MAX_STEPS_PER_ENTRY),
                });
                continue;
            };
            if self.entry(node).is_boundary() {
                // A compaction starts the conversation again.
                let ended = self.named_end_before(node);
                so_far.ended.extend(ended.map(|end| (node, end)));
                so_far.last_boundary = Some(node);
            } else if self.is_late(node, so_far) {
                continue;
            }
            so_far.end = node;
        }
    }

    /// Returns whether an entry takes the conversation on: a message, a boundary, or a prompt from the
    /// queue.
    fn is_step(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        entry.kind().is_message() || entry.is_boundary() || is_queued(&entry)
    }

    /// Returns whether a new message does not become the end of the conversation. Joins it if it
    /// starts a branch that no person started.
    fn is_late(&mut self, node: NodeId, so_far: &mut SoFar) -> bool {
        let parent = match self.step_above(node) {
            Some(parent) if parent != so_far.end => parent,
            _ => return false,
        };
        let is_of_machine = self.is_of_machine(node);
        let is_result = self.answers(node);
        match self.place_of(node, parent, so_far) {
            BranchPosition::LastTurn => false,
            BranchPosition::EarlierTurn if is_result => {
                so_far.late_results.insert(node);
                true
            }
            BranchPosition::EarlierTurn => {
                let first = self.first_after(node, so_far.end);
                let is_stranded = is_of_machine
                    || so_far.late_results.contains(&parent)
                    || self.continues_by_itself(node, first, parent);
                if is_stranded {
                    self.parents[first.at()] = ParentSlot(so_far.end.0);
                    self.recovery.bridges.insert(first, Evidence::NoRewind);
                }
                false
            }
            BranchPosition::Elsewhere => {
                let is_person = self.asks(node) && !is_of_machine;
                let is_of_left_branch =
                    is_result || is_of_machine || self.recovery.late.contains(&parent);
                let is_late =
                    !is_person && is_of_left_branch && self.was_left_by_a_person(parent, so_far);
                if is_late {
                    self.recovery.late.insert(node);
                }
                is_late
            }
        }
    }

    /// Returns whether a client wrote the prompt by itself, or took it from the queue.
    fn is_of_machine(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        let is_from_queue = || self.index.is_from_queue(entry.number());
        is_queued(&entry)
            || self.asks(node)
                && !entry.flags().contains(Flags::COMPACT_SUMMARY)
                && (entry.flags().contains(Flags::AUTOMATIC) || is_from_queue())
    }

    /// Returns whether `node` is an answer that continues from `parent` behind entries of the client,
    /// without a prompt. A person who goes back writes one; if its line is lost, links of the branch
    /// were repaired. A line of the same answer continues nothing.
    fn continues_by_itself(&self, node: NodeId, first: NodeId, parent: NodeId) -> bool {
        let was_repaired = || {
            let mut branch = self.ancestors(node).take_while(|above| *above != parent);
            branch.any(|entry| self.recovery.bridge(entry).is_some())
        };
        let message = self.message(node);
        self.entry(node).kind() == EntryKind::Assistant
            && first != node
            && (message.is_none() || message != self.message(parent))
            && !was_repaired()
    }

    /// Returns where `node`, a message below `parent`, is in the conversation so far.
    fn place_of(&self, node: NodeId, parent: NodeId, so_far: &mut SoFar) -> BranchPosition {
        if self.continues_compaction(parent, so_far) {
            return BranchPosition::LastTurn;
        }
        let mut prompt = parent;
        for above in self.ancestors(parent) {
            prompt = above;
            if so_far.steps == 0 || self.starts_turn(above) {
                break;
            }
            so_far.steps -= 1;
        }
        let mut place = BranchPosition::LastTurn;
        let SoFar { ended, steps, .. } = so_far;
        for above in self.through_compactions(so_far.end, ended) {
            // A message above the end cannot follow it.
            if above == node || *steps == 0 {
                return BranchPosition::LastTurn;
            }
            if above == prompt {
                return place;
            }
            if self.starts_turn(above) || self.entry(above).is_boundary() {
                place = BranchPosition::EarlierTurn;
            }
            *steps -= 1;
        }
        BranchPosition::Elsewhere
    }

    /// Returns whether what follows `parent`, an entry from before the last compaction, follows the
    /// compaction: nothing else does yet, or the compaction kept the entry.
    fn continues_compaction(&self, parent: NodeId, so_far: &mut SoFar) -> bool {
        let Some(last) = so_far.last_boundary.filter(|last| parent < *last) else {
            return false;
        };
        let is_known = so_far.kept.as_ref().is_some_and(|(of, _)| *of == last);
        if !is_known {
            let kept = self.named_as_kept(last);
            // Where the ends of a segment are not linked, all entries were walked.
            let steps = kept.as_ref().map_or(self.parents.len(), HashSet::len);
            so_far.steps = so_far.steps.saturating_sub(steps);
            so_far.kept = Some((last, kept.unwrap_or_default()));
        }
        let kept = so_far.kept.as_ref();
        so_far.end == last || kept.is_some_and(|(_, kept)| kept.contains(&parent))
    }

    /// Returns the entries that a boundary names as kept, as far as the file has them; `None` if the
    /// ends of its segment are not linked.
    fn named_as_kept(&self, boundary: NodeId) -> Option<HashSet<NodeId>> {
        let Some(names) = self.index.boundary(self.entry_no_of(boundary)) else {
            return Some(HashSet::new());
        };
        match &names.preserved {
            Preserved::Nothing => Some(HashSet::new()),
            Preserved::List { uuids, .. } => {
                let named = uuids.iter().flatten();
                Some(named.filter_map(|id| self.node_with_uuid(*id)).collect())
            }
            Preserved::Segment { .. } => {
                let (_, kept) = self.preserved(names)?;
                Some(kept.into_iter().collect())
            }
        }
    }

    /// Returns an entry and those above it, nearest first, on through the compactions: above a
    /// boundary is the end of the conversation that it ended, if it names that.
    fn through_compactions(
        &self,
        node: NodeId,
        ended: &HashMap<NodeId, NodeId>,
    ) -> impl Iterator<Item = NodeId> {
        let above = |node: &NodeId| {
            let parent = self.parent_node(*node);
            parent.or_else(|| ended.get(node).copied())
        };
        std::iter::successors(Some(node), above).take(self.parents.len())
    }

    /// Returns whether a person went back from the branch with `entry` to the conversation so far:
    /// it starts with a prompt where the two part.
    fn was_left_by_a_person(&self, entry: NodeId, so_far: &mut SoFar) -> bool {
        let mut of_branch = HashSet::new();
        for above in self.ancestors(entry) {
            of_branch.insert(above);
            if so_far.steps == 0 {
                return false;
            }
            so_far.steps -= 1;
        }
        let mut first = None;
        for above in self
            .through_compactions(so_far.end, &so_far.ended)
            .take_while(|above| !of_branch.contains(above))
        {
            if self.entry(above).kind().is_message() {
                first = Some(above);
            }
        }
        first.is_some_and(|first| self.asks(first) && !self.is_of_machine(first))
    }

    fn starts_turn(&self, node: NodeId) -> bool {
        self.asks(node) && !self.entry(node).flags().contains(Flags::META)
    }

    fn step_above(&self, node: NodeId) -> Option<NodeId> {
        let mut above = self.ancestors(node).skip(1).take(MAX_STEPS);
        above.find(|above| self.is_step(*above))
    }

    /// Returns the first entry of the branch that `node` is the first message or queued prompt of:
    /// entries of the client before it belong to it.
    fn first_after(&self, node: NodeId, end: NodeId) -> NodeId {
        let mut first = node;
        while let Parent::Node(above) = self.parent(first)
            && above > end
            && !self.is_step(above)
        {
            first = above;
        }
        first
    }

    /// Returns whether the entry starts a branch that no person started, and was joined with what it
    /// cut off.
    #[must_use]
    pub fn is_stranded(&self, node: NodeId) -> bool {
        self.recovery.bridge(node) == Some(Evidence::NoRewind)
    }

    /// Returns whether the entry, or the message that it belongs to, came too late for its branch.
    pub(crate) fn is_on_left_branch(&self, node: NodeId) -> bool {
        let late = &self.recovery.late;
        !late.is_empty() && {
            let is_message = self.entry(node).kind().is_message();
            let message = Some(node).filter(|_| is_message);
            let message = message.or_else(|| self.message_above(node));
            message.is_some_and(|message| late.contains(&message))
        }
    }
}
