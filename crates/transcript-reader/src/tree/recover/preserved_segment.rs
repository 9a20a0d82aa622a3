//! Compactions whose preserved entries are named incompletely: a list with missing uuids, a segment
//! without one of its ends, a boundary without its anchor.
//!
//! The client ignores such a list as a whole (COMPACT-5) and the preserved messages are lost.
//! `recover` uses the redundancy in a boundary: it names both a list and the ends of a segment, and
//! the preserved entries are still linked with each other.

use std::collections::HashSet;

use transcript_format::scan::Flags;

use crate::index::{Boundary, Id, Preserved};
use crate::tree::timeline::MAX_STEPS;
use crate::tree::{NodeId, Tree};

impl Tree<'_> {
    /// Returns the anchor and the preserved entries of the boundary `node` when some of its names
    /// lead to no entry. Each missing name is replaced using another field of the boundary: the
    /// ends of the segment, the leaf of the conversation before, the links between the entries that
    /// exist.
    pub(crate) fn preserved_in_part(
        &self,
        node: NodeId,
        boundary: &Boundary,
    ) -> Option<(NodeId, Vec<NodeId>)> {
        let there = |id: Id| {
            let renamed = || self.node_with_uuid(self.index.new_name(id)?);
            self.node_with_uuid(id).or_else(renamed)
        };
        let find = |id: Option<Id>| there(id?).filter(|found| *found < node);
        let (anchor, mut kept) = match &boundary.preserved {
            Preserved::Nothing => return None,
            Preserved::List { anchor, uuids } => {
                let listed: Vec<_> = uuids.iter().map(|id| find(*id)).collect();
                (*anchor, self.fill(&listed, boundary.ends.map(find)))
            }
            Preserved::Segment { anchor } => {
                let [head, tail] = boundary.ends.map(find);
                let tail = tail.or_else(|| find(boundary.logical_parent));
                // Only a name whose line is missing: a name that was never in the file proves
                // nothing.
                let is_lost = |id: Id| self.index.with_uuid(id).next().is_none();
                let [lost_head, lost_tail] = boundary.ends.map(|end| end.filter(|id| is_lost(*id)));
                let kept = match (head, tail) {
                    (Some(head), Some(tail)) => self.between(head, tail)?,
                    (Some(head), None) if lost_tail.is_some() => {
                        self.between(head, self.last_descendant(head, node)?)?
                    }
                    (None, Some(tail)) => self.below(lost_head?, tail)?,
                    _ => return None,
                };
                (*anchor, kept)
            }
        };
        let mut seen = HashSet::new();
        kept.retain(|entry| seen.insert(*entry));
        // Without the anchor: after the summary, else after the boundary itself. When nothing
        // follows the boundary the compaction was never completed and preserves nothing.
        let summary = || self.summary_of(node);
        let itself = || {
            let mut after = self.nodes().skip(node.at());
            after
                .any(|child| self.parent_node(child) == Some(node))
                .then_some(node)
        };
        let anchor = anchor.and_then(there).or_else(summary).or_else(itself)?;
        (!kept.is_empty()).then_some((anchor, kept))
    }

    /// Returns the summary below a boundary (COMPACT-1), which its flag identifies (COMPACT-10).
    pub(crate) fn summary_of(&self, boundary: NodeId) -> Option<NodeId> {
        self.nodes().skip(boundary.at()).find(|child| {
            let flags = self.entry(*child).flags();
            flags.contains(Flags::COMPACT_SUMMARY) && self.parent_node(*child) == Some(boundary)
        })
    }

    /// Returns the last message below `head` before `boundary` in the file.
    fn last_descendant(&self, head: NodeId, boundary: NodeId) -> Option<NodeId> {
        let mut before = (head.0..boundary.0).rev().map(NodeId).take(MAX_STEPS);
        before.find(|node| {
            self.entry(*node).kind().is_message()
                && !self.is_sidechain(*node)
                && self.ancestors(*node).any(|above| above == head)
        })
    }

    /// Returns the entries from the child of the missing `head` down to `tail`; `None` when no
    /// entry on the way names `head` as its parent.
    fn below(&self, head: Id, tail: NodeId) -> Option<Vec<NodeId>> {
        let mut kept: Vec<_> = self.ancestors(tail).collect();
        let is_first = |node: &NodeId| self.lineage(*node).parent() == Some(head);
        kept.truncate(kept.iter().position(is_first)? + 1);
        kept.reverse();
        Some(kept)
    }

    /// Returns the listed entries that exist, with each missing one replaced by the message that
    /// the links of the entries next to it lead through.
    fn fill(&self, listed: &[Option<NodeId>], [head, tail]: [Option<NodeId>; 2]) -> Vec<NodeId> {
        let mut kept: Vec<NodeId> = Vec::new();
        let mut lost = 0;
        for entry in listed {
            let Some(entry) = entry else {
                lost += 1;
                continue;
            };
            // When the link above is missing as well, so is the line that the name refers to.
            let is_linked = self.recovery.bridge(*entry).is_none();
            if lost > 0 && is_linked {
                // As many messages as names are missing, nearest first, but only up to the known
                // entry before them. The replacement is used only if it ends exactly there: a
                // different number of messages proves that the list and the links disagree.
                let before = kept.last().copied();
                let is_message = |node: &NodeId| self.entry(*node).kind().is_message();
                let above = self.ancestors(*entry).skip(1).take(MAX_STEPS);
                let above = above.take_while(|node| Some(*node) != before);
                let mut found: Vec<_> = above.filter(is_message).take(lost).collect();
                let first = found.last().copied();
                let is_proved = match before {
                    Some(_) => first.is_some_and(|first| self.message_above(first) == before),
                    None => head.is_none() || first == head,
                };
                if is_proved {
                    found.reverse();
                    kept.extend(found);
                }
            }
            lost = 0;
            kept.push(*entry);
        }
        // Names missing at the end: the segment contains the tail.
        if lost > 0
            && let Some(tail) = tail
            && let Some(rest) = kept.last().and_then(|last| self.between(*last, tail))
        {
            kept.extend(rest.into_iter().skip(1));
        }
        kept
    }

    /// Returns the entries from `head` down to `tail`; `None` when the links from `tail` do not
    /// lead there.
    fn between(&self, head: NodeId, tail: NodeId) -> Option<Vec<NodeId>> {
        let mut kept: Vec<_> = self.ancestors(tail).collect();
        kept.truncate(kept.iter().position(|node| *node == head)? + 1);
        kept.reverse();
        Some(kept)
    }
}
