//! The maximum length of a request, as options name it.

use serde::Deserialize;
use transcript_session::{Fit, Policy, parse_fit};

use crate::failure::Failure;

/// A number of tokens, or a text such as `150k` or the name of a model.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "`fit` must be a number of tokens or a text")]
pub enum Limit {
    /// The maximum number of tokens of the messages.
    Tokens(u64),
    /// A number with a unit, or the name of a model, whose context window is the limit.
    Text(String),
}

/// Returns the limit that the options `fit` and `fitTurns` name.
///
/// # Errors
/// When `fit` is neither a number of tokens nor a known model, and under policy `vendor`.
pub fn limit(
    fit: Option<&Limit>,
    turns: Option<usize>,
    policy: Policy,
) -> Result<Option<Fit>, Failure> {
    let limit = match fit {
        None => return Ok(None),
        Some(_) if policy == Policy::Vendor => {
            let reason = "Claude Code sends the whole conversation; use the policy recover";
            return Err(Failure::option("fit", reason));
        }
        Some(Limit::Tokens(tokens)) => Fit::messages(*tokens),
        Some(Limit::Text(text)) => parse_fit(text).ok_or_else(|| {
            let reason = "neither a number of tokens, such as 150k, nor a model of the price table";
            Failure::option("fit", reason)
        })?,
    };
    Ok(Some(match turns {
        Some(turns) => limit.keep_turns(turns),
        None => limit,
    }))
}
