//! The home folders of other agents, and the disks that show their sessions.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use transcript_import::{Agent, Error, ImportDisk, Policy, home_of_file};
use transcript_storage::{ReadDisk, RealDisk};

use super::CLAUDE_CODE;
use crate::failure::{Failure, message_of};

/// The home folders of other agents.
#[derive(Debug)]
pub struct Homes {
    /// The disk that has them.
    disk: Arc<dyn ReadDisk>,
    is_as_agents: AtomicBool,
    /// More are added when a file of an agent is named that is in none of them.
    disks: RwLock<Vec<Arc<ImportDisk>>>,
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
        }
    }

    /// From now on shows damaged sessions as the agents themselves show them.
    pub fn show_as_agents_do(&self) {
        self.is_as_agents.store(true, Ordering::Relaxed);
        let mut disks = self.disks.write().unwrap_or_else(PoisonError::into_inner);
        for disk in &mut *disks {
            *disk = self.disk_of(disk.agent(), disk.home());
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

    fn disk_of(&self, agent: Agent, home: &Path) -> Arc<ImportDisk> {
        let policy = if self.is_as_agents.load(Ordering::Relaxed) {
            Policy::Vendor
        } else {
            Policy::Recover
        };
        let disk = ImportDisk::with(Arc::clone(&self.disk), agent, home, policy);
        Arc::new(disk)
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
        self.add_home(agent, home);
        Ok(())
    }

    fn add_home(&self, agent: Agent, home: &Path) {
        let disk = self.disk_of(agent, home);
        let mut disks = self.disks.write().unwrap_or_else(PoisonError::into_inner);
        if disks.iter().all(|known| known.home() != home) {
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
        let mut disks = self.all().into_iter();
        disks.find(|disk| path.starts_with(disk.home()) && disk.has(path))
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

    /// Returns the path of the session that a file of an agent belongs to, below its home folder; `None` for other files.
    pub(crate) fn session_of_file(&self, file: &Path) -> Option<PathBuf> {
        let name = file.file_name()?.to_string_lossy();
        let mut endings = [".jsonl", ".jsonl.zst", ".json"].into_iter();
        let may_be_session = endings.any(|ending| name.ends_with(ending));
        if !may_be_session || self.maker_at(file).is_some() || !self.disk.is_file(file) {
            return None;
        }
        let file = std::path::absolute(file).ok()?;
        let known = self.all();
        let known = known.iter().find(|disk| file.starts_with(disk.home()));
        if let Some(path) = known.and_then(|disk| disk.path_of(&file).ok()?) {
            return Some(path);
        }
        let (agent, home) = home_of_file(&*self.disk, &file).ok()??;
        self.add_home(agent, &home);
        let disks = self.all();
        let disk = disks.iter().find(|disk| disk.home() == home)?;
        disk.path_of(&file).ok()?
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
