//! `transcript browse`: the full-screen view of sessions.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use jiff::{Timestamp, tz::TimeZone};
use transcript_browse::{BrowseEnd, BrowseOptions, browse};
use transcript_reader::Source;
use transcript_render::Escaping;

use crate::ui::{Ui, is_dumb};
use crate::{exit, session};

/// Look through sessions in the terminal
///
/// Find, read, search, copy, fork and resume them. Projects and sessions are on the left, the conversation is on the right; the key ? shows all
/// keys. `transcript` alone does the same on a terminal.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Args {
    /// Path of a .jsonl file, the id of a session or the start of one, or `latest`; append `:LINE`, as
    /// `search` prints it, to open it at that line [default: the list]
    session: Option<PathBuf>,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        bail!("browse needs a terminal; replay, list and search work in a pipe");
    }
    if is_dumb() {
        bail!(
            "browse needs a full-screen terminal, and TERM is `dumb`; replay, list and search work on any"
        );
    }
    let named = args.session.as_deref();
    let with_line = named.and_then(session::with_line);
    let (named, line) = match &with_line {
        Some((session, line)) => (Some(session.as_path()), Some(*line)),
        None => (named, None),
    };
    let session = named.map(|session| {
        let path = session::find(ui, session)?;
        Source::open_on(&ui.disk(), &path)?.check_messages()?;
        std::path::absolute(&path).with_context(|| path.display().to_string())
    });
    // A wrong `--root` is an error, and not a list without sessions.
    session::roots(ui)?;
    let options = BrowseOptions {
        context: session::context(ui),
        session: session.transpose()?,
        line,
        render: ui.render.clone().escaping(Escaping::Visible),
        is_coloured: ui.is_coloured,
        zone: TimeZone::system(),
        now_millis: Timestamp::now().as_millisecond(),
    };
    match browse(&options).context("the terminal")? {
        BrowseEnd::Resume { id, folder } => resume(ui, &id, folder),
        // As if the signal had not been caught; the terminal is restored.
        BrowseEnd::Signal(signal) => {
            signal_hook::low_level::emulate_default_handler(signal)?;
            Ok(exit::DONE)
        }
        _ => Ok(exit::DONE),
    }
}

/// Runs the client in the folder of a session.
fn resume(ui: &Ui, id: &str, folder: Option<PathBuf>) -> Result<u8> {
    let folder = folder.unwrap_or_else(|| PathBuf::from("."));
    let words = format!("cd {} && claude --resume {id}", folder.display());
    ui.note(&words);
    let mut client = Command::new("claude");
    client.arg("--resume").arg(id).current_dir(&folder);
    // In place of this process, so that its keys and its end are those of the client.
    #[cfg(unix)]
    let failed = std::os::unix::process::CommandExt::exec(&mut client);
    #[cfg(not(unix))]
    let failed = match client.status() {
        Ok(status) if status.success() => return Ok(exit::DONE),
        Ok(_) => return Ok(exit::FAILED),
        Err(error) => error,
    };
    Err(failed).with_context(|| format!("cannot run Claude Code: {words}"))
}
