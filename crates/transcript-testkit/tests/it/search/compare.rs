//! Compares the search with its model.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use transcript_catalog::{Catalog, Hit, Query, SearchOptions, SearchTotals, Sort};
use transcript_testkit::model::search;
use transcript_testkit::trees;

/// A store, as both see it.
pub(crate) struct Compared {
    catalog: Catalog,
    store: search::Store,
}

/// Folders of filters.
pub(crate) struct Caches {
    folder: TempDir,
}

impl Caches {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    /// The one that is kept from query to query.
    pub(crate) fn warm(&self) -> PathBuf {
        self.folder.path().join("warm")
    }

    /// One that is empty.
    fn cold(&self) -> PathBuf {
        let cold = self.folder.path().join("cold");
        if cold.exists() {
            fs::remove_dir_all(&cold).expect("a folder can be removed");
        }
        cold
    }
}

/// The number of hits of a query, and of the bytes that were read for it without filters and with existing ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueryCounts {
    pub(crate) hits: u64,
    pub(crate) bytes: u64,
    pub(crate) bytes_warm: u64,
}

impl QueryCounts {
    pub(crate) fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.bytes += other.bytes;
        self.bytes_warm += other.bytes_warm;
    }
}

impl Compared {
    pub(crate) fn read(root: &Path) -> Self {
        Self {
            catalog: Catalog::open(root).expect("a folder"),
            store: search::Store::read(root, &super::external_rules::Reader),
        }
    }

    /// Compares the model, a scan, a search that makes filters, one that has those of the same query, and
    /// one that has those of whatever was before.
    ///
    /// # Errors
    /// The first difference.
    pub(crate) fn compare(&self, text: &str, caches: &Caches) -> Result<QueryCounts, String> {
        // The filters after the mark are added to the query.
        let (text, added) = text
            .split_once(trees::ADDED_FILTERS_MARK)
            .unwrap_or((text, ""));
        let query = match (text.parse::<Query>(), search::Query::parse(text)) {
            (Ok(query), Some(model)) => (query, model),
            (Err(_), None) => return Ok(QueryCounts::default()),
            (Ok(_), None) => return Err("only the model refuses it".to_owned()),
            (Err(error), Some(_)) => return Err(format!("only the model takes it: {error}")),
        };
        let (mut query, mut model) = query;
        for (key, value) in added.split(' ').filter_map(|filter| filter.split_once(':')) {
            let wrong = || Err("since and until are not compared".to_owned());
            let is_good = query.add_filter(key, value, &|_| wrong()).is_ok();
            if is_good != model.add(key, value) {
                return Err(format!("only one takes {key}:{value}"));
            }
        }
        let expected = self.store.search(&model);
        let options = SearchOptions::new().snippet(usize::MAX);
        let (found, end) = self.hits(&query, &options)?;
        let mut sorted: Vec<search::Hit> = found.iter().map(of_model).collect();
        sorted.sort();
        if sorted != expected {
            return Err(difference(&sorted, &expected));
        }
        for hit in &found {
            check_matches(hit, &model)?;
        }
        let time = options.clone().sort(Sort::Time);
        let (by_time, _) = self.hits(&query, &time)?;
        let mut sorted: Vec<search::Hit> = by_time.iter().map(of_model).collect();
        sorted.sort();
        if sorted != expected {
            return Err(format!("by time: {}", difference(&sorted, &expected)));
        }
        self.same(
            "with a limit",
            &query,
            &options.clone().limit(2),
            &found[..found.len().min(2)],
        )?;
        let cold = options.clone().cache(caches.cold());
        let ends = [
            self.same("filters are made", &query, &cold, &found)?,
            self.same("filters were made", &query, &cold, &found)?,
            self.same("filters", &query, &options.cache(caches.warm()), &found)?,
        ];
        self.same(
            "filters, by time",
            &query,
            &time.cache(caches.warm()),
            &by_time,
        )?;
        for mut other in ends {
            other.bytes = end.bytes;
            if other != end {
                return Err(format!("filters: {other:?}, not {end:?}"));
            }
        }
        Ok(QueryCounts {
            hits: end.hits,
            bytes: end.bytes,
            bytes_warm: ends[2].bytes,
        })
    }

    /// Searches all files, so that all have filters.
    pub(crate) fn search_all(&self, caches: &Caches) {
        let query = "-agent:nobody".parse().expect("a query");
        let options = SearchOptions::new().cache(caches.warm()).limit(0);
        self.catalog
            .search(&query, &options)
            .expect("not cancelled");
    }

    /// Checks that a search finds the same hits in the same order.
    fn same(
        &self,
        what: &str,
        query: &Query,
        options: &SearchOptions,
        expected: &[Hit],
    ) -> Result<SearchTotals, String> {
        let (found, end) = self.hits(query, options)?;
        let found: Vec<search::Hit> = found.iter().map(of_model).collect();
        let expected: Vec<search::Hit> = expected.iter().map(of_model).collect();
        if found == expected {
            Ok(end)
        } else {
            Err(format!("{what}: {}", difference(&found, &expected)))
        }
    }

    fn hits(
        &self,
        query: &Query,
        options: &SearchOptions,
    ) -> Result<(Vec<Hit>, SearchTotals), String> {
        let mut search = self
            .catalog
            .search(query, options)
            .map_err(|e| e.to_string())?;
        let hits: Result<Vec<Hit>, _> = search.by_ref().collect();
        let hits = hits.map_err(|error| error.to_string())?;
        match search.problems().first() {
            Some(problem) => Err(problem.to_string()),
            None => Ok((hits, search.end())),
        }
    }
}

fn of_model(hit: &Hit) -> search::Hit {
    let also = hit.also.iter().map(|copy| {
        let session = copy.session_id.clone();
        (session, copy.path.clone(), copy.line, copy.uuid.clone())
    });
    search::Hit {
        path: hit.path.clone(),
        line: hit.line,
        offset: hit.offset,
        session: hit.session.id.clone(),
        uuid: hit.uuid.clone(),
        stored: hit.stored_result.clone(),
        role: hit.role.map(|role| role.name()),
        field: hit.field.name(),
        block: hit.block.map(|block| block as usize),
        agent: hit.agent_id.clone(),
        live: hit.is_live,
        in_context: hit.is_in_context,
        text: hit.snippet.clone(),
        also: also.collect(),
    }
}

/// Checks that the matches are places of terms, in order, without overlaps, and that no term of the
/// text is omitted.
fn check_matches(hit: &Hit, query: &search::Query) -> Result<(), String> {
    let matches: Vec<(usize, usize)> = hit.matches.iter().map(|at| (at.start, at.end)).collect();
    let terms = query.places(&hit.snippet);
    let is_place = |at: &(usize, usize)| terms.iter().any(|places| places.contains(at));
    let is_apart = matches.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    // A place may be hidden by the match of another term that overlaps it.
    let is_shown = |place: &(usize, usize)| {
        let is_empty = place.0 == place.1;
        is_empty
            || matches.contains(place)
            || matches.iter().any(|at| at.0 < place.1 && place.0 < at.1)
    };
    let is_complete = |places: &Vec<_>| places.is_empty() || places.iter().any(is_shown);
    if is_apart && matches.iter().all(is_place) && terms.iter().all(is_complete) {
        Ok(())
    } else {
        let terms = format!("{terms:?}");
        let start: String = hit.snippet.chars().take(80).collect();
        Err(format!("matches {matches:?} of {terms:.200} in {start:?}"))
    }
}

/// Describes the first hits in which two lists differ.
fn difference(found: &[search::Hit], expected: &[search::Hit]) -> String {
    let more: Vec<_> = found.iter().filter(|hit| !expected.contains(hit)).collect();
    let less: Vec<_> = expected.iter().filter(|hit| !found.contains(hit)).collect();
    let counts = format!("{} wrong, {} missing", more.len(), less.len());
    let is_pair = |found: &search::Hit, expected: &search::Hit| {
        (&found.path, found.offset) == (&expected.path, expected.offset)
    };
    let pairs = more
        .iter()
        .flat_map(|found| less.iter().map(move |other| (*found, *other)));
    if let Some((found, expected)) = pairs.clone().find(|(found, other)| is_pair(found, other)) {
        let lines = |hit: &search::Hit| -> Vec<String> {
            format!("{hit:#?}").lines().map(str::to_owned).collect()
        };
        let (found, expected) = (lines(found), lines(expected));
        let only = |own: &[String], others: &[String]| {
            let own = own.iter().filter(|line| !others.contains(line));
            own.map(|line| format!("{line:.300}"))
                .collect::<Vec<_>>()
                .join("")
        };
        let (own, others) = (only(&found, &expected), only(&expected, &found));
        let place = found[1..4].concat();
        return format!("{counts}\n  at      {place}\n  found   {own}\n  expected{others}");
    }
    let short = |hit: Option<&&search::Hit>| match hit {
        None => "-".to_owned(),
        Some(hit) => {
            let (path, field, text) = (hit.path.display(), hit.field, &hit.text);
            let text: String = text.chars().take(60).collect();
            format!("{path} {} {:?} {field} {text:?}", hit.offset, hit.stored)
        }
    };
    let (first, other) = (short(more.first()), short(less.first()));
    format!("{counts}\n  found    {first}\n  expected {other}")
}
