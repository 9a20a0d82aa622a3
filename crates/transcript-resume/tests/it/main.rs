//! The fast path against the slow model.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod api;
mod api_forms;
mod branches;
mod campaign;
mod display;
mod fork;
mod healthy;
mod pains;
mod path;
mod state;
mod strict;
mod tombstones;
