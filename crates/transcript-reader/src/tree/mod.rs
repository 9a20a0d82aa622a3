//! The tree of a file: its entries, each once, linked under a policy.
//!
//! This file has the tree itself. [`build`] makes it: [`link`] finds the nodes and follows the links
//! of the file, [`recover`] repairs them, [`splice`] makes the entries that a compaction preserved part of the
//! conversation after it. The modules of [`crate::path`] walk it.

pub(crate) mod answers;
pub(crate) mod boundary;
pub(crate) mod branches;
mod build;
pub(crate) mod components;
pub(crate) mod decision;
mod link;
pub(crate) mod node;
pub(crate) mod recover;
mod repeated_calls;
mod splice;
pub(crate) mod timeline;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use transcript_format::client_version::ClientVersion;
use transcript_format::kind::EntryKind;
use transcript_format::scan::{ContentKind, Flags};

use self::recover::changes::Recovery;
use crate::index::{EntryNo, EntryRef, Id, Index, MessageKey, ToolKey};
use crate::other_files::OtherFiles;
use crate::path::ConversationPath;
use decision::Decision;
pub(crate) use node::ParentSlot;
pub use node::{NodeId, Parent};

/// The rules by which entries are linked and a path is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The default: follows evidence. Salvaged entries count, missing parents are bridged where
    /// there is evidence, and the request is one that a strict provider accepts.
    #[default]
    Recover,
    /// Exactly what the client does with the file (`docs/client-behaviour.md`).
    Vendor,
}

impl Policy {
    /// Returns the stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recover => "recover",
            Self::Vendor => "vendor",
        }
    }
}

/// The entries of a file, each once, linked under a policy.
///
/// Takes about 24 bytes for each entry of the index.
#[derive(Clone, Debug)]
pub struct Tree<'i> {
    pub(crate) index: &'i Index,
    policy: Policy,
    others: Option<&'i OtherFiles>,
    included: Included,
    /// The client whose rules hold; `None` for the newest.
    client_version: Option<ClientVersion>,
    /// For each node, the number of the entry whose body counts.
    content: Vec<EntryNo>,
    pub(crate) parents: Vec<ParentSlot>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    /// Nodes that a splice or a tombstone removed.
    pub(crate) removed: Vec<bool>,
    /// For each node whose parent a splice replaced, the previous parent, else
    /// [`ParentSlot::NOT_SPLICED`]; empty without a splice, which may replace those of most nodes.
    pub(crate) spliced: Vec<ParentSlot>,
    kept: Option<KeptEntries>,
    /// The last boundary, if the client removes everything before it (COMPACT-12). `recover` keeps
    /// these entries, but no pin leads back to them.
    pub(crate) cleared_by: Option<NodeId>,
    /// A compaction before the entries keeps some of its own.
    is_after_kept: bool,
    /// For each entry of the index, its node; for a progress entry, the node above it (CHAIN-2).
    node_of: Vec<ParentSlot>,
    /// For each repeated uuid that a link names: the line it refers to, as found by the first
    /// look-up.
    named: HashMap<Id, Option<EntryNo>>,
    /// Whether all messages are sidechain entries: the file of a subagent is its own main chain.
    pub(crate) is_all_sidechain: bool,
    /// Whether the entries are linked in file order, as the file is in the stream form; never under
    /// `vendor`.
    is_stream_form: bool,
    /// Decisions about the tree as a whole.
    pub(crate) decisions: Vec<Decision>,
    /// The changes that policy `recover` made; empty under `vendor`.
    pub(crate) recovery: Recovery,
    /// Empty under `vendor`.
    other_answers: OtherAnswers,
    /// Found when it is first needed.
    repeated_calls: OnceLock<RepeatedCalls>,
    /// Whether anything was repaired under `recover`, so that the path of the client may show more.
    pub(crate) was_repaired: bool,
    /// The path of the client, if that is the case; found when it is first needed.
    pub(crate) client: OnceLock<Option<ConversationPath>>,
}

/// The keys of the answers whose id an earlier one has as well.
type OtherAnswers = hashbrown::HashMap<NodeId, MessageKey>;

/// The lines that make a call with an id that another line has as well, in file order.
type RepeatedCalls = hashbrown::HashMap<ToolKey, Vec<NodeId>>;

/// The entries of an index that a tree has.
#[derive(Clone, Debug)]
enum Included {
    All,
    /// The entries before one.
    Before(EntryNo),
    AllBut(Arc<HashSet<EntryNo>>),
}

impl Included {
    fn contains(&self, entry_no: EntryNo) -> bool {
        match self {
            Self::All => true,
            Self::Before(end) => entry_no < *end,
            Self::AllBut(entries) => !entries.contains(&entry_no),
        }
    }
}

/// The entries that a compaction kept in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptEntries {
    /// The boundary that names them.
    pub boundary: NodeId,
    /// The entry that they follow; without it they begin the history.
    pub anchor: Option<NodeId>,
    /// The entries, oldest first.
    pub entries: Vec<NodeId>,
}

const NONE: u32 = u32::MAX;

impl<'i> Tree<'i> {
    /// Decides whether the file is that of a subagent. Salvaged entries do not count, as damage may
    /// have destroyed their `isSidechain`.
    pub(crate) fn find_sidechains(&mut self) {
        self.is_all_sidechain = self.nodes().all(|node| {
            let entry = self.entry(node);
            self.is_side_entry(&entry)
                || !entry.kind().is_message()
                || entry.is_salvaged()
                || self.is_foreign(node)
        });
    }

    /// Applies the rules of the client of this version, where versions differ; those of the newest
    /// with `None`. By default the last line that names a version decides.
    #[must_use]
    pub fn for_client(mut self, version: Option<ClientVersion>) -> Self {
        self.client_version = version;
        self
    }

    /// Says whether the last compaction, which is not in the index, keeps entries (LEAF-18).
    pub(crate) fn after_kept_entries(mut self, is_after_kept: bool) -> Self {
        self.is_after_kept = is_after_kept;
        self
    }

    /// Returns whether the last compaction keeps entries.
    pub(crate) fn follows_kept_entries(&self) -> bool {
        self.kept.is_some() || self.is_after_kept
    }

    /// Returns whether the client that resumes is older than `version`.
    #[must_use]
    pub fn is_client_before(&self, version: ClientVersion) -> bool {
        self.client_version.is_some_and(|client| client < version)
    }

    /// Returns whose rules apply.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Returns the index that was linked.
    #[must_use]
    pub fn index(&self) -> &'i Index {
        self.index
    }

    /// Returns the nodes in the order of the first place of their uuid in the file.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> + 'static {
        (0..self.content.len() as u32).map(NodeId)
    }

    /// Returns the entry whose body counts for `node`.
    #[must_use]
    pub fn entry(&self, node: NodeId) -> EntryRef<'i> {
        self.index.entry(self.content[node.at()])
    }

    /// Returns the node of an entry; `None` when it is not part of the tree, or a splice or a
    /// tombstone removed it.
    #[must_use]
    pub fn node(&self, entry_no: EntryNo) -> Option<NodeId> {
        match self.node_of[entry_no.get()].parent_of() {
            Parent::Node(node)
                if self.index.entry(entry_no).kind() != EntryKind::Progress
                    && !self.removed[node.at()] =>
            {
                Some(node)
            }
            _ => None,
        }
    }

    /// Returns the node with this uuid.
    #[must_use]
    pub fn node_with_uuid(&self, id: Id) -> Option<NodeId> {
        self.index
            .with_uuid(id)
            .find_map(|entry_ref| self.node(entry_ref))
    }

    /// Returns the link above `node` as it is in the file, with progress entries passed over and
    /// preserved entries spliced.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Parent {
        self.parents[node.at()].parent_of()
    }

    /// Returns the parent of `node`, if there is one.
    #[must_use]
    pub fn parent_node(&self, node: NodeId) -> Option<NodeId> {
        self.parent(node).node()
    }

    /// Returns the children of `node`, in file order.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let step = |child: u32| (child != NONE).then_some(NodeId(child));
        let first = step(self.first_child[node.at()]);
        std::iter::successors(first, move |child| step(self.next_sibling[child.at()]))
    }

    /// Returns whether a splice or a tombstone removed the node.
    #[must_use]
    pub fn is_removed(&self, node: NodeId) -> bool {
        self.removed[node.at()]
    }

    /// Returns whether a splice set the parent of `node`.
    pub(crate) fn is_spliced(&self, node: NodeId) -> bool {
        self.slot_before_splice(node).is_some()
    }

    /// Returns the parent of `node` that a splice replaced.
    pub(crate) fn slot_before_splice(&self, node: NodeId) -> Option<ParentSlot> {
        let slot = self.spliced.get(node.at()).copied();
        slot.filter(|slot| *slot != ParentSlot::NOT_SPLICED)
    }

    /// Returns the link above `node` before any splice, bridges included.
    #[must_use]
    pub fn parent_before_splice(&self, node: NodeId) -> Parent {
        let parent = self.slot_before_splice(node);
        parent.unwrap_or(self.parents[node.at()]).parent_of()
    }

    /// Returns whether the node belongs to a subagent within a file of a main conversation.
    #[must_use]
    pub fn is_sidechain(&self, node: NodeId) -> bool {
        !self.is_all_sidechain && self.is_side_entry(&self.entry(node))
    }

    /// Returns whether all messages are sidechain entries: the file of a subagent is its own main
    /// conversation.
    #[must_use]
    pub fn is_all_sidechain(&self) -> bool {
        self.is_all_sidechain
    }

    /// Returns whether an entry says that it belongs to a subagent. A client does not know how a
    /// line of the stream form says so.
    pub(crate) fn is_side_entry(&self, entry: &EntryRef<'_>) -> bool {
        let flags = entry.flags();
        flags.contains(Flags::SIDECHAIN)
            && (self.policy == Policy::Recover || !flags.contains(Flags::SIDECHAIN_OF_STREAM))
    }

    /// Returns the entries that a compaction kept in the conversation, as the policy found them;
    /// `None` when there are none.
    #[must_use]
    pub fn kept_entries(&self) -> Option<&KeptEntries> {
        self.kept.as_ref()
    }

    /// Returns the last boundary, if the client removes everything before it although it keeps no
    /// entries (COMPACT-12).
    #[must_use]
    pub fn clearing_boundary(&self) -> Option<NodeId> {
        self.cleared_by
    }

    /// Returns the number of the entry whose body counts for `node`.
    #[must_use]
    pub fn entry_no_of(&self, node: NodeId) -> EntryNo {
        self.content[node.at()]
    }

    /// Returns the node of an entry, also of one that a splice or a tombstone removed; for a progress
    /// entry the node above it.
    #[must_use]
    pub fn entry_node(&self, entry_no: EntryNo) -> Option<NodeId> {
        self.node_of[entry_no.get()].parent_of().node()
    }

    /// Returns whether the entries are linked in file order, as the file is in the stream form.
    #[must_use]
    pub fn is_stream_form(&self) -> bool {
        self.is_stream_form
    }

    /// Returns whether the entry belongs to another session and is not linked to this one.
    #[must_use]
    pub fn is_foreign(&self, node: NodeId) -> bool {
        self.recovery.foreign().binary_search(&node).is_ok()
    }

    /// Returns the lines of an entry whose uuid is in the file more than once, in file order; empty
    /// under `vendor`, and when there is only one.
    #[must_use]
    pub fn copies(&self, node: NodeId) -> &[EntryNo] {
        self.recovery.copies(node)
    }

    /// Returns whether the entry is tombstoned, or removed with one that is.
    #[must_use]
    pub fn is_tombstoned(&self, node: NodeId) -> bool {
        self.recovery.tombstones.contains(node)
    }

    /// The line whose parent counts. Under `vendor` it is the one whose body counts (FILE-7);
    /// `recover` prefers the first, as a later copy may come from a client that replayed old
    /// messages.
    pub(crate) fn lineage(&self, node: NodeId) -> EntryRef<'i> {
        match self.recovery.copies(node) {
            [first, ..] => self.index.entry(*first),
            [] => self.entry(node),
        }
    }

    /// `node` and its ancestors, nearest first. Within a cycle the walk ends after as many steps as
    /// there are nodes, by when it has visited each member at least once.
    pub(crate) fn ancestors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(node), |node| self.parent_node(*node)).take(self.content.len())
    }

    pub(crate) fn build_children(&mut self) {
        self.first_child = vec![NONE; self.content.len()];
        self.next_sibling = vec![NONE; self.content.len()];
        for child in self.nodes().rev() {
            if self.removed[child.at()] {
                continue;
            }
            if let Some(parent) = self.parent_node(child) {
                let first = std::mem::replace(&mut self.first_child[parent.at()], child.0);
                self.next_sibling[child.at()] = first;
            }
        }
    }
}

/// A message entry without a message, or with `null` as its content, is dropped, and links to it
/// dangle (FILE-6).
pub(crate) fn has_usable_body(entry_ref: &EntryRef<'_>) -> bool {
    !entry_ref.kind().is_message()
        || !matches!(
            entry_ref.content(),
            ContentKind::NoMessage | ContentKind::Null
        )
}
