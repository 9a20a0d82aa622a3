//! Asks the fifty questions of `questions/corpus.tsv`, and prints for each the place of the session
//! that answers it among the sessions found.
//!
//! `cargo run --release -p transcript-testkit --example search_questions -- FOLDER`, where FOLDER is
//! the corpus as a projects folder.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::path::Path;

use transcript_catalog::{Catalog, Query, SearchOptions};

const QUESTIONS: &str = include_str!("../questions/corpus.tsv");

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let catalog = Catalog::open(Path::new(&folder)).expect("a folder");
    let (mut all, mut in_first_three) = (0, 0);
    for line in QUESTIONS.lines().skip(1) {
        let mut columns = line.split('\t');
        let text = columns.next().unwrap_or_default();
        let wanted = columns.next().unwrap_or_default();
        let query: Query = text.parse().expect("a good query");
        let options = SearchOptions::new();
        let search = catalog.search(&query, &options).expect("a search");
        // Sessions in the order of their best hits.
        let mut sessions: Vec<String> = Vec::new();
        for hit in search.flatten() {
            if !sessions.contains(&hit.session.id) {
                sessions.push(hit.session.id.clone());
            }
        }
        let place = sessions.iter().position(|id| id == wanted);
        all += 1;
        in_first_three += usize::from(place.is_some_and(|place| place < 3));
        let place = place.map_or("-".to_owned(), |place| (place + 1).to_string());
        println!("{place:>3} of {:<3} {text}", sessions.len());
    }
    println!("{in_first_three} of {all} in the first three");
}
