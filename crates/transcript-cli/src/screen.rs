//! Output options of all commands: colour, notes and errors.

use std::io::{self, IsTerminal, Write};

use clap::{Args, ValueEnum};
use transcript_render::{Styles, Tools, escape, switch_off};

use crate::progress;

/// Options that every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputOptions {
    /// When to colour output for people
    #[arg(long, global = true, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    color: When,
    /// Print less to standard error
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more to standard error
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print text of a transcript as it is: control characters reach the terminal
    #[arg(long, global = true)]
    raw: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

impl OutputOptions {
    /// Sets the global output state of the process.
    pub(crate) fn apply(&self) {
        if self.raw {
            switch_off();
        }
        if self.quiet {
            progress::switch_off();
        }
    }

    /// Returns the styles for standard output.
    pub(crate) fn styles(&self) -> Styles {
        let colour = match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                io::stdout().is_terminal() && !unwanted
            }
        };
        if colour {
            Styles::coloured()
        } else {
            Styles::default()
        }
    }
}

/// How much of tool calls is printed.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum ToolDetail {
    /// Whole inputs and results
    Full,
    /// One line per call and per result; changes of files and task lists
    Short,
    /// No tool calls
    None,
}

impl ToolDetail {
    pub(crate) fn tools(self) -> Tools {
        match self {
            Self::Full => Tools::Full,
            Self::Short => Tools::Short,
            Self::None => Tools::None,
        }
    }
}

/// Returns the width of the terminal; `None` if standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map(|(terminal_size::Width(width), _)| usize::from(width))
}

/// Returns the width of standard output: of the terminal, else `$COLUMNS`, else 80.
pub(crate) fn width() -> usize {
    if let Some(width) = terminal_width() {
        return width;
    }
    let asked = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    asked
        .filter(|columns| (20..=1000).contains(columns))
        .unwrap_or(80)
}

/// Writes an error and its causes to standard error.
pub(crate) fn complain(error: &anyhow::Error) {
    let mut text = format!("transcript: {error}");
    for cause in error.chain().skip(1) {
        text.push_str(&format!(": {cause}"));
    }
    note(&text);
}

/// Writes a line to standard error. Errors are ignored: they could not be reported.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escape(text));
}
