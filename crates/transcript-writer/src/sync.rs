//! Makes written bytes survive a power cut, on a separate thread, so that appends wait for the disk
//! only if the caller asks for it.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use transcript_storage::{Disk, File};

use crate::end_repair::{side_file, write_side_file};
use crate::error::{Error, ErrorKind};
use crate::options::SyncPolicy;
use crate::threads::{Condvar, Instant, Mutex, MutexGuard, lock, wait};

/// The state shared by the threads that write and the thread that syncs.
///
/// Bytes are counted from the opening of the file: `written` of them are in the kernel, `synced`
/// survive a power cut.
pub(crate) struct Syncer {
    state: Mutex<State>,
    /// Notified when the thread has work.
    work: Condvar,
    /// Notified after a sync, successful or not.
    done: Condvar,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    policy: SyncPolicy,
    /// The maximum number of unsynced bytes to hold.
    most: usize,
}

/// What was saved of entries that may not survive a power cut because a sync failed. The running
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
    /// How many of them are in the files. If fewer, the last ones are missing, because there were
    /// more than the writer keeps copies of: under [`SyncPolicy::None`] a quarter of
    /// [`queue_bytes`](crate::WriterOptions::queue_bytes).
    pub saved: u64,
    /// The lines of entries that the writer had copies of but could not save to a file, for the
    /// caller to save elsewhere.
    pub unsaved: Vec<u8>,
    /// Why they could not be saved.
    pub error: Option<Arc<io::Error>>,
}

/// Lines of one write.
pub(crate) struct Batch<'a> {
    pub(crate) lines: &'a [u8],
    /// Their offset in the file.
    pub(crate) offset: u64,
    pub(crate) entries: u64,
}

/// A number of written or synced bytes and entries.
#[derive(Clone, Copy, Default)]
struct Count {
    bytes: u64,
    entries: u64,
}

#[derive(Default)]
struct State {
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

/// The capacity of one chunk.
const CHUNK: usize = 256 << 10;

impl Copies {
    fn push(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        match self.chunks.back_mut() {
            Some(last) if last.len() + bytes.len() <= last.capacity() => {
                last.extend_from_slice(bytes);
            }
            _ => {
                let mut chunk = self.spare.pop().unwrap_or_default();
                chunk.reserve(bytes.len().max(CHUNK));
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
            if chunk.capacity() <= 2 * CHUNK && self.spare.len() < 4 {
                chunk.clear();
                self.spare.push(chunk);
            }
        }
    }

    /// Removes and returns everything after `synced`.
    fn take(&mut self, synced: u64) -> Vec<u8> {
        let skip = synced.saturating_sub(self.start) as usize;
        let bytes = std::mem::take(self).chunks.into_iter().collect::<Vec<_>>();
        bytes
            .concat()
            .split_off(skip.min(bytes.iter().map(Vec::len).sum()))
    }
}

impl Syncer {
    pub(crate) fn new(disk: Arc<dyn Disk>, path: &Path, policy: SyncPolicy, most: usize) -> Self {
        Self {
            state: Mutex::new(State {
                each: policy == SyncPolicy::Each,
                ..State::default()
            }),
            work: Condvar::new(),
            done: Condvar::new(),
            disk,
            path: path.to_owned(),
            policy,
            most,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
        while state.unsynced.len > self.most / 2 && state.failed.is_none() && !state.stop {
            if self.policy == SyncPolicy::None && !state.each {
                // Without a sync policy, the copies only serve a sync that the caller may request,
                // so they may be dropped.
                while state.unsynced.len > self.most / 2 {
                    state.unsynced.drop_first();
                }
                return;
            }
            if state.wanted <= state.synced.bytes {
                state.wanted = state.written.bytes;
                self.work.notify_one();
            }
            if state.unsynced.len <= self.most {
                return;
            }
            state = wait(&self.done, state, None);
        }
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
        let is_first = state.dirty_since.is_none();
        if is_first {
            state.dirty_since = Some(Instant::now());
        }
        // The thread only has to be woken for the first unsynced byte; after that it waits for its
        // deadline.
        if is_first && !matches!(self.policy, SyncPolicy::None) {
            self.work.notify_one();
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
                self.work.notify_one();
            }
            state = wait(&self.done, state, None);
        }
        Ok(())
    }

    /// Waits until everything written so far survives a power cut.
    pub(crate) fn wait_for_all(&self) -> Result<(), Error> {
        let end = self.state().written.bytes;
        self.check()?;
        self.wait(end)
    }

    /// Ends the thread after a last sync.
    pub(crate) fn stop(&self) {
        self.state().stop = true;
        self.work.notify_one();
    }

    /// Waits until the thread has ended and closed the file, but at most for `most`.
    pub(crate) fn wait_for_end(&self, most: Duration) {
        let state = self.state();
        let ended = self
            .done
            .wait_timeout_while(state, most, |state| !state.has_ended);
        // The thread may still be blocked by a disk that does not respond; the caller must not wait.
        drop(ended);
    }

    /// Runs the thread.
    pub(crate) fn run(&self) {
        let mut state = self.sync_on();
        state.file = None;
        state.has_ended = true;
        self.done.notify_all();
    }

    fn sync_on(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        loop {
            let is_dirty = state.written.bytes > state.synced.bytes;
            let is_wanted = state.wanted > state.synced.bytes;
            let rest = match (self.policy, state.dirty_since) {
                (SyncPolicy::Interval(interval), Some(since)) if is_dirty => {
                    Some(interval.saturating_sub(since.elapsed()))
                }
                _ => None,
            };
            if state.failed.is_some() || (state.stop && !is_dirty) {
                return state;
            }
            if is_wanted || (state.stop && is_dirty) || rest == Some(Duration::ZERO) {
                state = self.sync_once(state);
                continue;
            }
            state = wait(&self.work, state, rest);
        }
    }

    fn sync_once<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
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
        self.done.notify_all();
        state
    }

    /// Handles a failed sync. It is final: the system may have dropped the bytes, and a later sync
    /// would succeed all the same.
    fn fail(&self, state: &mut State, error: io::Error) {
        tracing::error!(%error, unsynced = state.unsynced.len, "a sync failed");
        let offset = state.first_unsynced.unwrap_or_default();
        let failed = Error::new(ErrorKind::SyncFailed, &self.path).at(offset);
        state.failed = Some(failed.because(error));
        state.rescue.unsynced = state.written.entries - state.synced.entries;
        let lines = state.unsynced.take(state.synced.bytes);
        self.rescue_lines(state, offset, &lines);
    }

    /// Saves lines to a rescue file.
    fn rescue_lines(&self, state: &mut State, offset: u64, lines: &[u8]) {
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
