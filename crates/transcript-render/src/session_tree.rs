//! The branches of a session, as a tree shows them.

use std::collections::HashMap;

use transcript_format::author::Author;
use transcript_format::entry::Entry;
use transcript_format::object::Object;
use transcript_reader::{
    Bodies, EntryNo, EntryRef, Id, Index, MessageText, Preserved, Prompt, Source, is_queued,
};
use transcript_resume::items::CompactionItem;
use transcript_resume::{Branches, ConversationPath, Decision, Policy, Tree, is_prompt};

use crate::Result;
use crate::blocks::plain_text;

/// A session with its branches, and the paths of the policies.
#[derive(Debug)]
pub struct SessionTree<'s> {
    /// The file.
    pub source: &'s Source,
    /// The id of the session.
    pub session_id: Option<String>,
    /// The tree under the first policy.
    pub tree: Tree<'s>,
    /// The branches of that tree.
    pub branches: Branches,
    /// The number of prompts and commands of a person in each branch.
    pub prompts: Vec<usize>,
    /// The policy whose path is the main line comes first.
    pub paths: [(Policy, ConversationPath); 2],
    /// For each boundary, how many entries the paths preserve.
    kept: HashMap<EntryNo, usize>,
}

impl<'s> SessionTree<'s> {
    /// Groups the entries of `tree` into branches. `paths` are those of the policies; the first one
    /// is a path of `tree`.
    ///
    /// # Errors
    /// When a prompt cannot be read.
    pub fn new(
        source: &'s Source,
        session_id: Option<String>,
        tree: Tree<'s>,
        paths: [(Policy, ConversationPath); 2],
    ) -> Result<Self> {
        let leaves: Vec<EntryNo> = paths.iter().filter_map(|(_, path)| path.leaf).collect();
        let branches = Branches::new(&tree, &leaves);
        let decisions = paths.iter().flat_map(|(_, path)| &path.decisions);
        let kept = decisions.filter_map(|decision| match *decision {
            Decision::Splice { boundary, kept, .. } => Some((boundary, kept as usize)),
            _ => None,
        });
        Ok(Self {
            source,
            session_id,
            prompts: prompts(source, tree.index(), &branches)?,
            tree,
            branches,
            kept: kept.collect(),
            paths,
        })
    }

    /// Returns the index of the file.
    pub fn index(&self) -> &'s Index {
        self.tree.index()
    }

    /// Returns the branches down to the leaf of the first policy.
    pub fn main_line(&self) -> Vec<usize> {
        let leaf = self.paths[0].1.leaf;
        let branch = leaf.and_then(|leaf| self.branches.branch_of(leaf));
        branch.map_or(Vec::new(), |branch| self.branches.line_to(branch))
    }
}

/// Counts the typed prompts of each branch, also those that were queued: as many as a page or the outline of `browse` lists.
/// Bodies are read, because the kind of an entry is not enough.
fn prompts(source: &Source, index: &Index, branches: &Branches) -> Result<Vec<usize>> {
    let mut bodies = Bodies::new(source);
    let mut counts = Vec::with_capacity(branches.len());
    for branch in 0..branches.len() {
        let entries = branches.entries(branch);
        let entries = entries.map(|entry| index.entry(entry));
        let mut count = 0;
        for entry in entries.filter(|entry| is_prompt(entry) || is_queued(entry)) {
            let body = bodies.get(&entry)?;
            let is_typed = match Object::parse(body.text) {
                Ok(line) if is_queued(&entry) => is_typed_in_queue(&line),
                Ok(line) => Prompt::is_typed(&line),
                Err(_) => false,
            };
            count += usize::from(is_typed);
        }
        counts.push(count);
    }
    Ok(counts)
}

/// Returns whether a person typed what an attachment says was queued. Notices of tasks and of other agents are queued as well.
fn is_typed_in_queue(line: &Object<'_>) -> bool {
    let Some(attachment) = line.object("attachment") else {
        return false;
    };
    let text = attachment.get("prompt").map(plain_text);
    let said = MessageText::by(Author::of(&attachment), text.as_deref().unwrap_or_default());
    said.typed().is_some()
}

/// The facts that a compact boundary records.
pub struct BoundaryFacts {
    /// The fields of the boundary itself.
    pub compaction: CompactionItem,
    /// The number of entries that it preserves; `None` if it names only the ends of a segment and no path
    /// contains that segment.
    pub kept: Option<usize>,
    /// The number of named entries that are not in the file.
    pub missing: usize,
}

impl BoundaryFacts {
    /// Reads the facts of a boundary.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(
        session_tree: &SessionTree<'_>,
        boundary: &EntryRef<'_>,
        bodies: &mut Bodies<'_>,
    ) -> Result<Self> {
        let index = session_tree.index();
        let body = bodies.get(boundary)?;
        let entry = Entry::parse(body.text).ok();
        let compaction = entry.map(|entry| CompactionItem::read(boundary, entry.object()));
        let named = index.boundary(boundary.number());
        let is_missing = |id: &Option<Id>| id.is_none_or(|id| index.with_uuid(id).next().is_none());
        let (kept, missing) = match named.map(|named| &named.preserved) {
            Some(Preserved::List { uuids, .. }) => (
                Some(uuids.len()),
                uuids.iter().filter(|id| is_missing(id)).count(),
            ),
            Some(Preserved::Segment { .. }) => {
                let ends = named.map_or([None; 2], |named| named.ends);
                let missing = ends.iter().filter(|id| is_missing(id)).count();
                (session_tree.kept.get(&boundary.number()).copied(), missing)
            }
            _ => (Some(0), 0),
        };
        Ok(Self {
            compaction: compaction.unwrap_or_default(),
            kept,
            missing,
        })
    }
}

/// Returns the decision that chose the leaf.
pub fn leaf_decision(path: &ConversationPath) -> Option<&Decision> {
    let mut decisions = path.decisions.iter();
    decisions.find(|decision| matches!(decision, Decision::Leaf { .. }))
}
