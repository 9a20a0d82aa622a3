//! `transcript list`: the sessions of all projects, or of one.

use std::env;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anstyle::Style;
use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Serialize;
use transcript_session::{SessionRow, SessionState};
use unicode_width::UnicodeWidthStr;

use crate::escape::one_line;
use crate::text::cut_text;
use crate::{exit, json, screen, session};

/// List the sessions, those with the newest conversation first
///
/// Reads the start and the end of each file. No session is left out: not those without a prompt,
/// nor those that are empty.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Only sessions of the project at this path, in any of its worktrees
    #[arg(long, value_name = "PATH")]
    project: Option<PathBuf>,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print a JSON object for each session
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, output: &screen::Options) -> Result<u8> {
    let store = session::store()?;
    let listing = store.list()?;
    if !output.quiet {
        for problem in &listing.problems {
            screen::note(&format!("transcript: {problem}"));
        }
    }
    let rows = match &args.project {
        Some(project) => listing.of_project(project, true),
        None => listing.rows.iter().collect(),
    };
    let rows = &rows[..args.limit.unwrap_or(rows.len()).min(rows.len())];
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        for row in rows {
            let line = json::text(&JsonRow::new(row))?;
            writeln!(out, "{line}")?;
        }
    } else {
        let columns = Columns::new(rows, screen::width());
        for row in rows {
            columns.print(&mut out, row, &output.styles())?;
        }
    }
    out.flush()?;
    if rows.is_empty() && !args.json && !output.quiet {
        screen::note(&format!("no sessions in {}", store.root().display()));
    }
    Ok(exit::DONE)
}

/// A session as `docs/cli.md` promises it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRow<'r> {
    schema: u32,
    session_id: &'r str,
    path: String,
    project: &'r str,
    cwd: Option<&'r str>,
    title: Option<&'r str>,
    first_prompt: Option<&'r str>,
    last_prompt: Option<&'r str>,
    created: Option<&'r str>,
    modified: Option<&'r str>,
    bytes: u64,
    branch: Option<&'r str>,
    tag: Option<&'r str>,
    subagents: usize,
    state: Option<&'static str>,
}

impl<'r> JsonRow<'r> {
    fn new(row: &'r SessionRow) -> Self {
        Self {
            schema: 1,
            session_id: &row.session_id,
            path: row.path.display().to_string(),
            project: &row.project,
            cwd: row.cwd.as_deref(),
            title: row.title.as_deref(),
            first_prompt: row.first_prompt.as_deref(),
            last_prompt: row.last_prompt.as_deref(),
            created: row.created.as_deref(),
            modified: row.modified.as_deref(),
            bytes: row.bytes,
            branch: row.branch.as_deref(),
            tag: row.tag.as_deref(),
            subagents: row.subagents,
            state: row.state.map(SessionState::name),
        }
    }
}

/// How wide the columns are; what is not in the file leaves its column empty.
struct Columns {
    now: i64,
    home: Option<PathBuf>,
    width: usize,
    id: usize,
    folder: usize,
    branch: usize,
}

const WHEN: usize = 10;
const STATE: usize = 9;
const SIZE: usize = 8;
/// What is left of a title that has to be given up for nothing else.
const MIN_TITLE: usize = 24;

impl Columns {
    fn new(rows: &[&SessionRow], width: usize) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since_1970.map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        });
        let mut columns = Self {
            now,
            home: env::var_os("HOME").map(PathBuf::from),
            width,
            id: 8,
            folder: 0,
            branch: 0,
        };
        let widest = |text: &dyn Fn(&SessionRow) -> String, most| {
            let widths = rows.iter().map(|row| text(row).width());
            widths.max().unwrap_or(0).min(most)
        };
        let folder = widest(&|row| columns.folder_of(row), width / 4);
        let branch = widest(&branch_of, width / 7);
        let left = width.saturating_sub(columns.id + WHEN + STATE + SIZE + 5 + MIN_TITLE);
        columns.folder = if folder < left { folder } else { 0 };
        let left = left.saturating_sub(columns.folder + 2);
        columns.branch = if branch < left { branch } else { 0 };
        columns
    }

    fn print(&self, out: &mut impl Write, row: &SessionRow, styles: &screen::Styles) -> Result<()> {
        let state_style = match row.state {
            Some(SessionState::Waiting) => styles.person,
            Some(SessionState::OpenCall) => styles.agent,
            Some(SessionState::Stalled) => styles.error,
            Some(SessionState::Finished) => styles.tool,
            _ => styles.dim,
        };
        let (title, title_style) = title_of(row, styles);
        let id: String = one_line(&row.session_id).chars().take(self.id).collect();
        let when = row.modified_millis().map(|then| ago(self.now, then));
        let state = row.state.map_or("", SessionState::name);
        let size = size(row.bytes);
        let mut cells = vec![
            (fit(&id, self.id), styles.dim),
            (fit(&when.unwrap_or_default(), WHEN), Style::new()),
            (fit(state, STATE), state_style),
            (format!("{size:>SIZE$}"), styles.dim),
        ];
        let used = |cells: &[(String, Style)]| -> usize {
            cells.iter().map(|(text, _)| text.width() + 1).sum()
        };
        let mut last = Vec::new();
        if self.folder > 0 {
            last.push((fit(&self.folder_of(row), self.folder), styles.dim));
        }
        if self.branch > 0 {
            last.push((fit(&branch_of(row), self.branch), styles.dim));
        }
        let left = self.width.saturating_sub(used(&cells) + used(&last)).max(1);
        cells.push((fit(&title, left), title_style));
        cells.extend(last);
        let line: Vec<_> = cells
            .iter()
            .map(|(text, style)| format!("{style}{text}{style:#}"))
            .collect();
        writeln!(out, "{}", line.join(" ").trim_end())?;
        Ok(())
    }

    /// The folder that the session works in, shortened at its start.
    fn folder_of(&self, row: &SessionRow) -> String {
        let Some(cwd) = &row.cwd else {
            return String::new();
        };
        let home = self
            .home
            .as_ref()
            .and_then(|home| Path::new(cwd).strip_prefix(home).ok());
        let text = match home {
            Some(below) => Path::new("~").join(below).display().to_string(),
            None => cwd.clone(),
        };
        let parts: Vec<_> = text.split(['/', '\\']).collect();
        let text = match parts.len() {
            0..=3 => text.clone(),
            count => format!("…/{}", parts[count - 2..].join("/")),
        };
        one_line(&text)
    }
}

fn branch_of(row: &SessionRow) -> String {
    // Clients write so where there is no repository.
    let branch = row.branch.as_deref().filter(|branch| *branch != "HEAD");
    one_line(branch.unwrap_or_default())
}

/// What to call the session, and how that looks.
fn title_of(row: &SessionRow, styles: &screen::Styles) -> (String, Style) {
    let plain = Style::new();
    let (mut text, style) = match (&row.title, &row.first_prompt, &row.last_prompt) {
        (Some(title), ..) => (one_line(title), plain.bold()),
        (None, Some(prompt), _) | (None, None, Some(prompt)) => (one_line(prompt), plain),
        _ if row.bytes == 0 => ("(empty)".to_owned(), styles.dim),
        _ => ("(untitled)".to_owned(), styles.dim),
    };
    if let Some(tag) = &row.tag {
        text = format!("#{} {text}", one_line(tag));
    }
    if row.is_archived {
        text = format!("(archived) {text}");
    }
    // Without colour nothing may be bold either.
    let is_coloured = styles.dim != Style::new();
    (text, if is_coloured { style } else { plain })
}

/// The text, cut or filled up to `width` columns.
fn fit(text: &str, width: usize) -> String {
    let text = cut_text(text, width);
    let fill = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(fill))
}

/// How long before `now` it was, in milliseconds since 1970 both; a day when it is long.
fn ago(now: i64, then: i64) -> String {
    let seconds = now.saturating_sub(then) / 1000;
    match seconds {
        ..-60 => day(then),
        -60..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        86_400..2_592_000 => format!("{} d ago", seconds / 86_400),
        _ => day(then),
    }
}

fn day(then: i64) -> String {
    let text = transcript_format::time::text(then).unwrap_or_default();
    text.chars().take_while(|c| *c != 'T').collect()
}

/// A length for people.
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
        let now = 1_800_000_000_000;
        let told = |seconds: i64| ago(now, now - seconds * 1000);
        assert_eq!(told(5), "just now");
        assert_eq!(told(61), "1 min ago");
        assert_eq!(told(7200), "2 h ago");
        assert_eq!(told(86_400 * 29), "29 d ago");
        assert_eq!(told(86_400 * 300), "2026-03-21");
        assert_eq!(told(-86_400), "2027-01-16");
        let sizes = [0, 999, 1000, 9_949, 9_950, 999_499, 999_500, 2_000_000_000];
        let told = sizes.map(size);
        let expected = [
            "0 B", "999 B", "1.0 KB", "9.9 KB", "10 KB", "999 KB", "1.0 MB", "2.0 GB",
        ];
        assert_eq!(told, expected);
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
