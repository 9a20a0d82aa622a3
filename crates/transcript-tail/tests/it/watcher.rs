//! Many files at once.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use transcript_tail::{EventKind, FollowOptions, StartAt, Watcher};

use crate::words::{append, line, word};

/// Long enough for any machine; a wait that takes longer has failed.
const LONG: Duration = Duration::from_secs(20);

/// Waits for `count` events; returns the events of each file by its path below `folder`.
fn emitted(watcher: &mut Watcher, folder: &Path, count: usize) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for _ in 0..count {
        let emitted = watcher.next_within(LONG).expect("no error");
        let emitted = emitted.unwrap_or_else(|| panic!("no event after {all:?}"));
        let below = emitted.path.strip_prefix(folder).expect("it is below");
        let path = below.to_string_lossy().into_owned();
        all.entry(path).or_default().push(word(&emitted));
    }
    all
}

fn words<'a>(pairs: &[(&str, &[&'a str])]) -> BTreeMap<String, Vec<&'a str>> {
    let pairs = pairs.iter();
    pairs
        .map(|(path, words)| ((*path).to_owned(), words.to_vec()))
        .collect()
}

#[track_caller]
fn check(found: &BTreeMap<String, Vec<String>>, expected: &[(&str, &[&str])]) {
    let found: BTreeMap<String, Vec<&str>> = found
        .iter()
        .map(|(path, words)| (path.clone(), words.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(found, words(expected));
}

/// With and without file-system events.
fn ways() -> [FollowOptions; 2] {
    [FollowOptions::new(), FollowOptions::new().poll_only()]
}

#[test]
fn sessions_and_agents_that_come_are_followed_from_their_first_byte() {
    for options in ways() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        append(&root.join("-p/s1.jsonl"), &line(1));
        append(&root.join("-p/notes.txt"), "no transcript\n");
        append(&root.join("-p/s1/tool-results/x.jsonl"), "{}\n");
        let mut watcher = Watcher::new(&options.start(StartAt::End));
        watcher.add_folder(root);
        check(
            &emitted(&mut watcher, root, 1),
            &[("-p/s1.jsonl", &["open 28"])],
        );

        append(&root.join("-p/s2.jsonl"), &line(2));
        append(&root.join("-p/s1/subagents/agent-a1.jsonl"), &line(3));
        append(&root.join("-p/s1.jsonl"), &line(4));
        append(&root.join("-q/s3.jsonl"), &(line(5) + &line(6)));
        check(
            &emitted(&mut watcher, root, 8),
            &[
                ("-p/s1.jsonl", &["u4 28"]),
                ("-p/s1/subagents/agent-a1.jsonl", &["open 0", "u3 0"]),
                ("-p/s2.jsonl", &["open 0", "u2 0"]),
                ("-q/s3.jsonl", &["open 0", "u5 0", "u6 28"]),
            ],
        );
        append(
            &root.join("-p/s1/subagents/workflows/r1/agent-a2.jsonl"),
            &line(7),
        );
        check(
            &emitted(&mut watcher, root, 2),
            &[(
                "-p/s1/subagents/workflows/r1/agent-a2.jsonl",
                &["open 0", "u7 0"],
            )],
        );
        assert_eq!(watcher.files().count(), 5);
    }
}

#[test]
fn a_project_is_followed_by_its_own_folder() {
    for options in ways() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("-p");
        let mut watcher = Watcher::new(&options);
        // It is created later.
        watcher.add_folder(&project);
        assert!(watcher.try_next().unwrap().is_none());
        append(&project.join("s1.jsonl"), &line(1));
        append(&project.join("s1/subagents/agent-a1.jsonl"), &line(2));
        check(
            &emitted(&mut watcher, &project, 4),
            &[
                ("s1.jsonl", &["open 0", "u1 0"]),
                ("s1/subagents/agent-a1.jsonl", &["open 0", "u2 0"]),
            ],
        );
    }
}

#[test]
fn a_session_is_followed_with_its_subagents_and_nothing_beside_it() {
    for options in ways() {
        let root = tempfile::tempdir().unwrap();
        let project = root.path();
        append(&project.join("s2.jsonl"), &line(9));
        let mut watcher = Watcher::new(&options);
        watcher.add_session(&project.join("s1.jsonl"));
        assert!(watcher.try_next().unwrap().is_none());
        append(&project.join("s1.jsonl"), &line(1));
        append(&project.join("s1/subagents/agent-a1.jsonl"), &line(2));
        let legacy = "{\"type\":\"user\",\"uuid\":\"u3\",\"sessionId\":\"s1\"}\n";
        append(&project.join("agent-a2.jsonl"), legacy);
        check(
            &emitted(&mut watcher, project, 6),
            &[
                ("agent-a2.jsonl", &["open 0", "u3 0"]),
                ("s1.jsonl", &["open 0", "u1 0"]),
                ("s1/subagents/agent-a1.jsonl", &["open 0", "u2 0"]),
            ],
        );
    }
}

#[test]
fn a_file_that_goes_is_reported_and_forgotten_and_may_come_again() {
    for options in ways() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("-p/s1.jsonl");
        append(&path, &(line(1) + "torn"));
        let mut watcher = Watcher::new(&options);
        watcher.add_folder(root.path());
        emitted(&mut watcher, root.path(), 2);
        assert!(watcher.try_next().unwrap().is_none());
        fs::remove_file(&path).unwrap();
        check(
            &emitted(&mut watcher, root.path(), 1),
            &[("-p/s1.jsonl", &["gone 28 4"])],
        );
        assert!(watcher.try_next().unwrap().is_none());
        assert_eq!(watcher.files().count(), 0);
        append(&path, &line(2));
        check(
            &emitted(&mut watcher, root.path(), 2),
            &[("-p/s1.jsonl", &["open 0", "u2 0"])],
        );
    }
}

#[test]
fn more_files_than_are_kept_open_lose_nothing() {
    const FILES: usize = 200;
    for options in ways() {
        let root = tempfile::tempdir().unwrap();
        let path = |file: usize| root.path().join(format!("-p/s{file}.jsonl"));
        for file in 0..FILES {
            append(&path(file), &line(1));
        }
        let mut watcher = Watcher::new(&options);
        watcher.add_folder(root.path());
        emitted(&mut watcher, root.path(), 2 * FILES);
        assert!(watcher.try_next().unwrap().is_none());
        let open = fs::read_dir("/proc/self/fd").map_or(0, |open| {
            let targets = open
                .flatten()
                .filter_map(|fd| fs::read_link(fd.path()).ok());
            targets.filter(|path| path.starts_with(root.path())).count()
        });
        assert!(open <= 64, "{open} files are open");
        for round in 2..5 {
            for file in 0..FILES {
                append(&path(file), &line(round));
            }
            let all = emitted(&mut watcher, root.path(), FILES);
            let expected = format!("u{round} {}", 28 * (round - 1));
            assert!(
                all.values().all(|words| *words == [expected.as_str()]),
                "{all:?}"
            );
            assert_eq!(all.len(), FILES);
        }
    }
}

#[test]
fn a_link_is_one_more_name_and_a_loop_ends() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    append(&root.path().join("-p/s1.jsonl"), &line(1));
    append(&elsewhere.path().join("s2.jsonl"), &line(2));
    #[cfg(unix)]
    {
        let link = std::os::unix::fs::symlink::<PathBuf, PathBuf>;
        link(root.path().into(), root.path().join("-p/loop")).unwrap();
        link(root.path().join("-p"), root.path().join("-again")).unwrap();
        link(elsewhere.path().into(), root.path().join("-linked")).unwrap();
        let mut watcher = Watcher::new(&FollowOptions::new());
        watcher.add_folder(root.path());
        check(
            &emitted(&mut watcher, root.path(), 4),
            &[
                ("-linked/s2.jsonl", &["open 0", "u2 0"]),
                ("-p/s1.jsonl", &["open 0", "u1 0"]),
            ],
        );
        assert!(watcher.try_next().unwrap().is_none());
    }
}

#[test]
fn unreadable_file_is_reported_once_and_the_others_continue() {
    let root = tempfile::tempdir().unwrap();
    append(&root.path().join("-p/s1.jsonl"), &line(1));
    // A binary, by its first bytes.
    fs::write(root.path().join("-p/s2.jsonl"), b"\x7fELF\0\0\0\0").unwrap();
    let mut watcher = Watcher::new(&FollowOptions::new());
    watcher.add_folder(root.path());
    let (mut errors, mut entries) = (0, 0);
    while errors + entries < 2 {
        match watcher.next_within(LONG) {
            Ok(Some(emitted)) => {
                entries += usize::from(matches!(emitted.kind, EventKind::Entry(_)));
            }
            Ok(None) => panic!("{errors} errors, {entries} entries"),
            Err(_) => errors += 1,
        }
    }
    assert_eq!((errors, entries), (1, 1));
    for number in 2..6 {
        // It is written to, and is still a binary.
        append(&root.path().join("-p/s2.jsonl"), "x");
        append(&root.path().join("-p/s1.jsonl"), &line(number));
        let emitted = watcher.next_within(LONG).expect("the error was emitted");
        assert!(matches!(
            emitted.expect("an event").kind,
            EventKind::Entry(_)
        ));
        // The other file is polled, too.
        let emitted = watcher.next_within(Duration::from_millis(50));
        assert!(emitted.expect("the error was emitted").is_none());
    }
}

#[test]
fn a_busy_file_does_not_keep_the_others_waiting() {
    let root = tempfile::tempdir().unwrap();
    append(&root.path().join("-p/s1.jsonl"), &line(1).repeat(10_000));
    append(&root.path().join("-p/s2.jsonl"), &line(2).repeat(10_000));
    let mut watcher = Watcher::new(&FollowOptions::new());
    watcher.add_folder(root.path());
    let mut files = HashSet::new();
    for _ in 0..200 {
        files.insert(watcher.next_within(LONG).unwrap().unwrap().path);
    }
    assert_eq!(files.len(), 2);
}
