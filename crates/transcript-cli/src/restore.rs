//! `transcript restore`: puts archived sessions back.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use jiff::Zoned;
use transcript_engine::SessionRow;
use transcript_engine::archive::{ArchiveDisk, RestoreOptions, Restored};
use transcript_engine::catalog::moment;
use transcript_engine::verify::cleanup_days;
use transcript_engine::wire::RestoreReport;
use transcript_format::units::size;
use transcript_ops::Failure;
use transcript_render::count;
use transcript_storage::{ReadDisk, RealDisk};

use crate::progress::Progress;
use crate::ui::{Ui, in_quotes};
use crate::{archive, continuation, exit, record, session};

/// Restore sessions from the archive
///
/// Writes the files of the sessions as they were last captured, with their subagents and side files, times and modes. A file that
/// exists is never changed, and a session whose id is in use is not restored. A session of another agent goes back to its home
/// folder as the files of that agent; one that is rows of a database, as the database, so it needs --to if that exists.
#[derive(Debug, Default, ClapArgs)]
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
    /// The projects folder, or home folder of an agent, to write to [default: where the sessions were]
    #[arg(long, value_name = "ROOT")]
    to: Option<PathBuf>,
    /// Restore the sessions as they were at this time
    #[arg(long, value_name = "TIME")]
    as_of: Option<String>,
    /// Restore only what this machine captured, from an archive in a bucket
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Set the time of files to now if Claude Code would delete them within 7 days
    #[arg(long)]
    renew: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns the options for one session that is to be continued here.
    pub(crate) fn of_session(session: &str, machine: Option<&str>, json: bool) -> Self {
        Self {
            sessions: vec![session.to_owned()],
            machine: machine.map(str::to_owned),
            renew: true,
            json,
            ..Self::default()
        }
    }
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
        let mut options = renewed(options.clone(), days.filter(|_| args.renew));
        if let Some(machine) = args.machine.as_ref().or(part.machine.as_ref()) {
            options = options.machine(machine);
        }
        if let Some(time) = part.last_seen.filter(|_| args.as_of.is_none()) {
            options = options.as_of(time);
        }
        let archive = part.archive.archive()?;
        restored.add(match &part.of {
            PartOf::Sessions(sessions) => {
                archive.restore(&part.root, &options.sessions(sessions.clone()))?
            }
            PartOf::All => archive.restore(&part.root, &options)?,
            PartOf::Home(agent, Some(files)) => {
                archive.restore_home(agent, &part.root, &options.files(files.clone()))?
            }
            PartOf::Home(agent, None) => archive.restore_home(agent, &part.root, &options)?,
        });
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
        note_missing_folder(ui, &restored);
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

/// Says how a restored session can be continued in another folder, if the one in which it worked is not on this machine.
fn note_missing_folder(ui: &Ui, restored: &[PathBuf]) {
    let [session] = restored else { return };
    let row = SessionRow::at(session);
    let folder = row.cwd.as_deref().map(Path::new);
    if let Some(folder) = folder.filter(|folder| !RealDisk.exists(folder)) {
        ui.note(&format!(
            "{} is not on this machine; to continue elsewhere: transcript move {} NEW",
            ui.path(folder),
            in_quotes(&ui.path(folder))
        ));
    }
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
    /// The folder of projects to write to, or the home folder of an agent.
    root: PathBuf,
    of: PartOf,
    /// When the sessions were last captured, if they were deleted since from a database that is still captured: its newest version
    /// lacks them.
    last_seen: Option<SystemTime>,
    /// The machine that captured the sessions, if several share the archive.
    machine: Option<String>,
}

/// What is restored of an archive.
#[derive(Debug)]
enum PartOf {
    /// Everything of Claude Code.
    All,
    /// Sessions: their projects and ids.
    Sessions(Vec<(String, String)>),
    /// Files of the agent of this name, by their paths below its home folder; all without a list.
    Home(String, Option<Vec<String>>),
}

impl PartOf {
    /// Adds more of the same kind. Returns false if the other one is of another kind.
    fn add(&mut self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sessions(own), Self::Sessions(others)) => own.extend_from_slice(others),
            (Self::Home(agent, Some(own)), Self::Home(other, Some(others))) if agent == other => {
                own.extend_from_slice(others);
            }
            _ => return false,
        }
        true
    }
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
        let Some(found) = context.archive_at(&path) else {
            continue;
        };
        let archive = found.disk();
        let of = match found.agent() {
            Some(agent) => {
                PartOf::Home(agent.to_owned(), Some(files_of(ui, archive, agent, &path)?))
            }
            None => PartOf::Sessions(name_of(archive, &path).into_iter().collect()),
        };
        let last_seen = archive.time_of(&path);
        let machine = context.machine_of(&path);
        let is_added = parts.iter_mut().any(|part| {
            part.root == root
                && part.archive.folder() == archive.folder()
                && part.last_seen == last_seen
                && part.machine == machine
                && part.of.add(&of)
        });
        if !is_added {
            parts.push(RestorePart {
                archive: Arc::clone(archive),
                root,
                of,
                last_seen,
                machine,
            });
        }
    }
    Ok(parts)
}

/// Returns the files of an archived session of an agent, by their paths below its home folder.
fn files_of(ui: &Ui, archive: &ArchiveDisk, agent: &str, path: &Path) -> Result<Vec<String>> {
    let context = session::context(ui);
    let files = context.agent_homes().files_of(path);
    let files = files.with_context(|| path.display().to_string())?;
    let below = |file: &PathBuf| {
        let below = archive.below_home(agent, file)?;
        let names: Option<Vec<&str>> = below.iter().map(std::ffi::OsStr::to_str).collect();
        Some(names?.join("/"))
    };
    Ok(files.iter().flatten().filter_map(below).collect())
}

/// Returns all archived sessions of the root. It must be the only one, as all are written to one folder.
fn all_sessions(ui: &Ui, args: &Args) -> Result<Vec<RestorePart>> {
    let (place, root) = session::one_root_or_home(ui)?;
    let to = std::path::absolute(args.to.as_ref().unwrap_or(&place.folder))?;
    if let Some(agent) = &place.maker {
        let parts = root.archives.iter().map(|archive| RestorePart {
            archive: Arc::clone(archive.disk()),
            root: to.clone(),
            of: PartOf::Home(agent.to_string(), None),
            last_seen: None,
            machine: None,
        });
        return Ok(parts.collect());
    }
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
            of: if has_others || root.archives.len() > 1 {
                PartOf::Sessions(names)
            } else {
                PartOf::All
            },
            last_seen: None,
            machine: None,
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
    let below = archive.below_projects(path)?;
    let project = below.parent()?.to_str()?.to_owned();
    Some((project, below.file_stem()?.to_str()?.to_owned()))
}
