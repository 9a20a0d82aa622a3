//! What of a tree of Pi goes to the model.

use std::collections::{HashMap, HashSet};

use super::file::{Entry, File, Role};
use crate::calls::Missing;
use crate::conversation::{BranchKind, Conversation, DamageKind, NodeId};
use crate::dialect::Policy;
use crate::ids::Id;
use crate::node::Usage;
use crate::tree::Tree;

/// What Pi tells the model about a call whose result it does not have.
const MISSING: Missing = Missing {
    output: "No result provided",
    is_error: true,
};

/// Chooses the live nodes and the branches.
pub(super) fn choose(to: &mut Conversation, file: File, policy: Policy) {
    let has_header = file.has_header;
    let (entries, by_id) = file.into_entries();
    let entries = &entries;
    let tree = Tree::new(entries.iter().map(|entry| &entry.link), by_id, policy);
    let Some(leaf) = entries.len().checked_sub(1) else {
        refuse(to, has_header, false, policy);
        return;
    };
    let path = tree.path(leaf, to);
    let mut on_path = vec![false; entries.len()];
    for at in &path.records {
        on_path[*at] = true;
    }
    let path_entries: Vec<&Entry> = path.records.iter().map(|at| &entries[*at]).collect();
    to.metadata.usage = Some(usage(to, &path_entries));
    let live = context(to, &path_entries, policy);
    to.live = MISSING.complete(to, live);
    let copies = Copies::of(entries, &on_path);
    for run in tree.runs(&on_path) {
        let (again, other): (Vec<usize>, Vec<usize>) =
            run.into_iter().partition(|at| copies.has(&entries[*at]));
        let nodes = |run: Vec<usize>| {
            run.iter()
                .flat_map(|at| entries[*at].nodes.clone())
                .collect()
        };
        let (again, other) = (nodes(again), nodes(other));
        to.branch(BranchKind::Superseded, again);
        to.branch(BranchKind::Rewound, other);
    }
    refuse(to, has_header, path.is_cycle, policy);
}

/// The ids on the path: a record off the path with one of them is a copy that a later line replaced.
struct Copies(HashSet<Id>);

impl Copies {
    fn of(entries: &[Entry], on_path: &[bool]) -> Self {
        let on_path = entries.iter().zip(on_path).filter(|(_, is)| **is);
        Self(on_path.map(|(entry, _)| entry.link.id).collect())
    }

    fn has(&self, entry: &Entry) -> bool {
        self.0.contains(&entry.link.id)
    }
}

fn refuse(to: &mut Conversation, has_header: bool, is_cycle: bool, policy: Policy) {
    if policy == Policy::Recover {
        return;
    }
    let has_mark = to
        .damage
        .iter()
        .any(|damage| damage.kind == DamageKind::ByteOrderMark);
    if is_cycle {
        to.refuse("the parents of its records form a circle");
    } else if !has_header || has_mark {
        to.refuse("its first record is missing or damaged");
    }
}

/// Returns the nodes of a path after compactions and edits.
fn context(to: &mut Conversation, path: &[&Entry], policy: Policy) -> Vec<NodeId> {
    let mut edits: HashMap<Id, &Entry> = HashMap::new();
    let mut superseded = Vec::new();
    for entry in path {
        if let Role::Edit(target) = &entry.role
            && let Some(older) = edits.insert(*target, entry)
        {
            superseded.extend(&older.nodes);
        }
    }
    let is_compaction = |entry: &&Entry| matches!(entry.role, Role::Compaction(_));
    let cut = path.iter().rposition(is_compaction);
    let kept_from = cut.and_then(|cut| {
        let Role::Compaction(Some(first)) = &path[cut].role else {
            return None;
        };
        // Of a lost record its child shows the place.
        let is_first = |entry: &&Entry| {
            let is_child = entry.link.parent == Some(*first) && policy == Policy::Recover;
            entry.link.id == *first || is_child
        };
        path[..cut].iter().position(is_first)
    });
    let mut sent = Sent {
        edits,
        live: Vec::new(),
        superseded,
    };
    let Some(cut) = cut else {
        for entry in path {
            sent.add(entry);
        }
        return sent.finish(to);
    };
    let (before, after) = path.split_at(cut);
    let (gone, kept) = before.split_at(kept_from.unwrap_or(cut));
    sent.live.extend(&path[cut].nodes);
    for entry in kept.iter().filter(|entry| entry.role != Role::System) {
        sent.add(entry);
    }
    for entry in &after[1..] {
        sent.add(entry);
    }
    // The prompt that the compaction brings takes the place of the one before.
    let old_prompts = kept.iter().filter(|entry| entry.role == Role::System);
    // An older compaction begins with its summary.
    let mut chapters: Vec<Vec<NodeId>> = vec![Vec::new()];
    for entry in gone.iter().chain(old_prompts) {
        if is_compaction(entry) {
            chapters.push(Vec::new());
        }
        if let Some(chapter) = chapters.last_mut() {
            chapter.extend(&entry.nodes);
        }
    }
    let live = sent.finish(to);
    for chapter in chapters {
        to.branch(BranchKind::Compacted, chapter);
    }
    live
}

/// The nodes that are sent, while a path is followed.
struct Sent<'a> {
    edits: HashMap<Id, &'a Entry>,
    live: Vec<NodeId>,
    superseded: Vec<NodeId>,
}

impl Sent<'_> {
    fn add(&mut self, entry: &Entry) {
        match &entry.role {
            Role::Message | Role::System => match self.edits.get(&entry.link.id) {
                Some(edit) => {
                    self.superseded.extend(&entry.nodes);
                    self.live.extend(&edit.nodes);
                }
                None => self.live.extend(&entry.nodes),
            },
            // An older compaction that a newer one kept.
            Role::Compaction(_) | Role::Silent | Role::Edit(_) | Role::Fact => {}
        }
    }

    fn finish(self, to: &mut Conversation) -> Vec<NodeId> {
        to.branch(BranchKind::Superseded, self.superseded);
        self.live
    }
}

/// Returns the tokens of the responses on the path, as Pi counts them.
fn usage(to: &Conversation, path: &[&Entry]) -> Usage {
    let mut sum = Usage::default();
    for node in path.iter().flat_map(|entry| &entry.nodes) {
        if let Some(usage) = to.node(*node).usage {
            sum += *usage;
        }
    }
    sum
}
