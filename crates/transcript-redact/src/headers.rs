//! Headers of HTTP: authorization and cookies.

use std::ops::Range;

use crate::form::{ALNUM, Class};
use crate::value::{looks_random, stands_for_one, variety};
use crate::view::View;

/// What precedes a token wherever it stands.
pub(crate) const SCHEMES: [&str; 4] = ["Bearer ", "Basic ", "Token token=", "SSWS "];

const TOKEN: Class = ALNUM.or(Class::of("-._~+/=!:%$|"));

/// Returns the token behind a scheme that ends at `at`.
pub(crate) fn after_scheme(view: &View, scheme: &str, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let start = at + usize::from(text.get(at) == Some(&b'"'));
    let len = text[start..]
        .iter()
        .take_while(|byte| TOKEN.has(**byte))
        .count();
    let token = text[start..start + len].trim_ascii_end();
    let token = token.strip_suffix(b".").unwrap_or(token);
    let is_token = match scheme {
        "Basic " => is_basic(token),
        _ => {
            token.len() >= 12
                && token.iter().any(u8::is_ascii_digit)
                && variety(token) >= 6
                && !stands_for_one(token)
                || looks_random(token)
        }
    };
    is_token.then(|| start..start + token.len())
}

/// Returns whether a text is a user and a password in base64.
fn is_basic(token: &[u8]) -> bool {
    let bytes = decode(token);
    token.len() >= 8
        && bytes.contains(&b':')
        && bytes
            .iter()
            .all(|byte| (b' '..=b'~').contains(byte) || *byte >= 128)
        && !bytes.is_empty()
        || looks_random(token) && token.len() >= 24
}

/// Decodes base64, up to what is none.
fn decode(text: &[u8]) -> Vec<u8> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 255) as u8);
        }
    }
    bytes
}

/// A header whose value is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Authorization,
    Cookie,
    SetCookie,
}

/// Returns the header that a name is.
pub(crate) fn header(name: &[u8]) -> Option<Header> {
    let name = name.to_ascii_lowercase();
    match &*name {
        b"authorization" | b"proxy-authorization" | b"x-authorization" => {
            Some(Header::Authorization)
        }
        b"cookie" => Some(Header::Cookie),
        b"set-cookie" => Some(Header::SetCookie),
        _ => None,
    }
}

/// Returns the secret in the value of a header whose name ends at `at`.
pub(crate) fn value(view: &View, at: usize, header: Header) -> Option<Range<usize>> {
    const SIGNS: Class = Class::of("\"':=,>] \t");
    let text = view.text();
    let between = text[at..]
        .iter()
        .take(8)
        .take_while(|byte| SIGNS.has(**byte))
        .count();
    let signs = &text[at..at + between];
    if !signs.iter().any(|byte| b":=,".contains(byte)) {
        return None;
    }
    let start = at + between;
    // The quote that the value, or the whole header, is in.
    let is_end = |byte: u8, here: usize| {
        matches!(byte, b'\n' | b'\r' | b'`') || matches!(byte, b'"' | b'\'') && here > start
    };
    let len = text[start..].iter().enumerate().take(8 << 10);
    let len = len
        .take_while(|(here, byte)| !is_end(**byte, start + here))
        .count();
    let line = &text[start..start + len];
    if line.starts_with(b"$")
        || line.starts_with(b"{")
        || line.starts_with(b"<")
        || line.starts_with(b"[")
    {
        return None;
    }
    match header {
        Header::Authorization => {
            let word = line
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-')
                .count();
            let has_scheme = (3..=20).contains(&word) && line.get(word) == Some(&b' ');
            let from = if has_scheme { word + 1 } else { 0 };
            let token = &line[from..];
            let token = &token[..token.iter().take_while(|byte| TOKEN.has(**byte)).count()];
            let is_scheme_known = has_scheme
                && [
                    "bearer", "basic", "token", "apikey", "api-key", "key", "ssws", "geniekey",
                    "bot",
                ]
                .contains(&&*String::from_utf8_lossy(&line[..word]).to_ascii_lowercase());
            let min = if is_scheme_known { 8 } else { 12 };
            let is_token = token.len() >= min
                && token.iter().any(u8::is_ascii_digit)
                && !stands_for_one(token)
                && !token.starts_with(b"$");
            is_token.then(|| start + from..start + from + token.len())
        }
        Header::Cookie | Header::SetCookie => {
            let end = match header {
                Header::SetCookie => line
                    .iter()
                    .position(|byte| *byte == b';')
                    .unwrap_or(line.len()),
                _ => line.len(),
            };
            let cookies = &line[..end];
            let mut values = cookies
                .split(|byte| *byte == b';')
                .filter_map(|pair| pair.splitn(2, |byte| *byte == b'=').nth(1));
            let is_secret = |value: &[u8]| {
                let value = value.trim_ascii();
                let has_digit = value.iter().any(u8::is_ascii_digit);
                value.len() >= 8
                    && has_digit
                    && !stands_for_one(value)
                    && !value.starts_with(b"$")
                    && !value.starts_with(b"{")
            };
            let values_of = values.by_ref();
            values_of
                .any(is_secret)
                .then(|| start..start + cookies.trim_ascii_end().len())
        }
    }
}
