//! Entries that lines of this engine took back (`docs/recover.md`, "Entries that were taken back").
//!
//! They keep their links, as other tools may hang entries under them, and are passed over.

use std::collections::HashSet;

use super::{Is, Key, Links, NEAR, NEAR_BEFORE, NONE, step};

impl Links {
    /// Takes the entry with this id back, and with it the results of its calls, and attachments
    /// that lead on to nothing. Returns it, unless it is not there or was taken back before.
    pub(in crate::live) fn take_back(&mut self, key: Key) -> Option<u32> {
        let node = self.find(key)?;
        if self.has(node, Is::LOOSE) {
            self.nodes[node as usize].is.remove(Is::LOOSE);
            return Some(node);
        }
        if self.has(node, Is::HIDDEN | Is::DEAD) {
            return None;
        }
        self.has_dead = true;
        let mut dead = vec![node];
        dead.extend(self.results_of(node));
        let mut attachments = self.loose_attachments(&dead);
        attachments.extend(self.attachments_above(&dead));
        for attachment in attachments {
            self.nodes[attachment as usize].is.insert(Is::LOOSE);
            dead.push(attachment);
        }
        dead.sort_unstable();
        for node in &dead {
            self.unhang(*node);
        }
        for node in &dead {
            self.bury(*node);
        }
        for behind in self.near(node) {
            self.link(behind);
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

    /// What goes on from `node`, which counts nowhere any more, goes on from what is above it.
    fn bury(&mut self, node: u32) {
        let leads = self.nodes[node as usize].leads;
        let above = self.above(node);
        let own = &mut self.nodes[node as usize];
        own.is.insert(Is::DEAD);
        own.leads = above;
        if above != NONE {
            let above = &mut self.nodes[above as usize].leads;
            *above = above.saturating_add(leads);
        }
    }

    /// A new entry may go with one that was taken back, or lead on from an attachment that did.
    pub(super) fn meet_dead(&mut self, node: u32, parent: u32) {
        let own = self.nodes[node as usize];
        if own.is.contains(Is::HIDDEN) {
            return;
        }
        let mut above = self.line_at(parent);
        if own.is.contains(Is::ATTACHMENT) {
            if above != NONE && self.has(above, Is::DEAD) {
                self.nodes[node as usize].is.insert(Is::LOOSE);
                self.bury(node);
            }
            return;
        }
        if own.is.contains(Is::RESULT_ALONE) && self.is_result_of_dead(node) {
            return self.bury(node);
        }
        while above != NONE && self.has(above, Is::LOOSE) {
            step();
            let revived = &mut self.nodes[above as usize];
            revived.is.remove(Is::LOOSE | Is::DEAD);
            revived.leads = 0;
            above = self.above_lines(above);
        }
    }

    fn is_result_of_dead(&self, result: u32) -> bool {
        let own = self.nodes[result as usize];
        let mut at = own.parent;
        for _ in 0..NEAR_BEFORE {
            step();
            let Some(node) = self.nodes.get(at as usize) else {
                break;
            };
            if node.tool == own.tool && node.is.contains(Is::ASSISTANT) {
                return own.tool != 0 && node.is.contains(Is::DEAD);
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
        if tool == 0 || !self.has(call, Is::ASSISTANT) {
            return Vec::new();
        }
        let is_result = |node: &u32| {
            step();
            self.has(*node, Is::RESULT_ALONE)
                && !self.has(*node, Is::DEAD)
                && self.nodes[*node as usize].tool == tool
                && self.is_under(*node, call)
        };
        // A fast tool's result may be written before its call.
        let near = call.saturating_sub(NEAR_BEFORE as u32)..self.near(call).end;
        near.filter(is_result).collect()
    }

    /// The attachments that only `dead` kept from going with what they hang under.
    fn attachments_above(&self, dead: &[u32]) -> Vec<u32> {
        let mut at = self.above_lines(dead[0]);
        let mut attachments = 0;
        let is_alive = |node: u32| self.has(node, Is::ATTACHMENT) && !self.has(node, Is::DEAD);
        while at != NONE && attachments < NEAR && is_alive(at) {
            attachments += 1;
            at = self.above_lines(at);
        }
        if attachments == 0 || at == NONE || !self.has(at, Is::DEAD) {
            return Vec::new();
        }
        let mut all = vec![at];
        all.extend(dead);
        let mut loose = self.loose_attachments(&all);
        loose.retain(|node| *node < dead[0]);
        loose
    }

    /// The attachments under `dead` under which nothing else stands.
    fn loose_attachments(&self, dead: &[u32]) -> Vec<u32> {
        let Some(first) = dead.first().copied() else {
            return Vec::new();
        };
        let mut found: HashSet<u32> = dead.iter().copied().collect();
        let mut attachments = Vec::new();
        for node in self.near(first).skip(1) {
            step();
            let is_under = found.contains(&self.above_lines(node));
            if is_under && self.has(node, Is::ATTACHMENT) && !self.has(node, Is::DEAD) {
                found.insert(node);
                attachments.push(node);
            }
        }
        if attachments.is_empty() {
            return attachments;
        }
        let mut leads_on = HashSet::new();
        for node in self.near(first).rev() {
            step();
            let is_attachment = found.contains(&node) && !leads_on.contains(&node);
            let is_out = dead.contains(&node) || is_attachment;
            if !is_out && !self.has(node, Is::HIDDEN | Is::DEAD) {
                leads_on.insert(self.above_lines(node));
            }
        }
        attachments.retain(|node| !leads_on.contains(node));
        attachments
    }
}
