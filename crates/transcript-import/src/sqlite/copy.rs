//! A private copy of a database.
//!
//! SQLite writes beside a database even to read it, and knows only files of this machine. So it gets a copy, which is made
//! through the disk in blocks and which only the owner can read.
//!
//! The changes in the log of a whole database are put in their places in the copy. The log grows with every change, and the copy
//! follows it: only the new changes are read then. SQLite sees a copy without a log that some program changes between two questions.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use transcript_storage::{Identity, ReadFile, TemporaryFile, TemporaryFolder, is_absent};

use super::files::{JOURNAL_ENDING, WAL_ENDING, beside};
use super::wal::{self, End, Wal};
use crate::Error;
use crate::source::Store;

/// The name of the copy in its folder.
pub(super) const COPY_NAME: &str = "copy.db";
/// How often a copy is tried while the agent moves its log into the database.
const MAX_TRIES: usize = 5;
const BLOCK_LEN: usize = 512 << 10;
/// The maximum length of new changes that are put into a copy at once: they are in memory before, so that a copy never has only some.
const MAX_CHANGES_LEN: usize = 16 << 20;

/// A copy in its folder.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) folder: TemporaryFolder,
    pub(super) following: Option<Following>,
    /// Whether complete changes follow a damaged place of its log: SQLite does not see them.
    pub(super) has_damaged_log: bool,
}

/// A copy that follows the log of its database.
#[derive(Debug)]
pub(super) struct Following {
    copy: TemporaryFile,
    /// That of the database: another one has another log.
    identity: Identity,
    /// How far the copy has the log.
    end: End,
    /// Changes with the copy, so that SQLite forgets the pages that it knows.
    number: u32,
}

/// Copies a database and the files beside it as they are at one moment.
pub(super) fn copy(store: Store<'_>, database: &Path) -> Result<Copy, Error> {
    for _ in 0..MAX_TRIES {
        let before = state(store, database)?;
        let copy = copy_files(store, database)?;
        if state(store, database)? == before {
            return Ok(copy);
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
    let found = store.disk.metadata(database).map_err(Error::at(database))?;
    let log = beside(database, WAL_ENDING);
    let log = match store.disk.read(&log, wal::HEADER_LEN) {
        Err(error) if is_absent(&error) => None,
        head => Some(head.map_err(Error::at(&log))?),
    };
    Ok(State {
        len: found.len,
        modified: found.modified,
        log,
    })
}

fn copy_files(store: Store<'_>, database: &Path) -> Result<Copy, Error> {
    let at = Error::at(database);
    let folder = TemporaryFolder::new().map_err(&at)?;
    let file = store.disk.open_to_read(database).map_err(&at)?;
    let identity = file.metadata().map_err(&at)?.identity;
    let mut copy = copy_file(&*file, &folder, COPY_NAME).map_err(&at)?;
    let journal = opened(store, &beside(database, JOURNAL_ENDING))?;
    let log = opened(store, &beside(database, WAL_ENDING))?;
    let wal = match &log {
        Some(log) => wal::read(log, None).map_err(&at)?,
        None => None,
    };
    let has_damaged_log = wal.as_ref().is_some_and(|wal| wal.damaged_at.is_some());
    let mut following = None;
    // An interrupted change is undone, and damage is judged, by SQLite itself.
    if let (None, Some(log), Some(wal)) = (&journal, &log, &wal)
        && let Some(end) = wal.end.clone()
        && can_be_put(&mut copy, wal).map_err(&at)?
    {
        let mut bytes = vec![0; wal.page_len];
        for (page, offset) in &wal.pages {
            log.fill(*offset, &mut bytes).map_err(&at)?;
            put(&mut copy, wal, *page, &bytes).map_err(&at)?;
        }
        following = Some(Following {
            copy,
            identity,
            end,
            number: 0,
        });
    }
    match &mut following {
        Some(following) => following.finish(wal.as_ref()).map_err(&at)?,
        None => {
            for (file, ending) in [(journal, JOURNAL_ENDING), (log, WAL_ENDING)] {
                if let Some(file) = file {
                    let name = format!("{COPY_NAME}{ending}");
                    copy_file(&*file, &folder, &name).map_err(&at)?;
                }
            }
        }
    }
    Ok(Copy {
        folder,
        following,
        has_damaged_log,
    })
}

impl Following {
    /// Puts the changes into the copy that its log has now; `false` when a new copy has to be made instead.
    ///
    /// The database itself may have changed: as long as its log has not begun again, only changes of that log were moved there.
    pub(super) fn follow(&mut self, store: Store<'_>, database: &Path) -> Result<bool, Error> {
        let at = Error::at(database);
        let found = store.disk.metadata(database).map_err(&at)?;
        let journal = opened(store, &beside(database, JOURNAL_ENDING))?;
        let log = opened(store, &beside(database, WAL_ENDING))?;
        let Some(log) = log.filter(|_| journal.is_none() && found.identity == self.identity) else {
            return Ok(false);
        };
        let Some(wal) = wal::read(&log, Some(&self.end)).map_err(&at)? else {
            return Ok(false);
        };
        let Some(end) = wal.end.clone() else {
            return Ok(false);
        };
        let len = wal.pages.len() * wal.page_len;
        let is_small = len <= MAX_CHANGES_LEN && wal.damaged_at.is_none();
        if !is_small || !can_be_put(&mut self.copy, &wal).map_err(&at)? {
            return Ok(false);
        }
        let mut pages = Vec::with_capacity(wal.pages.len());
        for (page, offset) in &wal.pages {
            let mut bytes = vec![0; wal.page_len];
            log.fill(*offset, &mut bytes).map_err(&at)?;
            pages.push((*page, bytes));
        }
        // The pages are of this log if it has not begun again meanwhile.
        let mut header = [0; wal::HEADER_LEN];
        log.fill(0, &mut header).map_err(&at)?;
        if header != end.header {
            return Ok(false);
        }
        for (page, bytes) in pages {
            put(&mut self.copy, &wal, page, &bytes).map_err(&at)?;
        }
        self.end = end;
        self.finish(Some(&wal)).map_err(&at)?;
        Ok(true)
    }

    /// Makes the copy a database without a log, of the length that its last change says.
    fn finish(&mut self, wal: Option<&Wal>) -> io::Result<()> {
        const HEAD_LEN: usize = 100;
        /// Where the head says how a database is written and read: 2 is with a log, 1 without.
        const VERSIONS: [usize; 2] = [18, 19];
        /// The number of changes, and the one for which the head has the number of pages.
        const NUMBERS: [usize; 2] = [24, 92];
        if let Some(wal) = wal.filter(|wal| wal.page_count > 0) {
            let len = u64::from(wal.page_count) * wal.page_len as u64;
            self.copy.set_len(len)?;
        }
        let mut head = [0; HEAD_LEN];
        self.copy.seek(SeekFrom::Start(0))?;
        if self.copy.read_exact(&mut head).is_err() {
            // SQLite says what it is.
            return Ok(());
        }
        for at in VERSIONS {
            if head[at] == 2 {
                head[at] = 1;
            }
        }
        let [changes, of_count] = NUMBERS.map(|at| at..at + 4);
        let has_count = head[changes.clone()] == head[of_count.clone()];
        self.number = self.number.wrapping_add(1);
        let number = self.number.to_be_bytes();
        head[changes].copy_from_slice(&number);
        // A number of pages that did not count does not count afterwards.
        let number = if has_count { number } else { [0; 4] };
        head[of_count].copy_from_slice(&number);
        self.copy.seek(SeekFrom::Start(0))?;
        self.copy.write_all(&head)
    }
}

/// Returns whether the changes of a log make a database that the log and the copy have all pages of.
fn can_be_put(copy: &mut TemporaryFile, wal: &Wal) -> io::Result<bool> {
    let len = copy.seek(SeekFrom::End(0))?;
    let mut of_page = [0; 2];
    copy.seek(SeekFrom::Start(16))?;
    let page_len = match copy.read_exact(&mut of_page) {
        Ok(()) => u16::from_be_bytes(of_page),
        Err(_) => return Ok(false),
    };
    // Of 64 KiB, which are too many for the number, it is 1.
    let is_same =
        usize::from(page_len) == wal.page_len || (page_len == 1 && wal.page_len == 1 << 16);
    let most = len / wal.page_len as u64 + wal.pages.len() as u64;
    Ok(is_same && wal.damaged_at.is_none() && u64::from(wal.page_count) <= most)
}

fn put(copy: &mut TemporaryFile, wal: &Wal, page: u32, bytes: &[u8]) -> io::Result<()> {
    if page > wal.page_count {
        return Ok(());
    }
    copy.seek(SeekFrom::Start(u64::from(page - 1) * wal.page_len as u64))?;
    copy.write_all(bytes)
}

fn opened(store: Store<'_>, path: &Path) -> Result<Option<Arc<dyn ReadFile>>, Error> {
    match store.disk.open_to_read(path) {
        Err(error) if is_absent(&error) => Ok(None),
        file => file.map(Some).map_err(Error::at(path)),
    }
}

fn copy_file(from: &dyn ReadFile, to: &TemporaryFolder, name: &str) -> io::Result<TemporaryFile> {
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
            return Ok(to);
        }
    }
}
