//! Requests under policy `recover` are such that a strict provider takes them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::api::{Options, Reason, Request, Rule, SyntheticKind, lint};
use transcript_resume::texts::START_MISSING;
use transcript_resume::{Policy, Tree};
use transcript_testkit::{damage, generate, shared};

// ---------------------------------------------------------------------------------------------
// All sessions there are
// ---------------------------------------------------------------------------------------------

/// How many generated sessions; `TRANSCRIPT_SEEDS` sets another number.
fn seeds() -> u64 {
    let seeds = std::env::var("TRANSCRIPT_SEEDS").ok();
    seeds.map_or(2_000, |seeds| seeds.parse().unwrap())
}

/// Calls `look` with the name and the bytes of each session: shared, generated, damaged.
fn for_each_session(mut look: impl FnMut(&str, &[u8])) {
    if let Some(shared) = shared() {
        let mut files = Vec::new();
        crate::path::transcripts_under(&shared.join("corpus/files"), &mut files);
        crate::path::transcripts_under(&shared.join("oracle"), &mut files);
        for file in files {
            look(&file.display().to_string(), &fs::read(&file).unwrap());
        }
    } else {
        println!("skipped: no shared data");
    }
    for seed in 0..seeds() {
        let session = generate::session(seed);
        look(&format!("seed {seed}"), &session);
        let (damaged, kinds) = damage::damage(&session, seed);
        look(&format!("seed {seed}, damage {kinds:?}"), &damaged);
    }
}

struct Loaded {
    _file: tempfile::NamedTempFile,
    source: Source,
    index: Index,
}

impl Loaded {
    fn new(bytes: &[u8]) -> Self {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let source = Source::open(file.path()).unwrap();
        let index = Index::load(&source).unwrap();
        Self {
            _file: file,
            source,
            index,
        }
    }

    fn request(&self, policy: Policy, options: &Options) -> Request {
        let tree = Tree::new(&self.index, policy);
        let mut bodies = Bodies::new(&self.source);
        options.request(&tree, &mut bodies).unwrap()
    }
}

fn forms() -> [Options; 3] {
    [
        Options::new(),
        Options::new().prompt("NEXT"),
        Options::new().prompt("NEXT").model("claude-opus-5-5"),
    ]
}

#[test]
fn every_session_with_a_conversation_gives_a_request_that_a_strict_provider_takes() {
    let mut checked = 0;
    for_each_session(|name, bytes| {
        let session = Loaded::new(bytes);
        for options in forms() {
            let request = session.request(Policy::Recover, &options);
            if request.is_resumable() {
                let problems = lint(&request.messages).problems;
                assert!(problems.is_empty(), "{name}: {problems:?}");
                checked += 1;
            } else {
                assert_eq!(request.messages, [], "{name}");
            }
        }
    });
    assert!(checked > seeds(), "{checked} requests of {} seeds", seeds());
}

fn says_something(block: &Value) -> bool {
    let is_blank = |key: &str| {
        block[key]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
    };
    match block["type"].as_str() {
        // A first message that says nothing is gone, and another one in its place.
        Some("text") => !is_blank("text") && block["text"] != START_MISSING,
        Some("thinking") => !is_blank("thinking") && !is_blank("signature"),
        _ => true,
    }
}

/// What of a request is the same under both policies: a strict provider takes neither neighbours of
/// one role nor blocks that say nothing.
fn condensed(request: &Request) -> Vec<(String, Vec<Value>)> {
    let mut messages: Vec<(String, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let blocks = message.blocks().iter();
        let mut blocks: Vec<Value> = blocks
            .map(|block| serde_json::from_str(block.json()).unwrap())
            .collect();
        blocks.retain(says_something);
        for block in &mut blocks {
            if let Some(inner) = block.get_mut("content").and_then(Value::as_array_mut) {
                inner.retain(says_something);
            }
        }
        let mut role = message.role().name();
        // A reminder whose user message is gone is one itself.
        if role == "system"
            && messages
                .last()
                .is_none_or(|(before, _)| before == "assistant")
        {
            role = "user";
            for block in &mut blocks {
                let text = block["text"].as_str().unwrap();
                block["text"] = format!("<system-reminder>\n{text}\n</system-reminder>").into();
            }
        }
        match messages.last_mut() {
            Some((before, so_far)) if *before == role => so_far.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => messages.push((role.to_owned(), blocks)),
        }
    }
    if let Some((_, blocks)) = messages.last_mut()
        && let Some(text) = blocks.last_mut().and_then(|block| block.get_mut("text"))
        && let Some(trimmed) = text.as_str().map(str::trim_end)
    {
        *text = trimmed.into();
    }
    messages
}

fn json_of(request: &Request) -> Vec<String> {
    request.messages.iter().map(|one| one.json()).collect()
}

/// Compares without printing whole conversations.
fn same<T: PartialEq + std::fmt::Debug>(name: &str, one: &[T], other: &[T]) {
    let at = (0..one.len().max(other.len())).find(|&at| one.get(at) != other.get(at));
    let show = |side: &[T]| -> String {
        let message = at.and_then(|at| side.get(at));
        message.map_or("nothing".into(), |message| {
            format!("{message:?}").chars().take(600).collect()
        })
    };
    assert!(
        at.is_none(),
        "{name}, message {at:?}:\n  {}\n  {}",
        show(one),
        show(other)
    );
}

/// Whether a failed result, or the whole request, said nothing.
fn says_no_content(request: &Request) -> bool {
    let mut kinds = request.synthetic.iter().map(|one| one.kind);
    kinds.any(|kind| kind == SyntheticKind::NoContent)
}

/// Rules that are kept by joining messages and leaving out what says nothing.
const CONDENSED: [Rule; 5] = [
    Rule::SameRole,
    Rule::BlankText,
    Rule::EmptiedThinking,
    Rule::UnsignedThinking,
    Rule::TrailingSpace,
];

#[test]
fn healthy_sessions_are_sent_as_the_client_sends_them() {
    let (mut equal, mut condensed_only) = (0, 0);
    for_each_session(|name, bytes| {
        let session = Loaded::new(bytes);
        for options in forms() {
            let vendor = session.request(Policy::Vendor, &options);
            let recover = session.request(Policy::Recover, &options);
            let is_healthy = |rules: &[Rule]| {
                let problems = lint(&vendor.messages).problems;
                let is_lossy = |reason: Reason| {
                    matches!(
                        reason,
                        Reason::UnansweredCall
                            | Reason::OrphanResult
                            | Reason::RepeatedCall
                            | Reason::ServerCall
                    )
                };
                let is_made_up = |kind| {
                    matches!(
                        kind,
                        SyntheticKind::NoContent
                            | SyntheticKind::OrphanRemoved
                            | SyntheticKind::RepeatedCall
                            | SyntheticKind::MissingResult
                    )
                };
                vendor.is_resumable()
                    && vendor.path.entries == recover.path.entries
                    && problems.iter().all(|problem| rules.contains(&problem.rule))
                    && !vendor
                        .omissions
                        .iter()
                        .any(|omission| is_lossy(omission.reason))
                    && !vendor.synthetic.iter().any(|one| is_made_up(one.kind))
            };
            if is_healthy(&[]) {
                same(name, &json_of(&recover), &json_of(&vendor));
                assert_eq!(recover.omissions, vendor.omissions, "{name}");
                assert_eq!(recover.synthetic, vendor.synthetic, "{name}");
                equal += 1;
            } else if is_healthy(&CONDENSED) && !says_no_content(&recover) {
                same(name, &condensed(&recover), &condensed(&vendor));
                condensed_only += 1;
            }
        }
    });
    println!("{equal} requests equal, {condensed_only} but for what says nothing");
    assert!(equal > seeds() / 2, "{equal} requests of {} seeds", seeds());
    assert!(condensed_only > 0);
}

// ---------------------------------------------------------------------------------------------
// The second validator
// ---------------------------------------------------------------------------------------------

/// What `tests/validate_request.py` says of requests, one a line; `None` without Python.
fn refused_by_validator(requests: &[u8]) -> Option<String> {
    let validator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/validate_request.py");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(requests).unwrap();
    let child = Command::new("python3")
        .arg(validator)
        .arg(file.path())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!said.is_empty())));
    Some(said)
}

#[test]
fn lint_and_the_validator_in_python_agree_under_both_policies() {
    let (mut requests, mut verdicts) = (Vec::new(), Vec::new());
    for_each_session(|name, bytes| {
        let session = Loaded::new(bytes);
        for policy in [Policy::Vendor, Policy::Recover] {
            let request = session.request(policy, &Options::new().prompt("NEXT"));
            if request.is_resumable() {
                writeln!(requests, "[{}]", json_of(&request).join(",")).unwrap();
                verdicts.push((format!("{name}, {policy:?}"), lint(&request.messages)));
            }
        }
    });
    let Some(said) = refused_by_validator(&requests) else {
        println!("skipped: no python3");
        return;
    };
    let refused: BTreeSet<usize> = said
        .lines()
        .map(|line| {
            let number = line.strip_prefix("request ").unwrap().split(',').next();
            number.unwrap().parse().unwrap()
        })
        .collect();
    let different: Vec<String> = (1..)
        .zip(&verdicts)
        .filter(|(number, (_, lint))| lint.is_ok() == refused.contains(number))
        .map(|(number, (name, lint))| {
            let mine = said
                .lines()
                .filter(|line| line.starts_with(&format!("request {number},")));
            format!("{name}: {:?} {:?}", lint.problems, mine.collect::<Vec<_>>())
        })
        .collect();
    println!("{} requests, {} refused", verdicts.len(), refused.len());
    assert_eq!(different, [""; 0]);
    assert!(!refused.is_empty() && refused.len() < verdicts.len() / 2);
}
