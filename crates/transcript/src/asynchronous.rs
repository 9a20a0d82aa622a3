//! The same session for tokio: the session's own thread writes while tasks wait.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use transcript_format::make::Compaction;
use transcript_resume::request::Request;
use transcript_writer::asynchronous::AsyncWriter;
use transcript_writer::{Compacted, Draft, EntryId, RecordOutcome, Team, Ticket, Writer, Written};

use crate::conversation::{ConversationEntry, Keep};
use crate::error::Error;
use crate::session::{Session, SessionConfig};

/// One conversation, open for appending from tasks. Clones share it.
///
/// Each method loses in a crash what the method of the same name of [`Session`] loses. Dropping a
/// future cancels nothing: an entry that was handed over is written.
#[derive(Clone, Debug)]
pub struct AsyncSession {
    config: Arc<SessionConfig>,
    writer: AsyncWriter,
}

impl From<Session> for AsyncSession {
    /// Makes a session usable from tasks.
    fn from(session: Session) -> Self {
        Self {
            config: Arc::new(session.config),
            writer: AsyncWriter::new(session.writer),
        }
    }
}

impl AsyncSession {
    /// Writes one entry; see [`Session::append`].
    ///
    /// # Errors
    /// As there.
    pub async fn append(&self, draft: Draft) -> Result<Written, Error> {
        Ok(self.writer.append(draft).await?)
    }

    /// Writes entries with one write; see [`Session::append_all`].
    ///
    /// # Errors
    /// As there.
    pub async fn append_all(&self, drafts: Vec<Draft>) -> Result<Vec<Written>, Error> {
        Ok(self.writer.append_all(drafts).await?)
    }

    /// Queues an entry; see [`Session::queue`].
    ///
    /// # Errors
    /// As there.
    pub async fn queue(&self, draft: Draft) -> Result<Ticket, Error> {
        Ok(self.writer.queue(draft).await?)
    }

    /// Appends the messages that the file does not contain yet; see [`Session::record`].
    ///
    /// # Errors
    /// As there.
    pub async fn record(
        &self,
        messages: Vec<Draft>,
        start: Option<EntryId>,
        team: Option<Team>,
    ) -> Result<RecordOutcome, Error> {
        let record = move |_: &SessionConfig, writer: &Writer| {
            Ok(writer.record(messages, start, team.as_ref())?)
        };
        self.blocking(record).await
    }

    /// Restarts the conversation with a summary; see [`Session::compact`].
    ///
    /// # Errors
    /// As there.
    pub async fn compact(
        &self,
        compaction: Compaction,
        summary: String,
        keep: impl Into<Keep>,
    ) -> Result<Compacted, Error> {
        let keep = keep.into();
        let compact = move |config: &SessionConfig, writer: &Writer| {
            config.compact(writer, compaction, &summary, &keep)
        };
        self.blocking(compact).await
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
        self.blocking(|config, writer| config.entries(writer)).await
    }

    /// Goes back to an entry; see [`Session::rewind`].
    ///
    /// # Errors
    /// As there.
    pub async fn rewind(&self, to: Option<EntryId>) -> Result<Written, Error> {
        self.blocking(move |config, writer| config.rewind(writer, to))
            .await
    }

    /// Removes the last entry from the conversation; see [`Session::tombstone`].
    ///
    /// # Errors
    /// As there.
    pub async fn tombstone(&self, entry: EntryId) -> Result<Written, Error> {
        self.blocking(move |config, writer| config.tombstone(writer, &entry))
            .await
    }

    /// Ends a turn; see [`Session::end_turn`].
    ///
    /// # Errors
    /// As there.
    pub async fn end_turn(
        &self,
        prompt: Option<String>,
        lines: Vec<Draft>,
    ) -> Result<Vec<Written>, Error> {
        let end = move |_: &SessionConfig, writer: &Writer| {
            Ok(writer.end_turn(prompt.as_deref(), lines)?)
        };
        self.blocking(end).await
    }

    /// Copies the conversation into a new session; see [`Session::fork`].
    ///
    /// # Errors
    /// As there.
    pub async fn fork(&self, at: Option<EntryId>) -> Result<PathBuf, Error> {
        self.blocking(move |config, writer| config.fork(writer, at.as_ref()))
            .await
    }

    /// Builds the request for the next answer; see [`Session::request`].
    ///
    /// # Errors
    /// As there.
    pub async fn request(&self) -> Result<Request, Error> {
        self.blocking(SessionConfig::request).await
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
    /// As there. While clones are alive, the session's threads run until the last clone is dropped.
    pub async fn close(self) -> Result<(), Error> {
        Ok(self.writer.close().await?)
    }

    /// Returns the entry that the next one is a child of.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryId> {
        self.writer.writer().leaf()
    }

    /// Returns the file of the session.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.writer.writer().path()
    }

    /// Runs work that reads the file on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SessionConfig, &Writer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (config, writer) = (Arc::clone(&self.config), self.writer.clone());
        let done = tokio::task::spawn_blocking(move || work(&config, writer.writer())).await;
        match done {
            Ok(done) => done,
            // Without a panic, the task can only have been cancelled: the runtime shut down before
            // it started.
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Error::closed(self.path())),
            },
        }
    }
}
