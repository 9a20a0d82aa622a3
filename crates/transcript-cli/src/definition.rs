//! The definition of the command line with its help and the other names of commands. The commands themselves are parts of the
//! definition, so it is given to them.

use clap::Command;

use crate::help::layout::{HelpForm, MAX_WIDTH, laid_out, with_first_help};
use crate::{exit, near, ui};

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

/// Returns the definition with its help.
pub(crate) fn whole(root: &Command, form: HelpForm, width: usize) -> Command {
    let mut root = root.clone();
    for (command, names) in ALIASES {
        root = root.mut_subcommand(command, |command| command.aliases(names));
    }
    laid_out(root, form, width)
}

/// Returns the definition, with the help in the form that is asked for.
pub(crate) fn parser(root: &Command, form: HelpForm) -> Command {
    let width = ui::width().min(MAX_WIDTH);
    with_first_help(whole(root, form, width), form, width)
}

/// Prints the help of the command that the words name.
pub(crate) fn print_help(root: &Command, words: &[&str]) -> u8 {
    let words = ["transcript"].iter().chain(words).chain(&["--help"]);
    if let Err(help) = parser(root, HelpForm::Long).try_get_matches_from(words) {
        // Ignore a closed pipe.
        let _ = help.print();
    }
    exit::DONE
}

/// Returns the advice for a word that means a job which no command is named after.
pub(crate) fn hint(name: &str) -> Option<&'static str> {
    let found = HINTS.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, hint)| *hint)
}

/// Returns the command whose name, or other name, is nearest to a word.
pub(crate) fn nearest(word: &str, root: &Command) -> Option<String> {
    let names = root.get_subcommands().filter(|one| !one.is_hide_set());
    let names: Vec<String> = names.map(|one| one.get_name().to_owned()).collect();
    let names = names.into_iter().map(|name| (name.clone(), name));
    let aliases = ALIASES.iter().flat_map(|(command, names)| {
        let names = names.iter().map(|name| (*name).to_owned());
        names.map(|name| (name, (*command).to_owned()))
    });
    near::nearest(word, names.chain(aliases))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

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
            assert_eq!(nearest(word, &Cli::command()).as_deref(), command, "{word}");
        }
    }

    #[test]
    fn no_other_name_is_that_of_a_command_or_given_twice() {
        let commands = Cli::command();
        let commands: Vec<_> = commands.get_subcommands().map(Command::get_name).collect();
        let aliases = ALIASES.iter().flat_map(|(_, names)| names.iter());
        let hints = HINTS.iter().flat_map(|(names, _)| names.iter());
        let mut seen = std::collections::BTreeSet::new();
        for name in aliases.chain(hints) {
            assert!(!commands.contains(name), "{name}");
            assert!(seen.insert(name), "{name}");
        }
    }
}
