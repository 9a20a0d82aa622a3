//! The entries around an entry in the tree: the messages above and below, calls and their results.

use transcript_format::kind::{AttachmentKind, EntryKind};
use transcript_format::scan::{Flags, ToolRole};

use super::{NodeId, Policy, Tree};
use crate::index::{EntryRef, ToolKey};

/// The maximum number of entries in a walk: correct files need only a few steps, and damaged ones
/// must not make it slow.
pub(crate) const MAX_STEPS: usize = 1_000;

/// Returns whether an entry was queued while the agent worked, most often a prompt. Reads no body.
#[must_use]
pub fn is_queued(entry: &EntryRef<'_>) -> bool {
    entry.attachment_kind() == Some(AttachmentKind::QueuedCommand)
}

impl Tree<'_> {
    /// Returns whether `node` is the result of a call of `parent`.
    pub(crate) fn is_answer_to(&self, node: NodeId, parent: NodeId) -> bool {
        let calls = self.entry(parent).tools();
        let results = self.entry(node).tools().iter();
        let mut results = results.filter(|end| end.role() == ToolRole::Result);
        results.any(|result| {
            let mut calls = calls.iter().filter(|end| end.role() == ToolRole::Use);
            calls.any(|call| call.key() == result.key())
        })
    }

    /// Returns whether the entry is a user entry that answers a call.
    pub(crate) fn answers(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        entry.kind() == EntryKind::User && entry.flags().contains(Flags::HAS_TOOL_RESULT)
    }

    /// Returns whether the entry is a user entry that answers no call. Includes more than
    /// [`is_prompt`](crate::is_prompt): text that the client wrote for a person also starts a turn.
    pub(crate) fn asks(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        entry.kind() == EntryKind::User && !entry.flags().contains(Flags::HAS_TOOL_RESULT)
    }

    /// Returns the nearest message above `node`, past attachments and system entries.
    pub(crate) fn message_above(&self, node: NodeId) -> Option<NodeId> {
        let mut above = self.ancestors(node).skip(1).take(MAX_STEPS);
        above.find(|above| self.entry(*above).kind().is_message())
    }

    /// Returns the messages that follow `node`, past attachments and system entries.
    pub(crate) fn next_messages(&self, node: NodeId) -> Vec<NodeId> {
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

    /// Returns the calls that an assistant entry makes, or those that a user entry answers.
    pub(crate) fn tool_keys(
        &self,
        node: NodeId,
        role: ToolRole,
    ) -> impl Iterator<Item = ToolKey> + '_ {
        self.entry(node).tool_keys(role)
    }

    /// Returns whether an entry goes with the message that it is below: an attachment, a system
    /// entry other than a boundary, or a user entry without a result that the client wrote
    /// (CHAIN-9). Those of a subagent belong to its own messages.
    pub(crate) fn is_loose(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        let is_loose = match entry.kind() {
            EntryKind::Attachment => true,
            EntryKind::System => !entry.is_boundary(),
            EntryKind::User => {
                entry.flags().contains(Flags::META)
                    && self.tool_keys(node, ToolRole::Result).next().is_none()
            }
            _ => false,
        };
        is_loose && (self.policy() == Policy::Recover || !self.is_sidechain(node))
    }

    /// Returns the attachments below `node`, and those below these, in file order.
    pub(crate) fn attachments_below(&self, node: NodeId) -> Vec<NodeId> {
        self.entries_below(node, |child| {
            self.entry(child).kind() == EntryKind::Attachment
        })
    }

    /// Returns the entries below `node` that `counts` accepts, and those below these, in file order.
    pub(crate) fn entries_below(
        &self,
        node: NodeId,
        counts: impl Fn(NodeId) -> bool,
    ) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut at = node;
        let mut looked_at = 0;
        loop {
            for child in self.children(at) {
                transcript_format::work::add(1);
                // Each entry has one parent, so only a cycle through `node` could reach one twice.
                if child != node && counts(child) {
                    found.push(child);
                }
            }
            let Some(next) = found.get(looked_at) else {
                break;
            };
            at = *next;
            looked_at += 1;
        }
        found.sort_unstable();
        found
    }
}
