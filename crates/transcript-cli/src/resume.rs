//! `transcript resume`: prints what a client needs to continue a session, or hands the session over to another agent.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use jiff::Zoned;
use transcript_engine::{Fit, Provider, parse_fit};
use transcript_format::client_version::ClientVersion;
use transcript_format::time;
use transcript_format::units::{grouped, size};
use transcript_messages::{Block, Message};
use transcript_ops::hand_over::AGENTS;
use transcript_ops::request::{BuiltRequest, RequestSettings, other_format, with_request};
use transcript_ops::wire::{self, ResumeRefusal, TokensRecord};
use transcript_reader::{EntryNo, Index};
use transcript_render::{Escaping, TextStyle, count, cut_text, explain, joined, minute};
use transcript_resume::{PathState, Policy};

use crate::hand_over::NewSessionArgs;
use crate::path_args::PathArgs;
use crate::progress::Progress;
use crate::ui::{Ui, terminal_width};
use crate::wrapping::lines;
use crate::{continuation, exit, hand_over, record, replay, session};

/// The width of the labels of a summary, in columns.
const LABEL_WIDTH: usize = 13;

/// Print the request that continues a session, or hand it over
///
/// Prints a summary: whether the session can be resumed, where it ends, how much is synthetic or
/// omitted, and the command that continues it. The exit code is 1 if the session cannot be resumed. With --to
/// another agent gets the conversation as a new session, which it lists, opens and continues.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A .jsonl file, a session id or the start of one, `latest`, or - for standard input; append
    /// `:LINE`, as `search` prints it, to stop at that line
    #[arg(default_value = "latest")]
    session: PathBuf,
    #[command(flatten)]
    path_args: PathArgs,
    /// Hand the session over to this agent: without --write, say what would be written, where, and what would be lost
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(AGENTS),
        conflicts_with_all = ["prompt", "model", "fit", "provider", "tools", "client_version", "request", "explain", "whole_file"])]
    to: Option<String>,
    /// Write the new session; no file is overwritten
    #[arg(long, requires = "to")]
    write: bool,
    /// Home folder of the agent that gets the session [default: that of this user, such as ~/.codex]
    #[arg(long, alias = "target-root", value_name = "DIR", requires = "to")]
    target_home: Option<PathBuf>,
    #[command(flatten)]
    new: NewSessionArgs,
    /// Add this as the next user message
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Model that will get the request [default: the model of the last answer]
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Omit the oldest media, results and turns until the request has at most this many tokens, such
    /// as 150k, or fits the context window of this model
    #[arg(long, value_name = "TOKENS|MODEL", value_parser = fit)]
    fit: Option<Fit>,
    /// Number of turns at the end that --fit never changes
    #[arg(long, value_name = "COUNT", default_value_t = 2, requires = "fit")]
    fit_turns: usize,
    /// Provider that accepts the request: messages (the Messages API), converse (Amazon Bedrock) or
    /// vertex (Google Vertex AI) [default: messages]
    #[arg(long, value_name = "NAME")]
    provider: Option<Provider>,
    /// Names of the tools of the request: references to others, which a tool search left, are omitted
    /// [default: every reference is kept; with --policy vendor those to tools of Claude Code]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// Version of Claude Code whose rules apply, such as 2.1.331 [default: that of the last line that
    /// names one]
    #[arg(long, value_name = "VERSION")]
    client_version: Option<ClientVersion>,
    /// Print only the messages, as JSON
    #[arg(long)]
    request: bool,
    /// Print everything as one JSON object
    #[arg(long, conflicts_with = "request")]
    json: bool,
    /// List what is synthetic or omitted; and print to standard error why this conversation was chosen,
    /// and what is damaged
    #[arg(long)]
    explain: bool,
    /// Read the whole file even if its end is enough for the conversation
    #[arg(long, alias = "full")]
    whole_file: bool,
}

/// Parses the value of `--fit`.
fn fit(text: &str) -> Result<Fit, String> {
    parse_fit(text).ok_or_else(|| {
        "neither a number of tokens, such as 150k, nor a model of the price table".to_owned()
    })
}

impl Args {
    fn settings(&self) -> RequestSettings {
        RequestSettings {
            policy: self.path_args.policy(),
            end: self.path_args.end(),
            prompt: self.prompt.clone(),
            model: self.model.clone(),
            tools: self.tools.clone(),
            client_version: self.client_version,
            fit: self.fit.map(|limit| limit.keep_turns(self.fit_turns)),
            provider: self.provider.unwrap_or_default(),
            full: self.whole_file,
            only_messages: self.request && !self.json,
        }
    }
}

pub(crate) fn run(ui: &Ui, mut args: Args) -> Result<u8> {
    // Refused before anything is read. Under policy `vendor` the request is that of the client, which has neither.
    if args.fit.is_some() && args.path_args.policy() == Policy::Vendor {
        bail!("--fit: Claude Code sends the whole conversation; use --policy recover");
    }
    if args.provider.is_some() && args.path_args.policy() == Policy::Vendor {
        bail!("--provider: Claude Code makes requests for its own provider; use --policy recover");
    }
    session::follow_policy(ui, args.path_args.policy());
    args.path_args.take_line(&mut args.session);
    let args = &args;
    if let Some(to) = &args.to {
        return hand_over_to(ui, args, to);
    }
    let source = match session::source(ui, &args.session, None) {
        Ok(source) => source,
        Err(error) => match error
            .downcast_ref()
            .and_then(other_format)
            .filter(|_| args.json)
        {
            // A program that reads the report should not have to parse standard error for this one answer.
            Some(reason) => {
                let policy = args.path_args.policy();
                let refusal = ResumeRefusal::new(&args.session, policy, reason);
                record::write(&mut io::stdout().lock(), &refusal)?;
                return Ok(exit::FAILED);
            }
            None => return Err(error),
        },
    };
    let progress = Progress::start(ui);
    let context = progress.of(session::context(ui));
    with_request(&context, source, &args.settings(), |built| {
        // The bar must be gone before the first output, which would be written over it.
        drop(progress);
        print(ui, args, built)
    })
}

/// Hands the session over to another agent.
fn hand_over_to(ui: &Ui, args: &Args, to: &str) -> Result<u8> {
    transcript_engine::ignore_file_size_signal();
    let mut settings = args.new.settings(ui, &args.session, to, &args.path_args)?;
    settings.write = args.write;
    settings.target_home.clone_from(&args.target_home);
    hand_over::run(ui, &settings, args.json)
}

/// Prints the request.
fn print(ui: &Ui, args: &Args, built: BuiltRequest<'_>) -> Result<u8> {
    let request = &built.request;
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    if args.json {
        record::print(ui, &mut out, |sink| built.write(sink))?;
    } else if args.request {
        wire::write_messages(&mut out, &request.messages, |json| ui.verbatim(json))?;
        writeln!(out)?;
    } else {
        write_text(&mut out, ui, args, &built)?;
    }
    out.flush()?;
    if args.explain {
        // To standard error: the output may be a request that is piped to a provider.
        let mut err = io::stderr().lock();
        let (scope, read) = (built.history.scope(), built.history.index().starts_at());
        match built.reason {
            Some(reason) => writeln!(err, "scope {scope}: {reason}")?,
            None => writeln!(err, "scope {scope}: from byte {read} on")?,
        }
        explain::write(&mut err, &built.tree, &request.path)?;
    } else if !args.json {
        replay::print_finding_count(ui, &built.tree, &request.path);
    }
    let code = exit::done_if(request.is_resumable());
    // The process ends now: to free every block would only take time.
    std::mem::forget(built);
    Ok(code)
}

/// Writes a summary for people, without the messages: whether the session can be resumed, where it
/// stands, what is synthetic or omitted, and the command that continues it.
fn write_text(out: &mut impl Write, ui: &Ui, args: &Args, built: &BuiltRequest<'_>) -> Result<()> {
    let session = built.history;
    let (escaping, index) = (ui.escaping, session.index());
    let BuiltRequest { request, state, .. } = built;
    let name = session
        .session_id()
        .unwrap_or_else(|| session.source().path().display().to_string());
    let name = escaping.one_line(&name);
    if let Some(refusal) = request.path.refusal {
        // Without a request there is nothing to sum up.
        let reason = explain::describe_refusal(index, refusal);
        let text = format!("{name} cannot be resumed: {reason}");
        return Ok(ui.write_wrapped(out, &text, "  ", TextStyle::default())?);
    }
    let tokens = built.tokens();
    let but = tokens.over.map_or("", |_| ", but its request is too long");
    let text = format!("{name} can be resumed{but}");
    ui.write_wrapped(out, &text, "  ", TextStyle::default())?;
    let mut line = |label: &str, text: String| {
        if text.is_empty() {
            return Ok(());
        }
        // Escaped before it is broken: an escaped character is wider.
        let text = escaping.one_line(&text);
        let columns = terminal_width().map(|width| width.saturating_sub(LABEL_WIDTH));
        for (number, line) in lines(&text, columns).enumerate() {
            let label = if number == 0 { label } else { "" };
            writeln!(out, "  {label:<10} {line}")?;
        }
        io::Result::Ok(())
    };
    line("title", state.title.clone().unwrap_or_default())?;
    // The folder in which it is continued, as in the command below: a move does not change what the lines name.
    let row = session.row();
    let home = row.home().or(state.cwd.as_deref());
    let folder = home.map(|folder| ui.render.below_home(folder));
    // Clients write `HEAD` outside of a repository.
    let branch = state.git_branch.clone().filter(|branch| branch != "HEAD");
    let model = request.model.clone().or(state.model.clone());
    line("where", joined([folder, branch, model], " · "))?;
    if let Some(leaf) = request.path.leaf {
        let leaf = index.entry(leaf);
        let time = state.last_interaction.as_deref();
        let time = time.and_then(|time| time::millis(time.as_bytes()));
        let time = minute(time, Zoned::now().time_zone());
        let time = time.map(|time| format!(" · {time}"));
        let place = explain::short_name(index, &leaf);
        line("ends at", format!("{place}{}", time.unwrap_or_default()))?;
    }
    let bytes: usize = blocks(&request.messages).map(Block::json_len).sum();
    let bytes = size(bytes as u64);
    let messages = count(request.messages.len(), "message");
    let entries = count(request.path.entries.len(), "entry");
    let read = match index.starts_at() {
        0 => String::new(),
        // Counts and findings are then those of the end, and may differ from those of `verify`.
        start => {
            let read = size(session.source().len() - start);
            format!("; only the last {read} of the file were read (--whole-file reads all)")
        }
    };
    line(
        "request",
        format!(
            "{messages}, {bytes}, about {} tokens, from {entries}{read}; --explain has the details, --request prints it",
            grouped(tokens.request)
        ),
    )?;
    let model = request.model.as_deref().unwrap_or("TOKENS");
    line("too long", too_long(args, &tokens, model))?;
    let synthetic = request.synthetic.iter();
    line(
        "synthetic",
        summary(synthetic.map(|synthetic| synthetic.kind.name())),
    )?;
    let omitted = request.omissions.iter();
    line(
        "omitted",
        summary(omitted.map(|omission| omission.reason.name())),
    )?;
    let lint = request.lint();
    let [problems, warnings] = [&lint.problems, &lint.warnings].map(|problems| {
        summary(
            problems
                .iter()
                .map(|problem| problem.rule.words_for(request.provider)),
        )
    });
    if problems.is_empty() || warnings.is_empty() {
        line("problems", problems)?;
        line("warnings", warnings)?;
    } else {
        line("problems", format!("{problems}; warnings: {warnings}"))?;
    }
    let todos = state.todos.as_deref().unwrap_or_default();
    let left = todos.iter().filter(|todo| todo.is_open()).count();
    let queued = state.queued_prompts.as_deref().unwrap_or_default().len();
    let open = [
        (left > 0).then(|| format!("{left} of {}", count(todos.len(), "to-do item"))),
        (queued > 0).then(|| format!("{} not sent", count(queued, "queued prompt"))),
    ];
    line("open", joined(open, ", "))?;
    if args.explain {
        write_details(out, escaping, built)?;
    }
    let command = args.path_args.continue_command(ui, session);
    if let Some(command) = command {
        writeln!(out, "{}", continuation::line(&command))?;
    }
    Ok(())
}

/// Says by how much a request to a model is too long, and what helps; empty if it is not.
fn too_long(args: &Args, tokens: &TokensRecord, model: &str) -> String {
    let Some(over) = tokens.over.map(grouped) else {
        return String::new();
    };
    // No answer shows how far the estimate is off, so the limit was compared with a third more than it.
    let more = match tokens.margin {
        0 => "more",
        _ => "more, with a margin of a third,",
    };
    match (args.fit, tokens.window) {
        (Some(_), _) if args.fit_turns > 0 => {
            let turns = count(args.fit_turns, "turn");
            format!(
                "{over} tokens {more} than the limit: the last {turns} alone are too long; --fit-turns keeps fewer"
            )
        }
        (Some(_), _) => {
            format!("{over} tokens {more} than the limit, with nothing left to omit")
        }
        (None, window) => {
            let window = window.map_or(String::new(), |window| format!(" of {}", grouped(window)));
            format!(
                "{over} tokens more than the context window{window}; --fit {model} omits the oldest media, results and turns"
            )
        }
    }
}

/// Counts equal names: `12 (10 reminder, 2 no-content)`; empty if there are none.
fn summary<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let sum: usize = counts.iter().map(|(_, count)| count).sum();
    let named = counts.iter().map(|(name, count)| format!("{count} {name}"));
    let named: Vec<_> = named.collect();
    match &named[..] {
        [] => String::new(),
        [one] => one.clone(),
        _ => format!("{sum} ({})", named.join(", ")),
    }
}

/// Writes the lines that only `--explain` shows.
fn write_details(out: &mut impl Write, escaping: Escaping, built: &BuiltRequest<'_>) -> Result<()> {
    let BuiltRequest { request, state, .. } = built;
    let index = built.history.index();
    if let Some(leaf) = request.path.leaf {
        writeln!(out, "  leaf       {}", explain::entry_name(index, leaf))?;
    }
    let worktree = state.worktree.as_ref();
    for (label, value) in [
        ("worktree  ", worktree.and_then(|tree| tree.path.as_ref())),
        ("mode      ", state.permission_mode.as_ref()),
    ] {
        if let Some(value) = value {
            writeln!(out, "  {label} {}", escaping.one_line(value))?;
        }
    }
    write_work(out, escaping, state)?;
    write_usage(out, escaping, built)?;
    let synthetic = request.synthetic.iter();
    let synthetic = synthetic.map(|synthetic| (synthetic.kind.name(), synthetic.origin));
    write_groups(out, index, "synthetic", synthetic)?;
    let omitted = request.omissions.iter();
    let omitted = omitted.map(|omission| (omission.reason.name(), Some(omission.origin)));
    write_groups(out, index, "omitted", omitted)?;
    let lint = request.lint();
    for (label, problems) in [("problem", &lint.problems), ("warning", &lint.warnings)] {
        let problems = problems
            .iter()
            .map(|problem| (problem.rule.words_for(request.provider), problem.origin));
        write_groups(out, index, label, problems)?;
    }
    Ok(())
}

/// Writes open to-do items, queued prompts and pull requests.
fn write_work(out: &mut impl Write, escaping: Escaping, state: &PathState) -> Result<()> {
    let todos = state.todos.as_deref().unwrap_or_default();
    let open: Vec<_> = todos.iter().filter(|todo| todo.is_open()).collect();
    if !todos.is_empty() {
        writeln!(out, "  todo       {} of {} left", open.len(), todos.len())?;
    }
    let words = open.iter().map(|todo| {
        let name = todo.content.as_deref().or(todo.id.as_deref());
        // A field of another type counts as absent.
        name.unwrap_or("(no text)")
    });
    write_list(out, escaping, words)?;
    if let Some(queued) = state.queued_prompts.as_deref()
        && !queued.is_empty()
    {
        let prompts = count(queued.len(), "prompt");
        writeln!(out, "  queued     {prompts} not sent")?;
        let words = queued.iter();
        write_list(
            out,
            escaping,
            words.map(|prompt| prompt.content.as_deref().unwrap_or("(no text)")),
        )?;
    }
    for request in state.pull_requests.iter().flatten() {
        if let Some(url) = &request.url {
            writeln!(out, "  pull       {}", escaping.one_line(url))?;
        }
    }
    Ok(())
}

/// Writes the first items of a list, one per line, and the number of the others.
fn write_list<'a>(
    out: &mut impl Write,
    escaping: Escaping,
    mut items: impl ExactSizeIterator<Item = &'a str>,
) -> Result<()> {
    const MAX_ITEMS: usize = 5;
    const MAX_WIDTH: usize = 80;
    for item in items.by_ref().take(MAX_ITEMS) {
        writeln!(
            out,
            "             {}",
            cut_text(&escaping.one_line(item), MAX_WIDTH)
        )?;
    }
    if items.len() > 0 {
        writeln!(out, "             … {} more", items.len())?;
    }
    Ok(())
}

/// Writes the token counts of each model, as far as its answers report them, and the cost.
fn write_usage(out: &mut impl Write, escaping: Escaping, answer: &BuiltRequest<'_>) -> Result<()> {
    for usage in &answer.usage {
        let counts = [
            (usage.input_tokens, "in"),
            (usage.output_tokens, "out"),
            (usage.cache_creation_input_tokens, "into the cache"),
            (usage.cache_read_input_tokens, "from the cache"),
        ];
        let known = counts.iter().filter_map(|(count, what)| {
            let count = (*count)?;
            Some(format!("{count} {what}"))
        });
        let mut words: Vec<_> = known.collect();
        if words.is_empty() {
            continue;
        }
        // Skip the model name if it is the only one and already shown above.
        if answer.usage.len() > 1 || usage.model.as_deref() != answer.request.model.as_deref() {
            let model = usage.model.as_deref().unwrap_or("an unknown model");
            words.push(format!("by {}", escaping.one_line(model)));
        }
        writeln!(out, "  tokens     {}", words.join(", "))?;
    }
    let counted = answer.state.costs.as_ref();
    let counted = counted.and_then(|costs| costs.total_cost_usd);
    let of_answers = answer.usage.iter().filter_map(|usage| usage.cost_usd);
    if let Some(cost) = counted.or_else(|| of_answers.reduce(|sum, cost| sum + cost)) {
        writeln!(out, "  cost       {cost:.2} US dollars")?;
    }
    Ok(())
}

/// Writes one line per name, with the number of its entries and the range of their lines.
fn write_groups<'a>(
    out: &mut impl Write,
    index: &Index,
    label: &str,
    items: impl Iterator<Item = (&'a str, Option<usize>)>,
) -> Result<()> {
    let mut groups: Vec<(&str, Vec<Option<EntryNo>>)> = Vec::new();
    for (name, origin) in items {
        let entry = origin.map(EntryNo::new);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, entries)) => entries.push(entry),
            None => groups.push((name, vec![entry])),
        }
    }
    for (name, entries) in groups {
        if let [entry] = entries[..] {
            writeln!(out, "  {label:<9}  {name}{}", place(index, entry))?;
            continue;
        }
        let lines = entries.iter().flatten();
        let lines = lines.filter_map(|entry| index.entry(*entry).known_line());
        let lines: Vec<u64> = lines.collect();
        let range = match (lines.iter().min(), lines.iter().max()) {
            (Some(first), Some(last)) if first == last => format!(", line {first}"),
            (Some(first), Some(last)) => format!(", lines {first}–{last}"),
            _ => String::new(),
        };
        writeln!(out, "  {label:<9}  {name}, {} times{range}", entries.len())?;
    }
    Ok(())
}

fn place(index: &Index, entry: Option<EntryNo>) -> String {
    entry.map_or(String::new(), |entry| {
        format!(", {}", explain::entry_name(index, entry))
    })
}

fn blocks(messages: &[Message]) -> impl Iterator<Item = &Block> {
    messages.iter().flat_map(Message::blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_at_spaces() {
        let broken = |columns| lines("~/src/海辺 · main · sonnet", columns).collect::<Vec<_>>();
        assert_eq!(broken(None), ["~/src/海辺 · main · sonnet"]);
        assert_eq!(broken(Some(17)), ["~/src/海辺 · main", "· sonnet"]);
        assert_eq!(broken(Some(16)), ["~/src/海辺 ·", "main · sonnet"]);
        assert_eq!(broken(Some(1)), ["~/src/海辺", "·", "main", "·", "sonnet"]);
        assert_eq!(lines("", Some(9)).collect::<Vec<_>>(), [""]);
    }
}
