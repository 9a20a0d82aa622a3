//! The path of a conversation whose file grows.
//!
//! The path is always the one that [`Tree::path`] finds. To find it again after each line would
//! take the time of the whole file, so the tree is only built of the last entries where they do not
//! depend on the others: the *window*. It starts with a message on the path; each later entry is
//! linked to an entry in the window, and the window shares no uuid, message or call with the
//! entries before it. No rule of the tree connects two such parts, except those that an entry can
//! trigger from outside: a boundary, a tombstone, a repeated uuid, a missing parent, another
//! session, a pin to an entry before the window. After any of these the tree of all entries decides
//! where the next window starts.
//!
//! While the window is a chain, the path is the chain, and no tree is needed.

mod window;

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::path::Path;

use hashbrown::HashTable;
use transcript_format::kind::EntryKind;
use transcript_format::lines::Framed;
use transcript_format::scan::{Envelope, Flags};

use crate::growing::GrowingIndex;
use crate::index::{EntryMarks, EntryNo, EntryRef, Id, Index};
use crate::path::{ConversationPath, PathEntry, Via};
use crate::tree::decision::Decision;
use crate::tree::{Policy, Tree, has_usable_body};

use window::{
    ConnectionKey, MAX_WINDOW_LEN, Window, WindowEntry, WindowEntryKind, connection_keys,
};

/// The number of entries at the end among which the start of a window is searched for.
const MAX_SEARCHED_ENTRIES: usize = 256;

/// A conversation and its index, kept up to date line by line under [`Policy::Recover`].
///
/// Leaf and path equal those of [`Tree::path`] for a load of the lines so far, at every moment and
/// for any file. They are brought up to date when they are asked for: in constant time for the
/// lines of an undamaged conversation, else in the time of one load without reading the file. Until
/// then a line costs only its place in the index.
///
/// Takes the memory of the index, and for each entry up to 8 bytes for the path and 7 for each
/// message and call.
///
/// ```
/// use std::path::Path;
/// use transcript_format::lines::Framer;
/// use transcript_reader::LiveConversation;
///
/// let mut live = LiveConversation::new(Path::new("session.jsonl"));
/// let mut framer = Framer::new();
/// let mut rest = &br#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"content":"And?"}}
/// "#[..];
/// while let Some(line) = framer.next(&mut rest) {
///     live.push(line);
/// }
/// assert_eq!(live.leaf().map(|leaf| leaf.get()), Some(0));
/// assert_eq!(live.path().len(), 1);
/// ```
#[derive(Debug)]
pub struct LiveConversation {
    lines: GrowingIndex,
    /// The session in the file name.
    stem: Option<Box<str>>,
    tracker: EntryTracker,
    path: Vec<PathEntry>,
    leaf: Option<EntryNo>,
    /// `None` when the tree of all entries has to decide.
    window: Option<Window>,
    /// Whether `path` is that of the entries before `tracker.seen`.
    is_current: bool,
    /// The path contains entries that later lines can change.
    has_open: bool,
    /// The number of entries at the start of the path that are unchanged since the last [`LiveState`].
    unchanged: usize,
    /// The entries of other sessions that no link connects with this one, at the last rebuild.
    foreign: Vec<EntryNo>,
    full_rebuilds: u64,
    has_missing_parents: bool,
    /// The last [`GrowingIndex::renames`].
    renames: u64,
}

/// A conversation after its lines so far.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LiveState<'l> {
    /// The entries of the file.
    pub index: &'l Index,
    /// The number of entries that later lines cannot change ([`GrowingIndex::closed_len`]).
    pub closed_len: usize,
    /// The entry that ends the conversation; `None` when there is none.
    pub leaf: Option<EntryNo>,
    /// The entries of the conversation, oldest first.
    pub path: &'l [PathEntry],
    /// The number of entries at the start of the path that are unchanged since the last state.
    pub unchanged: usize,
    /// Whether sidechain entries are another conversation, and not that of the file.
    is_main: bool,
    foreign: &'l [EntryNo],
}

impl LiveState<'_> {
    /// Returns whether an entry belongs to the conversation, on the path or on another branch.
    #[must_use]
    pub fn is_of_conversation(&self, entry: &EntryRef<'_>) -> bool {
        let is_entry = entry.kind().is_in_tree();
        is_entry
            && has_usable_body(entry)
            && !self.is_of_agent(entry)
            && self.foreign.binary_search(&entry.number()).is_err()
    }

    /// Returns whether an entry belongs to a subagent in the file of another conversation.
    #[must_use]
    pub fn is_of_agent(&self, entry: &EntryRef<'_>) -> bool {
        self.is_main && entry.flags().contains(Flags::SIDECHAIN)
    }
}

impl LiveConversation {
    /// Returns the conversation of an empty file with this name.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        Self {
            lines: GrowingIndex::new(path),
            stem: stem.map(Into::into),
            tracker: EntryTracker::default(),
            path: Vec::new(),
            leaf: None,
            window: None,
            is_current: true,
            has_open: false,
            unchanged: 0,
            foreign: Vec::new(),
            full_rebuilds: 0,
            has_missing_parents: false,
            renames: 0,
        }
    }

    /// Sets the limit of the [`Framer`](transcript_format::lines::Framer) that the lines come from.
    #[must_use]
    pub fn line_cap(mut self, bytes: usize) -> Self {
        self.lines = self.lines.line_cap(bytes);
        self
    }

    /// Appends the next line of the file. A line without a newline is replaced by the next one,
    /// which must start at the same offset.
    pub fn push(&mut self, line: Framed<'_>) {
        self.push_scanned(line, None);
    }

    /// Appends the next line of the file as [`Self::push`] does. `envelope` is the scan of the whole
    /// line, unless it cannot be scanned.
    pub fn push_scanned(&mut self, line: Framed<'_>, envelope: Option<&Envelope<'_>>) {
        self.lines.push_scanned(line, envelope);
    }

    /// Returns the index of the lines so far.
    pub fn index(&mut self) -> &Index {
        self.lines.index()
    }

    /// Returns the number of the entry that ends the conversation; `None` when there is none.
    pub fn leaf(&mut self) -> Option<EntryNo> {
        self.update();
        self.leaf
    }

    /// Returns the entries of the conversation, oldest first.
    pub fn path(&mut self) -> &[PathEntry] {
        self.update();
        &self.path
    }

    /// Returns index, leaf and path, and how much of the path is that of the last call.
    pub fn state(&mut self) -> LiveState<'_> {
        self.update();
        let closed_len = self.lines.closed_len();
        LiveState {
            index: self.lines.index(),
            closed_len,
            leaf: self.leaf,
            unchanged: std::mem::replace(&mut self.unchanged, self.path.len()),
            path: &self.path,
            is_main: self.tracker.is_main,
            foreign: &self.foreign,
        }
    }

    /// Returns the number of entries that have to be linked to bring leaf and path up to date: none
    /// for lines that continue the conversation, some dozens around calls in parallel, all of them
    /// when they depend on each other.
    pub fn cost(&mut self) -> usize {
        if self.lines.has_open() {
            return self.lines.closed_len();
        }
        self.account();
        match &self.window {
            _ if !self.is_current || self.has_open => self.lines.closed_len(),
            Some(window) if window.is_stale() => window.len(),
            _ => 0,
        }
    }

    /// Returns whether a parent is missing that another file of the session may have; see
    /// [`Tree::with_others`].
    pub fn has_missing_parents(&mut self) -> bool {
        self.update();
        self.has_missing_parents
    }

    /// Returns how often the tree of all entries was built.
    #[must_use]
    pub fn full_rebuilds(&self) -> u64 {
        self.full_rebuilds
    }

    /// Returns the approximate memory use, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.lines.memory()
            + self.path.capacity() * size_of::<PathEntry>()
            + self.tracker.memory()
            + self.window.as_ref().map_or(0, Window::memory)
    }

    /// Finds leaf and path after the lines since the last call.
    fn update(&mut self) {
        self.account();
        let has_open = self.lines.index().len() > self.lines.closed_len();
        if has_open || self.has_open || !self.is_current {
            return self.rebuild(has_open);
        }
        let Some(window) = &mut self.window else {
            return;
        };
        if window.is_stale() {
            match window.walk(self.lines.index()) {
                Some(found) => {
                    let above = window.above() + 1;
                    let kept = common(&self.path[above..], &found.entries[1..]);
                    self.unchanged = self.unchanged.min(above + kept);
                    self.path.truncate(above);
                    self.path.extend_from_slice(&found.entries[1..]);
                    self.leaf = found.leaf;
                    window.advance(&self.path);
                }
                None => self.rebuild(false),
            }
        }
    }

    /// Accounts for the lines since the last call: appends those that continue a chain to the path,
    /// and finds out what the others affect.
    fn account(&mut self) {
        self.lines.index();
        let closed = self.lines.closed_len();
        let renames = self.lines.renames();
        // A boundary names entries by ids that a fork replaced: now they mean other entries, or none.
        if std::mem::replace(&mut self.renames, renames) != renames {
            self.window = None;
            self.is_current = false;
        }
        let index = self.lines.index();
        while self.tracker.seen < closed {
            let entry = index.entry(EntryNo::new(self.tracker.seen));
            let effect = self.tracker.add(&entry, index, self.window.as_ref());
            match (effect, &mut self.window) {
                (Effect::Nothing, Some(_)) => {}
                (Effect::InWindow(entry), Some(window)) if window.is_chain_to(&entry) => {
                    window.push(entry);
                    if entry.kind == WindowEntryKind::Entry {
                        self.path.push(PathEntry::new(entry.number, Via::PARENT));
                        self.leaf = Some(entry.number);
                    }
                    window.advance(&self.path);
                }
                (Effect::InWindow(entry), Some(window)) if window.len() < MAX_WINDOW_LEN => {
                    window.push(entry);
                }
                // The window is too long, there is none, or the entry depends on entries outside of it.
                (..) => {
                    self.window = None;
                    self.is_current = false;
                }
            }
        }
    }

    /// Builds the tree of all entries.
    fn rebuild(&mut self, has_open: bool) {
        self.full_rebuilds += 1;
        let index = self.lines.index();
        let tree = Tree::new(index, Policy::Recover);
        let path = tree.path();
        self.has_missing_parents = !tree.missing_parents().is_empty();
        self.tracker.is_main = !tree.is_all_sidechain;
        self.tracker.is_stream_form = tree.is_stream_form();
        self.tracker.sessions = index.sessions().count();
        self.tracker.own = index.own_session().map(Into::into);
        let is_named = self.tracker.own == self.stem;
        self.window = None;
        // Open lines may become other entries; with several sessions, the next line can change which one is that of the file.
        if !has_open && (is_named || self.tracker.sessions < 2) {
            self.window = find_window(&tree, &path, &self.tracker);
        }
        let is_foreign = |entry: &EntryRef<'_>| {
            let node = tree.node(entry.number());
            node.is_some_and(|node| tree.is_foreign(node))
        };
        self.foreign.clear();
        if !tree.recovery.foreign().is_empty() {
            let foreign = index.entries().filter(is_foreign);
            self.foreign.extend(foreign.map(|entry| entry.number()));
        }
        self.unchanged = self.unchanged.min(common(&self.path, &path.entries));
        self.path = path.entries;
        self.leaf = path.leaf;
        self.is_current = true;
        self.has_open = has_open;
    }
}

/// Returns how many entries at the start of two paths are the same.
fn common(one: &[PathEntry], other: &[PathEntry]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

/// Returns a window at the end of the file; `None` when the last entries depend on others.
fn find_window(tree: &Tree<'_>, path: &ConversationPath, tracker: &EntryTracker) -> Option<Window> {
    let index = tree.index();
    let is_of_client = |decision: &Decision| matches!(decision, Decision::Client { .. });
    // The evidence for a missing parent is in the whole file: which entries continue elsewhere, which
    // is the newest, what the client shows. A later line can change it, however far up the gap is.
    let depends_on_all = tree.recovery.has_lost_parents()
        || path.decisions.iter().any(is_of_client)
        || !tree.recovery.foreign().is_empty();
    if depends_on_all {
        return None;
    }
    let is_sidechain = |entry: &PathEntry| {
        let node = tree.node(entry.entry_no());
        node.is_some_and(|node| tree.is_sidechain(node))
    };
    // Then entries of subagents matter as well, and these are not in a window.
    if path.entries.iter().any(is_sidechain) {
        return None;
    }
    let is_own = |entry: EntryRef<'_>| {
        tree.node(entry.number()).is_some() && entry.session() == tracker.own.as_deref()
    };
    if tracker.sessions > 1 && !index.entries().any(is_own) {
        return None;
    }
    // Keys that entries before the searched ones have: an entry with such a key depends on one that no window contains.
    let from = index.len().saturating_sub(MAX_SEARCHED_ENTRIES);
    let last: HashSet<ConnectionKey> = (from..index.len())
        .map(EntryNo::new)
        .flat_map(|number| connection_keys(&index.entry(number)).collect::<Vec<_>>())
        .collect();
    let before = (0..from).map(EntryNo::new);
    let before =
        before.flat_map(|number| connection_keys(&index.entry(number)).collect::<Vec<_>>());
    let mut outside: HashSet<ConnectionKey> = before.filter(|key| last.contains(key)).collect();
    let mut window: Option<Window> = None;
    for number in (from..index.len()).map(EntryNo::new) {
        let entry = index.entry(number);
        let is_shared = |key: &ConnectionKey| outside.contains(key);
        let is_independent = !connection_keys(&entry).any(|key| is_shared(&key));
        let effect = tracker.effect(&entry, index, window.as_ref());
        match (effect, &mut window) {
            (Effect::Nothing, _) => {
                if tracker.is_main && entry.flags().contains(Flags::SIDECHAIN) {
                    outside.extend(connection_keys(&entry));
                }
            }
            (Effect::InWindow(new), Some(window)) if is_independent => window.push(new),
            (..) => {
                // It ends the window before it, and may start the next one.
                for known in window.take().iter().flat_map(Window::numbers) {
                    outside.extend(connection_keys(&index.entry(known)));
                }
                let is_independent = !connection_keys(&entry).any(|key| outside.contains(&key));
                if is_independent && tracker.may_start(&entry) {
                    window = Some(Window::new(number));
                } else {
                    outside.extend(connection_keys(&entry));
                }
            }
        }
    }
    let mut window = window?;
    let first = window.first();
    let above = path
        .entries
        .iter()
        .rposition(|entry| entry.entry_no() == first)?;
    window.start_at(above);
    window.follow_kept_entries(tree.kept_entries().is_some());
    let has_pin = window.has_pin();
    let is_equal = |found: &ConversationPath, path: &ConversationPath, above: usize| {
        let numbers = |entries: &[PathEntry]| -> Vec<EntryNo> {
            entries.iter().map(PathEntry::entry_no).collect()
        };
        numbers(&found.entries) == numbers(&path.entries[above..])
            && (has_pin || pin_stays(tree, path, above, tracker))
    };
    if let Some(client) = tree.client_path() {
        let goes_by_time = |decision: &Decision| {
            matches!(
                decision,
                Decision::Relink { .. } | Decision::Truncated { .. }
            )
        };
        let mut entries = client.entries.iter();
        let above = entries.rposition(|entry| entry.entry_no() == first)?;
        window.compare_with_client();
        let found = window.walk(index)?;
        if client.decisions.iter().any(goes_by_time) || !is_equal(&found, client, above) {
            return None;
        }
    }
    // The window is trusted only if it gives the same path as the whole tree now; from then on it is walked alone.
    let found = window.walk(index)?;
    let is_whole = is_equal(&found, path, above) && found.leaf == path.leaf;
    is_whole.then_some(window)
}

/// Returns whether the last pin, which is before the window, leads to the window whatever comes: it
/// is not in force, or names an entry of the path before the window.
fn pin_stays(
    tree: &Tree<'_>,
    path: &ConversationPath,
    above: usize,
    tracker: &EntryTracker,
) -> bool {
    let Some((pin, id)) = tracker.last_pin else {
        return true;
    };
    let clears = |boundary: EntryNo| {
        let entry = tree.index().entry(boundary);
        let is_first = |id| is_first(tree.index(), id, entry.number());
        boundary > pin && tree.node(entry.number()).is_some() && entry.uuid().is_some_and(is_first)
    };
    if tracker.last_boundary.is_some_and(clears) {
        return true;
    }
    let Some(named) = tree.find_live(id) else {
        return true;
    };
    let named = tree.entry_no_of(named);
    let mut before = path.entries[..above].iter();
    before.any(|entry| entry.entry_no() == named && !entry.via.contains(Via::SIBLING))
}

/// The effect of a new entry on the path.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Nothing, whatever the other entries are.
    Nothing,
    /// It belongs to the window.
    InWindow(WindowEntry),
    /// The tree of all entries has to decide.
    Global,
}

/// The state that all entries so far have in common; tracks the ids and keys that a new entry can refer to.
#[derive(Debug, Default)]
struct EntryTracker {
    /// The number of entries that are accounted for.
    seen: usize,
    /// The ids that a line names and no line before has.
    awaited: HashSet<Id>,
    /// The connection keys of the entries of the conversation, and of those of subagents in the same file.
    main: Fingerprints,
    side: Fingerprints,
    last_pin: Option<(EntryNo, Id)>,
    last_boundary: Option<EntryNo>,
    /// Whether the file is that of a conversation, not of a subagent.
    is_main: bool,
    /// Whether the entries are linked in file order.
    is_stream_form: bool,
    sessions: usize,
    own: Option<Box<str>>,
}

impl EntryTracker {
    /// Adds the next entry, and returns its effect.
    fn add(&mut self, entry: &EntryRef<'_>, index: &Index, window: Option<&Window>) -> Effect {
        self.seen += 1;
        let mut is_global = index.sessions().count() != self.sessions;
        if let Some(id) = entry.uuid() {
            let is_awaited = !self.awaited.is_empty() && self.awaited.remove(&id);
            is_global |= is_awaited | !is_first(index, id, entry.number());
        }
        let is_missing = |id: &Id| {
            let first = index.with_uuid(*id).next();
            first.is_none_or(|first| first >= entry.number())
        };
        let named = match entry.kind() {
            EntryKind::Summary => None,
            EntryKind::LastPrompt => entry.leaf_uuid(),
            _ => entry.parent(),
        };
        let all_named = named.into_iter().chain(entry.tombstones());
        self.awaited.extend(all_named.filter(is_missing));
        if entry.kind() == EntryKind::LastPrompt
            && let Some(leaf) = named
        {
            self.last_pin = Some((entry.number(), leaf));
        }
        if let Some(boundary) = index.boundary(entry.number()) {
            self.last_boundary = Some(entry.number());
            let ids = boundary.ids().chain(boundary.logical_parent);
            self.awaited.extend(ids.filter(is_missing));
        }
        let effect = if is_global {
            Effect::Global
        } else {
            self.effect_of_new(entry, index, window)
        };
        let side = self.is_main && entry.flags().contains(Flags::SIDECHAIN);
        let keys = if side { &mut self.side } else { &mut self.main };
        connection_keys(entry).for_each(|key| keys.insert(&key));
        effect
    }

    /// As [`Self::effect`], also for connection keys that the entry has in common with entries before the window.
    fn effect_of_new(
        &self,
        entry: &EntryRef<'_>,
        index: &Index,
        window: Option<&Window>,
    ) -> Effect {
        let effect = self.effect(entry, index, window);
        let is_outside = |key: ConnectionKey| match effect {
            Effect::InWindow(_) => {
                self.side.contains(&key)
                    || self.main.contains(&key)
                        && window.is_none_or(|window| window.last_with(key, index).is_none())
            }
            Effect::Nothing => self.main.contains(&key),
            Effect::Global => true,
        };
        if connection_keys(entry).any(is_outside) {
            Effect::Global
        } else {
            effect
        }
    }

    /// Returns the effect that an entry has by its own fields and links.
    fn effect(&self, entry: &EntryRef<'_>, index: &Index, window: Option<&Window>) -> Effect {
        let kind = match entry.kind() {
            EntryKind::LastPrompt if entry.leaf_uuid().is_some() => WindowEntryKind::Pin,
            EntryKind::TranscriptEngine if entry.tombstones().next().is_some() => {
                return Effect::Global;
            }
            EntryKind::Progress => WindowEntryKind::Progress,
            kind if kind.is_chain() => WindowEntryKind::Entry,
            _ => return Effect::Nothing,
        };
        let is_damaged = entry
            .marks()
            .intersects(EntryMarks::SALVAGED | EntryMarks::GLUED);
        // Damage lets every repair apply, and a boundary decides what the path is for all entries before it.
        if is_damaged || entry.is_boundary() {
            return Effect::Global;
        }
        // Of a line that does not say its session, the form is that of the file, and the session that of
        // the line before it.
        let is_unmarked = entry.flags().contains(Flags::PARENT_ABSENT) && entry.session().is_none();
        let is_as_file = entry.is_of_stream_form() == self.is_stream_form
            || self.is_stream_form && is_unmarked && self.sessions == 1
            || self.is_stream_form && entry.parent().is_some();
        // One line of another form changes the form of the file, and with it all links.
        if kind != WindowEntryKind::Pin && !is_as_file {
            return Effect::Global;
        }
        let named = entry.parent().or(entry.leaf_uuid());
        if kind != WindowEntryKind::Pin {
            let is_own = entry.session().is_none() || entry.session() == self.own.as_deref();
            let is_named = entry
                .uuid()
                .is_some_and(|id| is_first(index, id, entry.number()));
            // An entry that another line waits for closes a gap somewhere above; a repeated uuid moves an entry (FILE-7).
            if !is_own || !is_named || named.is_some_and(|id| self.awaited.contains(&id)) {
                return Effect::Global;
            }
            let is_side = entry.flags().contains(Flags::SIDECHAIN);
            if kind == WindowEntryKind::Entry && is_side && self.is_main {
                // An entry that goes with a message is on the path when that is, even so.
                let may_be_loose = entry.kind() != EntryKind::Assistant
                    && (entry.kind() != EntryKind::User || entry.flags().contains(Flags::META));
                let is_linked = self.is_stream_form || is_linked(entry, index);
                return if is_linked && !may_be_loose {
                    Effect::Nothing
                } else {
                    Effect::Global
                };
            }
            if !self.is_main && !is_side && entry.kind().is_message() {
                return Effect::Global;
            }
            if !has_usable_body(entry) {
                return Effect::Nothing;
            }
        }
        let follows = |window: &Window| {
            if self.is_stream_form && kind != WindowEntryKind::Pin && named.is_none() {
                Some(window.last_entry())
            } else {
                window.place(named?, index)
            }
        };
        let place = window.and_then(|window| Some((window, follows(window)?)));
        let Some((window, parent)) = place else {
            return match kind {
                // Nothing by itself, and what names it is not linked to the window.
                WindowEntryKind::Progress => Effect::Nothing,
                WindowEntryKind::Entry | WindowEntryKind::Pin => Effect::Global,
            };
        };
        let is_link = match window.kind(parent) {
            WindowEntryKind::Entry => true,
            // A pin to a progress line is ignored.
            WindowEntryKind::Progress => kind != WindowEntryKind::Pin,
            WindowEntryKind::Pin => false,
        };
        // With a summary, the rules of a compaction apply.
        if !is_link || entry.flags().contains(Flags::COMPACT_SUMMARY) {
            return Effect::Global;
        }
        let with = connection_keys(entry)
            .filter_map(|key| self.is_known(&key).then(|| window.last_with(key, index))?);
        let shares_with = with.min();
        Effect::InWindow(WindowEntry {
            number: entry.number(),
            parent,
            depends_on: shares_with.unwrap_or(u32::MAX).min(parent),
            kind,
            may_start: shares_with.is_none() && self.may_start(entry),
        })
    }

    fn is_known(&self, key: &ConnectionKey) -> bool {
        self.main.contains(key) || self.side.contains(key)
    }

    /// Returns whether a window can start with this entry: a message that begins something new.
    fn may_start(&self, entry: &EntryRef<'_>) -> bool {
        let flags = entry.flags();
        let is_new = match entry.kind() {
            EntryKind::Assistant => true,
            EntryKind::User => {
                entry.tools().is_empty()
                    && !flags
                        .intersects(Flags::COMPACT_SUMMARY | Flags::HAS_TOOL_RESULT | Flags::META)
            }
            _ => false,
        };
        let is_damaged = entry
            .marks()
            .intersects(EntryMarks::SALVAGED | EntryMarks::GLUED);
        is_new
            && !is_damaged
            && has_usable_body(entry)
            && entry.uuid().is_some()
            && !(self.is_main && flags.contains(Flags::SIDECHAIN))
    }

    fn memory(&self) -> usize {
        self.main.memory() + self.side.memory() + self.awaited.capacity() * (size_of::<Id>() + 1)
    }
}

fn is_first(index: &Index, id: Id, number: EntryNo) -> bool {
    index.with_uuid(id).next() == Some(number)
}

/// Returns whether an entry is a root, or its parent is an entry that nothing replaces.
fn is_linked(entry: &EntryRef<'_>, index: &Index) -> bool {
    let Some(parent) = entry.parent() else {
        return !entry
            .flags()
            .intersects(Flags::PARENT_ABSENT | Flags::PARENT_ODD);
    };
    let above = index
        .with_uuid(parent)
        .next()
        .map(|above| index.entry(above));
    above.is_some_and(|above| {
        let is_entry = above.kind().is_in_tree();
        above.number() < entry.number() && is_entry && has_usable_body(&above)
    })
}

/// A set of keys in about 7 bytes for each. It may take a key for another one: then the tree of all
/// entries decides where it need not.
#[derive(Debug, Default)]
struct Fingerprints {
    table: HashTable<u32>,
    keys: RandomState,
}

impl Fingerprints {
    fn of(&self, key: &impl Hash) -> u32 {
        (self.keys.hash_one(key) >> 32) as u32
    }

    /// Spreads a fingerprint over the bits that the table looks at.
    fn spread(print: &u32) -> u64 {
        u64::from(*print).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    fn insert(&mut self, key: &impl Hash) {
        let print = self.of(key);
        let same = |other: &u32| *other == print;
        self.table
            .entry(Self::spread(&print), same, Self::spread)
            .or_insert(print);
    }

    fn contains(&self, key: &impl Hash) -> bool {
        let print = self.of(key);
        let found = self
            .table
            .find(Self::spread(&print), |other| *other == print);
        found.is_some()
    }

    fn memory(&self) -> usize {
        self.table.allocation_size()
    }
}
