//! Files that are not sessions, alone and beside sessions, and readers that go away.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::{command, stderr, stdout, transcript};

const ROLLOUT: &str = "{\"timestamp\":\"2026-11-20T10:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"t\"}}\n";

/// Files that somebody may name, and what they are called.
const OTHERS: [(&str, &str, &str); 9] = [
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
        "the prompt history",
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
    (
        "pretty.jsonl",
        "{\n  \"type\": \"user\",\n  \"uuid\": \"u\",\n  \"parentUuid\": null,\n  \"message\": {\n    \"content\": \"x\"\n  }\n}\n",
        "JSON on several lines",
    ),
    (
        "prose.jsonl",
        "# Entries\nA prompt has \"type\":\"user\" and \"parentUuid\":null, an answer more.\n",
        "text without an entry",
    ),
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
fn a_named_file_that_is_not_a_session_is_refused_by_every_command_and_nothing_is_changed() {
    let other = tempfile::tempdir().unwrap();
    let at = |name: &str| other.path().join(name).to_str().unwrap().to_owned();
    let (good, out) = (at("good.jsonl"), at("out.jsonl"));
    fs::write(&good, session(1, 0)).unwrap();
    let commands: [&[&str]; 18] = [
        &["replay", "FILE"],
        &["replay", "--json", "FILE"],
        &["tree", "FILE"],
        &["tail", "FILE"],
        &["tail", "-n", "3", "FILE"],
        &["resume", "FILE"],
        &["resume", "--request", "FILE"],
        &["resume", "--json", "FILE"],
        &["verify", "FILE"],
        &["repair", "FILE"],
        &["repair", "--keep-id", "FILE"],
        &["export", "--json", "-", "FILE"],
        &["usage", "FILE"],
        &["search", "word", "--in", "FILE"],
        &["fork", "FILE"],
        &["append", "FILE"],
        &["merge", "FILE", &good, "--out", &out],
        &["merge", &good, "FILE", "--out", &out],
    ];
    // The full form reads the sessions of other agents.
    let others = OTHERS.iter();
    let others = others.filter(|(_, text, _)| *text != ROLLOUT || cfg!(not(feature = "import")));
    for (name, text, called) in others {
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
            let (said, out) = (stderr(&output), stdout(&output));
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            match arguments[..2] {
                // Programs are told why in the record.
                ["resume", "--json"] => {
                    let record: Value = serde_json::from_str(&out).unwrap();
                    assert_eq!(record["resumable"], false);
                    assert!(record["reason"].as_str().unwrap().contains(called), "{out}");
                }
                _ => {
                    assert!(said.contains(called), "{arguments:?}: {said}");
                    assert!(said.contains(name), "{arguments:?}: {said}");
                    assert_eq!(out, "", "{arguments:?}");
                }
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), *text, "{arguments:?}");
            assert_eq!(names(folder.path()), [*name], "{arguments:?}");
        }
    }
    assert_eq!(names(other.path()), ["good.jsonl"]);
}

#[test]
fn remainder_of_a_session_is_not_another_format() {
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
        format!("{}\n", &first[first.find("\"type\"").unwrap()..]),
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
        (&["verify", &root], "11111111-2222"),
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
    // A total with an unreadable file is not reported as below the limit.
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

#[test]
fn notes_beside_sessions_are_named_by_lists_and_checks() {
    let (_folder, root) = mixed();
    let notes = Path::new(&root).join("-home-ada/notes.jsonl");
    fs::create_dir_all(notes.parent().unwrap()).unwrap();
    fs::write(notes, "Buy milk.\nCall Ada.\n").unwrap();
    for arguments in [&["list", "--root", &root][..], &["verify", &root]] {
        let output = transcript(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = stderr(&output);
        let is_named = said.contains("notes.jsonl") && said.contains("text without an entry");
        assert!(is_named, "{arguments:?}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn closed_output_is_not_an_error() {
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
fn list_in_a_pipe_has_whole_values_with_tabs_between_them() {
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
fn prompt_starts_a_turn_whatever_is_omitted_before_it() {
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

/// A line of a session, with a time of its own.
fn line(number: usize, kind: &str, rest: &str) -> String {
    let parent = match number {
        0 => "null".to_owned(),
        _ => format!("\"l{}\"", number - 1),
    };
    format!(
        "{{\"parentUuid\":{parent},\"type\":\"{kind}\",\"uuid\":\"l{number}\",\"sessionId\":\"s\",\"timestamp\":\"2026-11-20T10:{number:02}:00.000Z\",{rest}}}\n"
    )
}

#[test]
fn prompts_without_an_answer_between_them_and_those_that_were_queued_start_turns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let said = |text: &str| format!("\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}");
    let answer = |id: &str, content: &str| {
        format!(
            "\"message\":{{\"id\":\"{id}\",\"role\":\"assistant\",\"model\":\"claude-opus-4-1\",\"content\":[{content}],\"usage\":{{\"input_tokens\":10,\"output_tokens\":1}}}}"
        )
    };
    let text = |text: &str| format!("{{\"type\":\"text\",\"text\":\"{text}\"}}");
    let lines = [
        ("user", said("prompt one")),
        ("user", said("prompt two")),
        (
            "assistant",
            answer(
                "m1",
                "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}",
            ),
        ),
        (
            "user",
            "\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"ok\"}]}"
                .to_owned(),
        ),
        (
            "attachment",
            "\"attachment\":{\"type\":\"queued_command\",\"prompt\":\"prompt three\",\"commandMode\":\"prompt\"}".to_owned(),
        ),
        ("assistant", answer("m2", &text("answer three"))),
        ("user", said("prompt four")),
        ("assistant", answer("m3", &text("answer four"))),
    ];
    let lines = lines.iter().enumerate();
    let all: String = lines
        .map(|(at, (kind, rest))| line(at, kind, rest))
        .collect();
    fs::write(&path, all).unwrap();
    let path = path.to_str().unwrap();
    let rules = |arguments: &[&str]| {
        let text = stdout(&transcript(&[arguments, &[path]].concat()));
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let rules = lines.windows(2).filter(|pair| pair[0].starts_with('─'));
        rules.map(|pair| pair[1].to_owned()).collect::<Vec<_>>()
    };
    // Four prompts are four turns, with the answers and without.
    for arguments in [
        &["replay"][..],
        &["replay", "--role", "user"],
        &["replay", "--text", "prompt"],
        &["tail"],
        &["tail", "--role", "user"],
    ] {
        let rules = rules(arguments);
        assert_eq!(rules.len(), 4, "{arguments:?}: {rules:?}");
        for (rule, word) in rules.iter().zip(["one", "two", "three", "four"]) {
            assert!(rule.contains(word), "{arguments:?}: {rules:?}");
        }
    }
    for arguments in [&["replay"][..], &["replay", "--role", "user"]] {
        let markdown = [arguments, &["--format", "markdown", path]].concat();
        let markdown = stdout(&transcript(&markdown));
        for minute in ["00", "01", "04", "06"] {
            let head = format!("## User · 2026-11-20 10:{minute}\n\n> prompt ");
            assert_eq!(markdown.matches(&head).count(), 1, "{markdown}");
        }
    }
    // Answers without their prompts are as many, in each form, and a document has their times.
    let answers = ["replay", "--role", "assistant"];
    assert_eq!(rules(&answers).len(), 3);
    let shown = |format: &str| {
        let output = transcript(&[&answers[..], &["--format", format, path]].concat());
        stdout(&output)
    };
    let markdown = shown("markdown");
    for minute in ["02", "05", "07"] {
        let head = format!("## Assistant · 2026-11-20 10:{minute}\n");
        assert!(markdown.contains(&head), "{markdown}");
    }
    let html = shown("html");
    assert_eq!(html.matches("<p class=\"turn\">").count(), 3, "{html}");
}

#[test]
fn the_lines_that_a_person_typed_are_lines_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let note = "<system-reminder>a note</system-reminder>";
    let rest = format!(
        "\"promptSource\":\"typed\",\"message\":{{\"role\":\"user\",\"content\":\"$ sync --all\\nerror: *push* failed\\n\\n  exit 1\\n```\\ncode\\nmore\\n```\\n{note}\"}}"
    );
    fs::write(&path, line(0, "user", &rest)).unwrap();
    let path = path.to_str().unwrap();
    let shown = |format: &str| stdout(&transcript(&["replay", "--format", format, path]));
    let markdown = shown("markdown");
    let quote =
        "\n> $ sync --all  \n> error: *push* failed\n>\n>   exit 1\n> ```\n> code\n> more\n> ```\n";
    assert!(markdown.contains(quote), "{markdown}");
    let html = shown("html");
    let typed = "<div class=\"typed\">$ sync --all\nerror: *push* failed\n\n  exit 1\n```\ncode\nmore\n```</div>";
    assert!(html.contains(typed), "{html}");
    let text = shown("text");
    for line in ["$ sync --all", "error: *push* failed", "  exit 1"] {
        assert!(text.lines().any(|shown| shown.ends_with(line)), "{text}");
    }
    // The note of the client around them is not a word of the person.
    let line = markdown.lines().find(|line| line.contains("a note"));
    assert!(line.unwrap().starts_with("*client: "), "{markdown}");
    let line = html.lines().find(|line| line.contains("a note"));
    let aside = "<div class=\"item aside\"";
    assert!(line.unwrap().starts_with(aside), "{html}");
    let line = text.lines().find(|line| line.contains("a note"));
    assert!(line.unwrap().starts_with("client "), "{text}");
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
fn text_of_the_client_is_not_a_prompt_in_a_document() {
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
fn failure_is_reported_once_and_leaves_nothing() {
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
}

#[test]
fn an_error_says_what_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("projects");
    let project = root.join("-w");
    fs::create_dir_all(&project).unwrap();
    for (id, prompt) in [
        ("aaaa1111", "first question"),
        ("aaaa2222", "second question"),
    ] {
        let path = project.join(format!("{id}-2222-4333-8444-555555555555.jsonl"));
        let rest = format!(
            "\"cwd\":\"/work/garden\",\"message\":{{\"role\":\"user\",\"content\":\"{prompt}\"}}"
        );
        let title = "{\"type\":\"ai-title\",\"aiTitle\":\"A title\",\"sessionId\":\"s\"}\n";
        let text = match id {
            "aaaa1111" => line(0, "user", &rest) + title,
            _ => line(0, "user", &rest),
        };
        fs::write(path, text).unwrap();
    }
    let root = root.to_str().unwrap();
    let missing = folder.path().join("nowhere");
    let missing = missing.to_str().unwrap();
    for (arguments, code, words) in [
        (
            &["replay", "aaaa"][..],
            2,
            &[
                "aaaa1111-2222",
                "2026-11-20 10:00  /work/garden  A title",
                "second question",
            ][..],
        ),
        (
            &["replay", "aaaa1", "--at", "2"],
            2,
            &["line 2 is not an entry of the conversation; the last entry before it is line 1"],
        ),
        (
            &["replay", "aaaa1", "--at", "7"],
            2,
            &["there is no line 7 (2 in the file); the last entry before it is line 1"],
        ),
        (&["search", "role:x"], 2, &["role:x: expected one of"]),
        (
            &["search", "after:2026-01-01"],
            1,
            &["after: is not a filter but a word here; the filter is since:"],
        ),
        (
            &["search", "gardens*"],
            1,
            &["* is not a wildcard; gardens also matches within words"],
        ),
        (
            &["search", "roses", "OR", "tulips"],
            1,
            &["OR is a word like others"],
        ),
        (
            &["usage", "--prices", missing],
            2,
            &["cannot be read: No such file"],
        ),
        (
            &["move", "/w/gone", "/w/new"],
            1,
            &["no session was written in /w/gone"],
        ),
    ] {
        let output = transcript(&[arguments, &["--root", root]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        for word in words {
            assert_eq!(said.matches(word).count(), 1, "{arguments:?}: {said}");
        }
        assert!(!said.contains("0 sessions"), "{arguments:?}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_that_cannot_draw_gets_no_colours_no_pager_and_no_view() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, root) = mixed();
    let (binary, tools) = (env!("CARGO_BIN_EXE_transcript"), folder.path());
    let less = tools.join("less");
    fs::write(&less, "#!/bin/sh\necho through a pager\ncat\n").unwrap();
    fs::set_permissions(&less, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let on_terminal = |term: &str, arguments: &str| {
        let shell = format!("stty cols 100 rows 30; '{binary}' {arguments} --root '{root}'");
        let mut script = std::process::Command::new("script");
        script
            .args(["-qec", &shell, "/dev/null"])
            .env("TERM", term)
            .env("PATH", &path)
            .env("HOME", "/nowhere")
            .env_remove("PAGER")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        script.output()
    };
    let Ok(drawn) = on_terminal("xterm", "list") else {
        println!("skipped: no `script` on this system");
        return;
    };
    let drawn = stdout(&drawn);
    assert!(
        drawn.contains('\u{1b}') && drawn.contains("through a pager"),
        "{drawn}"
    );
    for arguments in [
        "list",
        "usage --no-cache",
        "search answer --no-cache",
        "replay 1111",
        "verify",
    ] {
        let arguments = arguments.replace("verify", &format!("verify '{root}'"));
        let shown = stdout(&on_terminal("dumb", &arguments).unwrap());
        assert!(!shown.contains('\u{1b}'), "{arguments}: {shown}");
        assert!(!shown.contains("through a pager"), "{arguments}: {shown}");
        assert!(shown.lines().count() > 2, "{arguments}: {shown}");
    }
    if cfg!(not(feature = "browse")) {
        return;
    }
    let refused = on_terminal("dumb", "browse").unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stdout(&refused).contains("TERM is `dumb`"),
        "{}",
        stdout(&refused)
    );
}
