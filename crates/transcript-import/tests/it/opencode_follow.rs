//! Databases of OpenCode that are followed, of which some cannot be read, and of which one is damaged: each byte is read once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use transcript_import::{Agent, ImportDisk, Policy};
use transcript_storage::ReadDisk;
use transcript_testkit::rng::Rng;

use crate::counted_disk::{Broken, CountedDisk, Counts};
use crate::opencode_store::{Database, call, said};
use crate::support::lines;
use crate::test_clock::TestClock;

/// A home folder as a follower sees it.
struct Follower {
    home: PathBuf,
    disk: ImportDisk,
    clock: TestClock,
    counts: Counts,
    broken: Broken,
}

impl Follower {
    fn of(home: &Path, agent: Agent) -> Self {
        let counted = CountedDisk::default();
        let (counts, broken) = (Arc::clone(&counted.0), Arc::clone(&counted.1));
        let clock = TestClock::new();
        let disk = clock.of(ImportDisk::new(Arc::new(counted), agent, home));
        Self {
            home: home.to_owned(),
            disk,
            clock,
            counts,
            broken,
        }
    }

    /// Reads all sessions after some time: the name and the lines of each.
    fn poll(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.clock.pass();
        self.all(&self.disk)
    }

    fn all(&self, disk: &ImportDisk) -> Vec<(PathBuf, Vec<u8>)> {
        let shown = disk.sessions().expect("they are listed").into_iter();
        let read = shown.map(|below| {
            let path = self.home.join(&below);
            let bytes = disk.read(&path, usize::MAX).expect("it is read");
            (below, bytes)
        });
        read.collect()
    }

    /// Returns what a disk reads that knows nothing.
    fn fresh(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let disk = Arc::new(transcript_storage::RealDisk);
        self.all(&ImportDisk::new(disk, Agent::OpenCode, &self.home))
    }

    /// Returns how many bytes of a file were read since the last call.
    fn read_of(&self, name: &str) -> u64 {
        let mut counts = self.counts.lock().expect("no other thread panicked");
        counts.remove(&self.home.join(name)).unwrap_or_default()
    }

    /// Returns why the folders that cannot be read cannot.
    fn problems(&self) -> Vec<String> {
        let listed = self.disk.list(&self.home).expect("it is listed");
        let listed = listed.map(|entry| self.home.join(entry.expect("it is listed").name));
        let problems = listed.filter_map(|folder| self.disk.list(&folder).err());
        problems.map(|error| error.to_string()).collect()
    }
}

fn user() -> serde_json::Value {
    json!({"role": "user"})
}

#[test]
fn a_change_of_a_followed_database_is_read_and_not_the_database_again() {
    let mut database = Database::new();
    for number in 1..200 {
        database.message("ses_1", number, &user(), &[said(&"long ".repeat(2000))]);
    }
    database.move_log();
    database.prompt(200, "the log begins");
    let follower = Follower::of(database.path(), Agent::OpenCode);
    let home = database.path().to_owned();
    let len_of = |name: &str| {
        let found = fs::metadata(home.join(name));
        found.expect("it is there").len()
    };
    assert_eq!(follower.poll(), follower.fresh());
    assert_eq!(follower.read_of("opencode.db"), len_of("opencode.db"));
    let mut in_log = len_of("opencode.db-wal");
    follower.read_of("opencode.db-wal");
    for number in 201..210 {
        database.prompt(number, &format!("prompt {number}"));
        let now = len_of("opencode.db-wal");
        let read = follower.poll();
        let text = format!("prompt {number}\"");
        let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(&text);
        assert!(read.iter().any(|(_, bytes)| has(bytes)), "{number}");
        assert_eq!(follower.read_of("opencode.db"), 0, "{number}");
        let of_log = follower.read_of("opencode.db-wal");
        let added = now - in_log;
        assert!(of_log < 2 * added + 1000, "{number}: {of_log} of {added}");
        in_log = now;
    }
    // Moves all changes into the database, and leaves the log.
    database.execute("PRAGMA wal_checkpoint(PASSIVE)");
    assert_eq!(follower.poll(), follower.fresh());
    assert_eq!(follower.read_of("opencode.db"), 0);
    // The log begins again, and its file is as long as before.
    database.prompt(210, "another log");
    assert_eq!(follower.poll(), follower.fresh());
    assert_eq!(follower.read_of("opencode.db"), len_of("opencode.db"));
    follower.read_of("opencode.db-wal");
    // What is left of the earlier log is not read with each change.
    database.prompt(211, "one more");
    assert_eq!(follower.poll(), follower.fresh());
    assert_eq!(follower.read_of("opencode.db"), 0);
    let read = follower.read_of("opencode.db-wal");
    assert!(read < in_log / 4, "{read} of {in_log}");
}

/// Whatever happens to the database, a follower reads what a reader does that sees it for the first time.
#[test]
fn a_follower_reads_what_a_new_reader_does() {
    let mut followed = 0;
    for seed in 0..6 {
        let mut rng = Rng::new(seed);
        let mut database = Database::new();
        database.execute("PRAGMA wal_autocheckpoint = 40");
        let follower = Follower::of(database.path(), Agent::OpenCode);
        let mut next = 1;
        for step in 0..40 {
            let known = || i64::from(1 + step / 2);
            let long = "x".repeat(rng.below(20_000));
            match rng.below(12) {
                0 => database.delete("ses_1", known()),
                1 => database.execute("DELETE FROM event WHERE seq % 3 = 0"),
                2 => database.execute("PRAGMA wal_checkpoint(TRUNCATE)"),
                3 => database.execute("PRAGMA wal_checkpoint(PASSIVE)"),
                4 => database.execute("PRAGMA wal_checkpoint(RESTART)"),
                5 => database.execute("VACUUM"),
                6 => database.execute(
                    "UPDATE session SET title = title || 'x', time_updated = time_updated + 1",
                ),
                // A change that is rolled back leaves frames that do not count.
                7 => database.execute(&format!(
                    "PRAGMA cache_size = 1; BEGIN; UPDATE part SET data = '{long}'; ROLLBACK"
                )),
                8 => database.execute("CREATE TABLE IF NOT EXISTS other (a); DROP TABLE other"),
                _ => {
                    database.answer(next, &[said(&format!("answer {next}")), call("c", &long)]);
                    next += 1;
                }
            }
            follower.read_of("opencode.db");
            assert_eq!(follower.poll(), follower.fresh(), "{seed} {step}");
            followed += usize::from(follower.read_of("opencode.db") == 0);
        }
    }
    // Most changes need no copy, or the test tests copies.
    assert!(followed > 6 * 20, "{followed}");
}

#[test]
fn a_database_in_place_of_another_one_is_read() {
    let mut database = Database::new();
    database.prompt(1, "one");
    let mut other = Database::new();
    other.prompt(1, "another");
    let follower = Follower::of(database.path(), Agent::OpenCode);
    follower.poll();
    for name in ["opencode.db", "opencode.db-wal"] {
        let new = database.path().join("new");
        fs::copy(other.path().join(name), &new).expect("it is copied");
        fs::rename(&new, database.path().join(name)).expect("it is renamed");
    }
    assert_eq!(follower.poll(), follower.fresh());
    assert!(String::from_utf8_lossy(&follower.poll()[0].1).contains("another"));
}

/// Adds a session as files of an older version.
fn put_files(home: &Path) {
    let put = |name: &str, value: serde_json::Value| {
        let path = home.join("storage").join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("it is made");
        fs::write(path, value.to_string()).expect("it is written");
    };
    put(
        "session/p/ses_old.json",
        json!({"id": "ses_old", "directory": "/w", "time": {"created": 1, "updated": 1}}),
    );
    put(
        "message/ses_old/msg_1.json",
        json!({"id": "msg_1", "sessionID": "ses_old", "role": "user", "time": {"created": 1}}),
    );
    put(
        "part/msg_1/prt_1.json",
        json!({"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_old", "type": "text", "text": "old"}),
    );
}

#[test]
fn a_database_that_cannot_be_read_hides_no_other_session_and_is_named() {
    let mut database = Database::new();
    database.prompt(1, "one");
    let bad = database.path().join("opencode-beta.db");
    put_files(database.path());
    let names = |follower: &Follower| -> Vec<PathBuf> {
        follower.poll().into_iter().map(|(name, _)| name).collect()
    };
    let all = [
        PathBuf::from("-w/ses_1.jsonl"),
        PathBuf::from("-w/ses_old.jsonl"),
    ];
    // The first database of the folder, by its name.
    for content in [&b"SQLite format 3\0 and nothing else"[..], &[b'x'; 9000]] {
        fs::write(&bad, content).expect("it is written");
        let follower = Follower::of(database.path(), Agent::OpenCode);
        assert_eq!(names(&follower), all);
        let problems = follower.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with(&*bad.to_string_lossy()),
            "{problems:?}"
        );
        assert!(problems[0].contains("is damaged"), "{problems:?}");
    }
    // One that the system cannot read, until it can.
    fs::remove_file(&bad).expect("it is removed");
    let mut other = Database::new();
    other.execute("UPDATE session SET id = 'ses_beta'");
    other.message("ses_beta", 1, &user(), &[said("beta")]);
    other.move_log();
    fs::copy(other.path().join("opencode.db"), &bad).expect("it is copied");
    let follower = Follower::of(database.path(), Agent::OpenCode);
    *follower.broken.lock().expect("no other thread panicked") = Some(bad.clone());
    assert_eq!(names(&follower), all);
    assert_eq!(
        follower.problems(),
        [format!("{}: a bad sector", bad.display())]
    );
    // A session that is known to be in files is read by its id, beside a database that may have it.
    let store = transcript_import::Store {
        disk: &*failing(&bad),
        path: database.path(),
    };
    let read = transcript_import::dialect(Agent::OpenCode).read(store, "ses_old", Policy::Recover);
    assert_eq!(read.expect("it is read").ids().count(), 1);
    let missing =
        transcript_import::dialect(Agent::OpenCode).read(store, "ses_no", Policy::Recover);
    assert!(
        missing
            .expect_err("it may be there")
            .to_string()
            .contains("a bad sector")
    );
    *follower.broken.lock().expect("no other thread panicked") = None;
    assert_eq!(names(&follower).len(), 3);
    assert!(follower.problems().is_empty());
}

/// Returns a disk on which a file cannot be read.
fn failing(bad: &Path) -> Arc<dyn ReadDisk> {
    let disk = CountedDisk::default();
    *disk.1.lock().expect("no other thread panicked") = Some(bad.to_owned());
    Arc::new(disk)
}

/// An index of titles that cannot be read costs the titles, and is named.
#[test]
fn an_index_of_codex_that_cannot_be_read_is_named() {
    let home = tempfile::tempdir().expect("a folder can be made");
    let id = "01a21081-f9a1-72e1-9353-def3505cd901";
    let folder = home.path().join("sessions/2026/01/02");
    fs::create_dir_all(&folder).expect("it is made");
    let meta = json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": "session_meta", "payload": {"id": id, "cwd": "/w"}});
    let name = format!("rollout-2026-01-02T03-04-05-{id}.jsonl");
    fs::write(folder.join(name), lines(&[meta])).expect("it is written");
    let index = home.path().join("session_index.jsonl");
    fs::write(&index, "{}\n").expect("it is written");
    let follower = Follower::of(home.path(), Agent::Codex);
    *follower.broken.lock().expect("no other thread panicked") = Some(index.clone());
    assert_eq!(follower.poll().len(), 1);
    assert_eq!(
        follower.problems(),
        [format!("{}: a bad sector", index.display())]
    );
    *follower.broken.lock().expect("no other thread panicked") = None;
    follower.poll();
    assert!(follower.problems().is_empty());
}

#[test]
fn the_pages_of_a_damaged_database_are_looked_through_once_for_all_sessions() -> io::Result<()> {
    const SESSIONS: i64 = 40;
    let mut database = Database::new();
    for number in 1..=SESSIONS {
        let id = format!("ses_{:02}", 10 + number);
        database.session(&id, &id, number);
        database.message(
            &id,
            number,
            &user(),
            &[said(&format!("{id} {}", "x".repeat(20_000)))],
        );
    }
    database.move_log();
    let file = database.path().join("opencode.db");
    let mut bytes = fs::read(&file)?;
    // Without the schema SQLite knows no table.
    bytes[..4096].fill(0);
    fs::write(&file, &bytes)?;
    let follower = Follower::of(database.path(), Agent::OpenCode);
    let found = follower.poll();
    let has = |number: i64| {
        let text = format!("ses_{:02} xxx", 10 + number);
        found
            .iter()
            .any(|(_, bytes)| String::from_utf8_lossy(bytes).contains(&text))
    };
    assert!((1..=SESSIONS).all(has), "{} sessions", found.len());
    // The copy, the index, and the rows of each session.
    let read = follower.read_of("opencode.db");
    let len = bytes.len() as u64;
    assert!(read < 6 * len, "{read} of {len}");
    Ok(())
}
