//! The session functions of the SDKs.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use transcript_engine::sdk::{ListOptions, MessageOptions, SdkMessage, SdkSessions};
use transcript_engine::{ErrorKind, Policy, Store};

use crate::support::{create, say};

const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const B: &str = "bbbbbbbb-0000-4000-8000-000000000002";

/// A store, and folders that projects work in.
struct Projects {
    folder: TempDir,
    store: Store,
}

impl Projects {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("projects"));
        Self { folder, store }
    }

    fn sessions(&self) -> SdkSessions {
        SdkSessions::new(self.store.clone())
    }

    /// Creates a folder to work in.
    fn cwd(&self, name: &str) -> PathBuf {
        let cwd = self.folder.path().join(name);
        fs::create_dir_all(&cwd).unwrap();
        cwd.canonicalize().unwrap()
    }

    /// Writes a session of one prompt, changed this number of seconds ago.
    fn write(&self, cwd: &Path, id: &str, text: &str, age: u64) -> PathBuf {
        let project = self.store.project(cwd);
        fs::create_dir_all(&project).unwrap();
        let path = project.join(format!("{id}.jsonl"));
        fs::write(&path, prompt(id, &cwd.to_string_lossy(), text)).unwrap();
        let time = SystemTime::now() - Duration::from_secs(age);
        fs::File::options()
            .append(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
        path
    }

    fn ids(&self, options: &ListOptions) -> Vec<String> {
        let rows = self.sessions().list(options).unwrap().into_iter();
        rows.map(|row| row.session_id).collect()
    }
}

fn prompt(id: &str, cwd: &str, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"u-{id}","parentUuid":null,"sessionId":"{id}","cwd":"{cwd}","timestamp":"2026-03-01T09:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

fn texts(sessions: &SdkSessions, id: &str, options: &MessageOptions) -> Vec<String> {
    let mut found = Vec::new();
    let read = sessions.messages(id, None, options, &mut |message| {
        found.push(message.message.to_owned());
        Ok::<_, Infallible>(())
    });
    read.unwrap();
    found
}

#[test]
fn sessions_are_listed_by_the_change_of_their_files_in_pages() {
    let projects = Projects::new();
    let (one, two) = (projects.cwd("one"), projects.cwd("two"));
    projects.write(&one, A, "older", 50);
    projects.write(&two, B, "newer", 10);
    let all = ListOptions::default();
    assert_eq!(projects.ids(&all), [B, A]);
    assert_eq!(
        projects.ids(&ListOptions {
            limit: Some(1),
            ..all.clone()
        }),
        [B]
    );
    assert_eq!(
        projects.ids(&ListOptions {
            offset: 1,
            ..all.clone()
        }),
        [A]
    );
    assert_eq!(
        projects.ids(&ListOptions {
            limit: Some(0),
            ..all.clone()
        }),
        [B, A]
    );
    assert_eq!(
        projects.ids(&ListOptions {
            offset: 9,
            ..all.clone()
        }),
        [""; 0]
    );
    let of_one = ListOptions {
        directory: Some(one),
        ..all
    };
    assert_eq!(projects.ids(&of_one), [A]);
}

#[test]
fn newest_copy_with_one_id_is_listed_and_files_without_a_conversation_are_not() {
    let projects = Projects::new();
    let (one, two) = (projects.cwd("one"), projects.cwd("two"));
    projects.write(&one, A, "old copy", 50);
    projects.write(&two, A, "new copy", 10);
    projects.write(&one, "no-uuid", "hidden", 0);
    let folder = projects.store.project(&one);
    fs::write(folder.join(format!("{B}.jsonl")), "").unwrap();
    let rows = projects.sessions().list(&ListOptions::default()).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].summary.as_deref(), Some("new copy"));
}

#[test]
fn a_project_has_the_sessions_of_its_worktrees_and_not_those_of_a_path_with_the_same_key() {
    let projects = Projects::new();
    let main = projects.cwd("repo");
    let tree = projects.cwd("tree");
    fs::create_dir_all(main.join(".git/worktrees/tree")).unwrap();
    fs::write(
        tree.join(".git"),
        format!("gitdir: {}\n", main.join(".git/worktrees/tree").display()),
    )
    .unwrap();
    fs::write(
        main.join(".git/worktrees/tree/gitdir"),
        format!("{}\n", tree.join(".git").display()),
    )
    .unwrap();
    fs::write(main.join(".git/worktrees/tree/commondir"), "../..\n").unwrap();
    projects.write(&main, A, "in main", 20);
    projects.write(&tree, B, "in tree", 10);
    let here = ListOptions {
        directory: Some(main.clone()),
        ..ListOptions::default()
    };
    assert_eq!(projects.ids(&here), [B, A]);
    let alone = ListOptions {
        include_worktrees: false,
        ..here
    };
    assert_eq!(projects.ids(&alone), [A]);
    // A session of another worktree is found from this one, also when its folder is gone.
    assert!(projects.sessions().info(B, Some(&main)).unwrap().is_some());
    fs::remove_dir_all(&tree).unwrap();
    assert!(projects.sessions().info(B, Some(&main)).unwrap().is_some());

    // `a-b` and `a/b` have one key.
    let (dash, slash) = (projects.cwd("a-b"), projects.cwd("a/b"));
    let other = "cccccccc-0000-4000-8000-000000000003";
    assert_eq!(
        projects.store.project(&dash),
        projects.store.project(&slash)
    );
    projects.write(&dash, other, "dash", 0);
    let of_slash = ListOptions {
        directory: Some(slash),
        ..ListOptions::default()
    };
    assert_eq!(projects.ids(&of_slash), [""; 0]);
}

#[test]
fn messages_are_read_in_pages_and_can_be_stopped() {
    let projects = Projects::new();
    let cwd = projects.cwd("one");
    let path = projects.write(&cwd, A, "first", 0);
    let mut file = fs::read_to_string(&path).unwrap();
    for (number, parent) in [(1, format!("u-{A}")), (2, "v1".into()), (3, "v2".into())] {
        file.push_str(&format!(
            r#"{{"type":"assistant","uuid":"v{number}","parentUuid":"{parent}","sessionId":"{A}","timestamp":"2026-03-01T09:00:0{number}.000Z","message":{{"role":"assistant","content":{number}}}}}"#
        ));
        file.push('\n');
    }
    fs::write(&path, file).unwrap();
    let sessions = projects.sessions();
    let all = texts(&sessions, A, &MessageOptions::default());
    assert_eq!(all.len(), 4);
    assert_eq!(all[3], r#"{"role":"assistant","content":3}"#);
    let page = MessageOptions {
        limit: Some(2),
        offset: 1,
        ..MessageOptions::default()
    };
    assert_eq!(texts(&sessions, A, &page), all[1..3]);
    let mut seen = 0;
    let stopped = sessions.messages(A, None, &MessageOptions::default(), &mut |_| {
        seen += 1;
        if seen == 2 { Err("enough") } else { Ok(()) }
    });
    assert!(stopped.is_err());
    assert_eq!(seen, 2);
    assert!(texts(&sessions, "no id", &MessageOptions::default()).is_empty());
}

#[test]
fn system_entries_between_messages_are_returned_when_asked_for() {
    let projects = Projects::new();
    let cwd = projects.cwd("here");
    let path = projects.write(&cwd, A, "first", 0);
    let mut text = fs::read_to_string(&path).unwrap();
    let mut parent = format!("u-{A}");
    for (uuid, kind, more) in [
        ("shown", "system", r#""subtype":"informational""#),
        (
            "hidden",
            "system",
            r#""subtype":"turn_duration","isMeta":true"#,
        ),
        (
            "last",
            "user",
            r#""message":{"role":"user","content":"last"}"#,
        ),
        ("end", "system", r#""subtype":"informational""#),
    ] {
        text += &format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"{A}",{more}}}"#
        );
        text.push('\n');
        parent = uuid.to_owned();
    }
    fs::write(&path, text).unwrap();
    let sessions = projects.sessions();
    let read = |system: bool| {
        let options = MessageOptions {
            system,
            ..MessageOptions::default()
        };
        let mut found = Vec::new();
        let each = &mut |message: SdkMessage<'_>| {
            let parent = message.parent_uuid.map(str::to_owned);
            found.push((message.role, message.uuid.to_owned(), parent));
            Ok::<_, Infallible>(())
        };
        sessions.messages(A, None, &options, each).unwrap();
        found
    };
    let first = ("user", format!("u-{A}"), None);
    let after = |role, uuid: &str, parent: &str| (role, uuid.to_owned(), Some(parent.to_owned()));
    assert_eq!(
        read(false),
        [first.clone(), after("user", "last", &first.1)]
    );
    let (shown, last) = (
        after("system", "shown", &first.1),
        after("user", "last", "shown"),
    );
    assert_eq!(read(true), [first, shown, last]);
}

#[test]
fn prompts_that_were_queued_are_messages_and_origins_are_returned() {
    let projects = Projects::new();
    let cwd = projects.cwd("here");
    let path = projects.write(&cwd, A, "first", 0);
    let mut text = fs::read_to_string(&path).unwrap();
    let mut parent = format!("u-{A}");
    let queued = |rest: &str| format!(r#""attachment":{{"type":"queued_command",{rest}}}"#);
    let lines = [
        (
            "q1",
            "attachment",
            queued(r#""prompt":"wait","commandMode":"prompt""#),
        ),
        (
            "q2",
            "attachment",
            queued(r#""prompt":[{"type":"text","text":"stop"}],"source_uuid":"s2","isMeta":false"#),
        ),
        (
            "q3",
            "attachment",
            queued(r#""prompt":"done","commandMode":"task-notification""#),
        ),
        (
            "q4",
            "attachment",
            queued(r#""prompt":"by a tool","isMeta":true"#),
        ),
        ("q5", "attachment", queued(r#""prompt":5"#)),
        (
            "q6",
            "attachment",
            r#""attachment":{"type":"date_change","prompt":"no"}"#.to_owned(),
        ),
        (
            "u2",
            "user",
            r#""origin":{"kind":"human"},"message":{"role":"user","content":"last"}"#.to_owned(),
        ),
    ];
    for (uuid, kind, rest) in lines {
        text += &format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":"{parent}","sessionId":"{A}",{rest}}}"#
        );
        text.push('\n');
        parent = uuid.to_owned();
    }
    fs::write(&path, text).unwrap();
    let mut found = Vec::new();
    let each = &mut |message: SdkMessage<'_>| {
        let parent = message.parent_uuid.unwrap_or_default();
        let ids = format!("{} {parent}", message.uuid);
        let origin = message.origin.map(str::to_owned);
        found.push((ids, message.message.to_owned(), message.is_queued, origin));
        Ok::<_, Infallible>(())
    };
    let options = MessageOptions::default();
    projects
        .sessions()
        .messages(A, None, &options, each)
        .unwrap();
    let said = |content: &str| format!(r#"{{"role":"user","content":{content}}}"#);
    let human = Some(r#"{"kind":"human"}"#.to_owned());
    let notification = Some(r#"{"kind":"task-notification"}"#.to_owned());
    let expected = [
        (format!("q1 u-{A}"), said("\"wait\""), true, None),
        (
            "s2 q1".to_owned(),
            said(r#"[{"type":"text","text":"stop"}]"#),
            true,
            None,
        ),
        ("q3 s2".to_owned(), said("\"done\""), true, notification),
        ("u2 q3".to_owned(), said("\"last\""), false, human),
    ];
    assert_eq!(found[1..], expected);
    let page = MessageOptions {
        limit: Some(2),
        offset: 2,
        ..options
    };
    assert_eq!(texts(&projects.sessions(), A, &page).len(), 2);
}

#[test]
fn the_text_of_a_summary_line_is_shown_whatever_follows_it() {
    let projects = Projects::new();
    let cwd = projects.cwd("here");
    let path = projects.write(&cwd, A, "first", 0);
    let start = fs::read_to_string(&path).unwrap();
    let summary = r#"{"type":"summary","summary":"Leap days","leafUuid":"x"}"#;
    let summary_of = |text: String| {
        fs::write(&path, text).unwrap();
        projects.sessions().info(A, None).unwrap().unwrap().summary
    };
    let answer = |uuid: &str, parent: &str| {
        format!(
            r#"{{"parentUuid":"{parent}","type":"assistant","uuid":"{uuid}","timestamp":"2026-01-01T00:00:00.000Z","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"yes"}}]}}}}"#
        )
    };
    let prompt = r#"{"parentUuid":"a","type":"user","uuid":"b","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"more"}}"#;
    let turn = format!(
        "{}\n{prompt}\n{}\n",
        answer("a", &format!("u-{A}")),
        answer("c", "b")
    );
    let leap = Some("Leap days".to_owned());
    assert_eq!(summary_of(format!("{start}{turn}{summary}\n")), leap);
    assert_eq!(summary_of(format!("{start}{summary}\n{turn}")), leap);
    // One that is far from the end may be of another session, and the SDKs do not read it.
    let far = turn.replace("yes", &"y".repeat(70 << 10));
    assert_eq!(
        summary_of(format!("{start}{summary}\n{far}")),
        Some("first".to_owned())
    );
}

#[test]
fn a_renamed_file_keeps_its_conversation_when_it_gets_a_title() {
    let projects = Projects::new();
    let cwd = projects.cwd("work");
    let path = projects.write(&cwd, A, "hello", 10);
    fs::rename(&path, path.with_file_name(format!("{B}.jsonl"))).unwrap();
    let sessions = projects.sessions();
    let before = texts(&sessions, B, &MessageOptions::default());
    assert_eq!(before.len(), 1);
    // The title is the only line that names the session of the file name.
    sessions.rename(B, "a title", None).unwrap();
    assert_eq!(texts(&sessions, B, &MessageOptions::default()), before);
}

#[test]
fn sessions_of_programs_can_be_hidden() {
    let projects = Projects::new();
    let cwd = projects.cwd("here");
    projects.write(&cwd, A, "by a person", 0);
    let path = projects.write(&cwd, B, "by a program", 0);
    // The first entry that says it counts.
    let text = fs::read_to_string(&path).unwrap();
    let started = |name: &str| text.replacen('{', &format!(r#"{{"entrypoint":"{name}","#), 1);
    let people = ListOptions {
        include_programmatic: false,
        ..ListOptions::default()
    };
    for name in ["sdk-cli", "sdk-ts", "sdk-py"] {
        fs::write(&path, started(name) + &started("cli")).unwrap();
        assert_eq!(projects.ids(&people), [A]);
    }
    assert_eq!(projects.ids(&ListOptions::default()).len(), 2);
    fs::write(&path, started("claude-vscode") + &started("sdk-ts")).unwrap();
    assert_eq!(projects.ids(&people).len(), 2);
}

#[test]
fn a_session_is_archived_until_a_prompt_is_written_in_it() {
    let projects = Projects::new();
    let cwd = projects.cwd("here");
    let path = projects.write(&cwd, A, "first", 0);
    let sessions = projects.sessions();
    let archived = || sessions.info(A, None).unwrap().unwrap().archived;
    assert_eq!(archived(), None);
    sessions.set_archived(A, true, None).unwrap();
    assert_eq!(archived(), Some(true));
    sessions.set_archived(A, false, Some(&cwd)).unwrap();
    assert_eq!(archived(), Some(false));
    sessions.set_archived(A, true, None).unwrap();
    let names = fs::read_dir(path.with_extension("")).unwrap();
    assert_eq!(names.count(), 1, "something else is left in the folder");
    let mut text = fs::read_to_string(&path).unwrap();
    let later = |line: &str| line.replace("2026-03-01", "2126-03-01");
    text += &later(&prompt(A, "/", "an answer").replace("user", "assistant"));
    fs::write(&path, &text).unwrap();
    assert_eq!(archived(), Some(true));
    text += &later(&prompt(A, "/", "again"));
    fs::write(&path, &text).unwrap();
    assert_eq!(archived(), Some(false));
    let error = sessions.set_archived(B, true, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchSession);
}

#[test]
fn a_title_is_written_beside_a_session_that_is_open() {
    let projects = Projects::new();
    let cwd = projects.cwd("one");
    let path = projects.store.new_session_path(&cwd);
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let session = create(&path);
    say(&session, "before");
    projects.sessions().rename(&id, " Given ", None).unwrap();
    projects
        .sessions()
        .tag(&id, Some("\u{feff}ta\u{200b}g"), None)
        .unwrap();
    say(&session, "after");
    session.close().unwrap();
    let row = projects.sessions().info(&id, Some(&cwd)).unwrap().unwrap();
    assert_eq!(
        (row.title.as_deref(), row.tag.as_deref()),
        (Some("Given"), Some("tag"))
    );
    assert_eq!(
        texts(&projects.sessions(), &id, &MessageOptions::default()).len(),
        2
    );
}

#[test]
fn impossible_change_is_refused_before_anything_is_written() {
    let projects = Projects::new();
    let cwd = projects.cwd("one");
    let path = projects.write(&cwd, A, "x", 0);
    let before = fs::read(&path).unwrap();
    let sessions = projects.sessions();
    let kind = |error: transcript_engine::Error| error.kind();
    assert_eq!(
        sessions.rename(A, " \n", None).map_err(kind),
        Err(ErrorKind::Blank)
    );
    assert_eq!(
        sessions.tag(A, Some("\u{200b}"), None).map_err(kind),
        Err(ErrorKind::Blank)
    );
    assert_eq!(
        sessions.rename("../x", "t", None).map_err(kind),
        Err(ErrorKind::NotAnId)
    );
    assert_eq!(
        sessions.delete(B, None).map_err(kind),
        Err(ErrorKind::NoSuchSession)
    );
    assert_eq!(
        sessions.fork(A, None, Some(B), None).map_err(kind),
        Err(ErrorKind::NoSuchEntry)
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    let copy = sessions
        .policy(Policy::Vendor)
        .fork(A, None, None, Some("Copy"))
        .unwrap();
    assert!(path.with_file_name(format!("{copy}.jsonl")).exists());
}
