//! The sessions of a database as files: one copy for all of them, and only those that changed are read again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use transcript_import::{Agent, BranchKind, ImportDisk};
use transcript_storage::{Metadata, ReadDisk};

use crate::counted_disk::{CountedDisk, Counts};
use crate::memory::settle;
use crate::opencode_store::{Database, call, said};
use crate::support::{branch, live};
use crate::test_clock::TestClock;

/// A database with three sessions, of which the last is a subagent of the first.
fn three() -> Database {
    let mut database = Database::new();
    for (id, number) in [("ses_2", 20), ("ses_3", 30)] {
        database.session(id, id, number);
        database.message(id, number, &json!({"role": "user"}), &[said("prompt")]);
    }
    database.execute("UPDATE session SET parent_id = 'ses_1' WHERE id = 'ses_3'");
    database.prompt(1, "one");
    database.answer(2, &[said(&"long ".repeat(1000)), call("c", "an output")]);
    database.move_log();
    database
}

fn counted(home: &Path, clock: &TestClock) -> (ImportDisk, Counts) {
    let disk = CountedDisk::default();
    let counts = Arc::clone(&disk.0);
    let disk = ImportDisk::new(Arc::new(disk), Agent::OpenCode, home);
    (clock.of(disk), counts)
}

fn paths(home: &Path) -> [PathBuf; 3] {
    [
        "-w/ses_1.jsonl",
        "-w/ses_2.jsonl",
        "-w/ses_1/subagents/agent-ses_3.jsonl",
    ]
    .map(|name| home.join(name))
}

fn all(disk: &ImportDisk, home: &Path) -> [Metadata; 3] {
    paths(home).map(|path| disk.metadata(&path).expect("it is there"))
}

/// Returns how many bytes of the database and its log were read.
fn read_of_database(counts: &Counts) -> u64 {
    counts
        .lock()
        .expect("no other thread panicked")
        .values()
        .sum()
}

#[test]
fn all_sessions_of_a_database_are_read_from_one_copy() {
    let database = three();
    let (disk, counts) = counted(database.path(), &TestClock::new());
    let first = disk
        .metadata(&paths(database.path())[0])
        .expect("it is there");
    let for_one = read_of_database(&counts);
    assert!(for_one > 0);
    all(&disk, database.path());
    for path in paths(database.path()) {
        let text = disk.read(&path, usize::MAX).expect("it is read");
        let len = disk.metadata(&path).expect("it is there").len;
        assert_eq!(text.len() as u64, len);
    }
    assert_eq!(read_of_database(&counts), for_one);
    assert_eq!(first.len, all(&disk, database.path())[0].len);
}

#[test]
fn the_next_process_reads_an_unchanged_database_not_at_all_and_of_a_changed_one_only_what_changed()
{
    let mut database = three();
    let cache = tempfile::tempdir().expect("a folder can be made");
    // A change would show: the last one was some time ago.
    for file in fs::read_dir(database.path()).expect("it is listed") {
        settle(&file.expect("it is listed").path());
    }
    let clock = TestClock::new();
    let (first, _) = counted(database.path(), &clock);
    first.remember_in(cache.path());
    let before = all(&first, database.path());
    first.keep_memory();

    let (next, counts) = counted(database.path(), &clock);
    next.remember_in(cache.path());
    assert_eq!(next.list(database.path()).expect("it is listed").count(), 1);
    assert_eq!(all(&next, database.path()), before);
    assert_eq!(read_of_database(&counts), 0);

    database.message("ses_2", 21, &json!({"role": "user"}), &[said("more")]);
    clock.pass();
    let after = all(&next, database.path());
    assert_eq!(
        (after[0], after[2]),
        (before[0], before[2]),
        "they are as they were"
    );
    assert!(after[1].len > before[1].len);
}

#[test]
fn every_change_of_a_row_changes_only_the_properties_of_its_session() {
    let mut database = three();
    let clock = TestClock::new();
    let (disk, _) = counted(database.path(), &clock);
    type Change<'c> = &'c dyn Fn(&mut Database);
    let changes: [(&str, Change<'_>); 5] = [
        ("a text of the same length", &|database| {
            database.execute("UPDATE part SET data = replace(data, 'one', 'two'), time_updated = 99 WHERE id = 'prt_001_0'");
        }),
        ("a title", &|database| {
            database.execute("UPDATE session SET title = 'another' WHERE id = 'ses_1'");
        }),
        ("a revert", &|database| {
            database.execute(
                r#"UPDATE session SET revert = '{"messageID":"msg_002"}' WHERE id = 'ses_1'"#,
            );
        }),
        ("rows that are gone", &|database| {
            database.delete("ses_1", 2);
        }),
        ("an event", &|database| {
            let part = json!({"id": "prt_009_0", "messageID": "msg_009", "type": "text", "text": "only in an event"});
            database.event("ses_1", "message.part.updated.1", &json!({"part": part}));
        }),
    ];
    for (name, change) in changes {
        let before = all(&disk, database.path());
        change(&mut database);
        clock.pass();
        let after = all(&disk, database.path());
        assert_ne!(after[0], before[0], "{name}");
        assert_eq!(after[1..], before[1..], "{name}");
    }
}

#[test]
fn long_texts_of_rows_and_events_are_read_again_as_they_are() {
    let long = |word: &str| format!("{word}\n\"quoted\" \u{1} é🙂\\ ").repeat(5000);
    let mut database = Database::new();
    database.prompt(1, &long("prompt"));
    database.answer(2, &[said(&long("answer")), call("c", &long("output"))]);
    database.part_event("ses_1", 2, 0, &said(&long("another version")));
    database.prompt(3, &long("deleted"));
    database.delete("ses_1", 3);
    let image = json!({"type": "file", "mime": "image/png", "url": format!("data:image/png;base64,{}", "AAAA".repeat(50_000))});
    database.message(
        "ses_1",
        4,
        &json!({"role": "user"}),
        &[said("look"), image.clone()],
    );
    let conversation = database.read();
    let sent = [
        format!("U {}", long("prompt")),
        format!("A {}", long("answer")),
        r#"T bash {"of":"c"}"#.to_owned(),
        format!("O {}", long("output")),
        "U look+image".to_owned(),
    ];
    assert_eq!(live(&conversation), sent);
    let superseded = branch(&conversation, BranchKind::Superseded);
    assert_eq!(superseded, [format!("A {}", long("another version"))]);
    assert_eq!(
        branch(&conversation, BranchKind::Deleted),
        [format!("U {}", long("deleted"))]
    );
    let mut items = Vec::new();
    conversation
        .write_items(&mut items)
        .expect("they are written");
    let items = String::from_utf8(items).expect("they are JSON");
    assert!(items.contains(&"AAAA".repeat(50_000)) || !items.contains("AAAA"));
}
