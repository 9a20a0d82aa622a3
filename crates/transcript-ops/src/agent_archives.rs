//! The archived sessions of other agents.
//!
//! An archive has the files of a home folder. A session that is one file of it, or several, is there as long as the archive is. One
//! that is rows of a database is only in the versions of the database from before it was deleted: the summary of each
//! version names its sessions.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use transcript_archive::ArchiveDisk;
use transcript_manage::ArchivedHome;
use transcript_storage::{ReadDisk, is_absent};

use crate::agents::{Homes, SessionsDisk, sessions_in_database};

/// What the ending of a database is.
const DATABASE_ENDING: &str = ".db";

/// The summary of a version of a database.
#[derive(Deserialize, Serialize)]
struct DatabaseSummary {
    /// The ids of its sessions.
    sessions: Vec<String>,
}

/// Describes a version of a database of an agent for [`CaptureOptions::summarize`](transcript_archive::CaptureOptions::summarize), so
/// that the archive knows which sessions it has.
pub fn summarize_database(agent: &str) -> impl Fn(&Path) -> Vec<u8> + Send + Sync + use<> {
    let agent = agent.to_owned();
    move |path| {
        let sessions = sessions_in_database(&agent, path);
        serde_json::to_vec(&DatabaseSummary { sessions }).unwrap_or_default()
    }
}

/// The archived home folder of an agent.
#[derive(Debug)]
pub(crate) struct AgentArchive {
    agent: String,
    archive: Arc<ArchiveDisk>,
    homes: Arc<Homes>,
}

impl AgentArchive {
    /// Shows the sessions through `homes`, to which the archive was added.
    pub(crate) fn new(agent: &str, archive: &Arc<ArchiveDisk>, homes: &Arc<Homes>) -> Self {
        Self {
            agent: agent.to_owned(),
            archive: Arc::clone(archive),
            homes: Arc::clone(homes),
        }
    }

    /// Returns the times of the captures of databases that have a session which no later one has.
    fn last_seen(&self, home: &Path) -> io::Result<Vec<SystemTime>> {
        let entries = match self.archive.list(home) {
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut times = Vec::new();
        for entry in entries {
            let name = entry?.name;
            if !name.to_string_lossy().ends_with(DATABASE_ENDING) {
                continue;
            }
            let versions = self.archive.versions(&home.join(name))?;
            let mut seen = HashSet::new();
            for (number, version) in versions.into_iter().rev().enumerate() {
                let summary = serde_json::from_slice::<DatabaseSummary>(&version.summary);
                let Ok(summary) = summary else { continue };
                let mut has_more = false;
                for session in summary.sessions {
                    has_more |= seen.insert(session);
                }
                times.extend((has_more && number > 0).then_some(version.captured));
            }
        }
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }
}

impl ArchivedHome for AgentArchive {
    fn agent(&self) -> &str {
        &self.agent
    }

    fn disk(&self) -> Arc<dyn ReadDisk> {
        let archive: Arc<dyn ReadDisk> = Arc::clone(&self.archive) as _;
        Arc::new(SessionsDisk::new(archive, Arc::clone(&self.homes)))
    }

    fn folders(&self) -> io::Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        for home in self.archive.homes(&self.agent)? {
            let times = self.last_seen(&home)?.into_iter().rev();
            let earlier = times.filter_map(|time| self.archive.as_of(&home, time));
            let earlier: Vec<PathBuf> = earlier.collect();
            folders.push(home);
            folders.extend(earlier);
        }
        Ok(folders)
    }
}
