//! The path that the conversation had, to which the next one is compared.

use bitflags::bitflags;
use transcript_format::scan::ContentKind;
use transcript_reader::{EntryNo, EntryRef, Id, Index, LiveState, PathEntry};

bitflags! {
    #[derive(Clone, Copy, Debug, Default)]
    struct PathMark: u8 {
        /// The entry is on the path.
        const ON_PATH = 1;
        /// It was on an earlier one.
        const LEFT_PATH = 1 << 1;
    }
}

/// A path, and which entries are and were on it. Entries are numbered by the first line with their
/// uuid.
#[derive(Debug, Default)]
pub(super) struct KnownPath {
    path: Vec<EntryNo>,
    leaf: Option<EntryNo>,
    /// The index of its last message.
    message: Option<usize>,
    /// The number of entries at the start that the current path has, too. It has not the others while the
    /// current path was made by a line that cannot move the conversation.
    common: usize,
    /// By number.
    marks: Vec<PathMark>,
    /// The entries from this number on may be others by now.
    closed_len: usize,
}

/// A move to another branch.
#[derive(Debug)]
pub(super) struct BranchMove {
    /// The previous leaf.
    pub(super) from: Option<EntryNo>,
    /// The last entry of the new path that the previous one had, too.
    pub(super) fork: Option<EntryNo>,
}

impl KnownPath {
    /// Returns whether the path contains the entry.
    pub(super) fn is_on_path(&self, entry: &EntryRef<'_>, index: &Index) -> bool {
        self.has(first_line(index, entry.number()), PathMark::ON_PATH)
    }

    /// Forgets that the entry with this uuid left the path, because it was tombstoned: if it is
    /// written again, it is new.
    pub(super) fn restore(&mut self, id: Id, index: &Index) {
        for number in index.with_uuid(id) {
            if let Some(marks) = self.marks.get_mut(number.get()) {
                marks.remove(PathMark::LEFT_PATH);
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.path.capacity() * size_of::<EntryNo>() + self.marks.capacity()
    }

    /// Forgets entries that turned out to be something else: entries of damaged lines at the end of the
    /// file, and a path of a subagent or another session. Returns whether it was such a path.
    pub(super) fn forget(&mut self, state: &LiveState<'_>) -> bool {
        let closed_len = std::mem::replace(&mut self.closed_len, state.closed_len);
        if self.marks.len() > closed_len {
            self.marks.truncate(closed_len);
            let is_open = |entry: &EntryNo| entry.get() >= closed_len;
            let closed = self.path.iter().position(is_open);
            self.common = self.common.min(closed.unwrap_or(usize::MAX));
            self.path.retain(|entry| !is_open(entry));
            self.leaf = self.leaf.filter(|leaf| !is_open(leaf));
            self.message = self.last_message(self.path.len(), state.index);
        }
        let message = self.message.map(|at| state.index.entry(self.path[at]));
        let is_other = message.is_some_and(|message| !state.is_of_conversation(&message));
        if is_other {
            *self = Self {
                closed_len: state.closed_len,
                ..Self::default()
            };
        }
        is_other
    }

    /// Compares with the path of `state`, and takes it over: unless it is a move by a line that
    /// cannot move the conversation. Returns the move.
    pub(super) fn update(
        &mut self,
        state: &LiveState<'_>,
        can_move: bool,
        has_tombstone: bool,
    ) -> Option<BranchMove> {
        let (index, path) = (state.index, state.path);
        let line = |entry: &PathEntry| first_line(index, entry.entry_no());
        let was_held = self.common < self.path.len();
        let mut common = self.common.min(state.unchanged);
        let both = self.path.len().min(path.len());
        while common < both && self.path[common] == line(&path[common]) {
            common += 1;
        }
        self.common = common;
        let new: Vec<EntryNo> = path[common..].iter().map(line).collect();
        let is_message = |entry: &EntryNo| index.entry(*entry).kind().is_message();
        let is_back = |entry: &EntryNo| {
            self.has(*entry, PathMark::LEFT_PATH)
                && !self.has(*entry, PathMark::ON_PATH)
                && is_message(entry)
        };
        let is_moved = self.message.is_some_and(|at| {
            let message = self.path[at];
            let first = path.first().map(|first| index.entry(first.entry_no()));
            let is_compacted =
                first.is_some_and(|first| first.is_boundary() && first.number() > message);
            let after_message = if at < common {
                Some(0)
            } else {
                new.iter()
                    .position(|entry| *entry == message)
                    .map(|at| at + 1)
            };
            // Messages that return above the last message were missing because of damage; that is not a move.
            let is_left = |end: usize| new[end..].iter().any(is_back);
            !is_compacted && after_message.is_none_or(is_left)
        });
        if is_moved && !can_move && (was_held || !has_tombstone) {
            return None;
        }
        let moved = (is_moved && can_move).then(|| {
            let above = common.checked_sub(1).map(|last| self.path[last]);
            let shared = new
                .iter()
                .rev()
                .find(|entry| self.has(**entry, PathMark::ON_PATH));
            BranchMove {
                from: self.leaf,
                fork: shared.copied().or(above),
            }
        });
        for entry in self.path.drain(common..) {
            self.marks[entry.get()] = PathMark::LEFT_PATH;
        }
        for entry in &new {
            if self.marks.len() <= entry.get() {
                self.marks.resize(entry.get() + 1, PathMark::empty());
            }
            self.marks[entry.get()] |= PathMark::ON_PATH;
        }
        self.message = match new.iter().rposition(is_message) {
            Some(at) => Some(common + at),
            None if self.message.is_some_and(|at| at < common) => self.message,
            None => self.last_message(common, index),
        };
        self.path.extend(new);
        self.common = self.path.len();
        self.leaf = state.leaf;
        moved
    }

    /// Returns the index of the last message among the first `count` entries of the path.
    fn last_message(&self, count: usize, index: &Index) -> Option<usize> {
        let is_message = |entry: &EntryNo| index.entry(*entry).kind().is_message();
        self.path[..count].iter().rposition(is_message)
    }

    fn has(&self, entry: EntryNo, mark: PathMark) -> bool {
        let marks = self.marks.get(entry.get());
        marks.is_some_and(|marks| marks.contains(mark))
    }
}

/// Returns the first line of the same entry.
fn first_line(index: &Index, number: EntryNo) -> EntryNo {
    if !index.has_repeated_uuids() {
        return number;
    }
    let id = index.entry(number).uuid();
    let mut lines = id.into_iter().flat_map(|id| index.with_uuid(id));
    let first = lines.find(|line| is_entry(&index.entry(*line)));
    first.unwrap_or(number)
}

/// Returns whether a line is an entry that can be on a path.
pub(super) fn is_entry(entry: &EntryRef<'_>) -> bool {
    let is_chain = entry.kind().is_in_tree();
    let is_unusable = matches!(entry.content(), ContentKind::NoMessage | ContentKind::Null);
    is_chain && !(entry.kind().is_message() && is_unusable)
}
