//! Options for opening and copying a session.

use std::path::PathBuf;
use std::sync::Arc;

use transcript_messages::Provider;
use transcript_resume::Policy;
use transcript_resume::request::{Fit, RequestOptions};
use transcript_storage::{Disk, ReadDisk};
use transcript_writer::{EntryId, OnBusy, SyncPolicy};

/// Options for opening a session.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SessionOptions {
    pub(crate) writer: transcript_writer::WriterOptions,
    pub(crate) policy: Policy,
    model: Option<String>,
    tools: Option<Vec<String>>,
    fit: Option<Fit>,
    provider: Provider,
    session_id: Option<String>,
}

/// Options that are set only if there is a value.
pub(crate) trait SetSome: Sized {
    /// Calls `set` with the value, or returns the options as they are.
    fn set_some<T>(self, value: Option<T>, set: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => set(self, value),
            None => self,
        }
    }
}

impl<O> SetSome for O {}

impl SessionOptions {
    /// Policy `recover`, a sync every 100 ms, and an error when another process writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the working folder of entries that name none.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.writer = self.writer.cwd(cwd);
        self
    }

    /// Sets the client version of entries that name none.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.writer = self.writer.version(version);
        self
    }

    /// Sets the git branch of entries that name none;
    /// [`Session::set_git_branch`](crate::Session::set_git_branch) changes it later.
    pub fn git_branch(mut self, branch: impl Into<String>) -> Self {
        self.writer = self.writer.git_branch(branch);
        self
    }

    /// Sets how the client was started, such as `cli` or `sdk-py`, for entries that do not say it;
    /// [`Session::set_entrypoint`](crate::Session::set_entrypoint) changes it later.
    pub fn entrypoint(mut self, entrypoint: impl Into<String>) -> Self {
        self.writer = self.writer.entrypoint(entrypoint);
        self
    }

    /// Sets the session id of entries that have none; the id of the session by default.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets when written bytes are synced, so that they survive a power cut; every 100 ms by
    /// default.
    pub fn sync(mut self, policy: SyncPolicy) -> Self {
        self.writer = self.writer.sync(policy);
        self
    }

    /// Sets what to do when another process writes to the session; by default an error. Under
    /// [`OnBusy::Fork`] a copy of the session is opened instead; when another process writes later,
    /// calls fail as [`Fork`](transcript_writer::ErrorKind::Fork), and the caller can call
    /// [`Session::fork`](crate::Session::fork).
    pub fn on_busy(mut self, on_busy: OnBusy) -> Self {
        self.writer = self.writer.on_busy(on_busy);
        self
    }

    /// Sets the disk of the session; the file system of this machine by default.
    ///
    /// ```
    /// use std::path::Path;
    /// use std::sync::Arc;
    /// use transcript_session::{Draft, History, Session, SessionOptions, storage::MemoryDisk};
    ///
    /// let disk = MemoryDisk::new();
    /// let path = Path::new("/projects/-work/1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// let options = SessionOptions::new().disk(Arc::new(disk.clone()));
    /// let session = Session::create(path, &options)?;
    /// session.append(Draft::user("Which years have a leap day?"))?;
    /// session.close()?;
    /// let history = History::open_on(&(Arc::new(disk) as _), path)?;
    /// assert_eq!(history.index().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.writer = self.writer.disk(disk);
        self
    }

    /// Returns the disk of the session, for reading.
    pub(crate) fn read_disk(&self) -> Arc<dyn ReadDisk> {
        Arc::clone(self.writer.session_disk()) as _
    }

    /// Sets all options of the writer at once, and discards those that were set before.
    pub fn writer(mut self, options: transcript_writer::WriterOptions) -> Self {
        self.writer = options;
        self
    }

    /// Sets the policy by which the conversation is rebuilt; `recover` by default.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the model that requests are for; the model of the last answer by default. Thinking that
    /// another model signed is omitted from them (MSG-10).
    pub fn model(mut self, id: impl Into<String>) -> Self {
        self.model = Some(id.into());
        self
    }

    /// Names the tools that requests have: references to others, which a tool search left, are removed
    /// from them, as the API refuses those (MSG-14). By default [`Policy::Recover`] keeps every
    /// reference, and [`Policy::Vendor`] those to the tools of the client.
    pub fn tools<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Omits from requests what is too much for a context window; all is sent by default. What is omitted stays the same
    /// until the conversation has grown by an eighth of the limit, so that requests start with the same messages.
    ///
    /// ```
    /// use transcript_session::{SessionOptions, parse_fit};
    ///
    /// let options = SessionOptions::new().fit(parse_fit("150k").expect("a number of tokens"));
    /// ```
    pub fn fit(mut self, limit: Fit) -> Self {
        self.fit = Some(limit);
        self
    }

    /// Sets the provider of requests: under policy `recover` this provider accepts them. By default that is the Messages API.
    /// The messages have the form of the Messages API in any case; to convert them is up to the caller.
    ///
    /// ```
    /// use transcript_session::{Provider, SessionOptions};
    ///
    /// let options = SessionOptions::new().provider(Provider::Converse);
    /// ```
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// Returns the options for a request of the session.
    pub(crate) fn request(&self) -> RequestOptions {
        RequestOptions::new()
            .provider(self.provider)
            .set_some(self.model.as_ref(), RequestOptions::model)
            .set_some(self.tools.as_ref(), RequestOptions::tools)
            .set_some(self.fit, RequestOptions::fit)
    }

    /// Returns the options for a copy of the session, which is written to its disk unless another one was given.
    pub(crate) fn fork(&self, options: &ForkOptions) -> ForkOptions {
        let mut options = options.clone();
        let own = || Arc::clone(self.writer.session_disk());
        options.disk.get_or_insert_with(own);
        options
    }

    /// Returns the session id for entries that have none, if one was given.
    pub(crate) fn session_id_given(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Returns the writer options for the session with this id.
    pub(crate) fn writer_of(&self, session_id: Option<String>) -> transcript_writer::WriterOptions {
        match self.session_id.clone().or(session_id) {
            Some(id) => self.writer.clone().session_id(id),
            None => self.writer.clone(),
        }
    }
}

/// Options for copying a conversation into a new session.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ForkOptions {
    pub(crate) at: Option<EntryId>,
    pub(crate) title: Option<String>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) disk: Option<Arc<dyn Disk>>,
}

impl ForkOptions {
    /// The whole conversation, with a derived title, next to the session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the last entry to copy. It may be any entry, on any branch, before or after a
    /// compaction. At a boundary, the copy ends with the conversation that the boundary summarized.
    pub fn at(mut self, entry: EntryId) -> Self {
        self.at = Some(entry);
        self
    }

    /// Sets the title of the copy.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Writes the new session to this folder, which is created, under the name of its id. Without it, and without
    /// [`out`](Self::out), it is next to the original.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the disk that the copy is written to. Without it, [`Session::fork`](crate::Session::fork) writes to the disk of the
    /// session, and [`History::fork`](crate::History::fork) to that of this machine.
    pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
        self.disk = Some(disk);
        self
    }

    /// Sets the path of the copy, which must not exist. If the file name is a uuid, it is the id of
    /// the new session.
    pub fn out(mut self, path: impl Into<PathBuf>) -> Self {
        self.out = Some(path.into());
        self
    }
}
