//! Copies of repaired sessions: they are whole, and the old ones stay as they are.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use transcript_engine::verify::{VerifyOptions, verify};
use transcript_engine::{Error, ErrorKind, Session, SessionOptions, SessionRepair, SessionSalvage};
use transcript_storage::ReadDisk;
use transcript_testkit::fake_disk::{FakeDisk, Fault};

const OLD: &str = "0b932c9f-9928-4cec-9e82-22c1703d5f54";
const ONE: &str = "11111111-9928-4cec-9e82-22c1703d5f54";
const TWO: &str = "22222222-9928-4cec-9e82-22c1703d5f54";

fn entry(kind: &str, uuid: &str, parent: &str, more: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(
        r#"{{"parentUuid":{parent},"type":"{kind}","message":{{"role":"{kind}","content":[{{"type":"text","text":"Of {OLD}."}}]}},"uuid":"{uuid}",{more}"timestamp":"2026-11-20T10:00:00.000Z","sessionId":"{OLD}"}}"#
    )
}

/// A damaged session with an agent of the client, a torn one, one of an old client beside it, and
/// results.
fn session() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("{OLD}.jsonl"));
    let main = r#""isSidechain":false,"#;
    let torn = format!(r#"{{"type":"pr{}"#, entry("assistant", TWO, ONE, main));
    let lines = [entry("user", ONE, "", main), torn];
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let agent = |id: &str| format!(r#""isSidechain":true,"agentId":"{id}","#);
    let compact = [
        entry("user", "c1", ONE, &agent("acompact-0f")),
        entry("assistant", "c2", "c1", &agent("acompact-0f")),
    ];
    let compact = compact.join("\n") + "\n";
    write(
        &format!("{OLD}/subagents/agent-acompact-0f.jsonl"),
        &compact,
    );
    let first = entry("user", "d1", "", &agent("d0"));
    let torn = format!("{first}\n{{\"type\":\"assi");
    write(
        &format!("{OLD}/subagents/workflows/run1/agent-d0.jsonl"),
        &torn,
    );
    let meta = r#"{"agentType":"plan","toolUseId":"toolu_1"}"#;
    write(
        &format!("{OLD}/subagents/workflows/run1/agent-d0.meta.json"),
        meta,
    );
    write(
        &format!("{OLD}/tool-results/toolu_1.txt"),
        &format!("Of {OLD}.\n"),
    );
    write(
        "agent-quiz7.jsonl",
        &(entry("user", "e1", "", &agent("quiz7")) + "\n"),
    );
    (folder, path)
}

/// All files below a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap();
                found.insert(name.to_str().unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.map_while(Result::ok).collect()
}

#[test]
fn a_session_with_a_new_id_has_all_files_of_the_old_one() {
    let (folder, path) = session();
    let before = files(folder.path());
    let repair = SessionRepair::plan(&path).unwrap();
    let (new, id) = repair.write_as_new(None).unwrap();
    let after = files(folder.path());
    for (name, bytes) in &before {
        assert!(after[name] == *bytes, "{name}");
    }
    let file = |name: &str| &after[&format!("{id}{name}")];
    let main = lines(file(".jsonl"));
    let names = [
        main[0]["uuid"].as_str().unwrap(),
        main[1]["uuid"].as_str().unwrap(),
    ];
    assert!(!names.contains(&ONE) && !names.contains(&TWO));

    // An entry of the session has its new name; the subagent keeps its own ids and its text.
    let compact = lines(file("/subagents/agent-acompact-0f.jsonl"));
    assert_eq!(compact[0]["parentUuid"], names[0]);
    assert_eq!(
        (&compact[0]["uuid"], &compact[1]["parentUuid"]),
        (&"c1".into(), &"c1".into())
    );
    let text = format!("Of {OLD}.");
    for line in &compact {
        assert_eq!(line["sessionId"], id.to_string());
        assert_eq!(line["message"]["content"][0]["text"], *text);
    }
    let torn = file("/subagents/workflows/run1/agent-d0.jsonl");
    assert!(torn.ends_with(b"\n{\"type\":\"assi"));
    assert_eq!(lines(torn)[0]["sessionId"], id.to_string());
    for name in [
        "/subagents/workflows/run1/agent-d0.meta.json",
        "/tool-results/toolu_1.txt",
    ] {
        assert!(*file(name) == before[&format!("{OLD}{name}")], "{name}");
    }
    // That of an old client is where new ones look first.
    assert_eq!(
        lines(file("/subagents/agent-quiz7.jsonl"))[0]["sessionId"],
        id.to_string()
    );
    assert_eq!(after.len(), before.len() + 8);

    let findings = |path: &Path| -> Vec<&str> {
        let report = verify(
            &(std::sync::Arc::new(transcript_storage::RealDisk) as _),
            path,
            &VerifyOptions::new(),
        )
        .unwrap();
        let codes = report.findings.iter().map(|finding| finding.code.as_str());
        codes.collect()
    };
    assert_eq!(findings(&new), ["S-ORPHAN"]);
    let again = SessionRepair::plan(&new).unwrap();
    assert!(again.details().is_empty());
}

#[test]
fn a_copy_of_the_same_id_has_all_files_as_they_are() {
    let (folder, path) = session();
    let before = files(folder.path());
    let repair = SessionRepair::plan(&path).unwrap();
    let copy = folder.path().join("copy.jsonl");
    repair.write(&copy).unwrap();
    let after = files(folder.path());
    for (name, bytes) in &before {
        assert!(after[name] == *bytes, "{name}");
        if let Some(name) = name.strip_prefix(&format!("{OLD}/")) {
            assert!(after[&format!("copy/{name}")] == *bytes, "{name}");
        }
    }
    assert!(after["copy/subagents/agent-quiz7.jsonl"] == before["agent-quiz7.jsonl"]);
}

#[test]
fn a_folder_that_is_there_is_not_written_to() {
    let (folder, path) = session();
    fs::create_dir(folder.path().join("copy")).unwrap();
    let before = files(folder.path());
    let repair = SessionRepair::plan(&path).unwrap();
    let copy = folder.path().join("copy.jsonl");
    for refused in [
        repair.write(&copy),
        repair.write_as_new(Some(&copy)).map(|_| ()),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert_eq!(error.path(), folder.path().join("copy"));
    }
    assert!(files(folder.path()) == before);
}

#[test]
fn a_session_that_is_replaced_while_it_is_opened_is_read_again() {
    let (folder, path) = session();
    let copy = folder.path().join("copy.jsonl");
    let (go, opened) = std::sync::mpsc::channel::<Duration>();
    let replaced = path.clone();
    let replacing = thread::spawn(move || {
        for pause in opened {
            // Another file of the same bytes, as `repair --keep-id` would put there.
            fs::copy(&replaced, &copy).unwrap();
            thread::sleep(pause);
            fs::rename(&copy, &replaced).unwrap();
        }
    });
    for round in 0..300 {
        go.send(Duration::from_micros(round * 7)).unwrap();
        let session = Session::open(&path, &SessionOptions::new()).unwrap();
        drop(session);
    }
    drop(go);
    replacing.join().unwrap();
}

/// Whatever cannot be looked at or read is not taken for something that is not there: a copy has all files and lines, or there is
/// none.
#[test]
fn a_copy_is_whole_or_not_there_whatever_cannot_be_read() {
    let (folder, path) = session();
    let meta = "workflows/run1/agent-d0.meta.json";
    let lines_of = |files: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, usize> {
        let count = |bytes: &Vec<u8>| bytes.iter().filter(|byte| **byte == b'\n').count();
        let files = files.iter();
        files
            .map(|(name, bytes)| (name.clone(), count(bytes)))
            .collect()
    };
    type Write = fn(&Arc<dyn ReadDisk>, &Path, &Path) -> Result<(), Error>;
    let writers: [(&str, Write); 2] = [
        ("repair", |disk, path, out| {
            SessionRepair::plan_on(disk, path)?.write(out)
        }),
        ("salvage", |disk, path, out| {
            SessionSalvage::plan_on(disk, path)?.write(out)
        }),
    ];
    for (what, write) in writers {
        let copied = |fault: Option<u64>| {
            let disk = FakeDisk::new(1);
            for (name, bytes) in files(folder.path()) {
                let is_own = folder.path().join(&name) == path;
                // A salvage starts without the file of the session, and without the description of a subagent.
                if !(what == "salvage" && (is_own || name.ends_with(meta))) {
                    disk.put(folder.path().join(name), &bytes);
                }
            }
            if let Some(nth) = fault {
                disk.set(Fault::error(io::ErrorKind::Other).at_any(nth));
            }
            let to = tempfile::tempdir().unwrap();
            let disk_to_read: Arc<dyn ReadDisk> = Arc::new(disk.clone());
            let done = write(&disk_to_read, &path, &to.path().join("out.jsonl"));
            let found = lines_of(&files(to.path()));
            (done, found, disk.faults_left() == 0)
        };
        let (done, whole, _) = copied(None);
        done.unwrap();
        assert!(whole["out.jsonl"] > 1, "{what}: {whole:?}");
        let (mut nth, mut errors) = (1, 0);
        loop {
            let (done, found, came_so_far) = copied(Some(nth));
            if !came_so_far {
                break;
            }
            match done {
                Ok(()) => assert_eq!(found, whole, "{what}, operation {nth}"),
                Err(error) => {
                    assert!(
                        found.is_empty(),
                        "{what}, operation {nth}: {error}, {found:?}"
                    );
                    errors += 1;
                }
            }
            nth += 1;
        }
        assert!(errors > 10, "{what}: {errors} of {nth}");
    }
}
