//! Output options of all commands: colour, notes and errors.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};

use crate::escape::{self, escape};
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
            escape::switch_off();
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

/// The styles of the parts of a conversation; all plain without colour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Styles {
    /// Whether colour is used; without it, marks replace styles.
    pub(crate) coloured: bool,
    pub(crate) person: Style,
    pub(crate) agent: Style,
    pub(crate) tool: Style,
    pub(crate) error: Style,
    pub(crate) dim: Style,
    pub(crate) code: Style,
    pub(crate) added: Style,
    pub(crate) removed: Style,
}

impl Styles {
    fn coloured() -> Self {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        Self {
            coloured: true,
            person: colour(AnsiColor::Cyan).bold(),
            agent: colour(AnsiColor::Magenta).bold(),
            tool: colour(AnsiColor::Green),
            error: colour(AnsiColor::Red),
            dim: Style::new().dimmed(),
            code: colour(AnsiColor::Yellow),
            added: colour(AnsiColor::Green),
            removed: colour(AnsiColor::Red),
        }
    }

    pub(crate) fn bold(self, style: Style) -> Style {
        if self.coloured { style.bold() } else { style }
    }

    pub(crate) fn italic(self, style: Style) -> Style {
        if self.coloured { style.italic() } else { style }
    }

    /// Returns the style for the label of one of several sessions.
    pub(crate) fn label(self, number: usize) -> Style {
        use AnsiColor::{Blue, Cyan, Green, Magenta, Red, Yellow};
        const COLOURS: [AnsiColor; 6] = [Blue, Yellow, Green, Magenta, Cyan, Red];
        if !self.coloured {
            return Style::new();
        }
        let colour = COLOURS[number % COLOURS.len()];
        Style::new().fg_color(Some(colour.into())).bold()
    }

    pub(crate) fn struck(self, style: Style) -> Style {
        if self.coloured {
            style.strikethrough()
        } else {
            style
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
