//! Without the feature `remote` there are no buckets.

use std::path::{Path, PathBuf};

use transcript_archive::ArchiveOptions;

use crate::failure::Failure;

/// The buckets that archives are in: none.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownBuckets;

impl KnownBuckets {
    pub(crate) fn new() -> Self {
        Self
    }

    /// Adds an address.
    ///
    /// # Errors
    /// Always: this build reads no object storage.
    pub(crate) fn add(&self, _: &Path) -> Result<PathBuf, Failure> {
        let text = "this build reads no archives in buckets";
        let next = "install the full form of transcript: `cargo install transcript-cli`";
        Err(Failure::options(text).with_next(next))
    }

    pub(crate) fn in_options(&self, options: ArchiveOptions) -> ArchiveOptions {
        options
    }

    pub(crate) fn address_of(&self, _: &Path) -> Option<String> {
        None
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        Vec::new()
    }
}
