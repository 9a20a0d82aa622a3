//! `transcript replay`.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

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

fn text(arguments: &[&str], columns: &str) -> String {
    let mut command = command(&[&["replay"], arguments].concat());
    let output = command
        .env("COLUMNS", columns)
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn text_fits_narrow_and_wide_pages() {
    let session = fixture("parallel-tools.jsonl");
    insta::assert_snapshot!("text_in_40_columns", text(&[&session], "40"));
    insta::assert_snapshot!("text_in_120_columns", text(&[&session], "120"));
}

#[test]
fn text_with_everything_about_tools() {
    let session = fixture("parallel-tools.jsonl");
    let shown = text(&["--tools", "full", "--thinking", &session], "80");
    insta::assert_snapshot!(shown);
    let shown = text(&["--tools", "none", &session], "80");
    assert!(
        !shown.contains('▸') && shown.contains("Found it."),
        "{shown}"
    );
}

#[test]
fn markdown_is_a_document() {
    let session = fixture("parallel-tools.jsonl");
    insta::assert_snapshot!(text(&["--format", "markdown", &session], "80"));
}

#[test]
fn each_branch_comes_once_and_says_where_it_leaves() {
    let session = fixture("rewind.jsonl");
    insta::assert_snapshot!(text(&["--all-branches", &session], "80"));
    let records = json(&session, &["--all-branches"]);
    let mut lines: Vec<u64> = records
        .iter()
        .filter_map(|record| record["line"].as_u64())
        .collect();
    let shown = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), shown);
    let branch = records
        .iter()
        .find(|record| record["kind"] == "branch")
        .unwrap();
    assert!(branch["from"].is_string() && branch["leaf"].is_string());
}

#[test]
fn subagents_are_below_their_calls() {
    let pains = sessions().join("../pains/20-subagents.jsonl");
    let folded = text(&[pains.to_str().unwrap()], "80");
    assert!(
        folded.contains("subagent a7c41e90; --sidechains shows it"),
        "{folded}"
    );
    insta::assert_snapshot!(text(&["--sidechains", pains.to_str().unwrap()], "80"));
    let in_file = fixture("sidechain-in-file.jsonl");
    insta::assert_snapshot!(
        "subagent_in_the_same_file",
        text(&["--sidechains", &in_file], "80")
    );
    let records = json(&in_file, &["--sidechains"]);
    assert!(records.iter().any(|record| record["kind"] == "sidechain"));
}

#[test]
fn a_subagent_that_a_rewound_call_started_is_in_its_branch() {
    const ID: &str = "00000000-0000-4000-8000-00000000b0a7";
    let folder = tempfile::tempdir().unwrap();
    let entry = |number: u32, parent: u32, kind: &str, message: Value| {
        let uuid =
            |number: u32| (number > 0).then(|| format!("{number:08}-0000-4000-8000-000000000000"));
        json!({"type": kind, "uuid": uuid(number), "parentUuid": uuid(parent), "sessionId": ID,
            "timestamp": format!("2026-01-01T00:00:{number:02}.000Z"), "message": message})
    };
    let user = |number, parent, text: &str| {
        entry(
            number,
            parent,
            "user",
            json!({"role": "user", "content": text}),
        )
    };
    let answer = |number, parent, block: Value| {
        let message = json!({"id": format!("m{number}"), "role": "assistant", "content": [block]});
        entry(number, parent, "assistant", message)
    };
    let call = json!({"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "look"}});
    let lines = |entries: &[Value]| -> String {
        entries.iter().map(|entry| format!("{entry}\n")).collect()
    };
    let session = folder.path().join(format!("{ID}.jsonl"));
    let main = [
        user(1, 0, "first"),
        answer(2, 1, json!({"type": "text", "text": "yes"})),
        user(3, 2, "rewound"),
        answer(4, 3, call),
        user(5, 2, "instead"),
        answer(6, 5, json!({"type": "text", "text": "done"})),
    ];
    fs::write(&session, lines(&main)).unwrap();
    let agents = folder.path().join(ID).join("subagents");
    fs::create_dir_all(&agents).unwrap();
    let mut inner = user(1, 0, "look");
    inner["isSidechain"] = json!(true);
    inner["agentId"] = json!("a1");
    fs::write(agents.join("agent-a1.jsonl"), lines(&[inner])).unwrap();
    fs::write(agents.join("agent-a1.meta.json"), r#"{"toolUseId":"t1"}"#).unwrap();

    let session = session.to_str().unwrap();
    let parts = ["--all-branches", "--sidechains"];
    let shown = text(&[&parts, &[session][..]].concat(), "80");
    let place = |part: &str| {
        shown
            .find(part)
            .unwrap_or_else(|| panic!("{part} in {shown}"))
    };
    assert!(place("done") < place("rewound"), "{shown}");
    assert!(place("rewound") < place("subagent a1"), "{shown}");
    let shown = text(&[&parts, &["--format", "html", session][..]].concat(), "80");
    let place = |part: &str| shown.find(part).unwrap_or_else(|| panic!("no {part}"));
    assert!(place("Another branch leaves here") < place("subagent a1"));
    assert!(place("subagent a1") < place("instead"));
}

#[test]
fn since_and_until_leave_out_what_lies_outside() {
    let session = fixture("parallel-tools.jsonl");
    let times = |more: &[&str]| -> Vec<String> {
        let records = json(&session, more);
        let times = records
            .iter()
            .filter_map(|record| record["timestamp"].as_str());
        times.map(str::to_owned).collect()
    };
    let (start, end) = ("2026-02-28T16:43:10Z", "2026-02-28T17:44:00+01:00");
    let all = times(&[]);
    let inside = times(&["--since", start, "--until", end]);
    let expected: Vec<&String> = all
        .iter()
        .filter(|time| ("2026-02-28T16:43:10".."2026-02-28T16:44:00").contains(&time.as_str()))
        .collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    assert_eq!(inside.iter().collect::<Vec<_>>(), expected);
    assert_eq!(times(&["--since", "1h"]), [""; 0]);
    let refused = transcript(&["replay", "--since", "soon", &session]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--since"));
}

/// With pauses a conversation is printed from one list and by one thread.
#[test]
fn a_long_conversation_is_printed_in_parts_as_it_is_as_a_whole() {
    let mut lines = String::new();
    let mut last = Value::Null;
    let mut add = |turn: usize, part: usize, kind: &str, message: Value, more: Value| {
        let uuid = format!("00000000-0000-4000-8000-{turn:08}{part:04}");
        let (day, minute) = (1 + turn / 100, turn % 60);
        let mut entry = json!({
            "type": kind, "uuid": uuid, "parentUuid": last, "message": message,
            "timestamp": format!("2026-01-{day:02}T{:02}:{minute:02}:{part:02}.000Z", turn / 60),
        });
        let members = entry.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        lines.push_str(&format!("{entry}\n"));
        last = json!(uuid);
    };
    for turn in 0..500 {
        let text = "**many** words of a turn ".repeat(1 + turn % 40);
        let said = match turn % 7 {
            3 => "<command-name>/clear</command-name>".to_owned(),
            5 => "<system-note>of the client</system-note>".to_owned(),
            _ => format!("{turn}: {text}"),
        };
        let folder = match turn % 11 {
            0 => json!({}),
            _ => json!({"cwd": format!("/home/ada/{}", turn % 3)}),
        };
        add(
            turn,
            0,
            "user",
            json!({"role": "user", "content": said}),
            folder,
        );
        let call = json!({"type": "tool_use", "id": format!("t{turn}"), "name": "Read",
            "input": {"file_path": format!("/home/ada/1/{turn}.rs")}});
        let usage = json!({"input_tokens": turn, "output_tokens": 7});
        let answer = json!({"role": "assistant", "id": format!("m{turn}"), "content": [call],
            "usage": usage});
        add(turn, 1, "assistant", answer, json!({}));
        // Some results come two turns later, one of them has none.
        let answered = match turn % 50 {
            20 | 21 | 47 => None,
            22 | 23 => Some(turn - 2),
            _ => Some(turn),
        };
        if let Some(answered) = answered {
            let result = json!({"type": "tool_result", "tool_use_id": format!("t{answered}"),
                "content": text});
            add(
                turn,
                2,
                "user",
                json!({"role": "user", "content": [result]}),
                json!({}),
            );
        }
        let text = json!({"type": "text", "text": text});
        add(
            turn,
            3,
            "assistant",
            json!({"role": "assistant", "content": [text]}),
            json!({}),
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.jsonl");
    fs::write(&path, lines).unwrap();
    let path = path.to_str().unwrap();
    for columns in ["40", "100"] {
        let whole = text(&["--speed", "1e15", path], columns);
        assert!(whole.matches("▸ Read").count() == 500, "{whole}");
        assert_eq!(text(&[path], columns), whole);
    }
}

#[test]
fn speed_changes_when_text_comes_and_not_what_comes() {
    let session = fixture("linear.jsonl");
    let at_once = text(&[&session], "80");
    assert_eq!(text(&["--speed", "1e12", &session], "80"), at_once);
    let refused = transcript(&["replay", "--speed", "2", "--json", &session]);
    assert_eq!(refused.status.code(), Some(2));
    let refused = transcript(&["replay", "--speed", "0", &session]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_hook_that_stopped_a_turn_is_printed() {
    let lines = [
        r#"{"parentUuid":null,"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"Go on."}}"#,
        r#"{"parentUuid":"u","type":"system","subtype":"stop_hook_summary","toolUseID":"h","hookCount":1,"uuid":"s","timestamp":"2026-01-01T00:00:01.000Z"}"#,
        r#"{"parentUuid":"s","type":"attachment","attachment":{"type":"hook_blocking_error","hookName":"Stop","hookEvent":"Stop","toolUseID":"h"},"uuid":"a","timestamp":"2026-01-01T00:00:02.000Z"}"#,
    ];
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), lines.join("\n") + "\n").unwrap();
    let session = file.path().to_str().unwrap();
    for more in [&[][..], &["--tools", "none"], &["--format", "markdown"]] {
        let shown = text(&[&[session], more].concat(), "80");
        assert!(
            shown.contains("hook Stop failed or stopped the turn"),
            "{shown}"
        );
    }
}

#[test]
fn there_is_no_pager_when_output_is_piped() {
    let session = fixture("linear.jsonl");
    let plain = text(&[&session], "80");
    let output = command(&["replay", &session])
        .env("PAGER", "false")
        .output();
    assert_eq!(stdout(&output.unwrap()), plain);
}

#[test]
fn completions_and_manual_know_every_command() {
    // Three shells ask the command, which knows them.
    for (shell, word) in [
        ("bash", "__complete"),
        ("zsh", "__complete"),
        ("fish", "__complete"),
        ("elvish", "replay"),
        ("powershell", "replay"),
    ] {
        let output = transcript(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains(word), "{shell}");
    }
    let page = stdout(&transcript(&["man"]));
    assert!(
        page.contains(".TH transcript 1") && page.contains("resume"),
        "{page}"
    );
    let page = stdout(&transcript(&["man", "replay"]));
    assert!(page.contains("\\-\\-all\\-branches"), "{page}");
    assert_eq!(transcript(&["man", "nothing"]).status.code(), Some(2));
}

#[test]
fn text_marks_gaps_and_explain_says_why() {
    let session = fixture("dangling-parent.jsonl");
    let output = transcript(&["replay", "--explain", &session]);
    let (text, why) = (stdout(&output), stderr(&output));
    assert!(text.contains("continues from line 4 (likely)"), "{text}");
    assert!(why.contains("decision bridge: "), "{why}");
    assert!(why.contains("finding G-DANGLING: "), "{why}");
    let output = transcript(&["replay", "--explain", "--policy", "vendor", &session]);
    let (text, why) = (stdout(&output), stderr(&output));
    assert!(text.contains("cannot be reached"), "{text}");
    assert!(text.contains("is missing; continues from line"), "{text}");
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
        for format in ["text", "markdown", "json", "ids"] {
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
fn unreadable_file_ends_with_2_and_names_the_path() {
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
            let bad = |c: char| c.is_control() && c != '\n';
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

/// A session of these entries, each under the one before.
fn session(entries: &[Value]) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::Builder::new()
        .suffix(".jsonl")
        .tempfile()
        .unwrap();
    let mut text = String::new();
    for (number, entry) in entries.iter().enumerate() {
        let mut entry = entry.clone();
        entry["uuid"] = format!("u{number}").into();
        entry["parentUuid"] = match number.checked_sub(1) {
            Some(before) => format!("u{before}").into(),
            None => Value::Null,
        };
        entry["timestamp"] = format!("2026-01-01T00:00:{number:02}.000Z").into();
        entry["cwd"] = "/home/ada/tides".into();
        entry["gitBranch"] = "main".into();
        text.push_str(&format!("{entry}\n"));
    }
    fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

fn user(content: &str) -> Value {
    serde_json::json!({"type": "user", "message": {"role": "user", "content": content}})
}

/// A call and its result.
fn call(tool: &str, input: &Value, result: &str) -> [Value; 2] {
    [
        serde_json::json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "model": "model-1",
            "content": [{"type": "tool_use", "id": "t1", "name": tool, "input": input}], "usage": {"input_tokens": 1200, "output_tokens": 7}}}),
        serde_json::json!({"type": "user", "message": {"role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": result}]}}),
    ]
}

#[test]
fn the_lines_of_a_command_are_below_each_other() {
    let command = "cat README.md | head -3\n\techo `date`\n";
    let [asked, answered] = call("Bash", &serde_json::json!({"command": command}), "ok");
    let (_file, path) = session(&[user("Go"), asked, answered]);
    for command in ["replay", "tail"] {
        let shown = stdout(&transcript(&[command, &path]));
        let lines = "▸ Bash cat README.md | head -3\n                      echo `date`\n";
        assert!(shown.contains(lines), "{shown}");
    }
    let shown = stdout(&transcript(&["replay", "--format", "markdown", &path]));
    let block = "**Bash**\n\n```sh\ncat README.md | head -3\necho `date`\n```\n";
    assert!(shown.replace("    echo", "echo").contains(block), "{shown}");
    let long: String = (0..40).map(|line| format!("line {line}\n")).collect();
    let [asked, answered] = call("Bash", &serde_json::json!({"command": long}), "ok");
    let (_file, path) = session(&[user("Go"), asked, answered]);
    let shown = stdout(&transcript(&["replay", &path]));
    assert!(
        shown.contains("⋯ 34 more lines") && !shown.contains("line 6"),
        "{shown}"
    );
}

#[test]
fn colours_of_tools_and_of_the_client_are_dropped_and_nothing_else_is() {
    let result = "\u{1b}[96msrc/a.rs\u{1b}[0m:1 \u{1b}[2J";
    let [asked, answered] = call("Grep", &serde_json::json!({"pattern": "a"}), result);
    let printed =
        "<local-command-stdout>Set model to \u{1b}[1mOpus\u{1b}[22m</local-command-stdout>";
    let (_file, path) = session(&[user("Go \u{1b}[1m"), asked, answered, user(printed)]);
    for arguments in [
        &["replay"][..],
        &["tail"],
        &["replay", "--tools", "full"],
        &["replay", "--format", "markdown"],
    ] {
        let shown = stdout(&transcript(&[arguments, &[&path]].concat()));
        assert!(
            shown.contains("Set model to Opus"),
            "{arguments:?}: {shown}"
        );
        assert!(shown.contains("src/a.rs:1 <ESC>"), "{arguments:?}: {shown}");
        assert!(!shown.contains("96m"), "{arguments:?}: {shown}");
    }
}

#[test]
fn text_of_the_client_in_tags_is_not_text_of_a_person() {
    let notice = "<ide_opened_file>The person opened tides.rs.</ide_opened_file>";
    let prompts = [
        user(notice),
        user("When is high water?"),
        user("<div>x</div> is not centred"),
    ];
    let (_file, path) = session(&prompts);
    for command in ["replay", "tail"] {
        let shown = stdout(&transcript(&[command, &path]));
        assert!(shown.contains("client     <ide_opened_file>"), "{shown}");
        assert!(shown.contains("user       When is high water?"), "{shown}");
        assert!(
            shown.contains("user       <div>x</div> is not centred"),
            "{shown}"
        );
    }
    let shown = stdout(&transcript(&["replay", "--format", "markdown", &path]));
    assert!(
        shown.find("## User").unwrap() > shown.find("opened tides.rs").unwrap(),
        "{shown}"
    );
    let tree: Value =
        serde_json::from_str(&stdout(&transcript(&["tree", "--json", &path]))).unwrap();
    assert_eq!(tree["branches"][0]["prompts"], 2);
    // No turn starts with it: a text before it stands in the last turn.
    let (_file, path) = session(&[user("When is high water?"), user(notice)]);
    let waited = transcript(&["tail", "--until", "text:When", "--timeout", "20", &path]);
    assert_eq!(waited.status.code(), Some(0), "{}", stderr(&waited));
}

#[test]
fn a_prompt_cannot_change_the_markdown_around_it() {
    let prompt = "# not a heading\n<script>alert(1)</script>\n```\nleft open";
    let [asked, answered] = call("Bash", &serde_json::json!({"command": "ls"}), "````\n```");
    let said = serde_json::json!({"type": "assistant", "message": {"id": "m2", "role": "assistant", "model": "model-1",
        "content": [{"type": "text", "text": "# A heading\n<b>bold</b>\n\n~~~\nleft open, too"}]}});
    let (_file, path) = session(&[user(prompt), asked, answered, said, user("last")]);
    let shown = stdout(&transcript(&["replay", "--format", "markdown", &path]));
    insta::assert_snapshot!(shown.lines().skip(2).collect::<Vec<_>>().join("\n"));
}

#[test]
fn empty_file_is_reported_as_empty() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = transcript(&["replay", file.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "the file is empty\n");
}

/// The uuids of the entries of a replay.
fn uuids(records: &[Value]) -> Vec<&Value> {
    let entries = records.iter().filter(|record| record["kind"] == "entry");
    entries.map(|entry| &entry["uuid"]).collect()
}

#[test]
fn the_context_is_what_resume_continues() {
    let mut files: Vec<_> = fs::read_dir(sessions())
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    match transcript_testkit::shared() {
        Some(shared) => {
            for folder in fs::read_dir(shared.join("corpus/files")).unwrap() {
                let folder = folder.unwrap().path();
                let found = fs::read_dir(folder).unwrap();
                files.extend(found.map(|file| file.unwrap().path()));
            }
        }
        None => println!("skipped: no shared data"),
    }
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    let mut chapters = 0;
    for file in files {
        let session = file.to_str().unwrap();
        let output = transcript(&["resume", "--json", "--full", session]);
        let Ok(resumed) = serde_json::from_str::<Value>(&stdout(&output)) else {
            continue;
        };
        let Some(entries) = resumed["entries"]
            .as_array()
            .filter(|_| resumed["resumable"] == true)
        else {
            continue;
        };
        let context = json(session, &["--context"]);
        assert_eq!(
            uuids(&context),
            entries.iter().collect::<Vec<_>>(),
            "{session}"
        );
        assert!(context[0].get("chapters").is_none());
        let story = json(session, &[]);
        let offsets = |records: &[Value]| -> Vec<u64> {
            let seen = records.iter().filter(|record| record["inContext"] == true);
            let mut offsets: Vec<_> = seen
                .map(|entry| entry["offset"].as_u64().unwrap())
                .collect();
            offsets.sort_unstable();
            offsets
        };
        assert_eq!(offsets(&story), offsets(&context), "{session}");
        chapters += story[0]["chapters"].as_u64().unwrap();
        if story[0]["chapters"] == 1 {
            assert_eq!(uuids(&story), uuids(&context), "{session}");
        }
    }
    assert!(chapters > 22, "{chapters}");
}

/// Two compactions; the first keeps the second turn, the second one the third.
fn chapters() -> tempfile::NamedTempFile {
    let mut lines = String::new();
    let mut add = |uuid: &str, parent: Option<&str>, kind: &str, more: Value| {
        let minute = lines.lines().count();
        let mut line = json!({"type": kind, "uuid": uuid, "parentUuid": parent,
            "timestamp": format!("2026-01-01T10:{minute:02}:00.000Z")});
        if kind != "system" {
            let content = json!([{"type": "text", "text": format!("text of {uuid}")}]);
            line["message"] = json!({"role": kind, "content": content});
        }
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        lines.push_str(&format!("{line}\n"));
    };
    let boundary = |logical: &str, before: u64, kept: Value| {
        json!({"subtype": "compact_boundary", "logicalParentUuid": logical, "compactMetadata":
            {"trigger": "auto", "preTokens": before, "postTokens": 900, "preservedMessages": kept}})
    };
    let summary = json!({"isCompactSummary": true, "isVisibleInTranscriptOnly": true});
    add("u1", None, "user", json!({}));
    add("a1", Some("u1"), "assistant", json!({}));
    add("u2", Some("a1"), "user", json!({}));
    add("a2", Some("u2"), "assistant", json!({}));
    let kept = json!({"anchorUuid": "s1", "uuids": ["u2", "a2"]});
    add("b1", None, "system", boundary("a2", 150_000, kept));
    add("s1", Some("b1"), "user", summary.clone());
    add("u3", Some("a2"), "user", json!({}));
    add("a3", Some("u3"), "assistant", json!({}));
    let kept = json!({"anchorUuid": "s2", "uuids": ["u3", "a3"]});
    add("b2", None, "system", boundary("lost", 160_000, kept));
    add("s2", Some("b2"), "user", summary);
    add("u4", Some("a3"), "user", json!({}));
    let file = tempfile::NamedTempFile::with_suffix(".jsonl").unwrap();
    fs::write(file.path(), lines).unwrap();
    file
}

#[test]
fn compacted_history_is_shown_in_chapters() {
    let file = chapters();
    let session = file.path().to_str().unwrap();
    let mut command = command(&["replay", session]);
    let output = command
        .env("COLUMNS", "100")
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let name = file.path().to_str().unwrap();
    let stem = file.path().file_stem().unwrap().to_str().unwrap();
    let shown = stdout(&output).replace(name, "PATH").replace(stem, "NAME");
    insta::assert_snapshot!("chapters", shown);
    let markdown = text(&["--format", "markdown", session], "80");
    let closed = "Chapter 1 of 3 · compacted (auto) · 150,000 → 900 tokens · 2 entries kept";
    assert!(markdown.contains(closed), "{markdown}");
    let whole = text(&["--speed", "1e15", session], "100");
    assert_eq!(text(&[session], "100"), whole);
}

#[test]
fn records_of_a_story_say_what_the_model_sees() {
    let file = chapters();
    let session = file.path().to_str().unwrap();
    let records = json(session, &[]);
    assert_eq!(records[0]["chapters"], 3);
    let entries = records.iter().filter(|record| record["kind"] == "entry");
    let seen: Vec<String> = entries
        .map(|entry| {
            let mark = if entry["inContext"] == true { "*" } else { "" };
            format!("{}{mark}", entry["uuid"].as_str().unwrap())
        })
        .collect();
    assert_eq!(seen.join(" "), "u1 a1 u2 a2 b1 s1 u3* a3* b2* s2* u4*");
    let names = |more: &[&str]| {
        let records = json(session, more);
        let names = uuids(&records)
            .into_iter()
            .map(|uuid| uuid.as_str().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&["--context"]), "b2 s2 u3 a3 u4");
    assert_eq!(names(&["--at", "a2"]), "u1 a1 u2 a2");
    assert_eq!(names(&["--leaf", "a1"]), "u1 a1");
    assert_eq!(names(&["--until", "2026-01-01T10:02:30Z"]), "u1 a1 u2");
    let output = transcript(&["replay", "--format", "ids", "--explain", session]);
    assert_eq!(stdout(&output).lines().count(), 11);
    let why = stderr(&output);
    assert!(
        why.contains("5 earlier messages were compacted away"),
        "{why}"
    );
    assert!(
        why.contains("ends a chapter of 4 messages, 2 entries of it kept"),
        "{why}"
    );
    assert!(
        why.contains("decision bridge: compact_boundary in line 9"),
        "{why}"
    );
}

#[test]
fn an_image_above_a_prompt_belongs_to_its_turn() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let mut asked = user("");
    asked["message"]["content"] = json!([image, {"type": "text", "text": "What is this?"}]);
    let [call, result] = call("Bash", &json!({"command": "ls"}), "ok");
    let (_file, path) = session(&[user("Go"), call, result, asked]);
    for command in ["replay", "tail"] {
        let shown = stdout(&transcript(&[command, &path]));
        let image = shown.find("[image png").unwrap();
        let rule = shown.find("line 4 ──").or_else(|| shown.rfind("── "));
        assert!(rule.unwrap() < image, "{shown}");
        assert!(image < shown.find("What is this?").unwrap(), "{shown}");
        assert_eq!(shown.matches("──\nuser ").count(), 2, "{shown}");
    }
}

#[test]
fn ids_are_below_the_name_and_only_of_what_is_shown() {
    let [asked, answered] = call("Bash", &json!({"command": "ls"}), "ok");
    let turn = json!({"type": "system", "subtype": "turn_duration", "durationMs": 9});
    let (_file, path) = session(&[user("Go"), asked, answered, turn, user("More")]);
    let shown = stdout(&transcript(&["replay", "--ids", &path]));
    let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let after = |line: &str| {
        lines[lines
            .iter()
            .position(|shown| shown.ends_with(line))
            .unwrap()
            + 1]
    };
    assert!(after("line 1 · u0").ends_with(" Go"), "{shown}");
    assert!(
        after("assistant  line 2 · u1").ends_with("▸ Bash ls"),
        "{shown}"
    );
    assert!(after(" line 3 · u2").contains("└ ok"), "{shown}");
    assert!(!shown.contains("line 4"), "{shown}");
    assert_eq!(
        after("user       line 5 · u4"),
        "           More",
        "{shown}"
    );
}

/// Returns a session with these user lines, each after the one before; `%` stands for what all have.
fn user_lines(lines: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("-home-ada");
    fs::create_dir(&project).unwrap();
    let path = project.join("0a1b2c3d-0000-4000-8000-000000000001.jsonl");
    let mut parent = "null".to_owned();
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let common = format!(
            r#""type":"user","uuid":"u{at}","parentUuid":{parent},"isSidechain":false,"sessionId":"0a1b2c3d-0000-4000-8000-000000000001","cwd":"/home/ada","timestamp":"2026-01-01T00:00:0{at}.000Z""#
        );
        text.push_str(&format!("{}\n", line.replace('%', &common)));
        parent = format!("\"u{at}\"");
    }
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn author_of_a_prompt_is_read_from_its_line_before_its_text() {
    let (folder, session) = user_lines(&[
        r#"{%,"message":{"content":"<task>\nCount the owls.\n</task>"}}"#,
        r#"{%,"message":{"content":"<my_tag>x</my_tag> Draw the lynx"}}"#,
        r#"{%,"origin":{"kind":"human"},"message":{"content":"<system-reminder>\nSmall note\n</system-reminder>\nName the stoat"}}"#,
        r#"{%,"message":{"content":"Feed the otter\n<ide_opened_file>otter.rs</ide_opened_file>"}}"#,
        r#"{%,"origin":{"kind":"hook"},"message":{"content":"Checked the heron"}}"#,
        r#"{%,"promptSource":"typed","message":{"content":"<task-notification>the gull</task-notification>"}}"#,
        r#"{%,"message":{"content":"<task-notification><summary>the swift</summary></task-notification>"}}"#,
    ]);
    let words = [
        "Count the owls.",
        "Draw the lynx",
        "Name the stoat",
        "Feed the otter",
        "the gull",
    ];
    let of_clients = ["Checked the heron", "the swift", "Small note", "otter.rs"];
    for arguments in [
        &["replay"][..],
        &["export", "--text", "-"],
        &["export", "--markdown", "-"],
    ] {
        let shown = transcript(&[arguments, &[&session]].concat());
        assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
        let shown = stdout(&shown);
        for said in words.iter().chain(&of_clients[..2]) {
            assert!(shown.contains(said), "{arguments:?} {said}: {shown}");
        }
    }
    let shown = stdout(&transcript(&["replay", &session]));
    for said in words {
        let line = shown.lines().find(|line| line.contains(said)).unwrap();
        assert!(!line.starts_with("client"), "{said}: {shown}");
    }
    for said in &of_clients[..2] {
        let line = shown.lines().find(|line| line.contains(said)).unwrap();
        assert!(!line.starts_with("user"), "{shown}");
    }
    let page = folder.path().join("page.html");
    let made = transcript(&["export", "--html", page.to_str().unwrap(), &session]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    let root = folder.path().to_str().unwrap();
    let listed = stdout(&transcript(&["list", "--json", "--root", root]));
    assert!(
        listed.contains(r#""firstPrompt":"<task> Count the owls. </task>""#),
        "{listed}"
    );
    assert!(
        listed.contains(r#""lastPrompt":"<task-notification>the gull"#),
        "{listed}"
    );
}

/// The lines of a session whose call has a result in a file of this name.
fn session_with_stored_result(name: &str) -> String {
    let preview = format!(
        "<persisted-output>\\nOutput too large (90KB). Full output saved to: /home/ada/.claude/projects/-p/s/tool-results/{name}\\n\\nPreview (first 2KB):\\nThe first tide.\\n</persisted-output>"
    );
    format!(
        r#"{{"type":"user","uuid":"u1","parentUuid":null,"message":{{"role":"user","content":"List the tides."}}}}
{{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{{"id":"m1","role":"assistant","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"tides"}}}}]}}}}
{{"type":"user","uuid":"u2","parentUuid":"a1","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"{preview}"}}]}}}}
"#
    )
}

#[test]
fn a_result_stored_beside_the_session_of_which_another_is_a_copy_is_shown_for_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("p");
    for results in [
        project.join("s/tool-results"),
        folder.path().join("o/tool-results"),
    ] {
        fs::create_dir_all(&results).unwrap();
        fs::write(results.join("r1.txt"), "The last tide.\n").unwrap();
    }
    let copy = project.join("copy.jsonl");
    for (session, is_shown) in [("s", true), ("../o", false), ("", false), ("gone", false)] {
        let line = session_with_stored_result("r1.txt");
        let from = format!(r#"{{"forkedFrom":{{"sessionId":"{session}","messageUuid":"u"}},"#);
        let lines = line.lines().map(|line| line.replacen('{', &from, 1) + "\n");
        fs::write(&copy, lines.collect::<String>()).unwrap();
        let shown = stdout(&transcript(&[
            "replay",
            "--tools",
            "full",
            copy.to_str().unwrap(),
        ]));
        assert_eq!(shown.contains("The last tide."), is_shown, "{session}");
        assert!(is_shown || shown.contains("The first tide."), "{session}");
    }
}

#[test]
fn results_stored_beside_a_session_are_shown_also_those_of_its_subagents_but_no_links() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s.jsonl");
    let results = folder.path().join("s/tool-results");
    let agents = folder.path().join("s/subagents");
    fs::create_dir_all(&results).unwrap();
    fs::create_dir_all(&agents).unwrap();
    fs::write(results.join("r1.txt"), "The last tide.\n").unwrap();
    let shown = |path: &Path, name: &str| {
        fs::write(path, session_with_stored_result(name)).unwrap();
        let path = path.to_str().unwrap();
        stdout(&transcript(&["replay", "--tools", "full", path])).contains("The last tide.")
    };
    assert!(shown(&session, "r1.txt"));
    assert!(shown(&agents.join("agent-a1.jsonl"), "r1.txt"));
    for name in ["../r1.txt", "missing.txt", ""] {
        assert!(!shown(&session, name), "{name}");
    }
    #[cfg(unix)]
    {
        let outside = folder.path().join("outside.txt");
        fs::write(&outside, "The last tide.\n").unwrap();
        std::os::unix::fs::symlink(&outside, results.join("link.txt")).unwrap();
        assert!(!shown(&session, "link.txt"));
    }
}
