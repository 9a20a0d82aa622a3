//! `transcript usage` and `transcript replay` of sessions of other agents: tokens, prices, tools and branches as people see them.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agents_home::{self, CODEX, GEMINI, PI};
use crate::{command, stderr, stdout};

/// A person with a session of several agents.
struct Person(TempDir);

impl Person {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        agents_home::write(folder.path());
        Self(folder)
    }

    fn text(&self, arguments: &[&str]) -> String {
        let home: &Path = self.0.path();
        let mut command = command(arguments);
        command
            .env("HOME", home)
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("TRANSCRIPT_CONFIG", home.join("config.toml"))
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("TRANSCRIPT_ARCHIVE");
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }

    fn rows(&self, by: &str) -> Vec<Value> {
        let text = self.text(&["usage", "--by", by, "--json", "--no-cache"]);
        let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
        rows.filter(|row: &Value| row["kind"] == "row").collect()
    }
}

#[test]
fn tokens_of_each_agent_are_counted_once_and_paid_by_the_prices_of_the_maker() {
    let rows = Person::new().rows("maker,model");
    let row = |maker: &str| {
        let mut rows = rows.iter().filter(|row| row["by"]["maker"] == maker);
        let row = rows.next().unwrap();
        assert!(rows.next().is_none(), "{maker}");
        let counts = ["requests", "incomplete", "input", "cacheRead", "output"];
        let counts = counts.map(|key| row[key].as_u64().unwrap());
        (
            row["by"]["model"].clone(),
            counts,
            row["costNanoUsd"].clone(),
        )
    };
    // 1.25, 0.125 and 10 dollars for a million, for each of three requests. The agent wrote no tokens of the fourth one, which
    // called `apply_patch`: it is counted, and the cost is known to lack it.
    let codex = 3 * (600 * 1_250 + 400 * 125 + 100 * 10_000);
    assert_eq!(
        row("codex"),
        (json!("gpt-5"), [4, 1, 1800, 1200, 300], json!(codex))
    );
    // The thoughts are a part of the output, which the agent counts apart.
    let gemini = 600 * 1_250 + 400 * 125 + 100 * 10_000;
    assert_eq!(
        row("gemini"),
        (
            json!("gemini-2.5-pro"),
            [1, 0, 600, 400, 100],
            json!(gemini)
        )
    );
    // A model that is not sold has no price, which is not 0.
    assert_eq!(
        row("pi"),
        (json!("pi-test"), [2, 0, 20, 0, 10], Value::Null)
    );
}

#[test]
fn subagents_have_a_name_of_their_own_and_the_former_one_is_still_read() {
    let person = Person::new();
    for (former, name) in [("agent", "subagent"), ("agent-type", "subagent-type")] {
        let rows = person.rows(name);
        assert_eq!(rows, person.rows(former), "{name}");
        for row in rows {
            assert_eq!(row["by"], json!({ name: null, former: null }));
        }
    }
}

#[test]
fn calls_of_other_agents_look_like_those_of_claude_code() {
    let person = Person::new();
    let codex = person.text(&["replay", CODEX]);
    for text in [
        "▸ shell cargo test",
        "all passed",
        "☑ read",
        "▶ write",
        "1 of 2 done",
        "▸ apply_patch a.txt",
        "+1 −1",
        "- old line",
        "+ new line",
    ] {
        assert!(codex.contains(text), "{text:?} in\n{codex}");
    }
    assert!(!codex.contains("Begin Patch"), "{codex}");
    let gemini = person.text(&["replay", GEMINI]);
    for text in ["▸ replace", "a.txt", "- old", "+ new", "gemini-2.5-pro"] {
        assert!(gemini.contains(text), "{text:?} in\n{gemini}");
    }
    let document = person.text(&["export", "--markdown", "-", CODEX]);
    assert!(
        document.contains("- [x] read") && document.contains("```diff\n-old line\n+new line\n"),
        "{document}"
    );
}

#[test]
fn a_branch_has_its_reason_wherever_it_is_shown() {
    let person = Person::new();
    let branches = person.text(&["replay", "--all-branches", PI]);
    assert!(branches.contains("branch · rewound"), "{branches}");
    let tree = person.text(&["tree", PI]);
    assert!(tree.contains("rewound: an abandoned question"), "{tree}");
    let page = person.0.path().join("page.html");
    person.text(&["export", "--html", page.to_str().unwrap(), PI]);
    let page = std::fs::read_to_string(page).unwrap();
    let fork = "Another branch leaves here · rewound · 1 entry · an abandoned question";
    assert!(page.contains(fork), "{page}");
    // The agent is named at the top of each.
    for text in [branches, page] {
        assert!(text.contains("pi · ") || text.contains(">pi<"), "{text}");
    }
}
