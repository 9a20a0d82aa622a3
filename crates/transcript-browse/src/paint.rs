//! Draws texts on a screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use transcript_render::cut_text;

/// The colours and styles of the screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    /// Whether there are colours.
    pub(crate) is_coloured: bool,
}

impl Theme {
    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn dim_if(self, is_dim: bool) -> Style {
        if is_dim { self.dim() } else { Style::new() }
    }

    pub(crate) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn accent(self) -> Style {
        let colour = self.is_coloured.then_some(Color::Cyan);
        colour.map_or(self.bold(), |colour| self.bold().fg(colour))
    }

    pub(crate) fn chosen(self, is_focused: bool) -> Style {
        if !is_focused {
            return self.bold();
        }
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style of a row of a list.
    pub(crate) fn row(self, is_selected: bool) -> Style {
        if is_selected {
            self.chosen(true)
        } else {
            Style::new()
        }
    }
}

/// A part of the screen that is drawn on. The texts are escaped.
pub(crate) struct Canvas<'b> {
    buffer: &'b mut Buffer,
    pub(crate) area: Rect,
    pub(crate) theme: Theme,
}

impl<'b> Canvas<'b> {
    pub(crate) fn new(buffer: &'b mut Buffer, area: Rect, theme: Theme) -> Self {
        Self {
            buffer,
            area,
            theme,
        }
    }

    /// Returns another part of the same screen.
    pub(crate) fn on(&mut self, area: Rect) -> Canvas<'_> {
        Canvas::new(self.buffer, area, self.theme)
    }

    /// Returns the part that starts `rows` below the top, and ends as much above the bottom as `less` says.
    pub(crate) fn inside(&mut self, rows: u16, less: u16) -> Canvas<'_> {
        let area = Rect {
            y: self.area.y + rows,
            height: self.area.height.saturating_sub(rows + less),
            ..self.area
        };
        self.on(area)
    }

    pub(crate) fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    pub(crate) fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Writes a row that has one style, as far as it is on the screen.
    pub(crate) fn text(&mut self, y: usize, text: &str, style: Style) {
        self.put(y, &[(text, style)]);
    }

    /// Writes a row that has one style, and an ellipsis if a part of it does not fit.
    pub(crate) fn cut(&mut self, y: usize, text: &str, style: Style) {
        self.text(y, &cut_text(text, self.width()), style);
    }

    pub(crate) fn dim(&mut self, y: usize, text: &str) {
        self.text(y, text, self.theme.dim());
    }

    pub(crate) fn put(&mut self, y: usize, spans: &[(&str, Style)]) {
        let spans = spans.iter();
        let spans = spans.map(|(text, style)| Span::styled(*text, *style));
        self.put_line(y, &spans.collect());
    }

    pub(crate) fn put_line(&mut self, y: usize, line: &Line<'_>) {
        let area = self.area.intersection(self.buffer.area);
        let Ok(y) = u16::try_from(y) else { return };
        if y < area.height {
            self.buffer.set_line(area.x, area.y + y, line, area.width);
        }
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
