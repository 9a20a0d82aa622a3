//! Builds the tree of an index.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::decision::Decision;
use super::recover::changes::Recovery;
use super::{Included, NodeId, OtherAnswers, ParentSlot, Policy, Tree};
use crate::index::{EntryNo, EntryRef, Index, Preserved, is_stream_form};
use crate::other_files::OtherFiles;

impl<'i> Tree<'i> {
    /// Links the entries of `index`.
    #[must_use]
    pub fn new(index: &'i Index, policy: Policy) -> Self {
        Self::with(index, policy, None, Included::All)
    }

    /// Links the entries of `index` under [`Policy::Recover`], using what other files contain about
    /// [`Self::missing_parents`].
    #[must_use]
    pub fn with_others(index: &'i Index, others: &'i OtherFiles) -> Self {
        Self::with(index, Policy::Recover, Some(others), Included::All)
    }

    /// Returns the tree as if `entries` were not in the file. For entries whose body turns out to
    /// be unusable when it is read: another line with the same uuid counts instead, and a child of
    /// a removed entry is linked as if that entry had never been written.
    #[must_use]
    pub fn without(&self, entries: &HashSet<EntryNo>) -> Self {
        let included = Included::AllBut(Arc::new(entries.clone()));
        let tree = Self::with(self.index, self.policy, self.others, included);
        tree.for_client(self.client_version)
    }

    /// Returns the tree as it was when the file ended before entry `end`.
    #[must_use]
    pub fn before(index: &'i Index, policy: Policy, end: EntryNo) -> Self {
        Self::with(index, policy, None, Included::Before(end))
    }

    /// Returns the tree of the same entries as the client links them.
    pub(crate) fn of_client(&self) -> Self {
        Self::with(self.index, Policy::Vendor, None, self.included.clone())
    }

    /// Links the entries that are `included`.
    fn with(
        index: &'i Index,
        policy: Policy,
        others: Option<&'i OtherFiles>,
        included: Included,
    ) -> Self {
        let span =
            tracing::debug_span!("link_tree", policy = policy.name(), entries = index.len(),);
        let _entered = span.enter();
        let is_imported = index.is_imported();
        // The client does not read such a file.
        let policy = if is_imported { Policy::Recover } else { policy };
        let is_there = |entry: &EntryRef<'_>| included.contains(entry.number());
        let is_stream_form =
            policy == Policy::Recover && is_stream_form(index.entries().filter(is_there));
        let mut tree = Self {
            index,
            policy,
            others,
            included,
            client_version: index.client_version(),
            content: Vec::new(),
            parents: Vec::new(),
            first_child: Vec::new(),
            next_sibling: Vec::new(),
            removed: Vec::new(),
            spliced: Vec::new(),
            kept: None,
            cleared_by: None,
            is_after_kept: false,
            node_of: vec![ParentSlot::OPEN; index.len()],
            named: HashMap::new(),
            is_all_sidechain: false,
            is_stream_form,
            decisions: Vec::new(),
            recovery: Recovery::default(),
            other_answers: OtherAnswers::new(),
            repeated_calls: OnceLock::new(),
            was_repaired: false,
            client: OnceLock::new(),
        };
        tree.collect_nodes();
        if tree.is_stream_form {
            tree.link_in_order();
        } else {
            tree.link();
        }
        tree.removed = vec![false; tree.content.len()];
        tree.find_sidechains();
        if policy == Policy::Recover && !is_imported {
            tree.other_answers = tree.find_other_answers();
            tree.recover(others);
        }
        tree.splice();
        tree.remove_tombstoned();
        tree.build_children();
        tree.was_repaired = policy == Policy::Recover
            && !is_stream_form
            && !is_imported
            && tree.differs_from_client();
        tree
    }

    /// Returns the tree as it was before the first compaction after `node` that changed links: path
    /// and story of an entry that was compacted away are found in it.
    #[must_use]
    pub fn as_of(&self, node: NodeId) -> Self {
        let after = (self.entry_no_of(node).get()..self.index.len()).map(EntryNo::new);
        let mut boundaries = after.filter(|entry| {
            let facts = self.index.boundary(*entry);
            facts.is_some_and(|facts| !matches!(facts.preserved, Preserved::Nothing))
        });
        let end = boundaries.next().unwrap_or(EntryNo::new(self.index.len()));
        let included = Included::Before(end);
        Self::with(self.index, self.policy, self.others, included)
    }

    /// Returns whether anything in the file was repaired, so that the path of the client may differ.
    fn differs_from_client(&self) -> bool {
        let is_salvaged_line = |line: EntryRef<'_>| line.is_salvaged();
        let was_repaired = self.recovery.has_changed_links()
            || self.index.has_repeated_uuids()
            || self.cleared_by.is_some()
            || self.decisions.iter().any(changes_the_path)
            || self.index.entries().any(is_salvaged_line)
            || self.nodes().any(|node| self.is_unfinished(node));
        // The client ignores tombstones, and whatever it shows beyond the path was removed on
        // purpose.
        was_repaired && self.index.tombstones().next().is_none()
    }
}

/// Returns whether a decision about the tree can make the path differ from that of the client.
fn changes_the_path(decision: &Decision) -> bool {
    matches!(
        decision,
        Decision::Cycle { .. } | Decision::Splice { .. } | Decision::SpliceIgnored { .. }
    )
}
