//! Results that agents make for calls without one when they send a conversation.

use crate::content::{Body, NewContent};
use crate::conversation::{Conversation, NodeId};
use crate::node::NodeKind;
use crate::text::{Text, joined};

/// The result that an agent makes for a call without one.
#[derive(Clone, Copy)]
pub(crate) struct Missing {
    pub(crate) output: &'static str,
    pub(crate) is_error: bool,
}

impl Missing {
    pub(crate) fn result_of(self, to: &mut Conversation, call: NodeId) -> NodeId {
        let content = NewContent {
            body: Body::Output(Text::held(self.output)),
            is_error: self.is_error,
            ..NewContent::default()
        };
        let result = to.make(NodeKind::ToolResult, content, Vec::new());
        to.nodes.set_call_of(result, call);
        result
    }

    /// Returns the nodes with a result for each call, which comes before the next message of the model or the person.
    pub(crate) fn complete(self, to: &mut Conversation, nodes: Vec<NodeId>) -> Vec<NodeId> {
        let mut open: Vec<NodeId> = Vec::new();
        let mut complete: Vec<NodeId> = Vec::with_capacity(nodes.len());
        for id in nodes {
            let node = to.node(id);
            let kind = node.kind;
            let of_record = complete.last().map(|last| to.node(*last).record_id);
            let starts = of_record.is_none_or(|record| record != node.record_id);
            match kind {
                NodeKind::ToolResult => {
                    let answered = to.stored(id).call_id;
                    open.retain(|call| to.stored(*call).call_id != answered);
                }
                NodeKind::Context => {}
                _ if starts => {
                    complete.extend(open.drain(..).map(|call| self.result_of(to, call)));
                }
                _ => {}
            }
            if kind == NodeKind::ToolCall {
                open.push(id);
            }
            complete.push(id);
        }
        complete.extend(open.into_iter().map(|call| self.result_of(to, call)));
        complete
    }
}

/// Returns the nodes with adjacent prompts joined, a line each.
pub(crate) fn join_prompts(to: &mut Conversation, nodes: Vec<NodeId>) -> Vec<NodeId> {
    let mut prompts = Vec::with_capacity(nodes.len());
    let mut runs = nodes.into_iter().peekable();
    let is_prompt = |to: &Conversation, id: NodeId| to.node(id).kind == NodeKind::User;
    while let Some(first) = runs.next() {
        let mut run = vec![first];
        while is_prompt(to, first)
            && let Some(next) = runs.next_if(|next| is_prompt(to, *next))
        {
            run.push(next);
        }
        if run.len() == 1 {
            prompts.push(first);
            continue;
        }
        let contents = || run.iter().map(|id| to.stored(*id));
        let texts = contents().filter_map(|content| content.text);
        let content = NewContent {
            body: Body::Text(joined(texts.filter(|text| !text.is_empty()), "\n")),
            images: contents()
                .flat_map(|content| content.images.iter().cloned())
                .collect(),
            ..NewContent::default()
        };
        prompts.push(to.make(NodeKind::User, content, run));
    }
    prompts
}
