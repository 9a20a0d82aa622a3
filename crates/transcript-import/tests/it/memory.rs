//! What is known about sessions outlives the process, and never hides a change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_import::{Agent, ImportDisk, Policy};
use transcript_storage::{Metadata, ReadDisk, RealDisk};

use crate::counted_disk::{CountedDisk, Counts};
use crate::support::lines;
use crate::test_clock::TestClock;

/// A home folder on this machine.
struct Home {
    folder: TempDir,
    agent: Agent,
}

impl Home {
    fn of(agent: Agent) -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder can be made"),
            agent,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("it is made");
        fs::write(&path, text).expect("it is written");
        path
    }

    fn disk(&self) -> ImportDisk {
        ImportDisk::new(Arc::new(RealDisk), self.agent, self.path())
    }

    /// Returns the disk of another process, which counts what it reads.
    fn counted(&self, cache: &Path, policy: Policy) -> (ImportDisk, Counts) {
        let counted = CountedDisk::default();
        let counts = Arc::clone(&counted.0);
        let disk = ImportDisk::with(Arc::new(counted), self.agent, self.path(), policy);
        disk.remember_in(cache);
        (disk, counts)
    }
}

/// Makes the last change of a file some time ago.
pub(crate) fn settle(path: &Path) {
    let file = fs::File::options().append(true).open(path);
    let before = SystemTime::now() - Duration::from_secs(60);
    let set = file.and_then(|file| file.set_modified(before));
    set.expect("the time is set");
}

fn session_of_pi(texts: &[&str]) -> String {
    let header = json!({"type": "session", "id": "s1", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/w"});
    let messages = texts.iter().enumerate().map(|(at, text)| {
        let parent = at.checked_sub(1).map(|before| format!("m{before}"));
        json!({"type": "message", "id": format!("m{at}"), "parentId": parent, "message": {"role": "user", "content": text}})
    });
    let records: Vec<Value> = [header].into_iter().chain(messages).collect();
    lines(&records)
}

/// A home folder of Pi with one long session, and the paths of its file there and as a file of ours.
fn long_session() -> (Home, PathBuf, PathBuf) {
    let home = Home::of(Agent::Pi);
    let long = "word ".repeat(200_000);
    let file = home.put(
        "sessions/--w--/now_s1.jsonl",
        &session_of_pi(&[&long, "two"]),
    );
    settle(&file);
    let shown = home.path().join("-w/s1.jsonl");
    (home, file, shown)
}

fn found(disk: &ImportDisk, path: &Path) -> Metadata {
    disk.metadata(path).expect("it is there")
}

#[test]
fn a_session_that_has_not_changed_is_not_read_again_by_the_next_process() {
    let (home, file, shown) = long_session();
    let cache = tempfile::tempdir().expect("a folder can be made");
    let (first, counts) = home.counted(cache.path(), Policy::Recover);
    let before = found(&first, &shown);
    let whole = fs::metadata(&file).expect("it is there").len();
    assert!(counts.lock().expect("no panic")[&file] > whole);
    first.keep_memory();

    let (next, counts) = home.counted(cache.path(), Policy::Recover);
    assert_eq!(found(&next, &shown), before);
    assert!(counts.lock().expect("no panic")[&file] < whole / 2);
    // What is known under one policy says nothing about another.
    let (other, counts) = home.counted(cache.path(), Policy::Vendor);
    found(&other, &shown);
    assert!(counts.lock().expect("no panic")[&file] > whole);
    // The bytes are those that were promised.
    let bytes = next.read(&shown, usize::MAX).expect("it is read");
    assert_eq!(bytes.len() as u64, before.len);
}

#[test]
fn long_sessions_are_not_kept_together() {
    const LONG: usize = 60_000;
    let home = Home::of(Agent::Pi);
    let put = |id: &str, count: usize| {
        let session =
            session_of_pi(&vec!["a text"; count]).replacen("\"s1\"", &format!("\"{id}\""), 1);
        let file = home.put(&format!("sessions/--w--/now_{id}.jsonl"), &session);
        settle(&file);
        (file, home.path().join(format!("-w/{id}.jsonl")))
    };
    let (long, short) = (
        ["s1", "s2"].map(|id| put(id, LONG)),
        ["s3", "s4"].map(|id| put(id, 2)),
    );
    let cache = tempfile::tempdir().expect("a folder can be made");
    let (disk, counts) = home.counted(cache.path(), Policy::Recover);
    let open = |shown: &Path| drop(disk.open_to_read(shown).expect("it is opened"));
    let read_of = |file: &Path| counts.lock().expect("no panic")[file];
    for [(file, shown), (_, other)] in [&long, &short] {
        open(shown);
        open(other);
        let before = read_of(file);
        open(shown);
        let is_read_again = read_of(file) > before;
        assert_eq!(is_read_again, shown.ends_with("s1.jsonl"), "{shown:?}");
    }
}

#[test]
fn a_change_between_two_processes_is_seen() {
    let (home, file, shown) = long_session();
    let cache = tempfile::tempdir().expect("a folder can be made");
    let (first, _) = home.counted(cache.path(), Policy::Recover);
    let before = found(&first, &shown);
    first.keep_memory();

    home.put(
        "sessions/--w--/now_s1.jsonl",
        &session_of_pi(&["another", "two"]),
    );
    let (next, _) = home.counted(cache.path(), Policy::Recover);
    let changed = found(&next, &shown);
    assert_ne!(changed.len, before.len);
    assert_ne!(changed.identity, before.identity, "it was rewritten");
    // A file that changed just now may change again without another time.
    next.keep_memory();
    let same_time = fs::metadata(&file)
        .and_then(|found| found.modified())
        .expect("it has a time");
    home.put(
        "sessions/--w--/now_s1.jsonl",
        &session_of_pi(&["a longer one", "two"]),
    );
    let opened = fs::File::options()
        .append(true)
        .open(&file)
        .expect("it is opened");
    opened.set_modified(same_time).expect("the time is set");
    let (last, _) = home.counted(cache.path(), Policy::Recover);
    assert_ne!(found(&last, &shown).len, changed.len);
}

#[test]
fn a_damaged_memory_is_as_if_there_were_none() {
    let (home, _, shown) = long_session();
    let cache = tempfile::tempdir().expect("a folder can be made");
    let (first, _) = home.counted(cache.path(), Policy::Recover);
    let expected = found(&first, &shown);
    first.keep_memory();
    let kept = fs::read_dir(cache.path()).expect("it is listed").next();
    let kept = kept
        .expect("something is kept")
        .expect("it is listed")
        .path();
    let whole = fs::read(&kept).expect("it is read");
    let halves = [
        &whole[..whole.len() / 2],
        &whole[whole.len() / 2..],
        b"",
        b"[null]",
    ];
    for damaged in halves {
        fs::write(&kept, damaged).expect("it is written");
        let (next, _) = home.counted(cache.path(), Policy::Recover);
        assert_eq!(found(&next, &shown), expected);
        next.keep_memory();
        let (after, _) = home.counted(cache.path(), Policy::Recover);
        assert_eq!(found(&after, &shown), expected);
    }
    // A folder that cannot be made.
    let (disk, _) = home.counted(&kept.join("below-a-file"), Policy::Recover);
    assert_eq!(found(&disk, &shown), expected);
    disk.keep_memory();
}

/// Holds that a change of a second file shows in the properties of the file of a session, without a new list.
fn check_second_file(home: &Home, shown: &str, change: impl FnOnce()) {
    let clock = TestClock::new();
    let disk = clock.of(home.disk());
    let path = home.path().join(shown);
    let open = disk.open_to_read(&path).expect("it is opened");
    let before = open.metadata().expect("it has properties");
    clock.pass();
    assert_eq!(open.metadata().expect("it has properties"), before);
    change();
    clock.pass();
    let after = open.metadata().expect("it has properties");
    assert_ne!(after, before);
    // What is read is what the properties describe, and what another process reads.
    let mut bytes = vec![0; after.len as usize];
    assert_eq!(open.fill(0, &mut bytes).expect("it is read"), bytes.len());
    let fresh = home.disk().read(&path, usize::MAX).expect("it is read");
    assert_eq!(
        String::from_utf8_lossy(&bytes),
        String::from_utf8_lossy(&fresh)
    );
}

const THREAD: &str = "01a21081-f9a1-72e1-9353-def3505cd901";
const LATER: &str = "01a21081-f9a1-72e1-9353-def3505cd902";

fn rollout(ordinal: u64, meta: &Value, texts: &[&str]) -> String {
    let meta = json!({"timestamp": "2026-01-02T03:04:05.000Z", "ordinal": ordinal, "type": "session_meta", "payload": meta});
    let items = texts.iter().zip(ordinal + 1..).map(|(text, ordinal)| {
        let content = json!([{"type": "input_text", "text": text}]);
        let item = json!({"type": "message", "role": "user", "content": content});
        json!({"timestamp": "2026-01-02T03:04:06.000Z", "ordinal": ordinal, "type": "response_item", "payload": item})
    });
    lines(&[meta].into_iter().chain(items).collect::<Vec<_>>())
}

fn home_of_codex() -> Home {
    let home = Home::of(Agent::Codex);
    let name = format!("sessions/2026/01/02/rollout-2026-01-02T03-04-05-{THREAD}.jsonl");
    home.put(
        &name,
        &rollout(0, &json!({"id": THREAD, "cwd": "/w"}), &["one", "two"]),
    );
    home
}

#[test]
fn a_title_of_codex_shows_only_in_its_thread() {
    let home = home_of_codex();
    let shown = format!("-w/{THREAD}.jsonl");
    let title = |id: &str| lines(&[json!({"id": id, "thread_name": "a title"})]);
    check_second_file(&home, &shown, || {
        home.put("session_index.jsonl", &title(THREAD));
    });
    let clock = TestClock::new();
    let disk = clock.of(home.disk());
    let before = found(&disk, &home.path().join(&shown));
    let both = title(THREAD) + &title(LATER);
    home.put("session_index.jsonl", &both);
    clock.pass();
    assert_eq!(found(&disk, &home.path().join(&shown)), before);
}

#[test]
fn a_revert_of_codex_in_a_new_file_and_a_fork_show() {
    let base = json!({"thread_id": THREAD, "end_ordinal_exclusive": 2});
    let home = home_of_codex();
    check_second_file(&home, &format!("-w/{THREAD}.jsonl"), || {
        let name =
            format!("sessions/2026/01/03/rollout-2026-01-03T03-04-05-{THREAD}_{LATER}.jsonl");
        let meta = json!({"id": THREAD, "cwd": "/w", "history_base": base});
        home.put(&name, &rollout(2, &meta, &["instead"]));
    });
}

#[test]
fn a_fork_of_what_another_thread_of_codex_reverted_shows_in_that_one() {
    const FORK: &str = "01a21081-f9a1-72e1-9353-def3505cd903";
    let home = home_of_codex();
    let base = |end: u64| json!({"thread_id": THREAD, "end_ordinal_exclusive": end});
    let put = |name: &str, id: &str, end: u64| {
        let name = format!("sessions/2026/01/03/rollout-2026-01-03T03-04-05-{name}.jsonl");
        let meta = json!({"id": id, "cwd": "/w", "history_base": base(end)});
        home.put(&name, &rollout(end, &meta, &["instead"]));
    };
    put(&format!("{THREAD}_{LATER}"), THREAD, 2);
    check_second_file(&home, &format!("-w/{THREAD}.jsonl"), || put(FORK, FORK, 3));
}

#[test]
fn a_second_file_of_gemini_shows() {
    let home = Home::of(Agent::Gemini);
    let session = |minute: u64, text: &str| {
        let header = json!({"sessionId": "s1", "projectHash": "h", "startTime": "t", "lastUpdated": "t", "kind": "main"});
        let message = json!({"id": text, "timestamp": format!("2026-01-02T03:0{minute}:00.000Z"), "type": "user", "content": text});
        (
            format!("tmp/w/chats/session-2026-01-02T03-0{minute}-s1.jsonl"),
            lines(&[header, message]),
        )
    };
    let (name, text) = session(1, "one");
    home.put(&name, &text);
    check_second_file(&home, "unknown/s1.jsonl", || {
        let (name, text) = session(2, "two");
        home.put(&name, &text);
    });
}

#[test]
fn a_subagent_of_gemini_that_begins_shows_in_its_session() {
    let home = Home::of(Agent::Gemini);
    let header = |id: &str| json!({"sessionId": id, "projectHash": "h", "startTime": "t", "lastUpdated": "t", "kind": "main"});
    let message = json!({"id": "m", "timestamp": "2026-01-02T03:04:00.000Z", "type": "user", "content": "one"});
    home.put(
        "tmp/w/chats/session-2026-01-02T03-04-s1.jsonl",
        &lines(&[header("s1"), message.clone()]),
    );
    let clock = TestClock::new();
    let disk = clock.of(home.disk());
    let shown = home.path().join("unknown/s1.jsonl");
    found(&disk, &shown);
    home.put("tmp/w/chats/s1/a1.jsonl", &lines(&[header("a1"), message]));
    clock.pass();
    let agent = home.path().join("unknown/s1/subagents/agent-a1.jsonl");
    assert!(disk.has(&agent));
    let folder = home.path().join("unknown/s1/subagents");
    assert_eq!(disk.list(&folder).expect("it is listed").count(), 1);
}

#[test]
fn the_title_of_copilot_shows() {
    let home = Home::of(Agent::Copilot);
    let start = json!({"type": "session.start", "timestamp": "2026-01-02T03:04:05.000Z", "data": {"sessionId": "s1", "context": {"cwd": "/w"}}});
    home.put("session-state/s1/events.jsonl", &lines(&[start]));
    check_second_file(&home, "-w/s1.jsonl", || {
        home.put("session-state/s1/workspace.yaml", "name: a title\n");
    });
}

#[test]
fn the_description_of_a_session_of_the_desktop_program_shows() {
    let home = Home::of(Agent::ClaudeDesktop);
    let record = json!({"type": "user", "uuid": "a", "_audit_timestamp": "2026-01-02T03:04:05.000Z", "message": {"role": "user", "content": "one"}});
    home.put(
        "local-agent-mode-sessions/x/local_1/audit.jsonl",
        &lines(&[record]),
    );
    check_second_file(&home, "unknown/local_1.jsonl", || {
        home.put(
            "local-agent-mode-sessions/x/local_1.json",
            r#"{"title":"a title"}"#,
        );
    });
}

#[cfg(feature = "sqlite")]
mod turns_of_copilot {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn a_turn_in_the_database_shows_only_in_its_session() {
        let home = Home::of(Agent::Copilot);
        for id in ["s1", "s2"] {
            let start = json!({"type": "session.start", "timestamp": "2026-01-02T03:04:05.000Z", "data": {"sessionId": id, "context": {"cwd": "/w"}}});
            home.put(
                &format!("session-state/{id}/events.jsonl"),
                &lines(&[start]),
            );
        }
        let database = Connection::open(home.path().join("session-store.db")).expect("it is made");
        let schema = "PRAGMA journal_mode = WAL;
            CREATE TABLE turns (id integer PRIMARY KEY, session_id text, turn_index integer, user_message text,
                assistant_response text, timestamp text);";
        database.execute_batch(schema).expect("it has a table");
        let clock = TestClock::new();
        let other = clock.of(home.disk());
        let of_other = home.path().join("-w/s2.jsonl");
        let before = found(&other, &of_other);
        check_second_file(&home, "-w/s1.jsonl", || {
            let turn = "INSERT INTO turns VALUES (1, 's1', 0, 'cut out', 'an answer', '2026-01-02T03:04:06.000Z')";
            database.execute_batch(turn).expect("it is added");
        });
        clock.pass();
        assert_eq!(found(&other, &of_other), before);
    }
}
