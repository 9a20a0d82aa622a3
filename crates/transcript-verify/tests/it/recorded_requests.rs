//! Recorded requests: how many are reproduced, by version, and where the first one differs.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use transcript_messages::Role;
use transcript_reader::Source;
use transcript_verify::{
    DifferenceReason, RebuiltRequests, Report, RequestDifference, Verdict, VerifyOptions,
    verify_folder, verify_source,
};

/// The hashes of messages with one text: `Q` and `R` of a person, `A` of a model (REQ-2).
const Q: &str = "f308b3410bd71d4164db494f1fcc88175ada108cbf723b07a792396dc201a172";
const A: &str = "914cdce828852ab8e3eb4bea4c88ca34e74272b493701aa697299b31cc0c5ad5";
const R: &str = "668acb0cc29833ec3562dfef7a5ddd623c116891ec881b1a86d2d5614f9b64a8";

/// An entry with its first letter as the kind: `u` for a person, `a` for a model.
fn entry(name: &str, parent: Option<&str>, text: &str) -> Value {
    let kind = if name.starts_with('u') {
        "user"
    } else {
        "assistant"
    };
    json!({
        "type": kind, "uuid": name, "parentUuid": parent, "isSidechain": false, "sessionId": "s",
        "version": "2.1.9", "timestamp": "2026-03-09T14:00:00.000Z",
        "message": {"role": kind, "content": [{"type": "text", "text": text}]},
    })
}

fn request(id: &str, version: &str, tail: &[&str]) -> Value {
    json!({"type": "api-request", "id": id, "version": version, "keep": 0, "tail": tail})
}

fn blob(hash: &str, role: &str, texts: &[&str]) -> Value {
    let blocks = texts
        .iter()
        .map(|text| json!({"type": "text", "text": text}));
    let content: Vec<Value> = blocks.collect();
    json!({"type": "api-request-blob", "hash": hash, "message": {"role": role, "content": content}})
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn report(lines: &[Value]) -> Report {
    let text = text(lines);
    let source = Source::from_bytes(text.as_bytes(), Path::new("-"));
    verify_source(&source, &VerifyOptions::new().requests(true)).unwrap()
}

/// `Q`, `A`, `R`, and a request with these messages; the blobs come last.
fn first_difference(tail: &[&str], blobs: &[Value]) -> RequestDifference {
    let mut lines = vec![
        entry("u1", None, "Q"),
        entry("a2", Some("u1"), "A"),
        entry("u3", Some("a2"), "R"),
        request("req", "2.1.9", tail),
    ];
    lines.extend_from_slice(blobs);
    let requests = report(&lines).requests.unwrap();
    assert_eq!((requests.recorded(), requests.reproduced()), (1, 0));
    requests.versions[0].first.clone().unwrap()
}

/// Reason, index, role, line and uuid of the entry.
fn place(
    difference: &RequestDifference,
) -> (
    DifferenceReason,
    usize,
    Option<Role>,
    Option<u64>,
    Option<&str>,
) {
    let message = difference.message.as_ref().unwrap();
    let entry = message.entry.as_ref();
    let line = entry.and_then(|entry| entry.line);
    let uuid = entry.and_then(|entry| entry.uuid.as_deref());
    (difference.reason, message.index, message.role, line, uuid)
}

#[test]
fn a_difference_names_its_kind_the_message_and_the_entry_that_it_comes_from() {
    use DifferenceReason as Reason;
    let extra = first_difference(&[Q, R], &[]);
    assert_eq!(
        place(&extra),
        (
            Reason::ExtraMessage,
            1,
            Some(Role::Assistant),
            Some(2),
            Some("a2")
        )
    );
    assert_eq!(
        (extra.line, extra.request.as_deref()),
        (Some(4), Some("req"))
    );
    // Behind the last message that was recorded, and in the middle of them.
    let extra = first_difference(&[Q, A], &[]);
    assert_eq!(
        place(&extra),
        (
            Reason::ExtraMessage,
            2,
            Some(Role::User),
            Some(3),
            Some("u3")
        )
    );
    let missing = first_difference(&[Q, A, "00", R], &[]);
    assert_eq!(
        place(&missing),
        (Reason::MissingMessage, 2, None, Some(2), Some("a2"))
    );
    let missing = first_difference(&[Q, A, R, "00"], &[blob("00", "system", &["x"])]);
    assert_eq!(
        place(&missing),
        (
            Reason::MissingMessage,
            3,
            Some(Role::System),
            Some(3),
            Some("u3")
        )
    );
    let missing = first_difference(&["00", Q, A, R], &[]);
    assert_eq!(
        place(&missing),
        (Reason::MissingMessage, 0, None, None, None)
    );
    let other = first_difference(&[Q, "00", R], &[]);
    assert_eq!(
        place(&other),
        (
            Reason::DifferentHash,
            1,
            Some(Role::Assistant),
            Some(2),
            Some("a2")
        )
    );
}

/// A message may come from several entries: the recorded message says which of them is different.
#[test]
fn the_entry_of_a_difference_is_that_of_the_first_block_that_differs() {
    let lines = |texts: &[&str]| {
        vec![
            entry("u1", None, "Q"),
            entry("u2", Some("u1"), "R"),
            entry("u3", Some("u2"), "S"),
            request("req", "2.1.9", &["00"]),
            blob("00", "user", texts),
        ]
    };
    let found = |texts: &[&str]| {
        let requests = report(&lines(texts)).requests.unwrap();
        let first = requests.versions[0].first.clone().unwrap();
        let (reason, index, _, line, uuid) = place(&first);
        assert_eq!((reason, index), (DifferenceReason::DifferentHash, 0));
        (line.unwrap(), uuid.unwrap().to_owned())
    };
    assert_eq!(found(&["X", "R\n", "S"]), (1, "u1".to_owned()));
    assert_eq!(found(&["Q\n", "X", "S"]), (2, "u2".to_owned()));
    assert_eq!(found(&["Q\n", "R\n", "X"]), (3, "u3".to_owned()));
    // Something more was sent, or something less.
    assert_eq!(found(&["Q\n", "R\n", "S", "T"]), (3, "u3".to_owned()));
    assert_eq!(found(&["Q\n", "R\n"]), (3, "u3".to_owned()));
}

#[test]
fn requests_are_counted_by_version_in_the_order_of_their_numbers() {
    let based = json!({
        "type": "api-request", "id": "lost", "version": "2.1.10", "base": "gone", "keep": 1, "tail": []
    });
    let report = report(&[
        request("early", "2.1.10", &[Q]),
        entry("u1", None, "Q"),
        request("one", "2.1.10", &[Q]),
        request("two", "2.1.9", &[Q]),
        request("three", "2.1.10", &["00"]),
        request("four", "a version of several words", &[Q]),
        based,
    ]);
    let requests = report.requests.as_ref().unwrap();
    let counts: Vec<_> = requests
        .versions
        .iter()
        .map(|of| {
            (
                of.version.as_deref(),
                of.recorded,
                of.reproduced,
                of.unknown,
                of.different(),
            )
        })
        .collect();
    assert_eq!(
        counts,
        [
            (None, 1, 1, 0, 0),
            (Some("2.1.9"), 1, 1, 0, 0),
            (Some("2.1.10"), 4, 1, 1, 2)
        ]
    );
    assert_eq!((requests.recorded(), requests.reproduced()), (6, 3));
    let first = requests.versions[2].first.as_ref().unwrap();
    assert_eq!(first.reason, DifferenceReason::NoConversation);
    assert_eq!(first.line, Some(1));
}

#[test]
fn a_difference_is_a_note_at_the_line_of_the_request_and_quotes_nothing() {
    let lines = [
        entry("u1", None, "Q"),
        request("the words of a person", "2.1.9", &["00"]),
        blob("00", "user", &["the words of a person"]),
        entry("a2", Some("u1"), "A"),
    ];
    let report = report(&lines);
    assert_eq!(report.verdict(), Verdict::Noted);
    let [finding] = &report.findings[..] else {
        panic!("{:?}", report.findings)
    };
    assert_eq!(finding.code.as_str(), "A-RECORD");
    assert_eq!(
        (finding.line, finding.offset),
        (Some(2), text(&lines[..1]).len() as u64)
    );
    assert_eq!(
        finding.detail,
        "0 of 1 recorded requests of Claude Code 2.1.9 reproduced; the first that is not: request \
         (other): message 0 (user, from line 1, u1): a message has another hash"
    );
    // A request that is reproduced or cannot be compared is not a finding; without the option no request is.
    for tail in [
        r#""tail":["#.to_owned() + &format!("\"{Q}\"]"),
        r#""base":"gone","tail":[]"#.into(),
    ] {
        let request = format!("{{\"type\":\"api-request\",\"id\":\"r\",\"keep\":0,{tail}}}\n");
        let lines = text(&lines[..1]) + &request;
        let source = Source::from_bytes(lines.as_bytes(), Path::new("-"));
        let report = verify_source(&source, &VerifyOptions::new().requests(true)).unwrap();
        assert_eq!(report.verdict(), Verdict::Clean, "{:?}", report.findings);
    }
    let lines = text(&lines);
    let source = Source::from_bytes(lines.as_bytes(), Path::new("-"));
    let report = verify_source(&source, &VerifyOptions::new()).unwrap();
    assert_eq!((report.verdict(), report.requests), (Verdict::Clean, None));
}

#[test]
fn the_requests_of_a_folder_add_up_with_those_of_subagents() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder
        .path()
        .join("-w/5c1d8a52-0b7e-4c3f-9d21-6a4e8f7b1c20");
    let write = |path: &Path, lines: &[Value]| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text(lines)).unwrap();
    };
    let main = [entry("u1", None, "Q"), request("main", "2.1.9", &[Q])];
    write(&session.with_extension("jsonl"), &main);
    let mut sub = entry("u1", None, "R");
    sub["isSidechain"] = true.into();
    sub["agentId"] = "a01".into();
    let agent = session.join("subagents/agent-a01.jsonl");
    write(
        &agent,
        &[
            sub,
            request("sub", "2.1.9", &["00"]),
            request("newer", "2.1.10", &[R]),
            request("again", "2.1.9", &["01"]),
        ],
    );
    let mut sum = RebuiltRequests::default();
    let options = VerifyOptions::new().requests(true);
    let mut each = |report: Result<Report, _>| {
        let report = report.unwrap();
        sum.add(report.requests.as_ref().unwrap());
    };
    verify_folder(&crate::disk(), folder.path(), &options, &mut each).unwrap();
    let counts: Vec<_> = sum
        .versions
        .iter()
        .map(|of| (of.version.as_deref().unwrap(), of.recorded, of.reproduced))
        .collect();
    assert_eq!(counts, [("2.1.9", 3, 1), ("2.1.10", 1, 1)]);
    let first = sum.versions[0].first.as_ref().unwrap();
    assert_eq!(
        (&first.path, first.request.as_deref()),
        (&agent, Some("sub"))
    );
}

#[test]
fn progress_goes_on_while_requests_are_built() {
    let lines = [
        entry("u1", None, "Q"),
        request("one", "2.1.9", &[Q]),
        request("two", "2.1.9", &[Q]),
    ];
    let text = text(&lines);
    let read = |is_asked: bool| {
        let counter = Arc::new(AtomicU64::new(0));
        let options = VerifyOptions::new().count_bytes(Arc::clone(&counter));
        let source = Source::from_bytes(text.as_bytes(), Path::new("-"));
        verify_source(&source, &options.requests(is_asked)).unwrap();
        counter.load(Ordering::Relaxed)
    };
    let path = lines[0].to_string().len() as u64;
    assert!(
        read(true) >= read(false) + 2 * path,
        "{} {}",
        read(true),
        read(false)
    );
}
