//! A follower changes nothing.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use transcript_tail::{FollowOptions, Follower};

use crate::support::{Running, append, child_of, line, number_of, numbers, place, works};

/// The user and the group that own nothing.
const NOBODY: u32 = 65_534;

/// Follows until `lines` lines were emitted.
pub(crate) fn look(path: &Path, lines: usize) {
    let mut follower = Follower::new(path, &FollowOptions::new());
    let mut emitted = Vec::new();
    while numbers(&emitted).len() < lines {
        let next = follower.next_within(Duration::from_secs(60)).unwrap();
        emitted.push(next.expect("nothing came"));
    }
    assert_eq!(
        number_of(&line(lines - 1, 0)),
        *numbers(&emitted).last().unwrap()
    );
}

/// Does what a reader must not do.
pub(crate) fn meddle(path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.lock().unwrap();
    let times = fs::FileTimes::new().set_accessed(std::time::SystemTime::now());
    File::open(path).unwrap().set_times(times).unwrap();
    fs::rename(path, path.with_extension("old")).unwrap();
}

/// Returns the system calls of a child that name something in the folder, and those of them that a
/// reader must not make.
fn calls(
    task: &str,
    path: &Path,
    words: &[&str],
    beside: impl FnOnce(&Path),
) -> (BTreeMap<String, usize>, Vec<String>) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let strace = [
        "strace",
        "-f",
        "-y",
        "-qq",
        "-o",
        log.path().to_str().unwrap(),
    ];
    let words = [&[path.to_str().unwrap()], words].concat();
    let mut child = Running::start(child_of(&strace, task, &words));
    beside(log.path());
    assert!(child.0.wait().unwrap().success());
    let folder = path.parent().unwrap().to_str().unwrap();
    let (mut calls, mut wrong) = (BTreeMap::new(), Vec::new());
    let log = fs::read_to_string(log.path()).unwrap();
    // The second half of an interrupted call adds nothing.
    let is_whole = |call: &&str| call.contains(folder) && !call.contains(" resumed>");
    for call in log.lines().filter(is_whole) {
        let (before, args) = call.split_once('(').unwrap_or((call, ""));
        let name = before.split_whitespace().last().unwrap_or_default();
        *calls.entry(name.to_owned()).or_default() += 1;
        let writes = [
            "O_WRONLY",
            "O_RDWR",
            "O_CREAT",
            "O_TRUNC",
            "O_APPEND",
            "O_NOATIME",
        ];
        let is_read = match name {
            "openat" | "open" => !writes.iter().any(|flag| args.contains(flag)),
            "fcntl" => ["F_GETFD", "F_SETFD", "F_GETFL"]
                .iter()
                .any(|what| args.contains(what)),
            "stat" | "lstat" | "fstat" | "statx" | "newfstatat" | "readlink" | "readlinkat" => true,
            "read" | "pread64" | "close" | "getdents64" | "inotify_add_watch" | "fstatfs" => true,
            _ => false,
        };
        if !is_read {
            wrong.push(name.to_owned());
        }
    }
    (calls, wrong)
}

#[test]
fn no_call_of_a_follower_writes_locks_or_sets_a_time() {
    if !works(&["strace", "-f", "-qq", "-o", "/dev/null", "true"]) {
        println!("skipped: no strace, or it is not allowed");
        return;
    }
    let (_folder, path) = place();
    let before = path.with_extension("old");
    append(&path, line(0, 0).as_bytes());
    let write = |log: &Path| {
        let deadline = Instant::now() + Duration::from_secs(60);
        // The child cannot read a file to its end that it never opened.
        while !fs::read_to_string(log).unwrap().contains("s1.jsonl>") {
            assert!(Instant::now() < deadline, "it does not look");
            thread::sleep(Duration::from_millis(5));
        }
        for number in 1..60 {
            thread::sleep(Duration::from_millis(3));
            let text = line(number, number * 33);
            append(&path, &text.as_bytes()[..9]);
            append(&path, &text.as_bytes()[9..]);
            if number == 20 {
                fs::rename(&path, &before).unwrap();
            }
        }
    };
    let (made, wrong) = calls("look", &path, &["60"], write);
    println!("strace: {made:?}");
    assert!(made["openat"] >= 2 && made["pread64"] > 60 && made["inotify_add_watch"] > 0);
    assert_eq!(wrong, [""; 0]);
    let (_, wrong) = calls("meddle", &path, &[], |_| ());
    println!("strace, of one that meddles: {wrong:?}");
    for call in ["openat", "flock", "utimensat", "rename"] {
        assert!(
            wrong.iter().any(|wrong| wrong == call),
            "{call} goes unseen"
        );
    }
}

#[test]
fn a_file_that_may_only_be_read_is_followed_and_stays_as_it_is() {
    let (folder, path) = place();
    let all: String = (0..9).map(|number| line(number, number * 99)).collect();
    append(&path, all.as_bytes());
    fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    let mut prefix = vec!["setpriv", &user, &group, "--clear-groups", "--"];
    let binary = std::env::current_exe().unwrap();
    let is_root = chown(&path, Some(NOBODY), Some(NOBODY)).is_ok();
    let can = |what: &str, path: &Path| {
        works(&[&prefix[..], &["test", what, path.to_str().unwrap()]].concat())
    };
    if !is_root || !can("-r", &path) || !can("-x", &binary) {
        println!("not as another user: no root, no setpriv, or the file is out of reach");
        prefix.clear();
    } else {
        assert!(!can("-w", &path));
    }
    let state = || {
        let found = fs::metadata(&path).unwrap();
        let times = (found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        (found.len(), found.mode(), found.uid(), found.mtime(), times)
    };
    let before = state();
    let output = child_of(&prefix, "look", &[path.to_str().unwrap(), "9"])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(state(), before);
    assert_eq!(fs::read_to_string(&path).unwrap(), all);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    println!(
        "0400: 9 lines, read by {}",
        prefix.first().map_or("the owner", |_| "nobody")
    );
}
