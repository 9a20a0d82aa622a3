//! `recover` holds every message that `vendor` holds.
//!
//! `vendor` is what the slow model sends, which recorded requests prove. A request under `recover`
//! may contain more, and in other messages (the turns around a gap differ), so the requests are
//! compared as sets of contents:
//!
//! - A text of `vendor` must be in a text of `recover` on lines of its own: alone, or where texts
//!   were joined (reminders are folded into results, and joined in messages of role `system`). A
//!   text that `vendor` sends n times must appear n times. Blanks at the ends do not count.
//! - A call must be present with the same id, name and input.
//! - A result must be present under the same id, with each of its texts in it; but reminders that
//!   were folded into it may be anywhere, as they belong to the turn and not to the result.
//! - Any other block (image, document, thinking, server call …) must be present unchanged.
//!
//! Three things of `vendor` may be absent: blank texts, placeholders of the client for missing
//! parts ([`SYNTHETIC`]), and blocks that a strict provider refuses, but only those of entries for
//! which the request under `recover` reports this. In the place of an image or a document is a note.

use std::collections::HashMap;
use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use serde_json::Value;
use transcript_messages::OmissionReason;
use transcript_resume::Policy;
use transcript_resume::request::{Request, RequestOptions};
use transcript_testkit::{damage, generate, model, oracle, shared};

use crate::strict::Loaded;

/// Starts of the synthetic texts of the client: each replaces something missing, and a request that
/// has it does not need the text.
const SYNTHETIC: [&str; 9] = [
    "No response requested.",
    "(no content)",
    "(media removed",
    "[Orphaned tool result removed",
    "[Tool call interrupted",
    "[Tool references removed",
    "[Tool result missing",
    "[Tool use interrupted]",
    "Tool loaded.",
];

const REMINDER: &str = "<system-reminder>";

/// The contents of a request.
#[derive(Debug, Default)]
struct RequestContent {
    /// Every text, also those in results.
    texts: Vec<String>,
    calls: Vec<Value>,
    /// The id of each result, and the texts in it.
    results: Vec<(String, Vec<String>)>,
    /// All other blocks, also those in results.
    others: Vec<Value>,
}

impl RequestContent {
    fn new(messages: &[Value]) -> Self {
        let mut said = Self::default();
        for message in messages {
            for block in oracle::as_blocks(&message["content"]) {
                said.add(block);
            }
        }
        said
    }

    fn add(&mut self, mut block: Value) {
        match block["type"].as_str() {
            Some("text") => self.texts.push(text_of(&block)),
            Some("tool_use") => self.calls.push(block),
            Some("tool_result") => {
                let id = block["tool_use_id"].as_str().unwrap_or_default().to_owned();
                let inner = match block["content"].take() {
                    Value::Null => Vec::new(),
                    content => oracle::as_blocks(&content),
                };
                let (texts, others): (Vec<Value>, Vec<Value>) =
                    inner.into_iter().partition(|inner| inner["type"] == "text");
                let texts: Vec<String> = texts.iter().map(text_of).collect();
                self.texts.extend(texts.clone());
                self.others.extend(others);
                self.results.push((id, texts));
            }
            _ => self.others.push(block),
        }
    }

    /// How often a text appears in the texts, on lines of its own.
    fn count(&self, text: &str) -> usize {
        self.texts.iter().map(|all| count_in(all, text)).sum()
    }
}

fn text_of(block: &Value) -> String {
    block["text"].as_str().unwrap_or_default().to_owned()
}

/// How often `text` appears in `all` between line ends (or at its ends, blanks not counted). A text
/// of blanks appears everywhere.
fn count_in(all: &str, text: &str) -> usize {
    let text = text.trim();
    if text.is_empty() {
        return 1;
    }
    let ends_line = |before: &str| before.trim_end_matches([' ', '\t']).ends_with(['\n', '\r']);
    let mut count = 0;
    let mut from = 0;
    while let Some(at) = all[from..].find(text) {
        let (start, end) = (from + at, from + at + text.len());
        let (before, after) = (&all[..start], &all[end..]);
        let alone_before = before.trim().is_empty() || ends_line(before);
        let alone_after = after.trim().is_empty()
            || after
                .trim_start_matches([' ', '\t'])
                .starts_with(['\n', '\r']);
        if alone_before && alone_after {
            count += 1;
            from = end;
        } else {
            from = start + all[start..].chars().next().map_or(1, char::len_utf8);
        }
    }
    count
}

/// A text and the reminders that were folded into it.
fn split_reminders(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.rfind(&format!("\n{REMINDER}\n")) {
        parts.push(&rest[at..]);
        rest = &rest[..at];
    }
    parts.push(rest);
    parts
}

/// A reminder without its wrapper: in the role form it is sent without.
fn unwrapped(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix(REMINDER);
    inner
        .and_then(|inner| inner.strip_suffix("</system-reminder>"))
        .unwrap_or(text)
        .trim()
}

fn is_synthetic(text: &str) -> bool {
    text.trim().is_empty() || SYNTHETIC.iter().any(|start| text.trim().starts_with(start))
}

/// The blocks of the entries for which the request reports that a strict provider refuses
/// something.
fn refused_blocks(session: &Loaded, request: &Request, bytes: &[u8]) -> RequestContent {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let refused = request
        .omissions
        .iter()
        .filter(|one| is_refusal(one.reason));
    let mut said = RequestContent::default();
    for omission in refused {
        let line = lines[session.line(omission.origin) - 1];
        let Ok(entry) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        if let Value::Array(blocks) = &entry["message"]["content"] {
            blocks.iter().cloned().for_each(|block| said.add(block));
        }
        add_media(&entry["attachment"], &mut said.others);
    }
    said
}

/// Returns whether something is not sent because the API refuses it.
pub(crate) fn is_refusal(reason: OmissionReason) -> bool {
    matches!(
        reason,
        OmissionReason::Refused(_)
            | OmissionReason::RejectedMedia
            | OmissionReason::OversizedMedia
            | OmissionReason::RequestLimit
    )
}

/// Adds the images and documents of an attachment, as they are sent.
fn add_media(value: &Value, media: &mut Vec<Value>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| add_media(value, media)),
        Value::Object(object) => {
            if let (true, Some(file)) = (value["type"] == "image", value.get("file")) {
                let source = serde_json::json!({
                    "type": "base64", "media_type": file["type"], "data": file["base64"],
                });
                media.push(serde_json::json!({"type": "image", "source": source}));
            } else if matches!(value["type"].as_str(), Some("image" | "document")) {
                media.push(value.clone());
            }
            object.values().for_each(|value| add_media(value, media));
        }
        _ => {}
    }
}

/// How often each value occurs.
fn counted<T: Eq + Hash>(values: impl Iterator<Item = T>) -> HashMap<T, usize> {
    let mut counts = HashMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

/// The parts of texts, without their wrappers: the texts, and the reminders folded into them.
fn parts(texts: &[String]) -> HashMap<&str, usize> {
    let parts = texts.iter().flat_map(|text| split_reminders(text));
    let parts = parts.filter(|part| !is_synthetic(part)).map(unwrapped);
    counted(parts.filter(|part| !part.is_empty()))
}

/// Returns a key that is the same for equal blocks: of a call its id, name and input, of other blocks everything.
fn same(block: &Value) -> String {
    if block["type"] == "tool_use" {
        format!("{} {} {}", block["id"], block["name"], block["input"])
    } else {
        block.to_string()
    }
}

/// The contents of `vendor` that `recover` lacks; empty when all are present.
fn missing(
    vendor: &RequestContent,
    recover: &RequestContent,
    refused: &RequestContent,
) -> Vec<String> {
    let mut missing = Vec::new();
    let there = parts(&recover.texts);
    for (part, needed) in parts(&vendor.texts) {
        // Most parts are alone; the others are looked for in all texts.
        let found = there.get(part).copied().unwrap_or_default();
        if found < needed && recover.count(part) < needed && refused.count(part) == 0 {
            missing.push(format!("text, {found} of {needed}: {part}"));
        }
    }
    let blocks = |said: &RequestContent| counted(said.calls.iter().chain(&said.others).map(same));
    let (there, refused_blocks) = (blocks(recover), blocks(refused));
    for (block, needed) in blocks(vendor) {
        let found = there.get(&block).copied().unwrap_or_default();
        if found < needed && !refused_blocks.contains_key(&block) {
            missing.push(format!("block, {found} of {needed}: {block}"));
        }
    }
    for (id, texts) in &vendor.results {
        if texts.iter().any(|text| is_synthetic(text)) {
            continue;
        }
        let says_all = |(other, inner): &(String, Vec<String>)| {
            let own = texts.iter().filter_map(|text| split_reminders(text).pop());
            let mut own = own.filter(|part| !part.trim_start().starts_with(REMINDER));
            other == id && own.all(|part| inner.iter().any(|text| count_in(text, part) > 0))
        };
        let is_there = |said: &RequestContent| said.results.iter().any(says_all);
        if !is_there(recover) && !is_there(refused) {
            missing.push(format!("result {id}: {texts:?}"));
        }
    }
    missing
}

/// Returns the blocks that the client sends for these bytes and `recover` does not.
fn lacks(bytes: &[u8], prompt: &str) -> Vec<String> {
    let Some(vendor) = model::vendor_request(bytes, Some(prompt), None).messages else {
        return Vec::new();
    };
    let session = Loaded::new(bytes);
    let request = session.request(Policy::Recover, &RequestOptions::new().prompt(prompt));
    if !request.is_resumable() {
        return vec![format!(
            "not resumable, but the client sends {} messages",
            vendor.len()
        )];
    }
    let messages: Vec<Value> = request
        .messages
        .iter()
        .map(|message| serde_json::from_str(&message.json()).unwrap())
        .collect();
    missing(
        &RequestContent::new(&vendor),
        &RequestContent::new(&messages),
        &refused_blocks(&session, &request, bytes),
    )
}

/// Checks named sessions; a failure lists all that lack something.
fn check(sessions: impl Iterator<Item = (String, Vec<u8>, String)>) {
    let mut all = 0;
    let mut wrong = Vec::new();
    for (name, bytes, prompt) in sessions {
        all += 1;
        let lacks = lacks(&bytes, &prompt);
        if let Some(first) = lacks.first() {
            let first: String = first.chars().take(300).collect();
            wrong.push(format!("{name} lacks {}: {first}", lacks.len()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {all}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Checks all transcripts of a folder of the shared material.
#[expect(clippy::print_stdout, reason = "says what a test did not look at")]
fn check_folder(folder: &str) {
    let folder = shared().map(|shared| shared.join(folder));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        println!("skipped: no shared data");
        return;
    };
    let mut files = Vec::new();
    crate::transcripts_under(&folder, &mut files);
    check(files.into_iter().map(|file| {
        let bytes = fs::read(&file).unwrap();
        (file.display().to_string(), bytes, "NEXT".to_owned())
    }));
}

#[expect(clippy::print_stdout, reason = "says what a test did not look at")]
fn check_oracle(folder: &str) {
    let cases = oracle::cases(folder);
    if cases.is_empty() {
        println!("skipped: no shared data");
    }
    check(cases.into_iter().map(|case| {
        let bytes = fs::read(&case.input).unwrap();
        (case.name, bytes, case.prompt)
    }));
}

#[test]
fn recover_holds_every_message_of_the_oracle() {
    check_oracle(oracle::FOLDERS[0]);
}

#[test]
fn recover_holds_every_message_of_the_further_oracle() {
    check_oracle(oracle::FOLDERS[1]);
}

#[test]
fn recover_holds_every_message_of_what_clients_write_today() {
    check_oracle(oracle::FOLDERS[2]);
}

#[test]
fn recover_holds_every_message_of_damaged_sessions() {
    check_folder("damage");
}

#[test]
fn recover_holds_every_message_of_real_sessions() {
    check_folder("corpus/files");
}

#[test]
fn recover_holds_every_message_of_the_fixtures_of_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/client");
    let mut files = Vec::new();
    crate::transcripts_under(&folder, &mut files);
    assert!(files.len() > 150, "{}", files.len());
    // Where the client guesses by time, or by a repeated line, `recover` may show another of several
    // answers to one prompt, and it knows errors about media by the start of their text.
    const OTHERS: [&str; 5] = ["CHAIN-3-a", "ERR-2-g", "FILE-8-b", "FILE-8-c", "LEAF-8-c"];
    let is_same = |file: &PathBuf| {
        let name = file.file_stem().and_then(|name| name.to_str());
        name.is_none_or(|name| !OTHERS.contains(&name))
    };
    check(files.into_iter().filter(is_same).map(|file| {
        let bytes = fs::read(&file).unwrap();
        (file.display().to_string(), bytes, "NEXT".to_owned())
    }));
}

/// Lines of a session: each an entry with its uuid, its parent (`-` for none) and its other fields.
fn session(lines: &[(&str, &str, &str)]) -> Vec<u8> {
    let line = |(at, (uuid, parent, fields)): (usize, &(&str, &str, &str))| {
        let parent = match *parent {
            "-" => "null".to_owned(),
            parent => format!("\"{parent}\""),
        };
        format!(
            "{{\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"s\",\
             \"timestamp\":\"2026-11-20T10:00:{at:02}.000Z\",{fields}}}\n"
        )
    };
    let lines: String = lines.iter().enumerate().map(line).collect();
    lines.into_bytes()
}

const PROMPT: &str = r#""type":"user","message":{"role":"user","content":"first prompt"}"#;
const ANSWER: &str = r#""type":"assistant","message":{"id":"m1","model":"m","role":"assistant","content":[{"type":"text","text":"first answer"}]}"#;
const BOUNDARY: &str = r#""type":"system","subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"manual","preTokens":1}"#;
const DATE: &str = r#""type":"attachment","attachment":{"type":"date_change","newDate":"2026-11-21"},"rendered":[{"content":"the date"}]"#;
const OUTPUT: &str = r#""type":"system","subtype":"local_command","content":"<local-command-stdout>output</local-command-stdout>""#;

#[test]
fn recover_holds_what_follows_compactions_that_were_interrupted() {
    // Only a boundary after one that names the entries it keeps removes what is before it, so the
    // client sends the new entries alone; `recover` sends them after the conversation.
    let keeps = BOUNDARY.replace(
        r#""preTokens":1"#,
        r#""preTokens":1,"preservedMessages":{"anchorUuid":"s1","uuids":["a1"]}"#,
    );
    let summary =
        r#""type":"user","isCompactSummary":true,"message":{"role":"user","content":"summary"}"#;
    let start = [
        ("u1", "-", PROMPT),
        ("a1", "u1", ANSWER),
        ("b1", "-", &*keeps),
        ("s1", "b1", summary),
        ("b2", "-", BOUNDARY),
        ("d2", "b2", DATE),
    ];
    let later = PROMPT.replace("first", "second");
    let goes_on = [("u2", "s1", &*later)];
    let output = [("o2", "d2", OUTPUT)];
    let again = [("b3", "-", BOUNDARY), ("o3", "b3", OUTPUT)];
    let sessions = [
        ("an attachment", start.to_vec()),
        (
            "an attachment and an output",
            [&start[..], &output].concat(),
        ),
        ("two boundaries", [&start[..], &again].concat()),
        ("a prompt after it", [&start[..], &goes_on].concat()),
    ];
    for (name, lines) in &sessions {
        let sent = request_texts(&session(lines));
        for part in ["summary", "first answer", "the date"] {
            assert!(sent.contains(part), "{name}: {sent}");
        }
    }
    check(
        sessions
            .into_iter()
            .map(|(name, lines)| (name.to_owned(), session(&lines), "NEXT".to_owned())),
    );
}

#[test]
fn recover_holds_what_follows_the_last_compaction_when_the_last_entry_continues_what_is_before_it()
{
    let empty = BOUNDARY.replace(
        r#""preTokens":1"#,
        r#""preTokens":1,"preservedMessages":{"uuids":[]}"#,
    );
    let summary =
        r#""type":"user","isCompactSummary":true,"message":{"role":"user","content":"summary"}"#;
    let later = PROMPT.replace("first", "second");
    let last = PROMPT.replace("first", "third");
    let bytes = session(&[
        ("u1", "-", PROMPT),
        ("a1", "u1", ANSWER),
        ("b1", "-", &empty),
        ("s1", "b1", summary),
        ("u2", "s1", &later),
        ("u3", "a1", &last),
    ]);
    let sent = request_texts(&bytes);
    assert!(
        sent.contains("second prompt") && sent.contains("third prompt"),
        "{sent}"
    );
    check(std::iter::once((
        "rewound".to_owned(),
        bytes,
        "NEXT".to_owned(),
    )));
}

#[test]
fn recover_holds_an_error_under_the_name_of_a_model() {
    let error = ANSWER.replace(
        "\"type\":\"assistant\"",
        "\"type\":\"assistant\",\"isApiErrorMessage\":true",
    );
    let bytes = session(&[("u1", "-", PROMPT), ("a1", "u1", &error)]);
    assert!(request_texts(&bytes).contains("first answer"));
    check(std::iter::once((
        "error".to_owned(),
        bytes,
        "NEXT".to_owned(),
    )));
}

/// The request under `recover`, as text.
fn request_texts(bytes: &[u8]) -> String {
    let request = Loaded::new(bytes).request(Policy::Recover, &RequestOptions::new());
    let messages = request.messages.iter();
    messages
        .map(|message| message.json())
        .collect::<Vec<_>>()
        .join("\n")
}

/// In these, links are wrong at random, and `recover` may rightly take another way than the client.
#[test]
#[ignore = "lists sessions to look at: not each of them is a fault"]
fn recover_holds_every_message_of_generated_sessions() {
    let prompt = || "NEXT".to_owned();
    check((0..1_000).flat_map(|seed| {
        let whole = generate::session(seed);
        let (damaged, kinds) = damage::damage(&whole, seed);
        [
            (format!("seed {seed}"), whole, prompt()),
            (format!("seed {seed}, damage {kinds:?}"), damaged, prompt()),
        ]
    }));
}

#[test]
fn lost_content_is_detected() {
    let said = |json: &str| {
        RequestContent::new(
            serde_json::from_str::<Value>(json)
                .unwrap()
                .as_array()
                .unwrap(),
        )
    };
    let vendor = said(
        r#"[{"role":"user","content":"one"},
            {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":1}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"out\n\n<system-reminder>\nr\n</system-reminder>"},
             {"type":"text","text":"one"},{"type":"text","text":"(no content)"}]}]"#,
    );
    let lacks = |json: &str| missing(&vendor, &said(json), &RequestContent::default()).len();
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":1}}]}"#;
    let results = |content: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"{content}"}}]}}"#
        )
    };
    let user = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let all = |texts: &[&str], result: &str| {
        let texts: Vec<String> = texts.iter().map(|text| user(text)).collect();
        format!("[{},{call},{}]", texts.join(","), results(result))
    };
    assert_eq!(lacks(&all(&["one\\n", "x\\none", "r"], "out")), 0);
    assert_eq!(lacks(&all(&["one", "one"], "out\\n\\nr")), 0);
    assert_eq!(
        lacks(&all(&["one", "r"], "out")),
        1,
        "the text that is there once"
    );
    assert_eq!(
        lacks(&all(&["one", "one", "r"], "other")),
        2,
        "a text and a result"
    );
    assert_eq!(lacks(&all(&["one", "one"], "out")), 1, "the reminder");
    assert_eq!(
        lacks(&all(&["one", "none one", "r"], "out")),
        1,
        "not on a line of its own"
    );
    assert_eq!(
        lacks(&all(&["one", "one", "r"], "out").replace("\"a\":1", "\"a\":2")),
        1
    );
}
