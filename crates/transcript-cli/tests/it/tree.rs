//! `transcript tree`.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;
use tempfile::NamedTempFile;
use unicode_width::UnicodeWidthStr;

use crate::{fixture, sessions, stderr, stdout, transcript};

fn drawing(session: &str) -> String {
    let output = transcript(&["tree", session]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

fn json(session: &str) -> Value {
    let output = transcript(&["tree", "--json", session]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn file(text: &str) -> (NamedTempFile, String) {
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

/// A session of prompts alone: uuid, parent and text of each.
fn prompts<'a>(lines: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> String {
    let mut session = String::new();
    for (at, (uuid, parent, text)) in lines.into_iter().enumerate() {
        let parent = if parent.is_empty() {
            "null".to_owned()
        } else {
            format!("\"{parent}\"")
        };
        let minute = at / 60 % 60;
        let second = at % 60;
        writeln!(
            session,
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-01-01T00:{minute:02}:{second:02}.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        )
        .unwrap();
    }
    session
}

#[test]
fn drawing_of_a_session_with_a_compaction_parallel_calls_and_a_rewind() {
    insta::assert_snapshot!(drawing(&fixture("parallel-tools.jsonl")));
}

#[test]
fn tree_counts_the_prompts_that_a_page_lists() {
    let queued = |attachment: &str| {
        let attachment = format!(r#"{{"type":"queued_command",{attachment}}}"#);
        format!(r#""type":"attachment","attachment":{attachment}"#)
    };
    let said = |content: &str, more: &str| {
        format!(r#""type":"user",{more}"message":{{"role":"user","content":{content}}}"#)
    };
    let text = |text: &str| said(&format!("\"{text}\""), "");
    let image = r#"[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"What is it?"}]"#;
    let result = r#"[{"type":"tool_result","tool_use_id":"t","content":"done"}]"#;
    let task = "<task-notification>\\n<task-id>b5</task-id>\\n<summary>built</summary>\\n</task-notification>";
    // The line, and whether a person typed it.
    let lines = [
        (text("Where is the map?"), true),
        (said(image, ""), true),
        (queued(r#""prompt":"And the key?""#), true),
        (
            queued(r#""prompt":"And the key?","commandMode":"prompt""#),
            true,
        ),
        (
            queued(r#""prompt":[{"type":"text","text":"And this?"}]"#),
            true,
        ),
        (text("<command-name>/model</command-name>"), true),
        (queued(&format!(r#""prompt":"{task}""#)), false),
        (
            queued(r#""prompt":"built","commandMode":"task-notification""#),
            false,
        ),
        (
            queued(r#""prompt":"look","origin":{"kind":"coordinator"}"#),
            false,
        ),
        (text("[Request interrupted by user]"), false),
        (said(result, ""), false),
        (said("\"A caveat.\"", r#""isMeta":true,"#), false),
    ];
    let mut session = String::new();
    for (number, (line, _)) in lines.iter().enumerate() {
        let parent = match number {
            0 => "null".to_owned(),
            _ => format!("\"e{}\"", number - 1),
        };
        let time = format!("2026-01-01T00:00:{number:02}.000Z");
        writeln!(
            session,
            r#"{{{line},"uuid":"e{number}","parentUuid":{parent},"sessionId":"s","timestamp":"{time}"}}"#
        )
        .unwrap();
    }
    let typed = lines.iter().filter(|(_, is_typed)| *is_typed).count();
    let (_file, path) = file(&session);
    let output = transcript(&["export", "--html", "-", &path]);
    let page = stdout(&output);
    assert!(
        page.contains(&format!("<h2>{typed} prompts</h2>")),
        "{page}"
    );
    let tree = json(&path);
    let branches = tree["branches"].as_array().unwrap().iter();
    let counted: u64 = branches
        .filter_map(|branch| branch["prompts"].as_u64())
        .sum();
    assert_eq!(counted, typed as u64, "{tree}");
}

#[test]
fn drawing_of_a_straight_session() {
    insta::assert_snapshot!(drawing(&fixture("linear.jsonl")));
}

#[test]
fn drawing_of_a_leaf_that_is_pinned_inside() {
    insta::assert_snapshot!(drawing(&fixture("pinned-leaf.jsonl")));
}

#[test]
fn drawing_of_a_session_with_a_subagent() {
    insta::assert_snapshot!(drawing(&fixture("sidechain-in-file.jsonl")));
}

#[test]
fn drawing_of_a_cycle() {
    insta::assert_snapshot!(drawing(&fixture("cycle.jsonl")));
}

#[test]
fn drawing_of_a_rewind_of_a_rewind() {
    let (_file, session) = file(&prompts([
        ("u1", "", "Count the months."),
        ("u2", "u1", "In French."),
        ("u3", "u2", "Backwards."),
        ("v3", "u2", "Backwards, in capitals."),
        ("v2", "u1", "In Welsh."),
        ("w2", "u1", "In Breton."),
        ("w3", "w2", "With their lengths."),
    ]));
    insta::assert_snapshot!(drawing(&session));
}

#[test]
fn drawing_of_islands() {
    let mut session = prompts([("u1", "", "Before."), ("u2", "gone", "After.")]);
    // Long before the line that stands before it: nothing says that they belong together.
    session = session.replace("2026-01-01T00:00:01.000Z", "2025-01-01T00:10:00.000Z");
    let (_file, session) = file(&session);
    let text = drawing(&session);
    assert!(text.contains("○ Before."), "{text}");
    assert!(text.contains("● After."), "{text}");
    assert!(
        text.contains("── line 2: its parent (gone) is missing, and the entry before it is newer"),
        "{text}"
    );
}

#[test]
fn many_rewinds_in_a_row_neither_indent_nor_flood() {
    // Each of 2,000 prompts is rewound once and written again; at the end all of them are rewound.
    let names: Vec<String> = (0..2_000).map(|n| format!("u{n}")).collect();
    let backs: Vec<String> = (0..2_000).map(|n| format!("x{n}")).collect();
    let mut lines = vec![("r", "", "Start.")];
    let mut parent = "r";
    for (name, back) in names.iter().zip(&backs) {
        lines.push((back, parent, "Taken back."));
        lines.push((name, parent, "Again."));
        parent = name;
    }
    let (_file, straight) = file(&prompts(lines.clone()));
    lines.push(("z", "r", "All of it again."));
    let (_file2, aside) = file(&prompts(lines));
    for (session, hidden_branches) in [(straight, "⋮ 3922 branches"), (aside, "⋮ 3984 branches")]
    {
        let text = drawing(&session);
        assert!(text.contains(hidden_branches), "{text}");
        assert!(text.split('\n').count() < 150, "{text}");
        assert!(!text.contains("│ │ │"), "{text}");
        assert!(json(&session)["branches"].as_array().unwrap().len() > 4_000);
    }
}

#[test]
fn branches_that_nest_inwards_are_folded() {
    // The later of two sibling prompts always continues, so the older one is nested a level deeper.
    let names: Vec<String> = (0..500).map(|n| format!("u{n}")).collect();
    let sides: Vec<String> = (0..500).map(|n| format!("x{n}")).collect();
    let mut lines = vec![("r", "", "Start.")];
    let mut parent = "r";
    for name in &names {
        lines.push((name, parent, "In."));
        parent = name;
    }
    for (name, side) in names.iter().zip(&sides).rev() {
        lines.push((side, name, "Out."));
    }
    lines.push(("z", "r", "End."));
    let (_file, session) = file(&prompts(lines));
    let text = drawing(&session);
    assert!(
        text.contains("├─⋮ 991 branches hidden, 992 prompts"),
        "{text}"
    );
    assert!(text.split('\n').count() < 40, "{text}");
}

#[test]
fn a_file_without_a_conversation_says_what_it_holds() {
    let (_file, empty) = file("");
    assert!(drawing(&empty).contains("no entry of a conversation"));
    assert_eq!(json(&empty)["leaves"]["recover"], Value::Null);
    let (_file, beside) = file("{\"type\":\"tag\",\"tag\":\"x\"}\n{\"type\":\"tag\"}\n{\"a\":");
    let text = drawing(&beside);
    assert!(text.contains("      2  tag"), "{text}");
    assert!(text.contains("the file holds no conversation"), "{text}");
    let (_file, damaged) = file("\u{0}\u{0}\n}{\n\u{7f}\n{\"parentUuid\":\n");
    drawing(&damaged);
}

#[test]
fn every_row_fits_and_nothing_of_a_prompt_reaches_the_terminal() {
    let hostile = "\\u001b]52;c;aGk=\\u0007\\u001b[2J\\r\\u009b1A\\u202e\\u0000";
    let wide = "日付を読むクレートを全部探して、それぞれの入力と出力の例を一つずつ書いてください。"
        .repeat(3);
    let text = format!("👩‍💻 {wide}");
    let (_file, session) = file(&prompts([
        ("u1", "", text.as_str()),
        ("u\\u001b[31m", "u1", hostile),
        ("u3", "u1", hostile),
    ]));
    let shown = drawing(&session);
    let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!shown.chars().any(bad), "{shown:?}");
    let (rows, _) = shown.split_once("\n\n").unwrap();
    for row in rows.split('\n') {
        assert!(row.width() <= 100, "{} columns: {row}", row.width());
    }
    assert!(shown.contains("日付"), "{shown}");
}

#[test]
fn commands_and_texts_of_the_client_are_not_titles() {
    let (_file, session) = file(&prompts([
        (
            "u1",
            "",
            "<local-command-stdout>Bye!</local-command-stdout>",
        ),
        (
            "u2",
            "u1",
            "<command-name>/clear</command-name><command-args>all</command-args>",
        ),
        ("u3", "u2", "[Request interrupted by user]"),
        ("u4", "u3", "What is a leap second?"),
        (
            "v4",
            "u3",
            "<command-name>/model</command-name>\\n<command-args>x</command-args>",
        ),
    ]));
    let text = drawing(&session);
    assert!(text.contains("● /clear all "), "{text}");
    assert!(text.contains("├─○ What is a leap second? "), "{text}");
    assert!(text.contains("● /model x "), "{text}");
    assert!(
        !text.contains("Bye") && !text.contains("interrupted"),
        "{text}"
    );
}

#[test]
fn json_of_the_bundled_session() {
    let tree = json(&fixture("parallel-tools.jsonl"));
    assert_eq!((&tree["schema"], &tree["lines"]), (&1.into(), &65.into()));
    let branches = tree["branches"].as_array().unwrap();
    let shown: Vec<_> = branches
        .iter()
        .map(|branch| {
            let text = |key: &str| branch[key].as_str().unwrap();
            (
                branch["parent"].as_u64(),
                text("start"),
                text("kind"),
                branch["tip"] == true,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (None, "root", "main", false),
            (Some(0), "boundary", "main", false),
            (Some(1), "child", "side", true),
            (Some(1), "child", "main", true),
        ]
    );
    let boundary = &tree["boundaries"][0];
    assert_eq!(boundary["trigger"], "manual");
    assert_eq!(boundary["preTokens"], 24_180);
    assert_eq!(
        (&boundary["kept"], &boundary["missing"]),
        (&3.into(), &0.into())
    );
    assert_eq!(boundary["logicalParent"]["resolves"], true);
    assert_eq!(tree["leaves"]["vendor"]["reason"], "last-tip");
    assert_eq!(tree["roots"][0]["kind"], "root");
}

#[test]
fn each_tip_of_each_fixture_can_be_asked_for() {
    for entry in fs::read_dir(sessions()).unwrap() {
        let path = entry.unwrap().path();
        let session = path.to_str().unwrap();
        drawing(session);
        let tree = json(session);
        for tip in tree["branches"].as_array().unwrap() {
            let (true, Some(uuid)) = (tip["tip"] == true, tip["last"]["uuid"].as_str()) else {
                continue;
            };
            let output = transcript(&["replay", "--json", "--leaf", uuid, session]);
            assert_eq!(output.status.code(), Some(0), "{session} {uuid}");
            assert!(stdout(&output).contains(&format!("\"leaf\":{}", tip["last"]["uuid"])));
        }
    }
}

#[test]
fn colour_comes_when_asked_for() {
    let session = fixture("rewind.jsonl");
    assert!(!drawing(&session).contains('\u{1b}'));
    let coloured = transcript(&["tree", "--color", "always", &session]);
    assert!(stdout(&coloured).contains("\u{1b}["));
}

#[test]
fn help_text() {
    insta::assert_snapshot!(stdout(&transcript(&["tree", "--help"])));
}
