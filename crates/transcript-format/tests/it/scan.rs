//! The envelope scan against `serde_json`, and each kind of damage to lines.

mod reference;

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use transcript_format::kind::EntryKind;
use transcript_format::scan::{ContentKind, Flags, ScanErrorKind, Scanner, ToolRole};
use transcript_testkit::rng::Rng;
use transcript_testkit::{generate, shared};

use reference::{check, scan};

fn error(line: &[u8]) -> (ScanErrorKind, usize) {
    check(line);
    match scan(line) {
        Ok(fields) => panic!("the line scans: {fields:?}"),
        Err(error) => (error.kind, error.at),
    }
}

/// Returns the string that the scan finds at `uuid`.
fn uuid(line: &str) -> Option<String> {
    assert!(check(line.as_bytes()), "{line} does not scan");
    let mut scanner = Scanner::new();
    let envelope = scanner.scan(line.as_bytes()).expect("it was just checked");
    envelope.uuid().map(|id| id.decode().into_owned())
}

fn flags(line: &str) -> Flags {
    assert!(check(line.as_bytes()), "{line} does not scan");
    scan(line.as_bytes()).expect("it was just checked").0.flags
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

// -------------------------------------------------------------------------------------------------
// Real and generated lines, intact and damaged
// -------------------------------------------------------------------------------------------------

/// The lines of every `.jsonl` file of the shared corpus and of the recorded sessions, on machines
/// that have them.
fn shared_lines() -> Option<Vec<Vec<u8>>> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("the folder is readable") {
            let path = entry.expect("the folder is readable").path();
            if path.is_dir() {
                collect(&path, files);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                files.push(path);
            }
        }
    }
    let shared = shared()?;
    let mut files = Vec::new();
    collect(&shared.join("corpus/files"), &mut files);
    collect(&shared.join("oracle"), &mut files);
    files.sort();
    let read = |file: &PathBuf| lines(&fs::read(file).expect("the file is readable"));
    Some(files.iter().flat_map(read).collect())
}

fn generated_lines() -> Vec<Vec<u8>> {
    (0..100)
        .flat_map(|seed| lines(&generate::session(seed)))
        .collect()
}

#[test]
fn every_line_of_real_sessions_scans_as_serde_json_reads_it() {
    let Some(lines) = shared_lines() else {
        println!("skipped: no shared data");
        return;
    };
    let whole = lines.iter().filter(|line| check(line)).count();
    println!("{whole} of {} lines scan", lines.len());
    assert!(whole > 15_000);
}

#[test]
fn every_generated_line_scans_as_serde_json_reads_it() {
    for line in generated_lines() {
        assert_eq!(check(&line), !line.trim_ascii().is_empty());
    }
}

/// Damages a line in one of several ways.
fn damage(line: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut out = line.to_vec();
    let at = rng.below(out.len() + 1);
    let slice = |rng: &mut Rng, of: &[u8]| {
        let from = rng.below(of.len() + 1);
        let longest = *rng.pick(&[4, 40, of.len()]);
        of[from..of.len().min(from + longest)].to_vec()
    };
    match rng.below(10) {
        0 => out.truncate(at),
        1 => drop(out.drain(..at)),
        2 if at < out.len() => out[at] ^= 1 << rng.below(8),
        3 => out.insert(
            at,
            *rng.pick(b"\"\"\\\\{}[]:,u0-.eE \t\r\n\x00\x1f\x7f\x80\xff\xc3"),
        ),
        4 if at < out.len() => _ = out.remove(at),
        5 => _ = out.splice(at..at, slice(rng, line)),
        6 => _ = out.splice(at..at, slice(rng, other)),
        7 => _ = out.splice(at.., other.iter().copied()),
        8 => _ = out.splice(at..at, vec![0; *rng.pick(&[1, 3, 64, 200])]),
        _ => {
            let to = out.len().min(at + rng.below(30));
            out.drain(at..to);
        }
    }
    if rng.one_in(3) {
        damage(&out, other, rng)
    } else {
        out
    }
}

/// Damages lines until there are `count` of them. Long lines are chosen less often, to save time.
fn check_damaged(lines: &[Vec<u8>], count: usize, seed: u64) {
    let (short, long): (Vec<&Vec<u8>>, Vec<_>) = lines.iter().partition(|line| line.len() < 3_000);
    let mut rng = Rng::new(seed);
    let mut whole = 0;
    for _ in 0..count {
        let is_long = rng.one_in(40) && !long.is_empty();
        let line = rng.pick(if is_long { &long } else { &short });
        let other = rng.pick(&short);
        whole += usize::from(check(&damage(line, other, &mut rng)));
    }
    // Both outcomes must be common, or the comparison means little.
    assert!(
        whole > count / 10 && whole < count / 2,
        "{whole} of {count} still scan"
    );
}

#[test]
fn damaged_real_lines_scan_exactly_when_serde_json_reads_them() {
    let Some(lines) = shared_lines() else {
        println!("skipped: no shared data");
        return;
    };
    check_damaged(&lines, 300_000, 1);
}

#[test]
fn damaged_generated_lines_scan_exactly_when_serde_json_reads_them() {
    check_damaged(&generated_lines(), 200_000, 2);
}

/// A file that is cut anywhere must not look like a complete entry, and the cut must be reported.
#[test]
fn no_proper_prefix_of_a_line_scans_and_each_is_incomplete() {
    let text = r#"{"type":"user","uuid":"a\u0062\\\"c","n":[-1.5e+10,true,false,null,{}],"message":{"content":[{"type":"text","text":"grüße \ud83d\ude80"}]},"isMeta":true}"#;
    let mut lines: Vec<Vec<u8>> = generated_lines().into_iter().take(200).collect();
    lines.push(text.into());
    for line in lines {
        let line = line.trim_ascii_end();
        for len in 1..line.len() {
            let (kind, at) = error(&line[..len]);
            assert_eq!(
                (kind, at),
                (ScanErrorKind::Incomplete, len),
                "of {}",
                line.escape_ascii()
            );
        }
    }
}

// -------------------------------------------------------------------------------------------------
// Generated objects
// -------------------------------------------------------------------------------------------------

/// Names that the scan knows, at the top level or nested.
const NAMES: [&str; 28] = [
    "uuid",
    "parentUuid",
    "type",
    "timestamp",
    "sessionId",
    "isSidechain",
    "message",
    "subtype",
    "agentId",
    "isMeta",
    "teamName",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "isVirtual",
    "isApiErrorMessage",
    "explicit",
    "leafUuid",
    "logicalParentUuid",
    "sourceToolAssistantUUID",
    "attachment",
    "data",
    "toolUseResult",
    "content",
    "id",
    "tool_use_id",
    "input",
    "Uuid",
    "uuidx",
];

fn white() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "", "", "", "", "", "", " ", "\t", "\r", "  \n "])
}

/// A name; some letters are written as escapes.
fn name() -> impl Strategy<Value = String> {
    (
        prop::sample::select(&NAMES[..]),
        prop::option::weighted(0.15, 0usize..25),
    )
        .prop_map(|(name, escaped)| {
            let letter = |(i, letter): (usize, char)| {
                if Some(i) == escaped {
                    format!("\\u{:04x}", u32::from(letter))
                } else {
                    letter.to_string()
                }
            };
            format!(
                "\"{}\"",
                name.chars().enumerate().map(letter).collect::<String>()
            )
        })
}

/// A string with all that strings may contain, including quotes.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[a-z0-9]{0,70}",
        1 => prop::sample::select(vec![
            r#"\""#, r"\\", r"\/", r"\b\f\n\r\t", r"\u0061", r"\u0000", r"\u00E9", r"\ud83d\ude80",
            r"\ud83d", r"\ude80", r"\uD83D\uD83D", "é", "\u{2028}", "\u{1f680}", "{", "}", "[", ":",
            ",", r#"\"uuid\":\"no\""#, r"\\\\\\", "\u{7f}", "\u{feff}", "msg_1", "toolu_1",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn type_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "\"user\"",
        "\"assistant\"",
        "\"system\"",
        "\"attachment\"",
        "\"progress\"",
        "\"\"",
        "\"\\u0075ser\"",
        "\"text\"",
        "\"thinking\"",
        "\"tool_use\"",
        "\"tool_result\"",
        "\"server_tool_use\"",
        "\"mcp_tool_use\"",
        "\"web_search_tool_result\"",
        "\"_tool_result\"",
        "\"image\"",
        "\"compact_boundary\"",
        "\"hook_success\"",
        "\"bash_progress\"",
        "null",
        "7",
    ])
    .prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => string(),
        1 => type_name(),
        3 => prop::sample::select(vec![
            "true", "false", "null", "0", "-0", "-0.0e0", "1", "12345678901234567890123", "1e5",
            "0.25", "-1.5E-3", "1E+2", "1e999", "-1e999", "9007199254740993",
        ])
        .prop_map(str::to_owned),
    ]
}

fn object(
    name: impl Strategy<Value = String>,
    value: impl Strategy<Value = String>,
    count: usize,
) -> impl Strategy<Value = String> {
    let member = (white(), name, white(), white(), value, white())
        .prop_map(|(a, name, b, c, value, d)| format!("{a}{name}{b}:{c}{value}{d}"));
    (white(), prop::collection::vec(member, 0..count)).prop_map(|(inside, members)| {
        if members.is_empty() {
            format!("{{{inside}}}")
        } else {
            format!("{{{}}}", members.join(","))
        }
    })
}

fn array(value: impl Strategy<Value = String>, count: usize) -> impl Strategy<Value = String> {
    let value = (white(), value, white()).prop_map(|(a, value, b)| format!("{a}{value}{b}"));
    (white(), prop::collection::vec(value, 0..count)).prop_map(|(inside, values)| {
        if values.is_empty() {
            format!("[{inside}]")
        } else {
            format!("[{}]", values.join(","))
        }
    })
}

/// Any value; objects in it have names that are read at the top level.
fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![object(name(), inner.clone(), 5), array(inner, 5)]
    })
}

/// A message whose blocks look real, or nearly real.
fn message() -> impl Strategy<Value = String> {
    let named = |name: &'static str, value: BoxedStrategy<String>| {
        value.prop_map(move |value| format!("\"{name}\":{value}"))
    };
    let block_member = prop_oneof![
        3 => named("type", type_name().boxed()),
        2 => named("id", scalar().boxed()),
        2 => named("tool_use_id", scalar().boxed()),
        1 => named("input", value().boxed()),
        1 => named("content", value().boxed()),
    ];
    let block = prop::collection::vec(block_member, 0..6)
        .prop_map(|members| format!("{{{}}}", members.join(",")));
    let content = prop_oneof![4 => array(prop_oneof![5 => block, 1 => value()], 4), 1 => value()];
    let member = prop_oneof![
        3 => named("content", content.boxed()),
        2 => named("id", scalar().boxed()),
        1 => named("role", string().boxed()),
        1 => named("usage", value().boxed()),
    ];
    prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(",")))
}

/// An entry: names in any order, some repeated.
fn entry() -> impl Strategy<Value = String> {
    let member = prop_oneof![
        6 => (name(), prop_oneof![4 => scalar(), 1 => value()]),
        2 => (Just("\"message\"".to_owned()), message()),
        2 => (Just("\"type\"".to_owned()), type_name()),
        1 => (
            prop::sample::select(vec!["\"attachment\"", "\"data\""]).prop_map(str::to_owned),
            object(name(), scalar(), 4),
        ),
        1 => (string(), value()),
    ];
    let member = (white(), member, white(), white())
        .prop_map(|(a, (name, value), b, c)| format!("{a}{name}{b}:{value}{c}"));
    (white(), prop::collection::vec(member, 1..12), white())
        .prop_map(|(a, members, b)| format!("{a}{{{}}}{b}", members.join(",")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn random_entries_scan_as_serde_json_reads_them(entry in entry()) {
        prop_assert!(check(entry.as_bytes()));
    }

    #[test]
    fn any_bytes_scan_exactly_when_serde_json_reads_them(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ":", ",", "\"", "\\", "\"a\"", "\"uuid\"", "\"type\"", "0", "-",
                "1", ".", "e", "true", "tru", "null", " ", "\t", "\r", "\x00", "\x0c", "\\u00e9",
                "\\ud83d", "é", "\"message\":{", "\"content\":[{", "\"id\":",
            ]),
            0..20,
        ),
    ) {
        check(pieces.concat().as_bytes());
        check(format!("{{\"uuid\":{}}}", pieces.concat()).as_bytes());
    }
}

#[test]
fn nested_look_alikes_are_not_taken_for_the_entry_own_members() {
    let look_alikes = r#"{"uuid":"no","parentUuid":"no","type":"no","message":{"id":"no","content":[{"type":"tool_use","id":"no"}]}}"#;
    for (name, value) in [
        ("toolUseResult", look_alikes.to_owned()),
        ("toolUseResult", format!("[{look_alikes}]")),
        ("data", format!(r#"{{"message":{look_alikes}}}"#)),
        ("text", serde_json::Value::from(look_alikes).to_string()),
        (
            "message",
            format!(
                r#"{{"content":[{{"type":"image","input":{look_alikes},"content":[{look_alikes}]}}]}}"#
            ),
        ),
    ] {
        for line in [
            format!(r#"{{"{name}":{value},"uuid":"u","parentUuid":"p","type":"user"}}"#),
            format!(r#"{{"uuid":"u","parentUuid":"p","type":"user","{name}":{value}}}"#),
        ] {
            assert_eq!(uuid(&line).as_deref(), Some("u"));
            let (fields, _) = scan(line.as_bytes()).expect("it was just checked");
            assert_eq!(fields.kind, EntryKind::User);
            assert_eq!(fields.tools, []);
        }
    }
}

#[test]
fn last_text_stop_reason_and_names_of_a_message_count_whatever_their_type() {
    let values = [
        r#""t\u0065xt""#,
        "\"\"",
        "null",
        "7",
        r#"{"text":"x"}"#,
        r#"[{"type":"text","text":"a"},{"text":"b","type":"text","text":"c"},{"type":"image"}]"#,
        r#"[{"type":"text","text":"a"},{"type":"text"}]"#,
        r#"[{"type":"tool_use","id":"i","name":"N","name":5},{"id":"j","type":"mcp_tool_use","name":"\u004d"}]"#,
        r#"[{"type":"tool_result","tool_use_id":"i","name":"N","text":"x"},"s"]"#,
    ];
    for one in values {
        for other in values {
            for line in [
                format!(r#"{{"message": {one} }}"#),
                format!(r#"{{"message":{one},"message":{other}}}"#),
                format!(r#"{{"message":{{"content":{one},"stop_reason":{other}}}}}"#),
                format!(r#"{{"message":{{"content":{one},"content":{other}}}}}"#),
                format!(r#"{{"message":{{"stop_reason":{one},"stop_r\u0065ason":{other}}}}}"#),
            ] {
                assert!(check(line.as_bytes()), "{line}");
            }
        }
    }
}

#[test]
fn tool_ids_are_in_the_order_of_the_message_whatever_is_before_them() {
    let line = r#"{"message":{"content":[{"id":"a","type":"tool_use","input":{"id":"x"}},
        {"tool_use_id":"b","id":"y","type":"tool_result"},{"type":"server_tool_use","id":"c"},
        {"type":"web_search_tool_result","tool_use_id":"d"},{"type":"tool_use"},{"id":"z"}]},
        "sourceToolAssistantUUID":"s"}"#;
    assert!(check(line.as_bytes()));
    let (fields, _) = scan(line.as_bytes()).expect("it was just checked");
    let tools: Vec<(ToolRole, &str)> = fields
        .tools
        .iter()
        .map(|(role, id, _)| (*role, id.as_str()))
        .collect();
    assert_eq!(
        tools,
        [
            (ToolRole::Use, "a"),
            (ToolRole::Result, "b"),
            (ToolRole::ServerUse, "c"),
            (ToolRole::ServerResult, "d")
        ]
    );
}

#[test]
fn names_may_be_written_with_escapes() {
    assert_eq!(uuid(r#"{"uu\u0069d":"u"}"#).as_deref(), Some("u"));
    assert_eq!(
        uuid(r#"{"\u0075\u0075\u0069\u0064":"\u0075"}"#).as_deref(),
        Some("u")
    );
    assert_eq!(uuid(r#"{"uuid\u0000":"u"}"#), None);
    assert!(
        flags(r#"{"isM\u0065ta":true,"isMeta":true}"#)
            .contains(Flags::META | Flags::DUPLICATE_NAME)
    );
}

// -------------------------------------------------------------------------------------------------
// Edges of blocks (64 bytes) and windows (16 KiB)
// -------------------------------------------------------------------------------------------------

/// Texts to put across an edge. All but the last ten are valid.
const ACROSS: [&str; 24] = [
    "",
    r"\\",
    r"\\\\",
    r"\\\\\\",
    r#"\""#,
    r#"\\\""#,
    r#"\\\\\""#,
    r"\u0041",
    r"\\u0041",
    r"\ud83d\ude80",
    r"\ud83d",
    "é",
    "\u{2028}",
    "\u{1f680}",
    r"\",
    r"\\\",
    r"\u00g1",
    r"\u004",
    r"\x",
    "\u{1}",
    "\"",
    r#"\\""#,
    "\n",
    "\",\"uuid\":\"other",
];

#[test]
fn strings_of_every_length_scan_at_every_edge_of_a_block() {
    for len in 0..=200 {
        let text = "x".repeat(len);
        for across in ACROSS {
            check(format!(r#"{{"a":"{text}{across}","uuid":"{across}u"}}"#).as_bytes());
            check(format!(r#"{{"a":"{across}{text}{across}"}}"#).as_bytes());
            check(format!(r#"{{"uuid":"u"{}}}{across}"#, " ".repeat(len)).as_bytes());
        }
        assert_eq!(
            uuid(&format!(r#"{{"a":"{text}","uuid":"{text}u"}}"#)),
            Some(text + "u")
        );
    }
}

#[test]
fn backslash_runs_of_every_length_scan_at_every_edge_of_a_block() {
    for before in 0..=130 {
        for run in 0..=70 {
            let (before, run) = ("x".repeat(before), "\\".repeat(run));
            check(format!(r#"{{"a":"{before}{run}","uuid":"u"}}"#).as_bytes());
        }
    }
}

#[test]
fn strings_across_the_edge_of_a_window_scan_as_elsewhere() {
    const WINDOW: usize = 16 << 10;
    for edge in [WINDOW, 2 * WINDOW] {
        for across in ACROSS {
            for shift in 0..=across.len() + 3 {
                // The piece ends `shift - 2` bytes after the edge.
                let start = edge + shift - 2 - across.len();
                let pad = "x".repeat(start - r#"{"a":""#.len());
                for end in ["", "tail", "\\"] {
                    let line = format!(r#"{{"a":"{pad}{across}{end}","uuid":"u"}}"#);
                    check(line.as_bytes());
                    check(&line.as_bytes()[..edge.min(line.len())]);
                }
            }
        }
        for len in edge - 70..edge + 70 {
            let line = format!(r#"{{"a":"{}"}}"#, "x".repeat(len - r#"{"a":""}"#.len()));
            assert!(line.len() == len && check(line.as_bytes()));
            assert!(check(format!("{{{}}}", " ".repeat(len)).as_bytes()));
        }
        for run in (edge - 70..edge + 70).step_by(3) {
            check(format!(r#"{{"a":"{}","uuid":"u"}}"#, "\\".repeat(run)).as_bytes());
        }
    }
}

#[test]
fn a_window_full_of_quotes_is_indexed() {
    let pairs = "\"\",".repeat(20_000);
    assert!(check(
        format!(r#"{{"a":[{pairs}""],"uuid":"u"}}"#).as_bytes()
    ));
    // Quotes alone are not JSON, but they must not break anything either.
    check(&vec![b'"'; 40_000]);
    check(format!("{{{}", "\"".repeat(40_000)).as_bytes());
}

// -------------------------------------------------------------------------------------------------
// Kinds of damage
// -------------------------------------------------------------------------------------------------

/// Runs `test` on a stack of 256 KiB.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(test);
    thread
        .expect("a thread starts")
        .join()
        .expect("the test on the small stack passes");
}

#[test]
fn a_blank_line_is_blank_and_a_carriage_return_is_white_space() {
    for (blank, at) in [("", 0), (" ", 1), ("\r", 1), (" \t\r ", 4)] {
        assert_eq!(error(blank.as_bytes()), (ScanErrorKind::Blank, at));
    }
    assert_eq!(uuid("{\"uuid\":\"u\"}\r").as_deref(), Some("u"));
}

#[test]
fn a_torn_record_is_incomplete() {
    for torn in [
        r#"{"#,
        r#"{"uuid"#,
        r#"{"uuid":"u","#,
        r#"{"a":[1,2"#,
        r#"{"a":tr"#,
        r#"{"a":"\"#,
    ] {
        assert_eq!(
            error(torn.as_bytes()),
            (ScanErrorKind::Incomplete, torn.len())
        );
    }
}

#[test]
fn a_torn_record_before_a_complete_one_is_a_syntax_error_where_they_meet() {
    let (torn, whole) = (r#"{"a":1"#, r#"{"uuid":"u"}"#);
    assert_eq!(
        error(format!("{torn}{whole}").as_bytes()),
        (ScanErrorKind::Syntax, torn.len())
    );
    // Torn inside of a string: the string continues until the next quote.
    assert_eq!(
        error(format!(r#"{{"a":"to{whole}"#).as_bytes()).0,
        ScanErrorKind::Syntax
    );
}

#[test]
fn first_of_two_records_on_a_line_is_returned_with_its_end() {
    let line = br#"{"uuid":"u"} {"uuid":"v"}"#;
    assert_eq!(error(line), (ScanErrorKind::Trailing, 13));
    let mut scanner = Scanner::new();
    let first = scanner.scan_first(line).expect("the first record is whole");
    assert_eq!(
        (first.uuid().map(|id| id.raw()), first.end()),
        (Some(&b"u"[..]), 12)
    );
}

#[test]
fn a_run_of_nuls_before_a_record_is_a_syntax_error_at_its_start() {
    for nuls in [1, 63, 64, 65, 512, 16 << 10, 100_000] {
        let line = [vec![0; nuls], br#"{"uuid":"u"}"#.to_vec()].concat();
        assert_eq!(error(&line), (ScanErrorKind::Syntax, 0));
        assert_eq!(
            error(&[br#"{"uuid":"u"}"#.to_vec(), vec![0; nuls]].concat()).0,
            ScanErrorKind::Trailing
        );
    }
}

#[test]
fn a_byte_order_mark_does_not_scan_and_is_left_to_the_reader() {
    assert_eq!(
        error("\u{feff}{\"uuid\":\"u\"}".as_bytes()),
        (ScanErrorKind::Syntax, 0)
    );
}

#[test]
fn bytes_that_are_not_utf_8_are_found_everywhere() {
    // Cut, overlong, out of range; UTF-16 surrogates in three bytes each.
    for bad in [
        &b"\xff"[..],
        b"\xc3",
        b"\xe2\x80",
        b"\xc0\x80",
        b"\xf5\x80\x80\x80",
        b"\xed\xa0\xbd\xed\xb8\x80",
    ] {
        for before in [0, 1, 60, 64, 5_000, 17_000] {
            let start = [br#"{"uuid":"u","a":""#.to_vec(), vec![b'x'; before]].concat();
            let line = [&start, bad, br#""}"#].concat();
            assert_eq!(error(&line), (ScanErrorKind::Utf8, start.len()));
            let as_name = [&start, bad, br#"":1}"#].concat();
            assert_ne!(error(&as_name).0, ScanErrorKind::Blank);
        }
    }
}

#[test]
fn a_lone_surrogate_escape_is_kept_and_shown_as_a_replacement() {
    assert_eq!(uuid(r#"{"uuid":"a\ud83d"}"#).as_deref(), Some("a\u{fffd}"));
    assert_eq!(
        uuid(r#"{"uuid":"u","\ude80":"\ud83d\ud83d"}"#).as_deref(),
        Some("u")
    );
}

#[test]
fn an_escaped_nul_is_kept() {
    assert_eq!(uuid(r#"{"uuid":"a\u0000b"}"#).as_deref(), Some("a\0b"));
}

#[test]
fn raw_control_bytes_are_refused_inside_of_strings_at_their_place() {
    for byte in 0..0x20 {
        for before in [0, 50, 64, 17_000] {
            let start = [br#"{"a":""#.to_vec(), vec![b'x'; before]].concat();
            let line = [&start, &[byte][..], br#""}"#].concat();
            assert_eq!(error(&line), (ScanErrorKind::Control, start.len()));
        }
    }
    assert!(check(b"{\"a\":\"\x7f\"}"));
    // Outside of strings it is a syntax error, or white space.
    assert_eq!(error(b"{\x01}").0, ScanErrorKind::Syntax);
}

#[test]
fn nesting_of_127_levels_scans_and_one_level_more_does_not() {
    on_a_small_stack(|| {
        // Opening text, content, closing text; `{0}` is the next level.
        let shapes = [
            (r#"{"a":"#, "0", "}"),
            ("[", "", "]"),
            (r#"[{"a":"#, "0", "}]"),
            (r#"{"uuid":"u","message":"#, "{}", "}"),
        ];
        for (open, inner, close) in shapes {
            for levels in [1, 2, 62, 63, 64, 124, 125, 126, 127, 128, 129, 200] {
                let (open, close) = (open.repeat(levels), close.repeat(levels));
                for (before, after) in [
                    ("", ""),
                    (r#"{"b":"#, "}"),
                    (r#"{"message":{"content":["#, "]}}"),
                    (r#"{"message":{"content":[{"input":"#, "}]}}"),
                    (r#"{"attachment":{"type":"#, "}}"),
                    (r#"{"uuid":"#, "}"),
                ] {
                    check(format!("{before}{open}{inner}{close}{after}").as_bytes());
                }
            }
        }
        let nested =
            |levels: usize| format!("{}0{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        assert!(check(nested(127).as_bytes()));
        assert_eq!(
            error(nested(128).as_bytes()),
            (ScanErrorKind::Depth, 127 * r#"{"a":"#.len())
        );
    });
}

#[test]
fn a_million_levels_are_refused_on_a_small_stack() {
    on_a_small_stack(|| {
        let arrays = format!(
            r#"{{"a":{}{}}}"#,
            "[".repeat(1_000_000),
            "]".repeat(1_000_000)
        );
        let objects = r#"{"a":"#.repeat(1_000_000);
        for mut scanner in [Scanner::new(), Scanner::without_simd()] {
            for line in [&arrays, &objects] {
                let error = scanner.scan(line.as_bytes()).expect_err("it is too deep");
                assert_eq!(error.kind, ScanErrorKind::Depth);
            }
            let only_arrays = scanner
                .scan(&arrays.as_bytes()[5..])
                .expect_err("it is too deep");
            assert_eq!(only_arrays.kind, ScanErrorKind::Depth);
        }
    });
}

#[test]
fn last_value_of_a_repeated_name_counts_and_is_flagged() {
    assert_eq!(uuid(r#"{"uuid":"a","uuid":"b"}"#).as_deref(), Some("b"));
    for (last, flag) in [
        ("null", Flags::UUID_NULL),
        ("\"\"", Flags::UUID_EMPTY),
        ("7", Flags::UUID_ODD),
    ] {
        let line = format!(r#"{{"uuid":"a","uuid":{last}}}"#);
        assert_eq!(uuid(&line), None);
        assert!(flags(&line).contains(flag | Flags::DUPLICATE_NAME));
    }
    let line = r#"{"message":{"id":"m","content":[{"type":"tool_use","id":"t"}]},"message":{"content":"x"}}"#;
    assert!(check(line.as_bytes()));
    let (fields, _) = scan(line.as_bytes()).expect("it was just checked");
    assert_eq!((fields.content, fields.tools.len()), (ContentKind::Text, 0));
    assert!(
        !flags(r#"{"other":1,"other":2,"a":{"uuid":1,"uuid":2}}"#).contains(Flags::DUPLICATE_NAME)
    );
}

#[test]
fn numbers_of_any_size_scan_and_stay_as_they_are_written() {
    let digits = "1234567890".repeat(40);
    for number in [
        "1e999",
        "-1e-999",
        &digits,
        "12345678901234567890123",
        "9007199254740993",
    ] {
        assert_eq!(
            uuid(&format!(r#"{{"n":{number},"uuid":"u"}}"#)).as_deref(),
            Some("u")
        );
        assert!(
            flags(&format!(r#"{{"uuid":{number}}}"#)).contains(Flags::UUID_ODD | Flags::ODD_VALUE)
        );
    }
}

#[test]
fn extensions_of_other_dialects_are_a_syntax_error() {
    for value in [
        "NaN",
        "Infinity",
        "-Infinity",
        "+1",
        ".5",
        "1.",
        "01",
        "-01",
        "1e",
        "0x10",
        "1_000",
        "'a'",
        "a",
        "undefined",
        "True",
        "nul",
        "1 /* c */",
        "// c",
        "[1,]",
        "{\"a\":1,}",
        "[,]",
        "{,}",
        "{a:1}",
        "{1:1}",
        "{\"a\"}",
        "{\"a\" 1}",
        "[1 2]",
        "[1,,2]",
        "\"\\'\"",
        "\"\\a\"",
        "\"\\u12\"",
        "\"\\U00000041\"",
    ] {
        assert_eq!(
            error(format!(r#"{{"a":{value}}}"#).as_bytes()).0,
            ScanErrorKind::Syntax,
            "{value}"
        );
    }
    assert_eq!(error(b"{\"a\":1}}"), (ScanErrorKind::Trailing, 7));
    assert_eq!(error(b"{\"a\":1,}"), (ScanErrorKind::Syntax, 7));
}

#[test]
fn a_value_of_another_kind_is_not_an_object() {
    for value in [
        "[]",
        "1",
        "\"x\"",
        "null",
        "true",
        "-1.5e3",
        "[{\"uuid\":\"u\"}]",
        " [ ] ",
    ] {
        let at = value.len() - value.trim_start().len();
        assert_eq!(error(value.as_bytes()), (ScanErrorKind::NotObject, at));
    }
}

#[test]
fn an_entry_without_type_or_of_another_shape_scans_as_one_of_an_unknown_kind() {
    for line in [
        "{}",
        r#"{"a":1}"#,
        r#"{"type":"future"}"#,
        r#"{"type":7}"#,
        r#"{"type":null}"#,
    ] {
        assert!(check(line.as_bytes()));
        let (fields, _) = scan(line.as_bytes()).expect("it was just checked");
        assert_eq!(fields.kind, EntryKind::Other);
    }
    let odd =
        r#"{"type":"user","uuid":7,"parentUuid":[],"isMeta":"yes","message":[1],"timestamp":0}"#;
    assert!(flags(odd).contains(Flags::ODD_VALUE | Flags::UUID_ODD | Flags::PARENT_ODD));
    assert_eq!(
        flags(r#"{"type":"user","uuid":null,"isMeta":null,"message":null}"#),
        Flags::UUID_NULL | Flags::PARENT_ABSENT
    );
    assert_eq!(flags(r#"{"parentUuid":null}"#), Flags::empty());
}

#[test]
fn an_object_of_numbered_names_scans() {
    let members: Vec<String> = (0..20_000)
        .map(|i| format!(r#""{i}":"{}""#, i % 10))
        .collect();
    assert_eq!(
        uuid(&format!(r#"{{{},"uuid":"u"}}"#, members.join(","))).as_deref(),
        Some("u")
    );
}

#[test]
fn a_string_of_100_mb_scans() {
    let line = format!(
        r#"{{"a":"{}","uuid":"u"}}"#,
        "0123456789".repeat(10_000_000)
    );
    let mut scanner = Scanner::new();
    let envelope = scanner.scan(line.as_bytes()).expect("it is whole");
    assert_eq!(envelope.uuid().map(|id| id.raw()), Some(&b"u"[..]));
    let torn = scanner
        .scan(&line.as_bytes()[..line.len() - 20])
        .expect_err("it has no end");
    assert_eq!(torn.kind, ScanErrorKind::Incomplete);
}

#[test]
fn an_array_of_ten_million_numbers_scans_on_a_small_stack() {
    on_a_small_stack(|| {
        let line = format!(r#"{{"a":[{}0],"uuid":"u"}}"#, "0,".repeat(10_000_000));
        let mut scanner = Scanner::new();
        let envelope = scanner.scan(line.as_bytes()).expect("it is whole");
        assert_eq!(envelope.uuid().map(|id| id.raw()), Some(&b"u"[..]));
        // The scanner's memory does not grow with the line.
        assert_eq!(envelope.tools().len(), 0);
    });
}

#[test]
fn utf_16_gzip_and_other_binary_lines_are_errors() {
    let utf_16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    assert_eq!(error(&utf_16("{\"uuid\":\"u\"}")).0, ScanErrorKind::Syntax);
    assert_eq!(
        error(&utf_16("\u{feff}{\"uuid\":\"u\"}")).0,
        ScanErrorKind::Syntax
    );
    assert_eq!(
        error(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03").0,
        ScanErrorKind::Syntax
    );
    let mut rng = Rng::new(25);
    for _ in 0..2_000 {
        let len = rng.below(300);
        let line: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        check(&line);
    }
}

#[test]
fn other_separators_and_byte_order_marks_inside_of_strings_are_kept() {
    let odd = "a\u{2028}b\u{2029}c\u{feff}d\u{85}";
    assert_eq!(
        uuid(&format!(r#"{{"uuid":"{odd}"}}"#)).as_deref(),
        Some(odd)
    );
    assert_eq!(error("{\u{2028}}".as_bytes()), (ScanErrorKind::Syntax, 1));
}
