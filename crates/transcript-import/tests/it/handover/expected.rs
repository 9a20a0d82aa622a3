//! What must arrive of a conversation, by its report alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use transcript_import::NodeKind;
use transcript_import::handover::{Addition, Change, LossReport, SourceItem, Target};

use super::converted::compared;

/// Says how `got`, the items of the next request, differ from the items that were handed over, but for what the report lists.
pub(super) fn difference(
    items: &[SourceItem],
    report: &LossReport,
    got: &[Value],
) -> Option<String> {
    let mut got = compared(got);
    let has = |change| {
        report
            .changed
            .iter()
            .any(|changed| changed.change == change)
    };
    let mut expected = arrived(items, report);
    if report
        .added
        .iter()
        .any(|added| added.what == Addition::Answer)
    {
        let answer = got.pop();
        let text = answer.map(|answer| answer["text"].clone());
        if text != Some("No response requested.".into()) {
            return Some(format!("{text:?} is added"));
        }
    }
    if report
        .added
        .iter()
        .any(|added| added.what == Addition::Prompt)
        && got.remove(0)["text"] != "(no content)"
    {
        return Some("no prompt is added".to_owned());
    }
    let added: BTreeSet<String> = (report.added.iter())
        .filter(|added| added.what == Addition::Result)
        .map(|added| call_id(items, report, added.item))
        .collect();
    got.retain(|item| {
        let is_of_added = || added.contains(item["callId"].as_str().unwrap_or_default());
        item["kind"] != "tool_result" || !is_of_added()
    });
    if report.target == Target::ClaudeCode {
        // Blocks that are joined to one message are separated by a line feed.
        for item in got
            .iter_mut()
            .chain(&mut expected)
            .filter(|item| item["kind"] == "user")
        {
            if let Some(Value::String(text)) = item.get_mut("text") {
                text.truncate(text.trim_end_matches('\n').len());
            }
        }
    }
    if has(Change::ResultMoved)
        && let Err(difference) = take_moved(items, report, &mut got, &mut expected)
    {
        return Some(difference);
    }
    if report.target == Target::Qwen {
        if has(Change::ResultMoved) && has(Change::ImagesBesideResult) {
            // Which images belong to which prompt is lost with the places of the results.
            return None;
        }
        (got, expected) = (joined(got), joined(expected));
    }
    if got == expected {
        return None;
    }
    let place = got
        .iter()
        .zip(&expected)
        .position(|(got, expected)| got != expected);
    let place = place.unwrap_or(got.len().min(expected.len()));
    let (got, expected) = (got.get(place), expected.get(place));
    Some(format!(
        "item {place}\n got      {got:?}\n expected {expected:?}\n {report:?}"
    ))
}

/// Joins messages of the person that follow each other, as Qwen Code does: a line each.
fn joined(items: Vec<serde_json::Map<String, Value>>) -> Vec<serde_json::Map<String, Value>> {
    let mut joined: Vec<serde_json::Map<String, Value>> = Vec::new();
    for item in items {
        let Some(last) = joined
            .last_mut()
            .filter(|last| last["kind"] == "user" && item["kind"] == "user")
        else {
            joined.push(item);
            continue;
        };
        let images = [&*last, &item].map(|item| {
            item.get("images")
                .and_then(Value::as_u64)
                .unwrap_or_default()
        });
        let texts = [&*last, &item]
            .map(|item| item.get("text").and_then(Value::as_str).unwrap_or_default());
        let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let one =
            json!({"kind": "user", "text": texts.join("\n"), "images": images[0] + images[1]});
        *last = compared(&[one]).remove(0);
    }
    joined
}

/// Takes the results that moved out of both lists: each stands behind its call, without a prompt between.
fn take_moved(
    items: &[SourceItem],
    report: &LossReport,
    got: &mut Vec<serde_json::Map<String, Value>>,
    expected: &mut Vec<serde_json::Map<String, Value>>,
) -> Result<(), String> {
    let moved = report
        .changed
        .iter()
        .filter(|changed| changed.change == Change::ResultMoved);
    for changed in moved {
        let id = Value::from(call_id(items, report, changed.item));
        let place = |list: &[serde_json::Map<String, Value>], kind: &str| {
            let is_it = |item: &serde_json::Map<String, Value>| {
                item["kind"] == kind && item["callId"] == id
            };
            list.iter()
                .position(|item| item.contains_key("callId") && is_it(item))
        };
        let (call, result) = (place(got, "tool_call"), place(got, "tool_result"));
        let (Some(call), Some(result)) = (call, result) else {
            return Err(format!("the result of {id} is lost"));
        };
        if call > result {
            return Err(format!("the result of {id} stands before its call"));
        }
        // Images of another result may stand there.
        let is_prompt = |item: &serde_json::Map<String, Value>| {
            item["kind"] == "user" && item.contains_key("text")
        };
        if got[call..result].iter().any(is_prompt) {
            return Err(format!("a prompt stands before the result of {id}"));
        }
        let there = place(expected, "tool_result").expect("it is expected");
        let (it, other) = (got.remove(result), expected.remove(there));
        if it != other {
            return Err(format!("got {it:?}, expected {other:?}: {report:?}"));
        }
        let is_image = |item: Option<&serde_json::Map<String, Value>>| {
            item.is_some_and(|item| item["kind"] == "user" && !item.contains_key("text"))
        };
        while is_image(got.get(result)) && is_image(expected.get(there)) {
            got.remove(result);
            expected.remove(there);
        }
    }
    Ok(())
}

/// Returns the id under which a call or result arrives.
fn call_id(items: &[SourceItem], report: &LossReport, at: usize) -> String {
    let renamed = report.changed.iter();
    let mut renamed =
        renamed.filter(|changed| changed.item == at && changed.change == Change::CallId);
    let renamed = renamed.next().and_then(|changed| changed.to.clone());
    renamed
        .or_else(|| items[at].call_id.clone())
        .unwrap_or_default()
}

fn arrived(items: &[SourceItem], report: &LossReport) -> Vec<serde_json::Map<String, Value>> {
    let omitted: BTreeSet<usize> = report.omitted.iter().map(|omitted| omitted.item).collect();
    let mut changes: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for changed in &report.changed {
        assert!(!omitted.contains(&changed.item));
        changes.entry(changed.item).or_default().push(changed);
    }
    let mut arrived: Vec<Value> = Vec::new();
    for (at, item) in items
        .iter()
        .enumerate()
        .filter(|(at, _)| !omitted.contains(at))
    {
        let changes = changes.remove(&at).unwrap_or_default();
        let find = |change| changes.iter().find(|changed| changed.change == change);
        let to = |change, own: &Option<String>| {
            let renamed = find(change).and_then(|changed| changed.to.clone());
            renamed.or_else(|| own.clone())
        };
        let lost = find(Change::ImagesOmitted)
            .and_then(|changed| changed.images)
            .unwrap_or_default();
        let images = item.images.len() + item.unknown_images - lost;
        let is_image_apart = match report.target {
            Target::ClaudeCode | Target::Gemini => item.kind == NodeKind::User,
            _ => false,
        };
        let (inside, beside) = if is_image_apart || find(Change::ImagesBesideResult).is_some() {
            (0, images)
        } else {
            (images, 0)
        };
        let text = match find(Change::CommandAsPrompt) {
            Some(_) => format!("Prompt: {}", item.text),
            None => item.text.clone(),
        };
        let one = match item.kind {
            NodeKind::ToolCall => json!({
                "kind": "tool_call",
                "name": to(Change::ToolName, &item.name),
                "callId": to(Change::CallId, &item.call_id),
                "input": input(item, find(Change::InputWrapped).is_some()),
            }),
            NodeKind::ToolResult => json!({
                "kind": "tool_result",
                "callId": to(Change::CallId, &item.call_id),
                "output": item.output,
                "images": inside,
            }),
            kind => json!({"kind": kind.name(), "text": text, "images": inside}),
        };
        let is_nothing = is_image_apart && text.is_empty() && images > 0;
        arrived.extend((!is_nothing).then_some(one));
        arrived.extend((0..beside).map(|_| json!({"kind": "user", "images": 1})));
    }
    compared(&arrived)
}

fn input(item: &SourceItem, is_wrapped: bool) -> Value {
    let input = item.input.as_ref().map(|input| input.text());
    let input = input.map(|input| serde_json::from_str(input).expect("it is JSON"));
    match input.unwrap_or_default() {
        Value::Null => json!({}),
        input if is_wrapped => json!({"input": input}),
        input => input,
    }
}
