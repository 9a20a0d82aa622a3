//! The tokens that answers say they took.

use transcript_format::object::{Object, Raw};
use transcript_format::usage::Usage;

use transcript_reader::{ConversationPath, Index};

/// The maximum number of bytes that are kept unread.
const MAX_UNREAD: usize = 16 << 10;

/// The tokens of an answer and its request, as the API counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedTokens {
    /// The origin of the blocks of the answer.
    pub(super) answer: usize,
    pub(super) tokens: u64,
}

/// Finds the token counts of the API for answers: for the last one that has a `usage`, or for each. Nearly every answer has
/// one, so for the last one only a few are read.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedUsage {
    is_of_last: bool,
    /// The counts so far; only those of the last answer if `is_of_last`.
    found: Vec<RecordedTokens>,
    /// The `usage` of the answers after those that were read, one after the other, as JSON.
    unread: String,
    /// The origin of each of these answers, and the offset of its `usage`.
    answers: Vec<(usize, usize)>,
}

impl RecordedUsage {
    /// Keeps only the counts of the last answer.
    pub(super) fn of_last() -> Self {
        Self {
            is_of_last: true,
            ..Self::default()
        }
    }

    /// Adds the `usage` of the next answer, which has this origin.
    pub(super) fn add(&mut self, answer: usize, usage: Raw<'_>) {
        if !self.is_of_last {
            self.found.extend(read(answer, usage.text()));
            return;
        }
        self.answers.push((answer, self.unread.len()));
        self.unread.push_str(usage.text());
        if self.unread.len() > MAX_UNREAD {
            self.found();
        }
    }

    /// Adds what later answers say.
    pub(super) fn extend(&mut self, later: impl IntoIterator<Item = RecordedTokens>) {
        for recorded in later {
            if self.is_of_last {
                self.found.clear();
            }
            self.found.push(recorded);
        }
    }

    /// Returns the counts, in the order of the answers.
    pub(super) fn found(&mut self) -> &[RecordedTokens] {
        let unread = std::mem::take(&mut self.unread);
        let mut end = unread.len();
        let mut answers = self.answers.drain(..).rev();
        let last = answers.find_map(|(answer, start)| {
            let usage = &unread[start..std::mem::replace(&mut end, start)];
            read(answer, usage)
        });
        drop(answers);
        self.extend(last);
        &self.found
    }
}

fn read(answer: usize, usage: &str) -> Option<RecordedTokens> {
    let usage = Object::parse(usage).ok().map(Usage::from);
    let tokens = usage?.context_tokens()?;
    Some(RecordedTokens { answer, tokens })
}

/// Returns the counts of the answers after the last compaction of their path: the request of one that a compaction
/// preserved had other messages.
pub(super) fn since_boundary(
    recorded: &[RecordedTokens],
    path: &ConversationPath,
    index: &Index,
) -> Vec<RecordedTokens> {
    let numbers = path.entries.iter().map(|entry| entry.entry_no());
    let boundaries = numbers.filter(|number| index.entry(*number).is_boundary());
    let last = boundaries.max();
    let is_since = |one: &&RecordedTokens| last.is_none_or(|last| one.answer > last.get());
    recorded.iter().filter(is_since).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_that_says_its_tokens_counts_or_each() {
        let (mut last, mut all) = (RecordedUsage::of_last(), RecordedUsage::default());
        let mut add = |answer: usize, json: &str| {
            let usage = Raw::parse(json).expect("it is JSON");
            last.add(answer, usage);
            all.add(answer, usage);
            last.unread.len() <= MAX_UNREAD && all.unread.is_empty()
        };
        let long = format!(
            r#"{{"output_tokens":1,"other":"{}"}}"#,
            "x".repeat(MAX_UNREAD)
        );
        for (answer, json) in [
            (1, &*long),
            (2, r#"{"input_tokens":2,"output_tokens":3}"#),
            (3, r#"{"input_tokens":0}"#),
        ] {
            assert!(add(answer, json));
        }
        for answer in 4..2_000 {
            assert!(add(answer, r#"{"output_tokens":null}"#) && add(answer, "7"));
        }
        let found = |answer, tokens| RecordedTokens { answer, tokens };
        assert_eq!(last.found(), [found(2, 5)]);
        assert_eq!(last.found(), [found(2, 5)]);
        assert_eq!(all.found(), [found(1, 1), found(2, 5)]);
        last.add(9, Raw::parse(&long).expect("it is JSON"));
        assert_eq!(last.found(), [found(9, 1)]);
        for recorded in [&mut last, &mut all] {
            recorded.extend([found(10, 2), found(11, 3)]);
        }
        assert_eq!(last.found(), [found(11, 3)]);
        assert_eq!(all.found().last(), Some(&found(11, 3)));
    }
}
