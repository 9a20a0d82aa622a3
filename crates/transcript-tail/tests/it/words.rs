//! Files to follow, and events as text.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use transcript_tail::{EventKind, FollowEvent};

/// Returns an entry of 27 bytes, for numbers of one digit, and its newline.
pub(crate) fn line(number: usize) -> String {
    format!("{{\"type\":\"user\",\"uuid\":\"u{number}\"}}\n")
}

/// Returns a folder, and the path of a session in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s1.jsonl");
    (folder, path)
}

/// Appends to a file; creates it and its folders if missing.
pub(crate) fn append(path: &Path, text: &str) {
    let folder = path.parent().expect("a folder");
    fs::create_dir_all(folder).expect("the folder is made");
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.expect("the file is written");
}

/// Returns an event as a word and numbers.
pub(crate) fn word(emitted: &FollowEvent) -> String {
    match &emitted.kind {
        EventKind::Open { offset } => format!("open {offset}"),
        EventKind::Entry(entry) => {
            let uuid = entry.text.split('"').nth(7).unwrap_or_default();
            format!("{uuid} {}", entry.offset)
        }
        EventKind::Damaged(bad) => format!("{} {} {}", bad.code.as_str(), bad.offset, bad.len),
        EventKind::Reset { reason, offset } => format!("{} {offset}", reason.name()),
        EventKind::Gone { offset, torn } => format!("gone {offset} {torn}"),
        other => format!("{other:?}"),
    }
}
