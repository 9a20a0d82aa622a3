//! Gives each entry its node, and links the nodes as the file does.

use std::collections::{HashMap, HashSet};

use transcript_format::kind::EntryKind;
use transcript_format::scan::Flags;

use super::decision::Decision;
use super::{NodeId, ParentSlot, Policy, Tree, has_usable_body};
use crate::index::{EntryNo, EntryRef, Id, Index};

impl<'i> Tree<'i> {
    /// Gives each uuid one node: at the place of its first line, with the body of its last
    /// (FILE-7). Lines without a uuid share one node for each way to have none (FILE-8).
    ///
    /// Policy `recover` keeps lines without a uuid apart, as each may be the only copy of a
    /// message, and prefers a whole line to a salvaged one. An entry written again after its
    /// tombstone counts from there on.
    pub(super) fn collect_nodes(&mut self) {
        let included = self.included.clone();
        let is_there = |entry: &EntryRef<'_>| included.contains(entry.number());
        let recovers = self.policy == Policy::Recover;
        let mut unnamed = [None; 3];
        // For the client a damaged line does not exist (FILE-1), and neither does anything after
        // the first object of a line (FILE-2): the index has both as salvaged entries.
        let counts = |entry_ref: &EntryRef<'_>| {
            entry_ref.kind().is_in_tree()
                && has_usable_body(entry_ref)
                && (recovers || !entry_ref.is_salvaged())
                && is_there(entry_ref)
        };
        if recovers {
            self.find_tombstones(counts, is_there);
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
            .filter(|entry_ref| entry_ref.kind().is_in_tree())
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

    /// Resolves the parent of every node. Most name the line before, which `find` tries first.
    pub(super) fn link(&mut self) {
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
    pub(super) fn link_in_order(&mut self) {
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

    /// Finds the parent of `from`, past progress entries (CHAIN-2). Without a key, with `null` or
    /// with an empty id it is a root (FILE-9).
    pub(crate) fn resolve(&mut self, from: &EntryRef<'i>, walk: &mut Vec<EntryNo>) -> ParentSlot {
        let mut at = *from;
        let found = loop {
            let Some(parent) = at.parent() else {
                break if self.is_root(&at) {
                    ParentSlot::ROOT
                } else {
                    ParentSlot::LOST
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
        let named = if is_repeated {
            *self.named.entry(id).or_insert_with(find)
        } else {
            find()
        };
        named.map(|named| index.entry(named))
    }
}

/// The sessions of a file in the stream form.
struct StreamSessions<'i> {
    /// The sessions that a line of the client names: the input of the SDK may name another one, or none, and
    /// belongs to the session around it.
    of_client: HashSet<&'i str>,
    /// The session of the entry before.
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

/// The kinds that links lead through. Links to any other kind dangle (CHAIN-4).
fn is_linked(kind: EntryKind) -> bool {
    kind.is_chain()
}

/// Returns the number of one of the three ways to have no uuid (FILE-8); `None` for a value of another type, each of
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
