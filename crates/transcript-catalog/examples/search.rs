//! Searches all sessions below a folder: `search ROOT QUERY [LIMIT [CACHE]]`. With `-` as
//! cache every line is read.

#![expect(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;

use transcript_catalog::{Catalog, Query, SearchOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, query, rest @ ..] = &arguments[..] else {
        return Err("usage: search ROOT QUERY [LIMIT [CACHE]]".into());
    };
    let limit = rest.first().map_or(Ok(20), |limit| limit.parse())?;
    let catalog = Catalog::open(root.as_ref())?;
    let query: Query = query.parse()?;
    let mut options = SearchOptions::new().limit(limit);
    match rest.get(1).map(String::as_str) {
        None => {}
        Some("-") => options = options.without_prefilter(),
        Some(folder) => options = options.cache(folder),
    }
    let mut search = catalog.search(&query, &options)?;
    for hit in &mut search {
        let hit = hit?;
        let line = hit.line.unwrap_or_default();
        let field = hit.field.name();
        println!("{}:{line} {field} {:?}", hit.path.display(), hit.snippet);
        for copy in &hit.also {
            println!(
                "  also {}:{}",
                copy.path.display(),
                copy.line.unwrap_or_default()
            );
        }
    }
    println!("{:?}", search.end());
    for problem in search.problems() {
        println!("{problem}");
    }
    Ok(())
}
