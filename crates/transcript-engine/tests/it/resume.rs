//! Sessions that stopped at any point, and how they continue.

use std::fs;

use serde_json::json;
use transcript_engine::{Policy, Request, Session, SessionOptions};
use transcript_messages::SyntheticKind;
use transcript_testkit::damage;
use transcript_testkit::generate;

use crate::support::{
    POLICIES, Place, answer, answer_text, assert_unhurt, call, create, lines, messages, options,
    path_of, result, say,
};

fn kinds(resumed: &transcript_engine::Resumed) -> Vec<SyntheticKind> {
    resumed
        .request
        .synthetic
        .iter()
        .map(|persisted_drafts| persisted_drafts.kind)
        .collect()
}

#[test]
fn a_file_that_is_not_a_transcript_is_refused_and_not_changed() {
    let place = Place::new();
    for text in [
        "first line\nlast line without a newline",
        "{\n  \"pretty\": true\n}",
        "a,b\n1,2",
        "[1,2]",
    ] {
        fs::write(&place.path, text).unwrap();
        for opened in [
            Session::open(&place.path, &options()).map(drop),
            Session::open_or_create(&place.path, &options()).map(drop),
            Session::resume(&place.path, &options()).map(drop),
        ] {
            let refused = opened.unwrap_err().to_string();
            assert!(
                refused.contains("without an entry of a session"),
                "{refused}"
            );
        }
        assert_eq!(fs::read_to_string(&place.path).unwrap(), text);
        assert_eq!(
            fs::read_dir(place.path.parent().unwrap()).unwrap().count(),
            1
        );
    }
    // The first append may have been torn, or a power cut left NULs.
    for text in ["{", "{\"type\":\"us", "\0\0\0\0", "\n"] {
        fs::write(&place.path, text).unwrap();
        let session = Session::open(&place.path, &options()).unwrap();
        say(&session, "x");
        session.close().unwrap();
    }
}

#[test]
fn interrupted_calls_get_results_that_are_in_the_file() {
    let mut place = Place::new();
    for policy in POLICIES {
        place.renew();
        let session = create(&place.path);
        say(&session, "x");
        answer(&session, "m1", &json!([call("t1"), call("t2"), call("t3")]));
        result(&session, "t2");
        session.close().unwrap();
        let options = options().policy(policy);
        let resumed = Session::resume(&place.path, &options).unwrap();
        assert_eq!(
            kinds(&resumed),
            [SyntheticKind::InterruptedResult; 2][..]
                .to_vec()
                .into_iter()
                .chain([SyntheticKind::NoResponse])
                .collect::<Vec<_>>()
        );
        assert_eq!(resumed.added.len(), 3);
        let before = messages(&resumed.request);
        resumed.session.close().unwrap();
        assert_unhurt(&place.path);

        // Synthetic entries are added once.
        let again = Session::resume(&place.path, &options).unwrap();
        assert_eq!(again.added, []);
        assert_eq!(messages(&again.request), before, "{policy:?}");
        say(&again.session, "z");
        let live = messages(&again.session.request().unwrap());
        assert_eq!(live[..before.len()], before);
        assert_eq!(live.len(), before.len() + 1);
    }
}

#[test]
fn a_prompt_without_an_answer_is_ended_as_the_client_does() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    answer_text(&session, "y");
    say(&session, "z");
    session.close().unwrap();
    let resumed = Session::resume(&place.path, &options()).unwrap();
    assert_eq!(kinds(&resumed), [SyntheticKind::NoResponse]);
    let line = lines(&place.path).0.pop().unwrap();
    assert_eq!(line["message"]["model"], "<synthetic>");
    assert_eq!(line["message"]["stop_reason"], "stop_sequence");
    assert_eq!(
        line["uuid"],
        resumed.added[0].uuid.as_ref().unwrap().to_string()
    );
    assert_eq!(resumed.session.leaf(), resumed.added[0].uuid);
    assert_unhurt(&place.path);
}

#[test]
fn the_request_of_a_live_session_leaves_its_turn_open() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    let live = session.request().unwrap();
    assert_eq!(messages(&live), [r#"{"role":"user","content":"x"}"#]);
    assert_eq!(live.synthetic, []);
}

#[test]
fn a_thought_without_a_text_goes_back_with_the_call_that_it_led_to() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "What is in the file?");
    let thought = json!({"type": "thinking", "thinking": "", "signature": "c2lnbmVk"});
    let sealed = json!({"type": "redacted_thinking", "data": "c2VhbGVk"});
    let blocks = json!([thought, sealed, call("toolu_1")]);
    answer(&session, "msg_1", &blocks);
    result(&session, "toolu_1");
    let request = session.request().unwrap();
    let sent: serde_json::Value = serde_json::from_str(&messages(&request)[1]).unwrap();
    assert_eq!(sent["content"], blocks);
    assert_eq!(request.omissions, []);
}

#[test]
fn an_entry_that_is_only_on_a_damaged_line_is_written_again_and_every_client_finds_it() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    answer_text(&session, "y");
    session.close().unwrap();
    let bytes = fs::read(&place.path).unwrap();
    let last = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    // An older tool died in the middle of a line, and the next one appended to that line.
    let glued = [&bytes[..last], b"{\"type\":\"assis", &bytes[last..]].concat();
    fs::write(&place.path, &glued).unwrap();
    assert_eq!(path_of(&place.path, Policy::Vendor).len(), 1);
    assert_eq!(path_of(&place.path, Policy::Recover).len(), 2);
    let lost = path_of(&place.path, Policy::Recover).pop();

    let resumed = Session::resume(&place.path, &options()).unwrap();
    let restored = resumed.session.restored();
    assert_eq!(restored.len(), 1);
    assert_eq!(restored[0].uuid.as_ref().map(ToString::to_string), lost);
    say(&resumed.session, "z");
    resumed.session.close().unwrap();
    assert!(fs::read(&place.path).unwrap().starts_with(&glued));
    let [vendor, recover] = POLICIES.map(|policy| path_of(&place.path, policy));
    assert_eq!(vendor, recover);
    assert_eq!(vendor.len(), 3);

    let again = Session::resume(&place.path, &options()).unwrap();
    assert_eq!(again.session.restored(), []);
    drop(again);
    // Policy `vendor` salvages nothing.
    fs::write(&place.path, &glued).unwrap();
    let vendor = SessionOptions::new().policy(Policy::Vendor);
    assert_eq!(Session::open(&place.path, &vendor).unwrap().restored(), []);
}

#[test]
fn a_start_that_is_damaged_and_has_lost_its_parent_is_gone_on_from() {
    let place = Place::new();
    let line = |uuid: &str, parent: &str, role: &str| {
        format!(
            r#"{{"type":"{role}","uuid":"{uuid}","parentUuid":"{parent}","isSidechain":false,"timestamp":"2026-11-01T10:00:00.000Z","message":{{"role":"{role}","content":[{{"type":"text","text":"{uuid}"}}]}}}}"#
        )
    };
    let (first, second) = (line("u1", "lost", "user"), line("a1", "u1", "assistant"));
    fs::write(&place.path, format!("{{\"type\":\"us{first}\n{second}\n")).unwrap();
    let resumed = Session::resume(&place.path, &options()).unwrap();
    assert_eq!(messages(&resumed.request).len(), 2);
    let next = say(&resumed.session, "z").to_string();
    let path = path_of(&place.path, Policy::Recover);
    assert_eq!(path, ["u1", "a1", &next]);
}

#[test]
fn torn_entry_is_not_a_parent() {
    let mut place = Place::new();
    let session = create(&place.path);
    let whole = say(&session, "x");
    answer_text(&session, "y");
    session.close().unwrap();
    let bytes = fs::read(&place.path).unwrap();
    let start = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for cut in start + 1..bytes.len() - 1 {
        place.renew();
        fs::write(&place.path, &bytes[..cut]).unwrap();
        let resumed = Session::resume(&place.path, &options()).unwrap();
        assert!(resumed.session.repair().is_some(), "{cut}");
        assert_eq!(
            lines(&place.path).0[1]["parentUuid"],
            whole.to_string(),
            "{cut}"
        );
        resumed.session.close().unwrap();
        assert_unhurt(&place.path);
    }
}

/// Returns the blocks of a request without the line feeds that joining texts adds, and results
/// without reminders: which result takes a reminder depends on the entries after it (NOTE-3).
fn blocks(request: &Request) -> Vec<String> {
    let blocks = request.messages.iter().flat_map(|message| message.blocks());
    let texts = blocks.map(|block| {
        let text = block.text_field().map(|text| text.trim_end().to_owned());
        text.unwrap_or_else(|| {
            let json = block.json();
            let own = json
                .find("\\n\\n<system-reminder>")
                .map_or(json, |end| &json[..end]);
            own.to_owned()
        })
    });
    texts.collect()
}

/// After resuming, a client gets the same messages as before, followed by its own entries.
#[test]
fn going_on_from_a_damaged_session_loses_nothing_of_the_resumed_request() {
    let mut place = Place::new();
    let (mut resumed_count, mut restored) = (0, 0);
    for seed in 0..150 {
        place.renew();
        let bytes = generate::session(seed);
        let (hurt, kinds) = damage::damage(&bytes, seed);
        fs::write(&place.path, &hurt).unwrap();
        let Ok(resumed) = Session::resume(&place.path, &options()) else {
            continue;
        };
        let before = blocks(&resumed.request);
        let last = resumed.request.path.entries.last().unwrap();
        let last = resumed.history.index().entry(last.entry_no());
        if last.uuid().is_none() || last.is_boundary() {
            // In the one file no entry can be a parent; in the other a child starts a new
            // conversation.
            continue;
        }
        restored += resumed.session.restored().len();
        say(&resumed.session, "A new question");
        answer_text(&resumed.session, "A new answer");
        let path = resumed.session.path().to_owned();
        resumed.session.close().unwrap();
        // Thinking is only sent to the model that produced it.
        let model = resumed.request.model.clone().unwrap_or_default();
        let after = Session::resume(&path, &options().model(model)).unwrap();
        let mut after = blocks(&after.request);
        // A text synthesized for a lost start is not needed when the history starts elsewhere.
        let before = before
            .into_iter()
            .filter(|block| block != transcript_resume::texts::START_MISSING);
        for block in before {
            let place = after.iter().position(|there| *there == block);
            let place = place.unwrap_or_else(|| panic!("seed {seed}: {kinds:?}: lost {block}"));
            after.remove(place);
        }
        let end = after.concat();
        assert!(
            end.contains("A new question") && end.contains("A new answer"),
            "seed {seed}"
        );
        resumed_count += 1;
    }
    assert!(
        resumed_count > 100 && restored > 0,
        "{resumed_count} {restored}"
    );
}
