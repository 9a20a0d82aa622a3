//! Every walk over the files of sessions sees the same ones.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use transcript_reader::{
    Listing, SessionFiles, SessionLayout, WalkedFile, own_subagents_on, subagents_on, walk_store,
};
use transcript_storage::{MemoryDisk, ReadDisk};

const SESSION: &str = "/projects/-p/11111111-2222-4333-8444-555555555555.jsonl";

/// A session with a subagent at each depth, and two that are too deep.
fn deep_session() -> Arc<dyn ReadDisk> {
    let disk = MemoryDisk::new();
    disk.put(SESSION, "{}\n");
    let own = SessionLayout::CLIENT.subagents(Path::new(SESSION));
    for depth in 0..SessionLayout::MAX_DEPTH + 2 {
        let path = own
            .join("d/".repeat(depth))
            .join(format!("agent-{depth}.jsonl"));
        disk.put(path, "{}\n");
    }
    Arc::new(disk)
}

#[test]
fn every_walk_sees_the_subagents_of_a_session_to_the_same_depth() {
    let disk = deep_session();
    let session = Path::new(SESSION);
    let own = own_subagents_on(&disk, session).unwrap();
    assert_eq!(own.len(), SessionLayout::MAX_DEPTH);
    assert_eq!(subagents_on(&disk, session).unwrap().len(), own.len());
    let listing = Listing::read_on(&disk, Path::new("/projects")).unwrap();
    assert_eq!(listing.rows[0].subagents, own.len());
    let mut walked = BTreeSet::new();
    walk_store(&*disk, Path::new("/projects"), &mut |found| {
        match found {
            WalkedFile::File { path, .. } => _ = walked.insert(path.to_owned()),
            WalkedFile::Problem(error) => panic!("{error}"),
            _ => {}
        }
        true
    })
    .unwrap();
    walked.remove(session);
    let own: BTreeSet<_> = own.into_iter().map(|agent| agent.path).collect();
    assert_eq!(walked, own);
}

#[test]
fn a_session_is_whole_as_deep_as_its_project_is() {
    let deepest = |top: &str| {
        let disk = MemoryDisk::new();
        let project = format!("{top}{}", "/d".repeat(SessionLayout::MAX_DEPTH));
        let session = format!("{project}/11111111-2222-4333-8444-555555555555");
        disk.put(format!("{session}.jsonl"), "{}\n");
        disk.put(format!("{session}/subagents/agent-a.jsonl"), "{}\n");
        disk.put(format!("{project}/deeper/s.jsonl"), "{}\n");
        disk
    };
    let disk = deepest("/top");
    let mut files = Vec::new();
    walk_store(&disk, Path::new("/top"), &mut |found| {
        if let WalkedFile::File { path, .. } = found {
            files.push(path.to_owned());
        }
        true
    })
    .unwrap();
    assert_eq!(files.len(), 2, "{files:?}");
}

#[test]
fn an_agent_without_a_session_file_makes_an_orphan_wherever_it_is() {
    let disk = MemoryDisk::new();
    let folder = SessionLayout::CLIENT.subagents(Path::new(SESSION));
    disk.put(folder.join("a/b/c/d/e/f/agent-x.jsonl"), "{}\n");
    let files = SessionFiles::in_root_on(&(Arc::new(disk) as _), Path::new("/projects")).unwrap();
    assert_eq!(files.orphans[0].path, Path::new(SESSION));
}
