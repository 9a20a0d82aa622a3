//! Help, other names of commands, words that do not name a command, completions and manual pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{command, fixture, stderr, stdout, transcript};

const BINARY: &str = env!("CARGO_BIN_EXE_transcript");
/// The id that the examples name.
const ID: &str = "1f0a2b3c-1111-4222-8333-444455556666";
const OTHER: &str = "9e0a2b3c-1111-4222-8333-444455556666";
/// The headings of options, in the order in which they are shown.
const HEADINGS: [&str; 11] = [
    "Arguments:",
    "Choose the format:",
    "Choose the sessions:",
    "Choose the conversation:",
    "Choose what is shown:",
    "Choose what is done:",
    "The request:",
    "New entries:",
    "Output:",
    "Secrets:",
    "Global options:",
];

/// A home folder with two sessions of one project, and a folder to work in.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Self { folder };
        let work = home.path("old");
        fs::create_dir(&work).unwrap();
        let key: String = work
            .to_str()
            .unwrap()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let project = home.path(".claude/projects").join(key);
        fs::create_dir_all(&project).unwrap();
        for (id, title) in [(ID, "The login bug"), (OTHER, "Another job")] {
            let text = session(id, title, &work, 4);
            fs::write(project.join(format!("{id}.jsonl")), text).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn in_home(&self, program: &str) -> Command {
        let folder = Path::new(BINARY).parent().unwrap();
        let mut path = std::ffi::OsString::from(self.path("bin"));
        path.push(":");
        path.push(folder);
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", path)
            .env("TZ", "UTC");
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn transcript(&self, arguments: &[&str]) -> Output {
        self.in_home(BINARY).args(arguments).output().unwrap()
    }

    fn shell(&self, line: &str) -> Output {
        self.in_home("sh").args(["-c", line]).output().unwrap()
    }
}

/// The lines of a session with this number of messages.
fn session(id: &str, title: &str, cwd: &Path, count: usize) -> String {
    let uuid = |number: usize| format!("{}{number}", &id[..35]);
    let mut text = String::new();
    for number in 0..count {
        let role = ["user", "assistant"][number % 2];
        let parent = number.checked_sub(1).map(uuid);
        let content =
            serde_json::json!([{"type": "text", "text": format!("{title}: exact words {number}")}]);
        let line = serde_json::json!({"type": role, "uuid": uuid(number), "parentUuid": parent, "isSidechain": false,
            "sessionId": id, "cwd": cwd, "version": "2.1.331", "timestamp": format!("2026-03-09T14:00:0{number}.000Z"),
            "message": {"role": role, "id": format!("m{number}"), "model": "claude-sonnet-4-5", "stop_reason": "end_turn", "content": content}});
        text.push_str(&format!("{line}\n"));
    }
    let title = serde_json::json!({"type": "custom-title", "customTitle": title, "sessionId": id});
    text.push_str(&format!("{title}\n"));
    text
}

/// The rows below a heading of the first help.
fn rows(help: &str) -> Vec<&str> {
    let lines = help
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| !word.starts_with('-'))
        .collect()
}

/// The commands of the first help.
pub(crate) fn commands() -> BTreeSet<String> {
    let help = stdout(&transcript(&["-h"]));
    let named = rows(&help).into_iter().map(str::to_owned);
    named.collect()
}

/// The examples of a help.
fn examples(help: &str) -> Vec<&str> {
    let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
    examples
        .lines()
        .map_while(|line| line.strip_prefix("  "))
        .collect()
}

#[test]
fn the_first_help_names_claude_code_and_has_each_command_in_one_line() {
    for (arguments, width) in [
        (&["-h"][..], "80"),
        (&["--help"], "80"),
        (&["help"], "80"),
        (&["-h"], "200"),
    ] {
        let output = command(arguments).env("COLUMNS", width).output().unwrap();
        let help = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(
            help.lines().next().unwrap().contains("Claude Code"),
            "{help}"
        );
        for command in commands() {
            let of_command = |line: &&str| line.starts_with(&format!("  {command} "));
            assert_eq!(
                help.lines().filter(of_command).count(),
                1,
                "{command}: {help}"
            );
        }
        for heading in [
            "Find and read:",
            "Cost:",
            "Share:",
            "Keep safe:",
            "Change:",
            "About:",
        ] {
            assert_eq!(help.matches(heading).count(), 1, "{heading}: {help}");
        }
        let is_long = arguments != ["-h"];
        assert_eq!(help.contains("Global options:"), is_long, "{help}");
    }
    insta::assert_snapshot!(
        stdout(&command(&["--help"]).env("COLUMNS", "80").output().unwrap())
            .replace("  browse       Look through sessions in the terminal\n", "")
            .replace(
                "  convert      Write sessions in the format of another agent or program\n",
                ""
            )
            .replace(
                "  serve        Show your sessions in the browser, live\n",
                ""
            )
    );
}

#[test]
fn options_are_below_headings_and_those_of_all_commands_last_and_only_in_the_long_help() {
    for name in commands() {
        for form in ["-h", "--help"] {
            let help = stdout(&transcript(&[&name, form]));
            let places: Vec<_> = HEADINGS
                .iter()
                .filter_map(|heading| help.find(&format!("\n{heading}\n")))
                .collect();
            assert!(places.is_sorted(), "{name} {form}: {help}");
            assert!(!help.contains("\nOptions:\n"), "{name} {form}: {help}");
            let has_globals = help.contains("Global options:");
            assert_eq!(has_globals, form == "--help", "{name} {form}: {help}");
            let means_nothing = ["completions", "man", "import", "help"].contains(&&*name);
            assert_eq!(
                help.contains("--archive [<DIR|URL>]"),
                has_globals && !means_nothing,
                "{name} {form}"
            );
            assert!(
                help.find("Examples:") > places.last().copied(),
                "{name} {form}: {help}"
            );
        }
        // The command `help` prints the long form.
        let same = stdout(&transcript(&["help", &name]));
        assert_eq!(same, stdout(&transcript(&[&name, "--help"])), "{name}");
    }
}

#[test]
fn help_fits_narrow_pages() {
    for width in ["40", "60", "80"] {
        let columns: usize = width.parse().unwrap();
        for name in commands() {
            let help = stdout(
                &command(&[&name, "--help"])
                    .env("COLUMNS", width)
                    .output()
                    .unwrap(),
            );
            let text = help.split("Examples:").next().unwrap();
            let usage =
                |line: &&str| !line.starts_with("Usage:") && !line.starts_with("       transcript");
            // Words without a space, such as an address, are not broken.
            let is_one_word = |line: &&str| line.split_whitespace().count() > 1;
            let widest = text
                .lines()
                .filter(usage)
                .filter(is_one_word)
                .map(|line| line.chars().count())
                .max();
            assert!(widest <= Some(columns), "{name} {width}: {help}");
        }
    }
}

#[test]
fn every_example_that_ends_runs() {
    let home = Home::new();
    // Codex was used here.
    fs::create_dir_all(home.path(".codex")).unwrap();
    // The laptop went on.
    for (name, count) in [("here", 4), ("laptop", 6)] {
        let text = session(ID, "The login bug", &home.path("old"), count);
        fs::write(home.path(&format!("{name}.jsonl")), text).unwrap();
    }
    // Each starts with what the commands before it made.
    let order = [
        "export",
        "import",
        "keep",
        "completions",
        "man",
        "tail",
        "append",
        "merge",
        "list",
        "search",
        "replay",
        "tree",
        "usage",
        "verify",
        "resume",
        "convert",
        "repair",
        "fork",
        "prune",
        "help",
        "move",
        "push",
        "restore",
        "pull",
    ];
    let run_or_endless: BTreeSet<String> = order
        .into_iter()
        .chain(["browse", "serve"])
        .map(str::to_owned)
        .collect();
    assert!(run_or_endless.is_superset(&commands()), "{:?}", commands());
    let mut run = 0;
    // The light form lacks some.
    let built = commands();
    for name in order.into_iter().filter(|name| built.contains(*name)) {
        let help = stdout(&home.transcript(&[name, "-h"]));
        let lines = examples(&help);
        assert!(lines.len() >= 2, "{name}: {help}");
        for line in lines {
            if line.contains("tail -f") || line.contains("man -l") {
                continue;
            }
            if matches!(name, "restore" | "pull") && line.contains("1f0a") {
                fs::remove_dir_all(home.path(".claude/projects")).unwrap();
                fs::create_dir(home.path(".claude/projects")).unwrap();
            }
            let output = home.shell(line);
            // Damage was found in nothing, but `verify` has notes on the folder.
            let expected = if name == "verify" { 1 } else { 0 };
            let code = output.status.code().unwrap();
            assert!(
                code <= expected,
                "{line}: {code} {} {}",
                stdout(&output),
                stderr(&output)
            );
            run += 1;
        }
    }
    assert!(run >= 40, "{run}");
}

#[test]
fn every_topic_is_listed_and_fits_the_page() {
    let help = stdout(&transcript(&["help"]));
    let topics = help.split("Topics of `transcript help`:\n").nth(1).unwrap();
    let topics = rows(topics.split("\n\n").next().unwrap());
    assert_eq!(topics.len(), 8, "{topics:?}");
    for topic in topics {
        for width in ["40", "80"] {
            let output = command(&["help", topic])
                .env("COLUMNS", width)
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(0), "{topic}");
            let text = stdout(&output);
            let columns: usize = width.parse().unwrap();
            // Lines to copy are not broken.
            let own = |line: &&str| {
                !line.starts_with("  transcript ") && line.split_whitespace().count() > 1
            };
            let widest = text
                .lines()
                .filter(own)
                .map(|line| line.chars().count())
                .max();
            assert!(widest <= Some(columns), "{topic} {width}: {text}");
        }
    }
    let unknown = transcript(&["help", "serach"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        stderr(&unknown).contains("`transcript help search`"),
        "{}",
        stderr(&unknown)
    );
}

#[test]
fn topics_name_commands_options_and_variables_that_exist() {
    let help = stdout(&transcript(&["help"]));
    let topics = help.split("Topics of `transcript help`:\n").nth(1).unwrap();
    let topics = rows(topics.split("\n\n").next().unwrap());
    let commands = commands();
    let all: String = commands
        .iter()
        .map(|name| stdout(&transcript(&[name, "--help"])))
        .collect();
    for topic in topics {
        let text = stdout(
            &command(&["help", topic])
                .env("COLUMNS", "1000")
                .output()
                .unwrap(),
        );
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || "`,;:().=|[]".contains(c))
            .collect();
        for pair in words.windows(2).filter(|pair| pair[0] == "transcript") {
            let is_name =
                pair[1].chars().all(|c| c.is_ascii_lowercase() || c == '-') && !pair[1].is_empty();
            let is_other = ["reads", "in", "has"].contains(&pair[1]);
            let is_built = cfg!(feature = "browse") && cfg!(feature = "serve");
            assert!(
                !is_name || is_other || !is_built || commands.contains(pair[1]),
                "{topic}: {pair:?}"
            );
        }
        for option in words
            .iter()
            .filter(|word| word.starts_with("--") && word.len() > 2)
        {
            assert!(all.contains(*option), "{topic}: {option}");
        }
    }
}

#[test]
fn other_names_are_those_of_commands() {
    let session = fixture("linear.jsonl");
    for (name, command) in [
        ("cat", "replay"),
        ("view", "replay"),
        ("show", "replay"),
        ("open", "replay"),
        ("read", "replay"),
        ("find", "search"),
        ("grep", "search"),
        ("cost", "usage"),
        ("stats", "usage"),
        ("backup", "keep"),
        ("clean", "prune"),
        ("doctor", "verify"),
        ("check", "verify"),
        ("projects", "list"),
        ("ls", "list"),
        ("copy", "fork"),
        ("follow", "tail"),
        ("watch", "tail"),
        ("log", "tail"),
        ("web", "serve"),
        ("ui", "serve"),
        ("tui", "browse"),
    ] {
        assert_eq!(
            transcript(&[name, "--help"]),
            transcript(&[command, "--help"]),
            "{name}"
        );
        assert!(!commands().contains(name), "{name}");
        let wrong = stderr(&transcript(&[name, "--nonesuch"]));
        let explained = format!("`transcript {command} --help` explains it");
        assert!(wrong.contains(&explained), "{name}: {wrong}");
    }
    assert_eq!(
        transcript(&["cat", &session]),
        transcript(&["replay", &session])
    );
}

#[test]
fn a_word_for_a_job_without_a_command_says_what_to_do() {
    for (word, hint) in [
        ("rm", "transcript prune"),
        ("delete", "delete its file"),
        ("rename", "transcript append"),
        ("tag", "transcript append"),
        ("diff", "transcript replay SESSION --tool Edit"),
        ("html", "transcript export SESSION --html FILE"),
    ] {
        let output = transcript(&[word, "x"]);
        assert_eq!(output.status.code(), Some(2), "{word}");
        let error = stderr(&output);
        assert!(error.contains(hint), "{word}: {error}");
        assert_eq!(error.lines().count(), 1, "{word}: {error}");
    }
}

#[test]
fn an_unknown_word_is_one_error_with_the_nearest_command() {
    let home = Home::new();
    for (words, expected) in [
        (&["serach", "x"][..], "is `transcript search` meant?"),
        (&["lst"], "is `transcript list` meant?"),
        (&["lst", "--json"], "is `transcript list` meant?"),
        (
            &["xyzzy", "--no-such-option"],
            "neither a command nor a session",
        ),
        (&["ffff0000"], "neither a command nor a session"),
        (&["no-such.jsonl"], "no-such.jsonl"),
        (&["old"], "is a folder"),
    ] {
        let output = home.transcript(words);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(expected), "{words:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{words:?}: {error}");
        assert!(stdout(&output).is_empty(), "{words:?}");
    }
    // Also where there is no home folder.
    let output = Command::new(BINARY)
        .arg("xyzzy")
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("neither a command nor a session"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_name_of_a_session_alone_opens_it_with_the_options_that_follow() {
    let home = Home::new();
    let file = home.path("here.jsonl");
    fs::write(&file, session(ID, "here", &home.path("old"), 4)).unwrap();
    for name in [
        "1f0a",
        ID,
        "latest",
        "the login BUG",
        "1f0a:3",
        file.to_str().unwrap(),
    ] {
        for options in [&[][..], &["--json"], &["--role", "user"]] {
            let short = home.transcript(&[&[name], options].concat());
            let long = home.transcript(&[&["replay", name], options].concat());
            assert_eq!(short.status.code(), Some(0), "{name}: {}", stderr(&short));
            assert_eq!(stdout(&short), stdout(&long), "{name}");
        }
    }
    let elsewhere = home.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(home.path(".claude/projects"), elsewhere.join("projects")).unwrap();
    let root = elsewhere.join("projects");
    let root = root.to_str().unwrap();
    for words in [&["1f0a", "--root", root], &["--root", root, "1f0a"]] {
        let output = home.transcript(words);
        assert!(
            stdout(&output).contains("exact words"),
            "{words:?} {}",
            stderr(&output)
        );
    }
    // An option that `replay` does not have is the error of `replay`.
    let output = home.transcript(&["--root", root, "1f0a", "--no-such-option"]);
    assert!(
        stderr(&output).contains("--no-such-option"),
        "{}",
        stderr(&output)
    );
}

#[cfg(unix)]
#[test]
fn a_program_of_the_name_is_a_command_after_those_that_exist_and_before_sessions() {
    let home = Home::new();
    fs::create_dir(home.path("bin")).unwrap();
    for name in [
        "transcript-hello",
        "transcript-list",
        "transcript-cat",
        "transcript-1f0a",
        "transcript-rm",
    ] {
        // Written by another process: while this one has a file open to write, no thread can run it.
        let script =
            r#"printf '#!/bin/sh\necho "program $0 $@"\n"$TRANSCRIPT_BIN" --version\nexit 7\n'"#;
        let written = home.shell(&format!("{script} > bin/{name} && chmod 755 bin/{name}"));
        assert!(written.status.success(), "{}", stderr(&written));
    }
    for name in ["hello", "1f0a", "rm"] {
        let output = home.transcript(&[name, "a b", "--json"]);
        assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(
            text.contains(&format!("transcript-{name} a b --json\n")),
            "{text}"
        );
        assert!(text.contains("transcript 0."), "{text}");
    }
    for name in ["list", "cat"] {
        let output = home.transcript(&[name]);
        assert!(!stdout(&output).contains("program"), "{name}");
    }
}

#[cfg(not(all(feature = "browse", feature = "serve", feature = "encryption")))]
#[test]
fn the_light_form_says_where_the_full_one_is() {
    let home = Home::new();
    for words in [
        &["browse"][..],
        &["browse", "1f0a", "--json"],
        &["serve", "--open"],
        &["web"],
        &["tui"],
        &["keep", "--encrypt", "key.txt"],
        &["keep", "--encrypt", "age1abc"],
    ] {
        let output = home.transcript(words);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(
            error.contains("this is the light form")
                && error.contains("cargo install transcript-cli"),
            "{words:?}: {error}"
        );
    }
    assert!(!home.path("key.txt").exists());
}

/// What `__complete` offers for the words after `transcript`: the others, and the words.
fn offered(home: &Home, words: &[&str]) -> (String, Vec<String>) {
    let output = home.transcript(&[&["__complete", "--"], words].concat());
    assert_eq!(
        output.status.code(),
        Some(0),
        "{words:?}: {}",
        stderr(&output)
    );
    let text = stdout(&output);
    let mut lines = text.lines();
    let others = lines.next().unwrap().to_owned();
    (
        others,
        lines
            .map(|line| line.split('\t').next().unwrap().to_owned())
            .collect(),
    )
}

#[test]
fn every_word_of_a_command_line_is_completed() {
    let home = Home::new();
    let old = home.path("old");
    let old = old.to_str().unwrap();
    for (words, others, expected) in [
        (&["rep"][..], "files", &["repair", "replay"][..]),
        (&["1f"], "files", &["1f0a2b3c"]),
        (&["replay", "1f"], "files", &["1f0a2b3c"]),
        (&["cat", "9"], "files", &["9e0a2b3c"]),
        (&["replay", "1f0a:"], "files", &["1f0a:3", "1f0a:1"]),
        (&["replay", "1f0a", "--at", ""], "words", &["3", "1"]),
        (&["replay", "1f0a", "x"], "words", &[]),
        (
            &["replay", "--tools", ""],
            "words",
            &["full", "short", "none"],
        ),
        (&["replay", "--tools=s"], "words", &["--tools=short"]),
        (&["replay", "--all-b"], "words", &["--all-branches"]),
        (&["replay", "--colo"], "words", &["--color"]),
        (&["--color", "al"], "words", &["always"]),
        (&["list", "--project", ""], "folders", &[old]),
        (&["list", "--project", "/no"], "folders", &[]),
        (&["verify", "1f0a", "9"], "files", &["9e0a2b3c"]),
        (&["export", "1f0a", "--html", ""], "files", &[]),
        (&["help", "sess"], "words", &["sessions"]),
        (&["man", "tre"], "words", &["tree"]),
        (&["completions", "z"], "words", &["zsh"]),
        (&["usage", "--by", "mod"], "words", &["model"]),
        (&["--root", "/nowhere", "replay", "1f"], "files", &[]),
        (&["replay", "1f", "--root", "/nowhere", ""], "words", &[]),
        (&["list", "--archive", "--js"], "words", &["--json"]),
    ] {
        let (found_others, found) = offered(&home, words);
        assert_eq!(found, expected, "{words:?}");
        assert_eq!(found_others, others, "{words:?}");
    }
    let (_, all) = offered(&home, &["replay", ""]);
    assert_eq!(all.first().map(String::as_str), Some("latest"), "{all:?}");
    assert_eq!(all.len(), 3, "{all:?}");
    let (_, commands) = offered(&home, &[""]);
    let commands: BTreeSet<String> = commands.into_iter().collect();
    assert_eq!(commands, self::commands());
}

#[test]
fn a_title_cannot_change_the_list_of_the_shell() {
    let home = Home::new();
    let project = fs::read_dir(home.path(".claude/projects"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let id = "aaaa2b3c-1111-4222-8333-444455556666";
    fs::write(
        project.join(format!("{id}.jsonl")),
        session(id, "a\nb\u{1b}[2J\tc", &home.path("old"), 4),
    )
    .unwrap();
    let output = home.transcript(&["__complete", "--", "replay", "aaaa"]);
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 2, "{text:?}");
    assert!(
        !text.contains('\u{1b}') && text.matches('\t').count() == 1,
        "{text:?}"
    );
}

/// Runs a program that may not be there.
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn run_if_there(home: &Home, program: &str, arguments: &[&str]) -> Option<String> {
    match home.in_home(program).args(arguments).output() {
        Ok(output) => Some(format!("{}{}", stdout(&output), stderr(&output))),
        Err(_) => {
            println!("skipped: no {program}");
            None
        }
    }
}

#[test]
fn bash_completes_commands_sessions_lines_and_options() {
    let home = Home::new();
    let script = r#"
        eval "$(transcript completions bash)"
        try() {
            COMP_TYPE=$1; shift
            COMP_WORDS=(transcript "$@"); COMP_CWORD=$#; COMP_LINE="transcript $*"; COMP_POINT=${#COMP_LINE}
            _transcript; printf '[%s]' "${COMPREPLY[@]}"; echo
        }
        try 9 rep; try 9 replay 1f; try 63 verify ''; try 9 replay 1f0a :; try 9 replay --tools = s; try 9 replay nothing
    "#;
    let Some(text) = run_if_there(&home, "bash", &["--norc", "-c", script]) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "[repair][replay]", "{text}");
    assert_eq!(lines[1], "[1f0a2b3c]", "{text}");
    assert!(lines[2].contains("[1f0a2b3c  (The login bug)]"), "{text}");
    assert_eq!(lines[3], "[3][1]", "{text}");
    assert_eq!(lines[4], "[short]", "{text}");
    assert_eq!(lines[5], "[]", "{text}");
}

#[test]
fn fish_completes_commands_and_sessions() {
    let home = Home::new();
    let script = "transcript completions fish | source; complete -C 'transcript repl'; complete -C 'transcript replay 1f'";
    let Some(text) = run_if_there(&home, "fish", &["--no-config", "-c", script]) else {
        return;
    };
    assert!(text.contains("replay\tPrint the conversation"), "{text}");
    assert!(text.contains("1f0a2b3c\tThe login bug"), "{text}");
}

#[test]
fn zsh_completes_commands_and_sessions() {
    let home = Home::new();
    // Without a terminal there is no list: what the function would describe is printed.
    let script = r#"
        compdef() { }
        _describe() { print -l -- "${(@P)3}" }
        _files() { print files }
        eval "$(transcript completions zsh)"
        words=(transcript replay 1f); CURRENT=3; _transcript
        words=(transcript repl); CURRENT=2; _transcript
    "#;
    let Some(text) = run_if_there(&home, "zsh", &["-f", "-c", script]) else {
        return;
    };
    assert!(text.contains("1f0a2b3c:The login bug\nfiles"), "{text}");
    assert!(text.contains("replay:Print the conversation"), "{text}");
}

#[test]
fn the_lines_that_install_completions_work_in_a_new_home() {
    let folder = tempfile::tempdir().unwrap();
    let help = stdout(&transcript(&["completions", "--help"]));
    let lines = examples(&help);
    assert_eq!(lines.len(), 3);
    for line in lines {
        let path = Path::new(BINARY)
            .parent()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
            + ":/usr/bin:/bin";
        let output = Command::new("sh")
            .args(["-c", line])
            .env_clear()
            .env("HOME", folder.path())
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        let file = line
            .rsplit(' ')
            .next()
            .unwrap()
            .replace('~', folder.path().to_str().unwrap());
        assert!(
            fs::read_to_string(&file).unwrap().contains("__complete"),
            "{file}"
        );
    }
}

#[test]
fn man_writes_a_page_for_each_command_and_one_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    for _ in 0..2 {
        let output = transcript(&["man", "--dir", pages.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let names = fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.collect();
    let expected = commands()
        .into_iter()
        .map(|name| format!("transcript-{name}.1"));
    let expected: BTreeSet<String> = expected.chain(["transcript.1".to_owned()]).collect();
    assert_eq!(names, expected);
    for name in names {
        let page = fs::read_to_string(pages.join(&name)).unwrap();
        assert!(
            page.contains(&format!(".TH {} 1", name.trim_end_matches(".1"))),
            "{name}: {page}"
        );
    }
}
