//! Errors and notes on standard error: errors in words for people, and as records for programs.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap::error::ErrorKind as UsageError;
use transcript_engine::catalog::QueryError;
use transcript_ops::Failure;
use transcript_ops::failure::message_of;
use transcript_ops::wire::{self, ErrorRecord};
use transcript_render::Escaping;

use crate::wrapping::lines;

/// The form of standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandardError {
    /// Whether errors are records: `--json` is among the arguments.
    is_json: bool,
    escaping: Escaping,
    /// The width of the terminal, in columns, if it is one.
    width: Option<usize>,
}

impl StandardError {
    /// Returns the form that these arguments ask for. They need not be a right command line.
    pub(crate) fn of(arguments: impl Iterator<Item = OsString>) -> Self {
        let mut options = arguments.take_while(|argument| argument != "--");
        let size = terminal_size::terminal_size_of(io::stderr());
        Self {
            is_json: options.any(|argument| argument == "--json"),
            escaping: Escaping::Visible,
            width: size.map(|(terminal_size::Width(width), _)| usize::from(width)),
        }
    }

    pub(crate) fn escaping(self, escaping: Escaping) -> Self {
        Self { escaping, ..self }
    }

    pub(crate) fn is_json(self) -> bool {
        self.is_json
    }

    /// Writes errors as records from now on.
    pub(crate) fn as_json(self) -> Self {
        Self {
            is_json: true,
            ..self
        }
    }

    /// Writes an error. Errors of writing are ignored: they could not be reported.
    pub(crate) fn error(self, failure: &Failure) {
        if self.is_json {
            return self.line(&wire::text(&ErrorRecord::new(failure)).unwrap_or_default());
        }
        let message = &failure.message;
        let text = match &failure.next {
            // Below a list.
            Some(next) if message.contains('\n') => format!("{message}\n{next}"),
            Some(next) => format!("{message}; {next}"),
            None => message.clone(),
        };
        self.text(&format!("transcript: {text}"));
    }

    /// Writes a note, which is text in any case. Errors of writing are ignored, too.
    pub(crate) fn note(self, text: &str) {
        self.text(text);
    }

    /// Writes the fault of a command line that `root` defines, and its right form.
    pub(crate) fn usage_error(self, error: &clap::Error, root: &Command) {
        let (failure, usage) = in_parts(error, root);
        if !self.is_json && error.kind() == UsageError::DisplayHelpOnMissingArgumentOrSubcommand {
            let _ = error.print();
            return;
        }
        self.error(&failure);
        if let Some(usage) = usage.filter(|_| !self.is_json) {
            self.text(&usage);
        }
    }

    fn text(self, text: &str) {
        let text = self.escaping.escape(text);
        for line in text.split('\n') {
            // Rows of a list keep their indent.
            let indent = line.len() - line.trim_start().len();
            let (indent, words) = line.split_at(indent);
            let columns = self.width.map(|width| width.saturating_sub(indent.len()));
            for line in lines(words, columns) {
                self.line(&format!("{indent}{line}"));
            }
        }
    }

    fn line(self, line: &str) {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Returns an error as the record that all front ends have: its message with the causes, and the kind and the place of the
/// first cause that has them.
pub(crate) fn failure_of(error: &anyhow::Error) -> Failure {
    let known = error.chain().find_map(known);
    let mut failure = known.unwrap_or_else(|| Failure::options(String::new()));
    failure.message = message_of(error.as_ref());
    if let Some(option) = error.downcast_ref().and_then(Failure::named_option) {
        let rest = failure.message.split_off(option.len());
        failure.message = format!("--{}{rest}", in_words(option));
    }
    failure
}

/// Returns the failure that an error is, if its kind is known.
fn known(error: &(dyn Error + 'static)) -> Option<Failure> {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return Some(failure.clone());
    }
    if let Some(error) = error.downcast_ref::<transcript_engine::Error>() {
        return Some(error.into());
    }
    if let Some(error) = error.downcast_ref::<transcript_reader::Error>() {
        return Some(error.into());
    }
    if let Some(error) = error.downcast_ref::<transcript_engine::archive::Error>() {
        return Some(error.into());
    }
    if let Some(error) = error.downcast_ref::<QueryError>() {
        return Some(Failure::new("bad-query", error.message()));
    }
    let io = error.downcast_ref::<io::Error>()?;
    Some(Failure::new(kind_of(io), ""))
}

/// Returns the kind of the failure that an error of the system is.
fn kind_of(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "not-found",
        io::ErrorKind::AlreadyExists => "exists",
        io::ErrorKind::StorageFull => "full",
        io::ErrorKind::PermissionDenied => "not-allowed",
        _ => "io",
    }
}

/// Returns the failure of something that was done to a file.
pub(crate) fn io_failure(path: &Path, error: &io::Error) -> Failure {
    Failure::new(kind_of(error), message_of(error)).in_file(path)
}

/// Returns the name of an option as it is written on the command line.
fn in_words(option: &str) -> String {
    let mut name = String::new();
    for letter in option.chars() {
        if letter.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Returns what is wrong with a command line, with the next step, and how the command is written.
fn in_parts(error: &clap::Error, root: &Command) -> (Failure, Option<String>) {
    let text = error.to_string();
    let parts = text.trim().split("\n\n").map(|part| {
        let lines = part.lines().map(str::trim);
        lines.collect::<Vec<_>>().join(" ")
    });
    let (mut message, mut tips, mut usage) = (String::new(), Vec::new(), None);
    for part in parts {
        if let Some(tip) = part.strip_prefix("tip: ") {
            tips.push(tip.replace(" tip: ", "; "));
        } else if part.starts_with("Usage: ") {
            usage = Some(part);
        } else if message.is_empty() {
            message = part.trim_start_matches("error: ").to_owned();
        }
    }
    let mut words = env::args_os().filter_map(|word| word.into_string().ok());
    let named = words.find_map(|word| root.find_subcommand(word));
    let named = named.map_or(String::new(), |command| format!(" {}", command.get_name()));
    tips.push(format!("`transcript{named} --help` explains it"));
    if error.kind() == UsageError::DisplayHelpOnMissingArgumentOrSubcommand {
        message = "a command is missing".to_owned();
    }
    let failure = Failure::options(message).with_next(tips.join("; "));
    (failure, usage)
}
