//! `transcript usage`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{command, sessions, stderr, stdout};

const FIRST: &str = "0a5e1b2c-1111-4222-8333-444455556666";
const SECOND: &str = "7b000000-0000-4000-8000-000000000000";

fn answer(id: &str, time: &str, model: &str, output: u64) -> Value {
    json!({"type": "assistant", "uuid": id, "parentUuid": null, "sessionId": FIRST, "timestamp": time, "cwd": "/work/maps",
        "message": {"id": id, "role": "assistant", "model": model, "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "x"}],
            "usage": {"input_tokens": 1000, "output_tokens": output}}})
}

fn write(path: &Path, lines: &[Value]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(path, lines).unwrap();
    // As if it was written some time ago, so that its counts are cached.
    let time = SystemTime::now() - Duration::from_secs(3600);
    File::options()
        .append(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

/// Two sessions of two projects, the second one with a model without a price.
fn root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let prompt = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": FIRST, "timestamp": "2026-03-28T22:00:00.000Z",
        "message": {"role": "user", "content": "Draw the coast\u{1b}[31m"}});
    let lines = [
        prompt,
        answer("m1", "2026-03-28T22:30:00.000Z", "claude-sonnet-4-5", 100),
        // After midnight in Berlin, where the clocks change in this night.
        answer("m2", "2026-03-28T23:30:00.000Z", "claude-sonnet-4-5", 200),
        answer("m3", "2026-03-29T21:30:00.000Z", "claude-opus-4-5", 300),
        answer("m4", "2026-03-29T22:30:00.000Z", "claude-opus-4-5", 400),
    ];
    write(
        &root.path().join(format!("-work-maps/{FIRST}.jsonl")),
        &lines,
    );
    let odd = answer("n1", "2026-03-29T22:40:00.000Z", "owl\u{1b}[2J-\"1\"", 50);
    write(
        &root.path().join(format!("-work-notes/{SECOND}.jsonl")),
        &[odd],
    );
    root
}

fn run(root: &Path, arguments: &[&str]) -> Output {
    let mut command = command(&["--root", root.to_str().unwrap(), "usage"]);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn records(output: &Output) -> Vec<Value> {
    let lines = stdout(output);
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn rows_and_total_have_the_documented_fields_and_add_up() {
    let root = root();
    let output = run(
        root.path(),
        &["--json", "--no-cache", "--by", "session,model"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let records = records(&output);
    let (total, rows) = records.split_last().unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(
        (&total["kind"], &total["schema"]),
        (&json!("total"), &json!(1))
    );
    let sum = |field: &str| {
        rows.iter()
            .map(|row| row[field].as_u64().unwrap_or(0))
            .sum::<u64>()
    };
    for field in [
        "requests",
        "input",
        "output",
        "costNanoUsd",
        "unpricedTokens",
    ] {
        assert_eq!(json!(sum(field)), total[field], "{field}");
    }
    let of_sonnet = rows
        .iter()
        .find(|row| row["by"]["model"] == "claude-sonnet-4-5")
        .unwrap();
    assert_eq!(of_sonnet["costNanoUsd"], json!(2000 * 3000 + 300 * 15000));
    let unknown = rows
        .iter()
        .find(|row| row["by"]["session"] == SECOND)
        .unwrap();
    assert_eq!(unknown["costNanoUsd"], Value::Null);
    assert_eq!(total["unknownModels"], json!(["owl\u{1b}[2J-\"1\""]));
    assert_eq!(total["prices"]["digest"].as_str().unwrap().len(), 64);
}

#[test]
fn days_are_those_of_the_zone_also_when_the_clocks_change() {
    let root = root();
    let days = |zone: &str| {
        let output = run(
            root.path(),
            &["--json", "--no-cache", "--by", "day", "--timezone", zone],
        );
        let records = records(&output);
        let rows = records.iter().filter(|row| row["kind"] == "row");
        let rows = rows.map(|row| {
            (
                row["by"]["day"].as_str().unwrap().to_owned(),
                row["requests"].as_u64().unwrap(),
            )
        });
        rows.collect::<Vec<_>>()
    };
    let day = |day: &str, requests| (day.to_owned(), requests);
    assert_eq!(days("UTC"), [day("2026-03-28", 2), day("2026-03-29", 3)]);
    // 23:30, 00:30 in winter; 23:30 and 00:30 in summer: the 29th has 23 hours.
    assert_eq!(
        days("Europe/Berlin"),
        [
            day("2026-03-28", 1),
            day("2026-03-29", 2),
            day("2026-03-30", 2)
        ]
    );
    let output = run(root.path(), &["--timezone", "Nowhere/Else"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--timezone: Nowhere/Else"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn tables_fit_the_terminal_and_nothing_of_a_transcript_controls_it() {
    let root = root();
    for columns in ["60", "100"] {
        for by in [
            &[][..],
            &["--by", "session"],
            &["--by", "model,day"],
            &["--by", "hour5"],
            &[FIRST],
        ] {
            let mut command = command(&[
                "--root",
                root.path().to_str().unwrap(),
                "usage",
                "--no-cache",
            ]);
            let output = command.args(by).env("COLUMNS", columns).output().unwrap();
            let text = stdout(&output);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            assert!(text.contains("total "), "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
            let tables = text.split("\ntotal ").next().unwrap();
            let wide = tables
                .lines()
                .find(|line| line.chars().count() > columns.parse().unwrap());
            assert_eq!(wide, None, "{by:?}");
        }
    }
    let text = stdout(&run(root.path(), &["--no-cache"]));
    // The date of the prices changes with their table.
    let text = text.split("prices of ").next().unwrap();
    insta::assert_snapshot!(text);
    let text = stdout(&run(root.path(), &["--no-cache", "--by", "model"]));
    assert!(text.contains("unknown") && text.contains("≥ $"), "{text}");
}

#[test]
fn comma_separated_values_are_quoted_and_their_costs_are_empty_if_unknown() {
    let root = root();
    let output = run(root.path(), &["--csv", "--no-cache", "--by", "model"]);
    let text = stdout(&output);
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert!(
        lines[0].starts_with("model,requests,incomplete,input,output,"),
        "{text}"
    );
    assert_eq!(lines.len(), 5);
    assert!(
        text.contains("\"owl<ESC>[2J-\"\"1\"\"\",1,0,1000,50,0,0,0,0,,"),
        "{text}"
    );
}

#[test]
fn a_budget_is_an_exit_code() {
    let root = root();
    let output = run(root.path(), &["--no-cache", "--warn-above", "100"]);
    assert_eq!(output.status.code(), Some(0));
    let output = run(root.path(), &["--no-cache", "--warn-above", "$0.02"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is above $0.02"),
        "{}",
        stderr(&output)
    );
    for wrong in ["", "x", "1.0000000001", "-1", "."] {
        let output = run(
            root.path(),
            &["--no-cache", &format!("--warn-above={wrong}")],
        );
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}

#[test]
fn prices_of_a_file_are_used_and_a_wrong_file_is_named() {
    let root = root();
    let file = root.path().join("prices.json");
    fs::write(&file, r#"{"owl\u001b[2J-\"1\"": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}}"#).unwrap();
    let path = file.to_str().unwrap();
    let output = run(root.path(), &["--json", "--no-cache", "--prices", path]);
    let total = records(&output).pop().unwrap();
    assert_eq!(total["unknownModels"], json!([]), "{}", stderr(&output));
    fs::write(&file, r#"{"owl": {"input_cost_per_token": "much"}}"#).unwrap();
    let output = run(root.path(), &["--prices", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("prices.json") && stderr(&output).contains("owl"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_status_line_is_about_the_session_that_is_named_or_passed() {
    let root = root();
    let cache = tempfile::tempdir().unwrap();
    let line = |arguments: &[&str], passed: Option<&str>| {
        let mut command = command(&[
            "--root",
            root.path().to_str().unwrap(),
            "usage",
            "--statusline",
        ]);
        command.args(arguments).env("XDG_CACHE_HOME", cache.path());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        if let Some(passed) = passed {
            stdin.write_all(passed.as_bytes()).unwrap();
            drop(stdin);
            return child.wait_with_output().unwrap();
        }
        // Nothing is written and the pipe stays open.
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        output
    };
    let named = line(&[FIRST], None);
    assert_eq!(
        stdout(&named),
        "today $0.00 · session $0.04 · context 1.40k (0%)\n",
        "{}",
        stderr(&named)
    );
    let path = root.path().join(format!("-work-maps/{FIRST}.jsonl"));
    let passed = json!({"session_id": "nothing", "transcript_path": path, "model": {"id": "x"}});
    assert_eq!(
        stdout(&line(&[], Some(&passed.to_string()))),
        stdout(&named)
    );
    let passed = json!({"session_id": SECOND});
    let of_second = line(&["--json"], Some(&passed.to_string()));
    let status = records(&of_second).pop().unwrap();
    assert_eq!(
        (&status["sessionId"], &status["sessionNanoUsd"]),
        (&json!(SECOND), &Value::Null)
    );
    assert_eq!(status["contextTokens"], json!(1050));
    let silent = line(&[], None);
    assert_eq!(silent.status.code(), Some(0), "{}", stderr(&silent));
}

#[test]
fn sums_of_deleted_sessions_are_kept_on_demand_and_list_shows_costs() {
    let root = root();
    let cache = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = command(&["--root", root.path().to_str().unwrap()]);
        let output = command
            .args(arguments)
            .env("XDG_CACHE_HOME", cache.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output
    };
    let cost = |output: &Output| {
        let rows = records(output);
        let row = rows
            .iter()
            .find(|row| row["sessionId"] == FIRST)
            .unwrap()
            .clone();
        row["costNanoUsd"].clone()
    };
    assert_eq!(cost(&run(&["list", "--json"])), Value::Null);
    let before = records(&run(&["usage", "--keep", "--json"])).pop().unwrap();
    let expected = 2000 * 3000 + 300 * 15000 + 2000 * 5000 + 700 * 25000;
    assert_eq!(cost(&run(&["list", "--json"])), json!(expected));
    assert!(stdout(&run(&["list"])).contains("$0.04"));
    let path: PathBuf = root.path().join(format!("-work-maps/{FIRST}.jsonl"));
    fs::remove_file(path).unwrap();
    let after = records(&run(&["usage", "--json"])).pop().unwrap();
    assert_eq!(
        (&after["costNanoUsd"], &after["deleted"]),
        (&before["costNanoUsd"], &json!(4))
    );
    let off = records(&run(&["usage", "--keep=off", "--json"]))
        .pop()
        .unwrap();
    assert_eq!((&off["requests"], &off["deleted"]), (&json!(1), &json!(0)));
}

#[test]
fn a_store_without_sessions_costs_nothing() {
    let root = tempfile::tempdir().unwrap();
    let output = run(root.path(), &["--json", "--no-cache"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(records(&output).pop().unwrap()["costNanoUsd"], json!(0));
    assert!(
        stderr(&output).contains("no sessions yet in "),
        "{}",
        stderr(&output)
    );
    // A table without rows has no heads either.
    for by in [&["--no-cache"][..], &["--no-cache", "--by", "model"]] {
        let text = stdout(&run(root.path(), by));
        assert!(text.starts_with("total $0.00"), "{text}");
    }
    let output = run(&sessions(), &["nothing-like-this"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn count_of_the_client_is_printed_next_to_our_sum() {
    let root = sessions().join("../usage/client-total/projects");
    let session = "11111111-1111-4111-8111-111111111111";
    let output = run(&root, &[session, "--json", "--no-cache"]);
    let records = records(&output);
    let client = records
        .iter()
        .find(|record| record["kind"] == "client")
        .unwrap();
    assert_eq!(client["differenceNanoUsd"], json!(500_000));
    let text = stdout(&run(&root, &[session, "--no-cache"]));
    let said =
        "Claude Code counted $0.0041, the transcript has $0.0036: $0.0005 not in the transcript";
    assert!(text.contains(said), "{text}");
    assert!(
        text.contains("claude-haiku-4-5: $0.0005, $0.00: $0.0005 not in the transcript"),
        "{text}"
    );
}
