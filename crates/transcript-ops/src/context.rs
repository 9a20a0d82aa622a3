//! The store, the disks and the limits of an operation.

use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use serde::Deserialize;
use transcript_archive::ArchiveDisk;
use transcript_catalog::{Catalog, rows};
use transcript_format::names::is_id;
use transcript_manage::RootArchive;
use transcript_manage::session_sets::{
    add_archived, add_files, add_folder, add_named, keep_project,
};
use transcript_reader::{
    Listing, LoadOptions, SessionFile, SessionFiles, SessionRow, Source, Subagent, subagents_on,
};
use transcript_session::{Error, ErrorKind, History, MIN_PREFIX, Policy, Store, cache_folder};
use transcript_storage::{Disk, ReadDisk, RealDisk};

use crate::agents::{Homes, not_changed};
use crate::below::FolderScope;
use crate::failure::Failure;
use crate::roots::{KnownRoots, Root};

/// The name of the newest session of the working folder.
pub const LATEST: &str = "latest";

/// The store, the disks and the limits of an operation.
#[derive(Clone, Debug)]
pub struct Context {
    roots: Vec<Root>,
    disk: Arc<dyn ReadDisk>,
    live_disk: Arc<dyn Disk>,
    homes: Arc<Homes>,
    cache: Option<PathBuf>,
    is_below: bool,
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
    /// Several roots are in use, and one is needed.
    #[error("several roots are in use, and this needs one: {}", .0.join(", "))]
    SeveralRoots(Vec<String>),
    /// Several roots have a session of this id.
    #[error("{id} is in several roots; name one with `root`: {}", .roots.join(", "))]
    InSeveralRoots {
        /// The id.
        id: String,
        /// The names of the roots.
        roots: Vec<String>,
        /// The files.
        paths: Vec<PathBuf>,
    },
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
            Self::NoName
            | Self::NoStore
            | Self::SeveralRoots(_)
            | Self::InSeveralRoots { .. }
            | Self::Archive(_) => false,
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
            FindError::SeveralRoots(_) => Self::option("root", message),
            FindError::InSeveralRoots { .. } => Self::new("ambiguous", message),
            FindError::Archive(_) => Self::new("unreadable", message),
            FindError::Session(error) => error.into(),
        }
    }
}

impl Context {
    /// Reads sessions from the disk of this store, or of this machine if there is no store (no home folder).
    #[must_use]
    pub fn new(store: Option<Store>) -> Self {
        let root = store.map(|store| Root {
            name: store.root().display().to_string().into(),
            store,
            archives: Vec::new(),
        });
        Self::of(root.into_iter().collect())
    }

    /// Reads the sessions of these roots, which are all on one disk.
    #[must_use]
    pub fn of(roots: Vec<Root>) -> Self {
        let live_disk: Arc<dyn Disk> = match roots.first() {
            Some(root) => Arc::clone(root.store.disk()),
            None => Arc::new(RealDisk),
        };
        Self {
            roots,
            disk: Arc::clone(&live_disk) as _,
            live_disk,
            homes: Arc::default(),
            cache: cache_folder(),
            is_below: false,
            cancel: Arc::default(),
            counter: Arc::default(),
            total: Arc::default(),
        }
    }

    /// Reads sessions from another disk, such as one that adds archives to that of the store, or hides secrets.
    #[must_use]
    pub fn disk(mut self, disk: Arc<dyn ReadDisk>) -> Self {
        self.disk = disk;
        self
    }

    /// Knows these home folders of other agents. Both disks must have them.
    #[must_use]
    pub fn homes(mut self, homes: Arc<Homes>) -> Self {
        self.homes = homes;
        self
    }

    /// Returns the name of the agent whose session is at a path; `None` for a session of Claude Code, and where there is none.
    #[must_use]
    pub fn maker(&self, path: &Path) -> Option<&'static str> {
        self.homes.maker_at(path)
    }

    /// Returns the home folders of other agents.
    #[must_use]
    pub fn agent_homes(&self) -> &Arc<Homes> {
        &self.homes
    }

    /// From now on shows sessions of other agents as these show them, if the policy is that of the vendor. This holds for all contexts with
    /// the same home folders, and is said before anything is read.
    pub fn follow_policy(&self, policy: impl Into<Policy>) {
        if policy.into() == Policy::Vendor {
            self.homes.show_as_agents_do();
        }
    }

    /// Checks that a session may be changed.
    ///
    /// # Errors
    /// When it is one of another agent.
    pub fn check_own(&self, path: &Path) -> Result<(), Failure> {
        match self.maker(path) {
            Some(maker) => Err(not_changed(maker, path)),
            None => Ok(()),
        }
    }

    /// Returns the roots of Claude Code.
    fn own_roots(&self) -> impl Iterator<Item = &Root> {
        let roots = self.roots.iter();
        roots.filter(|root| self.homes.maker_of_home(root.store.root()).is_none())
    }

    /// Finds no archived sessions.
    #[must_use]
    pub fn without_archives(mut self) -> Self {
        for root in &mut self.roots {
            root.archives.clear();
        }
        self
    }

    /// Keeps results in this folder, or nowhere; by default in the cache folder of this user.
    #[must_use]
    pub fn cache_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.cache = folder;
        self
    }

    /// Selects only sessions that are in the folders of the roots. A link that leads out of them is not followed.
    #[must_use]
    pub fn only_below_roots(mut self) -> Self {
        self.is_below = true;
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

    /// Returns the roots that are in use.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Returns the archives of all roots.
    pub fn archives(&self) -> impl Iterator<Item = &RootArchive> {
        self.roots.iter().flat_map(|root| &root.archives)
    }

    /// Returns the name of the root that a file of a session is in, live or archived, if several roots are in use. Of a
    /// file elsewhere there is none.
    #[must_use]
    pub fn root_name(&self, path: &Path) -> Option<Arc<str>> {
        if self.own_roots().nth(1).is_none() || self.homes.maker_of_home(path).is_some() {
            return None;
        }
        Some(Arc::clone(&self.root_at(path)?.name))
    }

    /// Returns the root that a file of a session is in, live or archived.
    #[must_use]
    pub fn root_at(&self, path: &Path) -> Option<&Root> {
        let mut roots = self.roots.iter();
        let live = roots.find(|root| path.starts_with(root.store.root()));
        live.or_else(|| self.archived_root(path))
    }

    /// Returns the root of an archived session; `None` for any other session.
    pub(crate) fn archived_root(&self, path: &Path) -> Option<&Root> {
        self.roots.iter().find(|root| {
            let mut archives = root.archives.iter();
            archives.any(|archive| archive.leads_to(path) && archive.has(path))
        })
    }

    /// Returns whether a session is in an archive.
    #[must_use]
    pub fn is_archived(&self, path: &Path) -> bool {
        let mut archives = self.archives();
        archives.any(|archive| archive.leads_to(path))
    }

    /// Returns the archive that a path leads to, as that of the root whose session is there.
    #[must_use]
    pub fn archive_at(&self, path: &Path) -> Option<&RootArchive> {
        let mut archives = self.archives();
        archives.find(|archive| archive.leads_to(path) && archive.has(path))
    }

    /// Returns the number of archived sessions that are of none of the roots that are in use.
    ///
    /// # Errors
    /// When an archive cannot be read.
    pub fn archived_of_others(&self) -> Result<usize, FindError> {
        let mut seen = HashSet::new();
        let mut count = 0;
        for archive in self.archives().filter(|archive| archive.agent().is_none()) {
            if seen.insert(archive.disk().folder()) {
                let all = RootArchive::new(Arc::clone(archive.disk())).sessions();
                let all = all.map_err(Error::from)?.sessions.into_iter();
                count += all
                    .filter(|file| self.archive_at(&file.path).is_none())
                    .count();
            }
        }
        Ok(count)
    }

    /// Returns the name of the machine that captured an archived session, if its archive is one that several machines share.
    #[must_use]
    pub fn machine_of(&self, path: &Path) -> Option<String> {
        self.archives()
            .find_map(|archive| archive.disk().place_of(path)?.0)
    }

    /// Returns where the file of an archived session was; `None` for any other session, and for one of another agent, whose files
    /// have another form.
    #[must_use]
    pub fn place_of_archived(&self, path: &Path) -> Option<PathBuf> {
        let below = self.archives().find_map(|archive| archive.place_of(path))?;
        Some(self.root_at(path)?.store.root().join(below))
    }

    /// Returns the store, for what needs exactly one.
    ///
    /// # Errors
    /// When it is not known where it is, as there is no home folder, or several roots are in use.
    pub fn store(&self) -> Result<&Store, FindError> {
        match &self.own_roots().collect::<Vec<_>>()[..] {
            [] => Err(FindError::NoStore),
            [root] => Ok(&root.store),
            roots => {
                let names = roots.iter().map(|root| root.name.to_string());
                Err(FindError::SeveralRoots(names.collect()))
            }
        }
    }

    /// Returns the stores of the roots that are in use.
    ///
    /// # Errors
    /// When it is not known where they are: there is no home folder.
    pub fn stores(&self) -> Result<impl Iterator<Item = &Store>, FindError> {
        Ok(self.some_roots()?.iter().map(|root| &root.store))
    }

    fn some_roots(&self) -> Result<&[Root], FindError> {
        if self.roots.is_empty() {
            return Err(FindError::NoStore);
        }
        Ok(&self.roots)
    }

    /// Lists sessions of all roots, the newest conversation first.
    ///
    /// # Errors
    /// When a root or its archive cannot be read.
    pub fn listing(&self, which: Listed) -> Result<Listing, FindError> {
        let mut all: Option<Listing> = None;
        for root in self.some_roots()? {
            let mut listing = match which {
                Listed::Archived => Listing::of(SessionFiles::on(Arc::clone(&self.disk))),
                Listed::Live | Listed::All => self.live_listing(root)?,
            };
            let archives = root.archives.iter();
            for archive in archives.filter(|_| which != Listed::Live) {
                // An archive that cannot be opened has no sessions, which would look as if nothing were missing.
                archive.disk().archive()?;
                archive.add_to(&mut listing, &*self.disk)?;
            }
            match &mut all {
                Some(all) => all.add(listing.rows, listing.problems),
                None => all = Some(listing),
            }
        }
        Ok(all.unwrap_or_default())
    }

    /// Lists the sessions of a root. Reading those of another agent converts them, so their rows are kept.
    fn live_listing(&self, root: &Root) -> Result<Listing, Error> {
        let folder = root.store.root();
        let is_of_other = self.homes.maker_of_home(folder).is_some();
        let cache = self.cache.as_ref().filter(|_| is_of_other);
        let Some(cache) = cache.filter(|_| !self.homes.is_as_agents()) else {
            return root.store.list();
        };
        self.homes.remember_in(cache);
        let disk = Arc::clone(root.store.disk()) as Arc<dyn ReadDisk>;
        let listing = match SessionFiles::in_root_on(&disk, folder) {
            Err(error) if error.kind() == transcript_reader::ErrorKind::NotFound => {
                Listing::default()
            }
            files => rows::list(files?, &disk, folder, cache),
        };
        self.homes.keep_memory();
        Ok(listing)
    }

    /// Returns the context as it is for one operation: with the cache only if that is wanted.
    pub(crate) fn with_cache(&self, is_wanted: Option<bool>) -> Self {
        let cache = self.cache(is_wanted);
        if let Some(cache) = &cache {
            self.homes.remember_in(cache);
        }
        Self {
            cache,
            ..self.clone()
        }
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
        if let Some(path) = self.homes.session_of_file(name) {
            return found(path, FoundBy::Path);
        }
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
            let listing = self.listing(Listed::Live)?;
            let latest = listing.latest(&here).map(|row| row.path.clone());
            return found(latest.ok_or_else(|| self.missing())?, FoundBy::Latest);
        }
        if is_path(name) {
            let stored = self.find_live(&text, None).ok();
            let path = stored.filter(|_| project.is_none());
            return found(
                path.ok_or_else(|| FindError::NoFile(name.to_owned()))?,
                FoundBy::Name,
            );
        }
        match self.find_live(&text, project) {
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

    /// The error of a session that no root has.
    fn missing(&self) -> Error {
        let root = self.roots.first().map(|root| root.store.root());
        Error::new(
            ErrorKind::NoSuchSession,
            root.unwrap_or_else(|| Path::new("")),
        )
    }

    /// Finds a session that has a file in one of the roots.
    fn find_live(&self, name: &str, project: Option<&Path>) -> Result<PathBuf, FindError> {
        let (mut paths, mut missing) = (Vec::new(), None);
        for store in self.stores()? {
            let found = match project {
                Some(project) => store.find_in(project, name),
                None => store.find_named(name),
            };
            match found {
                Ok(path) => paths.push(path),
                Err(error) if error.kind() == ErrorKind::Ambiguous => {
                    paths.extend_from_slice(error.candidates());
                }
                Err(error) if is_nowhere(&error) => {
                    missing.get_or_insert(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if name == LATEST {
            let time = |path: &PathBuf| {
                let file = SessionFile::at(&*self.disk, path);
                SessionRow::of_file(&self.disk, &file).order_millis()
            };
            let newest = paths.into_iter().max_by_key(time);
            return Ok(newest.ok_or_else(|| missing.unwrap_or_else(|| self.missing()))?);
        }
        self.only(name, paths)?
            .ok_or_else(|| missing.unwrap_or_else(|| self.missing()).into())
    }

    /// Finds an archived session by its id or the start of one; `None` if there is none.
    ///
    /// # Errors
    /// When an archive cannot be read, or several sessions match.
    pub fn find_archived(&self, id: &str) -> Result<Option<PathBuf>, FindError> {
        if !is_id(id) || id.len() < MIN_PREFIX {
            return Ok(None);
        }
        let mut paths = Vec::new();
        for root in &self.roots {
            // An archive that earlier versions wrote may have the same session as that of the root.
            let mut files = SessionFiles::on(Arc::clone(&self.disk));
            for archive in &root.archives {
                // An archive that cannot be opened is an error here: the session may be in it.
                archive.disk().archive()?;
                add_archived(&mut files, archive.sessions().map_err(Error::from)?);
            }
            let found = files.matching(id).into_iter();
            paths.extend(found.map(|file| file.path.clone()));
        }
        self.only(id, paths)
    }

    /// Returns the one file that a name means in all roots: an id comes before the start of one, and that before a title.
    fn only(&self, name: &str, mut paths: Vec<PathBuf>) -> Result<Option<PathBuf>, FindError> {
        let starts = |path: &PathBuf, is_whole: bool| {
            let stem = path.file_stem().unwrap_or_default().as_encoded_bytes();
            let start = stem.get(..name.len());
            let is_same = start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
            is_same && (!is_whole || stem.len() == name.len())
        };
        for is_whole in [true, false] {
            if paths.iter().any(|path| starts(path, is_whole)) {
                paths.retain(|path| starts(path, is_whole));
                break;
            }
        }
        if paths.len() < 2 {
            return Ok(paths.pop());
        }
        let ids = paths.iter().map(|path| path.file_stem());
        let ids: HashSet<_> = ids.collect();
        let roots = paths.iter().filter_map(|path| self.root_name(path));
        let mut roots: Vec<String> = roots.map(|root| root.to_string()).collect();
        roots.dedup();
        if let ([id], 2..) = (&ids.into_iter().collect::<Vec<_>>()[..], roots.len()) {
            let id = id.unwrap_or_default().to_string_lossy().into_owned();
            return Err(FindError::InSeveralRoots { id, roots, paths });
        }
        let root = self.missing().path().to_owned();
        Err(Error::ambiguous(&root, paths).into())
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
        let roots = self.roots.iter().map(|root| root.store.root());
        self.is_below.then(|| FolderScope::new(&*self.disk, roots))
    }

    /// Returns the files of the sessions that are selected.
    ///
    /// # Errors
    /// When a named session or folder cannot be found or read, or there is no store to look in.
    pub fn files(&self, selection: &Selection) -> Result<SessionFiles, CatalogError> {
        let (disk, project) = (&self.disk, selection.project.as_deref());
        let mut files = SessionFiles::on(Arc::clone(disk));
        if selection.places.is_empty() {
            for root in self.some_roots()? {
                let mut of_root = SessionFiles::on(Arc::clone(disk));
                // The folder need not exist before the first session.
                if self.live_disk.metadata(root.store.root()).is_ok() {
                    of_root = SessionFiles::in_root_on(disk, root.store.root())?;
                }
                for archive in root.archives.iter().filter(|_| selection.archived) {
                    archive.disk().archive().map_err(FindError::from)?;
                    add_archived(&mut of_root, archive.sessions()?);
                }
                add_files(&mut files, of_root);
            }
            if let Some(project) = project {
                let which = if selection.archived {
                    Listed::All
                } else {
                    Listed::Live
                };
                keep_project(disk, &mut files, &self.listing(which)?, project);
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

/// The sessions of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Those whose files are there.
    Live,
    /// Those in archives.
    Archived,
    /// Those whose files are there, and archived ones whose files are gone.
    All,
}

/// Returns whether an error means that a root has no session of a name.
fn is_nowhere(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NoSuchSession | ErrorKind::NotAnId)
}

/// The roots and the archives: options that most operations have.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreOptions {
    /// The folder of projects, or the name of a root in the configuration file; or a list of them. By default the roots that
    /// the file says, else the folder of Claude Code.
    pub root: Option<RootChoice>,
    /// The agent whose sessions are meant, such as `codex` or `claude-code`, or a list of them. With `root`, that is its home folder.
    /// By default Claude Code and all agents that are found on the machine.
    pub agent: Option<AgentChoice>,
    /// The folder of an archive or its address in a bucket, or `true` for that of each root: sessions whose files are gone are read
    /// from it.
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub archive: Option<ArchiveChoice>,
    /// The file with the keys of an encrypted archive.
    pub identity: Option<PathBuf>,
}

/// The option that names roots.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "`root` must be a folder or a name, or a list of them"
)]
pub enum RootChoice {
    /// One.
    One(PathBuf),
    /// Several.
    Several(Vec<PathBuf>),
}

/// The option that names agents.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "`agent` must be the name of an agent, or a list of them"
)]
pub enum AgentChoice {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// The option that names the archive.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "`archive` must be a folder, true or false")]
pub enum ArchiveChoice {
    /// That of each root, or none.
    Default(bool),
    /// The one in this folder.
    Folder(PathBuf),
}

impl StoreOptions {
    /// The names of the options.
    pub const OPTION_NAMES: [&'static str; 4] = ["root", "agent", "archive", "identity"];

    /// Returns the context of an operation with these options.
    ///
    /// # Errors
    /// When the configuration file cannot be used, or an archive cannot be opened.
    pub fn context(&self) -> Result<Context, Failure> {
        let folder = match &self.archive {
            Some(ArchiveChoice::Folder(folder)) => Some(folder.as_path()),
            _ => None,
        };
        let known = KnownRoots::read(folder)?;
        let asked: &[PathBuf] = match &self.root {
            Some(RootChoice::One(root)) => std::slice::from_ref(root),
            Some(RootChoice::Several(roots)) => roots,
            None => &[],
        };
        let agents: &[String] = match &self.agent {
            Some(AgentChoice::One(agent)) => std::slice::from_ref(agent),
            Some(AgentChoice::Several(agents)) => agents,
            None => &[],
        };
        let places = known.choose_of(agents, asked)?;
        let options = known.archive_options(self.identity.as_deref())?;
        let (roots, disk, homes) = known.open(&places, &options);
        let context = Context::of(roots).homes(homes);
        if matches!(self.archive, None | Some(ArchiveChoice::Default(false))) {
            return Ok(context.without_archives());
        }
        if context.archives().next().is_none() {
            let of_root = places.iter().find_map(|place| place.archive.as_deref());
            let folder = of_root.ok_or_else(|| {
                Failure::options("there is no data folder; name the folder of the archive")
            })?;
            // Opened for the error.
            let opened = ArchiveDisk::with(folder, options).archive().map(drop);
            opened.map_err(|error| unreadable(&error, folder))?;
        }
        for archive in context.archives() {
            let opened = archive.disk().archive();
            opened.map_err(|error| unreadable(&error, archive.disk().folder()))?;
        }
        Ok(context.disk(disk))
    }
}

fn unreadable(error: &std::io::Error, archive: &Path) -> Failure {
    Failure::new("unreadable", error.to_string()).at(archive)
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
