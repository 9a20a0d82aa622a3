//! A measure of how much of its conversation a file still shows.

use std::collections::{HashMap, HashSet};

use transcript_format::scan::Flags;
use transcript_reader::{EntryNo, EntryRef, Index, Preserved};
use transcript_resume::{
    ConversationPath, Decision, GapReason, NodeId, Parent, Tree, Via, is_prompt,
};

/// The number of messages of a conversation, and of those that each policy shows.
///
/// A message is a user or assistant entry with a uuid, however many lines have it. Messages of
/// subagents (in the file of a main conversation), of teammates, and virtual ones do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationMeasure {
    /// The messages on the path of policy `recover`, and those that no link connects with it and no
    /// rewind explains; from the boundary in force on, with the entries that it preserves.
    pub conversation: usize,
    /// The number of these that the path of policy `recover` shows.
    pub recover: usize,
    /// The number of these that the path of policy `vendor`, that of the client, shows.
    pub vendor: usize,
    /// The number of messages of another conversation that either path shows: of another session, of a
    /// subagent, or of an abandoned branch.
    pub foreign: usize,
    /// The number of messages without a uuid that `recover` shows more than `vendor`. They are in none of the
    /// other numbers, as nothing identifies them.
    pub unnamed: usize,
}

impl ConversationMeasure {
    /// Measures the conversation of `tree`, which is linked under
    /// [`Policy::Recover`](transcript_resume::Policy::Recover): `recover` is its path, `vendor` that
    /// of a tree of the same index under [`Policy::Vendor`](transcript_resume::Policy::Vendor).
    ///
    /// ```
    /// use transcript_reader::{Index, Source};
    /// use transcript_resume::{Policy, Tree};
    /// use transcript_verify::ConversationMeasure;
    ///
    /// let lines = r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"One?"}}
    /// {"type":"assistant","uuid":"a1","parentUuid":"gone","message":{"role":"assistant","content":[]}}
    /// "#;
    /// let index = Index::load(&Source::from_bytes(lines.as_bytes(), "-".as_ref()))?;
    /// let tree = Tree::new(&index, Policy::Recover);
    /// let vendor = Tree::new(&index, Policy::Vendor);
    /// let measure = ConversationMeasure::new(&tree, &tree.path(), &vendor.path());
    /// assert_eq!((measure.conversation, measure.recover, measure.vendor), (2, 2, 1));
    /// # Ok::<(), transcript_reader::Error>(())
    /// ```
    #[must_use]
    pub fn new(tree: &Tree<'_>, recover: &ConversationPath, vendor: &ConversationPath) -> Self {
        let count = MessageCount::new(tree, recover);
        let (recover, others) = count.shown(recover);
        let (vendor, more) = count.shown(vendor);
        let foreign: HashSet<EntryNo> = others.foreign.union(&more.foreign).copied().collect();
        Self {
            conversation: count.messages.len(),
            recover,
            vendor,
            foreign: foreign.len(),
            unnamed: others.unnamed.saturating_sub(more.unnamed),
        }
    }

    /// Returns whether the client shows less of the conversation than the file has.
    #[must_use]
    pub fn is_lossy(&self) -> bool {
        self.vendor < self.conversation || self.unnamed > 0
    }
}

/// The messages of one conversation, each by the first entry with its uuid.
struct MessageCount<'t, 'i> {
    tree: &'t Tree<'i>,
    messages: HashSet<EntryNo>,
    /// The conversation starts here: with the last compaction, else with the file.
    start: EntryNo,
}

/// Entries on a path that are not messages of the conversation.
#[derive(Default)]
struct OtherEntries {
    foreign: HashSet<EntryNo>,
    unnamed: usize,
}

impl<'t, 'i> MessageCount<'t, 'i> {
    fn new(tree: &'t Tree<'i>, recover: &ConversationPath) -> Self {
        let start = start(tree, recover);
        let mut count = Self {
            tree,
            messages: HashSet::new(),
            start,
        };
        let on_path = recover.entries.iter().map(|entry| entry.entry_no());
        // Only the last boundary of a file preserves anything (COMPACT-8).
        let mut boundaries = tree.index().entries().rev().filter(EntryRef::is_boundary);
        let is_last = boundaries.next().is_some_and(|last| last.number() == start);
        let boundary = tree.index().boundary(start).filter(|_| is_last);
        let kept = match boundary.map(|boundary| &boundary.preserved) {
            None | Some(Preserved::Nothing) => &[],
            Some(Preserved::List { uuids, .. }) => uuids.as_slice(),
            Some(Preserved::Segment { .. }) => boundary.map_or(&[][..], |at| &at.ends),
        };
        // Spliced entries that are not on the path were left by a rewind. Where no splice was
        // possible, nothing proves which entries were preserved.
        let is_spliced = recover.decisions.iter().any(|decision| {
            let is_splice = matches!(
                decision,
                Decision::Splice { .. } | Decision::SpliceIgnored { .. }
            );
            is_splice && decision.entry() == start
        });
        let kept = if is_spliced { &[] } else { kept };
        let kept = kept.iter().filter_map(|id| tree.node_with_uuid((*id)?));
        let kept = kept.map(|node| tree.entry(node).number());
        let all = on_path.chain(kept).chain(count.in_components(recover));
        let all: HashSet<EntryNo> = all.filter_map(|entry| count.message(entry)).collect();
        count.messages = all;
        count
    }

    /// Returns the number of messages of the conversation on a path, and the other entries on it.
    fn shown(&self, path: &ConversationPath) -> (usize, OtherEntries) {
        let mut shown = HashSet::new();
        let mut others = OtherEntries::default();
        for entry in &path.entries {
            let entry = self.tree.index().entry(entry.entry_no());
            let Some(message) = self.first_copy(&entry) else {
                others.unnamed += usize::from(entry.kind().is_message());
                continue;
            };
            if self.messages.contains(&message) {
                shown.insert(message);
            } else if entry.kind().is_message() && self.is_foreign(&entry) {
                others.foreign.insert(message);
            }
        }
        (shown.len(), others)
    }

    /// Returns the message of an entry, if it is one of the main conversation.
    fn message(&self, entry: EntryNo) -> Option<EntryNo> {
        let entry = self.tree.index().entry(entry);
        let node = self.tree.node(entry.number());
        let is_apart = |node| self.tree.is_sidechain(node) || self.tree.is_foreign(node);
        let counts = entry.kind().is_message()
            && !entry.flags().intersects(Flags::TEAM | Flags::VIRTUAL)
            && !node.is_some_and(is_apart);
        self.first_copy(&entry).filter(|_| counts)
    }

    /// Returns the first entry with the uuid of an entry. In the stream form, entries may have none.
    fn first_copy(&self, entry: &EntryRef<'_>) -> Option<EntryNo> {
        let Some(id) = entry.uuid() else {
            return self.tree.is_stream_form().then_some(entry.number());
        };
        if self.tree.index().has_repeated_uuids() {
            self.tree.index().with_uuid(id).next()
        } else {
            Some(entry.number())
        }
    }

    /// Returns whether a message that a path shows is of another conversation. One from before the
    /// compaction is not: it is of this conversation, but no longer in its context.
    fn is_foreign(&self, entry: &EntryRef<'_>) -> bool {
        let node = self.tree.node(entry.number());
        let is_of_another = node.is_some_and(|node| self.tree.is_foreign(node));
        let is_after = entry.number() >= self.start;
        let counts = !entry.flags().intersects(Flags::TEAM | Flags::VIRTUAL);
        counts && (is_of_another || is_after)
    }

    /// Returns the entries that no link connects with the path and no rewind explains.
    fn in_components(&self, path: &ConversationPath) -> Vec<EntryNo> {
        let tree = self.tree;
        let is_of_conversation = |node: &NodeId| {
            let entry = tree.entry(*node).number();
            entry >= self.start && !tree.is_removed(*node) && self.message(entry).is_some()
        };
        let messages: Vec<NodeId> = tree.nodes().filter(is_of_conversation).collect();
        let roots = ComponentRoots::new(tree);
        let root_of = |entry: EntryNo| tree.node(entry).map(|node| roots.root(tree, node));
        let on_path = path.entries.iter().map(|entry| entry.entry_no());
        let mainland: HashSet<NodeId> = on_path.filter_map(root_of).collect();
        let links = MainLinks::of(tree, path);
        let mut components: HashMap<NodeId, bool> = HashMap::new();
        let mut found = Vec::new();
        for node in messages {
            let (entry, root) = (tree.entry(node).number(), roots.root(tree, node));
            // Messages come in file order, so the first one shows where the component starts.
            let is_explained = mainland.contains(&root)
                || *components.entry(root).or_insert_with(|| {
                    let is_root = tree.parent(root) == Parent::Root;
                    links.is_abandoned_by_rewind(entry, is_root)
                });
            if !is_explained {
                found.push(entry);
            }
        }
        found
    }
}

/// Returns where the conversation starts: at the boundary at which the path was cut; if the path
/// starts at a gap, at the last boundary or summary before that.
fn start(tree: &Tree<'_>, path: &ConversationPath) -> EntryNo {
    let cut = path.decisions.iter().find_map(|decision| match decision {
        Decision::Cut { boundary, .. } => Some(*boundary),
        _ => None,
    });
    let first = path.entries.first().map(|entry| entry.entry_no());
    let is_gap = |node: &NodeId| tree.parent(*node) != Parent::Root;
    let before_gap = || {
        let gap = first.and_then(|first| tree.node(first)).filter(is_gap)?;
        let mut until = tree.nodes().rev().skip_while(|node| *node > gap);
        until.find(|node| {
            let entry = tree.entry(*node);
            let is_summary = entry.flags().contains(Flags::COMPACT_SUMMARY);
            let is_apart = tree.is_sidechain(*node) || tree.is_foreign(*node);
            (is_summary || entry.is_boundary()) && !is_apart
        })
    };
    let before_gap = || before_gap().map(|node| tree.entry(node).number());
    cut.or_else(before_gap).unwrap_or_default()
}

/// The topmost entry above each entry.
struct ComponentRoots(Vec<Option<NodeId>>);

impl ComponentRoots {
    fn new(tree: &Tree<'_>) -> Self {
        let mut roots = Self(vec![None; tree.index().len()]);
        for node in tree.nodes() {
            let mut walked = Vec::new();
            let mut at = node;
            let root = loop {
                let known = &mut roots.0[tree.entry(at).number().get()];
                if let Some(root) = *known {
                    break root;
                }
                // In a cycle this entry is reached again; it then stands for all of them.
                *known = Some(at);
                walked.push(at);
                match tree.parent(at) {
                    Parent::Node(parent) => at = parent,
                    Parent::Root | Parent::Lost => break at,
                }
            };
            for at in walked {
                roots.0[tree.entry(at).number().get()] = Some(root);
            }
        }
        roots
    }

    fn root(&self, tree: &Tree<'_>, node: NodeId) -> NodeId {
        self.0[tree.entry(node).number().get()].unwrap_or(node)
    }
}

/// The links of the path that show which entries outside of it were abandoned by a rewind or a new start.
struct MainLinks {
    /// For each entry of the file: whether a link of the path leads past it.
    passed: Vec<PassedBy>,
    /// The first entry of the path, and whether the conversation was started again there.
    first: Option<(EntryNo, bool)>,
    /// Whether a `last-prompt` line ends the conversation before newer entries.
    is_pinned: bool,
}

/// The link by which the path leads past an entry that is not on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PassedBy {
    /// Not at all.
    No,
    /// By a link that was repaired, or that of an answer or a result.
    ByLink,
    /// By the link of a prompt: the conversation was rewound.
    ByPrompt,
}

impl MainLinks {
    fn of(tree: &Tree<'_>, path: &ConversationPath) -> Self {
        let first = path.entries.first().map(|first| first.entry_no());
        let gap = path.decisions.iter().find_map(|decision| match decision {
            Decision::Gap { entry, reason, .. } if Some(*entry) == first => Some(*reason),
            _ => None,
        });
        let node = first.and_then(|first| tree.node(first));
        let is_root = node.is_some_and(|node| tree.parent(node) == Parent::Root);
        let is_new_start = match gap {
            Some(GapReason::Rewind | GapReason::OtherSession | GapReason::OtherFile) => true,
            Some(_) => false,
            None => is_root,
        };
        let is_pin = |decision: &Decision| matches!(decision, Decision::PinHidesNewer { .. });
        Self {
            passed: passed(tree.index(), path),
            first: first.map(|first| (first, is_new_start)),
            is_pinned: path.decisions.iter().any(is_pin),
        }
    }

    /// Returns whether the conversation went on elsewhere from before the component that starts with
    /// entry `at`. `is_root` says that the component names no parent.
    fn is_abandoned_by_rewind(&self, at: EntryNo, is_root: bool) -> bool {
        match self.first {
            Some((first, is_new_start)) if at < first => is_new_start,
            _ => match self.passed[at.get()] {
                PassedBy::No => is_root || self.is_pinned,
                PassedBy::ByLink => is_root,
                PassedBy::ByPrompt => true,
            },
        }
    }
}

/// Returns for each entry of the file whether a link of `path` leads past it.
fn passed(index: &Index, path: &ConversationPath) -> Vec<PassedBy> {
    let mut starts: Vec<(EntryNo, EntryNo, PassedBy)> = Vec::new();
    // Attachments and system entries belong to the message after them.
    let mut kind = PassedBy::ByLink;
    for pair in path.entries.windows(2).rev() {
        let (from, to) = (pair[0].entry_no(), pair[1].entry_no());
        let entry = index.entry(to);
        if entry.kind().is_message() {
            kind = if is_prompt(&entry) && !pair[1].via.contains(Via::BRIDGE) {
                PassedBy::ByPrompt
            } else {
                PassedBy::ByLink
            };
        }
        if to.get() > from.get() + 1 {
            starts.push((from, to, kind));
        }
    }
    starts.sort_unstable_by_key(|(from, _, kind)| (*kind, *from));
    let mut passed = vec![PassedBy::No; index.len()];
    // Links of prompts come last and overwrite others; none is followed twice.
    let mut done = 0;
    let mut last = PassedBy::No;
    for (from, to, kind) in starts {
        if last != kind {
            (done, last) = (0, kind);
        }
        let from = done.max(from.get() + 1);
        done = done.max(to.get());
        passed[from.min(done)..done].fill(kind);
    }
    passed
}
