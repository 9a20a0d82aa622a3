//! `transcript fork`.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::{command, fixture, sessions, stderr, stdout, transcript};

struct Copied {
    folder: TempDir,
    source: PathBuf,
}

impl Copied {
    fn of(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join(name);
        fs::copy(sessions().join(name), &source).unwrap();
        Self { folder, source }
    }

    fn fork(&self, options: &[&str]) -> PathBuf {
        let arguments = [&["fork", self.source.to_str().unwrap()], options].concat();
        let output = transcript(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        self.folder
            .path()
            .join(format!("{}.jsonl", stdout(&output).trim()))
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The messages, without ids.
fn said(path: &Path, policy: &str) -> Vec<Value> {
    let arguments = [
        "resume",
        path.to_str().unwrap(),
        "--request",
        "--policy",
        policy,
    ];
    let output = transcript(&arguments);
    serde_json::from_str::<Vec<Value>>(&stdout(&output)).unwrap_or_default()
}

#[test]
fn a_fork_of_every_fixture_says_the_same_under_other_ids() {
    for file in fs::read_dir(sessions()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let copied = Copied::of(&name);
        let before = fs::read(&copied.source).unwrap();
        for policy in ["recover", "vendor"] {
            if said(&copied.source, policy).is_empty() {
                assert_eq!((&*name, policy), ("wire-snake-case.jsonl", "vendor"));
                continue;
            }
            let fork = copied.fork(&["--policy", policy]);
            assert_eq!(
                said(&fork, policy),
                said(&copied.source, policy),
                "{name} {policy}"
            );
            let again = Copied {
                folder: tempfile::tempdir().unwrap(),
                source: fork.clone(),
            };
            let again = fork.with_file_name(again.fork(&["--policy", policy]).file_name().unwrap());
            assert_eq!(said(&again, policy), said(&fork, policy), "{name} {policy}");
            let ids = |path| {
                let lines = lines(path).into_iter();
                lines
                    .filter_map(|line| line["uuid"].as_str().map(str::to_owned))
                    .collect::<HashSet<_>>()
            };
            assert!(ids(&fork).is_disjoint(&ids(&again)), "{name}");
        }
        assert_eq!(fs::read(&copied.source).unwrap(), before);
    }
}

#[test]
fn a_fork_may_end_at_any_entry() {
    let copied = Copied::of("rewind.jsonl");
    let all = lines(&copied.source);
    let messages = all.iter().filter(|line| line["message"].is_object());
    let mut was_shorter = false;
    for line in messages {
        let uuid = line["uuid"].as_str().unwrap();
        let fork = copied.fork(&["--at", uuid]);
        let copies: Vec<Value> = lines(&fork);
        let last = copies
            .iter()
            .rfind(|line| line["uuid"].is_string() && line["type"] != "custom-title");
        assert_eq!(last.unwrap()["forkedFrom"]["messageUuid"], uuid);
        was_shorter |= copies.len() < all.len() / 2;
    }
    assert!(was_shorter);
}

#[test]
fn fork_at_a_boundary_is_the_conversation_before_it() {
    let copied = Copied::of("compact-plain.jsonl");
    let all = lines(&copied.source);
    let boundary = all
        .iter()
        .position(|line| line["subtype"] == "compact_boundary")
        .unwrap();
    let fork = copied.fork(&["--at", all[boundary]["uuid"].as_str().unwrap()]);
    let copies = lines(&fork);
    assert!(
        copies
            .iter()
            .all(|line| line["subtype"] != "compact_boundary")
    );
    let old: Vec<&Value> = all[..boundary]
        .iter()
        .filter(|line| line["message"].is_object())
        .collect();
    let copied: Vec<&Value> = copies
        .iter()
        .filter(|line| line["message"].is_object())
        .collect();
    assert!(!old.is_empty());
    assert_eq!(
        copied
            .iter()
            .map(|line| &line["message"])
            .collect::<Vec<_>>(),
        old.iter().map(|line| &line["message"]).collect::<Vec<_>>(),
    );
}

#[test]
fn a_fork_goes_where_it_is_sent_under_the_title_that_it_is_given() {
    let copied = Copied::of("linear.jsonl");
    let out = copied.folder.path().join("mine.jsonl");
    let arguments = [
        "fork",
        copied.source.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
    ];
    let output = transcript(&[&arguments[..], &["--title", "Mine", "--json"]].concat());
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(answer["schema"], 1);
    assert_eq!(answer["path"], out.to_str().unwrap());
    let copies = lines(&out);
    assert!(
        copies
            .iter()
            .all(|line| line["sessionId"] == answer["sessionId"])
    );
    assert_eq!(copies.last().unwrap()["customTitle"], "Mine");

    let again = transcript(&arguments);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("already"), "{}", stderr(&again));
    assert_eq!(lines(&out), copies);
    assert_eq!(fs::read_dir(copied.folder.path()).unwrap().count(), 2);
}

#[test]
fn standard_input_is_copied_to_a_place_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.jsonl");
    for (options, code) in [(&[][..], 2), (&["--out", out.to_str().unwrap()][..], 0)] {
        let mut child = command(&[&["fork", "-"], options].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let text = fs::read(fixture("linear.jsonl")).unwrap();
        // It may have ended before it reads.
        let _ = child.stdin.take().unwrap().write_all(&text);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    }
    assert!(!lines(&out).is_empty());
}

#[test]
fn failed_fork_ends_with_2_and_leaves_nothing() {
    let copied = Copied::of("linear.jsonl");
    let empty = copied.folder.path().join("empty.jsonl");
    fs::write(
        &empty,
        "{\"type\":\"custom-title\",\"customTitle\":\"x\"}\n",
    )
    .unwrap();
    for (path, options) in [(&copied.source, &["--at", "nowhere"][..]), (&empty, &[])] {
        let output = transcript(&[&["fork", path.to_str().unwrap()], options].concat());
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(stdout(&output), "");
        assert!(!stderr(&output).is_empty());
    }
    assert_eq!(fs::read_dir(copied.folder.path()).unwrap().count(), 2);
}
