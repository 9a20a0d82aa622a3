//! The log of one file: messages, and changes to the list of messages.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use transcript_format::object::{Object, Raw};

use crate::content::NewContent;
use crate::conversation::{BranchKind, Conversation, Holds, NewNode, NodeId};
use crate::dialect::Policy;
use crate::escapes::Fingerprint;
use crate::ids::Id;
use crate::lines::{Form, Reading, Record};
use crate::node::{NodeKind, Usage};
use crate::node_ids::NodeIds;
use crate::nodes::Name;
use crate::parts::{Made, call_of, nodes_of};
use crate::record_id::RecordId;
use crate::strings::{objects, small, string};
use crate::text::{Text, TextBuilder};
use crate::time::Time;
use compact_str::CompactString;

/// The list of messages that the records so far lead to, and what they removed.
pub(super) struct Log {
    pub(super) list: Vec<Message>,
    pub(super) gone: Vec<(BranchKind, Vec<NodeId>)>,
    /// The places of the messages in the list, by id.
    places: HashMap<Id, usize>,
    /// What older records of a message say and newer ones leave out.
    details: HashMap<Id, Details>,
    /// The tokens of a message without text, with its id: its calls are the next message, which has none.
    uncounted: Option<(CompactString, Usage)>,
    /// The last list with a prompt or an answer, if one without took its place.
    wiped: Option<Vec<Message>>,
    policy: Policy,
}

/// A message of the list.
#[derive(Clone)]
pub(super) struct Message {
    id: Id,
    pub(super) nodes: NodeIds,
    /// Whether it goes to the model: notes and commands do not.
    pub(super) is_sent: bool,
    /// Whether it is a prompt or an answer.
    is_talk: bool,
    /// The fingerprint of its summary, if it is one.
    summary: Option<u64>,
}

/// What a resume leaves out when it writes a message again.
#[derive(Clone, Default)]
struct Details {
    model: Option<Name>,
    usage: Option<Box<Usage>>,
    /// Whether its tokens are those of nodes of another message, as it has none.
    is_counted_elsewhere: bool,
}

impl Log {
    /// Returns the log of a file that comes after another one of the session: messages have the details of their older records.
    pub(super) fn after(previous: Option<&mut Self>, policy: Policy) -> Self {
        Self {
            list: Vec::new(),
            gone: Vec::new(),
            places: HashMap::new(),
            details: previous
                .map(|log| std::mem::take(&mut log.details))
                .unwrap_or_default(),
            uncounted: None,
            wiped: None,
            policy,
        }
    }

    /// Returns whether there is something to resume.
    pub(super) fn is_resumable(&self) -> bool {
        is_resumable(&self.list)
    }

    /// Returns the nodes of all messages, those that were removed first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let gone = self.gone.iter().flat_map(|(_, nodes)| nodes);
        let list = self.list.iter().flat_map(|message| &message.nodes);
        gone.chain(list).copied()
    }

    /// Brings back the list that a load emptied.
    pub(super) fn undo_wipe(&mut self) {
        if self.is_resumable() {
            return;
        }
        if let Some(list) = self.wiped.take() {
            let empty = std::mem::replace(&mut self.list, list);
            let nodes = empty.into_iter().flat_map(|message| message.nodes);
            self.gone.push((BranchKind::Superseded, nodes.collect()));
            let live: BTreeSet<NodeId> = self.list.iter().flat_map(|m| m.nodes.clone()).collect();
            for (_, nodes) in &mut self.gone {
                nodes.retain(|id| !live.contains(id));
            }
        }
    }

    /// Puts a message into the list: in the place of an older one with its id, or at the end.
    fn put(&mut self, message: Message) {
        match self.places.get(&message.id) {
            Some(&place) => {
                let old = std::mem::replace(&mut self.list[place], message);
                self.gone.push((BranchKind::Superseded, old.nodes.into()));
            }
            None => {
                self.places.insert(message.id, self.list.len());
                self.list.push(message);
            }
        }
    }

    /// Removes a message and all after it; all messages when there is none with this id.
    fn rewind(&mut self, id: Id) {
        let place = self.places.get(&id).copied().unwrap_or_default();
        let removed = self.list.split_off(place);
        for message in &removed {
            self.places.remove(&message.id);
        }
        let nodes = removed.into_iter().flat_map(|message| message.nodes);
        self.gone.push((BranchKind::Rewound, nodes.collect()));
    }

    /// Takes another list.
    fn replace(&mut self, list: Vec<Message>) {
        self.places.clear();
        let old = std::mem::take(&mut self.list);
        for message in list {
            self.put(message);
        }
        let ids: HashSet<Id> = self.list.iter().map(|message| message.id).collect();
        let summary = |list: &[Message]| list.iter().find_map(|message| message.summary);
        let new_summary = summary(&self.list);
        let is_compaction = new_summary.is_some() && new_summary != summary(&old);
        let (again, gone): (Vec<&Message>, Vec<&Message>) =
            old.iter().partition(|message| ids.contains(&message.id));
        let nodes = |of: Vec<&Message>| of.iter().flat_map(|m| m.nodes.clone()).collect();
        let kind = if is_compaction {
            BranchKind::Compacted
        } else {
            BranchKind::Superseded
        };
        let removed = [(BranchKind::Superseded, nodes(again)), (kind, nodes(gone))];
        self.gone.extend(removed);
        if is_resumable(&old) && !self.is_resumable() {
            self.wiped = Some(old);
        }
    }

    /// Reads a message; `None` when it is of an unknown type.
    fn message(
        &mut self,
        to: &mut Conversation,
        record: &Record<'_>,
        message: &Object<'_>,
    ) -> Option<Message> {
        let kind = message.str("type")?;
        let made = match &*kind {
            "user" => nodes_of(record, message.get("content")?, false),
            "gemini" => answer(record, message),
            "info" | "error" | "warning" => {
                let content = message.get("content")?;
                let mut notes = nodes_of(record, content, false);
                notes
                    .iter_mut()
                    .for_each(|note| note.kind = NodeKind::Context);
                notes
            }
            _ => return None,
        };
        let id = Id::of(&message.str("id").unwrap_or_default());
        let text = || made.iter().find(|made| made.content.said().is_some());
        let is_command = || text().is_some_and(|made| made.start().starts_with(['/', '?']));
        let is_sent = match &*kind {
            "user" => !is_command(),
            kind => kind == "gemini",
        };
        let details = self.details.entry(id).or_default();
        if let Some(model) = message.str("model") {
            details.model = Some(to.name(&model));
            to.metadata.model = Some(model.into_owned());
        }
        if let Some(tokens) = message.object("tokens") {
            details.usage = Some(Box::new(usage_of(&tokens)));
        }
        let mut nodes = Vec::new();
        let mut summary = None;
        for mut made in made {
            made.kind = kind_of(&made);
            if made.kind == NodeKind::Summary && summary.is_none() {
                summary = made.body.map(Fingerprint::of_body);
            }
            nodes.push(add(to, record, message, made, details));
        }
        let usage = details.usage.as_deref().copied();
        if kind == "gemini" {
            self.count(to, message, &nodes, usage);
        }
        let is_talk =
            |id: &NodeId| !matches!(to.node(*id).kind, NodeKind::Context | NodeKind::Summary);
        Some(Message {
            id,
            is_talk: is_sent && nodes.iter().any(is_talk) || kind == "gemini",
            nodes: nodes.into(),
            is_sent,
            summary,
        })
    }

    /// Notes the tokens of an answer.
    fn count(
        &mut self,
        to: &mut Conversation,
        message: &Object<'_>,
        nodes: &[NodeId],
        usage: Option<Usage>,
    ) {
        let mut last = nodes.iter().rev().copied();
        let last = last.find(|id| to.node(*id).kind.is_of_model());
        let before = self.uncounted.take();
        let mut is_first = |id: &str| {
            let details = self.details.entry(Id::of(id)).or_default();
            !std::mem::replace(&mut details.is_counted_elsewhere, true)
        };
        match (usage, last, before) {
            (Some(mut usage), None, before) => {
                if let Some((_, more)) = before.filter(|(id, _)| is_first(id)) {
                    usage += more;
                }
                self.uncounted = small(message, "id").map(|id| (id, usage));
            }
            (Some(mut usage), Some(_), before) => {
                // The calls of the answer before were never stored: their tools are unknown.
                if let Some((_, more)) = before.filter(|(id, _)| is_first(id)) {
                    usage += more;
                }
                to.count(nodes, Some(usage));
            }
            (None, Some(last), Some((id, usage))) => {
                is_first(&id);
                to.count(nodes, Some(usage));
                // Its record has another id, and is written again with the calls of later answers.
                to.responses.insert(last, id.as_str().into());
            }
            (None, _, _) => {}
        }
    }

    /// Reads the messages of a file of an older version, which is one document; the header of a newer one has none.
    fn document(
        &mut self,
        to: &mut Conversation,
        record: &Record<'_>,
        document: &Object<'_>,
    ) -> Holds {
        let mut nodes = Vec::new();
        for message in objects(document.get("messages")) {
            if let Some(message) = self.message(to, record, &message) {
                nodes.extend(&message.nodes);
                self.put(message);
            }
        }
        if nodes.is_empty() {
            return Holds::Metadata("header");
        }
        Holds::Nodes(nodes.into())
    }

    fn set(&mut self, to: &mut Conversation, record: &Record<'_>, set: &Object<'_>) -> Holds {
        if let Some(summary) = string(set, "summary") {
            to.metadata.title = Some(summary);
        }
        let Some(messages) = set.get("messages") else {
            learn(to, set);
            return Holds::Metadata("$set");
        };
        let messages = objects(Some(messages));
        let list: Vec<Message> = messages
            .filter_map(|message| self.message(to, record, &message))
            .collect();
        let nodes: NodeIds = list
            .iter()
            .flat_map(|message| message.nodes.clone())
            .collect();
        self.replace(list);
        Holds::Nodes(nodes)
    }
}

fn is_resumable(list: &[Message]) -> bool {
    list.iter().any(|message| message.is_talk)
}

impl Reading for Log {
    fn is_record(object: &Object<'_>) -> bool {
        let has = |key| object.get(key).is_some();
        let is_message = has("id") && has("timestamp") && has("type") && has("content");
        let is_header = has("sessionId") && has("projectHash");
        is_message || is_header || has("$set") || has("$rewindTo")
    }

    fn is_torn_record(object: &Object<'_>) -> bool {
        let has = |key| object.get(key).is_some();
        let is_message = has("id") && has("timestamp") && has("type") && has("content");
        is_message || has("sessionId") && has("messages")
    }

    fn record(&mut self, to: &mut Conversation, record: &Record<'_>) -> Holds {
        // Gemini CLI skips lines that are not one record.
        if record.form.is_part() && self.policy == Policy::Vendor {
            return Holds::Damaged;
        }
        let object = &record.object;
        let is_known = || {
            let id = Id::in_field(object, "id");
            id.is_some_and(|id| self.places.contains_key(&id))
        };
        if record.form == Form::Torn && is_known() {
            // The older record of the message is whole.
            return Holds::Damaged;
        }
        if let Some(id) = Id::in_field(object, "$rewindTo") {
            self.rewind(id);
            return Holds::Raw(Cow::Borrowed("$rewindTo"));
        }
        if let Some(set) = object.object("$set") {
            return self.set(to, record, &set);
        }
        if object.get("$patch").is_some() {
            return Holds::Raw(Cow::Borrowed("$patch"));
        }
        if object.get("type").is_none() && object.str("sessionId").is_some() {
            learn(to, object);
            return self.document(to, record, object);
        }
        match self.message(to, record, object) {
            Some(message) => {
                let nodes = message.nodes.clone();
                self.put(message);
                Holds::Nodes(nodes)
            }
            None => {
                let kind = object.str("type").unwrap_or_default();
                to.unknown(&kind)
            }
        }
    }
}

fn learn(to: &mut Conversation, header: &Object<'_>) {
    let metadata = &mut to.metadata;
    if metadata.started.is_none() {
        metadata.started = string(header, "startTime");
    }
    if let Some(updated) = string(header, "lastUpdated") {
        metadata.updated = Some(updated);
    }
}

/// Returns the kind of a node by its text: Gemini CLI adds its own texts as prompts.
fn kind_of(made: &Made<'_>) -> NodeKind {
    match made.kind {
        NodeKind::User if made.start().starts_with("<session_context>") => NodeKind::Context,
        NodeKind::User if made.start().starts_with("<state_snapshot>") => NodeKind::Summary,
        kind => kind,
    }
}

fn add(
    to: &mut Conversation,
    record: &Record<'_>,
    message: &Object<'_>,
    made: Made<'_>,
    details: &Details,
) -> NodeId {
    let kind = made.kind;
    let mut node = NewNode::new(kind, made.content);
    node.origin = Some(record.place_of(made.place));
    node.record_id = message.str("id").map(|id| RecordId::from(&*id));
    node.time = message.str("timestamp").map(|time| Time::from(&*time));
    if !matches!(kind, NodeKind::User | NodeKind::Context | NodeKind::Summary) {
        node.model = details.model;
    }
    to.add(node)
}

/// Returns the nodes of an answer: thoughts, text, calls, and the results of the calls.
fn answer<'a>(record: &Record<'_>, message: &Object<'a>) -> Vec<Made<'a>> {
    let content = message.get("content");
    let said = content
        .map(|content| nodes_of(record, content, true))
        .unwrap_or_default();
    let is_complete =
        |made: &Made<'_>| matches!(made.kind, NodeKind::ToolCall | NodeKind::Reasoning);
    if said.iter().any(is_complete) {
        return said;
    }
    let thoughts = objects(message.get("thoughts")).map(|thought| {
        let mut text = TextBuilder::default();
        for (key, before) in [("subject", "**"), ("description", "** ")] {
            text = text.held(before);
            if let Some(field) = record.text(&thought, key) {
                text = text.text(&field);
            }
        }
        let content = NewContent::text(text.finish());
        made_of(NodeKind::Reasoning, content, thought.raw())
    });
    let mut nodes: Vec<Made<'a>> = thoughts.collect();
    let is_empty = |made: &Made<'_>| made.content.said().is_some_and(Text::is_empty);
    nodes.extend(said.into_iter().filter(|made| !is_empty(made)));
    let calls: Vec<Object<'a>> = objects(message.get("toolCalls")).collect();
    let made = calls.iter().map(|call| {
        made_of(
            NodeKind::ToolCall,
            call_of(record, call, "args"),
            call.raw(),
        )
    });
    nodes.extend(made);
    let results = calls.iter().filter_map(|call| call.get("result"));
    nodes.extend(results.flat_map(|result| nodes_of(record, result, false)));
    nodes
}

fn made_of(kind: NodeKind, content: NewContent, place: Raw<'_>) -> Made<'_> {
    Made {
        kind,
        content,
        place,
        body: None,
    }
}

/// Returns the tokens of a message. Its total is the sum of all but those of the cache, which are a part of the input; what tools of the
/// provider put into the prompt is counted apart.
fn usage_of(tokens: &Object<'_>) -> Usage {
    let number = |key| tokens.u64(key).unwrap_or_default();
    let usage = Usage {
        input: number("input").saturating_add(number("tool")),
        output: number("output"),
        cache_read: number("cached"),
        cache_write: 0,
        reasoning: number("thoughts"),
    };
    usage.of_whole_input().of_separate_thoughts()
}
