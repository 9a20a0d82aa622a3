//! What is searched for, and where it is on a page.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use memchr::memmem;
use transcript_reader::Bodies;
use transcript_render::{Detail, StyledLine};
use transcript_resume::items::Displays;

use crate::messages::{Answer, Key, Layout, Reply, Search};
use crate::session::Session;

/// A text that is searched for: in any case, unless it has an upper-case letter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Needle {
    text: String,
    is_exact: bool,
    /// The longest word, if it is spelled the same in JSON.
    word: String,
}

impl Needle {
    /// Returns `None` for a text without a visible character.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_exact = text.chars().any(char::is_uppercase);
        let is_safe = |c: char| {
            c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '/' | '<' | '>' | '&' | '\'')
        };
        let words = text.split(|c| !is_safe(c));
        let word = words.max_by_key(|word| word.len()).unwrap_or_default();
        let word = word.to_owned();
        (!text.is_empty()).then_some(Self {
            text,
            is_exact,
            word,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a line of JSON may hold the text. Never misses one.
    pub(crate) fn may_be_in(&self, json: &str) -> bool {
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

    /// Returns the places of the text in a line, in bytes.
    pub(crate) fn ranges(&self, line: &str) -> Vec<std::ops::Range<usize>> {
        let folded;
        let line = match self.is_exact {
            true => line,
            false => {
                folded = lower(line);
                &folded
            }
        };
        let found = memmem::find_iter(line.as_bytes(), self.text.as_bytes());
        found.map(|at| at..at + self.text.len()).collect()
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

/// Returns the lines on which hits start. A hit may go on over the end of a line.
pub(crate) fn lines_with(lines: &[StyledLine], needle: &Needle) -> Vec<usize> {
    let (mut text, mut starts) = (String::new(), Vec::new());
    for line in lines {
        starts.push(text.len());
        text.push_str(line.text().trim());
        text.push(' ');
    }
    let found = needle.ranges(&text).into_iter();
    found
        .map(|range| starts.partition_point(|start| *start <= range.start) - 1)
        .collect()
}

impl Session<'_> {
    /// Returns the next place with a text, and reports progress on the way.
    pub(crate) fn search(
        &self,
        displays: &mut Displays<'_, '_>,
        search: &Search,
        reply: &Reply,
    ) -> Result<Answer, String> {
        let parts = self.parts.len();
        let layout = Layout {
            width: search.width,
            ..Layout::default()
        };
        let mut bodies = Bodies::new(self.source);
        let mut reported = Instant::now();
        // The first part again at the end, for what is on the other side of the start.
        for step in 0..=parts {
            if self.wanted.load(Ordering::Relaxed) != search.id {
                return Ok(Answer::NotFound { id: search.id });
            }
            if reported.elapsed() > Duration::from_millis(200) {
                reported = Instant::now();
                let percent = step * 100 / parts.max(1);
                reply(Answer::Searching {
                    id: search.id,
                    percent,
                });
            }
            let part = match search.is_backward {
                false => (search.part + step) % parts.max(1),
                true => (search.part + parts - step % parts.max(1)) % parts.max(1),
            };
            if !self.may_have(&mut bodies, part, &search.needle) {
                continue;
            }
            let main = self.conversation(displays, part)?;
            let page = self.lay(displays, main, part, &layout, &|_| Detail::Whole)?;
            let start = page.blocks.iter().position(|block| block.key == search.key);
            let mut hits: Vec<(usize, Key, usize)> = Vec::new();
            for (at, block) in page.blocks.iter().enumerate() {
                let lines = &page.lines[block.lines.clone()];
                let found = lines_with(lines, &search.needle).len();
                hits.extend((0..found).map(|hit| (at, block.key, hit)));
            }
            let is_first = step == 0;
            let wanted = |&(at, _, hit): &(usize, Key, usize)| {
                let from = (start.unwrap_or(0), search.hit);
                match (is_first, search.is_backward, from.1) {
                    (false, _, _) => true,
                    (_, false, Some(last)) => (at, hit) > (from.0, last),
                    (_, false, None) => at >= from.0,
                    (_, true, Some(last)) => (at, hit) < (from.0, last),
                    (_, true, None) => at < from.0,
                }
            };
            let found = match search.is_backward {
                false => hits.iter().find(|hit| wanted(hit)),
                true => hits.iter().rev().find(|hit| wanted(hit)),
            };
            if let Some(&(_, key, hit)) = found {
                let is_wrapped = match search.is_backward {
                    false => part < search.part || step == parts,
                    true => part > search.part || step == parts,
                };
                return Ok(Answer::Found {
                    id: search.id,
                    part,
                    key,
                    hit,
                    is_wrapped,
                });
            }
        }
        Ok(Answer::NotFound { id: search.id })
    }

    /// Returns whether a part may have a text: its longest word is in one of its lines.
    fn may_have(&self, bodies: &mut Bodies<'_>, part: usize, needle: &Needle) -> bool {
        let Some(entries) = self.parts.get(part) else {
            return false;
        };
        self.path.entries[entries.clone()].iter().any(|entry| {
            let body = bodies.get(&self.entry(entry.entry_no()));
            body.map_or(true, |body| needle.may_be_in(body.text))
        })
    }
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
    fn a_line_of_json_without_the_longest_word_is_passed_over() {
        let needle = Needle::new("say \"Größe\" twice").unwrap();
        assert!(Needle::new("twice").unwrap().may_be_in(r#"{"a":"TWICE"}"#));
        assert!(!Needle::new("twice").unwrap().may_be_in(r#"{"a":"once"}"#));
        assert!(!Needle::new("Twice").unwrap().may_be_in(r#"{"a":"twice"}"#));
        assert!(needle.may_be_in("{\"a\":\"say \\\"Gr\\u00f6\\u00dfe\\\" Twice twice\"}"));
        assert!(Needle::new("日").unwrap().may_be_in("{}"));
    }
}
