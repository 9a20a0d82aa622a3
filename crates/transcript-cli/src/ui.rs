//! Output options of all commands, and the state that follows from them: colour, notes and errors.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use transcript_engine::archive::ArchiveOptions;
use transcript_render::{Escaping, RenderOptions, TextStyle, Tools};
use transcript_storage::{ReadDisk, RealDisk};

use transcript_ops::agents::Homes;
use transcript_ops::buckets::is_address;
use transcript_ops::roots::{KnownRoots, Root, RootPlace};
use transcript_ops::{Failure, wire};

use crate::complaint::{StandardError, failure_of};
use crate::wrapping::lines;

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
    verbose: bool,
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
    /// More does.
    verbose: bool,
    /// The folders that hold projects, and the names of roots, that `--root` names.
    pub(crate) asked_roots: Vec<PathBuf>,
    /// The names that `--agent` has.
    asked_agents: Vec<String>,
    /// The option `--archive`, if it was given, and the folder, if it was named.
    pub(crate) archive: Option<Option<PathBuf>>,
    /// The option `--identity`.
    pub(crate) identity: Option<PathBuf>,
    /// The roots, and the disk with their archives on it.
    roots: OnceLock<Result<RootsInUse, Failure>>,
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
    /// The width of the terminal, in columns, if standard output is one.
    terminal: Option<usize>,
    errors: StandardError,
}

/// The roots that are in use.
pub(crate) struct RootsInUse {
    /// All that are configured.
    pub(crate) known: KnownRoots,
    pub(crate) places: Vec<RootPlace>,
    /// The same, with their archives.
    pub(crate) roots: Vec<Root>,
    /// The disk with all archives on it.
    disk: Arc<dyn ReadDisk>,
    /// The home folders of other agents.
    pub(crate) homes: Arc<Homes>,
}

/// The options that choose roots.
#[derive(Debug, Default)]
pub(crate) struct AskedRoots {
    /// The values of `--root`.
    pub(crate) folders: Vec<PathBuf>,
    /// The values of `--agent`.
    pub(crate) agents: Vec<String>,
}

impl Ui {
    pub(crate) fn new(
        options: &OutputOptions,
        asked: AskedRoots,
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
            verbose: options.verbose,
            asked_roots: asked.folders,
            asked_agents: asked.agents,
            archive,
            identity,
            roots: OnceLock::new(),
            other_disk: None,
            render,
            escaping,
            #[cfg(feature = "browse")]
            is_coloured: coloured,
            width,
            terminal: terminal_width(),
            is_json_shown: is_terminal && escaping == Escaping::Visible,
            errors: StandardError::of(env::args_os()).escaping(escaping),
        }
    }

    /// Returns the roots that are in use. They are found when they are first needed.
    pub(crate) fn roots(&self) -> Result<&RootsInUse> {
        let roots = self.roots.get_or_init(|| self.find_roots());
        roots.as_ref().map_err(|failure| failure.clone().into())
    }

    fn find_roots(&self) -> Result<RootsInUse, Failure> {
        let archive = self.archive.iter().flatten().next();
        let place = |place: &PathBuf| {
            if is_address(place) {
                Ok(place.clone())
            } else {
                std::path::absolute(place)
            }
        };
        let archive = archive.map(place).transpose()?;
        let known = KnownRoots::read(archive.as_deref())?;
        let places = known.choose_of(&self.asked_agents, &self.asked_roots)?;
        let identity = self.identity_file();
        let options = known.archive_options(identity.as_deref());
        let options = options.or_else(|failure| {
            self.report(failure);
            known.archive_options(None)
        })?;
        let (roots, disk, homes) = known.open(&places, &options);
        Ok(RootsInUse {
            known,
            places,
            roots,
            disk,
            homes,
        })
    }

    /// Returns the agents that `--agent` names.
    pub(crate) fn asked_agents(&self) -> &[String] {
        &self.asked_agents
    }

    /// Returns the file with the keys of `--identity` or `$TRANSCRIPT_IDENTITY`.
    fn identity_file(&self) -> Option<PathBuf> {
        let set = env::var_os("TRANSCRIPT_IDENTITY").filter(|file| !file.is_empty());
        self.identity.clone().or(set.map(PathBuf::from))
    }

    /// Returns the options to open the archive: with the keys of `--identity` or `$TRANSCRIPT_IDENTITY`.
    pub(crate) fn archive_options(&self) -> Result<ArchiveOptions> {
        let known = &self.roots()?.known;
        Ok(known.archive_options(self.identity_file().as_deref())?)
    }

    /// Says with `--verbose` which requests were made to buckets.
    pub(crate) fn note_requests(&self) {
        if let Some(Ok(roots)) = self.roots.get().filter(|_| self.verbose) {
            for requests in roots.known.requests() {
                self.warn(&requests);
            }
        }
    }

    /// Returns the disk to read sessions from.
    pub(crate) fn disk(&self) -> Arc<dyn ReadDisk> {
        match (&self.other_disk, self.roots()) {
            (Some(disk), _) => Arc::clone(disk),
            (None, Ok(roots)) => Arc::clone(&roots.disk),
            // A file that is named is read whatever is wrong with the configuration.
            (None, Err(_)) => Arc::new(RealDisk),
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
        self.errors.error(&failure_of(error));
    }

    /// Writes a failure to standard error.
    pub(crate) fn report(&self, failure: impl Into<Failure>) {
        self.errors.error(&failure.into());
    }

    /// Writes a note to standard error, unless `--quiet` is given.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Writes a note to standard error, even with `--quiet`.
    pub(crate) fn warn(&self, text: &str) {
        self.errors.note(text);
    }

    /// Returns whether errors are records.
    pub(crate) fn is_json(&self) -> bool {
        self.errors.is_json()
    }

    /// Writes errors as records from now on, as with `--json`.
    pub(crate) fn reports_in_json(&mut self) {
        self.errors = self.errors.as_json();
    }

    /// Writes a text for people, broken at spaces where the terminal ends; `indent` is before the second line and all others.
    pub(crate) fn write_wrapped(
        &self,
        out: &mut dyn Write,
        text: &str,
        indent: &str,
        style: TextStyle,
    ) -> io::Result<()> {
        for line in self.broken(text, indent) {
            let words = line.trim_start();
            let (margin, _) = line.split_at(line.len() - words.len());
            writeln!(out, "{margin}{style}{words}{style:#}")?;
        }
        Ok(())
    }

    /// Writes a text as [`Self::write_wrapped`] does, with a style for a part of it.
    pub(crate) fn write_marked(
        &self,
        out: &mut dyn Write,
        text: &str,
        indent: &str,
        part: &str,
        style: TextStyle,
    ) -> io::Result<()> {
        let mut is_marked = false;
        for line in self.broken(text, indent) {
            match line.split_once(part).filter(|_| !is_marked) {
                Some((before, after)) => {
                    is_marked = true;
                    writeln!(out, "{before}{style}{part}{style:#}{after}")?;
                }
                None => writeln!(out, "{line}")?,
            }
        }
        Ok(())
    }

    fn broken(&self, text: &str, indent: &str) -> Vec<String> {
        let Some(width) = self.terminal else {
            return vec![text.to_owned()];
        };
        let mut broken = lines(text, Some(width));
        let first = broken.next().unwrap_or_default();
        let rest = text[first.len()..].trim_start();
        let columns = width.saturating_sub(indent.len());
        let rest = lines(rest, Some(columns)).filter(|line| !line.is_empty());
        let rest = rest.map(|line| format!("{indent}{line}"));
        std::iter::once(first.to_owned()).chain(rest).collect()
    }
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
