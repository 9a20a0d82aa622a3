//! The output of `serve`.

use serde::{Deserialize, Serialize};

use super::{Name, SCHEMA};

/// The address of the live page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ServeRecord {
    /// The version of the shape: [`SCHEMA`].
    pub schema: u32,
    /// Always `serve`.
    pub kind: Name,
    /// The address to open, with the token.
    pub url: String,
}

impl ServeRecord {
    /// Describes a server.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self {
            schema: SCHEMA,
            kind: "serve".into(),
            url: url.to_owned(),
        }
    }
}
