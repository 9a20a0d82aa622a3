//! A home folder: its sessions, and their conversions.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use transcript_storage::{Metadata, ReadDisk};

use super::catalogue::Catalogue;
use super::conversions::{Conversions, Converted, io_error};
use super::earlier_homes::{EarlierHome, EarlierHomes};
use super::lists::Lists;
use super::lock::lock;
use super::memory::{Memory, MemoryFile};
use super::open_folders::OpenFolders;
use super::sessions::Sessions;
use super::shown::Shown;
use crate::clock::Clock;
use crate::codex::Codex;
use crate::conversation::Conversation;
use crate::copilot::Copilot;
use crate::dialect::{Policy, Session};
use crate::gemini::Gemini;
use crate::opencode::OpenCode;
use crate::shared::Shared;
use crate::source::Store;
use crate::{Agent, Error, dialect};

/// How long the list of sessions is used before its folders are looked at: many sessions are asked for one after the other.
const MAX_AGE: Duration = Duration::from_secs(1);

/// A home folder of an agent, or one file of it.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) disk: OpenFolders,
    pub(super) agent: Agent,
    pub(super) path: PathBuf,
    policy: Policy,
    earlier: Option<Arc<dyn EarlierHomes>>,
    conversions: Conversions,
    shared: Shared,
    lists: Lists,
    clock: Clock,
    catalogue: Mutex<Option<(Instant, Arc<Catalogue>)>>,
    memory: OnceLock<MemoryFile>,
}

impl Home {
    pub(super) fn new(
        disk: Arc<dyn ReadDisk>,
        agent: Agent,
        path: PathBuf,
        policy: Policy,
    ) -> Self {
        Self {
            disk: OpenFolders::new(disk),
            agent,
            path,
            policy,
            earlier: None,
            conversions: Conversions::default(),
            shared: Shared::default(),
            lists: Lists::default(),
            clock: Clock::default(),
            catalogue: Mutex::default(),
            memory: OnceLock::new(),
        }
    }

    /// Returns the same home folder, of which nothing is known yet.
    fn unread(&self) -> Self {
        let home = Self::new(
            Arc::clone(self.disk.whole()),
            self.agent,
            self.path.clone(),
            self.policy,
        );
        Self {
            earlier: self.earlier.clone(),
            shared: Shared::by(self.clock.clone()),
            clock: self.clock.clone(),
            ..home
        }
    }

    /// Returns the same home folder, with what earlier versions of its files had.
    pub(super) fn with_earlier(&self, earlier: Arc<dyn EarlierHomes>) -> Self {
        Self {
            earlier: Some(earlier),
            ..self.unread()
        }
    }

    /// Returns the same home folder, which ages by a clock.
    pub(super) fn with_clock(&self, clock: Clock) -> Self {
        Self {
            shared: Shared::by(clock.clone()),
            clock,
            ..self.unread()
        }
    }

    /// Uses what earlier processes kept in a folder; only the first call counts.
    pub(super) fn remember_in(&self, folder: &Path) {
        self.memory.get_or_init(|| {
            let file = MemoryFile::of(folder, self.agent, &self.path, self.policy);
            let memory = file.read();
            self.lists.remember(memory.lists);
            self.conversions.remember(memory.sessions);
            file
        });
    }

    /// Keeps what is known for later processes, if something is new.
    pub(super) fn keep_memory(&self) {
        let Some(file) = self.memory.get() else {
            return;
        };
        if let Some(sessions) = self.conversions.known() {
            let lists = self.lists.known();
            file.write(&Memory { sessions, lists });
        }
    }

    pub(super) fn store(&self) -> Store<'_> {
        Store {
            disk: &self.disk,
            path: &self.path,
        }
    }

    /// Reads the list of sessions.
    pub(super) fn read_catalogue(&self) -> io::Result<Arc<Catalogue>> {
        let asked = self.clock.now();
        let mut known = lock(&self.catalogue);
        match &*known {
            // Another thread read it meanwhile.
            Some((checked, catalogue)) if *checked > asked => Ok(Arc::clone(catalogue)),
            _ => self.read_into(&mut known),
        }
    }

    fn read_into(
        &self,
        known: &mut Option<(Instant, Arc<Catalogue>)>,
    ) -> io::Result<Arc<Catalogue>> {
        let sessions = Sessions::read(self.store(), self.agent, &self.shared, &self.lists);
        let new = Catalogue::new(&self.disk, &self.path, sessions.map_err(io_error)?);
        let new = Arc::new(new);
        *known = Some((self.clock.now(), Arc::clone(&new)));
        Ok(new)
    }

    /// Returns the list of sessions, which is read again when it has changed.
    pub(super) fn catalogue(&self) -> io::Result<Arc<Catalogue>> {
        let mut known = lock(&self.catalogue);
        if let Some((checked, catalogue)) = &mut *known {
            if self.clock.now().duration_since(*checked) < MAX_AGE {
                return Ok(Arc::clone(catalogue));
            }
            if catalogue.is_current(&self.disk) {
                *checked = self.clock.now();
                return Ok(Arc::clone(catalogue));
            }
        }
        self.read_into(&mut known)
    }

    /// Returns what a file below the home folder shows. The list of sessions is read again when it does not have the file.
    pub(super) fn shown(&self, below: &Path) -> io::Result<Shown> {
        let known = self.catalogue()?.shown.get(below).cloned();
        if let Some(shown) = known {
            return Ok(shown);
        }
        let shown = self.read_catalogue()?.shown.get(below).cloned();
        shown.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns a session as a file, as its source files are now.
    pub(super) fn convert(&self, below: &Path) -> io::Result<Arc<Converted>> {
        let shown = self.shown(below)?;
        self.conversions
            .convert(&self.disk, &shown, &|shown| self.read_all(shown))
    }

    /// Returns the properties of the file of a session.
    pub(super) fn metadata(&self, below: &Path) -> io::Result<Metadata> {
        let shown = self.shown(below)?;
        self.conversions
            .metadata(&self.disk, &shown, &|shown| self.read_all(shown))
    }

    /// Reads a session, and what earlier versions of its files had. One that cannot be read adds nothing.
    fn read_all(&self, shown: &Shown) -> Result<Conversation, Error> {
        let mut conversation = self.read(shown)?;
        let earlier = self.earlier.as_ref();
        let Some(earlier) = earlier.filter(|_| self.policy == Policy::Recover) else {
            return Ok(conversation);
        };
        for EarlierHome { path, version } in earlier.of_files(&self.path, &shown.files) {
            let path = &path;
            let store = Store {
                path,
                ..self.store()
            };
            if let Ok(then) = dialect(self.agent).read(store, &shown.id, self.policy) {
                conversation = conversation.with_earlier(&then, &version)?;
            }
        }
        Ok(conversation)
    }

    fn read(&self, shown: &Shown) -> Result<Conversation, Error> {
        let home = self.store();
        let session = || Session {
            id: shown.id.clone(),
            files: shown.files.clone(),
        };
        match (self.agent, &shown.files[..]) {
            (Agent::Codex, _) => {
                let catalogue = lock(&self.catalogue);
                let catalogue = catalogue
                    .as_ref()
                    .map(|(_, catalogue)| Arc::clone(catalogue));
                let rollouts = catalogue.as_ref();
                let rollouts = rollouts.and_then(|known| known.sessions.rollouts.as_ref());
                match rollouts {
                    Some((files, titles)) => {
                        Codex::read_of(files, titles, home, &shown.id, self.policy)
                    }
                    None => dialect(self.agent).read(home, &shown.id, self.policy),
                }
            }
            (Agent::Copilot, _) => Copilot::read_of(&self.shared, home, &session(), self.policy),
            (Agent::Gemini, _) => Gemini::read_of(home, &session(), self.policy),
            (Agent::OpenCode, [path]) if !shown.has_folder_of_rows => {
                let only = Store { path, ..home };
                OpenCode::read_of(&self.shared, only, &shown.id, self.policy)
            }
            (Agent::OpenCode, _) => OpenCode::read_of(&self.shared, home, &shown.id, self.policy),
            // No other file is looked at.
            (agent, [path]) => {
                let only = Store { path, ..home };
                dialect(agent).read(only, &shown.id, self.policy)
            }
            (agent, _) => dialect(agent).read(home, &shown.id, self.policy),
        }
    }
}
