//! Sessions that continue a file of outputs of the SDK.

use std::fs;

use transcript_engine::{History, Policy, Session};
use transcript_format::object::Object;

use crate::support::{Place, options, say};

/// Appended entries follow the outputs, whose lines do not change.
#[test]
fn a_session_continues_the_outputs_before_it_in_order() {
    let place = Place::new();
    let talk = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/v1/stream/talk.jsonl"
    );
    fs::copy(talk, &place.path).unwrap();
    let before = History::open(&place.path).unwrap();
    let before = before.request(&Default::default()).unwrap().messages.len();
    for (more, text) in (1..).zip(["And tomorrow?", "And the day after?"]) {
        let resumed = Session::resume(&place.path, &options()).unwrap();
        say(&resumed.session, text);
        resumed.session.close().unwrap();
        let history = History::open(&place.path).unwrap();
        let tree = history.tree(Policy::Recover);
        assert!(tree.is_stream_form());
        assert!(tree.findings(&tree.path()).is_empty());
        let request = history.request(&Default::default()).unwrap();
        let sent = format!("{:?}", request.messages);
        assert!(
            request.messages.len() > before && sent.contains(text),
            "{more}"
        );
        let first = sent.find("When is high water?").unwrap();
        assert!(first < sent.find("And low water?").unwrap());
        assert!(sent.find("At half past twelve.").unwrap() < sent.find("And tomorrow?").unwrap());
    }
    let bytes = fs::read_to_string(&place.path).unwrap();
    assert!(bytes.starts_with(&fs::read_to_string(talk).unwrap()));
    assert!(bytes.lines().all(|line| Object::parse(line).is_ok()));
}
