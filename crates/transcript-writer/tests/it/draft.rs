//! Entries are written as they are given, with the missing fields filled in.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use transcript_format::kind::SystemKind;
use transcript_format::lines::DEFAULT_LINE_CAP;
use transcript_format::make::{self, Compaction, ToolResult, Trigger};
use transcript_format::object::{Object, Raw};
use transcript_testkit::fake_disk::FakeDisk;
use transcript_writer::{
    Draft, Error, ErrorKind, RecordOptions, ResumePoint, SyncPolicy, TurnEnd, WriterOptions,
    Written,
};

/// Writes the drafts to a new session and returns its entries.
fn written(drafts: Vec<Draft>) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let options = WriterOptions::new()
        .create()
        .session_id("s")
        .cwd("/home/ada");
    let writer = options.open(&path, ResumePoint::default()).unwrap();
    writer.append_all(drafts).unwrap();
    writer.close().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn entries_that_were_made_get_what_they_do_not_have() {
    let call = json!({"id": "m", "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
    ]})
    .to_string();
    let mut entries = vec![make::user("How long is a month?").uuid("u1")];
    entries.extend(make::assistant(&Object::parse(&call).unwrap()).unwrap());
    let output = Raw::parse("{\"days\": [\n29, 30]}").unwrap();
    entries.push(make::tool_result(
        ToolResult::text("toolu_1", "29 or 30").output(output),
    ));
    entries.push(make::system(SystemKind::AgentsKilled));
    let kept = Compaction::new(Trigger::Manual, 9).kept("s1", &["u1"]);
    entries.push(make::compact_boundary(Some("u1"), kept).uuid("b1"));
    entries.push(make::compact_summary("It depends.").uuid("s1"));
    entries.push(make::custom_title("Months"));
    entries.push(make::tombstone("u1"));
    let drafts = entries.iter().map(|entry| Draft::try_from(entry).unwrap());
    let lines = written(drafts.collect());

    assert_eq!(lines.len(), entries.len());
    for (line, entry) in lines.iter().zip(&entries) {
        let made: Value = serde_json::from_str(&entry.text()).unwrap();
        for (key, value) in made.as_object().unwrap() {
            assert_eq!(&line[key], value, "{key}");
        }
        assert_eq!(line["sessionId"], "s");
        assert_eq!(line.get("cwd").is_some(), entry.kind().is_chain());
        assert_eq!(line.get("uuid").is_some(), entry.kind().is_chain());
    }
    let [prompt, text, call, result, _, boundary, summary, ..] = &lines[..] else {
        panic!("{} lines", lines.len());
    };
    assert_eq!(text["parentUuid"], prompt["uuid"]);
    assert_eq!(call["parentUuid"], text["uuid"]);
    assert_eq!(result["parentUuid"], call["uuid"]);
    assert_eq!(result["sourceToolAssistantUUID"], call["uuid"]);
    assert_eq!(result["toolUseResult"], json!({"days": [29, 30]}));
    assert_eq!(boundary["parentUuid"], Value::Null);
    assert_eq!(summary["parentUuid"], "b1");
}

#[test]
fn the_short_forms_are_those_entries() {
    assert_eq!(Draft::user(""), Draft::try_from(&make::user("")).unwrap());
    assert_eq!(
        Draft::user("a\u{2028}\"b\""),
        Draft::try_from(&make::user("a\u{2028}\"b\"")).unwrap()
    );
    for (message, reason) in [
        ("[]", "the message is not an object"),
        ("{}", "the content of the message is not a list"),
        (
            r#"{"content":7}"#,
            "the content of the message is not a list",
        ),
    ] {
        assert_eq!(Draft::assistant(message).unwrap_err().reason(), reason);
    }
}

const NUL: &str = "a NUL character in a string";
const HALF: &str = "half of a surrogate pair in a string";

#[test]
fn strings_that_not_all_readers_can_take_are_refused_and_copies_kept() {
    let entry = |text: &str| format!(r#"{{"type":"user","message":{{"content":"{text}"}}}}"#);
    let start = entry("").len() - 3;
    for (text, refused) in [
        (r"\u0000", Some((0, NUL))),
        (r"abc\u0000", Some((3, NUL))),
        (r"\ud83d", Some((0, HALF))),
        (r"\uDE00", Some((0, HALF))),
        (r"\ud83d\u0041", Some((0, HALF))),
        (r"\ud83d\n\ude00", Some((0, HALF))),
        (r"\ud83d\ud83d\ude00", Some((0, HALF))),
        (r"\ud83d\ude00\ude00", Some((12, HALF))),
        (r"\\\u0000", Some((2, NUL))),
        // None of these is refused.
        (r"\ud83d\ude00", None),
        (r"\uD83D\uDE00\u0001", None),
        (r"\\u0000", None),
        (r"\\ud83d \\\\u0000", None),
        ("\u{1F600}", None),
    ] {
        let entry = entry(text);
        let read = Draft::entry(&entry);
        let fault = read
            .as_ref()
            .err()
            .map(|fault| (fault.at() - start, fault.reason()));
        assert_eq!(fault, refused, "{text}");
        let disk = FakeDisk::new(1);
        append(&disk, vec![Draft::copy(&entry).unwrap()]).unwrap();
        let line = String::from_utf8(disk.bytes("s.jsonl").unwrap()).unwrap();
        assert!(line.contains(&format!(r#""content":"{text}""#)), "{line}");
    }
}

/// Appends drafts without reading them back.
fn append(disk: &FakeDisk, drafts: Vec<Draft>) -> Result<Vec<Written>, Error> {
    let options = WriterOptions::new().create().disk(Arc::new(disk.clone()));
    let writer = options.open(Path::new("s.jsonl"), ResumePoint::default())?;
    let written = writer.append_all(drafts)?;
    writer.close()?;
    Ok(written)
}

#[test]
fn filled_in_fields_obey_the_same_rules() {
    let cases: [(&str, Draft); 2] = [
        ("prompt", Draft::user("a\0b")),
        (
            "title",
            Draft::copy(r#"{"type":"custom-title","customTitle":"a"}"#).unwrap(),
        ),
    ];
    for (what, draft) in cases {
        let disk = FakeDisk::new(1);
        let is_fine = what == "title";
        assert_eq!(append(&disk, vec![draft]).is_ok(), is_fine, "{what}");
        assert_eq!(disk.bytes("s.jsonl").is_some(), is_fine, "{what}");
    }
    let options = WriterOptions::new().create().cwd("/a\0b");
    let disk = FakeDisk::new(1);
    let writer = options
        .disk(Arc::new(disk))
        .open(Path::new("s.jsonl"), ResumePoint::default())
        .unwrap();
    let error = writer.append(Draft::user("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidEntry);
    // The entry names no folder.
    writer
        .append(Draft::entry(r#"{"type":"tag","tag":"t"}"#).unwrap())
        .unwrap();
    // Fields that arrive at the end of an answer.
    let reply = r#"{"id":"m","content":[{"type":"text","text":"x"}]}"#;
    let ticket = writer
        .queue(Draft::assistant(reply).unwrap().remove(0))
        .unwrap();
    assert!(!ticket.amend(Some(r#"{"note":"\u0000"}"#), None));
    let deep = format!("{}{}", "[".repeat(126), "]".repeat(126));
    assert!(!ticket.amend(Some(&deep), None));
    assert!(ticket.amend(Some(r#"{"output_tokens":1}"#), None));
}

#[test]
fn no_line_is_written_that_is_longer_than_readers_take() {
    let disk = FakeDisk::new(1);
    let around = append(&disk, vec![Draft::user("a")]).unwrap()[0].len as usize - 1;
    let disk = FakeDisk::new(1);
    let options = WriterOptions::new().create().sync(SyncPolicy::None);
    let options = options.disk(Arc::new(disk.clone()));
    let writer = options
        .open(Path::new("s.jsonl"), ResumePoint::default())
        .unwrap();
    writer.append(Draft::user("a")).unwrap();
    // It names its parent: 34 bytes more than null.
    let fits = "x".repeat(DEFAULT_LINE_CAP - around - 34);
    let written = writer.append(Draft::user(&fits)).unwrap();
    assert_eq!(written.len as usize, DEFAULT_LINE_CAP);
    let before = disk.bytes("s.jsonl").unwrap().len();

    // Six bytes in the file for three in the text.
    let grows = "\u{2028}".repeat(DEFAULT_LINE_CAP / 6);
    let title = |text: &str| format!(r#"{{"type":"custom-title","customTitle":"{text}"}}"#);
    // With the name of the session it is too long.
    let title = title(&"x".repeat(DEFAULT_LINE_CAP - title("").len()));
    let title = Draft::entry(&title).unwrap();
    let failures = [
        writer.append(Draft::user(&format!("{fits}x"))).map(drop),
        writer.append(title.clone()).map(drop),
        writer.end_turn(TurnEnd::new().lines(vec![title])).map(drop),
        writer
            .record(vec![Draft::user(&grows)], RecordOptions::new())
            .map(drop),
        writer
            .compact(Compaction::new(Trigger::Manual, 1), &grows, &[])
            .map(drop),
        writer.queue(Draft::user(&grows)).unwrap().wait().map(drop),
    ];
    for (at, failure) in failures.into_iter().enumerate() {
        let error = failure.expect_err(&format!("case {at}"));
        assert_eq!(error.kind(), ErrorKind::InvalidEntry, "case {at}");
        assert!(!error.is_retryable());
    }
    assert_eq!(disk.bytes("s.jsonl").unwrap().len(), before);
    // The chain is as it was.
    let next = writer.append(Draft::user("b")).unwrap();
    assert_eq!(next.parent, written.uuid);
}
