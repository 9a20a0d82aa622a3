//! Prints what the sessions in a folder of projects cost, by month and model.
//!
//! `cargo run --release -p transcript-catalog --example usage -- ~/.claude/projects [CACHE]`

use std::error::Error;

use transcript_catalog::Catalog;
use transcript_catalog::usage::{By, Prices, Report, UsageOptions};

#[expect(clippy::print_stdout, reason = "an example prints what it found")]
fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args_os()
        .nth(1)
        .ok_or("a folder of projects is missing")?;
    let catalog = Catalog::open(root.as_ref())?;
    let mut options = UsageOptions::new();
    if let Some(cache) = std::env::args_os().nth(2) {
        options = options.cache(cache.into());
    }
    let usage = catalog.usage(&options);
    let prices = Prices::embedded();
    let rows = usage.rows(&Report::by(&[By::Month, By::Model]), &prices);
    let total = rows.total().clone();
    for row in rows {
        let sums = &row.sums;
        let (requests, output) = (sums.requests, sums.tokens.output);
        println!(
            "{} {} {requests} requests {output} tokens",
            row.keys[0], row.keys[1]
        );
    }
    println!("{:?}", total.sums);
    Ok(())
}
