//! The integration tests of transcript-messages, one module per area.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of the tests may panic as the tests do"
)]

mod builder;
mod prompt;
mod provider;
mod serde;
mod stream;
