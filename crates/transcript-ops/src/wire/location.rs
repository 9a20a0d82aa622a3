//! References to entries.

use serde::{Deserialize, Serialize};
use transcript_reader::{EntryNo, Index};

/// The entry that a record refers to. Both are `None` if it refers to none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct EntryLocation {
    /// The number of its line, from 1; `None` also when the lines before were not read.
    pub line: Option<u64>,
    /// Its uuid; `None` for a line without one.
    pub uuid: Option<String>,
}

impl EntryLocation {
    /// Returns the place of an entry of `index`.
    ///
    /// # Panics
    /// When `index` has no such entry.
    #[must_use]
    pub fn new(index: &Index, entry: impl Into<Option<EntryNo>>) -> Self {
        let entry = entry.into().map(|entry| index.entry(entry));
        Self {
            line: entry.and_then(|entry| entry.known_line()),
            uuid: entry.and_then(|entry| entry.uuid().map(|id| index.id_text(id))),
        }
    }
}

/// Returns the uuid of an entry.
pub(super) fn uuid(index: &Index, entry: EntryNo) -> Option<String> {
    index.entry(entry).uuid().map(|id| index.id_text(id))
}
