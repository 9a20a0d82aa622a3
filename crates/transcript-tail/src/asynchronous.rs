//! Events as a stream for tokio: a thread follows the files while tasks wait.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;

use futures_core::Stream;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use transcript_reader::Error;

use crate::event::{EventKind, FollowEvent};
use crate::follower::{Follower, Stopper};
use crate::watcher::Watcher;

/// The most bytes of text in one batch to the task.
const BATCH: usize = 64 << 10;

type Item = Result<FollowEvent, Error>;

/// The events of a [`Follower`] or a [`Watcher`] as a stream.
///
/// A separate thread follows the files. The thread is at most one batch of 64 KiB, or one longer
/// line, ahead of the task that reads the stream. The stream ends when it is cancelled, and dropping
/// it ends the thread. [`FollowEvent::checkpoint`] is the position right after its event, however far
/// the thread has read since.
///
/// ```
/// use transcript_tail::{EventKind, Events, Follower, FollowOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("session.jsonl");
/// # std::fs::write(&path, "{\"type\":\"user\",\"uuid\":\"u1\"}\n")?;
/// let mut events = Events::from(Follower::new(&path, &FollowOptions::new()));
/// while let Some(event) = events.next().await {
///     if let EventKind::Entry(entry) = event?.kind {
///         assert_eq!(entry.offset, 0);
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Events {
    batches: mpsc::Receiver<Vec<Item>>,
    batch: VecDeque<Item>,
    stopper: Stopper,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl From<Follower> for Events {
    /// Starts a thread that follows the session.
    fn from(follower: Follower) -> Self {
        let stopper = follower.stopper();
        Self::new(follower, Follower::try_next, stopper)
    }
}

impl From<Watcher> for Events {
    /// Starts a thread that watches the sessions.
    fn from(watcher: Watcher) -> Self {
        let stopper = watcher.stopper();
        Self::new(watcher, Watcher::try_next, stopper)
    }
}

impl Events {
    fn new<F>(
        mut source: F,
        try_next: impl Fn(&mut F) -> Result<Option<FollowEvent>, Error> + Send + 'static,
        stopper: Stopper,
    ) -> Self
    where
        F: Iterator<Item = Item> + Send + 'static,
    {
        let (sender, batches) = mpsc::channel(1);
        let work = move || {
            while let Some(first) = source.next() {
                let mut bytes = len(&first);
                let mut batch = vec![first];
                // An error ends the batch, because another call would return the same error at
                // once.
                while bytes < BATCH
                    && let Ok(Some(emitted)) = try_next(&mut source)
                {
                    let item = Ok(emitted);
                    bytes += len(&item);
                    batch.push(item);
                }
                if sender.blocking_send(batch).is_err() {
                    break;
                }
            }
        };
        // Without a thread the channel is closed, and the stream ends at once.
        let _ = thread::Builder::new()
            .name("transcript-tail".to_owned())
            .spawn(work);
        Self {
            batches,
            batch: VecDeque::new(),
            stopper,
            cancelled: None,
        }
    }

    /// Ends the stream when `token` is cancelled; events that were not read by then are dropped.
    #[must_use]
    pub fn until(mut self, token: CancellationToken) -> Self {
        self.cancelled = Some(Box::pin(token.cancelled_owned()));
        self
    }

    /// Waits for the next event; `None` when the stream was cancelled. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// As [`Follower::next_within`].
    pub async fn next(&mut self) -> Option<Item> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns a handle that ends the stream from elsewhere. Events that were read by then are
    /// still returned.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }
}

impl Stream for Events {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let this = &mut *self;
        if let Some(cancelled) = &mut this.cancelled
            && cancelled.as_mut().poll(context).is_ready()
        {
            this.stopper.stop();
            return Poll::Ready(None);
        }
        if this.batch.is_empty() {
            match ready!(this.batches.poll_recv(context)) {
                Some(batch) => this.batch = batch.into(),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(this.batch.pop_front())
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// Returns the approximate size of an item: its text, and a little for itself.
fn len(item: &Item) -> usize {
    let text = match item {
        Ok(emitted) => match &emitted.kind {
            EventKind::Entry(entry) => entry.text.len(),
            _ => 0,
        },
        Err(_) => 0,
    };
    text + size_of::<Item>()
}
