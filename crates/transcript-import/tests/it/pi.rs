//! Pi: the path to the last record, compactions, edits, lost parents.

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind, Conversation, DamageKind};

use crate::support::{Home, branch, lines, live};

const FILE: &str = "sessions/--w--/2026-01-02T03-04-05-678Z_s1.jsonl";

fn header() -> Value {
    json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/w"})
}

/// A record with its id and the id of its parent.
fn entry(id: &str, parent: &str, mut record: Value) -> Value {
    record["id"] = id.into();
    record["parentId"] = if parent.is_empty() {
        Value::Null
    } else {
        parent.into()
    };
    record["timestamp"] = "2026-01-02T03:04:05.678Z".into();
    record
}

fn message(id: &str, parent: &str, message: Value) -> Value {
    let mut record = json!({"type": "message"});
    record["message"] = message;
    entry(id, parent, record)
}

fn user(id: &str, parent: &str, text: &str) -> Value {
    message(id, parent, json!({"role": "user", "content": text}))
}

fn assistant(id: &str, parent: &str, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    message(
        id,
        parent,
        json!({"role": "assistant", "content": content, "stopReason": "stop",
        "model": "m", "usage": {"input": 10, "output": 2, "cacheRead": 1, "cacheWrite": 0}}),
    )
}

fn session(records: &[Value]) -> Home {
    let home = Home::of(Agent::Pi);
    home.put(FILE, &[&[header()], records].concat());
    home
}

#[test]
fn the_path_to_the_last_record_is_live_and_other_runs_are_branches() {
    let label = entry(
        "l",
        "b",
        json!({"type": "label", "targetId": "a", "label": "x"}),
    );
    let records = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        user("c", "b", "three"),
        assistant("d", "c", "four"),
        user("e", "", "other root"),
        user("f", "b", "instead"),
        label,
    ];
    let conversation = session(&records).read("s1");
    // A label is a record of the tree, too: its parent is where the conversation continues.
    assert_eq!(live(&conversation), ["U one", "A two"]);
    let rewound = ["U three", "A four", "U other root", "U instead"];
    assert_eq!(branch(&conversation, BranchKind::Rewound), rewound);
    let runs = conversation
        .branches
        .iter()
        .map(|branch| branch.nodes.len());
    assert_eq!(runs.collect::<Vec<_>>(), [2, 1, 1]);
    let usage = conversation.metadata.usage.expect("it is counted");
    assert_eq!((usage.input, usage.output), (10, 2));
}

#[test]
fn a_compaction_keeps_the_entries_from_the_named_one_on() {
    let compaction = |first: &str| {
        entry(
            "x",
            "d",
            json!({"type": "compaction", "summary": "sum", "firstKeptEntryId": first}),
        )
    };
    let system = message("p", "", json!({"role": "system", "content": "rules"}));
    let records = |first: &str| {
        vec![
            system.clone(),
            user("a", "p", "one"),
            assistant("b", "a", "two"),
            user("c", "b", "three"),
            assistant("d", "c", "four"),
            compaction(first),
            user("e", "x", "five"),
        ]
    };
    for (first, kept, gone) in [
        (
            "c",
            vec!["U three", "A four"],
            vec!["C rules", "U one", "A two"],
        ),
        (
            "p",
            vec!["U one", "A two", "U three", "A four"],
            vec!["C rules"],
        ),
        (
            "?",
            vec![],
            vec!["C rules", "U one", "A two", "U three", "A four"],
        ),
    ] {
        let conversation = session(&records(first)).read("s1");
        assert_eq!(
            live(&conversation),
            [vec!["S sum"], kept, vec!["U five"]].concat()
        );
        assert_eq!(branch(&conversation, BranchKind::Compacted), gone);
    }
    // Before the compaction, everything is live again.
    let back = [records("c"), vec![user("f", "b", "back")]].concat();
    let conversation = session(&back).read("s1");
    assert_eq!(live(&conversation), ["C rules", "U one", "A two", "U back"]);
    assert!(branch(&conversation, BranchKind::Rewound).contains(&"S sum".to_owned()));
}

#[test]
fn the_last_edit_on_the_path_replaces_or_drops_a_record() {
    let edit = |id: &str, parent: &str, target: &str, replacement: Value| {
        let edit = json!({"type": "context_edit", "targetId": target, "replacement": replacement});
        entry(id, parent, edit)
    };
    let records = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        user("c", "b", "three"),
        edit("d", "c", "a", json!({"content": "first"})),
        edit(
            "e",
            "d",
            "a",
            json!({"content": [{"type": "text", "text": "second"}]}),
        ),
        edit("f", "e", "b", Value::Null),
        edit("g", "b", "c", Value::Null),
        user("h", "f", "four"),
    ];
    let conversation = session(&records).read("s1");
    assert_eq!(live(&conversation), ["U second", "U three", "U four"]);
    assert_eq!(
        branch(&conversation, BranchKind::Superseded),
        ["U first", "U one", "A two"]
    );
}

#[test]
fn what_is_sent_as_a_prompt_is_one_and_what_is_kept_from_the_model_is_not() {
    let command = |id: &str, parent: &str, hidden: bool, code: i64, output: &str| {
        message(
            id,
            parent,
            json!({"role": "bashExecution", "command": "ls", "output": output,
            "exitCode": code, "excludeFromContext": hidden}),
        )
    };
    let failed = json!({"role": "assistant", "content": [{"type": "text", "text": "half"}], "stopReason": "aborted"});
    let records = [
        user("a", "", "one"),
        command("b", "a", false, 0, "a.txt"),
        command("c", "b", true, 0, "secret"),
        command("d", "c", false, 3, ""),
        message("e", "d", failed),
        entry(
            "f",
            "e",
            json!({"type": "custom", "customType": "x", "data": {"k": 1}}),
        ),
        entry(
            "g",
            "f",
            json!({"type": "custom_message", "customType": "x", "content": "of a plug-in"}),
        ),
        entry(
            "h",
            "g",
            json!({"type": "branch_summary", "fromId": "z", "summary": "of a branch"}),
        ),
    ];
    let conversation = session(&records).read("s1");
    let expected = [
        "U one",
        "U Ran `ls`\n```\na.txt\n```",
        "U Ran `ls`\n(no output)\n\nCommand exited with code 3",
        "U of a plug-in",
        "S of a branch",
    ];
    assert_eq!(live(&conversation), expected);
    let unsent = ["U Ran `ls`\n```\nsecret\n```", "A half", r#"C {"k":1}"#];
    assert_eq!(branch(&conversation, BranchKind::Unsent), unsent);
}

#[test]
fn a_call_without_a_result_gets_one_before_the_next_message() {
    let calls = json!({"role": "assistant", "stopReason": "toolUse", "content": [
        {"type": "thinking", "thinking": "hm"},
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}},
        {"type": "toolCall", "id": "c2", "name": "read", "arguments": {"path": "b"}}]});
    let result = json!({"role": "toolResult", "toolCallId": "c1", "toolName": "read", "isError": true,
        "content": [{"type": "text", "text": "none"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]});
    let records = [
        message("a", "", calls),
        message("b", "a", result),
        user("c", "b", "next"),
    ];
    let expected = [
        "R hm",
        r#"T read {"path":"a"}"#,
        r#"T read {"path":"b"}"#,
        "E none+image",
        "E No result provided",
        "U next",
    ];
    assert_eq!(live(&session(&records).read("s1")), expected);
    assert_eq!(live(&session(&records[..2]).read("s1")), expected[..5]);
}

#[test]
fn metadata_comes_from_the_header_and_from_records() {
    let mut first = header();
    first["parentSession"] = "/x/2026-01-01T00-00-00-000Z_s0.jsonl".into();
    let records = [
        first,
        entry("a", "", json!({"type": "model_change", "modelId": "m9"})),
        entry("b", "a", json!({"type": "session_info", "name": "named"})),
        entry("c", "b", json!({"type": "new_kind"})),
    ];
    let home = Home::of(Agent::Pi);
    home.put(FILE, &records);
    let conversation = home.read("s1");
    let metadata = &conversation.metadata;
    assert_eq!(metadata.title.as_deref(), Some("named"));
    assert_eq!(metadata.model.as_deref(), Some("m9"));
    assert_eq!(metadata.forked_from.as_deref(), Some("s0"));
    assert_eq!(metadata.cwd.as_deref(), Some("/w"));
    assert_eq!(conversation.unknown["new_kind"], 1);
}

/// Pi loses everything above a lost record.
#[test]
fn a_lost_parent_is_replaced_by_the_record_before_it() {
    let all = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        user("c", "b", "three"),
        assistant("d", "c", "four"),
    ];
    for lost in 0..3 {
        let mut records = all.to_vec();
        records.remove(lost);
        let home = session(&records);
        assert_eq!(live(&home.read("s1")).len(), 3, "{lost}");
        assert_eq!(live(&home.vendor("s1")).len(), 3 - lost, "{lost}");
    }
    let home = Home::of(Agent::Pi);
    let text = lines(&[vec![header()], all.to_vec()].concat());
    home.put_bytes(
        FILE,
        text.replacen("}\n", "}", 3)
            .replacen("}{", "}\n{", 1)
            .as_bytes(),
    );
    assert_eq!(
        live(&home.read("s1")),
        ["U one", "A two", "U three", "A four"]
    );
    assert_eq!(live(&home.vendor("s1")), ["A four"]);
}

#[test]
fn records_with_the_same_lost_parent_are_siblings() {
    let records = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        user("d", "lost", "rewound"),
        assistant("e", "d", "of it"),
        user("f", "lost", "instead"),
        assistant("g", "f", "five"),
    ];
    let home = session(&records);
    let conversation = home.read("s1");
    assert_eq!(
        live(&conversation),
        ["U one", "A two", "U instead", "A five"]
    );
    let rewound = branch(&conversation, BranchKind::Rewound);
    assert_eq!(rewound, ["U rewound", "A of it"]);
    assert_eq!(live(&home.vendor("s1")), ["U instead", "A five"]);
}

#[test]
fn a_lost_record_does_not_split_a_branch() {
    let records = [
        user("a", "", "one"),
        user("b", "a", "rewound"),
        user("d", "lost", "after it"),
        user("e", "a", "instead"),
    ];
    let home = session(&records);
    let runs = |conversation: &Conversation| -> Vec<usize> {
        let branches = conversation.branches.iter();
        branches.map(|branch| branch.nodes.len()).collect()
    };
    assert_eq!(live(&home.read("s1")), ["U one", "U instead"]);
    assert_eq!(runs(&home.read("s1")), [2]);
    assert_eq!(runs(&home.vendor("s1")), [1, 1]);
}

#[test]
fn a_repeated_line_does_not_stand_in_for_a_lost_parent() {
    let records = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        user("a", "", "one"),
        user("d", "lost", "three"),
    ];
    let conversation = session(&records).read("s1");
    assert_eq!(live(&conversation), ["U one", "A two", "U three"]);
}

/// Pi keeps nothing then.
#[test]
fn a_compaction_whose_first_kept_record_is_lost_keeps_what_follows_it() {
    let compaction = json!({"type": "compaction", "summary": "sum", "firstKeptEntryId": "lost"});
    let records = [
        user("a", "", "one"),
        assistant("c", "lost", "two"),
        entry("x", "c", compaction),
        user("d", "x", "three"),
    ];
    let home = session(&records);
    assert_eq!(live(&home.read("s1")), ["S sum", "A two", "U three"]);
    assert_eq!(live(&home.vendor("s1")), ["S sum", "U three"]);
}

#[test]
fn pi_refuses_circles_marks_and_missing_headers_that_are_read_here() {
    let records = [user("a", "b", "one"), user("b", "a", "two")];
    let conversation = session(&records).read("s1");
    assert_eq!(live(&conversation), ["U one", "U two"]);
    assert_eq!(conversation.damage[0].kind, DamageKind::ParentCycle);
    assert!(session(&records).vendor("s1").refusal.is_some());

    let one = [user("a", "", "one")];
    let home = Home::of(Agent::Pi);
    home.put(FILE, &one);
    assert_eq!(live(&home.read("s1")), ["U one"]);
    assert!(home.vendor("s1").refusal.is_some());

    let marked = format!("\u{feff}{}", lines(&[&[header()], &one[..]].concat()));
    home.put_bytes(FILE, marked.as_bytes());
    assert_eq!(live(&home.read("s1")), ["U one"]);
    assert!(home.vendor("s1").refusal.is_some());
}

#[test]
fn of_a_repeated_line_one_copy_is_live() {
    let records = [
        user("a", "", "one"),
        assistant("b", "a", "two"),
        user("a", "", "one"),
    ];
    let home = session(&[&records[..], &[user("c", "b", "three")]].concat());
    let conversation = home.read("s1");
    assert_eq!(live(&conversation), ["U one", "A two", "U three"]);
    assert_eq!(branch(&conversation, BranchKind::Superseded), ["U one"]);
}
