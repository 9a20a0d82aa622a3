//! Each rule of `docs/client-behaviour.md` is shown by a small session of ours in `fixtures/client`:
//! the engine and the slow model, which were written apart, both send what the rule demands, and a
//! reader that ignores the rule would not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::request::{RequestOptions, recorded};
use transcript_resume::{Policy, Tree};
use transcript_testkit::model::{vendor_path, vendor_request};
use transcript_testkit::oracle::as_blocks;

use crate::client_rules::{documented, root};

fn folder() -> PathBuf {
    root().join("fixtures/client")
}

/// The names of the sessions: `LEAF-4`, or `LEAF-5-a` and `LEAF-5-b` for the sides of a rule.
fn names() -> BTreeSet<String> {
    names_of(".jsonl")
}

fn names_of(end: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder()).expect("the folder of fixtures");
    let files = files.map(|file| file.expect("a file").file_name());
    files
        .filter_map(|file| Some(file.to_str()?.strip_suffix(end)?.to_owned()))
        .collect()
}

fn session(name: &str) -> PathBuf {
    folder().join(format!("{name}.jsonl"))
}

/// `NAME.expected.json` or `NAME.without.json`. `messages` is null when the session is refused;
/// `leaf` and `recorded` are there when the rule is about them.
fn outcome(name: &str, kind: &str) -> Map<String, Value> {
    let path = folder().join(format!("{name}.{kind}.json"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match serde_json::from_slice(&text) {
        Ok(Value::Object(outcome)) => outcome,
        other => panic!("{}: {other:?}", path.display()),
    }
}

/// Returns the request of the engine for a session under policy `vendor`.
fn engine(name: &str) -> Map<String, Value> {
    let source = Source::open(&session(name)).expect("the session is readable");
    let index = Index::load(&source).expect("the session is readable");
    let mut bodies = Bodies::new(&source);
    let tree = Tree::new(&index, Policy::Vendor);
    let request = RequestOptions::new().request(&tree, &mut bodies);
    let request = request.expect("the session is readable");
    let messages = request
        .is_resumable()
        .then(|| serde_json::to_value(&request.messages).expect("messages are JSON"));
    let leaf = request.path.leaf.and_then(|leaf| index.entry(leaf).uuid());
    let recorded = recorded::check(&index, &mut bodies).expect("the session is readable");
    let recorded: Vec<&str> = recorded.iter().map(|it| it.outcome.name()).collect();
    fields(json!({
        "messages": messages,
        "leaf": leaf.map(|leaf| index.id_text(leaf)),
        "recorded": recorded,
    }))
}

/// Returns the request of the slow model for a session. It has all content as blocks, and does not read
/// recorded requests.
fn model(name: &str) -> Map<String, Value> {
    let bytes = fs::read(session(name)).expect("the session is readable");
    fields(json!({
        "messages": vendor_request(&bytes, None, None).messages,
        "leaf": vendor_path(&bytes).leaf,
    }))
}

fn fields(outcome: Value) -> Map<String, Value> {
    match outcome {
        Value::Object(fields) => fields,
        other => panic!("{other} is not an object"),
    }
}

/// The fields of `expected` in which `got` differs.
fn differences(expected: &Map<String, Value>, got: &Map<String, Value>) -> Vec<String> {
    let fields = expected.iter();
    let different = fields.filter(|(field, want)| got.get(*field) != Some(want));
    different
        .map(|(field, want)| {
            let got = got.get(field).unwrap_or(&Value::Null);
            format!("{field}\n  want {want}\n  got  {got}")
        })
        .collect()
}

/// Replaces strings in the place of content by blocks.
fn in_blocks(outcome: &mut Map<String, Value>) {
    let messages = outcome.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        message["content"] = as_blocks(&message["content"]).into();
    }
}

#[test]
fn the_engine_sends_what_each_rule_demands() {
    let mut wrong = Vec::new();
    for name in names() {
        for difference in differences(&outcome(&name, "expected"), &engine(&name)) {
            wrong.push(format!("{name}: {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_model_sends_what_each_rule_demands() {
    let mut wrong = Vec::new();
    for name in names() {
        let mut expected = outcome(&name, "expected");
        expected.remove("recorded");
        in_blocks(&mut expected);
        for difference in differences(&expected, &model(&name)) {
            wrong.push(format!("{name}: {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_reader_that_ignores_the_rule_would_send_something_else() {
    let names = names();
    assert_eq!(names_of(".expected.json"), names);
    assert_eq!(names_of(".without.json"), names);
    for name in names {
        let (expected, mut without) = (outcome(&name, "expected"), outcome(&name, "without"));
        let reader = without.remove("reader");
        let reader = reader.as_ref().and_then(Value::as_str).unwrap_or_default();
        assert!(
            !reader.is_empty(),
            "{name}: what the other reader does is missing"
        );
        // The request must differ: a reader with another leaf and the same request does no harm.
        let subject = ["recorded", "messages"];
        let subject = subject
            .iter()
            .find(|subject| expected.contains_key(**subject));
        let subject = subject.unwrap_or_else(|| panic!("{name}: nothing is expected"));
        assert!(without.contains_key(*subject), "{name}: {subject}");
        assert_ne!(expected[*subject], without[*subject], "{name} {reader}");
    }
}

/// The fixtures that the row of each rule links, or the reason why there are none.
fn linked() -> BTreeMap<String, Result<Vec<String>, String>> {
    let text = fs::read_to_string(root().join("docs/client-behaviour.md"));
    let text = text.expect("docs/client-behaviour.md is there");
    let rules = documented();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| ")?.split(" | ").collect();
        let fixtures = cells.last()?.trim_end_matches(" |");
        Some((
            rules.get_key_value(cells[0])?.0.clone(),
            fixtures.to_owned(),
        ))
    });
    rows.map(|(rule, cell)| {
        let links = cell.split("](../fixtures/client/").skip(1);
        let links: Vec<String> = links
            .map(|link| {
                link.split_once(".jsonl)")
                    .expect("a link to a session")
                    .0
                    .to_owned()
            })
            .collect();
        (
            rule,
            if links.is_empty() {
                Err(cell)
            } else {
                Ok(links)
            },
        )
    })
    .collect()
}

#[test]
fn each_rule_has_a_fixture_or_a_reason_why_not_and_each_fixture_a_rule() {
    let mut shown = BTreeSet::new();
    for (rule, fixtures) in linked() {
        match fixtures {
            Ok(fixtures) => {
                for fixture in fixtures {
                    let side = fixture.strip_prefix(&rule);
                    assert!(
                        side.is_some_and(|side| side.is_empty() || side.starts_with('-')),
                        "{rule} links {fixture}"
                    );
                    assert!(shown.insert(fixture.clone()), "{fixture} is linked twice");
                }
            }
            Err(reason) => assert!(
                reason
                    .strip_prefix("none: ")
                    .is_some_and(|reason| reason.len() > 10),
                "{rule} has neither a fixture nor a reason: {reason}"
            ),
        }
    }
    assert!(shown.len() > 100, "{} fixtures", shown.len());
    assert_eq!(
        names(),
        shown,
        "fixtures, and those that the document links"
    );
}

#[test]
fn fixtures_are_short_and_have_ids_of_their_own() {
    for name in names() {
        let bytes = fs::read(session(&name)).expect("the session is readable");
        let lines = bytes.split(|&byte| byte == b'\n').count();
        assert!(
            (3..=13).contains(&lines),
            "{name}: {lines} parts at line feeds"
        );
        let ids = String::from_utf8_lossy(&bytes);
        for id in ids.split("\"uuid\":\"").skip(1) {
            assert!(
                id.starts_with("00000000-0000-4000-8000-00000000"),
                "{name}: the id {}",
                &id[..36.min(id.len())]
            );
        }
    }
}
