//! Which lines and copies are one request where `message.id` does not say it.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use transcript_catalog::Catalog;
use transcript_catalog::usage::{Prices, Report, UsageOptions};
use transcript_reader::{Bodies, Index, Source};
use transcript_resume::{PathState, Policy, Tree, Usage, UsageTotals};

use crate::store::Store;

/// Entries that can be between two lines of an answer.
const OTHERS: [&str; 3] = ["system", "progress", "attachment"];

/// How the ids of answers are.
#[derive(Clone, Copy, Debug)]
enum Ids {
    Missing,
    Empty,
    Null,
    /// The same for all.
    Constant,
    /// Numbers in each session.
    Numbers,
}

const ALL_IDS: [Ids; 5] = [
    Ids::Missing,
    Ids::Empty,
    Ids::Null,
    Ids::Constant,
    Ids::Numbers,
];

/// The lines of a session, each below the one before.
struct Session {
    name: String,
    ids: Ids,
    request: Option<&'static str>,
    lines: Vec<Value>,
    answers: usize,
    /// The number of bytes with which entries that are not messages are filled.
    filling: usize,
}

impl Session {
    fn new(name: &str, ids: Ids) -> Self {
        Self {
            name: name.to_owned(),
            ids,
            request: None,
            lines: Vec::new(),
            answers: 0,
            filling: 0,
        }
    }

    fn line(&mut self, kind: &str, more: &Value) {
        let number = self.lines.len();
        let parent = self.lines.last().map(|line| line["uuid"].clone());
        // Each session has times of its own.
        let (day, minute) = (10 + self.name.len(), number % 60);
        let mut line = json!({
            "type": kind, "uuid": format!("{}-{number}", self.name), "parentUuid": parent,
            "sessionId": self.name, "timestamp": format!("2026-11-{day}T10:{minute:02}:00.000Z"),
        });
        let more = more.as_object().unwrap().clone();
        line.as_object_mut().unwrap().extend(more);
        self.lines.push(line);
    }

    fn prompt(&mut self) {
        self.line("user", &json!({"message": {"content": "on"}}));
    }

    fn result(&mut self, call: &str) {
        let blocks = json!([{"type": "tool_result", "tool_use_id": call, "content": "out"}]);
        self.line("user", &json!({"message": {"content": blocks}}));
    }

    fn other(&mut self, number: usize) {
        let kind = OTHERS[number % OTHERS.len()];
        let pad = "x".repeat(self.filling);
        self.line(kind, &json!({"subtype": "informational", "pad": pad}));
    }

    /// Adds a line of the current answer.
    fn answer(&mut self, block: &Value) {
        let mut message = json!({
            "model": "owl-1", "content": [block], "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 10},
        });
        match self.ids {
            Ids::Missing => {}
            Ids::Empty => message["id"] = json!(""),
            Ids::Null => message["id"] = json!(null),
            Ids::Constant => message["id"] = json!("owl"),
            Ids::Numbers => message["id"] = json!(format!("msg_{}", self.answers)),
        }
        let mut more = json!({"message": message});
        if let Some(request) = self.request {
            more["requestId"] = json!(request);
        }
        self.line("assistant", &more);
    }

    /// Adds four prompts with two answers each. The first answer has two lines, with another entry between them if
    /// `has_others`.
    fn turns(mut self, has_others: bool) -> Self {
        for turn in 0..4 {
            self.prompt();
            self.answer(&text(&format!("I look, {}.", self.name)));
            if has_others {
                self.other(turn);
            }
            let id = format!("call_{turn}");
            self.answer(&call(&id));
            self.answers += 1;
            if has_others {
                self.other(turn + 1);
            }
            self.result(&id);
            self.answer(&text(&format!("Done, {}.", self.name)));
            self.answers += 1;
        }
        self
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn write(&self, store: &Store) {
        store.write(&format!("-p/{}.jsonl", self.name), self.text());
    }

    /// Returns a fork with uuids of its own, and times of its own if it says of which lines it has copies.
    fn fork(&self, name: &str, is_said: bool) -> String {
        let lines = self.lines.iter().map(|line| {
            let mut copy = line.clone();
            let of = |id: &Value| id.as_str().map(|id| format!("{name}-{id}"));
            copy["uuid"] = json!(of(&line["uuid"]));
            copy["parentUuid"] = json!(of(&line["parentUuid"]));
            copy["sessionId"] = json!(name);
            if is_said {
                copy["forkedFrom"] = json!({"sessionId": self.name, "messageUuid": line["uuid"]});
                copy["timestamp"] = json!("2026-12-01T10:00:00.000Z");
            }
            format!("{copy}\n")
        });
        lines.collect()
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}})
}

/// Requests, input and output.
type Counts = (u64, u64, u64);

const fn answers(number: u64) -> Counts {
    (number, 100 * number, 10 * number)
}

fn count(root: &Path, options: &UsageOptions) -> Counts {
    let catalog = Catalog::open(root).unwrap();
    let usage = catalog.usage(options);
    assert!(usage.problems().is_empty(), "{:?}", usage.problems());
    let rows = usage.rows(&Report::by(&[]), &Prices::embedded());
    let sums = &rows.total().sums;
    (sums.requests, sums.tokens.input, sums.tokens.output)
}

/// Counts without what is kept, then with a new cache, which does not change it.
fn counted(store: &Store) -> Counts {
    let first = count(store.root(), &UsageOptions::new());
    let folder = tempfile::tempdir().unwrap();
    let cached = UsageOptions::new().cache(folder.path().to_owned());
    for file in fs::read_dir(store.root().join("-p")).unwrap() {
        age(&file.unwrap().path());
    }
    for run in 0..2 {
        assert_eq!(count(store.root(), &cached), first, "run {run}");
    }
    first
}

/// Returns the sums of the totals over the files of a store, and of the state at the end of each.
fn totals(store: &Store) -> (Counts, Vec<Counts>) {
    let sum = |usage: &[Usage]| {
        let sum = |count: &dyn Fn(&Usage) -> u64| usage.iter().map(count).sum();
        (
            sum(&|usage| usage.answers),
            sum(&|usage| usage.input_tokens.unwrap()),
            sum(&|usage| usage.output_tokens.unwrap()),
        )
    };
    let mut totals = UsageTotals::new();
    let mut states = Vec::new();
    let files = fs::read_dir(store.root().join("-p")).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let source = Source::open(&path).unwrap();
        let index = Index::load(&source).unwrap();
        let mut bodies = Bodies::new(&source);
        totals.add_file(&index, &mut bodies).unwrap();
        let tree = Tree::new(&index, Policy::Recover);
        let (_, usage) = PathState::read(&tree, &tree.path(), &mut bodies).unwrap();
        states.push(sum(&usage));
    }
    (sum(&totals.models()), states)
}

/// Makes a file look as if it was written long ago, so that the counts read from it are kept.
fn age(path: &Path) {
    if std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        let file = File::options().append(true).open(path).unwrap();
        let time = SystemTime::now() - Duration::from_secs(1000);
        file.set_modified(time).unwrap();
    }
}

#[test]
fn several_lines_of_an_answer_are_one_request_whatever_the_ids_are() {
    for ids in ALL_IDS {
        for request in [None, Some(""), Some("constant")] {
            let store = Store::new();
            let mut session = Session::new("s", ids);
            session.request = request;
            session.turns(false).write(&store);
            assert_eq!(counted(&store), answers(8), "{ids:?} {request:?}");
        }
    }
}

#[test]
fn only_a_prompt_or_a_result_between_two_lines_makes_them_two_answers() {
    for ids in ALL_IDS {
        let store = Store::new();
        Session::new("s", ids).turns(true).write(&store);
        assert_eq!(counted(&store), answers(8), "{ids:?}");
    }
    // A result between the lines of an answer, and two answers of one prompt.
    let store = Store::new();
    let mut session = Session::new("s", Ids::Constant);
    session.prompt();
    session.answer(&call("a"));
    session.result("a");
    session.answer(&call("b"));
    session.lines[3]["parentUuid"] = session.lines[1]["uuid"].clone();
    session.result("b");
    session.prompt();
    session.answer(&text("one"));
    session.answer(&text("two"));
    session.lines[7]["parentUuid"] = session.lines[5]["uuid"].clone();
    session.write(&store);
    assert_eq!(counted(&store), answers(3));
}

#[test]
fn forks_have_the_answers_of_their_session() {
    for ids in ALL_IDS {
        for has_others in [false, true] {
            let store = Store::new();
            let session = Session::new("s", ids).turns(has_others);
            session.write(&store);
            let (own, other) = ("\"sessionId\":\"s\"", "\"sessionId\":\"a\"");
            let same = session.text().replace(own, other);
            assert_ne!(same, session.text());
            store.write("-p/a.jsonl", same);
            store.write("-p/t.jsonl", session.fork("t", false));
            store.write("-p/u.jsonl", session.fork("u", true));
            assert_eq!(counted(&store), answers(8), "{ids:?} {has_others}");
        }
    }
}

#[test]
fn answers_of_other_sessions_are_other_requests_whatever_their_ids_are() {
    for ids in ALL_IDS {
        for request in [None, Some("constant")] {
            let store = Store::new();
            for name in ["s", "ss"] {
                let mut session = Session::new(name, ids);
                session.request = request;
                session.turns(false).write(&store);
            }
            assert_eq!(counted(&store), answers(16), "{ids:?} {request:?}");
        }
    }
    // The same words at other times.
    let store = Store::new();
    for name in ["s", "ss"] {
        let mut session = Session::new(name, Ids::Numbers);
        session.prompt();
        session.answer(&text("Hello!"));
        session.write(&store);
    }
    assert_eq!(counted(&store), answers(2));
}

#[test]
fn an_answer_can_be_in_several_parts_of_a_file() {
    for ids in ALL_IDS {
        // A cached piece has a million bytes, and a thread reads four at a time.
        for filling in [600_000, 2_500_000] {
            let store = Store::new();
            let mut session = Session::new("s", ids);
            session.filling = filling;
            session.turns(true).write(&store);
            assert_eq!(counted(&store), answers(8), "{ids:?} {filling}");
        }
    }
}

#[test]
fn cached_file_that_grows_within_an_answer_counts_the_same() {
    for ids in ALL_IDS {
        let store = Store::new();
        let mut session = Session::new("s", ids);
        session.filling = 400_000;
        let session = session.turns(true);
        let folder = tempfile::tempdir().unwrap();
        let cached = UsageOptions::new().cache(folder.path().to_owned());
        let lines = session.lines.iter().map(|line| format!("{line}\n"));
        let lines: Vec<String> = lines.collect();
        for end in 1..=lines.len() {
            let path = store.write("-p/s.jsonl", lines[..end].concat());
            age(&path);
            let slow = count(store.root(), &UsageOptions::new());
            assert_eq!(count(store.root(), &cached), slow, "{ids:?} {end}");
        }
        assert_eq!(count(store.root(), &cached), answers(8));
    }
}

#[test]
fn an_id_of_the_api_is_one_request_whatever_is_between_its_lines() {
    let store = Store::new();
    let mut session = Session::new("s", Ids::Constant).turns(true);
    let answers_of = |line: &&mut Value| line["type"] == "assistant";
    for line in session.lines.iter_mut().filter(answers_of) {
        line["message"]["id"] = json!("msg_01AbCdEfGhJkLmNpQrStUvWx");
    }
    session.write(&store);
    assert_eq!(counted(&store), answers(1));
}

#[test]
fn the_totals_of_files_and_of_states_are_those_of_the_report() {
    for ids in ALL_IDS {
        for request in [None, Some("constant")] {
            for has_others in [false, true] {
                let store = Store::new();
                let mut session = Session::new("s", ids);
                session.request = request;
                let session = session.turns(has_others);
                session.write(&store);
                let name = format!("{ids:?} {request:?} {has_others}");
                let one = (answers(8), vec![answers(8)]);
                assert_eq!((counted(&store), vec![answers(8)]), one, "{name}");
                assert_eq!(totals(&store), one, "{name}");
                store.write("-p/t.jsonl", session.fork("t", false));
                store.write("-p/u.jsonl", session.fork("u", true));
                let mut other = Session::new("ss", ids);
                other.request = request;
                other.turns(has_others).write(&store);
                assert_eq!(counted(&store), answers(16), "{name}");
                assert_eq!(totals(&store), (answers(16), vec![answers(8); 4]), "{name}");
            }
        }
    }
}
