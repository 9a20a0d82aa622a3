//! `transcript replay`: prints a conversation for people or for programs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use transcript_engine::History;
use transcript_engine::redact::RedactedDisk;
use transcript_format::finding::{Finding, Severity};
use transcript_ops::documents::{self, DocumentFormat, DocumentSettings, SelectEntries};
use transcript_ops::entries::Conversation;
use transcript_ops::items::write_items;
use transcript_ops::selection::EntrySelection;
use transcript_reader::{Id, subagents_on};
use transcript_render::{Pace, ReplayPrinter, SessionPart, count, explain};
use transcript_resume::items::sidechains;
use transcript_resume::{ConversationPath, Tree};

use crate::export_target::Target;
use crate::filter::EntryFilter;
use crate::pager::Output;
use crate::path_args::PathArgs;
use crate::progress::Progress;
use crate::redact_args::RedactArgs;
use crate::ui::{ToolDetail, Ui};
use crate::{exit, record, session};

/// Print the conversation of a session
///
/// Prints the messages in order, each tool call with its result. Messages that a compaction removed
/// come first, in chapters that end with a rule. On a terminal the output goes
/// through $PAGER.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Args {
    /// A .jsonl file, a session id or the start of one, `latest`, or - for standard input; append
    /// `:LINE`, as `search` prints it, to stop at that line
    #[arg(default_value = "latest")]
    pub(crate) session: PathBuf,
    #[command(flatten)]
    pub(crate) path_args: PathArgs,
    /// Show only what the model sees now: the conversation since its last compaction
    #[arg(long = "in-context", alias = "context")]
    pub(crate) is_in_context: bool,
    /// Also show the other branches, such as rewound ones, each once
    #[arg(long, conflicts_with_all = ["leaf", "at"])]
    pub(crate) all_branches: bool,
    #[command(flatten)]
    pub(crate) filter: EntryFilter,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Add the whole raw line to each entry of the JSON output
    #[arg(long)]
    pub(crate) raw_entries: bool,
    /// Show thinking blocks
    #[arg(long)]
    pub(crate) thinking: bool,
    /// How much of tool calls and results to show
    #[arg(long, value_enum, default_value_t = ToolDetail::Short)]
    pub(crate) tools: ToolDetail,
    /// Replay with the recorded pauses, X times faster; each pause takes at most 3 seconds
    #[arg(long, value_name = "X", value_parser = parse_speed)]
    pub(crate) speed: Option<f64>,
    /// Show the line and the start of the id of each entry, as --at and --leaf take them
    #[arg(long)]
    pub(crate) ids: bool,
    /// Print to standard error why this conversation was chosen, and what is damaged
    #[arg(long)]
    pub(crate) explain: bool,
    /// Replace each secret by its kind
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) redact_args: RedactArgs,
    /// The file to write instead of standard output.
    #[arg(skip)]
    pub(crate) target: Option<Target>,
}

impl Args {
    /// Opens the output: of text for people, a pager if there is a terminal.
    fn open(&self, is_paged: bool) -> Result<Output> {
        match &self.target {
            Some(target) => target.open(),
            None if is_paged => Ok(Output::paged()),
            None => Ok(Output::plain()),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// Markdown
    Markdown,
    /// One self-contained HTML page
    Html,
    /// JSON Lines
    Json,
    /// Line, offset and uuid; reads no bodies
    Ids,
    /// One JSON object: what goes to the model, branches, compacted items; of any agent in the same form
    Items,
}

pub(crate) fn run(ui: &mut Ui, mut args: Args) -> Result<u8> {
    if let Some(redactor) = args.redact_args.if_wanted(ui, args.redact)? {
        if args.session == Path::new("-") {
            bail!("standard input cannot be redacted: name a file, or a session");
        }
        ui.read_from(Arc::new(RedactedDisk::new(ui.disk(), redactor)));
    }
    if args.format == Format::Json && args.target.is_none() {
        // The same as `--json`.
        ui.reports_in_json();
    }
    let ui = &*ui;
    session::follow_policy(ui, args.path_args.policy());
    args.path_args.take_line(&mut args.session);
    let args = &args;
    let format = if args.json { Format::Json } else { args.format };
    if args.speed.is_some() && format != Format::Text {
        bail!("--speed works with the text format only");
    }
    let selection = args.filter.selection()?;
    let project = args.filter.common.project.as_deref();
    let (session, progress) = session::open(ui, &args.session, project)?;
    if let Some(target) = &args.target {
        target.check(ui, session.source().path())?;
    }
    let (policy, end) = (args.path_args.policy(), args.path_args.end());
    let conversation = Conversation::new(&session, policy, &end, args.is_in_context)?;
    let mut parts = conversation.parts(args.all_branches, args.filter.common.sidechains);
    for part in &mut parts {
        selection.apply(session.source(), session.index(), &mut part.path)?;
    }
    let mut out = None;
    let written = match format {
        Format::Ids => {
            drop(progress);
            write_ids(ui, out.insert(args.open(false)?), &session, &parts)
        }
        Format::Items => {
            drop(progress);
            let out = out.insert(args.open(false)?);
            let written = write_items(&conversation, (policy, &end), &session::context(ui), out);
            written
                .map_err(anyhow::Error::from)
                .and_then(|()| Ok(writeln!(out)?))
        }
        Format::Json => {
            drop(progress);
            // Others need not know the folders above it.
            let file = session.source().path().file_name().unwrap_or_default();
            let name = file.to_string_lossy();
            let name = args.target.is_some().then_some(&*name);
            record::print(ui, out.insert(args.open(false)?), |sink| {
                conversation.write(&parts, args.raw_entries, name, sink)
            })
        }
        Format::Text | Format::Markdown | Format::Html => write_document(
            ui,
            &mut out,
            args,
            (format, progress),
            &conversation,
            &parts,
            &selection,
        ),
    };
    match (out, &args.target) {
        (Some(out), Some(target)) if written.is_ok() => target.finish(ui, out)?,
        (Some(out), _) => _ = out.finish_after(written)?,
        (None, _) => written?,
    }
    let (tree, path) = (&conversation.tree, &conversation.story.path);
    if args.explain {
        explain::write(&mut io::stderr().lock(), tree, path)?;
    } else {
        print_finding_count(ui, tree, path);
    }
    note_imported(ui, &session)?;
    Ok(exit::DONE)
}

/// The maximum number of notes about the session of another agent.
const MAX_IMPORT_NOTES: usize = 5;

/// Notes what the session of another agent lacks.
pub(crate) fn note_imported(ui: &Ui, session: &History) -> Result<()> {
    if ui.quiet {
        return Ok(());
    }
    let findings = transcript_ops::verify::imported_findings(session.index(), session.source())?;
    for finding in findings.iter().take(MAX_IMPORT_NOTES) {
        ui.note(&ui.escaping.one_line(&finding.detail));
    }
    if findings.len() > MAX_IMPORT_NOTES {
        let more = count(findings.len() - MAX_IMPORT_NOTES, "more finding");
        ui.note(&format!("{more}; `transcript verify` lists them"));
    }
    Ok(())
}

/// Writes a page, Markdown, or text for people.
fn write_document(
    ui: &Ui,
    out: &mut Option<Output>,
    args: &Args,
    (format, progress): (Format, Progress),
    conversation: &Conversation<'_>,
    parts: &[SessionPart],
    selection: &EntrySelection,
) -> Result<()> {
    let has_sidechains = args.filter.common.sidechains;
    let session = conversation.history;
    let is_stdin = session.source().path() == Path::new("-");
    let context = progress.of(session::context(ui));
    let mut agents = Vec::new();
    if has_sidechains && !is_stdin {
        agents = conversation.agents(&context)?;
    }
    let render = ui.render.clone();
    let render = render
        .thinking(args.thinking)
        .tools(args.tools.tools())
        .ids(args.ids);
    let settings = DocumentSettings {
        format: match format {
            Format::Html => DocumentFormat::Html,
            Format::Markdown => DocumentFormat::Markdown,
            _ => DocumentFormat::Text,
        },
        render: render.clone(),
        escaping: ui.escaping,
        // A subagent is printed below its call, and a pause is between items: both need the whole list.
        is_whole: has_sidechains || args.all_branches || args.speed.is_some(),
        is_plain: args.target.as_ref().is_none_or(|target| target.is_plain),
        has_lines: args.target.as_ref().is_some_and(|target| target.has_lines),
    };
    let select: SelectEntries<'_> = &|source, index, path| {
        let applied = selection.apply(source, index, path);
        applied.map_err(|error| documents::Error::Select(error.into()))
    };
    let policy = args.path_args.policy();
    let document = conversation.document(parts, (&agents, policy), settings, select);
    let mut document = document.map_err(document_error)?;
    // An export is for others, who cannot continue the session here.
    if args.target.is_none() {
        document.header.command = args.path_args.continue_command(ui, session);
    }
    drop(progress);
    let out = out.insert(args.open(args.speed.is_none())?);
    if format == Format::Text {
        let mut sleep = std::thread::sleep;
        let pace = Pace::new(args.speed, &mut sleep);
        let branches = document.shown.branch_numbers();
        let (conversations, nesting) = (&document.shown.conversations, document.shown.nesting);
        let mut printer = ReplayPrinter::new(out, &render, conversations, nesting, pace);
        printer.head(&document.header)?;
        printer.print(0)?;
        for branch in branches {
            printer.print(branch)?;
        }
        printer.foot(&document.header)?;
    } else {
        document.write(out).map_err(document_error)?;
    }
    if !has_sidechains {
        note_subagents(ui, conversation, is_stdin);
    }
    Ok(())
}

/// Returns the error that a document failed with.
fn document_error(error: documents::Error) -> anyhow::Error {
    match error {
        documents::Error::Render(error) => error.into(),
        documents::Error::Page(error) => error.into(),
        error => error.into(),
    }
}

/// Prints the number of subagents that are not shown.
fn note_subagents(ui: &Ui, conversation: &Conversation<'_>, is_stdin: bool) {
    // If the files of subagents cannot be listed, the conversation itself is still printed.
    let file = conversation.history.source().path();
    let mut hidden = sidechains(&conversation.tree).len();
    if !is_stdin {
        hidden += subagents_on(&ui.disk(), file).map_or(0, |found| found.len());
    }
    if hidden > 0 {
        let hidden = count(hidden, "subagent");
        ui.note(&format!("{hidden}; --sidechains shows them"));
    }
}

/// Prints the number of damage findings. Findings that are only notes are shown by `--explain`.
pub(crate) fn print_finding_count(ui: &Ui, tree: &Tree<'_>, path: &ConversationPath) {
    if ui.quiet {
        return;
    }
    if let Some(refusal) = path.refusal {
        let words = explain::describe_refusal(tree.index(), refusal);
        ui.note(&words);
    }
    let is_damage = |finding: &Finding| finding.code.severity() == Severity::Damage;
    let findings = explain::findings(tree, path);
    let damage = findings.into_iter().filter(is_damage).count();
    if damage > 0 {
        let findings = count(damage, "finding");
        ui.note(&format!("{findings}; --explain lists them"));
    }
}

fn write_ids(
    ui: &Ui,
    out: &mut impl Write,
    session: &History,
    parts: &[SessionPart],
) -> Result<()> {
    let mut number = itoa::Buffer::new();
    let mut line = Vec::new();
    for entry in parts.iter().flat_map(|part| &part.path.entries) {
        let entry_ref = session.index().entry(entry.entry_no());
        line.clear();
        line.extend_from_slice(number.format(entry_ref.line()).as_bytes());
        line.push(b' ');
        line.extend_from_slice(number.format(entry_ref.offset()).as_bytes());
        line.push(b' ');
        match entry_ref.uuid() {
            Some(Id::Uuid(uuid)) => line.extend_from_slice(&uuid.text()),
            Some(odd) => {
                let text = session.index().id_text(odd);
                line.extend_from_slice(ui.escaping.one_line(&text).as_bytes());
            }
            None => line.push(b'-'),
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

/// Parses a speed: a positive number.
fn parse_speed(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('x').parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
        _ => Err("expected a number above 0, such as 1 or 20".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_positive_number() {
        assert_eq!(parse_speed("2.5x"), Ok(2.5));
        for text in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(parse_speed(text).is_err(), "{text}");
        }
    }
}
