//! The end of a value.

use std::borrow::Cow;
use std::ops::Range;

use crate::class::ALNUM;
use crate::random::{is_name_like, looks_random};
use crate::value::named::{NamedValue, ValueSyntax};
use crate::wrap::{after_prefix, continues, full_line_end};

/// The maximum length of a value that is not in quotes, in bytes, and of one that does not look random.
const MAX_BARE_LEN: usize = 4 << 10;
const MAX_PLAIN_LEN: usize = 256;

impl NamedValue<'_> {
    /// Returns the value in quotes that starts at `start`, behind the quote at `quote`: up to a quote that is escaped
    /// as that one is, or to the end of what contains both.
    pub(super) fn quoted(&self, start: usize, quote: usize) -> Option<Range<usize>> {
        let end = self.text.len();
        match self.end_of_quoted(start, quote, end) {
            Ok(at) => Some(start..at),
            Err(line) => (start < end).then_some(start..line),
        }
    }

    /// Returns the same, if it is short and has an end.
    pub(super) fn short_text(&self, start: usize, quote: usize) -> Option<Range<usize>> {
        const MAX_SHORT_LEN: usize = 2 << 10;
        let end = self.text.len().min(start + MAX_SHORT_LEN);
        let end = self.end_of_quoted(start, quote, end).ok()?;
        Some(start..end)
    }

    /// Returns where a value in quotes ends, or where its line ends if there is no second quote before `limit`.
    fn end_of_quoted(&self, start: usize, quote: usize, limit: usize) -> Result<usize, usize> {
        let mark = self.text[quote];
        let depth = self.view.depth(quote);
        let mut at = start.min(limit);
        let mut line = None;
        while let Some(next) = memchr::memchr3(mark, b'"', b'\n', &self.text[at..limit]) {
            at += next;
            let byte = self.text[at];
            let is_end = byte == mark && self.view.depth(at) <= depth;
            if is_end && mark == b'\'' && self.is_doubled(at) {
                at = (at + 2).min(limit);
                continue;
            }
            if is_end {
                return Ok(at);
            }
            // Nothing goes beyond the string that it is in.
            if self.view.is_outer_quote(at) {
                return Ok(line.unwrap_or(at));
            }
            // Without a second quote, it is the rest of the line.
            if byte == b'\n' {
                line = line.or(Some(at));
            }
            at += 1;
        }
        Err(line.unwrap_or(limit))
    }

    /// Returns whether a quote is written twice, as one in a value of SQL or YAML is.
    pub(super) fn is_doubled(&self, at: usize) -> bool {
        self.byte(at + 1) == Some(self.text[at])
            && self.byte(at + 2).is_some_and(|byte| ALNUM.has(byte))
    }

    /// Returns the value without quotes at `at`.
    pub(super) fn bare(&self, at: usize, way: ValueSyntax) -> Range<usize> {
        let limit = self.text.len().min(at + MAX_BARE_LEN);
        let before = self.before();
        let is_query = matches!(before, Some(b'?' | b'&'));
        let is_list = before == Some(b';');
        let mut end = at;
        while end < limit {
            if end == at + MAX_PLAIN_LEN && !looks_random(&self.text[at..end]) {
                break;
            }
            let byte = self.text[end];
            let next = self.byte(end + 1);
            let is_end = match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'`' | 0..=31 => true,
                b'"' | b'\'' => {
                    let ends = next.is_none_or(|next| b" \t\n\r,;:)]}>&|.\"'\\".contains(&next));
                    ends || self.view.is_outer_quote(end) || way != ValueSyntax::Shell
                }
                b'<' => way != ValueSyntax::Shell || next == Some(b'/'),
                b',' | b';' | b'|' if way == ValueSyntax::Cell => true,
                b'>' => way == ValueSyntax::Tag,
                b'&' => is_query || next == Some(b'&') || self.is_pair(end + 1),
                b';' => {
                    is_list
                        || way != ValueSyntax::Shell
                        || self.is_pair(end + 1)
                        || next.is_none_or(|next| next.is_ascii_whitespace())
                }
                b',' => {
                    next.is_none_or(|next| next.is_ascii_whitespace() || b"\"'".contains(&next))
                        || self.is_pair(end + 1)
                }
                b')' | b']' | b'}' => {
                    way != ValueSyntax::Shell
                        || next.is_none_or(|next| b" \t\n\r;,\"'`)".contains(&next))
                }
                b'|' => next == Some(b'|'),
                _ => false,
            };
            if is_end {
                break;
            }
            end += 1;
        }
        while end > at && matches!(self.text[end - 1], b',' | b';' | b':' | b'.') {
            end -= 1;
        }
        // `**value**`.
        let is_bold = self.text[..at].ends_with(b"**") && self.text[at..end].ends_with(b"**");
        end -= if is_bold { 2 } else { 0 };
        at..end
    }

    /// Returns the words of a seed phrase: twelve or more in small letters.
    pub(super) fn words(&self, at: usize) -> Option<Range<usize>> {
        const MIN_PHRASE_WORDS: usize = 12;
        const MAX_PHRASE_LEN: usize = 400;
        let rest = &self.text[at..self.text.len().min(at + MAX_PHRASE_LEN)];
        let len = rest
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase() || **byte == b' ')
            .count();
        let phrase = rest[..len].trim_ascii_end();
        (phrase.split(|byte| *byte == b' ').count() >= MIN_PHRASE_WORDS)
            .then(|| at..at + phrase.len())
    }

    /// Adds what is on the next lines of a random value that fills its line to the end.
    pub(super) fn to_next_lines(&self, range: Range<usize>, way: ValueSyntax) -> Range<usize> {
        const MIN_PIECE_LEN: usize = 10;
        let mut range = range;
        if range.len() < MIN_PIECE_LEN {
            return range;
        }
        let mut whole = self.text[range.clone()].to_vec();
        while let Some(next) = full_line_end(self.view, range.end) {
            let more = self.bare(next, way);
            let text = &self.text[more.clone()];
            let is_word = text
                .iter()
                .all(|byte| byte.is_ascii_lowercase() || !ALNUM.has(*byte))
                || is_name_like(text);
            whole.extend_from_slice(text);
            let is_word = is_word || !continues(self.text, next);
            if more.is_empty() || is_word || !looks_random(&whole) || whole.len() > MAX_BARE_LEN {
                break;
            }
            range.end = more.end;
        }
        range
    }

    /// Returns whether a name and a sign follow, as in `a=1;b=2`.
    pub(super) fn is_pair(&self, at: usize) -> bool {
        let rest = &self.text[at.min(self.text.len())..self.text.len().min(at + 40)];
        let name = rest
            .iter()
            .take_while(|byte| ALNUM.has(**byte) || b"_ -.".contains(byte))
            .count();
        name > 0 && rest.get(name) == Some(&b'=') && ALNUM.has(rest[0])
    }
}

/// Returns a value as it was before a terminal wrapped its lines.
pub(super) fn unwrapped(value: &[u8]) -> Cow<'_, [u8]> {
    const MIN_LINE_WIDTH: usize = 20;
    if !value.contains(&b'\n') {
        return Cow::Borrowed(value);
    }
    let mut whole = Vec::new();
    let mut at = 0;
    while at < value.len() {
        let end = memchr::memchr(b'\n', &value[at..]).map_or(value.len(), |feed| at + feed);
        let line = value[at..end].trim_ascii_end();
        let is_full = line.len() >= MIN_LINE_WIDTH && !line.contains(&b' ');
        whole.extend_from_slice(line);
        at = if is_full {
            after_prefix(value, (end + 1).min(value.len()))
        } else {
            end + 1
        };
        if !is_full && end < value.len() {
            whole.push(b'\n');
        }
    }
    Cow::Owned(whole)
}
