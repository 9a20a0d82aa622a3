//! What is served, and how.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use transcript_catalog::usage::Prices;
use transcript_render::RenderOptions;
use transcript_storage::ReadDisk;

/// What is served, and how it is shown.
pub struct ServeOptions {
    /// The folder of projects.
    pub root: PathBuf,
    /// The disk to read from.
    pub disk: Arc<dyn ReadDisk>,
    /// How items are shown.
    pub render: RenderOptions,
    /// What calls cost, for the page of usage.
    pub prices: Prices,
    /// Reads a time in a search.
    pub read_time: Box<ReadTime>,
    /// The folder for what makes later searches faster; `None` keeps nothing.
    pub cache: Option<PathBuf>,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// The token in the address; `None` for a new one. Who knows it can read everything below the root.
    pub token: Option<String>,
}

/// Reads a time, in milliseconds since 1970, or says what is wrong with it.
pub type ReadTime = dyn Fn(&str) -> Result<i64, String> + Send + Sync;

impl fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ServeOptions");
        shown.field("root", &self.root).field("port", &self.port);
        shown.finish_non_exhaustive()
    }
}
