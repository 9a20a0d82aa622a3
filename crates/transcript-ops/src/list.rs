//! The sessions of a store.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use serde::Deserialize;
use transcript_format::time;
use transcript_format::unicode::comparable;
use transcript_reader::{Listing, SessionRow, SessionState, subagents_on};

use crate::context::{Context, Listed};
use crate::failure::Failure;
use crate::selection::TimeWindow;
use crate::sink::{self, Sink};
use crate::usage::{Costs, kept_costs};
use crate::wire::SessionRecord;

/// The options of `list`: the sessions and their order.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListSettings {
    /// Only sessions whose title, tag, first or last prompt, folder, branch of git or id contains this text, ignoring case.
    pub text: Option<String>,
    /// Only sessions with a message from this time on: `2026-01-31`, `2026-01-31T12:00:00Z`, `2h`, `3d`, `yesterday`.
    pub since: Option<String>,
    /// Only sessions that were started up to this time.
    pub until: Option<String>,
    /// Only sessions of the project at this path, in any of its worktrees.
    pub project: Option<PathBuf>,
    /// Only sessions whose last entry was written on this branch of git.
    pub branch: Option<String>,
    /// Only sessions in one of these states; all by default.
    #[serde(default)]
    pub state: Vec<StateName>,
    /// The order of the sessions.
    #[serde(default)]
    pub sort: SessionOrder,
    /// Puts sessions together; not by default.
    pub by: Option<SessionGroup>,
    /// The maximum number of sessions: the first ones in the order. All by default.
    pub limit: Option<usize>,
    /// Whether the ids of subagents are returned, as `agents`.
    #[serde(default)]
    pub sidechains: bool,
    /// Lists the sessions of the archive, and only these.
    #[serde(default)]
    pub archived: bool,
    /// Whether sessions of the archive whose files are gone are listed as well.
    #[serde(default)]
    pub all: bool,
    /// Whether what is known about the files is kept in the cache folder, and used; by default it is.
    #[serde(skip)]
    pub cache: Option<bool>,
}

/// The state in which a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StateName {
    /// With an answer.
    Finished,
    /// It waits for the person.
    Waiting,
    /// With a call that has no result.
    OpenCall,
    /// Without an answer.
    Stalled,
}

/// The order of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SessionOrder {
    /// By the last message, newest first; a fork counts as new when it was made.
    #[default]
    Modified,
    /// By the first message, newest first.
    Created,
    /// By the size of the file, largest first.
    Size,
    /// By the number of entries, largest first.
    Messages,
    /// By the title.
    Title,
}

/// The criterion by which sessions are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SessionGroup {
    /// Their folder; that of the first session comes first.
    Project,
}

/// The sessions that were found.
#[derive(Debug)]
pub struct ListedSessions<'l> {
    /// All sessions that there are, and the errors.
    pub listing: &'l Listing,
    /// The listed sessions, in order.
    pub rows: Vec<&'l SessionRow>,
    /// The cost of the sessions of which it is known.
    pub costs: Costs,
    context: &'l Context,
}

/// Lists sessions, and gives the result to `then`.
///
/// # Errors
/// When an option cannot be used, or the store or the archive cannot be read.
pub fn with_list<T>(
    settings: &ListSettings,
    context: &Context,
    then: impl FnOnce(ListedSessions<'_>) -> T,
) -> Result<T, Failure> {
    let window = TimeWindow::read(settings.since.as_deref(), settings.until.as_deref())?;
    let which = if settings.archived {
        Listed::Archived
    } else if settings.all {
        Listed::All
    } else {
        Listed::Live
    };
    if settings.archived && context.archives().next().is_none() {
        return Err(Failure::option("archived", "there is no archive"));
    }
    let context = &context.with_cache(settings.cache);
    let (listing, costs) = std::thread::scope(|scope| {
        // Only what is kept: a list does not read whole files.
        let costs = scope.spawn(|| kept_costs(context));
        let listing = context.listing(which);
        (listing, costs.join().unwrap_or_default())
    });
    let listing = listing?;
    let mut rows = match &settings.project {
        Some(project) => listing.of_project_named(project),
        None => listing.rows.iter().collect(),
    };
    rows.retain(|row| settings.selects(row, window));
    sort(&mut rows, settings.sort);
    rows.truncate(settings.limit.unwrap_or(rows.len()));
    if settings.by.is_some() {
        group(&mut rows);
    }
    Ok(then(ListedSessions {
        listing: &listing,
        rows,
        costs,
        context,
    }))
}

/// Lists sessions, and writes their records.
pub(crate) fn list(
    settings: &ListSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> sink::Result<()> {
    with_list(settings, context, |listed| {
        listed.write(settings.sidechains, sink)
    })?
}

impl ListedSessions<'_> {
    /// Returns the name of the root of a session, if several roots are in use.
    #[must_use]
    pub fn root_name(&self, row: &SessionRow) -> Option<String> {
        let name = self.context.root_name(&row.path)?;
        Some(name.to_string())
    }

    /// Returns the name of the agent that wrote a session; `None` for Claude Code.
    #[must_use]
    pub fn maker(&self, row: &SessionRow) -> Option<&'static str> {
        self.context.maker(&row.path)
    }

    /// Returns the name of the machine that captured an archived session, if several share the archive.
    #[must_use]
    pub fn machine(&self, row: &SessionRow) -> Option<String> {
        self.context.machine_of(&row.path)
    }

    /// Writes the record of each session, `with_agents` with the ids of its subagents.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn write(&self, with_agents: bool, sink: &mut dyn Sink) -> sink::Result<()> {
        for row in &self.rows {
            let mut record = SessionRecord::new(row);
            record.in_archive = self.context.is_archived(&row.path);
            record.root = self.root_name(row);
            record.agent = self.maker(row).map(str::to_owned);
            record.machine = self.machine(row);
            let cost = self.costs.get(&row.session_id);
            record.cost_nano_usd = cost.and_then(|cost| u64::try_from(*cost).ok());
            if with_agents && row.subagents > 0 {
                let agents = subagents_on(self.context.read_disk(), &row.path).unwrap_or_default();
                record.agents = agents.into_iter().map(|agent| agent.id).collect();
            }
            sink.record(&record)?;
        }
        Ok(())
    }
}

impl ListSettings {
    fn selects(&self, row: &SessionRow, window: TimeWindow) -> bool {
        let text = self.text.as_deref().map(comparable);
        let created = row.created.as_deref();
        let created = created.and_then(|created| time::millis(created.as_bytes()));
        let is_state = |state: &StateName| row.state == Some((*state).into());
        let is_on = |branch: &String| row.branch.as_ref() == Some(branch);
        row.order_millis().is_none_or(|last| last >= window.since)
            && (created.or(row.modified_millis())).is_none_or(|first| first <= window.until)
            && (self.state.is_empty() || self.state.iter().any(is_state))
            && self.branch.as_ref().is_none_or(is_on)
            && text.is_none_or(|text| says(row, &text))
    }
}

impl From<StateName> for SessionState {
    fn from(name: StateName) -> Self {
        match name {
            StateName::Finished => Self::Finished,
            StateName::Waiting => Self::Waiting,
            StateName::OpenCall => Self::OpenCall,
            StateName::Stalled => Self::Stalled,
        }
    }
}

/// Returns whether a value of the row contains a text, which is [`comparable`].
fn says(row: &SessionRow, text: &str) -> bool {
    let values = [
        &row.title,
        &row.tag,
        &row.first_prompt,
        &row.last_prompt,
        &row.cwd,
        &row.branch,
    ];
    let values = values.into_iter().flatten().chain([&row.session_id]);
    values
        .into_iter()
        .any(|value| comparable(value).contains(text))
}

/// Sorts the rows, which are sorted by time; unknown values come last.
fn sort(rows: &mut [&SessionRow], order: SessionOrder) {
    match order {
        SessionOrder::Modified => {}
        SessionOrder::Created => rows.sort_by_cached_key(|row| {
            let created = row.created.as_deref();
            Reverse(created.and_then(|created| time::millis(created.as_bytes())))
        }),
        SessionOrder::Size => rows.sort_by_key(|row| Reverse(row.bytes)),
        SessionOrder::Messages => rows.sort_by_key(|row| Reverse(row.messages)),
        SessionOrder::Title => rows.sort_by_cached_key(|row| {
            let title = row.title.as_ref().or(row.first_prompt.as_ref());
            (title.is_none(), title.map(|title| title.to_lowercase()))
        }),
    }
}

/// Puts the sessions of each folder together; the folders are in the order of their first session.
fn group(rows: &mut [&SessionRow]) {
    let mut places = HashMap::new();
    for row in rows.iter() {
        let next = places.len();
        places.entry(folder_of(row)).or_insert(next);
    }
    rows.sort_by_cached_key(|row| places.get(folder_of(row)).copied());
}

/// Returns the folder of a session, or the name of its project.
#[must_use]
pub fn folder_of(row: &SessionRow) -> &str {
    row.cwd.as_deref().unwrap_or(&row.project)
}
