//! `transcript append`.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use transcript_testkit::running_client::RunningClient;

use crate::{command, fixture, sessions, stderr, stdout, transcript};

/// A folder with one session in it.
pub(crate) struct Session {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

const ID: &str = "5c1ee9f0-3c5e-4d0a-9b53-0f3f5a6d7c11";

impl Session {
    /// A session that does not exist yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{ID}.jsonl"));
        Self {
            _folder: folder,
            path,
        }
    }

    fn with(text: &str) -> Self {
        let session = Self::new();
        fs::write(&session.path, text).unwrap();
        session
    }

    /// A copy of a fixture, under its own name.
    fn copy(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, fs::read(fixture(name)).unwrap()).unwrap();
        Self {
            _folder: folder,
            path,
        }
    }

    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["append", self.path.to_str().unwrap()], more].concat()
    }

    /// Gives all of `input` at once. A command that is refused may have ended before it reads it.
    pub(crate) fn run(&self, more: &[&str], input: &str) -> Output {
        let mut child = self.spawn(more);
        if let Err(error) = child.input.write_all(input.as_bytes()) {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
        child.finish()
    }

    /// Gives the commands at once, all of which work, and returns their answers.
    pub(crate) fn append(&self, commands: &[Value]) -> Vec<Value> {
        let output = self.run(&["--create"], &lines(commands));
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
        answers(&output)
    }

    fn spawn(&self, more: &[&str]) -> Client {
        let mut child = command(&self.arguments(more))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Client {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    fn entries(&self) -> Vec<Value> {
        let bytes = self.bytes();
        let lines = bytes.strip_suffix(b"\n").unwrap();
        lines
            .split(|byte| *byte == b'\n')
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// The leaf under the policy `vendor`.
    fn leaf(&self) -> Value {
        leaf(&self.path)
    }
}

/// A client that talks to the command.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn ask(&mut self, command: &Value) -> Value {
        self.send(&format!("{command}\n"));
        self.answer()
    }

    fn send(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Ends the input and returns the answers since.
    fn finish(self) -> Output {
        let Self {
            mut child,
            input,
            output,
        } = self;
        drop(input);
        // Output that was already buffered is not lost: the caller gets every answer.
        child.stdout = Some(output.into_inner());
        child.wait_with_output().unwrap()
    }
}

fn leaf(path: &Path) -> Value {
    // Under `vendor`: a client may continue the session, so it must find the parent of each entry.
    let path = path.to_str().unwrap();
    let output = transcript(&["replay", "--json", "--policy", "vendor", path]);
    answers(&output)[0]["leaf"].clone()
}

pub(crate) fn lines(commands: &[Value]) -> String {
    let lines = commands.iter().map(|command| format!("{command}\n"));
    lines.collect()
}

fn answers(output: &Output) -> Vec<Value> {
    let text = stdout(output);
    text.split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn user(text: &str) -> Value {
    json!({"op": "append", "user": text})
}

pub(crate) fn entry(entry: &Value) -> Value {
    json!({"op": "append", "entry": entry})
}

/// A message with these blocks.
pub(crate) fn assistant(id: &str, blocks: &Value) -> Value {
    json!({"op": "append", "assistant": {
        "id": id, "type": "message", "role": "assistant", "model": "claude-x", "content": blocks,
        "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 5},
    }})
}

pub(crate) fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})
}

/// The entry with the result of a call.
pub(crate) fn result(call: &str) -> Value {
    entry(
        &json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call, "content": "done"},
        ]}}),
    )
}

#[test]
fn hello_says_schema_and_version() {
    let session = Session::new();
    let answers = session.append(&[json!({"op": "hello"})]);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        answers,
        [json!({"ok": true, "schema": 1, "version": version})]
    );
    assert!(!session.path.exists(), "a session without an entry");
}

#[test]
fn client_actions_are_written_with_their_notes_and_outputs() {
    let session = Session::new();
    let action = |action: Value| json!({"op": "append", "client": action});
    let answers = session.append(&[
        action(
            json!({"prompt": {"references": [{"kind": "git", "what": "DIFF"}], "text": "Why?"}}),
        ),
        assistant("m1", &json!([call("t1"), call("t2")])),
        action(json!({"rejection": {"call": "t1", "by": "automatic", "reason": "It deletes."}})),
        action(json!({"cancelled": {"call": "t2"}})),
        action(json!({"interrupt": {}})),
        action(json!({"shell": {"command": "ls </bash-input>", "stdout": "a.txt"}})),
        action(json!({"command": {"name": "cost"}})),
        action(json!({"memoryNote": {"text": "Tabs."}})),
    ]);
    let written: Vec<usize> = answers
        .iter()
        .map(|answer| answer["entries"].as_array().unwrap().len())
        .collect();
    assert_eq!(written, [1, 2, 1, 1, 1, 3, 2, 1]);
    let entries = session.entries();
    let text = |entry: &Value| entry["message"]["content"].as_str().map(str::to_owned);
    let texts: Vec<String> = entries.iter().filter_map(text).collect();
    assert!(texts[0].ends_with("> - 🔀 Git DIFF\n\nWhy?"), "{texts:?}");
    assert!(texts[1].starts_with("<local-command-caveat>"), "{texts:?}");
    assert_eq!(texts[2], "<bash-input>ls &lt;/bash-input></bash-input>");
    assert_eq!(
        texts[3],
        "<bash-stdout>a.txt</bash-stdout><bash-stderr></bash-stderr>"
    );
    assert!(
        texts[5].starts_with("<command-name>/cost</command-name>"),
        "{texts:?}"
    );
    assert_eq!(texts[6], "<user-memory-input>Tabs.</user-memory-input>");
    let metas: Vec<_> = entries
        .iter()
        .filter(|entry| entry["isMeta"] == true)
        .collect();
    assert_eq!(metas.len(), 2, "the notes before the commands");
    let rejected = &entries[3]["message"]["content"][0];
    assert_eq!(
        (&rejected["is_error"], &rejected["tool_use_id"]),
        (&true.into(), &"t1".into())
    );

    for wrong in [
        json!({}),
        json!("interrupt"),
        json!({"stop": {}}),
        json!({"interrupt": {"tool": true}}),
        json!({"shell": {"command": 7}}),
        json!({"interrupt": {}, "memoryNote": {"text": "x"}}),
        json!({"rejection": {"call": "t1", "by": "nobody"}}),
        json!({"prompt": {"references": [], "text": "Why?"}}),
        json!({"prompt": {"references": [{"kind": "file", "path": "a\nb"}], "text": "Why?"}}),
    ] {
        let output = session.run(&[], &lines(&[action(wrong.clone())]));
        let [answer] = self::answers(&output).try_into().unwrap();
        assert_eq!(answer["error"]["kind"], "bad-command", "{wrong}: {answer}");
    }
    assert_eq!(session.entries().len(), entries.len());
}

#[test]
fn ids_are_echoed_as_they_were_written() {
    let session = Session::new();
    let ids = ["7", "\"x\\u0041\"", "null", "[1.50, {\"b\" :2}]", "1e999"];
    let mut input: String = ids
        .iter()
        .map(|id| format!("{{\"op\":\"append\",\"id\":{id},\"user\":\"x\"}}\n"))
        .collect();
    input.push_str("{\"op\":\"nothing\",\"id\":8}\n{\"op\":\"close\",\"id\":9}\n");
    let output = session.run(&["--create"], &input);
    let text = stdout(&output);
    let heads: Vec<_> = text.split_terminator('\n').collect();
    let ok = |id: &str| format!("{{\"id\":{id},\"ok\":");
    for (line, id) in heads.iter().zip(ids) {
        assert!(line.starts_with(&ok(id)), "{line}");
    }
    assert!(heads[ids.len()].starts_with(&ok("8")));
    assert_eq!(heads[ids.len() + 1], "{\"id\":9,\"ok\":true}");
    assert_eq!(heads.len(), ids.len() + 2);
}

#[test]
fn an_answer_says_where_the_entry_stands() {
    let session = Session::new();
    let answers = session.append(&[user("one"), user("two ☃")]);
    let bytes = session.bytes();
    for answer in &answers {
        assert_eq!(answer["ok"], true);
        let [place] = &answer["entries"].as_array().unwrap()[..] else {
            panic!("{answer}");
        };
        let (offset, len) = (place["offset"].as_u64().unwrap(), place["len"].as_u64());
        let end = offset as usize + len.unwrap() as usize;
        let line: Value = serde_json::from_slice(&bytes[offset as usize..end]).unwrap();
        assert_eq!(bytes[end], b'\n');
        assert_eq!(line["uuid"], place["uuid"]);
        assert_eq!(line["parentUuid"], place["parentUuid"]);
        assert_eq!(answer["uuid"], place["uuid"]);
    }
    assert_eq!(answers[0]["entries"][0]["parentUuid"], Value::Null);
    assert_eq!(answers[1]["entries"][0]["parentUuid"], answers[0]["uuid"]);
}

#[test]
fn a_new_session_can_be_replayed_and_resumed() {
    let session = Session::new();
    session.append(&[
        user("List the files."),
        assistant(
            "m1",
            &json!([{"type": "text", "text": "I look."}, call("t1")]),
        ),
        result("t1"),
        assistant("m2", &json!([{"type": "text", "text": "There are two."}])),
    ]);
    let path = session.path.to_str().unwrap();
    let text = stdout(&transcript(&["replay", path]));
    for part in ["List the files.", "I look.", "Bash", "There are two."] {
        assert!(text.contains(part), "{text}");
    }
    let resumed = transcript(&["resume", "--json", "--prompt", "Which?", path]);
    assert_eq!(resumed.status.code(), Some(0));
    let resumed: Value = serde_json::from_str(&stdout(&resumed)).unwrap();
    assert_eq!(resumed["sessionId"], ID);
    assert_eq!(resumed["entries"].as_array().unwrap().len(), 5);
    assert_eq!(resumed["lint"]["ok"], true, "{}", resumed["lint"]);
    assert_eq!(resumed["synthetic"], json!([]));
    let roles: Vec<_> = resumed["messages"].as_array().unwrap().iter().collect();
    assert_eq!(roles.len(), 5);
    assert_eq!(roles[1]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn missing_fields_are_filled_and_others_stay() {
    let session = Session::new();
    let output = session.run(
        &["--create", "--session-id", "other", "--cwd", "/srv/almanac"],
        &lines(&[
            user("x"),
            entry(
                &json!({"type": "user", "uuid": "u2", "timestamp": "2026-11-01T10:00:00Z",
                "cwd": "/", "version": "9", "sessionId": "own", "userType": "internal",
                "message": {"role": "user", "content": "y"}, "extra": [1.5]}),
            ),
        ]),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let entries = session.entries();
    let (first, second) = (&entries[0], &entries[1]);
    assert_eq!(first["sessionId"], "other");
    assert_eq!(first["cwd"], "/srv/almanac");
    assert_eq!(first["isSidechain"], false);
    assert_eq!(first["userType"], "external");
    assert_eq!(first["version"], env!("CARGO_PKG_VERSION"));
    assert!(first["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(second["parentUuid"], first["uuid"]);
    for (key, value) in [
        ("uuid", json!("u2")),
        ("timestamp", json!("2026-11-01T10:00:00Z")),
        ("cwd", json!("/")),
        ("version", json!("9")),
        ("sessionId", json!("own")),
        ("userType", json!("internal")),
        ("extra", json!([1.5])),
    ] {
        assert_eq!(second[key], value);
    }
}

#[test]
fn branch_and_entrypoint_are_filled_in_where_an_entry_has_none() {
    let session = Session::new();
    let own = json!({
        "type": "user", "gitBranch": "other", "message": {"role": "user", "content": "own"},
    });
    let commands = [
        json!({"op": "append", "user": "hello"}),
        json!({"op": "append", "entry": own}),
    ];
    let options = ["--create", "--branch", "main", "--entrypoint", "sdk-test"];
    let output = session.run(&options, &lines(&commands));
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let told = |key: &str| {
        let written = session.entries().into_iter();
        written.map(|line| line[key].clone()).collect::<Vec<_>>()
    };
    assert_eq!(told("gitBranch"), ["main", "other"]);
    assert_eq!(told("entrypoint"), ["sdk-test", "sdk-test"]);
}

#[test]
fn every_fixture_goes_on_at_its_leaf() {
    for file in fs::read_dir(sessions()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let session = Session::copy(&name);
        let (before, old) = (session.leaf(), session.bytes());
        let answers = session.append(&[user("Go on.")]);
        assert_eq!(answers[0]["entries"][0]["parentUuid"], before, "{name}");
        assert_eq!(session.leaf(), answers[0]["uuid"], "{name}");
        let whole = old.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        assert_eq!(session.bytes()[..whole], old[..whole], "{name}");
    }
}

#[test]
fn a_file_of_another_name_keeps_the_session_of_its_lines() {
    let line = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s9","timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"x"}}"#;
    let session = Session::with(&format!("{line}\n"));
    let renamed = session.path.with_file_name("notes.jsonl");
    fs::rename(&session.path, &renamed).unwrap();
    let session = Session {
        path: renamed,
        ..session
    };
    session.append(&[user("y")]);
    assert_eq!(session.entries()[1]["sessionId"], "s9");
}

#[test]
fn rows_of_one_message_are_together() {
    let session = Session::new();
    let answers = session.append(&[
        user("x"),
        assistant(
            "m1",
            &json!([{"type": "text", "text": "a"}, call("t1"), call("t2")]),
        ),
        user("y"),
    ]);
    let rows = answers[1]["entries"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(answers[1]["uuid"], rows[2]["uuid"]);
    let mut parent = &answers[0]["uuid"];
    let mut offset = rows[0]["offset"].as_u64().unwrap();
    for row in rows {
        assert_eq!(&row["parentUuid"], parent);
        assert_eq!(row["offset"], offset);
        parent = &row["uuid"];
        offset += row["len"].as_u64().unwrap() + 1;
    }
    assert_eq!(&answers[2]["entries"][0]["parentUuid"], parent);
    for line in &session.entries()[1..4] {
        assert_eq!(line["type"], "assistant");
        assert_eq!(line["message"]["id"], "m1");
        assert_eq!(line["message"]["usage"]["output_tokens"], 5);
        assert_eq!(line["message"]["content"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_result_is_a_child_of_its_own_call() {
    let session = Session::new();
    let calls = session.append(&[
        user("x"),
        assistant("m1", &json!([call("t1"), call("t2"), call("t3")])),
        result("t2"),
    ]);
    // The others are answered by another process, which knows the calls from the file.
    let later = session.append(&[result("t3"), result("t1"), user("y")]);
    let entries = session.entries();
    let results = [(&calls[2], 1), (&later[0], 2), (&later[1], 0)];
    for (answer, call) in results {
        let call = &calls[1]["entries"][call]["uuid"];
        assert_eq!(&answer["entries"][0]["parentUuid"], call);
        let line = entries.iter().find(|line| line["uuid"] == answer["uuid"]);
        assert_eq!(&line.unwrap()["sourceToolAssistantUUID"], call);
    }
    assert_eq!(later[2]["entries"][0]["parentUuid"], later[1]["uuid"]);
}

#[test]
fn an_agent_goes_on_from_its_own_last_entry() {
    let line = |uuid: &str, more: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","timestamp":"2026-11-01T10:00:00Z","message":{{"role":"user","content":"x"}},{more}}}"#
        ) + "\n"
    };
    let text = [
        line("u1", r#""parentUuid":null,"isSidechain":false"#),
        line(
            "s1",
            r#""parentUuid":null,"isSidechain":true,"agentId":"ant""#,
        ),
        line(
            "s2",
            r#""parentUuid":"s1","isSidechain":true,"agentId":"ant""#,
        ),
        line(
            "b1",
            r#""parentUuid":null,"isSidechain":true,"agentId":"bee""#,
        ),
    ];
    let session = Session::with(&text.concat());
    let side = |agent: &str| {
        entry(
            &json!({"type": "user", "isSidechain": true, "agentId": agent,
            "message": {"role": "user", "content": "z"}}),
        )
    };
    let answers = session.append(&[user("y"), side("ant"), side("bee"), side("new"), user("z")]);
    let parents: Vec<_> = answers
        .iter()
        .map(|answer| answer["entries"][0]["parentUuid"].clone())
        .collect();
    let main = answers[0]["uuid"].clone();
    assert_eq!(
        parents,
        [json!("u1"), json!("s2"), json!("b1"), Value::Null, main]
    );
}

#[test]
fn metadata_is_not_a_parent_and_has_no_uuid() {
    let session = Session::new();
    let answers = session.append(&[
        user("x"),
        json!({"op": "meta", "entry": {"type": "custom-title", "customTitle": "Leap days"}}),
        json!({"op": "meta", "entry": {"type": "tag", "tag": "dates"}}),
        user("y"),
    ]);
    assert_eq!(answers[1]["ok"], true);
    assert_eq!(answers[1]["uuid"], Value::Null);
    assert_eq!(answers[1]["entries"][0]["uuid"], Value::Null);
    assert_eq!(answers[3]["entries"][0]["parentUuid"], answers[0]["uuid"]);
    assert_eq!(session.entries()[1]["sessionId"], ID);
    let path = session.path.to_str().unwrap();
    let resumed: Value =
        serde_json::from_str(&stdout(&transcript(&["resume", "--json", path]))).unwrap();
    assert_eq!(resumed["state"]["title"], "Leap days");
}

#[test]
fn a_wrong_command_is_answered_and_the_next_one_works() {
    let session = Session::with(
        "{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null,\"timestamp\":\"2026-11-01T10:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n",
    );
    let cases = [
        ("secret", "bad-command"),
        ("[\"secret\"]", "bad-command"),
        ("{\"op\":\"secret\"}", "bad-command"),
        ("{\"op\":7}", "bad-command"),
        ("{\"user\":\"secret\"}", "bad-command"),
        ("{\"op\":\"append\"}", "bad-command"),
        ("{\"op\":\"append\",\"user\":[\"secret\"]}", "bad-command"),
        (
            "{\"op\":\"append\",\"user\":\"secret\",\"entry\":{\"type\":\"user\"}}",
            "bad-command",
        ),
        ("{\"op\":\"append\",\"entry\":\"secret\"}", "invalid-entry"),
        (
            "{\"op\":\"append\",\"entry\":{\"secret\":1}}",
            "invalid-entry",
        ),
        (
            "{\"op\":\"append\",\"assistant\":{\"secret\":1}}",
            "invalid-entry",
        ),
        ("{\"op\":\"meta\",\"secret\":1}", "bad-command"),
        (
            "{\"op\":\"meta\",\"entry\":{\"type\":\"user\",\"secret\":1}}",
            "bad-command",
        ),
        ("{\"op\":\"record\",\"messages\":{}}", "bad-command"),
        ("{\"op\":\"compact\"}", "bad-command"),
        ("{\"op\":\"tombstone\",\"uuid\":\"gone\"}", "unknown-entry"),
        (
            "{\"op\":\"append\",\"entry\":{\"type\":\"tombstone\",\"message\":{\"uuid\":\"gone\"}}}",
            "unknown-entry",
        ),
        (
            "{\"op\":\"append\",\"entry\":{\"type\":\"tombstone\",\"message\":{\"secret\":1}}}",
            "invalid-entry",
        ),
        (
            "{\"op\":\"meta\",\"entry\":{\"type\":\"tombstone\",\"message\":{\"uuid\":\"secret\"}}}",
            "bad-command",
        ),
        ("{\"op\":\"rewind\",\"to\":\"gone\"}", "unknown-entry"),
        (
            "{\"op\":\"append\",\"entry\":{\"type\":\"user\",\"uuid\":\"u1\",\"message\":{\"content\":\"secret\"}}}",
            "repeated-uuid",
        ),
        (
            "{\"op\":\"append\",\"entry\":{\"type\":\"user\",\"parentUuid\":\"secret\",\"message\":{\"content\":\"\"}}}",
            "unknown-parent",
        ),
        // An entry that no reader would find in the conversation.
        (
            "{\"op\":\"append\",\"entry\":{\"type\":\"user\",\"secret\":1}}",
            "invalid-entry",
        ),
        (
            "{\"op\":\"append\",\"entry\":{\"type\":\"secret\",\"message\":{}}}",
            "invalid-entry",
        ),
        (
            "{\"op\":\"append\",\"entry\":{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"secret\"}]}}}",
            "unknown-call",
        ),
    ];
    for (line, kind) in cases {
        let before = session.bytes();
        let output = session.run(&[], &format!("{line}\n{{\"op\":\"hello\"}}\n"));
        assert_eq!(output.status.code(), Some(1), "{line}");
        let answers = answers(&output);
        assert_eq!(answers.len(), 2, "{line}");
        assert_eq!(answers[0]["ok"], false, "{line}");
        let error = &answers[0]["error"];
        assert_eq!(error["kind"], kind, "{line}");
        assert_eq!(error["retry"], false, "{line}");
        assert!(!error["message"].as_str().unwrap().is_empty());
        assert!(!stdout(&output).contains("secret"), "{}", stdout(&output));
        assert_eq!(stderr(&output), "");
        assert_eq!(answers[1]["ok"], true);
        assert_eq!(session.bytes(), before, "{line}");
    }
}

#[test]
fn line_that_is_not_utf8_is_refused() {
    let session = Session::new();
    let mut client = session.spawn(&["--create"]);
    client
        .input
        .write_all(b"{\"op\":\"append\",\"user\":\"\xff\"}\n")
        .unwrap();
    assert_eq!(client.answer()["error"]["kind"], "bad-command");
    assert_eq!(client.ask(&json!({"op": "hello"}))["ok"], true);
}

#[test]
fn one_failure_in_a_batch_is_its_own() {
    let session = Session::new();
    let twice =
        entry(&json!({"type": "user", "uuid": "u1", "message": {"role": "user", "content": "z"}}));
    let lost = json!({"role": "user", "content": "z"});
    let lost = entry(&json!({"type": "user", "parentUuid": "u9", "message": lost}));
    let commands = [user("x"), twice.clone(), twice, lost, user("y")];
    let output = session.run(&["--create"], &lines(&commands));
    assert_eq!(output.status.code(), Some(1));
    let answers = answers(&output);
    let ok: Vec<_> = answers.iter().map(|answer| answer["ok"].clone()).collect();
    assert_eq!(ok, [true, true, false, false, true]);
    assert_eq!(answers[2]["error"]["kind"], "repeated-uuid");
    assert_eq!(answers[3]["error"]["kind"], "unknown-parent");
    assert_eq!(answers[4]["entries"][0]["parentUuid"], "u1");
    assert_eq!(session.entries().len(), 3);
}

#[test]
fn many_commands_at_once_are_answered_in_order() {
    for options in [&["--create"][..], &["--create", "--ack-batch"]] {
        let session = Session::new();
        let mut client = session.spawn(options);
        let commands = (0..3000).map(|id| {
            let text = "x".repeat(id % 700);
            format!("{{\"op\":\"append\",\"id\":{id},\"user\":\"{text}\"}}\n")
        });
        let input: String = commands.collect();
        // Answers are read meanwhile: a full pipe would stop the writer.
        let mut writer = client.input;
        let feeder = std::thread::spawn(move || {
            writer.write_all(input.as_bytes()).unwrap();
            writer
        });
        let mut line = String::new();
        let mut parent = Value::Null;
        for id in 0..3000 {
            line.clear();
            client.output.read_line(&mut line).unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(answer["id"], id);
            assert_eq!(answer["entries"][0]["parentUuid"], parent);
            parent = answer["uuid"].clone();
        }
        client.input = feeder.join().unwrap();
        assert_eq!(client.finish().status.code(), Some(0));
        assert_eq!(session.entries().len(), 3000);
        assert_eq!(session.leaf(), parent);
    }
}

#[test]
fn a_client_that_waits_for_its_answer_gets_it() {
    for options in [&["--create"][..], &["--create", "--ack-batch"]] {
        let session = Session::new();
        let mut client = session.spawn(options);
        assert_eq!(client.ask(&json!({"op": "hello"}))["ok"], true);
        for _ in 0..3 {
            assert_eq!(client.ask(&user("x"))["ok"], true);
        }
        // A second command that has begun does not keep the first one back.
        client.send("{\"op\":\"append\",\"user\":\"y\"}\n{\"op\":");
        assert_eq!(client.answer()["ok"], true);
        assert_eq!(session.entries().len(), 4);
        client.send("\"sync\"}\n");
        assert_eq!(client.answer(), json!({"ok": true}));
        let output = client.finish();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn an_answered_entry_survives_a_kill() {
    let session = Session::new();
    let mut client = session.spawn(&["--create", "--sync", "none"]);
    let answer = client.ask(&user("x"));
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    assert_eq!(session.entries()[0]["uuid"], answer["uuid"]);
}

#[test]
fn every_sync_policy_answers_the_same() {
    for policy in ["none", "interval", "each"] {
        let session = Session::new();
        let sync = json!({"op": "sync", "id": 1});
        let commands = [user("x"), sync.clone(), user("y"), sync];
        let output = session.run(&["--create", "--sync", policy], &lines(&commands));
        assert_eq!(output.status.code(), Some(0), "{policy}");
        let answers = answers(&output);
        assert_eq!(answers[1], json!({"id": 1, "ok": true}));
        assert_eq!(answers[2]["entries"][0]["parentUuid"], answers[0]["uuid"]);
        assert_eq!(session.entries().len(), 2);
    }
    let unknown = Session::new().run(&["--sync", "maybe"], "");
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn close_is_answered_and_what_follows_is_not_read() {
    let session = Session::new();
    let commands = [
        user("x"),
        json!({"op": "close", "id": "end"}),
        user("y"),
        json!({"op": "hello"}),
    ];
    let answers = session.append(&commands);
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[1], json!({"id": "end", "ok": true}));
    assert_eq!(session.entries().len(), 1);
}

#[test]
fn blank_lines_are_passed_over_and_the_last_line_needs_no_newline() {
    let session = Session::new();
    let input = "\n  \r\n{\"op\":\"hello\"}\r\n\n{\"op\":\"append\",\"user\":\"x\"}";
    let output = session.run(&["--create"], input);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(answers(&output).len(), 2);
    assert_eq!(session.entries().len(), 1);
}

#[test]
fn a_command_beyond_the_cap_is_answered_with_an_error() {
    const CAP: usize = 64 << 20;
    let session = Session::new();
    let mut client = session.spawn(&["--create"]);
    for (len, is_taken) in [(CAP, true), (CAP + 1, false)] {
        let mut line = vec![b' '; len + 1];
        line[..14].copy_from_slice(b"{\"op\":\"hello\"}");
        line[len] = b'\n';
        client.input.write_all(&line).unwrap();
        let answer = client.answer();
        assert_eq!(answer["ok"], is_taken, "{answer}");
    }
    assert_eq!(client.ask(&user("x"))["ok"], true);
    assert_eq!(client.finish().status.code(), Some(1));
}

#[test]
fn a_file_that_cannot_be_opened_ends_with_2() {
    let session = Session::new();
    let missing = session.run(&[], "");
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("no such file"));
    assert!(!session.path.exists());

    fs::create_dir(&session.path).unwrap();
    for options in [&[][..], &["--create"]] {
        let folder = session.run(options, "");
        assert_eq!(folder.status.code(), Some(2), "{}", stderr(&folder));
        assert_eq!(stdout(&folder), "");
    }
    let input = transcript(&["append", "-"]);
    assert_eq!(input.status.code(), Some(2));
    assert!(stderr(&input).contains("path of a file"));
}

#[cfg(unix)]
#[test]
fn a_link_to_a_session_is_refused() {
    let session = Session::copy("linear.jsonl");
    let link = session.path.with_file_name("link.jsonl");
    std::os::unix::fs::symlink(&session.path, &link).unwrap();
    let output = transcript(&["append", link.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("symbolic link"));
}

#[test]
fn a_torn_tail_is_cut_off_saved_and_reported() {
    let session = Session::copy("torn-tail.jsonl");
    let old = session.bytes();
    let at = old.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let output = session.run(&[], &lines(&[user("Go on.")]));
    assert_eq!(output.status.code(), Some(0));
    let said = stderr(&output);
    let saved = session
        .path
        .with_file_name(format!("torn-tail.jsonl.torn-{at}"));
    assert!(said.contains(&format!("at byte {at} ")), "{said}");
    assert!(said.contains(saved.to_str().unwrap()), "{said}");
    assert_eq!(fs::read(saved).unwrap(), old[at..]);
    assert_eq!(answers(&output)[0]["entries"][0]["offset"], at);
    assert_eq!(session.bytes()[..at], old[..at]);
    assert_eq!(
        session.entries().last().unwrap()["uuid"],
        answers(&output)[0]["uuid"]
    );

    let quiet = Session::copy("torn-tail.jsonl").run(&["-q"], &lines(&[user("Go on.")]));
    assert_eq!(stderr(&quiet), "");
}

/// An object that readers use as an entry may be a parent, so it must not be truncated.
#[test]
fn a_damaged_last_line_with_a_whole_entry_in_it_stays() {
    let line = |uuid: &str, parent: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"timestamp":"2026-11-01T10:00:00Z","message":{{"role":"user","content":"x"}}}}"#
        )
    };
    let (first, second) = (line("u1", "null"), line("u2", "\"u1\""));
    for tail in [
        format!("{second}{{\"type\":\"us"),
        format!("{second}\0\0\0\0"),
        format!("\0\0\0{second}"),
        format!("{{\"type\":\"us{second}"),
    ] {
        let text = format!("{first}\n{tail}");
        let session = Session::with(&text);
        let is_seen = session.leaf() == "u2";
        let output = session.run(&[], &lines(&[user("Go on.")]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(session.bytes().starts_with(text.as_bytes()), "{tail:?}");
        // The client does not see an entry behind other bytes: it is written once more.
        let added = String::from_utf8(session.bytes()[text.len() + 1..].to_vec()).unwrap();
        let copied = added
            .lines()
            .filter(|line| line.contains("\"uuid\":\"u2\""));
        assert_eq!(copied.count(), usize::from(!is_seen), "{added}");
        assert_eq!(stderr(&output).contains("written again"), !is_seen);
        assert_eq!(answers(&output)[0]["entries"][0]["parentUuid"], "u2");
        assert_eq!(session.leaf(), answers(&output)[0]["uuid"]);
    }
}

#[test]
fn a_sidechain_without_an_agent_is_not_part_of_the_main_chain() {
    let text = r#"{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"x"}}
{"type":"user","uuid":"s1","parentUuid":null,"isSidechain":true,"timestamp":"2026-11-01T10:00:01Z","message":{"role":"user","content":"x"}}
"#;
    let session = Session::with(text);
    let side = entry(&json!({"type": "user", "isSidechain": true,
        "message": {"role": "user", "content": "z"}}));
    let answers = session.append(&[side, user("y")]);
    assert_eq!(answers[0]["entries"][0]["parentUuid"], "s1");
    assert_eq!(answers[1]["entries"][0]["parentUuid"], "u1");
}

#[test]
fn a_whole_last_line_without_a_newline_is_kept_as_the_leaf() {
    let text = fs::read_to_string(fixture("linear.jsonl")).unwrap();
    let session = Session::with(text.trim_end());
    let leaf = session.leaf();
    let output = session.run(&[], &lines(&[user("Go on.")]));
    assert!(
        stderr(&output).contains("had no newline"),
        "{}",
        stderr(&output)
    );
    assert_eq!(answers(&output)[0]["entries"][0]["parentUuid"], leaf);
    assert!(session.bytes().starts_with(text.as_bytes()));
}

#[test]
fn a_closed_output_ends_quietly_and_loses_nothing() {
    let session = Session::new();
    let mut client = session.spawn(&["--create"]);
    client.ask(&user("x"));
    let Client {
        mut child,
        mut input,
        output,
    } = client;
    drop(output);
    input
        .write_all(lines(&[user("y"), user("z")]).as_bytes())
        .unwrap();
    drop(input);
    let mut said = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(said, "");
    assert_eq!(session.entries().len(), 3);
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_writer_fails_forks_or_shares_as_its_option_says() {
    let session = Session::new();
    let mut first = session.spawn(&["--create", "--on-busy", "wait"]);
    let root = first.ask(&user("x"))["uuid"].clone();
    let output = session.run(&["--on-busy", "fail"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("another process"));
    assert_eq!(stdout(&output), "");
    let before = session.bytes();
    let output = session.run(&["--on-busy", "fork"], &lines(&[user("y")]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    let fork = said.split_once("continuing in a copy: ").unwrap().1.trim();
    let fork = fs::read_to_string(fork).unwrap();
    assert_eq!(
        fork.lines()
            .filter(|line| line.contains("\"user\""))
            .count(),
        2
    );
    assert!(fork.contains(&format!("\"messageUuid\":{root}")), "{fork}");
    assert_eq!(session.bytes(), before);
    let output = session.run(&["--on-busy", "wait"], &lines(&[user("y")]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(answers(&output)[0]["entries"][0]["parentUuid"], root);
    assert_eq!(first.ask(&user("z"))["ok"], true);
    assert_eq!(session.entries().len(), 3);
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_that_a_client_runs_is_refused_forked_or_shared_as_the_option_says() {
    let home = tempfile::tempdir().unwrap();
    let path = RunningClient::session_in(home.path()).unwrap();
    let session = Session {
        _folder: home,
        path,
    };
    let root = session.append(&[user("x")])[0]["uuid"].clone();
    let before = session.bytes();
    let client = RunningClient::of(&session.path, "").unwrap();
    for options in [&[][..], &["--create"], &["--on-busy", "fail"]] {
        let output = session.run(options, &lines(&[user("y")]));
        assert_eq!(output.status.code(), Some(2));
        let words = format!("process {} runs it; end it first", client.id());
        assert!(stderr(&output).contains(&words), "{}", stderr(&output));
        assert_eq!(session.bytes(), before);
    }

    let commands = [json!({"op": "hello"}), user("y"), user("z")];
    let output = session.run(&["--on-busy", "fork"], &lines(&commands));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(session.bytes(), before);
    let fork = answers(&output)[0]["fork"].clone();
    for answer in answers(&output) {
        assert_eq!(answer["fork"], fork);
    }
    let copy = PathBuf::from(fork["path"].as_str().unwrap());
    assert_ne!(copy, session.path);
    assert_eq!(
        copy.file_stem().unwrap().to_str(),
        fork["sessionId"].as_str()
    );
    let written = &answers(&output)[2]["uuid"];
    assert_eq!(leaf(&copy), *written);

    let output = session.run(&["--on-busy", "wait"], &lines(&[user("y")]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = &answers(&output)[0];
    assert_eq!(
        (&answer["entries"][0]["parentUuid"], &answer["fork"]),
        (&root, &Value::Null)
    );

    // The client has ended, and its registration is still there.
    drop(client);
    let output = session.run(&[], &lines(&[user("z")]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_starts_while_the_session_is_open_is_seen() {
    let home = tempfile::tempdir().unwrap();
    let path = RunningClient::session_in(home.path()).unwrap();
    let session = Session {
        _folder: home,
        path,
    };
    let mut writer = session.spawn(&["--create"]);
    assert_eq!(writer.ask(&user("x"))["ok"], true);
    let before = session.bytes();
    let client = RunningClient::of(&session.path, "").unwrap();
    // The registrations are read ten times a second.
    std::thread::sleep(std::time::Duration::from_millis(120));
    let answer = writer.ask(&user("y"));
    assert_eq!(answer["error"]["kind"], "busy");
    assert_eq!(answer["error"]["retry"], true);
    assert_eq!(session.bytes(), before);
    drop(client);
    assert_eq!(writer.ask(&user("y"))["ok"], true);
    assert_eq!(writer.finish().status.code(), Some(1));
}

#[test]
fn metadata_of_other_writers_is_accepted_and_their_entries_are_refused() {
    let session = Session::new();
    let mut client = session.spawn(&["--create"]);
    let root = client.ask(&user("x"))["uuid"].clone();
    let append = |line: &str| {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(&session.path)
            .unwrap();
        file.write_all(line.as_bytes()).unwrap();
    };
    append("{\"type\":\"custom-title\",\"customTitle\":\"t\"}\n");
    let answer = client.ask(&user("y"));
    assert_eq!(answer["entries"][0]["parentUuid"], root);
    append("{\"type\":\"user\",\"uuid\":\"u9\",\"message\":{\"role\":\"user\"}}\n");
    let before = session.bytes();
    // Two at once fail alike.
    client.send(&lines(&[user("z"), user("z")]));
    for _ in 0..2 {
        assert_eq!(client.answer()["error"]["kind"], "busy");
    }
    assert_eq!(session.bytes(), before);
    assert_eq!(client.finish().status.code(), Some(1));
}

#[cfg(unix)]
#[test]
fn a_new_session_is_readable_only_by_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let session = Session::new();
    session.append(&[user("x")]);
    let mode = fs::metadata(&session.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

fn reply(id: &str, content: &Value) -> Value {
    json!({"id": id, "role": "assistant", "model": "m", "type": "message", "content": [content],
        "stop_reason": "end_turn", "usage": {"output_tokens": 1}})
}

fn result_of(call: &str) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": "x"});
    json!({"type": "user", "message": {"role": "user", "content": [block]}})
}

#[test]
fn a_compaction_keeps_pairs_whole_and_the_next_entry_is_a_child_of_the_summary() {
    let session = Session::new();
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}});
    let answers = session.append(&[
        json!({"op": "append", "user": "How high is the tide?"}),
        json!({"op": "append", "assistant": reply("msg_1", &call)}),
        json!({"op": "append", "entry": result_of("toolu_1")}),
    ]);
    let [call, result] = [&answers[1]["uuid"], &answers[2]["uuid"]];
    let mut client = session.spawn(&[]);
    let compact = |kept: &[&Value]| {
        json!({"op": "compact", "trigger": "manual", "summary": "Tides.", "preserved": kept,
            "preTokens": 900})
    };
    for half in [call, result] {
        let refused = client.ask(&compact(&[half]));
        assert_eq!(refused["error"]["kind"], "split-pair", "{refused}");
    }
    let nowhere = client.ask(&compact(&[&json!("nowhere")]));
    assert_eq!(nowhere["error"]["kind"], "unknown-entry", "{nowhere}");
    let done = client.ask(&compact(&[call, result]));
    let [boundary, summary] = [0, 1].map(|at| done["entries"][at].clone());
    assert_eq!(boundary["parentUuid"], Value::Null);
    assert_eq!(summary["parentUuid"], boundary["uuid"]);
    let next = client.ask(&json!({"op": "append", "user": "And now?"}));
    assert_eq!(next["entries"][0]["parentUuid"], summary["uuid"]);
    assert_eq!(client.finish().status.code(), Some(1));

    let entries = session.entries();
    let [boundary, summary] = [&entries[3], &entries[4]];
    assert_eq!(boundary["logicalParentUuid"], *result);
    let metadata = &boundary["compactMetadata"];
    assert_eq!(
        [&metadata["trigger"], &metadata["preTokens"]],
        [&json!("manual"), &json!(900)]
    );
    let anchor = &summary["uuid"];
    let messages =
        json!({"anchorUuid": anchor, "uuids": [call, result], "allUuids": [call, result]});
    assert_eq!(metadata["preservedMessages"], messages);
    let segment = json!({"headUuid": call, "anchorUuid": anchor, "tailUuid": result});
    assert_eq!(metadata["preservedSegment"], segment);
    assert_eq!(summary["isCompactSummary"], true);
    assert_eq!(summary["isVisibleInTranscriptOnly"], true);
    assert_eq!(session.leaf(), next["uuid"]);
}

#[test]
fn recording_adds_what_is_not_there() {
    let session = Session::new();
    let first = session.append(&[json!({"op": "append", "user": "First"})]);
    let message = |uuid: &str, kind: &str| json!({"type": kind, "uuid": uuid, "message": {"role": "user", "content": "x"}});
    let known = message(first[0]["uuid"].as_str().unwrap(), "user");
    let list = [
        known.clone(),
        message("p", "progress"),
        message("b", "user"),
        message("c", "user"),
    ];
    let record = json!({"op": "record", "messages": list});
    let answers = session.append(&[
        record.clone(),
        record,
        json!({"op": "record", "messages": []}),
    ]);
    assert_eq!(answers[0]["entries"].as_array().unwrap().len(), 2);
    assert_eq!(answers[0]["entries"][0]["parentUuid"], first[0]["uuid"]);
    assert_eq!(answers[0]["uuid"], "c");
    assert_eq!(answers[1]["entries"], json!([]));
    assert_eq!(answers[1]["uuid"], "c");
    assert_eq!(answers[2]["uuid"], Value::Null);
    assert_eq!(session.entries().len(), 3);
}

#[test]
fn a_tombstone_of_the_stream_protocol_is_the_operation_that_it_names() {
    let tombstone =
        |uuid: &str| json!({"type": "tombstone", "message": {"type": "assistant", "uuid": uuid}});
    let part = |uuid: &str| {
        json!({"type": "assistant", "uuid": uuid, "message": {"role": "assistant", "model": "m",
            "id": uuid, "content": [{"type": "text", "text": uuid}]}})
    };
    let session = Session::new();
    let said = session.append(&[
        json!({"op": "append", "user": "Question"}),
        json!({"op": "append", "entry": part("p1")}),
        json!({"op": "append", "entry": tombstone("p1")}),
        json!({"op": "append", "entry": part("p2")}),
        json!({"op": "append", "entry": part("p3")}),
        json!({"op": "record", "messages": [{"type": "stream_event"}, tombstone("p2"), tombstone("p3"),
            tombstone("gone"), part("p4")]}),
    ]);
    let prompt = &said[0]["uuid"];
    assert_eq!(said[2], json!({"ok": true, "entries": [], "uuid": prompt}));
    assert_eq!(said[3]["entries"][0]["parentUuid"], *prompt);
    assert_eq!(said[5]["entries"][0]["parentUuid"], *prompt);
    let skipped = json!([
        {"type": "stream_event", "reason": "not-stored", "count": 1, "first": 0},
        {"type": "tombstone", "reason": "unknown-entry", "count": 1, "first": 3},
    ]);
    assert_eq!(said[5]["skipped"], skipped);
    assert_eq!(session.leaf(), "p4");
    let lines = session.entries();
    assert!(lines.iter().all(|line| line["type"] != "tombstone"));
    for policy in ["recover", "vendor"] {
        let request = transcript(&[
            "resume",
            "--request",
            "--policy",
            policy,
            session.path.to_str().unwrap(),
        ]);
        let text = stdout(&request);
        assert!(
            text.contains("p4") && !text.contains("p1") && !text.contains("p3"),
            "{text}"
        );
    }
}

#[test]
fn a_rewind_and_a_tombstone_outlive_the_process() {
    let session = Session::new();
    let said = ["One", "Two", "Three", "Four"].map(|text| json!({"op": "append", "user": text}));
    let said = session.append(&said);
    let uuid = |at: usize| said[at]["uuid"].clone();
    let back = session.append(&[json!({"op": "rewind", "to": uuid(2)})]);
    assert_eq!(back[0]["uuid"], uuid(2));
    assert_eq!(session.leaf(), uuid(2));
    let buried = session.append(&[json!({"op": "tombstone", "uuid": uuid(2)})]);
    assert_eq!(buried[0]["uuid"], uuid(1));
    assert_eq!(session.leaf(), uuid(1));
    let next = session.append(&[json!({"op": "append", "user": "Other"})]);
    assert_eq!(next[0]["entries"][0]["parentUuid"], uuid(1));
    assert_eq!(session.leaf(), next[0]["uuid"]);
    let lines = session.entries();
    let named = lines
        .iter()
        .filter(|line| line["type"] == "transcriptEngine");
    let named: Vec<&Value> = named.map(|line| &line["tombstone"]).collect();
    assert_eq!(named, [&uuid(2)]);
}
