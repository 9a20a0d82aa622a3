//! Walks from the leaf to the start of the conversation.

use std::collections::HashMap;
use std::sync::Arc;

use bitflags::bitflags;
use transcript_format::client_version::ClientVersion;
use transcript_format::kind::EntryKind;
use transcript_format::scan::ToolRole;
use transcript_reader::{EntryNo, Index, ToolKey};

use crate::branches::Branches;
use crate::decision::{Decision, Evidence, LeafReason};
use crate::leaf::MessagesAbove;
use crate::siblings::Siblings;
use crate::story::{Story, StoryWalk};
use crate::tree::{NodeId, Parent, Policy, Tree};

/// The entries of a conversation, oldest first, and the decisions that led to them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConversationPath {
    /// The entries: messages, attachments and system entries, before any are omitted for a request
    /// or a display.
    pub entries: Vec<PathEntry>,
    /// The calls and results in the entries that a selection of what is shown removed from `entries`.
    pub omitted: OmittedCalls,
    /// The entry that ends the conversation.
    pub leaf: Option<EntryNo>,
    /// Every decision, in the order in which it was made.
    pub decisions: Vec<Decision>,
    /// Why the client of the policy would not resume this path. The entries are present all the
    /// same.
    pub refusal: Option<Refusal>,
}

impl ConversationPath {
    /// Ends the path after this entry. Returns false, and changes nothing, when
    /// that is not on the path.
    pub fn cut_after(&mut self, entry_no: EntryNo) -> bool {
        let Some(at) = self
            .entries
            .iter()
            .position(|entry| entry.entry_no() == entry_no)
        else {
            return false;
        };
        self.entries.truncate(at + 1);
        self.leaf = Some(entry_no);
        true
    }
}

/// Calls and results in entries that are not shown, although the conversation has them. A call whose
/// result is among them is not one without a result.
#[derive(Clone, Debug, Default)]
pub struct OmittedCalls(Arc<HashMap<ToolKey, Vec<ToolRole>>>);

impl OmittedCalls {
    /// Finds those of these entries.
    #[must_use]
    pub fn of(index: &Index, entries: &[EntryNo]) -> Self {
        let mut ends: HashMap<ToolKey, Vec<ToolRole>> = HashMap::new();
        for end in entries.iter().flat_map(|entry| index.entry(*entry).tools()) {
            ends.entry(end.key()).or_default().push(end.role());
        }
        Self(Arc::new(ends))
    }

    /// Returns whether the call with this id is among them.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.has(id, [ToolRole::Use, ToolRole::ServerUse])
    }

    /// Returns whether a result of the call with this id is among them.
    pub(crate) fn has_result(&self, id: &str) -> bool {
        self.has(id, [ToolRole::Result, ToolRole::ServerResult])
    }

    fn has(&self, id: &str, roles: [ToolRole; 2]) -> bool {
        let ends = self.0.get(&ToolKey::of(id));
        ends.is_some_and(|ends| ends.iter().any(|role| roles.contains(role)))
    }
}

/// One entry of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathEntry {
    entry_no: EntryNo,
    /// How it came onto the path.
    pub via: Via,
    /// Whether the model sees it when the conversation continues: false for what was compacted away
    /// and for other branches.
    pub in_context: bool,
    /// Whether it is from before the compaction that the context starts with, which preserved it
    /// word for word.
    pub kept: bool,
    /// Whether a turn starts with it because a selection of what is shown omitted entries before
    /// it: a prompt, or what a turn said before this prompt.
    pub after_hidden: bool,
}

impl PathEntry {
    pub(crate) fn new(entry_no: EntryNo, via: Via) -> Self {
        Self {
            entry_no,
            via,
            in_context: true,
            kept: false,
            after_hidden: false,
        }
    }

    /// Returns it with another number.
    pub(crate) fn renumbered(self, entry_no: EntryNo) -> Self {
        Self { entry_no, ..self }
    }

    /// Returns its number in the index.
    #[must_use]
    pub fn entry_no(&self) -> EntryNo {
        self.entry_no
    }
}

bitflags! {
    /// How an entry came onto a path.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Via: u8 {
        /// By a link in the file, or as the leaf.
        const PARENT = 1;
        /// As a line of an API message on the path, the result of one of its calls, or an entry below the
        /// boundary of a compaction that was interrupted.
        const SIBLING = 1 << 1;
        /// As a preserved entry.
        const SPLICE = 1 << 2;
        /// In place of a missing parent.
        const BRIDGE = 1 << 3;
        /// From a damaged line.
        const SALVAGE = 1 << 4;
    }
}

impl Via {
    /// Returns the names, as `docs/cli.md` lists them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let names = [
            (Self::PARENT, "parent"),
            (Self::SIBLING, "sibling"),
            (Self::SPLICE, "splice"),
            (Self::BRIDGE, "bridge"),
            (Self::SALVAGE, "salvage"),
        ];
        names
            .into_iter()
            .filter(move |(via, _)| self.contains(*via))
            .map(|(_, name)| name)
    }
}

/// The first client that resumes a session whose leaf has no valid time (LEAF-17).
const TIMELESS_LEAF: ClientVersion = ClientVersion::new(2, 1, 330);

/// Why a client refuses to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The file holds no message of a main conversation.
    NoConversation,
    /// The leaf has no valid timestamp (LEAF-17).
    LeafWithoutTime,
    /// Each entry belongs to a subagent (LEAF-19).
    OnlySidechains,
    /// After a compaction that keeps entries, no message ends a conversation (LEAF-18).
    NoEnd,
    /// The client cannot render an attachment (NOTE-9).
    UnusableAttachment,
}

impl Refusal {
    /// Returns a short description of the reason.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoConversation => "the file holds no conversation",
            Self::LeafWithoutTime => "the leaf has no valid timestamp",
            Self::OnlySidechains => "the file holds only the conversation of a subagent",
            Self::UnusableAttachment => "the client fails on an attachment that lacks its content",
            Self::NoEnd => "no message is the end of a conversation",
        }
    }
}

impl Tree<'_> {
    /// Returns the path to the leaf that the policy chooses.
    #[must_use]
    pub fn path(&self) -> ConversationPath {
        let span = tracing::debug_span!("find_path", policy = self.policy().name());
        let _entered = span.enter();
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
            return self.no_less_than_the_client(ConversationPath {
                refusal,
                ..ConversationPath::default()
            });
        };
        self.no_less_than_the_client(self.path_with_pin(leaf, reason))
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
    pub(crate) fn has_only_sidechains(&self) -> bool {
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
            && let Some((newer, _)) = self.last_tip(&mut MessagesAbove::new(self))
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

    /// Returns the branches that leave `path`, in the order in which they start in the file: of
    /// each branch the entries that are neither on `path` nor on a branch before it.
    ///
    /// All of them are found in one walk, which takes time proportional to the size of the file,
    /// however many branches there are. The decisions are those about the entries of a branch.
    #[must_use]
    pub fn branches_off(&self, path: &ConversationPath) -> Vec<BranchOff> {
        self.branches(path, Walk::new(self))
    }

    /// Returns the branches that leave `story`, as [`Self::branches_off`] does for a path, each with
    /// what its own compactions removed from it.
    #[must_use]
    pub fn branches_off_story(&self, story: &Story) -> Vec<BranchOff> {
        let mut walk = Walk::new(self);
        walk.story = Some(StoryWalk::new(self));
        self.branches(&story.path, walk)
    }

    fn branches(&self, path: &ConversationPath, mut walk: Walk<'_, '_>) -> Vec<BranchOff> {
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
        for leaf in tips {
            if !walk.is_on_chain(leaf) {
                found.push(walk.branch_off(leaf, &decisions));
            }
        }
        // A line that was added to a branch as a sibling ends the walk of a branch below it. What
        // is above that line would then be on neither branch.
        for node in self.nodes() {
            let was_added = walk.via[node.at()].contains(Via::SIBLING);
            let above = self.parent_node(node).filter(|_| was_added);
            if let Some(above) = above.filter(|above| !walk.is_on_chain(*above)) {
                found.push(walk.branch_off(above, &decisions));
            }
        }
        found
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
        walk.add_siblings();
        let is_refused = self.policy() == Policy::Vendor
            && self.is_client_before(TIMELESS_LEAF)
            && self.entry(leaf).kind() != EntryKind::Attachment
            && self.entry(leaf).millis().is_none();
        ConversationPath {
            leaf: Some(entry),
            refusal: is_refused.then_some(Refusal::LeafWithoutTime),
            ..walk.finish()
        }
    }

    /// Returns the attachments below `node`, and those below these, in file order.
    pub(crate) fn attachments_below(&self, node: NodeId) -> Vec<NodeId> {
        self.entries_below(node, |child| {
            self.entry(child).kind() == EntryKind::Attachment
        })
    }

    /// Returns the entries below `node` that `counts` accepts, and those below these, in file order.
    pub(crate) fn entries_below(
        &self,
        node: NodeId,
        counts: impl Fn(NodeId) -> bool,
    ) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut at = node;
        let mut looked_at = 0;
        loop {
            for child in self.children(at) {
                transcript_format::work::add(1);
                // Each entry has one parent, so only a cycle through `node` could reach one twice.
                if child != node && counts(child) {
                    found.push(child);
                }
            }
            let Some(next) = found.get(looked_at) else {
                break;
            };
            at = *next;
            looked_at += 1;
        }
        found.sort_unstable();
        found
    }
}

/// The part of a branch that is not on the conversation it leaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BranchOff {
    /// The entry where it leaves; `None` when it has a root of its own.
    pub from: Option<EntryNo>,
    /// Its own entries, oldest first. A compaction on the branch cuts it, as any other path.
    pub path: ConversationPath,
}

/// A path under construction: nodes in order, and which of them are on it. Several paths can be
/// walked one after the other; each ends where it meets an earlier one.
pub(crate) struct Walk<'t, 'i> {
    pub(crate) tree: &'t Tree<'i>,
    pub(crate) chain: Vec<NodeId>,
    /// How each node came onto this chain or an earlier one; empty for nodes on none.
    pub(crate) via: Vec<Via>,
    pub(crate) decisions: Vec<Decision>,
    by_time: Option<ByTime>,
    /// With several paths: the number of the path that each node is on.
    path_of: Vec<u32>,
    /// The number of the path under construction, from 1 on; 0 while there is only one.
    path: u32,
    /// The node of an earlier path where this one leaves it.
    pub(crate) from: Option<NodeId>,
    pub(crate) siblings: Option<Siblings>,
    /// The number of entries from the root to a node, inclusive.
    depths: HashMap<NodeId, u32>,
    /// When the walk passes through compactions.
    pub(crate) story: Option<StoryWalk>,
}

impl<'t, 'i> Walk<'t, 'i> {
    pub(crate) fn new(tree: &'t Tree<'i>) -> Self {
        let via = vec![Via::empty(); tree.nodes().count()];
        Self {
            tree,
            chain: Vec::new(),
            via,
            decisions: Vec::new(),
            by_time: None,
            path_of: Vec::new(),
            path: 0,
            from: None,
            siblings: None,
            depths: HashMap::new(),
            story: None,
        }
    }

    /// Marks the entries of `path` as on an earlier path, so that no branch shows them again.
    fn skip(&mut self, path: &ConversationPath) {
        self.path_of = vec![0; self.via.len()];
        for entry in &path.entries {
            if let Some(node) = self.tree.node(entry.entry_no()) {
                self.via[node.at()] = entry.via | Via::PARENT;
            }
        }
    }

    /// Returns whether the node is on an earlier path.
    pub(crate) fn is_on_other(&self, node: NodeId) -> bool {
        self.path > 0 && self.is_on_chain(node) && self.path_of[node.at()] != self.path
    }

    pub(crate) fn put(&mut self, node: NodeId, via: Via) {
        transcript_format::work::add(1);
        self.chain.push(node);
        self.via[node.at()] = via;
        if let Some(path) = self.path_of.get_mut(node.at()) {
            *path = self.path;
        }
    }

    /// Walks from `leaf` up to the first entry of an earlier path; `decisions` are those of the
    /// tree.
    fn branch_off(
        &mut self,
        leaf: NodeId,
        decisions: &HashMap<EntryNo, Vec<Decision>>,
    ) -> BranchOff {
        self.path += 1;
        self.from = None;
        self.chain.clear();
        if let Some(by_time) = &mut self.by_time {
            by_time.reset();
        }
        match self.story.take() {
            Some(mut story) => {
                self.up_through_compactions(&mut story, (leaf, Via::PARENT), None);
                self.story = Some(story);
            }
            None => self.up_from(leaf),
        }
        self.add_attachments_below(leaf);
        self.add_siblings();
        let mut own = std::mem::take(&mut self.decisions);
        let nodes = std::mem::take(&mut self.chain);
        let mut entries = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let entry = self.tree.entry_no_of(*node);
            if let Some(path) = self.path_of.get_mut(node.at()) {
                *path = self.path;
            }
            if self.tree.entry(*node).is_salvaged() {
                self.via[node.at()] |= Via::SALVAGE;
                own.push(Decision::Salvage { entry });
            }
            own.extend(decisions.get(&entry).into_iter().flatten());
            entries.push(PathEntry {
                in_context: false,
                ..self.path_entry(*node, nodes[0])
            });
        }
        let path = ConversationPath {
            entries,
            leaf: Some(self.tree.entry_no_of(leaf)),
            decisions: own,
            ..ConversationPath::default()
        };
        let from = self.from.map(|from| self.tree.entry_no_of(from));
        BranchOff { from, path }
    }

    /// Returns whether the branch under construction starts at `node`, its last boundary
    /// (COMPACT-2).
    fn starts_at(&mut self, node: NodeId, has_message: bool) -> bool {
        let is_start = self.path > 0
            && (has_message || self.tree.policy() == Policy::Vendor)
            && self.tree.entry(node).is_boundary();
        if is_start {
            let hidden = self.depth(node).saturating_sub(1);
            let boundary = self.tree.entry_no_of(node);
            let hidden = Some(hidden);
            self.decisions.push(Decision::Cut { boundary, hidden });
        }
        is_start
    }

    /// Returns the number of entries from the root to `node`, inclusive.
    fn depth(&mut self, node: NodeId) -> u32 {
        let mut above = Vec::new();
        let mut at = Some(node);
        let mut depth = loop {
            let Some(node) = at else { break 0 };
            if let Some(depth) = self.depths.get(&node) {
                break *depth;
            }
            // Reaching it again is a cycle.
            self.depths.insert(node, 0);
            above.push(node);
            at = self.tree.parent_node(node);
        };
        for node in above.into_iter().rev() {
            depth += 1;
            self.depths.insert(node, depth);
        }
        depth
    }

    pub(crate) fn is_on_chain(&self, node: NodeId) -> bool {
        !self.via[node.at()].is_empty()
    }

    /// Follows parents from `leaf` on (CHAIN-1). An entry of a sidechain that is named as a parent
    /// is part of the path as any other (CHAIN-5). Under `vendor` a missing parent, and one that
    /// closes a cycle, is replaced by the previous entry in time (CHAIN-3); `recover` has already
    /// found replacements.
    fn up_from(&mut self, leaf: NodeId) {
        let (mut node, mut via) = (leaf, Via::PARENT);
        let mut has_message = false;
        loop {
            if self.is_on_other(node) {
                self.from = Some(node);
                break;
            }
            self.put(node, via);
            if self.starts_at(node, has_message) {
                break;
            }
            let entry = self.tree.entry_no_of(node);
            has_message |= self.tree.entry(node).kind().is_message();
            let parent = match self.tree.parent(node) {
                Parent::Root => break,
                Parent::Node(parent) if !self.is_on_chain(parent) || self.is_on_other(parent) => {
                    Some(parent)
                }
                Parent::Node(_) => {
                    self.decisions.push(Decision::Cycle { entry });
                    None
                }
                Parent::Lost => None,
            };
            if let Some(parent) = parent {
                via = self.note_link(node, parent);
                node = parent;
                continue;
            }
            if self.tree.policy() == Policy::Recover {
                self.decisions.extend(self.tree.link_decision(node));
                break;
            }
            let Some((parent, gap_millis)) = self.relink(node) else {
                self.decisions.push(Decision::Truncated { entry });
                break;
            };
            let parent_entry = self.tree.entry_no_of(parent);
            self.decisions.push(Decision::Relink {
                entry,
                parent: parent_entry,
                gap_millis,
            });
            (node, via) = (parent, Via::BRIDGE);
        }
        self.chain.reverse();
    }

    /// Returns how `parent` came onto the chain as the parent of `child`. A link that differs from
    /// the one in the file bridges a gap, passes over progress entries or comes from a splice.
    pub(crate) fn note_link(&mut self, child: NodeId, parent: NodeId) -> Via {
        let above = self.tree.entry(parent);
        let (entry, parent) = (self.tree.entry_no_of(child), above.number());
        if self.tree.is_spliced(child) {
            if self.tree.recovery.bridge(child) == Some(Evidence::Kept) {
                self.decisions.extend(self.tree.link_decision(child));
            }
            if self.tree.lineage(child).parent() != above.uuid() {
                self.via[child.at()] |= Via::SPLICE;
            }
        } else if let Some(bridge) = self.tree.link_decision(child) {
            self.decisions.push(bridge);
            return Via::BRIDGE;
        } else if self.tree.lineage(child).parent() != above.uuid()
            && !self.tree.is_stream_form()
            && !self.tree.recovery.tombstones.was_below_tombstone(child)
        {
            self.decisions.push(Decision::Progress { entry, parent });
        }
        Via::PARENT
    }

    /// Returns the newest entry that is not newer than `node` and at most 5 s older; of equal ones
    /// the first in the file. Its place in the file does not matter (CHAIN-3).
    pub(crate) fn relink(&mut self, node: NodeId) -> Option<(NodeId, u64)> {
        const WINDOW_MILLIS: i64 = 5_000;
        let own = self.tree.entry(node).millis()?;
        let by_time = self.by_time.get_or_insert_with(|| ByTime::new(self.tree));
        let (via, path_of, path) = (&self.via, &self.path_of, self.path);
        let is_used = |node: NodeId| {
            !via[node.at()].is_empty() && path_of.get(node.at()).is_none_or(|other| *other == path)
        };
        let (found, millis) = by_time.newest_until(own, is_used)?;
        let gap = own
            .checked_sub(millis)
            .filter(|gap| *gap <= WINDOW_MILLIS)?;
        Some((found, gap.unsigned_abs()))
    }

    /// Adds the attachments below the leaf, which are part of the conversation (CHAIN-10).
    fn add_attachments_below(&mut self, leaf: NodeId) {
        for attachment in self.tree.attachments_below(leaf) {
            if !self.is_on_chain(attachment) {
                self.put(attachment, Via::PARENT);
            }
        }
    }

    /// Cuts the path at the last boundary of the chain (COMPACT-2). Attachments between boundary
    /// and summary remain on it (COMPACT-11). `recover` cuts only when a message follows: a
    /// compaction that was interrupted has summarized nothing.
    fn cut_at_boundary(&mut self) {
        let mut end = self.chain.len();
        if self.tree.policy() == Policy::Recover {
            let is_message = |node: &NodeId| self.tree.entry(*node).kind().is_message();
            end = self.chain.iter().rposition(is_message).unwrap_or(0);
        }
        let Some(at) = self.chain[..end]
            .iter()
            .rposition(|node| self.tree.entry(*node).is_boundary())
        else {
            return;
        };
        let boundary = self.tree.entry_no_of(self.chain[at]);
        let is_whole = self.tree.index.starts_at() == 0;
        self.decisions.push(Decision::Cut {
            boundary,
            hidden: is_whole.then(|| self.compacted_away(self.chain[at])),
        });
        for hidden in self.chain.drain(..at) {
            self.via[hidden.at()] = Via::empty();
        }
    }

    fn finish(mut self) -> ConversationPath {
        let mut decisions = std::mem::take(&mut self.decisions);
        for node in &self.chain {
            if self.tree.entry(*node).is_salvaged() {
                self.via[node.at()] |= Via::SALVAGE;
                let entry = self.tree.entry_no_of(*node);
                decisions.push(Decision::Salvage { entry });
            }
        }
        if let foreign @ [first, ..] = self.tree.recovery.foreign() {
            decisions.push(Decision::Foreign {
                entry: self.tree.entry_no_of(*first),
                count: foreign.len() as u32,
            });
        }
        let is_on_path = |node: NodeId| !self.via[node.at()].is_empty();
        let out = self.tree.tombstoned_near(is_on_path).into_iter();
        decisions.extend(out.map(|node| Decision::Tombstoned {
            entry: self.tree.entry_no_of(node),
        }));
        let is_shown = |decision: &Decision| {
            let node = self.tree.node(decision.entry());
            matches!(decision, Decision::StreamForm { .. }) || node.is_some_and(is_on_path)
        };
        let of_tree = self.tree.decisions.iter().copied();
        decisions.extend(of_tree.filter(is_shown));
        let entries = &self.chain;
        let entries = entries
            .iter()
            .map(|node| self.path_entry(*node, entries[0]));
        ConversationPath {
            entries: entries.collect(),
            decisions,
            ..ConversationPath::default()
        }
    }

    /// Returns an entry of a path that starts with `first`.
    fn path_entry(&self, node: NodeId, first: NodeId) -> PathEntry {
        let number = self.tree.entry_no_of(node);
        let keeper = self.tree.kept_entries().map(|kept| kept.boundary);
        let is_older = number < self.tree.entry_no_of(first);
        PathEntry {
            kept: is_older && keeper == Some(first),
            ..PathEntry::new(number, self.via[node.at()])
        }
    }
}

/// The entries that may replace a missing parent, by time (CHAIN-3).
struct ByTime {
    /// Oldest first; of equal times the last in the file first.
    nodes: Vec<(i64, NodeId)>,
    /// For each place: the nearest unused one at or below it, found by path halving.
    below: Vec<u32>,
    /// The places that were changed for this path.
    changed: Vec<u32>,
}

impl ByTime {
    fn new(tree: &Tree<'_>) -> Self {
        let entry_refs = tree
            .nodes()
            .filter(|node| !tree.is_removed(*node) && !tree.is_sidechain(*node));
        let mut nodes: Vec<_> = entry_refs
            .filter_map(|node| Some((tree.entry(node).millis()?, node)))
            .collect();
        nodes.sort_unstable_by_key(|(millis, node)| (*millis, std::cmp::Reverse(*node)));
        let below = (0..=nodes.len() as u32).collect();
        Self {
            nodes,
            below,
            changed: Vec::new(),
        }
    }

    /// Starts another path: no entry is used.
    fn reset(&mut self) {
        for place in self.changed.drain(..) {
            self.below[place as usize] = place;
        }
    }

    fn skip_to(&mut self, place: usize, below: u32) {
        if self.below[place] as usize == place {
            self.changed.push(place as u32);
        }
        self.below[place] = below;
    }

    /// Returns the newest entry up to `millis` that is not `used`. A used entry remains so for this
    /// path, which lets its place be skipped for good.
    fn newest_until(
        &mut self,
        millis: i64,
        used: impl Fn(NodeId) -> bool,
    ) -> Option<(NodeId, i64)> {
        // Places are counted from 1; place 0 is below all.
        let mut place = self.nodes.partition_point(|(other, _)| *other <= millis);
        loop {
            place = self.free(place);
            let (millis, node) = *self.nodes.get(place.checked_sub(1)?)?;
            if !used(node) {
                return Some((node, millis));
            }
            self.skip_to(place, place as u32 - 1);
        }
    }

    fn free(&mut self, mut place: usize) -> usize {
        while self.below[place] as usize != place {
            self.below[place] = self.below[self.below[place] as usize];
            place = self.below[place] as usize;
        }
        place
    }
}
