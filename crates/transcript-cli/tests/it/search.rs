//! `transcript search`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{command, stderr, stdout};

const MAPS: &str = "0a5e1b2c-1111-4222-8333-444455556666";
const FORK: &str = "0a5e1b2c-9999-4222-8333-444455556666";
const NOTES: &str = "7b000000-0000-4000-8000-000000000000";

#[expect(clippy::needless_pass_by_value, reason = "shorter calls")]
fn entry(uuid: &str, parent: Option<&str>, day: u32, branch: &str, content: Value) -> Value {
    let kind = if uuid.starts_with('u') {
        "user"
    } else {
        "assistant"
    };
    json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
        "timestamp": format!("2026-03-0{day}T10:00:00.000Z"), "sessionId": MAPS, "cwd": "/work/maps",
        "gitBranch": branch,
        "message": {"role": kind, "id": uuid, "model": "claude-m-20250101", "content": content}})
}

fn write(path: &Path, lines: &[Value]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path, lines).unwrap();
}

/// Two sessions of a project, the second one a fork of the first, which has a rewound prompt and a
/// subagent; and one of another project, with control characters.
fn root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("-work-maps");
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let first = entry(
        "u1",
        None,
        1,
        "main",
        text("Draw the coast near the lighthouse"),
    );
    let call = json!([{"type": "tool_use", "id": "t1", "name": "Bash",
        "input": {"command": "grep -n lighthouse charts.txt"}}]);
    let lines: String = (1..30).map(|line| format!("{line}: a bay\n")).collect();
    let result = json!([{"type": "tool_result", "tool_use_id": "t1",
        "content": format!("{lines}30: the Lighthouse at Caf\u{e9} Point\n31: rocks\n32: a 灯台 in the east\n")}]);
    let lines = [
        first.clone(),
        entry("a2", Some("u1"), 1, "main", call),
        entry("u3", Some("a2"), 1, "main", result),
        entry(
            "u4",
            Some("u3"),
            1,
            "main-2",
            text("Now the harbour, \"rewound\""),
        ),
        entry(
            "u5",
            Some("u3"),
            2,
            "tides",
            text(
                "Now the harbour, please: the whole of it, with every buoy and light, so that a ship finds its way in at night and in fog",
            ),
        ),
        entry("a6", Some("u5"), 2, "tides", text("The harbour is drawn")),
        json!({"type": "custom-title", "customTitle": "Charts of the coast", "sessionId": MAPS}),
    ];
    write(&project.join(format!("{MAPS}.jsonl")), &lines);
    let agent = json!({"type": "user", "uuid": "x1", "parentUuid": null, "isSidechain": true,
        "agentId": "a1b2c3d4", "sessionId": MAPS, "timestamp": "2026-03-02T11:00:00.000Z",
        "message": {"role": "user", "content": "Look for depths in the harbour"}});
    let agents = project.join(MAPS).join("subagents");
    write(&agents.join("agent-a1b2c3d4.jsonl"), &[agent]);
    write(&project.join(format!("{FORK}.jsonl")), &[first]);
    let mut other = entry(
        "u9",
        None,
        5,
        "main",
        json!("\u{1b}[31mRed\u{1b}[0m harbour \u{1b}]52;c;eA==\u{7} \u{202e}bell\u{9b}"),
    );
    other["cwd"] = "/work/\u{1b}[2Jnotes".into();
    write(
        &root.path().join(format!("-work-notes/{NOTES}.jsonl")),
        &[other],
    );
    root
}

fn run_in(root: &Path, columns: &str, arguments: &[&str]) -> Output {
    let mut command = command(&["--root", "."]);
    command.args(arguments).current_dir(root);
    command.env("COLUMNS", columns).stdin(Stdio::null());
    command.output().unwrap()
}

fn run(root: &Path, arguments: &[&str]) -> Output {
    run_in(root, "80", arguments)
}

fn records(root: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = run(root, &[&["search", "--json"], arguments].concat());
    let text = stdout(&output);
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = records
        .last()
        .unwrap_or_else(|| panic!("{}", stderr(&output)));
    assert_eq!(end["kind"], "end");
    let code = if end["hits"] == 0 { 1 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    records
}

/// Returns the sorted uuids of the hits.
fn uuids(root: &Path, arguments: &[&str]) -> Vec<String> {
    let mut records = records(root, arguments);
    records.pop();
    let uuids = records
        .iter()
        .map(|hit| hit["uuid"].as_str().unwrap_or("-"));
    let mut uuids: Vec<_> = uuids.map(str::to_owned).collect();
    uuids.sort();
    uuids
}

#[test]
fn hits_are_printed_below_their_sessions_at_any_width() {
    let root = root();
    for columns in ["40", "80", "120"] {
        let output = run_in(root.path(), columns, &["search", "harbour"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        insta::assert_snapshot!(format!("search_in_{columns}_columns"), text);
        let width = columns.parse().unwrap();
        for line in text.lines() {
            let is_name = line.contains(".jsonl:");
            assert!(is_name || line.chars().count() <= width, "{line}");
        }
    }
    let output = run(root.path(), &["search", "coast", "lighthouse"]);
    insta::assert_snapshot!("search_with_copies", stdout(&output));
}

#[test]
fn json_has_the_promised_fields() {
    let root = root();
    let found = records(root.path(), &["rocks"]);
    let text = serde_json::to_string_pretty(&found).unwrap();
    insta::assert_snapshot!("search_json", text);
    let [hit, end] = &records(root.path(), &["coast", "near"])[..] else {
        panic!("not one hit");
    };
    assert_eq!(hit["also"].as_array().unwrap().len(), 1);
    assert_eq!((&end["hits"], &end["sessions"]), (&1.into(), &1.into()));
    assert_eq!(end["scanned"], 3);
    let hit = &records(root.path(), &["agent:a1b2c3d4"])[0];
    assert_eq!(
        (&hit["agentId"], &hit["match"]),
        (&"a1b2c3d4".into(), &Value::Null)
    );
}

#[test]
fn matches_are_counted_in_characters() {
    let root = root();
    let hit = &records(root.path(), &["灯台"])[0];
    let snippet: Vec<char> = hit["snippet"].as_str().unwrap().chars().collect();
    let place = |at: usize| hit["match"][at].as_u64().unwrap() as usize;
    let found: String = snippet[place(0)..place(1)].iter().collect();
    assert_eq!(found, "灯台");
}

#[test]
fn the_options_are_filters_of_the_query() {
    let root = root();
    let root = root.path();
    let cases: [(&[&str], &[&str]); 20] = [
        (&["harbour"], &["a6", "u4", "u5", "u9", "x1"]),
        (&["harbour", "--role", "assistant"], &["a6"]),
        (
            &["--role", "tool", "--role", "assistant"],
            &["a2", "a6", "u3"],
        ),
        // A query and an option must both hold.
        (
            &["harbour role:assistant role:user", "--role", "assistant"],
            &["a6"],
        ),
        (&["role:tool", "--role", "user"], &[]),
        (&["role:tool", "--role", "user", "--role", "tool"], &["u3"]),
        (&["lighthouse", "--tool", "Bash"], &["a2", "u3"]),
        (&["--text", "CAFÉ point"], &["u3"]),
        (&["--text", "\"REWOUND\""], &["u4"]),
        (&["--text", "a.bay"], &[]),
        (&["now", "--text", "fog"], &["u5"]),
        (
            &["harbour", "--since", "2026-03-02T10:30:00Z"],
            &["u9", "x1"],
        ),
        (&["harbour", "--until", "2026-03-01T12:00:00Z"], &["u4"]),
        (&["harbour", "--branch", "main"], &["u9"]),
        (&["harbour", "--branch", "main-2"], &["u4"]),
        (
            &["harbour", "--project", "/work/maps"],
            &["a6", "u4", "u5", "x1"],
        ),
        (&["harbour", "--in", "7b00"], &["u9"]),
        (
            &["harbour", "--in", "-work-maps"],
            &["a6", "u4", "u5", "x1"],
        ),
        (
            &["harbour", "--in", ".", "--sidechains"],
            &["a6", "u4", "u5", "u9", "x1"],
        ),
        (&["harbour branch:rewound"], &["u4"]),
    ];
    for (arguments, expected) in cases {
        assert_eq!(uuids(root, arguments), expected, "{arguments:?}");
    }
    for limit in ["-n", "--limit"] {
        let found = records(root, &["harbour", limit, "2"]);
        assert_eq!(found.len(), 3);
        assert_eq!(found[2]["hits"], 5);
    }
    let found = records(root, &["--sort", "time", "harbour", "session:0a5e1b2c-1"]);
    let lines: Vec<_> = found.iter().map(|hit| hit["line"].as_u64()).collect();
    assert_eq!(lines, [Some(6), Some(5), Some(4), Some(1), None]);
    assert_eq!(uuids(root, &["harbour", "--no-cache"]).len(), 5);
}

#[test]
fn only_sessions_or_numbers_are_printed_on_request() {
    let root = root();
    let root = root.path();
    let output = run(root, &["search", "--files", "harbour", "-without"]);
    assert_eq!(output.status.code(), Some(2));
    let output = run(root, &["search", "--files", "harbour -drawn"]);
    let text = stdout(&output);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let paths = [
        format!("./-work-maps/{MAPS}.jsonl"),
        format!("./-work-notes/{NOTES}.jsonl"),
    ];
    assert_eq!(lines, paths);
    let found = records(root, &["--files", "harbour", "--limit", "1"]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["kind"], "session");
    let found = records(root, &["--files", "buoy"]);
    let expected = json!({"kind": "session", "schema": 1, "sessionId": MAPS,
        "path": paths[0], "project": "-work-maps", "title": "Charts of the coast",
        "modified": "2026-03-02T10:00:00.000Z", "hits": 1});
    assert_eq!(found[0], expected);

    let output = run(root, &["search", "--count", "harbour"]);
    assert_eq!(stdout(&output), "5 hits in 2 sessions\n");
    assert_eq!(records(root, &["--count", "harbour"]).len(), 1);
    let output = run(root, &["search", "--count", "volcano"]);
    assert_eq!(stdout(&output), "0 hits in 0 sessions\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn lines_around_a_match_are_shown_when_they_are_asked_for() {
    let root = root();
    let hit = &records(root.path(), &["point", "-C", "1"])[0];
    let expected = "29: a bay\n30: the Lighthouse at Café Point\n31: rocks";
    assert_eq!(
        (&hit["snippet"], &hit["match"]),
        (&expected.into(), &json!([37, 42]))
    );
    let output = run(root.path(), &["search", "point", "--context", "1"]);
    let shown = stdout(&output);
    let expected = "    29: a bay\n    30: the Lighthouse at Café Point\n    31: rocks\n";
    assert!(shown.ends_with(expected), "{shown}");
    let hit = &records(root.path(), &["point", "-C", "0"])[0];
    assert_eq!(hit["snippet"], "30: the Lighthouse at Café Point");
}

#[test]
fn sessions_that_have_all_terms_in_different_entries_are_named() {
    let root = root();
    for (arguments, is_named) in [
        (&["search", "coast", "fog"][..], true),
        (&["search", "coast fog -volcano", "--role", "user"], true),
        (&["search", "coast", "volcano"], false),
        (&["search", "coast fog", "--role", "assistant"], false),
        (&["search", "coast", "fog", "--count"], false),
    ] {
        let output = run(root.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = stderr(&output);
        let hint = format!(
            "different entries of the same session do: {}\n",
            &MAPS[..10]
        );
        assert_eq!(said.ends_with(&hint), is_named, "{arguments:?}: {said}");
    }
}

#[test]
fn a_typing_error_names_the_nearest_word_of_titles_and_prompts() {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("-work");
    fs::create_dir(&project).unwrap();
    let line = |text: &str| {
        format!(
            r#"{{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        )
    };
    let text = line("Receive the Größe, and a Cat.") + "\n";
    fs::write(project.join(format!("{MAPS}.jsonl")), text).unwrap();
    for (query, expected) in [
        (&["recieve"][..], Some("recieve: did you mean receive?")),
        (&["RECIVE"], Some("RECIVE: did you mean receive?")),
        (&["receive", "größr"], Some("größr: did you mean größe?")),
        (&["volcano"], None),
        (&["bat"], None),
        (&["role:assistant", "receive"], None),
    ] {
        let output = run(root.path(), &[&["search"], query].concat());
        assert_eq!(output.status.code(), Some(1), "{query:?}");
        let said = stderr(&output);
        let found = said.lines().find(|line| line.contains("did you mean"));
        assert_eq!(found, expected, "{query:?}: {said}");
    }
}

#[test]
fn search_without_hits_has_its_exit_code_and_a_note() {
    let root = root();
    let output = run(root.path(), &["search", "volcano"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        (stdout(&output), stderr(&output)),
        (String::new(), "no hits in 3 sessions\n".to_owned())
    );
    let nowhere = tempfile::tempdir().unwrap();
    assert_eq!(run(nowhere.path(), &["search", "x"]).status.code(), Some(1));
}

#[test]
fn a_query_that_is_not_valid_is_refused_with_the_place() {
    let root = root();
    let cases: [(&[&str], &str); 8] = [
        (
            &["fine \"not closed"],
            "the quote is not closed (character 5 of the query)",
        ),
        (&["x", "/a(/"], "(character 4 of the query)"),
        (
            &["role:king"],
            "expected one of user, assistant, tool, system",
        ),
        (&["since:soon"], "expected a time such as"),
        (
            &["x", "--since", "soon"],
            "--since: expected a time such as",
        ),
        (&["--", "-x"], "the query only excludes"),
        (&[], "empty query"),
        (&["x", "--in", "nowhere.jsonl"], "no such file"),
    ];
    for (arguments, expected) in cases {
        let output = run(root.path(), &[&["search"], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(message.contains(expected), "{message}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn no_control_character_is_printed() {
    let root = root();
    let is_bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    for arguments in [
        &["harbour"][..],
        &["bell"],
        &["harbour", "--context", "2"],
        &["\u{1b}[31m"],
        &["--files", "bell"],
        &["bell", "--json"],
        &["\u{1b}]0;x\u{7}nothing"],
    ] {
        let output = run(root.path(), &[&["search"], arguments].concat());
        assert!(!stdout(&output).contains(is_bad), "{}", stdout(&output));
        assert!(!stderr(&output).contains(is_bad), "{}", stderr(&output));
    }
    // Colours that a tool printed are removed, other sequences are shown.
    let shown = stdout(&run(root.path(), &["search", "bell"]));
    assert!(
        shown.contains("Red harbour <ESC>]52;c;eA==<U+0007>"),
        "{shown}"
    );
}

#[test]
fn other_commands_take_what_search_prints() {
    let root = root();
    let root = root.path();
    let ids = |name: &str| -> Vec<String> {
        let output = run(root, &["replay", "--format", "ids", name]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        let uuids = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(2));
        uuids.map(str::to_owned).collect()
    };
    // A call comes with its result.
    assert_eq!(ids("0a5e1b2c-1:1"), ["u1"]);
    assert_eq!(ids("0a5e1b2c-1:2"), ["u1", "a2", "u3"]);
    // A rewound prompt is the end of its own branch; a title stands for the entry before it.
    assert_eq!(ids("0a5e1b2c-1:4"), ["u1", "a2", "u3", "u4"]);
    assert_eq!(ids("0a5e1b2c-1:7").last().unwrap(), "a6");
    let agent = format!("./-work-maps/{MAPS}/subagents/agent-a1b2c3d4.jsonl:1");
    assert_eq!(ids(&agent), ["x1"]);
    let shown = stdout(&run(root, &["search", "harbour"]));
    let names = shown
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| name.contains("0a5e1b2c-1:")).collect();
    assert_eq!(names.len(), 3, "{shown}");
    for name in names {
        assert!(!ids(name).is_empty(), "{name}");
    }
    let output = run(root, &["replay", "0a5e1b2c-1:99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("there is no entry in line 99"),
        "{}",
        stderr(&output)
    );
    let output = run(root, &["resume", "--json", "0a5e1b2c-1:4"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["leaf"], "u4");
    let output = run(root, &["fork", "0a5e1b2c-1:4", "--out", "copy.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        fs::read_to_string(root.join("copy.jsonl"))
            .unwrap()
            .contains("rewound")
    );
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let root = tempfile::tempdir().unwrap();
    let lines: Vec<Value> = (0..3000)
        .map(|number| {
            let text = json!(format!("harbour {number} {}", "and more ".repeat(20)));
            entry(&format!("u{number}"), None, 1, "main", text)
        })
        .collect();
    write(&root.path().join(format!("-p/{NOTES}.jsonl")), &lines);
    for format in [&["--json"][..], &["--limit", "3000"]] {
        let mut command = command(&["search", "--root", ".", "harbour"]);
        command.args(format).current_dir(root.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut some = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(stderr(&output), "");
    }
}

/// The paths of all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect();
    files.sort();
    files
}

#[test]
fn filters_are_kept_in_the_cache_folder_and_change_no_answer() {
    let (root, caches) = (root(), tempfile::tempdir().unwrap());
    let search = |arguments: &[&str]| {
        let mut command = command(&["--root", ".", "search"]);
        command.args(arguments).current_dir(root.path());
        command.env("XDG_CACHE_HOME", caches.path());
        stdout(&command.stdin(Stdio::null()).output().unwrap())
    };
    let words = ["harbour", "nowhere-at-all", "role:tool"];
    let read = words.map(|word| search(&["--no-cache", word]));
    assert!(files(caches.path()).is_empty());
    for what in ["cold", "warm"] {
        assert_eq!(words.map(|word| search(&[word])), read, "{what}");
        let kept = files(&caches.path().join("transcript"));
        assert_eq!(kept.len(), 2, "one for each project: {kept:?}");
    }
    for kept in files(caches.path()) {
        fs::write(kept, "something else").unwrap();
    }
    assert_eq!(words.map(|word| search(&[word])), read, "damaged");
    fs::remove_dir_all(caches.path().join("transcript")).unwrap();
    assert_eq!(words.map(|word| search(&[word])), read, "deleted");
}

#[test]
fn processes_that_search_at_the_same_time_agree() {
    let (root, caches) = (root(), tempfile::tempdir().unwrap());
    let expected = run(root.path(), &["search", "--no-cache", "harbour"]);
    for _ in 0..10 {
        let started: Vec<_> = (0..6)
            .map(|_| {
                let mut command = command(&["--root", ".", "search", "harbour"]);
                command.env("XDG_CACHE_HOME", caches.path());
                command.env("COLUMNS", "80").current_dir(root.path());
                command.stdin(Stdio::null()).stdout(Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        for process in started {
            let output = process.wait_with_output().unwrap();
            assert_eq!(stdout(&output), stdout(&expected));
        }
        fs::remove_dir_all(caches.path().join("transcript")).unwrap();
    }
}

/// A limit of the size of files, which ends the process by default, does here what a full disk does.
#[cfg(unix)]
#[test]
fn a_cache_folder_without_space_is_not_an_error() {
    let (root, caches) = (root(), tempfile::tempdir().unwrap());
    let expected = run(root.path(), &["search", "--no-cache", "harbour"]);
    for blocks in ["0", "1"] {
        let script = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, "sh", blocks, env!("CARGO_BIN_EXE_transcript")]);
        command.args(["--root", ".", "search", "harbour"]);
        command
            .env("XDG_CACHE_HOME", caches.path())
            .env("TZ", "UTC");
        command.env("COLUMNS", "80").current_dir(root.path());
        // Standard output is a pipe, which has no limit.
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(stderr(&output), "", "{blocks}");
        assert_eq!(stdout(&output), stdout(&expected), "{blocks}");
        let kept = files(caches.path());
        let len = |path: &PathBuf| fs::metadata(path).unwrap().len();
        assert!(kept.iter().all(|path| len(path) <= 1024), "{kept:?}");
    }
}
