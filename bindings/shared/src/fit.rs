//! How long a request may be, as options name it.

use serde::Deserialize;
use transcript_engine::{Fit, Policy, parse_fit};

use crate::failure::Failure;

/// The limit of a request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FitOptions {
    fit: Option<Limit>,
    /// The number of turns at the end that are never changed.
    fit_turns: Option<usize>,
}

/// A number of tokens, or a text such as `150k` or the name of a model.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`fit` must be a number of tokens or a text")]
enum Limit {
    Tokens(u64),
    Text(String),
}

impl FitOptions {
    /// Returns the limit.
    ///
    /// # Errors
    /// When it names neither a number of tokens nor a known model, and under policy `vendor`.
    pub(crate) fn limit(&self, policy: Policy) -> Result<Option<Fit>, Failure> {
        let limit = match &self.fit {
            None => return Ok(None),
            Some(_) if policy == Policy::Vendor => {
                return Err(Failure::options(
                    "fit: the client sends the whole conversation; use the policy recover",
                ));
            }
            Some(Limit::Tokens(tokens)) => Fit::messages(*tokens),
            Some(Limit::Text(text)) => parse_fit(text).ok_or_else(|| {
                Failure::options(
                    "fit: neither a number of tokens, such as 150k, nor a model of the price table",
                )
            })?,
        };
        Ok(Some(match self.fit_turns {
            Some(turns) => limit.keep_turns(turns),
            None => limit,
        }))
    }
}
