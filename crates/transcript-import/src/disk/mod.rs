//! A disk on which the sessions of an agent are files of our own format.

mod catalogue;
mod conversions;
mod file;
mod head;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use transcript_storage::{
    Entries, LocalDisk, Metadata, ReadDisk, ReadFile, Reporter, entries_below,
};

use crate::dialect::Policy;
use crate::source::Store;
use crate::{Agent, Conversation, Error, agent_of_file, dialect};

use catalogue::{Catalogue, Shown};
use conversions::{Conversions, Converted, io_error, lock};
use file::SessionAsFile;

/// A disk on which each session of an agent's home folder is a file of our own format.
///
/// Below the home folder are the files `<project>/<session id>.jsonl`, and `<project>/<session id>/subagents/agent-<id>.jsonl` for
/// subagents with a file of their own. The project is the name that Claude Code gives to the working folder, or `unknown`. Nothing else
/// is there, and nothing outside of the home folder.
///
/// A file is made when something asks for it, from its source files as they are then, and again when they change: the same source
/// makes the same bytes. Its time is that of the newest source file. If it is not its earlier self with lines appended, it gets
/// another identity.
///
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use transcript_import::{Agent, ImportDisk};
/// use transcript_storage::{MemoryDisk, ReadDisk};
///
/// let disk = MemoryDisk::new();
/// let lines = [
///     r#"{"type":"session","id":"s1","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}"#,
///     r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hello"}}"#,
/// ];
/// disk.put("/home/.pi/agent/sessions/--w--/now_s1.jsonl", lines.join("\n"));
///
/// let sessions = ImportDisk::new(Arc::new(disk), Agent::Pi, "/home/.pi/agent");
/// let file = sessions.read(Path::new("/home/.pi/agent/-w/s1.jsonl"), 1 << 20)?;
/// let prompt = String::from_utf8_lossy(&file);
/// assert!(prompt.lines().last().is_some_and(|line| line.contains(r#""content":"hello""#)));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ImportDisk {
    disk: Arc<dyn ReadDisk>,
    agent: Agent,
    home: PathBuf,
    conversions: Arc<Conversions>,
    catalogue: Mutex<Option<Arc<Catalogue>>>,
}

impl ImportDisk {
    /// Shows the sessions in the home folder of an agent, or those in one file of it, on `disk`.
    #[must_use]
    pub fn new(disk: Arc<dyn ReadDisk>, agent: Agent, home: impl Into<PathBuf>) -> Self {
        Self::with(disk, agent, home, Policy::default())
    }

    /// As [`Self::new`], under a policy.
    #[must_use]
    pub fn with(
        disk: Arc<dyn ReadDisk>,
        agent: Agent,
        home: impl Into<PathBuf>,
        policy: Policy,
    ) -> Self {
        let home = home.into();
        let conversions = Conversions::new(Arc::clone(&disk), agent, home.clone(), policy);
        Self {
            disk,
            agent,
            home,
            conversions: Arc::new(conversions),
            catalogue: Mutex::default(),
        }
    }

    /// Returns the agent.
    #[must_use]
    pub fn agent(&self) -> Agent {
        self.agent
    }

    /// Returns the home folder of the agent.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns whether the folder looks like the home folder of the agent, or is one file with a session of it.
    #[must_use]
    pub fn has_store(&self) -> bool {
        let store = self.store();
        dialect(self.agent).has_store(store) || self.disk.is_file(&self.home)
    }

    /// Returns the path of the file that shows the session which a file of the agent belongs to.
    ///
    /// # Errors
    /// When the system fails.
    pub fn path_of(&self, file: &Path) -> io::Result<Option<PathBuf>> {
        let catalogue = self.read_catalogue()?;
        Ok(catalogue.path_of(file).map(|path| self.home.join(path)))
    }

    /// Returns the conversation that a file shows.
    ///
    /// # Errors
    /// As [`NotFound`](io::ErrorKind::NotFound) when there is no such file; when the system fails.
    pub fn conversation(&self, path: &Path) -> io::Result<ShownConversation> {
        let shown = self.shown(path)?;
        Ok(ShownConversation(self.conversions.convert(&shown)?))
    }

    fn store(&self) -> Store<'_> {
        Store {
            disk: &*self.disk,
            path: &self.home,
        }
    }

    fn read_catalogue(&self) -> io::Result<Arc<Catalogue>> {
        let catalogue = Catalogue::read(self.store(), self.agent).map_err(io_error)?;
        let catalogue = Arc::new(catalogue);
        *lock(&self.catalogue) = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }

    /// Returns what a file shows. The list of sessions is read again when it does not have the file.
    fn shown(&self, path: &Path) -> io::Result<Shown> {
        let below = path.strip_prefix(&self.home);
        let below = below.map_err(|_| io::ErrorKind::NotFound)?;
        if below.extension() != Some(OsStr::new("jsonl")) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let known = lock(&self.catalogue).clone();
        let known = known.and_then(|catalogue| catalogue.shown.get(below).cloned());
        if let Some(shown) = known {
            return Ok(shown);
        }
        let catalogue = self.read_catalogue()?;
        let shown = catalogue.shown.get(below).cloned();
        shown.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The conversation that a file shows.
#[derive(Clone, Debug)]
pub struct ShownConversation(Arc<Converted>);

impl std::ops::Deref for ShownConversation {
    type Target = Conversation;

    fn deref(&self) -> &Conversation {
        self.0.entries.conversation()
    }
}

impl ReadDisk for ImportDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let shown = self.shown(path)?;
        Ok(Arc::new(SessionAsFile::open(&self.conversions, &shown)?))
    }

    /// A list of the home folder reads the list of sessions again; folders below it are as they were then.
    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let below = folder.strip_prefix(&self.home);
        let below = below.map_err(|_| io::ErrorKind::NotFound)?;
        let known = lock(&self.catalogue).clone();
        let known = known.filter(|_| !below.as_os_str().is_empty());
        let catalogue = match known {
            Some(catalogue) => catalogue,
            None => self.read_catalogue()?,
        };
        let entries = entries_below(below, catalogue.shown.keys());
        let entries = match entries {
            // The home folder is there, even without a session.
            Err(_) if below.as_os_str().is_empty() => Vec::new(),
            entries => entries?,
        };
        Ok(Box::new(entries.into_iter().map(Ok)))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        if path == self.home {
            self.disk.metadata(path)?;
            return Ok(Metadata::of_folder_in_memory());
        }
        if let Ok(shown) = self.shown(path) {
            return self.conversions.metadata(&shown);
        }
        let has_entries = self.list(path)?.next().is_some();
        let folder = has_entries.then(Metadata::of_folder_in_memory);
        folder.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn local(&self) -> Option<&dyn LocalDisk> {
        None
    }

    /// The agent reports nothing: files are polled.
    fn reporter(&self) -> Reporter {
        Reporter::Unavailable
    }
}

/// Returns the agent that wrote a file, and its home folder: the nearest folder above the file that looks like one, else the file
/// itself. `None` for a file of no agent that is known here.
///
/// # Errors
/// When the system fails.
pub fn home_of_file(disk: &dyn ReadDisk, file: &Path) -> Result<Option<(Agent, PathBuf)>, Error> {
    let Some(agent) = agent_of_file(disk, file)? else {
        return Ok(None);
    };
    let dialect = dialect(agent);
    let mut folders = file.ancestors().skip(1);
    let home = folders.find(|path| dialect.has_store(Store { disk, path }));
    let home = home.filter(|home| {
        let store = Store { disk, path: home };
        let sessions = dialect.sessions(store).unwrap_or_default();
        sessions
            .iter()
            .any(|session| session.files.iter().any(|own| own == file))
    });
    Ok(Some((agent, home.unwrap_or(file).to_owned())))
}
