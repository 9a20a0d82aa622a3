//! The options that choose what is shown mean the same everywhere (docs/cli.md).

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{stderr, stdout, transcript};

const ID: &str = "0a5e1b2c-1111-4222-8333-444455556666";

/// A session of two days and two branches of git, with a rewound prompt and a subagent; and one of
/// another project.
fn root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let entry = |uuid: &str, parent: Option<&str>, at: &str, branch: &str, content: Value| {
        let kind = if uuid.starts_with('u') {
            "user"
        } else {
            "assistant"
        };
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "timestamp": at, "sessionId": ID, "cwd": "/work/maps", "gitBranch": branch,
            "message": {"role": kind, "id": uuid, "model": "claude-m-20250101", "content": content}})
    };
    let (first, second) = ("2026-03-01T10:00:00.000Z", "2026-03-02T10:00:00.000Z");
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let lines = [
        entry("u1", None, first, "main", text("Draw the coast")),
        entry(
            "a2",
            Some("u1"),
            first,
            "main",
            json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}]),
        ),
        entry(
            "u3",
            Some("a2"),
            first,
            "main",
            json!([{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]),
        ),
        entry("u4", Some("u3"), first, "main", text("Now the rivers")),
        entry("u5", Some("u3"), second, "tides", text("Now the harbour")),
        entry(
            "a6",
            Some("u5"),
            second,
            "tides",
            text("The harbour is drawn"),
        ),
    ];
    let project = root.path().join("-work-maps");
    fs::create_dir_all(project.join(ID).join("subagents")).unwrap();
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(project.join(format!("{ID}.jsonl")), lines).unwrap();
    let agent = json!({"type": "user", "uuid": "x1", "parentUuid": null, "isSidechain": true,
        "agentId": "a1b2c3d4", "sessionId": ID, "timestamp": second,
        "message": {"role": "user", "content": "Look for depths"}});
    let agents = project.join(ID).join("subagents");
    fs::write(agents.join("agent-a1b2c3d4.jsonl"), format!("{agent}\n")).unwrap();
    let other = json!({"type": "user", "uuid": "o1", "parentUuid": null, "isSidechain": false,
        "timestamp": "2026-03-05T10:00:00.000Z", "sessionId": "s", "cwd": "/work/notes",
        "gitBranch": "main", "message": {"role": "user", "content": "Write"}});
    fs::create_dir(root.path().join("-work-notes")).unwrap();
    let other_file = root
        .path()
        .join("-work-notes/0a5effff-0000-4000-8000-000000000000.jsonl");
    fs::write(other_file, format!("{other}\n")).unwrap();
    root
}

fn run(root: &Path, arguments: &[&str]) -> String {
    let root = ["--root", root.to_str().unwrap()];
    let output = transcript(&[arguments, &root].concat());
    assert_eq!(
        output.status.code(),
        Some(0),
        "{arguments:?} {}",
        stderr(&output)
    );
    stdout(&output)
}

/// Returns the uuids of the entries that a command prints as JSON.
fn uuids(root: &Path, arguments: &[&str]) -> Vec<String> {
    let text = run(root, &[arguments, &["--json"]].concat());
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let uuids = records.filter_map(|record| Some(record["uuid"].as_str()?.to_owned()));
    uuids.collect()
}

/// Returns the last entries of the branches with matches.
fn branches(root: &Path, options: &[&str]) -> Vec<String> {
    let text = run(root, &[&["tree", ID], options, &["--json"]].concat());
    let report: Value = serde_json::from_str(&text).unwrap();
    let branches = report["branches"].as_array().unwrap().iter();
    let found = branches.filter(|branch| branch["matches"].as_u64().unwrap() > 0);
    found
        .map(|branch| branch["last"]["uuid"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_option_selects_the_same_entries_in_every_command() {
    let root = root();
    let root = root.path();
    // The options; the entries of the path; those of the file; the ends of the branches.
    let cases: [[&[&str]; 4]; 8] = [
        [
            &["--role", "user"],
            &["u1", "u5"],
            &["u1", "u4", "u5"],
            &["u3", "u4", "a6"],
        ],
        [&["--role", "tool"], &["u3"], &["u3"], &["u3"]],
        [&["--tool", "Bash"], &["a2", "u3"], &["a2", "u3"], &["u3"]],
        [
            &["--text", "HARBOUR"],
            &["u5", "a6"],
            &["u5", "a6"],
            &["a6"],
        ],
        [
            &["--branch", "tides"],
            &["u5", "a6"],
            &["u5", "a6"],
            &["a6"],
        ],
        [
            &["--since", "2026-03-02"],
            &["u5", "a6"],
            &["u5", "a6"],
            &["a6"],
        ],
        [
            &["--until", "2026-03-02"],
            &["u1", "a2", "u3"],
            &["u1", "a2", "u3", "u4"],
            &["u3", "u4"],
        ],
        [
            &["--role", "user", "--text", "now", "-n", "1"],
            &["u5"],
            &["u5"],
            &["a6"],
        ],
    ];
    for [options, path, file, ends] in cases {
        assert_eq!(
            uuids(root, &[&["replay", ID], options].concat()),
            path,
            "{options:?}"
        );
        assert_eq!(
            uuids(root, &[&["tail", ID], options].concat()),
            file,
            "{options:?}"
        );
        assert_eq!(branches(root, options), ends, "{options:?}");
    }
    // -n counts what the other options leave.
    assert_eq!(
        uuids(root, &["tail", ID, "--tool", "Bash", "-n", "1"]),
        ["u3"]
    );
    assert_eq!(
        uuids(root, &["tail", ID, "--role", "user", "-n", "2"]),
        ["u4", "u5"]
    );
    assert_eq!(
        uuids(root, &["replay", ID, "--role", "user", "-n", "1"]),
        ["u5"]
    );
    assert_eq!(uuids(root, &["tail", ID, "-n", "2"]), ["u5", "a6"]);
}

#[test]
fn text_shows_what_json_selects() {
    let root = root();
    for command in ["replay", "tail"] {
        let shown = run(root.path(), &[command, ID, "--text", "harbour"]);
        assert!(shown.contains("Now the harbour"), "{shown}");
        assert!(
            !shown.contains("coast") && !shown.contains("rivers"),
            "{shown}"
        );
    }
    let shown = run(root.path(), &["tree", ID, "--text", "rivers"]);
    assert!(
        shown.contains("rivers") && !shown.contains("harbour"),
        "{shown}"
    );
    // The place that the branch leaves is shown as well.
    assert!(shown.contains("coast"), "{shown}");
    let shown = run(root.path(), &["tree", ID, "--text", "volcano"]);
    assert!(shown.contains("no branch has such an entry"), "{shown}");
}

#[test]
fn a_call_whose_result_is_not_selected_is_not_shown_as_one_without_a_result() {
    let root = root();
    let shown = |options: &[&str]| run(root.path(), &[&["replay", ID], options].concat());
    for options in [
        &["--role", "assistant"][..],
        &["--role", "assistant", "--role", "user"],
        &["--role", "assistant", "--text", "Bash"],
    ] {
        let text = shown(options);
        let has_call = text.contains("Bash") || options.contains(&"--text");
        assert!(has_call && !text.contains("no result"), "{text}");
    }
    // The same call in a file that has no result of it, as the process was killed.
    let file = root.path().join(format!("-work-maps/{ID}.jsonl"));
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().take(2).collect();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    for options in [&[][..], &["--role", "assistant"]] {
        let text = shown(options);
        assert!(
            text.contains("Bash") && text.contains("no result"),
            "{text}"
        );
    }
}

#[test]
fn a_project_limits_where_a_session_is_looked_for() {
    let root = root();
    let root = root.path();
    for command in ["replay", "tail"] {
        for session in [&[][..], &["latest"], &["0a5e"]] {
            let here = [&[command], session, &["--project", "/work/maps"]].concat();
            assert!(uuids(root, &here).contains(&"u1".to_owned()), "{here:?}");
            let there = [&[command], session, &["--project", "/work/notes"]].concat();
            assert_eq!(uuids(root, &there), ["o1"], "{there:?}");
        }
    }
    let shown = run(root, &["tree", "--project", "/work/notes"]);
    assert!(shown.contains("0a5effff"), "{shown}");
    let root = ["--root", root.to_str().unwrap()];
    for arguments in [
        &["replay", "0a5e"] as &[&str],
        &["replay", "--project", "/work"],
        &["tail", root[1], "--project", "/work/maps"],
    ] {
        let output = transcript(&[arguments, &root].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn subagents_are_shown_when_they_are_asked_for() {
    let root = root();
    let root = root.path();
    for arguments in [["replay", ID], ["tail", ID]] {
        assert!(!run(root, &arguments).contains("depths"));
        let shown = run(root, &[&arguments[..], &["--sidechains"]].concat());
        assert!(shown.contains("depths"), "{shown}");
    }
    for arguments in [&["tree", ID][..], &["list"]] {
        assert!(!run(root, arguments).contains("a1b2c3d4"));
        let shown = run(root, &[arguments, &["--sidechains"]].concat());
        assert!(shown.contains("a1b2c3d4"), "{shown}");
    }
}

#[test]
fn a_list_is_filtered_sorted_and_grouped() {
    let root = root();
    let root = root.path();
    let ids = |options: &[&str]| -> Vec<String> {
        let text = run(root, &[&["list", "--json"], options].concat());
        let rows = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| row["sessionId"].as_str().unwrap()[..8].to_owned())
            .collect()
    };
    let (maps, notes) = ("0a5e1b2c", "0a5effff");
    assert_eq!(ids(&[]), [notes, maps]);
    let cases: [(&[&str], &[&str]); 14] = [
        (&["--text", "COAST"], &[maps]),
        (&["--grep", "notes"], &[notes]),
        (&["--grep", "5EFF"], &[notes]),
        (&["--branch", "tides"], &[maps]),
        (&["--state", "finished"], &[maps]),
        (
            &["--state", "stalled", "--state", "finished"],
            &[notes, maps],
        ),
        (&["--since", "2026-03-03"], &[notes]),
        // A session counts from its first message to its last.
        (&["--since", "2026-03-02", "--until", "2026-03-02"], &[maps]),
        (&["--until", "2026-02-28"], &[]),
        (&["--project", "/work/maps"], &[maps]),
        (&["-n", "1"], &[notes]),
        (&["--limit", "1", "--sort", "size"], &[maps]),
        (&["--sort", "messages"], &[maps, notes]),
        (&["--sort", "title"], &[maps, notes]),
    ];
    for (options, expected) in cases {
        assert_eq!(ids(options), expected, "{options:?}");
    }
    let shown = run(root, &["list", "--by", "project"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        (lines[2], lines[5]),
        ("/work/notes · 1 session", "/work/maps · 1 session")
    );
    for refused in [["list", "--role", "user"], ["list", "--tool", "Bash"]] {
        assert_eq!(transcript(&refused).status.code(), Some(2));
    }
}
