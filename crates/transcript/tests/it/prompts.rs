//! System prompts that are recorded in a session.

use std::fs;

use serde_json::{Value, json};
use transcript::builder::SystemPrompt;
use transcript::{History, Session};

use crate::support::{Place, create, lines, options, say};

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
    assert_eq!(history.prompt_changes(&new.fingerprint()).unwrap(), None);

    session.record_prompt(&prompt("main").assemble()).unwrap();
    session.close().unwrap();
    let resumed = Session::resume(&place.path, &options()).unwrap();
    let changes = resumed.history.prompt_changes(&new.fingerprint()).unwrap();
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
