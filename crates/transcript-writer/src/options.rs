//! Options for opening a session for writing.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use transcript_format::ids::Uuid;
use transcript_storage::{Disk, RealDisk};

use crate::agent_id::AgentId;

/// When written bytes are synced, so that they survive a power cut. Acknowledged bytes survive the
/// end of the process under every policy, however it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// When the caller calls `sync`, and when the writer is closed.
    None,
    /// At most this long after they were written, plus the duration of one sync.
    Interval(Duration),
    /// Before an append is acknowledged. Appends that wait at the same time share a sync.
    Each,
}

/// The reaction to another process that writes to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnBusy {
    /// Fail: on opening, when another process has the file open for writing; later, when another
    /// process adds entries. Metadata lines of others, such as a title, are accepted.
    Fail,
    /// Take turns. Each process continues from its own last entry, so the conversation gets
    /// branches.
    Share,
    /// As `Fail`, but the error asks the caller to continue in a fork.
    Fork,
}

/// Options for opening a session for writing.
#[derive(Clone)]
#[must_use]
pub struct WriterOptions {
    pub(crate) create: bool,
    pub(crate) sync: SyncPolicy,
    pub(crate) on_busy: OnBusy,
    pub(crate) lock_wait: Duration,
    pub(crate) queue_bytes: usize,
    pub(crate) session_id: Option<String>,
    pub(crate) agent: Option<AgentId>,
    pub(crate) cwd: String,
    pub(crate) version: String,
    pub(crate) git_branch: String,
    pub(crate) entrypoint: String,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    pub(crate) ids: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            create: false,
            sync: SyncPolicy::Interval(Duration::from_millis(100)),
            on_busy: OnBusy::Fail,
            lock_wait: Duration::from_secs(2),
            queue_bytes: 16 << 20,
            session_id: None,
            agent: None,
            cwd: String::new(),
            version: String::new(),
            git_branch: String::new(),
            entrypoint: String::new(),
            disk: Arc::new(RealDisk),
            clock: Arc::new(SystemTime::now),
            ids: Arc::new(|| Uuid(uuid::Uuid::new_v4().as_u128())),
        }
    }
}

impl fmt::Debug for WriterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("create", &self.create)
            .field("sync", &self.sync)
            .field("on_busy", &self.on_busy)
            .finish_non_exhaustive()
    }
}

impl WriterOptions {
    /// An existing file, a sync every 100 ms, and an error when another process writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a missing file with the first write: a session without an entry leaves no file. The
    /// file and any new folders are accessible to their owner only.
    pub fn create(mut self) -> Self {
        self.create = true;
        self
    }

    /// Sets when written bytes are synced, so that they survive a power cut; every 100 ms by
    /// default.
    pub fn sync(mut self, policy: SyncPolicy) -> Self {
        self.sync = policy;
        self
    }

    /// Sets what to do when another process writes to the session; by default an error.
    pub fn on_busy(mut self, on_busy: OnBusy) -> Self {
        self.on_busy = on_busy;
        self
    }

    /// Sets how long to wait for the lock of the file; 2 s by default. Other writers hold it for
    /// one write.
    pub fn lock_wait(mut self, wait: Duration) -> Self {
        self.lock_wait = wait;
        self
    }

    /// Sets the maximum number of bytes that the writer holds, queued and unsynced together; 16 MiB
    /// by default. Callers wait while either of the two takes more than half of that.
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.queue_bytes = bytes;
        self
    }

    /// Sets the session id of entries that have none; the name of the file by default.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets the working folder of entries that name none.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// Sets the client version of entries that name none.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets the git branch of entries that name none, as far as [`Writer::set_git_branch`](crate::Writer::set_git_branch) does not
    /// change it later.
    pub fn git_branch(mut self, branch: impl Into<String>) -> Self {
        self.git_branch = branch.into();
        self
    }

    /// Sets how the client was started, such as `cli` or `sdk-py`, for entries that do not say it.
    pub fn entrypoint(mut self, entrypoint: impl Into<String>) -> Self {
        self.entrypoint = entrypoint.into();
        self
    }

    /// Returns the file system.
    #[must_use]
    pub fn session_disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Sets the file system.
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Sets the clock for timestamps.
    pub fn clock(mut self, clock: Arc<dyn Fn() -> SystemTime + Send + Sync>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the source of new ids.
    pub fn ids(mut self, ids: Arc<dyn Fn() -> Uuid + Send + Sync>) -> Self {
        self.ids = ids;
        self
    }
}
