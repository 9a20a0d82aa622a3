//! Reading a session writes nothing, and a replaced file is noticed.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde_json::json;
use transcript_engine::{Draft, ErrorKind, History, Policy, Session};
use transcript_reader::Bodies;
use transcript_resume::PathState;
use transcript_resume::items::ItemKind;

use crate::support::{Place, answer, answer_text, call, create, messages, options, say};

/// Returns the bytes of a file, its modification time, and the number of files next to it.
fn state(path: &Path) -> (Vec<u8>, SystemTime, usize) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
    (fs::read(path).unwrap(), modified, names)
}

#[test]
fn a_history_shows_request_state_usage_and_items_and_writes_nothing() {
    let mut place = Place::new();
    for policy in [Policy::Vendor, Policy::Recover] {
        place.renew();
        let session = create(&place.path);
        say(&session, "x");
        answer_text(&session, "y");
        session
            .append(Draft::entry(r#"{"type":"custom-title","customTitle":"Tides"}"#).unwrap())
            .unwrap();
        // Resuming would write results for this call.
        answer(&session, "m2", &json!([call("t1")]));
        session.close().unwrap();
        let mut bytes = fs::read(&place.path).unwrap();
        bytes.extend_from_slice(b"{\"type\":\"us");
        fs::write(&place.path, &bytes).unwrap();

        let before = state(&place.path);
        let options = options().policy(policy);
        let history = History::open(&place.path).unwrap();
        let request = history.request(&options).unwrap();
        let state_at_end = history.state(policy).unwrap();
        assert_eq!(state_at_end.title.as_deref(), Some("Tides"));
        let tree = history.tree(policy);
        let mut bodies = Bodies::new(history.source());
        let (again, on_path) = PathState::read(&tree, &tree.path(), &mut bodies).unwrap();
        assert_eq!(again, state_at_end);
        let usage = history.usage().unwrap();
        assert_eq!(usage, on_path);
        assert_eq!(usage[0].output_tokens, Some(2));
        let items = history.items(policy).unwrap();
        assert!(
            items
                .items()
                .iter()
                .any(|item| item.kind() == ItemKind::Call)
        );
        assert_eq!(state(&place.path), before);

        // It is the same request as that of `resume`.
        let resumed = Session::resume(&place.path, &options).unwrap();
        assert_eq!(messages(&resumed.request), messages(&request));
        assert!(!resumed.added.is_empty());
        let other = options.model("other");
        let request = history.request(&other).unwrap();
        assert_eq!(request.model.as_deref(), Some("other"));
    }
}

/// Returns the bytes of a session with the prompt `text` and its own ids.
fn written(path: &Path, text: &str) -> Vec<u8> {
    let session = create(path);
    for number in 0..3 {
        say(&session, &format!("{number} {text}"));
    }
    session.close().unwrap();
    let bytes = fs::read(path).unwrap();
    fs::remove_file(path).unwrap();
    bytes
}

#[test]
fn a_file_that_was_replaced_by_one_of_equal_length_is_not_the_one_that_was_read() {
    let place = Place::new();
    let (read, other) = (written(&place.path, "one"), written(&place.path, "two"));
    assert_eq!(read.len(), other.len());
    assert_eq!(read[read.len() - 64..], other[other.len() - 64..]);
    let open = |there: &[u8]| {
        fs::write(&place.path, &read).unwrap();
        let history = History::open(&place.path).unwrap();
        let known = history
            .resume_point(&history.tree(Policy::Recover))
            .unwrap();
        fs::write(&place.path, there).unwrap();
        transcript_writer::WriterOptions::new()
            .open(&place.path, known)
            .map(drop)
    };
    open(&read).unwrap();
    let error = open(&other).unwrap_err();
    assert_eq!(error.kind(), transcript_writer::ErrorKind::Changed);
    assert_eq!(fs::read(&place.path).unwrap(), other);
}

#[test]
fn a_session_is_started_or_opened_whichever_can_be() {
    let place = Place::new();
    let session = Session::open_or_create(&place.path, &options()).unwrap();
    let first = say(&session, "x");
    session.close().unwrap();
    let session = Session::open_or_create(&place.path, &options()).unwrap();
    assert_eq!(session.leaf(), Some(first));
    session.close().unwrap();
    let error = Session::create(&place.path, &options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
}
