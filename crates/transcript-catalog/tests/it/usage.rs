//! Each request counts once, in rows that add up, whatever was kept of earlier runs.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use transcript_catalog::Catalog;
use transcript_catalog::usage::{
    By, Key, Prices, Report, Row, Sums, UsageOptions, keeps_deleted, set_keeps_deleted,
};

use crate::store::Store;

const MODEL: &str = "claude-sonnet-4-5";

/// Returns one line of an answer: uuid, `message.id`, output tokens, and other members of the entry.
fn answer(uuid: &str, id: &str, output: u64, more: &Value) -> String {
    let mut entry = json!({
        "type": "assistant", "uuid": uuid, "sessionId": "aaaa", "timestamp": "2026-11-20T10:00:00.000Z",
        "message": {
            "id": id, "model": MODEL, "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "x"}],
            "usage": {"input_tokens": 3, "output_tokens": output, "cache_read_input_tokens": 100},
        },
    });
    merge(&mut entry, more);
    format!("{entry}\n")
}

fn merge(entry: &mut Value, more: &Value) {
    match (entry, more) {
        (Value::Object(entry), Value::Object(more)) => {
            for (key, value) in more {
                merge(entry.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (entry, more) => *entry = more.clone(),
    }
}

fn rows_with(root: &Path, by: &[By], options: &UsageOptions) -> (Vec<Row>, Sums) {
    let catalog = Catalog::open(root).unwrap();
    let usage = catalog.usage(options);
    assert!(usage.problems().is_empty(), "{:?}", usage.problems());
    let rows = usage.rows(&Report::by(by), &Prices::embedded());
    let total = rows.total().sums.clone();
    (rows.collect(), total)
}

fn total(root: &Path) -> Sums {
    rows_with(root, &[], &UsageOptions::new()).1
}

fn text(key: &Key) -> String {
    key.to_string()
}

#[test]
fn lines_and_copies_of_one_answer_are_one_request_with_the_largest_counts() {
    let store = Store::new();
    let lines = [
        answer("a1", "m1", 1, &json!({"requestId": "r1"})),
        answer(
            "a2",
            "m1",
            70,
            &json!({"requestId": "r1", "message": {"usage": {"input_tokens": 2}}}),
        ),
        answer("a3", "m1", 9, &json!({})),
    ];
    store.write("-p/aaaa.jsonl", lines.concat());
    // A fork, a continued session, and a sidechain with another request id.
    let forked =
        json!({"sessionId": "bbbb", "forkedFrom": {"sessionId": "aaaa", "messageUuid": "a1"}});
    store.write("-p/bbbb.jsonl", answer("b1", "m1", 5, &forked));
    store.write("-q/cccc.jsonl", answer("a1", "m1", 5, &json!({})));
    let side =
        json!({"isSidechain": true, "requestId": "r9", "timestamp": "2026-11-19T10:00:00.000Z"});
    store.write(
        "-p/aaaa/subagents/agent-x.jsonl",
        answer("s1", "m1", 5, &side),
    );
    let (rows, total) = rows_with(
        store.root(),
        &[By::Session, By::Subagent, By::Day],
        &UsageOptions::new(),
    );
    assert_eq!(
        (total.requests, total.tokens.output, total.tokens.input),
        (1, 70, 3)
    );
    let keys: Vec<String> = rows[0].keys.iter().map(text).collect();
    assert_eq!(keys, ["aaaa", "-", "2026-11-20"]);
    // 3 x 3 + 70 x 15 + 100 x 0.30 dollars for a million.
    assert_eq!(total.cost, Some(9_000 + 1_050_000 + 30_000));
}

#[test]
fn answers_that_a_gateway_gave_one_id_are_requests_of_their_own() {
    let at = |minute: u32, text: &str, parent: Option<&str>| {
        json!({
            "timestamp": format!("2026-11-20T10:{minute:02}:00.000Z"), "parentUuid": parent,
            "message": {"content": [{"type": "text", "text": text}]},
        })
    };
    let prompt = |uuid: &str| {
        format!(
            "{}\n",
            json!({"type": "user", "uuid": uuid, "message": {"content": "x"}})
        )
    };
    let requests = |store: &Store| {
        rows_with(store.root(), &[], &UsageOptions::new())
            .1
            .requests
    };
    // One id for all: three answers, the last of two lines.
    let store = Store::new();
    let session = [
        answer("a1", "constant", 1, &at(0, "one", Some("u1"))),
        prompt("u2"),
        answer("a2", "constant", 1, &at(1, "two", Some("u2"))),
        prompt("u3"),
        answer("a3", "constant", 1, &at(2, "three", Some("u3"))),
        prompt("p"),
        answer("a4", "constant", 1, &at(2, "four", Some("a3"))),
    ];
    store.write("-p/aaaa.jsonl", session.concat());
    assert_eq!(requests(&store), 3);
    // A copy of the session, with uuids of its own, has the same answers.
    let copy = session
        .concat()
        .replace("\"a", "\"b")
        .replace("\"bssistant", "\"assistant");
    store.write("-p/bbbb.jsonl", copy);
    assert_eq!(requests(&store), 3);
    // Another session has other ones.
    store.write(
        "-p/cccc.jsonl",
        answer("c1", "constant", 1, &at(0, "else", Some("u1"))),
    );
    assert_eq!(requests(&store), 4);

    // Numbers in each session.
    let store = Store::new();
    for (session, text) in [("aaaa", "one"), ("bbbb", "two")] {
        let lines = [
            answer(
                &format!("{session}1"),
                "answer-1",
                1,
                &at(0, text, Some("u1")),
            ),
            prompt("u2"),
            answer(
                &format!("{session}2"),
                "answer-2",
                1,
                &at(1, &text.repeat(2), Some("u2")),
            ),
        ];
        store.write(&format!("-p/{session}.jsonl"), lines.concat());
    }
    assert_eq!(requests(&store), 4);

    // An id of the API is that of one answer, whatever the lines say.
    let store = Store::new();
    let id = "msg_01AbCdEfGhJkLmNpQrStUvWx";
    store.write(
        "-p/aaaa.jsonl",
        answer("a1", id, 1, &at(0, "one", Some("u1"))),
    );
    store.write(
        "-p/bbbb.jsonl",
        answer("b1", id, 1, &at(5, "other", Some("u9"))),
    );
    assert_eq!(requests(&store), 1);
}

#[test]
fn the_file_of_a_session_owns_what_a_subagent_copied_without_saying_so() {
    let store = Store::new();
    // Earlier, in a path that sorts first, and not marked as a sidechain.
    let copy = json!({"timestamp": "2026-11-19T10:00:00.000Z"});
    store.write(
        "-p/aaaa/subagents/agent-x.jsonl",
        answer("s1", "m1", 5, &copy),
    );
    store.write("-q/bbbb.jsonl", answer("a1", "m1", 5, &json!({})));
    let (rows, _) = rows_with(
        store.root(),
        &[By::Session, By::Subagent],
        &UsageOptions::new(),
    );
    let keys: Vec<String> = rows[0].keys.iter().map(text).collect();
    assert_eq!((rows.len(), keys), (1, vec!["bbbb".into(), "-".into()]));
}

#[test]
fn requests_without_final_counts_are_named_and_synthetic_answers_are_omitted() {
    let store = Store::new();
    let lines = [
        answer("a1", "m1", 1, &json!({"message": {"stop_reason": null}})),
        answer(
            "a2",
            "m2",
            1,
            &json!({"message": {"usage": {"input_tokens": 1, "cache_read_input_tokens": 0}}}),
        ),
        answer("a3", "m3", 1, &json!({"message": {"usage": null}})),
        answer(
            "a4",
            "m4",
            1,
            &json!({"message": {"usage": {"output_tokens": -4}}}),
        ),
        answer("a5", "m5", 7, &json!({"message": {"model": "<synthetic>"}})),
        answer("a6", "", 9, &json!({})),
        answer("a6", "", 9, &json!({})),
        answer("a7", "m7", 3, &json!({"message": {"model": "owl-1"}})),
    ];
    store.write("-p/aaaa.jsonl", lines.concat());
    let total = total(store.root());
    assert_eq!((total.requests, total.incomplete), (6, 4));
    let unknown: Vec<&str> = total.unknown_models.iter().map(|name| &**name).collect();
    assert_eq!(unknown, ["owl-1"]);
    assert_eq!(total.unpriced_tokens, 3 + 3 + 100);
}

#[test]
fn calls_of_other_models_within_a_request_have_rows_of_their_own() {
    let store = Store::new();
    let step = |kind: &str, model: Value, input: u64, output: u64| json!({"type": kind, "model": model, "input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 0});
    let usage = json!({
        "input_tokens": 30, "output_tokens": 3, "cache_read_input_tokens": 0,
        "iterations": [
            step("message", Value::Null, 10, 1),
            step("advisor_message", json!("claude-fable-5"), 500, 7),
            step("message", json!(MODEL), 20, 2),
        ],
    });
    store.write(
        "-p/aaaa.jsonl",
        answer("a1", "m1", 0, &json!({"message": {"usage": usage}})),
    );
    let (rows, total) = rows_with(store.root(), &[By::Model], &UsageOptions::new());
    let found: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                text(&row.keys[0]),
                row.sums.requests,
                row.sums.tokens.input,
                row.sums.tokens.output,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("claude-fable-5".to_owned(), 0, 500, 7),
            (MODEL.to_owned(), 1, 30, 3)
        ]
    );
    assert_eq!((total.requests, total.tokens.input), (1, 530));
}

#[test]
fn searches_of_the_client_count_for_the_request_that_made_the_call() {
    let store = Store::new();
    let call = json!({"message": {"content": [{"type": "tool_use", "id": "t1", "name": "WebSearch", "input": {}}]}});
    let result = |id: &str| {
        let entry = json!({
            "type": "user", "uuid": id, "toolUseResult": {"searchCount": 2},
            "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]},
        });
        format!("{entry}\n")
    };
    let lines = [
        answer("a1", "m1", 5, &call),
        result("t1"),
        result("t1"),
        result("lost"),
    ];
    store.write("-p/aaaa.jsonl", lines.concat());
    let catalog = Catalog::open(store.root()).unwrap();
    let usage = catalog.usage(&UsageOptions::new());
    let rows = usage.rows(&Report::by(&[]), &Prices::embedded());
    assert_eq!(rows.total().sums.tokens.web_search, 2);
    assert_eq!(usage.unmatched_searches(), 2);
}

/// A store in which every kind of row has several.
fn varied() -> Store {
    let store = Store::new();
    let mut lines = String::new();
    let mut parent = Value::Null;
    for number in 0..40u64 {
        let tools = ["Bash", "Read", "Task"]
            .into_iter()
            .take(number as usize % 4);
        let calls = tools.enumerate().map(|(at, name)| {
            json!({"type": "tool_use", "id": format!("t{number}.{at}"), "name": name, "input": {}})
        });
        // Over six weeks, from the 20th of November on.
        let hours = number * 25;
        let day = 20 + hours / 24;
        let (month, day) = if day > 30 { (12, day - 30) } else { (11, day) };
        let uuid = format!("u{number}");
        let more = json!({
            // Every tenth answer starts a branch that is rewound later.
            "parentUuid": if number % 10 == 9 { json!(format!("u{}", number - 5)) } else { parent.clone() },
            "timestamp": format!("2026-{month}-{day:02}T{:02}:00:00.000Z", hours % 24),
            "gitBranch": format!("b{}", number % 3),
            "isSidechain": number % 13 == 12,
            "message": {
                "model": (["claude-sonnet-4-5", "claude-opus-4-5", "owl-1"][number as usize % 3]),
                "content": calls.collect::<Vec<_>>(),
            },
        });
        lines += &answer(&uuid, &format!("m{number}"), 1000 + number, &more);
        if number % 15 == 14 {
            let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": format!("c{number}"), "parentUuid": null, "timestamp": "2026-11-20T12:00:00.000Z"});
            lines += &format!("{boundary}\n");
            parent = json!(format!("c{number}"));
        } else {
            parent = json!(uuid);
        }
    }
    store.write("-p/aaaa.jsonl", &lines);
    let of_agent =
        json!({"isSidechain": true, "agentId": "x", "timestamp": "2026-11-20T13:00:00.000Z"});
    store.write(
        "-p/aaaa/subagents/agent-x.jsonl",
        answer("x1", "mx", 50, &of_agent),
    );
    store.write(
        "-q/bbbb.jsonl",
        answer("y1", "my", 60, &json!({"sessionId": "bbbb"})),
    );
    store
}

fn add_up(rows: Vec<Row>) -> Sums {
    rows.into_iter().fold(Sums::default(), |mut sum, row| {
        sum.add(row.sums);
        sum
    })
}

#[test]
fn the_rows_of_every_kind_and_of_every_pair_add_up_to_the_total() {
    let store = varied();
    let total = total(store.root());
    assert_eq!(total.requests, 42);
    for one in By::ALL {
        let (rows, same) = rows_with(store.root(), &[one], &UsageOptions::new());
        // The store has one root, sessions of one agent, and subagents of one type.
        let is_single = matches!(one, By::SubagentType | By::Root | By::Maker);
        assert!(is_single || rows.len() > 1, "{one:?}: {rows:?}");
        assert_eq!(same, total);
        assert_eq!(add_up(rows), total, "{one:?}");
        for other in By::ALL {
            let (rows, _) = rows_with(store.root(), &[one, other], &UsageOptions::new());
            assert_eq!(add_up(rows), total, "{one:?} {other:?}");
        }
    }
}

/// Returns all that a report can say, as text.
fn all(root: &Path, options: &UsageOptions) -> Vec<String> {
    let kinds = [
        By::Session,
        By::Subagent,
        By::Model,
        By::Tool,
        By::Compaction,
        By::Day,
    ];
    let (rows, total) = rows_with(root, &kinds, options);
    let rows = rows.iter().map(|row| format!("{row:?}"));
    rows.chain([format!("{total:?}")]).collect()
}

fn cached(folder: &Path) -> UsageOptions {
    UsageOptions::new().cache(folder.to_owned())
}

/// Makes a file look as if it was written long ago, so that the counts read from it are kept.
fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options()
        .append(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

fn append(path: &PathBuf, text: &str) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn cache_changes_no_answer_whatever_happens_to_the_files() {
    let store = varied();
    let folder = tempfile::tempdir().unwrap();
    let path = store.root().join("-p/aaaa.jsonl");
    let padding = "x".repeat(300_000);
    let steps: [(&str, &dyn Fn()); 9] = [
        ("as it is", &|| {}),
        ("grown", &|| {
            append(&path, &answer("n1", "n1", 9, &json!({"pad": padding})));
        }),
        ("grown by a line without an end", &|| {
            append(&path, answer("n2", "n2", 9, &json!({})).trim_end());
        }),
        ("ended", &|| append(&path, "\n")),
        ("grown by more lines of an answer", &|| {
            append(&path, &answer("n3", "n1", 99, &json!({"pad": padding})));
        }),
        ("grown by a torn line", &|| {
            append(&path, &answer("n4", "n4", 7, &json!({}))[..150]);
        }),
        ("glued", &|| {
            append(&path, &answer("n5", "n5", 8, &json!({})));
        }),
        ("cut", &|| {
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("replaced", &|| {
            fs::write(&path, answer("z1", "z1", 4, &json!({}))).unwrap();
        }),
    ];
    for (number, (name, step)) in steps.iter().enumerate() {
        step();
        for seconds in [0, 1000 - number as u64] {
            if seconds > 0 {
                age(&path, seconds);
            }
            let options = cached(folder.path());
            let slow = all(store.root(), &UsageOptions::new());
            assert_eq!(all(store.root(), &options), slow, "{name}, first");
            assert_eq!(all(store.root(), &options), slow, "{name}, again");
        }
    }
}

#[test]
fn nothing_is_read_again_that_did_not_change_even_if_it_is_damaged() {
    let store = varied();
    let path = store.root().join("-p/aaaa.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let read = || {
        for path in [
            "-p/aaaa.jsonl",
            "-p/aaaa/subagents/agent-x.jsonl",
            "-q/bbbb.jsonl",
        ] {
            age(&store.root().join(path), 1000);
        }
        let catalog = Catalog::open(store.root()).unwrap();
        let bytes = catalog.usage(&cached(folder.path())).bytes_read();
        let only = catalog.usage(&cached(folder.path()).only_kept(true));
        assert!(only.is_known("aaaa") && only.is_known("bbbb"));
        let again = catalog.usage(&cached(folder.path())).bytes_read();
        (bytes > 0, again)
    };
    assert_eq!(read(), (true, 0));
    append(&path, "{\"type\":\"assistant\",\"message\":{\"id\"\n");
    assert_eq!(read(), (true, 0));
    let other = tempfile::tempdir().unwrap();
    let catalog = Catalog::open(store.root()).unwrap();
    let nothing = catalog.usage(&cached(other.path()).only_kept(true));
    assert!(!nothing.is_known("aaaa"));
    assert_eq!(nothing.bytes_read(), 0);
}

#[test]
fn sums_of_deleted_sessions_stay_if_that_is_wanted() {
    let store = varied();
    let folder = tempfile::tempdir().unwrap();
    for path in [
        "-p/aaaa.jsonl",
        "-p/aaaa/subagents/agent-x.jsonl",
        "-q/bbbb.jsonl",
    ] {
        age(&store.root().join(path), 1000);
    }
    let keep = || cached(folder.path()).keep_deleted(store.root().to_owned());
    let before = rows_with(store.root(), &[By::Session], &keep());
    fs::remove_file(store.root().join("-p/aaaa.jsonl")).unwrap();
    fs::remove_dir_all(store.root().join("-p/aaaa")).unwrap();
    // A file that is kept about is not dropped by runs that write.
    store.write(
        "-p/dddd.jsonl",
        answer("d1", "d1", 1, &json!({"sessionId": "dddd"})),
    );
    let (rows, total) = rows_with(store.root(), &[By::Session], &keep());
    assert_eq!(total.requests, before.1.requests + 1);
    assert_eq!(total.of_deleted, 41);
    let of_aaaa = rows
        .iter()
        .find(|row| text(&row.keys[0]) == "aaaa")
        .unwrap();
    assert_eq!(of_aaaa.sums.cost, before.0[0].sums.cost);
    // Nor are those of a project of which nothing is left.
    fs::remove_dir_all(store.root().join("-q")).unwrap();
    assert_eq!(rows_with(store.root(), &[], &keep()).1.of_deleted, 42);
    store.write(
        "-q/bbbb.jsonl",
        answer("y1", "my", 60, &json!({"sessionId": "bbbb"})),
    );
    // Without the wish they do not count.
    let (_, without) = rows_with(store.root(), &[], &cached(folder.path()));
    assert_eq!((without.requests, without.of_deleted), (2, 0));
}

/// A report about one project, or costs in `list`, may write to the same cache folder.
#[test]
fn a_run_that_counts_no_deleted_sessions_does_not_drop_what_is_kept_about_them() {
    let store = varied();
    let folder = tempfile::tempdir().unwrap();
    assert!(!keeps_deleted(folder.path()));
    set_keeps_deleted(folder.path(), true).unwrap();
    assert!(keeps_deleted(folder.path()));
    let keep = || cached(folder.path()).keep_deleted(store.root().to_owned());
    let before = rows_with(store.root(), &[], &keep()).1;
    fs::remove_dir_all(store.root().join("-p")).unwrap();
    // The first file about a folder has those of folders that are gone removed if nothing is kept.
    store.write(
        "-r/cccc.jsonl",
        answer("z1", "mz", 70, &json!({"sessionId": "cccc"})),
    );
    assert_eq!(
        rows_with(store.root(), &[], &cached(folder.path()))
            .1
            .requests,
        2
    );
    let after = rows_with(store.root(), &[], &keep()).1;
    assert_eq!(
        (after.of_deleted, after.requests),
        (41, before.requests + 1)
    );
    set_keeps_deleted(folder.path(), false).unwrap();
    set_keeps_deleted(folder.path(), false).unwrap();
    store.write(
        "-s/dddd.jsonl",
        answer("w1", "mw", 80, &json!({"sessionId": "dddd"})),
    );
    rows_with(store.root(), &[], &cached(folder.path()));
    assert_eq!(rows_with(store.root(), &[], &keep()).1.of_deleted, 0);
}

#[test]
fn files_that_did_not_change_since_then_are_omitted() {
    let store = varied();
    age(&store.root().join("-p/aaaa.jsonl"), 100_000);
    let since = SystemTime::now() - Duration::from_secs(50_000);
    let (_, total) = rows_with(store.root(), &[], &UsageOptions::new().changed_since(since));
    assert_eq!(total.requests, 2);
}

#[test]
fn counts_of_the_client_are_compared_by_model() {
    let store = Store::new();
    let counted = |cost: f64| {
        let entry = json!({
            "type": "cost-state", "sessionId": "aaaa", "totalCostUSD": cost,
            "modelUsage": {
                "claude-sonnet-4-5[1m]": {"inputTokens": 3, "outputTokens": 10, "cacheReadInputTokens": 100, "costUSD": 0.000_189},
                "claude-haiku-4-5": {"inputTokens": 1000, "outputTokens": 1, "costUSD": 0.001_005},
            },
        });
        format!("{entry}\n")
    };
    let lines = [
        answer("a1", "m1", 10, &json!({})),
        counted(0.5),
        counted(0.001_194),
    ];
    store.write("-p/aaaa.jsonl", lines.concat());
    let catalog = Catalog::open(store.root()).unwrap();
    let usage = catalog.usage(&UsageOptions::new());
    let totals = usage.client_totals(&Prices::embedded());
    assert_eq!(totals.len(), 1);
    assert_eq!(
        (totals[0].theirs, totals[0].ours.cost),
        (Some(1_194_000), Some(189_000))
    );
    let models: Vec<_> = totals[0]
        .models
        .iter()
        .map(|model| (&*model.model, model.theirs, model.ours.cost))
        .collect();
    assert_eq!(
        models,
        [
            ("claude-haiku-4-5", Some(1_005_000), Some(0)),
            ("claude-sonnet-4-5", Some(189_000), Some(189_000)),
        ]
    );
}

#[test]
fn blocks_start_at_full_hours_and_end_after_five_or_a_pause() {
    let store = Store::new();
    let times = ["08:10", "12:59", "13:00", "18:05", "23:59"];
    let lines = times.iter().enumerate().map(|(number, time)| {
        let id = format!("m{number}");
        answer(
            &id,
            &id,
            1,
            &json!({"timestamp": format!("2026-11-20T{time}:00.000Z")}),
        )
    });
    store.write("-p/aaaa.jsonl", lines.collect::<String>());
    let catalog = Catalog::open(store.root()).unwrap();
    let usage = catalog.usage(&UsageOptions::new());
    let report = Report::by(&[By::Hour5]);
    let rows = usage.rows(&report, &Prices::embedded());
    let found: Vec<(String, u64)> = rows
        .map(|row| (text(&row.keys[0]), row.sums.requests))
        .collect();
    let block = |hour: &str, requests| (format!("2026-11-20T{hour}:00:00Z"), requests);
    assert_eq!(
        found,
        [
            block("08", 2),
            block("13", 1),
            block("18", 1),
            block("23", 1)
        ]
    );
    // Half an hour after the last request.
    let now = 1_795_220_940_000;
    let blocks = usage.blocks(&report, &Prices::embedded(), now);
    let active: Vec<bool> = blocks.iter().map(|block| block.is_active).collect();
    assert_eq!(active, [false, false, false, true], "{blocks:?}");
}

#[test]
fn the_running_total_of_a_process_is_counted_once() {
    let fixture = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1/stream");
        fs::read_to_string(folder.join(name)).unwrap()
    };
    // Two results of one process; one process after another, and another session.
    for (name, requests, reported) in [
        ("talk.jsonl", 5, 750_000_000),
        ("two-runs.jsonl", 3, 1_000_000_000),
        ("no-request.jsonl", 0, 10_000_000),
    ] {
        let store = Store::new();
        store.write("p/s1.jsonl", fixture(name));
        for by in [By::Session, By::Model, By::Day, By::Subagent, By::Tool] {
            let (rows, total) = rows_with(store.root(), &[by], &UsageOptions::new());
            assert_eq!(
                (total.requests, total.reported_cost),
                (requests, Some(reported)),
                "{name}"
            );
            let sum: u128 = rows.iter().filter_map(|row| row.sums.reported_cost).sum();
            assert_eq!(sum, reported, "{name} by {by:?}");
        }
        // A copy of the file adds nothing.
        store.write("p/s2.jsonl", fixture(name));
        let total = total(store.root());
        assert_eq!(
            (total.requests, total.reported_cost),
            (requests, Some(reported)),
            "{name}"
        );
    }
}
