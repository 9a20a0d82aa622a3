//! `transcript replay`: prints a conversation for people or for programs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use transcript_engine::History;
use transcript_engine::catalog::usage::{CallPrices, Prices};
use transcript_engine::redact::RedactedDisk;
use transcript_engine::wire::{
    EntryRecord, ReplayBranch, ReplayEnd, ReplayHead, ReplayRecord, ReplaySidechain,
};
use transcript_format::finding::{Finding, Severity};
use transcript_page::{PageFile, write_page};
use transcript_reader::{Bodies, EntryNo, Id, Source, subagents_on};
use transcript_render::{
    CallPrice, Header, Pace, PartKind, ReplayPrinter, SessionPart, ShownFile, ShownSession,
    WantedParts, count, explain, tokens_in_words, usage, write_markdown,
};
use transcript_resume::items::{Cut, Origin, sidechains};
use transcript_resume::{ConversationPath, Story, Tree};

use crate::export_target::Target;
use crate::filter::{EntryFilter, Selection};
use crate::pager::Output;
use crate::path_args::PathArgs;
use crate::progress::Progress;
use crate::redact_args::RedactArgs;
use crate::ui::{ToolDetail, Ui};
use crate::{exit, record, session};

/// Print the conversation of a session
///
/// Prints the messages from the first entry to the leaf, each tool call with its result. What was
/// compacted away comes first, in chapters that end with a rule. On a terminal the output goes
/// through $PAGER.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A .jsonl file, a session id or the start of one, `latest`, or - for standard input; with :LINE,
    /// as search prints it, up to there
    #[arg(default_value = "latest")]
    session: PathBuf,
    #[command(flatten)]
    path_args: PathArgs,
    /// Show only what the model sees now: the conversation from its last compaction on
    #[arg(long)]
    context: bool,
    /// Also show the branches that leave the conversation, each once
    #[arg(long, conflicts_with_all = ["leaf", "at"])]
    all_branches: bool,
    #[command(flatten)]
    filter: EntryFilter,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Add the whole raw line to each entry of the JSON output
    #[arg(long)]
    raw_entries: bool,
    /// Show thinking blocks
    #[arg(long)]
    thinking: bool,
    /// How much of tool calls and results to show
    #[arg(long, value_enum, default_value_t = ToolDetail::Short)]
    tools: ToolDetail,
    /// Replay with the recorded pauses, X times faster; each pause takes at most 3 seconds
    #[arg(long, value_name = "X", value_parser = parse_speed)]
    speed: Option<f64>,
    /// Show the line and the start of the id of each entry, as --at and --leaf take them
    #[arg(long)]
    ids: bool,
    /// Print the decisions that led to the path, and the findings, to standard error
    #[arg(long)]
    explain: bool,
    /// Show no secrets: each is replaced by its kind
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    redact_args: RedactArgs,
    /// The file to write instead of standard output.
    #[arg(skip)]
    target: Option<Target>,
}

impl Args {
    /// An export of a session, which shows no more than a replay does by default.
    pub(crate) fn of_export(
        session: PathBuf,
        path_args: PathArgs,
        format: Format,
        target: Target,
    ) -> Self {
        Self {
            session,
            path_args,
            context: false,
            all_branches: false,
            filter: EntryFilter::default(),
            format,
            json: false,
            raw_entries: false,
            thinking: false,
            tools: ToolDetail::Short,
            speed: None,
            ids: false,
            explain: false,
            redact: false,
            redact_args: RedactArgs::default(),
            target: Some(target),
        }
    }

    /// Shows branches too.
    pub(crate) fn with_branches(mut self) -> Self {
        self.all_branches = true;
        self
    }

    /// Shows subagents, thinking, and this part of tool calls.
    pub(crate) fn details(mut self, sidechains: bool, thinking: bool, tools: ToolDetail) -> Self {
        self.filter.common.sidechains = sidechains;
        self.thinking = thinking;
        self.tools = tools;
        self
    }

    /// Opens the output: of text for people, a pager if there is a terminal.
    fn open(&self, is_paged: bool) -> Result<Output> {
        match &self.target {
            Some(target) => target.open(),
            None if is_paged => Ok(Output::paged()),
            None => Ok(Output::plain()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// Markdown
    Markdown,
    /// One HTML page that needs nothing else
    Html,
    /// JSON Lines
    Json,
    /// Line, offset and uuid; reads no bodies
    Ids,
}

pub(crate) fn run(ui: &mut Ui, mut args: Args) -> Result<u8> {
    if let Some(redactor) = args.redact_args.if_wanted(ui, args.redact)? {
        if args.session == Path::new("-") {
            bail!("standard input cannot be redacted: name a file, or a session");
        }
        ui.read_from(Arc::new(RedactedDisk::new(ui.disk(), redactor)));
    }
    let ui = &*ui;
    args.path_args.take_line(&mut args.session);
    let args = &args;
    let format = if args.json { Format::Json } else { args.format };
    if args.speed.is_some() && format != Format::Text {
        bail!("--speed works with the text format only");
    }
    let selection = args.filter.selection()?;
    let project = args.filter.common.project.as_deref();
    let (session, progress) = session::open_in(ui, &args.session, project)?;
    if let Some(target) = &args.target {
        target.check(ui, session.source().path())?;
    }
    let tree = session.tree(args.path_args.policy());
    let (tree, story) = match args.context {
        true => {
            let path = args.path_args.path(&tree)?;
            (tree, Story::from(path))
        }
        false => args.path_args.story(tree)?,
    };
    let path = &story.path;
    let parts = parts(args, &session, &tree, &story, &selection)?;
    let mut out = None;
    let written = match format {
        Format::Text | Format::Markdown | Format::Html => write_text(
            ui,
            &mut out,
            args,
            (&session, progress),
            (&tree, &story),
            &parts,
            &selection,
        ),
        Format::Ids | Format::Json => {
            drop(progress);
            let out = out.insert(args.open(false)?);
            match format {
                Format::Ids => write_ids(ui, out, &session, &parts),
                _ => write_json(ui, out, args, &session, &tree, &story, &parts),
            }
        }
    };
    match (written, out) {
        (Err(error), Some(out)) if out.is_closed(&error) => out.finish()?,
        (Err(error), _) => return Err(error),
        (Ok(()), Some(out)) => match &args.target {
            Some(target) => target.finish(ui, out)?,
            None => out.finish()?,
        },
        (Ok(()), None) => {}
    }
    if args.explain {
        explain::write(&mut io::stderr().lock(), &tree, path)?;
    } else {
        print_finding_count(ui, &tree, path);
    }
    Ok(exit::DONE)
}

/// Returns the conversation, followed by the requested branches and subagents.
fn parts(
    args: &Args,
    session: &History,
    tree: &Tree<'_>,
    story: &Story,
    selection: &Selection<'_>,
) -> Result<Vec<SessionPart>> {
    let wanted = WantedParts {
        branches: args.all_branches,
        sidechains: args.filter.common.sidechains,
        context: args.context,
    };
    let mut parts = SessionPart::of_story(tree, story, wanted);
    for part in &mut parts {
        selection.apply(session.source(), tree.index(), &mut part.path)?;
    }
    Ok(parts)
}

fn write_text(
    ui: &Ui,
    out: &mut Option<Output>,
    args: &Args,
    (session, progress): (&History, Progress),
    (tree, story): (&Tree<'_>, &Story),
    parts: &[SessionPart],
    selection: &Selection<'_>,
) -> Result<()> {
    let closed: Vec<EntryNo> = story.boundaries().collect();
    let file = session.source().path();
    // If the files of subagents cannot be listed, the conversation itself is still printed.
    let found = match file.to_str() {
        Some("-") => Vec::new(),
        _ => subagents_on(&ui.disk(), file).unwrap_or_default(),
    };
    let in_this_file = sidechains(tree).len();
    let mut agents = Vec::new();
    if args.filter.common.sidechains {
        for agent in &found {
            let history = progress.read(Source::open_on(&ui.disk(), &agent.path)?)?;
            agents.push((Origin::from(agent), history));
        }
    }
    let options = ui.render.clone();
    let options = options
        .thinking(args.thinking)
        .tools(args.tools.tools())
        .ids(args.ids);
    let main_path = parts.first().map(|main| main.path.clone());
    let main_path = main_path.unwrap_or_default();
    let mut header = Header::read(
        session.source(),
        session.session_id(),
        tree,
        &main_path,
        &options,
    )?;
    // An export is for others, who cannot continue the session here.
    if args.target.is_none() {
        header.command = args.path_args.continue_command(ui, session);
    }
    // A subagent is printed below its call, and a pause is between items: both need the whole list.
    let is_page = args.format == Format::Html;
    let is_whole = match is_page {
        true => parts.len() > 1 || !agents.is_empty(),
        false => args.filter.common.sidechains || args.all_branches || args.speed.is_some(),
    };
    let cut = if is_page {
        Cut::Anywhere
    } else {
        Cut::AtPrompts
    };
    let source = session.source();
    let main = ShownFile {
        source,
        index: session.index(),
        chapters: (!args.context).then_some(&closed),
        escaping: ui.escaping,
    };
    let mut shown = ShownSession::read(main, tree, parts, (!is_whole).then_some(cut))?;
    for (origin, history) in &agents {
        let mut tree = history.tree(args.path_args.policy());
        let mut path = tree.path();
        if !args.context {
            tree = tree.unspliced();
            path = tree.story(&path).path;
        }
        selection.apply(history.source(), history.index(), &mut path)?;
        let file = ShownFile {
            source: history.source(),
            index: history.index(),
            ..main
        };
        shown.add_agent(origin.clone(), file, &tree, &path)?;
    }
    let shown = shown.ordered();
    let is_document = matches!(args.format, Format::Markdown | Format::Html);
    let usage = match is_document {
        true => usage(session.source(), tree.index(), &main_path)?,
        false => Vec::new(),
    };
    drop(progress);
    let out = out.insert(args.open(args.speed.is_none())?);
    if is_page {
        let mut bytes = session.source().len();
        bytes += agents
            .iter()
            .map(|(_, agent)| agent.source().len())
            .sum::<u64>();
        let page = PageFile {
            shown: shown.html(),
            header: &header,
            facts: tokens_in_words(&usage).into_iter().collect(),
            options: &options.price(prices()),
            escaping: ui.escaping,
            bytes,
            is_plain: args.target.as_ref().is_none_or(Target::is_plain),
            lines: args
                .target
                .as_ref()
                .filter(|target| target.has_lines())
                .map(|_| source),
        };
        write_page(out, &page)?;
    } else if is_document {
        write_markdown(out, &shown.conversations, &header, &usage, &options)?;
    } else {
        let mut sleep = std::thread::sleep;
        let pace = Pace::new(args.speed, &mut sleep);
        let branches = shown.branch_numbers();
        let (conversations, nesting) = (&shown.conversations, shown.nesting);
        let mut printer = ReplayPrinter::new(out, &options, conversations, nesting, pace);
        printer.head(&header)?;
        printer.print(0)?;
        for branch in branches {
            printer.print(branch)?;
        }
        printer.foot(&header)?;
    }
    let hidden = found.len() + in_this_file;
    if !args.filter.common.sidechains && hidden > 0 {
        let hidden = count(hidden, "subagent");
        ui.note(&format!("note: {hidden}; --sidechains shows them"));
    }
    Ok(())
}

/// Returns what calls cost by the prices that are part of the program.
fn prices() -> CallPrice {
    let prices = CallPrices::new(Prices::embedded());
    CallPrice::new(move |model, usage| prices.cost(model, usage))
}

/// Prints the number of damage findings. Findings that are only notes are shown by `--explain`.
pub(crate) fn print_finding_count(ui: &Ui, tree: &Tree<'_>, path: &ConversationPath) {
    if ui.quiet {
        return;
    }
    if let Some(refusal) = path.refusal {
        let words = explain::describe_refusal(tree.index(), refusal);
        ui.note(&format!("note: {words}"));
    }
    let is_damage = |finding: &Finding| finding.code.severity() == Severity::Damage;
    let findings = explain::findings(tree, path);
    let damage = findings.into_iter().filter(is_damage).count();
    if damage > 0 {
        let findings = count(damage, "finding");
        ui.note(&format!("note: {findings}; --explain lists them"));
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

fn write_json(
    ui: &Ui,
    out: &mut impl Write,
    args: &Args,
    session: &History,
    tree: &Tree<'_>,
    story: &Story,
    parts: &[SessionPart],
) -> Result<()> {
    let path = &story.path;
    let mut head = ReplayHead::new(session, tree, path);
    if !args.context {
        head = head.with_chapters(story.chapters.len());
    }
    if args.target.is_some() {
        // Others need not know the folders above it.
        let name = session.source().path().file_name().unwrap_or_default();
        head.path = name.to_string_lossy().into_owned();
    }
    record::write(out, &ReplayRecord::Session(head))?;
    let index = session.index();
    let mut bodies = Bodies::new(session.source());
    for part in parts {
        match &part.kind {
            PartKind::Main => {}
            PartKind::Branch { from } => {
                let branch = ReplayBranch::new(session, *from, &part.path);
                record::write(out, &ReplayRecord::Branch(branch))?;
            }
            PartKind::Sidechain(origin) => {
                let sidechain = ReplaySidechain::new(origin.agent.as_deref());
                record::write(out, &ReplayRecord::Sidechain(sidechain))?;
            }
        }
        for entry in &part.path.entries {
            let entry_ref = index.entry(entry.entry_no());
            let body = bodies.get(&entry_ref)?;
            EntryRecord::new(index, &entry_ref, body.text, entry, args.raw_entries)
                .write(out, |json| ui.verbatim(json))?;
        }
    }
    let findings = explain::findings(tree, path).len();
    record::write(out, &ReplayRecord::End(ReplayEnd::new(findings, path)))
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
