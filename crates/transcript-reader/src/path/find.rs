//! Finds the path of a tree: from the leaf to the start of the conversation.

use transcript_format::client_version::ClientVersion;
use transcript_format::kind::EntryKind;

use super::walk::Walk;
use super::{ConversationPath, Refusal};
use crate::tree::decision::{Decision, LeafReason};
use crate::tree::{NodeId, Policy, Tree};

/// The first client that resumes a session whose leaf has no valid time (LEAF-17).
const FIRST_WITH_TIMELESS_LEAF: ClientVersion = ClientVersion::new(2, 1, 330);

impl Tree<'_> {
    /// Returns the path to the leaf that the policy chooses.
    #[must_use]
    pub fn path(&self) -> ConversationPath {
        let span = tracing::debug_span!("find_path", policy = self.policy().name());
        let _entered = span.enter();
        let client = self.client_path();
        let path = self.path_by_policy();
        match client {
            Some(client) => self.at_least_client_path(client, path),
            None => path,
        }
    }

    /// Returns the path that the client finds, if anything in the file was repaired; `None` under
    /// `vendor`.
    pub(crate) fn client_path(&self) -> Option<&ConversationPath> {
        let find = || self.was_repaired.then(|| self.of_client().path());
        self.client.get_or_init(find).as_ref()
    }

    fn path_by_policy(&self) -> ConversationPath {
        if self.policy() == Policy::Vendor && self.is_left_without_main() {
            return ConversationPath {
                refusal: Some(Refusal::OnlySidechains),
                ..ConversationPath::default()
            };
        }
        let Some((leaf, reason)) = self.leaf() else {
            // A session without any message is resumed with an empty history (LEAF-16).
            let is_of_session = |node: NodeId| !self.is_foreign(node) && !self.is_tombstoned(node);
            let is_session = self.nodes().any(is_of_session);
            let refusal = if !is_session {
                Some(Refusal::NoConversation)
            } else {
                self.has_no_end().then_some(Refusal::NoEnd)
            };
            return ConversationPath {
                refusal,
                ..ConversationPath::default()
            };
        };
        self.path_with_pin(leaf, reason)
    }

    /// Returns whether only entries of subagents are left of a main conversation, or there are no
    /// messages at all (LEAF-19).
    fn is_left_without_main(&self) -> bool {
        let is_message = |node: NodeId| self.entry(node).kind().is_message();
        self.nodes().next().is_some()
            && (!self.is_all_sidechain || !self.nodes().any(is_message))
            && self.has_only_sidechains()
    }

    /// Returns whether nothing but the conversation of a subagent is left. It has a path, although the
    /// client does not resume it (LEAF-19).
    #[must_use]
    pub fn has_only_sidechains(&self) -> bool {
        let nodes = || self.nodes().filter(|node| !self.is_removed(*node));
        let is_sidechain = |node: NodeId| self.is_side_entry(&self.entry(node));
        let mut messages = nodes()
            .filter(|node| self.entry(*node).kind().is_message())
            .peekable();
        match messages.peek() {
            Some(_) => messages.all(is_sidechain),
            None => nodes().all(is_sidechain),
        }
    }

    /// Returns the path to a leaf, and reports when a pin hides newer entries (LEAF-10): after a
    /// crash such a pin may be out of date, and a person has to know that there is more.
    fn path_with_pin(&self, leaf: NodeId, reason: LeafReason) -> ConversationPath {
        let mut path = self.path_to(leaf, reason);
        if matches!(reason, LeafReason::Pinned | LeafReason::AfterPin)
            && let Some((newer, _)) = self.last_tip()
            && newer > leaf
            && !path
                .entries
                .iter()
                .any(|entry| entry.entry_no == self.entry_no_of(newer))
        {
            let entry = self.entry_no_of(leaf);
            let newer = self.entry_no_of(newer);
            path.decisions
                .insert(1, Decision::PinHidesNewer { entry, newer });
        }
        path
    }

    /// Returns the path to `leaf`, whatever the policy would choose.
    #[must_use]
    pub fn path_to_leaf(&self, leaf: NodeId) -> ConversationPath {
        self.path_to(leaf, LeafReason::Asked)
    }

    fn path_to(&self, leaf: NodeId, reason: LeafReason) -> ConversationPath {
        let entry = self.entry_no_of(leaf);
        let mut walk = Walk::new(self);
        walk.decisions.push(Decision::Leaf { entry, reason });
        walk.up_from(leaf);
        walk.add_attachments_below(leaf);
        if self.policy() == Policy::Recover {
            walk.add_entries_of_interrupted_compactions();
        }
        walk.cut_at_boundary();
        walk.add_siblings(&mut None);
        let is_refused = self.policy() == Policy::Vendor
            && self.is_client_before(FIRST_WITH_TIMELESS_LEAF)
            && self.entry(leaf).kind() != EntryKind::Attachment
            && self.entry(leaf).millis().is_none();
        ConversationPath {
            leaf: Some(entry),
            refusal: is_refused.then_some(Refusal::LeafWithoutTime),
            ..walk.finish()
        }
    }
}
