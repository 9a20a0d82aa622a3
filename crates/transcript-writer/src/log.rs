//! A file to which whole lines are appended, and nothing else is ever done.
//!
//! The rules: one write for a batch, under a lock; a newline before it when the file does not end with one; a failed write is cut off again. What another
//! process does to the file is noticed before the next batch, and told.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use transcript_format::fingerprint::Fingerprint;
use transcript_format::scan::Scanner;

use crate::draft::{Draft, EntryId};
use crate::end_repair::{self, Repair};
use crate::error::{Error, ErrorKind};
use crate::file::{Disk, File, Opened};
use crate::options::OnBusy;

/// How often the name of the file is looked at: it may lead to another one by now.
const CHECK_NAME: Duration = Duration::from_millis(100);

/// How long another writer may have the file open before it counts as one.
const FORK_GRACE: Duration = Duration::from_millis(50);

/// How long to wait for another process that asks who writes to the file.
const ASKS: Duration = Duration::from_millis(1);

/// How much that others appended is read to see what it is.
const MAX_GROWTH: u64 = 16 << 20;

/// How often a batch is written again that ended up after half a line of another process.
const ATTEMPTS: u32 = 3;

pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    create: bool,
    on_busy: OnBusy,
    lock_wait: Duration,
    file: Option<Arc<dyn File>>,
    is_remote: bool,
    /// The length behind the last line that was looked at; `None` when the end is in doubt.
    end: Option<u64>,
    /// What a failed write left in the file and could not be cut off yet.
    pending_truncate: Option<PendingTruncate>,
    /// Where something was cut off since this was asked for the last time.
    cut: Option<u64>,
    /// What was read of the file before it was opened.
    fingerprint: Option<Fingerprint>,
    /// What others appended between the reading and the opening.
    since: Foreign,
    /// Where others appended an entry at the same time as we did.
    intruded: Option<u64>,
    name_checked: Option<Instant>,
    repair: Option<Repair>,
    others_may_write: bool,
    /// The file is not ours any more: every later call fails the same way.
    broken: Option<Error>,
}

/// A part of `bytes` stands in the file at `offset`, and must not stay there.
struct PendingTruncate {
    offset: u64,
    bytes: Vec<u8>,
}

/// What a batch came to.
#[derive(Debug)]
pub(crate) struct Appended {
    /// The offset of its first byte.
    pub(crate) offset: u64,
    /// The offset of each line, when others wrote into the batch and it does not stand in one piece.
    pub(crate) moved: Option<Vec<u64>>,
    /// What other processes appended.
    pub(crate) foreign: Foreign,
}

/// What other processes appended, as far as it matters to us.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// The entries.
    pub(crate) ids: Vec<EntryId>,
    /// The last line of each kind of state, and where it starts.
    pub(crate) state: Vec<(Draft, u64)>,
    /// It was too much to look at: there may be any lines of state.
    pub(crate) is_unread: bool,
}

impl Foreign {
    /// Reads what stands at `offset`. Of a last line without a newline only the state is taken: an
    /// entry may still be under way.
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
            since: Foreign::default(),
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

    /// Whether the mode of the file lets other users write to it.
    pub(crate) fn others_may_write(&self) -> bool {
        self.others_may_write
    }

    /// Looks at what others appended, before something is made that depends on it. Returns the
    /// length of the file, 0 when it is not made yet.
    pub(crate) fn read_growth(&mut self) -> Result<(u64, Foreign), Error> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let Some(file) = self.file.clone() else {
            return Ok((0, Foreign::default()));
        };
        let _lock = self.lock(&file)?;
        let mut foreign = std::mem::take(&mut self.since);
        let len = match self.check_file(&file, &mut foreign) {
            Ok(len) => len,
            Err(error) => {
                self.since = foreign;
                return Err(error);
            }
        };
        if self.end != Some(len) {
            self.end = (!self.ends_mid_line(&file, len)?).then_some(len);
        }
        Ok((len, foreign))
    }

    /// Whether the file is on a network or in user space: every write is synced there, and only
    /// one process may write.
    pub(crate) fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Opens what is there and mends its end; returns its length. A file that is to be made is made by
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
        } = self.open_alone()?;
        let _lock = self.lock(&file)?;
        let len = self.status(&file)?.len;
        if let Some(read) = &self.fingerprint {
            self.since = self.compare(&file, read, len)?;
        }
        let is_alone = if is_new {
            Some(true)
        } else {
            has_other_writer.map(|other| !other)
        };
        let repaired = end_repair::repair_end(&*file, &*self.disk, &self.path, is_alone)
            .map_err(|error| self.io(error))?;
        self.end = repaired.is_ended.then_some(repaired.len);
        self.repair = repaired.repair;
        self.is_remote = is_remote;
        self.others_may_write = others_may_write;
        self.name_checked = Some(Instant::now());
        self.file = Some(Arc::clone(&file));
        if let Some(repair) = &self.repair {
            tracing::warn!(offset = repair.offset(), "the end of the file was mended");
        }
        if others_may_write {
            tracing::warn!("other users may write to the file");
        }
        Ok(repaired.len)
    }

    /// Opens the file when nobody else has it open for writing, or turns are to be taken. A child of
    /// any process holds a copy of what that has open until its own program runs: that passes.
    fn open_alone(&self) -> Result<Opened, Error> {
        let start = Instant::now();
        loop {
            let opened = match self.disk.open(&self.path, self.create) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if start.elapsed() >= self.lock_wait {
                        return Err(self.busy().because(error));
                    }
                    std::thread::sleep(ASKS);
                    continue;
                }
                opened => opened.map_err(|error| self.io(error))?,
            };
            let takes_turns = self.on_busy == OnBusy::Share && !opened.is_remote;
            if opened.has_other_writer != Some(true) || takes_turns {
                return Ok(opened);
            }
            drop(opened);
            if start.elapsed() >= FORK_GRACE {
                return Err(self.busy());
            }
            std::thread::sleep(FORK_GRACE / 10);
        }
    }

    /// Compares the file with what was read of it. Lines that others added since count as growth.
    fn compare(
        &self,
        file: &Arc<dyn File>,
        read: &Fingerprint,
        len: u64,
    ) -> Result<Foreign, Error> {
        let is_same = read.offset() <= len
            && read
                .matches(|at, buffer| end_repair::read_into(&**file, at, buffer))
                .map_err(|error| self.io(error))?;
        if !is_same {
            return Err(self.error(ErrorKind::Changed));
        }
        if len > read.offset() {
            return self.read_foreign(file, read.offset(), len);
        }
        Ok(Foreign::default())
    }

    /// Appends whole lines as one batch.
    ///
    /// When it fails, nothing of them is in the file; if the system does not let us cut the file,
    /// what is left of them stands on a line of its own.
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
        // The lines are in the file: that the question fails is no failure to append them.
        let is_alone = file.position().map_or(true, |position| position == end);
        let moved = if is_alone {
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

    /// Finds the lines of a batch behind `from`, where others wrote as well. Those that are not whole
    /// are written again, behind a newline in the same write, so that nothing can come between.
    /// Returns where each line stands.
    fn locate_lines(
        &mut self,
        file: &Arc<dyn File>,
        from: u64,
        lines: &[u8],
        foreign: &mut Foreign,
    ) -> Result<Vec<u64>, Error> {
        // In doubt until all is well: the next batch looks at the last byte then.
        self.end = None;
        let batch = lines;
        let lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
        let start = from.saturating_sub(1);
        for attempt in 0..=ATTEMPTS {
            let now = self.status(file)?.len;
            let bytes = self.read(file, start, now)?;
            let (places, others) = match_lines(&bytes, start, &lines);
            let missing = lines
                .iter()
                .zip(&places)
                .filter(|(_, place)| place.is_none());
            let missing: Vec<u8> = missing.flat_map(|(line, _)| line.iter().copied()).collect();
            if missing.is_empty() {
                if !others.ids.is_empty() && self.on_busy != OnBusy::Share {
                    self.intruded = Some(from);
                }
                foreign.extend(others);
                self.end = bytes.ends_with(b"\n").then_some(now);
                return Ok(places.into_iter().flatten().collect());
            }
            if attempt == ATTEMPTS {
                break;
            }
            if let Err(error) = self.write(file, now, &[b"\n", &*missing].concat()) {
                // The lines that are whole must not stay without the others, if that can be helped.
                let is_gone = self.pending_truncate.is_none()
                    && bytes.ends_with(batch)
                    && self.defer_truncate(file, now - batch.len() as u64, batch);
                return Err(if is_gone { error } else { error.with_a_part() });
            }
        }
        Err(self.busy())
    }

    /// Writes whole lines at the end, which is `len`, behind a newline if there is none. Returns
    /// the offset of the first.
    fn write_lines(&mut self, file: &Arc<dyn File>, len: u64, lines: &[u8]) -> Result<u64, Error> {
        if self.end == Some(len) || !self.ends_mid_line(file, len)? {
            return self.write(file, len, lines);
        }
        tracing::warn!(offset = len, "a line without an end was sealed");
        Ok(self.write(file, len, &[b"\n", lines].concat())? + 1)
    }

    /// Looks at what happened to the file since the last batch; returns its length.
    fn check_file(&mut self, file: &Arc<dyn File>, foreign: &mut Foreign) -> Result<u64, Error> {
        let status = self.status(file)?;
        if !status.is_linked || self.has_new_name(file)? {
            return Err(self.fail_for_good(ErrorKind::Replaced));
        }
        if let Some(offset) = self.intruded {
            return Err(self.busy().at(offset).for_good());
        }
        let len = self.truncate_pending(file, status.len)?;
        let Some(end) = self.end else {
            return Ok(len);
        };
        if len < end {
            return Err(self.fail_for_good(ErrorKind::Shrunk));
        }
        if len > end {
            foreign.extend(self.read_foreign(file, end, len)?);
            // Their last line may not have an end.
            self.end = None;
        }
        Ok(len)
    }

    /// Cuts off what a failed write left behind, if that could not be done then.
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

    /// Returns where something was cut off since the last call.
    pub(crate) fn take_truncated(&mut self) -> Option<u64> {
        self.cut.take()
    }

    /// Gives the file back.
    pub(crate) fn release(&mut self) {
        self.file = None;
    }

    /// Cuts off what a failed write left behind, if that could not be done then. Returns the length.
    fn truncate_pending(&mut self, file: &Arc<dyn File>, len: u64) -> Result<u64, Error> {
        let Some(pending_truncate) = &self.pending_truncate else {
            return Ok(len);
        };
        let offset = pending_truncate.offset;
        if self.is_own_bytes(file, pending_truncate, len)? && len > offset {
            file.truncate(offset)
                .map_err(|error| self.io(error).at(offset))?;
            self.pending_truncate = None;
            self.cut = Some(offset);
            return Ok(offset);
        }
        // Others wrote behind it: it is not ours to cut any more.
        self.pending_truncate = None;
        Ok(len)
    }

    /// Whether nothing but a part of our own bytes comes after `pending_truncate.offset`.
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

    /// Whether the name leads to another file by now. It is looked at now and then.
    fn has_new_name(&mut self, file: &Arc<dyn File>) -> Result<bool, Error> {
        let is_fresh = |at: Instant| at.elapsed() < CHECK_NAME;
        if self.name_checked.is_some_and(is_fresh) {
            return Ok(false);
        }
        let there = self.disk.identity(&self.path);
        let ours = file.identity().map_err(|error| self.io(error))?;
        let there = there.map_err(|error| self.io(error))?;
        self.name_checked = Some(Instant::now());
        Ok(there != Some(ours))
    }

    /// Reads what others appended. Lines outside the conversation, such as a title, are welcome;
    /// entries are not, unless we take turns.
    fn read_foreign(&self, file: &Arc<dyn File>, from: u64, to: u64) -> Result<Foreign, Error> {
        if to - from > MAX_GROWTH {
            return match self.on_busy {
                OnBusy::Share => Ok(Foreign {
                    is_unread: true,
                    ..Foreign::default()
                }),
                _ => Err(self.busy()),
            };
        }
        let foreign = Foreign::read(&self.read(file, from, to)?, from);
        if !foreign.ids.is_empty() && self.on_busy != OnBusy::Share {
            return Err(self.busy().at(from).for_good());
        }
        Ok(foreign)
    }

    /// Writes `bytes` at the end, which is `len`, whole or not at all. Returns `len`.
    fn write(&mut self, file: &Arc<dyn File>, len: u64, bytes: &[u8]) -> Result<u64, Error> {
        let mut written = 0;
        while written < bytes.len() {
            match file.append(&bytes[written..]) {
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

    /// Cuts off what a failed write left behind, now or before the next batch.
    fn roll_back(
        &mut self,
        file: &Arc<dyn File>,
        len: u64,
        bytes: &[u8],
        cause: io::Error,
    ) -> Error {
        let is_gone = self.defer_truncate(file, len, bytes);
        let error = self.io(cause).at(len);
        if is_gone { error } else { error.with_a_part() }
    }

    /// Notes that a part of `bytes` stands at `offset` and must not, and cuts it off if possible.
    /// Returns whether nothing of it is left.
    fn defer_truncate(&mut self, file: &Arc<dyn File>, offset: u64, bytes: &[u8]) -> bool {
        self.pending_truncate = Some(PendingTruncate {
            offset,
            bytes: bytes.to_vec(),
        });
        let settled = self
            .status(file)
            .and_then(|status| self.truncate_pending(file, status.len));
        if let Err(error) = &settled {
            tracing::warn!(offset, %error, "a failed write is not cut off yet");
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

    fn status(&self, file: &Arc<dyn File>) -> Result<crate::file::Status, Error> {
        file.status().map_err(|error| self.io(error))
    }

    /// Takes the lock, waiting for it as long as is allowed.
    fn lock(&self, file: &Arc<dyn File>) -> Result<Lock, Error> {
        let mut deadline = None;
        let mut pause = Duration::from_micros(50);
        loop {
            match file.try_lock() {
                Ok(true) => return Ok(Lock(Arc::clone(file))),
                Ok(false) => {
                    // As a rule nobody else has it, and the clock is not asked.
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

    fn fail_for_good(&mut self, kind: ErrorKind) -> Error {
        let error = self.error(kind);
        tracing::error!(kind = kind.name(), "the file is not ours any more");
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

/// Finds each of `lines` in `bytes`, which start at `start`, where it stands on its own; and the
/// lines of others there. What stands before the first newline is of before.
fn match_lines(bytes: &[u8], start: u64, lines: &[&[u8]]) -> (Vec<Option<u64>>, Foreign) {
    let mut places = vec![None; lines.len()];
    let mut others = Foreign::default();
    let mut offset = start;
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let here = offset;
        offset += line.len() as u64;
        if at == 0 && start > 0 {
            continue;
        }
        match lines.iter().position(|ours| *ours == line) {
            Some(ours) => places[ours] = Some(here),
            None => others.extend(Foreign::read(line, here)),
        }
    }
    (places, others)
}

/// Holds the lock of a file.
struct Lock(Arc<dyn File>);

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock also goes with the handle; nothing better can be done here.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the lock could not be given back");
        }
    }
}
