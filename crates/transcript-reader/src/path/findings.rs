//! Findings about the links of a file: about the graph, compactions and calls.
//!
//! The reader reports findings about single lines. A finding describes the content of the file, a
//! decision how the reader interpreted it.

use std::collections::{HashMap, HashSet};

use transcript_format::finding::{Code, Finding};
use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};

use super::ConversationPath;
use crate::index::{Boundary, EntryNo, EntryRef, Id, MessageKey, Preserved, ToolKey};
use crate::tree::components::Descendants;
use crate::tree::decision::{Decision, Evidence, GapReason};
use crate::tree::{NodeId, Tree};

impl Tree<'_> {
    /// Returns the findings about the links of the file, and about the calls on `path`, by offset.
    ///
    /// Cycles and entries of other sessions are found only under
    /// [`Policy::Recover`](crate::Policy).
    #[must_use]
    pub fn findings(&self, path: &ConversationPath) -> Vec<Finding> {
        let mut findings = Findings {
            tree: self,
            found: Vec::new(),
        };
        findings.of_links();
        findings.of_branches();
        findings.of_compactions();
        findings.of_path(path);
        let mut found = findings.found;
        found.sort_by_key(|finding| (finding.offset, finding.code));
        found
    }
}

struct Findings<'t, 'i> {
    tree: &'t Tree<'i>,
    found: Vec<Finding>,
}

impl<'i> Findings<'_, 'i> {
    fn add(&mut self, code: Code, entry: EntryRef<'_>, detail: &'static str) {
        self.found.push(Finding {
            code,
            line: entry.known_line(),
            offset: entry.offset(),
            len: entry.byte_len(),
            detail,
        });
    }

    fn of_links(&mut self) {
        let tree = self.tree;
        // In the stream form it is usual that subagents are in the same file, and that ids are absent.
        let mut was_mixed = tree.is_all_sidechain || tree.is_stream_form();
        let mut was_unnamed = false;
        for node in tree.nodes() {
            let entry = tree.lineage(node);
            let (bridge, gap) = (tree.recovery.bridge(node), tree.recovery.gap(node));
            let is_linked =
                tree.parent_node(node).is_some() && bridge.is_none() && !tree.is_spliced(node);
            // A parent in another file of the session is not missing.
            let is_elsewhere =
                bridge == Some(Evidence::OtherFile) || gap == Some(GapReason::OtherFile);
            // A progress line above the entry may name a parent that is missing.
            let is_lost = |id| {
                let mut lines = tree
                    .index
                    .with_uuid(id)
                    .map(|line| tree.index.entry(line).kind());
                let was_repaired = bridge.is_some() || gap.is_some();
                lines.all(|kind| kind == EntryKind::Progress && was_repaired)
            };
            if !is_linked
                && !is_elsewhere
                && let Some(id) = entry.parent()
                && is_lost(id)
            {
                let detail = match (bridge, gap) {
                    (Some(_), _) => "no line has the parent, but a replacement was found",
                    (_, Some(reason)) => reason.words(),
                    _ => "no line has the parent",
                };
                self.add(Code::Dangling, entry, detail);
            }
            let lost_key = entry.flags().contains(Flags::PARENT_ABSENT)
                && entry.uuid().is_some()
                && (bridge.is_some() || gap.is_some());
            if lost_key {
                let detail = "the line names no parent, not even with null";
                self.add(Code::Dangling, entry, detail);
            }
            if bridge == Some(Evidence::NoRewind) {
                let detail = "no person started the branch that cuts off what is before it";
                self.add(Code::Stranded, entry, detail);
            }
            if tree.recovery.false_roots.contains(&node) {
                let detail = "parentUuid is null, but the entry does not start a conversation";
                self.add(Code::Dangling, entry, detail);
            }
            let has_no_id =
                entry.uuid().is_none() && entry.kind().is_message() && !tree.is_stream_form();
            if has_no_id && !was_unnamed {
                self.add(Code::NoId, entry, "the first of messages without a uuid");
            }
            was_unnamed = has_no_id;
            for copy in tree.recovery.copies(node).iter().skip(1) {
                let copy = tree.index.entry(*copy);
                // A torn line that was written again is reported as a damaged line.
                if copy.is_salvaged() || entry.is_salvaged() {
                    continue;
                }
                let detail = if copy.parent() == entry.parent() {
                    "an earlier line has the same uuid and the same parent"
                } else {
                    "an earlier line has the same uuid and another parent"
                };
                self.add(Code::Repeated, copy, detail);
            }
            if !was_mixed && tree.is_sidechain(node) {
                was_mixed = true;
                self.add(Code::Mixed, entry, "the first entry of a subagent");
            }
        }
        for decision in &tree.decisions {
            if let Decision::Cycle { entry } = decision {
                let entry = tree.index.entry(*entry);
                self.add(Code::Cycle, entry, "its parent is one of its descendants");
            }
        }
        let mut before = None;
        for node in tree.recovery.foreign() {
            // One finding for each run.
            if before.replace(node.0 + 1) != Some(node.0) {
                let detail = "the first of entries that name another session";
                self.add(Code::OtherSession, tree.entry(*node), detail);
            }
        }
    }

    fn of_branches(&mut self) {
        let tree = self.tree;
        let has_several = |node: &NodeId| tree.children(*node).nth(1).is_some();
        if !tree.nodes().any(|node| has_several(&node)) {
            return;
        }
        let descent = Descendants::of(tree);
        for node in tree.nodes().filter(|node| !tree.is_foreign(*node)) {
            if !tree.entry(node).kind().is_message() || self.has_one_branch(node) {
                continue;
            }
            let mut branches = self.branches(node);
            branches.sort_unstable();
            for pair in branches.windows(2) {
                let is_interleaved = descent.last_descendant(pair[0]) > pair[1];
                if is_interleaved {
                    let detail = "the other branch was written before this one ended";
                    self.add(Code::Fork, tree.entry(pair[1]), detail);
                } else {
                    let detail = "the first entry of an abandoned branch";
                    self.add(Code::Rewind, tree.entry(pair[0]), detail);
                }
            }
        }
    }

    /// Returns whether at most one child follows a node, and it is a message: most nodes are so.
    fn has_one_branch(&self, node: NodeId) -> bool {
        let mut children = self.tree.children(node);
        let first = children.next();
        first.is_none_or(|child| self.tree.entry(child).kind().is_message())
            && children.next().is_none()
    }

    /// Returns the first messages of the branches below a message. Results, and further lines of
    /// one answer, do not start branches.
    fn branches(&self, node: NodeId) -> Vec<NodeId> {
        let tree = self.tree;
        let mut answers: HashSet<Option<MessageKey>> = HashSet::new();
        let own = tree.entry(node);
        let mut branches = tree.next_messages(node);
        branches.retain(|child| {
            let entry = tree.entry(*child);
            let is_same_chain = tree.is_sidechain(*child) == tree.is_sidechain(node);
            let is_line = entry.kind() == EntryKind::Assistant
                && (tree.message(*child).is_none() || answers.insert(tree.message(*child)));
            let continues =
                own.kind() == EntryKind::Assistant && tree.message(*child) == tree.message(node);
            is_same_chain && (tree.asks(*child) || (is_line && !continues))
        });
        branches
    }

    fn of_compactions(&mut self) {
        let tree = self.tree;
        let is_boundary = |node: &NodeId| tree.entry(*node).is_boundary();
        let boundaries: Vec<NodeId> = tree.nodes().filter(is_boundary).collect();
        let descent = (!boundaries.is_empty()).then(|| Descendants::of(tree));
        for node in boundaries {
            let entry = tree.entry(node);
            let Some(boundary) = tree.index.boundary(entry.number()) else {
                continue;
            };
            if let Some(id) = boundary.logical_parent {
                let mut lines = tree.index.with_uuid(id);
                let target = lines.find_map(|line| tree.entry_node(line));
                // A preserved entry is a descendant of the boundary as well, and precedes it in the
                // file.
                let is_descendant = |target| {
                    let descent = descent.as_ref().filter(|_| target > node);
                    descent.is_some_and(|descent| descent.is_descendant(target, node))
                };
                if target.is_some_and(is_descendant) {
                    let detail = "logicalParentUuid names a descendant of the boundary";
                    self.add(Code::LogicalCycle, entry, detail);
                } else if tree.index.with_uuid(id).next().is_none() {
                    let detail = "no line has the logicalParentUuid";
                    self.add(Code::LogicalParent, entry, detail);
                }
            }
            if let Some((code, detail)) = self.preserved(boundary) {
                self.add(code, entry, detail);
            }
        }
        // Another agent may send other messages before its summary.
        let nodes = tree.nodes().filter(|_| !tree.index.is_imported());
        for node in nodes {
            let entry = tree.entry(node);
            let is_summary = entry.flags().contains(Flags::COMPACT_SUMMARY);
            if is_summary && !self.has_boundary_above(node) {
                let detail = "the summary has no boundary above it";
                self.add(Code::NoBoundary, entry, detail);
            }
        }
    }

    /// Returns the finding about the names of preserved entries, if any.
    fn preserved(&self, boundary: &Boundary) -> Option<(Code, &'static str)> {
        let is_there =
            |id: &Option<Id>| id.is_some_and(|id| self.tree.index.with_uuid(id).next().is_some());
        let (anchor, named) = match &boundary.preserved {
            Preserved::Nothing => return None,
            Preserved::List { anchor, uuids } => (anchor, uuids.as_slice()),
            Preserved::Segment { anchor } => (anchor, boundary.ends.as_slice()),
        };
        let there = named.iter().filter(|id| is_there(id)).count();
        let segment = |detail| Some((Code::Segment, detail));
        // An empty list preserves nothing.
        if there == 0 && !named.is_empty() {
            Some((Code::Stale, "none of the preserved entries is in the file"))
        } else if there < named.len() {
            segment("some of the preserved entries are not in the file")
        } else if !named.is_empty() && !is_there(anchor) {
            segment("the anchor of the preserved entries is not in the file")
        } else if let ([Some(head), Some(tail)], Preserved::Segment { .. }) =
            (boundary.ends, &boundary.preserved)
            && !self.is_linked_to(tail, head)
        {
            segment("the preserved segment is broken between tail and head")
        } else if boundary
            .ends
            .iter()
            .chain([&boundary.segment_anchor, anchor])
            .any(|id| id.is_some() && !is_there(id))
        {
            segment(
                "a name beside the list of preserved entries is not in the file; the list counts",
            )
        } else {
            None
        }
    }

    /// Returns whether the links in the file lead from one entry up to another.
    fn is_linked_to(&self, from: Id, to: Id) -> bool {
        let index = self.tree.index;
        let line = |id: Id| index.with_uuid(id).next().map(|line| index.entry(line));
        let above = |entry: &EntryRef<'i>| line(entry.parent()?);
        let mut chain = std::iter::successors(line(from), above).take(index.len());
        chain.any(|entry| entry.uuid() == Some(to))
    }

    fn has_boundary_above(&self, summary: NodeId) -> bool {
        // A later compaction moves what it preserves, so the links before the splice count.
        let tree = self.tree;
        let parent = |node: &NodeId| tree.parent_before_splice(*node).node();
        let above = std::iter::successors(parent(&summary), parent).take(tree.index.len());
        let mut above = above.map(|node| tree.entry(node));
        let nearest = above.find(|entry| entry.is_boundary() || entry.kind().is_message());
        nearest.is_some_and(|entry| entry.is_boundary())
    }

    fn of_path(&mut self, path: &ConversationPath) {
        let index = self.tree.index;
        for decision in &path.decisions {
            match *decision {
                Decision::Siblings { entry, .. } => {
                    let entry = index.entry(entry);
                    let detail = "parts of the answer are outside the chain";
                    self.add(Code::Sibling, entry, detail);
                }
                Decision::PinHidesNewer { entry, .. } => {
                    let entry = index.entry(entry);
                    let detail = "a last-prompt line ends the conversation here";
                    self.add(Code::Leaf, entry, detail);
                }
                _ => {}
            }
        }
        self.of_calls(path);
    }

    /// Reports calls without a result, results without a call, and pairs in the wrong order.
    fn of_calls(&mut self, path: &ConversationPath) {
        let index = self.tree.index;
        // For each call: its entry, and whether a result was seen.
        let mut calls: HashMap<ToolKey, (EntryNo, bool)> = HashMap::new();
        let mut early: Vec<(ToolKey, EntryRef<'i>)> = Vec::new();
        let mut answer: Option<EntryRef<'i>> = None;
        let message_of = |entry: &EntryRef<'_>| {
            let node = self.tree.entry_node(entry.number());
            node.and_then(|node| self.tree.message(node))
        };
        for entry in &path.entries {
            let entry = index.entry(entry.entry_no());
            if entry.kind() == EntryKind::Assistant {
                answer = Some(entry);
            }
            for end in entry.tools() {
                match (end.role(), entry.kind()) {
                    (ToolRole::Use, EntryKind::Assistant) => {
                        calls.entry(end.key()).or_insert((entry.number(), false));
                    }
                    (ToolRole::Result, EntryKind::User) => match calls.get_mut(&end.key()) {
                        None => early.push((end.key(), entry)),
                        Some((call, is_answered)) => {
                            let call = index.entry(*call);
                            let is_later = answer.is_some_and(|answer| {
                                let message = message_of(&call);
                                answer.number() != call.number()
                                    && (message_of(&answer) != message || message.is_none())
                            });
                            *is_answered = true;
                            if is_later {
                                let detail = "the result comes after a later answer";
                                self.add(Code::PairOrder, entry, detail);
                            }
                        }
                    },
                    _ => {}
                }
            }
        }
        for (call, entry) in early {
            if let Some((_, is_answered)) = calls.get_mut(&call) {
                *is_answered = true;
                self.add(Code::PairOrder, entry, "the result comes before its call");
            } else {
                let detail = "no call on the path has the id of the result";
                self.add(Code::NoUse, entry, detail);
            }
        }
        let open = calls.into_values().filter(|(_, answered)| !answered);
        let mut open: Vec<_> = open.collect();
        open.sort_unstable();
        open.dedup();
        for (call, _) in open {
            let detail = "a call of this entry has no result on the path";
            self.add(Code::NoResult, index.entry(call), detail);
        }
    }
}
