//! The entries around an entry in the tree: the messages above and below, calls and their results.

use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{EntryRef, ToolKey};

use crate::tree::{NodeId, Tree};

/// How many entries a walk looks at before it stops: correct files need only a few steps, and
/// damaged ones must not make it slow.
pub(crate) const MAX_STEPS: usize = 1_000;

/// Returns the calls that an answer makes, or those that a user entry has the results of.
pub(crate) fn tool_keys<'i>(
    entry: EntryRef<'i>,
    role: ToolRole,
) -> impl Iterator<Item = ToolKey> + use<'i> {
    let is_there = match role {
        ToolRole::Use => entry.kind() == EntryKind::Assistant,
        _ => entry.kind() == EntryKind::User,
    };
    let ends = entry.tools().iter();
    ends.filter(move |end| is_there && end.role() == role)
        .map(|end| end.key())
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
}
