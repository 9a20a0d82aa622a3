//! Sessions of which only the end is read.

use std::fs;
use std::path::Path;

use transcript_engine::{
    History, Policy, ReadEnd, Request, SessionOptions, Source, TailDependency,
};

/// The size from which on the end is tried.
const MIN_LEN: usize = 4 << 20;

const TITLE: &str = r#"{"type":"custom-title","customTitle":"Leap days","sessionId":"s"}"#;

fn line(kind: &str, uuid: &str, parent: &str, more: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(
        r#"{{"parentUuid":{parent},"type":"{kind}","uuid":"{uuid}","sessionId":"s","isSidechain":false,"timestamp":"2026-11-20T10:00:00.000Z"{more}}}"#
    )
}

fn ask(uuid: &str, parent: &str, text: &str) -> String {
    let more = format!(r#","message":{{"role":"user","content":"{text}"}}"#);
    line("user", uuid, parent, &more)
}

/// Prompts in a row.
fn asks(name: &str, parent: &str, count: usize, text: &str) -> Vec<String> {
    let uuid = |number| format!("{name}{number}");
    let rest = (1..count).map(|number| ask(&uuid(number), &uuid(number - 1), text));
    [ask(&uuid(0), parent, text)]
        .into_iter()
        .chain(rest)
        .collect()
}

fn boundary(more: &str) -> String {
    let more = format!(r#","subtype":"compact_boundary"{more}"#);
    line("system", "b", "", &more).replace("10:00", "11:00")
}

/// The lines after the boundary: `count` prompts.
fn after(count: usize) -> Vec<String> {
    let more = r#","isCompactSummary":true,"message":{"role":"user","content":"In short"}"#;
    let lines = [line("user", "s", "b", more)].into_iter();
    let lines = lines.chain(asks("t", "s", count, "And?"));
    lines.map(|line| line.replace("10:00", "11:00")).collect()
}

/// A session of `len` bytes with these lines at its end.
fn text(len: usize, end: &[String]) -> String {
    let large = "x".repeat(50 << 10);
    let mut lines = [TITLE.to_owned(), "garbage".to_owned()].to_vec();
    lines.extend(asks("u", "", 60, &large));
    lines.extend(asks("v", "u59", 100, "Yes?"));
    lines.extend_from_slice(end);
    let text = lines.join("\n") + "\n";
    let garbage = "y".repeat(len - text.len());
    let text = text.replacen("garbage", &format!("garbage{garbage}"), 1);
    assert_eq!(text.len(), len);
    text
}

fn session(len: usize, end: &[String]) -> Source {
    Source::from_bytes(text(len, end).as_bytes(), Path::new("s.jsonl"))
}

fn compacted(len: usize) -> Source {
    session(len, &[vec![boundary("")], after(10)].concat())
}

fn enough(source: Source) -> History {
    match History::read_end(source).unwrap() {
        ReadEnd::Enough(history) => history,
        ReadEnd::ReadAll(_, reason) => panic!("{reason:?}"),
    }
}

fn refused(source: Source) -> (Source, TailDependency) {
    match History::read_end(source).unwrap() {
        ReadEnd::Enough(_) => panic!("enough"),
        ReadEnd::ReadAll(source, reason) => (source, reason),
    }
}

fn request(history: &History) -> Request {
    history.request(&SessionOptions::new()).unwrap()
}

fn messages(history: &History) -> Vec<String> {
    let messages = request(history).messages;
    messages
        .iter()
        .map(|message| message.json().to_string())
        .collect()
}

#[test]
fn the_request_is_that_of_the_file_and_the_rest_is_that_of_the_end() {
    let end = [vec![boundary("")], after(10), vec!["{torn".to_owned()]].concat();
    let file = History::read(session(MIN_LEN, &end)).unwrap();
    let end = enough(session(MIN_LEN, &end));
    assert_eq!((file.scope(), end.scope()), ("file", "tail"));
    assert_eq!(file.index().starts_at(), 0);
    assert!(end.index().starts_at() > MIN_LEN as u64 * 7 / 8);
    assert_eq!((file.index().len(), end.index().len()), (173, 12));
    assert_eq!(messages(&end), messages(&file));
    assert!(end.is_enough_for(&request(&end)));
    assert!(!messages(&end).is_empty());

    // Offsets are those in the file, lines are not known.
    let offsets = |history: &History| -> Vec<u64> {
        let path = history.tree(Policy::Recover).path().entries;
        let entries = path
            .iter()
            .map(|entry| history.index().entry(entry.entry_no()));
        entries.map(|entry| entry.offset()).collect()
    };
    assert_eq!(offsets(&end), offsets(&file));
    assert!(
        end.index()
            .entries()
            .all(|entry| entry.known_line().is_none())
    );
    let findings = |history: &History| -> Vec<_> {
        let findings = history.index().findings().iter();
        findings
            .map(|finding| (finding.offset, finding.line))
            .collect()
    };
    let [early, late] = findings(&file)[..] else {
        panic!("{:?}", findings(&file));
    };
    assert_eq!((early.1, late.1), (Some(2), Some(175)));
    assert_eq!(findings(&end), [(late.0, None)]);
    let title = |history: &History| history.state(Policy::Recover).unwrap().title;
    assert_eq!(
        (title(&file).as_deref(), title(&end)),
        (Some("Leap days"), None)
    );
}

#[test]
fn files_below_four_mebibytes_are_read_whole() {
    for len in [MIN_LEN - 1, MIN_LEN, MIN_LEN + 1] {
        match History::read_end(compacted(len)).unwrap() {
            ReadEnd::Enough(history) => assert!(len >= MIN_LEN && history.scope() == "tail"),
            ReadEnd::ReadAll(source, reason) => {
                assert_eq!((reason, len), (TailDependency::NoCompaction, MIN_LEN - 1));
                assert_eq!(History::read(source).unwrap().scope(), "file");
            }
        }
    }
}

#[test]
fn a_compaction_before_the_last_eighth_is_not_looked_for() {
    let keeping = |uuid: &str| {
        let more = format!(
            r#","compactMetadata":{{"preservedMessages":{{"anchorUuid":"s","uuids":["{uuid}"]}}}}"#
        );
        session(MIN_LEN, &[vec![boundary(&more)], after(10)].concat())
    };
    assert_eq!(enough(keeping("v99")).index().len(), 13);
    assert_eq!(refused(keeping("u40")).1, TailDependency::NoCompaction);
    let far = session(MIN_LEN, &[vec![boundary("")], after(4_000)].concat());
    assert_eq!(refused(far).1, TailDependency::NoCompaction);
    assert_eq!(
        refused(session(MIN_LEN, &[])).1,
        TailDependency::NoCompaction
    );
}

#[test]
fn refused_tail_can_be_read_whole() {
    let late = ask("w", "u3", "And?").replace("10:00", "11:00");
    let branch = [vec![boundary("")], after(10), vec![late]].concat();
    let (source, reason) = refused(session(MIN_LEN, &branch));
    assert_eq!(reason, TailDependency::Parent);
    let file = History::read(source).unwrap();
    assert_eq!(
        (file.scope(), request(&file).path.entries.len()),
        ("file", 5)
    );
}

#[test]
fn the_end_is_not_enough_without_the_body_of_an_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let text = text(MIN_LEN, &[vec![boundary("")], after(10)].concat());
    fs::write(&path, &text).unwrap();
    let end = enough(Source::open(&path).unwrap());
    assert!(end.is_enough_for(&request(&end)));
    // Another program writes over a line, in the same number of bytes.
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    let blank = " ".repeat(text.len() - last - 1);
    fs::write(&path, format!("{}{blank}\n", &text[..last])).unwrap();
    assert!(!end.is_enough_for(&request(&end)));
    let file = History::read(end.into_source()).unwrap();
    assert!(file.is_enough_for(&request(&file)));
}
