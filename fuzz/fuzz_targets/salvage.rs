//! Salvaged entries are in the bytes, and an entry glued to anything torn is found.
//!
//! The first byte says whether the bytes above 0x7F of the rest stand for pieces of entries; if not,
//! the rest is the line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use transcript_format::salvage::objects;

#[path = "../../crates/transcript-format/tests/it/salvage/invariants.rs"]
mod invariants;

/// Pieces that a mutation of single bytes finds late or never.
const PIECES: [&[u8]; 32] = [
    b"{\"type\":\"user\",",
    b"\"type\":\"user\"",
    b"\"type\":\"progress\"",
    b"\"type\":\"other\"",
    b"\"uuid\":\"u1\"",
    b"\"sessionId\":\"s1\"",
    b"\"data\":{\"message\":",
    b"\"message\":{\"content\":\"",
    b"\"content\":[",
    b"{\"type\":\"user\",\"uuid\":\"u2\"}",
    b"{\"type\":\"user\",\"uuid\":\"u3\",\"sessionId\":\"s1\"}",
    b"{\"a\":",
    b"{\"a\":\"",
    b"\"b\":1",
    b"{ \"",
    b"\\\"",
    b"\\u00",
    b"\\ud83d",
    b"\\",
    b"\0\0\0",
    b"\xEF\xBB\xBF",
    b"\xE2\x80",
    b"\xFF",
    b"\x01",
    b"\n",
    b"\r\n",
    b" \t",
    b"null",
    b"-1.5e3",
    b"}]}",
    b"\"}",
    b"[[[[[[[[{\"a\":",
];

fuzz_target!(|input: &[u8]| {
    let [mode, rest @ ..] = input else {
        return;
    };
    let mut bytes = Vec::new();
    if mode % 4 == 0 {
        bytes.extend_from_slice(rest);
    } else {
        for byte in rest {
            match byte.checked_sub(0x80) {
                Some(piece) => bytes.extend_from_slice(PIECES[usize::from(piece) % 32]),
                None => bytes.push(*byte),
            }
        }
    }
    invariants::check(&bytes);

    // Each of these stands for an entry whose end is lost, not in front of a value.
    if mode % 3 == 0 {
        for torn in [&b"{\"a\":\""[..], b"{\"a\":{},", b"{\"a\":1", b"\0\0"] {
            let whole = b"{\"type\":\"user\",\"uuid\":\"u9\",\"sessionId\":\"s9\"}";
            let glued = [torn, whole, b"\n", &bytes].concat();
            let first = torn.len()..torn.len() + whole.len();
            assert_eq!(objects(&glued).first(), Some(&first));
        }
    }
});
