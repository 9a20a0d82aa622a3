//! The records of one rollout.

use std::borrow::Cow;

use transcript_format::object::Object;

use super::echo::{Echo, Matches};
use super::item::Item;
use super::tokens::ResponseTokens;
use crate::content::NewContent;
use crate::conversation::{Conversation, Holds, NewNode, NodeId};
use crate::dialect::Policy;
use crate::escapes::Fingerprint;
use crate::lines::{Form, Reading, Record};
use crate::node::{NodeKind, Usage};
use crate::nodes::Name;
use crate::record_id::RecordId;
use crate::strings::{body_of, string};
use crate::text::Text;

/// The records of a rollout that matter to the conversation, in their order.
#[derive(Default)]
pub(super) struct Rollout {
    pub(super) steps: Vec<Step>,
    /// Whether a byte is not UTF-8: Codex refuses the thread then.
    pub(super) has_invalid_utf8: bool,
    pub(super) has_header: bool,
    /// The ordinal after the last one.
    pub(super) end: u64,
    /// The time of the last record.
    pub(super) last_time: String,
    policy: Policy,
    matches: Matches,
    model: Option<Name>,
    tokens: ResponseTokens,
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
    Compaction(Box<Compaction>),
    /// The last turns are cut off.
    RollBack(u64),
    /// What is known about the session changes.
    Fact(Fact),
}

/// What replaces the items.
pub(super) struct Compaction {
    pub(super) summary: NodeId,
    /// Older versions write none.
    pub(super) history: Option<Vec<NodeId>>,
}

/// A fact about the session.
pub(super) enum Fact {
    Header(Box<Header>),
    Model(Name),
    Total(Box<Usage>),
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
        self.tokens.header(payload);
        if std::mem::replace(&mut self.has_header, true) {
            // Older forks are copies, with the header of the other thread.
            return Holds::Raw(Cow::Borrowed("session_meta"));
        }
        let string = |key| string(payload, key);
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

    fn match_item(&mut self, item: &Item) {
        if let Some(id) = &item.content.call_id {
            self.matches.add_call(id);
        }
        if item.content.said().is_some() {
            self.matches.add_text(item.kind, item.fingerprint);
        }
    }

    /// Returns the items and events that were matched, which are complete after the last record.
    pub(super) fn take_matches(&mut self) -> Matches {
        std::mem::take(&mut self.matches)
    }

    /// Adds the node of an item.
    fn item(
        &mut self,
        to: &mut Conversation,
        record: &Record<'_>,
        object: &Object<'_>,
        item: Item,
    ) -> NodeId {
        let kind = item.kind;
        let mut node = NewNode::new(kind, item.content);
        node.origin = Some(record.place_of(object.raw()));
        node.record_id = object.str("id").map(|id| RecordId::from(&*id));
        node.time = record.time("timestamp");
        if matches!(
            kind,
            NodeKind::Assistant | NodeKind::Reasoning | NodeKind::ToolCall
        ) {
            node.model = self.model;
        }
        to.add(node)
    }

    fn compaction(
        &mut self,
        to: &mut Conversation,
        record: &Record<'_>,
        payload: &Object<'_>,
    ) -> Holds {
        let message = payload
            .get("message")
            .filter(|message| body_of(*message).is_some());
        let fingerprint = Fingerprint::of_body(message.and_then(body_of).unwrap_or_default());
        let mut stored = None;
        let history: Option<Vec<NodeId>> = payload.array("replacement_history").map(|items| {
            let items = items.iter().filter_map(|item| item.object());
            let items = items.filter_map(|object| {
                let item = Item::of(record, &object)?;
                let is_summary = item.content.said().is_some() && item.fingerprint == fingerprint;
                let node = self.item(to, record, &object, item);
                if is_summary {
                    // The last one counts.
                    stored = Some(node);
                }
                Some(node)
            });
            items.collect()
        });
        let summary = if let Some(summary) = stored {
            to.nodes.set_kind(summary, NodeKind::Summary);
            summary
        } else {
            let text = message.and_then(|message| record.text_of(message));
            let text = text.unwrap_or_else(|| Text::held(""));
            let mut node = NewNode::new(NodeKind::Summary, NewContent::text(text));
            let place = payload.get("message").map(|raw| record.place_of(raw));
            node.origin = Some(place.unwrap_or(record.place));
            to.add(node)
        };
        let mut nodes: Vec<NodeId> = history.iter().flatten().copied().collect();
        if stored.is_none() {
            nodes.push(summary);
        }
        let compaction = Compaction { summary, history };
        self.step(record, Action::Compaction(Box::new(compaction)));
        Holds::Nodes(nodes.into())
    }

    fn event(&mut self, to: &mut Conversation, record: &Record<'_>, payload: &Object<'_>) -> Holds {
        let kind = payload.str("type").unwrap_or_default();
        match &*kind {
            "thread_rolled_back" => {
                let turns = payload.u64("num_turns").unwrap_or_default();
                self.step(record, Action::RollBack(turns));
            }
            "token_count" => {
                let info = payload.object("info");
                if let Some(total) = info.and_then(|info| self.tokens.total(to, &info)) {
                    self.fact(record, Fact::Total(Box::new(total)));
                    return Holds::Metadata("token_count");
                }
            }
            _ => {}
        }
        let item = payload.object("item");
        let item = item.as_ref();
        if !item.is_some_and(|item| self.matches.has_call(item))
            && let Some(echo) = Echo::of(record, payload, item, self.steps.len())
        {
            self.matches.add_echo(echo);
        }
        let item = item.and_then(|item| item.str("type"));
        let name = match &item {
            Some(item) => Cow::Owned(format!("{kind} {item}")),
            None => kind,
        };
        match KNOWN_EVENTS.iter().find(|known| **known == name) {
            Some(known) => Holds::Raw(Cow::Borrowed(known)),
            None if item.is_some() => Holds::Raw(Cow::Owned(name.into_owned())),
            None => to.unknown(&format!("event_msg {name}")),
        }
    }

    fn model(&mut self, to: &mut Conversation, record: &Record<'_>, payload: &Object<'_>) -> Holds {
        if let Some(model) = payload.str("model") {
            let model = to.name(&model);
            self.model = Some(model);
            self.fact(record, Fact::Model(model));
        }
        Holds::Metadata("turn_context")
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
            "response_item" => match Item::of(record, &payload) {
                Some(item) => {
                    self.match_item(&item);
                    let node = self.item(to, record, &payload, item);
                    self.tokens.item(to, node);
                    self.step(record, Action::Item(node));
                    Holds::Nodes(vec![node].into())
                }
                None => {
                    let item = payload.str("type").unwrap_or_default();
                    to.unknown(&format!("response_item {item}"))
                }
            },
            "compacted" => self.compaction(to, record, &payload),
            "event_msg" => self.event(to, record, &payload),
            "turn_context" => self.model(to, record, &payload),
            "token_usage_record" => {
                self.tokens.record(to, &payload);
                Holds::Metadata("token_usage_record")
            }
            "world_state" => Holds::Raw(Cow::Borrowed("world_state")),
            _ => to.unknown(&kind),
        }
    }
}

/// Events whose content is in other records as well, or of no use without the program.
const KNOWN_EVENTS: [&str; 33] = [
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
    "item_completed AgentMessage",
    "item_completed CommandExecution",
    "item_completed ContextCompaction",
    "item_completed FileChange",
    "item_completed McpToolCall",
    "item_completed Plan",
    "item_completed Reasoning",
    "item_completed UserMessage",
    "item_completed WebSearch",
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
