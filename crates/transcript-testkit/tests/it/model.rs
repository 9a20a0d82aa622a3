//! What the oracle folder does not show: the path itself, and the parameters of a request.

use serde_json::{Value, json};
use transcript_testkit::model::{vendor_path, vendor_request};

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
fn a_file_without_messages_is_refused() {
    assert!(vendor_path(b"").refusal.is_some());
    let text = line("system", "s", None, 1, &json!({"subtype": "informational"}));
    assert!(vendor_path(text.as_bytes()).refusal.is_some());
    assert_eq!(vendor_request(text.as_bytes(), None, None).messages, None);
}

#[test]
fn newer_models_get_reminders_as_messages_behind_the_turn() {
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
