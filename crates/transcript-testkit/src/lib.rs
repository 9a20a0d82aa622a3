//! The slow model, generators and fake devices that the other crates are tested with.
//!
//! - [`model`] rebuilds a conversation in the most obvious way, over plain JSON values and without
//!   any code of the other crates, only with the texts and tables of transcript-format. Every fast
//!   path must give the same answer as the model.
//! - [`generate`] makes sessions, [`trees`] folders of them, [`streams`] makes streamed replies.
//! - [`changes`] changes the files of a tree, and the filters that searches leave behind.
//! - [`damage`] damages sessions; [`campaign`] damages them, too, and knows what can be recovered.
//! - [`fake_disk`] is a disk that fails and loses power; [`naive_writer`] is a writer without the
//!   protections that the real one has; [`running_client`] is a process that has a session.
//! - [`oracle`] reads recorded requests of the real client, [`validator`] checks any request in
//!   Python.

pub mod campaign;
pub mod changes;
pub mod damage;
pub mod fake_disk;
pub mod generate;
pub mod model;
pub mod naive_writer;
pub mod oracle;
pub mod rng;
pub mod running_client;
pub mod streams;
pub mod trees;
pub mod validator;

use std::path::{Path, PathBuf};

/// Returns the folder of material that is shared between the projects, or `None` when this
/// machine has none (a clone of the repository alone).
pub fn shared() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    folder.is_dir().then_some(folder)
}
