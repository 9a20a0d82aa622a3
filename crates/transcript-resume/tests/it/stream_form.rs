//! Files whose lines name no parents: the output of the SDK (`stream-json`), and plain messages.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use transcript_format::finding::Code;
use transcript_reader::Index;
use transcript_resume::items::sidechains;
use transcript_resume::request::RequestOptions;
use transcript_resume::{Decision, LiveConversation, Policy, Tree};

const SESSION: &str = "5e551011-0000-4000-8000-0000000000aa";

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1/stream");
    fs::read(folder.join(name)).unwrap()
}

fn message(kind: &str, number: u64, parent_tool_use_id: Option<&str>) -> Value {
    let content = json!([{"type": "text", "text": format!("m{number}")}]);
    json!({
        "type": kind, "message": {"role": kind, "id": format!("m{number}"), "content": content},
        "parent_tool_use_id": parent_tool_use_id, "session_id": SESSION,
        "uuid": format!("00000000-0000-4000-8000-{number:012}"),
    })
}

/// Prompts and answers in turns.
fn talk(count: u64) -> Vec<Value> {
    let kind = |number: u64| ["user", "assistant"][(number % 2) as usize];
    (0..count)
        .map(|number| message(kind(number), number, None))
        .collect()
}

fn bytes(lines: &[Value]) -> Vec<u8> {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    lines.collect::<String>().into_bytes()
}

/// The numbers of the lines on a path.
fn path(index: &Index, policy: Policy) -> Vec<u64> {
    let path = Tree::new(index, policy).path();
    let entries = path.entries.iter();
    entries
        .map(|entry| index.entry(entry.entry_no()).line())
        .collect()
}

fn codes(index: &Index) -> Vec<Code> {
    let tree = Tree::new(index, Policy::Recover);
    let findings = tree.findings(&tree.path());
    findings.iter().map(|finding| finding.code).collect()
}

/// Whether the decision is made, and how many bridges and gaps there are beside it.
fn decided(index: &Index) -> (bool, usize) {
    let decisions = Tree::new(index, Policy::Recover).path().decisions;
    let is_form = |decision: &Decision| matches!(decision, Decision::StreamForm { .. });
    let is_repair =
        |decision: &&Decision| matches!(decision, Decision::Bridge { .. } | Decision::Gap { .. });
    let repairs = decisions.iter().filter(is_repair).count();
    (decisions.iter().any(is_form), repairs)
}

#[test]
fn the_output_of_the_sdk_is_linked_in_order_by_one_decision() {
    let (_file, source, index) = crate::load(&fixture("talk.jsonl"));
    assert!(index.is_stream_form());
    assert_eq!(index.own_session(), Some(SESSION));
    // The lines of the subagent (7 to 10), and those that are not entries, are not on the path.
    let shown = [1, 2, 4, 5, 6, 11, 13, 15, 16, 17];
    assert_eq!(path(&index, Policy::Recover), shown);
    assert_eq!(decided(&index), (true, 0));
    assert_eq!(codes(&index), []);
    // A client takes each line for the start of a conversation (FILE-9).
    assert_eq!(path(&index, Policy::Vendor), [17]);

    let tree = Tree::new(&index, Policy::Recover);
    let mut bodies = transcript_reader::Bodies::new(&source);
    let request = RequestOptions::new().request(&tree, &mut bodies).unwrap();
    let roles: Vec<&str> = request
        .messages
        .iter()
        .map(|one| one.role().name())
        .collect();
    let (user, assistant) = ("user", "assistant");
    assert_eq!(roles, [user, assistant, user, assistant, user, assistant]);
    assert!(request.synthetic.is_empty() && request.omissions.is_empty());
}

#[test]
fn messages_of_a_subagent_are_below_the_call_that_started_it() {
    let (_file, _source, index) = crate::load(&fixture("talk.jsonl"));
    let tree = Tree::new(&index, Policy::Recover);
    let found = sidechains(&tree);
    assert_eq!(found.len(), 1);
    let (origin, path) = &found[0];
    assert_eq!(origin.tool_use_id.as_deref(), Some("toolu_a1"));
    let lines = path
        .entries
        .iter()
        .map(|entry| index.entry(entry.entry_no()).line());
    assert_eq!(lines.collect::<Vec<_>>(), [7, 8, 9, 10]);
    // Two that run at the same time are apart.
    let mut lines = talk(2);
    for (number, call) in [(2, "c1"), (3, "c2"), (4, "c1"), (5, "c2")] {
        lines.push(message("assistant", number, Some(call)));
    }
    lines.push(message("user", 6, None));
    let (_file, _source, index) = crate::load(&bytes(&lines));
    assert_eq!(self::path(&index, Policy::Recover), [1, 2, 7]);
    let tree = Tree::new(&index, Policy::Recover);
    let parents = tree.nodes().map(|node| tree.parent(node).node());
    let parents = parents.map(|parent| parent.map(|parent| tree.entry(parent).line()));
    let expected = [None, Some(1), None, None, Some(3), Some(4), Some(2)];
    assert_eq!(parents.collect::<Vec<_>>(), expected);
}

#[test]
fn messages_without_any_id_are_a_conversation_and_no_damage() {
    let (_file, _source, index) = crate::load(&fixture("plain.jsonl"));
    assert_eq!(path(&index, Policy::Recover), [1, 2]);
    assert_eq!((decided(&index), codes(&index)), ((true, 0), Vec::new()));
}

#[test]
fn a_line_that_names_a_parent_continues_the_output_before_it() {
    let appended = |number: u64, parent: &Value| {
        let mut next = message("user", number, None);
        next["parentUuid"] = parent["uuid"].clone();
        next["sessionId"] = json!(SESSION);
        next
    };
    let mut lines = talk(4);
    lines.push(appended(4, &lines[3]));
    let (_file, _source, index) = crate::load(&bytes(&lines));
    assert!(index.is_stream_form());
    assert_eq!((decided(&index), codes(&index)), ((true, 0), Vec::new()));
    assert_eq!(path(&index, Policy::Recover), [1, 2, 3, 4, 5]);
    // The output may go on, and the conversation be continued from an entry before its end.
    lines.push(message("assistant", 5, None));
    assert_eq!(
        path(&crate::load(&bytes(&lines)).2, Policy::Recover),
        [1, 2, 3, 4, 5, 6]
    );
    lines.push(appended(7, &lines[1]));
    assert_eq!(
        path(&crate::load(&bytes(&lines)).2, Policy::Recover),
        [1, 2, 7]
    );
    // A parent that is not there is damage.
    lines.push(appended(
        8,
        &json!({"uuid": "00000000-0000-4000-8000-000000000999"}),
    ));
    assert!(codes(&crate::load(&bytes(&lines)).2).contains(&Code::Dangling));
    // Before any output, it is a session of a client.
    lines.rotate_right(1);
    assert!(!crate::load(&bytes(&lines)).2.is_stream_form());
    // `null` ends the form: a client writes it at the start.
    let mut lines = talk(4);
    lines[0]["parentUuid"] = Value::Null;
    assert!(!crate::load(&bytes(&lines)).2.is_stream_form());
}

#[test]
fn lines_of_a_client_that_lost_their_parents_are_damaged() {
    let mut lines = talk(4);
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        let session = line.remove("session_id").unwrap();
        line.remove("parent_tool_use_id");
        line.insert("sessionId".into(), session);
    }
    for lines in [&lines[..], &lines[..1]] {
        let (_file, _source, index) = crate::load(&bytes(lines));
        assert!(!index.is_stream_form());
        assert!(codes(&index).contains(&Code::Dangling));
    }
    // One of them among lines of the other form.
    let mut mixed = talk(4);
    mixed[2] = lines[2].clone();
    assert!(!crate::load(&bytes(&mixed)).2.is_stream_form());
}

#[test]
fn input_that_names_another_session_belongs_to_the_one_around_it() {
    let mut lines = talk(6);
    lines[0]["session_id"] = json!("default");
    lines[2].as_object_mut().unwrap().remove("session_id");
    lines[2].as_object_mut().unwrap().remove("uuid");
    lines[4]["session_id"] = json!("");
    lines[4].as_object_mut().unwrap().remove("uuid");
    let (_file, _source, index) = crate::load(&bytes(&lines));
    assert_eq!(path(&index, Policy::Recover), [1, 2, 3, 4, 5, 6]);
    assert_eq!(index.own_session(), Some(SESSION));
    assert_eq!(codes(&index), []);
}

#[test]
fn sessions_in_one_file_are_apart() {
    let (_file, _source, index) = crate::load(&fixture("two-runs.jsonl"));
    assert_eq!(path(&index, Policy::Recover), [1, 2, 3, 5, 6, 7]);
    assert_eq!(codes(&index), [Code::OtherSession]);
}

#[test]
fn a_session_that_repeats_the_uuids_of_another_continues_it() {
    let lines = talk(4);
    let of_another = |mut line: Value| {
        line["session_id"] = json!("5e551011-0000-4000-8000-0000000000bb");
        line
    };
    let again: Vec<Value> = lines.iter().cloned().map(of_another).collect();
    let both = [&lines[..], &again].concat();
    let (_file, _source, index) = crate::load(&bytes(&both));
    // The bodies are those of the last lines (FILE-7).
    assert_eq!(path(&index, Policy::Recover), [5, 6, 7, 8]);
    // More messages of the second session after that, few or many.
    for more in [2, 8] {
        let next = talk(4 + more).split_off(4).into_iter().map(of_another);
        let all: Vec<Value> = both.iter().cloned().chain(next).collect();
        let (_file, _source, index) = crate::load(&bytes(&all));
        let expected: Vec<u64> = (5..=8 + more).collect();
        assert_eq!(path(&index, Policy::Recover), expected);
    }
}

#[test]
fn a_line_with_a_uuid_and_no_session_does_not_end_the_form() {
    let mut lines = talk(6);
    for at in [0, 3] {
        lines[at].as_object_mut().unwrap().remove("session_id");
    }
    let note = json!({"type": "system", "subtype": "status", "status": "compacting",
        "uuid": "00000000-0000-4000-8000-000000000200"});
    lines.insert(4, note);
    let (_file, _source, index) = crate::load(&bytes(&lines));
    assert!(index.is_stream_form());
    assert_eq!(codes(&index), []);
    assert_eq!(path(&index, Policy::Recover), [1, 2, 3, 4, 5, 6, 7]);
    // Without any output of the SDK, nothing says that such lines never had a parent.
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("session_id");
    }
    assert!(!crate::load(&bytes(&lines)).2.is_stream_form());
}

#[test]
fn a_torn_line_does_not_end_the_form() {
    let mut lines = bytes(&talk(4));
    let torn = lines[..60].to_vec();
    lines.extend(torn);
    lines.push(b'\n');
    lines.extend(bytes(&talk(6)[4..]));
    let (_file, _source, index) = crate::load(&lines);
    assert!(index.is_stream_form());
    assert_eq!(path(&index, Policy::Recover), [1, 2, 3, 4, 6, 7]);
    let lines: Vec<u64> = index.findings().iter().filter_map(|one| one.line).collect();
    assert_eq!(lines, [5]);
}

#[test]
fn a_tombstone_removes_a_message_of_the_stream_form() {
    let mut lines = talk(4);
    let removed = lines[3]["uuid"].clone();
    lines.push(json!({"type": "transcriptEngine", "v": 1, "tombstone": removed}));
    lines.push(message("assistant", 9, None));
    let (_file, _source, index) = crate::load(&bytes(&lines));
    assert!(index.is_stream_form());
    assert_eq!(path(&index, Policy::Recover), [1, 2, 3, 6]);
}

#[test]
fn a_growing_file_has_the_path_of_a_load_after_each_line() {
    let mut mixed = talk(40);
    mixed.insert(
        7,
        json!({"type": "result", "session_id": SESSION, "total_cost_usd": 1}),
    );
    mixed.insert(9, message("assistant", 100, Some("c1")));
    mixed.insert(12, message("user", 101, Some("c1")));
    mixed.insert(
        20,
        json!({"type": "system", "subtype": "init", "session_id": SESSION,
        "uuid": "00000000-0000-4000-8000-000000000200"}),
    );
    let mut unmarked = mixed.clone();
    for at in [0, 1, 15, 30] {
        unmarked[at].as_object_mut().unwrap().remove("session_id");
    }
    let mut ended = mixed.clone();
    let mut line = message("user", 300, None);
    line["parentUuid"] = json!("00000000-0000-4000-8000-000000000039");
    line["sessionId"] = json!(SESSION);
    ended.push(line);
    ended.extend(talk(44).split_off(40));
    let files = [
        "talk.jsonl",
        "plain.jsonl",
        "two-runs.jsonl",
        "no-request.jsonl",
    ]
    .map(fixture);
    let made = [&mixed, &unmarked, &ended].map(|lines| bytes(lines));
    for bytes in files.into_iter().chain(made) {
        let path = Path::new("session.jsonl");
        let mut live = LiveConversation::new(path);
        crate::live::for_each_line(&bytes, |number, line, framed| {
            live.push(framed);
            let at = format!("line {number}");
            crate::live::assert_equal(&mut live, &bytes[..line.end], path, &at);
        });
    }
}

#[test]
fn following_a_long_file_does_not_link_all_of_it_again_for_each_line() {
    let mut live = LiveConversation::new(Path::new("session.jsonl"));
    let bytes = bytes(&talk(3000));
    crate::live::for_each_line(&bytes, |_, _, framed| {
        live.push(framed);
        live.path();
    });
    assert_eq!(live.path().len(), 3000);
    assert!(live.full_rebuilds() < 10, "{}", live.full_rebuilds());
}
