//! Tests of the model without the oracle folders: of the path itself, and of the parameters of a request. And one
//! small session for each of the rarer rules, for machines without those folders.

use serde_json::{Value, json};
use transcript_testkit::model::{vendor_path, vendor_request};
use transcript_testkit::{damage, generate};

/// A line of the main chain, `second` seconds after the start.
fn line(kind: &str, uuid: &str, parent: Option<&str>, second: u32, more: &Value) -> String {
    let mut entry = json!({
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "isSidechain": false,
        "timestamp": format!("2026-11-20T10:00:{second:02}.000Z"),
    });
    for (key, value) in more.as_object().expect("more fields are an object") {
        entry[key] = value.clone();
    }
    format!("{entry}\n")
}

fn user(uuid: &str, parent: Option<&str>, second: u32) -> String {
    line(
        "user",
        uuid,
        parent,
        second,
        &json!({"message": {"role": "user", "content": uuid}}),
    )
}

fn assistant(uuid: &str, parent: &str, second: u32) -> String {
    let text = json!([{"type": "text", "text": uuid}]);
    let message = json!({"id": uuid, "model": "claude-x", "role": "assistant", "content": text});
    line(
        "assistant",
        uuid,
        Some(parent),
        second,
        &json!({"message": message}),
    )
}

fn reminder(uuid: &str, parent: &str, second: u32) -> String {
    let rendered = json!([{"content": format!("<system-reminder>\n{uuid}\n</system-reminder>")}]);
    let more = json!({"attachment": {"type": "x"}, "rendered": rendered, "renderedRole": "system"});
    line("attachment", uuid, Some(parent), second, &more)
}

fn check_path(text: &str, expect: &[(usize, &str)]) {
    let path = vendor_path(text.as_bytes());
    assert_eq!(path.refusal, None);
    let entries: Vec<(usize, &str)> = path
        .entries
        .iter()
        .map(|entry| {
            (
                entry.line,
                entry.uuid.as_deref().expect("all entries have a uuid"),
            )
        })
        .collect();
    assert_eq!(entries, expect);
}

#[test]
fn a_path_names_lines_and_leaf() {
    let text = user("u", None, 1) + "torn\n" + &assistant("a", "u", 2) + &reminder("r", "a", 3);
    check_path(&text, &[(1, "u"), (3, "a"), (4, "r")]);
    assert_eq!(vendor_path(text.as_bytes()).leaf.as_deref(), Some("r"));
}

#[test]
fn a_repeated_entry_keeps_its_place_and_names_its_last_line() {
    let text = user("u", None, 1) + &assistant("a", "u", 2) + &user("v", Some("a"), 3);
    check_path(
        &(text + &assistant("a", "u", 2)),
        &[(1, "u"), (4, "a"), (3, "v")],
    );
}

#[test]
fn a_file_of_sidechain_lines_is_its_own_main_chain() {
    let text = user("u", None, 1) + &assistant("a", "u", 2);
    check_path(
        &text.replace("\"isSidechain\":false", "\"isSidechain\":true"),
        &[(1, "u"), (2, "a")],
    );
}

#[test]
fn a_file_without_entries_is_refused() {
    assert!(vendor_path(b"").refusal.is_some());
    assert_eq!(vendor_request(b"", None, None).messages, None);
    let text = "{\"type\":\"summary\",\"leafUuid\":\"u\"}\n";
    assert!(vendor_path(text.as_bytes()).refusal.is_some());
}

#[test]
fn a_file_of_system_lines_is_resumed_with_an_empty_history() {
    let text = line("system", "s", None, 1, &json!({"subtype": "informational"}));
    assert_eq!(shown(&text, None), ["user NEXT"]);
}

#[test]
fn newer_models_get_reminders_as_messages_after_the_turn() {
    let text = user("u", None, 1)
        + &reminder("r", "u", 2)
        + &reminder("s", "r", 2)
        + &assistant("a", "s", 3);
    let messages = |model: &str| {
        let request = vendor_request(text.as_bytes(), None, Some(model));
        request.messages.expect("the file can be resumed")
    };
    let text_of = |text: &str| json!([{"type": "text", "text": text}]);
    let answer = json!({"role": "assistant", "content": text_of("a")});
    assert_eq!(
        messages("claude-opus-5-5"),
        [
            json!({"role": "user", "content": text_of("u")}),
            json!({"role": "system", "content": text_of("r\n\ns")}),
            answer.clone(),
        ]
    );
    let folded = json!([
        {"type": "text", "text": "<system-reminder>\nr\n</system-reminder>"},
        {"type": "text", "text": "<system-reminder>\ns\n</system-reminder>\n"},
        {"type": "text", "text": "u"},
    ]);
    assert_eq!(
        messages("claude-sonnet-4-5-20250929"),
        [json!({"role": "user", "content": folded}), answer]
    );
}

/// The request for a session and the prompt NEXT, a line for each message: its role and blocks.
fn shown(text: &str, model: Option<&str>) -> Vec<String> {
    let request = vendor_request(text.as_bytes(), Some("NEXT"), model);
    let messages = request.messages.expect("the file can be resumed");
    let block = |block: &Value| match block["type"].as_str() {
        Some("text") => block["text"].as_str().expect("a text").replace('\n', "/"),
        Some("tool_use") => format!("call {}", block["id"].as_str().expect("an id")),
        Some("tool_result") => {
            let id = block["tool_use_id"].as_str().expect("an id");
            format!("result {id} {}", block["content"])
        }
        Some(other) => other.to_owned(),
        None => panic!("a block has a type"),
    };
    let message = |message: &Value| {
        let blocks = message["content"].as_array().expect("a list");
        let blocks: Vec<String> = blocks.iter().map(block).collect();
        let role = message["role"].as_str().expect("a role");
        format!("{role} {}", blocks.join(" | "))
    };
    messages.iter().map(message).collect()
}

fn user_of(uuid: &str, parent: Option<&str>, second: u32, content: &Value) -> String {
    let more = json!({"message": {"role": "user", "content": content}});
    line("user", uuid, parent, second, &more)
}

fn answer_of(uuid: &str, parent: &str, second: u32, id: Option<&str>, blocks: &Value) -> String {
    let mut message = json!({"model": "claude-x", "role": "assistant", "content": blocks});
    if let Some(id) = id {
        message["id"] = id.into();
    }
    line(
        "assistant",
        uuid,
        Some(parent),
        second,
        &json!({"message": message}),
    )
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}})
}

fn result(uuid: &str, parent: &str, second: u32, id: &str, content: &Value) -> String {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": content});
    user_of(uuid, Some(parent), second, &json!([block]))
}

fn pin(uuid: &str) -> String {
    format!("{}\n", json!({"type": "last-prompt", "leafUuid": uuid}))
}

fn boundary(second: u32, metadata: &Value) -> String {
    let more = json!({"subtype": "compact_boundary", "compactMetadata": metadata});
    line("system", "b", None, second, &more)
}

/// A prompt and a message of two parallel calls, each with its result under it.
fn parallel() -> String {
    user("u", None, 1)
        + &answer_of("x", "u", 2, Some("m"), &json!([call("X")]))
        + &answer_of("y", "x", 3, Some("m"), &json!([call("Y")]))
        + &result("ry", "y", 4, "Y", &json!("y"))
        + &result("rx", "x", 5, "X", &json!("x"))
}

#[test]
fn a_pin_on_a_line_beside_the_chain_gives_way() {
    for pinned in ["x", "y", "rx", "ry"] {
        for child_of in ["x", "y", "rx", "ry"] {
            let text = parallel() + &pin(pinned) + &assistant("a", child_of, 6);
            assert_eq!(
                shown(&text, None)[1..4],
                [
                    "assistant call X | call Y",
                    "user result Y \"y\" | result X \"x\"",
                    "assistant a"
                ],
                "pin on {pinned}, answer under {child_of}"
            );
        }
    }
    let text = parallel() + &assistant("a", "rx", 6) + &user("v", Some("u"), 7) + &pin("a");
    assert_eq!(shown(&text, None)[3..], ["assistant a", "user NEXT"]);
}

#[test]
fn a_boundary_lifts_the_pins_before_it() {
    let before = user("u", None, 1) + &assistant("a", "u", 2);
    let after = boundary(3, &json!({})) + &user("s", Some("b"), 4) + &assistant("c", "s", 5);
    let compacted = ["user s", "assistant c", "user NEXT"];
    assert_eq!(
        shown(&(before.clone() + &pin("a") + &after), None),
        compacted
    );
    let text = before.clone() + &after + &pin("a");
    assert_eq!(shown(&text, None), ["user u", "assistant a", "user NEXT"]);
    let side = boundary(3, &json!({})).replace("\"isSidechain\":false", "\"isSidechain\":true");
    let text = before + &pin("u") + &side + &user("v", None, 6);
    assert_eq!(
        shown(&text, None),
        ["user v", "assistant No response requested.", "user NEXT"]
    );
}

#[test]
fn a_line_that_hangs_nowhere_holds_the_chain_at_the_pin() {
    let text = user("u", None, 1) + &assistant("a", "u", 2) + &pin("a") + &user("v", Some("a"), 3);
    assert_eq!(shown(&text, None)[2], "user v");
    let lost = line(
        "system",
        "s",
        Some("lost"),
        40,
        &json!({"subtype": "turn_duration"}),
    );
    assert_eq!(
        shown(&(text + &lost), None),
        ["user u", "assistant a", "user NEXT"]
    );
}

#[test]
fn newest_message_is_the_leaf_after_a_boundary_without_a_summary() {
    let text = user("u", None, 1)
        + &assistant("a", "u", 9)
        + &assistant("z", "u", 3)
        + &boundary(10, &json!({}));
    assert_eq!(shown(&text, None)[1], "assistant a");
}

#[test]
fn kept_lines_whose_anchor_was_never_written_start_the_history() {
    let kept = json!({"preservedMessages": {"anchorUuid": "lost", "uuids": ["v", "c"]}});
    let text = user("u", None, 1)
        + &assistant("a", "u", 2)
        + &user("v", Some("a"), 3)
        + &assistant("c", "v", 4)
        + &boundary(5, &kept);
    assert_eq!(shown(&text, None), ["user v", "assistant c", "user NEXT"]);
}

#[test]
fn attachments_beside_the_chain_belong_to_a_message_that_makes_calls() {
    let text = parallel()
        + &reminder("r1", "rx", 6)
        + &reminder("r2", "y", 7)
        + &reminder("r3", "u", 8)
        + &reminder("r4", "ry", 9)
        + &user("other", Some("r4"), 10)
        + &assistant("a", "rx", 11);
    assert_eq!(
        shown(&text, None)[2],
        "user result Y \"y\" | result X \"x\\n\\n<system-reminder>\\nr1\\n</system-reminder>\
         \\n\\n<system-reminder>\\nr2\\n</system-reminder>\""
    );
}

#[test]
fn a_lost_line_goes_after_the_line_that_is_before_it() {
    // The chain runs h, t, x in this order, which is not that of the file.
    let thought = json!({"type": "thinking", "thinking": "h", "signature": ""});
    let text = user("u", None, 1)
        + &answer_of("t", "h", 3, Some("m"), &json!([said("t")]))
        + &answer_of("h", "u", 2, Some("m"), &json!([thought]))
        + &answer_of("i", "h", 4, Some("m"), &json!([said("i")]))
        + &answer_of("x", "t", 5, Some("m"), &json!([call("X")]))
        + &answer_of("j", "h", 6, Some("m"), &json!([said("j")]))
        + &result("rx", "x", 7, "X", &json!("x"));
    assert_eq!(
        shown(&text, None)[1],
        "assistant thinking | t | i | j | call X"
    );
}

#[test]
fn an_id_that_comes_again_in_a_later_turn_is_another_message() {
    let text = user("u", None, 1)
        + &answer_of("x", "u", 2, Some("m"), &json!([call("X")]))
        + &result("rx", "x", 3, "X", &json!("x"))
        + &answer_of("t", "rx", 4, Some("m"), &json!([said("t")]))
        + &assistant("o", "t", 5)
        + &answer_of("p", "o", 6, Some("m"), &json!([said("p")]))
        + &user("v", Some("p"), 7)
        + &answer_of("w", "v", 8, Some("m"), &json!([said("w")]));
    let messages = [
        "user u",
        "assistant t | p | call X",
        "user result X \"x\"",
        "assistant o",
        "user v",
        "assistant w",
        "user NEXT",
    ];
    assert_eq!(shown(&text, None), messages);
    // Lines without an id merge in the same way if they have the id of a request, else not.
    let text = text.replace("\"id\":\"m\"", "\"id\":null");
    let named = text.replace("\"uuid\":", "\"requestId\":null,\"uuid\":");
    assert_eq!(shown(&named, None), messages);
    assert_eq!(shown(&text, None).len(), messages.len() + 2);
}

#[test]
fn calls_go_last_but_not_past_a_second_thought() {
    let thought = || json!({"type": "thinking", "thinking": "h", "signature": ""});
    let order = |blocks: Value| {
        let text = user("u", None, 1) + &answer_of("a", "u", 2, Some("m"), &blocks);
        let text = text + &result("rx", "a", 3, "X", &json!("x"));
        shown(&text, None)[1].clone()
    };
    assert_eq!(order(json!([call("X"), said("t")])), "assistant t | call X");
    assert_eq!(
        order(json!([thought(), call("X"), thought(), said("t")])),
        "assistant thinking | call X | thinking | t"
    );
    assert_eq!(
        order(json!([thought(), said("t"), call("X"), thought()])),
        "assistant thinking | t | thinking | call X"
    );
}

#[test]
fn blank_texts_are_dropped() {
    let text = user("u", None, 1)
        + &answer_of("l", "u", 2, Some("m"), &json!([said("\n\n")]))
        + &answer_of("x", "l", 3, Some("m"), &json!([call("X")]))
        + &result("rx", "x", 4, "X", &json!("x"))
        + &answer_of(
            "a",
            "rx",
            5,
            Some("n"),
            &json!([said("a"), said(" "), said("")]),
        )
        + &user_of("v", Some("a"), 6, &json!([said(" ")]))
        + &assistant("b", "v", 7)
        + &user_of("w", Some("b"), 8, &json!(" "))
        + &assistant("c", "w", 9)
        + &user_of("y", Some("c"), 10, &json!(" "))
        + &user("z", Some("y"), 11);
    assert_eq!(
        shown(&text, None)[1..],
        [
            "assistant call X",
            "user result X \"x\"",
            "assistant a |  ",
            "user (no content)",
            "assistant b",
            "user  ",
            "assistant c",
            "user z",
            "assistant No response requested.",
            "user NEXT",
        ]
    );
}

#[test]
fn a_line_that_loads_a_tool_says_so_and_takes_no_reminders() {
    let reference = |tool: &str| json!({"type": "tool_reference", "tool_name": tool});
    let session = |content: Value| {
        let text = user("u", None, 1)
            + &answer_of("x", "u", 2, Some("m"), &json!([call("X")]))
            + &result("rx", "x", 3, "X", &content)
            + &reminder("r", "rx", 4);
        shown(&text, None)[2].clone()
    };
    let reminded = "<system-reminder>/r/</system-reminder>";
    assert_eq!(
        session(json!([reference("WebFetch"), reference("Gone")])),
        format!(
            "user result X [{{\"tool_name\":\"WebFetch\",\"type\":\"tool_reference\"}}] | Tool loaded. \
             | {reminded}"
        )
    );
    assert!(session(json!([reference("Gone")])).starts_with(
        "user result X [{\"text\":\"[Tool references removed - tools no longer available]"
    ));
    let found = json!([{"type": "search_result", "content": []}]);
    assert!(session(found).ends_with(&format!(" | {reminded}")));
    assert_eq!(
        session(Value::Null),
        format!("user result X null | {reminded}")
    );
}

#[test]
fn a_failed_result_without_a_text_is_sent_empty() {
    let image = json!({"type": "tool_result", "tool_use_id": "X", "is_error": true,
        "content": [{"type": "image", "source": {}}]});
    let text = user("u", None, 1)
        + &answer_of("x", "u", 2, Some("m"), &json!([call("X")]))
        + &user_of("rx", Some("x"), 3, &json!([image]));
    assert_eq!(shown(&text, None)[2], "user result X []");
}

#[test]
fn server_calls_without_a_result_are_dropped() {
    for kind in ["server_tool_use", "mcp_tool_use"] {
        let blocks = json!([{"type": kind, "id": "s", "name": "n", "input": {}}]);
        let text = user("u", None, 1) + &answer_of("a", "u", 2, Some("m"), &blocks);
        assert_eq!(shown(&text, None)[1], "assistant [Tool use interrupted]");
    }
}

#[test]
fn a_command_that_was_run_by_hand_needs_no_answer() {
    let lines = [
        "<local-command-caveat>c</local-command-caveat>",
        "<command-name>/n</command-name>",
        "<local-command-stdout>o</local-command-stdout>",
    ];
    let session = |lines: &[&str]| {
        let mut text = user("u", None, 1) + &assistant("a", "u", 2);
        let mut parent = "a".to_owned();
        for (number, content) in lines.iter().enumerate() {
            let uuid = format!("l{number}");
            text += &user_of(&uuid, Some(&parent), 3 + number as u32, &json!(content));
            parent = uuid;
        }
        shown(&text, None).len()
    };
    for count in 1..=3 {
        assert_eq!(session(&lines[..count]), 3, "no answer between");
    }
    assert_eq!(session(&lines[1..]), 5);
    assert_eq!(
        session(&[lines[0], "<command-message>m</command-message>"]),
        5
    );
    assert_eq!(session(&[lines[0], lines[1], "go on"]), 5);
}

#[test]
fn reminders_of_a_turn_without_a_user_message_are_sent_as_one() {
    let text = user("u", None, 1)
        + &assistant("a", "u", 2)
        + &reminder("r", "a", 3)
        + &assistant("b", "r", 4);
    assert_eq!(
        shown(&text, Some("claude-opus-5-5"))[2],
        "user <system-reminder>/r/</system-reminder>"
    );
}

#[test]
fn in_the_role_form_files_stay_beside_results_and_mentions_go_into_them() {
    let attached = |kind: &str| {
        let rendered = json!([{"content": "one"}, {"content": "two"}]);
        let more = json!({
            "attachment": {"type": kind}, "rendered": rendered, "renderedRole": "user",
        });
        let text = user("u", None, 1)
            + &answer_of("x", "u", 2, Some("m"), &json!([call("X")]))
            + &result("rx", "x", 3, "X", &json!("x"))
            + &reminder("r", "rx", 4)
            + &line("attachment", "f", Some("r"), 5, &more);
        shown(&text, Some("claude-opus-5-5"))[2..4].to_vec()
    };
    assert_eq!(
        attached("file"),
        ["user result X \"x\" | one/ | two", "system r"]
    );
    assert_eq!(
        attached("queued_command"),
        ["user result X \"x\\n\\none\\n\\ntwo\"", "system r"]
    );
}

#[test]
fn every_generated_and_damaged_session_has_an_answer() {
    let (mut resumed, mut refused) = (0, 0);
    for seed in 0..500 {
        let session = generate::session(seed);
        let (damaged, _) = damage::damage(&session, seed);
        for bytes in [session, damaged] {
            for model in [None, Some("claude-opus-5-5")] {
                let request = vendor_request(&bytes, Some("NEXT"), model);
                assert_eq!(request.messages.is_none(), request.refusal.is_some());
                match request.messages {
                    // The prompt is in the last user message, whatever was said before.
                    Some(messages) => {
                        let mut users = messages.iter().rev();
                        let last = users.find(|message| message["role"] == "user");
                        let blocks = last.expect("a user message")["content"].as_array();
                        let said = blocks.expect("a list").iter().any(|b| b["text"] == "NEXT");
                        assert!(said, "seed {seed}");
                        resumed += 1;
                    }
                    None => refused += 1,
                }
            }
        }
    }
    assert!(refused > 0 && resumed > 10 * refused, "{resumed} {refused}");
}
