//! The maximum length of a request, and its tokens by estimates and by counts of the API.

use std::collections::HashMap;

use transcript_messages::{Message, TokenEstimate};

use super::recorded_usage::RecordedTokens;

/// The default number of turns at the end of a conversation that are never omitted.
const DEFAULT_KEPT_TURNS: usize = 2;

/// The maximum length of a request. The parts beyond it are omitted under [`Policy::Recover`](crate::Policy::Recover); under
/// [`Policy::Vendor`](crate::Policy::Vendor) it has no effect, as the client sends all.
///
/// Images and documents are omitted first, then results of tools, then whole turns, each from the start of the
/// conversation and only as far as needed; a note in the place of each says where it is in the session. The summary of a
/// compaction and the last turns stay. If those alone are too long the request is, too: [`Request::tokens`](crate::request::Request::tokens) says so.
///
/// The requests of a growing conversation start with the same messages as often as possible, for which a provider has a
/// cache: the first one beyond the limit is cut to seven eighths of it, and the cut stays until the conversation has grown
/// by the eighth.
///
/// Tokens are [estimated](crate::request::Request::tokens), so that the real number may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Fit {
    max: u64,
    is_window: bool,
    pub(super) turns: usize,
}

impl Fit {
    /// Limits the tokens of the messages alone.
    pub fn messages(max: u64) -> Self {
        Self {
            max,
            is_window: false,
            turns: DEFAULT_KEPT_TURNS,
        }
    }

    /// Limits the tokens of the whole request to the context window of a model: the messages, and as much as the last
    /// answer shows that the system prompt and the tools took.
    pub fn window(max: u64) -> Self {
        Self {
            is_window: true,
            ..Self::messages(max)
        }
    }

    /// Returns by how many tokens a request is longer than the limit, with the [margin](RequestTokens::margin).
    #[must_use]
    pub fn surplus(&self, tokens: &RequestTokens) -> u64 {
        let estimated = if self.is_window {
            tokens.request
        } else {
            tokens.messages
        };
        let tokens = estimated.saturating_add(tokens.margin);
        tokens.saturating_sub(self.max)
    }

    /// Sets how many turns at the end are never omitted; 2 by default. A turn starts with a prompt of a person. With 0
    /// only the last prompt, and the last answer with the results of its calls, stay.
    pub fn keep_turns(mut self, turns: usize) -> Self {
        self.turns = turns;
        self
    }
}

/// The tokens of a request: see [`Request::tokens`](crate::request::Request::tokens).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestTokens {
    /// The estimated tokens of the whole request.
    pub request: u64,
    /// Of these, the tokens of the messages.
    pub messages: u64,
    /// The number of blocks whose tokens cannot be estimated, and that are not in the numbers above: see
    /// [`TokenEstimate::unknown`].
    pub unknown: usize,
    /// The tokens that the API counted for the last answer on the path and its request; `None` if no answer has a count.
    pub recorded: Option<u64>,
    /// The margin that is added to both numbers to compare them with a limit: a third of the messages, if the request was made to
    /// [`Fit`] and no answer shows how much the estimate is too low.
    pub margin: u64,
}

/// The factor from an estimate to the tokens that the API counts.
///
/// The estimate is too low for code and for newer models: the count of the API for the last answer shows by how much. Up
/// to a third more counts as tokens of the messages; the remainder as the system prompt and the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// The tokens of messages are the estimate times the first number by the second.
    factor: (u64, u64),
    /// The tokens of the system prompt and the tools.
    overhead: u64,
}

impl Scale {
    const MAX_FACTOR: (u64, u64) = (4, 3);
    /// The estimate itself.
    pub(super) const PLAIN: Self = Self {
        factor: (1, 1),
        overhead: 0,
    };
    /// With a margin, where nothing is known.
    pub(super) const SAFE: Self = Self {
        factor: Self::MAX_FACTOR,
        overhead: 0,
    };

    /// Returns the scale by which an answer, and all before it, have as many tokens as were recorded; `None` if that says
    /// nothing: some gateways count only a part.
    fn new(answer: &AnswerTokens) -> Option<Self> {
        let (recorded, estimated) = (answer.recorded, answer.with);
        if estimated == 0 || recorded < estimated / 2 {
            return None;
        }
        let highest = times(estimated, Self::MAX_FACTOR);
        let factor = match recorded {
            _ if recorded <= estimated => (1, 1),
            _ if recorded <= highest => (recorded, estimated),
            _ => Self::MAX_FACTOR,
        };
        let overhead = recorded.saturating_sub(highest);
        Some(Self { factor, overhead })
    }

    pub(super) fn messages(self, estimated: u64) -> u64 {
        times(estimated, self.factor)
    }

    pub(super) fn request(self, estimated: u64) -> u64 {
        self.messages(estimated).saturating_add(self.overhead)
    }

    /// Returns the longest estimate of messages that are within a limit.
    pub(super) fn max_estimate(self, fit: Fit) -> u64 {
        let max = if fit.is_window {
            fit.max.saturating_sub(self.overhead)
        } else {
            fit.max
        };
        let (by, of) = self.factor;
        let max_estimate = ((u128::from(max) + 1) * u128::from(of) - 1) / u128::from(by);
        u64::try_from(max_estimate).unwrap_or(u64::MAX)
    }
}

fn times(number: u64, (by, of): (u64, u64)) -> u64 {
    let product = u128::from(number) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// The estimated tokens of messages.
pub(super) struct Estimate {
    pub(super) all: TokenEstimate,
    /// The answers with a count of the API, in order.
    answers: Vec<AnswerTokens>,
}

/// The estimated tokens of an answer.
struct AnswerTokens {
    /// The tokens of the messages before it.
    before: u64,
    /// These, and its own.
    with: u64,
    /// The tokens that the API counted for it and its request.
    recorded: u64,
}

impl Estimate {
    pub(super) fn new(messages: &[Message], recorded: &[RecordedTokens]) -> Self {
        let recorded = recorded.iter().map(|of| (of.answer, of.tokens));
        let recorded: HashMap<usize, u64> = recorded.collect();
        let mut all = TokenEstimate::default();
        let mut answers: Vec<AnswerTokens> = Vec::new();
        let mut last = None;
        for block in messages.iter().flat_map(Message::blocks) {
            let before = all.tokens;
            all = all + TokenEstimate::of(block);
            let origin = block.origin();
            match origin.and_then(|origin| recorded.get(&origin)) {
                Some(_) if origin == last => {}
                Some(recorded) => answers.push(AnswerTokens {
                    before,
                    with: before,
                    recorded: *recorded,
                }),
                None => continue,
            }
            last = origin;
            if let Some(answer) = answers.last_mut() {
                answer.with = all.tokens;
            }
        }
        Self { all, answers }
    }

    /// Returns the scale that the last answer shows.
    pub(super) fn scale(&self) -> Option<Scale> {
        self.answers.last().and_then(Scale::new)
    }

    /// Returns the scale that the last answer shows whose request had all messages before it. That of a request beyond the
    /// limit may have been cut, unless more was counted than all of it is expected to take.
    pub(super) fn scale_within(&self, limit: Fit) -> Option<Scale> {
        self.answers.iter().fold(None, |scale, answer| {
            let expected: Scale = scale.unwrap_or(Scale::SAFE);
            let is_whole = answer.before <= expected.max_estimate(limit)
                || answer.recorded > expected.request(answer.with);
            Scale::new(answer).filter(|_| is_whole).or(scale)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(recorded: u64, with: u64) -> AnswerTokens {
        AnswerTokens {
            before: with.saturating_sub(10),
            with,
            recorded,
        }
    }

    #[test]
    fn count_of_a_request_that_may_have_been_cut_is_ignored() {
        let of = |answers: &[(u64, u64)]| {
            let answers = answers
                .iter()
                .map(|(recorded, with)| answer(*recorded, *with));
            let estimate = Estimate {
                all: TokenEstimate::default(),
                answers: answers.collect(),
            };
            estimate.scale_within(Fit::window(40_000))
        };
        let first = of(&[(21_200, 900)]);
        assert_eq!(first.map(|scale| scale.overhead), Some(20_000));
        // The second request is within the limit, the others are not.
        let second = of(&[(21_200, 900), (33_000, 10_000)]);
        assert_ne!(second, first);
        let cut = [
            (21_200, 900),
            (33_000, 10_000),
            (36_000, 20_000),
            (39_000, 30_000),
        ];
        assert_eq!(of(&cut), second);
        // One that took more than all of it is expected to had all of it.
        let whole = of(&[(21_200, 900), (33_000, 10_000), (90_000, 20_000)]);
        assert_eq!(whole.map(|scale| scale.overhead), Some(90_000 - 26_666));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(39_000, 60_000)]), None);
    }

    #[test]
    fn count_beyond_a_third_more_is_the_system_prompt_and_the_tools() {
        for (recorded, estimated, messages, overhead) in [
            (800, 900, 900, 0),
            (1_000, 900, 1_000, 0),
            (1_200, 900, 1_200, 0),
            (21_200, 900, 1_200, 20_000),
        ] {
            let scale = Scale::new(&answer(recorded, estimated)).expect("the numbers are usable");
            assert_eq!(scale.messages(estimated), messages, "{recorded:?}");
            assert_eq!(scale.overhead, overhead, "{recorded:?}");
            let max_estimate = scale.max_estimate(Fit::window(30_000));
            assert!(
                scale.messages(max_estimate) + overhead <= 30_000,
                "{recorded:?}"
            );
            assert!(scale.messages(scale.max_estimate(Fit::messages(700))) <= 700);
        }
        // Too little is recorded, or for nothing.
        for (recorded, estimated) in [(400, 900), (400, 0)] {
            let scale = Scale::new(&answer(recorded, estimated));
            assert_eq!(scale, None, "{recorded:?}");
        }
    }
}
