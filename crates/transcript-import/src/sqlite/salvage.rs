//! The rows that are left of a damaged database, of one session at a time.

use std::path::Path;

use super::pages::{Index, PageDamage, Pages, StoredRow, Value};
use crate::Error;
use crate::source::Store;

/// The pages of a damaged database, and which of them have rows of which session: all are read once, however many sessions there are.
#[derive(Debug)]
pub(crate) struct Salvage {
    pages: Pages,
    index: Index,
}

impl Salvage {
    pub(super) fn new(
        store: Store<'_>,
        path: &Path,
        session_of: impl Fn(&[Value]) -> Option<&[u8]>,
    ) -> Result<Self, Error> {
        let pages = Pages::open(store, path)?;
        let index = pages.index(session_of).map_err(Error::at(path))?;
        Ok(Self { pages, index })
    }

    /// Returns the ids of the sessions that rows name, in any order.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &[u8]> {
        self.index.pages_of.keys().map(|id| &**id)
    }

    /// Calls `take` with each row in the pages that have some of a session, also with those of others.
    pub(crate) fn rows_near(
        &self,
        path: &Path,
        session: &str,
        mut take: impl FnMut(StoredRow),
    ) -> Result<(), Error> {
        let pages = self.index.pages_of.get(session.as_bytes());
        let pages = pages.map_or(&[][..], |pages| pages);
        self.pages.rows(pages, &mut take).map_err(Error::at(path))
    }

    /// Returns what is damaged.
    pub(crate) fn damage(&self) -> &[PageDamage] {
        &self.index.damage
    }

    /// Returns the length of the database in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.pages.len()
    }

    pub(crate) fn page_len(&self) -> u64 {
        self.pages.page_len()
    }
}
