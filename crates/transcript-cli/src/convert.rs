//! `transcript convert`: writes sessions in the format of another agent, or of another program.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use transcript_ops::context::Listed;
use transcript_ops::hand_over::{self as ops, AGENTS, FILE_FORMATS, HandOverSettings};
use transcript_ops::wire::{HandOverRecord, WrittenFileRecord};
use transcript_render::count;
use transcript_storage::{ReadDisk, RealDisk};

use crate::hand_over::{NewSessionArgs, losses_in_line};
use crate::pager::Output;
use crate::path_args::PathArgs;
use crate::redact_args::RedactArgs;
use crate::ui::Ui;
use crate::{exit, record, session};

/// Write sessions in the format of another agent or program
///
/// Writes the conversation that goes to the model next, and says on standard error what of it is lost. `transcript resume --to` writes
/// it where the agent finds it.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Sessions of any agent: .jsonl files, session ids or the starts of them, or `latest`; append `:LINE`, as `search` prints it, to
    /// stop at that line; or files in ATIF or ACP
    #[arg(
        value_name = "SESSION",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    sessions: Vec<PathBuf>,
    /// Convert all sessions, or with --agent those of an agent
    #[arg(long, requires = "out", conflicts_with_all = ["leaf", "at"])]
    all: bool,
    #[command(flatten)]
    path_args: PathArgs,
    /// Agent, or format of files: atif (Agent Trajectory Interchange Format) or acp (Agent Client Protocol)
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(AGENTS.into_iter().chain(FILE_FORMATS)))]
    to: String,
    #[command(flatten)]
    new: NewSessionArgs,
    /// File ending in .json or .jsonl; else a folder, which gets the files as the home folder of the agent has them [default:
    /// standard output]
    #[arg(long, short, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// Replace a file that exists
    #[arg(long)]
    force: bool,
    /// Replace what looks like a secret
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    redact_args: RedactArgs,
    /// Print a JSON object for each session: where it is written and what is lost
    #[arg(long)]
    json: bool,
}

/// Where converted sessions go.
enum Destination<'a> {
    StandardOutput,
    File(&'a Path),
    Folder(&'a Path),
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    transcript_engine::ignore_file_size_signal();
    let destination = Destination::of(args.out.as_deref());
    let sessions = args.sessions(ui)?;
    if sessions.len() > 1 {
        if !matches!(destination, Destination::Folder(_)) {
            bail!("several sessions need a folder: name it with --out DIR");
        }
        if args.new.has_title() || args.path_args.names_an_entry() {
            bail!("--title, --at and --leaf are for one session");
        }
    }
    if let Destination::File(file) = destination
        && !Output::can_write(ui, file, args.force)?
    {
        return Ok(exit::NO);
    }
    let is_one = sessions.len() == 1 && !args.all;
    let mut failures = 0;
    for session in &sessions {
        match args.convert(ui, session, &destination) {
            Ok(record) => args.report(ui, &record, &destination)?,
            Err(error) if is_one => return Err(error),
            Err(error) => {
                failures += 1;
                ui.complain(&error);
            }
        }
    }
    if failures > 0 {
        ui.note(&format!("{} not converted", count(failures, "session")));
    }
    Ok(exit::done_if(failures == 0))
}

impl<'a> Destination<'a> {
    fn of(out: Option<&'a Path>) -> Self {
        let Some(out) = out.filter(|out| *out != Path::new("-")) else {
            return Self::StandardOutput;
        };
        let extension = out.extension().unwrap_or_default();
        let is_file_name = extension == "json" || extension == "jsonl";
        if is_file_name && !RealDisk.is_folder(out) {
            return Self::File(out);
        }
        Self::Folder(out)
    }
}

impl Args {
    /// Returns the sessions that are named, or all.
    fn sessions(&self, ui: &Ui) -> Result<Vec<PathBuf>> {
        if !self.all {
            return Ok(self.sessions.clone());
        }
        let listing = session::context(ui).listing(Listed::Live)?;
        let rows = listing.rows.into_iter().filter(|row| row.has_conversation);
        Ok(rows.map(|row| row.path).collect())
    }

    fn convert(
        &self,
        ui: &Ui,
        session: &Path,
        destination: &Destination<'_>,
    ) -> Result<HandOverRecord> {
        let mut settings = self.settings(ui, session)?;
        let context = session::context(ui);
        match destination {
            Destination::Folder(folder) => {
                settings.target_home = Some((*folder).to_owned());
                settings.creates_home = true;
                settings.write = true;
                Ok(ops::hand_over(&settings, &context)?)
            }
            // The records are what is printed.
            Destination::StandardOutput if self.json => {
                let mut record = ops::convert(&settings, &context, &mut io::sink())?;
                record.written = false;
                Ok(record)
            }
            Destination::StandardOutput => {
                let mut out = Output::plain();
                let record = ops::convert(&settings, &context, &mut out)?;
                out.finish()?;
                Ok(record)
            }
            Destination::File(file) => {
                let mut out = Counted {
                    output: Output::named(file, self.force)?,
                    len: 0,
                };
                let mut record = ops::convert(&settings, &context, &mut out)?;
                let bytes = out.len;
                out.output.finish()?;
                record
                    .files
                    .push(WrittenFileRecord::new((*file).to_owned(), bytes));
                Ok(record)
            }
        }
    }

    fn settings(&self, ui: &Ui, session: &Path) -> Result<HandOverSettings> {
        let mut path_args = self.path_args.clone();
        let mut session = session.to_owned();
        path_args.take_line(&mut session);
        let mut settings = self.new.settings(ui, &session, &self.to, &path_args)?;
        settings.redactor = self.redact_args.if_wanted(ui, self.redact)?;
        Ok(settings)
    }

    /// Prints the record or, for people, where the session is; and what is lost.
    fn report(&self, ui: &Ui, record: &HandOverRecord, to: &Destination<'_>) -> Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            return record::write(&mut out, record);
        }
        if let (Some(file), Destination::Folder(_)) = (record.files.first(), to) {
            writeln!(out, "{}", ui.whole_path(&file.path))?;
        }
        ui.note(&losses_in_line(record));
        Ok(())
    }
}

/// Counts the bytes that are written.
struct Counted {
    output: Output,
    len: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.output.write(bytes)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
