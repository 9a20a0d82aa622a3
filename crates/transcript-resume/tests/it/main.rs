//! The fast path against the slow model.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod attachments;
mod builder;
mod client;
mod closing;
mod fit;
mod fork;
mod guarantee;
mod items;
mod live;
mod live_request;
mod media;
mod pains;
mod provider;
mod recovered;
mod request;
mod request_forms;
mod sent;
mod state;
mod stored;
mod stream_form;
mod strict;
mod superset;
mod tail_first;
mod tombstones;
mod usage;
mod work;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use transcript_reader::{Index, Source};

/// Writes a session to disk, as nothing reads one from memory, and reads it.
fn load(bytes: &[u8]) -> (tempfile::NamedTempFile, Source, Index) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let source = Source::open(file.path()).unwrap();
    let index = Index::load(&source).unwrap();
    (file, source, index)
}

/// Adds the transcripts in a folder and below, in order.
fn transcripts_under(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            transcripts_under(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            found.push(path);
        }
    }
}
