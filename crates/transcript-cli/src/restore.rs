//! `transcript restore`: puts archived sessions back.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use jiff::Zoned;
use transcript::archive::{Archive, RestoreOptions};
use transcript::catalog::moment;
use transcript::wire::RestoreReport;
use transcript_render::count;

use crate::list::size;
use crate::progress::Progress;
use crate::ui::Ui;
use crate::{archive, exit, record, session};

/// Put archived sessions back, as they were when they were captured last
///
/// Writes the files of the sessions, with their subagents and side files, times and modes. A file that
/// exists is never changed, and no session is restored whose id is in use.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Ids of archived sessions, or the starts of ids
    #[arg(
        value_name = "SESSION",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    sessions: Vec<String>,
    /// All archived sessions
    #[arg(long)]
    all: bool,
    /// The projects folder to write to [default: the one of the client, or --root]
    #[arg(long, value_name = "ROOT")]
    to: Option<PathBuf>,
    /// As they were at this time
    #[arg(long, value_name = "TIME")]
    as_of: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let root = match &args.to {
        Some(root) => root.clone(),
        None => session::store(ui)?.root().to_owned(),
    };
    let root = std::path::absolute(root)?;
    let archive = Archive::open_with(&archive::folder(ui)?, &archive::options(ui)?)?;
    // Of sessions that are named, their search says it.
    let is_incomplete = args.all && archive::warn(ui, &archive);
    let mut options = RestoreOptions::new();
    if !args.all {
        let mut sessions = Vec::new();
        for id in &args.sessions {
            let Some(path) = archive::find(ui, id)? else {
                bail!("{id}: no such archived session; `transcript list --archived` shows them");
            };
            sessions.extend(name_of(ui, &path));
        }
        options = options.sessions(sessions);
    }
    if let Some(time) = &args.as_of {
        let millis =
            moment::parse(time, &Zoned::now()).map_err(|why| anyhow::anyhow!("--as-of: {why}"))?;
        let since = std::time::Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        options = options.as_of(std::time::UNIX_EPOCH + since);
    }
    let progress = Progress::start(ui);
    let restored = archive.restore(&root, &options)?;
    drop(progress);
    let report = RestoreReport::new(&restored);
    let mut out = io::stdout().lock();
    if args.json {
        record::write(&mut out, &report)?;
    } else {
        for path in &report.restored {
            writeln!(out, "{}", ui.escaping.one_line(path))?;
        }
        let files = usize::try_from(report.files).unwrap_or(usize::MAX);
        let mut done = format!("{} restored, {}", count(files, "file"), size(report.bytes));
        if report.present > 0 {
            done.push_str(&format!("; {} were there already", report.present));
        }
        ui.note(&format!("transcript: {done}"));
    }
    if report.omitted > 0 {
        let files = usize::try_from(report.omitted).unwrap_or(usize::MAX);
        ui.note(&format!(
            "transcript: {} omitted: they belong next to a folder named projects",
            count(files, "file")
        ));
    }
    for refused in &report.refused {
        let reason = ui.escaping.one_line(&refused.reason);
        ui.warn(&format!("transcript: not restored: {reason}"));
    }
    Ok(match report.refused.is_empty() && !is_incomplete {
        true => exit::DONE,
        false => exit::NO,
    })
}

/// Returns the project and the id of an archived session.
fn name_of(ui: &Ui, path: &Path) -> Option<(String, String)> {
    let below = archive::path_below_projects(ui, path)?;
    let project = below.parent()?.to_str()?.to_owned();
    Some((project, below.file_stem()?.to_str()?.to_owned()))
}
