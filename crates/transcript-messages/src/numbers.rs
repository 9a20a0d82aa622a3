//! Numbers as the client sends them: it reads each as a double and prints that (MSG-22).

/// Returns JSON with each number as the client prints it; `None` if it does so already.
pub(crate) fn as_doubles(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut changed: Option<String> = None;
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let text = &json[at..end];
                if let Some(printed) = printed(text).filter(|printed| printed != text) {
                    let changed = changed.get_or_insert_default();
                    changed.push_str(&json[copied..at]);
                    changed.push_str(&printed);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    let mut changed = changed?;
    changed.push_str(&json[copied..]);
    Some(changed)
}

/// Returns the place after the string that starts at `start`. Texts have many escapes, and few of
/// quotes: only the quotes are looked at.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr(b'"', bytes.get(at..).unwrap_or_default()) {
        at += found;
        let before = bytes[start + 1..at].iter().rev();
        let is_escaped = before.take_while(|byte| **byte == b'\\').count() % 2 == 1;
        at += 1;
        if !is_escaped {
            return at;
        }
    }
    bytes.len()
}

fn printed(text: &str) -> Option<String> {
    // Most numbers are short and whole.
    let is_plain = text.len() < 16
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    if is_plain {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    if !number.is_finite() {
        return Some("null".to_owned());
    }
    if number == 0.0 {
        return Some("0".to_owned());
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let unsigned = match exponent {
        // Rust prints these in full, with the shortest digits that name the double.
        -7..=20 if exponent != -7 => format!("{}", number.abs()),
        _ => format!("{mantissa}e{exponent:+}"),
    };
    Some(format!("{sign}{unsigned}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_doubles_and_strings_stay() {
        let cases = [
            ("12345678901234567890", "12345678901234567000"),
            ("9007199254740993", "9007199254740992"),
            ("1.0", "1"),
            ("1e3", "1000"),
            ("1E21", "1e+21"),
            ("0.0000001", "1e-7"),
            ("1e-6", "0.000001"),
            ("-0", "0"),
            ("-1.50", "-1.5"),
            ("1e400", "null"),
        ];
        for (written, sent) in cases {
            let json = |number: &str| format!(r#"{{"a\"1.0":"1.0","b":[{number}]}}"#);
            assert_eq!(as_doubles(&json(written)), Some(json(sent)), "{written}");
        }
        assert_eq!(
            as_doubles(r#"{"a":[1,20,-3,0.5,123456789],"b":"1.0"}"#),
            None
        );
        let strings = r#"{"a":"\\","b":1.0,"c":"\\\"1.0","d":"\\\\","e":"","f":"\"","g":2.0}"#;
        let sent = strings
            .replace(r#""b":1.0"#, r#""b":1"#)
            .replace(r#""g":2.0"#, r#""g":2"#);
        assert_eq!(as_doubles(strings), Some(sent));
    }
}
