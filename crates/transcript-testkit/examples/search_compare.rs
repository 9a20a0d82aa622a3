//! Compares the search with its slow model, on random trees and queries, without filters, with new and
//! with old ones.
//!
//! `cargo run --release -p transcript-testkit --example search_compare -- FIRST LAST QUERIES [FOLDER]`
//! takes the seeds from FIRST to LAST, and prints each difference. Between queries it changes the files, and
//! damages the filters. With FOLDER the queries have the words of its sessions, which stay as they are.
//! `search_compare -- busy FIRST LAST QUERIES` searches on two threads and in two processes while the files
//! are written.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

#[path = "../tests/it/search/busy.rs"]
mod busy;
#[path = "../tests/it/search/compare.rs"]
mod compare;
#[path = "../tests/it/search/external_rules.rs"]
mod external_rules;
#[path = "../tests/it/search/walk.rs"]
mod walk;

use std::path::Path;
use std::process::ExitCode;

use compare::{Caches, Compared, QueryCounts};
use transcript_testkit::changes::Filters;
use transcript_testkit::rng::Rng;
use transcript_testkit::trees::{self, Tree};

/// The number of queries between two changes.
const QUERIES_PER_ROUND: usize = 4;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = match arguments.first().map(String::as_str) {
        Some("searcher") => {
            return match searcher(&arguments[1..]) {
                Ok(()) => ExitCode::SUCCESS,
                Err(difference) => {
                    println!("{difference}");
                    ExitCode::FAILURE
                }
            };
        }
        Some("busy") => arguments.remove(0),
        _ => "walk".to_owned(),
    };
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let (first, last) = (number(0).unwrap_or(0), number(1).unwrap_or(499));
    let queries = number(2).unwrap_or(20) as usize;
    let mut totals = Totals::default();
    match (arguments.get(3), mode.as_str()) {
        (_, "busy") => {
            let program = std::env::current_exe().expect("this program");
            for seed in first..=last {
                match busy::run(seed, queries, Some(&program)) {
                    Ok(searches) => totals.queries += searches,
                    Err(difference) => totals.differs(seed, "busy", &difference),
                }
            }
        }
        (Some(folder), _) => {
            let folder = Path::new(folder);
            let tree = Tree::read(folder).expect("a folder");
            let compared = Compared::read(folder);
            let (caches, mut filters) = (Caches::new(), Filters::default());
            for seed in first..=last {
                let mut rng = Rng::new(seed);
                for _ in 0..queries {
                    let text = trees::query(&tree, &mut rng);
                    totals.see(seed, &text, compared.compare(&text, &caches));
                }
                let damaged = filters.damage(&caches.warm(), &[], &mut rng);
                damaged.expect("filters can be written");
            }
        }
        _ => {
            let mut others = Vec::new();
            for seed in first..=last {
                let see = &mut |text: &str, found| totals.see(seed, text, found);
                let left = walk::walk(
                    seed,
                    queries.div_ceil(QUERIES_PER_ROUND),
                    QUERIES_PER_ROUND,
                    &others,
                    see,
                );
                others = left.expect("a tree");
            }
        }
    }
    println!("{totals:?}");
    match totals.differences {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Searches in another process: the arguments are those that [`busy::run`] passes.
fn searcher(arguments: &[String]) -> Result<(), String> {
    let [root, cache, seed, queries, is_growing] = arguments else {
        return Err("root, cache, seed, number, kind".to_owned());
    };
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    let seed = number(seed)?;
    let (tree, mut rng) = (trees::tree(seed), Rng::new(!seed));
    for _ in 0..number(queries)? {
        busy::one(
            &tree,
            Path::new(root),
            Path::new(cache),
            is_growing == "true",
            &mut rng,
        )?;
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Totals {
    queries: u64,
    with_hits: u64,
    found: QueryCounts,
    differences: u64,
}

impl Totals {
    fn see(&mut self, seed: u64, text: &str, found: Result<QueryCounts, String>) {
        self.queries += 1;
        match found {
            Ok(found) => {
                self.with_hits += u64::from(found.hits > 0);
                self.found.add(found);
            }
            Err(difference) => self.differs(seed, text, &difference),
        }
    }

    fn differs(&mut self, seed: u64, text: &str, difference: &str) {
        self.differences += 1;
        println!("seed {seed}, {text}: {difference}");
    }
}
