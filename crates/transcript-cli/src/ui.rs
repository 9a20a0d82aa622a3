//! Output options of all commands, and the state that follows from them: colour, notes and errors.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use transcript_engine::archive::{ArchiveDisk, ArchiveOptions};
use transcript_render::{Escaping, RenderOptions, Tools};
use transcript_storage::ReadDisk;

use transcript_ops::context::archive_options;
use transcript_ops::{Failure, wire};

/// Options that every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputOptions {
    /// When to colour output for people
    #[arg(long, global = true, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    color: When,
    /// Print less to standard error
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Print more to standard error
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Do not escape control characters
    #[arg(long, global = true)]
    raw: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

/// The terminal and the global options, for all commands; made once by `main`.
pub(crate) struct Ui {
    /// Less goes to standard error.
    pub(crate) quiet: bool,
    /// The folder that holds the projects, if it was named.
    pub(crate) root: Option<PathBuf>,
    /// The option `--archive`, if it was given, and the folder, if it was named.
    pub(crate) archive: Option<Option<PathBuf>>,
    /// The option `--identity`.
    pub(crate) identity: Option<PathBuf>,
    /// The disk, with the archive on it.
    disk: OnceLock<Arc<ArchiveDisk>>,
    /// The disk to read sessions from, if it is another one.
    other_disk: Option<Arc<dyn ReadDisk>>,
    /// The rendering of text for people.
    pub(crate) render: RenderOptions,
    pub(crate) escaping: Escaping,
    /// Whether text for people has colours.
    #[cfg(feature = "browse")]
    pub(crate) is_coloured: bool,
    /// Whether JSON of a transcript is shown on a terminal, so that it must not control it.
    is_json_shown: bool,
    /// The width of the page, in columns.
    pub(crate) width: usize,
}

impl Ui {
    pub(crate) fn new(
        options: &OutputOptions,
        root: Option<PathBuf>,
        archive: Option<Option<PathBuf>>,
        identity: Option<PathBuf>,
    ) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let coloured = match options.color {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                is_terminal && !unwanted && !is_dumb()
            }
        };
        let escaping = if options.raw {
            Escaping::Raw
        } else {
            Escaping::Visible
        };
        let width = width();
        let render = RenderOptions::new()
            .coloured(coloured)
            .escaping(escaping)
            .width(width)
            .zone(TimeZone::system())
            .home(env::var_os("HOME").map(PathBuf::from));
        Self {
            quiet: options.quiet,
            root,
            archive,
            identity,
            disk: OnceLock::new(),
            other_disk: None,
            render,
            escaping,
            #[cfg(feature = "browse")]
            is_coloured: coloured,
            width,
            is_json_shown: is_terminal && escaping == Escaping::Visible,
        }
    }

    /// Returns the folder of the archive: `--archive`, else `$TRANSCRIPT_ARCHIVE`, else in the data folder of the user.
    pub(crate) fn archive_folder(&self) -> Result<PathBuf> {
        if let Some(Some(folder)) = &self.archive {
            return std::path::absolute(folder).with_context(|| folder.display().to_string());
        }
        let folder = transcript_engine::archive_folder();
        let folder =
            folder.context("cannot find the data folder; name the archive with --archive DIR")?;
        std::path::absolute(&folder).context("$TRANSCRIPT_ARCHIVE")
    }

    /// Returns the options to open the archive: with the keys of `--identity` or `$TRANSCRIPT_IDENTITY`.
    pub(crate) fn archive_options(&self) -> Result<ArchiveOptions> {
        let set = env::var_os("TRANSCRIPT_IDENTITY").filter(|file| !file.is_empty());
        let file = self.identity.clone().or(set.map(PathBuf::from));
        Ok(archive_options(file.as_deref())?)
    }

    /// Returns the disk on which the folder of the archive has archived sessions as files. It is opened when it is
    /// first needed.
    pub(crate) fn archive_disk(&self) -> &Arc<ArchiveDisk> {
        self.disk.get_or_init(|| {
            // Without a folder there is no archive: nothing is at this path.
            let folder = self.archive_folder().unwrap_or_default();
            let options = self.archive_options().unwrap_or_else(|error| {
                self.complain(&error);
                ArchiveOptions::new()
            });
            Arc::new(ArchiveDisk::with(&folder, options))
        })
    }

    /// Returns the disk to read sessions from.
    pub(crate) fn disk(&self) -> Arc<dyn ReadDisk> {
        match &self.other_disk {
            Some(disk) => Arc::clone(disk),
            None => Arc::clone(self.archive_disk()) as _,
        }
    }

    /// Reads sessions from another disk from now on.
    pub(crate) fn read_from(&mut self, disk: Arc<dyn ReadDisk>) {
        self.other_disk = Some(disk);
    }

    /// Returns whether JSON of a transcript is shown on a terminal, so that it must not control it.
    pub(crate) fn is_json_shown(&self) -> bool {
        self.is_json_shown
    }

    /// Returns JSON of a transcript: verbatim for programs, escaped on a terminal.
    pub(crate) fn verbatim<'j>(&self, json: &'j str) -> Cow<'j, str> {
        if self.is_json_shown {
            wire::escaped(json)
        } else {
            Cow::Borrowed(json)
        }
    }

    /// Returns a path as it is shown in a row.
    pub(crate) fn path(&self, path: &Path) -> String {
        self.escaping.one_line(&path.display().to_string())
    }

    /// Returns a path as it is shown alone.
    pub(crate) fn whole_path(&self, path: &Path) -> String {
        self.escaping
            .escape(&path.display().to_string())
            .into_owned()
    }

    /// Writes an error and its causes to standard error.
    pub(crate) fn complain(&self, error: &anyhow::Error) {
        let mut text = format!("transcript: {}", in_words(error));
        for cause in error.chain().skip(1).map(ToString::to_string) {
            let cause = without_number(&cause);
            // Some errors already have the text of their cause.
            if !text.to_lowercase().ends_with(&cause.to_lowercase()) {
                text.push_str(&format!(": {cause}"));
            }
        }
        self.warn(&text);
    }

    /// Writes a line to standard error, unless `--quiet` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Writes a line to standard error. Errors are ignored: they could not be reported.
    pub(crate) fn warn(&self, text: &str) {
        let _ = writeln!(io::stderr(), "{}", self.escaping.escape(text));
    }
}

/// Returns the text of an error of the system without its number: `Permission denied (os error 13)`.
fn without_number(text: &str) -> &str {
    text.strip_suffix(')')
        .and_then(|text| text.rsplit_once(" (os error "))
        .filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(text, |(text, _)| text)
}

/// Returns the message of an error, which names an option as it is written on the command line.
fn in_words(error: &anyhow::Error) -> String {
    let text = error.to_string();
    let failure = error.downcast_ref::<Failure>();
    let option = failure.and_then(Failure::named_option);
    let Some(option) = option.filter(|option| text.starts_with(option)) else {
        return text;
    };
    let mut name = String::from("--");
    for letter in option.chars() {
        if letter.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    format!("{name}{}", &text[option.len()..])
}

/// Returns a word for a shell, in quotes.
pub(crate) fn in_quotes(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns whether the terminal knows no escape sequences, as that of an editor or of a build.
pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// The amount of tool calls that is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub(crate) enum ToolDetail {
    /// Whole inputs and results
    Full,
    /// One line per call and per result; changes of files and task lists
    #[default]
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
    let asked = env::var("COLUMNS").ok();
    let asked = asked.and_then(|columns| columns.parse().ok());
    let asked = asked.filter(|columns| (20..=1000).contains(columns));
    asked.unwrap_or(80)
}
