//! Lines that come byte by byte.

use std::io::Write;

use transcript_tail::{Event, Follower, Options};

use crate::support::{appender, drain, fast_folder, often};

const TEXTS: [&str; 6] = [
    "日本の暦",
    "🌒👩‍🚀",
    "größer",
    "e\u{301}\u{2028}\u{feff}",
    "\\ud83d\\ude80 \\n",
    "plain",
];

#[test]
fn a_line_is_told_with_its_newline_wherever_we_look() {
    let folder = fast_folder();
    let path = folder.path().join("s1.jsonl");
    let mut follower = Follower::new(&path, &Options::new().poll_only());
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
        let told = drain(&mut follower);
        let [told] = &told[..] else {
            panic!("{told:?}");
        };
        let Event::Entry(entry) = &told.event else {
            panic!("{told:?}");
        };
        assert_eq!((entry.offset, &entry.text), (end, &line));
        end += line.len() as u64 + 1;
        assert_eq!((follower.offset(), follower.pending_bytes()), (end, 0));
    }
    println!(
        "bytes: {lines} lines, a look after each of {looks} bytes, each line told once, whole"
    );
}
