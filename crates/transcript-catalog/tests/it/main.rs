//! Tests of the catalog, by area.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod bounds;
mod cache;
#[cfg(unix)]
mod edits;
mod prefilter;
mod prices;
mod remote;
mod store;
mod usage;
mod usage_answers;
mod usage_fixtures;
