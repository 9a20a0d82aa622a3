//! Sessions where a reader would stay at an older pin: what is appended is shown all the same.

use std::fs;

use serde_json::{Value, json};
use transcript_engine::{
    Compaction, Draft, EntryId, Keep, OnBusy, Policy, RecordOptions, Session, SessionOptions,
    Trigger,
};

use crate::support::{POLICIES, Place, id, lines, options, path_of};

fn entry(kind: &str, uuid: &str, parent: Option<&str>) -> Value {
    json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
        "sessionId": "s", "timestamp": "2026-11-20T10:00:00.000Z",
        "message": {"role": kind, "content": [{"type": "text", "text": uuid}]}})
}

fn pin(leaf: &str) -> Value {
    json!({"type": "last-prompt", "lastPrompt": "Why?", "leafUuid": leaf, "sessionId": "s"})
}

/// The parent of `u2` is missing. `recover` continues from `a2`; the client stays at the pin, because
/// no link leads from there to it (LEAF-9).
fn gap() -> Vec<Value> {
    vec![
        entry("user", "u1", None),
        entry("assistant", "a1", Some("u1")),
        pin("a1"),
        entry("user", "u2", Some("gone")),
        entry("assistant", "a2", Some("u2")),
    ]
}

/// The answer of the client has no uuid. It ends the conversation for `recover`, whose next entry
/// becomes a child of `u2`; the pin is on another branch for the client.
fn unnamed() -> Vec<Value> {
    let mut answer = entry("assistant", "a3", Some("u2"));
    answer.as_object_mut().unwrap().remove("uuid");
    vec![
        entry("user", "u1", None),
        entry("assistant", "a1", Some("u1")),
        entry("user", "u2", Some("gone")),
        pin("a1"),
        answer,
    ]
}

fn write(place: &Place, lines: &[Value]) -> Vec<u8> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&place.path, &text).unwrap();
    text.into_bytes()
}

fn open(place: &Place) -> Session {
    Session::open(&place.path, &options()).unwrap()
}

/// Returns the pins after the first `len` lines.
fn pins(place: &Place, len: usize) -> Vec<Value> {
    let lines = lines(&place.path).0.split_off(len);
    let pins = lines.into_iter();
    pins.filter(|line| line["type"] == "last-prompt").collect()
}

fn assert_leaf(place: &Place, leaf: &EntryId) {
    for policy in POLICIES {
        let path = path_of(&place.path, policy);
        assert_eq!(path.last(), Some(&leaf.to_string()), "{policy:?}");
    }
}

#[test]
fn every_way_to_append_leads_all_readers_to_the_appended_entries() {
    type Append = fn(&Session) -> EntryId;
    let ways: [Append; 5] = [
        |session| id(&session.append(Draft::user("x")).unwrap()),
        |session| {
            let drafts = [Draft::user("x"), Draft::user("y")];
            id(&session.append_all(drafts).unwrap()[1])
        },
        |session| id(&session.queue(Draft::user("x")).unwrap().wait().unwrap()),
        |session| {
            let recorded = session.record(vec![Draft::user("x")], RecordOptions::new());
            recorded.unwrap().last.unwrap()
        },
        |session| {
            // A title is not an entry of the conversation, and needs no pin.
            session.set_title("Tides").unwrap();
            id(&session.append(Draft::user("x")).unwrap())
        },
    ];
    for file in [gap(), unnamed()] {
        for way in ways {
            let place = Place::new();
            let before = write(&place, &file);
            let session = open(&place);
            let leaf = way(&session);
            assert_leaf(&place, &leaf);
            // The pin is of the kind that gives way, has the last prompt, and is written once.
            let mut expected = pin(&leaf.to_string());
            assert_eq!(
                pins(&place, file.len())[0]["leafUuid"],
                expected["leafUuid"]
            );
            expected["sessionId"] = pins(&place, file.len())[0]["sessionId"].take();
            assert_eq!(pins(&place, file.len()), [expected]);
            let next = id(&session.append(Draft::user("z")).unwrap());
            session.close().unwrap();
            assert_leaf(&place, &next);
            assert_eq!(pins(&place, file.len()).len(), 1);
            assert!(fs::read(&place.path).unwrap().starts_with(&before));
            // Opened again, nothing is left to say.
            let session = open(&place);
            let last = id(&session.append(Draft::user("z")).unwrap());
            session.close().unwrap();
            assert_leaf(&place, &last);
            assert_eq!(pins(&place, file.len()).len(), 1);
        }
    }
}

#[test]
fn a_session_that_the_client_continues_anyhow_gets_no_pin() {
    let plain = |last: &[Value]| {
        let start = [
            entry("user", "u1", None),
            entry("assistant", "a1", Some("u1")),
        ];
        [&start, last].concat()
    };
    let files = [
        plain(&[]),
        plain(&[pin("a1")]),
        plain(&[pin("u1")]),
        plain(&[pin("gone")]),
        // A rewind: the pin is the leaf.
        plain(&[
            entry("user", "u2", Some("a1")),
            entry("assistant", "a2", Some("u2")),
            pin("a1"),
        ]),
        // The gap is below the pin, and nothing is after it.
        [gap(), vec![pin("a2")]].concat(),
        // A boundary clears the pin.
        [
            gap(),
            vec![
                json!({"type": "system", "subtype": "compact_boundary", "uuid": "b1",
                "parentUuid": null, "logicalParentUuid": "a2", "sessionId": "s",
                "compactMetadata": {"trigger": "auto", "preTokens": 1}}),
                entry("user", "s1", Some("b1")),
            ],
        ]
        .concat(),
    ];
    for (number, file) in files.iter().enumerate() {
        let place = Place::new();
        write(&place, file);
        let session = open(&place);
        let leaf = id(&session.append(Draft::user("x")).unwrap());
        session.close().unwrap();
        assert_leaf(&place, &leaf);
        assert_eq!(pins(&place, file.len()), [Value::Null; 0], "{number}");
    }
}

#[test]
fn line_that_names_the_leaf_itself_needs_no_pin() {
    type Change = fn(&Session);
    let changes: [(Change, usize); 3] = [
        (
            |session| {
                session.rewind(Some("a1".parse().unwrap())).unwrap();
            },
            1,
        ),
        (
            |session| {
                session.end_turn(transcript_engine::TurnEnd::new()).unwrap();
            },
            1,
        ),
        // The pin is cleared before the boundary.
        (
            |session| {
                let compaction = Compaction::new(Trigger::Manual, 1);
                session.compact(compaction, "Tides", Keep::Nothing).unwrap();
            },
            1,
        ),
    ];
    for (change, count) in changes {
        let place = Place::new();
        write(&place, &gap());
        let session = open(&place);
        change(&session);
        let leaf = id(&session.append(Draft::user("x")).unwrap());
        session.close().unwrap();
        assert_leaf(&place, &leaf);
        assert_eq!(pins(&place, gap().len()).len(), count);
    }
}

#[test]
fn a_resume_and_policy_vendor_lead_all_readers_on_as_well() {
    let mut place = Place::new();
    write(&place, &gap());
    let resumed = Session::resume(&place.path, &options()).unwrap();
    let leaf = id(&resumed.session.append(Draft::user("x")).unwrap());
    resumed.session.close().unwrap();
    assert_leaf(&place, &leaf);

    // Under `vendor` the session continues below the old pin, where `recover` would not.
    place.renew();
    write(&place, &gap());
    let vendor = SessionOptions::new().policy(Policy::Vendor);
    let session = Session::open(&place.path, &vendor).unwrap();
    let written = session.append(Draft::user("x")).unwrap();
    assert_eq!(written.parent, Some("a1".parse().unwrap()));
    session.close().unwrap();
    assert_leaf(&place, &id(&written));
}

#[test]
fn entry_after_the_pin_of_another_process_is_shown() {
    let place = Place::new();
    write(
        &place,
        &[
            entry("user", "u1", None),
            entry("assistant", "a1", Some("u1")),
        ],
    );
    let shared = options().on_busy(OnBusy::Share);
    let [first, second] = [(); 2].map(|()| Session::open(&place.path, &shared).unwrap());
    let leaf = id(&first.append(Draft::user("x")).unwrap());
    assert_leaf(&place, &leaf);
    second.rewind(Some("u1".parse().unwrap())).unwrap();
    for _ in 0..2 {
        let leaf = id(&first.append(Draft::user("y")).unwrap());
        assert_leaf(&place, &leaf);
        assert_eq!(pins(&place, 2).len(), 2, "one of each process");
    }
    let leaf = id(&second.append(Draft::user("z")).unwrap());
    assert_leaf(&place, &leaf);
    let leaf = id(&first.append(Draft::user("y")).unwrap());
    assert_leaf(&place, &leaf);
}

#[test]
fn a_write_that_was_cut_at_any_byte_loses_nothing_and_the_next_one_is_shown() {
    let mut place = Place::new();
    let before = write(&place, &gap());
    let session = open(&place);
    let drafts = [Draft::user("x"), Draft::user("y")];
    let written = session.append_all(drafts).unwrap();
    session.close().unwrap();
    let whole = fs::read(&place.path).unwrap();
    let end_of = |at: usize| (written[at].offset + written[at].len) as usize;
    for len in before.len()..=whole.len() {
        place.renew();
        fs::write(&place.path, &whole[..len]).unwrap();
        let session = open(&place);
        let leaf = id(&session.append(Draft::user("z")).unwrap());
        session.close().unwrap();
        assert_leaf(&place, &leaf);
        let path = path_of(&place.path, Policy::Vendor);
        for at in [0, 1] {
            let is_shown = path.contains(&id(&written[at]).to_string());
            assert_eq!(is_shown, len >= end_of(at), "{len}");
        }
    }
}
