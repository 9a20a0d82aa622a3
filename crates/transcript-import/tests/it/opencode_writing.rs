//! A database that OpenCode is writing: what is read at any moment is a state that it had.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;
use transcript_import::Policy;

use crate::opencode_store::{Database, call, read, said, step};
use crate::support::live;

/// The number of prompts that the writer adds, each with an answer.
const TURNS: i64 = 60;

/// The log moves into the database again and again meanwhile.
#[test]
fn a_database_is_read_while_another_thread_writes_it() {
    let mut database = Database::new();
    database.execute("PRAGMA wal_autocheckpoint = 8");
    let home = database.path().to_owned();
    let is_done = AtomicBool::new(false);
    let (mut reads, mut last) = (0, Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..TURNS {
                // A prompt is one change, an answer is there before its parts are.
                database.execute("BEGIN");
                database.prompt(turn * 2 + 1, &format!("prompt {turn}"));
                database.execute("COMMIT");
                let long = "x".repeat(5_000);
                let parts = [step(), said(&format!("answer {turn}")), call("c", &long)];
                database.execute("BEGIN");
                database.answer(turn * 2 + 2, &parts);
                database.execute("COMMIT");
            }
            is_done.store(true, Ordering::Release);
        });
        loop {
            let was_done = is_done.load(Ordering::Acquire);
            let conversation = match read(&home, "ses_1", Policy::Recover) {
                Ok(conversation) => conversation,
                // The log moved during each try: the next reading has a newer state.
                Err(error) if error.to_string().contains("again and again") => continue,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(conversation.damage, []);
            let now = live(&conversation);
            assert!(
                now.starts_with(&last),
                "{} nodes after {}",
                now.len(),
                last.len()
            );
            assert!(matches!(now.len() % 4, 0 | 1), "a change is whole");
            reads += usize::from(now.len() > last.len());
            last = now;
            if was_done {
                break;
            }
        }
    });
    assert_eq!(last.len(), usize::try_from(TURNS).expect("it is small") * 4);
    assert!(reads >= 2, "{reads} states were seen");
    assert_eq!(
        last.last().map(String::as_str),
        Some(&*format!("O {}", "x".repeat(5_000)))
    );
}

/// A reader leaves nothing beside the database, and the writer is never in its way.
#[test]
fn the_writer_does_not_wait_for_a_reader() {
    let mut database = Database::new();
    database.prompt(1, "one");
    let before = read(database.path(), "ses_1", Policy::Recover).expect("it is read");
    database.execute("PRAGMA busy_timeout = 0");
    database.execute("BEGIN IMMEDIATE");
    let during = read(database.path(), "ses_1", Policy::Recover).expect("it is read");
    database.message("ses_1", 2, &json!({"role": "user"}), &[said("two")]);
    database.execute("COMMIT");
    let after = read(database.path(), "ses_1", Policy::Recover).expect("it is read");
    assert_eq!(live(&before), ["U one"]);
    assert_eq!(live(&during), ["U one"]);
    assert_eq!(live(&after), ["U one", "U two"]);
}
