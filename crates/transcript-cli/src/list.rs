//! `transcript list`: the sessions of all projects, or of one.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use jiff::Zoned;
use transcript_engine::{SessionRow, SessionState};
use transcript_format::units::{dollars, size};
use transcript_ops::agents::CLAUDE_CODE;
use transcript_ops::list::{
    ListSettings, ListedSessions, SessionGroup, SessionOrder, StateName, folder_of, with_list,
};
use transcript_reader::Error;
use transcript_render::{Escaping, Styles, TextStyle, clock, count, cut_text};
use unicode_width::UnicodeWidthStr;

use crate::filter::Filter;
use crate::pager::Output;
use crate::progress::Progress;
use crate::ui::{Ui, terminal_width};
use crate::{archive, exit, record, session};

/// List sessions, the newest conversation first
///
/// Reads only the start and the end of each file. Includes sessions without a prompt, empty files,
/// and sessions whose own file is missing but whose subagents are left.
#[derive(Debug, ClapArgs)]
#[command(mut_arg("text", |arg| arg.visible_alias("grep")))]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Only sessions in one of these states
    #[arg(long, value_enum, value_name = "STATE")]
    state: Vec<State>,
    /// Order of the sessions
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = Sort::Modified)]
    sort: Sort,
    /// Group the sessions
    #[arg(long, value_enum, value_name = "GROUP")]
    by: Option<Group>,
    /// List the archived sessions
    #[arg(long)]
    archived: bool,
    /// Also list archived sessions whose files are gone
    #[arg(long, conflicts_with = "archived")]
    all: bool,
    /// Print one JSON object per line for each session
    #[arg(long)]
    json: bool,
    /// Do not use the cache
    #[arg(long)]
    no_cache: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    /// Ended with an answer
    Finished,
    /// Waits for the person
    Waiting,
    /// Ended with a call without a result
    OpenCall,
    /// Ended without an answer
    Stalled,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sort {
    /// The last message, newest first; a fork counts as new when it was made
    Modified,
    /// The first message, newest first
    Created,
    /// The size of the file, largest first
    Size,
    /// The number of entries, largest first
    Messages,
    /// The title
    Title,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Group {
    /// By folder, that of the first session first
    Project,
}

/// Runs the command.
pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    session::roots(ui)?;
    if args.is_archived(ui) {
        archive::check(ui)?;
        archive::warn_of_problems(ui);
    }
    let progress = Progress::start(ui);
    let (settings, context) = (args.settings(ui), session::context(ui));
    let is_whole = with_list(&settings, &context, |listed| {
        // The bar must be gone before the first output, which would be written over it.
        drop(progress);
        let problems = &listed.listing.problems;
        for problem in problems {
            ui.report(problem);
        }
        // The pager starts at the top; without it, a long list would end with the oldest sessions on the
        // screen.
        let mut out = Output::paged_unless(args.json);
        let written = if args.json {
            record::print(ui, &mut out, |sink| listed.write(settings.sidechains, sink))
        } else {
            let table = Table::new(ui, &listed, terminal_width(), args);
            table.print(&mut out, &ui.render.styles())
        };
        out.finish_after(written)?;
        if listed.rows.is_empty() && !args.json {
            if listed.listing.rows.is_empty() {
                session::note_no_sessions(ui);
            } else {
                ui.note(&format!(
                    "no such sessions in {}",
                    session::root_folders(ui)
                ));
            }
        }
        if (args.is_archived(ui) || args.all) && !args.json {
            archive::note_others(ui)?;
        }
        anyhow::Ok(problems.is_empty())
    })??;
    Ok(exit::done_if(is_whole))
}

impl Args {
    /// Returns whether archived sessions are listed: `--archive` without a folder can mean nothing else.
    fn is_archived(&self, ui: &Ui) -> bool {
        self.archived || ui.archive == Some(None)
    }

    fn settings(&self, ui: &Ui) -> ListSettings {
        let state = self.state.iter().map(|state| match state {
            State::Finished => StateName::Finished,
            State::Waiting => StateName::Waiting,
            State::OpenCall => StateName::OpenCall,
            State::Stalled => StateName::Stalled,
        });
        let filter = self.filter.clone();
        ListSettings {
            text: filter.text,
            since: filter.since,
            until: filter.until,
            project: filter.project,
            branch: filter.branch,
            state: state.collect(),
            sort: match self.sort {
                Sort::Modified => SessionOrder::Modified,
                Sort::Created => SessionOrder::Created,
                Sort::Size => SessionOrder::Size,
                Sort::Messages => SessionOrder::Messages,
                Sort::Title => SessionOrder::Title,
            },
            by: self.by.map(|Group::Project| SessionGroup::Project),
            limit: filter.last,
            sidechains: filter.sidechains,
            archived: self.is_archived(ui),
            all: self.all,
            cache: Some(!self.no_cache),
        }
    }
}

const ID: usize = 0;
const MODIFIED: usize = 1;
const STATE: usize = 2;
const MESSAGES: usize = 3;
const MODEL: usize = 4;
const COST: usize = 5;
const SIZE: usize = 6;
const ROOT: usize = 7;
const AGENT: usize = 8;
const MACHINE: usize = 9;
const FOLDER: usize = 10;
const BRANCH: usize = 11;
const TITLE: usize = 12;
const COLUMNS: usize = 13;
/// The order in which the columns are not cut and have no width: what tells sessions apart is seen first. The root is only
/// there if several are in use, the agent if there are sessions of others than Claude Code, the machine if several share an archive.
const PIPE_ORDER: [usize; COLUMNS] = [
    ID, MODIFIED, TITLE, STATE, MESSAGES, MODEL, COST, SIZE, FOLDER, BRANCH, ROOT, AGENT, MACHINE,
];
/// The names of the columns. On a terminal the title is the last one and takes the room that is left.
const COLUMN_NAMES: [&str; COLUMNS] = [
    "SESSION", "MODIFIED", "STATE", "MSGS", "MODEL", "COST", "SIZE", "ROOT", "AGENT", "MACHINE",
    "FOLDER", "BRANCH", "TITLE",
];
/// The widths that other columns leave to the title on a page of 60 columns or less, and on one of 100
/// or more; columns are dropped until it fits.
const MIN_TITLE: [usize; 2] = [28, 40];
/// The columns that are dropped, the least important first.
const DROP_ORDER: [usize; 10] = [
    BRANCH, SIZE, MODEL, MESSAGES, COST, STATE, FOLDER, ROOT, AGENT, MACHINE,
];
/// The widest model on a terminal.
const MAX_MODEL: usize = 12;
/// The maximum length of the part of a prompt that distinguishes a title, in characters.
const MAX_DISTINCTION_LEN: usize = 200;
/// The number of characters of an id that are shown on a terminal.
const SHORT_ID_LEN: usize = 8;

/// The sessions as a table with a header. A value that the file does not have is an empty cell.
struct Table<'r> {
    cells: Vec<[String; COLUMNS]>,
    rows: &'r [&'r SessionRow],
    /// The width of each column; columns of width 0 are not printed.
    widths: [usize; COLUMNS],
    /// Whether the columns have widths; else tabs are between them.
    is_padded: bool,
    /// The line above each session that starts a group.
    groups: HashMap<usize, String>,
    /// The lines below each session.
    agents: Vec<Vec<String>>,
}

impl<'r> Table<'r> {
    /// Builds the cells. Without a `width` no cell is shortened.
    fn new(ui: &Ui, listed: &'r ListedSessions<'r>, width: Option<usize>, args: &Args) -> Self {
        let (rows, now) = (&listed.rows, Zoned::now());
        let unread = listed.listing.problems.iter().map(Error::path);
        let unread: HashSet<&Path> = unread.collect();
        let folders = Folders::new(ui, rows);
        let cells = rows.iter().map(|row| cells(ui, row, &now, width, &folders));
        let mut cells: Vec<_> = cells.collect();
        let makers = rows.iter().map(|row| listed.maker(row));
        let makers: Vec<Option<&str>> = makers.collect();
        let has_others = makers.iter().any(Option::is_some);
        for ((row, cells), maker) in rows.iter().zip(&mut cells).zip(makers) {
            if has_others {
                cells[AGENT] = maker.unwrap_or(CLAUDE_CODE).to_owned();
            }
            // Only if `usage` has read the session since its last change: a list reads no large file as a whole.
            if let Some(cost) = listed.costs.get(&row.session_id) {
                cells[COST] = dollars(*cost);
            }
            if let Some(root) = listed.root_name(row) {
                cells[ROOT] = ui.escaping.one_line(&root);
            }
            if let Some(machine) = listed.machine(row) {
                cells[MACHINE] = ui.escaping.one_line(&machine);
            }
            // Without this it would look like a session without a title.
            if unread.contains(&*row.path) {
                cells[TITLE] = "(cannot be read)".to_owned();
            }
        }
        let mut groups = HashMap::new();
        if args.by.is_some() {
            for (at, row) in rows.iter().enumerate() {
                if at == 0 || folder_of(rows[at - 1]) != folder_of(row) {
                    let sessions = rows[at..].iter();
                    let sessions = sessions.take_while(|other| folder_of(other) == folder_of(row));
                    let sessions = count(sessions.count(), "session");
                    let folder = ui.render.below_home(folder_of(row));
                    groups.insert(
                        at,
                        format!("{} · {sessions}", ui.escaping.one_line(&folder)),
                    );
                }
                // It is in the line above the group.
                cells[at][FOLDER].clear();
            }
        }
        let widest = |column: usize| {
            let widths = cells.iter().map(|cells| cells[column].width());
            widths.max().unwrap_or(0)
        };
        // Drop columns in which every cell is empty.
        let mut widths = std::array::from_fn(|column| match widest(column) {
            0 => 0,
            width => width.max(COLUMN_NAMES[column].width()),
        });
        if let Some(width) = width {
            // A longer folder is not cut: it takes the room of its title.
            widths[FOLDER] = widths[FOLDER].min((width / 5).max(COLUMN_NAMES[FOLDER].width()));
            widths[BRANCH] = widths[BRANCH].min((width / 7).max(COLUMN_NAMES[BRANCH].width()));
            widths[MODEL] = widths[MODEL].min(MAX_MODEL);
            let used = |widths: &[usize; COLUMNS]| -> usize {
                let shown = widths[..TITLE].iter().filter(|width| **width > 0);
                shown.map(|width| width + 1).sum()
            };
            let [least, most] = MIN_TITLE;
            let min_title = (width * 2 / 5).clamp(least, most);
            for column in DROP_ORDER {
                if used(&widths) + min_title > width {
                    widths[column] = 0;
                }
            }
            widths[TITLE] = width.saturating_sub(used(&widths)).max(1);
        }
        tell_apart(ui.escaping, rows, &mut cells, width.map(|_| widths[TITLE]));
        let agents = rows.iter().map(|row| {
            if args.filter.sidechains && row.subagents > 0 {
                let agents = session::agents(ui, &row.path).into_iter();
                agents.map(|agent| ui.escaping.one_line(&agent)).collect()
            } else {
                Vec::new()
            }
        });
        Self {
            cells,
            rows,
            widths,
            is_padded: width.is_some(),
            groups,
            agents: agents.collect(),
        }
    }

    fn print(&self, out: &mut impl Write, styles: &Styles) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let names = COLUMN_NAMES.map(str::to_owned);
        self.line(out, &names, [styles.dim; COLUMNS])?;
        for (at, (row, cells)) in self.rows.iter().zip(&self.cells).enumerate() {
            if let Some(group) = self.groups.get(&at) {
                let bold = styles.bold(styles.plain);
                writeln!(out, "\n{bold}{group}{bold:#}")?;
            }
            let state = match row.state {
                Some(SessionState::Waiting) => styles.person,
                Some(SessionState::OpenCall) => styles.agent,
                Some(SessionState::Stalled) => styles.error,
                Some(SessionState::Finished) => styles.tool,
                _ => styles.dim,
            };
            let mut line = [styles.dim; COLUMNS];
            line[MODIFIED] = styles.plain;
            line[STATE] = state;
            line[TITLE] = title_style(row, styles);
            self.line(out, cells, line)?;
            let dim = styles.dim;
            for agent in &self.agents[at] {
                writeln!(out, "{dim}  └ {agent}{dim:#}")?;
            }
        }
        Ok(())
    }

    fn line(
        &self,
        out: &mut impl Write,
        cells: &[String; COLUMNS],
        styles: [TextStyle; COLUMNS],
    ) -> Result<()> {
        if !self.is_padded {
            // Whole values, each in its place, for `cut`, `column` and programs.
            let columns = PIPE_ORDER.iter().copied();
            let columns = columns.filter(|column| {
                !matches!(*column, ROOT | AGENT | MACHINE) || self.widths[*column] > 0
            });
            let cells = columns.map(|column| {
                let (style, text) = (styles[column], &cells[column]);
                format!("{style}{text}{style:#}")
            });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join("\t"))?;
            return Ok(());
        }
        let mut line = String::new();
        // How much wider than its column the folder is.
        let mut over = 0;
        for column in (0..COLUMNS).filter(|column| self.widths[*column] > 0) {
            let (text, width) = (&cells[column], self.widths[column]);
            let text = match column {
                TITLE => cut_text(text, width.saturating_sub(over)),
                COST | SIZE | MESSAGES => format!("{text:>width$}"),
                FOLDER => {
                    over = text.width().saturating_sub(width);
                    fit(text, width + over)
                }
                _ => fit(text, width),
            };
            let style = styles[column];
            line.push_str(&format!("{style}{text}{style:#} "));
        }
        writeln!(out, "{}", line.trim_end())?;
        Ok(())
    }
}

fn cells(
    ui: &Ui,
    row: &SessionRow,
    now: &Zoned,
    width: Option<usize>,
    folders: &Folders,
) -> [String; COLUMNS] {
    let mut cells: [String; COLUMNS] = Default::default();
    let id = ui.escaping.one_line(&row.session_id);
    cells[ID] = match width {
        Some(_) => id.chars().take(SHORT_ID_LEN).collect(),
        None => id,
    };
    // That of the last message, or of the fork: copies and other programs change the time of the file.
    let modified = row.order_millis();
    let modified = modified.and_then(|millis| clock(millis, now.time_zone()));
    cells[MODIFIED] = modified.map_or(String::new(), |time| match width {
        Some(..120) => short_time(&time, now),
        _ => time.strftime("%Y-%m-%d %H:%M").to_string(),
    });
    cells[STATE] = row.state.map_or("", SessionState::name).to_owned();
    cells[MESSAGES] = row
        .messages
        .map_or(String::new(), |count| count.to_string());
    let model = row.model.as_deref().unwrap_or_default();
    cells[MODEL] = ui.escaping.one_line(match width {
        Some(_) => short_model(model),
        None => model,
    });
    cells[SIZE] = if row.has_file {
        size(row.bytes)
    } else {
        String::new()
    };
    let folder = row.cwd.as_deref().map(|cwd| ui.render.below_home(cwd));
    let folder = folder.unwrap_or_default();
    cells[FOLDER] = ui.escaping.one_line(match width {
        Some(width) => folders.short(&folder, width / 5),
        None => &folder,
    });
    // Clients write `HEAD` outside a repository.
    let branch = row.branch.as_deref().filter(|branch| *branch != "HEAD");
    cells[BRANCH] = ui.escaping.one_line(branch.unwrap_or_default());
    cells[TITLE] = title_of(row, ui.escaping);
    cells
}

/// The folders of a list, each by as many of its last parts as no other folder ends with.
struct Folders(HashMap<String, usize>);

impl Folders {
    fn new(ui: &Ui, rows: &[&SessionRow]) -> Self {
        let folders = rows.iter().filter_map(|row| row.cwd.as_deref());
        let folders: HashSet<String> = folders.map(|cwd| ui.render.below_home(cwd)).collect();
        let mut ends: HashMap<&str, usize> = HashMap::new();
        for folder in &folders {
            for start in starts(folder) {
                *ends.entry(&folder[start..]).or_default() += 1;
            }
        }
        let shortest = folders.iter().map(|folder| {
            let is_own = |start: &usize| ends[&folder[*start..]] == 1;
            let start = starts(folder).find(is_own).unwrap_or(0);
            (folder.clone(), start)
        });
        Self(shortest.collect())
    }

    /// Returns the longest end of a folder that fits, but at least what no other one ends with.
    fn short<'f>(&self, folder: &'f str, width: usize) -> &'f str {
        // Even if it is wider than the column: two folders must not look the same.
        let least = self.0.get(folder).copied().unwrap_or(0);
        let ends = starts(folder).filter(|start| *start <= least);
        let fits = |start: &usize| folder[*start..].width() <= width;
        let start = ends.filter(fits).min().unwrap_or(least);
        &folder[start..]
    }
}

/// Returns the offsets of the last part of a path, of the last two, and so on.
fn starts(path: &str) -> impl Iterator<Item = usize> + '_ {
    let after = path.rmatch_indices(['/', '\\']).map(|(at, _)| at + 1);
    after
        .filter(|start| *start < path.len() && *start > 1)
        .chain([0])
}

/// Shortens the name of a model: `claude-opus-4-1-20250805` is `opus-4-1`.
fn short_model(model: &str) -> &str {
    let name = model.strip_prefix("claude-").unwrap_or(model);
    let is_date = |end: &str| end.len() == 8 && end.bytes().all(|byte| byte.is_ascii_digit());
    match name.rsplit_once('-') {
        Some((name, end)) if is_date(end) => name,
        _ => name,
    }
}

/// Formats a time for a narrow page: without the year if it is the current one, else without the
/// time of day.
fn short_time(time: &Zoned, now: &Zoned) -> String {
    let form = if time.year() == now.year() {
        "%m-%d %H:%M"
    } else {
        "%Y-%m-%d"
    };
    time.strftime(form).to_string()
}

/// Adds the differing part to titles that look the same, so that their sessions can be told apart: the
/// last prompt, the words at which the first prompt differs from the others, or the last answer.
fn tell_apart(
    escaping: Escaping,
    rows: &[&SessionRow],
    cells: &mut [[String; COLUMNS]],
    width: Option<usize>,
) {
    let shown = |title: &str| width.map_or(title.to_owned(), |width| cut_text(title, width));
    // As they are shown: titles may differ only in the part that is cut.
    let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, cells) in cells.iter().enumerate() {
        alike.entry(shown(&cells[TITLE])).or_default().push(at);
    }
    for places in alike.into_values().filter(|places| places.len() > 1) {
        let mut last: HashMap<&str, usize> = HashMap::new();
        for prompt in places
            .iter()
            .filter_map(|at| rows[*at].last_prompt.as_deref())
        {
            *last.entry(prompt).or_default() += 1;
        }
        let mut others = Vec::new();
        for at in places {
            match rows[at].last_prompt.as_deref() {
                // A prompt that several of them have distinguishes none.
                Some(prompt) if last[prompt] == 1 => {
                    let prompt = escaping.one_line(prompt);
                    let title = start_of(&cells[at][TITLE], width);
                    cells[at][TITLE] = format!("{title} › {prompt}");
                }
                _ => others.push(at),
            }
        }
        let whole = others.into_iter().filter_map(|at| {
            let prompt = rows[at].whole_first_prompt()?;
            Some((escaping.one_line(&prompt), at))
        });
        let whole: Vec<_> = whole.collect();
        if whole.len() < 2 {
            continue;
        }
        for (rest, same) in differences(whole) {
            let named = match &same[..] {
                [at] => vec![(rest, vec![*at])],
                _ => {
                    let answers = same.into_iter().filter_map(|at| {
                        let answer = rows[at].last_answer.as_deref()?;
                        Some((escaping.one_line(answer), at))
                    });
                    differences(answers.collect())
                }
            };
            for (rest, places) in named {
                for at in places {
                    let title = start_of(&cells[at][TITLE], width);
                    cells[at][TITLE] = format!("{title} › {rest}");
                }
            }
        }
    }
}

/// Returns each different text from the word on in which it differs from the others, and its places.
fn differences(mut texts: Vec<(String, usize)>) -> Vec<(String, Vec<usize>)> {
    // Sorted, each text is next to the ones that are most like it.
    texts.sort();
    let same = texts.chunk_by(|one, other| one.0 == other.0);
    let same: Vec<&[(String, usize)]> = same.collect();
    let differences = same.iter().enumerate().map(|(place, own)| {
        let text = &own[0].0;
        let above = place.checked_sub(1).map(|above| &same[above]);
        let adjacent = [above, same.get(place + 1)].into_iter().flatten();
        let start = adjacent.map(|other| same_start(text, &other[0].0)).max();
        let start = start.unwrap_or(0);
        let rest: String = text[start..].chars().take(MAX_DISTINCTION_LEN).collect();
        let rest = if start > 0 {
            format!("…{rest}")
        } else {
            rest
        };
        (rest, own.iter().map(|(_, at)| *at).collect())
    });
    differences.collect()
}

/// Returns the part of a title that is left of what tells it apart.
fn start_of(title: &str, width: Option<usize>) -> String {
    width.map_or(title.to_owned(), |width| cut_text(title, width / 3))
}

/// Returns the offset of the first word of `text` that differs from `other`.
fn same_start(text: &str, other: &str) -> usize {
    let pairs = text.char_indices().zip(other.chars());
    let equal = pairs.take_while(|((_, one), two)| one == two);
    let same = equal.last().map_or(0, |((at, one), _)| at + one.len_utf8());
    match text[..same].rfind(' ') {
        Some(space) if same < text.len() => space + 1,
        _ => same,
    }
}

/// Returns the title of a session, or a replacement for it.
fn title_of(row: &SessionRow, escaping: Escaping) -> String {
    let mut text = match (&row.title, &row.first_prompt, &row.last_prompt) {
        (Some(title), ..) => escaping.one_line(title),
        (None, Some(prompt), _) | (None, None, Some(prompt)) => escaping.one_line(prompt),
        _ if !row.has_file => {
            let are = if row.subagents == 1 { "is" } else { "are" };
            let left = count(row.subagents, "subagent");
            format!("(its file is gone, {left} {are} left)")
        }
        _ if row.bytes == 0 => "(empty)".to_owned(),
        _ => "(untitled)".to_owned(),
    };
    if let Some(tag) = &row.tag {
        text = format!("#{} {text}", escaping.one_line(tag));
    }
    if row.archived == Some(true) {
        text = format!("(archived) {text}");
    }
    text
}

fn title_style(row: &SessionRow, styles: &Styles) -> TextStyle {
    match (&row.title, &row.first_prompt, &row.last_prompt) {
        (Some(_), ..) => styles.bold(styles.plain),
        (None, None, None) => styles.dim,
        _ => styles.plain,
    }
}

/// Cuts or pads a text to exactly `width` columns.
fn fit(text: &str, width: usize) -> String {
    let text = cut_text(text, width);
    let fill = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(fill))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_models_are_short() {
        let at = |text: &str| text.parse::<Zoned>().unwrap();
        let now = at("2026-11-22T06:00[UTC]");
        assert_eq!(
            short_time(&at("2026-01-31T14:05[UTC]"), &now),
            "01-31 14:05"
        );
        assert_eq!(short_time(&at("2025-12-31T14:05[UTC]"), &now), "2025-12-31");
        assert_eq!(short_model("claude-opus-4-1-20250805"), "opus-4-1");
        assert_eq!(short_model("claude-fable-5"), "fable-5");
        assert_eq!(short_model("20250805"), "20250805");
    }

    #[test]
    fn a_folder_is_shown_by_the_parts_that_no_other_ends_with() {
        let starts = |path| starts(path).map(|start| &path[start..]).collect::<Vec<_>>();
        assert_eq!(starts("/a/b/c"), ["c", "b/c", "/a/b/c"]);
        assert_eq!(starts("~/c"), ["c", "~/c"]);
        assert_eq!(starts("/"), ["/"]);
        assert_eq!(starts(""), [""]);
    }

    #[test]
    fn texts_are_shown_from_the_word_on_in_which_they_differ() {
        let texts = ["a map of tin", "a map of oil", "a map of tin", "charts"];
        let texts = texts.into_iter().enumerate();
        let found = differences(texts.map(|(at, text)| (text.to_owned(), at)).collect());
        let found: Vec<_> = found.iter().map(|(rest, at)| (&**rest, &at[..])).collect();
        let expected: [(&str, &[usize]); 3] = [("…oil", &[1]), ("…tin", &[0, 2]), ("charts", &[3])];
        assert_eq!(found, expected);

        assert_eq!(same_start("read the map", "read the moon"), 9);
        assert_eq!(same_start("read", "read the moon"), 4);
        assert_eq!(same_start("海辺の町", "海辺の港"), 9);
        assert_eq!(same_start("x", "y"), 0);
    }

    #[test]
    fn a_cell_has_its_width_whatever_the_characters() {
        for text in [
            "",
            "plain",
            "海辺の町の港で灯台を見た",
            "🦉🦉🦉🦉🦉🦉🦉",
            "e\u{301}te\u{301}",
        ] {
            for width in 1..14 {
                assert_eq!(fit(text, width).width(), width, "{text} {width}");
            }
        }
    }
}
