//! Sessions handed over to other agents: `resume --to`, `convert`, `export --to`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::{Machine, OWN, SESSIONS};
use crate::{stderr, stdout};

/// The agents that a session can be handed over to, with their home folders.
const TARGETS: [(&str, &str); 6] = [
    ("claude-code", ".claude"),
    ("codex", ".codex"),
    ("pi", ".pi/agent"),
    ("qwen", ".qwen"),
    ("gemini", ".gemini"),
    ("copilot", ".copilot"),
];

/// The agents that have a session, with its id.
fn sources() -> Vec<(&'static str, &'static str)> {
    let others = SESSIONS.iter().map(|(agent, _, id)| (*agent, *id));
    others.chain([("claude-code", OWN)]).collect()
}

/// Returns the files of a machine with their bytes, without those that reading makes.
fn files(machine: &Machine) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, files);
            } else {
                let bytes = fs::read(&path).unwrap();
                files.insert(path, bytes);
            }
        }
    }
    let mut all = BTreeMap::new();
    add(&machine.path(""), &mut all);
    all.retain(|path, _| !path.starts_with(machine.path("cache")));
    all
}

/// Returns the texts that go to the model when a session continues.
fn live(machine: &Machine, session: &str) -> Vec<(String, String)> {
    let items = machine.records(&["replay", "--format", "items", session]);
    let live = items[0]["live"].as_array().unwrap().iter();
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    live.map(|item| (text(item, "kind"), text(item, "text")))
        .collect()
}

fn said(agent: &str) -> Vec<(String, String)> {
    [("user", "ask"), ("assistant", "tell")]
        .map(|(kind, verb)| (kind.to_owned(), format!("{verb} {agent}")))
        .into()
}

#[test]
fn a_session_of_each_agent_continues_in_each_agent() {
    for (agent, id) in sources() {
        for (target, home) in TARGETS {
            let machine = Machine::new();
            let before = files(&machine);
            let planned = &machine.records(&["resume", id, "--to", target, "--json"])[0];
            assert_eq!(
                files(&machine),
                before,
                "{agent} to {target}: nothing is written"
            );
            assert_eq!(planned["written"], false);
            assert_eq!(planned["kind"], "handOver");
            assert_eq!(planned["schema"], 1);

            let written = machine.records(&["resume", id, "--to", target, "--write", "--json"]);
            let written = &written[0];
            assert_eq!(written["written"], true);
            assert_eq!(written["sourceAgent"], agent);
            assert_eq!(written["sourceSessionId"], id);
            assert_eq!(written["target"], target);
            assert_eq!(
                written["report"]["carried"], 2,
                "{agent} to {target}: {written}"
            );
            assert_eq!(written["environment"], json!({}));
            let (new, main) = (&written["sessionId"], &written["files"][0]["path"]);
            let main = Path::new(main.as_str().unwrap());
            assert!(main.starts_with(machine.path(home)), "{main:?}");
            let bytes = fs::metadata(main).unwrap().len();
            assert_eq!(written["files"][0]["bytes"], bytes, "{agent} to {target}");
            let command: Vec<&str> = written["command"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap())
                .collect();
            assert!(
                command.join(" ").ends_with(new.as_str().unwrap()),
                "{command:?}"
            );
            for (path, bytes) in &before {
                let now = fs::read(path).unwrap();
                assert!(
                    now.starts_with(bytes) || path.ends_with("projects.json"),
                    "{path:?}"
                );
            }
            let new = new.as_str().unwrap();
            assert_eq!(live(&machine, new), said(agent), "{agent} to {target}");
        }
    }
}

#[test]
fn a_person_reads_what_is_lost_and_how_to_continue() {
    let machine = Machine::new();
    let (_, _, pi) = SESSIONS[1];
    let planned = machine.text(&["resume", pi, "--to", "codex"]);
    assert!(
        planned.contains("can be handed over to Codex; --write does it"),
        "{planned}"
    );
    assert!(planned.contains("2 of 2 items"), "{planned}");
    assert!(
        planned.contains("not pi-test"),
        "the model stays behind: {planned}"
    );
    assert!(!planned.contains("to continue"), "{planned}");
    let written = machine.text(&["resume", pi, "--to", "codex", "--write"]);
    let command = "to continue: cd '/src' && codex resume ";
    assert!(written.contains(command), "{written}");
}

#[test]
fn a_home_folder_elsewhere_is_part_of_the_command() {
    let machine = Machine::new();
    let other = machine.path("other");
    fs::create_dir(&other).unwrap();
    let home = other.to_str().unwrap();
    let to = [
        "resume",
        OWN,
        "--to",
        "codex",
        "--write",
        "--target-home",
        home,
    ];
    let text = machine.text(&to);
    assert!(
        text.contains(&format!("CODEX_HOME='{home}' codex resume ")),
        "{text}"
    );
    let items = machine.records(&[
        "replay", "--agent", "codex", "--root", home, "--format", "items", "latest",
    ]);
    assert_eq!(items[0]["live"][1]["text"], "tell claude-code");
}

#[test]
fn what_cannot_be_handed_over_is_refused_and_nothing_is_made() {
    let machine = Machine::new();
    fs::remove_dir_all(machine.path(".qwen")).unwrap();
    let empty = machine.path("empty.jsonl");
    fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    let before = files(&machine);
    let refused: [(&[&str], &str); 8] = [
        (
            &["resume", OWN, "--to", "cursor", "--write"],
            "claude-code, codex, pi, qwen, gemini, copilot",
        ),
        (
            &["resume", OWN, "--to", "qwen", "--write"],
            "Qwen Code was not used on this machine",
        ),
        (
            &[
                "resume",
                OWN,
                "--to",
                "codex",
                "--write",
                "--target-home",
                "nowhere",
            ],
            "no such folder",
        ),
        (&["resume", "-", "--to", "codex"], "standard input"),
        (
            &["resume", "nothing-has-this-name", "--to", "codex"],
            "no such file or session",
        ),
        (
            &["resume", OWN, "--to", "codex", "--at", "99", "--write"],
            "no line 99",
        ),
        (&["resume", empty, "--to", "codex", "--write"], "empty"),
        (
            &["convert", OWN, OWN, "--to", "codex"],
            "several sessions need a folder",
        ),
    ];
    for (command, why) in refused {
        let output = machine.run(command);
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        assert!(
            stderr(&output).contains(why),
            "{command:?}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{command:?}");
    }
    assert_eq!(files(&machine), before);
}

#[test]
fn the_conversation_ends_at_the_entry_that_is_named() {
    for (agent, id) in sources() {
        for option in ["--at", "--leaf"] {
            let machine = Machine::new();
            let ids = machine.text(&["replay", "--format", "ids", id]);
            let prompt = ids.lines().next().unwrap();
            let line = prompt.split_whitespace().next().unwrap();
            let to = [
                "resume", id, "--to", "pi", "--write", "--json", option, line,
            ];
            let written = &machine.records(&to)[0];
            let new = written["sessionId"].as_str().unwrap();
            let mut expected = said(agent)[..1].to_vec();
            if agent == "claude-code" {
                // Claude Code itself ends a prompt without an answer so when it continues.
                expected.push(("assistant".into(), "No response requested.".into()));
            }
            assert_eq!(live(&machine, new), expected, "{agent} {option}");
        }
    }
}

#[test]
fn a_converted_session_goes_to_standard_output_a_file_or_a_folder() {
    let machine = Machine::new();
    let output = machine.run(&["convert", OWN, "--to", "pi"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let first: Value = serde_json::from_str(stdout(&output).lines().next().unwrap()).unwrap();
    assert_eq!(first["type"], "session");
    assert!(
        stderr(&output).contains("2 of 2 items arrive"),
        "{}",
        stderr(&output)
    );

    let file = machine.path("copy.jsonl");
    let to_file = ["convert", OWN, "--to", "pi", "-o", file.to_str().unwrap()];
    machine.text(&to_file);
    assert_eq!(live(&machine, file.to_str().unwrap()), said("claude-code"));
    let again = machine.run(&to_file);
    assert_eq!(again.status.code(), Some(1), "{}", stderr(&again));
    let forced = machine.records(&[&to_file[..], &["--force", "--json"]].concat());
    assert_eq!(
        forced[0]["files"][0]["bytes"],
        fs::metadata(&file).unwrap().len()
    );

    let folder = machine.path("folder/new");
    let (to, name) = (["--to", "pi", "-o"], folder.to_str().unwrap());
    let ids = sources().into_iter().map(|(_, id)| id);
    let many: Vec<&str> = ["convert"]
        .into_iter()
        .chain(ids)
        .chain(to)
        .chain([name])
        .collect();
    assert_eq!(machine.text(&many).lines().count(), sources().len());
    let listed = machine.records(&["list", "--json", "--agent", "pi", "--root", name]);
    let prompts: Vec<&str> = listed
        .iter()
        .map(|row| row["firstPrompt"].as_str().unwrap())
        .collect();
    for (agent, _) in sources() {
        assert!(prompts.contains(&&*format!("ask {agent}")), "{prompts:?}");
    }
    let all = machine.records(&[
        "convert", "--all", "--agent", "gemini", "--to", "codex", "-o", name, "--json",
    ]);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["sourceAgent"], "gemini");
}

#[test]
fn sessions_that_can_be_converted_are_when_others_cannot() {
    let machine = Machine::new();
    fs::write(machine.path("empty.jsonl"), "").unwrap();
    let folder = machine.path("out");
    let output = machine.run(&[
        "convert",
        "empty.jsonl",
        OWN,
        "--to",
        "codex",
        "--out",
        folder.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output).lines().count(), 1);
    assert!(
        stderr(&output).contains("1 session not converted"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn files_for_other_programs_are_written_and_read_again() {
    let machine = Machine::new();
    for (format, name) in [("atif", "t.json"), ("acp", "u.jsonl")] {
        for (agent, id) in sources() {
            machine.text(&["export", id, "--to", format, "--out", name, "--force"]);
            let file = machine.path(name);
            let file = file.to_str().unwrap();
            let command = ["resume", file, "--to", "claude-code", "--write", "--json"];
            let written = &machine.records(&command)[0];
            assert_eq!(written["sourceAgent"], format);
            let new = written["sessionId"].as_str().unwrap();
            assert_eq!(live(&machine, new), said(agent), "{agent} by {format}");
            let codex = machine.text(&["convert", file, "--to", "codex"]);
            assert!(codex.contains(&format!("tell {agent}")), "{codex}");
        }
    }
}

#[test]
fn an_export_replaces_secrets_and_other_commands_do_on_request() {
    const SECRET: &str = "ghp_1234567890abcdefghijklmnopqrstuvwxyz12";
    let machine = Machine::new();
    let (_, file, id) = SESSIONS[1];
    let text = fs::read_to_string(machine.path(file)).unwrap();
    fs::write(machine.path(file), text.replace("ask pi", SECRET)).unwrap();
    let has_secret = |arguments: &[&str]| machine.text(arguments).contains(SECRET);
    for format in ["atif", "acp"] {
        assert!(!has_secret(&["export", id, "--to", format]));
        assert!(has_secret(&["export", id, "--to", format, "--no-redact"]));
    }
    assert!(has_secret(&["convert", id, "--to", "codex"]));
    assert!(!has_secret(&["convert", id, "--to", "codex", "--redact"]));
    let record = &machine.records(&["convert", id, "--to", "codex", "--redact", "--json"])[0];
    assert_eq!(record["redactions"], 1);
}

/// A session that was handed over already is there: what it has is not written a second time. One that grew since is another one.
#[test]
fn a_session_is_handed_over_once_until_it_grows() {
    for (target, _) in TARGETS {
        let machine = Machine::new();
        let hand_over = ["resume", OWN, "--to", target, "--write", "--json"];
        let first = machine.records(&hand_over).remove(0);
        let after = files(&machine);
        let again = machine.run(&hand_over);
        assert_eq!(again.status.code(), Some(2), "{target}");
        let error: Value = serde_json::from_str(stderr(&again).lines().next().unwrap()).unwrap();
        assert_eq!(error["error"]["kind"], "exists", "{target}: {error}");
        let path = first["files"][0]["path"].as_str().unwrap();
        assert_eq!(error["error"]["path"], path, "{target}");
        assert_eq!(files(&machine), after, "{target}: nothing is written");

        let source = machine.path(&format!(".claude/projects/-src/{OWN}.jsonl"));
        let text = fs::read_to_string(&source).unwrap();
        let last = text.lines().next_back().unwrap();
        let mut entry: Value = serde_json::from_str(last).unwrap();
        entry["parentUuid"] = entry["uuid"].clone();
        entry["uuid"] = json!("99999999-2222-4333-8444-555555555555");
        fs::write(&source, format!("{text}{entry}\n")).unwrap();
        let grown = machine.records(&hand_over).remove(0);
        assert_ne!(grown["sessionId"], first["sessionId"], "{target}");
        assert_ne!(grown["files"][0]["path"], path, "{target}");
    }
}

#[test]
fn two_conversions_of_a_session_have_the_same_bytes() {
    for (agent, id) in sources() {
        for (target, _) in TARGETS {
            let machine = Machine::new();
            let convert = || machine.run(&["convert", id, "--to", target]).stdout;
            let first = convert();
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(!first.is_empty(), "{agent} to {target}");
            assert!(convert() == first, "{agent} to {target}");
        }
    }
}
