//! Finds texts in sessions.

use std::path::PathBuf;

use jiff::Zoned;
use serde::Deserialize;
#[cfg(feature = "schema")]
use serde::Serialize;
use transcript_catalog::{
    Catalog, CatalogSession, Hit, Query, QueryError, Search, SearchOptions, Sort, moment,
};

use crate::context::{Context, Selection};
use crate::failure::Failure;
use crate::sink::{Result, Sink};
use crate::wire::{FoundSession, HitRecord, SearchEnd, SearchRecord};

/// The average length of a line of the context of a hit, in characters.
const CONTEXT_LINE_LEN: usize = 400;
/// The maximum length of a snippet, in characters.
const MAX_SNIPPET_LEN: usize = 64 << 10;

/// The options of a search: the query, the sessions, the limit.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchSettings {
    /// The query: words, phrases, and filters such as `role:user`. docs/search.md describes it.
    pub query: String,
    /// Only entries that contain this text, ignoring case.
    pub text: Option<String>,
    /// Only entries of one of these roles: `user`, `assistant`, `system` or `tool`.
    #[serde(default)]
    pub role: Vec<String>,
    /// Only calls of one of these tools, and their results.
    #[serde(default)]
    pub tool: Vec<String>,
    /// Only entries from this time on: a time as in RFC 3339, a date, `today`, `yesterday`, or a duration before now, such
    /// as `3d`.
    pub since: Option<String>,
    /// Only entries up to this time, in the same forms as `since`.
    pub until: Option<String>,
    /// Only entries that were written on this branch of git.
    pub branch: Option<String>,
    /// Ids of sessions, files and folders; all sessions if there are none.
    #[serde(default, rename = "in")]
    pub places: Vec<PathBuf>,
    /// Only the sessions of the project at this path.
    pub project: Option<PathBuf>,
    /// The maximum number of hits, or of sessions with the output `files`; all by default.
    pub limit: Option<usize>,
    /// The order of the hits: the best first, or the session that was changed last and in it the last entry.
    #[serde(default)]
    pub sort: SortName,
    /// The number of lines of the text before and after the match in a snippet, which has 160 characters by default.
    pub context: Option<usize>,
    /// The output: each hit, the sessions with hits, or only their number in `end`.
    #[serde(default)]
    pub output: SearchOutput,
    /// Whether the search uses the cache folder, and adds to it.
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub cache: Option<bool>,
    /// Whether archived sessions whose files are gone are omitted.
    #[serde(skip)]
    pub is_live_only: bool,
}

/// The order of hits.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(Serialize, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SortName {
    /// The best first.
    #[default]
    Rank,
    /// The session that was changed last first, and in a session the last entry.
    Time,
}

/// The output of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(Serialize, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SearchOutput {
    /// Each hit.
    #[default]
    Hits,
    /// The sessions with hits.
    Files,
    /// The number of hits.
    Count,
}

/// The result of a search.
#[derive(Debug)]
pub struct SearchRun<'c> {
    /// The sessions that were searched.
    pub catalog: &'c Catalog,
    /// The query.
    pub query: &'c Query,
    /// The options.
    pub options: SearchOptions,
    /// The hits.
    pub search: Search<'c>,
    context: &'c Context,
}

/// The reason why there was no search.
#[derive(Debug)]
pub enum SearchError {
    /// The query has a mistake.
    Query(QueryError),
    /// The search failed.
    Failed(Failure),
}

impl From<Failure> for SearchError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Query(error) => Self::new("bad-query", error.to_string()),
            SearchError::Failed(failure) => failure,
        }
    }
}

/// Searches, and gives the result to `then`.
///
/// # Errors
/// When the query has a mistake, or the sessions cannot be found.
pub fn with_search<T>(
    settings: &SearchSettings,
    context: &Context,
    then: impl FnOnce(SearchRun<'_>) -> T,
) -> std::result::Result<T, SearchError> {
    let query = settings.parsed()?;
    let context = &context.with_cache(settings.cache);
    let catalog = context.catalog(&Selection {
        places: settings.places.clone(),
        project: settings.project.clone(),
        archived: !settings.is_live_only,
    });
    let catalog = catalog.map_err(Failure::from)?;
    let options = settings.options(context);
    context.expect(catalog.bytes());
    let search = catalog.search(&query, &options);
    let search = search.map_err(|error| Failure::new("search-failed", error.to_string()))?;
    let result = then(SearchRun {
        catalog: &catalog,
        query: &query,
        options,
        search,
        context,
    });
    context.agent_homes().keep_memory();
    Ok(result)
}

/// Searches, and writes the records of what is found.
pub(crate) fn search(
    settings: &SearchSettings,
    context: &Context,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut failed = None;
    let written = with_search(settings, context, |mut found| {
        found.write(settings, sink, &mut |error| {
            failed.get_or_insert(error);
        })
    });
    written.map_err(Failure::from)??;
    match failed {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

impl SearchRun<'_> {
    /// Returns the name of the root of a session, if several roots are in use.
    #[must_use]
    pub fn root_name(&self, session: &CatalogSession) -> Option<String> {
        let name = self.context.root_name(&session.path)?;
        Some(name.to_string())
    }

    /// Writes the records of the search: hits or sessions, and its end. `problem` gets why a hit cannot be read.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn write(
        &mut self,
        settings: &SearchSettings,
        sink: &mut dyn Sink,
        problem: &mut dyn FnMut(Failure),
    ) -> Result<()> {
        let end = self.search.end();
        match settings.output {
            SearchOutput::Hits => {
                while let Some(hit) = self.search.next() {
                    match hit {
                        Ok(hit) => {
                            let root = self.root_name(&hit.session);
                            let mut hit = HitRecord::new(&trimmed(hit, settings.context));
                            hit.root = root;
                            sink.record(&SearchRecord::Hit(Box::new(hit)))?;
                        }
                        Err(error) => problem(Failure::new("search-failed", error.to_string())),
                    }
                }
            }
            SearchOutput::Files => {
                let limit = settings.limit.unwrap_or(usize::MAX);
                for (session, row, hits) in self.search.sessions().into_iter().take(limit) {
                    let mut found = FoundSession::new(&session, row.as_deref(), hits);
                    found.root = self.root_name(&session);
                    sink.record(&SearchRecord::Session(found))?;
                }
            }
            SearchOutput::Count => {}
        }
        sink.record(&SearchRecord::End(SearchEnd::new(&end)))
    }
}

impl SearchSettings {
    fn options(&self, context: &Context) -> SearchOptions {
        let mut options = SearchOptions::new()
            .count_bytes(context.counter())
            .cancel(context.cancelled());
        // Without hits there is no order.
        options = options.sort(match self.sort {
            SortName::Time if self.output != SearchOutput::Count => Sort::Time,
            _ => Sort::Rank,
        });
        match (self.output, self.limit) {
            (SearchOutput::Hits, Some(limit)) => options = options.limit(limit),
            (SearchOutput::Count, _) => options = options.limit(0),
            _ => {}
        }
        if let Some(lines) = self.context {
            let lines = lines.saturating_mul(2).saturating_add(1);
            options = options.snippet(lines.saturating_mul(CONTEXT_LINE_LEN).min(MAX_SNIPPET_LEN));
        }
        match context.cache(self.cache) {
            Some(folder) => options.cache(folder),
            None => options,
        }
    }

    /// Reads the query, and adds the options that are filters of it.
    ///
    /// # Errors
    /// When the query or an option has a mistake.
    pub fn parsed(&self) -> std::result::Result<Query, SearchError> {
        let now = Zoned::now();
        let read_time = |text: &str| moment::parse(text, &now);
        let mut text = self.query.clone();
        if let Some(part) = self.text.as_deref().filter(|part| !part.is_empty()) {
            // Ignores case as the option `text` does elsewhere, also that of upper-case letters.
            text.push_str(&format!(" /{}/i", escaped(part)));
        }
        let mut query = Query::parse_part(&text, &read_time).map_err(SearchError::Query)?;
        let mut add = |option: &'static str, key: &str, value: &str| {
            let added = query.add_filter(key, value, &read_time);
            added.map_err(|error| Failure::option(option, error.message()))
        };
        for role in &self.role {
            add("role", "role", role)?;
        }
        for tool in &self.tool {
            add("tool", "tool", tool)?;
        }
        let filters = [
            ("since", "since", &self.since),
            ("until", "until", &self.until),
            ("branch", "branch-name", &self.branch),
        ];
        for (option, key, value) in filters {
            if let Some(value) = value {
                add(option, key, value)?;
            }
        }
        let checked = query.check(self.query.chars().count());
        checked.map_err(SearchError::Query)?;
        Ok(query)
    }
}

/// Returns the expression that matches a text.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for c in text.chars() {
        // `\<` and `\>` are not characters.
        if c.is_ascii_punctuation() && !matches!(c, '<' | '>') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Cuts the snippet to this number of lines around the first match.
#[must_use]
pub fn trimmed(mut hit: Hit, context: Option<usize>) -> Hit {
    let Some(context) = context else { return hit };
    let chars: Vec<char> = hit.snippet.chars().collect();
    let found = hit.matches.first();
    let (first, last) = found.map_or((0, 0), |found| (found.start, found.end));
    let breaks = |c: &(usize, &char)| *c.1 == '\n';
    let before = chars[..first].iter().enumerate().rev().filter(breaks);
    let start = before.map(|(at, _)| at + 1).nth(context).unwrap_or(0);
    let after = chars.iter().enumerate().skip(last).filter(breaks);
    let end = after.map(|(at, _)| at).nth(context).unwrap_or(chars.len());
    hit.is_cut.0 |= start > 0;
    hit.is_cut.1 |= end < chars.len();
    hit.snippet = chars[start..end].iter().collect();
    hit.matches
        .retain(|found| found.start >= start && found.end <= end);
    for found in &mut hit.matches {
        *found = found.start - start..found.end - start;
    }
    hit
}
