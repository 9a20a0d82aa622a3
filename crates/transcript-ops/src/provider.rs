//! The provider of a request, as options name it.

use transcript_session::{Policy, Provider};

use crate::failure::Failure;

/// Returns the provider of this name; the Messages API if none is named.
///
/// # Errors
/// When it is not the name of one, and under policy `vendor`.
pub fn named(name: Option<&str>, policy: Policy) -> Result<Provider, Failure> {
    match name {
        None => Ok(Provider::default()),
        Some(_) if policy == Policy::Vendor => {
            let reason = "Claude Code makes requests for its own provider; use the policy recover";
            Err(Failure::option("provider", reason))
        }
        Some(name) => name
            .parse()
            .map_err(|error| Failure::option("provider", error)),
    }
}
