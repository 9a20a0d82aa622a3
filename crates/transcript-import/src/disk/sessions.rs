//! The sessions of a home folder, with what decides where each is shown and when it has changed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::head::Head;
use super::lists::Lists;
use super::open_folders::Unreadable;
use crate::codex::{self, Codex, Files, Titles};
use crate::dialect::Session;
use crate::opencode::{self, OpenCode};
use crate::shared::Shared;
use crate::source::{Store, name_of};
use crate::state::FileState;
use crate::version::{Version, Versions};
use crate::{Agent, Error, dialect};

/// A session that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) session: Session,
    pub(super) head: Head,
    /// Files beside its own that say something about it. They need not be there.
    pub(super) beside: Vec<PathBuf>,
    /// What else decides it.
    pub(super) version: Option<Version>,
    /// Whether it has a file for each of its messages.
    pub(super) has_folder_of_rows: bool,
}

/// All sessions of a home folder.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) found: Vec<Found>,
    /// Files that decide versions, as they were before they were read.
    pub(super) watched: Vec<FileState>,
    /// Files with sessions, or with titles, that cannot be read, and why.
    pub(super) unreadable: Vec<(PathBuf, Unreadable)>,
    /// The rollouts of Codex, which refer to each other, and their titles.
    pub(super) rollouts: Option<(Files, Titles)>,
}

impl Sessions {
    pub(super) fn read(
        store: Store<'_>,
        agent: Agent,
        shared: &Shared,
        lists: &Lists,
    ) -> Result<Self, Error> {
        match agent {
            Agent::Codex => Self::of_codex(store),
            Agent::OpenCode => Self::of_opencode(store, shared, lists),
            Agent::Copilot => {
                let (versions, watched) = turns_of_copilot(store, shared, lists);
                let sessions = Self::of_records(store, agent, &versions)?;
                Ok(Self {
                    watched,
                    ..sessions
                })
            }
            agent => Self::of_records(store, agent, &Versions::new()),
        }
    }

    fn of_codex(store: Store<'_>) -> Result<Self, Error> {
        let index = FileState::of(store.disk, &store.path.join(codex::INDEX));
        let files = Files::of(store)?;
        let (titles, unreadable) = match Titles::read(store) {
            Ok(titles) => (titles, Vec::new()),
            Err(error) => {
                let problem = (index.path.clone(), error.into());
                (Titles::default(), vec![problem])
            }
        };
        let versions = files.versions(&titles);
        let found = Codex::sessions_of(&files).into_iter();
        let found = found.map(|session| Found::of_records(store, Agent::Codex, session, &versions));
        Ok(Self {
            found: found.collect(),
            watched: vec![index],
            unreadable,
            rollouts: Some((files, titles)),
        })
    }

    fn of_records(store: Store<'_>, agent: Agent, versions: &Versions) -> Result<Self, Error> {
        let found = dialect(agent).sessions(store)?.into_iter();
        let found = found.map(|session| Found::of_records(store, agent, session, versions));
        Ok(Self {
            found: found.collect(),
            ..Self::default()
        })
    }

    fn of_opencode(store: Store<'_>, shared: &Shared, lists: &Lists) -> Result<Self, Error> {
        let mut sessions = Self::default();
        for path in opencode::databases(store)? {
            let list = lists.get(store, &path, || {
                OpenCode::list_of_database(shared, store, &path)
            });
            let list = match list {
                Ok(list) => list,
                Err(error) => {
                    sessions.unreadable.push((path, error.into()));
                    continue;
                }
            };
            let files: Vec<PathBuf> = list.files.iter().map(|file| file.path.clone()).collect();
            let found = list.sessions.into_iter().map(|listed| {
                let session = Session {
                    id: listed.id.clone(),
                    files: vec![path.clone()],
                };
                Found::of_listed(session, listed, &files)
            });
            sessions.found.extend(found);
            sessions.watched.extend(list.files);
        }
        // Of the files that a newer OpenCode moved into its database, the database counts.
        let ids = sessions.found.iter().map(|found| found.session.id.clone());
        let ids: HashSet<String> = ids.collect();
        let older = OpenCode::list_of_files(store)?.into_iter();
        let older = older.filter(|(session, _)| !ids.contains(&session.id));
        let older = older.map(|(session, listed)| Found {
            has_folder_of_rows: true,
            ..Found::of_listed(session, listed, &[])
        });
        sessions.found.extend(older);
        Ok(sessions)
    }
}

impl Found {
    fn of_records(store: Store<'_>, agent: Agent, session: Session, versions: &Versions) -> Self {
        Self {
            head: Head::of(store, agent, &session),
            beside: beside(agent, &session),
            version: versions.get(&session.id).copied(),
            has_folder_of_rows: false,
            session,
        }
    }

    fn of_listed(session: Session, listed: opencode::Listed, files: &[PathBuf]) -> Self {
        // Without a version only the files show a change.
        let beside = match listed.version {
            None => files.to_vec(),
            Some(_) => Vec::new(),
        };
        Self {
            session,
            head: Head {
                cwd: listed.directory,
                subagent_of: listed.parent,
            },
            beside,
            version: listed.version,
            has_folder_of_rows: false,
        }
    }
}

/// Returns the files beside those of a session that say something about it, such as its title.
fn beside(agent: Agent, session: &Session) -> Vec<PathBuf> {
    let Some(file) = session.files.first() else {
        return Vec::new();
    };
    let folder = file.parent();
    let found: Option<Vec<PathBuf>> = match agent {
        Agent::Copilot => folder.map(|folder| vec![folder.join("workspace.yaml")]),
        Agent::ClaudeDesktop => folder.map(|folder| {
            let name = format!("{}.json", name_of(folder));
            vec![folder.with_file_name(name)]
        }),
        Agent::Gemini => {
            let folders = file.ancestors().skip(2).take(2);
            let roots = folders.map(|folder: &Path| folder.join(".project_root"));
            let chats = folder.map(|folder| folder.join(&session.id));
            Some(roots.chain(chats).collect())
        }
        _ => None,
    };
    found.unwrap_or_default()
}

/// Returns versions of the sessions of Copilot CLI by their turns in its database, and the files of that. The sessions are read
/// without a database that cannot be read.
#[cfg(feature = "sqlite")]
fn turns_of_copilot(
    store: Store<'_>,
    shared: &Shared,
    lists: &Lists,
) -> (Versions, Vec<FileState>) {
    let path = store.path.join(crate::copilot::DATABASE);
    let file = FileState::of(store.disk, &path);
    if !store.disk.is_file(&path) {
        return (Versions::new(), vec![file]);
    }
    let list = lists.get(store, &path, || {
        let (versions, files) = crate::copilot::versions(&shared.copies, store, &path)?;
        let versions = versions.into_iter();
        let sessions = versions.map(opencode::Listed::of_version).collect();
        Ok(opencode::List { files, sessions })
    });
    let Ok(list) = list else {
        return (Versions::new(), vec![file]);
    };
    let versions = list.sessions.into_iter();
    let versions = versions.filter_map(|listed| Some((listed.id, listed.version?)));
    (versions.collect(), list.files)
}

#[cfg(not(feature = "sqlite"))]
fn turns_of_copilot(_: Store<'_>, _: &Shared, _: &Lists) -> (Versions, Vec<FileState>) {
    (Versions::new(), Vec::new())
}
