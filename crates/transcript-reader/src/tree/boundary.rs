//! The references of a compaction boundary: the entries that it preserves, and the end of the
//! conversation before it.

use super::{NodeId, Tree};
use crate::index::{Boundary, Preserved};

impl Tree<'_> {
    /// Returns whether a crash left a boundary without the summary that it names as its anchor.
    pub(crate) fn is_unfinished(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        let boundary = entry
            .is_boundary()
            .then(|| self.index.boundary(entry.number()));
        let anchor = match boundary.flatten().map(|boundary| &boundary.preserved) {
            Some(Preserved::List { anchor, uuids }) if !uuids.is_empty() => *anchor,
            _ => None,
        };
        anchor.is_some_and(|anchor| self.node_with_uuid(anchor).is_none())
    }

    /// Returns the anchor, if it exists, and the preserved entries, oldest first; `None` when any
    /// of them is missing (COMPACT-5) or nothing is preserved (COMPACT-6). A list counts before a
    /// segment (COMPACT-3): the reader chose the form when it built the index.
    pub(crate) fn preserved(&self, boundary: &Boundary) -> Option<(Option<NodeId>, Vec<NodeId>)> {
        let (anchor, kept) = match &boundary.preserved {
            Preserved::Nothing => return None,
            Preserved::List { anchor, uuids } => {
                let kept: Option<Vec<_>> =
                    uuids.iter().map(|id| self.node_with_uuid((*id)?)).collect();
                (*anchor, kept?)
            }
            Preserved::Segment { anchor } => {
                let [head, tail] = boundary.ends;
                let head = self.node_with_uuid(head?)?;
                let mut kept: Vec<_> = self.ancestors(self.node_with_uuid(tail?)?).collect();
                kept.truncate(kept.iter().position(|node| *node == head)? + 1);
                kept.reverse();
                (*anchor, kept)
            }
        };
        let anchor = anchor.and_then(|anchor| self.node_with_uuid(anchor));
        (!kept.is_empty()).then_some((anchor, kept))
    }

    /// Returns the end of the conversation that `boundary` ended, and whether the boundary names it:
    /// its parent (COMPACT-2), else its `logicalParentUuid` (COMPACT-1), else the end of the
    /// preserved segment. If none of them is in the file, it is the message before it in the file.
    pub(crate) fn end_before(&self, boundary: NodeId) -> Option<(NodeId, bool)> {
        if let Some(named) = self.named_end_before(boundary) {
            return Some((named, true));
        }
        let is_message = |node: &NodeId| {
            self.entry(*node).kind().is_message()
                && !self.is_sidechain(*node)
                && !self.is_foreign(*node)
                && !self.is_tombstoned(*node)
        };
        self.index.boundary(self.entry_no_of(boundary))?;
        let before = (0..boundary.0).rev().map(NodeId).find(is_message)?;
        Some((before, false))
    }

    /// Returns the end of the conversation that `boundary` ended, as far as the boundary names it.
    pub(crate) fn named_end_before(&self, boundary: NodeId) -> Option<NodeId> {
        let names = self.index.boundary(self.entry_no_of(boundary))?;
        let node = |id| {
            let node = self
                .index
                .with_uuid(id)
                .find_map(|line| self.entry_node(line))?;
            if self.is_tombstoned(node) {
                self.above_tombstone(id)
            } else {
                Some(node)
            }
        };
        let is_before = |node: &NodeId| *node < boundary && !self.is_sidechain(*node);
        let parent = self.parent_before_splice(boundary).node();
        let logical = names.logical_parent.and_then(node);
        let parent = parent.into_iter().chain(logical).find(is_before);
        let tail = names.ends[1].and_then(node).filter(is_before);
        match (parent, tail) {
            (Some(parent), Some(tail)) if self.was_repeated_after(parent, tail) => Some(tail),
            _ => parent.or(tail),
        }
    }
}
