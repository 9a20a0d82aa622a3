//! `transcript tree`: shows the branches of a session and the leaf of each policy.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use transcript_ops::tree::BranchTree;
use transcript_render::TreePrinter;

use crate::filter::EntryFilter;
use crate::path_args::PolicyName;
use crate::ui::Ui;
use crate::{exit, record, replay, session};

/// Show the branches of a session
///
/// Shows prompts that were rewound or edited, compactions, subagents, entries whose parent is
/// missing, and where the conversation ends under each policy. A row represents all entries up to the
/// next fork.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A .jsonl file, a session id or the start of one, `latest`, or - for standard input
    #[arg(default_value = "latest")]
    session: PathBuf,
    /// The rules by which a session of another agent is read
    #[arg(long, value_enum, default_value_t = PolicyName::Recover)]
    policy: PolicyName,
    #[command(flatten)]
    filter: EntryFilter,
    /// Print the whole tree as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let selection = args.filter.selection()?;
    session::follow_policy(ui, args.policy.policy());
    let common = &args.filter.common;
    let (session, progress) = session::open(ui, &args.session, common.project.as_deref())?;
    let read = BranchTree::new(&session, &selection)?;
    drop(progress);
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    if args.json {
        record::write(&mut out, &read.report()?)?;
    } else {
        let mut printer = TreePrinter::new(&read.tree, &ui.render);
        if let Some(matches) = &read.matches {
            let has_match: Vec<bool> = matches.iter().map(|matches| *matches > 0).collect();
            printer = printer.only(&has_match);
        }
        if common.sidechains {
            printer = printer.agents(session::agents(ui, session.source().path()));
        }
        printer.draw(&mut out)?;
    }
    out.flush()?;
    replay::print_finding_count(ui, &read.tree.tree, &read.tree.paths[0].1);
    Ok(exit::DONE)
}
