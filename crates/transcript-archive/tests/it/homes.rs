//! The home folders of other agents: which files are captured, in which versions, and how they come back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use transcript_archive::{
    Archive, ArchiveDisk, ArchiveOptions, CaptureOptions, Captured, ErrorKind, Identities,
    PruneOptions, RestoreOptions,
};
use transcript_storage::{Disk, ReadDisk};
use transcript_testkit::fake_disk::{FakeDisk, Fault};
use transcript_testkit::rng::Rng;

const ARCHIVE: &str = "/archive";
const HOME: &str = "/home/agent";

/// The files in a folder, by their paths below it.
type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let below = path.strip_prefix(folder).unwrap().to_str().unwrap();
                found.insert(below.to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Returns the home folder of an agent in an archive in a folder.
fn home_of(disk: &ArchiveDisk, agent: &str) -> PathBuf {
    disk.homes(agent).unwrap().remove(0)
}

fn write(folder: &Path, below: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(below);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn capture(archive: &mut Archive, agent: &str, home: &Path) -> Captured {
    let captured = archive.capture_home(agent, home, &CaptureOptions::new());
    let captured = captured.unwrap();
    assert!(captured.problems.is_empty(), "{:?}", captured.problems);
    captured
}

/// Returns the archived files of an agent.
fn restored(archive: &Archive, agent: &str, options: &RestoreOptions) -> Files {
    let folder = TempDir::new().unwrap();
    let restored = archive.restore_home(agent, folder.path(), options).unwrap();
    assert!(restored.problems.is_empty(), "{:?}", restored.problems);
    files(folder.path())
}

/// A home folder and its archive, on the disk of this machine.
fn place() -> (TempDir, PathBuf, Archive) {
    let folder = TempDir::new().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    let archive = Archive::open_or_create(&folder.path().join("archive")).unwrap();
    (folder, home, archive)
}

/// The archived files of each agent, and others of its home folder.
const AGENTS: [(&str, &[&str], &[&str]); 7] = [
    (
        "codex",
        &[
            "sessions/2026/01/02/rollout-a.jsonl",
            "sessions/2026/01/02/rollout-b.jsonl.zst",
            "archived_sessions/rollout-c.jsonl",
            "session_index.jsonl",
        ],
        &[
            "auth.json",
            "config.toml",
            "sessions/2026/.env",
            "log/codex.jsonl",
        ],
    ),
    (
        "pi",
        &["sessions/--w--/now_a.jsonl"],
        &["auth.json", "settings.json", "sessions/--w--/now_a.txt"],
    ),
    (
        "qwen",
        &["projects/-w/chats/a.jsonl"],
        &[
            "oauth_creds.json",
            "settings.json",
            "projects/-w/memory.jsonl",
        ],
    ),
    (
        "gemini",
        &[
            "tmp/w/chats/session-a.jsonl",
            "tmp/w/chats/session-b.json",
            "tmp/w/chats/a/b.jsonl",
            "tmp/w/logs.json",
            "projects.json",
        ],
        &["oauth_creds.json", "settings.json", "tmp/w/shell_history"],
    ),
    (
        "copilot",
        &[
            "session-state/a/events.jsonl",
            "session-state/a/workspace.yaml",
            "session-state/a/checkpoints/index.md",
            "session-store.db",
            "session-store.db-wal",
        ],
        &[
            "config.json",
            "session-state/a/inuse.1.lock",
            "session-store.db-shm",
        ],
    ),
    (
        "opencode",
        &[
            "opencode.db",
            "opencode.db-wal",
            "opencode-dev.db",
            "storage/session/p/ses_a.json",
            "storage/message/ses_a/msg_a.json",
        ],
        &[
            "auth.json",
            "mcp-auth.json",
            "log/opencode.db",
            "opencode.db-shm",
        ],
    ),
    (
        "claude-desktop",
        &[
            "local-agent-mode-sessions/u/o/local_a/audit.jsonl",
            "local-agent-mode-sessions/u/o/local_a.json",
            "local-agent-mode-sessions/u/o/local_a/.claude/projects/-w/b.jsonl",
        ],
        &[
            "config.json",
            "Cookies",
            "local-agent-mode-sessions/u/o/local_a/.audit-key",
            "local-agent-mode-sessions/u/o/local_a/.claude/settings.json",
        ],
    ),
];

#[test]
fn the_sessions_of_each_agent_come_back_and_nothing_else_is_captured() {
    for (agent, captured, others) in AGENTS {
        let (folder, home, mut archive) = place();
        let mut expected = Files::new();
        for (number, below) in captured.iter().enumerate() {
            let text = format!("{{\"number\":{number}}}\n").repeat(50);
            write(&home, below, &text);
            expected.insert((*below).to_owned(), text.into_bytes());
        }
        for below in others {
            write(&home, below, "a secret");
        }
        // A link may lead anywhere.
        write(folder.path(), "outside/x.jsonl", "{\"a\":\"secret\"}\n");
        let named = captured[0]
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        symlink(folder.path().join("outside"), home.join(named).join("link")).unwrap();
        symlink(
            folder.path().join("outside/x.jsonl"),
            home.join(named).join("rollout-link.jsonl"),
        )
        .unwrap();
        capture(&mut archive, agent, &home);
        assert_eq!(
            restored(&archive, agent, &RestoreOptions::new()),
            expected,
            "{agent}"
        );
        // Files that are there stay as they are.
        let again = archive
            .restore_home(agent, &home, &RestoreOptions::new())
            .unwrap();
        assert_eq!((again.files, again.problems.len()), (0, 0), "{agent}");
        // They appear as they lie in the home folder.
        let disk = ArchiveDisk::new(&folder.path().join("archive"));
        for (below, bytes) in &expected {
            let path = home_of(&disk, agent).join(below);
            assert_eq!(
                disk.read(&path, 1 << 20).unwrap(),
                *bytes,
                "{agent} {below}"
            );
        }
    }
}

#[test]
fn an_unknown_agent_is_refused() {
    let (_folder, home, mut archive) = place();
    let refused = archive.capture_home("other", &home, &CaptureOptions::new());
    assert_eq!(*refused.unwrap_err().kind(), ErrorKind::UnknownAgent);
}

#[test]
fn what_was_cut_in_place_is_in_an_earlier_version() {
    let (folder, home, mut archive) = place();
    let below = "session-state/a/events.jsonl";
    let line = |text: &str| format!("{{\"text\":\"{}\"}}\n", text.repeat(40));
    let before = [line("first"), line("second"), line("third")].concat();
    write(&home, below, &before);
    let first = capture(&mut archive, "copilot", &home).time.unwrap();
    let after = [line("first"), line("rewound")].concat();
    write(&home, below, &after);
    capture(&mut archive, "copilot", &home);
    let newest = restored(&archive, "copilot", &RestoreOptions::new());
    assert_eq!(newest[below], after.as_bytes());
    let early = restored(&archive, "copilot", &RestoreOptions::new().as_of(first));
    assert_eq!(early[below], before.as_bytes());
    // And as a file.
    let disk = ArchiveDisk::new(&folder.path().join("archive"));
    let path = home_of(&disk, "copilot").join(below);
    assert_eq!(disk.read(&path, 1 << 20).unwrap(), after.as_bytes());
    let then = disk.as_of(&path, first).unwrap();
    assert_eq!(disk.read(&then, 1 << 20).unwrap(), before.as_bytes());
    let below_home = |path| disk.below_home("copilot", path);
    assert_eq!(below_home(&then), Some(below.into()));
    assert_eq!(below_home(&path), Some(below.into()));
    let time = disk.time_of(&then).unwrap();
    assert_eq!(disk.as_of(&path, time), Some(then.clone()));
    assert_eq!(disk.time_of(&path), None);
    let versions = disk.versions(&path).unwrap();
    let whole = before.len() as u64;
    assert_eq!(versions.len(), 2);
    assert_eq!((versions[0].len, versions[0].whole), (whole, whole));
    assert!(
        versions[1].kept == line("first").len() as u64,
        "{versions:?}"
    );
    let before_all = first - Duration::from_millis(1);
    let nothing = disk.as_of(&path, before_all).unwrap();
    assert!(disk.metadata(&nothing).is_err());
}

#[test]
fn a_rollout_that_codex_moved_is_shown_once() {
    let (folder, home, mut archive) = place();
    let text = "{\"type\":\"session_meta\"}\n".repeat(20);
    let (from, to) = (
        "sessions/2026/01/02/rollout-a.jsonl",
        "archived_sessions/rollout-a.jsonl",
    );
    write(&home, from, &text);
    capture(&mut archive, "codex", &home);
    fs::remove_file(home.join(from)).unwrap();
    let longer = format!("{text}{{}}\n");
    write(&home, to, &longer);
    capture(&mut archive, "codex", &home);
    let found = restored(&archive, "codex", &RestoreOptions::new());
    assert_eq!(found, Files::from([(to.to_owned(), longer.into_bytes())]));
    let disk = ArchiveDisk::new(&folder.path().join("archive"));
    let sessions = home_of(&disk, "codex").join("sessions/2026/01/02");
    assert_eq!(disk.list(&sessions).unwrap().count(), 0);
}

/// Random bytes, so that only what is known makes them short.
fn noise(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len.div_ceil(8))
        .flat_map(|_| rng.next_u64().to_le_bytes())
        .take(len)
        .collect()
}

#[test]
fn a_page_that_changed_costs_a_page_and_every_version_reads() {
    let (_folder, home, mut archive) = place();
    let mut rng = Rng::new(7);
    let mut database = noise(&mut rng, 6 << 20);
    write(&home, "opencode.db", &database);
    let mut versions = Vec::new();
    for number in 0..20 {
        let captured = capture(&mut archive, "opencode", &home);
        // Pages that differ from those of the first version, of which each later one is a difference.
        let pages = 4 * number;
        assert!(
            number == 0 || captured.stored < (pages + 4) * 4200 + 8000,
            "version {number} takes {} bytes",
            captured.stored
        );
        versions.push((captured.time.unwrap(), database.clone()));
        for page in [0, rng.below(1500), rng.below(1500)] {
            let new = noise(&mut rng, 4096);
            database[page * 4096..][..4096].copy_from_slice(&new);
        }
        database.extend(noise(&mut rng, 4096));
        write(&home, "opencode.db", &database);
    }
    for (time, bytes) in versions {
        let found = restored(&archive, "opencode", &RestoreOptions::new().as_of(time));
        assert!(found["opencode.db"] == bytes, "{time:?}");
    }
    let check = archive
        .check(&transcript_archive::CheckOptions::new())
        .unwrap();
    assert!(check.damages.is_empty() && check.losses.is_empty());
}

#[test]
fn a_log_that_is_gone_does_not_come_back_with_a_newer_database() {
    let (folder, home, mut archive) = place();
    write(&home, "opencode.db", b"database of time 1".repeat(500));
    write(&home, "opencode.db-wal", b"log of time 1".repeat(500));
    let first = capture(&mut archive, "opencode", &home).time.unwrap();
    fs::remove_file(home.join("opencode.db-wal")).unwrap();
    write(&home, "opencode.db", b"database of time 2".repeat(500));
    capture(&mut archive, "opencode", &home);
    let newest = restored(&archive, "opencode", &RestoreOptions::new());
    assert_eq!(newest.keys().collect::<Vec<_>>(), ["opencode.db"]);
    let early = restored(&archive, "opencode", &RestoreOptions::new().as_of(first));
    assert_eq!(early.len(), 2);
    // To a reader it is empty.
    let disk = ArchiveDisk::new(&folder.path().join("archive"));
    let log = home_of(&disk, "opencode").join("opencode.db-wal");
    assert_eq!(disk.metadata(&log).unwrap().len, 0);
}

#[test]
fn a_database_is_restored_as_a_whole_or_not_at_all() {
    let (folder, home, mut archive) = place();
    write(&home, "opencode.db", b"database".repeat(500));
    write(&home, "opencode.db-wal", b"log".repeat(500));
    capture(&mut archive, "opencode", &home);
    for there in ["opencode.db", "opencode.db-wal", "opencode.db-journal"] {
        let to = folder.path().join(there).join("home");
        write(&to, there, "newer");
        let restored = archive.restore_home("opencode", &to, &RestoreOptions::new());
        let restored = restored.unwrap();
        assert_eq!((restored.files, restored.problems.len()), (0, 1), "{there}");
        assert_eq!(files(&to).len(), 1, "{there}");
    }
}

#[test]
fn a_database_with_a_log_that_the_archived_version_lacks_is_another_one() {
    let (_folder, home, mut archive) = place();
    write(&home, "opencode.db", b"database".repeat(500));
    capture(&mut archive, "opencode", &home);
    for ending in ["-wal", "-journal"] {
        let log = format!("opencode.db{ending}");
        for (content, expected) in [("", (1, 0)), ("changes", (0, 1))] {
            write(&home, &log, content);
            let restored = archive.restore_home("opencode", &home, &RestoreOptions::new());
            let restored = restored.unwrap();
            let found = (restored.present, restored.problems.len());
            assert_eq!(found, expected, "{log}: {content:?}");
        }
        fs::remove_file(home.join(&log)).unwrap();
    }
}

#[test]
fn files_of_one_session_are_restored_with_what_lies_beside_them() {
    let (folder, home, mut archive) = place();
    for session in ["a", "b"] {
        for name in ["events.jsonl", "workspace.yaml", "checkpoints/index.md"] {
            write(&home, &format!("session-state/{session}/{name}"), "{}\n");
        }
    }
    write(&home, "session-store.db", "database");
    capture(&mut archive, "copilot", &home);
    let one = RestoreOptions::new().files(vec!["session-state/a/events.jsonl".to_owned()]);
    let found = restored(&archive, "copilot", &one);
    let names: Vec<&String> = found.keys().collect();
    assert_eq!(
        names,
        [
            "session-state/a/checkpoints/index.md",
            "session-state/a/events.jsonl",
            "session-state/a/workspace.yaml",
        ]
    );
    drop(folder);
}

#[test]
fn names_that_no_capture_makes_are_not_written() {
    let (folder, home, mut archive) = place();
    write(&home, "sessions/a.jsonl", "{}\n");
    capture(&mut archive, "pi", &home);
    // Another agent has no such files, and a folder on the way is a link.
    let to = folder.path().join("to");
    fs::create_dir_all(&to).unwrap();
    symlink(folder.path(), to.join("sessions")).unwrap();
    let restored = archive
        .restore_home("pi", &to, &RestoreOptions::new())
        .unwrap();
    assert_eq!(restored.files, 0);
    assert!(matches!(
        restored.problems[0].kind(),
        ErrorKind::RefusedName(_)
    ));
}

/// Makes a disk with a database and a log of one generation, and returns both as bytes.
fn generation(number: u64, len: usize) -> (Vec<u8>, Vec<u8>) {
    let database = number.to_le_bytes().repeat(len / 8);
    (database, number.to_le_bytes().repeat(64))
}

fn put_generation(disk: &FakeDisk, number: u64) {
    // In place, as a program does: the files stay the same ones.
    let (database, log) = generation(number, 3 << 20);
    for (name, bytes) in [("opencode.db", database), ("opencode.db-wal", log)] {
        let path = Path::new(HOME).join(name);
        if disk.bytes(&path).is_some() {
            disk.cut_as_other(&path, 0);
            disk.append_as_other(&path, &bytes);
        } else {
            disk.put(&path, &bytes);
        }
    }
}

/// The bytes of a database and of its log.
type DatabaseAndLog = (Vec<u8>, Vec<u8>);

/// Returns what an archiver has of a database which another program changes at operation `nth`; whether it came so far, and the
/// database with its log.
fn captured_while_changed(nth: u64, is_naive: bool) -> (bool, Option<DatabaseAndLog>) {
    let disk = FakeDisk::new(nth);
    put_generation(&disk, 1);
    disk.set(Fault::hook(|disk| put_generation(disk, 2)).at_any(nth));
    let process: Arc<dyn Disk> = disk.process();
    let read = |name: &str| process.read(&Path::new(HOME).join(name), 1 << 30).unwrap();
    let pair = if is_naive {
        Some((read("opencode.db"), read("opencode.db-wal")))
    } else {
        let options = ArchiveOptions::new().disk(Arc::clone(&process));
        let mut archive = Archive::open_or_create_with(Path::new(ARCHIVE), &options).unwrap();
        archive
            .capture_home("opencode", Path::new(HOME), &CaptureOptions::new())
            .unwrap();
        let to = Path::new("/to");
        archive
            .restore_home("opencode", to, &RestoreOptions::new())
            .unwrap();
        let bytes = |name: &str| process.read(&to.join(name), 1 << 30).ok();
        bytes("opencode.db").zip(bytes("opencode.db-wal"))
    };
    (disk.faults_left() == 0, pair)
}

fn mixed_captures(is_naive: bool) -> (u64, u64) {
    let (mut runs, mut mixed) = (0, 0);
    for nth in 1.. {
        let (came_so_far, pair) = captured_while_changed(nth, is_naive);
        if !came_so_far {
            break;
        }
        runs += 1;
        let is_one = |pair: &(Vec<u8>, Vec<u8>)| {
            [1, 2]
                .iter()
                .any(|number| *pair == generation(*number, 3 << 20))
        };
        mixed += u64::from(pair.is_some_and(|pair| !is_one(&pair)));
    }
    (runs, mixed)
}

#[test]
fn a_database_and_its_log_are_of_one_moment_whenever_another_program_writes_them() {
    let (runs, mixed) = mixed_captures(false);
    assert!(runs > 20, "only {runs} runs");
    assert_eq!(mixed, 0, "of {runs} runs");
    // A copy of one file after the other is not.
    let (_, mixed) = mixed_captures(true);
    assert!(mixed > 0);
}

#[test]
fn an_unchanged_database_costs_nothing_also_if_another_machine_uses_the_archive() {
    let disk = FakeDisk::new(1);
    let process: Arc<dyn Disk> = disk.process();
    let options = ArchiveOptions::new().disk(Arc::clone(&process));
    let mut archive = Archive::open_or_create_with(Path::new(ARCHIVE), &options).unwrap();
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let homes = [Path::new("/one"), Path::new("/two")];
    for (number, home) in (0u64..).zip(homes) {
        let path = home.join("opencode.db");
        disk.put(&path, &number.to_le_bytes().repeat(10_000));
        process.set_properties(&path, Some(hour_ago), None).unwrap();
    }
    let mut times = Vec::new();
    for home in homes {
        let captured = capture(&mut archive, "opencode", home);
        assert_eq!((captured.sessions, captured.files), (1, 1));
        times.extend(captured.time);
    }
    for home in [homes[0], homes[1], homes[0]] {
        let captured = capture(&mut archive, "opencode", home);
        let same = (captured.sessions, captured.unchanged, captured.stored);
        assert_eq!(
            (same, captured.time),
            ((0, 1, 0), None),
            "{}",
            home.display()
        );
        let full = CaptureOptions::new().compare_all(true);
        let full = archive.capture_home("opencode", home, &full).unwrap();
        assert_eq!((full.unchanged, full.stored), (1, 0));
    }
    for (number, time) in (0u64..).zip(times) {
        let to = PathBuf::from(format!("/to{number}"));
        let options = RestoreOptions::new().as_of(time);
        archive.restore_home("opencode", &to, &options).unwrap();
        let found = process.read(&to.join("opencode.db"), 1 << 20).unwrap();
        assert_eq!(found, number.to_le_bytes().repeat(10_000));
    }
}

#[test]
fn an_encrypted_archive_keeps_agents_without_the_key_and_shows_them_with_it() {
    let (folder, home, _) = place();
    let key = Identities::generate();
    let at = folder.path().join("sealed");
    let sealed = ArchiveOptions::new()
        .encrypt_to(key.recipients())
        .local_folder(&folder.path().join("local"));
    let mut archive = Archive::open_or_create_with(&at, &sealed).unwrap();
    let mut rng = Rng::new(3);
    let mut expected = Files::new();
    for number in 0..4 {
        let database = noise(&mut rng, 300_000);
        write(&home, "opencode.db", &database);
        write(
            &home,
            "storage/session/p/a.json",
            format!("{{\"number\":{number}}}"),
        );
        capture(&mut archive, "opencode", &home);
        expected = files(&home);
    }
    let refused = archive.restore_home("opencode", &home, &RestoreOptions::new());
    assert_eq!(*refused.unwrap_err().kind(), ErrorKind::Encrypted);
    let archive = Archive::open_with(&at, &sealed.identities(key)).unwrap();
    assert_eq!(
        restored(&archive, "opencode", &RestoreOptions::new()),
        expected
    );
}

#[test]
fn prune_removes_groups_of_old_files_and_never_one_that_another_needs() {
    let (_folder, home, mut archive) = place();
    let rollout = |name: &str| format!("sessions/2026/01/02/rollout-{name}.jsonl");
    let old = SystemTime::now() - Duration::from_secs(40 * 86_400);
    for name in ["base", "fork", "alone", "unknown"] {
        write(&home, &rollout(name), "{\"a\":1}\n".repeat(100));
        if name != "fork" {
            let file = fs::File::open(home.join(rollout(name))).unwrap();
            file.set_modified(old).unwrap();
        }
    }
    write(&home, "session_index.jsonl", "{}\n");
    capture(&mut archive, "codex", &home);
    let paths = |names: &[&str]| -> Vec<PathBuf> {
        names.iter().map(|name| home.join(rollout(name))).collect()
    };
    let groups = [paths(&["base", "fork"]), paths(&["alone"])];
    let options = PruneOptions::new().hold(Duration::ZERO).remove(true);
    let pruned = archive
        .prune_home("codex", &home, &groups, &options)
        .unwrap();
    let removed: Vec<&PathBuf> = pruned
        .sessions
        .iter()
        .map(|session| &session.path)
        .collect();
    assert_eq!(removed, [&home.join(rollout("alone"))]);
    assert_eq!(files(&home).len(), 4);
    let back = archive
        .restore_home("codex", &home, &RestoreOptions::new())
        .unwrap();
    assert_eq!((back.files, back.problems.len()), (1, 0));
    assert_eq!(files(&home).len(), 5);
}

#[test]
fn a_file_that_a_killed_prune_put_aside_gets_its_name_back() {
    let (_folder, home, mut archive) = place();
    let aside = "sessions/w/.pruned-a.jsonl.aside";
    write(&home, aside, "{}\n");
    capture(&mut archive, "pi", &home);
    assert_eq!(
        files(&home).into_keys().collect::<Vec<_>>(),
        ["sessions/w/a.jsonl"]
    );
    let found = restored(&archive, "pi", &RestoreOptions::new());
    assert_eq!(
        found.into_keys().collect::<Vec<_>>(),
        ["sessions/w/a.jsonl"]
    );
}
