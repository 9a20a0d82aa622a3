//! The search over all sessions, in a thread of its own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::tz::TimeZone;
use transcript_engine::catalog::{self, Hit};
use transcript_format::time;
use transcript_ops::Context;
use transcript_ops::search::{SearchError, SearchRun, SearchSettings, with_search};
use transcript_render::{Escaping, RenderOptions, Snippet, and_more, count, joined, minute};

use crate::find::{FoundHit, FoundSession, Results, SearchMessage};
use crate::messages::Target;
use crate::needle::{MatchContext, Needle};

/// The maximum number of hits that are kept.
pub(crate) const MAX_HITS: usize = 200;
/// The interval between two reports of the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum number of copies of a hit that are named.
const MAX_NAMED_COPIES: usize = 2;
/// The number of characters of an id that are shown.
const SHORT_ID_LEN: usize = 8;

/// The folders and settings of a search over all sessions.
#[derive(Clone, Debug)]
pub(crate) struct SearchScope {
    /// The store and the disks.
    pub(crate) context: Context,
    pub(crate) zone: TimeZone,
    pub(crate) render: RenderOptions,
    /// Held by the search that runs: one that was cancelled may need a while to end, and its memory is
    /// not added to that of the next one.
    pub(crate) turn: Arc<Mutex<()>>,
}

/// Searches after `wait`, unless it is cancelled. A wrong query is reported at once.
pub(crate) fn start(
    sessions: SearchScope,
    text: String,
    wait: Duration,
    cancel: Arc<AtomicBool>,
    reply: impl Fn(SearchMessage) + Send + Sync + 'static,
) {
    thread::spawn(move || {
        let settings = sessions.settings(text);
        if let Err(error) = settings.parsed() {
            return reply(error_message(error));
        }
        thread::sleep(wait);
        let _turn = sessions.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.load(Ordering::Relaxed) {
            return;
        }
        match search(&sessions, &settings, &cancel, &reply) {
            Ok(Some(results)) => reply(SearchMessage::Done(Box::new(results))),
            // The result is no longer needed.
            _ if cancel.load(Ordering::Relaxed) => {}
            Ok(None) => {}
            Err(error) => reply(error_message(error)),
        }
    });
}

/// Returns the message for an error.
fn error_message(error: SearchError) -> SearchMessage {
    match error {
        SearchError::Query(error) => SearchMessage::Bad {
            message: error.message().to_owned(),
            position: error.position(),
        },
        SearchError::Failed(failure) => SearchMessage::Failed(failure.message),
    }
}

impl SearchScope {
    fn settings(&self, query: String) -> SearchSettings {
        let mut archives = self.context.archives();
        SearchSettings {
            query,
            limit: Some(MAX_HITS),
            // The sessions that are there are searched whatever is wrong with the archive.
            is_live_only: archives.any(|archive| archive.disk().archive().is_err()),
            ..SearchSettings::default()
        }
    }
}

/// Searches, and reports the progress until all hits are read. Returns nothing if it was cancelled.
fn search(
    sessions: &SearchScope,
    settings: &SearchSettings,
    cancel: &Arc<AtomicBool>,
    reply: &(impl Fn(SearchMessage) + Sync),
) -> Result<Option<Results>, SearchError> {
    let (bytes, all) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let context = sessions.context.clone().cancel(Arc::clone(cancel));
    let context = context.progress(Arc::clone(&bytes), Arc::clone(&all));
    thread::scope(|scope| {
        // Ends when this is dropped.
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            while is_done.recv_timeout(PROGRESS_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let all = all.load(Ordering::Relaxed);
                let bytes = bytes.load(Ordering::Relaxed).min(all);
                reply(SearchMessage::Searching { bytes, all });
            }
        });
        let results = with_search(settings, &context, |found| {
            results(sessions, settings, found)
        });
        drop(done);
        results
    })
}

/// Returns the results; `None` if the search was cancelled.
fn results(
    sessions: &SearchScope,
    settings: &SearchSettings,
    searched: SearchRun<'_>,
) -> Option<Results> {
    let mut search = searched.search;
    let mut results = Results::default();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for hit in &mut search {
        match hit {
            Ok(hit) => {
                let path = hit.session.path.clone();
                let place = *places.entry(path).or_insert(results.sessions.len());
                if place == results.sessions.len() {
                    results.sessions.push(head(sessions, &hit));
                }
                let found = found_hit(sessions, &settings.query, &hit);
                results.sessions[place].hits.push(found);
            }
            Err(catalog::SearchError::Cancelled) => return None,
            // It is no longer where it was: another search finds it.
            Err(_) => results.changed += 1,
        }
    }
    let end = search.end();
    results.hits = end.hits;
    results.in_sessions = end.sessions;
    results.searched = end.scanned;
    results.unread = end.unread;
    results.problems = search.problems().len() as u64;
    Some(results)
}

/// Returns the head of a session in the results, without hits.
fn head(sessions: &SearchScope, hit: &Hit) -> FoundSession {
    let one_line =
        |text: &str| Escaping::Visible.one_line(&Escaping::Visible.without_colours(text));
    let title = hit.title().map(one_line).filter(|title| !title.is_empty());
    let row = hit.row.as_ref();
    let folder = row.and_then(|row| row.cwd.as_deref());
    let folder = folder.map_or(hit.session.project.clone(), |cwd| {
        sessions.render.below_home(cwd)
    });
    let id: String = hit.session.id.chars().take(SHORT_ID_LEN).collect();
    let millis = row.and_then(|row| row.order_millis());
    let about = [
        minute(millis, &sessions.zone),
        Some(one_line(&folder)),
        Some(one_line(&id)),
    ];
    FoundSession {
        title: title.unwrap_or_else(|| "(untitled)".to_owned()),
        about: joined(about, " · "),
        hits: Vec::new(),
    }
}

fn found_hit(sessions: &SearchScope, query: &str, hit: &Hit) -> FoundHit {
    let millis = hit.timestamp.as_deref();
    let millis = millis.and_then(|time| time::millis(time.as_bytes()));
    let agent = hit.agent_id.as_ref();
    let also = (!hit.also.is_empty()).then(|| {
        let short = |id: &str| id.chars().take(SHORT_ID_LEN).collect::<String>();
        let named = hit.also.iter().take(MAX_NAMED_COPIES);
        let named: Vec<String> = named.map(|copy| short(&copy.session_id)).collect();
        let more = and_more(hit.also.len(), MAX_NAMED_COPIES);
        format!("also {}{more}", named.join(", "))
    });
    let about = [
        Some(hit.what()),
        minute(millis, &sessions.zone),
        hit.line.map(|line| format!("line {line}")),
        hit.why_unseen().map(str::to_owned),
        agent.map(|agent| format!("subagent {agent}")),
        hit.stored_result
            .as_ref()
            .map(|_| "stored result".to_owned()),
        also,
    ];
    let snippet = Snippet {
        text: hit.snippet.chars().collect(),
        matches: hit.matches.clone(),
        is_cut: hit.is_cut,
    };
    let text = |range: std::ops::Range<usize>| snippet.text[range].iter().collect::<String>();
    let texts: Vec<String> = hit.matches.iter().cloned().map(text).collect();
    // A capital letter that was typed is meant.
    let is_exact = |text: &str| text.chars().any(char::is_uppercase) && query.contains(text);
    let needle = Needle::of(texts.iter().map(|text| (text.as_str(), is_exact(text))));
    let start = hit.matches.first().map_or(0, |first| first.start);
    let end = snippet.text.len();
    FoundHit {
        session: hit.session.path.clone(),
        path: hit.path.clone(),
        about: Escaping::Visible.one_line(&joined(about, " · ")),
        needle,
        target: hit.line.map(|line| Target::Hit {
            offset: hit.offset,
            line,
            block: hit.block,
            what: hit.field.name(),
            around: MatchContext::new(&text(0..start), &text(start..end)),
            stored: hit.stored_result.clone(),
        }),
        snippet,
    }
}

impl Results {
    /// Returns the summary line of the results.
    pub(crate) fn summary(&self) -> String {
        let shown: usize = self.sessions.iter().map(|one| one.hits.len()).sum();
        let mut parts = vec![match self.hits {
            0 => format!("no hits in {}", count(self.searched, "session")),
            hits => format!(
                "{} in {}",
                count(hits, "hit"),
                count(self.in_sessions, "session")
            ),
        }];
        if self.hits > (shown as u64).saturating_add(self.changed) {
            parts.push(format!("the first {shown} are shown"));
        }
        if self.changed > 0 {
            parts.push(format!("{} changed meanwhile", self.changed));
        }
        if self.problems > 0 {
            parts.push(format!("{} not readable", count(self.problems, "file")));
        }
        if self.unread > 0 {
            parts.push(format!(
                "{} not searched",
                count(self.unread, "damaged line or file")
            ));
        }
        parts.join(" · ")
    }
}
