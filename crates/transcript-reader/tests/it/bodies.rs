//! Bodies are the bytes of their lines, in whatever order they are requested.

use std::fs::OpenOptions;

use serde_json::{Deserializer, Value};
use transcript_format::salvage;
use transcript_reader::{Bodies, EntryMarks, EntryNo, Index, LoadOptions, Source};
use transcript_testkit::rng::Rng;
use transcript_testkit::{damage, generate};

use crate::{Scratch, load};

/// As in `bodies.rs` of the crate.
const READ_AHEAD: usize = 256 << 10;

fn entry(uuid: &str, text_len: usize) -> String {
    let text: String = ('a'..='z').cycle().take(text_len).collect();
    format!("{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"text\":\"{text}\"}}")
}

fn forward(source: &Source) -> Index {
    load(source, &LoadOptions::new().threads(1))
}

/// The expected body of each entry: the bytes at its place, without white space around them.
fn expected(bytes: &[u8], index: &Index) -> Vec<String> {
    index
        .entries()
        .map(|entry_ref| {
            let from = entry_ref.offset() as usize;
            let line = &bytes[from..from + entry_ref.byte_len() as usize];
            if entry_ref.is_salvaged() {
                return salvage::repaired_text(line);
            }
            let text = String::from_utf8_lossy(line).into_owned();
            text.trim_ascii().to_owned()
        })
        .collect()
}

/// Loads all bodies in file order, in reverse order, and at random.
fn check_every_order(name: &str, bytes: &[u8], seed: u64) {
    let scratch = Scratch::new(bytes);
    let source = scratch.open();
    let index = forward(&source);
    let expected = expected(bytes, &index);
    let all: Vec<usize> = (0..index.len()).collect();
    let backward: Vec<usize> = all.iter().rev().copied().collect();
    let mut rng = Rng::new(seed);
    let mut random: Vec<usize> = all.iter().chain(&all).copied().collect();
    rng.shuffle(&mut random);
    // Alternating near and far: the read-ahead window is left and returned to.
    let turns: Vec<usize> = all
        .iter()
        .zip(&backward)
        .flat_map(|(a, b)| [*a, *b])
        .collect();
    for order in [all, backward, random, turns] {
        let mut bodies = Bodies::new(&source);
        for number in order {
            let entry_ref = index.entry(EntryNo::new(number));
            let body = bodies.get(&entry_ref).expect("the file can be read");
            let marks = entry_ref.marks();
            if !marks.contains(EntryMarks::LOSSY | EntryMarks::GLUED) {
                assert_eq!(body.text, expected[number], "{name}: entry {number}");
            }
        }
    }
}

#[test]
fn bodies_are_the_bytes_of_their_lines_in_any_order() {
    for seed in 0..60 {
        check_every_order(&format!("seed {seed}"), &generate::session(seed), seed);
        let (bytes, done) = damage::damage(&generate::session(seed), seed);
        let scratch = Scratch::new(&bytes);
        if Source::open(&scratch.path).is_ok() {
            check_every_order(&format!("seed {seed}: {done:?}"), &bytes, seed);
        }
    }
}

/// The text of a damaged line is the one from which the index took the fields.
#[test]
fn the_body_of_a_glued_or_lossy_line_has_the_uuid_of_the_index() {
    let (mut glued, mut lossy) = (0, 0);
    for seed in 0..1000 {
        let (bytes, done) = damage::damage(&generate::session(seed), seed);
        let scratch = Scratch::new(&bytes);
        let Ok(source) = Source::open(&scratch.path) else {
            continue;
        };
        let index = forward(&source);
        let mut bodies = Bodies::new(&source);
        for entry_ref in index.entries() {
            let name = format!("seed {seed}: {done:?}, {entry_ref:?}");
            let text = bodies.get(&entry_ref).unwrap().text;
            let Ok(body) = serde_json::from_str::<Value>(text) else {
                // A lone surrogate or a number out of range: the scan leaves it to the body.
                assert!(text.contains("\\u"), "{name}");
                continue;
            };
            let uuid = body["uuid"].as_str().filter(|uuid| !uuid.is_empty());
            let in_index = entry_ref.uuid().map(|id| index.id_text(id));
            assert_eq!(uuid, in_index.as_deref(), "{name}");
            assert_eq!(
                body["type"].as_str().unwrap_or_default(),
                name_of(&entry_ref, &body)
            );
            glued += usize::from(entry_ref.marks().contains(EntryMarks::GLUED));
            lossy += usize::from(entry_ref.marks().contains(EntryMarks::LOSSY));
        }
    }
    assert!(glued > 50 && lossy > 50, "{glued} glued, {lossy} lossy");
}

fn name_of<'b>(entry_ref: &transcript_reader::EntryRef<'_>, body: &'b Value) -> &'b str {
    match entry_ref.kind().name() {
        "" => body["type"].as_str().unwrap_or_default(),
        known => known,
    }
}

#[test]
fn white_space_around_an_object_is_not_part_of_the_body() {
    let plain = entry("u", 10);
    for line in [
        format!("{plain}\r\n"),
        format!(" \t{plain} \t\r\n"),
        plain.clone(),
        format!("{plain}\r"),
        format!("\t{plain} {{}}\n"),
    ] {
        let scratch = Scratch::new(line.as_bytes());
        let source = scratch.open();
        let index = forward(&source);
        let body = Bodies::new(&source)
            .get(&index.entry(EntryNo::new(0)))
            .unwrap()
            .text
            .to_owned();
        assert_eq!(body, plain, "{line:?}");
    }
}

#[test]
fn the_body_of_a_glued_line_ends_where_its_object_ends() {
    let (first, second) = (entry("first", 10), entry("second", 20));
    // The invalid byte is before, in and after the object that counts.
    let lines: [(Vec<u8>, String); 4] = [
        (format!("{first}{second}").into(), first.clone()),
        (format!("{first} \0\0{second}").into(), first.clone()),
        ([first.as_bytes(), b"\xFF"].concat(), first.clone()),
        (
            [
                &b"{\"text\":\"\xFF\xE2\x80\",\"uuid\":\"u\"}"[..],
                second.as_bytes(),
            ]
            .concat(),
            "{\"text\":\"\u{FFFD}\u{FFFD}\",\"uuid\":\"u\"}".to_owned(),
        ),
    ];
    for (line, expected) in lines {
        let bytes = [&line[..], b"\n", second.as_bytes(), b"\n"].concat();
        let scratch = Scratch::new(&bytes);
        let source = scratch.open();
        let index = forward(&source);
        let seen = index.entries().filter(|one| !one.is_salvaged());
        let seen: Vec<_> = seen.collect();
        assert_eq!(seen.len(), 2);
        let mut bodies = Bodies::new(&source);
        assert!(seen[0].marks().contains(EntryMarks::GLUED));
        assert_eq!(bodies.get(&seen[0]).unwrap().text, expected);
        assert_eq!(bodies.get(&seen[1]).unwrap().text, second);
        let first_value = Deserializer::from_str(&expected)
            .into_iter::<Value>()
            .next();
        assert!(first_value.is_some_and(|value| value.is_ok()));
    }
}

#[test]
fn bodies_around_the_size_of_the_read_ahead_window_are_complete() {
    let sizes = [
        READ_AHEAD - 60,
        READ_AHEAD - 37,
        READ_AHEAD,
        10,
        READ_AHEAD + 1,
        5 * READ_AHEAD,
        10,
        0,
    ];
    let lines: Vec<String> = (0..)
        .zip(sizes)
        .map(|(i, size)| entry(&format!("u{i}"), size))
        .collect();
    let bytes = lines.join("\n");
    check_every_order("large bodies", bytes.as_bytes(), 1);
}

#[test]
fn a_body_that_is_gone_from_the_file_is_empty() {
    let lines: Vec<String> = (0..4)
        .map(|i| entry(&format!("u{i}"), READ_AHEAD))
        .collect();
    let bytes = lines.join("\n");
    let start_of_last = bytes.len() - lines[3].len();
    for left in [
        start_of_last,
        start_of_last + 1,
        bytes.len() - 1,
        bytes.len() - lines[3].len() - 1,
    ] {
        let scratch = Scratch::new(bytes.as_bytes());
        let source = scratch.open();
        let index = forward(&source);
        let file = OpenOptions::new().write(true).open(&scratch.path).unwrap();
        file.set_len(left as u64).unwrap();
        let mut bodies = Bodies::new(&source);
        for number in [3, 2, 0, 3, 1] {
            let body = bodies.get(&index.entry(EntryNo::new(number))).unwrap();
            let expected = if number == 3 { "" } else { &lines[number] };
            assert!(
                body.text == expected,
                "{left} bytes are left, entry {number}"
            );
        }
    }
}

#[test]
fn bodies_of_an_empty_file_that_was_full_are_empty() {
    let bytes = [entry("a", 5), entry("b", 5)].join("\n");
    let scratch = Scratch::new(bytes.as_bytes());
    let source = scratch.open();
    let index = forward(&source);
    OpenOptions::new()
        .write(true)
        .open(&scratch.path)
        .unwrap()
        .set_len(0)
        .unwrap();
    let mut bodies = Bodies::new(&source);
    for entry_ref in index.entries() {
        assert_eq!(bodies.get(&entry_ref).unwrap().text, "");
    }
}
