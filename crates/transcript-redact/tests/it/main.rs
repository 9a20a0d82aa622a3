//! Tests of the public interface.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod disk;
mod json;
mod kinds;
mod mutations;
mod samples;
