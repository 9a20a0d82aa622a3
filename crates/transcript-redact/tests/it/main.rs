//! Tests of the public interface.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "what is left is printed by kind")]

mod disk;
mod json;
mod kinds;
mod mutations;
mod samples;
