//! `transcript verify`: what people see, and the exit codes.

use std::fs;

use serde_json::Value;

use crate::{command, fixture, sessions, stderr, stdout, transcript};

fn path(name: &str) -> String {
    let path = sessions().join("..").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_clean_session_exits_with_0_and_a_lossy_one_with_3() {
    let output = transcript(&["verify", &fixture("linear.jsonl")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).ends_with("linear.jsonl: clean, Claude Code sees all 7 messages\n"));
    let output = transcript(&["verify", &fixture("rewind.jsonl")]);
    assert_eq!(output.status.code(), Some(1));
    let output = transcript(&["verify", &path("pains/03-dangling.jsonl")]);
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    let expected = "03-dangling.jsonl: lossy, Claude Code sees 2 of 4 messages, transcript 4\n  \
        G-DANGLING  line 3 at byte 1156, ";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("\n    Claude Code shows only what is below"),
        "{text}"
    );
    let output = transcript(&["verify", "nowhere.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_output_of_the_sdk_is_no_damaged_session() {
    let output = transcript(&["verify", &path("stream/talk.jsonl")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = "talk.jsonl: clean, output of the SDK (stream-json), 7 messages\n";
    assert!(stdout(&output).ends_with(expected), "{}", stdout(&output));
    let output = transcript(&["verify", "--json", &path("stream/plain.jsonl")]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["streamForm"], true);
    assert_eq!(report["verdict"], "clean");
    assert_eq!(
        report["visible"],
        serde_json::json!({"vendor": 2, "recover": 2})
    );
    let output = transcript(&["repair", &path("stream/talk.jsonl")]);
    assert!(
        stdout(&output).starts_with("nothing to repair"),
        "{}",
        stdout(&output)
    );
    // Elsewhere the field is absent.
    let output = transcript(&["verify", "--json", &fixture("linear.jsonl")]);
    assert!(!stdout(&output).contains("streamForm"));
}

#[test]
fn a_folder_has_a_line_for_each_session_and_the_findings_of_damaged_ones_below() {
    let output = transcript(&["verify", &path("findings")]);
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    assert!(
        text.starts_with("VERDICT           SEEN    LINES  SESSION\n"),
        "{text}"
    );
    assert!(
        text.contains("\nclean           4 of 4        4  clean.jsonl\n"),
        "{text}"
    );
    assert!(
        text.contains("\nlossy           1 of 4        4  control.jsonl  T-CONTROL\n"),
        "{text}"
    );
    assert!(
        text.contains("\n\ncontrol.jsonl: lossy, Claude Code sees 1 of 4 messages"),
        "{text}"
    );
}

#[test]
fn standard_input_and_recorded_requests_can_be_verified() {
    let file = fs::File::open(fixture("linear.jsonl")).unwrap();
    let mut command = command(&["verify", "--json", "--requests", "-"]);
    let output = command.stdin(file).output().unwrap();
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["path"], "-");
    assert_eq!(report["verdict"], "clean");
    assert_eq!(report["requests"]["recorded"], 0);
    assert_eq!(report["requests"]["versions"], Value::Array(Vec::new()));
}

/// Two sessions of one folder: two requests of 2.1.9, of which one is reproduced, and one of 2.1.10.
pub(crate) fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // The hash of `{"content":[{"text":"Q","type":"text"}],"role":"user"}`.
    let hash = "f308b3410bd71d4164db494f1fcc88175ada108cbf723b07a792396dc201a172";
    let prompt = r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-03-09T14:00:00.000Z","message":{"role":"user","content":"Q"}}"#;
    let request = |id: &str, version: &str, hash: &str| {
        format!(
            r#"{{"type":"api-request","id":"{id}","version":"{version}","keep":0,"tail":["{hash}"]}}"#
        )
    };
    let one = [
        prompt,
        &request("one", "2.1.9", hash),
        &request("two", "2.1.9", "00"),
    ]
    .join("\n");
    let two = [prompt, &request("three", "2.1.10", hash)].join("\n");
    fs::write(folder.path().join("one.jsonl"), one + "\n").unwrap();
    fs::write(folder.path().join("two.jsonl"), two + "\n").unwrap();
    folder
}

#[test]
fn recorded_requests_of_a_folder_are_summed_by_version_below_its_sessions() {
    let folder = recorded();
    let path = folder.path().to_str().unwrap();
    let output = transcript(&["verify", "--requests", path]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    let end = "  one.jsonl  A-RECORD\nclean           1 of 1        2  two.jsonl\n\n\
        2.1.9: 1 of 2 recorded requests reproduced, first difference at one.jsonl, line 3, \
        request two: message 0 (user, from line 1, u1): a message has another hash\n\
        2.1.10: 1 of 1 recorded requests reproduced\n";
    assert!(text.ends_with(end), "{text}");
    // Without the option nothing is said about them.
    let output = transcript(&["verify", path]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!stdout(&output).contains("recorded"), "{}", stdout(&output));
}

#[test]
fn recorded_requests_of_a_session_are_printed_below_its_verdict() {
    let folder = recorded();
    let path = folder.path().join("one.jsonl");
    let path = path.to_str().unwrap();
    let output = transcript(&["verify", "--requests", path]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let expected = "one.jsonl: noted, Claude Code sees all 1 message\n  \
        2.1.9: 1 of 2 recorded requests reproduced, first difference at line 3, request two: \
        message 0 (user, from line 1, u1): a message has another hash\n  A-RECORD  line 3 at byte ";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_last_line_of_json_about_several_sessions_is_the_sum_of_recorded_requests() {
    let folder = recorded();
    let path = folder.path().to_str().unwrap();
    let output = transcript(&["verify", "--json", "--requests", path]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records.len(), 3);
    let first = &records[0]["requests"]["versions"][0]["first"];
    let place = folder.path().join("one.jsonl");
    let expected = serde_json::json!({
        "path": place, "line": 3, "offset": first["offset"], "request": "two",
        "reason": "different-hash",
        "message": {"index": 0, "role": "user", "line": 1, "uuid": "u1"},
    });
    assert_eq!(*first, expected);
    let sum = serde_json::json!({
        "schema": 1, "kind": "sum", "files": 2,
        "requests": {
            "recorded": 3, "reproduced": 2,
            "versions": [
                {"version": "2.1.9", "recorded": 2, "reproduced": 1, "unknown": 0, "first": expected},
                {"version": "2.1.10", "recorded": 1, "reproduced": 1, "unknown": 0},
            ],
        },
    });
    assert_eq!(records[2], sum);
    // Without the option there is no such line.
    let output = transcript(&["verify", "--json", path]);
    assert_eq!(stdout(&output).lines().count(), 2);
}

#[test]
fn nothing_of_a_hostile_file_reaches_the_terminal() {
    let output = transcript(&["verify", &path("hostile")]);
    let text = stdout(&output);
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "{text:?}"
    );
}
