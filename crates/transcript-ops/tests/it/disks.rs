//! Operations on a store that is not on the disk of this machine.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use transcript_ops::schema::document;
use transcript_ops::{Call, Context};
use transcript_session::Store;
use transcript_storage::{MemoryDisk, RealDisk};

use crate::helpers::{Kept, make_store, run};

const ID: &str = "5e55a1d0-0000-4000-8000-000000000001";
const TORN: &str = "5e55a1d0-0000-4000-8000-000000000002";

/// Calls in the order in which they are made, so that each finds what the ones before it wrote. All operations are here but
/// those of archives and texts.
fn calls(root: &Path) -> Vec<(&'static str, Value)> {
    let project = root.join("-work-app");
    let file = project.join(format!("{ID}.jsonl"));
    let page = root.join("page.html");
    vec![
        ("listSessions", json!({})),
        ("list", json!({ "sidechains": true })),
        ("list", json!({ "by": "project" })),
        ("getSessionInfo", json!({ "sessionId": ID })),
        ("getSessionMessages", json!({ "sessionId": ID })),
        ("listSubagents", json!({ "sessionId": ID })),
        (
            "getSubagentMessages",
            json!({ "sessionId": ID, "agentId": "a1" }),
        ),
        ("entries", json!({ "session": ID })),
        ("entries", json!({ "session": file })),
        ("tree", json!({ "session": ID })),
        ("request", json!({ "session": ID })),
        ("verify", json!({ "session": ID })),
        ("verify", json!({ "session": root })),
        ("search", json!({ "query": "mat", "cache": false })),
        (
            "search",
            json!({ "query": "mat", "cache": false, "in": [project] }),
        ),
        (
            "search",
            json!({ "query": "mat", "cache": false, "in": [file] }),
        ),
        ("usage", json!({ "cache": false })),
        ("usage", json!({ "cache": false, "in": [project] })),
        (
            "follow",
            json!({ "session": ID, "from": "start", "once": true }),
        ),
        (
            "follow",
            json!({ "session": file, "from": "start", "once": true }),
        ),
        ("watch", json!({ "from": "start", "once": true })),
        (
            "watch",
            json!({ "in": [project], "from": "start", "once": true }),
        ),
        (
            "watch",
            json!({ "in": [ID], "from": "start", "once": true }),
        ),
        ("items", json!({ "session": ID })),
        (
            "handOver",
            json!({ "session": ID, "to": "codex", "targetHome": project }),
        ),
        ("export", json!({ "session": ID, "out": page })),
        ("repair", json!({ "session": TORN, "newSession": true })),
        ("repair", json!({ "session": TORN, "keepId": true })),
        ("verify", json!({ "session": TORN })),
        ("repair", json!({ "session": TORN, "undo": true })),
        ("forkSession", json!({ "sessionId": ID })),
        ("fork", json!({ "session": ID, "title": "Copy" })),
        ("list", json!({})),
        ("move", json!({ "old": "/work/app", "new": "/work/new" })),
        ("list", json!({ "project": "/work/new" })),
        ("renameSession", json!({ "sessionId": ID, "title": "Keys" })),
        ("tagSession", json!({ "sessionId": ID, "tag": "house" })),
        ("setArchived", json!({ "sessionId": ID, "archived": true })),
        ("getSessionInfo", json!({ "sessionId": ID })),
        ("deleteSession", json!({ "sessionId": ID })),
        ("list", json!({})),
    ]
}

/// Copies a folder to the same place of another disk.
fn copy(folder: &Path, disk: &MemoryDisk) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            copy(&path, disk);
        } else {
            disk.put(&path, fs::read(&path).unwrap());
        }
    }
}

/// Makes all calls. Returns the number of records of each, or why it failed.
fn records(store: &Store) -> Vec<(&'static str, Result<usize, String>)> {
    let context = Context::new(Some(store.clone()));
    let calls = calls(store.root()).into_iter().map(|(name, mut call)| {
        call["function"] = json!(name);
        let call = Call::parse(&call.to_string()).unwrap();
        let mut kept = Kept::default();
        let result = run(&call.operation, &context, &mut kept);
        let result = result.map_err(|error| format!("{error:?}"));
        (name, result.map(|()| kept.0.len()))
    });
    calls.collect()
}

#[test]
fn operations_find_and_change_sessions_on_the_disk_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("projects");
    make_store(&root.join("-work-app"), ID, TORN);
    let disk = MemoryDisk::default();
    copy(&root, &disk);

    let here = records(&Store::on(Arc::new(RealDisk), &root));
    fs::remove_dir_all(&root).unwrap();
    // A document is written for people, to the disk of this machine.
    fs::create_dir_all(&root).unwrap();
    assert!(here.iter().all(|(_, result)| result.is_ok()), "{here:#?}");
    let mut there = records(&Store::on(Arc::new(disk), &root));
    // This disk cannot replace a file, and says so; one that is asked instead would not have the file.
    for (name, result) in &mut there {
        let error = result.as_ref().err();
        if error.is_some_and(|error| error.contains("cannot-replace")) {
            assert_eq!(*name, "repair");
            *result = Ok(1);
        }
    }
    assert_eq!(there, here);
    let left = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    assert_eq!(left.collect::<Vec<_>>(), [root.join("page.html")]);

    let called = calls(&root);
    let operations = document()["operations"].clone();
    for name in operations.as_object().unwrap().keys() {
        let is_called = called.iter().any(|(called, _)| called == name);
        assert!(
            is_called || ["listArchived", "redact"].contains(&name.as_str()),
            "{name}"
        );
    }
}
