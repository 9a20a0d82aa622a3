//! `transcript append`: writes a session on behalf of a program in any language.

use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use transcript_engine::serve::{CommandServer, ServeError};
use transcript_engine::{KeptReason, OnBusy, Repair, Rescue, Session, SessionOptions, SyncPolicy};

use transcript_ops::context::is_path;

use crate::ui::Ui;
use crate::{exit, session};

/// Add messages to a session, from a program
///
/// Reads commands from standard input and prints an answer to each: JSON objects, one per line, in
/// the same order. An answer means that the
/// bytes are written: they survive the end of this process, and after "sync" a power cut. The exit
/// code is 1 if any command failed.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A .jsonl file; without --create also a session id or the start of one, or `latest`
    #[arg(value_name = "SESSION")]
    file: PathBuf,
    /// When to sync written bytes to disk
    #[arg(long, value_enum, default_value_t = Sync::Interval, value_name = "WHEN")]
    sync: Sync,
    /// Create the file if it does not exist
    #[arg(long)]
    create: bool,
    /// Session id for entries that have none [default: the file name]
    #[arg(long, value_name = "ID")]
    session_id: Option<String>,
    /// Working directory for entries that name none [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Git branch for entries that name none [default: none]
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// How the program was started, such as cli or sdk-py, for entries that do not say it [default:
    /// none]
    #[arg(long, value_name = "NAME")]
    entrypoint: Option<String>,
    /// Action if another process writes to the session
    #[arg(long, value_enum, default_value_t = Busy::Fail, value_name = "ACTION")]
    on_busy: Busy,
    /// Answer all commands of a batch after one write
    #[arg(long)]
    ack_batch: bool,
    /// Print errors as JSON, too; answers always are
    #[arg(long = "json")]
    _json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sync {
    /// On a sync command and at the end
    None,
    /// 100 ms after a write
    Interval,
    /// Before each answer
    Each,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Busy {
    /// Refuse
    Fail,
    /// Take turns: each process continues from its own last entry, so two that write at the same time
    /// create two branches
    Wait,
    /// Continue in a copy of the conversation, a new session in the same folder
    Fork,
}

/// The version in entries that have none.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The size of reads of the input, in bytes. Commands that are read together are written together.
const INPUT_BYTES: usize = 256 << 10;

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    transcript_engine::ignore_file_size_signal();
    let file = if args.create || is_path(&args.file) {
        args.file.clone()
    } else {
        session::find_on_disk(ui, &args.file)?
    };
    let session = open(args, &file)?;
    note_opening(ui, &session, &file);
    let path = session.path().to_owned();
    let out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let input = BufReader::with_capacity(INPUT_BYTES, io::stdin().lock());
    let server = CommandServer::new(session, out).ack_batch(args.ack_batch);
    let served = server.run(input);
    if let Some(rescue) = served.rescue.filter(|rescue| rescue.unsynced > 0) {
        ui.warn(&describe_rescue(&path, &rescue));
    }
    match served.result {
        Ok(()) if served.any_failed => Ok(exit::NO),
        Ok(()) => Ok(exit::DONE),
        Err(ServeError::Read(error)) => Err(error).context("cannot read standard input"),
        Err(ServeError::Write(error)) => Err(error.into()),
        Err(ServeError::Close(error)) => Err(error.into()),
        Err(error) => Err(error.into()),
    }
}

fn open(args: &Args, path: &Path) -> Result<Session> {
    if path == Path::new("-") {
        bail!(
            "append needs the path of a file or a session; commands are read from standard input"
        );
    }
    let cwd = match &args.cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => std::env::current_dir(),
    };
    let cwd = cwd.context("cannot determine the current directory; set it with --cwd DIR")?;
    let mut options = SessionOptions::new()
        .cwd(cwd.to_string_lossy())
        .version(VERSION)
        .sync(match args.sync {
            Sync::None => SyncPolicy::None,
            Sync::Interval => SyncPolicy::Interval(Duration::from_millis(100)),
            Sync::Each => SyncPolicy::Each,
        })
        .on_busy(match args.on_busy {
            Busy::Fail => OnBusy::Fail,
            Busy::Wait => OnBusy::Share,
            Busy::Fork => OnBusy::Fork,
        });
    if let Some(branch) = &args.branch {
        options = options.git_branch(branch);
    }
    if let Some(entrypoint) = &args.entrypoint {
        options = options.entrypoint(entrypoint);
    }
    if let Some(id) = &args.session_id {
        options = options.session_id(id);
    }
    Ok(if args.create {
        Session::open_or_create(path, &options)?
    } else {
        Session::open(path, &options)?
    })
}

/// Prints the findings and changes of opening the session.
fn note_opening(ui: &Ui, session: &Session, file: &Path) {
    let path = session.path().display();
    if session.path() != file {
        let file = file.display();
        ui.note(&format!(
            "{file}: another process is writing to it; continuing in a copy: {path}"
        ));
    }
    if session.writer().others_may_write() {
        ui.note(&format!(
            "{path}: other users may write to this file, and what they write becomes part of the \
             conversation; `chmod 600` prevents it"
        ));
    }
    if let Some(repair) = session.repair() {
        ui.note(&describe_repair(session.path(), repair));
    }
    if let [first, ..] = session.restored() {
        let (count, offset) = (session.restored().len(), first.offset);
        ui.note(&format!(
            "{path}: entries that were only in damaged lines: {count}, written again from byte \
             {offset} on, because other clients skip damaged lines"
        ));
    }
}

/// Describes the entries that a failed sync put at risk, and which of them are in rescue files.
fn describe_rescue(path: &Path, rescue: &Rescue) -> String {
    let (unsynced, saved) = (rescue.unsynced, rescue.saved);
    let files = rescue.files.iter().map(|file| file.display().to_string());
    let files = files.collect::<Vec<_>>().join(" and ");
    let which = match saved {
        0 => "none of them was saved".to_owned(),
        _ if saved == unsynced => format!("all of them were saved to {files}"),
        _ => format!("the last {saved} of them were saved to {files}, the others were not"),
    };
    let why = rescue.error.as_ref();
    let why = why.map_or_else(String::new, |error| format!(": {error}"));
    let path = path.display();
    format!("{path}: entries that may not survive a power cut: {unsynced}; {which}{why}")
}

fn describe_repair(path: &Path, repair: &Repair) -> String {
    let path = path.display();
    match repair {
        Repair::Completed { offset } => {
            format!("{path}: the last line had no newline; one was added at byte {offset}")
        }
        Repair::Cut { offset, len, saved } => format!(
            "{path}: a torn line of {len} bytes at byte {offset} was removed and saved to {}",
            saved.display()
        ),
        Repair::Sealed { offset, len, why } => {
            let why = match why {
                KeptReason::OtherWriter => "another process may be writing it".to_owned(),
                KeptReason::HoldsEntry => "it contains a whole entry".to_owned(),
                KeptReason::TooLong => "it is too long to be saved elsewhere".to_owned(),
                KeptReason::Failed(error) => {
                    format!("it cannot be saved elsewhere and removed: {error}")
                }
                _ => "it cannot be removed".to_owned(),
            };
            format!(
                "{path}: a damaged line of {len} bytes at byte {offset} was ended with a newline \
                 and kept, because {why}"
            )
        }
        _ => format!("{path}: the end of the file was repaired"),
    }
}
