//! Waits until the system reports a change, or a time has passed.
//!
//! A report of the system is only a hint: it may come late, twice, or never. The caller polls
//! afterwards.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use transcript_storage::{
    Change, Changes, Coverage, Identity, ReadDisk, Reporter, Subscription, WatchedFolder,
};

use crate::hub::SystemChanges;
use crate::notifier::{Hints, Notifier};

/// The time to wait for a hint before polling without one.
///
/// Where the file system reports all changes, a file is polled once in two minutes, in case that a report was lost. On other
/// ones, such as network file systems, events are trusted only after they have proved to work. After a change that was found by
/// an event, or while nothing happens for a long time, the file is polled once a second. While the last change was
/// found without one, it is polled every 1 to 100 ms, less often the longer nothing happens.
#[derive(Debug)]
pub(crate) struct PollBackoff {
    pause: Duration,
    /// The time since something was last found.
    quiet: Duration,
    /// Whether the last change was found by a hint; `None` before the first one.
    is_hinted: Option<bool>,
    /// Whether the file system reports all changes.
    is_trusted: bool,
    /// The number of changes in a row that were found before their hint. A caller that waits for short times often is faster.
    early: u32,
}

impl PollBackoff {
    const MIN_PAUSE: Duration = Duration::from_millis(1);
    pub(crate) const MAX_PAUSE: Duration = Duration::from_millis(100);
    /// The pause when events are trusted by experience: one of them may still be lost.
    pub(crate) const HINTED_PAUSE: Duration = Duration::from_secs(1);
    /// The pause when the file system reports all changes.
    pub(crate) const TRUSTED_PAUSE: Duration = Duration::from_secs(120);
    /// The duration of frequent polls while it is unknown whether events work.
    const DOUBT_TIME: Duration = Duration::from_secs(10);
    /// The number of changes without a hint after which a file system is no longer trusted.
    const MAX_MISSED_HINTS: u32 = 8;

    /// Creates a back-off. `has_events` is whether there can be hints at all.
    pub(crate) fn new(has_events: bool) -> Self {
        Self {
            pause: Self::MIN_PAUSE,
            quiet: Duration::ZERO,
            is_hinted: (!has_events).then_some(false),
            is_trusted: false,
            early: 0,
        }
    }

    /// Sets whether the file system reports all changes in the folders that are watched now.
    pub(crate) fn trust(&mut self, is_trusted: bool) {
        self.is_trusted = is_trusted;
    }

    /// Returns how often to poll though there are hints; `None` if they are not trusted.
    pub(crate) fn hinted_pause(&self) -> Option<Duration> {
        if self.is_trusted && self.early < Self::MAX_MISSED_HINTS {
            return Some(Self::TRUSTED_PAUSE);
        }
        let is_hinted = self.is_hinted.unwrap_or(self.quiet >= Self::DOUBT_TIME);
        is_hinted.then_some(Self::HINTED_PAUSE)
    }

    /// Records that something was found, by a hint or not. `None` means it was found before the
    /// first wait, which says nothing about hints.
    pub(crate) fn found(&mut self, by_hint: Option<bool>) {
        self.is_hinted = by_hint.or(self.is_hinted);
        self.early = match by_hint {
            Some(true) => 0,
            Some(false) => self.early.saturating_add(1),
            None => self.early,
        };
        self.pause = Self::MIN_PAUSE;
        self.quiet = Duration::ZERO;
    }

    /// Records that nothing was found; returns how long to wait.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.hinted_pause().unwrap_or(self.pause);
        self.pause = (self.pause * 2).min(Self::MAX_PAUSE);
        self.quiet = self.quiet.saturating_add(pause);
        pause
    }
}

/// A subscription to changes of folders: to those that the disk reports, or to events of the system on its own disk.
pub(crate) struct FsWatch {
    disk: Arc<dyn ReadDisk>,
    subscription: Option<Box<dyn Subscription>>,
    /// The watched folders with their identities, because another folder may take the name.
    folders: Vec<(WatchedFolder, Option<Identity>)>,
    coverage: Coverage,
}

impl std::fmt::Debug for FsWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("is_on", &self.is_on())
            .field("folders", &self.folders)
            .finish()
    }
}

impl FsWatch {
    /// Notifies `notifier` of the hints that `on_change` derives from a change; its first argument is whether names changed.
    /// If the disk has no reporter of changes, or there is no room for more watches, there are no notifications.
    pub(crate) fn new(
        disk: &Arc<dyn ReadDisk>,
        notifier: &Notifier,
        on_change: impl Fn(bool, &Path, &mut Hints) + Send + Sync + 'static,
    ) -> Self {
        let notifier = notifier.clone();
        let on_change = Arc::new(move |changes: &[Change]| {
            let mut hints = Hints::default();
            for change in changes {
                match change {
                    Change::Content(path) => on_change(false, path, &mut hints),
                    Change::Name(path) => on_change(true, path, &mut hints),
                    Change::Any => hints.all = true,
                }
            }
            if !hints.is_empty() {
                notifier.notify(|all| {
                    all.paths.extend(hints.paths);
                    all.all |= hints.all;
                });
            }
        });
        let subscription = match disk.reporter() {
            Reporter::Unavailable => None,
            Reporter::System => SystemChanges.subscribe(on_change),
            Reporter::Disk(changes) => changes.subscribe(on_change),
        };
        Self {
            subscription,
            ..Self::off(disk)
        }
    }

    /// Watches nothing.
    pub(crate) fn off(disk: &Arc<dyn ReadDisk>) -> Self {
        Self {
            disk: Arc::clone(disk),
            subscription: None,
            folders: Vec::new(),
            coverage: Coverage::default(),
        }
    }

    /// Returns the folder of `path`, or its nearest existing ancestor, and the one above it: the system does not say that a
    /// folder has moved with one above it.
    pub(crate) fn above(disk: &dyn ReadDisk, path: &Path) -> impl Iterator<Item = WatchedFolder> {
        let above = path.ancestors().skip(1);
        let above = above.skip_while(|folder| !disk.is_folder(folder)).take(2);
        above.map(|folder| WatchedFolder {
            path: folder.to_owned(),
            is_recursive: false,
        })
    }

    /// Watches these folders and no others. They are asked for again when they are watched: what happened to them before that
    /// was not reported. Returns whether changes of all of them are sure to be reported.
    pub(crate) fn keep(&mut self, wanted: impl Fn(&dyn ReadDisk) -> Vec<WatchedFolder>) -> bool {
        /// The number of changes in a row after which the next call continues.
        const MAX_TRIES: usize = 8;
        let Some(subscription) = &self.subscription else {
            return false;
        };
        let identity = |path: &Path| Some(self.disk.metadata(path).ok()?.identity);
        for _ in 0..MAX_TRIES {
            let folders = wanted(&*self.disk);
            let found: Vec<_> = folders
                .iter()
                .map(|folder| (folder.clone(), identity(&folder.path)))
                .collect();
            if found == self.folders {
                // A folder that does not exist yet reports nothing.
                return !found.is_empty() && self.coverage.is_whole && self.coverage.is_trusted;
            }
            self.coverage = subscription.keep(&folders);
            self.folders = found;
        }
        false
    }

    /// Returns whether anything is watched.
    pub(crate) fn is_on(&self) -> bool {
        self.subscription.is_some()
    }

    /// Returns whether everything that is wanted is watched.
    pub(crate) fn is_whole(&self) -> bool {
        self.coverage.is_whole
    }
}

/// Returns when a pause ends. Long ones of several followers end together, so that the processor wakes up once for all.
pub(crate) fn together(pause: Duration) -> Instant {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    const WAKEUPS_PER_PAUSE: u32 = 8;
    let start = *START;
    let end = Instant::now() + pause;
    let step = (pause / WAKEUPS_PER_PAUSE).as_millis();
    if pause >= PollBackoff::TRUSTED_PAUSE && step > 0 {
        let over = (end - start).as_millis() % step;
        end + Duration::from_millis(u64::try_from(step - over).unwrap_or_default())
    } else {
        end
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
    fn a_file_system_that_reports_changes_is_hardly_polled() {
        let mut backoff = PollBackoff::new(true);
        backoff.trust(true);
        let trusted = PollBackoff::TRUSTED_PAUSE.as_millis();
        assert_eq!(pauses(&mut backoff, 2), [trusted; 2]);
        // Hints that come a little late do not matter, hints that never come do.
        for _ in 1..PollBackoff::MAX_MISSED_HINTS {
            backoff.found(Some(false));
            assert_eq!(backoff.pause().as_millis(), trusted);
        }
        backoff.found(Some(false));
        assert_eq!(pauses(&mut backoff, 3), [1, 2, 4]);
        backoff.found(Some(true));
        assert_eq!(backoff.pause().as_millis(), trusted);
        backoff.trust(false);
        assert_eq!(backoff.pause(), PollBackoff::HINTED_PAUSE);
    }

    #[test]
    fn polling_slows_down_while_nothing_happens() {
        let mut backoff = PollBackoff::new(true);
        // The file existed before the first wait.
        backoff.found(None);
        let often = pauses(&mut backoff, 1000);
        let often: Vec<_> = often.iter().take_while(|pause| **pause <= 100).collect();
        assert!((100..110).contains(&often.len()), "{}", often.len());
        assert_eq!(backoff.pause(), PollBackoff::HINTED_PAUSE);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::sync::{Mutex, mpsc};

    use transcript_storage::RealDisk;

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
        let on_event = move |_, _: &Path, _: &mut Hints| {
            let _ = wait.lock().map(|wait| wait.recv());
        };
        let disk: Arc<dyn ReadDisk> = Arc::new(RealDisk);
        let mut watch = FsWatch::new(&disk, &notifier, on_event);
        watch.keep(|_| {
            vec![WatchedFolder {
                path: folder.path().to_owned(),
                is_recursive: false,
            }]
        });
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
