//! The repair campaign: damages sessions, repairs them, and counts what went wrong.
//!
//! `cargo run --release -p transcript-verify --example repair_campaign -- [--files 20000] [--seed 0]
//! [--threads 1] [--max-bytes 200000] [--write DIR] [--keep DIR]`
//!
//! Every second session is of the shared corpus, if it is present; the others are generated. Two of
//! three are damaged in one to four ways at once, the others in one way of which the result is
//! known. Names each file that fails by its seed, and `--write` keeps it in DIR. `--keep` keeps all:
//! `damaged/SEED_KIND+KIND.jsonl`, and the session before under the same name in `healthy`, for other
//! readers (`tools/sdk_check.py`, `experiments/doctor_check.py`).

#![expect(clippy::print_stdout, reason = "the table is the point")]
#![expect(clippy::unwrap_used, reason = "an example may stop at the first error")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use transcript_format::ids::Uuid;
use transcript_reader::{Index, Source};
use transcript_resume::{Policy, Tree};
use transcript_testkit::campaign::several::several;
use transcript_testkit::campaign::{Healthy, Kind};
use transcript_testkit::{generate, shared};
use transcript_verify::repair::Repair;

struct Options {
    files: u64,
    seed: u64,
    threads: u64,
    max_bytes: u64,
    write: Option<PathBuf>,
    keep: Option<PathBuf>,
}

fn main() {
    let mut options = Options {
        files: 20_000,
        seed: 0,
        threads: 1,
        max_bytes: 200_000,
        write: None,
        keep: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match name.as_str() {
            "--files" => options.files = value.parse().unwrap(),
            "--seed" => options.seed = value.parse().unwrap(),
            "--threads" => options.threads = value.parse().unwrap(),
            "--max-bytes" => options.max_bytes = value.parse().unwrap(),
            "--show" => {
                println!("{:?}", outcome(&fs::read(value).unwrap()));
                return;
            }
            "--write" => options.write = Some(value.into()),
            "--keep" => options.keep = Some(value.into()),
            _ => panic!("unknown option {name}"),
        }
    }
    let corpus = corpus(options.max_bytes);
    let run = |worker: u64| {
        let mut counts: BTreeMap<&'static str, u64> = BTreeMap::new();
        for seed in
            (options.seed + worker..options.seed + options.files).step_by(options.threads as usize)
        {
            let (healthy, bytes, done) = session(&corpus, seed);
            if let Some(folder) = &options.keep {
                let name = format!("{seed:05}_{}.jsonl", done.join("+").replace(' ', "-"));
                for (folder, bytes) in [("damaged", &bytes), ("healthy", &healthy)]
                    .map(|(at, bytes)| (folder.join(at), bytes))
                {
                    fs::create_dir_all(&folder).unwrap();
                    fs::write(folder.join(&name), bytes).unwrap();
                }
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| outcome(&bytes)));
            let outcomes = outcome.unwrap_or_else(|_| vec!["crashes"]);
            *counts.entry("files").or_default() += 1;
            for outcome in outcomes {
                *counts.entry(outcome).or_default() += 1;
                if matches!(outcome, "repaired" | "nothing to do" | "not a transcript") {
                    continue;
                }
                println!("seed {seed}, {}: {outcome}", done.join(" + "));
                if let Some(folder) = &options.write {
                    fs::create_dir_all(folder).unwrap();
                    fs::write(folder.join(format!("{seed}.jsonl")), &bytes).unwrap();
                }
            }
        }
        counts
    };
    let run = &run;
    let mut total: BTreeMap<&'static str, u64> = BTreeMap::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.threads)
            .map(|at| scope.spawn(move || run(at)))
            .collect();
        for worker in workers {
            for (name, count) in worker.join().unwrap() {
                *total.entry(name).or_default() += count;
            }
        }
    });
    for (name, count) in total {
        println!("{name}: {count}");
    }
}

/// A session, its damaged copy, and the kinds of damage.
fn session(corpus: &[Vec<u8>], seed: u64) -> (Vec<u8>, Vec<u8>, Vec<&'static str>) {
    let session = match corpus.get((seed / 2) as usize % corpus.len().max(1)) {
        Some(bytes) if seed % 2 == 1 => bytes.clone(),
        _ => generate::tidy_session(seed),
    };
    let kind = Kind::ALL[(seed / 3) as usize % Kind::ALL.len()];
    let known = seed
        .is_multiple_of(3)
        .then(|| Healthy::new(&session)?.damaged(kind, seed));
    let (bytes, done) = match known.flatten() {
        Some(case) => (case.bytes, vec![kind.name()]),
        None => several(&session, seed),
    };
    (session, bytes, done)
}

/// Returns the outcome of a repair of the file; several names if the repair has a defect.
fn outcome(bytes: &[u8]) -> Vec<&'static str> {
    // A folder of its own: other files of the session could hold what is missing in this one.
    let folder = tempfile::tempdir().unwrap();
    let mut file = tempfile::Builder::new()
        .suffix(".jsonl")
        .tempfile_in(folder.path())
        .unwrap();
    file.write_all(bytes).unwrap();
    let modified = fs::metadata(file.path()).unwrap().modified().unwrap();
    let source = Source::open(file.path());
    let Ok(source) = source.and_then(|source| source.check_messages().map(|()| source)) else {
        return vec!["not a transcript"];
    };
    let (repair, repaired) = repaired(source);
    let mut found = Vec::new();
    let is_touched = fs::read(file.path()).unwrap() != bytes
        || fs::metadata(file.path()).unwrap().modified().unwrap() != modified;
    if is_touched {
        found.push("input touched");
    }
    if let Some(refusal) = repair.refusal() {
        found.push(match refusal.name() {
            "shows-other" => "refused: shows other",
            "loses-entry" => "refused: loses an entry",
            _ => "refused: lint",
        });
        return found;
    }
    found.push(if repair.is_empty() {
        "nothing to do"
    } else {
        "repaired"
    });
    if !repair.is_empty() {
        let (again, _) = self::repaired(Source::from_bytes(&repaired[..], file.path()));
        if !again.is_empty() || again.refusal().is_some() {
            found.push("not idempotent");
        }
    }
    let before = shown(bytes, file.path(), Policy::Recover);
    let (recover, vendor) = (
        shown(&repaired, file.path(), Policy::Recover),
        shown(&repaired, file.path(), Policy::Vendor),
    );
    if recover.len() < before.len()
        || before
            .iter()
            .any(|id| id.is_some() && !recover.contains(id))
    {
        found.push("shows less");
    }
    if recover != vendor {
        found.push("vendor is not recover");
    }
    found
}

fn repaired(source: Source) -> (Repair, Vec<u8>) {
    let mut last = 0_u128;
    let mut new_id = || {
        last += 1;
        Uuid(0xFEED_0000_0000_4000_8000_0000_0000_0000 + last)
    };
    let repair = Repair::new(source, "2026-11-22T12:00:00.000Z", &mut new_id).unwrap();
    let mut bytes = vec![0; repair.repaired().len() as usize];
    repair.repaired().read_at(0, &mut bytes).unwrap();
    (repair, bytes)
}

/// The ids of the messages on a path.
fn shown(bytes: &[u8], path: &Path, policy: Policy) -> Vec<Option<String>> {
    let index = Index::load(&Source::from_bytes(bytes, path)).unwrap();
    let path = Tree::new(&index, policy).path();
    let entries = path
        .entries
        .iter()
        .map(|entry| index.entry(entry.entry_no()));
    let messages = entries.filter(|entry| entry.kind().is_message());
    messages
        .map(|entry| entry.uuid().map(|id| index.id_text(id)))
        .collect()
}

fn corpus(max_bytes: u64) -> Vec<Vec<u8>> {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut folders = vec![shared.join("corpus/files")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::metadata(&path).unwrap().len() <= max_bytes {
                files.push(path);
            }
        }
    }
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}
