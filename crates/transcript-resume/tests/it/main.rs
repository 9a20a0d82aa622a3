//! The fast path against the slow model.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod attachments;
mod branches;
mod builder;
mod campaign;
mod client;
mod closing;
mod fit;
mod fork;
mod guarantee;
mod healthy;
mod items;
mod live;
mod live_request;
mod media;
mod pains;
mod path;
mod provider;
mod recovered;
mod request;
mod request_forms;
mod sent;
mod state;
mod stored;
mod story;
mod stream_form;
mod strict;
mod superset;
mod tail_first;
mod tombstones;
mod usage;
mod work;

use std::io::Write;

use transcript_reader::{Index, Source};

/// Writes a session to disk, as nothing reads one from memory, and reads it.
fn load(bytes: &[u8]) -> (tempfile::NamedTempFile, Source, Index) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let source = Source::open(file.path()).unwrap();
    let index = Index::load(&source).unwrap();
    (file, source, index)
}
