//! A message and its parts.

use std::borrow::Cow;
use std::sync::Arc;

use transcript_format::object::Object;

use super::part::{self, PartKind, known_name};
use super::rows::{Row, repaired, usage};
use super::texts::RowTexts;
use crate::conversation::{Conversation, DamageKind, Holds, NewNode, NodeId, Part};
use crate::node::Usage;
use crate::node_ids::NodeIds;
use crate::nodes::Name;
use crate::place::Place;
use crate::record_id::RecordId;
use crate::strings::string;

/// A message.
pub(super) struct Message {
    pub(super) id: Arc<str>,
    pub(super) is_of_model: bool,
    /// When it was made, in milliseconds.
    pub(super) created: i64,
    /// The message that a response answers.
    pub(super) parent: Option<Box<str>>,
    /// Whether it is the whole summary of a compaction.
    pub(super) is_summary: bool,
    pub(super) failure: Option<MessageFailure>,
    pub(super) model: Option<Name>,
    pub(super) usage: Option<Box<Usage>>,
    pub(super) parts: Vec<MessagePart>,
}

/// How a response failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageFailure {
    /// The person stopped it.
    Stopped,
    /// The provider failed, or the response was not usable.
    Failed,
}

/// A part of a message.
pub(super) struct MessagePart {
    pub(super) id: Box<str>,
    pub(super) kind: PartKind,
    pub(super) nodes: NodeIds,
    /// The tokens of the step that ends with it.
    pub(super) step: Option<Box<Usage>>,
}

/// Notes what a row holds. Rows without nodes that follow each other and are alike are one part: most rows are such.
pub(super) fn hold(to: &mut Conversation, place: Place, holds: Holds) {
    /// How far the row before may be: the rows of the tables come by turns.
    const RECENT: usize = 8;
    let is_alike = match &holds {
        Holds::Metadata(_) => true,
        // Those of unknown types are counted by their parts.
        Holds::Raw(name) => !to.unknown.contains_key(&**name),
        Holds::Nodes(_) | Holds::Damaged => false,
    };
    let mut recent = to.parts.iter_mut().rev().take(RECENT);
    let before = recent.find(|part| part.place.source == place.source);
    match before.filter(|part| is_alike && part.holds == holds) {
        Some(part) if part.place.range().end == place.offset => part.place.len += place.len,
        _ => to.parts.push(Part { place, holds }),
    }
}

/// Returns the text of a row as JSON, and reports its damage.
pub(super) fn json_of<'r>(to: &mut Conversation, row: &'r Row) -> Option<Cow<'r, str>> {
    if !row.is_utf8 {
        to.report(row.place, DamageKind::InvalidUtf8);
    }
    if Object::parse(&row.data).is_ok() {
        return Some(Cow::Borrowed(&row.data));
    }
    let text = repaired(&row.data).filter(|text| Object::parse(text).is_ok());
    let damage = match text {
        Some(_) => DamageKind::TornRecord,
        None => DamageKind::NoRecord,
    };
    to.report(row.place, damage);
    text.map(Cow::Owned)
}

/// Reads the row of a message; `None` when it is damaged.
pub(super) fn read_message(to: &mut Conversation, row: &Row) -> Option<Message> {
    let text = json_of(to, row);
    let info = text.as_deref().and_then(|text| Object::parse(text).ok());
    let Some(info) = info else {
        hold(to, row.place, Holds::Damaged);
        return None;
    };
    hold(to, row.place, Holds::Metadata("message"));
    Some(Message::of_json(to, &info, &row.id, row.order))
}

/// Notes the tokens of the responses of a message, by its parts in their order: of each step, or of the message as a whole where its steps
/// do not name theirs.
pub(super) fn count_steps<'p>(
    to: &mut Conversation,
    parts: impl Iterator<Item = (&'p [NodeId], Option<Usage>)>,
    of_message: Option<Usage>,
) {
    let mut nodes = Vec::new();
    let mut has_steps = false;
    for (of_part, step) in parts {
        nodes.extend(of_part);
        if step.is_some() {
            has_steps = true;
            to.count(&nodes, step);
            nodes.clear();
        }
    }
    if !has_steps {
        to.count(&nodes, of_message);
    }
}

impl Message {
    /// Returns a message of which only parts are known.
    pub(super) fn stand_in(id: &str, created: i64, is_of_model: bool) -> Self {
        Self {
            id: id.into(),
            is_of_model,
            created,
            parent: None,
            is_summary: false,
            failure: None,
            model: None,
            usage: None,
            parts: Vec::new(),
        }
    }

    /// Reads the JSON of a message.
    pub(super) fn of_json(
        to: &mut Conversation,
        info: &Object<'_>,
        id: &str,
        created: i64,
    ) -> Self {
        let is = |key| info.bool(key) == Some(true);
        let failure = info.object("error").map(|error| match error.str("name") {
            Some(name) if name == "MessageAbortedError" => MessageFailure::Stopped,
            _ => MessageFailure::Failed,
        });
        let is_of_model = info.str("role").is_some_and(|role| role == "assistant");
        let is_finished = info.str("finish").is_some();
        let model = info
            .object("model")
            .and_then(|model| string(&model, "modelID"));
        Self {
            id: id.into(),
            is_of_model,
            created,
            parent: string(info, "parentID").map(Into::into),
            is_summary: is_of_model && is("summary") && is_finished && failure.is_none(),
            failure,
            model: string(info, "modelID")
                .or(model)
                .map(|model| to.name(&model)),
            usage: info.object("tokens").map(|tokens| Box::new(usage(&tokens))),
            parts: Vec::new(),
        }
    }
}

/// Adds the nodes of a part; `None` when its row is damaged.
pub(super) fn add_part(
    to: &mut Conversation,
    texts: &mut RowTexts,
    message: &Message,
    row: &Row,
) -> Option<MessagePart> {
    let Some(text) = json_of(to, row) else {
        hold(to, row.place, Holds::Damaged);
        return None;
    };
    let object = Object::parse(&text).ok()?;
    let read = part::read(&object, message.is_of_model, texts);
    let name = object.str("type").unwrap_or_default();
    let mut nodes = Vec::new();
    for (kind, content) in read.contents {
        let mut node = NewNode::new(kind, content);
        node.origin = Some(row.place);
        node.record_id = Some(RecordId::from(&message.id));
        node.time = Some(message.created.to_string().as_str().into());
        node.model = message.model.filter(|_| message.is_of_model);
        nodes.push(to.add(node));
    }
    let nodes = NodeIds::from(nodes);
    let holds = match (&read.kind, nodes.is_empty()) {
        (_, false) => Holds::Nodes(nodes.clone()),
        (PartKind::Unknown, true) => to.unknown(&name),
        _ => Holds::Raw(known_name(&name)),
    };
    hold(to, row.place, holds);
    let tokens = object.object("tokens").filter(|_| name == "step-finish");
    Some(MessagePart {
        id: row.id.as_str().into(),
        kind: read.kind,
        nodes,
        step: tokens.map(|tokens| Box::new(usage(&tokens))),
    })
}
