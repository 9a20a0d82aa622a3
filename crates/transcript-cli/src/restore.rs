//! `transcript restore`: puts archived sessions back.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Args as ClapArgs;
use jiff::Zoned;
use transcript_engine::archive::{Archive, RestoreOptions};
use transcript_engine::catalog::moment;
use transcript_engine::verify::cleanup_days;
use transcript_engine::wire::RestoreReport;
use transcript_format::units::size;
use transcript_ops::Failure;
use transcript_render::count;

use crate::progress::Progress;
use crate::ui::Ui;
use crate::{archive, continuation, exit, record, session};

/// Restore sessions from the archive
///
/// Writes the files of the sessions as they were last captured, with their subagents and side files, times and modes. A file that
/// exists is never changed, and a session whose id is in use is not restored.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Ids of archived sessions, or the starts of ids
    #[arg(
        value_name = "SESSION",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    sessions: Vec<String>,
    /// Restore all archived sessions
    #[arg(long)]
    all: bool,
    /// The projects folder to write to [default: that of Claude Code, or --root]
    #[arg(long, value_name = "ROOT")]
    to: Option<PathBuf>,
    /// Restore the sessions as they were at this time
    #[arg(long, value_name = "TIME")]
    as_of: Option<String>,
    /// Set the time of files to now if Claude Code would delete them within 7 days
    #[arg(long)]
    renew: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The seconds of a day.
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;
/// The number of days before the client deletes a session from which the session is listed.
const WARNING_DAYS: u64 = 7;

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let root = match &args.to {
        Some(root) => root.clone(),
        None => session::store(ui)?.root().to_owned(),
    };
    let root = std::path::absolute(root)?;
    let archive = Archive::open_with(&ui.archive_folder()?, &ui.archive_options()?)?;
    // Of sessions that are named, their search says it.
    let is_incomplete = args.all && archive::warn(ui, &archive);
    let mut options = RestoreOptions::new();
    if !args.all {
        let mut sessions = Vec::new();
        for id in &args.sessions {
            let Some(path) = archive::find(ui, id)? else {
                let failure = Failure::new("not-found", format!("{id}: no such archived session"));
                let next = "`transcript list --archived` shows them";
                return Err(failure.with_next(next).into());
            };
            sessions.extend(name_of(ui, &path));
        }
        options = options.sessions(sessions);
    }
    if let Some(time) = &args.as_of {
        let millis =
            moment::parse(time, &Zoned::now()).map_err(|why| anyhow::anyhow!("--as-of: {why}"))?;
        let since = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        options = options.as_of(UNIX_EPOCH + since);
    }
    // Of another folder the client knows nothing.
    let config = root.parent().filter(|_| root.ends_with("projects"));
    let kept = config.and_then(cleanup_days);
    if let Some(kept) = kept.filter(|_| args.renew) {
        let now = SystemTime::now();
        let age = kept
            .saturating_sub(WARNING_DAYS)
            .saturating_mul(SECONDS_PER_DAY);
        let oldest = now.checked_sub(Duration::from_secs(age));
        options = options.renew(oldest.unwrap_or(UNIX_EPOCH), now);
    }
    let progress = Progress::start(ui);
    let restored = archive.restore(&root, &options)?;
    drop(progress);
    let report = RestoreReport::new(&restored, kept, WARNING_DAYS);
    let mut out = io::stdout().lock();
    if args.json {
        record::write(&mut out, &report)?;
    } else {
        for path in &report.restored {
            writeln!(out, "{}", ui.escaping.one_line(path))?;
        }
        let files = count(report.files, "file");
        let mut done = format!("{files} restored, {}", size(report.bytes));
        if report.present > 0 {
            done.push_str(&format!("; {} were there already", report.present));
        }
        ui.note(&done);
        let restored: Vec<_> = report.restored.iter().map(PathBuf::from).collect();
        continuation::note(ui, &restored);
    }
    if report.omitted > 0 {
        let files = count(report.omitted, "file");
        ui.note(&format!(
            "{files} omitted: they belong next to a folder named projects"
        ));
    }
    warn_of_sweep(ui, &report, kept);
    for refused in &report.refused {
        let text = format!("not restored: {}", refused.reason);
        ui.report(Failure::new("refused", text).at(Path::new(&refused.path)));
    }
    Ok(exit::done_if(report.refused.is_empty() && !is_incomplete))
}

/// Warns of restored sessions that the client will delete again.
fn warn_of_sweep(ui: &Ui, report: &RestoreReport, kept: Option<u64>) {
    let Some(first) = report.at_risk.iter().map(|session| session.days).min() else {
        return;
    };
    let when = match first {
        0 => "when it is started next".to_owned(),
        days => format!("in {}", count(days, "day")),
    };
    let sessions = count(report.at_risk.len(), "session");
    let kept = kept.unwrap_or_default();
    ui.warn(&format!(
        "Claude Code keeps sessions for {kept} days and will delete {sessions} of these again, the first {when}; restore with --renew, or raise cleanupPeriodDays in its settings first"
    ));
}

/// Returns the project and the id of an archived session.
fn name_of(ui: &Ui, path: &Path) -> Option<(String, String)> {
    let below = archive::path_below_projects(ui, path)?;
    let project = below.parent()?.to_str()?.to_owned();
    Some((project, below.file_stem()?.to_str()?.to_owned()))
}
