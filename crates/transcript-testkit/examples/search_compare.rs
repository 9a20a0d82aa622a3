//! Compares the search with its slow model, on random trees and queries, or on the sessions of a
//! folder.
//!
//! `cargo run --release -p transcript-testkit --example search_compare -- FIRST LAST QUERIES [FOLDER]`
//! takes the seeds from FIRST to LAST, and prints each difference; with FOLDER the queries have the
//! words of its sessions.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

#[path = "../tests/it/search/compare.rs"]
mod compare;
#[path = "../tests/it/search/elsewhere.rs"]
mod elsewhere;

use std::path::Path;

use compare::Compared;
use transcript_testkit::rng::Rng;
use transcript_testkit::trees::{self, Tree};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let (first, last) = (number(0).unwrap_or(0), number(1).unwrap_or(499));
    let queries = number(2).unwrap_or(20);
    let mut totals = Totals::default();
    match arguments.get(3) {
        Some(folder) => {
            let folder = Path::new(folder);
            let tree = Tree::read(folder).expect("a folder");
            let compared = Compared::read(folder);
            for seed in first..=last {
                totals.run(&tree, &compared, seed, queries);
            }
        }
        None => {
            for seed in first..=last {
                let tree = trees::tree(seed);
                let folder = tempfile::tempdir().expect("a folder");
                tree.write(folder.path()).expect("a tree");
                let compared = Compared::read(folder.path());
                totals.run(&tree, &compared, seed, queries);
            }
        }
    }
    println!("{totals:?}");
}

#[derive(Debug, Default)]
struct Totals {
    queries: u64,
    with_hits: u64,
    hits: u64,
    differences: u64,
}

impl Totals {
    fn run(&mut self, tree: &Tree, compared: &Compared, seed: u64, queries: u64) {
        let mut rng = Rng::new(seed);
        for _ in 0..queries {
            let text = trees::query(tree, &mut rng);
            self.queries += 1;
            match compared.compare(&text) {
                Ok(hits) => {
                    self.hits += hits as u64;
                    self.with_hits += u64::from(hits > 0);
                }
                Err(difference) => {
                    self.differences += 1;
                    println!("seed {seed}, {text:?}: {difference}");
                }
            }
        }
    }
}
