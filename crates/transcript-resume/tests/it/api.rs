//! The request under policy `vendor` is that of the real client and of the slow model.

use std::fs;
use std::io::Write;

use serde_json::Value;
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::api::recorded::{self, Outcome};
use transcript_resume::api::{Message, Options, Request};
use transcript_resume::{Policy, Tree};
use transcript_testkit::{damage, generate, model, oracle, shared};

fn request_of(source: &Source, options: &Options) -> Request {
    let index = Index::load(source).unwrap();
    let tree = Tree::new(&index, Policy::Vendor);
    options.request(&tree, &mut Bodies::new(source)).unwrap()
}

fn request(bytes: &[u8], options: &Options) -> Request {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    request_of(&Source::open(file.path()).unwrap(), options)
}

/// The messages as values, content always a list; `None` for a refusal.
fn messages(request: &Request) -> Option<Vec<Value>> {
    let value = |message: &Message| {
        let mut value = serde_json::to_value(message).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&message.json()).unwrap(),
            value
        );
        value["content"] = oracle::as_blocks(&value["content"]).into();
        value
    };
    request
        .is_resumable()
        .then(|| request.messages.iter().map(value).collect())
}

#[expect(clippy::print_stdout, reason = "says what a test did not look at")]
fn check_oracle(folder: &str) {
    let cases = oracle::cases(folder);
    if cases.is_empty() {
        println!("skipped: no shared data");
    }
    let different: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let source = Source::open(&case.input).unwrap();
            let request = request_of(&source, &Options::new().prompt(&case.prompt));
            oracle::difference(case, messages(&request).as_deref())
                .map(|difference| format!("{} ({}): {difference}", case.name, case.about))
        })
        .collect();
    assert!(
        different.is_empty(),
        "{} of {} differ\n{}",
        different.len(),
        cases.len(),
        different.join("\n")
    );
}

#[test]
fn the_request_is_what_the_client_sent() {
    check_oracle(oracle::FOLDERS[0]);
}

#[test]
fn the_request_is_what_the_client_sent_in_the_further_cases() {
    check_oracle(oracle::FOLDERS[1]);
}

fn check(name: &str, bytes: &[u8], prompt: Option<&str>, model: Option<&str>) {
    let mut options = Options::new();
    if let Some(prompt) = prompt {
        options = options.prompt(prompt);
    }
    if let Some(model) = model {
        options = options.model(model);
    }
    let fast = messages(&request(bytes, &options));
    let slow = model::vendor_request(bytes, prompt, model).messages;
    if fast == slow {
        return;
    }
    let (fast, slow) = (fast.unwrap_or_default(), slow.unwrap_or_default());
    let at = (0..slow.len().max(fast.len())).find(|&at| slow.get(at) != fast.get(at));
    let show = |messages: &[Value]| {
        let message = at.and_then(|at| messages.get(at));
        message.map_or("nothing".into(), ToString::to_string)
    };
    let (slow, fast) = (show(&slow), show(&fast));
    let same = slow.chars().zip(fast.chars()).take_while(|(a, b)| a == b);
    let same = same.count().saturating_sub(80);
    let part = |text: &str| text.chars().skip(same).take(500).collect::<String>();
    let (slow, fast) = (part(&slow), part(&fast));
    panic!("{name}, message {at:?}:\n  slow {slow}\n  fast {fast}");
}

fn check_all_forms(name: &str, bytes: &[u8]) {
    check(name, bytes, None, None);
    check(name, bytes, Some("NEXT"), None);
    check(name, bytes, Some("NEXT"), Some("claude-opus-5-5"));
}

#[test]
fn requests_of_shared_files_are_those_of_the_model() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut files = Vec::new();
    crate::path::transcripts_under(&shared.join("corpus/files"), &mut files);
    for folder in oracle::FOLDERS {
        crate::path::transcripts_under(&shared.join(folder), &mut files);
    }
    for file in files {
        check_all_forms(&file.display().to_string(), &fs::read(&file).unwrap());
    }
}

const GENERATED: u64 = 2_000;

#[test]
fn requests_of_generated_sessions_are_those_of_the_model() {
    for seed in 0..GENERATED {
        check_all_forms(&format!("seed {seed}"), &generate::session(seed));
    }
}

#[test]
fn requests_of_damaged_sessions_are_those_of_the_model() {
    for seed in 0..GENERATED {
        let (bytes, kinds) = damage::damage(&generate::session(seed), seed);
        check_all_forms(&format!("seed {seed}, damage {kinds:?}"), &bytes);
    }
}

/// The sessions that the client wrote itself hold the hashes of 20 requests.
#[test]
fn recorded_requests_are_rebuilt_from_entries() {
    let cases = oracle::cases("oracle");
    if cases.is_empty() {
        println!("skipped: no shared data");
        return;
    }
    let mut reproduced = 0;
    for case in &cases {
        let source = Source::open(&case.input).unwrap();
        let index = Index::load(&source).unwrap();
        for request in recorded::check(&index, &mut Bodies::new(&source)).unwrap() {
            println!("{} {request:?}", case.name);
            reproduced += usize::from(request.outcome == Outcome::Reproduced);
        }
    }
    assert_eq!(reproduced, 20);
}
