//! Tests of the follow library.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod live;
