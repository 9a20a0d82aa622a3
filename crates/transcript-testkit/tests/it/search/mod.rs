//! The slow model of the search, by hand; and the search itself against it.

mod busy;
mod compare;
mod external_rules;
mod walk;

use std::path::Path;
use std::{fs, io};

use compare::QueryCounts;
use external_rules::Reader;
use serde_json::{Value, json};
use transcript_testkit::model::search::{Hit, Query, Store};
use walk::walk;

const ID: &str = "3f2a7c1e-0000-4000-8000-000000000001";
const OTHER: &str = "9b1d4e2f-0000-4000-8000-000000000002";

fn entry(kind: &str, uuid: &str, parent: Option<&str>, content: &Value) -> Value {
    json!({
        "parentUuid": parent, "isSidechain": false, "sessionId": ID, "type": kind, "uuid": uuid,
        "message": {"role": kind, "model": "claude-opus-5-5", "content": content},
        "timestamp": "2026-11-20T10:00:00.000Z", "gitBranch": "main",
    })
}

fn lines(entries: &[Value]) -> String {
    let lines: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
    // `json` sorts the keys.
    lines.replace("\"1\"", "\"z\"").replace("\"2\"", "\"a\"")
}

/// A store of one session with a call, its result in a file, a rewound prompt and a title.
fn write_store(root: &Path) -> io::Result<()> {
    let project = root.join("-home-dev-work");
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash",
        "input": {"1": "Grep Café", "2": [{"key": "two\nlines"}], "file_path": "/src/Main.rs"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": true,
        "content": [{"type": "text", "text": "not"}, {"type": "text", "text": "found"}]}]);
    let blocks = json!([{"type": "thinking", "thinking": "alpha", "signature": "beta"},
        {"type": "text", "text": "gamma alpha"}]);
    let session = [
        entry("user", "u1", None, &json!("Where is the café?")),
        entry("assistant", "a1", Some("u1"), &call),
        entry("user", "r1", Some("a1"), &result),
        entry("user", "u2", Some("r1"), &json!("rewound question")),
        entry("assistant", "a2", Some("r1"), &blocks),
        json!({"type": "ai-title", "aiTitle": "C++ in Straße", "sessionId": ID}),
    ];
    fs::create_dir_all(project.join(ID).join("tool-results"))?;
    fs::write(project.join(format!("{ID}.jsonl")), lines(&session))?;
    let stored = b"whole \xff result";
    fs::write(project.join(ID).join("tool-results/toolu_1.txt"), stored)?;
    // A fork that keeps the uuids.
    let fork = lines(&session[..3]).replace(ID, OTHER);
    fs::write(project.join(format!("{OTHER}.jsonl")), fork)
}

fn query(text: &str) -> Query {
    Query::parse(text).expect("a good query")
}

fn hits(text: &str) -> Vec<Hit> {
    let folder = tempfile::tempdir().expect("a folder");
    write_store(folder.path()).expect("a store");
    let store = Store::read(folder.path(), &Reader);
    store.search(&query(text))
}

/// Returns uuid, field and the first match of each hit.
fn found(text: &str) -> Vec<(String, &'static str, String)> {
    let mut found = Vec::new();
    for hit in hits(text) {
        let places = query(text).places(&hit.text).concat();
        let (from, to) = places.first().copied().unwrap_or_default();
        let matched = hit.text.chars().skip(from).take(to - from).collect();
        found.push((hit.uuid.unwrap_or_default(), hit.field, matched));
    }
    found.sort();
    found
}

fn one(uuid: &str, field: &'static str, matched: &str) -> Vec<(String, &'static str, String)> {
    vec![(uuid.to_owned(), field, matched.to_owned())]
}

#[test]
fn the_model_folds_case_and_diacritics_only_if_the_term_has_none() {
    let (prompt, call) = (one("u1", "prompt", "café"), one("a1", "tool_input", "Café"));
    assert_eq!(found("cafe"), [call.clone(), prompt.clone()].concat());
    assert_eq!(found("café"), [call.clone(), prompt.clone()].concat());
    assert_eq!(found("Cafe"), call);
    assert_eq!(found("CAFE"), []);
    assert_eq!(found("/caf./"), prompt);
    assert_eq!(found("/caf./i").len(), 2);
    assert_eq!(found("c++"), one("", "title", "C++"));
    assert_eq!(found("strasse"), []);
    assert_eq!(found("strass"), []);
}

#[test]
fn the_model_joins_strings_in_the_order_of_the_text() {
    assert_eq!(found("\"café\ntwo\""), one("a1", "tool_input", "Café\ntwo"));
    assert_eq!(
        found("\"not\nfound\""),
        one("r1", "tool_result", "not\nfound")
    );
    assert_eq!(found("/^lines$/"), one("a1", "tool_input", "lines"));
}

#[test]
fn the_model_looks_for_words_in_all_blocks_of_an_entry() {
    assert_eq!(found("alpha gamma"), one("a2", "text", "alpha"));
    assert_eq!(found("alpha gamma in:thinking"), []);
    assert_eq!(found("alpha -gamma"), []);
    assert_eq!(
        found("alpha -gamma in:thinking"),
        one("a2", "thinking", "alpha")
    );
    assert_eq!(
        found("alpha -beta -in:text"),
        one("a2", "thinking", "alpha")
    );
}

#[test]
fn the_model_knows_branches_and_calls() {
    assert_eq!(found("live:false"), one("u2", "prompt", ""));
    assert_eq!(found("branch:rewound"), one("u2", "prompt", ""));
    assert_eq!(found("question"), one("u2", "prompt", "question"));
    assert_eq!(
        found("tool:bash error:true found"),
        one("r1", "tool_result", "found")
    );
    assert_eq!(
        found("path:MAIN.rs whole"),
        one("r1", "tool_result", "whole")
    );
    assert_eq!(found("role:tool found"), one("r1", "tool_result", "found"));
    assert_eq!(found("role:user found"), []);
    assert_eq!(
        found("since:2026-11-20 until:2026-11-21 gamma"),
        one("a2", "text", "gamma")
    );
    assert_eq!(found("since:2026-11-21 gamma"), []);
    assert_eq!(
        found("project:/home/dev/work model:OPUS branch:main gamma").len(),
        1
    );
}

#[test]
fn the_model_names_copies_after_the_hit() {
    let [hit] = hits("the café").try_into().expect("one hit");
    assert_eq!(
        (hit.session.as_str(), hit.line, hit.offset),
        (ID, Some(1), 0)
    );
    let names: Vec<_> = hit
        .also
        .iter()
        .map(|(session, _, line, uuid)| (&**session, *line, uuid.as_deref()))
        .collect();
    assert_eq!(names, [(OTHER, Some(1), Some("u1"))]);
    // The stored result is a copy of its entry.
    let [hit] = hits("role:tool /./").try_into().expect("one hit");
    assert_eq!((&*hit.text, hit.stored), ("not\nfound", None));
    assert_eq!(hit.also.len(), 1);
    let [hit] = hits("whole").try_into().expect("one hit");
    assert!(hit.stored.is_some() && hit.also.is_empty());
    assert_eq!(
        (hit.line, hit.uuid.as_deref(), hit.block),
        (Some(3), Some("r1"), Some(0))
    );
}

#[test]
fn the_model_knows_the_places_of_a_term() {
    let places = |text: &str, of: &str| query(text).places(of).concat();
    // A mark belongs to the character before it.
    assert_eq!(places("cafe", "a cafe\u{301}s Café"), [(2, 7), (9, 13)]);
    assert_eq!(places("e\u{301}", "cafe\u{301}"), [(3, 5)]);
    assert_eq!(places("aa", "aaa"), [(0, 2), (1, 3)]);
    assert_eq!(places("/é./", "éééé"), [(0, 2), (2, 4)]);
}

#[test]
fn the_model_refuses_bad_queries() {
    for query in [
        "",
        " ",
        "-a",
        "\"a",
        "\"a\"b",
        "\"\"",
        "in:nothing",
        "/(/",
        "live:maybe",
        "since:soon",
    ] {
        assert!(Query::parse(query).is_none(), "{query}");
    }
    for query in [
        "-",
        "--flag",
        "a -b",
        "->",
        "error:",
        "x:y",
        "/usr/bin",
        "//",
        "role:user",
        "-role:user",
        "in:text",
    ] {
        assert!(Query::parse(query).is_some(), "{query}");
    }
}

#[test]
fn random_queries_find_what_the_model_finds_with_and_without_filters() {
    let mut found = QueryCounts::default();
    let mut others = Vec::new();
    for seed in 0..8 {
        let walk = walk(seed, 4, 3, &others, &mut |text, compared| match compared {
            Ok(one) => found.add(one),
            Err(difference) => panic!("seed {seed}, {text}: {difference}"),
        });
        others = walk.expect("a tree");
    }
    assert!(found.hits > 200, "only {} hits", found.hits);
    // The filters were used.
    assert!(found.bytes_warm < found.bytes / 10 * 9, "{found:?}");
}

#[test]
fn searches_find_what_is_there_while_files_grow_and_are_replaced() {
    for seed in [3, 5] {
        let searches =
            busy::run(seed, 12, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(searches >= 24, "{searches}");
    }
}
