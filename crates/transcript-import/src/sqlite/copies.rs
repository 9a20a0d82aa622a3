//! Copies of databases that the readings of many sessions share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::database::{Database, Failure};
use super::files::files_of;
use super::pages::Pages;
use crate::Error;
use crate::source::Store;
use crate::state::{FileState, states};

/// How long a copy is used though its database has changed: each would otherwise be another one while an agent writes and many
/// sessions are read.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The copies that were made, one of each database.
#[derive(Debug, Default)]
pub(crate) struct Copies(Mutex<HashMap<PathBuf, Arc<Copied>>>);

/// A copy of a database.
#[derive(Debug)]
pub(crate) struct Copied {
    /// The files of the database before they were copied.
    files: Vec<FileState>,
    made: Instant,
    /// Whether complete changes follow a damaged place of its log: SQLite does not see them.
    pub(crate) has_damaged_log: bool,
    /// `None` when SQLite cannot read it.
    database: Mutex<Option<Database>>,
}

impl Copies {
    /// Returns a copy of the database at `path`: the one that was made last, if the files of the database are as they were or
    /// were copied just now.
    pub(crate) fn get(&self, store: Store<'_>, path: &Path) -> Result<Arc<Copied>, Error> {
        // Held while the copy is made: other threads want the same one.
        let mut copies = lock(&self.0);
        if let Some(known) = copies.get(path).filter(|known| known.is_current(store)) {
            return Ok(Arc::clone(known));
        }
        // Its place on the disk is free before the next one needs some.
        copies.remove(path);
        let new = Arc::new(Copied::new(store, path)?);
        copies.insert(path.to_owned(), Arc::clone(&new));
        Ok(new)
    }
}

impl Copied {
    fn new(store: Store<'_>, path: &Path) -> Result<Self, Error> {
        let files = files_of(path);
        let files = states(store.disk, files.iter().map(|file| &**file));
        let has_damaged_log = Pages::open(store, path)?.has_damaged_log();
        let database = match Database::open(store, path) {
            Ok(database) => Some(database),
            Err(Failure::Damaged) => None,
            Err(Failure::Other(error)) => return Err(error),
        };
        Ok(Self {
            files,
            made: Instant::now(),
            has_damaged_log,
            database: Mutex::new(database),
        })
    }

    fn is_current(&self, store: Store<'_>) -> bool {
        let mut files = self.files.iter();
        self.made.elapsed() < MAX_AGE || files.all(|file| file.is_current(store.disk))
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
}

/// A panic of another thread leaves at most a copy that is made again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
