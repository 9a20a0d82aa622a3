//! Draws the search over all sessions.

use ratatui::style::{Modifier, Style};
use transcript_format::units::size;
use transcript_render::{Escaping, cut_text, wrapped};

use crate::find::{Find, FoundHit, SearchState};
use crate::paint::{Canvas, Theme, cut_start};

/// The syntax of queries, as the help shows it.
const QUERY_SYNTAX: [(&str, &str); 8] = [
    ("word word", "all of them in one message, in any order"),
    ("\"some words\"", "exactly these"),
    ("/expression/", "a regular expression"),
    ("-word", "not this"),
    ("in:prompt", "also text, tool_input, tool_result, title"),
    ("tool:Bash path:src", "calls, and their results"),
    ("project:NAME", "also branch: session: agent: model:"),
    ("since:2d until:3h", "or a date"),
];
/// The minimum height of the screen for a second line of text for each hit, in lines.
const MIN_TALL_HEIGHT: u16 = 30;

/// A row of the results: texts in styles.
type Spans = Vec<(String, Style)>;

/// Draws the query, its state, and the hits by session.
pub(crate) fn draw_find(find: &Find, canvas: &mut Canvas<'_>) {
    let (theme, width) = (canvas.theme, canvas.width());
    let label = "search all sessions: ";
    let query = Escaping::Visible.escape(&find.query);
    // The end is what one types at.
    let shown = cut_start(&query, width.saturating_sub(label.len() + 1));
    let typed = format!("{shown}▏");
    canvas.put(0, &[(label, theme.dim()), (&typed, theme.accent())]);
    if let SearchState::Bad(message, position) = &find.state {
        let start: String = find.query.trim_start().chars().take(*position).collect();
        let margin = find.query.len() - find.query.trim_start().len();
        let start = Escaping::Visible.escape(&start).chars().count() + margin;
        let hidden = query.chars().count().saturating_sub(shown.chars().count());
        let column = label.len() + start.saturating_sub(hidden);
        let arrow = format!("{}^", " ".repeat(column.min(width.saturating_sub(1))));
        canvas.text(1, &arrow, theme.accent());
        let message = Escaping::Visible.one_line(message);
        for (y, line) in wrapped(&message, width).iter().enumerate() {
            canvas.text(y + 2, line, Style::new());
        }
        return;
    }
    let status = match &find.state {
        SearchState::Empty => "type what to look for".to_owned(),
        SearchState::Searching(None) => "searching…".to_owned(),
        SearchState::Searching(Some((bytes, all))) => {
            format!("searching… {} of {}", size(*bytes), size(*all))
        }
        SearchState::Failed(message) => Escaping::Visible.one_line(message),
        SearchState::Done | SearchState::Bad(..) => find.results.summary(),
    };
    canvas.cut(1, &status, theme.dim());
    let mut canvas = canvas.inside(3, 0);
    if find.state == SearchState::Empty {
        for (y, (form, meaning)) in QUERY_SYNTAX.iter().enumerate() {
            let form = format!("  {form:<20}");
            canvas.put(y, &[(&form, Style::new()), (meaning, theme.dim())]);
        }
        return;
    }
    let lines = if canvas.area.height >= MIN_TALL_HEIGHT {
        2
    } else {
        1
    };
    let (rows, selected) = rows(find, theme, width, lines);
    // As much of the selected hit as there is room for, and what is above it.
    let height = canvas.height();
    let start = (selected.end + height / 4).saturating_sub(height);
    let start = start.min(selected.start);
    let start = start.min(rows.len().saturating_sub(height));
    let is_old = find.state != SearchState::Done;
    for (y, row) in rows.iter().skip(start).take(height).enumerate() {
        let style = |own: Style| if is_old { theme.dim() } else { own };
        let spans = row.iter().map(|(text, own)| (text.as_str(), style(*own)));
        canvas.put(y, &spans.collect::<Vec<_>>());
    }
}

/// Returns all rows of the results, and which are those of the selected hit, with its session above
/// the first one of that.
fn rows(
    find: &Find,
    theme: Theme,
    width: usize,
    lines: usize,
) -> (Vec<Spans>, std::ops::Range<usize>) {
    let (mut rows, mut selected) = (Vec::new(), 0..0);
    let mut number = 0;
    for session in &find.results.sessions {
        if !rows.is_empty() {
            rows.push(Vec::new());
        }
        let top = rows.len();
        rows.push(vec![(cut_text(&session.title, width), theme.bold())]);
        rows.push(vec![(cut_text(&session.about, width), theme.dim())]);
        for (at, hit) in session.hits.iter().enumerate() {
            let start = if at == 0 { top } else { rows.len() };
            let is_selected = number == find.selected;
            rows.extend(hit_rows(hit, theme, width, lines, is_selected));
            if is_selected {
                selected = start..rows.len();
            }
            number += 1;
        }
    }
    (rows, selected)
}

fn hit_rows(
    hit: &FoundHit,
    theme: Theme,
    width: usize,
    lines: usize,
    is_selected: bool,
) -> Vec<Spans> {
    let mark = if is_selected { "› " } else { "  " };
    let style = if is_selected {
        theme.chosen(true)
    } else {
        theme.dim()
    };
    let about = cut_text(&hit.about, width.saturating_sub(2));
    let mut rows = vec![vec![(mark.to_owned(), theme.accent()), (about, style)]];
    let found = theme.accent().add_modifier(Modifier::UNDERLINED);
    let text = hit
        .snippet
        .fitted(Escaping::Visible, width.saturating_sub(4), lines);
    for line in text {
        let mut spans = vec![("    ".to_owned(), Style::new())];
        let style = |is_found: bool| if is_found { found } else { Style::new() };
        spans.extend(
            line.into_iter()
                .map(|(text, is_found)| (text, style(is_found))),
        );
        rows.push(spans);
    }
    rows
}
