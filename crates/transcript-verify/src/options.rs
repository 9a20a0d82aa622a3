//! Options of a verification.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Options of a verification.
#[derive(Clone, Debug)]
#[must_use]
pub struct VerifyOptions {
    pub(crate) requests: bool,
    pub(crate) counter: Option<Arc<AtomicU64>>,
    /// Whether one thread reads a file, as others read other files.
    pub(crate) is_single: bool,
    pub(crate) sweep_days: u32,
    pub(crate) windows: Option<fn(&str) -> Option<u64>>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl VerifyOptions {
    /// Returns the defaults.
    pub fn new() -> Self {
        Self {
            requests: false,
            counter: None,
            is_single: false,
            sweep_days: 7,
            windows: None,
        }
    }

    /// Builds every request again that a client recorded in the file, and reports those that differ.
    /// The cost is that of one resume for each.
    pub fn requests(mut self, requests: bool) -> Self {
        self.requests = requests;
        self
    }

    /// Reports requests that are longer than the context window of their model, which `window` returns in tokens; `None`
    /// for a model that it does not know.
    pub fn context_windows(mut self, window: fn(&str) -> Option<u64>) -> Self {
        self.windows = Some(window);
        self
    }

    /// Adds the number of bytes read to `counter`, several times per megabyte, so that another
    /// thread can show progress. Every file is read twice, and once more up to each recorded request
    /// if these are built.
    pub fn count_bytes(mut self, counter: Arc<AtomicU64>) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Reports the sessions of a store that the client deletes within this number of days; 7 by default.
    pub fn sweep_within(mut self, days: u32) -> Self {
        self.sweep_days = days;
        self
    }
}
