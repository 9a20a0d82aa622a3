//! `transcript export`: an exported session has no secrets, in any format.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;
use transcript_engine::redact::Redactor;

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
        assert!(
            text.contains("[redacted: GitHub token]"),
            "{format}: {text}"
        );
        // The rules find nothing more in the exported text.
        let left = Redactor::new().find_text(text.as_bytes());
        assert!(left.is_empty(), "{format}: {left:?}");
        assert!(text.contains("ada@mail.example.org") && text.contains("done, nothing else"));
        // The report names the kinds of secrets, and no part of a secret.
        let said = stderr(&output);
        // The records of a session are those of its own lines.
        let of_agents = [
            "5 secrets redacted in 5 lines",
            " of 2 files",
            "agents/agent-a1.jsonl, line 1\n",
        ];
        let of_agents = of_agents.iter().filter(|_| format != "--json");
        let of_all = [
            "1 × GitHub token: line 1\n",
            "2 × Anthropic API key: line 3\n",
            "1 e-mail address (--emails)",
            "of people in paths (--names)",
            "no search finds everything",
        ];
        for part in of_agents.chain(&of_all) {
            assert!(said.contains(*part), "{format}: {part}: {said}");
        }
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
            "password",
            "slack-token"
        ]
    );
}

/// Returns a text without its lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_user_says_what_else_is_redacted_and_what_is_kept() {
    let place = Place::new();
    let text = |arguments: &[&str]| {
        let output = place.export(&[&["--text", "-", "--tools", "full"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        words(&stdout(&output))
    };
    let whole = text(&[]);
    assert!(whole.contains("done, nothing else") && !whole.contains(SECRETS[1]));
    let masked = text(&["--also", "nothing,other"]);
    assert!(
        masked.contains("done, [redacted: own rule] else"),
        "{masked}"
    );
    // A kind, the value of a name, and a value.
    for (kept, secret) in [("github token", 0), ("DB_PASSWORD", 1), (SECRETS[2], 2)] {
        let shown = text(&["--keep", kept]);
        for (number, other) in SECRETS[..3].iter().enumerate() {
            assert_eq!(shown.contains(other), number == secret, "{kept}: {shown}");
        }
    }
    let rules = "# of this project\nname INTERNAL\ntext nothing else\n\nform ad{alnum:1}@{alpha:4}\nkeep password\n";
    fs::write(place.at("rules"), rules).unwrap();
    fs::write(place.at(".transcript-redact"), "text mail\n").unwrap();
    let output = place.export(&["--text", "-", "--tools", "full", "--also", "rules"]);
    let shown = words(&stdout(&output));
    assert!(shown.contains("done, [redacted: own rule]"), "{shown}");
    assert!(
        shown.contains("and [redacted: own rule] [redacted: own rule].example.org"),
        "{shown}"
    );
    assert!(shown.contains(SECRETS[1]), "{shown}");
    assert!(
        stderr(&output).contains(".transcript-redact: 1"),
        "{}",
        stderr(&output)
    );
    fs::write(place.at("rules"), "name INTERNAL\nsomething else\n").unwrap();
    let refused = place.export(&["--text", "-", "--also", "rules"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("rules: rules for redaction: line 2: expected"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn a_replay_shows_no_secrets_if_asked_for() {
    let place = Place::new();
    let replay = |arguments: &[&str]| {
        let mut command = command(&["replay", ID, "--tools", "full", "--sidechains"]);
        command
            .args(arguments)
            .arg("--root")
            .arg(place.at("projects"));
        command.output().unwrap()
    };
    let plain = stdout(&replay(&[]));
    assert!(
        SECRETS.iter().all(|secret| plain.contains(secret)),
        "{plain}"
    );
    let output = replay(&["--redact", "--names"]);
    let masked = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        SECRETS.iter().all(|secret| !masked.contains(secret)),
        "{masked}"
    );
    assert!(masked.contains("[redacted: Slack token]"), "{masked}");
    assert!(masked.contains("ada@mail.example.org") && !masked.contains("/home/ada"));
    let refused = replay(&["--emails"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("need --redact"));
}

#[test]
fn no_output_replaces_another_session_or_is_two_files() {
    let place = Place::new();
    let other = place.at("projects/-home-ada/22222222-2222-4333-8444-555555555555.jsonl");
    fs::write(&other, "what was said\n").unwrap();
    let (page, link) = (place.at("page.html"), place.at("link"));
    assert_eq!(
        place
            .export(&["--html", page.to_str().unwrap()])
            .status
            .code(),
        Some(0)
    );
    #[cfg(unix)]
    std::os::unix::fs::symlink(&other, &link).unwrap();
    #[cfg(not(unix))]
    fs::copy(&page, &link).unwrap();
    let name = other.to_str().unwrap();
    for arguments in [
        ["--text", name, "--force"].as_slice(),
        &["--text", "-", "--json-report", name, "--force"],
        #[cfg(unix)]
        &["--html", link.to_str().unwrap(), "--force"],
    ] {
        let refused = place.export(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&refused).contains("a file of a session"),
            "{arguments:?}"
        );
    }
    let root = place.at("projects");
    let root = ["--root", root.to_str().unwrap()];
    let import = ["import", page.to_str().unwrap(), "--out", name, "--force"];
    let refused = command(&[&import[..], &root].concat()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(fs::read(&other).unwrap(), b"what was said\n");
    // The text and its report, also by another way to the same file.
    let text = place.at("text");
    let again = place.at("projects/../text");
    let [text, again] = [&text, &again].map(|path| path.to_str().unwrap());
    for report in [text, again] {
        let refused = place.export(&["--text", text, "--json-report", report, "--force"]);
        assert_eq!(refused.status.code(), Some(2), "{report}");
    }
    assert!(!place.at("text").exists());
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_is_written_to_and_stays() {
    use std::os::unix::fs::{FileTypeExt, symlink};

    let place = Place::new();
    let (pipe, link, file) = (place.at("pipe"), place.at("link"), place.at("file"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    fs::write(&file, "old").unwrap();
    symlink("file", &link).unwrap();
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::read_to_string(pipe).unwrap())
    };
    let [pipe_name, link_name] = [&pipe, &link].map(|path| path.to_str().unwrap());
    let done = place.export(&["--text", pipe_name, "--force"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(reader.join().unwrap().contains("use "));
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    let done = place.export(&["--text", "/dev/null", "--force"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let null = fs::symlink_metadata("/dev/null").unwrap().file_type();
    assert!(null.is_char_device());
    // A link stays, and the file that it leads to is replaced.
    let done = place.export(&["--text", link_name, "--force"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().contains("use "));
    let refused = place.export(&["--text", place.at("projects").to_str().unwrap(), "--force"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_session_itself_is_never_replaced() {
    let place = Place::new();
    let session = place.at("projects/-home-ada").join(format!("{ID}.jsonl"));
    let agent = session.with_extension("").join("subagents/agent-a1.jsonl");
    let link = place.at("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&session, &link).unwrap();
    #[cfg(not(unix))]
    fs::hard_link(&session, &link).unwrap();
    let before = (fs::read(&session).unwrap(), fs::read(&agent).unwrap());
    for file in [&session, &agent, &link] {
        let file = file.to_str().unwrap();
        for arguments in [
            ["--html", file, "--force"].as_slice(),
            &["--json", file, "--force"],
            &["--text", "-", "--json-report", file, "--force"],
        ] {
            let refused = place.export(arguments);
            assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
            assert!(stderr(&refused).contains("name another file"));
        }
    }
    assert_eq!(
        (fs::read(&session).unwrap(), fs::read(&agent).unwrap()),
        before
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

#[test]
fn a_page_gives_the_lines_back_unless_a_part_was_exported() {
    let place = Place::new();
    let session = place.at(&format!("projects/-home-ada/{ID}.jsonl"));
    let import = |out: &str| {
        let mut command = command(&["import", "page.html", "--out", out]);
        command.current_dir(place.folder.path()).output().unwrap()
    };
    let export = |arguments: &[&str]| {
        let output = place.export(&[&["--html", "page.html", "--force"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    };
    export(&["--no-redact"]);
    let imported = import("back.jsonl");
    assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
    assert_eq!(
        fs::read(place.at("back.jsonl")).unwrap(),
        fs::read(&session).unwrap()
    );
    // A file that exists is replaced only if asked for.
    assert_eq!(import("back.jsonl").status.code(), Some(1));
    assert_eq!(stdout(&import("-")).as_bytes(), fs::read(&session).unwrap());
    // With redactions, every byte but theirs is the same.
    export(&[]);
    let masked = stdout(&import("-"));
    let mut whole = fs::read_to_string(&session).unwrap();
    let kinds = ["GitHub token", "password", "Anthropic API key"];
    for (secret, kind) in SECRETS.iter().zip(kinds) {
        assert!(whole.contains(secret));
        whole = whole.replace(secret, &format!("[redacted: {kind}]"));
    }
    assert_eq!(masked, whole);
    // An entry that the page omits is not in its lines.
    for part in [
        &["--at", "2"][..],
        &["--leaf", "2"],
        &["--conversation-only"],
        &["--no-lines"],
    ] {
        export(part);
        let refused = import("part.jsonl");
        assert_eq!(refused.status.code(), Some(1), "{part:?}");
        assert!(
            stderr(&refused).contains("not a page made by"),
            "{}",
            stderr(&refused)
        );
        assert!(!place.at("part.jsonl").exists());
    }
    // Damage is found, and no file is left with the lines before it.
    export(&["--no-redact"]);
    let page = fs::read_to_string(place.at("page.html")).unwrap();
    let at = page.rfind("\nend ").unwrap() - 20;
    let damaged = format!("{}????{}", &page[..at], &page[at + 4..]);
    fs::write(place.at("page.html"), damaged).unwrap();
    let failed = import("part.jsonl");
    assert_eq!(failed.status.code(), Some(2), "{}", stderr(&failed));
    assert!(
        stderr(&failed).contains("damaged at byte"),
        "{}",
        stderr(&failed)
    );
    assert!(!place.at("part.jsonl").exists());
}

/// One secret of each of these kinds; what is omitted of each is random.
fn planted(kind: usize, number: usize) -> String {
    let random = |len: usize| -> String {
        let mut state = (kind * 7919 + number * 104_729 + 17) as u64;
        let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
        (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                char::from(letters[(state >> 33) as usize % letters.len()])
            })
            .collect()
    };
    match kind {
        0 => format!("ghp_{}", random(36)),
        1 => format!("github_pat_{}", random(82)),
        2 => format!("sk-ant-api03-{}", random(93)),
        3 => format!("sk-proj-{}", random(48)),
        4 => format!("AKIA{}", random(16).to_uppercase()),
        5 => format!("xoxb-1234567890-{}", random(24)),
        6 => format!("glpat-{}", random(20)),
        7 => format!("AIza{}", random(35)),
        8 => format!("npm_{}", random(36)),
        9 => format!("hf_{}", random(34)),
        10 => format!(
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx{}.{}",
            random(20),
            random(43)
        ),
        11 => format!("postgres://app:{}@db.example.org/app", random(18)),
        12 => format!("DB_PASSWORD={}", random(22)),
        13 => format!("Authorization: Bearer {}", random(40)),
        14 => format!("sk_live_{}", random(24)),
        _ => format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
            random(64)
        ),
    }
}

/// The part of a planted secret that must not be anywhere.
fn core(secret: &str) -> &str {
    let secret = secret.split('\n').nth(1).unwrap_or(secret);
    let secret = secret.split('@').next().unwrap_or(secret);
    &secret[secret.len() - 10..]
}

#[test]
fn planted_secrets_are_in_no_format() {
    const KINDS: usize = 16;
    let folder = tempfile::tempdir().unwrap();
    let mut secrets = Vec::new();
    let mut lines = Vec::new();
    let mut parent = Value::Null;
    let mut add = |kind: &str, message: Value, more: Value| {
        let uuid = format!("{:08x}-0000-4000-8000-000000000000", lines.len() + 1);
        let mut line = serde_json::json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": ID, "cwd": "/w", "timestamp": "2026-03-04T05:00:00.000Z"});
        if !message.is_null() {
            line["message"] = message;
        }
        for (key, value) in more.as_object().into_iter().flatten() {
            line[key] = value.clone();
        }
        parent = line["uuid"].clone();
        lines.push(line.to_string());
    };
    for kind in 0..KINDS {
        let mut number = 0;
        let mut secret = || {
            number += 1;
            let secret = planted(kind, number);
            secrets.push(secret.clone());
            secret
        };
        let call = format!("t{kind}");
        add(
            "user",
            serde_json::json!({"role": "user", "content": format!("use {} here", secret())}),
            Value::Null,
        );
        add(
            "assistant",
            serde_json::json!({"role": "assistant", "id": format!("m{kind}"), "content": [
                {"type": "thinking", "thinking": format!("it is {}", secret())},
                {"type": "text", "text": format!("```\n{}\n```", secret())},
                {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": format!("run '{}'", secret()), "description": secret()}},
                {"type": "tool_use", "id": format!("w{kind}"), "name": "Write", "input": {"file_path": "/w/.env", "content": secret()}},
            ]}),
            Value::Null,
        );
        add(
            "user",
            serde_json::json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call, "content": [{"type": "text", "text": format!("out\n{}\n", secret())}]},
                {"type": "tool_result", "tool_use_id": format!("w{kind}"), "content": secret()},
            ]}),
            serde_json::json!({"toolUseResult": {"stdout": secret(), "structuredPatch": [{"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1, "lines": [format!("+{}", secret())]}]}}),
        );
        add(
            "attachment",
            Value::Null,
            serde_json::json!({"attachment": {"type": "queued_command", "prompt": secret()}}),
        );
        add(
            "system",
            Value::Null,
            serde_json::json!({"subtype": "informational", "content": secret()}),
        );
    }
    lines.push(
        serde_json::json!({"type": "custom-title", "customTitle": planted(0, 99), "sessionId": ID})
            .to_string(),
    );
    secrets.push(planted(0, 99));
    let session = folder.path().join(format!("{ID}.jsonl"));
    fs::write(&session, lines.join("\n") + "\n").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = command(arguments);
        let output = command.current_dir(folder.path()).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    };
    let name = format!("{ID}.jsonl");
    let mut leaks = Vec::new();
    for format in ["--html", "--markdown", "--json", "--text"] {
        let mut arguments = vec!["export", &name, format, "out", "--force", "--tools", "full"];
        let more = ["--thinking", "--sidechains"];
        if format != "--html" {
            arguments.extend(more);
        }
        run(&arguments);
        let mut text = fs::read_to_string(folder.path().join("out")).unwrap();
        if format == "--html" {
            text.push_str(&run(&["import", "out", "--out", "-"]));
        }
        assert!(text.contains("[redacted"), "{format}");
        let found: Vec<&String> = secrets
            .iter()
            .filter(|secret| text.contains(core(secret)))
            .collect();
        leaks.push((format, found));
    }
    assert!(secrets.len() > 190, "{}", secrets.len());
    for (format, found) in &leaks {
        assert!(found.is_empty(), "{format}: {found:?}");
    }
}
