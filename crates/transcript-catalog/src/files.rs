//! The files of the sessions that are searched.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use transcript_format::scan::Envelope;
use transcript_reader::{
    Error, SessionFile, SessionFiles, Source, own_subagents_on, session_of_subagent,
};
use transcript_storage::{Metadata, ReadDisk, RealDisk, parallel};

/// The number of files that a thread takes at a time.
const BLOCK_FILES: usize = 64;

/// The sessions of a store, or some of them.
#[derive(Debug)]
pub struct Catalog {
    pub(crate) disk: Arc<dyn ReadDisk>,
    pub(crate) sessions: Vec<CatalogSession>,
    /// Sorted by path within a session: its own file, those of subagents, stored results.
    pub(crate) files: Vec<CatalogFile>,
    pub(crate) problems: Vec<Error>,
}

/// A session that is searched.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CatalogSession {
    /// The name of its file without `.jsonl`.
    pub id: String,
    /// The name of its project folder.
    pub project: String,
    /// Its file, which may be gone while files of subagents are left.
    pub path: PathBuf,
    /// When one of its files was last changed.
    pub modified: Option<SystemTime>,
    pub(crate) file: SessionFile,
    pub(crate) has_file: bool,
}

/// A file with texts.
#[derive(Debug)]
pub(crate) struct CatalogFile {
    pub(crate) session: usize,
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) kind: FileRole,
    /// Its properties, if the list of its folder had them.
    known: Option<Metadata>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileRole {
    Session,
    /// With the id of the subagent.
    Subagent(String),
    /// With the name of the file.
    Result(String),
}

impl Catalog {
    /// Finds the sessions of all projects in `root`.
    ///
    /// # Errors
    /// When `root` cannot be read.
    pub fn open(root: &Path) -> Result<Self, Error> {
        Self::open_on(&(Arc::new(RealDisk) as _), root)
    }

    /// Finds the sessions in `root` on `disk`.
    ///
    /// # Errors
    /// When `root` cannot be read.
    pub fn open_on(disk: &Arc<dyn ReadDisk>, root: &Path) -> Result<Self, Error> {
        Ok(Self::of(disk, SessionFiles::in_root_on(disk, root)?))
    }

    /// Takes the sessions of these files, wherever they are.
    #[must_use]
    pub fn of_files(paths: &[PathBuf]) -> Self {
        let disk: Arc<dyn ReadDisk> = Arc::new(RealDisk);
        let mut files = SessionFiles::default();
        files.sessions = paths
            .iter()
            .map(|path| SessionFile::at(&*disk, path))
            .collect();
        Self::of(&disk, files)
    }

    /// Takes the sessions that were found.
    #[must_use]
    pub fn of(disk: &Arc<dyn ReadDisk>, files: SessionFiles) -> Self {
        let mut catalog = Self {
            disk: Arc::clone(disk),
            sessions: Vec::new(),
            files: Vec::new(),
            problems: files.problems,
        };
        let mut next_to = HashMap::<(PathBuf, String), Vec<(String, PathBuf)>>::new();
        for path in files.agents {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let id = stem.strip_prefix("agent-").unwrap_or(&stem).to_owned();
            // An agent that names no session is one by itself.
            let session = session_of_subagent(disk, &path).unwrap_or_else(|| stem.to_string());
            next_to
                .entry((folder, session))
                .or_default()
                .push((id, path));
        }
        let orphans = files.orphans.into_iter().chain(files.leftovers);
        let orphans = orphans.map(|file| (file, false));
        let sessions = files.sessions.into_iter().map(|file| (file, true));
        let mut sessions: Vec<_> = sessions.chain(orphans).collect();
        sessions.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        for (file, has_own) in sessions {
            let folder = file.path.parent().unwrap_or(Path::new("")).to_owned();
            let agents = next_to
                .remove(&(folder, file.id.clone()))
                .unwrap_or_default();
            catalog.add(&file, has_own, agents);
        }
        // Files of subagents that belong to no session are searched as those of a session that is gone.
        let mut rest: Vec<_> = next_to.into_iter().collect();
        rest.sort();
        for ((folder, id), agents) in rest {
            let file = SessionFile::at(&**disk, &disk.layout().session_of(&folder.join(id)));
            catalog.add(&file, false, agents);
        }
        catalog.measure();
        catalog
    }

    /// Returns the sessions, sorted by path.
    #[must_use]
    pub fn sessions(&self) -> &[CatalogSession] {
        &self.sessions
    }

    /// Returns why parts of the folders could not be read.
    #[must_use]
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// Returns the size of all files in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }

    fn add(&mut self, file: &SessionFile, has_own: bool, agents: Vec<(String, PathBuf)>) {
        let session = self.sessions.len();
        self.sessions.push(CatalogSession {
            id: file.id.clone(),
            project: file.project.clone(),
            path: file.path.clone(),
            modified: None,
            file: file.clone(),
            has_file: has_own,
        });
        if has_own {
            self.add_file(session, file.path.clone(), FileRole::Session);
            if let Some(own) = self.files.last_mut() {
                own.known = file.metadata;
            }
        }
        if file.has_folder {
            match own_subagents_on(&self.disk, &file.path) {
                Ok(own) => {
                    for agent in own {
                        self.add_file(session, agent.path, FileRole::Subagent(agent.id));
                    }
                }
                Err(error) => self.problems.push(error),
            }
        }
        for (id, path) in agents {
            self.add_file(session, path, FileRole::Subagent(id));
        }
        if file.has_folder {
            for path in self.disk.layout().stored_results(&*self.disk, &file.path) {
                let name = path.file_name().unwrap_or_default();
                let name = name.to_string_lossy().into_owned();
                self.add_file(session, path, FileRole::Result(name));
            }
        }
    }

    fn add_file(&mut self, session: usize, path: PathBuf, kind: FileRole) {
        self.files.push(CatalogFile {
            session,
            path,
            len: 0,
            modified: None,
            kind,
            known: None,
        });
    }

    /// Asks the disk for the properties of the files that are not known yet, and drops those that have none.
    fn measure(&mut self) {
        let numbers: Vec<usize> = (0..self.files.len()).collect();
        let blocks: Vec<&[usize]> = numbers.chunks(BLOCK_FILES).collect();
        let (disk, files) = (&self.disk, &self.files);
        let found = parallel::map(&blocks, None, || {
            |block| {
                let metadata = |number: &usize| {
                    let CatalogFile { path, known, .. } = &files[*number];
                    (*number, known.map_or_else(|| disk.metadata(path), Ok))
                };
                block.iter().map(metadata).collect::<Vec<_>>()
            }
        });
        let mut is_gone = vec![false; self.files.len()];
        for (number, found) in found.into_iter().flatten() {
            let file = &mut self.files[number];
            match found {
                Ok(found) => {
                    let newest = &mut self.sessions[file.session].modified;
                    *newest = (*newest).max(found.modified);
                    file.len = found.len;
                    file.modified = found.modified;
                }
                Err(error) => {
                    is_gone[number] = true;
                    self.problems.push(Error::io(&file.path, None, error));
                }
            }
        }
        let mut is_gone = is_gone.into_iter();
        self.files.retain(|_| is_gone.next() != Some(true));
    }
}

impl Catalog {
    pub(crate) fn open_file(&self, file: usize) -> Result<Source, Error> {
        Source::open_on(&self.disk, &self.files[file].path)
    }

    /// Returns the subagent whose file it is.
    pub(crate) fn agent_of(&self, file: usize) -> Option<&str> {
        match &self.files[file].kind {
            FileRole::Subagent(id) => Some(id),
            _ => None,
        }
    }

    /// Returns whether an entry names the session of its file.
    pub(crate) fn is_own(&self, file: usize, envelope: &Envelope<'_>) -> bool {
        let session = &self.sessions[self.files[file].session];
        let named = envelope.session_id();
        named.is_some_and(|named| *named.bytes() == *session.id.as_bytes())
    }

    /// Returns whether `envelope` names the session of the file, and the agent that it is of.
    pub(crate) fn origin(&self, file: usize, envelope: &Envelope<'_>) -> (bool, Option<String>) {
        let agent = || envelope.agent_id().map(|id| id.decode().into_owned());
        let agent = self.agent_of(file).map(str::to_owned).or_else(agent);
        (self.is_own(file, envelope), agent)
    }
}
