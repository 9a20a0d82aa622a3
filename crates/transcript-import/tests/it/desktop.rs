//! The desktop program of Claude: the log of the SDK, and the metadata beside it.

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind};

use crate::support::{Home, branch, live};

const FOLDER: &str = "local-agent-mode-sessions/org/account/local_1";

/// Records with ids in their order.
fn home(records: Vec<Value>) -> Home {
    let numbered = records.into_iter().enumerate();
    let records: Vec<Value> = numbered
        .map(|(number, mut record)| {
            record["session_id"] = json!("c");
            record["_audit_timestamp"] = json!(format!("2026-04-25T12:00:{number:02}.000Z"));
            if record["uuid"].is_null() {
                record["uuid"] = json!(format!("id{number}"));
            }
            record
        })
        .collect();
    let home = Home::of(Agent::ClaudeDesktop);
    home.put(&format!("{FOLDER}/audit.jsonl"), &records);
    let metadata = json!({"sessionId": "local_1", "title": "a title", "cwd": "/w", "createdAt": 5});
    home.put_bytes(&format!("{FOLDER}.json"), metadata.to_string().as_bytes());
    home
}

fn user(content: &Value) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": null})
}

fn assistant(block: &Value) -> Value {
    json!({"type": "assistant", "message": {"role": "assistant", "id": "m", "model": "x", "content": [block],
        "usage": {"input_tokens": 1, "output_tokens": 2}}, "parent_tool_use_id": null})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn messages_are_read_block_by_block_with_the_metadata_beside_them() {
    let result = json!([{"type": "tool_result", "tool_use_id": "c", "is_error": true, "content": [
        {"type": "text", "text": "none"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]}]);
    let home = home(vec![
        json!({"type": "system", "subtype": "init", "cwd": "/elsewhere", "model": "x"}),
        user(&json!("one")),
        assistant(&json!({"type": "thinking", "thinking": "hm", "signature": "s"})),
        assistant(&text("two")),
        assistant(&json!({"type": "tool_use", "id": "c", "name": "Read", "input": {"of": 1}})),
        user(&result),
        json!({"type": "result", "result": "two", "usage": {"input_tokens": 10, "output_tokens": 4}}),
        json!({"type": "hologram"}),
    ]);
    assert_eq!(home.sessions(), ["local_1"]);
    let conversation = home.read("local_1");
    let expected = [
        "U one",
        "R hm",
        "A two",
        r#"T Read {"of":1}"#,
        "E none+image",
    ];
    assert_eq!(live(&conversation), expected);
    let metadata = &conversation.metadata;
    assert_eq!(metadata.title.as_deref(), Some("a title"));
    assert_eq!(metadata.cwd.as_deref(), Some("/w"));
    assert_eq!(metadata.model.as_deref(), Some("x"));
    assert_eq!(metadata.started.as_deref(), Some("5"));
    assert_eq!(metadata.usage.map(|usage| usage.input), Some(10));
    assert_eq!(
        conversation.unknown.into_iter().collect::<Vec<_>>(),
        [("hologram".to_owned(), 1)]
    );
}

#[test]
fn subagents_copies_and_what_a_compaction_replaced_are_not_live() {
    let mut of_subagent = assistant(&text("of a subagent"));
    of_subagent["parent_tool_use_id"] = json!("c");
    let mut first = user(&json!("one"));
    first["uuid"] = json!("same");
    let home = home(vec![
        first.clone(),
        of_subagent,
        first,
        json!({"type": "system", "subtype": "compact_boundary"}),
        user(&json!("the summary")),
    ]);
    let conversation = home.read("local_1");
    assert_eq!(live(&conversation), ["U the summary"]);
    assert_eq!(branch(&conversation, BranchKind::Compacted), ["U one"]);
    assert_eq!(
        branch(&conversation, BranchKind::Subagent),
        ["A of a subagent"]
    );
}

#[test]
fn a_torn_line_keeps_its_text() {
    let home = home(vec![user(&json!("one"))]);
    let torn = br#"{"type":"user","session_id":"c","uuid":"x","message":{"role":"user","content":"the beg"#;
    let whole = r#"{"type":"user","session_id":"c","message":{"role":"user","content":"one"}}"#;
    let bytes = [whole.as_bytes(), b"\n", torn].concat();
    home.put_bytes(&format!("{FOLDER}/audit.jsonl"), &bytes);
    assert_eq!(live(&home.read("local_1")), ["U one", "U the beg"]);
    assert_eq!(live(&home.vendor("local_1")), ["U one"]);
}
