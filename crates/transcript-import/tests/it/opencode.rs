//! OpenCode: what is sent, reverts, deleted rows, compactions, and that a database is not written to.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use transcript_import::{Agent, BranchKind, Holds, Piece, Policy, Store, dialect};
use transcript_storage::{MemoryDisk, RealDisk};

use crate::opencode_store::{Database, call, read, said, step};
use crate::support::{Home, branch, check, live};

#[test]
fn results_follow_the_calls_of_their_step() {
    let mut database = Database::new();
    database.prompt(1, "one");
    let thought = json!({"type": "reasoning", "text": "hm"});
    let parts = [
        step(),
        thought,
        said("first"),
        call("a", "of a"),
        call("b", "of b"),
        json!({"type": "step-finish", "cost": 0}),
        step(),
        said("second"),
        said(""),
    ];
    database.answer(2, &parts);
    let conversation = database.read();
    let expected = [
        "U one",
        "R hm",
        "A first",
        r#"T bash {"of":"a"}"#,
        r#"T bash {"of":"b"}"#,
        "O of a",
        "O of b",
        "A second",
    ];
    assert_eq!(live(&conversation), expected);
    assert!(conversation.unknown.is_empty());
    assert_eq!(conversation.metadata.model.as_deref(), Some("m"));
    assert_eq!(
        conversation.metadata.usage.map(|usage| usage.input),
        Some(7)
    );
}

#[test]
fn messages_have_the_order_of_their_times_and_then_their_ids() {
    let mut database = Database::new();
    database.prompt(3, "third");
    database.prompt(1, "first");
    database.prompt(2, "second");
    database.execute("UPDATE message SET time_created = 1 WHERE id = 'msg_002'");
    assert_eq!(live(&database.read()), ["U first", "U second", "U third"]);
}

#[test]
fn a_prompt_is_its_texts_and_images_in_one() {
    let mut database = Database::new();
    let parts = [
        said("look"),
        json!({"type": "text", "text": "read", "synthetic": true}),
        json!({"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA"}),
        json!({"type": "file", "mime": "text/plain", "url": "file:///a"}),
        json!({"type": "text", "text": "a note", "ignored": true}),
    ];
    database.message("ses_1", 1, &json!({"role": "user"}), &parts);
    let conversation = database.read();
    assert_eq!(live(&conversation), ["U look\nread+image"]);
    assert_eq!(branch(&conversation, BranchKind::Unsent), ["U a note"]);
}

#[test]
fn calls_without_a_result_and_failed_ones_say_so() {
    let mut database = Database::new();
    let state = |state: Value| json!({"type": "tool", "tool": "t", "callID": "c", "state": state});
    let parts = [
        state(json!({"status": "running", "input": {}, "time": {"start": 1}})),
        state(json!({"status": "error", "input": {}, "error": "no such file", "time": {}})),
        state(json!({"status": "error", "input": {}, "error": "stopped",
            "metadata": {"interrupted": true, "output": "so far"}})),
        state(
            json!({"status": "completed", "input": {}, "output": "old", "time": {"compacted": 5}}),
        ),
    ];
    database.answer(1, &parts);
    let conversation = database.read();
    let expected = [
        "E [Tool execution was interrupted]",
        "E no such file",
        "E so far",
        "O [Old tool result content cleared]",
    ];
    assert_eq!(live(&conversation)[4..], expected);
    assert_eq!(branch(&conversation, BranchKind::Compacted), ["O old"]);
}

#[test]
fn responses_that_failed_are_not_sent_and_stopped_ones_as_far_as_they_came() {
    let mut database = Database::new();
    let failed = |name: &str| json!({"role": "assistant", "error": {"name": name}});
    let thought = json!({"type": "reasoning", "text": "hm"});
    database.message("ses_1", 1, &failed("APIError"), &[step(), said("failed")]);
    database.message(
        "ses_1",
        2,
        &failed("MessageAbortedError"),
        &[step(), said("stopped")],
    );
    database.message(
        "ses_1",
        3,
        &failed("MessageAbortedError"),
        &[step(), thought],
    );
    let conversation = database.read();
    assert_eq!(live(&conversation), ["A stopped"]);
    assert_eq!(
        branch(&conversation, BranchKind::Unsent),
        ["A failed", "R hm"]
    );
}

#[test]
fn a_revert_hides_what_follows_until_it_is_undone() {
    let mut database = Database::new();
    database.prompt(1, "one");
    database.answer(2, &[said("two"), call("c", "three"), said("four")]);
    database.prompt(3, "five");
    let revert = |to: Value| format!("UPDATE session SET revert = '{to}' WHERE id = 'ses_1'");
    database.execute(&revert(
        json!({"messageID": "msg_002", "partID": "prt_002_2"}),
    ));
    let conversation = database.read();
    let kept = ["U one", "A two", r#"T bash {"of":"c"}"#, "O three"];
    assert_eq!(live(&conversation), kept);
    assert_eq!(
        branch(&conversation, BranchKind::Rewound),
        ["A four", "U five"]
    );
    database.execute(&revert(json!({"messageID": "msg_002"})));
    let conversation = database.read();
    assert_eq!(live(&conversation), ["U one"]);
    assert_eq!(branch(&conversation, BranchKind::Rewound).len(), 5);
    database.execute("UPDATE session SET revert = NULL");
    assert_eq!(live(&database.read()).len(), 6);
}

#[test]
fn what_was_deleted_is_read_from_the_events() {
    let mut database = Database::new();
    database.prompt(1, "one");
    database.answer(2, &[said("tw")]);
    database.part_event("ses_1", 2, 0, &said("two"));
    database.prompt(3, "three");
    database.delete("ses_1", 2);
    database.delete("ses_1", 3);
    database.prompt(4, "other way");
    database.prompt(5, "third way");
    database.delete("ses_1", 5);
    for conversation in [database.read(), database.vendor()] {
        assert_eq!(live(&conversation), ["U one", "U other way"]);
        let deleted = |branch: &&transcript_import::Branch| branch.kind == BranchKind::Deleted;
        let branches = conversation.branches.iter().filter(deleted);
        // Those of one revert are one branch.
        assert_eq!(
            branches
                .map(|branch| branch.nodes.len())
                .collect::<Vec<_>>(),
            [2, 1]
        );
        let texts = branch(&conversation, BranchKind::Deleted);
        assert_eq!(texts, ["A two", "U three", "U third way"]);
    }
}

#[test]
fn a_part_that_was_removed_from_a_message_is_read_from_the_events() {
    let mut database = Database::new();
    database.answer(1, &[said("kept"), said("removed")]);
    database.execute("DELETE FROM part WHERE id = 'prt_001_1'");
    database.event(
        "ses_1",
        "message.part.removed.1",
        &json!({"messageID": "msg_001", "partID": "prt_001_1"}),
    );
    let conversation = database.read();
    assert_eq!(live(&conversation), ["A kept"]);
    assert_eq!(branch(&conversation, BranchKind::Deleted), ["A removed"]);
}

#[test]
fn versions_that_a_text_grew_through_are_one_and_a_changed_text_is_another() {
    let mut database = Database::new();
    database.answer(1, &[said("")]);
    for text in ["w", "was", "was this", "is", "is that"] {
        database.part_event("ses_1", 1, 0, &said(text));
    }
    let last = said("is that");
    database.execute(&format!("UPDATE part SET data = '{last}'"));
    let conversation = database.read();
    assert_eq!(live(&conversation), ["A is that"]);
    assert_eq!(
        branch(&conversation, BranchKind::Superseded),
        ["A was this"]
    );
}

#[test]
fn long_versions_of_the_same_length_are_two() {
    let texts = ["first ", "other "].map(|word| word.repeat(20_000));
    let mut database = Database::new();
    database.answer(1, &[said(&texts[0]), call("a", &texts[0])]);
    // The same as the rows.
    database.part_event("ses_1", 1, 0, &said(&texts[0]));
    database.part_event("ses_1", 1, 1, &call("a", &texts[0]));
    let conversation = database.read();
    assert!(conversation.branches.is_empty());
    database.part_event("ses_1", 1, 0, &said(&texts[1]));
    database.part_event("ses_1", 1, 1, &call("a", &texts[1]));
    let conversation = database.read();
    let superseded = branch(&conversation, BranchKind::Superseded);
    let call = r#"T bash {"of":"a"}"#.to_owned();
    let expected = [format!("A {}", texts[1]), call, format!("O {}", texts[1])];
    assert!(superseded == expected, "{} nodes", superseded.len());
}

#[test]
fn a_summary_replaces_what_comes_before_it_but_for_the_kept_end() {
    let mut database = Database::new();
    let summary =
        |of: &str| json!({"role": "assistant", "summary": true, "finish": "stop", "parentID": of});
    let compaction = |from: Option<&str>| {
        let mut part = json!({"type": "compaction", "auto": false});
        if let Some(from) = from {
            part["tail_start_id"] = json!(from);
        }
        [part]
    };
    database.prompt(1, "one");
    database.message("ses_1", 2, &json!({"role": "user"}), &compaction(None));
    database.message("ses_1", 3, &summary("msg_002"), &[said("first summary")]);
    database.prompt(4, "two");
    database.answer(5, &[said("three")]);
    database.message(
        "ses_1",
        6,
        &json!({"role": "user"}),
        &compaction(Some("msg_005")),
    );
    let conversation = database.read();
    // Nothing has taken the place of the messages yet.
    let asked = "U What did we do so far?";
    assert_eq!(
        live(&conversation),
        [asked, "A first summary", "U two", "A three", asked]
    );
    database.message("ses_1", 7, &summary("msg_006"), &[said("second summary")]);
    database.prompt(8, "four");
    let conversation = database.read();
    assert_eq!(
        live(&conversation),
        [asked, "A second summary", "A three", "U four"]
    );
    let compacted = branch(&conversation, BranchKind::Compacted);
    assert_eq!(compacted, ["U one", "A first summary", "U two"]);
}

#[test]
fn a_task_of_the_person_is_sent_as_a_call_of_the_model() {
    let mut database = Database::new();
    let task =
        json!({"type": "subtask", "prompt": "look around", "description": "d", "agent": "general"});
    database.message("ses_1", 1, &json!({"role": "user"}), &[task]);
    database.answer(2, &[call("c", "done")]);
    let conversation = database.read();
    assert_eq!(
        live(&conversation)[0],
        "U The following tool was executed by the user"
    );
    assert_eq!(branch(&conversation, BranchKind::Unsent), ["U look around"]);
}

#[test]
fn forks_and_subagents_name_their_sessions() {
    let mut database = Database::new();
    database.prompt(1, "one");
    database.session("ses_2", "one (fork #1)", 5);
    let copy = json!({"role": "user", "time": {"created": 1}});
    database.message("ses_2", 6, &copy, &[said("one")]);
    database.execute("UPDATE message SET time_created = 1 WHERE session_id = 'ses_2'");
    database.session("ses_3", "two", 7);
    database.execute("UPDATE session SET parent_id = 'ses_1' WHERE id = 'ses_3'");
    let metadata = |id| {
        read(database.path(), id, Policy::Recover)
            .expect("it is read")
            .metadata
    };
    assert_eq!(metadata("ses_2").forked_from.as_deref(), Some("ses_1"));
    assert_eq!(metadata("ses_3").subagent_of.as_deref(), Some("ses_1"));
    assert_eq!(metadata("ses_1").forked_from, None);
}

#[test]
fn every_row_of_a_session_is_accounted_for_and_what_is_unknown_is_counted() {
    let mut database = Database::new();
    database.session("ses_2", "two", 2);
    database.prompt(1, "one");
    database.message("ses_2", 2, &json!({"role": "user"}), &[said("of another")]);
    database.answer(
        3,
        &[
            json!({"type": "hologram"}),
            json!({"type": "snapshot", "snapshot": "x"}),
        ],
    );
    database.event("ses_1", "session.beamed.1", &json!({}));
    database.event("ses_1", "weather.changed.1", &json!({}));
    database.execute("INSERT INTO todo VALUES ('ses_1', 'do', 0); CREATE TABLE note (session_id text, body text);
        INSERT INTO note VALUES ('ses_1', 'a'), ('ses_2', 'b'), ('ses_1', 'c')");
    let conversation = database.read();
    let unknown: Vec<(&str, u64)> = conversation
        .unknown
        .iter()
        .map(|(name, count)| (&**name, *count))
        .collect();
    assert_eq!(
        unknown,
        [("hologram", 1), ("note", 2), ("weather.changed", 1)]
    );
    let mut rows: BTreeMap<&str, u64> = BTreeMap::new();
    for part in &conversation.parts {
        let is_other = part.holds == Holds::Raw("rows of other sessions".into());
        let table = conversation.source(part.place.source).table.as_deref();
        *rows.entry(table.expect("it is a table")).or_default() +=
            if is_other { 0 } else { part.place.len };
    }
    let expected = [
        ("event", 7),
        ("message", 2),
        ("note", 2),
        ("part", 3),
        ("session", 1),
        ("todo", 1),
    ];
    assert_eq!(rows.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn sessions_are_listed_oldest_first_from_every_database_of_the_folder() {
    let database = Database::new();
    database.session("ses_0", "two", 2);
    database.move_log();
    let other = database.path().join("opencode-dev.db");
    fs::copy(database.path().join("opencode.db"), other).expect("it is copied");
    let store = Store {
        disk: &RealDisk,
        path: database.path(),
    };
    let sessions = dialect(Agent::OpenCode)
        .sessions(store)
        .expect("they are listed");
    let ids: Vec<&str> = sessions.iter().map(|session| &*session.id).collect();
    assert_eq!(ids, ["ses_1", "ses_0", "ses_1", "ses_0"]);
    assert!(dialect(Agent::OpenCode).has_store(store));
}

#[test]
fn reading_changes_nothing_beside_the_database() {
    let mut database = Database::new();
    database.prompt(1, "one");
    let home = database.copy();
    let state = || -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
        let entries = fs::read_dir(home.path()).expect("it can be listed");
        let state = |entry: fs::DirEntry| {
            let modified = entry.metadata().and_then(|found| found.modified());
            let bytes = fs::read(entry.path()).expect("it can be read");
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, (bytes, modified.expect("it has a time")))
        };
        entries
            .map(|entry| state(entry.expect("it is listed")))
            .collect()
    };
    let before = state();
    assert_eq!(before.len(), 2);
    for policy in [Policy::Recover, Policy::Vendor] {
        let conversation = read(home.path(), "ses_1", policy).expect("it is read");
        assert_eq!(live(&conversation), ["U one"]);
    }
    assert_eq!(state(), before);
}

#[test]
fn a_database_is_read_from_any_disk() {
    let mut database = Database::new();
    database.prompt(1, "one");
    let disk = MemoryDisk::new();
    for name in ["opencode.db", "opencode.db-wal"] {
        let bytes = fs::read(database.path().join(name)).expect("it can be read");
        disk.put(format!("/home/{name}"), bytes);
    }
    let store = Store {
        disk: &disk,
        path: "/home".as_ref(),
    };
    let conversation = dialect(Agent::OpenCode).read(store, "ses_1", Policy::Recover);
    let conversation = conversation.expect("it is read");
    check(&conversation);
    assert_eq!(live(&conversation), ["U one"]);
}

#[test]
fn rows_that_are_alike_and_follow_each_other_are_one_part() {
    let mut database = Database::new();
    (1..=3).for_each(|number| database.prompt(number, "one"));
    let mystery = json!({"type": "mystery"});
    database.answer(4, &[mystery.clone(), mystery]);
    let conversation = database.read();
    let of_table = |table: &str| -> Vec<(u64, u64, Holds)> {
        let parts = conversation.parts.iter();
        let parts = parts.filter(|part| {
            let source = conversation.source(part.place.source);
            source.table.as_deref() == Some(table)
        });
        parts
            .map(|part| (part.place.offset, part.place.len, part.holds.clone()))
            .collect()
    };
    let others = Holds::Raw("rows of other sessions".into());
    let expected = [(0, 1, others), (1, 4, Holds::Metadata("message"))];
    assert_eq!(of_table("message"), expected);
    // Texts and unknown rows are parts of their own.
    let parts: Vec<(u64, u64)> = of_table("part")
        .iter()
        .map(|(offset, len, _)| (*offset, *len))
        .collect();
    assert_eq!(parts, [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]);
    assert_eq!(conversation.unknown["mystery"], 2);
}

#[test]
fn long_texts_of_files_are_not_held() {
    let home = Home::of(Agent::OpenCode);
    let put = |name: &str, bytes: &str| {
        home.put_bytes(&format!("storage/{name}.json"), bytes.as_bytes());
    };
    let long = |word: &str| word.repeat(1000);
    let part = |word: &str| json!({"type": "text", "text": long(word)}).to_string();
    put(
        "session/project/ses_1",
        r#"{"id": "ses_1", "directory": "/w"}"#,
    );
    put(
        "message/ses_1/msg_1",
        r#"{"role": "user", "time": {"created": 1}}"#,
    );
    put("part/msg_1/prt_1", &part("one "));
    put("part/msg_1/prt_2", &part("two "));
    // Of a message that cannot be read the parts are read after all others.
    put("message/ses_1/msg_2", "x");
    put("part/msg_2/prt_3", &part("three "));
    let conversation = home.read("ses_1");
    let prompt = format!("U {}\n{}", long("one "), long("two "));
    assert_eq!(live(&conversation), [prompt]);
    let deleted = branch(&conversation, BranchKind::Deleted);
    assert_eq!(deleted, [format!("U {}", long("three "))]);
    for id in conversation.ids() {
        let text = conversation.stored(id).text.expect("it has a text");
        let held = text.pieces().iter().filter_map(|piece| match piece {
            Piece::Held(text) => Some(text.len()),
            Piece::Stored(_) => None,
        });
        assert!(held.sum::<usize>() < 10);
    }
}

#[test]
fn files_of_older_versions_are_read() {
    let home = Home::of(Agent::OpenCode);
    let put = |name: &str, value: Value| {
        home.put_bytes(
            &format!("storage/{name}.json"),
            value.to_string().as_bytes(),
        );
    };
    put(
        "session/project/ses_1",
        json!({"id": "ses_1", "title": "old", "directory": "/w", "version": "0.9",
            "time": {"created": 1, "updated": 2}, "revert": {"messageID": "msg_3"}}),
    );
    put(
        "message/ses_1/msg_2",
        json!({"id": "msg_2", "role": "assistant", "modelID": "m", "time": {"created": 2}}),
    );
    put(
        "message/ses_1/msg_9",
        json!({"id": "msg_9", "role": "user", "time": {"created": 1}}),
    );
    put(
        "message/ses_1/msg_3",
        json!({"id": "msg_3", "role": "user", "time": {"created": 3}}),
    );
    put("part/msg_9/prt_1", json!({"type": "text", "text": "one"}));
    put("part/msg_2/prt_2", json!({"type": "text", "text": "two"}));
    put("part/msg_3/prt_3", json!({"type": "text", "text": "three"}));
    home.put_bytes(
        "storage/part/msg_2/prt_4.json",
        br#"{"type":"text","text":"torn"#,
    );
    assert_eq!(home.sessions(), ["ses_1"]);
    let conversation = home.read("ses_1");
    assert_eq!(live(&conversation), ["U one", "A two", "A torn"]);
    assert_eq!(branch(&conversation, BranchKind::Rewound), ["U three"]);
    assert_eq!(conversation.metadata.title.as_deref(), Some("old"));
    assert_eq!(conversation.damage.len(), 1);
}
