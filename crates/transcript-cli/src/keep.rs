//! `transcript keep`: captures sessions in the archive.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
#[cfg(feature = "encryption")]
use transcript_engine::archive::Identities;
use transcript_engine::archive::{
    Archive, ArchiveOptions, CaptureOptions, Captured, ErrorKind, Recipient,
};
use transcript_engine::verify::cleanup_days;
use transcript_engine::wire::KeepReport;
use transcript_engine::{RootArchive, summarize_of};
use transcript_format::units::size;
use transcript_ops::Failure;
use transcript_ops::agent_archives::summarize_database;
use transcript_ops::machine::check_machine;
use transcript_ops::roots::RootPlace;
use transcript_render::{TextStyle, count};
use transcript_storage::{Disk, ReadDisk, RealDisk};

use crate::progress::Progress;
use crate::ui::{Ui, in_quotes};
use crate::{archive, exit, record, session};

/// The pause between two attempts while another process captures, and the maximum number of repeated attempts.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
const MAX_RETRIES: u32 = 100;

/// Back up all sessions in an archive
///
/// Captures every version of every session: the changes since the last run, with subagents, stored results, tasks and file history.
/// The sessions of other agents on this machine are captured as well, each home folder in an archive of its own; --agent chooses.
/// Changes nothing in the folders. Other commands find archived sessions by their id;
/// `restore` puts them back. Files that may hold credentials are never captured.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Args {
    /// Keep running, capturing every --every seconds
    #[arg(long)]
    watch: bool,
    /// Seconds between two captures, with --watch
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Report the sessions that Claude Code deletes within this number of days
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    sweep: u64,
    /// Compare every byte of each file with the archive
    #[arg(long)]
    full: bool,
    /// Encrypt a new archive to this public key of age (age1…), or to the keys in this file; a file that does not exist
    /// is created with a new key. Only reading the archive needs the key
    #[arg(long, value_name = "KEY|FILE")]
    encrypt: Option<String>,
    /// The name of this machine in an archive in a bucket [default: $TRANSCRIPT_MACHINE, or the name of the host]
    #[arg(long, value_name = "NAME", value_parser = machine_name)]
    machine: Option<String>,
    /// Print a timer and a Claude Code hook that run this command; install nothing
    #[arg(long, conflicts_with_all = ["watch", "full"])]
    install: bool,
    /// Print one JSON object; with --watch, one per capture
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let places = &session::roots(ui)?.places;
    if args.install {
        return install(ui, places);
    }
    let is_there = |place: &&RootPlace| RealDisk.is_folder(&place.folder);
    let (there, missing): (Vec<&RootPlace>, Vec<&RootPlace>) = places.iter().partition(is_there);
    if there.is_empty() {
        let does = if missing.len() == 1 { "does" } else { "do" };
        let folders = session::root_folders(ui);
        let text = format!("no sessions yet: {folders} {does} not exist");
        return Err(session::not_in_roots(ui, text).into());
    }
    // An agent that was removed from the machine still has its archive.
    let is_asked = !ui.asked_agents().is_empty();
    let missing = missing.into_iter();
    for place in missing.filter(|place| is_asked || place.maker.is_none()) {
        let folder = ui.path(&place.folder);
        ui.note(&format!("no sessions yet: {folder} does not exist"));
    }
    let is_one = there.len() == 1;
    let mut kept = open_archives(ui, args, &there)?;
    let options = CaptureOptions::new().compare_all(args.full);
    let has_all = kept.len() == there.len();
    loop {
        let mut is_whole = has_all;
        for root in &mut kept {
            is_whole &= match root.keep(ui, args, &options) {
                // The others are captured all the same.
                Err(error) if !is_one => {
                    ui.complain(&error);
                    false
                }
                kept => kept?,
            };
        }
        if !args.watch {
            return Ok(exit::done_if(is_whole));
        }
        thread::sleep(Duration::from_secs(args.every));
    }
}

/// Opens the archives of these roots, or makes them, and the key to which `--encrypt` encrypts them.
fn open_archives(ui: &Ui, args: &Args, places: &[&RootPlace]) -> Result<Vec<KeptRoot>> {
    let is_file = |key: &&String| !key.starts_with("age1");
    let key_file = args.encrypt.as_ref().filter(is_file).map(Path::new);
    // A key that does not exist is made, unless nothing would use it.
    let new_key = key_file.filter(|key| !RealDisk.exists(key));
    let folders = places.iter().map(|place| archive::folder(place));
    let folders = folders.collect::<Result<Vec<_>>>()?;
    let options = ui.archive_options()?;
    let existing = || folders.iter().find(|folder| has_archive(&options, folder));
    if let Some(folder) = new_key.and_then(|_| existing()) {
        let text = "the archive exists, and is encrypted to other keys or not at all";
        let exists = Failure::new("exists", text).in_file(folder);
        return Err(exists.with_next("use a new folder").into());
    }
    let recipients = args.encrypt.as_deref().map(recipients).transpose()?;
    let own = places.iter().filter(|place| place.maker.is_none());
    let is_named = own.count() > 1;
    let kept = places.iter().map(|place| {
        let machine = args.machine.as_deref();
        KeptRoot::open(ui, place, recipients.as_deref(), machine, is_named)
    });
    // The archive of one agent must not keep the others from being captured.
    let is_one = places.len() == 1;
    let kept = kept.zip(places).filter_map(|(kept, place)| match kept {
        Err(error) if !is_one && place.maker.is_some() => {
            ui.complain(&error);
            None
        }
        kept => Some(kept),
    });
    let kept = kept.collect::<Result<Vec<_>>>();
    if let Some(key) = new_key {
        if existing().is_some() {
            ui.warn(&format!(
                "a new key is in {}; keep a copy elsewhere: without it nobody can read the archive",
                key.display()
            ));
        } else {
            // Nothing uses it.
            let _ = RealDisk.remove(key);
        }
    }
    kept
}

/// Returns whether there is an archive in a folder, which may be in a bucket. One that cannot be asked is opened for the error.
fn has_archive(options: &ArchiveOptions, folder: &Path) -> bool {
    let disk = options.disk_of(folder);
    disk.is_ok_and(|disk| disk.exists(&folder.join("archive.json")))
}

/// A root, and its archive.
struct KeptRoot {
    folder: PathBuf,
    /// The name of the root, if several of Claude Code are in use.
    name: Option<String>,
    /// The agent whose home folder it is; `None` for Claude Code.
    agent: Option<String>,
    archive: Archive,
    archive_folder: PathBuf,
}

impl KeptRoot {
    /// Opens the archive of a root. `is_named` says whether results name it.
    fn open(
        ui: &Ui,
        place: &RootPlace,
        recipients: Option<&[Recipient]>,
        machine: Option<&str>,
        is_named: bool,
    ) -> Result<Self> {
        let folder = archive::folder(place)?;
        let options = ui.archive_options()?;
        // Only where sessions may be divided among archives is that asked for.
        let has_common = place.common_archive.is_some();
        let is_new = has_common && !has_archive(&options, folder);
        let options = match machine {
            Some(machine) => options.machine(machine),
            None => options,
        };
        let options = match recipients {
            Some(recipients) => options.encrypt_to(recipients.to_vec()),
            None => place.encrypted_like(&options),
        };
        let archive = Archive::open_or_create_with(folder, &options)?;
        let marked = place.mark_archive();
        marked.with_context(|| folder.display().to_string())?;
        let agent = place.maker.as_deref().map(str::to_owned);
        let is_divided = is_new && agent.is_none();
        if let Some(common) = place.common_archive.as_ref().filter(|_| is_divided) {
            let context = session::context(ui);
            let of_root = context
                .archives()
                .find(|archive| archive.disk().folder() == common);
            let has_any = |archive: &RootArchive| {
                archive
                    .sessions()
                    .is_ok_and(|files| !files.sessions.is_empty())
            };
            if of_root.is_some_and(has_any) {
                ui.note(&format!(
                    "the sessions of {} have an archive of their own from now on; those in {} can still be read",
                    ui.path(&place.folder),
                    ui.path(common)
                ));
            }
        }
        Ok(Self {
            folder: std::path::absolute(&place.folder).context("the projects folder")?,
            name: (is_named && agent.is_none()).then(|| place.name.to_string()),
            agent,
            archive,
            archive_folder: folder.to_owned(),
        })
    }

    /// Captures what changed, and prints it. Returns whether there was no problem.
    fn keep(&mut self, ui: &Ui, args: &Args, options: &CaptureOptions) -> Result<bool> {
        let captured = self.capture(ui, options, args.watch)?;
        let config = self.folder.parent().filter(|_| self.agent.is_none());
        let kept = config.and_then(cleanup_days);
        let mut report = KeepReport::new(&captured, kept, args.sweep);
        report.root.clone_from(&self.name);
        report.agent.clone_from(&self.agent);
        for problem in &report.problems {
            ui.report(Failure::new(
                "unreadable",
                format!("not captured: {problem}"),
            ));
        }
        let is_news = !args.watch || report.captured > 0;
        if is_news && (args.json || !ui.quiet) {
            print(ui, &self.archive_folder, &report, args.json)?;
        }
        Ok(report.problems.is_empty())
    }

    /// Captures what changed. While another process captures, it waits: for a time, or for as long as that takes.
    fn capture(
        &mut self,
        ui: &Ui,
        options: &CaptureOptions,
        waits_always: bool,
    ) -> Result<Captured> {
        let mut waits = MAX_RETRIES;
        loop {
            let progress = Progress::start(ui);
            let options = options.clone().count_bytes(progress.counter());
            let captured = match &self.agent {
                Some(agent) => {
                    let options = options.summarize(Arc::new(summarize_database(agent)));
                    self.archive.capture_home(agent, &self.folder, &options)
                }
                None => {
                    let options = options.summarize(Arc::new(summarize_of(&self.folder)));
                    self.archive.capture(&self.folder, &options)
                }
            };
            match captured {
                Err(error) if *error.kind() == ErrorKind::Busy && (waits_always || waits > 0) => {
                    waits = waits.saturating_sub(1);
                    drop(progress);
                    thread::sleep(RETRY_PAUSE);
                }
                captured => return Ok(captured?),
            }
        }
    }
}

impl Args {
    /// Returns the options of a capture of one session.
    pub(crate) fn of_session(machine: Option<&str>, json: bool) -> Self {
        Self {
            machine: machine.map(str::to_owned),
            json,
            ..Self::default()
        }
    }
}

/// Captures one session in the archive of its root or of its agent, and prints the result.
pub(crate) fn keep_session(
    ui: &Ui,
    args: &Args,
    place: &RootPlace,
    options: &CaptureOptions,
) -> Result<u8> {
    let mut kept = open_archives(ui, args, &[place])?;
    let mut is_whole = true;
    for root in &mut kept {
        is_whole &= root.keep(ui, args, options)?;
    }
    Ok(exit::done_if(is_whole))
}

/// Checks the name of a machine.
pub(crate) fn machine_name(name: &str) -> Result<String, String> {
    check_machine(name)?;
    Ok(name.to_owned())
}

#[cfg(not(feature = "encryption"))]
fn recipients(_: &str) -> Result<Vec<Recipient>> {
    Err(crate::light::missing("keep --encrypt"))
}

/// Returns the public keys that `--encrypt` names. A file that does not exist is written, with a new key.
#[cfg(feature = "encryption")]
fn recipients(key: &str) -> Result<Vec<Recipient>> {
    if key.starts_with("age1") {
        return Ok(vec![
            key.parse()
                .map_err(|error| anyhow::anyhow!("--encrypt: {error}"))?,
        ]);
    }
    let file = Path::new(key);
    if !RealDisk.exists(file) {
        Identities::generate().write_new(file)?;
    }
    Ok(Identities::read(file)?.recipients())
}

fn print(ui: &Ui, folder: &Path, report: &KeepReport, is_json: bool) -> Result<()> {
    let mut out = io::stdout().lock();
    if is_json {
        return record::write(&mut out, report);
    }
    let folder = ui.path(folder);
    let root = report.root.as_ref().or(report.agent.as_ref());
    let what = if report.agent.is_some() {
        "file"
    } else {
        "session"
    };
    let root = root.map_or(String::new(), |root| {
        format!("{}: ", ui.escaping.one_line(root))
    });
    let unchanged = report.unchanged;
    let mut lines = vec![match report.captured {
        0 => format!(
            "{root}nothing changed: {} in {folder}",
            count(unchanged, what)
        ),
        captured => format!(
            "{root}kept {}, {} compressed to {}, in {folder}; {unchanged} unchanged",
            count(captured, what),
            size(report.bytes),
            size(report.stored),
        ),
    }];
    if report.denied > 0 {
        let denied = count(report.denied, "file");
        lines.push(format!("{denied} that may hold credentials omitted"));
    }
    if let Some(first) = report.at_risk.first() {
        let when = match first.days {
            0 => "when it is started next".to_owned(),
            1 => "tomorrow".to_owned(),
            days => format!("in {days} days"),
        };
        lines.push(format!(
            "Claude Code deletes {} soon, the first {when}; they stay in the archive",
            count(report.at_risk.len(), "session"),
        ));
    }
    for line in lines {
        ui.write_wrapped(&mut out, &line, "  ", TextStyle::default())?;
    }
    Ok(())
}

/// Prints a timer and a hook that run this command every hour, and at the end of each session.
fn install(ui: &Ui, places: &[RootPlace]) -> Result<u8> {
    let program = env::current_exe().context("the path of this program")?;
    let mut words = vec![
        program.display().to_string(),
        "keep".into(),
        "--quiet".into(),
    ];
    // Each of several roots has an archive of its own, unless one was asked for.
    if let ([place], _) | ([place, ..], Some(Some(_))) = (places, &ui.archive) {
        let folder = archive::folder(place)?;
        words.extend(["--archive".into(), ui.roots()?.known.address_of(folder)]);
    }
    for agent in ui.asked_agents() {
        words.extend(["--agent".into(), agent.clone()]);
    }
    // Other agents are found each time.
    let own: Vec<&RootPlace> = places
        .iter()
        .filter(|place| place.maker.is_none())
        .collect();
    let named = if ui.asked_roots.is_empty() {
        own
    } else {
        places.iter().collect()
    };
    let is_choice = ui.asked_agents().is_empty() && named.len() > 1;
    if !ui.asked_roots.is_empty() || is_choice {
        for place in named {
            let root = std::path::absolute(&place.folder).context("--root")?;
            words.extend(["--root".into(), root.display().to_string()]);
        }
    }
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    let command = quoted.join(" ");
    // In a unit, % starts a name of systemd.
    let in_unit = command.replace('%', "%%");
    let hook = serde_json::json!({"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": command}]}]}});
    let hook = serde_json::to_string_pretty(&hook)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "Nothing was installed. To run `keep` automatically, do one or both of these.\n\n\
         1. A timer of systemd, each hour. Write two files, then run\n\
         \x20  systemctl --user daemon-reload && systemctl --user enable --now transcript-keep.timer\n\n\
         ~/.config/systemd/user/transcript-keep.service\n\
         [Unit]\nDescription=Keep agent sessions\n\n[Service]\nType=oneshot\nExecStart={in_unit}\n\n\
         ~/.config/systemd/user/transcript-keep.timer\n\
         [Unit]\nDescription=Keep agent sessions each hour\n\n[Timer]\nOnCalendar=hourly\nPersistent=true\n\n\
         [Install]\nWantedBy=timers.target\n\n\
         Without systemd, a line for `crontab -e`:\n\
         0 * * * * {command}\n\n\
         2. A hook of Claude Code, at the end of each session: add this to ~/.claude/settings.json\n\
         {hook}"
    )?;
    Ok(exit::DONE)
}

/// Quotes a word for a shell, if it needs that.
fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    in_quotes(word)
}
