//! `transcript export`: writes a session to a file for others.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use transcript_engine::redact::RedactedDisk;
use transcript_ops::hand_over::{self as ops, FILE_FORMATS};
use transcript_render::Escaping;
use transcript_storage::{ReadDisk, RealDisk, folder_of};

use crate::export_target::Target;
use crate::filter::EntryFilter;
use crate::hand_over::{NewSessionArgs, losses_in_line};
use crate::pager::Output;
use crate::path_args::PathArgs;
use crate::redact_args::RedactArgs;
use crate::replay::{self, Format};
use crate::ui::{ToolDetail, Ui};
use crate::{exit, session};

/// Write a session to a file to share it, without secrets
///
/// Keys, tokens, private keys, passwords and cookies are replaced by their kinds, such as `[redacted: password]`, whatever the
/// format. Standard error says which kinds on which lines, what looks like a secret and was left, and how much was
/// searched: never a value. No search finds everything: check the file before you share it.
#[derive(Debug, ClapArgs)]
#[command(group(clap::ArgGroup::new("format").required(true).args(["html", "markdown", "json", "plain_text", "to"])))]
pub(crate) struct Args {
    /// A .jsonl file, a session id or the start of one, or `latest`; append `:LINE`, as `search` prints
    /// it, to stop at that line
    #[arg(default_value = "latest")]
    session: PathBuf,
    #[command(flatten)]
    path_args: PathArgs,
    /// Write a self-contained HTML page to FILE (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Markdown to FILE
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write JSON Lines to FILE, as `replay --json` prints them
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write plain text to FILE
    #[arg(long, value_name = "FILE", alias = "text")]
    plain_text: Option<PathBuf>,
    /// Write the conversation that goes to the model next in this format: atif (Agent Trajectory Interchange Format) or acp (Agent Client
    /// Protocol)
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(FILE_FORMATS),
        conflicts_with_all = ["sidechains", "thinking", "conversation_only", "plain", "no_lines", "json_report"])]
    to: Option<String>,
    /// File of the format [default: standard output]
    #[arg(long, short, value_name = "FILE", requires = "to")]
    out: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
    /// Do not redact secrets
    #[arg(long, conflicts_with_all = ["emails", "names", "also", "except", "json_report"])]
    no_redact: bool,
    #[command(flatten)]
    redact: RedactArgs,
    /// Write a list of the redactions to FILE, as JSON Lines
    #[arg(long, value_name = "FILE")]
    json_report: Option<PathBuf>,
    /// Include subagents; an HTML page always has them, folded
    #[arg(long)]
    sidechains: bool,
    /// Include thinking blocks; an HTML page always has them, folded
    #[arg(long)]
    thinking: bool,
    /// Omit subagents, branches and thinking from an HTML page
    #[arg(long, conflicts_with_all = ["sidechains", "thinking"])]
    conversation_only: bool,
    /// Compress nothing in an HTML page, so that it can be read without scripts
    #[arg(long)]
    plain: bool,
    /// Omit the lines of the session, which `transcript import` reads, from an HTML page
    #[arg(long)]
    no_lines: bool,
    /// How much of tool calls and results to write
    #[arg(long, value_enum, default_value_t = ToolDetail::Short)]
    tools: ToolDetail,
}

pub(crate) fn run(ui: &mut Ui, mut args: Args) -> Result<u8> {
    if args.session == Path::new("-") {
        bail!("standard input cannot be exported: name a file, or a session");
    }
    if let Some(to) = &args.to {
        let to = to.clone();
        return write_format(ui, args, &to);
    }
    let formats = [
        (Format::Html, args.html),
        (Format::Markdown, args.markdown),
        (Format::Json, args.json),
        (Format::Text, args.plain_text),
    ];
    let mut chosen = formats.into_iter();
    let chosen = chosen.find_map(|(format, file)| Some((format, file?)));
    let (format, file) = chosen.context("no format")?;
    for file in [&file].into_iter().chain(&args.json_report) {
        if !Output::can_write(ui, file, args.force)? {
            return Ok(exit::NO);
        }
    }
    if let Some(report) = &args.json_report
        && is_same_output(&file, report)
    {
        let file = file.display();
        bail!("{file}: the session and --json-report need two different files");
    }
    args.path_args.take_line(&mut args.session);
    let mut redacted = None;
    if !args.no_redact {
        let disk = Arc::new(RedactedDisk::new(ui.disk(), args.redact.redactor(ui)?));
        ui.read_from(Arc::clone(&disk) as _);
        redacted = Some(disk);
    }
    // A file is not a terminal.
    let render = ui.render.clone().coloured(false);
    ui.render = render.escaping(Escaping::Visible);
    let is_whole = !args.path_args.names_an_entry();
    let target = Target {
        file,
        replaces: args.force,
        redacted,
        report: args.json_report,
        is_plain: args.plain,
        // An entry that the page omits must not be in its lines either: they are as public as the page.
        has_lines: !args.no_lines && !args.conversation_only && is_whole,
    };
    // A page folds subagents, branches and thinking, so it includes them by default.
    let includes_folded_parts = format == Format::Html && !args.conversation_only;
    let has_branches = includes_folded_parts && is_whole;
    let mut filter = EntryFilter::default();
    filter.common.sidechains = args.sidechains || includes_folded_parts;
    let replay = replay::Args {
        session: args.session,
        path_args: args.path_args,
        all_branches: has_branches,
        filter,
        format,
        thinking: args.thinking || includes_folded_parts,
        tools: args.tools,
        target: Some(target),
        ..replay::Args::default()
    };
    replay::run(ui, replay)
}

/// Writes the conversation that goes to the model next in a format for other programs.
fn write_format(ui: &Ui, mut args: Args, to: &str) -> Result<u8> {
    let file = args.out.take().unwrap_or_else(|| "-".into());
    if !Output::can_write(ui, &file, args.force)? {
        return Ok(exit::NO);
    }
    args.path_args.take_line(&mut args.session);
    let new = NewSessionArgs::default();
    let mut settings = new.settings(ui, &args.session, to, &args.path_args)?;
    if !args.no_redact {
        settings.redactor = Some(args.redact.redactor(ui)?);
    }
    let mut out = Output::named(&file, args.force)?;
    let record = ops::convert(&settings, &session::context(ui), &mut out)?;
    out.finish()?;
    ui.note(&losses_in_line(&record));
    if record.redactions.is_some() {
        ui.note("no search finds everything: check the file before you share it");
    }
    Ok(exit::DONE)
}

/// Returns whether two outputs are one file, whatever leads there.
fn is_same_output(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| {
        let real = |path| RealDisk.real_path(path).ok();
        real(path).or_else(|| Some(real(folder_of(path))?.join(path.file_name()?)))
    };
    let identity = |path: &Path| RealDisk.metadata(path).ok().map(|found| found.identity);
    let is_same_file = identity(one).is_some() && identity(one) == identity(other);
    one == other || is_same_file || (real(one).is_some() && real(one) == real(other))
}
