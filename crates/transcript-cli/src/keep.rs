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
use transcript_engine::archive::{Archive, CaptureOptions, Captured, ErrorKind, Recipient};
use transcript_engine::verify::cleanup_days;
use transcript_engine::wire::KeepReport;
use transcript_engine::{RootArchive, summarize_of};
use transcript_format::units::size;
use transcript_ops::Failure;
use transcript_ops::roots::{RootPlace, is_archive};
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
/// Changes nothing in the projects folder. Other commands find archived sessions by their id;
/// `restore` puts them back. Files that may hold credentials are never captured.
#[derive(Debug, ClapArgs)]
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
    /// Print a timer and a Claude Code hook that run this command; install nothing
    #[arg(long, conflicts_with_all = ["watch", "full"])]
    install: bool,
    /// Print one JSON object; with --watch, one per capture
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let roots = session::roots(ui)?;
    if args.install {
        return install(ui, &roots.places);
    }
    let (there, missing): (Vec<&RootPlace>, Vec<&RootPlace>) = {
        // The files of other agents are not captured yet.
        let places = roots.places.iter().filter(|place| place.maker.is_none());
        places.partition(|place| RealDisk.is_folder(&place.folder))
    };
    if there.is_empty() {
        let does = if missing.len() == 1 { "does" } else { "do" };
        let folders = session::root_folders(ui);
        let text = format!("no sessions yet: {folders} {does} not exist");
        return Err(session::not_in_roots(ui, text).into());
    }
    let others = roots
        .places
        .iter()
        .filter_map(|place| place.maker.as_deref());
    let others: Vec<&str> = others.collect();
    if !others.is_empty() {
        let names = others.join(", ");
        ui.note(&format!("not kept yet: the sessions of {names}"));
    }
    for place in missing {
        let folder = ui.path(&place.folder);
        ui.note(&format!("no sessions yet: {folder} does not exist"));
    }
    let mut kept = open_archives(ui, args, &there)?;
    loop {
        let mut is_whole = true;
        for root in &mut kept {
            is_whole &= root.keep(ui, args)?;
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
    let mut existing = folders.iter().filter(|folder| is_archive(folder));
    if let (Some(_), Some(folder)) = (new_key, existing.next()) {
        let text = "the archive exists, and is encrypted to other keys or not at all";
        let exists = Failure::new("exists", text).in_file(folder);
        return Err(exists.with_next("use a new folder").into());
    }
    let recipients = args.encrypt.as_deref().map(recipients).transpose()?;
    let kept = places
        .iter()
        .map(|place| KeptRoot::open(ui, place, recipients.as_deref()));
    let kept = kept.collect::<Result<Vec<_>>>();
    if let Some(key) = new_key {
        if folders.iter().any(|folder| is_archive(folder)) {
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

/// A root, and its archive.
struct KeptRoot {
    folder: PathBuf,
    /// The name of the root, if several are in use.
    name: Option<String>,
    archive: Archive,
    archive_folder: PathBuf,
}

impl KeptRoot {
    fn open(ui: &Ui, place: &RootPlace, recipients: Option<&[Recipient]>) -> Result<Self> {
        let folder = archive::folder(place)?;
        let is_new = !is_archive(folder);
        let options = ui.archive_options()?;
        let options = match recipients {
            Some(recipients) => options.encrypt_to(recipients.to_vec()),
            None => place.encrypted_like(&options),
        };
        let archive = Archive::open_or_create_with(folder, &options)?;
        let marked = place.mark_archive();
        marked.with_context(|| folder.display().to_string())?;
        let roots = session::roots(ui)?;
        if let Some(common) = place.common_archive.as_ref().filter(|_| is_new) {
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
            name: (roots.places.len() > 1).then(|| place.name.to_string()),
            archive,
            archive_folder: folder.to_owned(),
        })
    }

    /// Captures what changed, and prints it. Returns whether there was no problem.
    fn keep(&mut self, ui: &Ui, args: &Args) -> Result<bool> {
        let captured = self.capture(ui, args)?;
        let kept = self.folder.parent().and_then(cleanup_days);
        let mut report = KeepReport::new(&captured, kept, args.sweep);
        report.root.clone_from(&self.name);
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

    fn capture(&mut self, ui: &Ui, args: &Args) -> Result<Captured> {
        let mut waits = MAX_RETRIES;
        loop {
            let progress = Progress::start(ui);
            let options = CaptureOptions::new()
                .compare_all(args.full)
                .summarize(Arc::new(summarize_of(&self.folder)))
                .count_bytes(progress.counter());
            match self.archive.capture(&self.folder, &options) {
                Err(error) if *error.kind() == ErrorKind::Busy && (args.watch || waits > 0) => {
                    waits = waits.saturating_sub(1);
                    drop(progress);
                    thread::sleep(RETRY_PAUSE);
                }
                captured => return Ok(captured?),
            }
        }
    }
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
    let root = report.root.as_ref();
    let root = root.map_or(String::new(), |root| {
        format!("{}: ", ui.escaping.one_line(root))
    });
    let unchanged = report.unchanged;
    let mut lines = vec![match report.captured {
        0 => format!(
            "{root}nothing changed: {} in {folder}",
            count(unchanged, "session")
        ),
        captured => format!(
            "{root}kept {}, {} compressed to {}, in {folder}; {unchanged} unchanged",
            count(captured, "session"),
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
        words.extend(["--archive".into(), folder.display().to_string()]);
    }
    if !ui.asked_roots.is_empty() || places.len() > 1 {
        for place in places {
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
