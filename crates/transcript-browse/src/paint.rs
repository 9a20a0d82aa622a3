//! Draws texts on a screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// How the screen looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    /// Whether there are colours.
    pub(crate) is_coloured: bool,
}

impl Theme {
    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn accent(self) -> Style {
        match self.is_coloured {
            true => self.bold().fg(Color::Cyan),
            false => self.bold(),
        }
    }

    pub(crate) fn chosen(self, is_focused: bool) -> Style {
        match is_focused {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => self.bold(),
        }
    }
}

/// Writes a row of texts that are escaped.
pub(crate) fn put(buffer: &mut Buffer, area: Rect, y: usize, spans: &[(&str, Style)]) {
    let spans = spans.iter();
    let spans = spans.map(|(text, style)| Span::styled(*text, *style));
    put_line(buffer, area, y, &spans.collect());
}

/// Writes a row, as far as it is on the screen.
pub(crate) fn put_line(buffer: &mut Buffer, area: Rect, y: usize, line: &Line<'_>) {
    let area = area.intersection(buffer.area);
    let Ok(y) = u16::try_from(y) else { return };
    if y < area.height {
        buffer.set_line(area.x, area.y + y, line, area.width);
    }
}

/// Cuts the start of a text.
pub(crate) fn cut_start(text: &str, columns: usize) -> String {
    let width = |text: &str| Line::from(text).width();
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut starts = text.char_indices().map(|(at, _)| at);
    let start = starts.find(|at| width(&text[*at..]) < columns);
    format!("…{}", &text[start.unwrap_or(text.len())..])
}
