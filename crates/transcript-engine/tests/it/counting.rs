//! The counters of a session, and what a resume knows of its work, over kills and forks.
//!
//! The steps and what must be found after them are in a file that the tests of the bindings read too.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use transcript_engine::{
    AgentId, AgentMeta, Compaction, Counters, Draft, ForkOptions, History, Object, OnBusy, Policy,
    Session, SessionOptions, Trigger, TurnEnd, make,
};

use crate::support::{Place, answer, call, create, lines, options, result, say};

fn work() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/node/test/work.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A price for each token, of one model.
fn price(model: &str, usage: &Object<'_>) -> Option<u128> {
    let count = |key| u128::from(usage.u64(key).unwrap_or(0));
    (model != "nobody-knows").then(|| 1000 * (count("input_tokens") + count("output_tokens")))
}

fn object(value: &Value) -> String {
    value.to_string()
}

/// Runs the steps of the file in a session.
fn run<P>(session: &Session, steps: &Value, price: P)
where
    P: Fn(&str, &Object<'_>) -> Option<u128> + Clone + Send + 'static,
{
    session.count_missed(price.clone()).unwrap();
    for step in steps.as_array().unwrap() {
        let (name, given) = step.as_object().unwrap().iter().next().unwrap();
        match name.as_str() {
            "append" => append(session, given),
            "count" => session.count(|counters| count(counters, given, &price)),
            "context" => {
                session
                    .set_git_branch(given["gitBranch"].as_str().unwrap())
                    .unwrap();
                let entrypoint = given["entrypoint"].as_str().unwrap();
                session.set_entrypoint(entrypoint).unwrap();
            }
            "completeCalls" => {
                session.complete_calls(given.as_str().unwrap()).unwrap();
            }
            "endTurn" => {
                let turn = TurnEnd::new().prompt(given.as_str().unwrap());
                session.end_turn(turn).unwrap();
            }
            other => panic!("no step {other}"),
        }
    }
}

fn append(session: &Session, given: &Value) {
    if let Some(text) = given["user"].as_str() {
        say(session, text);
    } else if given["assistant"].is_object() {
        let drafts = Draft::assistant(&object(&given["assistant"])).unwrap();
        session.append_all(drafts).unwrap();
    } else {
        let entry = Draft::entry(&object(&given["entry"])).unwrap();
        session.append(entry).unwrap();
    }
}

fn count(
    counters: &mut Counters,
    given: &Value,
    price: &impl Fn(&str, &Object<'_>) -> Option<u128>,
) {
    let millis = |key: &str| Duration::from_millis(given[key].as_u64().unwrap_or(0));
    if given["reply"].is_object() {
        let usage = object(&given["reply"]["usage"]);
        let usage = Object::parse(&usage).unwrap();
        let model = given["reply"]["model"].as_str().unwrap();
        counters.add_reply(model, &usage, price(model, &usage), millis("apiMs"));
    }
    counters.add_failed_request(millis("failedApiMs"));
    counters.add_tool(millis("toolMs"));
    let lines = |key: &str| given[key].as_u64().unwrap_or(0);
    counters.add_lines(lines("linesAdded"), lines("linesRemoved"));
}

/// Returns what is the same each time the steps are run.
fn found(session: &Session) -> Value {
    let mut counters = serde_json::to_value(session.counters().costs()).unwrap();
    for time in ["durationMs", "startTime"] {
        assert!(counters[time].is_u64(), "{counters}");
        counters.as_object_mut().unwrap().remove(time);
    }
    let mut state = serde_json::to_value(session.state().unwrap()).unwrap();
    let known = ["files", "denials"].map(|key| {
        let mut list = state[key].take();
        for item in list.as_array_mut().unwrap() {
            for place in ["uuid", "timestamp"] {
                item.as_object_mut().unwrap().remove(place);
            }
        }
        list
    });
    let [files, denials] = known;
    json!({
        "counters": counters, "files": files, "denials": denials,
        "gitBranch": state["gitBranch"], "entrypoint": state["entrypoint"],
    })
}

/// Set for the process that is killed.
const KILLED: &str = "TRANSCRIPT_TEST_KILLED";

/// The steps before the kill, in a process of their own; in a run of all tests it does nothing.
#[test]
fn the_steps_of_the_process_that_is_killed() {
    let Some(path) = env::var_os(KILLED) else {
        return;
    };
    let session = create(&PathBuf::from(path));
    run_priced(&session, "before");
    println!("\nready");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
    panic!("it was not killed");
}

#[cfg(feature = "search")]
fn run_priced(session: &Session, part: &str) {
    use std::sync::Arc;

    use transcript_engine::catalog::usage::{CallPrices, Prices};

    let prices = Arc::new(CallPrices::new(Prices::embedded()));
    run(
        session,
        &work()[part],
        move |model: &str, usage: &Object<'_>| prices.cost(model, usage),
    );
}

#[cfg(not(feature = "search"))]
fn run_priced(session: &Session, part: &str) {
    run(session, &work()[part], price);
}

#[test]
fn counters_and_files_of_a_session_survive_a_kill_and_a_resume() {
    let place = Place::new();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("counting::the_steps_of_the_process_that_is_killed")
        .env(KILLED, &place.path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "it ended");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let session = Session::resume(&place.path, &options()).unwrap().session;
    run_priced(&session, "after");
    if cfg!(feature = "search") {
        assert_eq!(found(&session), work()["expected"]);
    }
    // A fork continues the counts as well.
    let fork = session.fork(&ForkOptions::new()).unwrap();
    let counts = session.counters();
    session.close().unwrap();
    let fork = Session::open(&fork, &options()).unwrap();
    assert_eq!(fork.counters(), counts);
}

#[test]
fn the_line_is_that_of_the_client() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "go");
    let usage = r#"{"input_tokens":2,"output_tokens":1}"#;
    let usage = Object::parse(usage).unwrap();
    session.count(|counters| {
        counters.add_reply("m", &usage, price("m", &usage), Duration::from_millis(7));
    });
    session.end_turn(TurnEnd::new()).unwrap();
    let text = fs::read_to_string(&place.path).unwrap();
    let line = text
        .lines()
        .find(|line| line.contains("cost-state"))
        .unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let (time, start) = (&line["totalDuration"], &line["startTime"]);
    let expected = format!(
        r#"{{"type":"cost-state","sessionId":"1999463e-ee08-4b08-99d5-2d9a36fd8293","totalCostUSD":0.000003,"totalAPIDuration":7,"totalAPIDurationWithoutRetries":7,"totalToolDuration":0,"totalLinesAdded":0,"totalLinesRemoved":0,"totalDuration":{time},"startTime":{start},"modelUsage":{{"m":{{"inputTokens":2,"outputTokens":1,"thinkingTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"cacheCreationEphemeral5mInputTokens":0,"cacheCreationEphemeral1hInputTokens":0,"webSearchRequests":0,"costUSD":0.000003}}}},"hasUnknownModelCost":false}}"#
    );
    assert!(text.lines().any(|line| line == expected), "{text}");
    assert_eq!(
        Counters::from(&session.state().unwrap())
            .to_line()
            .kind()
            .name(),
        "cost-state"
    );
}

#[test]
fn counts_that_were_read_are_written_again_unchanged() {
    let line = r#"{"type":"cost-state","sessionId":"s","totalCostUSD":0.0012000000000000001,"totalAPIDuration":95,"totalAPIDurationWithoutRetries":86,"totalToolDuration":16,"totalLinesAdded":4,"totalLinesRemoved":2,"totalDuration":523,"startTime":1795254152115,"modelUsage":{"z":{"inputTokens":200,"outputTokens":40,"thinkingTokens":1,"cacheReadInputTokens":2,"cacheCreationInputTokens":7,"cacheCreationEphemeral5mInputTokens":3,"cacheCreationEphemeral1hInputTokens":4,"webSearchRequests":1,"costUSD":2},"a[1m]":{"inputTokens":0,"outputTokens":0,"thinkingTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"cacheCreationEphemeral5mInputTokens":0,"cacheCreationEphemeral1hInputTokens":0,"webSearchRequests":0,"costUSD":0}},"hasUnknownModelCost":true}"#;
    let place = Place::new();
    let prompt = r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-11-01T10:00:00Z","message":{"role":"user","content":"hi"}}"#;
    fs::write(&place.path, format!("{prompt}\n{line}\n")).unwrap();
    let state = History::open(&place.path)
        .unwrap()
        .state(Policy::Recover)
        .unwrap();
    let written = Counters::from(&state).to_line().text();
    assert_eq!(written, line.replace(r#""sessionId":"s","#, ""));
    let session = Session::open(&place.path, &options()).unwrap();
    assert_eq!(session.counters(), Counters::from(&state));
    // Nothing was counted: the line is not written again.
    session.end_turn(TurnEnd::new()).unwrap();
    let (lines, _) = lines(&place.path);
    let counts = lines.iter().filter(|line| line["type"] == "cost-state");
    assert_eq!(counts.count(), 1);
}

#[test]
fn replies_that_a_kill_kept_from_being_counted_are_counted_once() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "go");
    let reply = json!({
        "id": "msg_1", "role": "assistant", "model": "m", "usage": {"input_tokens": 2, "output_tokens": 1},
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
    });
    session
        .append_all(Draft::assistant(&reply.to_string()).unwrap())
        .unwrap();
    drop(session);
    let session = Session::open(&place.path, &options()).unwrap();
    assert_eq!(session.count_missed(price).unwrap(), 1);
    assert_eq!(session.count_missed(price).unwrap(), 0);
    let counted = session.counters();
    assert_eq!(
        counted.costs().models.as_ref().unwrap()[0].input_tokens,
        Some(2)
    );
    session.end_turn(TurnEnd::new()).unwrap();
    drop(session);
    // The line has it now.
    let session = Session::open(&place.path, &options()).unwrap();
    assert_eq!(session.count_missed(price).unwrap(), 0);
    let costs = session.counters();
    assert_eq!(costs.costs().models, counted.costs().models);
}

#[test]
fn a_busy_session_that_is_forked_continues_the_counts() {
    let place = Place::new();
    let first = create(&place.path);
    say(&first, "go");
    first.count(|counters| counters.add_lines(5, 0));
    first.end_turn(TurnEnd::new()).unwrap();
    let forked = Session::resume(&place.path, &options().on_busy(OnBusy::Fork)).unwrap();
    assert!(forked.forked_from.is_some());
    assert_eq!(forked.session.counters().costs().lines_added, Some(5));
}

#[test]
fn branch_and_entrypoint_are_filled_in_and_can_change() {
    let place = Place::new();
    let start = SessionOptions::new().git_branch("main").entrypoint("sdk-a");
    let session = Session::create(&place.path, &start).unwrap();
    say(&session, "one");
    session.queue(Draft::user("queued")).unwrap();
    session.set_git_branch("fix").unwrap();
    session.set_entrypoint("").unwrap();
    say(&session, "two");
    let own = make::user("own").with("gitBranch", "other");
    session.append(own).unwrap();
    session
        .append(make::ai_title("no entry of a chain"))
        .unwrap();
    let agent = AgentId::new("a1").unwrap();
    let meta = AgentMeta::new("Explore", "toolu_1");
    let agent = session.agent(&agent, &meta).unwrap();
    say(&agent, "find it");
    let told = |path: &Path| {
        let (lines, _) = lines(path);
        let told = lines.into_iter().map(|line| {
            let text = |key: &str| line[key].as_str().map(str::to_owned);
            (text("gitBranch"), text("entrypoint"))
        });
        told.collect::<Vec<_>>()
    };
    let some = |branch: &str, entrypoint: Option<&str>| {
        (Some(branch.to_owned()), entrypoint.map(str::to_owned))
    };
    assert_eq!(
        told(&place.path),
        [
            some("main", Some("sdk-a")),
            some("main", Some("sdk-a")),
            some("fix", None),
            some("other", None),
            (None, None),
        ]
    );
    assert_eq!(told(agent.path()), [some("fix", None)]);
    let line = fs::read_to_string(&place.path).unwrap();
    let keys = ["userType", "entrypoint", "sessionId", "gitBranch"].map(|key| line.find(key));
    assert!(keys.is_sorted(), "the order of clients: {keys:?}");
}

#[test]
fn results_that_a_resume_adds_have_their_text_as_output() {
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "go");
    let asked = answer(&session, "msg_1", &json!([call("toolu_1")]));
    drop(session);
    let resumed = Session::resume(&place.path, &options()).unwrap();
    assert_eq!(resumed.added.len(), 2, "a result and an answer");
    let (lines, _) = lines(&place.path);
    let added = &lines[lines.len() - 2];
    let text = &added["message"]["content"][0]["content"];
    assert!(
        text.as_str()
            .unwrap()
            .starts_with("[Tool call interrupted: ")
    );
    assert_eq!(&added["toolUseResult"], text);
    assert_eq!(added["sourceToolAssistantUUID"], asked.to_string());
}

#[test]
fn open_calls_of_a_running_session_get_a_text_of_the_client() {
    let place = Place::new();
    let session = create(&place.path);
    assert_eq!(session.complete_calls("Stopped").unwrap().len(), 0);
    say(&session, "go");
    answer(
        &session,
        "msg_1",
        &json!([call("toolu_1"), call("toolu_2"), call("toolu_3")]),
    );
    result(&session, "toolu_2");
    let written = session.complete_calls("Stopped").unwrap();
    assert_eq!(written.len(), 2);
    let (all, _) = lines(&place.path);
    let added: Vec<_> = all[all.len() - 2..].iter().collect();
    for (entry, call) in added.iter().zip(["toolu_1", "toolu_3"]) {
        let block = &entry["message"]["content"][0];
        assert_eq!(block["tool_use_id"], call);
        assert_eq!(
            (&block["content"], &block["is_error"]),
            (&json!("Stopped"), &json!(true))
        );
        assert_eq!(entry["toolUseResult"], "Stopped");
        assert_eq!(entry["parentUuid"], entry["sourceToolAssistantUUID"]);
    }
    assert_eq!(session.complete_calls("Stopped").unwrap().len(), 0);
    let request = session.request().unwrap();
    assert!(transcript_engine::lint(&request.messages).is_ok());
    assert!(request.synthetic.is_empty(), "{:?}", request.synthetic);
    // Calls that a compaction left are not answered.
    answer(&session, "msg_2", &json!([call("toolu_4")]));
    session
        .compact(
            Compaction::new(Trigger::Manual, 1),
            "They stopped.",
            Vec::new(),
        )
        .unwrap();
    assert_eq!(session.complete_calls("Stopped").unwrap().len(), 0);
}

#[test]
fn progress_needs_a_type() {
    let data = Object::parse(r#"{"type":"own_progress","done":3}"#).unwrap();
    let entry = make::progress("run-1", "toolu_1", &data).unwrap();
    let place = Place::new();
    let session = create(&place.path);
    say(&session, "go");
    session.append(entry).unwrap();
    let (all, _) = lines(&place.path);
    assert_eq!(all[1]["data"], json!({"type": "own_progress", "done": 3}));
    assert_eq!(
        (&all[1]["toolUseID"], &all[1]["parentToolUseID"]),
        (&json!("run-1"), &json!("toolu_1"))
    );
    for bad in ["{}", r#"{"type":""}"#, r#"{"type":7}"#] {
        let data = Object::parse(bad).unwrap();
        assert!(make::progress("run-1", "toolu_1", &data).is_err(), "{bad}");
    }
}
