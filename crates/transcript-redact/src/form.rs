//! The forms of tokens, in a small language.
//!
//! `ghp_{alnum:36}` is a literal and a run of 36 letters and digits. `{CLASS:MIN-MAX}` is a run of that length,
//! `{CLASS:MIN-}` one without a limit, `{[SET]:N}` one of the characters of a set, in which `A-Z`, `a-z` and `0-9` are ranges. A part in `<…>` is
//! the secret, if only that part is one. After a `~` the whole has to look random.
//!
//! Matching starts at a literal, goes forwards and backwards from there, and never tries again: a run takes
//! every character of its class.

use std::ops::Range;

use crate::class::{ALNUM, BASE64, Class};
use crate::random::{looks_random, variety};
use crate::view::View;
use crate::wrap::next_line;

/// The form of a token: literals and runs of characters.
#[derive(Debug)]
pub(crate) struct Form {
    parts: Vec<FormPart>,
    /// The number of the literal by which the form is searched.
    anchor: usize,
    /// Whether the literals say too little: the rest has to look random.
    is_weak: bool,
    /// The number of the parts that are the secret.
    secret: Range<usize>,
}

#[derive(Debug)]
enum FormPart {
    Literal(String),
    Run(CharRun),
}

#[derive(Debug)]
struct CharRun {
    class: Class,
    min: usize,
    max: usize,
}

impl Form {
    /// Reads a form; `None` if it is not one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let (mut from, mut to) = (None, None);
        let (is_random, mut rest) = match text.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        while let Some(first) = rest.chars().next() {
            match first {
                '<' => (from, rest) = (Some(parts.len()), &rest[1..]),
                '>' => (to, rest) = (Some(parts.len()), &rest[1..]),
                '{' => {
                    let end = if rest.starts_with("{[") {
                        rest.find("]:").map_or(0, |at| at + 2)
                    } else {
                        0
                    };
                    let end = end + rest[end..].find('}')?;
                    let inner = &rest[1..end];
                    rest = &rest[end + 1..];
                    if inner == "uuid" {
                        for (number, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
                            if number > 0 {
                                parts.push(FormPart::Literal("-".into()));
                            }
                            parts.push(FormPart::run("hex", len, len)?);
                        }
                        continue;
                    }
                    let (class, counts) = inner.rsplit_once(':')?;
                    let (min, max) = match counts.split_once('-') {
                        None => (counts.parse().ok()?, counts.parse().ok()?),
                        Some((min, "")) => (min.parse().ok()?, usize::MAX),
                        Some((min, max)) => (min.parse().ok()?, max.parse().ok()?),
                    };
                    parts.push(FormPart::run(class, min, max)?);
                }
                _ => {
                    let end = rest.find(['{', '<', '>']).unwrap_or(rest.len());
                    parts.push(FormPart::Literal(rest[..end].into()));
                    rest = &rest[end..];
                }
            }
        }
        let literal_len = |part: &FormPart| match part {
            FormPart::Literal(text) => text.len(),
            FormPart::Run(_) => 0,
        };
        // The first one that is long enough, so that as little as possible is before it, or the longest one.
        let lens = || parts.iter().map(literal_len).enumerate();
        let first = lens().find(|(_, len)| *len >= 3);
        let (anchor, len) = first.or_else(|| lens().rev().max_by_key(|(_, len)| *len))?;
        let secret = from.unwrap_or(0)..to.unwrap_or(parts.len());
        let literals: usize = parts.iter().map(literal_len).sum();
        (len > 0 && !secret.is_empty()).then_some(Self {
            parts,
            anchor,
            is_weak: is_random || literals < 3,
            secret,
        })
    }

    /// The text by which the form is searched.
    pub(crate) fn anchor(&self) -> &str {
        match &self.parts[self.anchor] {
            FormPart::Literal(text) => text,
            FormPart::Run(_) => "",
        }
    }

    /// Returns the secret around an anchor at `at`. `looked_at` becomes the end of the searched text: there is no other
    /// secret of this form in it.
    pub(crate) fn find(
        &self,
        view: &View,
        at: usize,
        looked_at: &mut usize,
    ) -> Option<Range<usize>> {
        let text = view.text();
        if !text[at..].starts_with(self.anchor().as_bytes()) {
            return None;
        }
        let mut start = at;
        let mut from = (self.secret.start == self.anchor).then_some(at);
        let mut to = (self.secret.end == self.anchor + 1).then(|| at + self.anchor().len());
        for (number, part) in self.parts[..self.anchor].iter().enumerate().rev() {
            if number + 1 == self.secret.end {
                to = Some(start);
            }
            start = part.before(text, start)?;
            if number == self.secret.start {
                from = Some(start);
            }
        }
        // An anchor in the middle of a word is rejected before its runs are read, because they may be long.
        if !self.begins(view, start) {
            return None;
        }
        let mut varied = Variety::default();
        let mut end = at + self.anchor().len();
        for (number, part) in self.parts.iter().enumerate().skip(self.anchor + 1) {
            if number == self.secret.start {
                from = Some(end);
            }
            end = part.after(view, end, &mut varied, looked_at)?;
            if number + 1 == self.secret.end {
                to = Some(end);
            }
        }
        varied.add(&text[start..at]);
        let is_example = text[..end].ends_with(b"EXAMPLE");
        let is_random =
            !self.is_weak || looks_random(&text[start..end]) && has_digits(&text[start..end]);
        (varied.is_enough() && !is_example && is_random).then_some(from?..to?)
    }

    /// Returns whether a token of this form can begin at `start`.
    fn begins(&self, view: &View, start: usize) -> bool {
        let text = view.text();
        let Some(before) = start.checked_sub(1).map(|at| text[at]) else {
            return true;
        };
        if view.is_cut_before(start) {
            return true;
        }
        let literal = match self.parts.first() {
            Some(FormPart::Literal(text)) => text.as_str(),
            _ => "",
        };
        match before {
            // A literal like this stands in no word, so what is before it is glued to it.
            _ if literal.len() >= 8 && variety(literal.as_bytes()) >= 3 => true,
            b'_' => false,
            byte if byte.is_ascii_alphanumeric() => {
                let next = literal.bytes().next().unwrap_or(text[start]);
                !(next.is_ascii_alphanumeric() || next == b'_')
            }
            b'/' | b'+' | b'-' => {
                // Base64 has these signs, but no literal with one of `_-.`.
                let is_own = literal.contains(['_', '-', '.', ':', '$', '|']);
                let further = start.checked_sub(2).map(|at| text[at]);
                let in_word = further.is_some_and(|byte| BASE64.has(byte));
                is_own || !in_word
            }
            _ => true,
        }
    }
}

fn has_digits(text: &[u8]) -> bool {
    text.iter().filter(|byte| byte.is_ascii_digit()).count() >= 2
}

/// Counts the different characters of a token: a row of few is not a token but a placeholder for one.
#[derive(Default)]
struct Variety(u128);

impl Variety {
    fn add(&mut self, text: &[u8]) {
        for byte in text {
            self.0 |= 1 << (byte & 127);
        }
    }

    fn is_enough(&self) -> bool {
        self.0.count_ones() >= 4
    }
}

impl FormPart {
    fn run(class: &str, min: usize, max: usize) -> Option<Self> {
        let class = Class::named(class)?;
        (min <= max).then_some(Self::Run(CharRun { class, min, max }))
    }

    /// Returns the end of this part, which starts at `at`.
    fn after(
        &self,
        view: &View,
        at: usize,
        varied: &mut Variety,
        looked_at: &mut usize,
    ) -> Option<usize> {
        let text = view.text();
        let run = match self {
            Self::Literal(literal) => {
                return text[at..]
                    .starts_with(literal.as_bytes())
                    .then_some(at + literal.len());
            }
            Self::Run(run) => run,
        };
        let (mut end, mut count) = (at, 0);
        loop {
            let here = &text[end..];
            // One more than the limit says that it is something else.
            let limit = run.max.saturating_sub(count).saturating_add(1);
            let here = &here[..here.len().min(limit)];
            let len = here.iter().take_while(|byte| run.class.has(**byte)).count();
            varied.add(&here[..len]);
            let piece = end..end + len;
            (end, count) = (end + len, count + len);
            *looked_at = end;
            if count > run.max {
                return (!ALNUM.has(text[end - 1])).then_some(end - 1);
            }
            let is_short = count < run.min;
            match next_line(view, &piece, is_short) {
                Some(next)
                    if count < run.max
                        && text.get(next).is_some_and(|byte| run.class.has(*byte)) =>
                {
                    end = next;
                }
                _ => return (!is_short).then_some(end),
            }
        }
    }

    /// Returns the start of this part, which ends at `at`.
    fn before(&self, text: &[u8], at: usize) -> Option<usize> {
        match self {
            Self::Literal(literal) => text[..at]
                .ends_with(literal.as_bytes())
                .then(|| at - literal.len()),
            Self::Run(run) => {
                let before = text[..at].iter().rev().take(run.max);
                let count = before.take_while(|byte| run.class.has(**byte)).count();
                (count >= run.min).then_some(at - count)
            }
        }
    }
}
