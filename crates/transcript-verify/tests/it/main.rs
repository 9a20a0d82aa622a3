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
use std::sync::Arc;

use transcript_storage::{ReadDisk, RealDisk};

fn disk() -> Arc<dyn ReadDisk> {
    Arc::new(RealDisk)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1")
}
