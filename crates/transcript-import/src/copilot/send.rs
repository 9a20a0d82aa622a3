//! What of a log of Copilot CLI goes to the model.

use std::collections::{HashMap, HashSet};

use super::events::{Events, Step};
use crate::calls::Missing;
use crate::content::NewContent;
use crate::conversation::{BranchKind, Conversation, NodeId};
use crate::node::NodeKind;
use crate::text::{Text, TextBuilder};
use compact_str::CompactString;

/// What Copilot CLI tells the model about a call whose result it does not have.
const MISSING: Missing = Missing {
    output: "Tool execution was interrupted before a result was recorded.",
    is_error: true,
};

/// Chooses the live nodes and the branches.
pub(super) fn choose(to: &mut Conversation, events: Events) {
    for nodes in events.subagents.into_values() {
        to.branch(BranchKind::Subagent, nodes);
    }
    let mut live = Vec::new();
    let mut prompts = Prompts::default();
    let mut last_summary = None;
    for step in events.steps {
        match step {
            Step::Node(node, typed) => {
                if let Some(typed) = typed {
                    prompts.texts.push(*typed);
                    prompts.nodes.push(node);
                }
                live.push(node);
            }
            Step::Compaction(summary) => {
                prompts.said_before = prompts.nodes.len();
                let older = last_summary.replace(summary);
                let is_prompt = |id: &NodeId| to.node(*id).kind == NodeKind::User;
                let gone = live.drain(..).filter(|id| !is_prompt(id));
                let gone: Vec<NodeId> = older.into_iter().chain(gone).collect();
                to.branch(BranchKind::Compacted, gone);
            }
        }
    }
    // Every compaction lists all prompts again, so only the message of the last one is made.
    if let Some(summary) = last_summary {
        live.insert(0, prompts.with_summary(to, summary));
    }
    to.live = in_order_of_calls(to, live);
}

/// All prompts so far.
#[derive(Default)]
struct Prompts {
    texts: Vec<Text>,
    nodes: Vec<NodeId>,
    /// The number of those before the last compaction.
    said_before: usize,
}

impl Prompts {
    /// Returns the message that takes the place of everything up to the last compaction.
    fn with_summary(&self, to: &mut Conversation, summary: NodeId) -> NodeId {
        let mut text = TextBuilder::default().held(
            "Some of the conversation history has been summarized to free up context.\n\n\
             You were originally given instructions from a user over one or more turns. \
             Here were the user messages:\n",
        );
        for prompt in &self.texts[..self.said_before] {
            text = text.held("<user_message>\n").text(prompt);
            text = text.held("\n</user_message>\n");
        }
        text = text.held("\nHere is a summary of the prior context:\n<summary>\n");
        if let Some(summary) = to.stored(summary).text {
            text = text.text(summary);
        }
        let text = text.held("\n</summary>\n").finish();
        let said = self.nodes[..self.said_before].iter().copied();
        let of = said.chain([summary]).collect();
        to.make(NodeKind::User, NewContent::text(text), of)
    }
}

/// Puts the results of the calls of a message behind them, in the order of the calls: they are stored as they were completed.
fn in_order_of_calls(to: &mut Conversation, nodes: Vec<NodeId>) -> Vec<NodeId> {
    let call_of = |to: &Conversation, id: NodeId| to.stored(id).call_id.map(CompactString::from);
    let is = |to: &Conversation, id: NodeId, kind| to.node(id).kind == kind;
    let mut results: HashMap<CompactString, NodeId> = HashMap::new();
    let calls: HashSet<CompactString> = nodes
        .iter()
        .filter(|id| is(to, **id, NodeKind::ToolCall))
        .filter_map(|id| call_of(to, *id))
        .collect();
    for id in nodes.iter().copied() {
        if is(to, id, NodeKind::ToolResult)
            && let Some(call) = call_of(to, id).filter(|call| calls.contains(call))
        {
            results.insert(call, id);
        }
    }
    let mut ordered = Vec::with_capacity(nodes.len());
    let mut open: Vec<NodeId> = Vec::new();
    let mut nodes = nodes.into_iter().peekable();
    while let Some(id) = nodes.next() {
        let is_answered = is(to, id, NodeKind::ToolResult)
            && call_of(to, id).is_some_and(|call| calls.contains(&call));
        if !is_answered {
            ordered.push(id);
        }
        if is(to, id, NodeKind::ToolCall) {
            open.push(id);
        }
        let continues = nodes.peek().is_some_and(|next| {
            is(to, *next, NodeKind::ToolCall) && to.node(*next).record_id == to.node(id).record_id
        });
        if continues {
            continue;
        }
        for call in std::mem::take(&mut open) {
            let result = call_of(to, call).and_then(|call| results.remove(&call));
            ordered.push(result.unwrap_or_else(|| MISSING.result_of(to, call)));
        }
    }
    ordered
}
