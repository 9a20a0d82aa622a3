//! The styles of the parts of a conversation.

use std::fmt;

use anstyle::{AnsiColor, Style};

use crate::escape::Escaping;

/// The style and the escaping of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TextStyle {
    style: Style,
    pub(crate) escaping: Escaping,
}

impl TextStyle {
    /// Returns whether the style adds nothing to a text.
    pub(crate) fn is_plain(self) -> bool {
        self.style.is_plain()
    }
}

/// The start of styled text; with `#`, its end.
impl fmt::Display for TextStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.style.fmt(f)
    }
}

/// The styles of the parts of a conversation; all plain without colour.
#[derive(Clone, Copy, Debug, Default)]
pub struct Styles {
    /// Whether colour is used; without it, marks replace styles.
    pub(crate) coloured: bool,
    /// The escaping of all texts.
    pub(crate) escaping: Escaping,
    /// Text without a style.
    pub plain: TextStyle,
    /// The text of a person, and the most important text.
    pub person: TextStyle,
    /// The agent.
    pub agent: TextStyle,
    /// Calls of tools.
    pub tool: TextStyle,
    /// Errors.
    pub error: TextStyle,
    /// Less important text.
    pub dim: TextStyle,
    pub(crate) code: TextStyle,
    pub(crate) added: TextStyle,
    pub(crate) removed: TextStyle,
}

impl Styles {
    pub(crate) fn new(coloured: bool, escaping: Escaping) -> Self {
        let style = |style: Style| TextStyle {
            style: if coloured { style } else { Style::new() },
            escaping,
        };
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        Self {
            coloured,
            escaping,
            plain: style(Style::new()),
            person: style(colour(AnsiColor::Cyan).bold()),
            agent: style(colour(AnsiColor::Magenta).bold()),
            tool: style(colour(AnsiColor::Green)),
            error: style(colour(AnsiColor::Red)),
            dim: style(Style::new().dimmed()),
            code: style(colour(AnsiColor::Yellow)),
            added: style(colour(AnsiColor::Green)),
            removed: style(colour(AnsiColor::Red)),
        }
    }

    fn with(self, style: TextStyle, change: impl FnOnce(Style) -> Style) -> TextStyle {
        if self.coloured {
            TextStyle {
                style: change(style.style),
                ..style
            }
        } else {
            style
        }
    }

    /// Makes a style bold.
    #[must_use]
    pub fn bold(self, style: TextStyle) -> TextStyle {
        self.with(style, Style::bold)
    }

    pub(crate) fn italic(self, style: TextStyle) -> TextStyle {
        self.with(style, Style::italic)
    }

    pub(crate) fn struck(self, style: TextStyle) -> TextStyle {
        self.with(style, Style::strikethrough)
    }

    /// Returns the style for the label of one of several sessions.
    pub(crate) fn label(self, number: usize) -> TextStyle {
        use AnsiColor::{Blue, Cyan, Green, Magenta, Red, Yellow};
        const COLOURS: [AnsiColor; 6] = [Blue, Yellow, Green, Magenta, Cyan, Red];
        let colour = COLOURS[number % COLOURS.len()];
        self.with(self.plain, |style| {
            style.fg_color(Some(colour.into())).bold()
        })
    }
}
