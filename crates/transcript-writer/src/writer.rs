//! The writer of one session: callers, a queue, and two tasks of the crew.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use transcript_format::ids::Uuid;
use transcript_storage::crew::{Next, Task, Work};
use transcript_storage::threads::{Condvar, Instant, Mutex, MutexGuard, lock, wait};

use crate::agent_id::AgentId;
use crate::chain::{Chains, NewPin, ResumePoint};
use crate::draft::{Draft, EntryId, FieldValues, quoted};
use crate::end_repair::Repair;
use crate::error::{Error, ErrorKind};
use crate::log::{Appended, ForeignLines, Log};
use crate::metadata_cache::MetadataCache;
use crate::options::WriterOptions;
use crate::sync::{self, Rescue, Syncer};

/// The maximum time that an entry stays queued.
const MAX_QUEUE_TIME: Duration = Duration::from_millis(100);

/// The maximum time that dropping a writer waits for its last sync.
const MAX_CLOSE_TIME: Duration = Duration::from_secs(1);

/// A queue of this size is written at once, because larger writes are no faster.
const MIN_BATCH_BYTES: usize = 256 << 10;

/// The maximum pause before the writer retries a failed write by itself.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// An entry that is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Its id; `None` for a metadata line.
    pub uuid: Option<EntryId>,
    /// Its parent.
    pub parent: Option<EntryId>,
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its length in bytes, without the newline.
    pub len: u64,
}

/// The current state of the writer in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of queued entries that are not in the file.
    pub unacknowledged: u64,
    /// The number of bytes in the file that would not survive a power cut.
    pub unsynced_bytes: u64,
    /// The number of failed writes since the last successful one.
    pub failures: u32,
    /// The number of entries written since the file was opened.
    pub written: u64,
}

/// Writes entries to one session. May be shared between threads.
///
/// An entry that [`append`](Self::append) acknowledged is in the kernel: it survives the end of
/// this process, whatever the cause, and every process can read it. It survives a power cut once it
/// was synced by the policy, and at the latest when [`sync`](Self::sync) or [`close`](Self::close)
/// return.
///
/// It has no thread: the queue is written, and written lines are synced, by the
/// [crew](transcript_storage::crew) of the process.
///
/// Dropping a writer writes the queue, as far as possible, and leaves the last sync to the crew;
/// only [`close`](Self::close) reports whether that worked.
pub struct Writer {
    shared: Arc<WriterState>,
    is_closed: bool,
}

pub(crate) struct WriterState {
    core: Mutex<Core>,
    /// The task whose steps are [`Self::step`].
    task: OnceLock<Task>,
    syncer: Syncer,
    ids: Arc<dyn Fn() -> Uuid + Send + Sync>,
    /// The maximum number of queued bytes.
    max_pending_bytes: usize,
    path: PathBuf,
    /// Whether this is the file of an agent.
    is_agent: bool,
}

struct Core {
    log: Log,
    chains: Chains,
    metadata: MetadataCache,
    queue: VecDeque<QueuedGroup>,
    queue_bytes: usize,
    /// Buffer for the lines of a batch, reused.
    lines: String,
    /// When the queue must be written; `None` when no queued entry has a deadline.
    due: Option<Instant>,
    /// A caller waits for an entry in the queue.
    is_urgent: bool,
    next_ticket: u64,
    failures: u32,
    written: u64,
    is_closed: bool,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// The last timestamp as milliseconds and as JSON, reused because several entries are written
    /// per millisecond.
    timestamp: (i64, String),
    session: String,
    agent: String,
    cwd: String,
    version: String,
    git_branch: String,
    entrypoint: String,
}

/// The state that a batch is planned from.
pub(crate) struct WriteState<'a> {
    pub(crate) chains: &'a Chains,
    pub(crate) metadata: &'a MetadataCache,
    /// The length of the file.
    pub(crate) end: u64,
}

/// Entries that are written together or not at all.
struct QueuedGroup {
    drafts: Vec<Draft>,
    reply: Reply,
}

/// The result of writing a batch.
#[derive(Default)]
#[must_use]
struct WrittenBatch {
    /// The caller's own entries.
    own: Vec<Written>,
    /// Entries of other callers, who still have to be notified.
    others: Vec<(Reply, Vec<Written>)>,
    /// The count of bytes up to the end of the batch.
    end: u64,
}

pub(crate) type WriteResult = Result<Vec<Written>, Error>;

type Acknowledge = Box<dyn FnOnce(WriteResult) + Send>;

enum Reply {
    /// To the caller who holds the lock.
    Here,
    /// To a callback. The entries are discarded when they cannot be written.
    Call(Acknowledge),
    /// To a ticket. The entry stays queued until it is written.
    Ticket(u64, Arc<TicketState>),
}

impl WriterOptions {
    /// Opens the session at `path`. `known` describes its contents, as a reader found them.
    ///
    /// An unfinished last line, as a kill or a full disk leaves it, is completed, truncated or
    /// terminated with a newline; [`Writer::repair`] returns which.
    ///
    /// # Errors
    /// When the file is missing and [`create`](Self::create) was not called; when it is not a
    /// regular file that has one name and belongs to the caller; when it is not the file that was
    /// read, or another process writes to it; when the system fails.
    pub fn open(&self, path: &Path, known: ResumePoint) -> Result<Writer, Error> {
        Writer::open(self, path, known)
    }
}

impl Writer {
    pub(crate) fn open(
        options: &WriterOptions,
        path: &Path,
        known: ResumePoint,
    ) -> Result<Self, Error> {
        let mut known = known;
        let fingerprint = known.fingerprint.take();
        let mut log = Log::new(
            Arc::clone(&options.disk),
            path,
            options.create,
            options.on_busy,
            options.lock_wait,
        );
        let len = log.open(fingerprint)?;
        let metadata = MetadataCache::new(&known.state, len);
        let stem = path.file_stem().map(|stem| stem.to_string_lossy());
        let session = options.session_id.clone();
        let session = session.or(stem.map(Into::into)).unwrap_or_default();
        let agent = options.agent.as_ref().map_or("", AgentId::as_str);
        // One half for the queue, the other for written bytes that are not synced: both keep copies of lines.
        let max_pending_bytes = options.queue_bytes / 2;
        let syncer = Syncer::new(
            Arc::clone(&options.disk),
            path,
            options.sync,
            max_pending_bytes,
        );
        // A write that returned may be in the cache of this machine only, where no other one sees it (D19).
        if log.is_remote() {
            syncer.sync_each();
        }
        let shared = Arc::new(WriterState {
            core: Mutex::new(Core {
                log,
                chains: Chains::new(known),
                metadata,
                queue: VecDeque::new(),
                queue_bytes: 0,
                lines: String::new(),
                due: None,
                is_urgent: false,
                next_ticket: 0,
                failures: 0,
                written: 0,
                is_closed: false,
                clock: Arc::clone(&options.clock),
                timestamp: (i64::MIN, String::new()),
                session: quoted_unless_empty(&session),
                agent: quoted_unless_empty(agent),
                cwd: quoted_unless_empty(&options.cwd),
                version: quoted_unless_empty(&options.version),
                git_branch: quoted_unless_empty(&options.git_branch),
                entrypoint: quoted_unless_empty(&options.entrypoint),
            }),
            task: OnceLock::new(),
            syncer,
            ids: Arc::clone(&options.ids),
            max_pending_bytes,
            path: path.to_owned(),
            is_agent: options.agent.is_some(),
        });
        shared
            .start_tasks()
            .map_err(|error| Error::io(path, error))?;
        Ok(Self {
            shared,
            is_closed: false,
        })
    }

    /// Writes one entry, after everything that was queued before. On return it is in the kernel.
    ///
    /// # Errors
    /// When it could not be written. The file has nothing of it then, the entry is discarded, and
    /// the same call may be repeated if the error [is retryable](Error::is_retryable). Under
    /// [`SyncPolicy::Each`](crate::SyncPolicy::Each) a failed sync is an error too; the entry is
    /// then in the file and in a [rescue file](Self::rescue).
    pub fn append(&self, draft: Draft) -> Result<Written, Error> {
        let mut written = self.append_all(vec![draft])?;
        written.pop().ok_or_else(|| self.shared.closed())
    }

    /// Writes entries with one write: all of them or none. The lines of one message stay together.
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub fn append_all(&self, drafts: Vec<Draft>) -> Result<Vec<Written>, Error> {
        self.shared.append(drafts)
    }

    /// Writes entries as [`append_all`](Self::append_all) does. On return they are in the kernel. `then` gets them when they are
    /// acknowledged: before this returns, or, where [every append is synced](Self::syncs_each), after the sync. It is called on a thread
    /// of the [crew](transcript_storage::crew), which it must not keep.
    ///
    /// # Errors
    /// When they could not be written. `then` is not called.
    pub fn append_all_then(
        &self,
        drafts: Vec<Draft>,
        then: impl FnOnce(Result<Vec<Written>, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        self.shared.append_then(drafts, Box::new(then))
    }

    /// Returns whether an append is synced before it is acknowledged.
    #[must_use]
    pub fn syncs_each(&self) -> bool {
        self.shared.syncer.syncs_each()
    }

    /// Queues an entry. It is written within 100 ms, before any entry that is appended later; until
    /// then it can be [amended](Ticket::amend). If it cannot be written, it stays queued and is
    /// retried.
    ///
    /// A crash before it is written loses it.
    ///
    /// # Errors
    /// When the queue is full and cannot be written, or the writer has been closed or has failed.
    pub fn queue(&self, draft: Draft) -> Result<Ticket, Error> {
        self.shared.queue(draft)
    }

    /// Writes everything that is queued. On return it is in the kernel.
    ///
    /// # Errors
    /// When it could not be written. The entries stay queued if the error [is
    /// retryable](Error::is_retryable); otherwise their tickets get the error.
    pub fn flush(&self) -> Result<(), Error> {
        self.shared.append(Vec::new()).map(drop)
    }

    /// Makes everything written so far survive a power cut.
    ///
    /// # Errors
    /// When the sync fails; see [`rescue`](Self::rescue). Every later call fails too.
    pub fn sync(&self) -> Result<(), Error> {
        self.flush()?;
        self.shared.syncer.wait_for_all()
    }

    /// Writes and syncs everything and closes the file.
    ///
    /// # Errors
    /// When a queued entry could not be written and is lost, or may not survive a power cut, or
    /// when a part of a failed write could not be truncated.
    pub fn close(mut self) -> Result<(), Error> {
        let synced = self.sync();
        let cleaned = self.shared.end();
        self.shared.syncer.wait_for_end(None);
        self.is_closed = true;
        synced.and(cleaned)
    }

    /// [Closes](Self::close) a writer that nothing else shares. Else everything is written and synced,
    /// and the file stays open until the last one that shares it drops it.
    ///
    /// # Errors
    /// As for [`close`](Self::close).
    pub fn close_shared(writer: Arc<Self>) -> Result<(), Error> {
        match Arc::try_unwrap(writer) {
            Ok(writer) => writer.close(),
            Err(writer) => writer.sync(),
        }
    }

    /// Returns the repair of an unfinished last line when the file was opened, if any.
    #[must_use]
    pub fn repair(&self) -> Option<Repair> {
        self.shared.core().log.repair().cloned()
    }

    /// Returns the unsynced entries that were saved when a sync failed; `None` if no sync has
    /// failed.
    #[must_use]
    pub fn rescue(&self) -> Option<Rescue> {
        self.shared.syncer.rescue()
    }

    /// Returns whether the mode of the file allows other users to write to it. What they write
    /// would become part of the conversation; `chmod 600` prevents that.
    #[must_use]
    pub fn others_may_write(&self) -> bool {
        self.shared.core().log.others_may_write()
    }

    /// Returns the last entry of the main chain that is in the file.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryId> {
        self.shared.core().chains.leaf().cloned()
    }

    /// Returns whether a call of the conversation, or of a subagent, is in the file and has no result
    /// there. Calls that were left by a rewind or a compaction do not count, and those that another
    /// process wrote are not known.
    #[must_use]
    pub fn has_open_call(&self, id: &str) -> bool {
        self.shared.core().chains.is_open(id)
    }

    /// Sets the git branch of later entries that name none; an empty one for none. What is queued is
    /// written first, with the branch before.
    ///
    /// # Errors
    /// When a queued entry could not be written: see [`flush`](Self::flush). The branch is unchanged
    /// then.
    pub fn set_git_branch(&self, branch: &str) -> Result<(), Error> {
        self.flush()?;
        self.shared.core().git_branch = quoted_unless_empty(branch);
        Ok(())
    }

    /// Sets the entrypoint of later entries that do not say it, as
    /// [`set_git_branch`](Self::set_git_branch) does.
    ///
    /// # Errors
    /// The same.
    pub fn set_entrypoint(&self, entrypoint: &str) -> Result<(), Error> {
        self.flush()?;
        self.shared.core().entrypoint = quoted_unless_empty(entrypoint);
        Ok(())
    }

    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Returns the current state of the writer in numbers.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let unsynced_bytes = self.shared.syncer.unsynced_bytes();
        let core = self.shared.core();
        let queued = core.queue.iter().map(|group| group.drafts.len() as u64);
        Stats {
            unacknowledged: queued.sum(),
            unsynced_bytes,
            failures: core.failures,
            written: core.written,
        }
    }

    /// Returns the maximum number of bytes that may be pending.
    #[cfg(feature = "async")]
    pub(crate) fn room(&self) -> usize {
        self.shared.max_pending_bytes.max(1)
    }

    pub(crate) fn shared(&self) -> &Arc<WriterState> {
        &self.shared
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_closed {
            // The tasks end by themselves: a disk that does not respond must not block the caller.
            let flushed = self.flush();
            if let Err(error) = flushed.and(self.shared.end()) {
                tracing::error!(kind = error.kind().name(), "queued entries were lost");
            }
            self.shared.syncer.wait_for_end(Some(MAX_CLOSE_TIME));
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("path", &self.shared.path)
            .finish_non_exhaustive()
    }
}

impl WriterState {
    fn core(&self) -> MutexGuard<'_, Core> {
        // Only the caller's clock can panic while the lock is held, and that happens before
        // anything is changed.
        lock(&self.core)
    }

    pub(crate) fn closed(&self) -> Error {
        Error::new(ErrorKind::Closed, &self.path)
    }

    pub(crate) fn new_id(&self) -> Uuid {
        (self.ids)()
    }

    pub(crate) fn identify(&self, drafts: &mut [Draft]) {
        for draft in drafts {
            draft.identify(|| (self.ids)());
            if self.is_agent {
                // In its own file, the sidechain of the agent is the main chain.
                draft.chain = None;
            }
        }
    }

    /// Writes the queue, then, as a batch of its own, the entries that `plan` creates from the
    /// state after that. Once they are in the file, `settle` updates the chains.
    pub(crate) fn append_planned<T>(
        &self,
        plan: impl FnOnce(WriteState<'_>) -> Result<(Vec<Draft>, T), ErrorKind>,
        settle: impl FnOnce(&mut Chains, &T),
    ) -> Result<(Vec<Written>, T), Error> {
        // Before the lock: a slow disk may hold up this caller, but no other one meanwhile.
        self.syncer.wait_for_room();
        let mut core = self.core();
        if core.is_closed {
            return Err(self.closed());
        }
        // The plan depends on the end of the conversation, which queued entries can still move.
        let queued = self.write_queue(&mut core, None)?;
        let own = self
            .read_growth(&mut core)
            .and_then(|end| {
                let now = WriteState {
                    chains: &core.chains,
                    metadata: &core.metadata,
                    end,
                };
                plan(now).map_err(|kind| Error::new(kind, &self.path))
            })
            .and_then(|(mut drafts, more)| {
                self.identify(&mut drafts);
                let drained = match QueuedGroup::here(drafts) {
                    None => WrittenBatch::default(),
                    own => self.write_queue(&mut core, own)?,
                };
                settle(&mut core.chains, &more);
                Ok((drained, more))
            });
        drop(core);
        // Entries of other callers are in the file, whatever became of those of this one.
        self.acknowledge(queued)?;
        let (drained, more) = own?;
        Ok((self.acknowledge(drained)?, more))
    }

    /// Reads the lines that other processes appended; returns the length of the file.
    fn read_growth(&self, core: &mut Core) -> Result<u64, Error> {
        let looked = core.log.read_growth();
        self.note_truncate(core);
        let (end, foreign) = looked?;
        core.note_foreign(foreign);
        Ok(end)
    }

    fn append(&self, mut drafts: Vec<Draft>) -> WriteResult {
        self.identify(&mut drafts);
        self.syncer.wait_for_room();
        let mut core = self.core();
        if core.is_closed {
            return Err(self.closed());
        }
        let drained = self.write_queue(&mut core, QueuedGroup::here(drafts))?;
        drop(core);
        self.acknowledge(drained)
    }

    fn append_then(&self, mut drafts: Vec<Draft>, then: Acknowledge) -> Result<(), Error> {
        self.identify(&mut drafts);
        self.syncer.wait_for_room();
        let mut core = self.core();
        if core.is_closed {
            return Err(self.closed());
        }
        let mut drained = self.write_queue(&mut core, QueuedGroup::here(drafts))?;
        drop(core);
        let own = std::mem::take(&mut drained.own);
        drained.others.push((Reply::Call(then), own));
        self.acknowledge_later(drained);
        Ok(())
    }

    /// Waits for the sync if every write is synced, notifies the other callers, and returns the
    /// caller's own entries.
    fn acknowledge(&self, drained: WrittenBatch) -> WriteResult {
        let synced = if self.syncer.syncs_each() {
            self.syncer.wait(drained.end)
        } else {
            Ok(())
        };
        for (reply, written) in drained.others {
            reply.send(synced.clone().map(|()| written));
        }
        synced.map(|()| drained.own)
    }

    fn queue(self: &Arc<Self>, mut draft: Draft) -> Result<Ticket, Error> {
        self.identify(std::slice::from_mut(&mut draft));
        self.syncer.wait_for_room();
        let mut core = self.core();
        self.check_open(&core)?;
        // The caller writes the full queue itself, so that a fast one cannot outrun the crew.
        if core.queue_bytes + draft.len() > self.max_pending_bytes.min(MIN_BATCH_BYTES) {
            let drained = self.write_queue(&mut core, None);
            drop(core);
            let written = drained.and_then(|drained| self.acknowledge(drained));
            core = self.core();
            self.check_open(&core)?;
            // After a failed write its entries stay queued, and there may be no room for this one.
            if core.queue_bytes + draft.len() > self.max_pending_bytes {
                written?;
            }
        }
        let id = core.next_ticket;
        core.next_ticket += 1;
        let uuid = draft.uuid.clone();
        let state = Arc::new(TicketState::default());
        let reply = Reply::Ticket(id, Arc::clone(&state));
        core.push(QueuedGroup {
            drafts: vec![draft],
            reply,
        });
        // Only the first entry wakes the task: the time of all others is later.
        if core.due.is_none() {
            let due = Instant::now() + MAX_QUEUE_TIME;
            core.due = Some(due);
            if let Some(task) = self.task.get() {
                task.wake_at(due);
            }
        }
        drop(core);
        Ok(Ticket {
            id,
            uuid,
            state,
            shared: Arc::clone(self),
        })
    }

    /// Queues entries for the crew, and calls `reply` when they are in the file or cannot be
    /// written.
    #[cfg(feature = "async")]
    pub(crate) fn submit(
        &self,
        mut drafts: Vec<Draft>,
        reply: impl FnOnce(WriteResult) + Send + 'static,
    ) -> Result<(), Error> {
        self.identify(&mut drafts);
        let mut core = self.core();
        self.check_open(&core)?;
        core.push(QueuedGroup {
            drafts,
            reply: Reply::Call(Box::new(reply)),
        });
        // After the first of several entries the task is on its way, and takes the others along.
        let was_urgent = std::mem::replace(&mut core.is_urgent, true);
        drop(core);
        if !was_urgent && let Some(task) = self.task.get() {
            task.wake();
        }
        Ok(())
    }

    /// Calls `then` when everything written so far survives a power cut, or the sync has failed.
    #[cfg(feature = "async")]
    pub(crate) fn when_synced(&self, then: impl FnOnce(Result<(), Error>) + Send + 'static) {
        self.syncer.when_all_synced(then);
    }

    fn check_open(&self, core: &Core) -> Result<(), Error> {
        if core.is_closed {
            return Err(self.closed());
        }
        self.syncer.check()
    }

    fn end(&self) -> Result<(), Error> {
        let mut core = self.core();
        core.is_closed = true;
        let cleaned = core.log.clean_up();
        self.note_truncate(&mut core);
        core.log.release();
        let left = core.take_queue();
        drop(core);
        // Callers that still wait must be notified.
        for group in left {
            group.reply.send(Err(self.closed()));
        }
        if let Some(task) = self.task.get() {
            task.end();
        }
        // The last sync still runs: it has its own handle of the file.
        self.syncer.stop();
        cleaned
    }

    /// Starts the task that writes entries for which no caller writes, and the one that syncs.
    fn start_tasks(self: &Arc<Self>) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        let write = Task::new(Work::Write, move |_| shared.step())?;
        let syncing = Syncing(Arc::clone(self));
        let sync = Task::new(Work::Sync, move |_| syncing.step());
        if sync.is_err() {
            write.end();
        }
        self.syncer.set_tasks(sync?, write.clone());
        let _ = self.task.set(write);
        Ok(())
    }

    /// A step of the task that writes.
    fn step(&self) -> Next {
        let mut core = self.core();
        let now = Instant::now();
        match core.due {
            _ if core.is_closed => Next::End,
            due if core.is_urgent || due.is_some_and(|due| due <= now) => {
                // The core is not kept while there is no room.
                if !self.syncer.has_room() {
                    return Next::Wait;
                }
                let drained = self.write_queue(&mut core, None);
                drop(core);
                match drained {
                    Ok(drained) => self.acknowledge_later(drained),
                    Err(error) => {
                        let kind = error.kind().name();
                        tracing::warn!(kind, "queued entries were not written");
                    }
                }
                Next::Again
            }
            Some(due) => Next::At(due),
            None => Next::Wait,
        }
    }

    /// Notifies the callers, after the sync if every write is synced.
    fn acknowledge_later(&self, drained: WrittenBatch) {
        let (others, end) = (drained.others, drained.end);
        let notify = move |synced: Result<(), Error>| {
            for (reply, written) in others {
                reply.send(synced.clone().map(|()| written));
            }
        };
        if self.syncer.syncs_each() {
            self.syncer.when_synced(end, notify);
        } else {
            notify(Ok(()));
        }
    }

    /// Writes the queue, followed by `own`, as one batch.
    fn write_queue(
        &self,
        core: &mut Core,
        own: Option<QueuedGroup>,
    ) -> Result<WrittenBatch, Error> {
        core.due = None;
        core.is_urgent = false;
        // A failed sync is final (D8): an entry that was written now could be called durable by a later sync.
        if let Err(failed) = self.syncer.check() {
            for group in core.take_queue() {
                group.reply.send(Err(failed.clone()));
            }
            return Err(failed);
        }
        let mut groups = core.take_queue();
        groups.extend(own);
        if groups.is_empty() {
            let cleaned = core.log.clean_up();
            self.note_truncate(core);
            return cleaned.map(|()| WrittenBatch::default());
        }
        // With others that take turns, the parents of the entries depend on the lines that they appended.
        if core.log.is_shared()
            && let Err(error) = self.read_growth(core)
        {
            core.requeue(groups.into_iter(), &error);
            return Err(error);
        }
        let (batch, refused) = self.stage(core, groups);
        if batch.lines.is_empty() {
            let others = batch.staged.into_iter();
            let others = others.map(|staged| (staged.group.reply, staged.written));
            let unwritten = WrittenBatch {
                others: others.collect(),
                ..WrittenBatch::default()
            };
            return self.notify_others(unwritten, refused);
        }
        let appended = core.log.append(batch.lines.as_bytes());
        self.note_truncate(core);
        match appended {
            Ok(appended) => {
                let written = self.publish(core, batch, appended);
                self.notify_others(written, refused)
            }
            Err(error) => {
                // No entry is in the file, so the next ones must not become children of these.
                core.chains.undo(0);
                core.requeue(batch.staged.into_iter().map(|staged| staged.group), &error);
                Err(refused.unwrap_or(error))
            }
        }
    }

    /// Makes the lines of a batch. Callers whose entries are refused get their error now; that of
    /// the caller itself is returned.
    fn stage(&self, core: &mut Core, groups: VecDeque<QueuedGroup>) -> (Batch, Option<Error>) {
        core.refresh_timestamp();
        let mut batch = Batch {
            lines: std::mem::take(&mut core.lines),
            staged: Vec::with_capacity(groups.len()),
        };
        batch.lines.clear();
        let len = groups.iter().map(QueuedGroup::len).sum();
        batch.lines.reserve(len);
        let mut refused = None;
        for group in groups {
            match batch.add(core, &group.drafts) {
                Ok((written, pin)) => batch.staged.push(StagedGroup {
                    group,
                    written,
                    pin,
                }),
                Err(kind) => {
                    let error = Error::new(kind, &self.path);
                    if matches!(group.reply, Reply::Here) {
                        refused = Some(error);
                    } else {
                        group.reply.send(Err(error));
                    }
                }
            }
        }
        (batch, refused)
    }

    /// Updates the state of the file after a batch was appended, and hands the batch to the
    /// task that syncs. Returns the entries with their places in the file.
    fn publish(&self, core: &mut Core, batch: Batch, appended: Appended) -> WrittenBatch {
        let Batch { lines, staged } = batch;
        core.note_foreign(appended.foreign);
        core.chains.commit();
        core.failures = 0;
        // A new file shows only when it is created what file system it is on.
        if core.log.is_remote() {
            self.syncer.sync_each();
        }
        let lines_of = |staged: &StagedGroup| {
            (staged.written.len() + usize::from(staged.pin.is_some())) as u64
        };
        let entries = staged.iter().map(lines_of).sum();
        let mut batch = WrittenBatch::default();
        if let Some(file) = core.log.file() {
            let appended = sync::Batch {
                lines: lines.as_bytes(),
                offset: appended.offset,
                entries,
            };
            batch.end = self.syncer.written(file, &appended);
        }
        // One large batch must not keep its memory for the life of the session.
        if lines.capacity() <= 4 * MIN_BATCH_BYTES {
            core.lines = lines;
        }
        let mut moved = appended.moved.into_iter().flatten();
        for StagedGroup {
            group,
            mut written,
            pin,
        } in staged
        {
            core.written += group.drafts.len() as u64;
            // Lines of other processes may be between those of the batch; then each line has an offset of its own.
            let mut place = |offset: u64| moved.next().unwrap_or(offset + appended.offset);
            for (draft, entry) in group.drafts.iter().zip(&mut written) {
                entry.offset = place(entry.offset);
                core.metadata.note(draft, entry.offset);
            }
            if let Some(PinLine { draft, offset }) = pin {
                core.metadata.note(&draft, place(offset));
            }
            match group.reply {
                Reply::Here => batch.own = written,
                reply => batch.others.push((reply, written)),
            }
        }
        batch
    }

    /// Has a truncation synced: the truncated bytes may have been synced before.
    fn note_truncate(&self, core: &mut Core) {
        if let Some(offset) = core.log.take_truncated()
            && let Some(file) = core.log.file()
        {
            self.syncer.cut(file, offset);
        }
    }

    /// When the caller's own entries were refused, the other callers must still learn that theirs
    /// were written.
    fn notify_others(
        &self,
        drained: WrittenBatch,
        refused: Option<Error>,
    ) -> Result<WrittenBatch, Error> {
        match refused {
            None => Ok(drained),
            Some(refused) => {
                self.acknowledge(drained)?;
                Err(refused)
            }
        }
    }
}

impl QueuedGroup {
    /// Returns the entries of a caller that waits for them, if there are any.
    fn here(drafts: Vec<Draft>) -> Option<Self> {
        let reply = Reply::Here;
        (!drafts.is_empty()).then_some(Self { drafts, reply })
    }

    /// Returns the approximate number of bytes.
    fn len(&self) -> usize {
        // The fields that are filled in take a few hundred bytes.
        self.drafts.iter().map(|draft| draft.len() + 512).sum()
    }
}

impl Core {
    fn refresh_timestamp(&mut self) {
        let now = jiff::Timestamp::try_from((self.clock)()).unwrap_or_default();
        let millis = now.as_millisecond();
        if self.timestamp.0 != millis {
            self.timestamp = (millis, format!("\"{now:.3}\""));
        }
    }

    /// Takes over what another process wrote.
    fn note_foreign(&mut self, foreign: ForeignLines) {
        let pin = foreign.state.iter().find_map(|(draft, _)| draft.pinned());
        self.chains.note_foreign(foreign.ids, pin.as_ref());
        // A title among them may be newer than ours: repeated at the end of a turn, ours would win.
        if foreign.is_unread {
            self.metadata = MetadataCache::default();
        }
        for (draft, offset) in foreign.state {
            self.metadata.note(&draft, offset);
        }
    }

    fn push(&mut self, group: QueuedGroup) {
        self.queue_bytes += group.len();
        self.queue.push_back(group);
    }

    fn take_queue(&mut self) -> VecDeque<QueuedGroup> {
        self.queue_bytes = 0;
        std::mem::take(&mut self.queue)
    }

    /// Handles the groups of a failed batch: tickets go back into the queue, other callers get the
    /// error.
    fn requeue(&mut self, groups: impl Iterator<Item = QueuedGroup>, error: &Error) {
        self.failures = self.failures.saturating_add(1);
        for group in groups {
            match group.reply {
                Reply::Ticket(_, _) if error.is_retryable() => self.push(group),
                Reply::Here => {}
                reply => reply.send(Err(error.clone())),
            }
        }
        // Retries become rarer, as a full disk stays full for a while.
        if !self.queue.is_empty() {
            let pause = MAX_QUEUE_TIME * 2u32.pow(self.failures.min(8));
            self.due = Some(Instant::now() + pause.min(MAX_PAUSE));
        }
    }
}

/// The value that the sync task owns: dropping it closes the file, also after a panic of the task.
struct Syncing(Arc<WriterState>);

impl Syncing {
    fn step(&self) -> Next {
        self.0.syncer.step()
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        self.0.syncer.ended();
    }
}

/// The lines of one write, and the groups that they are of.
struct Batch {
    lines: String,
    staged: Vec<StagedGroup>,
}

/// A group whose lines are in a batch.
struct StagedGroup {
    group: QueuedGroup,
    written: Vec<Written>,
    pin: Option<PinLine>,
}

/// A line after those of a group that belongs to no caller.
struct PinLine {
    draft: Draft,
    offset: u64,
}

impl Batch {
    /// Adds the lines of a group, or none of them. Returns the entries, and the pin after them if they
    /// need one.
    fn add(
        &mut self,
        core: &mut Core,
        drafts: &[Draft],
    ) -> Result<(Vec<Written>, Option<PinLine>), ErrorKind> {
        let (mark, start) = (core.chains.mark(), self.lines.len());
        let mut written = Vec::with_capacity(drafts.len());
        for draft in drafts {
            match self.add_one(core, draft) {
                Ok(one) => written.push(one),
                Err(kind) => {
                    core.chains.undo(mark);
                    self.lines.truncate(start);
                    return Err(kind);
                }
            }
        }
        // After the entries: until this line is complete, the old pin is in force and the
        // conversation unchanged.
        let pin = core.chains.take_new_pin().map(|pin| match pin {
            NewPin::Clear => Draft::unpin(),
            NewPin::At(leaf) => Draft::leaf(core.metadata.prompt(), leaf),
        });
        let pin = match pin {
            Some(draft) => {
                let offset = self.add_one(core, &draft)?.offset;
                Some(PinLine { draft, offset })
            }
            None => None,
        };
        Ok((written, pin))
    }

    fn add_one(&mut self, core: &mut Core, draft: &Draft) -> Result<Written, ErrorKind> {
        let place = core.chains.place(draft)?;
        let offset = self.lines.len();
        draft.write(
            &mut self.lines,
            &FieldValues {
                parent: place.parent.as_ref(),
                source: place.source.as_ref(),
                timestamp: &core.timestamp.1,
                session: &core.session,
                agent: &core.agent,
                cwd: &core.cwd,
                version: &core.version,
                git_branch: &core.git_branch,
                entrypoint: &core.entrypoint,
            },
        );
        let line = self.lines[offset..].trim_end_matches('\n');
        if !draft.is_readable(line) {
            return Err(ErrorKind::InvalidEntry);
        }
        Ok(Written {
            uuid: draft.uuid.clone(),
            parent: place.parent,
            offset: offset as u64,
            len: line.len() as u64,
        })
    }
}

/// Returns a text as JSON, and nothing for an empty one: its field is not written.
fn quoted_unless_empty(text: &str) -> String {
    match text {
        "" => String::new(),
        text => quoted(text),
    }
}

impl Reply {
    fn send(self, outcome: WriteResult) {
        match self {
            Self::Here => {}
            Self::Call(call) => call(outcome),
            Self::Ticket(_, state) => state.set(outcome.and_then(|mut written| {
                let closed = || Error::new(ErrorKind::Closed, Path::new(""));
                written.pop().ok_or_else(closed)
            })),
        }
    }
}

/// A queued entry.
#[derive(Clone)]
pub struct Ticket {
    id: u64,
    uuid: Option<EntryId>,
    state: Arc<TicketState>,
    shared: Arc<WriterState>,
}

#[derive(Default)]
struct TicketState {
    outcome: Mutex<Option<Result<Written, Error>>>,
    changed: Condvar,
}

impl TicketState {
    fn set(&self, outcome: Result<Written, Error>) {
        *lock(&self.outcome) = Some(outcome);
        self.changed.notify_all();
    }
}

impl Ticket {
    /// Returns the id that the entry has or will have.
    #[must_use]
    pub fn uuid(&self) -> Option<&EntryId> {
        self.uuid.as_ref()
    }

    /// Returns the result for the entry, if it is known yet.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<Written, Error>> {
        lock(&self.state.outcome).clone()
    }

    /// Sets `usage` and `stop_reason` of the message, both as JSON, because they arrive at the end
    /// of a reply. Returns false, and changes nothing, when the entry is already written or a value
    /// is not JSON on one line.
    pub fn amend(&self, usage: Option<&str>, stop_reason: Option<&str>) -> bool {
        let mut core = self.shared.core();
        let group = core
            .queue
            .iter_mut()
            .find(|group| matches!(&group.reply, Reply::Ticket(id, _) if *id == self.id));
        let draft = group.and_then(|group| group.drafts.first_mut());
        draft.is_some_and(|draft| draft.amend(usage, stop_reason))
    }

    /// Waits until the entry is in the file.
    ///
    /// # Errors
    /// When it can never be: it is not valid, or the writer ended.
    pub fn wait(&self) -> Result<Written, Error> {
        let mut outcome = lock(&self.state.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            outcome = wait(&self.state.changed, outcome, None);
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("uuid", &self.uuid)
            .finish_non_exhaustive()
    }
}
