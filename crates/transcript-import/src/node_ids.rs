//! Ids of nodes, and lists of them, most of which have one.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::slice;
use std::vec;

/// The number of a node in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Returns its place in the order of [`Conversation::ids`].
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the ids before it, the last one first.
    pub(crate) fn before(self) -> impl Iterator<Item = Self> {
        (0..self.0).rev().map(Self)
    }
}

/// Ids of nodes, in an order. A list of one takes no memory besides itself.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeIds(Ids);

#[derive(Clone, PartialEq, Eq)]
enum Ids {
    One(NodeId),
    Other(Box<[NodeId]>),
}

impl fmt::Debug for NodeIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Default for NodeIds {
    fn default() -> Self {
        Self(Ids::Other(Box::default()))
    }
}

impl Deref for NodeIds {
    type Target = [NodeId];

    fn deref(&self) -> &[NodeId] {
        match &self.0 {
            Ids::One(id) => slice::from_ref(id),
            Ids::Other(ids) => ids,
        }
    }
}

impl DerefMut for NodeIds {
    fn deref_mut(&mut self) -> &mut [NodeId] {
        match &mut self.0 {
            Ids::One(id) => slice::from_mut(id),
            Ids::Other(ids) => ids,
        }
    }
}

impl NodeIds {
    /// Adds ids at the end.
    pub(crate) fn extend(&mut self, ids: &[NodeId]) {
        if !ids.is_empty() {
            *self = [self, ids].concat().into();
        }
    }
}

impl From<Vec<NodeId>> for NodeIds {
    fn from(ids: Vec<NodeId>) -> Self {
        match ids[..] {
            [id] => Self(Ids::One(id)),
            _ => Self(Ids::Other(ids.into())),
        }
    }
}

impl From<NodeIds> for Vec<NodeId> {
    fn from(ids: NodeIds) -> Self {
        ids.to_vec()
    }
}

impl FromIterator<NodeId> for NodeIds {
    fn from_iter<I: IntoIterator<Item = NodeId>>(ids: I) -> Self {
        ids.into_iter().collect::<Vec<_>>().into()
    }
}

impl IntoIterator for NodeIds {
    type Item = NodeId;
    type IntoIter = vec::IntoIter<NodeId>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'n> IntoIterator for &'n NodeIds {
    type Item = &'n NodeId;
    type IntoIter = slice::Iter<'n, NodeId>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory grows with the number of records, so its size counts.
    #[test]
    fn a_list_is_small() {
        assert_eq!(size_of::<NodeIds>(), 16);
    }
}
