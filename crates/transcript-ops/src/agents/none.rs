//! Without the feature `import` no sessions of other agents are read.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_archive::ArchiveDisk;
use transcript_storage::ReadDisk;

use crate::failure::Failure;

/// The home folders of other agents: none.
#[derive(Debug, Default)]
pub struct Homes;

impl Homes {
    /// The names of the agents whose sessions are read, besides Claude Code.
    pub fn names() -> impl Iterator<Item = &'static str> {
        std::iter::empty()
    }

    /// Returns no home folders.
    #[must_use]
    pub fn on(_: Arc<dyn ReadDisk>) -> Self {
        Self
    }

    /// Does nothing.
    pub fn show_as_agents_do(&self) {}

    pub(crate) fn is_as_agents(&self) -> bool {
        false
    }

    pub(crate) fn remember_in(&self, _: &Path) {}

    pub(crate) fn keep_memory(&self) {}

    /// Adds a home folder.
    ///
    /// # Errors
    /// Always: this build reads no sessions of other agents.
    pub fn add(&self, agent: &str, _: &Path) -> Result<(), Failure> {
        check_name(agent)
    }

    /// Adds a home folder that an archive has.
    ///
    /// # Errors
    /// Always: this build reads no sessions of other agents.
    pub fn add_archived(&self, agent: &str, _: &Arc<ArchiveDisk>) -> Result<(), Failure> {
        check_name(agent)
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        true
    }

    pub(super) fn disk_at(&self, _: &Path) -> Option<Arc<dyn ReadDisk>> {
        None
    }

    /// Returns the name of the agent whose session is at a path: none.
    #[must_use]
    pub fn maker_at(&self, _: &Path) -> Option<&'static str> {
        None
    }

    /// Returns the name of the agent whose home folder has a path: none.
    #[must_use]
    pub fn maker_of_home(&self, _: &Path) -> Option<&'static str> {
        None
    }

    pub(crate) fn folders(&self) -> impl Iterator<Item = (PathBuf, &'static str)> {
        std::iter::empty()
    }

    pub(crate) fn session_of_file(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the files of the session of another agent: none.
    ///
    /// # Errors
    /// Never.
    pub fn files_of(&self, _: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        Ok(None)
    }

    /// Returns the files of the sessions in a home folder: none.
    ///
    /// # Errors
    /// Never.
    pub fn groups_of_files(&self, _: &Path) -> io::Result<Vec<Vec<PathBuf>>> {
        Ok(Vec::new())
    }

    /// Writes the session of another agent as items; returns false for any other session.
    ///
    /// # Errors
    /// Never.
    pub fn write_items(&self, _: &Path, _: &mut dyn Write) -> io::Result<bool> {
        Ok(false)
    }
}

pub(crate) fn sessions_in_database(_: &str, _: &Path) -> Vec<String> {
    Vec::new()
}

pub(crate) fn is_home(_: &str, _: &Path) -> bool {
    false
}

pub(crate) fn check_name(_: &str) -> Result<(), Failure> {
    let message = "this build reads only the sessions of claude-code";
    Err(Failure::option("agent", message))
}
