//! A folder of sessions for a test.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use transcript_catalog::{Catalog, Hit, SearchOptions, SearchTotals};

pub(crate) struct Store {
    root: TempDir,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Writes a file below the root.
    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn with(path: &str, bytes: impl AsRef<[u8]>) -> Self {
        let store = Self::new();
        store.write(path, bytes);
        store
    }

    /// Returns the hits of a query as `file:line field snippet`, and what the search did.
    pub(crate) fn search_with(
        &self,
        query: &str,
        options: &SearchOptions,
    ) -> (Vec<Hit>, SearchTotals) {
        let catalog = Catalog::open(self.root()).unwrap();
        let query = query.parse().unwrap();
        let mut search = catalog.search(&query, options).unwrap();
        let hits: Vec<Hit> = (&mut search).map(Result::unwrap).collect();
        let problems = search.problems();
        assert!(problems.is_empty(), "{problems:?}");
        (hits, search.end())
    }

    pub(crate) fn hits(&self, query: &str) -> Vec<Hit> {
        self.search_with(query, &SearchOptions::new()).0
    }

    /// Returns the hits of a query as `line field`, sorted.
    pub(crate) fn found(&self, query: &str) -> Vec<String> {
        let hits = self.hits(query);
        let name = |hit: &Hit| {
            let line = hit.line.map_or("-".to_owned(), |line| line.to_string());
            format!("{line} {}", hit.field.name())
        };
        let mut found: Vec<_> = hits.iter().map(name).collect();
        found.sort();
        found
    }
}
