//! Chooses the entry that ends the conversation: the last tip, unless a `last-prompt` line pins
//! another one.

use std::collections::HashSet;

use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};

use crate::index::{EntryNo, EntryRef, Id};
use crate::tree::decision::LeafReason;
use crate::tree::{NodeId, Policy, Tree};

impl Tree<'_> {
    /// Returns the tips of the main conversation in file order: entries without children, not
    /// counting attachments as children (LEAF-2), that are messages or have one above them
    /// (LEAF-3).
    #[must_use]
    pub fn tips(&self) -> Vec<NodeId> {
        let mut messages = MessagesAbove::new(self);
        self.nodes()
            .filter(|node| self.is_tip(*node) && messages.can_be_leaf(*node))
            .collect()
    }

    /// Returns the entry that ends the conversation, and the reason; `None` when there is no
    /// conversation.
    #[must_use]
    pub fn leaf(&self) -> Option<(NodeId, LeafReason)> {
        let mut messages = MessagesAbove::new(self);
        self.pinned_leaf(&mut messages)
            .or_else(|| self.last_tip_of(&mut messages))
            .or_else(|| self.last_tip_without_message())
    }

    /// Returns the last tip of a file without any message (LEAF-16).
    fn last_tip_without_message(&self) -> Option<(NodeId, LeafReason)> {
        let is_there = |node: &NodeId| !self.is_removed(*node);
        if (self.nodes().filter(is_there)).any(|node| self.entry(node).kind().is_message()) {
            return None;
        }
        let mut main = self.main_backwards().filter(is_there);
        let tip = main.find(|node| self.is_tip(*node))?;
        Some((tip, LeafReason::LastTip))
    }

    /// Returns whether the client finds no message to end at, after a compaction that keeps entries
    /// (LEAF-18).
    pub(crate) fn has_no_end(&self) -> bool {
        self.policy() == Policy::Vendor && self.follows_kept_entries() && self.ends().is_empty()
    }

    /// Returns the messages of the main conversation that no other message follows, directly or
    /// through entries of other kinds. Messages of a subagent count as followers (LEAF-18).
    fn ends(&self) -> HashSet<NodeId> {
        let is_message =
            |node: &NodeId| !self.is_removed(*node) && self.entry(*node).kind().is_message();
        let mut followed = vec![false; self.nodes().count()];
        for message in self.nodes().filter(is_message) {
            // Within a cycle a message is above itself.
            let above = self.ancestors(message).skip(1);
            for above in above.take_while(|above| *above != message) {
                let was_followed = std::mem::replace(&mut followed[above.at()], true);
                if was_followed || is_message(&above) {
                    break;
                }
            }
        }
        let is_end = |node: &NodeId| {
            is_message(node)
                && !followed[node.at()]
                && !self.is_sidechain(*node)
                && !self.is_foreign(*node)
        };
        self.nodes().filter(is_end).collect()
    }

    /// Returns the last tip, whatever is pinned, and the reason; `None` when there is no conversation.
    #[must_use]
    pub fn last_tip(&self) -> Option<(NodeId, LeafReason)> {
        self.last_tip_of(&mut MessagesAbove::new(self))
    }

    /// Returns the last tip (LEAF-1); when the entries form a cycle and there is none, the last
    /// entry (LEAF-4). When the last tip is a boundary that no message follows, the client goes by
    /// time instead (LEAF-14).
    pub(crate) fn last_tip_of(
        &self,
        messages: &mut MessagesAbove<'_, '_>,
    ) -> Option<(NodeId, LeafReason)> {
        let goes_by_time = self.goes_by_time(messages);
        if self.has_no_end() {
            return None;
        }
        if goes_by_time && self.policy() == Policy::Vendor {
            if self.follows_kept_entries() {
                let end = self.ends().into_iter().max()?;
                return Some((end, LeafReason::LastTip));
            }
            if let Some(newest) = self.newest_message() {
                return Some((newest, LeafReason::Newest));
            }
        }
        let mut tips = self.main_backwards().filter(|node| self.is_tip(*node));
        if let Some(tip) = tips.find(|node| messages.can_be_leaf(*node)) {
            // `recover` goes by time as well, but continues to the last tip below the newest
            // message: timestamps sometimes run backwards, and newer messages must not be lost.
            let newest = goes_by_time.then(|| self.newest_message()).flatten();
            let leaf = newest.and_then(|node| self.last_leaf_from(node, messages));
            return Some(match leaf.filter(|leaf| *leaf != tip) {
                Some(leaf) => (leaf, LeafReason::Newest),
                None => (tip, LeafReason::LastTip),
            });
        }
        let last = self
            .main_backwards()
            .find(|node| messages.can_be_leaf(*node));
        last.map(|entry| (entry, LeafReason::LastEntry))
    }

    /// Returns whether the last tip is a boundary that no message follows (LEAF-14).
    pub(crate) fn goes_by_time(&self, messages: &mut MessagesAbove<'_, '_>) -> bool {
        let last = self.main_backwards().find(|node| self.is_tip(*node));
        last.is_some_and(|last| !messages.has_message(last))
    }

    fn main_backwards(&self) -> impl Iterator<Item = NodeId> + '_ {
        let in_main = |node: &NodeId| !self.is_sidechain(*node) && !self.is_foreign(*node);
        self.nodes().rev().filter(in_main)
    }

    /// Returns the message with the newest timestamp, of equal ones the first in the file
    /// (LEAF-14).
    fn newest_message(&self) -> Option<NodeId> {
        let is_message = |node: &NodeId| {
            self.entry(*node).kind().is_message()
                && !self.is_removed(*node)
                && !self.is_sidechain(*node)
        };
        let messages = self.nodes().rev().filter(is_message);
        messages.max_by_key(|node| self.entry(*node).millis())
    }

    /// Returns the last tip among an entry and its descendants at which the conversation may end.
    fn last_leaf_from(
        &self,
        entry: NodeId,
        messages: &mut MessagesAbove<'_, '_>,
    ) -> Option<NodeId> {
        let mut seen = HashSet::from([entry]);
        let mut open = vec![entry];
        let mut last = None;
        while let Some(node) = open.pop() {
            if self.is_tip(node) && messages.can_be_leaf(node) {
                last = last.max(Some(node));
            }
            open.extend(self.children(node).filter(|child| seen.insert(*child)));
        }
        last
    }

    /// Returns whether the entry has no children. Attachments and sidechain entries do not count as
    /// children: the former are written below a prompt before its answer, the latter are another
    /// conversation (LEAF-2, LEAF-5).
    fn is_tip(&self, node: NodeId) -> bool {
        let has_children = |child: NodeId| {
            self.entry(child).kind() != EntryKind::Attachment && !self.is_sidechain(child)
        };
        !self.is_removed(node) && !self.children(node).any(has_children)
    }

    /// Returns the leaf that the last `last-prompt` line with a `leafUuid` asks for (LEAF-6);
    /// `None` when it does not decide.
    ///
    /// The client writes such a line so that a rewind survives a restart. When the conversation
    /// simply continued after the line, the pin is out of date and gives way.
    fn pinned_leaf(&self, messages: &mut MessagesAbove<'_, '_>) -> Option<(NodeId, LeafReason)> {
        let line = self.index.entries().rev().find(|entry_ref| {
            entry_ref.kind() == EntryKind::LastPrompt
                && self.counts(entry_ref)
                && entry_ref.leaf_uuid().is_some_and(|leaf| {
                    self.node_with_uuid(leaf)
                        .is_none_or(|leaf| !self.is_foreign(leaf))
                })
        })?;
        // A uuid that is not in the file is ignored, and so the uuid of zeros clears a pin
        // (LEAF-6).
        let id = line
            .leaf_uuid()
            .filter(|id| *id != Id::Uuid(Uuid::ZERO) || self.node_with_uuid(*id).is_some())?;
        // When the pinned entry is tombstoned, the conversation ended above it. A pin without a
        // message above it is ignored (LEAF-7).
        let pin = self
            .find_live(id)
            .filter(|pin| messages.has_message(*pin))
            .filter(|pin| self.cleared_by.is_none_or(|boundary| *pin > boundary))?;
        let is_under_pin = |node: NodeId| self.leads_past(node, pin);

        let later = (line.number().get() + 1..self.index.len())
            .map(|number| self.index.entry(EntryNo::new(number)));
        let later =
            later.filter(|entry_ref| entry_ref.kind().is_in_tree() && self.counts(entry_ref));
        // A later compaction clears the pin (LEAF-13).
        if later.clone().any(|entry_ref| self.clears_pin(&entry_ref)) {
            return None;
        }
        // Lines of a subagent do not show where the conversation ends (LEAF-15).
        let mut later = later
            .filter_map(|entry_ref| self.node_of_line(&entry_ref))
            .filter(|node| !self.is_sidechain(*node))
            .peekable();
        let is_last = later.peek().is_none();
        if is_last && line.flags().contains(Flags::EXPLICIT) {
            // A person chose the place (LEAF-11).
            return Some((pin, LeafReason::Pinned));
        }
        // After a compaction that keeps entries only the end of a conversation can be pinned
        // (LEAF-18).
        if self.follows_kept_entries() && !self.ends().contains(&pin) {
            return None;
        }
        if is_last {
            // Nothing was written after the pin. It gives way to a last tip below it (LEAF-8).
            let tip = self.last_tip_of(messages);
            return if tip.is_some_and(|(tip, _)| is_under_pin(tip)) {
                None
            } else {
                Some((pin, LeafReason::Pinned))
            };
        }
        // Entries were written after the pin. The last of them counts, even a repeated one: below
        // the pin it is the leaf (LEAF-8), else the conversation ends at the pin (LEAF-10). For the
        // client even an entry that could not be a leaf counts, such as a system entry with a
        // missing parent (LEAF-15).
        let counts = |node: &NodeId| self.policy() == Policy::Vendor || messages.can_be_leaf(*node);
        match later.filter(counts).last() {
            Some(last) if is_under_pin(last) => Some((last, LeafReason::AfterPin)),
            _ => Some((pin, LeafReason::Pinned)),
        }
    }

    fn clears_pin(&self, entry_ref: &EntryRef<'_>) -> bool {
        let node = self.node_of_line(entry_ref);
        entry_ref.is_boundary() && !node.is_some_and(|node| self.is_tombstoned(node))
    }

    /// Returns whether the conversation that ends with `leaf` shows `entry`: as an ancestor by the
    /// links in the file (LEAF-9), as a line of a message on the way, as the result of one of its
    /// calls, or as an entry that goes with either (LEAF-12). With parallel calls the pin is often on a line outside the chain.
    fn leads_past(&self, leaf: NodeId, entry: NodeId) -> bool {
        if self.ancestors(leaf).any(|above| above == entry) {
            return true;
        }
        let Some(entry) = self.member_of_loose(entry) else {
            return false;
        };
        let lines: HashSet<NodeId> = match self.message(entry) {
            Some(_) => HashSet::from([entry]),
            None => {
                let calls: HashSet<_> = self.tool_keys(entry, ToolRole::Result).collect();
                let makes_one = |line: &NodeId| {
                    !calls.is_empty()
                        && self
                            .tool_keys(*line, ToolRole::Use)
                            .any(|call| calls.contains(&call))
                };
                self.nodes().filter(makes_one).collect()
            }
        };
        let messages: HashSet<_> = lines
            .iter()
            .filter_map(|line| self.message(*line))
            .collect();
        self.ancestors(leaf).any(|above| {
            let message = self.message(above);
            lines.contains(&above) || message.is_some_and(|message| messages.contains(&message))
        })
    }

    /// Returns whether a line is taken into account. For `vendor` a salvaged line does not exist;
    /// for `recover` a repeated line is not new.
    fn counts(&self, entry_ref: &EntryRef<'_>) -> bool {
        match self.policy() {
            Policy::Vendor => !entry_ref.is_salvaged(),
            Policy::Recover => self
                .node(entry_ref.number())
                .is_none_or(|node| self.lineage(node).number() == entry_ref.number()),
        }
    }

    /// Returns the node of a line, also of one that is dropped because of its body.
    fn node_of_line(&self, entry_ref: &EntryRef<'_>) -> Option<NodeId> {
        self.node(entry_ref.number())
    }
}

/// Remembers which entries are or have a message above them, by the links in the file.
pub(crate) struct MessagesAbove<'t, 'i> {
    tree: &'t Tree<'i>,
    known: Vec<Option<bool>>,
}

impl<'t, 'i> MessagesAbove<'t, 'i> {
    pub(crate) fn new(tree: &'t Tree<'i>) -> Self {
        Self {
            tree,
            known: vec![None; tree.nodes().count()],
        }
    }

    /// Returns whether the conversation may end here: not in a sidechain (LEAF-5), and not at a
    /// boundary alone (LEAF-3).
    pub(crate) fn can_be_leaf(&mut self, node: NodeId) -> bool {
        !self.tree.is_removed(node)
            && !self.tree.is_on_left_branch(node)
            && !self.tree.is_sidechain(node)
            && !self.tree.is_foreign(node)
            && self.has_message(node)
    }

    fn has_message(&mut self, node: NodeId) -> bool {
        let mut walked = Vec::new();
        let mut found = false;
        for above in self.tree.ancestors(node) {
            if self.tree.entry(above).kind().is_message() {
                found = true;
                break;
            }
            if let Some(known) = self.known[above.at()] {
                found = known;
                break;
            }
            // Within a cycle an entry is reached again: it counts as without a message so far, and
            // all members of the cycle get the same answer.
            self.known[above.at()] = Some(false);
            walked.push(above);
        }
        for above in walked {
            self.known[above.at()] = Some(found);
        }
        found
    }
}
