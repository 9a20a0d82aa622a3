//! The cost of sessions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::Deserialize;
use transcript_catalog::usage::{
    By, ClientTotal, Prices, Report, RootNames, Row, Usage, UsageOptions, is_kept, sort_rows,
};
use transcript_catalog::{Catalog, moment};
use transcript_manage::session_sets::add_files;
use transcript_reader::SessionFiles;

use crate::context::{Context, Selection};
use crate::failure::Failure;
use crate::roots::Root;
use crate::sink::{Result, Sink};
use crate::wire::{ClientCostRecord, CostRecord, CostRow, CostTotal};

/// The options of `usage`: the sessions, the grouping, the prices.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UsageSettings {
    /// The grouping of the rows: `day`, `week`, `month`, `hour5`, `root`, `project`, `session`, `model`, `maker` (the agent), `subagent`,
    /// `subagent-type`, `branch`, `git-branch`, `compaction` or `tool`; several for their combinations. Without any there is only the total.
    #[serde(default)]
    pub by: Vec<String>,
    /// Only requests from this time on: a time as in RFC 3339, a date, `today`, `yesterday`, or a duration before now, such
    /// as `3d`.
    pub since: Option<String>,
    /// Only requests up to this time, in the same forms as `since`.
    pub until: Option<String>,
    /// The time zone of days, weeks and months; that of the system by default.
    pub timezone: Option<String>,
    /// A file of prices in the form of LiteLLM, which replace those that are part of the program.
    pub prices: Option<PathBuf>,
    /// The maximum number of rows: the latest, or those that cost most. The total is that of all.
    pub limit: Option<usize>,
    /// Ids of sessions, files and folders; all sessions if there are none.
    #[serde(default, rename = "in")]
    pub places: Vec<PathBuf>,
    /// Only the sessions of the project at this path.
    pub project: Option<PathBuf>,
    /// Whether what is known about the files is kept in the cache folder, and used.
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub cache: Option<bool>,
    /// Whether archived sessions whose files are gone are omitted.
    #[serde(skip)]
    pub is_live_only: bool,
    /// Whether the sums of deleted sessions are kept and counted, if all sessions are.
    #[serde(skip)]
    pub keeps_deleted: bool,
}

/// The counted tokens and the cost of sessions.
#[derive(Debug)]
pub struct CountedUsage<'u> {
    /// The sessions.
    pub catalog: &'u Catalog,
    /// The requests and their tokens.
    pub usage: Usage<'u>,
    /// The price table.
    pub prices: &'u Prices,
    /// The options of the report.
    pub report: Report,
    /// The time of the report, in its time zone.
    pub now: Zoned,
    settings: &'u UsageSettings,
}

/// The rows of a report.
#[derive(Debug)]
pub struct ShownRows {
    /// The rows to show, in order.
    pub rows: Vec<Row>,
    /// The number of all.
    pub all: usize,
    /// Their sum.
    pub total: Row,
    /// The number of requests without a time.
    pub without_time: u64,
}

/// Counts the usage of sessions, and gives the result to `then`.
///
/// # Errors
/// When an option cannot be used, or the sessions cannot be found.
pub fn with_usage<T>(
    settings: &UsageSettings,
    context: &Context,
    then: impl FnOnce(CountedUsage<'_>) -> T,
) -> std::result::Result<T, Failure> {
    let prices = settings.prices()?;
    let now = settings.now()?;
    let mut report = settings.report(&now)?;
    let context = &context.with_cache(settings.cache);
    let catalog = context.catalog(&Selection {
        places: settings.places.clone(),
        project: settings.project.clone(),
        archived: !settings.is_live_only,
    })?;
    let mut options = settings.options(context);
    if settings.keeps_deleted && settings.places.is_empty() && settings.project.is_none() {
        let roots = context.stores().map_err(Failure::from)?;
        options = roots.fold(options, |options, store| {
            options.keep_deleted(store.root().to_owned())
        });
    }
    if report.by.contains(&By::Root) || context.roots().len() > 1 {
        report.roots = roots_of(context, &catalog);
    }
    let homes = context.agent_homes().folders();
    report.makers = homes.map(|(home, agent)| (home, agent.into())).collect();
    context.expect(catalog.bytes());
    let usage = catalog.usage(&options);
    context.agent_homes().keep_memory();
    Ok(then(CountedUsage {
        catalog: &catalog,
        usage,
        prices: &prices,
        report,
        now,
        settings,
    }))
}

/// Returns the names of the roots of the sessions by the paths of their files and folders.
fn roots_of(context: &Context, catalog: &Catalog) -> RootNames {
    let name = |path: &Path, name: &Root| (path.to_owned(), Arc::clone(&name.name));
    let live = context.roots().iter();
    let mut names: RootNames = live.map(|root| name(root.store.root(), root)).collect();
    for session in catalog.sessions() {
        let archived = context.archived_root(&session.path);
        for path in [session.path.clone(), session.path.with_extension("")] {
            names.extend(archived.map(|root| name(&path, root)));
        }
    }
    names
}

/// Counts the usage of sessions, and writes the records of it.
pub(crate) fn usage(
    settings: &UsageSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    with_usage(settings, context, |counted| counted.write(sink))?.map(drop)
}

impl UsageSettings {
    /// Returns the prices.
    ///
    /// # Errors
    /// When the file of prices cannot be read.
    pub fn prices(&self) -> std::result::Result<Prices, Failure> {
        let Some(path) = &self.prices else {
            return Ok(Prices::embedded());
        };
        let prices = Prices::read(path);
        prices.map_err(|error| Failure::new("bad-prices", error.to_string()).at(path))
    }

    /// Returns the current time in the time zone of the report.
    ///
    /// # Errors
    /// When there is no such time zone.
    pub fn now(&self) -> std::result::Result<Zoned, Failure> {
        let zone = match &self.timezone {
            Some(name) => TimeZone::get(name)
                .map_err(|error| Failure::option("timezone", format_args!("{name}: {error}")))?,
            None => TimeZone::system(),
        };
        Ok(Timestamp::now().to_zoned(zone))
    }

    /// Returns the options of the catalog.
    #[must_use]
    pub fn options(&self, context: &Context) -> UsageOptions {
        let options = UsageOptions::new().count_bytes(context.counter());
        match context.cache(self.cache) {
            Some(folder) => options.cache(folder),
            None => options,
        }
    }

    fn report(&self, now: &Zoned) -> std::result::Result<Report, Failure> {
        let by = self.by.iter().map(|name| kind(name));
        let by: Vec<By> = by.collect::<std::result::Result<_, _>>()?;
        let time = |name: &'static str, text: &Option<String>| {
            let time = text.as_deref().map(|text| moment::parse(text, now));
            time.transpose()
                .map_err(|error| Failure::option(name, error))
        };
        let mut report = Report::by(&by);
        report.since = time("since", &self.since)?;
        report.until = time("until", &self.until)?;
        report.zone = now.time_zone().clone();
        Ok(report)
    }
}

impl CountedUsage<'_> {
    /// Returns the rows by these kinds, the latest or those that cost most.
    #[must_use]
    pub fn rows(&self, by: &[By]) -> ShownRows {
        let (mut rows, total, without_time) = self.all_rows(by);
        let all = rows.len();
        let limit = self.settings.limit.unwrap_or(usize::MAX);
        sort_rows(&mut rows, by);
        if by.first().is_some_and(|by| by.is_time()) {
            rows.drain(..all.saturating_sub(limit));
        } else {
            rows.truncate(limit);
        }
        ShownRows {
            rows,
            all,
            total,
            without_time,
        }
    }

    /// Returns all rows by these kinds, their total, and the number of requests without a time.
    #[must_use]
    pub fn all_rows(&self, by: &[By]) -> (Vec<Row>, Row, u64) {
        let mut report = self.report.clone();
        report.by = by.to_vec();
        let rows = self.usage.rows(&report, self.prices);
        let (total, without_time) = (rows.total().clone(), rows.without_time());
        (rows.collect(), total, without_time)
    }

    /// Returns the totals that clients counted in whole sessions that are named; empty if a part of the time is asked for.
    #[must_use]
    pub fn client_totals(&self) -> Vec<ClientTotal> {
        let is_part = self.report.since.is_some() || self.report.until.is_some();
        if self.settings.places.is_empty() || is_part {
            return Vec::new();
        }
        self.usage.client_totals(self.prices)
    }

    /// Writes the records of the rows, of what clients counted, and of the total. Returns the total.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn write(&self, sink: &mut dyn Sink) -> Result<Row> {
        let (by, prices, usage) = (&self.report.by, self.prices, &self.usage);
        let shown = self.rows(by);
        let now = self.now.timestamp().as_millisecond();
        let blocks = usage.blocks_by_key(&self.report, prices, now);
        for row in &shown.rows {
            let block = row.keys.first();
            let block = block.and_then(|key| blocks.get(&key.to_string()));
            sink.record(&CostRecord::Row(CostRow::new(by, row, block)))?;
        }
        for total in self.client_totals() {
            sink.record(&CostRecord::Client(ClientCostRecord::new(&total)))?;
        }
        let (searches, unread) = (usage.unmatched_searches(), usage.unread());
        let files = usage.problems().len() as u64;
        let (total, without_time) = (shown.total, shown.without_time);
        let end = CostTotal::new(&total, without_time, searches, unread, files, prices);
        sink.record(&CostRecord::Total(end))?;
        Ok(total)
    }
}

/// The costs of sessions by id, in nano-dollars.
pub type Costs = HashMap<String, u128>;

/// Returns the costs of the sessions of which all is kept, and all prices are known.
pub(crate) fn kept_costs(context: &Context) -> Costs {
    let cache = context.cache(None).filter(|cache| is_kept(cache));
    let Some(cache) = cache else {
        return Costs::new();
    };
    let mut files = SessionFiles::default();
    for store in context.stores().into_iter().flatten() {
        let of_root = SessionFiles::in_root_on(context.read_disk(), store.root());
        add_files(&mut files, of_root.unwrap_or_default());
    }
    if files.sessions.is_empty() {
        return Costs::new();
    }
    let catalog = Catalog::of(context.read_disk(), files);
    let usage = catalog.usage(&UsageOptions::new().cache(cache).only_kept(true));
    let rows = usage.rows(&Report::by(&[By::Session]), &Prices::embedded());
    let known = rows.filter(|row| row.sums.requests > 0 && row.sums.unknown_models.is_empty());
    let costs = known.filter_map(|row| {
        let (session, cost) = (row.keys[0].to_string(), row.sums.cost?);
        usage.is_known(&session).then_some((session, cost))
    });
    costs.collect()
}

fn kind(name: &str) -> std::result::Result<By, Failure> {
    By::named(name).ok_or_else(|| {
        let names = By::ALL.map(By::name).join(", ");
        Failure::option("by", format!("{name} is none of {names}"))
    })
}
