//! What stands around an entry in the tree: the messages above and below, calls and their results.

use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};

use crate::tree::{NodeId, Tree};

/// How far a walk over neighbours goes before it gives up: real ones take a few steps.
pub(crate) const MAX_STEPS: usize = 1_000;

impl Tree<'_> {
    /// Whether `node` is the result of a call of `parent`.
    pub(crate) fn is_answer_to(&self, node: NodeId, parent: NodeId) -> bool {
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

    /// Whether the entry is of the user and answers no call. More than what looks like a prompt
    /// ([`is_prompt`](crate::is_prompt)): lines that the client wrote for a person ask, too.
    pub(crate) fn asks(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        entry.kind() == EntryKind::User && !entry.flags().contains(Flags::HAS_TOOL_RESULT)
    }

    /// The nearest message above `node`, past attachments and system lines.
    pub(crate) fn message_above(&self, node: NodeId) -> Option<NodeId> {
        let mut above = self.ancestors(node).skip(1).take(MAX_STEPS);
        above.find(|above| self.entry(*above).kind().is_message())
    }

    /// The messages that follow `node`, past attachments and system lines.
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
