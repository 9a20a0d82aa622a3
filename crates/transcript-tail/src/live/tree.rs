//! The linked entries of a growing file.
//!
//! An entry is linked once, when it is added, and keeps a second link to a more distant ancestor,
//! so that comparing two entries takes a number of steps that grows with the logarithm of their
//! depth (jump pointers of a skew-binary tree). Links change later in four cases only: a parent
//! that is written after its child, and an entry that is repeated after a compaction, which move
//! entries close by and at most [`NEAR`] lines; a compaction that preserves entries, and the end of
//! its effect with the next one, which move the preserved entries and those added since the
//! boundary.

mod compaction;
mod tombstones;

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use bitflags::bitflags;
use hashbrown::HashTable;
use transcript_format::ids::Uuid;

/// Stands for no entry.
pub(super) const NONE: u32 = u32::MAX;

/// How far after an entry its children are searched when it is moved or tombstoned. In real files a
/// child is at most nine lines after its parent.
const NEAR: usize = 4096;

/// How far before an entry its children are searched.
const NEAR_BEFORE: usize = 64;

/// An id in 16 bytes: the value of a uuid, or a keyed hash of any other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key([u64; 2]);

bitflags! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct NodeFlags: u16 {
        /// The entry has an id.
        const HAS_ID = 1;
        /// Its id is not a uuid.
        const ODD_ID = 1 << 1;
        const MESSAGE = 1 << 2;
        const ASSISTANT = 1 << 3;
        /// A user entry with results.
        const RESULT = 1 << 4;
        /// It contains one result and nothing else.
        const RESULT_ALONE = 1 << 5;
        const ATTACHMENT = 1 << 6;
        const BOUNDARY = 1 << 7;
        const SIDECHAIN = 1 << 8;
        /// Skipped by the path: a progress line, or a message without content.
        const HIDDEN = 1 << 9;
        /// Removed by a tombstone.
        const TOMBSTONED = 1 << 10;
        /// An entry of another session that is linked to no entry of this one.
        const FOREIGN = 1 << 11;
        /// It is a message, or has one as an ancestor.
        const HAS_MESSAGE_ABOVE = 1 << 12;
        /// Its parent is not in the file, so it was linked to a guessed one.
        const GUESSED = 1 << 13;
        /// An attachment that is tombstoned with its parent, as long as no other entry continues
        /// from it.
        const DROPPED_ATTACHMENT = 1 << 14;
    }
}

/// The fields of an entry that linking needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewNode<'a> {
    pub(super) offset: u64,
    /// Its id as written in the line.
    pub(super) id: Option<&'a [u8]>,
    pub(super) parent: ParentLink,
    pub(super) node_flags: NodeFlags,
    /// For an answer, a hash of its `message.id`; 0 for none.
    pub(super) message: u32,
    /// For a single call or result, a hash of its id; 0 for none.
    pub(super) tool: u16,
    /// A hash of the session that it names.
    pub(super) session: Option<u64>,
}

/// The parent that a line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParentLink {
    Root,
    /// Something that cannot be the id of an entry.
    Odd,
    To(Key),
}

/// The entries that a boundary preserves.
#[derive(Debug)]
pub(super) struct PreservedSpec {
    pub(super) anchor: Option<Key>,
    pub(super) entries: PreservedForm,
}

#[derive(Debug)]
pub(super) enum PreservedForm {
    /// A list of all of them, oldest first; `None` for an item that is not an id.
    List(Vec<Option<Key>>),
    /// The first and the last one.
    Ends([Option<Key>; 2]),
}

/// An entry. Links are numbers of other entries, in file order.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: [u64; 2],
    offset: u64,
    parent: u32,
    /// A more distant ancestor; the entry itself if there is none.
    jump: u32,
    /// The number of ancestors.
    depth: u32,
    /// The number of children except attachments. For a hidden entry instead: its nearest visible
    /// ancestor.
    child_count: u32,
    message: u32,
    tool: u16,
    node_flags: NodeFlags,
}

const _: () = assert!(size_of::<Node>() == 48);

/// The compaction with preserved entries that is in force.
#[derive(Debug)]
struct Splice {
    boundary: u32,
    /// The entry that the preserved entries follow.
    anchor: u32,
    /// The last preserved entry: children of the anchor follow it.
    tail: u32,
    kept: HashSet<u32>,
    /// All names were found, so entries that are not named are out of reach (COMPACT-7).
    is_whole: bool,
    /// The previous parents, to undo the splice.
    before: Vec<(u32, u32)>,
}

#[derive(Debug)]
pub(super) struct LiveTree {
    nodes: Vec<Node>,
    by_key: HashTable<u32>,
    hashes: [RandomState; 2],
    /// Ids that are not uuids.
    odd: HashMap<u32, Box<str>>,
    /// The tips, and entries that were tips once.
    tips: BinaryHeap<u32>,
    /// Entries whose parent is not in the file yet.
    waiting: HashMap<Key, Vec<u32>>,
    /// All messages so far are sidechain entries.
    is_all_sidechain: bool,
    /// The sessions whose entries are linked with each other.
    own: HashSet<u64>,
    /// Whether an entry named a session.
    has_session: bool,
    last_boundary: u32,
    splice: Option<Splice>,
    /// The last boundary that preserves entries, while its anchor is missing.
    pending: Option<(u32, PreservedSpec)>,
    /// Whether an entry was tombstoned.
    has_tombstoned: bool,
}

impl Default for LiveTree {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            by_key: HashTable::new(),
            hashes: [RandomState::new(), RandomState::new()],
            odd: HashMap::new(),
            tips: BinaryHeap::new(),
            waiting: HashMap::new(),
            is_all_sidechain: true,
            own: HashSet::new(),
            has_session: false,
            last_boundary: NONE,
            splice: None,
            pending: None,
            has_tombstoned: false,
        }
    }
}

// -------------------------------------------------------------------------------------------------
// Names
// -------------------------------------------------------------------------------------------------

impl LiveTree {
    pub(super) fn key(&self, id: &[u8]) -> Key {
        match Uuid::parse(id) {
            Some(Uuid(value)) => Key([(value >> 64) as u64, value as u64]),
            None => Key([0, 1].map(|at: usize| self.hashes[at].hash_one(id))),
        }
    }

    /// Returns a hash of any text.
    pub(super) fn hash(&self, text: &[u8]) -> u64 {
        self.hashes[0].hash_one(text)
    }

    /// Returns the entry or the progress line with this id.
    fn find(&self, key: Key) -> Option<u32> {
        let is_it = |node: &u32| self.nodes[*node as usize].key == key.0;
        self.by_key
            .find(self.hashes[0].hash_one(key), is_it)
            .copied()
    }

    /// Makes `node` the entry with its id.
    fn name(&mut self, node: u32) {
        let Self {
            nodes,
            by_key,
            hashes,
            ..
        } = self;
        let hash = |node: &u32| hashes[0].hash_one(Key(nodes[*node as usize].key));
        let same = |other: &u32| nodes[*other as usize].key == nodes[node as usize].key;
        let entry = by_key.entry(hash(&node), same, hash);
        *entry.or_insert(node).get_mut() = node;
    }

    /// Returns the entry with this id; for a tombstoned one, its nearest visible ancestor.
    pub(super) fn find_live(&mut self, key: Key) -> Option<u32> {
        let node = self
            .find(key)
            .filter(|node| !self.has(*node, NodeFlags::HIDDEN))?;
        // A tombstoned child of an entry that a compaction cut off becomes a child of the last
        // preserved entry.
        let parent = self.raw_parent(node);
        let above = match &self.splice {
            Some(splice)
                if self.has(node, NodeFlags::TOMBSTONED)
                    && parent != NONE
                    && self.is_cut_off(parent) =>
            {
                self.shown(splice.tail)
            }
            _ => self.shown(node),
        };
        (above != NONE && !self.is_cut_off(above)).then_some(above)
    }

    /// Returns the entry with this id, if it can be preserved by a compaction or be an anchor.
    fn entry(&self, key: Option<Key>) -> Option<u32> {
        let node = self.find(key?)?;
        (!self.has(node, NodeFlags::HIDDEN) && !self.is_cut_off(node)).then_some(node)
    }

    pub(super) fn uuid(&self, node: u32) -> Option<Box<str>> {
        if self.has(node, NodeFlags::ODD_ID) {
            return self.odd.get(&node).cloned();
        }
        let [high, low] = self.nodes[node as usize].key;
        let uuid = || Uuid(u128::from(high) << 64 | u128::from(low));
        let is_named = self.has(node, NodeFlags::HAS_ID);
        is_named.then(|| uuid().to_string().into())
    }

    pub(super) fn offset(&self, node: u32) -> u64 {
        self.nodes[node as usize].offset
    }

    pub(super) fn has(&self, node: u32, any: NodeFlags) -> bool {
        self.nodes[node as usize].node_flags.intersects(any)
    }

    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns the memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let odd = self.odd.values().map(|id| id.len()).sum::<usize>();
        let waiting = self.waiting.len() * size_of::<(Key, Vec<u32>, u64)>() * 2;
        self.nodes.capacity() * size_of::<Node>()
            + self.by_key.allocation_size()
            + self.tips.capacity() * size_of::<u32>()
            + odd
            + self.odd.capacity() * size_of::<(u32, Box<str>)>()
            + waiting
            + self.own.capacity() * size_of::<u64>()
    }
}

// -------------------------------------------------------------------------------------------------
// The entries above
// -------------------------------------------------------------------------------------------------

impl LiveTree {
    /// Returns `node` or its nearest visible ancestor; [`NONE`] if there is none. Compresses the
    /// links over hidden entries, so that a run of tombstoned entries is walked only once.
    fn shown(&mut self, mut node: u32) -> u32 {
        for _ in 0..=self.nodes.len() {
            step();
            if node == NONE || !self.has(node, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED) {
                return node;
            }
            let above = self.nodes[node as usize].child_count;
            if above != NONE && self.has(above, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED) {
                self.nodes[node as usize].child_count = self.nodes[above as usize].child_count;
            }
            node = above;
        }
        NONE
    }

    /// Returns the parent of `node`, including a tombstoned one.
    fn raw_parent(&self, node: u32) -> u32 {
        self.line_at(self.nodes[node as usize].parent)
    }

    /// Resolves a link to `at`: progress lines are skipped (CHAIN-2).
    fn line_at(&self, mut at: u32) -> u32 {
        for _ in 0..NEAR {
            step();
            if at == NONE || !self.has(at, NodeFlags::HIDDEN) {
                break;
            }
            at = self.nodes[at as usize].parent;
        }
        at
    }

    /// Returns the nearest visible ancestor of `node`; [`NONE`] for a root.
    pub(super) fn above(&mut self, node: u32) -> u32 {
        let parent = self.nodes[node as usize].parent;
        self.shown(parent)
    }

    /// Returns `node` and its ancestors that are visible, nearest first.
    pub(super) fn walk(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let parent = |node: &u32| Some(self.nodes[*node as usize].parent).filter(|at| *at != NONE);
        std::iter::successors(Some(node).filter(|node| *node != NONE), parent)
            .take(self.nodes.len())
            .filter(|node| !self.has(*node, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED))
    }

    /// Returns the one of `node` and its ancestors that has `depth` ancestors.
    fn at_depth(&self, node: u32, depth: u32) -> u32 {
        let mut at = node;
        loop {
            step();
            let own = &self.nodes[at as usize];
            if own.depth <= depth {
                return at;
            }
            let jump = self.nodes[own.jump as usize].depth;
            let next = match own.jump != at && jump >= depth && jump < own.depth {
                true => own.jump,
                false => own.parent,
            };
            // An entry that a compaction cut off is not linked again, and may have links to entries
            // of a greater depth.
            if next == NONE || self.nodes[next as usize].depth >= own.depth {
                return NONE;
            }
            at = next;
        }
    }

    /// Returns whether `node` is `above` or one of its descendants.
    pub(super) fn is_under(&self, node: u32, above: u32) -> bool {
        let depth = self.nodes[above as usize].depth;
        self.nodes[node as usize].depth >= depth && self.at_depth(node, depth) == above
    }

    /// Returns whether the path to `leaf` shows `node`: as an ancestor, or as a line or a result of
    /// an answer of which another line is an ancestor (CHAIN-6).
    pub(super) fn leads_past(&mut self, leaf: u32, node: u32) -> bool {
        if self.is_under(leaf, node) {
            return true;
        }
        let (head, message) = self.head(node);
        message != 0
            && self.has(node, NodeFlags::ASSISTANT | NodeFlags::RESULT)
            && self.is_under(leaf, head)
    }

    /// Returns the entry on the way from `above` down to `node` that has `between` entries above it
    /// there, where 0 is a child of `above`; [`NONE`] if `node` is too close.
    pub(super) fn below(&self, above: u32, node: u32, between: u32) -> u32 {
        let depth = |node: u32| self.nodes[node as usize].depth;
        let wanted = depth(above).saturating_add(between).saturating_add(1);
        match wanted <= depth(node) {
            true => self.at_depth(node, wanted),
            false => NONE,
        }
    }

    /// Returns the first message below `above` on the way down to `node` that does not belong to
    /// `answer`; [`NONE`] if there is none nearby.
    pub(super) fn next_message(&mut self, above: u32, node: u32, answer: u32) -> u32 {
        for between in 0..NEAR_BEFORE as u32 {
            let at = self.below(above, node, between);
            if at == NONE {
                break;
            }
            if self.has(at, NodeFlags::MESSAGE) && (answer == 0 || self.head(at).1 != answer) {
                return at;
            }
        }
        NONE
    }

    /// Returns the last common ancestor of both; [`NONE`] if there is none.
    pub(super) fn fork(&mut self, one: u32, other: u32) -> u32 {
        let depth = |links: &Self, node: u32| links.nodes[node as usize].depth;
        let least = depth(self, one).min(depth(self, other));
        let mut pair = [one, other].map(|node| self.at_depth(node, least));
        while pair[0] != pair[1] {
            step();
            if pair.contains(&NONE) {
                return NONE;
            }
            let nodes = pair.map(|node| self.nodes[node as usize]);
            let jumps = nodes.map(|node| node.jump);
            let are_apart = jumps[0] != jumps[1] && jumps[0] != pair[0] && jumps[1] != pair[1];
            let next = match are_apart {
                true => jumps,
                false => nodes.map(|node| node.parent),
            };
            let goes_up = |at: usize| next[at] == NONE || depth(self, next[at]) < nodes[at].depth;
            if !goes_up(0) || !goes_up(1) {
                return NONE;
            }
            pair = next;
        }
        self.shown(pair[0])
    }

    /// Returns whether `node` is below a compaction that came after `place`: the last one, or one
    /// at the root of its path.
    pub(super) fn is_after_boundary(&self, node: u32, place: u32) -> bool {
        let last = self.last_boundary;
        if last != NONE && last > place && self.is_under(node, last) {
            return true;
        }
        let root = self.at_depth(node, 0);
        root != NONE && root > place && self.has(root, NodeFlags::BOUNDARY)
    }

    /// Returns the first line of the answer that `node` belongs to or directly follows, and its
    /// `message`, by walking up past results, attachments, system entries, and lines of the same
    /// answer. A prompt is its own head.
    pub(super) fn head(&mut self, node: u32) -> (u32, u32) {
        let (mut head, mut message) = (NONE, 0);
        let mut at = self.shown(node);
        for _ in 0..NEAR {
            step();
            if at == NONE {
                break;
            }
            let own = self.nodes[at as usize];
            if own.node_flags.contains(NodeFlags::ASSISTANT) {
                if message != 0 && own.message != message {
                    break;
                }
                (head, message) = (at, own.message);
                if message == 0 {
                    break;
                }
            } else if own.node_flags.contains(NodeFlags::MESSAGE) {
                let is_result = own.node_flags.contains(NodeFlags::RESULT);
                if head == NONE {
                    head = at;
                }
                if !is_result {
                    break;
                }
            } else if own.node_flags.contains(NodeFlags::BOUNDARY) {
                break;
            }
            at = self.above(at);
        }
        (if head == NONE { node } else { head }, message)
    }
}

// -------------------------------------------------------------------------------------------------
// Tips
// -------------------------------------------------------------------------------------------------

impl LiveTree {
    pub(super) fn is_sidechain(&self, node: u32) -> bool {
        !self.is_all_sidechain && self.has(node, NodeFlags::SIDECHAIN)
    }

    /// Returns whether the entry can be the leaf, as `Tree::leaf` of the resume crate defines it.
    pub(super) fn can_be_leaf(&self, node: u32) -> bool {
        self.has(node, NodeFlags::HAS_MESSAGE_ABOVE)
            && !self.has(
                node,
                NodeFlags::HIDDEN | NodeFlags::TOMBSTONED | NodeFlags::FOREIGN,
            )
            && !self.is_sidechain(node)
            && !self.is_cut_off(node)
    }

    /// Returns whether the entry belongs to the main conversation, on any branch.
    pub(super) fn is_main(&self, node: u32) -> bool {
        !self.has(node, NodeFlags::HIDDEN | NodeFlags::FOREIGN) && !self.is_sidechain(node)
    }

    fn has_children(&self, node: u32) -> bool {
        !self.has(
            node,
            NodeFlags::HIDDEN | NodeFlags::TOMBSTONED | NodeFlags::ATTACHMENT,
        ) && !self.is_sidechain(node)
            && !self.is_cut_off(node)
    }

    /// Counts `node` as a child of its parent.
    fn count_child(&mut self, node: u32) {
        let above = self.above(node);
        if above != NONE && self.has_children(node) {
            let child_count = &mut self.nodes[above as usize].child_count;
            *child_count = child_count.saturating_add(1);
        }
    }

    fn uncount_child(&mut self, node: u32) {
        let above = self.above(node);
        if above != NONE && self.has_children(node) {
            let child_count = &mut self.nodes[above as usize].child_count;
            *child_count = child_count.saturating_sub(1);
            if *child_count == 0 {
                self.tips.push(above);
            }
        }
    }

    fn is_tip(&self, node: u32) -> bool {
        self.nodes[node as usize].child_count == 0 && self.can_be_leaf(node)
    }

    fn push_tip(&mut self, node: u32) {
        if self.is_tip(node) {
            self.last_tip();
            self.tips.push(node);
        }
    }

    /// Returns the last entry in file order that can be the leaf.
    pub(super) fn last_tip(&mut self) -> Option<u32> {
        while let Some(tip) = self.tips.peek().copied() {
            step();
            if self.is_tip(tip) {
                return Some(tip);
            }
            self.tips.pop();
        }
        None
    }

    /// Recomputes the child counts of `nodes`, whose children are all among `nodes`.
    fn count_again(&mut self, nodes: &[u32]) {
        for node in nodes {
            step();
            if !self.has(*node, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED) {
                self.nodes[*node as usize].child_count = 0;
            }
        }
        for node in nodes {
            step();
            self.count_child(*node);
        }
        for node in nodes {
            self.push_tip(*node);
        }
    }
}

// -------------------------------------------------------------------------------------------------
// Growth
// -------------------------------------------------------------------------------------------------

impl LiveTree {
    /// Makes entries of `session` count, whatever they are linked with.
    pub(super) fn own(&mut self, session: u64) {
        self.own.insert(session);
    }

    /// Adds an entry; returns `None` for a repeated one. If its parent is unknown, it becomes a
    /// child of `leaf` until the parent arrives.
    pub(super) fn add(&mut self, line: &NewNode<'_>, leaf: Option<u32>) -> Option<u32> {
        let key = line.id.map(|id| self.key(id));
        let node = self.len();
        if node >= NONE - 1 {
            return None;
        }
        let parent = match line.parent {
            ParentLink::To(key) => self.find(key),
            ParentLink::Root | ParentLink::Odd => None,
        };
        if let Some(known) = key.and_then(|key| self.find(key)) {
            let is_new = match line.node_flags.contains(NodeFlags::HIDDEN) {
                true => false,
                // A tombstoned entry that is written again counts from here on.
                false => self.has(known, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED),
            };
            if !is_new {
                if !line.node_flags.contains(NodeFlags::HIDDEN) {
                    self.repeat(known, line.offset, parent);
                }
                return None;
            }
        }
        let mut node_flags = line.node_flags;
        let is_lost = parent.is_none() && line.parent != ParentLink::Root;
        node_flags.set(NodeFlags::FOREIGN, self.is_foreign(line, parent));
        node_flags.set(NodeFlags::GUESSED, is_lost);
        let named = parent.unwrap_or(NONE);
        let parent = match parent {
            Some(parent) => self.parent_after_splice(node, parent),
            None if is_lost && self.follows_leaf(node_flags) => leaf.unwrap_or(NONE),
            None => NONE,
        };
        if self.nodes.len() == self.nodes.capacity() {
            self.nodes.reserve_exact(self.nodes.len() / 16 + 64);
        }
        let is_odd = line.id.is_some_and(|id| Uuid::parse(id).is_none());
        node_flags.set(NodeFlags::HAS_ID, key.is_some());
        node_flags.set(NodeFlags::ODD_ID, is_odd);
        self.nodes.push(Node {
            key: key.map_or([0; 2], |key| key.0),
            offset: line.offset,
            parent,
            jump: node,
            depth: 0,
            child_count: 0,
            message: line.message,
            tool: line.tool,
            node_flags,
        });
        if let Some(id) = line.id.filter(|_| is_odd) {
            self.odd.insert(node, String::from_utf8_lossy(id).into());
        }
        if key.is_some() {
            self.name(node);
        }
        self.link(node);
        if self.has_tombstoned {
            self.join_tombstoned(node, named);
        }
        self.mark_main(node);
        self.count_child(node);
        self.push_tip(node);
        if node_flags.contains(NodeFlags::BOUNDARY) {
            self.last_boundary = node;
        }
        if let (true, ParentLink::To(key)) = (is_lost, line.parent) {
            self.waiting.entry(key).or_default().push(node);
        }
        let children = key.and_then(|key| self.waiting.remove(&key));
        for child in children.unwrap_or_default() {
            self.move_under(child, node);
        }
        self.expect_anchor(node, key);
        Some(node)
    }

    /// Returns whether an entry with an unknown parent can only continue from the current leaf.
    fn follows_leaf(&self, node_flags: NodeFlags) -> bool {
        !node_flags.contains(NodeFlags::FOREIGN)
            && (self.is_all_sidechain || !node_flags.contains(NodeFlags::SIDECHAIN))
    }

    /// Returns whether an entry belongs to another session than the linked entries.
    fn is_foreign(&mut self, line: &NewNode<'_>, parent: Option<u32>) -> bool {
        let Some(session) = line
            .session
            .filter(|_| !line.node_flags.contains(NodeFlags::HIDDEN))
        else {
            return false;
        };
        match parent {
            Some(parent) if !self.has(parent, NodeFlags::FOREIGN) => {
                self.own.insert(session);
                self.has_session = true;
                false
            }
            _ if !self.has_session => {
                self.own.insert(session);
                self.has_session = true;
                false
            }
            Some(parent) if self.own.contains(&session) => {
                self.unmark_foreign(parent);
                false
            }
            _ => !self.own.contains(&session),
        }
    }

    /// Clears the foreign mark of `node`, because an entry of this session is its child.
    fn unmark_foreign(&mut self, node: u32) {
        let mut at = node;
        while at != NONE && self.has(at, NodeFlags::FOREIGN) {
            step();
            self.nodes[at as usize]
                .node_flags
                .remove(NodeFlags::FOREIGN);
            self.push_tip(at);
            at = self.nodes[at as usize].parent;
        }
    }

    /// A message outside of sidechains makes this the file of a main conversation.
    fn mark_main(&mut self, node: u32) {
        let is_main_message = self.has(node, NodeFlags::MESSAGE)
            && !self.has(
                node,
                NodeFlags::SIDECHAIN | NodeFlags::HIDDEN | NodeFlags::FOREIGN,
            );
        if self.is_all_sidechain && is_main_message {
            self.is_all_sidechain = false;
            let all: Vec<u32> = (0..node).collect();
            self.count_again(&all);
        }
    }

    /// Sets the fields that depend on the parent of `node`.
    fn link(&mut self, node: u32) {
        step();
        let own = self.nodes[node as usize];
        let is_message = own.node_flags.contains(NodeFlags::MESSAGE)
            && !own
                .node_flags
                .intersects(NodeFlags::HIDDEN | NodeFlags::TOMBSTONED);
        let (mut depth, mut jump, mut has_message) = (0, node, is_message);
        if let Some(parent) = self.nodes.get(own.parent as usize) {
            depth = parent.depth.saturating_add(1);
            let far = &self.nodes[parent.jump as usize];
            let farther = &self.nodes[far.jump as usize];
            let is_even =
                parent.depth.wrapping_sub(far.depth) == far.depth.wrapping_sub(farther.depth);
            jump = if is_even { far.jump } else { own.parent };
            has_message |= parent.node_flags.contains(NodeFlags::HAS_MESSAGE_ABOVE);
        }
        let child_count = match own
            .node_flags
            .intersects(NodeFlags::HIDDEN | NodeFlags::TOMBSTONED)
        {
            true => self.shown(own.parent),
            false => own.child_count,
        };
        let node = &mut self.nodes[node as usize];
        (node.depth, node.jump, node.child_count) = (depth, jump, child_count);
        node.node_flags
            .set(NodeFlags::HAS_MESSAGE_ABOVE, has_message);
    }

    /// Makes `child` a child of `parent`, because the parent arrived or has changed.
    fn move_under(&mut self, child: u32, parent: u32) {
        if self.is_under(parent, child) {
            // Entries in between were taken for descendants of the child.
            let Some(guessed) = self.last_guess(parent, child) else {
                return;
            };
            let above = self.nodes[child as usize].parent;
            self.set_parent(guessed, above);
        }
        self.nodes[child as usize]
            .node_flags
            .remove(NodeFlags::GUESSED);
        self.set_parent(child, parent);
    }

    /// Returns the topmost entry from `node` up to `top` whose parent was guessed.
    fn last_guess(&self, node: u32, top: u32) -> Option<u32> {
        let parent = |node: &u32| Some(self.nodes[*node as usize].parent).filter(|at| *at != NONE);
        let path = std::iter::successors(Some(node), parent).take(NEAR);
        let path = path.inspect(|_| step()).take_while(|node| *node != top);
        path.filter(|node| self.has(*node, NodeFlags::GUESSED))
            .last()
    }

    fn set_parent(&mut self, child: u32, parent: u32) {
        let moved = self.with_descendants(child);
        for node in &moved {
            self.uncount_child(*node);
        }
        self.nodes[child as usize].parent = parent;
        for node in &moved {
            self.link(*node);
        }
        if self.has_tombstoned && !self.has(child, NodeFlags::TOMBSTONED) {
            self.join_tombstoned(child, parent);
        }
        for node in &moved {
            self.count_child(*node);
        }
        for node in moved {
            self.push_tip(node);
        }
    }

    /// Returns `top` and its descendants nearby, parents before children.
    fn with_descendants(&self, top: u32) -> Vec<u32> {
        let first = top.saturating_sub(NEAR_BEFORE as u32);
        let end = self.nodes.len().min(top as usize + NEAR) as u32;
        let (mut found, mut is_found) = (vec![top], HashSet::from([top]));
        loop {
            let before = found.len();
            for node in first..end {
                step();
                if is_found.contains(&self.nodes[node as usize].parent) && is_found.insert(node) {
                    found.push(node);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Handles a repeated uuid: the new line is the one to read from now on. Links only change when
    /// an entry that a compaction preserves is repeated after that compaction.
    fn repeat(&mut self, known: u32, offset: u64, parent: Option<u32>) {
        self.nodes[known as usize].offset = offset;
        let is_behind = |parent: u32| {
            self.last_boundary != NONE && known < self.last_boundary && parent >= self.last_boundary
        };
        if let Some(parent) = parent.filter(|parent| is_behind(*parent)) {
            self.move_under(known, parent);
        }
    }
}

/// Counts steps, for the test that the cost grows with the file and no faster.
#[inline]
fn step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

#[cfg(test)]
thread_local! {
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}
