//! Findings about the bytes of a file: which kinds of lines take most of it, duplicate lines, and lines in the wrong order.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};

use transcript_format::finding::Code;
use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_format::object::{Object, Raw};
use transcript_format::scan::{Flags, ToolRole};
use transcript_format::units::size;
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Id, Index, MessageKey, Source, ToolKey};
use transcript_resume::{Parent, Tree, is_prompt};

use crate::located_finding::LocatedFinding;

/// A conversation with more bytes is not built as a request: no API accepts one of more than 32 MB.
pub(crate) const MAX_SENT: u64 = 64 << 20;

/// The length from which a file takes long to resume, in bytes. A finding then names the kinds of lines that take most of it.
const LARGE_FILE_LEN: u64 = 50 << 20;
/// The minimum number of copied bytes that are reported. They must also be a tenth of the file.
const MIN_COPIED_BYTES: u64 = 1 << 20;
/// The maximum number of bytes of bodies that are read for one kind of finding.
const MAX_READ_BYTES: u64 = 16 << 20;

/// Returns the findings; `sent` is the number of bytes of the conversation.
pub(crate) fn findings(
    tree: &Tree<'_>,
    source: &Source,
    sent: u64,
) -> Result<Vec<LocatedFinding>, Error> {
    let mut bodies = Bodies::new(source);
    let mut found = Vec::new();
    found.extend(sizes(tree, sent, &mut bodies)?);
    found.extend(copies(tree, &mut bodies)?);
    found.extend(answers_again(tree));
    found.extend(forward(tree));
    found.extend(lost_leaves(tree));
    found.extend(snapshots(tree, &mut bodies)?);
    Ok(found)
}

/// Reports the composition of a large file: bytes by type, by tool and by turn, and the largest lines.
fn sizes(
    tree: &Tree<'_>,
    sent: u64,
    bodies: &mut Bodies<'_>,
) -> Result<Option<LocatedFinding>, Error> {
    const MAX_LINES: usize = 5;
    const MAX_RESULTS: usize = 64;
    let index = tree.index();
    let all = index.byte_count();
    if all < LARGE_FILE_LEN {
        return Ok(None);
    }
    let mut by_type: BTreeMap<&str, u64> = BTreeMap::new();
    let mut calls: HashMap<ToolKey, EntryRef<'_>> = HashMap::new();
    let mut turn = (0, 0);
    let mut largest_turn = (0, 0);
    let mut lines: Vec<EntryRef<'_>> = Vec::new();
    let mut results: Vec<EntryRef<'_>> = Vec::new();
    let keep_largest = |list: &mut Vec<EntryRef<'_>>, most: usize| {
        // Sorting at twice the length keeps the time linear, and memory small in a file of millions of lines.
        if list.len() >= 2 * most {
            list.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.byte_len()));
            list.truncate(most);
        }
    };
    for entry in index.entries() {
        *by_type.entry(entry.kind().name()).or_default() += entry.byte_len();
        if is_prompt(&entry) {
            turn = (0, entry.line());
        }
        turn.0 += entry.byte_len();
        largest_turn = largest_turn.max(turn);
        lines.push(entry);
        keep_largest(&mut lines, MAX_LINES);
        if entry.flags().contains(Flags::HAS_TOOL_RESULT) {
            results.push(entry);
            keep_largest(&mut results, MAX_RESULTS);
        }
    }
    for list in [(&mut lines, MAX_LINES), (&mut results, MAX_RESULTS)] {
        list.0
            .sort_unstable_by_key(|entry| std::cmp::Reverse(entry.byte_len()));
        list.0.truncate(list.1);
    }
    // Calls are looked up in a second pass, and only those of the largest results: a map of all calls would be large.
    let wanted: HashSet<ToolKey> = results
        .iter()
        .flat_map(|entry| keys(entry, ToolRole::Result))
        .collect();
    for entry in index.entries() {
        for key in keys(&entry, ToolRole::Use).filter(|key| wanted.contains(key)) {
            calls.insert(key, entry);
        }
    }
    let mut by_tool: BTreeMap<String, u64> = BTreeMap::new();
    for entry in &results {
        let call = keys(entry, ToolRole::Result).find_map(|key| Some((key, *calls.get(&key)?)));
        if let Some((key, call)) = call
            && let Some(name) = tool_name(bodies.get(&call)?.text, key)
        {
            *by_tool.entry(name).or_default() += entry.byte_len();
        }
    }
    let share = |(name, bytes): (&str, u64)| format!("{name} {}", size(bytes));
    let first = |map: Vec<(&str, u64)>| {
        let mut map = map;
        map.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let list: Vec<String> = map.into_iter().take(4).map(share).collect();
        list.join(", ")
    };
    let types = first(by_type.into_iter().collect());
    let tools = first(
        by_tool
            .iter()
            .map(|(name, bytes)| (name.as_str(), *bytes))
            .collect(),
    );
    let longest = lines
        .iter()
        .map(|entry| format!("{} ({})", entry.line(), size(entry.byte_len())));
    let longest: Vec<String> = longest.collect();
    let mut detail = format!("{}: {types}", size(all));
    if !tools.is_empty() {
        detail.push_str(&format!("; the largest results: {tools}"));
    }
    let (bytes, line) = largest_turn;
    detail.push_str(&format!(
        "; the largest turn: {} from line {line} on",
        size(bytes)
    ));
    detail.push_str(&format!("; the largest lines: {}", longest.join(", ")));
    detail.push_str(&format!("; the conversation: {}", size(sent)));
    if sent > MAX_SENT {
        detail.push_str(", more than any API accepts");
    }
    Ok(Some(LocatedFinding::of_file(Code::Size, detail)))
}

fn keys<'e>(entry: &EntryRef<'e>, role: ToolRole) -> impl Iterator<Item = ToolKey> + use<'e> {
    let ends = entry.tools().iter().filter(move |end| end.role() == role);
    ends.map(|end| end.key())
}

/// Returns the name of the tool of one call of a line. Names of tools are made of letters, digits,
/// `_` and `-`; others are not shown, as they could be content.
fn tool_name(body: &str, key: ToolKey) -> Option<String> {
    let line = Object::parse(body).ok()?;
    let blocks = line.object("message")?.get("content")?.array()?;
    let mut calls = blocks.into_iter().filter_map(Raw::object);
    let call = calls.find(|call| {
        call.get("id")
            .and_then(Raw::str)
            .is_some_and(|id| ToolKey::of(&id) == key)
    })?;
    let name = call.get("name")?.str()?.into_owned();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (name.len() <= 64 && name.bytes().all(is_name)).then_some(name)
}

/// Reports lines that are byte for byte copies of others, if they are a large part of the file.
fn copies(tree: &Tree<'_>, bodies: &mut Bodies<'_>) -> Result<Option<LocatedFinding>, Error> {
    let index = tree.index();
    if index.byte_count() < MIN_COPIED_BYTES {
        return Ok(None);
    }
    // Copies agree in everything that the index has of a line.
    let key = |entry: &EntryRef<'_>| {
        let mut hasher = DefaultHasher::new();
        (
            entry.kind().name(),
            entry.byte_len(),
            entry.uuid(),
            entry.parent(),
            entry.millis(),
        )
            .hash(&mut hasher);
        hasher.finish()
    };
    // They have the same uuid, so that most files have none among the entries with one.
    let may_repeat = |entry: &EntryRef<'_>| index.has_repeated_uuids() || entry.uuid().is_none();
    let entries = || index.entries().filter(may_repeat);
    let mut keys: Vec<u64> = entries().map(|entry| key(&entry)).collect();
    keys.sort_unstable();
    let repeated = keys.windows(2).filter(|pair| pair[0] == pair[1]);
    // Most files end here without a body being read: only lines whose keys agree can be copies.
    let repeated: HashSet<u64> = repeated.map(|pair| pair[0]).collect();
    drop(keys);
    let candidates = || entries().filter(|entry| repeated.contains(&key(entry)));
    let is_much = |bytes: u64| bytes >= MIN_COPIED_BYTES && bytes * 10 >= index.byte_count();
    // An upper limit, as keys can collide. Below it reading the bodies is of no use.
    if !is_much(candidates().map(|entry| entry.byte_len()).sum()) {
        return Ok(None);
    }
    let mut seen = HashSet::new();
    let (mut bytes, mut count) = (0, 0);
    for entry in candidates() {
        let mut hasher = DefaultHasher::new();
        bodies.get(&entry)?.text.hash(&mut hasher);
        if !seen.insert(hasher.finish()) {
            bytes += entry.byte_len();
            count += 1;
        }
    }
    let detail = || format!("{count} lines, {}, are copies of others", size(bytes));
    Ok(is_much(bytes).then(|| LocatedFinding::of_file(Code::Copies, detail())))
}

/// Reports answers that are in the file again under other uuids: after another prompt and another
/// answer.
fn answers_again(tree: &Tree<'_>) -> Option<LocatedFinding> {
    let index = tree.index();
    // For each answer: the prompts and the answers before it.
    let mut known: HashMap<MessageKey, (u32, usize)> = HashMap::new();
    let mut again: HashSet<MessageKey> = HashSet::new();
    let mut first = None;
    let mut prompts = 0;
    for entry in index.entries() {
        prompts += u32::from(is_prompt(&entry));
        let node = tree.entry_node(entry.number());
        let Some(message) = node.and_then(|node| tree.message(node)) else {
            continue;
        };
        let answers = known.len();
        let before = *known.entry(message).or_insert((prompts, answers));
        // Lines of one answer can be apart by a prompt from the queue. After another answer it is a second time.
        let is_later = before.0 < prompts && before.1 + 1 < answers;
        let is_copy = |id| index.with_uuid(id).nth(1).is_some();
        if is_later && !entry.uuid().is_some_and(is_copy) && again.insert(message) {
            first = first.or(Some(entry));
        }
    }
    let (count, all) = (again.len(), known.len());
    let detail = format!("{count} of {all} answers are in the file again under other uuids");
    first.map(|entry| LocatedFinding::of_entry(Code::CountedTwice, &entry, detail))
}

/// Reports entries that precede their parent in the file, and results that follow a later answer: no
/// client writes them so. A result may precede its call, and an attachment its result, as a client
/// writes the lines of an answer when the answer is complete.
fn forward(tree: &Tree<'_>) -> Vec<LocatedFinding> {
    let index = tree.index();
    let mut found = Vec::new();
    let mut calls = OpenCalls::default();
    for entry in index.entries() {
        let node = tree.node(entry.number());
        let is_main = node.is_some_and(|node| !tree.is_sidechain(node));
        // Subagents in the same file are written at the same time as the conversation, in any order.
        if is_main && calls.is_late(&entry, |call, answer| continues(tree, call, answer)) {
            let detail = "a later answer precedes the result";
            found.push(LocatedFinding::of_entry(Code::Forward, &entry, detail));
        }
        // The line that the entry names may be a progress line.
        let above = entry.parent().and_then(|id| index.with_uuid(id).next());
        let Some(above) = above.filter(|above| *above > entry.number()) else {
            continue;
        };
        let above = index.entry(above);
        // Of a repeated uuid one line has the place and another one the body.
        let is_single = |entry: &EntryRef<'_>| {
            let copies = |id| index.with_uuid(id).count();
            entry.uuid().is_some_and(|id| copies(id) == 1)
        };
        let is_linked = node.map_or(entry.kind() == EntryKind::Progress, |node| {
            matches!(tree.parent(node), Parent::Node(_)) && tree.link_decision(node).is_none()
        });
        if is_linked
            && is_single(&entry)
            && is_single(&above)
            && !may_precede(index, &entry, &above)
        {
            let detail = format!("its parent is on line {}", above.line());
            found.push(LocatedFinding::of_entry(Code::Forward, &entry, detail));
        }
    }
    found
}

/// Returns whether a client may write `entry` before its parent `above`.
fn may_precede(index: &Index, entry: &EntryRef<'_>, above: &EntryRef<'_>) -> bool {
    const MAX_WRITE_DISTANCE: usize = 9;
    let is_result = |entry: &EntryRef<'_>| entry.flags().contains(Flags::HAS_TOOL_RESULT);
    let is_forward = |entry: &EntryRef<'_>| {
        let above = entry.parent().and_then(|id| index.with_uuid(id).next());
        above.is_some_and(|above| above > entry.number())
    };
    let may_be_between = |between: EntryRef<'_>| match between.kind() {
        EntryKind::Assistant => between.message().is_some() && between.message() == above.message(),
        EntryKind::User => is_result(&between) && is_forward(&between),
        _ => true,
    };
    let numbers = entry.number().get() + 1..above.number().get();
    if numbers.len() >= MAX_WRITE_DISTANCE {
        return false;
    }
    let mut between = numbers.map(|number| index.entry(EntryNo::new(number)));
    match entry.kind() {
        EntryKind::Attachment => is_result(above),
        _ => is_result(entry) && between.all(may_be_between),
    }
}

/// Returns whether `answer` is below the answer with this call, and not on another branch.
fn continues(tree: &Tree<'_>, call: EntryNo, answer: EntryNo) -> bool {
    let index = tree.index();
    let message = index.entry(call).message();
    let mut node = tree.node(answer);
    for _ in call.get()..answer.get() {
        node = node.and_then(|node| tree.parent(node).node());
        let above = node.map(|node| tree.entry(node));
        if above.is_some_and(|above| above.number() == call || above.message() == message) {
            return true;
        }
    }
    false
}

/// The calls without a result so far, with their lines: of the last answer, and of those before.
#[derive(Default)]
struct OpenCalls {
    answer: Option<(Option<MessageKey>, EntryNo)>,
    last: Vec<(ToolKey, EntryNo)>,
    before: Vec<(ToolKey, EntryNo)>,
}

impl OpenCalls {
    /// Reads the next entry. Returns whether it is the result of a call of an earlier answer, which
    /// the last one `continues`.
    fn is_late(
        &mut self,
        entry: &EntryRef<'_>,
        continues: impl Fn(EntryNo, EntryNo) -> bool,
    ) -> bool {
        const MAX_KEPT: usize = 64;
        match entry.kind() {
            EntryKind::Assistant => {
                let message = entry.message();
                let is_same = |(last, _)| last == message && message.is_some();
                if !self.answer.is_some_and(is_same) {
                    self.answer = Some((message, entry.number()));
                    self.before.append(&mut self.last);
                    let old = self.before.len().saturating_sub(MAX_KEPT);
                    self.before.drain(..old);
                }
                let calls = keys(entry, ToolRole::Use);
                self.last.extend(calls.map(|key| (key, entry.number())));
                false
            }
            EntryKind::User => keys(entry, ToolRole::Result).fold(false, |is_late, key| {
                let take = |calls: &mut Vec<(ToolKey, EntryNo)>| {
                    let at = calls.iter().position(|(call, _)| *call == key)?;
                    Some(calls.remove(at).1)
                };
                let earlier = match take(&mut self.last) {
                    Some(_) => None,
                    None => take(&mut self.before),
                };
                let last = self.answer.map(|(_, answer)| answer);
                is_late
                    || earlier
                        .zip(last)
                        .is_some_and(|(call, last)| continues(call, last))
            }),
            _ => false,
        }
    }
}

/// Reports `last-prompt` lines that name an entry which is not in the file: a client names one that
/// it has written. The uuid of zeros names none.
fn lost_leaves(tree: &Tree<'_>) -> Vec<LocatedFinding> {
    let index = tree.index();
    let mut seen = HashSet::new();
    let pins = index
        .entries()
        .filter(|entry| entry.kind() == EntryKind::LastPrompt);
    let lost = pins.filter(|pin| {
        let id = pin.leaf_uuid().filter(|id| *id != Id::Uuid(Uuid::ZERO));
        id.is_some_and(|id| index.with_uuid(id).next().is_none() && seen.insert(id))
    });
    let detail = "a last-prompt line names an entry that is not in the file";
    lost.map(|pin| LocatedFinding::of_entry(Code::Leaf, &pin, detail))
        .collect()
}

/// Reports a `file-history-snapshot` of a message that has one already. Their `messageId` is the uuid
/// of that message, so that an index of all ids takes the line for the message.
fn snapshots(tree: &Tree<'_>, bodies: &mut Bodies<'_>) -> Result<Option<LocatedFinding>, Error> {
    let index = tree.index();
    let lines = || {
        index
            .entries()
            .filter(|entry| entry.kind() == EntryKind::FileHistorySnapshot)
    };
    if lines().map(|entry| entry.byte_len()).sum::<u64>() > MAX_READ_BYTES {
        return Ok(None);
    }
    let mut seen = HashSet::new();
    let mut again = (0, None);
    for entry in lines() {
        let Ok(line) = Object::parse(bodies.get(&entry)?.text) else {
            continue;
        };
        let is_update = line
            .get("isSnapshotUpdate")
            .is_some_and(|update| update.bool() == Some(true));
        let id = line
            .get("messageId")
            .and_then(Raw::str)
            .and_then(|id| index.id(&id));
        let is_message = |id: &Id| index.with_uuid(*id).next().is_some();
        if let Some(id) = id.filter(is_message)
            && !is_update
            && !seen.insert(id)
        {
            again = (again.0 + 1, again.1.or(Some(entry)));
        }
    }
    let detail = format!("{} snapshots of messages that have one already", again.0);
    Ok(again
        .1
        .map(|entry| LocatedFinding::of_entry(Code::MessageId, &entry, detail)))
}
