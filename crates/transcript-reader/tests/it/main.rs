//! The integration tests of transcript-reader, one module per area.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_files;
mod bodies;
mod branches;
mod campaign;
mod corpus;
mod growing;
mod growing_file;
mod healthy;
mod layout;
mod listing;
mod path;
mod salvage;
mod same_index;
mod story;
mod subagents;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use transcript_format::finding::Code;
use transcript_reader::{EntryNo, Id, Index, LoadOptions, Preserved, Source};

/// A folder with one file that contains `bytes`. The folder is removed on drop.
struct Scratch {
    folder: TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new(bytes: &[u8]) -> Self {
        let folder = TempDir::new().expect("a folder for the test");
        let path = folder.path().join("session.jsonl");
        fs::write(&path, bytes).expect("a file for the test");
        Self { folder, path }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn open(&self) -> Source {
        Source::open(&self.path).expect("a regular file that looks like text")
    }
}

fn load(source: &Source, options: &LoadOptions) -> Index {
    options.load(source).expect("the file can be read")
}

/// Returns the index of `bytes`, read forward with one thread.
fn index(bytes: &[u8]) -> Index {
    load(&Scratch::new(bytes).open(), &LoadOptions::new().threads(1))
}

/// Returns codes and places of the findings.
fn reported(index: &Index) -> Vec<(Code, Option<u64>, u64, u64)> {
    index
        .findings()
        .iter()
        .map(|finding| (finding.code, finding.line, finding.offset, finding.len))
        .collect()
}

/// Returns all data of an index as text: one line for each entry, finding and total.
fn picture(index: &Index) -> Vec<String> {
    let text = |id: Option<Id>| id.map(|id| index.id_text(id));
    let texts = |ids: &[Option<Id>]| ids.iter().map(|id| text(*id)).collect::<Vec<_>>();
    let mut lines = vec![format!(
        "{} entries, {} lines, {} blank, {} bytes, repeated uuids: {}, sessions: {:?}",
        index.len(),
        index.line_count(),
        index.blank_line_count(),
        index.byte_count(),
        index.has_repeated_uuids(),
        index.sessions().collect::<Vec<_>>(),
    )];
    for entry_ref in index.entries() {
        let mut line = format!("{entry_ref:?}");
        if let Some(id) = entry_ref.uuid() {
            let same: Vec<usize> = index.with_uuid(id).map(EntryNo::get).collect();
            let found = index.id(&index.id_text(id)) == Some(id);
            write!(line, " among {same:?}, found: {found}").expect("a string takes all");
        }
        if let Some(boundary) = index.boundary(entry_ref.number()) {
            let preserved = match &boundary.preserved {
                Preserved::Nothing => "nothing".to_owned(),
                Preserved::List { anchor, uuids } => {
                    format!("list {:?} {:?}", text(*anchor), texts(uuids))
                }
                Preserved::Segment { anchor } => format!("segment {:?}", text(*anchor)),
            };
            let logical = text(boundary.logical_parent);
            write!(
                line,
                " boundary of {}, {logical:?}, {preserved}, ends {:?}",
                boundary.entry_no,
                texts(&boundary.ends)
            )
            .expect("a string takes all");
        }
        lines.push(line);
    }
    let tombstones = index.tombstones();
    lines.extend(tombstones.map(|(line, id)| format!("{line} takes back {}", index.id_text(id))));
    lines.extend(
        index
            .findings()
            .iter()
            .map(|finding| format!("{finding:?}")),
    );
    lines
}

#[track_caller]
fn assert_same(one: &Index, other: &Index, name: &str) {
    let (one, other) = (picture(one), picture(other));
    if let Some((one, other)) = one.iter().zip(&other).find(|(one, other)| one != other) {
        // Only the place: the whole text is too long to read.
        let equal = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
        let at = equal.count().saturating_sub(40);
        let part = |text: &str| text.chars().skip(at).take(200).collect::<String>();
        panic!("{name}:\n one: …{}\nother: …{}", part(one), part(other));
    }
    assert_eq!(one.len(), other.len(), "{name}");
}
