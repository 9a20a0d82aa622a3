//! A name in a text, and what is around it.

use std::ops::Range;

use crate::class::Class;
use crate::names::Meaning;
use crate::view::View;
use crate::wrap::{after_marks, after_prefix, line_start};

/// How a value stands behind its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
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

/// A name, and what its value is.
pub(super) struct Named<'v> {
    pub(super) view: &'v View,
    pub(super) text: &'v [u8],
    pub(super) name: Range<usize>,
    pub(super) meaning: Meaning,
}

impl Named<'_> {
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

    /// Returns whether the name is in capital letters.
    pub(super) fn is_constant(&self) -> bool {
        let name = &self.text[self.name.clone()];
        !name.iter().any(u8::is_ascii_lowercase)
    }

    /// Returns whether the name is the first word of its line, behind what a tool prints there.
    pub(super) fn is_at_line_start(&self) -> bool {
        let start = line_start(self.view, self.name.start);
        after_prefix(self.text, start) == self.name.start
    }

    /// Returns the text before the name on its line, or the end of it.
    pub(super) fn line_before(&self, max: usize) -> &[u8] {
        let start = line_start(self.view, self.name.start);
        &self.text[start.max(self.name.start.saturating_sub(max))..self.name.start]
    }

    /// Returns the text from `at` to the end of its line, or the start of it.
    pub(super) fn line_after(&self, at: usize, max: usize) -> &[u8] {
        let at = at.min(self.text.len());
        let rest = &self.text[at..self.text.len().min(at + max)];
        let is_end = |(n, byte): (usize, &u8)| *byte == b'\n' || self.view.is_outer_quote(at + n);
        let end = rest.iter().enumerate().position(is_end);
        &rest[..end.unwrap_or(rest.len())]
    }

    /// Returns where the line behind the one that ends at `at` starts: behind a line feed, or in the next string of a
    /// list of lines.
    pub(super) fn next_line(&self, at: usize) -> Option<usize> {
        let at = self.skip(at, Class::of("\r"));
        if self.byte(at) == Some(b'\n') {
            return Some(at + 1);
        }
        let open = self.skip(at + 1, Class::of(", "));
        let is_list = self.view.is_outer_quote(at) && self.view.is_outer_quote(open);
        (is_list && open > at + 1).then_some(open + 1)
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
