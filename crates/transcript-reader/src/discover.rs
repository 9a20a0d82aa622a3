//! Finds the files of sessions in the projects folder, without opening them.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use transcript_format::names::{agent_of, is_id};

use crate::error::{Error, ErrorKind};

/// The maximum depth of an agent below `subagents`; two folders are in use.
const MAX_DEPTH: usize = 4;

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
    pub(crate) has_folder: bool,
    is_link: bool,
}

/// The content of a projects folder.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SessionFiles {
    /// The sessions, sorted by path; a file with several names is listed once.
    pub sessions: Vec<SessionFile>,
    /// Files and folders that are named like a session or project and cannot be used.
    pub problems: Vec<Error>,
    /// Sessions whose own file is gone while files of their subagents exist, sorted by path; the
    /// path is that of the missing file.
    pub(crate) orphans: Vec<SessionFile>,
    /// The files of subagents next to their sessions (clients before 2.1.2).
    pub(crate) agents: Vec<PathBuf>,
}

impl SessionFiles {
    /// Finds the sessions of all projects in `root`. Links are followed. An empty file counts as a
    /// session in lists; look-ups ignore it.
    ///
    /// # Errors
    /// When `root` cannot be read. A project that cannot be read is one of the
    /// [problems](Self::problems).
    pub fn in_root(root: &Path) -> Result<Self, Error> {
        let mut projects = entries(root)?;
        // Folders come before links to them.
        projects.sort_by_key(|entry| (is_link(entry), entry.file_name()));
        let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let mut found = Self::default();
        let mut seen = HashSet::new();
        for project in projects {
            let path = project.path();
            let real = match is_link(&project) {
                false => Ok(root.join(project.file_name())),
                true => fs::canonicalize(&path),
            };
            match real {
                Err(error) => found.problems.push(Error::io(&path, None, error)),
                Ok(real) if real.is_dir() && seen.insert(real.clone()) => {
                    found.add_project(&path);
                }
                Ok(_) => {}
            }
        }
        found.drop_links_to_others();
        found.sessions.sort_by(|a, b| a.path.cmp(&b.path));
        found.orphans.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
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
        let entries = match entries(path) {
            Ok(entries) => entries,
            Err(error) => return self.problems.push(error),
        };
        let project = name_of(path);
        let mut folders = HashSet::new();
        let first = self.sessions.len();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Some(id) = name.strip_suffix(".jsonl") else {
                if entry.file_type().is_ok_and(|kind| !kind.is_file()) {
                    folders.insert(name.into_owned());
                }
                continue;
            };
            match usable(&entry) {
                Err(error) => self.problems.push(error),
                Ok(()) if agent_of(&name).is_some() => self.agents.push(entry.path()),
                Ok(()) => self.sessions.push(SessionFile {
                    path: entry.path(),
                    project: project.clone(),
                    id: id.to_owned(),
                    has_folder: false,
                    is_link: is_link(&entry),
                }),
            }
        }
        for session in &mut self.sessions[first..] {
            session.has_folder = folders.remove(&session.id);
        }
        for id in folders.into_iter().filter(|id| is_id(id)) {
            let orphan = SessionFile {
                path: path.join(format!("{id}.jsonl")),
                project: project.clone(),
                id,
                has_folder: true,
                is_link: false,
            };
            if orphan.agents() > 0 {
                self.orphans.push(orphan);
            }
        }
    }

    /// Removes links to files that are listed under another name: they are not further sessions.
    fn drop_links_to_others(&mut self) {
        if !self.sessions.iter().any(|file| file.is_link) {
            return;
        }
        let mut seen = HashSet::new();
        self.sessions.sort_by_key(|file| file.is_link);
        self.sessions
            .retain(|file| match fs::canonicalize(&file.path) {
                Ok(real) => seen.insert(real) || !file.is_link,
                Err(_) => true,
            });
    }
}

impl SessionFile {
    /// Returns the folder for the agents and the side files of the session.
    pub(crate) fn folder(&self) -> PathBuf {
        self.path.with_extension("")
    }

    /// Counts the agents in the folder of the session.
    pub(crate) fn agents(&self) -> usize {
        if !self.has_folder {
            return 0;
        }
        count_agents(&self.folder().join("subagents"), MAX_DEPTH)
    }
}

fn count_agents(folder: &Path, depth: usize) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let count = entries.map(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth > 0 {
            count_agents(&entry.path(), depth - 1)
        } else {
            let name = entry.file_name();
            usize::from(!is_folder && agent_of(&name.to_string_lossy()).is_some())
        }
    });
    count.sum()
}

fn entries(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect);
    entries.map_err(|error: io::Error| Error::io(folder, None, error))
}

fn is_link(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_symlink())
}

/// Returns an error unless the entry is a regular file, so that opening it does not block.
fn usable(entry: &DirEntry) -> Result<(), Error> {
    let path = entry.path();
    let is_file = entry.file_type().and_then(|kind| {
        let followed = kind.is_symlink().then(|| fs::metadata(&path));
        followed.map_or(Ok(kind.is_file()), |found| {
            found.map(|found| found.is_file())
        })
    });
    match is_file {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::new(ErrorKind::NotAFile, &path)),
        Err(error) => Err(Error::io(&path, None, error)),
    }
}

/// Returns the folders of all worktrees of the repository of `path`, including its own. Empty
/// outside of a repository. Read from the files of `git worktree`.
pub(crate) fn worktrees(path: &Path) -> Vec<PathBuf> {
    let Some(git) = path
        .ancestors()
        .map(|above| above.join(".git"))
        .find(|git| git.exists())
    else {
        return Vec::new();
    };
    // In a worktree `.git` is a file that names a folder inside the main repository.
    let common = match named_in(&git) {
        Some(own) => match named_in(&own.join("commondir")) {
            Some(common) => common,
            None => own,
        },
        None => git,
    };
    let others = fs::read_dir(common.join("worktrees"));
    let others = others.into_iter().flatten().flatten();
    let others = others.filter_map(|other| named_in(&other.path().join("gitdir")));
    let gits = others.chain([common.clone()]);
    gits.filter_map(|git| Some(git.parent()?.to_owned()))
        .collect()
}

/// Returns the path that a small file of git names.
fn named_in(file: &Path) -> Option<PathBuf> {
    if !file.is_file() || fs::metadata(file).ok()?.len() > 16 << 10 {
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    let named = text.trim_end().trim_start_matches("gitdir: ");
    fs::canonicalize(file.parent()?.join(named)).ok()
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
