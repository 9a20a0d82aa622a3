//! The titles of threads: lines of an index beside the folders of rollouts.

use std::collections::HashMap;

use transcript_format::object::Object;
use transcript_storage::is_absent;

use crate::Error;
use crate::source::Store;

/// The name of the index in the home folder.
pub(crate) const INDEX: &str = "session_index.jsonl";

/// The maximum length of the index in bytes.
const MAX_LEN: usize = 64 << 20;

/// The title of each thread that has one.
#[derive(Debug, Default)]
pub(crate) struct Titles(HashMap<String, String>);

impl Titles {
    /// Reads the index, which need not be there. The last line of a thread counts.
    pub(crate) fn read(store: Store<'_>) -> Result<Self, Error> {
        let path = store.path.join(INDEX);
        let index = match store.disk.read(&path, MAX_LEN) {
            Err(error) if is_absent(&error) => Vec::new(),
            index => index.map_err(Error::at(&path))?,
        };
        let index = String::from_utf8_lossy(&index);
        let titles = index.split('\n').filter_map(|line| {
            let line = Object::parse(line).ok()?;
            let title = line.str("thread_name")?.into_owned();
            Some((line.str("id")?.into_owned(), title))
        });
        Ok(Self(titles.collect()))
    }

    /// Returns the title of a thread.
    pub(crate) fn of(&self, thread: &str) -> Option<&str> {
        self.0.get(thread).map(String::as_str)
    }
}
