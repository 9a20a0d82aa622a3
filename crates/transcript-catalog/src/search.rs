//! Searches the texts of all sessions of a [`Catalog`].
//!
//! The answer is defined in `docs/search.md` of the repository. [`Catalog::search`] scans the files at once
//! and keeps the places of what matches; texts are read again, and the conversation of a session is
//! computed, when a hit of it is returned.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use transcript_reader::{Error, SessionRow};

use crate::files::{Catalog, CatalogSession};
use crate::hit::{Group, Hit, SearchError};
use crate::hits::Reader;
use crate::matches::Match;
use crate::query::{Condition, Query};
use crate::rank::recency;
use crate::scan::Scan;

/// The maximum number of hits that are read at a time.
const MAX_BATCH_HITS: usize = 512;
/// The number of sessions in the first batch of a search in the order of time. Later batches are larger.
const FIRST_BATCH_SESSIONS: usize = 16;
/// The default length of a snippet, in characters.
const DEFAULT_SNIPPET_CHARS: usize = 160;

/// The order of hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sort {
    /// The best first.
    #[default]
    Rank,
    /// The session that was changed last first, and of each session the last entry first.
    Time,
}

/// Options of a search.
#[derive(Clone, Debug)]
#[must_use]
pub struct SearchOptions {
    sort: Sort,
    limit: Option<usize>,
    snippet: usize,
    threads: Option<NonZeroUsize>,
    cancel: Arc<AtomicBool>,
    uses_prefilter: bool,
    cache: Option<PathBuf>,
    done: Arc<AtomicU64>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            sort: Sort::Rank,
            limit: None,
            snippet: DEFAULT_SNIPPET_CHARS,
            threads: None,
            cancel: Arc::default(),
            uses_prefilter: true,
            cache: None,
            done: Arc::default(),
        }
    }
}

impl SearchOptions {
    /// Returns the defaults: all hits, the best first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the order.
    pub fn sort(mut self, sort: Sort) -> Self {
        self.sort = sort;
        self
    }

    /// Sets the maximum number of hits that are returned. In the order of [`Sort::Time`] sessions after
    /// the last needed one are not read.
    pub fn limit(mut self, hits: usize) -> Self {
        self.limit = Some(hits);
        self
    }

    /// Sets the length of snippets, in characters. A longer match is cut to it.
    pub fn snippet(mut self, chars: usize) -> Self {
        self.snippet = chars;
        self
    }

    /// Sets the number of threads; by default one for each processor, at most 16.
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets a flag with which another thread ends the search: once it is true, no more hits are
    /// found or returned.
    pub fn cancel(mut self, cancel: Arc<AtomicBool>) -> Self {
        self.cancel = cancel;
        self
    }

    /// Sets the folder in which filters of the files are kept, which make later searches faster and
    /// never change what is found. It is created when it is missing; whatever is in it may be deleted. By
    /// default, none: all files are read. Errors there are not errors of a search.
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Reads all files, even if there are filters of them.
    pub fn no_cache(mut self) -> Self {
        self.cache = None;
        self
    }

    /// Sets where the bytes are counted that were searched or ruled out; there are as many as
    /// [`Catalog::bytes`], unless files change or the search ends early.
    pub fn count_bytes(mut self, done: Arc<AtomicU64>) -> Self {
        self.done = done;
        self
    }

    /// Reads every line instead of only those in which the words may be; for comparison.
    #[doc(hidden)]
    pub fn without_prefilter(mut self) -> Self {
        self.uses_prefilter = false;
        self
    }
}

/// The counters of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchTotals {
    /// The number of hits, without copies, and without regard to the limit. With a limit in the order
    /// of time, those in the sessions that were read.
    pub hits: u64,
    /// The number of sessions with hits.
    pub sessions: u64,
    /// The number of sessions that were searched.
    pub scanned: u64,
    /// The number of bytes that were searched.
    pub bytes: u64,
    /// The number of lines and stored results that are damaged, too long or too large. They were searched in part or not at all,
    /// so there may be more hits in them.
    pub unread: u64,
}

/// The hits of a search; an iterator.
///
/// Returns an error for a hit that cannot be read any more, and continues with the next one.
#[derive(Debug)]
pub struct Search<'s> {
    scan: Scan<'s>,
    options: SearchOptions,
    reader: Reader,
    /// The copies of an entry follow each other, the one that is shown first.
    found: Vec<Match>,
    /// In the order in which they are returned.
    groups: VecDeque<Group>,
    ready: VecDeque<Result<Hit, SearchError>>,
    batch: usize,
    end: SearchTotals,
}

impl Catalog {
    /// Searches all sessions.
    ///
    /// Files that cannot be read are [problems](Search::problems) of the search.
    ///
    /// # Errors
    /// [`SearchError::Cancelled`].
    pub fn search(
        &self,
        query: &Query,
        options: &SearchOptions,
    ) -> Result<Search<'_>, SearchError> {
        let mut search = Search {
            scan: Scan::new(
                self,
                query.clone(),
                Arc::clone(&options.cancel),
                options.uses_prefilter,
                options.cache.as_deref(),
                Arc::clone(&options.done),
            ),
            options: options.clone(),
            reader: Reader::default(),
            found: Vec::new(),
            groups: VecDeque::new(),
            ready: VecDeque::new(),
            batch: 16,
            end: SearchTotals::default(),
        };
        search.run()?;
        Ok(search)
    }
}

impl Search<'_> {
    /// Returns the counters of the search.
    #[must_use]
    pub fn end(&self) -> SearchTotals {
        self.end
    }

    /// Returns the sessions of the hits that were not returned yet, in the order of their first hits, each
    /// with its row in a list and the number of its hits.
    pub fn sessions(&mut self) -> Vec<(Arc<CatalogSession>, Option<Arc<SessionRow>>, u64)> {
        let files = &self.scan.catalog.files;
        let mut places = HashMap::new();
        let mut counts: Vec<(&Match, u64)> = Vec::new();
        for group in &self.groups {
            let (best, _) = group.of(&self.found);
            let session = files[best.file as usize].session;
            let place = *places.entry(session).or_insert(counts.len());
            if place == counts.len() {
                counts.push((best, 0));
            }
            counts[place].1 += 1;
        }
        let rows = counts.iter().map(|(best, _)| *best);
        let rows = self.reader.rows(&self.scan, rows);
        let counts = counts.iter().map(|(_, count)| *count);
        let rows = rows.into_iter().zip(counts);
        rows.map(|((session, row), count)| (session, row, count))
            .collect()
    }

    /// Returns the paths of the sessions in which something was found, copies included, whether it was
    /// returned or not.
    #[must_use]
    pub fn session_paths(&self) -> HashSet<&Path> {
        let catalog = self.scan.catalog;
        let session = |found: &Match| catalog.files[found.file as usize].session;
        let sessions = self.found.iter().map(session);
        sessions
            .map(|session| &*catalog.sessions[session].path)
            .collect()
    }

    /// Puts the hits of a session one after the other, and the sessions in the order of their first hits.
    pub fn group_by_session(&mut self) {
        let files = &self.scan.catalog.files;
        let found = &self.found;
        let session = |group: &Group| files[group.of(found).0.file as usize].session;
        let mut places = HashMap::new();
        for group in &self.groups {
            let next = places.len();
            places.entry(session(group)).or_insert(next);
        }
        let groups = self.groups.make_contiguous();
        groups.sort_by_key(|group| places[&session(group)]);
    }

    /// Removes and returns the errors so far: files that could not be read.
    pub fn problems(&mut self) -> Vec<Error> {
        let problems = self.scan.problems.get_mut();
        std::mem::take(problems.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn run(&mut self) -> Result<(), SearchError> {
        let sessions = &self.scan.catalog.sessions;
        let mut order: Vec<usize> = (0..sessions.len()).collect();
        if self.options.sort == Sort::Time {
            order.sort_by_key(|session| Reverse(sessions[*session].modified));
        }
        // By rank, the best hit can be in any session. By time, the newest sessions are enough as soon as they have
        // enough hits.
        let most = match (self.options.sort, self.options.limit) {
            (Sort::Time, Some(limit)) => limit,
            _ => usize::MAX,
        };
        let mut found = Vec::new();
        let mut rest = &order[..];
        let mut next = if most == usize::MAX {
            rest.len()
        } else {
            FIRST_BATCH_SESSIONS
        };
        loop {
            let (now, later) = rest.split_at(next.min(rest.len()));
            let mut more = self.scan_sessions(now);
            if found.is_empty() {
                found = more;
            } else {
                found.append(&mut more);
            }
            self.end.scanned += now.len() as u64;
            (rest, next) = (later, 2 * next);
            if self.options.cancel.load(Ordering::Relaxed) {
                return Err(SearchError::Cancelled);
            }
            // Copies of forks are one hit, so the number of matches alone says little. Counting them costs more, so it
            // comes second.
            if rest.is_empty() || found.len() >= most && without_copies(&found) >= most {
                break;
            }
        }
        self.end.bytes = self.scan.bytes.load(Ordering::Relaxed);
        self.end.unread = self.scan.unread.load(Ordering::Relaxed);
        self.sort(found, &order);
        Ok(())
    }

    fn scan_sessions(&mut self, sessions: &[usize]) -> Vec<Match> {
        let mut found = self.scan.run(sessions, self.options.threads);
        let mut filters = self.scan.query.filters.iter();
        // Whether an entry is live depends on the tree of its file, which is linked only if the query asks for it.
        let needs_tree = filters.any(|filter| matches!(filter.condition, Condition::Live(_)));
        if needs_tree {
            self.reader.want(&self.scan, found.iter());
            let all: Vec<&Match> = found.iter().collect();
            self.reader.place(&self.scan, &all, self.options.threads);
            found.retain(|found| {
                let is_live = self.reader.is_live(&self.scan, found);
                self.scan.query.holds(|condition| match condition {
                    Condition::Live(live) => Some(is_live == *live),
                    _ => None,
                })
            });
        }
        found
    }

    /// Joins copies and puts hits in their order.
    fn sort(&mut self, mut found: Vec<Match>, order: &[usize]) {
        let files = &self.scan.catalog.files;
        let is_result = |found: &Match| self.scan.is_result(found.file as usize);
        let mut families = CopyFamilies::of(&found);
        for one in &mut found {
            // A copy of a copy names only the one it was made from. The id of the family is equal for all of them.
            one.key.ids[1] = families.of_id(one.key.ids[0]);
        }
        let key = |one: &Match| (one.key.ids[1], one.key.content);
        // Files are sorted by path within a session, and sessions by path.
        found.sort_unstable_by_key(|found| {
            (
                key(found),
                is_result(found),
                !found.is_own,
                found.file,
                found.offset,
            )
        });
        let newest = found
            .iter()
            .map(|found| found.millis)
            .max()
            .unwrap_or_default();
        let mut groups: Vec<Group> = Vec::new();
        for (number, one) in (0..).zip(&found) {
            match groups.last_mut() {
                Some(group) if key(&found[group.first as usize]) == key(one) => group.len += 1,
                _ => {
                    // Titles have no time of their own.
                    let session = &self.scan.catalog.sessions[files[one.file as usize].session];
                    let millis = Some(one.millis).filter(|millis| *millis > i64::MIN);
                    let millis = millis.or_else(|| modified(session));
                    groups.push(Group {
                        first: number,
                        len: 1,
                        score: one.score + recency(millis, newest),
                    });
                }
            }
        }
        let best = |group: &Group| &found[group.first as usize];
        let session = |group: &Group| files[best(group).file as usize].session;
        let mut has_hits = vec![false; self.scan.catalog.sessions.len()];
        for group in &groups {
            has_hits[session(group)] = true;
        }
        self.end.hits = groups.len() as u64;
        self.end.sessions = has_hits.iter().filter(|has| **has).count() as u64;
        let places: HashMap<usize, usize> = order.iter().copied().zip(0..).collect();
        let in_order = |a: &Group, b: &Group| match self.options.sort {
            Sort::Rank => {
                let order = |group: &Group| {
                    let best = best(group);
                    // Equal scores are frequent, and the order must not depend on the threads.
                    (Reverse(best.millis), best.file, best.offset)
                };
                let score = b.score.total_cmp(&a.score);
                score.then_with(|| order(a).cmp(&order(b)))
            }
            Sort::Time => {
                let order = |group: &Group| {
                    let best = best(group);
                    let place = places.get(&session(group)).copied();
                    (place, best.file, Reverse(best.offset))
                };
                order(a).cmp(&order(b))
            }
        };
        if let Some(limit) = self.options.limit
            && limit < groups.len()
        {
            // Only those that are returned have an order.
            groups.select_nth_unstable_by(limit, in_order);
            groups.truncate(limit);
            groups.shrink_to_fit();
        }
        groups.sort_unstable_by(in_order);
        // Copies as well: each hit names the places of its copies.
        let wanted = groups.iter().flat_map(|group| {
            let (best, copies) = group.of(&found);
            copies.iter().chain([best])
        });
        self.reader.want(&self.scan, wanted);
        self.groups = groups.into();
        self.found = found;
    }
}

/// The families of entries: those that are linked by a uuid, that of an original included.
struct CopyFamilies {
    /// For ids that are not the first of their family, another one of it.
    parents: HashMap<u64, u64>,
}

impl CopyFamilies {
    fn of(found: &[Match]) -> Self {
        let parents = HashMap::new();
        let mut families = Self { parents };
        for [id, origin] in found.iter().map(|found| found.key.ids) {
            let (family, other) = (families.of_id(id), families.of_id(origin));
            if family != other {
                families.parents.insert(family, other);
            }
        }
        families
    }

    /// Returns the first id of the family.
    fn of_id(&mut self, id: u64) -> u64 {
        let mut first = id;
        while let Some(parent) = self.parents.get(&first) {
            first = *parent;
        }
        // The next way is shorter.
        let mut at = id;
        while at != first {
            at = self.parents.insert(at, first).unwrap_or(first);
        }
        first
    }
}

/// Returns the number of hits without copies.
fn without_copies(found: &[Match]) -> usize {
    let mut families = CopyFamilies::of(found);
    let keys = found
        .iter()
        .map(|found| (families.of_id(found.key.ids[0]), found.key.content));
    keys.collect::<HashSet<_>>().len()
}

/// Returns when a session was last changed, in milliseconds since 1970.
fn modified(session: &CatalogSession) -> Option<i64> {
    let since = session.modified?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

impl Iterator for Search<'_> {
    type Item = Result<Hit, SearchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.options.cancel.load(Ordering::Relaxed) {
            // A search that has returned all hits was not cancelled.
            let is_open = !(self.ready.is_empty() && self.groups.is_empty());
            self.ready.clear();
            self.groups.clear();
            return is_open.then_some(Err(SearchError::Cancelled));
        }
        if self.ready.is_empty() {
            let most = self.batch.min(self.groups.len());
            let batch: Vec<Group> = self.groups.drain(..most).collect();
            // Small at first, so that the first hit is there at once; then larger, so that all threads have work.
            self.batch = (2 * self.batch).min(MAX_BATCH_HITS);
            let (threads, snippet) = (self.options.threads, self.options.snippet);
            let found = &self.found;
            let hits = self
                .reader
                .read(&self.scan, found, &batch, threads, snippet);
            self.ready = hits.into();
        }
        self.ready.pop_front()
    }
}
