//! How a session is opened.

use transcript_resume::Policy;
use transcript_writer::{OnBusy, SyncPolicy};

/// How to open a session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    pub(crate) writer: transcript_writer::WriterOptions,
    pub(crate) policy: Policy,
    pub(crate) model: Option<String>,
    session_id: Option<String>,
}

impl SessionOptions {
    /// Policy `recover`, synced every 100 ms, alone.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the working folder for entries that name none.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.writer = self.writer.cwd(cwd);
        self
    }

    /// Sets the version of the client for entries that name none.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.writer = self.writer.version(version);
        self
    }

    /// Sets the session id for entries that have none; that of the session by default.
    #[must_use]
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets when written bytes are made to survive a power cut; every 100 ms by default.
    #[must_use]
    pub fn sync(mut self, policy: SyncPolicy) -> Self {
        self.writer = self.writer.sync(policy);
        self
    }

    /// Sets what to do when another process writes to the session; fail by default. Under
    /// [`OnBusy::Fork`] a copy of the session is opened in its place; entries of others that come
    /// later fail as [`Fork`](transcript_writer::ErrorKind::Fork), and then
    /// [`Session::fork`](crate::Session::fork) is for the caller to call.
    #[must_use]
    pub fn on_busy(mut self, on_busy: OnBusy) -> Self {
        self.writer = self.writer.on_busy(on_busy);
        self
    }

    /// Sets everything about writing at once: what was set before is lost.
    #[must_use]
    pub fn writer(mut self, options: transcript_writer::WriterOptions) -> Self {
        self.writer = options;
        self
    }

    /// Sets the rules by which the conversation is rebuilt: recover by default.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Names the model that gets the requests; that of the last answer by default. Thoughts that
    /// another model signed are left out of them.
    #[must_use]
    pub fn model(mut self, id: impl Into<String>) -> Self {
        self.model = Some(id.into());
        self
    }

    /// Returns how to write to a session of this id.
    pub(crate) fn writer_of(&self, session_id: Option<String>) -> transcript_writer::WriterOptions {
        match self.session_id.clone().or(session_id) {
            Some(id) => self.writer.clone().session_id(id),
            None => self.writer.clone(),
        }
    }
}
