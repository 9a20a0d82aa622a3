//! The branches that leave a conversation.

use std::collections::HashMap;

use super::siblings::Siblings;
use super::story::{Story, StoryWalk};
use super::walk::Walk;
use super::{ConversationPath, PathEntry, Via};
use crate::index::EntryNo;
use crate::tree::branches::Branches;
use crate::tree::decision::Decision;
use crate::tree::{NodeId, Tree};

/// The part of a branch that is not on the conversation it leaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BranchOff {
    /// The entry where it leaves; `None` when it has a root of its own.
    pub from: Option<EntryNo>,
    /// Its own entries, oldest first. A compaction on the branch cuts it, as any other path.
    pub path: ConversationPath,
}

impl Tree<'_> {
    /// Returns the branches that leave `path`, in the order in which they start in the file: of
    /// each branch the entries that are neither on `path` nor on a branch before it.
    ///
    /// All of them are found in one walk, which takes time proportional to the size of the file,
    /// however many branches there are. The decisions are those about the entries of a branch.
    #[must_use]
    pub fn branches_off(&self, path: &ConversationPath) -> Vec<BranchOff> {
        self.branches(path, None)
    }

    /// Returns the branches that leave `story`, as [`Self::branches_off`] does for a path, each with
    /// what its own compactions removed from it.
    #[must_use]
    pub fn branches_off_story(&self, story: &Story) -> Vec<BranchOff> {
        self.branches(&story.path, Some(StoryWalk::new(self)))
    }

    /// Returns the branches that leave `path`, with what their compactions removed if there is a `story`.
    fn branches(&self, path: &ConversationPath, story: Option<StoryWalk>) -> Vec<BranchOff> {
        let mut walk = Walk::new(self);
        walk.skip(path);
        let breaks: Vec<EntryNo> = path.leaf.into_iter().collect();
        let branches = Branches::new(self, &breaks);
        let tips = branches.all().iter().filter(|branch| branch.is_tip);
        let tips = tips.filter_map(|branch| self.node(branch.last));
        let mut found = Vec::new();
        let mut decisions: HashMap<EntryNo, Vec<Decision>> = HashMap::new();
        for decision in &self.decisions {
            decisions
                .entry(decision.entry())
                .or_default()
                .push(*decision);
        }
        let mut walk = BranchWalk {
            walk,
            siblings: None,
            story,
            decisions,
        };
        for leaf in tips {
            if !walk.walk.is_on_chain(leaf) {
                found.push(walk.branch_off(leaf));
            }
        }
        // A line that was added to a branch as a sibling ends the walk of a branch below it. What
        // is above that line would then be on neither branch.
        for node in self.nodes() {
            let was_added = walk.walk.via[node.at()].contains(Via::SIBLING);
            let above = self.parent_node(node).filter(|_| was_added);
            if let Some(above) = above.filter(|above| !walk.walk.is_on_chain(*above)) {
                found.push(walk.branch_off(above));
            }
        }
        found
    }
}

/// Walks branches one after the other.
struct BranchWalk<'t, 'i> {
    walk: Walk<'t, 'i>,
    /// Collected with the first branch.
    siblings: Option<Siblings>,
    /// When the walk passes through compactions.
    story: Option<StoryWalk>,
    /// The decisions of the tree, by their entries.
    decisions: HashMap<EntryNo, Vec<Decision>>,
}

impl BranchWalk<'_, '_> {
    /// Walks from `leaf` up to the first entry of an earlier path.
    fn branch_off(&mut self, leaf: NodeId) -> BranchOff {
        let walk = &mut self.walk;
        walk.start_next();
        match &mut self.story {
            Some(story) => walk.up_through_compactions(story, (leaf, Via::PARENT), None),
            None => walk.up_from(leaf),
        }
        walk.add_attachments_below(leaf);
        walk.add_siblings(&mut self.siblings);
        let mut own = std::mem::take(&mut walk.decisions);
        let nodes = std::mem::take(&mut walk.chain);
        let mut entries = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let entry = walk.tree.entry_no_of(*node);
            walk.mark(*node);
            if walk.tree.entry(*node).is_salvaged() {
                walk.via[node.at()] |= Via::SALVAGE;
                own.push(Decision::Salvage { entry });
            }
            own.extend(self.decisions.get(&entry).into_iter().flatten());
            entries.push(PathEntry {
                in_context: false,
                ..walk.path_entry(*node, nodes[0])
            });
        }
        let path = ConversationPath {
            entries,
            leaf: Some(walk.tree.entry_no_of(leaf)),
            decisions: own,
            ..ConversationPath::default()
        };
        let from = walk.from.map(|from| walk.tree.entry_no_of(from));
        BranchOff { from, path }
    }
}
