//! The records of a session file of Pi.

use std::borrow::Cow;
use std::collections::HashMap;

use transcript_format::object::{Object, Raw};

use crate::content::{Body, Image, NewContent};
use crate::conversation::{Conversation, Holds, NewNode, NodeId};
use crate::dialect::Policy;
use crate::ids::Id;
use crate::lines::{Reading, Record};
use crate::node::{NodeKind, Usage};
use crate::node_ids::NodeIds;
use crate::place::Place;
use crate::strings::{objects, small, string};
use crate::text::{Text, TextBuilder};
use crate::tree::Link;
use crate::value::{image_in, text_of};

/// The records of a file, in their order.
pub(super) struct File {
    entries: Vec<Entry>,
    pub(super) has_header: bool,
    policy: Policy,
    /// The last entry with each id.
    by_id: HashMap<Id, u32>,
}

/// A record that is part of the tree.
pub(super) struct Entry {
    pub(super) link: Link,
    pub(super) role: Role,
    /// Its nodes. The content that an edit puts in the place of another one belongs to the edit.
    pub(super) nodes: NodeIds,
}

/// What a record is to the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It is sent.
    Message,
    /// The system prompt: sent, and not counted among what a compaction keeps.
    System,
    /// It is shown and not sent: failed answers, commands that the person keeps from the model.
    Silent,
    /// The entries before it are gone, except those from this id on.
    Compaction(Option<Id>),
    /// The record with this id has the nodes of this one instead of its own; none if it is dropped.
    Edit(Id),
    /// A fact about the session.
    Fact,
}

impl File {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            entries: Vec::new(),
            has_header: false,
            policy,
            by_id: HashMap::new(),
        }
    }

    /// Returns the entries, and the last one with each id.
    pub(super) fn into_entries(self) -> (Vec<Entry>, HashMap<Id, u32>) {
        (self.entries, self.by_id)
    }

    fn header(&mut self, to: &mut Conversation, header: &Object<'_>) -> Holds {
        self.has_header = true;
        to.metadata.cwd = string(header, "cwd");
        to.metadata.started = string(header, "timestamp");
        let parent = header.str("parentSession");
        let name = parent
            .as_deref()
            .map(|path| path.rsplit(['/', '\\']).next().unwrap_or(path));
        to.metadata.forked_from = name.map(|name| id_in_name(name).to_owned());
        Holds::Metadata("session")
    }

    fn message(&self, nodes: &mut Nodes<'_, '_>, message: &Object<'_>) -> Role {
        let role = message.str("role").unwrap_or_default();
        match &*role {
            "bashExecution" => {
                nodes.add(
                    NodeKind::User,
                    NewContent::text(text_of_command(nodes.record, message)),
                    message.raw(),
                );
                let is_hidden = message.bool("excludeFromContext") == Some(true);
                if is_hidden {
                    Role::Silent
                } else {
                    Role::Message
                }
            }
            "system" => {
                let sections = message.get("sections").filter(|raw| !raw.is_null());
                let text = match sections {
                    Some(sections) => NewContent::text(nodes.record.json_of(sections)),
                    None => {
                        let content = message.get("content").unwrap_or_else(|| message.raw());
                        text_of(nodes.record, content, image_of)
                    }
                };
                nodes.add(NodeKind::Context, text, message.raw());
                Role::System
            }
            _ => {
                nodes.add_content(&role, message, message);
                let reason = message.str("stopReason");
                let is_failed = matches!(reason.as_deref(), Some("aborted" | "error"));
                if is_failed {
                    Role::Silent
                } else {
                    Role::Message
                }
            }
        }
    }

    /// Reads an edit. Its content is like that of the record that it changes.
    fn edit(&self, nodes: &mut Nodes<'_, '_>, edit: &Object<'_>) -> Role {
        let target = Id::of(&edit.str("targetId").unwrap_or_default());
        let replacement = edit.object("replacement");
        if let Some(replacement) = &replacement {
            let edited = self
                .by_id
                .get(&target)
                .map(|at| &self.entries[*at as usize]);
            let first = edited.and_then(|entry| entry.nodes.first().copied());
            let role = match first.map(|id| nodes.to.node(id).kind) {
                Some(NodeKind::Assistant | NodeKind::Reasoning | NodeKind::ToolCall) => "assistant",
                Some(NodeKind::ToolResult) => "toolResult",
                _ => "user",
            };
            let added = nodes.all.len();
            nodes.add_content(role, replacement, replacement);
            // The edit of a result does not repeat which call it answers.
            if let Some(first) = first.filter(|_| role == "toolResult") {
                for id in nodes.all.split_at(added).1 {
                    nodes.to.nodes.set_call_of(*id, first);
                }
            }
        }
        Role::Edit(target)
    }
}

impl Reading for File {
    fn is_record(object: &Object<'_>) -> bool {
        let is_entry = object.get("parentId").is_some() && object.str("id").is_some();
        let is_header = object.str("type").is_some_and(|kind| kind == "session");
        object.str("type").is_some() && (is_entry || is_header)
    }

    fn is_torn_record(object: &Object<'_>) -> bool {
        let is_message = object.str("type").is_some_and(|kind| kind == "message");
        Self::is_record(object) && is_message && object.object("message").is_some()
    }

    fn record(&mut self, to: &mut Conversation, record: &Record<'_>) -> Holds {
        if record.form.is_part() && self.policy == Policy::Vendor {
            return Holds::Damaged;
        }
        let entry = &record.object;
        let kind = entry.str("type").unwrap_or_default();
        if kind == "session" {
            return self.header(to, entry);
        }
        let Some(id) = Id::in_field(entry, "id") else {
            return to.unknown(&kind);
        };
        if let Some(time) = string(entry, "timestamp") {
            to.metadata.updated = Some(time);
        }
        let mut nodes = Nodes {
            to,
            record,
            all: Vec::new(),
        };
        let mut fact = None;
        let role = match &*kind {
            "message" => match entry.object("message") {
                Some(message) => self.message(&mut nodes, &message),
                None => Role::Fact,
            },
            "custom_message" => {
                nodes.add_content("user", entry, entry);
                Role::Message
            }
            "custom" => {
                let data = entry.get("data").map(|data| record.json_of(data));
                let data = data.unwrap_or_else(|| Text::held(""));
                nodes.add(NodeKind::Context, NewContent::text(data), entry.raw());
                Role::Silent
            }
            "branch_summary" => {
                nodes.add_summary(entry);
                Role::Message
            }
            "compaction" => {
                nodes.add_summary(entry);
                Role::Compaction(Id::in_field(entry, "firstKeptEntryId"))
            }
            "context_edit" => self.edit(&mut nodes, entry),
            "model_change" => {
                fact = Some("model_change");
                nodes.to.metadata.model = string(entry, "modelId");
                Role::Fact
            }
            "session_info" => {
                fact = Some("session_info");
                nodes.to.metadata.title = string(entry, "name");
                Role::Fact
            }
            _ => Role::Fact,
        };
        let nodes = NodeIds::from(nodes.all);
        let at = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.by_id.insert(id, at);
        self.entries.push(Entry {
            link: Link::of(entry, id, "parentId", to),
            role,
            nodes: nodes.clone(),
        });
        match (fact, KNOWN_FACTS.iter().find(|known| **known == kind)) {
            _ if !nodes.is_empty() => Holds::Nodes(nodes),
            (Some(fact), _) => Holds::Metadata(fact),
            (None, Some(known)) => Holds::Raw(Cow::Borrowed(known)),
            (None, None) => to.unknown(&kind),
        }
    }
}

/// Records that hold no text of the conversation.
const KNOWN_FACTS: [&str; 5] = [
    "context_edit",
    "label",
    "message",
    "thinking_level_change",
    "usage",
];

/// The nodes of a record, while it is read.
struct Nodes<'c, 'r> {
    to: &'c mut Conversation,
    record: &'c Record<'r>,
    all: Vec<NodeId>,
}

impl Nodes<'_, '_> {
    fn add(&mut self, kind: NodeKind, content: NewContent, raw: Raw<'_>) {
        let origin: Place = self.record.place_of(raw);
        let mut node = NewNode::new(kind, content);
        node.origin = Some(origin);
        node.record_id = self.record.id("id");
        node.time = self.record.time("timestamp");
        self.all.push(self.to.add(node));
    }

    fn add_summary(&mut self, entry: &Object<'_>) {
        let summary = entry.get("summary").unwrap_or_else(|| entry.raw());
        let text = self.record.text_of(summary);
        let text = text.unwrap_or_else(|| Text::held(""));
        self.add(NodeKind::Summary, NewContent::text(text), summary);
    }

    /// Adds the content of a message of a role. `details` has what stands beside the content.
    fn add_content(&mut self, role: &str, message: &Object<'_>, details: &Object<'_>) {
        let content = message.get("content").unwrap_or_else(|| message.raw());
        match role {
            "assistant" if content.array().is_some() => {
                let first = self.all.len();
                for part in objects(Some(content)) {
                    self.add_part(&part);
                }
                let model = details.str("model").map(|model| self.to.name(&model));
                for id in self.all.split_at(first).1 {
                    self.to.nodes.set_model(*id, model);
                }
                let usage = details.object("usage").map(|usage| usage_of(&usage));
                self.to.count(self.all.split_at(first).1, usage);
            }
            "assistant" => self.add(
                NodeKind::Assistant,
                text_of(self.record, content, image_of),
                content,
            ),
            "toolResult" => {
                let result = NewContent {
                    name: small(details, "toolName"),
                    call_id: small(details, "toolCallId"),
                    is_error: details.bool("isError") == Some(true),
                    ..text_of(self.record, content, image_of).into_output()
                };
                self.add(NodeKind::ToolResult, result, content);
            }
            _ => self.add(
                NodeKind::User,
                text_of(self.record, content, image_of),
                content,
            ),
        }
    }

    fn add_part(&mut self, part: &Object<'_>) {
        let text = |key| {
            let text = self.record.text(part, key);
            NewContent::text(text.unwrap_or_else(|| Text::held("")))
        };
        let (kind, content) = match part.str("type").as_deref() {
            Some("thinking") => (NodeKind::Reasoning, text("thinking")),
            Some("toolCall") => {
                let content = NewContent {
                    name: small(part, "name"),
                    call_id: small(part, "id"),
                    body: Body::Input(self.record.input_of(part.get("arguments"))),
                    ..NewContent::default()
                };
                (NodeKind::ToolCall, content)
            }
            _ => (NodeKind::Assistant, text("text")),
        };
        self.add(kind, content, part.raw());
    }
}

/// Returns the id in a name of the form `<time>_<id>.jsonl`.
pub(super) fn id_in_name(name: &str) -> &str {
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    stem.rsplit_once('_').map_or(stem, |(_, id)| id)
}

fn image_of(record: &Record<'_>, part: &Object<'_>) -> Option<Image> {
    let is_image = part.str("type").is_some_and(|kind| kind == "image");
    is_image.then(|| image_in(record, part))
}

/// Returns the text by which Pi tells the model of a command that the person ran.
fn text_of_command(record: &Record<'_>, command: &Object<'_>) -> Text {
    let mut text = TextBuilder::default().held("Ran `");
    if let Some(line) = record.text(command, "command") {
        text = text.text(&line);
    }
    let output = record.text(command, "output");
    text = match output.filter(|output| !output.is_empty()) {
        Some(output) => text.held("`\n```\n").text(&output).held("\n```"),
        None => text.held("`\n(no output)"),
    };
    let code = command.i64("exitCode").filter(|code| *code != 0);
    text = match code {
        _ if command.bool("cancelled") == Some(true) => text.held("\n\n(command cancelled)"),
        Some(code) => text.held(&format!("\n\nCommand exited with code {code}")),
        None => text,
    };
    let full = command.str("fullOutputPath");
    if let Some(path) = full.filter(|_| command.bool("truncated") == Some(true)) {
        text = text.held(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text.finish()
}

fn usage_of(usage: &Object<'_>) -> Usage {
    let number = |key| usage.u64(key).unwrap_or_default();
    Usage {
        input: number("input"),
        output: number("output"),
        cache_read: number("cacheRead"),
        cache_write: number("cacheWrite"),
        reasoning: number("reasoning"),
    }
}
