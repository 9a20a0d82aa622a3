//! Requests whose long blocks stay in the file, and requests that are read in parts by several threads.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use transcript_messages::StoredReader;
use transcript_reader::{Bodies, EntryNo, EntryRef, Error, Index, Source};
use transcript_resume::request::{BodySource, Request, RequestOptions};
use transcript_resume::{Policy, Tree};
use transcript_testkit::{damage, generate, shared};

use crate::live::transcripts;
use crate::request_forms::Session;

/// Makes most texts long enough to stay in the file.
fn lengthened(bytes: &[u8]) -> Vec<u8> {
    let more = "“long” ".repeat(40);
    let text = String::from_utf8_lossy(bytes);
    let mut longer = text.into_owned();
    for start in [r#""text":""#, r#""thinking":""#, r#""content":""#] {
        // At the start, so that blank texts are there, too.
        longer = longer.replace(start, &format!("{start}{more}"));
        longer = longer.replace(&format!("{start}{more}\""), &format!("{start}\""));
    }
    longer.into_bytes()
}

fn written(request: &Request) -> Vec<String> {
    let mut reader = StoredReader::default();
    let write = |message: &transcript_messages::Message| {
        let mut json = String::new();
        let take = |part: &str| {
            json += part;
            Ok(())
        };
        message.write(&mut reader, take).unwrap();
        json
    };
    request.messages.iter().map(write).collect()
}

/// Returns the number of blocks that are still in the file.
fn stored(request: &Request) -> usize {
    let blocks = request
        .messages
        .iter()
        .flat_map(transcript_messages::Message::blocks);
    let is_stored = |block: &&transcript_messages::Block| {
        let shown = format!("{block:?}");
        shown.contains("Stored {") && shown.contains("text: None")
    };
    blocks.filter(is_stored).count()
}

/// Compares a request with one in memory; returns the number of blocks that stayed in the file.
fn check(bytes: &[u8], name: &str) -> usize {
    let source = Source::from_bytes(bytes, Path::new(name));
    let index = Index::load(&source).unwrap();
    let mut count = 0;
    for policy in [Policy::Vendor, Policy::Recover] {
        let tree = Tree::new(&index, policy);
        let options = RequestOptions::new().prompt("Go on.");
        let mut bodies = Bodies::new(&source);
        let wanted = options.request(&tree, &mut bodies).unwrap();
        let options = options.long_blocks_in(&source);
        let found = options.request(&tree, &mut bodies).unwrap();
        let (of_state, ..) = options.request_with_state(&tree, &mut bodies).unwrap();
        let json: Vec<String> = wanted.messages.iter().map(|one| one.json()).collect();
        for found in [found, of_state] {
            // They are not read for it.
            assert_eq!(found.tokens(), wanted.tokens(), "{name}, {policy:?}");
            count += stored(&found);
            assert_eq!(written(&found), json, "{name}, {policy:?}");
            assert_eq!(found.messages, wanted.messages, "{name}, {policy:?}");
            let report = |request: &Request| {
                let Request {
                    model,
                    synthetic,
                    omissions,
                    ..
                } = request;
                (model.clone(), synthetic.clone(), omissions.clone())
            };
            assert_eq!(report(&found), report(&wanted), "{name}, {policy:?}");
        }
    }
    count
}

#[test]
fn a_request_whose_long_blocks_stay_in_the_file_is_that_of_one_in_memory() {
    for (kind, make) in [
        ("tidy", generate::tidy_session as fn(u64) -> Vec<u8>),
        ("any", generate::session),
        ("damaged", |seed| {
            damage::damage(&lengthened(&generate::session(seed)), seed).0
        }),
    ] {
        let sessions = (0..30).map(|seed| (seed, lengthened(&make(seed))));
        let stored = sessions.map(|(seed, bytes)| check(&bytes, &format!("{kind}-{seed}.jsonl")));
        let stored: usize = stored.sum();
        assert!(stored > 100, "{kind}: {stored}");
    }
    let files = shared().map(|shared| transcripts(&shared.join("corpus")));
    for path in files.into_iter().flatten() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > 1 << 20 {
            continue;
        }
        check(&bytes, &path.to_string_lossy());
        check(&lengthened(&bytes), &path.to_string_lossy());
    }
}

/// A session that is read in several parts, whose answers come from several models.
fn long_session() -> Session {
    let long = "x".repeat(700);
    let mut session = Session::default().user(r#""Q""#);
    for at in 0..700 {
        let model = ["claude-x-4-5", "claude-y-4-7"][usize::from(at % 300 > 250)];
        let call = format!(
            r#"[{{"type":"text","text":"{long}"}},{{"type":"tool_use","id":"t{at}","name":"Bash","input":{{}}}}]"#
        );
        let message = format!(r#""message":{{"id":"m{at}","model":"{model}","content":{call}}}"#);
        let result =
            format!(r#"[{{"type":"tool_result","tool_use_id":"t{at}","content":"{at}{long}"}}]"#);
        session = session.line("assistant", &message).user(&result);
        if at % 9 == 0 {
            session = session.reminder("user", &format!("note {at}"));
        }
    }
    session
}

#[test]
fn a_long_conversation_is_the_same_in_parts_and_as_a_whole() {
    let text = long_session().text;
    assert!(check(text.as_bytes(), "long.jsonl") > 2_000);
    let mut damaged = 0;
    for seed in 0..4 {
        let (bytes, _) = damage::damage(text.as_bytes(), seed);
        damaged += check(&bytes, &format!("long-{seed}.jsonl"));
    }
    assert!(damaged > 500, "{damaged}");
}

/// Cuts the file off right after the last body was read.
struct Shrinking<'s> {
    bodies: Bodies<'s>,
    file: &'s File,
    last: EntryNo,
    text: String,
}

impl BodySource for Shrinking<'_> {
    type Error = Error;

    fn body(&mut self, entry_ref: &EntryRef<'_>) -> Result<&str, Error> {
        self.text = self.bodies.body(entry_ref)?.to_owned();
        if entry_ref.number() == self.last {
            self.file.set_len(entry_ref.offset() / 2).unwrap();
        }
        Ok(&self.text)
    }
}

#[test]
fn blocks_that_are_no_longer_in_the_file_are_never_sent() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    // The note is folded into the result before it, which is in the file.
    let session = long_session().reminder("user", "the last one");
    file.write_all(session.text.as_bytes()).unwrap();
    let source = Source::open(file.path()).unwrap();
    let index = Index::load(&source).unwrap();
    let tree = Tree::new(&index, Policy::Recover);
    let options = RequestOptions::new().long_blocks_in(&source);
    let whole = options.request(&tree, &mut Bodies::new(&source)).unwrap();
    let last = EntryNo::new(index.len() - 1);
    let mut bodies = Shrinking {
        bodies: Bodies::new(&source),
        file: file.as_file(),
        last,
        text: String::new(),
    };
    let rest = options.request(&tree, &mut bodies).unwrap();
    let wanted = RequestOptions::new().request(&tree, &mut Bodies::new(&source));
    assert_eq!(rest.messages, wanted.unwrap().messages);
    assert!(rest.messages.len() < whole.messages.len());

    let mut reader = StoredReader::default();
    let mut write = |message: &transcript_messages::Message| {
        let mut json = String::new();
        let take = |part: &str| {
            json += part;
            Ok(())
        };
        message.write(&mut reader, take).map(|()| json)
    };
    let failed = whole.messages.iter().filter(|one| write(one).is_err());
    assert!(failed.count() > 100);
    // Other bytes of the same length are not those of the block either.
    let mut other = session.text.replace("xxx", "yyy");
    other.truncate(session.text.len());
    std::fs::write(file.path(), other).unwrap();
    let changed = whole.messages.iter().map(&mut write);
    assert!(changed.flatten().all(|json| !json.contains("yyy")));
}

#[test]
fn numbers_of_blocks_in_the_file_are_printed_as_those_of_others() {
    for number in ["1.0", "1e3", "12345678901234567890", "7"] {
        let text = "x".repeat(5_000);
        let bytes = format!(
            r#"{{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-11-20T10:00:00.000Z","message":{{"role":"user","content":"Q"}}}}
{{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","timestamp":"2026-11-20T10:00:01.000Z","message":{{"id":"m1","model":"m","role":"assistant","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{{"n":{number},"a":"{text}"}}}}]}}}}
{{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"s","timestamp":"2026-11-20T10:00:02.000Z","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"ok"}}]}}}}
"#
        );
        check(bytes.as_bytes(), number);
    }
}
