//! `transcript search`: finds entries in all sessions.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use jiff::Zoned;
use transcript_engine::catalog::{Catalog, CatalogSession, Hit, QueryError, Search};
use transcript_format::time;
use transcript_ops::context::Listed;
use transcript_ops::failure::message_of;
use transcript_ops::roots::Root;
use transcript_ops::search::{
    SearchError, SearchOutput, SearchRun, SearchSettings, SortName, trimmed, with_search,
};
use transcript_ops::{self as ops, Failure};
use transcript_render::{Snippet, SnippetLine, and_more, count, cut_text, joined, minute};
use unicode_width::UnicodeWidthStr;

use crate::filter::EntryFilter;
use crate::near::nearest;
use crate::pager::Output;
use crate::progress::Progress;
use crate::ui::Ui;
use crate::{exit, record, session, session_sets};

/// The default number of hits in text output.
const DEFAULT_HITS: usize = 50;
/// The maximum number of lines of a snippet without `--context`.
const MAX_SNIPPET_LINES: usize = 2;
/// The shortest word for which a nearest one is looked for, in characters: of a shorter one too many are near.
const MIN_TYPED_LEN: usize = 4;
/// The shortest id that is shown, in characters.
const MIN_ID_LEN: usize = 8;
/// The maximum number of copies of a hit that are named.
const MAX_NAMED_COPIES: usize = 2;
/// The most terms that are searched one by one when no entry has all.
const MAX_PARTS: usize = 6;
/// The maximum number of sessions that are named because they have all terms, in different entries.
const MAX_NAMED_SESSIONS: usize = 3;

/// Find texts in all sessions
///
/// QUERY is words, all of which must be in one entry; "exact phrases"; /regular expressions/; -without;
/// and filters: role:, tool:, in:, path:, error:, project:, branch:, live:, model:, agent:, session:,
/// since:, until:. `transcript help queries` explains them. Lower-case words match any case. Quote the query for the shell, or put -- before
/// one with a minus. The exit code is 1 if nothing is found.
#[derive(Debug, ClapArgs)]
#[command(mut_arg("last", |arg| arg.help("At most N hits [default: 50; all with --json]")))]
#[command(mut_arg("sidechains", |arg| arg.help("Also search subagents, which is the default; agent:none excludes them")))]
pub(crate) struct Args {
    /// Words, phrases and filters to search for
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
    /// Do not use the cache: read all files
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
    let settings = args.settings(ui)?;
    let progress = Progress::start(ui);
    let context = progress.of(session::context(ui));
    let searched = with_search(&settings, &context, |found| {
        // The bar must be gone before the first output, which would be written over it.
        drop(progress);
        print(ui, args, &settings, found)
    });
    match searched {
        Ok(printed) => printed,
        Err(SearchError::Query(error)) => {
            complain(ui, &args.query.join(" "), &error);
            Ok(exit::FAILED)
        }
        Err(SearchError::Failed(failure)) => Err(failure.into()),
    }
}

/// Prints the hits.
fn print(ui: &Ui, args: &Args, settings: &SearchSettings, mut found: SearchRun<'_>) -> Result<u8> {
    session_sets::note_problems(ui, found.catalog);
    let end = found.search.end();
    let mut out = Output::paged_unless(args.json);
    let written = if args.json {
        let mut warn = |failure: Failure| ui.report(failure);
        record::print(ui, &mut out, |sink| found.write(settings, sink, &mut warn))
    } else {
        write(ui, args, &mut found, &mut out)
    };
    out.finish_after(written)?;
    // Only now: hits are read while they are printed, and a pager has the screen until here.
    let problems = found.search.problems();
    let has_problems = !problems.is_empty() || !found.catalog.problems().is_empty();
    for problem in problems {
        ui.report(problem);
    }
    if end.unread > 0 {
        let unread = count(end.unread, "damaged line or file");
        ui.note(&format!("{unread} could not be searched"));
    }
    let is_everything = args.places.is_empty() && args.filter.common.project.is_none();
    if is_everything && found.catalog.sessions().is_empty() && !args.json {
        session::note_no_sessions(ui);
    } else if end.hits == 0 && !args.json && !args.count {
        ui.note(&format!("no hits in {}", count(end.scanned, "session")));
        let typed = args.query.join(" ");
        for habit in typed.split_whitespace().filter_map(habit) {
            ui.note(&habit);
        }
        for hint in hints(ui, &found)? {
            ui.note(&hint);
        }
    }
    // The process ends, which frees all of it at once.
    std::mem::forget(found);
    Ok(exit::done_if(end.hits > 0 && !has_problems))
}

impl Args {
    fn settings(&self, ui: &Ui) -> Result<SearchSettings> {
        let common = &self.filter.common;
        let role = self.filter.role.iter().map(|role| {
            let role = role.to_possible_value();
            role.map_or(String::new(), |role| role.get_name().to_owned())
        });
        // A program gets everything that it asks for; a person would only see the end of it.
        let default = (!self.json).then_some(DEFAULT_HITS);
        Ok(SearchSettings {
            query: self.query.join(" "),
            text: common.text.clone(),
            role: role.collect(),
            tool: self.filter.tool.clone(),
            since: common.since.clone(),
            until: common.until.clone(),
            branch: common.branch.clone(),
            places: session_sets::paths(ui, &self.places, common.project.as_deref(), self.all)?,
            project: common.project.clone(),
            // With `--files` the limit is one of sessions, and applies when all hits are known.
            limit: common.last.or(default.filter(|_| !self.files)),
            sort: match self.sort {
                Sort::Rank => SortName::Rank,
                Sort::Time => SortName::Time,
            },
            context: self.context,
            output: match (self.files, self.count) {
                (true, _) => SearchOutput::Files,
                (_, true) => SearchOutput::Count,
                _ => SearchOutput::Hits,
            },
            cache: Some(!self.no_cache),
            is_live_only: !self.all,
        })
    }
}

/// Says of a word that means more in other searches what it means here.
fn habit(word: &str) -> Option<String> {
    let (key, is_filter) = match word.split_once(':') {
        Some((key, value)) => (key, !value.is_empty()),
        None => (word, false),
    };
    // Words of other searches that people try first. Here each is a word like others, and finds nothing.
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
                "* is not a wildcard; {start} also matches within words"
            ));
        }
        _ => return None,
    };
    is_filter.then(|| format!("{key}: is not a filter but a word here; the filter is {ours}"))
}

/// Names the sessions that have all terms, although no entry has; or else how many have each, and what a word may have been meant to be.
fn hints(ui: &Ui, found: &SearchRun<'_>) -> Result<Vec<String>> {
    let SearchRun {
        catalog,
        query,
        options,
        ..
    } = found;
    let parts = query.one_by_one();
    let words: Vec<String> = query.words();
    if let [word] = &words[..] {
        return Ok(near_word(ui, word).into_iter().collect());
    }
    // Each term is a search of its own.
    if !(2..=MAX_PARTS).contains(&parts.len()) {
        return Ok(Vec::new());
    }
    let mut sessions: Vec<&CatalogSession> = catalog.sessions().iter().collect();
    // In no order, and all of them.
    let options = options
        .clone()
        .sort(transcript_engine::catalog::Sort::Rank)
        .limit(0);
    let mut numbers = Vec::new();
    for (part, word) in parts.iter().zip(&words) {
        let search = catalog.search(part, &options)?;
        let paths = search.session_paths();
        sessions.retain(|session| paths.contains(&*session.path));
        numbers.push((word, paths.len()));
    }
    if sessions.is_empty() {
        let sentences = numbers.iter().map(|(word, number)| {
            let word = ui.escaping.one_line(word);
            match number {
                0 => format!("{word}: in none"),
                _ => format!("{word}: in {}", count(*number, "session")),
            }
        });
        let sentences: Vec<String> = sentences.collect();
        let mut hints = vec![format!("alone: {}", sentences.join(", "))];
        let missing = numbers.iter().filter(|(_, number)| *number == 0);
        hints.extend(missing.filter_map(|(word, _)| near_word(ui, word)));
        return Ok(hints);
    }
    sessions.sort_by_key(|session| Reverse(session.modified));
    let names = Names::new(ui, catalog);
    let ids = sessions.iter().take(MAX_NAMED_SESSIONS);
    let ids: Vec<String> = ids
        .map(|session| ui.escaping.one_line(&names.id(&session.id)))
        .collect();
    let rest = and_more(sessions.len(), MAX_NAMED_SESSIONS);
    Ok(vec![format!(
        "no entry has all terms, but different entries of the same session do: {}{rest}",
        ids.join(", ")
    )])
}

/// Names the word that is nearest to one without hits, among those of titles and prompts: all other texts would take as long as the search.
fn near_word(ui: &Ui, word: &str) -> Option<String> {
    if word.chars().count() < MIN_TYPED_LEN || !word.chars().all(char::is_alphanumeric) {
        return None;
    }
    let listing = session::context(ui).listing(Listed::Live).ok()?;
    let texts = listing.rows.iter().flat_map(|row| {
        let texts = [&row.title, &row.first_prompt, &row.last_prompt];
        texts.into_iter().flatten()
    });
    let mut words = BTreeSet::new();
    for text in texts {
        let parts = text.split(|letter: char| !letter.is_alphanumeric());
        let parts = parts.filter(|part| part.chars().count() >= MIN_TYPED_LEN);
        words.extend(parts.map(str::to_lowercase));
    }
    let typed = word.to_lowercase();
    if words.contains(&typed) {
        return None;
    }
    let words = words.into_iter().map(|word| (word.clone(), word));
    let near = nearest(&typed, words)?;
    let [word, near] = [word, &near].map(|word| ui.escaping.one_line(word));
    Some(format!("{word}: did you mean {near}?"))
}

fn write(ui: &Ui, args: &Args, found: &mut SearchRun<'_>, out: &mut Output) -> Result<()> {
    let end = found.search.end();
    if args.files {
        let most = args.filter.common.last.unwrap_or(usize::MAX);
        for (session, _, _) in found.search.sessions().into_iter().take(most) {
            let path = session.path.display().to_string();
            writeln!(out, "{}", ui.escaping.escape(&path))?;
        }
        return Ok(());
    }
    if args.count {
        let sessions = count(end.sessions, "session");
        writeln!(out, "{} in {sessions}", count(end.hits, "hit"))?;
        return Ok(());
    }
    let printer = Printer {
        ui,
        names: Names::new(ui, found.catalog),
        context: args.context,
        now: Zoned::now(),
    };
    // The session with the best hit comes first, with all of its hits below one head.
    found.search.group_by_session();
    printer.print(out, &mut found.search)
}

/// Prints the error of a query; on a terminal, with its position.
fn complain(ui: &Ui, query: &str, error: &QueryError) {
    if query.trim().is_empty() {
        let failure = Failure::new(
            "bad-query",
            "empty query: name what to search for".to_owned(),
        );
        let next =
            "`transcript search 'two words'` finds both, `transcript help queries` has the filters";
        return ui.report(failure.with_next(next));
    }
    ui.report(Failure::new("bad-query", error.to_string()));
    // An arrow below the query only helps where both are in one place: not in a log.
    if io::stderr().is_terminal() && !ui.is_json() {
        let start: String = query.chars().take(error.position()).collect();
        let line = |text: &str| ui.escaping.escape(&text.replace('\n', " ")).into_owned();
        let before = " ".repeat(line(&start).width());
        ui.warn(&format!("  {}\n  {before}^", line(query)));
    }
}

/// The names of sessions as other commands take them.
struct Names {
    context: ops::Context,
    /// For each id the number of characters that distinguish it; the whole id if two sessions have it.
    lengths: HashMap<String, usize>,
}

impl Names {
    fn new(ui: &Ui, catalog: &Catalog) -> Self {
        let mut ids: Vec<&str> = catalog.sessions().iter().map(|one| &*one.id).collect();
        ids.sort_unstable();
        let same = |one: &str, other: &str| {
            let pairs = one.chars().zip(other.chars());
            // Other commands look up ids in any case.
            pairs
                .take_while(|(one, other)| one.eq_ignore_ascii_case(other))
                .count()
        };
        // Sorted, the most similar id is next to it, on either side.
        let lengths = ids.iter().enumerate().map(|(at, id)| {
            let next = ids.get(at + 1).map_or(0, |next| same(id, next));
            let above = at.checked_sub(1).map_or(0, |above| same(id, ids[above]));
            ((*id).to_owned(), (next.max(above) + 1).max(MIN_ID_LEN))
        });
        Self {
            lengths: lengths.collect(),
            context: session::context(ui),
        }
    }

    /// Returns the name of the session or file and the line, for `replay`.
    fn of(&self, ui: &Ui, hit: &Hit) -> String {
        let roots = self.context.roots();
        let is_in = |root: &Root| hit.path.starts_with(root.store.root());
        let is_stored = roots.iter().any(is_in);
        // With several roots the id may be that of a session in each.
        let is_only = roots.len() < 2 || self.id_len(&hit.session.id) <= hit.session.id.len();
        // An id leads to the file of the session in the store: a subagent, or a file elsewhere, needs its path.
        let name = if hit.path == hit.session.path && is_stored && is_only {
            self.id(&hit.session.id)
        } else {
            ui.render.below_home(&hit.path.display().to_string())
        };
        match hit.line {
            Some(line) => format!("{name}:{line}"),
            None => name,
        }
    }

    fn id(&self, id: &str) -> String {
        id.chars().take(self.id_len(id)).collect()
    }

    fn id_len(&self, id: &str) -> usize {
        self.lengths.get(id).copied().unwrap_or(usize::MAX)
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
                // The file changed after it was searched: the other hits are not affected.
                Err(error) => {
                    let text = message_of(&error);
                    self.ui.report(Failure::new("unreadable", text));
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
        let root = self.names.context.root_name(&hit.session.path);
        let parts = [
            Some(escaping.one_line(&self.names.id(&hit.session.id))),
            minute(millis, self.now.time_zone()),
            root.map(|root| one_line(&root)),
            Some(one_line(&folder)),
        ];
        let dim = styles.dim;
        let parts = joined(parts, " · ");
        writeln!(out, "{dim}{}{dim:#}", cut_text(&parts, width))?;
        Ok(())
    }

    fn hit(&self, out: &mut impl Write, hit: &Hit) -> Result<()> {
        let styles = self.ui.render.styles();
        let escaping = self.ui.escaping;
        let (dim, mark) = (styles.dim, styles.bold(styles.error));
        let name = escaping.one_line(&self.names.of(self.ui, hit));
        let time = hit.timestamp.as_deref();
        let millis = time.and_then(|time| time::millis(time.as_bytes()));
        let agent = hit.agent_id.as_ref();
        let copies = hit.also.iter().map(|copy| match copy.line {
            Some(line) => format!("{}:{line}", self.names.id(&copy.session_id)),
            None => self.names.id(&copy.session_id),
        });
        let also = (!hit.also.is_empty()).then(|| {
            let named: Vec<String> = copies.take(MAX_NAMED_COPIES).collect();
            let more = and_more(hit.also.len(), MAX_NAMED_COPIES);
            format!("also {}{more}", named.join(", "))
        });
        let parts = [
            Some(hit.what()),
            minute(millis, self.now.time_zone()),
            hit.why_unseen().map(str::to_owned),
            agent.map(|agent| format!("subagent {agent}")),
            also,
        ];
        let parts = escaping.one_line(&joined(parts, " · "));
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
                if is_marked {
                    write!(out, "{mark}{text}{mark:#}")?;
                } else {
                    write!(out, "{text}")?;
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
            None => snippet.fitted(escaping, width, MAX_SNIPPET_LINES),
            Some(_) => snippet.line_by_line(escaping, width),
        }
    }
}
