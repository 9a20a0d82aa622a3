//! The path of a conversation, kept up to date entry by entry.

mod tree;
mod turn;

use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::object::{Object, Raw};
use transcript_format::scan::{ContentKind, Envelope, Flags, Scanner, Text, ToolRole};

use tree::{Key, LiveTree, NONE, NewNode, NodeFlags, ParentLink, PreservedForm, PreservedSpec};
use turn::{TurnInput, TurnTracker, TurnUpdate};

/// A change of the conversation by an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationChange {
    /// The offset of the entry in the file.
    pub offset: u64,
    /// What changed.
    pub kind: ChangeKind,
}

/// The kind of a change. Uuids are those of entries; `None` for an entry that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The conversation continues at another place: after a rewind, the return from one, or a pin.
    /// Calls on the abandoned branch are no longer open.
    Moved {
        /// The previous leaf.
        from: Option<Box<str>>,
        /// The last entry that both paths have; `None` when the conversation starts over.
        fork: Option<Box<str>>,
        /// The new leaf.
        to: Option<Box<str>>,
    },
    /// The conversation before this entry was compacted.
    Boundary {
        /// The uuid of the boundary.
        uuid: Option<Box<str>>,
    },
    /// A tool was called, by the client or by the provider.
    CallOpened {
        /// The id of the call.
        id: Box<str>,
        /// The name of the tool.
        name: Option<Box<str>>,
    },
    /// An open call got its result.
    CallClosed {
        /// The id of the call.
        id: Box<str>,
    },
    /// An entry was tombstoned, together with the results of its calls, which are no longer open.
    Tombstoned {
        /// Its uuid.
        uuid: Box<str>,
    },
    /// The turn is over: the answer to the last prompt is complete, or was interrupted by the
    /// person or by an API error. Calls that have no result by then will get none.
    TurnEnded {
        /// The uuid of the last line of the answer; after an interruption, that of the interrupt or
        /// the error.
        uuid: Option<Box<str>>,
    },
}

/// An entry of the live path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveEntry {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its uuid, or the text in place of one.
    pub uuid: Option<Box<str>>,
}

/// The path of the conversation in a growing file.
///
/// Takes the entries of a file in order, and knows after each of them the leaf of the conversation
/// and the path to it. The rules are those of policy `recover` of the resume crate (areas LEAF and
/// COMPACT of `docs/client-behaviour.md`). If no link is damaged the result is the same: the last
/// tip or the pin; progress lines skipped; the entries that a compaction preserves after its
/// summary; tombstoned entries, sidechains and other sessions omitted.
///
/// # What is not a move
///
/// [`ChangeKind::Moved`] is emitted when a message or a pin ends the conversation outside the
/// descendants of the previous path. Parallel lines of one answer, results below their own calls,
/// attachments, system and progress lines outside the chain, and continuing after a compaction are
/// not moves, although [`Self::leaf`] may change with each of them.
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
/// # Damage
///
/// An entry whose parent is unknown keeps the path: it counts as a child of the leaf until its
/// parent arrives, and is not a move. Policy `recover` weighs the evidence for each parent and may
/// decide otherwise. A line with a known uuid only replaces the line to be read, unless it repeats
/// an entry that a compaction preserves after that compaction. Names of preserved entries that do
/// not exist are ignored, and a boundary that preserves entries has no parent. Links never form a
/// cycle: the one that would close it is ignored. A parent that is written more than 4096 lines
/// after its child is not found. The same limit applies to the results and attachments that a
/// tombstone also removes: they are found up to 4096 lines after the entry or, if a compaction
/// preserved it, after the compaction.
///
/// The tests compare leaf and path with the tree of the resume crate after every line, or after
/// many. Where no link is damaged they are the same: 14,467 prefixes of real and recorded sessions
/// and some 52,000 of generated ones. With damaged links, leaf or path differ for 1 of 491 prefixes
/// of real sessions, 38 of 508 of recorded sessions that were damaged on purpose, and one in five
/// of generated ones.
///
/// # Cost
///
/// Amortised constant time for each entry, plus the logarithm of its depth when it moves the path,
/// while a pin is in force, and after a first move. 64 bytes of memory for each entry: 48 for the
/// entry itself, the rest for a table and room to grow. Uuids are stored in 16 bytes, other ids as
/// keyed hashes of 16 bytes and as text. Open calls and unknown parents take more.
#[derive(Debug, Default)]
pub struct LivePath {
    scanner: Scanner,
    tree: LiveTree,
    pin: Option<Pin>,
    leaf: Option<u32>,
    /// The leaf that was last emitted.
    place: Option<u32>,
    /// The number of entries at the time of the last emitted move.
    moved_at: u32,
    turn: TurnTracker,
}

/// The last `last-prompt` line that names a leaf.
#[derive(Debug)]
struct Pin {
    leaf: Key,
    is_explicit: bool,
    /// The number of entries before it.
    at: u32,
    /// An entry follows it.
    is_followed: bool,
    /// The last entry after it that can be the leaf.
    last: Option<u32>,
    /// A compaction followed it.
    is_cleared: bool,
}

impl LivePath {
    /// Creates the path of an empty file. The session is the one that the first entry names.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Self::new`], for the file of the session with this id. Entries of this session count
    /// even if no link connects them with the entries of another session at the start of the file.
    #[must_use]
    pub fn of_session(id: &str) -> Self {
        let mut path = Self::default();
        let id = path.tree.hash(id.as_bytes());
        path.tree.own(id);
        path
    }

    /// Adds the next entry of the file, which starts at `offset`, and appends its changes to
    /// `changes` in this order: a move, a boundary, calls, the end of the turn. Text that is not a
    /// JSON object changes nothing.
    pub fn add(&mut self, offset: u64, text: &str, changes: &mut Vec<ConversationChange>) {
        let mut scanner = std::mem::take(&mut self.scanner);
        if let Ok(entry) = scanner.scan(text.as_bytes()) {
            let mut kinds = Vec::new();
            self.add_entry(offset, &entry, text, &mut kinds);
            changes.extend(
                kinds
                    .into_iter()
                    .map(|kind| ConversationChange { offset, kind }),
            );
        }
        self.scanner = scanner;
    }

    /// Returns whether no entry was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.tree.len() == 0
    }

    /// Returns the leaf of the conversation; `None` before the first message.
    #[must_use]
    pub fn leaf(&self) -> Option<LiveEntry> {
        self.leaf.map(|leaf| self.entry(leaf))
    }

    /// Returns the path, oldest first: the leaf and its ancestors up to a root or the boundary of a
    /// compaction. Walks all of it.
    #[must_use]
    pub fn path(&self) -> Vec<LiveEntry> {
        let mut path: Vec<_> = self.tree.walk(self.leaf.unwrap_or(NONE)).collect();
        path.reverse();
        path.into_iter().map(|node| self.entry(node)).collect()
    }

    /// Returns the ids of the calls of this turn that have no result, in the order in which they
    /// were opened.
    pub fn open_calls(&self) -> impl Iterator<Item = &str> {
        self.turn.open()
    }

    /// Returns whether no prompt waits for an answer: the last turn is over, or none has begun.
    #[must_use]
    pub fn is_turn_over(&self) -> bool {
        self.turn.is_over()
    }

    /// Returns the approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.tree.memory() + self.turn.memory()
    }

    fn entry(&self, node: u32) -> LiveEntry {
        LiveEntry {
            offset: self.tree.offset(node),
            uuid: self.tree.uuid(node),
        }
    }

    fn uuid(&self, node: Option<u32>) -> Option<Box<str>> {
        self.tree.uuid(node?)
    }

    fn add_entry(
        &mut self,
        offset: u64,
        entry: &Envelope<'_>,
        text: &str,
        changes: &mut Vec<ChangeKind>,
    ) {
        match entry.kind() {
            EntryKind::LastPrompt => {
                self.set_pin(entry);
                self.update_leaf(true, changes);
                let mut updates = Vec::new();
                self.turn.add_last_prompt(&mut updates);
                self.push_turn_updates(updates, changes);
            }
            EntryKind::TranscriptEngine => self.add_tombstone(text, changes),
            // A line of another type with a uuid is added as hidden, so that its children become
            // children of its parent.
            kind if kind.is_chain() || entry.uuid().is_some() => {
                self.add_to_chain(offset, entry, text, changes);
            }
            _ => {}
        }
    }

    fn add_to_chain(
        &mut self,
        offset: u64,
        entry: &Envelope<'_>,
        text: &str,
        changes: &mut Vec<ChangeKind>,
    ) {
        let id = entry.uuid().map(|id| id.bytes());
        let line = self.line(offset, entry, id.as_deref());
        let Some(node) = self.tree.add(&line, self.leaf) else {
            return;
        };
        let is_boundary = line.node_flags.contains(NodeFlags::BOUNDARY);
        if is_boundary {
            let preserved_spec = self.preserved_spec(text);
            self.tree.compact(node, preserved_spec);
        }
        if let Some(pin) = &mut self.pin
            && !self
                .tree
                .has(node, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED)
        {
            pin.is_followed |= !self.tree.is_sidechain(node);
            pin.is_cleared |= is_boundary;
            if self.tree.can_be_leaf(node) {
                pin.last = Some(node);
            }
        }
        self.update_leaf(line.node_flags.contains(NodeFlags::MESSAGE), changes);
        if !self.tree.is_main(node) {
            return;
        }
        if is_boundary {
            let uuid = self.tree.uuid(node);
            changes.push(ChangeKind::Boundary { uuid });
        }
        let input = TurnInput {
            node,
            entry,
            text,
            message: line.message,
        };
        let mut updates = Vec::new();
        self.turn.add(input, &mut updates);
        self.push_turn_updates(updates, changes);
    }

    fn push_turn_updates(&self, updates: Vec<TurnUpdate>, changes: &mut Vec<ChangeKind>) {
        changes.extend(updates.into_iter().map(|update| match update {
            TurnUpdate::Call(call) => call,
            TurnUpdate::Ended(node) => ChangeKind::TurnEnded {
                uuid: self.uuid(node),
            },
        }));
    }

    /// Updates the leaf. A message or a pin can move the path; entries outside the chain cannot.
    fn update_leaf(&mut self, can_move: bool, changes: &mut Vec<ChangeKind>) {
        let leaf = self.find_leaf();
        self.leaf = leaf;
        // Before the first main entry, the entries of a subagent counted as the conversation; that
        // path does not count for a move.
        let place = self.place.filter(|place| self.tree.is_main(*place));
        if place.is_none() && self.place.is_some() {
            self.turn = TurnTracker::default();
        }
        let (Some(leaf), Some(place)) = (leaf, place) else {
            self.place = leaf;
            return;
        };
        if leaf == place {
            return;
        }
        if self.follows(leaf, place) {
            self.place = Some(leaf);
        } else if can_move {
            let fork = self.tree.fork(place, leaf);
            changes.push(ChangeKind::Moved {
                from: self.tree.uuid(place),
                fork: self.uuid((fork != NONE).then_some(fork)),
                to: self.tree.uuid(leaf),
            });
            self.place = Some(leaf);
            self.moved_at = self.tree.len();
            let tree = &mut self.tree;
            self.turn.retain(|call| {
                let (head, _) = tree.head(call);
                tree.is_under(leaf, head)
            });
        }
    }

    /// Returns whether the conversation that ends with `leaf` continues the one that ended with
    /// `place`.
    fn follows(&mut self, leaf: u32, place: u32) -> bool {
        // The summary of a compaction continues the conversation that it replaces.
        if self.tree.is_after_boundary(leaf, place) {
            return true;
        }
        // Before the first move there is no abandoned branch to go back to.
        if self.moved_at > 0 && self.goes_back(leaf, place) {
            return false;
        }
        let tree = &mut self.tree;
        if tree.is_under(leaf, place) {
            return true;
        }
        // A continuation of any line of the answer continues all of it (CHAIN-6).
        let (head, message) = tree.head(place);
        if tree.is_under(leaf, head) {
            return true;
        }
        // Lines of one answer can be siblings.
        let above = tree.above(leaf);
        message != 0
            && [leaf, above]
                .into_iter()
                .any(|node| node != NONE && tree.head(node).1 == message)
    }

    /// Returns whether the path to `leaf` leaves the answer at `place` for entries that existed
    /// before the last move, which had abandoned them.
    fn goes_back(&mut self, leaf: u32, place: u32) -> bool {
        let tree = &mut self.tree;
        let fork = tree.fork(place, leaf);
        if fork == NONE || tree.below(fork, leaf, 0) >= self.moved_at {
            return false;
        }
        let (_, answer) = tree.head(place);
        let next = tree.next_message(fork, leaf, answer);
        next != NONE && next < self.moved_at
    }

    /// Finds the leaf by the rules of `Tree::leaf` in the resume crate.
    fn find_leaf(&mut self) -> Option<u32> {
        let tip = self.tree.last_tip();
        let Some(pin) = self.pin.as_ref().filter(|pin| !pin.is_cleared) else {
            return tip;
        };
        // A pin on an unknown uuid is ignored; the uuid of zeros removes a pin that way (LEAF-6).
        let place = self.tree.find_live(pin.leaf);
        let Some(place) = place.filter(|place| self.tree.has(*place, NodeFlags::HAS_MESSAGE_ABOVE))
        else {
            return tip;
        };
        let last = match pin.is_followed {
            true => pin.last,
            // The pin gives way to its descendants, unless a person chose the place (LEAF-8,
            // LEAF-11).
            false => tip.filter(|_| !pin.is_explicit),
        };
        let last = last.filter(|last| self.tree.leads_past(*last, place));
        Some(last.unwrap_or(place))
    }

    fn set_pin(&mut self, line: &Envelope<'_>) {
        let Some(leaf) = line.leaf_uuid() else { return };
        let leaf = self.tree.key(&leaf.bytes());
        let place = self.tree.find_live(leaf);
        if place.is_some_and(|place| self.tree.has(place, NodeFlags::FOREIGN)) {
            return;
        }
        self.pin = Some(Pin {
            leaf,
            is_explicit: line.flags().contains(Flags::EXPLICIT),
            at: self.tree.len(),
            is_followed: false,
            last: None,
            is_cleared: false,
        });
    }

    /// Applies a tombstone (`docs/format.md`, "Tombstones").
    fn add_tombstone(&mut self, text: &str, changes: &mut Vec<ChangeKind>) {
        let line = Object::parse(text).ok();
        let Some(id) = line.as_ref().and_then(|line| line.str("tombstone")) else {
            return;
        };
        let key = self.tree.key(id.as_bytes());
        if self.tree.tombstone(key).is_none() {
            return;
        }
        if let Some(pin) = &mut self.pin {
            let mut catch_up_to = (pin.at..self.tree.len()).rev();
            let tree = &self.tree;
            pin.is_followed = catch_up_to.clone().any(|node| {
                !tree.has(node, NodeFlags::HIDDEN | NodeFlags::TOMBSTONED)
                    && !tree.is_sidechain(node)
            });
            pin.is_cleared = catch_up_to.clone().any(|node| {
                tree.has(node, NodeFlags::BOUNDARY) && !tree.has(node, NodeFlags::TOMBSTONED)
            });
            pin.last = catch_up_to.find(|node| tree.can_be_leaf(*node));
        }
        self.leaf = self.find_leaf();
        let tree = &self.tree;
        self.turn
            .forget(|node| tree.has(node, NodeFlags::TOMBSTONED));
        if self
            .place
            .is_none_or(|place| tree.has(place, NodeFlags::TOMBSTONED))
        {
            self.place = self.leaf;
        }
        let uuid = id.as_ref().into();
        changes.push(ChangeKind::Tombstoned { uuid });
    }

    /// Returns the fields of a chain entry that linking needs.
    fn line<'a>(&self, offset: u64, entry: &Envelope<'_>, id: Option<&'a [u8]>) -> NewNode<'a> {
        let parent = match entry.parent_uuid() {
            Some(parent) => ParentLink::To(self.tree.key(&parent.bytes())),
            None if entry.flags().contains(Flags::PARENT_ODD) => ParentLink::Odd,
            None => ParentLink::Root,
        };
        let hash = |text: Text<'_>| self.tree.hash(&text.bytes());
        let answer = entry
            .message_id()
            .filter(|_| entry.kind() == EntryKind::Assistant);
        let mut tools = entry.tools();
        let tool = tools.next().filter(|_| tools.len() == 0);
        NewNode {
            offset,
            id,
            parent,
            node_flags: shape(entry),
            message: answer.map_or(0, |id| (hash(id) as u32).max(1)),
            tool: tool.map_or(0, |tool| (hash(tool.id) as u16).max(1)),
            session: entry.session_id().map(hash),
        }
    }

    /// Returns what a boundary preserves.
    fn preserved_spec(&self, text: &str) -> Option<PreservedSpec> {
        let line = Object::parse(text).ok()?;
        let metadata = line.object("compactMetadata")?;
        let key = |id: Raw<'_>| Some(self.tree.key(id.str()?.as_bytes()));
        let key_at = |object: &Object<'_>, name: &str| key(object.get(name)?);
        // The list takes precedence if both exist (COMPACT-3).
        if let Some(list) = metadata.get("preservedMessages").and_then(Raw::object) {
            let uuids = list.get("uuids").and_then(Raw::array).unwrap_or_default();
            return Some(PreservedSpec {
                anchor: key_at(&list, "anchorUuid"),
                entries: PreservedForm::List(uuids.into_iter().map(key).collect()),
            });
        }
        let segment = metadata.get("preservedSegment").and_then(Raw::object)?;
        Some(PreservedSpec {
            anchor: key_at(&segment, "anchorUuid"),
            entries: PreservedForm::Ends(
                ["headUuid", "tailUuid"].map(|name| key_at(&segment, name)),
            ),
        })
    }
}

fn shape(entry: &Envelope<'_>) -> NodeFlags {
    let (kind, flags) = (entry.kind(), entry.flags());
    let is_message = kind.is_message();
    // A message without content is dropped, and its children become children of its parent
    // (FILE-6).
    let is_unusable =
        is_message && matches!(entry.content(), ContentKind::NoMessage | ContentKind::Null);
    let is_boundary =
        kind == EntryKind::System && entry.sub_code() == SystemKind::CompactBoundary as u8;
    let has_result = entry.tools().any(|tool| tool.role == ToolRole::Result);
    let has_more = flags.intersects(Flags::HAS_TEXT | Flags::HAS_OTHER_BLOCK);
    let is_result = kind == EntryKind::User && has_result;
    let mut node_flags = NodeFlags::default();
    node_flags.set(NodeFlags::MESSAGE, is_message);
    node_flags.set(NodeFlags::ASSISTANT, kind == EntryKind::Assistant);
    node_flags.set(NodeFlags::RESULT, is_result);
    node_flags.set(NodeFlags::RESULT_ALONE, is_result && !has_more);
    node_flags.set(NodeFlags::ATTACHMENT, kind == EntryKind::Attachment);
    node_flags.set(NodeFlags::BOUNDARY, is_boundary);
    node_flags.set(NodeFlags::SIDECHAIN, flags.contains(Flags::SIDECHAIN));
    let is_entry = kind.is_chain() && kind != EntryKind::Progress;
    node_flags.set(NodeFlags::HIDDEN, !is_entry || is_unusable);
    node_flags
}

#[cfg(test)]
mod tests {
    use transcript_testkit::generate;

    use super::tree::STEPS;
    use super::*;

    /// Counts the steps for each of the entries that `next` creates.
    fn steps(count: usize, mut next: impl FnMut(usize) -> String) -> f64 {
        let (mut live, mut changes) = (LivePath::new(), Vec::new());
        STEPS.set(0);
        for number in 0..count {
            live.add(number as u64, &next(number), &mut changes);
            changes.clear();
        }
        STEPS.get() as f64 / count as f64
    }

    fn user(uuid: usize, parent: Option<usize>) -> String {
        let parent = parent.map_or("null".to_owned(), |parent| format!("\"{parent}\""));
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"message":{{"content":"And?"}}}}"#
        )
    }

    #[test]
    fn the_work_for_a_million_entries_is_that_for_a_few_each() {
        let sessions = |count| {
            let (mut lines, mut seed) = (Vec::new(), 0);
            steps(count, move |_| {
                while lines.is_empty() {
                    // All entries name one session, or the first one would make the others foreign.
                    let session = String::from_utf8_lossy(&generate::tidy_session(seed))
                        .replace("\"sessionId\"", "\"session\"");
                    lines.extend(session.split('\n').rev().map(str::to_owned));
                    seed += 1;
                }
                lines.pop().unwrap_or_default()
            })
        };
        let (few, many) = (sessions(30_000), sessions(1_000_000));
        println!("{few:.1} steps an entry of 30,000, {many:.1} of 1,000,000");
        assert!(many < few * 1.5 && many < 100.0, "{few} and {many}");
    }

    #[test]
    fn files_that_are_made_to_cost_much_do_not() {
        // Two alternating branches: each entry moves the path.
        let turns = |count| steps(count, |at| user(at, at.checked_sub(2)));
        // Every entry is a child of the first one.
        let fan = |count| steps(count, |at| user(at, (at > 0).then_some(0)));
        // Every parent is missing.
        let lost = |count: usize| steps(count, |at| user(at, Some(at + count)));
        // Each parent is written right after its child.
        let early = |count| steps(count, |at| user(at ^ 1, (at ^ 1).checked_sub(1)));
        // Every other line tombstones the entry before it.
        let tombstoned = |count| {
            steps(count, |at| match at % 2 {
                0 => user(at, at.checked_sub(2)),
                _ => format!(r#"{{"type":"transcriptEngine","tombstone":"{}"}}"#, at - 1),
            })
        };
        let pins = |count| {
            steps(count, |at| match at % 2 {
                0 => user(at, at.checked_sub(2)),
                _ => r#"{"type":"last-prompt","leafUuid":"0","explicit":true}"#.to_owned(),
            })
        };
        let cases: [(&str, &dyn Fn(usize) -> f64); 6] = [
            ("turns", &turns),
            ("fan", &fan),
            ("lost", &lost),
            ("early", &early),
            ("tombstoned", &tombstoned),
            ("pins", &pins),
        ];
        for (name, case) in cases {
            let (few, many) = (case(5_000), case(50_000));
            println!("{name}: {few:.1} steps an entry of 5,000, {many:.1} of 50,000");
            assert!(many < few + 60.0, "{name}: {few} and {many}");
        }
    }
}
