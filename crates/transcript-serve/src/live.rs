//! One session on the live page: a thread that has it open, shows its parts, and notifies pages of what changes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use maud::html;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use transcript_reader::{EntryNo, Index};
use transcript_render::{Conversation, KnownCalls, RenderOptions, write_html_part};
use transcript_resume::items::Cut;
use transcript_resume::{Policy, Tree};
use transcript_storage::ReadDisk;

use crate::live_file::{LiveFile, has_changed};

/// The interval at which a watched session is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
/// The time without a request after which a session is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// The pause between two updates, as a multiple of the time that the first of them took.
const UPDATE_BACKOFF: u32 = 1;
/// The maximum number of changed parts that are sent, the last ones; the page requests others when they are visible.
const MAX_PUSHED_PARTS: usize = 2;
/// The estimated height of a part, in CSS pixels for a thousand bytes of the file; the page measures it later.
const PX_PER_KB: u64 = 40;

/// A thread that has a session open. It ends when the session is no longer asked for.
#[derive(Clone, Debug)]
pub(crate) struct LiveSession {
    requests: Sender<Request>,
    thread: Option<Arc<JoinHandle<()>>>,
}

/// A request to the thread.
#[derive(Debug)]
enum Request {
    Parts(oneshot::Sender<Result<Parts, String>>),
    Part(String, oneshot::Sender<Option<String>>),
    Watch(Option<String>, mpsc::Sender<Update>),
}

/// The parts of a session.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// The state of the page, as a token for [`LiveSession::watch`].
    pub(crate) known: String,
    pub(crate) parts: Vec<PartPlaceholder>,
}

/// The placeholder of a part that a page has not requested yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PartPlaceholder {
    /// Names the part and its version.
    pub(crate) key: String,
    pub(crate) height: u64,
}

/// The difference between the parts of a page and those of the session.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Update {
    /// The first parts that are as they were.
    keep: usize,
    /// The parts that follow.
    parts: Vec<PartUpdate>,
    #[serde(skip)]
    pub(crate) known: String,
}

#[derive(Clone, Debug, Serialize)]
struct PartUpdate {
    src: String,
    height: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
}

impl LiveSession {
    /// Opens a session.
    pub(crate) fn open(disk: &Arc<dyn ReadDisk>, path: &Path, options: &RenderOptions) -> Self {
        let (requests, receiver) = channel();
        let session = SessionThread {
            options: options.clone(),
            requests: receiver,
            pending: None,
            known_calls: KnownCalls::default(),
            watchers: Vec::new(),
        };
        let (disk, path) = (Arc::clone(disk), path.to_owned());
        // Without a thread every question is answered with an error.
        let thread = thread::Builder::new().spawn(move || session.run(&disk, &path));
        Self {
            requests,
            thread: thread.ok().map(Arc::new),
        }
    }

    /// Returns whether the thread is gone: the session must be opened again.
    pub(crate) fn is_closed(&self) -> bool {
        self.thread
            .as_ref()
            .is_none_or(|thread| thread.is_finished())
    }

    pub(crate) async fn parts(&self) -> Result<Parts, String> {
        let (reply, answer) = oneshot::channel();
        let closed = || "the session cannot be opened".to_owned();
        self.requests
            .send(Request::Parts(reply))
            .map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// Returns the HTML of a part; `None` if there is none with this key any more.
    pub(crate) async fn part(&self, key: String) -> Option<String> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::Part(key, reply)).ok()?;
        answer.await.ok()?
    }

    /// Sends the difference to the parts that `known` stands for, and each later change.
    pub(crate) fn watch(&self, known: Option<String>) -> mpsc::Receiver<Update> {
        // The thread does not wait for a page that is slow: it gets the sum of the changes later.
        let (updates, receiver) = mpsc::channel(1);
        let _ = self.requests.send(Request::Watch(known, updates));
        receiver
    }
}

struct SessionThread {
    options: RenderOptions,
    requests: Receiver<Request>,
    /// The request that found the view ended, to be answered by the next view.
    pending: Option<Request>,
    known_calls: KnownCalls,
    watchers: Vec<PageWatcher>,
}

/// The reason why a view of a session ended.
enum ViewEnd {
    Changed,
    Closed,
}

impl SessionThread {
    fn run(mut self, disk: &Arc<dyn ReadDisk>, path: &Path) {
        let mut file = match LiveFile::open(disk, path) {
            Ok(file) => file,
            Err(error) => return self.refuse(&error.to_string()),
        };
        loop {
            match self.view(&mut file) {
                Ok(ViewEnd::Closed) => return,
                Ok(ViewEnd::Changed) => {}
                Err(error) => return self.refuse(&error.to_string()),
            }
            match file.update() {
                Ok(true) => self.known_calls = KnownCalls::default(),
                Ok(false) => {}
                Err(error) => return self.refuse(&error.to_string()),
            }
        }
    }

    /// Answers the requests so far with an error. A later request opens the session again.
    fn refuse(mut self, error: &str) {
        let mut request = self.pending.take();
        loop {
            if let Some(Request::Parts(reply)) = request {
                let _ = reply.send(Err(error.to_owned()));
            }
            request = match self.requests.recv_timeout(POLL_INTERVAL) {
                Ok(request) => Some(request),
                Err(_) => return,
            };
        }
    }

    /// Shows the session as it is now, until the file changes.
    fn view(&mut self, file: &mut LiveFile) -> transcript_render::Result<ViewEnd> {
        let started = Instant::now();
        let options = self.options.clone();
        // The view reads what it shows while the file is looked at.
        let (source, replaced) = (&file.file.source().clone(), file.replaced);
        let seen = &mut file.file;
        let index = file.index.get();
        let tree = match &file.others {
            Some(others) => Tree::with_others(index, others),
            None => Tree::new(index, Policy::Recover),
        };
        let path = tree.path();
        let tree = tree.unspliced();
        let story = tree.story(&path);
        let closed: Vec<EntryNo> = story.boundaries().collect();
        let (path, cut) = (&story.path, Cut::Anywhere);
        let calls = &mut self.known_calls;
        let shown = Conversation::in_parts_again(source, index, &tree, path, cut, calls)?;
        let shown = shown.with_chapters(&closed);
        let view = View {
            parts: part_placeholders(&shown, index, replaced),
            len: source.len(),
            shown: &shown,
            options: &options,
        };
        for watcher in &mut self.watchers {
            watcher.notify(&view);
        }
        let pause = started.elapsed() * UPDATE_BACKOFF;
        let mut asked = Instant::now();
        loop {
            let is_watched = !self.watchers.is_empty();
            let request = match self.pending.take() {
                Some(request) => Ok(request),
                None => self.requests.recv_timeout(if is_watched {
                    POLL_INTERVAL
                } else {
                    IDLE_TIMEOUT
                }),
            };
            match request {
                // The answer to a first request has the current state of the session.
                Ok(request @ (Request::Parts(_) | Request::Watch(..)))
                    if !is_watched && has_changed(seen) =>
                {
                    self.pending = Some(request);
                    return Ok(ViewEnd::Changed);
                }
                Ok(request) => {
                    asked = Instant::now();
                    self.answer(request, &view);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(ViewEnd::Closed),
                Err(RecvTimeoutError::Timeout)
                    if !is_watched && asked.elapsed() >= IDLE_TIMEOUT =>
                {
                    return Ok(ViewEnd::Closed);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.watchers.retain(|watcher| !watcher.updates.is_closed());
            for watcher in self.watchers.iter_mut().filter(|watcher| watcher.is_behind) {
                watcher.notify(&view);
            }
            let is_due = !self.watchers.is_empty() && started.elapsed() >= pause;
            if is_due && has_changed(seen) {
                return Ok(ViewEnd::Changed);
            }
        }
    }

    fn answer(&mut self, request: Request, view: &View<'_>) {
        // The caller may be gone.
        match request {
            Request::Parts(reply) => {
                let _ = reply.send(Ok(Parts {
                    known: page_state(view.len, &view.parts),
                    parts: view.parts.clone(),
                }));
            }
            Request::Part(key, reply) => {
                let at = view.parts.iter().position(|part| part.key == key);
                let _ = reply.send(at.map(|part| view.html(part)));
            }
            Request::Watch(known, updates) => {
                let mut watcher = PageWatcher {
                    parts: parts_of_page(known.as_deref(), &view.parts),
                    updates,
                    is_behind: false,
                };
                watcher.notify(view);
                self.watchers.push(watcher);
            }
        }
    }
}

/// A session as it was at some moment.
struct View<'v> {
    shown: &'v Conversation<'v>,
    parts: Vec<PartPlaceholder>,
    /// The length of the file.
    len: u64,
    options: &'v RenderOptions,
}

impl View<'_> {
    fn html(&self, part: usize) -> String {
        match write_html_part(self.shown, part, self.options) {
            Ok(piece) => piece.html,
            Err(error) => html! { p.gap { (error) } }.into_string(),
        }
    }
}

/// Returns the parts. Those of a file that had something else in it before have other keys, even if they are as long.
fn part_placeholders(
    shown: &Conversation<'_>,
    index: &Index,
    replaced: u32,
) -> Vec<PartPlaceholder> {
    let parts = shown
        .part_paths()
        .iter()
        .filter(|path| !path.entries.is_empty());
    let facts = parts.map(|path| {
        let entries = path.entries.iter();
        let entries = entries.map(|entry| index.entry(entry.entry_no()));
        let (mut first, mut last, mut bytes) = (u64::MAX, 0, 0);
        for entry in entries {
            (first, last) = (first.min(entry.line()), last.max(entry.line()));
            bytes += entry.byte_len();
        }
        PartPlaceholder {
            key: match replaced {
                0 => format!("{first}-{last}-{}", path.entries.len()),
                replaced => format!("{first}-{last}-{}-{replaced}", path.entries.len()),
            },
            height: (bytes * PX_PER_KB / 1000).max(40),
        }
    });
    facts.collect()
}

/// A page that is notified of changes.
struct PageWatcher {
    updates: mpsc::Sender<Update>,
    /// The parts that it has.
    parts: Vec<PartPlaceholder>,
    /// Whether there was no room for the last update.
    is_behind: bool,
}

impl PageWatcher {
    /// Sends the parts that the page does not have.
    fn notify(&mut self, view: &View<'_>) {
        let same = self.parts.iter().zip(&view.parts);
        let keep = same.take_while(|(has, is)| has == is).count();
        self.is_behind = false;
        if keep == self.parts.len() && keep == view.parts.len() {
            return;
        }
        let Ok(room) = self.updates.try_reserve() else {
            self.is_behind = true;
            return;
        };
        let first_sent = view.parts.len().saturating_sub(MAX_PUSHED_PARTS);
        let parts = (keep..view.parts.len()).map(|at| PartUpdate {
            src: src(&view.parts[at].key),
            height: view.parts[at].height,
            html: (at >= first_sent).then(|| view.html(at)),
        });
        room.send(Update {
            keep,
            parts: parts.collect(),
            known: page_state(view.len, &view.parts),
        });
        self.parts.clone_from(&view.parts);
    }
}

/// Returns the address of a part, relative to that of the session.
pub(crate) fn src(key: &str) -> String {
    format!("part?key={key}")
}

/// Returns the id of an event: the length of the file, how many parts the page has after it, and fingerprints of these
/// parts and of all but the last, which changes when the session grows.
fn page_state(len: u64, parts: &[PartPlaceholder]) -> String {
    let but_last = parts.len().saturating_sub(1);
    format!(
        "{len}.{}.{:x}.{:x}",
        parts.len(),
        fingerprint(parts),
        fingerprint(&parts[..but_last])
    )
}

/// Returns the parts that a page has, by the id of its last event. Nothing of it is kept here, so that a server that was
/// started again knows as much.
fn parts_of_page(known: Option<&str>, parts: &[PartPlaceholder]) -> Vec<PartPlaceholder> {
    let mut words = known.unwrap_or_default().split('.').skip(1);
    let count = words.next().and_then(|count| count.parse::<usize>().ok());
    let mut marks = words.map(|word| u64::from_str_radix(word, 16).ok());
    let Some(count) = count else {
        return Vec::new();
    };
    for count in [count, count.saturating_sub(1)] {
        let mark = marks.next().flatten();
        if let Some(first) = parts.get(..count)
            && mark == Some(fingerprint(first))
        {
            return first.to_vec();
        }
    }
    Vec::new()
}

fn fingerprint(parts: &[PartPlaceholder]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(keys: &[&str]) -> Vec<PartPlaceholder> {
        let facts = keys.iter().map(|key| PartPlaceholder {
            key: (*key).to_owned(),
            height: 40,
        });
        facts.collect()
    }

    #[test]
    fn an_id_says_what_a_page_has() {
        let before = parts(&["1-2-2", "3-9-7", "10-11-2"]);
        let id = page_state(99, &before);
        assert_eq!(parts_of_page(Some(&id), &before), before);
        // The last part grew; more were added.
        let grown = parts(&["1-2-2", "3-9-7", "10-12-3"]);
        assert_eq!(parts_of_page(Some(&id), &grown), before[..2]);
        let more = parts(&["1-2-2", "3-9-7", "10-11-2", "12-12-1"]);
        assert_eq!(parts_of_page(Some(&id), &more), before);
        // Another conversation, and ids that were never sent.
        assert_eq!(
            parts_of_page(Some(&id), &parts(&["1-2-2", "3-8-6", "10-11-2"])),
            []
        );
        for odd in [
            None,
            Some(""),
            Some("9"),
            Some("9.1"),
            Some("9.3.x.y"),
            Some("9.18446744073709551615.1.1"),
        ] {
            assert_eq!(parts_of_page(odd, &before), [], "{odd:?}");
        }
    }
}
