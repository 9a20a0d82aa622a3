//! Headers of HTTP: authorization and cookies.

use std::ops::Range;

use crate::class::{ALNUM, Class};
use crate::random::{is_camel, is_name_like, looks_random, variety};
use crate::value::stands_for_one;
use crate::view::View;

/// Authentication schemes, which precede a token in any text.
pub(crate) const AUTH_SCHEMES: [&str; 4] = ["Bearer ", "Basic ", "Token token=", "SSWS "];

/// The minimum length of a token of letters only.
const MIN_LETTER_TOKEN_LEN: usize = 24;
const TOKEN_CHARS: Class = ALNUM.or(Class::of("-._~+/=!:%$|"));

/// Returns the token behind a scheme that ends at `at`.
pub(crate) fn after_scheme(view: &View, scheme: &str, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let start = at + usize::from(text.get(at) == Some(&b'"'));
    let len = text[start..]
        .iter()
        .take_while(|byte| TOKEN_CHARS.has(**byte))
        .count();
    let token = text[start..start + len].trim_ascii_end();
    let token = token.strip_suffix(b".").unwrap_or(token);
    let is_address = memchr::memmem::find(token, b"://").is_some();
    let is_token = match scheme {
        _ if is_address => false,
        "Basic " => is_basic(token),
        _ => {
            token.len() >= 12
                && token.iter().any(u8::is_ascii_digit)
                && variety(token) >= 6
                && !stands_for_one(token)
                || looks_random(token)
                // No word is as long.
                || scheme == "Bearer "
                    && token.len() >= MIN_LETTER_TOKEN_LEN
                    && token.iter().all(u8::is_ascii_alphabetic)
                    && !is_camel(token)
                    && !stands_for_one(token)
        }
    };
    is_token.then(|| start..start + token.len())
}

/// Returns whether a text is a user and a password in base64.
fn is_basic(token: &[u8]) -> bool {
    let bytes = decode(token);
    token.len() >= 8
        && token.len().is_multiple_of(4)
        && bytes.contains(&b':')
        && bytes
            .iter()
            .all(|byte| (b' '..=b'~').contains(byte) || *byte >= 128)
        && !bytes.is_empty()
        || looks_random(token) && token.len() >= 24
}

/// Decodes base64, up to the first other character.
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

/// Returns the secret in the value of a header whose name ends at `at`, and where the value ends.
pub(crate) fn value(view: &View, at: usize, header: Header) -> (Option<Range<usize>>, usize) {
    const SIGN_CHARS: Class = Class::of("\"':=,>] \t");
    const MAX_VALUE_LEN: usize = 8 << 10;
    let text = view.text();
    let between = text[at..].iter().take(8);
    let between = between.take_while(|byte| SIGN_CHARS.has(**byte)).count();
    let signs = &text[at..at + between];
    // Behind a comma, it is a text of its own.
    let is_argument =
        signs.contains(&b',') && !signs.last().is_some_and(|last| b"\"'".contains(last));
    if !signs.iter().any(|byte| b":=,".contains(byte)) || is_argument {
        return (None, at);
    }
    let start = at + between;
    // The quote that the value, or the whole header, is in.
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'`' | b'"' | b'\'');
    let rest = &text[start..text.len().min(start + MAX_VALUE_LEN)];
    let line = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
    let is_template = line.first().is_some_and(|first| b"${<[".contains(first));
    let secret = match header {
        _ if is_template => None,
        Header::Authorization => authorization(line),
        Header::SetCookie => cookies(&line[..memchr::memchr(b';', line).unwrap_or(line.len())]),
        Header::Cookie => cookies(line),
    };
    let secret = secret.map(|secret| start + secret.start..start + secret.end);
    (secret, start + line.len())
}

/// Returns the token of an authorization, with its scheme or without one.
fn authorization(line: &[u8]) -> Option<Range<usize>> {
    const AUTH_SCHEMES: [&str; 9] = [
        "bearer", "basic", "token", "apikey", "api-key", "key", "ssws", "geniekey", "bot",
    ];
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    let word = line.iter().take_while(is_word).count();
    let has_scheme = (3..=20).contains(&word) && line.get(word) == Some(&b' ');
    let from = if has_scheme { word + 1 } else { 0 };
    let rest = line[from..].iter();
    let token = &line[from..from + rest.take_while(|byte| TOKEN_CHARS.has(**byte)).count()];
    let scheme = String::from_utf8_lossy(&line[..word]).to_ascii_lowercase();
    let min = if has_scheme && AUTH_SCHEMES.contains(&scheme.as_str()) {
        8
    } else {
        12
    };
    let is_call = line.get(from + token.len()) == Some(&b'(');
    let is_token = token.len() >= min
        && !is_call
        && token.iter().any(u8::is_ascii_digit)
        && !stands_for_one(token)
        && !token.starts_with(b"$");
    is_token.then(|| from..from + token.len())
}

/// Returns cookies, if one of them looks like a secret.
fn cookies(line: &[u8]) -> Option<Range<usize>> {
    let pairs = line.split(|byte| *byte == b';');
    let mut values = pairs.filter_map(|pair| pair.splitn(2, |byte| *byte == b'=').nth(1));
    let is_secret = |value: &[u8]| {
        let value = value.trim_ascii();
        let is_template = value.first().is_some_and(|first| b"${<".contains(first));
        value.len() >= 8
            && value.iter().any(u8::is_ascii_digit)
            && !is_name_like(value)
            && !stands_for_one(value)
            && !is_template
    };
    values
        .any(is_secret)
        .then(|| 0..line.trim_ascii_end().len())
}
