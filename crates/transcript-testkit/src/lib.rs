//! Slow models and shared fixtures that the other crates are tested against.
//!
//! [`model`] rebuilds a conversation the obvious way, over plain JSON values and without any code of
//! the other crates. Every fast path must give the same answer as the model. [`generate`] makes
//! sessions to compare them on, [`streams`] replies as they arrive, and [`damage`] hurts sessions. [`campaign`] hurts them, too, and knows what
//! can be brought back. [`fake_disk`] is where writers are killed,
//! and [`naive_writer`] the one that does not survive it.

pub mod campaign;
pub mod damage;
pub mod fake_disk;
pub mod generate;
pub mod model;
pub mod naive_writer;
pub mod oracle;
pub mod rng;
pub mod streams;

use std::path::{Path, PathBuf};

/// Returns the folder of material that is shared between the projects, or `None` when this
/// machine has none (a clone of the repository alone).
pub fn shared() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    folder.is_dir().then_some(folder)
}
