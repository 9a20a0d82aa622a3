//! The oracle folders: transcripts, and the request that the real client sent after resuming each.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::shared;

/// The oracle folders: the first holds one theme each and live sessions, the second more random
/// cases and tables of cases around one rule, the third what clients of today write.
pub const FOLDERS: [&str; 3] = ["oracle", "oracle2", "oracle3"];

/// The time at which the cases of the last folder were recorded, in milliseconds since 1970. The client
/// counts the age of memories from the time of a request.
pub const RECORDED_AT: i64 = 1_795_564_800_000;

/// One transcript and the request of the client for it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the folder.
    pub name: String,
    /// A short description of the case.
    pub about: String,
    /// The transcript.
    pub input: PathBuf,
    /// The prompt that was given with the resume.
    pub prompt: String,
    /// The model that got the request, when the case says it.
    pub model: Option<String>,
    /// The messages of the request; `None` when the client refused.
    pub messages: Option<Vec<Value>>,
}

/// Returns all cases of one of the [`FOLDERS`] by name; none on a machine without shared material.
///
/// # Panics
/// When the folder has an unexpected structure.
#[must_use]
pub fn cases(folder: &str) -> Vec<Case> {
    let folder = shared().map(|shared| shared.join(folder));
    let folder = folder.filter(|folder| folder.is_dir());
    folder.map_or_else(Vec::new, |folder| cases_in(&folder))
}

/// Returns all cases of a folder by name.
///
/// # Panics
/// When the folder has an unexpected structure.
#[must_use]
pub fn cases_in(folder: &Path) -> Vec<Case> {
    let folders = fs::read_dir(folder).expect("the folder is readable");
    let folders = folders.map(|entry| entry.expect("the folder is readable").path());
    let folders = folders.filter(|folder| folder.join("expected.json").exists());
    let mut cases: Vec<Case> = folders
        .map(|folder| {
            let expected = fs::read(folder.join("expected.json")).expect("the file is readable");
            let expected: Value = serde_json::from_slice(&expected).expect("the file is JSON");
            let name = folder.file_name().expect("a folder has a name");
            Case {
                name: name.to_string_lossy().into_owned(),
                about: expected["about"].as_str().unwrap_or_default().to_owned(),
                input: folder.join("input.jsonl"),
                prompt: expected["prompt"].as_str().expect("a text").to_owned(),
                model: expected["model"].as_str().map(str::to_owned),
                messages: expected["messages"].as_array().cloned(),
            }
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// Returns the difference between the request of `case` and `messages`, which is `None` for a
/// refusal.
#[must_use]
pub fn difference(case: &Case, messages: Option<&[Value]>) -> Option<String> {
    match (&case.messages, messages) {
        (None, None) => None,
        (None, Some(_)) => Some("the client refused".to_owned()),
        (Some(_), None) => Some("refused, but the client did not".to_owned()),
        (Some(want), Some(got)) => {
            let (want, got) = (normalised(want), normalised(got));
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

/// Normalizes messages for comparison; a port of `norm` in `oracle/check.py`.
///
/// # Panics
/// When a message has content that is neither a string nor a list of objects.
#[must_use]
pub fn normalised(messages: &[Value]) -> Vec<Value> {
    let last = messages.len().saturating_sub(1);
    let normal = |(index, message): (usize, &Value)| {
        let blocks = as_blocks(&message["content"]);
        let blocks: Vec<Value> = blocks
            .into_iter()
            .map(|block| normal_numbers(normal_block(block, index == last)))
            .collect();
        json!({"role": message["role"], "content": blocks})
    };
    messages.iter().enumerate().map(normal).collect()
}

/// Returns content as a list of blocks, the form in which strings and lists compare.
///
/// # Panics
/// When it is neither.
#[must_use]
pub fn as_blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        other => panic!("content is {other}"),
    }
}

fn normal_block(mut block: Value, in_last: bool) -> Value {
    let object = block.as_object_mut().expect("a block is an object");
    object.remove("cache_control");
    match object.get("type").and_then(Value::as_str) {
        // The real request has other reminders there.
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

/// Numbers compare by their value: `1e3` is `1000`.
fn normal_numbers(value: Value) -> Value {
    /// Below this limit every whole number has its own float.
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < LIMIT => json!(float as i64),
            _ => Value::Number(number),
        },
        Value::Array(list) => list.into_iter().map(normal_numbers).collect(),
        Value::Object(object) => {
            let fields = object.into_iter();
            Value::Object(
                fields
                    .map(|(key, value)| (key, normal_numbers(value)))
                    .collect(),
            )
        }
        other => other,
    }
}
