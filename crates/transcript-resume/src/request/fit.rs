//! The tokens of a request, and what is omitted of one that is too long.

use transcript_format::scan::Flags;
use transcript_messages::{
    FitLimit, Log, Message, Origins, TokenEstimate, fit, within_request_limits,
};
use transcript_reader::{EntryNo, Index};

use super::Request;
use crate::branches::is_prompt;
use crate::path::ConversationPath;

/// How many turns at the end of a conversation are never omitted, by default.
const TURNS: usize = 2;

/// How long a request may be. What is too much is omitted under [`Policy::Recover`](crate::Policy::Recover); under
/// [`Policy::Vendor`](crate::Policy::Vendor) it has no effect, as the client sends all.
///
/// Images and documents are omitted first, then results of tools, then whole turns, each from the start of the
/// conversation and only as far as needed; a note in the place of each says where it is in the session. The summary of a
/// compaction and the last turns stay. If those alone are too long the request is, too: [`Request::tokens`] says so.
///
/// Tokens are [estimated](Request::tokens), so that the real number may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Fit {
    max: u64,
    is_window: bool,
    turns: usize,
}

impl Fit {
    /// Limits the tokens of the messages alone.
    pub fn messages(max: u64) -> Self {
        Self {
            max,
            is_window: false,
            turns: TURNS,
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

    /// Returns by how many tokens a request is longer than the limit.
    #[must_use]
    pub fn surplus(&self, tokens: &RequestTokens) -> u64 {
        let tokens = match self.is_window {
            true => tokens.request,
            false => tokens.messages,
        };
        tokens.saturating_sub(self.max)
    }

    /// Sets how many turns at the end are never omitted; 2 by default. A turn starts with a prompt of a person. With 0
    /// only the last prompt, and the last answer with the results of its calls, stay.
    pub fn keep_turns(mut self, turns: usize) -> Self {
        self.turns = turns;
        self
    }
}

/// The tokens of an answer and its request, as the API counted them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedTokens {
    /// The origin of the blocks of the answer.
    pub(super) answer: usize,
    pub(super) tokens: u64,
}

/// Returns what was counted for an answer, if it comes after the last compaction of its path: the request of one that a
/// compaction preserved had other messages.
pub(super) fn since_boundary(
    recorded: Option<RecordedTokens>,
    path: &ConversationPath,
    index: &Index,
) -> Option<RecordedTokens> {
    let numbers = path.entries.iter().map(|entry| entry.entry_no());
    let boundaries = numbers.filter(|number| index.entry(*number).is_boundary());
    let last = boundaries.max();
    recorded.filter(|recorded| last.is_none_or(|last| recorded.answer > last.get()))
}

/// The tokens of a request: see [`Request::tokens`].
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
    /// What the API counted for the last answer on the path and its request; `None` if no answer says it.
    pub recorded: Option<u64>,
}

/// How the tokens that the API counts follow from an estimate.
///
/// The estimate is too low for code and for newer models: what the API counted for the last answer shows by how much. Up
/// to a third more is taken for tokens of the messages; beyond that it is the system prompt and the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// The tokens of messages are the estimate times the first number by the second.
    factor: (u64, u64),
    /// What is added for the system prompt and the tools.
    rest: u64,
}

impl Scale {
    const HIGHEST: (u64, u64) = (4, 3);
    /// The estimate itself.
    const PLAIN: Self = Self {
        factor: (1, 1),
        rest: 0,
    };
    /// With a reserve, where nothing is known.
    const SAFE: Self = Self {
        factor: Self::HIGHEST,
        rest: 0,
    };

    /// Returns the scale by which an answer, and all before it, have `recorded` tokens where `estimated` were expected;
    /// `None` if that says nothing: some gateways count only a part.
    fn new(recorded: Option<u64>, estimated: u64) -> Option<Self> {
        let recorded = recorded?;
        if estimated == 0 || recorded < estimated / 2 {
            return None;
        }
        let highest = times(estimated, Self::HIGHEST);
        let factor = match recorded {
            _ if recorded <= estimated => (1, 1),
            _ if recorded <= highest => (recorded, estimated),
            _ => Self::HIGHEST,
        };
        let rest = recorded.saturating_sub(highest);
        Some(Self { factor, rest })
    }

    fn messages(self, estimated: u64) -> u64 {
        times(estimated, self.factor)
    }

    /// Returns the longest estimate of messages that are within a limit.
    fn most(self, fit: Fit) -> u64 {
        let max = match fit.is_window {
            true => fit.max.saturating_sub(self.rest),
            false => fit.max,
        };
        let (by, of) = self.factor;
        let most = ((u128::from(max) + 1) * u128::from(of) - 1) / u128::from(by);
        u64::try_from(most).unwrap_or(u64::MAX)
    }
}

fn times(number: u64, (by, of): (u64, u64)) -> u64 {
    let product = u128::from(number) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

impl Request {
    /// Estimates the tokens of the request, by [`TokenEstimate`] and by what the API counted for the last answer: the
    /// messages take up to a third more than estimated, and the rest of what was counted is the system prompt and the
    /// tools. Of a request that was made to [`Fit`], and no answer says what it took, a third is added.
    #[must_use]
    pub fn tokens(&self) -> RequestTokens {
        let estimate = Estimate::new(&self.messages, self.recorded);
        let scale = self.scale.or(estimate.scale()).unwrap_or(Scale::PLAIN);
        let messages = scale.messages(estimate.all.tokens);
        RequestTokens {
            request: messages.saturating_add(scale.rest),
            messages,
            unknown: estimate.all.unknown,
            recorded: self.recorded.map(|recorded| recorded.tokens),
        }
    }

    /// Omits what is too much.
    pub(super) fn fit(&mut self, limit: Fit, index: &Index) {
        let scale = Estimate::new(&self.messages, self.recorded).scale();
        let scale = scale.unwrap_or(Scale::SAFE);
        self.scale = Some(scale);
        let limit = FitLimit {
            tokens: scale.most(limit),
            turns: limit.turns,
        };
        let mut log = Log {
            synthetic: std::mem::take(&mut self.synthetic),
            omissions: std::mem::take(&mut self.omissions),
        };
        fit(&mut self.messages, limit, &Entries(index), &mut log);
        // Messages that were joined may have too many media together.
        within_request_limits(&mut self.messages, self.provider, &mut log);
        (self.synthetic, self.omissions) = (log.synthetic, log.omissions);
    }
}

/// The estimated tokens of messages.
struct Estimate {
    all: TokenEstimate,
    /// Up to the answer whose tokens are recorded; 0 if it is not sent.
    up_to_answer: u64,
    recorded: Option<u64>,
}

impl Estimate {
    fn new(messages: &[Message], recorded: Option<RecordedTokens>) -> Self {
        let answer = recorded.map(|recorded| recorded.answer);
        let mut all = TokenEstimate::default();
        let mut up_to_answer = 0;
        for block in messages.iter().flat_map(Message::blocks) {
            all = all + TokenEstimate::of(block);
            if answer.is_some() && block.origin() == answer {
                up_to_answer = all.tokens;
            }
        }
        Self {
            all,
            up_to_answer,
            recorded: recorded.map(|recorded| recorded.tokens),
        }
    }

    fn scale(&self) -> Option<Scale> {
        Scale::new(self.recorded, self.up_to_answer)
    }
}

/// The entries of an index as origins.
struct Entries<'i>(&'i Index);

impl Origins for Entries<'_> {
    fn place(&self, origin: usize) -> String {
        let entry = self.0.entry(EntryNo::new(origin));
        match (entry.known_line(), entry.uuid()) {
            (Some(line), _) => format!("line {line}"),
            (None, Some(id)) => format!("entry {}", self.0.id_text(id)),
            (None, None) => format!("byte {}", entry.offset()),
        }
    }

    fn is_prompt(&self, origin: usize) -> bool {
        let entry = self.0.entry(EntryNo::new(origin));
        is_prompt(&entry) && !entry.flags().contains(Flags::AUTOMATIC)
    }

    fn is_summary(&self, origin: usize) -> bool {
        let entry = self.0.entry(EntryNo::new(origin));
        entry.flags().contains(Flags::COMPACT_SUMMARY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_counted_beyond_a_third_more_is_the_system_prompt_and_the_tools() {
        for (recorded, estimated, messages, rest) in [
            (800, 900, 900, 0),
            (1_000, 900, 1_000, 0),
            (1_200, 900, 1_200, 0),
            (21_200, 900, 1_200, 20_000),
        ] {
            let scale = Scale::new(Some(recorded), estimated).expect("the numbers are usable");
            assert_eq!(scale.messages(estimated), messages, "{recorded:?}");
            assert_eq!(scale.rest, rest, "{recorded:?}");
            let most = scale.most(Fit::window(30_000));
            assert!(scale.messages(most) + rest <= 30_000, "{recorded:?}");
            assert!(scale.messages(scale.most(Fit::messages(700))) <= 700);
        }
        // Nothing is recorded, or too little, or for an answer that is not sent.
        for (recorded, estimated) in [(None, 900), (Some(400), 900), (Some(400), 0)] {
            assert_eq!(Scale::new(recorded, estimated), None, "{recorded:?}");
        }
    }
}
