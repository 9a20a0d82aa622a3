//! Files that contain secrets without saying so on the same line: `.pgpass`, Secrets of Kubernetes, JSON Web Keys.

use std::ops::Range;

use memchr::memmem;

use crate::class::{ALNUM, BASE64, Class};
use crate::random::looks_random;
use crate::value::stands_for_one;
use crate::view::View;
use crate::wrap::{after_prefix, line_behind, line_end_at};

/// Texts between the host and the database in a line of `.pgpass`.
pub(crate) const PGPASS_MARKS: [&str; 5] = [":5432:", ":5433:", ":6432:", ":6543:", ":*:*:"];
/// Texts that mark a document of Kubernetes as a secret.
pub(crate) const KUBERNETES_SECRET_MARKS: [&str; 3] = [
    "kind: Secret",
    "\"kind\": \"Secret\"",
    "\"kind\":\"Secret\"",
];
pub(crate) const JWK_MARK: &str = "\"kty\"";

/// The maximum distance of a secret from its name, in bytes.
const MAX_DISTANCE: usize = 8 << 10;
/// The maximum number of lists of one name in a document.
const MAX_LISTS: usize = 8;
/// The maximum length of a line that is examined, in bytes.
const MAX_LINE_LEN: usize = 4 << 10;

/// Returns the password of a line of `.pgpass`: the fifth field.
pub(crate) fn pgpass(view: &View, at: usize) -> Option<Range<usize>> {
    const HOST_CHARS: Class = ALNUM.or(Class::of("._*-/"));
    const MAX_FIELDS: usize = 512;
    let text = view.text();
    let before = text[at.saturating_sub(MAX_FIELDS)..at].iter().rev();
    let start = at - before.take_while(|byte| HOST_CHARS.has(**byte)).count();
    let rest = &text[start..text.len().min(start + MAX_FIELDS)];
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"\"'`<>".contains(byte);
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

/// Returns the values of the Secret whose kind is named at `at`, and the end of the searched text.
pub(crate) fn kubernetes(view: &View, at: usize) -> (Vec<Range<usize>>, usize) {
    let text = view.text();
    let from = at.saturating_sub(MAX_DISTANCE);
    let from = memmem::rfind(&text[from..at], b"\n---").map_or(from, |found| from + found);
    let to = text.len().min(at + MAX_DISTANCE);
    let to = memmem::find(&text[at..to], b"\n---").map_or(to, |found| at + found);
    let mut found = Vec::new();
    for name in [
        "data:",
        "stringData:",
        "\"data\": {",
        "\"data\":{",
        "\"stringData\": {",
        "\"stringData\":{",
    ] {
        for place in memmem::find_iter(&text[from..to], name).take(MAX_LISTS) {
            let start = from + place;
            if start
                .checked_sub(1)
                .is_none_or(|before| !ALNUM.has(text[before]))
            {
                let pairs = if name.ends_with('{') {
                    json_pairs(text, start + name.len(), to)
                } else {
                    yaml_pairs(view, start + name.len(), to)
                };
                found.extend(pairs);
            }
        }
    }
    (found, to)
}

/// Returns the texts behind a colon, up to the end of the object.
fn json_pairs(text: &[u8], from: usize, to: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = from;
    while let Some(mark) = text[at..to].iter().position(|byte| b"\"}".contains(byte)) {
        let open = at + mark;
        if text[open] == b'}' {
            break;
        }
        let Some(len) = memchr::memchr(b'"', &text[open + 1..to]) else {
            break;
        };
        let close = open + 1 + len;
        let before = text[from..open].trim_ascii_end();
        if before.ends_with(b":") && len >= 3 && !stands_for_one(&text[open + 1..close]) {
            found.push(open + 1..close);
        }
        at = close + 1;
    }
    found
}

/// Returns the values of the indented lines, also of those of a block.
fn yaml_pairs(view: &View, from: usize, to: usize) -> Vec<Range<usize>> {
    const NAME: Class = ALNUM.or(Class::of("._-"));
    const DOCUMENT_FIELDS: [&[u8]; 6] = [
        b"kind",
        b"metadata",
        b"type",
        b"apiVersion",
        b"immutable",
        b"stringData",
    ];
    let text = view.text();
    let mut found = Vec::new();
    let mut end = from;
    // The minimum indentation of the lines of a block.
    let mut block = None;
    while let Some(next) = line_behind(view, end).filter(|next| *next < to) {
        end = line_end_at(view, next, MAX_LINE_LEN);
        let start = after_prefix(text, next).min(end);
        let line = text[start..end].trim_ascii_end();
        if block.is_some_and(|indent| start - next >= indent) {
            if line.len() >= 3 {
                found.push(start..start + line.len());
            }
            continue;
        }
        block = None;
        let name = line.iter().take_while(|byte| NAME.has(**byte)).count();
        // A line without a value, or a field of the document, ends the list.
        let Some(value) = line[name..].strip_prefix(b":") else {
            break;
        };
        if name == 0 || DOCUMENT_FIELDS.contains(&&line[..name]) {
            break;
        }
        let value_start = start + name + 1;
        let mark = value.trim_ascii();
        if matches!(mark.first(), Some(b'|' | b'>')) && mark.len() <= 3 {
            block = Some(start - next + 1);
            continue;
        }
        let is_mark = |byte: &u8| b" \"'\r,".contains(byte);
        let blank = value.iter().take_while(|byte| is_mark(byte)).count();
        let len = value
            .iter()
            .rposition(|byte| !is_mark(byte))
            .map_or(blank, |last| last + 1);
        let range = value_start + blank..value_start + len.max(blank);
        if range.len() >= 3 && !stands_for_one(&text[range.clone()]) {
            found.push(range);
        }
    }
    found
}

/// Returns the private numbers of the JSON Web Key whose type is named at `at`, and the end of the searched text.
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
            if between >= 2 && len >= 16 && looks_random(&text[start..start + len]) {
                found.push(start..start + len);
            }
        }
    }
    (found, to)
}

/// The names of the private numbers of a key that was printed as text.
pub(crate) const PRIVATE_NUMBER_NAMES: [&str; 7] = [
    "privateExponent:",
    "prime1:",
    "prime2:",
    "exponent1:",
    "exponent2:",
    "coefficient:",
    "priv:",
];

/// Returns the lines of a private number, such as `00:c3:5f:`, behind the name that ends at `at`.
pub(crate) fn number(view: &View, at: usize) -> Vec<Range<usize>> {
    const DIGIT_CHARS: Class = Class::of("0123456789abcdefABCDEF:");
    const MIN_LINE_LEN: usize = 5;
    let text = view.text();
    let mut found = Vec::new();
    let mut end = at;
    while let Some(next) = line_behind(view, end) {
        end = line_end_at(view, next, MAX_LINE_LEN);
        // A line prefix before it may be a number with a colon, too.
        let whole = text[next..end].trim_ascii_end();
        let prefix = whole.iter().rposition(|byte| !DIGIT_CHARS.has(*byte));
        let start = next + prefix.map_or(0, |prefix| prefix + 1);
        let line = &text[start..next + whole.len()];
        let is_number = line.len() >= MIN_LINE_LEN
            && line[2] == b':'
            && line.iter().all(|byte| DIGIT_CHARS.has(*byte));
        // The last line may be short.
        let is_last =
            !found.is_empty() && line.len() == 2 && line.iter().all(u8::is_ascii_hexdigit);
        if !is_number && !is_last {
            break;
        }
        found.push(start..start + line.len());
    }
    found
}

/// The type of a resource that generates a password, in the state of Terraform.
pub(crate) const TERRAFORM_PASSWORD_MARK: &str = "\"random_password\"";

/// Returns the password that was made by the resource whose type is named at `at`.
pub(crate) fn random_password(view: &View, at: usize) -> Option<Range<usize>> {
    const NAME: &[u8] = b"\"result\"";
    let text = view.text();
    let to = text.len().min(at + MAX_DISTANCE);
    let name = at + memmem::find(&text[at..to], NAME)? + NAME.len();
    let signs = text[name..].iter().take(8);
    let start = name + signs.take_while(|byte| b" :\"".contains(byte)).count();
    let len = memchr::memchr(b'"', &text[start..to])?;
    (len >= 3).then_some(start..start + len)
}
