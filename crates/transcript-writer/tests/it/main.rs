//! The integration tests of transcript-writer, one module per area.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(feature = "async")]
mod asynchronous;
mod crew;
mod draft;
mod fake;
mod faults;
mod model;
mod pin;
mod record;
mod turn;
