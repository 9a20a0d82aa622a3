//! The maximum length of a request.

#[cfg(feature = "search")]
use transcript_catalog::usage::Prices;
use transcript_resume::request::Fit;

/// Returns the maximum number of tokens of a request to a model, by the price table of this version; `None` for a model
/// that is not in it.
#[cfg(feature = "search")]
#[must_use]
pub fn context_window(model: &str) -> Option<u64> {
    Prices::embedded().model(model)?.max_input_tokens()
}

/// Parses a limit: a number of tokens of the messages, such as `150000`, `150k` or `1M`, or the name of a model, whose
/// context window holds the system prompt and the tools as well. `None` for anything else, and for a model that is not
/// in the price table.
#[cfg(feature = "search")]
#[must_use]
pub fn parse_fit(text: &str) -> Option<Fit> {
    match tokens(text) {
        Some(tokens) => Some(Fit::messages(tokens)),
        None => context_window(text).map(Fit::window),
    }
}

/// Parses a limit: a number of tokens of the messages, such as `150000`, `150k` or `1M`; `None` for anything else.
#[cfg(not(feature = "search"))]
#[must_use]
pub fn parse_fit(text: &str) -> Option<Fit> {
    tokens(text).map(Fit::messages)
}

fn tokens(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match text.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        },
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok())??;
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_tokens_or_a_model() {
        for (text, limit) in [
            ("150000", Some(Fit::messages(150_000))),
            ("150k", Some(Fit::messages(150_000))),
            ("1M", Some(Fit::messages(1_000_000))),
            ("", None),
            ("k", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("no-such-model", None),
        ] {
            assert_eq!(parse_fit(text), limit, "{text}");
        }
        #[cfg(feature = "search")]
        {
            let window = context_window("claude-opus-4-5").expect("the model is in the table");
            assert_eq!(parse_fit("claude-opus-4-5"), Some(Fit::window(window)));
        }
    }
}
