//! The hidden command that the completions of bash, zsh and fish call: what a word of a command line may become.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, Args as ClapArgs, Command};
use transcript_ops::names::{archived_names, entry_names, project_names, session_names};
use transcript_ops::roots::KnownRoots;
use transcript_render::{Escaping, cut_text};

use crate::definition::whole;
use crate::help::layout::{HelpForm, MAX_WIDTH};
use crate::help::texts::titles;
use crate::pager::Output;
use crate::ui::Ui;
use crate::{exit, session};

/// The maximum number of sessions or entries that are offered: a screen, and few files to read.
const MAX_OFFERED: usize = 40;
/// The maximum width of a meaning, in columns.
const MAX_MEANING_WIDTH: usize = 70;

/// Print what the last word may become: a line each, with a tab before its meaning; first `files`, `folders` or `words`,
/// which says what else may stand there
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The words after `transcript`, up to the one that is completed
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    words: Vec<OsString>,
}

/// What a word may become.
#[derive(Debug, Default)]
struct Offer {
    /// Words, and their meanings.
    words: Vec<(String, String)>,
    others: Others,
}

/// What a shell may offer itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Others {
    #[default]
    None,
    Files,
    Folders,
}

/// Completes the last word of a command line that `root` defines.
pub(crate) fn run(ui: &mut Ui, args: &Args, root: &Command) -> Result<u8> {
    let mut root = whole(root, HelpForm::Long, MAX_WIDTH);
    root.build();
    let words: Vec<String> = args
        .words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = Line::read(&root, &words);
    if !line.roots.is_empty() {
        ui.asked_roots = line.roots.iter().map(PathBuf::from).collect();
    }
    let offer = line.offer(ui, &root);
    let mut out = Output::plain();
    let others = match offer.others {
        Others::None => "words",
        Others::Files => "files",
        Others::Folders => "folders",
    };
    writeln!(out, "{others}")?;
    for (word, meaning) in offer.words {
        let meaning = Escaping::Visible.one_line(&meaning);
        let meaning = cut_text(&meaning, MAX_MEANING_WIDTH);
        writeln!(out, "{word}\t{meaning}")?;
    }
    out.finish()?;
    Ok(exit::DONE)
}

/// A command line up to the word that is completed.
struct Line<'l> {
    /// The command; `None` before its name.
    command: Option<&'l Command>,
    /// The option whose value the last word is.
    option: Option<&'l Arg>,
    /// What is before the value in the last word: `--color=`.
    before_value: &'l str,
    /// The positional words before the last one.
    positionals: Vec<&'l str>,
    /// Whether no options can follow.
    is_over: bool,
    last: &'l str,
    /// The values of `--root`, wherever they are.
    roots: Vec<&'l str>,
}

impl<'l> Line<'l> {
    fn read(root: &'l Command, words: &'l [String]) -> Self {
        let (last, before) = words
            .split_last()
            .map_or(("", words), |(last, all)| (&**last, all));
        let mut line = Self {
            command: None,
            option: None,
            before_value: "",
            positionals: Vec::new(),
            is_over: false,
            last,
            roots: Vec::new(),
        };
        for word in before {
            let option = line.option.take();
            if let Some(option) =
                option.filter(|option| needs_value(option) || !word.starts_with('-'))
            {
                if option.get_id() == "root" {
                    line.roots.push(word);
                }
            } else if line.is_over || !word.starts_with('-') || word == "-" {
                match line.command {
                    None => line.command = root.find_subcommand(word),
                    Some(_) => line.positionals.push(word),
                }
            } else if word == "--" {
                line.is_over = true;
            } else {
                line.option = line.value_of(root, word);
            }
        }
        if line.option.is_none()
            && !line.is_over
            && let Some((name, value)) = last.split_once('=')
        {
            line.option = line.value_of(root, name);
            if line.option.is_some() {
                (line.before_value, line.last) = (&last[..=name.len()], value);
            }
        }
        line
    }

    /// Returns the option that a word names, if the next word is its value.
    fn value_of(&self, root: &'l Command, word: &str) -> Option<&'l Arg> {
        let command = self.command.unwrap_or(root);
        let is_meant = |arg: &&Arg| match word.strip_prefix("--") {
            Some(long) => {
                arg.get_long() == Some(long)
                    || arg
                        .get_visible_aliases()
                        .unwrap_or_default()
                        .contains(&long)
            }
            // Of several letters only the last one takes a value.
            None => arg.get_short().is_some() && arg.get_short() == word.chars().last(),
        };
        let mut options = command.get_arguments().filter(is_meant);
        options.find(|arg| arg.get_action().takes_values())
    }

    fn offer(&self, ui: &Ui, root: &Command) -> Offer {
        let mut offer = self.candidates(ui, root);
        offer.words.retain(|(word, _)| word.starts_with(self.last));
        for (word, _) in &mut offer.words {
            word.insert_str(0, self.before_value);
        }
        offer
    }

    fn candidates(&self, ui: &Ui, root: &Command) -> Offer {
        let takes_word = |option: &&Arg| needs_value(option) || !self.last.starts_with('-');
        if let Some(option) = self.option.filter(takes_word) {
            let mut offer = self.values(ui, root, option);
            if !needs_value(option) {
                offer.words.extend(self.positional(ui, root).words);
            }
            return offer;
        }
        if self.last.starts_with('-') && !self.is_over {
            return Offer {
                words: options(self.command.unwrap_or(root)),
                others: Others::None,
            };
        }
        self.positional(ui, root)
    }

    fn positional(&self, ui: &Ui, root: &Command) -> Offer {
        let Some(command) = self.command else {
            let mut words = commands(root);
            if !words.iter().any(|(word, _)| word.starts_with(self.last)) {
                words = self.sessions(ui);
            }
            return Offer {
                words,
                others: Others::Files,
            };
        };
        let positionals: Vec<&Arg> = command.get_positionals().collect();
        // The last one may take more than one word.
        let takes_more = |arg: &&&Arg| {
            let count = arg.get_num_args();
            count.is_some_and(|range| range.max_values() > 1)
        };
        let last = positionals.last().filter(takes_more);
        let arg = positionals.get(self.positionals.len()).or(last);
        match arg {
            Some(arg) => self.values(ui, root, arg),
            None => Offer::default(),
        }
    }

    /// Returns the values of an argument.
    fn values(&self, ui: &Ui, root: &Command, arg: &Arg) -> Offer {
        let possible = arg.get_possible_values();
        let possible = possible.iter().filter(|value| !value.is_hide_set());
        let words: Vec<_> = possible
            .map(|value| {
                let meaning = value.get_help().map(ToString::to_string);
                (value.get_name().to_owned(), meaning.unwrap_or_default())
            })
            .collect();
        if !words.is_empty() {
            return Offer {
                words,
                others: Others::None,
            };
        }
        let names = arg.get_value_names().unwrap_or_default();
        let names = names.first().map(|name| name.as_str()).unwrap_or_default();
        let command = self.command.map(Command::get_name);
        let (words, others) = match (names, arg.get_id().as_str()) {
            ("SESSION", _) if matches!(command, Some("restore" | "pull")) => {
                let named = archived_names(&session::context(ui), self.last, MAX_OFFERED);
                let named = named.into_iter().map(|one| (one.name, one.title));
                (named.collect(), Others::None)
            }
            ("SESSION" | "SESSION|DIR" | "A" | "B", _) => (self.sessions(ui), Others::Files),
            ("ENTRY" | "OFFSET|ENTRY", _) => (self.entries(ui), Others::None),
            ("TIME" | "TIME|WHAT", _) => (times(), Others::None),
            ("PATH" | "OLD" | "NEW", _) => (self.projects(ui), Others::Folders),
            ("DIR|NAME", _) => (roots(ui), Others::Folders),
            ("DIR" | "DIR|URL" | "ROOT", _) => (Vec::new(), Others::Folders),
            ("FILE" | "FILE|DIR" | "PAGE" | "NAMES|FILE" | "KEY|FILE", _) => {
                (Vec::new(), Others::Files)
            }
            (_, "topic") => ([commands(root), titles()].concat(), Others::None),
            (_, "command") if command == Some("man") => (commands(root), Others::None),
            _ => (Vec::new(), Others::None),
        };
        Offer { words, others }
    }

    /// Returns the newest sessions whose names start with the last word; after `SESSION:`, lines of the session.
    fn sessions(&self, ui: &Ui) -> Vec<(String, String)> {
        let context = session::context(ui);
        if let Some((session, _)) = self.last.split_once(':') {
            let lines = entry_names(&context, Path::new(session), MAX_OFFERED);
            let lines = lines.unwrap_or_default().into_iter();
            return lines
                .map(|one| (format!("{session}:{}", one.line), one.preview))
                .collect();
        }
        let newest = ("latest".to_owned(), "The newest conversation".to_owned());
        let named = session_names(&context, self.last, MAX_OFFERED);
        let named = named.into_iter().map(|one| (one.name, one.title));
        [newest].into_iter().chain(named).collect()
    }

    /// Returns the entries of the session of the line.
    fn entries(&self, ui: &Ui) -> Vec<(String, String)> {
        let session = self.positionals.first().copied().unwrap_or("latest");
        let lines = entry_names(&session::context(ui), Path::new(session), MAX_OFFERED);
        let lines = lines.unwrap_or_default().into_iter();
        lines
            .map(|one| (one.line.to_string(), one.preview))
            .collect()
    }

    fn projects(&self, ui: &Ui) -> Vec<(String, String)> {
        let projects = project_names(&session::context(ui));
        projects
            .into_iter()
            .map(|folder| (folder, String::new()))
            .collect()
    }
}

/// Returns the names of the roots, and their folders.
fn roots(ui: &Ui) -> Vec<(String, String)> {
    let known = ui.roots().ok().map(|roots| &roots.known);
    let names = known.into_iter().flat_map(KnownRoots::names);
    let shown = names.map(|(name, folder)| (name.to_owned(), ui.path(folder)));
    shown.collect()
}

/// Returns whether an option cannot be without its value.
fn needs_value(option: &Arg) -> bool {
    option
        .get_num_args()
        .is_none_or(|range| range.min_values() > 0)
}

fn commands(root: &Command) -> Vec<(String, String)> {
    let shown = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    shown
        .map(|command| {
            (
                command.get_name().to_owned(),
                first_line(command.get_about()),
            )
        })
        .collect()
}

fn options(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let named = shown.filter_map(|arg| {
        let long = arg.get_long().map(|long| format!("--{long}"));
        let name = long.or_else(|| arg.get_short().map(|short| format!("-{short}")))?;
        Some((name, first_line(arg.get_help())))
    });
    named.collect()
}

fn first_line(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.split('\n').next().unwrap_or_default().to_owned()
}

fn times() -> Vec<(String, String)> {
    ["today", "yesterday", "2h", "3d", "2w"]
        .map(|time| (time.to_owned(), String::new()))
        .into()
}
