//! Conversations that are handed over: sessions that the agents wrote, and items of real requests of Claude Code.

use std::path::{Path, PathBuf};

use serde_json::Value;
use transcript_import::handover::{Image, SourceItem};
use transcript_import::{Agent, Conversation, NodeKind, Policy, Store, dialect};
use transcript_storage::RealDisk;

pub(super) use crate::shared::{cases, list, shared};

/// A hand-over that the reference converter made.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) record: Value,
}

/// Returns the hand-overs of the reference converter in a file.
pub(super) fn reference(shared: &Path, name: &str) -> Vec<Case> {
    let file = std::fs::File::open(shared.join(name)).expect("it is there");
    let text = zstd::stream::decode_all(file).expect("it is compressed");
    let text = String::from_utf8(text).expect("it is text");
    let records = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"));
    let cases = records.map(|record: Value| Case {
        name: record["case"].as_str().expect("it has a name").to_owned(),
        record,
    });
    cases.collect()
}

/// Returns every session of the agents that can be read.
pub(super) fn sessions(shared: &Path) -> Vec<(String, Conversation)> {
    let mut sessions = Vec::new();
    let agents = Agent::ALL.into_iter();
    // The sessions of OpenCode lie in one database; of the desktop program there are none.
    for agent in agents.filter(|agent| !matches!(agent, Agent::OpenCode | Agent::ClaudeDesktop)) {
        for (case, expected) in cases(&shared.join(agent.name())) {
            let store: PathBuf = case.join("store");
            let store = Store {
                disk: &RealDisk,
                path: &store,
            };
            for session in list(&expected, "sessions") {
                let id = session["id"].as_str().expect("it has an id");
                let conversation = dialect(agent).read(store, id, Policy::Recover);
                let conversation = conversation.expect("it is read");
                let name = case.file_name().unwrap_or_default().to_string_lossy();
                sessions.push((format!("{agent} {name} {id}"), conversation));
            }
        }
    }
    sessions
}

/// A picture of one dot.
pub(super) fn dot() -> Image {
    Image {
        media_type: "image/png".to_owned(),
        data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==".to_owned(),
    }
}

/// Returns items of expectations as items that are handed over. Their images are dots.
pub(super) fn items_of(items: &[Value]) -> Vec<SourceItem> {
    items.iter().map(item_of).collect()
}

fn item_of(item: &Value) -> SourceItem {
    let string = |key: &str| item[key].as_str().map(str::to_owned);
    let kind = match item["kind"].as_str().expect("it has a kind") {
        "user" => NodeKind::User,
        "assistant" => NodeKind::Assistant,
        "reasoning" => NodeKind::Reasoning,
        "tool_call" => NodeKind::ToolCall,
        "tool_result" => NodeKind::ToolResult,
        "summary" => NodeKind::Summary,
        _ => NodeKind::Context,
    };
    let input = item.get("input").map(Value::to_string);
    let images = item["images"].as_u64().unwrap_or_default();
    SourceItem {
        text: string("text").unwrap_or_default(),
        name: string("name"),
        call_id: string("callId"),
        input: input.map(|input| {
            let input = transcript_format::object::Raw::parse(&input).expect("it is JSON");
            input.into()
        }),
        output: string("output").unwrap_or_default(),
        is_error: item["error"] == true,
        images: (0..images).map(|_| dot()).collect(),
        ..SourceItem::new(kind)
    }
}
