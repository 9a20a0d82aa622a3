//! The sessions of other agents: every command that reads takes them, by id and by path, and no command changes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{command, stderr, stdout};

/// A session of each agent: the agent, the file below its home folder in the home folder of the person, and the id.
pub(crate) const SESSIONS: [(&str, &str, &str); 5] = [
    (
        "codex",
        ".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-10000000-0000-7000-8000-00000000c0de.jsonl",
        "10000000-0000-7000-8000-00000000c0de",
    ),
    (
        "pi",
        ".pi/agent/sessions/--src--/2026_20000000-0000-7000-8000-000000000001.jsonl",
        "20000000-0000-7000-8000-000000000001",
    ),
    (
        "qwen",
        ".qwen/projects/-src/chats/30000000-0000-4000-8000-000000000002.jsonl",
        "30000000-0000-4000-8000-000000000002",
    ),
    (
        "gemini",
        ".gemini/tmp/src/chats/session-2026-01-02T03-04-40000000.jsonl",
        "40000000-0000-4000-8000-000000000003",
    ),
    (
        "copilot",
        ".copilot/session-state/50000000-0000-4000-8000-000000000004/events.jsonl",
        "50000000-0000-4000-8000-000000000004",
    ),
];
pub(crate) const OWN: &str = "60000000-0000-4000-8000-000000000005";
pub(crate) const TIME: &str = "2026-01-02T03:04:05.678Z";

/// The records of a session: a prompt `ask AGENT` and an answer `tell AGENT`.
pub(crate) fn records(agent: &str, id: &str) -> Vec<Value> {
    let (ask, tell) = (format!("ask {agent}"), format!("tell {agent}"));
    let of_codex = |ordinal: u64, kind: &str, payload: Value| json!({ "timestamp": TIME, "ordinal": ordinal, "type": kind, "payload": payload });
    let message = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let usage = json!({ "input": 10, "output": 5 });
    match agent {
        "codex" => vec![
            of_codex(
                0,
                "session_meta",
                json!({ "id": id, "timestamp": TIME, "cwd": "/src",
                "originator": "o", "cli_version": "1.2.3", "source": "cli" }),
            ),
            of_codex(1, "turn_context", json!({ "model": "gpt-test" })),
            of_codex(2, "response_item", message("user", "input_text", &ask)),
            of_codex(
                3,
                "response_item",
                message("assistant", "output_text", &tell),
            ),
        ],
        "pi" => vec![
            json!({ "type": "session", "id": id, "timestamp": TIME, "cwd": "/src" }),
            json!({ "type": "message", "id": "a", "parentId": null, "timestamp": TIME,
                "message": { "role": "user", "content": ask } }),
            json!({ "type": "message", "id": "b", "parentId": "a", "timestamp": TIME, "message": { "role": "assistant",
                "model": "pi-test", "usage": usage, "content": [{ "type": "text", "text": tell }] } }),
        ],
        "qwen" => {
            let record = |uuid: &str, parent: Value, kind: &str, role: &str, text: &str| {
                json!({ "uuid": uuid, "parentUuid": parent, "sessionId": id, "timestamp": TIME, "cwd": "/src",
                    "provenance": "p", "type": kind, "message": { "role": role, "parts": [{ "text": text }] } })
            };
            vec![
                record("a", Value::Null, "user", "user", &ask),
                record("b", json!("a"), "assistant", "model", &tell),
            ]
        }
        "gemini" => vec![
            json!({ "sessionId": id, "projectHash": "h", "startTime": TIME, "lastUpdated": TIME, "kind": "main" }),
            json!({ "id": "a", "timestamp": TIME, "type": "user", "content": [{ "text": ask }] }),
            json!({ "id": "b", "timestamp": TIME, "type": "gemini", "content": tell, "model": "g" }),
        ],
        _ => {
            let event = |number: usize, kind: &str, data: Value| json!({ "type": kind, "data": data, "id": format!("e{number}"), "timestamp": TIME, "parentId": null });
            vec![
                event(
                    0,
                    "session.start",
                    json!({ "sessionId": id, "startTime": TIME, "context": { "cwd": "/src" } }),
                ),
                event(
                    1,
                    "user.message",
                    json!({ "content": ask, "transformedContent": ask }),
                ),
                event(
                    2,
                    "assistant.message",
                    json!({ "content": tell, "toolRequests": [], "model": "c" }),
                ),
            ]
        }
    }
}

/// A home folder with a session of each agent, and one of Claude Code.
pub(crate) struct Machine(TempDir);

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (agent, file, id) in SESSIONS {
            let lines = records(agent, id);
            machine.write(file, &lines);
        }
        let own = [
            json!({ "type": "user", "uuid": "u1", "parentUuid": null, "sessionId": OWN, "timestamp": TIME, "cwd": "/src",
                "message": { "role": "user", "content": "ask claude-code" } }),
            json!({ "type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": OWN, "timestamp": TIME,
                "message": { "role": "assistant", "id": "msg_1", "model": "claude-test", "content":
                    [{ "type": "text", "text": "tell claude-code" }] } }),
        ];
        machine.write(&format!(".claude/projects/-src/{OWN}.jsonl"), &own);
        machine
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    pub(crate) fn write(&self, below: &str, records: &[Value]) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text: String = records.iter().map(|record| format!("{record}\n")).collect();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command
            .env("HOME", self.0.path())
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("TRANSCRIPT_CONFIG", self.path("config.toml"))
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("TRANSCRIPT_ARCHIVE")
            .current_dir(self.0.path());
        command
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }

    pub(crate) fn records(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.text(arguments);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the agent of each listed session.
    pub(crate) fn listed(&self, arguments: &[&str]) -> BTreeMap<String, String> {
        let rows = self.records(&[&["list", "--json"], arguments].concat());
        let text = |value: &Value| value.as_str().unwrap_or("claude-code").to_owned();
        rows.iter()
            .map(|row| (text(&row["sessionId"]), text(&row["agent"])))
            .collect()
    }
}

#[test]
fn a_list_has_the_sessions_of_all_agents_with_their_names() {
    let machine = Machine::new();
    let others = SESSIONS.map(|(agent, _, id)| (id.to_owned(), agent.to_owned()));
    let mut expected = BTreeMap::from(others);
    expected.insert(OWN.to_owned(), "claude-code".to_owned());
    assert_eq!(machine.listed(&[]), expected);
    for row in machine.records(&["list", "--json"]) {
        let agent = row["agent"].as_str().unwrap_or("claude-code");
        assert_eq!(row["firstPrompt"], format!("ask {agent}"));
        if agent != "gemini" {
            assert_eq!(row["cwd"], "/src", "{agent}");
        }
    }
    let table = machine.text(&["list"]);
    assert!(
        table.contains("\tcopilot") && table.contains("\tclaude-code"),
        "{table}"
    );
}

/// Makes a database of OpenCode with one session, as the program leaves it.
fn put_database(machine: &Machine) {
    let folder = machine.path("data/opencode");
    fs::create_dir_all(&folder).unwrap();
    let database = rusqlite::Connection::open(folder.join("opencode.db")).unwrap();
    let text = json!({ "type": "text", "text": "ask opencode" });
    let rows = format!(
        r#"PRAGMA journal_mode = WAL;
        CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, version text, revert text, model text,
            time_created integer, time_updated integer);
        CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
        CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);
        INSERT INTO session VALUES ('ses_1', NULL, '/src', 'a title', '1', NULL, NULL, 1767323045678, 1767323045678);
        INSERT INTO message VALUES ('msg_1', 'ses_1', 1767323045678, 1767323045678, '{{"role":"user"}}');
        INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', 1767323045678, 1767323045678, '{text}');"#
    );
    database.execute_batch(&rows).unwrap();
}

#[test]
fn a_database_of_opencode_is_in_every_list_of_sessions() {
    let machine = Machine::new();
    put_database(&machine);
    let rows = machine.records(&["list", "--json"]);
    let row = rows.iter().find(|row| row["agent"] == "opencode").unwrap();
    assert_eq!(
        (&row["sessionId"], &row["cwd"]),
        (&json!("ses_1"), &json!("/src"))
    );
    assert_eq!(
        (&row["title"], &row["firstPrompt"]),
        (&json!("a title"), &json!("ask opencode"))
    );
    assert_eq!(rows.len(), SESSIONS.len() + 2);
    let hits = machine.records(&["search", "--json", "\"ask opencode\""]);
    assert_eq!(hits[0]["sessionId"], "ses_1");
    let text = machine.text(&["replay", "ses_1"]);
    assert!(text.contains("ask opencode"), "{text}");
}

/// Returns the files of the cache with one of the endings.
fn kept(machine: &Machine, endings: [&str; 2]) -> Vec<PathBuf> {
    let files = fs::read_dir(machine.path("cache/transcript")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let is_wanted = |file: &PathBuf| {
        endings
            .iter()
            .any(|ending| file.extension().is_some_and(|found| found == *ending))
    };
    files.filter(is_wanted).collect()
}

#[test]
fn a_second_list_is_the_first_with_its_cache_damaged_and_without_one() {
    let machine = Machine::new();
    put_database(&machine);
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    let files = SESSIONS.map(|(_, file, _)| file);
    for file in files.into_iter().chain(["data/opencode/opencode.db"]) {
        let file = fs::File::options()
            .append(true)
            .open(machine.path(file))
            .unwrap();
        file.set_modified(before).unwrap();
    }
    let list = |machine: &Machine| machine.text(&["list", "--json"]);
    let without = machine.text(&["list", "--json", "--no-cache"]);
    assert!(
        !machine.path("cache/transcript").exists() || kept(&machine, ["rows", "agents"]).is_empty()
    );
    assert_eq!(list(&machine), without);
    let all = kept(&machine, ["rows", "agents"]);
    assert!(all.len() > SESSIONS.len(), "{all:?}");
    assert_eq!(list(&machine), without);
    for ending in ["rows", "agents"] {
        for file in kept(&machine, [ending, ending]) {
            let whole = fs::read(&file).unwrap();
            fs::write(&file, &whole[..whole.len() * 2 / 3]).unwrap();
        }
        assert_eq!(list(&machine), without, "{ending}");
    }
    assert_eq!(list(&machine), without);

    // A session that changed is read again.
    let (_, pi, id) = SESSIONS[1];
    let more = json!({ "type": "message", "id": "z", "parentId": "b", "timestamp": TIME,
        "message": { "role": "user", "content": "asked later" } });
    let old = fs::read_to_string(machine.path(pi)).unwrap();
    fs::write(machine.path(pi), format!("{}\n{more}\n", old.trim_end())).unwrap();
    let rows = machine.records(&["list", "--json"]);
    let row = rows.iter().find(|row| row["sessionId"] == id).unwrap();
    assert_eq!(row["lastPrompt"], "asked later");
}

#[test]
fn an_agent_is_chosen_by_name_and_its_home_folder_may_lie_elsewhere() {
    let machine = Machine::new();
    let only = machine.listed(&["--agent", "pi"]);
    assert_eq!(only.into_values().collect::<Vec<_>>(), ["pi"]);
    let two = machine.listed(&["--agent", "qwen", "--agent", "claude-code"]);
    assert_eq!(
        two.into_values().collect::<Vec<_>>(),
        ["qwen", "claude-code"]
    );
    fs::rename(machine.path(".codex"), machine.path("moved")).unwrap();
    assert!(machine.listed(&["--agent", "codex"]).is_empty());
    let moved = machine.path("moved");
    let moved = ["--agent", "codex", "--root", moved.to_str().unwrap()];
    assert_eq!(machine.listed(&moved).len(), 1);
    let unknown = machine.run(&["list", "--agent", "nobody"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        stderr(&unknown).contains("claude-code, codex"),
        "{}",
        stderr(&unknown)
    );
}

#[test]
fn every_reading_command_takes_a_session_by_id_and_by_path() {
    let machine = Machine::new();
    for (agent, file, id) in SESSIONS {
        let file = machine.path(file);
        let tell = format!("tell {agent}");
        for session in [id, file.to_str().unwrap()] {
            let commands: [&[&str]; 7] = [
                &["replay", session],
                &["replay", "--format", "markdown", session],
                &["replay", "--json", session],
                &["resume", "--request", session],
                &["tree", session],
                &["tail", session],
                &["export", "--markdown", "-", session],
            ];
            for command in commands {
                let text = machine.text(command);
                assert!(
                    text.contains(&tell) || command[0] == "tree",
                    "{agent} {command:?}: {text}"
                );
            }
            let verdict = machine.text(&["verify", session]);
            assert!(
                verdict.contains(&format!("a session of {agent}")),
                "{verdict}"
            );
        }
        let hits = machine.records(&["search", "--json", &format!("\"{tell}\"")]);
        assert_eq!(hits[0]["sessionId"], id, "{agent}: {hits:?}");
    }
    let usage = machine.text(&["usage", "--by", "session", "--json"]);
    assert!(
        usage.contains("20000000-0000-7000-8000-000000000001"),
        "{usage}"
    );
}

#[test]
fn the_items_of_all_agents_have_one_form() {
    let machine = Machine::new();
    let own = ("claude-code", OWN);
    for (agent, id) in SESSIONS
        .map(|(agent, _, id)| (agent, id))
        .into_iter()
        .chain([own])
    {
        let items = machine.records(&["replay", "--format", "items", id]);
        let live = items[0]["live"].as_array().unwrap();
        let texts: Vec<&Value> = live.iter().map(|item| &item["text"]).collect();
        assert_eq!(
            texts,
            [
                &json!(format!("ask {agent}")),
                &json!(format!("tell {agent}"))
            ]
        );
        assert_eq!(
            (&live[0]["kind"], &live[1]["kind"]),
            (&json!("user"), &json!("assistant"))
        );
        assert_eq!(items[0]["schema"], 1);
        assert!(items[0]["branches"].is_array() && items[0]["compacted"].is_array());
    }
}

/// Returns the texts of blocks, those of results included.
fn texts_of(content: &Value) -> Vec<String> {
    let Some(blocks) = content.as_array() else {
        return content.as_str().map(str::to_owned).into_iter().collect();
    };
    let of_block = |block: &Value| match block["type"].as_str() {
        Some("tool_result") => vec![texts_of(&block["content"]).join("\n")],
        Some("text") => texts_of(&block["text"]),
        _ => Vec::new(),
    };
    blocks.iter().flat_map(of_block).collect()
}

/// What a compaction preserved is sent behind its summary, wherever a person sees it.
#[test]
fn the_live_items_of_claude_code_are_those_of_its_request() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/client");
    let mut compared = 0;
    for file in fs::read_dir(fixtures).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("COMPACT") || !name.ends_with(".jsonl") {
            continue;
        }
        let run = |arguments: &[&str]| command(arguments).arg(&file).output().unwrap();
        let request = run(&["resume", "--request"]);
        let Ok(request) = serde_json::from_slice::<Value>(&request.stdout) else {
            continue;
        };
        let messages = request
            .as_array()
            .or_else(|| request["messages"].as_array());
        let sent = messages.unwrap().iter();
        let sent: Vec<String> = sent
            .flat_map(|message| texts_of(&message["content"]))
            .collect();
        let items = run(&["replay", "--format", "items"]);
        let items: Value = serde_json::from_slice(&items.stdout).unwrap();
        let live = items["live"].as_array().unwrap().iter();
        let live = live.filter_map(|item| item["text"].as_str().or(item["output"].as_str()));
        let live: Vec<&str> = live.filter(|text| !text.is_empty()).collect();
        assert_eq!(live, sent, "{name}");
        compared += 1;
    }
    assert!(compared > 15, "{compared}");
}

#[test]
fn no_command_changes_the_session_of_another_agent() {
    let machine = Machine::new();
    let before =
        |machine: &Machine| SESSIONS.map(|(_, file, _)| fs::read(machine.path(file)).unwrap());
    let bytes = before(&machine);
    for (agent, _, id) in SESSIONS {
        let commands: [&[&str]; 5] = [
            &["append", id],
            &["repair", id, "--keep-id"],
            &["repair", id, "--salvage"],
            &["fork", id],
            &["merge", id, id, "--out", "merged.jsonl"],
        ];
        for command in commands {
            let output = machine.run(command);
            assert!(!output.status.success(), "{command:?}");
            let text = stderr(&output);
            assert!(
                text.contains(&format!("a session of {agent}")),
                "{command:?}: {text}"
            );
        }
    }
    assert_eq!(before(&machine), bytes);
    assert!(!Path::new(&machine.path("merged.jsonl")).exists());
}

#[test]
fn damage_of_a_source_is_named_and_unknown_records_are_no_damage() {
    let machine = Machine::new();
    let (_, file, id) = SESSIONS[1];
    let mut lines = records("pi", id);
    lines.push(json!({ "type": "novel", "id": "n", "parentId": "b", "timestamp": TIME }));
    machine.write(file, &lines);
    let unknown = machine.run(&["verify", id]);
    assert_eq!(unknown.status.code(), Some(0), "{}", stdout(&unknown));
    assert!(
        stdout(&unknown).contains("I-UNKNOWN"),
        "{}",
        stdout(&unknown)
    );
    let mut text = fs::read_to_string(machine.path(file)).unwrap();
    text.push_str("not a record\n");
    fs::write(machine.path(file), text).unwrap();
    let damaged = machine.run(&["verify", "--json", id]);
    assert_eq!(damaged.status.code(), Some(1));
    let report: Value = serde_json::from_str(&stdout(&damaged)).unwrap();
    assert_eq!(report["agent"], "pi");
    let findings = report["findings"].as_array().unwrap();
    let damage = findings
        .iter()
        .find(|finding| finding["code"] == "I-DAMAGE");
    assert!(damage.unwrap()["detail"].as_str().unwrap().contains(file));
    let replay = machine.run(&["replay", id]);
    assert!(
        stderr(&replay).contains("bytes outside of records"),
        "{}",
        stderr(&replay)
    );
}

#[test]
fn what_an_agent_adds_to_a_prompt_is_not_shown_as_words_of_the_person() {
    let machine = Machine::new();
    let (agent, file, id) = SESSIONS[4];
    let mut lines = records(agent, id);
    let time = "<current_datetime>2026-01-02T03:04:05.000+00:00</current_datetime>";
    lines[1]["data"]["transformedContent"] = json!(format!("{time}\n\nask copilot"));
    machine.write(file, &lines);
    let rows = machine.records(&["list", "--agent", agent, "--json"]);
    assert_eq!(rows[0]["firstPrompt"], "ask copilot");
    let shown = machine.text(&["replay", id]);
    assert!(shown.contains("user       ask copilot\n"), "{shown}");
    assert!(shown.contains(&format!("client     {time}\n")), "{shown}");
    let drawn = machine.text(&["tree", id]);
    assert!(drawn.contains("● ask copilot"), "{drawn}");
    // The agent sends both, and so does a resume.
    let request = machine.text(&["resume", id, "--request"]);
    assert!(request.contains(time), "{request}");
}

#[test]
fn figures_of_a_compaction_that_the_agent_does_not_store_are_not_shown() {
    let machine = Machine::new();
    let (agent, file, id) = SESSIONS[4];
    let mut lines = records(agent, id);
    lines.push(json!({ "type": "session.compaction_complete", "id": "e8", "timestamp": TIME, "parentId": null,
        "data": { "success": true, "summaryContent": "so far" } }));
    machine.write(file, &lines);
    for shown in [
        machine.text(&["replay", id, "--in-context"]),
        machine.text(&["replay", id]),
        machine.text(&["tree", id]),
    ] {
        assert!(shown.contains("compacted"), "{shown}");
        assert!(!shown.contains("tokens before"), "{shown}");
        assert!(!shown.contains("(auto)"), "{shown}");
    }
}
