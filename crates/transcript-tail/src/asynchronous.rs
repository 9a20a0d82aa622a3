//! Events as a stream for tokio: the crew of the process follows the files while tasks wait.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use transcript_reader::Error;
use transcript_storage::crew::{Next, Task, Work};

use crate::event::{EventKind, FollowEvent};
use crate::follower::{Follower, Stopper};
use crate::source::{Polling, Source, poll_in};
use crate::watcher::Watcher;

/// The maximum number of bytes of text in one batch to the task.
const MAX_BATCH_BYTES: usize = 64 << 10;

type Item = Result<FollowEvent, Error>;

/// The events of a [`Follower`] or a [`Watcher`] as a stream.
///
/// The [crew](transcript_storage::crew) of the process follows the files, with no thread for each stream. It is at most two
/// batches of 64 KiB, or of one longer line, ahead of the task that reads the stream. The stream ends when it is
/// cancelled, and dropping it ends the following. [`FollowEvent::checkpoint`] is the position right after its event,
/// however far was read since.
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
    /// Follows the files, or waits for room.
    task: Option<Task>,
    waits_for_room: Arc<AtomicBool>,
    stopper: Stopper,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl From<Follower> for Events {
    /// Starts to follow the session.
    fn from(follower: Follower) -> Self {
        let stopper = follower.stopper();
        Self::new(follower, stopper)
    }
}

impl From<Watcher> for Events {
    /// Starts to watch the sessions.
    fn from(watcher: Watcher) -> Self {
        let stopper = watcher.stopper();
        Self::new(watcher, stopper)
    }
}

impl Events {
    fn new(source: impl Source + Send + 'static, stopper: Stopper) -> Self {
        let (sender, batches) = mpsc::channel(1);
        let waits_for_room = Arc::new(AtomicBool::new(false));
        let mut following = StreamTask {
            source,
            sender,
            unsent: None,
            waits_for_room: Arc::clone(&waits_for_room),
        };
        // Without a thread the channel is closed, and the stream ends at once.
        let task = Task::new(Work::Read, move |task| following.step(task)).ok();
        if let Some(task) = &task {
            task.wake();
        }
        Self {
            batches,
            batch: VecDeque::new(),
            task,
            waits_for_room,
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
                Some(batch) => {
                    this.batch = batch.into();
                    if let Some(task) = &this.task
                        && this.waits_for_room.swap(false, Ordering::AcqRel)
                    {
                        task.wake();
                    }
                }
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(this.batch.pop_front())
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.batches.close();
        self.stopper.stop();
        // Its next step is the last: what it has is not dropped here.
        if let Some(task) = &self.task {
            task.wake();
        }
    }
}

/// The task of a stream.
struct StreamTask<S> {
    source: S,
    sender: mpsc::Sender<Vec<Item>>,
    /// A batch for which there was no room.
    unsent: Option<Vec<Item>>,
    waits_for_room: Arc<AtomicBool>,
}

impl<S: Source> StreamTask<S> {
    fn step(&mut self, task: &Task) -> Next {
        if self.sender.is_closed() {
            return Next::End;
        }
        if let Some(batch) = self.unsent.take()
            && let Err(next) = self.send(batch)
        {
            return next;
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let next = loop {
            let item = match poll_in(&mut self.source, task) {
                Ok(Polling::Event(event)) => Ok(event),
                Ok(Polling::Wait(next)) => break next,
                Ok(Polling::Stopped) => break Next::End,
                Err(error) => Err(error),
            };
            bytes += len(&item);
            batch.push(item);
            if bytes >= MAX_BATCH_BYTES {
                break Next::Again;
            }
        };
        if batch.is_empty() {
            return next;
        }
        match self.send(batch) {
            Ok(()) => next,
            // Events that were read before the stop are still returned.
            Err(wait) => wait,
        }
    }

    /// Hands on a batch. If there is no room for it, it is kept, and this returns what comes next.
    fn send(&mut self, mut batch: Vec<Item>) -> Result<(), Next> {
        for is_announced in [false, true] {
            batch = match self.sender.try_send(batch) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(Next::End),
                Err(TrySendError::Full(batch)) => batch,
            };
            // There may be room just now.
            if !is_announced {
                self.waits_for_room.store(true, Ordering::Release);
            }
        }
        self.unsent = Some(batch);
        Err(Next::Wait)
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
