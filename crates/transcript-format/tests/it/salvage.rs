//! Salvage finds the complete entries in damaged bytes, and nothing else.

#![expect(
    clippy::single_range_in_vec_init,
    reason = "a list of places has one element now and then"
)]

use std::ops::Range;

use proptest::prelude::*;
use serde_json::Value;
use transcript_format::kind::EntryKind;
use transcript_format::object::Object;
use transcript_format::salvage::{self, closed_text, objects, records, repaired_text};
use transcript_format::scan::Scanner;
use transcript_testkit::rng::Rng;
use transcript_testkit::{damage, generate};

pub(crate) mod invariants;

/// An entry as old clients wrote it while a subagent ran: it contains complete entries.
const NESTING: &str = concat!(
    r#"{"parentUuid":"p1","isSidechain":false,"sessionId":"s1","type":"progress","data":{"message":"#,
    r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"a \"b\" {\\","#,
    r#""x":[1,-2.5e3,true,null]},{"type":"tool_use","id":"t1","input":{"a":{},"b":[]}}]},"#,
    r#""uuid":"n1"},"normalizedMessages":[{"type":"user","message":{"content":"one, two: [{"},"#,
    r#""uuid":"n2"},{"type":"user","uuid":"n3"}],"type":"agent_progress"},"toolUseResult":"#,
    r#"{"type":"system","subtype":"x"},"uuid":"u1","timestamp":"2026-01-01T00:00:00.000Z"}"#,
);

const WHOLE: &str = concat!(
    r#"{"parentUuid":"u1","sessionId":"s1","type":"user","message":{"role":"user","content":"#,
    r#"[{"type":"tool_result","tool_use_id":"t1","content":"é \u0041 {\"type\":\"user\"}"}]},"#,
    r#""uuid":"u2"}"#,
);

/// An entry with white space between its tokens, and with its type last.
const SPACED: &str =
    r#"{ "uuid": "u3", "sessionId": "s1", "message": {"content": ":"}, "type": "user" }"#;

/// The kinds of entries without a session.
const WITHOUT_SESSION: &str = r#"{"type":"summary","summary":"text","leafUuid":"u1"}"#;

#[track_caller]
fn assert_found(bytes: &[u8], expected: &[Range<usize>], what: &str) {
    let found = objects(bytes);
    if found != expected {
        let line = String::from_utf8_lossy(bytes);
        panic!("{what}: {found:?}, not {expected:?} in {line}");
    }
}

#[track_caller]
fn assert_nothing(bytes: &[u8]) {
    assert_found(bytes, &[], "nothing");
}

/// Joins pieces; returns the bytes and the places of the entries that should be found.
fn line(pieces: &[(&[u8], bool)]) -> (Vec<u8>, Vec<Range<usize>>) {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for (piece, is_expected) in pieces {
        let start = bytes.len();
        bytes.extend_from_slice(piece);
        if *is_expected {
            places.push(start..bytes.len());
        }
    }
    (bytes, places)
}

#[track_caller]
fn assert_line(pieces: &[(&[u8], bool)], what: &str) {
    let (bytes, expected) = line(pieces);
    assert_found(&bytes, &expected, what);
}

// -------------------------------------------------------------------------------------------------
// Cuts
// -------------------------------------------------------------------------------------------------

#[test]
fn torn_entry_is_not_salvaged_at_any_cut() {
    for entry in [NESTING, WHOLE, SPACED, WITHOUT_SESSION] {
        let entry = entry.as_bytes();
        for cut in 0..entry.len() {
            let (head, tail) = entry.split_at(cut);
            for noise in [&b""[..], b"\0", &[0; 300], b" \t\r", b"\n", b"\xFF"] {
                assert_nothing(&[head, noise].concat());
            }
            // The head is lost as well.
            if cut > 0 {
                assert_nothing(tail);
                assert_nothing(&[&[0; 64][..], tail].concat());
            }
        }
    }
}

/// A hole in the middle of an entry does not release its nested entries.
#[test]
fn only_the_entry_itself_is_salvaged_of_an_entry_with_a_hole() {
    let entry = NESTING.as_bytes();
    for from in 0..entry.len() {
        for len in [1, 2, 7, 30, 100, 400] {
            let mut bytes = entry.to_vec();
            let to = entry.len().min(from + len);
            for hole in [0, b'\xFF', b'#'] {
                bytes[from..to].fill(hole);
                let found = objects(&bytes);
                let itself = [0..entry.len()];
                assert!(
                    found.is_empty() || found == itself,
                    "{found:?}, {from}..{to}"
                );
            }
        }
    }
}

#[test]
fn only_the_entry_glued_to_a_torn_one_is_salvaged_wherever_the_first_is_cut() {
    for torn in [NESTING, WHOLE, SPACED] {
        let torn = torn.as_bytes();
        for whole in [WHOLE, SPACED, NESTING] {
            let whole = whole.as_bytes();
            for cut in 0..torn.len() {
                let head = &torn[..cut];
                let name = format!("cut at {cut}");
                let (none, nuls): (&[u8], &[u8]) = (b"", &[0; 40]);
                for gap in [none, nuls, b"\n", b" ", b"\n\n\0\n"] {
                    assert_line(&[(head, false), (gap, false), (whole, true)], &name);
                }
                for after in [nuls, b" \r", b"\n", b"\0\n\0", b"\xFF\xFE", b"text"] {
                    assert_line(&[(head, false), (whole, true), (after, false)], &name);
                }
                assert_line(&[(head, false), (whole, true), (whole, true)], &name);
                assert_line(
                    &[(head, false), (whole, true), (nuls, false), (whole, true)],
                    &name,
                );
            }
        }
    }
}

#[test]
fn torn_and_complete_entries_may_alternate_on_a_line() {
    let (torn, whole) = (NESTING.as_bytes(), WHOLE.as_bytes());
    for first in 0..torn.len() {
        for second in (first % 7..torn.len()).step_by(7) {
            let (one, two) = (&torn[..first], &torn[..second]);
            let name = format!("cuts at {first} and {second}");
            assert_line(&[(one, false), (two, false), (whole, true)], &name);
            assert_line(&[(one, false), (whole, true), (two, false)], &name);
            assert_line(
                &[
                    (one, false),
                    (whole, true),
                    (two, false),
                    (whole, true),
                    (one, false),
                ],
                &name,
            );
        }
    }
}

/// Such an entry could also be nested in the torn one, so it is not salvaged.
#[test]
fn an_entry_without_a_session_is_only_ignored_after_a_cut_before_a_value() {
    let (torn, whole) = (NESTING.as_bytes(), WITHOUT_SESSION.as_bytes());
    let mut left = 0;
    for cut in 0..torn.len() {
        let bytes = [&torn[..cut], whole].concat();
        let found = objects(&bytes);
        if found.is_empty() {
            assert!(b":,[".contains(&torn[cut - 1]), "cut at {cut}");
            left += 1;
        } else {
            assert_eq!(found, [cut..bytes.len()], "cut at {cut}");
        }
    }
    assert!((20..60).contains(&left), "{left}");
}

#[test]
fn all_glued_entries_are_salvaged() {
    let whole = [WHOLE, NESTING, SPACED, WITHOUT_SESSION].map(str::as_bytes);
    let pieces = whole.map(|piece| (piece, true));
    assert_line(&pieces, "four in a row");
    let (none, torn) = ((&b"\0 \0"[..], false), (&NESTING.as_bytes()[..50], false));
    for gap in [none, torn] {
        let mixed: Vec<_> = pieces.iter().flat_map(|piece| [gap, *piece]).collect();
        assert_line(&mixed, "four with something between");
    }
}

// -------------------------------------------------------------------------------------------------
// Single kinds of damage
// -------------------------------------------------------------------------------------------------

#[test]
fn bytes_that_json_does_not_allow_are_repaired() {
    let object = |text: &[u8]| [&b"{\"type\":\"tag\",\"tag\":\""[..], text, b"\"}"].concat();
    let cases: [(&[u8], &str); 12] = [
        (b"plain", "plain"),
        (b"a\0\0b", "ab"),
        (b"a\nb", r"a\nb"),
        (b"a\r\n\tb", r"a\r\n\tb"),
        (b"a\x01\x1b\x1fb", r"a\u0001\u001b\u001fb"),
        (b"\x7f", "\u{7f}"),
        (b"\xFF", "\u{FFFD}"),
        (b"\xED\xA0\xBD", "\u{FFFD}\u{FFFD}\u{FFFD}"),
        (b"\xE6\x87", "\u{FFFD}"),
        (b"\xE6\0\x87\x91", "懑"),
        (b"\\\0n\\\0\"", r#"\n\""#),
        (b"\\ud83d\\u0000\xFF\x02", "\\ud83d\\u0000\u{FFFD}\\u0002"),
    ];
    for (there, expected) in cases {
        let bytes = object(there);
        let expected = String::from_utf8(object(expected.as_bytes())).unwrap();
        assert_eq!(repaired_text(&bytes), expected);
        assert_line(&[(b"torn", false), (&bytes, true)], &expected);
        invariants::check(&bytes);
    }
}

#[test]
fn an_entry_that_cannot_be_repaired_is_not_salvaged() {
    let lines: [&[u8]; 16] = [
        b"",
        b"\0\0\0",
        b"not json",
        b"[{\"type\":\"user\"}]",
        b"[{\"type\":\"user\",\"sessionId\":\"s\"},{\"type\":\"user\",\"sessionId\":\"s\"}]",
        b"\"{\"",
        b"42",
        b"{\"a\":1}",
        b"{\"type\":\"no such type\"}",
        b"{\"type\":1}",
        b"{\"type\":\"user\",\"a\":NaN}",
        b"{\"type\":\"user\",}",
        b"{'type':'user'}",
        b"{\"type\":\"user\",\"a\":\"\\\x01\"}",
        b"{\"type\":\"user\",\"a\":\"\\x\"}",
        b"{\"type\":\"user\"\x01}",
    ];
    for bytes in lines {
        assert_nothing(bytes);
        invariants::check(bytes);
    }
}

#[test]
fn an_entry_with_a_damaged_uuid_is_not_salvaged() {
    for uuid in [&b"u\x001"[..], b"u\x011", b"u\xFF1", b"u\n1"] {
        let entry = [b"{\"type\":\"user\",\"uuid\":\"", uuid, b"\"}"].concat();
        assert_nothing(&entry);
    }
}

#[test]
fn an_object_that_is_nested_too_deeply_is_not_salvaged() {
    for (levels, is_expected) in [(126, true), (127, false), (128, false), (100_000, false)] {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        let entry = format!(r#"{{"type":"user","a":{open}{close}}}"#);
        assert_line(&[(b"\0", false), (entry.as_bytes(), is_expected)], "levels");
        let entry = format!(
            r#"{{"type":"user","a":{}"#,
            r#"{"type":"user","a":"#.repeat(levels)
        );
        assert_nothing(entry.as_bytes());
    }
}

// -------------------------------------------------------------------------------------------------
// Lines
// -------------------------------------------------------------------------------------------------

#[test]
fn an_entry_that_is_spread_over_lines_is_salvaged() {
    let text = "a word\\nand more, with a \\\"quote\\\"\\nand the rest";
    let entry = format!(r#"{{"type":"user","message":{{"content":"{text}"}},"uuid":"u"}}"#);
    // Raw line feeds, with empty lines between.
    for newline in ["\n", "\n\n\n", "\r\n", "\n \n"] {
        let split = entry.replace("\\n", newline);
        assert_line(&[(split.as_bytes(), true)], newline);
        assert_line(
            &[
                (b"{\"torn\n", false),
                (split.as_bytes(), true),
                (b"\n}", false),
            ],
            newline,
        );
        let escaped = newline.replace('\n', "\\n").replace('\r', "\\r");
        assert_eq!(
            repaired_text(split.as_bytes()),
            entry.replace("\\n", &escaped)
        );
    }
    // Pretty-printed over several lines.
    let value: serde_json::Value = serde_json::from_str(NESTING).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    assert_line(
        &[
            (pretty.as_bytes(), true),
            (b"\n", false),
            (pretty.as_bytes(), true),
        ],
        "pretty",
    );
    for cut in 1..pretty.len() {
        assert_nothing(&pretty.as_bytes()[..cut]);
    }
}

// -------------------------------------------------------------------------------------------------
// Generated sessions
// -------------------------------------------------------------------------------------------------

/// The lines of a session with an entry of a known type, and whether it names a session.
fn entries(session: &[u8]) -> Vec<(&[u8], bool)> {
    let mut scanner = Scanner::new();
    let lines = session.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| {
            let line = line.trim_ascii();
            let envelope = scanner.scan(line).ok()?;
            let is_known = envelope.kind() != EntryKind::Other;
            is_known.then_some((line, envelope.session_id().is_some()))
        })
        .collect()
}

#[test]
fn only_lines_of_sessions_glued_to_torn_ones_are_salvaged() {
    let (mut back, mut left) = (0, 0);
    for seed in 0..400 {
        let session = generate::session(seed);
        let entries = entries(&session);
        let mut rng = Rng::new(seed);
        for pair in entries.windows(2) {
            let ((torn, _), (whole, has_session)) = (pair[0], pair[1]);
            let head = &torn[..rng.below(torn.len())];
            assert_nothing(head);
            let bytes = [head, whole].concat();
            let found = objects(&bytes);
            if !has_session && found.is_empty() {
                let before = head.trim_ascii_end().last();
                assert!(matches!(before, Some(b':' | b',' | b'[')), "seed {seed}");
                left += 1;
                continue;
            }
            assert_found(&bytes, &[head.len()..bytes.len()], &format!("seed {seed}"));
            back += 1;
        }
    }
    assert!(back > 5_000 && left < back / 50, "{back} back, {left} left");
}

#[test]
fn nothing_is_invented_in_damaged_sessions() {
    for seed in 0..500 {
        let (bytes, _) = damage::damage(&generate::session(seed), seed);
        invariants::check(&bytes);
        for line in bytes.split(|byte| *byte == b'\n') {
            invariants::check(line);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn nothing_is_invented_in_any_mix_of_pieces(pieces in prop::collection::vec(0..PIECES.len(), 0..24)) {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| PIECES[*piece]).copied().collect();
        invariants::check(&bytes);
    }
}

const PIECES: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\0",
    b"\n",
    b" ",
    b"\xFF",
    b"\x01",
    b"1",
    b"null",
    b"\"type\":\"user\"",
    b"\"uuid\":\"u\"",
    b"\"sessionId\":\"s\"",
    b"\"a\":",
    b"{\"type\":\"user\",\"uuid\":\"u\"}",
    b"{\"type\":\"user\",\"sessionId\":\"s\"}",
    b"{\"a\":",
    b"\\ud83d",
    b"\xE2\x80",
];

/// A search that restarted at every brace would take hours for this line.
#[test]
fn sixteen_mib_of_braces_are_searched_in_linear_time() {
    let nested = [
        b"{\"type\":\"user\",\"a\":[".repeat(63),
        b"0,".repeat(8 << 20),
    ]
    .concat();
    assert_nothing(&nested);
    let whole = WHOLE.as_bytes();
    for open in [
        &b"{\""[..],
        b"{\"a\":\"",
        b"{\"a\":1",
        b"{ \0\"\0",
        b"{\"a\":{\"b\":[{},",
    ] {
        let bytes = [&open.repeat((16 << 20) / open.len()), whole].concat();
        let found = objects(&bytes);
        assert!(found.is_empty() || found == [bytes.len() - whole.len()..bytes.len()]);
    }
}

/// Returns the result of `entries` for a line that consists of a torn entry.
fn torn(line: &[u8]) -> Option<String> {
    let places = salvage::entries(line);
    assert!(objects(line).is_empty());
    assert!(places.len() <= 1);
    places
        .first()
        .map(|place| repaired_text(&line[place.clone()]))
}

#[test]
fn a_torn_entry_with_its_ids_is_salvaged_up_to_its_last_complete_member() {
    let whole = br#"{"parentUuid":"u1","isSidechain":false,"type":"user","message":{"content":"a, b"},"uuid":"u2","cwd":"/home"}"#;
    let members = br#"{"parentUuid":"u1","isSidechain":false,"type":"user","message":{"content":"a, b"},"uuid":"u2""#;
    // Without the comma the uuid might continue.
    for cut in 0..=members.len() {
        assert_eq!(torn(&whole[..cut]), None, "{cut}");
    }
    let back = String::from_utf8(members.to_vec()).unwrap() + "}";
    for cut in members.len() + 1..whole.len() {
        assert_eq!(torn(&whole[..cut]).as_deref(), Some(&*back), "{cut}");
    }
}

#[test]
fn a_torn_entry_without_its_link_fields_is_not_salvaged() {
    for missing in [
        br#"{"isSidechain":false,"type":"user","message":{"content":"x"},"uuid":"u2","cw"#.as_slice(),
        br#"{"parentUuid":"u1","type":"user","message":{"content":"x"},"uuid":"u2","cw"#,
        br#"{"parentUuid":"u1","isSidechain":false,"type":"user","message":{"content":"x"},"cwd":"/","#,
        br#"{"parentUuid":"u1","isSidechain":false,"message":{"content":"x"},"uuid":"u2","cw"#,
        br#"{"parentUuid":"u1","isSidechain":false,"type":"last-prompt","uuid":"u2","cw"#,
    ] {
        assert_eq!(torn(missing), None);
    }
}

/// A text stays up to the tear. Names, numbers and words stay only if they are whole.
#[test]
fn every_start_of_an_object_is_closed_to_an_object() {
    let whole =
        r#"{"a":[1,"x\u00e9\n",{"b":null}],"c":{"d":"\\\"yz","e":[[],{}]},"f":-1.5e3,"g":true}"#;
    let mut longest = 0;
    for (end, _) in whole.char_indices().skip(1) {
        let closed = closed_text(&whole.as_bytes()[..end]).expect("an object starts there");
        let value: Value = serde_json::from_str(&closed).unwrap_or_else(|_| panic!("{closed}"));
        let kept = value.to_string().len();
        assert!(kept + 8 > longest, "{closed}");
        longest = longest.max(kept);
    }
    assert_eq!(closed_text(whole.as_bytes()).as_deref(), Some(whole));
    let torn = |text: &str| closed_text(text.as_bytes()).unwrap_or_default();
    assert_eq!(torn(r#"{"a":"x\u00"#), r#"{"a":"x"}"#);
    assert_eq!(torn(r#"{"a":"x\"#), r#"{"a":"x"}"#);
    assert_eq!(torn(r#"{"a":1,"b"#), r#"{"a":1}"#);
    assert_eq!(torn(r#"{"a":["x","#), r#"{"a":["x"]}"#);
    for other in ["", "x", "[1", r#""{"#, "}{"] {
        assert_eq!(torn(other), "", "{other}");
    }
}

#[test]
fn records_of_another_format_are_found_by_their_form() {
    let is_record =
        |object: &Object<'_>| object.get("id").is_some() && object.get("kind").is_some();
    let (one, two) = (
        r#"{"id":1,"kind":"x","of":{"id":9}}"#,
        r#"{"kind":"y","id":2}"#,
    );
    for between in ["", "\0\0", r#"{"id":3,"ki"#, r#"{"id":4,"of":{"id":5}"#] {
        let line = format!("{one}{between}{two}");
        let found = records(line.as_bytes(), is_record);
        let texts: Vec<&str> = found.into_iter().map(|place| &line[place]).collect();
        assert_eq!(texts, [one, two], "{between:?}");
    }
}
