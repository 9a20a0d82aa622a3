//! Questions to a copy of a database.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, Row};
use transcript_storage::TemporaryFolder;

use super::copy::{COPY_NAME, Copy, Following};
use crate::Error;
use crate::source::Store;

/// The maximum length of a value in bytes: 256 MiB, that of a line.
const MAX_VALUE_LEN: i32 = 256 << 20;

/// A copy of a database, open for questions.
#[derive(Debug)]
pub(crate) struct Database {
    // It is closed before its folder is removed.
    connection: Connection,
    /// The database that was copied.
    path: PathBuf,
    /// `None` when another state of the database needs another copy.
    following: Option<Following>,
    /// Whether the copy is the database as it was at one moment.
    is_whole: bool,
    _folder: Option<TemporaryFolder>,
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The database is damaged.
    Damaged,
    /// Something else failed.
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Database {
    /// Opens a copy of the database at `path`.
    pub(super) fn open(copy: Copy, path: &Path) -> Result<Self, Failure> {
        let Copy {
            folder, following, ..
        } = copy;
        let connection = connect(&folder.path().join(COPY_NAME), following.is_some());
        let connection = connection.map_err(|error| failure(path, error))?;
        // The texts of the session are gone with the process, however it ends, where open files need no name.
        let folder = Some(folder).filter(|_| !cfg!(unix));
        Ok(Self {
            connection,
            path: path.to_owned(),
            following,
            is_whole: true,
            _folder: folder,
        })
    }

    /// Makes the copy as the database is now; `false` when a new one has to be made instead.
    pub(super) fn follow(&mut self, store: Store<'_>) -> Result<bool, Error> {
        let Some(following) = &mut self.following else {
            return Ok(false);
        };
        // A write that fails leaves some of the changes.
        self.is_whole = false;
        self.is_whole = following.follow(store, &self.path)?;
        Ok(self.is_whole)
    }

    /// Calls `take` with each row of the answer, in its order.
    pub(crate) fn each(
        &self,
        question: &str,
        parameters: impl Params,
        mut take: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), Failure> {
        let ask = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(question)?;
            let mut rows = statement.query(parameters)?;
            while let Some(row) = rows.next()? {
                take(row)?;
            }
            Ok(())
        };
        if !self.is_whole {
            let reason = "the database changed while it was read; read it again";
            let error = std::io::Error::new(std::io::ErrorKind::ResourceBusy, reason);
            return Err(Error::at(&self.path)(error).into());
        }
        ask().map_err(|error| failure(&self.path, error))
    }

    /// Returns the names of its tables. Views and tables without pages of their own are none: a question to them can take any time.
    pub(crate) fn tables(&self) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        let question =
            "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name";
        self.each(question, [], |row| {
            names.push(text(row, 0)?.0);
            Ok(())
        })?;
        Ok(names)
    }

    /// Returns the names of the columns of a [table](Self::tables); none when there is no such table.
    pub(crate) fn columns(&self, table: &str) -> Result<BTreeSet<String>, Failure> {
        let mut names = BTreeSet::new();
        if !self.tables()?.iter().any(|name| name == table) {
            return Ok(names);
        }
        self.each("SELECT name FROM pragma_table_info(?1)", [table], |row| {
            names.insert(text(row, 0)?.0);
            Ok(())
        })?;
        Ok(names)
    }

    /// Returns whether the rows of a table have numbers.
    pub(crate) fn has_row_numbers(&self, table: &str) -> bool {
        let question = format!("SELECT rowid FROM {}", quoted(table));
        self.connection.prepare(&question).is_ok()
    }
}

/// Returns a name for use in a question.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Opens a copy. One that is followed changes between the questions, so SQLite looks at it again before each.
fn connect(path: &Path, is_followed: bool) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // What the database says about itself is not trusted, and the copy is not tidied up when it is closed.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if !is_followed {
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    }
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // A column can be computed, and from little any length.
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_LEN)?;
    // Opens the log of changes, which is possible only while it has a name.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn failure(path: &Path, error: rusqlite::Error) -> Failure {
    let code = error.sqlite_error_code();
    match code {
        // A page beyond the end cannot be read: the file was cut.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure) => {
            Failure::Damaged
        }
        _ => Failure::Other(Error::at(path)(std::io::Error::other(error))),
    }
}

/// Returns a column as a number: that of a text or a fraction, and 0 for what is none.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => number,
        ValueRef::Real(number) => number as i64,
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).ok();
            text.and_then(|text| text.trim().parse().ok())
                .unwrap_or_default()
        }
        ValueRef::Blob(_) | ValueRef::Null => 0,
    })
}

/// Returns a column as text, and whether it was UTF-8.
pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<(String, bool)> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => (text.to_owned(), true),
            Err(_) => (String::from_utf8_lossy(bytes).into_owned(), false),
        },
        ValueRef::Integer(number) => (number.to_string(), true),
        ValueRef::Real(number) => (number.to_string(), true),
        ValueRef::Null => (String::new(), true),
    })
}
