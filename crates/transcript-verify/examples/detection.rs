//! The damage campaign for `verify`: how much of the injected damage is found, and whether anything is
//! found where nothing is wrong.
//!
//! `cargo run --release -p transcript-verify --example detection -- [--files 20000] [--seed 0]
//! [--threads 1] [--list KIND]`
//!
//! Half of the files come from the shared corpus, if it is present, the rest from the generator.
//! Damage is found when the damaged file has a finding that the session did not have before, or more of
//! a kind. Damage leaves a trace when the damaged file breaks a rule of `campaign::traces` that the
//! session did not break: that is decided with plain JSON, not by what is found. Other files are such
//! as an undamaged client may have written; they are counted apart, by reason.

#![expect(clippy::print_stdout, reason = "the table is the point")]
#![expect(clippy::unwrap_used, reason = "an example may stop at the first error")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use transcript_format::finding::Severity;
use transcript_reader::Source;
use transcript_testkit::campaign::traces::traces;
use transcript_testkit::campaign::{Healthy, Kind};
use transcript_testkit::{generate, shared};
use transcript_verify::{LocatedFinding, Report, Verdict, VerifyOptions, verify_source};

#[derive(Clone, Copy, Default)]
struct Tally {
    files: usize,
    found: usize,
    /// Files in which the damage left no trace, and in how many of them something was found.
    untraceable: usize,
    untraceable_found: usize,
    /// Files whose conversation is larger than what `recover` shows of it.
    hidden: usize,
    lossy: usize,
}

#[derive(Default)]
struct Tallies {
    undamaged: usize,
    wrong: usize,
    kinds: [Tally; Kind::ALL.len()],
    /// The number of files by kind of damage, and why it left no trace.
    reasons: BTreeMap<(&'static str, &'static str), usize>,
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
        let Some(case) = healthy.damaged(kind, seed) else {
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
        let is_found = more || is.verdict() > was.verdict();
        tally.found += usize::from(is_found);
        if let Some(reason) = untraceable(&before, &case.bytes) {
            tally.untraceable += 1;
            tally.untraceable_found += usize::from(is_found);
            *self.reasons.entry((kind.name(), reason)).or_default() += 1;
        } else if !is_found && list.is_some_and(|list| list == kind.name() || list == "all") {
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

/// Why damage left no trace (`campaign::traces`).
fn untraceable(before: &[u8], after: &[u8]) -> Option<&'static str> {
    let was = traces(before);
    if traces(after).difference(&was).next().is_some() {
        return None;
    }
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.map(|line| line.trim_ascii().to_vec());
        lines.filter(|line| !line.is_empty()).collect()
    };
    let (mut before, mut after) = (lines(before), lines(after));
    if before == after {
        return Some("nothing was changed");
    }
    before.sort_unstable();
    after.sort_unstable();
    let has_all = |lines: &[Vec<u8>], of: &[Vec<u8>]| of.iter().all(|line| lines.contains(line));
    Some(if before == after {
        "lines are in another order that clients write, too"
    } else if has_all(&before, &after) {
        "lines are missing that no other line names"
    } else {
        "lines are changed or added"
    })
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
                false if fs::metadata(&path).unwrap().len() <= 1_000_000 => files.push(path),
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
        "| damage | files | found | with a trace | of these found | lossy | more than `recover` shows |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (at, kind) in Kind::ALL.iter().enumerate() {
        let sum = |field: fn(&Tally) -> usize| {
            workers
                .iter()
                .map(|worker| field(&worker.kinds[at]))
                .sum::<usize>()
        };
        let (files, found) = (sum(|tally| tally.files), sum(|tally| tally.found));
        let traced = files - sum(|tally| tally.untraceable);
        let found_traced = found - sum(|tally| tally.untraceable_found);
        let share = |found: usize, all: usize| 100.0 * found as f64 / all.max(1) as f64;
        println!(
            "| {} | {files} | {:.2} % | {traced} | {:.2} % | {} | {} |",
            kind.name(),
            share(found, files),
            share(found_traced, traced),
            sum(|tally| tally.lossy),
            sum(|tally| tally.hidden)
        );
    }
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (key, count) in workers.iter().flat_map(|worker| &worker.reasons) {
        *reasons.entry(*key).or_default() += count;
    }
    for ((kind, reason), count) in reasons {
        println!("no trace: {kind}, {reason}: {count}");
    }
    let undamaged: usize = workers.iter().map(|worker| worker.undamaged).sum();
    let wrong: usize = workers.iter().map(|worker| worker.wrong).sum();
    println!("\n{undamaged} undamaged sessions, {wrong} reported as lossy or damaged");
}
