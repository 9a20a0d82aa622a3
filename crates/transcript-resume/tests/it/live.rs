//! A conversation that is kept up to date has the leaf and the path of a load, at every prefix.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use transcript_format::lines::{Framed, Framer};
use transcript_reader::{EntryNo, Index, Source};
use transcript_resume::{LiveConversation, PathEntry, Policy, Tree};
use transcript_testkit::rng::Rng;
use transcript_testkit::{damage, generate, shared};

/// The numbers of comparisons.
#[derive(Debug, Default)]
struct Count {
    prefixes: usize,
    /// Full rebuilds, when the path was asked for after each line.
    rebuilds: u64,
}

fn expected(bytes: &[u8], path: &Path) -> (Option<EntryNo>, Vec<PathEntry>) {
    let index = Index::load(&Source::from_bytes(bytes, path)).unwrap();
    let path = Tree::new(&index, Policy::Recover).path();
    (path.leaf, path.entries)
}

#[track_caller]
pub(crate) fn assert_equal(live: &mut LiveConversation, bytes: &[u8], path: &Path, at: &str) {
    let (leaf, entries) = expected(bytes, path);
    let pairs = live.path().iter().zip(&entries);
    let equal = pairs.take_while(|(one, other)| one == other).count();
    let own = (live.path().len(), live.path().get(equal).copied());
    let name = path.display();
    assert_eq!(
        own,
        (entries.len(), entries.get(equal).copied()),
        "{name}: {at}, entry {equal}"
    );
    assert_eq!(live.leaf(), leaf, "{name}: {at}");
}

/// Calls `visit` with each line, its number from 1 on, and its place with the line feed.
pub(crate) fn for_each_line(bytes: &[u8], mut visit: impl FnMut(usize, Range<usize>, Framed<'_>)) {
    let mut framer = Framer::new();
    let (mut rest, mut number, mut start) = (bytes, 1, 0);
    while let Some(framed) = framer.next(&mut rest) {
        let end = bytes.len() - rest.len();
        visit(number, start..end, framed);
        (number, start) = (number + 1, end);
    }
    if let Some(framed) = framer.finish() {
        visit(number, start..bytes.len(), framed);
    }
}

/// Pushes the lines one by one; asks after each line, after some, and within some, and compares
/// after every `step` lines.
fn check(bytes: &[u8], path: &Path, step: usize, count: &mut Count) {
    let mut each = LiveConversation::new(path);
    let mut some = LiveConversation::new(path);
    for_each_line(bytes, |number, line, framed| {
        let (start, end) = (line.start, line.end);
        let name = format!("line {number}");
        each.push(framed);
        if number % 11 == 5 {
            let part = start + (end - start) * (number % 10) / 10;
            let mut framer = Framer::starting_at(start as u64, usize::MAX);
            assert!(framer.next(&mut &bytes[start..part]).is_none());
            if let Some(part) = framer.finish() {
                some.push(part);
            }
            assert_equal(&mut some, &bytes[..part], path, &format!("in {name}"));
        }
        some.push(framed);
        each.path();
        if number % step == 0 {
            assert_equal(&mut each, &bytes[..end], path, &name);
            count.prefixes += 1;
        }
        if number % (7 * step) == 3 {
            let at = format!("{name}, asked for at times");
            assert_equal(&mut some, &bytes[..end], path, &at);
        }
    });
    assert_equal(&mut each, bytes, path, "the end");
    assert_equal(&mut some, bytes, path, "the end, asked for at times");
    count.rebuilds += each.full_rebuilds();
}

/// Returns the session of a seed.
type Make = fn(u64) -> Vec<u8>;

pub(crate) const KINDS: [(&str, Make); 6] = [
    ("tidy", generate::tidy_session),
    ("unique", generate::session_of_unique_uuids),
    ("any", generate::session),
    ("damaged", |seed| {
        damage::damage(&generate::session(seed), seed).0
    }),
    ("damaged tidy", |seed| {
        damage::damage(&generate::tidy_session(seed), seed).0
    }),
    ("permuted", |seed| {
        generate::permute_lines(&generate::session(seed), seed)
    }),
];

#[test]
fn generated_and_damaged_sessions_have_the_path_of_a_load_after_each_line() {
    for (kind, make) in KINDS {
        let mut count = Count::default();
        for seed in 0..100 {
            let bytes = make(seed);
            let name = PathBuf::from(format!("{}-{seed}.jsonl", kind.replace(' ', "-")));
            check(&bytes, &name, 1, &mut count);
        }
        println!("{kind}: {count:?}");
        assert!(count.prefixes > 3_000, "{kind}: {count:?}");
    }
}

/// Writes long sessions without damage, in which most is near the end: parallel calls with results
/// in any order, attachments, progress and metadata lines, pins, rewinds, subagents, compactions.
pub(crate) struct Scribe {
    rng: Rng,
    text: String,
    count: usize,
    /// The last entries: uuids as JSON.
    last: Vec<String>,
    tip: String,
}

impl Scribe {
    pub(crate) fn session(seed: u64) -> String {
        let mut scribe = Self {
            rng: Rng::new(seed),
            text: String::new(),
            count: 0,
            last: Vec::new(),
            tip: "null".to_owned(),
        };
        scribe.tip = scribe.user("null");
        while scribe.count < 700 {
            scribe.step();
        }
        scribe.text
    }

    fn line(&mut self, kind: &str, parent: &str, more: &str) -> String {
        self.count += 1;
        let uuid = format!("\"e{}\"", self.count);
        // Times run backwards now and then.
        let minute = self.count / 40 % 60;
        let second = self.rng.below(60);
        self.text += &format!(
            r#"{{"parentUuid":{parent},"type":"{kind}","uuid":{uuid},"sessionId":"s","timestamp":"2026-11-20T10:{minute:02}:{second:02}.000Z"{more}}}"#
        );
        self.text.push('\n');
        uuid
    }

    fn entry(&mut self, kind: &str, parent: &str, more: &str) -> String {
        let uuid = self.line(kind, parent, &format!(r#","isSidechain":false{more}"#));
        self.last.push(uuid.clone());
        uuid
    }

    fn user(&mut self, parent: &str) -> String {
        self.entry(
            "user",
            parent,
            r#","message":{"role":"user","content":"And?"}"#,
        )
    }

    fn answer(&mut self) {
        let message = self.count;
        let calls = self.rng.below(5);
        let mut open = Vec::new();
        let mut tip = self.tip.clone();
        if calls == 0 || self.rng.one_in(2) {
            let text = format!(
                r#","requestId":"r{message}","message":{{"id":"m{message}","content":[{{"type":"text","text":"Yes"}}]}}"#
            );
            tip = self.entry("assistant", &tip, &text);
        }
        // The lines of parallel calls follow each other, or are siblings.
        let are_siblings = self.rng.one_in(4);
        let above = tip.clone();
        for call in 0..calls {
            let text = format!(
                r#","requestId":"r{message}","message":{{"id":"m{message}","content":[{{"type":"tool_use","id":"c{message}-{call}","name":"Read","input":{{}}}}]}}"#
            );
            let parent = if are_siblings { &above } else { &tip };
            tip = self.entry("assistant", &parent.clone(), &text);
            open.push((call, tip.clone()));
            if self.rng.one_in(3) {
                self.result(message, &mut open, &mut tip);
            }
        }
        self.rng.shuffle(&mut open);
        while !open.is_empty() && !self.rng.one_in(30) {
            self.result(message, &mut open, &mut tip);
        }
        self.tip = tip;
    }

    fn result(&mut self, message: usize, open: &mut Vec<(usize, String)>, tip: &mut String) {
        let Some((call, mut above)) = open.pop() else {
            return;
        };
        if self.rng.one_in(6) {
            above = self.line("progress", &above, "");
        }
        let text = format!(
            r#","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{message}-{call}","content":"Done"}}]}}"#
        );
        *tip = self.entry("user", &above, &text);
        if self.rng.one_in(5) {
            self.entry(
                "attachment",
                &tip.clone(),
                r#","attachment":{"type":"hook_success"}"#,
            );
        }
    }

    fn recent(&mut self, most: usize) -> String {
        let far = self.rng.below(self.last.len().min(most));
        self.last[self.last.len() - 1 - far].clone()
    }

    fn step(&mut self) {
        match self.rng.below(60) {
            0..30 => self.answer(),
            30..38 => self.tip = self.user(&self.tip.clone()),
            38..43 => {
                self.tip = self.entry("system", &self.tip.clone(), r#","subtype":"turn_duration""#);
            }
            43..46 => {
                _ = self.entry(
                    "attachment",
                    &self.tip.clone(),
                    r#","attachment":{"type":"task_reminder"}"#,
                );
            }
            46..49 => self.text += "{\"type\":\"file-history-snapshot\",\"snapshot\":{}}\n",
            49..53 => {
                let leaf = match self.rng.below(4) {
                    0 => self.recent(6),
                    1 => format!("\"e{}\"", self.count + 1 + self.rng.below(4)),
                    _ => self.tip.clone(),
                };
                let explicit = self.rng.one_in(4);
                self.text += &format!(
                    "{{\"type\":\"last-prompt\",\"leafUuid\":{leaf},\"explicit\":{explicit}}}\n"
                );
            }
            53..55 => {
                let from = self.recent(12);
                self.tip = self.user(&from);
            }
            55 => {
                let from = self.recent(200);
                self.tip = self.user(&from);
            }
            56..58 => {
                let mut tip = "null".to_owned();
                for _ in 0..self.rng.below(6) {
                    tip = self.line(
                        "user",
                        &tip,
                        r#","isSidechain":true,"message":{"content":"Search"}"#,
                    );
                }
            }
            58 => {
                let tip = self.tip.clone();
                let boundary = self.entry(
                    "system",
                    "null",
                    &format!(r#","subtype":"compact_boundary","logicalParentUuid":{tip}"#),
                );
                self.tip = self.entry(
                    "user",
                    &boundary,
                    r#","isCompactSummary":true,"message":{"content":"In short"}"#,
                );
            }
            _ => {
                // With preserved entries.
                let tip = self.tip.clone();
                let anchor = format!("\"e{}\"", self.count + 2);
                let boundary = self.entry("system", "null", &format!(r#","subtype":"compact_boundary","logicalParentUuid":{tip},"compactMetadata":{{"preservedSegment":{{"headUuid":{tip},"tailUuid":{tip},"anchorUuid":{anchor}}}}}"#));
                let summary = self.entry(
                    "user",
                    &boundary,
                    r#","isCompactSummary":true,"message":{"content":"In short"}"#,
                );
                self.tip = if self.rng.one_in(2) { summary } else { tip };
            }
        }
    }
}

#[test]
fn long_sessions_have_the_path_of_a_load_after_each_line() {
    let mut count = Count::default();
    let mut lines = 0;
    for seed in 0..20 {
        let text = Scribe::session(seed);
        lines += text.lines().count() as u64;
        check(
            text.as_bytes(),
            &PathBuf::from(format!("long-{seed}.jsonl")),
            2,
            &mut count,
        );
    }
    println!("{lines} lines, {count:?}");
    // Else the test does not compare what it is meant to.
    assert!(count.rebuilds < lines / 2, "{lines} lines, {count:?}");
}

#[test]
fn a_late_copy_of_an_anchor_that_a_fork_renamed_changes_the_path() {
    let line = |kind: &str, uuid: &str, parent: &str, more: &str| {
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","uuid":"{uuid}","sessionId":"s"{more}}}"#
        )
    };
    let ask = r#","message":{"role":"user","content":"And?"}"#;
    let answer = |id: &str| {
        format!(r#","message":{{"id":"{id}","content":[{{"type":"text","text":"Yes"}}]}}"#)
    };
    let kept = r#","subtype":"compact_boundary","compactMetadata":{"preservedMessages":{"anchorUuid":"old","uuids":["u2","a2"]}}"#;
    let copy = format!(r#"{ask},"forkedFrom":{{"messageUuid":"old"}}"#);
    let lines = [
        line("user", "u1", "null", ask),
        line("assistant", "a1", "\"u1\"", &answer("m1")),
        line("user", "u2", "\"a1\"", ask),
        line("assistant", "a2", "\"u2\"", &answer("m2")),
        line("system", "b", "null", kept),
        line("user", "s", "\"b\"", ask),
        line("user", "u3", "\"s\"", ask),
        line("assistant", "a3", "\"u3\"", &answer("m3")),
        line("user", "u4", "\"a3\"", &copy),
        line("assistant", "a4", "\"u4\"", &answer("m4")),
    ];
    let text = lines.join("\n") + "\n";
    check(
        text.as_bytes(),
        Path::new("renamed.jsonl"),
        1,
        &mut Count::default(),
    );
}

pub(crate) fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Compares after each line of short files, and after about `most` lines of long ones.
pub(crate) fn check_files<C: Default>(
    files: &[PathBuf],
    most: usize,
    check: fn(&[u8], &Path, usize, &mut C),
) -> C {
    let mut count = C::default();
    for file in files {
        let bytes = fs::read(file).unwrap();
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        check(&bytes, file, (lines / most).max(1), &mut count);
    }
    count
}

#[test]
fn the_fixtures_have_the_path_of_a_load_after_each_line() {
    let files = transcripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"));
    assert!(files.len() > 150, "{}", files.len());
    println!(
        "{} files, {:?}",
        files.len(),
        check_files(&files, 60, check)
    );
}

#[test]
fn shared_sessions_have_the_path_of_a_load_after_each_line() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    for folder in ["corpus", "oracle", "oracle2", "damage"] {
        let files = transcripts(&shared.join(folder));
        println!(
            "{folder}: {} files, {:?}",
            files.len(),
            check_files(&files, 60, check)
        );
    }
}

#[test]
fn the_turns_of_an_undamaged_conversation_need_no_full_rebuild() {
    let mut live = LiveConversation::new(Path::new("session.jsonl"));
    let (mut offset, mut tip, mut text) = (0, "null".to_owned(), Vec::new());
    let mut add = |live: &mut LiveConversation, line: String| {
        let line = format!("{line}\n");
        let mut framer = Framer::starting_at(offset, usize::MAX);
        live.push(framer.next(&mut line.as_bytes()).unwrap());
        live.path();
        offset += line.len() as u64;
        text.extend(line.bytes());
    };
    for turn in 0..2_000 {
        let entry = |kind: &str, name: &str, parent: &str, message: &str| {
            format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","uuid":"{name}{turn}","sessionId":"s","message":{message}}}"#
            )
        };
        let id = |name: &str| format!("\"{name}{turn}\"");
        add(&mut live, entry("user", "u", &tip, r#"{"content":"And?"}"#));
        let call = |name: &str| {
            format!(
                r#"{{"id":"m{turn}","content":[{{"type":"tool_use","id":"c{name}{turn}","name":"Read","input":{{}}}}]}}"#
            )
        };
        let result = |name: &str| {
            format!(
                r#"{{"content":[{{"type":"tool_result","tool_use_id":"c{name}{turn}","content":"Done"}}]}}"#
            )
        };
        add(&mut live, entry("assistant", "a", &id("u"), &call("a")));
        add(&mut live, entry("assistant", "b", &id("a"), &call("b")));
        add(&mut live, entry("user", "r", &id("a"), &result("a")));
        add(&mut live, entry("user", "t", &id("b"), &result("b")));
        add(
            &mut live,
            format!(r#"{{"type":"last-prompt","leafUuid":{}}}"#, id("t")),
        );
        tip = id("t");
    }
    assert_equal(&mut live, &text, Path::new("session.jsonl"), "the end");
    println!(
        "{} full rebuilds, {} bytes a line",
        live.full_rebuilds(),
        live.memory() / 12_000
    );
    assert!(live.full_rebuilds() < 5, "{}", live.full_rebuilds());
}
