//! The entries that `recover` finds where a key, a line of an answer or a line of a compaction is lost.

use serde_json::{Value, json};
use transcript_format::finding::Code;
use transcript_reader::Bodies;
use transcript_resume::request::RequestOptions;
use transcript_resume::{Decision, Evidence, GapReason, Policy, Tree};

/// A line; `place` is its number and its minute, which is too far for the client's guess by time.
fn entry(place: usize, name: &str, parent: Option<&str>, more: &Value) -> Value {
    let mut line = json!({
        "parentUuid": parent, "isSidechain": false, "uuid": name, "sessionId": "s",
        "timestamp": format!("2026-11-20T10:{place:02}:00.000Z"),
    });
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    line
}

/// The first letter of a name is the kind: user, assistant, call, result, boundary, summary. In a
/// call or result the name of its call follows; `m` is the message of all calls.
fn session(words: &[(&str, Option<&str>)]) -> Vec<Value> {
    let lines = words.iter().enumerate().map(|(place, (name, parent))| {
        let text = json!([{"type": "text", "text": name}]);
        let more = match &name[..1] {
            "a" => {
                json!({"type": "assistant", "message": {"id": name, "model": "x", "content": text}})
            }
            "c" => {
                let call =
                    json!([{"type": "tool_use", "id": &name[1..], "name": "Bash", "input": {}}]);
                json!({"type": "assistant", "message": {"id": "m", "model": "x", "content": call}})
            }
            "r" => {
                let result =
                    json!([{"type": "tool_result", "tool_use_id": &name[1..], "content": "done"}]);
                json!({"type": "user", "message": {"role": "user", "content": result}})
            }
            "b" => json!({"type": "system", "subtype": "compact_boundary"}),
            "s" => json!({"type": "user", "isCompactSummary": true,
                "message": {"role": "user", "content": name}}),
            _ => json!({"type": "user", "message": {"role": "user", "content": name}}),
        };
        entry(place, name, *parent, &more)
    });
    lines.collect()
}

fn bytes(lines: &[Value]) -> Vec<u8> {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    lines.collect::<String>().into_bytes()
}

/// A finding: what, and the line.
type Place = (Code, Option<u64>);

/// The path under a policy, its decisions, and the findings.
fn shown(lines: &[Value], policy: Policy) -> (String, Vec<Decision>, Vec<Place>) {
    let (_file, _source, index) = crate::load(&bytes(lines));
    let tree = Tree::new(&index, policy);
    let path = tree.path();
    let names = path.entries.iter().map(|entry| {
        let entry = index.entry(entry.entry_no());
        entry.uuid().map_or("-".to_owned(), |id| index.id_text(id))
    });
    let names: Vec<String> = names.collect();
    let findings = tree.findings(&path);
    let findings = findings.iter().map(|one| (one.code, one.line)).collect();
    (names.join(" "), path.decisions, findings)
}

fn evidence(decisions: &[Decision]) -> Vec<Evidence> {
    let bridges = decisions.iter().filter_map(|decision| match decision {
        Decision::Bridge { evidence, .. } => Some(*evidence),
        _ => None,
    });
    bridges.collect()
}

const TALK: [(&str, Option<&str>); 6] = [
    ("u1", None),
    ("a1", Some("u1")),
    ("u2", Some("a1")),
    ("a2", Some("u2")),
    ("u3", Some("a2")),
    ("a3", Some("u3")),
];

#[test]
fn a_line_without_the_key_of_its_parent_has_lost_it() {
    let mut lines = session(&TALK);
    lines[3].as_object_mut().unwrap().remove("parentUuid");
    let (path, decisions, findings) = shown(&lines, Policy::Recover);
    assert_eq!(path, "u1 a1 u2 a2 u3 a3");
    assert_eq!(evidence(&decisions), [Evidence::FileOrder]);
    assert_eq!(findings, [(Code::Dangling, Some(4))]);
    // The client takes it for a root, and so does everybody where it is the first one.
    assert_eq!(shown(&lines, Policy::Vendor).0, "a2 u3 a3");
    let mut lines = session(&TALK);
    lines[0].as_object_mut().unwrap().remove("parentUuid");
    assert_eq!(shown(&lines, Policy::Recover).0, "u1 a1 u2 a2 u3 a3");
}

/// The conversation with this parent on some of its lines.
fn with_parent(parent: &Value, which: &[usize]) -> Vec<Value> {
    let mut lines = session(&TALK);
    for at in which {
        lines[*at]["parentUuid"] = parent.clone();
    }
    lines
}

#[test]
fn a_parent_of_null_is_missing_where_no_conversation_can_start() {
    let without = |which: &[usize]| with_parent(&Value::Null, which);
    // An answer follows its prompt; each line on its own, and all of them.
    for which in [&[3][..], &[1, 3, 5], &[0, 1, 2, 3, 4, 5], &[2, 3, 4, 5]] {
        let (path, decisions, findings) = shown(&without(which), Policy::Recover);
        let linked = which.iter().filter(|at| **at > 0).count();
        let expected = if which.contains(&1) || !which.contains(&2) {
            "u1 a1 u2 a2 u3 a3"
        } else {
            // A person went back to the start.
            "u2 a2 u3 a3"
        };
        assert_eq!(path, expected, "{which:?}");
        let linked = linked - usize::from(!expected.starts_with("u1"));
        assert_eq!(
            evidence(&decisions),
            vec![Evidence::FileOrder; linked],
            "{which:?}"
        );
        assert_eq!(findings.len(), linked, "{which:?}");
    }
    // A prompt can start again, and the client takes everything else for a start, too.
    assert_eq!(shown(&without(&[2]), Policy::Recover).0, "u2 a2 u3 a3");
    assert_eq!(shown(&without(&[3]), Policy::Vendor).0, "a2 u3 a3");
}

#[test]
fn a_parent_of_null_is_missing_on_what_no_person_wrote() {
    let with = |more: Value| {
        let mut lines = session(&TALK);
        let line = entry(9, "x1", None, &more);
        lines.insert(4, line);
        lines[5]["parentUuid"] = json!("x1");
        lines
    };
    let user =
        |content: &str| json!({"type": "user", "message": {"role": "user", "content": content}});
    let mut meta = user("A note.");
    meta["isMeta"] = json!(true);
    let others = [
        json!({"type": "attachment", "attachment": {"type": "todo_reminder", "content": []}}),
        json!({"type": "system", "subtype": "turn_duration", "durationMs": 5}),
        json!({"type": "system", "subtype": "stop_hook_summary"}),
        json!({"type": "system", "subtype": "local_command", "content": "done"}),
        user("[Request interrupted by user]"),
        user("<task-notification>done</task-notification>"),
        meta,
    ];
    for other in others {
        let lines = with(other.clone());
        let (path, decisions, findings) = shown(&lines, Policy::Recover);
        assert_eq!(path, "u1 a1 u2 a2 x1 u3 a3", "{other}");
        assert_eq!(evidence(&decisions), [Evidence::FileOrder], "{other}");
        assert_eq!(findings, [(Code::Dangling, Some(5))], "{other}");
        assert_eq!(shown(&lines, Policy::Vendor).0, "x1 u3 a3", "{other}");
    }
    // The prompt of a person starts again, with what the client wrote below it.
    let lines = with(user("Again."));
    assert_eq!(shown(&lines, Policy::Recover).0, "x1 u3 a3");
    // And a file may begin with what the client wrote.
    let mut lines = session(&TALK);
    let hook = json!({"type": "attachment", "attachment": {"type": "hook_success", "content": ""}});
    lines.insert(0, entry(0, "x1", None, &hook));
    lines[1]["parentUuid"] = json!("x1");
    let (path, decisions, findings) = shown(&lines, Policy::Recover);
    assert_eq!(path, "x1 u1 a1 u2 a2 u3 a3");
    assert_eq!((evidence(&decisions), findings), (vec![], vec![]));
}

#[test]
fn an_empty_id_of_a_parent_is_as_if_the_key_were_missing() {
    for which in [&[2][..], &[3], &[2, 4], &[1, 2, 3, 4, 5]] {
        let empty = with_parent(&json!(""), which);
        let mut absent = empty.clone();
        for at in which {
            absent[*at].as_object_mut().unwrap().remove("parentUuid");
        }
        let (path, decisions, findings) = shown(&empty, Policy::Recover);
        assert_eq!(path, "u1 a1 u2 a2 u3 a3", "{which:?}");
        assert_eq!(
            evidence(&decisions),
            vec![Evidence::FileOrder; which.len()],
            "{which:?}"
        );
        let of_absent = shown(&absent, Policy::Recover);
        assert_eq!((path, decisions, findings), of_absent, "{which:?}");
        // The client takes it for a root.
        let vendor = shown(&empty, Policy::Vendor).0;
        assert_eq!(vendor, shown(&absent, Policy::Vendor).0, "{which:?}");
        assert!(!vendor.starts_with("u1"), "{vendor}");
    }
}

#[test]
fn a_lost_parent_that_is_there_without_its_type_and_its_parent_is_not_a_start() {
    let mut lines = session(&TALK);
    let line = lines[2].as_object_mut().unwrap();
    line.remove("type");
    line.remove("parentUuid");
    let (path, decisions, _) = shown(&lines, Policy::Recover);
    assert_eq!(path, "u1 a1 a2 u3 a3");
    assert_eq!(evidence(&decisions), [Evidence::FileOrder]);
}

#[test]
fn the_other_lines_of_an_answer_are_kept_when_the_line_of_its_first_call_is_unusable() {
    let words = [
        ("u1", None),
        ("cx", Some("u1")),
        ("cy", Some("cx")),
        ("cz", Some("cy")),
        ("rz", Some("cz")),
        ("ry", Some("cy")),
        ("rx", Some("cx")),
        ("a1", Some("rx")),
    ];
    let without_body = |lines: &mut Vec<Value>| {
        let line = lines[1].as_object_mut().unwrap();
        line.remove("message");
    };
    let without_line = |lines: &mut Vec<Value>| drop(lines.remove(1));
    for damage in [without_body, without_line as fn(&mut Vec<Value>)] {
        let mut lines = session(&words);
        damage(&mut lines);
        let (path, decisions, _) = shown(&lines, Policy::Recover);
        assert_eq!(path, "u1 cy cz rz ry rx a1");
        assert!(evidence(&decisions).contains(&Evidence::Message));
    }
}

/// A compaction that preserves `u3 a3`; the conversation continues from the last of them.
fn compacted(metadata: Value) -> Vec<Value> {
    let words: Vec<_> = TALK
        .into_iter()
        .chain([
            ("b", None),
            ("s", Some("b")),
            ("u4", Some("a3")),
            ("a4", Some("u4")),
        ])
        .collect();
    let mut lines = session(&words);
    lines[6]["logicalParentUuid"] = json!("a3");
    lines[6]["compactMetadata"] = metadata;
    lines
}

fn segment() -> Value {
    json!({"preservedSegment": {"headUuid": "u3", "anchorUuid": "s", "tailUuid": "a3"}})
}

fn list() -> Value {
    json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["u3", "a3"]}})
}

#[test]
fn child_of_a_lost_preserved_entry_follows_the_compaction() {
    for metadata in [segment(), list()] {
        let sound = compacted(metadata.clone());
        assert_eq!(shown(&sound, Policy::Recover).0, "b s u3 a3 u4 a4");
        // The tail: what is left of the kept entries, and the summary, come back.
        let mut lines = sound.clone();
        lines.remove(5);
        let (path, decisions, _) = shown(&lines, Policy::Recover);
        assert_eq!(path, "b s u3 u4 a4", "{metadata}");
        assert_eq!(evidence(&decisions), [Evidence::Kept], "{metadata}");
        // The head.
        let mut lines = sound.clone();
        lines.remove(4);
        assert_eq!(
            shown(&lines, Policy::Recover).0,
            "b s a3 u4 a4",
            "{metadata}"
        );
        // The summary, where that is what the next entry names.
        let mut lines = sound;
        lines[8]["parentUuid"] = json!("s");
        lines.remove(7);
        assert_eq!(
            shown(&lines, Policy::Recover).0,
            "b u3 a3 u4 a4",
            "{metadata}"
        );
    }
}

#[test]
fn a_summary_whose_boundary_is_lost_follows_what_the_client_puts_before_it() {
    for metadata in [segment(), list(), json!({})] {
        let mut lines = compacted(metadata.clone());
        lines[8]["parentUuid"] = json!("s");
        lines.remove(6);
        // Nothing proves that the history belongs before it, and nothing was written near it.
        let (path, decisions, _) = shown(&lines, Policy::Recover);
        assert_eq!(path, "s u4 a4", "{metadata}");
        let is_gap = |one: &Decision| {
            matches!(
                one,
                Decision::Gap {
                    reason: GapReason::Boundary,
                    ..
                }
            )
        };
        assert!(decisions.iter().any(is_gap), "{metadata}");
        // The client joins entries written up to five seconds before: not fewer are shown here.
        lines[6]["timestamp"] = json!("2026-11-20T10:05:04.000Z");
        let (path, decisions, _) = shown(&lines, Policy::Recover);
        assert_eq!(path, "u1 a1 u2 a2 u3 a3 s u4 a4", "{metadata}");
        assert_eq!(shown(&lines, Policy::Vendor).0, path, "{metadata}");
        assert_eq!(evidence(&decisions), [Evidence::Time], "{metadata}");
    }
}

#[test]
fn a_cut_counts_the_messages_that_compactions_have_summed_up() {
    let hidden = |lines: &[Value]| {
        let cuts = shown(lines, Policy::Recover)
            .1
            .into_iter()
            .filter_map(|one| match one {
                Decision::Cut { hidden, .. } => hidden,
                _ => None,
            });
        cuts.collect::<Vec<_>>()
    };
    assert_eq!(hidden(&compacted(segment())), [4]);
    let mut plain = compacted(json!({}));
    plain[8]["parentUuid"] = json!("s");
    assert_eq!(hidden(&plain), [6]);
    // A boundary that does not name the entries before it, and one after another.
    plain[6]["logicalParentUuid"] = Value::Null;
    assert_eq!(hidden(&plain), [6]);
    let mut more = session(&[("b2", None), ("s2", Some("b2")), ("u5", Some("s2"))]);
    more[0]["logicalParentUuid"] = json!("a4");
    plain.extend(more);
    assert_eq!(hidden(&plain), [9]);
}

#[test]
fn messages_without_ids_are_a_conversation_in_file_order() {
    let mut lines = session(&TALK);
    for line in &mut lines {
        for key in ["uuid", "parentUuid", "sessionId"] {
            line.as_object_mut().unwrap().remove(key);
        }
    }
    let (path, _, findings) = shown(&lines, Policy::Recover);
    assert_eq!(path, "- - - - - -");
    // As in the stream form, which has none, nothing is missing.
    assert_eq!(findings, []);
    // One among entries that are linked past it changes nothing, and is named.
    let mut mixed = session(&TALK);
    mixed.insert(3, lines[4].clone());
    let (path, _, findings) = shown(&mixed, Policy::Recover);
    assert_eq!(path, "u1 a1 u2 a2 u3 a3");
    assert!(findings.contains(&(Code::NoId, Some(4))), "{findings:?}");
}

#[test]
fn damage_in_the_name_of_a_session_or_a_model_does_not_hide_what_is_known() {
    // The session of a result, or of a line of an answer, is another one by a flipped bit.
    for damaged in ["r1", "c2"] {
        let mut lines = session(&[("u1", None), ("c1", Some("u1")), (damaged, Some("lost"))]);
        for line in &mut lines {
            line["sessionId"] = "5a3bb1c8-c3ce-466e-b487-24212cbf1da1".into();
        }
        lines[2]["sessionId"] = "5a3bb1c8-c3ce-466e-b487-24216cbf1da1".into();
        let (path, decisions, _) = shown(&lines, Policy::Recover);
        assert!(path.contains(damaged), "{path}");
        let is_foreign = |decision: &Decision| matches!(decision, Decision::Foreign { .. });
        assert!(!decisions.iter().any(is_foreign), "{decisions:?}");
    }

    // A hole in the last line, in the name of the model.
    let mut text = bytes(&session(&[
        ("u1", None),
        ("a1", Some("u1")),
        ("a2", Some("a1")),
    ]));
    let name = b"\"model\":\"x\"";
    let long = b"\"model\":\"claude\"".to_vec();
    let mut at = 0;
    while let Some(found) = text[at..].windows(name.len()).position(|part| part == name) {
        text.splice(at + found..at + found + name.len(), long.iter().copied());
        at += found + long.len();
    }
    text[at - 4..at - 2].fill(0);
    let (_file, source, index) = crate::load(&text);
    let tree = Tree::new(&index, Policy::Recover);
    assert!(index.entries().any(|line| line.is_salvaged()));
    let request = RequestOptions::new()
        .request(&tree, &mut Bodies::new(&source))
        .unwrap();
    assert_eq!(request.model.as_deref(), Some("claude"));
}

/// A conversation with `more` below its first answer, after three turns.
fn left_behind(more: &[Value]) -> Vec<Value> {
    let mut lines = session(&TALK);
    lines.extend_from_slice(more);
    lines
}

fn below(uuid: &str, parent: &str, kind: &str, content: impl Into<Value>) -> Value {
    let content = content.into();
    let mut line = session(&[(uuid, Some(parent))]).remove(0);
    line["type"] = json!(kind);
    line["message"] = json!({"role": kind, "content": content});
    line
}

#[test]
fn a_branch_that_no_person_started_follows_what_it_would_cut_off() {
    let notification =
        json!("<task-notification>\n<status>completed</status>\n</task-notification>");
    let mut by_meta = below("n1", "a1", "user", json!("Go on."));
    by_meta["isMeta"] = json!(true);
    let mut by_origin = below("n1", "a1", "user", json!("Go on."));
    by_origin["origin"] = json!({"kind": "auto-continuation"});
    let queued = [
        json!({"type": "queue-operation", "operation": "dequeue"}),
        below("n1", "a1", "user", json!("Go on.")),
    ];
    let tagged = |text: &str| vec![below("n1", "a1", "user", json!(text))];
    let of_client = |more: Value| vec![entry(9, "n1", Some("a1"), &more)];
    let starts = [
        vec![below("n1", "a1", "user", notification)],
        tagged("<teammate-message teammate_id=\"bob\">Done.</teammate-message>"),
        tagged("<bash-notification>\n<shell-id>1</shell-id>\n</bash-notification>"),
        tagged("<local-command-stdout>Done.</local-command-stdout>"),
        of_client(json!({"type": "attachment",
            "attachment": {"type": "queued_command", "prompt": "Go on.", "commandMode": "prompt"}})),
        of_client(json!({"type": "attachment",
            "attachment": {"type": "hook_additional_context", "content": ["x"]}})),
        of_client(json!({"type": "system", "subtype": "stop_hook_summary"})),
        of_client(json!({"type": "system", "subtype": "api_error"})),
        vec![below(
            "n1",
            "a1",
            "user",
            json!("Continue from where you left off."),
        )],
        vec![by_meta],
        vec![by_origin],
        queued.to_vec(),
    ];
    for start in starts {
        let answer = below(
            "a9",
            "n1",
            "assistant",
            json!([{"type": "text", "text": "Done."}]),
        );
        let lines = left_behind(&[start.clone(), vec![answer]].concat());
        let (path, decisions, findings) = shown(&lines, Policy::Recover);
        assert_eq!(path, "u1 a1 u2 a2 u3 a3 n1 a9", "{start:?}");
        assert_eq!(evidence(&decisions), [Evidence::NoRewind], "{start:?}");
        assert!(
            findings.iter().any(|(code, _)| *code == Code::Stranded),
            "{findings:?}"
        );
        assert_eq!(shown(&lines, Policy::Vendor).0, "u1 a1 n1 a9", "{start:?}");
    }
    // The entries that would be truncated are below it already, as the lines are in the wrong order.
    let prompt = below("n1", "a1", "user", "Continue from where you left off.");
    let answer = below(
        "a9",
        "n1",
        "assistant",
        json!([{"type": "text", "text": "Done."}]),
    );
    let lines = left_behind(&[answer, prompt]);
    assert_eq!(shown(&lines, Policy::Recover).0, "u1 a1 n1 a9");
    // A person who types there has gone back, whatever the client writes before and after it.
    let typed = below("n1", "a1", "user", json!("Let us try something else."));
    assert_eq!(shown(&left_behind(&[typed]), Policy::Recover).0, "u1 a1 n1");
    let context = json!({"type": "attachment",
        "attachment": {"type": "hook_additional_context", "content": ["x"]}});
    let lines = [
        entry(9, "x1", Some("a1"), &context),
        below("n1", "x1", "user", json!("Let us try something else.")),
        entry(10, "x2", Some("n1"), &context),
        below(
            "a9",
            "x2",
            "assistant",
            json!([{"type": "text", "text": "Yes."}]),
        ),
    ];
    let (path, decisions, _) = shown(&left_behind(&lines), Policy::Recover);
    assert_eq!(path, "u1 a1 x1 n1 x2 a9");
    assert!(evidence(&decisions).is_empty(), "{decisions:?}");
    let mut quoted = below("n1", "a1", "user", json!("<task-notification> is what?"));
    quoted["origin"] = json!({"kind": "human"});
    assert_eq!(
        shown(&left_behind(&[quoted]), Policy::Recover).0,
        "u1 a1 n1"
    );
    // The prompt of a branch is unreadable: a person may have written it.
    let unreadable = below("n1", "a1", "user", Value::Null);
    let answer = below(
        "a9",
        "n1",
        "assistant",
        json!([{"type": "text", "text": "Yes."}]),
    );
    let lines = left_behind(&[unreadable, answer]);
    assert_eq!(shown(&lines, Policy::Recover).0, "u1 a1 a9");
}

#[test]
fn a_branch_from_before_a_compaction_follows_what_it_would_cut_off() {
    let mut boundary = session(&[("b1", None)]);
    boundary[0]["logicalParentUuid"] = json!("a2");
    let notification = "<task-notification>done</task-notification>";
    let text = json!([{"type": "text", "text": "Done."}]);
    let lines = [
        &session(&TALK)[..4],
        &boundary,
        &session(&[("s1", Some("b1")), ("u3", Some("s1")), ("a3", Some("u3"))]),
        &[
            below("n1", "a1", "user", json!(notification)),
            below("a9", "n1", "assistant", text.clone()),
        ],
    ]
    .concat();
    let (path, decisions, findings) = shown(&lines, Policy::Recover);
    assert_eq!(path, "b1 s1 u3 a3 n1 a9");
    assert_eq!(evidence(&decisions), [Evidence::NoRewind]);
    assert!(
        findings.contains(&(Code::Stranded, Some(9))),
        "{findings:?}"
    );
    assert_eq!(shown(&lines, Policy::Vendor).0, "u1 a1 n1 a9");
    // Not what follows an entry that the compaction kept, or a compaction that was not completed.
    let mut kept = lines.clone();
    kept[4]["compactMetadata"] =
        json!({"preservedMessages": {"uuids": ["a2"], "anchorUuid": "s1"}});
    let mut note = below("n1", "a2", "user", json!("A note."));
    note["isMeta"] = json!(true);
    let kept = [&kept[..6], &[note.clone()]].concat();
    for lines in [kept, [&lines[..5], &[note]].concat()] {
        let (_, decisions, findings) = shown(&lines, Policy::Recover);
        assert!(evidence(&decisions).is_empty(), "{decisions:?}");
        assert!(
            findings.iter().all(|(code, _)| *code != Code::Stranded),
            "{findings:?}"
        );
    }
    // A person may go back there.
    let typed = below("n1", "a1", "user", json!("Let us try something else."));
    let lines = [&lines[..8], &[typed]].concat();
    assert_eq!(shown(&lines, Policy::Recover).0, "u1 a1 n1");
}

#[test]
fn late_entries_of_an_abandoned_branch_are_not_the_conversation() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
    let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "out"}]);
    let calls = below("a2", "u2", "assistant", json!([call("c1"), call("c2")]));
    let first = below("r1", "a2", "user", result("c1"));
    let start = &session(&TALK)[..3];
    let typed = below("u3", "a1", "user", json!("Something else."));
    let answer = below(
        "a3",
        "u3",
        "assistant",
        json!([{"type": "text", "text": "Yes."}]),
    );
    let late = below("r2", "r1", "user", result("c2"));
    let lines = [start, &[calls, first, typed, answer, late.clone()]].concat();
    assert_eq!(shown(&lines, Policy::Recover).0, "u1 a1 u3 a3");
    assert_eq!(shown(&lines, Policy::Vendor).0, "u1 a1 u2 a2 r1 r2");
    // Its answer is on that branch as well, and a person may go back there.
    let more = below(
        "a4",
        "r2",
        "assistant",
        json!([{"type": "text", "text": "So."}]),
    );
    let lines = [&lines[..], &[more]].concat();
    assert_eq!(shown(&lines, Policy::Recover).0, "u1 a1 u3 a3");
    let back = below("u5", "a4", "user", json!("Go on here."));
    let lines = [&lines[..], &[back]].concat();
    assert_eq!(shown(&lines, Policy::Recover).0, "u1 a1 u2 a2 r1 r2 a4 u5");
}

/// The roles and texts of the request.
fn requested(lines: &[Value], policy: Policy) -> String {
    let (_file, source, index) = crate::load(&bytes(lines));
    let tree = Tree::new(&index, policy);
    let request = RequestOptions::new()
        .request(&tree, &mut Bodies::new(&source))
        .unwrap();
    let messages = request.messages.iter().map(|message| {
        let blocks: Vec<String> = message
            .blocks()
            .iter()
            .map(|block| match block.text_field() {
                Some(text) => text.trim_end().to_owned(),
                None => format!("{:?}", block.kind()),
            })
            .collect();
        format!("{}: {}", message.role().name(), blocks.join(" "))
    });
    messages.collect::<Vec<_>>().join(" | ")
}

#[test]
fn answers_with_one_id_are_distinguished_by_the_lines_between_them() {
    let named = |mut line: Value, id: &str| {
        line["message"]["id"] = json!(id);
        line
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]);
    let result = |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "out"}]);
    let start = session(&[("u1", None)]);
    let talk = |id: &str| {
        [
            start.clone(),
            vec![
                named(below("a1", "u1", "assistant", text("look")), id),
                named(below("c1", "a1", "assistant", call("1")), id),
                below("r1", "c1", "user", result("1")),
                named(below("a2", "r1", "assistant", text("found")), id),
                below("u2", "a2", "user", json!("two")),
                named(below("a3", "u2", "assistant", text("three")), id),
                below("u3", "a3", "user", json!("four")),
                named(below("a4", "u3", "assistant", text("five")), id),
            ],
        ]
        .concat()
    };
    let apart = "user: u1 | assistant: look ToolUse | user: ToolResult | assistant: found \
                 | user: two | assistant: three | user: four | assistant: five";
    assert_eq!(requested(&talk("constant"), Policy::Recover), apart);
    // The client goes by the id alone, past the result and the prompts after it.
    let merged = "user: u1 | assistant: look found three five ToolUse | user: ToolResult two four";
    assert_eq!(requested(&talk("constant"), Policy::Vendor), merged);
    // An id that no two answers share, or one request: the results of parallel calls stand between
    // the lines of one answer. A prompt does not.
    let one = "user: u1 | assistant: look found ToolUse | user: ToolResult two | \
               assistant: three | user: four | assistant: five";
    assert_eq!(
        requested(&talk("msg_01AbCdEfGhJkLmNpQrStUvWx"), Policy::Recover),
        one
    );
    let mut lines = talk("constant");
    for at in [1, 2, 4] {
        lines[at]["requestId"] = json!("req_1");
    }
    assert_eq!(requested(&lines, Policy::Recover), one);
    // Another request is another answer, whatever the id.
    let with_requests = |mut lines: Vec<Value>| {
        for (at, request) in [(1, 1), (2, 1), (4, 2), (6, 3), (8, 4)] {
            lines[at]["requestId"] = json!(format!("req_{request}"));
        }
        lines
    };
    for id in ["constant", "msg_01AbCdEfGhJkLmNpQrStUvWx"] {
        let lines = with_requests(talk(id));
        assert_eq!(requested(&lines, Policy::Recover), apart, "{id}");
    }
    // Without an id: the requests, or the prompts and results, say where an answer begins.
    let mut lines = talk("");
    for line in &mut lines {
        if line["type"] == "assistant" {
            line["message"]["id"] = Value::Null;
            line["requestId"] = Value::Null;
        }
    }
    assert_eq!(requested(&lines, Policy::Recover), apart);
    assert_eq!(requested(&with_requests(lines), Policy::Recover), apart);
}

#[test]
fn entries_that_a_second_compaction_keeps_lead_to_the_first_of_them() {
    let boundary = |uuid: &str, parent: &str, head: &str, tail: &str, anchor: &str| {
        let mut line = session(&[(uuid, None)]).remove(0);
        line["type"] = json!("system");
        line["subtype"] = json!("compact_boundary");
        line["logicalParentUuid"] = json!(parent);
        line["compactMetadata"] =
            json!({"preservedSegment": {"headUuid": head, "tailUuid": tail, "anchorUuid": anchor}});
        line
    };
    let hook = |uuid: &str, parent: &str| {
        let mut line = session(&[(uuid, Some(parent))]).remove(0);
        line["type"] = json!("system");
        line["subtype"] = json!("stop_hook_summary");
        line
    };
    let first = session(&[
        ("u1", None),
        ("a1", Some("u1")),
        ("u2", Some("a1")),
        ("a2", Some("u2")),
    ]);
    let lines = [
        &first[..],
        &[hook("h1", "a2"), boundary("b1", "h1", "a2", "h1", "s1")],
        &session(&[("s1", Some("b1")), ("u3", Some("s1")), ("a3", Some("u3"))]),
        // The client writes old entries again, and names the last of them as the next parent.
        &first[..3],
        &[hook("h2", "u2"), boundary("b2", "h2", "a3", "h2", "s2")],
        &session(&[("s2", Some("b2")), ("u4", Some("s2")), ("a4", Some("u4"))]),
    ]
    .concat();
    assert_eq!(shown(&lines, Policy::Recover).0, "b2 s2 a3 h2 u4 a4");
}

#[test]
fn each_chapter_of_several_compactions_in_one_process_ends_with_what_its_boundary_keeps() {
    let boundary = |uuid: &str, logical: &str, kept: &str, summary: &str| {
        let mut line = session(&[(uuid, None)]).remove(0);
        line["logicalParentUuid"] = json!(logical);
        line["compactMetadata"] = json!({
            "preservedSegment": {"headUuid": kept, "tailUuid": kept, "anchorUuid": summary},
        });
        line
    };
    let hook = |uuid: &str, parent: &str| {
        let more = json!({"type": "system", "subtype": "stop_hook_summary"});
        entry(9, uuid, Some(parent), &more)
    };
    let first = session(&[
        ("u1", None),
        ("a1", Some("u1")),
        ("u2", Some("a1")),
        ("a2", Some("u2")),
    ]);
    for has_hook in [true, false] {
        let mut lines = first.clone();
        let mut end = "a2".to_owned();
        for at in 1..=3 {
            let kept = end.clone();
            if at > 1 {
                // The client writes old entries again, and names the last of them.
                lines.extend_from_slice(&first[..3]);
                end = "u2".to_owned();
            }
            if has_hook {
                lines.push(hook(&format!("h{at}"), &end));
                end = format!("h{at}");
            }
            let named = |kind: &str, at: usize| format!("{kind}{at}");
            let (b, s) = (named("b", at), named("s", at));
            lines.push(boundary(&b, &end, &kept, &s));
            let (u, a) = (named("u", at + 2), named("a", at + 2));
            let talk = [
                (s.as_str(), Some(b.as_str())),
                (u.as_str(), Some(s.as_str())),
                (a.as_str(), Some(u.as_str())),
            ];
            lines.extend(session(&talk));
            end = a;
        }
        let (_file, _source, index) = crate::load(&bytes(&lines));
        let tree = Tree::new(&index, Policy::Recover);
        let context = tree.path();
        let story = tree.unspliced().story(&context);
        let names: Vec<String> = story
            .path
            .entries
            .iter()
            .filter_map(|entry| Some(index.id_text(index.entry(entry.entry_no()).uuid()?)))
            .filter(|name| name.starts_with(['u', 'a', 's']))
            .collect();
        let all = "u1 a1 u2 a2 s1 u3 a3 s2 u4 a4 s3 u5 a5";
        assert_eq!(names.join(" "), all, "hook: {has_hook}");
    }
}

/// A conversation in which each turn makes the calls `call_0`, `call_1` and so on, as the client
/// writes parallel calls: each result is below the line of its own call.
fn turns_with_equal_calls(turns: usize, calls: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut last: Option<String> = None;
    for turn in 0..turns {
        let prompt = format!("u{turn}");
        lines.extend(session(&[(&prompt, last.as_deref())]));
        let mut above = prompt;
        for call in 0..calls {
            let id = format!("call_{call}");
            let (line, result) = (format!("c{turn}{call}"), format!("r{turn}{call}"));
            let block = json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {}}]);
            let mut answer = below(&line, &above, "assistant", block);
            answer["message"]["id"] = json!(format!("chat-{turn}"));
            lines.push(answer);
            let block = json!([{"type": "tool_result", "tool_use_id": id, "content": result}]);
            lines.push(below(&result, &line, "user", block));
            (above, last) = (line, Some(result));
        }
    }
    lines
}

#[test]
fn a_result_belongs_to_the_call_that_its_parent_makes_where_ids_repeat() {
    for calls in [1, 2, 3] {
        let lines = turns_with_equal_calls(3, calls);
        let (path, ..) = shown(&lines, Policy::Recover);
        let expected: Vec<String> = (0..3)
            .flat_map(|turn| {
                let named = move |kind| (0..calls).map(move |call| format!("{kind}{turn}{call}"));
                std::iter::once(format!("u{turn}"))
                    .chain(named("c"))
                    .chain(named("r"))
            })
            .collect();
        assert_eq!(path, expected.join(" "));
    }
    // A branch that was left has equal ids as well: its results are not those of the conversation.
    let mut lines = turns_with_equal_calls(2, 2);
    let other = turns_with_equal_calls(1, 2);
    lines.extend(other.into_iter().map(|mut line| {
        for key in ["uuid", "parentUuid"] {
            if let Some(id) = line[key].as_str() {
                line[key] = json!(format!("{id}x"));
            }
        }
        line
    }));
    let (path, ..) = shown(&lines, Policy::Recover);
    assert_eq!(path, "u0x c00x c01x r00x r01x");
}

#[test]
fn answer_of_a_subagent_is_not_that_of_the_conversation_with_the_same_id() {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let call = json!([{"type": "tool_use", "id": "1", "name": "Task", "input": {}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "1", "content": "out"}]);
    let of_agent = |mut line: Value| {
        line["isSidechain"] = json!(true);
        line
    };
    let mut prompt = of_agent(below("x1", "u1", "user", json!("sub")));
    prompt["parentUuid"] = Value::Null;
    let mut lines = [
        &session(&[("u1", None)])[..],
        &[
            below("c1", "u1", "assistant", call),
            prompt,
            of_agent(below("y1", "x1", "assistant", text("of the agent"))),
            below("r1", "c1", "user", result),
            below("a1", "r1", "assistant", text("done")),
        ],
    ]
    .concat();
    for line in &mut lines {
        if line["type"] == json!("assistant") {
            line["message"]["id"] = json!("constant");
        }
    }
    let expected = "user: u1 | assistant: ToolUse | user: ToolResult | assistant: done";
    assert_eq!(requested(&lines, Policy::Recover), expected);
    // The client goes by the id, and so shows more messages; they do not count for the floor.
    lines[5]["parentUuid"] = Value::Null;
    let (path, decisions, _) = shown(&lines, Policy::Recover);
    assert_eq!(path, "u1 c1 r1 a1");
    assert_eq!(evidence(&decisions).len(), 1);
}

#[test]
fn a_prompt_from_the_queue_separates_two_answers_with_one_id() {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let queued = json!({"type": "attachment",
        "attachment": {"type": "queued_command", "prompt": "more", "commandMode": "prompt"}});
    let mut lines = [
        &session(&[("u1", None)])[..],
        &[
            below("a1", "u1", "assistant", text("one")),
            entry(9, "q1", Some("a1"), &queued),
            below("a2", "q1", "assistant", text("two")),
        ],
    ]
    .concat();
    for line in &mut lines {
        if line["type"] == json!("assistant") {
            line["message"]["id"] = json!("constant");
        }
    }
    let request = requested(&lines, Policy::Recover);
    let parts: Vec<&str> = request.split(" | ").collect();
    assert_eq!(parts.len(), 4, "{request}");
    assert_eq!((parts[1], parts[3]), ("assistant: one", "assistant: two"));
    assert!(parts[2].contains("more"), "{request}");
}
