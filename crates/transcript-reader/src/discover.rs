//! Finds the files of sessions below the folder of projects, without opening one.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use transcript_format::names::{agent_of, is_id};

use crate::error::{Error, ErrorKind};

/// How far below `subagents` an agent may stand: two folders are known.
const MAX_DEPTH: usize = 4;

/// A file with the name of a session in the folder of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// The file.
    pub path: PathBuf,
    /// The name of its folder, a [key](transcript_format::names::project_key).
    pub project: String,
    /// Its name without `.jsonl`. Not of every file here a client made it: it need be no uuid, and
    /// is never made a path.
    pub id: String,
    /// Whether there is a folder of the same name, for agents and side files.
    pub(crate) has_folder: bool,
    is_link: bool,
}

/// What stands in a folder of projects.
#[derive(Debug, Default)]
pub struct SessionFiles {
    /// The sessions, in the order of their paths; those of several names once.
    pub sessions: Vec<SessionFile>,
    /// What looks like a session or a project by its name and cannot be used.
    pub problems: Vec<Error>,
    /// Sessions whose own file is gone while files of their subagents are there, in the order of their
    /// paths; the path is where the file stood.
    pub(crate) orphans: Vec<SessionFile>,
    /// The files of subagents that stand beside their sessions (clients before 2.1.2).
    pub(crate) agents: Vec<PathBuf>,
}

impl SessionFiles {
    /// Looks through all projects in `root`. Links are followed. A file without a byte is a session,
    /// too, for a list; a look-up passes over it.
    ///
    /// # Errors
    /// When `root` cannot be read. A project that cannot be is one of the [problems](Self::problems).
    pub fn in_root(root: &Path) -> Result<Self, Error> {
        let mut projects = entries(root)?;
        // A folder comes before a link to it.
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

    /// Returns the sessions whose id is `id`, or, when there is none, those whose id starts so.
    /// Upper and lower case are the same. Empty when `id` is [none](is_id).
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

    /// A link to a file that is listed under another name is no second session.
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

/// Whether what has the name of a transcript is a file, so that opening it does not wait.
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

/// Returns the folders that have a copy of the repository of `path` checked out, its own among them.
/// Empty when it is in none (`git worktree`, read from the files that git keeps).
pub(crate) fn worktrees(path: &Path) -> Vec<PathBuf> {
    let Some(git) = path
        .ancestors()
        .map(|above| above.join(".git"))
        .find(|git| git.exists())
    else {
        return Vec::new();
    };
    // In a worktree it is a file that leads to a folder in the one of the repository.
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

/// The path that a small file of git names.
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
