//! The entries salvaged from each kind of damage to lines, and the findings about the rest.

use transcript_format::finding::Code;
use transcript_reader::{Bodies, EntryNo, EntryRef, LoadOptions, Source};

use crate::same_index::check_all_ways;
use crate::{Scratch, load, reported};

/// An entry with this uuid and parent.
fn entry(uuid: &str, parent: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":\"{parent}\",\"sessionId\":\"s\",\
         \"message\":{{\"role\":\"user\",\"content\":\"text of {uuid}\"}}}}"
    )
}

/// Returns how an entry was read, as one word.
fn how(entry_ref: &EntryRef<'_>) -> &'static str {
    if entry_ref.is_salvaged() {
        "salvaged"
    } else {
        "seen"
    }
}

/// Returns line, uuid and origin of each entry; code, line and bytes of each finding.
type Seen = (Vec<(u64, String, &'static str)>, Vec<(Code, u64, String)>);

fn read(bytes: &[u8], name: &str) -> Seen {
    let scratch = Scratch::new(bytes);
    let source = scratch.open();
    let index = check_all_ways(&source, name);
    let uuid = |one: &EntryRef<'_>| one.uuid().map(|id| index.id_text(id)).unwrap_or_default();
    let entry_refs = index.entries();
    let entry_refs = entry_refs.map(|one| (one.line(), uuid(&one), how(&one)));
    let findings = reported(&index)
        .into_iter()
        .map(|(code, line, offset, len)| {
            let bytes = &bytes[offset as usize..(offset + len) as usize];
            let text = String::from_utf8_lossy(bytes).into_owned();
            (code, line.unwrap_or_default(), text)
        });
    (entry_refs.collect(), findings.collect())
}

/// Reads `line` as the second of three lines; the others must be unaffected.
#[track_caller]
fn check(line: &[u8], entry_refs: &[(&str, &'static str)], findings: &[(Code, &[u8])]) {
    let (before, after) = (entry("before", ""), entry("after", "before"));
    let bytes = [
        before.as_bytes(),
        b"\n",
        line,
        b"\n",
        after.as_bytes(),
        b"\n",
    ]
    .concat();
    let name = String::from_utf8_lossy(line).into_owned();
    let (mut seen, reported) = read(&bytes, &name);
    assert_eq!(seen.remove(0), (1, "before".to_owned(), "seen"), "{name}");
    let last = seen.pop().expect("the last line");
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert_eq!(last, (lines, "after".to_owned(), "seen"), "{name}");
    let seen: Vec<_> = seen.iter().map(|one| (one.1.as_str(), one.2)).collect();
    assert_eq!(seen, entry_refs, "{name}");
    let reported: Vec<_> = reported.into_iter().map(|one| (one.0, one.2)).collect();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let findings: Vec<_> = findings.iter().map(|one| (one.0, text(one.1))).collect();
    assert_eq!(reported, findings, "{name}");
}

fn join(pieces: &[&[u8]]) -> Vec<u8> {
    pieces.concat()
}

#[test]
fn every_kind_of_damage_to_lines_has_its_outcome() {
    let one = entry("one", "before");
    let two = entry("two", "one");
    let (one, two) = (one.as_bytes(), two.as_bytes());
    let (seen, back) = (("one", "seen"), ("one", "salvaged"));
    let (both, second) = ([seen, ("two", "salvaged")], ("two", "salvaged"));
    let torn = &one[..60];

    // Blank lines, CR.
    check(b"", &[], &[]);
    check(b" \t\r", &[], &[]);
    check(&join(&[one, b"\r"]), &[seen], &[]);
    // Torn, here in the middle.
    check(torn, &[], &[(Code::TornMid, torn)]);
    // A complete entry after a torn one; several times.
    check(&join(&[torn, two]), &[second], &[(Code::TornMid, torn)]);
    check(
        &join(&[torn, two, one, torn]),
        &[second, back],
        &[(Code::TornMid, torn), (Code::TornMid, torn)],
    );
    // Several complete entries.
    check(&join(&[one, two]), &both, &[(Code::Glued, two)]);
    check(
        &join(&[one, two, b" ", two, torn]),
        &[seen, second, second],
        &[(Code::Glued, two), (Code::Glued, two), (Code::Glued, torn)],
    );
    // NULs before, inside, after and between.
    let nuls = &[0; 300][..];
    check(nuls, &[], &[(Code::Nul, nuls)]);
    check(&join(&[nuls, one]), &[back], &[(Code::Nul, nuls)]);
    check(&join(&[one, nuls]), &[seen], &[(Code::Glued, nuls)]);
    check(
        &join(&[one, nuls, two]),
        &both,
        &[(Code::Nul, nuls), (Code::Glued, two)],
    );
    let holed = join(&[&one[..one.len() - 8], nuls, &one[one.len() - 8..]]);
    check(&holed, &[back], &[(Code::Nul, &holed)]);
    // Bytes that are not UTF-8, alone and with other damage.
    for bad in [&b"\xFF"[..], b"\xE6\x87", b"\xED\xA0\xBD\xED\xB8\x80"] {
        let damaged = join(&[&two[..two.len() - 3], bad, &two[two.len() - 3..]]);
        check(&damaged, &[("two", "seen")], &[(Code::Utf8, &damaged)]);
        check(
            &join(&[torn, &damaged]),
            &[second],
            &[(Code::TornMid, torn), (Code::Utf8, &damaged)],
        );
        check(
            &join(&[&damaged, one]),
            &[("two", "seen"), back],
            &[(Code::Utf8, &join(&[&damaged, one])), (Code::Glued, one)],
        );
    }
    // Control bytes within a string, and in places where they cannot be repaired.
    for control in [&b"\x1b[31m"[..], b"\x01", b"\t", b"\r"] {
        let damaged = join(&[&one[..one.len() - 4], control, &one[one.len() - 4..]]);
        check(&damaged, &[back], &[(Code::Control, &damaged)]);
    }
    let damaged = join(&[b"{\x01", &one[1..]]);
    check(&damaged, &[], &[(Code::TornMid, &damaged)]);
    // Nested too deeply.
    let deep = format!(
        "{{\"type\":\"user\",\"x\":{}1{}}}",
        "[".repeat(127),
        "]".repeat(127)
    );
    check(deep.as_bytes(), &[], &[(Code::Depth, deep.as_bytes())]);
    // Other grammars.
    for other in [
        "{\"type\":NaN}",
        "{'type':'user'}",
        "{\"type\":\"user\",}",
        "// {\"a\":1}",
    ] {
        check(other.as_bytes(), &[], &[(Code::TornMid, other.as_bytes())]);
    }
    // Values that are not objects, also with an entry inside.
    let array = join(&[b"[", one, b",", two, b"]"]);
    for other in [&b"[]"[..], b"1", b"\"x\"", b"null", &array] {
        check(other, &[], &[(Code::NotObject, other)]);
    }
}

/// Lines that are read although they are unusual; two of them have a note.
#[test]
fn unusual_but_complete_lines_are_read_unchanged() {
    let lines = [
        "{\"type\":\"user\",\"uuid\":\"one\",\"a\":\"\\ud83d\"}",
        "{\"type\":\"user\",\"uuid\":\"one\",\"a\":\"\\u0000\"}",
        "{\"type\":\"user\",\"uuid\":\"one\",\"a\":1,\"a\":2}",
        "{\"type\":\"user\",\"uuid\":\"one\",\"a\":1e999}",
        "{\"type\":\"user\",\"uuid\":\"one\",\"a\":12345678901234567890123}",
        "{\"type\":\"no such type\",\"uuid\":\"one\"}",
        "{\"uuid\":\"one\",\"0\":\"a\",\"1\":\"b\"}",
        "{\"type\":\"user\",\"uuid\":\"one\",\"a\":\"\u{2028}\u{2029}\u{feff}\"}",
    ];
    for line in lines {
        let line = line.as_bytes();
        let code = match line[line.len() - 6..].strip_suffix(b"\"}") {
            Some(b"d83d") => Some(Code::Surrogate),
            Some(b"0000") => Some(Code::NulEscape),
            _ => None,
        };
        let findings: Vec<_> = code.map(|code| (code, line)).into_iter().collect();
        check(line, &[("one", "seen")], &findings);
    }
}

/// One byte order mark at the start of a file is skipped, as in the client (FILE-4); others are
/// damage.
#[test]
fn an_entry_after_a_byte_order_mark_is_read() {
    let bytes = format!("\u{feff}{}\n{}\n", entry("one", ""), entry("two", "one"));
    let (seen, findings) = read(bytes.as_bytes(), "a mark");
    let expected = [(1, "one".to_owned(), "seen"), (2, "two".to_owned(), "seen")];
    assert_eq!(seen, expected);
    assert_eq!(findings, [(Code::Bom, 1, "\u{feff}".to_owned())]);
    let (seen, _) = read(
        format!("\u{feff}{}\r\n", entry("one", "")).as_bytes(),
        "a mark, CRLF",
    );
    assert_eq!(seen, [(1, "one".to_owned(), "seen")]);
    let (seen, _) = read(
        format!("\u{feff}\u{feff}{}\n", entry("one", "")).as_bytes(),
        "two marks",
    );
    assert_eq!(seen, [(1, "one".to_owned(), "salvaged")]);
    let one = entry("one", "before");
    check(
        format!("\u{feff}{one}").as_bytes(),
        &[("one", "salvaged")],
        &[(Code::TornMid, "\u{feff}".as_bytes())],
    );
}

/// Several kinds of damage in one file lose no complete entry.
#[test]
fn a_glued_line_a_run_of_nuls_and_a_torn_tail_lose_no_complete_entry() {
    let lines = [
        entry("one", ""),
        format!("{}{}", &entry("lost", "one")[..40], entry("two", "one")),
        "\0".repeat(300),
        entry("three", "two"),
        entry("four", "three")[..50].to_owned(),
    ];
    let bytes = lines.join("\n");
    let (seen, findings) = read(bytes.as_bytes(), "several kinds of damage");
    let seen: Vec<_> = seen
        .iter()
        .map(|one| (one.0, one.1.as_str(), one.2))
        .collect();
    assert_eq!(
        seen,
        [
            (1, "one", "seen"),
            (2, "two", "salvaged"),
            (4, "three", "seen")
        ]
    );
    let expected = [
        (Code::TornMid, 2, lines[1][..40].to_owned()),
        (Code::Nul, 3, lines[2].clone()),
        (Code::TornTail, 5, lines[4].clone()),
    ];
    assert_eq!(findings, expected);
}

/// Raw line feeds spread an entry over several lines, some of which may be blank.
#[test]
fn an_entry_that_line_feeds_spread_over_lines_is_salvaged_as_one() {
    let whole = entry("one", "before");
    for newline in [
        "\n",
        "\r\n",
        "\n\n\n",
        "\n \t\n42\n",
        "\n{\\\"torn\\\":\n",
        "\n[]\nnull\n",
    ] {
        let split = whole.replace(" of ", newline);
        let split = split.as_bytes();
        check(split, &[("one", "salvaged")], &[(Code::Split, split)]);
        let torn = &b"{\"type\":\"user\",\"uu"[..];
        check(
            &join(&[torn, split, torn]),
            &[("one", "salvaged")],
            &[
                (Code::TornMid, torn),
                (Code::Split, split),
                (Code::TornMid, torn),
            ],
        );
        // The first of two glued entries is complete, the second one is spread over lines.
        check(
            &join(&[entry("two", "").as_bytes(), split]),
            &[("two", "seen"), ("one", "salvaged")],
            &[(Code::Split, split)],
        );
    }
}

/// A complete entry among the pieces is not part of them, and pieces are not joined across it.
#[test]
fn an_entry_is_not_joined_across_a_complete_line() {
    let whole = entry("one", "before");
    let (head, tail) = whole.split_at(whole.len() - 8);
    let between = entry("two", "one");
    for between in [between.as_str(), "{}", "{\"a\":1}torn"] {
        let line = [head, between, tail].join("\n");
        let scratch = Scratch::new(format!("{line}\n").as_bytes());
        let index = check_all_ways(&scratch.open(), between);
        assert_eq!(index.len(), 1, "{between}");
        assert!(!index.entry(EntryNo::new(0)).is_salvaged());
        let codes: Vec<Code> = reported(&index).into_iter().map(|one| one.0).collect();
        assert_eq!(
            codes.len(),
            2 + usize::from(between.ends_with("torn")),
            "{codes:?}"
        );
    }
}

/// The lines that are searched together take at most the cap on one line.
#[test]
fn an_entry_is_joined_from_at_most_as_many_bytes_as_a_line_may_have() {
    let split = entry("one", "").replace(" of ", &"\n".repeat(50));
    for (cap, expected) in [(split.len(), 1), (split.len() - 1, 0)] {
        let scratch = Scratch::new(split.as_bytes());
        let index = load(&scratch.open(), &LoadOptions::new().line_cap(cap));
        assert_eq!(index.len(), expected, "{cap}");
    }
}

/// Lines with lone surrogates and NUL escapes in their strings: every line is read.
#[test]
fn odd_characters_in_strings_lose_no_entry() {
    let result = |uuid: &str, text: &[u8]| {
        let mut line = entry(uuid, "").into_bytes();
        let end = line.len() - 3;
        line.splice(end..end, text.iter().copied());
        line
    };
    let lines = [
        join(&[b"\xEF\xBB\xBF", &result("a", b"")]),
        result("b", b"\\ud83d\\u2026"),
        result("c", b"\\u0000"),
        result("d", b"\xE6\x87"),
        result("e", b"\xE2\x80\xA8"),
    ];
    let (seen, findings) = read(&lines.join(&b'\n'), "odd strings");
    let seen: Vec<_> = seen.iter().map(|one| (one.1.as_str(), one.2)).collect();
    let expected = ["a", "b", "c", "d", "e"].map(|uuid| (uuid, "seen"));
    assert_eq!(seen, expected);
    let codes: Vec<_> = findings.iter().map(|one| (one.0, one.1)).collect();
    let expected = [
        (Code::Bom, 1),
        (Code::Surrogate, 2),
        (Code::NulEscape, 3),
        (Code::Utf8, 4),
        (Code::Unterminated, 5),
    ];
    assert_eq!(codes, expected);
}

/// A torn entry that contains complete ones does not release them, wherever it is cut.
#[test]
fn an_entry_within_a_torn_one_is_not_salvaged() {
    let inner = "{\"type\":\"user\",\"uuid\":\"inner\",\"message\":{\"content\":\"x\"}}";
    let outer = format!(
        "{{\"type\":\"progress\",\"uuid\":\"outer\",\"sessionId\":\"s\",\
         \"data\":{{\"message\":{inner},\"list\":[{inner},{inner}]}}}}"
    );
    let next = entry("one", "before");
    for cut in 1..outer.len() {
        let torn = &outer.as_bytes()[..cut];
        check(torn, &[], &[(Code::TornMid, torn)]);
        let glued = join(&[torn, next.as_bytes()]);
        check(&glued, &[("one", "salvaged")], &[(Code::TornMid, torn)]);
    }
}

/// The text of a salvaged entry is the object, and its marks show whether a newline follows.
#[test]
fn the_body_of_a_salvaged_entry_is_its_repaired_text() {
    let (one, two) = (entry("one", ""), entry("two", "one"));
    let spread = one.replace(" of ", "\n\0\x1b");
    let mut bytes = format!("torn{spread}\n\0\0{two}").into_bytes();
    for is_last in [true, false] {
        let scratch = Scratch::new(&bytes);
        let source: Source = scratch.open();
        let index = check_all_ways(&source, "bodies");
        let mut bodies = Bodies::new(&source);
        let mut texts = Vec::new();
        for entry_ref in index.entries() {
            let text = bodies.get(&entry_ref).expect("the file can be read").text;
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
            texts.push(text.to_owned());
        }
        assert_eq!(texts, [one.replace(" of ", "\\n\\u001b"), two.clone()]);
        let is_open = |number| {
            let marks = index.entry(EntryNo::new(number)).marks();
            marks.contains(transcript_reader::EntryMarks::UNTERMINATED)
        };
        assert_eq!([is_open(0), is_open(1)], [false, is_last]);
        bytes.push(b'\n');
    }
}
