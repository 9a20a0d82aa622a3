//! The index agrees with `serde_json` on each line of real, generated and damaged sessions.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use serde_json::{Deserializer, Value};
use transcript_format::finding::Code;
use transcript_format::salvage::repaired_text;
use transcript_format::scan::{ContentKind, Flags, ToolRole};
use transcript_reader::{Bodies, EntryMarks, EntryRef, Id, Index, MessageKey, Source, ToolKey};
use transcript_testkit::{damage, generate, shared};

use crate::{Scratch, index};

/// The transcripts of the corpus: the row of the manifest and the bytes. `None` without the corpus.
fn corpus() -> Option<Vec<(Row, Vec<u8>)>> {
    let folder = shared()?.join("corpus");
    let manifest = fs::read_to_string(folder.join("manifest.tsv")).expect("a manifest");
    let mut rows = manifest.split('\n');
    let header: Vec<&str> = rows.next().unwrap_or_default().split('\t').collect();
    let files = rows
        .map(|row| Row::new(&header, row))
        .filter(|row| row.local_file.ends_with(".jsonl"))
        .map(|row| {
            let bytes = fs::read(folder.join(&row.local_file)).expect("a file of the manifest");
            (row, bytes)
        })
        .collect::<Vec<_>>();
    assert_eq!(files.len(), 122, "transcripts in the corpus");
    Some(files)
}

struct Row {
    local_file: String,
    lines: u64,
    /// The number of lines of each type: `user`, `system/turn_duration`, `None` for no type.
    entry_types: BTreeMap<String, usize>,
}

impl Row {
    fn new(header: &[&str], row: &str) -> Self {
        let cells: HashMap<&str, &str> = header.iter().copied().zip(row.split('\t')).collect();
        let cell = |name: &str| cells.get(name).copied().unwrap_or_default();
        let entry_types = cell("entry_types")
            .split_terminator(';')
            .map(|part| part.rsplit_once(':').expect("a type and a count"))
            .map(|(name, count)| (name.to_owned(), count.parse().expect("a count")))
            .collect();
        Self {
            local_file: cell("local_file").to_owned(),
            lines: cell("lines").parse().unwrap_or_default(),
            entry_types,
        }
    }
}

// -------------------------------------------------------------------------------------------------
// Bytes
// -------------------------------------------------------------------------------------------------

/// Returns whether a finding is about an entry and not about bytes outside of entries.
fn is_about_an_entry(index: &Index, code: Code, offset: u64) -> bool {
    let mut entry_refs = index.entries();
    match code {
        Code::Unterminated => true,
        Code::Utf8 | Code::Glued | Code::Shape | Code::Surrogate | Code::NulEscape => {
            entry_refs.any(|entry_ref| entry_ref.offset() == offset)
        }
        _ => entry_refs.any(|entry_ref| entry_ref.is_salvaged() && entry_ref.offset() == offset),
    }
}

/// Every byte belongs to exactly one entry or one finding, or is a separating newline or white
/// space.
fn check_every_byte(name: &str, bytes: &[u8]) {
    let index = index(bytes);
    let mut spans: Vec<(u64, u64, String)> = index
        .entries()
        .map(|entry_ref| {
            let what = format!("entry {}", entry_ref.number());
            (entry_ref.offset(), entry_ref.byte_len(), what)
        })
        .collect();
    for finding in index.findings() {
        if is_about_an_entry(&index, finding.code, finding.offset) {
            let entry_ref = (finding.offset, finding.len);
            // The finding of a lossy line covers the line; its first object may be shorter.
            let is_span = |span: &(u64, u64, String)| {
                span.0 == entry_ref.0 && (span.1 == entry_ref.1 || finding.code == Code::Utf8)
            };
            assert!(
                spans.iter().any(is_span),
                "{name}: {finding:?} is about no entry"
            );
        } else {
            spans.push((finding.offset, finding.len, format!("{finding:?}")));
        }
    }
    spans.sort();
    let mut at = 0;
    for (offset, len, what) in spans {
        let (offset, len) = (offset as usize, len as usize);
        assert!(
            offset >= at,
            "{name}: {what} starts before byte {at}, where another ends"
        );
        check_separator(name, bytes, at, offset);
        at = offset + len;
        assert!(at <= bytes.len(), "{name}: {what}");
        let is_split = index.findings().iter().any(|finding| {
            (finding.code, finding.offset, finding.len) == (Code::Split, offset as u64, len as u64)
        });
        assert_eq!(
            bytes[offset..at].contains(&b'\n'),
            is_split,
            "{name}: {what}"
        );
    }
    check_separator(name, bytes, at, bytes.len());
    check_lines(name, bytes, &index);
}

fn check_separator(name: &str, bytes: &[u8], from: usize, to: usize) {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let lost = bytes[from..to].iter().position(|byte| !is_space(byte));
    assert_eq!(
        lost, None,
        "{name}: bytes {from}..{to} are neither entry nor finding"
    );
}

/// Checks line counts, and the line numbers of entries and findings, by counting newlines.
fn check_lines(name: &str, bytes: &[u8], index: &Index) {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let blank = lines.iter().filter(|line| line.trim_ascii().is_empty());
    assert_eq!(index.line_count(), lines.len() as u64, "{name}: lines");
    assert_eq!(
        index.blank_line_count(),
        blank.count() as u64,
        "{name}: blank lines"
    );
    assert_eq!(index.byte_count(), bytes.len() as u64, "{name}: bytes");
    let mut newlines = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .peekable();
    let mut before = 0;
    let mut line_of = |offset: u64| {
        while newlines.next_if(|(at, _)| (*at as u64) < offset).is_some() {
            before += 1;
        }
        before + 1
    };
    let mut places: Vec<(u64, u64)> = index
        .entries()
        .map(|entry_ref| (entry_ref.offset(), entry_ref.line()))
        .collect();
    for finding in index.findings() {
        places.push((finding.offset, finding.line.expect("every line was read")));
    }
    places.sort_unstable();
    for (offset, line) in places {
        assert_eq!(line, line_of(offset), "{name}: line of byte {offset}");
    }
}

#[test]
fn every_byte_of_the_corpus_is_entry_or_finding_or_separator() {
    let Some(files) = corpus() else {
        println!("skipped: no shared data");
        return;
    };
    for (row, bytes) in &files {
        check_every_byte(&row.local_file, bytes);
    }
}

#[test]
fn every_byte_of_damaged_sessions_is_entry_or_finding_or_separator() {
    for seed in 0..400 {
        let (bytes, done) = damage::damage(&generate::session(seed), seed);
        if cannot_be_opened(&bytes) {
            continue;
        }
        check_every_byte(&format!("seed {seed}: {done:?}"), &bytes);
    }
}

/// A damaged session of one line may look like a binary file.
fn cannot_be_opened(bytes: &[u8]) -> bool {
    Source::open(&Scratch::new(bytes).path).is_err()
}

// -------------------------------------------------------------------------------------------------
// Types
// -------------------------------------------------------------------------------------------------

/// Returns the type of an entry as the manifest writes it. The index has the known names; others
/// are in the body.
fn type_name(entry_ref: &EntryRef<'_>, body: &Value) -> String {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name = match entry_ref.kind().name() {
        "" => text(&body["type"]).unwrap_or_else(|| "None".to_owned()),
        known => known.to_owned(),
    };
    let (sub, in_body) = match name.as_str() {
        "system" => (
            entry_ref.system_kind().map(|kind| kind.name()),
            &body["subtype"],
        ),
        "attachment" => (
            entry_ref.attachment_kind().map(|kind| kind.name()),
            &body["attachment"]["type"],
        ),
        "progress" => (
            entry_ref.progress_kind().map(|kind| kind.name()),
            &body["data"]["type"],
        ),
        _ => return name,
    };
    match sub
        .filter(|sub| !sub.is_empty())
        .map(str::to_owned)
        .or_else(|| text(in_body))
    {
        Some(sub) => format!("{name}/{sub}"),
        None => name,
    }
}

/// The manifest counts the lines that Python's `json.loads` reads as objects. It does not count the
/// glued lines of two files, whose first object the index has, marked, nor the entries salvaged
/// from them; nor three values that are not objects, which the index reports as findings.
#[test]
fn the_corpus_has_as_many_of_each_type_as_the_manifest() {
    let Some(files) = corpus() else {
        println!("skipped: no shared data");
        return;
    };
    let mut not_counted = BTreeMap::new();
    let mut unknown = BTreeMap::new();
    for (row, bytes) in &files {
        let scratch = Scratch::new(bytes);
        let source = scratch.open();
        let index = Index::load(&source).unwrap();
        let mut bodies = Bodies::new(&source);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for entry_ref in index.entries() {
            if entry_ref.marks().contains(EntryMarks::GLUED) {
                *not_counted.entry("glued").or_insert(0) += 1;
                continue;
            }
            if entry_ref.is_salvaged() {
                *not_counted.entry("salvaged").or_insert(0) += 1;
                continue;
            }
            let body = serde_json::from_str(bodies.get(&entry_ref).unwrap().text).unwrap();
            let name = type_name(&entry_ref, &body);
            if entry_ref.kind().name().is_empty() {
                *unknown.entry(name.clone()).or_insert(0) += 1;
            }
            *counts.entry(name).or_default() += 1;
        }
        for finding in index.findings() {
            if finding.code == Code::NotObject {
                *not_counted.entry("no object").or_insert(0) += 1;
            }
        }
        assert_eq!(counts, row.entry_types, "{}", row.local_file);
        assert_eq!(index.line_count(), row.lines, "{}", row.local_file);
    }
    assert_eq!(
        not_counted,
        BTreeMap::from([("glued", 2), ("no object", 3), ("salvaged", 2)])
    );
    // Names that the index does not know. Three hand-made lines have no type at all.
    let expected = [("None", 3), ("tool_result", 1)];
    assert_eq!(
        unknown,
        expected
            .map(|(name, count)| (name.to_owned(), count))
            .into()
    );
}

// -------------------------------------------------------------------------------------------------
// Fields
// -------------------------------------------------------------------------------------------------

/// Keys of messages and tool calls are hashes: the mapping between keys and ids must be one to one.
#[derive(Default)]
struct Keys {
    messages: HashMap<MessageKey, String>,
    message_ids: HashMap<String, MessageKey>,
    tools: HashMap<ToolKey, String>,
    tool_ids: HashMap<String, ToolKey>,
}

impl Keys {
    fn check_message(&mut self, key: Option<MessageKey>, id: Option<&str>) {
        assert_eq!(key.is_some(), id.is_some(), "message id {id:?}");
        if let (Some(key), Some(id)) = (key, id) {
            assert_eq!(
                self.messages.entry(key).or_insert_with(|| id.to_owned()),
                id
            );
            assert_eq!(*self.message_ids.entry(id.to_owned()).or_insert(key), key);
        }
    }

    fn check_tool(&mut self, key: ToolKey, id: &str) {
        assert_eq!(self.tools.entry(key).or_insert_with(|| id.to_owned()), id);
        assert_eq!(*self.tool_ids.entry(id.to_owned()).or_insert(key), key);
    }
}

/// Compares each line with the result of `serde_json`. Returns the number of compared lines.
fn check_fields(name: &str, bytes: &[u8], keys: &mut Keys) -> usize {
    let index = index(bytes);
    let by_offset: HashMap<u64, EntryRef<'_>> = index
        .entries()
        .map(|entry_ref| (entry_ref.offset(), entry_ref))
        .collect();
    assert_eq!(
        by_offset.len(),
        index.len(),
        "{name}: two entries at one offset"
    );
    let mut compared = 0;
    for entry_ref in index.entries().filter(|one| one.is_salvaged()) {
        compared += usize::from(check_salvaged(name, bytes, &index, &entry_ref, keys));
    }
    let mut offset = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let entry_ref = by_offset.get(&offset).filter(|one| !one.is_salvaged());
        let place = format!("{name}, byte {offset}");
        offset += line.len() as u64;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        match serde_json::from_slice::<Value>(text) {
            Ok(value) if value.is_object() => {
                let entry_ref = entry_ref.unwrap_or_else(|| panic!("{place}: not in the index"));
                check_marks(&place, entry_ref, line);
                check_entry(&place, &index, entry_ref, text, &value, keys);
                compared += 1;
            }
            Ok(_) => assert!(entry_ref.is_none(), "{place}: no object"),
            Err(_) => {
                let Some(entry_ref) = entry_ref else { continue };
                compared += usize::from(check_damaged(&place, &index, entry_ref, text, keys));
            }
        }
    }
    compared
}

fn check_marks(place: &str, entry_ref: &EntryRef<'_>, line: &[u8]) {
    let damage = EntryMarks::GLUED | EntryMarks::LOSSY | EntryMarks::UNTERMINATED;
    let expected = if line.ends_with(b"\n") {
        EntryMarks::empty()
    } else {
        EntryMarks::UNTERMINATED
    };
    assert_eq!(entry_ref.marks() & damage, expected, "{place}");
    let len = line.strip_suffix(b"\n").unwrap_or(line).len();
    assert_eq!(entry_ref.byte_len(), len as u64, "{place}");
}

/// Checks a line that `serde_json` rejects and the index has: glued, not UTF-8, or with one of the
/// two differences of the scan (lone surrogates, numbers out of range). Returns whether there was
/// an object to compare with.
fn check_damaged(
    place: &str,
    index: &Index,
    entry_ref: &EntryRef<'_>,
    line: &[u8],
    keys: &mut Keys,
) -> bool {
    let marks = entry_ref.marks();
    let text = String::from_utf8_lossy(line);
    assert_eq!(
        marks.contains(EntryMarks::LOSSY),
        is_lossy(line, entry_ref),
        "{place}"
    );
    let first = Deserializer::from_str(&text).into_iter::<Value>().next();
    let Some(Ok(value)) = first else {
        // Only in these cases may the index have an object that serde_json cannot read.
        assert!(text.contains("\\u"), "{place}: {marks:?}");
        return false;
    };
    assert!(
        marks.intersects(EntryMarks::GLUED | EntryMarks::LOSSY),
        "{place}: {marks:?}"
    );
    check_entry(place, index, entry_ref, text.as_bytes(), &value, keys);
    true
}

/// Checks a salvaged object: the fields in the index are in its repaired text, and its uuid is in
/// the file unchanged. Returns whether `serde_json` reads the text, which lone surrogates prevent.
fn check_salvaged(
    name: &str,
    bytes: &[u8],
    index: &Index,
    entry_ref: &EntryRef<'_>,
    keys: &mut Keys,
) -> bool {
    let place = format!("{name}, byte {}, salvaged", entry_ref.offset());
    let from = entry_ref.offset() as usize;
    let there = &bytes[from..from + entry_ref.byte_len() as usize];
    assert!(there.starts_with(b"{"), "{place}");
    assert!(entry_ref.marks().contains(EntryMarks::SALVAGED), "{place}");
    let text = repaired_text(there);
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        assert!(text.contains("\\u"), "{place}");
        return false;
    };
    assert!(value.is_object(), "{place}");
    if let Some(uuid) = value["uuid"].as_str().filter(|uuid| !uuid.is_empty()) {
        let is_escaped = text.contains("\\u");
        assert!(
            is_escaped
                || there
                    .windows(uuid.len())
                    .any(|there| there == uuid.as_bytes()),
            "{place}"
        );
    }
    check_entry(&place, index, entry_ref, text.as_bytes(), &value, keys);
    true
}

/// Returns whether the object itself has bytes that are not UTF-8, not only the rest of the line.
fn is_lossy(line: &[u8], entry_ref: &EntryRef<'_>) -> bool {
    std::str::from_utf8(&line[..entry_ref.byte_len() as usize]).is_err()
}

fn check_entry(
    place: &str,
    index: &Index,
    entry_ref: &EntryRef<'_>,
    line: &[u8],
    value: &Value,
    keys: &mut Keys,
) {
    let string = |name: &str| value[name].as_str();
    let id = |name: &str| string(name).filter(|text| !text.is_empty());
    let text = |id: Option<Id>| id.map(|id| index.id_text(id));

    let kind = id("type").unwrap_or_default();
    assert!(
        matches!(entry_ref.kind().name(), "" if !KNOWN.contains(&kind))
            || entry_ref.kind().name() == kind,
        "{place}: {kind}"
    );
    let sub = |inner: &Value| inner.as_str().unwrap_or_default().to_owned();
    let (known, expected) = match kind {
        "system" => (
            entry_ref.system_kind().map(|sub| sub.name()),
            sub(&value["subtype"]),
        ),
        "attachment" => (
            entry_ref.attachment_kind().map(|sub| sub.name()),
            sub(&value["attachment"]["type"]),
        ),
        "progress" => (
            entry_ref.progress_kind().map(|sub| sub.name()),
            sub(&value["data"]["type"]),
        ),
        _ => (None, String::new()),
    };
    if let Some(known) = known.filter(|known| !known.is_empty()) {
        assert_eq!(known, expected, "{place}");
    }
    assert_eq!(
        entry_ref.is_boundary(),
        kind == "system" && expected == "compact_boundary"
    );

    let names_a_leaf = matches!(kind, "last-prompt" | "summary");
    let parent = id("parentUuid").filter(|_| !names_a_leaf);
    let leaf = string("leafUuid").filter(|_| names_a_leaf);
    assert_eq!(text(entry_ref.uuid()).as_deref(), id("uuid"), "{place}");
    assert_eq!(text(entry_ref.parent()).as_deref(), parent, "{place}");
    assert_eq!(text(entry_ref.leaf_uuid()).as_deref(), leaf, "{place}");
    assert_eq!(entry_ref.session(), id("sessionId"), "{place}");
    assert_eq!(entry_ref.agent(), id("agentId"), "{place}");
    assert_eq!(
        entry_ref.millis(),
        id("timestamp").and_then(millis),
        "{place}"
    );
    assert_eq!(entry_ref.content(), content(value), "{place}");
    // The scanner does not set this one.
    let scanned = entry_ref.flags() - Flags::AUTOMATIC;
    assert_eq!(scanned, flags(line, value), "{place}");
    keys.check_message(entry_ref.message(), value["message"]["id"].as_str());

    let tools = tools(value);
    let roles: Vec<ToolRole> = entry_ref.tools().iter().map(|tool| tool.role()).collect();
    assert_eq!(
        roles,
        tools.iter().map(|tool| tool.0).collect::<Vec<_>>(),
        "{place}"
    );
    for (tool, (_, id)) in entry_ref.tools().iter().zip(tools) {
        keys.check_tool(tool.key(), id);
    }
    check_boundary(place, index, entry_ref, value);
}

/// Types that are so frequent that the index must know them.
const KNOWN: [&str; 8] = [
    "user",
    "assistant",
    "system",
    "attachment",
    "progress",
    "last-prompt",
    "summary",
    "file-history-snapshot",
];

fn check_boundary(place: &str, index: &Index, entry_ref: &EntryRef<'_>, value: &Value) {
    use transcript_reader::Preserved;
    let text = |id: Option<Id>| id.map(|id| index.id_text(id));
    let Some(boundary) = index.boundary(entry_ref.number()) else {
        assert!(!entry_ref.is_boundary(), "{place}");
        return;
    };
    assert!(entry_ref.is_boundary(), "{place}");
    assert_eq!(boundary.entry_no, entry_ref.number());
    let logical = value["logicalParentUuid"]
        .as_str()
        .filter(|text| !text.is_empty());
    assert_eq!(text(boundary.logical_parent).as_deref(), logical, "{place}");
    let metadata = &value["compactMetadata"];
    let (list, segment) = (
        &metadata["preservedMessages"],
        &metadata["preservedSegment"],
    );
    match &boundary.preserved {
        Preserved::Nothing => assert!(!list.is_object() && !segment.is_object(), "{place}"),
        Preserved::List { anchor, uuids } => {
            let expected = list["uuids"].as_array().cloned().unwrap_or_default();
            let expected: Vec<Option<&str>> = expected.iter().map(Value::as_str).collect();
            let uuids: Vec<Option<String>> = uuids.iter().map(|uuid| text(*uuid)).collect();
            let uuids: Vec<Option<&str>> = uuids.iter().map(Option::as_deref).collect();
            assert_eq!(uuids, expected, "{place}");
            assert_eq!(
                text(*anchor).as_deref(),
                list["anchorUuid"].as_str(),
                "{place}"
            );
        }
        Preserved::Segment { anchor } => {
            assert!(!list.is_object(), "{place}");
            let expected = segment["anchorUuid"].as_str();
            assert_eq!(text(*anchor).as_deref(), expected, "{place}");
        }
    }
    let expected = ["headUuid", "tailUuid"].map(|name| segment[name].as_str());
    let ends = boundary.ends.map(text);
    assert_eq!(
        [ends[0].as_deref(), ends[1].as_deref()],
        expected,
        "{place}"
    );
}

fn content(value: &Value) -> ContentKind {
    let Some(message) = value["message"].as_object() else {
        return ContentKind::NoMessage;
    };
    match message.get("content") {
        None | Some(Value::Null) => ContentKind::Null,
        Some(Value::String(_)) => ContentKind::Text,
        Some(Value::Array(_)) => ContentKind::Blocks,
        Some(_) => ContentKind::Odd,
    }
}

fn blocks(value: &Value) -> &[Value] {
    value["message"]["content"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

fn tools(value: &Value) -> Vec<(ToolRole, &str)> {
    let end = |block: &'_ Value| -> Option<(ToolRole, &'static str)> {
        Some(match block["type"].as_str()? {
            "tool_use" => (ToolRole::Use, "id"),
            "tool_result" => (ToolRole::Result, "tool_use_id"),
            "server_tool_use" | "mcp_tool_use" => (ToolRole::ServerUse, "id"),
            other if other.ends_with("_tool_result") => (ToolRole::ServerResult, "tool_use_id"),
            _ => return None,
        })
    };
    blocks(value)
        .iter()
        .filter_map(|block| end(block).and_then(|(role, name)| Some((role, block[name].as_str()?))))
        .collect()
}

const SWITCHES: [(&str, Flags); 7] = [
    ("isSidechain", Flags::SIDECHAIN),
    ("isMeta", Flags::META),
    ("isCompactSummary", Flags::COMPACT_SUMMARY),
    ("isVisibleInTranscriptOnly", Flags::TRANSCRIPT_ONLY),
    ("isVirtual", Flags::VIRTUAL),
    ("isApiErrorMessage", Flags::API_ERROR),
    ("explicit", Flags::EXPLICIT),
];

const TEXTS: [&str; 10] = [
    "uuid",
    "parentUuid",
    "type",
    "timestamp",
    "sessionId",
    "subtype",
    "agentId",
    "logicalParentUuid",
    "sourceToolAssistantUUID",
    "teamName",
];

const OTHERS: [&str; 4] = ["message", "leafUuid", "attachment", "data"];

/// Returns whether a name or a text contains U+0000.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(holds_nul),
        Value::Object(members) => {
            let holds = |(name, value): (&String, &Value)| name.contains('\0') || holds_nul(value);
            members.iter().any(holds)
        }
        _ => false,
    }
}

fn flags(line: &[u8], value: &Value) -> Flags {
    let mut flags = Flags::empty();
    flags.set(Flags::NUL_ESCAPE, holds_nul(value));
    for (name, flag) in SWITCHES {
        flags.set(flag, value[name] == true);
        let is_odd = !value[name].is_boolean() && !value[name].is_null();
        flags |= if is_odd {
            Flags::ODD_VALUE
        } else {
            Flags::empty()
        };
    }
    for name in TEXTS {
        let is_odd = !value[name].is_string() && !value[name].is_null();
        flags |= if is_odd {
            Flags::ODD_VALUE
        } else {
            Flags::empty()
        };
    }
    flags.set(
        Flags::TEAM,
        value["teamName"]
            .as_str()
            .is_some_and(|team| !team.is_empty()),
    );
    match value.get("uuid") {
        None => {}
        Some(Value::Null) => flags |= Flags::UUID_NULL,
        Some(Value::String(uuid)) => flags.set(Flags::UUID_EMPTY, uuid.is_empty()),
        Some(_) => flags |= Flags::UUID_ODD,
    }
    let parent = &value["parentUuid"];
    let is_empty = value.get("parentUuid").is_some_and(|parent| parent == "");
    flags.set(Flags::PARENT_EMPTY, is_empty);
    flags.set(
        Flags::PARENT_ABSENT,
        value.get("parentUuid").is_none() || is_empty,
    );
    flags.set(
        Flags::PARENT_ODD,
        !parent.is_string() && !parent.is_null() && *parent != false,
    );
    flags.set(Flags::HAS_TEXT, value["message"]["content"].is_string());
    for block in blocks(value) {
        flags |= match block["type"].as_str().unwrap_or_default() {
            "text" => Flags::HAS_TEXT,
            "thinking" | "redacted_thinking" => Flags::HAS_THINKING,
            "tool_use" => Flags::HAS_TOOL_USE,
            "tool_result" => Flags::HAS_TOOL_RESULT,
            _ => Flags::HAS_OTHER_BLOCK,
        };
    }
    let mut names = names_at_the_top(line);
    let read = |name: &String| {
        let name = name.as_str();
        TEXTS.contains(&name) || OTHERS.contains(&name) || SWITCHES.iter().any(|s| s.0 == name)
    };
    names.retain(read);
    names.sort();
    flags.set(
        Flags::DUPLICATE_NAME,
        names.windows(2).any(|pair| pair[0] == pair[1]),
    );
    flags
}

/// Returns the names of the members of the object at the start of `line`, including repeated ones.
fn names_at_the_top(line: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let (mut depth, mut at) = (0, 0);
    while at < line.len() {
        match line[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let start = at;
                at += 1;
                while line[at] != b'"' {
                    at += if line[at] == b'\\' { 2 } else { 1 };
                }
                let is_name = line[at + 1..].trim_ascii_start().starts_with(b":");
                if depth == 1 && is_name {
                    names.push(serde_json::from_slice(&line[start..=at]).expect("a name"));
                }
            }
            _ => {}
        }
        at += 1;
        if depth == 0 && !names.is_empty() {
            break;
        }
    }
    names
}

/// Returns milliseconds since 1970 for the two forms in the corpus only; computed naively, year by
/// year.
fn millis(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let numbers = |text: &str, separator: char| -> Option<Vec<i64>> {
        text.split(separator)
            .map(|part| part.parse().ok())
            .collect()
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "000"));
    let [year, month, day] = numbers(date, '-')?.try_into().ok()?;
    let [hour, minute, second] = numbers(time, ':')?.try_into().ok()?;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before: i64 = (1970..year)
        .map(|year| 365 + i64::from(is_leap(year)))
        .sum();
    let months = [
        31,
        28 + i64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let in_range = (1..=12).contains(&month)
        && (1..=months[month as usize - 1]).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && fraction.len() == 3;
    if !in_range {
        return None;
    }
    let days = before + months[..month as usize - 1].iter().sum::<i64>() + day - 1;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds * 1000 + fraction.parse::<i64>().ok()?)
}

#[test]
fn every_field_of_the_corpus_equals_the_result_of_serde_json() {
    let Some(files) = corpus() else {
        println!("skipped: no shared data");
        return;
    };
    let mut keys = Keys::default();
    let compared: usize = files
        .iter()
        .map(|(row, bytes)| check_fields(&row.local_file, bytes, &mut keys))
        .sum();
    // The number in the manifest, plus both objects of two glued lines.
    let counted: usize = files
        .iter()
        .flat_map(|(row, _)| row.entry_types.values())
        .sum();
    assert_eq!(compared, counted + 4);
    assert!(keys.tools.len() > 1000 && keys.messages.len() > 1000);
}

#[test]
fn every_field_of_generated_and_damaged_sessions_equals_the_result_of_serde_json() {
    let mut keys = Keys::default();
    let mut compared = 0;
    for seed in 0..300 {
        let bytes = generate::session(seed);
        compared += check_fields(&format!("seed {seed}"), &bytes, &mut keys);
        let (bytes, done) = damage::damage(&bytes, seed);
        if cannot_be_opened(&bytes) {
            continue;
        }
        compared += check_fields(&format!("seed {seed}: {done:?}"), &bytes, &mut keys);
    }
    assert!(compared > 20_000, "{compared}");
}

#[test]
fn the_corpus_is_indexed_alike_in_both_directions() {
    let Some(folder) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut files = Vec::new();
    crate::same_index::transcripts_under(&folder.join("corpus/files"), &mut files);
    crate::same_index::transcripts_under(&folder.join("oracle"), &mut files);
    assert!(files.len() > 122, "{}", files.len());
    for path in files {
        check_both_directions(&path);
    }
}

fn check_both_directions(path: &Path) {
    let source = Source::open(path).expect("a transcript");
    crate::same_index::check_all_ways(&source, &path.display().to_string());
}
