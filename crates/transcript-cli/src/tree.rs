//! `transcript tree`: shows the branches of a session and the leaf of each policy.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use transcript_engine::History;
use transcript_engine::wire::{BoundaryRecord, LeafRecord, LeavesRecord, TreeReport};
use transcript_format::entry::Entry;
use transcript_reader::{Bodies, EntryRef};
use transcript_render::{BoundaryFacts, SessionTree, TreePrinter, explain};
use transcript_resume::{Policy, Tree};

use crate::filter::{Above, EntryFilter, Selection};
use crate::ui::Ui;
use crate::{exit, record, replay, session};

/// Show the branches of a session
///
/// Shows prompts that were rewound or edited, compactions, subagents, entries whose parent is
/// missing, and the leaf of each policy. A row represents all entries up to the next fork.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A .jsonl file, a session id or the start of one, `latest`, or - for standard input
    #[arg(default_value = "latest")]
    session: PathBuf,
    #[command(flatten)]
    filter: EntryFilter,
    /// Print the whole tree as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let selection = args.filter.selection()?;
    let common = &args.filter.common;
    let (session, progress) = session::open(ui, &args.session, common.project.as_deref())?;
    let tree = session.tree(Policy::Recover);
    let vendor = Tree::new(session.index(), Policy::Vendor).path();
    let paths = [(Policy::Recover, tree.path()), (Policy::Vendor, vendor)];
    let session_tree = SessionTree::new(session.source(), session.session_id(), tree, paths)?;
    let matches = if selection.is_empty() && common.last.is_none() {
        None
    } else {
        Some(matches(&session_tree, &selection, common.last)?)
    };
    drop(progress);
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    if args.json {
        write_json(&mut out, &session, &session_tree, matches.as_deref())?;
    } else {
        let mut printer = TreePrinter::new(&session_tree, &ui.render);
        if let Some(matches) = &matches {
            let has_match: Vec<bool> = matches.iter().map(|matches| *matches > 0).collect();
            printer = printer.only(&has_match);
        }
        if common.sidechains {
            printer = printer.agents(session::agents(ui, session.source().path()));
        }
        printer.draw(&mut out)?;
    }
    out.flush()?;
    replay::print_finding_count(ui, &session_tree.tree, &session_tree.paths[0].1);
    Ok(exit::DONE)
}

fn write_json(
    out: &mut impl Write,
    session: &History,
    session_tree: &SessionTree<'_>,
    matches: Option<&[u64]>,
) -> Result<()> {
    let branches = &session_tree.branches;
    let index = session_tree.index();
    let describe = |decision: &_| explain::describe(index, decision);
    let leaf = |path| LeafRecord::new(index, branches, path, describe);
    let [recover, vendor] = &session_tree.paths;
    let leaves = LeavesRecord::new(leaf(&recover.1), leaf(&vendor.1));
    let boundaries = boundaries(session_tree)?;
    let mut report = TreeReport::new(session, branches, &session_tree.prompts, boundaries, leaves);
    for (branch, matches) in report.branches.iter_mut().zip(matches.unwrap_or_default()) {
        branch.matches = Some(*matches);
    }
    record::write(out, &report)
}

/// Returns how many entries of each branch are selected, for the `last` branches that have any.
fn matches(
    session_tree: &SessionTree<'_>,
    selection: &Selection<'_>,
    last: Option<usize>,
) -> Result<Vec<u64>> {
    let branches = &session_tree.branches;
    let mut matches = vec![0; branches.len()];
    let (mut bodies, mut above) = (Bodies::new(session_tree.source), Above::default());
    for entry in session_tree.index().entries() {
        let Some(branch) = branches.branch_of(entry.number()) else {
            continue;
        };
        let body = bodies.get(&entry)?;
        let parsed = Entry::parse(body.text);
        if selection.is_empty() || parsed.is_ok_and(|parsed| selection.wants(&parsed, &mut above)) {
            matches[branch] += 1;
        }
    }
    if let Some(last) = last {
        let mut found: Vec<usize> = (0..matches.len()).filter(|at| matches[*at] > 0).collect();
        found.sort_by_key(|branch| std::cmp::Reverse(branches.all()[*branch].last));
        for branch in found.into_iter().skip(last) {
            matches[branch] = 0;
        }
    }
    Ok(matches)
}

fn boundaries(session_tree: &SessionTree<'_>) -> Result<Vec<BoundaryRecord>> {
    let index = session_tree.index();
    let mut bodies = Bodies::new(session_tree.source);
    let mut records = Vec::new();
    for entry_ref in index.entries().filter(EntryRef::is_boundary) {
        let facts = BoundaryFacts::read(session_tree, &entry_ref, &mut bodies)?;
        let mut record = BoundaryRecord::new(index, &entry_ref);
        record.trigger = facts.compaction.trigger.map(String::from);
        record.pre_tokens = facts.compaction.pre_tokens;
        record.kept = facts.kept.map(|kept| kept as u64);
        record.missing = facts.missing as u64;
        records.push(record);
    }
    Ok(records)
}
