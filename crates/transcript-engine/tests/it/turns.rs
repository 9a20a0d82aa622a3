//! Compactions, rewinds, tombstones, forks and subagents of open sessions.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use transcript_engine::{
    AgentId, AgentMeta, AsyncSession, Compaction, Draft, EntryId, ErrorKind, ForkOptions, Keep,
    RecordOptions, Session, SkipReason, Trigger, TurnEnd, make,
};
use transcript_testkit::fake_disk::{FakeDisk, Fault, Op};
use transcript_writer::{ErrorKind as WriteError, ResumePoint, SyncPolicy};

use crate::support::{
    POLICIES, Place, answer, answer_text, assert_unhurt, call, create, lines, messages, options,
    path_of, request, result, say,
};

fn compaction() -> Compaction {
    Compaction::new(Trigger::Auto, 150_000)
}

/// Appends a turn with two parallel calls; returns its entries.
fn talk(session: &Session, turn: usize) -> Vec<EntryId> {
    let [first, second] = ["a", "b"].map(|name| format!("toolu_{turn}{name}"));
    let prompt = say(session, &format!("Question {turn}"));
    let calls = json!([call(&first), call(&second)]);
    let last = answer(session, &format!("msg_{turn}"), &calls);
    let first_call = path_of(session.path(), POLICIES[0]);
    let first_call = EntryId::from(&*first_call[first_call.len() - 2]);
    let results = [result(session, &second), result(session, &first)];
    let end = answer_text(session, &format!("Answer {turn}"));
    let [second_result, first_result] = results;
    vec![prompt, first_call, last, second_result, first_result, end]
}

/// Prepares a session for a compaction, and returns the entries to preserve.
type Prepare = fn(&Session) -> Vec<EntryId>;
const SESSIONS: [(&str, Prepare); 4] = [
    ("plain", |session| {
        talk(session, 1);
        Vec::new()
    }),
    ("keeps a turn", |session| {
        talk(session, 1);
        talk(session, 2)
    }),
    ("keeps an open call, named end", |session| {
        talk(session, 1);
        session
            .end_turn(TurnEnd::new().prompt("Question 1"))
            .unwrap();
        let prompt = say(session, "More");
        vec![
            prompt,
            answer(session, "msg_open", &json!([call("toolu_open")])),
        ]
    }),
    ("second compaction", |session| {
        let kept = talk(session, 1);
        session
            .compact(compaction(), "What was said.", &kept)
            .unwrap();
        talk(session, 2)
    }),
];

/// Returns the file after a compaction, or after a kill during its write when only `taken` bytes
/// were written.
fn compacted(before: &[u8], kept: &[EntryId], taken: Option<usize>) -> Vec<u8> {
    let place = tempfile::NamedTempFile::new().unwrap();
    fs::write(&place, before).unwrap();
    let history = transcript_engine::History::open(place.path()).unwrap();
    let known: ResumePoint = history.resume_point(&history.tree(POLICIES[1])).unwrap();
    let disk = FakeDisk::new(1);
    let path = Path::new("/sessions/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    disk.put(path, before);
    let writer = transcript_writer::WriterOptions::new().sync(SyncPolicy::None);
    let writer = writer.disk(disk.process()).open(path, known).unwrap();
    if let Some(taken) = taken {
        disk.set(Fault::kill_after(taken).at(Op::Append, 1));
    }
    let done = writer.compact(compaction(), "What was said so far.", kept);
    assert_eq!(done.is_err(), taken.is_some());
    drop(writer);
    disk.restart();
    disk.bytes(path).unwrap()
}

#[test]
fn a_crash_at_any_byte_of_a_compaction_leaves_a_session_that_goes_on() {
    // Every byte with TRANSCRIPT_SOAK=20.
    let step = env::var("TRANSCRIPT_SOAK").map_or(23, |_| 1);
    let mut place = Place::new();
    let (mut crashes, mut done) = (0, 0);
    for (name, prepare) in SESSIONS {
        place.renew();
        let session = create(&place.path);
        let kept = prepare(&session);
        session.close().unwrap();
        let before = fs::read(&place.path).unwrap();
        let all = compacted(&before, &kept, None).len() - before.len();
        for taken in (0..=all).step_by(step).chain([all]) {
            place.renew();
            fs::write(&place.path, compacted(&before, &kept, Some(taken))).unwrap();
            let resumed = Session::resume(&place.path, &options()).unwrap();
            // Resuming first answers an open call; the result is one unbroken conversation.
            assert_unhurt(&place.path);
            let [vendor, recover] = POLICIES.map(|policy| path_of(&place.path, policy));
            assert_eq!(vendor, recover, "{name} {taken}");
            let is_new = messages(&resumed.request)[0].contains("What was said so far.");
            assert!(is_new || taken < all, "{name} {taken}: written, and gone");
            say(&resumed.session, "Go on.");
            answer_text(&resumed.session, "Gladly.");
            resumed.session.close().unwrap();
            assert_unhurt(&place.path);
            crashes += 1;
            done += usize::from(is_new);
        }
    }
    println!("{crashes} crashes in a compaction, after {done} of them it is there");
    assert!(done >= SESSIONS.len());
}

#[test]
fn a_compaction_that_would_part_a_call_from_its_result_is_refused() {
    let place = Place::new();
    let session = create(&place.path);
    let turn = talk(&session, 1);
    let before = fs::read(&place.path).unwrap();
    for parted in [&turn[1..2], &turn[4..5], &turn[1..4]] {
        let error = session.compact(compaction(), "x", parted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SplitPair);
    }
    assert_eq!(fs::read(&place.path).unwrap(), before);
    session.compact(compaction(), "x", &turn[1..5]).unwrap();
    assert_unhurt(&place.path);
}

#[test]
fn a_rewind_goes_back_to_what_a_compaction_left_only_where_readers_can_see_it() {
    let mut place = Place::new();
    for keeps in [false, true] {
        place.renew();
        let session = create(&place.path);
        let old = talk(&session, 1);
        let kept = talk(&session, 2);
        let kept = if keeps { &kept[..] } else { &[] };
        session
            .compact(compaction(), "What was said.", kept)
            .unwrap();
        say(&session, "More");
        let gone = session.rewind(old.last().cloned());
        if keeps {
            assert_eq!(gone.unwrap_err().kind(), ErrorKind::BeforeCompaction);
            // The preserved entries exist, and the copy contains the others too.
            session.rewind(kept.last().cloned()).unwrap();
            let copy = session
                .fork(&ForkOptions::new().at(old[old.len() - 1].clone()))
                .unwrap();
            for policy in POLICIES {
                assert_eq!(path_of(&copy, policy).len(), old.len());
                let said = messages(&request(&copy, policy)).concat();
                assert!(said.contains("Answer 1") && !said.contains("Question 2"));
            }
        } else {
            gone.unwrap();
            let next = say(&session, "Other words").to_string();
            for policy in POLICIES {
                let path = path_of(&place.path, policy);
                assert_eq!(path.len(), old.len() + 1, "{policy:?}");
                assert_eq!(path.last(), Some(&next));
            }
        }
    }
}

#[test]
fn preserved_entries_that_are_recorded_again_move_nothing() {
    let place = Place::new();
    let session = create(&place.path);
    let kept = talk(&session, 1);
    session
        .compact(compaction(), "What was said.", &kept)
        .unwrap();
    let more = say(&session, "More");
    session.close().unwrap();
    let session = Session::open(&place.path, &options()).unwrap();
    let ids: Vec<String> = kept.iter().map(ToString::to_string).collect();
    let (lines, _) = lines(&place.path);
    let is_kept = |line: &&Value| {
        line["uuid"]
            .as_str()
            .is_some_and(|id| ids.iter().any(|kept| kept == id))
    };
    let messages = lines
        .iter()
        .filter(is_kept)
        .map(|line| Draft::entry(&line.to_string()).unwrap());
    let messages = messages.chain([Draft::user("New")]).collect();
    let recorded = session.record(messages, RecordOptions::new()).unwrap();
    assert_eq!(recorded.entries.len(), 1);
    assert_eq!(recorded.entries[0].parent, Some(more));
    assert_unhurt(&place.path);
}

#[test]
fn tombstone_removes_the_last_entry_and_no_other() {
    let place = Place::new();
    let session = create(&place.path);
    let prompt = say(&session, "x");
    let wrong = answer_text(&session, "wrong");
    let error = session.tombstone(&prompt).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Write(WriteError::NotTheLeaf));
    session.tombstone(&wrong).unwrap();
    assert_eq!(session.leaf(), Some(prompt.clone()));
    session.close().unwrap();
    let session = Session::open(&place.path, &options()).unwrap();
    assert_eq!(session.leaf(), Some(prompt.clone()));
    let right = answer_text(&session, "right");
    for policy in POLICIES {
        assert_eq!(
            path_of(&place.path, policy),
            [&prompt, &right].map(ToString::to_string)
        );
    }
}

/// A tombstone as the engine of a client sends it.
fn withdrawal(uuid: &str) -> Draft {
    let line = json!({"type": "tombstone", "message": {"type": "assistant", "uuid": uuid}});
    Draft::entry(&line.to_string()).unwrap()
}

fn part_of_answer(uuid: &str) -> Draft {
    let content = json!([{"type": "text", "text": uuid}]);
    let line = json!({"type": "assistant", "uuid": uuid,
        "message": {"role": "assistant", "id": uuid, "model": "m", "content": content}});
    Draft::entry(&line.to_string()).unwrap()
}

/// A session whose answer has three parts so far; returns its prompt.
fn half_an_answer(session: &Session) -> EntryId {
    let prompt = say(session, "Question");
    let parts = ["p1", "p2", "p3"].map(part_of_answer);
    session.append_all(parts).unwrap();
    prompt
}

/// The parts of the withdrawn answer, and the answer that replaces it.
fn fallback() -> Vec<Draft> {
    let parts = ["p1", "p2", "p3"].map(part_of_answer);
    let withdrawn = ["p1", "p2", "p3"].map(withdrawal);
    let list = parts.into_iter().chain(withdrawn);
    list.chain([part_of_answer("whole")]).collect()
}

#[test]
fn a_list_with_tombstones_removes_what_they_name_and_adds_the_rest_in_one_write() {
    let place = Place::new();
    let session = create(&place.path);
    let prompt = half_an_answer(&session);
    let recorded = session.record(fallback(), RecordOptions::new()).unwrap();
    assert_eq!(recorded.entries.len(), 1);
    assert_eq!(recorded.entries[0].parent, Some(prompt.clone()));
    assert_eq!(recorded.last, Some(EntryId::from("whole")));
    assert_eq!(recorded.skipped, []);
    let expected = [prompt.to_string(), "whole".into()];
    for policy in POLICIES {
        assert_eq!(path_of(&place.path, policy), expected);
    }
    // The same list again changes nothing, and what follows it continues.
    let size = fs::metadata(&place.path).unwrap().len();
    let again = session.record(fallback(), RecordOptions::new()).unwrap();
    assert!(again.entries.is_empty());
    assert_eq!(fs::metadata(&place.path).unwrap().len(), size);
    let [skipped] = &again.skipped[..] else {
        panic!("{:?}", again.skipped)
    };
    assert_eq!(skipped.reason, SkipReason::Tombstoned);
    assert_eq!((skipped.count, skipped.first), (3, 3));
    let mut longer = fallback();
    longer.push(Draft::user("More"));
    let recorded = session.record(longer, RecordOptions::new()).unwrap();
    assert_eq!(recorded.entries[0].parent, Some(EntryId::from("whole")));
    for policy in POLICIES {
        assert_eq!(path_of(&place.path, policy).len(), 3);
    }
    session.close().unwrap();
    assert_eq!(
        Session::open(&place.path, &options()).unwrap().leaf(),
        recorded.last
    );
}

#[test]
fn a_first_list_with_tombstones_makes_the_file() {
    let place = Place::new();
    let session = create(&place.path);
    let recorded = session.record(fallback(), RecordOptions::new()).unwrap();
    assert_eq!(recorded.last, Some(EntryId::from("whole")));
    for policy in POLICIES {
        assert_eq!(path_of(&place.path, policy), ["whole"]);
    }
}

#[test]
fn a_record_of_only_tombstones_ends_the_conversation_before_the_entries_that_they_name() {
    let place = Place::new();
    let session = create(&place.path);
    let prompt = half_an_answer(&session);
    let withdrawn = ["p1", "p2", "p3"].map(withdrawal).to_vec();
    let recorded = session.record(withdrawn, RecordOptions::new()).unwrap();
    assert_eq!(
        (recorded.entries.len(), recorded.last),
        (0, Some(prompt.clone()))
    );
    assert_eq!(session.leaf(), Some(prompt.clone()));
    for policy in POLICIES {
        assert_eq!(path_of(&place.path, policy), [prompt.to_string()]);
    }
    // One after another, the last first, and all at once in any order, do the same.
    for at_once in [false, true] {
        let name = format!(
            "{}999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl",
            2 + u8::from(at_once)
        );
        let place = place.path.with_file_name(name);
        let session = create(&place);
        let prompt = half_an_answer(&session);
        if at_once {
            let names = ["p2", "p3", "p1"].map(EntryId::from);
            session.tombstone_all(&names).unwrap();
        } else {
            for uuid in ["p3", "p2", "p1"] {
                session.append(withdrawal(uuid)).unwrap();
            }
        }
        assert_eq!(session.leaf(), Some(prompt.clone()));
        for policy in POLICIES {
            assert_eq!(path_of(&place, policy), [prompt.to_string()]);
        }
    }
}

#[test]
fn a_tombstone_that_cannot_take_effect_is_never_acknowledged() {
    let place = Place::new();
    let session = create(&place.path);
    half_an_answer(&session);
    let bytes = fs::read(&place.path).unwrap();
    let kind = |error: transcript_engine::Error| match error.kind() {
        ErrorKind::Write(kind) => kind,
        kind => panic!("{kind:?}"),
    };
    let refused = |draft| kind(session.append(draft).unwrap_err());
    assert_eq!(refused(withdrawal("p1")), WriteError::NotTheLeaf);
    assert_eq!(refused(withdrawal("gone")), WriteError::UnknownEntry);
    let nameless = |text: &str| Draft::entry(text).unwrap();
    for text in [
        r#"{"type":"tombstone"}"#,
        r#"{"type":"tombstone","message":{"uuid":7}}"#,
    ] {
        assert_eq!(refused(nameless(text)), WriteError::InvalidEntry);
        let list = vec![nameless(text)];
        let error = session.record(list, RecordOptions::new()).unwrap_err();
        assert_eq!(kind(error), WriteError::InvalidEntry);
    }
    let mixed = [part_of_answer("p4"), withdrawal("p3")];
    assert_eq!(
        kind(session.append_all(mixed).unwrap_err()),
        WriteError::InvalidEntry
    );
    assert_eq!(
        kind(session.queue(withdrawal("p3")).unwrap_err()),
        WriteError::InvalidEntry
    );
    let error = session.writer().append(withdrawal("p3")).unwrap_err();
    assert_eq!(error.kind(), WriteError::InvalidEntry);
    let list = vec![withdrawal("p2")];
    let error = session.record(list, RecordOptions::new()).unwrap_err();
    assert_eq!(kind(error), WriteError::NotTheLeaf);
    assert_eq!(fs::read(&place.path).unwrap(), bytes);
    // A list answers for one of an entry that was never written.
    let list = vec![
        withdrawal("gone"),
        part_of_answer("p4"),
        part_of_answer("q"),
        withdrawal("q"),
    ];
    let recorded = session.record(list, RecordOptions::new()).unwrap();
    assert_eq!(recorded.last, Some(EntryId::from("p4")));
    let skipped = recorded.skipped.iter();
    let skipped = skipped.map(|one| (&*one.type_name, one.reason, one.count, one.first));
    let expected = [
        ("tombstone", SkipReason::UnknownEntry, 1, 0),
        ("assistant", SkipReason::Tombstoned, 1, 2),
    ];
    assert_eq!(skipped.collect::<Vec<_>>(), expected);
}

#[test]
fn an_entry_of_an_abandoned_branch_is_withdrawn_without_moving_the_end() {
    let place = Place::new();
    let session = create(&place.path);
    let prompt = half_an_answer(&session);
    session.rewind(Some(prompt)).unwrap();
    let end = answer_text(&session, "right");
    let list = vec![withdrawal("p2"), withdrawal("p3")];
    let recorded = session.record(list, RecordOptions::new()).unwrap();
    assert_eq!(recorded.skipped, []);
    assert_eq!(session.leaf(), Some(end.clone()));
    for policy in POLICIES {
        assert_eq!(path_of(&place.path, policy).last(), Some(&end.to_string()));
    }
    let (lines, _) = lines(&place.path);
    assert_eq!(lines.last().unwrap()["tombstones"], json!(["p2", "p3"]));
}

/// Which parts of the withdrawn answer are shown when a kill leaves the first bytes of a write.
fn shown_parts(place: &Path, bytes: &[u8], from: usize) -> Vec<usize> {
    let cut = |len: usize| {
        fs::write(place, &bytes[..len]).unwrap();
        let path = path_of(place, transcript_engine::Policy::Recover);
        path.iter()
            .filter(|id| ["p1", "p2", "p3"].contains(&&***id))
            .count()
    };
    let mut shown: Vec<usize> = (from..=bytes.len()).map(cut).collect();
    shown.dedup();
    shown
}

#[test]
fn a_kill_at_any_byte_leaves_all_parts_of_a_withdrawn_answer_or_none() {
    let place = Place::new();
    let session = create(&place.path);
    let prompt = half_an_answer(&session);
    session.sync().unwrap();
    let from = fs::metadata(&place.path).unwrap().len() as usize;
    session.record(fallback(), RecordOptions::new()).unwrap();
    session.close().unwrap();
    let bytes = fs::read(&place.path).unwrap();
    let copy = place
        .path
        .with_file_name("0999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    assert_eq!(shown_parts(&copy, &bytes, from), [3, 0]);
    // A line for each part, as one call after another writes them, can leave a part of them.
    let mut naive = bytes[..from].to_vec();
    for part in ["p3", "p2", "p1"] {
        naive.extend(make::tombstone(part).text().into_bytes());
        naive.push(b'\n');
    }
    assert_eq!(shown_parts(&copy, &naive, from), [3, 2, 1, 0]);
    // The session continues after the part that a kill left.
    fs::write(&copy, &bytes[..from + 40]).unwrap();
    let session = Session::open(&copy, &options()).unwrap();
    let recorded = session.record(fallback(), RecordOptions::new()).unwrap();
    assert_eq!(recorded.entries[0].parent, Some(prompt));
}

#[test]
fn messages_of_a_subagent_of_the_stream_protocol_are_a_sidechain() {
    let place = Place::new();
    let session = create(&place.path);
    let message = |uuid: &str, call: Option<&str>| {
        let line = json!({"type": "user", "uuid": uuid, "session_id": "s", "parent_tool_use_id": call,
            "message": {"role": "user", "content": uuid}});
        Draft::entry(&line.to_string()).unwrap()
    };
    let list = [
        ("u1", None),
        ("s1", Some("c1")),
        ("u2", None),
        ("s2", Some("c1")),
    ];
    let list = list.map(|(uuid, call)| message(uuid, call)).to_vec();
    let recorded = session.record(list, RecordOptions::new()).unwrap();
    let parents = recorded.entries.iter().map(|entry| entry.parent.as_ref());
    let parents = parents.map(|parent| parent.map(ToString::to_string));
    let expected = [None, None, Some("u1"), Some("s1")];
    assert_eq!(
        parents.collect::<Vec<_>>(),
        expected.map(|id| id.map(str::to_owned))
    );
    for policy in POLICIES {
        assert_eq!(path_of(&place.path, policy), ["u1", "u2"]);
    }
    let (lines, _) = lines(&place.path);
    let marks = lines
        .iter()
        .map(|line| (line["isSidechain"].clone(), line["agentId"].clone()));
    let (main, side) = ((json!(false), Value::Null), (json!(true), json!("c1")));
    assert_eq!(
        marks.collect::<Vec<_>>(),
        [main.clone(), side.clone(), main, side]
    );
}

#[test]
fn a_list_answers_for_the_messages_that_it_does_not_store() {
    let place = Place::new();
    let session = create(&place.path);
    let other = |kind: &str| Draft::entry(&json!({"type": kind, "session_id": "s"}).to_string());
    let kinds = ["stream_event", "result", "stream_event", "progress"];
    let mut list: Vec<Draft> = kinds.iter().map(|kind| other(kind).unwrap()).collect();
    list.insert(1, part_of_answer("p1"));
    let recorded = session.record(list, RecordOptions::new()).unwrap();
    assert_eq!(recorded.entries.len(), 1);
    let skipped = recorded.skipped.iter();
    let skipped = skipped.map(|one| (&*one.type_name, one.reason.name(), one.count, one.first));
    let expected = [
        ("stream_event", "not-stored", 2, 0),
        ("result", "not-stored", 1, 2),
        ("progress", "not-stored", 1, 4),
    ];
    assert_eq!(skipped.collect::<Vec<_>>(), expected);
}

#[test]
fn a_fork_has_the_conversation_and_no_id_of_its_source() {
    let place = Place::new();
    let session = create(&place.path);
    talk(&session, 1);
    let kept = talk(&session, 2);
    session
        .compact(compaction(), "What was said.", &kept)
        .unwrap();
    let end = talk(&session, 3);
    let copy = session.fork(&ForkOptions::new()).unwrap();
    let part = session
        .fork(&ForkOptions::new().at(end[0].clone()))
        .unwrap();
    for policy in POLICIES {
        let source = messages(&request(&place.path, policy));
        assert_eq!(messages(&request(&copy, policy)), source);
        let part = path_of(&part, policy);
        assert_eq!(part.len() + end.len() - 1, path_of(&copy, policy).len());
    }
    let source = fs::read_to_string(&place.path).unwrap();
    for line in lines(&copy).0.into_iter().chain(lines(&part).0) {
        let own = line["uuid"].as_str().unwrap_or("none");
        assert!(!source.contains(own), "{line}");
    }
    let nothing = session
        .fork(&ForkOptions::new().at(EntryId::from("nowhere")))
        .unwrap_err();
    assert!(matches!(nothing.kind(), ErrorKind::NotResumable(_)));
    let files = fs::read_dir(place.path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 3, "no part of a copy is left");
    // The copy can be continued on its own.
    let resumed = Session::resume(&copy, &options()).unwrap();
    say(&resumed.session, "z");
    assert_unhurt(&copy);
}

#[test]
fn a_subagent_has_a_file_of_its_own_that_is_gone_on_with() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    answer(&session, "m1", &json!([call("toolu_agent")]));
    let id = AgentId::new("a1").unwrap();
    let meta = AgentMeta::new("Explore", "toolu_agent");
    let agent = session.agent(&id, &meta).unwrap();
    let first = say(&agent, "Look around");
    agent.close().unwrap();
    let agent = session.agent(&id, &meta.description("again")).unwrap();
    assert_eq!(agent.leaf(), Some(first));
    answer_text(&agent, "Nothing here");
    let (lines, _) = lines(agent.path());
    assert!(
        lines
            .iter()
            .all(|line| line["isSidechain"] == true && line["agentId"] == "a1")
    );
    let meta: Value =
        serde_json::from_slice(&fs::read(id.meta_path(&place.path)).unwrap()).unwrap();
    assert_eq!(meta["description"], "again");
}

#[cfg(feature = "async")]
#[tokio::test]
async fn tasks_do_the_same_with_a_session() {
    let place = Place::new();
    let session = AsyncSession::from(create(&place.path));
    let first = session.append(Draft::user("x")).await.unwrap();
    session.queue(Draft::user("y")).await.unwrap();
    let same = Draft::entry(
        &json!({"type": "user", "uuid": "2f2aef1a-9ba3-4b0e-8f14-a9f1a0dd3d55",
        "message": {"role": "user", "content": "z"}})
        .to_string(),
    )
    .unwrap();
    for added in [1, 0] {
        let recorded = session
            .record(vec![same.clone()], RecordOptions::new())
            .await
            .unwrap();
        assert_eq!(recorded.entries.len(), added);
    }
    assert_eq!(messages(&session.request().await.unwrap()).len(), 1);
    let copy = session.fork(&ForkOptions::new()).await.unwrap();
    assert_eq!(path_of(&copy, POLICIES[0]).len(), 3);
    let leaf = session.leaf().unwrap();
    session.tombstone(&leaf).await.unwrap();
    session.append(part_of_answer("p1")).await.unwrap();
    session.append(withdrawal("p1")).await.unwrap();
    session.append(part_of_answer("p2")).await.unwrap();
    let list = vec![withdrawal("p2")];
    let recorded = session.record(list, RecordOptions::new()).await.unwrap();
    assert_eq!(recorded.last, session.leaf());
    let unknown = session.append_all([withdrawal("p3")]).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Write(WriteError::UnknownEntry));
    session.rewind(first.uuid.clone()).await.unwrap();
    assert_eq!(session.leaf(), first.uuid);
    let kept = Vec::from_iter(first.uuid);
    let unknown = vec![EntryId::from("nowhere")];
    let error = session
        .compact(compaction(), "s", unknown)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Write(WriteError::UnknownEntry));
    session.compact(compaction(), "s", kept).await.unwrap();
    session.end_turn(TurnEnd::new().prompt("x")).await.unwrap();
    session.sync().await.unwrap();
    let path: Arc<Path> = session.path().into();
    session.close().await.unwrap();
    for policy in POLICIES {
        assert_eq!(path_of(&path, policy).len(), 3);
    }
}

#[test]
fn the_last_turns_are_kept_whole_and_a_late_result_keeps_the_turn_of_its_call() {
    let place = Place::new();
    let session = create(&place.path);
    talk(&session, 1);
    let second = talk(&session, 2);
    let last = talk(&session, 3);
    let entries = session.entries().unwrap();
    let prompts = entries.iter().filter(|entry| entry.is_prompt);
    let prompts: Vec<&str> = prompts.map(|entry| &*entry.preview).collect();
    assert_eq!(prompts, ["Question 1", "Question 2", "Question 3"]);
    let done = session
        .compact(compaction(), "So far.", Keep::LastTurns(1))
        .unwrap();
    assert_eq!(done.kept.first(), last.first());
    assert_eq!(done.kept.len(), last.len());
    assert!(!done.kept.contains(&second[0]));
    session.close().unwrap();

    let mut place = place;
    place.renew();
    let session = create(&place.path);
    talk(&session, 1);
    let prompt = say(&session, "Call it");
    answer(&session, "msg_late", &json!([call("toolu_late")]));
    // The writer would make the result a child of its call; other clients append it to the chain.
    let meanwhile = say(&session, "Meanwhile");
    let result = Draft::tool_result("toolu_late", "done").parent(meanwhile);
    session.append(result).unwrap();
    answer_text(&session, "There it is");
    let done = session
        .compact(compaction(), "So far.", Keep::LastTurns(1))
        .unwrap();
    assert_eq!(done.kept.first(), Some(&prompt), "the turn of the call");
}
