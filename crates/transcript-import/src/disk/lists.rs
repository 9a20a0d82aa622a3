//! The lists of sessions in databases, as long as their files do not change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use super::lock::lock;
use crate::Error;
use crate::opencode::List;
use crate::source::Store;

/// The lists of all databases of a home folder.
#[derive(Debug, Default)]
pub(super) struct Lists(Mutex<BTreeMap<PathBuf, List>>);

impl Lists {
    /// Returns the list of a database. `read` is called unless its files are as they were.
    pub(super) fn get(
        &self,
        store: Store<'_>,
        path: &Path,
        read: impl FnOnce() -> Result<List, Error>,
    ) -> Result<List, Error> {
        let is_current = |list: &&List| list.files.iter().all(|file| file.is_current(store.disk));
        if let Some(known) = lock(&self.0).get(path).filter(is_current) {
            return Ok(known.clone());
        }
        let list = read()?;
        lock(&self.0).insert(path.to_owned(), list.clone());
        Ok(list)
    }

    /// Takes over what another process knew.
    pub(super) fn remember(&self, lists: BTreeMap<PathBuf, List>) {
        lock(&self.0).extend(lists);
    }

    /// Returns what another process can use.
    pub(super) fn known(&self) -> BTreeMap<PathBuf, List> {
        let now = SystemTime::now();
        let mut lists = lock(&self.0).clone();
        lists.retain(|_, list| list.files.iter().all(|file| file.is_settled(now)));
        lists
    }
}
