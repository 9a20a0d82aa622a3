//! The path of a conversation that grows is the one that a tree of all that is there has.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use transcript_format::finding::{Code, Severity};

use transcript_format::kind::EntryKind;
use transcript_reader::{Bodies, Candidate, Index, Preserved, Source};
use transcript_resume::{Decision, Evidence, Parent, Policy, Tree};
use transcript_tail::{Change, ChangeKind, LivePath};
use serde_json::{Value, json};
use transcript_testkit::rng::Rng;
use transcript_testkit::{generate, shared};

// ---------------------------------------------------------------------------------------------
// Beside the tree
// ---------------------------------------------------------------------------------------------

/// What was compared.
#[derive(Debug, Default)]
struct Count {
    /// Prefixes without damage to a link.
    sound: usize,
    /// Those of which the leaf or the path is another one.
    different: usize,
    damaged: usize,
    different_damaged: usize,
    /// Sound prefixes of which `vendor` has another leaf.
    different_vendor: usize,
}

/// The ends of the lines, in bytes.
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

/// Whether links of the prefix are damaged: an entry is lost, written twice or of another session,
/// or what a compaction keeps is not there or cannot stand where it says.
fn is_damaged(tree: &Tree<'_>) -> bool {
    if tree.index().candidates().any(|entry| is_odd_boundary(tree.index(), &entry)) {
        return true;
    }
    // A lost parent behind a progress line has no finding of its own. One whose line is there, but is
    // no entry, leads on to what that names.
    let path = tree.path();
    let is_mended = |decision: &Decision| match decision {
        Decision::Bridge { evidence, .. } => *evidence != Evidence::Unusable,
        Decision::Gap { .. } => true,
        _ => false,
    };
    if path.decisions.iter().any(is_mended) {
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

/// Whether a boundary keeps entries and hangs under them, or names lines that are none.
fn is_odd_boundary(index: &Index, entry: &Candidate<'_>) -> bool {
    let boundary = entry.is_boundary().then(|| index.boundary(entry.number())).flatten();
    let uuids = match boundary.map(|boundary| &boundary.preserved) {
        Some(Preserved::List { uuids, .. }) => uuids.as_slice(),
        Some(Preserved::Segment { .. }) => &[],
        _ => return false,
    };
    let is_no_entry = |line: usize| {
        let kind = index.candidate(line).kind();
        !kind.is_chain() || kind == EntryKind::Progress
    };
    let mut lines = uuids.iter().flatten().flat_map(|id| index.with_uuid(*id));
    entry.parent().is_some() || lines.any(is_no_entry)
}

/// The leaf of the tree and what stands above it by parents, oldest first, as offsets.
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

/// Adds the candidates of the file one by one, and compares after those that `looks` picks.
fn compare(bytes: &[u8], name: &Path, looks: impl Fn(usize) -> bool, count: &mut Count) {
    let (source, whole) = index(bytes, name);
    let mut bodies = Bodies::new(&source);
    let mut live = match whole.own_session() {
        Some(session) => LivePath::of_session(session),
        None => LivePath::new(),
    };
    let mut changes: Vec<Change> = Vec::new();
    let mut next = 0;
    let ends = ends(bytes);
    for (line, end) in ends.iter().enumerate() {
        while next < whole.len() && whole.candidate(next).offset() < *end as u64 {
            let candidate = whole.candidate(next);
            let body = bodies.get(&candidate).unwrap();
            live.add(candidate.offset(), &body.text, &mut changes);
            next += 1;
        }
        if !looks(line) {
            continue;
        }
        let (_, index) = index(&bytes[..*end], name);
        // What the end of the file is needed for to be read is not there yet.
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

/// A tidy session in which entries are taken back, as a rule some of the last few, and none from
/// before the last compaction.
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
            let reach = if rng.one_in(8) { uuids.len() } else { uuids.len().min(4) };
            let named = &uuids[uuids.len() - 1 - rng.below(reach)];
            let line = json!({"type": "transcriptEngine", "v": 1, "tombstone": named});
            out.extend_from_slice(format!("{line}\n").as_bytes());
        }
    }
    out
}

#[test]
fn generated_sessions_have_the_leaf_and_the_path_of_the_tree_after_each_line() {
    for (kind, make) in [
        ("tidy", generate::tidy_session as fn(u64) -> Vec<u8>),
        ("unique", generate::session_of_unique_uuids),
        ("any", generate::session),
        ("tombstones", with_tombstones),
    ] {
        let mut count = Count::default();
        for seed in 0..400 {
            let name = PathBuf::from(format!("{kind}-{seed}.jsonl"));
            compare(&make(seed), &name, |_| true, &mut count);
        }
        println!("{kind}: {count:?}");
        assert_eq!(count.different, 0, "{kind}");
    }
}

/// All transcripts under `folder`, in order.
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
            } else if entry.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(entry);
            }
        }
    }
    found.sort();
    found
}

/// Compares after each line of a file that has up to 300, of others after as many as `most`.
fn compare_files(files: &[PathBuf], most: usize) -> Count {
    let mut count = Count::default();
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        let lines = ends(&bytes).len();
        let step = if lines <= 300 { 1 } else { lines.div_ceil(most) };
        let looks = |line: usize| (lines - 1 - line) % step == 0;
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

/// What a tree says of moves: the last message that was on its path, with the lines and results of
/// answers beside the chain, is no longer there, and no compaction came since.
#[derive(Default)]
struct Moves {
    place: Option<u64>,
}

impl Moves {
    /// Whether the conversation moved with what the file has now.
    fn look(&mut self, tree: &Tree<'_>, can_move: bool) -> bool {
        let path = tree.path();
        let entries = path.entries.iter().map(|entry| tree.index().candidate(entry.candidate()));
        let entries: Vec<_> = entries.collect();
        let last = entries.iter().rev().find(|entry| entry.kind().is_message());
        // Where only entries of a subagent had come, those were no conversation.
        let is_sidechain = |place: &u64| {
            let mut all = tree.index().candidates();
            let entry = all.find(|entry| entry.offset() == *place);
            entry.and_then(|entry| tree.node(entry.number())).is_some_and(|node| tree.is_sidechain(node))
        };
        let stays = self.place.filter(|place| !is_sidechain(place)).is_none_or(|place| {
            let is_compacted = |first: &Candidate<'_>| first.is_boundary() && first.offset() > place;
            entries.iter().any(|entry| entry.offset() == place)
                || entries.first().is_some_and(is_compacted)
        });
        if stays || can_move {
            self.place = last.map(|last| last.offset());
        }
        !stays && can_move
    }
}

#[test]
fn a_move_is_told_where_the_tree_leaves_what_was_on_its_path() {
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
            let Some(last) = index.candidates().last().filter(|last| last.line() == line as u64 + 1)
            else {
                continue;
            };
            if is_damaged(&tree) {
                break;
            }
            let mut bodies = Bodies::new(&source);
            let mut changes = Vec::new();
            live.add(last.offset(), bodies.get(&last).unwrap().text, &mut changes);
            let is_move = |change: &Change| matches!(change.kind, ChangeKind::Moved { .. });
            let can_move = last.kind().is_message() || last.kind() == EntryKind::LastPrompt;
            let expected = tree_moves.look(&tree, can_move);
            let is_told = changes.iter().any(is_move);
            assert_eq!(is_told, expected, "session {number}, line {}", line + 1);
            lines += 1;
            moves += usize::from(expected);
        }
    }
    println!("{} sessions, {lines} lines, {moves} moves", sessions.len());
    assert!(moves > 300, "{moves} moves");
}
