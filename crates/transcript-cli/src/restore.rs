//! `transcript restore`: puts archived sessions back.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Args as ClapArgs;
use jiff::Zoned;
use transcript_engine::RootArchive;
use transcript_engine::archive::{ArchiveDisk, RestoreOptions, Restored};
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
    if args.to.is_none() {
        // A wrong `--root` is an error, and not a folder to make.
        session::roots(ui)?;
    }
    archive::check(ui)?;
    let parts = if args.all {
        all_sessions(ui, args)?
    } else {
        named_sessions(ui, args)?
    };
    // Of sessions that are named, their search says it.
    let is_incomplete = args.all && archive::warn_of_problems(ui);
    let mut options = RestoreOptions::new();
    if let Some(time) = &args.as_of {
        let millis =
            moment::parse(time, &Zoned::now()).map_err(|why| anyhow::anyhow!("--as-of: {why}"))?;
        let since = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        options = options.as_of(UNIX_EPOCH + since);
    }
    let progress = Progress::start(ui);
    let mut restored = Restored::default();
    // Several roots have settings of their own; what is said is about the first.
    let mut kept = None;
    for part in &parts {
        // Of another folder Claude Code knows nothing.
        let config = part
            .root
            .parent()
            .filter(|_| part.root.ends_with("projects"));
        let days = config.and_then(cleanup_days);
        kept = kept.or(days);
        let options = renewed(options.clone(), days.filter(|_| args.renew));
        let options = match &part.sessions {
            Some(sessions) => options.sessions(sessions.clone()),
            None => options,
        };
        restored.add(part.archive.archive()?.restore(&part.root, &options)?);
    }
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
    if args.all {
        archive::note_others(ui)?;
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

/// Sessions that are restored together.
struct RestorePart {
    archive: Arc<ArchiveDisk>,
    /// The folder of projects to write to.
    root: PathBuf,
    /// Their projects and ids; all of the archive if there is no list.
    sessions: Option<Vec<(String, String)>>,
}

/// Returns the sessions that are named, each from the archive that has it to the root that it is of.
fn named_sessions(ui: &Ui, args: &Args) -> Result<Vec<RestorePart>> {
    let context = session::context(ui);
    let mut parts: Vec<RestorePart> = Vec::new();
    for id in &args.sessions {
        let Some((path, root)) = session::find_archived(ui, id)? else {
            let failure = Failure::new("not-found", format!("{id}: no such archived session"));
            let next = "`transcript list --archived` shows them";
            return Err(failure.with_next(next).into());
        };
        let root = std::path::absolute(args.to.as_ref().unwrap_or(&root))?;
        let Some(archive) = context.archive_at(&path).map(RootArchive::disk) else {
            continue;
        };
        let name = name_of(archive, &path);
        let of_archive = |part: &&mut RestorePart| {
            part.root == root && part.archive.folder() == archive.folder()
        };
        match parts.iter_mut().find(of_archive) {
            Some(part) => part.sessions.get_or_insert_default().extend(name),
            None => parts.push(RestorePart {
                archive: Arc::clone(archive),
                root,
                sessions: Some(name.into_iter().collect()),
            }),
        }
    }
    Ok(parts)
}

/// Returns all archived sessions of the root. It must be the only one, as all are written to one folder.
fn all_sessions(ui: &Ui, args: &Args) -> Result<Vec<RestorePart>> {
    let (place, root) = session::one_root(ui)?;
    let to = std::path::absolute(args.to.as_ref().unwrap_or(&place.folder))?;
    let has_others = session::context(ui)
        .archived_of_others()
        .map_err(Failure::from)?
        > 0;
    let mut seen = HashSet::new();
    let parts = root.archives.iter().map(|archive| {
        let mut names = Vec::new();
        let files = archive.sessions()?;
        for file in [&files.sessions, &files.orphans, &files.leftovers]
            .into_iter()
            .flatten()
        {
            let name = name_of(archive.disk(), &file.path);
            names.extend(name.filter(|name| seen.insert(name.clone())));
        }
        Ok(RestorePart {
            archive: Arc::clone(archive.disk()),
            root: to.clone(),
            // Files that are of no session are restored as well, where all is of this root.
            sessions: (has_others || root.archives.len() > 1).then_some(names),
        })
    });
    parts.collect()
}

/// Sets the times of files that Claude Code would delete soon, as it keeps them for this number of days.
fn renewed(options: RestoreOptions, kept: Option<u64>) -> RestoreOptions {
    let Some(kept) = kept else { return options };
    let now = SystemTime::now();
    let age = kept
        .saturating_sub(WARNING_DAYS)
        .saturating_mul(SECONDS_PER_DAY);
    let oldest = now.checked_sub(Duration::from_secs(age));
    options.renew(oldest.unwrap_or(UNIX_EPOCH), now)
}

/// Returns the project and the id of an archived session.
fn name_of(archive: &ArchiveDisk, path: &Path) -> Option<(String, String)> {
    let below = path.strip_prefix(archive.projects()).ok()?;
    let project = below.parent()?.to_str()?.to_owned();
    Some((project, below.file_stem()?.to_str()?.to_owned()))
}
