//! What Claude Code makes of a session: the request of the engine, which follows the client, and the rules of finding a session.

use std::path::Path;

use serde_json::{Value, json};
use transcript_format::names::project_key;
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::{Policy, Tree, request};

/// Returns the items of the next request, or `None` when Claude Code does not find the session. `path` is in the home folder, `cwd` the
/// folder in which the client runs.
pub(super) fn open(path: &str, session: &str, cwd: &str) -> Option<Vec<Value>> {
    let folder = Path::new(path).parent()?;
    if folder != Path::new("projects").join(project_key(cwd)) {
        return None;
    }
    let entries = session
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages: Vec<Value> = entries
        .filter(|entry| entry["message"].is_object())
        .collect();
    if messages.iter().all(|entry| !entry["timestamp"].is_string()) {
        return None;
    }
    let is_linked = |entry: &Value| entry["uuid"].is_string() && entry.get("parentUuid").is_some();
    if !messages.iter().all(is_linked) {
        // Without links only the last message is found.
        return Some(
            messages
                .last()
                .map(|entry| items_of(&entry["message"]))
                .unwrap_or_default(),
        );
    }
    let request = request_of(session);
    assert!(request.is_resumable(), "{path}");
    let messages = request.messages.iter();
    let messages =
        messages.map(|message| serde_json::from_str(&message.json()).expect("it is JSON"));
    Some(
        messages
            .flat_map(|message: Value| items_of(&message))
            .collect(),
    )
}

/// Returns what a strict provider would refuse of a session that continues.
pub(super) fn problems(session: &str) -> String {
    let lint = request_of(session).lint();
    let problems: Vec<String> = lint
        .problems
        .iter()
        .map(|problem| format!("{problem:?}"))
        .collect();
    problems.join(", ")
}

fn request_of(session: &str) -> request::Request {
    let source = Source::from_bytes(session.as_bytes(), Path::new("session.jsonl"));
    let index = Index::load(&source).expect("it is in memory");
    let tree = Tree::new(&index, Policy::Vendor);
    let request = request::RequestOptions::new().request(&tree, &mut Bodies::new(&source));
    request.expect("it is in memory")
}

/// Returns the blocks of a message as they stand in the expectations.
pub(super) fn items_of(message: &Value) -> Vec<Value> {
    let role = &message["role"];
    if let Some(text) = message["content"].as_str() {
        return vec![json!({"kind": role, "text": text})];
    }
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.map(|block| item_of(role, block)).collect()
}

fn item_of(role: &Value, block: &Value) -> Value {
    match block["type"].as_str() {
        Some("image") => json!({"kind": role, "images": 1}),
        Some("thinking") => json!({"kind": "reasoning", "text": block["thinking"]}),
        Some("tool_use") => json!({
            "kind": "tool_call", "name": block["name"], "callId": block["id"], "input": block["input"],
        }),
        Some("tool_result") => {
            let (output, images) = output_of(&block["content"]);
            json!({
                "kind": "tool_result", "callId": block["tool_use_id"], "output": output, "images": images,
                "error": block["is_error"] == true,
            })
        }
        _ => json!({"kind": role, "text": block["text"]}),
    }
}

fn output_of(content: &Value) -> (String, usize) {
    if let Some(text) = content.as_str() {
        return (text.to_owned(), 0);
    }
    let parts = content.as_array().into_iter().flatten();
    let (images, texts): (Vec<&Value>, Vec<&Value>) =
        parts.partition(|part| part["type"] == "image");
    let texts: Vec<&str> = texts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    (texts.join("\n"), images.len())
}
