//! Appends whole lines to a file, and never changes the bytes before them.
//!
//! The rules: one write for a batch, under a lock; a newline before it when the file does not end
//! with one; a failed write is truncated. Changes by other processes are detected before each batch
//! and reported.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use transcript_format::scan::Scanner;
use transcript_storage::{Disk, File, Fingerprint, Opened};

use crate::draft::{Draft, EntryId};
use crate::end_repair::{self, Repair};
use crate::error::{Error, ErrorKind};
use crate::options::OnBusy;

/// The interval of checks that the name still refers to the file, and that no client runs the
/// session.
const NAME_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The time after which a process that has the file open counts as a writer.
const FORK_GRACE_TIME: Duration = Duration::from_millis(50);

/// The pause between two attempts to open a file while another process checks it for writers.
const CHECK_PAUSE: Duration = Duration::from_millis(1);

/// The maximum number of foreign bytes that are read for their ids and state lines.
const MAX_GROWTH: u64 = 16 << 20;

/// The maximum number of rewrites of a batch that was placed after an unfinished line of another process.
const MAX_REWRITES: u32 = 3;

pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    create: bool,
    on_busy: OnBusy,
    lock_wait: Duration,
    file: Option<Arc<dyn File>>,
    is_remote: bool,
    /// The length after the last checked line; `None` when the end is in doubt.
    end: Option<u64>,
    /// A part of a failed write that could not be truncated yet.
    pending_truncate: Option<PendingTruncate>,
    /// The offset of a truncation since [`take_truncated`](Self::take_truncated) was last called.
    cut: Option<u64>,
    /// The fingerprint of the bytes that were read before the file was opened.
    fingerprint: Option<Fingerprint>,
    /// The lines that other processes appended between the reading and the opening.
    since: ForeignLines,
    /// The offset where others appended an entry at the same time as we did.
    intruded: Option<u64>,
    name_checked: Option<Instant>,
    repair: Option<Repair>,
    others_may_write: bool,
    /// The error of every later call, after the file was replaced or became shorter.
    broken: Option<Error>,
}

/// A part of `bytes` is in the file at `offset` and must be removed.
struct PendingTruncate {
    offset: u64,
    bytes: Vec<u8>,
}

/// The result of appending a batch.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The offset of its first byte.
    pub(crate) offset: u64,
    /// The offset of each line, if lines of others are between them.
    pub(crate) moved: Option<Vec<u64>>,
    /// The lines that other processes appended.
    pub(crate) foreign: ForeignLines,
}

/// The ids and the state lines that other processes appended.
#[derive(Debug, Default)]
pub(crate) struct ForeignLines {
    /// The ids of entries.
    pub(crate) ids: Vec<EntryId>,
    /// The last line of each kind of state, and its offset.
    pub(crate) state: Vec<(Draft, u64)>,
    /// There was too much to read, so there may be any state lines.
    pub(crate) is_unread: bool,
}

impl ForeignLines {
    /// Parses the bytes at `offset`. Of a last line without a newline, only state is used: an entry
    /// may still be incomplete.
    fn read(bytes: &[u8], offset: u64) -> Self {
        let (mut scanner, mut foreign) = (Scanner::new(), Self::default());
        let mut end = offset;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let start = end;
            end += line.len() as u64;
            let Ok(envelope) = scanner.scan(line.trim_ascii_end()) else {
                continue;
            };
            if line.ends_with(b"\n")
                && envelope.kind().is_chain()
                && let Some(uuid) = envelope.uuid()
            {
                foreign.ids.push(EntryId::from(&*uuid.decode()));
            }
            if envelope.kind().is_state()
                && let Ok(text) = std::str::from_utf8(line)
                && let Ok(draft) = Draft::copy(text)
            {
                foreign.add_state(draft, start);
            }
        }
        foreign
    }

    fn add_state(&mut self, draft: Draft, offset: u64) {
        self.state.retain(|(other, _)| other.kind != draft.kind);
        self.state.push((draft, offset));
    }

    fn extend(&mut self, later: Self) {
        self.ids.extend(later.ids);
        self.is_unread |= later.is_unread;
        for (draft, offset) in later.state {
            self.add_state(draft, offset);
        }
    }
}

impl Log {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        path: &Path,
        create: bool,
        on_busy: OnBusy,
        lock_wait: Duration,
    ) -> Self {
        Self {
            disk,
            path: path.to_owned(),
            create,
            on_busy,
            lock_wait,
            file: None,
            is_remote: false,
            end: None,
            pending_truncate: None,
            cut: None,
            fingerprint: None,
            since: ForeignLines::default(),
            intruded: None,
            name_checked: None,
            repair: None,
            others_may_write: false,
            broken: None,
        }
    }

    pub(crate) fn file(&self) -> Option<&Arc<dyn File>> {
        self.file.as_ref()
    }

    pub(crate) fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    /// Returns whether the mode of the file allows other users to write to it.
    pub(crate) fn others_may_write(&self) -> bool {
        self.others_may_write
    }

    /// Returns whether several processes write to the file.
    pub(crate) fn is_shared(&self) -> bool {
        self.on_busy == OnBusy::Share
    }

    /// Reads the lines that others appended, for plans that depend on them. Returns the length of the file, 0
    /// if it was not created yet.
    pub(crate) fn read_growth(&mut self) -> Result<(u64, ForeignLines), Error> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let Some(file) = self.file.clone() else {
            return Ok((0, ForeignLines::default()));
        };
        let _lock = self.lock(&file)?;
        let mut foreign = std::mem::take(&mut self.since);
        let len = match self.check_file(&file, &mut foreign) {
            Ok(len) => len,
            Err(error) => {
                // Not lost with the error: the next call must still learn of these lines.
                self.since = foreign;
                return Err(error);
            }
        };
        if self.end != Some(len) {
            self.end = (!self.ends_mid_line(&file, len)?).then_some(len);
        }
        Ok((len, foreign))
    }

    /// Returns whether the file is on a network or user-space file system. Every write is synced
    /// there, and only one process may write.
    pub(crate) fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Opens an existing file and repairs its end; returns its length. A missing file is created by
    /// the first batch.
    pub(crate) fn open(&mut self, fingerprint: Option<Fingerprint>) -> Result<u64, Error> {
        self.fingerprint = fingerprint;
        if !self.create || self.is_there()? {
            return self.open_file();
        }
        match &self.fingerprint {
            Some(read) if read.offset() > 0 => Err(self.error(ErrorKind::Changed)),
            _ => Ok(0),
        }
    }

    fn is_there(&self) -> Result<bool, Error> {
        let there = self.disk.identity(&self.path);
        Ok(there.map_err(|error| self.io(error))?.is_some())
    }

    fn open_file(&mut self) -> Result<u64, Error> {
        let Opened {
            file,
            is_new,
            has_other_writer,
            is_remote,
            others_may_write,
        } = self.open_exclusively()?;
        // The end is repaired under the lock, as a tail may be the line that another writer is in the middle of.
        let _lock = self.lock(&file)?;
        let len = self.status(&file)?.len;
        if let Some(read) = &self.fingerprint {
            self.since = self.compare(&file, read, len)?;
        }
        let is_only_writer = if is_new {
            Some(true)
        } else {
            has_other_writer.map(|other| !other)
        };
        let repaired = end_repair::repair_end(&*file, &*self.disk, &self.path, is_only_writer);
        let repaired = repaired.map_err(|error| self.io(error))?;
        self.end = repaired.is_ended.then_some(repaired.len);
        self.repair = repaired.repair;
        self.is_remote = is_remote;
        self.others_may_write = others_may_write;
        self.name_checked = Some(Instant::now());
        self.file = Some(Arc::clone(&file));
        if let Some(repair) = &self.repair {
            tracing::warn!(offset = repair.offset(), "repaired the end of the file");
        }
        if others_may_write {
            tracing::warn!("other users may write to the file");
        }
        Ok(repaired.len)
    }

    /// Opens the file if no client runs the session and no other process has the file open for
    /// writing, or if processes take turns ([`OnBusy::Share`]). Otherwise retries for [`FORK_GRACE_TIME`]: a forked child keeps the files of
    /// its parent open until it executes its own program.
    fn open_exclusively(&self) -> Result<Opened, Error> {
        self.check_client()?;
        let start = Instant::now();
        loop {
            let opened = match self.disk.open(&self.path, self.create) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if start.elapsed() >= self.lock_wait {
                        return Err(self.busy().because(error));
                    }
                    std::thread::sleep(CHECK_PAUSE);
                    continue;
                }
                opened => opened.map_err(|error| self.io(error))?,
            };
            // On a network the lock of another machine may not be seen, so turns cannot be taken there.
            let takes_turns = self.on_busy == OnBusy::Share && !opened.is_remote;
            if opened.has_other_writer != Some(true) || takes_turns {
                return Ok(opened);
            }
            drop(opened);
            if start.elapsed() >= FORK_GRACE_TIME {
                return Err(self.busy());
            }
            std::thread::sleep(FORK_GRACE_TIME / 10);
        }
    }

    /// Refuses while a client runs the session, unless processes take turns: the client continues
    /// from the entry that it knows, so that another one below it would be on an abandoned branch.
    fn check_client(&self) -> Result<(), Error> {
        if self.on_busy == OnBusy::Share {
            return Ok(());
        }
        self.disk
            .running_client(&self.path)
            .map_or(Ok(()), |process| {
                let words = format!("process {process} runs it; end it first");
                Err(self.busy().because(io::Error::other(words)))
            })
    }

    /// Compares the file with its fingerprint. Lines that others have added since count as growth.
    fn compare(
        &self,
        file: &Arc<dyn File>,
        read: &Fingerprint,
        len: u64,
    ) -> Result<ForeignLines, Error> {
        let is_same = read.offset() <= len
            && read
                .matches(|at, buffer| file.fill(at, buffer))
                .map_err(|error| self.io(error))?;
        if !is_same {
            return Err(self.error(ErrorKind::Changed));
        }
        if len > read.offset() {
            return self.read_foreign(file, read.offset(), len);
        }
        Ok(ForeignLines::default())
    }

    /// Appends whole lines as one batch.
    ///
    /// When it fails, nothing of them is in the file, or, if the system refuses to truncate the
    /// file, a part of them remains as a line of its own.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<Appended, Error> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if self.file.is_none() {
            self.open_file()?;
        }
        let Some(file) = self.file.clone() else {
            return Err(self.error(ErrorKind::Closed));
        };
        let _lock = self.lock(&file)?;
        let mut foreign = std::mem::take(&mut self.since);
        let len = self.check_file(&file, &mut foreign)?;
        let offset = self.write_lines(&file, len, lines)?;
        let end = offset + lines.len() as u64;
        self.end = Some(end);
        // The lines are in the file, so a failed query is not a failure to append them.
        let is_in_place = file.position().map_or(true, |position| position == end);
        let moved = if is_in_place {
            None
        } else {
            tracing::warn!(
                offset,
                "another process wrote at the same time, without the lock"
            );
            Some(self.locate_lines(&file, len, lines, &mut foreign)?)
        };
        Ok(Appended {
            offset,
            moved,
            foreign,
        })
    }

    /// Finds the lines of a batch after `from`, where other processes wrote too. Lines that were
    /// broken are written again, after a newline in the same write, so that no other write can
    /// split them. Returns the offset of each line.
    fn locate_lines(
        &mut self,
        file: &Arc<dyn File>,
        from: u64,
        lines: &[u8],
        foreign: &mut ForeignLines,
    ) -> Result<Vec<u64>, Error> {
        // In doubt until all lines are found: the next batch then checks the last byte.
        self.end = None;
        let batch = lines;
        let lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
        // From the byte before, to see whether a line of another process was in front of the batch without its newline.
        let start = from.saturating_sub(1);
        for attempt in 0..=MAX_REWRITES {
            let now = self.status(file)?.len;
            let bytes = self.read(file, start, now)?;
            let (places, others) = match_lines(&bytes, start, &lines);
            let placed = lines.iter().zip(&places);
            let missing = placed.filter(|(_, place)| place.is_none());
            let missing: Vec<u8> = missing.flat_map(|(line, _)| line.iter().copied()).collect();
            if missing.is_empty() {
                if !others.ids.is_empty() && self.on_busy != OnBusy::Share {
                    self.intruded = Some(from);
                }
                foreign.extend(others);
                self.end = bytes.ends_with(b"\n").then_some(now);
                return Ok(places.into_iter().flatten().collect());
            }
            if attempt == MAX_REWRITES {
                break;
            }
            if let Err(error) = self.write(file, now, &[b"\n", &*missing].concat()) {
                // If possible, the complete lines must not stay without the others.
                let is_gone = self.pending_truncate.is_none()
                    && bytes.ends_with(batch)
                    && self.defer_truncate(file, now - batch.len() as u64, batch);
                return Err(if is_gone {
                    error
                } else {
                    error.with_partial_write()
                });
            }
        }
        Err(self.busy())
    }

    /// Writes whole lines at the end, which is `len`, after a newline if the file does not end with
    /// one. Returns the offset of the first.
    fn write_lines(&mut self, file: &Arc<dyn File>, len: u64, lines: &[u8]) -> Result<u64, Error> {
        if self.end == Some(len) || !self.ends_mid_line(file, len)? {
            return self.write(file, len, lines);
        }
        tracing::warn!(offset = len, "terminated an unfinished line");
        Ok(self.write(file, len, &[b"\n", lines].concat())? + 1)
    }

    /// Checks for changes of the file since the last batch; returns its length.
    fn check_file(
        &mut self,
        file: &Arc<dyn File>,
        foreign: &mut ForeignLines,
    ) -> Result<u64, Error> {
        let status = self.status(file)?;
        if !status.is_linked || self.has_new_name(file)? {
            return Err(self.fail_permanently(ErrorKind::Replaced));
        }
        // An entry of another process is on another branch: one of the two would be lost with the next append.
        if let Some(offset) = self.intruded {
            return Err(self.busy().at(offset).permanent());
        }
        let len = self.truncate_pending(file, status.len)?;
        let Some(end) = self.end else {
            return Ok(len);
        };
        // Lines that were acknowledged are gone. Appended to that, an entry would have a missing parent.
        if len < end {
            return Err(self.fail_permanently(ErrorKind::Shrunk));
        }
        if len > end {
            foreign.extend(self.read_foreign(file, end, len)?);
            // Their last line may be unfinished.
            self.end = None;
        }
        Ok(len)
    }

    /// Truncates the rest of a failed write, if that is pending.
    pub(crate) fn clean_up(&mut self) -> Result<(), Error> {
        if self.pending_truncate.is_none() {
            return Ok(());
        }
        let Some(file) = self.file.clone() else {
            return Ok(());
        };
        let _lock = self.lock(&file)?;
        let len = self.status(&file)?.len;
        self.truncate_pending(&file, len).map(drop)
    }

    /// Returns and clears the offset of the last truncation.
    pub(crate) fn take_truncated(&mut self) -> Option<u64> {
        self.cut.take()
    }

    /// Closes the file.
    pub(crate) fn release(&mut self) {
        self.file = None;
    }

    /// Truncates the rest of a failed write, if that is pending. Returns the length of the file.
    fn truncate_pending(&mut self, file: &Arc<dyn File>, len: u64) -> Result<u64, Error> {
        let Some(pending_truncate) = &self.pending_truncate else {
            return Ok(len);
        };
        let offset = pending_truncate.offset;
        // Compared byte by byte: the rest must be ours, or lines of another writer would be cut off.
        if self.is_own_bytes(file, pending_truncate, len)? && len > offset {
            file.truncate(offset)
                .map_err(|error| self.io(error).at(offset))?;
            self.pending_truncate = None;
            self.cut = Some(offset);
            return Ok(offset);
        }
        // Another process wrote after it, so truncating would remove foreign bytes.
        self.pending_truncate = None;
        Ok(len)
    }

    /// Returns whether only a part of our own bytes follows `pending_truncate.offset`.
    fn is_own_bytes(
        &self,
        file: &Arc<dyn File>,
        pending_truncate: &PendingTruncate,
        len: u64,
    ) -> Result<bool, Error> {
        let left = len
            .checked_sub(pending_truncate.offset)
            .map(usize::try_from);
        let Some(ours) = left.and_then(|left| pending_truncate.bytes.get(..left.ok()?)) else {
            return Ok(false);
        };
        Ok(self.read(file, pending_truncate.offset, len)? == ours)
    }

    /// Returns whether the name now refers to another file, and refuses while a client runs the
    /// session. Checked only every [`NAME_CHECK_INTERVAL`].
    fn has_new_name(&mut self, file: &Arc<dyn File>) -> Result<bool, Error> {
        let is_fresh = |at: Instant| at.elapsed() < NAME_CHECK_INTERVAL;
        if self.name_checked.is_some_and(is_fresh) {
            return Ok(false);
        }
        self.check_client()?;
        let there = self.disk.identity(&self.path);
        let ours = file.identity().map_err(|error| self.io(error))?;
        let there = there.map_err(|error| self.io(error))?;
        self.name_checked = Some(Instant::now());
        Ok(there != Some(ours))
    }

    /// Reads the lines that others appended. Metadata lines such as a title are accepted; entries are not,
    /// unless turns are taken.
    fn read_foreign(
        &self,
        file: &Arc<dyn File>,
        from: u64,
        to: u64,
    ) -> Result<ForeignLines, Error> {
        if to - from > MAX_GROWTH {
            return match self.on_busy {
                OnBusy::Share => Ok(ForeignLines {
                    is_unread: true,
                    ..ForeignLines::default()
                }),
                _ => Err(self.busy()),
            };
        }
        let foreign = ForeignLines::read(&self.read(file, from, to)?, from);
        if !foreign.ids.is_empty() && self.on_busy != OnBusy::Share {
            return Err(self.busy().at(from).permanent());
        }
        Ok(foreign)
    }

    /// Writes `bytes` at the end, which is `len`, completely or not at all. Returns `len`.
    fn write(&mut self, file: &Arc<dyn File>, len: u64, bytes: &[u8]) -> Result<u64, Error> {
        let mut written = 0;
        while written < bytes.len() {
            match file.append(&bytes[written..]) {
                // No byte was written and no error reported: to try again could go on for ever.
                Ok(0) => {
                    return Err(self.roll_back(file, len, bytes, io::ErrorKind::WriteZero.into()));
                }
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.roll_back(file, len, bytes, error)),
            }
        }
        Ok(len)
    }

    /// Truncates the rest of a failed write, now or before the next batch.
    fn roll_back(
        &mut self,
        file: &Arc<dyn File>,
        len: u64,
        bytes: &[u8],
        cause: io::Error,
    ) -> Error {
        let is_gone = self.defer_truncate(file, len, bytes);
        let error = self.io(cause).at(len);
        if is_gone {
            error
        } else {
            error.with_partial_write()
        }
    }

    /// Records that a part of `bytes` at `offset` must be removed, and truncates it if possible.
    /// Returns whether nothing of it is left.
    fn defer_truncate(&mut self, file: &Arc<dyn File>, offset: u64, bytes: &[u8]) -> bool {
        // Recorded before the attempt: if that fails, the next call tries again before it writes.
        self.pending_truncate = Some(PendingTruncate {
            offset,
            bytes: bytes.to_vec(),
        });
        let settled = self
            .status(file)
            .and_then(|status| self.truncate_pending(file, status.len));
        if let Err(error) = &settled {
            tracing::warn!(offset, %error, "a failed write could not be truncated yet");
        }
        settled.is_ok_and(|len| len <= offset)
    }

    fn ends_mid_line(&self, file: &Arc<dyn File>, len: u64) -> Result<bool, Error> {
        let Some(last) = len.checked_sub(1) else {
            return Ok(false);
        };
        Ok(self.read(file, last, len)? != b"\n")
    }

    fn read(&self, file: &Arc<dyn File>, from: u64, to: u64) -> Result<Vec<u8>, Error> {
        end_repair::read(&**file, from, to).map_err(|error| self.io(error).at(from))
    }

    fn status(&self, file: &Arc<dyn File>) -> Result<transcript_storage::Status, Error> {
        file.status().map_err(|error| self.io(error))
    }

    /// Takes the lock, and waits for it at most for `lock_wait`.
    fn lock(&self, file: &Arc<dyn File>) -> Result<Lock, Error> {
        let mut deadline = None;
        let mut pause = Duration::from_micros(50);
        loop {
            match file.try_lock() {
                Ok(true) => return Ok(Lock(Arc::clone(file))),
                Ok(false) => {
                    // Usually the lock is free and the clock is not queried.
                    let now = Instant::now();
                    if now >= *deadline.get_or_insert(now + self.lock_wait) {
                        return Err(self.busy());
                    }
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.io(error)),
            }
        }
    }

    fn busy(&self) -> Error {
        self.error(match self.on_busy {
            OnBusy::Fork => ErrorKind::Fork,
            OnBusy::Fail | OnBusy::Share => ErrorKind::Busy,
        })
    }

    fn fail_permanently(&mut self, kind: ErrorKind) -> Error {
        let error = self.error(kind);
        tracing::error!(kind = kind.name(), "giving up the file");
        self.broken = Some(error.clone());
        error
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, &self.path)
    }

    fn io(&self, error: io::Error) -> Error {
        Error::io(&self.path, error)
    }
}

/// Finds each of `lines` as a complete line in `bytes`, which start at offset `start`, and collects
/// the lines of others. Bytes before the first newline belong to an older line.
fn match_lines(bytes: &[u8], start: u64, lines: &[&[u8]]) -> (Vec<Option<u64>>, ForeignLines) {
    let mut places = vec![None; lines.len()];
    let mut others = ForeignLines::default();
    let mut offset = start;
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let here = offset;
        offset += line.len() as u64;
        // The end of an older line, or of half a line of another process: it cannot be one of these lines.
        if at == 0 && start > 0 {
            continue;
        }
        match lines.iter().position(|ours| *ours == line) {
            Some(ours) => places[ours] = Some(here),
            None => others.extend(ForeignLines::read(line, here)),
        }
    }
    (places, others)
}

/// Holds the lock of a file.
struct Lock(Arc<dyn File>);

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock is also released with the handle; nothing else can be done here.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "could not release the lock");
        }
    }
}
