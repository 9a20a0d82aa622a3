//! Stage 1: the bytes of a file → the JSON objects that stand on its lines.

use serde_json::{Map, Value};

/// A JSON object that was found on a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Number of the physical line, counted from 1.
    pub number: usize,
    /// The object; of repeated keys the last one counts.
    pub object: Map<String, Value>,
}

/// Returns every object that the client sees in `bytes`, in file order.
///
/// Lines end with LF (a CR before it is white space); a last line without LF counts. Bad lines are
/// left out and do no harm to their neighbours (rig 3).
pub fn parse(bytes: &[u8]) -> Vec<Line> {
    bytes
        .split(|&byte| byte == b'\n')
        .enumerate()
        .filter_map(|(index, line)| {
            Some(Line {
                number: index + 1,
                object: object(line)?,
            })
        })
        .collect()
}

/// The object at the start of a line. What stands behind it on the same line is lost: of two
/// objects that are glued together only the first is seen (40-04).
fn object(line: &[u8]) -> Option<Map<String, Value>> {
    // Invalid UTF-8 becomes U+FFFD, the line is kept (40-17).
    let text = String::from_utf8_lossy(line);
    let text = replace_lone_surrogates(&text);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    match values.next()? {
        Ok(Value::Object(object)) => Some(object),
        // Not JSON, or JSON that is no entry: `null`, `[]`, `42` (40-19).
        _ => None,
    }
}

/// Turns each `\ud800`…`\udfff` escape that has no partner into `\ufffd`, as the client does
/// (rig 3); `serde_json` would refuse the whole line.
fn replace_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // The bytes of this escape: a pair of surrogates, one \u escape, or a backslash and the
        // character it protects.
        let len = match unit(rest) {
            Some(0xD800..=0xDBFF) if matches!(unit(&rest[6..]), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            Some(_) => 6,
            None => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out.push_str(rest);
    out
}

/// The UTF-16 unit of a `\uXXXX` escape at the start of `text`.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, expect: &[Value]) {
        let objects: Vec<Value> = parse(text.as_bytes())
            .into_iter()
            .map(|line| Value::Object(line.object))
            .collect();
        assert_eq!(objects, expect, "{text:?}");
    }

    #[test]
    fn bad_lines_are_left_out_and_the_rest_is_kept() {
        check("", &[]);
        check(
            "{\"a\":1}\r\n\n \t\n{\"a\":2}",
            &[json!({"a": 1}), json!({"a": 2})],
        );
        check("{\"a\":\n\0\0{\"a\":1}\nnull\n[]\n42\n{}", &[json!({})]);
        check("\u{feff}{\"a\":1}\n{\"a\":2}\n", &[json!({"a": 2})]);
    }

    #[test]
    fn of_glued_objects_the_first_is_kept() {
        check("{\"a\":1}{\"a\":2}\n", &[json!({"a": 1})]);
        check("{\"a\":1{\"a\":2}\n", &[]);
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        check(
            r#"{"a":"\ud83d\ude00 \ud83d \ude00\\ud83d"}"#,
            &[json!({"a": "😀 \u{fffd} \u{fffd}\\ud83d"})],
        );
        check(
            r#"{"a":"\ud83d\ud83d\ude00"}"#,
            &[json!({"a": "\u{fffd}😀"})],
        );
    }

    #[test]
    fn of_repeated_keys_the_last_counts() {
        check(r#"{"a":1,"a":2}"#, &[json!({"a": 2})]);
    }
}
