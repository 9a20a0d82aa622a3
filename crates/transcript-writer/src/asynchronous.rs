//! The same writer for tokio: the crew of the process writes while tasks wait.

use std::sync::Arc;

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::draft::Draft;
use crate::error::Error;
use crate::writer::{Ticket, Writer, Written};

/// Writes entries to one session from tasks. Clones share the writer.
///
/// Dropping a future cancels nothing: an entry that was handed over is written. After
/// [`cancel`](Self::cancellation) no more entries are accepted.
#[derive(Clone, Debug)]
pub struct AsyncWriter {
    writer: Arc<Writer>,
    cancel: CancellationToken,
    running: TaskTracker,
    /// One permit for each byte that may be on its way to the crew.
    room: Arc<Semaphore>,
}

impl AsyncWriter {
    /// Makes a writer usable from tasks.
    #[must_use]
    pub fn new(writer: impl Into<Arc<Writer>>) -> Self {
        Self::with_cancellation(writer, CancellationToken::new())
    }

    /// As [`new`](Self::new), but ends when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancellation(writer: impl Into<Arc<Writer>>, cancel: CancellationToken) -> Self {
        let writer = writer.into();
        let room = writer.room().min(Semaphore::MAX_PERMITS);
        Self {
            room: Semaphore::new(room).into(),
            writer,
            cancel,
            running: TaskTracker::new(),
        }
    }

    /// Returns the token that ends the writer: later appends fail as closed, pending ones are
    /// finished.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the writer itself, for the calls that do not block.
    #[must_use]
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Writes one entry; see [`Writer::append`].
    ///
    /// # Errors
    /// As there; and as closed after the cancellation.
    pub async fn append(&self, draft: Draft) -> Result<Written, Error> {
        let mut written = self.append_all(vec![draft]).await?;
        written.pop().ok_or_else(|| self.writer.shared().closed())
    }

    /// Writes entries with one write; see [`Writer::append_all`].
    ///
    /// # Errors
    /// As for [`append`](Self::append).
    pub async fn append_all(&self, drafts: Vec<Draft>) -> Result<Vec<Written>, Error> {
        let closed = || self.writer.shared().closed();
        if self.cancel.is_cancelled() {
            return Err(closed());
        }
        let _running = self.running.token();
        let bytes: usize = drafts.iter().map(Draft::len).sum();
        let bytes = bytes.min(self.writer.room());
        let permits = self
            .room
            .acquire_many(u32::try_from(bytes).unwrap_or(u32::MAX));
        let _room = permits.await.map_err(|_| closed())?;
        let (reply, outcome) = oneshot::channel();
        self.writer.shared().submit(drafts, move |outcome| {
            // The caller dropped its future; the entry is written all the same.
            let _ = reply.send(outcome);
        })?;
        outcome.await.map_err(|_| closed())?
    }

    /// Queues an entry; see [`Writer::queue`].
    ///
    /// # Errors
    /// The same.
    pub async fn queue(&self, draft: Draft) -> Result<Ticket, Error> {
        let writer = Arc::clone(&self.writer);
        self.blocking(move || writer.queue(draft)).await
    }

    /// Writes everything that is queued; see [`Writer::flush`].
    ///
    /// # Errors
    /// The same.
    pub async fn flush(&self) -> Result<(), Error> {
        self.append_all(Vec::new()).await.map(drop)
    }

    /// Makes everything written so far survive a power cut; see [`Writer::sync`].
    ///
    /// # Errors
    /// The same.
    pub async fn sync(&self) -> Result<(), Error> {
        let _running = self.running.token();
        self.flush().await?;
        let (reply, outcome) = oneshot::channel();
        self.writer.shared().when_synced(move |outcome| {
            let _ = reply.send(outcome);
        });
        outcome.await.map_err(|_| self.writer.shared().closed())?
    }

    /// Accepts no more entries, finishes pending ones, then writes and syncs everything.
    ///
    /// # Errors
    /// As for [`Writer::close`]. While clones are alive, the file stays open until the last clone is
    /// dropped.
    pub async fn close(self) -> Result<(), Error> {
        self.cancel.cancel();
        self.running.close();
        self.running.wait().await;
        let path = self.writer.path().to_owned();
        let end = move || Writer::close_shared(self.writer);
        let ended = tokio::task::spawn_blocking(end).await;
        ended.unwrap_or_else(|_| Err(Error::new(crate::ErrorKind::Closed, &path)))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if self.cancel.is_cancelled() {
            return Err(self.writer.shared().closed());
        }
        let _running = self.running.token();
        let result = tokio::task::spawn_blocking(work).await;
        result.unwrap_or_else(|_| Err(self.writer.shared().closed()))
    }
}
