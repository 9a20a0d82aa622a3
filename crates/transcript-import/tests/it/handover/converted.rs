//! The models of the loaders against what the clients made of sessions that were written by hand or by the reference converter.

use serde_json::{Map, Value};

use super::given::{cases, list, reference, shared};
use super::{claude_model, codex_model};

/// Returns items in a form that can be compared: without what the client added, and without what is empty. The longest texts are
/// shortened in the expectations, with the number of characters that are omitted.
pub(super) fn compared(items: &[Value]) -> Vec<Map<String, Value>> {
    let keys = [
        "kind", "text", "name", "callId", "input", "output", "images",
    ];
    let items = items.iter().filter(|item| !is_added(item));
    let items = items.map(|item| {
        let mut compared = Map::new();
        for key in keys {
            let is_of_result = key == "name" && item["kind"] == "tool_result";
            let value = item.get(key).filter(|_| !is_of_result);
            let is_set = |value: &&Value| !value.is_null() && **value != "" && **value != 0;
            if let Some(value) = value.filter(is_set) {
                compared.insert(key.to_owned(), value.clone());
            }
        }
        if item["kind"] == "summary" {
            // A summary goes to the model as a message of the person.
            compared.insert("kind".to_owned(), "user".into());
        }
        compared
    });
    items.collect()
}

/// Returns whether an item is one of those that the client adds to every request. The expectations have their lengths.
fn is_added(item: &Value) -> bool {
    let text = item["text"].as_str().unwrap_or_default();
    item["kind"] == "context" && text.ends_with(" chars)")
}

#[test]
fn the_model_of_codex_says_what_codex_does_with_each_converted_session() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut count = 0;
    for (case, expected) in cases(&shared.join("convert-to-codex")) {
        // The session with the longest output is not there.
        let Ok(rollout) = std::fs::read_to_string(case.join("input.jsonl")) else {
            continue;
        };
        count += 1;
        let path = expected["inputPath"]["input.jsonl"]
            .as_str()
            .expect("it has a path");
        let opened = codex_model::open(path, &rollout);
        assert_eq!(
            opened.is_listed,
            expected["listedByDefault"] == true,
            "{case:?}"
        );
        assert_eq!(
            opened.is_listed_for_all,
            expected["listedWithAllProviders"] == true,
            "{case:?}"
        );
        assert_eq!(
            opened.preview.as_deref(),
            expected["preview"].as_str(),
            "{case:?}"
        );
        assert_eq!(
            opened.refusal.is_none(),
            expected["resume"] == "ok",
            "{case:?}"
        );
        if let Some(refusal) = opened.refusal {
            assert!(expected["resume"].to_string().contains(refusal), "{case:?}");
            continue;
        }
        let turns = serde_json::to_value(&opened.turns).expect("it is JSON");
        assert_eq!(turns, expected["turns"], "{case:?}");
        assert_eq!(
            compared(&opened.request),
            compared(list(&expected, "request")),
            "{case:?}"
        );
        assert_eq!(opened.model, expected["model"], "{case:?}");
    }
    println!("{count} sessions");
    assert!(count > 0);
}

#[test]
fn the_model_of_claude_code_says_what_it_does_with_each_converted_session() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut count = 0;
    for (case, expected) in cases(&shared.join("convert-to-claude")) {
        let Ok(session) = std::fs::read_to_string(case.join("input.jsonl")) else {
            continue;
        };
        count += 1;
        let path = expected["inputPath"]["input.jsonl"]
            .as_str()
            .expect("it has a path");
        let name = case.file_name().unwrap_or_default().to_string_lossy();
        let cwd = format!("/home/dev/conv-{name}/proj");
        let request = claude_model::open(path, &session, &cwd);
        assert_eq!(request.is_some(), expected["resume"] == "ok", "{case:?}");
        if let Some(request) = request {
            assert_eq!(
                compared(&request),
                compared(list(&expected, "request")),
                "{case:?}"
            );
        }
    }
    println!("{count} sessions");
    assert!(count > 0);
}

#[test]
fn the_models_send_what_the_clients_sent_of_each_session_of_the_reference_converter() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    for (file, is_codex) in [
        ("handoff-to-codex.jsonl.zst", true),
        ("handoff-to-claude.jsonl.zst", false),
    ] {
        let cases = reference(&shared, file);
        for case in &cases {
            let input = case.record["input"].as_str().expect("it has a session");
            let request = if is_codex {
                let path = "sessions/2026/11/20/rollout.jsonl";
                codex_model::open(path, input).request
            } else {
                let first: Value = serde_json::from_str(input.lines().next().unwrap_or_default())
                    .expect("it is JSON");
                let cwd = first["cwd"].as_str().expect("it has a folder");
                let path = format!(
                    "projects/{}/s.jsonl",
                    transcript_format::names::project_key(cwd)
                );
                claude_model::open(&path, input, cwd).expect("it is found")
            };
            let sent = compared(list(&case.record, "request"));
            assert_eq!(compared(&request), sent, "{}", case.name);
        }
        println!("{file}: {} sessions", cases.len());
        assert!(!cases.is_empty());
    }
}
