//! The damage campaign for `verify`: how much of the injected damage is found, and whether anything is
//! found where nothing is wrong.
//!
//! `cargo run --release -p transcript-verify --example detection -- [--files 20000] [--seed 0]
//! [--threads 1] [--list KIND]`
//!
//! Half of the files come from the shared corpus, if it is present, the rest from the generator.
//! Damage is found when the damaged file has a finding that the session did not have before, or more of
//! a kind. Lines that are missing leave no trace when no other line names them: those files are counted
//! apart.

#![expect(clippy::print_stdout, reason = "the table is the point")]
#![expect(clippy::unwrap_used, reason = "an example may stop at the first error")]

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use transcript_format::finding::Severity;
use transcript_reader::Source;
use transcript_testkit::campaign::{Healthy, Kind};
use transcript_testkit::{generate, shared};
use transcript_verify::{LocatedFinding, Report, Verdict, VerifyOptions, verify_source};

#[derive(Clone, Copy, Default)]
struct Tally {
    files: usize,
    found: usize,
    untraceable: usize,
    /// Files whose conversation is larger than what `recover` shows of it.
    hidden: usize,
    lossy: usize,
}

#[derive(Default)]
struct Tallies {
    undamaged: usize,
    wrong: usize,
    kinds: [Tally; Kind::ALL.len()],
}

fn main() {
    let (mut files, mut seed, mut threads, mut list) = (20_000, 0, 1, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match name.as_str() {
            "--files" => files = value.parse().unwrap(),
            "--seed" => seed = value.parse().unwrap(),
            "--threads" => threads = value.parse().unwrap(),
            "--list" => list = Some(value),
            _ => panic!("unknown option {name}"),
        }
    }
    let corpus = corpus();
    let quota = files / Kind::ALL.len() / threads;
    let (corpus, list) = (&corpus, list.as_deref());
    let workers: Vec<Tallies> = std::thread::scope(|scope| {
        let run =
            |worker: usize| scope.spawn(move || run(corpus, worker, threads, quota, seed, list));
        let workers: Vec<_> = (0..threads).map(run).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    print(&workers);
}

fn run(
    corpus: &[Healthy],
    worker: usize,
    threads: usize,
    quota: usize,
    seed: u64,
    list: Option<&str>,
) -> Tallies {
    let mut tallies = Tallies::default();
    let own: Vec<&Healthy> = corpus.iter().skip(worker).step_by(threads).collect();
    for (place, healthy) in own.iter().enumerate() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            let left = (quota / 2).saturating_sub(tallies.kinds[at].files);
            for number in 0..left.div_ceil(own.len() - place) as u64 {
                tallies.hurt(healthy, kind, seed + number, list);
            }
        }
        tallies.undamaged(healthy, list);
    }
    let mut at = seed + worker as u64;
    while tallies.kinds.iter().any(|tally| tally.files < quota) {
        if let Some(healthy) = Healthy::new(&generate::tidy_session(at)) {
            tallies.undamaged(&healthy, list);
            for (number, kind) in Kind::ALL.into_iter().enumerate() {
                if tallies.kinds[number].files < quota {
                    tallies.hurt(&healthy, kind, at, list);
                }
            }
        }
        at += threads as u64;
    }
    tallies
}

impl Tallies {
    /// Counts a session as wrongly reported if anything is called damage. Sessions in which nothing is
    /// damaged may all the same contain open calls, results without their call, and branches that were
    /// written at the same time.
    fn undamaged(&mut self, healthy: &Healthy, list: Option<&str>) {
        const POSSIBLE: [&str; 5] = ["P-NORESULT", "P-NOUSE", "P-ORDER", "G-FORK", "X-WRITERS"];
        let bytes = healthy.undamaged().bytes;
        let report = report(&bytes);
        let is_wrong = |finding: &LocatedFinding| {
            finding.code.severity() == Severity::Damage
                && !POSSIBLE.contains(&finding.code.as_str())
        };
        self.undamaged += 1;
        if report.verdict() == Verdict::Lossy || report.findings.iter().any(is_wrong) {
            self.wrong += 1;
            println!(
                "undamaged: {:?} {:?} {:?}",
                report.verdict(),
                report.measure,
                codes(&report)
            );
            if list.is_some() {
                let path = std::env::temp_dir().join("undamaged.jsonl");
                fs::write(path, &bytes).unwrap();
            }
        }
    }

    fn hurt(&mut self, healthy: &Healthy, kind: Kind, seed: u64, list: Option<&str>) {
        let Some(case) = healthy.hurt(kind, seed) else {
            return;
        };
        let before = healthy.undamaged().bytes;
        let (was, is) = (report(&before), report(&case.bytes));
        let (was_codes, codes) = (codes(&was), codes(&is));
        let more = codes
            .iter()
            .any(|(code, count)| was_codes.get(code).is_none_or(|before| before < count));
        let at = Kind::ALL.iter().position(|other| *other == kind).unwrap();
        let tally = &mut self.kinds[at];
        tally.files += 1;
        tally.hidden += usize::from(is.measure.recover < is.measure.conversation);
        tally.lossy += usize::from(is.verdict() == Verdict::Lossy);
        if more || is.verdict() > was.verdict() {
            tally.found += 1;
        } else if is_untraceable(&before, &case.bytes) {
            tally.untraceable += 1;
        } else if list == Some(kind.name()) {
            println!(
                "not found: {} seed {seed}, {} bytes",
                kind.name(),
                before.len()
            );
            let name = format!("{}-{seed}-{}.jsonl", kind.name(), before.len());
            let folder = std::env::temp_dir().join("detection");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(&name), &case.bytes).unwrap();
            fs::write(folder.join(name.replace(".jsonl", ".before")), &before).unwrap();
        }
    }
}

fn report(bytes: &[u8]) -> Report {
    let source = Source::from_bytes(bytes, Path::new("-"));
    verify_source(&source, &VerifyOptions::new()).unwrap()
}

fn codes(report: &Report) -> BTreeMap<&'static str, usize> {
    let mut codes = BTreeMap::new();
    for finding in &report.findings {
        *codes.entry(finding.code.as_str()).or_default() += 1;
    }
    codes
}

/// Returns whether a file only lacks lines of another one, and no line that is left names anything that
/// they had; whether it only has more `progress` lines; or whether it has the same lines in an order in
/// which a client may write them.
fn is_untraceable(before: &[u8], after: &[u8]) -> bool {
    let lines = |bytes: &[u8]| -> Vec<Value> {
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.trim_ascii().is_empty());
        lines
            .map(|line| serde_json::from_slice(line).unwrap_or(Value::Null))
            .collect()
    };
    let (before, after) = (lines(before), lines(after));
    if before.len() == after.len() {
        let mut seen = HashSet::new();
        return after.iter().all(|line| {
            let parent = line["parentUuid"].as_str();
            // Clients write these before their parents as well.
            let is_result = line["message"]["content"][0]["type"] == "tool_result";
            let is_beside = line["type"] == "attachment" || line["type"] == "progress";
            let may_precede = is_result || is_beside;
            let is_in_order = may_precede || parent.is_none_or(|parent| seen.contains(parent));
            seen.extend(line["uuid"].as_str());
            is_in_order
        });
    }
    if before.len() < after.len() {
        let known: HashSet<String> = before.iter().map(Value::to_string).collect();
        let added = after.len() - before.len();
        let is_progress = |line: &&Value| line["type"] == "progress";
        let is_new = |line: &&Value| !known.contains(&line.to_string());
        return after.iter().filter(is_progress).filter(is_new).count() == added;
    }
    let left: HashSet<String> = after.iter().map(Value::to_string).collect();
    let gone = before
        .iter()
        .filter(|line| !left.contains(&line.to_string()));
    let text: String = left.iter().map(String::as_str).collect();
    let mut names = gone.flat_map(|line| {
        let blocks = line["message"]["content"].as_array().into_iter().flatten();
        let ids = blocks.flat_map(|block| [&block["id"], &block["tool_use_id"]]);
        let names: Vec<String> = ids
            .chain([&line["uuid"]])
            .filter_map(|id| Some(id.as_str()?.to_owned()))
            .collect();
        names
    });
    !names.any(|name| text.contains(&format!("\"{name}\"")))
}

/// The files of the corpus that nothing is wrong with.
fn corpus() -> Vec<Healthy> {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![shared.join("corpus/files")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.metadata().unwrap().len() <= 1_000_000 => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    files
        .iter()
        .filter_map(|file| Healthy::new(&fs::read(file).unwrap()))
        .collect()
}

fn print(workers: &[Tallies]) {
    println!(
        "| damage | files | found | of those that leave a trace | lossy | more than `recover` shows |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for (at, kind) in Kind::ALL.iter().enumerate() {
        let sum = |field: fn(&Tally) -> usize| {
            workers
                .iter()
                .map(|worker| field(&worker.kinds[at]))
                .sum::<usize>()
        };
        let (files, found) = (sum(|tally| tally.files), sum(|tally| tally.found));
        let traced = files - sum(|tally| tally.untraceable);
        let share = |all: usize| 100.0 * found as f64 / all.max(1) as f64;
        println!(
            "| {} | {files} | {:.2} % | {:.2} % | {} | {} |",
            kind.name(),
            share(files),
            share(traced),
            sum(|tally| tally.lossy),
            sum(|tally| tally.hidden)
        );
    }
    let undamaged: usize = workers.iter().map(|worker| worker.undamaged).sum();
    let wrong: usize = workers.iter().map(|worker| worker.wrong).sum();
    println!("\n{undamaged} undamaged sessions, {wrong} reported as lossy or damaged");
}
