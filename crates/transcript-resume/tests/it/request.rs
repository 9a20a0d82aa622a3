//! The request under policy `vendor` is that of the real client and of the slow model.

use std::fs;
use std::io::Write;

use serde_json::Value;
use transcript_messages::Message;
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::request::recorded::{self, ReplayOutcome};
use transcript_resume::request::{Request, RequestOptions};
use transcript_resume::{Policy, Tree};
use transcript_testkit::{damage, generate, model, oracle, shared};

fn request_of(source: &Source, options: &RequestOptions) -> Request {
    let index = Index::load(source).unwrap();
    let tree = Tree::new(&index, Policy::Vendor);
    options.request(&tree, &mut Bodies::new(source)).unwrap()
}

fn request(bytes: &[u8], options: &RequestOptions) -> Request {
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
            // A file of another format holds no session: that is a refusal, too.
            let sent = Source::open(&case.input).ok().and_then(|source| {
                messages(&request_of(
                    &source,
                    &RequestOptions::new()
                        .prompt(&case.prompt)
                        .now(oracle::RECORDED_AT),
                ))
            });
            oracle::difference(case, sent.as_deref())
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

/// Sessions of the generator: the seeds are the numbers below the bound.
const GENERATED: u64 = 2_000;

/// Compares engine and model on sessions generated from seeds. On the seeds in `undecided` the two
/// are known to differ and no recorded request of the client shows which is right: a seed that is
/// not among them fails, and so does one that is and no longer differs.
fn check_seeds(undecided: &[u64], mut difference: impl FnMut(u64) -> Option<String>) {
    let mut wrong = String::new();
    for seed in 0..GENERATED {
        let difference = difference(seed);
        match (difference, undecided.contains(&seed)) {
            (Some(difference), false) => wrong += &format!("seed {seed}: {difference}\n"),
            (None, true) => wrong += &format!("seed {seed} is undecided no more\n"),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_request_is_what_the_client_sent() {
    check_oracle(oracle::FOLDERS[0]);
}

#[test]
fn the_request_is_what_the_client_sent_in_the_further_cases() {
    check_oracle(oracle::FOLDERS[1]);
}

#[test]
fn the_request_is_what_the_client_sent_for_files_of_today() {
    check_oracle(oracle::FOLDERS[2]);
}

/// Cache marks of the client are not part of the content.
fn without_cache_marks(mut messages: Vec<Value>) -> Vec<Value> {
    for message in &mut messages {
        for block in message["content"].as_array_mut().into_iter().flatten() {
            if let Some(block) = block.as_object_mut() {
                block.remove("cache_control");
            }
        }
    }
    messages
}

fn difference(bytes: &[u8], prompt: Option<&str>, model: Option<&str>) -> Option<String> {
    let mut options = RequestOptions::new();
    if let Some(prompt) = prompt {
        options = options.prompt(prompt);
    }
    if let Some(model) = model {
        options = options.model(model);
    }
    let fast = messages(&request(bytes, &options)).map(without_cache_marks);
    let slow = model::vendor_request(bytes, prompt, model).messages;
    let slow = slow.map(without_cache_marks);
    if fast == slow {
        return None;
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
    Some(format!("message {at:?}:\n  slow {slow}\n  fast {fast}"))
}

fn difference_in_any_form(bytes: &[u8]) -> Option<String> {
    difference(bytes, None, None)
        .or_else(|| difference(bytes, Some("NEXT"), None))
        .or_else(|| difference(bytes, Some("NEXT"), Some("claude-opus-5-5")))
}

/// Cases whose recorded request both have, but in whose other forms (without a prompt, or for a newer
/// model) engine and model differ.
const UNDECIDED: [&str; 3] = [
    "92-merge-008-id-text-reminder-text",
    "92-merge-015-no-id-call-result-reminder-text",
    "94-role-0013",
];

#[test]
fn requests_of_shared_files_are_those_of_the_model() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let mut files = Vec::new();
    crate::transcripts_under(&shared.join("corpus/files"), &mut files);
    for folder in oracle::FOLDERS {
        crate::transcripts_under(&shared.join(folder), &mut files);
    }
    let mut different = Vec::new();
    for file in files {
        // Both engine and model refuse a file of another format.
        if Source::open(&file).is_ok()
            && let Some(difference) = difference_in_any_form(&fs::read(&file).unwrap())
            && !UNDECIDED
                .iter()
                .any(|name| file.iter().any(|part| part == *name))
        {
            different.push(format!("{}: {difference}", file.display()));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn requests_of_generated_sessions_are_those_of_the_model() {
    check_seeds(&[336, 662], |seed| {
        difference_in_any_form(&generate::session(seed))
    });
}

#[test]
fn requests_of_damaged_sessions_are_those_of_the_model() {
    check_seeds(&[336, 662], |seed| {
        let (bytes, kinds) = damage::damage(&generate::session(seed), seed);
        difference_in_any_form(&bytes).map(|difference| format!("{kinds:?} {difference}"))
    });
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
            reproduced += usize::from(request.outcome == ReplayOutcome::Reproduced);
        }
    }
    assert_eq!(reproduced, 20);
}
