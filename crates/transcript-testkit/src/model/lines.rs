//! Stage 1: turns the bytes of a file into the JSON objects on its lines.

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
/// omitted, and do not affect the lines before and after them.
pub fn parse(bytes: &[u8]) -> Vec<Line> {
    // One byte order mark at the start of the file is not part of the first line.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
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

/// Returns the object at the start of a line. The rest of the line is ignored: of two glued objects
/// only the first is read (FILE-2).
fn object(line: &[u8]) -> Option<Map<String, Value>> {
    // Invalid UTF-8 becomes U+FFFD, and the line is kept (FILE-3).
    let text = String::from_utf8_lossy(line);
    let text = replace_lone_surrogates(&text);
    let mut values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    match values.next()? {
        Ok(Value::Object(object)) => Some(object),
        // Not JSON, or JSON that is not an entry: `null`, `[]`, `42` (FILE-1).
        _ => None,
    }
}

/// Turns each unpaired escape `\ud800`…`\udfff` into `\ufffd`, as the client does; `serde_json` would
/// reject the whole line.
pub(super) fn replace_lone_surrogates(text: &str) -> String {
    let escapes = escapes(text);
    let is_high = |escape: &Escape| (0xD800..0xDC00).contains(&escape.unit);
    let is_low = |escape: &Escape| (0xDC00..0xE000).contains(&escape.unit);
    let mut out = text.to_owned();
    let mut index = 0;
    while index < escapes.len() {
        let escape = &escapes[index];
        let partner = escapes
            .get(index + 1)
            .filter(|next| next.at == escape.at + 6 && is_low(next));
        if is_high(escape) && partner.is_some() {
            index += 2;
            continue;
        }
        if is_high(escape) || is_low(escape) {
            // The replacement has the same length, so that the other offsets stay valid.
            out.replace_range(escape.at..escape.at + 6, "\\ufffd");
        }
        index += 1;
    }
    out
}

/// An escape such as `\ud83d`: the offset of its backslash, and its UTF-16 unit.
struct Escape {
    at: usize,
    unit: u16,
}

/// Returns all `\uXXXX` escapes of a text. A backslash escapes the character after it, so `\\ud83d`
/// does not contain one.
fn escapes(text: &str) -> Vec<Escape> {
    let mut found = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c != '\\' {
            continue;
        }
        let protected = chars.next();
        let digits = text.get(at + 2..at + 6);
        if let (Some((_, 'u')), Some(digits)) = (protected, digits)
            && digits.chars().all(|digit| digit.is_ascii_hexdigit())
        {
            let unit = u16::from_str_radix(digits, 16).expect("four hexadecimal digits");
            found.push(Escape { at, unit });
        }
    }
    found
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
    fn bad_lines_are_omitted_and_the_rest_is_kept() {
        check("", &[]);
        check(
            "{\"a\":1}\r\n\n \t\n{\"a\":2}",
            &[json!({"a": 1}), json!({"a": 2})],
        );
        check("{\"a\":\n\0\0{\"a\":1}\nnull\n[]\n42\n{}", &[json!({})]);
    }

    #[test]
    fn one_byte_order_mark_at_the_start_is_taken_off() {
        let both = [json!({"a": 1}), json!({"a": 2})];
        check("\u{feff}{\"a\":1}\n{\"a\":2}\n", &both);
        check("\u{feff}\u{feff}{\"a\":1}\n{\"a\":2}\n", &both[1..]);
        check("{\"a\":1}\n\u{feff}{\"a\":2}\n", &both[..1]);
    }

    #[test]
    fn first_of_glued_objects_is_kept() {
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
    fn last_of_repeated_keys_counts() {
        check(r#"{"a":1,"a":2}"#, &[json!({"a": 2})]);
    }
}
