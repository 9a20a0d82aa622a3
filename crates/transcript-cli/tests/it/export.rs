//! `transcript export`: what is handed on has no secrets, in any format.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::{command, stderr, stdout};

const ID: &str = "11111111-2222-4333-8444-555555555555";
const SECRETS: [&str; 4] = [
    concat!("gh", "p_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"),
    "hunter2-Hunter2",
    concat!("sk-", "ant-api03-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0"),
    concat!("xo", "xb-1234567890-aB3dE6gH9jK2mN5pQ8sT"),
];

struct Place {
    folder: TempDir,
}

impl Place {
    /// A session with a secret in a prompt, a call, a result and a subagent.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("projects/-home-ada");
        let agents = project.join(ID).join("subagents");
        fs::create_dir_all(&agents).unwrap();
        let line = |number: u32, parent: Option<u32>, rest: &str| {
            let uuid = |number: u32| format!("{number:08x}-0000-4000-8000-000000000000");
            let parent = parent.map_or("null".into(), |parent| format!("\"{}\"", uuid(parent)));
            format!(
                "{{\"parentUuid\":{parent},\"uuid\":\"{}\",\"sessionId\":\"{ID}\",\"cwd\":\"/home/ada\",\"timestamp\":\"2026-03-04T05:00:0{number}.000Z\",{rest}}}\n",
                uuid(number)
            )
        };
        let [token, password, key, slack] = SECRETS;
        let lines = [
            line(
                1,
                None,
                &format!(
                    r#""type":"user","message":{{"role":"user","content":"use {token} and mail ada@mail.example.org"}}"#
                ),
            ),
            line(
                2,
                Some(1),
                &format!(
                    r#""type":"assistant","message":{{"role":"assistant","id":"m1","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"export DB_PASSWORD='{password}'"}}}}]}}"#
                ),
            ),
            line(
                3,
                Some(2),
                &format!(
                    r#""type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"key: {key}"}}]}},"toolUseResult":{{"stdout":"key: {key}"}}"#
                ),
            ),
            line(
                4,
                Some(3),
                r#""type":"assistant","message":{"role":"assistant","id":"m2","content":[{"type":"text","text":"done, nothing else"}]}"#,
            ),
        ];
        fs::write(project.join(format!("{ID}.jsonl")), lines.concat()).unwrap();
        let agent = line(
            5,
            None,
            &format!(
                r#""type":"user","isSidechain":true,"agentId":"a1","message":{{"role":"user","content":"post with {slack}"}}"#
            ),
        );
        fs::write(agents.join("agent-a1.jsonl"), agent).unwrap();
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn export(&self, arguments: &[&str]) -> Output {
        let mut command = command(&["export", ID]);
        command.args(arguments).current_dir(self.folder.path());
        command.arg("--root").arg(self.at("projects"));
        command.output().unwrap()
    }
}

#[test]
fn no_format_has_a_secret_and_all_say_where_one_was() {
    let place = Place::new();
    for format in ["--html", "--markdown", "--json", "--text"] {
        let output = place.export(&[format, "out", "--sidechains", "--tools", "full", "--force"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = fs::read_to_string(place.at("out")).unwrap();
        for secret in SECRETS {
            assert!(!text.contains(&secret[..12]), "{format}: {text}");
            assert!(
                !text.contains(&secret[secret.len() - 6..]),
                "{format}: {text}"
            );
        }
        assert!(text.contains("[redacted"), "{format}: {text}");
        assert!(text.contains("ada@mail.example.org") && text.contains("done, nothing else"));
        // What was redacted is said, and nothing of it.
        let said = stderr(&output);
        assert!(
            said.contains("a GitHub token") && said.contains(".jsonl:1"),
            "{said}"
        );
        assert!(
            SECRETS.iter().all(|secret| !said.contains(&secret[..12])),
            "{said}"
        );
        let plain = place.export(&[format, "-", "--no-redact", "--tools", "full"]);
        assert!(stdout(&plain).contains(SECRETS[0]), "{format}");
        let named = place.export(&[format, "-", "--emails", "--names"]);
        let named = stdout(&named);
        assert!(
            !named.contains("ada@") && !named.contains("/home/ada"),
            "{format}: {named}"
        );
    }
}

#[test]
fn the_report_has_each_place_and_never_a_value() {
    let place = Place::new();
    let output = place.export(&[
        "--markdown",
        "out.md",
        "--sidechains",
        "--json-report",
        "report",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = fs::read_to_string(place.at("report")).unwrap();
    let mut rules = Vec::new();
    for line in report.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let (at, len) = (
            record["offset"].as_u64().unwrap(),
            record["len"].as_u64().unwrap(),
        );
        let file = fs::read(record["path"].as_str().unwrap()).unwrap();
        let value = std::str::from_utf8(&file[at as usize..(at + len) as usize]).unwrap();
        assert!(SECRETS.contains(&value), "{value}");
        let before = file[..at as usize]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count() as u64;
        assert_eq!(record["line"], before + 1);
        rules.push(record["rule"].as_str().unwrap().to_owned());
        assert!(!line.contains(&value[..12]));
    }
    rules.sort();
    assert_eq!(
        rules,
        [
            "anthropic-api-key",
            "anthropic-api-key",
            "github-token",
            "slack-token",
            "value-that-its-name-calls-secret"
        ]
    );
}

#[test]
fn a_file_that_exists_is_replaced_only_if_asked_for() {
    let place = Place::new();
    fs::write(place.at("out"), "mine").unwrap();
    let refused = place.export(&["--text", "out"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(place.at("out")).unwrap(), "mine");
    let replaced = place.export(&["--text", "out", "--force"]);
    assert_eq!(replaced.status.code(), Some(0), "{}", stderr(&replaced));
    assert!(
        fs::read_to_string(place.at("out"))
            .unwrap()
            .contains("done")
    );
    // The report replaces nothing either.
    let refused = place.export(&["--text", "-", "--json-report", "out"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        fs::read_to_string(place.at("out"))
            .unwrap()
            .contains("done")
    );
    // Nothing is left beside it, also not of one that fails.
    let failed = place.export(&["--text", "missing/out"]);
    assert_eq!(failed.status.code(), Some(2));
    let names = fs::read_dir(place.folder.path()).unwrap();
    assert_eq!(names.count(), 2);
    let unnamed = place.export(&[]);
    assert_eq!(unnamed.status.code(), Some(2));
    let both = place.export(&["--text", "a", "--json", "b"]);
    assert_eq!(both.status.code(), Some(2));
}
