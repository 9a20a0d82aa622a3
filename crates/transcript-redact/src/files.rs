//! Files that contain secrets without saying so on the same line: `.pgpass`, Secrets of Kubernetes, JSON Web Keys.

use std::ops::Range;

use memchr::memmem;

use crate::form::{ALNUM, BASE64, Class};
use crate::value::stands_for_one;
use crate::view::View;
use crate::wrap::{after_prefix, line_start};

/// What a line of `.pgpass` has between its host and its database.
pub(crate) const PGPASS: [&str; 2] = [":5432:", ":*:*:"];
/// What such a document says it is.
pub(crate) const KUBERNETES: [&str; 2] = ["kind: Secret", "\"kind\": \"Secret\""];
pub(crate) const JWK: &str = "\"kty\"";

/// How far from what names it a secret can be, in bytes.
const MAX_DISTANCE: usize = 8 << 10;

/// Returns the password of a line of `.pgpass`: the fifth field.
pub(crate) fn pgpass(view: &View, at: usize) -> Option<Range<usize>> {
    let text = view.text();
    let start = after_prefix(text, line_start(text, at));
    let rest = &text[start..text.len().min(start + 512)];
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`<>/".contains(byte);
    let line = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
    let mut fields = line.splitn(5, |byte| *byte == b':');
    let others: Vec<&[u8]> = fields.by_ref().take(4).collect();
    let password = fields.next()?;
    let is_whole = others.len() == 4 && others.iter().all(|field| !field.is_empty());
    (is_whole && password.len() >= 3 && !stands_for_one(password)).then(|| {
        let end = start + line.len();
        end - password.len()..end
    })
}

/// Returns the values of the Secret whose kind is named at `at`, and where what was looked at ends.
pub(crate) fn kubernetes(view: &View, at: usize) -> (Vec<Range<usize>>, usize) {
    let text = view.text();
    let from = at.saturating_sub(MAX_DISTANCE);
    let from = memmem::rfind(&text[from..at], b"\n---").map_or(from, |found| from + found);
    let to = text.len().min(at + MAX_DISTANCE);
    let to = memmem::find(&text[at..to], b"\n---").map_or(to, |found| at + found);
    let mut found = Vec::new();
    for name in ["data:", "stringData:", "\"data\": {", "\"data\":{"] {
        for place in memmem::find_iter(&text[from..to], name) {
            let start = from + place;
            if start
                .checked_sub(1)
                .is_none_or(|before| !ALNUM.has(text[before]))
            {
                found.extend(pairs(text, start + name.len(), to, name.ends_with('{')));
            }
        }
    }
    (found, to)
}

/// Returns the values of pairs of YAML or JSON.
fn pairs(text: &[u8], from: usize, to: usize, is_json: bool) -> Vec<Range<usize>> {
    const NAME: Class = ALNUM.or(Class::of("._-"));
    let mut found = Vec::new();
    let mut at = from;
    while at < to {
        let skipped = text[at..to]
            .iter()
            .take_while(|byte| b" \t\r\n,\"'".contains(byte))
            .count();
        let line = match is_json {
            true => at + skipped,
            false => match memchr::memchr(b'\n', &text[at..to]) {
                Some(feed) => {
                    let start = at + feed + 1;
                    let blank = text[start..to]
                        .iter()
                        .take_while(|byte| **byte == b' ')
                        .count();
                    // What is not indented belongs to the document again.
                    if blank == 0
                        && text
                            .get(start)
                            .is_some_and(|byte| byte.is_ascii_alphabetic())
                    {
                        break;
                    }
                    after_prefix(text, start)
                }
                None => break,
            },
        };
        if line >= to {
            break;
        }
        let name = text[line..to]
            .iter()
            .take_while(|byte| NAME.has(**byte))
            .count();
        let sign = text[line + name..to]
            .iter()
            .take_while(|byte| b"\"': ".contains(byte))
            .count();
        let start = line + name + sign;
        let len = text[start..to]
            .iter()
            .take_while(|byte| BASE64.has(**byte))
            .count();
        let has_sign = text[line + name..start].contains(&b':');
        if name == 0 || !has_sign {
            break;
        }
        if len >= 4 && !stands_for_one(&text[start..start + len]) {
            found.push(start..start + len);
        }
        at = start + len;
    }
    found
}

/// Returns the private numbers of the JSON Web Key whose type is named at `at`, and where what was looked at ends.
pub(crate) fn jwk(view: &View, at: usize) -> (Vec<Range<usize>>, usize) {
    let text = view.text();
    let from = at.saturating_sub(MAX_DISTANCE);
    let from = memchr::memrchr(b'{', &text[from..at]).map_or(from, |open| from + open);
    let to = text.len().min(at + MAX_DISTANCE);
    let to = memchr::memchr(b'}', &text[at..to]).map_or(to, |close| at + close);
    let mut found = Vec::new();
    for name in [
        "\"d\"", "\"p\"", "\"q\"", "\"dp\"", "\"dq\"", "\"qi\"", "\"k\"",
    ] {
        for place in memmem::find_iter(&text[from..to], name) {
            let sign = from + place + name.len();
            let between = text[sign..to]
                .iter()
                .take_while(|byte| b" :\"\n\t".contains(byte))
                .count();
            let start = sign + between;
            let len = text[start..to]
                .iter()
                .take_while(|byte| BASE64.has(**byte))
                .count();
            if between >= 2 && len >= 16 {
                found.push(start..start + len);
            }
        }
    }
    (found, to)
}
