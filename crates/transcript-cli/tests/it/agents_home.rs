//! A home folder with a session of several agents: calls of their tools, tokens, branches.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

pub(crate) const TIME: &str = "2026-01-02T03:04:05.678Z";
pub(crate) const CODEX: &str = "10000000-0000-7000-8000-00000000c0de";
pub(crate) const PI: &str = "20000000-0000-7000-8000-000000000001";
pub(crate) const GEMINI: &str = "40000000-0000-4000-8000-000000000003";

/// Writes the sessions below a home folder of a person.
pub(crate) fn write(home: &Path) {
    let rollout = format!(".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-{CODEX}.jsonl");
    put(&home.join(rollout), &codex());
    put(
        &home.join(format!(".pi/agent/sessions/--src--/2026_{PI}.jsonl")),
        &pi(),
    );
    put(
        &home.join(".gemini/tmp/src/chats/session-2026-01-02T03-04-40000000.jsonl"),
        &gemini(),
    );
}

fn put(path: &Path, records: &[Value]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(path, text).unwrap();
}

fn codex() -> Vec<Value> {
    let record =
        |kind: &str, payload: Value| json!({ "timestamp": TIME, "type": kind, "payload": payload });
    let message = |role: &str, kind: &str, text: &str| {
        record(
            "response_item",
            json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] }),
        )
    };
    let usage = |response: &str| {
        let usage = json!({ "input_tokens": 1000, "cached_input_tokens": 400, "output_tokens": 100, "reasoning_output_tokens": 10 });
        record(
            "token_usage_record",
            json!({ "turn_id": "t", "response_id": response, "usage": usage }),
        )
    };
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-old line\n+new line\n*** End Patch";
    let plan = json!({ "plan": [{ "step": "read", "status": "completed" }, { "step": "write", "status": "in_progress" }] });
    let command = json!({ "command": ["bash", "-lc", "cargo test"] });
    let call = |name: &str, id: &str, arguments: &Value| {
        record(
            "response_item",
            json!({ "type": "function_call", "name": name, "call_id": id, "arguments": arguments.to_string() }),
        )
    };
    let output = |id: &str, text: &str| {
        record(
            "response_item",
            json!({ "type": "function_call_output", "call_id": id, "output": text }),
        )
    };
    vec![
        record(
            "session_meta",
            json!({ "id": CODEX, "timestamp": TIME, "cwd": "/src", "originator": "o", "cli_version": "1", "source": "cli" }),
        ),
        record("turn_context", json!({ "model": "gpt-5" })),
        message("user", "input_text", "ask codex"),
        call("shell", "c1", &command),
        usage("r1"),
        output("c1", "Exit code: 0\nOutput:\nall passed"),
        call("update_plan", "c2", &plan),
        usage("r2"),
        output("c2", "Plan updated"),
        record(
            "response_item",
            json!({ "type": "custom_tool_call", "name": "apply_patch", "call_id": "c3", "input": patch }),
        ),
        record(
            "response_item",
            json!({ "type": "custom_tool_call_output", "call_id": "c3", "output": "Success. Updated the following files:\nM a.txt" }),
        ),
        message("assistant", "output_text", "tell codex"),
        usage("r3"),
    ]
}

fn pi() -> Vec<Value> {
    let message = |id: &str, parent: Option<&str>, role: &str, text: &str| {
        json!({ "type": "message", "id": id, "parentId": parent, "timestamp": TIME,
            "message": { "role": role, "model": "pi-test", "content": [{ "type": "text", "text": text }],
                "usage": { "input": 10, "output": 5 } } })
    };
    vec![
        json!({ "type": "session", "version": 3, "id": PI, "timestamp": TIME, "cwd": "/src" }),
        message("a", None, "user", "ask pi"),
        message("b", Some("a"), "assistant", "an early answer"),
        message("c", Some("b"), "user", "an abandoned question"),
        message("d", Some("b"), "user", "ask again"),
        message("e", Some("d"), "assistant", "tell pi"),
    ]
}

fn gemini() -> Vec<Value> {
    let result = json!([{ "functionResponse": { "id": "c1", "name": "replace", "response": { "output": "done" } } }]);
    let call = json!({ "id": "c1", "name": "replace", "args": { "file_path": "/src/a.txt", "old_string": "old", "new_string": "new" },
        "result": result, "status": "success", "timestamp": TIME });
    let tokens = json!({ "input": 1000, "output": 80, "cached": 400, "thoughts": 20, "tool": 0, "total": 1100 });
    let message = |id: &str, kind: &str, content: Value| json!({ "id": id, "timestamp": TIME, "type": kind, "content": content });
    let mut answer = message("b", "gemini", json!("tell gemini"));
    answer["model"] = json!("gemini-2.5-pro");
    answer["tokens"] = tokens;
    answer["toolCalls"] = json!([call]);
    vec![
        json!({ "sessionId": GEMINI, "projectHash": "h", "startTime": TIME, "lastUpdated": TIME, "kind": "main" }),
        message("a", "user", json!([{ "text": "ask gemini" }])),
        answer,
    ]
}
