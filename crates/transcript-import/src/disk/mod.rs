//! A disk on which the sessions of an agent are files of our own format.

mod catalogue;
mod conversions;
mod earlier_homes;
mod file;
mod head;
mod home;
mod known;
mod lists;
mod lock;
mod memory;
mod open_folders;
mod sessions;
mod shown;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use transcript_storage::{
    Entries, LocalDisk, Metadata, ReadDisk, ReadFile, Reporter, entries_below,
};

use crate::clock::Clock;
use crate::dialect::Policy;
use crate::opencode::OpenCode;
use crate::source::Store;
use crate::{Agent, Conversation, Error, NodeId, agent_of_file, dialect};

use conversions::Converted;
use file::SessionAsFile;
use home::Home;

pub use earlier_homes::{EarlierHome, EarlierHomes};

/// A disk on which each session of an agent's home folder is a file of our own format.
///
/// Below the home folder are the files `<project>/<session id>.jsonl`, and `<project>/<session id>/subagents/agent-<id>.jsonl` for
/// subagents with a file of their own. The project is the name that Claude Code gives to the working folder, or `unknown`. Of several
/// files with one id, the first has the id, and each other one an id that its path makes. A folder of the agent that cannot be read
/// is a folder here that cannot be read. Nothing else is there, and nothing outside of the home folder.
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
pub struct ImportDisk(Arc<Home>);

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
        Self(Arc::new(Home::new(disk, agent, home.into(), policy)))
    }

    /// Uses what is known of sessions that have not changed since an earlier process kept it in a folder of this machine: their
    /// lengths then need no conversion. A folder without that, or with a damaged file, has no effect. Only the first call counts.
    pub fn remember_in(&self, folder: &Path) {
        self.0.remember_in(folder);
    }

    /// Keeps what is known about the sessions in the folder of [`remember_in`](Self::remember_in), if something is new, as far as
    /// the folder can be written.
    pub fn keep_memory(&self) {
        self.0.keep_memory();
    }

    /// Shows in each session as well what earlier versions of its files had and the newest ones lack, as branches of the kind
    /// [`Deleted`](crate::BranchKind::Deleted). Under [`Policy::Vendor`] nothing is added.
    #[must_use]
    pub fn earlier(self, earlier: Arc<dyn EarlierHomes>) -> Self {
        Self(Arc::new(self.0.with_earlier(earlier)))
    }

    /// Looks at the folders again after a second by another clock than that of this machine.
    #[must_use]
    pub fn by_clock(self, now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self(Arc::new(self.0.with_clock(Clock::new(now))))
    }

    /// Returns the agent.
    #[must_use]
    pub fn agent(&self) -> Agent {
        self.0.agent
    }

    /// Returns the home folder of the agent.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.0.path
    }

    /// Returns the disk that has the home folder.
    #[must_use]
    pub fn source_disk(&self) -> &Arc<dyn ReadDisk> {
        self.0.disk.whole()
    }

    /// Returns the paths below the home folder of the files that show the sessions, as they are now.
    ///
    /// # Errors
    /// When the system fails.
    pub fn sessions(&self) -> io::Result<Vec<PathBuf>> {
        let catalogue = self.0.read_catalogue()?;
        Ok(catalogue.shown.keys().cloned().collect())
    }

    /// Returns whether the folder looks like the home folder of the agent, or is one file with a session of it.
    #[must_use]
    pub fn has_store(&self) -> bool {
        dialect(self.agent()).has_store(self.0.store()) || self.0.disk.is_file(self.home())
    }

    /// Returns whether a session, or a folder with one, is at a path. No session is read for it.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(self.home()) else {
            return false;
        };
        if below.as_os_str().is_empty() {
            return self.0.disk.exists(path);
        }
        let catalogue = self.0.catalogue();
        catalogue.is_ok_and(|catalogue| catalogue.has(below))
    }

    /// Returns the path of the file that shows the session which a file of the agent belongs to.
    ///
    /// # Errors
    /// When the system fails.
    pub fn path_of(&self, file: &Path) -> io::Result<Option<PathBuf>> {
        let catalogue = self.0.read_catalogue()?;
        Ok(catalogue.path_of(file).map(|path| self.home().join(path)))
    }

    /// Returns the conversation that a file shows.
    ///
    /// # Errors
    /// As [`NotFound`](io::ErrorKind::NotFound) when there is no such file; when the system fails.
    pub fn conversation(&self, path: &Path) -> io::Result<ShownConversation> {
        Ok(ShownConversation(self.0.convert(self.file_below(path)?)?))
    }

    /// Returns the path of a file of a session below the home folder.
    fn file_below<'p>(&self, path: &'p Path) -> io::Result<&'p Path> {
        let below = path.strip_prefix(self.home());
        let below = below.map_err(|_| io::ErrorKind::NotFound)?;
        if below.extension() != Some(OsStr::new("jsonl")) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(below)
    }
}

/// The conversation that a file shows.
#[derive(Clone, Debug)]
pub struct ShownConversation(Arc<Converted>);

impl ShownConversation {
    /// Returns the node that a line of the file shows, by the number of the line, from 1; `None` for a line about something else, such as a title.
    #[must_use]
    pub fn node_of_line(&self, line: u64) -> Option<NodeId> {
        let line = usize::try_from(line.checked_sub(1)?).ok()?;
        self.0.entries.node_of(line)
    }
}

impl std::ops::Deref for ShownConversation {
    type Target = Conversation;

    fn deref(&self) -> &Conversation {
        self.0.entries.conversation()
    }
}

impl ReadDisk for ImportDisk {
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let below = self.file_below(path)?;
        Ok(Arc::new(SessionAsFile::open(&self.0, below)?))
    }

    /// A list of the home folder reads the list of sessions again; folders below it are as they were a short time ago.
    fn list(&self, folder: &Path) -> io::Result<Entries> {
        let below = folder.strip_prefix(self.home());
        let below = below.map_err(|_| io::ErrorKind::NotFound)?;
        let catalogue = if below.as_os_str().is_empty() {
            self.0.read_catalogue()?
        } else {
            self.0.catalogue()?
        };
        if let Some(problem) = catalogue.unreadable.get(below) {
            return Err(problem.error());
        }
        let within: Vec<PathBuf> = catalogue
            .unreadable
            .keys()
            .map(|name| name.join("?"))
            .collect();
        let entries = entries_below(below, catalogue.shown.keys().chain(&within));
        let entries = match entries {
            // The home folder is there, even without a session.
            Err(_) if below.as_os_str().is_empty() => Vec::new(),
            entries => entries?,
        };
        Ok(Box::new(entries.into_iter().map(Ok)))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        if path == self.home() {
            self.0.disk.metadata(path)?;
            return Ok(Metadata::of_folder_in_memory());
        }
        if let Ok(below) = self.file_below(path)
            && self.0.shown(below).is_ok()
        {
            return self.0.metadata(below);
        }
        let folder = self.has(path).then(Metadata::of_folder_in_memory);
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
        let sessions = match agent {
            // A database beside that of the file may be one that cannot be read.
            Agent::OpenCode => OpenCode::list(store).map(|(found, _)| found),
            _ => dialect.sessions(store),
        };
        let sessions = sessions.unwrap_or_default();
        sessions
            .iter()
            .any(|session| session.files.iter().any(|own| own == file))
    });
    Ok(Some((agent, home.unwrap_or(file).to_owned())))
}
