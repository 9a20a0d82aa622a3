//! Changes of a conversation other than adding entries: compaction, rewind, tombstones. Nothing is
//! ever removed from a file: new lines record that entries no longer count.

use std::collections::HashSet;

use transcript_format::json::ObjectBuf;
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
    /// The summary of the conversation before. The next entry becomes a child of it.
    pub summary: Written,
    /// The entries that stay in the conversation word for word, in their order.
    pub kept: Vec<EntryId>,
}

/// The metadata lines that are written at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct TurnEnd {
    prompt: Option<String>,
    lines: Vec<Draft>,
}

impl TurnEnd {
    /// The previous prompt, and the state that the file has.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the last prompt of the person.
    pub fn prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = Some(prompt.into());
        self
    }

    /// Adds lines: the current [state](transcript_format::kind::EntryKind::is_state) of the session, as its title, mode and
    /// cost, or any others.
    pub fn lines(mut self, lines: impl IntoIterator<Item = Draft>) -> Self {
        self.lines.extend(lines);
        self
    }
}

impl Writer {
    /// Restarts the conversation with a summary. The entries `kept` stay in the context word for
    /// word, in this order. They are not copied: the boundary lists them, and readers move them
    /// after the summary (COMPACT-3, COMPACT-4).
    ///
    /// Queued entries are written first. Boundary and summary are one write. If a crash interrupts
    /// it, readers ignore the incomplete compaction, and the next open truncates it. When a
    /// `last-prompt` line names the old leaf, a third line in the same write clears that pin:
    /// before the boundary, or after the summary if a rewind chose the leaf. In the second case the
    /// compaction takes effect only when that line is complete.
    ///
    /// A call and its result must both be preserved or neither. The caller must ensure that,
    /// because the writer does not remember results. A later result for a call that is not
    /// preserved does not become a child of the call.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownEntry`] when a preserved entry is not in the file, and as for
    /// [`append`](Self::append). The conversation is unchanged then.
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
            // A pin on the entry where the conversation would end anyway can be cleared first, so
            // that the summary is the last line of the write. A pin that a rewind chose must hold
            // until the summary is written.
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

    /// Goes back to an entry: the next one becomes a child of it, and the entries after it become
    /// an abandoned branch. Until there is a next entry, a `last-prompt` line states where the
    /// conversation ends (LEAF-6, LEAF-11).
    ///
    /// Readers include all lines of one answer and the results of its calls, even when the path
    /// only goes through one of them (CHAIN-6): going back to the middle of an answer goes back to
    /// the whole answer. To remove an entry from the conversation for good, use
    /// [`tombstone`](Self::tombstone).
    ///
    /// `None` goes back to before the first entry. No line can express that: until the next entry,
    /// readers show the conversation as it was.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownEntry`] when the entry is not in the file, and as for
    /// [`append`](Self::append). The conversation is unchanged then.
    pub fn rewind(&self, to: Option<EntryId>) -> Result<Written, Error> {
        self.move_leaf(to, &[])
    }

    /// Removes the last entry from the main conversation: the next one becomes a child of `parent`,
    /// the entry before it, as after a [`rewind`](Self::rewind), and an engine line marks the entry
    /// as tombstoned. Readers that do not know engine lines show an abandoned branch or, if the
    /// entry is one of several lines of an answer, the whole answer.
    ///
    /// An entry with descendants cannot be removed alone, because their links would have to be
    /// rewritten. Rewind to it first, which abandons its descendants too.
    ///
    /// # Errors
    /// [`ErrorKind::NotTheLeaf`] when the entry is not the last one, [`ErrorKind::UnknownEntry`]
    /// when `parent` is not in the file, and as for [`append`](Self::append).
    pub fn tombstone(&self, entry: &EntryId, parent: Option<EntryId>) -> Result<Written, Error> {
        self.tombstone_all(std::slice::from_ref(entry), parent)
    }

    /// Removes the last entries from the main conversation, as [`tombstone`](Self::tombstone) removes
    /// one: `entries`, oldest first, are all that follow `parent`. One line marks all of them, so that
    /// a crash leaves all or nothing.
    ///
    /// # Errors
    /// [`ErrorKind::NotTheLeaf`] when the conversation does not end with the last of them,
    /// [`ErrorKind::UnknownEntry`] when one of them or `parent` is not in the file, and as for
    /// [`append`](Self::append).
    pub fn tombstone_all(
        &self,
        entries: &[EntryId],
        parent: Option<EntryId>,
    ) -> Result<Written, Error> {
        self.move_leaf(parent, entries)
    }

    fn move_leaf(&self, to: Option<EntryId>, from: &[EntryId]) -> Result<Written, Error> {
        let shared = self.shared();
        let plan = |WriteState { chains, .. }: WriteState<'_>| {
            let mut drafts = Vec::new();
            if !from.is_empty() {
                chains.check_last(from, to.as_ref())?;
                drafts.push(Draft::tombstones(from)?);
            } else if to.as_ref().is_some_and(|to| !chains.knows(to)) {
                return Err(ErrorKind::UnknownEntry);
            }
            drafts.push(Draft::ending_at(to.clone()));
            Ok((drafts, to))
        };
        let settle = |chains: &mut Chains, to: &Option<EntryId>| chains.rewind(to.clone());
        let (mut written, _) = shared.append_planned(plan, settle)?;
        written.pop().ok_or_else(|| shared.closed())
    }

    /// Ends a turn: writes a `last-prompt` line, which names the leaf and the last prompt of the
    /// person, then the [lines](TurnEnd::lines) of `turn`. Of several state lines of one kind, only
    /// the last is written, and none if the last 64 KiB of the file already contain the same line.
    ///
    /// Other readers list a session from those 64 KiB alone. State of kinds that `turn` does not
    /// contain is therefore appended again, word for word, even when another tool wrote it: without
    /// that, a long turn would push a title out of the part that they read. The previous prompt is
    /// appended again when `turn` has none. State that does not fit into the 64 KiB with the rest
    /// is not appended again.
    ///
    /// Lines that are not state are always written. Returns the lines that were written, in order.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn end_turn(&self, turn: TurnEnd) -> Result<Vec<Written>, Error> {
        let TurnEnd { prompt, lines } = turn;
        let plan = |WriteState {
                        chains,
                        metadata,
                        end,
                    }: WriteState<'_>| {
            let prompt = prompt.as_deref().or(metadata.prompt());
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

fn keep_last_of_each_kind(lines: &mut Vec<Draft>) {
    let mut seen = HashSet::new();
    lines.reverse();
    lines.retain(|line| !line.kind.is_state() || seen.insert(line.kind));
    lines.reverse();
}
