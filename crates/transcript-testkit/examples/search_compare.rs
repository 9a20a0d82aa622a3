//! Compares the search with its slow model, on random trees and queries.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

#[path = "../tests/it/search/elsewhere.rs"]
mod elsewhere;

use elsewhere::Reader;
use transcript_testkit::model::search::{Query, Store};
use transcript_testkit::rng::Rng;
use transcript_testkit::trees;

fn main() {
    let mut counts = std::collections::BTreeMap::<usize, usize>::new();
    let mut bad = 0;
    let mut also = 0;
    for seed in 0..50 {
        let tree = trees::tree(seed);
        let folder = tempfile::tempdir().expect("a folder");
        tree.write(folder.path()).expect("a tree");
        let store = Store::read(folder.path(), &Reader);
        let mut rng = Rng::new(seed);
        for _ in 0..20 {
            let text = trees::query(&tree, &mut rng);
            let Some(query) = Query::parse(&text) else {
                bad += 1;
                continue;
            };
            let hits = store.search(&query);
            also += hits.iter().filter(|hit| !hit.also.is_empty()).count();
            *counts.entry(hits.len().next_power_of_two()).or_default() += 1;
        }
    }
    println!("{counts:?} bad {bad} also {also}");
}
