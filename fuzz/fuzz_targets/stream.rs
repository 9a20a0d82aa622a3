//! A stream gives the same message in any pieces, fit to be written, and an input is complete exactly
//! when it is JSON.
//!
//! The first byte says whether the rest is the input of a call, bytes of a stream, or the bodies of
//! deltas; the second is a place of a cut. Bytes above 0x7F stand for pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/transcript-messages/tests/it/stream/invariants.rs"]
mod invariants;

/// Pieces that a mutation of single bytes finds late or never.
const PIECES: [&str; 32] = [
    "data: ",
    "event: x\n",
    "\n\n",
    "\r\n",
    "\r",
    "\u{feff}",
    ": comment\n",
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"output_tokens\":1}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"",
    "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"citations_delta\",\"citation\":{}}}\n\n",
    "\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
    "data: {\"type\":\"error\",\"error\":{}}\n\n",
    "data: {\"bytes\":\"eyJ0eXBlIjoibWVzc2FnZV9zdG9wIn0=\"}\n\n",
    "{\\\"a\\\":",
    "\\\"",
    "\\\\",
    "\\ud83d",
    "\\ude42",
    "\\\\ud83d",
    "{\"a\":",
    "[{\"a\":[",
    "\u{1f642}",
    "\u{2028}",
];

fuzz_target!(|input: &[u8]| {
    let [mode, cut, rest @ ..] = input else {
        return;
    };
    let mut bytes = Vec::new();
    for byte in rest {
        match byte.checked_sub(0x80) {
            Some(piece) if mode % 8 != 0 => {
                bytes.extend_from_slice(PIECES[usize::from(piece) % 32].as_bytes());
            }
            _ => bytes.push(*byte),
        }
    }
    // The comparison takes time in proportion to the square.
    if mode % 3 == 0 && bytes.len() < 2000 {
        invariants::check_input(&String::from_utf8_lossy(&bytes));
        return;
    }
    let cut = bytes.len() * usize::from(*cut) / 255;
    invariants::check(&bytes, &[cut, cut / 2]);
});
