//! `transcript list`: the sessions of all projects, or of one.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use jiff::Zoned;
use transcript::wire::SessionRecord;
use transcript::{SessionRow, SessionState};
use transcript_render::{Escaping, Styles, TextStyle, clock, count, cut_text};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::pager::Output;
use crate::ui::{Ui, terminal_width};
use crate::{exit, record, session};

/// List sessions, the most recent conversation first
///
/// Reads only the start and the end of each file. Includes sessions without a prompt and empty
/// files.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Only sessions of the project at this path, in any of its worktrees
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// Show at most N sessions
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one JSON object per line for each session
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let store = session::store(ui)?;
    let listing = store.list()?;
    for problem in &listing.problems {
        ui.note(&format!("transcript: {problem}"));
    }
    let rows = match &args.project {
        Some(project) => listing.of_project(project, true),
        None => listing.rows.iter().collect(),
    };
    let rows = &rows[..args.limit.unwrap_or(rows.len()).min(rows.len())];
    // The pager starts at the top; without it, a long list would end with the oldest sessions on the
    // screen.
    let mut out = match args.json {
        true => Output::plain(),
        false => Output::paged(),
    };
    let written = match args.json {
        true => write_json(&mut out, rows),
        false => Table::new(ui, rows, terminal_width()).print(&mut out, &ui.render.styles()),
    };
    match written {
        Err(error) if !out.is_closed(&error) => return Err(error),
        _ => out.finish()?,
    }
    if rows.is_empty() && !args.json {
        ui.note(&format!("no sessions in {}", store.root().display()));
    }
    Ok(exit::DONE)
}

fn write_json(out: &mut impl Write, rows: &[&SessionRow]) -> Result<()> {
    for row in rows {
        record::write(out, &SessionRecord::new(row))?;
    }
    Ok(())
}

const ID: usize = 0;
const MODIFIED: usize = 1;
const STATE: usize = 2;
const SIZE: usize = 3;
const FOLDER: usize = 4;
const BRANCH: usize = 5;
const TITLE: usize = 6;
/// The title is the last column because its width is not limited when the output is not a terminal.
const NAMES: [&str; 7] = [
    "SESSION", "MODIFIED", "STATE", "SIZE", "FOLDER", "BRANCH", "TITLE",
];
/// The width that other columns leave to the title; columns are dropped until it fits.
const MIN_TITLE: usize = 24;
/// How many characters of an id are shown on a terminal.
const SHORT_ID: usize = 8;

/// The sessions as a table with a header. A value that the file does not have is an empty cell.
struct Table<'r> {
    cells: Vec<[String; 7]>,
    rows: &'r [&'r SessionRow],
    /// The width of each column; columns of width 0 are not printed.
    widths: [usize; 7],
}

impl<'r> Table<'r> {
    /// Builds the cells. Without a `width` no cell is shortened.
    fn new(ui: &Ui, rows: &'r [&'r SessionRow], width: Option<usize>) -> Self {
        let now = Zoned::now();
        let cells = rows.iter().map(|row| cells(ui, row, &now, width));
        let cells: Vec<_> = cells.collect();
        let widest = |column: usize| {
            let widths = cells.iter().map(|cells| cells[column].width());
            widths.max().unwrap_or(0)
        };
        // Drop columns in which every cell is empty.
        let mut widths = std::array::from_fn(|column| match widest(column) {
            0 => 0,
            width => width.max(NAMES[column].width()),
        });
        if let Some(width) = width {
            widths[FOLDER] = widths[FOLDER].min((width / 5).max(NAMES[FOLDER].width()));
            widths[BRANCH] = widths[BRANCH].min((width / 7).max(NAMES[BRANCH].width()));
            let used = |widths: &[usize; 7]| -> usize {
                let shown = widths[..TITLE].iter().filter(|width| **width > 0);
                shown.map(|width| width + 1).sum()
            };
            for column in [BRANCH, SIZE, FOLDER, STATE] {
                if used(&widths) + MIN_TITLE > width {
                    widths[column] = 0;
                }
            }
            widths[TITLE] = width.saturating_sub(used(&widths)).max(1);
        }
        Self {
            cells,
            rows,
            widths,
        }
    }

    fn print(&self, out: &mut impl Write, styles: &Styles) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let names = NAMES.map(str::to_owned);
        self.line(out, &names, [styles.dim; 7])?;
        for (row, cells) in self.rows.iter().zip(&self.cells) {
            let state = match row.state {
                Some(SessionState::Waiting) => styles.person,
                Some(SessionState::OpenCall) => styles.agent,
                Some(SessionState::Stalled) => styles.error,
                Some(SessionState::Finished) => styles.tool,
                _ => styles.dim,
            };
            let dim = styles.dim;
            let title = title_style(row, styles);
            let line = [dim, styles.plain, state, dim, dim, dim, title];
            self.line(out, cells, line)?;
        }
        Ok(())
    }

    fn line(
        &self,
        out: &mut impl Write,
        cells: &[String; 7],
        styles: [TextStyle; 7],
    ) -> Result<()> {
        let mut line = String::new();
        for column in (0..NAMES.len()).filter(|column| self.widths[*column] > 0) {
            let (text, width) = (&cells[column], self.widths[column]);
            let text = match column {
                TITLE => cut_text(text, width),
                SIZE => format!("{text:>width$}"),
                FOLDER => fit(&cut_start(text, width), width),
                _ => fit(text, width),
            };
            let style = styles[column];
            line.push_str(&format!("{style}{text}{style:#} "));
        }
        writeln!(out, "{}", line.trim_end())?;
        Ok(())
    }
}

fn cells(ui: &Ui, row: &SessionRow, now: &Zoned, width: Option<usize>) -> [String; 7] {
    let mut cells: [String; 7] = Default::default();
    let id = ui.escaping.one_line(&row.session_id);
    cells[ID] = match width {
        Some(_) => id.chars().take(SHORT_ID).collect(),
        None => id,
    };
    let modified = row.modified_millis();
    let modified = modified.and_then(|millis| clock(millis, now.time_zone()));
    cells[MODIFIED] = modified.map_or(String::new(), |time| match width {
        Some(..100) => short_time(&time, now),
        _ => time.strftime("%Y-%m-%d %H:%M").to_string(),
    });
    cells[STATE] = row.state.map_or("", SessionState::name).to_owned();
    cells[SIZE] = match row.has_file {
        true => size(row.bytes),
        false => String::new(),
    };
    let folder = row.cwd.as_deref().map(|cwd| ui.render.below_home(cwd));
    let folder = folder.unwrap_or_default();
    cells[FOLDER] = ui.escaping.one_line(&match width {
        Some(_) => last_parts(&folder),
        None => folder,
    });
    // Clients write `HEAD` outside a repository.
    let branch = row.branch.as_deref().filter(|branch| *branch != "HEAD");
    cells[BRANCH] = ui.escaping.one_line(branch.unwrap_or_default());
    cells[TITLE] = title_of(row, ui.escaping);
    cells
}

/// Formats a time for a narrow page: without the year if it is the current one, else without the
/// time of day.
fn short_time(time: &Zoned, now: &Zoned) -> String {
    let form = match time.year() == now.year() {
        true => "%m-%d %H:%M",
        false => "%Y-%m-%d",
    };
    time.strftime(form).to_string()
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
    if row.is_archived {
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

/// Shortens a text from the start, because the end of a path identifies it better than its start.
fn cut_start(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut start = text.len();
    for (at, _) in text.grapheme_indices(true).rev() {
        if text[at..].width() + 1 > width {
            break;
        }
        start = at;
    }
    format!("…{}", &text[start..])
}

/// Cuts or pads a text to exactly `width` columns.
fn fit(text: &str, width: usize) -> String {
    let text = cut_text(text, width);
    let fill = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(fill))
}

/// Shortens a path to its last two parts, which distinguish folders best.
fn last_parts(path: &str) -> String {
    let parts: Vec<_> = path.split(['/', '\\']).collect();
    match parts.len() {
        0..=3 => path.to_owned(),
        count => format!("…/{}", parts[count - 2..].join("/")),
    }
}

/// Formats a size in bytes for people.
fn size(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if size < 999.5 {
            let digits = usize::from(size < 9.95 && unit != "B");
            return format!("{size:.digits$} {unit}");
        }
        size /= 1000.0;
    }
    format!("{size:.1} TB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_short() {
        let at = |text: &str| text.parse::<Zoned>().unwrap();
        let now = at("2026-11-22T06:00[UTC]");
        assert_eq!(
            short_time(&at("2026-01-31T14:05[UTC]"), &now),
            "01-31 14:05"
        );
        assert_eq!(short_time(&at("2025-12-31T14:05[UTC]"), &now), "2025-12-31");
        assert_eq!(cut_start("…/src/almanac", 8), "…almanac");
        let sizes = [0, 999, 1000, 9_949, 9_950, 999_499, 999_500, 2_000_000_000];
        let shown = sizes.map(size);
        let expected = [
            "0 B", "999 B", "1.0 KB", "9.9 KB", "10 KB", "999 KB", "1.0 MB", "2.0 GB",
        ];
        assert_eq!(shown, expected);
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
                assert!(cut_start(text, width).width() <= width, "{text} {width}");
            }
        }
    }
}
