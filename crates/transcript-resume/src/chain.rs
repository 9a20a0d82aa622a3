//! Walks from the leaf to the start of the conversation.

use bitflags::bitflags;
use transcript_format::kind::EntryKind;

use crate::decision::{Decision, Evidence, LeafReason};
use crate::leaf::MessagesAbove;
use crate::links::{NodeId, Parent, Policy, Tree};

/// The entries of a conversation, oldest first, and the decisions that led to them.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The entries: messages, attachments and system lines, before anything is left out for a
    /// request or a screen.
    pub entries: Vec<PathEntry>,
    /// The candidate that ends the conversation.
    pub leaf: Option<usize>,
    /// Every choice that was made, in the order in which it was made.
    pub decisions: Vec<Decision>,
    /// Why the policy's client would not go on from this path. The entries are there all the same.
    pub refusal: Option<Refusal>,
}

impl Path {
    /// Ends the path after the entry that is `candidate`. Returns false, and changes nothing, when
    /// that is not on it.
    pub fn cut_after(&mut self, candidate: usize) -> bool {
        let Some(at) = self
            .entries
            .iter()
            .position(|entry| entry.candidate() == candidate)
        else {
            return false;
        };
        self.entries.truncate(at + 1);
        self.leaf = Some(candidate);
        true
    }
}

/// One entry of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEntry {
    candidate: u32,
    /// How it came to the path.
    pub via: Via,
}

impl PathEntry {
    pub(crate) fn new(candidate: usize, via: Via) -> Self {
        let candidate = candidate as u32;
        Self { candidate, via }
    }

    /// Returns the number of its candidate in the index.
    #[must_use]
    pub fn candidate(&self) -> usize {
        self.candidate as usize
    }
}

bitflags! {
    /// How an entry came to the path.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Via: u8 {
        /// By a link that stands in the file, or as the leaf.
        const PARENT = 1;
        /// As a line of an API message on the path, or the result of one of its calls.
        const SIBLING = 1 << 1;
        /// As a preserved entry.
        const SPLICE = 1 << 2;
        /// In place of a lost parent.
        const BRIDGE = 1 << 3;
        /// From a damaged line.
        const SALVAGE = 1 << 4;
    }
}

impl Via {
    /// Returns the names, as `docs/cli.md` has them.
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

/// Why a client refuses to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The file holds no message of a main conversation.
    NoConversation,
    /// The leaf has no timestamp that can be read (case 40-44).
    LeafWithoutTime,
}

impl Refusal {
    /// Returns the reason in a few words.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoConversation => "the file holds no conversation",
            Self::LeafWithoutTime => "the leaf has no valid timestamp",
        }
    }
}

impl Tree<'_> {
    /// Returns the path to the leaf that the policy chooses.
    #[must_use]
    pub fn path(&self) -> Path {
        let Some((leaf, reason)) = self.leaf() else {
            return Path {
                refusal: Some(Refusal::NoConversation),
                ..Path::default()
            };
        };
        self.no_less_than_the_client(self.path_with_pin(leaf, reason))
    }

    fn path_with_pin(&self, leaf: NodeId, reason: LeafReason) -> Path {
        let mut path = self.path_to(leaf, reason);
        if matches!(reason, LeafReason::Pinned | LeafReason::AfterPin)
            && let Some((newer, _)) = self.last_tip(&mut MessagesAbove::new(self))
            && newer > leaf
            && !path
                .entries
                .iter()
                .any(|entry| entry.candidate == self.candidate_of(newer))
        {
            let entry = self.candidate_of(leaf);
            let newer = self.candidate_of(newer);
            path.decisions
                .insert(1, Decision::PinHidesNewer { entry, newer });
        }
        path
    }

    /// Returns the path to `leaf`, whatever the policy would choose.
    #[must_use]
    pub fn path_to_leaf(&self, leaf: NodeId) -> Path {
        self.path_to(leaf, LeafReason::Asked)
    }

    fn path_to(&self, leaf: NodeId, reason: LeafReason) -> Path {
        let entry = self.candidate_of(leaf);
        let mut walk = Walk::new(self);
        walk.decisions.push(Decision::Leaf { entry, reason });
        walk.up_from(leaf);
        walk.add_attachments_under(leaf);
        walk.cut_at_boundary();
        walk.add_siblings();
        let is_refused = self.policy() == Policy::Vendor && self.entry(leaf).millis().is_none();
        Path {
            leaf: Some(entry as usize),
            refusal: is_refused.then_some(Refusal::LeafWithoutTime),
            ..walk.finish()
        }
    }

    /// Returns the attachments under `node` and those under them, in file order (cases 91-e5,
    /// 91-90).
    pub(crate) fn attachments_under(&self, node: NodeId) -> Vec<NodeId> {
        let mut found = Vec::new();
        let mut at = node;
        let mut looked_at = 0;
        loop {
            let attachments = self
                .children(at)
                .filter(|child| self.entry(*child).kind() == EntryKind::Attachment);
            // Each entry has one parent, so only a cycle through `node` could bring one twice.
            found.extend(attachments.filter(|child| *child != node));
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

/// A path under construction: nodes in order, and which of them are on it.
pub(crate) struct Walk<'t, 'i> {
    pub(crate) tree: &'t Tree<'i>,
    pub(crate) chain: Vec<NodeId>,
    /// How each node came to the chain; empty for nodes that are not on it.
    pub(crate) via: Vec<Via>,
    pub(crate) decisions: Vec<Decision>,
    by_time: Option<ByTime>,
}

impl<'t, 'i> Walk<'t, 'i> {
    fn new(tree: &'t Tree<'i>) -> Self {
        let via = vec![Via::empty(); tree.nodes().count()];
        Self {
            tree,
            chain: Vec::new(),
            via,
            decisions: Vec::new(),
            by_time: None,
        }
    }

    pub(crate) fn is_on_chain(&self, node: NodeId) -> bool {
        !self.via[node.at()].is_empty()
    }

    /// Follows parents from `leaf` on. Under `vendor` a lost parent, and one that closes a cycle, is
    /// replaced by the entry before in time (`facts/rig.md` 5); `recover` has found what can stand
    /// in its place before.
    fn up_from(&mut self, leaf: NodeId) {
        let (mut node, mut via) = (leaf, Via::PARENT);
        loop {
            self.chain.push(node);
            self.via[node.at()] = via;
            let entry = self.tree.candidate_of(node);
            let parent = match self.tree.parent(node) {
                Parent::Root => break,
                Parent::Node(parent) if !self.is_on_chain(parent) => Some(parent),
                Parent::Node(_) => {
                    self.decisions.push(Decision::Cycle { entry });
                    None
                }
                Parent::Lost => None,
            };
            if let Some(parent) = parent {
                via = self.note_how_linked(node, parent);
                node = parent;
                continue;
            }
            if self.tree.policy() == Policy::Recover {
                self.decisions.extend(self.tree.mend(node));
                break;
            }
            let Some((parent, gap_millis)) = self.relink(node) else {
                self.decisions.push(Decision::Truncated { entry });
                break;
            };
            let parent_entry = self.tree.candidate_of(parent);
            self.decisions.push(Decision::Relink {
                entry,
                parent: parent_entry,
                gap_millis,
            });
            (node, via) = (parent, Via::BRIDGE);
        }
        self.chain.reverse();
    }

    /// Returns how `parent` came to the chain as that of `child`. A link that is not the one in the
    /// file bridges a gap, goes past progress lines or comes from a splice.
    fn note_how_linked(&mut self, child: NodeId, parent: NodeId) -> Via {
        let above = self.tree.entry(parent);
        let (entry, parent) = (self.tree.candidate_of(child), above.number() as u32);
        if self.tree.is_spliced(child) {
            if self.tree.recovery.bridge(child) == Some(Evidence::Kept) {
                self.decisions.extend(self.tree.mend(child));
            }
            if self.tree.lineage(child).parent() != above.uuid() {
                self.via[child.at()] |= Via::SPLICE;
            }
        } else if let Some(bridge) = self.tree.mend(child) {
            self.decisions.push(bridge);
            return Via::BRIDGE;
        } else if self.tree.lineage(child).parent() != above.uuid()
            && !self.tree.recovery.tombstones.is_passed(child)
        {
            self.decisions.push(Decision::Progress { entry, parent });
        }
        Via::PARENT
    }

    /// The newest entry that is not newer than `node` and at most 5 s older; of equal ones the
    /// first in the file. Where it stands in the file does not matter (cases 40-7x, 40-34, 40-59).
    fn relink(&mut self, node: NodeId) -> Option<(NodeId, u64)> {
        const WINDOW_MILLIS: i64 = 5_000;
        let own = self.tree.entry(node).millis()?;
        let by_time = self.by_time.get_or_insert_with(|| ByTime::new(self.tree));
        let (found, millis) = by_time.newest_until(own, |node| !self.via[node.at()].is_empty())?;
        let gap = own
            .checked_sub(millis)
            .filter(|gap| *gap <= WINDOW_MILLIS)?;
        Some((found, gap.unsigned_abs()))
    }

    fn add_attachments_under(&mut self, leaf: NodeId) {
        for attachment in self.tree.attachments_under(leaf) {
            if !self.is_on_chain(attachment) {
                self.chain.push(attachment);
                self.via[attachment.at()] = Via::PARENT;
            }
        }
    }

    /// The conversation starts at the last boundary of the chain. For `recover` only when a message
    /// follows: a compaction that was cut short has summed up nothing.
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
        let boundary = self.tree.candidate_of(self.chain[at]);
        self.decisions.push(Decision::Cut {
            boundary,
            hidden: self.compacted_away(self.chain[at]),
        });
        for hidden in self.chain.drain(..at) {
            self.via[hidden.at()] = Via::empty();
        }
    }

    fn finish(mut self) -> Path {
        let mut decisions = self.decisions;
        for node in &self.chain {
            if self.tree.entry(*node).is_salvaged() {
                self.via[node.at()] |= Via::SALVAGE;
                let entry = self.tree.candidate_of(*node);
                decisions.push(Decision::Salvage { entry });
            }
        }
        if let foreign @ [first, ..] = self.tree.recovery.foreign() {
            decisions.push(Decision::Foreign {
                entry: self.tree.candidate_of(*first),
                count: foreign.len() as u32,
            });
        }
        let is_on_path = |node: NodeId| !self.via[node.at()].is_empty();
        let out = self.tree.tombstoned_beside(is_on_path).into_iter();
        decisions.extend(out.map(|node| Decision::Tombstoned {
            entry: self.tree.candidate_of(node),
        }));
        let is_shown = |candidate: usize| self.tree.node(candidate).is_some_and(is_on_path);
        let of_tree = self.tree.decisions.iter().copied();
        decisions.extend(of_tree.filter(|decision| is_shown(decision.entry() as usize)));
        let entries = self.chain.iter().map(|node| PathEntry {
            candidate: self.tree.candidate_of(*node),
            via: self.via[node.at()],
        });
        Path {
            entries: entries.collect(),
            decisions,
            ..Path::default()
        }
    }
}

/// The entries that may take the place of a lost parent, by time.
struct ByTime {
    /// Oldest first; of equal times the last in the file first.
    nodes: Vec<(i64, NodeId)>,
    /// For each place: the next one at or below it that was not used up, found by path halving.
    below: Vec<u32>,
}

impl ByTime {
    fn new(tree: &Tree<'_>) -> Self {
        let candidates = tree
            .nodes()
            .filter(|node| !tree.is_gone(*node) && !tree.is_sidechain(*node));
        let mut nodes: Vec<_> = candidates
            .filter_map(|node| Some((tree.entry(node).millis()?, node)))
            .collect();
        nodes.sort_unstable_by_key(|(millis, node)| (*millis, std::cmp::Reverse(*node)));
        let below = (0..=nodes.len() as u32).collect();
        Self { nodes, below }
    }

    /// The newest entry up to `millis` that is not `used`. An entry that was used once stays so.
    fn newest_until(
        &mut self,
        millis: i64,
        used: impl Fn(NodeId) -> bool,
    ) -> Option<(NodeId, i64)> {
        // Places are counted from 1; place 0 stands below all.
        let mut place = self.nodes.partition_point(|(other, _)| *other <= millis);
        loop {
            place = self.free(place);
            let (millis, node) = *self.nodes.get(place.checked_sub(1)?)?;
            if !used(node) {
                return Some((node, millis));
            }
            self.below[place] = place as u32 - 1;
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
