//! Databases of agents: read with their log of changes, and never written to.
//!
//! `copy` makes a private copy, which `database` asks with SQL. `wal` and `pages` read the rows of a damaged database from the
//! pages that are left.

mod copy;
mod database;
mod pages;
mod wal;

pub(crate) use database::{Database, Failure, text};
pub(crate) use pages::{PageDamage, Pages, Value};

/// The ending of the log of changes beside a database.
const WAL_ENDING: &str = "-wal";

/// Returns the path of a file beside a database that has its name and an ending more.
fn beside(database: &std::path::Path, ending: &str) -> std::path::PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
