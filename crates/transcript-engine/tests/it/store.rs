//! The paths of sessions, and the rights to open them.

use std::fs;

use transcript_engine::{Draft, ErrorKind, OnBusy, Session, Store};
use transcript_writer::ErrorKind as WriteError;

use crate::support::POLICIES;
use crate::support::{Place, answer_text, create, messages, options, path_of, request, say};

#[test]
fn a_session_is_found_by_its_id_in_any_project_and_an_empty_file_is_none() {
    let place = Place::new();
    let store = Store::new(place.path.parent().unwrap().join("projects"));
    let cwd = place.path.parent().unwrap();
    let path = store.new_session_path(cwd);
    assert!(path.starts_with(store.project(cwd)));
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    assert_eq!(
        store.find(&id).unwrap_err().kind(),
        ErrorKind::NoSuchSession
    );

    let session = create(&path);
    assert!(!path.exists(), "a session without an entry leaves no file");
    say(&session, "x");
    session.close().unwrap();
    assert_eq!(store.find(&id).unwrap(), path);

    let stub = store.root().join("-a-project-before");
    fs::create_dir(&stub).unwrap();
    fs::write(stub.join(format!("{id}.jsonl")), "").unwrap();
    assert_eq!(store.find(&id).unwrap(), path);
    for no_id in [
        "..",
        "../../etc/passwd",
        "",
        "199",
        "1999463e-ee08-4b08-99d5-2d9a36fd829/",
    ] {
        assert_eq!(
            store.find(no_id).unwrap_err().kind(),
            ErrorKind::NotAnId,
            "{no_id}"
        );
    }
}

#[test]
fn a_start_of_an_id_is_enough_when_only_one_session_has_it() {
    let place = Place::new();
    let store = Store::new(place.path.parent().unwrap().join("projects"));
    assert_eq!(
        store.find("aaaa").unwrap_err().kind(),
        ErrorKind::NoSuchSession
    );
    let write = |path: &str, day: u32| {
        let path = store.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let time = format!("2026-01-0{day}T00:00:00.000Z");
        let line = format!(
            r#"{{"type":"user","uuid":"u","message":{{"content":"a"}},"cwd":"/home/ada","timestamp":"{time}"}}"#
        );
        fs::write(&path, line).unwrap();
        path
    };
    let [one, two] = [write("-p/aaaa1.jsonl", 2), write("-p/aaaa2.jsonl", 1)];
    let copy = write("-home-ada-elsewhere/aaaa2.jsonl", 3);
    assert_eq!(store.find("aaaa1").unwrap(), one);
    let error = store.find("aaaa").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert_eq!(error.candidates(), [copy.clone(), one.clone(), two.clone()]);
    // A complete id is ambiguous too when two projects have it, but not when it is also the prefix
    // of another id.
    assert_eq!(
        store.find("aaaa2").unwrap_err().candidates(),
        [copy.clone(), two]
    );
    write("-p/aaaa1-b.jsonl", 1);
    assert_eq!(store.find("aaaa1").unwrap(), one);

    assert_eq!(store.latest("/elsewhere".as_ref()).unwrap(), copy);
    assert_eq!(store.latest("/p".as_ref()).unwrap(), one);
    assert_eq!(store.list().unwrap().rows.len(), 4);
}

#[test]
fn a_session_is_found_by_what_a_person_has_of_it() {
    let place = Place::new();
    let store = Store::new(place.path.parent().unwrap().join("projects"));
    let path = store.new_session_path(place.path.parent().unwrap());
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let write = |path: &std::path::Path, title: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let line = r#"{"type":"user","uuid":"u","message":{"content":"a"},"isSidechain":false}"#;
        let title = format!(r#"{{"type":"custom-title","customTitle":"{title}"}}"#);
        fs::write(path, format!("{line}\n{title}\n")).unwrap();
    };
    write(&path, "Fix U\u{308}ber/a.rs");
    let agent = path
        .with_extension("")
        .join("subagents/agent-a1b2c3d4.jsonl");
    write(&agent, "");
    for name in [
        &id[..],
        &id[..8],
        &format!("{id}.jsonl"),
        "fix \u{dc}BER/a.rs",
    ] {
        assert_eq!(store.find_named(name).unwrap(), path, "{name}");
    }
    for name in ["a1b2c3d4", "agent-a1b2c3d4", "agent-a1b2c3d4.jsonl"] {
        assert_eq!(store.find_named(name).unwrap(), agent, "{name}");
    }
    for name in ["Fix", "a1b2", "../a", ""] {
        let kind = store.find_named(name).unwrap_err().kind();
        assert!(
            matches!(kind, ErrorKind::NoSuchSession | ErrorKind::NotAnId),
            "{name}: {kind:?}"
        );
    }
    let other = path.with_file_name("0000463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    write(&other, "Fix U\u{308}ber/a.rs");
    let error = store.find_named("Fix U\u{308}ber/a.rs").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
}

#[cfg(unix)]
#[test]
fn one_folder_is_one_project_by_whatever_name() {
    let place = Place::new();
    let folder = place.path.parent().unwrap();
    let (real, link) = (folder.join("real"), folder.join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let store = Store::new(folder);
    assert_eq!(store.project(&real), store.project(&link));
}

#[test]
fn existing_session_is_not_started_again() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    session.close().unwrap();
    let again = Session::create(&place.path, &options()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);
    assert!(!again.is_retryable());
    assert!(again.to_string().contains("open or resume it"));
    let missing = place.path.with_file_name("missing.jsonl");
    let error = Session::open(&missing, &options()).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Read(transcript_reader::ErrorKind::NotFound)
    );
}

#[test]
fn a_file_without_a_conversation_is_opened_and_not_resumed() {
    let place = Place::new();
    fs::write(
        &place.path,
        "{\"type\":\"custom-title\",\"customTitle\":\"t\"}\n",
    )
    .unwrap();
    let error = Session::resume(&place.path, &options()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::NotResumable(_)),
        "{error}"
    );
    let session = Session::open(&place.path, &options()).unwrap();
    say(&session, "x");
    session.close().unwrap();
    Session::resume(&place.path, &options()).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_that_another_process_writes_to_goes_on_in_a_copy() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    answer_text(&session, "y");
    session.close().unwrap();
    // The system does not distinguish whose open file it is.
    let other = fs::OpenOptions::new()
        .append(true)
        .open(&place.path)
        .unwrap();
    let busy = Session::resume(&place.path, &options()).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Write(WriteError::Busy));
    assert!(busy.is_retryable());

    let before = fs::read(&place.path).unwrap();
    let resumed = Session::resume(&place.path, &options().on_busy(OnBusy::Fork)).unwrap();
    drop(other);
    assert_eq!(resumed.forked_from.as_deref(), Some(&*place.path));
    assert_ne!(resumed.session.path(), place.path);
    resumed.session.append(Draft::user("z")).unwrap();
    let copy = resumed.session.path().to_owned();
    resumed.session.close().unwrap();
    assert_eq!(fs::read(&place.path).unwrap(), before);
    for policy in POLICIES {
        assert_eq!(path_of(&copy, policy).len(), 3);
        let (source, copy) = (request(&place.path, policy), request(&copy, policy));
        assert_eq!(messages(&copy)[..2], messages(&source)[..2]);
    }
}

#[cfg(feature = "follow")]
#[test]
fn writes_of_a_session_are_seen_by_a_watcher_of_the_store() {
    use std::time::Duration;
    use transcript_engine::follow::{self, ChangeKind, EventKind};

    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("projects"));
    let mut watcher = store.watch(&follow::FollowOptions::new().changes());
    let path = store.new_session_path(folder.path());
    let session = Session::create(&path, &transcript_engine::SessionOptions::new()).unwrap();
    let prompt = session.append(Draft::user("How long is a week?")).unwrap();
    let reply = r#"{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"7 days."}],"stop_reason":"end_turn"}"#;
    session
        .append_all(Draft::assistant(reply).unwrap())
        .unwrap();
    session.close().unwrap();

    let mut entries = Vec::new();
    while entries.len() < 2 {
        let reported = watcher.next_within(Duration::from_secs(20)).unwrap();
        let reported = reported.expect("it is reported");
        assert_eq!(*reported.path, *path);
        if let EventKind::Entry(entry) = reported.kind {
            entries.push(entry);
        }
    }
    assert!(entries[0].text.contains(&prompt.uuid.unwrap().to_string()));
    let is_end = |kind: &ChangeKind| matches!(kind, ChangeKind::TurnEnded { .. });
    assert!(entries[1].changes.iter().any(|change| is_end(&change.kind)));
}
