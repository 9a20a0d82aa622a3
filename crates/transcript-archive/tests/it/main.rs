//! Tests of archives.

mod crash;
mod round_trip;
