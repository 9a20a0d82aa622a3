//! Entries and sessions are named in the same ways everywhere.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{command, stderr, stdout, transcript};

const ID: &str = "0a5e1b2c-1111-4222-8333-444455556666";
const UUIDS: [&str; 3] = [
    "1234abcd-0000-4000-8000-000000000001",
    "1234abce-0000-4000-8000-000000000002",
    "77aa0002-0000-4000-8000-000000000003",
];

/// A folder of projects with one session of three messages.
fn root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("-work-maps");
    fs::create_dir(&project).unwrap();
    let mut text = String::new();
    for (at, uuid) in UUIDS.iter().enumerate() {
        let kind = ["user", "assistant"][at % 2];
        let parent = at.checked_sub(1).map(|at| UUIDS[at]);
        let content = json!([{"type": "text", "text": format!("SECRET {at}")}]);
        let line = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "timestamp": format!("2026-03-09T14:00:0{at}.000Z"), "sessionId": ID, "cwd": "/work/maps",
            "message": {"role": kind, "id": "m", "model": "m", "content": content}});
        text.push_str(&format!("{line}\n"));
    }
    fs::write(project.join(format!("{ID}.jsonl")), text).unwrap();
    root
}

fn run(root: &Path, arguments: &[&str]) -> Output {
    let root = ["--root", root.to_str().unwrap()];
    transcript(&[arguments, &root].concat())
}

/// Runs a command that must succeed.
fn ok(root: &Path, arguments: &[&str]) -> String {
    let output = run(root, arguments);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?} {}",
        stderr(&output)
    );
    stdout(&output)
}

#[test]
fn every_command_takes_every_name_of_a_session() {
    let root = root();
    let path = root.path().join("-work-maps").join(format!("{ID}.jsonl"));
    for session in [path.to_str().unwrap(), ID, "0a5e", "latest"] {
        for arguments in [
            &["replay", session] as &[&str],
            &["tail", session],
            &["tree", session],
            &["resume", session],
            &["verify", session],
            &["repair", session],
        ] {
            let output = run(root.path(), arguments);
            // `verify` has a note on the test's folder.
            assert!(
                output.status.code() < Some(2),
                "{arguments:?} {}",
                stderr(&output)
            );
            assert!(!output.stdout.is_empty(), "{arguments:?}");
        }
    }
    for command in ["replay", "tail", "tree", "resume"] {
        let output = run(root.path(), &[command]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(
            stderr(&output).contains(path.to_str().unwrap()),
            "{command}"
        );
    }
}

#[test]
fn append_takes_an_id_and_creates_only_paths() {
    let root = root();
    for session in ["0a5e", ID, "latest"] {
        let mut child = command(&["append", session, "--root", root.path().to_str().unwrap()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"{\"op\":\"rewind\",\"to\":1}\n").unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["uuid"], UUIDS[0], "{session} {}", stderr(&output));
    }
    let missing = run(root.path(), &["append", "ffff"]);
    assert_eq!(missing.status.code(), Some(2), "{}", stderr(&missing));
}

#[test]
fn every_option_takes_every_name_of_an_entry() {
    let root = root();
    let whole = ok(
        root.path(),
        &["replay", ID, "--at", UUIDS[1], "--format", "ids"],
    );
    assert_eq!(whole.lines().count(), 2);
    for name in ["2", "1234abce", "1234ABCE-0000"] {
        for option in ["--at", "--leaf"] {
            let shown = ok(
                root.path(),
                &["replay", ID, option, name, "--format", "ids"],
            );
            assert_eq!(shown, whole, "{option} {name}");
            let resumed = ok(root.path(), &["resume", ID, option, name, "--json"]);
            let resumed: Value = serde_json::from_str(&resumed).unwrap();
            assert_eq!(resumed["leaf"], UUIDS[1], "{option} {name}");
        }
        let out = root.path().join(format!("copy-{}.jsonl", name.len()));
        ok(
            root.path(),
            &["fork", ID, "--at", name, "--out", out.to_str().unwrap()],
        );
        let copied = fs::read_to_string(&out).unwrap();
        let copied = copied
            .lines()
            .filter(|line| line.contains("\"forkedFrom\""));
        assert_eq!(copied.count(), 2, "{name}");
        let until = format!("uuid:{name}");
        let shown = ok(
            root.path(),
            &["tail", ID, "--json", "--until", &until, "--timeout", "60"],
        );
        assert_eq!(shown.lines().count(), 2, "{until}");
    }
    for from in ["77aa", "line:3", UUIDS[2]] {
        let shown = ok(root.path(), &["tail", ID, "--json", "--from", from]);
        assert_eq!(shown.lines().count(), 1, "{from}");
        assert!(shown.contains(UUIDS[2]), "{from}");
    }
}

#[test]
fn an_ambiguous_entry_is_refused_with_its_matches_and_without_their_words() {
    let root = root();
    for arguments in [
        &["replay", ID, "--at", "1234"] as &[&str],
        &["resume", ID, "--leaf", "1234"],
        &["fork", ID, "--at", "1234"],
        &["tail", ID, "--from", "1234abc"],
        &["tail", ID, "--until", "uuid:1234"],
    ] {
        let output = run(root.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = stderr(&output);
        for expected in [
            "line 1  2026-03-09 14:00:00  user  1234abcd",
            "line 2  2026-03-09 14:00:01  assistant  1234abce",
        ] {
            assert!(error.contains(expected), "{arguments:?} {error}");
        }
        assert!(!error.contains("SECRET"), "{error}");
        assert!(stdout(&output).is_empty(), "{arguments:?}");
    }
    for (name, what) in [
        ("4", "there is no line 4"),
        ("123", "there is no line 123"),
        ("ffff", "no entry ffff"),
    ] {
        let output = run(root.path(), &["replay", ID, "--at", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(what), "{name} {}", stderr(&output));
    }
}

#[test]
fn replay_and_tree_show_names_that_are_taken() {
    let root = root();
    let shown = ok(root.path(), &["replay", ID, "--ids"]);
    for (at, uuid) in UUIDS.iter().enumerate() {
        let name = format!("line {} · {}", at + 1, &uuid[..8]);
        assert!(shown.contains(&name), "{name} {shown}");
    }
    let output = command(&["tree", ID, "--root", root.path().to_str().unwrap()])
        .env("COLUMNS", "30")
        .output()
        .unwrap();
    let shown = stdout(&output);
    assert!(shown.contains("line 3 · 77aa0002"), "{shown}");
}
