//! Copilot CLI: what is sent of the events, compactions, subagents.

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind};

use crate::support::{Home, branch, lines, live};

const FILE: &str = "session-state/s1/events.jsonl";

/// Events with ids in their order.
fn events(events: Vec<(&str, Value)>) -> Vec<Value> {
    let numbered = events.into_iter().enumerate();
    let event = |(number, (kind, data)): (usize, (&str, Value))| {
        json!({"type": kind, "data": data, "id": format!("e{number}"), "timestamp": "2026-01-02T03:04:05.678Z",
            "parentId": null})
    };
    numbered.map(event).collect()
}

fn start() -> (&'static str, Value) {
    let data = json!({"sessionId": "s1", "startTime": "2026-01-02T03:04:05.000Z", "copilotVersion": "1.0.102",
        "context": {"cwd": "/w"}});
    ("session.start", data)
}

fn user(text: &str) -> (&'static str, Value) {
    (
        "user.message",
        json!({"content": text, "transformedContent": format!("[{text}]")}),
    )
}

fn assistant(text: &str, calls: &[&str]) -> (&'static str, Value) {
    let request = |id: &&str| json!({"toolCallId": id, "name": "ls", "arguments": {"of": id}});
    let requests: Vec<Value> = calls.iter().map(request).collect();
    (
        "assistant.message",
        json!({"content": text, "toolRequests": requests, "model": "m"}),
    )
}

fn complete(id: &str, text: &str) -> (&'static str, Value) {
    let data = json!({"toolCallId": id, "success": true, "result": {"content": text}});
    ("tool.execution_complete", data)
}

fn session(records: Vec<(&str, Value)>) -> Home {
    let home = Home::of(Agent::Copilot);
    home.put(FILE, &events([vec![start()], records].concat()));
    home
}

#[test]
fn prompts_are_sent_as_copilot_changed_them() {
    let mut thinking = assistant("two", &[]);
    thinking.1["reasoningText"] = "hm".into();
    let conversation = session(vec![user("one"), thinking]).read("s1");
    assert_eq!(live(&conversation), ["U [one]", "R hm", "A two"]);
}

/// A damaged id can be that of another event.
#[test]
fn only_events_that_are_the_same_are_copies() {
    let mut records = events(vec![start(), user("one"), user("two"), user("three")]);
    records[2]["id"] = records[1]["id"].clone();
    records[3] = records[1].clone();
    let home = Home::of(Agent::Copilot);
    let conversation = home.put(FILE, &records).read("s1");
    assert_eq!(live(&conversation), ["U [one]", "U [two]"]);
}

#[test]
fn results_are_sent_in_the_order_of_their_calls() {
    let failed = json!({"toolCallId": "a", "success": false, "error": {"message": "none"}});
    let records = vec![
        user("one"),
        assistant("", &["a", "b", "c"]),
        complete("b", "of b"),
        ("tool.execution_complete", failed),
        complete("z", "of a lost call"),
        user("two"),
    ];
    let expected = [
        "U [one]",
        r#"T ls {"of":"a"}"#,
        r#"T ls {"of":"b"}"#,
        r#"T ls {"of":"c"}"#,
        "E none",
        "O of b",
        "E Tool execution was interrupted before a result was recorded.",
        "O of a lost call",
        "U [two]",
    ];
    assert_eq!(live(&session(records).read("s1")), expected);
}

#[test]
fn every_compaction_lists_all_prompts_and_the_last_summary() {
    let compaction = |summary: &str| {
        (
            "session.compaction_complete",
            json!({"success": true, "summaryContent": summary}),
        )
    };
    let records = vec![
        user("one"),
        assistant("two", &[]),
        compaction("first"),
        user("three"),
        (
            "session.compaction_complete",
            json!({"success": false, "summaryContent": "failed"}),
        ),
        compaction("second"),
        user("four"),
    ];
    let conversation = session(records).read("s1");
    let live = live(&conversation);
    assert_eq!(live.len(), 2);
    for part in [
        "<user_message>\none\n</user_message>\n<user_message>\nthree\n",
        "<summary>\nsecond\n</summary>",
    ] {
        assert!(live[0].contains(part), "{}", live[0]);
    }
    assert!(!live[0].contains("first") && !live[0].contains("failed"));
    assert_eq!(live[1], "U [four]");
    assert!(branch(&conversation, BranchKind::Compacted).contains(&"A two".to_owned()));
}

#[test]
fn events_of_subagents_are_branches() {
    let mut records = events(vec![
        start(),
        user("one"),
        user("task"),
        assistant("done", &[]),
        assistant("two", &[]),
    ]);
    for record in &mut records[2..4] {
        record["agentId"] = "agent".into();
    }
    let home = Home::of(Agent::Copilot);
    home.put(FILE, &records);
    let conversation = home.read("s1");
    assert_eq!(live(&conversation), ["U [one]", "A two"]);
    assert_eq!(
        branch(&conversation, BranchKind::Subagent),
        ["U [task]", "A done"]
    );
}

/// A run that ended says its total. The requests of the last run are added.
#[test]
fn tokens_are_those_of_all_runs() {
    let record = |input: u64| {
        let usage = json!({"inputTokens": input, "outputTokens": 1, "apiCallId": "x"});
        ("session.usage_record", json!({"usage": usage}))
    };
    let shutdown = |input: u64| {
        let model = json!({"usage": {"inputTokens": input, "outputTokens": 5}});
        (
            "session.shutdown",
            json!({"accountingSnapshot": {"modelMetrics": {"m": model}}}),
        )
    };
    let records = vec![
        record(3),
        shutdown(100),
        record(4),
        shutdown(200),
        record(5),
        record(6),
    ];
    let usage = session(records)
        .read("s1")
        .metadata
        .usage
        .expect("it is counted");
    assert_eq!((usage.input, usage.output), (311, 12));
}

#[test]
fn metadata_comes_from_the_first_event_and_the_workspace() {
    let home = session(vec![
        ("session.model_change", json!({"newModel": "m"})),
        ("new.kind", json!({})),
    ]);
    home.put_bytes("session-state/s1/workspace.yaml", b"id: s1\nname: named\n");
    let conversation = home.read("s1");
    let metadata = &conversation.metadata;
    assert_eq!(metadata.title.as_deref(), Some("named"));
    assert_eq!(metadata.cwd.as_deref(), Some("/w"));
    assert_eq!(metadata.model.as_deref(), Some("m"));
    assert_eq!(conversation.unknown["new.kind"], 1);
}

#[test]
fn a_lost_call_is_recovered_from_the_start_of_its_tool() {
    let started = json!({"toolCallId": "a", "toolName": "ls", "arguments": {"of": "a"}});
    let records = vec![
        user("one"),
        ("tool.execution_start", started),
        complete("a", "of a"),
    ];
    let home = session(records);
    assert_eq!(
        live(&home.read("s1")),
        ["U [one]", r#"T ls {"of":"a"}"#, "O of a"]
    );
    assert_eq!(live(&home.vendor("s1")), ["U [one]", "O of a"]);
}

#[test]
fn a_damaged_line_costs_copilot_the_session_unless_it_is_the_last() {
    let all = events(vec![
        start(),
        user("one"),
        assistant("two", &[]),
        user("three"),
    ]);
    let home = Home::of(Agent::Copilot);
    let glued = lines(&all)
        .replacen("}\n", "}", 2)
        .replacen("}{", "}\n{", 1);
    home.put_bytes(FILE, glued.as_bytes());
    assert_eq!(live(&home.read("s1")), ["U [one]", "A two", "U [three]"]);
    assert!(home.vendor("s1").refusal.is_some());

    let whole = lines(&all);
    home.put_bytes(FILE, &whole.as_bytes()[..whole.len() - 9]);
    assert_eq!(live(&home.vendor("s1")), ["U [one]", "A two"]);

    home.put(FILE, &all[1..]);
    assert_eq!(live(&home.read("s1")), ["U [one]", "A two", "U [three]"]);
    assert!(home.vendor("s1").refusal.is_some());

    home.put(FILE, &[&all[..], &all[1..]].concat());
    assert_eq!(live(&home.read("s1")), ["U [one]", "A two", "U [three]"]);
}
