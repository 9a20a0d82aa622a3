//! What sessions cost (docs/usage.md): requests, each counted once over all files, and sums of them.
//!
//! ```no_run
//! use transcript_catalog::Catalog;
//! use transcript_catalog::usage::{By, Prices, Report, UsageOptions};
//!
//! let catalog = Catalog::open("projects".as_ref())?;
//! let usage = catalog.usage(&UsageOptions::new());
//! let prices = Prices::embedded();
//! let rows = usage.rows(&Report::by(&[By::Month, By::Model]), &prices);
//! for row in rows {
//!     println!("{} {}: {:?}", row.keys[0], row.keys[1], row.sums.cost);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod prices;
mod report;
mod tokens;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use transcript_reader::Error;

pub use prices::{ModelPrices, Prices, PricesError, Terms};
pub use report::{
    Block, By, ClientTotal, ContextSize, Key, ModelTotal, Report, Row, Rows, Sums,
};
pub use tokens::Tokens;

use crate::files::Catalog;

/// How requests are read.
#[derive(Clone, Debug, Default)]
pub struct UsageOptions {
    cache: Option<PathBuf>,
    keeps_deleted: bool,
    changed_since: Option<SystemTime>,
    threads: Option<NonZeroUsize>,
    done: Option<Arc<AtomicU64>>,
}

impl UsageOptions {
    /// Reads all files, with all processors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps in this folder what was read, so that only what was appended is read the next time.
    #[must_use]
    pub fn cache(mut self, folder: PathBuf) -> Self {
        self.cache = Some(folder);
        self
    }

    /// Keeps the requests of files that are deleted, and counts them. Without a cache it has no effect.
    #[must_use]
    pub fn keep_deleted(mut self, keeps: bool) -> Self {
        self.keeps_deleted = keeps;
        self
    }

    /// Leaves out files that were not changed since then. A request of today is in a file that was changed today.
    #[must_use]
    pub fn changed_since(mut self, time: SystemTime) -> Self {
        self.changed_since = Some(time);
        self
    }

    /// Uses so many threads.
    #[must_use]
    pub fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Adds the bytes that are done to this counter, out of [`Catalog::bytes`].
    #[must_use]
    pub fn count_bytes(mut self, counter: Arc<AtomicU64>) -> Self {
        self.done = Some(counter);
        self
    }
}

/// The requests of sessions, each once.
#[derive(Debug)]
pub struct Usage<'c> {
    catalog: &'c Catalog,
    problems: Vec<Error>,
}

impl Catalog {
    /// Reads the requests of all sessions. Files that cannot be read are [`Usage::problems`].
    #[must_use]
    pub fn usage(&self, options: &UsageOptions) -> Usage<'_> {
        unimplemented!("being written")
    }
}

impl Usage<'_> {
    /// Sums up the requests.
    #[must_use]
    pub fn rows(&self, report: &Report, prices: &Prices) -> Rows {
        unimplemented!("being written")
    }

    /// Returns the blocks of five hours, in order; `now`, in milliseconds since 1970, decides which one is active.
    #[must_use]
    pub fn blocks(&self, report: &Report, prices: &Prices, now: i64) -> Vec<Block> {
        unimplemented!("being written")
    }

    /// Compares with what the clients counted themselves: one element for each session that says so, by id.
    #[must_use]
    pub fn client_totals(&self, prices: &Prices) -> Vec<ClientTotal> {
        unimplemented!("being written")
    }

    /// Returns the size of the context of a session.
    #[must_use]
    pub fn context_size(&self, session: &str) -> Option<ContextSize> {
        unimplemented!("being written")
    }

    /// Returns the number of results of the client's `WebSearch` whose call is not in their file.
    #[must_use]
    pub fn unmatched_searches(&self) -> u64 {
        unimplemented!("being written")
    }

    /// Returns the number of requests of a session that other sessions own.
    #[must_use]
    pub fn copies(&self) -> u64 {
        unimplemented!("being written")
    }

    /// Returns what could not be read.
    #[must_use]
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// Returns the number of bytes that were read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        unimplemented!("being written")
    }
}
