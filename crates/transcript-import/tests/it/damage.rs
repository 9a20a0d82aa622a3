//! Damaged files of all agents: nothing panics, and every byte and every node has its place.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use transcript_import::{Agent, Policy};
use transcript_storage::MemoryDisk;

use crate::faults::{Numbers, damage};
use crate::support::{lines, live, read_file};

/// The number of damaged copies of the session of each agent.
const COPIES: u64 = 2_000;

#[test]
fn random_damage_leaves_each_byte_and_each_node_with_its_place() {
    for (agent, name, records) in samples() {
        let whole = lines(&records).into_bytes();
        for seed in 0..COPIES {
            let mut numbers = Numbers::of(seed);
            let mut bytes = whole.clone();
            for _ in 0..=numbers.below(3) {
                if !bytes.is_empty() {
                    damage(&mut bytes, &mut numbers);
                }
            }
            let (disk, path) = (MemoryDisk::new(), PathBuf::from(name));
            disk.put(&path, bytes);
            for policy in [Policy::Recover, Policy::Vendor] {
                read_file(&disk, agent, &path, policy);
            }
        }
    }
}

#[test]
fn a_file_of_any_length_of_a_session_is_read() {
    for (agent, name, records) in samples() {
        let whole = lines(&records).into_bytes();
        for len in 0..=whole.len() {
            let disk = MemoryDisk::new();
            disk.put(Path::new(name), &whole[..len]);
            read_file(&disk, agent, Path::new(name), Policy::Recover);
        }
    }
}

/// A torn message is read up to the tear. What replaces other records is not: half of it would replace them, too.
#[test]
fn the_first_half_of_a_torn_message_is_recovered() {
    let pi = r#"{"type":"message","id":"z","parentId":null,"timestamp":"t","message":{"role":"user","content":"torn"}}"#;
    let qwen = r#"{"uuid":"z","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"torn"}]}}"#;
    let gemini = r#"{"id":"z","timestamp":"t","type":"user","content":[{"text":"torn"}]}"#;
    let copilot = r#"{"type":"user.message","data":{"content":"torn"},"id":"z","timestamp":"t"}"#;
    let after = r#"{"id":"z","timestamp":"t","type":"gemini","content":"to",rn""#;
    let compaction =
        r#"{"type":"compaction","id":"z","parentId":"e","timestamp":"t","summary":"torn"}"#;
    let list =
        r#"{"$set":{"messages":[{"id":"z","timestamp":"t","type":"user","content":"torn"}]}}"#;
    let cases = [
        (Agent::Pi, pi, true),
        (Agent::Qwen, qwen, true),
        (Agent::Gemini, gemini, true),
        (Agent::Gemini, after, true),
        (Agent::Copilot, copilot, true),
        (Agent::Pi, compaction, false),
        (Agent::Gemini, list, false),
    ];
    for (agent, record, is_recovered) in cases {
        let mut samples = samples().into_iter();
        let (_, name, records) = samples
            .find(|sample| sample.0 == agent)
            .expect("there is one");
        let torn = &record[..record.find("rn\"").expect("it is there")];
        for end in ["", "\n"] {
            let disk = MemoryDisk::new();
            disk.put(Path::new(name), format!("{}{torn}{end}", lines(&records)));
            let live = |policy| live(&read_file(&disk, agent, Path::new(name), policy)).concat();
            assert_eq!(
                live(Policy::Recover).ends_with("to"),
                is_recovered,
                "{record}"
            );
            assert!(!live(Policy::Vendor).ends_with("to"), "{record}");
        }
    }
}

/// Values that are nested deeply are neither read recursively nor lost.
#[test]
fn deep_values_are_kept() {
    for (agent, name, mut records) in samples() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let last = records.pop().expect("there are records").to_string();
        let disk = MemoryDisk::new();
        let text = format!("{}{}\n", lines(&records), last.replace("null", &deep));
        disk.put(Path::new(name), text.clone().into_bytes());
        let conversation = read_file(&disk, agent, Path::new(name), Policy::Recover);
        assert_eq!(conversation.sources[0].len, text.len() as u64);
    }
}

/// A file of each agent, with its name: prompts, calls, results, a compaction, and something that was removed.
pub(crate) fn samples() -> [(Agent, &'static str, Vec<Value>); 5] {
    let time = "2026-01-02T03:04:05.678Z";
    let codex = |ordinal: u64, kind: &str, payload: Value| json!({"timestamp": time, "ordinal": ordinal, "type": kind, "payload": payload});
    let said = |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
    let history = json!([said("user", "one"), said("user", "sum")]);
    let call =
        json!({"type": "function_call", "name": "ls", "arguments": "{\"a\":1}", "call_id": "c"});
    let event = json!({"type": "user_message", "message": "one", "images": null});
    let codex = vec![
        codex(
            0,
            "session_meta",
            json!({"id": "t", "cwd": "/w", "history_base": null}),
        ),
        codex(1, "response_item", said("user", "one")),
        codex(2, "event_msg", event),
        codex(3, "response_item", call),
        codex(
            4,
            "response_item",
            json!({"type": "function_call_output", "call_id": "c", "output": "o"}),
        ),
        codex(
            5,
            "compacted",
            json!({"message": "sum", "replacement_history": history}),
        ),
        codex(
            6,
            "event_msg",
            json!({"type": "thread_rolled_back", "num_turns": 1, "x": null}),
        ),
    ];
    let pi = |id: &str, parent: Option<&str>, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": time, "message": message});
    let content = json!([{"type": "text", "text": "two"},
        {"type": "toolCall", "id": "c", "name": "ls", "arguments": {"a": 1}}]);
    let pi = vec![
        json!({"type": "session", "version": 3, "id": "s", "timestamp": time, "cwd": "/w"}),
        pi("a", None, json!({"role": "user", "content": "one"})),
        pi(
            "b",
            Some("a"),
            json!({"role": "assistant", "content": content}),
        ),
        pi("c", Some("a"), json!({"role": "user", "content": "back"})),
        json!({"type": "compaction", "id": "d", "parentId": "c", "timestamp": time, "summary": "sum",
            "firstKeptEntryId": "c"}),
        json!({"type": "context_edit", "id": "e", "parentId": "d", "timestamp": time, "targetId": "c",
            "replacement": null}),
    ];
    let qwen = |id: &str, parent: Option<&str>, kind: &str, parts: Value| {
        json!({"uuid": id, "parentUuid": parent, "sessionId": "s", "timestamp": time, "type": kind,
            "message": {"role": if kind == "user" { "user" } else { "model" }, "parts": parts}, "model": null})
    };
    let parts =
        json!([{"text": "two"}, {"functionCall": {"id": "c", "name": "ls", "args": {"a": 1}}}]);
    let qwen = vec![
        qwen("a", None, "user", json!([{"text": "one"}])),
        qwen("b", Some("a"), "assistant", parts),
        qwen("c", Some("a"), "user", json!([{"text": "again"}])),
        json!({"uuid": "d", "parentUuid": "c", "sessionId": "s", "timestamp": time, "type": "system", "x": null,
            "subtype": "chat_compression", "systemPayload": {"compressedHistory": [{"role": "user", "parts": [{"text": "sum"}]}]}}),
    ];
    let gemini = |id: &str, kind: &str, content: Value| json!({"id": id, "timestamp": time, "type": kind, "content": content, "x": null});
    let again = json!([gemini("a", "user", json!("one"))]);
    let gemini = vec![
        json!({"sessionId": "s", "projectHash": "h", "startTime": time, "lastUpdated": time, "kind": "main"}),
        gemini("a", "user", json!([{"text": "one"}])),
        gemini("b", "gemini", json!("two")),
        json!({"$rewindTo": "b"}),
        json!({"$set": {"messages": again, "lastUpdated": time}}),
        gemini("c", "info", json!("note")),
    ];
    let copilot = |id: &str, kind: &str, data: Value| json!({"type": kind, "data": data, "id": id, "timestamp": time, "parentId": null});
    let request = json!([{"toolCallId": "c", "name": "ls", "arguments": {"a": 1}}]);
    let copilot = vec![
        copilot(
            "a",
            "session.start",
            json!({"sessionId": "s", "context": {"cwd": "/w"}}),
        ),
        copilot(
            "b",
            "user.message",
            json!({"content": "one", "transformedContent": "[one]"}),
        ),
        copilot(
            "c",
            "assistant.message",
            json!({"content": "two", "toolRequests": request}),
        ),
        copilot(
            "d",
            "tool.execution_complete",
            json!({"toolCallId": "c", "success": true, "result": {"content": "o"}}),
        ),
        copilot(
            "e",
            "session.compaction_complete",
            json!({"success": true, "summaryContent": "sum"}),
        ),
    ];
    [
        (Agent::Codex, "/rollout-t.jsonl", codex),
        (Agent::Pi, "/s.jsonl", pi),
        (Agent::Qwen, "/s.jsonl", qwen),
        (Agent::Gemini, "/session-s.jsonl", gemini),
        (Agent::Copilot, "/events.jsonl", copilot),
    ]
}
