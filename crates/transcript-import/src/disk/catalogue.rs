//! Which sessions a home folder has, and the path under which each is shown.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use transcript_format::names::{is_id, project_key};
use transcript_storage::{ReadDisk, SessionLayout};
use uuid::Uuid;

use super::open_folders::{OpenFolders, Unreadable};
use super::sessions::{Found, Sessions};
use super::shown::Shown;
use crate::state::{FileState, states};

/// The project of sessions whose working folder is unknown.
const UNKNOWN_PROJECT: &str = "unknown";

/// The sessions of a home folder, by their paths below it.
#[derive(Debug)]
pub(super) struct Catalogue {
    pub(super) shown: BTreeMap<PathBuf, Shown>,
    /// Folders and databases of the agent that cannot be read, by the names under which they are shown.
    pub(super) unreadable: BTreeMap<PathBuf, Unreadable>,
    pub(super) sessions: Sessions,
    /// The folders and files in which a change of the list shows, as they were.
    watched: Vec<FileState>,
    is_settled: bool,
}

impl Catalogue {
    /// Arranges sessions that were found in a home folder.
    pub(super) fn new(disk: &OpenFolders, home: &Path, sessions: Sessions) -> Self {
        let shown = arrange(home, &sessions.found);
        let unreadable = disk.unreadable();
        let mut watched = BTreeSet::from([home]);
        watched.extend(unreadable.keys().map(|folder| &**folder));
        for file in sessions.found.iter().flat_map(|found| &found.session.files) {
            let folders = file.ancestors().skip(1);
            watched.extend(folders.take_while(|folder| folder.starts_with(home)));
        }
        let mut watched = states(disk, watched);
        watched.extend(sessions.watched.iter().cloned());
        let now = SystemTime::now();
        // Why a database cannot be read may pass without a change of it.
        let is_readable = sessions.unreadable.is_empty();
        let unreadable = unreadable
            .into_iter()
            .chain(sessions.unreadable.iter().cloned());
        let unreadable = unreadable.map(|(path, problem)| {
            let name = format!("unreadable{}", project_key(&path.to_string_lossy()));
            (PathBuf::from(name), problem)
        });
        Self {
            is_settled: is_readable && watched.iter().all(|state| state.is_settled(now)),
            watched,
            unreadable: unreadable.collect(),
            shown,
            sessions,
        }
    }

    /// Returns whether the list is as it would be read now.
    pub(super) fn is_current(&self, disk: &dyn ReadDisk) -> bool {
        self.is_settled && self.watched.iter().all(|state| state.is_current(disk))
    }

    /// Returns the path of the session that a file belongs to.
    pub(super) fn path_of(&self, file: &Path) -> Option<&Path> {
        let mut shown = self.shown.iter();
        let found = shown.find(|(_, shown)| shown.files.iter().any(|own| own == file));
        found.map(|(path, _)| &**path)
    }

    /// Returns whether a session or a folder with one is at a path below the home folder.
    pub(super) fn has(&self, below: &Path) -> bool {
        let first = self.shown.range(below.to_owned()..).next();
        first.is_some_and(|(path, _)| path.starts_with(below))
    }
}

fn arrange(home: &Path, found: &[Found]) -> BTreeMap<PathBuf, Shown> {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    let mut keys = Vec::with_capacity(found.len());
    for (at, own) in found.iter().enumerate() {
        let first = *by_id.entry(&own.session.id).or_insert(at);
        keys.push(key(home, own, first == at));
    }
    let mut files_of_subagents: HashMap<usize, Vec<PathBuf>> = HashMap::new();
    let mut tops = Vec::with_capacity(found.len());
    for (at, own) in found.iter().enumerate() {
        let top = top_of(found, &by_id, at);
        tops.push(top);
        if top != at {
            let files = files_of_subagents.entry(top).or_default();
            // All sessions of a database are in one file.
            let of_top = &found[top].session.files;
            let others = own
                .session
                .files
                .iter()
                .filter(|file| !of_top.contains(file));
            files.extend(others.cloned());
        }
    }
    let mut shown = BTreeMap::new();
    for (at, own) in found.iter().enumerate() {
        let top = &found[tops[at]];
        let project = top.head.cwd.as_deref().map(project_key);
        let project = project.filter(|project| !project.is_empty());
        let project = PathBuf::from(project.as_deref().unwrap_or(UNKNOWN_PROJECT));
        let layout = SessionLayout::CLIENT;
        let session_id = file_id(&keys[tops[at]]);
        let of_session = layout.session_of(&project.join(&session_id));
        let agent_id = (tops[at] != at).then(|| file_id(&keys[at]));
        let path = match &agent_id {
            Some(agent) => {
                layout.session_of(&layout.subagents(&of_session).join(format!("agent-{agent}")))
            }
            None => of_session,
        };
        let entry = Shown {
            id: own.session.id.clone(),
            key: keys[at].clone(),
            files: own.session.files.clone(),
            beside: own.beside.clone(),
            version: own.version,
            has_folder_of_rows: own.has_folder_of_rows,
            session_id,
            agent_id,
            of_subagents: files_of_subagents.remove(&at).unwrap_or_default(),
        };
        shown.insert(path, entry);
    }
    shown
}

/// Returns the session that started a subagent, or the one that started that one; a session that is not a subagent itself. Of
/// sessions that started each other in a circle, each stands for itself.
fn top_of(found: &[Found], by_id: &HashMap<&str, usize>, at: usize) -> usize {
    let mut top = at;
    let mut seen = HashSet::from([at]);
    while let Some(parent) = &found[top].head.subagent_of
        && let Some(&next) = by_id.get(&**parent)
    {
        if !seen.insert(next) {
            return at;
        }
        top = next;
    }
    top
}

/// Returns what distinguishes a session from all others: its id, unless a file before it has that.
fn key(home: &Path, found: &Found, is_first: bool) -> String {
    let session = &found.session;
    let file = session.files.first().filter(|_| !is_first);
    let below = file.map(|file| file.strip_prefix(home).unwrap_or(file));
    match below {
        Some(below) => format!("{}\n{}", session.id, below.to_string_lossy()),
        None => session.id.clone(),
    }
}

/// Returns an id as the name of a file: itself, if it can be one.
fn file_id(id: &str) -> String {
    match is_id(id) {
        _ if id.starts_with("agent-") => {
            Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()).to_string()
        }
        is_name if is_name => id.to_owned(),
        _ => Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()).to_string(),
    }
}
