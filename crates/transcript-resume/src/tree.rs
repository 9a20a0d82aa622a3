//! Links the entries of an index into a tree, under a policy.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use transcript_format::client_version::ClientVersion;
use transcript_format::kind::EntryKind;
use transcript_format::scan::{ContentKind, Flags};
use transcript_reader::{
    Boundary, EntryNo, EntryRef, Id, Index, OtherFiles, Preserved, is_stream_form,
};

use crate::answers::OtherAnswers;
use crate::decision::{Decision, SpliceForm};
use crate::path::ConversationPath;
use crate::recover::Recovery;
use crate::repeated_calls::RepeatedCalls;

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

/// The entries of a file, each once, linked under a policy.
///
/// Takes about 24 bytes for each entry of the index.
#[derive(Clone, Debug)]
pub struct Tree<'i> {
    pub(crate) index: &'i Index,
    policy: Policy,
    pub(crate) others: Option<&'i OtherFiles>,
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
    /// What policy `recover` changed; empty under `vendor`.
    pub(crate) recovery: Recovery,
    /// Empty under `vendor`.
    pub(crate) other_answers: OtherAnswers,
    /// Found when it is first needed.
    pub(crate) repeated_calls: OnceLock<RepeatedCalls>,
    /// The path of the client, when anything was repaired under `recover`.
    pub(crate) client: Option<ConversationPath>,
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

/// A [`Parent`] in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParentSlot(pub(crate) u32);

impl ParentSlot {
    pub(crate) const ROOT: Self = Self(u32::MAX);
    pub(crate) const LOST: Self = Self(u32::MAX - 1);
    /// Not resolved yet.
    const OPEN: Self = Self(u32::MAX - 2);
    /// Being resolved: reaching it again is a cycle.
    const BUSY: Self = Self(u32::MAX - 3);
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

const NONE: u32 = u32::MAX;

impl<'i> Tree<'i> {
    /// Links the entries of `index`.
    #[must_use]
    pub fn new(index: &'i Index, policy: Policy) -> Self {
        Self::with(index, policy, None, &|_| true)
    }

    /// Links the entries of `index` under [`Policy::Recover`], using what other files contain about
    /// [`Self::missing_parents`].
    #[must_use]
    pub fn with_others(index: &'i Index, others: &'i OtherFiles) -> Self {
        Self::with(index, Policy::Recover, Some(others), &|_| true)
    }

    /// Returns the tree as if `entries` were not in the file. For entries whose body turns out to
    /// be unusable when it is read: another line with the same uuid counts instead, and a child of
    /// a removed entry is linked as if that entry had never been written.
    #[must_use]
    pub fn without(&self, entries: &HashSet<EntryNo>) -> Self {
        let is_there = |entry_ref: &EntryRef<'_>| !entries.contains(&entry_ref.number());
        let tree = Self::with(self.index, self.policy, self.others, &is_there);
        tree.for_client(self.client_version)
    }

    /// Returns the tree as it was when the file ended before entry `end`.
    #[must_use]
    pub fn before(index: &'i Index, policy: Policy, end: EntryNo) -> Self {
        Self::with(index, policy, None, &|entry_ref| entry_ref.number() < end)
    }

    /// Links the entries that `is_there` accepts.
    pub(crate) fn with(
        index: &'i Index,
        policy: Policy,
        others: Option<&'i OtherFiles>,
        is_there: &dyn Fn(&EntryRef<'_>) -> bool,
    ) -> Self {
        let span =
            tracing::debug_span!("link_tree", policy = policy.name(), entries = index.len(),);
        let _entered = span.enter();
        let mut tree = Self {
            index,
            policy,
            others,
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
            is_stream_form: policy == Policy::Recover
                && is_stream_form(index.entries().filter(is_there)),
            decisions: Vec::new(),
            recovery: Recovery::default(),
            other_answers: OtherAnswers::new(),
            repeated_calls: OnceLock::new(),
            client: None,
        };
        tree.collect_nodes(is_there);
        match tree.is_stream_form {
            true => tree.link_in_order(),
            false => tree.link(),
        }
        tree.removed = vec![false; tree.content.len()];
        tree.find_sidechains();
        if policy == Policy::Recover {
            tree.other_answers = tree.find_other_answers();
            tree.recover(others);
        }
        tree.splice();
        tree.remove_tombstoned();
        tree.build_children();
        if policy == Policy::Recover && !tree.is_stream_form {
            tree.find_floor(is_there);
        }
        tree
    }

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
    pub(crate) fn is_client_before(&self, version: ClientVersion) -> bool {
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

    pub(crate) fn parent_node(&self, node: NodeId) -> Option<NodeId> {
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

    pub(crate) fn entry_no_of(&self, node: NodeId) -> EntryNo {
        self.content[node.at()]
    }

    /// Gives each uuid one node: at the place of its first line, with the body of its last
    /// (FILE-7). Lines without a uuid share one node for each way to have none (FILE-8).
    ///
    /// Policy `recover` keeps lines without a uuid apart, as each may be the only copy of a
    /// message, and prefers a whole line to a salvaged one. An entry written again after its
    /// tombstone counts from there on.
    fn collect_nodes(&mut self, is_there: impl Fn(&EntryRef<'_>) -> bool) {
        let recovers = self.policy == Policy::Recover;
        let mut unnamed = [None; 3];
        // For the client a damaged line does not exist (FILE-1), and neither does anything after
        // the first object of a line (FILE-2): the index has both as salvaged entries.
        let counts = |entry_ref: &EntryRef<'_>| {
            is_entry(entry_ref.kind())
                && has_usable_body(entry_ref)
                && (recovers || !entry_ref.is_salvaged())
                && is_there(entry_ref)
        };
        if recovers {
            self.find_tombstones(counts, &is_there);
        }
        for entry_ref in self.index.entries() {
            if !counts(&entry_ref) || self.recovery.tombstones.is_superseded(&entry_ref) {
                continue;
            }
            let number = entry_ref.number();
            let known = match entry_ref.uuid() {
                Some(id) if self.index.has_repeated_uuids() => self
                    .index
                    .with_uuid(id)
                    .take_while(|earlier| *earlier < entry_ref.number())
                    .find_map(|earlier| self.entry_node(earlier)),
                Some(_) => None,
                None if recovers => None,
                None => unnamed_key(entry_ref.flags()).and_then(|key| unnamed[key]),
            };
            let node = known.unwrap_or(NodeId(self.content.len() as u32));
            if known.is_some() {
                let (mut entry, mut replaced) = (number, self.content[node.at()]);
                if recovers {
                    self.recovery.add_copy(node, replaced, number);
                    let before = self.index.entry(replaced);
                    if entry_ref.is_salvaged() && !before.is_salvaged() {
                        std::mem::swap(&mut entry, &mut replaced);
                    }
                }
                self.content[node.at()] = entry;
                self.decisions.push(Decision::Repeated { entry, replaced });
            } else {
                self.content.push(number);
            }
            if entry_ref.uuid().is_none()
                && let Some(key) = unnamed_key(entry_ref.flags())
            {
                unnamed[key] = Some(node);
            }
            self.node_of[entry_ref.number().get()] = ParentSlot(node.0);
        }
        // A line with an unusable body is not part of the tree, but another line may give its uuid
        // a node.
        let mut known: HashMap<Id, Option<NodeId>> = HashMap::new();
        for entry_ref in self
            .index
            .entries()
            .filter(|entry_ref| is_entry(entry_ref.kind()))
        {
            if self.node_of[entry_ref.number().get()] == ParentSlot::OPEN {
                let find = |id| {
                    let mut lines = self.index.with_uuid(id);
                    lines.find_map(|other| self.entry_node(other))
                };
                let node = entry_ref
                    .uuid()
                    .and_then(|id| *known.entry(id).or_insert_with(|| find(id)));
                self.node_of[entry_ref.number().get()] =
                    node.map_or(ParentSlot::LOST, |node| ParentSlot(node.0));
            }
        }
    }

    /// Returns the node of an entry, also of one that a splice or a tombstone removed; for a progress
    /// entry the node above it.
    #[must_use]
    pub fn entry_node(&self, entry_no: EntryNo) -> Option<NodeId> {
        self.node_of[entry_no.get()].parent_of().node()
    }

    /// Resolves the parent of every node. Most name the line before, which `find` tries first.
    fn link(&mut self) {
        self.parents = Vec::with_capacity(self.content.len());
        let mut walk = Vec::new();
        for node in self.nodes() {
            let parent = self.resolve(&self.lineage(node), &mut walk);
            self.parents.push(parent);
        }
    }

    /// Links the entries of a file in the stream form: each follows the one before it of the same
    /// session and the same subagent. An entry that a later session repeats is one of that session, too.
    /// An entry that was appended to the output names its parent.
    fn link_in_order(&mut self) {
        let mut last: HashMap<(Option<&str>, Option<&str>), NodeId> = HashMap::new();
        let mut sessions = StreamSessions::of(self.index);
        let mut parents = Vec::with_capacity(self.content.len());
        let mut walk = Vec::new();
        for node in self.nodes() {
            let entry = self.lineage(node);
            let is_side = entry.flags().contains(Flags::SIDECHAIN);
            let agent = entry.agent().filter(|_| is_side);
            let session = sessions.session_of(&entry);
            let before = last.insert((session, agent), node);
            let repeated = self.entry(node).session();
            if repeated.is_some() && repeated != session {
                last.insert((repeated, agent), node);
            }
            parents.push(match entry.parent() {
                Some(_) => self.resolve(&entry, &mut walk),
                None => before.map_or(ParentSlot::ROOT, |before| ParentSlot(before.0)),
            });
        }
        self.parents = parents;
        if let Some(first) = self.content.first() {
            self.decisions.push(Decision::StreamForm {
                entry: *first,
                entries: self.content.len() as u32,
            });
        }
    }

    /// Returns whether the entries are linked in file order, as the file is in the stream form.
    #[must_use]
    pub fn is_stream_form(&self) -> bool {
        self.is_stream_form
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

    /// Finds the parent of `from`, past progress entries (CHAIN-2). Without a key, with `null` or
    /// with an empty id it is a root (FILE-9).
    pub(crate) fn resolve(&mut self, from: &EntryRef<'i>, walk: &mut Vec<EntryNo>) -> ParentSlot {
        let mut at = *from;
        let found = loop {
            let Some(parent) = at.parent() else {
                break match self.is_root(&at) {
                    true => ParentSlot::ROOT,
                    false => ParentSlot::LOST,
                };
            };
            let Some(target) = self.find(&at, parent) else {
                break ParentSlot::LOST;
            };
            if target.kind() != EntryKind::Progress {
                break self.node_of[target.number().get()];
            }
            match self.node_of[target.number().get()] {
                ParentSlot::OPEN => {
                    self.node_of[target.number().get()] = ParentSlot::BUSY;
                    walk.push(target.number());
                    at = target;
                }
                ParentSlot::BUSY => break ParentSlot::LOST,
                resolved => break resolved,
            }
        };
        for progress in walk.drain(..) {
            self.node_of[progress.get()] = found;
        }
        found
    }

    /// Returns whether a line without a parent id is a root. The client takes every such line for
    /// one (FILE-9). `recover` requires an explicit `null`: a line without the key, or with an empty
    /// id, has lost its parent, except a boundary, which starts a history in any case (COMPACT-1).
    pub(crate) fn is_root(&self, line: &EntryRef<'_>) -> bool {
        let lost_key = line.flags().contains(Flags::PARENT_ABSENT) && !line.is_boundary();
        let is_lost = self.policy == Policy::Recover && lost_key;
        !is_lost && !line.flags().contains(Flags::PARENT_ODD)
    }

    /// Finds the line that `id` names as the parent of `child`. A progress entry is preferred to
    /// another entry, as the client passes over those first.
    fn find(&mut self, child: &EntryRef<'i>, id: Id) -> Option<EntryRef<'i>> {
        let before = child
            .number()
            .get()
            .checked_sub(1)
            .map(|number| self.index.entry(EntryNo::new(number)));
        let (index, policy) = (self.index, self.policy);
        let counts = |entry_ref: &EntryRef<'_>| {
            is_linked(entry_ref.kind()) && (policy == Policy::Recover || !entry_ref.is_salvaged())
        };
        if let Some(before) = before
            && before.uuid() == Some(id)
            && !index.has_repeated_uuids()
        {
            return counts(&before).then_some(before);
        }
        let find = || {
            let lines = index.with_uuid(id).map(|line| index.entry(line));
            // Of several lines the last one counts (FILE-7). Of progress entries `recover` takes
            // the first: the others were written again.
            let rank = |line: &EntryRef<'_>| {
                let is_progress = line.kind() == EntryKind::Progress;
                let place = line.number().get() as i64;
                let is_first_wanted = is_progress && policy == Policy::Recover;
                (is_progress, if is_first_wanted { -place } else { place })
            };
            let named = lines.filter(counts).max_by_key(rank)?;
            Some(named.number())
        };
        let is_repeated = index.with_uuid(id).nth(1).is_some();
        let named = match is_repeated {
            true => *self.named.entry(id).or_insert_with(find),
            false => find(),
        };
        named.map(|named| index.entry(named))
    }

    /// Moves the preserved entries of the last boundary (COMPACT-8) after its anchor, and the other
    /// children of the anchor after the last preserved entry (COMPACT-4). Every other entry before
    /// the boundary is removed, and its children follow the last preserved entry as well
    /// (COMPACT-7).
    ///
    /// The client does not copy preserved entries: they stay where they were written, with their
    /// old parents, so that this step alone makes them part of the conversation after the
    /// compaction.
    fn splice(&mut self) {
        let Some(last) = self.boundaries_backwards().next() else {
            return;
        };
        let of_last = self.index.boundary(self.entry_no_of(last));
        if of_last.is_some_and(|boundary| self.clears_history(last, boundary)) {
            self.cleared_by = Some(last);
        }
        if self.policy == Policy::Vendor && self.cleared_by.is_some() {
            self.removed[..last.at()].fill(true);
            for child in self.nodes().skip(last.at()) {
                let parent = self.parent_node(child);
                if parent.is_some_and(|parent| self.removed[parent.at()]) {
                    self.parents[child.at()] = ParentSlot::LOST;
                }
            }
            return;
        }
        let mut has_child = None;
        let Some(node) = self
            .completed_boundaries()
            .find(|node| self.names_preserved(*node, &mut has_child))
        else {
            return;
        };
        let entry_ref = self.entry_no_of(node);
        let Some(boundary) = self.index.boundary(entry_ref) else {
            return;
        };
        let form = match boundary.preserved {
            Preserved::Nothing => return,
            Preserved::List { .. } => SpliceForm::List,
            Preserved::Segment { .. } => SpliceForm::Segment,
        };
        let mut preserved = self.preserved(boundary);
        let mut is_whole = preserved.is_some();
        let is_anchored = |preserved: &(Option<NodeId>, _)| preserved.0.is_some();
        if self.policy == Policy::Recover && !preserved.as_ref().is_some_and(is_anchored) {
            preserved = self
                .preserved_in_part(node, boundary)
                .map(|(anchor, kept)| (Some(anchor), kept));
            // While some preserved entries are missing, nothing proves that the rest may be
            // removed.
            let named = match &boundary.preserved {
                Preserved::List { uuids, .. } => uuids.len(),
                _ => 0,
            };
            is_whole = preserved
                .as_ref()
                .is_some_and(|(_, kept)| kept.len() >= named);
        }
        let Some((anchor, kept)) = preserved.filter(|(_, kept)| !kept.is_empty()) else {
            self.decisions.push(Decision::SpliceIgnored {
                boundary: entry_ref,
                form,
            });
            return;
        };
        let tail = kept[kept.len() - 1];
        if is_whole {
            self.removed[..node.at()].fill(true);
            for stays in kept.iter().copied().chain(anchor) {
                self.removed[stays.at()] = false;
            }
        }
        let removed = self
            .removed
            .iter()
            .filter(|is_removed| **is_removed)
            .count();
        self.spliced = vec![ParentSlot::NOT_SPLICED; self.parents.len()];
        for child in self.nodes() {
            if let Some(parent) = self.parent_node(child)
                && (Some(parent) == anchor || self.removed[parent.at()])
            {
                let before = std::mem::replace(&mut self.parents[child.at()], ParentSlot(tail.0));
                self.spliced[child.at()] = before;
            }
        }
        // Without an anchor the preserved entries begin the history (COMPACT-9).
        let mut parent = anchor.map_or(ParentSlot::ROOT, |anchor| ParentSlot(anchor.0));
        for entry in &kept {
            let before = std::mem::replace(&mut self.parents[entry.at()], parent);
            if !self.is_spliced(*entry) {
                self.spliced[entry.at()] = before;
            }
            parent = ParentSlot(entry.0);
        }
        let is_shown = |node: &&NodeId| !self.is_tombstoned(**node);
        self.decisions.push(Decision::Splice {
            boundary: entry_ref,
            form,
            kept: kept.iter().filter(is_shown).count() as u32,
            removed: (self.index.starts_at() == 0).then_some(removed as u32),
        });
        self.kept = Some(KeptEntries {
            boundary: node,
            anchor,
            entries: kept,
        });
    }

    /// Returns whether the last boundary, which preserves nothing, removes everything before it: with
    /// an empty list, or without a list and a segment when an earlier boundary has one, even an
    /// invalid one (COMPACT-12).
    fn clears_history(&self, last: NodeId, boundary: &Boundary) -> bool {
        match &boundary.preserved {
            Preserved::List { uuids, .. } => uuids.is_empty(),
            Preserved::Segment { .. } => false,
            Preserved::Nothing => (0..last.0).map(NodeId).any(|node| {
                let entry = self.entry(node);
                let boundary = entry
                    .is_boundary()
                    .then(|| self.index.boundary(entry.number()));
                let earlier = boundary.flatten();
                earlier.is_some_and(|earlier| !matches!(earlier.preserved, Preserved::Nothing))
            }),
        }
    }

    /// Returns whether the preserved entries of this boundary are looked for. For `vendor` that is
    /// every boundary; `recover` passes over an unfinished one and uses the one before, whose
    /// compaction was completed.
    fn names_preserved(&self, boundary: NodeId, has_child: &mut Option<Vec<bool>>) -> bool {
        if self.policy == Policy::Vendor || !self.is_unfinished(boundary) {
            return true;
        }
        // Found once: there may be many unfinished boundaries.
        let has_child = has_child.get_or_insert_with(|| {
            let mut has_child = vec![false; self.parents.len()];
            for child in self.nodes() {
                transcript_format::work::add(1);
                if let Some(parent) = self.parent_node(child).filter(|parent| *parent <= child) {
                    has_child[parent.at()] = true;
                }
            }
            has_child
        });
        has_child[boundary.at()]
    }

    fn boundaries_backwards(&self) -> impl Iterator<Item = NodeId> + '_ {
        let is_boundary =
            |node: &NodeId| self.entry(*node).is_boundary() && !self.is_tombstoned(*node);
        self.nodes().rev().filter(is_boundary)
    }

    /// Returns the boundaries that count, the last one first. For `recover` one that preserves nothing
    /// and has no message below it does not, as not even its summary was written.
    fn completed_boundaries(&self) -> impl Iterator<Item = NodeId> + '_ {
        // Found once, and only when it is not seen right away: there may be many such boundaries.
        let mut has_message_below: Option<Vec<bool>> = None;
        let is_completed = move |node: &NodeId| {
            let names = self.index.boundary(self.entry_no_of(*node));
            let preserves = |names: &Boundary| !matches!(names.preserved, Preserved::Nothing);
            if self.policy == Policy::Vendor
                || names.is_some_and(preserves)
                || has_message_below.is_none() && self.is_followed_by_summary(*node)
            {
                return true;
            }
            has_message_below.get_or_insert_with(|| self.with_message_below())[node.at()]
        };
        self.boundaries_backwards().filter(is_completed)
    }

    /// Returns whether the next message of the file is below the boundary, as a summary is.
    fn is_followed_by_summary(&self, boundary: NodeId) -> bool {
        let is_message = |node: &NodeId| self.entry(*node).kind().is_message();
        let after = self.nodes().skip(boundary.at() + 1);
        let mut messages = after.filter(|node| is_message(node) && self.is_of_main(*node));
        let Some(message) = messages.next() else {
            return false;
        };
        let above = self.ancestors(message).skip(1);
        let mut above = above.take_while(|node| *node >= boundary && !is_message(node));
        above.any(|node| node == boundary)
    }

    /// Returns for each entry whether a message of the main conversation is below it.
    fn with_message_below(&self) -> Vec<bool> {
        let mut found = vec![false; self.parents.len()];
        let is_message =
            |node: &NodeId| self.entry(*node).kind().is_message() && self.is_of_main(*node);
        for message in self.nodes().filter(is_message) {
            for above in self.ancestors(message).skip(1) {
                if std::mem::replace(&mut found[above.at()], true) {
                    break;
                }
            }
        }
        found
    }

    /// Returns whether an entry belongs to the conversation of the file, on whatever branch.
    fn is_of_main(&self, node: NodeId) -> bool {
        !self.is_removed(node) && !self.is_sidechain(node) && !self.is_foreign(node)
    }

    /// Returns whether a crash left a boundary without the summary that it names as its anchor.
    pub(crate) fn is_unfinished(&self, node: NodeId) -> bool {
        let entry = self.entry(node);
        let boundary = entry
            .is_boundary()
            .then(|| self.index.boundary(entry.number()));
        let anchor = match boundary.flatten().map(|boundary| &boundary.preserved) {
            Some(Preserved::List { anchor, uuids }) if !uuids.is_empty() => *anchor,
            _ => None,
        };
        anchor.is_some_and(|anchor| self.node_with_uuid(anchor).is_none())
    }

    /// Returns the anchor, if it exists, and the preserved entries, oldest first; `None` when any
    /// of them is missing (COMPACT-5) or nothing is preserved (COMPACT-6). A list counts before a
    /// segment (COMPACT-3): the reader chose the form when it built the index.
    pub(crate) fn preserved(&self, boundary: &Boundary) -> Option<(Option<NodeId>, Vec<NodeId>)> {
        let (anchor, kept) = match &boundary.preserved {
            Preserved::Nothing => return None,
            Preserved::List { anchor, uuids } => {
                let kept: Option<Vec<_>> =
                    uuids.iter().map(|id| self.node_with_uuid((*id)?)).collect();
                (*anchor, kept?)
            }
            Preserved::Segment { anchor } => {
                let [head, tail] = boundary.ends;
                let head = self.node_with_uuid(head?)?;
                let mut kept: Vec<_> = self.ancestors(self.node_with_uuid(tail?)?).collect();
                kept.truncate(kept.iter().position(|node| *node == head)? + 1);
                kept.reverse();
                (*anchor, kept)
            }
        };
        let anchor = anchor.and_then(|anchor| self.node_with_uuid(anchor));
        (!kept.is_empty()).then_some((anchor, kept))
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

/// The sessions of a file in the stream form.
struct StreamSessions<'i> {
    /// Those that a line of the client names: the input of the SDK may name another one, or none, and
    /// belongs to the session around it.
    of_client: HashSet<&'i str>,
    /// That of the entry before.
    last: Option<&'i str>,
}

impl<'i> StreamSessions<'i> {
    fn of(index: &'i Index) -> Self {
        let of_client = |entry: &EntryRef<'i>| entry.kind() != EntryKind::User;
        let named = index.entries().filter(of_client);
        let mut sessions = Self {
            of_client: named.filter_map(|entry| entry.session()).collect(),
            last: None,
        };
        let mut entries = index.entries();
        sessions.last = entries.find_map(|entry| sessions.named_by(&entry));
        sessions
    }

    fn named_by(&self, entry: &EntryRef<'i>) -> Option<&'i str> {
        let session = entry.session();
        session.filter(|session| self.of_client.contains(session))
    }

    /// Returns the session of the next entry.
    fn session_of(&mut self, entry: &EntryRef<'i>) -> Option<&'i str> {
        self.last = self.named_by(entry).or(self.last);
        self.last
    }
}

/// The kinds of entries in the tree. Progress entries are passed over (CHAIN-2); links to any other
/// kind dangle (CHAIN-4).
fn is_entry(kind: EntryKind) -> bool {
    kind.is_chain() && kind != EntryKind::Progress
}

fn is_linked(kind: EntryKind) -> bool {
    kind.is_chain()
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

/// Which of the three ways to have no uuid (FILE-8); `None` for a value of another type, each of
/// which is a node of its own.
fn unnamed_key(flags: Flags) -> Option<usize> {
    if flags.contains(Flags::UUID_ODD) {
        None
    } else if flags.contains(Flags::UUID_NULL) {
        Some(1)
    } else if flags.contains(Flags::UUID_EMPTY) {
        Some(2)
    } else {
        Some(0)
    }
}
