//! Databases that somebody made to stop a reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use transcript_import::{Agent, DamageKind, ImportDisk, Policy, Store, dialect};
use transcript_storage::{ReadDisk, RealDisk};

use crate::opencode_store::{Database, read, said};
use crate::support::{lines, live};

fn sessions(database: &Database) -> Vec<String> {
    let store = Store {
        disk: &RealDisk,
        path: database.path(),
    };
    let sessions = dialect(Agent::OpenCode).sessions(store);
    let sessions = sessions.expect("they are listed").into_iter();
    sessions.map(|session| session.id).collect()
}

/// Returns a home folder as sessions, and the path of each in the project `-w`.
fn shown(agent: Agent, home: &Path) -> (ImportDisk, Vec<PathBuf>) {
    let disk = ImportDisk::new(Arc::new(RealDisk), agent, home);
    let project = home.join("-w");
    let entries = disk.list(&project).expect("it is listed");
    let paths = entries.map(|entry| project.join(entry.expect("it is listed").name));
    let paths = paths.collect();
    (disk, paths)
}

/// A question to such a view never ends.
#[test]
fn a_view_is_not_a_table() {
    let endless = |columns: &str| {
        format!(
            "AS WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT {columns} FROM x"
        )
    };
    let mut database = Database::new();
    database.prompt(1, "one");
    database.execute(&format!(
        "DROP TABLE event; CREATE VIEW event {}; CREATE VIEW other {}",
        endless("n AS id, 'ses_1' AS aggregate_id, n AS seq, 'x' AS type, '{}' AS data"),
        endless("'ses_1' AS session_id")
    ));
    assert_eq!(live(&database.read()), ["U one"]);
    database.execute(&format!(
        "DROP TABLE session; CREATE VIEW session {}",
        endless("n AS id, n AS time_created")
    ));
    assert_eq!(sessions(&database), Vec::<String>::new());
}

#[test]
fn a_table_without_numbers_of_rows_is_counted() {
    let mut database = Database::new();
    database.prompt(1, "one");
    database.execute(
        "CREATE TABLE note (session_id text PRIMARY KEY, data text) WITHOUT ROWID;
         INSERT INTO note VALUES ('ses_1', 'x'), ('ses_2', 'y')",
    );
    let conversation = database.read();
    assert_eq!(live(&conversation), ["U one"]);
    assert_eq!(conversation.unknown["note"], 1);
}

#[test]
fn a_table_of_the_conversation_without_numbers_of_rows_is_an_error_that_names_it() {
    let mut database = Database::new();
    database.prompt(1, "one");
    database.execute(
        "ALTER TABLE part RENAME TO old;
         CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, data text)
             WITHOUT ROWID;
         INSERT INTO part SELECT id, message_id, session_id, time_created, data FROM old;",
    );
    let error = read(database.path(), "ses_1", Policy::Recover).expect_err("it cannot be read");
    let message = error.to_string();
    assert!(
        message.contains("opencode.db") && message.contains("table part"),
        "{message}"
    );
    let (disk, paths) = shown(Agent::OpenCode, database.path());
    assert_eq!(paths.len(), 1);
    let error = disk
        .read(&paths[0], usize::MAX)
        .expect_err("it cannot be read");
    assert!(error.to_string().contains("table part"), "{error}");
}

#[test]
fn sessions_of_two_databases_with_one_id_are_both_read() {
    let mut database = Database::new();
    database.prompt(1, "one");
    database.move_log();
    let file = database.path().join("opencode.db");
    fs::copy(&file, database.path().join("opencode-dev.db")).expect("it is copied");
    database.prompt(2, "two");
    let (disk, paths) = shown(Agent::OpenCode, database.path());
    let conversations = paths.iter().map(|path| disk.conversation(path));
    let mut texts: Vec<Vec<String>> = conversations
        .map(|conversation| live(&conversation.expect("it is read")))
        .collect();
    texts.sort();
    assert_eq!(texts, [vec!["U one"], vec!["U one", "U two"]]);
}

/// The log has the conversation.
#[test]
fn a_side_database_that_cannot_be_read_hides_no_session() {
    let home = tempfile::tempdir().expect("a folder is made");
    let folder = home.path().join("session-state/s1");
    fs::create_dir_all(&folder).expect("a folder is made");
    let context = json!({"sessionId": "s1", "context": {"cwd": "/w"}});
    let records = [
        json!({"type": "session.start", "timestamp": "t", "data": context}),
        json!({"type": "user.message", "timestamp": "t", "data": {"content": "one"}}),
    ];
    fs::write(folder.join("events.jsonl"), lines(&records)).expect("it is written");
    let database = home.path().join("session-store.db");
    let connection = rusqlite::Connection::open(database).expect("it is made");
    let table = "CREATE TABLE turns (session_id text PRIMARY KEY, turn_index, user_message, assistant_response)
        WITHOUT ROWID";
    connection.execute_batch(table).expect("it has a table");
    let (disk, paths) = shown(Agent::Copilot, home.path());
    assert_eq!(paths, [home.path().join("-w/s1.jsonl")]);
    let conversation = disk.conversation(&paths[0]).expect("it is read");
    assert_eq!(live(&conversation), ["U one"]);
    let damage = &conversation.damage;
    assert_eq!(damage[0].kind, DamageKind::UnreadableDatabase);
}

#[test]
fn values_of_other_types_are_read() {
    for value in [
        "'abc'",
        "1.5",
        "x'00ff'",
        "' 7 '",
        "9e99",
        "-9223372036854775808",
    ] {
        let mut database = Database::new();
        database.prompt(1, "one");
        database.execute(&format!(
            "UPDATE message SET time_created = {value}; UPDATE part SET time_created = {value};
             UPDATE event SET seq = {value} WHERE seq = 1;
             UPDATE session SET time_created = {value}, tokens_input = {value}, title = {value}, model = {value}, revert = {value}"
        ));
        assert_eq!(live(&database.read()), ["U one"], "{value}");
        assert_eq!(sessions(&database), ["ses_1"]);
    }
}

#[test]
fn rows_with_numbers_below_zero_are_reported() {
    let mut database = Database::new();
    database.prompt(1, "one");
    database.prompt(2, "two");
    assert_eq!(database.read().damage, []);
    database.execute("UPDATE part SET rowid = -5 WHERE id = 'prt_002_0'");
    let kinds: Vec<DamageKind> = database
        .read()
        .damage
        .iter()
        .map(|damage| damage.kind)
        .collect();
    assert_eq!(kinds, [DamageKind::RowsWithoutPlace]);
}

/// From little such a column makes any length.
#[test]
fn a_computed_value_has_an_end() {
    let mut database = Database::new();
    database.prompt(1, "one");
    database.execute(
        "ALTER TABLE message RENAME TO old;
         CREATE TABLE message (id text, session_id text, time_created integer,
             data text AS (hex(zeroblob(400000000))));
         INSERT INTO message SELECT id, session_id, time_created FROM old;",
    );
    let error = read(database.path(), "ses_1", Policy::Recover).expect_err("it cannot be read");
    assert!(error.to_string().contains("opencode.db"), "{error}");
}

/// The log of a damaged database can claim any number of pages.
#[test]
fn only_pages_that_are_there_are_read() {
    const FRAME_LEN: usize = 24 + 4096;
    let mut database = Database::new();
    database.prompt(1, "one");
    database.message("ses_1", 2, &json!({"role": "user"}), &[said("two")]);
    let copy = database.copy();
    let path = copy.path().join("opencode.db-wal");
    let mut log = fs::read(&path).expect("it is read");
    let frames = (log.len() - 32) / FRAME_LEN;
    for frame in (0..frames).rev().take(2) {
        let at = 32 + frame * FRAME_LEN + 4;
        log[at..at + 4].fill(0xff);
    }
    fs::write(&path, log).expect("it is written");
    let conversation = read(copy.path(), "ses_1", Policy::Recover).expect("it is read");
    assert_eq!(live(&conversation), ["U one", "U two"]);
    let kinds = conversation.damage.iter().map(|damage| damage.kind);
    assert!(kinds.clone().any(|kind| kind == DamageKind::DamagedLog));
}

/// The log of another database has other tables, or an older state of the same ones.
#[test]
fn the_log_of_another_database_is_damage_and_no_end() {
    let mut database = Database::new();
    for number in 1..40 {
        database.prompt(number, &"long ".repeat(200));
    }
    database.move_log();
    let mut other = Database::new();
    other.prompt(1, "of another");
    let copy = database.copy();
    let log = other.path().join("opencode.db-wal");
    fs::copy(log, copy.path().join("opencode.db-wal")).expect("it is copied");
    for policy in [Policy::Recover, Policy::Vendor] {
        read(copy.path(), "ses_1", policy).expect("it is read");
    }
}
