//! Grams, three bytes in a row of the coarsely folded text. A term can be only in texts that have all its grams.
//!
//! A text is folded here as no term folds it: without case and without diacritics, whatever the
//! term uses. If a term is in a text, its folded form is in the folded text, so all three bytes that
//! follow each other in the one follow each other in the other.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::fold::Fold;
use crate::fuse::Filter;
use crate::query::Matcher;

/// The number of bits: one for each number of three bytes.
const GRAM_COUNT: usize = 1 << 24;
/// The maximum depth of an expression. Deeper parts of it are not examined.
const MAX_EXPRESSION_DEPTH: usize = 64;

const FULL_FOLD: Fold = Fold {
    plain: true,
    lower: true,
};

/// Returns the character as it is compared here. Characters that the fold of some term makes equal
/// are equal.
fn fold(c: char) -> Option<char> {
    match c {
        // The letters that an expression takes for k and s when it ignores case.
        '\u{212A}' => Some('k'),
        '\u{17F}' => Some('s'),
        // Twice, because the lower case of some letters (Å, the unit) has diacritics, and they have none.
        _ => FULL_FOLD.char(FULL_FOLD.char(c)?),
    }
}

fn fold_into(text: &str, out: &mut Vec<u8>) {
    out.clear();
    let mut rest = text;
    loop {
        let ascii = rest.bytes().position(|byte| !byte.is_ascii());
        let ascii = ascii.unwrap_or(rest.len());
        let start = out.len();
        out.extend_from_slice(&rest.as_bytes()[..ascii]);
        out[start..].make_ascii_lowercase();
        rest = &rest[ascii..];
        let end = rest.find(|c: char| c.is_ascii()).unwrap_or(rest.len());
        if end == 0 {
            return;
        }
        for c in rest[..end].chars().filter_map(fold) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        rest = &rest[end..];
    }
}

fn number(gram: &[u8]) -> u32 {
    u32::from(gram[0]) << 16 | u32::from(gram[1]) << 8 | u32::from(gram[2])
}

/// Collects the different grams of texts.
#[derive(Debug)]
pub(crate) struct Grams {
    seen: Vec<u64>,
    numbers: Vec<u32>,
    folded: Vec<u8>,
}

impl Default for Grams {
    fn default() -> Self {
        Self {
            seen: vec![0; GRAM_COUNT / 64],
            numbers: Vec::new(),
            folded: Vec::new(),
        }
    }
}

impl Grams {
    pub(crate) fn add(&mut self, text: &str) {
        fold_into(text, &mut self.folded);
        for gram in self.folded.windows(3) {
            let number = number(gram);
            let word = &mut self.seen[number as usize / 64];
            let bit = 1 << (number % 64);
            if *word & bit == 0 {
                *word |= bit;
                self.numbers.push(number);
            }
        }
    }

    /// Returns the grams in no order.
    pub(crate) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    pub(crate) fn clear(&mut self) {
        for number in self.numbers.drain(..) {
            self.seen[number as usize / 64] = 0;
        }
    }
}

/// A condition on the grams of a text, necessary for a match.
#[derive(Debug)]
pub(crate) enum TextNeed {
    /// All of these grams. None, if nothing is known.
    Grams(Vec<u32>),
    All(Vec<TextNeed>),
    Any(Vec<TextNeed>),
}

impl TextNeed {
    /// Returns the condition that a text must meet to match.
    pub(crate) fn of(matcher: &Matcher) -> Self {
        match matcher {
            Matcher::Literal { finders, .. } => match &finders[..] {
                [one] => Self::of_bytes(one.needle()),
                forms => Self::Any(
                    forms
                        .iter()
                        .map(|form| Self::of_bytes(form.needle()))
                        .collect(),
                ),
            },
            Matcher::Regex(regex) => match regex_syntax::parse(regex.as_str()) {
                Ok(hir) => Self::of_hir(&hir),
                Err(_) => Self::Grams(Vec::new()),
            },
        }
    }

    /// Returns the condition that a text must meet to contain these bytes; nothing if they are not UTF-8.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let mut folded = Vec::new();
        fold_into(std::str::from_utf8(bytes).unwrap_or_default(), &mut folded);
        Self::Grams(grams(&folded))
    }

    fn of_hir(hir: &Hir) -> Self {
        let mut literals = Literals::default();
        literals.add(hir, 0);
        literals.end_run();
        Self::All(literals.needs)
    }

    /// Returns whether texts with these grams may meet the condition.
    pub(crate) fn may_be_in(&self, filter: &Filter<'_>) -> bool {
        match self {
            Self::Grams(grams) => grams.iter().all(|gram| filter.may_have(*gram)),
            Self::All(needs) => needs.iter().all(|need| need.may_be_in(filter)),
            Self::Any(needs) => needs.iter().any(|need| need.may_be_in(filter)),
        }
    }
}

fn grams(folded: &[u8]) -> Vec<u32> {
    let mut grams: Vec<u32> = folded.windows(3).map(number).collect();
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Reads an expression from its start to its end.
#[derive(Default)]
struct Literals {
    needs: Vec<TextNeed>,
    /// The folded characters before this place that every match has in a row.
    run: Vec<u8>,
}

impl Literals {
    /// Nothing is known about the following characters.
    fn end_run(&mut self) {
        let grams = grams(&self.run);
        self.run.clear();
        if !grams.is_empty() {
            self.needs.push(TextNeed::Grams(grams));
        }
    }

    fn add(&mut self, hir: &Hir, depth: usize) {
        if depth > MAX_EXPRESSION_DEPTH {
            return self.end_run();
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => {
                    let mut folded = Vec::new();
                    fold_into(text, &mut folded);
                    self.run.extend(folded);
                }
                Err(_) => self.end_run(),
            },
            HirKind::Class(class) => match only(class) {
                Some(Some(c)) => {
                    self.run
                        .extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                // It is dropped.
                Some(None) => {}
                None => self.end_run(),
            },
            HirKind::Capture(capture) => self.add(&capture.sub, depth + 1),
            HirKind::Concat(parts) => {
                for part in parts {
                    self.add(part, depth + 1);
                }
            }
            HirKind::Repetition(repetition) => {
                self.end_run();
                if repetition.min > 0 {
                    self.add(&repetition.sub, depth + 1);
                    self.end_run();
                }
            }
            HirKind::Alternation(parts) => {
                self.end_run();
                self.needs
                    .push(TextNeed::Any(parts.iter().map(TextNeed::of_hir).collect()));
            }
        }
    }
}

/// Returns the folded character of all characters of a class, if it is the same.
fn only(class: &Class) -> Option<Option<char>> {
    /// Letters have few other cases.
    const MAX_VARIANTS: u32 = 8;
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => {
            let ranges = class.ranges().iter();
            ranges.map(|range| (range.start(), range.end())).collect()
        }
        Class::Bytes(class) => {
            let ranges = class.ranges().iter();
            let is_ascii = ranges.clone().all(|range| range.end().is_ascii());
            let chars = ranges.map(|range| (range.start().into(), range.end().into()));
            if is_ascii {
                chars.collect()
            } else {
                Vec::new()
            }
        }
    };
    let len = |(start, end): &(char, char)| u32::from(*end) - u32::from(*start) + 1;
    if ranges.iter().map(len).sum::<u32>() > MAX_VARIANTS {
        return None;
    }
    let mut folded = ranges
        .into_iter()
        .flat_map(|(start, end)| start..=end)
        .map(fold);
    let first = folded.next()?;
    folded.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{lower, plain};
    use crate::fuse::Builder;
    use crate::query::Query;

    #[test]
    fn characters_that_a_term_takes_for_equal_are_equal() {
        for c in '\0'..=char::MAX {
            assert_eq!(fold(c), fold(lower(c)), "{c:?}");
            assert_eq!(fold(c), plain(c).and_then(fold), "{c:?}");
            assert_eq!(fold(c), plain(c).map(lower).and_then(fold), "{c:?}");
            // A folded term is folded again when its grams are taken.
            assert_eq!(fold(c), fold(c).and_then(fold), "{c:?}");
        }
    }

    fn may_match(text: &str, query: &str) -> bool {
        let mut grams = Grams::default();
        grams.add("something else");
        grams.clear();
        grams.add(text);
        let mut bytes = Vec::new();
        assert!(Builder::default().build(grams.numbers(), &mut bytes));
        let filter = Filter::of(&bytes).unwrap();
        let query: Query = query.parse().unwrap();
        query
            .positive()
            .all(|term| TextNeed::of(&term.matcher).may_be_in(&filter))
    }

    #[test]
    fn filter_has_every_gram_of_a_text_and_few_others() {
        let text = "The Crème Brûlée of ÅNGSTRÖM costs 7 \u{212B} in 日本語; c++ #4411 a.b KELVIN \u{212A}elvin";
        for query in [
            "creme",
            "Crème",
            "brulee",
            "\"brûlée of\"",
            "ångström",
            "angstrom",
            "日本",
            "本",
            "ab",
            "c++",
            "#4411",
            "/cr.me/i",
            "/C(rè|ra)me/",
            "/[bB]rûl+ée/",
            "/kelvin/i",
            "/^the/i",
            "/x*/",
            "/(?:costs)+ \\d/",
            "/x?costs/",
            "/[0-9]{4}|owls/",
            "/日本(語)?/",
            "/ÅNGSTRÖM/",
            "/\u{212B}/",
        ] {
            assert!(may_match(text, query), "{query}");
        }
        for query in [
            "owl",
            "\"creme brulee in\"",
            "語日",
            "/owls/",
            "/owls/i",
            "/cr.me owls/",
            "/(owls|larks)/",
            "/costs+owls/",
            "/(owls){2}/",
            "#4412",
            "creme owls",
        ] {
            assert!(!may_match(text, query), "{query}");
        }
    }
}
