//! Files that are no sessions, alone and beside sessions, and readers that go away.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::{command, stderr, stdout, transcript};

const ROLLOUT: &str = "{\"timestamp\":\"2026-11-20T10:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"t\"}}\n";

/// Files that somebody may name, and what they are called.
const OTHERS: [(&str, &str, &str); 7] = [
    (
        "notes.jsonl",
        "hello, not json\nsecond line\n",
        "text without an entry",
    ),
    (
        "chat.jsonl",
        "[{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"content\":\"x\"}}]\n",
        "a JSON array",
    ),
    (
        "list.jsonl",
        "[\n{\"role\":\"user\",\"content\":\"x\"}\n]\n",
        "a JSON array",
    ),
    (
        "history.jsonl",
        "{\"display\":\"hello\",\"pastedContents\":{},\"timestamp\":1,\"project\":\"/w\",\"sessionId\":\"s\"}\n",
        "the history of prompts",
    ),
    (
        "openai.jsonl",
        "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"assistant\",\"content\":\"y\"}\n",
        "a log of messages of an API",
    ),
    (
        "other.jsonl",
        "{\"level\":\"info\",\"type\":\"message\"}\n",
        "JSON without an entry",
    ),
    ("rollout.jsonl", ROLLOUT, "a Codex rollout"),
];

fn session(prompts: usize, bytes: usize) -> String {
    let filler = "word ".repeat(bytes / 5);
    let mut text = String::new();
    let mut parent = "null".to_owned();
    for number in 0..prompts {
        let time = format!("2026-11-20T10:{:02}:00.000Z", number % 60);
        text += &format!(
            "{{\"parentUuid\":{parent},\"type\":\"user\",\"uuid\":\"u{number}\",\"sessionId\":\"s\",\"timestamp\":\"{time}\",\
             \"message\":{{\"role\":\"user\",\"content\":\"prompt {number}\\r\\nsecond\"}}}}\n\
             {{\"parentUuid\":\"u{number}\",\"type\":\"assistant\",\"uuid\":\"a{number}\",\"sessionId\":\"s\",\"timestamp\":\"{time}\",\
             \"message\":{{\"id\":\"m{number}\",\"role\":\"assistant\",\"model\":\"claude-opus-4-1\",\"stop_reason\":\"end_turn\",\
             \"content\":[{{\"type\":\"text\",\"text\":\"answer {number} {filler}\"}}],\
             \"usage\":{{\"input_tokens\":1000,\"output_tokens\":100}}}}}}\n"
        );
        parent = format!("\"a{number}\"");
    }
    text
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_named_file_that_is_no_session_is_refused_by_every_command_and_nothing_is_changed() {
    let commands: [&[&str]; 15] = [
        &["replay", "FILE"],
        &["replay", "--json", "FILE"],
        &["tree", "FILE"],
        &["tail", "FILE"],
        &["tail", "-n", "3", "FILE"],
        &["resume", "FILE"],
        &["resume", "--request", "FILE"],
        &["verify", "FILE"],
        &["repair", "FILE"],
        &["repair", "--keep-id", "FILE"],
        &["export", "--json", "-", "FILE"],
        &["usage", "FILE"],
        &["search", "word", "--in", "FILE"],
        &["fork", "FILE"],
        &["append", "FILE"],
    ];
    for (name, text, called) in OTHERS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        for arguments in commands {
            let arguments: Vec<&str> = arguments
                .iter()
                .map(|argument| match *argument {
                    "FILE" => path.to_str().unwrap(),
                    argument => argument,
                })
                .collect();
            let output = transcript(&arguments);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains(called), "{arguments:?}: {said}");
            assert_eq!(stdout(&output), "", "{arguments:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{arguments:?}");
            assert_eq!(names(folder.path()), [name], "{arguments:?}");
        }
    }
}

#[test]
fn what_is_left_of_a_session_is_no_other_format() {
    let whole = session(2, 0);
    let first = whole.lines().next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for text in [
        String::new(),
        "\n\n".to_owned(),
        "\0".repeat(300),
        first[..1].to_owned(),
        first[..20].to_owned(),
        first[..60].to_owned(),
        format!("\0\0\0{}", &first[..90]),
        format!("hello, not json\n{whole}"),
        format!("{}\n{first}\n", "x".repeat(200_000)),
        "{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"u\"}\n".to_owned(),
    ] {
        let path = folder.path().join("s.jsonl");
        fs::write(&path, &text).unwrap();
        for arguments in [["replay"], ["verify"]] {
            let output = transcript(&[&arguments[..], &[path.to_str().unwrap()]].concat());
            let said = stderr(&output);
            assert!(!said.contains("not a transcript"), "{text:?}: {said}");
        }
    }
}

/// A root with a session, and a file beside it that cannot be read.
fn mixed() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-w");
    fs::create_dir_all(&project).unwrap();
    let id = "11111111-2222-4333-8444-555555555555";
    fs::write(project.join(format!("{id}.jsonl")), session(3, 0)).unwrap();
    let other = "22222222-2222-4333-8444-555555555555";
    fs::write(project.join(format!("{other}.jsonl")), ROLLOUT).unwrap();
    let root = folder.path().join("projects");
    (folder, root.to_str().unwrap().to_owned())
}

#[test]
fn beside_a_file_that_cannot_be_read_the_rest_is_shown_and_the_exit_code_says_so() {
    let (_folder, root) = mixed();
    for (arguments, shown) in [
        (&["tail", &root][..], "answer 2"),
        (
            &["search", "--no-cache", "answer", "--root", &root],
            "answer",
        ),
        (&["usage", "--no-cache", "--root", &root], "total ≥ $"),
        (
            &["usage", "--no-cache", "--by", "day", "--root", &root],
            "total ≥ $",
        ),
        (&["list", "--root", &root], "prompt 0"),
    ] {
        let output = transcript(arguments);
        let (out, said) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {out} {said}");
        assert!(out.contains(shown), "{arguments:?}: {out}");
        assert!(said.contains("a Codex rollout"), "{arguments:?}: {said}");
    }
    let json = transcript(&["usage", "--no-cache", "--json", "--root", &root]);
    let total: Value = serde_json::from_str(stdout(&json).lines().last().unwrap()).unwrap();
    assert_eq!(total["unreadFiles"], 1);
    // What is not known to be below is not called so.
    let above =
        |most: &str| transcript(&["usage", "--no-cache", "--warn-above", most, "--root", &root]);
    let output = above("100");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is not known"),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&above("0.001")).contains("is above"));
    let status = transcript(&["usage", "--no-cache", "--statusline", "--root", &root]);
    assert!(
        stdout(&status).starts_with("today ≥ $"),
        "{}",
        stdout(&status)
    );
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, session(100, 20_000)).unwrap();
    let path = path.to_str().unwrap();
    for arguments in [
        &["replay", "--format", "html", path][..],
        &["replay", "--format", "markdown", path],
        &["replay", "--json", path],
        &["replay", path],
        &["export", "--html", "-", path],
        &["export", "--markdown", "-", path],
        &["export", "--json", "-", path],
        &["tail", path],
        &["search", "--no-cache", "--json", "answer", "--in", path],
    ] {
        let mut child = command(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0]).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!stderr(&output).contains("pipe"), "{}", stderr(&output));
    }
}

#[test]
fn in_a_pipe_the_values_of_a_list_are_whole_and_have_a_tab_between_them() {
    let (_folder, root) = mixed();
    let output = transcript(&["list", "--root", &root]);
    let text = stdout(&output);
    let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split('\t').collect()).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows.iter().all(|row| row.len() == 10), "{text}");
    assert_eq!(rows[0][2], "TITLE");
    assert!(rows.iter().any(|row| row[2] == "prompt 0 second"), "{text}");
    assert!(
        rows.iter().any(|row| row[2] == "(cannot be read)"),
        "{text}"
    );
    assert!(!text.contains("  "), "{text}");
}

#[test]
fn a_prompt_starts_a_turn_whatever_is_left_out_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, session(7, 0)).unwrap();
    let path = path.to_str().unwrap();
    for (role, word) in [("user", "prompt"), ("assistant", "answer")] {
        let text = stdout(&transcript(&["replay", "--role", role, path]));
        let rules = text.lines().filter(|line| line.starts_with('─'));
        assert_eq!(rules.count(), 7, "{role}: {text}");
        // Each is the first thing below a rule.
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        for pair in lines.windows(2).filter(|pair| pair[0].starts_with('─')) {
            assert!(pair[1].contains(word), "{role}: {text}");
        }
        let markdown = stdout(&transcript(&[
            "replay", "--format", "markdown", "--role", role, path,
        ]));
        assert_eq!(markdown.matches("\n## ").count(), 7, "{markdown}");
    }
    let all = stdout(&transcript(&["replay", path]));
    assert_eq!(
        all.lines().filter(|line| line.starts_with('─')).count(),
        7,
        "{all}"
    );
}

#[test]
fn line_ends_of_windows_are_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("projects/-w");
    fs::create_dir_all(&project).unwrap();
    let path = project.join("11111111-2222-4333-8444-555555555555.jsonl");
    let text = session(2, 0).replace(
        "answer 1",
        "```sh\\r\\nls\\r\\n```\\r\\nend\\r\\n\\r\\nanother",
    );
    fs::write(&path, text).unwrap();
    let (path, root) = (path.to_str().unwrap(), project.parent().unwrap());
    let root = root.to_str().unwrap();
    for arguments in [
        &["replay", path][..],
        &["replay", "--format", "markdown", path],
        &["replay", "--format", "html", path],
        &["export", "--text", "-", path],
        &["list", "--root", root],
        &["list", "--json", "--root", root],
        &["search", "--no-cache", "second", "--in", path],
        &["tree", path],
    ] {
        let shown = stdout(&transcript(arguments));
        assert!(
            shown.contains("prompt") || shown.contains("second"),
            "{shown}"
        );
        assert!(
            !shown.contains("000D") && !shown.contains("\\r") && !shown.contains('\r'),
            "{arguments:?}: {shown}"
        );
    }
    let markdown = stdout(&transcript(&["replay", "--format", "markdown", path]));
    assert!(markdown.contains("\n```sh\nls\n```\n"), "{markdown}");
}

#[test]
fn in_a_document_what_the_client_wrote_is_no_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut text = session(1, 0);
    for (number, content, more) in [
        (
            5,
            "<command-name>/exit</command-name>\\n<command-message>exit</command-message>",
            "",
        ),
        (
            6,
            "<local-command-stdout>Catch you later!\\nsecond</local-command-stdout>",
            "",
        ),
        (7, "Caveat: hidden text", ",\"isMeta\":true"),
    ] {
        let parent = if number == 5 {
            "a0".to_owned()
        } else {
            format!("x{}", number - 1)
        };
        text += &format!(
            "{{\"parentUuid\":\"{parent}\",\"type\":\"user\",\"uuid\":\"x{number}\",\"sessionId\":\"s\",\"timestamp\":\"2026-11-20T11:00:00.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{content}\"}}{more}}}\n"
        );
    }
    fs::write(&path, text).unwrap();
    let shown = stdout(&transcript(&[
        "replay",
        "--format",
        "markdown",
        path.to_str().unwrap(),
    ]));
    assert!(
        shown.contains("## User · 2026-11-20 10:00\n\n> prompt 0"),
        "{shown}"
    );
    assert!(
        shown.contains("## User · 2026-11-20 11:00\n\n`/exit`"),
        "{shown}"
    );
    assert!(
        shown.contains("\n*client: Catch you later!* · +1 line\n"),
        "{shown}"
    );
    assert!(shown.contains("\n*meta: Caveat: hidden text*\n"), "{shown}");
    assert!(
        !shown.contains("> Catch") && !shown.contains("> Caveat"),
        "{shown}"
    );
}

#[test]
fn what_cannot_be_done_is_said_once_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let path = at("s.jsonl");
    fs::write(&path, session(1, 0)).unwrap();
    let (root, empty, archive) = (at("none"), at("empty"), at("archive"));
    fs::create_dir(&empty).unwrap();
    let page = at("missing/x.html");
    for (arguments, code, words) in [
        (
            &["export", "--html", &page, &path][..],
            2,
            "missing does not exist",
        ),
        (
            &["move", "/w/gone", "/w/new", "--root", &empty],
            1,
            "no session was written in /w/gone",
        ),
        (
            &["replay", "latest", "--root", &empty],
            2,
            "no sessions yet in",
        ),
        (
            &["replay", "ffff9999", "--root", &empty],
            2,
            "no sessions yet in",
        ),
    ] {
        let output = transcript(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let mut keep = command(&["keep", "--archive", &archive]);
    let output = keep.env("CLAUDE_CONFIG_DIR", &root).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("no sessions yet") && !said.contains("os error"),
        "{said}"
    );
    assert!(!Path::new(&archive).exists());
    // A key for an archive that exists is not made.
    let mut keep = command(&["keep", "--archive", &archive, "--root", &empty]);
    assert!(keep.output().unwrap().status.success());
    let key = at("key");
    let output = transcript(&[
        "keep",
        "--archive",
        &archive,
        "--root",
        &empty,
        "--encrypt",
        &key,
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!Path::new(&key).exists());
    let dumb = command(&["list", "--root", &empty])
        .env("TERM", "dumb")
        .output()
        .unwrap();
    assert!(dumb.status.success());
}
