//! Snippets: a piece of a text with the places that were found, broken into lines.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use crate::Escaping;

/// A piece of a text, as it is in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// The text.
    pub text: Vec<char>,
    /// The spans of the matches in it, in characters, in order and not overlapping.
    pub matches: Vec<Range<usize>>,
    /// Whether there is more of the text before it, and after it.
    pub is_cut: (bool, bool),
}

/// A line of a snippet, escaped: texts, and whether they were found.
pub type SnippetLine = Vec<(String, bool)>;

impl Snippet {
    /// Returns the text in at most `lines` lines of `width` columns, white space joined. They show the first
    /// match, with marks where text is omitted.
    #[must_use]
    pub fn fitted(&self, escaping: Escaping, width: usize, lines: usize) -> Vec<SnippetLine> {
        let cells = self.cells(escaping, 0..self.text.len());
        fitted(cells, self.is_cut, width, lines)
    }

    /// Returns the lines of the text, each cut to this number of columns.
    #[must_use]
    pub fn line_by_line(&self, escaping: Escaping, width: usize) -> Vec<SnippetLine> {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in self.text.split(|c| *c == '\n') {
            let end = start + line.len();
            let cells = self.cells(escaping, start..end);
            lines.extend(fitted(cells, (false, false), width, 1));
            start = end + 1;
        }
        lines
    }

    /// Returns a part of the text on one line, escaped.
    fn cells(&self, escaping: Escaping, part: Range<usize>) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        let mut add = |part: &[char], is_marked: bool| {
            let part: String = part.iter().collect();
            for char in escaping.escape(&escaping.without_colours(&part)).chars() {
                let is_space = char.is_whitespace();
                if !is_space {
                    cells.push(Cell { char, is_marked });
                } else if cells.last().is_none_or(|last| last.char != ' ') {
                    cells.push(Cell {
                        char: ' ',
                        is_marked,
                    });
                }
            }
        };
        let mut at = part.start;
        for found in &self.matches {
            let from = found.start.clamp(at, part.end);
            let to = found.end.clamp(from, part.end);
            add(&self.text[at..from], false);
            add(&self.text[from..to], true);
            at = to;
        }
        add(&self.text[at..part.end], false);
        while cells.last().is_some_and(|last| last.char == ' ') {
            cells.pop();
        }
        let spaces = cells.iter().take_while(|cell| cell.char == ' ').count();
        cells.drain(..spaces);
        cells
    }
}

/// A character of a snippet on the page.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    char: char,
    is_marked: bool,
}

impl Cell {
    fn plain(char: char) -> Self {
        Self {
            char,
            is_marked: false,
        }
    }

    fn width(self) -> usize {
        self.char.width().unwrap_or(0)
    }
}

/// Breaks cells into at most `lines` lines that show the first match, with marks where text is left
/// out.
fn fitted(
    mut cells: Vec<Cell>,
    (mut before, after): (bool, bool),
    width: usize,
    lines: usize,
) -> Vec<SnippetLine> {
    let widths = |cells: &[Cell]| -> usize { cells.iter().map(|cell| cell.width()).sum() };
    let room = (width * lines).saturating_sub(2 * lines);
    let first = cells.iter().position(|cell| cell.is_marked).unwrap_or(0);
    let marked = cells[first..]
        .iter()
        .take_while(|cell| cell.is_marked)
        .count();
    if widths(&cells) > room && widths(&cells[..first + marked]) > room * 2 / 3 {
        // A third of the room is for what is before the match.
        let mut left = room / 3;
        let start = cells[..first].iter().rposition(|cell| {
            let fits = cell.width() <= left;
            left = left.saturating_sub(cell.width());
            !fits
        });
        let start = start.map_or(0, |start| start + 1);
        let word = cells[start..first].iter().position(|cell| cell.char == ' ');
        let start = word.map_or(start, |word| start + word + 1);
        cells.drain(..start);
        before |= start > 0;
    }
    if before {
        cells.insert(0, Cell::plain('…'));
    }
    if after {
        cells.push(Cell::plain('…'));
    }
    let mut broken = Vec::new();
    let mut rest = &cells[..];
    while !rest.is_empty() && broken.len() < lines {
        let is_last = broken.len() + 1 == lines;
        let mut used = 0;
        let fits = rest.iter().take_while(|cell| {
            used += cell.width();
            used <= width
        });
        let mut end = fits.count();
        if end == rest.len() {
            broken.push(runs(rest));
            break;
        }
        if is_last {
            // The mark takes a column.
            let mut line = rest[..end].to_vec();
            while widths(&line) >= width && !line.is_empty() {
                line.pop();
            }
            line.push(Cell::plain('…'));
            broken.push(runs(&line));
            break;
        }
        let space = rest[..=end].iter().rposition(|cell| cell.char == ' ');
        if let Some(space) = space.filter(|space| *space > end / 2) {
            end = space;
        }
        end = end.max(1);
        broken.push(runs(&rest[..end]));
        rest = &rest[end..];
        if rest.first().is_some_and(|cell| cell.char == ' ') {
            rest = &rest[1..];
        }
    }
    broken
}

fn runs(cells: &[Cell]) -> SnippetLine {
    let runs = cells.chunk_by(|one, other| one.is_marked == other.is_marked);
    let text = |run: &[Cell]| run.iter().map(|cell| cell.char).collect();
    runs.map(|run| (text(run), run[0].is_marked)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_match_is_shown_and_nothing_that_a_terminal_obeys() {
        let text = format!(
            "{}a \u{1b}[2J needle\n{}",
            "before ".repeat(30),
            "after ".repeat(30)
        );
        let start = text.chars().count() - text.split_once("needle").unwrap().1.chars().count() - 6;
        let snippet = Snippet {
            text: text.chars().collect(),
            matches: std::iter::once(start..start + 6).collect(),
            is_cut: (true, true),
        };
        for width in [8, 20, 60] {
            let lines = snippet.fitted(Escaping::Visible, width, 2);
            assert!(lines.len() <= 2);
            let marked = lines.iter().flatten().filter(|(_, is_marked)| *is_marked);
            let marked: String = marked.map(|(text, _)| text.as_str()).collect();
            assert!(
                "needle".starts_with(&marked) && !marked.is_empty(),
                "{lines:?}"
            );
            for line in lines {
                let line: String = line.into_iter().map(|(text, _)| text).collect();
                assert!(!line.contains(char::is_control), "{line}");
                let columns: usize = line.chars().filter_map(UnicodeWidthChar::width).sum();
                assert!(columns <= width, "{line}");
            }
        }
        let lines = snippet.line_by_line(Escaping::Visible, 60);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].iter().all(|(_, is_marked)| !is_marked));
    }
}
