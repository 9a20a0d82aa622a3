//! Entries are found by uuid, prefix and line.

use std::fs;
use std::path::Path;

use serde_json::json;
use transcript_engine::serve::CommandServer;
use transcript_engine::{EntryId, ErrorKind, History, Session};

use crate::support::{Place, options};

const A: &str = "1234abcd-0000-4000-8000-000000000001";
const B: &str = "1234abce-0000-4000-8000-000000000002";
const C: &str = "00000002-0000-4000-8000-000000000003";

/// A prompt, an answer, a title, and a prompt; the line of the second one has another entry glued to it.
fn write(path: &Path) {
    let message = |kind: &str, uuid: &str, parent: Option<&str>, text: &str| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
               "timestamp": "2026-03-09T14:00:00.000Z", "sessionId": "s",
               "message": {"role": kind, "content": text}})
    };
    let (a, b) = (
        message("user", A, None, "SECRET"),
        message("assistant", B, Some(A), "ANSWER"),
    );
    let (c, d) = (
        message("user", C, Some(B), "SECRET"),
        message("user", "odd-name", Some(B), "x"),
    );
    let title = json!({"type": "custom-title", "customTitle": "T"});
    fs::write(path, format!("{a}\n{b}\n{title}\n{c}{d}\n")).unwrap();
}

fn found(history: &History, name: &str) -> Result<String, ErrorKind> {
    let found = history.find_entry(name);
    found.map(|id| id.to_string()).map_err(|error| error.kind())
}

#[test]
fn an_entry_is_found_by_its_uuid_a_unique_prefix_or_its_line() {
    let place = Place::new();
    write(&place.path);
    let history = History::open(&place.path).unwrap();
    for name in [A, "1234abcd", "1234ABCD-0000", "1"] {
        assert_eq!(found(&history, name).as_deref(), Ok(A), "{name}");
    }
    for name in [B, "1234abce", "2"] {
        assert_eq!(found(&history, name).as_deref(), Ok(B), "{name}");
    }
    // Digits that are not a line are a prefix, and a number has no zero in front.
    assert_eq!(found(&history, "0000").as_deref(), Ok(C));
    assert_eq!(found(&history, "00000002").as_deref(), Ok(C));
    for name in ["odd-name", "odd-"] {
        assert_eq!(found(&history, name).as_deref(), Ok("odd-name"), "{name}");
    }
    // A line without an entry, lines that are not there, prefixes that are too short or of none.
    for name in [
        "3", "5", "0", "01", "+1", "", "123", "odd", "1234abcf", "ffffffff", "SECRET",
    ] {
        assert_eq!(found(&history, name), Err(ErrorKind::NoSuchEntry), "{name}");
    }
}

#[test]
fn an_ambiguous_name_lists_its_matches_and_nothing_that_they_say() {
    let place = Place::new();
    write(&place.path);
    let history = History::open(&place.path).unwrap();
    for (name, lines, ids) in [("1234", [1, 2], [A, B]), ("4", [4, 4], [C, "odd-name"])] {
        let error = history.find_entry(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AmbiguousEntry);
        let matches = error.entries();
        let listed: Vec<_> = matches
            .iter()
            .map(|found| (found.line, found.id.clone()))
            .collect();
        let expected = [0, 1].map(|at| (Some(lines[at]), EntryId::from(ids[at])));
        assert_eq!(listed, expected, "{name}");
        assert!(!format!("{error} {error:?}").contains("SECRET"));
    }
    let roles = history.find_entry("1234").unwrap_err();
    let roles: Vec<_> = roles.entries().iter().map(|found| found.role).collect();
    assert_eq!(roles, ["user", "assistant"]);
}

#[test]
fn the_commands_of_append_take_names() {
    let place = Place::new();
    for (to, expected) in [
        (r#""1234abcd""#, A),
        ("1", A),
        (r#""1""#, A),
        (r#""1234abce""#, B),
    ] {
        write(&place.path);
        let session = Session::open(&place.path, &options()).unwrap();
        let mut out = Vec::new();
        let input = format!("{{\"op\":\"rewind\",\"to\":{to}}}\n");
        CommandServer::new(session, &mut out).run(input.as_bytes());
        let answer: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(answer["uuid"], expected, "{to}: {answer}");
    }
    write(&place.path);
    let session = Session::open(&place.path, &options()).unwrap();
    let mut out = Vec::new();
    let input = "{\"op\":\"rewind\",\"to\":\"1234\"}\n{\"op\":\"tombstone\",\"uuid\":77}\n";
    CommandServer::new(session, &mut out).run(input.as_bytes());
    let answers = String::from_utf8(out).unwrap();
    let kinds: Vec<_> = answers
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["error"]["kind"].clone()
        })
        .collect();
    assert_eq!(kinds, ["ambiguous", "unknown-entry"]);
}
