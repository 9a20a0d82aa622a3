//! Tells branches that a client started by itself from those that a person started with a rewind.
//!
//! A person who goes back to an earlier entry types a prompt there. A notification, a queued prompt
//! or a request to continue whose parent is an old entry is a fault of the client, which did not
//! know that the conversation had gone on: nobody wanted to leave what comes after that entry, so
//! the branch follows it. What is written to a branch that a person has left, such as the late
//! result of a call, stays there and does not become the end of the conversation.

use std::collections::HashSet;

use transcript_format::scan::Flags;

use crate::decision::Evidence;
use crate::timeline::MAX_STEPS;
use crate::tree::{NodeId, Parent, ParentSlot, Tree};

/// The number of steps upwards for each entry of the file, on average, after which the search ends:
/// only crafted files need more.
const MAX_STEPS_PER_ENTRY: usize = 32;

/// The place of a new message relative to the conversation so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
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
            let entry = self.entry(node);
            let is_boundary = entry.is_boundary();
            if self.is_sidechain(node)
                || self.is_foreign(node)
                || !(entry.kind().is_message() || is_boundary)
            {
                continue;
            }
            let Some(so_far) = &mut so_far else {
                so_far = Some(SoFar {
                    end: node,
                    last_boundary: is_boundary.then_some(node),
                    late_results: HashSet::new(),
                    steps: self.parents.len().saturating_mul(MAX_STEPS_PER_ENTRY),
                });
                continue;
            };
            if is_boundary {
                // A compaction starts the conversation again.
                so_far.last_boundary = Some(node);
            } else if self.is_late(node, so_far) {
                continue;
            }
            so_far.end = node;
        }
    }

    /// Returns whether a new message does not become the end of the conversation. Joins it if it
    /// starts a branch that no person started.
    fn is_late(&mut self, node: NodeId, so_far: &mut SoFar) -> bool {
        let parent = match self.message_or_boundary_above(node) {
            Some(parent) if parent != so_far.end => parent,
            _ => return false,
        };
        let is_of_machine = self.is_of_machine(node);
        let is_result = self.answers(node);
        match self.place_of(node, parent, so_far) {
            Place::LastTurn => false,
            Place::EarlierTurn if is_result => {
                so_far.late_results.insert(node);
                true
            }
            Place::EarlierTurn => {
                let is_stranded = is_of_machine || so_far.late_results.contains(&parent);
                if is_stranded {
                    let first = self.first_after(node, so_far.end);
                    self.parents[first.at()] = ParentSlot(so_far.end.0);
                    self.recovery.bridges.insert(first, Evidence::NoRewind);
                }
                false
            }
            Place::Elsewhere => {
                let is_after_boundary = so_far
                    .last_boundary
                    .is_none_or(|boundary| parent > boundary);
                let is_person = self.asks(node) && !is_of_machine;
                let is_of_left_branch =
                    is_result || is_of_machine || self.recovery.late.contains(&parent);
                let is_late = is_after_boundary
                    && !is_person
                    && is_of_left_branch
                    && self.was_left_by_a_person(parent, so_far);
                if is_late {
                    self.recovery.late.insert(node);
                }
                is_late
            }
        }
    }

    /// Returns whether a client wrote the prompt by itself.
    fn is_of_machine(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        let is_queued = || self.index.is_from_queue(entry.number());
        self.asks(node)
            && !entry.flags().contains(Flags::COMPACT_SUMMARY)
            && (entry.flags().contains(Flags::AUTOMATIC) || is_queued())
    }

    /// Returns where `node`, a message below `parent`, is in the conversation so far.
    fn place_of(&self, node: NodeId, parent: NodeId, so_far: &mut SoFar) -> Place {
        let mut prompt = parent;
        for above in self.ancestors(parent) {
            prompt = above;
            if so_far.steps == 0 || self.starts_turn(above) {
                break;
            }
            so_far.steps -= 1;
        }
        let mut place = Place::LastTurn;
        for above in self.ancestors(so_far.end) {
            // A message above the end cannot follow it.
            if above == node || so_far.steps == 0 {
                return Place::LastTurn;
            }
            if above == prompt {
                return place;
            }
            if self.starts_turn(above) {
                place = Place::EarlierTurn;
            }
            so_far.steps -= 1;
        }
        Place::Elsewhere
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
            .ancestors(so_far.end)
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

    fn message_or_boundary_above(&self, node: NodeId) -> Option<NodeId> {
        let mut above = self.ancestors(node).skip(1).take(MAX_STEPS);
        above.find(|above| {
            let entry = self.entry(*above);
            entry.kind().is_message() || entry.is_boundary()
        })
    }

    /// Returns the first entry of the branch that `node` is the first message of: entries of the
    /// client before it belong to it.
    fn first_after(&self, node: NodeId, end: NodeId) -> NodeId {
        let mut first = node;
        while let Parent::Node(above) = self.parent(first)
            && above > end
            && !self.entry(above).kind().is_message()
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
