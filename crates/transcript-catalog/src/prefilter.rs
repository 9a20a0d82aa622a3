//! Finds the lines of a file in which a term may be, without reading their JSON.
//!
//! A line passes whenever the decoded text of one of its strings, or of an entry salvaged from it,
//! contains the term. JSON can write a character in several ways, and a term can match several
//! characters, so a search for its bytes is not enough. The prefilter looks at one *run* of the
//! term: characters that JSON writes either as themselves or as an escape `\uXXXX`. A text with the
//! term has in its line either
//!
//! - the run as it is, in any case (*plain*), or
//! - at least one *odd* form: a `\uXXXX` of a character that folds to one of the run, such a
//!   character itself if it has diacritics, a combining mark, or a NUL, which a salvage removes.
//!
//! Odd forms are rare, so a line with one that concerns the run passes without a closer look.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::packed;
use memchr::{memchr, memchr_iter, memmem};
use regex_syntax::hir::literal::Extractor;

use crate::fold::{Fold, lower, plain};
use crate::query::Matcher;

/// The maximum number of patterns of the vectorized search.
const MAX_PACKED_PATTERNS: usize = 64;
/// The length of its patterns, in characters. Longer ones do not make it faster.
const WINDOW_CHARS: usize = 3;
/// The maximum number of literals of an expression.
const MAX_LITERALS: usize = 32;

/// The runs of a term: a line passes if one of them may be in it.
#[derive(Debug)]
pub(crate) struct Prefilter {
    runs: Vec<TermRun>,
    search: PatternSearch,
    odd: NonCanonicalEscapes,
}

#[derive(Debug)]
struct TermRun {
    /// For each character the forms that it has in a line, without the odd ones.
    chars: Vec<Vec<Box<[u8]>>>,
    /// The place of the window in it, in characters.
    window: usize,
}

#[derive(Debug)]
enum PatternSearch {
    /// The runs of each pattern.
    Packed(Box<packed::Searcher>, Vec<Vec<usize>>),
    /// One pattern, and its runs.
    One(Box<memmem::Finder<'static>>, Vec<usize>),
    /// Many patterns, or a machine without vector instructions.
    Many(Box<aho_corasick::AhoCorasick>, Vec<Vec<usize>>),
}

/// The characters that decide whether an odd form concerns the runs.
#[derive(Debug, Default)]
struct NonCanonicalEscapes {
    /// The folded characters of all runs that differ from ASCII, and the ASCII ones as bits.
    others: Vec<char>,
    ascii: u128,
    /// Whether diacritics are ignored.
    plain: bool,
    lower: bool,
    /// Whether a run has a slash, which can be written `\/`.
    has_slash: bool,
    /// Whether a run has characters outside of the basic plane, which are two escapes.
    is_astral: bool,
}

impl Prefilter {
    /// Returns the prefilter of a term; `None` if any line may contain it.
    pub(crate) fn of(matcher: &Matcher) -> Option<Self> {
        match matcher {
            Matcher::Literal { fold, finders } => {
                let terms = finders.iter();
                let terms = terms.map(|finder| std::str::from_utf8(finder.needle()).ok());
                let terms: Option<Vec<&str>> = terms.collect();
                Self::new(&terms?, *fold)
            }
            Matcher::Regex(regex) => {
                let hir = regex_syntax::parse(regex.as_str()).ok()?;
                let mut extractor = Extractor::new();
                extractor.limit_total(MAX_LITERALS);
                let seq = extractor.extract(&hir);
                let literals = seq.literals()?.iter();
                let literals = literals.map(|literal| std::str::from_utf8(literal.as_bytes()).ok());
                let literals: Option<Vec<&str>> = literals.collect();
                Self::new(&literals?, Fold::NOTHING)
            }
        }
    }

    fn new(terms: &[&str], fold: Fold) -> Option<Self> {
        let runs: Option<Vec<&str>> = terms.iter().map(|term| longest_run(term)).collect();
        let runs = runs.filter(|runs| !runs.is_empty())?;
        let odd = NonCanonicalEscapes::new(&runs, fold);
        let runs: Vec<TermRun> = runs
            .into_iter()
            .map(|run| TermRun::new(run, fold))
            .collect();
        let search = PatternSearch::new(&runs)?;
        Some(Self { runs, search, odd })
    }

    /// Returns how selective it probably is: the length of its shortest run.
    pub(crate) fn len(&self) -> usize {
        let len = |run: &TermRun| run.chars.len();
        self.runs.iter().map(len).min().unwrap_or_default()
    }

    /// Returns the next place from `from` on where a run is in its plain form.
    pub(crate) fn find(&self, bytes: &[u8], mut from: usize) -> Option<usize> {
        loop {
            let (at, runs) = self.search.find(bytes, from)?;
            let mut starts = runs
                .iter()
                .filter_map(|run| self.runs[*run].is_at(bytes, at));
            if let Some(start) = starts.next() {
                return Some(start);
            }
            from = at + 1;
        }
    }

    /// Returns the first place of each kind of odd form that concerns the runs in each line, in no order: one is enough to look
    /// at the line, and a line may have as many as bytes.
    pub(crate) fn odd_places(&self, bytes: &[u8]) -> Vec<usize> {
        let mut places: Vec<usize> = Vec::new();
        // The end of the last line that may match.
        let mut end = 0;
        self.odd.for_each(bytes, |place| {
            // The places of each kind are in order; a smaller one is of the next kind.
            let is_same_line = place < end && places.last().is_some_and(|last| *last < place);
            if !is_same_line {
                places.push(place);
                end = memchr(b'\n', &bytes[place..]).map_or(bytes.len(), |len| place + len);
            }
            true
        });
        places
    }

    /// Returns whether the term may be in these bytes.
    pub(crate) fn may_be_in(&self, bytes: &[u8]) -> bool {
        self.find(bytes, 0).is_some() || !self.odd.for_each(bytes, |_| false)
    }
}

/// Returns the longest part of a term without characters that JSON escapes in other ways, that
/// damage can change, or that replace something else.
fn longest_run(term: &str) -> Option<&str> {
    let is_special =
        |c: char| c.is_control() || matches!(c, '"' | '\\' | char::REPLACEMENT_CHARACTER);
    let runs = term.split(is_special).filter(|run| !run.is_empty());
    runs.max_by_key(|run| run.chars().count())
}

/// Returns the characters that fold to `c`, in their plain form.
fn variants(c: char, fold: Fold) -> Vec<Box<[u8]>> {
    let mut all = vec![c];
    if fold.lower {
        if c.is_ascii() {
            all.push(c.to_ascii_uppercase());
            all.dedup();
        } else if c.is_lowercase() {
            all.extend(
                OTHER_CASES
                    .iter()
                    .filter(|pair| pair.1 == c)
                    .map(|pair| pair.0),
            );
        }
    }
    let bytes = |c: char| c.encode_utf8(&mut [0; 4]).as_bytes().into();
    all.into_iter().map(bytes).collect()
}

/// All characters outside of ASCII that have another lower case, with it. Several may have the same.
static OTHER_CASES: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    let cased = '\u{80}'..='\u{1FFFF}';
    let with_lower = cased.map(|c| (c, lower(c)));
    with_lower.filter(|(c, low)| c != low).collect()
});

impl TermRun {
    fn new(run: &str, fold: Fold) -> Self {
        let chars: Vec<_> = run.chars().map(|c| variants(c, fold)).collect();
        // The rarest window, by the letters of English.
        let cost = |window: &[Vec<Box<[u8]>>]| -> u32 {
            let forms = window.iter().flatten();
            forms.map(|form| frequency(form)).sum()
        };
        let width = WINDOW_CHARS.min(chars.len());
        let windows = chars.windows(width).map(cost);
        let window = windows.enumerate().min_by_key(|(_, cost)| *cost);
        let window = window.map_or(0, |(at, _)| at);
        Self { chars, window }
    }

    /// Returns the patterns of the window.
    fn patterns(&self) -> Vec<Vec<u8>> {
        let mut patterns = vec![Vec::new()];
        let end = (self.window + WINDOW_CHARS).min(self.chars.len());
        for forms in &self.chars[self.window..end] {
            let longer = patterns.iter().flat_map(|pattern| {
                let forms = forms.iter();
                forms.map(move |form| [&pattern[..], form].concat())
            });
            patterns = longer.collect();
        }
        patterns
    }

    /// Returns the start of the run if its window is at `at`.
    fn is_at(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let mut start = at;
        for forms in self.chars[..self.window].iter().rev() {
            let before = &bytes[..start];
            start -= forms.iter().find(|form| before.ends_with(form))?.len();
        }
        let mut end = at;
        for forms in &self.chars[self.window..] {
            let after = &bytes[end..];
            end += forms.iter().find(|form| after.starts_with(form))?.len();
        }
        Some(start)
    }
}

/// Returns roughly how frequent a form is in transcripts.
fn frequency(form: &[u8]) -> u32 {
    match form {
        [b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' | b' '] => 8,
        [b'l' | b'd' | b'c' | b'u' | b'm' | b'h' | b'p' | b'f' | b'g'] => 5,
        [b'0'..=b'9' | b'.' | b',' | b':' | b'-' | b'_' | b'/'] => 5,
        [b'y' | b'b' | b'w' | b'v' | b'k'] => 3,
        [b'A'..=b'Z'] => 1,
        _ => 2,
    }
}

impl PatternSearch {
    fn new(runs: &[TermRun]) -> Option<Self> {
        let mut of_patterns = BTreeMap::<Vec<u8>, Vec<usize>>::new();
        for (number, run) in runs.iter().enumerate() {
            for pattern in run.patterns() {
                of_patterns.entry(pattern).or_default().push(number);
            }
        }
        let (patterns, runs): (Vec<_>, Vec<_>) = of_patterns.into_iter().unzip();
        if let [only] = &patterns[..] {
            let finder = memmem::Finder::new(only).into_owned();
            return Some(Self::One(
                Box::new(finder),
                runs.into_iter().flatten().collect(),
            ));
        }
        // Only one of the patterns at a place is reported.
        let is_start = |two: &[Vec<u8>]| two[1].starts_with(&two[0]);
        if patterns.windows(2).any(is_start) {
            return None;
        }
        if patterns.len() <= MAX_PACKED_PATTERNS
            && let Some(searcher) = packed::Searcher::new(&patterns)
        {
            return Some(Self::Packed(Box::new(searcher), runs));
        }
        let many = aho_corasick::AhoCorasick::new(&patterns).ok()?;
        Some(Self::Many(Box::new(many), runs))
    }

    /// Returns the next place of a pattern, and the runs that it is of.
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, &[usize])> {
        let rest = bytes.get(from..)?;
        match self {
            Self::One(finder, runs) => Some((from + finder.find(rest)?, runs)),
            Self::Packed(searcher, runs) => {
                let found = searcher.find(rest)?;
                Some((from + found.start(), &runs[found.pattern().as_usize()]))
            }
            Self::Many(many, runs) => {
                let found = many.find(rest)?;
                Some((from + found.start(), &runs[found.pattern().as_usize()]))
            }
        }
    }
}

impl NonCanonicalEscapes {
    fn new(runs: &[&str], fold: Fold) -> Self {
        let mut odd = Self {
            plain: fold.plain,
            lower: fold.lower,
            ..Self::default()
        };
        for c in runs.iter().flat_map(|run| run.chars()) {
            odd.has_slash |= c == '/';
            odd.is_astral |= c.len_utf16() > 1;
            if c.is_ascii() {
                odd.ascii |= 1 << u32::from(c);
            } else {
                odd.others.push(c);
            }
        }
        odd
    }

    /// Returns whether a run has a character to which `c` folds, or `c` is dropped within runs.
    fn concerns(&self, c: char) -> bool {
        let fold = Fold {
            plain: self.plain,
            lower: self.lower,
        };
        match fold.char(c) {
            None => true,
            Some(c) if c.is_ascii() => self.ascii >> u32::from(c) & 1 == 1,
            Some(c) => self.others.contains(&c),
        }
    }

    /// Passes the places of odd forms to `see` until it returns false. Returns whether it never did.
    fn for_each(&self, bytes: &[u8], mut see: impl FnMut(usize) -> bool) -> bool {
        static ESCAPE: LazyLock<memmem::Finder<'static>> =
            LazyLock::new(|| memmem::Finder::new(b"\\u"));
        static SLASH: LazyLock<memmem::Finder<'static>> =
            LazyLock::new(|| memmem::Finder::new(b"\\/"));
        for place in ESCAPE.find_iter(bytes) {
            if self.escape_concerns(&bytes[place + 2..]) && !see(place) {
                return false;
            }
        }
        if self.has_slash {
            for place in SLASH.find_iter(bytes) {
                if !see(place) {
                    return false;
                }
            }
        }
        if memchr(0, bytes).is_some() {
            for place in memchr_iter(0, bytes) {
                if !see(place) {
                    return false;
                }
            }
        }
        !self.plain || self.for_each_mark(bytes, see)
    }

    fn escape_concerns(&self, digits: &[u8]) -> bool {
        let unit = digits
            .get(..4)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let unit = unit.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match unit.map(char::from_u32) {
            // A surrogate is half of a character outside of the basic plane.
            Some(None) => self.is_astral,
            Some(Some(c)) => self.concerns(c),
            // Not an escape: the line is damaged, and another look does no harm.
            None => true,
        }
    }

    /// Passes the places of characters with diacritics, and of combining marks.
    fn for_each_mark(&self, bytes: &[u8], mut see: impl FnMut(usize) -> bool) -> bool {
        // U+00C0 to U+024F, U+0300 to U+036F, and U+1E00 to U+1EFF start with these bytes.
        let is_lead = |byte: u8| (0xC3..=0xCD).contains(&byte) || byte == 0xE1;
        for (number, chunk) in bytes.chunks(COMPARED_CHUNK_LEN).enumerate() {
            // A whole chunk is compared at once: most have none.
            if !chunk.iter().fold(false, |any, byte| any | is_lead(*byte)) {
                continue;
            }
            for (at, byte) in chunk.iter().enumerate() {
                let place = number * COMPARED_CHUNK_LEN + at;
                if is_lead(*byte)
                    && let Some(c) = char_at(&bytes[place..])
                    && plain(c) != Some(c)
                    && self.concerns(c)
                    && !see(place)
                {
                    return false;
                }
            }
        }
        true
    }
}

/// The number of bytes that are compared at once.
const COMPARED_CHUNK_LEN: usize = 128;

/// Returns the character at the start of `bytes`, of two or three bytes.
fn char_at(bytes: &[u8]) -> Option<char> {
    let len = if bytes.first()? & 0xF0 == 0xE0 { 3 } else { 2 };
    std::str::from_utf8(bytes.get(..len)?).ok()?.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places took eight bytes each: a hole in a file took nine times its length.
    #[test]
    fn a_line_of_odd_forms_costs_one_place_of_each_kind() {
        let fold = Fold {
            plain: true,
            lower: true,
        };
        let prefilter = Prefilter::new(&["ab/e"], fold).unwrap();
        for odd in ["\0", "\\u0061", "\\/", "é", "\0é\\/\\u0061"] {
            let long = odd.repeat(10_000);
            for lines in [1, 3] {
                let text = format!("no\n{long}\n\n").repeat(lines);
                let places = prefilter.odd_places(text.as_bytes());
                assert!(places.len() <= 4 * lines, "{odd:?}: {}", places.len());
                let start = |place: usize| text[..place].rfind('\n').map_or(0, |feed| feed + 1);
                let mut found: Vec<usize> = places.into_iter().map(start).collect();
                found.sort_unstable();
                found.dedup();
                let wanted: Vec<usize> = text.match_indices(&long).map(|(at, _)| at).collect();
                assert_eq!(found, wanted, "{odd:?}");
            }
        }
    }
}
