//! The live path of a growing conversation is the path of a tree of the same entries.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use transcript_format::finding::{Code, Severity};

use serde_json::{Value, json};
use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_reader::{Bodies, EntryNo, EntryRef, Index, Preserved, Source};
use transcript_resume::{Decision, Evidence, LeafReason, Parent, Policy, Tree};
use transcript_tail::{ChangeKind, ConversationChange, LivePath};
use transcript_testkit::rng::Rng;
use transcript_testkit::{generate, shared};

// ---------------------------------------------------------------------------------------------
// Compared with the tree
// ---------------------------------------------------------------------------------------------

/// What was compared.
#[derive(Debug, Default)]
struct Count {
    /// Prefixes without damaged links.
    sound: usize,
    /// Those with another leaf or path.
    different: usize,
    damaged: usize,
    different_damaged: usize,
    /// Undamaged prefixes with another leaf under `vendor`.
    different_vendor: usize,
}

/// Returns the ends of the lines, in bytes.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends: Vec<usize> = memchr_all(bytes).map(|at| at + 1).collect();
    if ends.last() != Some(&bytes.len()) {
        ends.push(bytes.len());
    }
    ends
}

fn memchr_all(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    newlines.map(|(at, _)| at)
}

fn index(bytes: &[u8], name: &Path) -> (Source, Index) {
    let source = Source::from_bytes(bytes, name);
    let index = Index::load(&source).unwrap();
    (source, index)
}

/// Returns whether links of the prefix are damaged: an entry is lost, repeated or of another
/// session, or preserved entries are missing or out of place.
fn is_damaged(tree: &Tree<'_>) -> bool {
    if tree
        .index()
        .entries()
        .any(|entry| is_odd_boundary(tree.index(), &entry))
    {
        return true;
    }
    // After a boundary alone the tree goes by timestamps (LEAF-14), which the live path does not
    // know.
    if matches!(tree.leaf(), Some((_, LeafReason::Newest))) {
        return true;
    }
    // A missing parent above a progress line has no finding. A parent whose line is not an entry is
    // replaced by the parent that it names.
    let path = tree.path();
    let is_repaired = |decision: &Decision| match decision {
        Decision::Bridge { evidence, .. } => *evidence != Evidence::Unusable,
        Decision::Gap { .. } | Decision::Client { .. } => true,
        _ => false,
    };
    if path.decisions.iter().any(is_repaired) {
        return true;
    }
    let findings = tree.findings(&path);
    findings.iter().any(|finding| {
        finding.code.severity() == Severity::Damage
            && matches!(
                finding.code,
                Code::Dangling
                    | Code::Repeated
                    | Code::Cycle
                    | Code::OtherSession
                    | Code::Segment
                    | Code::Stale
                    | Code::NoBoundary
            )
    })
}

/// Returns whether a boundary is a child of the entries that it preserves, or names lines that are
/// not entries.
fn is_odd_boundary(index: &Index, entry: &EntryRef<'_>) -> bool {
    let boundary = entry
        .is_boundary()
        .then(|| index.boundary(entry.number()))
        .flatten();
    let uuids = match boundary.map(|boundary| &boundary.preserved) {
        Some(Preserved::List { uuids, .. }) => uuids.as_slice(),
        Some(Preserved::Segment { .. }) => &[],
        _ => return false,
    };
    let is_no_entry = |line: EntryNo| {
        let kind = index.entry(line).kind();
        !kind.is_chain() || kind == EntryKind::Progress
    };
    let mut lines = uuids.iter().flatten().flat_map(|id| index.with_uuid(*id));
    entry.parent().is_some() || lines.any(is_no_entry)
}

/// Returns the leaf of the tree and its ancestors, oldest first, as offsets.
fn path_of(tree: &Tree<'_>) -> Vec<u64> {
    let mut path = Vec::new();
    let mut seen = HashSet::new();
    let mut at = tree.leaf().map(|(leaf, _)| leaf);
    while let Some(node) = at.filter(|node| seen.insert(*node)) {
        path.push(tree.entry(node).offset());
        at = match tree.parent(node) {
            Parent::Node(parent) => Some(parent),
            Parent::Root | Parent::Lost => None,
        };
    }
    path.reverse();
    path
}

/// Adds the entries of the file one by one, and compares after those that `looks` selects.
fn compare(bytes: &[u8], name: &Path, looks: impl Fn(usize) -> bool, count: &mut Count) {
    let (source, whole) = index(bytes, name);
    let mut bodies = Bodies::new(&source);
    let mut live = match whole.own_session() {
        Some(session) => LivePath::of_session(session),
        None => LivePath::new(),
    };
    let mut changes: Vec<ConversationChange> = Vec::new();
    let mut next = 0;
    let ends = ends(bytes);
    for (line, end) in ends.iter().enumerate() {
        while next < whole.len() && whole.entry(EntryNo::new(next)).offset() < *end as u64 {
            let entry_ref = whole.entry(EntryNo::new(next));
            let body = bodies.get(&entry_ref).unwrap();
            live.add(entry_ref.offset(), body.text, &mut changes);
            next += 1;
        }
        if !looks(line) {
            continue;
        }
        let (_, index) = index(&bytes[..*end], name);
        // This line can only be read with later lines, which are missing.
        if index.len() != next {
            continue;
        }
        let tree = Tree::new(&index, Policy::Recover);
        let expected = path_of(&tree);
        let path = live.path();
        let offsets: Vec<u64> = path.iter().map(|entry| entry.offset).collect();
        assert_eq!(live.leaf(), path.last().cloned());
        let is_equal = offsets == expected;
        if is_damaged(&tree) {
            count.damaged += 1;
            count.different_damaged += usize::from(!is_equal);
            continue;
        }
        count.sound += 1;
        if !is_equal {
            count.different += 1;
        }
        let vendor = Tree::new(&index, Policy::Vendor).leaf();
        let vendor = vendor.map(|(leaf, _)| Tree::new(&index, Policy::Vendor).entry(leaf).offset());
        count.different_vendor += usize::from(vendor != expected.last().copied());
    }
}

/// Returns an undamaged session in which entries are tombstoned, usually some of the last few, and
/// none from before the last compaction.
fn with_tombstones(seed: u64) -> Vec<u8> {
    let bytes = generate::tidy_session(seed);
    let mut rng = Rng::new(seed);
    let (mut out, mut uuids) = (Vec::new(), Vec::new());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        out.extend_from_slice(line);
        let entry: Option<Value> = serde_json::from_slice(line).ok();
        if let Some(entry) = entry.filter(|entry| entry["type"] != "progress") {
            let of_compaction =
                entry["subtype"] == "compact_boundary" || entry["isCompactSummary"] == true;
            match entry["uuid"].as_str() {
                _ if of_compaction => uuids.clear(),
                Some(uuid) => uuids.push(uuid.to_owned()),
                None => {}
            }
        }
        while !uuids.is_empty() && line.ends_with(b"\n") && rng.one_in(8) {
            let reach = if rng.one_in(8) {
                uuids.len()
            } else {
                uuids.len().min(4)
            };
            let named = &uuids[uuids.len() - 1 - rng.below(reach)];
            let line = json!({"type": "transcriptEngine", "v": 1, "tombstone": named});
            out.extend_from_slice(format!("{line}\n").as_bytes());
        }
    }
    out
}

#[test]
fn generated_sessions_have_the_leaf_and_the_path_of_the_tree_after_each_line() {
    // If some lines of a message lack its id, the live path does not see that a result belongs to
    // the lines before a pin: this many prefixes differ, and no more.
    for (kind, make, known) in [
        ("tidy", generate::tidy_session as fn(u64) -> Vec<u8>, 0),
        ("unique", generate::session_of_unique_uuids, 0),
        ("any", generate::session, 8),
        ("tombstones", with_tombstones, 0),
    ] {
        let mut count = Count::default();
        for seed in 0..400 {
            let name = PathBuf::from(format!("{kind}-{seed}.jsonl"));
            compare(&make(seed), &name, |_| true, &mut count);
        }
        println!("{kind}: {count:?}");
        assert_eq!(count.different, known, "{kind}");
    }
}

/// Returns all transcripts below `folder`, sorted.
fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        for entry in entries.map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                found.push(entry);
            }
        }
    }
    found.sort();
    found
}

/// Compares after each line of a file with up to 300 lines, of other files after `most` lines.
fn compare_files(files: &[PathBuf], most: usize) -> Count {
    let mut count = Count::default();
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        let lines = ends(&bytes).len();
        let step = if lines <= 300 {
            1
        } else {
            lines.div_ceil(most)
        };
        let looks = |line: usize| (lines - 1 - line).is_multiple_of(step);
        compare(&bytes, file, looks, &mut count);
    }
    count
}

#[test]
fn the_fixtures_have_the_leaf_and_the_path_of_the_tree_after_each_line() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1");
    for folder in ["sessions", "pains"] {
        let files = transcripts(&fixtures.join(folder));
        assert!(files.len() > 20, "{} files", files.len());
        let count = compare_files(&files, 100);
        println!("{folder}: {} files, {count:?}", files.len());
        assert_eq!(count.different, 0, "{folder}");
    }
}

#[test]
fn sessions_of_real_clients_have_the_leaf_and_the_path_of_the_tree() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    for folder in ["corpus", "oracle"] {
        let files = transcripts(&shared.join(folder));
        assert!(files.len() > 100, "{} files", files.len());
        let count = compare_files(&files, 30);
        println!("{folder}: {} files, {count:?}", files.len());
        assert_eq!(count.different, 0, "{folder}");
    }
}

// ---------------------------------------------------------------------------------------------
// Moves
// ---------------------------------------------------------------------------------------------

/// Detects moves from trees: the last message of the path, with parallel siblings, is not on it any
/// more, or one that was not on it is back, without a compaction since.
#[derive(Default)]
struct Moves {
    /// The messages of the path, by their offsets.
    path: Vec<u64>,
    /// All that ever were on it.
    seen: HashSet<u64>,
}

impl Moves {
    /// Returns whether the conversation moved with the last line.
    fn look(&mut self, tree: &Tree<'_>, can_move: bool) -> bool {
        let path = tree.path();
        let entries = path
            .entries
            .iter()
            .map(|entry| tree.index().entry(entry.entry_no()));
        let entries: Vec<_> = entries.collect();
        let messages = entries.iter().filter(|entry| entry.kind().is_message());
        let messages: Vec<u64> = messages.map(EntryRef::offset).collect();
        // Entries of a subagent alone are not a conversation.
        let place = self.path.last().copied().filter(|place| {
            let entry = tree
                .index()
                .entries()
                .find(|entry| entry.offset() == *place);
            let node = entry.and_then(|entry| tree.node(entry.number()));
            !node.is_some_and(|node| tree.is_sidechain(node))
        });
        let is_moved = place.is_some_and(|place| {
            let is_compacted = |first: &EntryRef<'_>| first.is_boundary() && first.offset() > place;
            let is_back =
                |message: &u64| self.seen.contains(message) && !self.path.contains(message);
            !entries.first().is_some_and(is_compacted)
                && (!messages.contains(&place) || messages.iter().any(is_back))
        });
        if !is_moved || can_move {
            self.seen.extend(&messages);
            self.path = messages;
        }
        is_moved && can_move
    }
}

#[test]
fn a_move_is_reported_where_the_tree_leaves_what_was_on_its_path() {
    let mut sessions: Vec<Vec<u8>> = (0..800).map(generate::tidy_session).collect();
    if let Some(shared) = shared() {
        let files = transcripts(&shared.join("corpus/files"));
        let files = files.iter().map(|file| std::fs::read(file).unwrap());
        sessions.extend(files.filter(|bytes| ends(bytes).len() <= 300));
    } else {
        println!("skipped: no shared data");
    }
    let (mut lines, mut moves) = (0, 0);
    for (number, bytes) in sessions.iter().enumerate() {
        let name = Path::new("session.jsonl");
        let (mut live, mut tree_moves) = (LivePath::new(), Moves::default());
        for (line, end) in ends(bytes).into_iter().enumerate() {
            let (source, index) = index(&bytes[..end], name);
            let tree = Tree::new(&index, Policy::Recover);
            let Some(last) = index
                .entries()
                .last()
                .filter(|last| last.line() == line as u64 + 1)
            else {
                continue;
            };
            if is_damaged(&tree) {
                break;
            }
            let mut bodies = Bodies::new(&source);
            let mut changes = Vec::new();
            live.add(last.offset(), bodies.get(&last).unwrap().text, &mut changes);
            let is_move =
                |change: &ConversationChange| matches!(change.kind, ChangeKind::Moved { .. });
            let can_move = last.kind().is_message() || last.kind() == EntryKind::LastPrompt;
            let expected = tree_moves.look(&tree, can_move);
            let is_emitted = changes.iter().any(is_move);
            assert_eq!(is_emitted, expected, "session {number}, line {}", line + 1);
            lines += 1;
            moves += usize::from(expected);
        }
    }
    println!("{} sessions, {lines} lines, {moves} moves", sessions.len());
    assert!(moves > 300, "{moves} moves");
}

// ---------------------------------------------------------------------------------------------
// Sessions by hand
// ---------------------------------------------------------------------------------------------

fn entry(kind: &str, uuid: &str, parent: &str, more: &Value) -> String {
    let parent = (!parent.is_empty()).then_some(parent);
    let mut entry = json!({"parentUuid": parent, "isSidechain": false, "type": kind, "uuid": uuid,
        "timestamp": "2026-11-20T10:00:00.000Z", "sessionId": "s"});
    let members = more.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(members);
    entry.to_string()
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    entry(
        "user",
        uuid,
        parent,
        &json!({"message": {"role": "user", "content": text}}),
    )
}

fn ask(uuid: &str, parent: &str) -> String {
    user(uuid, parent, "And now?")
}

fn line(uuid: &str, parent: &str, message: &str, stop: Option<&str>, block: &Value) -> String {
    let message = json!({"id": message, "role": "assistant", "model": "m", "content": [block],
        "stop_reason": stop});
    entry("assistant", uuid, parent, &json!({"message": message}))
}

fn say(uuid: &str, parent: &str, message: &str) -> String {
    line(
        uuid,
        parent,
        message,
        None,
        &json!({"type": "text", "text": "So it is."}),
    )
}

fn call(uuid: &str, parent: &str, message: &str) -> String {
    let block =
        json!({"type": "tool_use", "id": format!("call-{uuid}"), "name": "Read", "input": {}});
    line(uuid, parent, message, None, &block)
}

fn result(uuid: &str, parent: &str, of: &str) -> String {
    let content = json!([{"type": "tool_result", "tool_use_id": format!("call-{of}"),
        "content": "Done"}]);
    entry(
        "user",
        uuid,
        parent,
        &json!({"message": {"role": "user", "content": content}}),
    )
}

fn attachment(uuid: &str, parent: &str) -> String {
    entry(
        "attachment",
        uuid,
        parent,
        &json!({"attachment": {"type": "task_reminder"}}),
    )
}

fn progress(uuid: &str, parent: &str) -> String {
    entry(
        "progress",
        uuid,
        parent,
        &json!({"data": {"type": "bash_progress"}}),
    )
}

fn system(uuid: &str, parent: &str, subtype: &str) -> String {
    entry("system", uuid, parent, &json!({"subtype": subtype}))
}

fn boundary(uuid: &str, metadata: &Value) -> String {
    let more = json!({"subtype": "compact_boundary", "compactMetadata": metadata});
    entry("system", uuid, "", &more)
}

fn summary(uuid: &str, parent: &str) -> String {
    let message = json!({"role": "user", "content": "In short"});
    entry(
        "user",
        uuid,
        parent,
        &json!({"isCompactSummary": true, "message": message}),
    )
}

fn pin(leaf: &str, explicit: bool) -> String {
    json!({"type": "last-prompt", "leafUuid": leaf, "explicit": explicit}).to_string()
}

fn tombstone(uuid: &str) -> String {
    json!({"type": "transcriptEngine", "v": 1, "tombstone": uuid}).to_string()
}

fn with(line: &str, key: &str, value: &Value) -> String {
    let mut line: Value = serde_json::from_str(line).unwrap();
    line[key] = value.clone();
    line.to_string()
}

/// A growing file, and the changes that were reported.
#[derive(Default)]
struct Grown {
    live: LivePath,
    offset: u64,
}

impl Grown {
    fn of(lines: &[String]) -> Self {
        let mut grown = Self::default();
        for line in lines {
            grown.add(line);
        }
        grown
    }

    /// Adds a line, and returns its changes as text.
    fn add(&mut self, line: &str) -> String {
        let mut changes = Vec::new();
        self.live.add(self.offset, line, &mut changes);
        assert!(changes.iter().all(|change| change.offset == self.offset));
        self.offset += line.len() as u64 + 1;
        let words: Vec<String> = changes
            .into_iter()
            .map(|change| words(change.kind))
            .collect();
        words.join(", ")
    }

    fn leaf(&self) -> String {
        let leaf = self.live.leaf().unwrap();
        leaf.uuid.unwrap().into()
    }

    fn path(&self) -> String {
        let path = self.live.path();
        let uuids = path
            .into_iter()
            .map(|entry| String::from(entry.uuid.unwrap()));
        uuids.collect::<Vec<_>>().join(" ")
    }

    fn open(&self) -> String {
        self.live.open_calls().collect::<Vec<_>>().join(" ")
    }
}

fn words(kind: ChangeKind) -> String {
    let name = |uuid: Option<Box<str>>| uuid.map_or_else(|| "-".to_owned(), String::from);
    match kind {
        ChangeKind::Moved { from, fork, to } => {
            format!(
                "moved from {} over {} to {}",
                name(from),
                name(fork),
                name(to)
            )
        }
        ChangeKind::Boundary { uuid } => format!("boundary {}", name(uuid)),
        ChangeKind::CallOpened { id, name: tool } => format!("opened {id} {}", name(tool)),
        ChangeKind::CallClosed { id } => format!("closed {id}"),
        ChangeKind::Tombstoned { uuid } => format!("took back {uuid}"),
        ChangeKind::TurnEnded { uuid } => format!("ended with {}", name(uuid)),
        other => format!("{other:?}"),
    }
}

/// Adds the lines one by one, and checks the changes of each.
#[track_caller]
fn check(lines: &[(String, &str)]) -> Grown {
    let mut grown = Grown::default();
    for (number, (line, expected)) in lines.iter().enumerate() {
        assert_eq!(grown.add(line), *expected, "line {number}");
    }
    grown
}

#[test]
fn an_entry_under_the_leaf_is_not_a_move() {
    let grown = check(&[
        (ask("u1", ""), ""),
        (attachment("t1", "u1"), ""),
        (call("a1", "t1", "m1"), "opened call-a1 Read"),
        (progress("p1", "a1"), ""),
        (result("r1", "p1", "a1"), "closed call-a1"),
        (say("a2", "r1", "m2"), ""),
        (system("s1", "a2", "turn_duration"), "ended with a2"),
        (ask("u2", "s1"), ""),
    ]);
    assert_eq!(grown.path(), "u1 t1 a1 r1 a2 s1 u2");
    assert_eq!(grown.leaf(), "u2");
    assert!(!grown.live.is_turn_over());
}

#[test]
fn parallel_calls_and_their_results_are_not_moves() {
    let mut grown = check(&[
        (ask("u1", ""), ""),
        (say("a1", "u1", "m1"), ""),
        (call("a2", "a1", "m1"), "opened call-a2 Read"),
        (call("a3", "a2", "m1"), "opened call-a3 Read"),
        (call("a4", "a3", "m1"), "opened call-a4 Read"),
        (result("r3", "a3", "a3"), "closed call-a3"),
    ]);
    assert_eq!(grown.open(), "call-a2 call-a4");
    assert_eq!(grown.leaf(), "r3");
    assert_eq!(grown.add(&result("r4", "a4", "a4")), "closed call-a4");
    assert_eq!(grown.add(&result("r2", "a2", "a2")), "closed call-a2");
    assert_eq!(grown.add(&call("b1", "r2", "m2")), "opened call-b1 Read");
    assert_eq!(grown.path(), "u1 a1 a2 r2 b1");
    // A result that is written before its call.
    check(&[
        (ask("u1", ""), ""),
        (call("a1", "u1", "m1"), "opened call-a1 Read"),
        (result("r2", "a2", "a2"), ""),
        (
            call("a2", "a1", "m1"),
            "opened call-a2 Read, closed call-a2",
        ),
        (result("r1", "a1", "a1"), "closed call-a1"),
        (say("b1", "r1", "m2"), ""),
    ]);
    // Parallel lines of one answer.
    check(&[
        (ask("u1", ""), ""),
        (call("a1", "u1", "m1"), "opened call-a1 Read"),
        (call("a2", "u1", "m1"), "opened call-a2 Read"),
        (result("r1", "a1", "a1"), "closed call-a1"),
        (result("r2", "a2", "a2"), "closed call-a2"),
        (say("b1", "r2", "m2"), ""),
    ]);
}

#[test]
fn a_rewind_is_reported_with_its_fork_and_so_is_going_back_from_it() {
    let mut grown = check(&[
        (ask("u1", ""), ""),
        (say("a1", "u1", "m1"), ""),
        (ask("u2", "a1"), "ended with a1"),
        (say("a2", "u2", "m2"), ""),
        (
            ask("u3", "a1"),
            "moved from a2 over a1 to u3, ended with a2",
        ),
        (call("a3", "u3", "m3"), "opened call-a3 Read"),
        (ask("u4", "a2"), "moved from a3 over a1 to u4"),
    ]);
    assert_eq!(grown.path(), "u1 a1 u2 a2 u4");
    assert_eq!(grown.open(), "");
    // Another answer to the same prompt, and a new start.
    assert_eq!(grown.add(&say("a4", "u4", "m4")), "");
    assert_eq!(
        grown.add(&say("a5", "u4", "m5")),
        "moved from a4 over u4 to a5"
    );
    assert_eq!(
        grown.add(&ask("u5", "")),
        "moved from a5 over - to u5, ended with a5"
    );
    assert_eq!(grown.path(), "u5");
}

#[test]
fn what_is_written_beside_the_chain_is_not_a_move_and_hides_none() {
    let mut grown = check(&[
        (ask("u1", ""), ""),
        (say("a1", "u1", "m1"), ""),
        (system("s1", "a1", "informational"), ""),
        (ask("u2", "a1"), "ended with a1"),
        (attachment("t2", "u2"), ""),
        (progress("p2", "u2"), ""),
        (say("a2", "p2", "m2"), ""),
        (attachment("t1", "a1"), ""),
    ]);
    // An attachment is a tip, as in the tree.
    assert_eq!(grown.path(), "u1 a1 t1");
    assert_eq!(grown.add(&ask("u3", "a2")), "ended with a2");
    assert_eq!(grown.path(), "u1 a1 u2 a2 u3");
    assert_eq!(grown.add(&attachment("t3", "a1")), "");
    assert_eq!(grown.add(&ask("u4", "t3")), "moved from u3 over a1 to u4");
    assert_eq!(grown.path(), "u1 a1 t3 u4");
}

#[test]
fn a_pin_of_a_person_moves_the_path_and_the_zero_uuid_lifts_it() {
    let zero = "00000000-0000-0000-0000-000000000000";
    let lines = [
        (ask("u1", ""), ""),
        (say("a1", "u1", "m1"), ""),
        (ask("u2", "a1"), "ended with a1"),
        (say("a2", "u2", "m2"), ""),
        (pin("a1", false), "ended with a2"),
        (pin("a1", true), "moved from a2 over a1 to a1"),
    ];
    let mut grown = check(&lines);
    assert_eq!(grown.path(), "u1 a1");
    assert_eq!(grown.add(&pin(zero, true)), "moved from a1 over a1 to a2");
    assert_eq!(grown.add(&pin("u1", true)), "moved from a2 over u1 to u1");
    // Entries below the pin continue the conversation; continuing below the hidden branch restores
    // that.
    assert_eq!(grown.add(&ask("u3", "a2")), "moved from u1 over u1 to u3");
    assert_eq!(grown.path(), "u1 a1 u2 a2 u3");
    // An entry elsewhere leaves the conversation at the pin (LEAF-10).
    assert_eq!(grown.add(&pin("a2", true)), "moved from u3 over a2 to a2");
    assert_eq!(grown.add(&ask("u4", "a1")), "");
    assert_eq!(grown.leaf(), "a2");
    // The entry of a pin may be written after the pin.
    let mut grown = Grown::of(&[pin("a1", false), ask("u1", ""), say("a1", "u1", "m1")]);
    assert_eq!(grown.add(&ask("u2", "u1")), "ended with a1");
    assert_eq!(grown.leaf(), "a1");
}

#[test]
fn a_pin_in_the_middle_of_a_turn_or_before_a_compaction_hides_nothing() {
    let mut grown = Grown::of(&[
        ask("u1", ""),
        call("c1", "u1", "m1"),
        call("c2", "c1", "m1"),
        pin("c2", false),
        result("r2", "c2", "c2"),
        result("r1", "c1", "c1"),
        say("a1", "r1", "m2"),
    ]);
    assert_eq!(grown.leaf(), "a1");
    grown.add(&pin("u1", true));
    assert_eq!(grown.leaf(), "u1");
    grown.add(&boundary("b", &json!({"trigger": "auto"})));
    assert_eq!(grown.leaf(), "a1");
}

#[test]
fn going_on_after_a_compaction_is_not_a_move() {
    let before = [
        (ask("u1", ""), ""),
        (say("a1", "u1", "m1"), ""),
        (ask("u2", "a1"), "ended with a1"),
        (say("a2", "u2", "m2"), ""),
    ];
    let mut plain = check(&before);
    assert_eq!(
        plain.add(&boundary("b", &json!({"trigger": "auto"}))),
        "boundary b"
    );
    assert_eq!(plain.leaf(), "a2");
    assert_eq!(plain.add(&summary("s", "b")), "");
    assert_eq!(plain.path(), "b s");
    assert_eq!(plain.add(&ask("u3", "s")), "ended with a2");
    assert_eq!(plain.path(), "b s u3");
    // Continuing where the conversation was before is a move.
    assert_eq!(plain.add(&ask("u4", "a2")), "moved from u3 over - to u4");

    let list = json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["u2", "a2"]}});
    let segment =
        json!({"preservedSegment": {"anchorUuid": "s", "headUuid": "u2", "tailUuid": "a2"}});
    for keeps in [list, segment] {
        for next in ["s", "a2", "a1"] {
            let mut grown = check(&before);
            assert_eq!(grown.add(&boundary("b", &keeps)), "boundary b");
            assert_eq!(grown.add(&summary("s", "b")), "");
            assert_eq!(grown.path(), "b s u2 a2");
            assert_eq!(grown.add(&ask("u3", next)), "ended with a2");
            assert_eq!(grown.path(), "b s u2 a2 u3", "under {next}");
            // A rewind after it is a move.
            assert_eq!(grown.add(&ask("u4", "u2")), "moved from u3 over u2 to u4");
            // The next compaction ends the effect of this one.
            assert_eq!(grown.add(&boundary("c", &json!({}))), "boundary c");
            assert_eq!(grown.path(), "u1 a1 u2 u4");
            assert_eq!(grown.add(&summary("t", "c")), "");
            assert_eq!(grown.path(), "c t");
        }
    }
}

#[test]
fn what_a_tombstone_takes_back_is_no_longer_on_the_path() {
    let mut grown = check(&[
        (ask("u1", ""), ""),
        (call("a1", "u1", "m1"), "opened call-a1 Read"),
        (call("a2", "a1", "m1"), "opened call-a2 Read"),
        (result("r1", "a1", "a1"), "closed call-a1"),
        (tombstone("a2"), "took back a2"),
        (tombstone("a2"), ""),
        (tombstone("x"), ""),
    ]);
    assert_eq!(grown.open(), "");
    assert_eq!(grown.path(), "u1 a1 r1");
    assert_eq!(grown.add(&tombstone("a1")), "took back a1");
    assert_eq!(grown.path(), "u1");
    // Another tool continues below a tombstoned entry, and a result arrives late.
    assert_eq!(grown.add(&result("r2", "a2", "a2")), "");
    assert_eq!(grown.path(), "u1");
    assert_eq!(grown.add(&say("b1", "a2", "m2")), "");
    assert_eq!(grown.path(), "u1 b1");
    // The turn continues when the entry that ended it is tombstoned.
    assert_eq!(
        grown.add(&system("s1", "b1", "turn_duration")),
        "ended with b1"
    );
    assert!(grown.live.is_turn_over());
    assert_eq!(grown.add(&tombstone("b1")), "took back b1");
    assert!(!grown.live.is_turn_over());
    // An entry that is written again counts again.
    assert_eq!(grown.add(&say("b1", "u1", "m3")), "");
    assert_eq!(grown.path(), "u1 b1");
}

#[test]
fn a_file_of_a_subagent_is_its_own_conversation_and_a_sidechain_in_another_file_is_none() {
    let side = |line: String| with(&line, "isSidechain", &json!(true));
    let mut grown = check(&[
        (side(ask("x1", "")), ""),
        (side(call("x2", "x1", "m1")), "opened call-x2 Read"),
        (side(result("x3", "x2", "x2")), "closed call-x2"),
    ]);
    assert_eq!(grown.path(), "x1 x2 x3");
    // A message of the main conversation shows the type of the file; that is not a move.
    assert_eq!(grown.add(&ask("u1", "")), "");
    assert_eq!(grown.add(&call("a1", "u1", "m2")), "opened call-a1 Read");
    assert_eq!(grown.add(&side(ask("y1", "a1"))), "");
    assert_eq!(grown.add(&side(call("y2", "y1", "m3"))), "");
    assert_eq!(grown.open(), "call-a1");
    assert_eq!(grown.path(), "u1 a1");
    assert_eq!(grown.add(&result("r1", "a1", "a1")), "closed call-a1");
    assert_eq!(grown.path(), "u1 a1 r1");
}

#[test]
fn a_turn_is_over_once_and_with_its_whole_answer() {
    let text = json!({"type": "text", "text": "So it is."});
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "s"});
    // Newer clients write the reason on each line.
    let grown = check(&[
        (ask("u1", ""), ""),
        (line("a1", "u1", "m1", Some("tool_use"), &text), ""),
        (call("a2", "a1", "m1"), "opened call-a2 Read"),
        (result("r2", "a2", "a2"), "closed call-a2"),
        (line("b1", "r2", "m2", Some("end_turn"), &thinking), ""),
        (
            line("b2", "b1", "m2", Some("end_turn"), &text),
            "ended with b2",
        ),
        (line("b3", "b2", "m2", Some("end_turn"), &text), ""),
        (system("s1", "b3", "stop_hook_summary"), ""),
        (system("s2", "s1", "turn_duration"), ""),
        (pin("s2", false), ""),
        // A hook lets the model continue.
        (
            line("c1", "s2", "m3", Some("end_turn"), &text),
            "ended with c1",
        ),
        (ask("u2", "c1"), ""),
        (
            line("d1", "u2", "m4", Some("max_tokens"), &text),
            "ended with d1",
        ),
    ]);
    assert!(grown.live.is_turn_over());
    // If the reason is null, the next lines decide.
    for end in [
        system("s1", "a1", "stop_hook_summary"),
        system("s1", "a1", "turn_duration"),
        json!({"type": "last-prompt", "lastPrompt": "And now?"}).to_string(),
        ask("u2", "a1"),
    ] {
        check(&[
            (ask("u1", ""), ""),
            (say("a1", "u1", "m1"), ""),
            (end, "ended with a1"),
            (pin("a1", false), ""),
        ]);
    }
    // In the middle of a turn it does not end the turn.
    check(&[
        (ask("u1", ""), ""),
        (pin("u1", false), ""),
        (say("a1", "u1", "m1"), ""),
        (call("a2", "a1", "m1"), "opened call-a2 Read"),
        (pin("a2", false), ""),
        (system("s1", "a2", "stop_hook_summary"), ""),
        // Text next to a call does not end the answer.
        (say("a3", "a2", "m1"), ""),
        (system("s2", "a3", "stop_hook_summary"), ""),
        (line("a4", "a3", "m1", Some("end_turn"), &text), ""),
        (result("r2", "a2", "a2"), "closed call-a2"),
        (line("b1", "r2", "m2", Some("pause_turn"), &text), ""),
    ]);
}

#[test]
fn a_turn_that_is_cut_short_is_over() {
    let stop = "[Request interrupted by user for tool use]";
    let mut grown = check(&[
        (ask("u1", ""), ""),
        (call("a1", "u1", "m1"), "opened call-a1 Read"),
        (user("i1", "a1", stop), "ended with i1"),
        (user("i2", "i1", stop), ""),
    ]);
    assert_eq!(grown.open(), "");
    assert_eq!(grown.add(&ask("u2", "i2")), "");
    let error = with(&say("e1", "u2", "m2"), "isApiErrorMessage", &json!(true));
    assert_eq!(grown.add(&error), "ended with e1");
    assert!(grown.live.is_turn_over());
    // User entries that clients create themselves do not begin a turn.
    let output = "<local-command-stdout>on</local-command-stdout>";
    assert_eq!(grown.add(&user("o1", "e1", output)), "");
    assert_eq!(
        grown.add(&with(&ask("o2", "o1"), "isMeta", &json!(true))),
        ""
    );
    assert!(grown.live.is_turn_over());
}

#[test]
fn calls_of_the_provider_open_and_close_too() {
    let ask_server =
        json!({"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}});
    let answer = json!({"type": "web_search_tool_result", "tool_use_id": "srv", "content": []});
    check(&[
        (ask("u1", ""), ""),
        (
            line("a1", "u1", "m1", None, &ask_server),
            "opened srv web_search",
        ),
        (line("a2", "a1", "m1", None, &answer), "closed srv"),
    ]);
}

#[test]
fn an_unknown_parent_keeps_the_path_until_it_comes_and_a_repeated_line_changes_nothing() {
    let mut grown = check(&[
        (ask("u1", ""), ""),
        (say("a1", "u1", "m1"), ""),
        (ask("u2", "lost"), "ended with a1"),
        (say("a2", "u2", "m2"), ""),
        (ask("u2", "u1"), ""),
        (say("a1", "u1", "m1"), ""),
    ]);
    assert_eq!(grown.path(), "u1 a1 u2 a2");
    assert_eq!(
        grown.live.path()[1].offset,
        grown.offset - say("a1", "u1", "m1").len() as u64 - 1
    );
    assert_eq!(grown.add(&system("lost", "a1", "informational")), "");
    assert_eq!(grown.path(), "u1 a1 lost u2 a2");
    // Names that would close a cycle.
    assert_eq!(grown.add(&ask("u3", "u3")), "ended with a2");
    assert_eq!(grown.add(&say("a3", "a4", "m3")), "");
    assert_eq!(grown.add(&say("a4", "a3", "m4")), "");
    assert_eq!(grown.leaf(), "a4");
}

#[test]
fn entries_of_another_session_count_once_they_are_linked() {
    let other = |line: String| with(&line, "sessionId", &json!("other"));
    let mut grown = check(&[
        (ask("u1", ""), ""),
        (say("a1", "u1", "m1"), ""),
        (other(ask("x1", "")), ""),
        (other(say("x2", "x1", "m2")), ""),
    ]);
    assert_eq!(grown.leaf(), "a1");
    assert_eq!(
        grown.add(&ask("u2", "x2")),
        "moved from a1 over - to u2, ended with a1"
    );
    assert_eq!(grown.path(), "x1 x2 u2");
    // The file of a session that starts with entries of another one.
    let mut named = LivePath::of_session("s");
    let mut changes = Vec::new();
    for (offset, line) in [other(ask("x1", "")), ask("u1", "")].iter().enumerate() {
        named.add(offset as u64, line, &mut changes);
    }
    assert_eq!(named.leaf().unwrap().uuid.as_deref(), Some("u1"));
}

#[test]
fn nothing_that_a_line_holds_stops_it() {
    let mut rng = Rng::new(7);
    let mut changes = Vec::new();
    for seed in 0..300 {
        let mut live = LivePath::new();
        let bytes = generate::permute_lines(&generate::session(seed), seed);
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let mut line = line.to_vec();
            for _ in 0..rng.below(3) {
                if !line.is_empty() {
                    let at = rng.below(line.len());
                    line[at] = rng.below(256) as u8;
                }
            }
            live.add(at as u64, &String::from_utf8_lossy(&line), &mut changes);
            let (path, leaf) = (live.path(), live.leaf());
            assert_eq!(path.last(), leaf.as_ref());
        }
    }
    assert!(!changes.is_empty());
}

#[test]
fn an_entry_takes_64_bytes_at_most() {
    let mut live = LivePath::new();
    let mut changes = Vec::new();
    let mut parent = String::new();
    let mut most = 0.0_f64;
    for number in 0..200_000_u64 {
        let uuid = Uuid(u128::from(number) << 64 | 7).to_string();
        let is_answer = number % 2 == 1;
        let line = match is_answer {
            true => say(&uuid, &parent, &uuid),
            false => ask(&uuid, &parent),
        };
        live.add(number * 1_000, &line, &mut changes);
        parent = uuid;
        if number > 10_000 {
            most = most.max(live.memory() as f64 / (number + 1) as f64);
        }
    }
    println!("{most:.1} bytes an entry at most");
    assert!(most <= 64.0, "{most}");
    assert!(most > 48.0, "{most}");
    assert_eq!(live.path().len(), 200_000);
}
