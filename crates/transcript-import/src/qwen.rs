//! Qwen Code: a tree in one file. The last record is the leaf, and a compaction brings the history that continues.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use transcript_format::object::Object;

use crate::calls::{Missing, join_prompts};
use crate::content::NewContent;
use crate::conversation::{BranchKind, Conversation, Holds, NewNode, NodeId};
use crate::dialect::{Dialect, Policy, Session};
use crate::escapes::Fingerprint;
use crate::ids::Id;
use crate::lines::{Reading, Record};
use crate::node::{NodeKind, Usage};
use crate::node_ids::NodeIds;
use crate::parts::nodes_of;
use crate::place::Place;
use crate::source::{Store, name_of};
use crate::strings::{body_of, objects, string};
use crate::text::Text;
use crate::tree::{Link, Tree};
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
            let id = lines::header(store, &path, |line| string(line, "sessionId"));
            let name = name_of(&path);
            let named = name.strip_suffix(".jsonl").unwrap_or(&name);
            Session {
                id: id.unwrap_or_else(|| named.to_owned()),
                files: vec![path],
            }
        });
        Ok(sessions.collect())
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
    by_id: HashMap<Id, u32>,
    /// The ids of all records with their bytes.
    seen: HashSet<Id>,
    leaf: Option<usize>,
    copies: Vec<NodeId>,
    echoes: Vec<Echo>,
    /// The fingerprints of the answers, in their order.
    answers: Vec<u64>,
    policy: Policy,
}

/// A record of the telemetry that has the text of an answer, which follows as a record of its own.
struct Echo {
    entry: usize,
    text: Text,
    fingerprint: u64,
    place: Place,
}

impl Echo {
    fn of(record: &Record<'_>, entry: usize) -> Option<Self> {
        let payload = record.object.object("systemPayload")?;
        let event = payload.object("uiEvent")?;
        let is_of_session = event.str("prompt_id")?.contains("########");
        let body = event.get("response_text").and_then(body_of);
        let body = body.filter(|_| is_of_session)?;
        Some(Self {
            entry,
            text: record.text_of_body(body),
            fingerprint: Fingerprint::of_body(body),
            place: record.place,
        })
    }
}

/// A record, or several with the same id, which Qwen Code takes as one.
struct Entry {
    link: Link,
    nodes: NodeIds,
    /// Whether the nodes take the place of all before them.
    is_compaction: bool,
}

impl File {
    fn new(policy: Policy) -> Self {
        Self {
            entries: Vec::new(),
            by_id: HashMap::new(),
            seen: HashSet::new(),
            leaf: None,
            copies: Vec::new(),
            echoes: Vec::new(),
            answers: Vec::new(),
            policy,
        }
    }

    /// Adds the nodes of a record.
    fn nodes(
        &mut self,
        to: &mut Conversation,
        record: &Record<'_>,
        subtype: Option<&str>,
    ) -> Vec<NodeId> {
        let object = &record.object;
        let mut nodes = Vec::new();
        let mut add = |to: &mut Conversation, message: &Object<'_>| {
            let Some(parts) = message.get("parts") else {
                return;
            };
            let is_of_model = message.str("role").is_some_and(|role| role == "model");
            for made in nodes_of(record, parts, is_of_model) {
                if made.kind == NodeKind::Assistant {
                    let body = made.body.unwrap_or_default();
                    self.answers.push(Fingerprint::of_body(body));
                }
                let mut node = NewNode::new(made.kind, made.content);
                node.origin = Some(record.place_of(made.place));
                node.record_id = record.id("uuid");
                node.time = record.time("timestamp");
                node.model = object.str("model").map(|model| to.name(&model));
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
                to.nodes.set_kind(summary, NodeKind::Summary);
            }
        }
        let usage = object.object("usageMetadata").map(|usage| usage_of(&usage));
        to.count(&nodes, usage);
        nodes
    }

    fn learn(to: &mut Conversation, record: &Record<'_>, subtype: Option<&str>) {
        let metadata = &mut to.metadata;
        let learn = |known: &mut Option<String>, key| {
            if let Some(value) = string(&record.object, key) {
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
        let mut places: HashMap<u64, VecDeque<usize>> = HashMap::new();
        for (at, answer) in self.answers.iter().enumerate() {
            places.entry(*answer).or_default().push_back(at);
        }
        // The number of answers whose telemetry came: answers come in its order.
        let mut done = 0;
        for echo in std::mem::take(&mut self.echoes) {
            let places = places.entry(echo.fingerprint).or_default();
            while places.front().is_some_and(|at| *at < done) {
                places.pop_front();
            }
            if let Some(at) = places.pop_front() {
                done = at + 1;
                continue;
            }
            let mut node = NewNode::new(NodeKind::Assistant, NewContent::text(echo.text));
            node.origin = Some(echo.place);
            let id = to.add(node);
            self.entries[echo.entry].nodes.extend(&[id]);
            if let Ok(part) = to
                .parts
                .binary_search_by_key(&echo.place, |part| part.place)
            {
                to.parts[part].holds = Holds::Nodes(vec![id].into());
            }
        }
    }

    /// Chooses the live nodes and the branches.
    fn choose(mut self, to: &mut Conversation) {
        if self.policy == Policy::Recover && !to.damage.is_empty() {
            self.recover(to);
        }
        // Only the reading needs it.
        self.seen = HashSet::new();
        to.branch(BranchKind::Superseded, self.copies);
        let Some(leaf) = self.leaf else { return };
        let entries = &self.entries;
        let links = entries.iter().map(|entry| &entry.link);
        let tree = Tree::new(links, self.by_id, self.policy);
        let path = tree.path(leaf, to);
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
            usages.for_each(|of_node| usage += *of_node);
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
        let Some(id) = Id::in_field(&record.object, "uuid") else {
            return to.unknown(&kind);
        };
        let subtype = record.object.str("subtype");
        let subtype = subtype.as_deref();
        Self::learn(to, record, subtype);
        let nodes = self.nodes(to, record, subtype);
        let is_copy = !self
            .seen
            .insert(id.with_bytes(record.object.text().as_bytes()));
        let at = *self.by_id.entry(id).or_insert_with(|| {
            self.entries.push(Entry {
                link: Link::of(&record.object, id, "parentUuid", to),
                nodes: NodeIds::default(),
                is_compaction: false,
            });
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        }) as usize;
        self.leaf = Some(at);
        let entry = &mut self.entries[at];
        if self.policy == Policy::Recover && is_copy {
            self.copies.extend(&nodes);
        } else {
            entry.nodes.extend(&nodes);
        }
        if subtype == Some("ui_telemetry") {
            self.echoes.extend(Echo::of(record, at));
        }
        entry.is_compaction |= subtype == Some("chat_compression");
        match KNOWN_SYSTEM.iter().find(|known| Some(**known) == subtype) {
            _ if !nodes.is_empty() => Holds::Nodes(nodes.into()),
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

/// Returns the tokens of an answer. Providers count thoughts as a part of the output or apart: the total shows which.
fn usage_of(usage: &Object<'_>) -> Usage {
    let number = |key| usage.u64(key).unwrap_or_default();
    let tokens = Usage {
        input: number("promptTokenCount"),
        output: number("candidatesTokenCount"),
        cache_read: number("cachedContentTokenCount"),
        cache_write: 0,
        reasoning: number("thoughtsTokenCount"),
    };
    let rest = number("totalTokenCount").saturating_sub(tokens.input);
    let is_separate = rest >= tokens.output.saturating_add(tokens.reasoning);
    let tokens = tokens.of_whole_input();
    if is_separate {
        tokens.of_separate_thoughts()
    } else {
        tokens
    }
}
