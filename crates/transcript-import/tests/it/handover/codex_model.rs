//! What Codex makes of a rollout, by the facts that its runs showed: a model of its loader that shares no code with the dialect.

use serde_json::{Map, Value, json};

/// The model and the provider that the person has set up.
const OWN_MODEL: &str = "mock-model";
const OWN_PROVIDER: &str = "mock";

/// What Codex makes of a rollout.
pub(super) struct Opened {
    /// Whether the list shows it, and that of all providers and sources.
    pub(super) is_listed: bool,
    pub(super) is_listed_for_all: bool,
    pub(super) preview: Option<String>,
    /// The kinds and texts of each turn. The texts of prompts are omitted, as in the expectations.
    pub(super) turns: Vec<Vec<(String, String)>>,
    pub(super) refusal: Option<&'static str>,
    /// The items of the next request, without what Codex adds.
    pub(super) request: Vec<Value>,
    pub(super) model: String,
}

/// What the first record must have.
const NEEDED: [&str; 5] = ["id", "timestamp", "cwd", "originator", "cli_version"];

/// Beginnings of user messages that Codex writes by itself.
const CONTEXT: [&str; 6] = [
    "<environment_context>",
    "<turn_aborted>",
    "<subagent_notification>",
    "# AGENTS.md",
    "<skill",
    "<user_instructions>",
];

/// Opens a rollout at a path in the home folder.
pub(super) fn open(path: &str, rollout: &str) -> Opened {
    let records: Vec<Value> = rollout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let of_type = |kind: &str| {
        let kind = kind.to_owned();
        records.iter().filter(move |record| record["type"] == *kind)
    };
    let meta = of_type("session_meta")
        .next()
        .map(|record| &record["payload"]);
    let events = || of_type("event_msg").map(|record| &record["payload"]);
    let prompts = events().filter(|event| event["type"] == "user_message");
    let preview = prompts.filter_map(|event| event["message"].as_str()).next();
    let refusal = refusal(meta, &records);
    let is_dated = path.split('/').count() == 5 && path.starts_with("sessions/");
    let is_of_terminal = meta.is_some_and(|meta| meta["source"] != "exec");
    let is_paginated = meta.is_some_and(|meta| meta["history_mode"] == "paginated");
    let turns = turns(events()).into_iter().filter(|_| !is_paginated);
    let model = of_type("turn_context")
        .next_back()
        .and_then(|record| record["payload"]["model"].as_str());
    Opened {
        is_listed: preview.is_some() && refusal.is_none() && is_dated && is_of_terminal,
        is_listed_for_all: preview.is_some(),
        preview: preview.map(str::to_owned),
        turns: turns.collect(),
        refusal,
        request: request(&records),
        model: model.unwrap_or(OWN_MODEL).to_owned(),
    }
}

fn refusal(meta: Option<&Value>, records: &[Value]) -> Option<&'static str> {
    let meta = meta?;
    if NEEDED.iter().any(|key| !meta[*key].is_string()) {
        return Some("metadata");
    }
    let provider = meta.get("model_provider");
    if provider.is_some_and(|provider| provider != OWN_PROVIDER) {
        return Some("modelProviderNotConfigured");
    }
    let has_ordinals = records.iter().all(|record| record["ordinal"].is_u64());
    (meta["history_mode"] == "paginated" && !has_ordinals).then_some("Failed to initialize session")
}

fn turns<'a>(events: impl Iterator<Item = &'a Value>) -> Vec<Vec<(String, String)>> {
    let mut turns: Vec<Vec<(String, String)>> = Vec::new();
    for event in events {
        match event["type"].as_str() {
            Some("user_message") => turns.push(vec![("userMessage".into(), String::new())]),
            Some("agent_message") => {
                let text = event["message"].as_str().unwrap_or_default();
                if text.is_empty() {
                    continue;
                }
                let answer = ("agentMessage".to_owned(), text.to_owned());
                match turns.last_mut() {
                    Some(turn) => turn.push(answer),
                    None => turns.push(vec![answer]),
                }
            }
            _ => {}
        }
    }
    turns
}

/// Returns the items of the next request.
fn request(records: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for record in records {
        let payload = &record["payload"];
        match record["type"].as_str() {
            Some("response_item") => items.push(payload.clone()),
            Some("compacted") => match payload["replacement_history"].as_array() {
                Some(history) => items.clone_from(history),
                None => {
                    items.retain(|item| item["role"] == "user");
                    items.push(json!({
                        "type": "message", "role": "user",
                        "content": [{"type": "input_text", "text": payload["message"]}],
                    }));
                }
            },
            Some("event_msg") if payload["type"] == "thread_rolled_back" => {
                for _ in 0..payload["num_turns"].as_u64().unwrap_or_default() {
                    let is_prompt = |item: &Value| item["role"] == "user" && !is_context(item);
                    items.truncate(items.iter().rposition(is_prompt).unwrap_or_default());
                }
            }
            _ => {}
        }
    }
    let ids = |kind: &str| -> Vec<Value> {
        let is_of_kind = |item: &&Value| item["type"].as_str().is_some_and(|t| t.ends_with(kind));
        items
            .iter()
            .filter(is_of_kind)
            .map(|item| item["call_id"].clone())
            .collect()
    };
    let (calls, outputs) = (ids("_call"), ids("_output"));
    let mut request = Vec::new();
    for item in &items {
        let kind = item["type"].as_str().unwrap_or_default();
        let id = &item["call_id"];
        if kind.ends_with("_output") && id.is_string() && !calls.contains(id) {
            continue;
        }
        request.extend(sent(item));
        if kind.ends_with("_call") && !outputs.contains(id) {
            request.push(json!({"kind": "tool_result", "callId": id, "output": "aborted"}));
        }
    }
    request
}

/// Returns an item as it stands in the expectations.
fn sent(item: &Value) -> Option<Value> {
    let mut sent = Map::new();
    let mut put = |key: &str, value: Value| sent.insert(key.to_owned(), value);
    match item["type"].as_str()? {
        "message" => {
            let kind = match item["role"].as_str()? {
                "assistant" => "assistant",
                "user" if !is_context(item) => "user",
                _ => "context",
            };
            put("kind", kind.into());
            let (text, images) = parts(&item["content"]);
            put("text", text.into());
            put("images", images.into());
        }
        "reasoning" => {
            put("kind", "reasoning".into());
            put("text", parts(&item["summary"]).0.into());
        }
        "function_call" => {
            put("kind", "tool_call".into());
            put("name", item["name"].clone());
            put("callId", item["call_id"].clone());
            let arguments = item["arguments"].as_str()?;
            put(
                "input",
                serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into()),
            );
        }
        "custom_tool_call" => {
            put("kind", "tool_call".into());
            put("name", item["name"].clone());
            put("callId", item["call_id"].clone());
            put("input", item["input"].clone());
        }
        "function_call_output" | "custom_tool_call_output" => {
            put("kind", "tool_result".into());
            put("callId", item["call_id"].clone());
            let (text, images) = parts(&item["output"]);
            put("output", text.into());
            put("images", images.into());
        }
        _ => return None,
    }
    Some(sent.into())
}

fn is_context(item: &Value) -> bool {
    let (text, _) = parts(&item["content"]);
    CONTEXT.iter().any(|start| text.starts_with(start))
}

/// Returns the text of a string or of parts, and the number of images.
fn parts(content: &Value) -> (String, usize) {
    if let Some(text) = content.as_str() {
        return (text.to_owned(), 0);
    }
    let parts = content.as_array().into_iter().flatten();
    let (images, texts): (Vec<&Value>, Vec<&Value>) =
        parts.partition(|part| part["type"] == "input_image");
    let texts: Vec<&str> = texts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    (texts.join("\n"), images.len())
}
