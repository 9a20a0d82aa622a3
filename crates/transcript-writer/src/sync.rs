//! Makes written bytes survive a power cut, by a task of the crew, so that appends wait for the disk only if the caller
//! asks for it.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use transcript_storage::crew::{Next, Task};
use transcript_storage::threads::{Condvar, Instant, Mutex, MutexGuard, lock, wait};
use transcript_storage::{Disk, File};

use crate::end_repair::{side_file, write_side_file};
use crate::error::{Error, ErrorKind};
use crate::options::SyncPolicy;

/// The state shared by the threads that write and the task that syncs.
///
/// Bytes are counted from the opening of the file: `written` of them are in the kernel, `synced`
/// survive a power cut.
pub(crate) struct Syncer {
    state: Mutex<SyncState>,
    /// Notified after a sync, successful or not.
    done: Condvar,
    /// The task whose steps are [`Self::step`], and the one that waits for [room](Self::has_room).
    tasks: OnceLock<(Task, Task)>,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    policy: SyncPolicy,
    /// The maximum number of unsynced bytes to hold.
    max_unsynced_bytes: usize,
}

/// The saved copies of entries that may not survive a power cut because a sync failed. The running
/// system still shows all of them in the session file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Rescue {
    /// The files with the saved entries, as complete lines in order. The name of each contains the
    /// offset in the session file from which a power cut may lose bytes. Usually one file, and
    /// another for entries that were written while the sync failed.
    pub files: Vec<PathBuf>,
    /// The number of entries that may not survive.
    pub unsynced: u64,
    /// The number of them in the files. If fewer, the last ones are missing, because there were
    /// more than the writer keeps copies of: under [`SyncPolicy::None`] a quarter of
    /// [`queue_bytes`](crate::WriterOptions::queue_bytes).
    pub saved: u64,
    /// The lines of entries that the writer had copies of but could not save to a file, for the
    /// caller to save elsewhere.
    pub unsaved: Vec<u8>,
    /// The reason why they could not be saved.
    pub error: Option<Arc<io::Error>>,
}

/// Lines of one write.
pub(crate) struct Batch<'a> {
    pub(crate) lines: &'a [u8],
    /// Their offset in the file.
    pub(crate) offset: u64,
    pub(crate) entries: u64,
}

type WhenSynced = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// A number of written or synced bytes and entries.
#[derive(Clone, Copy, Default)]
struct Count {
    bytes: u64,
    entries: u64,
}

#[derive(Default)]
struct SyncState {
    file: Option<Arc<dyn File>>,
    written: Count,
    synced: Count,
    /// The offset in the file of the first unsynced byte, and of the first byte written since the
    /// current sync began.
    first_unsynced: Option<u64>,
    first_of_next: Option<u64>,
    /// A caller waits until this many bytes are synced.
    wanted: u64,
    dirty_since: Option<Instant>,
    unsynced: Copies,
    each: bool,
    /// Callers that wait without a thread, each with the number of bytes that must be synced first.
    waiting: Vec<(u64, WhenSynced)>,
    /// The task that writes waits for room.
    is_room_wanted: bool,
    failed: Option<Error>,
    rescue: Rescue,
    stop: bool,
    has_ended: bool,
}

/// Copies of unsynced lines, in order. When a sync fails they are the only reliable copy, because
/// the system may have dropped its own.
#[derive(Default)]
struct Copies {
    chunks: VecDeque<Vec<u8>>,
    /// The count of bytes up to the start of the first chunk.
    start: u64,
    len: usize,
    /// Chunks for reuse, to avoid new page faults.
    spare: Vec<Vec<u8>>,
}

/// The capacity of one chunk, in bytes.
const CHUNK_SIZE: usize = 256 << 10;

impl Copies {
    fn push(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        // A chunk never grows beyond its capacity: to move it would copy all unsynced lines again.
        match self.chunks.back_mut() {
            Some(last) if last.len() + bytes.len() <= last.capacity() => {
                last.extend_from_slice(bytes);
            }
            _ => {
                let mut chunk = self.spare.pop().unwrap_or_default();
                chunk.reserve(bytes.len().max(CHUNK_SIZE));
                chunk.extend_from_slice(bytes);
                self.chunks.push_back(chunk);
            }
        }
    }

    /// Drops the chunks that end at or before `end`.
    fn drop_until(&mut self, end: u64) {
        while let Some(first) = self.chunks.front() {
            let first_end = self.start + first.len() as u64;
            if first_end > end {
                break;
            }
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(mut chunk) = self.chunks.pop_front() {
            self.start += chunk.len() as u64;
            self.len -= chunk.len();
            if chunk.capacity() <= 2 * CHUNK_SIZE && self.spare.len() < 4 {
                chunk.clear();
                self.spare.push(chunk);
            }
        }
    }

    /// Removes and returns everything after `synced`.
    fn take_after(&mut self, synced: u64) -> Vec<u8> {
        let skip = synced.saturating_sub(self.start) as usize;
        let bytes = std::mem::take(self).chunks.into_iter().collect::<Vec<_>>();
        bytes
            .concat()
            .split_off(skip.min(bytes.iter().map(Vec::len).sum()))
    }
}

impl SyncState {
    /// Takes those whose bytes are synced, or never will be.
    fn take_answers(&mut self) -> Vec<(WhenSynced, Result<(), Error>)> {
        let (synced, failed) = (self.synced.bytes, &self.failed);
        // A failed sync is final (D8): callers that wait for later bytes would wait for ever.
        let known = |(end, _): &mut (u64, WhenSynced)| *end <= synced || failed.is_some();
        let known = self.waiting.extract_if(.., known);
        let answer = |(end, then)| match failed {
            Some(failed) if end > synced => (then, Err(failed.clone())),
            _ => (then, Ok(())),
        };
        known.map(answer).collect()
    }
}

impl Syncer {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        path: &Path,
        policy: SyncPolicy,
        max_unsynced_bytes: usize,
    ) -> Self {
        Self {
            state: Mutex::new(SyncState {
                each: policy == SyncPolicy::Each,
                ..SyncState::default()
            }),
            done: Condvar::new(),
            tasks: OnceLock::new(),
            disk,
            path: path.to_owned(),
            policy,
            max_unsynced_bytes,
        }
    }

    /// Sets the task whose steps are [`Self::step`], and the one that writes.
    pub(crate) fn set_tasks(&self, sync: Task, write: Task) {
        let _ = self.tasks.set((sync, write));
    }

    fn wake(&self) {
        if let Some((sync, _)) = self.tasks.get() {
            sync.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, SyncState> {
        // No code that holds the lock panics between two changes that belong together.
        lock(&self.state)
    }

    /// Fails if a sync has failed: nothing may be written after bytes that may be lost.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.state().failed.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn rescue(&self) -> Option<Rescue> {
        let state = self.state();
        state.failed.is_some().then(|| state.rescue.clone())
    }

    pub(crate) fn unsynced_bytes(&self) -> u64 {
        let state = self.state();
        state.written.bytes - state.synced.bytes
    }

    /// From now on, every write is synced before it is acknowledged, whatever the policy.
    pub(crate) fn sync_each(&self) {
        self.state().each = true;
    }

    pub(crate) fn syncs_each(&self) -> bool {
        self.state().each
    }

    /// Waits until there is room for more unsynced bytes. A sync is requested at half of the limit.
    pub(crate) fn wait_for_room(&self) {
        let mut state = self.state();
        while !self.make_room(&mut state) {
            state = wait(&self.done, state, None);
        }
    }

    /// Returns whether there is room; if not, the task that writes is woken when there is.
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.state();
        let has_room = self.make_room(&mut state);
        state.is_room_wanted = !has_room;
        has_room
    }

    fn make_room(&self, state: &mut SyncState) -> bool {
        if state.unsynced.len <= self.max_unsynced_bytes / 2 || state.failed.is_some() || state.stop
        {
            return true;
        }
        if self.policy == SyncPolicy::None && !state.each {
            // Without a sync policy, the copies only serve a sync that the caller may request,
            // so they may be dropped.
            while state.unsynced.len > self.max_unsynced_bytes / 2 {
                state.unsynced.drop_first();
            }
            return true;
        }
        // At half of the limit, so that writers rarely have to wait for the sync.
        if state.wanted <= state.synced.bytes {
            state.wanted = state.written.bytes;
            self.wake();
        }
        state.unsynced.len <= self.max_unsynced_bytes
    }

    /// Records lines that are in the kernel. Returns the count of bytes up to their end.
    pub(crate) fn written(&self, file: &Arc<dyn File>, batch: &Batch<'_>) -> u64 {
        let mut state = self.state();
        if state.file.is_none() {
            state.file = Some(Arc::clone(file));
        }
        state.written.bytes += batch.lines.len() as u64;
        state.written.entries += batch.entries;
        let end = state.written.bytes;
        state.first_unsynced.get_or_insert(batch.offset);
        state.first_of_next.get_or_insert(batch.offset);
        if state.failed.is_some() {
            // They were written while the sync failed, and are as unsafe as the lines before.
            state.rescue.unsynced += batch.entries;
            self.rescue_lines(&mut state, batch.offset, batch.lines);
            return end;
        }
        state.unsynced.push(batch.lines);
        // Only the first unsynced byte sets the deadline.
        if state.dirty_since.is_none() {
            state.dirty_since = Some(Instant::now());
            if let Some(due) = self.due(&state)
                && let Some((sync, _)) = self.tasks.get()
            {
                sync.wake_at(due);
            }
        }
        end
    }

    /// Records that a failed write was truncated at `offset`. A sync between the write and the
    /// truncation may have made the bytes durable, and a power cut would restore them. The
    /// truncation counts as one byte to sync, and is a blank line among the copies.
    pub(crate) fn cut(&self, file: &Arc<dyn File>, offset: u64) {
        if self.check().is_ok() {
            let cut = Batch {
                lines: b"\n",
                offset,
                entries: 0,
            };
            self.written(file, &cut);
        }
    }

    /// Waits until everything up to `end` survives a power cut.
    pub(crate) fn wait(&self, end: u64) -> Result<(), Error> {
        let mut state = self.state();
        while state.synced.bytes < end {
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            if state.wanted < end {
                state.wanted = end;
                self.wake();
            }
            state = wait(&self.done, state, None);
        }
        Ok(())
    }

    /// Calls `then` when everything up to `end` survives a power cut, or the sync has failed.
    pub(crate) fn when_synced(
        &self,
        end: u64,
        then: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let mut state = self.state();
        let known = match &state.failed {
            _ if state.synced.bytes >= end => Some(Ok(())),
            Some(failed) => Some(Err(failed.clone())),
            None => None,
        };
        // Without the lock: the callback may call the writer.
        if let Some(known) = known {
            drop(state);
            return then(known);
        }
        state.waiting.push((end, Box::new(then)));
        if state.wanted < end {
            state.wanted = end;
            self.wake();
        }
    }

    /// Calls `then` when everything written so far survives a power cut, or the sync has failed.
    #[cfg(feature = "async")]
    pub(crate) fn when_all_synced(&self, then: impl FnOnce(Result<(), Error>) + Send + 'static) {
        match self.check() {
            Ok(()) => {
                let end = self.state().written.bytes;
                self.when_synced(end, then);
            }
            Err(failed) => then(Err(failed)),
        }
    }

    /// Waits until everything written so far survives a power cut.
    pub(crate) fn wait_for_all(&self) -> Result<(), Error> {
        let end = self.state().written.bytes;
        self.check()?;
        self.wait(end)
    }

    /// Ends the task after a last sync.
    pub(crate) fn stop(&self) {
        self.state().stop = true;
        self.wake();
    }

    /// Waits until the task has ended and closed the file, but at most for `timeout`.
    pub(crate) fn wait_for_end(&self, timeout: Option<Duration>) {
        let mut state = self.state();
        let Some(timeout) = timeout else {
            while !state.has_ended {
                state = wait(&self.done, state, None);
            }
            return;
        };
        let ended = self
            .done
            .wait_timeout_while(state, timeout, |state| !state.has_ended);
        // It may still be kept by a disk that does not respond; the caller must not wait.
        drop(ended);
    }

    /// A step of the task: syncs if it is time to.
    pub(crate) fn step(&self) -> Next {
        let mut state = self.state();
        if Self::is_ended(&state) {
            return Next::End;
        }
        if self.is_due(&state) {
            state = self.sync_once(state);
            let answers = state.take_answers();
            let is_room_wanted = std::mem::take(&mut state.is_room_wanted);
            drop(state);
            self.done.notify_all();
            for (then, result) in answers {
                then(result);
            }
            if is_room_wanted && let Some((_, write)) = self.tasks.get() {
                write.wake();
            }
            state = self.state();
        }
        match self.due(&state) {
            // More may have been written during the sync, or the writer closed.
            _ if Self::is_ended(&state) => Next::End,
            _ if self.is_due(&state) => Next::Again,
            Some(due) => Next::At(due),
            None => Next::Wait,
        }
    }

    /// Closes the file: there are no more steps.
    pub(crate) fn ended(&self) {
        let mut state = self.state();
        state.file = None;
        state.has_ended = true;
        if state.written.bytes > state.synced.bytes && state.failed.is_none() {
            // The disk has panicked.
            state.failed = Some(Error::new(ErrorKind::SyncFailed, &self.path));
        }
        let answers = state.take_answers();
        drop(state);
        self.done.notify_all();
        for (then, result) in answers {
            then(result);
        }
    }

    fn is_ended(state: &SyncState) -> bool {
        state.failed.is_some() || (state.stop && state.written.bytes == state.synced.bytes)
    }

    /// Returns when the next sync is due if no caller waits for one.
    fn due(&self, state: &SyncState) -> Option<Instant> {
        let SyncPolicy::Interval(interval) = self.policy else {
            return None;
        };
        let since = state.dirty_since?;
        (state.written.bytes > state.synced.bytes).then_some(since.checked_add(interval)?)
    }

    /// Returns whether to sync now.
    fn is_due(&self, state: &SyncState) -> bool {
        state.wanted > state.synced.bytes
            || (state.stop && state.written.bytes > state.synced.bytes)
            || self.due(state).is_some_and(|due| due <= Instant::now())
    }

    fn sync_once<'a>(&'a self, mut state: MutexGuard<'a, SyncState>) -> MutexGuard<'a, SyncState> {
        let Some(file) = state.file.clone() else {
            state.synced = state.written;
            return state;
        };
        let end = state.written;
        state.first_of_next = None;
        drop(state);
        let result = file.sync();
        let mut state = self.state();
        match result {
            Ok(()) => {
                state.synced = end;
                state.first_unsynced = state.first_of_next;
                state.unsynced.drop_until(end.bytes);
                state.dirty_since = (state.written.bytes > end.bytes).then(Instant::now);
            }
            Err(error) => self.fail(&mut state, error),
        }
        state
    }

    /// Handles a failed sync. It is final: the system may have dropped the bytes, and a later sync
    /// would succeed all the same.
    fn fail(&self, state: &mut SyncState, error: io::Error) {
        tracing::error!(%error, unsynced = state.unsynced.len, "a sync failed");
        let offset = state.first_unsynced.unwrap_or_default();
        let failed = Error::new(ErrorKind::SyncFailed, &self.path).at(offset);
        state.failed = Some(failed.because(error));
        state.rescue.unsynced = state.written.entries - state.synced.entries;
        let lines = state.unsynced.take_after(state.synced.bytes);
        self.rescue_lines(state, offset, &lines);
    }

    /// Saves lines to a rescue file.
    fn rescue_lines(&self, state: &mut SyncState, offset: u64, lines: &[u8]) {
        let entries = lines.split(|byte| *byte == b'\n');
        let entries = entries.filter(|line| !line.is_empty()).count() as u64;
        // Only truncations, no entries.
        if entries == 0 {
            return;
        }
        let rescue = &mut state.rescue;
        match write_side_file(&*self.disk, &side_file(&self.path, "rescue", offset), lines) {
            Ok(path) => {
                rescue.files.push(path);
                rescue.saved += entries;
            }
            Err(error) => {
                tracing::error!(%error, "unsynced lines could not be saved");
                rescue.unsaved.extend_from_slice(lines);
                rescue.error = Some(Arc::new(error));
            }
        }
    }
}
