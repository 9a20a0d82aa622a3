//! `transcript tail`.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::{command, fixture, sessions, stderr, stdout, transcript};

fn run(command_name: &str, arguments: &[&str], columns: &str) -> Output {
    let mut command = command(&[&[command_name], arguments].concat());
    let output = command
        .env("COLUMNS", columns)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

fn text(arguments: &[&str], columns: &str) -> String {
    stdout(&run("tail", arguments, columns))
}

fn json(arguments: &[&str]) -> Vec<Value> {
    let output = run("tail", &[&["--json"], arguments].concat(), "80");
    let lines = stdout(&output);
    let records = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    records.collect()
}

fn pain(name: &str) -> String {
    let pains = sessions().join("../pains").join(name);
    pains.to_str().unwrap().to_owned()
}

/// All sessions and pains, but those whose text is not there line by line: no line of an object that
/// was split is an entry.
fn all() -> Vec<String> {
    let mut all = Vec::new();
    for folder in ["sessions", "pains", "hostile"] {
        for file in fs::read_dir(sessions().join("..").join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".jsonl") && name != "06-split.jsonl" {
                all.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    assert!(all.len() > 60, "{}", all.len());
    all
}

/// The texts and calls, line by line: without rules, markers, sums and the column of names.
fn body(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut in_marker = false;
    let mut in_rule = false;
    for line in text.lines() {
        let end = line
            .char_indices()
            .nth(11)
            .map_or(line.len(), |(end, _)| end);
        let (name, said) = line.split_at(end);
        // A rule that is wider than the page continues in lines indented by three blanks.
        let is_rule = ["──", "══", "session "]
            .iter()
            .any(|rule| line.starts_with(rule))
            || in_rule && line.starts_with("   ") && !line.starts_with("    ");
        in_rule = is_rule;
        let names = ["", "user", "assistant", "summary", "tool", "client", "meta"];
        let names = [&names[..], &["hidden", "virtual", "team", "tombstoned"]].concat();
        let said = if names.contains(&name.trim()) {
            said.trim()
        } else {
            line.trim()
        };
        if in_marker || said.starts_with("··· ") {
            in_marker = !said.ends_with("···");
        } else if !is_rule && !said.is_empty() && !said.contains(" tokens in") {
            lines.push(said);
        }
    }
    // Unknown while it happens.
    lines.retain(|line| *line != "└ no result" && !line.ends_with("summed up"));
    lines
}

#[test]
fn live_text_of_the_bundled_session() {
    let session = fixture("parallel-tools.jsonl");
    insta::assert_snapshot!(text(&[&session], "80"));
    insta::assert_snapshot!("live_text_in_40_columns", text(&[&session], "40"));
    insta::assert_snapshot!("live_text_in_120_columns", text(&[&session], "120"));
    let shown = text(&["--tools", "full", "--thinking", &session], "80");
    insta::assert_snapshot!("live_text_with_everything", shown);
    let shown = text(&["--tools", "none", &session], "80");
    assert!(
        !shown.contains(['▸', '▹', '└']) && shown.contains("Found it."),
        "{shown}"
    );
}

#[test]
fn every_session_shows_live_what_its_replay_shows() {
    for session in all() {
        for more in [&[][..], &["--tools", "full", "--thinking"]] {
            let arguments = [more, &[&session]].concat();
            let live = text(&arguments, "120");
            let replayed = stdout(&run("replay", &arguments, "120"));
            let live = body(&live);
            // Live there is no header: what it says is not known yet.
            let (_, replayed) = replayed.split_once("\n\n").unwrap_or_default();
            let replayed = replayed.split("\nto continue: ").next().unwrap_or_default();
            for line in body(replayed) {
                assert!(live.contains(&line), "{session} {more:?}: {line}");
            }
        }
    }
}

#[test]
fn entries_are_printed_in_the_order_of_the_file() {
    for session in all() {
        // Lone surrogates are told as they stand there, and this reader of JSON refuses them.
        if session.ends_with("11-surrogate.jsonl") || session.contains("hostile") {
            continue;
        }
        let records = json(&["--sidechains", &session]);
        let is_own = |record: &&Value| record["kind"] == "entry" && record["path"] == *session;
        let mut end = 0;
        for record in records.iter().filter(is_own) {
            let offset = record["offset"].as_u64().unwrap();
            assert!(offset >= end, "{session}: {offset} < {end}");
            end = offset + record["len"].as_u64().unwrap();
        }
        assert!(end <= fs::metadata(&session).unwrap().len());
        let path = run("replay", &["--format", "ids", &session], "80");
        let offsets: Vec<_> = records.iter().map(|record| &record["offset"]).collect();
        for line in stdout(&path).lines() {
            let offset: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
            assert!(offsets.contains(&&offset.into()), "{session}: {line}");
        }
    }
}

#[test]
fn no_line_is_wider_than_the_page() {
    for session in all() {
        for columns in [40, 80, 120] {
            let shown = text(
                &["--sidechains", "--thinking", &session],
                &columns.to_string(),
            );
            for line in shown.lines() {
                assert!(line.width() <= columns, "{session} {columns}: {line}");
            }
        }
    }
}

#[test]
fn subagents_have_labels_of_their_own() {
    let in_file = fixture("sidechain-in-file.jsonl");
    insta::assert_snapshot!(text(&["--sidechains", &in_file], "80"));
    assert!(!text(&[&in_file], "80").contains("List every file"));
    // The JSON output contains every line of a file.
    let shown = json(&[&in_file]);
    let lines = fs::read_to_string(&in_file).unwrap().lines().count();
    assert_eq!(shown.len(), lines);
    let of_agent = shown.iter().filter(|record| record["sidechain"] == true);
    assert_eq!(of_agent.count(), 4);
    let beside = pain("20-subagents.jsonl");
    insta::assert_snapshot!(
        "live_subagents_beside",
        text(&["--sidechains", &beside], "80")
    );
    let alone = text(&[&beside], "80");
    assert!(
        alone.contains("├ subagent a7c41e90; --sidechains shows it"),
        "{alone}"
    );
    // The file of a subagent that was named is told, under whatever name.
    let folder = tempfile::tempdir().unwrap();
    let agent = sessions().join("../pains/20-subagents/subagents/agent-a7c41e90.jsonl");
    let copy = folder.path().join("copy.jsonl");
    fs::copy(&agent, &copy).unwrap();
    let of = |path: &Path| text(&[path.to_str().unwrap()], "80");
    assert!(of(&agent).contains("Find the next bright comet."));
    assert_eq!(of(&copy), of(&agent));
}

#[test]
fn a_folder_is_printed_session_by_session() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("-home-ada-src-almanac");
    fs::create_dir(&project).unwrap();
    for name in ["linear.jsonl", "rewind.jsonl"] {
        fs::copy(fixture(name), project.join(name)).unwrap();
    }
    let path = project.to_str().unwrap();
    insta::assert_snapshot!(text(&[path, "-n", "2"], "80"));
    let records = json(&[path]);
    let opened: Vec<_> = records
        .iter()
        .filter(|record| record["kind"] == "open")
        .collect();
    assert_eq!(opened.len(), 2);
    for record in &records {
        assert!(
            record["offset"].is_u64() && record["path"].is_string(),
            "{record}"
        );
    }
}

#[test]
fn records_are_those_of_replay_with_a_path() {
    let session = fixture("parallel-tools.jsonl");
    let replayed = run("replay", &["--json", "--raw-entries", &session], "80");
    let mut shown = json(&["--raw-entries", &session]);
    assert_eq!(shown.len(), 65);
    let mut compared = 0;
    for line in stdout(&replayed).lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if record["kind"] != "entry" {
            continue;
        }
        let is_it = |shown: &&mut Value| shown["offset"] == record["offset"];
        let same = shown.iter_mut().find(is_it).unwrap();
        assert_eq!(same["path"], *session.as_str());
        let same = same.as_object_mut().unwrap();
        same.remove("path");
        let via = if record["parentUuid"].is_null() {
            serde_json::json!([])
        } else {
            serde_json::json!(["parent"])
        };
        assert_eq!(same["via"], via);
        record["via"] = via;
        // A line alone does not show what the model sees.
        record.as_object_mut().unwrap().remove("inContext");
        assert_eq!(Value::Object(same.clone()), record);
        compared += 1;
    }
    assert!(compared > 40);
}

#[test]
fn damage_is_printed_by_its_place_and_never_quoted() {
    let session = fixture("glued-lines.jsonl");
    let records = json(&[&session]);
    let kinds: Vec<_> = records
        .iter()
        .map(|record| record["kind"].as_str())
        .collect();
    let at = kinds.iter().position(|kind| *kind == Some("bad")).unwrap();
    let (bad, next) = (&records[at], &records[at + 1]);
    assert_eq!(bad["code"], "L-TORN-MID");
    assert_eq!((&bad["offset"], &bad["len"]), (&1527.into(), &88.into()));
    assert_eq!(next["via"], serde_json::json!(["salvage"]));
    let keys: Vec<&String> = bad.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 7, "{keys:?}");
    let shown = text(&[&session], "200");
    assert!(
        shown.contains("(L-TORN-MID) · 88 bytes at byte 1,527"),
        "{shown}"
    );
}

#[test]
fn the_start_can_be_the_last_entries_or_a_byte() {
    let session = fixture("linear.jsonl");
    let all = json(&[&session]);
    for last in [0, 1, 3, 1000] {
        let some = json(&["-n", &last.to_string(), &session]);
        assert_eq!(some.len(), all.len().min(last));
        let offsets = |records: &[Value]| -> Vec<Value> {
            records
                .iter()
                .map(|record| record["offset"].clone())
                .collect()
        };
        assert_eq!(offsets(&some), offsets(&all[all.len() - some.len()..]));
    }
    let second = all[1]["offset"].as_u64().unwrap();
    for from in [second, second - 5] {
        let some = json(&["--from", &from.to_string(), &session]);
        assert_eq!(some.len(), all.len() - 1);
    }
    let both = transcript(&["tail", "-n", "1", "--from", "1", &session]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn filters_hold_for_text_and_json() {
    let session = fixture("parallel-tools.jsonl");
    let records = json(&["--tool", "Read", &session]);
    let kinds: Vec<_> = records
        .iter()
        .map(|record| record["type"].as_str())
        .collect();
    let calls = kinds.iter().filter(|kind| **kind == Some("assistant"));
    assert_eq!((kinds.len(), calls.count()), (6, 3));
    insta::assert_snapshot!(text(&["--tool", "Edit", "--tool", "Bash", &session], "80"));
    let results = text(&["--tool", "Read", "--role", "tool", &session], "80");
    assert_eq!(
        results,
        "assistant  ▹ Read src/calendar.rs\n             \
         └ 14 lines · 478 B · 0.5 s\n           \
         ▹ Read src/parse.rs\n             \
         └ 19 lines · 644 B · 0.8 s\n\n           \
         ··· another branch: continues from 93c6b4da, leaving e93b1cdc ···\n\n\
         assistant  ▹ Read tests/roundtrip.rs\n             \
         └ 8 lines · 216 B\n"
    );
    let said = json(&["--text", "LEAP YEAR", "--role", "assistant", &session]);
    let lines: Vec<_> = said.iter().map(|record| &record["line"]).collect();
    assert_eq!(lines, [39, 60]);
}

#[test]
fn waiting_ends_when_it_is_there_and_with_1_when_time_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let line = |uuid: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","message":{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ) + "\n"
    };
    let wait = |until: &str, timeout: &str| {
        let path = path.to_str().unwrap();
        command(&[
            "tail",
            "--json",
            "--until",
            until,
            "--timeout",
            timeout,
            path,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
    };
    // The file comes later.
    let waiting = wait("text:All done", "60");
    fs::write(&path, line("a1", "Not all done")).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let second = line("a2", " All done.");
    let (start, end) = second.split_at(20);
    file.write_all(start.as_bytes()).unwrap();
    file.write_all(end.as_bytes()).unwrap();
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output).lines().count(), 2);
    let output = wait("uuid:A1", "60").wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output).lines().count(), 1);
    let output = wait("uuid:a3", "0.2").wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let refused = transcript(&["tail", "--until", "later", path.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("turn-end"));
}

/// A session of these turns: each a prompt and, when there is one, the answer to it.
fn turns(turns: &[(&str, Option<&str>)]) -> String {
    let mut lines = String::new();
    let mut parent = Value::Null;
    let mut add = |kind: &str, content: Value, stop: Value| {
        let uuid = format!("{kind}-{}", lines.len());
        let message = serde_json::json!({"role": kind, "content": content, "stop_reason": stop});
        let entry = serde_json::json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": message});
        parent = uuid.into();
        lines.push_str(&format!("{entry}\n"));
    };
    for (prompt, answer) in turns {
        add("user", (*prompt).into(), Value::Null);
        if let Some(answer) = answer {
            let text = serde_json::json!([{"type": "text", "text": answer}]);
            add("assistant", text, "end_turn".into());
        }
    }
    lines
}

#[test]
fn a_text_is_waited_for_in_the_last_turn_and_may_be_there_already() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s1.jsonl");
    let path = path.to_str().unwrap();
    let wait = |until: &str, timeout: &str| {
        let arguments = [
            "tail",
            "--json",
            "-n",
            "0",
            "--until",
            until,
            "--timeout",
            timeout,
            path,
        ];
        let output = transcript(&arguments);
        (output.status.code(), stdout(&output), stderr(&output))
    };
    fs::write(
        path,
        turns(&[("Go", Some("Done.")), ("Go on", Some("Done. Again."))]),
    )
    .unwrap();
    let (code, shown, _) = wait("text:Done", "60");
    assert_eq!(code, Some(0));
    assert_eq!(shown.lines().count(), 1);
    assert!(shown.contains("Again"), "{shown}");
    assert_eq!(wait("turn-end", "60").0, Some(0));

    // The words of the turn before are not those that are waited for.
    fs::write(path, turns(&[("Go", Some("Done.")), ("Go on", None)])).unwrap();
    let (code, shown, note) = wait("text:Done", "0.2");
    assert_eq!((code, &*shown), (Some(1), ""));
    assert_eq!(note, "");
    assert_eq!(wait("turn-end", "0.2").0, Some(1));
    let (code, shown, _) = wait("text:Go on", "60");
    assert_eq!((code, shown.lines().count()), (Some(0), 1));
    // A uuid is one, wherever it stands.
    assert_eq!(wait("uuid:user-0", "60").0, Some(0));
    let all = transcript(&[
        "tail",
        "--json",
        "--until",
        "text:Done",
        "--timeout",
        "0.2",
        path,
    ]);
    assert_eq!(all.status.code(), Some(1));
    assert!(stderr(&all).contains("earlier turn"), "{}", stderr(&all));

    // A missing file has no last turn.
    fs::remove_file(path).unwrap();
    assert_eq!(wait("turn-end", "0.2").0, Some(1));
}

#[test]
fn changes_are_printed_after_the_entry_that_makes_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s1.jsonl");
    let kinds = |lines: &str| -> Vec<String> {
        fs::write(&path, lines).unwrap();
        let records = json(&["--changes", path.to_str().unwrap()]);
        let shown = records.iter().filter(|record| record["kind"] != "entry");
        let shown = shown.map(|record| {
            assert!(
                record["path"].is_string() && record["offset"].is_u64(),
                "{record}"
            );
            let fields = ["kind", "id", "name", "uuid", "from", "fork", "to"];
            let words = fields.iter().filter_map(|field| record[field].as_str());
            words.collect::<Vec<_>>().join(" ")
        });
        shown.collect()
    };
    let two = turns(&[("Go", Some("Done.")), ("Go on", Some("Done too."))]);
    let ends = ["turn-end assistant-110", "turn-end assistant-401"];
    assert_eq!(kinds(&two), ends);
    let back = r#"{"type":"user","uuid":"u9","parentUuid":"assistant-110","message":{"role":"user","content":"No"}}"#;
    let shown = kinds(&format!("{two}{back}\n"));
    assert_eq!(shown[2], "moved assistant-401 assistant-110 u9");
    let call = r#"{"type":"assistant","uuid":"a1","parentUuid":"u9","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}}"#;
    let result = r#"{"type":"user","uuid":"r1","parentUuid":"a1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}}"#;
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"b1","parentUuid":null,"logicalParentUuid":"r1","compactMetadata":{"trigger":"manual"}}"#;
    let taken = r#"{"type":"transcriptEngine","transcriptEngine":{"v":1},"tombstone":"r1"}"#;
    let shown = kinds(&format!(
        "{two}{back}\n{call}\n{result}\n{taken}\n{boundary}\n"
    ));
    assert_eq!(
        shown[3..],
        [
            "call-opened t1 Read",
            "call-closed t1",
            "tombstoned r1",
            "boundary b1"
        ]
    );
}

#[test]
fn a_closed_pipe_ends_the_live_text_quietly() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let line =
        r#"{"type":"assistant","message":{"role":"assistant","content":"On and on it goes."}}"#;
    fs::write(file.path(), format!("{line}\n").repeat(5_000)).unwrap();
    for form in ["--json", "--thinking"] {
        let mut child = command(&["tail", "-f", form, file.path().to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(stderr(&output), "");
    }
}

/// A session of two lines whose last one has no newline, and what is left of it after `len` bytes.
fn unended(len: usize) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder
        .path()
        .join("-p/0a1b2c3d-0000-4000-8000-000000000001.jsonl");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let lines = concat!(
        r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"Why?"}}"#,
        "\n",
        r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"role":"assistant","stop_reason":"end_turn","content":"Because."}}"#
    );
    fs::write(&file, &lines[..lines.len() - len]).unwrap();
    (folder, file.to_str().unwrap().to_owned())
}

#[test]
fn a_last_line_without_a_newline_is_printed() {
    let (folder, file) = unended(0);
    for target in [&file, folder.path().to_str().unwrap()] {
        let output = run("tail", &[target], "80");
        assert!(stdout(&output).contains("Because."), "{}", stdout(&output));
        assert_eq!(stderr(&output), "");
        let records = json(&[target]);
        assert_eq!(records.last().unwrap()["uuid"], "a1", "{records:?}");
        let shown = json(&["--until", "uuid:a1", "--timeout", "20", target]);
        let entries = shown.iter().filter(|record| record["uuid"] == "a1");
        assert_eq!(entries.count(), 1, "{shown:?}");
    }
    let last = json(&["-n", "1", &file]);
    assert_eq!(last.len(), 1);
    assert_eq!(last[0]["uuid"], "a1");
    let last = text(&["-n", "1", &file], "80");
    assert!(
        last.contains("Because.") && !last.contains("Why?"),
        "{last}"
    );
    let ended = run(
        "tail",
        &["--until", "turn-end", "--timeout", "20", &file],
        "80",
    );
    assert!(stdout(&ended).contains("Because."));
}

#[test]
fn a_last_line_that_is_torn_is_printed_as_damage() {
    let (_folder, file) = unended(9);
    let records = json(&[&file]);
    let bad = records
        .iter()
        .find(|record| record["kind"] == "bad")
        .unwrap();
    assert_eq!(
        (&bad["code"], &bad["line"]),
        (&"L-TORN-TAIL".into(), &2.into())
    );
    assert_eq!(bad["offset"], 89);
    let shown = text(&[&file], "80");
    assert!(shown.contains("L-TORN-TAIL"), "{shown}");
}

#[test]
fn a_file_that_is_replaced_again_and_again_is_printed_once() {
    let (folder, file) = unended(0);
    let other = folder.path().join("other");
    let ends = std::sync::atomic::AtomicBool::new(false);
    let is_over = || ends.load(std::sync::atomic::Ordering::Relaxed);
    let shown: Vec<usize> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over() {
                fs::copy(&file, &other).unwrap();
                fs::rename(&other, &file).unwrap();
            }
        });
        let lines = (0..5).map(|_| {
            let mut child = command(&["tail", "--json", &file])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut text = String::new();
            // Should it not end, this much is enough.
            let mut out = child.stdout.take().unwrap().take(64 << 10);
            let _ = out.read_to_string(&mut text);
            let _ = child.kill();
            let _ = child.wait();
            text.lines().count()
        });
        let shown = lines.collect();
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
        shown
    });
    assert_eq!(shown, [2; 5]);
}

#[test]
#[cfg(unix)]
fn following_ends_when_its_reader_goes_though_nothing_comes() {
    let (_folder, file) = unended(0);
    for arguments in [&["-f"][..], &["-f", "--until", "uuid:none"]] {
        let mut child = command(&[&["tail", "--json"], arguments, &[&file]].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 16];
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut first).unwrap();
        drop(out);
        // Without an end of its own it would wait for the next line.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while child.try_wait().unwrap().is_none() {
            if std::time::Instant::now() > end {
                child.kill().unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn failed_tail_ends_with_2() {
    for argument in ["no-such-file.jsonl", "no-such-session", "-"] {
        let output = transcript(&["tail", argument]);
        assert_eq!(output.status.code(), Some(2), "{argument}");
        assert!(stderr(&output).contains(argument));
    }
    let usage = transcript(&["tail", "--raw-entries", &fixture("linear.jsonl")]);
    assert_eq!(usage.status.code(), Some(2));
    assert_eq!(transcript(&["tail"]).status.code(), Some(2));
}

#[test]
fn help_of_tail() {
    insta::assert_snapshot!(stdout(&transcript(&["tail", "--help"])));
}
