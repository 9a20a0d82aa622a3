//! Text of a transcript as part of a Markdown document. Whatever the text contains, it cannot change
//! the headings and blocks of the document around it, nor add HTML.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::escape::Escaping;

/// The maximum length of a text that is parsed, in bytes, as some Markdown takes quadratic time. Longer texts become
/// code blocks.
const MAX_PARSED_LEN: usize = 64 << 10;
/// The maximum number of passes: removing one construct can reveal another. What remains after them is shown as it
/// is.
const MAX_PASSES: usize = 8;
/// The number of levels by which the headings of a message are moved down.
const HEADING_SHIFT: usize = 2;

/// Escapes a short text within a line.
pub(crate) fn inline(escaping: Escaping, text: &str) -> String {
    let mut out = String::new();
    for c in escaping.one_line(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '#' | '&' | '|' | '~' | '$'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns inline code, with a delimiter that the text cannot close.
pub(crate) fn code(escaping: Escaping, text: &str) -> String {
    let text = escaping.one_line(text);
    let marks = "`".repeat(longest_run(&text) + 1);
    let space = if text.contains('`') { " " } else { "" };
    format!("{marks}{space}{text}{space}{marks}")
}

/// Returns a code block, with a fence that the text cannot close.
pub(crate) fn fenced(escaping: Escaping, language: &str, text: &str) -> String {
    code_block(language, &escaping.escape(text.trim_end()))
}

fn code_block(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Returns Markdown text for use in a document: HTML and link definitions are escaped, headings are
/// moved below those of the document, images become links, as a reader of the document would fetch them, and an unclosed code
/// block ends with the text.
pub(crate) fn blocks(escaping: Escaping, text: &str) -> String {
    let text = escaping.escape(text.trim_end());
    let text = text.trim_start_matches('\n');
    if text.len() > MAX_PARSED_LEN {
        return code_block("text", text);
    }
    if is_plain(text) {
        return text.to_owned();
    }
    blocks_of(text)
}

/// Returns the text of a person as [`blocks`] does, with its lines: a document would join them. Two blanks end a line as a
/// backslash does, and are not in the way when it is copied.
pub(crate) fn typed(escaping: Escaping, text: &str) -> String {
    let text = blocks(escaping, text);
    if text.len() > MAX_PARSED_LEN || !text.contains('\n') {
        return text;
    }
    let breaks = parser(&text).into_offset_iter();
    let breaks = breaks.filter(|(event, _)| matches!(event, Event::SoftBreak));
    let edits = breaks.map(|(_, range)| (range.start..range.start, "  ".to_owned()));
    edited(&text, edits.collect())
}

/// Returns whether a text has nothing that [`blocks_of`] changes, which needs one of these: a
/// bracket of HTML, a heading, a fence, the colon of a definition, an image.
fn is_plain(text: &str) -> bool {
    let underlines = |line: &str| line.trim_end().ends_with(['=', '-']);
    !text.contains(['<', '#'])
        && !["```", "~~~", "]:", "!["]
            .iter()
            .any(|mark| text.contains(mark))
        && !text.split(['\n', '\r']).any(underlines)
}

fn blocks_of(text: &str) -> String {
    let mut safe = text.to_owned();
    for _ in 0..MAX_PASSES {
        let edits = escapes(&safe);
        if edits.is_empty() {
            return finished(&safe);
        }
        safe = edited(&safe, edits);
    }
    code_block("text", text)
}

/// Puts the quote mark before each line of a text.
pub(crate) fn quoted(text: &str) -> String {
    let lines = text.lines().map(|line| {
        if line.trim().is_empty() {
            ">".to_owned()
        } else {
            format!("> {line}")
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn longest_run(text: &str) -> usize {
    if !text.contains('`') {
        return 0;
    }
    let runs = text.as_bytes().split(|byte| *byte != b'`');
    runs.map(<[u8]>::len).max().unwrap_or(0)
}

/// A replacement of a range of a text.
type TextEdit = (Range<usize>, String);

fn edited(text: &str, mut edits: Vec<TextEdit>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len() + 16 * edits.len());
    let mut at = 0;
    for (range, new) in edits {
        // Apply repeated edits once.
        if range.start < at {
            continue;
        }
        out.push_str(&text[at..range.start]);
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// All Markdown extensions that a reader may support.
fn parser(text: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    Parser::new_ext(text, options)
}

/// Escapes the brackets of HTML, the underlines of headings, and the starts of images and link definitions.
fn escapes(text: &str) -> Vec<TextEdit> {
    let parser = parser(text);
    let mut edits = Vec::new();
    let definitions = parser.reference_definitions().iter();
    for (_, definition) in definitions {
        edits.push((
            definition.span.start..definition.span.start,
            "\\".to_owned(),
        ));
    }
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => {
                let brackets = text[range.clone()].match_indices('<');
                edits.extend(brackets.map(|(at, _)| {
                    let at = range.start + at;
                    (at..at + 1, "&lt;".to_owned())
                }));
            }
            Event::Start(Tag::Heading { .. }) if !text[range.clone()].starts_with('#') => {
                let heading = text[range.clone()].trim_end();
                let line = heading.trim_end_matches(['=', '-']);
                let at = range.start + line.len();
                edits.push((at..at, "\\".to_owned()));
            }
            Event::Start(Tag::FootnoteDefinition(_) | Tag::Image { .. }) => {
                edits.push((range.start..range.start, "\\".to_owned()));
            }
            _ => {}
        }
    }
    edits
}

/// Moves headings down, and closes a code block that is open at the end.
fn finished(text: &str) -> String {
    let mut edits = Vec::new();
    let mut fence = String::new();
    for (event, range) in parser(text).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let below = HEADING_SHIFT.min(6 - level as usize);
                edits.push((range.start..range.start, "#".repeat(below)));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                let block = text[range].trim_start();
                let marks = block
                    .bytes()
                    .take_while(|mark| block.starts_with(char::from(*mark)));
                fence = block[..marks.count()].to_owned();
            }
            _ => {}
        }
    }
    let safe = edited(text, edits);
    if ends(&safe) {
        return safe;
    }
    let closed = format!("{safe}\n{fence}");
    if ends(&closed) {
        closed
    } else {
        code_block("text", text.trim_end())
    }
}

/// Returns whether a heading after the text would still be a heading.
fn ends(text: &str) -> bool {
    let document = format!("{text}\n\n# x");
    let events = parser(&document).into_offset_iter();
    let mut headings =
        events.filter(|(event, _)| matches!(event, Event::Start(Tag::Heading { .. })));
    headings.any(|(_, range)| range.start == text.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(text: &str) -> String {
        super::inline(Escaping::Visible, text)
    }

    fn code(text: &str) -> String {
        super::code(Escaping::Visible, text)
    }

    fn blocks(text: &str) -> String {
        super::blocks(Escaping::Visible, text)
    }

    #[test]
    fn nothing_within_code_closes_it() {
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(code("a ``b"), "``` a ``b ```");
        assert_eq!(
            fenced(Escaping::Visible, "text", "```\n````x\n"),
            "`````text\n```\n````x\n`````"
        );
    }

    #[test]
    fn plain_markdown_stays_as_it_is() {
        for text in [
            "Why **not**?\n\n- one\n  - `<b>`\n- [x] two\n\n| a | b |\n| - | - |\n| 1 | 2 |",
            "```rust\nlet a: Vec<u8> = v;\n# no heading\n```",
            "    <indented code>\n\n<https://a.example/> a < b",
            "[text](https://a.example/) and [another] one\n\n---",
        ] {
            assert_eq!(blocks(text), text);
        }
    }

    #[test]
    fn headings_html_and_definitions_affect_only_the_text() {
        assert_eq!(blocks("# a\n##### b"), "### a\n###### b");
        assert_eq!(blocks("a\n==="), "a\n\\===");
        assert_eq!(blocks("a <b>c</b>"), "a &lt;b>c&lt;/b>");
        assert_eq!(blocks("<!-- x\n# y"), "&lt;!-- x\n### y");
        assert_eq!(blocks("[User]: /x\n"), "\\[User]: /x");
        assert_eq!(
            blocks("see ![a](https://t.example/?k=1)"),
            "see \\![a](https://t.example/?k=1)"
        );
        assert_eq!(blocks("```\nx"), "```\nx\n```");
        assert_eq!(blocks("~~~~ x\ny\n~~~\n"), "~~~~ x\ny\n~~~\n~~~~");
        assert_eq!(inline("*a* <b> `c`"), "\\*a\\* \\<b\\> \\`c\\`");
    }

    #[test]
    fn the_lines_of_a_person_end_where_they_were_typed() {
        let typed = |text| super::typed(Escaping::Visible, text);
        assert_eq!(typed("a\nb\n\nc"), "a  \nb\n\nc");
        assert_eq!(typed("- a\n  b\n- c"), "- a  \n  b\n- c");
        for same in ["a", "```\na\nb\n```", "    a\n    b", "a\\\nb"] {
            assert_eq!(typed(same), same);
        }
        assert_eq!(quoted(&typed("a\nb\n \nc")), "> a  \n> b\n>\n> c");
    }

    /// Whatever messages contain, the document only has our own headings, and no HTML.
    #[test]
    fn no_message_changes_the_document_around_it() {
        let parts = [
            "```",
            "~~~",
            "````sh",
            "# h",
            "h\n===",
            "h\n---",
            "> q",
            "> ```",
            "- l",
            "  ```",
            "1. n",
            "<script>",
            "</script>",
            "<!--",
            "-->",
            "<div>",
            "<pre>",
            "<?x",
            "<![CDATA[",
            "&lt;b>",
            "[User]: /x",
            "[User]: /y",
            "[^1]: note",
            "![i](https://t.example/i.png)",
            "[![i](i.png)](/x)",
            "![User]",
            "    code",
            "`",
            "``",
            "\\",
            "| a |",
            "| - |",
            "text",
            "",
            "<a\nb>",
            "\t```",
            "* * *",
            "=",
            "-",
            "[a\nb]: /x",
            "- - ```",
            "> # h",
            "- # h",
            "<x-y>\n\n# h",
            "\r# h",
        ];
        let mut seed = 7_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        let mut plain = 0;
        for _ in 0..4_000 {
            let lines = (0..1 + random(7)).map(|_| parts[random(parts.len())]);
            let text = lines.collect::<Vec<_>>().join("\n");
            let trimmed = text.trim_end().trim_start_matches('\n');
            let escaped = Escaping::Visible.escape(trimmed);
            if is_plain(&escaped) {
                plain += 1;
                assert_eq!(blocks_of(&escaped), *escaped, "{text:?}");
            }
            let typed = super::typed(Escaping::Visible, &text);
            for message in [blocks(&text), quoted(&blocks(&text)), quoted(&typed)] {
                let document = format!("## User\n\n{message}\n\n## Assistant\n\n[User] end\n");
                let mut headings = Vec::new();
                for (event, range) in parser(&document).into_offset_iter() {
                    let is_image = matches!(event, Event::Start(Tag::Image { .. }));
                    assert!(!is_image, "{text:?}\n{document}");
                    assert!(
                        !matches!(event, Event::Html(_) | Event::InlineHtml(_)),
                        "{text:?}\n{document}"
                    );
                    assert!(
                        !matches!(event, Event::Start(Tag::Link { .. })) || text.contains("]("),
                        "{document}"
                    );
                    if let Event::Start(Tag::Heading { level, .. }) = event
                        && (level as usize) <= HEADING_SHIFT
                    {
                        headings.push(document[range].trim().to_owned());
                    }
                }
                assert_eq!(
                    headings,
                    ["## User", "## Assistant"],
                    "{text:?}\n{document}"
                );
            }
        }
        assert!(plain > 100, "{plain}");
    }

    #[test]
    fn text_that_is_slow_to_parse_as_markdown_is_shown_as_it_is() {
        let deep = "> ".repeat(MAX_PARSED_LEN);
        assert!(blocks(&deep).starts_with("```text\n> > "));
    }
}
