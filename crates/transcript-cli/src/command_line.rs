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

use crate::complaint::StandardError;
use crate::help::layout::{HelpForm, MAX_WIDTH, laid_out, with_first_help};
use crate::{Cli, Command, exit, session, ui};

/// Other names of commands, which people know from other programs. They are not shown.
const ALIASES: [(&str, &[&str]); 11] = [
    ("browse", &["tui"]),
    ("fork", &["copy"]),
    ("keep", &["backup"]),
    ("list", &["projects", "sessions", "ls"]),
    ("prune", &["clean"]),
    ("replay", &["cat", "view", "show", "open", "read"]),
    ("search", &["find", "grep"]),
    ("serve", &["web", "ui"]),
    ("tail", &["follow", "watch", "log"]),
    ("usage", &["cost", "stats"]),
    ("verify", &["doctor", "check"]),
];

/// Words for jobs that no command is named after, and what does the job.
const HINTS: [(&[&str], &str); 4] = [
    (
        &["html"],
        "`transcript export SESSION --html FILE` writes a page",
    ),
    (
        &["rm", "delete", "remove"],
        "`transcript prune` removes old sessions that are in the archive; to remove one session, back it up with `transcript keep` and delete its file, which `transcript list --json` names",
    ),
    (
        &["rename", "tag", "title"],
        "`transcript append` does it: echo '{\"op\":\"title\",\"title\":\"New title\"}' | transcript append SESSION; \"op\":\"tag\" sets a tag",
    ),
    (
        &["diff"],
        "`transcript replay SESSION --tool Edit` shows the changes of files, and `transcript tree SESSION` where its branches part",
    ),
];

/// The start of the names of programs that add a command.
const PROGRAM: &str = "transcript-";
/// The variable that names this program to such programs.
const BINARY: &str = "TRANSCRIPT_BIN";

/// Returns the definition of the command line with its help.
pub(crate) fn whole(form: HelpForm, width: usize) -> clap::Command {
    let mut root = Cli::command();
    for (command, names) in ALIASES {
        root = root.mut_subcommand(command, |command| command.aliases(names));
    }
    laid_out(root, form, width)
}

/// Returns the definition of the command line, with the help in the form that is asked for.
pub(crate) fn parser(form: HelpForm) -> clap::Command {
    let width = ui::width().min(MAX_WIDTH);
    with_first_help(whole(form, width), form, width)
}

/// Prints the help that a command line asks for.
pub(crate) fn print_help(words: &[&str]) -> u8 {
    let words = ["transcript"].iter().chain(words).chain(&["--help"]);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    parsed(&words).map_or_else(|error| answered(&error), |_| exit::DONE)
}

/// Parses the words of a command line, the first of which is the name of this program.
pub(crate) fn parsed(words: &[OsString]) -> Result<Cli, clap::Error> {
    let own = words.split(|word| word == "--").next().unwrap_or_default();
    let is_long = own.iter().any(|word| word == "--help");
    let form = if is_long {
        HelpForm::Long
    } else {
        HelpForm::Short
    };
    let matches = parser(form).try_get_matches_from(words)?;
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
        StandardError::of(env::args_os()).usage_error(error);
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

fn hint(name: &str) -> Option<&'static str> {
    let found = HINTS.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, hint)| *hint)
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
    match nearest(&name) {
        Some(command) => anyhow!(
            "`{name}` is neither a command nor a session; is `transcript {command}` meant? `transcript help` lists the commands"
        ),
        None => anyhow!(
            "`{name}` is neither a command nor a session; `transcript help` lists the commands, `transcript list` the sessions"
        ),
    }
}

/// Returns the command whose name, or other name, is nearest to a word.
pub(crate) fn nearest(word: &str) -> Option<String> {
    let commands = Cli::command();
    let names = commands.get_subcommands().filter(|one| !one.is_hide_set());
    let names: Vec<String> = names.map(|one| one.get_name().to_owned()).collect();
    let names = names.into_iter().map(|name| (name.clone(), name));
    let aliases = ALIASES.iter().flat_map(|(command, names)| {
        let names = names.iter().map(|name| (*name).to_owned());
        names.map(|name| (name, (*command).to_owned()))
    });
    let near = names.chain(aliases).filter_map(|(name, command)| {
        let distance = distance(word, &name);
        let is_near = distance * 3 <= name.chars().count().max(3);
        is_near.then_some((distance, command))
    });
    near.min().map(|(_, command)| command)
}

/// Returns the number of letters to add, remove, replace or swap with the next to make one word from another.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut least = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_command_is_that_of_a_typing_error() {
        for (word, command) in [
            ("lst", Some("list")),
            ("serach", Some("search")),
            ("usgae", Some("usage")),
            ("tial", Some("tail")),
            ("replya", Some("replay")),
            ("docter", Some("verify")),
            ("xyzzy", None),
            ("", None),
            ("ö", None),
        ] {
            assert_eq!(nearest(word).as_deref(), command, "{word}");
        }
    }

    #[test]
    fn no_other_name_is_that_of_a_command_or_given_twice() {
        let commands = Cli::command();
        let commands: Vec<_> = commands
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        let aliases = ALIASES.iter().flat_map(|(_, names)| names.iter());
        let hints = HINTS.iter().flat_map(|(names, _)| names.iter());
        let mut seen = std::collections::BTreeSet::new();
        for name in aliases.chain(hints) {
            assert!(!commands.contains(name), "{name}");
            assert!(seen.insert(name), "{name}");
        }
    }
}
