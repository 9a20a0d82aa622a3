//! Stage 2: turns the objects of a file into the entries of the conversation, in order.
//!
//! This stage only uses the structure of the file (ids, parents, kinds, times), with one exception:
//! an entry whose body is unusable is treated as if its line did not exist (FILE-6).

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::lines::{self, Line};
use super::time;

/// The conversation of a file: the entries on the way to its leaf.
#[derive(Clone, Debug, Default)]
pub struct Path {
    /// The entries in the order in which they are sent, attachments and system lines included.
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

    if graph.entries.is_empty() {
        return refuse("the file holds no conversation");
    }
    let Some(leaf) = pinned_leaf(&graph, &lines).or_else(|| unpinned_leaf(&graph)) else {
        // Nothing but system lines and attachments: the client resumes, with an empty history.
        return Path::default();
    };
    if graph.entries[leaf].millis.is_none() {
        // The client does not fall back to an older leaf: it refuses to resume.
        return refuse("the leaf has no valid timestamp");
    }

    let mut chain = graph.chain(leaf);
    // The attachments below the leaf belong to the path, even those that lead to another entry
    // (CHAIN-10). In a cycle they may be on the chain already.
    let children = graph.children();
    for attachment in attachments_under(&graph, &children, leaf) {
        if !chain.contains(&attachment) {
            chain.push(attachment);
        }
    }
    cut_at_boundary(&graph, &mut chain);
    let chain = with_siblings(&graph, &children, chain);

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

/// The kinds of entries that can be part of a conversation. Lines of all other types are ignored,
/// except `progress` lines, which are passed over (CHAIN-2).
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
    /// In file order; a repeated entry is at its first place with its last content.
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
        // In the file of a subagent every line is on a sidechain, which is then the main chain.
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

    /// Of entries with one uuid the last one counts, at the place of the first (FILE-7). Entries
    /// without a uuid are not an exception: they share the key of a missing uuid (FILE-8).
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

    /// Returns the parent of `index`; `None` when it does not name one or the parent is missing.
    fn parent(&self, index: usize) -> Option<usize> {
        self.place(self.entries[index].parent.as_deref()?)
    }

    /// Returns `index` and its ancestors, nearest first, by links of the file alone.
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

    /// Returns the children of each entry, in file order.
    fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.entries.len()];
        for index in 0..self.entries.len() {
            if let Some(parent) = self.parent(index) {
                children[parent].push(index);
            }
        }
        children
    }

    fn has_message_above(&self, index: usize) -> bool {
        self.ancestors(index)
            .iter()
            .any(|&above| self.entries[above].is_message())
    }

    /// Returns the chain that ends at `leaf`, oldest first. A parent that is missing, or closes a
    /// cycle, is replaced by the previous entry in time (CHAIN-1, CHAIN-3).
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

    /// Returns the replacement of a missing parent: the newest entry that is not newer than `child`,
    /// if it is at most 5 s older; of equal ones the first in the file. Its position in the file does
    /// not matter otherwise (CHAIN-3).
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

// ---------------------------------------------------------------------------------------------
// Compaction
// ---------------------------------------------------------------------------------------------

/// The entries that a boundary keeps, oldest first, and their anchor: the summary or the boundary.
/// The anchor is missing when the client was killed before it wrote the summary.
struct Kept {
    uuids: Vec<String>,
    anchor: Option<String>,
}

/// Returns the preserved entries: those of the list if there is one, even an empty one (COMPACT-3,
/// COMPACT-6), else those from the tail up to the head of the segment. `None` if nothing is
/// preserved, or one of the entries is missing (COMPACT-5).
fn kept(graph: &Graph, metadata: &Value) -> Option<Kept> {
    let list = &metadata["preservedMessages"];
    let segment = &metadata["preservedSegment"];
    let (anchor, uuids) = if list.is_object() {
        let uuids: Option<Vec<String>> = list["uuids"].as_array()?.iter().map(text_key).collect();
        (text_key(&list["anchorUuid"]), uuids?)
    } else {
        (
            text_key(&segment["anchorUuid"]),
            segment_uuids(graph, segment)?,
        )
    };
    let is_there = |key: &String| graph.place(key).is_some();
    if uuids.is_empty() || !uuids.iter().all(is_there) {
        return None;
    }
    Some(Kept {
        uuids,
        anchor: anchor.filter(is_there),
    })
}

/// Returns the key for a uuid that is a text. A `null` names no entry, although it may be the uuid of
/// an entry.
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

/// Moves the entries that the last boundary keeps after its anchor; the children of the anchor become
/// children of their tail. Without the anchor they start the conversation. Everything else before the
/// boundary is removed.
fn splice(graph: &mut Graph) {
    let Some(boundary) = graph.entries.iter().rposition(Entry::is_boundary) else {
        return;
    };
    let Some(metadata) = graph.entries[boundary].object.get("compactMetadata") else {
        return;
    };
    let Some(Kept { uuids, anchor }) = kept(graph, metadata) else {
        return;
    };
    let tail = &uuids[uuids.len() - 1];

    let stays = |key: &String| uuids.contains(key) || anchor.as_ref() == Some(key);
    let gone: HashSet<String> = graph.entries[..boundary]
        .iter()
        .filter(|entry| !stays(&entry.key))
        .map(|entry| entry.key.clone())
        .collect();
    graph.remove(&gone);
    for entry in &mut graph.entries {
        // A rewind to an entry that was removed follows the tail, also when the anchor is the
        // boundary (COMPACT-7).
        if entry
            .parent
            .as_ref()
            .is_some_and(|parent| anchor.as_ref() == Some(parent) || gone.contains(parent))
        {
            entry.parent = Some(tail.clone());
        }
    }
    let mut parent = anchor.as_ref();
    for uuid in &uuids {
        let place = graph.places[uuid];
        graph.entries[place].parent = parent.cloned();
        parent = Some(uuid);
    }
}

/// Cuts the chain at its last boundary, where the conversation starts (COMPACT-2).
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

/// Returns the leaf without a pin: the last tip of the file, where a tip is an entry of the main chain
/// whose children are all attachments (LEAF-1, LEAF-2). If a cycle leaves no tip, it is the last line
/// (LEAF-4). If the last tip has no message above it, for example a boundary, it is the newest message
/// (LEAF-3, LEAF-14). `None` if the file has no message.
fn unpinned_leaf(graph: &Graph) -> Option<usize> {
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
    let on_main_chain: Vec<usize> = (0..graph.entries.len())
        .filter(|&index| !graph.entries[index].is_sidechain)
        .collect();
    let mut tips = on_main_chain.iter().filter(|&&index| !has_child[index]);
    let last = *tips.next_back().or(on_main_chain.last())?;
    if graph.has_message_above(last) {
        return Some(last);
    }
    newest_message(graph)
}

/// Returns the message of the main chain with the greatest timestamp; of equal ones the first.
fn newest_message(graph: &Graph) -> Option<usize> {
    let mut newest: Option<usize> = None;
    for (index, entry) in graph.entries.iter().enumerate() {
        if entry.is_sidechain || !entry.is_message() {
            continue;
        }
        if newest.is_none_or(|newest| entry.millis > graph.entries[newest].millis) {
            newest = Some(index);
        }
    }
    newest
}

/// Returns the leaf that the pin, the last `last-prompt` line, names. `None` when there is no pin, or
/// when it gives way to the leaf that the file has without it.
fn pinned_leaf(graph: &Graph, lines: &[Line]) -> Option<usize> {
    let (at, pin) = lines.iter().enumerate().rev().find_map(|(at, line)| {
        let is_pin = line.object.get("type") == Some(&"last-prompt".into());
        let uuid = line.object.get("leafUuid").filter(|uuid| uuid.is_string());
        uuid.filter(|_| is_pin).map(|uuid| (at, uuid))
    })?;
    let explicit = lines[at].object.get("explicit") == Some(&Value::Bool(true));
    let after = &lines[at + 1..];
    // Any boundary after the pin removes it, whatever else the boundary line contains (LEAF-13).
    if after.iter().any(is_boundary_line) {
        return None;
    }
    // Ignored if unknown, such as the uuid of zeros, or leading to no message (LEAF-6, LEAF-7).
    let pin = graph
        .place(&pin.to_string())
        .filter(|&pin| graph.has_message_above(pin))?;

    let followers: Vec<usize> = after
        .iter()
        .filter(|line| kind(&line.object).is_some())
        .filter_map(|line| graph.place(&key(&line.object)))
        .filter(|&index| !graph.entries[index].is_sidechain)
        .collect();
    let leaf = match followers.last() {
        // If the last later line is a descendant of the pin, the path ends there, even if that line
        // is a repeated one or other later lines are not descendants (LEAF-8). A line without a
        // parent is not a descendant.
        Some(&last) => last,
        // At the end of the file, the pin gives way to the last tip if that is a descendant
        // (LEAF-8), unless the user chose the place explicitly (LEAF-11).
        None if explicit => return Some(pin),
        None => unpinned_leaf(graph)?,
    };
    if !lies_on_chain(graph, pin, leaf) {
        // On another branch the chain ends at the pin (LEAF-10).
        return Some(pin);
    }
    (!followers.is_empty()).then_some(leaf)
}

fn is_boundary_line(line: &Line) -> bool {
    line.object.get("type") == Some(&"system".into())
        && line.object.get("subtype") == Some(&"compact_boundary".into())
}

/// Returns whether `index` is an ancestor of `leaf`, by links of the file alone. The lines of a
/// message and the results of its calls count as ancestors when one of the lines is one (LEAF-12).
fn lies_on_chain(graph: &Graph, index: usize, leaf: usize) -> bool {
    graph.ancestors(leaf).into_iter().any(|above| {
        let members = members(graph, above);
        above == index || members.contains(&index) || results(graph, &members).contains(&index)
    })
}

// ---------------------------------------------------------------------------------------------
// Siblings
// ---------------------------------------------------------------------------------------------

/// Returns the attachments below `index`, through other attachments, in file order.
fn attachments_under(graph: &Graph, children: &[Vec<usize>], index: usize) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut open = vec![index];
    while let Some(parent) = open.pop() {
        for &child in &children[parent] {
            if graph.entries[child].kind == Kind::Attachment && !found.contains(&child) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found.retain(|&attachment| attachment != index);
    found.sort_unstable();
    found
}

/// Adds the parallel siblings of the messages on the chain: a message is written as several lines,
/// each call is followed by its own result, and only one of these lines is on the chain.
fn with_siblings(graph: &Graph, children: &[Vec<usize>], mut chain: Vec<usize>) -> Vec<usize> {
    let mut done: HashSet<usize> = HashSet::new();
    for index in chain.clone() {
        if graph.entries[index].kind == Kind::Assistant && !done.contains(&index) {
            let members = members(graph, index);
            chain = with_siblings_of(graph, children, chain, &members);
            done.extend(members);
        }
    }
    chain
}

/// Adds the missing lines and results of one message, whose lines are `members`.
fn with_siblings_of(
    graph: &Graph,
    children: &[Vec<usize>],
    chain: Vec<usize>,
    members: &[usize],
) -> Vec<usize> {
    let results = results(graph, members);
    let attachments = attachments_of(graph, children, members, &results);
    let lost = |index: &usize| !chain.contains(index);
    let lost_lines: Vec<usize> = members.iter().copied().filter(lost).collect();
    let mut lost_followers: Vec<usize> = results
        .iter()
        .chain(&attachments)
        .copied()
        .filter(lost)
        .collect();
    if lost_lines.is_empty() && lost_followers.is_empty() {
        return chain;
    }
    let chain = with_lines(chain, members, &lost_lines);

    // Each stretch of the chain with consecutive lines of the message is followed by results and
    // attachments. The lines come first; the results and attachments after them, together with
    // the missing ones of the calls of these lines, are sorted by their place in the file.
    let is_line = |index: &usize| members.contains(index);
    let follows =
        |index: &usize| results.contains(index) || graph.entries[*index].kind == Kind::Attachment;
    let mut out: Vec<usize> = Vec::new();
    let mut rest = &chain[..];
    while let Some(start) = rest.iter().position(is_line) {
        out.extend(&rest[..start]);
        rest = &rest[start..];
        let length = rest
            .iter()
            .take_while(|index| is_line(index) || follows(index))
            .count();
        let (lines, mut followers): (Vec<usize>, Vec<usize>) =
            rest[..length].iter().copied().partition(is_line);
        rest = &rest[length..];
        let is_last = !rest.iter().any(is_line);
        let (here, later): (Vec<usize>, Vec<usize>) = lost_followers
            .into_iter()
            .partition(|&index| is_last || belongs_to(graph, index, &lines));
        lost_followers = later;
        followers.extend(here);
        followers.sort_unstable();
        out.extend(lines);
        out.extend(followers);
    }
    out.extend(rest);
    out
}

/// Returns the chain with the missing lines of a message. Each comes after the last line of the
/// message on the chain that precedes it in the file, at the earliest after the first one (CHAIN-7).
fn with_lines(mut chain: Vec<usize>, members: &[usize], lost_lines: &[usize]) -> Vec<usize> {
    let on_chain = chain.clone();
    for &lost in lost_lines {
        let places = chain.iter().enumerate();
        let mut places = places.filter(|(_, index)| members.contains(index));
        let first = places.next().map_or(0, |(at, _)| at);
        let before = chain
            .iter()
            .rposition(|index| members.contains(index) && *index < lost);
        let mut at = before.unwrap_or(first).max(first) + 1;
        // After the missing lines that were already inserted at this place.
        while at < chain.len() && lost_lines.contains(&chain[at]) && !on_chain.contains(&chain[at])
        {
            at += 1;
        }
        chain.insert(at, lost);
    }
    chain
}

/// Returns whether a result or an attachment belongs to one of the lines: it answers one of their
/// calls, or is below such a line or result, directly or through other attachments.
fn belongs_to(graph: &Graph, index: usize, lines: &[usize]) -> bool {
    let answers = results(graph, lines);
    graph
        .ancestors(index)
        .into_iter()
        .find(|&above| graph.entries[above].kind != Kind::Attachment)
        .is_some_and(|above| lines.contains(&above) || answers.contains(&above))
}

/// Returns all lines of the message of the line `index`, in file order. A line without a message id is
/// a message of its own. Empty when `index` is not an assistant line.
fn members(graph: &Graph, index: usize) -> Vec<usize> {
    if graph.entries[index].kind != Kind::Assistant {
        return Vec::new();
    }
    let Some(id) = &graph.entries[index].message_id else {
        return vec![index];
    };
    (0..graph.entries.len())
        .filter(|&other| graph.entries[other].message_id.as_ref() == Some(id))
        .collect()
}

/// Returns the results of the calls of a message, whatever their parents.
fn results(graph: &Graph, members: &[usize]) -> Vec<usize> {
    let calls: Vec<&String> = members
        .iter()
        .flat_map(|&index| &graph.entries[index].calls)
        .collect();
    if calls.is_empty() {
        return Vec::new();
    }
    let is_result = |&index: &usize| {
        graph.entries[index]
            .answers
            .iter()
            .any(|id| calls.contains(&id))
    };
    (0..graph.entries.len()).filter(is_result).collect()
}

/// Returns the attachments of a message with calls: all below its lines and results, also between a
/// call and its result, except those of a sidechain, and those that lead to a line outside the message
/// (CHAIN-9).
fn attachments_of(
    graph: &Graph,
    children: &[Vec<usize>],
    members: &[usize],
    results: &[usize],
) -> Vec<usize> {
    if members
        .iter()
        .all(|&index| graph.entries[index].calls.is_empty())
    {
        return Vec::new();
    }
    let is_part = |index: &usize| members.contains(index) || results.contains(index);
    let leads_on = |attachment: usize| {
        let mut under = attachments_under(graph, children, attachment);
        under.push(attachment);
        let mut lines = under.iter().flat_map(|&index| &children[index]);
        lines.any(|line| graph.entries[*line].kind != Kind::Attachment && !is_part(line))
    };
    let mut found: Vec<usize> = members
        .iter()
        .chain(results)
        .flat_map(|&line| attachments_under(graph, children, line))
        .filter(|&attachment| !graph.entries[attachment].is_sidechain && !leads_on(attachment))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}
