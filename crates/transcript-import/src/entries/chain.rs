//! The chain: what compactions replaced, a boundary after each, and the live nodes.

use crate::conversation::{BranchKind, Conversation, NodeId};
use crate::node::NodeKind;

/// A step of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Node(NodeId),
    /// The summary after a boundary.
    Summary(NodeId),
    Boundary,
}

impl Step {
    pub(super) fn node(self) -> Option<NodeId> {
        match self {
            Self::Node(id) | Self::Summary(id) => Some(id),
            Self::Boundary => None,
        }
    }
}

/// Returns the steps, and for each node whether it is one of them.
pub(super) fn chain(of: &Conversation) -> (Vec<Step>, Vec<bool>) {
    let mut chain = Chain {
        of,
        taken: vec![false; of.ids().len()],
        inherited: Vec::new(),
    };
    let compacted = of.branches.iter();
    let compacted = compacted.filter(|branch| branch.kind == BranchKind::Compacted);
    // The live nodes first: a node that a compaction replaced and that is sent all the same is live.
    let live = chain.expanded(&of.live);
    let mut chapters: Vec<Vec<NodeId>> = compacted
        .map(|branch| chain.expanded(&branch.nodes))
        .collect();
    chain.put_inherited(&mut chapters);
    chapters.retain(|chapter| !chapter.is_empty());
    if live.is_empty() {
        // Nothing follows the last compaction.
        chain.taken.fill(false);
        return (Vec::new(), chain.taken);
    }
    chapters.push(live);
    (steps(of, chapters), chain.taken)
}

struct Chain<'c> {
    of: &'c Conversation,
    taken: Vec<bool>,
    /// Prompts that a made message repeats. They were said before the compaction that made it.
    inherited: Vec<NodeId>,
}

impl Chain<'_> {
    /// Returns the nodes that have lines of their own: a message that was made of several prompts is those prompts, and results
    /// that the agent makes up for calls without one have none.
    fn expanded(&mut self, nodes: &[NodeId]) -> Vec<NodeId> {
        let mut all = Vec::with_capacity(nodes.len());
        for id in nodes {
            self.expand(*id, &mut all);
        }
        all
    }

    fn expand(&mut self, id: NodeId, to: &mut Vec<NodeId>) {
        if std::mem::replace(&mut self.taken[id.index()], true) {
            return;
        }
        let node = self.of.node(id);
        if node.origin.is_some() {
            to.push(id);
            return;
        }
        if node.made_of.is_empty() {
            if node.kind != NodeKind::ToolResult {
                to.push(id);
            }
            return;
        }
        if !is_made_summary(self.of, id) {
            for part in node.made_of {
                self.expand(*part, to);
            }
            return;
        }
        to.push(id);
        for part in node.made_of {
            if self.of.node(*part).kind == NodeKind::Summary {
                self.taken[part.index()] = true;
            } else {
                self.inherited.push(*part);
            }
        }
    }

    /// Puts the prompts that made messages repeat where they were said: before the first later node.
    fn put_inherited(&mut self, chapters: &mut [Vec<NodeId>]) {
        let Some(last) = chapters.len().checked_sub(1) else {
            return;
        };
        let mut inherited = std::mem::take(&mut self.inherited);
        inherited.retain(|id| !std::mem::replace(&mut self.taken[id.index()], true));
        inherited.sort_by_key(|id| self.of.node(*id).origin);
        let mut inherited = inherited.into_iter().peekable();
        for (number, chapter) in chapters.iter_mut().enumerate() {
            let mut all = Vec::with_capacity(chapter.len());
            for id in chapter.drain(..) {
                let origin = self.of.node(id).origin;
                while let Some(prompt) =
                    inherited.next_if(|prompt| self.of.node(*prompt).origin < origin)
                {
                    all.push(prompt);
                }
                all.push(id);
            }
            if number == last {
                all.extend(&mut inherited);
            }
            *chapter = all;
        }
    }
}

/// Returns whether a made message has the summary of a compaction in it.
pub(super) fn is_made_summary(of: &Conversation, id: NodeId) -> bool {
    let mut parts = of.node(id).made_of.iter();
    parts.any(|part| of.node(*part).kind == NodeKind::Summary)
}

fn steps(of: &Conversation, chapters: Vec<Vec<NodeId>>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, chapter) in chapters.into_iter().enumerate() {
        let summary = (number > 0).then(|| summary_of(of, &chapter)).flatten();
        if number > 0 {
            steps.push(Step::Boundary);
        }
        steps.extend(chapter.into_iter().map(|id| {
            if summary == Some(id) {
                Step::Summary(id)
            } else {
                Step::Node(id)
            }
        }));
    }
    steps
}

/// Returns the summary of a chapter that follows a boundary; without one, the first message, which then stands for it: without
/// a summary a boundary is that of an interrupted compaction.
fn summary_of(of: &Conversation, chapter: &[NodeId]) -> Option<NodeId> {
    let is_summary =
        |id: &&NodeId| of.node(**id).kind == NodeKind::Summary || is_made_summary(of, **id);
    let is_message =
        |id: &&NodeId| matches!(of.node(**id).kind, NodeKind::User | NodeKind::Context);
    let summary = chapter.iter().find(is_summary);
    summary.or_else(|| chapter.iter().find(is_message)).copied()
}
