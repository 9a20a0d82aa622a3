//! Divides a path into parts whose items belong together.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;

use transcript_format::entry::Entry;
use transcript_format::kind::{EntryKind, SystemKind};
use transcript_format::object::{JsonKind, Raw};
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{
    BodySource, ConversationPath, Decision, EntryMarks, EntryRef, PathEntry, ToolKey,
};

use super::about;
use super::displays::Displays;

/// The position on a path at which an id is named.
struct NamedRange {
    first: usize,
    last: usize,
    /// Whether a call, or a run of hooks at the end of a turn, has this id.
    is_group: bool,
}

impl Displays<'_, '_> {
    /// Divides `path` into paths in order, so that the first items can be shown before the last
    /// bodies are read: their lists have the items of the list of `path`, in the same order. But
    /// ids count from the start of a part, and a compaction may lack its summary.
    ///
    /// Each part but the first starts with a user line that is probably a prompt; with `cut`
    /// [`Cut::Anywhere`] also with an answer to results. The first one has at least `sizes.start` bytes, each next one twice as many, up to `sizes.end`. There is only
    /// one when lines of progress are lost, as the calls that they name are not known.
    ///
    /// `named` are the [calls that are named](Self::calls_named) by all entries of the path.
    ///
    /// # Panics
    /// When `path` is not one of the index of the tree.
    #[must_use]
    pub fn divide(
        &self,
        path: &ConversationPath,
        sizes: Range<u64>,
        named: &[NamedCall],
        cut: Cut,
    ) -> Vec<ConversationPath> {
        let entries = &path.entries;
        let Some(start) = entries.first().filter(|_| self.progress.lost.is_empty()) else {
            return vec![path.clone()];
        };
        let mut decisions = path.decisions.clone();
        decisions.sort_by_key(Decision::entry);
        let last = last_names(entries.len(), named);
        // Entries that a boundary at the start preserved stay with it: they are older than the boundary.
        let is_older = |entry: &PathEntry| entry.entry_no() < start.entry_no();
        // The last entry that belongs to one so far.
        let mut open = entries.iter().rposition(is_older).unwrap_or(0);
        let mut part = ConversationPath::default();
        part.omitted = path.omitted.clone();
        let mut parts = vec![part.clone()];
        let (mut size, mut least) = (0, sizes.start);
        for (place, entry) in entries.iter().enumerate() {
            let about = about(&decisions, entry.entry_no());
            let ends = size >= least && open < place && about.is_empty();
            let kind = |entry: &PathEntry| self.tree.index().entry(entry.entry_no()).kind();
            // The lines of one answer stay together.
            let is_answer = cut == Cut::Anywhere
                && kind(entry) == EntryKind::Assistant
                && place > 0
                && kind(&entries[place - 1]) == EntryKind::User;
            if ends && (is_answer || starts_turn(&self.tree.index().entry(entry.entry_no()))) {
                parts.push(part.clone());
                (size, least) = (0, (2 * least).min(sizes.end));
            }
            let lines = self.with_progress(entry);
            size += lines.map(|line| line.byte_len()).sum::<u64>();
            open = open.max(last[place]);
            if let Some(part) = parts.last_mut() {
                part.entries.push(*entry);
                part.decisions.extend_from_slice(about);
            }
        }
        parts
    }

    /// Returns an entry and the lines of progress below it.
    fn with_progress(&self, entry: &PathEntry) -> impl Iterator<Item = EntryRef<'_>> {
        let below = self.progress.under.get(&entry.entry_no());
        let lines = iter::once(entry.entry_no()).chain(below.into_iter().flatten().copied());
        lines.map(|line| self.tree.index().entry(line))
    }

    /// Adds the calls that the entries at `places` of `path` name.
    ///
    /// Reads the bodies of the entries whose record does not show them, each from a source of its
    /// own, because they are far apart.
    ///
    /// # Errors
    /// The errors of the bodies.
    ///
    /// # Panics
    /// When `path` is not one of the index of the tree, or has no such places.
    pub fn calls_named<B: BodySource>(
        &self,
        path: &ConversationPath,
        places: Range<usize>,
        named: &mut Vec<NamedCall>,
        mut bodies: impl FnMut() -> B,
    ) -> Result<(), B::Error> {
        for place in places {
            let mut name = |call: ToolKey, opens: bool| {
                named.push(NamedCall { call, place, opens });
            };
            for line in self.with_progress(&path.entries[place]) {
                for end in line.tools() {
                    let opens = matches!(end.role(), ToolRole::Use | ToolRole::ServerUse);
                    name(end.key(), opens);
                }
                if names_more(&line) {
                    let opens = line.kind().is_message()
                        || line.system_kind() == Some(SystemKind::StopHookSummary);
                    for_each_call(bodies().body(&line)?, |call| name(call, opens));
                }
            }
        }
        Ok(())
    }
}

/// The positions at which a path may be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before prompts.
    AtPrompts,
    /// Also within turns: one may be as long as the whole file.
    Anywhere,
}

/// A call that an entry of a path names.
#[derive(Clone, Copy, Debug)]
pub struct NamedCall {
    call: ToolKey,
    place: usize,
    /// Whether the entry may be the call itself, or the run of hooks at the end of a turn.
    opens: bool,
}

impl NamedCall {
    /// Returns the place of the entry on the path.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place
    }
}

/// Returns, for each entry, the last one that names a call which this one is the first to name.
/// Names that are those of no group do not count: runs of hooks repeat theirs.
fn last_names(entries: usize, all: &[NamedCall]) -> Vec<usize> {
    let mut named: HashMap<ToolKey, NamedRange> = HashMap::new();
    for &NamedCall { call, place, opens } in all {
        let named = named.entry(call).or_insert(NamedRange {
            first: place,
            last: place,
            is_group: false,
        });
        named.last = place;
        named.is_group |= opens;
    }
    let mut last: Vec<usize> = (0..entries).collect();
    for named in named.values().filter(|named| named.is_group) {
        last[named.first] = last[named.first].max(named.last);
    }
    last
}

/// Returns whether an entry is a prompt with which a turn may start. Reads no body.
#[must_use]
pub fn starts_turn(entry: &EntryRef<'_>) -> bool {
    let other = Flags::META
        | Flags::VIRTUAL
        | Flags::TEAM
        | Flags::API_ERROR
        | Flags::TRANSCRIPT_ONLY
        | Flags::COMPACT_SUMMARY
        | Flags::HAS_TOOL_RESULT
        | Flags::TOO_MANY;
    entry.kind() == EntryKind::User
        && entry.flags().contains(Flags::HAS_TEXT)
        && !entry.flags().intersects(other)
}

/// Returns whether a body may name calls that its record does not show.
fn names_more(entry_ref: &EntryRef<'_>) -> bool {
    let odd = Flags::META | Flags::LONE_SURROGATE | Flags::DUPLICATE_NAME;
    let odd_marks = EntryMarks::SALVAGED | EntryMarks::LOSSY | EntryMarks::GLUED;
    !entry_ref.flags().contains(Flags::TOO_MANY)
        && (!entry_ref.kind().is_message()
            || entry_ref.flags().intersects(odd)
            || entry_ref.marks().intersects(odd_marks))
}

/// Calls `name` with each call that an entry may name.
fn for_each_call(body: &str, mut name: impl FnMut(ToolKey)) {
    // A few entries of many name one. Another spelling of the names has an escape.
    if !["oolUse", "tool", "\\u"]
        .iter()
        .any(|text| body.contains(text))
    {
        return;
    }
    let Ok(entry) = Entry::parse(body) else {
        return;
    };
    let mut add = |raw: Option<Raw<'_>>| {
        if let Some(id) = raw.and_then(Raw::str) {
            name(ToolKey::of(&id));
        }
    };
    let object = entry.object();
    let attachment = object.object("attachment");
    for key in [
        "toolUseID",
        "toolUseId",
        "parentToolUseID",
        "parentToolUseId",
        "sourceToolUseID",
    ] {
        add(object.get(key));
        add(attachment
            .as_ref()
            .and_then(|attachment| attachment.get(key)));
    }
    let content = object
        .object("message")
        .and_then(|message| message.get("content"));
    let blocks = content.filter(|content| content.kind() == JsonKind::Array);
    for block in blocks.and_then(Raw::array).unwrap_or_default() {
        let block = block.object();
        let field = |key| block.as_ref().and_then(|block| block.get(key));
        add(field("id"));
        add(field("tool_use_id"));
    }
}
