//! The example `agent`, killed over and over.

use std::collections::HashSet;
use std::env;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use transcript_engine::{History, Policy};
use transcript_testkit::rng::Rng;

use crate::support::{Place, assert_unhurt, lines};

/// The number of kills in `make test`; `TRANSCRIPT_SOAK=20` makes it 500.
const KILLS: u64 = 25;

/// The maximum number of entries of a session, because it is read once for each of them.
const ENTRIES: usize = 600;

#[test]
fn an_agent_that_is_killed_at_any_moment_goes_on_as_if_nothing_had_happened() {
    let agent = example("agent");
    let soak = env::var("TRANSCRIPT_SOAK").map_or(1, |times| times.parse().unwrap());
    let mut rng = Rng::new(0x6b69_6c6c);
    let (mut reported, mut torn, mut compactions, mut added) = (0, 0, 0, 0);
    let mut place = Place::new();
    let mut acknowledged = HashSet::new();
    for kill in 0..KILLS * soak {
        acknowledged.extend(run_and_kill(&agent, &place.path, &mut rng));
        if !place.path.exists() {
            continue;
        }
        let (lines, is_torn) = lines(&place.path);
        if lines.is_empty() {
            continue;
        }
        assert_unhurt(&place.path);
        let in_file: HashSet<&str> = lines
            .iter()
            .filter_map(|line| line["uuid"].as_str())
            .collect();
        for uuid in &acknowledged {
            assert!(
                in_file.contains(uuid.as_str()),
                "kill {kill}: {uuid} is lost"
            );
        }
        torn += u32::from(is_torn);
        if lines.len() > ENTRIES || kill + 1 == KILLS * soak {
            let has =
                |key: &str, value: &str| lines.iter().filter(|line| line[key] == value).count();
            reported += acknowledged.len();
            compactions += has("subtype", "compact_boundary");
            let model = |line: &&serde_json::Value| line["message"]["model"] == "<synthetic>";
            added += lines.iter().filter(model).count();
            acknowledged.clear();
            assert_all_are_counted(&agent, &place.path);
            place.renew();
        }
    }
    println!(
        "{} kills: {reported} entries acknowledged, {compactions} compactions, {added} turns ended by a \
         resume, {torn} torn tails; lost, doubled, phantom, forked, unlinted: 0",
        KILLS * soak
    );
    assert!(reported > 0 && added > 0 && compactions > 0);
}

/// Runs one more turn to its end, after which the counters of the session have every reply of the file.
fn assert_all_are_counted(agent: &Path, path: &Path) {
    let turn = Command::new(agent).arg(path).output().unwrap();
    assert!(turn.status.success(), "{:?}", turn.stderr);
    let history = History::open(path).unwrap();
    let usage = history.usage().unwrap();
    let costs = history.state(Policy::Recover).unwrap().costs.unwrap();
    let counted = &costs.models.unwrap()[0];
    assert_eq!(usage[0].model.as_deref(), Some(counted.model.as_str()));
    assert!(counted.input_tokens > Some(10), "{counted:?}");
    assert_eq!(usage[0].input_tokens, counted.input_tokens);
    assert_eq!(usage[0].output_tokens, counted.output_tokens);
}

/// Starts the agent, waits until it has reported some entries and for a random moment more, and
/// kills it. Returns the output.
fn run_and_kill(agent: &Path, path: &Path, rng: &mut Rng) -> Vec<String> {
    let mut child = Command::new(agent)
        .arg(path)
        .arg("1000")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut reported = String::new();
    for _ in 0..rng.below(40) {
        assert_ne!(
            output.read_line(&mut reported).unwrap(),
            0,
            "the agent ended: {reported}"
        );
    }
    thread::sleep(Duration::from_micros(rng.below(3_000) as u64));
    child.kill().unwrap();
    child.wait().unwrap();
    output.read_to_string(&mut reported).unwrap();
    // The last line of the output may be torn too; it does not count as reported.
    let whole = reported.rfind('\n').map_or(0, |at| at + 1);
    reported[..whole].lines().map(str::to_owned).collect()
}

/// Builds an example of this crate, because running the tests of one file alone does not.
fn example(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args([
        "build",
        "--quiet",
        "--offline",
        "-p",
        "transcript-engine",
        "--example",
        name,
    ]);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(
        build.status().unwrap().success(),
        "the example does not build"
    );
    profile.join("examples").join(name)
}

/// The number of bytes of the first reply of the agent, at least.
const REPLY: usize = 1000;
/// The number of turns of a session, each of which ends a stream one byte later. Every request reads the session.
const TURNS: usize = 100;

#[test]
fn an_agent_runs_no_call_with_a_part_of_its_input_wherever_a_stream_ends() {
    let agent = example("agent");
    let (mut results, mut cut) = (0, 0);
    for first in (0..REPLY + TURNS).step_by(TURNS) {
        let place = Place::new();
        let (turns, first) = (TURNS.to_string(), first.to_string());
        let run = Command::new(&agent)
            .args([place.path.as_os_str(), turns.as_ref(), first.as_ref()])
            .output()
            .unwrap();
        assert!(run.status.success(), "{:?}", run.stderr);
        let (lines, _) = lines(&place.path);
        let blocks = lines.iter().flat_map(|line| {
            let blocks = line["message"]["content"].as_array();
            blocks.into_iter().flatten()
        });
        for block in blocks.filter(|block| block["type"] == "tool_result") {
            assert_eq!(block["content"], "366 days");
            results += 1;
        }
        let is_cut = |line: &&serde_json::Value| {
            line["isAbortedMidStream"] == true && line["transcriptEngine"]["callInput"] == "cut"
        };
        cut += lines.iter().filter(is_cut).count();
        assert_unhurt(&place.path);
    }
    // Each turn ran both calls of its last reply.
    assert!(results >= 2 * REPLY, "{results}");
    assert!(cut > 100, "{cut}");
}

#[test]
fn the_toy_agent_lives_through_a_whole_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder
        .path()
        .join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    let output = Command::new(example("toy")).arg(&path).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{complaint}");
    let lines: Vec<&str> = shown.lines().collect();
    // The turn that was cut is closed; the last turn is a prompt, a call, its result and an answer.
    assert_eq!(lines[0], "resumed: 1 entries were added");
    assert_eq!(lines[1], "compacted: 4 entries kept");
    // Boundary, summary, the kept turn and a new one; then without that.
    assert_eq!(lines[2], "rewound: 10 entries before, 6 after");
    assert_eq!(lines[3], "forked: 4 messages");
    assert!(lines[4].starts_with("followed: "), "{shown}");
}
