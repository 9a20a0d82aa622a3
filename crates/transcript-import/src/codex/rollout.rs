//! The records of one rollout.

use std::borrow::Cow;

use transcript_format::json::Json;
use transcript_format::object::{Object, Raw, Str};

use super::echo::Echo;
use crate::conversation::{Content, Conversation, Holds, Node, NodeId, NodeKind, Usage};
use crate::dialect::Policy;
use crate::lines::{Form, Reading, Record};
use crate::value::text_of;

/// The records of a rollout that matter to the conversation, in their order.
#[derive(Default)]
pub(super) struct Rollout {
    pub(super) steps: Vec<Step>,
    pub(super) echoes: Vec<Echo>,
    /// Whether a byte is not UTF-8: Codex refuses the thread then.
    pub(super) has_invalid_utf8: bool,
    pub(super) has_header: bool,
    /// The ordinal after the last one.
    pub(super) end: u64,
    /// The time of the last record.
    pub(super) last_time: String,
    policy: Policy,
    model: Option<String>,
    last_node: Option<NodeId>,
}

/// A record that changes the conversation.
pub(super) struct Step {
    /// Its ordinal; in files without ordinals, the number of records up to it.
    pub(super) ordinal: u64,
    pub(super) action: Action,
}

/// How a record changes the conversation.
pub(super) enum Action {
    /// An item follows.
    Item(NodeId),
    /// The items are replaced.
    Compaction {
        summary: NodeId,
        history: Option<Vec<NodeId>>,
    },
    /// The last turns are cut off.
    RollBack(u64),
    /// What is known about the session changes.
    Fact(Fact),
}

/// A fact about the session.
pub(super) enum Fact {
    Header(Box<Header>),
    Model(String),
    Total(Usage),
}

/// What the first record says.
pub(super) struct Header {
    pub(super) cwd: Option<String>,
    pub(super) started: Option<String>,
    pub(super) version: Option<String>,
    pub(super) forked_from: Option<String>,
    pub(super) parent: Option<String>,
}

impl Rollout {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }

    fn step(&mut self, record: &Record<'_>, action: Action) {
        let ordinal = record.object.u64("ordinal").unwrap_or(self.end);
        self.steps.push(Step { ordinal, action });
    }

    fn fact(&mut self, record: &Record<'_>, fact: Fact) {
        self.step(record, Action::Fact(fact));
    }

    fn header(&mut self, record: &Record<'_>, payload: &Object<'_>) -> Holds {
        if std::mem::replace(&mut self.has_header, true) {
            // Older forks are copies, with the header of the other thread.
            return Holds::Raw(Cow::Borrowed("session_meta"));
        }
        let string = |key| payload.str(key).map(Cow::into_owned);
        let spawn = payload
            .object("source")
            .and_then(|source| source.object("subagent")?.object("thread_spawn"));
        let parent = spawn.and_then(|spawn| spawn.str("parent_thread_id").map(Cow::into_owned));
        let header = Header {
            cwd: string("cwd"),
            started: string("timestamp"),
            version: string("cli_version"),
            forked_from: string("forked_from_id"),
            parent: parent.or_else(|| string("parent_thread_id")),
        };
        self.fact(record, Fact::Header(Box::new(header)));
        Holds::Metadata("session_meta")
    }

    /// Adds the nodes of an item; none for an item of an unknown type.
    fn item(
        &mut self,
        to: &mut Conversation,
        record: &Record<'_>,
        item: &Object<'_>,
    ) -> Option<NodeId> {
        let (kind, content) = content_of(item)?;
        let mut node = Node::new(kind, content);
        node.origin = Some(record.place_of(item.raw()));
        node.record_id = item.str("id").map(Cow::into_owned);
        node.time = record.string("timestamp");
        if matches!(
            kind,
            NodeKind::Assistant | NodeKind::Reasoning | NodeKind::ToolCall
        ) {
            node.model = self.model.clone();
        }
        Some(to.add(node))
    }

    fn compaction(
        &mut self,
        to: &mut Conversation,
        record: &Record<'_>,
        payload: &Object<'_>,
    ) -> Holds {
        let message = payload.str("message").unwrap_or_default();
        let history: Option<Vec<NodeId>> = payload.array("replacement_history").map(|items| {
            let items = items.iter().filter_map(|item| item.object());
            items
                .filter_map(|item| self.item(to, record, &item))
                .collect()
        });
        let of_history = history.iter().flatten().rev().copied();
        let is_summary = |id: &NodeId| to.content_of(*id).text.as_deref() == Some(&*message);
        let stored = of_history.clone().find(is_summary);
        let summary = if let Some(summary) = stored {
            to.node_mut(summary).kind = NodeKind::Summary;
            summary
        } else {
            let mut node = Node::new(NodeKind::Summary, Content::text(message));
            let place = payload.get("message").map(|raw| record.place_of(raw));
            node.origin = Some(place.unwrap_or(record.place));
            to.add(node)
        };
        let mut nodes: Vec<NodeId> = history.iter().flatten().copied().collect();
        if stored.is_none() {
            nodes.push(summary);
        }
        self.step(record, Action::Compaction { summary, history });
        Holds::Nodes(nodes)
    }

    fn event(&mut self, to: &mut Conversation, record: &Record<'_>, payload: &Object<'_>) -> Holds {
        let kind = payload.str("type").unwrap_or_default();
        match &*kind {
            "thread_rolled_back" => {
                let turns = payload.u64("num_turns").unwrap_or_default();
                self.step(record, Action::RollBack(turns));
            }
            "token_count" => {
                let total = payload
                    .object("info")
                    .and_then(|info| usage_of(&info.object("total_token_usage")?));
                if let Some(total) = total {
                    self.fact(record, Fact::Total(total));
                    return Holds::Metadata("token_count");
                }
            }
            _ => {}
        }
        if let Some(echo) = Echo::of(record, payload, self.steps.len()) {
            self.echoes.push(echo);
        }
        let item = payload.object("item");
        let item = item.as_ref().and_then(|item| item.str("type"));
        match (KNOWN_EVENTS.iter().find(|known| **known == kind), item) {
            (_, Some(item)) => Holds::Raw(Cow::Owned(format!("{kind} {item}"))),
            (Some(known), None) => Holds::Raw(Cow::Borrowed(known)),
            (None, None) => to.unknown(&format!("event_msg {kind}")),
        }
    }

    fn model(&mut self, record: &Record<'_>, payload: &Object<'_>) -> Holds {
        if let Some(model) = payload.str("model") {
            self.model = Some(model.clone().into_owned());
            self.fact(record, Fact::Model(model.into_owned()));
        }
        Holds::Metadata("turn_context")
    }

    fn usage(&mut self, to: &mut Conversation, payload: &Object<'_>) -> Holds {
        if let Some(node) = self.last_node {
            to.node_mut(node).usage = payload.object("usage").and_then(|usage| usage_of(&usage));
        }
        Holds::Metadata("token_usage_record")
    }
}

impl Reading for Rollout {
    fn is_record(object: &Object<'_>) -> bool {
        object.str("type").is_some()
            && object.str("timestamp").is_some()
            && object.object("payload").is_some()
    }

    /// The text of a torn item is in an event as well, and whole.
    fn is_torn_record(_: &Object<'_>) -> bool {
        false
    }

    fn record(&mut self, to: &mut Conversation, record: &Record<'_>) -> Holds {
        match record.form {
            Form::Whole => {}
            Form::InvalidUtf8 => self.has_invalid_utf8 = true,
            // Codex loses every record of a line that is not one record.
            form if form.is_part() && self.policy == Policy::Vendor => return Holds::Damaged,
            Form::Piece | Form::Torn => {}
        }
        let kind = record.object.str("type").unwrap_or_default();
        let Some(payload) = record.object.object("payload") else {
            return to.unknown(&kind);
        };
        let ordinal = record.object.u64("ordinal").unwrap_or(self.end);
        self.end = self.end.max(ordinal.saturating_add(1));
        if let Some(time) = record.object.str("timestamp") {
            self.last_time.clear();
            self.last_time.push_str(&time);
        }
        match &*kind {
            "session_meta" => self.header(record, &payload),
            "response_item" => match self.item(to, record, &payload) {
                Some(node) => {
                    self.last_node = Some(node);
                    self.step(record, Action::Item(node));
                    Holds::Nodes(vec![node])
                }
                None => {
                    let item = payload.str("type").unwrap_or_default();
                    to.unknown(&format!("response_item {item}"))
                }
            },
            "compacted" => self.compaction(to, record, &payload),
            "event_msg" => self.event(to, record, &payload),
            "turn_context" => self.model(record, &payload),
            "token_usage_record" => self.usage(to, &payload),
            "world_state" => Holds::Raw(Cow::Borrowed("world_state")),
            _ => to.unknown(&kind),
        }
    }
}

/// Events whose content is in other records as well, or of no use without the program.
const KNOWN_EVENTS: [&str; 24] = [
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "context_compacted",
    "entered_review_mode",
    "error",
    "exec_command_end",
    "exited_review_mode",
    "image_generation_end",
    "item_completed",
    "mcp_tool_call_end",
    "patch_apply_end",
    "plan_update",
    "stream_error",
    "task_complete",
    "task_started",
    "thread_name_updated",
    "thread_rolled_back",
    "thread_settings_applied",
    "token_count",
    "turn_aborted",
    "user_message",
    "web_search_end",
];

/// Beginnings of texts that Codex puts into user messages by itself. Newer versions say so in the item.
const CONTEXT_BEGINNINGS: [&str; 6] = [
    "<environment_context>",
    "<turn_aborted>",
    "<subagent_notification>",
    "# AGENTS.md",
    "<skill",
    "<user_instructions>",
];

fn content_of(item: &Object<'_>) -> Option<(NodeKind, Content)> {
    let string = |key| item.str(key).map(Cow::into_owned);
    let call = |name: Option<String>, input: Json| {
        let content = Content {
            name,
            call_id: string("call_id").or_else(|| string("id")),
            input: Some(input),
            ..Content::default()
        };
        (NodeKind::ToolCall, content)
    };
    Some(match &*item.str("type")? {
        "message" => {
            let content = text_of(item.get("content")?, is_image);
            (kind_of_message(item, &content), content)
        }
        "reasoning" => {
            let texts = |key| {
                item.get(key)
                    .map(|raw| text_of(raw, is_image).text.unwrap_or_default())
            };
            let text = texts("summary").filter(|text| !text.is_empty());
            let text = text.or_else(|| texts("content")).unwrap_or_default();
            (NodeKind::Reasoning, Content::text(text))
        }
        "function_call" => {
            let name = string("name").map(|name| match item.str("namespace") {
                Some(namespace) => format!("{namespace}.{name}"),
                None => name,
            });
            call(name, input_of(item.get("arguments")))
        }
        "custom_tool_call" => call(string("name"), Json::from(&*item.str("input")?)),
        "local_shell_call" => call(Some("local_shell".into()), Json::from(item.get("action"))),
        "function_call_output" | "custom_tool_call_output" => {
            let output = text_of(item.get("output")?, is_image);
            let content = Content {
                output: Some(output.text.unwrap_or_default()),
                name: string("name"),
                call_id: string("call_id"),
                images: output.images,
                ..Content::default()
            };
            (NodeKind::ToolResult, content)
        }
        _ => return None,
    })
}

/// Returns the input of a call: the JSON that the string of its arguments holds, or that string.
fn input_of(arguments: Option<Raw<'_>>) -> Json {
    let text = arguments.and_then(Raw::str);
    let parsed = text.as_deref().and_then(|text| Raw::parse(text).ok());
    match (parsed, text.as_deref()) {
        (Some(parsed), _) => parsed.into(),
        (None, Some(text)) => text.into(),
        (None, None) => arguments.into(),
    }
}

fn kind_of_message(message: &Object<'_>, content: &Content) -> NodeKind {
    match message.str("role").as_deref() {
        Some("assistant") => NodeKind::Assistant,
        Some("user") if is_of_person(message, content) => NodeKind::User,
        _ => NodeKind::Context,
    }
}

/// Returns whether a person wrote a user message. Newer versions say of what kind its parts are.
fn is_of_person(message: &Object<'_>, content: &Content) -> bool {
    let details = message.object("internal_chat_message_metadata_passthrough");
    let kinds = details.and_then(|details| details.read::<Vec<Str<'_>>>("content_item_kinds"));
    let mut kinds = kinds.unwrap_or_default();
    kinds.retain(|kind| kind != "unknown");
    if kinds.is_empty() {
        let text = content.text.as_deref().unwrap_or_default();
        return !CONTEXT_BEGINNINGS
            .iter()
            .any(|start| text.starts_with(start));
    }
    let mut kinds = kinds.iter();
    kinds.any(|kind| kind.starts_with("user.") || kind == "shell.user_command")
}

fn is_image(part: &Object<'_>) -> bool {
    part.str("type").is_some_and(|kind| kind == "input_image")
}

fn usage_of(usage: &Object<'_>) -> Option<Usage> {
    let number = |key| usage.u64(key).unwrap_or_default();
    Some(Usage {
        input: usage.u64("input_tokens")?,
        output: number("output_tokens"),
        cache_read: number("cached_input_tokens"),
        cache_write: number("cache_write_input_tokens"),
        reasoning: number("reasoning_output_tokens"),
    })
}
