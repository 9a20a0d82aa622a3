//! Gemini CLI: changes to the list of messages, and what they removed.

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind};

use crate::support::{Home, branch, live};

const FOLDER: &str = "tmp/w/chats";

fn header() -> Value {
    json!({"sessionId": "s1", "projectHash": "h", "startTime": "2026-01-02T03:04:05.678Z",
        "lastUpdated": "2026-01-02T03:04:05.678Z", "kind": "main"})
}

fn message(id: &str, kind: &str, content: Value) -> Value {
    let mut message = json!({"id": id, "timestamp": "2026-01-02T03:04:05.678Z", "type": kind});
    message["content"] = content;
    message
}

fn user(id: &str, text: &str) -> Value {
    message(id, "user", json!([{"text": text}]))
}

fn gemini(id: &str, text: &str) -> Value {
    let mut message = message(id, "gemini", text.into());
    message["model"] = "m".into();
    message["tokens"] = json!({"input": 10, "output": 2, "cached": 1, "thoughts": 3});
    message
}

fn set(messages: &[Value]) -> Value {
    json!({"$set": {"messages": messages, "lastUpdated": "2026-01-02T03:04:06.000Z"}})
}

fn context() -> Value {
    user("ctx", "<session_context>here")
}

fn session(records: &[Value]) -> Home {
    let home = Home::of(Agent::Gemini);
    home.put(
        &format!("{FOLDER}/session-2026-01-02T03-04-s1.jsonl"),
        &[&[header()], records].concat(),
    );
    home
}

fn talk() -> Vec<Value> {
    vec![
        user("a", "one"),
        gemini("b", "two"),
        user("c", "three"),
        gemini("d", "four"),
    ]
}

#[test]
fn a_rewind_removes_a_message_and_all_after_it() {
    for (id, left) in [("d", 3), ("c", 2), ("a", 0), ("unknown", 0)] {
        let back = [talk(), vec![json!({"$rewindTo": id}), user("e", "five")]].concat();
        let conversation = session(&back).read("s1");
        let all = ["U one", "A two", "U three", "A four"];
        assert_eq!(
            live(&conversation),
            [&all[..left], &["U five"]].concat(),
            "{id}"
        );
        assert_eq!(
            branch(&conversation, BranchKind::Rewound),
            all[left..],
            "{id}"
        );
    }
}

#[test]
fn a_message_with_a_known_id_takes_the_place_of_the_older_one() {
    let records = [
        talk(),
        vec![gemini("b", "better"), json!({"$patch": {"id": "b"}})],
    ]
    .concat();
    let conversation = session(&records).read("s1");
    assert_eq!(
        live(&conversation),
        ["U one", "A better", "U three", "A four"]
    );
    assert_eq!(branch(&conversation, BranchKind::Superseded), ["A two"]);
}

/// A resume writes the messages again, without the model and the tokens.
#[test]
fn a_list_takes_the_place_of_all_messages_and_keeps_their_details() {
    let again = [
        context(),
        user("a", "one"),
        message("b", "gemini", json!([{"text": "two"}])),
    ];
    let conversation = session(&[talk(), vec![header(), set(&again)]].concat()).read("s1");
    assert_eq!(
        live(&conversation),
        ["C <session_context>here", "U one", "A two"]
    );
    let superseded = ["U one", "A two", "U three", "A four"];
    assert_eq!(branch(&conversation, BranchKind::Superseded), superseded);
    let answer = conversation.node(conversation.live[2]);
    assert_eq!(answer.model, Some("m"));
    assert_eq!(answer.usage.as_ref().map(|usage| usage.reasoning), Some(3));
}

#[test]
fn a_list_with_a_new_summary_is_a_compaction() {
    let summary = |text: &str| user(text, &format!("<state_snapshot>{text}"));
    let first = set(&[
        context(),
        summary("x"),
        gemini("g", "thanks"),
        user("c", "three"),
    ]);
    let again = set(&[context(), summary("x"), gemini("g", "thanks")]);
    let second = set(&[context(), summary("y"), gemini("g", "thanks")]);
    let conversation = session(&[talk(), vec![first.clone()]].concat()).read("s1");
    let expected = [
        "C <session_context>here",
        "S <state_snapshot>x",
        "A thanks",
        "U three",
    ];
    assert_eq!(live(&conversation), expected);
    assert_eq!(
        branch(&conversation, BranchKind::Compacted),
        ["U one", "A two", "A four"]
    );
    let compacted = |list: Value| {
        let conversation = session(&[vec![first.clone()], vec![list]].concat()).read("s1");
        branch(&conversation, BranchKind::Compacted)
    };
    assert_eq!(compacted(again), [""; 0]);
    assert_eq!(compacted(second), ["S <state_snapshot>x", "U three"]);
}

#[test]
fn calls_come_with_their_results_and_recorded_results_once_more() {
    let response = |name: &str| json!({"functionResponse": {"id": name, "name": "ls", "response": {"output": name}}});
    let call = |id: &str| json!({"id": id, "name": "ls", "args": {}, "status": "success", "result": [response(id)]});
    let mut answer = gemini("b", "text");
    answer["thoughts"] = json!([{"subject": "S", "description": "hm"}]);
    answer["toolCalls"] = json!([call("x"), call("y")]);
    let recorded = message("c", "user", json!([response("x"), response("y")]));
    let conversation = session(&[user("a", "one"), answer.clone(), recorded]).read("s1");
    let expected = [
        "U one",
        "R **S** hm",
        "A text",
        "T ls {}",
        "T ls {}",
        "O x",
        "O y",
        "O x",
        "O y",
    ];
    assert_eq!(live(&conversation), expected);
    // A content that has the calls already is complete.
    answer["content"] =
        json!([{"text": "text"}, {"functionCall": {"id": "x", "name": "ls", "args": {}}}]);
    assert_eq!(live(&session(&[answer]).read("s1")), ["A text", "T ls {}"]);
}

#[test]
fn notes_and_commands_are_not_sent() {
    let records = [
        user("a", "/help"),
        user("b", "? what"),
        message("c", "info", "note".into()),
        message("d", "error", "wrong".into()),
        message("e", "new_kind", "x".into()),
        user("f", "one"),
    ];
    let conversation = session(&records).read("s1");
    assert_eq!(live(&conversation), ["U one"]);
    let unsent = ["U /help", "U ? what", "C note", "C wrong"];
    assert_eq!(branch(&conversation, BranchKind::Unsent), unsent);
    assert_eq!(conversation.unknown["new_kind"], 1);
}

#[test]
fn a_list_that_a_load_emptied_is_live_again() {
    let home = session(&[talk(), vec![header(), set(&[context()])]].concat());
    let conversation = home.read("s1");
    assert_eq!(live(&conversation), ["U one", "A two", "U three", "A four"]);
    let vendor = home.vendor("s1");
    assert!(vendor.live.is_empty() && vendor.refusal.is_some());
}

#[test]
fn the_newest_file_of_a_session_with_a_prompt_is_live() {
    let home = session(&talk());
    let put = |minute: &str, records: &[Value]| {
        let name = format!("{FOLDER}/session-2026-01-02T03-{minute}-s1.jsonl");
        home.put(&name, &[&[header()], records].concat());
    };
    put("09", &[set(&[context()])]);
    assert_eq!(
        live(&home.read("s1")),
        ["U one", "A two", "U three", "A four"]
    );
    put("08", &[user("a", "one"), user("e", "five")]);
    let conversation = home.read("s1");
    assert_eq!(live(&conversation), ["U one", "U five"]);
    assert!(branch(&conversation, BranchKind::Superseded).contains(&"A four".to_owned()));
    assert_eq!(home.sessions(), ["s1"]);
}

#[test]
fn subagents_are_sessions_and_branches_of_their_parent() {
    let home = session(&talk());
    let mut own = header();
    own["sessionId"] = "child".into();
    home.put(
        &format!("{FOLDER}/s1/child.jsonl"),
        &[own, user("x", "task"), gemini("y", "done")],
    );
    home.put_bytes("tmp/w/.project_root", b"/w\n");
    let conversation = home.read("s1");
    assert_eq!(
        branch(&conversation, BranchKind::Subagent),
        ["U task", "A done"]
    );
    assert_eq!(conversation.metadata.cwd.as_deref(), Some("/w"));
    assert_eq!(conversation.metadata.subagent_of, None);
    let child = home.read("child");
    assert_eq!(live(&child), ["U task", "A done"]);
    assert_eq!(child.metadata.subagent_of.as_deref(), Some("s1"));
    assert_eq!(child.metadata.cwd.as_deref(), Some("/w"));
}

#[test]
fn damaged_lines_are_skipped_by_gemini_and_split_here() {
    let home = Home::of(Agent::Gemini);
    let text = crate::support::lines(&[vec![header()], talk()].concat());
    let glued = text.replacen("}\n{\"content\":\"two\"", "}{\"content\":\"two\"", 1);
    assert_ne!(text, glued);
    home.put_bytes(&format!("{FOLDER}/session-1.jsonl"), glued.as_bytes());
    assert_eq!(
        live(&home.read("s1")),
        ["U one", "A two", "U three", "A four"]
    );
    assert_eq!(live(&home.vendor("s1")), ["U three", "A four"]);
}
