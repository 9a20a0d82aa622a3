//! The index: one record for every object on a line of the file.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU16;
use std::path::Path;

use bitflags::bitflags;
use hashbrown::HashTable;
use transcript_format::client_version::ClientVersion;
use transcript_format::finding::Finding;
use transcript_format::ids::{Uuid, is_message_id_of_api};
use transcript_format::kind::{AttachmentKind, EntryKind, Link, ProgressKind, SystemKind};
use transcript_format::scan::{ContentKind, Flags, ToolRole};

use crate::interner::{self, Interner};
use crate::source::Source;
use crate::unknown_keys::{UnknownKey, UnknownKeys};

/// Every entry of one file in file order, including duplicates, and the findings about damaged
/// lines.
///
/// The result is the same for any number of threads that built it. The default is the index of an
/// empty file.
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) records: Vec<Record>,
    /// The tool calls and results of all records, in order.
    pub(crate) tools: Vec<ToolEnd>,
    pub(crate) side: SideTables,
    /// In file order.
    pub(crate) boundaries: Vec<Boundary>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) lines: u64,
    pub(crate) blank_lines: u64,
    pub(crate) len: u64,
    /// See [`Self::starts_at`].
    pub(crate) starts_at: u64,
    /// The session in the file name, if a line names it too.
    pub(crate) named_session: Option<u16>,
    /// See [`Self::new_name`].
    pub(crate) new_names: HashMap<Id, Id>,
    pub(crate) uuids: Uuids,
}

/// Texts that records refer to by number.
#[derive(Debug, Default)]
pub(crate) struct SideTables {
    /// Ids that are not canonical uuids.
    pub(crate) odd_ids: Interner,
    pub(crate) sessions: Interner,
    pub(crate) agents: Interner,
    /// Whether a line is a tombstone.
    pub(crate) has_tombstones: bool,
    /// Of lines that tombstone several entries: the number of the record, and each entry but the
    /// first.
    pub(crate) more_tombstones: Vec<(u32, Id)>,
    /// The version on the last line that has one.
    pub(crate) client_version: Option<ClientVersion>,
    pub(crate) unknown_keys: UnknownKeys,
}

/// The record of one entry: 80 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// A uuid, or the number of an odd id in [`SideTables::odd_ids`].
    pub(crate) uuid: u128,
    /// `parentUuid`; for `last-prompt` and `summary` lines `leafUuid`, for engine lines
    /// `tombstone`. Encoded like `uuid`.
    pub(crate) link: u128,
    pub(crate) offset: u64,
    /// Milliseconds since 1970; [`NO_TIME`] for none.
    pub(crate) time: i64,
    /// See [`message_hash`].
    pub(crate) message: u64,
    pub(crate) len: u32,
    pub(crate) line: u32,
    pub(crate) flags: Flags,
    /// The start of this record's part of [`Index::tools`]; it ends where that of the next record
    /// starts.
    pub(crate) tools: u32,
    /// The numbers of the session and the agent, plus one; 0 for none.
    pub(crate) session: u16,
    pub(crate) agent: u16,
    pub(crate) kind: EntryKind,
    pub(crate) sub: u8,
    pub(crate) marks: EntryMarks,
    pub(crate) content: ContentKind,
}

/// The time of an entry without a valid timestamp.
pub(crate) const NO_TIME: i64 = i64::MIN;

const _: () = assert!(
    size_of::<Record>() == 80,
    "96 bytes a line: 80 here, 8 a tool end, 5 a uuid"
);

bitflags! {
    /// How an entry was read (glued, lossy, salvaged), and which of its ids are present.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct EntryMarks: u8 {
        /// The first object of a line with more bytes after it.
        const GLUED = 1;
        /// The line holds bytes that are not UTF-8; they are read as U+FFFD.
        const LOSSY = 1 << 1;
        /// The line is the last one and has no newline.
        const UNTERMINATED = 1 << 2;
        /// The entry has a uuid.
        const UUID = 1 << 3;
        /// The uuid is not in canonical form.
        const ODD_UUID = 1 << 4;
        /// The entry has a parent (or names a leaf or a tombstoned entry).
        const LINK = 1 << 5;
        /// That id is not in canonical form.
        const ODD_LINK = 1 << 6;
        /// The object was salvaged from a damaged line, which the client skips (FILE-1, FILE-2).
        const SALVAGED = 1 << 7;
    }
}

/// The id of an entry. Two ids are equal exactly when their strings in the file are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// A canonical uuid.
    Uuid(Uuid),
    /// Any other text; [`Index::id_text`] returns it.
    Odd(u32),
}

/// Identifies a message; within one process equal for equal `message.id`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageKey(u64);

impl MessageKey {
    /// Returns the key of one of several messages that share this id; `number` says which one.
    #[must_use]
    pub fn apart(self, number: u32) -> Self {
        Self(interner::hash(
            &[self.0.to_le_bytes(), u64::from(number).to_le_bytes()].concat(),
        ))
    }
}

/// Identifies the call of the API that a line came from; within one process equal for equal
/// `requestId`s. Different ones are equal once in 65,535 times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey(NonZeroU16);

/// The bits of [`Record::message`] that are about `requestId`.
const REQUEST_BITS: u64 = 0xFFFF;

/// Returns a hash of `message.id`, 0 for none, and in its lowest 16 bits one of `requestId`, 0 for
/// none. An id that no two answers share stands for the `requestId`, which may be absent or damaged.
pub(crate) fn message_hash(id: Option<&[u8]>, request: Option<&[u8]>) -> u64 {
    let message = id.map_or(0, |id| {
        // Never 0 in these bits, which means that there is no id.
        (interner::hash(id) & !REQUEST_BITS).max(REQUEST_BITS + 1)
    });
    let is_of_api = |id: &[u8]| str::from_utf8(id).is_ok_and(is_message_id_of_api);
    let of_api = id.filter(|id| is_of_api(id));
    let request = of_api.or(request).filter(|id| !id.is_empty());
    message | request.map_or(0, |id| (interner::hash(id) & REQUEST_BITS).max(1))
}

/// Identifies a tool call; within one process equal for equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ToolKey(u64);

impl ToolKey {
    /// Returns the key of the call with this id.
    #[must_use]
    pub fn of(id: &str) -> Self {
        ToolEnd::new(ToolRole::Use, id.as_bytes()).key()
    }
}

/// A tool call or its result, packed: the lowest two bits are the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolEnd(u64);

impl ToolEnd {
    pub(crate) fn new(role: ToolRole, id: &[u8]) -> Self {
        Self(interner::hash(id) & !3 | role as u64)
    }

    /// Returns the role of the block.
    #[must_use]
    pub fn role(self) -> ToolRole {
        match self.0 & 3 {
            0 => ToolRole::Use,
            1 => ToolRole::Result,
            2 => ToolRole::ServerUse,
            _ => ToolRole::ServerResult,
        }
    }

    /// Returns the key that a call and its result share.
    #[must_use]
    pub fn key(self) -> ToolKey {
        ToolKey(self.0 & !3)
    }
}

/// The number of an entry in its index, from 0, in file order. Not a line number, and valid only
/// for the index it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryNo(u32);

impl EntryNo {
    /// Counts `number` entries from the start of an index, which has at most [`u32::MAX`] of them.
    #[must_use]
    pub const fn new(number: usize) -> Self {
        debug_assert!(number <= u32::MAX as usize);
        Self(number as u32)
    }

    /// Returns the plain number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for EntryNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The data of a `compact_boundary` about the entries that it preserves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Boundary {
    /// The number of the boundary entry.
    pub entry_no: EntryNo,
    /// `logicalParentUuid`: the leaf of the conversation before.
    pub logical_parent: Option<Id>,
    /// The preserved entries.
    pub preserved: Preserved,
    /// The first and the last entry of `preservedSegment`, also when the list takes precedence.
    pub ends: [Option<Id>; 2],
    /// The anchor of `preservedSegment`, also when the list takes precedence.
    pub segment_anchor: Option<Id>,
}

impl Boundary {
    /// Returns the anchor: the entry that the preserved entries follow.
    #[must_use]
    pub fn anchor(&self) -> Option<Id> {
        match &self.preserved {
            Preserved::Nothing => None,
            Preserved::List { anchor, .. } | Preserved::Segment { anchor } => *anchor,
        }
    }

    /// Returns the ids of the preserved entries and of their anchor.
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        let listed = match &self.preserved {
            Preserved::List { uuids, .. } => uuids.as_slice(),
            Preserved::Nothing | Preserved::Segment { .. } => &[],
        };
        let anchor = self.anchor();
        let listed = listed.iter().chain(&self.ends).flatten().copied();
        listed.chain(anchor)
    }

    /// Returns whether `id` is one of the preserved entries, or their anchor.
    #[must_use]
    pub fn names(&self, id: Id) -> bool {
        self.ids().any(|named| named == id)
    }
}

/// The preserved segment of a boundary. If it has both a list and ends, the list takes precedence
/// (COMPACT-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preserved {
    /// The boundary preserves nothing.
    Nothing,
    /// `preservedMessages`: a list of the entries. `None` for an element that is not a string.
    List {
        /// The entry that the first one follows.
        anchor: Option<Id>,
        /// The entries, oldest first.
        uuids: Vec<Option<Id>>,
    },
    /// `preservedSegment`: the chain between [`Boundary::ends`].
    Segment {
        /// The entry that the head follows.
        anchor: Option<Id>,
    },
}

impl Index {
    pub(crate) fn finish(mut self) -> Self {
        self.findings
            .sort_by_key(|finding| (finding.offset, finding.code));
        // The vectors no longer grow: release their spare capacity.
        self.records.shrink_to_fit();
        self.tools.shrink_to_fit();
        self.findings.shrink_to_fit();
        // Only now, as the number of ids is known: a table that grows would be built several times.
        self.uuids = Uuids::new(&self.records);
        self
    }

    /// Finds the session in the name of the file.
    pub(crate) fn name_session(&mut self, source: &Source) {
        let stem = source.path().file_stem().and_then(|stem| stem.to_str());
        let named = stem.and_then(|stem| self.side.sessions.find(stem));
        self.named_session = named.and_then(|number| u16::try_from(number + 1).ok());
    }

    pub(crate) fn empty(len: u64) -> Self {
        Self {
            len,
            ..Self::default()
        }
    }

    /// Returns the entries in file order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = EntryRef<'_>> + DoubleEndedIterator {
        (0..self.records.len()).map(|number| self.entry(EntryNo::new(number)))
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether the index has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the entry with this number.
    ///
    /// # Panics
    ///
    /// When `number` is not below [`Self::len`].
    #[must_use]
    pub fn entry(&self, number: EntryNo) -> EntryRef<'_> {
        EntryRef {
            index: self,
            record: &self.records[number.get()],
            number,
        }
    }

    /// Returns an index of the entries with these numbers alone, in this order: the first as if it
    /// named no parent, and all without their session and agent. Ids remain those of this index,
    /// and only it knows their texts.
    #[must_use]
    pub fn excerpt(&self, numbers: impl IntoIterator<Item = EntryNo>) -> Self {
        let mut excerpt = Self::empty(self.len);
        for number in numbers {
            let mut record = self.records[number.get()];
            if excerpt.records.is_empty() {
                record.marks -= EntryMarks::LINK | EntryMarks::ODD_LINK;
                // Its parent is not in the excerpt, and would be a missing one otherwise.
                record.flags -= Flags::PARENT_ODD;
                if !self.entry(number).is_of_stream_form() {
                    record.flags -= Flags::PARENT_ABSENT | Flags::PARENT_EMPTY;
                }
            }
            // The excerpt has no lines of the queue, by which such a prompt is recognized.
            if record.kind == EntryKind::User && self.is_from_queue(number) {
                record.flags |= Flags::AUTOMATIC;
            }
            // Their numbers are those of tables that the excerpt does not have.
            (record.session, record.agent) = (0, 0);
            record.tools = excerpt.tools.len() as u32;
            excerpt.tools.extend_from_slice(self.entry(number).tools());
            excerpt.records.push(record);
        }
        excerpt.lines = excerpt.records.len() as u64;
        excerpt.finish()
    }

    /// Returns whether a `queue-operation` line stands between an entry and the message before it in
    /// the file: it is a prompt that waited in the queue.
    #[must_use]
    pub fn is_from_queue(&self, number: EntryNo) -> bool {
        // The line of the queue is right before the prompt; a file of other lines must not be searched for each entry.
        const MAX_LINES: usize = 64;
        let mut before = self.records[..number.get()].iter().rev().take(MAX_LINES);
        before
            .find(|record| record.kind.is_message() || record.kind == EntryKind::QueueOperation)
            .is_some_and(|record| record.kind == EntryKind::QueueOperation)
    }

    /// Returns the numbers of the entries with this id, in file order; several if a uuid is
    /// repeated.
    pub fn with_uuid(&self, id: Id) -> impl Iterator<Item = EntryNo> + '_ {
        let first = self.uuids.first(&self.records, id);
        std::iter::successors(first, |number| self.uuids.next.get(number).copied()).map(EntryNo)
    }

    /// Returns the id that a fork gave to the entry that had the id `old`. Only covers ids that a
    /// boundary names and that no line of the file has.
    #[must_use]
    pub fn new_name(&self, old: Id) -> Option<Id> {
        self.new_names.get(&old).copied()
    }

    /// Returns whether several lines have the same uuid.
    #[must_use]
    pub fn has_repeated_uuids(&self) -> bool {
        !self.uuids.next.is_empty()
    }

    /// Returns the id of `text` in this index; `None` when no line has it.
    #[must_use]
    pub fn id(&self, text: &str) -> Option<Id> {
        match Uuid::parse(text.as_bytes()) {
            Some(uuid) => Some(Id::Uuid(uuid)),
            None => self.side.odd_ids.find(text).map(Id::Odd),
        }
    }

    /// Returns whether the file is in the stream form: the output of the SDK (`stream-json`), or
    /// messages without any ids. See [`is_stream_form`].
    #[must_use]
    pub fn is_stream_form(&self) -> bool {
        is_stream_form(self.entries())
    }

    /// Returns the text of an id of this index.
    #[must_use]
    pub fn id_text(&self, id: Id) -> String {
        match id {
            Id::Uuid(uuid) => uuid.to_string(),
            Id::Odd(number) => self.side.odd_ids.get(number).to_owned(),
        }
    }

    /// Returns whether the file holds a compact boundary.
    #[must_use]
    pub fn has_boundaries(&self) -> bool {
        !self.boundaries.is_empty()
    }

    /// Returns the data of a compact boundary.
    #[must_use]
    pub fn boundary(&self, entry_no: EntryNo) -> Option<&Boundary> {
        // Boundaries are in file order; there are few, so no record has a place for them.
        let at = self
            .boundaries
            .binary_search_by_key(&entry_no, |boundary| boundary.entry_no);
        at.ok().map(|at| &self.boundaries[at])
    }

    /// Returns the tombstones in file order: the number of the tombstone line and the id of the
    /// removed entry. The index does not apply them; that is up to the policy.
    pub fn tombstones(&self) -> impl Iterator<Item = (EntryNo, Id)> + '_ {
        // Most files have none, and are not walked for them.
        let lines = self.side.has_tombstones.then(|| self.entries());
        let lines = lines.into_iter().flatten();
        lines.flat_map(|line| line.tombstones().map(move |id| (line.number(), id)))
    }

    /// Returns the findings, sorted by offset.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the keys of message lines that the format does not know, in the order of their first
    /// lines; at most 64. None unless [`LoadOptions::find_unknown_keys`](crate::LoadOptions::find_unknown_keys) was set.
    #[must_use]
    pub fn unknown_keys(&self) -> &[UnknownKey] {
        self.side.unknown_keys.list()
    }

    /// Returns the number of physical lines, including blank and damaged ones.
    #[must_use]
    pub fn line_count(&self) -> u64 {
        self.lines
    }

    /// Returns the number of lines that contain only white space.
    #[must_use]
    pub fn blank_line_count(&self) -> u64 {
        self.blank_lines
    }

    /// Returns the number of bytes that were read.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.len
    }

    /// Returns the offset of the first byte that was read: 0, unless this is the index of the
    /// [end](crate::FileEnd) of a file.
    #[must_use]
    pub fn starts_at(&self) -> u64 {
        self.starts_at
    }

    /// Returns the version of the client that wrote the last line which names one.
    #[must_use]
    pub fn client_version(&self) -> Option<ClientVersion> {
        self.side.client_version
    }

    /// Returns whether the file was made from the session of another agent. Its links are then those of the agent: there is
    /// nothing to guess.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        let first = self.entries().next();
        first.is_some_and(|first| first.flags().contains(Flags::IMPORTED))
    }

    /// Returns the ids of the sessions that lines name, in file order.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        self.side.sessions.texts()
    }

    /// Returns the session that the file belongs to: the one in the file name if a message names it,
    /// else the one that most messages name. A title that was set in a renamed file names the file
    /// alone, and does not make its conversation that of another session.
    #[must_use]
    pub fn own_session(&self) -> Option<&str> {
        let mut messages = self
            .records
            .iter()
            .filter(|record| record.kind.is_message());
        let named = self.named_session;
        // A file can be renamed, and its title line then names the new session: only a message proves the name.
        let named = named.filter(|named| messages.any(|record| record.session == *named));
        let number = named.or_else(|| {
            // For each session: whether the model answered in it, and the number of messages. Input
            // of the SDK may name one that is not that of the answers.
            let mut counts = vec![(false, 0_u32); self.sessions().count() + 1];
            for record in self
                .records
                .iter()
                .filter(|record| record.kind.is_message())
            {
                let (is_answered, messages) = &mut counts[usize::from(record.session)];
                *is_answered |= record.kind == EntryKind::Assistant
                    && record.flags.contains(Flags::STREAM_FORM);
                *messages += 1;
            }
            // Of equal counts the session that is first in the file.
            let named = (1..counts.len()).rev();
            let most = named.max_by_key(|number| counts[*number])?;
            u16::try_from(most).ok()
        })?;
        Some(self.side.sessions.get(u32::from(number) - 1))
    }

    /// Returns the id of the session in the file at `path`: the name of the file, because its lines may
    /// name another session (FILE-10); without a usable name [that of its conversation](Self::own_session),
    /// else the first that a line names.
    #[must_use]
    pub fn session_id(&self, path: &Path) -> Option<String> {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let named = stem.filter(|stem| Uuid::parse(stem.to_ascii_lowercase().as_bytes()).is_some());
        // A file that was renamed to something else still has the id in its lines.
        let of_lines = || self.own_session().or_else(|| self.sessions().next());
        named.or_else(of_lines).map(str::to_owned)
    }

    /// Returns the approximate memory use of the index, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
            + self.tools.capacity() * size_of::<ToolEnd>()
            + self.uuids.table.capacity() * (size_of::<u32>() + 1)
            + self.findings.capacity() * size_of::<Finding>()
    }
}

/// Returns whether the entries of a file are in the stream form. The entries of the chain decide:
///
/// - None of them has a `parentUuid` of `null`, or a uuid and `sessionId` without `parentUuid`: that is a
///   line of a client, which may have lost its parent.
/// - One of them has `session_id`, so it is an output of the SDK. Lines that have a uuid and no session
///   are outputs, too, then. Without any output, there is a message, and no line has a uuid.
/// - Before the first line that names a parent there is an output: such lines were appended to it.
///
/// Entries that were salvaged from damaged lines do not count, as they may have lost any key.
pub fn is_stream_form<'i>(entries: impl IntoIterator<Item = EntryRef<'i>>) -> bool {
    let of_chain = |entry: &EntryRef<'i>| entry.kind().is_chain() && !entry.is_salvaged();
    let (mut has_output, mut has_message, mut has_unmarked) = (false, false, false);
    for entry in entries.into_iter().filter(of_chain) {
        // One line of a client decides: such a file is a session, perhaps damaged, to which outputs were added.
        if !entry.is_of_stream_form() {
            let is_appended = entry.parent().is_some() && has_output;
            let is_unmarked =
                entry.flags().contains(Flags::PARENT_ABSENT) && entry.session().is_none();
            if !is_appended && !is_unmarked {
                return false;
            }
            has_unmarked |= is_unmarked;
        }
        has_output |= entry.flags().contains(Flags::STREAM_FORM);
        has_message |= entry.kind().is_message();
    }
    has_output || has_message && !has_unmarked
}

/// The entries by uuid.
///
/// The table stores only entry numbers and compares ids in the records, to save memory. Repeated
/// uuids are rare, so their further entries are in a separate map.
#[derive(Debug, Default)]
pub(crate) struct Uuids {
    /// The first entry of each uuid.
    table: HashTable<u32>,
    /// For a repeated uuid: from each entry to the next one.
    next: HashMap<u32, u32>,
    /// For a repeated uuid: from its first entry to its last.
    last: HashMap<u32, u32>,
    keys: RandomState,
}

impl Uuids {
    fn new(records: &[Record]) -> Self {
        let with_uuid = records
            .iter()
            .filter(|record| record.marks.contains(EntryMarks::UUID))
            .count();
        let mut uuids = Self {
            table: HashTable::with_capacity(with_uuid),
            ..Self::default()
        };
        for number in 0..records.len() {
            uuids.insert(records, number as u32);
        }
        uuids
    }

    /// Adds the entry with this number, the last so far.
    pub(crate) fn insert(&mut self, records: &[Record], number: u32) {
        // Entries without a uuid cannot be found by one, nor have children (FILE-8).
        let Some(id) = records[number as usize].id() else {
            return;
        };
        let keys = &self.keys;
        let hash = |number: &u32| keys.hash_one(records[*number as usize].uuid);
        // Only numbers are in the table; ids are compared in the records, so it takes 5 bytes an entry.
        let same = |other: &u32| records[*other as usize].id() == Some(id);
        match self.table.entry(hash(&number), same, hash) {
            hashbrown::hash_table::Entry::Vacant(free) => {
                free.insert(number);
            }
            hashbrown::hash_table::Entry::Occupied(first) => {
                // The last one is kept as well: a file of copies of one entry would take quadratic time otherwise.
                let last = self.last.entry(*first.get()).or_insert(*first.get());
                self.next.insert(*last, number);
                *last = number;
            }
        }
    }

    /// Removes the entry with this number, the last so far.
    pub(crate) fn remove_last(&mut self, records: &[Record], number: u32) {
        let Some(id) = records[number as usize].id() else {
            return;
        };
        let Some(first) = self.first(records, id) else {
            return;
        };
        // Without another entry of this uuid: only then is the number itself in the table.
        if first == number {
            let hash = self.keys.hash_one(records[number as usize].uuid);
            if let Ok(found) = self.table.find_entry(hash, |other| *other == number) {
                found.remove();
            }
            return;
        }
        // A walk, as the lists lead forward; only open lines at the end of a growing file are removed, so it is rare.
        let mut before = first;
        while let Some(next) = self.next.get(&before).filter(|next| **next != number) {
            before = *next;
        }
        self.next.remove(&before);
        if before == first {
            self.last.remove(&first);
        } else {
            self.last.insert(first, before);
        }
    }

    fn first(&self, records: &[Record], id: Id) -> Option<u32> {
        let raw = match id {
            Id::Uuid(uuid) => uuid.0,
            Id::Odd(number) => u128::from(number),
        };
        let same = |other: &u32| records[*other as usize].id() == Some(id);
        self.table.find(self.keys.hash_one(raw), same).copied()
    }
}

impl Record {
    pub(crate) fn id(&self) -> Option<Id> {
        id_of(
            self.uuid,
            self.marks,
            EntryMarks::UUID,
            EntryMarks::ODD_UUID,
        )
    }

    fn link(&self) -> Option<Id> {
        id_of(
            self.link,
            self.marks,
            EntryMarks::LINK,
            EntryMarks::ODD_LINK,
        )
    }
}

fn id_of(raw: u128, marks: EntryMarks, there: EntryMarks, odd: EntryMarks) -> Option<Id> {
    if !marks.contains(there) {
        None
    } else if marks.contains(odd) {
        // Numbers of side tables are 32 bits wide.
        Some(Id::Odd(raw as u32))
    } else {
        Some(Id::Uuid(Uuid(raw)))
    }
}

/// An entry of the index: its ids, kind, flags and place, without the body.
#[derive(Clone, Copy)]
pub struct EntryRef<'i> {
    index: &'i Index,
    record: &'i Record,
    number: EntryNo,
}

impl<'i> EntryRef<'i> {
    /// Returns its number in the index.
    #[must_use]
    pub fn number(&self) -> EntryNo {
        self.number
    }

    /// Returns the 1-based number of its physical line; 0 when it is not [known](Self::known_line).
    #[must_use]
    pub fn line(&self) -> u64 {
        u64::from(self.record.line)
    }

    /// Returns the 1-based number of its physical line; `None` when the lines before it were not
    /// read.
    #[must_use]
    pub fn known_line(&self) -> Option<u64> {
        Some(self.line()).filter(|line| *line > 0)
    }

    /// Returns the offset of its first byte from the start of the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.record.offset
    }

    /// Returns its length in bytes, without a newline.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        u64::from(self.record.len)
    }

    /// Returns the type of the entry.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        self.record.kind
    }

    /// Returns the subtype of a system entry.
    #[must_use]
    pub fn system_kind(&self) -> Option<SystemKind> {
        (self.kind() == EntryKind::System).then(|| SystemKind::from_code(self.record.sub))
    }

    /// Returns the type of an attachment.
    #[must_use]
    pub fn attachment_kind(&self) -> Option<AttachmentKind> {
        (self.kind() == EntryKind::Attachment).then(|| AttachmentKind::from_code(self.record.sub))
    }

    /// Returns the type of a progress entry.
    #[must_use]
    pub fn progress_kind(&self) -> Option<ProgressKind> {
        (self.kind() == EntryKind::Progress).then(|| ProgressKind::from_code(self.record.sub))
    }

    /// Returns whether it is a compact boundary.
    #[must_use]
    pub fn is_boundary(&self) -> bool {
        self.system_kind() == Some(SystemKind::CompactBoundary)
    }

    /// Returns the id of the entry.
    #[must_use]
    pub fn uuid(&self) -> Option<Id> {
        self.record.id()
    }

    /// Returns the id of its parent; `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<Id> {
        if self.names_a_leaf() || self.is_engine_line() {
            None
        } else {
            self.record.link()
        }
    }

    /// Returns the id of the leaf that a `last-prompt` or `summary` line names.
    #[must_use]
    pub fn leaf_uuid(&self) -> Option<Id> {
        if self.names_a_leaf() {
            self.record.link()
        } else {
            None
        }
    }

    /// Returns the ids of the entries that a tombstone line removes.
    pub fn tombstones(&self) -> impl Iterator<Item = Id> + use<'i> {
        let first = self.record.link().filter(|_| self.is_engine_line());
        let more = &self.index.side.more_tombstones;
        let number = self.number.0;
        let start = match first {
            Some(_) => more.partition_point(|(line, _)| *line < number),
            None => more.len(),
        };
        let more = more[start..].iter();
        let more = more.take_while(move |(line, _)| *line == number);
        first.into_iter().chain(more.map(|(_, id)| *id))
    }

    fn names_a_leaf(&self) -> bool {
        self.kind().row().link == Link::Leaf
    }

    fn is_engine_line(&self) -> bool {
        self.kind().row().link == Link::Tombstones
    }

    /// Returns its time in milliseconds since 1970; `None` without a valid timestamp.
    #[must_use]
    pub fn millis(&self) -> Option<i64> {
        Some(self.record.time).filter(|time| *time != NO_TIME)
    }

    /// Returns the key of its API message, which all lines with the same `message.id` share.
    #[must_use]
    pub fn message(&self) -> Option<MessageKey> {
        let message = self.record.message & !REQUEST_BITS;
        (message != 0).then_some(MessageKey(message))
    }

    /// Returns the key of the call of the API that an answer came from, which all lines with the
    /// same `requestId` share.
    #[must_use]
    pub fn request(&self) -> Option<RequestKey> {
        NonZeroU16::new((self.record.message & REQUEST_BITS) as u16).map(RequestKey)
    }

    /// Returns the flags of the envelope.
    #[must_use]
    pub fn flags(&self) -> Flags {
        self.record.flags
    }

    /// Returns the kind of value at `message.content`.
    #[must_use]
    pub fn content(&self) -> ContentKind {
        self.record.content
    }

    /// Returns how it was read: glued, lossy, unterminated or salvaged.
    #[must_use]
    pub fn marks(&self) -> EntryMarks {
        self.record.marks
    }

    /// Returns whether it has the stream form, in which lines name no parent: it is an output of the
    /// SDK with its `session_id`, or has neither a uuid nor a `parentUuid`. The lines of a client always
    /// have `parentUuid`, so one with a `uuid` and the client's `sessionId` has lost it. Of a line with
    /// a `uuid` and no session, the others of its file decide: see [`is_stream_form`].
    #[must_use]
    pub fn is_of_stream_form(&self) -> bool {
        let odd_uuid = Flags::UUID_NULL | Flags::UUID_EMPTY | Flags::UUID_ODD;
        let flags = self.flags();
        let has_uuid = self.uuid().is_some() || flags.intersects(odd_uuid);
        flags.contains(Flags::STREAM_FORM) || flags.contains(Flags::PARENT_ABSENT) && !has_uuid
    }

    /// Returns whether it was salvaged from a damaged line.
    #[must_use]
    pub fn is_salvaged(&self) -> bool {
        self.marks().contains(EntryMarks::SALVAGED)
    }

    /// Returns the tool calls and results of its message, in order.
    #[must_use]
    pub fn tools(&self) -> &'i [ToolEnd] {
        let tools = &self.index.tools;
        let next = self.index.records.get(self.number.get() + 1);
        &tools[self.record.tools as usize..next.map_or(tools.len(), |next| next.tools as usize)]
    }

    /// Returns the calls that an answer makes, or those that a user entry has the results of.
    pub fn tool_keys(&self, role: ToolRole) -> impl Iterator<Item = ToolKey> + use<'i> {
        let is_there = match role {
            ToolRole::Use => self.kind() == EntryKind::Assistant,
            _ => self.kind() == EntryKind::User,
        };
        let ends = self.tools().iter();
        ends.filter(move |end| is_there && end.role() == role)
            .map(|end| end.key())
    }

    /// Returns the session that the line names.
    #[must_use]
    pub fn session(&self) -> Option<&'i str> {
        let number = u32::from(self.record.session).checked_sub(1)?;
        Some(self.index.side.sessions.get(number))
    }

    /// Returns the subagent that the line names.
    #[must_use]
    pub fn agent(&self) -> Option<&'i str> {
        let number = u32::from(self.record.agent).checked_sub(1)?;
        Some(self.index.side.agents.get(number))
    }
}

impl fmt::Debug for EntryRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryRef")
            .field("number", &self.number)
            .field("line", &self.line())
            .field("offset", &self.offset())
            .field("len", &self.byte_len())
            .field("kind", &self.kind())
            .field("sub", &self.record.sub)
            .field("uuid", &self.uuid().map(|id| self.index.id_text(id)))
            .field("link", &self.record.link().map(|id| self.index.id_text(id)))
            .field("millis", &self.millis())
            .field("message", &self.message())
            .field("flags", &self.flags())
            .field("content", &self.content())
            .field("marks", &self.marks())
            .field("tools", &self.tools())
            .field("session", &self.session())
            .field("agent", &self.agent())
            .finish()
    }
}
