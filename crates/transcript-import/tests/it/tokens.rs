//! Tokens: each request is paid for once, with the tokens that its agent counted, and none of them twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use transcript_import::{Agent, ImportDisk, Policy};
use transcript_storage::{FileKind, ReadDisk};

use crate::support::Home;

const TIME: &str = "2026-01-02T03:04:05.678Z";

/// Tokens: input, output, read from the cache, written to it.
pub(crate) type Tokens = [u64; 4];

/// Returns the paths of all files below a folder.
fn files(disk: &ImportDisk, folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in disk.list(folder).expect("it is listed") {
        let entry = entry.expect("it is listed");
        let path = folder.join(&entry.name);
        match entry.kind {
            FileKind::Folder => found.extend(files(disk, &path)),
            _ => found.push(path),
        }
    }
    found
}

/// Returns the tokens of each response of all sessions: of several lines, which repeat them, the largest.
pub(crate) fn responses(disk: &ImportDisk, home: &Path) -> BTreeMap<String, Tokens> {
    let mut responses: BTreeMap<String, Tokens> = BTreeMap::new();
    for path in files(disk, home) {
        if path.extension().is_none_or(|ending| ending != "jsonl") {
            continue;
        }
        let bytes = disk.read(&path, usize::MAX).expect("it is read");
        let text = String::from_utf8(bytes).expect("it is UTF-8");
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("it is JSON");
            let usage = &line["message"]["usage"];
            let Some(id) = line["message"]["id"].as_str().filter(|_| usage.is_object()) else {
                continue;
            };
            let number = |key: &str| usage[key].as_u64().expect("it is a number");
            let counts = [
                number("input_tokens"),
                number("output_tokens"),
                number("cache_read_input_tokens"),
                number("cache_creation_input_tokens"),
            ];
            let known = responses.entry(id.to_owned()).or_default();
            for (known, count) in known.iter_mut().zip(counts) {
                *known = count.max(*known);
            }
        }
    }
    responses
}

/// Returns the number of responses, and the sum of their tokens.
pub(crate) fn sum(responses: &BTreeMap<String, Tokens>) -> (usize, Tokens) {
    let sum = responses.values().fold(Tokens::default(), |sum, counts| {
        std::array::from_fn(|at| sum[at] + counts[at])
    });
    (responses.len(), sum)
}

fn counted(home: &Home) -> (usize, Tokens) {
    sum(&responses(&home.files(Policy::Recover), Path::new("/home")))
}

const THREAD: &str = "10000000-0000-7000-8000-000000000001";
const FORK: &str = "20000000-0000-7000-8000-000000000002";

fn codex(kind: &str, payload: Value) -> Value {
    let mut record = json!({"timestamp": TIME, "type": kind});
    record["payload"] = payload;
    record
}

fn thread(id: &str) -> Value {
    let payload =
        json!({"id": id, "timestamp": TIME, "cwd": "/w", "originator": "o", "cli_version": "0.1"});
    codex("session_meta", payload)
}

fn said(role: &str, text: &str) -> Value {
    let kind = match role {
        "user" => "input_text",
        _ => "output_text",
    };
    let content = json!([{"type": kind, "text": text}]);
    codex(
        "response_item",
        json!({"type": "message", "role": role, "content": content}),
    )
}

fn called(id: &str) -> Vec<Value> {
    vec![
        codex(
            "response_item",
            json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": id}),
        ),
        codex(
            "response_item",
            json!({"type": "function_call_output", "call_id": id, "output": "o"}),
        ),
    ]
}

/// Counts as Codex writes them: those of the cache are a part of the input, thoughts of the output.
fn counts(input: u64, cached: u64, output: u64) -> Value {
    json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 1,
        "total_tokens": input + output})
}

fn total(total: Value, last: Value) -> Value {
    let mut info = json!({});
    info["total_token_usage"] = total;
    info["last_token_usage"] = last;
    codex("event_msg", json!({"type": "token_count", "info": info}))
}

fn rollout(thread: &str) -> String {
    format!("sessions/2026/01/02/rollout-2026-01-02T03-04-05-{thread}.jsonl")
}

/// Two responses of an older version. The first makes a call; its tokens are counted after the result, and again when the limits change.
fn older_turns() -> Vec<Value> {
    let mut records = vec![said("user", "one")];
    records.extend(called("c"));
    records.extend([
        total(counts(100, 40, 10), counts(100, 40, 10)),
        total(counts(100, 40, 10), counts(100, 40, 10)),
        said("assistant", "two"),
        total(counts(300, 140, 30), counts(200, 100, 20)),
        total(counts(300, 140, 30), counts(200, 100, 20)),
    ]);
    records
}

#[test]
fn totals_of_older_versions_of_codex_are_divided_among_the_responses() {
    let home = Home::of(Agent::Codex);
    let mut records = vec![thread(THREAD)];
    records.extend(older_turns());
    home.put(&rollout(THREAD), &records);
    assert_eq!(counted(&home), (2, [160, 30, 140, 0]));
    // Versions that do not say what the last response had.
    for record in &mut records {
        if let Some(info) = record["payload"]["info"].as_object_mut() {
            info.remove("last_token_usage");
        }
    }
    home.put(&rollout(THREAD), &records);
    assert_eq!(counted(&home), (2, [160, 30, 140, 0]));
}

#[test]
fn what_an_older_fork_of_codex_copied_is_counted_once() {
    let home = Home::of(Agent::Codex);
    let older = older_turns();
    home.put(&rollout(THREAD), &[&[thread(THREAD)], &older[..]].concat());
    let mut header = thread(FORK);
    header["payload"]["forked_from_id"] = THREAD.into();
    let own = [
        said("user", "three"),
        said("assistant", "four"),
        total(counts(600, 240, 60), counts(300, 100, 30)),
    ];
    // Copies get the times of the fork.
    let copied = [&[thread(THREAD)], &older[..]].concat().into_iter();
    let copied = copied.map(|mut record| {
        record["timestamp"] = "2026-01-02T04:04:05.678Z".into();
        record
    });
    let copied: Vec<Value> = copied.collect();
    home.put(&rollout(FORK), &[&[header], &copied[..], &own[..]].concat());
    assert_eq!(counted(&home), (3, [360, 60, 240, 0]));
    // Another thread with the same numbers is another one.
    home.put(&rollout(FORK), &[&[thread(FORK)], &older[..]].concat());
    assert_eq!(counted(&home).0, 4);
}

#[test]
fn records_of_responses_count_and_the_totals_beside_them_do_not() {
    let home = Home::of(Agent::Codex);
    let record = |response: &str, usage: Value| {
        let payload = json!({"turn_id": "t", "response_id": response, "usage": usage});
        codex("token_usage_record", payload)
    };
    let mut records = vec![thread(THREAD), said("user", "one")];
    let call = called("c");
    records.push(call[0].clone());
    records.push(record("r1", counts(100, 40, 10)));
    records.push(call[1].clone());
    records.push(total(counts(100, 40, 10), counts(100, 40, 10)));
    records.push(said("assistant", "two"));
    records.push(record("r2", counts(200, 100, 20)));
    // A line that is there twice.
    records.push(record("r2", counts(200, 100, 20)));
    records.push(total(counts(300, 140, 30), counts(200, 100, 20)));
    home.put(&rollout(THREAD), &records);
    assert_eq!(counted(&home), (2, [160, 30, 140, 0]));
    // Two responses in a row without a record between their items are paid for as well.
    records.push(record("r3", counts(7, 0, 3)));
    home.put(&rollout(THREAD), &records);
    assert_eq!(counted(&home), (2, [167, 33, 140, 0]));
}

fn gemini_file(id: &str) -> String {
    format!("tmp/w/chats/session-2026-01-02T03-04-{id}.jsonl")
}

fn gemini_answer() -> Value {
    let result =
        json!([{"functionResponse": {"id": "ls__1", "name": "ls", "response": {"output": "o"}}}]);
    let call = json!({"id": "ls__1", "name": "ls", "args": {}, "result": result, "status": "success", "timestamp": TIME});
    json!({"id": "b", "timestamp": TIME, "type": "gemini", "content": "two", "model": "m", "toolCalls": [call],
        "thoughts": [{"subject": "s", "description": "d", "timestamp": TIME}],
        "tokens": {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 3, "total": 118}})
}

#[test]
fn thoughts_and_calls_of_gemini_are_counted_and_a_resume_repeats_nothing() {
    let home = Home::of(Agent::Gemini);
    let header = json!({"sessionId": "s1", "projectHash": "h", "startTime": TIME, "lastUpdated": TIME, "kind": "main"});
    let prompt =
        json!({"id": "a", "timestamp": TIME, "type": "user", "content": [{"text": "one"}]});
    let records = [header.clone(), prompt.clone(), gemini_answer()];
    home.put(&gemini_file("s1"), &records);
    assert_eq!(counted(&home), (1, [63, 15, 40, 0]));
    // A resume writes the messages again, without tokens.
    let call = json!({"functionCall": {"id": "1", "name": "ls", "args": {}}});
    let again =
        json!({"id": "b", "timestamp": TIME, "type": "gemini", "content": [{"text": "two"}, call]});
    let resumed = [header, json!({"$set": {"messages": [prompt, again]}})];
    home.put(&gemini_file("s1"), &[&records[..], &resumed[..]].concat());
    assert_eq!(counted(&home), (1, [63, 15, 40, 0]));
}

#[test]
fn a_fork_of_pi_counts_only_what_is_its_own() {
    let home = Home::of(Agent::Pi);
    let answer = |id: &str, parent: &str, input: u64| {
        let usage =
            json!({"input": input, "output": 3, "cacheRead": 20, "cacheWrite": 4, "reasoning": 2});
        let message = json!({"role": "assistant", "model": "m", "usage": usage,
            "content": [{"type": "text", "text": "two"}, {"type": "toolCall", "id": "c", "name": "ls", "arguments": {}}]});
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": TIME, "message": message})
    };
    let prompt = json!({"type": "message", "id": "a", "parentId": null, "timestamp": TIME,
        "message": {"role": "user", "content": "one"}});
    let session = |id: &str| json!({"type": "session", "version": 3, "id": id, "timestamp": TIME, "cwd": "/w"});
    let one = [session("s1"), prompt.clone(), answer("b", "a", 10)];
    let fork = [
        session("s2"),
        prompt,
        answer("b", "a", 10),
        answer("d", "b", 30),
    ];
    home.put("sessions/--w--/1_s1.jsonl", &one);
    home.put("sessions/--w--/2_s2.jsonl", &fork);
    assert_eq!(counted(&home), (2, [40, 6, 40, 8]));
    // The ids of records are short: the same one in another session is another response.
    let mut other = answer("b", "a", 10);
    other["timestamp"] = "2026-01-03T03:04:05.678Z".into();
    home.put(
        "sessions/--w--/2_s2.jsonl",
        &[session("s2"), fork[1].clone(), other],
    );
    assert_eq!(counted(&home), (2, [20, 6, 40, 8]));
}

#[test]
fn the_total_of_qwen_says_whether_thoughts_are_a_part_of_the_output() {
    for (total, output) in [(110, 10), (114, 14), (0, 10)] {
        let home = Home::of(Agent::Qwen);
        let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 4,
            "cachedContentTokenCount": 40, "totalTokenCount": total});
        let record = |id: &str, session: &str, kind: &str, role: &str, parts: Value| {
            json!({"uuid": id, "parentUuid": (id != "a").then_some("a"), "sessionId": session, "timestamp": TIME, "cwd": "/w",
                "provenance": "p", "type": kind, "message": {"role": role, "parts": parts}})
        };
        for session in ["s1", "s2"] {
            let mut answer = record(
                "b",
                session,
                "assistant",
                "model",
                json!([{"text": "two"}, {"functionCall": {"id": "c", "name": "ls", "args": {}}}]),
            );
            answer["usageMetadata"] = usage.clone();
            // The second session is a fork, which has the records of the first.
            let records = [
                record("a", session, "user", "user", json!([{"text": "one"}])),
                answer,
            ];
            home.put(&format!("projects/-w/chats/{session}.jsonl"), &records);
        }
        assert_eq!(counted(&home), (1, [60, output, 40, 0]), "{total}");
    }
}

#[test]
fn a_response_of_copilot_has_the_tokens_of_its_request() {
    let home = Home::of(Agent::Copilot);
    let event = |number: usize, kind: &str, data: Value| json!({"type": kind, "data": data, "id": format!("e{number}"), "timestamp": TIME, "parentId": null});
    let usage = |call: &str, input: u64| {
        json!({"usage": {"inputTokens": input, "outputTokens": 7, "cacheReadTokens": 40, "cacheWriteTokens": 5,
            "reasoningTokens": 2, "apiCallId": call}})
    };
    let answer = |call: &str| {
        let request = json!({"toolCallId": call, "name": "ls", "arguments": {}});
        json!({"content": "two", "toolRequests": [request], "model": "m", "apiCallId": call})
    };
    let records = [
        event(
            0,
            "session.start",
            json!({"sessionId": "s1", "startTime": TIME}),
        ),
        event(
            1,
            "user.message",
            json!({"content": "one", "transformedContent": "one"}),
        ),
        event(2, "session.usage_record", usage("x", 100)),
        event(3, "assistant.message", answer("x")),
        event(4, "session.usage_record", usage("y", 200)),
        event(5, "assistant.message", answer("y")),
    ];
    home.put("session-state/s1/events.jsonl", &records);
    assert_eq!(counted(&home), (2, [210, 14, 80, 10]));
}

#[test]
fn lines_of_one_message_of_claude_desktop_are_one_response() {
    let home = Home::of(Agent::ClaudeDesktop);
    let id = "msg_0123456789abcdefghijklmn";
    let line = |uuid: &str, block: Value| {
        json!({"type": "assistant", "uuid": uuid, "parent_tool_use_id": null, "session_id": "s", "_audit_timestamp": TIME,
            "message": {"id": id, "role": "assistant", "model": "m", "content": [block],
                "usage": {"input_tokens": 60, "output_tokens": 7, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5}}})
    };
    let records = [
        line("a", json!({"type": "text", "text": "one"})),
        line(
            "b",
            json!({"type": "tool_use", "id": "c", "name": "ls", "input": {}}),
        ),
    ];
    home.put("local-agent-mode-sessions/x/local_s1/audit.jsonl", &records);
    let responses = responses(&home.files(Policy::Recover), Path::new("/home"));
    // The id is that of the API, so that it is the same response as in the transcript of the client.
    assert_eq!(responses.keys().collect::<Vec<_>>(), [id]);
    assert_eq!(sum(&responses), (1, [60, 7, 40, 5]));
}

#[cfg(feature = "sqlite")]
#[test]
fn steps_of_opencode_are_responses_and_copies_in_a_fork_are_the_same_ones() {
    use std::sync::Arc;
    use transcript_storage::RealDisk;

    use crate::opencode_store::{Database, call, said, step};

    let finish = |input: u64, output: u64, total: Option<u64>| {
        json!({"type": "step-finish", "tokens": {"input": input, "output": output, "reasoning": 4, "total": total,
            "cache": {"read": 40, "write": 5}}})
    };
    let info = json!({"role": "assistant", "modelID": "m", "finish": "stop", "tokens": {"input": 60, "output": 9, "reasoning": 4,
        "cache": {"read": 40, "write": 5}}});
    // Thoughts apart from the output, by the total; in the second step a part of it.
    let parts = [
        step(),
        call("a", "of a"),
        finish(10, 7, Some(66)),
        step(),
        said("done"),
        finish(20, 9, Some(74)),
    ];
    let mut database = Database::new();
    database.prompt(1, "one");
    database.message("ses_1", 2, &info, &parts);
    let counted = |database: &Database| {
        let home = database.path();
        let disk = ImportDisk::with(Arc::new(RealDisk), Agent::OpenCode, home, Policy::Recover);
        sum(&responses(&disk, home))
    };
    assert_eq!(counted(&database), (2, [30, 20, 80, 10]));
    database.session("ses_2", "one (fork #1)", 9);
    database.message("ses_2", 101, &json!({"role": "user"}), &[said("one")]);
    database.message("ses_2", 102, &info, &parts);
    database.message("ses_2", 103, &info, &[step(), said("own")]);
    for number in [1, 2] {
        database.execute(&format!(
            "UPDATE message SET time_created = {number} WHERE id = 'msg_10{number}'"
        ));
    }
    // Without tokens of its steps, a message has its own.
    assert_eq!(counted(&database), (3, [90, 29, 120, 15]));
    database.delete("ses_1", 2);
    database.delete("ses_2", 103);
    assert_eq!(counted(&database), (3, [90, 29, 120, 15]));
}

/// Returns all records of the files of a case, those in lists of messages included.
fn raw_records(folder: &Path) -> Vec<Value> {
    let mut records = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("it is listed") {
            let path = entry.expect("it is listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "jsonl") {
                let bytes = std::fs::read(&path).expect("it is read");
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let lines = text
                    .lines()
                    .filter_map(|line| serde_json::from_str(line).ok());
                records.extend(lines);
            }
        }
    }
    let listed = records.iter().flat_map(|record: &Value| {
        let list = record["$set"]["messages"].as_array();
        list.cloned().unwrap_or_default()
    });
    let listed: Vec<Value> = listed.collect();
    records.extend(listed);
    records
}

/// Returns what identifies the response that a record counts, and its tokens; by the rules in `docs/import.md`, record by record.
fn counted_by_record(agent: Agent, record: &Value) -> Option<(String, Tokens)> {
    let id = |pointers: &[&str]| -> String {
        let texts = pointers
            .iter()
            .filter_map(|pointer| record.pointer(pointer)?.as_str());
        texts.collect::<Vec<_>>().join(" ")
    };
    let (key, usage) = match agent {
        Agent::Codex if record["type"] == "token_usage_record" => (
            id(&["/payload/turn_id", "/payload/response_id"]),
            &record["payload"]["usage"],
        ),
        Agent::Gemini => (id(&["/id"]), &record["tokens"]),
        Agent::Pi => (id(&["/id", "/timestamp"]), &record["message"]["usage"]),
        Agent::Qwen => (id(&["/uuid"]), &record["usageMetadata"]),
        Agent::Copilot if record["type"] == "session.usage_record" => {
            (id(&["/data/usage/apiCallId"]), &record["data"]["usage"])
        }
        _ => return None,
    };
    let number = |key: &str| usage[key].as_u64().unwrap_or_default();
    let tokens = match agent {
        _ if !usage.is_object() => return None,
        Agent::Codex => {
            let cached = number("cached_input_tokens");
            [
                number("input_tokens") - cached,
                number("output_tokens"),
                cached,
                0,
            ]
        }
        Agent::Gemini => {
            let output = number("total") - number("input");
            [
                number("input") - number("cached"),
                output,
                number("cached"),
                0,
            ]
        }
        Agent::Pi => [
            number("input"),
            number("output"),
            number("cacheRead"),
            number("cacheWrite"),
        ],
        Agent::Qwen => {
            let (input, cached) = (
                number("promptTokenCount"),
                number("cachedContentTokenCount"),
            );
            [input - cached, number("totalTokenCount") - input, cached, 0]
        }
        _ => {
            let cached = number("cacheReadTokens");
            [
                number("inputTokens") - cached,
                number("outputTokens"),
                cached,
                0,
            ]
        }
    };
    Some((key, tokens))
}

/// What agents counted, response by response, is what the files of our own format say.
#[test]
fn responses_of_real_sessions_have_the_tokens_that_their_agents_counted() {
    use std::sync::Arc;
    use transcript_storage::RealDisk;

    let Some(shared) = crate::shared::shared() else {
        println!("skipped: no shared data");
        return;
    };
    let agents = [
        Agent::Codex,
        Agent::Gemini,
        Agent::Pi,
        Agent::Qwen,
        Agent::Copilot,
    ];
    for agent in agents {
        let mut total = Tokens::default();
        for (case, _) in crate::shared::cases(&shared.join(agent.name())) {
            let home = case.join("store");
            let records = raw_records(&home);
            let expected = records
                .iter()
                .filter_map(|record| counted_by_record(agent, record));
            let expected: BTreeMap<String, Tokens> = expected.collect();
            let disk = ImportDisk::with(Arc::new(RealDisk), agent, &home, Policy::Recover);
            let read = sum(&responses(&disk, &home)).1;
            assert_eq!(read, sum(&expected).1, "{agent} {}", case.display());
            total = std::array::from_fn(|at| total[at] + read[at]);
        }
        assert!(
            total[0] > 1000 && total[1] > 100 && total[2] > 100,
            "{agent} {total:?}"
        );
    }
}
