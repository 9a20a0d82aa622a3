//! The list of the sessions of a whole database, and what shows that one of them has changed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::listed::Listed;
use crate::sqlite::{Database, Failure, text};
use crate::version::Version;

/// The tables with rows of sessions: the column with the id of the session, and what changes with a row.
const TABLES: [(&str, &str, &[&str]); 3] = [
    ("message", "session_id", &["time_updated", LEN]),
    ("part", "session_id", &["time_updated", LEN]),
    ("event", "aggregate_id", &["seq"]),
];

/// The length of the text of a row, which SQLite knows without reading it.
const LEN: &str = "octet_length(data)";

/// Returns the sessions of a database, oldest first.
pub(super) fn list(database: &Database) -> Result<Vec<Listed>, Failure> {
    let columns = database.columns("session")?;
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let column = |name: &'static str| if columns.contains(name) { name } else { "NULL" };
    let wanted = ["directory", "parent_id", "time_updated"]
        .map(column)
        .join(", ");
    let order = column("time_created");
    let mut hashes = hashes_of_rows(database)?;
    let mut sessions = Vec::new();
    let question = format!("SELECT id, {wanted}, * FROM session ORDER BY {order}, id");
    database.each(&question, [], |row| {
        let id = text(row, 0)?.0;
        let mut hasher = hashes.remove(&id).unwrap_or_default();
        add_row(&mut hasher, row)?;
        let optional = |column| -> rusqlite::Result<Option<String>> {
            Ok(Some(text(row, column)?.0).filter(|text| !text.is_empty()))
        };
        sessions.push(Listed {
            directory: optional(1)?,
            parent: optional(2)?,
            version: Some(Version {
                hash: hasher.finish(),
                updated: row.get(3).unwrap_or_default(),
            }),
            id,
        });
        Ok(())
    })?;
    Ok(sessions)
}

/// Returns for each session a hash of what changes with its rows. Long texts are not read for it.
fn hashes_of_rows(database: &Database) -> Result<HashMap<String, DefaultHasher>, Failure> {
    let mut hashes: HashMap<String, DefaultHasher> = HashMap::new();
    for (table, key, changing) in TABLES {
        let known = database.columns(table)?;
        if !known.contains(key) || !database.has_row_numbers(table) {
            continue;
        }
        let is_known = |column: &&&str| match **column {
            LEN => known.contains("data"),
            column => known.contains(column),
        };
        let changing: Vec<&str> = changing.iter().filter(is_known).copied().collect();
        let columns = [&[key, "rowid"], &changing[..]].concat().join(", ");
        let question = format!("SELECT {columns} FROM {table}");
        database.each(&question, [], |row| {
            let id = match row.get_ref(0)? {
                ValueRef::Text(id) | ValueRef::Blob(id) => String::from_utf8_lossy(id),
                _ => return Ok(()),
            };
            let hasher = match hashes.get_mut(&*id) {
                Some(hasher) => hasher,
                None => hashes.entry(id.into_owned()).or_default(),
            };
            add_row(hasher, row)
        })?;
    }
    Ok(hashes)
}

/// Adds the values of a row to a hash.
fn add_row(hasher: &mut DefaultHasher, row: &Row<'_>) -> rusqlite::Result<()> {
    for column in 0..row.as_ref().column_count() {
        match row.get_ref(column)? {
            ValueRef::Integer(number) => hasher.write_i64(number),
            ValueRef::Real(number) => hasher.write_u64(number.to_bits()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                hasher.write_usize(bytes.len());
                hasher.write(bytes);
            }
            ValueRef::Null => hasher.write_u8(0),
        }
    }
    Ok(())
}
