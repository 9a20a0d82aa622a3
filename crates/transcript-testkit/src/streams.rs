//! Generates streamed replies as the Messages API sends them, from a seed.
//!
//! The events follow the public documentation of the API: one message, its blocks one after the
//! other, pings between them. Some replies also have what servers and proxies add: comments, ids,
//! other line ends, events and blocks of later versions.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

/// A streamed reply.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The events in order.
    pub events: Vec<Value>,
    /// The same events as the bytes of a `text/event-stream`.
    pub sse: Vec<u8>,
}

/// Returns a complete reply of 1 to 3 blocks. Equal seeds give equal bytes.
#[must_use]
pub fn stream(seed: u64) -> Stream {
    let mut rng = Rng::new(seed);
    let mut events = vec![start(&mut rng)];
    let blocks = rng.range(1, 3);
    for index in 0..blocks {
        block(&mut rng, index, &mut events);
        if rng.one_in(3) {
            events.push(json!({"type": "ping"}));
        }
    }
    let reason = *rng.pick(&["end_turn", "tool_use", "max_tokens"]);
    let mut delta = json!({
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": rng.range(1, 900)},
    });
    if rng.one_in(2) {
        delta["usage"]["input_tokens"] = json!(rng.range(1, 900));
        delta["usage"]["cache_read_input_tokens"] = json!(null);
        delta["usage"]["server_tool_use"] = json!({"web_search_requests": rng.below(3)});
    }
    if rng.one_in(3) {
        delta["context_management"] = json!({"applied_edits": []});
        delta["delta"]["container"] = json!({"id": "container_1"});
    }
    events.push(delta);
    events.push(json!({"type": "message_stop"}));
    let sse = sse(&mut rng, &events);
    Stream { events, sse }
}

fn start(rng: &mut Rng) -> Value {
    json!({"type": "message_start", "message": {
        "model": "claude-sonnet-4-5-20250929",
        "id": format!("msg_{}", rng.below(1000)),
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": rng.range(1, 9000),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": rng.below(9000),
            "output_tokens": rng.range(1, 8),
            "service_tier": "standard",
        },
    }})
}

fn block(rng: &mut Rng, index: usize, events: &mut Vec<Value>) {
    let (start, deltas) = match rng.below(10) {
        0..3 => text(rng),
        3..5 => thinking(rng),
        5..8 => tool_use(rng),
        8 => {
            let data = words(rng, 3);
            (json!({"type": "redacted_thinking", "data": data}), vec![])
        }
        _ => later(rng),
    };
    events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
    for delta in deltas {
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        if rng.one_in(12) {
            events.push(json!({"type": "ping"}));
        }
        if rng.one_in(30) {
            events.push(json!({"type": "content_block_hint", "index": index, "text": "later"}));
        }
    }
    events.push(json!({"type": "content_block_stop", "index": index}));
}

fn text(rng: &mut Rng) -> (Value, Vec<Value>) {
    let long = rng.range(0, 9);
    let text = words(rng, long);
    let mut deltas = Vec::new();
    for piece in pieces(rng, &text) {
        deltas.push(json!({"type": "text_delta", "text": piece}));
        if rng.one_in(8) {
            let cited = words(rng, 2);
            deltas.push(json!({"type": "citations_delta", "citation": {
                "type": "char_location", "cited_text": cited, "document_index": 0,
                "start_char_index": 0, "end_char_index": 7,
            }}));
        }
    }
    (json!({"type": "text", "text": ""}), deltas)
}

fn thinking(rng: &mut Rng) -> (Value, Vec<Value>) {
    let long = rng.range(0, 8);
    let text = words(rng, long);
    let thought = |piece| json!({"type": "thinking_delta", "thinking": piece});
    let mut deltas: Vec<Value> = pieces(rng, &text).into_iter().map(thought).collect();
    let signature = format!("EqQB{}+/=", rng.next_u64());
    deltas.push(json!({"type": "signature_delta", "signature": signature}));
    let start = json!({"type": "thinking", "thinking": "", "signature": ""});
    (start, deltas)
}

fn tool_use(rng: &mut Rng) -> (Value, Vec<Value>) {
    let kind = *rng.pick(&["tool_use", "tool_use", "server_tool_use"]);
    let id = format!("toolu_{}", rng.below(100_000));
    let start = json!({"type": kind, "id": id, "name": "Read", "input": {}});
    let input = match rng.below(8) {
        // A call without arguments has no delta, or an empty one.
        0 => String::new(),
        _ => {
            let input = object(rng, 3);
            match rng.below(3) {
                0 => serde_json::to_string_pretty(&input).unwrap_or_default(),
                1 => ascii(&input.to_string()),
                _ => input.to_string(),
            }
        }
    };
    let mut pieces = pieces(rng, &input);
    if rng.one_in(2) {
        pieces.insert(0, String::new());
    }
    let piece = |piece| json!({"type": "input_json_delta", "partial_json": piece});
    (start, pieces.into_iter().map(piece).collect())
}

/// Writes a block with deltas of an unknown type, as a later version of the API may send.
fn later(rng: &mut Rng) -> (Value, Vec<Value>) {
    let start = json!({"type": "diagram", "shape": {"sides": rng.below(9)}, "text": "A "});
    let deltas = vec![
        json!({"type": "shape_delta", "sides": rng.below(9)}),
        json!({"type": "text_delta", "text": words(rng, 1)}),
    ];
    (start, deltas)
}

fn object(rng: &mut Rng, depth: usize) -> Value {
    let count = rng.below(4);
    let mut members = Map::new();
    for _ in 0..count {
        let key = words(rng, 1);
        members.insert(key, value(rng, depth));
    }
    Value::Object(members)
}

fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(rng.one_in(2)),
        2 => json!(rng.below(100_000)),
        3 => json!(-(rng.below(1000) as f64) / 64.0),
        4 => json!(1.5e300 * rng.below(9) as f64),
        5 | 6 => {
            let long = rng.below(5);
            json!(words(rng, long))
        }
        7 => {
            let count = rng.below(4);
            (0..count).map(|_| value(rng, depth - 1)).collect()
        }
        _ => object(rng, depth - 1),
    }
}

const WORDS: [&str; 24] = [
    "moon",
    "The sun sets",
    "at 18:04",
    "days\n",
    "\"quoted\"",
    "back\\slash",
    "C:\\u00e9\\n",
    "tab\t",
    "größer",
    "日本の暦",
    "🌒",
    "👩‍🚀",
    "e\u{301}",
    "\u{2028}",
    "\u{feff}",
    "\u{0}",
    "\u{1f}",
    "{\"a\":",
    "[1, 2]",
    "data: x",
    "\r\n\r\n",
    "event: ping\n\n",
    "null",
    "\u{fffd}",
];

fn words(rng: &mut Rng, count: usize) -> String {
    let words: Vec<&str> = (0..count).map(|_| *rng.pick(&WORDS)).collect();
    words.join(" ")
}

/// Splits a text between any two characters.
fn pieces(rng: &mut Rng, text: &str) -> Vec<String> {
    let mut rest: Vec<char> = text.chars().collect();
    // Only a few pieces, so that tests can try a cut at every byte.
    let longest = *rng.pick(&[1, 4, 12, 60]).max(&(rest.len() / 4));
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let long = rng.range(1, longest).min(rest.len());
        pieces.push(rest.drain(..long).collect());
    }
    pieces
}

/// Writes every character outside ASCII as an escape, as Python does.
fn ascii(json: &str) -> String {
    let mut text = String::new();
    for unit in json.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\u{unit:04x}")),
        }
    }
    text
}

fn sse(rng: &mut Rng, events: &[Value]) -> Vec<u8> {
    let end = *rng.pick(&["\n", "\n", "\n", "\r\n", "\r"]);
    let (named, spaced) = (!rng.one_in(4), !rng.one_in(4));
    let (escaped, pretty) = (rng.one_in(3), rng.one_in(6));
    let mut text = String::new();
    if rng.one_in(10) {
        text.push('\u{feff}');
    }
    for event in events {
        if rng.one_in(20) {
            text.push_str(&format!(": comment{end}"));
        }
        if rng.one_in(30) {
            text.push_str(&format!("id: 7{end}retry: 10{end}unknown{end}"));
        }
        let colon = if spaced { ": " } else { ":" };
        if named {
            let name = event["type"].as_str().unwrap_or_default();
            text.push_str(&format!("event{colon}{name}{end}"));
        }
        let json = if pretty {
            serde_json::to_string_pretty(event).unwrap_or_default()
        } else {
            event.to_string()
        };
        let json = if escaped { ascii(&json) } else { json };
        for line in json.split('\n') {
            text.push_str(&format!("data{colon}{line}{end}"));
        }
        text.push_str(end);
    }
    text.into_bytes()
}
