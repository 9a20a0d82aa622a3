//! An entry that a name matches.

use transcript_writer::EntryId;

/// An entry that an ambiguous name matches; nothing of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryMatch {
    /// The number of its line, from 1.
    pub line: Option<u64>,
    /// Its id.
    pub id: EntryId,
    /// The role of its author: `user`, `assistant`, `tool` for a result, else the type of the line.
    pub role: &'static str,
    /// Its time, in milliseconds since 1970.
    pub millis: Option<i64>,
}
