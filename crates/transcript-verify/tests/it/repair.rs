//! Repairs: what is planned for each defect, what becomes of the lines, and what holds for every
//! file.

use std::path::Path;

use serde_json::{Value, json};
use transcript_format::finding::Code;
use transcript_format::ids::Uuid;
use transcript_reader::{Index, Source};
use transcript_resume::{Policy, Tree};
use transcript_testkit::campaign::several::several;
use transcript_testkit::generate;
use transcript_verify::repair::Repair;
use transcript_verify::{VerifyOptions, verify_source};

/// A repair, with the new file.
struct Done {
    repair: Repair,
    bytes: Vec<u8>,
}

const PATH: &str = "/nowhere/0b932c9f-9928-4cec-9e82-22c1703d5f54.jsonl";

fn repair(bytes: &[u8]) -> Done {
    let mut last = 0_u128;
    let mut new_id = || {
        last += 1;
        Uuid(0xFEED_0000_0000_4000_8000_0000_0000_0000 + last)
    };
    let source = Source::from_bytes(bytes, Path::new(PATH));
    let repair = Repair::new(source, "2026-11-22T12:00:00.000Z", &mut new_id).unwrap();
    let mut bytes = vec![0; repair.repaired().len() as usize];
    repair.repaired().read_at(0, &mut bytes).unwrap();
    Done { repair, bytes }
}

impl Done {
    /// Returns the plan in short, and checks what holds for every repair.
    fn plan(&self) -> Vec<String> {
        assert_eq!(self.repair.refusal(), None);
        assert_eq!(
            shown(&self.bytes, Policy::Recover),
            shown(&self.bytes, Policy::Vendor)
        );
        let again = repair(&self.bytes);
        assert!(again.repair.is_empty(), "{:?}", again.repair.actions());
        assert!(again.bytes == self.bytes);
        let actions = self.repair.actions().iter();
        let short = actions.map(|action| {
            let line = action.line.map_or("-".to_owned(), |line| line.to_string());
            format!("{line} {} {}", action.code.as_str(), action.action.name())
        });
        short.collect()
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    fn line(&self, number: usize) -> Value {
        serde_json::from_str(self.text().lines().nth(number - 1).unwrap()).unwrap()
    }

    fn lost(&self, bytes: &[u8]) -> Vec<(String, String)> {
        let lost = self.repair.lost().iter().map(|lost| {
            let range = lost.range.start as usize..lost.range.end as usize;
            let text = String::from_utf8_lossy(&bytes[range]).into_owned();
            (lost.code.as_str().to_owned(), text)
        });
        lost.collect()
    }
}

/// The ids of the messages that a policy shows.
fn shown(bytes: &[u8], policy: Policy) -> Vec<Option<String>> {
    let index = Index::load(&Source::from_bytes(bytes, Path::new(PATH))).unwrap();
    let path = Tree::new(&index, policy).path();
    let entries = path
        .entries
        .iter()
        .map(|entry| index.entry(entry.entry_no()));
    let messages = entries.filter(|entry| entry.kind().is_message());
    messages
        .map(|entry| entry.uuid().map(|id| index.id_text(id)))
        .collect()
}

fn ids(bytes: &[u8], policy: Policy) -> String {
    let ids: Vec<String> = shown(bytes, policy)
        .into_iter()
        .map(Option::unwrap_or_default)
        .collect();
    ids.join(" ")
}

/// A message: `u…` of the user, `a…` an answer, one minute after the one before.
fn entry(name: &str, parent: Option<&str>, minute: usize) -> Value {
    let content = json!([{"type": "text", "text": format!("text of {name}")}]);
    let (kind, message) = if name.starts_with('a') {
        (
            "assistant",
            json!({"id": format!("msg_{name}"), "role": "assistant", "model": "m", "content": content}),
        )
    } else {
        ("user", json!({"role": "user", "content": content}))
    };
    json!({
        "parentUuid": parent, "isSidechain": false, "sessionId": "s", "cwd": "/home/dev/work",
        "type": kind, "message": message, "uuid": name,
        "timestamp": format!("2026-11-20T10:{minute:02}:00.000Z"),
    })
}

/// Messages in a chain, one a line.
fn chain(names: &str) -> Vec<String> {
    let mut parent = None;
    let mut lines = Vec::new();
    for (minute, name) in names.split(' ').enumerate() {
        lines.push(entry(name, parent, minute).to_string());
        parent = Some(name);
    }
    lines
}

fn file(lines: &[String]) -> Vec<u8> {
    let mut text = lines.join("\n");
    text.push('\n');
    text.into_bytes()
}

#[test]
fn a_session_without_defects_stays_as_it_is() {
    let bytes = file(&chain("u1 a1 u2 a2"));
    let done = repair(&bytes);
    assert!(done.plan().is_empty());
    assert!(done.bytes == bytes);
    assert!(done.repair.is_empty());
}

#[test]
fn a_session_of_another_format_is_not_repaired() {
    // As those of Qwen Code; the second entry is not a child of anything that we read.
    let first = r#"{"uuid":"u1","parentUuid":null,"type":"user","message":{"role":"user","parts":[{"text":"Q"}]}}"#;
    let second = r#"{"uuid":"s1","parentUuid":"u1","type":"system"}"#;
    let bytes = format!("{first}\n{second}\n");
    let source = Source::from_bytes(bytes.as_bytes(), Path::new(PATH));
    let refused = Repair::new(source, "2026-11-22T12:00:00.000Z", &mut || Uuid(1));
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("a Qwen Code session"), "{why}");
}

#[test]
fn an_entry_on_a_damaged_line_gets_a_line_of_its_own() {
    let mut lines = chain("u1 a1 u2 a2");
    let torn = lines[1][..40].to_owned();
    lines[1] = format!("{torn}{}", lines[1]);
    lines.insert(3, "\0".repeat(30));
    let bytes = file(&lines);
    let done = repair(&bytes);
    assert_eq!(
        done.plan(),
        ["2 L-TORN-MID move", "4 L-NUL move", "2 L-TORN-MID salvage"]
    );
    assert!(done.bytes == file(&chain("u1 a1 u2 a2")));
    let lost = [
        ("L-TORN-MID".to_owned(), torn),
        ("L-NUL".to_owned(), "\0".repeat(30)),
    ];
    assert_eq!(done.lost(&bytes), lost);
    assert_eq!(ids(&bytes, Policy::Vendor), "u2 a2");
    assert_eq!(ids(&done.bytes, Policy::Vendor), "u1 a1 u2 a2");
}

#[test]
fn two_entries_on_one_line_and_a_torn_end() {
    let lines = chain("u1 a1 u2 a2");
    let mut bytes = file(&lines[..1]);
    bytes.extend(format!("{}{}\n{}", lines[1], lines[2], &lines[3][..50]).bytes());
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["3 L-TORN-TAIL move", "2 L-GLUED salvage"]);
    assert!(done.bytes == file(&lines[..3]));
}

#[test]
fn a_last_line_without_a_newline_gets_one() {
    let mut bytes = file(&chain("u1 a1"));
    bytes.pop();
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["2 L-UNTERMINATED end-line"]);
    assert!(done.bytes == file(&chain("u1 a1")));
}

#[test]
fn a_missing_parent_is_replaced_and_its_name_kept() {
    let mut lines = chain("u1 a1 u2 a2");
    lines[2] = entry("u2", Some("gone"), 2).to_string();
    let bytes = file(&lines);
    assert_eq!(ids(&bytes, Policy::Vendor), "u2 a2");
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["3 G-DANGLING parent"]);
    assert_eq!(done.line(3)["parentUuid"], "a1");
    assert_eq!(
        done.line(3)["transcriptEngine"],
        json!({"v": 1, "was": {"parentUuid": "gone"}})
    );
    let text = done.text();
    for line in [&lines[0], &lines[1], &lines[3]] {
        assert!(text.lines().any(|other| other == line));
    }
    assert_eq!(ids(&done.bytes, Policy::Vendor), "u1 a1 u2 a2");
}

#[test]
fn the_request_of_the_client_is_judged_as_its_api_does() {
    let mut lines = chain("u1 a1 a2 u2 u3 a3");
    lines[5] = entry("a3", Some("gone"), 5).to_string();
    let done = repair(&file(&lines));
    assert_eq!(done.plan(), ["6 G-DANGLING parent"]);
    // Two answers and two prompts in a row are joined.
    let after = done.repair.after();
    assert_eq!(after.shown.vendor, 6);
    assert!(after.vendor_lint && after.recover_lint);
    // A thought without a signature is still refused; `recover` omits it.
    let mut unsigned = entry("a2", Some("a1"), 2);
    let content = json!([{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}]);
    unsigned["message"]["content"] = content;
    lines[2] = unsigned.to_string();
    let after = repair(&file(&lines)).repair.after();
    assert!(!after.vendor_lint && after.recover_lint);
}

#[test]
fn rewound_branch_stays_rewound() {
    // The person went back to u1 and wrote r1; what u2 followed is missing.
    let mut lines = chain("u1 a1");
    lines.push(entry("r1", Some("u1"), 2).to_string());
    lines.push(entry("u2", Some("gone"), 3).to_string());
    lines.push(entry("a2", Some("u2"), 4).to_string());
    let bytes = file(&lines);
    let done = repair(&bytes);
    done.plan();
    assert_eq!(
        ids(&done.bytes, Policy::Vendor),
        ids(&bytes, Policy::Recover)
    );
    assert!(!ids(&done.bytes, Policy::Vendor).contains("r1"));
}

#[test]
fn a_cycle_is_cut() {
    let mut lines = chain("u1 a1 u2 a2");
    lines[0] = entry("u1", Some("a2"), 0).to_string();
    let bytes = file(&lines);
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["1 G-CYCLE parent"]);
    assert_eq!(done.line(1)["parentUuid"], Value::Null);
    assert_eq!(ids(&done.bytes, Policy::Vendor), "u1 a1 u2 a2");
}

#[test]
fn one_of_repeated_lines_stays() {
    let mut lines = chain("u1 a1 u2 a2");
    lines.insert(2, lines[1].clone());
    let done = repair(&file(&lines));
    assert_eq!(done.plan(), ["2 G-DUP drop"]);
    assert!(done.bytes == file(&chain("u1 a1 u2 a2")));
    assert!(done.repair.lost().is_empty());

    // Of two versions the last one counts, at the place and with the parent of the first.
    let mut newer = entry("a1", Some("u1"), 1);
    newer["message"]["content"][0]["text"] = "newer".into();
    lines[2] = newer.to_string();
    let bytes = file(&lines);
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["2 G-DUP move"]);
    assert_eq!(done.lost(&bytes), [("G-DUP".to_owned(), lines[1].clone())]);
    assert_eq!(done.line(2), newer);
    assert_eq!(done.text().lines().count(), 4);
}

#[test]
fn entries_without_an_id_get_one() {
    let mut lines = chain("u1 a1 u2 a2");
    for line in &mut lines {
        let mut value: Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().remove("uuid");
        *line = value.to_string();
    }
    let bytes = file(&lines);
    assert_eq!(shown(&bytes, Policy::Vendor).len(), 1);
    let done = repair(&bytes);
    let plan = done.plan();
    assert_eq!(
        plan[..4],
        [
            "1 S-NOID uuid",
            "2 S-NOID uuid",
            "3 S-NOID uuid",
            "4 S-NOID uuid"
        ]
    );
    assert_eq!(shown(&done.bytes, Policy::Vendor).len(), 4);
}

/// An answer with one call.
fn call(name: &str, parent: &str, tool: &str, minute: usize) -> Value {
    let mut call = entry(name, Some(parent), minute);
    call["message"]["content"] = json!([
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": tool, "name": "Read", "input": {}},
    ]);
    call
}

#[test]
fn a_call_without_a_result_gets_one_and_the_answer_stays() {
    let mut lines = chain("u1 a1 u2 a2");
    lines[1] = call("a1", "u1", "toolu_1", 1).to_string();
    let bytes = file(&lines);
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["2 P-NORESULT answer"]);
    let made = done.line(3);
    assert_eq!(made["parentUuid"], "a1");
    assert_eq!(made["message"]["content"][0]["tool_use_id"], "toolu_1");
    assert_eq!(made["message"]["content"][0]["is_error"], true);
    assert_eq!(made["transcriptEngine"]["made"], "missing-result");
    assert_eq!(done.line(4)["parentUuid"], made["uuid"]);
    // Calls of the last answer are answered by the client itself.
    let open = file(&[
        chain("u1").remove(0),
        call("a1", "u1", "toolu_1", 1).to_string(),
    ]);
    assert!(repair(&open).plan().is_empty());
}

#[test]
fn text_that_makes_requests_fail_is_replaced() {
    let mut lines = chain("u1 a1 u2 a2");
    lines[1] = lines[1].replace("text of a1", r"half \ud83d and \u0000");
    let mut bytes = b"\xEF\xBB\xBF".to_vec();
    bytes.extend(file(&lines));
    let at = bytes
        .windows(10)
        .position(|window| window == b"text of u2")
        .unwrap();
    bytes[at] = 0xFF;
    let done = repair(&bytes);
    let plan = [
        "1 T-BOM move",
        "2 T-SURR text",
        "2 T-NUL text",
        "3 T-UTF8 text",
    ];
    assert_eq!(done.plan(), plan);
    assert!(done.text().starts_with('{'));
    assert!(done.text().contains(r"half \ufffd and \ufffd"));
    assert!(done.text().contains("\u{FFFD}ext of u2"));
}

#[test]
fn media_that_the_api_refuses_become_notes_and_sound_ones_stay() {
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";
    let image = |media_type: &str, data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}});
    let prompt = |name: &str, parent: Option<&str>, minute: usize, content: Value| {
        let mut line = entry(name, parent, minute);
        line["type"] = json!("user");
        line["message"] = json!({"role": "user", "content": content});
        line.to_string()
    };
    let error = |name: &str, parent: &str, minute: usize, text: &str| {
        let mut line = entry(name, Some(parent), minute);
        line["type"] = json!("assistant");
        line["isApiErrorMessage"] = json!(true);
        let content = json!([{"type": "text", "text": text}]);
        line["message"] =
            json!({"role": "assistant", "id": name, "model": "<synthetic>", "content": content});
        line.to_string()
    };
    let text = json!({"type": "text", "text": "Look."});
    let refused = "API Error: 400 Could not process image";
    let known = "Image was too large. Try resizing the image or using a different approach.";
    let lines = [
        prompt("a", None, 0, json!([image("image/png", PNG), text])),
        entry("a1", Some("a"), 1).to_string(),
        // Cut off, and of another type than it names.
        prompt(
            "c",
            Some("a1"),
            2,
            json!([text, image("image/png", &PNG[..60])]),
        ),
        prompt("d", Some("c"), 3, json!([image("image/jpeg", PNG)])),
        entry("a2", Some("d"), 4).to_string(),
        // The API says what it refused, which is not the image before it.
        prompt("k", Some("a2"), 5, json!([image("image/png", PNG), text])),
        prompt("f", Some("k"), 5, json!([text, image("image/png", PNG)])),
        error("g", "f", 6, refused),
        // The client knows this error itself.
        prompt("h", Some("g"), 7, json!([text, image("image/png", PNG)])),
        error("i", "h", 8, known),
        prompt("j", Some("i"), 9, json!("Go on.")),
    ];
    let done = repair(&file(&lines));
    assert_eq!(
        done.plan(),
        ["3 A-SIZE media", "4 A-SIZE media", "7 A-SIZE media"]
    );
    assert!(!done.repair.before().vendor_lint && done.repair.after().vendor_lint);
    let old = file(&lines);
    let old: Vec<&str> = std::str::from_utf8(&old).unwrap().lines().collect();
    for (number, line) in done.text().lines().enumerate() {
        let is_changed = [2, 3, 6].contains(&number);
        assert_eq!(line != old[number], is_changed, "line {}", number + 1);
    }
    let content = |line: usize, at: usize| done.line(line)["message"]["content"][at].clone();
    assert_eq!(content(3, 0), text);
    assert_eq!(content(3, 1)["type"], "text");
    assert_eq!(content(4, 0), image("image/png", PNG));
    assert_eq!(content(7, 1)["text"], "(media removed — rejected by API)");
    // The old message is kept beside the new one.
    let was = &done.line(3)["transcriptEngine"]["was"]["message"];
    assert_eq!(was["content"][1]["source"]["data"], PNG[..60]);
}

/// Returns an image of this width as PNG, in Base64 of about this length.
fn image_of(width: u32, len: usize) -> Value {
    use base64::Engine;
    let chunk = |kind: &[u8], data: &[u8]| {
        let chunk = [kind, data].concat();
        let sum = crc32fast::hash(&chunk).to_be_bytes();
        [&(data.len() as u32).to_be_bytes()[..], &chunk, &sum].concat()
    };
    let size = [width.to_be_bytes(), 1_u32.to_be_bytes()].concat();
    let bytes = [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &[&size[..], b"\x08\x06\0\0\0"].concat()),
        chunk(b"IDAT", &vec![7; len / 4 * 3]),
        chunk(b"IEND", b""),
    ];
    let data = base64::engine::general_purpose::STANDARD.encode(bytes.concat());
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

/// Makes a session with an image in each prompt, typed or queued during the turn.
fn with_images(images: &[Value], are_queued: bool) -> Vec<u8> {
    let mut lines: Vec<String> = Vec::new();
    let mut parent: Option<String> = None;
    let mut add = |mut line: Value| {
        let name = format!("e{}", lines.len());
        line["uuid"] = json!(name);
        line["parentUuid"] = json!(parent);
        lines.push(line.to_string());
        parent = Some(name);
    };
    for (number, image) in images.iter().enumerate() {
        let content = json!([{"type": "text", "text": format!("Prompt {number}.")}, image]);
        let mut prompt = entry("u", None, number.min(59));
        prompt["type"] = json!("user");
        prompt["message"] = json!({"role": "user", "content": "Start."});
        if !are_queued {
            prompt["message"]["content"] = content;
            add(prompt);
        } else {
            add(prompt);
            let mut queued = entry("q", None, number.min(59));
            queued.as_object_mut().unwrap().remove("message");
            queued["type"] = json!("attachment");
            queued["attachment"] =
                json!({"type": "queued_command", "commandMode": "prompt", "prompt": content});
            add(queued);
        }
        add(entry(&format!("a{number}"), None, number.min(59)));
    }
    file(&lines)
}

#[test]
fn repair_replaces_the_media_that_verify_reports_and_a_second_repair_is_empty() {
    let small = || image_of(9, 90);
    let with = |wide: u32, others: usize| {
        let mut images = vec![image_of(wide, 90)];
        images.extend((0..others).map(|_| small()));
        images
    };
    let large: Vec<Value> = (0..8).map(|_| image_of(9, 5_000_000)).collect();
    for (name, images, changed) in [
        ("beyond the limits of one", with(8_001, 1), 1),
        ("wide among many", with(2_001, 20), 1),
        // In steps of an eighth of the limit, as in a request.
        ("too many", with(9, 102), 12),
        ("more than a request has room for", large, 2),
        ("all within the limits", with(2_001, 19), 0),
    ] {
        for are_queued in [false, true] {
            let bytes = with_images(&images, are_queued);
            let codes = |bytes: &[u8]| {
                let source = Source::from_bytes(bytes.to_vec(), "s.jsonl".as_ref());
                let report = verify_source(&source, &VerifyOptions::new()).unwrap();
                let codes = report.findings.iter().map(|finding| finding.code);
                let count = codes.filter(|code| *code == Code::MediaSize).count();
                (count, report.lint.vendor)
            };
            assert_eq!(
                codes(&bytes),
                (changed, changed == 0),
                "{name} {are_queued}"
            );
            let done = repair(&bytes);
            let plan = done.plan();
            assert_eq!(plan.len(), changed, "{name} {are_queued}: {plan:?}");
            assert!(plan.iter().all(|row| row.ends_with("A-SIZE media")));
            assert_eq!(done.repair.before().vendor_lint, changed == 0, "{name}");
            assert!(done.repair.after().vendor_lint, "{name} {are_queued}");
            assert_eq!(codes(&done.bytes), (0, true), "{name} {are_queued}");
        }
    }
}

#[test]
fn a_line_that_is_not_json_inside_is_moved() {
    let mut lines = chain("u1 a1 u2 a2");
    lines[1] = lines[1].replace(r#""sessionId""#, r#""flag":{"a":trqe},"sessionId""#);
    let bytes = file(&lines);
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["2 L-TORN-MID move", "3 G-DANGLING parent"]);
    assert_eq!(
        done.lost(&bytes),
        [("L-TORN-MID".to_owned(), lines[1].clone())]
    );
    assert_eq!(ids(&done.bytes, Policy::Vendor), "u1 u2 a2");
}

#[test]
fn entries_of_another_session_are_split_out() {
    let mut lines = chain("u1 a1 u2 a2");
    let mut other = entry("x1", None, 5);
    other["sessionId"] = "other".into();
    lines.push(other.to_string());
    let bytes = file(&lines);
    assert_eq!(ids(&bytes, Policy::Vendor), "x1");
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["5 X-SESSION split-out"]);
    assert!(done.bytes == file(&lines[..4]));
    let foreign: Vec<u64> = done.repair.foreign().map(|entry| entry.line()).collect();
    assert_eq!(foreign, [5]);
}

/// A conversation with a compaction that preserves `kept`.
fn compacted(kept: &[&str]) -> Vec<String> {
    let mut lines = chain("u1 a1 u2 a2");
    let boundary = json!({
        "parentUuid": null, "logicalParentUuid": "a2", "isSidechain": false, "sessionId": "s",
        "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
        "uuid": "b", "timestamp": "2026-11-20T10:04:00.000Z",
        "compactMetadata": {
            "trigger": "auto", "preTokens": 7,
            "preservedMessages": {"anchorUuid": "s", "uuids": kept},
            "preservedSegment": {"headUuid": kept[0], "anchorUuid": "s", "tailUuid": kept[kept.len() - 1]},
        },
    });
    lines.push(boundary.to_string());
    let mut summary = entry("s", Some("b"), 5);
    summary["isCompactSummary"] = true.into();
    lines.push(summary.to_string());
    lines.push(entry("u3", Some("s"), 6).to_string());
    lines.push(entry("a3", Some("u3"), 7).to_string());
    lines
}

#[test]
fn a_boundary_names_what_it_preserves() {
    assert!(repair(&file(&compacted(&["u2", "a2"]))).plan().is_empty());
    // One name leads nowhere: the client preserves nothing then (COMPACT-5).
    let bytes = file(&compacted(&["gone", "u2", "a2"]));
    assert_eq!(ids(&bytes, Policy::Vendor), "s u3 a3");
    let done = repair(&bytes);
    assert_eq!(done.plan(), ["5 C-SEGMENT splice"]);
    assert_eq!(
        ids(&done.bytes, Policy::Vendor),
        ids(&bytes, Policy::Recover)
    );
    let boundary = done.line(5);
    assert_eq!(boundary["compactMetadata"]["trigger"], "auto");
    let was = &boundary["transcriptEngine"]["was"]["compactMetadata"];
    assert_eq!(
        was["preservedMessages"]["uuids"],
        json!(["gone", "u2", "a2"])
    );
}

#[test]
fn tombstoned_entries_of_a_session_without_defects_stay() {
    let mut lines = chain("u1 a1 u2 a2 u3");
    lines.push(json!({"type": "transcriptEngine", "v": 1, "tombstone": "u3"}).to_string());
    let bytes = file(&lines);
    let done = repair(&bytes);
    assert!(done.repair.is_empty(), "{:?}", done.repair.actions());
    assert_eq!(done.repair.refusal(), None);
}

#[test]
fn session_damaged_in_several_ways_shows_no_less_after_repair() {
    let (mut repaired, mut refused) = (0, 0);
    for seed in 0..300 {
        let (bytes, done) = several(&generate::tidy_session(seed), seed);
        let name = || format!("seed {seed}, {}", done.join(" + "));
        let new = repair(&bytes);
        if new.repair.refusal().is_some() {
            refused += 1;
            continue;
        }
        let before = shown(&bytes, Policy::Recover);
        let after = shown(&new.bytes, Policy::Recover);
        assert!(
            before.iter().all(|id| id.is_none() || after.contains(id)),
            "{}",
            name()
        );
        assert!(before.len() <= after.len(), "{}", name());
        new.plan();
        repaired += usize::from(!new.repair.is_empty());
    }
    assert!(
        repaired > 250 && refused < 5,
        "{repaired} repaired, {refused} refused"
    );
}

#[test]
fn every_fixture_is_repaired_and_those_without_defects_stay() {
    let mut repaired = 0;
    for folder in ["pains", "sessions"] {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1");
        let folder = fixtures.join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_none_or(|extension| extension != "jsonl")
            {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let done = repair(&bytes);
            assert_eq!(done.repair.refusal(), None, "{}", path.display());
            done.plan();
            let before = shown(&bytes, Policy::Recover);
            let after = shown(&done.bytes, Policy::Recover);
            assert!(before.len() <= after.len(), "{}", path.display());
            repaired += usize::from(!done.repair.is_empty());
        }
    }
    assert!(repaired > 20, "{repaired}");
}
