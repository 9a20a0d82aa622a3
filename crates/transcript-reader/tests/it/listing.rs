//! Sessions are found and listed: compared with a slow reader of whole files, and with files that
//! are not sessions.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use transcript_format::context_refs::{self, Reference};
use transcript_reader::{Listing, SessionRow, SessionState};
use transcript_storage::RealDisk;
use transcript_testkit::rng::Rng;
use transcript_testkit::{generate, shared};

const ID: &str = "0b932c9f-9928-4cec-9e82-22c1703d5f54";
const KEY: &str = "-home-ada-notes";

/// A folder of projects.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn list(&self) -> Listing {
        Listing::read(self.path()).unwrap()
    }

    /// Returns the row of the only session, which has these lines.
    fn row(&self, lines: &[Value]) -> SessionRow {
        self.write(&format!("{KEY}/{ID}.jsonl"), text(lines));
        let listing = self.list();
        assert_eq!(listing.problems.len(), 0);
        assert_eq!(listing.rows.len(), 1);
        listing.rows[0].clone()
    }
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn user(content: impl Into<Value>) -> Value {
    json!({"parentUuid": null, "isSidechain": false, "type": "user", "message": {"role": "user", "content": content.into()},
        "uuid": "u", "timestamp": "2026-02-03T04:05:06.007Z", "cwd": "/home/ada/notes", "gitBranch": "main"})
}

#[expect(clippy::needless_pass_by_value, reason = "callers have literals")]
fn answer(id: &str, blocks: Value) -> Value {
    json!({"parentUuid": "u", "isSidechain": false, "type": "assistant", "message": {"id": id, "role": "assistant",
        "content": blocks}, "uuid": "a", "timestamp": "2026-02-03T04:06:00.000Z", "cwd": "/home/ada/notes/below"})
}

fn text_answer(text: &str) -> Value {
    answer("m", json!([{"type": "text", "text": text}]))
}

fn call(message: &str, id: &str, tool: &str) -> Value {
    answer(
        message,
        json!([{"type": "tool_use", "id": id, "name": tool, "input": {}}]),
    )
}

fn result(id: &str) -> Value {
    user(json!([{"type": "tool_result", "tool_use_id": id, "content": "done"}]))
}

fn with(mut line: Value, key: &str, value: impl Into<Value>) -> Value {
    line[key] = value.into();
    line
}

/// Returns about `bytes` of entries that a list does not use.
fn padding(bytes: usize) -> Vec<Value> {
    let line = with(text_answer(&"x".repeat(2000)), "gitBranch", "main");
    vec![line; bytes / 2200 + 1]
}

#[test]
fn model_and_number_of_entries_are_shown_where_they_are_known() {
    let root = Root::new();
    let model = |mut line: Value, model: &str| {
        line["message"]["model"] = model.into();
        line
    };
    let lines = [
        user("Go"),
        model(text_answer("One."), "m-1"),
        model(text_answer("Two."), "m-2"),
        model(text_answer("Made by the client"), "<synthetic>"),
    ];
    let row = root.row(&lines);
    assert_eq!((row.model.as_deref(), row.messages), (Some("m-2"), Some(4)));
    // A larger file is not counted; the client's own number counts.
    let mut large = [&padding(20 << 10), &lines[..]].concat();
    assert_eq!(root.row(&large).messages, None);
    let turn = json!({"type": "system", "subtype": "turn_duration", "messageCount": 77, "uuid": "s",
        "parentUuid": "a", "isSidechain": false, "timestamp": "2026-02-03T04:06:01.000Z"});
    large.push(turn);
    assert_eq!(root.row(&large).messages, Some(77));
    // Also after a prompt that has no answer yet.
    large.push(user("And now?"));
    let row = root.row(&large);
    assert_eq!(
        (row.model.as_deref(), row.messages),
        (Some("m-2"), Some(77))
    );
}

#[test]
fn a_row_has_the_values_of_the_lines() {
    let row = Root::new().row(&[
        json!({"type": "mode", "mode": "normal", "sessionId": ID}),
        with(user("<tick>"), "isMeta", true),
        user("Which years\nhave a leap day?"),
        text_answer("Most."),
        json!({"type": "tag", "tag": "dates"}),
        with(user("Thanks"), "gitBranch", "next"),
        text_answer("Sure."),
        json!({"type": "ai-title", "aiTitle": "Leap days"}),
        json!({"type": "last-prompt", "lastPrompt": "Thanks"}),
    ]);
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(row.session_id, ID);
    assert_eq!(row.project, KEY);
    assert_eq!(row.cwd, is("/home/ada/notes"));
    assert_eq!(row.title, is("Leap days"));
    assert_eq!(row.first_prompt, is("Which years have a leap day?"));
    assert_eq!(row.last_prompt, is("Thanks"));
    assert_eq!(row.created, is("2026-02-03T04:05:06.007Z"));
    assert_eq!(row.modified, is("2026-02-03T04:06:00.000Z"));
    assert_eq!(row.branch, is("next"));
    assert_eq!(row.tag, is("dates"));
    assert_eq!(row.state, Some(SessionState::Finished));
}

#[test]
fn question_of_a_prompt_with_references_is_listed() {
    let root = Root::new();
    let references = [Reference::File {
        path: "src/main.rs",
    }; 9];
    let prompt = |text: &str| user(&*context_refs::prompt(&references, text).unwrap());
    let shown = |lines: &[Value]| {
        let row = root.row(lines);
        (row.first_prompt.unwrap(), row.last_prompt.unwrap())
    };
    let lines = [prompt("Why does it fail?"), prompt("And\nnow?")];
    let questions = ("Why does it fail?".to_owned(), "And now?".to_owned());
    assert_eq!(shown(&lines), questions);
    // A client puts the last prompt on one line and cuts it, so that it has no question.
    let text = context_refs::prompt(&references, "And now?").unwrap();
    for noted in [
        text.clone(),
        text.replace('\n', " ").chars().take(200).collect(),
    ] {
        let noted = json!({"type": "last-prompt", "lastPrompt": noted});
        assert_eq!(shown(&[&lines[..], &[noted]].concat()), questions);
    }
    let noted =
        json!({"type": "last-prompt", "lastPrompt": "> **上下文资料** without a reference"});
    let last = shown(&[&lines[..], &[noted]].concat()).1;
    assert_eq!(last, "> **上下文资料** without a reference");
    // Without a question the references are all there is.
    let references = [Reference::Selection, Reference::Git { what: "DIFF" }];
    let prompt = user(&*context_refs::prompt(&references, " ").unwrap());
    let row = root.row(&[prompt]);
    assert_eq!(row.first_prompt.unwrap(), "✏️ 当前选择内容, 🔀 Git DIFF");
}

#[test]
fn the_state_comes_from_the_last_lines() {
    use SessionState::{Finished, OpenCall, Stalled, Waiting};
    let boundary = |trigger| {
        json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null,
            "compactMetadata": {"trigger": trigger}})
    };
    let summary = with(user("In short."), "isCompactSummary", true);
    let error = with(text_answer("API Error: 529"), "isApiErrorMessage", true);
    let thought = answer(
        "m",
        json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]),
    );
    let command = user("<command-name>/exit</command-name>");
    let cases = [
        (vec![], None),
        (vec![user("a")], Some(Stalled)),
        (vec![user("a"), text_answer("b")], Some(Finished)),
        (vec![user("a"), text_answer("Shall I?")], Some(Waiting)),
        (
            vec![user("a"), text_answer("どうしますか？")],
            Some(Waiting),
        ),
        (
            vec![user("a"), text_answer("b"), command.clone()],
            Some(Finished),
        ),
        (
            vec![user("a"), text_answer("b"), with(user("c"), "isMeta", true)],
            Some(Finished),
        ),
        (vec![user("a"), text_answer("b"), user("c")], Some(Stalled)),
        (vec![user("a"), error], Some(Stalled)),
        (vec![user("a"), thought], Some(Stalled)),
        (
            vec![
                user("a"),
                text_answer("b"),
                user("[Request interrupted by user]"),
            ],
            Some(Waiting),
        ),
        (
            vec![user("a"), text_answer("No response requested.")],
            Some(Stalled),
        ),
        (vec![user("a"), call("m", "t1", "Bash")], Some(OpenCall)),
        (
            vec![user("a"), call("m", "t1", "AskUserQuestion")],
            Some(Waiting),
        ),
        (
            vec![user("a"), call("m", "t1", "Bash"), result("t1")],
            Some(Stalled),
        ),
        // One of two parallel calls has a result.
        (
            vec![
                user("a"),
                call("m", "t1", "Bash"),
                call("m", "t2", "Bash"),
                result("t2"),
            ],
            Some(OpenCall),
        ),
        // A later answer shows that an open call is no longer awaited.
        (
            vec![
                user("a"),
                call("m", "t1", "Bash"),
                user("b"),
                answer("n", json!([{"type": "text", "text": "c"}])),
            ],
            Some(Finished),
        ),
        (
            vec![
                user("a"),
                text_answer("b"),
                boundary("manual"),
                summary.clone(),
            ],
            Some(Finished),
        ),
        (
            vec![user("a"), text_answer("b"), boundary("auto"), summary],
            Some(Stalled),
        ),
        (
            vec![user("a"), with(text_answer("b"), "isSidechain", true)],
            Some(Stalled),
        ),
    ];
    let root = Root::new();
    for (lines, expected) in cases {
        assert_eq!(root.row(&lines).state, expected, "{lines:?}");
    }
}

#[test]
fn windows_grow_over_a_long_first_prompt_and_find_a_title_far_from_the_end() {
    let mut lines = vec![
        json!({"type": "file-history-snapshot", "messageId": "m", "snapshot": {"timestamp": "x"}}),
        user(format!("Long: {}", "word ".repeat(180_000))),
        json!({"type": "ai-title", "aiTitle": "By a model"}),
    ];
    lines.extend(padding(1_500_000));
    lines.push(json!({"type": "custom-title", "customTitle": "By me"}));
    lines.extend(padding(355_000));
    let root = Root::new();
    let row = root.row(&lines);
    assert_eq!(row.title.as_deref(), Some("By me"));
    let prompt = row.first_prompt.unwrap();
    assert!(
        prompt.starts_with("Long: word word") && prompt.ends_with("word…"),
        "{prompt}"
    );
    assert_eq!(row.created.as_deref(), Some("2026-02-03T04:05:06.007Z"));

    // A last answer that is longer than the first window.
    lines.push(text_answer(&"y".repeat(700_000)));
    lines.push(text_answer("Really?"));
    let long = root.row(&lines);
    assert_eq!(long.state, Some(SessionState::Waiting));
}

#[test]
fn the_title_of_a_person_is_found_in_the_middle_of_a_large_file() {
    let root = Root::new();
    let titled = |before: usize, after: usize, more: &[Value]| {
        let title = json!({"type": "custom-title", "customTitle": "Eclipses", "sessionId": ID});
        let mut lines = padding(before);
        lines.push(title);
        lines.extend_from_slice(more);
        lines.extend(padding(after));
        root.row(&lines).title
    };
    let found = Some("Eclipses".to_owned());
    // Where two parts that are searched one after the other meet, too.
    for after in [600, 1000, 1023, 1024, 1025, 1100, 3 << 10] {
        assert_eq!(titled(600 << 10, after << 10, &[]), found, "{after} KiB");
    }
    assert_eq!(titled(600 << 10, 5 << 20, &[]), None);
    // A later title counts, and the words of a message are none.
    let cleared = json!({"type": "custom-title", "customTitle": "", "sessionId": ID});
    assert_eq!(titled(600 << 10, 600 << 10, &[cleared]), None);
    let quoted = user(r#"{"type":"custom-title","customTitle":"No","sessionId":"s"}"#);
    assert_eq!(titled(600 << 10, 600 << 10, &[quoted]), found);
}

#[test]
fn titles_have_the_precedence_of_the_clients() {
    let custom = |title: &str| json!({"type": "custom-title", "customTitle": title});
    let made = json!({"type": "ai-title", "aiTitle": "made"});
    let root = Root::new();
    let title = |lines: &[Value]| root.row(lines).title;
    assert_eq!(
        title(&[user("a"), custom("mine"), made.clone()]).as_deref(),
        Some("mine")
    );
    assert_eq!(
        title(&[custom("old"), custom("new")]).as_deref(),
        Some("new")
    );
    assert_eq!(
        title(&[custom("mine"), made.clone(), custom("")]).as_deref(),
        Some("made")
    );
    // Text in a message, a title of another type, and a torn line do not count.
    let quoted = user(r#"{"type":"custom-title","customTitle":"no"}"#);
    let nested = with(user("a"), "toolUseResult", custom("no"));
    let odd = json!({"type": "custom-title", "customTitle": 7});
    assert_eq!(title(&[quoted, nested, odd]), None);

    root.write(
        &format!("{KEY}/{ID}/custom-title.json"),
        r#"{"customTitle":"side"}"#,
    );
    assert_eq!(title(&[user("a"), made.clone()]).as_deref(), Some("side"));
    assert_eq!(title(&[user("a"), custom("mine")]).as_deref(), Some("mine"));
    let far: Vec<_> = [custom("mine")]
        .into_iter()
        .chain(padding(100_000))
        .collect();
    assert_eq!(title(&far).as_deref(), Some("side"));
    root.write(&format!("{KEY}/{ID}/custom-title.json"), "{torn");
    assert_eq!(title(&far).as_deref(), Some("mine"));
}

#[test]
fn copy_that_a_client_finds_comes_first_and_a_clock_that_is_ahead_does_not_count() {
    let root = Root::new();
    let bytes = text(&[user("a"), text_answer("b")]);
    for name in [" (1)", "-LAPTOP", " 2", ".sync-conflict-1"] {
        root.write(&format!("{KEY}/{ID}{name}.jsonl"), &bytes);
    }
    root.write(&format!("{KEY}/{ID}.jsonl"), &bytes);
    let listing = root.list();
    assert_eq!(listing.rows.len(), 5);
    assert_eq!(listing.rows[0].session_id, ID);
    let ahead = with(user("c"), "timestamp", "2999-01-01T00:00:00.000Z");
    let ahead = root.write(&format!("{KEY}/1{}.jsonl", &ID[1..]), text(&[ahead]));
    let set = |time: &str| {
        let millis = transcript_format::time::millis(time.as_bytes()).unwrap();
        let time = UNIX_EPOCH + Duration::from_millis(millis.unsigned_abs());
        let file = fs::File::options().append(true).open(&ahead).unwrap();
        file.set_modified(time).unwrap();
        root.list().rows[0].path == ahead
    };
    // By the times of their messages, the others are of 2026-02-03.
    assert!(!set("2026-02-02T00:00:00.000Z") && set("2026-02-04T00:00:00.000Z"));
}

#[test]
fn a_title_that_was_glued_to_a_torn_line_counts_and_a_torn_title_does_not() {
    let root = Root::new();
    let path = format!("{KEY}/{ID}.jsonl");
    let whole = text(&[user("a"), text_answer("b")]);
    let torn = &text_answer("c").to_string()[..80];
    let title = r#"{"type":"custom-title","customTitle":"mine"}"#;
    root.write(&path, format!("{whole}{torn}{title}\n"));
    assert_eq!(root.list().rows[0].title.as_deref(), Some("mine"));
    root.write(&path, format!("{whole}{}", &title[..title.len() - 1]));
    assert_eq!(root.list().rows[0].title, None);
    root.write(&path, format!("{whole}{title}"));
    assert_eq!(root.list().rows[0].title.as_deref(), Some("mine"));
}

#[test]
fn nothing_is_hidden_and_the_newest_conversation_comes_first() {
    let root = Root::new();
    let at =
        |line: Value, day: u32| with(line, "timestamp", format!("2026-02-{day:02}T00:00:00.000Z"));
    root.write(
        "-p/old.jsonl",
        text(&[
            at(user("a"), 1),
            json!({"type": "custom-title", "customTitle": "renamed later"}),
        ]),
    );
    root.write("-p/new.jsonl", text(&[at(user("a"), 3)]));
    root.write(
        "-q/side.jsonl",
        text(&[with(at(user("a task"), 2), "isSidechain", true)]),
    );
    root.write(
        "-q/mixed.jsonl",
        text(&[
            with(at(user("a warm-up"), 1), "isSidechain", true),
            at(user("a question"), 1),
        ]),
    );
    root.write(
        "-q/meta.jsonl",
        text(&[json!({"type": "mode", "mode": "normal"})]),
    );
    root.write("-q/empty.jsonl", "");
    root.write("-q/0b93 (copy).jsonl", text(&[at(user("b"), 1)]));
    root.write("-q/nul.jsonl", [0; 5000]);
    root.write("-q/notes.txt", "x");
    root.write("stray.jsonl", "x");
    let listing = root.list();
    assert_eq!(listing.problems.len(), 0);
    let mut ids: Vec<_> = listing.rows.iter().map(|row| &*row.session_id).collect();
    // Sessions without a conversation have the time of their file, which is now.
    ids[..3].sort_unstable();
    assert_eq!(
        ids,
        [
            "empty",
            "meta",
            "nul",
            "new",
            "side",
            "old",
            "0b93 (copy)",
            "mixed"
        ]
    );
    let row = |id| {
        listing
            .rows
            .iter()
            .find(|row| row.session_id == id)
            .unwrap()
    };
    assert_eq!(row("side").first_prompt.as_deref(), Some("a task"));
    assert_eq!(row("mixed").first_prompt.as_deref(), Some("a question"));
    assert_eq!(
        (row("meta").has_conversation, row("empty").bytes),
        (false, 0)
    );

    let latest = |path: &str| listing.latest(Path::new(path)).map(|row| &*row.session_id);
    assert_eq!(latest("/elsewhere"), Some("new"));
    assert_eq!(
        latest("/q"),
        Some("side"),
        "by the folder when the lines name no other"
    );
}

#[test]
fn agents_are_counted_in_all_layouts_and_are_not_sessions() {
    let root = Root::new();
    root.write("-p/s.jsonl", text(&[user("a")]));
    root.write("-p/s/subagents/agent-a.jsonl", text(&[user("b")]));
    root.write("-p/s/subagents/agent-a.meta.json", "{}");
    root.write(
        "-p/s/subagents/workflows/run/agent-b.jsonl",
        text(&[user("b")]),
    );
    root.write(
        "-p/agent-c.jsonl",
        text(&[with(user("b"), "sessionId", "s")]),
    );
    root.write(
        "-p/agent-d.jsonl",
        text(&[with(user("b"), "sessionId", "other")]),
    );
    let rows = root.list().rows;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].subagents, 3);
}

#[test]
fn a_new_prompt_makes_an_archived_session_active_again() {
    let root = Root::new();
    let lines = [user("a"), text_answer("b")];
    let mark = |at: &str| {
        let mark = format!(r#"{{"archived":true,"at":"{at}","by":"sdk"}}"#);
        root.write(&format!("{KEY}/{ID}/archived.json"), mark);
        root.row(&lines).archived
    };
    assert_eq!(mark("2026-02-04T00:00:00.000Z"), Some(true));
    assert_eq!(mark("2026-02-03T00:00:00.000Z"), Some(false));
    // The answer came later than that.
    assert_eq!(mark("2026-02-03T04:05:30.000Z"), Some(true));
    assert_eq!(mark("soon"), None);
}

#[test]
fn a_project_is_matched_by_the_folders_its_sessions_name() {
    let root = Root::new();
    let home = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(home.path()).unwrap();
    let place = |name: &str| home.join(name).to_str().unwrap().to_owned();
    for name in ["repo/.git/worktrees/wt", "wt", "foo-bar", "foo/bar"] {
        fs::create_dir_all(home.join(name)).unwrap();
    }
    fs::write(
        home.join("wt/.git"),
        format!("gitdir: {}\n", place("repo/.git/worktrees/wt")),
    )
    .unwrap();
    fs::write(
        home.join("repo/.git/worktrees/wt/gitdir"),
        format!("{}\n", place("wt/.git")),
    )
    .unwrap();
    fs::write(home.join("repo/.git/worktrees/wt/commondir"), "../..\n").unwrap();
    let key = |name: &str| transcript_format::names::project_key(&place(name));
    let session = |folder: &str, id: &str, cwd: &str, more: &[Value]| {
        let mut lines = vec![with(user("a"), "cwd", cwd)];
        lines.extend_from_slice(more);
        root.write(&format!("{folder}/{id}.jsonl"), text(&lines));
    };
    session(&key("repo"), "plain", &place("repo"), &[]);
    session(&key("wt"), "worktree", &place("wt"), &[]);
    session("-some-old-name", "renamed-folder", &place("repo"), &[]);
    session(&key("repo"), "moved-project", "/before/repo", &[]);
    let relocated = json!({"type": "relocated", "relocatedCwd": place("repo")});
    session("-gone", "relocated", "/gone", &[relocated]);
    session(&key("foo-bar"), "dash", &place("foo-bar"), &[]);
    session(&key("foo/bar"), "slash", &place("foo/bar"), &[]);

    let listing = root.list();
    let of = |name: &str, worktrees: bool| {
        let rows = listing.of_project(Path::new(&place(name)), worktrees);
        let mut ids: Vec<_> = rows.iter().map(|row| &*row.session_id).collect();
        ids.sort_unstable();
        ids
    };
    let repo = ["moved-project", "plain", "relocated", "renamed-folder"];
    assert_eq!(of("repo", false), repo);
    assert_eq!(of("repo", true), [&repo[..], &["worktree"]].concat());
    assert_eq!(of("wt", true), [&repo[..], &["worktree"]].concat());
    assert_eq!(of("foo-bar", true), ["dash"]);
    assert_eq!(of("foo/bar", true), ["slash"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(home.join("repo"), home.join("link")).unwrap();
        assert_eq!(of("link", false), repo);
    }
}

#[test]
fn a_session_belongs_to_the_folder_that_its_project_is_named_after() {
    let root = Root::new();
    let in_folder = |cwd: &str| with(user("a"), "cwd", cwd);
    let home = Some("/home/ada/notes");
    // After a `cd`, there and back, from elsewhere, and with the folder in a line in the middle.
    for lines in [
        vec![
            in_folder("/home/ada/notes"),
            in_folder("/home/ada/notes/api"),
        ],
        vec![
            in_folder("/home/ada/notes"),
            in_folder("/tmp"),
            in_folder("/home/ada/notes"),
        ],
        vec![
            in_folder("/tmp"),
            in_folder("/home/ada/notes"),
            in_folder("/var"),
        ],
        vec![
            in_folder("/home/ada/old"),
            json!({"type": "relocated", "relocatedCwd": "/home/ada/notes"}),
        ],
        // It was moved back by hand.
        vec![
            in_folder("/home/ada/notes"),
            json!({"type": "relocated", "relocatedCwd": "/home/ada/new"}),
        ],
    ] {
        let row = root.row(&lines);
        assert_eq!(
            (row.cwd.as_deref(), row.continued_in()),
            (home, home),
            "{lines:?}"
        );
    }
    let row = root.row(&[in_folder("/home/ada/old")]);
    assert_eq!(
        (row.cwd.as_deref(), row.continued_in()),
        (Some("/home/ada/old"), None)
    );
    let lines = text(&[in_folder("/home/ada/notes")]);
    // A client finds neither a file with another name nor one elsewhere.
    for path in [
        format!("{KEY}/{ID} (1).jsonl"),
        format!("{KEY}/merged.jsonl"),
        format!("sent/{ID}.jsonl"),
    ] {
        let row = SessionRow::at(&root.write(&path, &lines));
        assert_eq!(row.continued_in(), None, "{path}");
    }
    let row = SessionRow::at(&root.write(&format!("{KEY}/merged.jsonl"), &lines));
    assert_eq!(row.home(), home);
}

#[test]
fn a_project_is_matched_in_every_form_of_its_path_and_with_worktrees_that_are_gone() {
    let root = Root::new();
    let session = |folder: &str, number: u8, cwd: &str| {
        let id = ID.replace("0b93", &format!("0b9{number}"));
        root.write(
            &format!("{folder}/{id}.jsonl"),
            text(&[with(user("a"), "cwd", cwd)]),
        );
    };
    session("-home-ada-Pru-zkum", 1, "/home/ada/Pru\u{30a}zkum");
    session("c--Users-Ada-Elm", 2, r"c:\Users\Ada\Elm");
    session("-r", 3, "/r");
    session("-r--claude-worktrees-fix", 4, "/r/.claude/worktrees/fix");
    session("-rx", 5, "/rx");
    // A worktree that is elsewhere, and one that the session has left.
    for (number, worktree) in [(6, json!({"originalCwd": "/owl"})), (7, Value::Null)] {
        let state = json!({"type": "worktree-state", "worktreeSession": worktree});
        let lines = text(&[with(user("a"), "cwd", "/trees/fix"), state]);
        root.write(&format!("-trees-fix/{number}{}.jsonl", &ID[1..]), lines);
    }
    let listing = root.list();
    let count =
        |path: &str, with_worktrees| listing.of_project(Path::new(path), with_worktrees).len();
    for (path, expected) in [
        ("/home/ada/Pr\u{16f}zkum", 1),
        ("/home/ada/Pru\u{30a}zkum", 1),
        ("/home/ada/Pruzkum", 0),
        (r"C:\Users\Ada\Elm", 1),
        ("c:/Users/Ada/Elm", 1),
        ("d:/Users/Ada/Elm", 0),
        ("/r", 2),
        ("/r/.claude/worktrees/fix", 2),
        ("/r/.claude/worktrees/other", 2),
    ] {
        assert_eq!(count(path, true), expected, "{path}");
    }
    assert_eq!([count("/owl", true), count("/owl", false)], [1, 0]);
    assert_eq!(count("/trees/fix", true), 2);
    assert_eq!(count("/r", false), 1);
    assert_eq!(count("/r/.claude/worktrees/fix", false), 1);
    let disk = std::sync::Arc::new(RealDisk) as _;
    let place = Path::new("/r");
    let folders = transcript_reader::project_folders(&disk, root.path(), place, true).unwrap();
    assert_eq!(folders.len(), 2, "{folders:?}");
}

#[cfg(unix)]
#[test]
fn entries_that_are_not_files_are_problems_and_never_block() {
    use std::os::unix::fs::symlink;
    let root = Root::new();
    let real = root.write("-p/real.jsonl", text(&[user("a")]));
    fs::create_dir(root.path().join("-p/folder.jsonl")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(root.path().join("-p/pipe.jsonl"))
        .status();
    assert!(made.unwrap().success());
    symlink("loop.jsonl", root.path().join("-p/loop.jsonl")).unwrap();
    symlink(&real, root.path().join("-p/again.jsonl")).unwrap();
    symlink(root.path().join("-p"), root.path().join("-also-p")).unwrap();
    symlink("-round", root.path().join("-round")).unwrap();
    // A file that exists and is not a transcript keeps its row.
    root.write("-p/packed.jsonl", b"\x1F\x8B\x08\0\0\0\0\0");

    let listing = root.list();
    let ids: Vec<_> = listing.rows.iter().map(|row| &*row.session_id).collect();
    assert_eq!(ids, ["packed", "real"]);
    assert_eq!(listing.rows[0].bytes, 8);
    let mut reported: Vec<_> = listing
        .problems
        .iter()
        .map(|problem| {
            let name = problem.path().file_name().unwrap();
            name.to_str().unwrap().to_owned()
        })
        .collect();
    reported.sort_unstable();
    assert_eq!(
        reported,
        [
            "-round",
            "folder.jsonl",
            "loop.jsonl",
            "packed.jsonl",
            "pipe.jsonl"
        ]
    );
    assert!(Listing::read(&root.path().join("missing")).is_err());
}

/// The expected row of a session, from a slow reader of all of its lines.
fn model(bytes: &[u8]) -> [Option<String>; 7] {
    let parsed = |bytes: &[u8]| -> Vec<Value> {
        let lines = bytes.split(|byte| *byte == b'\n');
        // Whole entries that are glued to others on one line count.
        let values = |line| serde_json::Deserializer::from_slice(line).into_iter::<Value>();
        let lines = lines.flat_map(|line| values(line).map_while(Result::ok));
        lines.filter(Value::is_object).collect()
    };
    let lines = parsed(bytes);
    // The first value counts.
    let near = bytes
        .iter()
        .take(64 << 10)
        .rposition(|byte| *byte == b'\n')
        .unwrap_or(0);
    let near = parsed(if bytes.len() > 64 << 10 {
        &bytes[..near]
    } else {
        bytes
    });
    let is_message = |line: &&Value| matches!(line["type"].as_str(), Some("user" | "assistant"));
    let is_side = |line: &Value| line["isSidechain"] == true;
    let mut messages = lines.iter().filter(is_message);
    let all_side = messages.clone().next().is_some() && messages.all(is_side);
    let of_conversation =
        |line: &&Value| is_message(line) && is_side(line) == all_side && line["isMeta"] != true;
    let prompts = |lines: &[Value]| -> Vec<Value> {
        let users = lines
            .iter()
            .filter(|line| line["type"] == "user")
            .filter(of_conversation);
        let users = users.filter(|line| line["isCompactSummary"] != true);
        let users = users.filter(|line| {
            let blocks = line["message"]["content"].as_array();
            !blocks.is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_result"))
        });
        users.cloned().collect()
    };
    let texts = |line: &Value| -> Vec<String> {
        let content = &line["message"]["content"];
        let of_block = |block: &Value| {
            (block["type"] == "text").then(|| block["text"].as_str().map(str::to_owned))?
        };
        match content {
            Value::String(text) => vec![text.clone()],
            Value::Array(blocks) => blocks.iter().filter_map(of_block).collect(),
            _ => vec![],
        }
    };
    let is_of_others = |line: &Value| {
        let kind = line["origin"]["kind"].as_str();
        kind.is_some_and(|kind| kind != "human") || line["promptSource"] == "system"
    };
    let typed = |text: &String| {
        let mut text = text.replace('\n', " ").trim().to_owned();
        // A note of the client before the words.
        while let Some((_, rest)) = text
            .strip_prefix("<system-reminder>")
            .and_then(|text| text.split_once("</system-reminder>"))
        {
            text = rest.trim().to_owned();
        }
        if let Some((_, rest)) = text.split_once("<bash-input>") {
            let command = rest.split_once("</bash-input>")?.0;
            return Some(format!("! {command}"));
        }
        let tags = [
            "local-command-",
            "bash-",
            "task-notification",
            "tick",
            "ide_",
            "teammate-",
            "command-",
        ];
        let is_tag = tags.iter().any(|tag| text.starts_with(&format!("<{tag}")));
        let is_synthetic = transcript_format::texts::is_synthetic(&text);
        let is_own = is_tag || is_synthetic || text.contains("<command-name>");
        (!text.is_empty() && !is_own && !text.starts_with("[Request interrupted")).then_some(text)
    };
    let prompt = |lines: &[Value]| {
        let lines = prompts(lines);
        let lines = lines.iter().filter(|line| !is_of_others(line));
        lines.flat_map(texts).find_map(|text| typed(&text))
    };
    let command = |lines: &[Value]| {
        let lines = prompts(lines);
        lines.iter().flat_map(texts).find_map(|text| {
            let (_, rest) = text.split_once("<command-name>")?;
            Some(rest.split_once("</command-name>")?.0.trim().to_owned())
        })
    };
    let cut = |text: String| {
        let units: Vec<_> = text.encode_utf16().take(200).collect();
        match text.encode_utf16().count() {
            0..=200 => text,
            _ => format!(
                "{}…",
                String::from_utf16_lossy(&units)
                    .trim_end_matches('\u{fffd}')
                    .trim_end()
            ),
        }
    };
    let first = |key: &str| {
        lines
            .iter()
            .filter_map(|line| line[key].as_str())
            .find(|text| !text.is_empty())
    };
    // An empty title of the person and an empty tag clear the previous one; other empty values are
    // ignored.
    let last = |kind: &str, key: &str| {
        let may_be_empty = matches!(kind, "custom-title" | "tag");
        let lines = lines.iter().rev().filter(|line| line["type"] == kind);
        let mut values = lines.filter_map(|line| line[key].as_str().map(str::to_owned));
        values.find(|value| may_be_empty || !value.is_empty())
    };
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let own_summary = || {
        let is_here = |leaf: &str| lines.iter().any(|line| line["uuid"] == leaf);
        let summaries = lines.iter().rev().filter(|line| line["type"] == "summary");
        let own = summaries.filter(|line| line["leafUuid"].as_str().is_some_and(is_here));
        let mut texts = own.filter_map(|line| line["summary"].as_str());
        texts.find(|text| !text.is_empty()).map(str::to_owned)
    };
    let modified = lines
        .iter()
        .rev()
        .filter(of_conversation)
        .filter_map(|line| line["timestamp"].as_str());
    [
        filled(last("custom-title", "customTitle"))
            .or_else(|| filled(last("ai-title", "aiTitle")))
            .or_else(own_summary),
        prompt(&near)
            .map(cut)
            .or(command(&near))
            .or(prompt(&lines).map(cut))
            .or(command(&lines)),
        filled(last("relocated", "relocatedCwd")).or(first("cwd").map(str::to_owned)),
        first("timestamp").map(str::to_owned),
        modified.map(str::to_owned).find(|text| !text.is_empty()),
        lines
            .iter()
            .rev()
            .filter_map(|line| line["gitBranch"].as_str())
            .find(|text| !text.is_empty())
            .map(str::to_owned),
        filled(last("tag", "tag")),
    ]
}

fn reported(row: SessionRow) -> [Option<String>; 7] {
    // Where no message has a time, the row has that of the file.
    let is_of_file = row.modified_millis() == row.file_millis;
    let modified = row.modified.filter(|_| !is_of_file);
    [
        row.title,
        row.first_prompt,
        row.cwd,
        row.created,
        modified,
        row.branch,
        row.tag,
    ]
}

const FIELDS: [&str; 7] = [
    "title",
    "first prompt",
    "cwd",
    "created",
    "modified",
    "branch",
    "tag",
];

fn assert_as_the_model(bytes: &[u8], row: SessionRow, name: &str) {
    for ((reported, expected), field) in reported(row).into_iter().zip(model(bytes)).zip(FIELDS) {
        assert_eq!(reported, expected, "{field} of {name}");
    }
}

#[test]
fn windows_give_the_same_row_as_reading_the_whole_file() {
    let root = Root::new();
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut lines: Vec<Vec<u8>> = generate::tidy_session(seed)
            .split(|byte| *byte == b'\n')
            // The slow reader does not salvage entries.
            .filter(|line| serde_json::from_slice::<Value>(line).is_ok())
            .map(|line| [line, b"\n"].concat())
            .collect();
        // Settings anywhere, and enough lines between them that the windows cover only a part.
        // Settings beyond the reach are tested elsewhere.
        for (kind, key) in [
            ("custom-title", "customTitle"),
            ("ai-title", "aiTitle"),
            ("tag", "tag"),
            ("relocated", "relocatedCwd"),
        ] {
            for _ in 0..rng.below(3) {
                let value = if rng.one_in(4) {
                    String::new()
                } else {
                    format!("{kind} {}", rng.below(9))
                };
                let line = json!({key: value, "type": kind});
                lines.insert(rng.below(lines.len() + 1), format!("{line}\n").into_bytes());
            }
        }
        for _ in 0..rng.below(4) {
            let size = rng.below(120_000);
            let filling = text(&[
                json!({"type": "progress", "gitBranch": rng.pick(&["", "b1", "b2"]), "data": {"text": "z".repeat(size)}}),
            ]);
            lines.insert(rng.below(lines.len() + 1), filling.into_bytes());
        }
        let bytes = lines.concat();
        assert!(bytes.len() < 512 << 10);
        root.write("-p/s.jsonl", &bytes);
        let row = root.list().rows.remove(0);
        // A tag further away than a near title is not searched for.
        let mut expected = model(&bytes);
        let near = &bytes[bytes.len().saturating_sub(64 << 10)..];
        let near_title = memchr::memmem::find(near, b"\"type\":\"custom-title\"").is_some();
        let mut reported = reported(row);
        if near_title {
            for field in [2, 5, 6] {
                (reported[field], expected[field]) = (None, None);
            }
        }
        for ((reported, expected), field) in reported.into_iter().zip(expected).zip(FIELDS) {
            assert_eq!(reported, expected, "{field} of seed {seed}");
        }
    }
}

#[test]
fn windows_give_the_same_rows_on_the_corpus_as_reading_whole_files() {
    let Some(files) = shared().map(|shared| shared.join("corpus/files")) else {
        println!("skipped: no shared data");
        return;
    };
    let root = Root::new();
    let mut count = 0;
    for folder in fs::read_dir(files).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "jsonl") {
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            root.write("-p/s.jsonl", &bytes);
            assert_as_the_model(
                &bytes,
                root.list().rows.remove(0),
                &path.display().to_string(),
            );
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}
