//! Says which lines are one answer, where a `message.id` alone does not: some gateways give all
//! answers the same id, or number the answers of each session.
//!
//! A prompt, also one from the queue, or a result between two lines proves that another answer has
//! begun, unless the line names one of the same id as its parent, or both have the same `requestId`:
//! the results of parallel calls are written between the lines of an answer. Lines of the
//! conversation and of a subagent are one answer only if one names the other as its parent.
//! [`Policy::Vendor`](crate::Policy::Vendor) goes by the id alone, as the client does.

use hashbrown::HashMap;
use transcript_format::kind::EntryKind;
use transcript_format::scan::{Flags, ToolRole};

use super::timeline::is_queued;
use super::{NodeId, OtherAnswers, Tree};
use crate::index::{EntryRef, MessageKey, RequestKey};

/// The number of entries above a line that are looked at for a message.
const MAX_ABOVE: usize = 64;

/// The entries of the conversation, or of one subagent, so far.
#[derive(Default)]
struct Lane {
    /// The number of prompts and of entries with results.
    turns: u32,
    /// The last lines with each id.
    answers: HashMap<MessageKey, LastAnswer>,
}

/// Returns whether an entry is a prompt or has a result.
#[must_use]
pub fn is_turn(entry: EntryRef<'_>) -> bool {
    is_queued(&entry)
        || entry.kind() == EntryKind::User
            && (!entry.flags().contains(Flags::META)
                || entry.tool_keys(ToolRole::Result).next().is_some())
}

/// The last lines with one id.
#[derive(Clone, Copy)]
struct LastAnswer {
    last: NodeId,
    request: Option<RequestKey>,
    turns: u32,
    /// The number of answers with this id before it.
    number: u32,
}

impl Tree<'_> {
    /// Returns the API message that an assistant entry is a line of. Under
    /// [`Policy::Recover`](crate::Policy::Recover) an id alone does not make lines one message.
    #[must_use]
    pub fn message(&self, node: NodeId) -> Option<MessageKey> {
        let entry = self.entry(node);
        let message = (entry.kind() == EntryKind::Assistant).then(|| entry.message())??;
        Some(self.other_answers.get(&node).copied().unwrap_or(message))
    }

    /// Finds the answers whose id an earlier one has as well. The links are those in the file.
    pub(crate) fn find_other_answers(&self) -> OtherAnswers {
        let mut lanes: HashMap<(bool, Option<&str>), Lane> = HashMap::new();
        // The number of answers with each id, in all lanes.
        let mut counts: HashMap<MessageKey, u32> = HashMap::new();
        let mut others = OtherAnswers::new();
        for node in self.nodes() {
            let entry = self.entry(node);
            let is_turn = self.is_turn(node);
            let id = match entry.kind() {
                EntryKind::Assistant => entry.message(),
                _ => None,
            };
            if !is_turn && id.is_none() {
                continue;
            }
            let is_side = entry.flags().contains(Flags::SIDECHAIN);
            let lane = lanes.entry((is_side, entry.agent())).or_default();
            let Some(id) = id else {
                lane.turns += 1;
                continue;
            };
            let mut line = LastAnswer {
                last: node,
                request: entry.request(),
                turns: lane.turns,
                number: 0,
            };
            let before = lane.answers.get(&id).copied();
            let is_same = |before: &LastAnswer| {
                before.turns == line.turns
                    || before.request.is_some() && before.request == line.request
            };
            let is_of = |above: &NodeId| self.entry(*above).message() == Some(id);
            match (before, self.turn_above(node).filter(is_of)) {
                (Some(before), _) if is_same(&before) => line.number = before.number,
                (Some(before), Some(above)) if above == before.last => line.number = before.number,
                (_, Some(above)) => {
                    others.extend(others.get(&above).copied().map(|key| (node, key)));
                    continue;
                }
                (_, None) => {
                    let count = counts.entry(id).or_default();
                    line.number = *count;
                    *count += 1;
                }
            }
            if line.number > 0 {
                others.insert(node, id.apart(line.number));
            }
            lane.answers.insert(id, line);
        }
        others
    }

    /// Returns whether the entry is a prompt or has a result.
    fn is_turn(&self, node: NodeId) -> bool {
        is_turn(self.entry(node))
    }

    /// Returns the next prompt, result or answer above a line.
    fn turn_above(&self, node: NodeId) -> Option<NodeId> {
        let mut above = self.ancestors(node).skip(1).take(MAX_ABOVE);
        above
            .find(|above| self.entry(*above).kind() == EntryKind::Assistant || self.is_turn(*above))
    }
}
