//! System prompts that are recorded in a session.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use transcript_engine::builder::{AssembledPrompt, PromptChanges, SystemPrompt};
use transcript_engine::redact::{RedactedDisk, Redactor};
use transcript_engine::{
    Compaction, ForkOptions, History, MoveOptions, Policy, Session, SessionRepair, Store, Trigger,
    merge, move_project,
};
use transcript_storage::{ReadDisk, RealDisk};

use crate::support::{POLICIES, Place, answer_text, create, lines, options, say};

fn prompt(git: &str) -> SystemPrompt {
    SystemPrompt::new()
        .section("base", "Be \"short\".\u{2028}\0é")
        .section("git", git)
}

fn engine_lines(session: &Session) -> Vec<Value> {
    let (lines, _) = lines(session.path());
    let lines = lines.into_iter();
    lines
        .filter(|line| line["type"] == "transcriptEngine")
        .collect()
}

#[test]
fn a_text_is_written_once_and_a_prompt_when_it_changes() {
    let place = Place::new();
    let session = create(&place.path);
    let [main, fix] = ["main", "fix"].map(|branch| prompt(branch).assemble());
    assert!(session.record_prompt(&main).unwrap().is_some());
    assert!(session.record_prompt(&main).unwrap().is_none());
    let asked = say(&session, "Hello");
    assert!(session.record_prompt(&fix).unwrap().is_some());
    session.close().unwrap();

    // Another process knows what is there from the file.
    let session = Session::open(&place.path, &options()).unwrap();
    assert!(session.record_prompt(&fix).unwrap().is_none());
    assert!(session.record_prompt(&main).unwrap().is_some());

    let found = engine_lines(&session);
    let texts: Vec<usize> = found
        .iter()
        .map(|line| line["texts"].as_object().unwrap().len())
        .collect();
    assert_eq!(texts, [2, 1, 0]);
    let expected = serde_json::to_value(fix.fingerprint()).unwrap();
    assert_eq!(found[1]["prompt"], expected);

    let history = History::open(&place.path).unwrap();
    let prompts = history.prompts().unwrap();
    let fingerprints: Vec<_> = prompts.iter().map(|prompt| &prompt.fingerprint).collect();
    let (main_print, fix_print) = (main.fingerprint(), fix.fingerprint());
    assert_eq!(fingerprints, [&main_print, &fix_print, &main_print]);
    let after: Vec<_> = prompts.iter().map(|prompt| prompt.after.clone()).collect();
    let asked = Some(asked.to_string());
    assert_eq!(after, [None, asked.clone(), asked]);
    for (section, sent) in fix_print.sections.iter().zip(&fix.sections) {
        let text = history.prompt_text(&section.hash).unwrap();
        assert_eq!(text.as_ref(), Some(&sent.text));
    }
    assert_eq!(history.prompt_text("0").unwrap(), None);
}

#[test]
fn a_resume_says_which_sections_changed() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "Hello");
    let new = prompt("fix").section("tools", "None.");
    let history = History::open(&place.path).unwrap();
    assert_eq!(
        history
            .prompt_changes(Policy::Recover, &new.fingerprint())
            .unwrap(),
        None
    );

    session.record_prompt(&prompt("main").assemble()).unwrap();
    session.close().unwrap();
    let resumed = Session::resume(&place.path, &options()).unwrap();
    let changes = resumed
        .history
        .prompt_changes(Policy::Recover, &new.fingerprint())
        .unwrap();
    let changes = serde_json::to_value(changes.unwrap()).unwrap();
    let expected = json!({
        "added": ["tools"], "removed": [], "changed": ["git"], "is_rearranged": false,
    });
    assert_eq!(changes, expected);
}

#[test]
fn a_recorded_prompt_is_no_part_of_the_conversation() {
    let place = Place::new();
    let session = create(&place.path);
    let asked = say(&session, "Hello");
    let of_file = || {
        let history = History::open(&place.path).unwrap();
        assert_eq!(history.index().findings().len(), 0);
        history.request(&options()).unwrap().messages
    };
    let (before, before_of_file) = (session.request().unwrap(), of_file());
    session.record_prompt(&prompt("main").assemble()).unwrap();
    assert_eq!(session.leaf(), Some(asked));
    let after = session.request().unwrap();
    assert_eq!(after.messages, before.messages);
    assert_eq!(of_file(), before_of_file);
}

#[test]
fn damaged_records_are_omitted_and_texts_that_were_changed_are_written_again() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "Hello");
    let main = prompt("main").assemble();
    session.record_prompt(&main).unwrap();
    session.close().unwrap();

    let text = fs::read_to_string(&place.path).unwrap();
    assert!(text.contains(r#":"main""#));
    let odd =
        r#"{"type":"transcriptEngine","v":1,"prompt":{"hash":7,"sections":[]},"sessionId":"s"}"#;
    fs::write(
        &place.path,
        text.replace(r#":"main""#, r#":"****""#) + odd + "\n",
    )
    .unwrap();
    let history = History::open(&place.path).unwrap();
    assert_eq!(history.prompts().unwrap().len(), 1);
    let git = &main.fingerprint().sections[1].hash;
    assert_eq!(history.prompt_text(git).unwrap(), None);

    let session = Session::open(&place.path, &options()).unwrap();
    let more = prompt("main").section("tools", "None.").assemble();
    session.record_prompt(&more).unwrap();
    let history = History::open(&place.path).unwrap();
    assert_eq!(history.prompt_text(git).unwrap().as_deref(), Some("main"));
    assert_eq!(
        engine_lines(&session).pop().unwrap()["texts"]
            .as_object()
            .unwrap()
            .len(),
        2
    );
}

/// Returns what changed in the prompt that a history recorded last.
fn changes(history: &History, prompt: &SystemPrompt) -> PromptChanges {
    let changes = history.prompt_changes(Policy::Recover, &prompt.fingerprint());
    changes.unwrap().expect("a prompt was recorded")
}

/// Checks that a file has this prompt as the last one, with its texts, and says what changes.
fn assert_has(path: &Path, last: &SystemPrompt) {
    let history = History::open(path).unwrap();
    assert_eq!(history.index().findings().len(), 0, "{}", path.display());
    let AssembledPrompt { sections, .. } = last.assemble();
    for section in &sections {
        let text = history.prompt_text(&section.fingerprint().hash).unwrap();
        assert_eq!(text.as_ref(), Some(&section.text), "{}", path.display());
    }
    assert!(changes(&history, last).is_empty(), "{}", path.display());
    let new = last.clone().section("git", "another");
    assert_eq!(changes(&history, &new).changed, ["git"]);
    let text = fs::read_to_string(path).unwrap();
    for section in &sections {
        let hash = section.fingerprint().hash;
        let stored = text.matches(&format!("\"{hash}\":\"")).count();
        // Beside the key of its text, a hash is a value.
        assert_eq!(stored, 1, "{}: {}", path.display(), section.name);
    }
}

#[test]
fn every_copy_of_a_session_has_its_prompts() {
    let place = Place::new();
    let store = Store::new(place.path.with_file_name("projects"));
    let name = place.path.file_name().unwrap();
    let path = store.project(Path::new("/work")).join(name);
    let session = create(&path);
    session.record_prompt(&prompt("main").assemble()).unwrap();
    let asked = say(&session, "Hello");
    // A text that is the id of an entry is a text.
    let last = prompt("fix").section("id", &asked.to_string());
    session.record_prompt(&last.assemble()).unwrap();
    answer_text(&session, "Good morning");
    session.close().unwrap();
    assert_has(&path, &last);

    let folder = |name: &str| {
        let folder = place.path.with_file_name(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    let out = |folder_name: &str| -> PathBuf { folder(folder_name).join(name) };

    for policy in POLICIES {
        let options = ForkOptions::new().folder(folder("forks"));
        let history = History::open(&path).unwrap();
        let (fork, _) = history.fork(policy, &options).unwrap();
        assert_has(&fork, &last);
        let of_fork = History::open(&fork).unwrap().prompts().unwrap();
        let copy = of_fork[1].after.as_deref().unwrap();
        assert_ne!(copy, asked.to_string());
        assert_eq!((of_fork.len(), of_fork[0].after.as_ref()), (2, None));
        let (again, _) = History::open(&fork)
            .unwrap()
            .fork(policy, &options)
            .unwrap();
        assert_has(&again, &last);
    }

    let other = out("other");
    fs::copy(&path, &other).unwrap();
    let session = Session::open(&other, &options()).unwrap();
    let newer = prompt("newer");
    session.record_prompt(&newer.assemble()).unwrap();
    answer_text(&session, "How are you?");
    session.close().unwrap();
    merge(&path, &other, &out("merged")).unwrap();
    assert_has(&out("merged"), &newer);

    let repair = SessionRepair::plan(&path).unwrap();
    repair.write(&out("repaired")).unwrap();
    assert_has(&out("repaired"), &last);
    let (new, _) = repair.write_as_new(None).unwrap();
    assert_has(&new, &last);
    let history = History::open(&new).unwrap();
    assert_ne!(history.prompts().unwrap()[1].after, Some(asked.to_string()));
    fs::remove_file(&new).unwrap();
    let compacted = SessionRepair::plan(&path).unwrap().compact().unwrap();
    compacted.write(&out("compacted")).unwrap();
    assert_has(&out("compacted"), &last);

    for options in [MoveOptions::new().copy(), MoveOptions::new()] {
        let new = folder("new");
        let moves = move_project(&store, Path::new("/work"), &new, options);
        let moves = moves.unwrap();
        assert_eq!(moves.moved.len(), 1, "{:?}", moves.refused);
        assert_has(&moves.moved[0].to, &last);
    }
}

#[cfg(feature = "archive")]
#[test]
fn a_session_from_an_archive_has_its_prompts() {
    use transcript_engine::archive::{Archive, CaptureOptions, RestoreOptions};

    let place = Place::new();
    let store = Store::new(place.path.with_file_name("projects"));
    let path = store.new_session_path(Path::new("/work"));
    let session = create(&path);
    say(&session, "Hello");
    let last = prompt("main");
    session.record_prompt(&last.assemble()).unwrap();
    session.close().unwrap();
    let folder = place.path.with_file_name("archive");
    let mut archive = Archive::open_or_create(&folder).unwrap();
    let captured = archive.capture(store.root(), &CaptureOptions::new());
    captured.unwrap();
    let restored = place.path.with_file_name("restored");
    let options = RestoreOptions::new();
    archive.restore(&restored, &options).unwrap();
    assert_has(
        &restored.join(path.strip_prefix(store.root()).unwrap()),
        &last,
    );
}

#[test]
fn each_conversation_is_compared_with_its_own_prompt() {
    let place = Place::new();
    let session = create(&place.path);
    let asked = say(&session, "Hello");
    let [main, fix, new] = ["main", "fix", "new"].map(prompt);
    session.record_prompt(&main.assemble()).unwrap();
    let answered = answer_text(&session, "Good morning");
    say(&session, "And now?");
    session.record_prompt(&fix.assemble()).unwrap();
    answer_text(&session, "Good evening");

    // Of a branch that was left.
    session.rewind(Some(answered.clone())).unwrap();
    let recorded = session.prompt_changes(&fix.fingerprint()).unwrap();
    assert_eq!(recorded.unwrap().changed, ["git"]);
    let history = || History::open(&place.path).unwrap();
    assert!(changes(&history(), &main).is_empty());
    say(&session, "And then?");
    assert!(session.record_prompt(&main.assemble()).unwrap().is_none());
    assert!(session.record_prompt(&fix.assemble()).unwrap().is_some());
    assert!(session.record_prompt(&fix.assemble()).unwrap().is_none());
    assert!(changes(&history(), &fix).is_empty());
    answer_text(&session, "Good night");

    // A fork at an entry has the prompt of that time.
    let fork_at = |entry: &transcript_engine::EntryId| {
        let options = ForkOptions::new().at(entry.clone());
        let (fork, _) = history().fork(Policy::Recover, &options).unwrap();
        fork
    };
    let fork = fork_at(&answered);
    assert!(changes(&History::open(&fork).unwrap(), &main).is_empty());
    assert_eq!(History::open(&fork).unwrap().prompts().unwrap().len(), 1);

    // Prompts that were compacted away were sent all the same.
    let compaction = Compaction::new(Trigger::Manual, 10);
    session
        .compact(compaction, "Greetings.", transcript_engine::Keep::Nothing)
        .unwrap();
    assert!(changes(&history(), &fix).is_empty());
    assert!(session.record_prompt(&fix.assemble()).unwrap().is_none());
    let (fork, _) = history()
        .fork(Policy::Recover, &ForkOptions::new())
        .unwrap();
    assert_has(&fork, &fix);
    let of_fork = History::open(&fork).unwrap().prompts().unwrap();
    assert_eq!((of_fork.len(), of_fork[0].after.as_ref()), (1, None));
    say(&session, "Again");
    session.record_prompt(&new.assemble()).unwrap();
    session.close().unwrap();
    let (fork, _) = history()
        .fork(Policy::Recover, &ForkOptions::new())
        .unwrap();
    assert_has(&fork, &new);
    assert_eq!(History::open(&fork).unwrap().prompts().unwrap().len(), 2);
    assert!(changes(&History::open(&fork_at(&asked)).unwrap(), &main).is_empty());
}

#[test]
fn messages_that_are_recorded_elsewhere_have_the_prompt_of_their_branch() {
    let place = Place::new();
    let session = create(&place.path);
    let asked = say(&session, "Hello");
    let [main, fix] = ["main", "fix"].map(prompt);
    session.record_prompt(&main.assemble()).unwrap();
    answer_text(&session, "Good morning");
    session.record_prompt(&fix.assemble()).unwrap();
    let message = |uuid: &str, text: &str| {
        let message =
            json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}});
        transcript_engine::Draft::entry(&message.to_string()).unwrap()
    };
    let uuid = "0a463e0a-ee08-4b08-99d5-2d9a36fd8293";
    let messages = vec![message(&asked.to_string(), "Hello"), message(uuid, "Hi")];
    session
        .record(messages, transcript_engine::RecordOptions::new())
        .unwrap();
    let recorded = session.prompt_changes(&main.fingerprint()).unwrap();
    assert!(recorded.unwrap().is_empty());
    assert!(session.record_prompt(&fix.assemble()).unwrap().is_some());
}

#[test]
fn a_copy_without_secrets_says_of_no_section_that_it_changed() {
    const SECRET: &str = concat!("gh", "p_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6");
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "Hello");
    // The names of sections make no secrets of their hashes.
    let last = prompt("main")
        .section("api_token", &format!("use {SECRET}"))
        .section("password", "change it monthly");
    session.record_prompt(&last.assemble()).unwrap();
    session.close().unwrap();

    let disk = RedactedDisk::new(Arc::new(RealDisk), Redactor::new());
    let disk: Arc<dyn ReadDisk> = Arc::new(disk);
    let file = disk.open_to_read(&place.path).unwrap();
    let mut bytes = vec![0; file.metadata().unwrap().len as usize];
    file.fill(0, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains(SECRET) && text.contains("[redacted"));
    fs::write(&place.path, &text).unwrap();

    let history = History::open(&place.path).unwrap();
    assert_eq!(history.index().findings().len(), 0);
    assert!(changes(&history, &last).is_empty());
    let known = |history: &History| -> Vec<bool> {
        let sections = last.fingerprint().sections.into_iter();
        sections
            .map(|section| history.prompt_text(&section.hash).unwrap().is_some())
            .collect()
    };
    assert_eq!(known(&history), [true, true, false, true]);

    // A fork has what is left; the text is written again with the next prompt that has it.
    let (fork, _) = history.fork(Policy::Recover, &ForkOptions::new()).unwrap();
    let of_fork = History::open(&fork).unwrap();
    assert!(changes(&of_fork, &last).is_empty());
    assert_eq!(known(&of_fork), [true, true, false, true]);
    let session = Session::open(&fork, &options()).unwrap();
    assert!(session.record_prompt(&last.assemble()).unwrap().is_none());
    let more = last.clone().section("tools", "None.");
    session.record_prompt(&more.assemble()).unwrap();
    session.close().unwrap();
    let of_fork = History::open(&fork).unwrap();
    assert_eq!(known(&of_fork), [true; 4]);
    let (again, _) = of_fork.fork(Policy::Recover, &ForkOptions::new()).unwrap();
    assert_eq!(known(&History::open(&again).unwrap()), [true; 4]);
}
