//! The value that belongs to a name, in the many ways of writing one, and whether it is a secret.

use std::borrow::Cow;
use std::ops::Range;

use crate::class::{ALNUM, Class};
use crate::names::{Meaning, Trust};
use crate::random::{is_cased, is_name_like, is_uuid, looks_random, turns, variety};
use crate::view::View;
use crate::wrap::{after_prefix, continues, full_line_end, line_start};

/// The longest value that is not in quotes, in bytes, and the longest that does not look random.
const MAX_BARE: usize = 4 << 10;
const MAX_PLAIN: usize = 256;
/// What is looked at of a value to see whether it is a secret, in bytes.
const MAX_CLASSIFIED: usize = 4 << 10;

/// How a value stands behind its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
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

/// Returns the secret that belongs to a name with this meaning.
pub(crate) fn value_of(view: &View, name: &Range<usize>, meaning: Meaning) -> Option<Value> {
    let mut found = Finder {
        view,
        text: view.text(),
        name: name.clone(),
    };
    let (at, way) = found.start()?;
    found.classify(at, way, meaning)
}

struct Finder<'v> {
    view: &'v View,
    text: &'v [u8],
    name: Range<usize>,
}

impl Finder<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn skip(&self, at: usize, skipped: Class) -> usize {
        let rest = self.text[at.min(self.text.len())..].iter().take(64);
        at + rest.take_while(|byte| skipped.has(**byte)).count()
    }

    fn starts(&self, at: usize, with: &str) -> bool {
        let rest = self.text.get(at..at + with.len());
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(with.as_bytes()))
    }

    /// Returns where the value starts, and how it stands there.
    fn start(&mut self) -> Option<(usize, Way)> {
        const BLANK: Class = Class::of(" \t");
        let before = self.name.start.checked_sub(1).and_then(|at| self.byte(at));
        let mut at = self.name.end;
        let quote = self
            .byte(at)
            .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
        let is_quoted = quote.is_some() && before == quote;
        if is_quoted {
            at += 1;
            if self.byte(at) == Some(b']') {
                at += 1;
            }
        } else if quote.is_some() {
            // The quote ends a text that ends with the name.
            return self.attribute(at);
        }
        if self.byte(at) == Some(b'?') {
            at += 1;
        }
        // Bold, and then the colon: `**password**: value`, `**password:** value`.
        let bold = self.skip(at, Class::of("*_"));
        if bold > at + 1 && self.byte(bold) == Some(b':') {
            at = bold;
        }
        let after = self.skip(at, BLANK);
        let is_flag = self.is_flag();
        match self.byte(after)? {
            b'=' => {
                let end = self.skip(after, Class::of("=>~"));
                let value = self.skip(end, BLANK);
                let is_tight = after == at && value == end;
                let name = &self.text[self.name.clone()];
                let is_constant = !name.iter().any(u8::is_ascii_lowercase);
                let way = match is_tight {
                    true if is_constant && !is_quoted => Way::Shell,
                    true if is_flag => Way::Word,
                    _ => Way::Equals,
                };
                Some((value, way))
            }
            b':' => {
                if self.byte(after + 1) == Some(b'=') {
                    return Some((self.skip(after + 2, BLANK), Way::Equals));
                }
                if self.byte(after + 1) == Some(b':') {
                    return None;
                }
                let value = self.skip(after + 1, Class::of(" \t*"));
                Some((value, Way::Colon))
            }
            b'|' if self.byte(after + 1) == Some(b'|') => {
                Some((self.skip(after + 2, Class::of("= \t")), Way::Equals))
            }
            b',' if is_quoted => {
                let open = self.name.start.checked_sub(2).and_then(|at| self.byte(at));
                let value = self.skip(after + 1, Class::of(" \t\n"));
                let is_call = open == Some(b'(') && matches!(self.byte(value), Some(b'"' | b'\''));
                self.attribute(at - 1)
                    .or_else(|| is_call.then_some((value, Way::Call)))
            }
            b'(' => {
                let value = self.skip(after + 1, BLANK);
                matches!(self.byte(value), Some(b'"' | b'\'')).then_some((value, Way::Call))
            }
            b'>' if before == Some(b'<') || self.is_in_tag() => {
                Some((self.skip(after + 1, Class::of(" \t\n")), Way::Tag))
            }
            b'|' => Some((self.skip(after + 1, BLANK), Way::Column)),
            b'\n' if !is_quoted => self.attribute(at),
            _ if is_quoted => self.attribute(at - 1),
            _ if after == at => None,
            // `password 'value'` of SQL.
            b'\'' if self.name.len() < 12 => Some((after, Way::Word)),
            _ if is_flag => Some((after, Way::Word)),
            _ if self.is_setting() => Some((self.behind_option(after), Way::Word)),
            _ if self.starts(after, "is ")
                || self.starts(after, "to ")
                || self.starts(after, "was ") =>
            {
                let value = after + 2 + usize::from(self.starts(after, "was "));
                let value = self.skip(value, BLANK);
                let value = match self.starts(value, "now ") {
                    true => value + 4,
                    false => value,
                };
                Some((self.skip(value, Class::of(": ")), Way::Sentence))
            }
            // A column of a table, or a setting without a sign.
            _ if self.is_at_line_start() => Some((after, Way::Column)),
            _ => None,
        }
    }

    /// Returns whether the name is an option: with two hyphens, or a long one with one hyphen.
    fn is_flag(&self) -> bool {
        let before = &self.text[..self.name.start];
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'');
        let is_long = self.name.len() >= 5;
        let is_single = before
            .strip_suffix(b"-")
            .is_some_and(|rest| rest.last().is_some_and(is_blank));
        before.ends_with(b"--") || is_long && is_single
    }

    /// Returns whether the name is the first word of its line, behind what a tool prints there.
    fn is_at_line_start(&self) -> bool {
        after_prefix(self.text, line_start(self.text, self.name.start)) == self.name.start
    }

    /// Returns where the value of an option starts that is at `at`, as in `secret set NAME --body value`.
    fn behind_option(&self, at: usize) -> usize {
        const OPTION: Class = ALNUM.or(Class::of("-"));
        let end = self.skip(at, OPTION);
        let value = self.skip(end, Class::of(" ="));
        match self.starts(at, "-") && value > end {
            true => value,
            false => at,
        }
    }

    /// Returns the value of an attribute or key `value` behind a name that is itself the value of another one:
    /// `key="name" value="…"`, `"name": "NAME", "value": "…"`.
    fn attribute(&self, at: usize) -> Option<(usize, Way)> {
        const BETWEEN: Class = Class::of("\"' \t\r,-+");
        let mut between = self.skip(at, BETWEEN);
        if self.byte(between) == Some(b'\n') {
            between = after_prefix(self.text, between + 1);
        }
        let word = match between > at && self.starts(between, "value") {
            true => between + 5,
            false => return None,
        };
        let sign = self.skip(word, Class::of("\"' \t"));
        matches!(self.byte(sign)?, b'=' | b':')
            .then(|| (self.skip(sign + 1, Class::of(" \t")), Way::Colon))
    }

    /// Returns whether the name is in a tag of XML, at its end.
    fn is_in_tag(&self) -> bool {
        let before = &self.text[self.name.start.saturating_sub(64)..self.name.start];
        let open = before.iter().rposition(|byte| *byte == b'<');
        open.is_some_and(|open| {
            !before[open..].contains(&b'>') && before.get(open + 1) != Some(&b'/')
        })
    }

    /// Returns whether the words before the name say that it is being set.
    fn is_setting(&self) -> bool {
        let start = line_start(self.text, self.name.start);
        let start = start.max(self.name.start.saturating_sub(200));
        let before = &self.text[start..self.name.start];
        let before = String::from_utf8_lossy(before).to_ascii_lowercase();
        let marks = [' ', '\t', '\u{2192}', ':', '"', '\'', '+', '-', '>'];
        let word = before.trim_end().rsplit(marks).next().unwrap_or_default();
        let is_set = matches!(
            word,
            "set"
                | "env"
                | "setx"
                | "config"
                | "export"
                | "setenv"
                | "#define"
                | "define"
                | "x"
                | "gx"
        ) || before.contains(" config set ");
        let around = &self.text[self.name.start.saturating_sub(200)..self.name.start];
        let around = String::from_utf8_lossy(around);
        let before = match around.contains("machine ") && around.contains("login ") {
            true => "machine ",
            false => &before,
        };
        let is_machine = before.contains("login ")
            || before.contains("machine ")
            || before.contains("requirepass")
            || before.contains("masterauth");
        is_set || is_machine
    }

    /// Returns the value at `at` if it is a secret.
    fn classify(&self, at: usize, way: Way, meaning: Meaning) -> Option<Value> {
        let mut at = at;
        let mut way = way;
        let mut first = self.byte(at)?;
        // `password: string = "…"`.
        if way == Way::Colon && first.is_ascii_alphabetic() || first == b'&' {
            let end = self.skip(
                at,
                Class::of(
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_<>&.[]|'",
                ),
            );
            let sign = self.skip(end, Class::of(" \t"));
            let value = self.skip(sign + 1, Class::of(" \t"));
            if sign > end
                && self.byte(sign) == Some(b'=')
                && matches!(self.byte(value), Some(b'"' | b'\''))
            {
                (at, way, first) = (value, Way::Equals, self.byte(value)?);
            }
        }
        // `b"…"`, `@"…"`, `$'…'`.
        if matches!(first, b'b' | b'r' | b'f' | b'@' | b'$' | b'u')
            && matches!(self.byte(at + 1), Some(b'"' | b'\''))
        {
            (at, first) = (at + 1, self.byte(at + 1)?);
        }
        // A block, or a value on the next line.
        if way == Way::Colon && matches!(first, b'\n' | b'|' | b'>') {
            let sign = self.skip(at, Class::of("|>-+"));
            if self.byte(sign) != Some(b'\n') {
                return None;
            }
            let next = after_prefix(self.text, sign + 1);
            let value = self.bare(next, Way::Colon);
            let is_block = sign > at;
            let is_line =
                value.end >= self.text.len() || matches!(self.byte(value.end), Some(b'\n' | b'\r'));
            let text = &self.text[value.clone()];
            let is_secret = is_line
                && (looks_random(text)
                    || is_block && is_mixed(text) && text.len() >= 6 && !stands_for_one(text));
            return is_secret.then_some(Value {
                range: value,
                is_bare_json: false,
                is_sure: true,
            });
        }
        if way != Way::Tag && matches!(first, b'"' | b'\'' | b'`') {
            // Three quotes, as in Python and TOML.
            let count = self.text[at..]
                .iter()
                .take(3)
                .take_while(|byte| **byte == first)
                .count();
            let start = at + if count == 3 { 3 } else { 1 };
            let range = self.quoted(start, at)?;
            let part = range.start..range.end.min(range.start + MAX_CLASSIFIED);
            let value = unwrapped(&self.text[part]);
            let is_sure = self.is_quoted_secret(&value, way, meaning)?;
            return Some(Value {
                range,
                is_bare_json: false,
                is_sure,
            });
        }
        if meaning.kind == "seed phrase" {
            let words = self.words(at);
            return words.map(|range| Value {
                range,
                is_bare_json: false,
                is_sure: true,
            });
        }
        let range = self.to_next_lines(self.bare(at, way), way);
        // Nothing else is in the column, and on the line.
        let next = self.byte(range.end);
        let is_column = matches!(next, None | Some(b'\n' | b'\r' | b'"' | b'|'))
            || self.starts(range.end, " |")
            || self.starts(range.end, "  ");
        if way == Way::Column && !is_column {
            return None;
        }
        if way == Way::Tag && !self.text[range.end..].starts_with(b"</") {
            return None;
        }
        let is_sure = self.is_bare_secret(&range, way, meaning)?;
        let name_quote = self.name.end;
        let is_bare_json = way == Way::Colon && self.view.is_outer_quote(name_quote);
        Some(Value {
            range,
            is_bare_json,
            is_sure,
        })
    }

    /// Returns the value in quotes that starts at `start`, behind the quote at `quote`: up to a quote that is escaped
    /// as that one is, or to the end of what contains both.
    fn quoted(&self, start: usize, quote: usize) -> Option<Range<usize>> {
        let mark = self.text[quote];
        let depth = self.view.depth(quote);
        let end = self.text.len();
        let mut at = start;
        let mut line = None;
        while at < end {
            let byte = self.text[at];
            let is_end = byte == mark && self.view.depth(at) <= depth;
            if is_end && mark == b'\'' && self.is_doubled(at) {
                at += 2;
                continue;
            }
            if is_end {
                return Some(start..at);
            }
            // Nothing goes beyond the string that it is in.
            if self.view.is_outer_quote(at) {
                return Some(start..line.unwrap_or(at));
            }
            // Without a second quote, it is the rest of the line.
            if byte == b'\n' {
                line = line.or(Some(at));
            }
            at += 1;
        }
        (start < end).then(|| start..line.unwrap_or(at))
    }

    /// Returns whether a quote is written twice, as one in a value of SQL or YAML is.
    fn is_doubled(&self, at: usize) -> bool {
        self.byte(at + 1) == Some(self.text[at])
            && self.byte(at + 2).is_some_and(|byte| ALNUM.has(byte))
    }

    /// Returns the value without quotes at `at`.
    fn bare(&self, at: usize, way: Way) -> Range<usize> {
        let limit = self.text.len().min(at + MAX_BARE);
        let before = self.name.start.checked_sub(1).and_then(|at| self.byte(at));
        let is_query = matches!(before, Some(b'?' | b'&'));
        let is_list = before == Some(b';');
        let mut end = at;
        while end < limit {
            if end == at + MAX_PLAIN && !looks_random(&self.text[at..end]) {
                break;
            }
            let byte = self.text[end];
            let next = self.byte(end + 1);
            let is_end = match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'`' | 0..=31 => true,
                b'"' | b'\'' => {
                    let ends = next.is_none_or(|next| b" \t\n\r,;:)]}>&|.\"'\\".contains(&next));
                    ends || self.view.is_outer_quote(end) || way != Way::Shell
                }
                b'<' => way != Way::Shell || next == Some(b'/'),
                b'>' => way == Way::Tag,
                b'&' => is_query || next == Some(b'&') || self.is_pair(end + 1),
                b';' => {
                    is_list
                        || way != Way::Shell
                        || self.is_pair(end + 1)
                        || next.is_none_or(|next| next.is_ascii_whitespace())
                }
                b',' => {
                    next.is_none_or(|next| next.is_ascii_whitespace() || b"\"'".contains(&next))
                        || self.is_pair(end + 1)
                }
                b')' | b']' | b'}' => {
                    way != Way::Shell || next.is_none_or(|next| b" \t\n\r;,\"'`)".contains(&next))
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
        at..end
    }

    /// Returns the words of a seed phrase: twelve or more in small letters.
    fn words(&self, at: usize) -> Option<Range<usize>> {
        const MIN_WORDS: usize = 12;
        const MAX_PHRASE: usize = 400;
        let rest = &self.text[at..self.text.len().min(at + MAX_PHRASE)];
        let len = rest
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase() || **byte == b' ')
            .count();
        let phrase = rest[..len].trim_ascii_end();
        (phrase.split(|byte| *byte == b' ').count() >= MIN_WORDS).then(|| at..at + phrase.len())
    }

    /// Adds what is on the next lines of a random value that fills its line to the end.
    fn to_next_lines(&self, range: Range<usize>, way: Way) -> Range<usize> {
        let mut range = range;
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
            if more.is_empty() || is_word || !looks_random(&whole) || whole.len() > MAX_BARE {
                break;
            }
            range.end = more.end;
        }
        range
    }

    /// Returns whether a name and a sign follow, as in `a=1;b=2`.
    fn is_pair(&self, at: usize) -> bool {
        let rest = &self.text[at.min(self.text.len())..self.text.len().min(at + 40)];
        let name = rest
            .iter()
            .take_while(|byte| ALNUM.has(**byte) || b"_ -.".contains(byte))
            .count();
        name > 0 && rest.get(name) == Some(&b'=') && ALNUM.has(rest[0])
    }

    /// Returns whether a value in quotes is a secret: surely, or perhaps.
    fn is_quoted_secret(&self, value: &[u8], way: Way, meaning: Meaning) -> Option<bool> {
        if meaning.trust == Trust::Always {
            return (!value.is_empty() && !is_reference(value)).then_some(true);
        }
        if value.is_empty() || stands_for_one(value) || is_reference(value) {
            return None;
        }
        if self.is_random(value, meaning) {
            return Some(true);
        }
        let is_pass = meaning.kind == "password" && meaning.trust == Trust::NameAndForm;
        if meaning.trust == Trust::Form || is_pass && way == Way::Call {
            return None;
        }
        let is_constant = !self.text[self.name.clone()]
            .iter()
            .any(u8::is_ascii_lowercase);
        let is_password = meaning.kind == "password";
        if value.iter().all(u8::is_ascii_digit) {
            return (is_password && value.len() >= 4).then_some(true);
        }
        let has_blank = value.iter().any(u8::is_ascii_whitespace);
        if has_blank {
            let is_shell = way == Way::Shell || is_constant;
            let is_label = is_label(value) && !is_shell;
            let max = if is_shell { MAX_CLASSIFIED } else { 200 };
            return (meaning.trust == Trust::Name && !is_label && value.len() <= max)
                .then_some(true);
        }
        if is_mixed(value) {
            let min = match meaning.trust {
                Trust::Name if is_password => 4,
                Trust::Name => 6,
                _ => 8,
            };
            let is_name = meaning.trust != Trust::Name && is_name_like(value);
            return (value.len() >= min && !is_name).then_some(true);
        }
        // Letters alone. A word may be one that names something.
        let is_title = value[0].is_ascii_uppercase()
            && value[1..]
                .iter()
                .all(|byte| byte.is_ascii_lowercase() || !byte.is_ascii());
        let is_word = value.iter().all(|byte| byte.is_ascii_alphabetic());
        match way {
            Way::Shell if meaning.trust == Trust::Name => (value.len() >= 4).then_some(true),
            Way::Shell => (value.len() >= 12).then_some(true),
            _ if is_constant && meaning.trust == Trust::Name => {
                (value.len() >= 4 && is_word).then_some(true)
            }
            _ if is_cased(value) => Some(true),
            // Some words with hyphens, or one that may be a label.
            _ if is_password && meaning.trust == Trust::Name && !is_word && value.len() >= 12 => {
                let is_phrase = |byte: &u8| byte.is_ascii_lowercase() || b"-_".contains(byte);
                Some(value.iter().all(is_phrase))
            }
            _ if is_password
                && meaning.trust == Trust::Name
                && is_title
                && is_word
                && value.len() >= 8 =>
            {
                Some(false)
            }
            _ if is_title
                || !is_word
                || is_camel(value)
                || !value.iter().any(u8::is_ascii_lowercase) =>
            {
                None
            }
            _ if is_password => Some(value.len() >= 8),
            _ => (value.len() >= 8).then_some(value.len() >= 12),
        }
    }

    /// Returns whether a value looks random. A UUID does under a name that says what it is.
    fn is_random(&self, value: &[u8], meaning: Meaning) -> bool {
        let is_id = meaning.kind == "client id";
        let is_number = is_id && value.len() >= 16 && value.iter().all(u8::is_ascii_digit);
        // `key: cache-linux-0af3…`: a key of something that is stored.
        let words = value
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        let name = &self.text[self.name.clone()];
        if name.eq_ignore_ascii_case(b"key") && words >= 2 && value.get(words) == Some(&b'-') {
            return false;
        }
        let is_other_id =
            is_uuid(value) && meaning.trust == Trust::Form && !self.is_key() && !is_id;
        is_number || looks_random(value) && !is_other_id
    }

    /// Returns whether the name ends with the word `key`.
    fn is_key(&self) -> bool {
        let name = &self.text[self.name.clone()];
        let end = name.len().checked_sub(3).map(|at| &name[at..]);
        end.is_some_and(|end| end.eq_ignore_ascii_case(b"key"))
    }

    /// Returns whether a value without quotes is a secret: surely, or perhaps.
    fn is_bare_secret(&self, range: &Range<usize>, way: Way, meaning: Meaning) -> Option<bool> {
        let value = &*unwrapped(&self.text[range.clone()]);
        if meaning.trust == Trust::Always {
            return (!value.is_empty() && !is_reference(value)).then_some(true);
        }
        if value.is_empty() || stands_for_one(value) || is_reference(value) {
            return None;
        }
        let next = self.byte(range.end);
        let is_call = matches!(next, Some(b'(' | b'['))
            && value
                .iter()
                .all(|byte| ALNUM.has(*byte) || b"_.:".contains(byte));
        // `kSecret = XXH3_kSecret`: a name for another one.
        let lower = value.to_ascii_lowercase();
        let is_alias = is_identifier(value)
            && ["secret", "password", "token"]
                .iter()
                .any(|word| memchr::memmem::find(&lower, word.as_bytes()).is_some());
        if is_call || way != Way::Shell && (is_alias || is_code(value)) {
            return None;
        }
        let is_password = meaning.kind == "password";
        // Results of tests, and names of folders.
        if meaning.trust == Trust::NameAndForm
            && is_password
            && !matches!(way, Way::Equals | Way::Shell)
        {
            return None;
        }
        if self.is_random(value, meaning) {
            return Some(true);
        }
        if meaning.trust == Trust::Form || value.len() < 3 {
            return None;
        }
        let is_constant = !self.text[self.name.clone()]
            .iter()
            .any(u8::is_ascii_lowercase);
        if value
            .iter()
            .all(|byte| byte.is_ascii_digit() || b".,-+%".contains(byte))
        {
            let is_whole = value.iter().all(u8::is_ascii_digit) && value.len() >= 4;
            let is_line =
                self.is_at_line_start() && next.is_none_or(|next| b"\n\r".contains(&next));
            let is_setting =
                matches!(way, Way::Shell | Way::Colon | Way::Tag | Way::Word) || is_line;
            let is_name = is_password && meaning.trust == Trust::Name && is_setting;
            return (is_name && is_whole && next != Some(b',')).then_some(true);
        }
        if way == Way::Shell {
            let is_word = value.iter().all(u8::is_ascii_alphabetic);
            let min = if is_word && meaning.trust != Trust::Name {
                12
            } else {
                4
            };
            return (value.len() >= min || is_password).then_some(true);
        }
        let is_mixed = is_mixed(value) && !is_type(value);
        let before = self.name.start.checked_sub(1).and_then(|at| self.byte(at));
        let is_start = self.is_at_line_start();
        let is_listed = matches!(before, Some(b';' | b'?' | b'&'));
        let is_setting = way == Way::Equals && (is_listed || is_start);
        let ends_line = next.is_none_or(|next| b"\n\r\"'<".contains(&next));
        let min = if is_password { 4 } else { 8 };
        let is_word = value.iter().all(u8::is_ascii_alphabetic);
        match way {
            Way::Sentence if !value.iter().any(u8::is_ascii_digit) => None,
            Way::Column if !is_mixed || value.len() < 6 => None,
            Way::Sentence if is_password && is_mixed => (value.len() >= 6).then_some(true),
            _ if is_mixed => (value.len() >= min && !is_name_like(value)).then_some(true),
            _ if is_cased(value) => Some(true),
            Way::Tag if is_password => (value.len() >= 4 && !is_label(value)).then_some(true),
            Way::Colon if is_constant && ends_line && is_word && meaning.trust == Trust::Name => {
                // Not the name of a type, in capital letters.
                let has_lower = value.iter().any(u8::is_ascii_lowercase);
                (value.len() >= 6 && has_lower).then_some(true)
            }
            Way::Colon
                if is_password
                    && meaning.trust == Trust::Name
                    && is_start
                    && ends_line
                    && is_word
                    && !is_known_word(value) =>
            {
                (value.len() >= 8 && !is_camel(value) && value.iter().any(u8::is_ascii_lowercase))
                    .then_some(value[0].is_ascii_lowercase())
            }
            Way::Equals
                if is_setting
                    && is_word
                    && (is_listed || !is_camel(value))
                    && (ends_line || next == Some(b';') || next == Some(b'&')) =>
            {
                (meaning.trust == Trust::Name && value.len() >= 8).then_some(true)
            }
            Way::Sentence | Way::Tag | Way::Call => None,
            _ => (is_word && value.len() >= 12 && !is_camel(value)).then_some(false),
        }
    }
}

/// Returns a value as it was before a terminal wrapped its lines.
fn unwrapped(value: &[u8]) -> Cow<'_, [u8]> {
    const MIN_WIDTH: usize = 20;
    if !value.contains(&b'\n') {
        return Cow::Borrowed(value);
    }
    let mut whole = Vec::new();
    let mut at = 0;
    while at < value.len() {
        let end = memchr::memchr(b'\n', &value[at..]).map_or(value.len(), |feed| at + feed);
        let line = value[at..end].trim_ascii_end();
        let is_full = line.len() >= MIN_WIDTH && !line.contains(&b' ');
        whole.extend_from_slice(line);
        at = match is_full {
            true => after_prefix(value, (end + 1).min(value.len())),
            false => end + 1,
        };
        if !is_full && end < value.len() {
            whole.push(b'\n');
        }
    }
    Cow::Owned(whole)
}

/// Returns whether a text has letters and digits, or letters and signs that no name has.
fn is_mixed(value: &[u8]) -> bool {
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    let has_letters = has(u8::is_ascii_alphabetic);
    has_letters && (has(u8::is_ascii_digit) || has(|byte| b"!#^*@+=~&?$%".contains(byte)))
}

fn is_camel(value: &[u8]) -> bool {
    value
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// Returns whether a text is one that people read: a sentence, or a label of a field.
fn is_label(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_plain = |word: &&str| {
        let word = word.trim_matches(|character: char| !character.is_alphanumeric());
        word.chars().all(char::is_alphabetic)
    };
    let has_capital = text.chars().next().is_some_and(char::is_uppercase);
    const LABELS: [&str; 34] = [
        "password",
        "passwords",
        "token",
        "secret",
        "key",
        "enter",
        "your",
        "required",
        "invalid",
        "must",
        "is",
        "the",
        "please",
        "of",
        "for",
        "to",
        "not",
        "new",
        "confirm",
        "forgot",
        "reset",
        "show",
        "hide",
        "a",
        "an",
        "or",
        "and",
        "in",
        "with",
        "be",
        "api",
        "field",
        "used",
        "user",
    ];
    let has_label = words
        .iter()
        .any(|word| LABELS.contains(&&*word.to_lowercase()));
    words.iter().all(is_plain) && has_capital || has_label
}

/// Returns whether a value stands for a secret that is elsewhere: a variable, a template, a place.
fn is_reference(value: &[u8]) -> bool {
    const STARTS: [&str; 44] = [
        "${",
        "$(",
        "{{",
        "<%",
        "#{",
        "@{",
        "%(",
        "%{",
        "$[",
        "$$",
        "{%",
        "((",
        "<",
        "process.env",
        "os.environ",
        "os.getenv",
        "env.",
        "env(",
        "env[",
        "import.meta",
        "secrets.",
        "vault:",
        "op://",
        "bw:",
        "pass:",
        "!ref",
        "!sub",
        "!getatt",
        "!vault",
        "arn:",
        "projects/",
        "file:",
        "./",
        "../",
        "~/",
        "http://",
        "https://",
        "ref+",
        "sha256:",
        "[redacted",
        "data:",
        "urn:",
        "git@",
        "encrypted:",
    ];
    let lower = value[..value.len().min(16)].to_ascii_lowercase();
    let is_number = value.len() <= 18
        && lower.starts_with(b"0x")
        && value[2..].iter().all(u8::is_ascii_hexdigit);
    if is_number {
        return true;
    }
    if STARTS
        .iter()
        .any(|start| lower.starts_with(start.as_bytes()))
    {
        return true;
    }
    let encloses = |open: u8, close: u8| {
        value.first() == Some(&open) && value.last() == Some(&close) && value.len() > 1
    };
    if encloses(b'<', b'>')
        || encloses(b'{', b'}')
        || encloses(b'[', b']') && value.len() < 40
        || encloses(b'(', b')')
        || encloses(b'%', b'%')
    {
        return true;
    }
    // A variable: one case, no random letters.
    if let Some(name) = value.strip_prefix(b"$") {
        let end = name
            .iter()
            .take_while(|byte| ALNUM.has(**byte) || **byte == b'_')
            .count();
        let name = &name[..end];
        let is_one_case = !name.iter().any(u8::is_ascii_lowercase)
            || !name.iter().any(u8::is_ascii_uppercase)
            || !name.iter().any(u8::is_ascii_digit);
        return !name.is_empty() && is_one_case && !looks_random(name);
    }
    let has = |part: &str| memchr::memmem::find(value, part.as_bytes()).is_some();
    let is_path = value[0] == b'/' && !looks_random(value) && value[1..].contains(&b'/');
    has("${")
        || has("{{")
        || has("$(")
        || is_path
        || value.len() < 24 && (has("%s") || has("%d") || has("%v"))
        || value[0] == b':' && value[1..].iter().all(u8::is_ascii_lowercase)
}

/// Returns whether a text is part of a program: access to a member, a call, a path of names.
fn is_code(value: &[u8]) -> bool {
    const CODE: Class = Class::of(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$.?!:>-()[]{}\"'*&,<|/",
    );
    let inner = value
        .trim_ascii_start()
        .strip_prefix(b"*")
        .or(value.strip_prefix(b"&"))
        .or(value.strip_prefix(b"!"));
    // No name is like this.
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    let is_tangled =
        turns(value) >= 2 && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let has_path = memchr::memmem::find(value, b"::").is_some();
    if is_tangled && !has_path && !value.iter().any(|byte| b"([".contains(byte)) {
        return false;
    }
    // A pointer, a reference, a macro, a path.
    let is_pointer = inner.is_some_and(|inner| {
        inner.is_empty()
            || inner == b"mut"
            || inner == b"const"
            || is_identifier(inner) && !looks_random(inner)
    });
    let value = inner.unwrap_or(value);
    let is_constant =
        is_identifier(value) && value.contains(&b'_') && !value.iter().any(u8::is_ascii_lowercase);
    let is_macro = value
        .iter()
        .position(|byte| *byte == b'!')
        .is_some_and(|at| {
            at > 0
                && is_identifier(&value[..at])
                && matches!(value.get(at + 1), Some(b'(' | b'[' | b'{'))
        });
    // A call, or an element of a list.
    let name = value
        .iter()
        .take_while(|byte| ALNUM.has(**byte) || b"_.:".contains(byte))
        .count();
    let is_call =
        name > 0 && matches!(value.get(name), Some(b'(' | b'[')) && !looks_random(&value[..name]);
    if is_call || is_pointer || has_path || is_macro || is_constant || value.starts_with(b"__") {
        return true;
    }
    if !value.iter().all(|byte| CODE.has(*byte)) {
        return false;
    }
    let is_start = value[0].is_ascii_alphabetic() || b"_$&*(!:[{".contains(&value[0]);
    let has = |part: &str| memchr::memmem::find(value, part.as_bytes()).is_some();
    let has_sign = has("(")
        || has("[")
        || has("{")
        || has("::")
        || has("->")
        || has("?.")
        || has("<")
        || is_start && has(".") && is_name_like(value);
    let is_member = has(".") && value.split(|byte| *byte == b'.').all(is_identifier);
    is_start && (has_sign && !looks_random(value) || is_member && !looks_random(value))
        || is_identifier(value) && value.contains(&b'_') && is_name_like(value)
}

fn is_identifier(text: &[u8]) -> bool {
    text.first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && text.iter().all(|byte| ALNUM.has(*byte) || *byte == b'_')
}

/// Returns whether a word is one that stands where a value may stand, in a program or its documentation.
fn is_known_word(value: &[u8]) -> bool {
    const KNOWN: [&str; 14] = [
        "password",
        "required",
        "optional",
        "undefined",
        "boolean",
        "generated",
        "encrypted",
        "sensitive",
        "redacted",
        "disabled",
        "unchanged",
        "prompted",
        "computed",
        "protected",
    ];
    KNOWN
        .iter()
        .any(|known| known.as_bytes() == value.to_ascii_lowercase())
        || is_type(value)
}

/// Returns whether a word names a type.
fn is_type(value: &[u8]) -> bool {
    const TYPES: [&str; 24] = [
        "pulong64",
        "ulong64",
        "uint128",
        "u128",
        "u8",
        "u16",
        "u32",
        "u64",
        "i8",
        "i16",
        "i32",
        "i64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "base64",
        "utf8",
        "float64",
        "uint8array",
    ];
    const ALGORITHMS: [&str; 9] = [
        "sha1", "sha256", "sha512", "md5", "hs256", "rs256", "es256", "bcrypt", "aes256",
    ];
    let lower = value.to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|name| name.as_bytes() == lower);
    is(&TYPES) || is(&ALGORITHMS)
}

/// Returns whether a value stands for a secret in an example, or for none.
pub(crate) fn stands_for_one(value: &[u8]) -> bool {
    // Words of which examples are made.
    const WORDS: [&str; 99] = [
        "your",
        "my",
        "the",
        "a",
        "an",
        "api",
        "key",
        "apikey",
        "token",
        "secret",
        "password",
        "passwd",
        "pass",
        "pwd",
        "here",
        "goes",
        "insert",
        "enter",
        "change",
        "me",
        "changeme",
        "changeit",
        "replace",
        "with",
        "this",
        "in",
        "production",
        "example",
        "placeholder",
        "dummy",
        "sample",
        "test",
        "testing",
        "foo",
        "bar",
        "baz",
        "todo",
        "tbd",
        "null",
        "none",
        "nil",
        "undefined",
        "true",
        "false",
        "string",
        "str",
        "text",
        "value",
        "redacted",
        "hidden",
        "masked",
        "removed",
        "omitted",
        "user",
        "username",
        "abc",
        "empty",
        "unset",
        "required",
        "optional",
        "new",
        "old",
        "some",
        "fake",
        "mock",
        "default",
        "env",
        "var",
        "variable",
        "of",
        "is",
        "not",
        "set",
        "access",
        "client",
        "auth",
        "bearer",
        "basic",
        "private",
        "public",
        "admin",
        "root",
        "postgres",
        "mysql",
        "guest",
        "demo",
        "db",
        "to",
        "xxx",
        "local",
        "dev",
        "development",
        "invalid",
        "no",
        "yes",
        "any",
        "super",
        "top",
        "credential",
    ];
    let is_row = variety(value) <= 2 && value.len() != 2;
    let is_cut = value.ends_with(b"...") || value.ends_with("\u{2026}".as_bytes());
    let has_stars = memchr::memmem::find(value, b"***").is_some()
        || memchr::memmem::find(value, b"xxxx").is_some()
        || memchr::memmem::find(value, b"XXXX").is_some();
    if is_row
        || is_cut && value.len() < 24
        || has_stars
        || value.ends_with(b"EXAMPLE")
        || value.ends_with(b"EXAMPLEKEY")
    {
        return true;
    }
    // Words with signs of names between them, one of which says what should be here.
    let parts = || {
        value
            .split(|byte| b"_-./".contains(byte))
            .filter(|part| !part.is_empty())
    };
    let is_word = |part: &[u8]| part.iter().all(u8::is_ascii_alphabetic);
    let is_known = |part: &[u8]| {
        part.len() > 1
            && WORDS
                .iter()
                .any(|known| part.eq_ignore_ascii_case(known.as_bytes()))
    };
    if parts().count() > 1 && parts().all(is_word) && parts().any(is_known) {
        return true;
    }
    let mut known = 0;
    let mut rest = value;
    while let Some(at) = rest.iter().position(u8::is_ascii_alphabetic) {
        let word = &rest[at..];
        let first_upper = word
            .iter()
            .take_while(|byte| byte.is_ascii_uppercase())
            .count();
        let lower = word[first_upper..]
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        let len = match (first_upper, lower) {
            (upper, 0) => upper,
            (0 | 1, lower) => first_upper + lower,
            // `APIKey`.
            (upper, _) => upper - 1,
        };
        if !is_made_of(&word[..len].to_ascii_lowercase(), &WORDS) {
            return false;
        }
        known += 1;
        rest = &rest[at + len..];
    }
    // Numbers make a password of the name of a user.
    const USERS: [&str; 7] = [
        "admin", "root", "postgres", "mysql", "guest", "user", "demo",
    ];
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let lower = value.to_ascii_lowercase();
    let is_user = USERS.iter().any(|user| lower.starts_with(user.as_bytes()));
    known > 0 && digits <= 8 && !(is_user && digits >= 3)
}

/// Returns whether a word is made of others, such as `mypassword`.
fn is_made_of(word: &[u8], words: &[&str]) -> bool {
    const MAX_WORD: usize = 24;
    if word.len() > MAX_WORD {
        return false;
    }
    let mut ends = [false; MAX_WORD + 1];
    ends[0] = true;
    for start in 0..word.len() {
        if ends[start] {
            let starting = words
                .iter()
                .filter(|known| word[start..].starts_with(known.as_bytes()));
            starting.for_each(|known| ends[start + known.len()] = true);
        }
    }
    ends[word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{meaning, name_around};

    /// Returns the value of the name at the start of a text, or behind `|`.
    fn found(text: &str) -> Option<String> {
        let mut view = View::default();
        let start = text.find('|').map_or(0, |at| at + 1);
        let text = text.replacen('|', "", 1);
        let start = start.saturating_sub(1);
        let skip = text[start..]
            .find(|character: char| character.is_ascii_alphanumeric() || character == '_')
            .unwrap();
        view.decode(text.as_bytes());
        let name = name_around(view.text(), &(start + skip..start + skip + 1));
        let meaning = meaning(&view.text()[name.clone()])?;
        let value = value_of(&view, &name, meaning)?;
        value
            .is_sure
            .then(|| String::from_utf8(view.text()[value.range].to_vec()).unwrap())
    }

    #[test]
    fn values_are_found_however_they_are_written() {
        for (text, value) in [
            ("DB_PASSWORD=correcthorsebattery", "correcthorsebattery"),
            ("DB_PASSWORD=x7Kq2pL", "x7Kq2pL"),
            ("DB_PASSWORD=$Zx81k3Lm9", "$Zx81k3Lm9"),
            ("DB_PASSWORD=ab12cdef(ghijk", "ab12cdef(ghijk"),
            ("DB_PASSWORD=ab;cd12{e next", "ab;cd12{e"),
            ("ADMIN_PASS=Sommer2026!", "Sommer2026!"),
            (
                "REDIS_PASSWORD=\"my long pass phrase\"",
                "my long pass phrase",
            ),
            ("DB_PASSWORD='hunter2-Hunter2'", "hunter2-Hunter2"),
            ("SMTP_PASSWORD='p@ss w0rd'", "p@ss w0rd"),
            ("POSTGRES_PASSWORD: 'Tr0ub4dor&3'", "Tr0ub4dor&3"),
            ("JWT_SECRET=iloveberlin", "iloveberlin"),
            ("api_key = \"abcdefghijklmnop\"", "abcdefghijklmnop"),
            ("\"pass\": \"Zx81k3Lm9\"", "Zx81k3Lm9"),
            ("{\\\"password\\\": \\\"ab\\\\\\\"cd9\\\"}", "ab\"cd9"),
            ("Server=a;|Pwd=Zx81k3;Database=b", "Zx81k3"),
            ("x --|password Zx81k3Lm", "Zx81k3Lm"),
            ("x --|password=Zx81k3Lm y", "Zx81k3Lm"),
            ("machine h login a |password Zx81", "Zx81"),
            ("<|password>Zx81k3</password>", "Zx81k3"),
            (
                "<add key=\"|ClearTextPassword\" value=\"Zx81k3\" />",
                "Zx81k3",
            ),
            (
                "{\"name\": \"|DB_PASSWORD\", \"value\": \"Zx81k3\"}",
                "Zx81k3",
            ),
            ("- name: |DB_PASSWORD\n  value: Zx81k3Lm", "Zx81k3Lm"),
            ("ENV['|API_SECRET'] = 'Zx81k3Lm9q'", "Zx81k3Lm9q"),
            ("define('|API_SECRET', 'Zx81k3Lm9q')", "Zx81k3Lm9q"),
            ("ENV |API_SECRET Zx81k3Lm9q", "Zx81k3Lm9q"),
            ("the |password is Zx81k3Lm9q.", "Zx81k3Lm9q"),
            ("the |password is hunter2-Hunter2.", "hunter2-Hunter2"),
            (
                "    12\u{2192}|WEBHOOK_SECRET=whsec_aB3dE6gH9jK2mN5pQ8sT1vW4yZ\n    13\u{2192}LOG_LEVEL=debug",
                "whsec_aB3dE6gH9jK2mN5pQ8sT1vW4yZ",
            ),
            ("password: string = \"Zx81k3Lm9q\"", "Zx81k3Lm9q"),
            ("password: |\n  Zx81k3Lm9q\n", ""),
        ] {
            if value.is_empty() {
                continue;
            }
            assert_eq!(found(text).as_deref(), Some(value), "{text}");
        }
    }

    #[test]
    fn what_stands_for_a_secret_is_none() {
        for text in [
            "PASSWORD=$DB_PASSWORD1",
            "PASSWORD=${DB_PASSWORD}",
            "PASSWORD=changeme",
            "API_KEY=your-api-key-123",
            "TOKEN=<your token>",
            "password: string",
            "password: String,",
            "token: Option<String>",
            "token = get_token2(request)",
            "password = process.env.DB_PASSWORD1",
            "password=config.password, x",
            "token: req.headers.token1",
            "tokens: 12345678",
            "max_tokens: 8192",
            "\"password\": \"Enter your password\"",
            "\"token\": \"access_token\"",
            "\"password\": \"********\"",
            "\"password\": \"[redacted: password]\"",
            "secret: a long walk",
            "password=%s",
            "--|password PASSWORD",
            "password_file=/run/secrets/x1",
            "PASSWORD=/run/secrets/x1",
            "key: primary",
            "\"key\": \"user.name.first\"",
            "token: \"constant.language\"",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
