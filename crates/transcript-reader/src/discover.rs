//! Finds the files of sessions in the projects folder, without opening them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::names::{agent_of, is_id};
use transcript_storage::{DirEntry, FileKind, Metadata, ReadDisk, SessionLayout};

use crate::error::{Error, ErrorKind};
use crate::source::real_disk;
use crate::store_walk::Links;
use crate::subagents::count_own;

/// A file in a project folder that is named like a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFile {
    /// The file.
    pub path: PathBuf,
    /// The name of its folder, a [key](transcript_format::names::project_key).
    pub project: String,
    /// The file name without `.jsonl`. It need not be a uuid and is never used to build a path.
    pub id: String,
    /// Whether a folder of the same name exists, for agents and side files.
    pub has_folder: bool,
    /// Whether the name is that of a symbolic link.
    pub is_link: bool,
    /// The properties of the file, if the list of its folder had them.
    pub metadata: Option<Metadata>,
}

/// The content of a projects folder.
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionFiles {
    /// The sessions, sorted by path; a file with several names is listed once.
    pub sessions: Vec<SessionFile>,
    /// Files and folders that are named like a session or project and cannot be used.
    pub problems: Vec<Error>,
    /// Sessions whose own file is gone while files of their subagents exist, sorted by path; the
    /// path is that of the missing file.
    pub orphans: Vec<SessionFile>,
    /// Sessions of which only results in files of their own are left, in no order; the path is that of
    /// the missing file.
    pub leftovers: Vec<SessionFile>,
    /// The files of subagents next to their sessions (clients before 2.1.2).
    pub agents: Vec<PathBuf>,
    links: Links,
    pub(crate) disk: Arc<dyn ReadDisk>,
}

impl Default for SessionFiles {
    fn default() -> Self {
        Self::on(real_disk())
    }
}

impl SessionFiles {
    /// Returns no files, on `disk`.
    #[must_use]
    pub fn on(disk: Arc<dyn ReadDisk>) -> Self {
        Self {
            sessions: Vec::new(),
            problems: Vec::new(),
            orphans: Vec::new(),
            leftovers: Vec::new(),
            agents: Vec::new(),
            links: Links::default(),
            disk,
        }
    }

    /// Finds the sessions of all projects in `root`. Links are followed as [`walk_store`](crate::walk_store)
    /// follows them. An empty file counts as a
    /// session in lists; look-ups ignore it.
    ///
    /// # Errors
    /// When `root` cannot be read. A project that cannot be read is one of the
    /// [problems](Self::problems).
    pub fn in_root(root: &Path) -> Result<Self, Error> {
        Self::in_root_on(&real_disk(), root)
    }

    /// Finds the sessions of all projects in `root` on `disk`, as [`Self::in_root`] does on the disk
    /// of this machine.
    ///
    /// # Errors
    /// As [`Self::in_root`].
    pub fn in_root_on(disk: &Arc<dyn ReadDisk>, root: &Path) -> Result<Self, Error> {
        let mut projects = entries(disk, root)?;
        // Folders come before links to them.
        projects.sort_by_key(|entry| (entry.kind == FileKind::Link, entry.name.clone()));
        let real_root = disk.real_path(root).unwrap_or_else(|_| root.to_owned());
        let mut found = Self::on(Arc::clone(disk));
        for project in projects {
            let path = root.join(&project.name);
            let real = match project.kind {
                FileKind::Link => disk.real_path(&path),
                _ => Ok(real_root.join(&project.name)),
            };
            match real {
                Err(error) => found.problems.push(Error::io(&path, None, error)),
                Ok(real)
                    if disk
                        .metadata_of(&real, &project)
                        .is_ok_and(|it| it.is_folder())
                        && found.links.enter(real.clone()) =>
                {
                    found.add_project(&path);
                }
                Ok(_) => {}
            }
        }
        Ok(found.sorted())
    }

    /// Finds the sessions of the projects whose folders these are on `disk`, as [`Self::in_root_on`] does for all projects.
    #[must_use]
    pub fn in_projects(disk: Arc<dyn ReadDisk>, folders: &[PathBuf]) -> Self {
        let mut found = Self::on(disk);
        for folder in folders {
            let real = found.disk.real_path(folder);
            if found.links.enter(real.unwrap_or_else(|_| folder.clone())) {
                found.add_project(folder);
            }
        }
        found.sorted()
    }

    fn sorted(mut self) -> Self {
        self.drop_links_to_others();
        self.sessions.sort_by(|a, b| a.path.cmp(&b.path));
        self.orphans.sort_by(|a, b| a.path.cmp(&b.path));
        self
    }

    /// Returns the sessions whose id is `id`; if there are none, those whose id starts with it.
    /// Case is ignored. Empty when `id` is not an [id](is_id).
    #[must_use]
    pub fn matching(&self, id: &str) -> Vec<&SessionFile> {
        if !is_id(id) {
            return Vec::new();
        }
        let starts = |file: &&SessionFile| {
            let start = file.id.as_bytes().get(..id.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(id.as_bytes()))
        };
        let entry_refs: Vec<_> = self.sessions.iter().filter(starts).collect();
        let whole = entry_refs.iter().filter(|file| file.id.len() == id.len());
        let whole: Vec<_> = whole.copied().collect();
        if whole.is_empty() { entry_refs } else { whole }
    }

    fn add_project(&mut self, path: &Path) {
        let mut entries = match entries(&self.disk, path) {
            Ok(entries) => entries,
            Err(error) => return self.problems.push(error),
        };
        // Names are cheaper to compare than the paths that are sorted later.
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let (project, layout) = (name_of(path), self.disk.layout());
        let mut folders = HashSet::new();
        let first = self.sessions.len();
        for entry in entries {
            let name = entry.name.to_string_lossy();
            let Some(id) = layout.id_of(&name) else {
                if entry.kind != FileKind::File {
                    folders.insert(name.into_owned());
                }
                continue;
            };
            let path = path.join(&entry.name);
            match usable(&*self.disk, &path, entry.kind) {
                Err(error) => self.problems.push(error),
                Ok(()) if agent_of(&name).is_some() => self.agents.push(path),
                Ok(()) => self.sessions.push(SessionFile {
                    path,
                    project: project.clone(),
                    id: id.to_owned(),
                    has_folder: false,
                    is_link: entry.kind == FileKind::Link,
                    metadata: entry.metadata.filter(|found| found.is_file()),
                }),
            }
        }
        for session in &mut self.sessions[first..] {
            session.has_folder = folders.remove(&session.id);
        }
        for id in folders {
            let missing = SessionFile {
                path: layout.session_of(&path.join(&id)),
                project: project.clone(),
                id,
                has_folder: true,
                is_link: false,
                metadata: None,
            };
            missing.add_rest(self);
        }
    }

    /// Removes links to files that are listed under another name: they are not further sessions.
    fn drop_links_to_others(&mut self) {
        if !self.sessions.iter().any(|file| file.is_link) {
            return;
        }
        let (disk, links) = (&self.disk, &mut self.links);
        self.sessions.retain(|file| {
            !file.is_link
                || disk
                    .real_path(&file.path)
                    .map_or(true, |real| links.add_linked_file(disk.layout(), real))
        });
    }
}

impl SessionFile {
    /// Describes the session whose file is `path`, in whatever folder.
    #[must_use]
    pub fn at(disk: &dyn ReadDisk, path: &Path) -> Self {
        let stem = path.file_stem().unwrap_or_default();
        Self {
            path: path.to_owned(),
            project: path.parent().map(name_of).unwrap_or_default(),
            id: stem.to_string_lossy().into_owned(),
            has_folder: disk.is_folder(&disk.layout().folder(path)),
            is_link: false,
            metadata: None,
        }
    }

    /// Adds a session whose file is missing to those of which files of subagents or results are left, and returns whether
    /// it is one.
    pub fn add_rest(self, files: &mut SessionFiles) -> bool {
        if !self.has_folder || !is_id(&self.id) {
            return false;
        }
        if self.agents(&*files.disk) > 0 {
            files.orphans.push(self);
        } else if files
            .disk
            .is_folder(&files.disk.layout().results(&self.path))
        {
            files.leftovers.push(self);
        } else {
            return false;
        }
        true
    }

    /// Returns the folder for the agents and the side files of the session.
    pub(crate) fn folder(&self, layout: SessionLayout) -> PathBuf {
        layout.folder(&self.path)
    }

    /// Counts the agents in the folder of the session.
    pub(crate) fn agents(&self, disk: &dyn ReadDisk) -> usize {
        if !self.has_folder {
            return 0;
        }
        count_own(disk, &self.path)
    }
}

/// Returns the names in a folder, sorted.
pub(crate) fn folder_names(disk: &Arc<dyn ReadDisk>, folder: &Path) -> Result<Vec<String>, Error> {
    let names = entries(disk, folder)?.into_iter();
    let mut names: Vec<String> = names
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

fn entries(disk: &Arc<dyn ReadDisk>, folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let entries = disk.list(folder).and_then(Iterator::collect);
    entries.map_err(|error| Error::io(folder, None, error))
}

/// Returns an error unless the entry is a regular file, so that opening it does not block.
fn usable(disk: &dyn ReadDisk, path: &Path, kind: FileKind) -> Result<(), Error> {
    let kind = match kind {
        FileKind::Link | FileKind::Other => disk.metadata(path).map(|found| found.kind),
        kind => Ok(kind),
    };
    match kind {
        Ok(FileKind::File) => Ok(()),
        Ok(_) => Err(Error::new(ErrorKind::NotAFile, path)),
        Err(error) => Err(Error::io(path, None, error)),
    }
}

/// Returns the folders of all worktrees of the repository of `path`, including its own. Empty
/// outside of a repository. Read from the files of `git worktree`.
pub(crate) fn worktrees(disk: &dyn ReadDisk, path: &Path) -> Vec<PathBuf> {
    let Some(git) = path
        .ancestors()
        .map(|above| above.join(".git"))
        .find(|git| disk.metadata(git).is_ok())
    else {
        return Vec::new();
    };
    // In a worktree `.git` is a file that names a folder inside the main repository.
    let common = match named_in(disk, &git) {
        Some(own) => match named_in(disk, &own.join("commondir")) {
            Some(common) => common,
            None => own,
        },
        None => git,
    };
    let folder = common.join("worktrees");
    let others = disk.list(&folder).into_iter().flatten().flatten();
    let others = others.filter_map(|other| named_in(disk, &folder.join(other.name).join("gitdir")));
    let gits = others.chain([common.clone()]);
    gits.filter_map(|git| Some(git.parent()?.to_owned()))
        .collect()
}

/// Returns the path that a small file of git names.
fn named_in(disk: &dyn ReadDisk, file: &Path) -> Option<PathBuf> {
    const MAX_FILE_LEN: usize = 16 << 10;
    let found = disk.metadata(file).ok()?;
    if !found.is_file() || found.len > MAX_FILE_LEN as u64 {
        return None;
    }
    let text = String::from_utf8(disk.read(file, MAX_FILE_LEN).ok()?).ok()?;
    let named = text.trim_end().trim_start_matches("gitdir: ");
    let path = file.parent()?.join(named);
    // The sessions of a worktree are found also when its folder is gone.
    Some(disk.real_path(&path).unwrap_or(path))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
