//! Entries that a compaction preserves: they follow its anchor, and the children of the anchor
//! follow them (COMPACT-3, COMPACT-4; `docs/format.md`, "Compaction").

use std::collections::HashSet;

use super::{Key, LiveTree, NONE, NodeFlags, PreservedForm, PreservedSpec, Splice, step};

impl LiveTree {
    /// Returns whether a compaction put the entry out of reach.
    pub(super) fn is_cut_off(&self, node: u32) -> bool {
        let splice = self.splice.as_ref();
        splice.is_some_and(|splice| {
            splice.is_whole && node < splice.boundary && !splice.kept.contains(&node)
        })
    }

    /// Returns the effective parent of a new entry that names `parent`.
    pub(super) fn parent_after_splice(&mut self, child: u32, parent: u32) -> u32 {
        let is_hidden = self.has(parent, NodeFlags::HIDDEN);
        let above = match is_hidden {
            true => self.raw_parent(parent),
            false => parent,
        };
        let is_cut_off = above != NONE && self.is_cut_off(above);
        let Some(splice) = &mut self.splice else {
            return parent;
        };
        // Children of the anchor follow the last preserved entry (COMPACT-4), and so do children of
        // entries out of reach (COMPACT-7).
        if is_cut_off || above == splice.anchor {
            splice.before.push((child, parent));
            splice.tail
        } else if is_hidden && parent < splice.boundary {
            above
        } else {
            parent
        }
    }

    /// Handles a boundary, which preserves entries or none.
    pub(in crate::live) fn compact(
        &mut self,
        boundary: u32,
        preserved_spec: Option<PreservedSpec>,
    ) {
        let is_unfinished = match &preserved_spec {
            // A boundary without its anchor, as a crash leaves it, does not count.
            Some(PreservedSpec {
                anchor: Some(_),
                entries: PreservedForm::List(uuids),
            }) => !uuids.is_empty(),
            _ => false,
        };
        if !is_unfinished {
            self.unsplice();
        }
        self.pending = preserved_spec.map(|preserved_spec| (boundary, preserved_spec));
        self.splice_pending();
    }

    pub(super) fn expect_anchor(&mut self, node: u32, key: Option<Key>) {
        let Some((boundary, preserved_spec)) = &self.pending else {
            return;
        };
        if key.is_some() && key == preserved_spec.anchor {
            self.splice_pending();
        } else if self.nodes[node as usize].parent == *boundary {
            self.unsplice();
        }
    }

    /// Moves the entries that the last boundary preserves after its anchor, once that exists. If a
    /// name is unknown, the other entries stay within reach.
    fn splice_pending(&mut self) {
        let Some((boundary, preserved_spec)) = self.pending.take() else {
            return;
        };
        let Some(anchor) = self.entry(preserved_spec.anchor) else {
            self.pending = Some((boundary, preserved_spec));
            return;
        };
        self.unsplice();
        let (kept, named) = match &preserved_spec.entries {
            PreservedForm::List(keys) => {
                let found = keys.iter().filter_map(|key| self.entry(*key));
                (found.collect(), keys.len())
            }
            PreservedForm::Ends([head, tail]) => match (self.entry(*head), self.entry(*tail)) {
                (Some(head), Some(tail)) => (self.between(head, tail), 0),
                _ => (Vec::new(), 0),
            },
        };
        let set: HashSet<u32> = kept.iter().copied().collect();
        let top = self.at_depth(anchor, 0);
        let is_behind = self.is_under(anchor, boundary) || top != NONE && top > boundary;
        let is_sound = set.len() == kept.len() && is_behind;
        if let Some(tail) = kept.last().copied()
            && is_sound
            && kept.iter().all(|node| *node < boundary)
        {
            self.splice = Some(Splice {
                boundary,
                anchor,
                tail,
                kept: set,
                is_whole: kept.len() >= named,
                before: Vec::new(),
            });
            self.splice_after_anchor(boundary, anchor, &kept);
        }
    }

    /// Returns the entries from `head` down to `tail`; none if `head` is not an ancestor of `tail`.
    fn between(&mut self, head: u32, tail: u32) -> Vec<u32> {
        if !self.is_under(tail, head) {
            return Vec::new();
        }
        let mut kept = vec![tail];
        let mut at = tail;
        let mut steps = 0;
        while at != head {
            step();
            at = self.nodes[at as usize].parent;
            steps += 1;
            if at == NONE || steps > self.nodes.len() {
                return Vec::new();
            }
            if !self.has(at, NodeFlags::HIDDEN) {
                kept.push(at);
            }
        }
        kept.reverse();
        kept
    }

    fn splice_after_anchor(&mut self, boundary: u32, anchor: u32, kept: &[u32]) {
        // A boundary with a parent would become a child of the entries that it preserves.
        self.set_spliced_parent(boundary, NONE);
        let mut parent = anchor;
        for node in kept {
            self.set_spliced_parent(*node, parent);
            parent = *node;
        }
        let catch_up_to = boundary + 1..self.len();
        for node in catch_up_to.filter(|node| *node != anchor) {
            let parent = self.nodes[node as usize].parent;
            if parent != NONE {
                self.nodes[node as usize].parent = self.parent_after_splice(node, parent);
            }
        }
        self.link_again(boundary, kept);
        let mut counted = kept.to_vec();
        counted.extend(boundary..self.len());
        self.count_again(&counted);
    }

    /// Sets the parent of `node` for as long as the compaction is in force.
    fn set_spliced_parent(&mut self, node: u32, parent: u32) {
        let own = &mut self.nodes[node as usize].parent;
        let before = std::mem::replace(own, parent);
        if let Some(splice) = &mut self.splice {
            splice.before.push((node, before));
        }
    }

    /// Undoes the compaction in force, because only the list of the last one counts (COMPACT-8).
    pub(super) fn unsplice(&mut self) {
        let Some(splice) = self.splice.take() else {
            return;
        };
        for (node, parent) in splice.before.into_iter().rev() {
            self.nodes[node as usize].parent = parent;
        }
        let mut kept: Vec<u32> = splice.kept.into_iter().collect();
        kept.sort_unstable();
        self.link_again(splice.boundary, &kept);
        kept.extend(splice.boundary..self.len());
        self.count_again(&kept);
    }

    fn link_again(&mut self, boundary: u32, kept: &[u32]) {
        // Depths follow from parents. Preserved entries have the anchor above them, which is after the
        // boundary, and may have entries after the boundary below them, so those are linked twice.
        let catch_up_to = || boundary..self.nodes.len() as u32;
        let order: Vec<u32> = catch_up_to()
            .chain(kept.iter().copied())
            .chain(catch_up_to())
            .collect();
        for node in order {
            self.link(node);
        }
    }
}
