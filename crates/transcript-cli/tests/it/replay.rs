//! `transcript replay`.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::{command, fixture, sessions, stderr, stdout, transcript};

fn json(session: &str, more: &[&str]) -> Vec<Value> {
    let output = transcript(&[&["replay", "--json", session], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn text_of_the_bundled_session() {
    let output = transcript(&["replay", &fixture("parallel-tools.jsonl")]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn text_marks_gaps_and_explain_says_why() {
    let session = fixture("dangling-parent.jsonl");
    let output = transcript(&["replay", "--explain", &session]);
    let (text, why) = (stdout(&output), stderr(&output));
    assert!(text.contains("goes on from line 4 (likely)"), "{text}");
    assert!(why.contains("decision bridge: "), "{why}");
    assert!(why.contains("finding G-DANGLING: "), "{why}");
    let output = transcript(&["replay", "--explain", "--policy", "vendor", &session]);
    let (text, why) = (stdout(&output), stderr(&output));
    assert!(text.contains("cannot be reached"), "{text}");
    assert!(text.contains("is lost; goes on from line"), "{text}");
    assert!(why.contains("decision relink: "), "{why}");
    assert!(why.contains("decision truncated: "), "{why}");
    assert!(why.contains("decision leaf: "), "{why}");
}

#[test]
fn explain_lists_findings_with_line_and_offset_and_no_content() {
    let output = transcript(&["replay", "--explain", &fixture("glued-lines.jsonl")]);
    let why = stderr(&output);
    assert!(why.contains("finding L-GLUED: line "), "{why}");
    assert!(why.contains(" at byte "), "{why}");
    assert!(!why.contains("\"type\""), "{why}");
    let quiet = transcript(&["replay", "--quiet", &fixture("glued-lines.jsonl")]);
    assert_eq!(stderr(&quiet), "");
}

#[test]
fn json_is_a_head_the_entries_of_the_path_and_an_end() {
    let session = fixture("parallel-tools.jsonl");
    let bytes = fs::read(&session).unwrap();
    let records = json(&session, &[]);
    let (head, end) = (&records[0], &records[records.len() - 1]);
    let entries = &records[1..records.len() - 1];
    assert_eq!(
        (&head["kind"], &head["schema"]),
        (&"session".into(), &1.into())
    );
    assert_eq!(head["lines"], 65);
    assert_eq!(head["policy"], "recover");
    assert_eq!(end["kind"], "end");
    assert!(end["decisions"].as_u64().unwrap() > 0);
    assert!(entries.len() > 40);
    for entry in entries {
        assert_eq!(entry["kind"], "entry");
        let (offset, len) = (
            entry["offset"].as_u64().unwrap(),
            entry["len"].as_u64().unwrap(),
        );
        let line: Value =
            serde_json::from_slice(&bytes[offset as usize..][..len as usize]).unwrap();
        assert_eq!(entry["uuid"], line["uuid"]);
        assert_eq!(entry["parentUuid"], line["parentUuid"]);
        assert_eq!(entry["type"], line["type"]);
        assert_eq!(entry["timestamp"], line["timestamp"]);
        assert_eq!(entry["message"], line["message"]);
    }
    let via = |name: &str| {
        entries
            .iter()
            .filter(|entry| entry["via"][0] == name || entry["via"][1] == name)
            .count()
    };
    assert!(via("sibling") > 0 && via("splice") > 0 && via("parent") > 0);
}

#[test]
fn messages_and_raw_entries_are_verbatim() {
    let line = r#"{"type":"user","b":1e2,"a":[1.50,"\u0041\ud83d"],"uuid":"u1","parentUuid":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","z":0.10,"content":"x\/y"}}"#;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("{line}\n")).unwrap();
    let output = transcript(&[
        "replay",
        "--json",
        "--raw-entries",
        file.path().to_str().unwrap(),
    ]);
    let text = stdout(&output);
    assert!(
        text.contains(r#""message":{"role":"user","z":0.10,"content":"x\/y"}"#),
        "{text}"
    );
    assert!(text.contains(&format!(r#""entry":{line}"#)), "{text}");
}

#[test]
fn ids_are_line_offset_and_uuid_of_the_same_path() {
    for name in [
        "parallel-tools.jsonl",
        "rewind.jsonl",
        "odd-ids.jsonl",
        "duplicate-uuid.jsonl",
    ] {
        let session = fixture(name);
        let output = transcript(&["replay", "--format", "ids", &session]);
        let records = json(&session, &[]);
        let expected: String = records[1..records.len() - 1]
            .iter()
            .map(|entry| {
                format!(
                    "{} {} {}\n",
                    entry["line"],
                    entry["offset"],
                    entry["uuid"].as_str().unwrap_or("-")
                )
            })
            .collect();
        assert_eq!(stdout(&output), expected, "{name}");
    }
}

#[test]
fn every_fixture_replays_in_every_form() {
    for entry in fs::read_dir(sessions()).unwrap() {
        let path = entry.unwrap().path();
        let session = path.to_str().unwrap();
        for format in ["text", "json", "ids"] {
            let output = transcript(&["replay", "--format", format, "--explain", session]);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{session} {format}: {}",
                stderr(&output)
            );
        }
    }
}

#[test]
fn leaf_takes_another_branch_and_at_stops_early() {
    let session = fixture("rewind.jsonl");
    let path = json(&session, &[]);
    let shown: Vec<&str> = path
        .iter()
        .filter_map(|entry| entry["uuid"].as_str())
        .collect();
    let file = fs::read_to_string(&session).unwrap();
    let lines: Vec<Value> = file
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let abandoned = lines
        .iter()
        .filter(|line| line["type"] == "assistant")
        .filter_map(|line| line["uuid"].as_str())
        .find(|uuid| !shown.contains(uuid))
        .unwrap();
    let branch = json(&session, &["--leaf", abandoned]);
    assert_eq!(branch[0]["leaf"], abandoned);
    assert_eq!(branch[branch.len() - 2]["uuid"], abandoned);
    let stopped = json(&session, &["--at", shown[0]]);
    assert_eq!(stopped.len(), 3);
    let output = transcript(&["replay", "--at", abandoned, &session]);
    assert_eq!(output.status.code(), Some(2));
    let output = transcript(&["replay", "--leaf", "nobody", &session]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nobody"));
}

#[test]
fn standard_input_is_read_like_a_file() {
    let session = fixture("parallel-tools.jsonl");
    let from_file = transcript(&["replay", "--format", "ids", &session]);
    let mut child = command(&["replay", "--format", "ids", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&fs::read(&session).unwrap())
        .unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, from_file.stdout);
}

#[test]
fn what_cannot_be_read_ends_with_2_and_names_the_path() {
    let missing = transcript(&["replay", "no-such-file.jsonl"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("no-such-file.jsonl"));
    let folder = transcript(&["replay", sessions().to_str().unwrap()]);
    assert_eq!(folder.status.code(), Some(2));
    assert!(stderr(&folder).contains("not a regular file"));
    let usage = transcript(&["replay", "--format", "xml", "x"]);
    assert_eq!(usage.status.code(), Some(2));
    assert_eq!(transcript(&["--help"]).status.code(), Some(0));
    assert_eq!(transcript(&["--version"]).status.code(), Some(0));
}

#[test]
fn a_closed_pipe_ends_quietly_with_0() {
    // Long enough that it does not fit into a pipe.
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut parent = "null".to_owned();
    let mut text = String::new();
    for n in 0..5_000 {
        text.push_str(&format!(
            r#"{{"parentUuid":{parent},"type":"user","uuid":"u{n}","timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"{}"}}}}"#,
            "x".repeat(100)
        ));
        text.push('\n');
        parent = format!("\"u{n}\"");
    }
    fs::write(file.path(), text).unwrap();
    let mut child = command(&["replay", file.path().to_str().unwrap()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}

#[test]
fn no_control_character_of_a_transcript_reaches_the_terminal() {
    let hostile = "\\u001b]52;c;aGk=\\u0007\\u001b[2J\\r\\u009b1A\\u202e \\u0000 ok";
    let user = format!(
        r#"{{"parentUuid":null,"type":"user","uuid":"u\u001b[31m","sessionId":"\u001b[0m","timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"{hostile}"}}}}"#
    );
    let call = format!(
        r#"{{"parentUuid":"u\u001b[31m","type":"assistant","uuid":"a","timestamp":"2026-01-01T00:00:01.000Z","message":{{"id":"m","role":"assistant","content":[{{"type":"thinking","thinking":"{hostile}","signature":""}},{{"type":"tool_use","id":"t","name":"{hostile}","input":{{"command":"{hostile}"}}}}]}}}}"#
    );
    let result = format!(
        r#"{{"parentUuid":"a","type":"user","uuid":"r","timestamp":"2026-01-01T00:00:02.000Z","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"{hostile}","is_error":true}}]}}}}"#
    );
    let system = format!(
        r#"{{"parentUuid":"r","type":"system","subtype":"{hostile}","content":"{hostile}","uuid":"s","timestamp":"2026-01-01T00:00:03.000Z"}}"#
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("{user}\n{call}\n{result}\n{system}\n")).unwrap();
    let session = file.path().to_str().unwrap();
    for more in [
        &["--thinking", "--tools", "full"][..],
        &["--format", "ids"],
        &["--tools", "short", "--explain"],
    ] {
        let output = transcript(&[&["replay", session], more].concat());
        assert_eq!(output.status.code(), Some(0));
        for text in [stdout(&output), stderr(&output)] {
            let bad = |c: char| c.is_control() && c != '\n' && c != '\t';
            assert!(!text.chars().any(bad), "{more:?}: {text:?}");
            assert!(!text.contains('\u{202e}'));
        }
    }
}

#[test]
fn colour_comes_when_asked_for() {
    let session = fixture("linear.jsonl");
    let plain = transcript(&["replay", &session]);
    let coloured = transcript(&["replay", "--color", "always", &session]);
    assert!(!stdout(&plain).contains('\u{1b}'));
    assert!(stdout(&coloured).contains("\u{1b}["));
}

#[test]
fn help_text() {
    let output = transcript(&["replay", "--help"]);
    insta::assert_snapshot!(stdout(&output));
}
