//! The store: a folder of projects, each a folder of sessions (see `docs/format.md`, "Files").

use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::names::{is_id, project_key};
use transcript_format::unicode::comparable;
use transcript_reader::{Listing, SessionFiles, SessionRow, subagents_on};
use transcript_storage::{Disk, ReadDisk, RealDisk};

use crate::error::{Error, ErrorKind};
use crate::user_folders;

/// The shortest prefix of the id of a session or an entry that is looked up, in characters.
pub const MIN_PREFIX: usize = 4;
/// The name of the newest session of a project.
const LATEST: &str = "latest";

/// A folder of projects.
#[derive(Clone, Debug)]
pub struct Store {
    disk: Arc<dyn Disk>,
    root: PathBuf,
}

impl Store {
    /// Creates a store for the folder that contains the projects, on the disk of this machine. The folder need not exist yet.
    ///
    /// ```
    /// use transcript_session::Store;
    ///
    /// let store = Store::new("/srv/sessions/projects");
    /// assert_eq!(store.root().to_str(), Some("/srv/sessions/projects"));
    /// ```
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::on(Arc::new(RealDisk), root)
    }

    /// Creates a store on `disk`. All that this store finds, reads, moves and removes is there; working folders are those of
    /// this machine. A session is opened there with [`SessionOptions::disk`](crate::SessionOptions::disk), and read with
    /// [`History::open_on`](crate::History::open_on).
    #[must_use]
    pub fn on(disk: Arc<dyn Disk>, root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { disk, root }
    }

    /// Returns the disk of the sessions.
    #[must_use]
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Returns the same disk, for reading.
    fn read_disk(&self) -> Arc<dyn ReadDisk> {
        Arc::clone(&self.disk) as _
    }

    /// Returns the store of the client: `projects` in `$CLAUDE_CONFIG_DIR`, else in `.claude` in
    /// the home folder. `None` when neither is set.
    ///
    /// ```
    /// use transcript_session::Store;
    ///
    /// match Store::from_env() {
    ///     Some(store) => println!("{}", store.root().display()),
    ///     None => println!("there is no home folder"),
    /// }
    /// ```
    #[must_use]
    pub fn from_env() -> Option<Self> {
        user_folders::projects_folder().map(Self::new)
    }

    /// Returns the folder that contains the projects.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of the sessions whose working folder is `cwd`. Symbolic links are
    /// resolved, so that a folder is one project under all its names.
    #[must_use]
    pub fn project(&self, cwd: &Path) -> PathBuf {
        let real = RealDisk.real_path(cwd);
        let real = real.or_else(|_| std::path::absolute(cwd));
        let real = real.unwrap_or_else(|_| cwd.to_owned());
        self.root.join(project_key(&real.to_string_lossy()))
    }

    /// Returns a path for a new session whose working folder is `cwd`, with a random id. Does not
    /// create a file.
    #[must_use]
    pub fn new_session_path(&self, cwd: &Path) -> PathBuf {
        let id = uuid::Uuid::new_v4();
        self.project(cwd).join(format!("{id}.jsonl"))
    }

    /// Finds a session in any project by its id, or by a prefix of at least 4 characters. Empty
    /// files are skipped, as clients do (LIST-3).
    ///
    /// # Errors
    /// [`ErrorKind::NotAnId`]; [`ErrorKind::NoSuchSession`]; [`ErrorKind::Ambiguous`], with the
    /// files in [`Error::candidates`]: a complete id is ambiguous when two projects have it.
    /// [`ErrorKind::Read`] when the folder of projects cannot be read.
    pub fn find(&self, id: &str) -> Result<PathBuf, Error> {
        if !is_id(id) || id.len() < MIN_PREFIX {
            return Err(Error::new(ErrorKind::NotAnId, &self.root));
        }
        let files = SessionFiles::in_root_on(&self.read_disk(), &self.root);
        let files = files.or_else(|error| match error.kind() {
            transcript_reader::ErrorKind::NotFound => Ok(SessionFiles::default()),
            _ => Err(error),
        })?;
        let has_bytes = |path: &PathBuf| self.disk.metadata(path).is_ok_and(|found| found.len > 0);
        let found = files.matching(id).into_iter().map(|file| file.path.clone());
        let mut found: Vec<_> = found.filter(has_bytes).collect();
        match found.len() {
            0 => Err(Error::new(ErrorKind::NoSuchSession, &self.root)),
            1 => Ok(found.remove(0)),
            _ => Err(Error::ambiguous(&self.root, found)),
        }
    }

    /// Finds a session by what a person has of it: its id or a prefix as [`Self::find`] does, the name of its file, its title
    /// in any case, or the id of one of its subagents, whose file is returned.
    ///
    /// # Errors
    /// As [`Self::find`]; [`ErrorKind::Ambiguous`] also if several have this title.
    pub fn find_named(&self, name: &str) -> Result<PathBuf, Error> {
        let id = name.strip_suffix(".jsonl").unwrap_or(name);
        let missing = match self.find(id) {
            Err(error) if matches!(error.kind(), ErrorKind::NoSuchSession | ErrorKind::NotAnId) => {
                error
            }
            // A name of a file is that of a whole one.
            Ok(path) if id != name && path.file_name() != Some(name.as_ref()) => {
                Error::new(ErrorKind::NoSuchSession, &self.root)
            }
            found => return found,
        };
        let listing = self.list()?;
        let wanted = comparable(name);
        let has_title = |row: &&SessionRow| {
            let title = row.title.as_deref();
            title.is_some_and(|title| comparable(title) == wanted)
        };
        let titled = listing.rows.iter().filter(has_title);
        let mut found: Vec<_> = titled.map(|row| row.path.clone()).collect();
        if found.is_empty() {
            let disk = self.read_disk();
            let agent = id.strip_prefix("agent-").unwrap_or(id);
            let parents = listing.rows.iter().filter(|row| row.subagents > 0);
            let agents = parents.flat_map(|row| subagents_on(&disk, &row.path).unwrap_or_default());
            found.extend(agents.filter(|one| one.id == agent).map(|one| one.path));
        }
        match found.len() {
            0 => Err(missing),
            1 => Ok(found.remove(0)),
            _ => Err(Error::ambiguous(&self.root, found)),
        }
    }

    /// Finds a session of the project at `path`, in any of its worktrees: `latest`, an id, or a prefix of
    /// one, as [`Self::find`] does.
    ///
    /// # Errors
    /// As there.
    pub fn find_in(&self, path: &Path, name: &str) -> Result<PathBuf, Error> {
        if name != LATEST && (!is_id(name) || name.len() < MIN_PREFIX) {
            return Err(Error::new(ErrorKind::NotAnId, &self.root));
        }
        let listing = self.list()?;
        let mut rows = listing.of_project_named(path);
        rows.retain(|row| row.bytes > 0);
        if name == LATEST {
            let newest = rows.iter().find(|row| row.has_conversation);
            rows = newest.or(rows.first()).into_iter().copied().collect();
        } else {
            rows.retain(|row| {
                let start = row.session_id.as_bytes().get(..name.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
            });
        }
        let is_whole = |row: &&SessionRow| row.session_id.len() == name.len();
        if name != LATEST && rows.iter().any(is_whole) {
            rows.retain(is_whole);
        }
        match &rows[..] {
            [] => Err(Error::new(ErrorKind::NoSuchSession, &self.root)),
            [one] => Ok(one.path.clone()),
            _ => {
                let mut paths: Vec<_> = rows.iter().map(|row| row.path.clone()).collect();
                paths.sort();
                Err(Error::ambiguous(&self.root, paths))
            }
        }
    }

    /// Returns the session with the newest conversation in the project of `cwd`; if that has none,
    /// the newest of all projects ([`Listing::latest`]).
    ///
    /// # Errors
    /// [`ErrorKind::NoSuchSession`] when there is none, [`ErrorKind::Read`].
    pub fn latest(&self, cwd: &Path) -> Result<PathBuf, Error> {
        let listing = self.list()?;
        let latest = listing.latest(cwd).map(|row| row.path.clone());
        latest.ok_or_else(|| Error::new(ErrorKind::NoSuchSession, &self.root))
    }

    /// Returns a watcher of all sessions of all projects, with their subagents, including those
    /// created later. Reads nothing yet.
    #[cfg(feature = "follow")]
    #[must_use]
    pub fn watch(&self, options: &transcript_tail::FollowOptions) -> transcript_tail::Watcher {
        let mut watcher = transcript_tail::Watcher::new(options);
        watcher.add_folder(&self.root);
        watcher
    }

    /// Lists the sessions of all projects, newest conversation first. A folder that does not exist
    /// yet has none.
    ///
    /// ```
    /// use transcript_session::Store;
    /// # use transcript_session::{Draft, Session, SessionOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let store = Store::new(folder.path().join("projects"));
    /// # let session = Session::create(&store.new_session_path(folder.path()), &SessionOptions::new())?;
    /// # session.append(Draft::user("Which years have a leap day?"))?;
    /// # session.close()?;
    /// let listing = store.list()?;
    /// for row in &listing.rows {
    ///     println!("{} {:?}", row.path.display(), row.title);
    /// }
    /// # assert_eq!(listing.rows.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Read`] when the folder of projects cannot be read.
    pub fn list(&self) -> Result<Listing, Error> {
        match Listing::read_on(&self.read_disk(), &self.root) {
            Err(error) if error.kind() == transcript_reader::ErrorKind::NotFound => {
                Ok(Listing::default())
            }
            listing => Ok(listing?),
        }
    }
}
