//! Requests that are made to fit a context window.

use std::collections::HashSet;

use serde_json::{Value, json};
use transcript_format::scan::Flags;
use transcript_messages::{
    Block, BlockKind, Message, OmissionReason, Role, SyntheticKind, TokenEstimate, lint,
};
use transcript_reader::EntryNo;
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::request::{Fit, Request, RequestOptions};
use transcript_resume::{Policy, Tree, is_prompt};

use crate::strict::for_each_session;

/// Builds the request of a session.
fn request(session: &[u8], policy: Policy, options: &RequestOptions) -> (Index, Request) {
    let source = Source::from_bytes(session, "-".as_ref());
    let index = Index::load(&source).unwrap();
    let tree = Tree::new(&index, policy);
    let request = options.request(&tree, &mut Bodies::new(&source)).unwrap();
    drop(tree);
    (index, request)
}

/// A session of turns: a prompt, calls with results of a length, an answer. Some results have images.
struct Turns {
    lines: Vec<Value>,
}

impl Turns {
    fn new() -> Self {
        Self { lines: Vec::new() }
    }

    fn add(&mut self, kind: &str, content: &Value, more: &Value) {
        let number = self.lines.len();
        let parent = number.checked_sub(1).map(uuid);
        let mut line = json!({
            "type": kind, "uuid": uuid(number), "parentUuid": parent, "sessionId": "s",
            "timestamp": format!("2026-11-01T10:{:02}:{:02}.000Z", number / 60, number % 60),
            "message": {"role": kind, "content": content},
        });
        if kind == "assistant" {
            line["message"]["id"] = json!(format!("m{number}"));
            line["message"]["model"] = json!("m");
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            match key.as_str() {
                "usage" => line["message"]["usage"] = value.clone(),
                _ => line[key] = value.clone(),
            }
        }
        self.lines.push(line);
    }

    fn prompt(&mut self, text: &str) {
        self.add("user", &json!(text), &json!({}));
    }

    fn call(&mut self, result: &Value) {
        let id = format!("t{}", self.lines.len());
        let call = json!([{"type": "tool_use", "id": id, "name": "Read", "input": {}}]);
        self.add("assistant", &call, &json!({}));
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": result}]);
        self.add("user", &result, &json!({}));
    }

    fn answer(&mut self, text: &str, tokens: Option<u64>) {
        let usage = tokens.map(|tokens| json!({"usage": {"input_tokens": tokens}}));
        let content = json!([{"type": "text", "text": text}]);
        self.add("assistant", &content, &usage.unwrap_or_default());
    }

    fn bytes(&self) -> Vec<u8> {
        let lines = self.lines.iter().map(|line| format!("{line}\n"));
        lines.collect::<String>().into_bytes()
    }
}

fn uuid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn words(tokens: usize) -> String {
    "word".repeat(tokens)
}

/// A PNG of 750 by 1000 pixels: 1,000 tokens.
fn picture() -> Value {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAu4AAAPoCAIAAAAOUew0AAAAAElEQVQ1rwYeAAAAAElFTkSuQmCC";
    let source = json!({"type": "base64", "media_type": "image/png", "data": png});
    json!([{"type": "image", "source": source}])
}

/// Four turns; the first has an image and a document, each has a result of 1,000 tokens.
fn four_turns() -> Turns {
    let mut turns = Turns::new();
    for turn in 0..4 {
        turns.prompt(&format!("Prompt {turn}. {}", words(100)));
        turns.call(&json!(words(1_000)));
        if turn == 0 {
            turns.call(&picture());
        }
        turns.answer(&format!("Answer {turn}. {}", words(100)), None);
    }
    turns
}

/// Which of the turns have their image, their result and their prompt.
fn left(request: &Request) -> (usize, usize, usize) {
    let blocks = || request.messages.iter().flat_map(Message::blocks);
    let count = |text: &str| blocks().filter(|block| block.json().contains(text)).count();
    (
        count("image/png"),
        blocks()
            .filter(|block| block.kind() == BlockKind::ToolResult && block.json_len() > 1_000)
            .count(),
        count("Prompt "),
    )
}

#[test]
fn media_go_first_then_results_then_turns_each_as_far_as_needed() {
    let session = four_turns().bytes();
    let whole = request(&session, Policy::Recover, &RequestOptions::new()).1;
    assert_eq!(left(&whole), (1, 4, 4));
    let tokens = whole.tokens();
    assert_eq!((tokens.request, tokens.recorded), (tokens.messages, None));
    // A third is added to compare it with the limit. What is too long is cut to seven eighths of the limit.
    let all = tokens.messages * 4 / 3;
    for (less, expected) in [
        (0, (1, 4, 4)),
        (10, (0, 4, 4)),
        (1_200, (0, 3, 4)),
        (2_800, (0, 2, 4)),
        (3_800, (0, 2, 3)),
        (4_050, (0, 2, 2)),
        (9_000, (0, 2, 2)),
    ] {
        let limit = Fit::messages(all.saturating_sub(less));
        let options = RequestOptions::new().fit(limit);
        let (index, fitted) = request(&session, Policy::Recover, &options);
        assert_eq!(left(&fitted), expected, "{less} tokens less");
        let is_too_long = limit.surplus(&fitted.tokens()) > 0;
        assert_eq!(is_too_long, less == 9_000, "{less} tokens less");
        check("turns", &whole, &fitted, &index, 2);
    }
    // The client sends all.
    let options = RequestOptions::new().fit(Fit::messages(1));
    let (_, of_client) = request(&session, Policy::Vendor, &options);
    assert_eq!(left(&of_client), (1, 4, 4));
}

#[test]
fn a_note_says_where_in_the_session_the_omitted_messages_are() {
    let session = four_turns().bytes();
    let options = RequestOptions::new().fit(Fit::messages(1));
    let (_, fitted) = request(&session, Policy::Recover, &options);
    let first = fitted.messages[0].json();
    assert!(
        first.contains(
            "[omitted to fit the context window: 10 messages, line 1 to line 10 of the session]"
        ),
        "{first}"
    );
    // Two turns, and a third from which only results were taken.
    let options = RequestOptions::new().fit(Fit::messages(4_000).keep_turns(1));
    let (_, fitted) = request(&session, Policy::Recover, &options);
    let texts: String = fitted.messages.iter().map(Message::json).collect();
    assert!(texts.contains("a result of 4.1 KB, line "), "{texts}");
}

#[test]
fn last_prompt_and_last_results_stay_without_a_turn_to_keep() {
    let mut turns = Turns::new();
    turns.prompt("The task.");
    for _ in 0..50 {
        turns.call(&json!(words(50)));
    }
    let session = turns.bytes();
    let whole = request(&session, Policy::Recover, &RequestOptions::new().live()).1;
    for (turns, max) in [(1, 101), (0, 4)] {
        let limit = Fit::messages(1).keep_turns(turns);
        let options = RequestOptions::new().live().fit(limit);
        let (index, fitted) = request(&session, Policy::Recover, &options);
        assert!(fitted.messages.len() <= max, "{:?}", fitted.messages.len());
        check("turns", &whole, &fitted, &index, turns);
        assert!(fitted.messages[0].json().contains("The task."));
        let last = fitted.messages.last().map(Message::json);
        assert!(last.is_some_and(|last| last.contains(&words(50))));
    }
}

#[test]
fn the_summary_of_a_compaction_stays() {
    let mut turns = Turns::new();
    turns.add(
        "user",
        &json!("What came before."),
        &json!({"isCompactSummary": true}),
    );
    turns.answer("Understood.", None);
    for turn in 0..5 {
        turns.prompt(&format!("Prompt {turn}. {}", words(500)));
        turns.answer("Done.", None);
    }
    let session = turns.bytes();
    let options = RequestOptions::new().fit(Fit::messages(1_500));
    let (_, fitted) = request(&session, Policy::Recover, &options);
    let first = fitted.messages[0].json();
    assert!(
        first.contains("What came before.") && first.contains("Prompt 3."),
        "{first}"
    );
    assert!(lint(&fitted.messages).is_ok());
}

#[test]
fn a_window_holds_the_system_prompt_and_the_tools_too() {
    let mut turns = four_turns();
    turns.prompt("Last.");
    turns.answer("Yes.", Some(26_000));
    let session = turns.bytes();
    let whole = request(&session, Policy::Recover, &RequestOptions::new()).1;
    let tokens = whole.tokens();
    assert_eq!(tokens.recorded, Some(26_000));
    assert_eq!(tokens.request, 26_000);
    assert!(tokens.messages < 9_000, "{tokens:?}");
    let of = |limit: Fit| {
        let options = RequestOptions::new().fit(limit);
        request(&session, Policy::Recover, &options).1
    };
    assert_eq!(left(&of(Fit::messages(9_000))).0, 1);
    assert_eq!(left(&of(Fit::window(26_000))).0, 1);
    let fitted = of(Fit::window(24_000));
    assert_eq!(left(&fitted).0, 0);
    let after = fitted.tokens();
    assert!(
        after.request <= 24_000 && after.request > 20_000,
        "{after:?}"
    );
}

/// Checks that the omitted messages are named, that the last turns are whole, and that the API accepts the rest.
fn check(name: &str, whole: &Request, fitted: &Request, index: &Index, turns: usize) {
    let found = lint(&fitted.messages);
    assert!(found.is_ok(), "{name}: {found:?}");
    let omitted = fitted.omissions.iter();
    let omitted = omitted.filter(|omission| omission.reason == OmissionReason::ContextWindow);
    let omitted: HashSet<usize> = omitted.map(|omission| omission.origin).collect();
    let sent: String = fitted.messages.iter().map(Message::json).collect();
    let notes = fitted.synthetic.iter();
    for note in notes.filter(|note| note.kind == SyntheticKind::OmissionNote) {
        let text = json!(note.block.text_field().as_deref()).to_string();
        assert!(sent.contains(&text), "{name}: {text} is not sent");
    }
    let kept = fitted.messages.iter().flat_map(Message::blocks);
    let kept: HashSet<&str> = kept.map(Block::json).collect();
    for block in whole.messages.iter().flat_map(Message::blocks) {
        let is_named = block
            .origin()
            .is_none_or(|origin| omitted.contains(&origin));
        assert!(is_named || kept.contains(block.json()), "{name}: {block:?}");
    }
    let is_turn = |message: &Message| {
        let mut origins = message.blocks().iter().filter_map(|block| block.origin());
        message.role() == Role::User
            && origins.any(|origin| {
                let entry = index.entry(EntryNo::new(origin));
                is_prompt(&entry) && !entry.flags().contains(Flags::AUTOMATIC)
            })
    };
    let Some(later) = turns.checked_sub(1) else {
        return;
    };
    let prompts = whole.messages.iter().enumerate().rev();
    let from = prompts
        .filter(|(_, message)| is_turn(message))
        .nth(later)
        .map_or(0, |(at, _)| at);
    // The first message of them may have a note before it.
    let last = &whole.messages[(from + 1).min(whole.messages.len())..];
    assert!(
        fitted.messages.ends_with(last),
        "{name}: the last {turns} turns"
    );
}

#[test]
fn requests_of_any_session_are_accepted_however_short() {
    const MAX_BYTES: usize = 1 << 20;
    let mut checked = 0;
    for_each_session(200, |name, session| {
        if session.len() > MAX_BYTES {
            return;
        }
        let (_, whole) = request(session, Policy::Recover, &RequestOptions::new());
        if !whole.is_resumable() {
            return;
        }
        let all = whole.tokens().messages;
        for (quarters, turns) in [(0, 0), (1, 1), (2, 0), (3, 2)] {
            let limit = Fit::messages(all * quarters / 4).keep_turns(turns);
            let options = RequestOptions::new().fit(limit);
            let (index, fitted) = request(session, Policy::Recover, &options);
            check(name, &whole, &fitted, &index, turns);
            checked += 1;
        }
    });
    assert!(checked > 500, "{checked}");
}

#[test]
fn nothing_is_omitted_for_a_note_that_is_longer() {
    let mut turns = Turns::new();
    for turn in 0..6 {
        turns.prompt(&format!("p{turn}"));
        turns.answer("a", None);
    }
    let session = turns.bytes();
    let whole = request(&session, Policy::Recover, &RequestOptions::new()).1;
    let options = RequestOptions::new().fit(Fit::messages(1));
    let fitted = request(&session, Policy::Recover, &options).1;
    assert_eq!(fitted.messages, whole.messages);
    assert_eq!(fitted.omissions, []);
}

#[test]
fn a_file_whose_text_was_omitted_is_not_in_the_context() {
    let mut turns = Turns::new();
    for turn in 0..3 {
        turns.prompt(&format!("Prompt {turn}."));
        turns.call(&json!(words(1_000)));
        let path = format!("/x/{turn}");
        let file = json!({"type": "text", "file": {"filePath": path, "content": words(1_000),
            "numLines": 1, "startLine": 1, "totalLines": 1}});
        turns.lines.last_mut().unwrap()["toolUseResult"] = file;
        turns.answer("Done.", None);
    }
    let session = turns.bytes();
    let source = Source::from_bytes(&*session, "-".as_ref());
    let index = Index::load(&source).unwrap();
    let tree = Tree::new(&index, Policy::Recover);
    let in_context = |options: RequestOptions| -> Vec<bool> {
        let mut bodies = Bodies::new(&source);
        let (_, state, _) = options.request_with_state(&tree, &mut bodies).unwrap();
        let files = state.files.unwrap();
        files.iter().map(|file| file.in_context).collect()
    };
    assert_eq!(in_context(RequestOptions::new()), [true; 3]);
    let limit = Fit::messages(3_000);
    let fitted = in_context(RequestOptions::new().fit(limit));
    assert_eq!(fitted, [false, true, true]);
}

#[test]
fn count_before_a_compaction_is_ignored() {
    let mut turns = Turns::new();
    turns.prompt("First.");
    turns.answer("Kept.", Some(170_000));
    let kept = uuid(turns.lines.len() - 1);
    turns.prompt("Compact.");
    let summary = uuid(turns.lines.len() + 1);
    turns.add("user", &json!(""), &json!({}));
    let boundary = turns.lines.last_mut().unwrap();
    boundary["type"] = json!("system");
    boundary["subtype"] = json!("compact_boundary");
    boundary["content"] = json!("Conversation compacted");
    boundary["logicalParentUuid"] = boundary["parentUuid"].take();
    boundary["compactMetadata"] = json!({"trigger": "manual", "preTokens": 170_000,
        "preservedSegment": {"headUuid": kept, "anchorUuid": summary, "tailUuid": kept},
        "preservedMessages": {"anchorUuid": summary, "uuids": [kept]}});
    boundary.as_object_mut().unwrap().remove("message");
    turns.add(
        "user",
        &json!("Summary."),
        &json!({"isCompactSummary": true}),
    );
    turns.prompt("Go on.");
    let whole = request(&turns.bytes(), Policy::Recover, &RequestOptions::new()).1;
    let sent: String = whole.messages.iter().map(Message::json).collect();
    assert!(sent.contains("Kept."), "{sent}");
    let tokens = whole.tokens();
    assert!(
        tokens.recorded.is_none() && tokens.request < 100,
        "{tokens:?}"
    );
}

/// The system prompt and the tools of the client that grows a conversation.
const SYSTEM: u64 = 20_000;

fn estimated(messages: &[Message]) -> u64 {
    let blocks = messages.iter().flat_map(Message::blocks);
    blocks.map(TokenEstimate::of).sum::<TokenEstimate>().tokens
}

/// The requests of a conversation that grows by an exchange with the model at a time.
struct Growth {
    fit: Fit,
    turns: usize,
    /// Whether answers say what they took.
    is_recorded: bool,
    conversation: Turns,
    sent: Vec<Message>,
    requests: usize,
    /// How often a request did not start with the messages of the one before.
    changes: usize,
    /// The estimated tokens of all messages.
    estimated: u64,
}

impl Growth {
    fn new(fit: Fit, turns: usize, is_recorded: bool) -> Self {
        Self {
            fit: fit.keep_turns(turns),
            turns,
            is_recorded,
            conversation: Turns::new(),
            sent: Vec::new(),
            requests: 0,
            changes: 0,
            estimated: 0,
        }
    }

    /// Sends what there is so far, and returns what the answer says it took.
    fn send(&mut self) -> Option<u64> {
        let session = self.conversation.bytes();
        let whole = RequestOptions::new().live();
        let options = whole.clone().fit(self.fit);
        let (index, fitted) = request(&session, Policy::Recover, &options);
        let (_, whole) = request(&session, Policy::Recover, &whole);
        check("growing", &whole, &fitted, &index, self.turns);
        assert_eq!(
            self.fit.surplus(&fitted.tokens()),
            0,
            "{:?}",
            fitted.tokens()
        );
        if fitted.omissions.is_empty() {
            assert_eq!(fitted.messages, whole.messages);
        }
        self.changes += usize::from(!fitted.messages.starts_with(&self.sent));
        self.requests += 1;
        self.estimated = estimated(&whole.messages);
        self.sent = fitted.messages;
        // The API counts somewhat more than estimated, and not always as much.
        let percent = 118 + self.requests as u64 * 7 % 5;
        let tokens = estimated(&self.sent) * percent / 100 + SYSTEM;
        self.is_recorded.then_some(tokens)
    }

    /// Adds a turn with a call for each length of a result; a length of 0 stands for an image.
    fn turn(&mut self, number: usize, results: &[usize]) {
        self.conversation
            .prompt(&format!("Prompt {number}. {}", words(100)));
        for result in results {
            let tokens = self.send();
            match result {
                0 => self.conversation.call(&picture()),
                tokens => self.conversation.call(&json!(words(*tokens))),
            }
            let lines = &mut self.conversation.lines;
            let call = lines.len() - 2;
            lines[call]["message"]["usage"] = json!({"input_tokens": tokens});
        }
        let tokens = self.send();
        self.conversation
            .answer(&format!("Answer {number}. {}", words(300)), tokens);
    }
}

#[test]
fn requests_of_a_growing_conversation_start_with_the_same_messages_between_steps() {
    let limit = 40_000;
    // Estimates take up to a third more.
    let most = limit * 3 / 4;
    let window = Fit::window(limit + SYSTEM);
    for (fit, turns, is_recorded, results) in [
        (window, 2, true, &[700][..]),
        (window, 2, true, &[700, 0, 40]),
        (window, 1, true, &[]),
        (window, 0, true, &[400; 12]),
        (Fit::messages(limit), 2, true, &[700, 900]),
        (Fit::messages(limit), 2, false, &[700, 900]),
        (Fit::messages(limit), 0, false, &[1_500, 0]),
    ] {
        let mut growth = Growth::new(fit, turns, is_recorded);
        for number in 0.. {
            growth.turn(number, results);
            if growth.conversation.bytes().len() > 400_000 {
                break;
            }
        }
        let steps = growth.estimated.saturating_sub(most) / (most / 8) + 1;
        let changes = growth.changes as u64;
        println!(
            "{} requests, {changes} changes, {steps} steps",
            growth.requests
        );
        assert!(growth.requests > 60 && steps > 10, "{}", growth.requests);
        assert!(changes <= steps, "{changes} changes in {steps} steps");
    }
}
