//! The same session for tokio: the crew of the process writes while tasks wait.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::make::Compaction;
use transcript_format::object::Object;
use transcript_messages::builder::{AssembledPrompt, PromptChanges, PromptFingerprint};
use transcript_reader::Index;
use transcript_resume::request::Request;
use transcript_resume::{PathState, Usage};
use transcript_writer::asynchronous::AsyncWriter;
use transcript_writer::{
    AgentId, AgentMeta, Compacted, Draft, EntryId, InvalidEntry, RecordOptions, RecordOutcome,
    Repair, Ticket, TurnEnd, Writer, Written,
};

use crate::conversation::{ConversationEntry, Keep, StoryEntry};
use crate::counters::Counters;
use crate::error::Error;
use crate::options::{ForkOptions, SessionOptions};
use crate::session::{Resumed, Session};
use crate::stream::Reply;

/// One conversation, open for appending from tasks. Clones share it.
///
/// It has the methods of [`Session`] with the same arguments. Each loses in a crash what the method
/// of the same name loses. Dropping a future cancels nothing: an entry that was handed over is
/// written.
#[derive(Clone, Debug)]
pub struct AsyncSession {
    session: Arc<Session>,
    /// Writes while tasks wait; the writer is that of the session.
    writer: AsyncWriter,
}

impl From<Session> for AsyncSession {
    /// Makes a session usable from tasks.
    fn from(session: Session) -> Self {
        Self {
            writer: AsyncWriter::new(Arc::clone(&session.writer)),
            session: session.into(),
        }
    }
}

impl From<Resumed> for Resumed<AsyncSession> {
    /// Makes a resumed session usable from tasks.
    fn from(resumed: Resumed) -> Self {
        let Resumed {
            session,
            request,
            history,
            added,
            forked_from,
        } = resumed;
        Self {
            session: session.into(),
            request,
            history,
            added,
            forked_from,
        }
    }
}

impl AsyncSession {
    /// Starts a session; see [`Session::create`].
    ///
    /// # Errors
    /// As there.
    pub async fn create(path: &Path, options: &SessionOptions) -> Result<Self, Error> {
        Ok(start(path, options, Session::create).await?.into())
    }

    /// Opens the session if it exists, else creates it; see [`Session::open_or_create`].
    ///
    /// # Errors
    /// As there.
    pub async fn open_or_create(path: &Path, options: &SessionOptions) -> Result<Self, Error> {
        Ok(start(path, options, Session::open_or_create).await?.into())
    }

    /// Opens the session at the end of its conversation; see [`Session::open`].
    ///
    /// ```
    /// use transcript_session::{AsyncSession, Draft, SessionOptions};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    /// # let options = SessionOptions::new();
    /// # let created = AsyncSession::create(&path, &options).await?;
    /// # created.append(Draft::user("Which years have a leap day?")).await?;
    /// # let last = created.leaf();
    /// # created.close().await?;
    ///
    /// let session = AsyncSession::open(&path, &options).await?;
    /// assert_eq!(session.leaf(), last);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn open(path: &Path, options: &SessionOptions) -> Result<Self, Error> {
        Ok(start(path, options, Session::open).await?.into())
    }

    /// Opens the session and builds the request that continues it; see [`Session::resume`].
    ///
    /// # Errors
    /// As there.
    pub async fn resume(path: &Path, options: &SessionOptions) -> Result<Resumed<Self>, Error> {
        Ok(start(path, options, Session::resume).await?.into())
    }

    /// Writes one entry; see [`Session::append`].
    ///
    /// ```
    /// use transcript_session::{AsyncSession, Draft, SessionOptions};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("1999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl");
    ///
    /// let session = AsyncSession::create(&path, &SessionOptions::new()).await?;
    /// session.append(Draft::user("Which years have a leap day?")).await?;
    /// session.close().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn append<D>(&self, entry: D) -> Result<Written, Error>
    where
        D: TryInto<Draft>,
        InvalidEntry: From<D::Error>,
    {
        let mut draft = self.session.draft(entry)?;
        let drafts = std::slice::from_mut(&mut draft);
        if let Some(withdrawn) = self.session.withdrawn(drafts)? {
            return self.tombstone_all(&withdrawn).await;
        }
        self.check(drafts).await?;
        Ok(self.writer.append(draft).await?)
    }

    /// Writes entries with one write; see [`Session::append_all`].
    ///
    /// # Errors
    /// As there.
    pub async fn append_all(
        &self,
        drafts: impl IntoIterator<Item = Draft>,
    ) -> Result<Vec<Written>, Error> {
        let mut drafts: Vec<Draft> = drafts.into_iter().collect();
        if let Some(withdrawn) = self.session.withdrawn(&drafts)? {
            return Ok(vec![self.tombstone_all(&withdrawn).await?]);
        }
        self.check(&mut drafts).await?;
        Ok(self.writer.append_all(drafts).await?)
    }

    /// Writes a complete reply of a model that was streamed; see [`Session::append_reply`].
    ///
    /// # Errors
    /// As there.
    pub async fn append_reply(&self, reply: &Reply) -> Result<Vec<Written>, Error> {
        let drafts = self.session.reply(reply)?;
        Ok(self.writer.append_all(drafts).await?)
    }

    /// Queues an entry; see [`Session::queue`].
    ///
    /// # Errors
    /// As there.
    pub async fn queue<D>(&self, entry: D) -> Result<Ticket, Error>
    where
        D: TryInto<Draft>,
        InvalidEntry: From<D::Error>,
    {
        let mut draft = self.session.draft(entry)?;
        self.check(std::slice::from_mut(&mut draft)).await?;
        Ok(self.writer.queue(draft).await?)
    }

    /// Appends the messages that the file does not contain yet; see [`Session::record`].
    ///
    /// # Errors
    /// As there.
    pub async fn record(
        &self,
        messages: Vec<Draft>,
        options: RecordOptions,
    ) -> Result<RecordOutcome, Error> {
        self.call(move |session| session.record(messages, options))
            .await
    }

    /// Restarts the conversation with a summary; see [`Session::compact`].
    ///
    /// # Errors
    /// As there.
    pub async fn compact(
        &self,
        compaction: Compaction,
        summary: &str,
        keep: impl Into<Keep>,
    ) -> Result<Compacted, Error> {
        let (summary, keep) = (summary.to_owned(), keep.into());
        self.call(move |session| session.compact(compaction, &summary, keep))
            .await
    }

    /// Records the system prompt of the next turn; see [`Session::record_prompt`].
    ///
    /// # Errors
    /// As there.
    pub async fn record_prompt(&self, prompt: &AssembledPrompt) -> Result<Option<Written>, Error> {
        let prompt = prompt.clone();
        self.call(move |session| session.record_prompt(&prompt))
            .await
    }

    /// Compares a system prompt with the one that was recorded last; see
    /// [`Session::prompt_changes`].
    ///
    /// # Errors
    /// As there.
    pub async fn prompt_changes(
        &self,
        new: &PromptFingerprint,
    ) -> Result<Option<PromptChanges>, Error> {
        let new = new.clone();
        self.call(move |session| session.prompt_changes(&new)).await
    }

    /// Sets the title of the session; see [`Session::set_title`].
    ///
    /// # Errors
    /// As there.
    pub async fn set_title(&self, title: &str) -> Result<Written, Error> {
        self.append(Draft::custom_title(title)).await
    }

    /// Sets the tag of the session; see [`Session::set_tag`].
    ///
    /// # Errors
    /// As there.
    pub async fn set_tag(&self, tag: &str) -> Result<Written, Error> {
        self.append(Draft::tag(tag)).await
    }

    /// Returns the entries of the conversation; see [`Session::entries`].
    ///
    /// # Errors
    /// As there.
    pub async fn entries(&self) -> Result<Vec<ConversationEntry>, Error> {
        self.call(|session| session.entries()).await
    }

    /// Returns the state of the session; see [`Session::state`].
    ///
    /// # Errors
    /// As there.
    pub async fn state(&self) -> Result<PathState, Error> {
        self.call(|session| session.state()).await
    }

    /// Returns the tokens of all answers in the file, by model; see [`Session::usage`].
    ///
    /// # Errors
    /// As there.
    pub async fn usage(&self) -> Result<Vec<Usage>, Error> {
        self.call(|session| session.usage()).await
    }

    /// Returns the entries of the whole conversation; see [`Session::story`].
    ///
    /// # Errors
    /// As there.
    pub async fn story(&self) -> Result<Vec<StoryEntry>, Error> {
        self.call(|session| session.story()).await
    }

    /// Goes back to an entry; see [`Session::rewind`].
    ///
    /// # Errors
    /// As there.
    pub async fn rewind(&self, to: Option<EntryId>) -> Result<Written, Error> {
        self.call(move |session| session.rewind(to)).await
    }

    /// Finds the entry that `name` names; see [`Session::find_entry`].
    ///
    /// # Errors
    /// As there.
    pub async fn find_entry(&self, name: &str) -> Result<EntryId, Error> {
        let name = name.to_owned();
        self.call(move |session| session.find_entry(&name)).await
    }

    /// Removes the last entry from the conversation; see [`Session::tombstone`].
    ///
    /// # Errors
    /// As there.
    pub async fn tombstone(&self, entry: &EntryId) -> Result<Written, Error> {
        let entry = entry.clone();
        self.call(move |session| session.tombstone(&entry)).await
    }

    /// Removes the last entries from the conversation; see [`Session::tombstone_all`].
    ///
    /// # Errors
    /// As there.
    pub async fn tombstone_all(&self, entries: &[EntryId]) -> Result<Written, Error> {
        let entries = entries.to_vec();
        self.call(move |session| session.tombstone_all(&entries))
            .await
    }

    /// Ends a turn; see [`Session::end_turn`].
    ///
    /// # Errors
    /// As there.
    pub async fn end_turn(&self, turn: TurnEnd) -> Result<Vec<Written>, Error> {
        self.call(|session| session.end_turn(turn)).await
    }

    /// Adds to the counters of the session; see [`Session::count`]. Waits
    /// only while [`end_turn`](Self::end_turn) writes.
    pub fn count<T>(&self, change: impl FnOnce(&mut Counters) -> T) -> T {
        self.session.count(change)
    }

    /// Counts the replies that the counts in the file do not contain; see [`Session::count_missed`].
    ///
    /// # Errors
    /// As there.
    pub async fn count_missed(
        &self,
        price: impl Fn(&str, &Object<'_>) -> Option<u128> + Send + 'static,
    ) -> Result<usize, Error> {
        self.call(move |session| session.count_missed(price)).await
    }

    /// Returns the counts as they are now; see [`Session::counters`].
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.session.counters()
    }

    /// Completes the calls that have no result yet; see [`Session::complete_calls`].
    ///
    /// # Errors
    /// As there.
    pub async fn complete_calls(&self, text: &str) -> Result<Vec<Written>, Error> {
        let text = text.to_owned();
        self.call(move |session| session.complete_calls(&text))
            .await
    }

    /// Sets the git branch of later entries; see [`Session::set_git_branch`].
    ///
    /// # Errors
    /// As there.
    pub async fn set_git_branch(&self, branch: &str) -> Result<(), Error> {
        let branch = branch.to_owned();
        self.call(move |session| session.set_git_branch(&branch))
            .await
    }

    /// Sets how the client was started, for later entries; see [`Session::set_entrypoint`].
    ///
    /// # Errors
    /// As there.
    pub async fn set_entrypoint(&self, entrypoint: &str) -> Result<(), Error> {
        let entrypoint = entrypoint.to_owned();
        self.call(move |session| session.set_entrypoint(&entrypoint))
            .await
    }

    /// Copies the conversation into a new session; see [`Session::fork`].
    ///
    /// # Errors
    /// As there.
    pub async fn fork(&self, options: &ForkOptions) -> Result<PathBuf, Error> {
        let options = options.clone();
        self.call(move |session| session.fork(&options)).await
    }

    /// Opens the session of a subagent in its own file; see [`Session::agent`].
    ///
    /// # Errors
    /// As there.
    pub async fn agent(&self, agent: &AgentId, meta: &AgentMeta) -> Result<Self, Error> {
        let (agent, meta) = (agent.clone(), meta.clone());
        let opened = self.call(move |session| session.agent(&agent, &meta));
        Ok(opened.await?.into())
    }

    /// Builds the request for the next answer; see [`Session::request`].
    ///
    /// # Errors
    /// As there.
    pub async fn request(&self) -> Result<Request, Error> {
        self.call(Session::request).await
    }

    /// Builds the request for the next answer, and returns what `read` makes of it; see
    /// [`Session::request_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn request_with<T>(
        &self,
        read: impl FnOnce(Request, &Index) -> T + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
    {
        self.call(|session| session.request_with(read)).await
    }

    /// Makes everything written so far survive a power cut; see [`Session::sync`].
    ///
    /// # Errors
    /// As there.
    pub async fn sync(&self) -> Result<(), Error> {
        Ok(self.writer.sync().await?)
    }

    /// Accepts no more entries, finishes pending work, then writes and syncs everything; see
    /// [`Session::close`].
    ///
    /// # Errors
    /// As there. While clones are alive, the file stays open until the last clone is dropped.
    pub async fn close(self) -> Result<(), Error> {
        let Self { session, writer } = self;
        // Only a writer that nothing else shares is closed.
        drop(session);
        Ok(writer.close().await?)
    }

    /// Returns the entry that the next one is a child of.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryId> {
        self.session.leaf()
    }

    /// Returns the file of the session.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.session.path()
    }

    /// Returns the original session, if another process was writing to it, or a client running it, and
    /// this one is a fork.
    #[must_use]
    pub fn forked_from(&self) -> Option<&Path> {
        self.session.forked_from()
    }

    /// Returns the repair of an unfinished last line when the file was opened, if any.
    #[must_use]
    pub fn repair(&self) -> Option<&Repair> {
        self.session.repair()
    }

    /// Returns the entries of damaged lines that were written again when the file was opened.
    #[must_use]
    pub fn restored(&self) -> &[Written] {
        self.session.restored()
    }

    /// Returns the writer; see [`Session::writer`]. Its calls that write block the thread.
    #[must_use]
    pub fn writer(&self) -> &Writer {
        self.session.writer()
    }

    /// Checks entries before they are written. Only a result for a call that the writer does not know
    /// to be open makes it read the file.
    async fn check(&self, drafts: &mut [Draft]) -> Result<(), Error> {
        let calls = self.session.check_drafts(drafts)?;
        if calls.is_empty() {
            return Ok(());
        }
        self.call(move |session| session.check_calls(&calls)).await
    }

    /// Calls the session on a thread that may block.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Session) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let session = Arc::clone(&self.session);
        run_blocking(self.path(), move || call(&session)).await
    }
}

/// Runs one of the functions that open a session.
async fn start<T: Send + 'static>(
    path: &Path,
    options: &SessionOptions,
    open: fn(&Path, &SessionOptions) -> Result<T, Error>,
) -> Result<T, Error> {
    let (owned, options) = (path.to_owned(), options.clone());
    run_blocking(path, move || open(&owned, &options)).await
}

/// Runs work on the session at `path` on a thread that may block.
async fn run_blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Without a panic, the task can only have been cancelled: the runtime shut down before it
        // started.
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Error::closed(path)),
        },
    }
}
