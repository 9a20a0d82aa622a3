//! The damage campaign: hurts healthy sessions and counts what each policy brings back.
//!
//! `cargo run --profile test -p transcript-resume --example campaign -- [--files 20000] [--seed 0]
//! [--threads 1] [--max-bytes 2000000] [--list-failures KIND] [--write DIR]
//! [--validator tests/validate_request.py]`
//!
//! Half of the files come from the shared corpus, if it is present and has a place for the damage,
//! the rest from the generator. `--list-failures` names the files of one kind that fell short, the
//! worst first; `--write` keeps them. `--validator` makes the request of each file under `recover`
//! and runs the lint and this program on it.
//!
//! `campaign -- --compare 20000 [--seed 0] [--threads 1] [--write DIR]` damages sessions in several
//! ways at once instead, and names by its seed each one of which `recover` sends fewer messages, or
//! fewer blocks, than `vendor`.

#![expect(clippy::print_stdout, reason = "the table is the point")]
#![expect(clippy::unwrap_used, reason = "an example may stop at the first error")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use transcript_reader::{Bodies, Index, Source};
use transcript_resume::request::{self, Request};
use transcript_resume::{Policy, Tree};
use transcript_testkit::campaign::several::several;
use transcript_testkit::campaign::{Case, Healthy, Kind, Shown};
use transcript_testkit::{generate, shared};

/// The name of undamaged sessions in the table.
const UNDAMAGED: &str = "(none)";

#[path = "../tests/it/sent.rs"]
mod sent;

struct Options {
    files: usize,
    /// The number of sessions to damage in several ways at once.
    compare: Option<u64>,
    seed: u64,
    threads: usize,
    max_bytes: u64,
    /// The name of a kind, or [`UNDAMAGED`].
    list: Option<String>,
    write: Option<PathBuf>,
    validator: Option<PathBuf>,
}

fn main() {
    let options = options();
    if let Some(count) = options.compare {
        compare(&options, count);
        return;
    }
    let corpus = corpus(options.max_bytes);
    let workers: Vec<Tallies> = std::thread::scope(|scope| {
        let (options, corpus) = (&options, &corpus);
        let run = |worker| scope.spawn(move || Worker::new(options, worker).run(corpus));
        let workers: Vec<_> = (0..options.threads).map(run).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .collect()
    });
    let mut total = Tallies::default();
    for worker in workers {
        total.add(worker);
    }
    print_table(&total);
    if options.validator.is_some() {
        total.requests.print();
    }
    if options.list.is_some() {
        list_failures(&mut total.failures, options.write.as_deref());
    }
}

fn options() -> Options {
    let mut options = Options {
        files: 20_000,
        compare: None,
        seed: 0,
        threads: 1,
        max_bytes: 2_000_000,
        list: None,
        write: None,
        validator: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match name.as_str() {
            "--files" => options.files = value.parse().unwrap(),
            "--compare" => options.compare = Some(value.parse().unwrap()),
            "--seed" => options.seed = value.parse().unwrap(),
            "--threads" => options.threads = value.parse().unwrap(),
            "--max-bytes" => options.max_bytes = value.parse().unwrap(),
            "--list-failures" => options.list = Some(value),
            "--write" => options.write = Some(value.into()),
            "--validator" => options.validator = Some(value.into()),
            _ => panic!("unknown option {name}"),
        }
    }
    options
}

/// Compares what `recover` and `vendor` send of `count` damaged sessions; every second one is of
/// the corpus, where that is.
fn compare(options: &Options, count: u64) {
    let corpus = all_of_corpus(200_000.min(options.max_bytes));
    let (first, threads) = (options.seed, options.threads as u64);
    let run = |worker: u64| {
        let mut totals = [0_usize; 4];
        for seed in (first + worker..first + count).step_by(threads as usize) {
            let session = match corpus.get((seed / 2) as usize % corpus.len().max(1)) {
                Some(bytes) if seed % 2 == 1 => bytes.clone(),
                _ => generate::tidy_session(seed),
            };
            let (bytes, done) = several(&session, seed);
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            // Garbage at the start may make it another format.
            let Ok(source) = Source::open(file.path()) else {
                continue;
            };
            let index = Index::load(&source).unwrap();
            let [recover, vendor] = sent::both(&source, &index);
            let has_fewer = recover.messages.len() < vendor.messages.len();
            let has_fewer_blocks = recover.blocks < vendor.blocks;
            totals[0] += 1;
            totals[1] += usize::from(recover.messages.len() > vendor.messages.len());
            totals[2] += usize::from(has_fewer);
            totals[3] += usize::from(has_fewer_blocks && !has_fewer);
            if has_fewer || has_fewer_blocks {
                println!(
                    "seed {seed}, {}: messages {} of {}, blocks {} of {}",
                    done.join(" + "),
                    recover.messages.len(),
                    vendor.messages.len(),
                    recover.blocks,
                    vendor.blocks
                );
                if let Some(folder) = &options.write {
                    fs::create_dir_all(folder).unwrap();
                    fs::write(folder.join(format!("{seed}.jsonl")), &bytes).unwrap();
                }
            }
        }
        totals
    };
    let run = &run;
    let totals = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|at| scope.spawn(move || run(at)))
            .collect();
        let totals = workers.into_iter().map(|worker| worker.join().unwrap());
        totals.fold([0; 4], |sum, one| {
            std::array::from_fn(|at| sum[at] + one[at])
        })
    });
    let [files, more, fewer, fewer_blocks] = totals;
    println!(
        "{files} files: recover sends more messages of {more}, fewer of {fewer}, as many but fewer blocks of {fewer_blocks}"
    );
}

/// Every file of the corpus up to `max_bytes`, healthy or not.
fn all_of_corpus(max_bytes: u64) -> Vec<Vec<u8>> {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return Vec::new();
    };
    let files = files_under(shared.join("corpus/files"), max_bytes);
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// The files of the corpus that nothing is wrong with.
fn corpus(max_bytes: u64) -> Vec<(String, Healthy)> {
    let Some(shared) = shared() else {
        println!("skipped: no shared data");
        return Vec::new();
    };
    let files = files_under(shared.join("corpus/files"), max_bytes);
    let count = files.len();
    let healthy = files.into_iter().filter_map(|file| {
        let healthy = Healthy::new(&fs::read(&file).unwrap())?;
        Some((file.file_name()?.to_string_lossy().into_owned(), healthy))
    });
    let healthy: Vec<_> = healthy.collect();
    println!("corpus: {} of {count} files are healthy\n", healthy.len());
    healthy
}

/// The files in a folder and those in it, up to `max_bytes`, by name.
fn files_under(folder: PathBuf, max_bytes: u64) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder];
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
    files
}

/// The counts for one kind of damage.
#[derive(Default)]
struct Tally {
    files: usize,
    truth: usize,
    recover: usize,
    vendor: usize,
    out_of_order: usize,
    foreign: usize,
    foreign_vendor: usize,
    fewer: usize,
    extra: usize,
    unproven: usize,
    undecided: usize,
}

impl Tally {
    fn count(&mut self, case: &Case, recover: &Shown, vendor: &Shown) {
        self.files += 1;
        self.truth += case.truth.len();
        self.undecided += case.undecided;
        self.recover += recover.truth;
        self.vendor += vendor.truth;
        self.out_of_order += usize::from(!recover.in_order);
        self.foreign += usize::from(recover.foreign > 0);
        self.foreign_vendor += usize::from(vendor.foreign > 0);
        self.fewer += usize::from(recover.truth < vendor.truth);
        self.extra += usize::from(recover.extra > 0);
        self.unproven += recover.unproven;
    }

    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.truth += other.truth;
        self.recover += other.recover;
        self.vendor += other.vendor;
        self.out_of_order += other.out_of_order;
        self.foreign += other.foreign;
        self.foreign_vendor += other.foreign_vendor;
        self.fewer += other.fewer;
        self.extra += other.extra;
        self.unproven += other.unproven;
        self.undecided += other.undecided;
    }

    fn row(&self, name: &str) {
        let percent = |part: usize| 100.0 * part as f64 / self.truth.max(1) as f64;
        println!(
            "| {name} | {} | {} | {:.2} | {:.2} | {} | {} | {} | {} | {} | {} | {} |",
            self.files,
            self.truth,
            percent(self.recover),
            percent(self.vendor),
            self.foreign,
            self.foreign_vendor,
            self.fewer,
            self.extra,
            self.out_of_order,
            self.undecided,
            self.unproven,
        );
    }
}

#[derive(Default)]
struct Tallies {
    undamaged: Tally,
    kinds: [Tally; Kind::ALL.len()],
    failures: Vec<Failure>,
    requests: Requests,
}

impl Tallies {
    fn add(&mut self, other: Self) {
        self.undamaged.add(&other.undamaged);
        for (own, other) in self.kinds.iter_mut().zip(&other.kinds) {
            own.add(other);
        }
        self.failures.extend(other.failures);
        self.requests.add(&other.requests);
    }
}

/// The results of lint and validator for requests.
#[derive(Default)]
struct Requests {
    /// Those that the validator has not seen: arrays of messages, one a line.
    lines: Vec<u8>,
    /// The places of those that the lint refuses.
    refused: BTreeSet<usize>,
    waiting: usize,
    all: usize,
    by_lint: usize,
    by_validator: usize,
    by_only_one: usize,
}

impl Requests {
    fn push(&mut self, request: &Request, validator: &Path) {
        const BATCH: usize = 64 << 20;
        let messages: Vec<String> = request.messages.iter().map(|one| one.json()).collect();
        writeln!(self.lines, "[{}]", messages.join(",")).unwrap();
        self.waiting += 1;
        if !transcript_messages::lint(&request.messages).is_ok() {
            self.refused.insert(self.waiting);
        }
        if self.lines.len() > BATCH {
            self.validate(validator);
        }
    }

    fn validate(&mut self, validator: &Path) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&self.lines).unwrap();
        let mut python = Command::new("python3");
        let output = python.arg(validator).arg(file.path()).output().unwrap();
        assert!(output.stderr.is_empty(), "the validator failed");
        let said = String::from_utf8(output.stdout).unwrap();
        let number = |line: &str| {
            line.strip_prefix("request ")?
                .split(',')
                .next()?
                .parse()
                .ok()
        };
        let refused: BTreeSet<usize> = said.lines().map(|line| number(line).unwrap()).collect();
        self.all += std::mem::take(&mut self.waiting);
        self.by_lint += self.refused.len();
        self.by_validator += refused.len();
        self.by_only_one += self.refused.symmetric_difference(&refused).count();
        self.lines.clear();
        self.refused.clear();
    }

    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.by_lint += other.by_lint;
        self.by_validator += other.by_validator;
        self.by_only_one += other.by_only_one;
    }

    fn print(&self) {
        println!(
            "\n{} requests under recover: refused by the lint {}, by the validator {}, by one of them alone {}",
            self.all, self.by_lint, self.by_validator, self.by_only_one
        );
    }
}

/// A file of which policy `recover` shows too little or too much.
struct Failure {
    name: String,
    case: Case,
    recover: Shown,
    vendor: Shown,
}

impl Failure {
    fn weight(&self) -> usize {
        let missing = self.case.truth.len() - self.recover.truth;
        missing + self.recover.foreign + self.recover.extra
    }
}

struct Worker<'o> {
    options: &'o Options,
    number: usize,
    /// The number of files to make of each kind.
    quota: usize,
    tallies: Tallies,
    file: tempfile::NamedTempFile,
}

impl<'o> Worker<'o> {
    fn new(options: &'o Options, number: usize) -> Self {
        Self {
            options,
            number,
            quota: options.files.div_ceil(Kind::ALL.len() * options.threads),
            tallies: Tallies::default(),
            file: tempfile::NamedTempFile::new().unwrap(),
        }
    }

    fn run(mut self, corpus: &[(String, Healthy)]) -> Tallies {
        let own = corpus
            .iter()
            .skip(self.number)
            .step_by(self.options.threads);
        let own: Vec<_> = own.collect();
        for (place, (name, healthy)) in own.iter().enumerate() {
            self.count_undamaged(name, healthy);
            for (at, kind) in Kind::ALL.into_iter().enumerate() {
                // An even share of what is left of the half.
                let left = (self.quota / 2).saturating_sub(self.tallies.kinds[at].files);
                let share = left.div_ceil(own.len() - place) as u64;
                for seed in 0..share {
                    self.hurt(name, healthy, kind, self.options.seed + seed);
                }
            }
        }
        let mut seed = self.options.seed + self.number as u64;
        while self
            .tallies
            .kinds
            .iter()
            .any(|tally| tally.files < self.quota)
        {
            if let Some(healthy) = Healthy::new(&generate::tidy_session(seed)) {
                self.count_undamaged(&format!("{seed}-generated"), &healthy);
                for (at, kind) in Kind::ALL.into_iter().enumerate() {
                    if self.tallies.kinds[at].files < self.quota {
                        self.hurt("generated", &healthy, kind, seed);
                    }
                }
            }
            seed += self.options.threads as u64;
        }
        if let Some(validator) = &self.options.validator {
            self.tallies.requests.validate(validator);
        }
        self.tallies
    }

    fn count_undamaged(&mut self, source: &str, healthy: &Healthy) {
        let case = healthy.undamaged();
        let (recover, vendor) = self.compare(&case);
        self.tallies.undamaged.count(&case, &recover, &vendor);
        self.note_failure(
            UNDAMAGED,
            format!("undamaged-{source}"),
            case,
            recover,
            vendor,
        );
    }

    fn hurt(&mut self, source: &str, healthy: &Healthy, kind: Kind, seed: u64) {
        let Some(case) = healthy.damaged(kind, seed) else {
            return;
        };
        let (recover, vendor) = self.compare(&case);
        let at = Kind::ALL.iter().position(|other| *other == kind).unwrap();
        self.tallies.kinds[at].count(&case, &recover, &vendor);
        let name = format!("{}-{seed}-{source}", kind.name());
        self.note_failure(kind.name(), name, case, recover, vendor);
    }

    fn note_failure(
        &mut self,
        kind: &str,
        name: String,
        case: Case,
        recover: Shown,
        vendor: Shown,
    ) {
        let failure = Failure {
            name,
            case,
            recover,
            vendor,
        };
        let falls_short = failure.weight() > 0 || !failure.recover.in_order;
        if self.options.list.as_deref() == Some(kind) && falls_short {
            self.tallies.failures.push(failure);
        }
    }

    /// Compares the paths of the policies `recover` and `vendor` with the truth, in this order.
    fn compare(&mut self, case: &Case) -> (Shown, Shown) {
        fs::write(self.file.path(), &case.bytes).unwrap();
        let source = Source::open(self.file.path()).unwrap();
        let index = Index::load(&source).unwrap();
        if let Some(validator) = &self.options.validator {
            let tree = Tree::new(&index, Policy::Recover);
            let options = request::RequestOptions::new().prompt("NEXT");
            let request = options.request(&tree, &mut Bodies::new(&source)).unwrap();
            if request.is_resumable() {
                self.tallies.requests.push(&request, validator);
            }
        }
        let shown = |policy| {
            let path = Tree::new(&index, policy).path();
            let uuids: Vec<String> = path
                .entries
                .iter()
                .filter_map(|entry| index.entry(entry.entry_no()).uuid())
                .map(|id| index.id_text(id))
                .collect();
            case.compare(uuids.iter().map(String::as_str))
        };
        (shown(Policy::Recover), shown(Policy::Vendor))
    }
}

fn print_table(total: &Tallies) {
    println!(
        "| kind | files | truth | recover % | vendor % | files with foreign | vendor's | recover < vendor | files with extra | out of order | undecided | undecided shown |"
    );
    println!("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
    total.undamaged.row(UNDAMAGED);
    let mut all = Tally::default();
    for (kind, tally) in Kind::ALL.iter().zip(&total.kinds) {
        tally.row(kind.name());
        all.add(tally);
    }
    all.row("all");
}

fn list_failures(failures: &mut [Failure], write: Option<&Path>) {
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.weight()));
    println!("\n{} files fall short", failures.len());
    for failure in failures.iter().take(40) {
        println!(
            "{}: truth {}, recover {:?}, vendor {:?}",
            failure.name,
            failure.case.truth.len(),
            failure.recover,
            failure.vendor
        );
        let Some(folder) = write else { continue };
        fs::create_dir_all(folder).unwrap();
        let name = failure.name.trim_end_matches(".jsonl");
        let mut file = fs::File::create(folder.join(format!("{name}.jsonl"))).unwrap();
        file.write_all(&failure.case.bytes).unwrap();
        let mut unproven: Vec<&str> = failure.case.unproven.iter().map(String::as_str).collect();
        unproven.sort_unstable();
        let truth = failure.case.truth.join("\n");
        let note = format!("{truth}\n--- unproven\n{}\n", unproven.join("\n"));
        fs::write(folder.join(format!("{name}.truth")), note).unwrap();
    }
}
