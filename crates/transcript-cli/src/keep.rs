//! `transcript keep`: captures sessions in the archive.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
#[cfg(feature = "encryption")]
use transcript_engine::archive::Identities;
use transcript_engine::archive::{Archive, CaptureOptions, ErrorKind, Recipient};
use transcript_engine::verify::cleanup_days;
use transcript_engine::wire::KeepReport;
use transcript_format::units::size;
use transcript_ops::Failure;
use transcript_render::count;
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
    let folder = ui.archive_folder()?;
    if args.install {
        return install(ui, &folder);
    }
    let store = session::store(ui)?;
    let root = std::path::absolute(store.root()).context("the projects folder")?;
    if !RealDisk.is_folder(&root) {
        let text = format!("no sessions yet: {} does not exist", root.display());
        return Err(Failure::new("not-found", text).at(&root).into());
    }
    let mut options = ui.archive_options()?;
    let is_file = |key: &&String| !key.starts_with("age1");
    let key_file = args.encrypt.as_ref().filter(is_file).map(Path::new);
    // A key that does not exist is made, unless nothing would use it.
    let new_key = key_file.filter(|key| !RealDisk.exists(key));
    if let Some(key) = &args.encrypt {
        if new_key.is_some() && archive::exists(ui) {
            let text = "the archive exists, and is encrypted to other keys or not at all";
            let exists = Failure::new("exists", text).in_file(&folder);
            return Err(exists.with_next("use a new folder").into());
        }
        options = options.encrypt_to(recipients(key)?);
    }
    let opened = Archive::open_or_create_with(&folder, &options);
    let mut archive = opened.inspect_err(|_| {
        // Nothing uses it.
        if let Some(key) = new_key {
            let _ = RealDisk.remove(key);
        }
    })?;
    if let Some(key) = new_key {
        ui.warn(&format!(
            "a new key is in {}; keep a copy elsewhere: without it nobody can read the archive",
            key.display()
        ));
    }
    let mut waits = MAX_RETRIES;
    loop {
        let progress = Progress::start(ui);
        let options = CaptureOptions::new()
            .compare_all(args.full)
            .summarize(Arc::new(transcript_engine::summarize))
            .count_bytes(progress.counter());
        let captured = archive.capture(&root, &options);
        drop(progress);
        let captured = match captured {
            Err(error) if *error.kind() == ErrorKind::Busy && (args.watch || waits > 0) => {
                waits = waits.saturating_sub(1);
                thread::sleep(RETRY_PAUSE);
                continue;
            }
            captured => captured?,
        };
        let kept = root.parent().and_then(cleanup_days);
        let report = KeepReport::new(&captured, kept, args.sweep);
        for problem in &report.problems {
            ui.report(Failure::new(
                "unreadable",
                format!("not captured: {problem}"),
            ));
        }
        let is_news = !args.watch || report.captured > 0;
        if is_news && (args.json || !ui.quiet) {
            print(ui, &folder, &report, args.json)?;
        }
        if !args.watch {
            return Ok(exit::done_if(report.problems.is_empty()));
        }
        thread::sleep(Duration::from_secs(args.every));
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
    let unchanged = report.unchanged;
    match report.captured {
        0 => writeln!(
            out,
            "nothing changed: {} in {folder}",
            count(unchanged, "session")
        )?,
        _ => writeln!(
            out,
            "kept {}: {} in {} of {folder}; {unchanged} unchanged",
            count(report.captured, "session"),
            size(report.bytes),
            size(report.stored),
        )?,
    }
    if report.denied > 0 {
        let denied = count(report.denied, "file");
        writeln!(out, "{denied} that may hold credentials omitted")?;
    }
    if let Some(first) = report.at_risk.first() {
        let when = match first.days {
            0 => "when it is started next".to_owned(),
            1 => "tomorrow".to_owned(),
            days => format!("in {days} days"),
        };
        writeln!(
            out,
            "Claude Code deletes {} soon, the first {when}; they stay in the archive",
            count(report.at_risk.len(), "session"),
        )?;
    }
    Ok(())
}

/// Prints a timer and a hook that run this command every hour, and at the end of each session.
fn install(ui: &Ui, folder: &Path) -> Result<u8> {
    let program = env::current_exe().context("the path of this program")?;
    let mut words = vec![
        program.display().to_string(),
        "keep".into(),
        "--quiet".into(),
    ];
    words.extend(["--archive".into(), folder.display().to_string()]);
    if let Some(root) = &ui.root {
        let root = std::path::absolute(root).context("--root")?;
        words.extend(["--root".into(), root.display().to_string()]);
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
