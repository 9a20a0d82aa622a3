//! Tombstoned entries (`docs/format.md`, "Tombstones").
//!
//! They keep their links, because other tools may add children to them, and are skipped.

use std::collections::HashSet;

use super::{Key, LiveTree, NEAR, NEAR_BEFORE, NONE, NodeFlags, step};

impl LiveTree {
    /// Tombstones the entry with this id, the results of its calls, and attachments without other
    /// descendants. Returns it, unless it does not exist or was tombstoned before.
    pub(in crate::live) fn tombstone(&mut self, key: Key) -> Option<u32> {
        let node = self.find(key)?;
        if self.has(node, NodeFlags::DROPPED_ATTACHMENT) {
            self.nodes[node as usize]
                .node_flags
                .remove(NodeFlags::DROPPED_ATTACHMENT);
            return Some(node);
        }
        if self.has(node, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED) {
            return None;
        }
        self.has_tombstoned = true;
        let mut tombstoned = vec![node];
        tombstoned.extend(self.results_of(node));
        let mut attachments = self.leaf_attachments(&tombstoned);
        attachments.extend(self.attachments_above(&tombstoned));
        for attachment in attachments {
            self.nodes[attachment as usize]
                .node_flags
                .insert(NodeFlags::DROPPED_ATTACHMENT);
            tombstoned.push(attachment);
        }
        tombstoned.sort_unstable();
        for node in &tombstoned {
            self.uncount_child(*node);
        }
        for node in &tombstoned {
            self.relink_children_of(*node);
        }
        for catch_up_to in self.near(node) {
            self.link(catch_up_to);
        }
        if self
            .splice
            .as_ref()
            .is_some_and(|splice| splice.boundary == node)
        {
            self.unsplice();
        }
        let above = self.shown(node);
        if above != NONE {
            self.push_tip(above);
        }
        Some(node)
    }

    /// Makes the children of `node`, which is not counted any more, children of its nearest visible
    /// ancestor.
    fn relink_children_of(&mut self, node: u32) {
        let child_count = self.nodes[node as usize].child_count;
        let above = self.above(node);
        let own = &mut self.nodes[node as usize];
        own.node_flags.insert(NodeFlags::TOMBSTONED);
        own.child_count = above;
        if above != NONE {
            let above = &mut self.nodes[above as usize].child_count;
            *above = above.saturating_add(child_count);
        }
    }

    /// Tombstones a new entry that belongs to a tombstoned one, or restores an attachment that it
    /// continues from.
    pub(super) fn join_tombstoned(&mut self, node: u32, parent: u32) {
        let own = self.nodes[node as usize];
        if own.node_flags.contains(NodeFlags::HIDDEN) {
            return;
        }
        let mut above = self.line_at(parent);
        if own.node_flags.contains(NodeFlags::ATTACHMENT) {
            if above != NONE && self.has(above, NodeFlags::TOMBSTONED) {
                self.nodes[node as usize]
                    .node_flags
                    .insert(NodeFlags::DROPPED_ATTACHMENT);
                self.relink_children_of(node);
            }
            return;
        }
        if own.node_flags.contains(NodeFlags::RESULT_ALONE) && self.is_result_of_tombstoned(node) {
            return self.relink_children_of(node);
        }
        while above != NONE && self.has(above, NodeFlags::DROPPED_ATTACHMENT) {
            step();
            let revived = &mut self.nodes[above as usize];
            revived
                .node_flags
                .remove(NodeFlags::DROPPED_ATTACHMENT | NodeFlags::TOMBSTONED);
            revived.child_count = 0;
            above = self.raw_parent(above);
        }
    }

    fn is_result_of_tombstoned(&self, result: u32) -> bool {
        let own = self.nodes[result as usize];
        let mut at = own.parent;
        for _ in 0..NEAR_BEFORE {
            step();
            let Some(node) = self.nodes.get(at as usize) else {
                break;
            };
            if node.tool == own.tool && node.node_flags.contains(NodeFlags::ASSISTANT) {
                return own.tool != 0 && node.node_flags.contains(NodeFlags::TOMBSTONED);
            }
            at = node.parent;
        }
        false
    }

    fn near(&self, node: u32) -> std::ops::Range<u32> {
        node..self.nodes.len().min(node as usize + NEAR) as u32
    }

    fn results_of(&self, call: u32) -> Vec<u32> {
        let tool = self.nodes[call as usize].tool;
        if tool == 0 || !self.has(call, NodeFlags::ASSISTANT) {
            return Vec::new();
        }
        let is_result = |node: &u32| {
            step();
            self.has(*node, NodeFlags::RESULT_ALONE)
                && !self.has(*node, NodeFlags::TOMBSTONED)
                && self.nodes[*node as usize].tool == tool
                && self.is_under(*node, call)
        };
        // The result of a fast tool may be written before its call.
        let near = call.saturating_sub(NEAR_BEFORE as u32)..self.near(call).end;
        near.filter(is_result).collect()
    }

    /// Returns the attachments that were only kept because of `tombstoned`.
    fn attachments_above(&self, tombstoned: &[u32]) -> Vec<u32> {
        let mut at = self.raw_parent(tombstoned[0]);
        let mut attachments = 0;
        let is_alive = |node: u32| {
            self.has(node, NodeFlags::ATTACHMENT) && !self.has(node, NodeFlags::TOMBSTONED)
        };
        while at != NONE && attachments < NEAR && is_alive(at) {
            attachments += 1;
            at = self.raw_parent(at);
        }
        if attachments == 0 || at == NONE || !self.has(at, NodeFlags::TOMBSTONED) {
            return Vec::new();
        }
        let mut all = vec![at];
        all.extend(tombstoned);
        let mut loose = self.leaf_attachments(&all);
        loose.retain(|node| *node < tombstoned[0]);
        loose
    }

    /// Returns the attachments below `tombstoned` that have no other descendants.
    fn leaf_attachments(&self, tombstoned: &[u32]) -> Vec<u32> {
        let Some(first) = tombstoned.first().copied() else {
            return Vec::new();
        };
        let mut found: HashSet<u32> = tombstoned.iter().copied().collect();
        let mut attachments = Vec::new();
        for node in self.near(first).skip(1) {
            step();
            let is_under = found.contains(&self.raw_parent(node));
            if is_under
                && self.has(node, NodeFlags::ATTACHMENT)
                && !self.has(node, NodeFlags::TOMBSTONED)
            {
                found.insert(node);
                attachments.push(node);
            }
        }
        if attachments.is_empty() {
            return attachments;
        }
        let mut has_children = HashSet::new();
        for node in self.near(first).rev() {
            step();
            let is_attachment = found.contains(&node) && !has_children.contains(&node);
            let is_out = tombstoned.contains(&node) || is_attachment;
            if !is_out && !self.has(node, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED) {
                has_children.insert(self.raw_parent(node));
            }
        }
        attachments.retain(|node| !has_children.contains(node));
        attachments
    }
}
