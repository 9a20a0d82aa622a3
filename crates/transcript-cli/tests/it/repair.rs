//! `transcript repair`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use transcript_testkit::running_client::RunningClient;

use crate::{stderr, stdout, transcript};

struct Damaged {
    _folder: TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn entry(name: &str, parent: &str) -> String {
    let kind = if name.starts_with('a') {
        "assistant"
    } else {
        "user"
    };
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","message":{{"role":"{kind}","content":[{{"type":"text","text":"{name}"}}]}},"uuid":"{name}","timestamp":"2026-11-20T10:00:00.000Z","sessionId":"s","cwd":"/home/dev/my work"}}"#
    )
}

/// A session with a torn and a glued line, and a missing parent.
fn damaged() -> Damaged {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("-home-dev-my-work");
    fs::create_dir(&project).unwrap();
    let path = project.join("0b932c9f-9928-4cec-9e82-22c1703d5f54.jsonl");
    let lines = [
        entry("u1", "null"),
        format!("{}{}", r#"{"type":"pr-link","prNu"#, entry("a1", r#""u1""#)),
        entry("u2", r#""gone""#),
        entry("a2", r#""u2""#),
    ];
    let bytes = (lines.join("\n") + "\n").into_bytes();
    fs::write(&path, &bytes).unwrap();
    Damaged {
        _folder: folder,
        path,
        bytes,
    }
}

impl Damaged {
    fn run(&self, options: &[&str]) -> (i32, String, String) {
        let output = transcript(&[&["repair", self.path.to_str().unwrap()], options].concat());
        (
            output.status.code().unwrap(),
            stdout(&output),
            stderr(&output),
        )
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let entries = fs::read_dir(self.project()).unwrap().map(name);
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn project(&self) -> &Path {
        self.path.parent().unwrap()
    }

    fn name(&self, more: &str) -> String {
        format!("{}{more}", self.path.file_name().unwrap().to_str().unwrap())
    }
}

#[test]
fn the_plan_is_printed_and_nothing_is_written() {
    let session = damaged();
    let (code, out, _) = session.run(&[]);
    assert_eq!(code, 0);
    let expected = "\
line 2: move (L-TORN-MID): 23 bytes at offset 213
line 2: salvage (L-TORN-MID): on a line of its own
line 3: parent (G-DANGLING): child of line 2: it precedes the entry in the file and has no other child
before: Claude Code shows 3 of 4 messages, transcript 4; the API accepts both requests
after : Claude Code shows 4 of 4 messages, transcript 4; the API accepts both requests
nothing was written; --keep-id replaces the session, --out FILE writes a copy
";
    assert_eq!(out, expected);
    assert_eq!(session.names(), [session.name("")]);
    assert!(fs::read(&session.path).unwrap() == session.bytes);
}

#[test]
fn a_copy_is_written_beside_what_it_does_not_contain() {
    let session = damaged();
    let copy = session.project().join("copy.jsonl");
    let (code, out, _) = session.run(&["--json", "--out", copy.to_str().unwrap()]);
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["plan"][2]["code"], "G-DANGLING");
    assert_eq!(
        report["before"]["visible"],
        serde_json::json!({"vendor": 3, "recover": 4})
    );
    assert_eq!(
        report["after"]["visible"],
        serde_json::json!({"vendor": 4, "recover": 4})
    );
    assert_eq!(report["out"], copy.to_str().unwrap());
    let names = ["copy.jsonl", "copy.jsonl.lost", "copy.jsonl.lost.json"];
    assert_eq!(session.names()[1..], names);
    assert_eq!(
        fs::read(session.project().join(names[1])).unwrap(),
        br#"{"type":"pr-link","prNu"#
    );
    let map = fs::read_to_string(session.project().join(names[2])).unwrap();
    assert_eq!(
        map,
        "{\"offset\":213,\"len\":23,\"code\":\"L-TORN-MID\",\"at\":0}\n"
    );
    let lines: Vec<String> = fs::read_to_string(&copy)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(lines[..2], [entry("u1", "null"), entry("a1", r#""u1""#)]);
    assert!(fs::read(&session.path).unwrap() == session.bytes);

    // An existing file is not overwritten; a repaired one needs no repair.
    let (code, _, complaint) = session.run(&["--out", copy.to_str().unwrap()]);
    assert_eq!(code, 1, "{complaint}");
    let again = transcript(&["repair", copy.to_str().unwrap()]);
    assert!(stdout(&again).starts_with("nothing to repair\n"));
}

#[test]
fn session_is_replaced_and_restored_by_undo() {
    let session = damaged();
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let before = modified(&session.path);
    let (code, out, _) = session.run(&["--keep-id"]);
    assert_eq!(code, 0);
    let go_on = "to continue: cd '/home/dev/my work' && claude --resume 0b932c9f-9928-4cec-9e82-22c1703d5f54\n";
    assert!(out.ends_with(go_on), "{out}");
    let expected = ["", ".before-repair", ".lost", ".lost.json"].map(|more| session.name(more));
    assert_eq!(session.names(), expected);
    let old = session.project().join(&expected[1]);
    assert!(fs::read(&old).unwrap() == session.bytes);
    assert_eq!(modified(&old), before);
    assert_eq!(session.run(&["--keep-id"]).0, 0);
    assert_eq!(session.names(), expected);

    assert_eq!(session.run(&["--undo"]).0, 0);
    assert!(fs::read(&session.path).unwrap() == session.bytes);
    assert_eq!(modified(&session.path), before);
    let (code, _, complaint) = session.run(&["--undo"]);
    assert_eq!(code, 1);
    assert!(
        complaint.contains("there is no earlier file to restore"),
        "{complaint}"
    );
}

#[test]
fn a_session_that_is_being_written_is_not_replaced() {
    let session = damaged();
    let mut client = fs::OpenOptions::new()
        .append(true)
        .open(&session.path)
        .unwrap();
    let (code, _, complaint) = session.run(&["--keep-id"]);
    assert_eq!(code, 1);
    assert!(
        complaint.contains("a process has the file open for writing"),
        "{complaint}"
    );
    client.write_all(entry("u3", r#""a2""#).as_bytes()).unwrap();
    assert!(fs::read(&session.path).unwrap().starts_with(&session.bytes));
    assert_eq!(session.names(), [session.name("")]);
}

/// A session without damage of which lines can be moved.
fn bloated() -> Damaged {
    let session = damaged();
    let progress = |name: &str| {
        format!(
            r#"{{"type":"progress","uuid":"{name}","parentUuid":"a1","sessionId":"s","data":{{"type":"bash_progress"}}}}"#
        )
    };
    let mode = |mode: &str| {
        format!(r#"{{"type":"permission-mode","permissionMode":"{mode}","sessionId":"s"}}"#)
    };
    let lines = [
        mode("default"),
        entry("u1", "null"),
        entry("a1", r#""u1""#),
        progress("p1"),
        mode("plan"),
        progress("p2"),
        mode("default"),
    ];
    let bytes = (lines.join("\n") + "\n").into_bytes();
    fs::write(&session.path, &bytes).unwrap();
    Damaged { bytes, ..session }
}

#[test]
fn lines_that_no_resume_needs_are_moved_and_can_be_put_back() {
    let session = bloated();
    let (code, out, _) = session.run(&["--compact"]);
    assert_eq!(code, 0);
    let expected = "\
before: Claude Code shows 2 of 2 messages, transcript 2; the API accepts both requests
after : Claude Code shows 2 of 2 messages, transcript 2; the API accepts both requests
bytes                          before          after  lines moved
progress                          196              0            2
permission-mode                   207            140            1
all                               839            576            3
nothing was written; --keep-id replaces the session, --out FILE writes a copy
";
    assert_eq!(out, expected);
    assert_eq!(session.names(), [session.name("")]);

    let copy = session.project().join("copy.jsonl");
    let (code, out, _) = session.run(&["--compact", "--json", "--out", copy.to_str().unwrap()]);
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["plan"], serde_json::json!([]));
    let compacted = &report["compacted"];
    assert_eq!(compacted["lines"], 3);
    assert_eq!(compacted["types"].as_array().unwrap().len(), 4);
    let progress = serde_json::json!({"type": "progress", "lines": 2, "before": 196, "after": 0});
    assert_eq!(compacted["types"][0], progress);
    let names = [
        "copy.jsonl",
        "copy.jsonl.archive",
        "copy.jsonl.archive.json",
    ];
    assert_eq!(session.names()[1..], names);
    let [new, archive, map] = names.map(|name| fs::read(session.project().join(name)).unwrap());
    let mut bytes = new;
    for line in std::str::from_utf8(&map).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| line[key].as_u64().unwrap() as usize;
        let text = &archive[number("at")..][..number("len")];
        bytes.splice(number("offset")..number("offset"), text.iter().copied());
    }
    assert!(bytes == session.bytes && fs::read(&session.path).unwrap() == session.bytes);

    // A compacted session has nothing to move.
    let again = transcript(&["repair", "--compact", copy.to_str().unwrap()]);
    assert!(stdout(&again).starts_with("nothing to repair\n"));
}

#[test]
fn a_compacted_session_takes_the_place_of_the_old_one_until_undone() {
    let session = bloated();
    assert_eq!(session.run(&["--compact", "--keep-id"]).0, 0);
    let expected = ["", ".archive", ".archive.json", ".before-repair"];
    assert_eq!(session.names(), expected.map(|more| session.name(more)));
    assert!(fs::metadata(&session.path).unwrap().len() < session.bytes.len() as u64);
    let archived = fs::read_to_string(session.project().join(session.name(".archive")));
    assert_eq!(archived.unwrap().lines().count(), 3);
    assert_eq!(session.run(&["--compact", "--keep-id"]).0, 0);
    assert_eq!(session.names(), expected.map(|more| session.name(more)));

    assert_eq!(session.run(&["--undo"]).0, 0);
    assert!(fs::read(&session.path).unwrap() == session.bytes);
    assert_eq!(session.run(&["--compact", "--new-session"]).0, 2);
}

/// A store with what is left of a session, and the path of its missing file.
fn left() -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let path = root
        .path()
        .join("-home-ada-almanac/0b932c9f-9928-4cec-9e82-22c1703d5f54.jsonl");
    let agents = path.with_extension("").join("subagents");
    fs::create_dir_all(&agents).unwrap();
    let lines = [entry("u1", "null"), entry("a1", r#""u1""#)].join("\n") + "\n";
    let lines = lines.replace(r#""isSidechain":false"#, r#""isSidechain":true"#);
    let id = path.file_stem().unwrap().to_str().unwrap();
    let lines = lines.replace(r#""sessionId":"s""#, &format!(r#""sessionId":"{id}""#));
    fs::write(agents.join("agent-a1.jsonl"), lines).unwrap();
    (root, path)
}

#[test]
fn missing_session_is_rebuilt_from_its_other_files() {
    let (root, path) = left();
    let run = |options: &[&str]| {
        let common = ["--root", root.path().to_str().unwrap()];
        let output = transcript(&[&common, options].concat());
        let code = output.status.code().unwrap();
        (code, stdout(&output), stderr(&output))
    };
    let (code, _, complaint) = run(&["repair", "0b93"]);
    assert_eq!(code, 2);
    assert!(
        complaint.contains("--salvage rebuilds the session from it"),
        "{complaint}"
    );

    let folder = path.with_extension("");
    for name in ["0b93", path.to_str().unwrap(), folder.to_str().unwrap()] {
        let (code, out, complaint) = run(&["repair", name, "--salvage"]);
        assert_eq!(code, 0, "{complaint}");
        let expected = "\
salvage (W-ABSENT): subagents/agent-a1.jsonl: 2 entries, a conversation of the session
before: Claude Code shows 0 of 0 messages, transcript 0; the API refuses both requests
after : Claude Code shows 2 of 2 messages, transcript 2; the API accepts both requests
nothing was written; --out FILE writes the session
";
        assert_eq!(out, expected);
        assert!(!path.exists());
    }

    let out = [
        "repair",
        "0b93",
        "--salvage",
        "--json",
        "--out",
        path.to_str().unwrap(),
    ];
    let (code, report, _) = run(&out);
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["plan"][0]["code"], "W-ABSENT");
    assert_eq!(report["out"], path.to_str().unwrap());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // Now it is a session as any other, and nothing is left to gather.
    let title = "Session 0b932c9f, salvaged from a subagent";
    assert!(run(&["list"]).1.contains(title));
    assert_eq!(
        run(&["replay", "0b93", "--format", "ids"])
            .1
            .lines()
            .count(),
        2
    );
    let verdict = run(&["verify", "0b93", "--json"]).1;
    let verdict: Value = serde_json::from_str(verdict.lines().next().unwrap()).unwrap();
    assert_eq!(
        verdict["visible"],
        serde_json::json!({"vendor": 2, "recover": 2})
    );
    let (code, _, complaint) = run(&["repair", "0b93", "--salvage"]);
    assert_eq!(code, 1);
    assert!(complaint.contains("nothing to salvage"), "{complaint}");
}

#[test]
fn a_salvage_overwrites_nothing() {
    let (_root, path) = left();
    let other = path.with_file_name("other.jsonl");
    fs::write(&other, "kept").unwrap();
    let path = path.to_str().unwrap();
    let output = transcript(&[
        "repair",
        path,
        "--salvage",
        "--out",
        other.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("name another file"));
    assert_eq!(fs::read(&other).unwrap(), b"kept");
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_that_a_client_runs_is_not_replaced_and_a_copy_can_be_written() {
    let home = tempfile::tempdir().unwrap();
    let path = RunningClient::session_in(home.path()).unwrap();
    let torn = damaged();
    fs::write(&path, &torn.bytes).unwrap();
    let client = RunningClient::of(&path, "").unwrap();
    let run = |options: &[&str]| {
        let output = transcript(&[&["repair", path.to_str().unwrap()], options].concat());
        (output.status.code(), stderr(&output))
    };
    let words = format!("process {} runs it; end it first", client.id());
    let (code, said) = run(&["--keep-id"]);
    assert_eq!(code, Some(1));
    assert!(said.contains(&words), "{said}");
    assert_eq!(fs::read(&path).unwrap(), torn.bytes);
    let names = fs::read_dir(path.parent().unwrap()).unwrap();
    assert_eq!(names.count(), 1);
    let copy = torn.project().join("copy.jsonl");
    let (code, said) = run(&["--out", copy.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    drop(client);
    assert_eq!(run(&["--keep-id"]).0, Some(0));
    let repaired = fs::read(&path).unwrap();
    let client = RunningClient::of(&path, "").unwrap();
    let (code, said) = run(&["--undo"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains(&format!("process {} runs it", client.id())),
        "{said}"
    );
    assert_eq!(fs::read(&path).unwrap(), repaired);
}
