use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use transcript_tail::{Event, Follower, Options, Reset, Start, Told};

fn line(number: usize) -> String {
    format!("{{\"type\":\"user\",\"uuid\":\"u{number}\"}}\n")
}

/// A folder, and the path of a session in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s1.jsonl");
    (folder, path)
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// What an event is, in a word and a number.
fn word(told: &Told) -> String {
    match &told.event {
        Event::Open { offset } => format!("open {offset}"),
        Event::Entry(entry) => {
            let uuid = entry.text.split('"').nth(7).unwrap_or_default();
            format!("{uuid} {}", entry.offset)
        }
        Event::Bad(finding) => format!(
            "{} {} {}",
            finding.code.as_str(),
            finding.offset,
            finding.len
        ),
        Event::Reset { reason, offset } => format!("{} {offset}", reason.name()),
        Event::Gone { offset, torn } => format!("gone {offset} {torn}"),
        other => format!("{other:?}"),
    }
}

fn drain(follower: &mut Follower) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(told) = follower.try_next().unwrap() {
        words.push(word(&told));
    }
    words
}

#[test]
fn a_line_is_told_when_its_newline_is_there() {
    let (_folder, path) = place();
    let mut follower = Follower::new(&path, &Options::new());
    assert_eq!(drain(&mut follower), [""; 0]);
    append(&path, &line(1));
    append(&path, &line(2)[..9]);
    assert_eq!(drain(&mut follower), ["open 0", "u1 0"]);
    assert_eq!(follower.pending_bytes(), 9);
    append(&path, &line(2)[9..]);
    assert_eq!(drain(&mut follower), ["u2 28"]);
    assert_eq!((follower.offset(), follower.pending_bytes()), (56, 0));
}

#[test]
fn what_a_writer_takes_back_is_not_seen() {
    let (_folder, path) = place();
    let mut follower = Follower::new(&path, &Options::new());
    append(&path, &line(1));
    append(&path, "{\"type\":\"user\",\"uuid\":\"no");
    assert_eq!(drain(&mut follower), ["open 0", "u1 0"]);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(28).unwrap();
    append(&path, &line(2));
    append(&path, &line(3));
    assert_eq!(drain(&mut follower), ["u2 28", "u3 56"]);
}

#[test]
fn cut_replaced_deleted_and_back() {
    let (folder, path) = place();
    let mut follower = Follower::new(&path, &Options::new());
    append(&path, &(line(1) + &line(2) + "torn"));
    assert_eq!(drain(&mut follower), ["open 0", "u1 0", "u2 28"]);
    fs::write(&path, line(3)).unwrap();
    assert_eq!(drain(&mut follower), ["truncated 56", "u3 0"]);
    fs::write(&path, line(4) + &line(5)).unwrap();
    assert_eq!(drain(&mut follower), ["replaced 28", "u4 0", "u5 28"]);
    append(&path, "{\"ty");
    let other = folder.path().join("other");
    fs::write(&other, line(6)).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(
        drain(&mut follower),
        ["L-TORN-TAIL 56 4", "replaced 56", "u6 0"]
    );
    fs::remove_file(&path).unwrap();
    assert_eq!(drain(&mut follower), ["gone 28 0"]);
    append(&path, &line(7));
    assert_eq!(drain(&mut follower), ["replaced 28", "u7 0"]);
}

#[test]
fn following_starts_where_it_is_asked_to() {
    let (_folder, path) = place();
    append(&path, &(line(1) + &line(2) + &line(3) + "{"));
    let told = |start| {
        let mut follower = Follower::new(&path, &Options::new().start(start));
        drain(&mut follower)
    };
    assert_eq!(told(Start::End), ["open 84"]);
    assert_eq!(told(Start::Last(2)), ["open 28", "u2 28", "u3 56"]);
    assert_eq!(told(Start::Last(9)).len(), 4);
    assert_eq!(told(Start::Offset(28)), ["open 28", "u2 28", "u3 56"]);
    assert_eq!(told(Start::Offset(29)), ["open 56", "u3 56"]);
    assert_eq!(told(Start::Offset(84)), ["open 84"]);
    assert_eq!(told(Start::Offset(85)), ["open 84"]);
    assert_eq!(told(Start::Offset(86))[0], "truncated 86");
}

#[test]
fn a_waiting_follower_is_woken() {
    let (_folder, path) = place();
    let mut follower = Follower::new(&path, &Options::new());
    let stopper = follower.stopper();
    let writer = path.clone();
    std::thread::spawn(move || append(&writer, &line(1)));
    let told = follower
        .next_within(Duration::from_secs(10))
        .unwrap()
        .unwrap();
    assert_eq!(word(&told), "open 0");
    assert_eq!(word(&follower.next().unwrap().unwrap()), "u1 0");
    std::thread::spawn(move || stopper.stop());
    assert!(follower.next().is_none());
    let _ = Reset::Truncated;
}
