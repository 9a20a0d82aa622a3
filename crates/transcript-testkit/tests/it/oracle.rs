use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use transcript_testkit::model::vendor_request;
use transcript_testkit::shared;

/// Port of `norm` in `oracle/check.py`: what of a request counts.
fn normalised(messages: &[Value]) -> Vec<Value> {
    let last = messages.len().saturating_sub(1);
    let normal = |(index, message): (usize, &Value)| {
        let blocks = match &message["content"] {
            Value::String(text) => vec![json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.clone(),
            other => panic!("content is {other}"),
        };
        let blocks: Vec<Value> = blocks
            .into_iter()
            .map(|block| normal_block(block, index == last))
            .collect();
        json!({"role": message["role"], "content": blocks})
    };
    messages.iter().enumerate().map(normal).collect()
}

fn normal_block(mut block: Value, in_last: bool) -> Value {
    let object = block.as_object_mut().expect("a block is an object");
    object.remove("cache_control");
    match object.get("type").and_then(Value::as_str) {
        // Other reminders stood there in the real request.
        Some("text") if in_last => {
            let text = object["text"].as_str().expect("a text block has a text");
            object["text"] = text.trim_end_matches('\n').into();
        }
        Some("tool_result") => {
            let interrupted = "[Tool call interrupted";
            let is_error = object.get("is_error") == Some(&Value::Bool(true));
            match object.get_mut("content") {
                Some(Value::String(text)) if is_error && text.starts_with(interrupted) => {
                    text.truncate(interrupted.len());
                }
                Some(Value::Array(inner)) => {
                    for block in inner.iter_mut().filter_map(Value::as_object_mut) {
                        block.remove("cache_control");
                    }
                }
                _ => {}
            }
            object.entry("is_error").or_insert(Value::Bool(false));
        }
        _ => {}
    }
    block
}

/// What differs between the case in `folder` and the model.
fn difference(folder: &Path) -> Option<String> {
    let read = |name: &str| fs::read(folder.join(name)).expect("a case has both files");
    let expected: Value = serde_json::from_slice(&read("expected.json")).expect("valid JSON");
    let request = vendor_request(&read("input.jsonl"), expected["prompt"].as_str(), None);
    match (expected["messages"].as_array(), request.messages) {
        (None, None) => None,
        (None, Some(_)) => Some("the client refused".to_owned()),
        (Some(_), None) => Some(format!("the model refused: {:?}", request.refusal)),
        (Some(want), Some(got)) => {
            let (want, got) = (normalised(want), normalised(&got));
            let at = (0..want.len().max(got.len())).find(|&at| want.get(at) != got.get(at))?;
            Some(format!(
                "message {at} of {}:\n  want {}\n  got  {}",
                want.len(),
                short(want.get(at)),
                short(got.get(at))
            ))
        }
    }
}

fn short(message: Option<&Value>) -> String {
    message.map_or("nothing".to_owned(), |message| {
        message.to_string().chars().take(700).collect()
    })
}

#[test]
fn the_model_sends_what_the_client_sent() {
    let Some(oracle) = shared()
        .map(|shared| shared.join("oracle"))
        .filter(|path| path.is_dir())
    else {
        println!("skipped: no shared data");
        return;
    };
    let mut cases: Vec<_> = fs::read_dir(&oracle)
        .expect("the folder is readable")
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.join("expected.json").is_file())
        .collect();
    cases.sort();
    let different: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let name = case
                .file_name()
                .expect("a folder has a name")
                .to_string_lossy();
            difference(case).map(|difference| format!("{name}: {difference}"))
        })
        .collect();
    assert!(
        different.is_empty(),
        "{} of {} differ\n{}",
        different.len(),
        cases.len(),
        different.join("\n")
    );
}
