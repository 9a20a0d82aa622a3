//! The files of a database.

use std::path::{Path, PathBuf};

/// The ending of the log of changes beside a database.
pub(super) const WAL_ENDING: &str = "-wal";

/// The ending of the journal beside a database, which undoes an interrupted change.
pub(super) const JOURNAL_ENDING: &str = "-journal";
/// The endings of the files of a database.
const ENDINGS: [&str; 3] = ["", WAL_ENDING, JOURNAL_ENDING];

/// Returns the files of a database. They need not be there.
pub(super) fn files_of(database: &Path) -> [PathBuf; 3] {
    ENDINGS.map(|ending| beside(database, ending))
}

/// Returns the path of a file beside a database that has its name and an ending more.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
