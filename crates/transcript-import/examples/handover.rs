//! Hands items over to a client: `handover TARGET HOME CWD SEED < items.json`.
//!
//! The items are those that `transcript replay --format items` prints. Prints the report as JSON. `experiments/handover_clients.py` runs it.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;
use transcript_format::object::Raw;
use transcript_import::NodeKind;
use transcript_import::handover::{Home, Options, SourceItem, handover};
use transcript_storage::RealDisk;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, home, cwd, seed] = arguments.as_slice() else {
        return Err("usage: handover TARGET HOME CWD SEED < items.json".into());
    };
    let items: Value = serde_json::from_reader(io::stdin())?;
    let items = items["live"].as_array().into_iter().flatten().map(item_of);
    let items: Vec<SourceItem> = items.collect();
    let options = Options {
        cwd: cwd.clone(),
        title: Some(format!("Handed over: {seed}")),
        seed: seed.clone(),
        // 2026-11-28T16:40:00Z
        start: 1_795_884_000_000,
        ..Options::default()
    };
    let home = Home {
        disk: &RealDisk,
        path: Path::new(home),
    };
    let written = handover(&items, target.parse()?, &options, home)?;
    let line = serde_json::json!({
        "sessionId": written.session_id, "files": written.files, "report": written.report,
    });
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}

fn item_of(item: &Value) -> SourceItem {
    let string = |key: &str| item[key].as_str().map(str::to_owned);
    let kind = match item["kind"].as_str() {
        Some("user") => NodeKind::User,
        Some("assistant") => NodeKind::Assistant,
        Some("reasoning") => NodeKind::Reasoning,
        Some("tool_call") => NodeKind::ToolCall,
        Some("tool_result") => NodeKind::ToolResult,
        Some("summary") => NodeKind::Summary,
        _ => NodeKind::Context,
    };
    let input = item.get("input").map(Value::to_string);
    SourceItem {
        text: string("text").unwrap_or_default(),
        name: string("name"),
        call_id: string("callId"),
        input: input.and_then(|input| Raw::parse(&input).ok().map(Into::into)),
        output: string("output").unwrap_or_default(),
        is_error: item["error"] == true,
        unknown_images: usize::try_from(item["images"].as_u64().unwrap_or_default())
            .unwrap_or_default(),
        ..SourceItem::new(kind)
    }
}
