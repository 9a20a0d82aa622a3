//! Entries that were made are taken as they are, and get what they do not have.

use std::fs;

use serde_json::{Value, json};
use transcript_format::kind::SystemKind;
use transcript_format::make::{self, Compaction, ToolResult, Trigger};
use transcript_format::object::{Object, Raw};
use transcript_writer::{Draft, Known, Options};

/// Writes the drafts to a new session and returns its entries.
fn written(drafts: Vec<Draft>) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let options = Options::new().create().session_id("s").cwd("/home/ada");
    let writer = options.open(&path, Known::default()).unwrap();
    writer.append_all(drafts).unwrap();
    writer.close().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn entries_that_were_made_get_what_they_do_not_have() {
    let call = json!({"id": "m", "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
    ]})
    .to_string();
    let mut entries = vec![make::user("How long is a month?").uuid("u1")];
    entries.extend(make::assistant(&Object::parse(&call).unwrap()).unwrap());
    let output = Raw::parse("{\"days\": [\n29, 30]}").unwrap();
    entries.push(make::tool_result(
        ToolResult::text("toolu_1", "29 or 30").output(output),
    ));
    entries.push(make::system(SystemKind::AgentsKilled));
    let kept = Compaction::new(Trigger::Manual, 9).kept("s1", &["u1"]);
    entries.push(make::compact_boundary(Some("u1"), kept).uuid("b1"));
    entries.push(make::compact_summary("It depends.").uuid("s1"));
    entries.push(make::custom_title("Months"));
    entries.push(make::tombstone("u1"));
    let drafts = entries.iter().map(|entry| Draft::try_from(entry).unwrap());
    let lines = written(drafts.collect());

    assert_eq!(lines.len(), entries.len());
    for (line, entry) in lines.iter().zip(&entries) {
        let made: Value = serde_json::from_str(&entry.text()).unwrap();
        for (key, value) in made.as_object().unwrap() {
            assert_eq!(&line[key], value, "{key}");
        }
        assert_eq!(line["sessionId"], "s");
        assert_eq!(line.get("cwd").is_some(), entry.kind().is_chain());
        assert_eq!(line.get("uuid").is_some(), entry.kind().is_chain());
    }
    let [prompt, text, call, result, _, boundary, summary, ..] = &lines[..] else {
        panic!("{} lines", lines.len());
    };
    assert_eq!(text["parentUuid"], prompt["uuid"]);
    assert_eq!(call["parentUuid"], text["uuid"]);
    assert_eq!(result["parentUuid"], call["uuid"]);
    assert_eq!(result["sourceToolAssistantUUID"], call["uuid"]);
    assert_eq!(result["toolUseResult"], json!({"days": [29, 30]}));
    assert_eq!(boundary["parentUuid"], Value::Null);
    assert_eq!(summary["parentUuid"], "b1");
}

#[test]
fn the_short_forms_are_those_entries() {
    assert_eq!(Draft::user(""), Draft::try_from(&make::user("")).unwrap());
    assert_eq!(
        Draft::user("a\u{2028}\"b\""),
        Draft::try_from(&make::user("a\u{2028}\"b\"")).unwrap()
    );
    for (message, reason) in [
        ("[]", "the message is no object"),
        ("{}", "the content of the message is no list"),
        (r#"{"content":7}"#, "the content of the message is no list"),
    ] {
        assert_eq!(Draft::assistant(message).unwrap_err().reason(), reason);
    }
}
