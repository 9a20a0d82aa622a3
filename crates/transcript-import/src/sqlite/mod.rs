//! Databases of agents: read with their log of changes, and never written to.
//!
//! `copy` makes a private copy, which `database` asks with SQL; `copies` shares one among the sessions of a database. `wal` has
//! the changes in the log. `pages` and `salvage` read the rows of a damaged database from the pages that are left. `files` has the names of its files.

mod copies;
mod copy;
mod database;
mod files;
mod pages;
mod salvage;
mod wal;

pub(crate) use copies::{Copied, Copies};
pub(crate) use database::{Database, Failure, number, quoted, text};
pub(crate) use pages::{PageDamage, Value};
pub(crate) use salvage::Salvage;
