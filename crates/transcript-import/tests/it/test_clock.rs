//! A clock that a test sets: a list of sessions ages without waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use transcript_import::ImportDisk;

/// A clock that stands still between calls of [`pass`](Self::pass).
#[derive(Clone)]
pub(crate) struct TestClock {
    start: Instant,
    seconds: Arc<AtomicU64>,
}

impl TestClock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            seconds: Arc::default(),
        }
    }

    /// Lets pass longer than a list of sessions is used before its folders are looked at.
    pub(crate) fn pass(&self) {
        self.seconds.fetch_add(2, Ordering::SeqCst);
    }

    /// Returns a disk that ages by this clock.
    pub(crate) fn of(&self, disk: ImportDisk) -> ImportDisk {
        let clock = self.clone();
        disk.by_clock(move || {
            clock.start + Duration::from_secs(clock.seconds.load(Ordering::SeqCst))
        })
    }
}
