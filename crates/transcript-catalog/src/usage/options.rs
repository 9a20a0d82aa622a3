//! Options of reading requests.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Options of reading requests.
#[derive(Clone, Debug, Default)]
pub struct UsageOptions {
    pub(super) cache: Option<PathBuf>,
    pub(super) deleted_of: Vec<PathBuf>,
    pub(super) changed_since: Option<SystemTime>,
    pub(super) only_kept: bool,
    pub(super) threads: Option<NonZeroUsize>,
    pub(super) done: Option<Arc<AtomicU64>>,
}

impl UsageOptions {
    /// Reads all files, with all processors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the cache folder. With it, only appended lines are read the next time.
    #[must_use]
    pub fn cache(mut self, folder: PathBuf) -> Self {
        self.cache = Some(folder);
        self
    }

    /// Keeps the requests of files that are deleted from the projects in `root`, and counts them. May be called for several
    /// roots. Without a cache it has no effect. [`set_keeps_deleted`](super::set_keeps_deleted) has them kept by readers without this option, too.
    #[must_use]
    pub fn keep_deleted(mut self, root: PathBuf) -> Self {
        self.deleted_of.push(root);
        self
    }

    /// Leaves out files that were not changed since then. A request of today is in a file that was changed today.
    #[must_use]
    pub fn changed_since(mut self, time: SystemTime) -> Self {
        self.changed_since = Some(time);
        self
    }

    /// Reads no file about which nothing is kept: [`Usage::is_known`](super::Usage::is_known) says which sessions were omitted.
    #[must_use]
    pub fn only_kept(mut self, only: bool) -> Self {
        self.only_kept = only;
        self
    }

    /// Uses this number of threads.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Adds the bytes that are done to this counter, out of [`Catalog::bytes`](crate::Catalog::bytes).
    #[must_use]
    pub fn count_bytes(mut self, counter: Arc<AtomicU64>) -> Self {
        self.done = Some(counter);
        self
    }

    pub(super) fn count(&self, bytes: u64) {
        if let Some(done) = &self.done {
            done.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}
