//! Values that are several, or that stand further away from their name: lists, objects, parts of a text, defaults.

use std::ops::Range;

use crate::class::{ALNUM, Class};
use crate::names::Trust;
use crate::random::{is_mixed, is_name_like, is_tangled, looks_random};
use crate::value::named::{NamedValue, Value, ValueSyntax};
use crate::value::stand_in::is_algorithm;
use crate::wrap::after_marks;

/// The maximum length of a list, an object or a sentence that is searched, in bytes.
const MAX_GROUP_LEN: usize = 2 << 10;
const MAX_OBJECT_LEN: usize = 600;
const MAX_SENTENCE_LEN: usize = 120;
/// The maximum number of values of a name.
const MAX_VALUES: usize = 32;
/// Keys of an object whose value is that of the name that the object belongs to, or that stands in it.
const VALUE_KEYS: [&str; 15] = [
    "parametervalue",
    "optionvalue",
    "newvalue",
    "value",
    "$t",
    "text",
    "plaintext",
    "data",
    "secretstring",
    "secret",
    "defaultvalue",
    "default",
    "current",
    "content",
    "val",
];

impl NamedValue<'_> {
    /// Adds the values that start at `at`.
    pub(super) fn add_values(&self, at: usize, way: ValueSyntax, values: &mut Vec<Value>) {
        let inner = self.skip_space(at + 1);
        match self.byte(at) {
            Some(b'[' | b'(') if self.is_quote(inner) => self.list(inner, values),
            Some(b'[') if way == ValueSyntax::Colon => self.list(inner, values),
            Some(b'{') if self.is_quote(inner) || self.is_member(inner) => self.members(at, values),
            _ if way == ValueSyntax::Colon && self.next_line(at).is_some() => {
                self.lines(at, values);
            }
            _ => {
                values.extend(self.classify(at, way));
                match values.last().map(|value| value.range.end) {
                    Some(end) => self.parts(end, values),
                    None => self.parts_behind(at, values),
                }
            }
        }
    }

    /// Returns whether more of a value may follow it: another text, or its new value.
    pub(super) fn continues(&self, value: &Value) -> bool {
        let end = value.range.end;
        let next = self.skip_space(end + 1);
        self.is_quote(end)
            && next > end + 1
            && matches!(
                self.byte(next),
                Some(b'"' | b'\'' | b'`' | b'+' | b'.' | b'-' | b'\\')
            )
    }

    /// Adds the elements of a list, the first of which is at `at`.
    fn list(&self, at: usize, values: &mut Vec<Value>) {
        // All of these walks are bounded, so that a line of many names takes linear time.
        let end = self.text.len().min(at + MAX_GROUP_LEN);
        let mut at = at;
        for _ in 0..MAX_VALUES {
            if at >= end || matches!(self.byte(at), Some(b']' | b')')) {
                break;
            }
            let Some(range) = self.element(at) else { break };
            let next = range.end + usize::from(self.is_quote(range.end));
            values.extend(self.classify(at, ValueSyntax::Cell));
            let comma = self.skip_space(next);
            let comma = match self.byte(comma) {
                Some(b',') => self.skip_space(comma + 1),
                _ => comma,
            };
            if comma == at {
                break;
            }
            at = comma;
        }
    }

    /// Returns the text of an element at `at`, without its quotes.
    fn element(&self, at: usize) -> Option<Range<usize>> {
        if self.is_quote(at) {
            return self.short_text(at + 1, at);
        }
        let rest = self.line_after(at, 256);
        let len = rest.iter().position(|byte| b",]) ".contains(byte))?;
        (len > 0).then_some(at..at + len)
    }

    /// Returns whether a key without quotes and a colon are at `at`.
    fn is_member(&self, at: usize) -> bool {
        let end = self.skip(at, ALNUM.or(Class::of("_")));
        end > at && self.byte(end) == Some(b':')
    }

    /// Adds the members of an object at `at` that are values of the name.
    fn members(&self, at: usize, values: &mut Vec<Value>) {
        let name = &self.text[self.name.clone()];
        let is_plural = name.last().is_some_and(|last| b"sS".contains(last));
        for (key, value) in self.pairs(at) {
            let is_value = is_value_key(&self.text[key.clone()]);
            let is_random = || {
                let range = self.short_text(value + 1, value);
                range.is_some_and(|range| looks_random(&self.text[range]))
            };
            if is_value {
                values.extend(self.classify(value, ValueSyntax::Equals));
            // `tokens: {"alice": "…"}`: any key can have a secret there, but only a random text is one.
            } else if is_plural && is_random() {
                values.extend(self.classify(value, ValueSyntax::Near));
            }
        }
    }

    /// Returns the keys of the object at `at` and where their values start that are in quotes.
    fn pairs(&self, at: usize) -> Vec<(Range<usize>, usize)> {
        let end = self.text.len().min(at + MAX_OBJECT_LEN);
        let mut pairs = Vec::new();
        // All of an object is in one text.
        let first = self.skip_space(at + 1);
        let depth = |at: usize| (self.byte(at) == Some(b'"')).then(|| self.view.depth(at));
        let is_same = |at: usize| {
            depth(at).is_none()
                || depth(at) == depth(first)
                || depth(first).is_none() && !self.view.is_outer_quote(at)
        };
        let mut at = self.skip_space(at + 1);
        while at < end && pairs.len() < MAX_VALUES {
            let key = if self.is_quote(at) {
                self.short_text(at + 1, at)
            } else {
                Some(at..self.skip(at, ALNUM.or(Class::of("_$-"))))
            };
            let Some(key) = key.filter(|key| !key.is_empty() && is_same(at) && is_same(key.end))
            else {
                break;
            };
            let sign = self.skip(key.end, Class::of("\"'` \t"));
            if self.byte(sign) != Some(b':') {
                break;
            }
            let value = self.skip_space(sign + 1);
            let next = if self.is_quote(value) {
                let range = self.short_text(value + 1, value);
                let Some(range) = range.filter(|range| is_same(value) && is_same(range.end)) else {
                    break;
                };
                pairs.push((key, value));
                range.end + 1
            } else {
                let rest = &self.text[value.min(end)..end];
                let Some(len) = rest.iter().position(|byte| b",}{[\"".contains(byte)) else {
                    break;
                };
                value + len
            };
            let comma = self.skip_space(next);
            if self.byte(comma) != Some(b',') {
                break;
            }
            at = self.skip_space(comma + 1);
        }
        pairs
    }

    /// Adds the values on the lines after a colon: a block of text, or a list.
    fn lines(&self, at: usize, values: &mut Vec<Value>) {
        let mut end = at;
        for _ in 0..MAX_VALUES {
            let Some(next) = self.next_line(end) else {
                break;
            };
            let dash = after_marks(self.text, next);
            if !self.starts(dash, "- ") {
                break;
            }
            let element = self.skip(dash + 1, Class::of(" \t"));
            values.extend(self.classify(element, ValueSyntax::Cell));
            end = element + self.line_after(element, MAX_GROUP_LEN).len();
        }
        if values.is_empty() {
            values.extend(self.classify(at, ValueSyntax::Colon));
        }
    }

    /// Adds the texts after the one that ends at `end`: parts of it, or its new value.
    fn parts(&self, end: usize, values: &mut Vec<Value>) {
        let mut end = end;
        for _ in 0..MAX_VALUES {
            // A quote of the JSON of the line ends the string in which all of the value is.
            if !self.is_quote(end) || self.view.is_outer_quote(end) {
                break;
            }
            let sign = self.skip_space(end + 1);
            let value = match (self.byte(sign), self.starts(sign, "->")) {
                (_, true) => self.skip_space(sign + 2),
                (Some(b'+' | b'.' | b'\\'), _) => self.skip_space(sign + 1),
                _ => sign,
            };
            if value == end + 1 || !self.is_quote(value) || self.view.is_outer_quote(value) {
                break;
            }
            let Some(range) = self.short_text(value + 1, value) else {
                break;
            };
            let is_key = self.byte(self.skip_space(range.end + 1)) == Some(b':');
            // The text is a key of the next member and not another part of the value.
            if is_key || range.is_empty() {
                break;
            }
            values.extend(self.classify(value, ValueSyntax::Near));
            end = range.end;
        }
    }

    /// Adds the texts of an expression that starts at `at`, behind its operators: `isLive ? "…" : "…"`, `env.X || "…"`.
    fn parts_behind(&self, at: usize, values: &mut Vec<Value>) {
        const OPERATORS: [&[u8]; 7] = [b"||", b"??", b" or", b"?", b":", b"+", b" else"];
        let line = self.line_after(at, MAX_SENTENCE_LEN);
        let mut from = 0;
        let mut is_expression = false;
        while let Some(open) = line[from..].iter().position(|byte| b"\"'`;".contains(byte)) {
            let open = from + open;
            if line[open] == b';' || self.view.is_outer_quote(at + open) {
                break;
            }
            let before = line[..open].trim_ascii_end();
            let is_operator = OPERATORS.iter().any(|sign| before.ends_with(sign));
            // A colon alone is that of the next member.
            let is_other = before.ends_with(b":") && !is_expression;
            is_expression |= is_operator && !is_other;
            let Some(range) = self.short_text(at + open + 1, at + open) else {
                break;
            };
            if is_operator && !is_other {
                values.extend(self.classify(at + open, ValueSyntax::Near));
            }
            from = (range.end + 1 - at).min(line.len());
        }
    }

    /// Returns the value of an `input` of a page whose purpose the name is.
    pub(super) fn input(&self) -> Option<(usize, ValueSyntax)> {
        const VALUE_MARK: &[u8] = b"value=";
        let before = self.line_before(MAX_SENTENCE_LEN);
        // The attribute with the value can be before or after the one with the name.
        let open = memchr::memmem::rfind(before, b"<input ")?;
        let tag = self.name.start - before.len() + open;
        let line = self.line_after(tag, 2 * MAX_SENTENCE_LEN);
        let line = &line[..memchr::memchr(b'>', line)?];
        let value = tag + memchr::memmem::find(line, VALUE_MARK)? + VALUE_MARK.len();
        self.is_quote(value).then_some((value, ValueSyntax::Equals))
    }

    /// Returns the password of `user / password`, or of `user:password`, behind a name of both.
    pub(super) fn of_user(&self) -> Option<(usize, ValueSyntax)> {
        if self.meaning.kind != "credential" {
            return None;
        }
        let line = self.line_after(self.name.end, MAX_SENTENCE_LEN);
        let slash = memchr::memmem::find(line, b" / ").map(|at| at + 3);
        let sign = slash.or_else(|| {
            let colons = memchr::memchr_iter(b':', line);
            let mut colons =
                colons.filter(|at| line.get(at + 1).is_some_and(|byte| ALNUM.has(*byte)));
            colons.next().map(|at| at + 1)
        })?;
        let is_prose = |byte: &u8| {
            byte.is_ascii_alphanumeric() || b" :@._-*`'\"/".contains(byte) || !byte.is_ascii()
        };
        line[..sign]
            .iter()
            .all(is_prose)
            .then_some((self.name.end + sign, ValueSyntax::Sentence))
    }

    /// Returns the text that is compared with the name, and stands before it: `"value" == name`.
    pub(super) fn compared(&self) -> Option<(usize, ValueSyntax)> {
        let before = self.line_before(MAX_SENTENCE_LEN);
        let sides = before.trim_ascii_end().strip_suffix(b"==");
        let sides = sides.or_else(|| before.trim_ascii_end().strip_suffix(b"!="))?;
        let text = sides.strip_suffix(b"=").unwrap_or(sides).trim_ascii_end();
        let (mark, text) = text.split_last()?;
        let open = memchr::memrchr(*mark, text).filter(|_| b"\"'`".contains(mark))?;
        Some((self.name.start - before.len() + open, ValueSyntax::Equals))
    }

    /// Returns the values in the object in which the name is a value: `{"value": "…", "name": "NAME"}`.
    pub(super) fn siblings(&self) -> Vec<(usize, ValueSyntax)> {
        // The text that the name is in is short, and ends soon.
        let Some(quote) = self.end_of_text() else {
            return Vec::new();
        };
        let from = self.name.start.saturating_sub(MAX_OBJECT_LEN);
        let before = &self.text[from..self.name.start];
        let open = before.iter().rposition(|byte| b"{}".contains(byte));
        let Some(open) = open
            .filter(|open| before[*open] == b'{')
            .map(|open| from + open)
        else {
            return Vec::new();
        };
        let pairs = self.pairs(open);
        let is_value = |value: usize| {
            value < self.name.start && quote > value && {
                self.short_text(value + 1, value)
                    .is_some_and(|range| range.contains(&self.name.start))
            }
        };
        if !pairs.iter().any(|(_, value)| is_value(*value)) {
            return Vec::new();
        }
        let others = pairs
            .into_iter()
            .filter(|(key, value)| is_value_key(&self.text[key.clone()]) && !is_value(*value));
        others
            .map(|(_, value)| (value, ValueSyntax::Near))
            .collect()
    }

    /// Returns the quote that ends the short text in which the name stands.
    fn end_of_text(&self) -> Option<usize> {
        const MAX_REST_LEN: usize = 24;
        let rest = &self.text[self.name.end..self.text.len().min(self.name.end + MAX_REST_LEN)];
        // A regular expression may be it, too.
        if rest.starts_with(b"/i)") || rest.starts_with(b"/)") {
            return Some(self.name.end + rest.iter().position(|byte| *byte == b')')? - 1);
        }
        let end = rest.iter().position(|byte| b"\"'`\n".contains(byte))?;
        (rest[end] != b'\n').then_some(self.name.end + end)
    }

    /// Returns the text that a program types into the field with the name: `fill("#password", "…")`,
    /// `getByLabel("Password").fill("…")`.
    pub(super) fn argument(&self) -> Option<(usize, ValueSyntax)> {
        const CALL_CHARS: Class = ALNUM.or(Class::of("_"));
        let quote = self.end_of_text()?;
        let mut at = self.skip(quote + 1, Class::of("\"' \t]}"));
        let is_inner = self.starts(at, "),");
        at += usize::from(is_inner);
        let call = if self.starts(at, ").value") || self.starts(at, "].value") {
            // `querySelector("#password").value = "…"`.
            let sign = self.skip(at + ").value".len(), Class::of(" ="));
            return self.is_quote(sign).then_some((sign, ValueSyntax::Equals));
        } else if self.byte(at) == Some(b')') && self.byte(at + 1) != Some(b',') {
            let call = self.skip(at + 1, Class::of("."));
            let end = self.skip(call, CALL_CHARS);
            if call == at + 1 || self.byte(end) != Some(b'(') {
                return None;
            }
            at = end;
            &self.text[call..end]
        } else if self.byte(at) == Some(b',') {
            // The function that gets the text with the name as an argument.
            let before = self.line_before(64);
            let calls = before.split(|byte| *byte == b'(').rev().skip(1);
            let mut names = calls.map(|before| {
                let name = before.iter().rposition(|byte| !CALL_CHARS.has(*byte));
                &before[name.map_or(0, |name| name + 1)..]
            });
            match names.find(|name| is_typing(name)) {
                Some(name) => name,
                None if is_inner => return None,
                None => b"",
            }
        } else {
            return None;
        };
        let way = if is_typing(call) {
            ValueSyntax::Equals
        } else {
            ValueSyntax::Near
        };
        let value = self.skip_space(at + 1);
        (self.is_quote(value) && !self.view.is_outer_quote(value)).then_some((value, way))
    }

    /// Returns a word of the sentence in which the name stands, or the next line, that no word is like.
    pub(super) fn sentence(&self) -> Option<(usize, ValueSyntax)> {
        const SEPARATOR_BYTES: &[u8] = b" \t\r\"'`*:,()";
        const COPULA_WORDS: [&str; 8] = ["is", "to", "was", "ist", "lautet", "auf", "es", "est"];
        let line = self.line_after(self.name.end, MAX_SENTENCE_LEN);
        let is_between = |byte: &u8| SEPARATOR_BYTES.contains(byte);
        if !line.first().is_some_and(|byte| b" \t*:(".contains(byte)) {
            return None;
        }
        if !self.is_password() {
            let is_random = |word: &[u8]| word.len() >= 20 && is_tangled(word);
            let blank = line.iter().take_while(|byte| is_between(byte)).count();
            let word = line[blank..].split(is_between).next()?;
            return is_random(word).then_some((self.name.end + blank, ValueSyntax::Near));
        }
        // "Pass" is a verb, too.
        if self.name.len() <= 4 && self.meaning.trust == Trust::NameAndForm {
            return None;
        }
        let mut at = self.name.end;
        let mut previous: &[u8] = b"";
        for word in line.split(is_between) {
            let word = word.strip_suffix(b".").unwrap_or(word);
            let sign = self.text[..at].trim_ascii_end().last();
            let is_marked = sign.is_some_and(|sign| b":\"'`".contains(sign));
            let is_told = COPULA_WORDS.iter().any(|told| told.as_bytes() == previous);
            // Not a version, such as `v1.2.3`.
            let letters = word
                .iter()
                .filter(|byte| byte.is_ascii_alphabetic())
                .count();
            let is_password =
                word.len() >= 6 && letters >= 3 && is_mixed(word) && !is_name_like(word);
            if is_tangled(word) || is_told && is_password {
                let way = if is_told {
                    ValueSyntax::Sentence
                } else {
                    ValueSyntax::Near
                };
                let is_next = previous.is_empty() && !is_algorithm(word);
                return (is_marked || is_told || is_next).then_some((at, way));
            }
            if word.iter().any(|byte| b"=<>{}[]$;\\|&".contains(byte)) {
                return None;
            }
            at += word.len() + 1;
            if !word.is_empty() {
                previous = word;
            }
        }
        let is_introduced = line.trim_ascii_end().ends_with(b":");
        let next = self.skip_space(self.name.end + line.len());
        let word = self.line_after(next, MAX_SENTENCE_LEN).trim_ascii();
        let is_value = is_tangled(word) || looks_random(word);
        (is_introduced && is_value).then_some((next, ValueSyntax::Near))
    }

    fn is_password(&self) -> bool {
        self.meaning.kind == "password"
    }
}

/// Returns whether a call types a text into a field of a page.
fn is_typing(call: &[u8]) -> bool {
    const TYPING_CALLS: [&[u8]; 9] = [
        b"fill",
        b"type",
        b"typetext",
        b"sendkeys",
        b"send_keys",
        b"setvalue",
        b"set_value",
        b"presssequentially",
        b"press_sequentially",
    ];
    TYPING_CALLS.contains(&&*call.to_ascii_lowercase())
}

fn is_value_key(key: &[u8]) -> bool {
    VALUE_KEYS
        .iter()
        .any(|known| key.eq_ignore_ascii_case(known.as_bytes()))
}
