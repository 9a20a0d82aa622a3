//! What of a session goes to the model.

use std::collections::HashSet;

use super::message::{Message, MessageFailure, MessagePart};
use super::part::PartKind;
use super::rows::Revert;
use super::session::Session;
use crate::calls::Missing;
use crate::content::{Body, NewContent};
use crate::conversation::{BranchKind, Conversation, NodeId};
use crate::node::NodeKind;
use crate::text::{Text, joined};

/// What OpenCode tells the model about a call whose result it does not have.
const MISSING: Missing = Missing {
    output: "[Tool execution was interrupted]",
    is_error: true,
};

/// What it sends in place of a result that was cleared.
const CLEARED: Missing = Missing {
    output: "[Old tool result content cleared]",
    is_error: false,
};

/// What it sends in place of a compaction that the person asked for, before the summary.
const COMPACTION_PROMPT: &str = "What did we do so far?";

/// What it sends in place of a task that the person gave to a subagent.
const SUBTASK_PROMPT: &str = "The following tool was executed by the user";

/// Chooses the live nodes and the branches.
pub(super) fn choose(to: &mut Conversation, session: Session) {
    let Session {
        mut messages,
        revert,
    } = session;
    if let Some(revert) = revert {
        let reverted = cut(&mut messages, &revert);
        to.branch(BranchKind::Rewound, reverted);
    }
    let (compacted, sent) = compact(messages);
    let unsent = |messages: &[Message]| -> Vec<NodeId> {
        let parts = messages.iter().flat_map(|message| &message.parts);
        parts.flat_map(|part| part.nodes.clone()).collect()
    };
    to.branch(BranchKind::Compacted, unsent(&compacted));
    for message in &sent {
        let nodes = if message.is_of_model {
            response(to, message)
        } else {
            prompt(to, message)
        };
        to.live.extend(nodes);
    }
}

/// Removes what is reverted, and returns its nodes.
fn cut(messages: &mut Vec<Message>, revert: &Revert) -> Vec<NodeId> {
    let Some(first) = messages
        .iter()
        .position(|message| *message.id == *revert.message)
    else {
        return Vec::new();
    };
    let mut cut = messages.split_off(first);
    let mut nodes = Vec::new();
    if let Some(part) = &revert.part
        && let Some(mut message) = cut.drain(..1).next()
    {
        let parts = &mut message.parts;
        let at = parts.iter().position(|found| *found.id == **part);
        let removed = parts.split_off(at.unwrap_or(parts.len()));
        nodes.extend(removed.into_iter().flat_map(|part| part.nodes));
        messages.push(message);
    }
    let parts = cut.into_iter().flat_map(|message| message.parts);
    nodes.extend(parts.flat_map(|part| part.nodes));
    nodes
}

/// Divides messages at the last compaction that has a summary. Returns those that the summary replaces, and the others in the
/// order in which they are sent: the summary, what it keeps, and what follows.
fn compact(mut messages: Vec<Message>) -> (Vec<Message>, Vec<Message>) {
    let summaries = messages.iter().filter(|message| message.is_summary);
    let done: HashSet<Box<str>> = summaries.filter_map(|m| m.parent.clone()).collect();
    let is_compaction = |message: &Message| {
        !message.is_of_model && done.contains(&*message.id) && kept_from(message).is_some()
    };
    let Some(start) = messages.iter().rposition(is_compaction) else {
        return (Vec::new(), messages);
    };
    let mut later = messages.split_off(start);
    let kept_from = kept_from(&later[0]).flatten();
    let kept = messages
        .iter()
        .position(|message| Some(&*message.id) == kept_from.as_deref());
    let kept = messages.split_off(kept.unwrap_or(messages.len()));
    let id = later[0].id.clone();
    let is_summary =
        |message: &Message| message.is_summary && message.parent.as_deref() == Some(&*id);
    let summary = later.iter().position(is_summary).unwrap_or_default();
    let rest = later.split_off(summary + 1);
    later.extend(kept);
    later.extend(rest);
    (messages, later)
}

/// Returns from which message on a compaction keeps messages; `None` when the message is not a compaction.
fn kept_from(message: &Message) -> Option<Option<Box<str>>> {
    message.parts.iter().find_map(|part| match &part.kind {
        PartKind::Compaction { kept_from } => Some(kept_from.clone()),
        _ => None,
    })
}

/// Returns the node of a prompt: its texts, a line each, and its images.
fn prompt(to: &mut Conversation, message: &Message) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    for part in &message.parts {
        match part.kind {
            PartKind::Said => nodes.extend(&part.nodes),
            PartKind::Compaction { .. } => {
                let content = NewContent::text(Text::held(COMPACTION_PROMPT));
                nodes.push(to.make(NodeKind::User, content, Vec::new()));
            }
            PartKind::Subtask => {
                let content = NewContent::text(Text::held(SUBTASK_PROMPT));
                nodes.push(to.make(NodeKind::User, content, Vec::new()));
                to.branch(BranchKind::Unsent, part.nodes.to_vec());
            }
            _ => to.branch(BranchKind::Unsent, part.nodes.to_vec()),
        }
    }
    if nodes.len() < 2 {
        return nodes;
    }
    let contents = || nodes.iter().map(|id| to.stored(*id));
    let texts: Vec<&Text> = contents().filter_map(|content| content.text).collect();
    let body = match &texts[..] {
        [] => Body::None,
        texts => Body::Text(joined(texts.iter().copied(), "\n")),
    };
    let content = NewContent {
        body,
        images: contents()
            .flat_map(|content| content.images.iter().cloned())
            .collect(),
        ..NewContent::default()
    };
    vec![to.make(NodeKind::User, content, nodes)]
}

/// Returns the nodes of a response, with the results of each step after it. A response that failed is not sent, one that the
/// person stopped is sent as far as it came.
fn response(to: &mut Conversation, message: &Message) -> Vec<NodeId> {
    let is_thought = |to: &Conversation, part: &MessagePart| {
        let mut nodes = part.nodes.iter();
        part.kind == PartKind::StepStart
            || nodes.len() > 0 && nodes.all(|id| to.node(*id).kind == NodeKind::Reasoning)
    };
    let is_sent = match message.failure {
        None => true,
        Some(MessageFailure::Failed) => false,
        Some(MessageFailure::Stopped) => !message.parts.iter().all(|part| is_thought(to, part)),
    };
    if !is_sent {
        let nodes = message.parts.iter().flat_map(|part| part.nodes.clone());
        to.branch(BranchKind::Unsent, nodes.collect());
        return Vec::new();
    }
    let mut nodes = Vec::new();
    let mut results = Vec::new();
    for part in &message.parts {
        match (&part.kind, &part.nodes[..]) {
            (PartKind::StepStart, _) => nodes.append(&mut results),
            (PartKind::Tool { is_cleared }, [call, result @ ..]) => {
                nodes.push(*call);
                results.push(match (result, is_cleared) {
                    ([], _) => MISSING.result_of(to, *call),
                    (stored, true) => {
                        to.branch(BranchKind::Compacted, stored.to_vec());
                        CLEARED.result_of(to, *call)
                    }
                    ([stored, ..], false) => *stored,
                });
            }
            (_, said) => nodes.extend(said),
        }
    }
    nodes.append(&mut results);
    nodes
}
