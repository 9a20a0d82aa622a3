//! Styled text on lines of a given width.

use std::io::{self, Write};

use unicode_linebreak::linebreaks;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::escape::is_printable_ascii;
use crate::styles::TextStyle;

/// Text in one style, escaped and without a newline.
// Invariant: the spans of a page are only made by `Span::new`, which escapes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span {
    text: String,
    style: TextStyle,
}

impl Span {
    pub(crate) fn new(style: TextStyle, text: &str) -> Self {
        let mut text = style.escaping.escape(text).into_owned();
        if text.contains('\n') {
            // A span is a part of one line. A line feed in it would leave the margins.
            text = text.replace('\n', " ");
        }
        Self { text, style }
    }

    pub(crate) fn plain(text: &str) -> Self {
        Self::new(TextStyle::default(), text)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    fn part(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            text: self.text[range].to_owned(),
            style: self.style,
        }
    }
}

/// Returns the width of a line in columns.
pub(crate) fn width(line: &[Span]) -> usize {
    line.iter().map(|span| columns_of(&span.text)).sum()
}

/// Returns the width of a text in columns.
fn columns_of(text: &str) -> usize {
    if is_printable_ascii(text) {
        text.len()
    } else {
        text.width()
    }
}

/// Breaks a line where Unicode allows it (UAX 14), so that no line is wider than `width` columns;
/// a word that is wider is broken between characters.
pub(crate) fn wrap(line: &[Span], columns: usize) -> Vec<Vec<Span>> {
    // A wide character takes two columns, and would never fit into one.
    let columns = columns.max(2);
    if width(line) <= columns {
        return vec![line.to_vec()];
    }
    let text: String = line.iter().map(Span::text).collect();
    let mut lines = Vec::new();
    let (mut start, mut end, mut used) = (0, 0, 0);
    let mut piece_start = 0;
    for (piece_end, _) in linebreaks(&text) {
        for word in pieces(&text, piece_start..piece_end, columns) {
            let word_text = &text[word.clone()];
            // Spaces at the end of a line are not printed, so they need no room.
            if used + columns_of(word_text.trim_end()) > columns && end > start {
                lines.push(start..end);
                (start, used) = (word.start, 0);
            }
            end = word.end;
            used += columns_of(word_text);
        }
        piece_start = piece_end;
    }
    lines.push(start..end);
    let mut spans = Spans {
        line,
        first: 0,
        offset: 0,
    };
    lines
        .into_iter()
        .map(|range| spans.slice(&text, range))
        .collect()
}

/// An iterator over the spans of a line, from its start to its end.
struct Spans<'l> {
    line: &'l [Span],
    /// The first span that was not consumed.
    first: usize,
    /// The offset of that span in the text of the line.
    offset: usize,
}

impl Spans<'_> {
    /// Returns the spans of these bytes of the line, without trailing spaces. Ranges must be passed in
    /// order, so that a line of many spans is traversed once.
    fn slice(&mut self, text: &str, range: std::ops::Range<usize>) -> Vec<Span> {
        let end = range.start + text[range.clone()].trim_end().len();
        let mut out = Vec::new();
        while let Some(span) = self.line.get(self.first) {
            transcript_format::work::add(1);
            let from = range.start.max(self.offset);
            let to = end.min(self.offset + span.text.len());
            if from < to {
                out.push(span.part(from - self.offset..to - self.offset));
            }
            if self.offset + span.text.len() > range.end {
                break;
            }
            self.offset += span.text.len();
            self.first += 1;
        }
        out
    }
}

/// Splits the text between two break opportunities into parts that fit on a line.
fn pieces(
    text: &str,
    piece: std::ops::Range<usize>,
    columns: usize,
) -> Vec<std::ops::Range<usize>> {
    if columns_of(text[piece.clone()].trim_end()) <= columns {
        return vec![piece];
    }
    let mut parts = Vec::new();
    let (mut start, mut used) = (piece.start, 0);
    for (at, grapheme) in text[piece.clone()].grapheme_indices(true) {
        let at = piece.start + at;
        if used + grapheme.width() > columns && at > start {
            parts.push(start..at);
            (start, used) = (at, 0);
        }
        used += grapheme.width();
    }
    parts.push(start..piece.end);
    parts
}

/// Returns the start of a line, at most `columns` wide, with a mark if it was cut.
pub(crate) fn cut(line: &[Span], columns: usize) -> Vec<Span> {
    if width(line) <= columns {
        return line.to_vec();
    }
    let mut left = columns.saturating_sub(1);
    let mut out = Vec::new();
    for span in line {
        if is_printable_ascii(&span.text) && span.text.len() <= left {
            left -= span.text.len();
            out.push(span.clone());
            continue;
        }
        let mut end = 0;
        // By graphemes, so that an emoji or a letter with its marks is never cut in two.
        for (at, grapheme) in span.text.grapheme_indices(true) {
            let needed = columns_of(grapheme);
            if needed > left {
                out.push(span.part(0..end));
                out.push(Span::new(span.style, "…"));
                return out;
            }
            left -= needed;
            end = at + grapheme.len();
        }
        out.push(span.clone());
    }
    out
}

/// Returns the start of a text that is already escaped, at most `columns` wide, with a mark if it
/// was cut.
#[must_use]
pub fn cut_text(text: &str, columns: usize) -> String {
    let whole = Span {
        text: text.to_owned(),
        style: TextStyle::default(),
    };
    let line = cut(&[whole], columns);
    line.iter().map(Span::text).collect()
}

/// Returns a text in lines of at most `columns`, escaped.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let lines = text
        .split('\n')
        .flat_map(|line| wrap(&[Span::plain(line)], columns));
    lines
        .map(|line| line.iter().map(Span::text).collect())
        .collect()
}

/// Writes lines with nested margins.
pub(crate) struct Page<'o> {
    out: &'o mut dyn Write,
    width: usize,
    margins: Vec<Margin>,
    /// The indices of the margins that are not empty. A page has space for only a few of them, however
    /// deep the nesting is.
    shown: Vec<usize>,
    /// Whether an empty line is due before the next one, and its number of margins.
    gap: Option<usize>,
    /// A line that is due before the next one, without margins.
    label: Option<Vec<Span>>,
    /// The number of written lines.
    lines: u64,
}

/// The state of a page between two lines: its margins, those that are shown, a gap and a label.
pub(crate) type PageState = (Vec<Margin>, Vec<usize>, Option<usize>, Option<Vec<Span>>);

#[derive(Clone, PartialEq)]
pub(crate) struct Margin {
    /// The margin of the first line.
    first: Option<Vec<Span>>,
    /// The margin of all other lines.
    rest: Vec<Span>,
    /// The width of this margin and the ones around it, in columns.
    used: usize,
}

/// The minimum width of the text of a line, whatever the margins.
const MIN_WIDTH: usize = 16;

impl<'o> Page<'o> {
    /// Starts a page of this width, in columns.
    pub(crate) fn new(out: &'o mut dyn Write, width: usize) -> Self {
        Self {
            out,
            width,
            margins: Vec::new(),
            shown: Vec::new(),
            gap: None,
            label: None,
            lines: 0,
        }
    }

    /// Returns the gap and the label before the next line, and the margins.
    pub(crate) fn state(&self) -> PageState {
        let (margins, shown) = (self.margins.clone(), self.shown.clone());
        (margins, shown, self.gap, self.label.clone())
    }

    /// Writes lines of another page that started in the state of this one, and ended in `state`.
    pub(crate) fn append(&mut self, lines: &[u8], state: PageState) -> io::Result<()> {
        (self.margins, self.shown, self.gap, self.label) = state;
        self.lines += 1;
        self.out.write_all(lines)
    }

    /// Returns the width between the margins.
    pub(crate) fn columns(&self) -> usize {
        self.width.saturating_sub(self.used()).max(MIN_WIDTH)
    }

    /// Returns the width of all margins.
    fn used(&self) -> usize {
        self.margins.last().map_or(0, |margin| margin.used)
    }

    /// Puts `first` before the next line and `rest` before those below it, until [`Self::pop`].
    /// A margin that leaves no room for text is ignored.
    pub(crate) fn push(&mut self, first: Vec<Span>, rest: Vec<Span>) {
        let (used, needed) = (self.used(), width(&rest));
        // The depth of quotes and lists comes from the text; each of them may not take the room of the text.
        let margin = if self.columns() >= needed + MIN_WIDTH {
            self.shown.push(self.margins.len());
            Margin {
                first: Some(first),
                rest,
                used: used + needed,
            }
        } else {
            Margin {
                first: None,
                rest: Vec::new(),
                used,
            }
        };
        self.margins.push(margin);
    }

    /// Adds a margin of spaces.
    pub(crate) fn indent(&mut self, columns: usize) {
        let spaces = vec![Span::plain(&" ".repeat(columns))];
        self.push(spaces.clone(), spaces);
    }

    /// Puts `first` before the next line in place of the innermost margin.
    pub(crate) fn head(&mut self, first: Vec<Span>) {
        let last = self.margins.len().wrapping_sub(1);
        if let Some(margin) = self.margins.last_mut() {
            margin.first = Some(first);
            if self.shown.last() != Some(&last) {
                self.shown.push(last);
            }
        }
    }

    pub(crate) fn pop(&mut self) {
        self.margins.pop();
        self.shown.pop_if(|shown| *shown == self.margins.len());
    }

    /// Returns the number of margins.
    pub(crate) fn depth(&self) -> usize {
        self.margins.len()
    }

    /// The number of written lines.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Sets a line to print above the next one, instead of a gap; `None` removes it.
    pub(crate) fn label(&mut self, label: Option<Vec<Span>>) {
        self.label = label;
    }

    /// Requests an empty line before the next one; several requests give one line.
    pub(crate) fn gap(&mut self) {
        let margins = self.margins.len();
        // The outermost request counts: an empty line between two quotes has no bar.
        self.gap = Some(self.gap.map_or(margins, |asked| asked.min(margins)));
    }

    /// Writes a line, broken to the width of the page.
    pub(crate) fn line(&mut self, line: &[Span]) -> io::Result<()> {
        let columns = self.columns();
        if width(line) <= columns {
            return self.write(line);
        }
        for part in wrap(line, columns) {
            self.write(&part)?;
        }
        Ok(())
    }

    /// Writes each line of `text` in one style.
    pub(crate) fn text(&mut self, style: TextStyle, text: &str) -> io::Result<()> {
        // The width of a tab depends on the text before it, so each line is one span.
        for line in text.split('\n') {
            self.line(&[Span::new(style, line.trim_end())])?;
        }
        Ok(())
    }

    /// Writes a line that is cut to the width of the page.
    pub(crate) fn short(&mut self, line: &[Span]) -> io::Result<()> {
        let line = cut(line, self.columns());
        self.write(&line)
    }

    /// Writes `left`, cut if need be, and `right` at the end of the line; on a page that is too
    /// narrow for both, `right` directly follows.
    pub(crate) fn both(&mut self, left: &[Span], right: &[Span]) -> io::Result<()> {
        let columns = self.columns();
        let room = columns.saturating_sub(width(right) + 2);
        let mut line = cut(left, room.max(columns / 2));
        let space = columns.saturating_sub(width(&line) + width(right)).max(2);
        line.push(Span::plain(&" ".repeat(space)));
        line.extend_from_slice(right);
        self.short(&line)
    }

    /// Writes a line as it is.
    fn write(&mut self, line: &[Span]) -> io::Result<()> {
        let gap = self.gap.take();
        if let Some(label) = self.label.take() {
            if self.lines > 0 {
                self.lines += 1;
                put(self.out, &mut Vec::new())?;
            }
            self.lines += 1;
            put(self.out, &mut cut(&label, self.width).iter().collect())?;
        } else if let Some(margins) = gap
            && self.lines > 0
        {
            // A repeating margin, such as the bar of a quote, also covers blank lines within it; a
            // first-line margin waits for the next line with text.
            let shown = self.shown.iter().take_while(|shown| **shown < margins);
            let margin = shown.flat_map(|shown| &self.margins[*shown].rest);
            self.lines += 1;
            put(self.out, &mut margin.collect())?;
        }
        let margins = &mut self.margins;
        let leads = self.shown.iter().map(|shown| margins[*shown].first.take());
        let leads: Vec<Option<Vec<Span>>> = leads.collect();
        let mut whole: Vec<&Span> = Vec::with_capacity(leads.len() + line.len() + 1);
        for (shown, lead) in self.shown.iter().zip(&leads) {
            transcript_format::work::add(1);
            whole.extend(lead.as_ref().unwrap_or(&self.margins[*shown].rest));
        }
        whole.extend(line);
        self.lines += 1;
        put(self.out, &mut whole)
    }

    /// Flushes the output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes a line without the spaces at its end.
fn put(out: &mut dyn Write, line: &mut Vec<&Span>) -> io::Result<()> {
    let mut last = "";
    while let Some(span) = line.pop() {
        last = span.text.trim_end();
        if !last.is_empty() {
            line.push(span);
            break;
        }
    }
    let before_last = line.len().saturating_sub(1);
    for (place, span) in line.iter().enumerate() {
        let text = if place < before_last {
            &*span.text
        } else {
            last
        };
        if text.is_empty() {
            continue;
        }
        if span.style.is_plain() {
            out.write_all(text.as_bytes())?;
        } else {
            write!(out, "{style}{text}{style:#}", style = span.style)?;
        }
    }
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::Escaping;
    use crate::styles::Styles;

    #[test]
    fn lines_break_at_spaces_and_between_wide_characters() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(
            wrapped("閏年は四年に一度です。", 8),
            ["閏年は四", "年に一度", "です。"]
        );
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("  in", 8), ["  in"]);
        assert_eq!(wrapped("", 8), [""]);
    }

    #[test]
    fn no_part_of_a_line_is_wider_than_the_page() {
        let text =
            "wide 年月日 👩\u{200D}💻 e\u{301} and_a_word_that_is_much_longer_than_the_page x";
        for columns in 2..40 {
            for line in wrapped(text, columns) {
                assert!(line.width() <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn styles_go_on_over_a_break() {
        let bold = Styles::new(true, Escaping::Visible).person;
        let lines = wrap(&[Span::plain("a "), Span::new(bold, "bb cc")], 4);
        assert_eq!(lines[0], [Span::plain("a "), Span::new(bold, "bb")]);
        assert_eq!(lines[1], [Span::new(bold, "cc")]);
    }

    #[test]
    fn a_cut_line_ends_in_a_mark_and_halves_no_character() {
        assert_eq!(cut_text("年月日", 6), "年月日");
        assert_eq!(cut_text("年月日", 5), "年月…");
        assert_eq!(cut_text("年月日", 4), "年…");
    }

    #[test]
    fn a_mark_is_before_the_first_line_of_a_margin() {
        let mut out = Vec::new();
        let mut page = Page::new(&mut out, 20);
        page.push(vec![Span::plain("- ")], vec![Span::plain("  ")]);
        page.line(&[Span::plain("one two three four five")])
            .unwrap();
        page.gap();
        page.text(TextStyle::default(), "six").unwrap();
        page.pop();
        page.both(&[Span::plain("left")], &[Span::plain("right")])
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "- one two three four\n  five\n\n  six\nleft           right\n"
        );
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_line_of_many_spans_is_gone_through_once() {
        use transcript_format::work;
        let line: Vec<Span> = (0..4_000).map(|_| Span::plain("word ")).collect();
        let before = work::done();
        let lines = wrap(&line, 20);
        assert_eq!(lines.len(), 1_000);
        let text = |line: &Vec<Span>| line.iter().map(Span::text).collect::<String>();
        assert!(lines.iter().all(|line| text(line) == "word word word word"));
        let done = work::done() - before;
        assert!(done <= 4 * 4_000, "{done} spans looked at");
    }

    #[cfg(debug_assertions)]
    #[test]
    fn margins_without_room_cost_nothing() {
        use transcript_format::work;
        let mut out = Vec::new();
        let mut page = Page::new(&mut out, 40);
        let before = work::done();
        for _ in 0..2_000 {
            page.push(vec![Span::plain("> ")], vec![Span::plain("> ")]);
            page.line(&[Span::plain("x")]).unwrap();
        }
        let done = work::done() - before;
        assert!(done <= 2_000 * 40, "{done} margins looked at");
        for _ in 0..2_000 {
            page.pop();
        }
        page.line(&[Span::plain("end")]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("> x\n> > x\n"), "{text}");
        assert!(text.ends_with("\nend\n"), "{text}");
    }
}
