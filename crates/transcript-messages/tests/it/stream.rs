//! Streams: any split gives the same message, any cut a part of it, and a naive reader agrees.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use transcript_messages::stream::{
    Abort, Accumulator, BlockState, Input, Reply, Sse, StreamOutcome, StreamStep, wrap,
};
use transcript_testkit::streams::{Stream, stream};

mod invariants;

use invariants::{check, check_input, check_outcome, end, outcome};

const SEEDS: u64 = 200;

// ---- generated streams -------------------------------------------------------------------------

#[test]
fn every_split_of_a_stream_gives_the_same_message() {
    for seed in 0..SEEDS {
        let Stream { sse: bytes, .. } = stream(seed);
        let whole = outcome([&bytes[..]]);
        assert!(matches!(whole, StreamOutcome::Whole(_)), "seed {seed}");
        for size in [1, 2, 3, 7] {
            assert_eq!(outcome(bytes.chunks(size)), whole, "seed {seed}, {size}");
        }
        // The state at the split only depends on the bytes before it, which are read once for all
        // splits.
        let (mut sse, mut message) = (Sse::new(), Accumulator::new());
        for at in 0..bytes.len() {
            let (mut sse_here, mut message_here) = (sse.clone(), message.clone());
            sse_here.push(&bytes[at..], |_, data| {
                message_here.event(data);
            });
            assert_eq!(end(sse_here, message_here), whole, "seed {seed}, {at}");
            sse.push(&bytes[at..=at], |_, data| {
                message.event(data);
            });
        }
    }
}

#[test]
fn wrapped_events_give_the_same_message() {
    for seed in 0..SEEDS {
        let (mut plain, mut wrapped) = (Accumulator::new(), Accumulator::new());
        for event in stream(seed).events {
            let event = event.to_string();
            assert_eq!(wrapped.event(&wrap(&event)), plain.event(&event));
        }
        let plain = plain.finish();
        assert!(matches!(plain, StreamOutcome::Whole(_)), "seed {seed}");
        assert_eq!(wrapped.finish(), plain, "seed {seed}");
    }
}

#[test]
fn a_stream_gives_the_same_message_as_a_naive_reader() {
    for seed in 0..SEEDS {
        let Stream { sse, events } = stream(seed);
        let expected = naive(&events);
        let reply = whole(outcome([&sse[..]]));
        let message: Value = serde_json::from_str(reply.message()).unwrap();
        assert_eq!(message, expected, "seed {seed}");
        // A call without input may be one that the limit of tokens ended.
        let stops_early = expected["stop_reason"] == "max_tokens";
        let last = reply.blocks().len() - 1;
        let is_whole = |(at, state): (usize, &BlockState)| {
            let is_begun =
                at == last && stops_early && expected["content"][at]["input"] == json!({});
            *state == BlockState::Whole || is_begun && *state == BlockState::Repaired
        };
        assert!(
            reply.blocks().iter().enumerate().all(is_whole),
            "seed {seed}"
        );

        let mut by_event = Accumulator::new();
        let mut wrapped = Accumulator::new();
        for (number, event) in events.iter().enumerate() {
            let json = event.to_string();
            by_event.event(&json);
            let bytes = json!({"bytes": STANDARD.encode(json), "p": "abc"});
            wrapped.event(&match number % 2 {
                0 => bytes.to_string(),
                _ => json!({"chunk": bytes}).to_string(),
            });
        }
        assert_eq!(whole(wrapped.finish()), whole(by_event.finish()));
    }
}

#[test]
fn a_stream_cut_at_any_byte_yields_a_part_of_its_message_or_nothing() {
    for seed in 0..SEEDS {
        let Stream { sse: bytes, .. } = stream(seed);
        let full: Value = serde_json::from_str(whole(outcome([&bytes[..]])).message()).unwrap();
        let (mut sse, mut message) = (Sse::new(), Accumulator::new());
        let mut blocks_before = 0;
        for at in 0..bytes.len() {
            let outcome = end(sse.clone(), message.clone());
            let blocks = match &outcome {
                StreamOutcome::Whole(reply) => {
                    let message: Value = serde_json::from_str(reply.message()).unwrap();
                    assert_eq!(message, full, "seed {seed}, {at}");
                    reply.blocks().len()
                }
                StreamOutcome::Partial(reply, Abort::Cut) => {
                    check_part(reply, &full);
                    reply.blocks().len()
                }
                StreamOutcome::Nothing(Abort::Cut) => 0,
                other => panic!("seed {seed}, {at}: {other:?}"),
            };
            assert!(blocks >= blocks_before, "a later cut has no less");
            blocks_before = blocks;
            sse.push(&bytes[at..=at], |_, data| {
                message.event(data);
            });
        }
    }
}

fn check_part(reply: &Reply, full: &Value) {
    check_outcome(&StreamOutcome::Partial(reply.clone(), Abort::Cut));
    let part: Value = serde_json::from_str(reply.message()).unwrap();
    assert_eq!(part["id"], full["id"]);
    let (part, full) = (part["content"].as_array().unwrap(), &full["content"]);
    let (last, before) = reply.blocks().split_last().unwrap();
    for (at, block) in part.iter().enumerate() {
        assert!(is_part(block, &full[at]), "{block} of {}", full[at]);
    }
    for (at, state) in before.iter().enumerate() {
        assert_eq!((*state, &part[at]), (BlockState::Whole, &full[at]));
    }
    // A missing end of a text cannot be detected; that of a call can.
    if *last == BlockState::Whole {
        assert_eq!(part[before.len()], full[before.len()]);
    }
    let is_call = part[before.len()]["type"]
        .as_str()
        .unwrap()
        .ends_with("tool_use");
    assert_eq!(
        *last == BlockState::Repaired,
        is_call && *last != BlockState::Whole
    );
}

/// Returns whether `part` is `full`, cut somewhere and closed.
fn is_part(part: &Value, full: &Value) -> bool {
    match (part, full) {
        (Value::String(part), Value::String(full)) => full.starts_with(part.as_str()),
        (Value::Array(part), Value::Array(full)) => {
            part.len() <= full.len()
                && part
                    .iter()
                    .zip(full)
                    .all(|(part, full)| is_part(part, full))
        }
        (Value::Object(part), Value::Object(full)) => part
            .iter()
            .all(|(key, part)| full.get(key).is_some_and(|full| is_part(part, full))),
        _ => part == full,
    }
}

/// The naive reader: complete texts, parsed at the end.
fn naive(events: &[Value]) -> Value {
    let mut message = Value::Null;
    let mut inputs: Map<String, Value> = Map::new();
    for event in events {
        let index = event["index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().unwrap() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                let content = message["content"].as_array_mut().unwrap();
                content.push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let block = &mut message["content"][index];
                let delta = &event["delta"];
                let mut append = |key: &str, piece: &Value| {
                    let text = block[key].as_str().unwrap_or_default();
                    block[key] = json!(text.to_owned() + piece.as_str().unwrap());
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => append("text", &delta["text"]),
                    "thinking_delta" => append("thinking", &delta["thinking"]),
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    "citations_delta" => match block["citations"].as_array_mut() {
                        Some(citations) => citations.push(delta["citation"].clone()),
                        None => block["citations"] = json!([delta["citation"]]),
                    },
                    "input_json_delta" => {
                        let input = inputs.entry(index.to_string()).or_insert(json!(""));
                        let text = input.as_str().unwrap().to_owned();
                        *input = json!(text + delta["partial_json"].as_str().unwrap());
                    }
                    _ => {}
                }
            }
            "content_block_stop" => {
                if let Some(input) = inputs.get(&index.to_string())
                    && input != ""
                {
                    let input = serde_json::from_str(input.as_str().unwrap()).unwrap();
                    message["content"][index]["input"] = input;
                }
            }
            "message_delta" => {
                for (key, value) in event["delta"].as_object().unwrap() {
                    message[key] = value.clone();
                }
                if let Some(value) = event.get("context_management") {
                    message["context_management"] = value.clone();
                }
                for (key, value) in event["usage"].as_object().unwrap() {
                    let before = &mut message["usage"][key];
                    let fewer = key == "output_tokens" && value.as_u64() < before.as_u64();
                    if !(fewer || value.is_null() && !before.is_null()) {
                        *before = value.clone();
                    }
                }
            }
            _ => {}
        }
    }
    let content = message["content"].as_array_mut().unwrap();
    content.retain(|block| match block["type"].as_str().unwrap() {
        "text" => block["text"] != "",
        "thinking" => block["thinking"] != "" || block["signature"] != "",
        _ => true,
    });
    if content.is_empty() {
        content.push(json!({"type": "text", "text": "(no content)"}));
    }
    message
}

fn whole(outcome: StreamOutcome) -> Reply {
    match outcome {
        StreamOutcome::Whole(reply) => reply,
        other => panic!("{other:?}"),
    }
}

// ---- streams by hand ---------------------------------------------------------------------------

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":9,"service_tier":"standard"}}}"#;

/// Returns the content and the other results of events after [`START`].
fn run(events: &[&str]) -> (Value, StreamOutcome) {
    let mut message = Accumulator::new();
    message.event(START);
    for event in events {
        message.event(event);
    }
    let outcome = message.finish();
    check_outcome(&outcome);
    let content = match &outcome {
        StreamOutcome::Whole(reply) | StreamOutcome::Partial(reply, _) => {
            let message: Value = serde_json::from_str(reply.message()).unwrap();
            message["content"].clone()
        }
        _ => Value::Null,
    };
    (content, outcome)
}

fn block_start(block: &Value) -> String {
    json!({"type": "content_block_start", "index": 0, "content_block": block}).to_string()
}

fn delta(delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)
}

fn text_delta(body: &str) -> String {
    delta(&format!(r#"{{"type":"text_delta","text":"{body}"}}"#))
}

fn input_delta(piece: &str) -> String {
    delta(&json!({"type": "input_json_delta", "partial_json": piece}).to_string())
}

const STOP_BLOCK: &str = r#"{"type":"content_block_stop","index":0}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

#[test]
fn a_surrogate_pair_may_be_spread_over_two_deltas_and_a_lone_half_reads_as_the_replacement() {
    let start = block_start(&json!({"type": "text", "text": ""}));
    let cases = [
        ([r"a\ud83d", r"\ude42b"], "a\u{1f642}b", "a"),
        ([r"a\ud83d", "b"], "a\u{fffd}b", "a"),
        ([r"a\\ud83d", r"\ude42"], "a\\ud83d\u{fffd}", "a\\ud83d"),
    ];
    for ([first, second], expected, cut) in cases {
        let (first, second) = (text_delta(first), text_delta(second));
        let (content, _) = run(&[&start, &first, &second, STOP_BLOCK, STOP]);
        assert_eq!(content[0]["text"], expected);
        let (content, outcome) = run(&[&start, &first]);
        assert_eq!(content[0]["text"], cut);
        assert!(matches!(outcome, StreamOutcome::Partial(_, Abort::Cut)));
    }
}

#[test]
fn an_error_ends_the_stream_and_keeps_what_arrived() {
    let start = block_start(&json!({"type": "text", "text": "The"}));
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let (content, outcome) = run(&[&start, &text_delta(" moon"), error, &text_delta("!"), STOP]);
    assert_eq!(content, json!([{"type": "text", "text": "The moon"}]));
    let StreamOutcome::Partial(reply, Abort::Error(error)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(reply.blocks(), [BlockState::Cut]);
    assert_eq!(
        error,
        r#"{"type":"overloaded_error","message":"Overloaded"}"#
    );

    let (_, outcome) = run(&[r#"{"error":{"message":"no type"}}"#]);
    let error = r#"{"message":"no type"}"#.to_owned();
    assert_eq!(outcome, StreamOutcome::Nothing(Abort::Error(error)));
    let mut nothing = Accumulator::new();
    assert_eq!(nothing.event("[DONE]"), StreamStep::Nothing);
    assert_eq!(nothing.event(STOP_BLOCK), StreamStep::Nothing);
    assert_eq!(nothing.finish(), StreamOutcome::Nothing(Abort::Cut));
}

#[test]
fn a_call_that_was_cut_is_closed_and_marked() {
    let start = block_start(&json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}}));
    let first = input_delta(r#"{"path":"moon.rs","lines":[1,2"#);
    let (content, outcome) = run(&[&start, &first]);
    assert_eq!(
        content[0]["input"],
        json!({"path": "moon.rs", "lines": [1]})
    );
    let StreamOutcome::Partial(reply, _) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(reply.blocks(), [BlockState::Repaired]);

    // Its input is complete before the block is.
    let (content, outcome) = run(&[&start, &first, &input_delta("4]}")]);
    assert_eq!(
        content[0]["input"],
        json!({"path": "moon.rs", "lines": [1, 24]})
    );
    let StreamOutcome::Partial(reply, _) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(reply.blocks(), [BlockState::Whole]);

    // The model itself stopped in the middle, as at the token limit.
    let reply = whole(run(&[&start, &first, STOP_BLOCK, STOP]).1);
    assert_eq!(reply.blocks(), [BlockState::Repaired]);

    let (content, outcome) = run(&[&start]);
    assert_eq!(content[0]["input"], json!({}));
    let StreamOutcome::Partial(reply, _) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(reply.blocks(), [BlockState::Repaired]);
}

/// Two calls, whose inputs arrive in pieces that are JSON when one of them is missing.
fn two_calls(stop_reason: &str) -> Vec<String> {
    let mut events = vec![START.to_owned()];
    for (at, id) in ["t0", "t1"].into_iter().enumerate() {
        let block = json!({"type": "tool_use", "id": id, "name": "Delete", "input": {}});
        events.push(
            json!({"type": "content_block_start", "index": at, "content_block": block}).to_string(),
        );
        for piece in [r#"{"path":"/home/"#, "ada/x", r#""}"#] {
            let delta = json!({"type": "input_json_delta", "partial_json": piece});
            events.push(
                json!({"type": "content_block_delta", "index": at, "delta": delta}).to_string(),
            );
        }
        events.push(json!({"type": "content_block_stop", "index": at}).to_string());
    }
    let delta = json!({"stop_reason": stop_reason});
    events.push(json!({"type": "message_delta", "delta": delta}).to_string());
    events.push(STOP.to_owned());
    events
}

/// Returns the result of a stream of bytes that ends here.
fn received(bytes: &[u8]) -> StreamOutcome {
    let (mut sse, mut message) = (Sse::new(), Accumulator::new());
    sse.push(bytes, |_, event| _ = message.event(event));
    sse.finish(|_, event| _ = message.event(event));
    message.finish()
}

fn stream_of(events: &[String]) -> Vec<u8> {
    let events = events.iter().map(|event| format!("data: {event}\n\n"));
    events.collect::<String>().into_bytes()
}

#[test]
fn wherever_a_stream_ends_no_call_to_run_has_a_part_of_its_input() {
    let events = two_calls("tool_use");
    let bytes = stream_of(&events);
    let (mut to_run, mut to_show) = (0, 0);
    for end in 0..=bytes.len() {
        let (reply, is_whole) = match received(&bytes[..end]) {
            StreamOutcome::Whole(reply) => (reply, true),
            StreamOutcome::Partial(reply, _) => (reply, false),
            StreamOutcome::Nothing(_) => continue,
            other => panic!("{other:?}"),
        };
        assert_eq!(reply.is_whole(), is_whole);
        let calls = reply.tool_calls();
        assert_eq!(calls.len(), if is_whole { 2 } else { 0 }, "{end}");
        for call in &calls {
            assert_eq!(call.input, r#"{"path":"/home/ada/x"}"#);
        }
        assert_eq!(reply.partial_calls().is_empty(), is_whole, "{end}");
        to_run += calls.len();
        to_show += reply.partial_calls().len();
    }
    assert!(to_run > 0 && to_show > 0);
}

#[test]
fn no_call_is_run_after_an_event_that_is_not_json() {
    let whole = two_calls("tool_use");
    // Without the piece in the middle the input is JSON, and another path.
    for (at, event) in whole.iter().enumerate().take(whole.len() - 2) {
        for torn in [&event[..event.len() / 2], &event[1..]] {
            let mut events = whole.clone();
            events[at] = torn.to_owned();
            match received(&stream_of(&events)) {
                StreamOutcome::Partial(reply, Abort::Cut) => {
                    assert_eq!(reply.tool_calls(), [], "event {at}");
                    assert!(!reply.is_whole());
                }
                StreamOutcome::Nothing(Abort::Cut) => assert_eq!(at, 0),
                other => panic!("event {at}: {other:?}"),
            }
        }
    }
    // The events after the stop reason only confirm it, and other programs end streams with a mark.
    for last in [r#"{"type":"mess"#, "[DONE]"] {
        let mut events = whole.clone();
        *events.last_mut().unwrap() = last.to_owned();
        let StreamOutcome::Whole(reply) = received(&stream_of(&events)) else {
            panic!("{last}");
        };
        assert_eq!(reply.tool_calls().len(), 2);
    }
}

#[test]
fn a_call_that_the_model_only_began_at_its_limit_is_not_to_be_run() {
    let start = block_start(&json!({"type": "tool_use", "id": "t", "name": "Now", "input": {}}));
    let stopped = |reason: &str| {
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}}).to_string();
        whole(run(&[&start, STOP_BLOCK, &delta, STOP]).1)
    };
    for reason in ["max_tokens", "model_context_window_exceeded", "refusal"] {
        let reply = stopped(reason);
        assert!(reply.tool_calls().is_empty(), "{reason}");
        assert_eq!(reply.partial_calls()[0].state, BlockState::Repaired);
    }
    // A tool without arguments.
    assert_eq!(stopped("tool_use").tool_calls()[0].input, "{}");
    assert_eq!(stopped("tool_use").partial_calls(), []);

    // The call before the one that the limit cut arrived whole.
    let mut events = two_calls("max_tokens");
    let last_piece = events.len() - 4;
    events.remove(last_piece);
    let StreamOutcome::Whole(reply) = received(&stream_of(&events)) else {
        panic!("the message is whole");
    };
    let ids = |calls: Vec<transcript_messages::stream::ToolCall>| -> Vec<String> {
        calls.into_iter().map(|call| call.id).collect()
    };
    assert_eq!(ids(reply.tool_calls()), ["t0"]);
    assert_eq!(ids(reply.partial_calls()), ["t1"]);
}

#[test]
fn an_input_that_is_not_json_is_kept_as_a_string() {
    let start = block_start(&json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}}));
    let (content, outcome) = run(&[&start, &input_delta("{'path': 1}"), STOP_BLOCK, STOP]);
    assert_eq!(content[0]["input"], "{'path': 1}");
    assert_eq!(whole(outcome).blocks(), [BlockState::NotJson]);
}

#[test]
fn unknown_blocks_are_kept_and_empty_ones_are_not() {
    let start = block_start(&json!({"type": "diagram", "sides": [1, {"a": null}]}));
    let odd = [
        delta(r#"{"type":"shape_delta","sides":4}"#),
        delta(r#"{"type":"text_delta","text":7}"#),
        delta(r#""no object""#),
        STOP_BLOCK.to_owned(),
        text_delta("late"),
    ];
    let mut events = vec![&*start];
    events.extend(odd.iter().map(String::as_str));
    events.push(STOP);
    let (content, outcome) = run(&events);
    assert_eq!(
        content,
        json!([{"type": "diagram", "sides": [1, {"a": null}]}])
    );
    let aside = [&*odd[0], &odd[1], &odd[2], &odd[4]];
    assert_eq!(whole(outcome).aside(), aside);

    let empty = block_start(&json!({"type": "text", "text": ""}));
    let (content, _) = run(&[&empty, STOP_BLOCK, STOP]);
    assert_eq!(content, json!([{"type": "text", "text": "(no content)"}]));
    let (_, outcome) = run(&[&empty, STOP_BLOCK]);
    assert_eq!(outcome, StreamOutcome::Nothing(Abort::Cut));
}

#[test]
fn events_of_unknown_types_are_kept_aside_in_their_order() {
    let start = block_start(&json!({"type": "text", "text": ""}));
    let request = r#"{"toolUseRequest":{"toolUseId":"t","name":"Read","input":{}}}"#;
    let metadata = r#"{"type":"metadata","metrics":{"latencyMs":7}}"#;
    let text = text_delta("hi");
    let ping = r#"{"type":"ping"}"#;
    let events = [
        &*start, request, ping, &text, STOP_BLOCK, metadata, STOP, request,
    ];
    let (content, outcome) = run(&events);
    assert_eq!(content, json!([{"type": "text", "text": "hi"}]));
    let reply = whole(outcome);
    assert!(reply.tool_calls().is_empty(), "only blocks are calls");
    assert_eq!(reply.aside(), [request, metadata]);
}

#[test]
fn later_counts_win_but_a_reply_never_has_fewer_tokens() {
    let delta = |usage: &str| {
        format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#
        )
    };
    let first = delta(r#"{"input_tokens":5,"output_tokens":20,"service_tier":null}"#);
    let second = delta(r#"{"output_tokens":4,"new":{"x":1}}"#);
    // The stop reason arrived and no block is open; only the final event is missing.
    let reply = whole(run(&[&first, &second]).1);
    let message: Value = serde_json::from_str(reply.message()).unwrap();
    assert_eq!(message["stop_reason"], "end_turn");
    let usage = json!({"input_tokens": 5, "output_tokens": 20, "service_tier": "standard",
        "new": {"x": 1}});
    assert_eq!(message["usage"], usage);
}

#[test]
fn each_block_is_available_as_soon_as_it_is_complete() {
    let mut message = Accumulator::new();
    assert_eq!(message.event(START), StreamStep::Start);
    let block = r#"{"type":"tool_use","id":"t","name":"Read"}"#;
    let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
    assert_eq!(message.event(&start), StreamStep::BlockStart(0));
    assert_eq!(message.event(&input_delta("{\"a\":")), StreamStep::Delta(0));
    assert!(!message.input(0).unwrap().is_complete());
    assert_eq!(message.block(0).unwrap().1, BlockState::Repaired);
    assert_eq!(message.event(&input_delta("1}")), StreamStep::Delta(0));
    assert!(message.input(0).unwrap().is_complete());
    assert_eq!(message.event(STOP_BLOCK), StreamStep::BlockStop(0));
    let block = r#"{"type":"tool_use","id":"t","name":"Read","input":{"a":1}}"#;
    assert_eq!(
        message.block(0),
        Some((block.to_owned(), BlockState::Whole))
    );
    assert_eq!(message.block(1), None);
    assert_eq!(message.event(STOP), StreamStep::Stop);
    assert!(message.is_over());
}

#[test]
fn server_sent_events_are_parsed_as_the_standard_requires() {
    let cases: [(&str, &[(&str, &str)]); 9] = [
        ("data: a\n\ndata:b\n\n", &[("", "a"), ("", "b")]),
        ("event: x\r\ndata: a\r\n\r\n", &[("x", "a")]),
        ("event: x\rdata: a\r\rdata: b\r\r", &[("x", "a"), ("", "b")]),
        ("data: a\ndata:\ndata:  b\n\n", &[("", "a\n\n b")]),
        ("\u{feff}data: a\n\n", &[("", "a")]),
        ("\u{feff}: c\n\u{feff}data: a\n\n", &[]),
        (": c\nid: 1\nretry: 2\ndatum: 3\ndata\n\n", &[("", "")]),
        ("event: x\n\ndata: a\n\n", &[("", "a")]),
        (
            "data: no blank line\ndata: at the end",
            &[("", "no blank line\nat the end")],
        ),
    ];
    for (text, expected) in cases {
        for size in [1, 2, text.len()] {
            let mut events = Vec::new();
            let mut take = |name: &str, data: &str| events.push((name.to_owned(), data.to_owned()));
            let mut sse = Sse::new();
            for piece in text.as_bytes().chunks(size) {
                sse.push(piece, &mut take);
            }
            sse.finish(take);
            let events: Vec<_> = events
                .iter()
                .map(|(name, data)| (&**name, &**data))
                .collect();
            assert_eq!(events, expected, "{text:?}");
        }
    }
}

#[test]
fn any_bytes_are_framed_the_same_in_any_pieces() {
    for seed in 0..20 {
        let mut bytes = stream(seed).sse;
        let mut rng = transcript_testkit::rng::Rng::new(seed);
        for _ in 0..bytes.len() / 40 {
            let at = rng.below(bytes.len());
            bytes[at] = rng.next_u64() as u8;
        }
        let cuts: Vec<usize> = (0..50).map(|_| rng.below(bytes.len())).collect();
        check(&bytes, &cuts);
    }
}

// ---- inputs ------------------------------------------------------------------------------------

#[test]
fn an_input_is_complete_exactly_when_it_is_json() {
    let texts = [
        r#" { "a" : [ 1 , -2.5e+3 , true , false , null , "x" ] , "b" : { } , "c":[]} "#,
        r#"{"\ud83d\ude42":"\ud83d\ude42","lone":"\ud83d","other":"\ud83d\n\ud83dx"}"#,
        r#"["日本\\\"\/\b\f\n\r\t\u0000"]"#,
        "[0,00]",
        "[-]",
        "[1.]",
        "[.5]",
        "[1e]",
        "12.5e7 ",
        "12 3",
        "\"text\"",
        "tru",
        "nul1",
        "{\"a\" 1}",
        "{,}",
        "{\"a\":1,}",
        "[1,]",
        "[1}",
        "{\"a\":1]",
        "{}}",
        "\"\u{1}\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "{'a':1}",
        "",
        "\u{feff}{}",
    ];
    for text in texts {
        check_input(text);
    }
}

#[test]
fn a_closed_input_is_a_part_of_the_complete_one() {
    let text =
        r#"{"a":"x\ud83d\ude42\n","b":[1,{"c":tru"#.to_owned() + r#"e},-12.5],"d":{"e":[]}}"#;
    let full: Value = serde_json::from_str(&text).unwrap();
    let mut input = Input::new();
    let mut shortest = 0;
    for at in 0..text.len() {
        let closed = input.closed();
        let part: Value = serde_json::from_str(&closed).unwrap();
        assert!(is_part(&part, &full), "{closed} of {text}");
        assert!(closed.len() >= shortest.min(2), "{closed}");
        shortest = closed.len();
        input.push(&text[at..=at]);
    }
    assert_eq!(input.closed(), text);
    let cuts = [
        (r#"{"a":"x\ud83d"#, r#"{"a":"x"}"#),
        (r#"{"a":"x\ud83d\ude4"#, r#"{"a":"x"}"#),
        (r#"{"a":"x\u00"#, r#"{"a":"x"}"#),
        (r#"{"a":"x","b"#, r#"{"a":"x"}"#),
        (r#"{"a":"x","b":"#, r#"{"a":"x"}"#),
        (r#"{"a":[1,12"#, r#"{"a":[1]}"#),
        (r#"{"a":[{"b":nul"#, r#"{"a":[{}]}"#),
        (r#"  {"a": "#, "{}"),
        ("  ", "{}"),
        ("\"te", "\"te\""),
        ("{\"a\":1 x", "{\"a\":1}"),
    ];
    for (cut, closed) in cuts {
        let mut input = Input::new();
        input.push(cut);
        assert_eq!(input.closed(), closed, "{cut}");
    }
}

#[test]
fn an_input_may_be_as_deep_as_a_line_allows_and_no_deeper() {
    for (depth, fits) in [(123, true), (124, false)] {
        let mut input = Input::new();
        input.push(&"[".repeat(depth));
        input.push(&"]".repeat(depth));
        assert_eq!(input.is_complete(), fits);
    }
}

#[test]
fn a_large_input_in_small_pieces_is_read_once() {
    // Parsing again after every piece would process a hundred thousand times sixteen megabytes.
    let long = "größer als der Mond ".repeat(80_000);
    let text = json!({"content": long, "lines": vec![json!({"number": 1}); 200_000]}).to_string();
    let mut input = Input::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        let end = (40..rest.len()).find(|at| rest.is_char_boundary(*at));
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        assert!(!input.is_complete());
        input.push(piece);
        rest = after;
    }
    assert!(input.is_complete());
    assert_eq!(input.closed(), text);
}
