//! Text of help that fits the terminal: paragraphs, rows of a name and its meaning, and lines to copy.

use transcript_render::wrapped;
use unicode_width::UnicodeWidthStr;

/// The maximum width of the names of rows, in columns.
const MAX_NAME_WIDTH: usize = 26;
/// The space that the meanings of rows have at least; on a narrower page they are below the names.
const MIN_MEANING_WIDTH: usize = 22;
/// The margin of rows and of lines to copy.
const MARGIN: usize = 2;

/// A part of a text.
#[derive(Debug, PartialEq)]
pub(crate) enum Block {
    Heading(String),
    Paragraph(String),
    /// Names and meanings.
    Rows(Vec<(String, String)>),
    /// Lines that are printed as they are, to be copied.
    Code(Vec<String>),
}

/// The page that blocks are written for.
pub(crate) struct Page {
    width: usize,
    /// The width of the names of all rows; else that of the longest.
    name_width: Option<usize>,
}

impl Page {
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width,
            name_width: None,
        }
    }

    pub(crate) fn name_width(mut self, columns: usize) -> Self {
        self.name_width = Some(columns);
        self
    }

    /// Returns the lines of a block, each with its newline.
    pub(crate) fn block(&self, block: &Block) -> String {
        let lines = match block {
            Block::Heading(text) | Block::Paragraph(text) => wrapped(text, self.width),
            Block::Rows(rows) => self.rows(rows),
            Block::Code(lines) => lines.iter().map(|line| format!("  {line}")).collect(),
        };
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn rows(&self, rows: &[(String, String)]) -> Vec<String> {
        let longest = rows.iter().map(|(name, _)| name.width()).max();
        let longest = longest.unwrap_or(0).min(MAX_NAME_WIDTH) + 2;
        let column = MARGIN + self.name_width.unwrap_or(longest);
        let is_below = column + MIN_MEANING_WIDTH > self.width;
        let column = if is_below { 2 * MARGIN + 2 } else { column };
        let mut lines = Vec::new();
        for (name, meaning) in rows {
            let meaning = wrapped(meaning, self.width.saturating_sub(column).max(10));
            let mut meaning = meaning.iter();
            let name = format!("{:MARGIN$}{name}", "");
            if is_below || name.width() + 2 > column {
                lines.push(name);
            } else {
                let first = meaning.next().map_or("", String::as_str);
                let space = column - name.width();
                lines.push(format!("{name}{:space$}{first}", ""));
            }
            lines.extend(meaning.map(|line| format!("{:column$}{line}", "")));
        }
        lines
    }
}

/// Reads a text of this form: a line with `# ` is a heading; lines with four spaces are to be copied; lines with two spaces are
/// rows, whose name ends at two spaces, and which continue in lines with six; other lines are paragraphs. An empty line
/// ends each.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            is_open = false;
            continue;
        }
        let last = blocks.last_mut().filter(|_| is_open);
        is_open = true;
        let row = line.strip_prefix("  ");
        let continued = line.strip_prefix("      ");
        match (last, continued, row) {
            (Some(Block::Rows(rows)), Some(more), _) => {
                if let Some((_, meaning)) = rows.last_mut() {
                    meaning.push(' ');
                    meaning.push_str(more);
                }
            }
            (Some(Block::Code(lines)), _, Some(line)) => {
                lines.push(line.strip_prefix("  ").unwrap_or(line).to_owned());
            }
            (_, _, Some(line)) if line.starts_with("  ") => {
                blocks.push(Block::Code(vec![line[2..].to_owned()]));
            }
            (Some(Block::Rows(rows)), _, Some(line)) => rows.push(name_and_meaning(line)),
            (_, _, Some(line)) => blocks.push(Block::Rows(vec![name_and_meaning(line)])),
            (Some(Block::Paragraph(text)), _, None) => {
                text.push(' ');
                text.push_str(line);
            }
            _ => blocks.push(match line.strip_prefix("# ") {
                Some(heading) => Block::Heading(heading.to_owned()),
                None => Block::Paragraph(line.to_owned()),
            }),
        }
    }
    blocks
}

fn name_and_meaning(line: &str) -> (String, String) {
    let (name, meaning) = line.split_once("  ").unwrap_or((line, ""));
    (name.to_owned(), meaning.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Names\n\nA session\nhas names:\n\n  ID  its id\n  latest  the newest\n      of all\n\n    transcript list\n";

    #[test]
    fn a_text_is_read_as_headings_paragraphs_rows_and_lines_to_copy() {
        let row = |name: &str, meaning: &str| (name.to_owned(), meaning.to_owned());
        let expected = [
            Block::Heading("Names".to_owned()),
            Block::Paragraph("A session has names:".to_owned()),
            Block::Rows(vec![
                row("ID", "its id"),
                row("latest", "the newest of all"),
            ]),
            Block::Code(vec!["transcript list".to_owned()]),
        ];
        assert_eq!(blocks(TEXT), expected);
    }

    #[test]
    fn rows_fit_pages_of_all_widths() {
        let rows = vec![("a-name".to_owned(), "words of its meaning ".repeat(5))];
        for width in [20, 31, 32, 33, 40, 80] {
            let text = Page::new(width).block(&Block::Rows(rows.clone()));
            let widest = text.lines().map(UnicodeWidthStr::width).max();
            assert!(widest <= Some(width), "{width}: {text}");
        }
        let narrow = Page::new(20).block(&Block::Rows(rows.clone()));
        assert!(narrow.starts_with("  a-name\n      words"), "{narrow}");
        let wide = Page::new(80).block(&Block::Rows(rows));
        assert!(wide.starts_with("  a-name  words"), "{wide}");
    }
}
