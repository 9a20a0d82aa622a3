//! `transcript tree`: shows the branches of a session and the leaf of each policy.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Serialize;
use transcript_reader::{Bodies, Boundary, EntryRef, Id, Index, Preserved};
use transcript_render::{BoundaryFacts, SessionTree, TreePrinter, explain, leaf_decision};
use transcript_resume::{BranchStart, ConversationPath, Decision, Policy, Tree};

use crate::ui::Ui;
use crate::{exit, record, replay, session};

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

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let session = session::open(ui, &args.session)?;
    let tree = session.tree(Policy::Recover);
    let paths = [
        (Policy::Recover, tree.path()),
        (
            Policy::Vendor,
            Tree::new(session.index(), Policy::Vendor).path(),
        ),
    ];
    let session_tree = SessionTree::new(session.source(), session.session_id(), tree, paths)?;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    if args.json {
        write_json(&mut out, &session_tree)?;
    } else {
        TreePrinter::new(&session_tree, &ui.render).draw(&mut out)?;
    }
    out.flush()?;
    replay::print_finding_count(ui, &session_tree.tree, &session_tree.paths[0].1);
    Ok(exit::DONE)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TreeRecord {
    schema: u32,
    session_id: Option<String>,
    path: String,
    lines: u64,
    entries: usize,
    roots: Vec<RootRecord>,
    branches: Vec<BranchRecord>,
    boundaries: Vec<BoundaryRecord>,
    sidechains: Vec<SidechainRecord>,
    leaves: Leaves,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RootRecord {
    #[serde(flatten)]
    entry: EntryLocation,
    kind: &'static str,
    parent_uuid: Option<String>,
    branch: usize,
}

#[derive(Serialize)]
struct BranchRecord {
    id: usize,
    parent: Option<usize>,
    from: Option<EntryLocation>,
    start: &'static str,
    kind: &'static str,
    tip: bool,
    entries: usize,
    messages: usize,
    prompts: usize,
    first: EntryLocation,
    last: EntryLocation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BoundaryRecord {
    #[serde(flatten)]
    entry: EntryLocation,
    trigger: Option<String>,
    pre_tokens: Option<u64>,
    logical_parent: Option<NamedEntry>,
    anchor: Option<NamedEntry>,
    head: Option<NamedEntry>,
    tail: Option<NamedEntry>,
    kept: Option<usize>,
    missing: usize,
}

#[derive(Serialize)]
struct SidechainRecord {
    agent: Option<String>,
    entries: usize,
    first: EntryLocation,
}

#[derive(Serialize)]
struct Leaves {
    recover: Option<LeafRecord>,
    vendor: Option<LeafRecord>,
}

#[derive(Serialize)]
struct LeafRecord {
    #[serde(flatten)]
    entry: EntryLocation,
    reason: &'static str,
    detail: String,
    branch: Option<usize>,
    entries: usize,
}

#[derive(Serialize)]
struct EntryLocation {
    line: u64,
    uuid: Option<String>,
}

impl EntryLocation {
    fn new(index: &Index, entry: usize) -> Self {
        let entry = index.entry(entry);
        Self {
            line: entry.line(),
            uuid: entry.uuid().map(|id| index.id_text(id)),
        }
    }
}

/// A reference to an entry, and whether it is in the file.
#[derive(Serialize)]
struct NamedEntry {
    uuid: String,
    resolves: bool,
}

impl NamedEntry {
    fn new(index: &Index, id: Id) -> Self {
        Self {
            uuid: index.id_text(id),
            resolves: index.with_uuid(id).next().is_some(),
        }
    }
}

fn write_json(out: &mut impl Write, session_tree: &SessionTree<'_>) -> Result<()> {
    let index = session_tree.index();
    let sidechains = session_tree.branches.sidechains().iter();
    let [recover, vendor] = &session_tree.paths;
    let record = TreeRecord {
        schema: 1,
        session_id: session_tree.session_id.clone(),
        path: session_tree.source.path().to_string_lossy().into_owned(),
        lines: index.line_count(),
        entries: index.len(),
        roots: roots(session_tree),
        branches: branches(session_tree),
        boundaries: boundaries(session_tree)?,
        sidechains: sidechains
            .map(|sidechain| SidechainRecord {
                agent: sidechain.agent.clone(),
                entries: sidechain.entries,
                first: EntryLocation::new(index, sidechain.first),
            })
            .collect(),
        leaves: Leaves {
            recover: leaf(session_tree, &recover.1),
            vendor: leaf(session_tree, &vendor.1),
        },
    };
    record::write(out, &record)
}

/// Returns the roots, and the entries whose parent is missing or part of a cycle.
fn roots(session_tree: &SessionTree<'_>) -> Vec<RootRecord> {
    let index = session_tree.index();
    let branches = session_tree.branches.all().iter().enumerate();
    let is_root = |start: BranchStart, has_parent: bool| match start {
        BranchStart::Boundary => !has_parent,
        start => start != BranchStart::Child,
    };
    branches
        .filter(|(_, branch)| is_root(branch.start, branch.parent.is_some()))
        .map(|(number, branch)| RootRecord {
            entry: EntryLocation::new(index, branch.first),
            kind: branch.start.name(),
            parent_uuid: index
                .entry(branch.first)
                .parent()
                .map(|id| index.id_text(id)),
            branch: number,
        })
        .collect()
}

fn branches(session_tree: &SessionTree<'_>) -> Vec<BranchRecord> {
    let index = session_tree.index();
    let main: HashSet<usize> = session_tree.main_line().into_iter().collect();
    let all = session_tree.branches.all().iter().enumerate();
    all.map(|(number, branch)| BranchRecord {
        id: number,
        parent: branch.parent,
        from: branch.from.map(|from| EntryLocation::new(index, from)),
        start: branch.start.name(),
        kind: if main.contains(&number) {
            "main"
        } else {
            "side"
        },
        tip: branch.is_tip,
        entries: session_tree.branches.entries(number).len(),
        messages: branch.messages,
        prompts: session_tree.prompts[number],
        first: EntryLocation::new(index, branch.first),
        last: EntryLocation::new(index, branch.last),
    })
    .collect()
}

fn boundaries(session_tree: &SessionTree<'_>) -> Result<Vec<BoundaryRecord>> {
    let index = session_tree.index();
    let mut bodies = Bodies::new(session_tree.source);
    let mut records = Vec::new();
    for entry_ref in index.entries().filter(EntryRef::is_boundary) {
        let facts = BoundaryFacts::read(session_tree, &entry_ref, &mut bodies)?;
        let named = |id: Option<Id>| id.map(|id| NamedEntry::new(index, id));
        let boundary = index.boundary(entry_ref.number());
        let [anchor, head, tail] = boundary.map_or([None; 3], ends);
        records.push(BoundaryRecord {
            entry: EntryLocation::new(index, entry_ref.number()),
            trigger: facts.compaction.trigger.map(String::from),
            pre_tokens: facts.compaction.pre_tokens,
            logical_parent: named(boundary.and_then(|boundary| boundary.logical_parent)),
            anchor: named(anchor),
            head: named(head),
            tail: named(tail),
            kept: facts.kept,
            missing: facts.missing,
        });
    }
    Ok(records)
}

/// Returns anchor, head and tail of the segment that a boundary preserves.
fn ends(boundary: &Boundary) -> [Option<Id>; 3] {
    match &boundary.preserved {
        Preserved::Nothing => [None; 3],
        Preserved::List { anchor, uuids } => {
            let end = |id: Option<&Option<Id>>| id.copied().flatten();
            [*anchor, end(uuids.first()), end(uuids.last())]
        }
        Preserved::Segment { anchor } => [*anchor, boundary.ends[0], boundary.ends[1]],
    }
}

fn leaf(session_tree: &SessionTree<'_>, path: &ConversationPath) -> Option<LeafRecord> {
    let index = session_tree.index();
    let leaf = path.leaf?;
    let decision = leaf_decision(path)?;
    let Decision::Leaf { reason, .. } = *decision else {
        return None;
    };
    Some(LeafRecord {
        entry: EntryLocation::new(index, leaf),
        reason: reason.name(),
        detail: explain::describe(index, decision),
        branch: session_tree.branches.branch_of(leaf),
        entries: path.entries.len(),
    })
}
