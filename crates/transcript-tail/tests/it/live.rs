//! The conversation of a follower is that of a load of the same lines, and its changes are those of
//! its path.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use transcript_format::ids::Uuid;
use transcript_format::kind::EntryKind;
use transcript_reader::{EntryRef, Index, Policy, Source, Tree};
use transcript_storage::{Disk, MemoryDisk};
use transcript_tail::{ChangeKind, EventKind, FollowOptions, FollowedEntry, Follower, StartAt};
use transcript_testkit::rng::Rng;
use transcript_testkit::{damage, generate, shared};

// ---------------------------------------------------------------------------------------------
// Compared with the tree
// ---------------------------------------------------------------------------------------------

/// A file in memory that grows, and its follower.
struct Grown {
    path: PathBuf,
    disk: MemoryDisk,
    follower: Follower,
}

impl Default for Grown {
    fn default() -> Self {
        Self::named("session.jsonl")
    }
}

impl Grown {
    fn named(name: &str) -> Self {
        let path = Path::new("/p").join(name);
        let disk = MemoryDisk::new();
        disk.put(&path, "");
        Self::on(disk, path, StartAt::Beginning)
    }

    /// Follows the same file from elsewhere.
    fn starting(other: &Self, start: StartAt) -> Self {
        Self::on(other.disk.clone(), other.path.clone(), start)
    }

    fn on(disk: MemoryDisk, path: PathBuf, start: StartAt) -> Self {
        let options = FollowOptions::new().disk(Arc::new(disk.clone())).changes();
        let options = options.start(start);
        let follower = Follower::new(&path, &options);
        Self {
            path,
            disk,
            follower,
        }
    }

    /// Appends bytes, and returns the entries that are emitted.
    fn append(&mut self, bytes: &[u8]) -> Vec<FollowedEntry> {
        let file = self.disk.open(&self.path, false).unwrap().file;
        file.append(bytes).unwrap();
        self.entries()
    }

    fn entries(&mut self) -> Vec<FollowedEntry> {
        let next = || self.follower.try_next().unwrap();
        let entries = std::iter::from_fn(next).filter_map(|event| match event.kind {
            EventKind::Entry(entry) => Some(entry),
            _ => None,
        });
        entries.collect()
    }

    /// Returns the path as offsets. Its last entry may be a sibling of the leaf.
    fn offsets(&mut self) -> (Option<u64>, Vec<u64>) {
        let live = self.follower.live().unwrap();
        let path = live.path().map(|entry| entry.offset).collect();
        (live.leaf().map(|leaf| leaf.offset), path)
    }
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

/// Returns leaf and path of a load, as offsets.
fn expected(bytes: &[u8], name: &Path) -> (Option<u64>, Vec<u64>) {
    let (_, index) = index(bytes, name);
    let path = Tree::new(&index, Policy::Recover).path();
    let offset = |number| index.entry(number).offset();
    let entries = path.entries.iter().map(|entry| offset(entry.entry_no()));
    (path.leaf.map(offset), entries.collect())
}

/// Follows the file as it grows line by line, and compares after those that `looks` selects. A line
/// without a newline is not followed yet. Returns the number of comparisons.
fn compare(bytes: &[u8], name: &Path, looks: impl Fn(usize) -> bool) -> usize {
    let name = name.file_name().unwrap().to_str().unwrap();
    let mut grown = Grown::named(name);
    let (mut start, mut compared) = (0, 0);
    for (line, end) in ends(bytes).into_iter().enumerate() {
        grown.append(&bytes[start..end]);
        start = end;
        if bytes[..end].ends_with(b"\n") && looks(line) {
            let expected = expected(&bytes[..end], Path::new(name));
            assert_eq!(grown.offsets(), expected, "{name}, line {}", line + 1);
            compared += 1;
        }
    }
    compared
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
fn generated_sessions_have_the_leaf_and_the_path_of_a_load_after_each_line() {
    for (kind, make) in [
        ("tidy", generate::tidy_session as fn(u64) -> Vec<u8>),
        ("unique", generate::session_of_unique_uuids),
        ("any", generate::session),
        ("tombstones", with_tombstones),
        ("damaged", |seed| {
            damage::damage(&generate::session(seed), seed).0
        }),
    ] {
        let mut compared = 0;
        for seed in 0..400 {
            let name = PathBuf::from(format!("{kind}-{seed}.jsonl"));
            compared += compare(&make(seed), &name, |_| true);
        }
        println!("{kind}: {compared} prefixes, 0 differences");
        assert!(compared > 10_000, "{kind}: {compared}");
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
fn compare_files(files: &[PathBuf], most: usize) -> usize {
    let mut compared = 0;
    // A file of another format, such as UTF-16, is not read.
    for file in files.iter().filter(|file| Source::open(file).is_ok()) {
        let bytes = std::fs::read(file).unwrap();
        let lines = ends(&bytes).len();
        let step = if lines <= 300 {
            1
        } else {
            lines.div_ceil(most)
        };
        let looks = |line: usize| (lines - 1 - line).is_multiple_of(step);
        compared += compare(&bytes, file, looks);
    }
    compared
}

#[test]
fn the_fixtures_have_the_leaf_and_the_path_of_a_load_after_each_line() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let files = transcripts(&fixtures);
    assert!(files.len() > 80, "{} files", files.len());
    let compared = compare_files(&files, 100);
    println!("{} files, {compared} prefixes, 0 differences", files.len());
}

#[test]
fn sessions_of_real_clients_have_the_leaf_and_the_path_of_a_load() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    for folder in ["corpus", "oracle", "oracle2", "damage"] {
        let files = transcripts(&shared.join(folder));
        let compared = compare_files(&files, 30);
        println!(
            "{folder}: {} files, {compared} prefixes, 0 differences",
            files.len()
        );
    }
}

// ---------------------------------------------------------------------------------------------
// Moves
// ---------------------------------------------------------------------------------------------

/// Detects moves from trees: the last message of the path, with parallel siblings, is not on it any
/// more, or one that was not on it is back below it, without a compaction since.
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
        // An entry that is written again is the same one.
        let first = |entry: EntryRef<'_>| {
            let node = tree.node(entry.number());
            let mut lines = entry
                .uuid()
                .into_iter()
                .flat_map(|id| tree.index().with_uuid(id));
            let first = lines.find(|line| tree.node(*line) == node);
            tree.index().entry(first.unwrap_or(entry.number()))
        };
        let entries = path
            .entries
            .iter()
            .map(|entry| first(tree.index().entry(entry.entry_no())));
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
            !node.is_some_and(|node| tree.is_sidechain(node) || tree.is_foreign(node))
        });
        let is_moved = place.is_some_and(|place| {
            let is_compacted = |first: &EntryRef<'_>| first.is_boundary() && first.offset() > place;
            let is_back =
                |message: &u64| self.seen.contains(message) && !self.path.contains(message);
            let mut below = messages.iter().skip_while(|message| **message != place);
            !entries.first().is_some_and(is_compacted)
                && (!messages.contains(&place) || below.any(is_back))
        });
        if !is_moved || can_move {
            self.seen.extend(&messages);
            self.path = messages;
        }
        is_moved && can_move
    }
}

#[test]
fn a_move_is_reported_where_the_tree_leaves_its_earlier_path() {
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
        let (mut grown, mut tree_moves) = (Grown::default(), Moves::default());
        let mut start = 0;
        for (line, end) in ends(bytes).into_iter().enumerate() {
            let entries = grown.append(&bytes[start..end]);
            start = end;
            if !bytes[..end].ends_with(b"\n") {
                break;
            }
            let (_, index) = index(&bytes[..end], name);
            let tree = Tree::new(&index, Policy::Recover);
            let Some(last) = index
                .entries()
                .last()
                .filter(|last| last.line() == line as u64 + 1)
            else {
                continue;
            };
            let mut changes = entries.iter().flat_map(|entry| &entry.changes);
            let can_move = last.kind().is_message() || last.kind() == EntryKind::LastPrompt;
            let expected = tree_moves.look(&tree, can_move);
            let is_emitted = changes.any(|change| matches!(change.kind, ChangeKind::Moved { .. }));
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
        let mut words_of = Vec::new();
        for entry in self.append(format!("{line}\n").as_bytes()) {
            for change in entry.changes {
                assert_eq!(change.offset, entry.offset);
                words_of.push(words(change.kind));
            }
        }
        words_of.join(", ")
    }

    fn leaf(&mut self) -> String {
        let leaf = self.follower.live().unwrap().leaf().unwrap();
        leaf.uuid.unwrap().into()
    }

    fn path(&mut self) -> String {
        let path = self.follower.live().unwrap().path();
        let uuids = path.map(|entry| String::from(entry.uuid.unwrap()));
        uuids.collect::<Vec<_>>().join(" ")
    }

    fn open(&mut self) -> String {
        let live = self.follower.live().unwrap();
        live.open_calls().collect::<Vec<_>>().join(" ")
    }

    fn is_turn_over(&mut self) -> bool {
        self.follower.live().unwrap().is_turn_over()
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
    let mut grown = check(&[
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
    assert!(!grown.is_turn_over());
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
    assert_eq!(grown.path(), "u1 a1 a2 a3 a4 r3 r4 r2 b1");
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
fn entry_outside_the_chain_is_not_a_move_and_hides_none() {
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
            // The next compaction ends the effect of this one when its summary is written.
            assert_eq!(grown.add(&boundary("c", &json!({}))), "boundary c");
            assert_eq!(grown.path(), "b s u2 u4");
            assert_eq!(grown.add(&summary("t", "c")), "");
            assert_eq!(grown.path(), "c t");
        }
    }
}

#[test]
fn tombstoned_entry_leaves_the_path() {
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
    assert!(grown.is_turn_over());
    assert_eq!(grown.add(&tombstone("b1")), "took back b1");
    assert!(!grown.is_turn_over());
    // An entry that is written again counts again.
    assert_eq!(grown.add(&say("b1", "u1", "m3")), "");
    assert_eq!(grown.path(), "u1 b1 s1");
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
    let mut grown = check(&[
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
    assert!(grown.is_turn_over());
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
    assert!(grown.is_turn_over());
    // User entries that clients create themselves do not begin a turn.
    let output = "<local-command-stdout>on</local-command-stdout>";
    assert_eq!(grown.add(&user("o1", "e1", output)), "");
    assert_eq!(
        grown.add(&with(&ask("o2", "o1"), "isMeta", &json!(true))),
        ""
    );
    assert!(grown.is_turn_over());
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
    // The parent that the later copy names counts as long as that of the first one is missing.
    assert_eq!(grown.path(), "u1 u2 a2");
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
    let mut named = Grown::named("s.jsonl");
    named.add(&other(ask("x1", "")));
    named.add(&ask("u1", ""));
    assert_eq!(named.leaf(), "u1");
}

#[test]
fn nothing_that_a_line_holds_stops_it() {
    let mut rng = Rng::new(7);
    let mut changes = 0;
    for seed in 0..300 {
        let mut grown = Grown::default();
        let bytes = generate::permute_lines(&generate::session(seed), seed);
        let mut whole = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let mut line = line.to_vec();
            for _ in 0..rng.below(3) {
                if !line.is_empty() {
                    let at = rng.below(line.len());
                    line[at] = rng.below(256) as u8;
                }
            }
            line.push(b'\n');
            let entries = grown.append(&line);
            changes += entries
                .iter()
                .map(|entry| entry.changes.len())
                .sum::<usize>();
            whole.extend(line);
        }
        assert_eq!(grown.offsets(), expected(&whole, &grown.path), "{seed}");
    }
    assert!(changes > 1_000, "{changes}");
}

/// Returns the changes of entries, by the offset of the line that made them.
fn changes_of(entries: Vec<FollowedEntry>) -> Vec<(u64, String)> {
    let changes = entries.into_iter().flat_map(|entry| entry.changes);
    changes
        .map(|change| (change.offset, words(change.kind)))
        .collect()
}

#[test]
fn a_file_that_is_read_at_once_has_the_changes_of_one_that_grows() {
    let mut changes = 0;
    for seed in 0..300 {
        for bytes in [
            generate::session(seed),
            generate::tidy_session(seed),
            with_tombstones(seed),
            damage::damage(&generate::session(seed), seed).0,
        ] {
            let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let whole = [bytes, b"\n"].concat();
            let mut grown = Grown::default();
            let mut entries = Vec::new();
            for line in whole.split_inclusive(|byte| *byte == b'\n') {
                entries.extend(grown.append(line));
            }
            let one_by_one = changes_of(entries);
            let mut at_once = Grown::default();
            let entries = at_once.append(&whole);
            assert_eq!(changes_of(entries), one_by_one, "{seed}");
            assert_eq!(at_once.offsets(), grown.offsets(), "{seed}");
            changes += one_by_one.len();
        }
    }
    assert!(changes > 10_000, "{changes}");
}

#[test]
fn entries_after_the_start_have_the_same_changes_as_from_the_first_line() {
    for seed in 0..60 {
        let bytes = generate::tidy_session(seed);
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let whole = [bytes, b"\n"].concat();
        let ends = ends(&whole);
        let start = ends[ends.len() / 2];
        let mut grown = Grown::default();
        grown.append(&whole[..start]);
        let checkpoint = grown.follower.checkpoint();
        let expected = changes_of(grown.append(&whole[start..]));
        let state = grown.offsets();
        let calls = grown.open();
        for at in [
            StartAt::Offset(start as u64),
            StartAt::Checkpoint(checkpoint),
        ] {
            let mut later = Grown::starting(&grown, at);
            assert_eq!(changes_of(later.entries()), expected, "{seed}");
            assert_eq!(later.offsets(), state, "{seed}");
            assert_eq!(later.open(), calls, "{seed}");
        }
        for at in [StartAt::End, StartAt::Last(1)] {
            let mut later = Grown::starting(&grown, at);
            let shown = later.entries();
            assert!(shown.len() <= 1);
            let shown = changes_of(shown);
            assert_eq!(shown, expected[expected.len() - shown.len()..], "{seed}");
            assert_eq!(later.offsets(), state, "{seed}");
            assert_eq!(later.open(), calls, "{seed}");
        }
    }
}

#[test]
fn an_entry_takes_little_memory() {
    let mut grown = Grown::default();
    let mut parent = String::new();
    let mut text = String::new();
    for number in 0..100_000_u64 {
        let uuid = Uuid(u128::from(number) << 64 | 7).to_string();
        text += &match number % 2 {
            0 => ask(&uuid, &parent),
            _ => say(&uuid, &parent, &uuid),
        };
        text.push('\n');
        parent = uuid;
    }
    grown.append(text.as_bytes());
    let live = grown.follower.live().unwrap();
    let bytes = live.memory() / 100_000;
    println!("{bytes} bytes an entry");
    assert!(bytes <= 140, "{bytes}");
    assert_eq!(live.path().len(), 100_000);
}
