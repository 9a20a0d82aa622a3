//! Qwen Code: the path to the last record, joined prompts, records with one id.

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind};

use crate::support::{Home, branch, lines, live};

const FILE: &str = "projects/-w/chats/s1.jsonl";

fn record(id: &str, parent: &str, mut record: Value) -> Value {
    record["uuid"] = id.into();
    record["parentUuid"] = if parent.is_empty() {
        Value::Null
    } else {
        parent.into()
    };
    record["sessionId"] = "s1".into();
    record["timestamp"] = "2026-01-02T03:04:05.678Z".into();
    record["cwd"] = "/w".into();
    record["provenance"] = "p".into();
    record
}

fn message(id: &str, parent: &str, kind: &str, role: &str, parts: Value) -> Value {
    let mut message = json!({"role": role});
    message["parts"] = parts;
    let mut content = json!({"type": kind});
    content["message"] = message;
    record(id, parent, content)
}

fn user(id: &str, parent: &str, text: &str) -> Value {
    message(id, parent, "user", "user", json!([{"text": text}]))
}

fn assistant(id: &str, parent: &str, text: &str) -> Value {
    let mut record = message(id, parent, "assistant", "model", json!([{"text": text}]));
    record["usageMetadata"] = json!({"promptTokenCount": 10, "candidatesTokenCount": 2});
    record
}

fn system(id: &str, parent: &str, subtype: &str, payload: Value) -> Value {
    let mut content = json!({"type": "system", "subtype": subtype});
    content["systemPayload"] = payload;
    record(id, parent, content)
}

fn session(records: &[Value]) -> Home {
    let home = Home::of(Agent::Qwen);
    home.put(FILE, records);
    home
}

#[test]
fn a_rewind_is_a_record_with_an_earlier_parent() {
    let records = [
        user("a", "", "one"),
        system("t", "a", "ui_telemetry", json!({})),
        assistant("b", "t", "two"),
        user("c", "b", "three"),
        system("r", "b", "rewind", json!({"truncatedCount": 1})),
        user("d", "r", "instead"),
    ];
    let conversation = session(&records).read("s1");
    assert_eq!(live(&conversation), ["U one", "A two", "U instead"]);
    assert_eq!(branch(&conversation, BranchKind::Rewound), ["U three"]);
}

#[test]
fn adjacent_prompts_are_sent_as_one() {
    let image = json!([{"text": "two"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]);
    let records = [
        user("a", "", "one"),
        message("b", "a", "user", "user", image),
        assistant("c", "b", "three"),
        user("d", "c", "four"),
    ];
    let conversation = session(&records).read("s1");
    assert_eq!(
        live(&conversation),
        ["U one\ntwo+image", "A three", "U four"]
    );
    let joined = conversation.node(conversation.live[0]);
    assert_eq!((joined.made_of.len(), joined.origin), (3, None));
    assert!(
        joined
            .made_of
            .iter()
            .all(|id| conversation.branch_of(*id).is_none())
    );
}

#[test]
fn a_compaction_brings_its_own_history() {
    let history = json!({"compressedHistory": [
        {"role": "user", "parts": [{"text": "sum"}]},
        {"role": "model", "parts": [{"text": "thanks"}]}]});
    let records = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        system("c", "b", "chat_compression", history.clone()),
        user("d", "c", "three"),
        system("e", "d", "chat_compression", history),
        system(
            "f",
            "e",
            "slash_command",
            json!({"rawCommand": "/compress"}),
        ),
    ];
    let conversation = session(&records).read("s1");
    assert_eq!(live(&conversation), ["S sum", "A thanks"]);
    let compacted = ["U one", "A two", "S sum", "A thanks", "U three"];
    assert_eq!(branch(&conversation, BranchKind::Compacted), compacted);
}

#[test]
fn thoughts_calls_and_results_are_items_and_a_lost_result_is_explained() {
    let calls = json!([{"text": "hm", "thought": true},
        {"functionCall": {"id": "c1", "name": "ls", "args": {"p": 1}}},
        {"functionCall": {"id": "c2", "name": "ls", "args": {"p": 2}}}]);
    let result =
        json!([{"functionResponse": {"id": "c1", "name": "ls", "response": {"error": "none"}}}]);
    let records = [
        user("a", "", "one"),
        message("b", "a", "assistant", "model", calls),
        message("c", "b", "tool_result", "user", result),
        user("d", "c", "two"),
    ];
    let live = live(&session(&records).read("s1"));
    assert_eq!(
        live[..5],
        [
            "U one",
            "R hm",
            r#"T ls {"p":1}"#,
            r#"T ls {"p":2}"#,
            "E none"
        ]
    );
    assert!(
        live[5].starts_with("E Tool execution result was not recorded"),
        "{}",
        live[5]
    );
    assert_eq!(live[6..], ["U two"]);
}

/// Qwen Code joins records with the same id, and so sends a line that stands there twice twice.
#[test]
fn records_with_one_id_are_one_unless_they_are_copies() {
    let records = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        assistant("b", "a", "more"),
        assistant("b", "a", "two"),
        user("c", "b", "three"),
    ];
    let home = session(&records);
    let conversation = home.read("s1");
    assert_eq!(live(&conversation), ["U one", "A two", "A more", "U three"]);
    assert_eq!(branch(&conversation, BranchKind::Superseded), ["A two"]);
    assert_eq!(
        live(&home.vendor("s1")),
        ["U one", "A two", "A more", "A two", "U three"]
    );
}

#[test]
fn metadata_comes_from_the_records() {
    let mut first = user("a", "", "one");
    first["forkedFrom"] = json!({"sessionId": "s0", "messageUuid": "a"});
    first["version"] = "0.24.4".into();
    let title = system("t", "a", "custom_title", json!({"customTitle": "named"}));
    let conversation = session(&[first, title, assistant("b", "t", "two")]).read("s1");
    let metadata = &conversation.metadata;
    assert_eq!(metadata.forked_from.as_deref(), Some("s0"));
    assert_eq!(metadata.title.as_deref(), Some("named"));
    assert_eq!(metadata.version.as_deref(), Some("0.24.4"));
    assert_eq!(metadata.usage.expect("it is counted").output, 2);
}

#[test]
fn a_line_of_two_records_costs_nothing_and_a_torn_one_costs_the_start_only_qwen() {
    let all = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        user("c", "b", "three"),
    ];
    let glued = lines(&all).replacen("}\n", "}", 1);
    let home = Home::of(Agent::Qwen);
    home.put_bytes(FILE, glued.as_bytes());
    assert_eq!(live(&home.vendor("s1")), ["U one", "A two", "U three"]);
    assert_eq!(live(&home.read("s1")), ["U one", "A two", "U three"]);
    let torn = format!("{}\n{}", all[0], lines(&[all[2].clone()]));
    home.put_bytes(FILE, torn.as_bytes());
    assert_eq!(live(&home.vendor("s1")), ["U three"]);
    assert_eq!(live(&home.read("s1")), ["U one\nthree"]);
}

/// The telemetry of a response has its text, too.
#[test]
fn a_lost_answer_is_recovered_from_the_telemetry_before_it() {
    let telemetry = |id: &str, parent: &str, prompt: &str, text: &str| {
        let event = json!({"event.name": "qwen-code.api_response", "response_text": text, "prompt_id": prompt});
        system(id, parent, "ui_telemetry", json!({"uiEvent": event}))
    };
    let records = [
        user("a", "", "one"),
        telemetry("t", "a", "s1########1", "two"),
        assistant("b", "t", "two"),
        telemetry("x", "b", "s1#memory#0", "of a helper"),
        user("c", "x", "three"),
        telemetry("u", "c", "s1########2", "four"),
    ];
    let home = Home::of(Agent::Qwen);
    let torn = r#"{"uuid":"d","parentUuid":"u","sessi"#;
    home.put_bytes(FILE, format!("{}{torn}", lines(&records)).as_bytes());
    assert_eq!(
        live(&home.read("s1")),
        ["U one", "A two", "U three", "A four"]
    );
    assert_eq!(live(&home.vendor("s1")), ["U one", "A two", "U three"]);
    // In a whole file the answer may still be on its way.
    assert_eq!(
        live(&session(&records).read("s1")),
        ["U one", "A two", "U three"]
    );
}

#[test]
fn records_with_the_same_lost_parent_are_siblings() {
    let records = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        user("d", "lost", "rewound"),
        user("e", "lost", "instead"),
    ];
    let conversation = session(&records).read("s1");
    assert_eq!(live(&conversation), ["U one", "A two", "U instead"]);
    let rewound = branch(&conversation, BranchKind::Rewound);
    assert_eq!(rewound, ["U rewound"]);
}
