//! The cache changes no answer when files are edited in place, before and after they grow.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use transcript_catalog::usage::{By, Prices, Report, UsageOptions};
use transcript_catalog::{Catalog, SearchOptions};
use transcript_testkit::rng::Rng;

use crate::prefilter::key;
use crate::store::Store;

/// The number of changes to each tree.
const CHANGES: u64 = 25;
/// Words of the same length.
const WORDS: [&str; 4] = ["heron", "egret", "stork", "crane"];

/// The changes of a file between two searches.
const STEPS: [&[&str]; 8] = [
    &["append"],
    &["append"],
    &["edit"],
    &["edit"],
    &["append", "edit"],
    &["edit", "append"],
    &["damage", "append"],
    &["tear", "edit"],
];

/// The number of changes. The environment may ask for more.
fn rounds() -> u64 {
    let wanted = std::env::var("TRANSCRIPT_CATALOG_ROUNDS");
    let wanted = wanted.ok().and_then(|rounds| rounds.parse().ok());
    wanted.unwrap_or(200)
}

fn line(number: usize, rng: &mut Rng) -> String {
    let (word, tokens) = (rng.pick(&WORDS), rng.range(100, 999));
    // Some lines are long, so that files have several pieces and rests of each size.
    let filler = "lorem ipsum ".repeat(*rng.pick(&[1, 1, 1, 1, 1, 20, 5_000]));
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"u{number}\",\"sessionId\":\"s\",\"timestamp\":\"2026-11-20T10:00:00Z\",\
         \"message\":{{\"id\":\"m{number}\",\"role\":\"assistant\",\"model\":\"claude-opus-4-5\",\
         \"content\":[{{\"type\":\"text\",\"text\":\"{word} {filler}\"}}],\
         \"usage\":{{\"input_tokens\":{tokens},\"output_tokens\":1}}}}}}\n"
    )
}

/// Files that are changed, and two cache folders for them.
struct Edited {
    store: Store,
    cache: TempDir,
    paths: Vec<PathBuf>,
    /// The number of the next line.
    next: usize,
    clock: u64,
}

impl Edited {
    fn new(rng: &mut Rng) -> Self {
        let mut edited = Self {
            store: Store::new(),
            cache: tempfile::tempdir().unwrap(),
            paths: Vec::new(),
            next: 0,
            clock: 0,
        };
        for name in ["-p/a.jsonl", "-p/b.jsonl", "-q/c.jsonl"] {
            let count = rng.range(1, 30);
            let lines = edited.lines(count, rng);
            let path = edited.store.write(name, lines);
            edited.age(&path);
            edited.paths.push(path);
        }
        edited
    }

    fn lines(&mut self, count: usize, rng: &mut Rng) -> String {
        let numbers = self.next..self.next + count;
        self.next += count;
        numbers.map(|number| line(number, rng)).collect()
    }

    /// Makes a file look quiet: without a writer.
    fn age(&mut self, path: &Path) {
        self.clock += 1;
        let long_ago = SystemTime::now() - Duration::from_secs(100_000);
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(long_ago + Duration::from_secs(self.clock))
            .unwrap();
    }

    /// Grows a file, edits it in place, or both, in each order.
    fn change(&mut self, rng: &mut Rng) -> String {
        let path = rng.pick(&self.paths).clone();
        let what = *rng.pick(&STEPS);
        for step in what {
            match *step {
                "edit" => edit(&path, rng),
                "damage" => damage(&path, rng),
                _ => self.append(&path, *step == "tear", rng),
            }
        }
        // A file that was just written is read in another way than one that is left alone.
        let is_aged = rng.below(3) == 0;
        if is_aged {
            self.age(&path);
        }
        format!("{what:?} {} aged {is_aged}", path.display())
    }

    fn append(&mut self, path: &Path, is_torn: bool, rng: &mut Rng) {
        let count = *rng.pick(&[1, 1, 1, 3, 30]);
        let mut lines = self.lines(count, rng).into_bytes();
        if is_torn {
            lines.truncate(rng.range(1, lines.len()));
        }
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(&lines).unwrap();
    }

    /// Returns what searches and usage say.
    fn answers(&self, cache: Option<&Path>) -> Vec<String> {
        let mut answers = Vec::new();
        for word in WORDS {
            let mut options = SearchOptions::new();
            if let Some(folder) = cache {
                options = options.cache(folder.join("search"));
            }
            let (hits, end) = self.store.search_with(word, &options);
            answers.push(format!("{word}: {} hits, {} unread", end.hits, end.unread));
            answers.extend(hits.iter().map(key));
        }
        let mut options = UsageOptions::new();
        if let Some(folder) = cache {
            options = options.cache(folder.join("usage"));
        }
        let catalog = Catalog::open(self.store.root()).unwrap();
        let usage = catalog.usage(&options);
        let rows = usage.rows(&Report::by(&[By::Session]), &Prices::embedded());
        answers.push(format!("{:?}", rows.total().sums));
        answers.extend(rows.map(|row| format!("{row:?}")));
        answers
    }
}

/// Writes other words and numbers of the same length over some of those in a file.
fn edit(path: &Path, rng: &mut Rng) {
    let bytes = fs::read(path).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    for _ in 0..rng.range(1, 4) {
        let (key, new) = match rng.below(2) {
            0 => ("\"text\":\"", (*rng.pick(&WORDS)).to_owned()),
            _ => ("\"input_tokens\":", rng.range(100, 999).to_string()),
        };
        let places: Vec<usize> = memchr::memmem::find_iter(&bytes, key).collect();
        if places.is_empty() {
            continue;
        }
        let at = rng.pick(&places) + key.len();
        if at + new.len() < bytes.len() {
            file.write_all_at(new.as_bytes(), at as u64).unwrap();
        }
    }
}

/// Writes over one byte.
fn damage(path: &Path, rng: &mut Rng) {
    let len = fs::metadata(path).unwrap().len();
    let file = File::options().write(true).open(path).unwrap();
    let at = rng.below(len as usize) as u64;
    file.write_all_at(&[*rng.pick(b"\"{}x\n\0")], at).unwrap();
}

#[test]
fn edits_in_place_before_and_after_growth_change_no_answer() {
    let mut differences = Vec::new();
    let rounds = rounds();
    for seed in 0..rounds.div_ceil(CHANGES) {
        let rng = &mut Rng::new(seed);
        let mut edited = Edited::new(rng);
        let mut what = "new".to_owned();
        for round in 0..CHANGES {
            // Sometimes there is no search between two changes.
            if rng.below(4) > 0 {
                let expected = edited.answers(None);
                if edited.answers(Some(edited.cache.path())) != expected {
                    differences.push(format!("seed {seed}, round {round}: {what}"));
                }
            }
            what = edited.change(rng);
        }
    }
    let count = differences.len();
    assert!(count == 0, "{count} of {rounds}: {differences:#?}");
}
