//! No text of a transcript can control a terminal.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::{command, stderr, stdout, transcript};

const FILES: [&str; 2] = ["hostile/terminal.jsonl", "hostile/compacted.jsonl"];

/// Every way to print text for people.
const PRINTS: [&[&str]; 14] = [
    &["replay"],
    &["replay", "--tools", "full", "--thinking", "--explain"],
    &[
        "replay",
        "--tools",
        "none",
        "--policy",
        "vendor",
        "--explain",
    ],
    &["replay", "--all-branches", "--sidechains"],
    &["replay", "--sidechains", "--tools", "full"],
    &[
        "replay",
        "--format",
        "markdown",
        "--thinking",
        "--sidechains",
    ],
    &[
        "replay",
        "--format",
        "markdown",
        "--tools",
        "full",
        "--all-branches",
    ],
    &["replay", "--format", "ids", "--explain"],
    &["tree"],
    &["resume", "--explain"],
    &["tail"],
    &["tail", "--tools", "full", "--thinking"],
    &["tail", "--sidechains", "--tools", "none"],
    &["replay", "--leaf", "\u{1b}[31m\u{202e}"],
];

fn fixture(name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1");
    fixtures.join(name).to_str().unwrap().to_owned()
}

fn print(arguments: &[&str], file: &str, columns: &str) -> Output {
    let mut command = command(arguments);
    command.arg(fixture(file)).env("COLUMNS", columns);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Takes out the colours that are ours.
pub(crate) fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';');
        match end.filter(|end| after[*end..].starts_with('m')) {
            Some(end) => rest = &after[end + 1..],
            None => {
                out.push('\u{1b}');
                rest = after;
            }
        }
    }
    out + rest
}

/// The first character that a terminal, or a reader, could be fooled by.
fn first_bad(text: &str) -> Option<char> {
    text.chars().find(|c| {
        (c.is_control() && *c != '\n')
            || matches!(*c, '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
            || matches!(*c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E0FFF}')
    })
}

#[test]
fn no_print_path_lets_a_control_character_through() {
    for file in FILES {
        for arguments in PRINTS {
            for columns in ["40", "120"] {
                let output = print(arguments, file, columns);
                assert_ne!(output.status.code(), None, "{arguments:?}");
                for text in [stdout(&output), stderr(&output)] {
                    assert_eq!(first_bad(&text), None, "{arguments:?} {file}: {text}");
                }
            }
        }
    }
}

#[test]
fn only_our_own_sequences_reach_the_terminal_with_colour() {
    for file in FILES {
        for arguments in PRINTS {
            let arguments = [arguments, &["--color", "always"]].concat();
            let output = print(&arguments, file, "80");
            for text in [stdout(&output), stderr(&output)] {
                let text = without_colours(&text);
                assert_eq!(first_bad(&text), None, "{arguments:?} {file}: {text}");
            }
        }
    }
}

#[test]
fn colours_of_tools_and_of_the_client_are_not_shown_as_escapes() {
    let red = |text: &str| format!("\u{1b}[1;38;5;196m{text}\u{1b}[0m\u{1b}[m");
    let printed = format!(
        "<local-command-stdout>{}</local-command-stdout>",
        red("model")
    );
    let mut entries = vec![json!({"type": "user", "message": {"role": "user", "content": "Go"}})];
    let results = [
        (json!(red("plain")), false),
        (json!([{"type": "text", "text": red("listed")}]), false),
        (json!(format!("Exit code 1\n{}", red("broken"))), true),
    ];
    for (number, (content, is_error)) in results.into_iter().enumerate() {
        let id = format!("t{number}");
        let call =
            json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}});
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error});
        let asked = json!({"id": format!("m{number}"), "role": "assistant", "content": [call]});
        entries.push(json!({"type": "assistant", "message": asked}));
        entries.push(json!({"type": "user", "message": {"role": "user", "content": [result]}}));
    }
    entries.push(json!({"type": "user", "message": {"role": "user", "content": printed}}));
    entries.push(json!({"type": "system", "subtype": "informational", "content": red("notice")}));
    let mut lines = String::new();
    for (number, mut entry) in entries.into_iter().enumerate() {
        entry["uuid"] = format!("u{number}").into();
        entry["parentUuid"] = number
            .checked_sub(1)
            .map(|before| format!("u{before}"))
            .into();
        lines.push_str(&format!("{entry}\n"));
    }
    let file = tempfile::Builder::new()
        .suffix(".jsonl")
        .tempfile()
        .unwrap();
    fs::write(file.path(), lines).unwrap();
    for arguments in PRINTS
        .into_iter()
        .filter(|print| matches!(print[0], "replay" | "tail"))
    {
        let mut command = command(arguments);
        let output = command
            .arg(file.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let shown = stdout(&output);
        assert!(!shown.contains("<ESC>"), "{arguments:?} {shown}");
        let has_results = !arguments
            .iter()
            .any(|word| ["none", "ids", "--leaf"].contains(word));
        for word in ["plain", "listed", "broken", "model", "notice"] {
            assert!(
                !has_results || shown.contains(word),
                "{arguments:?} {word} {shown}"
            );
        }
    }
}

#[test]
fn a_list_of_hostile_sessions_does_nothing_either() {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("-home-ada");
    fs::create_dir(&project).unwrap();
    for (number, file) in FILES.iter().enumerate() {
        let name = format!("9d3c51aa-6c1e-4d0b-8f57-3f0f4b6f2e1{number}.jsonl");
        fs::copy(fixture(file), project.join(name)).unwrap();
    }
    let root = root.path().to_str().unwrap();
    for more in [&[][..], &["--color", "always"]] {
        let output = command(&[&["list", "--root", root], more].concat())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains("<ESC>"), "{}", stdout(&output));
        for text in [stdout(&output), stderr(&output)] {
            // Between the values of a row.
            let text = without_colours(&text).replace('\t', " ");
            assert_eq!(first_bad(&text), None, "{text}");
        }
    }
}

/// A session that has such characters, plain and escaped, in every field that a record repeats.
fn controls() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("-p/0a\u{9b}1b\u{202e}.jsonl");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let (plain, coded) = ("\u{9b}2J\u{7f}\u{202e}", r"\u009b2J\u007f\u202e");
    let lines = [
        format!(
            r#"{{"type":"user","uuid":"e{coded}","sessionId":"s{plain}","cwd":"/{plain}","gitBranch":"{coded}","timestamp":"{coded}","parentUuid":null,"message":{{"role":"user","content":"said {plain}"}}}}"#
        ),
        format!(
            r#"{{"type":"assistant","uuid":"f{plain}","parentUuid":"e{plain}","message":{{"id":"m{coded}","model":"{plain}","role":"assistant","content":[{{"type":"tool_use","id":"t{plain}","name":"{plain}","input":{{}}}}]}}}}"#
        ),
        format!(r#"{{"type":"custom-title","customTitle":"{plain}"}}"#),
    ];
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    (folder, file.to_str().unwrap().to_owned())
}

#[test]
fn json_holds_such_characters_only_in_verbatim_parts() {
    let (folder, file) = controls();
    let root = folder.path().to_str().unwrap();
    let copy = folder.path().join("copy\u{9b}.jsonl");
    let prints: [&[&str]; 6] = [
        &["replay", "--json", "--all-branches", &file],
        &["resume", "--json", &file],
        &["tail", "--json", "--changes", &file],
        &["tree", "--json", &file],
        &["list", "--json", "--root", root],
        &["fork", "--json", "--out", copy.to_str().unwrap(), &file],
    ];
    for arguments in prints {
        let output = command(arguments).stdin(Stdio::null()).output().unwrap();
        let text = stdout(&output);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?} {}",
            stderr(&output)
        );
        assert!(text.contains(r"\u009b"), "{arguments:?}: {text}");
        for line in text.lines() {
            // The verbatim part: the message of an entry, the messages of a request.
            let own = match line.split_once(r#","message":"#) {
                Some((before, after)) => {
                    before.to_owned() + after.split_once(r#","via":"#).unwrap().1
                }
                None => match line.split_once(r#","messages":"#) {
                    Some((before, after)) => {
                        before.to_owned() + after.split_once(r#","entries":"#).unwrap().1
                    }
                    None => line.to_owned(),
                },
            };
            assert_eq!(first_bad(&own), None, "{arguments:?}: {own}");
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
    let shown = stdout(&transcript(&["replay", "--json", &file]));
    assert!(shown.contains("said \u{9b}2J"), "verbatim: {shown}");
}

#[test]
#[cfg(target_os = "linux")]
fn json_on_a_terminal_has_no_control_characters() {
    let (_folder, file) = controls();
    // `script` gives its command a terminal.
    let run = |form: &str| {
        let binary = env!("CARGO_BIN_EXE_transcript");
        let shell = format!("'{binary}' {form} '{file}'");
        let script = std::process::Command::new("script")
            .args(["-qec", &shell, "/dev/null"])
            .stdin(Stdio::null())
            .output();
        script.ok().map(|output| stdout(&output).replace('\r', ""))
    };
    for form in [
        "replay --json --raw-entries",
        "resume --request",
        "tail --json --raw-entries",
    ] {
        let Some(text) = run(form) else {
            println!("skipped: no `script` on this system");
            return;
        };
        assert!(text.contains(r"said \u009b2J"), "{form}: {text}");
        assert_eq!(first_bad(&text), None, "{form}: {text}");
    }
}

#[test]
fn raw_is_asked_for() {
    let output = print(&["replay", "--raw"], FILES[0], "80");
    assert!(stdout(&output).contains("\u{1b}]52;c;"));
}

#[test]
fn no_line_is_wider_than_the_page() {
    for folder in ["sessions", "pains", "hostile"] {
        for entry in fs::read_dir(fixture(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_none_or(|extension| extension != "jsonl")
            {
                continue;
            }
            let name = format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
            for columns in [40, 80, 120] {
                let arguments = [
                    "replay",
                    "--tools",
                    "full",
                    "--sidechains",
                    "--all-branches",
                ];
                let output = print(&arguments, &name, &columns.to_string());
                assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
                // A command stays on one line, so that it can be copied.
                let is_text = |line: &&str| !line.starts_with("to continue: ");
                for line in stdout(&output).lines().filter(is_text) {
                    assert!(line.width() <= columns, "{name} {columns}: {line}");
                }
            }
        }
    }
}

#[test]
fn wide_characters_and_wide_tables_keep_their_columns() {
    for columns in ["40", "80", "120"] {
        let output = print(&["replay"], "hostile/compacted.jsonl", columns);
        insta::assert_snapshot!(format!("hostile_compacted_{columns}"), stdout(&output));
    }
}
