//! Tests of archives.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod crash;
mod damage;
mod encryption;
mod home_crash;
mod homes;
mod moved;
mod prune;
mod repack;
mod round_trip;
