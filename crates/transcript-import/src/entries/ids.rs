//! Ids that depend only on what a line was made from.

use uuid::Uuid;

use crate::Agent;
use crate::conversation::{Conversation, NodeId};
use crate::place::Place;
use crate::time::Time;

/// The namespace of the ids of converted lines.
const NAMESPACE: Uuid = Uuid::from_u128(0x7c1d_90b4_5e0a_4b8e_9a57_3f6e_2d4c_81f3);

/// Where a line comes from, for its id.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    /// A value in a source; the number distinguishes nodes with the same place.
    Stored(Place, u32),
    /// Made for the request, after the line of this number.
    Made(u32),
}

/// For each node the number of those before it with the same origin.
#[derive(Debug)]
pub(super) struct Repeats(Vec<u32>);

impl Repeats {
    pub(super) fn of(of: &Conversation) -> Self {
        let mut repeats: Vec<u32> = Vec::with_capacity(of.ids().len());
        let mut before = None;
        for id in of.ids() {
            let origin = of.node(id).origin;
            let last = repeats.last().filter(|_| origin == before);
            repeats.push(last.map_or(0, |last| last.saturating_add(1)));
            before = origin;
        }
        Self(repeats)
    }

    /// Returns the origin of a node. `line` is the number of its line.
    pub(super) fn origin_of(&self, of: &Conversation, id: NodeId, line: u32) -> Origin {
        match of.node(id).origin {
            Some(place) => Origin::Stored(place, self.0[id.index()]),
            None => Origin::Made(line),
        }
    }
}

/// Returns the id of a line. `kind` distinguishes lines that come from one node.
pub(super) fn line_id(of: &Conversation, session: &str, kind: &str, origin: Origin) -> Uuid {
    let agent = of.agent.name();
    let key = match origin {
        Origin::Stored(place, number) => {
            let file = file_name(of, place);
            format!(
                "{agent}\n{session}\n{kind}\n{file}\n{}\n{number}",
                place.offset
            )
        }
        Origin::Made(line) => format!("{agent}\n{session}\n{kind}\n\n{line}"),
    };
    Uuid::new_v5(&NAMESPACE, key.as_bytes())
}

/// Returns the id of a response. It does not depend on the session: a fork inherits responses, and each is paid for once.
pub(super) fn response_id(of: &Conversation, nodes: ResponseNodes, origin: Origin) -> String {
    let agent = of.agent.name();
    let own = nodes.last.and_then(|last| of.responses.get(&last));
    if let Some(id) = own.filter(|_| of.agent == Agent::ClaudeDesktop) {
        // The API's own, which the transcripts of the same responses have, too.
        return id.to_string();
    }
    let stored = || of_record(of, nodes.first);
    let key = own.map(|own| own.to_string()).or_else(stored);
    let key = match (key, origin) {
        (Some(key), _) => format!("{agent}\nresponse\n{key}"),
        (None, Origin::Stored(place, number)) => {
            let time = of
                .node(nodes.first)
                .time
                .map(Time::text)
                .unwrap_or_default();
            let file = file_name(of, place);
            format!(
                "{agent}\nresponse\n{file}\n{}\n{number}\n{time}",
                place.offset
            )
        }
        (None, Origin::Made(line)) => format!("{agent}\nresponse\n{}\n{line}", of.metadata.id),
    };
    response_name(Uuid::new_v5(&NAMESPACE, key.as_bytes()))
}

/// Returns the name of a response with this id.
pub(super) fn response_name(id: Uuid) -> String {
    format!("msg_{}", id.simple())
}

/// The nodes that identify a response.
#[derive(Clone, Copy)]
pub(super) struct ResponseNodes {
    pub(super) first: NodeId,
    /// The one that has its tokens, once they are counted.
    pub(super) last: Option<NodeId>,
}

/// Returns what identifies a response in each copy of its record: newer versions of a message, and forks, repeat the record elsewhere.
fn of_record(of: &Conversation, first: NodeId) -> Option<String> {
    let node = of.node(first);
    let id = node.record_id?;
    let time = node.time.map(Time::text).unwrap_or_default();
    match of.agent {
        Agent::Gemini | Agent::Qwen | Agent::Copilot => Some(id.text().into()),
        // The ids are short, and unique in their session only.
        Agent::Pi => Some(format!("{}\n{time}", id.text())),
        // A fork gives its copies other ids. A message has a response for each of its steps.
        Agent::OpenCode => {
            let before = first.before().map(|id| of.node(id));
            let of_message = before.take_while(|node| node.record_id == Some(id));
            let steps = of_message.filter(|node| node.usage.is_some()).count();
            let model = node.model.unwrap_or_default();
            Some(format!("{time}\n{model}\n{steps}"))
        }
        // Both name responses apart from their records.
        Agent::Codex | Agent::ClaudeDesktop => None,
    }
}

/// Files keep their ids when they are moved to another folder, as an archived rollout is.
fn file_name(of: &Conversation, place: Place) -> String {
    let source = of.source(place.source);
    let name = crate::source::name_of(&source.path);
    match &source.version {
        // Other records may lie there in the newest version.
        Some(version) => format!("{name}\n{version}"),
        None => name.into_owned(),
    }
}
