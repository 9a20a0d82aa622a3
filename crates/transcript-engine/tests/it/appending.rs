//! The entries that can be appended, and the lines of titles, tags and calls.

use serde_json::json;
use transcript_engine::stream::{Accumulator, Reply, StreamOutcome};
use transcript_engine::{
    Draft, EntryId, ErrorKind, History, InvalidEntryId, Policy, Session, make,
};
use transcript_writer::ErrorKind as WriteError;

use crate::support::{Place, assert_unhurt, create, lines, options, say};

#[test]
fn a_draft_and_a_new_entry_are_appended_alike_and_a_bad_entry_says_why() {
    let place = Place::new();
    let session = create(&place.path);
    let prompt = session.append(Draft::user("x")).unwrap();
    let made = session.append(make::user("y")).unwrap();
    assert_eq!(made.parent, prompt.uuid);
    session.queue(make::user("z")).unwrap().wait().unwrap();
    let bad = make::user("a\0b");
    let error = session.append(bad).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Write(WriteError::InvalidEntry));
    let text = error.to_string();
    let path = place.path.display().to_string();
    assert!(text.starts_with(&path), "{text}");
    assert!(text.contains("NUL character"), "{text}");
    assert!(!error.is_retryable());
    session.close().unwrap();
    assert_eq!(lines(&place.path).0.len(), 3);
    assert_unhurt(&place.path);
}

#[test]
fn the_last_title_and_the_last_tag_count_and_neither_is_in_the_conversation() {
    let place = Place::new();
    let session = create(&place.path);
    let prompt = say(&session, "x");
    session.set_title("Tides").unwrap();
    session.set_tag("sea").unwrap();
    session.set_title("Ebb \"and\" flood").unwrap();
    session.set_tag("").unwrap();
    assert_eq!(session.leaf(), Some(prompt.clone()));
    session.close().unwrap();
    for policy in [Policy::Vendor, Policy::Recover] {
        let history = History::open(&place.path).unwrap();
        let state = history.state(policy).unwrap();
        assert_eq!(state.title.as_deref(), Some("Ebb \"and\" flood"));
        assert_eq!(state.tag.as_deref().unwrap_or_default(), "");
        assert_eq!(history.entries(policy).unwrap().len(), 1);
    }
    let session = Session::open(&place.path, &options()).unwrap();
    session.set_tag("sea").unwrap();
    assert_eq!(session.leaf(), Some(prompt));
    session.close().unwrap();
    let history = History::open(&place.path).unwrap();
    let state = history.state(Policy::Recover).unwrap();
    assert_eq!(state.tag.as_deref(), Some("sea"));
    let metadata = lines(&place.path).0.split_off(1);
    assert!(metadata.iter().all(|line| line.get("uuid").is_none()));
}

/// Returns the reply with these blocks, as it arrives in events.
fn reply(blocks: &[(serde_json::Value, serde_json::Value)]) -> Reply {
    let mut message = Accumulator::new();
    let mut event = |event: serde_json::Value| {
        message.event(&event.to_string());
    };
    event(
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message",
        "role": "assistant", "model": "m", "content": [], "usage": {}}}),
    );
    for (at, (block, delta)) in blocks.iter().enumerate() {
        event(json!({"type": "content_block_start", "index": at, "content_block": block}));
        event(json!({"type": "content_block_delta", "index": at, "delta": delta}));
        event(json!({"type": "content_block_stop", "index": at}));
    }
    event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
    event(json!({"type": "message_stop"}));
    match message.finish() {
        StreamOutcome::Whole(reply) => reply,
        other => panic!("{other:?}"),
    }
}

fn part(kind: &str, id: &str, input: &str) -> (serde_json::Value, serde_json::Value) {
    (
        json!({"type": kind, "id": id, "name": "Read", "input": {}}),
        json!({"type": "input_json_delta", "partial_json": input}),
    )
}

#[test]
fn a_reply_lists_the_calls_that_the_client_runs_in_their_order() {
    let text = (
        json!({"type": "text", "text": ""}),
        json!({"type": "text_delta", "text": "Two files."}),
    );
    let found = reply(&[
        text.clone(),
        part("tool_use", "t1", r#"{"path": "a\u0041"}"#),
        part("server_tool_use", "s1", "{}"),
        part("tool_use", "t2", "{}"),
    ]);
    let calls = found.tool_calls();
    let ids: Vec<&str> = calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids, ["t1", "t2"]);
    assert_eq!(calls[0].name, "Read");
    let input: serde_json::Value = serde_json::from_str(&calls[0].input).unwrap();
    assert_eq!(input, json!({"path": "aA"}));
    assert_eq!(reply(&[text]).tool_calls(), []);

    // Each result becomes a child of the entry with its call.
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    let written = session.append_reply(&found).unwrap();
    assert_eq!(written.len(), 4, "an entry for each block");
    for (call, at) in calls.iter().zip([1, 3]).rev() {
        let result = session.append(Draft::tool_result(&call.id, "done"));
        assert_eq!(result.unwrap().parent, written[at].uuid);
    }
    session.close().unwrap();
}

#[test]
fn an_id_is_parsed_as_it_is_written() {
    let uuid = "2f2aef1a-9ba3-4b0e-8f14-a9f1a0dd3d55";
    let upper = uuid.to_uppercase();
    for text in [uuid, &upper, "msg_1", "é"] {
        let id: EntryId = text.parse().unwrap();
        assert_eq!(id, EntryId::from(text));
        assert_eq!(id.to_string(), text);
    }
    assert!(matches!(uuid.parse(), Ok(EntryId::Uuid(_))));
    assert!(matches!(upper.parse(), Ok(EntryId::Odd(_))));
    let said = |text: &str| {
        let error: InvalidEntryId = text.parse::<EntryId>().unwrap_err();
        error.to_string()
    };
    assert!(said("").contains("empty"));
    assert!(said(" msg_1").ends_with("(byte 0)"));
    assert!(said("é\u{a0}x").ends_with("(byte 2)"));
    assert!(said(&format!("{uuid}\n")).ends_with("(byte 36)"));
}
