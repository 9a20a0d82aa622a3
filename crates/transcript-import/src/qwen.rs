//! Qwen Code: a tree in one file. The last record is the leaf, and a compaction brings the history that continues.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use transcript_format::object::Object;

use crate::calls::{Missing, join_prompts};
use crate::conversation::{
    BranchKind, Content, Conversation, Holds, Node, NodeId, NodeKind, Place, Usage,
};
use crate::dialect::{Dialect, Policy, Session};
use crate::lines::{Reading, Record};
use crate::parts::nodes_of;
use crate::source::{Store, name_of};
use crate::tree::{Link, Tree};
use crate::value::{objects, string};
use crate::{Agent, Error, lines};

/// The folder of projects in the home folder.
const FOLDER: &str = "projects";

/// What Qwen Code tells the model about a call whose result it does not have.
const MISSING: Missing = Missing {
    output: "Tool execution result was not recorded — likely interrupted by network failure, abort, or process exit. Treat as failure and retry if needed.",
    is_error: true,
};

/// The dialect of Qwen Code.
#[derive(Clone, Copy, Debug)]
pub struct Qwen;

impl Dialect for Qwen {
    fn agent(&self) -> Agent {
        Agent::Qwen
    }

    fn has_store(&self, store: Store<'_>) -> bool {
        store.disk.is_folder(&store.path.join(FOLDER))
    }

    fn begins_file(&self, first: &Object<'_>) -> bool {
        File::is_record(first) && first.str("sessionId").is_some() && is_of_qwen(first)
    }

    fn sessions(&self, store: Store<'_>) -> Result<Vec<Session>, Error> {
        let files = store.files(&[FOLDER], &[".jsonl"])?;
        let sessions = files.into_iter().map(|path| {
            let id = lines::first(store, &path, |line| string(line, "sessionId"))?;
            let name = name_of(&path);
            let named = name.strip_suffix(".jsonl").unwrap_or(&name);
            Ok(Session {
                id: id.unwrap_or_else(|| named.to_owned()),
                files: vec![path],
            })
        });
        sessions.collect()
    }

    fn read(&self, store: Store<'_>, id: &str, policy: Policy) -> Result<Conversation, Error> {
        let session = self.session(store, id)?;
        let mut to = Conversation::new(Agent::Qwen, id);
        let mut file = File::new(policy);
        for path in &session.files {
            lines::read(store, path, &mut to, &mut file)?;
        }
        file.choose(&mut to);
        Ok(to.finish())
    }
}

/// Returns whether a record has what the records of Claude Code, which look alike, do not have.
fn is_of_qwen(record: &Object<'_>) -> bool {
    let message = record.object("message");
    record.get("provenance").is_some()
        || record.get("systemPayload").is_some()
        || message.is_some_and(|message| message.get("parts").is_some())
}

/// The records of a file.
struct File {
    entries: Vec<Entry>,
    by_id: HashMap<String, usize>,
    leaf: Option<usize>,
    copies: Vec<NodeId>,
    echoes: Vec<Echo>,
    policy: Policy,
}

/// A record of the telemetry that has the text of an answer, which follows as a record of its own.
struct Echo {
    entry: usize,
    text: String,
    place: Place,
}

impl Echo {
    fn of(object: &Object<'_>, place: Place, entry: usize) -> Option<Self> {
        let event = object.object("systemPayload")?.object("uiEvent")?;
        let is_of_session = event.str("prompt_id")?.contains("########");
        let text = string(&event, "response_text").filter(|_| is_of_session)?;
        Some(Self { entry, text, place })
    }
}

/// A record, or several with the same id, which Qwen Code takes as one.
struct Entry {
    link: Link,
    nodes: Vec<NodeId>,
    /// Whether the nodes take the place of all before them.
    is_compaction: bool,
    /// Hashes of the texts of its records.
    texts: Vec<u64>,
}

impl File {
    fn new(policy: Policy) -> Self {
        Self {
            entries: Vec::new(),
            by_id: HashMap::new(),
            leaf: None,
            copies: Vec::new(),
            echoes: Vec::new(),
            policy,
        }
    }

    /// Adds the nodes of a record.
    fn nodes(to: &mut Conversation, record: &Record<'_>, subtype: Option<&str>) -> Vec<NodeId> {
        let object = &record.object;
        let mut nodes = Vec::new();
        let mut add = |to: &mut Conversation, message: &Object<'_>| {
            let Some(parts) = message.get("parts") else {
                return;
            };
            let is_of_model = message.str("role").is_some_and(|role| role == "model");
            for made in nodes_of(parts, is_of_model) {
                let mut node = Node::new(made.kind, made.content);
                node.origin = Some(record.place_of(made.place));
                node.record_id = record.string("uuid");
                node.time = record.string("timestamp");
                node.model = record.string("model");
                nodes.push(to.add(node));
            }
        };
        if let Some(message) = object.object("message") {
            add(to, &message);
        }
        if subtype == Some("chat_compression") {
            let payload = object.object("systemPayload");
            let history = payload.and_then(|payload| payload.get("compressedHistory"));
            for message in objects(history) {
                add(to, &message);
            }
            let summary = nodes
                .iter()
                .copied()
                .find(|id| to.node(*id).kind == NodeKind::User);
            if let Some(summary) = summary {
                to.node_mut(summary).kind = NodeKind::Summary;
            }
        }
        if let Some(last) = nodes.last() {
            to.node_mut(*last).usage = object.object("usageMetadata").map(|usage| usage_of(&usage));
        }
        nodes
    }

    fn learn(to: &mut Conversation, record: &Record<'_>, subtype: Option<&str>) {
        let metadata = &mut to.metadata;
        let learn = |known: &mut Option<String>, key| {
            if let Some(value) = record.string(key) {
                *known = Some(value);
            }
        };
        learn(&mut metadata.cwd, "cwd");
        learn(&mut metadata.version, "version");
        learn(&mut metadata.model, "model");
        learn(&mut metadata.updated, "timestamp");
        if metadata.started.is_none() {
            metadata.started.clone_from(&metadata.updated);
        }
        if let Some(from) = record.object.object("forkedFrom") {
            metadata.forked_from = string(&from, "sessionId");
        }
        if let (Some("custom_title"), Some(payload)) =
            (subtype, record.object.object("systemPayload"))
        {
            metadata.title = string(&payload, "customTitle").or_else(|| string(&payload, "title"));
        }
    }

    /// In a damaged file, makes nodes of the answers that only the telemetry still has.
    fn recover(&mut self, to: &mut Conversation) {
        let answers = to
            .ids()
            .filter(|id| to.node(*id).kind == NodeKind::Assistant);
        let mut answers: Vec<Option<String>> =
            answers.map(|id| to.content_of(id).text.clone()).collect();
        for echo in std::mem::take(&mut self.echoes) {
            let is_same = |answer: &Option<String>| answer.as_ref() == Some(&echo.text);
            if let Some(at) = answers.iter().position(is_same) {
                // Answers come in the order of their telemetry.
                answers.drain(..=at);
                continue;
            }
            let mut node = Node::new(NodeKind::Assistant, Content::text(echo.text));
            node.origin = Some(echo.place);
            let id = to.add(node);
            self.entries[echo.entry].nodes.push(id);
            if let Ok(part) = to
                .parts
                .binary_search_by_key(&echo.place, |part| part.place)
            {
                to.parts[part].holds = Holds::Nodes(vec![id]);
            }
        }
    }

    /// Chooses the live nodes and the branches.
    fn choose(mut self, to: &mut Conversation) {
        if self.policy == Policy::Recover && !to.damage.is_empty() {
            self.recover(to);
        }
        to.branch(BranchKind::Superseded, self.copies);
        let Some(leaf) = self.leaf else { return };
        let entries = &self.entries;
        let tree = Tree::new(entries.iter().map(|entry| &entry.link));
        let path = tree.path(leaf, self.policy, to);
        let mut on_path = vec![false; entries.len()];
        let mut live = Vec::new();
        let mut usage = Usage::default();
        for at in &path.records {
            let entry = &entries[*at];
            on_path[*at] = true;
            if entry.is_compaction {
                to.branch(BranchKind::Compacted, std::mem::take(&mut live));
            }
            live.extend(&entry.nodes);
            let usages = entry.nodes.iter().filter_map(|node| to.node(*node).usage);
            usages.for_each(|of_node| usage += of_node);
        }
        to.metadata.usage = Some(usage);
        for run in tree.runs(&on_path) {
            let nodes = run.iter().flat_map(|at| entries[*at].nodes.clone());
            to.branch(BranchKind::Rewound, nodes.collect());
        }
        let live = MISSING.complete(to, live);
        to.live = join_prompts(to, live);
    }
}

impl Reading for File {
    fn is_record(object: &Object<'_>) -> bool {
        object.str("uuid").is_some()
            && object.get("parentUuid").is_some()
            && object.str("type").is_some()
    }

    fn is_torn_record(object: &Object<'_>) -> bool {
        Self::is_record(object) && object.object("message").is_some()
    }

    fn record(&mut self, to: &mut Conversation, record: &Record<'_>) -> Holds {
        // Qwen Code splits records that were glued together, and loses those with other damage.
        let is_lost = record.form.is_part() && !record.is_unchanged();
        if is_lost && self.policy == Policy::Vendor {
            return Holds::Damaged;
        }
        let kind = record.object.str("type").unwrap_or_default();
        let Some(id) = record.string("uuid") else {
            return to.unknown(&kind);
        };
        let subtype = record.object.str("subtype");
        let subtype = subtype.as_deref();
        Self::learn(to, record, subtype);
        let nodes = Self::nodes(to, record, subtype);
        let text = hash_of(record.object.text());
        let at = *self.by_id.entry(id.clone()).or_insert_with(|| {
            self.entries.push(Entry {
                link: Link {
                    id,
                    parent: record.string("parentUuid"),
                    place: record.place,
                },
                nodes: Vec::new(),
                is_compaction: false,
                texts: Vec::new(),
            });
            self.entries.len() - 1
        });
        self.leaf = Some(at);
        let entry = &mut self.entries[at];
        if self.policy == Policy::Recover && entry.texts.contains(&text) {
            self.copies.extend(&nodes);
        } else {
            entry.nodes.extend(&nodes);
            entry.texts.push(text);
        }
        if subtype == Some("ui_telemetry") {
            self.echoes
                .extend(Echo::of(&record.object, record.place, at));
        }
        entry.is_compaction |= subtype == Some("chat_compression");
        match KNOWN_SYSTEM.iter().find(|known| Some(**known) == subtype) {
            _ if !nodes.is_empty() => Holds::Nodes(nodes),
            Some(&"custom_title") => Holds::Metadata("custom_title"),
            Some(known) => Holds::Raw(Cow::Borrowed(known)),
            None => to.unknown(&format!("{kind} {}", subtype.unwrap_or_default())),
        }
    }
}

/// Records of the type `system`.
const KNOWN_SYSTEM: [&str; 10] = [
    "attribution_snapshot",
    "branch_checkpoint",
    "chat_compression",
    "custom_title",
    "file_history_snapshot",
    "notification",
    "parent_session",
    "rewind",
    "slash_command",
    "ui_telemetry",
];

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn usage_of(usage: &Object<'_>) -> Usage {
    let number = |key| usage.u64(key).unwrap_or_default();
    Usage {
        input: number("promptTokenCount"),
        output: number("candidatesTokenCount"),
        cache_read: number("cachedContentTokenCount"),
        cache_write: 0,
        reasoning: number("thoughtsTokenCount"),
    }
}
