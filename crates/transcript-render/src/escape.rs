//! Makes text from a transcript safe to show on a terminal.
//!
//! Every print path for people goes through [`Escaping::escape`]: control characters could move the
//! cursor, set the clipboard or forge a link, bidirectional marks reorder the displayed text, and
//! characters without width hide text. It escapes single characters, not sequences, so a sequence
//! that is split over two entries does not evade it.

use std::borrow::Cow;
use std::fmt::Write;

use transcript_format::unicode::is_bidi;
use unicode_width::UnicodeWidthChar;

/// The distance of tab stops, in columns.
const TAB_WIDTH: usize = 4;

/// The treatment of characters that control a terminal or could deceive a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escaping {
    /// They get a visible form.
    #[default]
    Visible,
    /// They reach the output as they are.
    Raw,
}

impl Escaping {
    /// Returns `text` with a visible form of every character that controls a terminal or could
    /// deceive a reader. Newlines stay, also those of Windows, without their carriage returns; a tab becomes spaces up to its
    /// stop.
    pub fn escape(self, text: &str) -> Cow<'_, str> {
        if self == Self::Raw || is_printable_ascii(text) {
            return Cow::Borrowed(text);
        }
        let mut out = String::new();
        let (mut at, mut copied, mut column) = (0, 0, 0);
        while let Some(byte) = text.as_bytes().get(at) {
            match byte {
                b' '..=b'~' => (at, column) = (at + 1, column + 1),
                b'\n' => (at, column) = (at + 1, 0),
                // Before a newline, or at the end of a line that was split off.
                b'\r' if matches!(text.as_bytes().get(at + 1), None | Some(b'\n')) => {
                    out.push_str(&text[copied..at]);
                    (at, copied) = (at + 1, at + 1);
                }
                _ => {
                    let c = text[at..].chars().next().unwrap_or_default();
                    let (before, after) = (&text[..at], &text[at + c.len_utf8()..]);
                    at += c.len_utf8();
                    if !needs_care(c) {
                        column += c.width().unwrap_or(0);
                    } else if c == '\u{200D}'
                        && before.chars().next_back().is_some_and(is_emoji)
                        && after.chars().next().is_some_and(is_emoji)
                    {
                        column += c.len_utf8();
                    } else {
                        out.push_str(&before[copied..]);
                        copied = at;
                        let start = out.len();
                        match c {
                            '\t' => {
                                out.extend(std::iter::repeat_n(
                                    ' ',
                                    TAB_WIDTH - column % TAB_WIDTH,
                                ));
                            }
                            '\u{1b}' => out.push_str("<ESC>"),
                            c => {
                                // Writing to a string cannot fail.
                                let _ = write!(out, "<U+{:04X}>", u32::from(c));
                            }
                        }
                        column += out.len() - start;
                    }
                }
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// Removes colours (SGR) from the output of a tool or a client. Other control sequences stay,
    /// so that they are shown escaped. Text that is not escaped keeps its colours, too.
    #[must_use]
    pub fn without_colours(self, text: &str) -> Cow<'_, str> {
        const START: &str = "\u{1b}[";
        if self == Self::Raw || !text.contains(START) {
            return Cow::Borrowed(text);
        }
        let mut parts = text.split(START);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit() && !matches!(c, ';' | ':'));
            match end.and_then(|end| part[end..].strip_prefix('m')) {
                Some(rest) => out.push_str(rest),
                None => out.extend([START, part]),
            }
        }
        Cow::Owned(out)
    }

    /// [`Self::escape`] for text that must stay on one line: newlines and tabs become spaces.
    pub fn one_line(self, text: &str) -> String {
        let text = self.escape(text);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn needs_care(c: char) -> bool {
    (c.is_control() && c != '\n') || is_bidi(c) || is_invisible(c)
}

/// Characters that are invisible, or end a line without a newline. The joiner U+200D stays within an
/// emoji.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{00AD}'
            | '\u{034F}'
            | '\u{115F}'
            | '\u{1160}'
            | '\u{180E}'
            | '\u{200B}'..='\u{200D}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206A}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Returns whether `c` can be a part of an emoji of several characters.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2BFF}' | '\u{FE0F}' | '\u{1F000}'..='\u{1FAFF}')
}

/// Returns whether each byte is one character of one column, as in most texts.
pub(crate) fn is_printable_ascii(text: &str) -> bool {
    // Without an early end the comparison of many bytes is one instruction.
    let odd = |odd, byte: &u8| odd | !(b' '..=b'~').contains(byte);
    let mut blocks = text.as_bytes().chunks(256);
    blocks.all(|block| !block.iter().fold(false, odd))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escape(text: &str) -> Cow<'_, str> {
        Escaping::Visible.escape(text)
    }

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_through() {
        let hostile: String = ('\0'..='\u{3200}')
            .chain('\u{E0000}'..='\u{E0FFF}')
            .collect();
        let shown = escape(&hostile);
        let bad = |c: char| (c.is_control() && c != '\n') || is_bidi(c) || is_invisible(c);
        assert!(!shown.chars().any(bad));
        assert!(!shown.bytes().any(|byte| byte < 0x20 && byte != b'\n'));
    }

    /// One character after the other, as slow as it is simple.
    fn slowly(text: &str) -> String {
        let (mut out, mut column, mut before) = (String::new(), 0, '\0');
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            let joins =
                c == '\u{200D}' && is_emoji(before) && rest.clone().next().is_some_and(is_emoji);
            let is_line_end = c == '\r' && matches!(rest.clone().next(), None | Some('\n'));
            let shown = match c {
                _ if is_line_end => String::new(),
                '\t' => " ".repeat(TAB_WIDTH - column % TAB_WIDTH),
                '\u{1b}' => "<ESC>".to_owned(),
                c if needs_care(c) && !joins => format!("<U+{:04X}>", u32::from(c)),
                c => c.to_string(),
            };
            column = match c {
                '\n' => 0,
                _ if needs_care(c) => column + shown.len(),
                c => column + c.width().unwrap_or(0),
            };
            out.push_str(&shown);
            before = c;
        }
        out
    }

    #[test]
    fn a_text_is_escaped_as_its_characters_are() {
        let parts = [
            "plain words",
            "\t",
            "\n",
            "\r",
            "\r\n",
            "年",
            "👩",
            "\u{200D}",
            "💻",
            "\u{1b}[0m",
            "\u{202e}",
            "~",
            "\u{7f}",
            "é",
            "e\u{301}",
            " ",
        ];
        let mut seed = 7_u32;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as usize % below
        };
        for _ in 0..2_000 {
            let text: String = (0..random(9)).map(|_| parts[random(parts.len())]).collect();
            assert_eq!(escape(&text), slowly(&text), "{text:?}");
        }
    }

    #[test]
    fn control_and_direction_marks_are_shown() {
        assert_eq!(
            escape("\u{1b}[31mred\r\u{9b}\u{202e}x\n✓"),
            "<ESC>[31mred<U+000D><U+009B><U+202E>x\n✓"
        );
        assert_eq!(escape("plain"), "plain");
        assert_eq!(Escaping::Visible.one_line(" a\n\tb\u{7}"), "a b<U+0007>");
    }

    #[test]
    fn line_ends_of_windows_are_line_ends_and_other_carriage_returns_are_shown() {
        assert_eq!(escape("a\r\nb\r\n\r\n"), "a\nb\n\n");
        assert_eq!(escape("a\r"), "a");
        assert_eq!(escape("a\rb\r\r\n"), "a<U+000D>b<U+000D>\n");
        assert_eq!(Escaping::Visible.one_line("a\r\nb"), "a b");
        assert_eq!(Escaping::Raw.escape("a\r\n"), "a\r\n");
    }

    #[test]
    fn a_tab_reaches_to_its_stop_also_after_wide_characters() {
        assert_eq!(escape("a\tb\n\tc"), "a   b\n    c");
        assert_eq!(escape("年\tb"), "年  b");
        assert_eq!(escape("\u{7}\tb"), "<U+0007>    b");
    }

    #[test]
    fn the_joiner_stays_within_an_emoji_and_nowhere_else() {
        assert_eq!(escape("👩\u{200D}💻"), "👩\u{200D}💻");
        assert_eq!(escape("pass\u{200D}word"), "pass<U+200D>word");
    }

    #[test]
    fn colours_go_and_nothing_else_does() {
        let shown = |text| Escaping::Visible.without_colours(text).into_owned();
        assert_eq!(shown("\u{1b}[1mOpus\u{1b}[22m 4"), "Opus 4");
        assert_eq!(shown("a\u{1b}[38;5;9m\u{1b}[mb\u{1b}[38:2::1:2:3mc"), "abc");
        for other in [
            "\u{1b}[2J",
            "\u{1b}[1",
            "\u{1b}]0;m\u{7}",
            "\u{1b}[?1m",
            "[1m",
            "",
        ] {
            assert_eq!(shown(other), other);
        }
        // Removing a sequence does not create another one.
        assert_eq!(shown("\u{1b}\u{1b}[0m[2J"), "\u{1b}[2J");
    }

    #[test]
    fn half_a_sequence_is_as_harmless_as_a_whole_one() {
        assert_eq!(escape("\u{1b}"), "<ESC>");
        assert_eq!(escape("[31m"), "[31m");
        assert_eq!(escape("\u{FFFD}"), "\u{FFFD}");
    }
}
