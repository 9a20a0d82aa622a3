//! Rules that hold for every command: errors, exit codes, records, names of options, and the width of text.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use transcript_ops::failure::CLASSES;

use crate::{command, stderr, stdout};

const FIRST: &str = "aaaa1111-2222-4333-8444-555555555555";
const SECOND: &str = "aaaa2222-2222-4333-8444-555555555555";
const OTHER: &str = "bbbb1111-2222-4333-8444-555555555555";

/// A projects folder with sessions of two projects, and a folder for what commands write.
struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Self {
            // The names of temporary files, which errors must not have, start with a dot.
            folder: tempfile::Builder::new().prefix("home").tempdir().unwrap(),
        };
        home.add("-work-garden", FIRST, "/work/garden", "roses");
        home.add("-work-garden", SECOND, "/work/garden", "tulips");
        home.add("-work-cellar", OTHER, "/work/cellar", "wine");
        fs::create_dir(home.path("out")).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn file(&self, project: &str, id: &str) -> String {
        self.text(&format!("projects/{project}/{id}.jsonl"))
    }

    fn add(&self, project: &str, id: &str, cwd: &str, word: &str) {
        let path = PathBuf::from(self.file(project, id));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, session(id, cwd, word)).unwrap();
    }

    /// Runs the command in this home. `OUT`, `ROOT`, `FIRST` and so on in the arguments are the paths of this home.
    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let root = self.text("projects");
        let archive = self.text("archive");
        let arguments = arguments.iter().map(|argument| {
            argument
                .replace("OUT", &self.text("out"))
                .replace("FIRST", &self.file("-work-garden", FIRST))
                .replace("SECOND", &self.file("-work-garden", SECOND))
                .replace("ROOT", &root)
        });
        let arguments: Vec<String> = arguments.collect();
        let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
        let mut command = command(&arguments);
        command
            .env("CLAUDE_CONFIG_DIR", self.folder.path())
            .env("TRANSCRIPT_ARCHIVE", archive)
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_DATA_HOME", self.path("data"));
        command
    }
}

fn session(id: &str, cwd: &str, word: &str) -> String {
    let mut text = String::new();
    let mut parent = Value::Null;
    for number in 0..3 {
        let time = format!("2026-11-20T10:0{number}:00.000Z");
        let (asked, said) = (format!("{word}-u{number}"), format!("{word}-a{number}"));
        let prompt = json!({"parentUuid": parent, "type": "user", "uuid": asked, "sessionId": id, "cwd": cwd, "timestamp": time,
            "message": {"role": "user", "content": format!("prompt {number} about {word}")}});
        let answer = json!({"parentUuid": asked, "type": "assistant", "uuid": said, "sessionId": id, "cwd": cwd, "timestamp": time,
            "message": {"id": format!("{word}-m{number}"), "role": "assistant", "model": "claude-opus-4-1", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": format!("answer {number} about {word}")}],
                "usage": {"input_tokens": 1000, "output_tokens": 100}}});
        text += &format!("{prompt}\n{answer}\n");
        parent = json!(said);
    }
    text
}

/// All paths below a folder.
fn tree(folder: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            all.extend(tree(&path));
        }
        all.insert(path);
    }
    all
}

fn records(text: &str) -> Vec<Value> {
    let lines = text.split_terminator('\n');
    let records = lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    records.collect()
}

#[test]
fn first_record_of_every_command_has_the_schema_and_each_record_a_kind() {
    let home = Home::new();
    let commands: &[&[&str]] = &[
        &["list", "--json"],
        &["search", "--json", "prompt"],
        &["search", "--json", "nowhere"],
        &["search", "--json", "--files", "prompt"],
        &["search", "--json", "--count", "prompt"],
        &["usage", "--json"],
        &["usage", "--json", "--by", "project,model"],
        &["usage", "--json", "--statusline"],
        &["replay", "--json", "FIRST"],
        &["export", "--json", "-", "FIRST"],
        &["tree", "--json", "FIRST"],
        &["resume", "--json", "FIRST"],
        &["tail", "--json", "FIRST"],
        &["tail", "--json", "--role", "user", "--changes", "FIRST"],
        &["tail", "--json", "ROOT"],
        &["verify", "--json"],
        &["verify", "--json", "FIRST"],
        &["verify", "--json", "--requests", "ROOT"],
        &["repair", "--json", "FIRST"],
        &["fork", "--json", "FIRST", "--out", "OUT/fork.jsonl"],
        &[
            "merge",
            "--json",
            "FIRST",
            "FIRST",
            "--out",
            "OUT/merged.jsonl",
        ],
        &["move", "--json", "--dry-run", "/work/garden", "/work/yard"],
        &["keep", "--json"],
        &["verify", "--json", "--archive"],
        &["list", "--json", "--archived"],
        &["restore", "--json", "--all", "--to", "OUT"],
        &["prune", "--json"],
    ];
    for arguments in commands {
        let output = home.run(arguments);
        let records = records(&stdout(&output));
        let said = stderr(&output);
        let first = records
            .first()
            .unwrap_or_else(|| panic!("{arguments:?}: {said}"));
        assert_eq!(first["schema"], 1, "{arguments:?}: {first}");
        for record in &records {
            let kind = record["kind"].as_str();
            assert!(
                kind.is_some_and(|kind| !kind.is_empty()),
                "{arguments:?}: {record}"
            );
        }
    }
    // A repair that is undone, of a session with something to repair.
    let damaged = home.file("-work-garden", FIRST);
    let text = fs::read_to_string(&damaged).unwrap();
    let (head, tail) = text.split_at(text.match_indices('\n').nth(2).unwrap().0 + 1);
    fs::write(&damaged, format!("{head}{{\"type\":\"us\n{tail}")).unwrap();
    for (arguments, kind) in [
        (&["repair", "--json", "--keep-id", "FIRST"][..], "repair"),
        (&["repair", "--json", "--undo", "FIRST"], "undo"),
    ] {
        let output = home.run(arguments);
        let records = records(&stdout(&output));
        assert_eq!(records.len(), 1, "{arguments:?}: {}", stderr(&output));
        assert_eq!(records[0]["kind"], kind, "{arguments:?}");
        assert_eq!(records[0]["schema"], 1, "{arguments:?}");
    }
}

/// Wrong uses: the arguments, the exit code, and the name of the error.
const WRONG: &[(&[&str], u8, &str)] = &[
    (&["list", "--nonesuch"], 2, "bad-options"),
    (&["list", "--limt", "3"], 2, "bad-options"),
    (&["list", "--sort", "beauty"], 2, "bad-options"),
    (&["list", "--since", "whenever"], 2, "bad-options"),
    (&["list", "--archived"], 2, "not-found"),
    (&["list", "--root", "OUT/none"], 2, "not-found"),
    (&["nonesuch"], 2, "bad-options"),
    (&["replay", "ffff9999"], 2, "not-found"),
    (&["replay", "OUT/none.jsonl"], 2, "not-found"),
    (&["replay", "OUT"], 2, "unreadable"),
    (&["replay", "aaaa"], 2, "ambiguous"),
    (&["replay", "a"], 2, "not-an-id"),
    (&["replay", "FIRST", "--at", "99"], 2, "unknown-entry"),
    (
        &["replay", "latest", "--project", "nowhere"],
        2,
        "not-found",
    ),
    (&["tree", "ffff9999"], 2, "not-found"),
    (&["tail", "ffff9999"], 2, "not-found"),
    (&["resume", "ffff9999"], 2, "not-found"),
    (&["verify", "ffff9999"], 2, "not-found"),
    (&["repair", "ffff9999"], 2, "not-found"),
    (&["fork", "ffff9999"], 2, "not-found"),
    (
        &["fork", "FIRST", "--out", "OUT/none/x.jsonl"],
        2,
        "fork-failed",
    ),
    (&["fork", "FIRST", "--out", "SECOND"], 2, "exists"),
    (
        &["merge", "FIRST", "SECOND", "--out", "OUT/x.jsonl"],
        2,
        "other-session",
    ),
    (&["merge", "FIRST", "FIRST", "--out", "SECOND"], 2, "exists"),
    (&["move", "/work/gone", "/work/new"], 1, "not-found"),
    (&["search", "role:nobody"], 2, "bad-query"),
    (
        &["search", "word", "--in", "OUT/none.jsonl"],
        2,
        "not-found",
    ),
    (&["usage", "--by", "weather"], 2, "bad-options"),
    (&["usage", "--prices", "OUT/none.json"], 2, "bad-prices"),
    (&["usage", "--timezone", "Moon/Crater"], 2, "bad-options"),
    (&["keep", "--root", "OUT/none"], 2, "not-found"),
    (&["restore", "ffff9999"], 2, "not-found"),
    (&["prune"], 2, "not-found"),
    (&["verify", "--archive"], 2, "not-found"),
    (&["append", "ffff9999"], 2, "not-found"),
];

#[test]
fn an_error_is_one_text_for_people_and_one_record_for_programs() {
    let home = Home::new();
    let before = tree(home.folder.path());
    for (arguments, code, kind) in WRONG {
        let output = home.run(arguments);
        let said = stderr(&output);
        let exit = output.status.code();
        assert_eq!(exit, Some(i32::from(*code)), "{arguments:?}: {said}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
        let output = home.run(&[arguments, &["--json"][..]].concat());
        assert_eq!(
            output.status.code(),
            exit,
            "{arguments:?} --json: {}",
            stderr(&output)
        );
        // Notes stay text.
        let lines = stderr(&output);
        let lines = lines.lines().filter(|line| line.starts_with('{'));
        let records: Vec<Value> = lines.flat_map(records).collect();
        let errors: Vec<&Value> = records.iter().collect();
        let [error] = errors[..] else {
            panic!("{arguments:?}: {records:?}");
        };
        assert_eq!(
            (&error["schema"], &error["kind"]),
            (&json!(1), &json!("error"))
        );
        let error = &error["error"];
        assert_eq!(error["kind"], *kind, "{arguments:?}: {error}");
        let class = CLASSES.iter().find(|(_, kinds)| kinds.contains(kind));
        let class = class.map_or("Transcript", |(class, _)| class.name());
        assert_eq!(error["class"], class, "{arguments:?}");
        // The same words, once, with the next step after them.
        let message = error["message"].as_str().unwrap();
        let line = format!("transcript: {message}");
        assert!(said.starts_with(&line), "{arguments:?}: {said}{message}");
        assert_eq!(said.matches("transcript: ").count(), 1, "{said}");
        if let Some(next) = error["next"].as_str() {
            assert!(said.contains(next), "{arguments:?}: {said}");
        }
        for hidden in ["os error", ".tmp", "error: "] {
            assert!(!said.contains(hidden), "{arguments:?}: {said}");
        }
    }
    // Nothing was made by any of them.
    let mut after = tree(home.folder.path());
    after.retain(|path| !path.starts_with(home.path("cache")));
    assert_eq!(after, before);
}

#[test]
fn without_sessions_every_command_says_so_and_where() {
    let home = Home {
        folder: tempfile::Builder::new().prefix("home").tempdir().unwrap(),
    };
    let commands: &[(&[&str], i32)] = &[
        (&["list"], 0),
        (&["search", "roses"], 1),
        (&["search", "roses", "tulips"], 1),
        (&["usage"], 0),
        (&["verify"], 0),
        (&["replay", "latest"], 2),
        (&["repair", "aaaa1111"], 2),
    ];
    // The folder does not exist, or it is empty.
    for made in [None, Some("projects")] {
        if let Some(name) = made {
            fs::create_dir(home.path(name)).unwrap();
        }
        for (arguments, code) in commands {
            let output = home.run(arguments);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {said}");
            let place = format!("no sessions yet in {}", home.text("projects"));
            // Long lines are broken.
            let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(&place), "{made:?} {arguments:?}: {said}");
            assert!(!stdout(&output).contains("VERDICT"), "{arguments:?}");
        }
    }
}

#[test]
fn a_former_name_of_an_option_still_works() {
    let home = Home::new();
    let pairs: &[(&[&str], &[&str])] = &[
        (
            &["replay", "--context", "FIRST"],
            &["replay", "--in-context", "FIRST"],
        ),
        (
            &["resume", "--full", "FIRST"],
            &["resume", "--whole-file", "FIRST"],
        ),
        (
            &["export", "--text", "-", "--keep", "roses", "FIRST"],
            &["export", "--plain-text", "-", "--except", "roses", "FIRST"],
        ),
        (&["usage", "--keep=off"], &["usage", "--keep-sums=off"]),
    ];
    for (former, now) in pairs {
        let outputs = [former, now].map(|arguments| home.run(arguments));
        assert!(
            outputs[0].status.success(),
            "{former:?}: {}",
            stderr(&outputs[0])
        );
        assert_eq!(outputs[0], outputs[1], "{former:?}");
    }
}

#[test]
fn a_command_that_fails_leaves_nothing() {
    let home = Home::new();
    fs::write(home.path("out/taken"), "x").unwrap();
    let good = ["FIRST", "FIRST"];
    let commands: &[&[&str]] = &[
        &["export", "--html", "OUT/none/x.html", "FIRST"],
        &[
            "export",
            "--html",
            "OUT/x.html",
            "--json-report",
            "OUT/none/r.jsonl",
            "FIRST",
        ],
        &["export", "--html", "OUT/x.html", "ffff9999"],
        &["export", "--html", "OUT/taken", "FIRST"],
        &["import", "FIRST", "--out", "OUT/x.jsonl"],
        &["import", "OUT/none.html", "--out", "OUT/x.jsonl"],
        &["fork", "FIRST", "--out", "OUT/none/x.jsonl"],
        &["fork", "FIRST", "--at", "99", "--out", "OUT/x.jsonl"],
        &["merge", good[0], "SECOND", "--out", "OUT/x.jsonl"],
        &["merge", good[0], good[1], "--out", "OUT/none/x.jsonl"],
        &["repair", "FIRST", "--out", "OUT/none/x.jsonl"],
        &["repair", "FIRST", "--undo"],
        &["move", "/work/garden", "/work/garden"],
        &["keep", "--root", "OUT/none", "--archive", "OUT/a"],
        &["keep", "--archive", "OUT/taken"],
        &["keep", "--archive", "OUT", "--encrypt", "OUT/key"],
        &["keep", "--archive", "OUT/a", "--encrypt", "OUT/taken"],
        &["restore", "ffff9999", "--to", "OUT/to"],
        &["restore", "--all", "--to", "OUT/to"],
        &["prune", "--yes"],
        &["append", "ffff9999"],
        &["append", "OUT/none.jsonl"],
    ];
    let before = tree(home.folder.path());
    for arguments in commands {
        let output = home.run(arguments);
        let said = stderr(&output);
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{arguments:?}: {said}"
        );
        assert!(said.contains("transcript: "), "{arguments:?}: {said}");
        let mut after = tree(home.folder.path());
        after.retain(|path| !path.starts_with(home.path("cache")));
        assert_eq!(after, before, "{arguments:?}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn one_file_that_cannot_be_read_costs_the_exit_code_and_not_the_others() {
    let home = Home::new();
    // No mode stops a user who may read everything: a link that leads nowhere does.
    let broken = home.file("-work-garden", "cccc1111-2222-4333-8444-555555555555");
    std::os::unix::fs::symlink("/nowhere/at/all", &broken).unwrap();
    let foreign = home.file("-work-cellar", "dddd1111-2222-4333-8444-555555555555");
    fs::write(&foreign, "Buy milk.\nCall Ada.\n").unwrap();
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["list", "-q"],
        &["search", "roses"],
        &["search", "roses", "--in", "ROOT"],
        &["search", "roses", "--no-cache", "--count"],
        &["usage"],
        &["usage", "--no-cache", "--by", "session"],
        &["usage", "--csv"],
        &["usage", "--statusline"],
        &["usage", "--warn-above", "100"],
        &["usage", "ROOT"],
        &["tail", "ROOT"],
        &["tail", "--json", "ROOT"],
        &["verify"],
        &["verify", "--json", "ROOT"],
        &["keep"],
    ] {
        let output = home.run(arguments);
        let (out, said) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {out}{said}");
        assert!(!out.is_empty(), "{arguments:?}: {said}");
        let names = ["cccc1111", "dddd1111"].map(|name| said.contains(name));
        assert!(names.contains(&true), "{arguments:?}: {said}");
    }
    for file in [&broken, &foreign] {
        for arguments in [
            &["replay"][..],
            &["tree"],
            &["tail"],
            &["resume"],
            &["verify"],
            &["verify", "FIRST"],
            &["repair"],
            &["fork"],
            &["usage"],
            &["usage", "FIRST"],
            &["usage", "--statusline"],
            &["search", "roses", "--in"],
            &["export", "--text", "-"],
            &["append"],
        ] {
            let output = home.run(&[arguments, &[file.as_str()][..]].concat());
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(2),
                "{arguments:?} {file}: {said}"
            );
        }
    }
    // The highest one counts, and the other files are verified all the same.
    let lost = home.path("out/lost.jsonl");
    let text = session(FIRST, "/work/garden", "roses")
        .replace("\"roses-a1\",\"sessionId\"", "\"gone\",\"sessionId\"");
    fs::write(&lost, text).unwrap();
    let lossy = home.run(&["verify", "OUT/lost.jsonl"]).status.code();
    let output = home.run(&["verify", &broken, "OUT/lost.jsonl"]);
    assert_eq!(
        output.status.code(),
        lossy.max(Some(2)),
        "{}",
        stdout(&output)
    );
    assert!(
        stdout(&output).contains("lost.jsonl"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn no_command_says_anything_when_nobody_reads_its_output() {
    let home = Home::new();
    assert!(home.run(&["keep"]).status.success());
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["search", "prompt"],
        &["search", "prompt", "--files"],
        &["usage"],
        &["usage", "--csv"],
        &["usage", "--json"],
        &["usage", "--statusline"],
        &["replay", "FIRST"],
        &["replay", "--ids", "FIRST"],
        &["replay", "--json", "FIRST"],
        &["replay", "--format", "html", "FIRST"],
        &["export", "--html", "-", "FIRST"],
        &["tree", "FIRST"],
        &["resume", "FIRST"],
        &["resume", "--json", "FIRST"],
        &["resume", "--request", "FIRST"],
        &["tail", "FIRST"],
        &["tail", "--json", "FIRST"],
        &["verify", "FIRST"],
        &["verify", "--archive"],
        &["repair", "FIRST"],
        &["prune"],
        &["keep"],
        &["keep", "--install"],
        &["man"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = home.command(&[&["-q"], arguments].concat());
        let mut output = output;
        output
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::piped());
        let output = output.spawn().unwrap().wait_with_output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(
            !said.to_lowercase().contains("pipe"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn latest_is_the_first_session_of_the_list() {
    let home = Home::new();
    // One without times: the list takes the time of its file, which is the newest.
    let id = "eeee1111-2222-4333-8444-555555555555";
    home.add("-work-cellar", id, "/work/cellar", "cheese");
    let path = home.file("-work-cellar", id);
    let lines = fs::read_to_string(&path).unwrap();
    let lines = lines.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("timestamp");
        format!("{line}\n")
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
    let list = records(&stdout(&home.run(&["list", "--json"])));
    assert_eq!(list[0]["sessionId"], id);
    for arguments in [&["replay", "--json", "latest"][..], &["replay", "--json"]] {
        let head = &records(&stdout(&home.run(arguments)))[0];
        assert_eq!(head["path"], list[0]["path"], "{arguments:?}");
    }
}

#[test]
fn project_is_a_path_or_its_folder_or_a_part_of_it_in_every_command() {
    let home = Home::new();
    let ids = |output: &Output| {
        let mut found = BTreeSet::new();
        for id in [FIRST, SECOND, OTHER] {
            if stdout(output).contains(id) {
                found.insert(id);
            }
        }
        found
    };
    let garden = BTreeSet::from([FIRST, SECOND]);
    for name in [
        "/work/garden",
        "-work-garden",
        "garden",
        "GARD",
        "work/garden",
    ] {
        for arguments in [
            &["list", "--json"][..],
            &["search", "--json", "prompt"],
            &["search", "--files", "prompt"],
            &["usage", "--csv", "--by", "session"],
        ] {
            let output = home.run(&[arguments, &["--project", name][..]].concat());
            let said = stderr(&output);
            assert_eq!(
                output.status.code(),
                Some(0),
                "{arguments:?} {name}: {said}"
            );
            assert_eq!(
                ids(&output),
                garden,
                "{arguments:?} {name}: {}",
                stdout(&output)
            );
        }
        for arguments in [
            &["replay", "--json", "latest"][..],
            &["tree", "--json", "latest"],
            &["tail", "--json", "latest"],
        ] {
            let output = home.run(&[arguments, &["--project", name][..]].concat());
            let found = ids(&output);
            let said = stderr(&output);
            assert_eq!(found.len(), 1, "{arguments:?} {name}: {said}");
            assert!(found.is_subset(&garden), "{arguments:?} {name}: {said}");
        }
    }
    // A part that several projects have selects all of them.
    let output = home.run(&["list", "--json", "--project", "work"]);
    assert_eq!(ids(&output).len(), 3, "{}", stdout(&output));
}

#[test]
fn n_and_limit_are_one_option() {
    let home = Home::new();
    for arguments in [
        &["list", "--json"][..],
        &["search", "--json", "prompt"],
        &["usage", "--json", "--by", "session"],
        &["replay", "--json", "FIRST"],
        &["tail", "--json", "FIRST"],
        &["tree", "--json", "FIRST"],
    ] {
        let run = |option| stdout(&home.run(&[arguments, &[option, "1"][..]].concat()));
        let (short, long) = (run("-n"), run("--limit"));
        assert_eq!(short, long, "{arguments:?}");
        assert!(!short.is_empty(), "{arguments:?}");
    }
}

#[test]
fn every_command_that_leaves_a_session_says_in_the_same_words_how_to_continue_it() {
    let home = Home::new();
    let copied = "ffff1111-2222-4333-8444-555555555555";
    let copy = home.file("-work-garden", copied);
    let lines = |output: &Output| {
        let text = format!("{}{}", stdout(output), stderr(output));
        let lines = text
            .lines()
            .filter(|line| line.starts_with("to continue: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let of = |id: &str, folder: &str| {
        vec![format!(
            "to continue: cd '{folder}' && claude --resume {id}"
        )]
    };
    assert!(home.run(&["keep"]).status.success());
    for (arguments, id, folder) in [
        (&["replay", "FIRST"][..], FIRST, "/work/garden"),
        (&["resume", "FIRST"], FIRST, "/work/garden"),
        (&["fork", "FIRST", "--out", &copy], copied, "/work/garden"),
        (
            &["move", "/work/cellar", "/work/vault"],
            OTHER,
            "/work/vault",
        ),
    ] {
        let output = home.run(arguments);
        assert_eq!(
            lines(&output),
            of(id, folder),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    // The folder that `resume` names is the one of the command.
    let moved = stdout(&home.run(&["resume", OTHER]));
    assert!(
        moved.contains("/work/vault") && !moved.contains("/work/cellar"),
        "{moved}"
    );
    // Several in one folder are chosen from the list of Claude Code.
    let output = home.run(&["move", "/work/garden", "/work/yard"]);
    assert_eq!(
        lines(&output),
        ["to continue: cd '/work/yard' && claude --resume"]
    );
    fs::remove_dir_all(home.path("projects")).unwrap();
    fs::create_dir(home.path("projects")).unwrap();
    let output = home.run(&["restore", FIRST]);
    assert_eq!(
        lines(&output),
        of(FIRST, "/work/garden"),
        "{}",
        stderr(&output)
    );
    let first = home.file("-work-garden", FIRST);
    let merged = home.file("-work-garden", "99991111-2222-4333-8444-555555555555");
    let output = home.run(&["merge", &first, &first, "--out", &merged]);
    let merged_id = "99991111-2222-4333-8444-555555555555";
    assert_eq!(
        lines(&output),
        of(merged_id, "/work/garden"),
        "{}",
        stderr(&output)
    );
    let text = fs::read_to_string(&first).unwrap();
    let (head, tail) = text.split_at(text.match_indices('\n').nth(2).unwrap().0 + 1);
    fs::write(&first, format!("{head}{{\"type\":\"us\n{tail}")).unwrap();
    let output = home.run(&["repair", "--keep-id", &first]);
    assert_eq!(
        lines(&output),
        of(FIRST, "/work/garden"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn usage_names_projects_by_their_folders_and_csv_has_titles() {
    let home = Home::new();
    let text = stdout(&home.run(&["usage", "--by", "project"]));
    assert!(
        text.contains("/work/garden") && !text.contains("-work-garden"),
        "{text}"
    );
    let csv = stdout(&home.run(&["usage", "--csv", "--by", "session,project"]));
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    assert!(rows[0].ends_with(&["costUsd", "title", "folder"]), "{csv}");
    for row in &rows[1..] {
        let at = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
        let (nano, dollars) = (row[at("costNanoUsd")], row[at("costUsd")]);
        assert_eq!(
            dollars.replace('.', "").trim_start_matches('0'),
            nano,
            "{csv}"
        );
        assert!(row[at("title")].starts_with("prompt 0 about "), "{csv}");
        assert!(row[at("folder")].starts_with("/work/"), "{csv}");
    }
}

#[test]
fn verify_without_a_session_checks_all_and_archive_takes_no_session() {
    let home = Home::new();
    let all = home.run(&["verify"]);
    for id in [FIRST, SECOND, OTHER] {
        assert!(stdout(&all).contains(id), "{}", stdout(&all));
    }
    assert!(home.run(&["keep"]).status.success());
    let archive = home.text("archive");
    for arguments in [
        &["verify", "--archive"][..],
        &["verify", "--archive", &archive],
    ] {
        let output = home.run(arguments);
        assert!(
            stdout(&output).contains("nothing is damaged"),
            "{arguments:?}"
        );
    }
    let output = home.run(&["verify", "--archive", "bbbb1111"]);
    assert!(stdout(&output).contains(OTHER), "{}", stderr(&output));
    let archived = stdout(&home.run(&["list", "--archive", "--json"]));
    assert_eq!(
        archived,
        stdout(&home.run(&["list", "--archived", "--json"]))
    );
    assert!(archived.contains("\"inArchive\":true"), "{archived}");
}

#[test]
fn damage_is_named_before_notes() {
    let home = Home::new();
    // In a project, times and modes are checked as well.
    let path = home.file("-work-garden", FIRST);
    let mut text = session(FIRST, "/work/garden", "roses");
    text.push_str("{\"type\":\"us");
    fs::write(&path, text).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(400 * 24 * 60 * 60);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(old)
        .unwrap();
    let json = &records(&stdout(&home.run(&["verify", "--json", "FIRST"])))[0];
    let severity = |code: &str| {
        let findings = json["findings"].as_array().unwrap().iter();
        let mut findings = findings.filter(|finding| finding["code"] == code);
        findings
            .next()
            .map(|finding| finding["severity"].as_str().unwrap().to_owned())
    };
    let shown = stdout(&home.run(&["verify", "FIRST"]));
    let codes = shown
        .lines()
        .filter_map(|line| line.trim().split_once("  ")?.0.split(' ').next());
    let severities: Vec<String> = codes.filter_map(severity).collect();
    let kinds: BTreeSet<&String> = severities.iter().collect();
    assert_eq!(kinds.len(), 2, "{shown}");
    assert!(severities.is_sorted(), "{shown}");
}

#[test]
fn move_of_an_unknown_folder_names_those_that_look_like_it() {
    let home = Home::new();
    for old in [
        "/work/gardn",
        "/home/garden",
        "/work/Garden",
        "/work/garden-old",
    ] {
        let output = home.run(&["move", old, "/work/new"]);
        assert_eq!(output.status.code(), Some(1), "{old}");
        let said = stderr(&output);
        let line = format!("no session was written in {old}; did you mean /work/garden?");
        assert!(said.contains(&line), "{said}");
    }
    let said = stderr(&home.run(&["move", "/work/attic", "/work/new"]));
    assert!(
        said.contains("`transcript list` shows the folders"),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn text_is_broken_between_words_on_a_narrow_terminal() {
    let home = Home::new();
    let first = home.path("out/s.jsonl");
    let text = session(FIRST, "/work/garden", "roses");
    fs::write(&first, text + "{\"type\":\"us").unwrap();
    let binary = env!("CARGO_BIN_EXE_transcript");
    let (file, root) = (first.to_str().unwrap(), home.text("projects"));
    for arguments in [
        format!("usage '{file}'"),
        format!("usage --root '{root}'"),
        format!("verify '{file}'"),
        format!("resume '{file}'"),
        format!("repair '{file}'"),
        format!("keep --root '{root}' --archive '{}'", home.text("archive")),
        format!("move /work/gone /work/new --root '{root}'"),
        format!("list --nonesuch --root '{root}'"),
        format!("replay ffff9999 --root '{root}'"),
    ] {
        let shell = format!("stty cols 40 rows 30; '{binary}' {arguments}");
        let mut script = std::process::Command::new("script");
        script
            .args(["-qec", &shell, "/dev/null"])
            .env("TERM", "dumb")
            .env("HOME", "/nowhere")
            .stdin(Stdio::null());
        let Ok(shown) = script.output() else {
            let _ = writeln!(std::io::stderr(), "skipped: no `script` on this system");
            return;
        };
        let shown = stdout(&shown);
        assert!(shown.lines().count() > 1, "{arguments}: {shown}");
        for line in shown.lines().map(str::trim_end) {
            // Only a word that is longer than a line is broken by the terminal.
            let is_word = !line.trim_start().contains(' ');
            assert!(
                line.chars().count() <= 40 || is_word,
                "{arguments}: {line}\n{shown}"
            );
        }
    }
}
