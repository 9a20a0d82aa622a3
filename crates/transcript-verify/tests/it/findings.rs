//! Each class of findings, with its exact place: of fixtures in a table beside them, of larger ones
//! here.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde::de::IgnoredAny;
use transcript_format::finding::Code;
use transcript_reader::Source;
use transcript_testkit::generate::tidy_session;
use transcript_testkit::rng::Rng;
use transcript_verify::{
    Report, Verdict, VerifyOptions, advice, verify, verify_folder, verify_source,
};

use crate::fixtures;

/// `code line@offset`, or the code alone for what is about no line.
fn places(report: &Report) -> String {
    let place = |finding: &transcript_verify::LocatedFinding| match finding.line {
        Some(line) => format!("{} {line}@{}", finding.code.as_str(), finding.offset),
        None => finding.code.as_str().to_owned(),
    };
    let places: Vec<String> = report.findings.iter().map(place).collect();
    places.join(", ")
}

/// A row of the table: file, verdict, conversation, what `recover` and `vendor` show of it, foreign
/// messages, findings.
fn row(name: &str, report: &Report) -> String {
    let measure = &report.measure;
    format!(
        "{name}\t{}\t{} {} {} {}\t{}\n",
        report.verdict().name(),
        measure.conversation,
        measure.recover,
        measure.vendor,
        measure.foreign,
        places(report)
    )
}

fn table() -> String {
    let mut rows =
        String::from("file\tverdict\tconversation, recover, vendor, foreign\tfindings\n");
    for folder in ["findings", "hostile", "pains", "sessions"] {
        let mut each = |report: Result<Report, transcript_reader::Error>| {
            let report = report.unwrap();
            let name = report.path.strip_prefix(fixtures()).unwrap();
            rows.push_str(&row(&name.display().to_string(), &report));
        };
        verify_folder(
            &crate::disk(),
            &fixtures().join(folder),
            &VerifyOptions::new(),
            &mut each,
        )
        .unwrap();
    }
    rows
}

#[test]
fn each_fixture_has_exactly_the_findings_of_the_table() {
    let expected = fs::read_to_string(fixtures().join("findings/expected.tsv")).unwrap_or_default();
    let rows = table();
    let wrong: Vec<&str> = rows
        .lines()
        .filter(|row| !expected.lines().any(|line| line == *row))
        .collect();
    assert!(wrong.is_empty(), "not in the table:\n{}", wrong.join("\n"));
    assert_eq!(
        rows.lines().count(),
        expected.lines().count(),
        "the table has other rows"
    );
}

/// Verifies bytes, and returns the places of the findings.
fn found_in(bytes: &[u8]) -> (Verdict, String) {
    let source = Source::from_bytes(bytes, Path::new("-"));
    let report = verify_source(&source, &VerifyOptions::new()).unwrap();
    (report.verdict(), places(&report))
}

fn line(name: &str, parent: &str, content: &str) -> String {
    let kind = if name.starts_with('a') {
        "assistant"
    } else {
        "user"
    };
    let parent = if parent.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{parent}\"")
    };
    format!(
        "{{\"type\":\"{kind}\",\"uuid\":\"{name}\",\"parentUuid\":{parent},\"isSidechain\":false,\"sessionId\":\"s\",\"timestamp\":\"2026-03-09T14:00:00.000Z\",\"message\":{{\"role\":\"{kind}\",\"content\":{content}}}}}\n"
    )
}

#[test]
fn large_lines_images_and_files_are_reported() {
    let first = line("u1", "", "\"Look.\"");
    let noted = |bytes: String, expected: &str| {
        assert_eq!(
            found_in(bytes.as_bytes()),
            (Verdict::Noted, expected.to_owned())
        );
    };
    let damaged = |bytes: String, expected: String| {
        assert_eq!(found_in(bytes.as_bytes()), (Verdict::Damaged, expected));
    };
    let at = first.len();
    let image = format!(
        r#"[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{}"}}}}]"#,
        "iVBOR".repeat(8 << 18)
    );
    damaged(
        first.clone() + &line("u2", "u1", &image),
        format!("A-SIZE 2@{at}"),
    );
    damaged(
        first.clone() + &"x".repeat(65 << 20) + "\n",
        format!("B-SIZE, B-LINE 2@{at}"),
    );
    let parts = format!("[{}0]", "0,".repeat(600_000));
    damaged(
        first.clone() + &line("u2", "u1", &parts),
        format!("B-PARTS 2@{at}"),
    );
    let text = line("u2", "u1", &format!("\"{}\"", "low tide ".repeat(6 << 20)));
    noted(first.clone() + &text, "B-SIZE");
    let copy = format!(
        "{{\"type\":\"custom-title\",\"customTitle\":\"{}\",\"sessionId\":\"s\"}}\n",
        "tides ".repeat(100)
    );
    noted(first + &copy.repeat(3_000), "B-DUP");
}

#[test]
fn moved_lines_and_names_of_lost_entries_are_reported() {
    let text = r#"[{"type":"text","text":"Low."}]"#;
    let [first, answer] = [line("u1", "", "\"Tide?\""), line("a1", "u1", text)];
    let beside = |kind: &str, parent: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"x\",\"parentUuid\":\"{parent}\",\"sessionId\":\"s\"}}\n"
        )
    };
    let pin = |leaf: &str| {
        format!("{{\"type\":\"last-prompt\",\"leafUuid\":\"{leaf}\",\"sessionId\":\"s\"}}\n")
    };
    let found = |lines: &[&str]| found_in(lines.concat().as_bytes());
    let clean = (Verdict::Clean, String::new());
    let noted = |code: &str, line: usize, before: &[&str]| {
        let at: usize = before.iter().map(|line| line.len()).sum();
        (Verdict::Noted, format!("{code} {line}@{at}"))
    };

    let both = [&first[..], &answer];
    assert_eq!(
        found(&[&both[..], &[&pin("gone")]].concat()),
        noted("G-LEAF", 3, &both)
    );
    for leaf in ["a1", "00000000-0000-0000-0000-000000000000"] {
        assert_eq!(found(&[&both[..], &[&pin(leaf)]].concat()), clean, "{leaf}");
    }
    for kind in ["progress", "attachment"] {
        let moved = [&first[..], &beside(kind, "a1"), &answer];
        assert_eq!(found(&moved), noted("G-FORWARD", 2, &both[..1]), "{kind}");
    }

    // Two calls of one answer; their results may precede the second call, but not follow the next
    // answer.
    let call = |name: &str, parent: &str, id: &str, answer: &str| {
        let block = format!(r#"[{{"type":"tool_use","id":"{id}","name":"Read","input":{{}}}}]"#);
        let line = line(name, parent, &block);
        line.replace(
            "\"message\":{",
            &format!("\"message\":{{\"id\":\"{answer}\","),
        )
    };
    let result = |name: &str, parent: &str, id: &str| {
        line(
            name,
            parent,
            &format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}]"#),
        )
    };
    let calls = [
        call("a1", "u1", "t1", "m1"),
        call("a2", "a1", "t2", "m1"),
        call("a3", "r2", "t3", "m2"),
    ];
    let results = [
        result("r1", "a1", "t1"),
        result("r2", "a2", "t2"),
        result("r3", "a3", "t3"),
    ];
    let early = [
        &first[..],
        &results[1],
        &calls[0],
        &calls[1],
        &results[0],
        &calls[2],
        &results[2],
    ];
    assert!(
        !found(&early).1.contains("G-FORWARD"),
        "{:?}",
        found(&early)
    );
    let late = [
        &first[..],
        &calls[0],
        &calls[1],
        &results[1],
        &calls[2],
        &results[0],
        &results[2],
    ];
    assert!(
        found(&late).1.contains("G-FORWARD 6@"),
        "{:?}",
        found(&late)
    );
    let across = [
        &first[..],
        &calls[0],
        &results[2],
        &calls[1],
        &results[0],
        &results[1],
        &calls[2],
    ];
    assert!(
        found(&across).1.contains("G-FORWARD 3@"),
        "{:?}",
        found(&across)
    );
}

#[test]
fn every_pointer_of_a_boundary_must_name_an_entry() {
    let text = r#"[{"type":"text","text":"Low."}]"#;
    let lines = [line("u1", "", "\"Tide?\""), line("a1", "u1", text)].concat();
    let summary =
        line("u2", "b1", "\"Tides.\"").replace("{\"type\"", "{\"isCompactSummary\":true,\"type\"");
    let found = |list: &str, head: &str, anchor: &str| {
        let boundary = format!(
            r#"{{"type":"system","subtype":"compact_boundary","uuid":"b1","parentUuid":null,"logicalParentUuid":"a1","sessionId":"s","timestamp":"2026-03-09T14:00:00.000Z","compactMetadata":{{"preservedMessages":{{"anchorUuid":"u2","uuids":[{list}]}},"preservedSegment":{{"headUuid":"{head}","anchorUuid":"{anchor}","tailUuid":"a1"}}}}}}"#
        );
        found_in(format!("{lines}{boundary}\n{summary}").as_bytes()).1
    };
    let broken = format!("C-SEGMENT 3@{}", lines.len());
    for list in ["", "\"a1\""] {
        assert_eq!(found(list, "a1", "u2"), "", "{list}");
        assert_eq!(found(list, "a1", "gone"), broken, "{list}");
        assert_eq!(found(list, "gone", "u2"), broken, "{list}");
    }
}

#[test]
fn the_secret_itself_is_never_reported() {
    let report = verify(
        &crate::disk(),
        &fixtures().join("findings/secrets.jsonl"),
        &VerifyOptions::new(),
    )
    .unwrap();
    let text = format!("{report:?}");
    assert!(
        text.contains("AWS access key id in message.content[0].content, 2 times")
            && text.contains("Anthropic API key"),
        "{text}"
    );
    assert!(
        !text.contains("Q7XW") && !text.contains("fixtureNot"),
        "{text}"
    );
    let harmless = line(
        "u1",
        "",
        r#""AKIAIOSFODNN7EXAMPLE sk-ant-short ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx eyJhbGciOi postgres://user:password@db xAKIAQ7XW2ZP9LM4TR8VC -----BEGIN PRIVATE KEY-----""#,
    );
    assert_eq!(
        found_in(harmless.as_bytes()),
        (Verdict::Clean, String::new())
    );
}

#[test]
fn the_place_of_a_secret_is_its_path() {
    let secret = |number: u32| format!("AKIAQ7XW2ZP9LM4T{number:04}");
    let line = format!(
        r#"{{"type":"assistant","uuid":"a1","a \" b":{{"[{{\\":["{}"]}},"message":{{"role":"assistant","content":[{{"type":"text","text":"{{\"{}\""}},[],{{"input":{{"command":"x {} {}","{}":{{"k":"{}"}}}}}}]}},"{}":1,"last":"{}"}}"#,
        secret(1),
        secret(2),
        secret(3),
        secret(4),
        secret(5),
        secret(6),
        secret(7),
        secret(8)
    );
    // Two lines, and a damaged one: the paths are those of each line.
    let text = format!("{{}}\n{line}\n{{\"x\":\"{}\n", secret(9));
    let source = Source::from_bytes(text.as_bytes(), Path::new("-"));
    let report = verify_source(&source, &VerifyOptions::new()).unwrap();
    let secrets = report.findings.iter();
    let secrets = secrets.filter(|finding| finding.code == Code::Secret);
    let details: Vec<&str> = secrets
        .map(|finding| finding.detail.strip_prefix("AWS access key id").unwrap())
        .collect();
    let expected = [
        "",
        " in (other).(other)[0]",
        " in message.content[0].text",
        " in message.content[2].input.command",
        " in message.content[2].input.command",
        " in message.content[2].input.(key)",
        " in message.content[2].input.(other).k",
        " in (key)",
        " in last",
    ];
    assert_eq!(details, expected);
}

/// The scan of the lines checks every value, at any depth: no second pass over the bodies is needed.
#[test]
fn a_line_is_damaged_exactly_when_it_is_not_one_json_object() {
    let mut rng = Rng::new(17);
    let mut counts = [0, 0];
    for seed in 0..60 {
        for line in tidy_session(seed).split(|byte| *byte == b'\n') {
            let mut line = line.to_vec();
            if line.trim_ascii().is_empty() {
                continue;
            }
            let at = rng.below(line.len());
            if !line[at].is_ascii() {
                continue;
            }
            line[at] = *rng.pick(b"{}[]:,\"0123tfn-.eE+ \\/u\t");
            let is_json = serde_json::from_slice::<IgnoredAny>(&line).is_ok();
            let is_object = line.trim_ascii().starts_with(b"{");
            line.push(b'\n');
            let source = Source::from_bytes(&line[..], Path::new("-"));
            let report = verify_source(&source, &VerifyOptions::new()).unwrap();
            let mut codes = report.findings.iter().map(|finding| finding.code.as_str());
            let is_refused = codes.any(|code| code.starts_with("L-") || code == "T-CONTROL");
            let text = String::from_utf8_lossy(&line);
            assert_eq!(is_refused, !(is_json && is_object), "byte {at} of {text}");
            counts[usize::from(is_refused)] += 1;
        }
    }
    assert!(counts[0] > 500 && counts[1] > 300, "{counts:?}");
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_reported() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let (one, two) = (line("u1", "", "\"One?\""), line("a1", "u1", "\"Two.\""));
    write!(file, "{one}{two}").unwrap();
    let source = Source::open(file.path()).unwrap();
    file.as_file().set_len(one.len() as u64).unwrap();
    let report = verify_source(&source, &VerifyOptions::new()).unwrap();
    assert_eq!(places(&report), "L-SHRUNK");
    assert_eq!(report.findings[0].offset, one.len() as u64);
    assert_eq!(report.verdict(), Verdict::Damaged);
}

/// A line about the session of another agent, as transcript-import makes it.
fn imported(members: &str) -> String {
    format!(
        "{{\"type\":\"transcriptEngine\",\"v\":1,\"sessionId\":\"s\",\"imported\":{{\"agent\":\"codex\"{members}}}}}\n"
    )
}

#[test]
fn what_a_session_of_another_agent_lacks_is_found_with_its_place_in_the_source() {
    let at = ",\"file\":\"/w/rollout.jsonl\",\"offset\":70,\"length\":9";
    let head = imported("");
    let damage = imported(&format!("{at},\"damage\":\"torn-record\""));
    let unknown = imported(&format!("{at},\"unknown\":{{\"new_record\":2}}"));
    let refusal = imported(",\"refusal\":\"the first record is missing\"");
    let verified = |lines: &[&str]| {
        let text = lines.concat();
        let source = Source::from_bytes(text.as_bytes(), Path::new("-"));
        verify_source(&source, &VerifyOptions::new()).unwrap()
    };
    let report = verified(&[&head, &damage, &unknown, &refusal]);
    let offsets = [
        head.len(),
        head.len() + damage.len(),
        head.len() + damage.len() + unknown.len(),
    ];
    assert_eq!(
        places(&report),
        format!(
            "I-DAMAGE 2@{}, I-UNKNOWN 3@{}, I-REFUSED 4@{}",
            offsets[0], offsets[1], offsets[2]
        )
    );
    for finding in &report.findings[..2] {
        let detail = &finding.detail;
        assert!(
            detail.contains("/w/rollout.jsonl, 9 bytes at 70"),
            "{detail}"
        );
    }
    assert_eq!(report.agent.as_deref(), Some("codex"));
    assert_eq!(report.verdict(), Verdict::Damaged);
    // Records of a newer version do not count as damage.
    assert_ne!(verified(&[&head, &unknown]).verdict(), Verdict::Damaged);
    // The same lines in a session of Claude Code say nothing.
    let own = line("u1", "", "\"One?\"");
    assert!(!places(&verified(&[&own, &damage])).contains("I-DAMAGE"));
}

#[test]
fn every_code_has_advice_also_in_the_document() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
    let document = fs::read_to_string(document).unwrap();
    for code in Code::ALL {
        let heading = format!("### `{}`", code.as_str());
        let from = document
            .find(&heading)
            .unwrap_or_else(|| panic!("{heading}"));
        let section = document[from + heading.len()..]
            .split("\n### ")
            .next()
            .unwrap();
        let advice = format!("**What to do:** {}", advice(*code));
        assert!(section.contains(&advice), "{}: {advice}", code.as_str());
        assert!(
            section.contains("Example:") || section.contains("\nExample:"),
            "{heading}"
        );
    }
}

#[test]
fn every_code_has_a_fixture_or_a_test() {
    let table = fs::read_to_string(fixtures().join("findings/expected.tsv")).unwrap();
    let tests = [
        include_str!("findings.rs"),
        include_str!("recorded_requests.rs"),
        include_str!("running.rs"),
        include_str!("store.rs"),
    ]
    .concat();
    let has = |code: &&Code| {
        [&*table, &*tests]
            .iter()
            .any(|text| text.contains(code.as_str()))
    };
    let without: BTreeSet<&str> = Code::ALL
        .iter()
        .filter(|code| !has(code))
        .map(|code| code.as_str())
        .collect();
    assert_eq!(without, BTreeSet::new());
}

#[test]
fn an_unknown_key_is_reported_once_for_each_version_with_its_lines_and_never_its_value() {
    let source = Source::open(&fixtures().join("findings/unknown-keys.jsonl")).unwrap();
    let report = verify_source(&source, &VerifyOptions::new()).unwrap();
    let details = report.findings.iter().map(|finding| {
        assert_eq!(finding.code, Code::UnknownKey);
        let end = " is not known to this version; the request that the client makes may differ";
        let (line, uuid) = (finding.line.unwrap(), finding.uuid.as_deref().unwrap());
        assert!(uuid.ends_with(&line.to_string()), "{uuid}");
        finding.detail.strip_suffix(end).unwrap()
    });
    let details: Vec<&str> = details.collect();
    assert_eq!(
        details,
        [
            "the key moonPhase on 2 user lines of Claude Code 9.9.1 (first at line 1)",
            "the attachment type tide_table on 1 attachment line of Claude Code 9.9.1 (first at line 2)",
            "the key attachment.tideLevel on 1 attachment line of Claude Code 9.9.1 (first at line 3)",
            "the key message.eclipse_kind on 2 assistant lines of Claude Code 9.9.1 (first at line 4)",
            "the key moonPhase on 1 user line of Claude Code 9.9.2 (first at line 7)",
            "the key (other) on 1 user line of Claude Code 9.9.2 (first at line 7)",
        ]
    );
}

/// Whatever is written as a key or as a version, a report must not quote it.
#[test]
fn names_and_versions_that_could_be_content_are_not_shown() {
    let keys = [
        "a name with spaces".to_owned(),
        "AKIAQ3ZK7MWT5RXB2LNE".to_owned(),
        "k".repeat(41),
        "\\u0000".to_owned(),
        String::new(),
    ];
    for key in keys {
        let first = line("u1", "", "\"One?\"");
        let more = format!("{{\"version\":\"the dog's name\",\"{key}\":\"secret\",");
        let bytes = first.replacen('{', &more, 1);
        let source = Source::from_bytes(bytes.as_bytes(), Path::new("-"));
        let report = verify_source(&source, &VerifyOptions::new()).unwrap();
        let of_keys = report
            .findings
            .iter()
            .filter(|finding| finding.code == Code::UnknownKey);
        let details: Vec<&str> = of_keys.map(|finding| &*finding.detail).collect();
        assert_eq!(details.len(), 1, "{key}");
        assert!(
            details[0].starts_with("the key (other) on 1 user line (first at line 1)"),
            "{}",
            details[0]
        );
    }
}

/// The details about the unknown keys of 2,000 lines of 4 KB, with `more` at the start of each.
fn unknown_keys_of_a_large_file(more: impl Fn(usize) -> String) -> Vec<String> {
    let of_line = |number: usize| {
        let parent = match number {
            0 => String::new(),
            _ => format!("u{}", number - 1),
        };
        let text = format!("\"{}\"", "x".repeat(4_000));
        line(&format!("u{number}"), &parent, &text).replacen('{', &more(number), 1)
    };
    let bytes: String = (0..2_000).map(of_line).collect();
    let source = Source::from_bytes(bytes.as_bytes(), Path::new("-"));
    let report = verify_source(&source, &VerifyOptions::new()).unwrap();
    let of_keys = report
        .findings
        .into_iter()
        .filter(|finding| finding.code == Code::UnknownKey);
    let end = " is not known to this version; the request that the client makes may differ";
    of_keys
        .map(|finding| finding.detail.strip_suffix(end).unwrap().to_owned())
        .collect()
}

#[test]
fn unknown_keys_are_counted_over_all_pieces_of_a_large_file() {
    let details = unknown_keys_of_a_large_file(|number| match number {
        1_900 => r#"{"version":"9.9.9","moon":1,"sun":2,"#.to_owned(),
        _ => r#"{"version":"9.9.9","moon":1,"#.to_owned(),
    });
    assert_eq!(
        details,
        [
            "the key moon on 2000 user lines of Claude Code 9.9.9 (first at line 1)",
            "the key sun on 1 user line of Claude Code 9.9.9 (first at line 1901)",
        ]
    );
}

/// Of any number of unknown keys only the first are kept, so that a report stays short.
#[test]
fn the_number_of_unknown_keys_is_bounded() {
    let details = unknown_keys_of_a_large_file(|number| format!("{{\"tide{number}\":1,"));
    assert_eq!(details.len(), 64);
    assert_eq!(
        details[63],
        "the key tide63 on 1 user line (first at line 64)"
    );
}

#[test]
fn file_of_a_subagent_is_not_lossy_as_it_is_not_resumed_by_itself() {
    // An open call, so that the requests of both policies differ.
    let bytes = br#"{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":true,"agentId":"a1","sessionId":"s","timestamp":"2026-11-20T10:00:00.000Z","message":{"role":"user","content":"Find the next comet."}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","isSidechain":true,"agentId":"a1","sessionId":"s","timestamp":"2026-11-20T10:00:01.000Z","message":{"id":"m1","model":"m","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","uuid":"u2","parentUuid":"a1","isSidechain":true,"agentId":"a1","sessionId":"s","timestamp":"2026-11-20T10:00:02.000Z","message":{"role":"user","content":"And the one after it?"}}
"#;
    let (verdict, found) = found_in(bytes);
    assert!(verdict < Verdict::Lossy, "{found}");
}

#[test]
fn a_request_longer_than_the_window_of_its_model_is_reported() {
    let answer = |usage: &str| {
        let answer = line("a1", "u1", r#"[{"type":"text","text":"Yes."}]"#);
        let message = format!(r#""message":{{"id":"m1","model":"m",{usage}"role""#);
        answer.replace(r#""message":{"role""#, &message)
    };
    let options = VerifyOptions::new().context_windows(|model| (model == "m").then_some(9_000));
    let found = |tokens: usize, usage: &str| {
        let text = format!("\"{}\"", "word".repeat(tokens));
        let bytes = line("u1", "", &text) + &answer(usage);
        let source = Source::from_bytes(bytes.as_bytes(), Path::new("-"));
        places(&verify_source(&source, &options).unwrap())
    };
    assert_eq!(found(8_000, ""), "");
    assert!(found(9_500, "").starts_with("A-WINDOW 2@"));
    // The count of the API counts more than the estimate, until it shows that the window is longer.
    let usage = |tokens: u32| format!(r#""usage":{{"input_tokens":{tokens}}},"#);
    assert_eq!(found(8_000, &usage(9_000)), "");
    assert_eq!(found(9_500, &usage(10_000)), "");
    // Of a large conversation only the start of each text is in memory.
    let long = found(5 << 20, "");
    assert!(long.contains("A-WINDOW 2@"), "{long}");
}

#[test]
fn thinking_that_claude_cannot_have_signed_is_a_finding() {
    let found = |signature: &str| {
        let content = format!(
            r#"[{{"type":"thinking","thinking":"Hm.","signature":"{signature}"}},{{"type":"text","text":"Yes."}}]"#
        );
        let lines = format!(
            r#"{{"type":"user","uuid":"u1","parentUuid":null,"message":{{"role":"user","content":"Is it?"}}}}
{{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{{"id":"m1","model":"claude-sonnet-4-5","role":"assistant","content":{content}}}}}
"#
        );
        let source = Source::from_bytes(lines.into_bytes(), "s.jsonl".as_ref());
        let report = verify_source(&source, &VerifyOptions::new()).unwrap();
        let codes = report.findings.iter().map(|finding| finding.code);
        let refused = codes.filter(|code| *code == Code::Refused).count();
        (refused, report.lint.vendor, report.lint.recover)
    };
    assert_eq!(found("EqQBCkYI"), (0, true, true));
    assert_eq!(found("reasoning_content"), (1, false, true));
}

#[test]
fn media_that_an_error_is_evidence_against_are_reported_unless_the_client_knows_the_error() {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";
    let image = format!(
        r#"[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{PNG}"}}}}]"#
    );
    let found = |error: &str| {
        let error = format!(r#"[{{"type":"text","text":"{error}"}}]"#);
        let error = line("a1", "u1", &error).replace(
            r#""message":{"role""#,
            r#""isApiErrorMessage":true,"message":{"id":"m1","model":"<synthetic>","role""#,
        );
        let bytes = line("u1", "", &image) + &error + &line("u2", "a1", "\"Go on.\"");
        found_in(bytes.as_bytes()).1
    };
    assert_eq!(
        found("API Error: 400 Could not process image"),
        "A-SIZE 1@0"
    );
    assert_eq!(found("API Error: 529 Overloaded"), "");
    let known = "Image was too large. Try resizing the image or using a different approach.";
    assert_eq!(found(known), "");
}
