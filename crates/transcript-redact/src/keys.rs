//! Private keys: blocks of base64 behind a header, whatever stands before each of their lines.

use std::ops::Range;

use memchr::memmem;

use crate::class::BASE64;
use crate::view::View;
use crate::wrap::{after_prefix, line_start};

/// The kind of private keys, for people.
pub(crate) const PRIVATE_KEY_KIND: &str = "private key";
/// The start of the header of a key, in PEM and OpenPGP.
pub(crate) const PEM_HEADER: &str = "-----BEGIN ";
pub(crate) const PEM_FOOTER: &str = "-----END ";
pub(crate) const SSH2_HEADER: &str = "---- BEGIN SSH2 ENCRYPTED";
pub(crate) const PUTTY_HEADER: &str = "Private-Lines: ";
/// The first characters of the body of a key without a header: the numbers of a PKCS #8, PKCS #1 or SEC 1 structure, or
/// the name of an OpenSSH key.
pub(crate) const BODY_STARTS: [&str; 12] = [
    "b3BlbnNzaC1rZXktdjE",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAAS",
    "MIIEvgIBADANBgkqhkiG9w0BAQEFAAS",
    "MIIJQgIBADANBgkqhkiG9w0BAQEFAAS",
    "MIIJQwIBADANBgkqhkiG9w0BAQEFAAS",
    "MIIEpAIBAAKCAQEA",
    "MIIEpQIBAAKCAQEA",
    "MIIEowIBAAKCAQEA",
    "MIIJKQIBAAKCAgEA",
    "MIIJKAIBAAKCAgEA",
    "MIIJJwIBAAKCAgEA",
    "MIIG5AIBAAKCAYEA",
];

/// Names of secrets of an `.env` file, by which a text in base64 is known.
pub(crate) const ENCODED_NAMES: [&str; 6] = [
    "PASSWORD=",
    "SECRET=",
    "SECRET_KEY=",
    "API_KEY=",
    "_TOKEN=",
    "ACCESS_KEY=",
];

/// Returns how a text stands in base64, wherever it starts in what is encoded: without the first and last characters, in
/// which other bytes have a part.
pub(crate) fn encodings(text: &str) -> [String; 3] {
    [0, 1, 2].map(|before| {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text.as_bytes());
        let whole = encode(&bytes);
        let first = (before * 8).div_ceil(6);
        let last = bytes.len() * 8 / 6;
        whole[first..last].to_owned()
    })
}

/// Encodes bytes in base64, without padding.
fn encode(bytes: &[u8]) -> String {
    const BASE64_LETTERS: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count) = (0_u32, 0);
    let mut text = String::new();
    for byte in bytes {
        (bits, count) = (bits << 8 | u32::from(*byte), count + 8);
        while count >= 6 {
            count -= 6;
            text.push(char::from(BASE64_LETTERS[(bits >> count & 63) as usize]));
        }
    }
    if count > 0 {
        text.push(char::from(
            BASE64_LETTERS[(bits << (6 - count) & 63) as usize],
        ));
    }
    text
}

/// Returns the base64 around a part of it.
pub(crate) fn encoded(view: &View, at: usize) -> Option<Range<usize>> {
    const MAX_ENCODED_LEN: usize = 64 << 10;
    const MIN_ENCODED_LEN: usize = 16;
    let text = view.text();
    let is_part = |byte: &&u8| BASE64.has(**byte);
    let before = text[..at]
        .iter()
        .rev()
        .take(MAX_ENCODED_LEN)
        .take_while(is_part)
        .count();
    let after = text[at..]
        .iter()
        .take(MAX_ENCODED_LEN)
        .take_while(is_part)
        .count();
    (before + after >= MIN_ENCODED_LEN).then_some(at - before..at + after)
}

/// The maximum distance of two lines of a key, in bytes: the end of one string and the start of the next, numbers,
/// names of files.
const MAX_GAP_LEN: usize = 160;
/// The minimum length of a text that looks like a line of a key.
const MIN_LINE_LEN: usize = 16;

/// Returns the private key whose header starts at `at`; `None` for a mention of one, or another block.
pub(crate) fn block(view: &View, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let header = header_len(&text[at..])?;
    let end = body_end(view, at + header, true)?;
    Some(at..end)
}

/// Returns the key whose body starts at `at`.
pub(crate) fn body(view: &View, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let is_inside = at
        .checked_sub(1)
        .is_some_and(|before| BASE64.has(text[before]));
    if is_inside {
        return None;
    }
    let end = body_end(view, at, false)?;
    (end - at >= 64).then_some(at..end)
}

/// Returns the key whose header is missing and whose footer starts at `at`: the lines before it that look like those of a key.
pub(crate) fn tail(view: &View, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let footer = header_len(&text[at..])?;
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'"');
    let mut start = None;
    let mut is_key = false;
    // The footer has a prefix as the lines have.
    let mut end = text[..at].iter().rposition(is_end)?;
    loop {
        let line = text[..end]
            .iter()
            .rposition(is_end)
            .map_or(0, |feed| feed + 1);
        let from = after_prefix(text, line).min(end);
        let run = text[from..end].iter().take_while(|byte| BASE64.has(**byte));
        let run = &text[from..from + run.count()];
        // The last line may be short.
        let is_full = looks_like_key(run, MIN_LINE_LEN);
        let is_line = is_full || start.is_none() && run.len() >= 4 && from + run.len() == end;
        is_key |= is_full;
        match is_line {
            true => start = Some(from),
            // Between two strings of a list.
            false if run.is_empty() && end - line < 8 => {}
            false => break,
        }
        let Some(before) = line.checked_sub(1) else {
            break;
        };
        end = before;
    }
    start.filter(|_| is_key).map(|start| start..at + footer)
}

/// Returns the length of the header or footer of a private key at the start of `text`.
fn header_len(text: &[u8]) -> Option<usize> {
    const MAX_HEADER_LEN: usize = 80;
    let text = &text[..text.len().min(MAX_HEADER_LEN)];
    if text.starts_with(PUTTY_HEADER.as_bytes()) {
        let digits = &text[PUTTY_HEADER.len()..];
        let count = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        return (count > 0).then_some(PUTTY_HEADER.len() + count);
    }
    let dashes = text.iter().take_while(|byte| **byte == b'-').count();
    let name = &text[dashes..];
    let len = memmem::find(name, b"----")?;
    let (name, rest) = name.split_at(len);
    let is_name = name
        .iter()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b" -#".contains(byte));
    let is_private = memmem::find(name, b"PRIVATE KEY").is_some();
    let is_static = name.starts_with(b"OpenVPN Static key");
    let closing = rest.iter().take_while(|byte| **byte == b'-').count();
    (is_name && is_private || is_static).then_some(dashes + len + closing)
}

/// Returns where the body of a key ends that starts at `at`: behind its footer, or behind the last line that looks
/// like one of a key.
fn body_end(view: &View, at: usize, has_header: bool) -> Option<usize> {
    let text = view.text();
    let mut end = at;
    let mut is_key = false;
    let mut is_full = false;
    // The start of the gap since the last line: the fields before a body may be longer than the body.
    let mut gap = at;
    let mut fields = 0;
    while gap < text.len() {
        let next = text[gap..].iter().position(|byte| BASE64.has(*byte));
        let Some(start) = next.map(|next| gap + next) else {
            break;
        };
        if start - end > MAX_GAP_LEN || !is_same_text(view, gap..start) {
            break;
        }
        let len = text[start..]
            .iter()
            .take_while(|byte| BASE64.has(**byte))
            .count();
        let run = &text[start..start + len];
        // The signs before a footer are of the alphabet for addresses.
        if let Some(dashes) = memmem::find(run, b"----") {
            let at = start + dashes;
            let is_footer = text[at..].starts_with(PEM_FOOTER.as_bytes());
            let footer = header_len(&text[at..]).filter(|_| is_footer);
            if dashes > 0 {
                is_key |= dashes >= MIN_LINE_LEN && looks_like_key(&run[..dashes], MIN_LINE_LEN);
                end = at;
            }
            return match footer {
                Some(footer) => (is_key || dashes >= 4).then_some(at + footer),
                None => is_key.then_some(end),
            };
        }
        let is_first_field = has_header && !is_key && fields < 6;
        // Text about a key, and code after its header, are not lines of it.
        let is_own = is_line_of_key(view, start..start + len, end);
        if looks_like_key(run, MIN_LINE_LEN) && is_own {
            (end, is_key, is_full) = (start + len, true, len >= 40);
        } else if is_first_field && is_field(text, start + len) {
            // `Proc-Type: …` and such: all of that line belongs to the header.
            let line =
                memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |feed| start + feed);
            let line = line.min(start + MAX_GAP_LEN);
            (end, gap, fields) = (line, line, fields + 1);
            continue;
        } else if is_full && is_last(view, start, len) {
            // The last line of a key is short, and its footer may be missing.
            end = start + len;
            is_full = false;
        }
        gap = start + len;
    }
    is_key.then_some(end)
}

/// Returns whether a run is a line of a key by its place: all of its line, or right behind what precedes it.
fn is_line_of_key(view: &View, run: Range<usize>, end: usize) -> bool {
    const MIN_FULL_LINE_LEN: usize = 40;
    let text = view.text();
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let follows = text[end.min(run.start)..run.start].iter().all(is_blank) && run.start - end <= 2;
    let is_line = run.start == after_prefix(text, line_start(view, run.start));
    let after = text.get(run.end);
    let is_ended = after.is_none_or(|byte| b"\n\r\"'\\`<,;|+ =".contains(byte));
    run.len() >= MIN_FULL_LINE_LEN || is_ended && (is_line || follows && run.len() >= 24)
}

/// Returns whether what is between two places of a line is in one string, or between two strings of one list.
pub(crate) fn is_same_text(view: &View, between: Range<usize>) -> bool {
    const MAX_ELEMENT_LEN: usize = 4 << 10;
    let text = view.text();
    let quotes = memchr::memchr_iter(b'"', &text[between.clone()]);
    let mut quotes = quotes
        .map(|at| between.start + at)
        .filter(|at| view.is_outer_quote(*at));
    while let Some(close) = quotes.next() {
        let Some(open) = quotes.next() else {
            return false;
        };
        let is_comma = |byte: &u8| matches!(byte, b',' | b' ');
        if !text[close + 1..open].iter().all(is_comma) || open == close + 1 {
            return false;
        }
        // A key of an object is not an element.
        let rest = open + 1..text.len().min(open + MAX_ELEMENT_LEN);
        let mut ends = memchr::memchr_iter(b'"', &text[rest.clone()]).map(|at| rest.start + at);
        let end = ends.find(|at| view.is_outer_quote(*at));
        let after = end.map(|end| text[end + 1..].trim_ascii_start());
        if after.is_some_and(|after| after.starts_with(b":")) {
            return false;
        }
    }
    true
}

/// Returns whether a colon and a space follow, as behind the name of a field.
fn is_field(text: &[u8], at: usize) -> bool {
    matches!(text.get(at..at + 2), Some(b": "))
}

/// Returns whether a run is all of its line but for a prefix.
fn is_last(view: &View, at: usize, len: usize) -> bool {
    let text = view.text();
    let end = text.get(at + len);
    let before = &text[..at];
    let mark = before
        .strip_suffix(b"+")
        .or(before.strip_suffix(b"-"))
        .or(before.strip_suffix(b" "));
    let starts_string = mark.unwrap_or(before).ends_with(b"\"");
    let starts = starts_string || after_prefix(text, line_start(view, at)) == at;
    starts && end.is_none_or(|byte| b"\n\r\"'\\<`".contains(byte))
}

/// Returns whether a text could be a line of base64: long, and with no words in it.
pub(crate) fn looks_like_key(run: &[u8], min: usize) -> bool {
    if run.len() < min {
        return false;
    }
    let count = |of: fn(&u8) -> bool| run.iter().filter(|byte| of(byte)).count();
    let digits = count(u8::is_ascii_digit);
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let signs = run.len() - digits - upper - lower;
    // A line of a static key of OpenVPN.
    if run.len() == 32 && run.iter().all(u8::is_ascii_hexdigit) && digits > 0 {
        return true;
    }
    let is_mixed = upper > 0 && lower > 0 && (digits > 0 || run.len() < 24 && signs == 0);
    is_mixed && signs * 4 <= run.len()
}

/// Returns where a key ends that continues at the start of a text, and whether that is surely its end.
pub(crate) fn rest(view: &View) -> (usize, bool) {
    let text = view.text();
    let end = body_end(view, 0, false).unwrap_or(0);
    // Behind a footer, or something that is not a key for long, nothing continues.
    (
        end,
        text.len() - end > MAX_GAP_LEN || text[..end].ends_with(b"----"),
    )
}
