//! Lines that arrive byte by byte.

use std::fs;
use std::io::Write;
use std::path::Path;

use transcript_tail::{EventKind, FollowEvent, FollowOptions, Follower};

use crate::support::{appender, drain, fast_folder, line, often, place};

const TEXTS: [&str; 6] = [
    "日本の暦",
    "🌒👩‍🚀",
    "größer",
    "e\u{301}\u{2028}\u{feff}",
    "\\ud83d\\ude80 \\n",
    "plain",
];

#[test]
fn a_line_is_reported_with_its_newline_wherever_we_look() {
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let mut follower = Follower::new(&path, &FollowOptions::new().poll_only());
    let mut file = appender(&path);
    drain(&mut follower);
    let (mut looks, mut end, lines) = (0, 0, often(600, 500));
    for number in 0..lines {
        let text = TEXTS[number % TEXTS.len()].repeat(1 + number % 7);
        let line = format!("{{\"type\":\"user\",\"uuid\":\"u{number}\",\"text\":\"{text}\"}}");
        for (at, byte) in line.bytes().enumerate() {
            file.write_all(&[byte]).unwrap();
            assert_eq!(follower.try_next().unwrap(), None);
            let pending = (follower.offset(), follower.pending_bytes());
            assert_eq!(pending, (end, at as u64 + 1));
            looks += 1;
        }
        file.write_all(b"\n").unwrap();
        let emitted = drain(&mut follower);
        let [emitted] = &emitted[..] else {
            panic!("{emitted:?}");
        };
        let EventKind::Entry(entry) = &emitted.kind else {
            panic!("{emitted:?}");
        };
        assert_eq!((entry.offset, &entry.text), (end, &line));
        end += line.len() as u64 + 1;
        assert_eq!((follower.offset(), follower.pending_bytes()), (end, 0));
    }
    println!(
        "bytes: {lines} lines, a look after each of {looks} bytes, each line emitted once, complete"
    );
}

/// Returns the start of a long line, without a newline, whose text is one repeated letter.
fn start(len: usize) -> String {
    line(1, len + 100)[..len].to_owned()
}

/// Follows a file that contains `before`, and returns the events when it contains `after`. There is
/// no poll in between.
fn events_of(path: &Path, cap: usize, before: &str, after: &str) -> Vec<(u64, u64)> {
    fs::write(path, before).unwrap();
    let options = FollowOptions::new().poll_only().line_cap(cap);
    let mut follower = Follower::new(path, &options);
    assert_eq!(drain(&mut follower).len(), 1);
    assert_eq!(follower.pending_bytes(), before.len() as u64);
    fs::write(path, after).unwrap();
    let place = |emitted: FollowEvent| match emitted.kind {
        EventKind::Entry(entry) => (entry.offset, entry.len),
        EventKind::Damaged(bad) => (bad.offset, bad.len),
        other => panic!("{other:?}"),
    };
    drain(&mut follower).into_iter().map(place).collect()
}

#[test]
fn start_and_end_of_an_incomplete_line_are_compared() {
    let (_folder, path) = place();
    // Another line at its start, followed by the same letters.
    let other = line(2, 90) + &start(4_910);
    assert_eq!(
        events_of(&path, usize::MAX, &start(5_000), &other),
        [(0, 89)]
    );
    // A newline far after its start.
    let long = start(90_000);
    let other = long[..89_500].to_owned() + "\n" + &long[..499];
    assert_eq!(events_of(&path, usize::MAX, &long, &other), [(0, 89_500)]);
    // The same for a line that is too long to be kept.
    let other = long[..89_500].to_owned() + "\n" + &line(3, 0)[..30] + &long[..469];
    assert_eq!(events_of(&path, 600, &long, &other), [(0, 89_500)]);
}

#[test]
fn whole_line_is_compared_before_it_is_reported() {
    let (_folder, path) = place();
    let long = start(90_000);
    // A newline in a place that is not compared while the line waits.
    let mut other = long.clone();
    other.replace_range(80_000..80_001, "\n");
    for cap in [usize::MAX, 600] {
        assert_eq!(events_of(&path, cap, &long, &other), []);
        let whole = other.clone() + "\n";
        assert_eq!(
            events_of(&path, cap, &long, &whole),
            [(0, 80_000), (80_001, 9_999)]
        );
    }
    for cap in [usize::MAX, 600] {
        fs::write(&path, &long).unwrap();
        let options = FollowOptions::new().poll_only().line_cap(cap);
        let mut follower = Follower::new(&path, &options);
        drain(&mut follower);
        fs::write(&path, &other).unwrap();
        fs::remove_file(&path).unwrap();
        let emitted = drain(&mut follower);
        assert_eq!(
            (emitted[0].kind.offset(), follower.pending_bytes()),
            (0, 9_999)
        );
        assert!(matches!(
            emitted.last().unwrap().kind,
            EventKind::Gone {
                offset: 80_001,
                torn: 9_999
            }
        ));
    }
}
