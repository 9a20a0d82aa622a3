//! Gemini CLI: the files of older versions, each one JSON document.

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind, DamageKind, Holds};

use crate::support::{Home, branch, live};

const FILE: &str = "tmp/p/chats/session-2025-06-01T10-00-s1.json";

fn message(id: &str, kind: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2025-06-01T10:00:00.000Z", "type": kind, "content": text})
}

/// Returns a document with its fields in the order in which Gemini CLI writes them.
fn document(messages: &[Value]) -> String {
    let messages = messages.iter().map(|message| {
        let fields = [
            "id",
            "timestamp",
            "type",
            "content",
            "model",
            "thoughts",
            "toolCalls",
        ];
        let fields = fields.iter().filter(|field| !message[**field].is_null());
        let fields: Vec<String> = fields
            .map(|field| format!("      \"{field}\": {}", message[*field]))
            .collect();
        format!("    {{\n{}\n    }}", fields.join(",\n"))
    });
    let messages: Vec<String> = messages.collect();
    let header = "{\n  \"sessionId\": \"s1\",\n  \"projectHash\": \"h\",\n  \"startTime\": \"2025-06-01T10:00:00.000Z\",\n  \
         \"lastUpdated\": \"2025-06-01T10:05:00.000Z\",\n  \"messages\": [\n";
    format!("{header}{}\n  ]\n}}\n", messages.join(",\n"))
}

fn example() -> Vec<Value> {
    let mut answer = message("3", "gemini", "three");
    answer["model"] = json!("m");
    answer["thoughts"] = json!([{"subject": "a", "description": "b"}]);
    answer["toolCalls"] = json!([{"id": "c", "name": "ls", "args": {"of": 1}, "result": [
        {"functionResponse": {"id": "c", "name": "ls", "response": {"output": "found"}}}]}]);
    vec![
        message("1", "user", "one"),
        message("2", "info", "a note"),
        answer,
        message("4", "user", "four"),
    ]
}

fn home(document: &str) -> Home {
    let home = Home::of(Agent::Gemini);
    home.put_bytes(FILE, document.as_bytes());
    // Neither is a session.
    home.put_bytes("tmp/p/logs.json", b"[]");
    home.put_bytes("tmp/p/checkpoint-a.json", b"[]");
    home
}

#[test]
fn a_document_is_read_as_its_messages() {
    let home = home(&document(&example()));
    assert_eq!(home.sessions(), ["s1"]);
    for conversation in [home.read("s1"), home.vendor("s1")] {
        let expected = [
            "U one",
            "R **a** b",
            "A three",
            r#"T ls {"of":1}"#,
            "O found",
            "U four",
        ];
        // The input is as it is written, with its line ends.
        let texts = live(&conversation)
            .into_iter()
            .map(|text| text.replace(['\n', ' '], ""));
        let expected = expected.map(|text| text.replace(' ', ""));
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        assert_eq!(branch(&conversation, BranchKind::Unsent), ["C a note"]);
        assert_eq!(
            conversation.metadata.started.as_deref(),
            Some("2025-06-01T10:00:00.000Z")
        );
        assert_eq!(conversation.parts.len(), 1);
        assert_eq!(conversation.damage, []);
    }
}

#[test]
fn a_newer_file_of_the_session_is_live() {
    let home = home(&document(&example()));
    let header = json!({"sessionId": "s1", "projectHash": "h"});
    let newer = [
        header,
        message("1", "user", "one"),
        message("9", "user", "nine"),
    ];
    home.put("tmp/p/chats/session-2025-07-01T10-00-s1.jsonl", &newer);
    let conversation = home.read("s1");
    assert_eq!(live(&conversation), ["U one", "U nine"]);
    assert!(branch(&conversation, BranchKind::Superseded).contains(&"U four".to_owned()));
}

#[test]
fn whatever_the_end_of_a_document_the_messages_before_it_are_read() {
    let whole = document(&example());
    let ends = whole
        .match_indices("\"four\"")
        .map(|(at, _)| at)
        .last()
        .expect("it is there");
    for end in 200..whole.len() {
        let home = home(&whole[..end]);
        let conversation = home.read("s1");
        let texts = live(&conversation);
        assert_eq!(
            texts.iter().any(|text| text == "U four"),
            end > ends + 4,
            "{end}"
        );
        assert!(
            !conversation.damage.is_empty() || end + 2 >= whole.len(),
            "{end}"
        );
    }
}

#[test]
fn a_damaged_message_costs_only_itself() {
    let whole = document(&example()).replace("\"three\"", "\"thr\u{0}ee\" \"");
    let conversation = home(&whole).read("s1");
    let texts = live(&conversation);
    assert!(
        texts.contains(&"U one".to_owned()) && texts.contains(&"U four".to_owned()),
        "{texts:?}"
    );
    let kinds: Vec<DamageKind> = conversation
        .damage
        .iter()
        .map(|damage| damage.kind)
        .collect();
    assert!(!kinds.is_empty());
    let has_nodes = |holds: &Holds| matches!(holds, Holds::Nodes(_));
    assert!(
        conversation
            .parts
            .iter()
            .filter(|part| has_nodes(&part.holds))
            .count()
            >= 2
    );
}
