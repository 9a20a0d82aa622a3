//! `transcript search`: finds entries in all sessions.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::{Args as ClapArgs, ValueEnum};
use jiff::Zoned;
use transcript_engine::catalog::{
    Catalog, CatalogSession, Field, Hit, Query, QueryError, Search, SearchOptions, moment,
};
use transcript_engine::wire::{FoundSession, HitRecord, SearchEnd, SearchRecord};
use transcript_format::time;
use transcript_render::{Snippet, SnippetLine, clock, count, cut_text};
use unicode_width::UnicodeWidthStr;

use crate::filter::EntryFilter;
use crate::pager::Output;
use crate::progress::Progress;
use crate::ui::Ui;
use crate::{exit, places, record, session};

/// How many hits people are shown at first.
const SHOWN: usize = 50;
/// How many lines a snippet takes without `--context`.
const LINES: usize = 2;
/// How many characters a line of the context has on average, at most.
const CONTEXT_LINE: usize = 400;
/// The longest snippet, in characters.
const MAX_SNIPPET: usize = 64 << 10;
/// The shortest id that is shown, in characters.
const SHORT_ID: usize = 8;
/// How many copies are named.
const COPIES: usize = 2;
/// The most terms that are searched one by one when no entry has all.
const MAX_PARTS: usize = 6;
/// How many sessions are named that have all terms in different entries.
const SESSIONS: usize = 3;

/// Find texts in all sessions
///
/// QUERY is words, all of which must be in one entry; "exact phrases"; /regular expressions/; -without;
/// and filters: role:, tool:, in:, path:, error:, project:, branch:, live:, model:, agent:, session:,
/// since:, until:. Lower-case words match any case. Quote the query for the shell, or put -- before
/// one with a minus. The exit code is 1 if nothing is found.
#[derive(Debug, ClapArgs)]
#[command(mut_arg("last", |arg| arg.long("limit").help("At most N hits [default: 50; all with --json]")))]
#[command(mut_arg("sidechains", |arg| arg.help("Also search subagents, which is the default; agent:none leaves them out")))]
pub(crate) struct Args {
    /// What to search for
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// Search only these: paths of .jsonl files or of folders, ids of sessions [default: all sessions]
    #[arg(long = "in", value_name = "SESSION|DIR", allow_hyphen_values = true)]
    places: Vec<PathBuf>,
    #[command(flatten)]
    filter: EntryFilter,
    /// Order of the hits
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Sort::Rank)]
    sort: Sort,
    /// Show N lines of the text before and after the match
    #[arg(short = 'C', long, value_name = "N")]
    context: Option<usize>,
    /// Print only the paths of the sessions with hits
    #[arg(long)]
    files: bool,
    /// Print only the number of hits
    #[arg(long, conflicts_with = "files")]
    count: bool,
    /// Read all files, and neither use nor make the filters in the cache folder
    #[arg(long)]
    no_cache: bool,
    /// Also search archived sessions whose files are gone
    #[arg(long)]
    all: bool,
    /// Print one JSON object per line for each hit
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sort {
    /// The best hit first
    Rank,
    /// The session that was changed last first, and in a session the last entry
    Time,
}

/// Runs the command.
pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let query = match query(args)? {
        Ok(query) => query,
        Err(error) => {
            complain(ui, &args.query.join(" "), &error);
            return Ok(exit::FAILED);
        }
    };
    let project = args.filter.common.project.as_deref();
    let catalog = places::catalog(ui, &args.places, project, args.all)?;
    let limit = args.filter.common.last;
    let default = (!args.json).then_some(SHOWN);
    let mut options = SearchOptions::new().sort(match args.sort {
        Sort::Rank => transcript_engine::catalog::Sort::Rank,
        Sort::Time => transcript_engine::catalog::Sort::Time,
    });
    if let Some(limit) = limit.or(default).filter(|_| !args.files && !args.count) {
        options = options.limit(limit);
    }
    if let Some(context) = args.context {
        let lines = context.saturating_mul(2).saturating_add(1);
        options = options.snippet(lines.saturating_mul(CONTEXT_LINE).min(MAX_SNIPPET));
    }
    if let Some(folder) = transcript_engine::cache_folder().filter(|_| !args.no_cache) {
        options = options.cache(folder);
    }
    if args.count {
        // No hit is returned, so they need no order.
        options = options
            .sort(transcript_engine::catalog::Sort::Rank)
            .limit(0);
    }
    let progress = Progress::start(ui);
    progress.expect(catalog.bytes());
    options = options.count_bytes(progress.counter());
    let mut search = catalog.search(&query, &options)?;
    drop(progress);
    let end = search.end();
    let mut out = match args.json {
        true => Output::plain(),
        false => Output::paged(),
    };
    let written = write(ui, args, &catalog, &mut search, &mut out);
    match written {
        Err(error) if !out.is_closed(&error) => return Err(error),
        _ => out.finish()?,
    }
    let problems = search.problems();
    let has_problems = !problems.is_empty();
    for problem in problems {
        ui.warn(&format!("transcript: {problem}"));
    }
    if end.unread > 0 {
        let unread = count(end.unread, "damaged line or file");
        ui.note(&format!("{unread} could not be searched"));
    }
    if end.hits == 0 && !args.json && !args.count {
        ui.note(&format!("no hits in {}", count(end.scanned, "session")));
        let typed = args.query.join(" ");
        for habit in typed.split_whitespace().filter_map(habit) {
            ui.note(&habit);
        }
        if let Some(hint) = hint(ui, &catalog, &query, &options)? {
            ui.note(&hint);
        }
    }
    // The process ends, which frees all of it at once.
    std::mem::forget(search);
    std::mem::forget(catalog);
    Ok(match end.hits > 0 && !has_problems {
        true => exit::DONE,
        false => exit::NO,
    })
}

/// Says of a word that means more in other searches what it means here.
fn habit(word: &str) -> Option<String> {
    let (key, is_filter) = match word.split_once(':') {
        Some((key, value)) => (key, !value.is_empty()),
        None => (word, false),
    };
    let ours = match key {
        "after" | "newer" => "since:",
        "before" | "older" => "until:",
        "file" => "path:",
        "title" => "in:title",
        "user" | "from" | "author" => "role:",
        "dir" | "folder" | "cwd" | "repo" => "project:",
        "OR" | "AND" | "NOT" if !is_filter => {
            return Some(format!(
                "{key} is a word like others: all words must be found, and a minus excludes one"
            ));
        }
        _ if word.ends_with('*') && word.len() > 1 && !word.contains(':') => {
            let start = word.trim_end_matches('*');
            return Some(format!(
                "a * stands for itself; {start} is also found within words"
            ));
        }
        _ => return None,
    };
    is_filter.then(|| format!("{key}: is not a filter but a word here; the filter is {ours}"))
}

/// Names the sessions that have all terms, although no entry has.
fn hint(
    ui: &Ui,
    catalog: &Catalog,
    query: &Query,
    options: &SearchOptions,
) -> Result<Option<String>> {
    let parts = query.one_by_one();
    if !(2..=MAX_PARTS).contains(&parts.len()) {
        return Ok(None);
    }
    let mut sessions: Vec<&CatalogSession> = catalog.sessions().iter().collect();
    // In no order, and all of them.
    let options = options
        .clone()
        .sort(transcript_engine::catalog::Sort::Rank)
        .limit(0);
    for part in &parts {
        let search = catalog.search(part, &options)?;
        let paths = search.session_paths();
        sessions.retain(|session| paths.contains(&*session.path));
        if sessions.is_empty() {
            return Ok(None);
        }
    }
    sessions.sort_by_key(|session| Reverse(session.modified));
    let names = Names::new(ui, catalog);
    let ids = sessions.iter().take(SESSIONS);
    let ids: Vec<String> = ids
        .map(|session| ui.escaping.one_line(&names.id(&session.id)))
        .collect();
    let rest = match sessions.len().saturating_sub(SESSIONS) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    Ok(Some(format!(
        "no entry has all terms, but different entries of the same session do: {}{rest}",
        ids.join(", ")
    )))
}

fn write(
    ui: &Ui,
    args: &Args,
    catalog: &Catalog,
    search: &mut Search<'_>,
    out: &mut Output,
) -> Result<()> {
    let end = search.end();
    if args.files {
        let most = args.filter.common.last.unwrap_or(usize::MAX);
        for (session, row, hits) in search.sessions().into_iter().take(most) {
            if args.json {
                let found = FoundSession::new(&session, row.as_deref(), hits);
                record::write(out, &SearchRecord::Session(found))?;
            } else {
                let path = session.path.display().to_string();
                writeln!(out, "{}", ui.escaping.escape(&path))?;
            }
        }
    } else if args.count && !args.json {
        let sessions = count(end.sessions, "session");
        writeln!(out, "{} in {sessions}", count(end.hits, "hit"))?;
    } else if args.json && !args.count {
        for hit in &mut *search {
            match hit {
                Ok(hit) => {
                    let hit = HitRecord::new(&trimmed(hit, args.context));
                    record::write(out, &SearchRecord::Hit(Box::new(hit)))?;
                }
                Err(error) => ui.warn(&format!("transcript: {error}")),
            }
        }
    } else if !args.json {
        let printer = Printer {
            ui,
            names: Names::new(ui, catalog),
            context: args.context,
            now: Zoned::now(),
        };
        search.group_by_session();
        printer.print(out, search)?;
    }
    if args.json {
        record::write(out, &SearchRecord::End(SearchEnd::new(&end)))?;
    }
    Ok(())
}

/// Reads the query and the options, which are filters of it.
fn query(args: &Args) -> Result<Result<Query, QueryError>> {
    let (now, filter) = (Zoned::now(), &args.filter);
    let read_time = |text: &str| moment::parse(text, &now);
    let typed = args.query.join(" ");
    let mut text = typed.clone();
    if let Some(part) = filter
        .common
        .text
        .as_deref()
        .filter(|part| !part.is_empty())
    {
        // Ignores case as `--text` does elsewhere, also that of upper-case letters.
        text.push_str(&format!(" /{}/i", escaped(part)));
    }
    let mut query = match Query::parse_part(&text, &read_time) {
        Ok(query) => query,
        Err(error) => return Ok(Err(error)),
    };
    let mut add = |option: &str, key: &str, value: &str| {
        let added = query.add_filter(key, value, &read_time);
        added.map_err(|error| anyhow!("{option}: {}", error.message()))
    };
    for role in &filter.role {
        let role = role.to_possible_value();
        let name = role.as_ref().map(|role| role.get_name());
        add("--role", "role", name.unwrap_or_default())?;
    }
    for tool in &filter.tool {
        add("--tool", "tool", tool)?;
    }
    if let Some(time) = &filter.common.since {
        add("--since", "since", time)?;
    }
    if let Some(time) = &filter.common.until {
        add("--until", "until", time)?;
    }
    if let Some(branch) = &filter.common.branch {
        add("--branch", "branch-name", branch)?;
    }
    let checked = query.check(typed.chars().count());
    Ok(checked.map(|()| query))
}

/// Returns the expression that matches a text.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        // `\<` and `\>` are not characters.
        if c.is_ascii_punctuation() && !matches!(c, '<' | '>') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Says what is wrong with a query; on a terminal, where.
fn complain(ui: &Ui, query: &str, error: &QueryError) {
    let mut text = format!("transcript: {error}");
    if io::stderr().is_terminal() {
        let start: String = query.chars().take(error.position()).collect();
        let line = |text: &str| ui.escaping.escape(&text.replace('\n', " ")).into_owned();
        let before = " ".repeat(line(&start).width());
        text.push_str(&format!("\n  {}\n  {before}^", line(query)));
    }
    ui.warn(&text);
}

/// Cuts the snippet to this number of lines around the first match.
fn trimmed(mut hit: Hit, context: Option<usize>) -> Hit {
    let Some(context) = context else { return hit };
    let chars: Vec<char> = hit.snippet.chars().collect();
    let found = hit.matches.first();
    let (first, last) = found.map_or((0, 0), |found| (found.start, found.end));
    let breaks = |c: &(usize, &char)| *c.1 == '\n';
    let before = chars[..first].iter().enumerate().rev().filter(breaks);
    let start = before.map(|(at, _)| at + 1).nth(context).unwrap_or(0);
    let after = chars.iter().enumerate().skip(last).filter(breaks);
    let end = after.map(|(at, _)| at).nth(context).unwrap_or(chars.len());
    hit.is_cut.0 |= start > 0;
    hit.is_cut.1 |= end < chars.len();
    hit.snippet = chars[start..end].iter().collect();
    hit.matches
        .retain(|found| found.start >= start && found.end <= end);
    for found in &mut hit.matches {
        *found = found.start - start..found.end - start;
    }
    hit
}

/// The names of sessions as other commands take them.
struct Names {
    root: Option<PathBuf>,
    /// For each id how many characters tell it apart; the whole id if two sessions have it.
    lengths: HashMap<String, usize>,
}

impl Names {
    fn new(ui: &Ui, catalog: &Catalog) -> Self {
        let mut ids: Vec<&str> = catalog.sessions().iter().map(|one| &*one.id).collect();
        ids.sort_unstable();
        let same = |one: &str, other: &str| {
            let pairs = one.chars().zip(other.chars());
            pairs
                .take_while(|(one, other)| one.eq_ignore_ascii_case(other))
                .count()
        };
        let lengths = ids.iter().enumerate().map(|(at, id)| {
            let next = ids.get(at + 1).map_or(0, |next| same(id, next));
            let above = at.checked_sub(1).map_or(0, |above| same(id, ids[above]));
            ((*id).to_owned(), (next.max(above) + 1).max(SHORT_ID))
        });
        Self {
            lengths: lengths.collect(),
            root: session::store(ui).ok().map(|store| store.root().to_owned()),
        }
    }

    /// Returns the name of the session or file and the line, for `replay`.
    fn of(&self, ui: &Ui, hit: &Hit) -> String {
        let is_stored = self
            .root
            .as_ref()
            .is_some_and(|root| hit.path.starts_with(root));
        let name = match hit.path == hit.session.path && is_stored {
            true => self.id(&hit.session.id),
            false => ui.render.below_home(&hit.path.display().to_string()),
        };
        match hit.line {
            Some(line) => format!("{name}:{line}"),
            None => name,
        }
    }

    fn id(&self, id: &str) -> String {
        let length = self.lengths.get(id).copied().unwrap_or(usize::MAX);
        id.chars().take(length).collect()
    }
}

/// Prints hits for people, below their sessions.
struct Printer<'u> {
    ui: &'u Ui,
    names: Names,
    context: Option<usize>,
    now: Zoned,
}

impl Printer<'_> {
    fn print(&self, out: &mut impl Write, search: &mut Search<'_>) -> Result<()> {
        let end = search.end();
        let mut shown = 0;
        let mut last: Option<Arc<CatalogSession>> = None;
        for hit in search {
            let hit = match hit {
                Ok(hit) => trimmed(hit, self.context),
                Err(error) => {
                    self.ui.warn(&format!("transcript: {error}"));
                    continue;
                }
            };
            let is_same = |last: &Arc<CatalogSession>| last.path == hit.session.path;
            if !last.as_ref().is_some_and(is_same) {
                if last.is_some() {
                    writeln!(out)?;
                }
                self.head(out, &hit)?;
            }
            self.hit(out, &hit)?;
            last = Some(hit.session);
            shown += 1;
        }
        let dim = self.ui.render.styles().dim;
        if end.hits > shown && shown > 0 {
            let (hits, sessions) = (count(end.hits, "hit"), count(end.sessions, "session"));
            let text = format!("{shown} of {hits} in {sessions}; --limit N shows more");
            writeln!(out, "\n{dim}{text}{dim:#}")?;
        }
        Ok(())
    }

    fn head(&self, out: &mut impl Write, hit: &Hit) -> Result<()> {
        let styles = self.ui.render.styles();
        let escaping = self.ui.escaping;
        let one_line = |text: &str| escaping.one_line(&escaping.without_colours(text));
        let title = hit.title().map(one_line);
        let title = title.filter(|title| !title.is_empty());
        let title = title.unwrap_or_else(|| "(untitled)".to_owned());
        let width = self.ui.width;
        let bold = styles.bold(styles.plain);
        writeln!(out, "{bold}{}{bold:#}", cut_text(&title, width))?;
        let row = hit.row.as_ref();
        let folder = row.and_then(|row| row.cwd.as_deref());
        let folder = folder.map_or(hit.session.project.clone(), |cwd| {
            self.ui.render.below_home(cwd)
        });
        let millis = row.and_then(|row| row.order_millis());
        let parts = [
            Some(escaping.one_line(&self.names.id(&hit.session.id))),
            self.time(millis),
            Some(one_line(&folder)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let dim = styles.dim;
        writeln!(out, "{dim}{}{dim:#}", cut_text(&parts.join(" · "), width))?;
        Ok(())
    }

    fn time(&self, millis: Option<i64>) -> Option<String> {
        let time = clock(millis?, self.now.time_zone())?;
        Some(time.strftime("%Y-%m-%d %H:%M").to_string())
    }

    fn hit(&self, out: &mut impl Write, hit: &Hit) -> Result<()> {
        let styles = self.ui.render.styles();
        let escaping = self.ui.escaping;
        let (dim, mark) = (styles.dim, styles.bold(styles.error));
        let name = escaping.one_line(&self.names.of(self.ui, hit));
        let time = hit.timestamp.as_deref();
        let millis = time.and_then(|time| time::millis(time.as_bytes()));
        let tool = || hit.tool.as_deref().unwrap_or("tool");
        let what = match hit.field {
            Field::ToolInput => format!("{} call", tool()),
            Field::ToolResult => format!("{} result", tool()),
            Field::Text => "assistant".to_owned(),
            field => field.name().to_owned(),
        };
        let is_of_conversation = hit.uuid.is_some() && hit.role.is_some();
        let place = match (hit.is_live, hit.is_in_context) {
            (false, _) => Some("rewound".to_owned()),
            (true, false) if is_of_conversation => Some("compacted away".to_owned()),
            _ => None,
        };
        let agent = hit
            .agent_id
            .as_ref()
            .map(|agent| format!("subagent {agent}"));
        let copies = hit.also.iter().map(|copy| match copy.line {
            Some(line) => format!("{}:{line}", self.names.id(&copy.session_id)),
            None => self.names.id(&copy.session_id),
        });
        let also = (!hit.also.is_empty()).then(|| {
            let named: Vec<String> = copies.take(COPIES).collect();
            let more = match hit.also.len().saturating_sub(COPIES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("also {}{more}", named.join(", "))
        });
        let parts = [Some(what), self.time(millis), place, agent, also];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let parts = escaping.one_line(&parts.join(" · "));
        // The name is never cut: it is what other commands take.
        let person = styles.person;
        write!(out, "  {person}{name}{person:#}")?;
        let indent = "    ";
        let width = self.ui.width.saturating_sub(indent.len()).max(1);
        if (name.width() + parts.width()) > width {
            write!(out, "\n  ")?;
        }
        writeln!(out, "  {dim}{}{dim:#}", cut_text(&parts, width))?;
        for line in self.snippet(hit, width) {
            write!(out, "{indent}")?;
            for (text, is_marked) in line {
                match is_marked {
                    true => write!(out, "{mark}{text}{mark:#}")?,
                    false => write!(out, "{text}")?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn snippet(&self, hit: &Hit, width: usize) -> Vec<SnippetLine> {
        let escaping = self.ui.escaping;
        let snippet = Snippet {
            text: hit.snippet.chars().collect(),
            matches: hit.matches.clone(),
            is_cut: hit.is_cut,
        };
        match self.context {
            None => snippet.fitted(escaping, width, LINES),
            Some(_) => snippet.line_by_line(escaping, width),
        }
    }
}
