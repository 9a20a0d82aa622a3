//! The tokens of the responses of one rollout.
//!
//! Newer versions write a record with the tokens of each response. Older ones write the total of the thread after each, and again
//! without any response.

use transcript_format::object::Object;

use crate::conversation::{Conversation, NodeId};
use crate::node::Usage;

/// Finds the tokens of responses, record by record.
#[derive(Default)]
pub(super) struct ResponseTokens {
    /// The last item that the model wrote.
    last: Option<NodeId>,
    /// The last response with a record, with its turn. Where there is one, the totals repeat it.
    response: Option<String>,
    /// The last total, as it is written.
    total: Option<Usage>,
    /// The thread whose total it is: older forks begin with a copy of the other thread, its first record included.
    thread: String,
}

impl ResponseTokens {
    /// Takes the first record, or one that is copied from another thread.
    pub(super) fn header(&mut self, payload: &Object<'_>) {
        if let Some(thread) = payload.str("id").filter(|_| self.total.is_none()) {
            self.thread = thread.into_owned();
        }
    }

    /// Takes an item.
    pub(super) fn item(&mut self, to: &Conversation, node: NodeId) {
        if to.node(node).kind.is_of_model() {
            self.last = Some(node);
        }
    }

    /// Takes the record of a response.
    pub(super) fn record(&mut self, to: &mut Conversation, payload: &Object<'_>) {
        let usage = payload.object("usage").and_then(|usage| usage_of(&usage));
        let (Some(last), Some(usage)) = (self.last, usage) else {
            return;
        };
        let of = |key| payload.str(key).unwrap_or_default();
        let response = format!("{}\n{}", of("turn_id"), of("response_id"));
        // A line that is there twice is one response.
        if self.response.as_ref() != Some(&response) {
            note(to, last, usage, response.clone());
            self.response = Some(response);
        }
    }

    /// Takes a total, and returns it.
    pub(super) fn total(&mut self, to: &mut Conversation, info: &Object<'_>) -> Option<Usage> {
        let total = usage_of(&info.object("total_token_usage")?)?;
        let before = self.total.replace(total);
        let last = self.last.filter(|_| self.response.is_none());
        // It is repeated when the limits of the account change, and at the start of a run.
        if let Some(last) = last.filter(|_| before != Some(total)) {
            let usage = info.object("last_token_usage");
            let usage = usage.and_then(|usage| usage_of(&usage));
            let usage = usage.unwrap_or_else(|| difference(total, before.unwrap_or_default()));
            // Copies of a response are at the same total of the same thread.
            let key = format!(
                "{}\n{}\n{}\n{}",
                self.thread, total.input, total.cache_read, total.output
            );
            note(to, last, usage, key);
        }
        Some(total)
    }
}

/// Notes the tokens of the response that ends with a node. A second response without items, such as the summary of a compaction, is paid
/// for as well.
fn note(to: &mut Conversation, last: NodeId, usage: Usage, key: String) {
    *to.nodes.usage_mut(last) += usage;
    to.responses.entry(last).or_insert(key.into());
}

fn difference(total: Usage, before: Usage) -> Usage {
    Usage {
        input: total.input.saturating_sub(before.input),
        output: total.output.saturating_sub(before.output),
        cache_read: total.cache_read.saturating_sub(before.cache_read),
        cache_write: total.cache_write.saturating_sub(before.cache_write),
        reasoning: total.reasoning.saturating_sub(before.reasoning),
    }
}

fn usage_of(usage: &Object<'_>) -> Option<Usage> {
    let number = |key| usage.u64(key).unwrap_or_default();
    let usage = Usage {
        input: usage.u64("input_tokens")?,
        output: number("output_tokens"),
        cache_read: number("cached_input_tokens"),
        cache_write: number("cache_write_input_tokens"),
        reasoning: number("reasoning_output_tokens"),
    };
    Some(usage.of_whole_input())
}
