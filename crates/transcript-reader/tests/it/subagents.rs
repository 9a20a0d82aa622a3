//! The files of subagents in all layouts, and files that must not be mistaken for one.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_reader::{Subagent, subagents_on};
use transcript_storage::{ReadDisk, RealDisk};

const SESSION: &str = "5e550000-0000-4000-8000-000000000001";
const OTHER: &str = "5e550000-0000-4000-8000-000000000002";

struct Project(tempfile::TempDir);

impl Project {
    fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.write(&format!("{SESSION}.jsonl"), "{}\n");
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn own(&self, name: &str, text: &str) {
        self.write(&format!("{SESSION}/subagents/{name}"), text);
    }

    fn found(&self) -> Vec<Subagent> {
        let disk: Arc<dyn ReadDisk> = Arc::new(RealDisk);
        subagents_on(&disk, &self.path(&format!("{SESSION}.jsonl"))).unwrap()
    }

    fn ids(&self) -> Vec<String> {
        self.found().into_iter().map(|agent| agent.id).collect()
    }
}

fn line(session: &str) -> String {
    format!("{{\"type\":\"user\",\"isSidechain\":true,\"sessionId\":\"{session}\"}}\n")
}

#[test]
fn a_session_without_subagents_has_none() {
    assert_eq!(Project::new().ids(), [""; 0]);
}

#[test]
fn files_of_all_three_layouts_are_found_in_the_order_of_their_names() {
    let project = Project::new();
    project.own("agent-b.jsonl", "");
    project.own("agent-a1.jsonl", "");
    project.own("workflows/run-7/agent-w.jsonl", "");
    project.own("workflows/run-7/journal.jsonl", "");
    project.write("agent-old.jsonl", &line(SESSION));
    project.write("agent-foreign.jsonl", &line(OTHER));
    project.write("agent-torn.jsonl", "{\"type\":\"user\",\"sess");
    assert_eq!(project.ids(), ["a1", "b", "w", "old"]);
    let found = project.found();
    let runs: Vec<_> = found.iter().map(|agent| agent.run.as_deref()).collect();
    assert_eq!(runs, [None, None, Some("run-7"), None]);
    assert_eq!(found[3].path, project.path("agent-old.jsonl"));
}

#[test]
fn the_session_is_read_from_a_long_first_line() {
    let project = Project::new();
    let text = "x".repeat(200 << 10);
    let line = format!("{{\"message\":\"{text}\",\"sessionId\":\"{SESSION}\"}}\n");
    project.write("agent-old.jsonl", &line);
    assert_eq!(project.ids(), ["old"]);
}

#[test]
fn the_first_file_with_an_id_counts() {
    let project = Project::new();
    project.own("agent-a.jsonl", "");
    project.own("workflows/r/agent-a.jsonl", "");
    project.write("agent-a.jsonl", &line(SESSION));
    let found = project.found();
    assert_eq!(found.len(), 1);
    assert!(found[0].path.ends_with("subagents/agent-a.jsonl"));
}

#[test]
fn names_that_are_not_ids_are_skipped() {
    let project = Project::new();
    let long = format!("agent-{}.jsonl", "x".repeat(129));
    for name in [
        "agent-.jsonl",
        "agent-a b.jsonl",
        "agent-..jsonl",
        "x.jsonl",
        &long,
    ] {
        project.own(name, "");
    }
    fs::create_dir(project.path(&format!("{SESSION}/subagents/agent-folder.jsonl"))).unwrap();
    assert_eq!(project.ids(), [""; 0]);
}

#[test]
fn the_metadata_file_is_next_to_the_file_and_may_contain_anything() {
    let project = Project::new();
    for id in ["a", "b", "c", "d"] {
        project.own(&format!("agent-{id}.jsonl"), "");
    }
    project.own(
        "agent-a.meta.json",
        r#"{"toolUseId":"toolu_1","parentAgentId":7,"description":"look"}"#,
    );
    project.own("agent-b.meta.json", "[]");
    project.own("agent-c.meta.json", "{\"toolUse");
    let found = project.found();
    let a = found[0].meta().unwrap();
    assert_eq!(a.tool_use_id().as_deref(), Some("toolu_1"));
    assert_eq!(a.parent_agent_id(), None, "no string");
    assert_eq!(a.description().as_deref(), Some("look"));
    assert!(found[1..].iter().all(|agent| agent.meta().is_none()));
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;
    let project = Project::new();
    project.own("agent-a.jsonl", "");
    project.write("elsewhere/agent-x.jsonl", "");
    project.write("elsewhere/secret", r#"{"toolUseId":"t"}"#);
    let link = |from: &str, to: &str| {
        let to: &Path = &project.path(&format!("{SESSION}/subagents/{to}"));
        symlink(project.path(from), to).unwrap();
    };
    link("elsewhere/agent-x.jsonl", "agent-x.jsonl");
    link("elsewhere", "linked");
    link("elsewhere/secret", "agent-a.meta.json");
    let found = project.found();
    assert_eq!(project.ids(), ["a"]);
    assert!(found[0].meta().is_none());
}

#[cfg(unix)]
#[test]
fn a_linked_folder_of_subagents_is_not_followed() {
    let project = Project::new();
    project.write("elsewhere/agent-x.jsonl", "");
    fs::create_dir(project.path(SESSION)).unwrap();
    let own = project.path(&format!("{SESSION}/subagents"));
    std::os::unix::fs::symlink(project.path("elsewhere"), own).unwrap();
    assert_eq!(project.ids(), [""; 0]);
}
