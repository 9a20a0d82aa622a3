//! What is done to a conversation beside adding to it: compaction, rewind, tombstones. Nothing is
//! ever cut out of a file; entries are left behind, and lines say so.

use std::collections::{BTreeMap, HashSet};

use transcript_format::json::ObjectBuf;
use transcript_format::kind::EntryKind;
use transcript_format::make::{self, Compaction};

use crate::chain::Chains;
use crate::draft::{Draft, EntryId};
use crate::error::{Error, ErrorKind};
use crate::writer::{WriteState, Writer, Written};

/// A compaction that is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// The boundary, where the conversation starts over.
    pub boundary: Written,
    /// The summary of what was before. The next entry is a child of it.
    pub summary: Written,
    /// The entries that stay in the conversation word for word, in their order.
    pub kept: Vec<EntryId>,
}

impl Writer {
    /// Restarts the conversation with a summary of what was before. `kept` are the entries that
    /// stay in the context word for word, in their order; they are named, not copied, and readers
    /// put them behind the summary (`facts/rig.md` 9).
    ///
    /// Everything that was queued is written first. Boundary and summary are one write: a crash
    /// leaves both or no compaction; what is not all of it does not count, and is cut off when the
    /// file is opened again. When a `last-prompt` line names the old end, a third line in the same
    /// write lifts that: before the boundary, or behind the summary if that end was chosen by a
    /// rewind; until it is whole, the old conversation is the one that counts then.
    ///
    /// A call and its result have to be kept together or not at all; whether they are is for the
    /// caller to see to, as the writer remembers no results. A result that comes later for a call
    /// that is not kept does not be a child of it any more.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownEntry`] when a kept entry is not in the file, and as for
    /// [`append`](Self::append). The conversation is as it was then.
    pub fn compact(
        &self,
        compaction: Compaction,
        summary: &str,
        kept: &[EntryId],
    ) -> Result<Compacted, Error> {
        let shared = self.shared();
        let anchor = EntryId::Uuid(shared.new_id());
        let plan = |WriteState { chains, .. }: WriteState<'_>| {
            if !kept.iter().all(|id| chains.knows(id)) {
                return Err(ErrorKind::UnknownEntry);
            }
            let compaction = compaction.kept(&anchor, kept);
            // A pin that only says where the conversation ends anyway can be lifted first, so that
            // the summary is the last line that it takes. One that was chosen has to hold until then.
            let is_pinned = chains.root_leaves_pin();
            let holds = is_pinned && chains.is_rewound();
            let first = (is_pinned && !holds).then(Draft::unpin);
            let lines = if holds { 3 } else { 2 };
            let mark = ObjectBuf::new().with("lines", lines);
            let boundary = make::compact_boundary(chains.leaf(), compaction).engine(&mark);
            let boundary = Draft::try_from(&boundary).map_err(|_| ErrorKind::InvalidEntry)?;
            let summary = make::compact_summary(summary).uuid(&anchor);
            let summary = Draft::try_from(&summary).map_err(|_| ErrorKind::InvalidEntry)?;
            Ok((first.into_iter().chain([boundary, summary]).collect(), ()))
        };
        let (mut written, ()) = shared.append_planned(plan, |_, ()| {})?;
        let (Some(summary), Some(boundary)) = (written.pop(), written.pop()) else {
            return Err(shared.closed());
        };
        Ok(Compacted {
            boundary,
            summary,
            kept: kept.to_vec(),
        })
    }

    /// Goes back to an entry: the next one is a child of it, and what came after it is left as a
    /// branch. Until there is a next one, a `last-prompt` line says where the conversation ends
    /// (`facts/rig.md` 4).
    ///
    /// Readers put the lines of one answer and the results of its calls together again, wherever the
    /// conversation goes on (`facts/rig.md` 5): going back to the middle of an answer goes back to
    /// the whole answer. What must not come again is taken out by [`tombstone`](Self::tombstone).
    ///
    /// `None` goes back to before the first entry, which no line can say: until the next entry,
    /// readers show the conversation as it was.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownEntry`] when it is not in the file, and as for
    /// [`append`](Self::append). The conversation goes on where it was then.
    pub fn rewind(&self, to: Option<EntryId>) -> Result<Written, Error> {
        self.move_leaf(to, None)
    }

    /// Takes back the last entry of the main conversation: the next one is a child of `parent`, the
    /// entry above it, as after a [`rewind`](Self::rewind), and a line of our own type names the
    /// entry that no longer counts. Readers that do not know that line see a branch that was left, or,
    /// of an answer of several lines, the whole answer.
    ///
    /// An entry with others under it cannot be taken out from between them: their links would have
    /// to be written again. Go back to it first; what is under it is left then, too.
    ///
    /// # Errors
    /// [`ErrorKind::NotTheLeaf`] when the entry is not the last one, [`ErrorKind::UnknownEntry`] when
    /// `parent` is not in the file, and as for [`append`](Self::append).
    pub fn tombstone(&self, entry: &EntryId, parent: Option<EntryId>) -> Result<Written, Error> {
        self.move_leaf(parent, Some(entry))
    }

    fn move_leaf(&self, to: Option<EntryId>, from: Option<&EntryId>) -> Result<Written, Error> {
        let shared = self.shared();
        let plan = |WriteState { chains, .. }: WriteState<'_>| {
            if from.is_some() && chains.leaf() != from {
                return Err(ErrorKind::NotTheLeaf);
            }
            if to
                .as_ref()
                .is_some_and(|to| !chains.knows(to) || from == Some(to))
            {
                return Err(ErrorKind::UnknownEntry);
            }
            let pin = to.clone().map_or_else(Draft::unpin, Draft::pin);
            let mut drafts = Vec::new();
            if let Some(from) = from {
                let tombstone = Draft::try_from(&make::tombstone(from));
                drafts.push(tombstone.map_err(|_| ErrorKind::InvalidEntry)?);
            }
            drafts.push(pin);
            Ok((drafts, to))
        };
        let settle = |chains: &mut Chains, to: &Option<EntryId>| {
            chains.rewind(to.clone());
        };
        let (mut written, _) = shared.append_planned(plan, settle)?;
        written.pop().ok_or_else(|| shared.closed())
    }

    /// Ends a turn: writes a `last-prompt` line with the end of the conversation and `prompt`, what
    /// the person wrote last, and `lines`, the [state](EntryKind::is_state) of the session by now:
    /// title, mode, cost. State that the file has already is written again only when it says
    /// something else, or no longer stands in the last 64 KiB of the file, all that other readers
    /// look at to list sessions (`facts/sdk.md` 4). Of lines of one kind the last one counts.
    ///
    /// Kinds of which `lines` say nothing are carried along, word for word and whoever wrote them
    /// last: a title that a person gave with another tool does not get lost behind a long turn. So
    /// is the prompt before, without a `prompt`. State that is too long to stand in those 64 KiB
    /// with the rest is left where it is.
    ///
    /// Lines that are no state are always written. Returns those that were written, in their order.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn end_turn(&self, prompt: Option<&str>, lines: Vec<Draft>) -> Result<Vec<Written>, Error> {
        let plan = |WriteState {
                        chains,
                        metadata,
                        end,
                    }: WriteState<'_>| {
            let prompt = prompt.or(metadata.prompt.as_deref());
            let last = make::last_prompt(prompt, chains.leaf(), chains.is_rewound());
            let last = Draft::try_from(&last).map_err(|_| ErrorKind::InvalidEntry)?;
            let mut all: Vec<Draft> = std::iter::once(last).chain(lines).collect();
            keep_last_of_each_kind(&mut all);
            metadata.carry_into(&mut all);
            Ok((metadata.due(all, end), ()))
        };
        let (written, ()) = self.shared().append_planned(plan, |_, ()| {})?;
        Ok(written)
    }
}

/// How much of the end of a file others look at.
const WINDOW: u64 = 64 << 10;

/// About how many bytes a draft takes in the file, rather more: what is filled in, and a newline.
fn room(line: &Draft) -> u64 {
    let filled_in = if line.kind.is_chain() { 1024 } else { 128 };
    (line.len() + filled_in) as u64
}

fn keep_last_of_each_kind(lines: &mut Vec<Draft>) {
    let mut seen = HashSet::new();
    lines.reverse();
    lines.retain(|line| !line.kind.is_state() || seen.insert(line.kind));
    lines.reverse();
}

/// The last line of each kind of state: what it says and where it starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct MetadataCache {
    lines: BTreeMap<EntryKind, (Draft, u64)>,
    /// What the person wrote last, if a line says so.
    prompt: Option<String>,
}

impl MetadataCache {
    /// The state of a file of `len` bytes: a line behind that was cut off when it was opened.
    pub(crate) fn new(lines: &[(Draft, u64)], len: u64) -> Self {
        let mut metadata = Self::default();
        for (line, offset) in lines.iter().filter(|(_, offset)| *offset < len) {
            metadata.note(line, *offset);
        }
        metadata
    }

    /// Notes a line that is in the file, unless one of its kind stands further down.
    pub(crate) fn note(&mut self, line: &Draft, offset: u64) {
        if !line.kind.is_state() {
            return;
        }
        let last = self.lines.get(&line.kind);
        if last.is_some_and(|(_, last)| *last > offset) {
            return;
        }
        if line.kind == EntryKind::LastPrompt
            && let Some(prompt) = line.text_of("lastPrompt")
        {
            self.prompt = Some(prompt);
        }
        self.lines.insert(line.kind, (line.clone(), offset));
    }

    /// Adds the state of other kinds than those in `lines`, the shortest first, as far as all of it
    /// can be seen at once.
    fn carry_into(&self, lines: &mut Vec<Draft>) {
        let mut taken: u64 = lines.iter().map(room).sum();
        let is_given = |line: &&Draft| lines.iter().any(|given| given.kind == line.kind);
        let others = self.lines.values().map(|(line, _)| line);
        let mut others: Vec<&Draft> = others.filter(|line| !is_given(line)).collect();
        others.sort_by_key(|line| line.len());
        for line in others {
            taken += room(line);
            if taken > WINDOW {
                break;
            }
            lines.push(line.clone());
        }
    }

    /// Those of `lines` that the file of `end` bytes does not say, or too far from where it will end
    /// with them.
    fn due(&self, lines: Vec<Draft>, end: u64) -> Vec<Draft> {
        let place = |line: &Draft| {
            let (metadata, offset) = self.lines.get(&line.kind)?;
            metadata.has_same_fields(line).then_some(*offset)
        };
        let placed: Vec<_> = lines.into_iter().map(|line| (place(&line), line)).collect();
        let mut window = end.saturating_sub(WINDOW);
        loop {
            let is_due = |place: Option<u64>| place.is_none_or(|place| place < window);
            let due = placed.iter().filter(|(place, _)| is_due(*place));
            let longer: u64 = due.map(|(_, line)| room(line)).sum();
            let moved = (end + longer).saturating_sub(WINDOW);
            if moved == window {
                let due = placed.into_iter().filter(|(place, _)| is_due(*place));
                return due.map(|(_, line)| line).collect();
            }
            window = moved;
        }
    }
}
