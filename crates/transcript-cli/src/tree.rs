//! `transcript tree`: shows the branches of a session and the leaf of each policy.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use transcript::History;
use transcript::wire::{BoundaryRecord, LeafRecord, LeavesRecord, TreeReport};
use transcript_format::entry::Entry;
use transcript_format::object::Object;
use transcript_reader::{Bodies, EntryRef, Id, Index, Preserved, Prompt};
use transcript_resume::{Branches, ConversationPath, Decision, Policy, Tree, is_prompt};

use crate::print_tree::TreePrinter;
use crate::{exit, explain, record, replay, screen, session};

/// Show the branches of a session
///
/// Shows prompts that were rewound or edited, compactions, subagents, entries whose parent is
/// missing, and the leaf of each policy. A row represents all entries up to the next fork.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Path of a .jsonl file, or - for standard input
    session: PathBuf,
    /// Print the whole tree as one JSON object
    #[arg(long)]
    json: bool,
}

/// A session with its branches, and the paths of the policies.
pub(crate) struct SessionTree<'s> {
    pub(crate) session: &'s History,
    pub(crate) tree: Tree<'s>,
    pub(crate) branches: Branches,
    /// How many prompts and commands of a person each branch has.
    pub(crate) prompts: Vec<usize>,
    /// The policy whose path is the main line comes first.
    pub(crate) paths: [(Policy, ConversationPath); 2],
    /// For each boundary, how many entries the paths preserve.
    kept: HashMap<usize, usize>,
}

pub(crate) fn run(args: &Args, output: &screen::OutputOptions) -> Result<u8> {
    let session = session::open(&args.session)?;
    let session_tree = SessionTree::new(&session)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    if args.json {
        write_json(&mut out, &session_tree)?;
    } else {
        TreePrinter::new(&session_tree, output.styles(), screen::width()).draw(&mut out)?;
    }
    out.flush()?;
    if !output.quiet {
        replay::print_finding_count(&session_tree.tree, &session_tree.paths[0].1);
    }
    Ok(exit::DONE)
}

impl<'s> SessionTree<'s> {
    fn new(session: &'s History) -> Result<Self> {
        let index = session.index();
        let vendor = Tree::new(index, Policy::Vendor).path();
        let tree = session.tree(Policy::Recover);
        let recover = tree.path();
        let leaves: Vec<usize> = recover.leaf.into_iter().chain(vendor.leaf).collect();
        let branches = Branches::new(&tree, &leaves);
        let decisions = recover.decisions.iter().chain(&vendor.decisions);
        let kept = decisions.filter_map(|decision| match *decision {
            Decision::Splice { boundary, kept, .. } => Some((boundary as usize, kept as usize)),
            _ => None,
        });
        Ok(Self {
            session,
            prompts: prompts(session, &branches)?,
            tree,
            branches,
            kept: kept.collect(),
            paths: [(Policy::Recover, recover), (Policy::Vendor, vendor)],
        })
    }

    pub(crate) fn index(&self) -> &'s Index {
        self.session.index()
    }

    /// Returns the branches down to the leaf of the first policy.
    pub(crate) fn main_line(&self) -> Vec<usize> {
        let leaf = self.paths[0].1.leaf;
        let branch = leaf.and_then(|leaf| self.branches.branch_of(leaf));
        branch.map_or(Vec::new(), |branch| self.branches.line_to(branch))
    }
}

/// Counts the typed prompts of each branch. Bodies are read, because the kind of an entry is not enough.
fn prompts(session: &History, branches: &Branches) -> Result<Vec<usize>> {
    let mut bodies = Bodies::new(session.source());
    let mut counts = Vec::with_capacity(branches.len());
    for branch in 0..branches.len() {
        let entries = branches.entries(branch);
        let entries = entries.map(|entry| session.index().entry(entry));
        let mut count = 0;
        for entry in entries.filter(is_prompt) {
            let body = bodies.get(&entry)?;
            let line = Object::parse(body.text);
            count += usize::from(line.is_ok_and(|line| Prompt::is_typed(&line)));
        }
        counts.push(count);
    }
    Ok(counts)
}

/// The facts that a compact boundary records.
pub(crate) struct BoundaryFacts {
    pub(crate) trigger: Option<String>,
    pub(crate) pre_tokens: Option<u64>,
    /// How many entries it preserves; `None` if it names only the ends of a segment and no path
    /// contains that segment.
    pub(crate) kept: Option<usize>,
    /// How many of the named entries are not in the file.
    pub(crate) missing: usize,
}

impl BoundaryFacts {
    pub(crate) fn read(
        session_tree: &SessionTree<'_>,
        boundary: &EntryRef<'_>,
        bodies: &mut Bodies<'_>,
    ) -> Result<Self> {
        let index = session_tree.index();
        let body = bodies.get(boundary)?;
        let entry = Entry::parse(body.text).ok();
        let metadata = entry.and_then(|entry| entry.object().object("compactMetadata"));
        let metadata = metadata.as_ref();
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
            trigger: metadata
                .and_then(|metadata| metadata.str("trigger"))
                .map(|trigger| trigger.into_owned()),
            pre_tokens: metadata.and_then(|metadata| metadata.u64("preTokens")),
            kept,
            missing,
        })
    }
}

fn write_json(out: &mut impl Write, session_tree: &SessionTree<'_>) -> Result<()> {
    let (session, branches) = (session_tree.session, &session_tree.branches);
    let index = session_tree.index();
    let describe = |decision: &_| explain::describe(index, decision);
    let leaf = |path| LeafRecord::new(index, branches, path, describe);
    let [recover, vendor] = &session_tree.paths;
    let leaves = LeavesRecord::new(leaf(&recover.1), leaf(&vendor.1));
    let boundaries = boundaries(session_tree)?;
    let report = TreeReport::new(session, branches, &session_tree.prompts, boundaries, leaves);
    record::write(out, &report)
}

fn boundaries(session_tree: &SessionTree<'_>) -> Result<Vec<BoundaryRecord>> {
    let index = session_tree.index();
    let mut bodies = Bodies::new(session_tree.session.source());
    let mut records = Vec::new();
    for entry_ref in index.entries().filter(EntryRef::is_boundary) {
        let facts = BoundaryFacts::read(session_tree, &entry_ref, &mut bodies)?;
        let mut record = BoundaryRecord::new(index, &entry_ref);
        record.trigger = facts.trigger;
        record.pre_tokens = facts.pre_tokens;
        record.kept = facts.kept.map(|kept| kept as u64);
        record.missing = facts.missing as u64;
        records.push(record);
    }
    Ok(records)
}

/// Returns the decision that chose the leaf.
pub(crate) fn leaf_decision(path: &ConversationPath) -> Option<&Decision> {
    let mut decisions = path.decisions.iter();
    decisions.find(|decision| matches!(decision, Decision::Leaf { .. }))
}
