//! Makes item lists.

use std::collections::HashSet;

use transcript_reader::{BodySource, ConversationPath, Id, Tree};

use super::ItemList;
use super::build::{self, Builder, Progress};
use super::item_reader::HeldBodies;

/// Makes the item lists of several paths of one tree: what holds for the whole file is computed
/// once.
#[derive(Clone, Debug)]
pub struct Displays<'t, 'i> {
    pub(super) tree: &'t Tree<'i>,
    /// The tombstoned uuids.
    tombstoned: HashSet<Id>,
    pub(super) progress: Progress,
}

impl<'t, 'i> Displays<'t, 'i> {
    /// Reads the records of the file, but no bodies.
    #[must_use]
    pub fn new(tree: &'t Tree<'i>) -> Self {
        Self {
            tree,
            tombstoned: build::tombstoned(tree),
            progress: Progress::new(tree),
        }
    }

    /// Makes the item list of `path`, as [`ItemList::new`] does. Progress lines whose parent is
    /// missing are shown in the first list with a call that they name.
    ///
    /// # Errors
    /// The errors of `bodies`.
    ///
    /// # Panics
    /// When `path` is not one of the index of the tree.
    pub fn display<B: BodySource>(
        &mut self,
        path: &ConversationPath,
        bodies: &mut B,
    ) -> Result<ItemList, B::Error> {
        self.display_held(path, &HeldBodies::default(), bodies)
    }

    /// Does the same, and takes the bodies that `held` has from there.
    ///
    /// # Errors
    /// The errors of `bodies`.
    ///
    /// # Panics
    /// When `path` is not one of the index of the tree.
    pub fn display_held<B: BodySource>(
        &mut self,
        path: &ConversationPath,
        held: &HeldBodies<'_>,
        bodies: &mut B,
    ) -> Result<ItemList, B::Error> {
        let builder = Builder::new(self.tree, &self.tombstoned, path);
        builder.build(path, &mut self.progress, held, bodies)
    }
}

impl ItemList {
    /// Reads the bodies of `path`, each once and one at a time, and those of the progress lines
    /// that are children of its entries. Takes time proportional to the size of these bodies, in
    /// any order.
    ///
    /// # Errors
    /// The errors of `bodies`.
    ///
    /// # Panics
    /// When `path` is not one of the index of `tree`.
    pub fn new<B: BodySource>(
        tree: &Tree<'_>,
        path: &ConversationPath,
        bodies: &mut B,
    ) -> Result<Self, B::Error> {
        Displays::new(tree).display(path, bodies)
    }
}
