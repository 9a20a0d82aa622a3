//! Strings that look like secrets: which kind and where, never what.
//!
//! The rules are data. A rule has the texts that such a secret starts with, by which the whole file
//! is searched at the speed of memory, and a description of what follows.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// The most that is read of one secret, in bytes.
pub const LONGEST: usize = 1 << 10;

/// One kind of secret.
pub(crate) struct Rule {
    /// What it is, in words.
    pub(crate) name: &'static str,
    pub(crate) starts: &'static [&'static str],
    pub(crate) rest: Rest,
}

/// What follows the start of a secret.
pub(crate) enum Rest {
    /// A number in this range of letters, digits and other characters of this list, and then none of them.
    Token(usize, usize, &'static str),
    /// The same, with capital letters and digits alone, and none of them before the start.
    Capitals(usize),
    /// The header of a private key.
    KeyHeader,
    /// Three parts with points between them.
    WebToken,
    /// `user:password@`.
    Credentials,
}

const RULES: &[Rule] = &[
    Rule {
        name: "an Anthropic API key",
        starts: &["sk-ant-"],
        rest: Rest::Token(20, 200, "_-"),
    },
    Rule {
        name: "an OpenAI API key",
        starts: &["sk-proj-", "sk-svcacct-"],
        rest: Rest::Token(40, 250, "_-"),
    },
    Rule {
        name: "an AWS access key id",
        starts: &["AKIA", "ASIA"],
        rest: Rest::Capitals(16),
    },
    Rule {
        name: "a GitHub token",
        starts: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        rest: Rest::Token(36, 255, ""),
    },
    Rule {
        name: "a GitHub token",
        starts: &["github_pat_"],
        rest: Rest::Token(40, 255, "_"),
    },
    Rule {
        name: "a GitLab token",
        starts: &["glpat-"],
        rest: Rest::Token(20, 64, "_-"),
    },
    Rule {
        name: "a Slack token",
        starts: &["xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-"],
        rest: Rest::Token(20, 200, "-"),
    },
    Rule {
        name: "a Google API key",
        starts: &["AIza"],
        rest: Rest::Token(35, 35, "_-"),
    },
    Rule {
        name: "a Stripe key",
        starts: &["sk_live_", "rk_live_"],
        rest: Rest::Token(24, 120, ""),
    },
    Rule {
        name: "an npm token",
        starts: &["npm_"],
        rest: Rest::Token(36, 36, ""),
    },
    Rule {
        name: "a PyPI token",
        starts: &["pypi-AgEI"],
        rest: Rest::Token(50, 250, "_-"),
    },
    Rule {
        name: "a Hugging Face token",
        starts: &["hf_"],
        rest: Rest::Token(34, 40, ""),
    },
    Rule {
        name: "a private key",
        starts: &["-----BEGIN "],
        rest: Rest::KeyHeader,
    },
    Rule {
        name: "a JSON web token",
        starts: &["eyJ"],
        rest: Rest::WebToken,
    },
    Rule {
        name: "the password of a database",
        starts: &[
            "postgres://",
            "postgresql://",
            "mysql://",
            "mongodb://",
            "mongodb+srv://",
            "redis://",
            "amqp://",
        ],
        rest: Rest::Credentials,
    },
];

/// Words that stand for a password in examples.
pub(crate) const PLACEHOLDERS: [&str; 9] = [
    "pass", "passwd", "password", "pwd", "secret", "example", "changeme", "postgres", "redacted",
];

/// A rare part of the starts of each rule, for the search by vector instructions. Texts whose numbers
/// are equal modulo 8 share a filter, so similar ones are 8 apart; each has at least four bytes, as
/// the filter is only as precise as the shortest one. A test compares the result with a plain search.
const ANCHORS: [&str; 28] = [
    "ghp_", "xoxb-", "sk-ant", "AKIA", "b_pat", "-AgEI", "tgre", "edis", //
    "gho_", "xoxp-", "sk-pro", "ASIA", "glpat-", "BEGIN ", "sql:", "amqp", //
    "ghu_", "xoxa-", "sk-svc", "AIza", "k_liv", WEB_BODY, "ngod", "npm_", //
    "ghs_", "xoxs-", "xapp-", "ghr_",
];
/// The start of the second part of a web token. That of the first one is short and more frequent.
const WEB_BODY: &str = ".eyJ";
/// This start is too short for an anchor.
const HUGGING_FACE: &str = "hf_";

/// A start of a rule, and the offset of the anchor in it.
type Start = (usize, &'static str, &'static Rule);

/// The search for [`ANCHORS`], and the starts with each.
static STARTS: LazyLock<Option<(AhoCorasick, Vec<Vec<Start>>)>> = LazyLock::new(|| {
    let starts = |anchor: &&str| starts_with(anchor);
    let starts = ANCHORS.iter().map(starts).collect();
    // Vector instructions find the first of several patterns, not all of them.
    let search = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(ANCHORS);
    Some((search.ok()?, starts))
});

/// Returns the starts of rules that contain `anchor`.
fn starts_with(anchor: &str) -> Vec<Start> {
    let rules = RULES.iter();
    let starts = rules.flat_map(|rule| rule.starts.iter().map(move |start| (*start, rule)));
    let here = starts.filter_map(|(start, rule)| Some((start.find(anchor)?, start, rule)));
    here.collect()
}

/// A secret in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretPlace {
    /// What it is, in words, such as `an AWS access key id`.
    pub kind: &'static str,
    /// The offset of its first byte.
    pub offset: usize,
    /// Its length in bytes, as far as the rule knows it.
    pub len: usize,
}

/// Finds the strings in `json` that look like secrets, in order. Escapes within them are understood.
///
/// ```
/// let found = transcript_format::secrets::secrets(br#"{"stdout":"id AKIAQQQQWWWWEEEERRRR"}"#);
/// assert_eq!((found[0].kind, found[0].offset, found[0].len), ("an AWS access key id", 14, 20));
/// ```
#[must_use]
pub fn secrets(json: &[u8]) -> Vec<SecretPlace> {
    let mut found: Vec<SecretPlace> = Vec::new();
    let Some((search, starts)) = &*STARTS else {
        return found;
    };
    let mut after_body = 0;
    for anchor in search.find_iter(json) {
        let number = anchor.pattern().as_usize();
        for (offset, start, rule) in &starts[number] {
            let at = anchor.start().checked_sub(*offset);
            found.extend(at.and_then(|at| secret_at(json, at, start, rule)));
        }
        if ANCHORS[number] == WEB_BODY {
            // The first part of a token has no point and is not longer than what is read.
            let from = anchor.start().saturating_sub(LONGEST + 3).max(after_body);
            after_body = anchor.start() + 1;
            found.extend(all_with("eyJ", json, from..anchor.start()));
        }
    }
    found.extend(all_with(HUGGING_FACE, json, 0..json.len()));
    found.sort_unstable_by_key(|place| place.offset);
    let mut end = 0;
    found.retain(|place| {
        let is_outside = place.offset >= end;
        if is_outside {
            end = place.offset + place.len;
        }
        is_outside
    });
    found
}

/// Returns the secrets with this start in a range of `json`.
fn all_with<'j>(
    start: &'static str,
    json: &'j [u8],
    range: Range<usize>,
) -> impl Iterator<Item = SecretPlace> + use<'j> {
    let rule = RULES.iter().find(|rule| rule.starts.contains(&start));
    let (from, text) = (range.start, &json[range]);
    let places = rule.map(|rule| {
        memchr::memmem::find_iter(text, start)
            .filter_map(move |at| secret_at(json, from + at, start, rule))
    });
    places.into_iter().flatten()
}

/// Returns the secret at `at`, if one with this start is there.
pub(crate) fn secret_at(json: &[u8], at: usize, start: &str, rule: &Rule) -> Option<SecretPlace> {
    let rest = json[at..].strip_prefix(start.as_bytes())?;
    let before = at.checked_sub(1).map(|before| json[before]);
    if !begins(before, &json[..at], start) {
        return None;
    }
    let len = rest_len(&rule.rest, &rest[..rest.len().min(LONGEST)])?;
    Some(SecretPlace {
        kind: rule.name,
        offset: at,
        len: start.len() + len,
    })
}

/// Returns whether a secret with this start can begin after `before`. The letter of an escape such as `\n` is no part
/// of a word; neither is the sign of a line of a diff.
fn begins(before: Option<u8>, json: &[u8], start: &str) -> bool {
    let is_escape = matches!(json, [.., b'\\', b'n' | b't' | b'r'] | [.., b'\\', b'/']);
    match before {
        Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => is_escape,
        Some(b'-' | b'+' | b'/') => {
            let further = json.len().checked_sub(2).map(|at| json[at]);
            let in_word = further.is_some_and(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
            });
            let is_line = matches!(json, [.., b'\\', b'n' | b't' | b'r', _]);
            // Base64 has `/` and `+`, but no start with these signs.
            let is_in_base64 = in_word && !is_line && !start.contains(['_', '-']);
            is_escape || !is_in_base64
        }
        _ => true,
    }
}

/// Returns the length of what follows a start; `None` if it is not a secret.
fn rest_len(rest: &Rest, json: &[u8]) -> Option<usize> {
    match rest {
        Rest::Token(least, most, others) => {
            let is_part =
                |byte: u8| byte.is_ascii_alphanumeric() || others.as_bytes().contains(&byte);
            let (count, len) = run(json, is_part);
            let varies = has_variety(&json[..len]);
            (*least..=*most)
                .contains(&count)
                .then_some(len)
                .filter(|_| varies)
        }
        Rest::Capitals(exactly) => {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric();
            let (count, len) = run(json, is_part);
            let is_upper = !json[..len].iter().any(u8::is_ascii_lowercase);
            let is_example = json
                .get(..len)
                .is_some_and(|text| text.ends_with(b"EXAMPLE"));
            (count == *exactly && is_upper && !is_example && has_variety(&json[..len]))
                .then_some(len)
        }
        Rest::KeyHeader => {
            const END: &[u8] = b"PRIVATE KEY-----";
            let end = memchr::memmem::find(&json[..json.len().min(40)], END)? + END.len();
            let is_kind = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b' ' | b'-');
            // Without anything that looks like a key behind it, it is a mention.
            let after = json[end..].strip_prefix(b"\\r").unwrap_or(&json[end..]);
            let after = after.strip_prefix(b"\\n").unwrap_or(after);
            let (count, _) = run(after, |byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
            });
            (json[..end].iter().all(is_kind) && count >= 16).then_some(end)
        }
        Rest::WebToken => {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            let (_, head) = run(json, is_part);
            let body = json.get(head..)?.strip_prefix(b".eyJ")?;
            let (_, body_len) = run(body, is_part);
            let signature = body.get(body_len..)?.strip_prefix(b".")?;
            let (count, signature_len) = run(signature, is_part);
            (head >= 10 && body_len >= 10 && count >= 20)
                .then_some(head + 5 + body_len + signature_len)
        }
        Rest::Credentials => {
            let end = json.iter().position(|byte| {
                matches!(
                    byte,
                    b'@' | b'/' | b'"' | b'\\' | b' ' | b'<' | b'$' | b'{' | b'*'
                )
            })?;
            let (user, password) =
                json[..end].split_at_checked(json[..end].iter().position(|byte| *byte == b':')?)?;
            let password = std::str::from_utf8(&password[1..]).ok()?;
            let host = json.get(end + 1..)?;
            let is_local = [&b"localhost"[..], b"127.0.0.1", b"example", b"host", b"db"]
                .iter()
                .any(|local| host.starts_with(local));
            let lower = password.to_ascii_lowercase();
            let is_placeholder =
                PLACEHOLDERS.iter().any(|word| lower.contains(word)) || password.as_bytes() == user;
            (json[end] == b'@' && password.len() >= 6 && !is_local && !is_placeholder)
                .then_some(end)
        }
    }
}

/// Counts the characters at the start of `json` that belong to a token, and their bytes: an escape
/// of six bytes is one character.
fn run(json: &[u8], is_part: impl Fn(u8) -> bool) -> (usize, usize) {
    let (mut count, mut at) = (0, 0);
    while at < json.len() {
        let (byte, len) = match &json[at..] {
            [b'\\', b'u', b'0', b'0', high, low, ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 6),
                _ => break,
            },
            rest => (rest[0], 1),
        };
        if !is_part(byte) {
            break;
        }
        count += 1;
        at += len;
    }
    (count, at)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Returns whether a text is not a row of few different characters, as a placeholder is.
pub(crate) fn has_variety(text: &[u8]) -> bool {
    let mut seen = [false; 256];
    text.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count() >= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What [`secrets`] returns, found by a comparison of every start with every place.
    fn plainly(json: &[u8]) -> Vec<SecretPlace> {
        let mut found: Vec<SecretPlace> = Vec::new();
        let mut end = 0;
        for at in 0..json.len() {
            let mut starts = RULES
                .iter()
                .flat_map(|rule| rule.starts.iter().map(move |start| (start, rule)));
            let place = starts.find_map(|(start, rule)| secret_at(json, at, start, rule));
            if let Some(place) = place.filter(|_| at >= end) {
                end = at + place.len;
                found.push(place);
            }
        }
        found
    }

    #[test]
    fn a_search_for_anchors_finds_what_a_comparison_at_every_place_finds() {
        const TOKEN: &str = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6";
        const PARTS: [&str; 19] = [
            TOKEN,
            concat!("AI", "zaaB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI"),
            concat!("ey", "JaB3dE6gH9jK2.eyJaB3dE6gH9jK2.aB3dE6gH9jK2mN5pQ8sT"),
            concat!("-----BEGIN ", "PRIVATE KEY-----aB3dE6gH9jK2mN5pQ8sT"),
            "AKIAQQQQWWWWEEEERRRR",
            "QQQQWWWWEEEERRRR",
            ".eyJ",
            ".",
            "u:s3cr3tly@h.org/",
            "RSA PRIVATE KEY-----\\n",
            " ",
            "\"",
            "\\n",
            "\\/",
            "\\u0041",
            "-",
            "_",
            "A",
            "s",
        ];
        let starts = RULES.iter().flat_map(|rule| rule.starts);
        let parts: Vec<&str> = starts.chain(&PARTS).copied().collect();
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut kinds = std::collections::HashSet::new();
        for round in 0..3_000 {
            let mut json = String::new();
            for _ in 0..random(12) {
                // A secret needs a start and the right rest, which chance alone seldom gives.
                json.push_str(parts[random(parts.len())]);
                match random(4) {
                    0 => json.push_str(PARTS[random(PARTS.len())]),
                    1 => json.push_str(&TOKEN[..random(TOKEN.len())]),
                    2 => json.push_str(&TOKEN.repeat(2)[..40 + random(10)]),
                    _ => {}
                }
            }
            let found = secrets(json.as_bytes());
            assert_eq!(found, plainly(json.as_bytes()), "round {round}: {json}");
            kinds.extend(found.iter().map(|place| place.kind));
        }
        let all: std::collections::HashSet<&str> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(kinds, all);
    }

    #[test]
    fn every_start_has_an_anchor() {
        for start in RULES.iter().flat_map(|rule| rule.starts) {
            let anchors = ANCHORS.iter().filter(|anchor| start.contains(**anchor));
            let is_apart = ["eyJ", HUGGING_FACE].contains(start);
            assert!(anchors.count() >= usize::from(!is_apart), "{start}");
        }
        assert!(ANCHORS.iter().all(|anchor| anchor.len() >= 4));
    }
}
