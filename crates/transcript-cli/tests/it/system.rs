//! `append` and `fork` where the system stands in the way: limits, modes, other users, kills.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::append::user;
use crate::{command, fixture, sessions, stderr, stdout, transcript};

const BINARY: &str = env!("CARGO_BIN_EXE_transcript");
const LINE: &str =
    "{\"type\":\"user\",\"uuid\":\"a\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n";
const NOBODY: u32 = 65_534;

/// Runs the command under a shell that sets something first.
fn under(shell: &str, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new("sh")
        .args(["-c", &format!("{shell}; exec \"$0\" \"$@\""), BINARY])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn append(path: &Path, more: &[&str], input: &str) -> Output {
    let arguments = [&["append", path.to_str().unwrap()], more].concat();
    under(":", &arguments, input)
}

fn answers(output: &Output) -> Vec<Value> {
    let text = stdout(output);
    let lines = text.split_terminator('\n');
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn is_root(folder: &TempDir) -> bool {
    fs::metadata(folder.path()).unwrap().uid() == 0
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_as_a_full_disk_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let commands = format!("{}\n", user(&"x".repeat(150))).repeat(6);
    // In blocks of 512 bytes, or of 1,024.
    let arguments = ["append", "--create", path.to_str().unwrap()];
    let output = under("ulimit -f 1", &arguments, &commands);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let answers = answers(&output);
    assert_eq!(answers.len(), 6);
    assert_eq!(answers[0]["ok"], true);
    assert_eq!(answers[5]["error"]["kind"], "full");
    let written = answers.iter().filter(|answer| answer["ok"] == true).count();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.ends_with('\n'));
    assert_eq!(text.split_terminator('\n').count(), written);
}

#[test]
fn entries_that_readers_would_drop_or_cannot_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut input = String::new();
    for text in [r"a\u0000b", r"\ud83d", r"\ude00\ud83d"] {
        let entry = format!(r#"{{"type":"user","message":{{"role":"user","content":"{text}"}}}}"#);
        input += &format!("{{\"op\":\"append\",\"entry\":{entry}}}\n");
        input += &format!("{{\"op\":\"record\",\"messages\":[{entry}]}}\n");
        input +=
            &format!("{{\"op\":\"meta\",\"entry\":{{\"type\":\"tag\",\"tag\":\"{text}\"}}}}\n");
    }
    input += "{\"op\":\"append\",\"user\":\"a\\u0000b\"}\n";
    let refused = input.split_terminator('\n').count();
    input += &format!("{}\n", user("\u{1F600}"));
    let output = append(&path, &["--create"], &input);
    let answers = answers(&output);
    let (last, failed) = answers.split_last().unwrap();
    assert_eq!(failed.len(), refused);
    for answer in failed {
        assert_eq!(answer["error"]["kind"], "invalid-entry", "{answer}");
    }
    assert_eq!(last["ok"], true);
    assert_eq!(
        fs::read_to_string(&path)
            .unwrap()
            .split_terminator('\n')
            .count(),
        1
    );
}

/// A session with this number of entries of `bytes` each.
fn long_session(path: &Path, entries: usize, bytes: usize) {
    let text = "y".repeat(bytes);
    let mut lines = String::new();
    for number in 0..entries {
        let parent = match number.checked_sub(1) {
            Some(before) => json!(format!("{before:08x}-0000-4000-8000-000000000000")),
            None => Value::Null,
        };
        let line = json!({"type": "user", "uuid": format!("{number:08x}-0000-4000-8000-000000000000"),
            "parentUuid": parent, "message": {"role": "user", "content": text}});
        lines += &format!("{line}\n");
    }
    fs::write(path, lines).unwrap();
}

#[test]
fn a_fork_that_is_killed_leaves_the_whole_copy_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("s.jsonl");
    let entries = 300;
    long_session(&source, entries, 20_000);
    let (mut killed, mut copies) = (0, 0);
    for number in 0..60 {
        let mut child: Child = command(&["fork", source.to_str().unwrap()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(number % 30));
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
    }
    for name in names(folder.path()) {
        assert!(name.ends_with(".jsonl"), "{name}");
        let text = fs::read_to_string(folder.path().join(&name)).unwrap();
        // The title is one line more.
        assert!(text.split_terminator('\n').count() >= entries, "{name}");
        copies += 1;
    }
    assert!(killed > 10, "{killed} killed, {copies} files");
}

#[test]
fn a_fork_removes_what_older_versions_left_of_killed_ones() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("s.jsonl");
    fs::write(&source, LINE).unwrap();
    for (name, age) in [
        (".fork-aB3dEf", 3600),
        (".fork-aB3dEg", 0),
        (".notes", 3600),
    ] {
        let file = fs::File::create(folder.path().join(name)).unwrap();
        let at = std::time::SystemTime::now() - Duration::from_secs(age);
        file.set_modified(at).unwrap();
    }
    let output = transcript(&["fork", source.to_str().unwrap()]);
    let copy = format!("{}.jsonl", stdout(&output).trim());
    let mut expected = [".fork-aB3dEg", ".notes", "s.jsonl", &copy];
    expected.sort_unstable();
    assert_eq!(names(folder.path()), expected);
}

#[test]
fn the_files_of_append_and_fork_are_their_owners_whatever_the_umask() {
    for umask in ["000", "022", "077", "0777"] {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("s.jsonl");
        fs::write(&source, format!("{LINE}{{\"type\":\"us")).unwrap();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o600)).unwrap();
        let source = source.to_str().unwrap();
        let shell = format!("umask {umask}");
        for arguments in [&["fork", source][..], &["append", source]] {
            let output = under(&shell, arguments, &format!("{}\n", user("x")));
            assert_eq!(output.status.code(), Some(0), "{umask}: {output:?}");
        }
        let all = names(folder.path());
        assert_eq!(all.len(), 3, "{all:?}");
        for name in all {
            let mode = fs::metadata(folder.path().join(&name)).unwrap().mode() & 0o7777;
            assert_eq!(mode, 0o600, "umask {umask}: {name} has {mode:o}");
        }
    }
}

#[test]
fn writers_that_start_together_on_a_new_session_all_get_in() {
    for _ in 0..25 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let arguments = [
            "append",
            "--create",
            "--on-busy",
            "wait",
            path.to_str().unwrap(),
        ];
        let children: Vec<Child> = (0..8)
            .map(|_| {
                let mut child = command(&arguments)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap();
                let line = format!("{}\n", user("x"));
                child
                    .stdin
                    .take()
                    .unwrap()
                    .write_all(line.as_bytes())
                    .unwrap();
                child
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        }
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.split_terminator('\n').count(), 8);
    }
}

/// Starts the command under strace, which makes it slow at each of these system calls; `None` where
/// there is no strace.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn start_slowly(call: &str, millis: u64, arguments: &[&str]) -> Option<Child> {
    let strace = |more: &[&str]| {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null"]).args(more);
        command
    };
    if !strace(&["true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        println!("skipped: no strace, or it is not allowed");
        return None;
    }
    let inject = format!("inject={call}:delay_exit={}", millis * 1000);
    let mut child = strace(&["-e", &format!("trace={call}"), "-e", &inject, BINARY])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = format!("{}\n", user("slow"));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    Some(child)
}

#[test]
fn a_session_that_appears_while_it_is_to_be_made_is_opened() {
    // Somewhere in between the slow one has looked and found nothing.
    for pause in (20..260).step_by(40) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let arguments = [
            "append",
            "--create",
            "--on-busy",
            "wait",
            path.to_str().unwrap(),
        ];
        let Some(slow) = start_slowly("statx", 80, &arguments) else {
            return;
        };
        sleep(Duration::from_millis(pause));
        let fast = append(&path, &arguments[1..4], &format!("{}\n", user("fast")));
        assert_eq!(fast.status.code(), Some(0), "{pause}: {}", stderr(&fast));
        let slow = slow.wait_with_output().unwrap();
        assert_eq!(slow.status.code(), Some(0), "{pause}: {}", stderr(&slow));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.split_terminator('\n').count(), 2);
    }
}

#[test]
fn opening_a_session_during_the_check_for_writers_hurts_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, LINE).unwrap();
    let arguments = ["append", "--on-busy", "wait", path.to_str().unwrap()];
    let Some(slow) = start_slowly("fcntl", 700, &arguments) else {
        return;
    };
    // It has the file open by then, and asks: before that it would only see that others write.
    sleep(Duration::from_millis(300));
    let other = path.clone();
    let foreign = std::thread::spawn(move || {
        for _ in 0..50 {
            drop(fs::OpenOptions::new().append(true).open(&other).unwrap());
            sleep(Duration::from_millis(40));
        }
    });
    for _ in 0..8 {
        let fast = append(&path, &arguments[1..3], &format!("{}\n", user("fast")));
        assert_eq!(fast.status.code(), Some(0), "{}", stderr(&fast));
        sleep(Duration::from_millis(100));
    }
    let slow = slow.wait_with_output().unwrap();
    foreign.join().unwrap();
    assert_eq!(
        slow.status.code(),
        Some(0),
        "{:?}: {}",
        slow.status,
        stderr(&slow)
    );
    assert_eq!(
        fs::read_to_string(&path)
            .unwrap()
            .split_terminator('\n')
            .count(),
        10
    );
}

#[test]
fn a_session_that_others_may_write_to_is_remarked_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    for (mode, is_remarked) in [(0o666, true), (0o660, true), (0o602, true), (0o644, false)] {
        fs::write(&path, LINE).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let said = stderr(&append(&path, &[], ""));
        assert_eq!(
            said.contains("other users may write"),
            is_remarked,
            "{mode:o}: {said}"
        );
        assert_eq!(stderr(&append(&path, &["-q"], "")), "");
    }
}

#[test]
fn unsuitable_file_for_appends_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("s.jsonl"), LINE).unwrap();
    symlink(at("s.jsonl"), at("link.jsonl")).unwrap();
    fs::write(at("two.jsonl"), LINE).unwrap();
    fs::hard_link(at("two.jsonl"), at("second.jsonl")).unwrap();
    let mut cases = vec![
        ("link.jsonl", "symbolic link"),
        ("two.jsonl", "2 hard links"),
    ];
    if is_root(&folder) {
        fs::write(at("other.jsonl"), LINE).unwrap();
        chown(at("other.jsonl"), Some(NOBODY), None).unwrap();
        cases.push(("other.jsonl", "another user (uid 65534)"));
    }
    for (name, reason) in cases {
        let output = append(&at(name), &[], "");
        assert_eq!(output.status.code(), Some(2), "{name}");
        let said = stderr(&output);
        assert!(said.contains(reason), "{name}: {said}");
        assert!(!said.contains("invalid input parameter"), "{said}");
    }
}

#[test]
fn no_session_is_made_where_another_user_could_replace_it() {
    let folder = tempfile::tempdir().unwrap();
    if !is_root(&folder) {
        return;
    }
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    chown(&shared, Some(NOBODY), None).unwrap();
    let source = fixture(&names(&sessions())[0]);
    for (mode, is_refused) in [(0o1777, true), (0o777, true), (0o755, false)] {
        fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
        let path = shared.join(format!("{mode:o}.jsonl"));
        let output = append(&path, &["--create"], &format!("{}\n", user("x")));
        let said = answers(&output).remove(0);
        assert_eq!(said["ok"], !is_refused, "{mode:o}: {said}");
        if is_refused {
            assert_eq!(said["error"]["kind"], "not-allowed");
            assert!(said.to_string().contains("another user"), "{said}");
        }
        let copy = shared.join(format!("{mode:o}-copy.jsonl"));
        let output = transcript(&["fork", &source, "--out", copy.to_str().unwrap()]);
        assert_eq!(
            output.status.success(),
            !is_refused,
            "{mode:o}: {}",
            stderr(&output)
        );
        assert_eq!(path.exists() && copy.exists(), !is_refused);
    }
}

#[test]
fn commands_that_look_write_nothing_and_need_no_right_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    // A turn without an answer, and half a line: opening it for writing would change both.
    fs::write(&path, format!("{LINE}{{\"type\":\"assis")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let state = || {
        let metadata = fs::metadata(&path).unwrap();
        let times = (
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime_nsec(),
        );
        (fs::read(&path).unwrap(), times, names(folder.path()))
    };
    let is_root = is_root(&folder);
    if is_root {
        chown(&path, Some(NOBODY), None).unwrap();
    }
    let before = state();
    let name = path.to_str().unwrap();
    for arguments in [
        &["resume", name][..],
        &["resume", "--request", name],
        &["resume", "--json", name],
        &["replay", name],
        &["tree", name],
        &["tail", name],
        &["list", "--root", folder.path().to_str().unwrap()],
    ] {
        let mut command = command(arguments);
        if is_root {
            // For root a mode is no obstacle.
            command.uid(NOBODY).gid(NOBODY);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(state() == before, "{arguments:?}");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_torn_tail_in_a_folder_that_takes_no_file_is_sealed_and_the_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let torn = "{\"type\":\"assis";
    fs::write(&path, format!("{LINE}{torn}")).unwrap();
    let is_root = is_root(&folder);
    if is_root {
        chown(&path, Some(NOBODY), None).unwrap();
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = command(&["append", path.to_str().unwrap()]);
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = format!("{}\n", user("on"));
    child
        .stdin
        .take()
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("cannot be saved elsewhere"),
        "{}",
        stderr(&output)
    );
    assert_eq!(names(folder.path()), ["s.jsonl"]);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&format!("{LINE}{torn}\n{{")), "{text}");
}
