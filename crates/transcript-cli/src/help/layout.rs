//! The help of all commands has one layout: options below headings that have the same words everywhere, those of all commands
//! last, then examples. `--help` is as short as `-h`: one paragraph an option, in one column.

use clap::builder::{PossibleValue, Resettable};
use clap::{Arg, ArgAction, Command};

use crate::help::examples::EXAMPLES;
use crate::help::page::{Block, Page};
use crate::help::texts;

/// How much a help says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelpForm {
    /// `-h`: the options of the command, each with its first paragraph.
    Short,
    /// `--help`: everything.
    Long,
}

/// The maximum width of a help, in columns.
pub(crate) const MAX_WIDTH: usize = 100;

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

/// The headings, and the options below each, in the order in which they are shown. An option that means something else in
/// one command has a row with the name of the command, which is looked for first.
const HEADINGS: [(&str, &[&str]); 10] = [
    (
        "Choose the format",
        &[
            "export html",
            "export markdown",
            "plain-text",
            "export json",
            "export to",
        ],
    ),
    (
        "Choose the sessions",
        &[
            "in",
            "project",
            "state",
            "archived",
            "restore all",
            "convert all",
            "all",
            "as-of",
            "older-than",
            "restore machine",
            "pull machine",
        ],
    ),
    (
        "Choose the conversation",
        &["at", "leaf", "all-branches", "policy"],
    ),
    (
        "Choose what is shown",
        &[
            "follow",
            "from",
            "role",
            "tool",
            "text",
            "since",
            "until",
            "branch",
            "limit",
            "sidechains",
            "thinking",
            "tools",
            "ids",
            "context",
            "in-context",
            "by",
            "sort",
            "timezone",
            "prices",
            "keep-sums",
            "requests",
            "sweep",
            "subset",
            "timeout",
            "conversation-only",
        ],
    ),
    (
        "Choose what is done",
        &[
            "yes",
            "dry-run",
            "copy",
            "undo",
            "keep-id",
            "repair out",
            "new-session",
            "compact",
            "salvage",
            "to",
            "write",
            "target-home",
            "title",
            "resume cwd",
            "convert cwd",
            "renew",
            "watch",
            "every",
            "full",
            "encrypt",
            "machine",
            "install",
            "port",
            "open",
        ],
    ),
    (
        "The request",
        &[
            "prompt",
            "model",
            "fit",
            "fit-turns",
            "provider",
            "resume tools",
            "client-version",
            "whole-file",
        ],
    ),
    (
        "New entries",
        &[
            "create",
            "session-id",
            "cwd",
            "append branch",
            "entrypoint",
            "sync",
            "on-busy",
            "ack-batch",
        ],
    ),
    (
        "Output",
        &[
            "out",
            "dir",
            "force",
            "format",
            "files",
            "count",
            "statusline",
            "warn-above",
            "request",
            "csv",
            "json",
            "raw-entries",
            "changes",
            "explain",
            "speed",
            "plain",
            "no-lines",
            "no-cache",
        ],
    ),
    (
        "Secrets",
        &[
            "redact",
            "no-redact",
            "emails",
            "names",
            "also",
            "except",
            "json-report",
        ],
    ),
    (
        GLOBAL,
        &[
            "root", "agent", "archive", "identity", "color", "raw", "quiet", "verbose", "help",
            "version",
        ],
    ),
];

/// The commands to which the options of all commands mean nothing: they read no session and print no text of one.
const WITHOUT_GLOBALS: [&str; 4] = ["completions", "man", "import", "help"];

/// The groups of the commands in the first help, and their order.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Find and read",
        &["browse", "list", "search", "replay", "tail", "tree"],
    ),
    ("Cost", &["usage"]),
    ("Share", &["export", "convert", "import", "serve"]),
    (
        "Keep safe",
        &[
            "keep", "restore", "push", "pull", "prune", "verify", "repair",
        ],
    ),
    ("Change", &["fork", "move", "merge", "resume", "append"]),
    ("About", &["completions", "man", "help"]),
];

/// Lays out the help of a command line and its commands for a page of this width.
pub(crate) fn laid_out(mut root: Command, form: HelpForm, width: usize) -> Command {
    root = with_own_flags(root).term_width(width);
    let globals: Vec<Arg> = root.get_arguments().cloned().collect();
    root = with_headings(root, "", form);
    root.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let mut command = command;
        if WITHOUT_GLOBALS.contains(&name.as_str()) {
            // An argument that a command has itself is not inherited.
            let kept = |arg: &&Arg| arg.get_id() != "help";
            command = command.args(
                globals
                    .iter()
                    .filter(kept)
                    .map(|arg| arg.clone().hide(true)),
            );
        }
        with_examples(with_headings(command, &name, form), &name, form)
    })
}

/// Replaces the flags for help and version, which would be shown first, by ones that are laid out as the others.
fn with_own_flags(root: Command) -> Command {
    root.disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .arg(
            Arg::new("help")
                .short('h')
                .long("help")
                .global(true)
                .action(ArgAction::Help)
                .help("Print help; -h prints less"),
        )
        .arg(
            Arg::new("version")
                .short('V')
                .long("version")
                .global(true)
                .action(ArgAction::Version)
                .help("Print the version"),
        )
}

/// Puts the options of a command below their headings, in order, and its texts into the form.
fn with_headings(mut command: Command, name: &str, form: HelpForm) -> Command {
    let about = command.get_long_about().filter(|_| form == HelpForm::Long);
    if let Some(about) = about.or(command.get_about()).cloned() {
        command = command.about(about);
    }
    command = command
        .long_about(Resettable::Reset)
        .mut_args(|arg| in_form(arg, form));
    let mut placed: Vec<(usize, String, &str)> = command
        .get_arguments()
        .filter_map(|arg| {
            let (place, heading) = place(name, arg)?;
            Some((place, arg.get_id().to_string(), heading))
        })
        .collect();
    placed.sort();
    for (place, id, heading) in placed {
        let is_hidden = heading == GLOBAL && form == HelpForm::Short;
        // This moves the argument to the end, and headings are in the order of the arguments.
        command = command.mut_arg(id, |arg| {
            let is_hidden = is_hidden || arg.is_hide_set();
            arg.help_heading(heading)
                .display_order(place)
                .hide(is_hidden)
        });
    }
    command
}

/// Returns the position and the heading of an option. `None` for what is not an option.
fn place(command: &str, arg: &Arg) -> Option<(usize, &'static str)> {
    let name = option_name(arg)?;
    let own = format!("{command} {name}");
    let rows = HEADINGS
        .iter()
        .flat_map(|(heading, rows)| rows.iter().map(move |row| (*row, *heading)));
    let find = |wanted: &str| {
        let mut rows = rows.clone().enumerate();
        rows.find_map(|(place, (row, heading))| (row == wanted).then_some((place, heading)))
    };
    find(&own).or_else(|| find(&name))
}

/// Returns the long name of an option, or else its letter.
fn option_name(arg: &Arg) -> Option<String> {
    let long = arg.get_long().map(str::to_owned);
    long.or_else(|| arg.get_short().map(String::from))
}

/// Gives an argument one text in one column, with its values in the long form.
fn in_form(arg: Arg, form: HelpForm) -> Arg {
    let long = arg.get_long_help().filter(|_| form == HelpForm::Long);
    let help = long.or(arg.get_help()).map(ToString::to_string);
    let arg = arg.long_help(Resettable::Reset);
    let Some(mut help) = help else { return arg };
    let values = arg.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let described: Vec<String> = shown.filter_map(described).collect();
    if described.is_empty() || arg.is_hide_possible_values_set() {
        return arg.help(help);
    }
    let arg = arg.hide_possible_values(form == HelpForm::Long);
    if form == HelpForm::Short {
        return arg.help(help);
    }
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && !arg.is_hide_default_value_set() {
        help.push_str(&format!(" [default: {}]", defaults.join(", ")));
    }
    for value in described {
        help.push_str(&format!("\n- {value}"));
    }
    arg.help(help).hide_default_value(true)
}

fn described(value: &PossibleValue) -> Option<String> {
    Some(format!("{}: {}", value.get_name(), value.get_help()?))
}

/// Adds examples to a command and, in the short form, where the other options are.
fn with_examples(command: Command, name: &str, form: HelpForm) -> Command {
    let mut parts = Vec::new();
    let examples = EXAMPLES.iter().find(|(command, _)| *command == name);
    if let Some((_, examples)) = examples {
        let heading = command.get_styles().get_header();
        let lines: String = examples.iter().map(|line| format!("\n  {line}")).collect();
        parts.push(format!("{heading}Examples:{heading:#}{lines}"));
    }
    if form == HelpForm::Short && !WITHOUT_GLOBALS.contains(&name) {
        parts.push(format!(
            "`transcript {name} --help` says more, and has the options of all commands."
        ));
    }
    let text = parts.join("\n\n");
    // The parser would break the lines of a text after the help; manual pages have it from there.
    command
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{all-args}}\n\n{text}\n"
        ))
        .after_help(text)
}

/// Gives the command line its first help, with the commands in groups. The commands are hidden: they are in the text.
pub(crate) fn with_first_help(root: Command, form: HelpForm, width: usize) -> Command {
    let heading = *root.get_styles().get_header();
    let (mut text, mut groups) = (String::new(), Vec::new());
    for (group, names) in GROUPS {
        let rows = names.iter().filter_map(|name| {
            let command = root.find_subcommand(name)?;
            let about = command.get_about()?.to_string();
            let about = about.lines().next().unwrap_or_default().to_owned();
            (!command.is_hide_set()).then(|| ((*name).to_owned(), about))
        });
        groups.push((group, rows.collect()));
    }
    if form == HelpForm::Long {
        groups.push(("Topics of `transcript help`", texts::titles()));
    }
    for (group, rows) in groups {
        let rows = Page::new(width).name_width(13).block(&Block::Rows(rows));
        text.push_str(&format!("{heading}{group}:{heading:#}\n{rows}\n"));
    }
    let more = match form {
        HelpForm::Short => {
            "`transcript SESSION` opens a session: its id, its title or its file. `transcript help` says more. `transcript COMMAND --help` has the options of a command, and examples."
        }
        HelpForm::Long => {
            "`transcript SESSION` opens a session: its id, its title or its file. `transcript COMMAND --help` has the options of a command, and examples."
        }
    };
    let more = Page::new(width).block(&Block::Paragraph(more.to_owned()));
    let options = match form {
        HelpForm::Short => "",
        HelpForm::Long => "{all-args}\n\n",
    };
    root.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{options}{more}"
    ))
    .override_usage("transcript [OPTIONS] [COMMAND]\n       transcript SESSION")
    .mut_subcommands(|command| command.hide(true))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use clap::CommandFactory;

    use crate::cli::Cli;
    use crate::definition::whole;

    #[test]
    fn every_option_has_a_place_and_every_place_an_option() {
        let root = whole(&Cli::command(), HelpForm::Long, 80);
        let commands = [&root].into_iter().chain(root.get_subcommands());
        let (mut missing, mut used) = (Vec::new(), BTreeSet::new());
        for command in commands {
            for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
                match place(command.get_name(), arg) {
                    Some((place, _)) => drop(used.insert(place)),
                    None => missing.push(format!("{} {arg}", command.get_name())),
                }
            }
        }
        assert!(missing.is_empty(), "without a heading: {missing:#?}");
        let rows = HEADINGS
            .iter()
            .flat_map(|(_, rows)| rows.iter())
            .enumerate();
        let unused: Vec<_> = rows.filter(|(place, _)| !used.contains(place)).collect();
        assert!(unused.is_empty(), "without an option: {unused:?}");
    }

    /// The options whose values have other names in other commands, each with the reason.
    const SEVERAL_VALUES: [(&str, &str); 6] = [
        ("by", "each command groups other things"),
        ("json", "`export` writes each form to a file"),
        ("out", "`convert` also takes a folder"),
        ("to", "`restore` names a folder, all others an agent"),
        ("tools", "`resume` makes a request, which has tools"),
        ("until", "`tail` also waits for an event"),
    ];

    #[test]
    fn an_option_means_the_same_in_every_command() {
        let root = whole(&Cli::command(), HelpForm::Long, 80);
        let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for command in root.get_subcommands() {
            for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
                let name = arg.get_long().map(str::to_owned);
                let takes = arg.get_action().takes_values();
                let value = arg.get_value_names().filter(|_| takes).unwrap_or_default();
                let value: Vec<&str> = value.iter().map(|name| name.as_str()).collect();
                let name = name.or_else(|| arg.get_short().map(String::from));
                let found = values.entry(name.unwrap_or_default()).or_default();
                found.insert(value.join(" "));
            }
        }
        let is_known = |name: &str| SEVERAL_VALUES.iter().any(|(known, _)| *known == name);
        values.retain(|name, found| found.len() > 1 && !is_known(name));
        assert!(values.is_empty(), "{values:#?}");
    }

    #[test]
    fn every_command_is_in_one_group() {
        let root = whole(&Cli::command(), HelpForm::Long, 80);
        let commands = root.get_subcommands();
        let mut commands: Vec<&str> = commands
            .map(Command::get_name)
            .filter(|name| !name.starts_with('_'))
            .collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter())
            .copied()
            .collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(commands, grouped);
    }
}
