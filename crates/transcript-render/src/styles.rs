//! The styles of the parts of a conversation.

use anstyle::{AnsiColor, Style};

/// The styles of the parts of a conversation; all plain without colour.
#[derive(Clone, Copy, Debug, Default)]
pub struct Styles {
    /// Whether colour is used; without it, marks replace styles.
    pub coloured: bool,
    pub person: Style,
    pub agent: Style,
    pub tool: Style,
    pub error: Style,
    pub dim: Style,
    pub code: Style,
    pub added: Style,
    pub removed: Style,
}

impl Styles {
    pub fn coloured() -> Self {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        Self {
            coloured: true,
            person: colour(AnsiColor::Cyan).bold(),
            agent: colour(AnsiColor::Magenta).bold(),
            tool: colour(AnsiColor::Green),
            error: colour(AnsiColor::Red),
            dim: Style::new().dimmed(),
            code: colour(AnsiColor::Yellow),
            added: colour(AnsiColor::Green),
            removed: colour(AnsiColor::Red),
        }
    }

    pub fn bold(self, style: Style) -> Style {
        if self.coloured { style.bold() } else { style }
    }

    pub fn italic(self, style: Style) -> Style {
        if self.coloured { style.italic() } else { style }
    }

    /// Returns the style for the label of one of several sessions.
    pub fn label(self, number: usize) -> Style {
        use AnsiColor::{Blue, Cyan, Green, Magenta, Red, Yellow};
        const COLOURS: [AnsiColor; 6] = [Blue, Yellow, Green, Magenta, Cyan, Red];
        if !self.coloured {
            return Style::new();
        }
        let colour = COLOURS[number % COLOURS.len()];
        Style::new().fg_color(Some(colour.into())).bold()
    }

    pub fn struck(self, style: Style) -> Style {
        if self.coloured {
            style.strikethrough()
        } else {
            style
        }
    }
}
