//! The last entries of a file, as far as they depend only on each other.

use crate::index::{EntryNo, EntryRef, Id, Index, MessageKey, ToolKey};
use crate::path::{ConversationPath, PathEntry, Via};
use crate::tree::{Policy, Tree};

/// The number of entries that remain when the window is moved, so that entries that are linked to an entry
/// near the end of the path are still inside.
const MIN_KEPT_ENTRIES: usize = 32;

/// The maximum length of a window that is not a chain, and the number of entries that a line is
/// compared with: with more, a file of many calls in parallel would take quadratic time.
pub(super) const MAX_WINDOW_LEN: usize = 1024;

/// Entries, progress lines and pins at the end of a file. The first is a message on the path.
#[derive(Debug)]
pub(super) struct Window {
    entries: Vec<WindowEntry>,
    /// The number of path entries before the window.
    above: usize,
    /// The last entry, if all entries are a chain.
    chain_end: Option<u32>,
    /// The path of the client has to be the same.
    has_client: bool,
    /// The last compaction before it keeps entries.
    follows_kept_entries: bool,
    /// Entries were added since the last walk.
    is_stale: bool,
    /// The length at which the window is to be moved.
    full_at: usize,
}

/// A line of the window. Places are those in the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowEntry {
    /// The number in the index.
    pub(super) number: EntryNo,
    /// The place of the entry that it names as its parent or leaf.
    pub(super) parent: u32,
    /// The first place that it depends on.
    pub(super) depends_on: u32,
    pub(super) kind: WindowEntryKind,
    /// Whether a window can start here.
    pub(super) may_start: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WindowEntryKind {
    Entry,
    Progress,
    Pin,
}

/// A key that connects entries without a link between them: the message of which they are lines, or the
/// call that they make or answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ConnectionKey {
    Message(MessageKey),
    Call(ToolKey),
}

pub(super) fn connection_keys<'i>(
    entry: &EntryRef<'i>,
) -> impl Iterator<Item = ConnectionKey> + use<'i> {
    let message = entry.message().map(ConnectionKey::Message);
    let calls = entry
        .tools()
        .iter()
        .map(|end| ConnectionKey::Call(end.key()));
    message.into_iter().chain(calls)
}

impl Window {
    /// Returns the window that contains only this entry.
    pub(super) fn new(number: EntryNo) -> Self {
        Self {
            entries: vec![WindowEntry {
                number,
                parent: 0,
                depends_on: 0,
                kind: WindowEntryKind::Entry,
                may_start: true,
            }],
            above: 0,
            chain_end: Some(0),
            has_client: false,
            follows_kept_entries: false,
            is_stale: false,
            full_at: 2 * MIN_KEPT_ENTRIES,
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<WindowEntry>()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the numbers of the entries in the index.
    pub(super) fn numbers(&self) -> impl Iterator<Item = EntryNo> + '_ {
        self.entries.iter().map(|entry| entry.number)
    }

    pub(super) fn first(&self) -> EntryNo {
        self.entries[0].number
    }

    pub(super) fn kind(&self, place: u32) -> WindowEntryKind {
        self.entries[place as usize].kind
    }

    /// Returns the number of path entries before the window.
    pub(super) fn above(&self) -> usize {
        self.above
    }

    pub(super) fn start_at(&mut self, above: usize) {
        self.above = above;
    }

    pub(super) fn follow_kept_entries(&mut self, follows: bool) {
        self.follows_kept_entries = follows;
    }

    pub(super) fn compare_with_client(&mut self) {
        self.has_client = true;
    }

    pub(super) fn has_pin(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.kind == WindowEntryKind::Pin)
    }

    pub(super) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Returns the place of the entry with this uuid. Most name one of the last.
    pub(super) fn place(&self, id: Id, index: &Index) -> Option<u32> {
        let number = index.with_uuid(id).next()?;
        let found = self
            .entries
            .binary_search_by_key(&number, |entry| entry.number);
        found.ok().map(|place| place as u32)
    }

    /// Returns the place of the last entry.
    pub(super) fn last_entry(&self) -> u32 {
        let is_entry = |entry: &WindowEntry| entry.kind == WindowEntryKind::Entry;
        let last = self.entries.iter().rposition(is_entry);
        last.unwrap_or_default() as u32
    }

    /// Returns the last place that shares `key`, if it is near the end.
    pub(super) fn last_with(&self, key: ConnectionKey, index: &Index) -> Option<u32> {
        let has_it = |(_, entry): &(usize, &WindowEntry)| {
            let entry = index.entry(entry.number);
            connection_keys(&entry).any(|other| other == key)
        };
        let mut last = self.entries.iter().enumerate().rev().take(MAX_WINDOW_LEN);
        last.find(has_it).map(|(place, _)| place as u32)
    }

    /// Returns whether the path only grows by this line, if at all: the window is a chain, and the
    /// line continues it or says that it ends here.
    pub(super) fn is_chain_to(&self, entry: &WindowEntry) -> bool {
        !self.is_stale
            && self
                .chain_end
                .is_some_and(|end| self.above_progress(entry.parent) == end)
    }

    /// Returns the place, or that of the entry above a progress line.
    fn above_progress(&self, mut place: u32) -> u32 {
        while self.entries[place as usize].kind == WindowEntryKind::Progress {
            place = self.entries[place as usize].parent;
        }
        place
    }

    pub(super) fn push(&mut self, entry: WindowEntry) {
        let is_chain = self.is_chain_to(&entry);
        let place = self.entries.len() as u32;
        self.entries.push(entry);
        match entry.kind {
            // Nothing is below it yet.
            WindowEntryKind::Progress => {}
            WindowEntryKind::Entry if is_chain => self.chain_end = Some(place),
            WindowEntryKind::Pin if is_chain => {}
            WindowEntryKind::Entry | WindowEntryKind::Pin => {
                self.chain_end = None;
                self.is_stale = true;
            }
        }
    }

    /// Returns the path of the window by the tree of its entries alone; `None` if the client's
    /// differs where it has to be the same.
    pub(super) fn walk(&mut self, index: &Index) -> Option<ConversationPath> {
        let excerpt = index.excerpt(self.numbers());
        let tree_of =
            |policy| Tree::new(&excerpt, policy).after_kept_entries(self.follows_kept_entries);
        let tree = tree_of(Policy::Recover);
        let mut path = tree.path();
        let first = path.entries.first().map(PathEntry::entry_no);
        if first != Some(EntryNo::default()) || tree.client_path().is_some() {
            return None;
        }
        if self.has_client {
            let client = tree_of(Policy::Vendor).path();
            let numbers = |path: &ConversationPath| -> Vec<EntryNo> {
                path.entries.iter().map(PathEntry::entry_no).collect()
            };
            if client.leaf != path.leaf || numbers(&client) != numbers(&path) {
                return None;
            }
        }
        let number = |place: EntryNo| self.entries[place.get()].number;
        for entry in &mut path.entries {
            *entry = entry.renumbered(number(entry.entry_no()));
        }
        path.leaf = path.leaf.map(number);
        self.is_stale = false;
        Some(path)
    }

    /// Moves the start of a long window down the path, to the last message but some that what
    /// follows it does not reach beyond.
    pub(super) fn advance(&mut self, path: &[PathEntry]) {
        if self.entries.len() < self.full_at {
            return;
        }
        let on_path = &path[self.above..];
        if let Some(start) = self.last_start(on_path) {
            let number = self.entries[start].number;
            let place = on_path.iter().position(|entry| entry.entry_no() == number);
            self.above += place.unwrap_or_default();
            self.entries.drain(..start);
            let moved = start as u32;
            for entry in &mut self.entries {
                entry.parent = entry.parent.saturating_sub(moved);
                entry.depends_on = entry.depends_on.saturating_sub(moved);
            }
            self.find_chain();
        }
        self.full_at = 2 * self.entries.len().max(MIN_KEPT_ENTRIES);
    }

    /// Returns the last place where the window can start.
    fn last_start(&self, on_path: &[PathEntry]) -> Option<usize> {
        // The path visits the first part of the window before the second one: of each length, the
        // largest number before and the smallest after.
        let mut reached = u32::MAX;
        let mut place_on_path = on_path.len();
        let mut least_after: Option<EntryNo> = None;
        for place in (1..self.entries.len()).rev() {
            let entry = self.entries[place];
            while place_on_path > 0 && on_path[place_on_path - 1].entry_no() > entry.number {
                place_on_path -= 1;
                let number = on_path[place_on_path].entry_no();
                least_after = Some(least_after.map_or(number, |least| least.min(number)));
            }
            let is_on_path = place_on_path > 0
                && on_path[place_on_path - 1].entry_no() == entry.number
                && least_after.is_none_or(|least| least > entry.number);
            let starts = is_on_path
                && entry.may_start
                && reached >= place as u32
                && self.entries.len() - place >= MIN_KEPT_ENTRIES;
            if starts && self.pins_lead_past(place, on_path, place_on_path - 1) {
                return Some(place);
            }
            reached = reached.min(entry.depends_on);
        }
        None
    }

    /// Returns whether the last pin before `place` names an entry of the path there.
    fn pins_lead_past(&self, place: usize, on_path: &[PathEntry], above: usize) -> bool {
        let is_pin = |entry: &&WindowEntry| entry.kind == WindowEntryKind::Pin;
        if self.entries[place..].iter().any(|entry| is_pin(&entry)) {
            return true;
        }
        let Some(pin) = self.entries[..place].iter().rfind(is_pin) else {
            return true;
        };
        let named = self.entries[pin.parent as usize].number;
        on_path[..above]
            .iter()
            .any(|entry| entry.entry_no() == named && entry.via == Via::PARENT)
    }

    /// Finds out whether the entries are a chain.
    fn find_chain(&mut self) {
        let mut end = 0;
        for place in 1..self.entries.len() {
            let entry = self.entries[place];
            if entry.kind == WindowEntryKind::Progress {
                continue;
            }
            if self.above_progress(entry.parent) != end {
                self.chain_end = None;
                return;
            }
            if entry.kind == WindowEntryKind::Entry {
                end = place as u32;
            }
        }
        self.chain_end = Some(end);
    }
}
