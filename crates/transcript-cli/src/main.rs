//! The command `transcript`.
//!
//! One module for each subcommand: its arguments and a `run`. The work is a call into the
//! libraries; this crate only has argument parsing, output and exit codes.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use transcript_ops::Failure;
use transcript_storage::{ReadDisk, RealDisk};

use clap::CommandFactory;

use cli::{Cli, Command};
use complaint::StandardError;

mod append;
mod archive;
#[cfg(feature = "browse")]
mod browse;
mod cli;
mod closed;
mod command_line;
mod complaint;
mod complete;
mod continuation;
#[cfg(feature = "import")]
mod convert;
mod dash_paths;
mod definition;
mod exit;
mod export;
mod export_target;
mod filter;
mod fork;
mod hand_over;
mod health;
mod help;
mod import;
mod keep;
mod light;
mod list;
mod manual;
mod merge;
mod move_sessions;
mod near;
mod pager;
mod path_args;
mod progress;
mod prune;
mod pull;
mod push;
mod record;
mod redact_args;
mod repair;
mod replay;
mod restore;
mod resume;
mod roots;
mod salvage;
mod search;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod session_sets;
mod tail;
mod tree;
mod ui;
mod until;
mod usage;
mod verify;
mod wrapping;

fn main() -> ExitCode {
    let arguments = dash_paths::with_paths(env::args_os(), |path| RealDisk.has_name(path));
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(why) => {
            StandardError::of(env::args_os()).error(&Failure::options(why));
            return ExitCode::from(exit::FAILED);
        }
    };
    let cli = match command_line::read(&arguments) {
        Ok(cli) => cli,
        Err(code) => return ExitCode::from(code),
    };
    let mut ui = cli.ui();
    let Some(command) = cli.command.or_else(browse_here) else {
        // Without a terminal nothing can be browsed: the same answer as for a wrong command line.
        let help = definition::parser(&Cli::command(), help::layout::HelpForm::Short).render_help();
        let _ = write!(io::stderr(), "{help}");
        return ExitCode::from(exit::FAILED);
    };
    let result = match command {
        Command::Append(args) => append::run(&ui, &args),
        #[cfg(feature = "browse")]
        Command::Browse(args) => browse::run(&ui, &args),
        #[cfg(not(feature = "browse"))]
        Command::Browse(args) => light::refuse("browse", &args),
        #[cfg(feature = "import")]
        Command::Convert(args) => convert::run(&ui, &args),
        #[cfg(not(feature = "import"))]
        Command::Convert(args) => light::refuse("convert", &args),
        Command::Export(args) => export::run(&mut ui, args),
        Command::Fork(args) => fork::run(&ui, args),
        Command::Import(args) => import::run(&ui, &args),
        Command::Keep(args) => keep::run(&ui, &args),
        Command::List(args) => list::run(&ui, &args),
        Command::Merge(args) => merge::run(&ui, &args),
        Command::Move(args) => move_sessions::run(&ui, &args),
        Command::Prune(args) => prune::run(&ui, &args),
        Command::Pull(args) => pull::run(&ui, &args),
        Command::Push(args) => push::run(&ui, &args),
        Command::Repair(args) => repair::run(&ui, &args),
        Command::Replay(args) => replay::run(&mut ui, args),
        Command::Restore(args) => restore::run(&ui, &args),
        Command::Resume(args) => resume::run(&ui, args),
        Command::Search(args) => search::run(&ui, &args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(&ui, &args),
        #[cfg(not(feature = "serve"))]
        Command::Serve(args) => light::refuse("serve", &args),
        Command::Tail(args) => tail::run(&ui, &args),
        Command::Tree(args) => tree::run(&ui, &args),
        Command::Usage(args) => usage::run(&ui, &args),
        Command::Verify(args) => verify::run(&mut ui, args),
        Command::Completions(args) => manual::completions(&args, &Cli::command()),
        Command::Man(args) => manual::man(&args, &Cli::command()),
        Command::Help(args) => help::topics::run(&ui, &args, &Cli::command()),
        Command::Complete(args) => complete::run(&mut ui, &args, &Cli::command()),
        Command::Other(words) => Err(command_line::unknown(&words)),
    };
    ui.note_requests();
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) if closed::is_closed_pipe(&error) => ExitCode::from(exit::DONE),
        Err(error) => {
            ui.complain(&error);
            ExitCode::from(exit::FAILED)
        }
    }
}

/// Returns the command for `transcript` without one, on a terminal.
#[cfg(feature = "browse")]
fn browse_here() -> Option<Command> {
    command_line::can_browse().then(|| Command::Browse(browse::Args::default()))
}

/// The light form only has commands with names.
#[cfg(not(feature = "browse"))]
fn browse_here() -> Option<Command> {
    None
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use clap::{Command, CommandFactory};

    use crate::cli::Cli;

    /// The table of docs/cli.md: for each option, the commands that have a meaning for it.
    fn documented() -> Vec<(String, Vec<(String, bool)>)> {
        let section = section("Options that choose what is shown").unwrap();
        let cells = |line: &str| -> Vec<String> {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().replace('`', "")).collect()
        };
        let mut lines = section.lines().filter(|line| line.starts_with('|'));
        let commands = cells(lines.next().unwrap());
        let rows = lines.skip(1).map(|line| {
            let row = cells(line);
            assert_eq!(row.len(), commands.len(), "{line}");
            let takes = commands.iter().zip(&row).skip(1);
            let takes = takes.map(|(command, cell)| (command.clone(), !cell.is_empty()));
            (row[0].clone(), takes.collect())
        });
        rows.collect()
    }

    /// The part of docs/cli.md below a heading.
    fn section(heading: &str) -> Option<&'static str> {
        let page = include_str!("../../../docs/cli.md");
        let mut sections = page.split("\n## ").skip(1);
        sections.find_map(|section| {
            let (found, text) = section.split_once('\n')?;
            let mut names = found.split(", ");
            names.any(|name| name == heading).then_some(text)
        })
    }

    /// The options that a text of docs/cli.md names in code font.
    fn named(text: &str) -> BTreeSet<&str> {
        let code = text.split('`').skip(1).step_by(2);
        let ends = |c: char| c.is_whitespace() || "[]=|,\\".contains(c);
        let words = code.flat_map(|code| code.split(ends));
        words
            .filter(|word| word.starts_with("--") && word.len() > 2)
            .collect()
    }

    /// The options that the tables and lists of options of a section describe: those before the first `|` or `:`.
    fn described(section: &str) -> BTreeSet<&str> {
        let rows = section.lines().filter_map(|line| {
            let (start, end) = [("| ", " | "), ("- ", ": ")]
                .into_iter()
                .find(|(start, _)| line.starts_with(start))?;
            line[start.len()..].split(end).next()
        });
        rows.flat_map(named).collect()
    }

    /// The visible long options of a command, with their visible other names.
    fn visible(command: &Command) -> BTreeSet<String> {
        let options = command
            .get_arguments()
            .filter(|option| !option.is_hide_set());
        let names = options.flat_map(|option| {
            let others = option.get_visible_aliases().unwrap_or_default();
            option.get_long().into_iter().chain(others)
        });
        names.map(|name| format!("--{name}")).collect()
    }

    /// The synopses hold that every option is documented.
    #[test]
    fn every_command_has_a_section_and_every_documented_option_exists() {
        let cli = Cli::command();
        let global = visible(&cli);
        let commands = cli
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let commands = commands.map(|command| (command.get_name(), visible(command)));
        let mut mistakes = Vec::new();
        for (name, options) in commands.chain([("Common", global.clone())]) {
            let Some(text) = section(name) else {
                mistakes.push(format!("{name} has no section"));
                continue;
            };
            let unknown = described(text).into_iter();
            let unknown =
                unknown.filter(|option| !options.contains(*option) && !global.contains(*option));
            mistakes.extend(unknown.map(|option| format!("{name} has no option {option}")));
        }
        assert!(mistakes.is_empty(), "docs/cli.md: {mistakes:#?}");
    }

    #[test]
    fn the_documented_options_are_those_of_the_commands() {
        let cli = Cli::command();
        let options: HashMap<&str, Vec<String>> = cli
            .get_subcommands()
            .map(|command| {
                let options = command.get_arguments().filter_map(|option| {
                    let long = option.get_long().map(|long| format!("--{long}"));
                    let short = option.get_short().map(|short| format!("-{short}"));
                    let name = match long.as_deref() {
                        Some("--limit") | None => short?,
                        Some(_) => long?,
                    };
                    let has_value = option.get_action().takes_values();
                    let values = option.get_value_names().filter(|_| has_value);
                    let value = values.unwrap_or_default().first();
                    // `tail --until` also takes what it waits for.
                    let value = value.map(|value| value.trim_end_matches("|WHAT"));
                    Some(value.map_or(name.clone(), |value| format!("{name} {value}")))
                });
                (command.get_name(), options.collect())
            })
            .collect();
        let documented = documented();
        assert_eq!(documented.len(), 9);
        for (option, commands) in documented {
            for (command, takes) in commands {
                let has = options[&*command].contains(&option);
                assert_eq!(has, takes, "{command} {option}: {:?}", options[&*command]);
            }
        }
    }
}
