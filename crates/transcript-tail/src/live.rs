//! The conversation of a followed file, and the changes of it by each line.
//!
//! Leaf and path are those of [`LiveConversation`]. After a line this module compares the path with
//! the one before, and reads what the line means for calls and the turn.

mod known_path;
mod turn;

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use transcript_format::kind::{EntryKind, Link};
use transcript_format::lines::Framed;
use transcript_format::scan::{Envelope, Scanner};
use transcript_reader::{EntryNo, EntryRef, Id, Index, LiveConversation, LiveState};

use crate::change::{ChangeKind, ConversationChange};
use crate::event::{EventKind, FollowedEntry};
use known_path::{KnownPath, is_entry};
use turn::{TurnLine, TurnTracker, TurnUpdate};

/// The maximum number of entries that may be linked again after any line: those of the window around calls in
/// parallel.
const MAX_CHEAP_ENTRIES: usize = 128;

/// The budget of entries that may be linked again before the end of the available bytes is reached: a number,
/// and some for each line. Sessions of usual length never use it up. In a long file in which many
/// lines depend on everything before them, it makes the work grow with its length and no faster.
const INITIAL_BUDGET: usize = 1 << 18;
const BUDGET_PER_LINE: usize = 4;

/// An entry of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveEntry {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its uuid, or the text in place of one.
    pub uuid: Option<Box<str>>,
}

/// The conversation in a followed file.
///
/// Leaf and path are those that policy `recover` finds in the lines so far
/// ([`LiveConversation`]), whatever the file.
///
/// # What is not a move
///
/// [`ChangeKind::Moved`] is emitted when with a message or a pin the last message of the path leaves
/// it, or one comes back below it that had left the path. Parallel lines of one answer, results below their own
/// calls, attachments, system and progress lines outside the chain, and continuing after a compaction
/// are not moves, although [`Self::leaf`] may change with each of them.
///
/// # Turns
///
/// A prompt of a person begins a turn. The turn is over with an answer that has text, no open call
/// and a `stop_reason` other than `tool_use` and `pause_turn`. Where clients write `null` as the
/// reason, it is over with the `stop_hook_summary`, `turn_duration` or `last-prompt` line after the
/// answer, else with the next prompt. It is also over with an interrupt or an API error. The end is
/// emitted once; if another answer follows without a prompt, because a hook let the model continue,
/// its end is emitted again.
///
/// # Cost
///
/// Following takes constant time for each line of an undamaged conversation. A line that depends on
/// distant ones, such as a rewind to an old message or a line after a missing parent, takes the time
/// of linking all entries. If a long file has many of these, not all of them are linked at once:
/// their changes are reported with a later entry, at the latest with the last one that is available.
/// This state is always exact.
///
/// Memory: that of a [`LiveConversation`], 1 byte for each entry and 4 for each on the path.
#[derive(Clone, Copy, Debug)]
pub struct ConversationState<'c> {
    state: LiveState<'c>,
    turn: &'c TurnTracker,
    memory: usize,
}

impl<'c> ConversationState<'c> {
    /// Returns the leaf of the conversation; `None` before the first message.
    #[must_use]
    pub fn leaf(&self) -> Option<LiveEntry> {
        let leaf = self.state.leaf?;
        Some(live_entry(&self.state.index.entry(leaf), self.state.index))
    }

    /// Returns the path, oldest first, as [`Tree::path`](transcript_reader::Tree::path) does.
    pub fn path(&self) -> impl ExactSizeIterator<Item = LiveEntry> + use<'c> {
        let (path, index) = (self.state.path, self.state.index);
        path.iter()
            .map(|entry| live_entry(&index.entry(entry.entry_no()), index))
    }

    /// Returns the ids of the calls of this turn that have no result, in the order in which they
    /// were opened.
    pub fn open_calls(&self) -> impl Iterator<Item = &'c str> + use<'c> {
        self.turn.open()
    }

    /// Returns whether no prompt waits for an answer: the last turn is over, or none has begun.
    #[must_use]
    pub fn is_turn_over(&self) -> bool {
        self.turn.is_over()
    }

    /// Returns the approximate memory use of the conversation, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }
}

fn live_entry(entry: &EntryRef<'_>, index: &Index) -> LiveEntry {
    LiveEntry {
        offset: entry.offset(),
        uuid: entry.uuid().map(|id| index.id_text(id).into()),
    }
}

/// The conversation of a followed file, which takes its lines one by one.
#[derive(Debug)]
pub(crate) struct FollowedConversation {
    live: LiveConversation,
    is_empty: bool,
    /// Lines were added since the last look at the path.
    is_stale: bool,
    /// The entries of these lines.
    lines: Vec<PendingLine>,
    /// Changes that no entry has reported yet.
    changes: Vec<ConversationChange>,
    known_path: KnownPath,
    turn: TurnTracker,
    tombstones: Tombstones,
    /// The number of entries that may still be linked again before the end of the available bytes.
    budget: usize,
}

/// An entry that may change the conversation.
#[derive(Debug)]
struct PendingLine {
    offset: u64,
    kind: LineKind,
}

#[derive(Debug)]
enum LineKind {
    /// A `last-prompt` line.
    Pin,
    Tombstone,
    Message(TurnLine),
    Other(TurnLine),
}

impl PendingLine {
    /// Returns whether the entry can move the conversation.
    fn can_move(&self) -> bool {
        matches!(self.kind, LineKind::Pin | LineKind::Message(_))
    }
}

impl FollowedConversation {
    /// Creates the conversation of an empty file.
    pub(crate) fn new(path: &Path, line_cap: usize) -> Self {
        Self {
            live: LiveConversation::new(path).line_cap(line_cap),
            is_empty: true,
            is_stale: false,
            lines: Vec::new(),
            changes: Vec::new(),
            known_path: KnownPath::default(),
            turn: TurnTracker::default(),
            tombstones: Tombstones::default(),
            budget: INITIAL_BUDGET,
        }
    }

    /// Returns whether there was no line yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Adds the next line of the file, whatever it contains. `envelope` is the scan of the whole
    /// line, unless it cannot be scanned.
    pub(crate) fn push(&mut self, framed: Framed<'_>, envelope: Option<&Envelope<'_>>) {
        (self.is_empty, self.is_stale) = (false, true);
        self.budget = self.budget.saturating_add(BUDGET_PER_LINE);
        self.live.push_scanned(framed, envelope);
    }

    /// Adds an entry of the last line.
    pub(crate) fn add(&mut self, offset: u64, entry: &Envelope<'_>, text: &str) {
        let kind = match entry.kind() {
            EntryKind::LastPrompt => LineKind::Pin,
            kind if kind.row().link == Link::Tombstones => LineKind::Tombstone,
            // Old clients link messages to progress lines, but none of them is part of a turn.
            EntryKind::Progress => return,
            kind if kind.is_message() => LineKind::Message(TurnLine::of(entry, text)),
            kind if kind.is_chain() => LineKind::Other(TurnLine::of(entry, text)),
            _ => return,
        };
        self.lines.push(PendingLine { offset, kind });
    }

    /// Forgets an entry of the last line, because it was added before the line was complete.
    pub(crate) fn forget(&mut self, offset: u64) {
        self.lines.retain(|line| line.offset != offset);
    }

    /// Reports the changes with the last of `events`, those of the line that was added last. Unless
    /// `is_last` says that no more lines are available now, changes that would take long to find
    /// stay for a later line.
    pub(crate) fn report(&mut self, is_last: bool, events: &mut VecDeque<EventKind>) {
        // Linking all entries after each line of a long file would take quadratic time. With more lines available, no
        // caller waits for the change yet.
        let cost = self.live.cost();
        if !is_last && cost > MAX_CHEAP_ENTRIES {
            if cost > self.budget {
                return;
            }
            self.budget -= cost;
        }
        self.settle();
        if self.changes.is_empty() {
            return;
        }
        let mut entries: Vec<_> = events.iter_mut().filter_map(entry_of).collect();
        let Some(last) = entries.len().checked_sub(1) else {
            return;
        };
        for change in self.changes.drain(..) {
            let own = entries
                .iter()
                .position(|entry| entry.offset == change.offset);
            // The line that made it may have been reported before, so that its change comes with a later one.
            entries[own.unwrap_or(last)].changes.push(change);
        }
    }

    /// Forgets the changes so far, because following starts here.
    pub(crate) fn start_here(&mut self) {
        self.settle();
        self.changes.clear();
    }

    /// Returns the index of the lines so far.
    pub(crate) fn index(&mut self) -> &Index {
        self.live.index()
    }

    /// Returns the state after the lines so far.
    pub(crate) fn state(&mut self) -> ConversationState<'_> {
        self.settle();
        ConversationState {
            memory: size_of::<Self>() + self.live.memory() + self.known_path.memory(),
            state: self.live.state(),
            turn: &self.turn,
        }
    }

    /// Finds the changes by the lines so far.
    fn settle(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let state = self.live.state();
        let index = state.index;
        let uuid = |entry: EntryRef<'_>| entry.uuid().map(|id| index.id_text(id).into());
        let uuid_of = |number: EntryNo| uuid(index.entry(number));
        // The path turned out to be that of a subagent or of another session, and so did the turn.
        if self.known_path.forget(&state) {
            self.turn = TurnTracker::default();
        }
        // Several lines can arrive at once. The last one that can move the conversation is taken as the cause.
        let mover = self.lines.iter().rev().find(|line| line.can_move());
        let mover = mover.map(|line| line.offset);
        let is_tombstone = |line: &PendingLine| matches!(line.kind, LineKind::Tombstone);
        let has_tombstone = self.lines.iter().any(is_tombstone);
        let moved = self
            .known_path
            .update(&state, mover.is_some(), has_tombstone);
        if let (Some(moved), Some(offset)) = (moved, mover) {
            self.changes.push(ConversationChange {
                offset,
                kind: ChangeKind::Moved {
                    from: moved.from.and_then(uuid_of),
                    fork: moved.fork.and_then(uuid_of),
                    to: state.leaf.and_then(uuid_of),
                },
            });
            let known_path = &self.known_path;
            self.turn.retain(|call| {
                let call = entry_at(index, call);
                call.is_some_and(|call| known_path.is_on_path(&call, index))
            });
        }
        for PendingLine { offset, kind } in self.lines.drain(..) {
            let Some(entry) = entry_at(index, offset) else {
                // Read together with the lines around it, it is not an entry.
                continue;
            };
            let (mut kinds, mut updates) = (Vec::new(), Vec::new());
            match kind {
                LineKind::Pin => self.turn.add_last_prompt(&mut updates),
                LineKind::Tombstone => {
                    for id in self.tombstones.add(&entry, index) {
                        self.known_path.restore(id, index);
                        self.turn.forget(|offset| {
                            let entry = entry_at(index, offset);
                            entry.is_some_and(|entry| entry.uuid() == Some(id))
                        });
                        let uuid = index.id_text(id).into();
                        kinds.push(ChangeKind::Tombstoned { uuid });
                    }
                }
                LineKind::Message(line) | LineKind::Other(line) => {
                    let counts = state.is_of_conversation(&entry);
                    if counts && !self.tombstones.is_repeated(&entry, index) {
                        if entry.is_boundary() {
                            let uuid = uuid(entry);
                            kinds.push(ChangeKind::Boundary { uuid });
                        }
                        self.turn.add(&entry, line, &mut updates);
                    }
                }
            }
            kinds.extend(updates.into_iter().map(|update| match update {
                TurnUpdate::Call(call) => call,
                TurnUpdate::Ended(offset) => {
                    let entry = offset.and_then(|offset| entry_at(index, offset));
                    let uuid = entry.and_then(uuid);
                    ChangeKind::TurnEnded { uuid }
                }
            }));
            let changes = kinds.into_iter();
            self.changes
                .extend(changes.map(|kind| ConversationChange { offset, kind }));
        }
    }
}

/// Returns whether an entry is a prompt of a person.
pub(crate) fn is_prompt(scanner: &mut Scanner, text: &str) -> bool {
    let entry = scanner.scan(text.as_bytes());
    entry.is_ok_and(|entry| matches!(TurnLine::of(&entry, text), TurnLine::Prompt))
}

fn entry_of(event: &mut EventKind) -> Option<&mut FollowedEntry> {
    match event {
        EventKind::Entry(entry) => Some(entry),
        _ => None,
    }
}

/// The last tombstone of each uuid.
#[derive(Debug, Default)]
struct Tombstones(HashMap<Id, EntryNo>);

impl Tombstones {
    /// Adds a tombstone. Returns those uuids that it names which an entry has that was not tombstoned
    /// before.
    fn add(&mut self, tombstone: &EntryRef<'_>, index: &Index) -> Vec<Id> {
        let is_new = |id: &Id| {
            let before = self.0.insert(*id, tombstone.number());
            let earlier = index.with_uuid(*id);
            let last = earlier
                .take_while(|number| *number < tombstone.number())
                .filter(|number| is_entry(&index.entry(*number)))
                .last();
            last.is_some_and(|last| before.is_none_or(|before| before < last))
        };
        tombstone.tombstones().filter(is_new).collect()
    }

    /// Returns whether an earlier line is the same entry. One that was tombstoned in between counts
    /// again.
    fn is_repeated(&self, entry: &EntryRef<'_>, index: &Index) -> bool {
        let Some(id) = entry.uuid() else {
            return false;
        };
        let tombstone = self.0.get(&id);
        let mut earlier = index
            .with_uuid(id)
            .take_while(|number| *number < entry.number())
            .filter(|number| tombstone.is_none_or(|tombstone| number > tombstone));
        earlier.any(|number| is_entry(&index.entry(number)))
    }
}

/// Returns the entry that starts at `offset`.
fn entry_at(index: &Index, offset: u64) -> Option<EntryRef<'_>> {
    let entry = |number: usize| index.entry(EntryNo::new(number));
    let (mut start, mut end) = (0, index.len());
    // Most often it is one of the last.
    let mut near = 1;
    while near < end && entry(end - near).offset() > offset {
        near *= 2;
    }
    start = start.max(end.saturating_sub(near));
    while start < end {
        let middle = start + (end - start) / 2;
        if entry(middle).offset() < offset {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    let found = (start < index.len()).then(|| entry(start))?;
    (found.offset() == offset).then_some(found)
}

#[cfg(test)]
mod tests {
    use transcript_format::lines::Framer;
    use transcript_reader::Source;
    use transcript_reader::{Policy, Tree};

    use super::*;

    fn user(uuid: usize, parent: Option<usize>) -> String {
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"message":{{"content":"And?"}}}}"#
        )
    }

    /// Follows lines of which more are available after each, and compares the state at the end with
    /// that of a load. Returns how often all entries were linked.
    fn rebuilds(count: usize, line: impl Fn(usize) -> String) -> u64 {
        let path = Path::new("session.jsonl");
        let mut live = FollowedConversation::new(path, usize::MAX);
        let (mut scanner, mut text) = (Scanner::new(), String::new());
        for number in 0..count {
            let start = text.len();
            text += &(line(number) + "\n");
            let mut framer = Framer::starting_at(start as u64, usize::MAX);
            let line = &text[start..];
            live.push(framer.next(&mut line.as_bytes()).unwrap(), None);
            if let Ok(envelope) = scanner.scan(line.trim_end().as_bytes()) {
                live.add(start as u64, &envelope, line.trim_end());
            }
            live.report(false, &mut VecDeque::new());
        }
        let during = live.live.full_rebuilds();
        let index = Index::load(&Source::from_bytes(text.into_bytes(), path)).unwrap();
        let expected = Tree::new(&index, Policy::Recover).path();
        let state = live.state().state;
        assert_eq!(state.leaf, expected.leaf);
        assert!(state.path == expected.entries);
        during
    }

    #[test]
    fn files_in_which_each_line_depends_on_all_are_linked_a_few_times() {
        const COUNT: usize = 20_000;
        let result = |at: usize| {
            format!(
                r#"{{"type":"user","uuid":"r{at}","parentUuid":"{at}","message":{{"content":[{{"type":"tool_result","tool_use_id":"c{at}"}}]}}}}"#
            )
        };
        let call = |at: usize| {
            let parent = at.saturating_sub(1);
            format!(
                r#"{{"type":"assistant","uuid":"{at}","parentUuid":"{parent}","message":{{"id":"m","content":[{{"type":"tool_use","id":"c{at}","name":"Read"}}]}}}}"#
            )
        };
        let pin = r#"{"type":"last-prompt","leafUuid":"0","explicit":true}"#;
        let cases: [(&str, &dyn Fn(usize) -> String); 8] = [
            // Two alternating branches: each entry moves the path.
            ("turns", &|at| user(at, at.checked_sub(2))),
            // Every entry is a child of the first one.
            ("fan", &|at| user(at, (at > 0).then_some(0))),
            ("every parent is missing", &|at| user(at, Some(at + COUNT))),
            ("one parent is missing", &|at| {
                user(at, Some(at.checked_sub(1).unwrap_or(COUNT)))
            }),
            // Each parent is written right after its child.
            ("early", &|at| user(at ^ 1, (at ^ 1).checked_sub(1))),
            // Every other line tombstones the entry before it.
            ("tombstoned", &|at| match at % 2 {
                0 => user(at, at.checked_sub(2)),
                _ => format!(r#"{{"type":"transcriptEngine","tombstone":"{}"}}"#, at - 1),
            }),
            ("pins", &|at| match at % 2 {
                0 => user(at, at.checked_sub(2)),
                _ => pin.to_owned(),
            }),
            ("parallel", &|at| {
                if at < COUNT / 2 {
                    call(at)
                } else {
                    result(at - COUNT / 2)
                }
            }),
        ];
        for (name, line) in cases {
            let rebuilds = rebuilds(COUNT, line);
            println!("{name}: all entries were linked {rebuilds} times");
            assert!(rebuilds < 1_000, "{name}: {rebuilds}");
        }
        // A conversation without damage.
        assert!(rebuilds(COUNT, |at| user(at, at.checked_sub(1))) < 5);
    }
}
