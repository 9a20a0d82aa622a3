//! The pages of the server around its sessions: the list, hits of a search, usage.

use std::sync::Arc;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use transcript_catalog::usage::{By, Row};
use transcript_format::units::{grouped, size};
use transcript_ops::agents::CLAUDE_CODE;
use transcript_ops::search::{SearchRun, SearchSettings, with_search};
use transcript_ops::usage::{CountedUsage, UsageSettings, with_usage};
use transcript_ops::{Failure, Selection};
use transcript_page::assets::STYLE;
use transcript_page::frame::{self, Head};
use transcript_reader::{Listing, SessionRow, Subagent};
use transcript_render::{Escaping, count, cut_text, minute};

use crate::assets::{self, SCRIPT};
use crate::live::{Parts, src};
use crate::options::ServeOptions;
use crate::shown;

/// The maximum number of sessions in the list before all are asked for.
const MAX_LISTED_SESSIONS: usize = 300;
/// The maximum number of hits that are shown.
const MAX_HITS: usize = 200;
/// The maximum number of rows of usage that are shown.
const MAX_USAGE_ROWS: usize = 60;
/// The maximum length of a title in the list, in characters.
const MAX_TITLE_CHARS: usize = 110;

/// The page around something else than a session. `up` leads to the list.
fn page(title: &str, up: &str, query: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body.wide {
                header {
                    h1 { (title) }
                    (menu(up, query))
                }
                main #conversation tabindex="-1" { (content) }
            }
        }
    };
    page.into_string()
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (title) }
            style { (PreEscaped(STYLE)) }
        }
    }
}

fn menu(up: &str, query: &str) -> Markup {
    html! {
        form.menu role="search" aria-label="All sessions" action=(up) method="get" {
            a href=(up) { "Sessions" }
            a href=(format!("{up}usage")) { "Usage" }
            input type="search" name="q" value=(query) placeholder="Search all sessions" aria-label="Search all sessions";
            button type="submit" { "Search" }
        }
    }
}

/// All sessions, the last ones first.
pub(crate) fn list(options: &ServeOptions, all: bool) -> String {
    let listing = options
        .context
        .files(&Selection::default())
        .map(Listing::of);
    let listing = match listing {
        Ok(listing) => listing,
        Err(error) => return page("Sessions", "./", "", &html! { p.gap { (error) } }),
    };
    let shown = if all { usize::MAX } else { MAX_LISTED_SESSIONS };
    let sessions = listing.rows.iter().filter(|row| row.has_file).count();
    let rows = listing.rows.iter().filter(|row| row.has_file).take(shown);
    let rows: Vec<ListedRow<'_>> = rows.map(|row| ListedRow::new(row, options)).collect();
    let columns = Columns {
        roots: rows.iter().any(|row| row.root.is_some()),
        agents: rows.iter().any(|row| row.maker.is_some()),
    };
    let content = html! {
        p.facts { (count(sessions, "session")) }
        table.sessions {
            thead {
                tr {
                    th { "Session" }
                    @if columns.agents { th { "Agent" } }
                    @if columns.roots { th { "Root" } }
                    th { "Folder" }
                    th { "Last message" }
                    th.number { "Entries" }
                    th.number { "Size" }
                }
            }
            tbody { @for row in &rows { (session_row(row, columns, options)) } }
        }
        @if sessions > shown { p { a href="./?all" { "All " (sessions) " sessions" } } }
        @for problem in listing.problems.iter().take(5) { p.gap { (problem) } }
    };
    page("Sessions", "./", "", &content)
}

/// A session of the list.
struct ListedRow<'l> {
    row: &'l SessionRow,
    /// The name of its root, if several are in use.
    root: Option<Arc<str>>,
    /// The agent that wrote it; `None` for Claude Code.
    maker: Option<&'static str>,
}

impl<'l> ListedRow<'l> {
    fn new(row: &'l SessionRow, options: &ServeOptions) -> Self {
        Self {
            row,
            root: options.context.root_name(&row.path),
            maker: options.context.maker(&row.path),
        }
    }
}

/// The columns of the list that only some lists have.
#[derive(Clone, Copy)]
struct Columns {
    roots: bool,
    agents: bool,
}

fn session_row(listed: &ListedRow<'_>, columns: Columns, options: &ServeOptions) -> Markup {
    let ListedRow { row, root, maker } = listed;
    let root = root.as_deref();
    html! {
        tr {
            td { a href=(address(root, &row.project, &row.session_id)) { (title(row)) } @if let Some(state) = row.state { span.state { (state.name()) } } }
            @if columns.agents { td { (maker.unwrap_or(CLAUDE_CODE)) } }
            @if columns.roots { td { (Escaping::Visible.one_line(root.unwrap_or_default())) } }
            td { (row.cwd.as_deref().map_or_else(|| row.project.clone(), |cwd| options.render.below_home(cwd))) }
            td.time { (minute(row.modified_millis(), options.render.time_zone()).unwrap_or_default()) }
            td.number { @if let Some(messages) = row.messages { (grouped(messages)) } }
            td.number { (size(row.bytes)) }
        }
    }
}

fn title(row: &SessionRow) -> String {
    let title = row.title.as_deref().or(row.first_prompt.as_deref());
    let title = Escaping::Visible.one_line(title.unwrap_or("untitled"));
    cut_text(&title, MAX_TITLE_CHARS)
}

/// The address of a session, relative to that of the list.
fn address(root: Option<&str>, project: &str, id: &str) -> String {
    let folder = shown::folder_name(root, project);
    format!("s/{}/{}/", encoded(&folder), encoded(id))
}

/// Returns a name as part of an address.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            // A name of dots would be a step in the address.
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The page with the hits in all sessions.
pub(crate) fn search(options: &ServeOptions, text: &str) -> String {
    let content = found(options, text).unwrap_or_else(|error| html! { p.gap { (error) } });
    page("Search", "./", text, &content)
}

fn found(options: &ServeOptions, text: &str) -> Result<Markup, Failure> {
    let settings = SearchSettings {
        query: text.to_owned(),
        limit: Some(MAX_HITS),
        is_live_only: true,
        ..SearchSettings::default()
    };
    Ok(with_search(&settings, &options.context, hits)?)
}

fn hits(mut found: SearchRun<'_>) -> Markup {
    let end = found.search.end();
    found.search.group_by_session();
    let mut last = None;
    let mut content = html! {
        p.facts role="status" { (count(end.hits, "hit")) " in " (count(end.sessions, "session")) }
    };
    while let Some(hit) = found.search.next() {
        let Ok(hit) = hit else { continue };
        let root = found.root_name(&hit.session);
        let place = address(root.as_deref(), &hit.session.project, &hit.session.id);
        if last.as_ref() != Some(&hit.session.path) {
            let name = hit
                .row
                .as_deref()
                .map_or_else(|| hit.session.id.clone(), title);
            let root = root.as_ref().map(|root| Escaping::Visible.one_line(root));
            let head = html! { h2 { a href=(place) { (name) } @if let Some(root) = root { span.state { (root) } } } };
            content.0.push_str(&head.0);
            last = Some(hit.session.path.clone());
        }
        let anchor = hit
            .uuid
            .as_deref()
            .map_or_else(String::new, |uuid| format!("#{}", encoded(uuid)));
        let file = match &hit.agent_id {
            Some(agent) => format!("{place}a/{}/", encoded(agent)),
            None => place,
        };
        let who = hit.role.map_or(hit.field.name(), |role| role.name());
        let what = hit
            .tool
            .as_deref()
            .map(|tool| Escaping::Visible.one_line(tool));
        content.0.push_str(
            &html! {
                div.hit {
                    a href=(format!("{file}{anchor}")) { (who) @if let Some(what) = what { " · " (what) } @if let Some(line) = hit.line { " · line " (line) } }
                    p { (marked(&hit.snippet, &hit.matches)) }
                }
            }
            .0,
        );
    }
    content
}

/// Returns a snippet with its matches marked.
fn marked(snippet: &str, matches: &[std::ops::Range<usize>]) -> Markup {
    let chars: Vec<char> = snippet.chars().collect();
    let text = |from: usize, to: usize| {
        let text: String = chars.get(from..to).unwrap_or_default().iter().collect();
        Escaping::Visible.escape(&text).replace('\n', " ")
    };
    let mut at = 0;
    html! {
        @for found in matches {
            (text(at, found.start)) mark { (text(found.start, found.end)) }
            @let () = at = found.end;
        }
        (text(at, chars.len()))
    }
}

/// The page with the cost of sessions.
pub(crate) fn usage(options: &ServeOptions) -> String {
    let settings = UsageSettings {
        limit: Some(MAX_USAGE_ROWS),
        is_live_only: true,
        ..UsageSettings::default()
    };
    let homes = options.context.agent_homes();
    let has_agents = !homes.is_empty();
    // A root of another agent has its row by agent.
    let roots = options.context.roots().iter();
    let own_roots = roots.filter(|root| homes.maker_of_home(root.store.root()).is_none());
    let has_roots = own_roots.count() > 1;
    let counted = with_usage(&settings, &options.context, |counted| {
        tables(&counted, has_roots, has_agents)
    });
    let content = counted.unwrap_or_else(|error| html! { p.gap { (error) } });
    page("Usage", "./", "", &content)
}

fn tables(counted: &CountedUsage<'_>, has_roots: bool, has_agents: bool) -> Markup {
    let tables = [
        (By::Day, "day"),
        (By::Model, "model"),
        (By::Project, "project"),
        (By::Root, "root"),
        (By::Maker, "agent"),
    ];
    let is_shown = |by: &By| match by {
        By::Root => has_roots,
        By::Maker => has_agents,
        _ => true,
    };
    let tables = tables.into_iter().filter(|(by, _)| is_shown(by));
    html! {
        @for (by, name) in tables {
            @let shown = counted.rows(&[by]);
            h2 { "By " (name) }
            table.sessions {
                thead { tr { th { (name) } th.number { "Requests" } th.number { "Tokens in" } th.number { "Out" } th.number { "Cost" } } }
                tbody {
                    // Times are in order: the newest comes first here.
                    @if by.is_time() {
                        @for row in shown.rows.iter().rev() { (usage_row(&row.keys[0].to_string(), row, true)) }
                    } @else {
                        @for row in &shown.rows { (usage_row(&row.keys[0].to_string(), row, true)) }
                    }
                    @if shown.all > MAX_USAGE_ROWS { tr { td colspan="5" { (shown.all - MAX_USAGE_ROWS) " more" } } }
                    (usage_row("all", &shown.total, counted.usage.problems().is_empty()))
                }
            }
        }
        p.facts { "Costs by the prices of " (counted.prices.date()) "." }
    }
}

fn usage_row(name: &str, row: &Row, is_whole: bool) -> Markup {
    html! {
        tr {
            td { (Escaping::Visible.one_line(name)) }
            td.number { (grouped(row.sums.requests)) }
            td.number { (grouped(row.sums.tokens.prompt())) }
            td.number { (grouped(row.sums.tokens.output)) }
            td.number { (row.sums.worded_cost(is_whole)) }
        }
    }
}

/// The page of a session, or of a subagent.
pub(crate) struct SessionView<'a> {
    pub(crate) row: &'a SessionRow,
    pub(crate) agent: Option<&'a str>,
    pub(crate) agents: &'a [Subagent],
    pub(crate) options: &'a ServeOptions,
}

impl SessionView<'_> {
    /// The address of the list, relative to that of the page.
    fn up(&self) -> &'static str {
        match self.agent {
            Some(_) => "../../../../../",
            None => "../../../",
        }
    }

    /// Returns the part of the page that is shown before the session is read.
    pub(crate) fn start(&self) -> String {
        let title = match self.agent {
            Some(agent) => format!("Subagent {agent} of {}", title(self.row)),
            None => title(self.row),
        };
        let cwd = self.row.cwd.as_deref();
        let mut facts: Vec<String> = cwd
            .map(|cwd| self.options.render.below_home(cwd))
            .into_iter()
            .collect();
        let maker = self.options.context.maker(&self.row.path);
        facts.extend(maker.map(str::to_owned));
        facts.extend(self.row.branch.clone());
        facts.extend(self.row.model.clone());
        facts.push(format!("session {}", self.row.session_id));
        let facts: Vec<String> = facts
            .iter()
            .map(|fact| Escaping::Visible.one_line(fact))
            .collect();
        let head = Head {
            title: &title,
            facts: &facts,
            policy: &assets::policy(),
            no_script: Some(
                "The live page needs scripts; `transcript export --html --plain` writes one that does not.",
            ),
            menu: Some(menu(self.up(), "")),
            is_live: true,
        };
        head.start()
    }

    /// Returns the rest of the page.
    pub(crate) fn rest(&self, parts: Result<&Parts, &String>) -> String {
        let (known, sections) = match parts {
            Ok(parts) => (parts.known.as_str(), sections(parts)),
            Err(error) => ("", html! { p.gap { (error) } }),
        };
        let events = format!("events?known={known}");
        let side = html! {
            @if self.agent.is_some() { p { a href="../../" { "The session" } } }
            @else if !self.agents.is_empty() {
                h2 { (count(self.agents.len(), "subagent")) }
                ol {
                    li { a href="beside" { "All side by side" } }
                    @for agent in self.agents {
                        li { a href=(format!("a/{}/", encoded(&agent.id))) { (about(agent)) } }
                    }
                }
            }
        };
        let mut page = sections.into_string();
        page.push_str(&format!("<div id=\"end\" data-events=\"{events}\"></div>"));
        page.push_str(&frame::end_live(&side.0));
        page.push_str(&format!("<script>{SCRIPT}</script>\n{}", frame::LAST));
        page
    }
}

fn sections(parts: &Parts) -> Markup {
    html! {
        @for part in &parts.parts {
            section.piece data-height=(part.height) data-src=(src(&part.key)) {}
        }
    }
}

/// Names a subagent: its task, or its id.
fn about(agent: &Subagent) -> String {
    let meta = agent.meta();
    let task = meta.as_ref().and_then(|meta| meta.description());
    Escaping::Visible.one_line(task.as_deref().unwrap_or(&agent.id))
}

/// The session and its subagents in columns.
pub(crate) fn beside(agents: &[Subagent]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head("Side by side"))
            body {
                main.columns {
                    h1.out { "Side by side" }
                    iframe src="./" title="The session" {}
                    @for agent in agents {
                        iframe src=(format!("a/{}/", encoded(&agent.id))) title=(about(agent)) {}
                    }
                }
            }
        }
    };
    page.into_string()
}
