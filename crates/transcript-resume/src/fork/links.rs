//! Chooses the entries of a copy, and the parent of each.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};
use transcript_reader::{
    ConversationPath, EntryNo, EntryRef, Index, MessageKey, NodeId, ToolKey, Tree,
};

/// Returns the entries that are copied, oldest first: those of the path except boundaries after its
/// start. A compaction that was interrupted ended nothing, but a client that reached its boundary
/// would show nothing before it (COMPACT-2). Empty without a message.
pub(super) fn entries(index: &Index, path: &ConversationPath) -> Vec<EntryNo> {
    let entries = path.entries.iter().enumerate();
    let entry_refs = entries.map(|(place, entry)| (place, index.entry(entry.entry_no())));
    let mut has_message = false;
    let copied: Vec<EntryNo> = entry_refs
        .filter(|(place, entry_ref)| *place == 0 || !entry_ref.is_boundary())
        .map(|(_, entry_ref)| {
            has_message |= entry_ref.kind().is_message();
            entry_ref.number()
        })
        .collect();
    if has_message { copied } else { Vec::new() }
}

/// Returns the place of the parent of each entry: the entry before it.
///
/// An API message with parallel calls and its results remains a tree, as the client writes it: each
/// result below its call. That is done only where every reader finds the entries outside the chain
/// (CHAIN-6), and in the order of the path (CHAIN-8).
///
/// A message that makes one of the calls `open` is a straight run: the missing results are inserted
/// between its lines and its other results. Also returns where the lines of such messages end.
pub(super) fn links(
    tree: &Tree<'_>,
    entries: &[EntryNo],
    open: &HashSet<ToolKey>,
) -> (Vec<Option<u32>>, HashSet<usize>) {
    let mut ends = HashSet::new();
    let mut links: Vec<_> = (0..entries.len() as u32)
        .map(|place| place.checked_sub(1))
        .collect();
    let runs = Runs::new(tree, entries);
    let is_flat = runs.ends_in_meta();
    let mut place = 0;
    while place < entries.len() {
        let run = runs.at(place);
        let entries = run.entries.clone();
        let mut calls = entries.flat_map(|place| runs.ends(place, ToolRole::Use));
        if !open.is_empty() && calls.any(|call| open.contains(&call)) {
            ends.insert(run.lines_end - 1);
        } else if !is_flat && let Some(own) = runs.tree_links(&run) {
            for (place, above) in run.entries.clone().zip(own).skip(1) {
                links[place] = Some(above);
            }
            if let Some(next) = links.get_mut(run.entries.end) {
                *next = Some(runs.above(run.entries.end, &run));
            }
        }
        place = run.entries.end;
    }
    (links, ends)
}

/// The lines of one API message, with the results of their calls and attachments right after them.
struct Run {
    entries: Range<usize>,
    /// The position at which the lines of the message end.
    lines_end: usize,
    message: Option<MessageKey>,
}

/// Finds runs among the entries of a path.
struct Runs<'t, 'i> {
    tree: &'t Tree<'i>,
    entries: &'t [EntryNo],
    places: HashMap<NodeId, usize>,
    /// The message that makes a call; `None` when several do, or one without an id.
    callers: HashMap<ToolKey, Option<MessageKey>>,
}

impl<'t, 'i> Runs<'t, 'i> {
    fn new(tree: &'t Tree<'i>, entries: &'t [EntryNo]) -> Self {
        let nodes = entries.iter().map(|entry| tree.node(*entry));
        let places = nodes
            .zip(0..)
            .filter_map(|(node, place)| Some((node?, place)));
        let mut runs = Self {
            tree,
            entries,
            places: places.collect(),
            callers: HashMap::new(),
        };
        for place in 0..entries.len() {
            let message = runs.message(place);
            for call in runs.ends(place, ToolRole::Use) {
                let caller = runs.callers.entry(call).or_insert(message);
                if *caller != message {
                    *caller = None;
                }
            }
        }
        runs
    }

    fn entry(&self, place: usize) -> EntryRef<'i> {
        self.tree.index().entry(self.entries[place])
    }

    /// Returns the API message that an answer is a line of for the client, which will read the copy.
    fn message(&self, place: usize) -> Option<MessageKey> {
        let entry = self.entry(place);
        (entry.kind() == EntryKind::Assistant).then(|| entry.message())?
    }

    /// Returns the calls that an answer makes, or those that a user entry has the results of.
    fn ends(&self, place: usize, role: ToolRole) -> impl Iterator<Item = ToolKey> + use<'i> {
        self.entry(place).tool_keys(role)
    }

    /// Returns whether the last message is `isMeta`. The Python SDK then looks for another end of
    /// the conversation, and would choose a result that is outside the chain.
    fn ends_in_meta(&self) -> bool {
        let mut entries = (0..self.entries.len()).rev().map(|place| self.entry(place));
        let last = entries.find(|entry| entry.kind().is_message());
        last.is_some_and(|last| last.flags().contains(Flags::META))
    }

    /// Returns the run that starts at `start`; a run of one entry when that is not a line of a
    /// message.
    fn at(&self, start: usize) -> Run {
        let mut run = Run {
            entries: start..start + 1,
            lines_end: start + 1,
            message: self.message(start),
        };
        let Some(message) = run.message else {
            return run;
        };
        let places = |from: usize| from..self.entries.len();
        let is_line = |place: &usize| self.message(*place) == Some(message);
        run.lines_end += places(start + 1).take_while(is_line).count();
        let follows = |place: &usize| {
            self.entry(*place).kind() == EntryKind::Attachment
                || self
                    .ends(*place, ToolRole::Result)
                    .any(|call| self.callers.get(&call) == Some(&Some(message)))
        };
        let followers = places(run.lines_end).take_while(follows).count();
        run.entries.end = run.lines_end + followers;
        run
    }

    /// Returns the place within `run` of the parent of `place` in the source, else the one before.
    fn above(&self, place: usize, run: &Run) -> u32 {
        let node = self.tree.node(self.entries[place]);
        let parent = node.and_then(|node| self.tree.parent_node(node));
        let own = parent.and_then(|parent| self.places.get(&parent).copied());
        let is_ancestor = |above: &usize| run.entries.contains(above) && *above < place;
        own.filter(is_ancestor).unwrap_or(place - 1) as u32
    }

    /// Returns the parent of each entry of `run` when it stays a tree, the first one without any;
    /// `None` when a reader would lose something of it.
    fn tree_links(&self, run: &Run) -> Option<Vec<u32>> {
        let message = run.message?;
        let Range { start, end } = run.entries;
        let mut above = vec![0];
        above.extend((start + 1..end).map(|place| self.above(place, run)));

        let mut is_on_chain = vec![false; above.len()];
        is_on_chain[0] = true;
        let mut place = if end < self.entries.len() {
            self.above(end, run) as usize
        } else {
            end - 1
        };
        while place > start {
            is_on_chain[place - start] = true;
            place = above[place - start] as usize;
        }

        // Lines of the message and results are found wherever they are (CHAIN-6), attachments below
        // those of them that are outside the chain (CHAIN-9). The SDKs sort these entries by time,
        // and the one for TypeScript fails without.
        let is_own = |call| self.callers.get(&call) == Some(&Some(message));
        let is_found = |place: usize| {
            let entry = self.entry(place);
            if entry.kind() == EntryKind::Attachment {
                return !is_on_chain[above[place - start] as usize - start];
            }
            let is_of_message =
                place < run.lines_end || self.ends(place, ToolRole::Result).all(is_own);
            is_of_message && entry.millis().is_some()
        };
        let mut off_chain = (start..end).filter(|place| !is_on_chain[place - start]);
        off_chain.all(is_found).then_some(above)
    }
}
