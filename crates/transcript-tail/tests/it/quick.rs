//! The first entries of a large file are emitted before the part above them is read.

use std::fs;
use std::path::Path;

use transcript_tail::{ConversationChange, EventKind, FollowOptions, Follower, StartAt};

use crate::words::append;

const SESSION: &str = "0a1b2c3d-0000-4000-8000-000000000001";

fn entry(kind: &str, uuid: &str, parent: &str, message: &str) -> String {
    format!(
        r#"{{"type":"{kind}","sessionId":"{SESSION}","uuid":"{uuid}","parentUuid":"{parent}","message":{message}}}"#
    ) + "\n"
}

fn prompt(uuid: &str, parent: &str) -> String {
    entry("user", uuid, parent, r#"{"role":"user","content":"And?"}"#)
}

fn call(uuid: &str, parent: &str) -> String {
    let message = format!(
        r#"{{"id":"m-{uuid}","role":"assistant","stop_reason":"tool_use","content":[{{"type":"tool_use","id":"t-{uuid}","name":"Bash","input":{{}}}}]}}"#
    );
    entry("assistant", uuid, parent, &message)
}

fn result(uuid: &str, parent: &str, of: &str) -> String {
    let message = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t-{of}","content":"Yes."}}]}}"#
    );
    entry("user", uuid, parent, &message)
}

fn answer(uuid: &str, parent: &str) -> String {
    let message = format!(
        r#"{{"id":"m-{uuid}","role":"assistant","stop_reason":"end_turn","content":[{{"type":"text","text":"So."}}]}}"#
    );
    entry("assistant", uuid, parent, &message)
}

/// Returns a conversation of some MiB that ends in the middle of a turn, with entry `z`.
fn before() -> String {
    let long = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(5 << 20));
    entry("user", "first", "none", &long)
        + &answer("y", "first")
        + &prompt("x", "y")
        + &call("z", "x")
}

type Emitted = (u64, Option<u64>, Vec<ConversationChange>);

fn drain(follower: &mut Follower) -> Vec<Emitted> {
    let mut emitted = Vec::new();
    while let Some(event) = follower.try_next().expect("it is read") {
        emitted.push(match event.kind {
            EventKind::Entry(entry) => (entry.offset, entry.line, entry.changes),
            other => (other.offset(), None, Vec::new()),
        });
    }
    emitted
}

fn follow(path: &Path, start: StartAt, is_once: bool) -> [Follower; 2] {
    let options = FollowOptions::new().poll_only().start(start).changes();
    let options = if is_once { options.once() } else { options };
    [options.clone(), options.quick_start()].map(|options| Follower::new(path, &options))
}

/// Compares the changes at all starts. Returns how many starts were quick.
fn compare(end: &str, is_once: bool) -> usize {
    let folder = tempfile::tempdir().expect("there is a folder");
    let path = folder.path().join(format!("{SESSION}.jsonl"));
    let text = before() + end;
    fs::write(&path, &text).expect("the file is written");
    let mut quick_starts = 0;
    for last in 0..=end.lines().count() {
        fs::write(&path, &text).expect("the file is written");
        let mut followers = follow(&path, StartAt::Last(last), is_once);
        let changes = |emitted: &[Emitted]| -> Vec<(u64, Vec<ConversationChange>)> {
            let both = |(offset, _, changes): &Emitted| (*offset, changes.clone());
            emitted.iter().map(both).collect()
        };
        let [all, quick] = followers.each_mut().map(drain);
        assert_eq!(changes(&quick), changes(&all), "the last {last} of {end}");
        let has_number = |(_, line, _): &Emitted| line.is_some();
        let is_quick = last > 0 && !quick.iter().any(has_number);
        quick_starts += usize::from(is_quick);
        if is_once {
            continue;
        }
        // Entries after the turn may depend on any entry of the file.
        append(&path, &(answer("late", "z") + &prompt("later", "first")));
        let [all, quick] = followers.each_mut().map(drain);
        assert_eq!(quick, all, "after the last {last} of {end}");
        assert!(all.iter().any(|(.., changes)| !changes.is_empty()));
    }
    quick_starts
}

#[test]
fn changes_are_those_of_the_whole_file() {
    // Two calls of one message.
    let turn = prompt("a", "z")
        + &call("b", "a")
        + &call("c", "b").replace("m-c", "m-b")
        + &result("d", "b", "b")
        + &result("e", "c", "c")
        + &answer("f", "e");
    let next = prompt("g", "f") + &answer("h", "g");
    let ends = [
        (turn.clone(), 6),
        (turn.clone() + &next, 8),
        // The prompt has to be above the start.
        (prompt("a", "z"), 1),
        // A rewind within the turn, and beyond it.
        (turn.clone() + &answer("g", "a"), 0),
        (turn.clone() + &answer("g", "y"), 0),
        // The result of a call above the turn.
        (prompt("a", "z") + &result("b", "a", "z"), 1),
        // An entry is repeated, or is another session's, or a subagent's.
        (turn.clone() + &answer("f", "e"), 0),
        (turn.clone() + &answer("g", "f").replace(SESSION, "s"), 0),
        (
            turn.clone() + &answer("g", "f").replace("\"type\"", "\"isSidechain\":true,\"type\""),
            0,
        ),
        // A pin, a damaged line, a tombstone, a boundary.
        (
            turn.clone() + "{\"type\":\"last-prompt\",\"leafUuid\":\"y\"}\n" + &next,
            1,
        ),
        (turn.clone() + "{\"type\":\n" + &next, 1),
        (
            turn.clone() + "{\"type\":\"transcriptEngine\",\"v\":1,\"tombstone\":\"f\"}\n",
            0,
        ),
        (
            turn.clone()
                + "{\"type\":\"system\",\"subtype\":\"compact_boundary\",\"uuid\":\"g\",\"parentUuid\":null}\n",
            0,
        ),
    ];
    for (end, expected) in ends {
        for is_once in [true, false] {
            assert_eq!(compare(&end, is_once), expected, "{end}");
        }
    }
}
