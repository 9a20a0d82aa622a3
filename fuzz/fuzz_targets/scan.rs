//! A line scans, with SIMD and without, exactly when `serde_json` reads it, with the same values.
//!
//! The first byte moves the line over the edges of blocks (64 bytes) and windows (16 KiB). The
//! second says whether the bytes above 0x7F of the rest stand for pieces of JSON; if not, the rest
//! is the line.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/transcript-format/tests/it/scan/reference.rs"]
mod reference;

/// Pieces that a mutation of single bytes finds late or never.
const PIECES: [&str; 64] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "false",
    "0",
    "-1.5e3",
    "1e999",
    "\"\"",
    "\"a\":",
    "\"uuid\":",
    "\"parentUuid\":",
    "\"type\":",
    "\"timestamp\":",
    "\"sessionId\":",
    "\"agentId\":",
    "\"teamName\":",
    "\"isSidechain\":",
    "\"isMeta\":",
    "\"isVirtual\":",
    "\"isCompactSummary\":",
    "\"isApiErrorMessage\":",
    "\"isVisibleInTranscriptOnly\":",
    "\"explicit\":",
    "\"leafUuid\":",
    "\"logicalParentUuid\":",
    "\"sourceToolAssistantUUID\":",
    "\"subtype\":",
    "\"message\":{",
    "\"content\":",
    "\"content\":[{",
    "\"id\":",
    "\"tool_use_id\":",
    "\"attachment\":{",
    "\"data\":{",
    "\"toolUseResult\":{",
    "\"user\"",
    "\"assistant\"",
    "\"system\"",
    "\"attachment\"",
    "\"progress\"",
    "\"text\"",
    "\"thinking\"",
    "\"tool_use\"",
    "\"tool_result\"",
    "\"server_tool_use\"",
    "\"web_search_tool_result\"",
    "\\u0061",
    "\\u0000",
    "\\ud83d",
    "\\ude80",
    "\\\\",
    "\\\"",
    "é",
    "\u{2028}",
    "\u{1f680}",
    "}]}",
    "{\"a\":{\"b\":[[{",
];

fuzz_target!(|input: &[u8]| {
    let [shift, mode, rest @ ..] = input else {
        return;
    };
    let mut line = Vec::new();
    if mode % 4 == 0 {
        line.extend_from_slice(rest);
    } else {
        for byte in rest {
            match byte.checked_sub(0x80) {
                Some(piece) => line.extend_from_slice(PIECES[usize::from(piece) % 64].as_bytes()),
                None => line.push(*byte),
            }
        }
    }
    reference::check(&line);

    // The same members further on: behind 0 to 191 bytes, or shortly before the first window ends.
    let pad = match usize::from(*shift) {
        shift @ 0..192 => shift,
        shift => (16 << 10) - 4 * (shift - 192),
    };
    if let Some(members) = line.strip_prefix(b"{") {
        let mut shifted = format!("{{\"\":\"{}\",", "x".repeat(pad)).into_bytes();
        shifted.extend_from_slice(members);
        reference::check(&shifted);
    }
});
