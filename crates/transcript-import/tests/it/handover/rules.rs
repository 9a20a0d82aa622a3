//! What each client can hold of a conversation: each rule of the hand-over, and conversations at random.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use serde_json::Value;
use transcript_format::json::Json;
use transcript_import::handover::{
    Addition, Change, Conversion, Image, Items, LossReport, Options, Reason, RequestItems,
    SourceItem, Target, item_of_block,
};
use transcript_import::{Error, NodeKind};
use transcript_testkit::rng::Rng;

use super::expected::difference;
use super::given::dot;
use super::handed_over::{NOW, hand_over, options};

fn said(kind: NodeKind, text: &str) -> SourceItem {
    SourceItem {
        text: text.to_owned(),
        ..SourceItem::new(kind)
    }
}

fn prompt(text: &str) -> SourceItem {
    said(NodeKind::User, text)
}

fn answer(text: &str) -> SourceItem {
    said(NodeKind::Assistant, text)
}

fn call(id: &str, name: &str, input: impl Into<Json>) -> SourceItem {
    SourceItem {
        call_id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        input: Some(input.into()),
        ..SourceItem::new(NodeKind::ToolCall)
    }
}

fn result(id: &str, output: &str) -> SourceItem {
    SourceItem {
        call_id: Some(id.to_owned()),
        output: output.to_owned(),
        ..SourceItem::new(NodeKind::ToolResult)
    }
}

fn object() -> Json {
    transcript_format::json::ObjectBuf::new()
        .with("a", 1u64)
        .into()
}

/// Hands items over, and returns the report if all else arrives.
fn report(items: &[SourceItem], target: Target) -> LossReport {
    let (report, sent) = hand_over(&items, target);
    assert_eq!(difference(items, &report, &sent), None, "{target}");
    report
}

fn changes(report: &LossReport) -> Vec<(usize, Change)> {
    report
        .changed
        .iter()
        .map(|changed| (changed.item, changed.change))
        .collect()
}

#[test]
fn thoughts_and_context_are_omitted_and_named() {
    let items = vec![
        said(NodeKind::Context, "the date"),
        prompt("U"),
        SourceItem {
            has_signature: true,
            model: Some("m".to_owned()),
            has_usage: true,
            ..said(NodeKind::Reasoning, "R")
        },
        answer("A"),
    ];
    for target in Target::ALL {
        let report = report(&items, target);
        let reasons: Vec<_> = report
            .omitted
            .iter()
            .map(|omitted| omitted.reason)
            .collect();
        let holds_thoughts = matches!(target, Target::Qwen | Target::Copilot);
        let expected = [Reason::Context, Reason::Reasoning];
        assert_eq!(
            reasons,
            expected[..2 - usize::from(holds_thoughts)],
            "{target}"
        );
        assert_eq!((report.signatures, report.usage, report.items), (1, 1, 4));
        assert_eq!(report.models, BTreeSet::from(["m".to_owned()]));
    }
}

#[test]
fn results_without_their_calls_and_further_results_are_named() {
    let items = vec![
        prompt("U"),
        result("ghost", "O1"),
        call("c", "t", object()),
        result("c", "O2"),
        result("c", "O2"),
        answer("A"),
    ];
    for target in Target::ALL {
        let report = report(&items, target);
        let reasons: Vec<_> = report
            .omitted
            .iter()
            .map(|omitted| (omitted.item, omitted.reason))
            .collect();
        let expected = [(1, Reason::ResultWithoutCall), (4, Reason::RepeatedResult)];
        // Codex sends each output of a call.
        assert_eq!(
            reasons,
            expected[..2 - usize::from(target == Target::Codex)],
            "{target}"
        );
    }
}

#[test]
fn ids_and_names_that_models_refuse_are_mapped_and_results_follow_their_calls() {
    let items = vec![
        prompt("U"),
        call("call_ü|1", "multi agent.spawn", object()),
        result("call_ü|1", "O1"),
        call("again", "t", object()),
        result("again", "O2"),
        call("again", "t", object()),
        result("again", "O3"),
        answer("A"),
    ];
    for target in Target::ALL {
        let report = report(&items, target);
        let to: Vec<_> = report
            .changed
            .iter()
            .map(|changed| (changed.item, changed.to.as_deref()))
            .collect();
        let expected = [
            (1, Some("call___1")),
            (1, Some("multi_agent_spawn")),
            (2, Some("call___1")),
            (5, Some("again_2")),
            (6, Some("again_2")),
        ];
        if target == Target::Gemini {
            // It takes what is before two of them for the name of the tool.
            assert_eq!(to[0], (1, Some("call_1")));
        } else {
            assert_eq!(to, expected, "{target}");
        }
    }
}

#[test]
fn inputs_that_are_no_objects_are_wrapped_unless_the_client_stores_strings() {
    let items = vec![
        prompt("U"),
        call("a", "apply_patch", "*** Begin"),
        result("a", "O1"),
        call("b", "t", Json::array([Json::from(1u64)])),
        result("b", "O2"),
        call("c", "t", Json::null()),
        result("c", "O3"),
        answer("A"),
    ];
    for target in Target::ALL {
        let mut expected = vec![
            (1, Change::InputWrapped),
            (3, Change::InputWrapped),
            (5, Change::InputMissing),
        ];
        if target == Target::Codex {
            expected.remove(0);
        }
        assert_eq!(changes(&report(&items, target)), expected, "{target}");
    }
}

#[test]
fn images_that_have_no_place_or_no_data_are_named() {
    let with = |item: SourceItem, images: Vec<Image>, unknown_images| SourceItem {
        images,
        unknown_images,
        ..item
    };
    let drawing = Image {
        media_type: "image/svg+xml".to_owned(),
        ..dot()
    };
    let items = vec![
        with(prompt("U"), vec![dot(), drawing, dot()], 1),
        call("c", "t", object()),
        with(result("c", "O"), vec![dot()], 0),
        answer("A"),
    ];
    for target in Target::ALL {
        let report = report(&items, target);
        let lost = report
            .changed
            .iter()
            .filter(|changed| changed.change == Change::ImagesOmitted);
        let lost: Vec<_> = lost.map(|changed| (changed.item, changed.images)).collect();
        let expected = if target == Target::Copilot {
            vec![(0, Some(4)), (2, Some(1))]
        } else {
            vec![(0, Some(2))]
        };
        assert_eq!(lost, expected, "{target}");
    }
}

#[test]
fn results_move_behind_their_calls_where_the_client_needs_them_there() {
    let items = vec![
        prompt("U1"),
        call("a", "t", object()),
        prompt("U2"),
        result("a", "O1"),
        result("b", "O2"),
        call("b", "t", object()),
        answer("A"),
    ];
    for target in Target::ALL {
        let changes = changes(&report(&items, target));
        let moved = changes
            .iter()
            .filter(|(_, change)| *change == Change::ResultMoved);
        // Codex sends them where they are.
        let expected = if target == Target::Codex { 0 } else { 2 };
        assert_eq!(moved.count(), expected, "{target} {changes:?}");
    }
}

#[test]
fn a_call_without_a_result_and_a_prompt_without_an_answer_are_named() {
    let items = vec![
        answer("A"),
        prompt("U"),
        call("a", "t", object()),
        prompt("U2"),
    ];
    for target in Target::ALL {
        let added: Vec<_> = report(&items, target)
            .added
            .iter()
            .map(|added| (added.item, added.what))
            .collect();
        let expected = if target == Target::ClaudeCode {
            vec![
                (0, Addition::Prompt),
                (2, Addition::Result),
                (3, Addition::Answer),
            ]
        } else {
            vec![(2, Addition::Result)]
        };
        assert_eq!(added, expected, "{target}");
    }
}

#[test]
fn summaries_have_records_of_their_own_where_the_client_has_some() {
    let summary = |text| said(NodeKind::Summary, text);
    let items = vec![
        prompt("U1"),
        summary("S1"),
        prompt("U2"),
        answer("A"),
        summary("S2"),
        prompt("U3"),
        answer("B"),
    ];
    for (target, expected) in [
        (Target::ClaudeCode, vec![1, 4]),
        (Target::Codex, vec![4]),
        (Target::Pi, vec![]),
        (Target::Qwen, vec![1, 4]),
        (Target::Gemini, vec![1, 4]),
        (Target::Copilot, vec![1, 4]),
    ] {
        let changes = changes(&report(&items, target));
        let prompts = changes
            .iter()
            .filter(|(_, change)| *change == Change::SummaryAsPrompt);
        assert_eq!(
            prompts.map(|(at, _)| *at).collect::<Vec<_>>(),
            expected,
            "{target}"
        );
    }
    for target in [Target::ClaudeCode, Target::Codex, Target::Pi, Target::Qwen] {
        let report = report(&items[1..], target);
        assert!(
            !changes(&report).contains(&(0, Change::SummaryAsPrompt)),
            "{target}"
        );
    }
}

#[test]
fn prompts_that_gemini_takes_for_commands_are_sent_all_the_same() {
    let items = vec![
        prompt("/review it"),
        answer("A"),
        prompt("? why"),
        answer("B"),
    ];
    let report = report(&items, Target::Gemini);
    assert_eq!(
        changes(&report),
        [(0, Change::CommandAsPrompt), (2, Change::CommandAsPrompt)]
    );
}

#[test]
fn a_thread_of_codex_names_no_model_no_provider_and_no_turn() {
    let items = vec![
        SourceItem {
            model: Some("claude".to_owned()),
            ..answer("A")
        },
        prompt("U"),
    ];
    let conversion = Conversion::plan(&items, Target::Codex, &options()).expect("it is planned");
    let mut rollout = Vec::new();
    conversion.write_to(&mut rollout).expect("it is written");
    let rollout = String::from_utf8(rollout).expect("it is text");
    for word in ["turn_context", "model_provider", "claude"] {
        assert!(!rollout.contains(word), "{word}");
    }
}

#[test]
fn every_entry_of_claude_code_has_a_later_time_and_each_response_its_own_id() {
    let at = |time, item| SourceItem {
        time: Some(time),
        ..item
    };
    let items = vec![
        prompt("U"),
        at(50, answer("A")),
        call("a", "t", object()),
        at(10, result("a", "O")),
        at(9_000_000, answer("B")),
        answer("C"),
    ];
    let conversion =
        Conversion::plan(&items, Target::ClaudeCode, &options()).expect("it is planned");
    let mut session = Vec::new();
    conversion.write_to(&mut session).expect("it is written");
    let session = String::from_utf8(session).expect("it is text");
    let entries: Vec<Value> = session
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    let entries = entries.iter().filter(|entry| entry["message"].is_object());
    let times: Vec<_> = entries
        .clone()
        .map(|entry| entry["timestamp"].as_str())
        .collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    let ids: Vec<_> = entries
        .filter_map(|entry| entry["message"]["id"].as_str())
        .collect();
    let responses: BTreeSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), responses.len()), (4, 2));
}

/// Returns the id, the path and the bytes of a new session.
fn written(items: &[SourceItem], target: Target, options: &Options) -> (String, PathBuf, Vec<u8>) {
    let conversion = Conversion::plan(&items, target, options).expect("it is planned");
    let mut bytes = Vec::new();
    conversion.write_to(&mut bytes).expect("it is written");
    let main = conversion.files().main.clone();
    (conversion.session_id(), main, bytes)
}

#[test]
fn an_id_depends_on_the_conversation_the_target_and_the_options_but_not_on_the_time() {
    let mut rng = Rng::new(45);
    for _ in 0..200 {
        let mut items = random(&mut rng);
        // Most conversations have times. Those that have none begin when they are said to.
        let has_time = items.iter().any(|item| item.time.is_some());
        let mut ids = HashSet::new();
        for target in Target::ALL.into_iter().chain(Target::FILES) {
            let first = written(&items, target, &options());
            assert_eq!(first, written(&items, target, &options()));
            let mut later = options();
            later.start += 86_400_000;
            let again = written(&items, target, &later);
            assert_eq!(first.0, again.0);
            assert!(!has_time || first == again, "{target}: {items:?}");
            later.written = Some(later.start);
            let again = written(&items, target, &later);
            assert_eq!(first.0, again.0);
            assert!(!has_time || first.1 == again.1, "{target}: {items:?}");
            assert!(ids.insert(first.0), "{target}: {items:?}");
            for change in [
                |options: &mut Options| options.seed.push('2'),
                |options: &mut Options| options.cwd.push('2'),
                |options: &mut Options| options.title = None,
                |options: &mut Options| options.title = Some(String::new()),
                |options: &mut Options| options.agent = Some("other".to_owned()),
            ] {
                let mut other = options();
                change(&mut other);
                let other = written(&items, target, &other);
                assert!(ids.insert(other.0), "{target}: {items:?}");
            }
        }
        // Growing, and each change of an item that a target can hold.
        items.push(said(NodeKind::ToolResult, "grown"));
        let last = items.len() - 1;
        assert!(ids.insert(written(&items, Target::Codex, &options()).0));
        for change in [
            |item: &mut SourceItem| item.kind = NodeKind::ToolCall,
            |item: &mut SourceItem| item.text.push('2'),
            |item: &mut SourceItem| item.name = Some(String::new()),
            |item: &mut SourceItem| item.call_id = Some("id".to_owned()),
            |item: &mut SourceItem| item.input = Some(object()),
            |item: &mut SourceItem| item.output.push('2'),
            |item: &mut SourceItem| item.is_error = true,
            |item: &mut SourceItem| item.images.push(dot()),
            |item: &mut SourceItem| item.images[0].data.push('A'),
            |item: &mut SourceItem| item.time = Some(0),
        ] {
            change(&mut items[last]);
            assert!(ids.insert(written(&items, Target::Codex, &options()).0));
        }
    }
}

#[test]
fn a_session_begins_with_its_first_time_also_behind_items_without_one() {
    let mut items = vec![prompt("U"), answer("A")];
    items[1].time = Some(NOW - 86_400_000);
    for target in Target::ALL {
        let (_, _, bytes) = written(&items, target, &options());
        let text = String::from_utf8(bytes).expect("it is text");
        // Gemini CLI says when it was written, which is not known here.
        assert!(text.contains("2026-11-27T16:"), "{target}: {text}");
        assert!(!text.contains("2026-11-28T"), "{target}: {text}");
    }
}

#[test]
fn marks_in_the_place_of_a_model_are_none() {
    let names = ["<synthetic>", "<other>", "", " ", "unknown", "gpt-9", "<m"];
    let items = names.map(|name| SourceItem {
        model: Some(name.to_owned()),
        ..answer("A")
    });
    let models = report(&items, Target::Codex).models;
    assert_eq!(models.into_iter().collect::<Vec<_>>(), ["<m", "gpt-9"]);
}

/// Items that count how often they are read, and whether more than one is held.
struct Counted<'a> {
    items: &'a [SourceItem],
    reads: Cell<usize>,
}

impl Items for Counted<'_> {
    fn count(&self) -> usize {
        self.items.len()
    }

    fn item(&self, at: usize) -> Result<SourceItem, Error> {
        self.reads.set(self.reads.get() + 1);
        Ok(self.items[at].clone())
    }
}

#[test]
fn each_item_is_read_a_few_times_whatever_its_length() {
    let items: Vec<SourceItem> = (0..1000).map(|at| prompt(&format!("U{at}"))).collect();
    for target in Target::ALL {
        let counted = Counted {
            items: &items,
            reads: Cell::new(0),
        };
        let conversion = Conversion::plan(&counted, target, &options()).expect("it is planned");
        assert_eq!(counted.reads.get(), items.len(), "{target}");
        conversion
            .write_to(&mut std::io::sink())
            .expect("it is written");
        assert_eq!(counted.reads.get(), 2 * items.len(), "{target}");
    }
}

#[test]
fn the_blocks_of_a_request_are_items() {
    let messages = [
        r#"{"role":"user","content":"U"}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"R","signature":"s"},{"type":"text","text":"A"},{"type":"tool_use","id":"c","name":"t","input":{"a":1}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"text","text":"O1"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"text","text":"O2"}]},{"type":"image","source":{"type":"url","url":"x"}}]}"#,
        r#"{"role":"user","content":[{"type":"document","source":{}}]}"#,
    ];
    let items = RequestItems::of(messages.len(), |number| Ok(messages[number].to_owned()));
    let items = items.expect("they are in memory");
    let items: Vec<SourceItem> = (0..items.count())
        .map(|at| items.item(at).expect("it is in memory"))
        .collect();
    let kinds: Vec<&str> = items.iter().map(|item| item.kind.name()).collect();
    let expected = [
        "user",
        "reasoning",
        "assistant",
        "tool_call",
        "tool_result",
        "user",
        "user",
    ];
    assert_eq!(kinds, expected);
    assert!(items[1].has_signature && items[4].is_error);
    assert_eq!(
        (items[4].output.as_str(), items[4].images.len()),
        ("O1\nO2", 1)
    );
    for without_data in &items[5..] {
        assert_eq!(
            (without_data.images.len(), without_data.unknown_images),
            (0, 1)
        );
    }
    let reference = item_of_block(
        r#"{"type":"tool_result","tool_use_id":"c","content":[{"type":"tool_reference","tool_name":"t"},{"type":"text","text":"O"}]}"#,
        NodeKind::User,
    );
    assert_eq!(
        reference.output,
        "{\"type\":\"tool_reference\",\"tool_name\":\"t\"}\nO"
    );
    let references = report(&[call("c", "t", object()), reference], Target::Codex);
    assert_eq!(changes(&references), [(1, Change::PartsAsText)]);
    let unknown = item_of_block(r#"{"type":"novel"}"#, NodeKind::User);
    assert_eq!(unknown.kind, NodeKind::Context);
    let text = item_of_block(r#""A""#, NodeKind::Assistant);
    assert_eq!((text.kind, &*text.text), (NodeKind::Assistant, "A"));
}

#[test]
fn trajectories_and_updates_of_others_are_read() {
    let trajectory = r#"{"schema_version":"ATIF-v1.4","agent":{"name":"a","version":"1"},"steps":[
        {"step_id":1,"source":"system","message":"S"},
        {"step_id":2,"source":"user","message":[{"type":"text","text":"U"},{"type":"image","source":{"path":"x"}}]},
        {"step_id":3,"source":"agent","model_name":"m","message":"A","tool_calls":[{"tool_call_id":"c","function_name":"t","arguments":{}}],
         "observation":{"results":[{"source_call_id":"c","content":"O"}]}}]}"#;
    let items = transcript_import::handover::items_of_trajectory(trajectory).expect("it is one");
    let kinds: Vec<&str> = items.iter().map(|item| item.kind.name()).collect();
    assert_eq!(
        kinds,
        ["context", "user", "assistant", "tool_call", "tool_result"]
    );
    assert_eq!((items[1].text.as_str(), items[1].unknown_images), ("U", 1));
    assert_eq!(transcript_import::handover::items_of_trajectory("{}"), None);

    let update = |update: &str| {
        format!("{{\"method\":\"session/update\",\"params\":{{\"update\":{update}}}}}\n")
    };
    let chunk = |text: &str| {
        update(&format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
        ))
    };
    let call = update(
        r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","status":"completed","rawOutput":{"a":1}}"#,
    );
    let running =
        update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}"#);
    let lines = [
        chunk("A"),
        chunk("B"),
        "torn\n".to_owned(),
        call,
        running,
        chunk("C"),
    ]
    .concat();
    let items = transcript_import::handover::items_of_updates(&lines);
    let texts: Vec<(&str, &str)> = items
        .iter()
        .map(|item| (item.text.as_str(), item.output.as_str()))
        .collect();
    assert_eq!(texts, [("AB", ""), ("", ""), ("", "{\"a\":1}"), ("C", "")]);
}

#[test]
fn conversations_at_random_arrive_at_every_client_but_for_what_their_reports_list() {
    let mut rng = Rng::new(44);
    for round in 0..400 {
        let items = random(&mut rng);
        for target in Target::ALL.into_iter().chain(Target::FILES) {
            let (report, sent) = hand_over(&items, target);
            let difference = difference(&items, &report, &sent);
            assert_eq!(difference, None, "round {round} to {target}: {items:?}");
        }
    }
}

/// Returns items in any order, with results before, after and without their calls.
fn random(rng: &mut Rng) -> Vec<SourceItem> {
    let count = rng.below(14);
    let ids = ["a", "b", "ü", "x__y", ""];
    let names = ["t", "a b", ""];
    let mut items = Vec::new();
    for number in 0..count {
        let id = *rng.pick(&ids);
        let text = if rng.one_in(8) {
            String::new()
        } else {
            format!("text {number}\nsecond")
        };
        let mut item = match rng.below(8) {
            0 | 1 => prompt(&text),
            2 | 3 => answer(&text),
            4 => said(NodeKind::Reasoning, &text),
            5 => said(NodeKind::Summary, &text),
            6 => {
                let input = match rng.below(4) {
                    0 => Json::from("text"),
                    1 => Json::from(5u64),
                    _ => object(),
                };
                call(id, names[rng.below(names.len())], input)
            }
            _ => result(id, &text),
        };
        let may_have_images = matches!(item.kind, NodeKind::User | NodeKind::ToolResult);
        if may_have_images && rng.one_in(5) {
            item.images.push(dot());
        }
        item.is_error = item.kind == NodeKind::ToolResult && rng.one_in(4);
        item.time = (!rng.one_in(3)).then(|| rng.below(1000) as i64);
        items.push(item);
    }
    items
}
