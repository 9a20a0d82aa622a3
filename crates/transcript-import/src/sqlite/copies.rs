//! Copies of databases that the readings of many sessions share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::copy::copy;
use super::database::{Database, Failure};
use super::files::files_of;
use super::pages::Value;
use super::salvage::Salvage;
use crate::Error;
use crate::clock::Clock;
use crate::source::Store;
use crate::state::{FileState, states};

/// How long a copy is used though its database has changed: each would otherwise be another one while an agent writes and many
/// sessions are read.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The copies that were made, one of each database.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    copies: Mutex<HashMap<PathBuf, Arc<Copied>>>,
    clock: Clock,
}

/// A copy of a database.
#[derive(Debug)]
pub(crate) struct Copied {
    /// The files of the database before they were copied.
    files: Vec<FileState>,
    made: Instant,
    /// Whether complete changes follow a damaged place of its log: SQLite does not see them.
    pub(crate) has_damaged_log: bool,
    /// `None` when SQLite cannot read it. A later copy of the same database may be this one with more changes.
    database: Arc<Mutex<Option<Database>>>,
    salvage: Mutex<Option<Arc<Salvage>>>,
}

impl Copies {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            copies: Mutex::default(),
            clock,
        }
    }

    /// Returns a copy of the database at `path`: the one that was made last, if the files of the database are as they were or
    /// were copied just now.
    pub(crate) fn get(&self, store: Store<'_>, path: &Path) -> Result<Arc<Copied>, Error> {
        // Held while the copy is made: other threads want the same one.
        let mut copies = lock(&self.copies);
        let now = self.clock.now();
        if let Some(known) = copies.get(path)
            && known.is_current(store, now)
        {
            return Ok(Arc::clone(known));
        }
        // Its place on the disk is free before the next one needs some.
        let known = copies.remove(path);
        let followed = known.and_then(|known| known.follow(store, path, now));
        let new = match followed {
            Some(followed) => followed,
            None => Copied::new(store, path, now)?,
        };
        let new = Arc::new(new);
        copies.insert(path.to_owned(), Arc::clone(&new));
        Ok(new)
    }
}

impl Copied {
    fn new(store: Store<'_>, path: &Path, made: Instant) -> Result<Self, Error> {
        let files = state_of_files(store, path);
        let copy = copy(store, path)?;
        let has_damaged_log = copy.has_damaged_log;
        let database = match Database::open(copy, path) {
            Ok(database) => Some(database),
            Err(Failure::Damaged) => None,
            Err(Failure::Other(error)) => return Err(error),
        };
        Ok(Self {
            files,
            made,
            has_damaged_log,
            database: Arc::new(Mutex::new(database)),
            salvage: Mutex::default(),
        })
    }

    /// Returns the same copy with the changes of its database since; `None` when a new one has to be made.
    fn follow(&self, store: Store<'_>, path: &Path, made: Instant) -> Option<Self> {
        let files = state_of_files(store, path);
        let followed = lock(&self.database).as_mut()?.follow(store);
        // What fails here fails again when the database is copied, and is reported then.
        followed.is_ok_and(|is_followed| is_followed).then(|| Self {
            files,
            made,
            has_damaged_log: false,
            database: Arc::clone(&self.database),
            salvage: Mutex::default(),
        })
    }

    fn is_current(&self, store: Store<'_>, now: Instant) -> bool {
        now.duration_since(self.made) < MAX_AGE || self.is_unchanged(store)
    }

    fn is_unchanged(&self, store: Store<'_>) -> bool {
        self.files.iter().all(|file| file.is_current(store.disk))
    }

    /// Returns the files of the database as they were before they were copied.
    pub(crate) fn files(&self) -> &[FileState] {
        &self.files
    }

    /// Asks the copy; one thread at a time does.
    pub(crate) fn ask<T>(
        &self,
        questions: impl FnOnce(&Database) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let database = lock(&self.database);
        questions(database.as_ref().ok_or(Failure::Damaged)?)
    }

    /// Returns what is left in the pages of the database, which is damaged. `session_of` returns the id of the session that a row
    /// belongs to.
    pub(crate) fn salvage(
        &self,
        store: Store<'_>,
        path: &Path,
        session_of: impl Fn(&[Value]) -> Option<&[u8]>,
    ) -> Result<Arc<Salvage>, Error> {
        let mut salvage = lock(&self.salvage);
        // It has the places of rows in the database itself.
        if let Some(known) = salvage.as_ref().filter(|_| self.is_unchanged(store)) {
            return Ok(Arc::clone(known));
        }
        let new = Arc::new(Salvage::new(store, path, session_of)?);
        *salvage = Some(Arc::clone(&new));
        Ok(new)
    }
}

fn state_of_files(store: Store<'_>, path: &Path) -> Vec<FileState> {
    let files = files_of(path);
    states(store.disk, files.iter().map(|file| &**file))
}

/// A panic of another thread leaves at most a copy that is made again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
