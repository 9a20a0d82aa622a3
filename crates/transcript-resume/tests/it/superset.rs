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
//! which the request under `recover` reports this.

use std::collections::HashMap;
use std::fs;
use std::hash::Hash;

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
struct Said {
    /// Every text, also those in results.
    texts: Vec<String>,
    calls: Vec<Value>,
    /// The id of each result, and the texts in it.
    results: Vec<(String, Vec<String>)>,
    /// All other blocks, also those in results.
    others: Vec<Value>,
}

impl Said {
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
fn refused_blocks(session: &Loaded, request: &Request, bytes: &[u8]) -> Said {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let refused = request
        .omissions
        .iter()
        .filter(|one| matches!(one.reason, OmissionReason::Refused(_)));
    let mut said = Said::default();
    for omission in refused {
        let line = lines[session.line(omission.origin) - 1];
        let Ok(entry) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        if let Value::Array(blocks) = &entry["message"]["content"] {
            blocks.iter().cloned().for_each(|block| said.add(block));
        }
    }
    said
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

/// What makes two blocks the same: of a call its id, name and input, of other blocks everything.
fn same(block: &Value) -> String {
    if block["type"] == "tool_use" {
        format!("{} {} {}", block["id"], block["name"], block["input"])
    } else {
        block.to_string()
    }
}

/// The contents of `vendor` that `recover` lacks; empty when all are present.
fn missing(vendor: &Said, recover: &Said, refused: &Said) -> Vec<String> {
    let mut missing = Vec::new();
    let there = parts(&recover.texts);
    for (part, needed) in parts(&vendor.texts) {
        // Most parts are alone; the others are looked for in all texts.
        let found = there.get(part).copied().unwrap_or_default();
        if found < needed && recover.count(part) < needed && refused.count(part) == 0 {
            missing.push(format!("text, {found} of {needed}: {part}"));
        }
    }
    let blocks = |said: &Said| counted(said.calls.iter().chain(&said.others).map(same));
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
        let is_there = |said: &Said| said.results.iter().any(says_all);
        if !is_there(recover) && !is_there(refused) {
            missing.push(format!("result {id}: {texts:?}"));
        }
    }
    missing
}

/// What `recover` lacks of what the client sends for these bytes.
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
        &Said::new(&vendor),
        &Said::new(&messages),
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
    crate::path::transcripts_under(&folder, &mut files);
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
fn what_is_lost_is_seen() {
    let said = |json: &str| {
        Said::new(
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
    let lacks = |json: &str| missing(&vendor, &said(json), &Said::default()).len();
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
