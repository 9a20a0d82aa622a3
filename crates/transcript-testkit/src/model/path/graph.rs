//! The entries of a file and the links between them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::entry::PathEntry;
use crate::model::lines::Line;
use crate::model::time;

/// The kinds of entries that can be part of a conversation. Lines of all other types are ignored,
/// except `progress` lines, which are passed over (CHAIN-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Assistant,
    System,
    Attachment,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) object: Map<String, Value>,
    pub(super) kind: Kind,
    /// The uuid as JSON text, so that entries with a strange or no uuid have a key as well.
    pub(super) key: String,
    /// Key of the parent; `None` for a root.
    pub(super) parent: Option<String>,
    pub(super) millis: Option<i64>,
    pub(super) is_sidechain: bool,
    /// The id of the message that an assistant line is a part of.
    pub(super) message_id: Option<String>,
    /// Ids of the tool calls in an assistant line.
    pub(super) calls: Vec<String>,
    /// Ids of the tool calls that a user line has results for.
    pub(super) answers: Vec<String>,
}

impl Entry {
    pub(super) fn new(line: &Line, kind: Kind, bridges: &HashMap<String, Option<String>>) -> Entry {
        let object = &line.object;
        let message = object.get("message").unwrap_or(&Value::Null);
        let ids = |of: Kind, block_type: &str, field: &str| -> Vec<String> {
            let blocks = message["content"].as_array().filter(|_| kind == of);
            let blocks = blocks
                .into_iter()
                .flatten()
                .filter(|block| block["type"] == block_type);
            blocks
                .filter_map(|block| block[field].as_str())
                .map(str::to_owned)
                .collect()
        };
        let message_id = message["id"].as_str().filter(|_| kind == Kind::Assistant);
        Entry {
            line: line.number,
            kind,
            key: key(object),
            parent: bridged(parent_key(object), bridges),
            millis: object
                .get("timestamp")
                .and_then(Value::as_str)
                .and_then(time::parse),
            is_sidechain: object.get("isSidechain") == Some(&Value::Bool(true)),
            message_id: message_id.map(str::to_owned),
            calls: ids(Kind::Assistant, "tool_use", "id"),
            answers: ids(Kind::User, "tool_result", "tool_use_id"),
            object: object.clone(),
        }
    }

    pub(super) fn uuid(&self) -> Option<String> {
        self.object.get("uuid")?.as_str().map(str::to_owned)
    }

    pub(super) fn is_message(&self) -> bool {
        matches!(self.kind, Kind::User | Kind::Assistant)
    }

    pub(super) fn has_flag(&self, name: &str) -> bool {
        self.object.get(name) == Some(&Value::Bool(true))
    }

    /// Returns whether this is a line that goes with the messages around it: an attachment, a system
    /// line, or a user line without a result that the client wrote itself (CHAIN-9).
    pub(super) fn is_loose(&self) -> bool {
        let is_loose = match self.kind {
            Kind::User => self.has_flag("isMeta") && self.answers.is_empty(),
            Kind::System => !self.is_boundary(),
            Kind::Attachment => true,
            Kind::Assistant => false,
        };
        is_loose && !self.is_sidechain
    }

    pub(super) fn is_boundary(&self) -> bool {
        self.kind == Kind::System && self.object.get("subtype") == Some(&"compact_boundary".into())
    }

    pub(super) fn to_path_entry(&self) -> PathEntry {
        PathEntry {
            line: self.line,
            uuid: self.uuid(),
            value: Value::Object(self.object.clone()),
        }
    }
}

/// The entries of a file, each once, linked by the keys of their parents.
#[derive(Debug)]
pub(super) struct Graph {
    /// In file order; a repeated entry is at its first place with its last content.
    pub(super) entries: Vec<Entry>,
    pub(super) places: HashMap<String, usize>,
    /// Whether all messages are on sidechains, which are then the main chain.
    pub(super) is_subagent: bool,
}

impl Graph {
    pub(super) fn new(lines: &[Line]) -> Graph {
        let bridges = bridges(lines);
        let mut graph = Graph {
            entries: Vec::new(),
            places: HashMap::new(),
            is_subagent: false,
        };
        for line in lines {
            let Some(kind) = kind(&line.object) else {
                continue;
            };
            if !has_usable_body(kind, &line.object) {
                continue;
            }
            let entry = Entry::new(line, kind, &bridges);
            graph.insert(entry);
        }
        // In the file of a subagent every line is on a sidechain, which is then the main chain.
        graph.is_subagent = graph.has_message() && !graph.has_main_message();
        if graph.is_subagent {
            for entry in &mut graph.entries {
                entry.is_sidechain = false;
            }
        }
        graph
    }

    /// Of entries with one uuid the last one counts, at the place of the first (FILE-7). Entries
    /// without a uuid are not an exception: they share the key of a missing uuid (FILE-8).
    pub(super) fn insert(&mut self, entry: Entry) {
        match self.places.get(&entry.key) {
            Some(&place) => self.entries[place] = entry,
            None => {
                self.places.insert(entry.key.clone(), self.entries.len());
                self.entries.push(entry);
            }
        }
    }

    pub(super) fn remove(&mut self, gone: &HashSet<String>) {
        self.entries.retain(|entry| !gone.contains(&entry.key));
        let keys = self.entries.iter().map(|entry| entry.key.clone());
        self.places = keys.enumerate().map(|(place, key)| (key, place)).collect();
    }

    pub(super) fn place(&self, key: &str) -> Option<usize> {
        self.places.get(key).copied()
    }

    /// Returns the parent of `index`; `None` when it does not name one or the parent is missing.
    pub(super) fn parent(&self, index: usize) -> Option<usize> {
        self.place(self.entries[index].parent.as_deref()?)
    }

    /// Returns `index` and its ancestors, nearest first, by links of the file alone.
    pub(super) fn ancestors(&self, index: usize) -> Vec<usize> {
        let mut seen = HashSet::from([index]);
        let mut line = vec![index];
        while let Some(parent) = self.parent(line[line.len() - 1]) {
            if !seen.insert(parent) {
                break;
            }
            line.push(parent);
        }
        line
    }

    /// Returns the children of each entry, in file order.
    pub(super) fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.entries.len()];
        for index in 0..self.entries.len() {
            if let Some(parent) = self.parent(index) {
                children[parent].push(index);
            }
        }
        children
    }

    pub(super) fn has_message(&self) -> bool {
        self.entries.iter().any(Entry::is_message)
    }

    pub(super) fn has_main_entry(&self) -> bool {
        self.entries.iter().any(|entry| !entry.is_sidechain)
    }

    pub(super) fn has_main_message(&self) -> bool {
        let mut messages = self.entries.iter().filter(|entry| entry.is_message());
        messages.any(|entry| !entry.is_sidechain)
    }

    /// Returns whether the leaf has a valid time. Attachments need none (LEAF-17).
    pub(super) fn has_time_of_leaf(&self, leaf: usize) -> bool {
        let leaf = &self.entries[leaf];
        leaf.kind == Kind::Attachment || leaf.millis.is_some()
    }

    pub(super) fn has_message_above(&self, index: usize) -> bool {
        self.ancestors(index)
            .iter()
            .any(|&above| self.entries[above].is_message())
    }

    /// Returns the chain that ends at `leaf`, oldest first. A parent that is missing, or closes a
    /// cycle, is replaced by the previous entry in time (CHAIN-1, CHAIN-3).
    pub(super) fn chain(&self, leaf: usize) -> Vec<usize> {
        let mut chain = vec![leaf];
        let mut seen = HashSet::from([leaf]);
        loop {
            let last = chain[chain.len() - 1];
            if self.entries[last].parent.is_none() {
                break;
            }
            let real = self.parent(last).filter(|parent| !seen.contains(parent));
            let Some(parent) = real.or_else(|| self.relink(last, &seen)) else {
                break;
            };
            seen.insert(parent);
            chain.push(parent);
        }
        chain.reverse();
        chain
    }

    /// Returns the replacement of a missing parent: the newest entry that is not newer than `child`,
    /// if it is at most 5 s older; of equal ones the first in the file. Its position in the file does
    /// not matter otherwise (CHAIN-3).
    pub(super) fn relink(&self, child: usize, chain: &HashSet<usize>) -> Option<usize> {
        let own = self.entries[child].millis?;
        let mut best: Option<(i64, usize)> = None;
        for (index, entry) in self.entries.iter().enumerate() {
            let Some(millis) = entry.millis else { continue };
            if entry.is_sidechain || chain.contains(&index) || millis > own || own - millis > 5000 {
                continue;
            }
            if best.is_none_or(|(newest, _)| millis > newest) {
                best = Some((millis, index));
            }
        }
        best.map(|(_, index)| index)
    }
}

pub(super) fn kind(object: &Map<String, Value>) -> Option<Kind> {
    match object.get("type")?.as_str()? {
        "user" => Some(Kind::User),
        "assistant" => Some(Kind::Assistant),
        "system" => Some(Kind::System),
        "attachment" => Some(Kind::Attachment),
        _ => None,
    }
}

pub(super) fn key(object: &Map<String, Value>) -> String {
    object
        .get("uuid")
        .map_or_else(|| "no uuid".to_owned(), Value::to_string)
}

/// A parent that is missing, null or empty makes a root.
fn parent_key(object: &Map<String, Value>) -> Option<String> {
    match object.get("parentUuid")? {
        Value::Null | Value::Bool(false) => None,
        Value::String(uuid) if uuid.is_empty() => None,
        parent => Some(parent.to_string()),
    }
}

/// Demotion: a message line without a message, or with null content, does not count (FILE-6).
fn has_usable_body(kind: Kind, object: &Map<String, Value>) -> bool {
    match kind {
        Kind::User | Kind::Assistant => {
            let content = object
                .get("message")
                .and_then(|message| message.get("content"));
            content.is_some_and(|content| !content.is_null())
        }
        Kind::System | Kind::Attachment => true,
    }
}

/// Maps each progress line to its own parent (CHAIN-2).
fn bridges(lines: &[Line]) -> HashMap<String, Option<String>> {
    let progress = lines
        .iter()
        .filter(|line| line.object.get("type") == Some(&"progress".into()));
    progress
        .map(|line| (key(&line.object), parent_key(&line.object)))
        .collect()
}

fn bridged(
    mut parent: Option<String>,
    bridges: &HashMap<String, Option<String>>,
) -> Option<String> {
    // A cycle of progress lines leads nowhere: stop after as many steps as there are bridges.
    for _ in 0..bridges.len() {
        match parent.as_ref().and_then(|parent| bridges.get(parent)) {
            Some(next) => parent.clone_from(next),
            None => break,
        }
    }
    parent
}
