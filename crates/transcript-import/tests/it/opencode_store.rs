//! Databases of OpenCode, made here.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_import::{Agent, Conversation, Error, Policy, Store, dialect};
use transcript_storage::RealDisk;

use crate::support::check;

/// The tables that are read, with the keys and columns that count.
const SCHEMA: &str = "
    CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text, directory text NOT NULL,
        title text NOT NULL, version text NOT NULL, share_url text, revert text, model text,
        time_created integer NOT NULL, time_updated integer NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
        tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL,
        tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL);
    CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
        time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
        time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
    CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL,
        data text NOT NULL);
    CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, position integer NOT NULL,
        PRIMARY KEY(session_id, position));
    CREATE UNIQUE INDEX event_idx ON event (aggregate_id, seq);
    CREATE INDEX message_idx ON message (session_id, time_created, id);
    CREATE INDEX part_idx ON part (message_id, id);";

/// A home folder with a database, as a running OpenCode leaves it: with all changes in the log.
pub(crate) struct Database {
    folder: TempDir,
    connection: Connection,
    events: i64,
}

impl Database {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let connection = Connection::open(folder.path().join("opencode.db")).expect("it is made");
        let set = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;";
        connection.execute_batch(set).expect("it has a log");
        connection.execute_batch(SCHEMA).expect("it has tables");
        let database = Self {
            folder,
            connection,
            events: 0,
        };
        database.session("ses_1", "one", 1);
        database
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn execute(&self, statement: &str) {
        self.connection
            .execute_batch(statement)
            .expect("it is a statement");
    }

    /// Moves all changes into the database.
    pub(crate) fn move_log(&self) {
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    }

    pub(crate) fn session(&self, id: &str, title: &str, created: i64) {
        let statement = "INSERT INTO session(id, project_id, directory, title, version, model, time_created, time_updated,
            tokens_input, tokens_output) VALUES (?1, 'p', '/w', ?2, '1.18.33', '{\"id\":\"m\"}', ?3, ?3, 7, 5)";
        self.connection
            .execute(statement, params![id, title, created])
            .expect("it is added");
    }

    /// Adds a message with its parts. Its number is its time, and in its id and those of its parts.
    pub(crate) fn message(&mut self, session: &str, number: i64, info: &Value, parts: &[Value]) {
        let id = format!("msg_{number:03}");
        self.connection
            .execute(
                "INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)",
                params![id, session, number, info.to_string()],
            )
            .expect("it is added");
        let mut of_event = info.clone();
        of_event["id"] = json!(id);
        of_event["time"] = json!({"created": number});
        self.event(session, "message.updated.1", &json!({"info": of_event}));
        for (at, part) in parts.iter().enumerate() {
            let part_id = format!("prt_{number:03}_{at}");
            self.connection
                .execute(
                    "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
                    params![part_id, id, session, number, part.to_string()],
                )
                .expect("it is added");
            self.part_event(session, number, at, part);
        }
    }

    pub(crate) fn part_event(&mut self, session: &str, number: i64, at: usize, part: &Value) {
        let mut part = part.clone();
        part["id"] = json!(format!("prt_{number:03}_{at}"));
        part["messageID"] = json!(format!("msg_{number:03}"));
        self.event(session, "message.part.updated.1", &json!({"part": part}));
    }

    pub(crate) fn event(&mut self, session: &str, kind: &str, data: &Value) {
        self.events += 1;
        self.connection
            .execute(
                "INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    format!("evt_{:05}", self.events),
                    session,
                    self.events,
                    kind,
                    data.to_string()
                ],
            )
            .expect("it is added");
    }

    /// Deletes a message with its parts, as the prompt after a revert does.
    pub(crate) fn delete(&mut self, session: &str, number: i64) {
        let id = format!("msg_{number:03}");
        self.execute(&format!(
            "DELETE FROM part WHERE message_id = '{id}'; DELETE FROM message WHERE id = '{id}'"
        ));
        self.event(session, "message.removed.1", &json!({"messageID": id}));
    }

    pub(crate) fn prompt(&mut self, number: i64, text: &str) {
        self.message("ses_1", number, &json!({"role": "user"}), &[said(text)]);
    }

    pub(crate) fn answer(&mut self, number: i64, parts: &[Value]) {
        let info = json!({"role": "assistant", "modelID": "m", "finish": "stop"});
        self.message("ses_1", number, &info, parts);
    }

    pub(crate) fn read(&self) -> Conversation {
        read(self.path(), "ses_1", Policy::Recover).expect("it is read")
    }

    pub(crate) fn vendor(&self) -> Conversation {
        read(self.path(), "ses_1", Policy::Vendor).expect("it is read")
    }

    /// Copies the files of the database to another folder.
    pub(crate) fn copy(&self) -> TempDir {
        let copy = tempfile::tempdir().expect("a folder can be made");
        for name in ["opencode.db", "opencode.db-wal"] {
            let from = self.path().join(name);
            fs::copy(from, copy.path().join(name)).expect("it is copied");
        }
        copy
    }
}

pub(crate) fn read(home: &Path, id: &str, policy: Policy) -> Result<Conversation, Error> {
    let store = Store {
        disk: &RealDisk,
        path: home,
    };
    let conversation = dialect(Agent::OpenCode).read(store, id, policy)?;
    check(&conversation);
    Ok(conversation)
}

/// Returns a part with a text.
pub(crate) fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns a part with a call and its result.
pub(crate) fn call(id: &str, output: &str) -> Value {
    json!({"type": "tool", "tool": "bash", "callID": id, "state": {"status": "completed", "input": {"of": id},
        "output": output, "title": "", "metadata": {}, "time": {"start": 1, "end": 2}}})
}

pub(crate) fn step() -> Value {
    json!({"type": "step-start"})
}
