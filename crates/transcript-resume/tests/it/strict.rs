//! Requests under policy `recover` are such that a strict provider takes them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

use serde_json::{Value, json};
use transcript_format::kind::EntryKind;
use transcript_format::texts;
use transcript_messages::{BlockKind, Lint, Message, OmissionReason, Rule, SyntheticKind, lint};
use transcript_reader::{Bodies, EntryNo, Index, Source};
use transcript_resume::request::{Request, RequestOptions};
use transcript_resume::texts::{NO_RESPONSE, START_MISSING};
use transcript_resume::{Policy, Tree};
use transcript_testkit::validator::validate;
use transcript_testkit::{damage, generate, shared};

use crate::request_forms::{CALL, RESULT, Session};

// ---------------------------------------------------------------------------------------------
// All sessions there are
// ---------------------------------------------------------------------------------------------

/// How many generated sessions; `TRANSCRIPT_SEEDS` sets another number.
fn seeds() -> u64 {
    let seeds = std::env::var("TRANSCRIPT_SEEDS").ok();
    seeds.map_or(2_000, |seeds| seeds.parse().unwrap())
}

/// Calls `look` with the name and the bytes of each session: shared, generated, damaged.
#[expect(clippy::print_stdout, reason = "says what a test did not look at")]
pub(crate) fn for_each_session(seeds: u64, mut look: impl FnMut(&str, &[u8])) {
    if let Some(shared) = shared() {
        let mut files = Vec::new();
        crate::transcripts_under(&shared.join("corpus/files"), &mut files);
        crate::transcripts_under(&shared.join("oracle"), &mut files);
        for file in files {
            look(&file.display().to_string(), &fs::read(&file).unwrap());
        }
    } else {
        println!("skipped: no shared data");
    }
    for seed in 0..seeds {
        let session = generate::session(seed);
        look(&format!("seed {seed}"), &session);
        let (damaged, kinds) = damage::damage(&session, seed);
        look(&format!("seed {seed}, damage {kinds:?}"), &damaged);
    }
}

pub(crate) struct Loaded {
    _file: tempfile::NamedTempFile,
    source: Source,
    index: Index,
}

impl Loaded {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let (_file, source, index) = crate::load(bytes);
        Self {
            _file,
            source,
            index,
        }
    }

    /// Number of the line of the entry with this origin, counted from 1.
    pub(crate) fn line(&self, origin: usize) -> usize {
        usize::try_from(self.index.entry(EntryNo::new(origin)).line()).unwrap()
    }

    pub(crate) fn request(&self, policy: Policy, options: &RequestOptions) -> Request {
        let tree = Tree::new(&self.index, policy);
        let mut bodies = Bodies::new(&self.source);
        options.request(&tree, &mut bodies).unwrap()
    }
}

pub(crate) fn forms() -> [RequestOptions; 3] {
    [
        RequestOptions::new(),
        RequestOptions::new().prompt("NEXT"),
        RequestOptions::new()
            .prompt("NEXT")
            .model("claude-opus-5-5"),
    ]
}

#[test]
fn every_session_with_a_conversation_gives_a_request_that_a_strict_provider_takes() {
    let mut checked = 0;
    for_each_session(seeds(), |name, bytes| {
        let session = Loaded::new(bytes);
        for options in forms() {
            let request = session.request(Policy::Recover, &options);
            if request.is_resumable() {
                let problems = lint(&request.messages).problems;
                assert!(problems.is_empty(), "{name}: {problems:?}");
                checked += 1;
            } else {
                assert_eq!(request.messages, [], "{name}");
            }
        }
    });
    assert!(checked > seeds(), "{checked} requests of {} seeds", seeds());
}

fn says_something(block: &Value) -> bool {
    let is_blank = |key: &str| {
        block[key]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
    };
    match block["type"].as_str() {
        // A first or last message without content is gone, and so is its synthetic replacement.
        Some("text") => {
            !is_blank("text") && block["text"] != START_MISSING && block["text"] != NO_RESPONSE
        }
        Some("thinking") => !is_blank("thinking") && !is_blank("signature"),
        _ => true,
    }
}

/// The part of a request that is the same under both policies: a strict provider accepts neither
/// adjacent messages of one role nor blocks without content.
fn condensed(request: &Request) -> Vec<(String, Vec<Value>)> {
    let mut messages: Vec<(String, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let blocks = message.blocks().iter();
        let mut blocks: Vec<Value> = blocks
            .map(|block| serde_json::from_str(block.json()).unwrap())
            .collect();
        blocks.retain(says_something);
        for block in &mut blocks {
            if let Some(inner) = block.get_mut("content").and_then(Value::as_array_mut) {
                inner.retain(says_something);
            }
        }
        let mut role = message.role().name();
        // A reminder whose user message is gone is one itself.
        if role == "system"
            && messages
                .last()
                .is_none_or(|(before, _)| before == "assistant")
        {
            role = "user";
            for block in &mut blocks {
                let text = block["text"].as_str().unwrap();
                block["text"] = format!("<system-reminder>\n{text}\n</system-reminder>").into();
            }
        }
        match messages.last_mut() {
            Some((before, so_far)) if *before == role => so_far.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => messages.push((role.to_owned(), blocks)),
        }
    }
    if let Some((_, blocks)) = messages.last_mut()
        && let Some(text) = blocks.last_mut().and_then(|block| block.get_mut("text"))
        && let Some(trimmed) = text.as_str().map(str::trim_end)
    {
        *text = trimmed.into();
    }
    messages
}

fn json_of(request: &Request) -> Vec<String> {
    request.messages.iter().map(|one| one.json()).collect()
}

/// Compares without printing whole conversations.
fn same<T: PartialEq + std::fmt::Debug>(name: &str, one: &[T], other: &[T]) {
    let at = (0..one.len().max(other.len())).find(|&at| one.get(at) != other.get(at));
    let show = |side: &[T]| -> String {
        let message = at.and_then(|at| side.get(at));
        message.map_or("nothing".into(), |message| {
            format!("{message:?}")
                .chars()
                .rev()
                .take(600)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect()
        })
    };
    assert!(
        at.is_none(),
        "{name}, message {at:?}:\n  {}\n  {}",
        show(one),
        show(other)
    );
}

/// Whether a failed result, or the whole request, had no content.
fn says_no_content(request: &Request) -> bool {
    let mut kinds = request.synthetic.iter().map(|one| one.kind);
    kinds.any(|kind| kind == SyntheticKind::NoContent)
}

/// Rules that are kept by joining messages and omitting blocks without content.
const CONDENSED: [Rule; 4] = [
    Rule::SameRole,
    Rule::BlankText,
    Rule::UnsignedThinking,
    Rule::TrailingSpace,
];

#[test]
fn healthy_sessions_are_sent_as_the_client_sends_them() {
    let (mut equal, mut condensed_only) = (0, 0);
    for_each_session(seeds(), |name, bytes| {
        let session = Loaded::new(bytes);
        for options in forms() {
            // The available tools are not in a session, and the policies guess differently.
            let options = options.tools(["AskUserQuestion", "ExitPlanMode", "WebFetch"]);
            let vendor = session.request(Policy::Vendor, &options);
            let recover = session.request(Policy::Recover, &options);
            let is_healthy = |rules: &[Rule]| {
                let lint = lint(&vendor.messages);
                let mut broken = lint.problems.iter();
                let is_lossy = |reason: OmissionReason| {
                    matches!(
                        reason,
                        OmissionReason::UnansweredCall
                            | OmissionReason::OrphanResult
                            | OmissionReason::RepeatedCall
                            | OmissionReason::ServerCall
                    )
                };
                let is_made_up = |kind| {
                    matches!(
                        kind,
                        SyntheticKind::NoContent
                            | SyntheticKind::OrphanRemoved
                            | SyntheticKind::RepeatedCall
                            | SyntheticKind::MissingResult
                    )
                };
                // The generator signs all thinking blocks alike, with and without a text; and where
                // calls are put last, a thinking block can end up after them. More errors are evidence
                // against media than the client knows.
                let omits_thoughts = recover.omissions.iter().any(|one| {
                    matches!(
                        one.reason,
                        OmissionReason::Refused(Rule::EmptiedThinking | Rule::ThinkingLast)
                            | OmissionReason::RejectedMedia
                    )
                });
                vendor.is_resumable()
                    && !omits_thoughts
                    && vendor.path.entries == recover.path.entries
                    && broken.all(|problem| rules.contains(&problem.rule))
                    && !vendor
                        .omissions
                        .iter()
                        .any(|omission| is_lossy(omission.reason))
                    && !vendor.synthetic.iter().any(|one| is_made_up(one.kind))
            };
            if is_healthy(&[]) {
                same(name, &json_of(&recover), &json_of(&vendor));
                assert_eq!(recover.omissions, vendor.omissions, "{name}");
                assert_eq!(recover.synthetic, vendor.synthetic, "{name}");
                equal += 1;
            } else if is_healthy(&CONDENSED) && !says_no_content(&recover) {
                same(name, &condensed(&recover), &condensed(&vendor));
                condensed_only += 1;
            }
        }
    });
    println!("{equal} requests equal, {condensed_only} but for what says nothing");
    assert!(equal > seeds() / 2, "{equal} requests of {} seeds", seeds());
    assert!(condensed_only > 0);
}

/// The blocks of messages that are not synthetic, except thinking and blank texts: how many of each
/// kind each entry gave.
fn blocks_of(session: &Loaded, request: &Request) -> BTreeMap<(usize, String), usize> {
    let mut blocks = BTreeMap::new();
    for block in request.messages.iter().flat_map(|message| message.blocks()) {
        let value: Value = serde_json::from_str(block.json()).unwrap();
        let is_thought = matches!(
            block.kind(),
            BlockKind::Thinking | BlockKind::SealedThinking
        );
        if let Some(entry) = block.origin()
            && session.index.entry(EntryNo::new(entry)).kind() != EntryKind::Attachment
            && !is_thought
            && says_something(&value)
        {
            *blocks
                .entry((entry, format!("{:?}", block.kind())))
                .or_default() += 1;
        }
    }
    blocks
}

#[test]
fn nothing_that_the_client_sends_is_lost_under_recover() {
    let mut more = 0;
    for_each_session(seeds(), |name, bytes| {
        let session = Loaded::new(bytes);
        let options = RequestOptions::new();
        let vendor = session.request(Policy::Vendor, &options);
        let recover = session.request(Policy::Recover, &options);
        if vendor.path.entries != recover.path.entries {
            return;
        }
        let is_refused = |entry: usize| {
            let mut omissions = recover.omissions.iter().filter(|one| one.origin == entry);
            omissions.any(|one| crate::superset::is_refusal(one.reason))
        };
        let (vendor, sent) = (blocks_of(&session, &vendor), blocks_of(&session, &recover));
        for (block, count) in &vendor {
            let is_there = sent.get(block) >= Some(count) || is_refused(block.0);
            assert!(is_there, "{name}: {block:?}");
        }
        more += usize::from(vendor.values().sum::<usize>() < sent.values().sum());
    });
    println!("{more} sessions of which more is sent");
    assert!(more > 0);
}

// ---------------------------------------------------------------------------------------------
// The second validator
// ---------------------------------------------------------------------------------------------

/// Requests, one per line, and the result of the lint for each.
#[derive(Default)]
struct Batch {
    requests: Vec<u8>,
    verdicts: Vec<(String, Lint)>,
}

impl Batch {
    fn add(&mut self, name: String, request: &Request) {
        writeln!(self.requests, "[{}]", json_of(request).join(",")).unwrap();
        self.verdicts.push((name, lint(&request.messages)));
    }

    /// Checks that `tests/validate_request.py` agrees. Returns how many requests there are, and how
    /// many of them are refused; `None` without Python.
    fn compare(&self) -> Option<(usize, usize)> {
        let said = validate(&self.requests)?;
        let mut faults: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for line in said.lines() {
            let number = line.strip_prefix("request ").unwrap().split(',').next();
            let number: usize = number.unwrap().parse().unwrap();
            faults.entry(number).or_default().push(line);
        }
        for (number, (name, lint)) in (1..).zip(&self.verdicts) {
            let faults = faults.get(&number);
            assert_eq!(
                lint.is_ok(),
                faults.is_none(),
                "{name}: {:?} {faults:?}",
                lint.problems
            );
        }
        Some((self.verdicts.len(), faults.len()))
    }
}

#[test]
fn lint_and_the_validator_in_python_agree_under_both_policies() {
    if validate(b"").is_none() {
        println!("skipped: no python3");
        return;
    }
    let (mut batch, mut requests, mut refused) = (Batch::default(), 0, 0);
    let mut compare = |batch: &mut Batch| {
        let (all, bad) = std::mem::take(batch).compare().unwrap();
        (requests, refused) = (requests + all, refused + bad);
    };
    for_each_session(seeds() / 4, |name, bytes| {
        let session = Loaded::new(bytes);
        for policy in [Policy::Vendor, Policy::Recover] {
            let request = session.request(policy, &RequestOptions::new().prompt("NEXT"));
            if request.is_resumable() {
                batch.add(format!("{name}, {policy:?}"), &request);
            }
        }
        if batch.requests.len() > 64 << 20 {
            compare(&mut batch);
        }
    });
    compare(&mut batch);
    println!("{requests} requests, {refused} refused");
    assert!(0 < refused && refused < requests);
}

// ---------------------------------------------------------------------------------------------
// One fault at a time
// ---------------------------------------------------------------------------------------------

const TEXT: &str = r#"[{"type":"text","text":"A"}]"#;

/// The request of a session: each message as its role and its content, with the omissions and
/// synthetic blocks.
struct Sent {
    messages: Vec<Value>,
    omitted: Vec<(usize, &'static str)>,
    made_up: Vec<(SyntheticKind, Option<usize>)>,
}

fn sent(session: &Session) -> Sent {
    let request = session.request_under(Policy::Recover, &RequestOptions::new());
    assert_eq!(
        lint(&request.messages).problems,
        [],
        "{:?}",
        request.messages
    );
    let omissions = request.omissions.iter();
    let synthetic = request.synthetic.iter();
    let messages = json_of(&request);
    Sent {
        messages: messages
            .iter()
            .map(|json| serde_json::from_str(json).unwrap())
            .collect(),
        omitted: omissions
            .map(|one| (one.origin, one.reason.name()))
            .collect(),
        made_up: synthetic.map(|one| (one.kind, one.origin)).collect(),
    }
}

fn message(role: &str, content: &str) -> Value {
    let content: Value = serde_json::from_str(content).unwrap();
    json!({"role": role, "content": content})
}

fn result(id: &str, text: &str) -> String {
    format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"{text}"}}]"#)
}

fn call(id: &str, name: &str, input: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#)
}

#[test]
fn a_result_is_put_after_its_call_wherever_it_stands() {
    let expected = [
        message("user", r#""Q""#),
        message("assistant", CALL),
        message("user", RESULT),
        message("assistant", TEXT),
    ];
    let late = Session::default()
        .user(r#""Q""#)
        .assistant("m", CALL)
        .assistant("n", TEXT)
        .user(RESULT);
    let late = sent(&late);
    assert_eq!(late.messages, expected);
    assert_eq!((late.omitted, late.made_up), (vec![], vec![]));

    let early = Session::default()
        .user(r#""Q""#)
        .user(RESULT)
        .assistant("m", CALL)
        .assistant("n", TEXT);
    let early = sent(&early);
    assert_eq!(early.messages[1..], expected[1..]);
    assert_eq!((early.omitted, early.made_up), (vec![], vec![]));

    let further_down = Session::default()
        .user(r#""Q""#)
        .assistant("m", CALL)
        .user(r#""and""#)
        .assistant("n", TEXT)
        .user(RESULT)
        .user(r#""then""#)
        .assistant("o", TEXT);
    let further_down = sent(&further_down);
    let with_text = RESULT.replace(']', r#",{"type":"text","text":"and"}]"#);
    assert_eq!(further_down.messages[2], message("user", &with_text));
    assert_eq!(further_down.messages[4]["content"][0]["text"], "then");
    assert_eq!(
        (further_down.omitted, further_down.made_up),
        (vec![], vec![])
    );
}

#[test]
fn a_text_beside_an_unanswered_call_stays_and_the_call_gets_a_result() {
    let both = format!(
        r#"[{{"type":"text","text":"A"}},{}]"#,
        call("t", "Bash", "{}")
    );
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("m", &both)
        .user(r#""R""#)
        .assistant("n", TEXT);
    let sent = sent(&session);
    assert_eq!(sent.messages[1], message("assistant", &both));
    let results = &sent.messages[2]["content"];
    assert_eq!(
        (&results[0]["tool_use_id"], &results[0]["is_error"]),
        (&json!("t"), &json!(true))
    );
    assert_eq!(results[1]["text"], "R");
    assert_eq!(sent.made_up, [(SyntheticKind::MissingResult, Some(1))]);
    assert_eq!(sent.omitted, []);
}

#[test]
fn a_history_that_starts_with_an_answer_gets_a_user_message_and_neighbours_join() {
    let session = Session::default()
        .assistant("m", TEXT)
        .assistant("n", TEXT)
        .user(r#""Q""#)
        .user(r#"[{"type":"text","text":" "}]"#)
        .assistant("o", TEXT);
    let sent = sent(&session);
    let start = json!([{"type": "text", "text": START_MISSING}]);
    let twice = r#"[{"type":"text","text":"A"},{"type":"text","text":"A"}]"#;
    assert_eq!(
        sent.messages[..2],
        [
            json!({"role": "user", "content": start}),
            message("assistant", twice)
        ]
    );
    assert_eq!(sent.messages.len(), 4);
    assert_eq!(sent.made_up, [(SyntheticKind::MissingStart, None)]);
    assert_eq!(sent.omitted, [(3, "blank-text")]);
}

#[test]
fn a_conversation_of_which_nothing_is_left_is_one_user_message() {
    let session = Session::default()
        .user(r#"[{"type":"text","text":""}]"#)
        .assistant("m", r#"[{"type":"thinking","thinking":"hm"}]"#);
    let request = session.request_under(Policy::Recover, &RequestOptions::new());
    assert!(request.is_resumable());
    assert_eq!(lint(&request.messages).problems, []);
    assert_eq!(request.messages[0].role().name(), "user");
}

#[test]
fn thoughts_that_the_api_refuses_are_omitted_and_named() {
    let thoughts = r#"[{"type":"thinking","thinking":"","signature":"s"},
        {"type":"thinking","thinking":"hm"},{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"text","text":"A"},{"type":"thinking","thinking":"end","signature":"s"}]"#;
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("m", &thoughts.replace('\n', ""));
    let sent = sent(&session);
    let kept =
        r#"[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"A"}]"#;
    assert_eq!(sent.messages[1], message("assistant", kept));
    assert_eq!(
        sent.omitted,
        [
            (1, "emptied-thinking"),
            (1, "unsigned-thinking"),
            (1, "thinking-last")
        ]
    );
}

/// Sends answers with one thinking block each, given as text and signature. Returns the signatures
/// that are sent, and the omissions.
fn thoughts_sent(thoughts: &[(&str, &str)]) -> (Vec<String>, Vec<(usize, &'static str)>) {
    let mut session = Session::default();
    for (at, (text, signature)) in thoughts.iter().enumerate() {
        let thought =
            format!(r#"{{"type":"thinking","thinking":"{text}","signature":"{signature}"}}"#);
        let content = format!(r#"[{thought},{{"type":"text","text":"A{at}"}}]"#);
        session = session
            .user(&format!(r#""Q{at}""#))
            .assistant(&format!("m{at}"), &content);
    }
    let sent = sent(&session);
    let contents = sent
        .messages
        .iter()
        .filter_map(|message| message["content"].as_array());
    let signatures = contents
        .flatten()
        .filter_map(|block| block["signature"].as_str());
    (signatures.map(str::to_owned).collect(), sent.omitted)
}

#[test]
fn thoughts_that_were_given_without_a_text_are_sent_unchanged() {
    let cases: [&[(&str, &str)]; 4] = [
        // All of them; the first or the last ones, when the setting was changed; two in between.
        &[("", "a"), ("", "b"), ("", "c")],
        &[("", "a"), ("hm", "b")],
        &[("hm", "a"), ("hm", "b"), ("", "c")],
        &[("hm", "a"), ("", "b"), ("", "c"), ("hm", "d")],
    ];
    for thoughts in cases {
        let all = thoughts
            .iter()
            .map(|(_, signature)| (*signature).to_owned());
        assert_eq!(
            thoughts_sent(thoughts),
            (all.collect(), Vec::new()),
            "{thoughts:?}"
        );
    }
}

#[test]
fn thought_is_omitted_when_its_text_was_provably_removed() {
    // The only one, between others of its model.
    let (sent, omitted) = thoughts_sent(&[("hm", "a"), ("", "b"), ("hm", "c")]);
    assert_eq!(sent, ["a", "c"]);
    assert_eq!(omitted, [(3, "emptied-thinking")]);
    // Its signature appears with a text elsewhere.
    let (sent, omitted) = thoughts_sent(&[("hm", "a"), ("", "b"), ("", "a")]);
    assert_eq!(sent, ["a", "b"]);
    assert_eq!(omitted, [(5, "emptied-thinking")]);
}

#[test]
fn an_earlier_copy_of_the_line_proves_that_a_thought_had_a_text() {
    let session = |text: &str| {
        let thought = format!(r#"{{"type":"thinking","thinking":"{text}","signature":"a"}}"#);
        let content = format!(r#"[{thought},{{"type":"text","text":"A"}}]"#);
        Session::default().user(r#""Q""#).assistant("m", &content)
    };
    let mut copied = session("hm");
    copied.text += session("").text.lines().last().unwrap();
    let sent = sent(&copied);
    let answer = message("assistant", r#"[{"type":"text","text":"A"}]"#);
    assert_eq!(sent.messages[1], answer);
    assert_eq!(sent.omitted, [(2, "emptied-thinking")]);
}

#[test]
fn broken_calls_are_repaired_and_their_results_follow() {
    let calls = format!(
        "[{},{},{}]",
        call("a b", "Bash", r#""{\"command\":\"\\u0000\"}""#),
        call("c", "", "7"),
        r#"{"type":"tool_use","name":"Read"}"#
    );
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("m", &calls)
        .user(&result("a b", "one"))
        .user(&result("c", "two"))
        .assistant("n", &format!("[{}]", call("c", "Read", "{}")))
        .user(&result("c", "three"))
        .assistant("o", TEXT);
    let sent = sent(&session);
    let calls = &sent.messages[1]["content"];
    assert_eq!(calls[0]["input"], json!({"command": "\u{fffd}"}));
    assert_eq!(calls[1]["input"], json!({"input": 7}));
    assert_eq!(calls[2]["input"], json!({}));
    assert_eq!(calls[1]["name"], "unknown_tool");
    let ids = |message: usize, key: &str| -> Vec<&str> {
        let blocks = sent.messages[message]["content"].as_array().unwrap();
        blocks
            .iter()
            .map(|block| block[key].as_str().unwrap())
            .collect()
    };
    let texts = ids(2, "content");
    assert_eq!(texts[1..], ["one", "two"]);
    assert_eq!(
        ids(2, "tool_use_id"),
        [ids(1, "id")[2], ids(1, "id")[0], "c"]
    );
    assert_eq!(ids(3, "id"), ids(4, "tool_use_id"));
    assert_eq!(ids(4, "content"), ["three"]);
    assert_eq!(sent.made_up, [(SyntheticKind::MissingResult, Some(1))]);
    let mut reasons: Vec<_> = sent.omitted.iter().map(|(_, reason)| *reason).collect();
    reasons.sort_unstable();
    let expected = [
        "call-id",
        "call-id",
        "call-input",
        "call-input",
        "call-input",
        "call-name",
    ];
    assert_eq!(reasons, [&expected[..], &["repeated-call"]].concat());
}

#[test]
fn misplaced_and_invalid_blocks_are_moved_converted_or_replaced() {
    let user = format!(
        r#"["bare",7,{{"text":"typeless"}},{},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":""}}}}]"#,
        call("x", "Bash", "{}")
    );
    let search = r#"[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"r","content":[]},{"type":"text","text":"A \n"}]"#;
    let session = Session::default().user(&user).assistant("m", search);
    let sent = sent(&session);
    let content = &sent.messages[0]["content"];
    assert_eq!(
        (&content[0]["text"], &content[1]["text"]),
        (&json!("bare"), &json!("typeless"))
    );
    assert_eq!(content[2]["text"], "[media left out: no usable data]");
    assert_eq!(sent.messages[1], message("assistant", TEXT));
    assert_eq!(sent.made_up, [(SyntheticKind::MediaNote, Some(0))]);
    let reasons: Vec<_> = sent.omitted.iter().map(|(_, reason)| *reason).collect();
    let expected = [
        "no-block",
        "no-block",
        "no-block",
        "wrong-role",
        "unusable-media",
    ];
    assert_eq!(
        reasons,
        [&expected[..], &["api-tool-pair", "api-tool-pair"]].concat()
    );
}

#[test]
fn the_content_of_results_is_repaired() {
    let results = r#"[{"type":"tool_result","tool_use_id":"t","content":["bare",{"type":"text","text":""},{"type":"thinking","thinking":"x"}]}]"#;
    let failed = r#"[{"type":"tool_result","tool_use_id":"u","content":null,"is_error":true}]"#;
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("m", CALL)
        .user(results)
        .assistant("n", &CALL.replace("\"t\"", "\"u\""))
        .user(failed)
        .assistant("o", TEXT);
    let sent = sent(&session);
    assert_eq!(
        sent.messages[2]["content"][0]["content"],
        json!([{"type": "text", "text": "bare"}])
    );
    assert_eq!(
        sent.messages[4]["content"][0]["content"],
        json!([{"type": "text", "text": "(no content)"}])
    );
    assert_eq!(sent.made_up, [(SyntheticKind::NoContent, Some(4))]);
}

#[test]
fn a_replayed_call_and_an_orphan_result_are_omitted() {
    let twice = format!("[{0},{0}]", call("t", "Bash", "{}"));
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("m", &twice)
        .user(RESULT)
        .user(RESULT)
        .assistant("n", TEXT)
        .user(&result("gone", "x"))
        .assistant("o", TEXT);
    let sent = sent(&session);
    assert_eq!(sent.messages[1], message("assistant", CALL));
    assert_eq!(sent.messages[2], message("user", RESULT));
    assert_eq!(sent.messages.len(), 4);
    assert_eq!(
        sent.omitted,
        [
            (1, "repeated-call"),
            (3, "orphan-result"),
            (5, "orphan-result")
        ]
    );
    assert_eq!(sent.made_up, []);
}

#[test]
fn a_reminder_whose_user_message_is_gone_is_a_user_message() {
    let session = Session::default()
        .user(r#""Q""#)
        .assistant("m", TEXT)
        .reminder("system", "one")
        .assistant("n", TEXT);
    let options = RequestOptions::new().model("claude-opus-5-5");
    let request = session.request_under(Policy::Recover, &options);
    assert_eq!(lint(&request.messages).problems, []);
    assert_eq!(
        json_of(&request)[2],
        r#"{"role":"user","content":"<system-reminder>\none\n</system-reminder>"}"#
    );
}

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn pixel() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}})
}

/// A session of these lines, each a type with its message or attachment.
fn session_of(rows: impl IntoIterator<Item = (&'static str, Value)>) -> Vec<u8> {
    let mut text = String::new();
    for (number, (kind, content)) in rows.into_iter().enumerate() {
        let uuid = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
        let parent = number.checked_sub(1).map(uuid);
        let mut entry = json!({
            "type": kind, "uuid": uuid(number), "parentUuid": parent, "isSidechain": false, "sessionId": uuid(99),
            "timestamp": format!("2026-01-01T00:00:{number:02}.000Z"),
            "isApiErrorMessage": content["model"] == "<synthetic>",
        });
        let key = if kind == "attachment" {
            kind
        } else {
            "message"
        };
        entry[key] = content;
        text.push_str(&entry.to_string());
        text.push('\n');
    }
    text.into_bytes()
}

fn user_row(content: &Value) -> (&'static str, Value) {
    ("user", json!({"role": "user", "content": content}))
}

fn answer_row(model: &str, text: &str) -> (&'static str, Value) {
    let content = json!([{"type": "text", "text": text}]);
    (
        "assistant",
        json!({"role": "assistant", "id": text, "model": model, "content": content}),
    )
}

/// A session with an image in two prompts: the first one was answered, the second one met an error.
fn session_with_error(error: &str) -> Vec<u8> {
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjcKMSAwIG9iagpzdGFydHhyZWYKOQolJUVPRg=="});
    let media = json!([pixel(), {"type": "document", "source": pdf}]);
    session_of([
        user_row(&media),
        answer_row("claude-sonnet-4-5", "Seen."),
        user_row(&media),
        answer_row("<synthetic>", error),
        user_row(&json!("Go on.")),
        answer_row("<synthetic>", error),
        user_row(&json!("Please.")),
    ])
}

const IMAGE_ERROR: &str = "API Error: 400 Could not process image";

#[test]
fn an_error_says_nothing_about_the_media_beside_or_before_a_note() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let result =
        |text: Value| json!({"type": "tool_result", "tool_use_id": "t", "content": [text]});
    let call = json!({"role": "assistant", "id": "m", "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]});
    let too_large = format!("{}image/png, 9.0 MB]", texts::MEDIA_TOO_LARGE);
    for (beside, is_kept) in [
        (text("See."), false),
        (text(texts::MEDIA_REJECTED), true),
        (text(&too_large), true),
        (result(text("See.")), false),
        (result(text(texts::MEDIA_REJECTED)), true),
        (result(text(&too_large)), true),
    ] {
        for entry in [json!([beside]), json!([beside, pixel()])] {
            let all = 1 + entry.to_string().matches(PIXEL).count();
            let session = session_of([
                user_row(&json!("Look.")),
                ("assistant", call.clone()),
                user_row(&json!([pixel()])),
                user_row(&entry),
                answer_row("<synthetic>", IMAGE_ERROR),
                user_row(&json!("Go on.")),
            ]);
            let session = Loaded::new(&session);
            let request = session.request(Policy::Recover, &RequestOptions::new());
            let sent: String = request.messages.iter().map(Message::json).collect();
            let images = sent.matches(PIXEL).count();
            assert_eq!(images, all - usize::from(!is_kept), "{beside}");
        }
    }
}

#[test]
fn an_error_about_media_is_evidence_against_those_of_an_attachment() {
    let file = json!({"type": "file", "filename": "/a.png",
        "content": {"type": "image", "file": {"type": "image/png", "base64": PIXEL}}});
    for (between, is_kept) in [
        (user_row(&json!("Look.")), false),
        (answer_row("claude-sonnet-4-5", "Seen."), true),
    ] {
        let session = session_of([
            user_row(&json!("See @/a.png")),
            ("attachment", file.clone()),
            between,
            user_row(&json!("Next.")),
            answer_row("<synthetic>", IMAGE_ERROR),
            user_row(&json!("Go on.")),
        ]);
        let session = String::from_utf8(session).unwrap();
        let healing = session.replace(
            "\"isApiErrorMessage\":true",
            "\"isApiErrorMessage\":true,\"healsDistinctCarrier\":true",
        );
        for (session, is_kept) in [(session, is_kept), (healing, false)] {
            let session = Loaded::new(session.as_bytes());
            let request = session.request(Policy::Recover, &RequestOptions::new());
            let sent: String = request.messages.iter().map(Message::json).collect();
            assert_eq!(sent.contains(PIXEL), is_kept, "{sent}");
            assert_eq!(sent.contains(texts::MEDIA_REJECTED), !is_kept, "{sent}");
            assert_eq!(lint(&request.messages).problems, []);
            let rejected = request.omissions.iter();
            let rejected = rejected.filter(|one| one.reason == OmissionReason::RejectedMedia);
            let lines = rejected.map(|one| (session.line(one.origin), one.evidence));
            let lines: Vec<(usize, Option<usize>)> = lines
                .map(|(line, evidence)| (line, evidence.map(|error| session.line(error))))
                .collect();
            let expected = if is_kept { vec![] } else { vec![(2, Some(5))] };
            assert_eq!(lines, expected);
        }
    }
    // The client does not look at attachments.
    let request = Loaded::new(&session_of([
        user_row(&json!("See @/a.png")),
        ("attachment", file.clone()),
        answer_row(
            "<synthetic>",
            "Image was too large. Try resizing the image or using a different approach.",
        ),
        user_row(&json!("Go on.")),
    ]));
    let request = request.request(Policy::Vendor, &RequestOptions::new());
    let sent: String = request.messages.iter().map(Message::json).collect();
    assert!(sent.contains(PIXEL));
}

/// Makes a session of these messages, each after the one before. An answer of a text that starts with `API Error` is one.
fn session_of_messages(messages: &[Value]) -> Vec<u8> {
    let uuid = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
    let mut text = String::new();
    for (number, message) in messages.iter().enumerate() {
        let is_error = message["model"] == "<synthetic>";
        let kind = message["role"].as_str().unwrap_or("attachment");
        let entry = json!({
            "type": kind, "uuid": uuid(number), "parentUuid": number.checked_sub(1).map(uuid), "isSidechain": false,
            "sessionId": uuid(99), "timestamp": format!("2026-01-01T00:00:{number:02}.000Z"), "message": message,
            "attachment": message, "isApiErrorMessage": is_error,
        });
        text.push_str(&entry.to_string());
        text.push('\n');
    }
    text.into_bytes()
}

fn said_by(role: &str, content: Value) -> Value {
    let mut message = json!({
        "role": role, "id": "msg_010000595784685930413640", "model": "claude-sonnet-4-5",
    });
    message["content"] = content;
    message
}

fn failed_with(error: &str) -> Value {
    let content = json!([{"type": "text", "text": error}]);
    json!({"role": "assistant", "id": "e", "model": "<synthetic>", "content": content})
}

/// Returns how many images and documents are sent, at any depth.
fn media_sent(messages: &[Value]) -> usize {
    let session = Loaded::new(&session_of_messages(messages));
    let request = session.request(Policy::Recover, &RequestOptions::new().prompt("And?"));
    let json = request.messages.iter().map(|message| message.json());
    let count = |json: String| json.matches(r#""data":"#).count();
    json.map(count).sum()
}

#[test]
fn the_same_refusal_twice_after_the_same_media_is_evidence_unless_it_names_another_cause() {
    let sent = |errors: [&str; 2]| {
        let [first, second] = errors.map(failed_with);
        media_sent(&[
            said_by(
                "user",
                json!([pixel(), {"type": "text", "text": "What is it?"}]),
            ),
            first,
            said_by("user", json!("Again.")),
            second,
        ])
    };
    let unknown = |request: u8| {
        format!(
            r#"API Error: 400 {{"type":"error","error":{{"type":"invalid_request_error","message":"something is odd"}},"request_id":"req_{request}"}}"#
        )
    };
    assert_eq!(sent([&unknown(1), &unknown(2)]), 0);
    assert_eq!(
        sent([&unknown(1), "API Error: 400 something else is odd"]),
        1
    );
    for other in [
        "API Error: 529 overloaded",
        "API Error: 500 Internal server error",
        "API Error: 401 invalid key",
        "API Error: 400 tool_use ids were found without tool_result blocks",
        "API Error: 400 Your credit balance is too low",
        "Prompt is too long",
        "Claude AI usage limit reached|1760000000",
    ] {
        assert_eq!(sent([other, other]), 1, "{other}");
    }
    // Other media are between them.
    let refusal = failed_with(&unknown(1));
    let prompt = said_by("user", json!([pixel()]));
    assert_eq!(
        media_sent(&[prompt.clone(), refusal.clone(), prompt, refusal]),
        2
    );
}

#[test]
fn an_error_after_parallel_calls_is_evidence_against_the_media_of_all_their_results() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {}});
    let result = |id: &str| {
        let content = json!([pixel()]);
        said_by(
            "user",
            json!([{"type": "tool_result", "tool_use_id": id, "content": content}]),
        )
    };
    let error = || failed_with("API Error: 400 Could not process image");
    let prompt = || {
        said_by(
            "user",
            json!([pixel(), {"type": "text", "text": "Read both."}]),
        )
    };
    let at_once = [
        prompt(),
        said_by("assistant", json!([call("a"), call("b")])),
        result("a"),
        result("b"),
        error(),
        said_by("user", json!("Go on.")),
        error(),
    ];
    // The first prompt was answered with the calls.
    assert_eq!(media_sent(&at_once), 1);
    // A result may be written before the next line of the same answer.
    let in_turn = [
        prompt(),
        said_by("assistant", json!([call("a")])),
        result("a"),
        said_by("assistant", json!([call("b")])),
        result("b"),
        error(),
    ];
    assert_eq!(media_sent(&in_turn), 1);
}

#[test]
fn documents_of_queued_prompts_are_sent_and_the_client_leaves_them_out() {
    let document = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "The log."}});
    let prompt = json!([{"type": "text", "text": "See this."}, document, pixel()]);
    let session = Loaded::new(&session_of_messages(&[
        said_by("user", json!("Start.")),
        json!({"type": "queued_command", "commandMode": "prompt", "prompt": prompt}),
        said_by("assistant", json!([{"type": "text", "text": "Seen."}])),
    ]));
    for (policy, kinds) in [
        (Policy::Vendor, vec![BlockKind::Image]),
        (Policy::Recover, vec![BlockKind::Document, BlockKind::Image]),
    ] {
        let request = session.request(policy, &RequestOptions::new().prompt("And?"));
        let blocks = request.messages.iter().flat_map(|message| message.blocks());
        let sent = blocks.map(|block| block.kind());
        let sent: Vec<BlockKind> = sent.filter(|kind| *kind != BlockKind::Text).collect();
        assert_eq!(sent, kinds, "{policy:?}");
    }
}

#[test]
fn thinking_that_claude_cannot_have_signed_is_not_sent() {
    let sent = |model: &str, thinking: Value, signature: &str| {
        let thought = json!({"type": "thinking", "thinking": thinking, "signature": signature});
        let mut answer = said_by(
            "assistant",
            json!([thought, {"type": "text", "text": "Yes."}]),
        );
        answer["model"] = json!(model);
        let session = Loaded::new(&session_of_messages(&[
            said_by("user", json!("Is it?")),
            answer,
        ]));
        let request = session.request(Policy::Recover, &RequestOptions::new().prompt("And?"));
        assert!(lint(&request.messages).is_ok());
        let blocks = request.messages.iter().flat_map(|message| message.blocks());
        blocks.filter(|block| block.is_thinking()).count() == 1
    };
    let claude = "claude-sonnet-4-5";
    assert!(sent(claude, json!("Hm."), "EqQBCkYIBRgCKkA+/w=="));
    // The client itself stores only the signature.
    assert!(sent(claude, json!(""), "EqQBCkYIBRgCKkA+/w=="));
    assert!(!sent(claude, Value::Null, "EqQBCkYIBRgCKkA+/w=="));
    for signature in ["reasoning_content", "not base64 !!", "a\u{e9}b"] {
        assert!(!sent(claude, json!("Hm."), signature), "{signature}");
        assert!(
            sent("deepseek-chat", json!("Hm."), signature),
            "{signature}"
        );
    }
}

#[test]
fn an_error_about_media_is_evidence_against_those_since_the_last_answer() {
    // The texts of public reports.
    for (error, kept) in [
        (
            "Image was too large. Double press esc to go back",
            "document",
        ),
        (
            "API Error: 400 messages.1.content.0.image.source.base64: image exceeds 5 MB maximum",
            "document",
        ),
        (
            "API Error: 400 image dimensions exceed max allowed size for many-image requests: 2000 pixels",
            "document",
        ),
        ("API Error: 400 Could not process image", "document"),
        ("PDF too large. Please double press esc to edit", "image"),
        ("PDF too large (max 100 pages, 32MB)", "image"),
        ("The PDF file was not valid.", "image"),
        ("API Error: 400 Could not process PDF", "image"),
        ("Request too large (max 32MB). Double press esc", ""),
        (
            "API Error: 413 {\"error\":{\"type\":\"request_too_large\"}}",
            "",
        ),
        ("API Error: 529 overloaded", "image document"),
    ] {
        let session = Loaded::new(&session_with_error(error));
        let request = session.request(Policy::Recover, &RequestOptions::new().prompt("And?"));
        let kinds = |message: usize| -> String {
            let blocks = request.messages[message].blocks().iter();
            let kinds = blocks.filter_map(|block| match block.kind() {
                BlockKind::Image => Some("image"),
                BlockKind::Document => Some("document"),
                _ => None,
            });
            kinds.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kinds(0), "image document", "{error}");
        assert_eq!(kinds(2), kept, "{error}");
        let rejected = request.omissions.iter();
        let rejected = rejected.filter(|omission| omission.reason == OmissionReason::RejectedMedia);
        for omission in rejected {
            let evidence = omission.evidence.map(|error| session.line(error));
            assert_eq!(
                (session.line(omission.origin), evidence),
                (3, Some(4)),
                "{error}"
            );
        }
    }
}
