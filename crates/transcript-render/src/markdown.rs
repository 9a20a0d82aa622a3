//! Renders Markdown as lines for a terminal.

use std::io;

use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};

use crate::styles::{Styles, TextStyle};
use crate::text::{Page, Span, width, wrap};

/// Writes the Markdown `text`. A link is shown as its text followed by its address, and never as a
/// terminal link, so that a misleading text is noticed.
///
/// A text of more than 1 MiB is written unchanged: no model writes one, and parsing can take up to 70
/// times its size in memory.
pub(crate) fn write(page: &mut Page<'_>, styles: Styles, text: &str) -> io::Result<()> {
    if text.len() > MAX_TEXT {
        return page.text(styles.plain, text.trim_end());
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut printer = Printer {
        depth: page.depth(),
        page,
        styles,
        line: Vec::new(),
        inline: vec![styles.plain],
        lists: Vec::new(),
        targets: Vec::new(),
        code: None,
        table: None,
    };
    for event in Parser::new_ext(text, options) {
        printer.event(event)?;
    }
    printer.end()
}

const MAX_TEXT: usize = 1 << 20;

struct Printer<'p, 'o> {
    page: &'p mut Page<'o>,
    styles: Styles,
    /// The number of margins before this text.
    depth: usize,
    /// The current line.
    line: Vec<Span>,
    /// The stack of styles, innermost last.
    inline: Vec<TextStyle>,
    /// The next number of each list; `None` for lists without numbers.
    lists: Vec<Option<u64>>,
    /// The targets of open links and images, and where their text starts in the line.
    targets: Vec<(String, usize)>,
    /// The current code block.
    code: Option<String>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Vec<Span>>>,
}

impl Printer<'_, '_> {
    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Start(tag) => return self.start(tag),
            Event::End(tag) => return self.finish(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.push(self.style(), &text),
            },
            Event::Code(code) => self.inline_code(&code),
            // As text: a terminal shows no HTML, and dropping it would hide a part of the message.
            Event::Html(html) => {
                self.page.text(self.styles.dim, html.trim_end())?;
            }
            Event::InlineHtml(html) => self.push(self.styles.dim, &html),
            // People and agents end lines on purpose, so soft breaks are kept.
            Event::SoftBreak | Event::HardBreak => match self.table {
                Some(_) => self.push(self.styles.plain, " "),
                None => self.end_line()?,
            },
            Event::Rule => {
                self.page.gap();
                let rule = "─".repeat(self.page.columns());
                self.page.line(&[Span::new(self.styles.dim, &rule)])?;
                self.page.gap();
            }
            Event::TaskListMarker(done) => {
                self.push(self.styles.plain, if done { "☑ " } else { "☐ " });
            }
            Event::FootnoteReference(name) => self.push(self.styles.dim, &format!("[{name}]")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(self.style(), &text),
        }
        Ok(())
    }

    fn start(&mut self, tag: Tag<'_>) -> io::Result<()> {
        let style = self.style();
        let styles = self.styles;
        match tag {
            Tag::Heading { level, .. } => {
                self.page.gap();
                self.inline.push(styles.bold(style));
                // Without colours and bold, a heading would look like any other line.
                if !styles.coloured {
                    self.push(style, &format!("{} ", "#".repeat(level as usize)));
                }
            }
            Tag::BlockQuote(_) => {
                let bar = vec![Span::new(styles.dim, "│ ")];
                self.end_line()?;
                self.page.push(bar.clone(), bar);
            }
            Tag::CodeBlock(_) => {
                self.end_line()?;
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_line()?;
                self.lists.push(first);
            }
            Tag::Item => {
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        // The number comes from the text and can be the largest there is.
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "• ".to_owned(),
                };
                let mark = vec![Span::new(styles.dim, &mark)];
                // Further lines of the item start below its text, whatever the width of its number.
                let rest = vec![Span::plain(&" ".repeat(width(&mark)))];
                self.page.push(mark, rest);
            }
            Tag::Emphasis => self.inline.push(styles.italic(style)),
            Tag::Strong => self.inline.push(styles.bold(style)),
            Tag::Strikethrough => self.inline.push(styles.struck(style)),
            Tag::Link { dest_url, .. } => {
                self.targets.push((dest_url.into_string(), self.line.len()));
            }
            Tag::Image { dest_url, .. } => {
                self.push(styles.dim, "[image] ");
                self.targets.push((dest_url.into_string(), self.line.len()));
            }
            Tag::Table(alignments) => {
                self.end_line()?;
                self.table = Some(Table {
                    alignments,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, tag: TagEnd) -> io::Result<()> {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_line()?;
                self.page.gap();
            }
            TagEnd::Heading(_) => {
                self.end_line()?;
                self.inline.pop();
                self.page.gap();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line()?;
                self.page.pop();
                self.page.gap();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                self.page.indent(2);
                self.page.text(self.styles.code, code.trim_end())?;
                self.page.pop();
                self.page.gap();
            }
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.page.gap();
                }
            }
            TagEnd::Item => {
                self.end_line()?;
                self.page.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.inline.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_target(),
            TagEnd::TableCell => {
                // Cells are kept until the end of the table, because widths depend on all rows.
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                table.write(self.page, self.styles)?;
                self.page.gap();
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints the target of a link, unless its text is the target.
    fn end_target(&mut self) {
        let Some((target, start)) = self.targets.pop() else {
            return;
        };
        if !target.is_empty() && !reads(&self.line[start.min(self.line.len())..], &target) {
            // A text like a harmless address must not hide where the link leads.
            self.push(self.styles.dim, &format!(" ({target})"));
        }
    }

    fn inline_code(&mut self, code: &str) {
        if self.styles.coloured {
            self.push(self.styles.code, code);
        } else {
            // The colour is the only mark of code, so without colours its backticks stay.
            self.push(self.styles.plain, &format!("`{code}`"));
        }
    }

    fn style(&self) -> TextStyle {
        self.inline.last().copied().unwrap_or(self.styles.plain)
    }

    fn push(&mut self, style: TextStyle, text: &str) {
        self.line.push(Span::new(style, text));
    }

    fn end_line(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.line) {
            line if line.is_empty() => Ok(()),
            line => self.page.line(&line),
        }
    }

    fn end(mut self) -> io::Result<()> {
        self.end_line()?;
        // A text can end within a quote or a list, whose margins must not stay for the next item.
        while self.page.depth() > self.depth {
            self.page.pop();
        }
        Ok(())
    }
}

/// Returns whether the spans contain exactly `text`. Stops at the first difference, because links
/// can nest.
fn reads(spans: &[Span], text: &str) -> bool {
    let mut rest = text;
    for span in spans {
        transcript_format::work::add(1);
        match rest.strip_prefix(span.text()) {
            Some(left) => rest = left,
            None => return false,
        }
    }
    rest.is_empty()
}

/// The minimum width of a column; a table that still does not fit is printed row by row.
const MIN_COLUMN_WIDTH: usize = 5;
const COLUMN_SEPARATOR: &str = " │ ";

impl Table {
    fn write(&self, page: &mut Page<'_>, styles: Styles) -> io::Result<()> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        if columns == 0 {
            return Ok(());
        }
        let between = Span::new(styles.dim, COLUMN_SEPARATOR);
        let gaps = (columns - 1) * width(std::slice::from_ref(&between));
        let natural: Vec<usize> = (0..columns).map(|column| self.widest(column)).collect();
        let Some(widths) = fit(&natural, page.columns().saturating_sub(gaps)) else {
            // A table with more columns than the page can hold is readable only row by row.
            return self.write_rows(page, styles);
        };
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Vec<Span>>> = (0..columns)
                .map(|column| wrap(row.get(column).map_or(&[], Vec::as_slice), widths[column]))
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let mut line = Vec::new();
                for (column, cell) in cells.iter().enumerate() {
                    if column > 0 {
                        line.push(between.clone());
                    }
                    let part = cell.get(at).map_or(&[][..], Vec::as_slice);
                    let alignment = self.alignments.get(column);
                    align(&mut line, part, widths[column], alignment);
                }
                page.line(&line)?;
            }
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                page.line(&[Span::new(styles.dim, &rules.join("─┼─"))])?;
            }
        }
        Ok(())
    }

    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| width(cell)).max().unwrap_or(0).max(1)
    }

    /// Prints each cell on its own line, after the head of its column.
    fn write_rows(&self, page: &mut Page<'_>, styles: Styles) -> io::Result<()> {
        let Some((head, rows)) = self.rows.split_first() else {
            return Ok(());
        };
        for row in rows {
            page.gap();
            for (name, cell) in head.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
                let mut line = name.clone();
                line.push(Span::new(styles.dim, ": "));
                line.extend_from_slice(cell);
                page.line(&line)?;
            }
        }
        Ok(())
    }
}

/// Makes the widest columns narrower until all fit.
fn fit(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let capped = |cap: usize| natural.iter().map(move |width| (*width).min(cap));
    let widest = natural.iter().copied().max().unwrap_or(0);
    let mut cap = widest;
    while capped(cap).sum::<usize>() > room {
        if cap <= MIN_COLUMN_WIDTH {
            return None;
        }
        cap = cap.min(room + 1) - 1;
    }
    Some(capped(cap).collect())
}

fn align(line: &mut Vec<Span>, part: &[Span], columns: usize, alignment: Option<&Alignment>) {
    let space = columns.saturating_sub(width(part));
    let before = match alignment {
        Some(Alignment::Right) => space,
        Some(Alignment::Center) => space / 2,
        _ => 0,
    };
    line.push(Span::plain(&" ".repeat(before)));
    line.extend_from_slice(part);
    line.push(Span::plain(&" ".repeat(space - before)));
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn shown(text: &str, columns: usize) -> String {
        let mut out = Vec::new();
        write(&mut Page::new(&mut out, columns), Styles::default(), text).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn blocks_are_separated_by_margins_and_gaps() {
        let text = "# Leap years\n\nEvery *fourth*, **mostly**:\nsee `is_leap`.\n\n- one\n  - inner\n- two\n\n1. first\n2. second\n\n> said\n> twice\n\n```rust\nfn f() {\n\tg();\n}\n```\n\n---\n- [x] done\n- [ ] open\n";
        insta::assert_snapshot!(shown(text, 40));
    }

    #[test]
    fn a_table_of_wide_characters_is_aligned() {
        let text = "| year | 暦 |\n| ---: | :-- |\n| 1900 | 平年 |\n| 2000 | 閏 |\n";
        let shown = shown(text, 40);
        assert_eq!(shown, "year │ 暦\n─────┼─────\n1900 │ 平年\n2000 │ 閏\n");
    }

    #[test]
    fn a_table_is_made_narrower_and_printed_row_by_row_when_it_cannot_be() {
        let wide = "word ".repeat(40);
        let text = format!("| a | b |\n| - | - |\n| {wide} | x |\n");
        let lines = shown(&text, 40);
        assert!(lines.lines().all(|line| line.width() <= 40), "{lines}");
        let many = "| c ".repeat(100);
        let text = format!("{many}|\n{}|\n{many}|\n", "| - ".repeat(100));
        assert!(shown(&text, 40).starts_with("c: c\n"));
    }

    #[test]
    fn a_link_says_where_it_leads() {
        let text = "[bank](https://evil.example/) and <https://a.example/>";
        assert_eq!(
            shown(text, 80),
            "bank (https://evil.example/) and https://a.example/\n"
        );
    }

    #[test]
    fn a_text_that_is_too_long_is_shown_as_it_is() {
        let text = "*a*\n".repeat(MAX_TEXT / 4);
        assert_eq!(shown(&text, 40), "a\n".repeat(MAX_TEXT / 4));
        let text = format!("{text}*");
        assert_eq!(shown(&text, 40), text + "\n");
    }

    #[cfg(debug_assertions)]
    #[test]
    fn images_within_images_are_gone_through_once() {
        use transcript_format::work;
        const DEPTH: usize = 2_000;
        let text = format!("{}a{}", "![".repeat(DEPTH), "](b)".repeat(DEPTH));
        let before = work::done();
        let shown = shown(&text, 80);
        let done = work::done() - before;
        assert!(shown.contains("(b)"));
        assert!(done <= 40 * DEPTH as u64, "{done} spans looked at");
    }

    #[test]
    fn nesting_without_end_leaves_room_for_text() {
        let text = format!("{}deep", "> ".repeat(5_000));
        let shown = shown(&text, 40);
        assert!(shown.lines().all(|line| line.width() <= 40), "{shown}");
        assert!(shown.contains("deep"));
    }
}
