//! Totals over several files against a count that is as slow as it is plain.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Deserializer, Value, json};
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::{Usage, UsageTotals};
use transcript_testkit::shared;

/// The counted keys of a line, in the order of [`fields`].
const FIELDS: [&str; 8] = [
    "/message/usage/input_tokens",
    "/message/usage/output_tokens",
    "/message/usage/cache_creation_input_tokens",
    "/message/usage/cache_read_input_tokens",
    "/message/usage/cache_creation/ephemeral_5m_input_tokens",
    "/message/usage/cache_creation/ephemeral_1h_input_tokens",
    "/message/usage/server_tool_use/web_search_requests",
    "/durationMs",
];

type Counts = [Option<u64>; 8];

/// Answers and counts by model.
type Totals = BTreeMap<Option<String>, (u64, Counts)>;

fn fields(usage: &Usage) -> Counts {
    [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        usage.ephemeral_5m_input_tokens,
        usage.ephemeral_1h_input_tokens,
        usage.web_search_requests,
        usage.duration_ms,
    ]
}

fn counted(files: &[PathBuf]) -> Totals {
    let mut totals = UsageTotals::new();
    let mut appended = [1, 2, 7].map(|size| (size, UsageTotals::new()));
    for file in files {
        let source = Source::open(file).unwrap();
        let index = Index::load(&source).unwrap();
        let mut bodies = Bodies::new(&source);
        totals.add_file(&index, &mut bodies).unwrap();
        let entries: Vec<_> = index.entries().collect();
        for (size, totals) in &mut appended {
            for part in entries.chunks(*size) {
                let mut later = UsageTotals::new();
                later
                    .add_entries(part.iter().copied(), &mut bodies)
                    .unwrap();
                totals.append(later);
            }
        }
    }
    for (size, appended) in appended {
        assert_eq!(by_model(&appended), by_model(&totals), "in parts of {size}");
    }
    by_model(&totals)
}

fn by_model(totals: &UsageTotals) -> Totals {
    let models = totals.models().into_iter();
    models
        .map(|usage| (usage.model.clone(), (usage.answers, fields(&usage))))
        .collect()
}

/// Every object of every line is a `Value`, every line of an answer is kept, and only then is
/// anything added up.
fn counted_slowly(files: &[PathBuf]) -> Totals {
    let mut answers = BTreeMap::<String, Vec<Value>>::new();
    for file in files {
        let bytes = fs::read(file).unwrap();
        for line in bytes.split(|byte| *byte == b'\n') {
            let objects = Deserializer::from_slice(line).into_iter::<Value>();
            for line in objects.map_while(Result::ok) {
                let model = line.pointer("/message/model");
                let usage = line.pointer("/message/usage");
                let is_answer = line["type"] == "assistant"
                    && usage.is_some_and(Value::is_object)
                    && model != Some(&json!("<synthetic>"));
                if !is_answer {
                    continue;
                }
                let id = line.pointer("/message/id").and_then(Value::as_str);
                let key = match (id, line["uuid"].as_str()) {
                    (Some(id), _) => format!("message {id}"),
                    (None, Some(uuid)) => format!("line {uuid}"),
                    (None, None) => format!("nameless {}", answers.len()),
                };
                answers.entry(key).or_default().push(line);
            }
        }
    }
    let mut totals = Totals::new();
    for lines in answers.into_values() {
        let model = lines[0].pointer("/message/model").and_then(Value::as_str);
        let (answers, sums) = totals.entry(model.map(str::to_owned)).or_default();
        *answers += 1;
        for (sum, field) in sums.iter_mut().zip(FIELDS) {
            let said = lines
                .iter()
                .filter_map(|line| line.pointer(field)?.as_u64());
            if let Some(most) = said.max() {
                *sum = Some(sum.unwrap_or(0) + most);
            }
        }
    }
    totals
}

/// All lines count, as by those who add up what they see.
fn counted_naively(files: &[PathBuf]) -> u64 {
    let mut sum = 0;
    for file in files {
        let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            sum += line.pointer(FIELDS[1]).and_then(Value::as_u64).unwrap_or(0);
        }
    }
    sum
}

fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn output(totals: &Totals) -> u64 {
    totals.values().filter_map(|(_, counts)| counts[1]).sum()
}

#[test]
fn totals_of_the_corpus_as_a_projects_folder_equal_a_slow_count() {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let layout = Command::new("python3")
        .arg(shared.join("corpus/layout.py"))
        .arg(root.path())
        .stdout(Stdio::null())
        .status();
    if !layout.is_ok_and(|status| status.success()) {
        println!("skipped: no python3");
        return;
    }
    let files = transcripts(root.path());
    assert!(files.len() > 100, "{} files", files.len());
    let all = counted(&files);
    assert_eq!(all, counted_slowly(&files));
    let answers: u64 = all.values().map(|(answers, _)| answers).sum();
    println!(
        "{} files, {answers} answers, {} output tokens, {} when every line counts",
        files.len(),
        output(&all),
        counted_naively(&files)
    );
    assert!(output(&all) < counted_naively(&files));

    // Also files that the layout omits: second files of a session.
    let every_file = transcripts(&shared.join("corpus/files"));
    assert_eq!(counted(&every_file), counted_slowly(&every_file));

    // Each session with the files of its subagents, and alone.
    let (mut sessions, mut with_subagents) = (0, 0);
    for file in &files {
        let alone = std::slice::from_ref(file);
        assert_eq!(counted(alone), counted_slowly(alone), "{}", file.display());
        let folder = file.with_extension("");
        if folder.is_dir() {
            let group = [alone, &transcripts(&folder)].concat();
            assert_eq!(counted(&group), counted_slowly(&group));
            with_subagents += 1;
        }
        sessions += 1;
    }
    println!("{sessions} files alone, {with_subagents} sessions with their subagents");
    assert!(with_subagents > 0);
}

/// Files in a folder that lasts as long as the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, lines: &[Value]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::File::create(&path).unwrap();
        for line in lines {
            writeln!(file, "{line}").unwrap();
        }
        path
    }
}

fn answer(uuid: &str, id: &str, output: u64) -> Value {
    json!({"type": "assistant", "uuid": uuid, "parentUuid": null, "timestamp": "2026-11-01T10:00:00Z",
        "message": {"id": id, "model": "m", "role": "assistant", "content": [],
            "usage": {"input_tokens": 1, "output_tokens": output}}})
}

#[test]
fn an_answer_counts_once_over_a_session_and_its_fork() {
    let folder = Folder::new();
    let lines = [
        answer("a1", "m1", 9),
        answer("a2", "m1", 9),
        answer("a3", "m1", 159),
    ];
    let session = folder.file("s.jsonl", &lines);
    // The copies of an SDK have uuids of their own, those of a client do not.
    let own = answer("f4", "m2", 5);
    let with_new_ids = [
        answer("f1", "m1", 9),
        answer("f2", "m1", 9),
        answer("f3", "m1", 159),
        own,
    ];
    let by_sdk = folder.file("f.jsonl", &with_new_ids);
    let by_client = folder.file("c.jsonl", &[&lines[..], &[answer("c4", "m3", 7)]].concat());
    let of = |files: &[&PathBuf]| {
        let files: Vec<_> = files.iter().map(|file| (*file).clone()).collect();
        let totals = counted(&files);
        assert_eq!(totals, counted_slowly(&files));
        totals[&Some("m".to_owned())]
    };
    let sums = |answers, input, output| {
        let mut counts = Counts::default();
        (counts[0], counts[1]) = (Some(input), Some(output));
        (answers, counts)
    };
    assert_eq!(of(&[&session]), sums(1, 1, 159));
    assert_eq!(of(&[&by_sdk]), sums(2, 2, 164));
    assert_eq!(of(&[&session, &by_sdk]), sums(2, 2, 164));
    assert_eq!(of(&[&by_sdk, &session]), sums(2, 2, 164), "in any order");
    assert_eq!(of(&[&session, &by_client]), sums(2, 2, 166));
    assert_eq!(of(&[&session, &by_sdk, &by_client]), sums(3, 3, 171));
}

#[test]
fn an_answer_counts_once_over_a_session_and_a_subagent_that_repeats_it() {
    let folder = Folder::new();
    let session = folder.file("s.jsonl", &[answer("a1", "m1", 100)]);
    let subagent = folder.file(
        "s/subagents/agent-1.jsonl",
        &[
            answer("a1", "m1", 90),
            answer("b1", "m2", 20),
            answer("b2", "m2", 30),
        ],
    );
    let files = [session, subagent];
    let totals = counted(&files);
    assert_eq!(output(&totals), 130);
    assert_eq!(totals[&Some("m".to_owned())].0, 2);
    assert_eq!(totals, counted_slowly(&files));
}

#[test]
fn sidechains_and_abandoned_branches_of_a_file_were_paid_for() {
    let folder = Folder::new();
    let mut sidechain = answer("x1", "m2", 20);
    sidechain["isSidechain"] = json!(true);
    let file = folder.file("s.jsonl", &[answer("a1", "m1", 1), sidechain]);
    assert_eq!(output(&counted(&[file])), 21);
}

fn totals(lines: &[Value]) -> Vec<Usage> {
    let mut totals = UsageTotals::new();
    for line in lines {
        let line = line.to_string();
        totals.add(&transcript_format::object::Object::parse(&line).unwrap());
    }
    totals.models()
}

#[test]
fn answers_of_no_model_are_omitted_and_those_that_name_none_are_not() {
    let mut synthetic = answer("a1", "m1", 0);
    synthetic["message"]["model"] = json!("<synthetic>");
    assert_eq!(totals(std::slice::from_ref(&synthetic)), []);
    let mut unnamed = answer("a2", "m2", 4);
    unnamed["message"]["model"] = json!(7);
    let models = totals(&[synthetic, unnamed, answer("a3", "m3", 5)]);
    let said: Vec<_> = models
        .iter()
        .map(|usage| (usage.model.as_deref(), usage.output_tokens))
        .collect();
    assert_eq!(said, [(None, Some(4)), (Some("m"), Some(5))]);
}

#[test]
fn an_answer_without_an_id_is_identified_by_its_line() {
    let line = |uuid: &str| {
        let mut line = answer(uuid, "", 4);
        line["message"]["id"].take();
        line
    };
    let models = totals(&[line("a1"), line("a1"), line("a2"), answer("a3", "a1", 1)]);
    assert_eq!(
        (models[0].answers, models[0].output_tokens),
        (3, Some(4 + 4 + 1))
    );
}

#[test]
fn cache_writes_may_be_reported_by_lifetime_only() {
    let mut line = answer("a1", "m1", 1);
    line["message"]["usage"]["cache_creation"] =
        json!({"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 12});
    let usage = |line: &Value| totals(std::slice::from_ref(line)).remove(0);
    assert_eq!(usage(&line).cache_creation_input_tokens, Some(42));
    assert_eq!(usage(&line).ephemeral_5m_input_tokens, Some(30));
    assert_eq!(usage(&line).ephemeral_1h_input_tokens, Some(12));
    line["message"]["usage"]["cache_creation_input_tokens"] = json!(0);
    assert_eq!(usage(&line).cache_creation_input_tokens, Some(42));
    line["message"]["usage"]["cache_creation"] = json!({"ephemeral_1h_input_tokens": 12});
    assert_eq!(usage(&line).cache_creation_input_tokens, Some(12));
    line["message"]["usage"]["cache_creation_input_tokens"] = json!(99);
    assert_eq!(usage(&line).cache_creation_input_tokens, Some(99));
    line["message"]["usage"]["server_tool_use"] = json!({"web_search_requests": 2});
    assert_eq!(usage(&line).web_search_requests, Some(2));
}

#[test]
fn old_files_say_what_an_answer_cost_and_how_long_it_took() {
    let line = |uuid: &str, id: &str, cost: f64| {
        let mut line = answer(uuid, id, 1);
        line["costUSD"] = json!(cost);
        line["durationMs"] = json!(100);
        line
    };
    let models = totals(&[
        line("a1", "m1", 0.25),
        line("a2", "m1", 0.5),
        line("a3", "m2", 1.0),
    ]);
    assert_eq!(models[0].cost_usd, Some(1.5));
    assert_eq!(models[0].duration_ms, Some(200));
    let bad = totals(&[line("a1", "m1", -1.0)]);
    assert_eq!(bad[0].cost_usd, None);
    let new = totals(&[answer("a1", "m1", 1)]);
    assert_eq!((new[0].cost_usd, new[0].duration_ms), (None, None));
    let json = serde_json::to_value(&new[0]).unwrap();
    assert_eq!(json["costUSD"], Value::Null);
    assert_eq!(json["ephemeral5mInputTokens"], Value::Null);
}

#[test]
fn sums_do_not_overflow() {
    let most = answer("a1", "m1", u64::MAX);
    let models = totals(&[most, answer("a2", "m2", 1)]);
    assert_eq!(models[0].output_tokens, Some(u64::MAX));
}
