//! Tests of what operations take and return.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of the tests may panic as the tests do"
)]

mod disks;
mod failures;
mod hand_over;
mod helpers;
mod roots;
mod schema;
