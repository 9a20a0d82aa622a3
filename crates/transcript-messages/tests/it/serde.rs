//! Messages and blocks as serde types: what is read is written again, byte for byte.

use serde_json::Value;
use transcript_messages::{Block, BlockKind, Message, Role, Rule, lint};

/// Blocks of all kinds and of none, with what a parser would lose: the order of keys, numbers out of
/// range and their spelling, escapes, white space, repeated keys, unknown fields.
const BLOCKS: [&str; 12] = [
    r#"{"text":"hi","type":"text","z":1,"a":2}"#,
    r#"{"type":"hologram","depth":123456789012345678901234567890,"scale":1.50e+400,"zero":-0.0}"#,
    r#"{"type":"hologram","a":1,"a":2,"nested":{"b":[1.0,{"y":0,"x":1E2}]}}"#,
    r#"{"type":"text","text":"\u00e9\/\ud83d\ude42 \ud800 \u0000","cache_control":{"type":"ephemeral"}}"#,
    "{ \"type\" : \"text\",\n  \"text\" : \"spread\\tout\" }",
    r#"{"type":"tool_use","id":"t","name":"Bash","input":{"z":9007199254740993,"a":null}}"#,
    r#"{"type":"tool_result","tool_use_id":"t","content":[{"type":"new","k":[]}]}"#,
    r#"{"type":"thinking","thinking":"","signature":"s"}"#,
    r#"{"no":"type"}"#,
    r#""a bare string""#,
    "12345678901234567890.5",
    "null",
];

fn message(role: &str, content: &str) -> String {
    format!(r#"{{"role":"{role}","content":{content}}}"#)
}

fn read(json: &str) -> Message {
    serde_json::from_str(json).unwrap()
}

#[test]
fn blocks_of_any_kind_are_written_as_they_were_read() {
    for json in BLOCKS {
        let block: Block = serde_json::from_str(json).unwrap();
        assert_eq!(block.json(), json);
        assert_eq!(serde_json::to_string(&block).unwrap(), json);
        assert_eq!(block.origin(), None);
    }
    let list = format!("[{}]", BLOCKS.join(","));
    let blocks: Vec<Block> = serde_json::from_str(&list).unwrap();
    assert_eq!(serde_json::to_string(&blocks).unwrap(), list);
    let kinds: Vec<BlockKind> = blocks[5..8].iter().map(Block::kind).collect();
    let expected = [
        BlockKind::ToolUse,
        BlockKind::ToolResult,
        BlockKind::SealedThinking,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(blocks[5].call_id(), Some("t"));
    assert_eq!(blocks[6].call_id(), Some("t"));
}

#[test]
fn messages_are_written_as_they_were_read() {
    let list = format!("[{}]", BLOCKS.join(","));
    let text = r#"[{"type":"text","text":"A list of one text stays a list."}]"#;
    for content in [&*list, "[]", r#""a \u00e9 \ud800""#, r#""""#, text] {
        for role in ["user", "assistant", "system"] {
            let json = message(role, content);
            let message = read(&json);
            assert_eq!(message.role().name(), role);
            assert_eq!(message.json(), json);
            assert_eq!(serde_json::to_string(&message).unwrap(), json);
            assert_eq!(read(&message.json()), message);
        }
    }
}

#[test]
fn messages_are_read_from_readers_and_values_and_other_fields_are_ignored() {
    let reply = r#"{"id":"msg_1","content":[{"type":"new","n":1}],"role":"assistant","usage":{}}"#;
    let expected = message("assistant", r#"[{"type":"new","n":1}]"#);
    assert_eq!(read(reply).json(), expected);
    let from_reader: Message = serde_json::from_reader(reply.as_bytes()).unwrap();
    assert_eq!(from_reader.json(), expected);
    let value: Value = serde_json::from_str(reply).unwrap();
    let from_value: Message = serde_json::from_value(value).unwrap();
    assert_eq!(from_value.role(), Role::Assistant);
    assert_eq!(from_value.blocks().len(), 1);
}

#[test]
fn json_that_is_not_a_message_is_an_error() {
    for json in [
        r#"{"role":"user"}"#,
        r#"{"content":[]}"#,
        &message("tool", "[]"),
        &message("user", "7"),
        &message("user", "null"),
        &message("user", "{}"),
    ] {
        assert!(serde_json::from_str::<Message>(json).is_err(), "{json}");
    }
}

#[test]
fn lint_reports_the_unsafe_text_that_reading_kept() {
    let messages = [read(&message("user", r#""half \ud800""#))];
    let problems = lint(&messages).problems;
    let rules: Vec<Rule> = problems.iter().map(|problem| problem.rule).collect();
    assert_eq!(rules, [Rule::UnsafeText]);
}
