//! Projects that are links are projects, for every command. The page follows none that leads out (`serve`).

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::{command, stderr, stdout};

const HERE: &str = "11111111-2222-4333-8444-555555555555";
const LINKED: &str = "22222222-2222-4333-8444-555555555555";
const FILE: &str = "33333333-2222-4333-8444-555555555555";
const LEFT: &str = "44444444-2222-4333-8444-555555555555";

struct Store(TempDir);

/// Returns a prompt and an answer.
fn session(text: &str) -> String {
    let entry = |uuid: &str, parent: &str, role: &str| {
        format!(
            "{{\"type\":\"{role}\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"timestamp\":\"2026-03-04T05:00:00.000Z\",\"message\":{{\"role\":\"{role}\",\"id\":\"msg_{text}\",\"model\":\"m\",\"usage\":{{\"output_tokens\":1}},\"content\":[{{\"type\":\"text\",\"text\":\"marker {text}\"}}]}}}}\n"
        )
    };
    entry("u1", "null", "user") + &entry("a1", "\"u1\"", "assistant")
}

impl Store {
    /// Makes a project, a project that is a link out of the folder of projects, a second link to each, a session that is a
    /// link, and a result that is left of a session.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["projects/-here", "elsewhere/-linked", "elsewhere/files"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at(&format!("projects/-here/{HERE}.jsonl")), session("here")).unwrap();
        fs::write(
            at(&format!("elsewhere/-linked/{LINKED}.jsonl")),
            session("linked"),
        )
        .unwrap();
        fs::write(at("elsewhere/files/real.jsonl"), session("file")).unwrap();
        symlink(at("elsewhere/-linked"), at("projects/-linked")).unwrap();
        symlink(at("elsewhere/-linked"), at("projects/-linked-again")).unwrap();
        symlink(at("projects/-here"), at("projects/-here-again")).unwrap();
        symlink(
            at("elsewhere/files/real.jsonl"),
            at(&format!("projects/-here/{FILE}.jsonl")),
        )
        .unwrap();
        let results = at(&format!("projects/-here/{LEFT}/tool-results"));
        fs::create_dir_all(&results).unwrap();
        fs::write(results.join("r.txt"), "marker left").unwrap();
        Self(folder)
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("projects")
    }

    /// Returns the records of an answer.
    fn records(&self, arguments: &[&str]) -> Vec<Value> {
        let root = self.root();
        let arguments = arguments.iter().map(|argument| match *argument {
            "ROOT" => root.to_str().unwrap(),
            argument => argument,
        });
        let arguments: Vec<&str> = arguments.collect();
        let mut command = command(&arguments);
        command.arg("--root").arg(&root);
        command.env("TRANSCRIPT_ARCHIVE", self.0.path().join("archive"));
        let output = command.output().unwrap();
        assert!(output.status.code().unwrap() < 2, "{}", stderr(&output));
        let text = stdout(&output);
        let records = text.lines();
        records
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the sessions that an answer names, and how many of its records do.
    fn named(&self, arguments: &[&str], key: &str) -> (BTreeSet<String>, usize) {
        let records = self.records(arguments);
        let ids = records.iter().filter_map(|record| {
            let named = match key.split_once('/') {
                Some((outer, inner)) => record[outer][inner].as_str(),
                None => record[key].as_str(),
            };
            let stem = named?.rsplit('/').next()?.trim_end_matches(".jsonl");
            Some(stem.to_owned())
        });
        let ids: Vec<String> = ids.collect();
        let count = ids.len();
        (ids.into_iter().collect(), count)
    }
}

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[test]
fn every_command_sees_the_sessions_of_linked_projects_once() {
    let store = Store::new();
    let (live, with_left) = (set(&[HERE, LINKED, FILE]), set(&[HERE, LINKED, FILE, LEFT]));
    let questions: [(&[&str], &str, &BTreeSet<String>); 7] = [
        (&["list", "--json", "--all"], "sessionId", &live),
        (
            &["search", "--no-cache", "--json", "marker", "-n", "99"],
            "sessionId",
            &with_left,
        ),
        (
            &[
                "search",
                "--no-cache",
                "--json",
                "marker",
                "--in",
                "ROOT",
                "-n",
                "99",
            ],
            "sessionId",
            &with_left,
        ),
        (
            &["usage", "--no-cache", "--json", "--by", "session"],
            "by/session",
            &live,
        ),
        (
            &["usage", "ROOT", "--no-cache", "--json", "--by", "session"],
            "by/session",
            &live,
        ),
        (&["verify", "--json", "ROOT"], "path", &with_left),
        (&["tail", "--json", "ROOT"], "path", &live),
    ];
    for (question, key, expected) in questions {
        let (found, _) = store.named(question, key);
        assert_eq!(&found, expected, "{question:?}");
    }
    let (_, reports) = store.named(&["verify", "--json", "ROOT"], "path");
    assert_eq!(reports, 4);
    let (_, rows) = store.named(&["list", "--json", "--all"], "sessionId");
    assert_eq!(rows, 3);
    store.named(&["keep", "--json"], "none");
    fs::remove_dir_all(store.root()).unwrap();
    fs::create_dir(store.root()).unwrap();
    let (kept, _) = store.named(&["list", "--json", "--archived"], "sessionId");
    assert_eq!(kept, live);
}

#[test]
fn damage_in_a_linked_project_is_reported() {
    let store = Store::new();
    let path = store
        .0
        .path()
        .join(format!("elsewhere/-linked/{LINKED}.jsonl"));
    let whole = fs::read(&path).unwrap();
    let middle = whole.iter().position(|byte| *byte == b'\n').unwrap();
    fs::write(&path, [&whole[..middle - 5], &whole[middle..]].concat()).unwrap();
    let mut verify = command(&["verify", store.root().to_str().unwrap()]);
    let said = stdout(&verify.output().unwrap());
    assert!(said.contains("-TORN"), "{said}");
}

#[test]
fn every_command_sees_the_subagents_that_are_deep_in_the_folder_of_a_session() {
    let store = Store::new();
    let folder = format!("-here/{HERE}/subagents/{}", "d/".repeat(9));
    let folder = store.root().join(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("agent-deep.jsonl"), session("deep")).unwrap();
    for question in [
        &["verify", "--json", "ROOT"][..],
        &["verify", "--json", HERE],
        &["tail", "--json", "ROOT"],
    ] {
        let (found, _) = store.named(question, "path");
        assert!(found.contains("agent-deep"), "{question:?}: {found:?}");
    }
    let search = ["search", "--no-cache", "--json", "marker deep", "-n", "99"];
    for question in [&search[..], &[&search[..], &["--in", "ROOT"]].concat()] {
        let (found, _) = store.named(question, "agentId");
        assert_eq!(found, set(&["deep"]), "{question:?}");
    }
    let usage = ["usage", "--no-cache", "--json", "--by", "session"];
    for question in [&usage[..], &[&usage[..], &["ROOT"]].concat()] {
        let records = store.records(question);
        let own = records.iter().find(|row| row["by"]["session"] == HERE);
        assert_eq!(own.unwrap()["requests"], 2, "{question:?}");
    }
    let listed = |arguments: &[&str]| {
        let records = store.records(arguments);
        let own = records.iter().find(|row| row["sessionId"] == HERE);
        own.unwrap()["subagents"].as_u64()
    };
    assert_eq!(listed(&["list", "--json", "--all"]), Some(1));
    store.records(&["keep", "--json"]);
    fs::remove_dir_all(store.root()).unwrap();
    fs::create_dir(store.root()).unwrap();
    assert_eq!(listed(&["list", "--json", "--archived"]), Some(1));
}

#[test]
fn every_command_that_takes_a_folder_finds_projects_as_deep_below_it() {
    let store = Store::new();
    let top = store.0.path().join("top");
    let project = top.join("d/".repeat(10)).join("-deep");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("deep.jsonl"), session("deep")).unwrap();
    let top = top.to_str().unwrap();
    for (question, key) in [
        (&["verify", "--json", top][..], "path"),
        (
            &["search", "--no-cache", "--json", "marker", "--in", top],
            "path",
        ),
        (
            &["usage", top, "--no-cache", "--json", "--by", "session"],
            "by/session",
        ),
    ] {
        let (found, _) = store.named(question, key);
        assert_eq!(found, set(&["deep"]), "{question:?}");
    }
}
