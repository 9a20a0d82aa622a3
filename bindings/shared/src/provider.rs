//! Who gets a request, as options name it.

use serde::Deserialize;
use transcript_engine::{Policy, Provider};

use crate::failure::Failure;

/// The provider of a request.
#[derive(Debug, Deserialize)]
pub(crate) struct ProviderOption {
    provider: Option<String>,
}

impl ProviderOption {
    /// Returns the provider; the Messages API if none is named.
    ///
    /// # Errors
    /// When it is not the name of one, and under policy `vendor`.
    pub(crate) fn get(&self, policy: Policy) -> Result<Provider, Failure> {
        match &self.provider {
            None => Ok(Provider::default()),
            Some(_) if policy == Policy::Vendor => Err(Failure::options(
                "provider: the client makes requests for its own provider; use the policy recover",
            )),
            Some(name) => name
                .parse()
                .map_err(|error| Failure::options(format!("provider: {error}"))),
        }
    }
}
