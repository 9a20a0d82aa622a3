//! What `recover` brings back where a key, a line of an answer or a line of a compaction is lost.

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
    // `null` is written on purpose.
    let mut lines = session(&TALK);
    lines[3]["parentUuid"] = Value::Null;
    assert_eq!(shown(&lines, Policy::Recover).0, "a2 u3 a3");
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
fn what_names_a_lost_entry_that_a_boundary_keeps_follows_the_compaction() {
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
        // The client joins what was written up to five seconds before: not less is shown here.
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
    assert_eq!(findings, [(Code::NoId, Some(1))]);
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
