//! Searches all sessions below a folder: `search ROOT QUERY [LIMIT]`.

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;

use transcript_catalog::{Catalog, Query, SearchOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, query, rest @ ..] = &arguments[..] else {
        return Err("usage: search ROOT QUERY [LIMIT]".into());
    };
    let limit = rest.first().map_or(Ok(20), |limit| limit.parse())?;
    let catalog = Catalog::open(root.as_ref())?;
    let query: Query = query.parse()?;
    let mut options = SearchOptions::new().limit(limit);
    if rest.len() > 1 {
        options = options.without_prefilter();
    }
    let mut search = catalog.search(&query, &options)?;
    for hit in &mut search {
        let hit = hit?;
        let line = hit.line.unwrap_or_default();
        let field = hit.field.name();
        println!("{}:{line} {field} {:?}", hit.session.id, hit.snippet);
    }
    println!("{:?}", search.end());
    for problem in search.problems() {
        println!("{problem}");
    }
    Ok(())
}
