//! The second projection of a rollout: events that show people what the items already hold.
//!
//! When an item is lost, its event still has the text. Events of items that are there hold nothing new, and are not kept.

use compact_str::CompactString;
use transcript_format::object::{Object, Raw};

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::item::fingerprint_of;
use crate::content::{Body, Input, NewContent};
use crate::conversation::{Conversation, NewNode, NodeId};
use crate::ids::Id;
use crate::lines::Record;
use crate::node::NodeKind;
use crate::place::Place;
use crate::strings::{body_of, small};
use crate::text::Text;
use crate::time::Time;
use crate::value::one_or_joined;

/// An event that shows an item.
pub(super) struct Echo {
    pub(super) place: Place,
    time: Option<Time>,
    pub(super) ordinal: Option<u64>,
    /// The number of steps before it.
    pub(super) after: usize,
    pub(super) shown: Shown,
}

/// What an event shows.
pub(super) enum Shown {
    /// A text with its [fingerprint](super::item::Item::fingerprint).
    Text(NodeKind, Text, u64),
    /// A command: the id of its call, the command line, and its output.
    Command(CompactString, Input, Text),
}

impl Echo {
    /// Returns what an event, with its `item` if it has one, shows. It comes after a number of steps. `None` for other events.
    pub(super) fn of(
        record: &Record<'_>,
        payload: &Object<'_>,
        item: Option<&Object<'_>>,
        after: usize,
    ) -> Option<Self> {
        Some(Self {
            place: record.place,
            time: record.time("timestamp"),
            ordinal: record.object.u64("ordinal"),
            after,
            shown: shown(record, payload, item)?,
        })
    }
}

/// Matches events with the items that they show, which come shortly before or after them: each item with the first event that has
/// its text.
#[derive(Default)]
pub(super) struct Matches {
    /// The numbers of items without an event so far.
    items: HashMap<Key, usize>,
    /// The events without an item so far, by their numbers.
    echoes: BTreeMap<usize, Echo>,
    /// The numbers of these events, in their order.
    numbers: HashMap<Key, VecDeque<usize>>,
    /// The ids of all calls.
    calls: HashSet<Id>,
    next: usize,
}

/// The kind and the [fingerprint](super::item::Item::fingerprint) of a text.
type Key = (NodeKind, u64);

impl Matches {
    /// Adds an item with a text.
    pub(super) fn add_text(&mut self, kind: NodeKind, fingerprint: u64) {
        let key = (kind, fingerprint);
        let Some(numbers) = self.numbers.get_mut(&key) else {
            *self.items.entry(key).or_default() += 1;
            return;
        };
        if let Some(number) = numbers.pop_front() {
            self.echoes.remove(&number);
        }
        if numbers.is_empty() {
            self.numbers.remove(&key);
        }
    }

    /// Adds a call or a result.
    pub(super) fn add_call(&mut self, id: &str) {
        self.calls.insert(Id::of(id));
    }

    /// Returns whether the item of an event is among the calls so far.
    pub(super) fn has_call(&self, item: &Object<'_>) -> bool {
        let id = Id::in_field(item, "id");
        id.is_some_and(|id| self.calls.contains(&id))
    }

    /// Adds an event.
    pub(super) fn add_echo(&mut self, echo: Echo) {
        if let Shown::Text(kind, _, fingerprint) = &echo.shown {
            let key = (*kind, *fingerprint);
            if let Some(count) = self.items.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.items.remove(&key);
                }
                return;
            }
            // White space shows nothing.
            if *fingerprint == fingerprint_of(&[], false) {
                return;
            }
            self.numbers.entry(key).or_default().push_back(self.next);
        }
        self.echoes.insert(self.next, echo);
        self.next += 1;
    }

    /// Returns the events that show what no item holds, in their order.
    pub(super) fn lost(self) -> impl Iterator<Item = Echo> {
        let calls = self.calls;
        self.echoes
            .into_values()
            .filter(move |echo| match &echo.shown {
                Shown::Text(..) => true,
                Shown::Command(id, ..) => !calls.contains(&Id::of(id)),
            })
    }
}

fn shown(record: &Record<'_>, payload: &Object<'_>, item: Option<&Object<'_>>) -> Option<Shown> {
    let text = |kind, key| {
        let body = payload.get(key).and_then(body_of)?;
        Some(text_of(record, kind, &[body]))
    };
    match &*payload.str("type")? {
        "user_message" => text(NodeKind::User, "message"),
        "agent_message" => text(NodeKind::Assistant, "message"),
        "agent_reasoning" => text(NodeKind::Reasoning, "text"),
        "item_completed" => shown_item(record, item?),
        _ => None,
    }
}

fn shown_item(record: &Record<'_>, item: &Object<'_>) -> Option<Shown> {
    let texts = |kind, key| Some(text_of(record, kind, &bodies_of(item, key)));
    match &*item.str("type")? {
        "UserMessage" => texts(NodeKind::User, "content"),
        "AgentMessage" => texts(NodeKind::Assistant, "content"),
        "Reasoning" => texts(NodeKind::Reasoning, "summary_text"),
        // The command of a person is sent as a prompt.
        "CommandExecution" if item.str("source").is_none_or(|by| by != "user_shell") => {
            let input = record.input_of(item.get("command"));
            let output = record.text(item, "aggregated_output");
            let output = output.unwrap_or_else(|| Text::held(""));
            Some(Shown::Command(small(item, "id")?, input, output))
        }
        _ => None,
    }
}

fn text_of(record: &Record<'_>, kind: NodeKind, bodies: &[&str]) -> Shown {
    let texts = bodies.iter().map(|body| record.text_of_body(body));
    let text = one_or_joined(texts.collect());
    Shown::Text(kind, text, fingerprint_of(bodies, false))
}

/// Returns the bodies of a list of texts, or of objects with texts.
fn bodies_of<'a>(item: &Object<'a>, key: &str) -> Vec<&'a str> {
    let parts: Vec<Raw<'a>> = item.array(key).unwrap_or_default();
    let bodies = parts.into_iter().filter_map(|part| match part.object() {
        Some(part) => part.get("text").and_then(body_of),
        None => body_of(part),
    });
    bodies.collect()
}

impl Echo {
    /// Makes the nodes that it shows.
    pub(super) fn nodes(&self, to: &mut Conversation) -> Vec<NodeId> {
        let mut add = |kind, content| {
            let mut node = NewNode::new(kind, content);
            node.origin = Some(self.place);
            node.time.clone_from(&self.time);
            to.add(node)
        };
        match &self.shown {
            Shown::Text(kind, text, _) => vec![add(*kind, NewContent::text(text.clone()))],
            Shown::Command(id, input, output) => {
                let call = NewContent {
                    name: Some("exec_command".into()),
                    call_id: Some(id.clone()),
                    body: Body::Input(input.clone()),
                    ..NewContent::default()
                };
                let result = NewContent {
                    call_id: Some(id.clone()),
                    body: Body::Output(output.clone()),
                    ..NewContent::default()
                };
                vec![
                    add(NodeKind::ToolCall, call),
                    add(NodeKind::ToolResult, result),
                ]
            }
        }
    }
}
