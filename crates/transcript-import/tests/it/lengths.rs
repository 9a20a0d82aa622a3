//! The length of a line is known before it is written, whatever its texts are.

use std::hash::DefaultHasher;
use std::hash::Hasher;

use serde_json::{Value, json};
use transcript_import::{Agent, Conversation, Entries, Subject};

use crate::support::Home;

/// Texts whose JSON can be written in several ways, some of them longer than what is held.
const BODIES: [&str; 8] = [
    r"plain",
    r"slashes \/ \/ and \\ \\",
    r#"controls \u0001 \b\f\n\r\t \" \u001f\u007f"#,
    r"escaped \u00e9\u4e2d\ud83d\ude42 and raw é中🙂",
    r"alone \ud83d x \ude42",
    "line ends \\u2028 \u{2028} \\u0085 \u{85} \u{2029}",
    r"",
    r" ",
];

fn check(conversation: Conversation) -> Vec<u64> {
    let subject = Subject {
        session_id: "s1",
        agent_id: None,
        elsewhere: &[],
    };
    let entries = Entries::new(conversation, subject);
    let mut hashes = Vec::new();
    for at in 0..entries.len() {
        let mut line = Vec::new();
        entries.write(at, &mut line).expect("it is written");
        let mut hash = DefaultHasher::new();
        let len = entries.measure(at, &mut hash).expect("it is measured");
        assert_eq!(len, line.len() as u64, "{}", String::from_utf8_lossy(&line));
        hashes.push(hash.finish());
    }
    hashes
}

/// Returns a session of Pi whose messages have these bodies of strings.
fn session(bodies: &[String]) -> Conversation {
    let mut text = json!({"type": "session", "id": "s1", "cwd": "/w"}).to_string();
    let mut parent = "null".to_owned();
    for (at, body) in bodies.iter().enumerate() {
        let image = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;
        let messages = [
            format!(r#"{{"role":"user","content":"{body}"}}"#),
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"{body}"}},{image},{{"type":"text","text":"{body}"}}]}}"#),
            format!(r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"{body}"}},{{"type":"text","text":"{body}"}},
                {{"type":"toolCall","id":"c{at}","name":"n","arguments":{{"a":"{body}"}}}}]}}"#).replace('\n', ""),
            format!(r#"{{"role":"toolResult","toolCallId":"c{at}","toolName":"n","content":[{{"type":"text","text":"{body}"}},{image}]}}"#),
            format!(r#"{{"role":"toolResult","toolCallId":"other","toolName":"n","content":[{{"type":"text","text":"{body}"}}]}}"#),
            format!(r#"{{"role":"bashExecution","command":"{body}","output":"{body}","exitCode":1}}"#),
        ];
        for (number, message) in messages.iter().enumerate() {
            let id = format!("m{at}-{number}");
            text.push_str(&format!("\n{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"message\":{message}}}"));
            parent = format!("\"{id}\"");
        }
    }
    let home = Home::of(Agent::Pi);
    home.put_bytes("sessions/--w--/now_s1.jsonl", text.as_bytes());
    home.read("s1")
}

#[test]
fn escapes_of_every_kind_have_the_length_of_what_is_written() {
    let short = BODIES.map(str::to_owned);
    let long = BODIES.map(|body| body.repeat(40));
    let longest = BODIES.map(|body| body.repeat(20_000));
    check(session(&short));
    check(session(&long));
    check(session(&longest));
}

#[test]
fn other_texts_of_the_same_length_have_another_hash() {
    let texts = |text: &str| session(&[text.repeat(40)]);
    let (one, other) = (check(texts("one")), check(texts("two")));
    assert_eq!(one, check(texts("one")));
    let said = |hashes: &[u64]| hashes[1..].to_vec();
    assert!(said(&one).iter().zip(&said(&other)).all(|(a, b)| a != b));
}

#[test]
fn outputs_that_are_json_have_the_length_of_what_is_written() {
    let output = |text: &str| json!({"text": text, "more": [1, 2, {"a": "b".repeat(100)}]});
    let record = |at: usize, output: &Value| {
        let parts = json!([{"functionResponse": {"id": "c", "name": "n", "response": output}}]);
        json!({"uuid": format!("r{at}"), "parentUuid": at.checked_sub(1).map(|before| format!("r{before}")), "sessionId": "s1",
            "provenance": "p", "type": "tool_result", "message": {"role": "user", "parts": parts}})
    };
    let outputs = ["a\nb\"c", "\u{2028}\u{85}é", "x"];
    let records: Vec<Value> = outputs
        .iter()
        .enumerate()
        .map(|(at, text)| record(at, &output(text)))
        .collect();
    let home = Home::of(Agent::Qwen);
    home.put("projects/w/chats/s1.jsonl", &records);
    check(home.read("s1"));
}
