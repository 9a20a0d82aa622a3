//! The requests of an open session: those of a load of its file, whatever happened before.

use std::fs::OpenOptions;
use std::io::Write;

use serde_json::json;
use transcript_engine::{
    Compaction, Draft, History, Keep, Policy, Provider, Session, SessionOptions, Trigger, make,
};
use transcript_format::object::Raw;
use transcript_reader::Bodies;
use transcript_resume::request::{Request, RequestOptions};
use transcript_testkit::rng::Rng;

use crate::support::{Place, answer, answer_text, call, create, messages, options, result, say};

/// Returns the request that a load of the file gives.
fn loaded(session: &Session) -> Request {
    let history = History::open(session.path()).unwrap();
    let tree = history.tree(Policy::Recover);
    RequestOptions::new()
        .live()
        .request(&tree, &mut Bodies::new(history.source()))
        .unwrap()
}

#[track_caller]
fn assert_current(session: &Session, what: &str) {
    let (found, wanted) = (session.request().unwrap(), loaded(session));
    assert_eq!(messages(&found), messages(&wanted), "{what}");
    assert_eq!(found.path.entries, wanted.path.entries, "{what}");
    assert_eq!(found.model, wanted.model, "{what}");
    let mut omitted = (found.omissions, wanted.omissions);
    omitted.0.sort_by_key(|one| (one.origin, one.reason.name()));
    omitted.1.sort_by_key(|one| (one.origin, one.reason.name()));
    assert_eq!(omitted.0, omitted.1, "{what}");
}

/// Appends bytes to the file behind the back of the session, as another program would.
fn write_as_other(session: &Session, bytes: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .open(session.path())
        .unwrap();
    file.write_all(bytes.as_bytes()).unwrap();
}

#[test]
fn whatever_is_appended_the_request_is_that_of_a_load() {
    let mut place = Place::new();
    for seed in 0..12 {
        place.renew();
        let session = create(&place.path);
        let mut rng = Rng::new(seed);
        let mut said = vec![say(&session, "start")];
        for step in 0..60 {
            let what = match rng.below(12) {
                0 => {
                    let to = said[rng.below(said.len())].clone();
                    // Fails for an entry before a compaction.
                    _ = session.rewind(Some(to));
                    "rewind"
                }
                1 if step % 5 == 0 => {
                    let compaction = Compaction::new(Trigger::Auto, 1_000);
                    let keep = Keep::LastTurns(rng.below(3));
                    session.compact(compaction, "So far.", keep).unwrap();
                    "compact"
                }
                2 => {
                    let entry = said.swap_remove(rng.below(said.len()));
                    _ = session.tombstone(&entry);
                    said.push(say(&session, "after a tombstone"));
                    "tombstone"
                }
                3 => {
                    write_as_other(&session, "{\"type\":\"mode\",\"mode\":\"normal\"}\n");
                    "a line of another program"
                }
                4 => {
                    session.set_title("Tides").unwrap();
                    "title"
                }
                5..=7 => {
                    said.push(say(&session, &format!("prompt {step}")));
                    "prompt"
                }
                8 => {
                    let thought = match rng.below(4) {
                        0 => {
                            json!({"type": "thinking", "thinking": "", "signature": format!("s{step}")})
                        }
                        _ => {
                            json!({"type": "thinking", "thinking": "Hm.", "signature": format!("s{step}")})
                        }
                    };
                    let text = json!({"type": "text", "text": "Yes. "});
                    answer(&session, &format!("m{step}"), &json!([thought, text]));
                    "answer"
                }
                9 => {
                    answer_text(&session, &format!("t{step}"));
                    "answer"
                }
                _ => {
                    let ids: Vec<String> = (0..=rng.below(3))
                        .map(|at| format!("c{step}-{at}"))
                        .collect();
                    let calls: Vec<_> = ids.iter().map(|id| call(id)).collect();
                    answer(&session, &format!("m{step}"), &json!(calls));
                    if rng.below(3) == 0 {
                        assert_current(&session, "open calls");
                    }
                    for id in &ids[usize::from(rng.below(5) == 0)..] {
                        result(&session, id);
                    }
                    "calls"
                }
            };
            if rng.below(4) > 0 {
                assert_current(&session, &format!("seed {seed}, step {step}, {what}"));
            }
        }
        session.close().unwrap();
    }
}

#[test]
fn a_request_follows_a_file_that_was_replaced_or_has_an_unfinished_line() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    answer_text(&session, "y");
    assert_current(&session, "two entries");
    let line =
        r#"{"type":"user","uuid":"u9","parentUuid":null,"message":{"role":"user","content":"z"}}"#;
    write_as_other(&session, &line[..40]);
    assert_current(&session, "the start of a line");
    write_as_other(&session, &line[40..]);
    assert_current(&session, "a line without a newline");
    write_as_other(&session, "\n");
    assert_current(&session, "a line");
    // Another program replaces the file by a shorter one.
    let other = place.path.with_extension("new");
    std::fs::write(&other, format!("{line}\n")).unwrap();
    std::fs::rename(&other, &place.path).unwrap();
    assert_current(&session, "another file");
    let bytes = std::fs::read(&place.path).unwrap();
    std::fs::write(&place.path, &bytes[..0]).unwrap();
    assert_eq!(
        session.request().unwrap().messages.len(),
        loaded(&session).messages.len()
    );
}

#[test]
fn a_request_has_what_another_process_rewrote_in_place() {
    use std::io::{Seek, SeekFrom, Write};
    let place = Place::new();
    let session = create(&place.path);
    for number in 0..40 {
        say(&session, &format!("question {number:02}"));
        answer_text(&session, "y");
    }
    assert_current(&session, "before");
    let whole = std::fs::read_to_string(&place.path).unwrap();
    for (number, more) in [(20, ""), (21, "\n"), (0, ""), (39, "\n")] {
        let at = whole.find(&format!("question {number:02}")).unwrap() as u64;
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .open(&place.path)
            .unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(b"redacted").unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(more.as_bytes()).unwrap();
        assert_current(&session, &format!("question {number} was rewritten"));
        let messages = session.request().unwrap().messages;
        let text = format!("{messages:?}");
        assert!(!text.contains(&format!("question {number:02}")), "{text}");
    }
}

/// Appends a result that refers to two tools, and the answer after it.
fn search_tools(session: &Session, number: usize) {
    let id = format!("toolu_{number}");
    say(session, &format!("Find tools {number}"));
    answer(session, &format!("m{number}"), &json!([call(&id)]));
    let references = ["WebFetch", "Abacus"]
        .map(|name| json!({"type": "tool_reference", "tool_name": name}).to_string());
    let references = references.each_ref().map(|text| Raw::parse(text).unwrap());
    let result = make::tool_result(make::ToolResult::blocks(&id, &references));
    session.append(Draft::try_from(result).unwrap()).unwrap();
    answer_text(session, &format!("Found {number}"));
}

#[test]
fn references_to_tools_that_are_not_named_are_not_sent() {
    let mut place = Place::new();
    for policy in [Policy::Recover, Policy::Vendor] {
        place.renew();
        let session = create(&place.path);
        search_tools(&session, 0);
        session.close().unwrap();
        let referred = |request: &Request| {
            let sent = messages(request).concat();
            ["WebFetch", "Abacus", "references removed"].map(|name| sent.contains(name))
        };
        let all = SessionOptions::new().policy(policy);
        let history = History::open(&place.path).unwrap();
        let is_kept = policy == Policy::Recover;
        // Under `vendor` the client's own tools are known, and Abacus is none.
        let sent = referred(&history.request(&all).unwrap());
        assert_eq!(sent, [true, is_kept, false], "{policy:?}");
        for (tools, expected) in [
            (&["WebFetch", "Abacus"][..], [true, true, false]),
            (&["Abacus"], [false, true, false]),
            (&["Read"], [false, false, true]),
            (&[], [false, false, true]),
        ] {
            let options = all.clone().tools(tools.iter().copied());
            let sent = referred(&history.request(&options).unwrap());
            assert_eq!(sent, expected, "{policy:?}: {tools:?}");
            let resumed = Session::resume(&place.path, &options).unwrap();
            assert_eq!(
                referred(&resumed.request),
                expected,
                "{policy:?}: {tools:?}"
            );
            // Also in the requests of the open session, for what is appended to it.
            let session = resumed.session;
            for number in 1..4 {
                search_tools(&session, number);
                let sent = referred(&session.request().unwrap());
                assert_eq!(sent, expected, "{policy:?}: {tools:?} after {number}");
            }
            session.close().unwrap();
            place.renew();
            let session = create(&place.path);
            search_tools(&session, 0);
            session.close().unwrap();
        }
    }
}

#[test]
fn a_request_for_another_model_is_that_of_a_load() {
    let place = Place::new();
    let session = create(&place.path);
    for turn in 0..6 {
        say(&session, &format!("prompt {turn}"));
        let thought =
            json!({"type": "thinking", "thinking": "Hm.", "signature": format!("s{turn}")});
        answer(
            &session,
            &format!("m{turn}"),
            &json!([thought, {"type": "text", "text": "Yes."}]),
        );
        assert_current(&session, &format!("turn {turn}"));
    }
    let line = r#"{"type":"assistant","uuid":"a9","parentUuid":PARENT,"message":{"id":"m9","role":"assistant","model":"other","content":[{"type":"text","text":"No."}]}}"#;
    let leaf = session.leaf().unwrap();
    write_as_other(
        &session,
        &(line.replace("PARENT", &format!("\"{leaf}\"")) + "\n"),
    );
    assert_current(&session, "the thoughts of the other model are not sent");
    session.close().unwrap();
    let options = options().model("third");
    let session = Session::open(&place.path, &options).unwrap();
    let sent = messages(&session.request().unwrap());
    assert!(
        sent.iter().all(|message| !message.contains("thinking")),
        "{sent:?}"
    );
}

#[test]
fn the_requests_of_a_session_are_for_its_provider() {
    let place = Place::new();
    let session = create(&place.path);
    let renamed = format!("call.{}", "x".repeat(60));
    for (turn, id) in ["t0", "t1", &*renamed, "t3"].into_iter().enumerate() {
        say(&session, &format!("Prompt {turn}."));
        let call = json!({"type": "tool_use", "id": id, "name": "mcp__a.b", "input": {}});
        answer(&session, &format!("msg_{turn}"), &json!([call]));
        result(&session, id);
        answer_text(&session, &format!("Done {turn}."));
    }
    session.close().unwrap();
    let history = History::open(&place.path).unwrap();
    for provider in Provider::ALL {
        let options = options().provider(provider);
        let session = Session::open(&place.path, &options).unwrap();
        let (live, read) = (
            session.request().unwrap(),
            history.request(&options).unwrap(),
        );
        assert_eq!(messages(&live), messages(&read));
        assert_eq!((live.provider, read.provider), (provider, provider));
        assert!(live.lint().is_ok() && read.lint().is_ok());
        let text = messages(&live).concat();
        assert_eq!(text.contains("mcp__a_b"), provider == Provider::Converse);
        assert_eq!(text.contains("mcp__a.b"), provider != Provider::Converse);
        assert!(text.contains("recovered_call_1") && !text.contains(&renamed));
        session.close().unwrap();
    }
}
