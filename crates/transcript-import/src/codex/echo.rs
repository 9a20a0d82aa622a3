//! The second projection of a rollout: events that show people what the items already hold.
//!
//! When an item is lost, its event still has the text. Events of items that are there hold nothing new.

use std::borrow::Cow;

use transcript_format::json::Json;
use transcript_format::object::Object;

use crate::conversation::{Content, Conversation, Node, NodeId, NodeKind, Place};
use crate::lines::Record;

/// An event that shows an item.
pub(super) struct Echo {
    pub(super) place: Place,
    time: Option<String>,
    pub(super) ordinal: Option<u64>,
    /// The number of steps before it.
    pub(super) after: usize,
    pub(super) shown: Shown,
}

/// What an event shows.
pub(super) enum Shown {
    Text(NodeKind, String),
    /// A command: the id of its call, the command line, and its output.
    Command(String, Json, String),
}

impl Echo {
    pub(super) fn of(record: &Record<'_>, payload: &Object<'_>, after: usize) -> Option<Self> {
        Some(Self {
            place: record.place,
            time: record.string("timestamp"),
            ordinal: record.object.u64("ordinal"),
            after,
            shown: shown(payload)?,
        })
    }
}

fn shown(payload: &Object<'_>) -> Option<Shown> {
    let text = |object: &Object<'_>, key| object.str(key).map(Cow::into_owned);
    match &*payload.str("type")? {
        "user_message" => Some(Shown::Text(NodeKind::User, text(payload, "message")?)),
        "agent_message" => Some(Shown::Text(NodeKind::Assistant, text(payload, "message")?)),
        "agent_reasoning" => Some(Shown::Text(NodeKind::Reasoning, text(payload, "text")?)),
        "item_completed" => {
            let item = payload.object("item")?;
            match &*item.str("type")? {
                "UserMessage" => Some(Shown::Text(NodeKind::User, texts(&item, "content"))),
                "AgentMessage" => Some(Shown::Text(NodeKind::Assistant, texts(&item, "content"))),
                "Reasoning" => Some(Shown::Text(
                    NodeKind::Reasoning,
                    texts(&item, "summary_text"),
                )),
                // The command of a person is sent as a prompt.
                "CommandExecution" if item.str("source").is_none_or(|by| by != "user_shell") => {
                    let input = Json::from(item.get("command"));
                    let output = text(&item, "aggregated_output").unwrap_or_default();
                    Some(Shown::Command(text(&item, "id")?, input, output))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns the texts of a list of texts, or of objects with texts.
fn texts(item: &Object<'_>, key: &str) -> String {
    let parts = item.array(key).unwrap_or_default();
    let parts = parts.iter().filter_map(|part| match part.object() {
        Some(part) => part.str("text").map(Cow::into_owned),
        None => part.str().map(Cow::into_owned),
    });
    parts.collect::<Vec<_>>().join("\n")
}

impl Echo {
    /// Makes the nodes that it shows.
    pub(super) fn nodes(&self, to: &mut Conversation) -> Vec<NodeId> {
        let mut add = |kind, content| {
            let mut node = Node::new(kind, content);
            node.origin = Some(self.place);
            node.time.clone_from(&self.time);
            to.add(node)
        };
        match &self.shown {
            Shown::Text(kind, text) => vec![add(*kind, Content::text(text))],
            Shown::Command(id, input, output) => {
                let call = Content {
                    name: Some("exec_command".to_owned()),
                    call_id: Some(id.clone()),
                    input: Some(input.clone()),
                    ..Content::default()
                };
                let result = Content {
                    call_id: Some(id.clone()),
                    output: Some(output.clone()),
                    ..Content::default()
                };
                vec![
                    add(NodeKind::ToolCall, call),
                    add(NodeKind::ToolResult, result),
                ]
            }
        }
    }
}
