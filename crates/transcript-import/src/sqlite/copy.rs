//! A private copy of a database.
//!
//! SQLite writes beside a database even to read it, and knows only files of this machine. So it gets a copy, which is made
//! through the disk in blocks and which only the owner can read.

use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use transcript_storage::{ReadFile, TemporaryFolder, is_absent};

use super::files::{ENDINGS, WAL_ENDING, beside};
use crate::Error;
use crate::source::Store;

/// The name of the copy in its folder.
pub(super) const COPY_NAME: &str = "copy.db";

/// How often a copy is tried while the agent moves its log into the database.
const MAX_TRIES: usize = 5;

const BLOCK_LEN: usize = 512 << 10;

/// Copies a database and the files beside it as they are at one moment.
pub(super) fn copy(store: Store<'_>, database: &Path) -> Result<TemporaryFolder, Error> {
    for _ in 0..MAX_TRIES {
        let before = state(store, database)?;
        let folder = TemporaryFolder::new().map_err(Error::at(database))?;
        for ending in ENDINGS {
            let from = beside(database, ending);
            copy_file(store, &from, &folder, &format!("{COPY_NAME}{ending}"))?;
        }
        if state(store, database)? == before {
            return Ok(folder);
        }
    }
    let reason = "the database changed again and again while it was read";
    let busy = io::Error::new(io::ErrorKind::ResourceBusy, reason);
    Err(Error::at(database)(busy))
}

/// What changes when a log moves into its database: a log that only grows leaves a copy whole.
#[derive(PartialEq)]
struct State {
    len: u64,
    modified: Option<SystemTime>,
    /// The first bytes of the log, which has others after it moved.
    log: Option<Vec<u8>>,
}

fn state(store: Store<'_>, database: &Path) -> Result<State, Error> {
    const LOG_HEAD_LEN: usize = 32;
    let found = store.disk.metadata(database).map_err(Error::at(database))?;
    let log = beside(database, WAL_ENDING);
    let log = match store.disk.read(&log, LOG_HEAD_LEN) {
        Err(error) if is_absent(&error) => None,
        head => Some(head.map_err(Error::at(&log))?),
    };
    Ok(State {
        len: found.len,
        modified: found.modified,
        log,
    })
}

fn copy_file(store: Store<'_>, from: &Path, to: &TemporaryFolder, name: &str) -> Result<(), Error> {
    let file = match store.disk.open_to_read(from) {
        Err(error) if is_absent(&error) => return Ok(()),
        file => file.map_err(Error::at(from))?,
    };
    copy_bytes(&*file, to, name).map_err(Error::at(from))
}

fn copy_bytes(from: &dyn ReadFile, to: &TemporaryFolder, name: &str) -> io::Result<()> {
    if !from.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut to = to.create(name)?;
    let mut block = vec![0; BLOCK_LEN];
    let mut at = 0;
    loop {
        let read = from.fill(at, &mut block)?;
        to.write_all(&block[..read])?;
        at += read as u64;
        if read < block.len() {
            return Ok(());
        }
    }
}
