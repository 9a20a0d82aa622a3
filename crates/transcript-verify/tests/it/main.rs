//! Tests of what is reported about whole sessions.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod compact;
mod conversation;
mod findings;
mod recorded_requests;
mod repair;
mod running;
mod salvage;
mod store;

use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1")
}
