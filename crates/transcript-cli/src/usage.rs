//! `transcript usage`: what sessions cost.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, ValueEnum};
use jiff::Timestamp;
use transcript_engine::SessionRow;
use transcript_engine::catalog::usage::{
    self, Block, By, ClientTotal, ContextSize, Key, Report, Row, Sums, Usage, sort_by_cost,
};
use transcript_engine::catalog::{Catalog, CatalogSession};
use transcript_format::units::dollars;
use transcript_ops::usage::{CountedUsage, ShownRows, UsageSettings, with_usage};
use transcript_ops::wire::{CostRecord, StatusRecord};
use transcript_ops::{Failure, Selection};
use transcript_reader::{Listing, SessionFile, SessionFiles, Source};
use transcript_render::{TextStyle, count, cut_text};
use transcript_storage::{ReadDisk, RealDisk};
use unicode_width::UnicodeWidthStr;

use crate::pager::Output;
use crate::progress::Progress;
use crate::ui::Ui;
use crate::{exit, record, session, session_sets};

/// The default number of days.
const DEFAULT_DAYS: usize = 30;
/// The maximum number of rows in the summary of a session.
const MAX_PARTS: usize = 12;
/// The height of the plot of days, in lines.
const PLOT_HEIGHT: u64 = 5;
/// The maximum width of a bar, in columns.
const MAX_BAR_WIDTH: usize = 20;
/// The maximum width of the key of a row, in columns.
const MAX_KEY_WIDTH: usize = 44;
/// The number of characters of an id that are shown next to a title.
const SHORT_ID_LEN: usize = 8;
/// The maximum time that the client takes to write the input of a status line.
#[cfg(unix)]
const STDIN_WAIT: Duration = Duration::from_millis(50);
/// The maximum length that is read of it, in bytes.
const MAX_STDIN: u64 = 64 << 10;

/// Show what sessions cost
///
/// Counts each request once, wherever it was copied to, in all branches and subagents, and prices it
/// with the built-in price table. The cost of a model that is not in the table is unknown.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Only these: paths of .jsonl files or of folders, ids of sessions [default: all sessions]
    #[arg(value_name = "SESSION|DIR")]
    places: Vec<PathBuf>,
    /// Group rows by KIND; repeat to combine
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kinds())]
    by: Vec<By>,
    /// Only requests from TIME on: 2026-01-31, 2026-01-31T12:00:00Z, 2h, 3d, yesterday
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only requests up to TIME
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only sessions of the project at PATH, in any of its worktrees; or of the projects with this in their path
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// Only N rows: the latest, or the most expensive
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// The time zone of days, weeks and months, such as Europe/Berlin [default: that of the system]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// A price file in the form of LiteLLM; its models replace the built-in ones
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Exit with 1 if the total is above this amount
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    warn_above: Option<u128>,
    /// Print one line for a prompt or a status bar: the cost of today and of a session, and its context
    #[arg(long, conflicts_with_all = ["by", "csv", "since", "until", "warn_above"])]
    statusline: bool,
    /// Do not use the cache
    #[arg(long)]
    no_cache: bool,
    /// Also count archived sessions whose files are gone
    #[arg(long)]
    all: bool,
    /// Keep and count the sums of sessions that are deleted from now on; `off` stops that
    #[arg(long, alias = "keep", value_enum, value_name = "ON", num_args = 0..=1, require_equals = true, default_missing_value = "on", conflicts_with = "no_cache")]
    keep_sums: Option<Switch>,
    /// Print one JSON object per line for each row
    #[arg(long)]
    json: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Switch {
    On,
    Off,
}

fn kinds() -> impl TypedValueParser<Value = By> {
    let names = By::ALL.into_iter().map(|by| {
        let value = PossibleValue::new(by.name());
        value.aliases(by.former_name())
    });
    let names = PossibleValuesParser::new(names);
    names.map(|name| By::named(&name).unwrap_or(By::Day))
}

/// Runs the command.
pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let cache = transcript_engine::cache_folder().filter(|_| !args.no_cache);
    let mut settings = args.settings();
    // First of all: `--keep-sums` has an effect whatever is printed.
    settings.keeps_deleted = keeps(cache.as_deref(), args.keep_sums)?;
    if args.statusline {
        return statusline(ui, args, &settings);
    }
    settings.places = session_sets::paths(ui, &args.places, args.project.as_deref(), args.all)?;
    let progress = Progress::start(ui);
    let context = progress.of(session::context(ui));
    with_usage(&settings, &context, |counted| {
        // The bar must be gone before the first output, which would be written over it.
        drop(progress);
        print(ui, args, counted)
    })?
}

impl Args {
    fn settings(&self) -> UsageSettings {
        UsageSettings {
            by: self.by.iter().map(|by| by.name().to_owned()).collect(),
            since: self.since.clone(),
            until: self.until.clone(),
            timezone: self.timezone.clone(),
            prices: self.prices.clone(),
            limit: self.limit,
            project: self.project.clone(),
            cache: Some(!self.no_cache),
            is_live_only: !self.all,
            ..UsageSettings::default()
        }
    }
}

/// Prints the cost of sessions.
fn print(ui: &Ui, args: &Args, counted: CountedUsage<'_>) -> Result<u8> {
    session_sets::note_problems(ui, counted.catalog);
    let mut out = Output::paged_unless(args.json || args.csv);
    let reporter = Reporter {
        ui,
        args,
        counted: &counted,
    };
    let written = if args.json {
        record::print(ui, &mut out, |sink| counted.write(sink))
    } else {
        reporter.write(&mut out)
    };
    let Some(total) = out.finish_after(written)? else {
        return Ok(exit::DONE);
    };
    // Only now: while a pager runs, it has the screen.
    for problem in counted.usage.problems() {
        ui.report(problem);
    }
    let is_everything = args.places.is_empty() && args.project.is_none();
    if is_everything && counted.catalog.sessions().is_empty() {
        session::note_no_sessions(ui);
    } else if total.sums.requests == 0 {
        ui.note(&format!(
            "no requests in {}",
            count(counted.catalog.sessions().len(), "session")
        ));
    }
    // A cost that is unknown is no reason to warn; one that is a lower bound is, if it is above already.
    let above = args
        .warn_above
        .filter(|most| total.sums.cost.is_some_and(|cost| cost > *most));
    if let Some(most) = above {
        let cost = total.sums.cost.unwrap_or_default();
        ui.warn(&format!("{} is above {}", dollars(cost), dollars(most)));
    }
    let unread = unread_files(&counted.usage);
    if let (None, Some(most), Some(unread)) = (above, args.warn_above, &unread) {
        let most = dollars(most);
        ui.warn(&format!(
            "whether the total is above {most} is not known: {unread} could not be read"
        ));
    }
    let is_found = counted.catalog.problems().is_empty();
    // The process ends, which frees all of it at once.
    std::mem::forget(counted);
    let is_whole = unread.is_none() && is_found;
    Ok(exit::done_if(above.is_none() && is_whole))
}

/// Returns whether the sums of deleted sessions stay; sets it first, if it is to be set.
fn keeps(cache: Option<&Path>, switch: Option<Switch>) -> Result<bool> {
    let Some(cache) = cache else {
        if switch.is_some() {
            bail!("--keep-sums: there is no cache folder");
        }
        return Ok(false);
    };
    let Some(switch) = switch else {
        return Ok(usage::keeps_deleted(cache));
    };
    let keeps = switch == Switch::On;
    let set = usage::set_keeps_deleted(cache, keeps);
    set.with_context(|| format!("--keep-sums: {}", cache.display()))?;
    Ok(keeps)
}

/// Parses an amount of dollars into nano-dollars.
fn parse_dollars(text: &str) -> Result<u128, String> {
    let wrong = || "expected an amount of dollars such as 20 or 2.50".to_owned();
    let text = text.trim().trim_start_matches('$');
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    // Nano-dollars have nine digits: a tenth one could only be lost.
    if !is_number(whole) || !is_number(part) || part.len() > 9 || whole.len() + part.len() == 0 {
        return Err(wrong());
    }
    format!("{whole}{part:0<9}").parse().map_err(|_| wrong())
}

/// Prints one report.
struct Reporter<'r> {
    ui: &'r Ui,
    args: &'r Args,
    counted: &'r CountedUsage<'r>,
}

impl Reporter<'_> {
    /// Prints the report. Returns the total.
    fn write(&self, out: &mut Output) -> Result<Row> {
        if self.args.csv {
            self.write_csv(out)
        } else {
            self.print(out)
        }
    }

    /// Returns the number of files that could not be read; `None` if all could.
    fn unread_files(&self) -> Option<String> {
        unread_files(&self.counted.usage)
    }

    /// Returns the cost of all, which is a lower bound if something could not be read.
    fn total_cost(&self, sums: &Sums) -> String {
        sums.worded_cost(self.counted.usage.problems().is_empty())
    }

    fn write_csv(&self, out: &mut Output) -> Result<Row> {
        let by = if self.args.by.is_empty() {
            &[By::Day][..]
        } else {
            &self.args.by
        };
        let ShownRows { rows, total, .. } = self.counted.rows(by);
        let names = by.iter().map(|by| by.name().to_owned());
        let fields = [
            "requests",
            "incomplete",
            "input",
            "output",
            "cacheWrite5m",
            "cacheWrite1h",
            "cacheRead",
            "webSearch",
            "costNanoUsd",
            "unknownModels",
            "costUsd",
        ];
        // What a key alone does not say.
        let place = |kind: By| by.iter().position(|by| *by == kind);
        let about = [
            place(By::Session).map(|at| ("title", at, self.titles(texts(&rows, at)))),
            place(By::Project).map(|at| ("folder", at, self.folders(texts(&rows, at)))),
        ];
        let about: Vec<_> = about.into_iter().flatten().collect();
        let more = about.iter().map(|(name, ..)| (*name).to_owned());
        let head: Vec<String> = names.chain(fields.map(str::to_owned)).chain(more).collect();
        // The line ends of RFC 4180, which spreadsheets expect.
        write!(out, "{}\r\n", head.join(","))?;
        for row in &rows {
            let keys = row.keys.iter().map(|key| match key {
                // Any word for it could be a key as well.
                Key::None => String::new(),
                key => quoted(&self.ui.escaping.one_line(&key.to_string())),
            });
            let (sums, tokens) = (&row.sums, &row.sums.tokens);
            let numbers = [
                sums.requests,
                sums.incomplete,
                tokens.input,
                tokens.output,
                tokens.cache_write_5m,
                tokens.cache_write_1h,
                tokens.cache_read,
                tokens.web_search,
            ];
            let cost = sums.cost.map(|cost| cost.to_string()).unwrap_or_default();
            let dollars = sums.cost.map(in_dollars).unwrap_or_default();
            let more = about.iter().map(|(_, at, values)| {
                let value = values.get(&row.keys[*at].to_string());
                let value = value.map(|value| self.ui.escaping.one_line(value));
                quoted(&value.unwrap_or_default())
            });
            let unknown: Vec<&str> = sums.unknown_models.iter().map(|name| &**name).collect();
            let unknown = quoted(&self.ui.escaping.one_line(&unknown.join(" ")));
            let fields = keys.chain(numbers.map(|number| number.to_string()));
            let fields: Vec<String> = fields.chain([cost, unknown, dollars]).chain(more).collect();
            write!(out, "{}\r\n", fields.join(","))?;
        }
        Ok(total)
    }

    /// Prints for people.
    fn print(&self, out: &mut Output) -> Result<Row> {
        let by = &self.args.by;
        if by.is_empty() {
            // A session that was named is shown by its parts. A folder that happens to have one session is not.
            return match (&self.args.places[..], self.counted.catalog.sessions()) {
                ([place], [_]) if !RealDisk.is_folder(place) => self.print_session(out),
                _ => self.print_overview(out),
            };
        }
        let ShownRows {
            rows,
            all,
            total,
            without_time,
        } = self.counted.rows(by);
        let counted = self.counted;
        let now = counted.now.timestamp().as_millisecond();
        let (report, prices) = (&counted.report, counted.prices);
        let blocks = counted.usage.blocks_by_key(report, prices, now);
        // Titles are read from the files of sessions, which takes longer than the counts of a cache.
        let titles = match by[..] {
            [By::Session] => self.titles(texts(&rows, 0)),
            _ => HashMap::new(),
        };
        let folders = match by.iter().position(|by| *by == By::Project) {
            Some(at) => self.folders(texts(&rows, at)),
            None => HashMap::new(),
        };
        let name = |row: &Row| {
            let name = self.name(by, row, &folders);
            match titles.get(&name) {
                // The start of an id is enough to name a session.
                Some(title) => {
                    let id: String = name.chars().take(SHORT_ID_LEN).collect();
                    format!("{id}  {}", self.ui.escaping.one_line(title))
                }
                None => name,
            }
        };
        let heads: Vec<&str> = by.iter().map(|by| by.name()).collect();
        self.print_table(out, &heads.join(" · "), &rows, &name)?;
        if rows.len() < all {
            let more = count(all - rows.len(), "row");
            self.dim(out, &format!("… and {more} more"))?;
        }
        if let Some(block) = blocks.values().find(|block| block.is_active) {
            self.print_active(out, block)?;
        }
        self.print_total(out, &total, without_time)?;
        Ok(total)
    }

    /// Prints the last days, and the models.
    fn print_overview(&self, out: &mut Output) -> Result<Row> {
        // Both tables are sums of the same rows, so that each of them adds up to the total.
        let (rows, total, without_time) = self.counted.all_rows(&[By::Day, By::Model]);
        let mut days = grouped(&rows, 0);
        let known = days.iter().filter(|row| row.keys[0] != Key::None);
        let plotted: Vec<(String, u128)> = known
            .map(|row| (row.keys[0].to_string(), row.sums.cost.unwrap_or(0)))
            .collect();
        if plotted.len() > 1 {
            self.print_plot(out, &plotted)?;
        }
        let shown = self.args.limit.unwrap_or(DEFAULT_DAYS);
        let earlier = days.len().saturating_sub(shown);
        days.drain(..earlier);
        self.print_table(out, "day", &days, &|row| {
            self.name(&[By::Day], row, &HashMap::new())
        })?;
        if earlier > 0 {
            let days = count(earlier, "day");
            self.dim(out, &format!("… and {days} before: --by day shows all"))?;
        }
        let mut models = grouped(&rows, 1);
        sort_by_cost(&mut models);
        if models.len() > 1 {
            writeln!(out)?;
            self.print_table(out, "model", &models, &|row| {
                self.name(&[By::Model], row, &HashMap::new())
            })?;
        }
        self.print_total(out, &total, without_time)?;
        Ok(total)
    }

    /// Prints the parts of one session.
    fn print_session(&self, out: &mut Output) -> Result<Row> {
        let session = &self.counted.catalog.sessions()[0];
        let styles = self.ui.render.styles();
        let (person, escaping) = (styles.person, self.ui.escaping);
        let title = self.titles([&*session.id]).remove(&*session.id);
        let id = escaping.one_line(&session.id);
        let room = self.ui.width.saturating_sub(id.width() + 2);
        let title = title.map(|title| format!("  {}", cut_text(&escaping.one_line(&title), room)));
        writeln!(out, "{person}{id}{person:#}{}", title.unwrap_or_default())?;
        let mut total = None;
        for (by, head) in [
            (By::Model, "model"),
            (By::Branch, "branch"),
            (By::Subagent, "subagent"),
            (By::Compaction, "compactions before"),
        ] {
            let kinds = match by {
                By::Subagent => vec![By::Subagent, By::SubagentType],
                by => vec![by],
            };
            let (mut rows, all, without_time) = self.counted.all_rows(&kinds);
            total = Some((all, without_time));
            // One row only repeats the total. The model is named in any case: the price follows from it.
            if rows.len() < 2 && by != By::Model {
                continue;
            }
            // Compactions stay in the order of the session.
            if by != By::Compaction {
                sort_by_cost(&mut rows);
            }
            let more = rows.len().saturating_sub(MAX_PARTS);
            rows.truncate(MAX_PARTS);
            writeln!(out)?;
            self.print_table(out, head, &rows, &|row| {
                self.name(&kinds, row, &HashMap::new())
            })?;
            if more > 0 {
                let more = count(more, "row");
                let name = by.name();
                self.dim(out, &format!("… and {more} more: --by {name} shows all"))?;
            }
        }
        for total in self.counted.client_totals() {
            self.print_client(out, &total)?;
        }
        let copies = self.counted.usage.copies(&session.id);
        if copies > 0 {
            let copies = count(copies, "request");
            self.dim(
                out,
                &format!("{copies} are copies; another session has the originals"),
            )?;
        }
        let (total, without_time) = total.context("no report")?;
        self.print_total(out, &total, without_time)?;
        Ok(total)
    }

    /// Returns the name of a row, for people; `folders` has those of projects.
    fn name(&self, by: &[By], row: &Row, folders: &HashMap<String, String>) -> String {
        let name = |(by, key): (&By, &Key)| match (by, key) {
            (By::Subagent, Key::None) => "the conversation".to_owned(),
            (By::SubagentType, Key::None) => String::new(),
            (By::Tool, Key::None) => "no tool".to_owned(),
            (By::Model, Key::None) => "no model".to_owned(),
            (By::Branch, Key::None) => "not known".to_owned(),
            (_, Key::None) => "none".to_owned(),
            (By::Branch, Key::Branch { leaf, is_current }) => {
                let leaf: String = leaf.chars().take(8).collect();
                let state = if *is_current { "current" } else { "rewound" };
                format!("{leaf} {state}")
            }
            (By::Hour5, Key::Text(start)) => match start.parse::<Timestamp>() {
                Ok(start) => {
                    let start = start.to_zoned(self.counted.now.time_zone().clone());
                    start.strftime("%Y-%m-%d %H:%M").to_string()
                }
                Err(_) => start.to_string(),
            },
            (By::Week, Key::Text(monday)) => format!("week of {monday}"),
            (By::Project, Key::Text(project)) => {
                let folder = folders
                    .get(&**project)
                    .map(|path| self.ui.render.below_home(path));
                let name = folder.unwrap_or_else(|| project.to_string());
                self.ui.escaping.one_line(&name)
            }
            (_, key) => self.ui.escaping.one_line(&key.to_string()),
        };
        let names = by.iter().zip(&row.keys).map(name);
        let names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
        names.join(" · ")
    }

    /// Reads the titles of these sessions, else their first prompts.
    fn titles<'s>(&self, ids: impl IntoIterator<Item = &'s str>) -> HashMap<String, String> {
        let ids: HashSet<&str> = ids.into_iter().collect();
        let rows = self.rows_of(|session| ids.contains(&*session.id));
        let rows = rows.into_iter();
        rows.filter_map(|row| Some((row.session_id, row.title.or(row.first_prompt)?)))
            .collect()
    }

    /// Reads the working folders of these projects, from the session of each that was changed last.
    fn folders<'s>(&self, projects: impl IntoIterator<Item = &'s str>) -> HashMap<String, String> {
        let projects: HashSet<&str> = projects.into_iter().collect();
        let mut newest: HashMap<&str, &CatalogSession> = HashMap::new();
        for session in self.counted.catalog.sessions() {
            let known = newest.entry(&session.project).or_insert(session);
            if known.modified < session.modified {
                *known = session;
            }
        }
        newest.retain(|project, _| projects.contains(project));
        let paths: HashSet<&Path> = newest.values().map(|session| &*session.path).collect();
        let rows = self.rows_of(|session| paths.contains(&*session.path));
        let rows = rows.into_iter().filter_map(|row| {
            let folder = row.home().or(row.cwd.as_deref())?.to_owned();
            Some((row.project, folder))
        });
        rows.collect()
    }

    /// Reads the rows of the sessions that are wanted.
    fn rows_of(&self, is_wanted: impl Fn(&CatalogSession) -> bool) -> Vec<SessionRow> {
        let disk = self.ui.disk();
        let mut files = SessionFiles::on(Arc::clone(&disk));
        let sessions = self.counted.catalog.sessions().iter();
        let sessions = sessions.filter(|session| is_wanted(session));
        files.sessions = sessions
            .map(|session| SessionFile::at(&*disk, &session.path))
            .collect();
        Listing::of(files).rows
    }

    fn dim(&self, out: &mut Output, text: &str) -> Result<()> {
        let dim = self.ui.render.styles().dim;
        Ok(self.ui.write_wrapped(out, text, "  ", dim)?)
    }

    fn print_table(
        &self,
        out: &mut Output,
        head: &str,
        rows: &[Row],
        name: &dyn Fn(&Row) -> String,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let styles = self.ui.render.styles();
        let (dim, person) = (styles.dim, styles.person);
        let names: Vec<String> = rows
            .iter()
            .map(|row| cut_text(&name(row), MAX_KEY_WIDTH))
            .collect();
        let written = |row: &Row| {
            let tokens = &row.sums.tokens;
            tokens.cache_write_5m.saturating_add(tokens.cache_write_1h)
        };
        // The column with the highest rank matters least, and is omitted first on a narrow terminal.
        let mut columns = [
            Column::new(2, "requests", rows, |row| row.sums.requests.to_string()),
            Column::new(4, "input", rows, |row| short(row.sums.tokens.input)),
            Column::new(5, "cache write", rows, |row| short(written(row))),
            Column::new(3, "cache read", rows, |row| {
                short(row.sums.tokens.cache_read)
            }),
            Column::new(1, "output", rows, |row| short(row.sums.tokens.output)),
            Column::new(0, "cost", rows, |row| row.sums.worded_cost(true)),
        ]
        .to_vec();
        let widths = names.iter().map(|name| name.width());
        let first = widths.chain([head.width()]).max().unwrap_or(0);
        let taken = |columns: &[Column]| {
            let widths = columns.iter().map(|column| 2 + column.width);
            first + widths.sum::<usize>()
        };
        for least in (1..=5).rev() {
            if taken(&columns) > self.ui.width {
                columns.retain(|column| column.rank != least);
            }
        }
        let left = self.ui.width.saturating_sub(taken(&columns) + 2);
        let bar = if left >= 8 {
            left.min(MAX_BAR_WIDTH)
        } else {
            0
        };
        let most = rows
            .iter()
            .filter_map(|row| row.sums.cost)
            .max()
            .unwrap_or(0);
        write!(out, "{dim}{head:first$}")?;
        for column in &columns {
            let (head, width) = (column.head, column.width);
            write!(out, "  {head:>width$}")?;
        }
        writeln!(out, "{dim:#}")?;
        for (at, (row, name)) in rows.iter().zip(&names).enumerate() {
            let pad = " ".repeat(first - name.width());
            write!(out, "{person}{name}{person:#}{pad}")?;
            for column in &columns {
                let cell = &column.cells[at];
                let pad = " ".repeat(column.width - cell.width());
                write!(out, "  {pad}{cell}")?;
            }
            let bar = bar_of(row.sums.cost.unwrap_or(0), most, bar);
            if !bar.is_empty() {
                write!(out, "  {dim}{bar}{dim:#}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Prints the cost of days as a plot.
    fn print_plot(&self, out: &mut Output, days: &[(String, u128)]) -> Result<()> {
        let width = self.ui.width.min(usize::from(u16::MAX)).max(1);
        // The latest ones, at least a column for each.
        let days = &days[days.len().saturating_sub(width)..];
        let most = days.iter().map(|(_, cost)| *cost).max().unwrap_or(0);
        if most == 0 {
            return Ok(());
        }
        // A day is as wide as there is room for all.
        let each = (width / days.len()).clamp(1, 3);
        let scaled = days.iter().flat_map(|(_, cost)| {
            let value = u64::try_from(cost.saturating_mul(1000) / most).unwrap_or(0);
            let gap = usize::from(each > 1);
            let column = std::iter::repeat_n(value, each - gap);
            column.chain(std::iter::repeat_n(0, gap))
        });
        let data: Vec<u64> = scaled.collect();
        let (dim, person) = (self.ui.render.styles().dim, self.ui.render.styles().person);
        writeln!(out, "{dim}{} a day at most{dim:#}", dollars(most))?;
        for line in plot(&data, 1000) {
            writeln!(out, "{person}{}{person:#}", line.trim_end())?;
        }
        let (first, last) = (&days[0].0, &days[days.len() - 1].0);
        let gap = data.len().saturating_sub(first.len() + last.len());
        let gap = " ".repeat(gap.max(1));
        writeln!(out, "{dim}{first}{gap}{last}{dim:#}\n")?;
        Ok(())
    }

    fn print_active(&self, out: &mut Output, block: &Block) -> Result<()> {
        let end = Timestamp::from_millisecond(block.end)?;
        let end = end.to_zoned(self.counted.now.time_zone().clone());
        let mut text = format!("The block until {} continues", end.strftime("%H:%M"));
        if let Some(rate) = block.rate() {
            text += &format!(": {} tokens a minute", short(rate.tokens_per_minute));
            if let Some(cost) = rate.cost_per_hour {
                text += &format!(", {} an hour", dollars(cost));
            }
            if let Some(cost) = rate.projected_cost {
                text += &format!(", {} in all if it continues like this", dollars(cost));
            }
        }
        Ok(self
            .ui
            .write_wrapped(out, &text, "  ", TextStyle::default())?)
    }

    /// Prints the total of the client next to our sum.
    fn print_client(&self, out: &mut Output, total: &ClientTotal) -> Result<()> {
        let styles = self.ui.render.styles();
        let dim = styles.dim;
        let known = |cost: Option<u128>| cost.map_or("unknown".to_owned(), dollars);
        let (theirs, ours) = (total.theirs, total.ours.cost);
        writeln!(out)?;
        let text = format!(
            "Claude Code counted {}, the transcript has {}{}",
            known(theirs),
            known(ours),
            gap(theirs, ours),
        );
        self.ui
            .write_wrapped(out, &text, "  ", TextStyle::default())?;
        // Some clients wrote no models.
        let says_models = total.models.iter().any(|model| model.theirs.is_some());
        for model in total.models.iter().filter(|_| says_models) {
            let (theirs, ours) = (model.theirs, model.ours.cost);
            if theirs == ours {
                continue;
            }
            let name = self.ui.escaping.one_line(&model.model);
            // A client that names models has not counted those that it does not name.
            let (theirs_text, ours_text) = (known(theirs.or(Some(0))), known(ours));
            let gap = gap(theirs.or(Some(0)), ours);
            writeln!(out, "  {dim}{name}: {theirs_text}, {ours_text}{gap}{dim:#}")?;
        }
        Ok(())
    }

    fn print_total(&self, out: &mut Output, total: &Row, without_time: u64) -> Result<()> {
        let sums = &total.sums;
        let person = self.ui.render.styles().person;
        let tokens = &sums.tokens;
        // Below a table, if there is one.
        if sums.requests > 0 {
            writeln!(out)?;
        }
        let total = format!("total {}", self.total_cost(sums));
        let text = format!(
            "{total}  {}, {} tokens of input, {} of output",
            count(sums.requests, "request"),
            short(tokens.prompt()),
            short(tokens.output),
        );
        self.ui.write_marked(out, &text, "  ", &total, person)?;
        let mut notes = Vec::new();
        if let Some(unread) = self.unread_files() {
            notes.push(format!(
                "{unread} could not be read: the total is incomplete"
            ));
        }
        if sums.incomplete > 0 {
            notes.push(format!(
                "{} of {} without a final token count; the real cost is higher",
                sums.incomplete,
                count(sums.requests, "request")
            ));
        }
        if !sums.unknown_models.is_empty() {
            let models = sums.unknown_models.iter();
            let models: Vec<_> = models.map(|name| self.ui.escaping.one_line(name)).collect();
            let (models, tokens) = (models.join(", "), short(sums.unpriced_tokens));
            notes.push(format!(
                "no price for {models}: {tokens} tokens (--prices FILE adds prices)"
            ));
        }
        if tokens.web_search > 0 {
            notes.push(count(tokens.web_search, "web search"));
        }
        if let Some(reported) = sums.reported_cost {
            notes.push(format!(
                "Claude Code itself recorded a cost of {}",
                dollars(reported)
            ));
        }
        let usage = &self.counted.usage;
        let (searches, unread) = (usage.unmatched_searches(), usage.unread());
        for (number, what, about) in [
            (sums.of_deleted, "request", "of deleted sessions"),
            (without_time, "request", "without a time omitted"),
            (searches, "search", "of calls that are not in the file"),
            (unread, "damaged entry", "could not be read"),
        ] {
            if number > 0 {
                notes.push(format!("{} {about}", count(number, what)));
            }
        }
        notes.push(format!("prices of {}", self.counted.prices.date()));
        for note in notes {
            self.dim(out, &note)?;
        }
        Ok(())
    }
}

/// A column of numbers.
#[derive(Clone, Debug)]
struct Column {
    rank: usize,
    head: &'static str,
    cells: Vec<String>,
    width: usize,
}

impl Column {
    fn new(rank: usize, head: &'static str, rows: &[Row], of: impl Fn(&Row) -> String) -> Self {
        let cells: Vec<String> = rows.iter().map(of).collect();
        let widths = cells.iter().map(|cell| cell.width());
        Self {
            rank,
            head,
            width: widths.chain([head.width()]).max().unwrap_or(0),
            cells,
        }
    }
}

/// Returns the texts of the keys at this place.
fn texts(rows: &[Row], at: usize) -> impl Iterator<Item = &str> {
    rows.iter().filter_map(move |row| match &row.keys[at] {
        Key::Text(text) => Some(&**text),
        _ => None,
    })
}

/// Sums up rows by the key at this place.
fn grouped(rows: &[Row], at: usize) -> Vec<Row> {
    let mut groups: BTreeMap<Key, Row> = BTreeMap::new();
    for row in rows {
        let key = row.keys[at].clone();
        match groups.get_mut(&key) {
            Some(group) => group.sums.add(row.sums.clone()),
            None => {
                let mut row = row.clone();
                row.keys = vec![key.clone()];
                groups.insert(key, row);
            }
        }
    }
    groups.into_values().collect()
}

/// Returns the difference between the total of the client and ours, in words.
fn gap(theirs: Option<u128>, ours: Option<u128>) -> String {
    match (theirs, ours) {
        (Some(theirs), Some(ours)) if theirs > ours => {
            format!(": {} not in the transcript", dollars(theirs - ours))
        }
        (Some(theirs), Some(ours)) if theirs < ours => {
            format!(": {} more than Claude Code counted", dollars(ours - theirs))
        }
        _ => String::new(),
    }
}

/// Returns the number of files that could not be read; `None` if all could.
fn unread_files(usage: &Usage<'_>) -> Option<String> {
    let problems = usage.problems().len();
    (problems > 0).then(|| count(problems, "file"))
}

/// Returns the lines of a plot of values up to `max`: a column of blocks for each, in eighths of a line.
fn plot(values: &[u64], max: u64) -> Vec<String> {
    let line = |above: u64| {
        let column = |value: &u64| {
            let eighths = (value * PLOT_HEIGHT * 8 / max).saturating_sub(above * 8);
            [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][eighths.min(8) as usize]
        };
        values.iter().map(column).collect()
    };
    (0..PLOT_HEIGHT).rev().map(line).collect()
}

/// Returns a bar of blocks whose length is the part of `cost` in `most`.
fn bar_of(cost: u128, most: u128, width: usize) -> String {
    if most == 0 || width == 0 {
        return String::new();
    }
    let eighths = usize::try_from(cost.saturating_mul(8 * width as u128) / most).unwrap_or(0);
    let (whole, part) = (eighths / 8, eighths % 8);
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][part];
    format!("{}{part}", "█".repeat(whole))
}

/// Returns a number with three digits and its unit.
fn short(number: u64) -> String {
    let units = ["", "k", "M", "G", "T", "P", "E"];
    let mut unit = 0;
    let mut scaled = number as f64;
    // With three digits, 999.5 is 1000 already, and the same holds for the limits below.
    while scaled >= 999.5 && unit + 1 < units.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => number.to_string(),
        _ if scaled < 9.995 => format!("{scaled:.2}{}", units[unit]),
        _ if scaled < 99.95 => format!("{scaled:.1}{}", units[unit]),
        _ => format!("{scaled:.0}{}", units[unit]),
    }
}

/// Returns an amount in dollars, exactly: nano-dollars are its nine decimals.
fn in_dollars(nano: u128) -> String {
    format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000)
}

/// Quotes a field of comma-separated values if it has to be.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Prints the line for a status bar.
fn statusline(ui: &Ui, args: &Args, settings: &UsageSettings) -> Result<u8> {
    let (prices, now) = (settings.prices()?, settings.now()?);
    let context = session::context(ui);
    let options = settings.options(&context);
    let midnight = now.start_of_day()?.timestamp();
    let start = u64::try_from(midnight.as_millisecond()).unwrap_or_default();
    // A wrong `--root` is an error, and not a status of no cost.
    session::roots(ui)?;
    let catalog = context
        .catalog(&Selection::default())
        .map_err(Failure::from)?;
    session_sets::note_problems(ui, &catalog);
    // A file that did not change today has no request of today. A prompt is shown often, and most files are old.
    let today = options
        .clone()
        .changed_since(UNIX_EPOCH + Duration::from_millis(start));
    let usage = catalog.usage(&today);
    let mut report = Report::by(&[]);
    report.since = Some(midnight.as_millisecond());
    let all = usage;
    let today = all.rows(&report, &prices).total().sums.clone();
    let path = match &args.places[..] {
        [place] => Some(session::find(ui, place)?),
        [] => named_on_stdin(ui)?.or_else(|| {
            let sessions = catalog.sessions().iter();
            let latest = sessions.max_by_key(|session| session.modified);
            latest.map(|session| session.path.clone())
        }),
        _ => bail!("--statusline: one session at most"),
    };
    if !args.places.is_empty()
        && let Some(path) = &path
    {
        Source::open_on(&ui.disk(), path)?.check_messages()?;
    }
    let own = path.map(|path| Catalog::of_files(&[path]));
    let own = own.as_ref().map(|own| (own, own.usage(&options)));
    let session = own.as_ref().and_then(|(own, usage)| {
        let session = own.sessions().first()?;
        let total = usage.rows(&Report::by(&[]), &prices).total().sums.clone();
        Some((&*session.id, total, usage.context_size(&session.id)))
    });
    let context: Option<&ContextSize> = session
        .as_ref()
        .and_then(|(_, _, context)| context.as_ref());
    let model = context.and_then(|context| prices.model(context.model.as_deref()?));
    let most = model.and_then(|model| model.max_input_tokens());
    let mut out = Output::plain();
    if args.json {
        let of_session = session.as_ref().map(|(id, sums, _)| (*id, sums.cost));
        let status = StatusRecord::new(today.cost, of_session, context, most);
        record::write(&mut out, &CostRecord::Status(status))?;
    } else {
        let mut parts = vec![format!(
            "today {}",
            today.worded_cost(all.problems().is_empty())
        )];
        if let Some(((_, sums, _), (_, usage))) = session.as_ref().zip(own.as_ref()) {
            parts.push(format!(
                "session {}",
                sums.worded_cost(usage.problems().is_empty())
            ));
        }
        if let Some(context) = context {
            let share = most.filter(|most| *most > 0).map(|most| {
                let percent = u128::from(context.tokens) * 100 / u128::from(most);
                format!(" ({percent}%)")
            });
            let tokens = short(context.tokens);
            parts.push(format!("context {tokens}{}", share.unwrap_or_default()));
        }
        writeln!(out, "{}", parts.join(" · "))?;
    }
    out.finish()?;
    for problem in all.problems() {
        ui.report(problem);
    }
    let is_whole = all.problems().is_empty() && catalog.problems().is_empty();
    Ok(exit::done_if(is_whole))
}

/// Reads the session that the client passes to its status line on standard input.
fn named_on_stdin(ui: &Ui) -> Result<Option<PathBuf>> {
    let stdin = io::stdin();
    // In the prompt of a shell there is no client that would write, or close the input.
    if stdin.is_terminal() || !is_ready(&stdin) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    stdin.lock().take(MAX_STDIN).read_to_end(&mut bytes)?;
    let Ok(passed) = serde_json::from_slice::<serde_json::Value>(&bytes) else {
        // Other programs pass other things to their status lines: the latest session is shown then.
        return Ok(None);
    };
    let text = |key: &str| passed.get(key).and_then(|value| value.as_str());
    if let Some(path) = text("transcript_path").map(PathBuf::from)
        && RealDisk.is_file(&path)
    {
        return Ok(Some(path));
    }
    // A session that has written nothing yet has no file.
    let id = text("session_id").map(Path::new);
    Ok(id.and_then(|id| session::find(ui, id).ok()))
}

/// Returns whether there is something to read soon.
#[cfg(unix)]
fn is_ready(stdin: &io::Stdin) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(stdin, PollFlags::IN)];
    let time = Timespec::try_from(STDIN_WAIT).ok();
    poll(&mut fds, time.as_ref()).is_ok_and(|ready| ready > 0)
}

#[cfg(not(unix))]
fn is_ready(_: &io::Stdin) -> bool {
    false
}
