//! Values in a column of a table: CSV, output of a database, `INSERT` and `COPY`.

use std::ops::Range;

use crate::value::named::{NamedValue, Value, ValueSyntax};
use crate::wrap::after_marks;

/// The maximum length of a line of a table, in bytes, the maximum numbers of its columns, its rows and its names
/// of secrets, and the maximum length of the name of a column.
const MAX_LINE_LEN: usize = 1 << 10;
const MAX_COLUMNS: usize = 64;
const MAX_ROWS: usize = 64;
const MAX_NAMES: usize = 4;
const MAX_NAME_LEN: usize = 48;

/// The table that was looked at last. Its lines are not looked at again as those of another one, so that the time grows
/// with the text alone.
#[derive(Debug, Default)]
pub(crate) struct Table {
    header: usize,
    end: usize,
    names: usize,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// The separator of cells.
    mark: u8,
    number: usize,
    /// The number of columns.
    count: usize,
}

impl NamedValue<'_> {
    /// Returns the secrets in the column whose header is the name.
    pub(super) fn column(&self, table: &mut Table) -> Vec<Value> {
        let start = self.line_start();
        if start != table.header && start < table.end {
            return Vec::new();
        }
        if start != table.header {
            *table = Table {
                header: start,
                end: start,
                names: 0,
            };
        }
        if table.names >= MAX_NAMES {
            return Vec::new();
        }
        table.names += 1;
        let places = match self.list_of_columns() {
            Some((column, at)) => self.tuples(at, column, &mut table.end),
            None => self.cells(start, &mut table.end),
        };
        let values = places.into_iter();
        values
            .filter_map(|at| self.classify(at, ValueSyntax::Cell))
            .collect()
    }

    /// Returns the column, and where the list of columns ends, if the name is in that of an `INSERT` or `COPY`.
    fn list_of_columns(&self) -> Option<(Column, usize)> {
        let from = self.name.start.saturating_sub(MAX_LINE_LEN);
        let before = &self.text[from..self.name.start];
        let open = before.iter().rposition(|byte| b"();".contains(byte))?;
        let statement = &before[open.saturating_sub(80)..open];
        let has = |word: &[u8]| {
            let mut windows = statement.windows(word.len());
            windows.any(|window| window.eq_ignore_ascii_case(word))
        };
        if before[open] != b'(' || !has(b"insert into") && !has(b"replace into") && !has(b"copy ") {
            return None;
        }
        let number = count(&before[open..], b',');
        let rest = &self.text[self.name.end..self.text.len().min(self.name.end + MAX_LINE_LEN)];
        let close = rest.iter().position(|byte| *byte == b')')?;
        let column = Column {
            mark: b'\t',
            number,
            count: number + count(&rest[..close], b',') + 1,
        };
        Some((column, self.name.end + close + 1))
    }

    /// Returns where the values of a column start in the rows behind a list of columns.
    fn tuples(&self, at: usize, column: Column, end: &mut usize) -> Vec<usize> {
        let mut at = self.skip_space(at);
        let mut places = Vec::new();
        if self.starts(at, "from stdin") {
            let feed = at + self.line_after(at, MAX_LINE_LEN).len();
            return self.rows(feed, column, end);
        }
        if !self.starts(at, "values") {
            return places;
        }
        at = self.skip_space(at + 6);
        while self.byte(at) == Some(b'(') && places.len() < MAX_ROWS {
            let mut value = self.skip_space(at + 1);
            for number in 0..column.count {
                if number == column.number {
                    places.push(value);
                }
                let is_text = matches!(self.byte(value), Some(b'\'' | b'"'));
                let after = match is_text.then(|| self.short_text(value + 1, value)) {
                    Some(Some(range)) => range.end + 1,
                    Some(None) => return places,
                    None => {
                        let rest = self.line_after(value, MAX_LINE_LEN);
                        let len = rest.iter().position(|byte| b",)".contains(byte));
                        value + len.unwrap_or(rest.len())
                    }
                };
                value = self.skip_space(after);
                if self.byte(value) == Some(b',') {
                    value = self.skip_space(value + 1);
                }
            }
            *end = value;
            let comma = self.skip_space(value + 1);
            if self.byte(value) != Some(b')') || self.byte(comma) != Some(b',') {
                break;
            }
            at = self.skip_space(comma + 1);
        }
        places
    }

    /// Returns where the cells of a column start whose header is at `start`.
    fn cells(&self, start: usize, end: &mut usize) -> Vec<usize> {
        let header = self.line_after(start, MAX_LINE_LEN);
        let next = &self.text[self.name.end..(start + header.len()).max(self.name.end)];
        let before = &self.text[start.min(self.name.start)..self.name.start];
        let is_mark = |byte: &&u8| b",|;\t".contains(byte);
        let is_text = |byte: &&u8| byte.is_ascii_alphanumeric() || b" _-.\"`\r".contains(byte);
        let after = next.iter().find(|byte| !is_text(byte));
        let before_name = || before.iter().rev().find(|byte| !is_text(byte));
        let Some(mark) = after.or_else(before_name).filter(is_mark).copied() else {
            return Vec::new();
        };
        let names = cells_of(header, mark);
        let last = names.len() - 1;
        let is_name = |(number, name): (usize, &Range<usize>)| {
            let name = header[name.clone()].trim_ascii();
            let name = name.strip_prefix(b"\"").unwrap_or(name);
            let is_bar = name.is_empty() && mark == b'|' && (number == 0 || number == last);
            let is_start = name
                .first()
                .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
            // The first cell may start with a prefix of the tool that printed the line.
            name.len() <= MAX_NAME_LEN
                && (number == 0 || is_bar || is_start && name.iter().all(|byte| is_text(&byte)))
        };
        if !(2..=MAX_COLUMNS).contains(&names.len()) || !names.iter().enumerate().all(is_name) {
            return Vec::new();
        }
        let column = Column {
            mark,
            number: cells_of(before, mark).len() - 1,
            count: names.len(),
        };
        self.rows(start + header.len(), column, end)
    }

    /// Returns where the cells of a column start in the lines behind the one that ends at `at`.
    fn rows(&self, at: usize, column: Column, end: &mut usize) -> Vec<usize> {
        let mut places = Vec::new();
        let mut at = at;
        while places.len() < MAX_ROWS {
            let Some(next) = self.next_line(at) else {
                break;
            };
            let line = self.line_after(next, MAX_LINE_LEN);
            at = next + line.len();
            let text = &self.text[after_marks(self.text, next).min(at)..at];
            let is_rule = text.iter().all(|byte| b"-+|:= \r".contains(byte));
            if is_rule && !text.is_empty() {
                continue;
            }
            let mut cells = cells_of(line, column.mark);
            if cells.len() > column.count {
                // The last line of a text within JSON ends at its quote.
                let close = line
                    .windows(2)
                    .position(|pair| pair[0] == b'"' && b",}]".contains(&pair[1]));
                cells = cells_of(&line[..close.unwrap_or(line.len())], column.mark);
            }
            let is_number = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_whitespace();
            // The number of a line and a tab.
            let is_numbered =
                cells.len() == column.count + 1 && line[cells[0].clone()].iter().all(is_number);
            if cells.len() != column.count && !is_numbered {
                break;
            }
            let cell = &cells[column.number + usize::from(is_numbered)];
            let blanks = line[cell.clone()].iter().take_while(|byte| **byte == b' ');
            places.push(match column.number {
                0 => after_marks(self.text, next),
                _ => next + cell.start + blanks.count(),
            });
            *end = at;
        }
        places
    }
}

fn count(text: &[u8], mark: u8) -> usize {
    memchr::memchr_iter(mark, text).count()
}

/// Returns the cells of a line. A mark in quotes separates nothing.
fn cells_of(line: &[u8], mark: u8) -> Vec<Range<usize>> {
    let mut cells = Vec::new();
    let (mut start, mut is_text) = (0, false);
    for (at, byte) in line.iter().enumerate() {
        is_text ^= *byte == b'"';
        if *byte == mark && !is_text {
            cells.push(start..at);
            start = at + 1;
        }
    }
    cells.push(start..line.len());
    cells
}
