//! Waits until the system says that something changed, or a time has passed.
//!
//! What the system says is a hint: it comes late, twice, or never (`facts/reliability.md` 4, T7).
//! Whoever waits looks for itself afterwards.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use transcript_reader::Identity;

/// What may have changed.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// The files that the system named.
    pub(crate) paths: HashSet<PathBuf>,
    /// Anything may have changed: hints were lost, or folders and names changed.
    pub(crate) all: bool,
}

impl Hints {
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.all
    }
}

/// Wakes whoever waits for hints. Clones ring the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notifier(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    notified: Condvar,
}

#[derive(Debug, Default)]
struct State {
    hints: Hints,
    is_stopped: bool,
}

impl Notifier {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves nothing half done here.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify(&self, add: impl FnOnce(&mut Hints)) {
        add(&mut self.lock().hints);
        self.0.notified.notify_all();
    }

    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.0.notified.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Asks again and again for what comes next; `None` when it was stopped.
    pub(crate) fn until_stopped<T, E>(
        &self,
        mut next: impl FnMut() -> Result<Option<T>, E>,
    ) -> Option<Result<T, E>> {
        loop {
            match next().transpose() {
                None if self.is_stopped() => return None,
                None => {}
                emitted => return emitted,
            }
        }
    }

    /// Waits for a hint, a stop or the end of the time; returns the hints so far.
    pub(crate) fn wait(&self, time: Duration) -> Hints {
        let is_quiet = |state: &mut State| state.hints.is_empty() && !state.is_stopped;
        let guard = self.lock();
        let waited = self.0.notified.wait_timeout_while(guard, time, is_quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.hints)
    }
}

/// How long to wait for a hint before looking without one.
///
/// Events have to earn trust. Behind a change that one told of, or while nothing happens for long, we
/// look once a second; while the last change was found without one, as on network file systems, every
/// 1 to 100 ms, the more seldom the longer nothing happens.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    pause: Duration,
    /// How long nothing was found.
    quiet: Duration,
    /// Whether a hint told of the last change; `None` before the first one.
    is_hinted: Option<bool>,
}

impl PollBackoff {
    const SHORTEST: Duration = Duration::from_millis(1);
    pub(crate) const LONGEST: Duration = Duration::from_millis(100);
    /// Where events are trusted: one of them may be lost.
    pub(crate) const HINTED: Duration = Duration::from_secs(1);
    /// How long we look often when we know nothing of the events.
    const DOUBT: Duration = Duration::from_secs(10);

    /// `has_events` says whether there may be hints at all.
    pub(crate) fn new(has_events: bool) -> Self {
        Self {
            pause: Self::SHORTEST,
            quiet: Duration::ZERO,
            is_hinted: (!has_events).then_some(false),
        }
    }

    /// Whether hints are trusted.
    pub(crate) fn is_hinted(&self) -> bool {
        self.is_hinted.unwrap_or(self.quiet >= Self::DOUBT)
    }

    /// Something was found; by a hint or not. What was there before we waited says nothing of hints.
    pub(crate) fn found(&mut self, by_hint: Option<bool>) {
        self.is_hinted = by_hint.or(self.is_hinted);
        self.pause = Self::SHORTEST;
        self.quiet = Duration::ZERO;
    }

    /// Nothing was found; returns how long to wait.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = if self.is_hinted() {
            Self::HINTED
        } else {
            self.pause
        };
        self.pause = (self.pause * 2).min(Self::LONGEST);
        self.quiet = self.quiet.saturating_add(pause);
        pause
    }
}

/// What is asked of the system: to say what changes in folders.
pub(crate) struct FsWatch {
    watcher: Option<RecommendedWatcher>,
    /// The folders that are watched, and which ones these were: another folder may take the name.
    folders: Vec<(Folder, Option<Identity>)>,
    is_whole: bool,
}

/// A folder to watch, alone or with all below it.
pub(crate) type Folder = (PathBuf, RecursiveMode);

impl std::fmt::Debug for FsWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("is_on", &self.is_on())
            .field("folders", &self.folders)
            .finish()
    }
}

impl FsWatch {
    /// Rings `notifier` with the hints that `on_event` makes of what changed. Where the system has no events
    /// or no room for more watches nothing will ring.
    pub(crate) fn new(
        notifier: &Notifier,
        on_event: impl Fn(&Event, &mut Hints) + Send + 'static,
    ) -> Self {
        let notifier = notifier.clone();
        let handler = move |event: notify::Result<Event>| match event {
            // Our own reading is told, too.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) if !event.need_rescan() => {
                let mut hints = Hints::default();
                on_event(&event, &mut hints);
                if !hints.is_empty() {
                    notifier.notify(|all| {
                        all.paths.extend(hints.paths);
                        all.all |= hints.all;
                    });
                }
            }
            _ => notifier.notify(|hints| hints.all = true),
        };
        Self {
            watcher: notify::recommended_watcher(handler).ok(),
            folders: Vec::new(),
            is_whole: true,
        }
    }

    /// Watches nothing.
    pub(crate) fn off() -> Self {
        Self {
            watcher: None,
            folders: Vec::new(),
            is_whole: true,
        }
    }

    /// The folder of `path`, or the nearest above it that is there.
    pub(crate) fn above(path: &Path) -> Option<Folder> {
        let mut above = path.ancestors().skip(1);
        let folder = above.find(|folder| folder.is_dir())?;
        Some((folder.to_owned(), RecursiveMode::NonRecursive))
    }

    /// Watches these folders and no others.
    pub(crate) fn keep(&mut self, wanted: &[Folder]) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        let identity = |path: &Path| fs::metadata(path).ok().map(|found| Identity::of(&found));
        let wanted: Vec<_> = wanted
            .iter()
            .map(|folder| (folder.clone(), identity(&folder.0)))
            .collect();
        if wanted == self.folders {
            return;
        }
        for ((folder, _), _) in self.folders.drain(..) {
            // A folder that was deleted is not watched any more.
            let _ = watcher.unwatch(&folder);
        }
        self.is_whole = true;
        for ((path, mode), _) in &wanted {
            self.is_whole &= watcher.watch(path, *mode).is_ok();
        }
        self.folders = wanted;
    }

    /// Whether the system is asked at all.
    pub(crate) fn is_on(&self) -> bool {
        self.watcher.is_some()
    }

    /// Whether all that is to be watched is.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// A deadline that may lie beyond what a clock can say.
pub(crate) fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// How much time is left; the longest there is when there is no deadline.
pub(crate) fn left(deadline: Option<Instant>) -> Duration {
    deadline.map_or(Duration::MAX, |deadline| {
        deadline.saturating_duration_since(Instant::now())
    })
}

#[cfg(test)]
mod backoff_tests {
    use super::*;

    fn pauses(backoff: &mut PollBackoff, count: usize) -> Vec<u128> {
        (0..count).map(|_| backoff.pause().as_millis()).collect()
    }

    #[test]
    fn without_events_polling_is_fast_and_with_events_slow() {
        let often = [1, 2, 4, 8, 16, 32, 64, 100, 100];
        let mut backoff = PollBackoff::new(true);
        assert_eq!(pauses(&mut backoff, 9), often);
        backoff.found(Some(true));
        assert_eq!(pauses(&mut backoff, 2), [1000, 1000]);
        backoff.found(Some(false));
        assert_eq!(pauses(&mut backoff, 9), often);
        // Nobody tells: that stays so, however long nothing happens.
        assert!(pauses(&mut backoff, 1000).iter().all(|pause| *pause == 100));
        let mut alone = PollBackoff::new(false);
        assert!(pauses(&mut alone, 1000).iter().all(|pause| *pause <= 100));
    }

    #[test]
    fn polling_slows_down_while_nothing_happens() {
        let mut backoff = PollBackoff::new(true);
        // The file was there already.
        backoff.found(None);
        let often = pauses(&mut backoff, 1000);
        let often: Vec<_> = often.iter().take_while(|pause| **pause <= 100).collect();
        assert!((100..110).contains(&often.len()), "{}", often.len());
        assert_eq!(backoff.pause(), PollBackoff::HINTED);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;

    /// How many events the system keeps for us.
    const LIMIT: &str = "/proc/sys/fs/inotify/max_queued_events";

    #[test]
    fn an_overflow_of_the_event_queue_notifies() {
        let limit = fs::read_to_string(LIMIT).ok();
        let limit: usize = limit.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        if !(1..=100_000).contains(&limit) {
            println!("skipped: the queue of events has room for {limit}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let notifier = Notifier::default();
        // Who reads the queue is held up at the first event. No event itself is of interest.
        let (flooded, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let on_event = move |_: &Event, _: &mut Hints| {
            let _ = wait.lock().map(|wait| wait.recv());
        };
        let mut watch = FsWatch::new(&notifier, on_event);
        watch.keep(&[(folder.path().to_owned(), RecursiveMode::NonRecursive)]);
        // The same event twice in a row is one.
        let mut files = ["a", "b"].map(|name| fs::File::create(folder.path().join(name)).unwrap());
        for write in 0..limit + 1000 {
            files[write % 2].write_all(b"x").unwrap();
        }
        drop(flooded);
        let hints = notifier.wait(Duration::from_secs(60));
        println!(
            "overflow: rang behind {} writes, with nothing else to ring for",
            limit + 1000
        );
        assert!(hints.all && hints.paths.is_empty());
    }
}
