//! `transcript list`, and the names of sessions that other commands take.

use std::fs;
use std::path::Path;

use serde_json::Value;
use transcript_format::context_refs::{self, Reference};

use crate::{command, stderr, stdout};

/// A folder of projects with two sessions, the second one newer.
fn projects() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let session = |project: &str, id: &str, day: u32, prompt: &str| {
        let folder = root.path().join(project);
        fs::create_dir_all(&folder).unwrap();
        let line = serde_json::json!({"parentUuid": null, "isSidechain": false, "type": "user", "uuid": "u1",
            "message": {"role": "user", "content": prompt}, "cwd": "/home/ada", "gitBranch": "main",
            "sessionId": id, "timestamp": format!("2026-01-0{day}T00:00:00.000Z")});
        fs::write(folder.join(format!("{id}.jsonl")), format!("{line}\n")).unwrap();
    };
    session("-p", "aaaa1111-0000-4000-8000-000000000001", 1, "first");
    session(
        "-q",
        "aaaa2222-0000-4000-8000-000000000002",
        2,
        "\u{1b}]52;c;x\u{7}海辺の町 \u{202e}second",
    );
    fs::write(root.path().join("-p/0000.jsonl"), "").unwrap();
    root
}

fn run(root: &Path, arguments: &[&str]) -> std::process::Output {
    let root = root.to_str().unwrap();
    let mut command = command(arguments);
    command.args(["--root", root]).current_dir("/");
    command.env("COLUMNS", "100");
    command.output().unwrap()
}

#[test]
fn json_has_the_promised_fields_with_null_for_what_is_unknown() {
    let root = projects();
    let output = run(root.path(), &["list", "--json", "--limit", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let rows: Vec<Value> = text
        .split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 2);
    // The empty file is as new as its file, and comes first.
    assert_eq!(
        (&rows[0]["sessionId"], &rows[0]["bytes"]),
        (&"0000".into(), &0.into())
    );
    let keys: Vec<_> = text[1..]
        .split(['{', ','])
        .filter_map(|member| member.split_once("\":"))
        .map(|(key, _)| key.trim_start_matches('"'))
        .take(18)
        .collect();
    let promised = [
        "schema",
        "kind",
        "sessionId",
        "path",
        "project",
        "cwd",
        "title",
        "titleSource",
        "firstPrompt",
        "lastPrompt",
        "created",
        "modified",
        "bytes",
        "branch",
        "tag",
        "subagents",
        "state",
        "hasFile",
    ];
    assert_eq!(keys, promised);
    assert_eq!(rows[1]["state"], "stalled");
    assert_eq!(rows[1]["title"], Value::Null);
    assert_eq!(rows[1]["modified"], "2026-01-02T00:00:00.000Z");
}

#[test]
fn the_list_for_people_shows_no_control_character() {
    let root = projects();
    let text = stdout(&run(root.path(), &["list", "--color", "never"]));
    assert!(
        text.contains("aaaa2222") && text.contains("海辺の町") && text.contains("(empty)"),
        "{text}"
    );
    let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || c == '\u{202e}';
    assert!(!text.chars().any(bad), "{text:?}");
}

#[test]
fn a_session_is_named_by_its_id_a_unique_start_of_it_or_latest() {
    let root = projects();
    let prompt = |name: &str| {
        let output = run(root.path(), &["replay", name, "--format", "json"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        stdout(&output).contains("\"first\"")
    };
    assert!(prompt("aaaa1111-0000-4000-8000-000000000001"));
    assert!(prompt("AAAA1"));
    assert!(!prompt("aaaa2"));
    assert!(!prompt("latest"));
    for command in ["resume", "tree"] {
        assert_eq!(run(root.path(), &[command, "aaaa1"]).status.code(), Some(0));
    }

    let shown = |name: &str| {
        let output = run(root.path(), &["replay", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        stderr(&output)
    };
    let ambiguous = shown("aaaa");
    assert!(
        ambiguous.contains("aaaa1111-0000") && ambiguous.contains("aaaa2222-0000"),
        "{ambiguous}"
    );
    shown("aaa");
    shown("0000");
    shown("../-p/aaaa1111");
    shown("bbbb");
    shown("aaaa1111.jsonl");
}

#[test]
fn a_folder_of_projects_that_is_not_there_is_an_error() {
    let root = projects();
    let output = run(&root.path().join("none"), &["list"]);
    assert_eq!(output.status.code(), Some(2));
    let output = run(root.path(), &["list", "--project", "/home/ada"]);
    // A header and two sessions.
    assert_eq!(stdout(&output).split_terminator('\n').count(), 3);
}

#[test]
fn a_client_that_has_no_sessions_yet_has_an_empty_list() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = crate::command(arguments);
        command
            .env_remove("CLAUDE_CONFIG_DIR")
            .env("HOME", home.path());
        command.output().unwrap()
    };
    for arguments in [&["list"][..], &["list", "--json"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(run(&["replay", "latest"]).status.code(), Some(2));
    let missing = home.path().join("missing");
    let output = run(&["list", "--root", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn list_in_a_pipe_truncates_nothing() {
    let root = projects();
    let long = format!("start {} end", "word ".repeat(30).trim_end());
    let line = serde_json::json!({"type": "user", "uuid": "u1", "parentUuid": null, "cwd": "/home/ada/src/a/very/long/folder/almanac",
        "gitBranch": "feature/leap-days-in-the-date-parser", "timestamp": "2026-01-03T14:05:00.000Z",
        "message": {"role": "user", "content": long}});
    let id = "bbbb1111-0000-4000-8000-000000000003";
    fs::write(
        root.path().join(format!("-p/{id}.jsonl")),
        format!("{line}\n"),
    )
    .unwrap();
    let text = stdout(&run(root.path(), &["list"]));
    assert!(text.starts_with("SESSION\t"), "{text}");
    let row = text.lines().find(|row| row.contains(id)).unwrap();
    let parts = [
        "2026-01-03 14:05",
        "stalled",
        "/home/ada/src/a/very/long/folder/almanac",
        "feature/leap-days-in-the-date-parser",
        long.as_str(),
    ];
    for part in parts {
        assert!(row.contains(part), "{part}: {row}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_a_row_is_a_line_with_its_folder() {
    let root = projects();
    let binary = env!("CARGO_BIN_EXE_transcript");
    for (columns, has_folder) in [(100, true), (60, true), (50, false)] {
        let root = root.path().display();
        let shell =
            format!("stty cols {columns} rows 30; PAGER=cat '{binary}' list --root '{root}'");
        let script = std::process::Command::new("script")
            .args(["-qec", &shell, "/dev/null"])
            .output();
        let Ok(output) = script else {
            println!("skipped: no `script` on this system");
            return;
        };
        let text = stdout(&output);
        assert_eq!(text.contains("/home/ada"), has_folder, "{text}");
        for line in text.lines() {
            let line = crate::hostile::without_colours(line.trim_end());
            assert!(
                unicode_width::UnicodeWidthStr::width(&*line) <= columns,
                "{columns}: {line}"
            );
        }
    }
}

/// Writes sessions with these prompts and returns the titles that a terminal or a pipe shows.
fn titles(prompts: &[&[&str]], columns: Option<usize>) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("-p")).unwrap();
    for (at, prompts) in prompts.iter().enumerate() {
        let lines = prompts.iter().enumerate().map(|(line, prompt)| {
            let entry = serde_json::json!({"parentUuid": null, "isSidechain": false, "type": "user",
                "uuid": format!("u{line}"), "message": {"role": "user", "content": prompt},
                "cwd": "/p", "timestamp": format!("2026-01-0{}T00:00:0{line}.000Z", 9 - at)});
            format!("{entry}\n")
        });
        let name = format!("-p/aaaa{at}111-0000-4000-8000-000000000001.jsonl");
        fs::write(root.path().join(name), lines.collect::<String>()).unwrap();
    }
    let shown = match columns {
        None => stdout(&run(root.path(), &["list"])),
        Some(columns) => {
            let (binary, root) = (env!("CARGO_BIN_EXE_transcript"), root.path().display());
            let shell = format!(
                "stty cols {columns} rows 30; NO_COLOR=1 PAGER=cat '{binary}' list --root '{root}'"
            );
            let script = std::process::Command::new("script");
            let output = { script }.args(["-qec", &shell, "/dev/null"]).output();
            output.map_or(String::new(), |output| stdout(&output))
        }
    };
    let rows = shown.lines().skip(1).map(|line| line.trim_end());
    let titles = rows.map(|row| {
        let title = &row[row.find("You are").unwrap()..];
        title.split('\t').next().unwrap_or_default().to_owned()
    });
    titles.collect()
}

#[test]
fn sessions_with_the_same_first_prompt_can_be_distinguished() {
    let prompt =
        "You are a futures analyst grounded in the data of the last ten years. Answer in one";
    // Longer than what a list keeps of a prompt.
    let data = "word, with these numbers in mind: ".repeat(8);
    let (oil, tin) = (
        format!("{prompt} {data} and oil"),
        format!("{prompt} {data} and tin"),
    );
    let prompts: [&[&str]; 4] = [
        &[prompt, "and copper?"],
        &[prompt, "and zinc?"],
        &[&oil],
        &[&tin],
    ];
    let whole = titles(&prompts, None);
    assert_eq!(whole[0], format!("{prompt} › and copper?"));
    assert_eq!(whole[1], format!("{prompt} › and zinc?"));
    let ends = [2, 3].map(|at: usize| whole[at].ends_with(["… › …oil", "… › …tin"][at - 2]));
    assert_eq!(ends, [true, true], "{whole:?}");
    // Of the same prompts the answers differ.
    if cfg!(target_os = "linux") {
        for columns in [100, 60] {
            let shown = titles(&prompts, Some(columns));
            if shown.is_empty() {
                println!("skipped: no `script` on this system");
                return;
            }
            for (title, word) in shown.iter().zip(["copper", "zinc", "oil", "tin"]) {
                assert!(
                    title.starts_with("You are") && title.contains(word),
                    "{shown:?}"
                );
            }
        }
    }
}

#[test]
fn every_list_shows_the_question_of_a_prompt_with_references() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("-p");
    fs::create_dir_all(&folder).unwrap();
    let id = "aaaa1111-0000-4000-8000-000000000001";
    let path = folder.join(format!("{id}.jsonl"));
    let references = [Reference::File {
        path: "src/main.rs",
    }; 9];
    let prompt = context_refs::prompt(&references, "Why does\nit fail?").unwrap();
    let line = |uuid: &str, parent: Option<&str>, role: &str, text: &str| {
        let line = serde_json::json!({"parentUuid": parent, "isSidechain": false, "type": role, "uuid": uuid,
            "message": {"role": role, "content": [{"type": "text", "text": text}]}, "sessionId": id,
            "cwd": "/home/ada", "timestamp": "2026-01-01T00:00:00.000Z"});
        format!("{line}\n")
    };
    let lines = [
        line("u1", None, "user", &prompt),
        line("a1", Some("u1"), "assistant", "It lacks a file."),
        line("u2", Some("a1"), "user", "<bash-input>ls -l</bash-input>"),
    ];
    fs::write(&path, lines.concat()).unwrap();
    let question = "Why does it fail?";
    let json = |arguments: &[&str]| {
        let output = stdout(&run(root.path(), arguments));
        let first = output.split('\n').next().unwrap();
        serde_json::from_str::<Value>(first).unwrap()
    };
    let row = json(&["list", "--json"]);
    assert_eq!(row["firstPrompt"], question);
    assert_eq!(row["lastPrompt"], "! ls -l");
    assert_eq!(json(&["search", "--json", "lacks"])["title"], question);
    let path = path.to_str().unwrap();
    for arguments in [&["list"][..], &["search", "lacks"], &["tree", path]] {
        let shown = stdout(&run(root.path(), arguments));
        assert!(shown.contains(question), "{arguments:?}: {shown}");
        assert!(!shown.contains("上下文"), "{arguments:?}: {shown}");
    }
    // A replay shows the references above the question.
    let replayed = stdout(&run(root.path(), &["replay", path]));
    assert_eq!(
        replayed.matches("📄 `src/main.rs`").count(),
        9,
        "{replayed}"
    );
    let forked = run(root.path(), &["fork", path]);
    assert_eq!(forked.status.code(), Some(0), "{}", stderr(&forked));
    let title = json(&["list", "--json", "--limit", "1"])["title"].clone();
    assert_eq!(title, format!("{question} (fork)"));
}

#[test]
fn a_fork_is_listed_where_one_looks_for_it() {
    let root = projects();
    let output = run(root.path(), &["fork", "aaaa1111", "--title", "A copy"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let id = stdout(&output);
    fs::remove_file(root.path().join("-p/0000.jsonl")).unwrap();
    let rows = stdout(&run(root.path(), &["list", "--json"]));
    let first: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!(first["sessionId"], id.trim());
    // The time of the last message is that of the copied one.
    assert_eq!(first["modified"], "2026-01-01T00:00:00.000Z");
    assert!(first["forked"].is_string(), "{first}");
    // Once somebody has continued it, its messages count.
    let path = first["path"].as_str().unwrap();
    let line = r#"{"type":"user","uuid":"n1","parentUuid":null,"isSidechain":false,"timestamp":"2026-01-01T12:00:00.000Z","message":{"role":"user","content":"On"}}"#;
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, format!("{text}{line}\n")).unwrap();
    let rows = stdout(&run(root.path(), &["list", "--json"]));
    let second: Value = serde_json::from_str(rows.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&second["sessionId"], &second["forked"]),
        (&id.trim().into(), &Value::Null)
    );
}

#[test]
fn a_session_of_which_only_subagents_are_left_is_listed() {
    let root = projects();
    let id = "cccc1111-0000-4000-8000-000000000004";
    let folder = root.path().join("-p").join(id).join("subagents");
    fs::create_dir_all(&folder).unwrap();
    let line = format!(
        r#"{{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":true,"agentId":"a1b2c3d4","sessionId":"{id}","cwd":"/home/ada/tides","timestamp":"2026-01-05T00:00:00.000Z","message":{{"role":"user","content":"Find the tides"}}}}"#
    );
    fs::write(folder.join("agent-a1b2c3d4.jsonl"), line + "\n").unwrap();
    // A folder without a subagent says nothing of a session.
    fs::create_dir_all(
        root.path()
            .join("-p/cccc2222-0000-4000-8000-000000000005/tool-results"),
    )
    .unwrap();
    let text = stdout(&run(root.path(), &["list", "--json"]));
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let row = rows.iter().find(|row| row["sessionId"] == id).unwrap();
    assert_eq!(row["hasFile"], false);
    assert_eq!(
        (&row["cwd"], &row["subagents"]),
        (&"/home/ada/tides".into(), &1.into())
    );
    assert_eq!(row["modified"], "2026-01-05T00:00:00.000Z");
    assert_eq!(
        (&row["firstPrompt"], &row["bytes"]),
        (&Value::Null, &0.into())
    );
    assert_eq!(rows.len(), 4);
    let text = stdout(&run(root.path(), &["list"]));
    assert!(
        text.contains("(its file is gone, 1 subagent is left)"),
        "{text}"
    );
    // It is newer than all others, and no conversation to go on with.
    let latest = run(root.path(), &["replay", "--json", "latest"]);
    assert!(stdout(&latest).contains("aaaa2222"), "{}", stdout(&latest));
}
