//! What an agent cut out of a file is a branch of the session, read from an earlier version of the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_import::{Agent, BranchKind, EarlierHome, EarlierHomes, ImportDisk, Policy};
use transcript_storage::{MemoryDisk, ReadDisk};

const HOME: &str = "/now";
const FILE: &str = "sessions/--w--/t_s1.jsonl";

/// Earlier versions, the latest first.
#[derive(Debug)]
struct Earlier(Vec<&'static str>);

impl EarlierHomes for Earlier {
    fn of_files(&self, home: &Path, files: &[PathBuf]) -> Vec<EarlierHome> {
        assert_eq!(
            (home, files),
            (Path::new(HOME), &[Path::new(HOME).join(FILE)][..])
        );
        let homes = self.0.iter().map(|home| EarlierHome {
            path: home.into(),
            version: (*home).to_owned(),
        });
        homes.collect()
    }
}

fn message(id: &str, parent: &str, role: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"{role}","content":"{text}"}}}}"#
    )
}

fn put(disk: &MemoryDisk, home: &str, messages: &[String]) {
    let head = r#"{"type":"session","id":"s1","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}"#;
    let lines: String = std::iter::once(head.to_owned())
        .chain(messages.iter().cloned())
        .map(|line| line + "\n")
        .collect();
    disk.put(
        Path::new(home).join(FILE).to_str().expect("it is UTF-8"),
        lines,
    );
}

/// A session of which two versions had texts that the newest lacks, at offsets where other texts are now.
fn shown(policy: Policy) -> ImportDisk {
    let disk = MemoryDisk::new();
    let first = message("a", "null", "user", "the prompt");
    let cut = message("b", "\"a\"", "user", "cut first");
    let later = message("b", "\"a\"", "user", "cut later");
    let both = message("c", "\"b\"", "user", "cut twice");
    put(&disk, "/first", &[first.clone(), cut, both.clone()]);
    put(&disk, "/second", &[first.clone(), later, both]);
    put(
        &disk,
        HOME,
        &[first, message("b", "\"a\"", "user", "kept text")],
    );
    let disk = ImportDisk::with(Arc::new(disk), Agent::Pi, HOME, policy);
    disk.earlier(Arc::new(Earlier(vec!["/second", "/first", "/missing"])))
}

fn path() -> PathBuf {
    Path::new(HOME).join("-w/s1.jsonl")
}

#[test]
fn each_text_that_was_cut_is_there_once_and_the_others_as_often_as_before() {
    let disk = shown(Policy::Recover);
    let conversation = disk.conversation(&path()).expect("it can be read");
    let text = |id| {
        let content = conversation.content(id).expect("it can be read");
        content.text.unwrap_or_default()
    };
    let live: Vec<String> = conversation.live.iter().map(|id| text(*id)).collect();
    assert_eq!(live, ["the prompt", "kept text"]);
    let branches = conversation.branches.iter();
    let deleted = branches.filter(|branch| branch.kind == BranchKind::Deleted);
    let mut cut: Vec<String> = deleted
        .flat_map(|branch| branch.nodes.iter().map(|id| text(*id)))
        .collect();
    cut.sort();
    assert_eq!(cut, ["cut first", "cut later", "cut twice"]);
    // The map of each source has no gaps.
    for (number, source) in conversation.sources.iter().enumerate() {
        let parts = conversation.parts.iter().filter(|part| {
            let of = conversation.source(part.place.source);
            std::ptr::eq(of, &conversation.sources[number])
        });
        let end = parts.fold(0, |end, part| {
            assert_eq!(part.place.offset, end, "{}", source.path.display());
            end + part.place.len
        });
        assert_eq!(end, source.len, "{}", source.path.display());
    }
}

#[test]
fn lines_of_earlier_versions_have_ids_of_their_own() {
    let disk = shown(Policy::Recover);
    let bytes = disk.read(&path(), 1 << 20).expect("it can be read");
    let text = String::from_utf8(bytes).expect("it is UTF-8");
    for cut in ["cut first", "cut later", "cut twice", "kept text"] {
        assert_eq!(text.matches(cut).count(), 1, "{cut}: {text}");
    }
    let id = |line: &str| {
        let (_, rest) = line.split_once(r#""uuid":""#)?;
        rest.split('"').next().map(str::to_owned)
    };
    let mut ids: Vec<String> = text.lines().filter_map(id).collect();
    let count = ids.len();
    assert!(count >= 5, "{text}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "{text}");
}

#[test]
fn as_the_agent_shows_it_nothing_is_added() {
    let disk = shown(Policy::Vendor);
    let conversation = disk.conversation(&path()).expect("it can be read");
    assert_eq!(
        (conversation.live.len(), conversation.branches.len()),
        (2, 0)
    );
}
