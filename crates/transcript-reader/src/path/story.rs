//! The whole conversation, from its first entry through each compaction to the leaf.
//!
//! A path starts at the last compaction. The compacted entries are still in the file: above each
//! boundary is the conversation that it ended, a *chapter*. A story has all chapters in order, and
//! then the path.
//!
//! The links of a chapter are those at the time of its compaction, so they are followed in a tree
//! whose entries are not spliced ([`Tree::unspliced`]). Entries that a compaction preserved are
//! shown once, where they were written.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use transcript_format::scan::Flags;

use super::walk::Walk;
use super::{ConversationPath, PathEntry, Via};
use crate::index::{EntryNo, Preserved};
use crate::tree::decision::{Decision, Evidence};
use crate::tree::{NodeId, Parent, Policy, Tree};

/// A conversation with everything that its compactions removed from it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Story {
    /// The entries of all chapters, oldest first, each once. [`PathEntry::in_context`] marks those
    /// that the model sees. The decisions are those of the context, after those about the chapters.
    pub path: ConversationPath,
    /// The chapters, oldest first, at least one unless there are no entries. The last one is the
    /// conversation since the last compaction.
    pub chapters: Vec<Chapter>,
}

/// The part of a story between two compactions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chapter {
    /// The places of its entries on the path. The first entry is the boundary of the chapter before.
    pub entries: Range<usize>,
    /// The boundary that closed it; `None` for the last chapter.
    pub boundary: Option<EntryNo>,
}

impl Story {
    /// Returns the number of the chapter, from 0, of the entry at `place` of the path.
    #[must_use]
    pub fn chapter_of(&self, place: usize) -> usize {
        let ends = |chapter: &Chapter| chapter.entries.end <= place;
        self.chapters.partition_point(ends)
    }

    /// Ends the story after this entry. Returns false, and changes nothing, when that is not in it.
    pub fn cut_after(&mut self, entry_no: EntryNo) -> bool {
        if !self.path.cut_after(entry_no) {
            return false;
        }
        let last = self.chapter_of(self.path.entries.len() - 1);
        self.chapters.truncate(last + 1);
        self.chapters[last] = Chapter {
            entries: self.chapters[last].entries.start..self.path.entries.len(),
            boundary: None,
        };
        true
    }

    /// Returns the boundaries that closed the chapters, oldest first.
    pub fn boundaries(&self) -> impl Iterator<Item = EntryNo> + '_ {
        self.chapters.iter().filter_map(|chapter| chapter.boundary)
    }
}

impl Tree<'_> {
    /// Returns the story that `context` ends: a path from the last compaction on, of this tree or of
    /// the one that it was made [from](Self::unspliced).
    ///
    /// The conversation before a boundary ended at its parent, else at its `logicalParentUuid`, else
    /// at the last entry that it preserves. Under `recover` it ended at that one if the other is an old
    /// entry that was written again after it. If the file has none of them, it is taken to be the
    /// message before the boundary, which a [`Decision::Bridge`] records.
    #[must_use]
    pub fn story(&self, context: &ConversationPath) -> Story {
        let Some(boundary) = self.start_of(context) else {
            return Story::from(context.clone());
        };
        let mut walk = Walk::new(self);
        let own = context
            .entries
            .iter()
            .filter_map(|entry| self.entry_node(entry.entry_no()));
        // Marked as walked, so that no chapter contains an entry that the context has after its summary.
        for node in own.filter(|node| *node >= boundary) {
            walk.via[node.at()] = Via::PARENT;
        }
        // Each chapter in the tree as it was before its splice; the context above is of the spliced one.
        let mut story = StoryWalk::new(self);
        if let Some(end) = walk.end_of_chapter(boundary, &story) {
            walk.up_through_compactions(&mut story, end, Some(boundary));
        }
        walk.add_kept_entries();
        walk.add_siblings(&mut None);
        walk.into_story(boundary, context)
    }

    /// Returns the boundary of the last compaction of a path.
    fn start_of(&self, context: &ConversationPath) -> Option<NodeId> {
        let cut = context
            .decisions
            .iter()
            .find_map(|decision| match decision {
                Decision::Cut { boundary, .. } => self.entry_node(*boundary),
                _ => None,
            });
        // Without its anchor, a boundary that preserves entries is not on the path (COMPACT-9), and
        // if it preserves an older boundary, the path starts there.
        let keeper = self.kept_entries().filter(|kept| {
            let first = self.entry_no_of(kept.entries[0]);
            let mut entries = context.entries.iter();
            entries.any(|entry| entry.entry_no() == first)
        });
        cut.max(keeper.map(|kept| kept.boundary))
    }

    /// Returns the boundaries of completed compactions, in file order. Of one that preserves entries
    /// also where all before it is reached from: its anchor, else its summary or itself.
    fn boundaries(&self) -> Vec<(NodeId, Option<NodeId>)> {
        let boundaries = self.nodes().filter(|node| self.entry(*node).is_boundary());
        let boundaries = boundaries.filter(|node| !self.is_removed(*node));
        let found = boundaries.filter_map(|boundary| {
            let facts = self.index.boundary(self.entry_no_of(boundary))?;
            let exists = |id| self.node_with_uuid(id).is_some_and(|node| node < boundary);
            let (anchor, is_kept) = match &facts.preserved {
                Preserved::Nothing => return Some((boundary, None)),
                Preserved::List { anchor, uuids } => {
                    let mut kept = uuids.iter().map(|id| id.is_some_and(exists));
                    let is_kept = match self.policy() {
                        Policy::Vendor => !uuids.is_empty() && kept.all(|is_there| is_there),
                        _ => kept.any(|is_there| is_there),
                    };
                    (*anchor, is_kept)
                }
                Preserved::Segment { anchor } => {
                    let mut ends = facts.ends.iter().map(|id| id.is_some_and(exists));
                    (*anchor, ends.all(|is_there| is_there))
                }
            };
            let anchor = anchor.and_then(|anchor| self.node_with_uuid(anchor));
            // A compaction without its summary was not completed; the client does not look.
            let is_finished = self.policy() == Policy::Vendor
                || anchor.is_some()
                || self.children(boundary).next().is_some();
            let above = match anchor {
                Some(anchor) => Some(anchor).filter(|anchor| *anchor > boundary),
                None => self.summary_below(boundary),
            };
            is_finished.then(|| (boundary, is_kept.then_some(above.unwrap_or(boundary))))
        });
        found.collect()
    }

    fn summary_below(&self, boundary: NodeId) -> Option<NodeId> {
        self.children(boundary).find(|child| {
            let flags = self.entry(*child).flags();
            flags.contains(Flags::COMPACT_SUMMARY)
        })
    }

    /// Returns how many entries a boundary preserves, of the last `max_steps` entries before it; `None`
    /// if the ends of its segment do not show it.
    fn count_kept(&self, boundary: EntryNo, max_steps: usize) -> Option<u32> {
        let facts = self.index.boundary(boundary)?;
        let node = |id| self.node_with_uuid(id);
        Some(match &facts.preserved {
            Preserved::Nothing => 0,
            Preserved::List { uuids, .. } => {
                uuids.iter().filter_map(|id| node((*id)?)).count() as u32
            }
            Preserved::Segment { .. } => {
                let [head, tail] = facts.ends;
                let (head, tail) = (node(head?)?, node(tail?)?);
                let place = self
                    .ancestors(tail)
                    .take(max_steps)
                    .position(|node| node == head)?;
                place as u32 + 1
            }
        })
    }
}

/// The state of a walk through the compactions of a file.
pub(crate) struct StoryWalk {
    /// See [`Tree::boundaries`].
    boundaries: Vec<(NodeId, Option<NodeId>)>,
    /// The chapter in which each entry was walked last; 0 for none.
    walked_in: Vec<u32>,
    /// The number of the chapter that is walked, over all walks.
    chapter: u32,
    /// For each entry that is there several times and was looked up: its lines that have a parent in
    /// the file, in order, with that parent.
    parents_of: HashMap<NodeId, Vec<(EntryNo, NodeId)>>,
}

impl StoryWalk {
    pub(crate) fn new(tree: &Tree<'_>) -> Self {
        Self {
            boundaries: tree.boundaries(),
            walked_in: vec![0; tree.nodes().count()],
            chapter: 0,
            parents_of: HashMap::new(),
        }
    }

    /// Returns the parent of `node` at the time of a compaction, if the entry was written again
    /// after it with another parent.
    fn parent_before(&mut self, tree: &Tree<'_>, node: NodeId, boundary: NodeId) -> Option<NodeId> {
        let parents = self.parents_of.entry(node).or_insert_with(|| {
            let lines = tree.entry(node).uuid().into_iter();
            let lines = lines.flat_map(|uuid| tree.index.with_uuid(uuid));
            let with_parent = lines.filter_map(|line| {
                transcript_format::work::add(1);
                let mut named = tree.index.with_uuid(tree.index.entry(line).parent()?);
                Some((line, named.find_map(|named| tree.entry_node(named))?))
            });
            with_parent.collect()
        });
        let end = tree.entry_no_of(boundary);
        // The entry may have been written again after the compaction, with another parent: the one before it counts.
        let before = parents.partition_point(|(line, _)| *line < end);
        let mut parents = parents[..before].iter().map(|(_, parent)| *parent);
        let is_before = |parent: &NodeId| *parent < boundary;
        match tree.policy() {
            Policy::Vendor => parents.rfind(is_before),
            _ => parents.find(is_before),
        }
    }

    /// Returns the entry that `below` follows if it names `parent`, in the chapter that `end` closed,
    /// if the last compaction before `end` is between them and preserves entries: all before that
    /// one is reached through its summary (COMPACT-4, COMPACT-7, COMPACT-8).
    fn keeper_between(&self, parent: NodeId, below: NodeId, end: NodeId) -> Option<NodeId> {
        let before = self.boundaries.partition_point(|(keeper, _)| *keeper < end);
        let (keeper, anchor) = *self.boundaries[..before].last()?;
        let above = if anchor? < below { anchor? } else { keeper };
        (parent < keeper && keeper < below).then_some(above)
    }
}

impl Story {
    /// Adds the decisions about the chapters, and those of the context, with the number of messages
    /// that were compacted away as the story has them.
    fn add_decisions(&mut self, tree: &Tree<'_>, context: &ConversationPath) {
        let index = tree.index();
        let entries = &self.path.entries;
        let is_message = |entry: &&PathEntry| index.entry(entry.entry_no()).kind().is_message();
        // Decisions about entries of the context are in its own list already.
        let mut own = vec![false; index.len()];
        for entry in entries.iter().filter(|entry| !entry.in_context) {
            own[entry.entry_no().get()] = true;
        }
        let hidden = entries
            .iter()
            .filter(is_message)
            .filter(|entry| !entry.in_context)
            .count() as u32;
        let mut decisions = context.decisions.clone();
        for decision in &mut decisions {
            if let Decision::Cut {
                hidden: counted, ..
            } = decision
            {
                *counted = counted.map(|_| hidden);
            }
        }
        decisions.append(&mut self.path.decisions);
        for chapter in &self.chapters[..self.chapters.len() - 2] {
            let Some(boundary) = chapter.boundary else {
                continue;
            };
            let entries = &entries[chapter.entries.clone()];
            decisions.push(Decision::Chapter {
                boundary,
                messages: entries.iter().filter(is_message).count() as u32,
                kept: tree.count_kept(boundary, entries.len()),
            });
        }
        let of_tree = tree.decisions.iter().copied();
        decisions.extend(of_tree.filter(|decision| own[decision.entry().get()]));
        self.path.decisions = decisions;
    }
}

impl From<ConversationPath> for Story {
    /// Makes a story of one chapter.
    fn from(path: ConversationPath) -> Self {
        let all = Chapter {
            entries: 0..path.entries.len(),
            boundary: None,
        };
        let chapters = Vec::from_iter((!path.entries.is_empty()).then_some(all));
        Self { path, chapters }
    }
}

/// The maximum number of walks over the entries of a file, in all. An entry that was written again
/// after a compaction is in two chapters; only a file made to be slow has more.
const MAX_WALKS: usize = 8;

impl Walk<'_, '_> {
    /// Walks from `start` up to the root, or to an entry of an earlier path, through each compaction.
    /// Adds the entries to the chain, oldest first. `start` is the end of the chapter that
    /// `boundary` closed, if any.
    pub(crate) fn up_through_compactions(
        &mut self,
        story: &mut StoryWalk,
        start: (NodeId, Via),
        boundary: Option<NodeId>,
    ) {
        let tree = self.tree;
        let max_steps = MAX_WALKS * story.walked_in.len();
        let mut limit = boundary.unwrap_or(NodeId(u32::MAX));
        let mut next = Some(start);
        let mut repeats = false;
        story.chapter += 1;
        while let Some((node, via)) = next {
            if self.is_on_other(node) {
                self.from = Some(node);
                break;
            }
            let before = std::mem::replace(&mut story.walked_in[node.at()], story.chapter);
            // The same chapter: a cycle. Several chapters: allowed, but with a limit for crafted files.
            if before == story.chapter || (before > 0 && self.chain.len() > max_steps) {
                let entry = tree.entry_no_of(node);
                self.decisions.push(Decision::Cycle { entry });
                break;
            }
            repeats |= before > 0;
            self.push_node(node, via);
            next = if tree.entry(node).is_boundary() {
                limit = node;
                story.chapter += 1;
                self.end_of_chapter(node, story)
            } else {
                self.up_in_chapter(node, limit, story)
            };
        }
        self.chain.reverse();
        if repeats {
            // An entry of several chapters stays in the oldest.
            let mut seen = HashSet::new();
            self.chain.retain(|node| seen.insert(*node));
        }
    }

    /// Returns the entry that the conversation before `boundary` ended with, after its attachments
    /// (CHAIN-10).
    fn end_of_chapter(&mut self, boundary: NodeId, story: &StoryWalk) -> Option<(NodeId, Via)> {
        let tree = self.tree;
        let (end, is_proved) = tree.end_before(boundary)?;
        // An older compaction that preserved entries is between both: only its summary leads to them.
        if let Some(above) = story.keeper_between(end, boundary, boundary) {
            return Some((above, Via::PARENT));
        }
        for attachment in tree.attachments_below(end).into_iter().rev() {
            // Attachments after the boundary were written for the next chapter.
            if attachment < boundary && !self.is_on_chain(attachment) {
                self.push_node(attachment, Via::PARENT);
            }
        }
        if is_proved {
            return Some((end, Via::PARENT));
        }
        self.decisions.push(Decision::Bridge {
            entry: tree.entry_no_of(boundary),
            parent: tree.entry_no_of(end),
            evidence: Evidence::FileOrder,
        });
        Some((end, Via::BRIDGE))
    }

    /// Returns the entry above `node` in the chapter that `boundary` closed.
    fn up_in_chapter(
        &mut self,
        node: NodeId,
        boundary: NodeId,
        story: &mut StoryWalk,
    ) -> Option<(NodeId, Via)> {
        let tree = self.tree;
        let parent = match tree.parent_before_splice(node) {
            Parent::Node(parent) if parent < boundary => Some(parent),
            Parent::Node(_) => story.parent_before(tree, node, boundary),
            Parent::Root => return None,
            Parent::Lost => None,
        };
        if let Some(parent) = parent {
            return match story.keeper_between(parent, node, boundary) {
                Some(above) => Some((above, Via::PARENT)),
                None => Some((parent, self.note_link(node, parent))),
            };
        }
        if tree.policy() == Policy::Recover {
            self.decisions.extend(tree.link_decision(node));
            return None;
        }
        let entry = tree.entry_no_of(node);
        let Some((parent, gap_millis)) = self.relink(node).filter(|(parent, _)| *parent < boundary)
        else {
            self.decisions.push(Decision::Truncated { entry });
            return None;
        };
        self.decisions.push(Decision::Relink {
            entry,
            parent: tree.entry_no_of(parent),
            gap_millis,
        });
        Some((parent, Via::BRIDGE))
    }

    /// Adds the entries that the compactions on the chain preserved and that are on no chapter, such
    /// as those of another branch, after the anchor.
    fn add_kept_entries(&mut self) {
        let tree = self.tree;
        // Segments can overlap: without a limit, crafted ones would be walked again for each boundary.
        let mut max_steps = MAX_WALKS * self.via.len();
        let mut lost: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for boundary in self.chain.clone() {
            let facts = tree.index.boundary(tree.entry_no_of(boundary));
            let Some(facts) = facts.filter(|_| tree.entry(boundary).is_boundary()) else {
                continue;
            };
            let node = |id| tree.node_with_uuid(id).filter(|node| *node < boundary);
            let (anchor, kept) = match &facts.preserved {
                Preserved::Nothing => continue,
                Preserved::List { anchor, uuids } => {
                    let kept = uuids.iter().filter_map(|id| node((*id)?));
                    (anchor, kept.collect::<Vec<_>>())
                }
                Preserved::Segment { anchor } => {
                    let [head, tail] = facts.ends.map(|end| node(end?));
                    let (Some(head), Some(tail)) = (head, tail) else {
                        continue;
                    };
                    let above = tree.ancestors(tail).take(max_steps);
                    let mut kept: Vec<_> =
                        above.take_while(|node| !self.is_on_chain(*node)).collect();
                    max_steps -= kept.len().min(max_steps);
                    let is_head = |node: &NodeId| *node == head;
                    kept.truncate(
                        kept.iter()
                            .position(is_head)
                            .map_or(kept.len(), |at| at + 1),
                    );
                    let top = kept.last().and_then(|top| tree.parent_node(*top));
                    if !kept.contains(&head) && !top.is_some_and(|top| self.is_on_chain(top)) {
                        continue;
                    }
                    kept.reverse();
                    (anchor, kept)
                }
            };
            let anchor = anchor.and_then(|anchor| tree.node_with_uuid(anchor));
            // Without its anchor on the chain, the boundary is the nearest place that is.
            let anchor = anchor
                .filter(|anchor| self.is_on_chain(*anchor))
                .unwrap_or(boundary);
            for node in kept {
                if !self.is_on_chain(node) {
                    self.via[node.at()] = Via::SPLICE;
                    lost.entry(anchor).or_default().push(node);
                }
            }
        }
        if !lost.is_empty() {
            let with_kept = |node: NodeId| {
                let kept = lost.remove(&node).unwrap_or_default();
                std::iter::once(node).chain(kept)
            };
            self.chain = std::mem::take(&mut self.chain)
                .into_iter()
                .flat_map(with_kept)
                .collect();
        }
    }

    /// Adds the context, which the walk knows, to its chapters.
    fn into_story(mut self, boundary: NodeId, context: &ConversationPath) -> Story {
        let tree = self.tree;
        let mut older: HashMap<NodeId, PathEntry> = HashMap::new();
        for entry in &context.entries {
            if let Some(node) = tree
                .entry_node(entry.entry_no())
                .filter(|node| *node < boundary)
            {
                older.insert(node, *entry);
            }
        }
        let mut path = ConversationPath::default();
        let mut chapters = Vec::new();
        let mut start = 0;
        let close = |path: &ConversationPath, boundary: EntryNo, start: &mut usize| {
            let end = path.entries.len();
            let entries = std::mem::replace(start, end)..end;
            let boundary = Some(boundary);
            Chapter { entries, boundary }
        };
        for node in std::mem::take(&mut self.chain) {
            let number = tree.entry_no_of(node);
            if tree.entry(node).is_boundary() {
                chapters.push(close(&path, number, &mut start));
            }
            if tree.entry(node).is_salvaged() {
                self.via[node.at()] |= Via::SALVAGE;
                self.decisions.push(Decision::Salvage { entry: number });
            }
            let mut entry = older.remove(&node).unwrap_or_else(|| {
                let mut entry = PathEntry::new(number, Via::empty());
                entry.in_context = false;
                entry
            });
            entry.kept = entry.in_context;
            entry.via |= self.via[node.at()];
            path.entries.push(entry);
        }
        let number = tree.entry_no_of(boundary);
        chapters.push(close(&path, number, &mut start));
        // A boundary that is not on the path, and its summary.
        let is_shown = |number: EntryNo| {
            let mut shown = context.entries.iter().chain(&path.entries);
            shown.any(|entry| entry.entry_no() == number)
        };
        if !is_shown(number) {
            let summary = tree.summary_below(boundary);
            let added = [Some(boundary), summary].into_iter().flatten();
            let added = added.map(|node| tree.entry_no_of(node));
            let added: Vec<_> = added.filter(|number| !is_shown(*number)).collect();
            path.entries.extend(added.into_iter().map(|number| {
                let mut entry = PathEntry::new(number, Via::PARENT);
                entry.in_context = false;
                entry
            }));
        }
        path.entries.extend(context.entries.iter().filter(|entry| {
            let node = tree.entry_node(entry.entry_no());
            node.is_none_or(|node| node >= boundary || older.contains_key(&node))
        }));
        let end = path.entries.len();
        chapters.push(Chapter {
            entries: start..end,
            boundary: None,
        });
        path.leaf = context.leaf;
        path.refusal = context.refusal;
        path.decisions = self.decisions;
        let mut story = Story { path, chapters };
        story.add_decisions(tree, context);
        story
    }
}
