//! A request that is kept up to date has the messages of one that is built from scratch, at every prefix.

use std::path::{Path, PathBuf};

use transcript_format::lines::Framer;
use transcript_messages::OmissionReason;
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::request::{LiveRequest, Request, RequestOptions};
use transcript_resume::{LiveConversation, Policy, Tree};
use transcript_testkit::shared;

use crate::live::{KINDS, Scribe, check_files, for_each_line, transcripts};

/// The numbers of comparisons.
#[derive(Debug, Default)]
struct Count {
    requests: usize,
    /// Requests for which the live one has no answer.
    unknown: usize,
    /// How often a live request read the whole path.
    full_reads: u64,
}

fn options() -> RequestOptions {
    RequestOptions::new().live()
}

fn expected(bytes: &[u8], path: &Path) -> Request {
    let source = Source::from_bytes(bytes, path);
    let index = Index::load(&source).unwrap();
    let tree = Tree::new(&index, Policy::Recover);
    options().request(&tree, &mut Bodies::new(&source)).unwrap()
}

#[track_caller]
fn assert_equal(found: Option<&Request>, bytes: &[u8], path: &Path, at: usize, count: &mut Count) {
    let wanted = expected(bytes, path);
    let name = format!("{}, line {at}", path.display());
    count.requests += 1;
    let Some(found) = found else {
        let is_unusable = |omission: &transcript_messages::Omission| {
            omission.reason == OmissionReason::UnusableBody
        };
        let may_be_unknown =
            wanted.path.entries.is_empty() || wanted.omissions.iter().any(is_unusable);
        assert!(may_be_unknown, "{name}");
        count.unknown += 1;
        return;
    };
    assert_eq!(found.path.entries, wanted.path.entries, "{name}");
    assert_eq!(found.path.leaf, wanted.path.leaf, "{name}");
    let pairs = found.messages.iter().zip(&wanted.messages);
    let equal = pairs.take_while(|(one, other)| one == other).count();
    assert_eq!(
        (found.messages.len(), found.messages.get(equal)),
        (wanted.messages.len(), wanted.messages.get(equal)),
        "{name}, message {equal}"
    );
    assert_eq!(found.model, wanted.model, "{name}");
    let sorted = |request: &Request| {
        let omissions = request.omissions.iter().map(|one| format!("{one:?}"));
        let synthetic = request.synthetic.iter().map(|one| format!("{one:?}"));
        let mut all: Vec<String> = omissions.chain(synthetic).collect();
        all.sort();
        all
    };
    assert_eq!(sorted(found), sorted(&wanted), "{name}");
}

/// Asks after each line, and compares after every `step` lines.
fn check(bytes: &[u8], path: &Path, step: usize, count: &mut Count) {
    let mut live = LiveConversation::new(path);
    let mut request = LiveRequest::new(options());
    let source = Source::from_bytes(bytes, path);
    for_each_line(bytes, |number, line, framed| {
        live.push(framed);
        let bodies = &mut Bodies::new(&source);
        let found = request.request(&mut live, bodies).unwrap();
        if number % step == 0 || line.end == bytes.len() {
            assert_equal(found.as_ref(), &bytes[..line.end], path, number, count);
        }
    });
    count.full_reads += request.full_reads();
}

#[test]
fn generated_and_damaged_sessions_have_the_request_of_a_load_after_each_line() {
    for (kind, make) in KINDS {
        let mut count = Count::default();
        for seed in 0..60 {
            let bytes = make(seed);
            let name = PathBuf::from(format!("{}-{seed}.jsonl", kind.replace(' ', "-")));
            check(&bytes, &name, 1, &mut count);
        }
        println!("{kind}: {count:?}");
        assert!(count.requests > 2 * count.unknown, "{kind}: {count:?}");
    }
}

#[test]
fn the_messages_of_earlier_turns_are_made_once() {
    let mut live = LiveConversation::new(Path::new("session.jsonl"));
    let mut request = LiveRequest::new(options());
    let (mut text, mut parent) = (String::new(), "null".to_owned());
    let mut before: Vec<transcript_messages::Message> = Vec::new();
    for turn in 0..40 {
        let mut lines = String::new();
        let mut entry = |kind: &str, name: &str, message: &str| {
            lines += &format!(
                r#"{{"parentUuid":{parent},"isSidechain":false,"type":"{kind}","uuid":"{name}{turn}","sessionId":"s","message":{message}}}"#
            );
            lines.push('\n');
            parent = format!("\"{name}{turn}\"");
        };
        entry("user", "u", r#"{"role":"user","content":"And?"}"#);
        let call = format!(
            r#"{{"id":"m{turn}","model":"m","content":[{{"type":"tool_use","id":"c{turn}","name":"Read","input":{{}}}}]}}"#
        );
        entry("assistant", "a", &call);
        let result = format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{turn}","content":"Done"}}]}}"#
        );
        entry("user", "r", &result);
        let answer =
            format!(r#"{{"id":"n{turn}","model":"m","content":[{{"type":"text","text":"Yes"}}]}}"#);
        entry("assistant", "b", &answer);
        let mut framer = Framer::starting_at(text.len() as u64, usize::MAX);
        let mut rest = lines.as_bytes();
        while let Some(line) = framer.next(&mut rest) {
            live.push(line);
        }
        text += &lines;
        let source = Source::from_bytes(text.as_bytes(), Path::new("session.jsonl"));
        let found = request.request(&mut live, &mut Bodies::new(&source));
        let found = found.unwrap().unwrap();
        assert_eq!(found.messages.len(), 4 * (turn + 1));
        let pairs = found.messages.iter().zip(&before);
        let shared = pairs.filter(|(new, old)| std::ptr::eq(new.blocks(), old.blocks()));
        // Lines that come late may still join the entries at the end.
        let least = (4 * turn).saturating_sub(8);
        assert!(shared.count() >= least, "turn {turn}");
        before = found.messages;
    }
    assert_eq!(request.full_reads(), 1);
}

#[test]
fn long_sessions_have_the_request_of_a_load() {
    let mut count = Count::default();
    for seed in 0..10 {
        let text = Scribe::session(seed);
        let path = PathBuf::from(format!("long-{seed}.jsonl"));
        check(text.as_bytes(), &path, 5, &mut count);
    }
    println!("{count:?}");
}

#[test]
fn the_fixtures_have_the_request_of_a_load() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let files = transcripts(&fixtures);
    assert!(files.len() > 50, "{}", files.len());
    println!(
        "{} files, {:?}",
        files.len(),
        check_files(&files, 40, check)
    );
}

#[test]
fn shared_sessions_have_the_request_of_a_load() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    for folder in ["corpus", "oracle", "oracle2", "damage"] {
        let files = transcripts(&shared.join(folder));
        println!(
            "{folder}: {} files, {:?}",
            files.len(),
            check_files(&files, 40, check)
        );
    }
}
