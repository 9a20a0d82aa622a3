//! Calls and their results: calls that were cut or are still running, and entries that are refused.

use serde_json::{Value, json};
use transcript_engine::stream::{Accumulator, Reply, StreamOutcome};
use transcript_engine::{
    BlockKind, Draft, ErrorKind, Message, Policy, Request, Session, SessionOptions, Written, make,
    wire,
};
use transcript_resume::texts;
use transcript_writer::ErrorKind as WriteError;

use crate::support::{Place, create, lines, say};

/// Returns what arrived of a reply with two calls, of which the second is cut.
fn cut_reply() -> Reply {
    let mut message = Accumulator::new();
    let mut event = |event: Value| _ = message.event(&event.to_string());
    let start =
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []});
    event(json!({"type": "message_start", "message": start}));
    for (at, input) in [r#"{"path":"/home/ada/x"}"#, r#"{"path":"/home/a"#]
        .iter()
        .enumerate()
    {
        let block =
            json!({"type": "tool_use", "id": format!("t{at}"), "name": "Delete", "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": input});
        event(json!({"type": "content_block_start", "index": at, "content_block": block}));
        event(json!({"type": "content_block_delta", "index": at, "delta": delta}));
        if at == 0 {
            event(json!({"type": "content_block_stop", "index": at}));
        }
    }
    match message.finish() {
        StreamOutcome::Partial(reply, _) => reply,
        other => panic!("{other:?}"),
    }
}

/// Returns the text of the result of a call, and whether an entry has it.
fn result_of(request: &Request, call: &str) -> (String, bool) {
    let blocks = request.messages.iter().flat_map(Message::blocks);
    let mut results = blocks
        .filter(|block| block.kind() == BlockKind::ToolResult && block.call_id() == Some(call));
    let result = results.next().unwrap();
    assert!(results.next().is_none());
    let json: Value = serde_json::from_str(result.json()).unwrap();
    (
        json["content"].as_str().unwrap().to_owned(),
        result.origin().is_some(),
    )
}

fn append(session: &Session, entry: &Value) -> Result<Written, transcript_engine::Error> {
    session.append(Draft::entry(&entry.to_string()).unwrap())
}

fn result(call: &str) -> Draft {
    Draft::tool_result(call, "done")
}

/// Appends an answer with this call.
fn call(session: &Session, id: &str) -> Written {
    let block = json!({"type": "tool_use", "id": id, "name": "Read", "input": {}});
    let message =
        json!({"id": format!("msg_{id}"), "role": "assistant", "model": "m", "content": [block]});
    let drafts = Draft::assistant(&message.to_string()).unwrap();
    session.append_all(drafts).unwrap().remove(0)
}

fn refusal(result: Result<Written, transcript_engine::Error>) -> WriteError {
    match result.unwrap_err().kind() {
        ErrorKind::Write(kind) => kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_whose_input_was_cut_is_marked_and_the_model_reads_that_it_did_not_run() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "Clean up.");
    let reply = cut_reply();
    assert_eq!(reply.tool_calls(), []);
    session.append_reply(&reply).unwrap();
    let (written, _) = lines(&place.path);
    let marks = |line: &Value| {
        let cut = &line["transcriptEngine"]["callInput"];
        (line["isAbortedMidStream"] == true, *cut == "cut")
    };
    let marks: Vec<_> = written.iter().map(marks).collect();
    assert_eq!(marks, [(false, false), (true, false), (true, true)]);

    // In the open session, after a resume, and when the conversation went on.
    let request = session.request().unwrap();
    assert_eq!(
        result_of(&request, "t0"),
        (texts::CALL_PENDING.into(), false)
    );
    assert_eq!(result_of(&request, "t1"), (texts::CALL_CUT.into(), false));
    let copy = place
        .path
        .with_file_name("0b932c9f-9928-4cec-9e82-22c1703d5f54.jsonl");
    std::fs::copy(&place.path, &copy).unwrap();
    let resumed = Session::resume(&copy, &SessionOptions::new()).unwrap();
    assert_eq!(result_of(&resumed.request, "t0").0, texts::CALL_INTERRUPTED);
    assert_eq!(result_of(&resumed.request, "t1").0, texts::CALL_CUT);
    assert_eq!(resumed.added.len(), 3, "two results and an answer");
    let kept = resumed.session.request().unwrap();
    assert_eq!(result_of(&kept, "t1"), (texts::CALL_CUT.into(), true));
    resumed.session.close().unwrap();

    say(&session, "Well?");
    let request = session.request().unwrap();
    assert_eq!(result_of(&request, "t1"), (texts::CALL_CUT.into(), false));
    let fork = session
        .fork(&transcript_engine::ForkOptions::new())
        .unwrap();
    let (forked, _) = lines(&fork);
    let text = serde_json::to_string(&forked).unwrap();
    assert!(text.contains(texts::CALL_CUT), "{text}");

    // The request under policy `vendor` does not change.
    let history = transcript_engine::History::open(&place.path).unwrap();
    let vendor = history
        .request(&SessionOptions::new().policy(Policy::Vendor))
        .unwrap();
    let sent: String = vendor
        .messages
        .iter()
        .map(|message| message.json())
        .collect();
    assert!(!sent.contains(texts::CALL_CUT));
    session.close().unwrap();
}

#[test]
fn a_call_that_runs_in_an_open_session_is_pending_and_after_a_load_interrupted() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "Read it.");
    let asked = call(&session, "t1");
    let request = session.request().unwrap();
    assert_eq!(
        result_of(&request, "t1"),
        (texts::CALL_PENDING.into(), false)
    );
    let history = transcript_engine::History::open(&place.path).unwrap();
    for policy in [Policy::Recover, Policy::Vendor] {
        let request = history
            .request(&SessionOptions::new().policy(policy))
            .unwrap();
        assert_eq!(result_of(&request, "t1").0, texts::CALL_INTERRUPTED);
    }

    let report = session.request_with(|request, index| {
        serde_json::to_value(wire::RequestDiagnostics::new(index, &request)).unwrap()
    });
    let report = report.unwrap();
    assert_eq!(report["synthetic"][0]["kind"], "pending-result");
    assert_eq!(report["synthetic"][0]["persist"], false);
    let asked = asked.uuid.unwrap().to_string();
    assert_eq!(report["synthetic"][0]["uuid"], asked);
    assert_eq!(report["omitted"], json!([]));

    session.append(result("t1")).unwrap();
    let request = session.request().unwrap();
    assert_eq!(result_of(&request, "t1"), ("done".into(), true));
    assert!(request.synthetic.is_empty());
    session.close().unwrap();
}

#[test]
fn a_result_that_no_open_call_of_the_conversation_has_is_refused_by_its_cause() {
    let place = Place::new();
    let session = create(&place.path);
    assert_eq!(
        refusal(session.append(result("t1"))),
        WriteError::UnknownCall
    );
    let prompt = say(&session, "Read it.");
    let asked = call(&session, "t1");
    assert_eq!(
        refusal(session.append(result("t_wrong"))),
        WriteError::UnknownCall
    );
    let queued = session
        .queue(result("t_wrong"))
        .map(drop)
        .unwrap_err()
        .kind();
    assert_eq!(queued, ErrorKind::Write(WriteError::UnknownCall));
    session.append(result("t1")).unwrap();
    let before = std::fs::read(&place.path).unwrap();
    assert_eq!(
        refusal(session.append(result("t1"))),
        WriteError::AnsweredCall
    );
    let twice = session.append_all([result("t1")]).unwrap_err();
    assert!(
        twice.to_string().contains("has a result already"),
        "{twice}"
    );
    assert_eq!(std::fs::read(&place.path).unwrap(), before);

    // A rewind to the call keeps its result, which the request has.
    session.rewind(asked.uuid).unwrap();
    let request = session.request().unwrap();
    assert_eq!(result_of(&request, "t1"), ("done".into(), true));
    assert_eq!(
        refusal(session.append(result("t1"))),
        WriteError::AnsweredCall
    );
    // And after a rewind to before the call it is not in the conversation.
    session.rewind(Some(prompt)).unwrap();
    assert_eq!(
        refusal(session.append(result("t1"))),
        WriteError::UnknownCall
    );
    call(&session, "t2");
    session.close().unwrap();

    // Calls from before the session was opened count, and a batch has its own calls.
    let session = Session::open(&place.path, &SessionOptions::new()).unwrap();
    assert_eq!(
        refusal(session.append(result("t1"))),
        WriteError::UnknownCall
    );
    session.append(result("t2")).unwrap();
    assert_eq!(
        refusal(session.append(result("t2"))),
        WriteError::AnsweredCall
    );
    let block = json!({"type": "tool_use", "id": "t3", "name": "Read", "input": {}});
    let message = json!({"id": "m3", "role": "assistant", "model": "m", "content": [block]});
    let mut both = Draft::assistant(&message.to_string()).unwrap();
    both.push(result("t3"));
    session.append_all(both).unwrap();
    let twice = {
        let block = json!({"type": "tool_use", "id": "t4", "name": "Read", "input": {}});
        let message = json!({"id": "m4", "role": "assistant", "model": "m", "content": [block]});
        let mut drafts = Draft::assistant(&message.to_string()).unwrap();
        drafts.extend([result("t4"), result("t4")]);
        session.append_all(drafts).unwrap_err()
    };
    assert_eq!(twice.kind(), ErrorKind::Write(WriteError::AnsweredCall));
    session.close().unwrap();
}

#[test]
fn results_that_arrive_at_once_for_one_call_are_one() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "Read it.");
    call(&session, "t1");
    let accepted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| session.append(result("t1")).is_ok()))
            .collect();
        let accepted = threads.into_iter().map(|thread| thread.join().unwrap());
        accepted.filter(|accepted| *accepted).count()
    });
    assert_eq!(accepted, 1);
    assert_eq!(lines(&place.path).0.len(), 3);
    session.close().unwrap();
}

#[test]
fn an_entry_that_no_reader_would_find_in_the_conversation_is_refused_by_its_cause() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    let before = std::fs::read(&place.path).unwrap();
    let message = json!({"role": "user", "content": "x"});
    let cases = [
        (json!({"type": "user"}), "message"),
        (
            json!({"type": "assistant", "message": "x"}),
            "not an object",
        ),
        (
            json!({"type": "user", "message": {"role": "user"}}),
            "`content`",
        ),
        (
            json!({"type": "user", "message": {"role": "user", "content": 3}}),
            "neither",
        ),
        (
            json!({"type": "user", "message": {"role": "user", "content": ["x"]}}),
            "block",
        ),
        (
            json!({"type": "user", "message": {"role": "user", "content": [{"text": "x"}]}}),
            "block",
        ),
        (json!({"type": "assistant", "message": message}), "role"),
        (json!({"type": "usr", "message": message}), "unknown"),
        (json!({"type": "usr", "content": 3}), "unknown"),
    ];
    for (entry, cause) in cases {
        let error = append(&session, &entry).unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::Write(WriteError::InvalidEntry),
            "{entry}"
        );
        assert!(error.to_string().contains(cause), "{entry}: {error}");
    }
    assert_eq!(std::fs::read(&place.path).unwrap(), before);
    // Lines of other programs that are not messages, and what a client wrote, are not refused.
    append(&session, &json!({"type": "my-agent-state", "step": 7})).unwrap();
    session.append(make::ai_title("Leap days")).unwrap();
    append(&session, &json!({"type": "user", "message": message})).unwrap();
    session
        .append(Draft::copy(r#"{"type":"usr","message":{}}"#).unwrap())
        .unwrap();
    session.close().unwrap();
}
