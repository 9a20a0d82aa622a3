//! The events of one log.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use transcript_format::object::{Object, Raw};

use crate::content::{Body, Image, ImageData, NewContent};
use crate::conversation::{Conversation, Holds, NewNode, NodeId};
use crate::dialect::Policy;
use crate::ids::Id;
use crate::lines::{Form, Reading, Record};
use crate::node::{NodeKind, Usage};
use crate::parts::call_of;
use crate::strings::{objects, small, string};
use crate::text::Text;

/// The folder of sessions in the home folder.
pub(super) const FOLDER: &str = "session-state";

/// The name of the database of all sessions in the home folder.
#[cfg(feature = "sqlite")]
pub(crate) const DATABASE: &str = "session-store.db";

/// What the events of a log say.
pub(super) struct Events {
    pub(super) steps: Vec<Step>,
    /// What the subagents said, by their ids.
    pub(super) subagents: BTreeMap<String, Vec<NodeId>>,
    pub(super) has_header: bool,
    pub(super) policy: Policy,
    /// The ids of all events with their bytes.
    seen: HashSet<Id>,
    calls: HashSet<Id>,
    /// The tokens of requests whose answers have not come yet.
    pending: HashMap<Id, Usage>,
    /// The tokens of the runs that ended, and of the requests since then.
    ended: Usage,
    running: Usage,
}

/// A step of the conversation.
pub(super) enum Step {
    /// A message, a call or a result, with what the person typed if it is a prompt.
    Node(NodeId, Option<Box<Text>>),
    /// A summary takes the place of everything before it.
    Compaction(NodeId),
}

impl Events {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            steps: Vec::new(),
            subagents: BTreeMap::new(),
            has_header: false,
            policy,
            seen: HashSet::new(),
            calls: HashSet::new(),
            pending: HashMap::new(),
            ended: Usage::default(),
            running: Usage::default(),
        }
    }

    /// Returns the tokens of all runs. A run that ended says its total; of the others the requests are added.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = self.ended;
        usage += self.running;
        usage
    }

    fn header(&mut self, to: &mut Conversation, data: &Object<'_>) -> Holds {
        self.has_header = true;
        to.metadata.started = string(data, "startTime");
        to.metadata.version = string(data, "copilotVersion");
        let context = data.object("context");
        to.metadata.cwd = context.and_then(|context| string(&context, "cwd"));
        Holds::Metadata("session.start")
    }

    fn prompt(&mut self, event: &mut Event<'_, '_>) {
        let data = &event.data;
        let typed = event.record.text(data, "content");
        let typed = typed.unwrap_or_else(|| Text::held(""));
        let sent = event.record.text(data, "transformedContent");
        let content = NewContent {
            body: Body::Text(sent.unwrap_or_else(|| typed.clone())),
            images: images_of(event.record, data),
            ..NewContent::default()
        };
        let place = data
            .get("transformedContent")
            .or_else(|| data.get("content"));
        let node = event.add(NodeKind::User, content, place);
        self.take(event, Step::Node(node, Some(Box::new(typed))));
    }

    fn answer(&mut self, event: &mut Event<'_, '_>) {
        let data = event.data.clone();
        let record = event.record;
        let text = |key| record.text(&data, key).filter(|text| !text.is_empty());
        for (key, kind) in [
            ("reasoningText", NodeKind::Reasoning),
            ("content", NodeKind::Assistant),
        ] {
            if let Some(text) = text(key) {
                let node = event.add(kind, NewContent::text(text), data.get(key));
                self.take(event, Step::Node(node, None));
            }
        }
        for request in objects(data.get("toolRequests")) {
            self.call(event, &request, "name");
        }
        let call = Id::of(&data.str("apiCallId").unwrap_or_default());
        event.to.count(&event.nodes, self.pending.remove(&call));
    }

    fn call(&mut self, event: &mut Event<'_, '_>, request: &Object<'_>, name: &str) {
        let content = NewContent {
            name: small(request, name),
            call_id: small(request, "toolCallId"),
            ..call_of(event.record, request, "arguments")
        };
        self.calls.extend(content.call_id.as_deref().map(Id::of));
        let node = event.add(NodeKind::ToolCall, content, Some(request.raw()));
        self.take(event, Step::Node(node, None));
    }

    /// Reads the start of a tool. It repeats a call of a message; only when that is lost, it is the call.
    fn start(&mut self, event: &mut Event<'_, '_>) {
        let data = event.data.clone();
        let id = data.str("toolCallId").unwrap_or_default();
        if self.policy == Policy::Recover && !self.calls.contains(&Id::of(&id)) {
            self.call(event, &data, "toolName");
        }
    }

    fn result(&mut self, event: &mut Event<'_, '_>) {
        let data = event.data.clone();
        let result = data.object("result");
        let error = data.object("error");
        let of_result = result.as_ref().and_then(|result| result.get("content"));
        let of_error = error.as_ref().and_then(|error| error.get("message"));
        let place = of_result.or(of_error);
        let output = place.map(|value| event.record.text_or_json_of(value));
        let content = NewContent {
            body: Body::Output(output.unwrap_or_else(|| Text::held(""))),
            call_id: small(&data, "toolCallId"),
            is_error: data.bool("success") == Some(false),
            ..NewContent::default()
        };
        let node = event.add(NodeKind::ToolResult, content, place);
        self.take(event, Step::Node(node, None));
    }

    fn compaction(&mut self, event: &mut Event<'_, '_>) {
        let data = event.data.clone();
        let Some(summary) = event.record.text(&data, "summaryContent") else {
            return;
        };
        let place = data.get("summaryContent");
        let node = event.add(NodeKind::Summary, NewContent::text(summary), place);
        if data.bool("success") != Some(false) {
            self.take(event, Step::Compaction(node));
        }
    }

    /// Adds a step to the conversation, or its node to that of a subagent.
    fn take(&mut self, event: &Event<'_, '_>, step: Step) {
        match string(&event.record.object, "agentId") {
            Some(agent) => {
                let (Step::Node(node, _) | Step::Compaction(node)) = step;
                self.subagents.entry(agent).or_default().push(node);
            }
            None => self.steps.push(step),
        }
    }

    fn count(&mut self, data: &Object<'_>) {
        let Some(usage) = data.object("usage") else {
            return;
        };
        let call = Id::of(&usage.str("apiCallId").unwrap_or_default());
        let usage = usage_of(&usage);
        self.running += usage;
        self.pending.insert(call, usage);
    }

    fn shut_down(&mut self, data: &Object<'_>) {
        let snapshot = data.object("accountingSnapshot");
        let metrics = snapshot.as_ref().unwrap_or(data).object("modelMetrics");
        let Some(metrics) = metrics.or_else(|| data.object("modelMetrics")) else {
            return;
        };
        self.running = Usage::default();
        for (_, model) in metrics.members() {
            let usage = model.object().and_then(|model| model.object("usage"));
            if let Some(usage) = usage {
                self.ended += usage_of(&usage);
            }
        }
    }
}

impl Reading for Events {
    fn is_record(object: &Object<'_>) -> bool {
        let has = |key| object.get(key).is_some();
        has("type") && has("id") && has("timestamp") && object.object("data").is_some()
    }

    fn is_torn_record(object: &Object<'_>) -> bool {
        let kind = object.str("type").unwrap_or_default();
        let is_message = matches!(&*kind, "user.message" | "assistant.message");
        is_message && object.object("data").is_some()
    }

    fn record(&mut self, to: &mut Conversation, record: &Record<'_>) -> Holds {
        if record.form != Form::Whole && self.policy == Policy::Vendor {
            return Holds::Damaged;
        }
        let kind = record.object.str("type").unwrap_or_default();
        let Some(data) = record.object.object("data") else {
            return to.unknown(&kind);
        };
        // A line that is there twice is one event.
        let bytes = record.object.text().as_bytes();
        let id = Id::in_field(&record.object, "id").map(|id| id.with_bytes(bytes));
        if id.is_some_and(|id| !self.seen.insert(id)) {
            return Holds::Raw(Cow::Borrowed("copy"));
        }
        to.metadata.updated = string(&record.object, "timestamp");
        let is_of_subagent = record.object.get("agentId").is_some_and(|id| !id.is_null());
        let mut event = Event {
            to,
            record,
            data,
            nodes: Vec::new(),
        };
        match &*kind {
            "session.start" => return self.header(event.to, &event.data),
            "session.model_change" => {
                if !is_of_subagent {
                    event.to.metadata.model = string(&event.data, "newModel");
                }
                return Holds::Metadata("session.model_change");
            }
            "session.usage_record" => {
                self.count(&event.data);
                return Holds::Metadata("session.usage_record");
            }
            "session.shutdown" => {
                self.shut_down(&event.data);
                return Holds::Metadata("session.shutdown");
            }
            "user.message" => self.prompt(&mut event),
            "assistant.message" => self.answer(&mut event),
            "tool.execution_start" => self.start(&mut event),
            "tool.execution_complete" => self.result(&mut event),
            "session.compaction_complete" => self.compaction(&mut event),
            _ => {}
        }
        let nodes = event.nodes;
        match KNOWN_EVENTS.iter().find(|known| **known == kind) {
            _ if !nodes.is_empty() => Holds::Nodes(nodes.into()),
            Some(known) => Holds::Raw(Cow::Borrowed(known)),
            None if kind.starts_with("model.") => Holds::Raw(Cow::Owned(kind.into_owned())),
            None => to.unknown(&kind),
        }
    }
}

/// Events that hold no text of the conversation, or only what others hold as well.
const KNOWN_EVENTS: [&str; 20] = [
    "abort",
    "assistant.message",
    "assistant.turn_end",
    "assistant.turn_start",
    "session.binary_asset",
    "session.compaction_complete",
    "session.compaction_start",
    "session.error",
    "session.info",
    "session.resume",
    "session.truncation",
    "session.usage_checkpoint",
    "session.warning",
    "subagent.completed",
    "subagent.configured",
    "subagent.failed",
    "subagent.started",
    "system.message",
    "tool.execution_complete",
    "tool.execution_start",
];

/// An event while it is read.
struct Event<'c, 'r> {
    to: &'c mut Conversation,
    record: &'c Record<'r>,
    data: Object<'r>,
    nodes: Vec<NodeId>,
}

impl Event<'_, '_> {
    fn add(&mut self, kind: NodeKind, content: NewContent, place: Option<Raw<'_>>) -> NodeId {
        let mut node = NewNode::new(kind, content);
        let place = place.map(|raw| self.record.place_of(raw));
        node.origin = Some(place.unwrap_or(self.record.place));
        node.record_id = self.record.id("id");
        node.time = self.record.time("timestamp");
        node.model = self.data.str("model").map(|model| self.to.name(&model));
        let id = self.to.add(node);
        self.nodes.push(id);
        id
    }
}

/// Returns the images among the attachments of a prompt, which are files.
fn images_of(record: &Record<'_>, message: &Object<'_>) -> Vec<Image> {
    let images = objects(message.get("attachments")).filter_map(|attachment| {
        let mime = small(&attachment, "mimeType");
        let kind = mime.clone().or_else(|| small(&attachment, "type"));
        let path = record.text(&attachment, "path");
        kind.filter(|kind| kind.starts_with("image"))
            .map(|_| Image {
                media_type: mime,
                data: path.map_or(ImageData::Unknown, ImageData::Path),
            })
    });
    images.collect()
}

fn usage_of(usage: &Object<'_>) -> Usage {
    let number = |key| usage.u64(key).unwrap_or_default();
    let usage = Usage {
        input: number("inputTokens"),
        output: number("outputTokens"),
        cache_read: number("cacheReadTokens"),
        cache_write: number("cacheWriteTokens"),
        reasoning: number("reasoningTokens"),
    };
    usage.of_whole_input()
}
