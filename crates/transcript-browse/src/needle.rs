//! The searched texts, and where they are on a page.

use std::cmp::Reverse;
use std::ops::Range;

use memchr::memmem;
use transcript_render::StyledLine;

/// A set of texts, any of which matches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Needle {
    texts: Vec<Text>,
}

/// A text in any case, unless it is exact.
#[derive(Clone, Debug, PartialEq)]
struct Text {
    text: String,
    is_exact: bool,
    /// The longest word, if it is spelled the same in JSON.
    word: String,
}

impl Needle {
    /// Searches for a text in any case, unless it has an upper-case letter. Returns `None` for a text
    /// without a visible character.
    pub(crate) fn new(text: &str) -> Option<Self> {
        Self::of([(text, text.chars().any(char::is_uppercase))])
    }

    /// Searches for texts, each of which may be exact in its case.
    pub(crate) fn of<'t>(texts: impl IntoIterator<Item = (&'t str, bool)>) -> Option<Self> {
        let mut found: Vec<Text> = Vec::new();
        for (text, is_exact) in texts {
            let text = Text::new(text, is_exact);
            if !text.text.is_empty() && !found.contains(&text) {
                found.push(text);
            }
        }
        (!found.is_empty()).then_some(Self { texts: found })
    }

    /// Returns the texts in words.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<&str> = self.texts.iter().map(|text| &*text.text).collect();
        texts.join(", ")
    }

    /// Returns whether a line of JSON may hold one of the texts. Never misses one.
    pub(crate) fn may_be_in(&self, json: &str) -> bool {
        self.texts.iter().any(|text| text.may_be_in(json))
    }

    /// Returns the places of the texts in a line, in bytes, in order and not overlapping.
    pub(crate) fn ranges(&self, line: &str) -> Vec<Range<usize>> {
        let folded = if self.texts.iter().all(|text| text.is_exact) {
            String::new()
        } else {
            lower(line)
        };
        let mut found: Vec<Range<usize>> = Vec::new();
        for text in &self.texts {
            let line = if text.is_exact { line } else { &folded };
            let places = memmem::find_iter(line.as_bytes(), text.text.as_bytes());
            found.extend(places.map(|at| at..at + text.text.len()));
        }
        found.sort_unstable_by_key(|range| (range.start, Reverse(range.end)));
        let mut end = 0;
        found.retain(|range| {
            let is_new = range.start >= end;
            end = if is_new { range.end } else { end };
            is_new
        });
        found
    }
}

impl Text {
    fn new(text: &str, is_exact: bool) -> Self {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if is_exact { text } else { lower(&text) };
        let is_safe = |c: char| {
            c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '/' | '<' | '>' | '&' | '\'')
        };
        let words = text.split(|c| !is_safe(c));
        let word = words.max_by_key(|word| word.len()).unwrap_or_default();
        let word = word.to_owned();
        Self {
            text,
            is_exact,
            word,
        }
    }

    fn may_be_in(&self, json: &str) -> bool {
        if self.word.is_empty() {
            return true;
        }
        if self.is_exact {
            return memmem::find(json.as_bytes(), self.word.as_bytes()).is_some();
        }
        let word = self.word.as_bytes();
        let (first, bytes) = (word[0], json.as_bytes());
        let (low, high) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
        memchr::memchr2_iter(low, high, bytes).any(|at| {
            let found = bytes.get(at..at + word.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(word))
        })
    }
}

/// Returns a text in lower case, in as many bytes.
fn lower(text: &str) -> String {
    let lower = |c: char| {
        let mut lower = c.to_lowercase();
        match (lower.next(), lower.next()) {
            (Some(one), None) if one.len_utf8() == c.len_utf8() => one,
            _ => c,
        }
    };
    text.chars().map(lower).collect()
}

/// Lines as one text, in which hits go on over the ends of lines.
struct Joined {
    text: String,
    /// The start of each line in the text.
    starts: Vec<usize>,
}

impl Joined {
    fn new<'l>(lines: impl Iterator<Item = &'l StyledLine>) -> Self {
        let (mut text, mut starts) = (String::new(), Vec::new());
        for line in lines {
            starts.push(text.len());
            text.push_str(line.text().trim());
            text.push(' ');
        }
        Self { text, starts }
    }

    fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }
}

/// Returns the lines on which hits start.
pub(crate) fn lines_with(lines: &[StyledLine], needle: &Needle) -> Vec<usize> {
    let joined = Joined::new(lines.iter());
    let found = needle.ranges(&joined.text).into_iter();
    found.map(|range| joined.line_of(range.start)).collect()
}

/// Returns the ranges of each line that are part of a hit, in bytes.
pub(crate) fn marks(lines: &[&StyledLine], needle: &Needle) -> Vec<Vec<Range<usize>>> {
    let joined = Joined::new(lines.iter().copied());
    let mut marks = vec![Vec::new(); lines.len()];
    for range in needle.ranges(&joined.text) {
        for at in joined.line_of(range.start)..=joined.line_of(range.end - 1) {
            let text = lines[at].text();
            let start = joined.starts[at];
            let margin = text.len() - text.trim_start().len();
            let from = range.start.saturating_sub(start);
            let to = (range.end - start).min(text.trim().len());
            if from < to {
                marks[at].push(from + margin..to + margin);
            }
        }
    }
    marks
}

/// The text around a hit of another search. Only its letters and digits count: on the page it is
/// broken into lines and has other marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MatchContext {
    /// From the hit on.
    after: Vec<char>,
    /// Before the hit, the last one first.
    before: Vec<char>,
}

/// The number of characters on each side of a hit that are compared.
const COMPARED_CHARS: usize = 48;
/// The minimum number of equal characters around two equal hits, if there are that many around one.
const MIN_EQUAL_CHARS: usize = 16;

impl MatchContext {
    pub(crate) fn new(before: &str, after: &str) -> Self {
        let is_compared = |c: &char| c.is_alphanumeric();
        Self {
            after: after
                .chars()
                .filter(is_compared)
                .take(COMPARED_CHARS)
                .collect(),
            before: before
                .chars()
                .rev()
                .filter(is_compared)
                .take(COMPARED_CHARS)
                .collect(),
        }
    }

    /// Returns the number of equal characters.
    fn score(&self, other: &Self) -> usize {
        let same = |one: &[char], other: &[char]| {
            let pairs = one.iter().zip(other);
            pairs.take_while(|(one, other)| one == other).count()
        };
        same(&self.after, &other.after) + same(&self.before, &other.before)
    }
}

/// Returns the number of the hit in these lines whose surroundings are most like others, and whether
/// they are alike enough to be the same text.
pub(crate) fn most_alike(
    lines: &[StyledLine],
    needle: &Needle,
    around: &MatchContext,
) -> Option<(usize, bool)> {
    let text = Joined::new(lines.iter()).text;
    let ranges = needle.ranges(&text).into_iter().enumerate();
    let scored = ranges.map(|(hit, range)| {
        let here = MatchContext::new(&text[..range.start], &text[range.start..]);
        (around.score(&here), Reverse(hit))
    });
    let least = MIN_EQUAL_CHARS.min(around.after.len() + around.before.len());
    let best = scored.max();
    best.map(|(score, Reverse(hit))| (hit, score >= least))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> StyledLine {
        StyledLine {
            spans: vec![(anstyle::Style::new(), text.to_owned())],
        }
    }

    #[test]
    fn a_text_is_found_over_the_end_of_a_line_and_in_any_case() {
        let lines = [
            line("user       which year"),
            line("           has a LEAP"),
            line("day"),
        ];
        let found = |text| lines_with(&lines, &Needle::new(text).unwrap());
        assert_eq!(found("year has"), [0]);
        assert_eq!(found("leap  day"), [1]);
        assert_eq!(found("a"), [0, 1, 1, 1, 2]);
        assert_eq!(found("LEAP"), [1]);
        assert_eq!(found("Leap"), [0_usize; 0]);
        assert_eq!(Needle::new("  "), None);
    }

    #[test]
    fn a_hit_is_marked_on_all_its_lines() {
        let lines = [line("user       which leap"), line("           Year it is")];
        let lines: Vec<&StyledLine> = lines.iter().collect();
        let marked = |needle: &Needle| {
            let marks = marks(&lines, needle);
            let texts = marks.iter().zip(&lines).map(|(marks, line)| {
                let texts = marks
                    .iter()
                    .map(|mark| line.text()[mark.clone()].to_owned());
                texts.collect::<Vec<_>>()
            });
            texts.collect::<Vec<_>>()
        };
        let phrase = Needle::new("leap year").unwrap();
        assert_eq!(marked(&phrase), [["leap"], ["Year"]]);
        let words = Needle::of([("IT", false), ("is", true), ("Which", true)]).unwrap();
        assert_eq!(marked(&words), [vec![], vec!["it", "is"]]);
    }

    #[test]
    fn the_equal_hit_with_the_same_surroundings_is_chosen() {
        let lines = [
            line("assistant  a leap **day** in one"),
            line("           year, and a leap day in"),
            line("           another one"),
        ];
        let needle = Needle::new("leap").unwrap();
        let hit = |before, after| most_alike(&lines, &needle, &MatchContext::new(before, after));
        assert_eq!(hit("a ", "leap day in one year"), Some((0, true)));
        assert_eq!(hit("a ", "leap day in another"), Some((1, true)));
        assert_eq!(hit("year, and a ", "leap"), Some((1, true)));
        assert_eq!(hit("not a ", "leap forward, but"), Some((0, false)));
        let other = Needle::new("other year").unwrap();
        assert_eq!(most_alike(&lines, &other, &MatchContext::default()), None);
    }

    #[test]
    fn a_line_of_json_without_the_longest_word_is_passed_over() {
        let needle = Needle::new("say \"Größe\" twice").unwrap();
        assert!(Needle::new("twice").unwrap().may_be_in(r#"{"a":"TWICE"}"#));
        assert!(!Needle::new("twice").unwrap().may_be_in(r#"{"a":"once"}"#));
        assert!(!Needle::new("Twice").unwrap().may_be_in(r#"{"a":"twice"}"#));
        assert!(needle.may_be_in("{\"a\":\"say \\\"Gr\\u00f6\\u00dfe\\\" Twice twice\"}"));
        assert!(Needle::new("日").unwrap().may_be_in("{}"));
    }
}
