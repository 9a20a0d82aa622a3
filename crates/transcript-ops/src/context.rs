//! The store, the disks and the limits of an operation.

use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::Deserialize;
use transcript_archive::{ArchiveDisk, ArchiveOptions, Identities};
use transcript_catalog::Catalog;
use transcript_format::names::is_id;
use transcript_manage::session_sets::{
    add_archived, add_folder, add_named, archived_sessions, keep_project,
};
use transcript_reader::{LoadOptions, SessionFiles, Source, Subagent, subagents_on};
use transcript_session::{
    Error, ErrorKind, History, MIN_PREFIX, Policy, Store, archive_folder, cache_folder, data_folder,
};
use transcript_storage::{Disk, ReadDisk, RealDisk};

use crate::below::FolderScope;
use crate::failure::Failure;

/// The name of the newest session of the working folder.
pub const LATEST: &str = "latest";

/// The store, the disks and the limits of an operation.
#[derive(Clone, Debug)]
pub struct Context {
    store: Option<Store>,
    disk: Arc<dyn ReadDisk>,
    live_disk: Arc<dyn Disk>,
    archive: Option<Arc<ArchiveDisk>>,
    cache: Option<PathBuf>,
    below: Option<PathBuf>,
    cancel: Arc<AtomicBool>,
    counter: Arc<AtomicU64>,
    total: Arc<AtomicU64>,
}

/// The session that a name means.
#[derive(Clone, Debug)]
pub struct FoundSession {
    /// Its file.
    pub path: PathBuf,
    /// The rule that found it.
    pub by: FoundBy,
}

/// The rule that found a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The name is a path.
    Path,
    /// The name is that of a file in the store, or a title.
    Name,
    /// The name is an id, the start of one, a title, or the id of a subagent.
    Id,
    /// It is the newest session.
    Latest,
    /// It is only in the archive.
    Archive,
}

/// The reason why no session was found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The name is empty.
    #[error("the name of the session is empty")]
    NoName,
    /// The name can only be a path, and nothing is there.
    #[error("{}: no such file", .0.display())]
    NoFile(PathBuf),
    /// The projects folder is unknown: there is no home folder.
    #[error("there is no home folder; name the folder of projects with `root`")]
    NoStore,
    /// The archive cannot be opened.
    #[error(transparent)]
    Archive(#[from] std::io::Error),
    /// None or several match, or the store cannot be read.
    #[error(transparent)]
    Session(#[from] Error),
}

impl FindError {
    /// Returns whether there is no session of that name, as opposed to one that cannot be chosen or read.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NoFile(_) => true,
            Self::NoName | Self::NoStore | Self::Archive(_) => false,
            Self::Session(error) => error.kind() == ErrorKind::NoSuchSession,
        }
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        let message = error.to_string();
        match error {
            FindError::NoFile(path) => Self::new("not-found", message).at(&path),
            FindError::NoName | FindError::NoStore => Self::options(message),
            FindError::Archive(_) => Self::new("unreadable", message),
            FindError::Session(error) => error.into(),
        }
    }
}

impl Context {
    /// Reads sessions from the disk of this store, or of this machine if there is no store (no home folder).
    #[must_use]
    pub fn new(store: Option<Store>) -> Self {
        let live_disk: Arc<dyn Disk> = match &store {
            Some(store) => Arc::clone(store.disk()),
            None => Arc::new(RealDisk),
        };
        Self {
            store,
            disk: Arc::clone(&live_disk) as _,
            live_disk,
            archive: None,
            cache: cache_folder(),
            below: None,
            cancel: Arc::default(),
            counter: Arc::default(),
            total: Arc::default(),
        }
    }

    /// Reads sessions from another disk, such as one that adds an archive to that of the store, or hides secrets.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn ReadDisk>) -> Self {
        self.disk = disk;
        self
    }

    /// Finds sessions whose files are gone in this archive.
    #[must_use]
    pub fn archive(mut self, archive: Option<Arc<ArchiveDisk>>) -> Self {
        self.archive = archive;
        self
    }

    /// Keeps results in this folder, or nowhere; by default in the cache folder of this user.
    #[must_use]
    pub fn cache_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.cache = folder;
        self
    }

    /// Selects only sessions that are in this folder. A link that leads out of it is not followed.
    #[must_use]
    pub fn only_below(mut self, folder: &Path) -> Self {
        self.below = Some(folder.to_owned());
        self
    }

    /// Ends a search soon after this becomes true.
    #[must_use]
    pub fn cancel(mut self, cancel: Arc<AtomicBool>) -> Self {
        self.cancel = cancel;
        self
    }

    /// Counts the bytes that are read, and sets how many will be; 0 while that is not known.
    #[must_use]
    pub fn progress(mut self, counter: Arc<AtomicU64>, total: Arc<AtomicU64>) -> Self {
        (self.counter, self.total) = (counter, total);
        self
    }

    /// Returns the disk that sessions are read from.
    #[must_use]
    pub fn read_disk(&self) -> &Arc<dyn ReadDisk> {
        &self.disk
    }

    /// Returns the disk of the store: sessions grow there, and are changed there. It has no files of an archive.
    #[must_use]
    pub fn live_disk(&self) -> &Arc<dyn Disk> {
        &self.live_disk
    }

    /// Returns the archive, if there is one.
    #[must_use]
    pub fn archive_disk(&self) -> Option<&Arc<ArchiveDisk>> {
        self.archive.as_ref()
    }

    /// Returns the path of a session of the archive, relative to the folder of projects; `None` for any other session.
    #[must_use]
    pub fn path_in_archive<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(self.archive.as_ref()?.projects()).ok()
    }

    /// Returns the store.
    ///
    /// # Errors
    /// When it is not known where it is: there is no home folder.
    pub fn store(&self) -> Result<&Store, FindError> {
        self.store.as_ref().ok_or(FindError::NoStore)
    }

    /// Returns the flag that cancels a search.
    pub(crate) fn cancelled(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Returns the folder in which results are kept, if the caller wants that.
    pub(crate) fn cache(&self, is_wanted: Option<bool>) -> Option<PathBuf> {
        let folder = self.cache.clone();
        folder.filter(|_| is_wanted.unwrap_or(true))
    }

    /// Returns the number of bytes that were read.
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.counter)
    }

    /// Sets how many bytes will be read.
    pub(crate) fn expect(&self, bytes: u64) {
        self.total
            .store(bytes, std::sync::atomic::Ordering::Relaxed);
    }

    /// Reads a session.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, source: Source) -> Result<History, Error> {
        self.counter.store(0, std::sync::atomic::Ordering::Relaxed);
        self.expect(source.len());
        let options = LoadOptions::new().count_bytes(self.counter());
        History::read_with(source, &options)
    }

    /// Opens the session that a name means.
    ///
    /// # Errors
    /// Those of [`Self::find`]; when the file cannot be read, or is of another format.
    pub fn open(&self, session: &Path) -> Result<Source, Failure> {
        let path = self.find(session, None)?.path;
        let source = Source::open_on(&self.disk, &path)?;
        source.check_messages()?;
        Ok(source)
    }

    /// Finds the session that a name means: the path of a file, `latest`, else an id, the start of one, a title, or the id
    /// of a subagent; an id and `latest` only among the sessions of the project at the path `project`, if one is given.
    ///
    /// # Errors
    /// When there is none, or several match.
    pub fn find(&self, name: &Path, project: Option<&Path>) -> Result<FoundSession, FindError> {
        let found = |path: PathBuf, by| Ok(FoundSession { path, by });
        let is_file = || {
            let metadata = self.disk.metadata(name);
            metadata.is_ok_and(|metadata| metadata.is_file())
        };
        if self.live_disk.metadata(name).is_ok() || is_file() {
            return found(name.to_owned(), FoundBy::Path);
        }
        let text = name.to_string_lossy();
        if text.is_empty() {
            return Err(FindError::NoName);
        }
        if text == LATEST && project.is_none() {
            let here = env::current_dir().unwrap_or_default();
            return found(self.store()?.latest(&here)?, FoundBy::Latest);
        }
        if is_path(name) {
            let store = self.store().ok().filter(|_| project.is_none());
            let named = store.and_then(|store| store.find_named(&text).ok());
            let path = named.ok_or_else(|| FindError::NoFile(name.to_owned()))?;
            return found(path, FoundBy::Name);
        }
        let store = self.store().and_then(|store| {
            Ok(match project {
                Some(project) => store.find_in(project, &text)?,
                None => store.find_named(&text)?,
            })
        });
        match store {
            // A missing session may be archived; the whole projects folder may be missing as well.
            Err(error) if error.is_missing() || matches!(error, FindError::NoStore) => {
                let is_asked = project.is_none();
                let archived = is_asked.then(|| self.find_archived(&text)).transpose()?;
                match archived.flatten() {
                    Some(path) => found(path, FoundBy::Archive),
                    None => Err(error),
                }
            }
            Ok(path) if text == LATEST => found(path, FoundBy::Latest),
            other => found(other?, FoundBy::Id),
        }
    }

    fn find_archived(&self, id: &str) -> Result<Option<PathBuf>, FindError> {
        let archive = self.archive.as_ref();
        let Some(archive) = archive.filter(|_| is_id(id) && id.len() >= MIN_PREFIX) else {
            return Ok(None);
        };
        // An archive that cannot be opened is an error here: the session may be in it.
        archive.archive()?;
        let files = archived_sessions(archive).map_err(Error::from)?;
        let found = files.matching(id).into_iter();
        let mut paths: Vec<PathBuf> = found.map(|file| file.path.clone()).collect();
        match paths.len() {
            0 => Ok(None),
            1 => Ok(Some(paths.remove(0))),
            _ => Err(Error::ambiguous(&archive.projects(), paths).into()),
        }
    }

    /// Returns the sessions that are selected, to search them or to count what they cost.
    ///
    /// # Errors
    /// Those of [`Self::files`].
    pub fn catalog(&self, selection: &Selection) -> Result<Catalog, CatalogError> {
        Ok(Catalog::of(&self.disk, self.files(selection)?))
    }

    /// Returns the files of the subagents of a session.
    #[must_use]
    pub fn agents(&self, session: &Path) -> Vec<Subagent> {
        let mut agents = subagents_on(&self.disk, session).unwrap_or_default();
        if let Some(below) = self.below() {
            agents.retain(|agent| below.contains(&agent.path));
        }
        agents
    }

    fn below(&self) -> Option<FolderScope<'_>> {
        let folder = self.below.as_ref()?;
        Some(FolderScope::new(&*self.disk, folder))
    }

    /// Returns the files of the sessions that are selected.
    ///
    /// # Errors
    /// When a named session or folder cannot be found or read, or there is no store to look in.
    pub fn files(&self, selection: &Selection) -> Result<SessionFiles, CatalogError> {
        let (disk, project) = (&self.disk, selection.project.as_deref());
        let mut files = SessionFiles::on(Arc::clone(disk));
        if selection.places.is_empty() {
            let store = self.store()?;
            let archive = self.archive.as_ref().filter(|_| selection.archived);
            // The folder need not exist before the first session.
            if self.live_disk.metadata(store.root()).is_ok() {
                files = SessionFiles::in_root_on(disk, store.root())?;
            }
            if let Some(archive) = archive {
                archive.archive().map_err(FindError::from)?;
                add_archived(&mut files, archived_sessions(archive)?);
            }
            if let Some(project) = project {
                let mut listing = store.list()?;
                if let Some(archive) = archive {
                    transcript_manage::add_archived(&mut listing, archive)?;
                }
                keep_project(disk, &mut files, &listing, project);
            }
        }
        let mut seen = HashSet::new();
        for named in &selection.places {
            if self.live_disk.is_folder(named) {
                if project.is_some() {
                    return Err(CatalogError::FolderOfProject(named.clone()));
                }
                let added = add_folder(disk, named, &mut seen, &mut files);
                added?;
            } else {
                let found = self.find(named, project);
                add_named(disk, &found?.path, &mut seen, &mut files)?;
            }
        }
        if let Some(below) = self.below() {
            below.keep(&mut files);
        }
        Ok(files)
    }
}

/// Returns whether a name can only be that of a file, not the id of a session.
#[must_use]
pub fn is_path(name: &Path) -> bool {
    name == Path::new("-") || name.extension().is_some() || name.components().count() != 1
}

/// The reason why sessions cannot be selected.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A session was not found, or it is not known where sessions are.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A folder is named, and a project as well.
    #[error("{} is a folder", .0.display())]
    FolderOfProject(PathBuf),
    /// A session or a folder cannot be read.
    #[error(transparent)]
    Read(#[from] transcript_reader::Error),
    /// The store cannot be read.
    #[error(transparent)]
    Session(#[from] Error),
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Find(error) => error.into(),
            CatalogError::FolderOfProject(_) => Self::option("project", error.to_string()),
            CatalogError::Read(error) => error.into(),
            CatalogError::Session(error) => error.into(),
        }
    }
}

/// The options that select the sessions to search or count.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Ids of sessions, files, and folders; all sessions if there are none.
    pub places: Vec<PathBuf>,
    /// Only those of the project at this path.
    pub project: Option<PathBuf>,
    /// Also sessions of the archive whose files are gone.
    pub archived: bool,
}

/// The store and the archive: options that most operations have.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreOptions {
    /// The folder of projects; that of the client by default.
    pub root: Option<PathBuf>,
    /// The folder of an archive, or `true` for that of this user: sessions whose files are gone are read from it.
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub archive: Option<ArchiveChoice>,
    /// The file with the keys of an encrypted archive.
    pub identity: Option<PathBuf>,
}

/// The option that names the archive.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "`archive` must be a folder, true or false")]
pub enum ArchiveChoice {
    /// That of this user, or none.
    Default(bool),
    /// The one in this folder.
    Folder(PathBuf),
}

impl StoreOptions {
    /// The names of the options.
    pub const OPTION_NAMES: [&'static str; 3] = ["root", "archive", "identity"];

    /// Returns the context of an operation with these options.
    ///
    /// # Errors
    /// When the archive cannot be opened.
    pub fn context(&self) -> Result<Context, Failure> {
        let context = Context::new(self.root.as_ref().map(Store::new).or_else(Store::from_env));
        let Some(archive) = self.archive()? else {
            return Ok(context);
        };
        let disk = Arc::clone(&archive) as _;
        Ok(context.disk(disk).archive(Some(archive)))
    }

    fn archive(&self) -> Result<Option<Arc<ArchiveDisk>>, Failure> {
        let folder = match &self.archive {
            None | Some(ArchiveChoice::Default(false)) => return Ok(None),
            Some(ArchiveChoice::Folder(folder)) => folder.clone(),
            Some(ArchiveChoice::Default(true)) => archive_folder().ok_or_else(|| {
                Failure::options("there is no data folder; name the folder of the archive")
            })?,
        };
        let options = archive_options(self.identity.as_deref())?;
        let disk = Arc::new(ArchiveDisk::with(&folder, options));
        disk.archive()
            .map_err(|error| Failure::new("unreadable", error.to_string()).at(&folder))?;
        Ok(Some(disk))
    }
}

/// Returns the options to open an archive: with the keys in this file.
///
/// # Errors
/// When the keys cannot be read.
pub fn archive_options(identity: Option<&Path>) -> Result<ArchiveOptions, Failure> {
    let mut options = ArchiveOptions::new();
    if let Some(folder) = data_folder() {
        options = options.local_folder(&folder.join("archives"));
    }
    let Some(file) = identity else {
        return Ok(options);
    };
    let identities = Identities::read(file);
    let bad =
        |error: transcript_archive::Error| Failure::new("bad-identity", error.to_string()).at(file);
    Ok(options.identities(identities.map_err(bad)?))
}

/// The name of a policy as an option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// The best possible conversation.
    #[default]
    Recover,
    /// The conversation that Claude Code would show.
    Vendor,
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Recover => Self::Recover,
            PolicyName::Vendor => Self::Vendor,
        }
    }
}
