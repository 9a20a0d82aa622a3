//! Asks random queries of a random tree, while its files and the filters of them change.

use std::fs;
use std::io;

use transcript_testkit::changes::{self, Changes, Filters};
use transcript_testkit::rng::Rng;
use transcript_testkit::trees;

use super::compare::{Caches, Compared, QueryCounts};

/// Asks this number of queries in each of this number of rounds, with a change before each round but the first.
/// `see` gets each query and what came of it. Returns the filters that are left, for the next tree.
pub(crate) fn walk(
    seed: u64,
    rounds: usize,
    queries: usize,
    others: &[Vec<u8>],
    see: &mut dyn FnMut(&str, Result<QueryCounts, String>),
) -> io::Result<Vec<Vec<u8>>> {
    let tree = trees::tree(seed);
    let folder = tempfile::tempdir()?;
    let root = folder.path();
    tree.write(root)?;
    let (mut files, mut filters) = (Changes::default(), Filters::default());
    files.age_all(root, &tree)?;
    let caches = Caches::new();
    let mut rng = Rng::new(seed);
    let (mut what, mut word) = ("new".to_owned(), None);
    let mut compared = Compared::read(root);
    for round in 0..rounds {
        for _ in 0..queries {
            let text = trees::query(&tree, &mut rng);
            // The first query after a change is for its new word, which a stale filter would miss.
            let text = word.take().unwrap_or(text);
            let found = compared.compare(&text, &caches);
            see(&format!("{text:?}, round {round}, {what}"), found);
        }
        // All files get filters, which the next change makes wrong.
        compared.search_all(&caches);
        what = match rng.below(3) {
            0 => filters.damage(&caches.warm(), others, &mut rng)?,
            _ => {
                let changed = files.change(root, &tree, &mut rng)?;
                compared = Compared::read(root);
                word = changed.word;
                changed.what
            }
        };
    }
    changes::files(&caches.warm())?
        .into_iter()
        .map(fs::read)
        .collect()
}
