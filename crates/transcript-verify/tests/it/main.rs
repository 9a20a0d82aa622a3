//! Tests of what is reported about whole sessions.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod conversation;
mod repair;

use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1");
    fixtures.join(format!("{name}.jsonl"))
}
