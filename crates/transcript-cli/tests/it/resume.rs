//! `transcript resume`.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::{command, fixture, stderr, stdout, transcript};

fn json(session: &str, more: &[&str]) -> Value {
    let output = transcript(&[&["resume", "--json", session], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// The answer for a session that is given on standard input.
fn piped(session: &str, more: &[&str]) -> (Option<i32>, Value) {
    let mut child = command(&[&["resume", "--json", "-"], more].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(session.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let answer = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), answer)
}

const SESSION: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"list files"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","timestamp":"2026-11-01T10:00:01Z","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"Bash","input":{"n":1.5,"b":2}}]}}
"#;

#[test]
fn the_answer_has_every_key_of_the_contract() {
    let answer = json(&fixture("parallel-tools.jsonl"), &["--policy", "vendor"]);
    for key in [
        "schema",
        "sessionId",
        "path",
        "policy",
        "scope",
        "resumable",
        "leaf",
        "messages",
        "entries",
        "synthetic",
        "decisions",
        "findings",
        "state",
        "lint",
        "tokens",
        "usage",
    ] {
        assert!(answer.get(key).is_some(), "{key}");
    }
    assert_eq!(answer["schema"], 1);
    assert_eq!(answer["resumable"], true);
    assert!(answer.get("reason").is_none());
    assert_eq!(
        answer["leaf"],
        *answer["entries"].as_array().unwrap().last().unwrap()
    );
    assert_eq!(answer["state"]["title"], "Leap days in the date parser");
    assert_eq!(answer["lint"]["ok"], true, "{}", answer["lint"]);
}

#[test]
fn the_prompt_is_the_last_message_and_request_prints_only_messages() {
    let session = fixture("parallel-tools.jsonl");
    let answer = json(&session, &["--prompt", "Go \"on\"."]);
    let last = answer["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    assert_eq!(last["content"], "Go \"on\".");
    let output = transcript(&["resume", "--request", "--prompt", "Go \"on\".", &session]);
    assert_eq!(output.status.code(), Some(0));
    let messages: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(messages, answer["messages"]);
}

#[test]
fn interrupted_call_is_completed_and_reported_as_synthetic() {
    let (code, answer) = piped(SESSION, &["--prompt", "next"]);
    assert_eq!(code, Some(0));
    let made_up = &answer["synthetic"][0];
    assert_eq!(made_up["kind"], "interrupted-result");
    assert_eq!(
        (&made_up["uuid"], &made_up["line"]),
        (&"a1".into(), &2.into())
    );
    assert_eq!(made_up["persist"], true);
    assert_eq!(made_up["block"]["tool_use_id"], "t1");
    assert_eq!(answer["messages"][2]["content"][0], made_up["block"]);
}

#[test]
fn blocks_pass_through_as_they_were_written() {
    let mut child = command(&["resume", "--request", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(SESSION.as_bytes()).unwrap();
    drop(input);
    let text = stdout(&child.wait_with_output().unwrap());
    assert!(text.contains(r#"{"n":1.5,"b":2}"#), "{text}");
}

#[test]
fn thoughts_that_another_model_signed_are_omitted() {
    let thoughts = |more: &[&str]| {
        let (_, answer) = piped(SESSION, more);
        let blocks = answer["messages"][1]["content"].as_array().unwrap().clone();
        let kinds: Vec<String> = blocks
            .iter()
            .map(|block| block["type"].to_string())
            .collect();
        (
            kinds.len(),
            answer["model"].clone(),
            answer["omitted"].clone(),
        )
    };
    assert_eq!(thoughts(&[]), (2, "claude-x".into(), Value::Array(vec![])));
    let (blocks, model, omitted) = thoughts(&["--model", "claude-y"]);
    assert_eq!((blocks, model), (1, "claude-y".into()));
    assert_eq!(omitted[0]["reason"], "foreign-thinking");
    assert_eq!(omitted[0]["uuid"], "a1");
}

#[test]
fn references_to_tools_that_are_not_named_are_omitted() {
    // A tool search found WebFetch, which is a tool of the client, and Abacus.
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/client");
    let session = client.join("MSG-14-a.jsonl");
    let referred = |more: &[&str]| {
        let answer = json(session.to_str().unwrap(), more);
        let content = &answer["messages"][2]["content"][0]["content"];
        let blocks = content.as_array().unwrap().iter();
        let names = blocks.map(|block| block["tool_name"].as_str().unwrap_or("none").to_owned());
        let omitted = answer["omitted"].as_array().unwrap().iter();
        let omitted = omitted.filter(|omission| omission["reason"] == "tool-reference");
        (names.collect::<Vec<_>>().join(" "), omitted.count())
    };
    for policy in ["recover", "vendor"] {
        let with = |tools: &[&str]| referred(&[&["--policy", policy], tools].concat());
        let by_default = match policy {
            "recover" => ("WebFetch Abacus".to_owned(), 0),
            _ => ("WebFetch".to_owned(), 1),
        };
        assert_eq!(with(&[]), by_default);
        let both = ("WebFetch Abacus".to_owned(), 0);
        assert_eq!(with(&["--tools", "Abacus,WebFetch,Read"]), both);
        let repeated = ["--tools", "Abacus", "--tools", "WebFetch"];
        assert_eq!(with(&repeated), both);
        assert_eq!(with(&["--tools", "Abacus"]), ("Abacus".to_owned(), 1));
        assert_eq!(with(&["--tools=Read"]), ("none".to_owned(), 1));
    }
}

#[test]
fn at_stops_the_conversation_and_leaf_chooses_another() {
    let session = fixture("parallel-tools.jsonl");
    let whole = json(&session, &[]);
    let entries = whole["entries"].as_array().unwrap();
    let third = entries[2].as_str().unwrap();
    let cut = json(&session, &["--at", third]);
    assert_eq!(cut["leaf"], third);
    assert_eq!(cut["entries"].as_array().unwrap()[..], entries[..3]);
    let other = json(&session, &["--leaf", third]);
    assert_eq!(other["leaf"], third);
    let unknown = transcript(&["resume", "--at", "nobody", &session]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("--at: no entry nobody"));
}

#[test]
fn a_session_that_cannot_be_resumed_says_why_and_ends_with_1() {
    let (code, answer) = piped(r#"{"type":"summary","summary":"x","leafUuid":"y"}"#, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(answer["resumable"], false);
    assert_eq!(answer["reason"], "the file holds no conversation");
    assert_eq!(answer["messages"], Value::Array(vec![]));
    assert_eq!(answer["lint"]["ok"], false);
}

#[test]
fn a_file_of_another_format_has_an_answer_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let text = r#"{"type":"user","uuid":"u1","message":{"content":"Q"}}"#;
    let units = text.encode_utf16().flat_map(u16::to_le_bytes);
    let bytes: Vec<u8> = b"\xFF\xFE".iter().copied().chain(units).collect();
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_str().unwrap();
    let output = transcript(&["resume", "--json", path]);
    assert_eq!(output.status.code(), Some(2));
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(answer["resumable"], false);
    assert_eq!(answer["reason"], "not a transcript but UTF-16 text");
    assert_eq!(transcript(&["resume", path]).status.code(), Some(2));
}

#[test]
fn text_shows_what_is_there_what_is_made_up_and_what_is_wrong() {
    let output = transcript(&["resume", &fixture("parallel-tools.jsonl")]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn every_fixture_resumes_or_says_why_not() {
    for entry in std::fs::read_dir(crate::sessions()).unwrap() {
        let path = entry.unwrap().path();
        let output = transcript(&["resume", "--json", path.to_str().unwrap()]);
        let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let expected = if answer["resumable"] == true { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(expected), "{}", path.display());
        assert_eq!(answer.get("reason").is_some(), expected == 1);
    }
}

/// A session with things left to do, and texts that would like to reach the terminal.
const BUSY: &str = r#"{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-01T09:59:00Z","content":"and \u001b[2Jthe tests\nplease"}
{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-11-01T10:00:00Z","cwd":"/w","message":{"role":"user","content":"go"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","timestamp":"2026-11-01T10:00:01Z","message":{"id":"m1","model":"claude-x","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"TodoWrite","input":{}}],"usage":{"input_tokens":7,"output_tokens":9}}}
{"type":"user","uuid":"u2","parentUuid":"a1","timestamp":"2026-11-01T10:00:02Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]},"toolUseResult":{"oldTodos":[],"newTodos":[{"content":"done \u001b","status":"completed"},{"content":"write\u202e it","status":"pending"},{"content":"b","status":"pending"},{"content":"c","status":"pending"},{"content":"d","status":"pending"},{"content":"e","status":"pending"},{"content":"f","status":"in_progress"}]}}
{"type":"assistant","uuid":"a2","parentUuid":"u2","timestamp":"2026-11-01T10:00:03Z","message":{"id":"m2","model":"claude-y","role":"assistant","content":[{"type":"text","text":"so"}],"usage":{"output_tokens":159,"cache_read_input_tokens":0}}}
{"type":"pr-link","prNumber":4,"prUrl":"https://example.org/\u001b4","prRepository":"o/r","timestamp":"2026-11-01T10:00:04Z"}
{"type":"worktree-state","worktreeSession":{"worktreePath":"/w/\u0007t","worktreeName":"t"}}
{"type":"cost-state","totalCostUSD":1.254}
"#;

#[test]
fn text_shows_what_is_left_to_do_and_the_usage() {
    let mut child = command(&["resume", "--explain", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(BUSY.as_bytes()).unwrap();
    drop(input);
    let text = stdout(&child.wait_with_output().unwrap());
    let is_control = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.chars().any(is_control), "{text:?}");
    // The first line names the session by the path of a temporary file.
    let (_, text) = text.split_once('\n').unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn json_carries_the_state_and_the_usage_of_the_path() {
    let (code, answer) = piped(BUSY, &[]);
    assert_eq!(code, Some(0));
    let state = &answer["state"];
    assert_eq!(state["todos"].as_array().unwrap().len(), 7);
    assert_eq!(
        state["queuedPrompts"][0]["content"],
        "and \u{1b}[2Jthe tests\nplease"
    );
    assert_eq!(state["pullRequests"][0]["number"], 4);
    assert_eq!(state["worktree"]["name"], "t");
    assert_eq!(state["costs"]["totalCostUSD"], 1.254);
    assert_eq!(state["lastInteraction"], "2026-11-01T10:00:03Z");
    assert_eq!(state["turnDurationMs"], Value::Null);
    assert_eq!(answer["usage"]["scope"], "path");
    let models = answer["usage"]["models"].as_array().unwrap();
    assert_eq!(models.len(), 2);
    assert_eq!(models[0]["model"], "claude-x");
    assert_eq!(models[0]["outputTokens"], 9);
    assert_eq!(models[1]["cacheReadInputTokens"], 0);
    assert_eq!(models[1]["inputTokens"], Value::Null);
}

#[test]
fn equal_lines_for_several_entries_are_printed_once() {
    let mut lines = vec![
        r#"{"type":"user","uuid":"u0","parentUuid":null,"sessionId":"0a1b2c3d-0000-4000-8000-000000000001","cwd":"/home/ada/it's","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"Go"}}"#.to_owned(),
    ];
    for number in 1..=9 {
        lines.push(format!(
            r#"{{"type":"assistant","uuid":"u{number}","parentUuid":"u{}","cwd":"/home/ada/it's","timestamp":"2026-01-01T00:00:0{number}.000Z","message":{{"id":"m{number}","role":"assistant","content":[{{"type":"tool_use","id":"t{number}","name":"Bash","input":{{}}}}]}}}}"#,
            number - 1
        ));
    }
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("-home-ada-it-s");
    std::fs::create_dir(&project).unwrap();
    let file = project.join("0a1b2c3d-0000-4000-8000-000000000001.jsonl");
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let file = file.to_str().unwrap();
    let explained = stdout(&transcript(&["resume", "--explain", file]));
    assert!(explained.lines().count() < 20, "{explained}");
    assert!(explained.contains(" times, lines "), "{explained}");
    let text = stdout(&transcript(&["resume", file]));
    assert!(text.lines().count() <= 10, "{text}");
    let synthetic = "synthetic  10 (1 interrupted-result, 1 no-response, 8 missing-result)";
    assert!(text.contains(synthetic), "{text}");
    let command = r"cd '/home/ada/it'\''s' && claude --resume 0a1b2c3d-0000-4000-8000-000000000001";
    assert!(text.contains(command), "{text}");
    // From an entry that is named, a fork continues.
    let text = stdout(&transcript(&["resume", "--at", "3", file]));
    let command = format!(
        "cd '/home/ada/it'\\''s' && claude --resume \"$(transcript fork '{file}' --at '3')\""
    );
    assert!(text.contains(&command), "{text}");
    assert!(stdout(&transcript(&["replay", "--at", "3", file])).contains(&command));
}

#[test]
fn a_file_that_no_client_finds_has_no_command_that_continues_it() {
    let folder = tempfile::tempdir().unwrap();
    let line = r#"{"type":"user","uuid":"u0","parentUuid":null,"sessionId":"0a1b2c3d-0000-4000-8000-000000000001","cwd":"/home/ada","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"Go"}}"#;
    let name = "0a1b2c3d-0000-4000-8000-000000000001.jsonl";
    for (place, is_found) in [
        (format!("-home-ada/{name}"), true),
        ("-home-ada/merged.jsonl".to_owned(), false),
        (format!("-home-eve/{name}"), false),
        (format!("sent/{name}"), false),
    ] {
        let file = folder.path().join(&place);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("{line}\n")).unwrap();
        for command in ["resume", "replay"] {
            let text = stdout(&transcript(&[command, file.to_str().unwrap()]));
            assert_eq!(
                text.contains("claude --resume"),
                is_found,
                "{command} {place}: {text}"
            );
        }
    }
}

/// Writes a session of 4 MiB and some lines, with a compaction before its last prompt.
fn compacted(folder: &Path, prompts: usize) -> String {
    let entry = |kind: &str, uuid: &str, parent: &str, more: &str| {
        format!(
            r#"{{"parentUuid":{parent},"type":"{kind}","uuid":"{uuid}","sessionId":"s","isSidechain":false,"timestamp":"2026-11-20T10:00:00.000Z"{more}}}"#
        ) + "\n"
    };
    let text = "x".repeat(50 << 10);
    let mut session = String::new();
    let mut parent = "null".to_owned();
    for number in 0..prompts {
        let text = if number < 100 { &*text } else { "And?" };
        let more = format!(r#","message":{{"content":"{text}"}}"#);
        session += &entry("user", &format!("u{number}"), &parent, &more);
        parent = format!("\"u{number}\"");
    }
    let mut last = |kind: &str, uuid: &str, parent: &str, more: &str| {
        session += &entry(kind, uuid, parent, more).replace("T10", "T11");
    };
    last("system", "b", "null", r#","subtype":"compact_boundary""#);
    last("user", "s", "\"b\"", r#","message":{"content":"In short"}"#);
    last("user", "t", "\"s\"", r#","message":{"content":"Go on"}"#);
    let path = folder.join("s.jsonl");
    std::fs::write(&path, session).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_end_of_a_compacted_file_is_read_unless_more_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let session = compacted(folder.path(), 200);
    let explained = |more: &[&str]| {
        let output = transcript(&[&["resume", "--explain", &session], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let said = stderr(&output);
        said.lines().next().unwrap_or_default().to_owned()
    };
    let boundary = std::fs::read_to_string(&session).unwrap();
    let boundary = boundary.find("compact_boundary").unwrap();
    let from = explained(&[]);
    let from = from.strip_prefix("scope tail: from byte ");
    let from = from.and_then(|from| from.strip_suffix(" on"));
    let from: usize = from.unwrap().parse().unwrap();
    assert!(from < boundary && from > boundary - (512 << 10), "{from}");
    assert_eq!(explained(&["--full"]), "scope file: from byte 0 on");

    let short = json(&session, &[]);
    let full = json(&session, &["--full"]);
    assert_eq!(
        (&short["scope"], &full["scope"]),
        (&"tail".into(), &"file".into())
    );
    assert_eq!(short["messages"], full["messages"]);
    assert!(full["messages"].to_string().contains("Go on"));
    let line = |answer: &Value| answer["decisions"][0]["line"].clone();
    assert_eq!((line(&short), line(&full)), (Value::Null, 203.into()));

    // An entry before the part that was read.
    let early = json(&session, &["--leaf", "u150"]);
    assert_eq!(
        (&early["scope"], &early["leaf"]),
        (&"file".into(), &"u150".into())
    );
}

#[test]
fn explain_says_why_a_file_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let session = compacted(folder.path(), 70);
    let first = |session: &str| {
        let output = transcript(&["resume", "--explain", session]);
        stderr(&output)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let small = "scope file: no compaction is near the end of the file, or the file is small";
    assert_eq!(first(&session), small);
    let session = compacted(folder.path(), 200);
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&session)
        .unwrap();
    let pin = r#"{"type":"last-prompt","leafUuid":"u3","sessionId":"s"}"#;
    writeln!(file, "{pin}").unwrap();
    assert_eq!(
        first(&session),
        "scope file: a pin names an entry that is further up"
    );
    assert_eq!(json(&session, &[])["scope"], "file");
}

/// Twenty turns of a model of the price table, each with a result of this many tokens.
fn long_session(tokens: usize) -> String {
    let line = |number: usize, kind: &str, content: String| {
        let parent = match number {
            0 => "null".to_owned(),
            _ => format!("\"e{}\"", number - 1),
        };
        let model = match kind {
            "assistant" => format!(r#""id":"m{number}","model":"claude-opus-4-5","#),
            _ => String::new(),
        };
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"e{number}\",\"parentUuid\":{parent},\"timestamp\":\"2026-11-01T10:00:00Z\",\"message\":{{{model}\"role\":\"{kind}\",\"content\":{content}}}}}\n"
        )
    };
    let turns = (0..20).map(|turn| {
        let call = format!(r#"[{{"type":"tool_use","id":"t{turn}","name":"Read","input":{{}}}}]"#);
        let text = "word".repeat(tokens);
        let result =
            format!(r#"[{{"type":"tool_result","tool_use_id":"t{turn}","content":"{text}"}}]"#);
        let first = 4 * turn;
        [
            line(first, "user", format!("\"Prompt {turn}.\"")),
            line(first + 1, "assistant", call),
            line(first + 2, "user", result),
            line(
                first + 3,
                "assistant",
                r#"[{"type":"text","text":"Done."}]"#.to_owned(),
            ),
        ]
        .concat()
    });
    turns.collect()
}

#[test]
fn a_request_that_is_longer_than_the_window_says_so_and_can_be_made_to_fit() {
    let session = long_session(12_000);
    let (code, whole) = piped(&session, &[]);
    assert_eq!(code, Some(0));
    assert_eq!(whole["tokens"]["window"], 200_000);
    let over = whole["tokens"]["over"].as_u64().expect("it is too long");
    assert_eq!(whole["tokens"]["request"], 200_000 + over);
    assert_eq!(whole["lint"]["ok"], false);
    assert_eq!(whole["lint"]["problems"][0]["rule"], "context-window");

    let fitted = piped(
        &session,
        &["--fit", "claude-opus-4-5", "--prompt", "Go on."],
    )
    .1;
    assert_eq!(fitted["tokens"]["over"], Value::Null);
    assert_eq!(fitted["lint"]["ok"], true);
    assert_eq!(fitted["omitted"][0]["reason"], "context-window");
    assert_eq!(fitted["omitted"][0]["line"], 3);
    assert_eq!(fitted["synthetic"][0]["kind"], "omission-note");

    // No answer says what it took: a third is added to compare a request with its limit, and to nothing else.
    let short = long_session(1_000);
    let whole = &piped(&short, &[]).1["tokens"];
    let tokens = whole["request"].as_u64().expect("it is estimated");
    assert_eq!(
        (&whole["margin"], &whole["over"]),
        (&json!(0), &Value::Null)
    );
    for (limit, is_too_long) in [(tokens * 4 / 3, false), (tokens + tokens / 4, true)] {
        let options = ["--fit", &limit.to_string(), "--fit-turns", "20"];
        let (_, fitted) = piped(&short, &options);
        let fitted = &fitted["tokens"];
        assert_eq!(fitted["request"], tokens);
        assert_eq!(fitted["margin"], tokens / 3);
        let over = (tokens + tokens / 3).saturating_sub(limit);
        let over = is_too_long.then_some(over);
        assert_eq!(fitted["over"], json!(over));
    }

    // Two turns of 12,000 tokens are longer than 5,000.
    let kept = |turns: &str| {
        let options = ["--fit", "5k", "--fit-turns", turns];
        piped(&session, &options).1
    };
    assert!(kept("2")["tokens"]["over"].is_u64());
    assert_eq!(kept("2")["messages"].as_array().map(Vec::len), Some(8));
    assert_eq!(kept("1")["messages"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_limit_that_cannot_be_used_is_refused() {
    let session = fixture("parallel-tools.jsonl");
    for (options, said) in [
        (
            &["--fit", "no-such-model"][..],
            "nor a model of the price table",
        ),
        (
            &["--fit", "9k", "--policy", "vendor"],
            "use --policy recover",
        ),
        (&["--fit-turns", "1"], "--fit"),
    ] {
        let output = transcript(&[&["resume", &session], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

/// A session with what only some providers accept.
fn session_for_providers() -> String {
    let line = |number: usize, kind: &str, content: &str| {
        let parent = match number {
            0 => "null".to_owned(),
            number => format!("\"e{}\"", number - 1),
        };
        let model = match kind {
            "assistant" => format!(r#""id":"m{number}","model":"claude-opus-4-5","#),
            _ => String::new(),
        };
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"e{number}\",\"parentUuid\":{parent},\"timestamp\":\"2026-11-01T10:00:00Z\",\"message\":{{{model}\"role\":\"{kind}\",\"content\":{content}}}}}\n"
        )
    };
    let image = r#"{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}"#;
    let search = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","title":"Leap years","url":"https://example.org","encrypted_content":"xyz"}]}"#;
    let call = r#"{"type":"tool_use","id":"t1","name":"mcp__a.b","input":{}}"#;
    [
        line(
            0,
            "user",
            &format!(r#"[{image},{{"cachePoint":{{"type":"default"}}}}]"#),
        ),
        line(1, "assistant", &format!("[{search},{call}]")),
        line(
            2,
            "user",
            r#"[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]"#,
        ),
        line(3, "assistant", r#"[{"type":"text","text":"Done."}]"#),
    ]
    .concat()
}

#[test]
fn a_request_is_made_for_a_provider() {
    let session = session_for_providers();
    let of = |provider: &str| piped(&session, &["--provider", provider]).1;
    let reasons = |answer: &Value| -> Vec<String> {
        let omitted = answer["omitted"].as_array().unwrap().iter();
        let reasons = omitted.map(|one| one["reason"].as_str().unwrap().to_owned());
        reasons.collect()
    };
    let (messages, converse, vertex) = (of("messages"), of("converse"), of("vertex"));
    assert_eq!(messages, piped(&session, &[]).1);
    assert_eq!(reasons(&messages), ["no-block"]);
    assert_eq!(reasons(&vertex), ["media-address", "no-block"]);
    assert_eq!(
        reasons(&converse),
        ["media-address", "api-tool", "api-tool", "call-name"]
    );
    let named = [
        ("messages", &messages),
        ("converse", &converse),
        ("vertex", &vertex),
    ];
    for (provider, answer) in named {
        assert_eq!(answer["lint"]["ok"], true, "{}", answer["lint"]);
        assert_eq!(answer["provider"], provider);
    }
    let content = &converse["messages"][0]["content"];
    assert_eq!(
        content[0]["text"],
        "[media left out: an image named by an address or a file id (https://example.org/a.png), which the API does not read]"
    );
    assert!(content[1]["cachePoint"].is_object());
    let content = &converse["messages"][1]["content"];
    assert_eq!(
        content[0]["text"],
        "[result of a tool that the API ran: web_search:\nLeap years\nhttps://example.org]"
    );
    assert_eq!(content[1]["name"], "mcp__a_b");
    assert_eq!(converse["synthetic"][1]["kind"], "api-tool-note");
    assert_eq!(vertex["messages"][1], messages["messages"][1]);
}

#[test]
fn a_provider_that_cannot_be_used_is_refused() {
    let session = fixture("parallel-tools.jsonl");
    for (options, said) in [
        (
            &["--provider", "azure"][..],
            "messages, converse and vertex",
        ),
        (
            &["--provider", "converse", "--policy", "vendor"],
            "use --policy recover",
        ),
    ] {
        let output = transcript(&[&["resume", &session], options].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}
