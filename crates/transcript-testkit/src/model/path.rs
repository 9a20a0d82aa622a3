//! Stage 2: the objects of a file → the entries of the conversation, in order.
//!
//! Only the structure of the file is looked at here (ids, parents, kinds, times), with one
//! exception: an entry whose body is unusable is treated as if its line were not there.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::lines::{self, Line};
use super::time;

/// The conversation of a file: the entries on the way to its leaf.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The entries in the order in which they are told, attachments and system lines included.
    pub entries: Vec<PathEntry>,
    /// The uuid of the leaf; `None` when there is no leaf or the leaf has no uuid.
    pub leaf: Option<String>,
    /// Why the client refuses to resume this file.
    pub refusal: Option<String>,
}

/// One entry of a [`Path`].
#[derive(Clone, Debug)]
pub struct PathEntry {
    /// Number of the physical line, counted from 1.
    pub line: usize,
    /// The entry's uuid, when it is a text.
    pub uuid: Option<String>,
    /// The whole entry.
    pub value: Value,
}

/// Returns the path that the client would take through the file `bytes`.
pub fn vendor_path(bytes: &[u8]) -> Path {
    let lines = lines::parse(bytes);
    let mut graph = Graph::new(&lines);
    splice(&mut graph);

    let Some(leaf) = pinned_leaf(&graph, &lines).or_else(|| last_tip(&graph)) else {
        return refuse("the file holds no conversation");
    };
    if graph.entries[leaf].millis.is_none() {
        // 40-44, 40-45: no fallback to an older leaf.
        return refuse("the leaf has no valid timestamp");
    }

    let mut chain = graph.chain(leaf);
    // The leaf's own attachments belong to it, even those that lead on (91-e5). In a cycle they
    // can stand on the chain already.
    let own = attachments_under(&graph, leaf);
    chain.extend(
        own.into_iter()
            .filter(|index| !chain.contains(index))
            .collect::<Vec<_>>(),
    );
    cut_at_boundary(&graph, &mut chain);
    let chain = with_siblings(&graph, chain);

    let entries = chain
        .iter()
        .map(|&index| graph.entries[index].to_path_entry())
        .collect();
    Path {
        entries,
        leaf: graph.entries[leaf].uuid(),
        refusal: None,
    }
}

fn refuse(reason: &str) -> Path {
    Path {
        refusal: Some(reason.to_owned()),
        ..Path::default()
    }
}

// ---------------------------------------------------------------------------------------------
// The graph
// ---------------------------------------------------------------------------------------------

/// The kinds of entries that can be part of a conversation. Lines of all other types are not
/// there at all, but for `progress` lines, which are bridged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    User,
    Assistant,
    System,
    Attachment,
}

#[derive(Debug)]
struct Entry {
    line: usize,
    object: Map<String, Value>,
    kind: Kind,
    /// The uuid as JSON text, so that entries with a strange or no uuid have a key as well.
    key: String,
    /// Key of the parent; `None` for a root.
    parent: Option<String>,
    millis: Option<i64>,
    is_sidechain: bool,
    /// The id of the message that an assistant line is a part of.
    message_id: Option<String>,
    /// Ids of the tool calls in an assistant line.
    calls: Vec<String>,
    /// Ids of the tool calls that a user line has results for.
    answers: Vec<String>,
}

impl Entry {
    fn new(line: &Line, kind: Kind, bridges: &HashMap<String, Option<String>>) -> Entry {
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

    fn uuid(&self) -> Option<String> {
        self.object.get("uuid")?.as_str().map(str::to_owned)
    }

    fn is_message(&self) -> bool {
        matches!(self.kind, Kind::User | Kind::Assistant)
    }

    fn is_boundary(&self) -> bool {
        self.kind == Kind::System && self.object.get("subtype") == Some(&"compact_boundary".into())
    }

    fn to_path_entry(&self) -> PathEntry {
        PathEntry {
            line: self.line,
            uuid: self.uuid(),
            value: Value::Object(self.object.clone()),
        }
    }
}

/// The entries of a file, each once, linked by the keys of their parents.
#[derive(Debug)]
struct Graph {
    /// In file order; an entry that is repeated stands at its first place with its last content.
    entries: Vec<Entry>,
    places: HashMap<String, usize>,
}

impl Graph {
    fn new(lines: &[Line]) -> Graph {
        let bridges = bridges(lines);
        let mut graph = Graph {
            entries: Vec::new(),
            places: HashMap::new(),
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
        // The file of a subagent is all sidechain; it is its own main chain.
        if graph
            .entries
            .iter()
            .all(|entry| entry.is_sidechain || !entry.is_message())
        {
            graph
                .entries
                .iter_mut()
                .for_each(|entry| entry.is_sidechain = false);
        }
        graph
    }

    /// Of entries with one uuid the last one counts, at the place of the first (40-10, 91-d0).
    /// Entries without a uuid are no exception: they share the key of a missing uuid (91-31).
    fn insert(&mut self, entry: Entry) {
        match self.places.get(&entry.key) {
            Some(&place) => self.entries[place] = entry,
            None => {
                self.places.insert(entry.key.clone(), self.entries.len());
                self.entries.push(entry);
            }
        }
    }

    fn remove(&mut self, gone: &HashSet<String>) {
        self.entries.retain(|entry| !gone.contains(&entry.key));
        let keys = self.entries.iter().map(|entry| entry.key.clone());
        self.places = keys.enumerate().map(|(place, key)| (key, place)).collect();
    }

    fn place(&self, key: &str) -> Option<usize> {
        self.places.get(key).copied()
    }

    /// The entry that `index` names as its parent, when it is there.
    fn parent(&self, index: usize) -> Option<usize> {
        self.place(self.entries[index].parent.as_deref()?)
    }

    /// `index` and all entries above it, nearest first, by real links alone.
    fn ancestors(&self, index: usize) -> Vec<usize> {
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

    fn has_message_above(&self, index: usize) -> bool {
        self.ancestors(index)
            .iter()
            .any(|&above| self.entries[above].is_message())
    }

    /// The chain that ends at `leaf`, oldest first. A parent that is lost, or that closes a cycle,
    /// is replaced by the entry that stands next before in time.
    fn chain(&self, leaf: usize) -> Vec<usize> {
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

    /// The entry that takes the place of a lost parent: the newest one that is not newer than
    /// `child`, if it is at most 5 s older (40-7-gap-05000 and -05100); of equal ones the first
    /// in the file (40-59). Where it stands in the file does not matter (40-34, 40-58).
    fn relink(&self, child: usize, chain: &HashSet<usize>) -> Option<usize> {
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

fn kind(object: &Map<String, Value>) -> Option<Kind> {
    match object.get("type")?.as_str()? {
        "user" => Some(Kind::User),
        "assistant" => Some(Kind::Assistant),
        "system" => Some(Kind::System),
        "attachment" => Some(Kind::Attachment),
        _ => None,
    }
}

fn key(object: &Map<String, Value>) -> String {
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

/// Demotion: a message line without a message, or with content null, is not there (40-26).
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

/// Where each progress line leads: its own parent (41-14).
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

// ---------------------------------------------------------------------------------------------
// Compaction
// ---------------------------------------------------------------------------------------------

/// The entries that a boundary preserves, oldest first, and the entry they follow.
struct Preserved {
    anchor: String,
    uuids: Vec<String>,
}

/// The list counts when there is one, even an empty one (45-18, 91-b8); else the entries from the
/// tail up to the head of the segment. `None` when nothing is preserved, or when one of the
/// entries is not there (45-07, 91-b6, 91-b7).
fn preserved(graph: &Graph, metadata: &Value) -> Option<Preserved> {
    let list = &metadata["preservedMessages"];
    let segment = &metadata["preservedSegment"];
    let (anchor, uuids) = if list.is_object() {
        let uuids: Option<Vec<String>> = list["uuids"].as_array()?.iter().map(text_key).collect();
        (text_key(&list["anchorUuid"])?, uuids?)
    } else {
        (
            text_key(&segment["anchorUuid"])?,
            segment_uuids(graph, segment)?,
        )
    };
    let all_there = uuids
        .iter()
        .chain([&anchor])
        .all(|key| graph.place(key).is_some());
    (all_there && !uuids.is_empty()).then_some(Preserved { anchor, uuids })
}

/// The key that a text names; a `null` names nothing, although an entry may have it for its uuid.
fn text_key(value: &Value) -> Option<String> {
    value.is_string().then(|| value.to_string())
}

fn segment_uuids(graph: &Graph, segment: &Value) -> Option<Vec<String>> {
    let head = graph.place(&text_key(&segment["headUuid"])?)?;
    let tail = graph.place(&text_key(&segment["tailUuid"])?)?;
    let mut line = graph.ancestors(tail);
    let length = line.iter().position(|&index| index == head)? + 1;
    line.truncate(length);
    Some(
        line.into_iter()
            .rev()
            .map(|index| graph.entries[index].key.clone())
            .collect(),
    )
}

/// Hangs the entries that the last boundary preserves behind its anchor, and what hung under the
/// anchor behind their tail (rig 9). Everything else before the boundary is gone.
fn splice(graph: &mut Graph) {
    let Some(boundary) = graph.entries.iter().rposition(Entry::is_boundary) else {
        return;
    };
    let Some(metadata) = graph.entries[boundary].object.get("compactMetadata") else {
        return;
    };
    let Some(Preserved { anchor, uuids }) = preserved(graph, metadata) else {
        return;
    };
    let tail = &uuids[uuids.len() - 1];

    let kept: HashSet<&String> = uuids.iter().chain([&anchor]).collect();
    let gone: HashSet<String> = graph.entries[..boundary]
        .iter()
        .filter(|entry| !kept.contains(&entry.key))
        .map(|entry| entry.key.clone())
        .collect();
    graph.remove(&gone);
    for entry in &mut graph.entries {
        // A rewind to an entry that is gone follows the tail (91-d6, with the boundary as anchor
        // 90-rnd-0065).
        if entry
            .parent
            .as_ref()
            .is_some_and(|parent| *parent == anchor || gone.contains(parent))
        {
            entry.parent = Some(tail.clone());
        }
    }
    let mut parent = &anchor;
    for uuid in &uuids {
        let place = graph.places[uuid];
        graph.entries[place].parent = Some(parent.clone());
        parent = uuid;
    }
}

/// The conversation starts at the last boundary of its chain.
fn cut_at_boundary(graph: &Graph, chain: &mut Vec<usize>) {
    if let Some(at) = chain
        .iter()
        .rposition(|&index| graph.entries[index].is_boundary())
    {
        chain.drain(..at);
    }
}

// ---------------------------------------------------------------------------------------------
// The leaf
// ---------------------------------------------------------------------------------------------

/// The last tip of the file: an entry of the main chain that nothing but attachments hangs under
/// and that has a message above it (rig 4.2). When a cycle leaves no tip: the last line (40-07).
fn last_tip(graph: &Graph) -> Option<usize> {
    let mut has_child = vec![false; graph.entries.len()];
    for index in 0..graph.entries.len() {
        let entry = &graph.entries[index];
        if let Some(parent) = graph.parent(index)
            && entry.kind != Kind::Attachment
            && !entry.is_sidechain
        {
            has_child[parent] = true;
        }
    }
    let counts =
        |&index: &usize| !graph.entries[index].is_sidechain && graph.has_message_above(index);
    (0..graph.entries.len())
        .rev()
        .filter(|&index| !has_child[index])
        .find(counts)
        .or_else(|| (0..graph.entries.len()).rev().find(counts))
}

/// The leaf that the last `last-prompt` line asks for; `None` when the last tip is right
/// (rig 4.3).
fn pinned_leaf(graph: &Graph, lines: &[Line]) -> Option<usize> {
    let (at, pin) = lines.iter().enumerate().rev().find_map(|(at, line)| {
        let is_pin = line.object.get("type") == Some(&"last-prompt".into());
        let uuid = line.object.get("leafUuid").filter(|uuid| uuid.is_string());
        uuid.filter(|_| is_pin).map(|uuid| (at, uuid))
    })?;
    let explicit = lines[at].object.get("explicit") == Some(&Value::Bool(true));
    // Unknown, or leading to no message: ignored (41-22, 91-49). The zero uuid is unknown (41-30).
    let pin = graph
        .place(&pin.to_string())
        .filter(|&pin| graph.has_message_above(pin))?;

    let under_pin = |index: usize| graph.ancestors(index).contains(&pin);
    let followers = lines[at + 1..]
        .iter()
        .filter(|line| kind(&line.object).is_some());
    let followers: Vec<usize> = followers
        .filter_map(|line| graph.place(&key(&line.object)))
        .collect();
    if followers.is_empty() {
        // At the end of the file the pin gives way to the last tip when that stands under it,
        // unless the user chose the place explicitly (41-23, 41-31).
        let gives_way = !explicit && last_tip(graph).is_some_and(under_pin);
        return if gives_way { None } else { Some(pin) };
    }
    // Lines that were written later move the pin on when the last one of them stands under it, be
    // it a repeated one (91-e0, 91-e1); otherwise the chain ends at the pin (41-20), also when
    // others of them stand under it (90-rnd-0033, 90-rnd-0148). A bare boundary does not count
    // (90-rnd-0085).
    let can_be_leaf =
        |&index: &usize| !graph.entries[index].is_sidechain && graph.has_message_above(index);
    match followers.into_iter().rfind(can_be_leaf) {
        Some(last) if under_pin(last) => Some(last),
        _ => Some(pin),
    }
}

// ---------------------------------------------------------------------------------------------
// Siblings
// ---------------------------------------------------------------------------------------------

/// The attachments under `index`, and those under them, in file order.
fn attachments_under(graph: &Graph, index: usize) -> Vec<usize> {
    let mut found = HashSet::from([index]);
    loop {
        let before = found.len();
        for child in 0..graph.entries.len() {
            let is_attachment = graph.entries[child].kind == Kind::Attachment;
            if is_attachment
                && graph
                    .parent(child)
                    .is_some_and(|parent| found.contains(&parent))
            {
                found.insert(child);
            }
        }
        if found.len() == before {
            break;
        }
    }
    found.remove(&index);
    let mut found: Vec<usize> = found.into_iter().collect();
    found.sort_unstable();
    found
}

/// Brings back the parallel tool calls of the messages on the chain: a message is written as
/// several lines, each call is followed by its own result, and the chain runs through one of them
/// only (rig 5).
fn with_siblings(graph: &Graph, mut chain: Vec<usize>) -> Vec<usize> {
    let mut done: HashSet<&str> = HashSet::new();
    for index in chain.clone() {
        if let Some(id) = &graph.entries[index].message_id
            && done.insert(id)
        {
            chain = with_siblings_of(graph, chain, id);
        }
    }
    chain
}

fn with_siblings_of(graph: &Graph, chain: Vec<usize>, id: &str) -> Vec<usize> {
    let members = members(graph, id);
    let results = results(graph, &members);
    let recovered = recovered(graph, &chain, &members, &results);
    if recovered.is_empty() {
        return chain;
    }

    // The part of the chain that belongs to the message: from its first line to its last one and
    // the results and attachments right behind that.
    let is_member = |index: &usize| members.contains(index);
    let follows =
        |index: &usize| results.contains(index) || graph.entries[*index].kind == Kind::Attachment;
    let first = chain.iter().position(is_member).unwrap_or(chain.len());
    let behind = chain
        .iter()
        .rposition(is_member)
        .map_or(first, |last| last + 1);
    let end = behind
        + chain[behind..]
            .iter()
            .take_while(|index| follows(index))
            .count();
    let (before, rest) = chain.split_at(first);
    let (own, after) = rest.split_at(end - first);

    // The lines of the message in file order, then results and attachments in file order, the
    // recovered ones and those of the chain (91-91), then what else stood between them.
    let own = own.iter().copied().filter(|index| !is_member(index));
    let (mut followers, others): (Vec<usize>, Vec<usize>) = own.partition(|index| follows(index));
    followers.extend(recovered.into_iter().filter(|index| !is_member(index)));
    followers.sort_unstable();
    [before, &members, &followers, &others, after].concat()
}

/// The lines of a message, wherever they stand in the file.
fn members(graph: &Graph, id: &str) -> Vec<usize> {
    let is_member = |&index: &usize| graph.entries[index].message_id.as_deref() == Some(id);
    (0..graph.entries.len()).filter(is_member).collect()
}

/// The results of the calls of a message, wherever they hang.
fn results(graph: &Graph, members: &[usize]) -> Vec<usize> {
    let calls: Vec<&String> = members
        .iter()
        .flat_map(|&index| &graph.entries[index].calls)
        .collect();
    let is_result = |&index: &usize| {
        graph.entries[index]
            .answers
            .iter()
            .any(|id| calls.contains(&id))
    };
    (0..graph.entries.len()).filter(is_result).collect()
}

/// What of a message is not on the chain: lines, results, and the attachments under them, but not
/// those that lead on to a line of another branch (91-90, 91-92, 91-d8, 91-d9).
fn recovered(
    graph: &Graph,
    chain: &[usize],
    members: &[usize],
    results: &[usize],
) -> HashSet<usize> {
    let lines = members
        .iter()
        .chain(results)
        .copied()
        .filter(|index| !chain.contains(index));
    let lines: Vec<usize> = lines.collect();
    let attachments = lines
        .iter()
        .flat_map(|&line| attachments_under(graph, line));
    let attachments: Vec<usize> = attachments
        .filter(|attachment| !chain.contains(attachment) && !leads_on(graph, *attachment))
        .collect();
    lines.into_iter().chain(attachments).collect()
}

/// Whether something that is no attachment hangs under an attachment.
fn leads_on(graph: &Graph, attachment: usize) -> bool {
    let mut under = attachments_under(graph, attachment);
    under.push(attachment);
    (0..graph.entries.len()).any(|index| {
        graph.entries[index].kind != Kind::Attachment
            && graph
                .parent(index)
                .is_some_and(|parent| under.contains(&parent))
    })
}
