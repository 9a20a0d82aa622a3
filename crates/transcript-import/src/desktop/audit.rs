//! The records of one log: messages, and what the SDK says about them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use transcript_format::ids::is_message_id_of_api;
use transcript_format::object::{Object, Raw};

use crate::content::{Body, Image, ImageData, NewContent};
use crate::conversation::{BranchKind, Conversation, Holds, NewNode, NodeId};
use crate::dialect::Policy;
use crate::ids::Id;
use crate::lines::{Form, Reading, Record};
use crate::node::{NodeKind, Usage};
use crate::strings::{objects, small, string};
use crate::value::text_of;

/// Records that hold no text of the conversation, or only what messages hold as well.
const KNOWN_RECORDS: [&str; 8] = [
    "control_request",
    "control_response",
    "keep_alive",
    "rate_limit_event",
    "stream_event",
    "system",
    "tool_progress",
    "tool_use_summary",
];

/// What the records of a log say.
pub(super) struct Audit {
    live: Vec<NodeId>,
    compacted: Vec<NodeId>,
    /// What the subagents said, by the calls that started them.
    subagents: BTreeMap<String, Vec<NodeId>>,
    seen: HashSet<Id>,
    /// The tokens of the runs that ended.
    usage: Option<Usage>,
    policy: Policy,
}

impl Audit {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            live: Vec::new(),
            compacted: Vec::new(),
            subagents: BTreeMap::new(),
            seen: HashSet::new(),
            usage: None,
            policy,
        }
    }

    /// Chooses the live nodes and the branches.
    pub(super) fn choose(self, to: &mut Conversation) {
        to.live = self.live;
        to.branch(BranchKind::Compacted, self.compacted);
        for nodes in self.subagents.into_values() {
            to.branch(BranchKind::Subagent, nodes);
        }
        to.metadata.usage = self.usage;
    }

    fn message(&mut self, to: &mut Conversation, record: &Record<'_>, is_of_model: bool) -> Holds {
        let message = record.object.object("message");
        let Some((message, content)) = message.and_then(|message| {
            message
                .get("content")
                .map(|content| (message.clone(), content))
        }) else {
            return Holds::Raw(Cow::Borrowed("message"));
        };
        let mut nodes = Vec::new();
        let mut add = |kind, content, place: Raw<'_>| {
            let mut node = NewNode::new(kind, content);
            node.origin = Some(record.place_of(place));
            node.record_id = record.id("uuid");
            node.time = record.time("_audit_timestamp").or(record.time("timestamp"));
            node.model = message.str("model").map(|model| to.name(&model));
            nodes.push(to.add(node));
        };
        match record.text_of(content) {
            Some(text) if is_of_model => {
                add(NodeKind::Assistant, NewContent::text(text), content);
            }
            Some(text) => add(NodeKind::User, NewContent::text(text), content),
            None => {
                for block in objects(Some(content)) {
                    if let Some((kind, content)) = block_of(record, &block, is_of_model) {
                        add(kind, content, block.raw());
                    }
                }
            }
        }
        if nodes.is_empty() {
            return Holds::Raw(Cow::Borrowed("message"));
        }
        let usage = message.object("usage").map(|usage| usage_of(&usage));
        to.count(&nodes, usage);
        // The lines of a message repeat its tokens.
        let id = small(&message, "id")
            .filter(|id| is_message_id_of_api(id))
            .map(|id| id.as_str().into());
        if let Some((last, id)) = nodes.last().zip(id) {
            to.responses.insert(*last, id);
        }
        match string(&record.object, "parent_tool_use_id") {
            Some(call) => self.subagents.entry(call).or_default().extend(&nodes),
            None => self.live.extend(&nodes),
        }
        Holds::Nodes(nodes.into())
    }

    fn system(&mut self, to: &mut Conversation, record: &Record<'_>) -> Holds {
        let subtype = record.object.str("subtype").unwrap_or_default();
        match &*subtype {
            "init" => {
                to.metadata.cwd = string(&record.object, "cwd").or(to.metadata.cwd.take());
                to.metadata.model = string(&record.object, "model").or(to.metadata.model.take());
                let version = string(&record.object, "claude_code_version");
                to.metadata.version = version.or(to.metadata.version.take());
                Holds::Metadata("init")
            }
            "compact_boundary" => {
                self.compacted.append(&mut self.live);
                Holds::Raw(Cow::Borrowed("compact_boundary"))
            }
            _ => Holds::Raw(Cow::Owned(subtype.into_owned())),
        }
    }

    /// Reads the end of a run. The text of its answer is that of its last message.
    fn result(&mut self, record: &Record<'_>) -> Holds {
        if let Some(usage) = record.object.object("usage") {
            *self.usage.get_or_insert_default() += usage_of(&usage);
        }
        Holds::Metadata("result")
    }
}

impl Reading for Audit {
    fn is_record(object: &Object<'_>) -> bool {
        let has = |key| object.get(key).is_some();
        has("type") && (has("session_id") || has("_audit_timestamp"))
    }

    fn is_torn_record(object: &Object<'_>) -> bool {
        let kind = object.str("type").unwrap_or_default();
        matches!(&*kind, "user" | "assistant") && object.object("message").is_some()
    }

    fn record(&mut self, to: &mut Conversation, record: &Record<'_>) -> Holds {
        if record.form != Form::Whole && self.policy == Policy::Vendor {
            return Holds::Damaged;
        }
        // A message that is replayed when a session continues has its id again.
        if Id::in_field(&record.object, "uuid").is_some_and(|id| !self.seen.insert(id)) {
            return Holds::Raw(Cow::Borrowed("copy"));
        }
        let time = string(&record.object, "_audit_timestamp");
        if to.metadata.started.is_none() {
            to.metadata.started.clone_from(&time);
        }
        to.metadata.updated = time.or(to.metadata.updated.take());
        let kind = record.object.str("type").unwrap_or_default();
        match &*kind {
            "user" => self.message(to, record, false),
            "assistant" => self.message(to, record, true),
            "system" => self.system(to, record),
            "result" => self.result(record),
            known if KNOWN_RECORDS.contains(&known) => Holds::Raw(Cow::Owned(known.to_owned())),
            unknown => to.unknown(unknown),
        }
    }
}

/// Returns the node that a block of a message is; `None` for a block without anything of the conversation.
fn block_of(
    record: &Record<'_>,
    block: &Object<'_>,
    is_of_model: bool,
) -> Option<(NodeKind, NewContent)> {
    let text = |key, kind| {
        record
            .text(block, key)
            .map(|text| (kind, NewContent::text(text)))
    };
    match &*block.str("type")? {
        "text" if is_of_model => text("text", NodeKind::Assistant),
        "text" => text("text", NodeKind::User),
        "thinking" => text("thinking", NodeKind::Reasoning),
        "tool_use" | "server_tool_use" => {
            let content = NewContent {
                name: small(block, "name"),
                call_id: small(block, "id"),
                body: Body::Input(record.input_of(block.get("input"))),
                ..NewContent::default()
            };
            Some((NodeKind::ToolCall, content))
        }
        "tool_result" => {
            let content = block
                .get("content")
                .map(|content| text_of(record, content, image_of));
            let content = content.unwrap_or_default();
            let result = NewContent {
                call_id: small(block, "tool_use_id"),
                is_error: block.bool("is_error") == Some(true),
                ..content.into_output()
            };
            Some((NodeKind::ToolResult, result))
        }
        "image" | "document" => {
            let content = NewContent {
                images: [image_of(record, block)?].into(),
                ..NewContent::default()
            };
            Some((NodeKind::User, content))
        }
        _ => None,
    }
}

fn image_of(record: &Record<'_>, block: &Object<'_>) -> Option<Image> {
    let is_image = matches!(&*block.str("type")?, "image" | "document");
    let source = block.object("source").filter(|_| is_image)?;
    let data = record.text(&source, "data").map(ImageData::Base64);
    let url = || record.text(&source, "url").map(ImageData::Url);
    Some(Image {
        media_type: small(&source, "media_type"),
        data: data.or_else(url).unwrap_or(ImageData::Unknown),
    })
}

fn usage_of(usage: &Object<'_>) -> Usage {
    let number = |key| usage.u64(key).unwrap_or_default();
    Usage {
        input: number("input_tokens"),
        output: number("output_tokens"),
        cache_read: number("cache_read_input_tokens"),
        cache_write: number("cache_creation_input_tokens"),
        reasoning: 0,
    }
}
