//! The entries of a tree, and the links above them.

/// An entry of the tree, numbered by the first place of its uuid in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// The link above an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// The entry names no parent.
    Root,
    /// The entry names a parent that is missing.
    Lost,
    /// The parent.
    Node(NodeId),
}

impl Parent {
    /// Returns the parent, if there is one.
    #[must_use]
    pub fn node(self) -> Option<NodeId> {
        match self {
            Self::Node(node) => Some(node),
            Self::Root | Self::Lost => None,
        }
    }
}

/// A [`Parent`] in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParentSlot(pub(crate) u32);

impl ParentSlot {
    pub(crate) const ROOT: Self = Self(u32::MAX);
    pub(crate) const LOST: Self = Self(u32::MAX - 1);
    /// Not resolved yet.
    pub(super) const OPEN: Self = Self(u32::MAX - 2);
    /// Being resolved: reaching it again is a cycle.
    pub(super) const BUSY: Self = Self(u32::MAX - 3);
    /// No parent that a splice replaced: all links are resolved before it.
    pub(crate) const NOT_SPLICED: Self = Self::OPEN;

    pub(crate) fn parent_of(self) -> Parent {
        match self {
            Self::ROOT => Parent::Root,
            Self(node) if node < Self::BUSY.0 => Parent::Node(NodeId(node)),
            _ => Parent::Lost,
        }
    }
}
