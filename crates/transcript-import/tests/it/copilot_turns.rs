//! Copilot CLI: the turns that a rewind cut out of the log, which the database still has.

use std::fs;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_import::{Agent, BranchKind, Conversation, DamageKind, Policy, Store, dialect};
use transcript_storage::RealDisk;

use crate::support::{branch, check, lines, live};

/// A home folder with a log of prompts and answers, and a database of turns.
struct Home(TempDir);

impl Home {
    fn new(log: &[(&str, &[&str])], turns: &[(&str, Option<&str>)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let session = folder.path().join("session-state/s1");
        fs::create_dir_all(&session).expect("it can be made");
        let mut events = vec![("session.start", json!({"sessionId": "s1"}))];
        for (prompt, answers) in log {
            events.push(("user.message", json!({"content": prompt})));
            let answers = answers
                .iter()
                .map(|text| ("assistant.message", json!({"content": text})));
            events.extend(answers);
        }
        let numbered = events.into_iter().enumerate();
        let records: Vec<Value> = numbered
            .map(|(at, (kind, data))| json!({"type": kind, "data": data, "id": at.to_string(), "timestamp": "t"}))
            .collect();
        fs::write(session.join("events.jsonl"), lines(&records)).expect("it can be written");
        let database =
            Connection::open(folder.path().join("session-store.db")).expect("it is made");
        let table = "CREATE TABLE turns (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL,
            turn_index INTEGER NOT NULL, user_message TEXT, assistant_response TEXT, timestamp TEXT)";
        database.execute_batch(table).expect("it has a table");
        let add =
            "INSERT INTO turns(session_id, turn_index, user_message, assistant_response, timestamp)
            VALUES (?1, ?2, ?3, ?4, 't')";
        for (number, (prompt, answer)) in (0_i64..).zip(turns) {
            database
                .execute(add, params!["s1", number, prompt, answer])
                .expect("it is added");
            database
                .execute(add, params!["s2", number, "of another", "x"])
                .expect("it is added");
        }
        Self(folder)
    }

    fn read(&self) -> Conversation {
        let store = Store {
            disk: &RealDisk,
            path: self.0.path(),
        };
        let conversation = dialect(Agent::Copilot).read(store, "s1", Policy::Recover);
        let conversation = conversation.expect("it is read");
        check(&conversation);
        conversation
    }
}

#[test]
fn turns_that_are_not_in_the_log_were_rewound() {
    let log: [(&str, &[&str]); 2] = [("one", &["first", "last"]), ("go on", &["new"])];
    let turns = [
        // Of several messages, the database has all.
        ("one", Some("first\nlast")),
        ("two", Some("b")),
        ("go on", Some("old")),
        ("go on", Some("new")),
        ("three", None),
    ];
    let conversation = Home::new(&log, &turns).read();
    assert_eq!(
        live(&conversation),
        ["U one", "A first", "A last", "U go on", "A new"]
    );
    let rewound = branch(&conversation, BranchKind::Rewound);
    assert_eq!(rewound, ["U two", "A b", "U go on", "A old", "U three"]);
    // Turns that lie one after the other are one branch.
    assert_eq!(conversation.branches.len(), 2);
}

#[test]
fn a_damaged_database_still_gives_its_turns() {
    let log: [(&str, &[&str]); 1] = [("one", &["a"])];
    let home = Home::new(&log, &[("one", Some("a")), ("two", Some("b"))]);
    let path = home.0.path().join("session-store.db");
    let mut bytes = fs::read(&path).expect("it can be read");
    bytes[..4096].fill(0);
    fs::write(path, bytes).expect("it can be written");
    let conversation = home.read();
    assert_eq!(branch(&conversation, BranchKind::Rewound), ["U two", "A b"]);
    assert_eq!(conversation.damage[0].kind, DamageKind::DamagedPage);
}
