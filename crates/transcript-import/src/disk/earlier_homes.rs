//! Earlier versions of the files of a home folder.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// The earlier versions of files that an [`ImportDisk`](super::ImportDisk) shows.
pub trait EarlierHomes: Debug + Send + Sync {
    /// Returns the home folder as it was when one of these files, which are below `home`, had something that a later version of it
    /// lacks; the latest first.
    fn of_files(&self, home: &Path, files: &[PathBuf]) -> Vec<EarlierHome>;
}

/// A home folder as it was at an earlier time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierHome {
    /// Where it is, on the disk of the newest one.
    pub path: PathBuf,
    /// The name of the version, which is another one for each time.
    pub version: String,
}
