//! Draws the state of the screen.

use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use transcript_format::units::size;
use transcript_render::{StyledLine, cut_text, wrapped};

use crate::app::{App, Focus, KEYS, Open, Overlay, outline_rows};
use crate::document::Row;
use crate::list::ListRow;
use crate::needle::marks;
use crate::paint::{Theme, cut_start, put, put_line};
use crate::results::draw_find;

/// A screen with less is not drawn.
const MIN_SIZE: (u16, u16) = (30, 8);

/// Draws everything. The screen may have another size than the one for which the rows were made: what does not fit is
/// omitted.
pub(crate) fn draw(app: &App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        put(
            buffer,
            area,
            0,
            &[("the terminal is too small", Style::new())],
        );
        return;
    }
    let list_width = app.list_width().min(area.width);
    let body = Rect {
        height: area.height - 1,
        ..area
    };
    let is_find = app.focus == Focus::Find;
    if is_find {
        draw_find(&app.find, theme, body, buffer);
    } else if list_width > 0 {
        list(
            app,
            theme,
            Rect {
                width: list_width,
                ..body
            },
            buffer,
        );
    }
    if app.is_wide() && !is_find {
        let rule = Rect {
            x: body.x + list_width,
            width: 1,
            ..body
        };
        for y in 0..usize::from(body.height) {
            put(buffer, rule, y, &[("│", theme.dim())]);
        }
    }
    if list_width < area.width && !is_find {
        let x = if app.is_wide() { list_width + 1 } else { 0 };
        let area = Rect {
            x: body.x + x,
            width: body.width.saturating_sub(x),
            ..body
        };
        conversation(app, theme, area, buffer);
    }
    footer(
        app,
        theme,
        Rect {
            y: area.bottom() - 1,
            height: 1,
            ..area
        },
        buffer,
    );
    match &app.overlay {
        Some(Overlay::Help) => help(theme, area, buffer),
        Some(Overlay::Outline {
            rows,
            filter,
            selected,
            is_last,
        }) => {
            let shown = outline_rows(rows, filter);
            let of = if *is_last { "" } else { ", reading" };
            let title = format!("{} of {} prompts{of} · {filter}▏", shown.len(), rows.len());
            let area = boxed(
                theme,
                area,
                &title,
                "Enter goes there · type to filter · Esc",
                buffer,
            );
            let height = usize::from(area.height);
            let start = (selected + 1 + height / 3).saturating_sub(height);
            let start = start.min(shown.len().saturating_sub(height));
            for (y, at) in shown.iter().enumerate().skip(start).take(height) {
                let row = &rows[*at];
                let text = format!("{:>6}  {}", row.line, row.text);
                let text = cut_text(&text, usize::from(area.width));
                let style = if y == *selected {
                    theme.chosen(true)
                } else {
                    Style::new()
                };
                put(buffer, area, y - start, &[(&text, style)]);
            }
        }
        Some(Overlay::Copy { text, fences }) => {
            let area = boxed(theme, area, "copy", "a digit or y · Esc", buffer);
            let all = format!("y  the whole block, {}", size(text.len() as u64));
            put(buffer, area, 0, &[(&all, Style::new())]);
            for (at, (language, code)) in fences.iter().enumerate() {
                let first = code.lines().next().unwrap_or_default();
                let lines = code.lines().count();
                let row = format!("{}  {language} {lines} lines: {first}", at + 1);
                let row = transcript_render::Escaping::Visible.one_line(&row);
                put(buffer, area, at + 1, &[(&row, Style::new())]);
            }
        }
        Some(Overlay::Raw { lines, top, .. }) => {
            let title = format!("raw line · {} of {}", top + 1, lines.len());
            let area = boxed(theme, area, &title, "j k Space b · y copies · Esc", buffer);
            for (y, line) in lines
                .iter()
                .skip(*top)
                .take(usize::from(area.height))
                .enumerate()
            {
                put(buffer, area, y, &[(line, Style::new())]);
            }
        }
        _ => {}
    }
}

/// Draws a frame over most of the screen, and returns what is in it.
fn boxed(theme: Theme, area: Rect, title: &str, keys: &str, buffer: &mut Buffer) -> Rect {
    for y in area.top()..area.bottom() {
        put(
            buffer,
            area,
            usize::from(y - area.y),
            &[(&" ".repeat(usize::from(area.width)), Style::reset())],
        );
    }
    let title = cut_text(title, usize::from(area.width));
    put(buffer, area, 0, &[(&title, theme.accent())]);
    put(
        buffer,
        area,
        usize::from(area.height - 1),
        &[(keys, theme.dim())],
    );
    Rect {
        y: area.y + 2,
        height: area.height - 3,
        ..area
    }
}

fn help(theme: Theme, area: Rect, buffer: &mut Buffer) {
    let inside = boxed(
        theme,
        area,
        "keys of transcript browse",
        "any key closes this",
        buffer,
    );
    let inside = Rect {
        y: area.y + 1,
        height: area.height - 2,
        ..inside
    };
    for (y, (keys, what, more_keys, more)) in KEYS.iter().enumerate() {
        let style = |keys: &str| {
            if keys.is_empty() {
                theme.dim()
            } else {
                Style::new()
            }
        };
        let left = format!(" {keys:<9} ");
        let middle = format!("{what:<23} ");
        let right = format!("{more_keys:<7} ");
        put(
            buffer,
            inside,
            y,
            &[
                (&left, theme.accent()),
                (&middle, style(keys)),
                (&right, theme.accent()),
                (more, style(more_keys)),
            ],
        );
    }
}

fn list(app: &App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let is_focused = app.focus == Focus::List;
    let width = usize::from(area.width);
    let (shown, all) = app.list.len();
    let head = match (app.list.is_read, app.list.filter.is_empty()) {
        (false, _) => "reading the list…".to_owned(),
        (true, true) => format!("{all} sessions"),
        (true, false) => format!("{}▏ {shown} of {all}", app.list.filter),
    };
    put(
        buffer,
        area,
        0,
        &[(&cut_text(&head, width), theme.accent())],
    );
    let facts = app.list.selected().map(|session| &session.facts[..]);
    let facts = selected_facts(facts.unwrap_or_default(), width, area.height);
    let height = usize::from(area.height).saturating_sub(facts.len() + 3);
    if app.list.is_read && shown == 0 {
        let none = if all == 0 {
            "no sessions here"
        } else {
            "nothing matches"
        };
        put(buffer, area, 2, &[(none, theme.dim())]);
    }
    for (y, row) in app.list.rows(height).into_iter().enumerate() {
        match row {
            ListRow::Project(name, many) => {
                // The end of a path says more than its start.
                let many = format!(" {many}");
                let name = cut_start(name, width.saturating_sub(many.len()));
                put(
                    buffer,
                    area,
                    y + 1,
                    &[(&name, theme.bold()), (&many, theme.dim())],
                );
            }
            ListRow::Session(session, is_selected) => {
                let time = format!("{:>5} ", session.time);
                let mark = if is_selected { "›" } else { " " };
                let title = cut_text(&session.title, width.saturating_sub(8));
                let pad = width.saturating_sub(8 + Line::from(title.as_str()).width());
                let style = if is_selected {
                    theme.chosen(is_focused)
                } else {
                    Style::new()
                };
                let time_style = if is_selected { style } else { theme.dim() };
                let title = format!("{title}{}", " ".repeat(pad));
                put(
                    buffer,
                    area,
                    y + 1,
                    &[(mark, style), (&time, time_style), (&title, style)],
                );
            }
        }
    }
    let rule = "─".repeat(width);
    let below = usize::from(area.height) - facts.len();
    if !facts.is_empty() {
        put(buffer, area, below - 1, &[(&rule, theme.dim())]);
    }
    for (y, (fact, is_title)) in facts.iter().enumerate() {
        let style = if *is_title { Style::new() } else { theme.dim() };
        put(buffer, area, below + y, &[(fact, style)]);
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
            // What the lines left do not have, without the breaks of lines in it.
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

fn conversation(app: &App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(open) = &app.open else {
        put(
            buffer,
            area,
            1,
            &[(" Enter opens the selected session", theme.dim())],
        );
        return;
    };
    let facts = &open.document.facts;
    let width = usize::from(area.width);
    let one_line = |text: &str| transcript_render::Escaping::Visible.one_line(text);
    let listed = app.list.with_path(&open.path);
    let title = facts.title.as_deref().map(one_line);
    let title = title.or_else(|| listed.map(|session| session.title.clone()));
    let title = title
        .or_else(|| facts.id.as_deref().map(one_line))
        .unwrap_or_default();
    let title = match open.is_of_agent() {
        true => format!("subagent · {title}"),
        false => title,
    };
    let is_focused = app.focus == Focus::Conversation;
    let style = if is_focused {
        theme.accent()
    } else {
        theme.bold()
    };
    put(
        buffer,
        area,
        0,
        &[(&cut_text(&format!(" {title}"), width), style)],
    );
    let place = cut_text(&format!(" {}", one_line(&facts.place)), width);
    put(buffer, area, 1, &[(&place, theme.dim())]);
    let text = Rect {
        y: area.y + 2,
        height: area.height - 2,
        ..area
    };
    if let Some(error) = open.error.as_ref().filter(|_| facts.parts == 0) {
        let error = one_line(error);
        put(
            buffer,
            text,
            1,
            &[(&cut_text(&format!(" {error}"), width), Style::new())],
        );
        return;
    }
    if facts.parts == 0 {
        let word = if facts.took.is_zero() {
            " reading…"
        } else {
            " no conversation in this file"
        };
        put(buffer, text, 1, &[(word, theme.dim())]);
        return;
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
            Row::Missing => put(buffer, text, y, &[(" ⋯", theme.dim())]),
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
                put_line(buffer, text, y, &Line::from(spans));
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

fn footer(app: &App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let is_found = app.open.as_ref().is_some_and(|open| open.is_found);
    let keys = match app.focus {
        Focus::List => "? help · type to filter · Enter reads · Ctrl-F searches",
        Focus::Conversation if is_found => "Esc results · ? help · n N hits · / search",
        Focus::Conversation => "? help · / search · p prompts · Enter unfolds · q",
        Focus::Find => "F1 help · ↑ ↓ select · Enter opens · Esc leaves",
    };
    let is_asked = matches!(app.overlay, Some(Overlay::Search(_) | Overlay::Ask { .. }));
    let escaped = |text: &str| transcript_render::Escaping::Visible.one_line(text);
    let right = match &app.open {
        Some(open) if !is_asked && app.focus == Focus::Conversation => place(open),
        _ => String::new(),
    };
    let columns = |text: &str| Line::from(text).width();
    let room = match columns(&right) {
        0 => width,
        right => width.saturating_sub(right + 2),
    };
    // What does not fit is omitted whole, the last first.
    let mut keys = keys;
    while columns(keys) > room
        && let Some((most, _)) = keys.rsplit_once(" · ")
    {
        keys = most;
    }
    let left = match (&app.overlay, &app.message) {
        (Some(Overlay::Search(text)), _) => {
            format!("/{}▏", transcript_render::Escaping::Visible.escape(text))
        }
        (Some(Overlay::Ask { question, .. }), _) => {
            let question = cut_text(question, width.saturating_sub(6));
            format!("{question} (y/n)")
        }
        (_, Some(message)) => escaped(message),
        _ => keys.to_owned(),
    };
    let style = match is_asked || app.message.is_some() {
        true => theme.accent(),
        false => theme.dim(),
    };
    put(buffer, area, 0, &[(&cut_text(&left, room), style)]);
    let at = width.saturating_sub(columns(&right));
    let at = u16::try_from(at).unwrap_or(0);
    let rest = Rect {
        x: area.x + at,
        width: area.width - at,
        ..area
    };
    put(buffer, rest, 0, &[(&right, theme.dim())]);
}

/// Where the cursor is.
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
