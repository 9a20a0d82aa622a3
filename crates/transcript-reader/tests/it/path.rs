//! Paths under policy `vendor` are those of the slow model in the testkit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use transcript_reader::{EntryNo, Index, LoadOptions, Parent, Policy, Source, Tree};
use transcript_testkit::{damage, generate, model, oracle, shared};

use crate::index;
use crate::same_index::transcripts_under;

/// Line and uuid of every entry of a path, and whether the client refuses it.
#[derive(Debug, PartialEq)]
struct Reported {
    entries: Vec<(u64, Option<String>)>,
    leaf: Option<String>,
    refused: bool,
}

fn fast(index: &Index) -> Reported {
    let path = Tree::new(index, Policy::Vendor).path();
    let uuid = |number: EntryNo| index.entry(number).uuid().map(|id| index.id_text(id));
    Reported {
        entries: path
            .entries
            .iter()
            .map(|entry| (index.entry(entry.entry_no()).line(), uuid(entry.entry_no())))
            .collect(),
        leaf: path.leaf.and_then(uuid),
        refused: path.refusal.is_some(),
    }
}

fn slow(bytes: &[u8]) -> Reported {
    let path = model::vendor_path(bytes);
    // An id that is not a text or an empty one is none in the index.
    let text = |uuid: Option<String>| uuid.filter(|uuid| !uuid.is_empty());
    Reported {
        entries: path
            .entries
            .into_iter()
            .map(|entry| (entry.line as u64, text(entry.uuid)))
            .collect(),
        leaf: text(path.leaf),
        refused: path.refusal.is_some(),
    }
}

fn check(name: &str, index: &Index, bytes: &[u8]) {
    if let Some(difference) = difference(index, bytes) {
        panic!("{name}: {difference}");
    }
}

/// For a refusal only the reason is compared: the model then returns no entries.
fn difference(index: &Index, bytes: &[u8]) -> Option<String> {
    let (mut fast, slow) = (fast(index), slow(bytes));
    if slow.refused && fast.refused {
        fast = Reported {
            entries: Vec::new(),
            leaf: None,
            refused: true,
        };
    }
    (fast != slow).then(|| format!("\n  fast {fast:?}\n  slow {slow:?}"))
}

#[test]
fn paths_of_shared_files_are_those_of_the_model() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut files = Vec::new();
    transcripts_under(&shared.join("corpus/files"), &mut files);
    assert_eq!(files.len(), 122);
    for folder in oracle::FOLDERS {
        transcripts_under(&shared.join(folder), &mut files);
    }
    for file in files {
        let name = file.display().to_string();
        // Both engine and model refuse a file of another format.
        let Ok(source) = Source::open(&file) else {
            continue;
        };
        let bytes = fs::read(&file).unwrap();
        check(&name, &LoadOptions::new().load(&source).unwrap(), &bytes);
    }
}

#[test]
fn paths_of_our_fixtures_are_those_of_the_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1");
    let mut files = Vec::new();
    transcripts_under(&folder, &mut files);
    assert!(files.len() >= 20);
    for file in files {
        let bytes = fs::read(&file).unwrap();
        // The parser of the model refuses lines with numbers beyond a double; the client reads them.
        if !bytes.windows(5).any(|part| part == b"1e999") {
            check(&file.display().to_string(), &index(&bytes), &bytes);
        }
    }
}

/// Sessions of the generator, whole and damaged: the seeds are the numbers below the bound.
const GENERATED: u64 = 2_000;

#[test]
fn paths_of_generated_sessions_are_those_of_the_model() {
    for seed in 0..GENERATED {
        let bytes = generate::session(seed);
        check(&format!("seed {seed}"), &index(&bytes), &bytes);
    }
}

#[test]
fn paths_of_damaged_sessions_are_those_of_the_model() {
    for seed in 0..GENERATED {
        let (bytes, kinds) = damage::damage(&generate::session(seed), seed);
        check(&format!("seed {seed}, {kinds:?}"), &index(&bytes), &bytes);
    }
}

/// The parent of every entry, as text.
fn parents(index: &Index) -> BTreeMap<String, String> {
    let tree = Tree::new(index, Policy::Vendor);
    let name = |node| {
        let uuid = tree.entry(node).uuid();
        uuid.map_or_else(|| "no uuid".to_owned(), |id| index.id_text(id))
    };
    let parent = |node| match tree.parent(node) {
        Parent::Root => "root".to_owned(),
        Parent::Lost => "lost".to_owned(),
        Parent::Node(parent) => name(parent),
    };
    tree.nodes()
        .map(|node| (name(node), parent(node)))
        .collect()
}

#[test]
fn parent_links_do_not_depend_on_the_order_of_lines() {
    let mut linked = 0;
    for seed in 0..500 {
        // A splice uses the entries before the boundary, so it does depend on the order: the
        // boundaries of these sessions preserve nothing.
        let bytes = generate::session_of_unique_uuids(seed);
        let bytes = String::from_utf8(bytes)
            .unwrap()
            .replace("\"preservedMessages\"", "\"-reservedMessages\"")
            .replace("\"preservedSegment\"", "\"-reservedSegment\"")
            .into_bytes();
        let expected = parents(&index(&bytes));
        linked += expected
            .values()
            .filter(|parent| parent.len() == 36)
            .count();
        for shuffle in 0..3 {
            let permuted = generate::permute_lines(&bytes, shuffle);
            assert_eq!(
                parents(&index(&permuted)),
                expected,
                "seed {seed}, shuffle {shuffle}"
            );
        }
    }
    assert!(linked > 10_000, "the sessions have links: {linked}");
}
