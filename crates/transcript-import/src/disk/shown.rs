//! A session as it is shown.

use std::path::{Path, PathBuf};

use crate::entries::Subject;
use crate::version::Version;

/// A session, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The id of the agent.
    pub(super) id: String,
    /// What distinguishes it from all other sessions: the id, with the path of a second file of the same id.
    pub(super) key: String,
    /// Its files.
    pub(super) files: Vec<PathBuf>,
    /// Files beside them that say something about it, such as its title. They need not be there.
    pub(super) beside: Vec<PathBuf>,
    /// What else decides it.
    pub(super) version: Option<Version>,
    /// Whether it has a file for each of its messages, so that a change of their folders is a change of it.
    pub(super) has_folder_of_rows: bool,
    /// The id of the session that its lines name: of a subagent, that of the session which started it.
    pub(super) session_id: String,
    /// The id of the subagent that it is.
    pub(super) agent_id: Option<String>,
    /// Files of subagents that are shown as files of their own.
    pub(super) of_subagents: Vec<PathBuf>,
}

impl Shown {
    /// Returns what its lines are of.
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            session_id: &self.session_id,
            agent_id: self.agent_id.as_deref(),
            elsewhere: &self.of_subagents,
        }
    }

    /// Returns the files that are read for it. Rows of a whole database are in its version.
    pub(super) fn read_files(&self) -> impl Iterator<Item = &Path> {
        let is_of_version = self
            .version
            .is_some_and(|version| version.updated.is_some());
        let own = self.files.iter().filter(move |_| !is_of_version);
        own.chain(&self.of_subagents).map(|path| &**path)
    }
}
