//! How much of its conversation a file shows, for each published failure and for damaged sessions.

use std::path::Path;

use transcript_reader::{Index, OtherFiles, Source};
use transcript_resume::{Policy, Tree};
use transcript_testkit::campaign::several::several;
use transcript_testkit::campaign::{Healthy, Kind};
use transcript_testkit::generate::tidy_session;
use transcript_verify::ConversationMeasure;

use crate::fixtures;

fn measure(source: &Source) -> ConversationMeasure {
    let index = Index::load(source).unwrap();
    let tree = Tree::new(&index, Policy::Recover);
    let others = OtherFiles::search(source, &index, &tree.missing_parents());
    let tree = if others.is_empty() {
        tree
    } else {
        Tree::with_others(&index, &others)
    };
    let vendor = Tree::new(&index, Policy::Vendor);
    ConversationMeasure::new(&tree, &tree.path(), &vendor.path())
}

/// File; then conversation, recover, vendor, foreign.
const MEASURES: &[(&str, [usize; 4])] = &[
    ("pains/03-dangling", [4, 4, 2, 0]),
    // A rewind explains what is before the gap.
    ("pains/03-dangling-behind-rewind", [2, 2, 2, 0]),
    ("pains/03-parent-in-another-file/session", [4, 4, 2, 0]),
    ("pains/04-list-lost-segment-whole", [5, 5, 3, 0]),
    ("pains/04-stale-segment", [3, 3, 3, 0]),
    ("pains/06-torn-glued-nul", [3, 3, 1, 0]),
    ("pains/16-replayed-block", [6, 6, 4, 0]),
    ("pains/17-self-parent", [3, 3, 3, 0]),
    ("pains/19-rewind", [5, 5, 5, 0]),
    ("pains/20-in-one-file", [4, 4, 4, 0]),
    ("pains/22-other-session", [4, 4, 0, 4]),
    ("sessions/compact-segment-only", [7, 7, 7, 0]),
    ("sessions/pinned-leaf", [4, 4, 4, 0]),
    ("sessions/rewind", [4, 4, 4, 0]),
];

#[test]
fn each_published_failure_has_its_measure() {
    for (name, expected) in MEASURES {
        let measure = measure(&Source::open(&fixtures().join(format!("{name}.jsonl"))).unwrap());
        assert_eq!(numbers(&measure), *expected, "{name}");
    }
}

fn numbers(measure: &ConversationMeasure) -> [usize; 4] {
    [
        measure.conversation,
        measure.recover,
        measure.vendor,
        measure.foreign,
    ]
}

/// Builds a session from words `name<parent@minute`, `-` for no parent.
fn session(words: &str) -> String {
    let line = |word: &str| {
        let (name, rest) = word.split_once('<').unwrap();
        let (parent, minute) = rest.split_once('@').unwrap();
        let parent = match parent {
            "-" => "null".to_owned(),
            parent => format!("\"{parent}\""),
        };
        let (kind, content) = match &name[..1] {
            "b" => ("system\",\"subtype\":\"compact_boundary", ""),
            "a" => (
                "assistant",
                ",\"message\":{\"role\":\"assistant\",\"content\":[]}",
            ),
            _ => ("user", ",\"message\":{\"role\":\"user\",\"content\":\"?\"}"),
        };
        let summary = name.starts_with('s');
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"{name}\",\"parentUuid\":{parent},\"sessionId\":\"s\",\"isCompactSummary\":{summary},\"timestamp\":\"2026-11-20T10:{minute}:00.000Z\"{content}}}\n"
        )
    };
    words.split(' ').map(line).collect()
}

#[test]
fn a_component_counts_unless_a_rewind_or_a_compaction_explains_it() {
    let check = |words: &str, expected: [usize; 2]| {
        let measure = measure(&Source::from_bytes(
            session(words).as_bytes(),
            Path::new("-"),
        ));
        assert_eq!([measure.conversation, measure.recover], expected, "{words}");
    };
    // Entries before a gap were not abandoned: only the clock disagrees.
    check("u1<-@10 a1<u1@10 u2<x@01 a2<u2@02", [4, 2]);
    // The conversation was started again, or rewound to before the component.
    check("u1<-@10 a1<u1@10 u2<-@11 a2<u2@12", [2, 2]);
    check(
        "u1<-@10 a1<u1@10 u3<x@01 a3<u3@02 u2<a1@11 a2<u2@12",
        [4, 4],
    );
    // The link that leads past the component is that of an answer, not of a prompt.
    check("u1<-@10 a1<u1@10 u3<x@01 a3<u3@02 a2<a1@12", [5, 3]);
    // A compaction is before the gap, and the component before that.
    check(
        "u1<-@10 a1<u1@10 b<-@11 s<b@12 u2<s@13 u3<x@01 a3<u3@02",
        [4, 2],
    );
}

#[test]
fn proved_messages_are_counted_and_recover_shows_at_least_those_of_the_client() {
    let (mut files, mut over, mut short) = (0, 0, 0);
    for seed in 0..200 {
        let Some(healthy) = Healthy::new(&tidy_session(seed)) else {
            continue;
        };
        let whole = healthy.undamaged();
        let measure_of = |bytes: &[u8]| measure(&Source::from_bytes(bytes, Path::new("-")));
        let all = whole.truth.len();
        assert_eq!(
            numbers(&measure_of(&whole.bytes)),
            [all, all, all, 0],
            "seed {seed}"
        );
        for kind in Kind::ALL {
            let Some(case) = healthy.damaged(kind, seed) else {
                continue;
            };
            let measure = measure_of(&case.bytes);
            let name = format!("{kind:?} of seed {seed}: {measure:?}");
            assert!(measure.recover >= measure.vendor, "{name}");
            assert!(measure.conversation >= measure.recover, "{name}");
            let most = case.truth.len() + case.unproven.len();
            files += 1;
            over += usize::from(measure.conversation > most);
            short += usize::from(measure.conversation < case.truth.len());
        }
    }
    // A path of `recover` that shows too much or too little is measured as it is.
    assert!(
        short * 200 <= files && over * 200 <= files,
        "{short} and {over} of {files}"
    );
}

#[test]
fn recover_shows_no_less_than_the_client_of_sessions_that_are_damaged_in_several_ways() {
    for seed in 0..300 {
        let (bytes, done) = several(&tidy_session(seed), seed);
        let measure = measure(&Source::from_bytes(&bytes[..], Path::new("-")));
        assert!(
            measure.recover >= measure.vendor,
            "seed {seed}, {done:?}: {measure:?}"
        );
        assert!(
            measure.conversation >= measure.recover,
            "seed {seed}, {done:?}: {measure:?}"
        );
    }
}
