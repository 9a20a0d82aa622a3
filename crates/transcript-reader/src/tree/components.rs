//! The components of a tree: entries that are linked with each other, in file order.

use super::{NodeId, Tree};

/// A union-find structure of entries that are linked with each other, in any direction. Links can be
/// added.
pub(crate) struct Components {
    up: Vec<u32>,
}

impl Components {
    pub(crate) fn of(tree: &Tree<'_>) -> Self {
        let up = tree.nodes().map(|node| {
            let parent = tree.parent_node(node);
            parent.unwrap_or(node).0
        });
        Self { up: up.collect() }
    }

    /// Returns the topmost entry of the component, halving the way to it for the next look-up.
    pub(crate) fn root(&mut self, node: NodeId) -> NodeId {
        let mut at = node.0;
        while self.up[at as usize] != at {
            let above = self.up[at as usize];
            self.up[at as usize] = self.up[above as usize];
            at = self.up[at as usize];
        }
        NodeId(at)
    }

    /// As [`Self::root`], without the path halving, so that `&self` suffices.
    pub(crate) fn peek(&self, node: NodeId) -> NodeId {
        let mut at = node.0;
        while self.up[at as usize] != at {
            at = self.up[at as usize];
        }
        NodeId(at)
    }

    pub(crate) fn join(&mut self, root: NodeId, parent: NodeId) {
        let root = self.root(root);
        self.up[root.at()] = parent.0;
    }
}

/// Answers in constant time whether an entry is a descendant of another one, from the times at
/// which a depth-first walk enters and leaves each entry.
pub(crate) struct Descendants {
    /// When the walk enters an entry and when it leaves it.
    times: Vec<(u32, u32)>,
    /// Of each entry and its descendants: the last in the file.
    last: Vec<NodeId>,
}

impl Descendants {
    pub(crate) fn of(tree: &Tree<'_>) -> Self {
        let mut last: Vec<NodeId> = tree.nodes().collect();
        let mut times = vec![(0, 0); tree.parents.len()];
        let mut clock = 0;
        for root in tree
            .nodes()
            .filter(|node| tree.parent_node(*node).is_none())
        {
            let mut open = vec![(root, tree.children(root))];
            clock += 1;
            times[root.at()].0 = clock;
            while let Some((node, children)) = open.last_mut() {
                clock += 1;
                if let Some(child) = children.next() {
                    times[child.at()].0 = clock;
                    open.push((child, tree.children(child)));
                } else {
                    times[node.at()].1 = clock;
                    let lowest = last[node.at()];
                    open.pop();
                    if let Some((above, _)) = open.last() {
                        last[above.at()] = last[above.at()].max(lowest);
                    }
                }
            }
        }
        Self { times, last }
    }

    /// Returns whether `node` is `above` or a descendant of it.
    pub(crate) fn is_descendant(&self, node: NodeId, above: NodeId) -> bool {
        let ((enter, leave), (from, to)) = (self.times[node.at()], self.times[above.at()]);
        from <= enter && leave <= to
    }

    /// Returns the last entry in the file among `node` and its descendants.
    pub(crate) fn last_descendant(&self, node: NodeId) -> NodeId {
        self.last[node.at()]
    }
}
