//! `transcript prune`: removes sessions after checking that the archive has every byte.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use transcript_engine::archive::{Archive, PruneOptions};
use transcript_engine::wire::PruneReport;
use transcript_format::units::size;
use transcript_ops::Failure;
use transcript_render::count;

use crate::progress::Progress;
use crate::ui::Ui;
use crate::{archive, exit, record, session};

/// The seconds of a day.
const SECONDS_PER_DAY: u64 = 86_400;

/// Remove old sessions that the archive has
///
/// Without --yes it only lists them. A session is removed only if none of its files was changed for a month, all of them were captured at
/// least seven days ago, the archive gives back exactly their bytes, and no process has one open.
/// `restore` puts it back. With --agent, sessions of that agent: those that share a file go together, and databases stay.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Remove the files
    #[arg(long)]
    yes: bool,
    /// Only sessions that were not changed for at least this number of days
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    older_than: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let (place, _) = session::one_root_or_home(ui)?;
    let mut archive = Archive::open_with(archive::folder(place)?, &ui.archive_options()?)?;
    let root = std::path::absolute(&place.folder).context("the projects folder")?;
    let age = Duration::from_secs(args.older_than.saturating_mul(SECONDS_PER_DAY));
    let options = PruneOptions::new().older_than(age).remove(args.yes);
    let progress = Progress::start(ui);
    let pruned = match &place.maker {
        Some(agent) => {
            let homes = session::context(ui);
            let groups = homes.agent_homes().groups_of_files(&place.folder);
            let groups = groups.with_context(|| format!("the sessions of {agent}"))?;
            archive.prune_home(agent, &place.folder, &groups, &options)?
        }
        None => archive.prune(&root, &options)?,
    };
    drop(progress);
    let report = PruneReport::new(&pruned, !args.yes);
    let mut out = io::stdout().lock();
    if args.json {
        record::write(&mut out, &report)?;
    } else {
        for session in &report.pruned {
            writeln!(out, "{}", ui.escaping.one_line(&session.path))?;
        }
        for kept in &report.kept {
            ui.note(&format!("stays ({}): {}", kept.reason, kept.path));
        }
        let bytes = report.pruned.iter().map(|session| session.bytes).sum();
        let sessions = count(report.pruned.len(), "session");
        ui.note(&if args.yes {
            format!("{sessions} removed, {}", size(bytes))
        } else {
            format!(
                "{sessions} would be removed, {}; --yes removes them",
                size(bytes)
            )
        });
    }
    for problem in &report.problems {
        ui.report(Failure::new("io", problem.as_str()));
    }
    Ok(exit::done_if(report.problems.is_empty()))
}
