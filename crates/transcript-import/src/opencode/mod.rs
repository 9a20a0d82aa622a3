//! OpenCode: a database of sessions, messages and their parts. Older versions write a file for each of them.
//!
//! A revert hides messages until the next prompt deletes their rows; the events still have them. A compaction is a prompt with a
//! part of that kind, which the summary answers.

#[cfg(feature = "sqlite")]
mod database;
mod events;
mod files;
mod listed;
mod merged;
mod message;
mod part;
mod rows;
#[cfg(feature = "sqlite")]
mod salvage;
mod send;
mod session;
#[cfg(feature = "sqlite")]
mod stored;
mod texts;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use transcript_format::object::Object;

use crate::conversation::Conversation;
use crate::dialect::{Dialect, Policy, Session};
use crate::gaps::fill_gaps;
use crate::shared::Shared;
use crate::source::{Store, name_of};
use crate::{Agent, Error};

pub(crate) use listed::{List, Listed};
use rows::Rows;

/// The dialect of OpenCode.
#[derive(Clone, Copy, Debug)]
pub struct OpenCode;

impl Dialect for OpenCode {
    fn agent(&self) -> Agent {
        Agent::OpenCode
    }

    fn has_store(&self, store: Store<'_>) -> bool {
        let has_database = || databases(store).is_ok_and(|found| !found.is_empty());
        cfg!(feature = "sqlite") && has_database()
            || store
                .disk
                .is_folder(&store.path.join(files::FILES_FOLDER).join("session"))
    }

    fn begins_file(&self, _: &Object<'_>) -> bool {
        false
    }

    fn sessions(&self, store: Store<'_>) -> Result<Vec<Session>, Error> {
        let (found, mut unread) = Self::list(store)?;
        match unread.pop() {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }

    fn read(&self, store: Store<'_>, id: &str, policy: Policy) -> Result<Conversation, Error> {
        Self::read_of(&Shared::default(), store, id, policy)
    }
}

impl OpenCode {
    /// Returns the sessions of a store, and why each database that cannot be read has none among them.
    pub(crate) fn list(store: Store<'_>) -> Result<(Vec<Session>, Vec<Error>), Error> {
        let (mut sessions, mut unread) = (Vec::new(), Vec::new());
        for path in databases(store)? {
            match Self::list_of_database(&Shared::default(), store, &path) {
                Ok(list) => sessions.extend(list.sessions.into_iter().map(|listed| Session {
                    id: listed.id,
                    files: vec![path.clone()],
                })),
                Err(error) => unread.push(error),
            }
        }
        let ids = sessions.iter().map(|session: &Session| session.id.clone());
        let known: HashSet<String> = ids.collect();
        // The first start of a newer version moves the files into the database and leaves them.
        let older = Self::list_of_files(store)?.into_iter();
        let older = older.map(|(session, _)| session);
        sessions.extend(older.filter(|session| !known.contains(&session.id)));
        Ok((sessions, unread))
    }

    /// Returns the sessions of a database.
    #[cfg(feature = "sqlite")]
    pub(crate) fn list_of_database(
        shared: &Shared,
        store: Store<'_>,
        path: &Path,
    ) -> Result<List, Error> {
        use crate::sqlite::Failure;

        let copied = shared.copies.get(store, path)?;
        let list = |sessions| List {
            files: copied.files().to_vec(),
            sessions,
        };
        if !copied.has_damaged_log {
            match copied.ask(stored::list) {
                Ok(sessions) => return Ok(list(sessions)),
                Err(Failure::Other(error)) => return Err(error),
                Err(Failure::Damaged) => {}
            }
        }
        let salvage = copied.salvage(store, path, salvage::session_of)?;
        let ids = salvage::ids(&salvage);
        if ids.is_empty() {
            let reason = "the database is damaged, and no row of a session is left in it";
            let damaged = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
            return Err(Error::at(path)(damaged));
        }
        Ok(list(ids.into_iter().map(Listed::of_damaged).collect()))
    }

    #[cfg(not(feature = "sqlite"))]
    pub(crate) fn list_of_database(_: &Shared, _: Store<'_>, path: &Path) -> Result<List, Error> {
        Err(no_sqlite(path))
    }

    /// Returns the sessions that older versions wrote as files.
    pub(crate) fn list_of_files(store: Store<'_>) -> Result<Vec<(Session, Listed)>, Error> {
        let sessions = files::sessions(store)?.into_iter();
        let described = sessions.map(|session| {
            let listed = files::describe(store, &session);
            (session, listed)
        });
        Ok(described.collect())
    }

    /// Reads one session of a store.
    pub(crate) fn read_of(
        shared: &Shared,
        store: Store<'_>,
        id: &str,
        policy: Policy,
    ) -> Result<Conversation, Error> {
        // The session may be elsewhere than in a database that cannot be read.
        let mut unread = None;
        for path in databases(store)? {
            match read_database(shared, store, &path, id, policy) {
                Ok(Some(conversation)) => return Ok(conversation),
                Ok(None) => {}
                Err(error) => unread = unread.or(Some(error)),
            }
        }
        let session = files::sessions(store)?
            .into_iter()
            .find(|session| session.id == id);
        let none = || Error::no_session(Agent::OpenCode, store.path, id);
        let session = session.ok_or_else(|| unread.unwrap_or_else(none))?;
        let mut to = Conversation::new(Agent::OpenCode, id);
        let mut files = files::Files::open(store, &session, &mut to)?;
        match read_rows(to, &mut files, None)? {
            Some(conversation) => Ok(conversation),
            None => Err(Error::no_session(Agent::OpenCode, store.path, id)),
        }
    }
}

/// Reads a session from its rows; `None` when there are none. `refusal` is why OpenCode itself does not read them.
fn read_rows<R: Rows>(
    mut to: Conversation,
    rows: &mut R,
    refusal: Option<&'static str>,
) -> Result<Option<Conversation>, R::Error> {
    let Some(session) = session::read(&mut to, rows)? else {
        return Ok(None);
    };
    send::choose(&mut to, session);
    if let Some(refusal) = refusal {
        to.refuse(refusal);
    }
    fill_gaps(&mut to);
    Ok(Some(to.finish()))
}

/// Returns the databases of a store: the usual one, and those of other channels of releases beside it.
pub(crate) fn databases(store: Store<'_>) -> Result<Vec<PathBuf>, Error> {
    let is_database = |path: &Path| {
        let name = name_of(path);
        name.starts_with("opencode") && name.ends_with(".db")
    };
    if store.disk.is_file(store.path) {
        let path = Some(store.path.to_owned());
        return Ok(path
            .filter(|path| name_of(path).ends_with(".db"))
            .into_iter()
            .collect());
    }
    let mut found = Vec::new();
    for entry in store.disk.list(store.path).map_err(Error::at(store.path))? {
        let entry = entry.map_err(Error::at(store.path))?;
        let path = store.path.join(&entry.name);
        if is_database(&path) && store.disk.is_file(&path) {
            found.push(path);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Reads a session of a database; `None` when it has none with this id.
///
/// The pages of a damaged database are read one by one. OpenCode itself refuses it, or goes without the changes that its log has
/// after a damaged place.
#[cfg(feature = "sqlite")]
fn read_database(
    shared: &Shared,
    store: Store<'_>,
    path: &Path,
    id: &str,
    policy: Policy,
) -> Result<Option<Conversation>, Error> {
    use crate::sqlite::Failure;

    let copied = shared.copies.get(store, path)?;
    let is_of_vendor = policy == Policy::Vendor;
    if is_of_vendor || !copied.has_damaged_log {
        let read = copied.ask(|database| {
            let mut to = Conversation::new(Agent::OpenCode, id);
            let mut tables = database::Tables::open(database, path, id, &mut to)?;
            read_rows(to, &mut tables, None)
        });
        match read {
            Ok(read) => return Ok(read),
            Err(Failure::Other(error)) => return Err(error),
            Err(Failure::Damaged) => {}
        }
    }
    let salvage = copied.salvage(store, path, salvage::session_of)?;
    let mut to = Conversation::new(Agent::OpenCode, id);
    let mut salvaged = salvage::Salvaged::read(&salvage, path, id, &mut to)?;
    let refusal = is_of_vendor.then_some("its database is damaged");
    read_rows(to, &mut salvaged, refusal)
}

#[cfg(not(feature = "sqlite"))]
fn read_database(
    _: &Shared,
    _: Store<'_>,
    path: &Path,
    _: &str,
    _: Policy,
) -> Result<Option<Conversation>, Error> {
    Err(no_sqlite(path))
}

#[cfg(not(feature = "sqlite"))]
fn no_sqlite(path: &Path) -> Error {
    let reason = "the feature `sqlite` of transcript-import reads databases";
    Error::at(path)(std::io::Error::new(std::io::ErrorKind::Unsupported, reason))
}
