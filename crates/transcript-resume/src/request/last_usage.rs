//! The tokens of the last answer that says them.

use transcript_format::object::{Object, Raw};
use transcript_format::usage::Usage;

use super::fit::RecordedTokens;

/// The most bytes that are kept unread.
const MAX_UNREAD: usize = 16 << 10;

/// Finds what the API counted for the last of many answers. Nearly every answer says it, so only a few are read.
#[derive(Clone, Debug, Default)]
pub(super) struct LastUsage {
    /// What was found so far.
    found: Option<RecordedTokens>,
    /// The `usage` of the answers after those that were read, one after the other, as JSON.
    unread: String,
    /// The origin of each of these answers, and where its `usage` starts.
    answers: Vec<(usize, usize)>,
}

impl LastUsage {
    /// Adds the `usage` of the next answer, which has this origin.
    pub(super) fn add(&mut self, answer: usize, usage: Raw<'_>) {
        self.answers.push((answer, self.unread.len()));
        self.unread.push_str(usage.text());
        if self.unread.len() > MAX_UNREAD {
            self.find();
        }
    }

    /// Returns what the last answer that says it took, with its request.
    pub(super) fn find(&mut self) -> Option<RecordedTokens> {
        let unread = std::mem::take(&mut self.unread);
        let mut end = unread.len();
        let mut answers = self.answers.drain(..).rev();
        let last = answers.find_map(|(answer, start)| {
            let usage = &unread[start..std::mem::replace(&mut end, start)];
            let usage = Object::parse(usage).ok().map(Usage::from);
            let tokens = usage?.context_tokens()?;
            Some(RecordedTokens { answer, tokens })
        });
        drop(answers);
        self.found = last.or(self.found);
        self.found
    }
}

impl From<Option<RecordedTokens>> for LastUsage {
    fn from(found: Option<RecordedTokens>) -> Self {
        Self {
            found,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_that_says_its_tokens_counts() {
        let mut usage = LastUsage::default();
        let mut add = |answer: usize, json: &str| {
            usage.add(answer, Raw::parse(json).expect("it is JSON"));
            usage.unread.len() <= MAX_UNREAD
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
        let found = |answer, tokens| Some(RecordedTokens { answer, tokens });
        assert_eq!(usage.find(), found(2, 5));
        assert_eq!(usage.find(), found(2, 5));
        usage.add(9, Raw::parse(&long).expect("it is JSON"));
        assert_eq!(usage.find(), found(9, 1));
    }
}
