//! Sessions as clients embed them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agent;
mod looking;
mod resume;
mod serve;
mod store;
mod support;
mod turns;
