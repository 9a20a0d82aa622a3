//! Reports: sums of requests, grouped by kinds of keys.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;
use transcript_format::units::dollars;

use super::tokens::Tokens;

/// The kind of the rows of a report. Every request belongs to one row of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum By {
    /// The day in the time zone, as `2026-11-23`.
    Day,
    /// The Monday of the week, as `2026-11-23`.
    Week,
    /// The month, as `2026-11`.
    Month,
    /// The block of five hours: the time of its start in UTC, as `2026-11-23T08:00:00Z`.
    Hour5,
    /// The name of the root: of the folder of projects.
    Root,
    /// The name of the project folder.
    Project,
    /// The id of the session.
    Session,
    /// The model. A row of a side call is that of its own model.
    Model,
    /// The agent whose session it is, such as `codex` or `claude-code`.
    Maker,
    /// The id of the subagent; null for the conversation itself.
    Subagent,
    /// The type of the subagent.
    SubagentType,
    /// The branch of the conversation, named by its last entry.
    Branch,
    /// The branch in git.
    GitBranch,
    /// The number of compactions before the request.
    Compaction,
    /// The tool that the answer calls.
    Tool,
}

impl By {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Hour5,
        Self::Root,
        Self::Project,
        Self::Session,
        Self::Model,
        Self::Maker,
        Self::Subagent,
        Self::SubagentType,
        Self::Branch,
        Self::GitBranch,
        Self::Compaction,
        Self::Tool,
    ];

    /// Returns whether it is a part of the calendar, so that rows are in the order of time.
    #[must_use]
    pub fn is_time(self) -> bool {
        matches!(self, Self::Day | Self::Week | Self::Month | Self::Hour5)
    }

    /// Returns the name, as in `--by` and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Hour5 => "hour5",
            Self::Root => "root",
            Self::Project => "project",
            Self::Session => "session",
            Self::Model => "model",
            Self::Maker => "maker",
            Self::Subagent => "subagent",
            Self::SubagentType => "subagent-type",
            Self::Branch => "branch",
            Self::GitBranch => "git-branch",
            Self::Compaction => "compaction",
            Self::Tool => "tool",
        }
    }

    /// Returns the name of earlier versions, in which the programs that write sessions were not called agents. It is still accepted, and
    /// JSON has it beside the new one.
    #[must_use]
    pub fn former_name(self) -> Option<&'static str> {
        match self {
            Self::Subagent => Some("agent"),
            Self::SubagentType => Some("agent-type"),
            _ => None,
        }
    }

    /// Returns the kind of this name, or of this former one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|by| by.name() == name || by.former_name() == Some(name))
    }
}

/// The value of one kind by which the requests of a row were grouped.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Key {
    /// Unknown, or none.
    None,
    /// A number, of [`By::Compaction`].
    Number(u64),
    /// A text.
    Text(Arc<str>),
    /// A branch of a conversation.
    Branch {
        /// The uuid of its last entry.
        leaf: Arc<str>,
        /// Whether a resume continues it.
        is_current: bool,
    },
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("-"),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) | Self::Branch { leaf: text, .. } => text.fmt(f),
        }
    }
}

/// A report: the requests to sum up, and the kinds of its rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The kinds by which requests are grouped; empty for the total only.
    pub by: Vec<By>,
    /// Leaves out earlier requests and those without a time, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Leaves out later requests and those without a time, in milliseconds since 1970, inclusive.
    pub until: Option<i64>,
    /// The time zone of days, weeks and months.
    pub zone: TimeZone,
    /// The names of roots, for [`By::Root`].
    pub roots: RootNames,
    /// The agents of home folders, for [`By::Maker`]; sessions elsewhere are those of Claude Code.
    pub makers: RootNames,
}

/// The names of roots, by folders and files that are in them; of nested folders the inner one counts.
pub type RootNames = HashMap<PathBuf, Arc<str>>;

impl Report {
    /// Sums up all requests by `by`, in UTC.
    #[must_use]
    pub fn by(by: &[By]) -> Self {
        Self {
            by: by.to_vec(),
            since: None,
            until: None,
            zone: TimeZone::UTC,
            roots: RootNames::new(),
            makers: RootNames::new(),
        }
    }
}

/// Sums of requests and of side calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sums {
    /// The number of requests. Side calls do not count.
    pub requests: u64,
    /// The number of requests without final counts.
    pub incomplete: u64,
    /// The tokens, and the searches of the web.
    pub tokens: Tokens,
    /// Pages that the API fetched; they have no price.
    pub web_fetch: u64,
    /// The price of all calls whose price is known, in nano-dollars; `None` if none is known.
    pub cost: Option<u128>,
    /// The sum of the costs that lines of old clients have, in nano-dollars; `None` if no line has one.
    pub reported_cost: Option<u128>,
    /// The models whose price is not known.
    pub unknown_models: BTreeSet<Arc<str>>,
    /// The tokens of calls whose price is not known, in all.
    pub unpriced_tokens: u64,
    /// The number of requests of files that are gone.
    pub of_deleted: u64,
}

impl Sums {
    /// Words the cost for people: `unknown` if that of no call is known, which is never 0; a lower bound if the prices of some
    /// models are not known, or if these are not the sums of all there is (`is_whole`).
    #[must_use]
    pub fn worded_cost(&self, is_whole: bool) -> String {
        match self.cost {
            None => "unknown".to_owned(),
            Some(cost) if is_whole && self.unknown_models.is_empty() => dollars(cost),
            Some(cost) => format!("≥ {}", dollars(cost)),
        }
    }

    /// Adds other sums.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.incomplete += other.incomplete;
        self.of_deleted += other.of_deleted;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.web_fetch = self.web_fetch.saturating_add(other.web_fetch);
        self.unpriced_tokens = self.unpriced_tokens.saturating_add(other.unpriced_tokens);
        for (mine, more) in [
            (&mut self.cost, other.cost),
            (&mut self.reported_cost, other.reported_cost),
        ] {
            *mine = match (*mine, more) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            };
        }
        self.unknown_models.extend(other.unknown_models);
    }
}

/// Sorts rows as reports list them: by time if their first kind is one, compactions in their order, else the row that
/// cost most first.
pub fn sort_rows(rows: &mut [Row], by: &[By]) {
    let first = by.first();
    if !first.is_some_and(|by| by.is_time() || *by == By::Compaction) {
        sort_by_cost(rows);
    }
}

/// Sorts rows by their cost, then by their tokens of output and their requests, the largest first.
pub fn sort_by_cost(rows: &mut [Row]) {
    rows.sort_by(|one, other| {
        let of = |row: &Row| (row.sums.cost, row.sums.tokens.output, row.sums.requests);
        of(other).cmp(&of(one))
    });
}

/// One row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The keys of the row, one for each kind of the report, in its order.
    pub keys: Vec<Key>,
    /// The sums.
    pub sums: Sums,
    /// The earliest and the latest time of its requests, in milliseconds since 1970.
    pub times: Option<(i64, i64)>,
}

/// A block of five hours (docs/usage.md).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// The full hour at which it starts, in milliseconds since 1970.
    pub start: i64,
    /// Five hours later.
    pub end: i64,
    /// The times of its first and its last request.
    pub times: (i64, i64),
    /// Whether it continues.
    pub is_active: bool,
    /// The sums of its requests.
    pub sums: Sums,
}

/// The speed of a block: tokens per minute, cost per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// All tokens, input and output, of a minute.
    pub tokens_per_minute: u64,
    /// The cost of an hour, in nano-dollars.
    pub cost_per_hour: Option<u128>,
    /// The cost of the whole block if it continues like this, in nano-dollars; of an active one only.
    pub projected_cost: Option<u128>,
}

impl Block {
    /// Returns its rate between its first and its last request; `None` if there is only one.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        const HOUR: u128 = 3_600_000;
        let millis = |from: i64, to: i64| u128::try_from(to.saturating_sub(from)).ok();
        let took = millis(self.times.0, self.times.1).filter(|took| *took > 0)?;
        let tokens = self.sums.tokens;
        let tokens = u128::from(tokens.prompt().saturating_add(tokens.output));
        let cost = self.sums.cost;
        let per = |of: u128, all: u128| all.saturating_mul(of) / took;
        let left = millis(self.times.1, self.end).unwrap_or(0);
        Some(Rate {
            tokens_per_minute: u64::try_from(per(HOUR / 60, tokens)).unwrap_or(u64::MAX),
            cost_per_hour: cost.map(|cost| per(HOUR, cost)),
            projected_cost: cost
                .filter(|_| self.is_active)
                .map(|cost| cost.saturating_add(per(left, cost))),
        })
    }
}

/// The rows of a report, in the order of their keys.
#[derive(Debug)]
pub struct Rows {
    pub(super) rows: std::vec::IntoIter<Row>,
    pub(super) total: Row,
    pub(super) without_time: u64,
}

impl Rows {
    /// Returns the sums of all rows.
    #[must_use]
    pub fn total(&self) -> &Row {
        &self.total
    }

    /// Returns the number of requests that were omitted because their time is not known.
    #[must_use]
    pub fn without_time(&self) -> u64 {
        self.without_time
    }
}

impl Iterator for Rows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.rows.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for Rows {}

/// The total that the client itself counted for a session, next to our sum of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientTotal {
    /// The id of the session.
    pub session: Arc<str>,
    /// The cost that the client counted, in nano-dollars.
    pub theirs: Option<u128>,
    /// Our sum; a cost of `None` is not known.
    pub ours: Sums,
    /// Both for each model, by name.
    pub models: Vec<ModelTotal>,
}

/// The total that the client counted for a model, next to our sum.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelTotal {
    /// The model, without a trailing `[1m]`.
    pub model: Arc<str>,
    /// Its tokens as the client counted them; writes to the cache without a lifetime are of five minutes.
    pub their_tokens: Option<Tokens>,
    /// Its cost as the client counted it, in nano-dollars.
    pub theirs: Option<u128>,
    /// Our sum.
    pub ours: Sums,
}

/// The context of a session: how many tokens its last request had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextSize {
    /// The tokens of the prompt and the answer of the last request of the conversation itself.
    pub tokens: u64,
    /// The model.
    pub model: Option<Arc<str>>,
}
