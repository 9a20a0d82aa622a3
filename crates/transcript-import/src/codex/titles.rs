//! The titles of threads: lines of an index beside the folders of rollouts.

use std::collections::HashMap;

use transcript_format::object::Object;

use crate::source::Store;

/// The name of the index in the home folder.
pub(crate) const INDEX: &str = "session_index.jsonl";

/// The title of each thread that has one.
#[derive(Debug, Default)]
pub(crate) struct Titles(HashMap<String, String>);

impl Titles {
    /// Reads the index. The last line of a thread counts.
    pub(crate) fn read(store: Store<'_>) -> Self {
        let index = store.text(&store.path.join(INDEX)).unwrap_or_default();
        let titles = index.split('\n').filter_map(|line| {
            let line = Object::parse(line).ok()?;
            let title = line.str("thread_name")?.into_owned();
            Some((line.str("id")?.into_owned(), title))
        });
        Self(titles.collect())
    }

    /// Returns the title of a thread.
    pub(crate) fn of(&self, thread: &str) -> Option<&str> {
        self.0.get(thread).map(String::as_str)
    }
}
