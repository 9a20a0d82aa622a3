//! Adds the entries below the boundary of a compaction that was interrupted.
//!
//! A compaction starts a new history: its boundary has no parent, and the summary follows it. Without
//! a summary nothing was summarized, so for `recover` the conversation continues from the entry before
//! the boundary. Reminders and the output of commands below the boundary are still sent by the client,
//! and belong to the conversation at that place.

use std::collections::HashMap;

use transcript_format::scan::Flags;

use super::Via;
use super::walk::Walk;
use crate::tree::{NodeId, Tree};

impl Walk<'_, '_> {
    /// Adds the entries of interrupted compactions of this conversation, each after the entries that
    /// were written before it.
    pub(crate) fn add_entries_of_interrupted_compactions(&mut self) {
        let compactions = self.tree.interrupted_compactions();
        if compactions.is_empty() {
            return;
        }
        let places = self.chain.iter().zip(1..);
        let places: HashMap<NodeId, usize> = places.map(|(node, place)| (*node, place)).collect();
        let mut added: Vec<(usize, NodeId)> = Vec::new();
        for compaction in compactions {
            let Some(after) = places.get(&compaction.before) else {
                continue;
            };
            let is_before = |node: &NodeId| *node < compaction.boundary;
            let place = self.chain.partition_point(is_before).max(*after);
            let entries = compaction.entries.into_iter();
            added.extend(entries.map(|entry| (place, entry)));
        }
        added.retain(|(_, entry)| !self.is_on_chain(*entry));
        added.sort_unstable();
        let chain = std::mem::take(&mut self.chain);
        let mut done = 0;
        for (place, entry) in added {
            self.chain.extend_from_slice(&chain[done..place]);
            done = place;
            // Outside the chain of links: no later entry becomes a child of it.
            self.push_node(entry, Via::SIBLING);
        }
        self.chain.extend_from_slice(&chain[done..]);
    }
}

/// A compaction without a summary.
struct Interrupted {
    boundary: NodeId,
    /// The entry at which the conversation was.
    before: NodeId,
    /// The entries below the boundary, in file order.
    entries: Vec<NodeId>,
}

impl Tree<'_> {
    /// Returns the compactions below whose boundary there is no message, in file order.
    fn interrupted_compactions(&self) -> Vec<Interrupted> {
        let mut found = Vec::new();
        if !self.index.has_boundaries() {
            return found;
        }
        // The last message of the main conversation, and of subagents.
        let mut last_message = [None; 2];
        for node in self.nodes().filter(|node| self.is_there(*node)) {
            let entry = self.entry(node);
            let last_message =
                &mut last_message[usize::from(entry.flags().contains(Flags::SIDECHAIN))];
            if entry.kind().is_message() {
                *last_message = Some(node);
            }
            if !entry.is_boundary() || self.parent_node(node).is_some() {
                continue;
            }
            let names = self.index.boundary(entry.number());
            let logical = names.and_then(|names| self.node_with_uuid(names.logical_parent?));
            if let Some(before) = logical.or(*last_message)
                && let Some(entries) = self.entries_without_message(node)
                && !entries.is_empty()
            {
                found.push(Interrupted {
                    boundary: node,
                    before,
                    entries,
                });
            }
        }
        found
    }

    fn is_there(&self, node: NodeId) -> bool {
        !self.is_removed(node) && !self.is_foreign(node)
    }

    /// Returns the entries below `node`; `None` when there is a message among them.
    fn entries_without_message(&self, node: NodeId) -> Option<Vec<NodeId>> {
        let mut found = Vec::new();
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            for child in self.children(at).filter(|child| self.is_there(*child)) {
                transcript_format::work::add(1);
                if self.entry(child).kind().is_message() {
                    return None;
                }
                found.push(child);
                open.push(child);
            }
        }
        found.sort_unstable();
        Some(found)
    }
}
