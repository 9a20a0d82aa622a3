//! Sessions as clients embed them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod agent;
mod any_disk;
mod appending;
mod calls;
mod client;
mod counting;
mod end;
#[cfg(feature = "async")]
mod fronts;
mod looking;
#[cfg(all(target_os = "linux", feature = "async", feature = "follow"))]
mod many;
mod memory;
mod merging;
mod names;
mod pinning;
mod prompts;
mod repairing;
mod requests;
mod resume;
#[cfg(feature = "ops")]
mod sdk;
#[cfg(feature = "ops")]
mod serve;
mod spans;
mod store;
mod stream_form;
mod support;
mod turns;
