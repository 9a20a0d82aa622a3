//! The home folders of other agents, and the disks that show their sessions.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use transcript_archive::ArchiveDisk;
use transcript_import::{
    Agent, Error, ImportDisk, Policy, ShownConversation, Store, dialect, home_of_file,
};
use transcript_storage::{ReadDisk, RealDisk};

use super::CLAUDE_CODE;
use crate::cut_versions::CutVersions;
use crate::failure::{Failure, message_of};

/// The home folders of other agents.
#[derive(Debug)]
pub struct Homes {
    /// The disk that has them.
    disk: Arc<dyn ReadDisk>,
    is_as_agents: AtomicBool,
    /// More are added when a file of an agent is named that is in none of them.
    disks: RwLock<Vec<Arc<ImportDisk>>>,
    /// The archives with home folders of these agents. What is in them as of a time is added when something there is asked for.
    archives: RwLock<Vec<(Agent, Arc<ArchiveDisk>)>>,
}

impl Default for Homes {
    fn default() -> Self {
        Self::on(Arc::new(RealDisk))
    }
}

impl Homes {
    /// The names of the agents whose sessions are read, besides Claude Code.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Agent::ALL.into_iter().map(Agent::name)
    }

    /// Returns no home folders, on `disk`.
    #[must_use]
    pub fn on(disk: Arc<dyn ReadDisk>) -> Self {
        Self {
            disk,
            is_as_agents: AtomicBool::new(false),
            disks: RwLock::default(),
            archives: RwLock::default(),
        }
    }

    /// From now on shows damaged sessions as the agents themselves show them.
    pub fn show_as_agents_do(&self) {
        self.is_as_agents.store(true, Ordering::Relaxed);
        let mut disks = self.disks.write().unwrap_or_else(PoisonError::into_inner);
        for disk in &mut *disks {
            // As the agent shows a session, it has nothing of earlier versions.
            *disk = self.disk_of(disk.source_disk(), disk.agent(), disk.home(), None);
        }
    }

    /// Uses what earlier processes kept about the sessions in a folder of this machine. It is used for all that is asked
    /// afterwards.
    pub(crate) fn remember_in(&self, folder: &Path) {
        self.all().iter().for_each(|disk| disk.remember_in(folder));
    }

    /// Keeps there what is new.
    pub(crate) fn keep_memory(&self) {
        self.all().iter().for_each(|disk| disk.keep_memory());
    }

    /// Returns the disk that shows a home folder, with what earlier versions of its files in an archive had.
    fn disk_of(
        &self,
        on: &Arc<dyn ReadDisk>,
        agent: Agent,
        home: &Path,
        archive: Option<&Arc<ArchiveDisk>>,
    ) -> Arc<ImportDisk> {
        let policy = if self.is_as_agents.load(Ordering::Relaxed) {
            Policy::Vendor
        } else {
            Policy::Recover
        };
        let disk = ImportDisk::with(Arc::clone(on), agent, home, policy);
        Arc::new(match archive {
            Some(archive) => disk.earlier(Arc::new(CutVersions::of(archive))),
            None => disk,
        })
    }

    /// Returns whether damaged sessions are shown as the agents themselves show them.
    pub(crate) fn is_as_agents(&self) -> bool {
        self.is_as_agents.load(Ordering::Relaxed)
    }

    /// Adds the home folder of the agent of this name, or one file with a session of it.
    ///
    /// # Errors
    /// When no agent has the name.
    pub fn add(&self, agent: &str, home: &Path) -> Result<(), Failure> {
        let agent = agent_of(agent)?;
        self.add_home(&self.disk, agent, home);
        Ok(())
    }

    /// Adds the home folders of the agent of this name that an archive has; in a bucket, each when something in it is asked for.
    ///
    /// # Errors
    /// When no agent has the name.
    pub fn add_archived(&self, agent: &str, archive: &Arc<ArchiveDisk>) -> Result<(), Failure> {
        let agent = agent_of(agent)?;
        if !archive.is_in_bucket() {
            let disk: Arc<dyn ReadDisk> = Arc::clone(archive) as _;
            for home in archive.homes(agent.name()).into_iter().flatten() {
                self.add_disk(self.disk_of(&disk, agent, &home, Some(archive)));
            }
        }
        let archives = self.archives.write();
        let mut archives = archives.unwrap_or_else(PoisonError::into_inner);
        archives.push((agent, Arc::clone(archive)));
        Ok(())
    }

    fn add_home(&self, on: &Arc<dyn ReadDisk>, agent: Agent, home: &Path) {
        self.add_disk(self.disk_of(on, agent, home, None));
    }

    fn add_disk(&self, disk: Arc<ImportDisk>) {
        let mut disks = self.disks.write().unwrap_or_else(PoisonError::into_inner);
        if disks.iter().all(|known| known.home() != disk.home()) {
            disks.push(disk);
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.disks
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    fn all(&self) -> Vec<Arc<ImportDisk>> {
        let disks = self.disks.read().unwrap_or_else(PoisonError::into_inner);
        disks.clone()
    }

    /// Returns the disk that has something at a path.
    pub(super) fn disk_at(&self, path: &Path) -> Option<Arc<dyn ReadDisk>> {
        let disk = self.shown_at(path)?;
        Some(disk as _)
    }

    fn shown_at(&self, path: &Path) -> Option<Arc<ImportDisk>> {
        let is_there = |disk: &Arc<ImportDisk>| path.starts_with(disk.home()) && disk.has(path);
        let known = self.all().into_iter().find(is_there);
        known.or_else(|| {
            let home = self.add_of_archive(path)?;
            let disks = self.all().into_iter();
            disks.filter(|disk| disk.home() == home).find(is_there)
        })
    }

    /// Adds the home folder in an archive that a path leads to, as it is or as it was at an earlier time; returns it if it was not known.
    fn add_of_archive(&self, path: &Path) -> Option<PathBuf> {
        let archives = self.archives.read();
        let archives = archives.unwrap_or_else(PoisonError::into_inner).clone();
        for (agent, archive) in archives {
            let Some(below) = archive.below_home(agent.name(), path) else {
                continue;
            };
            let home = path.ancestors().nth(below.components().count())?;
            if self.all().iter().any(|disk| disk.home() == home) {
                return None;
            }
            // Of an earlier time, there is nothing before it.
            let is_newest = archive.time_of(path).is_none();
            let disk: Arc<dyn ReadDisk> = Arc::clone(&archive) as _;
            self.add_disk(self.disk_of(&disk, agent, home, is_newest.then_some(&archive)));
            return Some(home.to_owned());
        }
        None
    }

    /// Returns the name of the agent whose session or home folder is at a path; `None` elsewhere.
    #[must_use]
    pub fn maker_at(&self, path: &Path) -> Option<&'static str> {
        Some(self.shown_at(path)?.agent().name())
    }

    /// Returns the name of the agent whose home folder has a path, whether or not a session is there.
    #[must_use]
    pub fn maker_of_home(&self, path: &Path) -> Option<&'static str> {
        let disks = self.all();
        let disk = disks.iter().find(|disk| path.starts_with(disk.home()));
        disk.map(|disk| disk.agent().name())
    }

    /// Returns the home folders, each with the name of its agent.
    pub(crate) fn folders(&self) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let disks = self.all().into_iter();
        disks.map(|disk| (disk.home().to_owned(), disk.agent().name()))
    }

    /// Returns the path of the session that a file of an agent belongs to, below its home folder; `None` for other files.
    pub(crate) fn session_of_file(&self, file: &Path) -> Option<PathBuf> {
        let name = file.file_name()?.to_string_lossy();
        let mut endings = [".jsonl", ".jsonl.zst", ".json"].into_iter();
        let may_be_session = endings.any(|ending| name.ends_with(ending));
        if !may_be_session || self.maker_at(file).is_some() {
            return None;
        }
        let file = std::path::absolute(file).ok()?;
        let known = self.all();
        let known = known.iter().find(|disk| file.starts_with(disk.home()));
        let has_file = match known {
            Some(disk) => disk.source_disk().is_file(&file),
            None => self.disk.is_file(&file),
        };
        if !has_file {
            return None;
        }
        if let Some(path) = known.and_then(|disk| disk.path_of(&file).ok()?) {
            return Some(path);
        }
        let (agent, home) = home_of_file(&*self.disk, &file).ok()??;
        self.add_home(&self.disk, agent, &home);
        let disks = self.all();
        let disk = disks.iter().find(|disk| disk.home() == home)?;
        disk.path_of(&file).ok()?
    }

    /// Returns the files that the session at a path was read from, and their databases only if it has no other; `None` for any other
    /// session.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn files_of(&self, path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let Some(disk) = self.shown_at(path) else {
            return Ok(None);
        };
        let conversation = disk.conversation(path)?;
        let mut files = Vec::new();
        for is_table in [false, true] {
            let sources = conversation.sources.iter();
            let sources = sources.filter(|source| source.table.is_some() == is_table);
            if files.is_empty() {
                files.extend(sources.map(|source| source.path.clone()));
            }
        }
        files.sort_unstable();
        files.dedup();
        Ok(Some(files))
    }

    /// Returns the files of the sessions in the home folder of an agent, those together that sessions have in common: a fork needs
    /// the files of its original.
    ///
    /// # Errors
    /// When a session cannot be read.
    pub fn groups_of_files(&self, home: &Path) -> io::Result<Vec<Vec<PathBuf>>> {
        let disks = self.all();
        let disk = disks.iter().find(|disk| disk.home() == home);
        let disk = disk.ok_or(io::ErrorKind::NotFound)?;
        let mut groups: Vec<BTreeSet<PathBuf>> = Vec::new();
        for path in disk.sessions()? {
            let files = self.files_of(&home.join(path))?.unwrap_or_default();
            let mut joined: BTreeSet<PathBuf> = files.into_iter().collect();
            groups.retain(|group| {
                let is_other = group.is_disjoint(&joined);
                joined.extend(group.iter().filter(|_| !is_other).cloned());
                is_other
            });
            groups.push(joined);
        }
        let groups = groups.into_iter();
        Ok(groups.map(|group| group.into_iter().collect()).collect())
    }

    /// Returns the session of another agent at a path; `None` for any other session.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn conversation(&self, path: &Path) -> io::Result<Option<ShownConversation>> {
        let disk = self.shown_at(path);
        disk.map(|disk| disk.conversation(path)).transpose()
    }

    /// Writes the session of another agent as items; returns false for any other session.
    ///
    /// # Errors
    /// When it cannot be read, or `out` fails.
    pub fn write_items(&self, path: &Path, out: &mut dyn Write) -> io::Result<bool> {
        let Some(disk) = self.shown_at(path) else {
            return Ok(false);
        };
        let conversation = disk.conversation(path)?;
        match conversation.write_items(out) {
            Ok(()) => Ok(true),
            Err(Error::Write { error }) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// Returns the ids of the sessions in a database of the agent of this name; none if it cannot be read.
pub(crate) fn sessions_in_database(agent: &str, path: &Path) -> Vec<String> {
    let Ok(agent) = agent.parse::<Agent>() else {
        return Vec::new();
    };
    let store = Store {
        disk: &RealDisk,
        path,
    };
    let sessions = dialect(agent).sessions(store).unwrap_or_default();
    sessions.into_iter().map(|session| session.id).collect()
}

/// Returns whether a folder looks like the home folder of the agent of this name.
pub(crate) fn is_home(agent: &str, folder: &Path) -> bool {
    let agent = agent.parse::<Agent>();
    agent.is_ok_and(|agent| ImportDisk::new(Arc::new(RealDisk), agent, folder).has_store())
}

/// Checks the name of an agent.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    agent_of(name).map(drop)
}

fn agent_of(name: &str) -> Result<Agent, Failure> {
    name.parse::<Agent>().map_err(|error| {
        let names: Vec<&str> = std::iter::once(CLAUDE_CODE).chain(Homes::names()).collect();
        let known = names.join(", ");
        let message = message_of(&io::Error::other(error));
        Failure::option("agent", format!("{name:?} is {message}; known are {known}"))
    })
}
