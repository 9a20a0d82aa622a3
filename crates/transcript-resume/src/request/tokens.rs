//! Counts and limits the tokens of a request.

use transcript_format::scan::Flags;
use transcript_messages::{FitLimit, Log, Origins, fit, within_request_limits};
use transcript_reader::{EntryNo, Index, is_prompt};

use super::Request;
use super::fit::{Estimate, Fit, RequestTokens, Scale};

impl Request {
    /// Estimates the tokens of the request, by [`TokenEstimate`](transcript_messages::TokenEstimate) and by the count of the API for the last answer: the
    /// messages take up to a third more than estimated, and the rest of that count is the system prompt and the
    /// tools. Of a request that was made to [`Fit`], the last answer counts whose request was surely within the limit, as
    /// later ones may have been cut.
    #[must_use]
    pub fn tokens(&self) -> RequestTokens {
        let estimate = Estimate::new(&self.messages, &self.recorded);
        let scale = self.scale.or(estimate.scale()).unwrap_or(Scale::PLAIN);
        let messages = scale.messages(estimate.all.tokens);
        let margin = if self.has_margin {
            Scale::SAFE.messages(messages) - messages
        } else {
            0
        };
        RequestTokens {
            request: scale.request(estimate.all.tokens),
            messages,
            unknown: estimate.all.unknown,
            recorded: self.recorded.last().map(|recorded| recorded.tokens),
            margin,
        }
    }

    /// Omits the parts beyond the limit.
    pub(super) fn fit(&mut self, limit: Fit, index: &Index) {
        let estimate = Estimate::new(&self.messages, &self.recorded);
        let scale = estimate.scale_within(limit);
        self.has_margin = scale.is_none();
        self.scale = Some(scale.unwrap_or(Scale::PLAIN));
        let limit = FitLimit {
            tokens: scale.unwrap_or(Scale::SAFE).max_estimate(limit),
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
