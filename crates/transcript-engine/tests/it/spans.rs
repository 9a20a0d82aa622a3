//! The spans of reading, linking, building a request and following.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use transcript_engine::{History, SessionOptions};

use crate::support::{Place, create, say};

/// A span or an event, with its fields as text.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: String,
    fields: BTreeMap<String, String>,
    /// The number of times that it was entered.
    entered: u64,
}

/// Records the spans and events of the crates of this workspace, in their order.
#[derive(Clone, Debug, Default)]
struct Recorder {
    seen: Arc<Mutex<Vec<Seen>>>,
}

struct Fields<'a>(&'a mut Seen);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}").trim_matches('"').to_owned();
        self.0.fields.insert(field.name().to_owned(), text);
    }
}

impl Recorder {
    fn with<T>(&self, work: impl FnOnce(&mut Vec<Seen>) -> T) -> T {
        work(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The spans and events of `work`.
    fn of(work: impl FnOnce()) -> Vec<Seen> {
        let recorder = Self::default();
        tracing::subscriber::with_default(recorder.clone(), work);
        recorder.with(|seen| seen.clone())
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("transcript")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut seen = Seen {
            name: span.metadata().name().to_owned(),
            ..Seen::default()
        };
        span.record(&mut Fields(&mut seen));
        self.with(|all| {
            all.push(seen);
            Id::from_u64(all.len() as u64)
        })
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.with(|all| values.record(&mut Fields(&mut all[at(span)])));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut seen = Seen::default();
        event.record(&mut Fields(&mut seen));
        seen.name = seen.fields.get("message").cloned().unwrap_or_default();
        self.with(|all| all.push(seen));
    }

    fn enter(&self, span: &Id) {
        self.with(|all| all[at(span)].entered += 1);
    }

    fn exit(&self, _: &Id) {}
}

/// The place of a span in the list.
fn at(span: &Id) -> usize {
    span.into_u64() as usize - 1
}

fn names(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|one| &*one.name).collect()
}

#[test]
fn a_request_has_a_span_for_each_step_however_long_the_session_is() {
    let mut place = Place::new();
    let mut counts = Vec::new();
    for prompts in [2, 200] {
        place.renew();
        let session = create(&place.path);
        for number in 0..prompts {
            say(&session, &format!("{number}"));
        }
        session.close().unwrap();
        let seen = Recorder::of(|| {
            let history = History::open(&place.path).unwrap();
            history.request(&SessionOptions::new()).unwrap();
        });
        for name in ["load_index", "link_tree", "build_request", "find_path"] {
            let of_name: Vec<&Seen> = seen.iter().filter(|one| one.name == name).collect();
            assert!(!of_name.is_empty(), "{name} in {:?}", names(&seen));
            assert!(of_name.iter().all(|one| one.entered == 1), "{of_name:?}");
        }
        let load = &seen[0];
        assert_eq!(load.name, "load_index");
        let bytes = fs::metadata(&place.path).unwrap().len();
        assert_eq!(load.fields["bytes"], bytes.to_string());
        assert_eq!(load.fields["lines"], prompts.to_string());
        assert_eq!(load.fields["path"], place.path.display().to_string());
        let request = seen.iter().find(|one| one.name == "build_request");
        assert_eq!(request.unwrap().fields["policy"], "recover");
        // The prompts are one message, and the turn without an answer gets one.
        assert_eq!(request.unwrap().fields["messages"], "2");
        counts.push(seen.len());
    }
    assert_eq!(counts[0], counts[1], "nothing is recorded per line");
}

#[cfg(feature = "follow")]
#[test]
fn a_poll_has_a_span_and_a_replaced_file_an_event() {
    use transcript_engine::follow::{FollowOptions, Follower};

    let place = Place::new();
    let session = create(&place.path);
    say(&session, "x");
    session.close().unwrap();
    let old = fs::read(&place.path).unwrap();
    let seen = Recorder::of(|| {
        let options = FollowOptions::new().poll_only();
        let mut follower = Follower::new(&place.path, &options);
        while follower.try_next().unwrap().is_some() {}
        let new = place.path.with_extension("new");
        fs::write(
            &new,
            String::from_utf8(old.clone()).unwrap().replace('x', "y"),
        )
        .unwrap();
        fs::rename(&new, &place.path).unwrap();
        while follower.try_next().unwrap().is_some() {}
    });
    let polls = seen.iter().filter(|one| one.name == "poll");
    let polls: Vec<&Seen> = polls.collect();
    assert!(polls.len() >= 2, "{:?}", names(&seen));
    let path = place.path.display().to_string();
    assert!(polls.iter().all(|one| one.fields["path"] == path));
    let reset = seen.iter().filter(|one| one.fields.contains_key("reason"));
    let reset: Vec<&Seen> = reset.collect();
    assert_eq!(reset.len(), 1, "{:?}", names(&seen));
    assert_eq!(reset[0].name, "following from the start again");
    assert_eq!(reset[0].fields["reason"], "replaced");
    assert_eq!(reset[0].fields["offset"], old.len().to_string());
}
