//! Draws the state of the screen.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use transcript_format::units::size;
use transcript_render::{Escaping, StyledLine, cut_text, wrapped};

use crate::app::{App, Focus, KEYS, Open, Overlay, outline_rows};
use crate::document::Row;
use crate::list::ListRow;
use crate::needle::marks;
use crate::paint::{Canvas, Theme, cut_start};
use crate::results::draw_find;

/// A screen with less is not drawn.
const MIN_SIZE: (u16, u16) = (30, 8);

/// Draws everything. The screen may have another size than the one for which the rows were made: what does not fit is
/// omitted.
pub(crate) fn draw(app: &App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let canvas = &mut Canvas::new(buffer, area, theme);
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        return canvas.text(0, "the terminal is too small", Style::new());
    }
    let list_width = app.list_width().min(area.width);
    let mut body = canvas.inside(0, 1);
    let part = |x: u16, width: u16| Rect {
        x: area.x + x,
        width,
        height: area.height - 1,
        ..area
    };
    if app.focus == Focus::Find {
        draw_find(&app.find, &mut body);
    } else {
        if list_width > 0 {
            list(app, &mut body.on(part(0, list_width)));
        }
        if app.is_wide() {
            let mut rule = body.on(part(list_width, 1));
            (0..rule.height()).for_each(|y| rule.dim(y, "│"));
        }
        if list_width < area.width {
            let x = if app.is_wide() { list_width + 1 } else { 0 };
            let width = area.width.saturating_sub(x);
            conversation(app, &mut body.on(part(x, width)));
        }
    }
    footer(app, &mut canvas.inside(area.height - 1, 0));
    match &app.overlay {
        Some(Overlay::Help) => help(canvas),
        Some(Overlay::Outline {
            rows,
            filter,
            selected,
            is_last,
        }) => {
            let shown = outline_rows(rows, filter);
            let of = if *is_last { "" } else { ", reading" };
            let title = format!("{} of {} prompts{of} · {filter}▏", shown.len(), rows.len());
            let keys = "Enter goes there · type to filter · Esc";
            let mut inside = boxed(canvas, &title, keys);
            let height = inside.height();
            let start = (selected + 1 + height / 3).saturating_sub(height);
            let start = start.min(shown.len().saturating_sub(height));
            for (y, at) in shown.iter().enumerate().skip(start).take(height) {
                let row = &rows[*at];
                let text = format!("{:>6}  {}", row.line, row.text);
                inside.cut(y - start, &text, theme.row(y == *selected));
            }
        }
        Some(Overlay::Copy { text, fences }) => {
            let mut inside = boxed(canvas, "copy", "a digit or y · Esc");
            let all = format!("y  the whole block, {}", size(text.len() as u64));
            inside.text(0, &all, Style::new());
            for (at, (language, code)) in fences.iter().enumerate() {
                let first = code.lines().next().unwrap_or_default();
                let lines = code.lines().count();
                let row = format!("{}  {language} {lines} lines: {first}", at + 1);
                inside.text(at + 1, &Escaping::Visible.one_line(&row), Style::new());
            }
        }
        Some(Overlay::Raw { lines, top, .. }) => {
            let title = format!("raw line · {} of {}", top + 1, lines.len());
            let mut inside = boxed(canvas, &title, "j k Space b · y copies · Esc");
            let shown = lines.iter().skip(*top).take(inside.height());
            for (y, line) in shown.enumerate() {
                inside.text(y, line, Style::new());
            }
        }
        _ => {}
    }
}

/// Draws a frame over most of the screen, and returns what is in it.
fn boxed<'c>(canvas: &'c mut Canvas<'_>, title: &str, keys: &str) -> Canvas<'c> {
    let blank = " ".repeat(canvas.width());
    for y in 0..canvas.height() {
        canvas.text(y, &blank, Style::reset());
    }
    canvas.cut(0, title, canvas.theme.accent());
    canvas.dim(canvas.height() - 1, keys);
    canvas.inside(2, 1)
}

fn help(canvas: &mut Canvas<'_>) {
    boxed(canvas, "keys of transcript browse", "any key closes this");
    let (theme, mut inside) = (canvas.theme, canvas.inside(1, 1));
    for (y, (keys, what, more_keys, more)) in KEYS.iter().enumerate() {
        // A row without keys is the name of a group.
        let style = |keys: &str| theme.dim_if(keys.is_empty());
        let left = format!(" {keys:<9} ");
        let middle = format!("{what:<23} ");
        let right = format!("{more_keys:<7} ");
        let spans = [
            (&*left, theme.accent()),
            (&middle, style(keys)),
            (&right, theme.accent()),
            (more, style(more_keys)),
        ];
        inside.put(y, &spans);
    }
}

fn list(app: &App, canvas: &mut Canvas<'_>) {
    let is_focused = app.focus == Focus::List;
    let (theme, width) = (canvas.theme, canvas.width());
    let (shown, all) = app.list.len();
    let head = match (app.list.is_read, app.list.filter.is_empty()) {
        (false, _) => "reading the list…".to_owned(),
        (true, true) => format!("{all} sessions"),
        (true, false) => format!("{}▏ {shown} of {all}", app.list.filter),
    };
    canvas.cut(0, &head, theme.accent());
    let facts = app.list.selected().map(|session| &session.facts[..]);
    let facts = selected_facts(facts.unwrap_or_default(), width, canvas.area.height);
    let height = canvas.height().saturating_sub(facts.len() + 3);
    if app.list.is_read && shown == 0 {
        let none = match all {
            0 => "no sessions yet",
            _ => "nothing matches",
        };
        canvas.dim(2, none);
    }
    for (y, row) in app.list.rows(height).into_iter().enumerate() {
        match row {
            ListRow::Project(name, many) => {
                // The end of a path says more than its start.
                let many = format!(" {many}");
                let name = cut_start(name, width.saturating_sub(many.len()));
                canvas.put(y + 1, &[(&name, theme.bold()), (&many, theme.dim())]);
            }
            ListRow::Session(session, is_selected) => {
                let time = format!("{:>5} ", session.time);
                let title = cut_text(&session.title, width.saturating_sub(8));
                let pad = width.saturating_sub(8 + Line::from(title.as_str()).width());
                let title = format!("{title}{}", " ".repeat(pad));
                let (mut mark, mut style, mut time_style) = (" ", Style::new(), theme.dim());
                if is_selected {
                    (mark, style) = ("›", theme.chosen(is_focused));
                    time_style = style;
                }
                let spans = [(mark, style), (&*time, time_style), (&*title, style)];
                canvas.put(y + 1, &spans);
            }
        }
    }
    let below = canvas.height() - facts.len();
    if !facts.is_empty() {
        canvas.dim(below - 1, &"─".repeat(width));
    }
    for (y, (fact, is_title)) in facts.iter().enumerate() {
        canvas.text(below + y, fact, theme.dim_if(!is_title));
    }
}

/// Returns the lines about the selected session, and whether they are of its title. Title and place
/// may take several, so that what is cut in the list can be read.
fn selected_facts(facts: &[String], width: usize, height: u16) -> Vec<(String, bool)> {
    let lines = facts.iter().enumerate().flat_map(|(at, fact)| {
        let many = if at < 2 && height >= 16 { 3 } else { 1 };
        let mut lines = wrapped(fact, width);
        if lines.len() > many {
            lines.truncate(many - 1);
            // The rest of the fact after the last line that fits, without line breaks.
            let above = lines.iter().flat_map(|line| line.chars());
            let above = above.filter(|c| !c.is_whitespace()).count();
            let letters = fact.char_indices().filter(|(_, c)| !c.is_whitespace());
            let start = letters.map(|(at, _)| at).nth(above);
            lines.push(cut_text(&fact[start.unwrap_or(fact.len())..], width));
        }
        lines.into_iter().map(move |line| (line, at == 0))
    });
    let most = if height >= 16 { height / 3 } else { 2 };
    lines.take(usize::from(most)).collect()
}

fn conversation(app: &App, canvas: &mut Canvas<'_>) {
    let Some(open) = &app.open else {
        return canvas.dim(1, " Enter opens the selected session");
    };
    let (theme, facts) = (canvas.theme, &open.document.facts);
    let one_line = |text: &str| Escaping::Visible.one_line(text);
    let listed = app.list.with_path(&open.path);
    let title = facts.title.as_deref().map(one_line);
    let title = title.or_else(|| listed.map(|session| session.title.clone()));
    let title = title
        .or_else(|| facts.id.as_deref().map(one_line))
        .unwrap_or_default();
    let of = if open.is_of_agent() {
        "subagent · "
    } else {
        ""
    };
    let is_focused = app.focus == Focus::Conversation;
    let style = if is_focused {
        theme.accent()
    } else {
        theme.bold()
    };
    canvas.cut(0, &format!(" {of}{title}"), style);
    canvas.cut(1, &format!(" {}", one_line(&facts.place)), theme.dim());
    let mut text = canvas.inside(2, 0);
    if facts.parts == 0 {
        return match &open.error {
            Some(error) => text.cut(1, &format!(" {}", one_line(error)), Style::new()),
            None if facts.took.is_zero() => text.dim(1, " reading…"),
            None => text.dim(1, " no conversation in this file"),
        };
    }
    let rows = open.document.rows();
    let lines = rows.iter().filter_map(|row| match row {
        Row::Line { line, .. } => Some(*line),
        _ => None,
    });
    let lines: Vec<&StyledLine> = lines.collect();
    let needle = open.document.needle.as_ref();
    let marks = needle.map(|needle| marks(&lines, needle));
    let mut marks = marks.unwrap_or_default().into_iter();
    for (y, row) in rows.into_iter().enumerate() {
        match row {
            Row::Empty => {}
            Row::Missing => text.dim(y, " ⋯"),
            Row::Line {
                line,
                is_block,
                is_cursor,
            } => {
                let mark = match (is_cursor && is_focused, is_block && is_focused) {
                    (true, _) => "›",
                    (_, true) => "▏",
                    _ => " ",
                };
                let mark = Span::styled(mark, theme.accent());
                let mut spans = vec![mark];
                spans.extend(styled(line, &marks.next().unwrap_or_default()));
                text.put_line(y, &Line::from(spans));
            }
        }
    }
}

/// Returns a line with the hits of a search marked.
fn styled(line: &StyledLine, hits: &[Range<usize>]) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut offset = 0;
    for (style, text) in &line.spans {
        let style = style_of(*style);
        let mut at = 0;
        for hit in hits {
            let start = hit.start.saturating_sub(offset).clamp(at, text.len());
            let end = hit.end.saturating_sub(offset).clamp(start, text.len());
            if start < end {
                spans.push(Span::styled(text[at..start].to_owned(), style));
                let marked = style.add_modifier(Modifier::REVERSED);
                spans.push(Span::styled(text[start..end].to_owned(), marked));
                at = end;
            }
        }
        spans.push(Span::styled(text[at..].to_owned(), style));
        offset += text.len();
    }
    spans
}

fn style_of(style: anstyle::Style) -> Style {
    use anstyle::{AnsiColor, Color as Ansi, Effects};
    let mut out = Style::new();
    if let Some(Ansi::Ansi(colour)) = style.get_fg_color() {
        out = out.fg(match colour {
            AnsiColor::Red => Color::Red,
            AnsiColor::Green => Color::Green,
            AnsiColor::Yellow => Color::Yellow,
            AnsiColor::Blue => Color::Blue,
            AnsiColor::Magenta => Color::Magenta,
            AnsiColor::Cyan => Color::Cyan,
            _ => Color::Reset,
        });
    }
    let effects = [
        (Effects::BOLD, Modifier::BOLD),
        (Effects::DIMMED, Modifier::DIM),
        (Effects::ITALIC, Modifier::ITALIC),
        (Effects::UNDERLINE, Modifier::UNDERLINED),
        (Effects::STRIKETHROUGH, Modifier::CROSSED_OUT),
    ];
    for (effect, modifier) in effects {
        if style.get_effects().contains(effect) {
            out = out.add_modifier(modifier);
        }
    }
    out
}

fn footer(app: &App, canvas: &mut Canvas<'_>) {
    let (theme, area, width) = (canvas.theme, canvas.area, canvas.width());
    let is_found = app.open.as_ref().is_some_and(|open| open.is_found);
    let keys = match app.focus {
        Focus::List => "? help · type to filter · Enter reads · Ctrl-F searches",
        Focus::Conversation if is_found => "Esc results · ? help · n N hits · / search",
        Focus::Conversation => "? help · / search · p prompts · Enter unfolds · q",
        Focus::Find => "F1 help · ↑ ↓ select · Enter opens · Esc leaves",
    };
    let is_asked = matches!(app.overlay, Some(Overlay::Search(_) | Overlay::Ask { .. }));
    let right = match &app.open {
        Some(open) if !is_asked && app.focus == Focus::Conversation => place(open),
        _ => String::new(),
    };
    let columns = |text: &str| Line::from(text).width();
    let room = match columns(&right) {
        0 => width,
        right => width.saturating_sub(right + 2),
    };
    // Keys that do not fit are omitted whole, the last one first.
    let mut keys = keys;
    while columns(keys) > room
        && let Some((most, _)) = keys.rsplit_once(" · ")
    {
        keys = most;
    }
    let left = match (&app.overlay, &app.message) {
        (Some(Overlay::Search(text)), _) => format!("/{}▏", Escaping::Visible.escape(text)),
        (Some(Overlay::Ask { question, .. }), _) => {
            let question = cut_text(question, width.saturating_sub(6));
            format!("{question} (y/n)")
        }
        (_, Some(message)) => Escaping::Visible.one_line(message),
        _ => keys.to_owned(),
    };
    let is_news = is_asked || app.message.is_some();
    let style = if is_news { theme.accent() } else { theme.dim() };
    canvas.text(0, &cut_text(&left, room), style);
    let at = width.saturating_sub(columns(&right));
    let at = u16::try_from(at).unwrap_or(0);
    let rest = Rect {
        x: area.x + at,
        width: area.width - at,
        ..area
    };
    canvas.on(rest).dim(0, &right);
}

/// The position of the cursor.
fn place(open: &Open) -> String {
    if let Some(percent) = open.progress {
        return format!("searching {percent} %");
    }
    if let Some(target) = &open.target {
        return format!("going to line {}…", target.line());
    }
    let document = &open.document;
    let line = document.block().and_then(|block| block.line);
    match (line, document.facts.is_whole) {
        (Some(line), _) => format!("line {line} · {} %", document.percent()),
        (None, true) => format!("{} %", document.percent()),
        (None, false) => "end · reading…".to_owned(),
    }
}
