//! Values as JavaScript prints and counts them.

use serde_json::{Map, Number, Value};

/// Returns a value as a template of the client prints it; a field that is missing is `undefined`.
pub(super) fn text(value: Option<&Value>) -> String {
    match value {
        None => "undefined".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number_text(number.as_f64().unwrap_or(f64::NAN)),
        Some(Value::Array(list)) => {
            let texts = list.iter().map(|item| match item {
                Value::Null => String::new(),
                item => text(Some(item)),
            });
            texts.collect::<Vec<String>>().join(",")
        }
        Some(Value::Object(_)) => "[object Object]".to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Returns whether a value counts as true.
pub(super) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Returns a number as a double is printed: up to 21 digits in full, otherwise with an exponent.
pub(super) fn number_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    // The shortest digits that name this double, and the place of the point.
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let text = if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, part) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{whole}.{part}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let fraction = if rest.is_empty() { "" } else { "." };
        format!("{first}{fraction}{rest}e{:+}", point - 1)
    };
    if number < 0.0 {
        format!("-{text}")
    } else {
        text
    }
}

/// Returns a value with each number as the double that the client reads (MSG-22).
pub(super) fn with_doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => as_double(&number),
        Value::Array(list) => list.into_iter().map(with_doubles).collect(),
        Value::Object(object) => {
            let fields = object.into_iter();
            Value::Object(
                fields
                    .map(|(key, value)| (key, with_doubles(value)))
                    .collect::<Map<String, Value>>(),
            )
        }
        other => other,
    }
}

fn as_double(number: &Number) -> Value {
    let text = number.as_f64().map(number_text).unwrap_or_default();
    text.parse().unwrap_or(Value::Null)
}

/// Trims white space as JavaScript defines it: with U+FEFF, without U+0085.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Trims white space at the end.
pub(super) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

fn is_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// Returns the length of a text in UTF-16 units.
pub(super) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Returns the first `units` UTF-16 units of a text.
pub(super) fn start(text: &str, units: usize) -> String {
    let units: Vec<u16> = text.encode_utf16().take(units).collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_printed_as_javascript_does() {
        for (number, expect) in [
            (0.0, "0"),
            (-0.0, "0"),
            (5.0, "5"),
            (-1.5, "-1.5"),
            (1e6, "1000000"),
            (12_345_678_901_234_567_890.0, "12345678901234567000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e21, "1e+21"),
            (1.25e300, "1.25e+300"),
            (0.000_001, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-9, "1.5e-9"),
        ] {
            assert_eq!(number_text(number), expect);
        }
    }

    #[test]
    fn values_are_printed_as_a_template_does() {
        assert_eq!(text(None), "undefined");
        assert_eq!(text(Some(&Value::Null)), "null");
        assert_eq!(text(Some(&json!(["a", null, 1]))), "a,,1");
        assert_eq!(text(Some(&json!({}))), "[object Object]");
    }

    #[test]
    fn numbers_of_a_value_become_doubles() {
        let value = json!({"a": [12_345_678_901_234_567_890_u64, 1]});
        let expect = json!({"a": [12_345_678_901_234_567_000_u64, 1]});
        assert_eq!(with_doubles(value), expect);
    }
}
