//! Waits until the system reports a change, or a time has passed.
//!
//! A report of the system is only a hint: it may come late, twice, or never. The caller polls
//! afterwards.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use transcript_storage::{Identity, ReadDisk, RealDisk};

/// What may have changed.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    /// The files that the system named.
    pub(crate) paths: HashSet<PathBuf>,
    /// Anything may have changed: hints were lost, or folders or names changed.
    pub(crate) all: bool,
}

impl Hints {
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.all
    }
}

/// Wakes the threads that wait for hints. Clones wake the same threads.
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
        // A panic of another thread leaves no inconsistent state here.
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

    /// Calls `next` until it returns an item; `None` when it was stopped.
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

/// The time to wait for a hint before polling without one.
///
/// File-system events are trusted only after they have proved to work. After a change that was
/// found by an event, or while nothing happens for a long time, the file is polled once a second.
/// While the last change was found without one, as on network file systems, it is polled every 1 to
/// 100 ms, less often the longer nothing happens.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    pause: Duration,
    /// The time since something was last found.
    quiet: Duration,
    /// Whether the last change was found by a hint; `None` before the first one.
    is_hinted: Option<bool>,
}

impl PollBackoff {
    const SHORTEST: Duration = Duration::from_millis(1);
    pub(crate) const LONGEST: Duration = Duration::from_millis(100);
    /// The pause when events are trusted: one of them may still be lost.
    pub(crate) const HINTED: Duration = Duration::from_secs(1);
    /// How long to poll often when it is unknown whether events work.
    const DOUBT: Duration = Duration::from_secs(10);

    /// Creates a back-off. `has_events` is whether there can be hints at all.
    pub(crate) fn new(has_events: bool) -> Self {
        Self {
            pause: Self::SHORTEST,
            quiet: Duration::ZERO,
            is_hinted: (!has_events).then_some(false),
        }
    }

    /// Returns whether hints are trusted.
    pub(crate) fn is_hinted(&self) -> bool {
        self.is_hinted.unwrap_or(self.quiet >= Self::DOUBT)
    }

    /// Records that something was found, by a hint or not. `None` means it was found before the
    /// first wait, which says nothing about hints.
    pub(crate) fn found(&mut self, by_hint: Option<bool>) {
        self.is_hinted = by_hint.or(self.is_hinted);
        self.pause = Self::SHORTEST;
        self.quiet = Duration::ZERO;
    }

    /// Records that nothing was found; returns how long to wait.
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

/// A subscription to changes of folders.
pub(crate) struct FsWatch {
    watcher: Option<RecommendedWatcher>,
    /// The watched folders with their identities, because another folder may take the name.
    folders: Vec<(Folder, Option<Identity>)>,
    is_whole: bool,
}

/// A folder to watch, alone or recursively.
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
    /// Notifies `notifier` of the hints that `on_event` derives from changes. If the system has no
    /// events or no room for more watches, there are no notifications.
    pub(crate) fn new(
        notifier: &Notifier,
        on_event: impl Fn(&Event, &mut Hints) + Send + 'static,
    ) -> Self {
        let notifier = notifier.clone();
        let handler = move |event: notify::Result<Event>| match event {
            // Our own reading causes events, too.
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

    /// Returns the folder of `path`, or its nearest existing ancestor.
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
        let identity = |path: &Path| Some(RealDisk.metadata(path).ok()?.identity);
        let wanted: Vec<_> = wanted
            .iter()
            .map(|folder| (folder.clone(), identity(&folder.0)))
            .collect();
        if wanted == self.folders {
            return;
        }
        for ((folder, _), _) in self.folders.drain(..) {
            // A deleted folder is not watched any more, so this may fail.
            let _ = watcher.unwatch(&folder);
        }
        self.is_whole = true;
        for ((path, mode), _) in &wanted {
            self.is_whole &= watcher.watch(path, *mode).is_ok();
        }
        self.folders = wanted;
    }

    /// Returns whether anything is watched.
    pub(crate) fn is_on(&self) -> bool {
        self.watcher.is_some()
    }

    /// Returns whether everything that is wanted is watched.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// Returns a deadline; `None` if it is beyond the range of the clock.
pub(crate) fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Returns the time left; the maximum if there is no deadline.
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
        // Without events the pauses stay short, however long nothing happens.
        assert!(pauses(&mut backoff, 1000).iter().all(|pause| *pause == 100));
        let mut alone = PollBackoff::new(false);
        assert!(pauses(&mut alone, 1000).iter().all(|pause| *pause <= 100));
    }

    #[test]
    fn polling_slows_down_while_nothing_happens() {
        let mut backoff = PollBackoff::new(true);
        // The file existed before the first wait.
        backoff.found(None);
        let often = pauses(&mut backoff, 1000);
        let often: Vec<_> = often.iter().take_while(|pause| **pause <= 100).collect();
        assert!((100..110).contains(&often.len()), "{}", often.len());
        assert_eq!(backoff.pause(), PollBackoff::HINTED);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::sync::mpsc;

    use super::*;

    /// The size of the event queue of the system.
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
        // The thread that reads the queue is blocked at the first event. The events themselves do
        // not matter.
        let (flooded, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let on_event = move |_: &Event, _: &mut Hints| {
            let _ = wait.lock().map(|wait| wait.recv());
        };
        let mut watch = FsWatch::new(&notifier, on_event);
        watch.keep(&[(folder.path().to_owned(), RecursiveMode::NonRecursive)]);
        // Two files in turn, because the system merges identical events in a row.
        let mut files = ["a", "b"].map(|name| fs::File::create(folder.path().join(name)).unwrap());
        for write in 0..limit + 1000 {
            files[write % 2].write_all(b"x").unwrap();
        }
        drop(flooded);
        let hints = notifier.wait(Duration::from_secs(60));
        println!(
            "overflow: notified after {} writes, with no other reason to notify",
            limit + 1000
        );
        assert!(hints.all && hints.paths.is_empty());
    }
}
