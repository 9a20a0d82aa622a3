//! A name in a text, and its surroundings.

use std::cell::OnceCell;
use std::ops::Range;

use crate::class::Class;
use crate::names::Meaning;
use crate::view::View;
use crate::wrap::{after_marks, after_prefix, line_behind, line_end_at, line_start};

/// The syntax in which a value follows its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSyntax {
    /// `NAME=value`, as in a shell.
    Shell,
    /// `name = value`, `name=value`.
    Equals,
    /// `name: value`.
    Colon,
    /// `<name>value</name>`.
    Tag,
    /// `--name value`, `set name value`, `login name password value`.
    Word,
    /// `the name is value`.
    Sentence,
    /// `f("name", "value")`, `name("value")`.
    Call,
    /// `name    value`, in a table or a list of settings.
    Column,
    /// In the column of a table.
    Cell,
    /// Somewhere near: in a list, behind an operator, in the same object, later in a sentence.
    Near,
}

/// A value behind a name.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) range: Range<usize>,
    /// Whether it is a number of the JSON of the line, which has no quotes.
    pub(crate) is_bare_json: bool,
    /// Whether it is a secret, or only looks like one.
    pub(crate) is_sure: bool,
}

/// A name, and the meaning of its value.
pub(super) struct NamedValue<'v> {
    pub(super) view: &'v View,
    pub(super) text: &'v [u8],
    pub(super) name: Range<usize>,
    pub(super) meaning: Meaning,
    /// The start of its line, computed when it is needed.
    line: OnceCell<usize>,
}

impl<'v> NamedValue<'v> {
    pub(super) fn new(view: &'v View, name: &Range<usize>, meaning: Meaning) -> Self {
        Self {
            view,
            text: view.text(),
            name: name.clone(),
            meaning,
            line: OnceCell::new(),
        }
    }

    /// Returns where the line of the name starts.
    pub(super) fn line_start(&self) -> usize {
        *self
            .line
            .get_or_init(|| line_start(self.view, self.name.start))
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// The byte before the name.
    pub(super) fn before(&self) -> Option<u8> {
        self.name.start.checked_sub(1).and_then(|at| self.byte(at))
    }

    pub(super) fn skip(&self, at: usize, skipped: Class) -> usize {
        let rest = self.text[at.min(self.text.len())..].iter().take(64);
        at + rest.take_while(|byte| skipped.has(**byte)).count()
    }

    pub(super) fn starts(&self, at: usize, with: &str) -> bool {
        let rest = self.text.get(at..at + with.len());
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(with.as_bytes()))
    }

    pub(super) fn is_quote(&self, at: usize) -> bool {
        matches!(self.byte(at), Some(b'"' | b'\'' | b'`'))
    }

    /// Returns whether the value at `at` was replaced already.
    pub(super) fn is_mask(&self, at: usize) -> bool {
        self.starts(at + usize::from(self.is_quote(at)), "[redacted: ")
    }

    /// Returns whether the value at `at` is a number or another literal of the JSON of the line.
    pub(super) fn is_literal(&self, at: usize) -> bool {
        self.view.is_outer_quote(self.name.end)
            && !matches!(self.byte(at), Some(b'"' | b'[' | b'{'))
    }

    /// Returns whether the name is in capital letters.
    pub(super) fn is_constant(&self) -> bool {
        let name = &self.text[self.name.clone()];
        !name.iter().any(u8::is_ascii_lowercase)
    }

    /// Returns whether the name is the first word of its line, behind what a tool prints there.
    pub(super) fn is_at_line_start(&self) -> bool {
        let start = self.line_start();
        // A text within JSON starts behind its quote.
        let before = &self.text[start.min(self.name.start)..self.name.start];
        let is_text = [&b":\""[..], b": \"", b"[\"", b",\"", b", \""]
            .iter()
            .any(|open| before.ends_with(open));
        is_text || after_prefix(self.text, start) == self.name.start
    }

    /// Returns the text before the name on its line, or the end of it.
    pub(super) fn line_before(&self, max: usize) -> &[u8] {
        let start = self.line_start();
        &self.text[start.max(self.name.start.saturating_sub(max))..self.name.start]
    }

    /// Returns the text from `at` to the end of its line, or the start of it.
    pub(super) fn line_after(&self, at: usize, max: usize) -> &[u8] {
        let at = at.min(self.text.len());
        &self.text[at..line_end_at(self.view, at, max)]
    }

    /// Returns where the line behind the one that ends at `at` starts.
    pub(super) fn next_line(&self, at: usize) -> Option<usize> {
        line_behind(self.view, at)
    }

    /// Skips blanks, the ends of lines, and what tools print before lines.
    pub(super) fn skip_space(&self, at: usize) -> usize {
        const MAX_LINES: usize = 4;
        let mut at = self.skip(at, Class::of(" \t\r"));
        for _ in 0..MAX_LINES {
            let Some(next) = self.next_line(at) else {
                break;
            };
            at = after_marks(self.text, next);
        }
        at
    }
}
