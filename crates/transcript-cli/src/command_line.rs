//! Reads the command line: commands, their other names, and words that are neither.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{CommandFactory, FromArgMatches};
use transcript_engine::ErrorKind;
use transcript_ops::FindError;
use transcript_ops::context::{LATEST, is_path};
use transcript_storage::{ReadDisk, RealDisk};

use crate::cli::{Cli, Command};
use crate::complaint::StandardError;
use crate::definition::{hint, nearest, parser};
use crate::help::layout::HelpForm;
use crate::{exit, session, ui};

/// The start of the names of programs that add a command.
const PROGRAM: &str = "transcript-";
/// The variable that names this program to such programs.
const BINARY: &str = "TRANSCRIPT_BIN";

/// Parses the words of a command line, the first of which is the name of this program.
pub(crate) fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    let own = words.split(|word| word == "--").next().unwrap_or_default();
    let is_long = own.iter().any(|word| word == "--help");
    let form = if is_long {
        HelpForm::Long
    } else {
        HelpForm::Short
    };
    let matches = parser(&Cli::command(), form).try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches)
}

/// Reads the command line: a command, or its other name; else a program `transcript-NAME`, which is run; else a session, which
/// is opened. The error is the exit code of a line that is answered.
pub(crate) fn read(words: &[OsString]) -> Result<Cli, u8> {
    let cli = parsed(words).map_err(|error| answered(&error))?;
    let Some(Command::Other(others)) = &cli.command else {
        return Ok(cli);
    };
    let (before, rest) = words.split_at(words.len() - others.len());
    let (word, rest) = (&others[0], &rest[1..]);
    let name = word.to_string_lossy();
    if let Some(program) = program(&name) {
        let arguments = before[1..].iter().chain(rest);
        return Err(run_program(&cli, &program, arguments));
    }
    if let Some(hint) = hint(&name) {
        let error = anyhow!("there is no command `{name}`: {hint}");
        return Err(failed(&cli, &error));
    }
    let opening = opening(words, before.len());
    // Options after the name also say where the session is.
    let at = opening.as_ref().unwrap_or(&cli);
    match is_session(at, word) {
        Ok(true) => opening.map_err(|error| answered(&error)),
        Ok(false) => Err(failed(at, &unknown(others))),
        Err(error) => Err(failed(at, &error)),
    }
}

/// Prints the answer of the parser: help and version are answers, everything else is a wrong command line.
fn answered(error: &clap::Error) -> u8 {
    if error.use_stderr() {
        let root = parser(&Cli::command(), HelpForm::Short);
        StandardError::of(env::args_os()).usage_error(error, &root);
        return exit::FAILED;
    }
    // Ignore a closed pipe.
    let _ = error.print();
    exit::DONE
}

fn failed(cli: &Cli, error: &anyhow::Error) -> u8 {
    cli.ui().complain(error);
    exit::FAILED
}

/// Returns whether a full-screen view can be shown.
pub(crate) fn can_browse() -> bool {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    cfg!(feature = "browse") && is_terminal && !ui::is_dumb()
}

/// Returns the path of the program that adds the command `name`.
fn program(name: &str) -> Option<PathBuf> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
        return None;
    }
    let file = format!("{PROGRAM}{name}{}", env::consts::EXE_SUFFIX);
    let folders = env::var_os("PATH")?;
    let mut paths = env::split_paths(&folders).map(|folder| folder.join(&file));
    paths.find(|path| RealDisk.is_file(path))
}

/// Runs a program in place of this one.
fn run_program<'w>(cli: &Cli, program: &Path, arguments: impl Iterator<Item = &'w OsString>) -> u8 {
    let mut command = std::process::Command::new(program);
    command.args(arguments);
    if let Ok(own) = env::current_exe() {
        command.env(BINARY, own);
    }
    #[cfg(unix)]
    let error = std::os::unix::process::CommandExt::exec(&mut command);
    #[cfg(not(unix))]
    let error = match command.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return code.unwrap_or(exit::FAILED);
        }
        Err(error) => error,
    };
    let error = anyhow::Error::new(error).context(format!("cannot run {}", program.display()));
    failed(cli, &error)
}

/// Returns the command line that opens the session at this place of the words: in the full-screen view on a terminal, if all
/// options are those of all commands, else as text.
fn opening(words: &[OsString], place: usize) -> Result<Cli, clap::Error> {
    let with = |command: &str| {
        let mut words = words.to_vec();
        words.insert(place, command.into());
        parsed(&words)
    };
    match can_browse().then(|| with("browse")) {
        Some(Ok(cli)) => Ok(cli),
        Some(Err(_)) | None => with("replay"),
    }
}

/// Returns whether a word is the name of a session or of a file.
fn is_session(cli: &Cli, word: &OsStr) -> Result<bool> {
    let name = Path::new(word);
    if word == "-" || word == LATEST {
        return Ok(true);
    }
    if RealDisk.is_folder(name) {
        let shown = name.display();
        return Err(anyhow!(
            "{shown} is a folder: `transcript list --project {shown}` lists the sessions of the project there, `transcript verify {shown}` checks session files in it"
        ));
    }
    let ui = cli.ui();
    let with_line = session::with_line(name);
    let name = with_line
        .as_ref()
        .map_or(name, |(session, _)| session.as_path());
    match session::context(&ui).find(name, None) {
        Ok(_) => Ok(true),
        // Where there are no sessions, the word does not name one. A path does.
        Err(_) if !is_path(name) && ui.roots().is_ok() && session::roots(&ui).is_err() => Ok(false),
        Err(error) if names_none(&error) && !is_path(name) => Ok(false),
        // The same error as that of every other command.
        Err(_) => session::find(&ui, name).map(|_| true),
    }
}

/// Returns whether an error says that a word does not name a session.
fn names_none(error: &FindError) -> bool {
    match error {
        FindError::Session(error) => {
            matches!(error.kind(), ErrorKind::NoSuchSession | ErrorKind::NotAnId)
        }
        FindError::NoName => true,
        _ => false,
    }
}

/// Returns the error for a command line whose first word means nothing.
pub(crate) fn unknown(words: &[OsString]) -> anyhow::Error {
    let name = words.first().map(|word| word.to_string_lossy());
    let name = name.unwrap_or_default();
    match nearest(&name, &Cli::command()) {
        Some(command) => anyhow!(
            "`{name}` is neither a command nor a session; is `transcript {command}` meant? `transcript help` lists the commands"
        ),
        None => anyhow!(
            "`{name}` is neither a command nor a session; `transcript help` lists the commands, `transcript list` the sessions"
        ),
    }
}
